//! The evidence of a range of time: its slices added up, and what went before.

use std::sync::Arc;

use base::WaitEvent;
use base::usage::Use;

use crate::history::slice::{COUNTS, Count, Slice, StatementSum, Sum, TableNote, WaitSum};

/// A second, a minute or an hour of the range, without what only the sum needs.
pub struct Beat {
    /// Its end, in microseconds since 2000.
    pub at: i64,
    /// Its length, microseconds.
    pub span_us: u64,
    counts: [u64; COUNTS.len()],
    /// Time that statements waited, by event, nanoseconds.
    waits: Vec<(WaitEvent, u64)>,
    /// Executions by identifier.
    statements: Vec<(u64, Measure)>,
    /// Bytes of log by identifier.
    logged: Vec<(u64, u64)>,
}

/// So many operations, the time that they took in nanoseconds, and the pages that they wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measure {
    /// Operations.
    pub count: u64,
    /// Nanoseconds.
    pub ns: u64,
    /// Pages.
    pub pages: u64,
}

impl Measure {
    /// Executions: their time on processors and the pages that they wanted.
    pub fn of(statement: &StatementSum) -> Measure {
        let pages = statement.get(Use::BufferHit) + statement.get(Use::BufferRead);
        Measure { count: statement.calls, ns: statement.busy_ns(), pages }
    }

    /// Both.
    pub fn plus(self, other: Measure) -> Measure {
        Measure {
            count: self.count + other.count,
            ns: self.ns + other.ns,
            pages: self.pages + other.pages,
        }
    }

    /// Nanoseconds each.
    pub fn mean_ns(self) -> u64 {
        self.ns / self.count.max(1)
    }

    /// Pages each.
    pub fn mean_pages(self) -> u64 {
        self.pages / self.count.max(1)
    }
}

/// Where operations began to take longer: those before and those after, so divided that most time is lost by
/// the difference. `parts` follow `before`; with fewer than `least` on either side there is no answer.
pub fn change(before: Measure, parts: &[Measure], least: u64) -> Option<(Measure, Measure)> {
    let all = parts.iter().fold(Measure::default(), |sum, part| sum.plus(*part));
    let (mut earlier, mut later) = (before, all);
    let mut best: Option<(u64, Measure, Measure)> = None;
    for part in std::iter::once(&Measure::default()).chain(parts) {
        earlier = earlier.plus(*part);
        later = Measure {
            count: later.count - part.count,
            ns: later.ns - part.ns,
            pages: later.pages - part.pages,
        };
        if earlier.count < least || later.count < least {
            continue;
        }
        let lost = later.mean_ns().saturating_sub(earlier.mean_ns()) * later.count;
        // Of those that lost the same the last: the parts before it are like what was before.
        if best.as_ref().is_none_or(|(most, ..)| lost >= *most) {
            best = Some((lost, earlier, later));
        }
    }
    best.map(|(_, earlier, later)| (earlier, later))
}

impl Beat {
    /// One count.
    pub fn count(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// The part of all statements' log that is this one's, 0 to 1.
    pub fn part_of_log(&self, statement: u64) -> f64 {
        let all: u64 = self.logged.iter().map(|(_, bytes)| bytes).sum();
        let its = self.logged.iter().filter(|(id, _)| *id == statement);
        its.map(|(_, bytes)| bytes).sum::<u64>() as f64 / all.max(1) as f64
    }

    /// Time that statements waited for these events, nanoseconds.
    pub fn waited_ns(&self, events: &[WaitEvent]) -> u64 {
        self.waits.iter().filter(|(event, _)| events.contains(event)).map(|(_, ns)| ns).sum()
    }
}

/// See the module's documentation.
pub struct Facts {
    /// The range's sum.
    pub total: Slice,
    /// Its parts, oldest first.
    pub beats: Vec<Beat>,
    /// Statements by identifier, the roles' and databases' added up.
    pub statements: Vec<StatementSum>,
    /// The ten minutes before the range; empty if nothing is known.
    pub before: Slice,
    before_statements: Vec<StatementSum>,
}

/// Gathers facts, slice by slice.
#[derive(Default)]
pub struct Gathering {
    sum: Sum,
    beats: Vec<Beat>,
}

/// Beats that are kept; of a longer range only the first.
const BEATS_MAX: usize = 100_000;

impl Gathering {
    /// Adds a slice of the range.
    pub fn add(&mut self, slice: &Slice) {
        if self.beats.len() < BEATS_MAX {
            let mut waits: Vec<(WaitEvent, u64)> = Vec::new();
            for wait in slice.waits.iter().filter(|wait| wait.statement != 0) {
                match waits.iter_mut().find(|(event, _)| *event == wait.event) {
                    Some((_, ns)) => *ns += wait.ns,
                    None => waits.push((wait.event, wait.ns)),
                }
            }
            let mut statements: Vec<(u64, Measure)> = Vec::new();
            for statement in slice.statements.iter().filter(|s| s.calls > 0) {
                let measure = Measure::of(statement);
                match statements.iter_mut().find(|(id, _)| *id == statement.id) {
                    Some((_, sum)) => *sum = sum.plus(measure),
                    None => statements.push((statement.id, measure)),
                }
            }
            let logged = slice.statements.iter().map(|s| (s.id, s.get(Use::WalBytes)));
            let logged = logged.filter(|(_, bytes)| *bytes > 0).collect();
            let Slice { at, span_us, counts, .. } = *slice;
            self.beats.push(Beat { at, span_us, counts, waits, statements, logged });
        }
        self.sum.add(slice);
    }

