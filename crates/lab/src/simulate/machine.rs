//! Machines: which logical processor sits where, and what it costs to get a cache line from there.

use std::fmt;

/// Most logical processors of a machine.
pub const CPUS_MAX: usize = 512;

/// Simulated time and costs: picoseconds.
pub type Time = u64;

/// Picoseconds of so many nanoseconds.
pub fn ps(ns: f64) -> Time {
    (ns * 1e3).round() as Time
}

/// What things cost, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// A load or store of a line that this processor's cache has (for stores: has alone).
    pub hit: f64,
    /// An atomic read-modify-write of a line that this processor has alone.
    pub rmw: f64,
    /// Getting a line from the other thread of the same core.
    pub smt: f64,
    /// From another core of the same socket.
    pub socket: f64,
    /// From another socket of the same blade.
    pub blade: f64,
    /// From another blade.
    pub remote: f64,
    /// From memory, when no cache has it.
    pub memory: f64,
    /// How long the line's directory entry is busy with a read of a clean line that others share.
    pub directory: f64,
    /// How long a processor keeps a line that it got for writing before it answers others, on the
    /// average: on real processors operations that are ready often run first.
    pub residency: f64,
    /// One `pause` in a spin loop.
    pub pause: f64,
    /// Going to sleep in the kernel.
    pub park: f64,
    /// The call that wakes another thread, for its caller.
    pub unpark: f64,
    /// From that call's beginning until the woken thread runs.
    pub wake: f64,
    /// Factor by which local work slows while another thread of the core works, too; each further thread adds as much
    /// as the second one.
    pub shared_core: f64,
    /// The part of all hand-overs of a line, 0 to 1, in which the nearest to its holder of those who wait is served, and
    /// not the first.
    pub near_first: f64,
    /// The sleep in PostgreSQL's spin locks.
    pub spin_sleep: f64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name.
    pub name: String,
    /// What it is like, and where its costs come from.
    pub about: String,
    /// Blades (or node boards, chassis) that a slower network joins.
    pub blades: usize,
    /// Sockets of one blade.
    pub sockets: usize,
    /// Cores of one socket.
    pub cores: usize,
    /// Hardware threads of one core.
    pub threads: usize,
    /// What things cost.
    pub costs: Costs,
}

/// How far two logical processors are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same one.
    Same,
    /// Threads of one core.
    Core,
    /// Cores of one socket.
    Socket,
    /// Sockets of one blade.
    Blade,
    /// Different blades.
    Remote,
}

impl Machine {
    /// Logical processors.
    pub fn cpus(&self) -> usize {
        self.blades * self.sockets * self.cores * self.threads
    }

    /// (core, socket, blade) of a logical processor. They are used as Linux does when it is not
    /// told otherwise: first one thread of each core, socket after socket, then the second threads.
    pub fn place(&self, cpu: usize) -> (usize, usize, usize) {
        let core = cpu % (self.blades * self.sockets * self.cores);
        let socket = core / self.cores;
        (core, socket, socket / self.sockets)
    }

    /// Threads of a logical processor's core among the first `cpus`.
    pub fn threads_at_work(&self, cpu: usize, cpus: usize) -> usize {
        let cores = self.blades * self.sockets * self.cores;
        (cpus + cores - 1 - cpu % cores) / cores
    }

    /// How far one is from the other.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        let ((core, socket, blade), (core2, socket2, blade2)) = (self.place(a), self.place(b));
        match () {
            () if a == b => Distance::Same,
            () if core == core2 => Distance::Core,
            () if socket == socket2 => Distance::Socket,
            () if blade == blade2 => Distance::Blade,
            () => Distance::Remote,
        }
    }

    /// Nanoseconds to get a line over this distance.
    pub fn transfer(&self, distance: Distance) -> f64 {
        match distance {
            Distance::Same => 0.0,
            Distance::Core => self.costs.smt,
            Distance::Socket => self.costs.socket,
            Distance::Blade => self.costs.blade,
            Distance::Remote => self.costs.remote,
        }
    }
}

/// A set of logical processors.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuSet([u64; CPUS_MAX / 64]);

impl CpuSet {
    /// Adds one.
    pub fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Takes one out.
    pub fn remove(&mut self, cpu: usize) {
        self.0[cpu / 64] &= !(1 << (cpu % 64));
    }

