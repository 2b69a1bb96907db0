//! A checker of histories whose transactions append to lists and read them, over several servers at once.
//!
//! Each value is appended once, and a list shows the order of its appends; so reads tell which transaction came before
//! which, and a set of transactions that fits no order is found without a search (Kingsbury and Alvaro, "Elle", VLDB 2020).
//!
//! ```text
//!   start ──► commit        each transaction is two points of one order: where its snapshot lies, where its changes appear
//!
//!   A appended what B read, or what B appended behind        commit(A) < start(B)
//!   B's snapshot lacks what A appended                       start(B)  < commit(A)
//!   A had ended before B began, on the primary               commit(A) < start(B)
//!   A's snapshot was old news when B began, same standby     start(A)  < start(B)
//! ```
//! Snapshot isolation is that these points have an order (Adya's G0, G1c and G-single are cycles of them, and so is a long fork:
//! two snapshots that show two commits in different orders). A reader of a standby may see the past, but never another
//! order.
//!
//! Also found: values of transactions that failed (G1a), parts of a transaction (G1b), appends that are lost or doubled,
//! and transactions that don't see what they did themselves.
//!
//! Left out: anomalies of serializable transactions (cycles with two adjacent anti-dependencies).

use std::collections::HashMap;

/// A step of a transaction, with what it gave.
#[derive(Clone, Debug)]
pub enum Step {
    Append { key: u64, value: u64 },
    Read { key: u64, list: Vec<u64> },
}

/// A transaction's end as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Failed,
    /// The connection broke while the commit was under way.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The life of a server that it ran in: snapshots of one life only move forward.
    pub life: u64,
    /// That server was a primary.
    pub primary: bool,
    /// Before it was begun, on a clock that all clients share.
    pub begun: u64,
    /// After its end was known.
    pub ended: u64,
    pub outcome: Outcome,
    pub steps: Vec<Step>,
}

/// Counts of a history that has no anomaly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub committed: usize,
    pub failed: usize,
    pub unknown: usize,
    pub on_standbys: usize,
    pub reads: usize,
}

/// The longest list of each key, and which transaction has appended each value.
struct Known<'t> {
    all: &'t [Transaction],
    longest: HashMap<u64, &'t [u64]>,
    writers: HashMap<(u64, u64), usize>,
}

/// Judges a history.
///
/// # Errors
/// The anomaly, in words.
pub fn judge(all: &[Transaction]) -> Result<Counts, String> {
    let known = Known::new(all)?;
    for (number, transaction) in all.iter().enumerate() {
        if transaction.outcome != Outcome::Failed {
            known.check_own(number)?;
        }
    }
    for list in &known.longest {
        known.check_whole(*list.0, list.1)?;
    }
    known.check_present()?;
    known.check_order()?;
    let mut counts = Counts::default();
    for transaction in all {
        match transaction.outcome {
            Outcome::Committed => counts.committed += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::Unknown => counts.unknown += 1,
        }
        counts.on_standbys += usize::from(!transaction.primary);
        counts.reads += transaction.reads().count();
    }
    Ok(counts)
}

impl Transaction {
    fn reads(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.steps.iter().filter_map(|step| match step {
            Step::Read { key, list } => Some((*key, list.as_slice())),
            Step::Append { .. } => None,
        })
    }

    fn appends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Append { key, value } => Some((*key, *value)),
            Step::Read { .. } => None,
        })
    }

    /// The state of its snapshot: its reads without its own appends.
    fn outer_reads(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.reads().map(|(key, list)| {
            let is_own = |value: &u64| self.appends().any(|one| one == (key, *value));
            let end = list.iter().position(is_own).unwrap_or(list.len());
            (key, &list[..end])
        })
    }
}

