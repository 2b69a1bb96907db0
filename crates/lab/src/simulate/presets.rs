//! Machines by name, and where their costs come from. `docs/internals/simulator.md` has the sources in full.
//!
//! What nobody has published is derived, and said to be: `residency` and `directory` from measured
//! throughput of one contended counter, kernel times from measured hand-overs between parked
//! threads.

use super::machine::{Costs, Machine};

/// All of them.
pub fn all() -> Vec<Machine> {
    vec![laptop(), four_socket(), eight_blade(), eight_socket(), power8()]
}

/// One by its name.
pub fn named(name: &str) -> Option<Machine> {
    all().into_iter().find(|machine| machine.name == name)
}

/// What does not differ much between servers.
const SERVER: Costs = Costs {
    hit: 1.5,
    rmw: 8.0,
    smt: 12.0,
    socket: 51.0,
    blade: 136.0,
    remote: 136.0,
    memory: 100.0,
    directory: 10.0,
    residency: 15.0,
    pause: 15.0,
    park: 1500.0,
    unpark: 2000.0,
    wake: 5000.0,
    shared_core: 1.6,
    near_first: 0.0,
    spin_sleep: 1e6,
};

/// Two cores, one socket.
fn laptop() -> Machine {
    Machine {
        name: "laptop".to_owned(),
        about: "2 cores of one socket; costs as `lab locks` measured them on such a machine"
            .to_owned(),
        blades: 1,
        sockets: 1,
        cores: 2,
        threads: 1,
        costs: Costs {
            hit: 1.2,
            rmw: 2.5,
            socket: 45.0,
            blade: 45.0,
            remote: 45.0,
            memory: 90.0,
            residency: 15.0,
            pause: 20.0,
            ..SERVER
        },
    }
}

/// 4 sockets of 18 cores: the machine on which PostgreSQL 9.5 and 9.6 were compared.
fn four_socket() -> Machine {
    Machine {
        name: "four-socket".to_owned(),
        about: "4 x 18 cores, 144 threads (Xeon E7-8890 v3, ProLiant DL580); line transfers as \
                David, Guerraoui and Trigonakis measured them on Xeon E7 (SOSP 2013): 51 ns \
                within a socket, 136 ns to another"
            .to_owned(),
        blades: 1,
        sockets: 4,
        cores: 18,
        threads: 2,
        costs: SERVER,
    }
}

/// 8 blades of 2 sockets, joined by a node controller.
fn eight_blade() -> Machine {
    Machine {
        name: "eight-blade".to_owned(),
        about:
            "8 blades x 2 sockets x 16 cores, 512 threads (SGI UV, Superdome X and Flex class); \
                within a blade as Xeon E7, between blades 400 ns: node controllers and NUMAlink \
                multiply a socket hop by about three"
                .to_owned(),
        blades: 8,
        sockets: 2,
        cores: 16,
        threads: 2,
        costs: Costs { remote: 400.0, memory: 120.0, ..SERVER },
    }
}

/// 8 sockets of 32 cores, joined without node controllers.
fn eight_socket() -> Machine {
    Machine {
        name: "eight-socket".to_owned(),
        about: "8 x 32 cores, 512 threads (Xeon Scalable of the fourth generation class), two \
                groups of 4 sockets; 60 ns within a socket's mesh, 130 ns to a neighbour, 200 ns \
                over two hops"
            .to_owned(),
        blades: 2,
        sockets: 4,
        cores: 32,
        threads: 2,
        costs: Costs {
            hit: 1.3,
            rmw: 6.0,
            socket: 60.0,
            blade: 130.0,
            remote: 200.0,
            memory: 110.0,
            pause: 40.0,
            ..SERVER
        },
    }
}

/// 2 nodes of 4 POWER8 sockets, eight threads a core.
fn power8() -> Machine {
    Machine {
        name: "power8".to_owned(),
        about: "2 nodes x 4 sockets x 8 cores x 8 threads, 512 threads (POWER8, E880 class); 60 ns within a socket, \
                140 ns within a node, 300 ns to the other; eight threads of a core do 2.3 times the work of one"
            .to_owned(),
        blades: 2,
        sockets: 4,
        cores: 8,
        threads: 8,
        costs: Costs {
            smt: 8.0,
            socket: 60.0,
            blade: 140.0,
            remote: 300.0,
            memory: 95.0,
            // Each further thread slows a core's others by so much: 8 threads / 3.5 = 2.3.
            shared_core: 1.36,
            ..SERVER
        },
    }
}
