//! From the records' order to the report's: loads, under each the targets, under each the counts.

use std::collections::BTreeMap;

use crate::fit::series;
use crate::results::{Environment, Point, Record, Target, Wait};

use super::theme::{COLOURS, GREY};

/// Everything in the results, sorted.
#[derive(Debug, Default)]
pub struct Results {
    /// Where the runs took place, each once.
    pub environments: Vec<Environment>,
    /// Servers in the order of their appearance, each name once (the last record of it).
    pub targets: Vec<Target>,
    /// One for each workload, protocol and driver.
    pub loads: Vec<Load>,
    /// All records, for what else is in them.
    pub records: Vec<Record>,
}

/// What was asked of the targets.
#[derive(Debug)]
pub struct Load {
    /// `select-only`, …
    pub workload: String,
    /// `simple`, `extended`, `prepared`.
    pub protocol: String,
    /// The load driver.
    pub driver: String,
    /// In the order of the targets.
    pub curves: Vec<Curve>,
}

/// One target under one load.
#[derive(Debug)]
pub struct Curve {
    /// The target's name.
    pub target: String,
    /// Its colour.
    pub colour: usize,
    /// By rising number of clients.
    pub counts: Vec<Count>,
}

/// All repetitions at one number of clients.
#[derive(Debug, Default)]
pub struct Count {
    /// Connections at once.
    pub clients: u32,
    /// Transactions a second of each repetition.
    pub tps: Vec<f64>,
    /// (percentile, µs of each repetition).
    pub latency: Vec<(f64, Vec<f64>)>,
    /// Failed transactions.
    pub errors: u64,
    /// Waits of all repetitions by kind and event.
    pub waits: BTreeMap<(String, String), f64>,
    /// Whether they were sampled.
    pub sampled: bool,
    /// Measured time of all repetitions times clients: all that sessions could wait.
    pub session_seconds: f64,
    /// Largest memory of the server, bytes.
    pub memory: Option<u64>,
    /// Measured time of all repetitions, seconds.
    pub seconds: f64,
    /// CPU time of the server in all of them, seconds, where known.
    pub server_cpu: Option<f64>,
    /// The same of the driver.
    pub driver_cpu: Option<f64>,
    /// Folded stacks.
    pub stacks: Option<String>,
}

impl Count {
    /// Mean throughput.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(&self.tps)
    }

    /// Lowest and highest, where there are several.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        range(&self.tps)
    }

    /// Repetitions' values of one percentile of latency.
    #[must_use]
    pub fn percentile(&self, wanted: f64) -> Option<&[f64]> {
        self.latency.iter().find(|(p, _)| *p == wanted).map(|(_, all)| &all[..])
    }
}

/// Arithmetic mean.
#[must_use]
pub fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

/// Lowest and highest of several.
#[must_use]
pub fn range(all: &[f64]) -> Option<(f64, f64)> {
    (all.len() > 1).then(|| {
        (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max))
    })
}

impl Load {
    /// `select-only, prepared`.
    #[must_use]
    pub fn name(&self) -> String {
        let full = series::point_name("", &self.workload, &self.protocol, &self.driver);
        full.trim_start_matches(", ").to_owned()
    }

    /// What plots' files and the page's anchors are called after.
    #[must_use]
    pub fn slug(&self) -> String {
        slug(&self.name())
    }

    /// One target's curve.
    #[must_use]
    pub fn curve(&self, target: &str) -> Option<&Curve> {
        self.curves.iter().find(|c| c.target == target)
    }
}

/// Letters and digits, the rest as single hyphens.
#[must_use]
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

impl Results {
    /// Sorts records.
    #[must_use]
    pub fn new(records: Vec<Record>) -> Results {
        let mut out = Results::default();
        for record in &records {
            match record {
                Record::Environment(e) => {
                    if !out.environments.contains(e) {
                        out.environments.push(e.clone());
                    }
                }
                Record::Target(t) => match out.targets.iter_mut().find(|o| o.name == t.name) {
                    Some(old) => *old = t.clone(),
                    None => out.targets.push(t.clone()),
                },
                Record::Point(p) => out.add(p),
                Record::Lock(_) | Record::Simulated(_) | Record::Second(_) => (),
            }
        }
        let mut names: Vec<String> = out.targets.iter().map(|t| t.name.clone()).collect();
        for curve in out.loads.iter().flat_map(|l| &l.curves) {
            if !names.contains(&curve.target) {
                names.push(curve.target.clone());
            }
        }
        let colours = colours(&names);
        for load in &mut out.loads {
            for curve in &mut load.curves {
                let at = names.iter().position(|n| *n == curve.target).unwrap_or(0);
                curve.colour = colours[at];
                curve.counts.sort_by_key(|c| c.clients);
            }
            let place = |c: &Curve| names.iter().position(|n| *n == c.target);
            load.curves.sort_by_key(place);
        }
        out.records = records;
        out
    }

