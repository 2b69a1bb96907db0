//! Prepared statements and portals of a session.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use base::{Oid, Result, err};
use ecow::EcoString;
use exec::execution::Execution;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use sched::Lines;
use sql::Prepared;
use txn::Snapshot;
use types::Datum;

use crate::session::statement_run::Run;

/// A prepared statement, with the plan last used with it: one piece of memory. A session among many has
/// its statements in no cache when its next message comes, and each piece more would be one more to wait for.
pub struct PreparedStatement {
    /// Its name; empty for the unnamed one.
    pub name: EcoString,
    /// The plan.
    pub plan: Planned,
    /// The text that it was prepared from.
    pub text: Arc<str>,
    /// Parameter types as declared.
    pub declared: Arc<[Oid]>,
    /// Made by PREPARE, not by the protocol.
    pub from_sql: bool,
    /// When it was made.
    pub since: i64,
}

impl PreparedStatement {
    /// The same with another plan.
    fn with_plan(&self, plan: Planned) -> PreparedStatement {
        PreparedStatement {
            name: self.name.clone(),
            plan,
            text: self.text.clone(),
            declared: self.declared.clone(),
            ..*self
        }
    }
}

/// The epoch of plans that are made anew when they are next used.
pub const NEVER_FRESH: u64 = u64::MAX;

/// A plan, and what it was made under. While both numbers are the same it needs no check.
#[derive(Clone)]
pub struct Planned {
    /// The plan.
    pub prepared: Arc<Prepared>,
    /// The version of the catalog that was published then.
    pub version: u64,
    /// The settings' epoch; [`NEVER_FRESH`] for a plan that only its transaction can use.
    pub epoch: u64,
}

/// A session's own hold on a plan. (The plan itself is shared by all, and a reference count that all
/// workers change with each statement would cost them time.)
#[derive(Clone)]
pub enum PlanOf {
    /// That of a prepared statement.
    Statement(Arc<PreparedStatement>),
    /// One of its own.
    Alone(Arc<Planned>),
}

impl PlanOf {
    /// A plan that was made under these.
    pub fn new(prepared: Arc<Prepared>, version: u64, epoch: u64) -> PlanOf {
        PlanOf::Alone(Arc::new(Planned { prepared, version, epoch }))
    }
}

impl Deref for PlanOf {
    type Target = Planned;

    fn deref(&self) -> &Planned {
        match self {
            PlanOf::Statement(statement) => &statement.plan,
            PlanOf::Alone(plan) => plan,
        }
    }
}

/// One among others, known by its name.
struct Named(Arc<PreparedStatement>);

impl Borrow<str> for Named {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.as_str().hash(state);
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Named {}

/// A session's prepared statements.
///
/// Most programs run them again and again in the order in which they first prepared them, so the one after the
/// last used is looked at first; and its memory can be asked for before the client asks for it ([`Statements::likely`]).
#[derive(Default)]
pub struct Statements {
    unnamed: Option<Arc<PreparedStatement>>,
    /// As they were prepared, as far as none has been removed.
    named: IndexSet<Named, FxBuildHasher>,
    /// The position of the last that was used.
    last: usize,
}

impl Statements {
    /// Adds one; the unnamed one is replaced.
    ///
    /// # Errors
    /// `42P05`.
    pub fn add(&mut self, statement: PreparedStatement) -> Result<()> {
        if !statement.name.is_empty() {
            self.check_new(&statement.name)?;
        }
        self.put(Arc::new(statement));
        Ok(())
    }

    /// Adds one in the place of the one with its name, if there is one.
    fn put(&mut self, statement: Arc<PreparedStatement>) {
        match statement.name.is_empty() {
            true => self.unnamed = Some(statement),
            false => drop(self.named.replace(Named(statement))),
        }
    }

