//! Data to fit: throughput over N, from results files or from plain tables of two columns.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::solve::Row;
use crate::results::{self, Record};

/// What N counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Connections at once on a machine that stays the same.
    Clients,
    /// Processors at work.
    Cores,
}

impl Unit {
    /// Its plural.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Clients => "clients",
            Unit::Cores => "cores",
        }
    }
}

/// Throughput at one N.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observation {
    /// Clients or cores.
    pub n: f64,
    /// Mean throughput of the repetitions.
    pub throughput: f64,
    /// How often it was measured.
    pub repetitions: u32,
    /// Standard deviation of one repetition; none where there was one only.
    pub deviation: Option<f64>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Target, workload, protocol; or the file's name.
    pub name: String,
    /// What N counts.
    pub unit: Unit,
    /// Whether this is a simulator's output, which has no noise.
    pub simulated: bool,
    /// Processors of the machine, where known.
    pub cores: Option<u32>,
    /// By rising N.
    pub observations: Vec<Observation>,
}

/// How many degrees of freedom the common scatter counts for beside a count's own repetitions: few
/// repetitions know their variance badly, and weights from them alone would spoil the intervals.
const PRIOR_DEGREES: f64 = 12.0;

/// How repetitions scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// Degrees of freedom in the repetitions.
    pub degrees: f64,
    /// Their squares, in units of the weights.
    pub squares: f64,
}

impl Series {
    /// Makes a curve from single measurements.
    #[must_use]
    pub fn new(name: String, unit: Unit, measured: &[(f64, f64)]) -> Series {
        let mut by_n: Vec<(f64, Vec<f64>)> = Vec::new();
        for (n, x) in measured {
            match by_n.iter_mut().find(|(other, _)| other == n) {
                Some((_, all)) => all.push(*x),
                None => by_n.push((*n, vec![*x])),
            }
        }
        by_n.sort_by(|a, b| a.0.total_cmp(&b.0));
        let observations = by_n.into_iter().map(|(n, all)| observe(n, &all)).collect();
        Series { name, unit, simulated: false, cores: None, observations }
    }

    /// Rows for the solver, and what the repetitions say about noise.
    ///
    /// Without repetitions all weights are equal, and there is no scatter to know.
    #[must_use]
    pub fn rows(&self) -> (Vec<Row>, Option<Scatter>) {
        let own = |o: &Observation| (f64::from(o.repetitions) - 1.0, o.deviation.unwrap_or(0.0));
        let mut degrees = 0.0;
        let mut relative = 0.0;
        for o in &self.observations {
            let (d, s) = own(o);
            degrees += d;
            relative += d * (s / o.throughput).powi(2);
        }
        if degrees == 0.0 || relative == 0.0 {
            let plain = |o: &Observation| Row { n: o.n, x: o.throughput, weight: 1.0 };
            return (self.observations.iter().map(plain).collect(), None);
        }
        relative /= degrees;
        let mut squares = 0.0;
        let weigh = |o: &Observation| {
            let (d, s) = own(o);
            let common = relative * o.throughput * o.throughput;
            let variance = (PRIOR_DEGREES * common + d * s * s) / (PRIOR_DEGREES + d);
            squares += d * s * s / variance;
            Row { n: o.n, x: o.throughput, weight: f64::from(o.repetitions) / variance }
        };
        let rows = self.observations.iter().map(weigh).collect();
        (rows, Some(Scatter { degrees, squares }))
    }
}

