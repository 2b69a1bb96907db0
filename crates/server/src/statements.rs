//! Statistics of statements (calls, times, resources): the rows of
//! `pg_stat_statements`. A statement is known by its query identifier ([`sql::Identity`]).
//!
//! Kept by worker ([`crate::counters`]) and added up at a look; mean and deviation are carried in a
//! form that can be added: sums of differences to the first time (Chan, Golub and LeVeque, 1983).

use std::sync::Arc;

use base::usage::{Usage, Use};
use rustc_hash::FxHashMap;

/// Amounts of which most statements use something, the first of all.
pub const FEW: usize = Use::WalImages as usize + 1;

/// A database and an application, for which statements are run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Its number among all ([`crate::counters::Counters::work`]).
    pub number: u32,
    /// The database's oid.
    pub database: u32,
    /// `application_name`.
    pub application: Arc<str>,
}

/// A statement, with its role, its database and its application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatementKey {
    /// The role's oid.
    pub user: u32,
    /// The number of the [`Work`].
    pub work: u32,
    /// The query identifier.
    pub id: u64,
}

/// One execution.
#[derive(Clone, Copy)]
pub struct Sample {
    /// False for the later pieces of a query that was fetched in pieces.
    pub first: bool,
    /// How long it took, in nanoseconds.
    pub ns: i64,
    /// Rows returned or changed.
    pub rows: u64,
    /// How long it waited meanwhile, in nanoseconds.
    pub waited_ns: u64,
}

impl Sample {
    /// Counts it.
    #[inline]
    fn count(self, executions: &mut Spread, rows: &mut u64) {
        let ms = self.ns as f64 * 1e-6;
        if self.first {
            executions.add(ms);
        } else {
            executions.total += ms;
        }
        *rows += self.rows;
    }
}

/// Times in milliseconds: how many, and how they are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum, with that of pieces that don't count.
    pub total: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The first. Sums of differences to it stay small, so that little is lost when they are squared, and
    /// adding one divides nothing.
    origin: f64,
    /// Sum of the differences to it.
    apart: f64,
    /// Sum of their squares.
    squares: f64,
}

impl Spread {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.count == 0 {
            *self = Spread { total: self.total + value, ..Spread::one(value) };
            return;
        }
        let apart = value - self.origin;
        self.apart += apart;
        self.squares += apart * apart;
        self.count += 1;
        self.total += value;
        // No time is NaN.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    fn one(value: f64) -> Spread {
        Spread {
            count: 1,
            total: value,
            min: value,
            max: value,
            origin: value,
            apart: 0.0,
            squares: 0.0,
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Spread) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = Spread { total: self.total + other.total, ..*other };
            } else {
                self.total += other.total;
            }
            return;
        }
        // The others' differences to this origin.
        let (count, shift) = (other.count as f64, other.origin - self.origin);
        self.apart += other.apart + count * shift;
        self.squares += other.squares + (2.0 * other.apart + count * shift) * shift;
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total / self.count as f64 }
    }

    /// Their standard deviation, of the whole population.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        ((self.squares - self.apart * self.apart / count) / count).max(0.0).sqrt()
    }
}

/// The counts of a statement. Those that each execution changes come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Statement {
    /// Executions.
    pub executions: Spread,
    /// Rows returned or changed.
    pub rows: u64,
    /// The resources that they used.
    pub usage: Usage,
    /// Time that they waited, in nanoseconds.
    pub waited_ns: u64,
    /// Its text without constants.
    pub text: Arc<str>,
    /// The database and the application.
    pub work: Arc<Work>,
    /// Plans that were made for it while `pg_stat_statements.track_planning` was on.
    pub plans: Spread,
    /// Executions when room was last made.
    before: u64,
}

impl Statement {
    /// Nothing happened yet.
    pub fn new(text: Arc<str>, work: Arc<Work>) -> Statement {
        Statement {
            text,
            work,
            executions: Spread::default(),
            rows: 0,
            usage: Usage::default(),
            waited_ns: 0,
            plans: Spread::default(),
            before: 0,
        }
    }