    /// `42P05` when the name is taken.
    pub fn check_new(&self, name: &str) -> Result<()> {
        if self.find(name).is_some() {
            return Err(err!(DUPLICATE_PSTATEMENT, "prepared statement \"{name}\" already exists"));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Arc<PreparedStatement>> {
        match name {
            "" => self.unnamed.as_ref(),
            _ => self.named.get(name).map(|s| &s.0),
        }
    }

    /// The position after the last used.
    fn next(&self) -> usize {
        let next = self.last + 1;
        if next < self.named.len() { next } else { 0 }
    }

    /// The one with this name, to be used.
    ///
    /// # Errors
    /// `26000`.
    pub fn get(&mut self, name: &str) -> Result<&Arc<PreparedStatement>> {
        if name.is_empty() {
            let unnamed = self.unnamed.as_ref();
            return unnamed.ok_or_else(|| {
                err!(UNDEFINED_PSTATEMENT, "unnamed prepared statement does not exist")
            });
        }
        let next = self.next();
        let expected = self.named.get_index(next).filter(|s| s.0.name == name);
        let (at, found) =
            expected.map(|s| (next, s)).or_else(|| self.named.get_full(name)).ok_or_else(|| {
                err!(UNDEFINED_PSTATEMENT, "prepared statement \"{name}\" does not exist")
            })?;
        self.last = at;
        Ok(&found.0)
    }

    /// The lines that the session's next run is likely to use: the next statement, where it is known from, and the last,
    /// which others still show until then.
    pub fn likely(&self) -> [Lines; 3] {
        let Some(next) = self.named.get_index(self.next()) else { return [Lines::default(); 3] };
        let last = self.named.get_index(self.last).unwrap_or(next);
        [Lines::of(next), Lines::of_shared(&next.0), Lines::of_shared(&last.0)]
    }

    /// Puts a statement with this plan in the place of `statement`, if that is still known.
    pub fn replan(&mut self, statement: &mut Arc<PreparedStatement>, plan: Planned) {
        let known = self.find(&statement.name).is_some_and(|s| Arc::ptr_eq(s, statement));
        *statement = Arc::new(statement.with_plan(plan));
        if known {
            self.put(statement.clone());
        }
    }

    /// Forgets one; false when there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        match name {
            "" => self.unnamed.take().is_some(),
            _ => self.named.swap_remove(name),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Statements::default();
    }

    /// DISCARD PLANS: each is planned anew when it is next run.
    pub fn forget_plans(&mut self) {
        let anew = |statement: &PreparedStatement| {
            let plan = Planned { epoch: NEVER_FRESH, ..statement.plan.clone() };
            Arc::new(statement.with_plan(plan))
        };
        self.unnamed = self.unnamed.as_deref().map(anew);
        self.named = self.named.iter().map(|s| Named(anew(&s.0))).collect();
    }

    /// The named ones.
    pub fn named(&self) -> impl Iterator<Item = &PreparedStatement> {
        self.named.iter().map(|s| &*s.0)
    }
}

/// Formats of a result's columns: none (all text), one for all, or one each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultFormats(pub Vec<bool>);

impl ResultFormats {
    /// Whether the column is wanted in binary.
    pub fn binary(&self, column: usize) -> bool {
        match self.0.len() {
            0 => false,
            1 => self.0[0],
            _ => self.0.get(column) == Some(&true),
        }
    }
}

/// How far a portal has come.
pub enum Progress {
    /// It has not begun.
    New,
    /// It stopped after some rows.
    Suspended {
        /// The query.
        execution: Box<Execution>,
        /// The snapshot that it sees.
        snapshot: Snapshot,
        /// The snapshot's registration with the transaction.
        pin: u64,
    },
    /// All its rows; the portal's position says where it is.
    Kept(Vec<Vec<Datum>>),
    /// An error ended it.
    Failed,
    /// It came to its end.
    Done,
}

/// The fate of a cursor WITH HOLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is the running transaction's: gone if that is rolled back.
    WithTransaction,
    /// Its transaction has committed: it stays until it is closed.
    ForSession,
}

/// A statement with its parameters, ready to run.
pub struct Portal {
    /// The statement.
    pub statement: Arc<PreparedStatement>,
    /// Its plan, which may have been made anew since.
    pub plan: PlanOf,
    /// Parameters.
    pub params: Vec<Datum>,
    /// Formats of the result's columns.
    pub formats: ResultFormats,
    /// How far it is.
    pub progress: Progress,
    /// Rows fetched; of a cursor that scrolls, the row where it is (see `cursor`).
    pub position: u64,
    /// A cursor's query has no more rows.
    pub at_end: bool,
    /// DECLARE made it.
    pub cursor: bool,
    /// See [`sql::Utility::DeclareCursor`].
    pub tables: Vec<Vec<u32>>,
    /// It may go backward.
    pub scroll: bool,
    /// WITH HOLD.
    pub hold: Option<Hold>,
    /// When it was made.
    pub since: i64,
    /// How many the session had made before it; [`Portals::add`] says.
    pub number: u64,
    /// The types of the rows of what EXECUTE or FETCH named when it was made.
    pub promised: Option<Vec<base::Oid>>,
}

impl Portal {
    /// Its statement as something to run; `params` are its parameters.
    pub fn run(&mut self, params: Vec<Datum>, discard: bool) -> Run<'_> {
        Run {
            text: &self.statement.text,
            declared: Some(&self.statement.declared),
            plan: &mut self.plan,
            params,
            formats: &self.formats,
            rest: &[],
            describe: false,
            discard,
        }
    }