    /// Whether it has this one.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether they have one in common.
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether it has one that the other lacks.
    pub fn exceeds(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & !b != 0)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..CPUS_MAX).filter(|cpu| self.contains(*cpu))).finish()
    }
}

/// The machine's distances as sets, for each logical processor.
pub struct Topology {
    near: Vec<[CpuSet; 3]>,
    costs: [Time; 5],
}

impl Topology {
    /// Of the first `cpus` logical processors.
    pub fn new(machine: &Machine, cpus: usize) -> Topology {
        let sets = |cpu| {
            let mut sets = [CpuSet::default(); 3];
            for other in 0..cpus {
                let distance = machine.distance(cpu, other);
                let levels = [Distance::Core, Distance::Socket, Distance::Blade];
                for (set, level) in sets.iter_mut().zip(levels) {
                    if distance <= level {
                        set.insert(other);
                    }
                }
            }
            sets
        };
        let all =
            [Distance::Same, Distance::Core, Distance::Socket, Distance::Blade, Distance::Remote];
        Topology {
            near: (0..cpus).map(sets).collect(),
            costs: all.map(|d| ps(machine.transfer(d))),
        }
    }

    /// How far one is from another: 0 the same core, 3 another blade.
    pub fn level(&self, cpu: usize, other: usize) -> usize {
        let near = &self.near[cpu];
        near.iter().position(|set| set.contains(other)).unwrap_or(near.len())
    }

    /// The cost to reach the nearest of a set, which is not empty and does not contain `cpu`.
    pub fn nearest(&self, cpu: usize, set: &CpuSet) -> Time {
        let level = self.near[cpu].iter().position(|near| near.meets(set));
        self.costs[level.map_or(4, |level| level + 1)]
    }

    /// The cost to reach the farthest of a set other than `cpu`; 0 when there is none.
    pub fn farthest(&self, cpu: usize, set: &CpuSet) -> Time {
        let mut others = *set;
        others.remove(cpu);
        if others.is_empty() {
            return 0;
        }
        let level = self.near[cpu].iter().position(|near| !others.exceeds(near));
        self.costs[level.map_or(4, |level| level + 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::*;

    #[test]
    fn distances_follow_the_building() {
        let machine = presets::named("eight-blade").unwrap();
        let (cores, sockets) = (machine.cores, machine.sockets);
        let all = machine.blades * sockets * cores;
        assert_eq!(machine.distance(5, 5), Distance::Same);
        assert_eq!(machine.distance(5, 5 + all), Distance::Core);
        assert_eq!(machine.distance(0, cores - 1), Distance::Socket);
        assert_eq!(machine.distance(0, cores), Distance::Blade);
        assert_eq!(machine.distance(0, cores * sockets), Distance::Remote);
    }

    #[test]
    fn threads_share_cores_when_all_cores_have_one() {
        let machine = presets::named("power8").unwrap();
        assert_eq!(machine.cpus(), 512);
        let of = |cpu, cpus| machine.threads_at_work(cpu, cpus);
        assert_eq!([of(0, 1), of(0, 64), of(0, 65), of(1, 65), of(64, 65)], [1, 1, 2, 1, 2]);
        assert_eq!([of(5, 512), of(511, 512)], [8, 8]);
    }

    #[test]
    fn nearest_and_farthest_of_a_set() {
        let machine = presets::named("eight-blade").unwrap();
        let topology = Topology::new(&machine, CPUS_MAX.min(machine.cpus()));
        let mut set = CpuSet::default();
        assert_eq!(topology.farthest(0, &set), 0);
        set.insert(0);
        assert_eq!(topology.farthest(0, &set), 0);
        set.insert(1);
        assert_eq!(topology.farthest(0, &set), ps(machine.costs.socket));
        set.insert(machine.cores * machine.sockets);
        assert_eq!(topology.farthest(0, &set), ps(machine.costs.remote));
        assert_eq!(topology.nearest(2, &set), ps(machine.costs.socket));
        let farther = [1, machine.cores, machine.cores * machine.sockets];
        assert_eq!(farther.map(|other| topology.level(0, other)), [1, 2, 3]);
    }
}