    /// The facts; `before`: the sum of what went before.
    pub fn done(self, before: Slice) -> Facts {
        let total = self.sum.done();
        Facts {
            statements: by_identifier(&total),
            total,
            beats: self.beats,
            before_statements: by_identifier(&before),
            before,
        }
    }
}

fn by_identifier(slice: &Slice) -> Vec<StatementSum> {
    let mut all: Vec<StatementSum> = Vec::new();
    for statement in &slice.statements {
        match all.iter_mut().find(|known| known.id == statement.id) {
            Some(known) => {
                known.calls += statement.calls;
                known.ns += statement.ns;
                known.waited_ns += statement.waited_ns;
                known.caused_ns += statement.caused_ns;
                known.rows += statement.rows;
                known.used.add(&statement.used);
            }
            None => all.push(statement.clone()),
        }
    }
    all
}

impl Facts {
    /// Facts of these slices, and of those before.
    pub fn of(slices: &[Slice], before: &[Slice]) -> Facts {
        let mut gathering = Gathering::default();
        slices.iter().for_each(|slice| gathering.add(slice));
        gathering.done(crate::history::slice::sum(before))
    }

    /// One count of the range.
    pub fn count(&self, what: Count) -> u64 {
        self.total.count(what)
    }

    /// The range's length, nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.total.span_us * 1000
    }

    /// The range's length, seconds.
    pub fn seconds(&self) -> f64 {
        (self.total.span_us as f64 / 1e6).max(0.001)
    }

    /// Time of all statements together, nanoseconds; what `pg_sleep` slept is not work that is late.
    pub fn work_ns(&self) -> u64 {
        let all: u64 = self.statements.iter().map(|s| s.ns).sum();
        all.saturating_sub(self.waited_ns(&[WaitEvent::TimeoutPgSleep]))
    }

    /// Waits of statements.
    pub fn waits(&self) -> impl Iterator<Item = &WaitSum> {
        self.total.waits.iter().filter(|wait| wait.statement != 0)
    }

    /// Time that statements waited for these events, nanoseconds.
    pub fn waited_ns(&self, events: &[WaitEvent]) -> u64 {
        self.waits().filter(|wait| events.contains(&wait.event)).map(|wait| wait.ns).sum()
    }

    /// The same of a single statement.
    pub fn waited_by_ns(&self, statement: u64, events: &[WaitEvent]) -> u64 {
        let of = |wait: &&WaitSum| wait.statement == statement && events.contains(&wait.event);
        self.waits().filter(of).map(|wait| wait.ns).sum()
    }

    /// The object for which these events were waited for longest, with that time; none: they have no objects.
    pub fn main_object(&self, events: &[WaitEvent]) -> Option<(Arc<str>, u64)> {
        let mut objects: Vec<(Arc<str>, u64)> = Vec::new();
        let named = |wait: &&WaitSum| events.contains(&wait.event) && !wait.object.is_empty();
        for wait in self.waits().filter(named) {
            match objects.iter_mut().find(|(object, _)| *object == wait.object) {
                Some((_, ns)) => *ns += wait.ns,
                None => objects.push((wait.object.clone(), wait.ns)),
            }
        }
        objects.into_iter().max_by_key(|(_, ns)| *ns)
    }

    /// The statement that waited longest for these events.
    pub fn main_victim(&self, events: &[WaitEvent]) -> Option<&StatementSum> {
        let waited = |s: &&StatementSum| self.waited_by_ns(s.id, events);
        self.statements.iter().max_by_key(waited).filter(|s| waited(s) > 0)
    }

    /// The statement that used most of something, with its share of what all statements used.
    pub fn main_user(&self, what: Use) -> Option<(&StatementSum, f64)> {
        let all: u64 = self.statements.iter().map(|s| s.get(what)).sum();
        let most = self.statements.iter().max_by_key(|s| s.get(what))?;
        (all > 0).then(|| (most, most.get(what) as f64 / all as f64))
    }

    /// A statement by its identifier.
    pub fn statement(&self, id: u64) -> Option<&StatementSum> {
        self.statements.iter().find(|s| s.id == id)
    }

