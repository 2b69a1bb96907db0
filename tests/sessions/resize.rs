//! `shared_buffers` and `workers` up and down under load: no error, balances agree, the pool is what
//! the setting says, and its memory goes back to the system.
//!
//! `RESIZE_SECONDS` (`make resize` sets 60) makes the load longer and the pool larger.

use std::time::{Duration, Instant};

use crate::support::{Server, TempDir, pgbench_command, text_of};

fn seconds() -> u64 {
    std::env::var("RESIZE_SECONDS").map_or(0, |s| s.parse().expect("RESIZE_SECONDS is a number"))
}

/// Resident memory of the server in MiB.
fn resident(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.pid());
    let status = std::fs::read_to_string(path).expect("the server runs");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a process has a size");
    let kib = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    kib.expect("VmRSS is a number of kB") / 1024
}

fn set(server: &Server, name: &str, value: &str) {
    let script = format!("ALTER SYSTEM SET {name} = '{value}';\nSELECT pg_reload_conf();\n");
    assert_eq!(server.psql(&["-qAt"], &script), "t\n");
}

/// Waits until the pool has that many MiB.
fn await_pool(server: &Server, mib: u64) {
    let query = "SELECT size / 1048576 FROM pg_shmem_allocations WHERE name = 'Buffer Blocks'";
    let deadline = Instant::now() + Duration::from_secs(120);
    while server.query(query).trim() != mib.to_string() {
        assert!(Instant::now() < deadline, "the pool never had {mib} MiB");
    }
}

#[test]
fn the_pool_and_the_workers_follow_their_settings_under_load() {
    let long = seconds() > 0;
    let (scale, load) =
        if long { ("100", seconds().max(20).to_string()) } else { ("2", "8".into()) };
    let sizes: &[u64] = if long { &[2048, 16, 512] } else { &[256, 1, 16] };
    let dir = TempDir::new("resize");
    let server = Server::start(dir.path(), &[]);
    set(&server, "workers", "2");
    set(&server, "shared_buffers", "64MB");
    await_pool(&server, 64);
    server.pgbench(&["-i", "-q", "-s", scale]);
    std::thread::scope(|scope| {
        let loads = [["-S", "-Mprepared"], ["-N", "-Msimple"], ["-b", "tpcb-like"]].map(|args| {
            let (server, load) = (&server, &load);
            scope.spawn(move || {
                let args = [args[0], args[1], "-c", "4", "-j", "1", "-n", "-T", load];
                let out = pgbench_command(server.port).args(args).arg("postgres").output();
                let out = out.expect("pgbench is installed");
                (out.status.success(), text_of(&out))
            })
        });
        let pause = Duration::from_secs(seconds() / (sizes.len() as u64 + 1));
        for (i, mib) in sizes.iter().enumerate() {
            // Time for the load to fill the pool: part of the long form, not a synchronisation.
            std::thread::sleep(pause);
            set(&server, "workers", ["4", "1", "3"][i % 3]);
            set(&server, "shared_buffers", &format!("{mib}MB"));
            await_pool(&server, *mib);
            println!("shared_buffers {mib} MiB: resident {} MiB", resident(&server));
        }
        for load in loads {
            let (well, text) = load.join().expect("pgbench's output was read");
            assert!(well && text.contains("number of failed transactions: 0"), "{text}");
            println!("{}", text.lines().filter(|l| l.contains("tps")).collect::<String>());
        }
    });
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = \
                (SELECT sum(delta) FROM pgbench_history), \
                (SELECT count(*) FROM pgbench_accounts) = (SELECT count(*) FROM pgbench_tellers) * 10000";
    assert_eq!(server.query(sums).trim(), "t|t");
    set(&server, "shared_buffers", "16MB");
    await_pool(&server, 16);
    let after = resident(&server);
    assert!(after < 200, "{after} MiB resident with a pool of 16 MiB");
    assert_eq!(server.query("SHOW workers").trim(), "3");
}
