//! Prepared statements and portals of a session.

use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use base::{Oid, Result, err};
use ecow::EcoString;
use exec::context::Execution;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap};
use sql::Prepared;
use txn::Snapshot;
use types::Datum;

use super::execute::Run;

/// A prepared statement, with the plan last used with it: one piece of memory. A session among many has
/// its statements in no cache when its next message comes, and each piece more would be one more to wait for.
pub struct PreparedStatement {
    /// Its name; empty for the unnamed one.
    pub name: EcoString,
    /// The plan.
    pub plan: Planned,
    /// What it was prepared from.
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

/// A session's prepared statements.
#[derive(Default)]
pub struct Statements {
    unnamed: Option<Arc<PreparedStatement>>,
    named: HashTable<Arc<PreparedStatement>>,
}

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
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
        if statement.name.is_empty() {
            self.unnamed = Some(statement);
            return;
        }
        let same = |s: &Arc<PreparedStatement>| s.name == statement.name;
        match self.named.entry(hash(&statement.name), same, |s| hash(&s.name)) {
            Entry::Occupied(mut known) => *known.get_mut() = statement,
            Entry::Vacant(place) => drop(place.insert(statement)),
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
            _ => self.named.find(hash(name), |s| s.name == name),
        }
    }

    /// The one with this name.
    ///
    /// # Errors
    /// `26000`.
    pub fn get(&self, name: &str) -> Result<&Arc<PreparedStatement>> {
        self.find(name).ok_or_else(|| match name {
            "" => err!(UNDEFINED_PSTATEMENT, "unnamed prepared statement does not exist"),
            _ => err!(UNDEFINED_PSTATEMENT, "prepared statement \"{name}\" does not exist"),
        })
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
            _ => match self.named.find_entry(hash(name), |s| s.name == name) {
                Ok(known) => {
                    known.remove();
                    true
                }
                Err(_) => false,
            },
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Statements::default();
    }

    /// DISCARD PLANS: each is planned anew when it is next run.
    pub fn forget_plans(&mut self) {
        for statement in self.named.iter_mut().chain(&mut self.unnamed) {
            let plan = Planned { epoch: NEVER_FRESH, ..statement.plan.clone() };
            *statement = Arc::new(statement.with_plan(plan));
        }
    }

    /// The named ones.
    pub fn named(&self) -> impl Iterator<Item = &PreparedStatement> {
        self.named.iter().map(|s| &**s)
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
        /// What it sees.
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

/// What becomes of a cursor WITH HOLD.
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