    fn add(&mut self, p: &Point) {
        let same =
            |l: &Load| l.workload == p.workload && l.protocol == p.protocol && l.driver == p.driver;
        let at = self.loads.iter().position(same).unwrap_or_else(|| {
            let (workload, protocol) = (p.workload.clone(), p.protocol.clone());
            self.loads.push(Load { workload, protocol, driver: p.driver.clone(), curves: vec![] });
            self.loads.len() - 1
        });
        let curves = &mut self.loads[at].curves;
        let at = curves.iter().position(|c| c.target == p.target).unwrap_or_else(|| {
            curves.push(Curve { target: p.target.clone(), colour: 0, counts: vec![] });
            curves.len() - 1
        });
        let counts = &mut curves[at].counts;
        let at = counts.iter().position(|c| c.clients == p.clients).unwrap_or_else(|| {
            counts.push(Count { clients: p.clients, ..Count::default() });
            counts.len() - 1
        });
        counts[at].add(p);
    }

    /// The server that the others are compared with: the first that is PostgreSQL itself, else the
    /// last; none where there is but one.
    #[must_use]
    pub fn base(&self) -> Option<&str> {
        let names: Vec<&str> = self.names();
        if names.len() < 2 {
            return None;
        }
        let own = |name: &str| {
            let version = self.targets.iter().find(|t| t.name == name).map_or("", |t| &t.version);
            let says = |word: &str| {
                name.to_lowercase().contains(word) || version.to_lowercase().contains(word)
            };
            says("postgres") && !says("threadgres") && !says("bouncer")
        };
        names.iter().find(|n| own(n)).or(names.last()).copied()
    }

    /// Names of all servers that were measured.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for curve in self.loads.iter().flat_map(|l| &l.curves) {
            if !names.contains(&curve.target.as_str()) {
                names.push(&curve.target);
            }
        }
        names
    }
}

impl Count {
    fn add(&mut self, p: &Point) {
        self.tps.push(p.tps);
        for (percentile, us) in &p.latency.percentiles {
            match self.latency.iter_mut().find(|(other, _)| other == percentile) {
                Some((_, all)) => all.push(*us as f64),
                None => self.latency.push((*percentile, vec![*us as f64])),
            }
        }
        self.errors += p.errors.values().sum::<u64>();
        self.session_seconds += p.seconds * f64::from(p.clients);
        for Wait { kind, event, seconds, sampled, .. } in &p.waits {
            *self.waits.entry((kind.clone(), event.clone())).or_default() += seconds;
            self.sampled |= sampled;
        }
        self.memory = self.memory.max(p.server_memory);
        self.seconds += p.seconds;
        for (sum, more) in
            [(&mut self.server_cpu, p.server_cpu), (&mut self.driver_cpu, p.driver_cpu)]
        {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0.0) + more);
            }
        }
        if let Some(stacks) = &p.stacks {
            let all = self.stacks.get_or_insert_default();
            all.push_str(stacks);
            if !all.ends_with('\n') {
                all.push('\n');
            }
        }
    }
}

/// Colours by name where the name tells the server, so that it looks the same in every report; the
/// others take what is left.
fn colours(names: &[String]) -> Vec<usize> {
    const KNOWN: [(&str, usize); 6] = [
        ("null", GREY),
        ("nothing", GREY),
        ("bouncer", 2),
        ("maria", 3),
        ("threadgres", 0),
        ("postgres", 1),
    ];
    let mut used = [false; COLOURS];
    let known = |name: &String| {
        let name = name.to_lowercase();
        KNOWN.iter().find(|(word, _)| name.contains(word)).map(|(_, colour)| *colour)
    };
    let mut out: Vec<Option<usize>> = Vec::new();
    for name in names {
        let colour = known(name).filter(|c| !used[*c]);
        if let Some(colour) = colour {
            used[colour] = true;
        }
        out.push(colour);
    }
    let mut next = 0;
    let mut left = || {
        let free = (0..COLOURS).find(|c| !used[*c]);
        let colour = free.unwrap_or(next % COLOURS);
        used[colour] = true;
        next += 1;
        colour
    };
    out.into_iter().map(|c| c.unwrap_or_else(&mut left)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_come_together_and_colours_stay() {
        let point = |target: &str, clients, repetition, tps| {
            Record::Point(Point {
                target: target.into(),
                clients,
                repetition,
                tps,
                ..Point::default()
            })
        };
        let results = Results::new(vec![
            point("postgres", 10, 0, 50.0),
            point("threadgres", 10, 0, 100.0),
            point("postgres", 1, 0, 20.0),
            point("postgres", 10, 1, 60.0),
        ]);
        assert_eq!(results.loads.len(), 1);
        let curve = results.loads[0].curve("postgres").unwrap();
        assert_eq!(curve.counts.iter().map(|c| c.clients).collect::<Vec<_>>(), [1, 10]);
        assert_eq!(curve.counts[1].mean(), 55.0);
        assert_eq!(curve.counts[1].range(), Some((50.0, 60.0)));
        assert_eq!(results.base(), Some("postgres"));
        let names = ["a", "threadgres-thread", "threadgres", "postgres", "null"];
        assert_eq!(colours(&names.map(str::to_owned)), [2, 0, 3, 1, GREY]);
    }

    #[test]
    fn slugs_are_safe_in_paths_and_anchors() {
        assert_eq!(slug("../My Script.sql, prepared"), "my-script-sql-prepared");
    }
}