impl<'t> Known<'t> {
    fn new(all: &'t [Transaction]) -> Result<Known<'t>, String> {
        let mut known = Known { all, longest: HashMap::new(), writers: HashMap::new() };
        for (number, transaction) in all.iter().enumerate() {
            for append in transaction.appends() {
                if known.writers.insert(append, number).is_some() {
                    return Err(format!("the client appended {append:?} twice"));
                }
            }
            if transaction.outcome == Outcome::Failed {
                continue;
            }
            for (key, list) in transaction.reads() {
                // Own appends that an unknown transaction has read may never have been.
                let list = match transaction.outcome {
                    Outcome::Committed => list,
                    _ => transaction.outer_reads().find(|read| read.0 == key).map_or(list, |r| r.1),
                };
                let longest = known.longest.entry(key).or_insert(list);
                let (short, long) =
                    if list.len() <= longest.len() { (list, *longest) } else { (*longest, list) };
                if !long.starts_with(short) {
                    return Err(format!("key {key} was read as {short:?} and as {long:?}"));
                }
                *longest = long;
            }
        }
        Ok(known)
    }

    /// A transaction sees one snapshot and what it did itself.
    fn check_own(&self, number: usize) -> Result<(), String> {
        let mut lists: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut appended: HashMap<u64, Vec<u64>> = HashMap::new();
        for step in &self.all[number].steps {
            match step {
                Step::Append { key, value } => {
                    appended.entry(*key).or_default().push(*value);
                    if let Some(list) = lists.get_mut(key) {
                        list.push(*value);
                    }
                }
                Step::Read { key, list } => {
                    let own = appended.get(key).map_or(&[][..], |own| own);
                    if !list.ends_with(own) || lists.get(key).is_some_and(|known| known != list) {
                        return Err(format!("not its own snapshot: {:?}", self.all[number]));
                    }
                    lists.insert(*key, list.clone());
                }
            }
        }
        Ok(())
    }

    /// A list has values of transactions that did not fail, and a transaction's values follow each other.
    fn check_whole(&self, key: u64, list: &[u64]) -> Result<(), String> {
        let mut at = 0;
        while at < list.len() {
            let Some(writer) = self.writers.get(&(key, list[at])) else {
                return Err(format!("key {key} has {} of nobody", list[at]));
            };
            let writer = &self.all[*writer];
            if writer.outcome == Outcome::Failed {
                return Err(format!("key {key} has {} of what failed: {writer:?}", list[at]));
            }
            let own: Vec<u64> =
                writer.appends().filter(|one| one.0 == key).map(|one| one.1).collect();
            if !list[at..].starts_with(&own) {
                return Err(format!("key {key} has {list:?}, not all of {own:?} together"));
            }
            at += own.len();
        }
        Ok(())
    }

    /// Acknowledged appends are in the longest lists, which were read at the end; and transactions are there whole.
    fn check_present(&self) -> Result<(), String> {
        let mut present: HashMap<(u64, u64), usize> = HashMap::new();
        for (key, list) in &self.longest {
            for (place, value) in list.iter().enumerate() {
                if present.insert((*key, *value), place).is_some() {
                    return Err(format!("key {key} has {value} twice"));
                }
            }
        }
        for transaction in self.all {
            let has = |one: &(u64, u64)| present.contains_key(one);
            let (all, count) =
                (transaction.appends().count(), transaction.appends().filter(has).count());
            let wrong = match transaction.outcome {
                Outcome::Committed => count != all,
                Outcome::Failed => count != 0,
                Outcome::Unknown => count != 0 && count != all,
            };
            if wrong {
                return Err(format!("{count} of {all} appends are there: {transaction:?}"));
            }
        }
        Ok(())
    }

    /// Whether a transaction has happened.
    fn happened(&self, number: usize) -> bool {
        match self.all[number].outcome {
            Outcome::Committed => true,
            Outcome::Failed => false,
            Outcome::Unknown => self.all[number].appends().next().is_some_and(|(key, value)| {
                self.longest.get(&key).is_some_and(|list| list.contains(&value))
            }),
        }
    }

    fn check_order(&self) -> Result<(), String> {
        let happened: Vec<bool> = (0..self.all.len()).map(|number| self.happened(number)).collect();
        let mut order = Order::new(self.all.len());
        for (number, transaction) in self.all.iter().enumerate() {
            if !happened[number] {
                continue;
            }
            order.before(start(number), commit(number));
            for (key, list) in transaction.outer_reads() {
                if let Some(last) = list.last() {
                    order.before(commit(self.writers[&(key, *last)]), start(number));
                }
                let next = self.longest.get(&key).and_then(|all| all.get(list.len()));
                if let Some(next) = next {
                    let writer = self.writers[&(key, *next)];
                    if writer != number {
                        order.before(start(number), commit(writer));
                    }
                }
            }
        }
        for (key, list) in &self.longest {
            for pair in list.windows(2) {
                let (a, b) = (self.writers[&(*key, pair[0])], self.writers[&(*key, pair[1])]);
                if a != b {
                    order.before(commit(a), start(b));
                }
            }
        }
        self.add_time(&mut order, &happened);
        match order.cycle() {
            None => Ok(()),
            Some(cycle) => Err(self.tell(&cycle)),
        }
    }

    /// Orders by the clients' clock: chains of points, one for the primaries and one for each life of a standby.
    fn add_time(&self, order: &mut Order, happened: &[bool]) {
        let mut moments: Vec<(u64, bool, usize)> = Vec::new();
        for (number, transaction) in self.all.iter().enumerate() {
            if happened[number] {
                moments.push((transaction.begun, false, number));
                if transaction.outcome == Outcome::Committed {
                    moments.push((transaction.ended, true, number));
                }
            }
        }
        // At one moment beginnings come first: they know nothing of ends.
        moments.sort_unstable();
        let mut newest: HashMap<Option<u64>, usize> = HashMap::new();
        for (_, is_end, number) in moments {
            let transaction = &self.all[number];
            let life = Some(transaction.life).filter(|_| !transaction.primary);
            if !is_end {
                if let Some(point) = newest.get(&life) {
                    order.before(*point, start(number));
                }
                continue;
            }
            // A state that anybody has seen is there for those who come to the primary later.
            let mut extend = |chain: Option<u64>| {
                let point = order.point();
                if let Some(last) = newest.insert(chain, point) {
                    order.before(last, point);
                }
                let seen = if transaction.primary { commit(number) } else { start(number) };
                order.before(seen, point);
            };
            extend(None);
            if life.is_some() {
                extend(life);
            }
        }
    }

    fn tell(&self, cycle: &[usize]) -> String {
        let mut text = "these fit no order:".to_owned();
        for point in cycle {
            let Some(transaction) = self.all.get(point / 2) else {
                text += "\n  (time)";
                continue;
            };
            let which = if point % 2 == 0 { "start" } else { "commit" };
            text += &format!("\n  {which} of {}: ", point / 2);
            let mut shown = format!("{transaction:?}");
            if shown.len() > 700 {
                let cut = (0..=700).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0);
                shown.truncate(cut);
                shown.push('…');
            }
            text += &shown;
        }
        text
    }
}

