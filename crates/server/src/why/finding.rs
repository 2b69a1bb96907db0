//! A finding: a cause, whom it costs how much, what shows it and what to do.

use std::sync::Arc;

use crate::history::slice::StatementSum;
use crate::why::facts::Facts;

/// The kind of thing that is the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A session, by its number.
    Session,
    /// A statement, by its query identifier.
    Statement,
    /// A table, an index or a row, by name.
    Object,
    /// A setting, by name.
    Setting,
    /// A thread of the server's own, by kind.
    Background,
    /// The disk.
    Disk,
    /// Clients.
    Client,
}

impl Cause {
    /// The word in `pg_why().cause_type`.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Session => "session",
            Cause::Statement => "statement",
            Cause::Object => "object",
            Cause::Setting => "setting",
            Cause::Background => "background",
            Cause::Disk => "disk",
            Cause::Client => "client",
        }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The detector's name.
    pub kind: &'static str,
    /// Time of sessions that is lost to it, nanoseconds.
    pub lost_ns: u64,
    /// For a danger that costs little yet: the time as which it ranks, nanoseconds.
    pub risk_ns: u64,
    /// Sessions that suffer, at most at a time; 0: not known.
    pub sessions: u64,
    /// A statement that suffers; empty: not known.
    pub victim: Arc<str>,
    /// Identifiers of statements that suffer.
    pub victims: Vec<u64>,
    /// The kind of thing that is the cause.
    pub cause: Cause,
    /// Its name: a statement's text, a setting, a table.
    pub name: String,
    /// The session, if it is one; else 0.
    pub pid: i32,
    /// The statement, if it is one; else 0.
    pub statement: u64,
    /// Counters that show it.
    pub evidence: String,
    /// The thing to do.
    pub advice: String,
    /// All in one sentence, without the advice.
    pub sentence: String,
}

impl Finding {
    /// One that costs so much.
    pub fn new(kind: &'static str, cause: Cause, name: impl Into<String>, lost_ns: u64) -> Finding {
        Finding {
            kind,
            lost_ns,
            risk_ns: 0,
            sessions: 0,
            victim: Arc::default(),
            victims: Vec::new(),
            cause,
            name: name.into(),
            pid: 0,
            statement: 0,
            evidence: String::new(),
            advice: String::new(),
            sentence: String::new(),
        }
    }

    /// One that a statement causes.
    pub fn by(kind: &'static str, statement: &StatementSum, lost_ns: u64) -> Finding {
        let new = Finding::new(kind, Cause::Statement, &*statement.text, lost_ns);
        Finding { statement: statement.id, ..new }
    }

    /// The same with who suffers.
    pub fn suffered_by(mut self, victim: Option<&StatementSum>) -> Finding {
        if let Some(victim) = victim {
            self.victim = victim.text.clone();
            self.victims.push(victim.id);
        }
        self
    }

    /// The same with its words.
    pub fn saying(
        mut self,
        sentence: String,
        evidence: String,
        advice: impl Into<String>,
    ) -> Finding {
        (self.sentence, self.evidence, self.advice) = (sentence, evidence, advice.into());
        self
    }

    /// By what findings are ranked, nanoseconds.
    pub fn weight_ns(&self) -> u64 {
        self.lost_ns.max(self.risk_ns)
    }

    /// The part of all statements' time that is lost, 0 to 1.
    pub fn share(&self, facts: &Facts) -> f64 {
        (self.lost_ns as f64 / facts.work_ns().max(1) as f64).min(1.0)
    }
}

/// A statement as findings name it: on one line, and not too long.
pub fn short(text: &str) -> String {
    const LENGTH: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LENGTH {
        return format!("`{line}`");
    }
    let cut: String = line.chars().take(LENGTH - 1).collect();
    format!("`{cut}…`")
}

/// Seconds with as many digits as matter.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1000),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        1_000_000_000..120_000_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{} min", ns / 60_000_000_000),
    }
}

/// Bytes with their unit.
pub fn bytes(n: u64) -> String {
    match n {
        0..10_240 => format!("{n} bytes"),
        10_240..10_485_760 => format!("{} kB", n >> 10),
        10_485_760..10_737_418_240 => format!("{} MB", n >> 20),
        _ => format!("{:.1} GB", n as f64 / (1u64 << 30) as f64),
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_said_with_units() {
        assert_eq!([time(999), time(6_900_000_000)], ["0 µs", "6.9 s"]);
        assert_eq!([bytes(5), bytes(2 << 20)], ["5 bytes", "2048 kB"]);
        assert_eq!(short("SELECT\n  1"), "`SELECT 1`");
        assert_eq!(short(&"x".repeat(200)).chars().count(), 82);
    }
}