    /// The executions of a statement before the range, and in each part of it.
    pub fn executions(&self, id: u64) -> (Measure, Vec<Measure>) {
        let before = self.before_statements.iter().find(|s| s.id == id);
        let of_beat = |beat: &Beat| {
            let known = beat.statements.iter().find(|(known, _)| *known == id);
            known.map_or(Measure::default(), |(_, measure)| *measure)
        };
        (before.map(Measure::of).unwrap_or_default(), self.beats.iter().map(of_beat).collect())
    }

    /// Statements that name a table, the longest-running first.
    pub fn statements_of(&self, table: &TableNote) -> Vec<&StatementSum> {
        let mut all: Vec<_> =
            self.statements.iter().filter(|s| names(&s.text, &table.name)).collect();
        all.sort_by_key(|s| std::cmp::Reverse(s.ns));
        all
    }
}

/// Whether a statement's text has this word.
pub fn names(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(found) = text[from..].find(word) {
        let (begins, ends) = (from + found, from + found + word.len());
        let before = text[..begins].chars().next_back();
        let after = text[ends..].chars().next();
        if !before.is_some_and(is_part) && !after.is_some_and(is_part) {
            return true;
        }
        from = ends;
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Ten seconds, in each of which what `fill` says happens.
    pub(crate) fn ten_seconds(fill: impl Fn(&mut Slice)) -> Vec<Slice> {
        let second = |n: i64| {
            let mut slice = Slice::new((100 + n) * 1_000_000, 1_000_000);
            slice.set(Count::Processors, 2);
            fill(&mut slice);
            slice
        };
        (0..10).map(second).collect()
    }

    /// A second of a healthy load: two short statements on 4 sessions, which wait for the log.
    pub(crate) fn healthy(slice: &mut Slice) {
        statement(slice, 1, "UPDATE accounts SET n = n + $1 WHERE id = $2", 1000, 1.0, 1.0);
        statement(slice, 2, "SELECT n FROM accounts WHERE id = $1", 1000, 0.5, 0.0);
        wait(slice, WaitEvent::IPCWalFlush, 1, "", 1.0);
        slice.set(Count::CpuUs, 700_000);
        slice.set(Count::Commits, 1000);
        slice.set(Count::Sessions, 4);
    }

    /// Adds a statement that ran so often and took so many seconds, of which it waited some.
    pub(crate) fn statement(
        slice: &mut Slice,
        id: u64,
        text: &str,
        calls: u64,
        s: f64,
        waited: f64,
    ) {
        let mut sum = StatementSum::new(id, 10, 5, text.into());
        (sum.calls, sum.rows) = (calls, calls);
        (sum.ns, sum.waited_ns) = ((s * 1e9) as u64, (waited * 1e9) as u64);
        slice.statements.push(sum);
    }

    /// Has the statement that was added last use something.
    pub(crate) fn used(slice: &mut Slice, what: Use, amount: u64) {
        if let Some(last) = slice.statements.last_mut() {
            last.used.0[what as usize] = amount;
        }
    }

    /// Adds waits of a statement, so many seconds in all.
    pub(crate) fn wait(slice: &mut Slice, event: WaitEvent, statement: u64, object: &str, s: f64) {
        let ns = (s * 1e9) as u64;
        let sum = WaitSum {
            event,
            statement,
            object: object.into(),
            count: 10,
            ns,
            longest_ns: ns / 5,
            client: Default::default(),
        };
        slice.waits.push(sum);
    }

    #[test]
    fn words_are_found_whole() {
        assert!(names("SELECT * FROM public.t WHERE x", "t"));
        assert!(names("UPDATE t SET", "t") && names("t", "t"));
        assert!(!names("SELECT ta FROM at_ WHERE x", "t"));
    }

    #[test]
    fn a_change_is_found_where_it_was() {
        let part = |count, ns| Measure { count, ns, pages: count };
        let parts = [part(10, 10), part(10, 10), part(5, 500), part(5, 500)];
        let (earlier, later) = change(part(100, 100), &parts, 3).unwrap();
        assert_eq!((earlier.count, later.count, later.mean_ns()), (120, 10, 100));
        assert_eq!(change(part(0, 0), &parts[..1], 3), None);
    }

    #[test]
    fn facts_are_sums() {
        let facts = Facts::of(&ten_seconds(healthy), &[]);
        assert_eq!((facts.seconds(), facts.work_ns()), (10.0, 15_000_000_000));
        assert_eq!(facts.waited_ns(&[WaitEvent::IPCWalFlush]), 10_000_000_000);
        assert_eq!(facts.main_victim(&[WaitEvent::IPCWalFlush]).unwrap().id, 1);
        assert_eq!(facts.beats.len(), 10);
    }
}