fn start(transaction: usize) -> usize {
    transaction * 2
}

fn commit(transaction: usize) -> usize {
    transaction * 2 + 1
}

/// Points of which some come before others.
struct Order {
    after: Vec<Vec<usize>>,
}

impl Order {
    fn new(transactions: usize) -> Order {
        Order { after: vec![Vec::new(); transactions * 2] }
    }

    fn point(&mut self) -> usize {
        self.after.push(Vec::new());
        self.after.len() - 1
    }

    fn before(&mut self, a: usize, b: usize) {
        self.after[a].push(b);
    }

    /// A cycle, if there is one (Kahn: what is left when points without predecessors are taken away).
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut before = vec![0_usize; self.after.len()];
        self.after.iter().flatten().for_each(|b| before[*b] += 1);
        let mut free: Vec<usize> = (0..before.len()).filter(|p| before[*p] == 0).collect();
        let mut left = before.len();
        while let Some(point) = free.pop() {
            left -= 1;
            for next in &self.after[point] {
                before[*next] -= 1;
                if before[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        if left == 0 {
            return None;
        }
        self.shortest(&before)
    }

    /// The shortest cycle through some of the points that have predecessors left.
    fn shortest(&self, before: &[usize]) -> Option<Vec<usize>> {
        let candidates = (0..before.len()).filter(|p| before[*p] > 0).take(200);
        candidates.filter_map(|from| self.round(from, before)).min_by_key(Vec::len)
    }

    /// A way from a point back to it, breadth first.
    fn round(&self, from: usize, before: &[usize]) -> Option<Vec<usize>> {
        let mut came: HashMap<usize, usize> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(point) = queue.pop_front() {
            for next in self.after[point].iter().filter(|next| before[**next] > 0) {
                if *next == from {
                    let mut way = vec![point];
                    while way[way.len() - 1] != from {
                        way.push(came[&way[way.len() - 1]]);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !came.contains_key(next) {
                    came.insert(*next, point);
                    queue.push_back(*next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: u64, list: &[u64]) -> Step {
        Step::Read { key, list: list.to_vec() }
    }

    fn append(key: u64, value: u64) -> Step {
        Step::Append { key, value }
    }

    /// Transactions that all ran at the same time, on the primary (life 0) or on a standby.
    fn together(lives: &[(u64, &[Step])]) -> Vec<Transaction> {
        let transaction = |(life, steps): &(u64, &[Step])| Transaction {
            life: *life,
            primary: *life == 0,
            begun: 0,
            ended: 100,
            outcome: Outcome::Committed,
            steps: steps.to_vec(),
        };
        lives.iter().map(transaction).collect()
    }

    fn fault(all: &[Transaction]) -> String {
        judge(all).expect_err("an anomaly")
    }

    #[test]
    fn a_history_in_order_has_no_anomaly() {
        let mut all = together(&[
            (0, &[append(1, 1), append(2, 2)]),
            (0, &[read(1, &[1]), append(1, 3), read(1, &[1, 3])]),
            (1, &[read(1, &[]), read(2, &[])]),
            (1, &[read(1, &[1]), read(2, &[2])]),
            (0, &[read(1, &[1, 3]), read(2, &[2])]),
        ]);
        let counts = judge(&all).expect("no anomaly");
        assert_eq!((counts.committed, counts.on_standbys, counts.reads), (5, 2, 8));
        // Write skew is no anomaly of snapshots.
        all.extend(together(&[
            (0, &[read(3, &[]), append(4, 4)]),
            (0, &[read(4, &[]), append(3, 5)]),
            (0, &[read(3, &[5]), read(4, &[4])]),
        ]));
        judge(&all).expect("no anomaly");
    }

    #[test]
    fn two_snapshots_with_commits_in_different_orders_are_found() {
        let all = together(&[
            (0, &[append(1, 1)]),
            (0, &[append(2, 2)]),
            (1, &[read(1, &[1]), read(2, &[])]),
            (2, &[read(1, &[]), read(2, &[2])]),
            (0, &[read(1, &[1]), read(2, &[2])]),
        ]);
        assert!(fault(&all).contains("fit no order"));
    }

    #[test]
    fn halves_of_transactions_lost_updates_and_failed_values_are_found() {
        let torn = together(&[
            (0, &[append(1, 1), append(2, 2)]),
            (1, &[read(1, &[1]), read(2, &[])]),
            (0, &[read(1, &[1]), read(2, &[2])]),
        ]);
        assert!(fault(&torn).contains("fit no order"));
        let lost = together(&[(0, &[append(1, 1)]), (0, &[read(1, &[])])]);
        assert!(fault(&lost).contains("0 of 1 appends"));
        let forked =
            together(&[(0, &[append(1, 1), read(1, &[1])]), (0, &[append(1, 2), read(1, &[2])])]);
        assert!(fault(&forked).contains("was read as"));
        let mut failed = together(&[(0, &[append(1, 1)]), (1, &[read(1, &[1])])]);
        failed[0].outcome = Outcome::Failed;
        assert!(fault(&failed).contains("of what failed"));
        failed[0].outcome = Outcome::Unknown;
        judge(&failed).expect("it may have happened");
        let part = together(&[(0, &[append(1, 1), append(1, 2)]), (0, &[read(1, &[1])])]);
        assert!(fault(&part).contains("not all of"));
        let own = together(&[(0, &[append(1, 1), read(1, &[])]), (0, &[read(1, &[1])])]);
        assert!(fault(&own).contains("not its own snapshot"));
    }

    #[test]
    fn snapshots_go_forward_in_a_life_and_the_primary_never_shows_the_past() {
        let at = |life, begun, step| Transaction {
            life,
            primary: life == 0,
            begun,
            ended: begun + 1,
            outcome: Outcome::Committed,
            steps: vec![step],
        };
        let last = at(0, 50, read(1, &[1]));
        let append = at(0, 1, append(1, 1));
        let stale = [append.clone(), at(1, 10, read(1, &[])), last.clone()];
        judge(&stale).expect("a standby may show the past");
        let back =
            [append.clone(), at(1, 10, read(1, &[1])), at(1, 20, read(1, &[])), last.clone()];
        assert!(fault(&back).contains("fit no order"));
        let elsewhere =
            [append.clone(), at(1, 10, read(1, &[1])), at(2, 20, read(1, &[])), last.clone()];
        judge(&elsewhere).expect("another standby may be behind");
        let past = [append, at(0, 10, read(1, &[])), last];
        assert!(fault(&past).contains("fit no order"));
    }
}