fn observe(n: f64, all: &[f64]) -> Observation {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let squares: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
    let deviation = (all.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    Observation { n, throughput: mean, repetitions: all.len() as u32, deviation }
}

/// All curves of a results file or of a table.
///
/// # Errors
/// Names the file, and the line where one is at fault.
pub fn read(path: &Path, unit: Option<Unit>) -> Result<Vec<Series>, String> {
    let text = read_text(path)?;
    if text.trim_start().starts_with('{') {
        let records = parse_records(path, &text)?;
        let mut all = from_records(&records);
        if let Some(unit) = unit {
            all.iter_mut().for_each(|s| s.unit = unit);
        }
        if all.is_empty() {
            return Err(format!("{}: holds no measured or simulated points", path.display()));
        }
        return Ok(all);
    }
    let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let series = from_table(&name, &text, unit).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(vec![series])
}

/// All records of a results file.
///
/// # Errors
/// Names the file, and the line where one is at fault.
pub fn read_records(path: &Path) -> Result<Vec<Record>, String> {
    parse_records(path, &read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if text.trim().is_empty() {
        return Err(format!("{}: is empty", path.display()));
    }
    Ok(text)
}

fn parse_records(path: &Path, text: &str) -> Result<Vec<Record>, String> {
    let records = results::read(text.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    if records.is_empty() {
        return Err(format!("{}: holds no whole record", path.display()));
    }
    Ok(records)
}

/// Curves by target, workload, protocol and driver, and by simulated machine, scenario and variant,
/// in the order in which they first appear.
#[must_use]
pub fn from_records(records: &[Record]) -> Vec<Series> {
    let mut names: Vec<(String, Unit)> = Vec::new();
    let mut measured: BTreeMap<(String, Unit), Vec<(f64, f64)>> = BTreeMap::new();
    let mut cores = None;
    for record in records {
        let (key, n, x) = match record {
            Record::Environment(e) => {
                cores = (e.cores > 0).then_some(e.cores);
                continue;
            }
            Record::Point(p) => {
                let name = point_name(&p.target, &p.workload, &p.protocol, &p.driver);
                ((name, Unit::Clients), f64::from(p.clients), p.tps)
            }
            Record::Simulated(s) => {
                let name = format!("{}, {}, {}", s.machine, s.scenario, s.variant);
                ((name, Unit::Cores), f64::from(s.cores), s.throughput)
            }
            Record::Target(_) | Record::Lock(_) | Record::Second(_) => continue,
        };
        if x.is_finite() && x > 0.0 && n >= 1.0 {
            let entry = measured.entry(key.clone()).or_default();
            if entry.is_empty() {
                names.push(key);
            }
            entry.push((n, x));
        }
    }
    let build = |key: (String, Unit)| {
        let mut series = Series::new(key.0.clone(), key.1, &measured[&key]);
        series.simulated = key.1 == Unit::Cores;
        series.cores = if series.simulated { None } else { cores };
        series
    };
    names.into_iter().map(build).collect()
}

/// How a measured curve is called.
#[must_use]
pub fn point_name(target: &str, workload: &str, protocol: &str, driver: &str) -> String {
    let by =
        if driver.is_empty() || driver == "lab" { String::new() } else { format!(", {driver}") };
    format!("{target}, {workload}, {protocol}{by}")
}

/// A table: N and throughput in two columns, parted by comma, semicolon, tab or spaces; a first line
/// of names and lines that begin with `#` are allowed.
///
/// N counts cores if the first name says so (core, cpu, processor, thread), else clients.
///
/// # Errors
/// Says which line is no pair of positive numbers.
pub fn from_table(name: &str, text: &str, unit: Option<Unit>) -> Result<Series, String> {
    let mut measured = Vec::new();
    let mut said = Unit::Clients;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with('#'));
    for (at, (number, line)) in lines.enumerate() {
        let cells: Vec<&str> = line
            .split(|c: char| c == ',' || c == ';' || c.is_whitespace())
            .map(|cell| cell.trim_matches('"'))
            .filter(|cell| !cell.is_empty())
            .collect();
        let values: Vec<Option<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
        match values[..] {
            [Some(n), Some(x)] if n >= 1.0 && n.is_finite() && x > 0.0 && x.is_finite() => {
                measured.push((n, x));
            }
            _ if at == 0 && values.iter().all(Option::is_none) => {
                let first = cells.first().map(|c| c.to_lowercase()).unwrap_or_default();
                let words = ["core", "cpu", "processor", "thread"];
                if words.iter().any(|word| first.contains(word)) {
                    said = Unit::Cores;
                }
            }
            _ => {
                return Err(format!(
                    "line {}: wants N of at least 1 and a throughput above 0 in two columns",
                    number + 1
                ));
            }
        }
    }
    if measured.is_empty() {
        return Err("holds no line with N and throughput".to_owned());
    }
    Ok(Series::new(name.to_owned(), unit.unwrap_or(said), &measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Environment, Point};

    #[test]
    fn tables_of_many_habits_are_read() {
        for text in ["1,10\n2,19\n", "cores;tps\n1;10\n2;19\n", "# made by hand\n1 10\n\n2\t19\n"] {
            let series = from_table("t", text, None).unwrap();
            let pairs: Vec<_> = series.observations.iter().map(|o| (o.n, o.throughput)).collect();
            assert_eq!(pairs, [(1.0, 10.0), (2.0, 19.0)], "{text:?}");
            let unit = if text.starts_with("cores") { Unit::Cores } else { Unit::Clients };
            assert_eq!(series.unit, unit);
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = from_table("t", "n,x\n1,10\n2,fast\n", None).unwrap_err();
        assert!(error.starts_with("line 3:"), "{error}");
        assert!(from_table("t", "1,-4\n", None).is_err());
        assert!(from_table("t", "n,x\n", None).is_err());
    }

    #[test]
    fn repetitions_become_means_with_weights() {
        let series =
            Series::new("s".into(), Unit::Clients, &[(2.0, 21.0), (1.0, 10.0), (2.0, 19.0)]);
        assert_eq!(series.observations[1].throughput, 20.0);
        assert_eq!(series.observations[1].repetitions, 2);
        let (rows, scatter) = series.rows();
        assert_eq!(scatter.unwrap().degrees, 1.0);
        // The same relative error: half the throughput, a quarter of the variance, one repetition.
        assert!((rows[0].weight / rows[1].weight - 2.0).abs() < 1e-9);
    }

    #[test]
    fn records_are_grouped_by_what_was_measured() {
        let point = |target: &str, clients, tps| {
            Record::Point(Point {
                target: target.into(),
                workload: "select-only".into(),
                protocol: "prepared".into(),
                driver: "lab".into(),
                clients,
                tps,
                ..Point::default()
            })
        };
        let environment = Environment { cores: 2, ..Environment::default() };
        let records = [
            Record::Environment(environment),
            point("a", 1, 10.0),
            point("b", 1, 5.0),
            point("a", 2, 18.0),
            point("a", 2, 20.0),
            point("a", 3, 0.0),
        ];
        let all = from_records(&records);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].name, "a, select-only, prepared");
        assert_eq!(all[0].cores, Some(2));
        assert_eq!(all[0].observations.len(), 2, "a throughput of nought is no observation");
    }
}