    /// The registration of its snapshot, while it has one.
    pub fn pin(&self) -> Option<u64> {
        match self.progress {
            Progress::Suspended { pin, .. } => Some(pin),
            _ => None,
        }
    }
}

/// A session's portals. All but the held ones end with the transaction.
#[derive(Default)]
pub struct Portals {
    unnamed: Option<Box<Portal>>,
    named: FxHashMap<String, Box<Portal>>,
    made: u64,
}

impl Portals {
    /// Adds one; the unnamed one is replaced.
    ///
    /// # Errors
    /// `42P03`.
    pub fn add(&mut self, name: &str, mut portal: Box<Portal>) -> Result<()> {
        portal.number = self.made;
        self.made += 1;
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.check_new(name)?;
            self.named.insert(name.to_owned(), portal);
        }
        Ok(())
    }

    /// `42P03` when the name is taken.
    pub fn check_new(&self, name: &str) -> Result<()> {
        if self.named.contains_key(name) {
            return Err(err!(DUPLICATE_CURSOR, "cursor \"{name}\" already exists"));
        }
        Ok(())
    }

    /// The one with this name.
    pub fn get(&self, name: &str) -> Option<&Portal> {
        match name {
            "" => self.unnamed.as_deref(),
            _ => self.named.get(name).map(|p| &**p),
        }
    }

    /// The names of those that have one.
    pub fn names(&self) -> Vec<String> {
        self.named.keys().cloned().collect()
    }

    /// Takes one out, to run it or to forget it.
    pub fn take(&mut self, name: &str) -> Option<Box<Portal>> {
        match name {
            "" => self.unnamed.take(),
            _ => self.named.remove(name),
        }
    }

    /// Puts one back.
    pub fn put(&mut self, name: &str, portal: Box<Portal>) {
        match name {
            "" => self.unnamed = Some(portal),
            _ => drop(self.named.insert(name.to_owned(), portal)),
        }
    }

    /// The lines that the next use of the unnamed one needs, if there is one.
    pub fn likely(&self) -> Lines {
        self.unnamed.as_deref().map(Lines::of).unwrap_or_default()
    }

    /// Whether one of the transaction's that has begun reads a table.
    pub fn read(&self, table: Oid) -> bool {
        let open = |p: &Portal| {
            matches!(p.progress, Progress::Suspended { .. } | Progress::Kept(_))
                && p.hold != Some(Hold::ForSession)
        };
        let locks = |p: &Portal| p.plan.prepared.locks.iter().any(|(known, _)| *known == table);
        self.iter().any(|(_, p)| open(p) && locks(p))
    }

    /// Cursors that the commit of this transaction has to keep.
    pub fn to_be_held(&self) -> Vec<String> {
        let wanted = |p: &Portal| p.hold == Some(Hold::WithTransaction);
        self.named.iter().filter(|(_, p)| wanted(p)).map(|(n, _)| n.clone()).collect()
    }

    /// The transaction commits.
    pub fn commit(&mut self) {
        for portal in self.named.values_mut().filter(|p| p.hold.is_some()) {
            portal.hold = Some(Hold::ForSession);
        }
        self.end_transaction();
    }

    /// The transaction ends, or its block fails.
    pub fn end_transaction(&mut self) {
        self.unnamed = None;
        if !self.named.is_empty() {
            self.named.retain(|_, p| p.hold == Some(Hold::ForSession));
            self.named.shrink_to_fit();
        }
    }

    /// How many there have been: a savepoint's mark.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Back to a savepoint: those made since are gone, the unnamed one in any case. Returns the
    /// registrations of their snapshots.
    pub fn rollback_to(&mut self, mark: u64) -> Vec<u64> {
        let mut pins: Vec<u64> = self.unnamed.take().and_then(|p| p.pin()).into_iter().collect();
        self.named.retain(|_, p| {
            let stays = p.number < mark || p.hold == Some(Hold::ForSession);
            if !stays {
                pins.extend(p.pin());
            }
            stays
        });
        pins
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.unnamed = None;
        if !self.named.is_empty() {
            self.named = FxHashMap::default();
        }
    }

    /// All, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Portal)> {
        let named = self.named.iter().map(|(n, p)| (n.as_str(), &**p));
        named.chain(self.unnamed.as_deref().map(|p| ("", p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(names: &[&str]) -> Statements {
        let mut all = Statements::default();
        for name in names {
            all.add(statement(name)).unwrap();
        }
        all
    }

    fn statement(name: &str) -> PreparedStatement {
        let plan = Planned { prepared: Arc::new(Prepared::empty(0)), version: 0, epoch: 0 };
        PreparedStatement {
            name: name.into(),
            plan,
            text: name.into(),
            declared: [].into(),
            from_sql: false,
            since: 0,
        }
    }

    /// The statement that is expected after one was used.
    fn expected_after<'a>(all: &'a mut Statements, used: &str) -> &'a str {
        let used = all.get(used).unwrap().clone();
        let lines = all.likely();
        assert_eq!(lines[2], Lines::of_shared(&used));
        let next = all.named.iter().find(|s| Lines::of_shared(&s.0) == lines[1]).unwrap();
        assert_eq!(lines[0], Lines::of(next));
        &next.0.name
    }

    #[test]
    fn statements_are_expected_in_the_order_in_which_they_were_prepared() {
        let mut all = statements(&["a", "b", "c"]);
        assert_eq!(expected_after(&mut all, "b"), "c");
        assert_eq!(expected_after(&mut all, "c"), "a");
        assert_eq!(expected_after(&mut all, "a"), "b");
        assert!(all.remove("c") && !all.remove("c"));
        assert_eq!(expected_after(&mut all, "b"), "a");
        assert!(all.remove("b") && all.remove("a"));
        assert_eq!(all.likely(), [Lines::default(); 3]);
        assert_eq!(all.get("a").err().unwrap().code().as_str(), "26000");
        all.add(statement("d")).unwrap();
        assert_eq!(expected_after(&mut all, "d"), "d");
    }

    #[test]
    fn a_statement_is_found_whatever_is_expected() {
        let mut all = statements(&["a", "b", "c", ""]);
        for name in ["a", "c", "c", "", "b", "a", "b", "c", "a"] {
            assert_eq!(all.get(name).unwrap().name, name);
        }
        assert_eq!(all.add(statement("b")).err().unwrap().code().as_str(), "42P05");
        all.forget_plans();
        for name in ["b", "c", "", "a"] {
            assert_eq!(all.get(name).unwrap().plan.epoch, NEVER_FRESH);
        }
        let mut again = all.get("b").unwrap().clone();
        let plan = Planned { epoch: 7, ..again.plan.clone() };
        all.replan(&mut again, plan);
        assert_eq!(all.get("b").unwrap().plan.epoch, 7);
        assert_eq!(all.named().map(|s| s.name.as_str()).collect::<String>(), "abc");
    }
}