    /// Counts an execution that used this.
    pub fn count(&mut self, sample: Sample, used: &Usage) {
        sample.count(&mut self.executions, &mut self.rows);
        self.waited_ns += sample.waited_ns;
        self.usage.add(used);
    }

    /// Counts plans that took so long together.
    pub fn plan(&mut self, count: u32, ns: u64) {
        let each_ms = ns as f64 * 1e-6 / f64::from(count.max(1));
        (0..count).for_each(|_| self.plans.add(each_ms));
    }

    /// Adds executions that were counted apart.
    pub fn take_recent(&mut self, recent: &Recent) {
        self.executions.merge(&recent.executions);
        self.rows += recent.rows;
        self.waited_ns += recent.waited_ns;
        self.usage.0.iter_mut().zip(recent.used).for_each(|(sum, amount)| *sum += amount);
    }

    /// Adds what another worker has of the same statement.
    pub fn merge(&mut self, other: &Statement) {
        self.executions.merge(&other.executions);
        self.plans.merge(&other.plans);
        self.rows += other.rows;
        self.waited_ns += other.waited_ns;
        self.usage.add(&other.usage);
    }
}

/// A statement's latest executions, counted apart from the others: those that used no more than the first
/// few of all amounts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Recent {
    /// The key that it belongs to; an identifier of 0: nobody's.
    pub key: StatementKey,
    rows: u64,
    /// How much they used of what.
    pub used: [u64; FEW],
    executions: Spread,
    waited_ns: u64,
}

impl Recent {
    /// Nothing happened yet.
    pub fn of(key: StatementKey) -> Recent {
        Recent { key, ..Recent::default() }
    }

    /// Counts an execution but for what it used.
    #[inline]
    pub fn count(&mut self, sample: Sample) {
        sample.count(&mut self.executions, &mut self.rows);
        self.waited_ns += sample.waited_ns;
    }
}

/// Two cache lines.
const _: () = assert!(size_of::<Recent>() == 128);

/// Forgets what ran least since this was last called, a twentieth of all; how many.
pub fn make_room(statements: &mut FxHashMap<StatementKey, Statement>) -> usize {
    let mut recent: Vec<u64> = statements.values().map(|s| s.executions.count - s.before).collect();
    let nth = recent.len() / 20;
    let (_, limit, _) = recent.select_nth_unstable(nth);
    let (limit, before, mut room) = (*limit, statements.len(), nth + 1);
    statements.retain(|_, s| {
        let ran = s.executions.count - s.before;
        s.before = s.executions.count;
        let gone = ran <= limit && room > 0;
        room -= usize::from(gone);
        !gone
    });
    before - statements.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_can_be_added() {
        let values = [1.0, 4.0, 2.5, 10.0, 0.5, 3.0];
        let of = |values: &[f64]| {
            let mut sum = Spread::default();
            values.iter().for_each(|v| sum.add(*v));
            sum
        };
        let mut parts = of(&values[..2]);
        parts.merge(&of(&values[2..]));
        let mean = values.iter().sum::<f64>() / 6.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 6.0;
        assert!((parts.mean() - mean).abs() < 1e-9);
        assert!((parts.deviation() - variance.sqrt()).abs() < 1e-9);
        assert_eq!((parts.count, parts.min, parts.max), (6, 0.5, 10.0));
    }

    #[test]
    fn room_is_made_at_the_cost_of_what_runs_least() {
        let mut all = FxHashMap::default();
        for id in 0..100 {
            let key = StatementKey { user: 10, work: 5, id };
            let mut statement = Statement::new("x".into(), Arc::default());
            for _ in 0..=id {
                statement.executions.merge(&Spread::one(1.0));
            }
            all.insert(key, statement);
        }
        assert_eq!(make_room(&mut all), 6);
        assert!((0..6).all(|id| !all.contains_key(&StatementKey { user: 10, work: 5, id })));
        // Nothing ran since: whichever goes, only as many as room is needed for.
        assert_eq!(make_room(&mut all), 5);
    }
}
