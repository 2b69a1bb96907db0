//! The one table, in Markdown: a row for each thing measured, a column for each server, the aim, and
//! whether it was met.

use std::fmt::Write as _;

use super::points::Figures;

/// One line.
#[derive(Debug, Default)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Threadgres.
    pub ours: String,
    /// The server that does nothing.
    pub null: String,
    /// PostgreSQL 15.
    pub postgres: String,
    /// What was wanted.
    pub aim: String,
    /// Whether it was reached; None: nothing was wanted.
    pub met: Option<bool>,
}

/// All lines so far. Each is printed to standard error as it comes.
#[derive(Debug, Default)]
pub struct Table(Vec<Row>);

impl Row {
    /// Throughput and latency: ours, the one that does nothing, PostgreSQL.
    pub fn throughput(
        what: String,
        [ours, null, postgres]: [Option<Figures>; 3],
        aim: &str,
        met: Option<bool>,
    ) -> Row {
        let cell = |figures: &Option<Figures>| match figures {
            Some(f) => format!("{:.0}, p99 {}", f.tps, milliseconds(f.p99_ms)),
            None => "-".to_owned(),
        };
        let tps = |f: &Option<Figures>| f.as_ref().map(|f| f.tps);
        let ratios = ratios(tps(&ours).unwrap_or(0.0), tps(&null), tps(&postgres));
        Row {
            what,
            ours: format!("{}: {ratios}", cell(&ours)),
            null: cell(&null),
            postgres: cell(&postgres),
            aim: aim.to_owned(),
            met,
        }
    }

    fn line(&self) -> String {
        let met = match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        let Row { what, ours, null, postgres, aim, .. } = self;
        format!("| {what} | {ours} | {null} | {postgres} | {aim} | {met} |")
    }
}

impl Table {
    /// Adds a line.
    pub fn add(&mut self, row: Row) {
        eprintln!("{}", row.line());
        self.0.push(row);
    }

    /// The whole.
    pub fn markdown(&self) -> String {
        let mut out = "| | Threadgres | a server that does nothing | PostgreSQL 15 | aim | |\n\
                       | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
        for row in &self.0 {
            let _ = writeln!(out, "{}", row.line());
        }
        out
    }
}

/// `0.71 of nothing, 3.1 x PostgreSQL`.
pub fn ratios(ours: f64, null: Option<f64>, postgres: Option<f64>) -> String {
    let null = null.filter(|n| *n > 0.0).map(|n| format!("{:.2} of nothing", ours / n));
    let postgres = postgres.filter(|p| *p > 0.0).map(|p| format!("{:.1} x PostgreSQL", ours / p));
    null.into_iter().chain(postgres).collect::<Vec<_>>().join(", ")
}

/// Bytes as kB with one digit after the point.
pub fn kilobytes(bytes: f64) -> String {
    format!("{:.1} kB", bytes / 1024.0)
}

/// Milliseconds with as many digits as mean something.
fn milliseconds(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.0} ms"),
    }
}

/// `10,000`.
pub fn thousands(number: u32) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_figures_ratios_and_whether_the_aim_was_met() {
        let figures = |tps, p99_ms| Some(Figures { tps, p99_ms });
        let all = [figures(70.4, 0.123), figures(100.0, 12.3), None];
        let row = Row::throughput("selects".into(), all, "0.65 of nothing", Some(true));
        let expected = "| selects | 70, p99 0.1 ms: 0.70 of nothing | 100, p99 12 ms | - \
                        | 0.65 of nothing | met |";
        assert_eq!(row.line(), expected);
        assert_eq!(ratios(30.0, None, Some(10.0)), "3.0 x PostgreSQL");
        assert_eq!((thousands(10), thousands(10_000)), ("10".into(), "10,000".into()));
        assert_eq!(kilobytes(16.0 * 1024.0), "16.0 kB");
    }
}
