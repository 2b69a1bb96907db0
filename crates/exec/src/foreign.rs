//! The seam of foreign-data wrappers: what the code behind a wrapper does.
//!
//! ```text
//! planner ── sql::foreign::ships: which conditions the server takes ──► Node::ForeignScan { scan, remote, code }
//! ops::foreign_scan ── Wrapper::scan ──► ForeignRows::next, a batch of rows at a time
//! modify::foreign ──── Wrapper::modify ► ForeignChange::insert, update, delete, finish
//! IMPORT FOREIGN SCHEMA ── Wrapper::import ──► CREATE FOREIGN TABLE statements
//! ```
//!
//! A wrapper is known by its handler's `library/symbol` and registered when the server starts. A scan that begins
//! again is a new one: the remote conditions may have other values in them. What a wrapper keeps for a session
//! (connections) is a [`SessionPart`], which hears how transactions end.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use base::{Result, err};
use catalog::{ForeignServer, Snapshot, Table};
use sql::foreign::Import;
use sql::plan::{ForeignQuery, ForeignScan, JoinKind, Modify, RemoteRel};
use types::{Datum, FormatContext};

use crate::context::ExecContext;
use crate::run::Run;

/// The code behind a foreign-data wrapper.
pub trait Wrapper: Sync {
    /// Begins a scan.
    ///
    /// # Errors
    /// The wrapper's own.
    fn scan(&self, scan: &ForeignScan, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>>;

    /// Begins a query over several tables of a server.
    ///
    /// # Errors
    /// The wrapper's own.
    fn query(&self, _query: &ForeignQuery, _run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
        Err(base::Error::internal("a wrapper without queries"))
    }

    /// Lines of EXPLAIN VERBOSE for such a query: names and texts.
    fn explain_query(
        &self,
        _query: &ForeignQuery,
        _about: &About<'_>,
    ) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Lines of EXPLAIN for a scan: names and texts.
    fn explain(&self, _scan: &ForeignScan, _about: &About<'_>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Begins a change of a table's rows.
    ///
    /// # Errors
    /// `0A000` for tables that can't be changed; the wrapper's own.
    fn modify(&self, modify: &Modify, _run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignChange>> {
        let (way, table) = (way_of(modify), &modify.table.name);
        Err(err!(FEATURE_NOT_SUPPORTED, "cannot {way} foreign table \"{table}\""))
    }

    /// Empties tables of one server; `cascade` and `restart` as TRUNCATE says.
    ///
    /// # Errors
    /// `42809` for tables that can't be emptied; the wrapper's own.
    fn truncate(
        &self,
        table: &Table,
        _cascade: bool,
        _restart: bool,
        _cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        Err(err!(WRONG_OBJECT_TYPE, "cannot truncate foreign table \"{}\"", table.name))
    }

    /// The statements that IMPORT FOREIGN SCHEMA runs: CREATE FOREIGN TABLE without the local schema.
    ///
    /// # Errors
    /// `HV00J`, and the wrapper's own.
    fn import(
        &self,
        _import: &Import,
        server: &ForeignServer,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<String>> {
        let view = cx.catalog_tx.view();
        let name = view.wrapper(server.wrapper).map_or("", |w| w.name.as_str());
        Err(err!(
            FDW_NO_SCHEMAS,
            "foreign-data wrapper \"{name}\" does not support IMPORT FOREIGN SCHEMA"
        ))
    }
}

fn way_of(modify: &Modify) -> &'static str {
    use sql::plan::ModifyAction as A;
    match modify.action {
        A::Insert { .. } => "insert into",
        A::Update { .. } | A::Merge { .. } => "update",
        A::Delete { .. } => "delete from",
    }
}

/// Options of an EXPLAIN.
pub struct About<'a> {
    /// VERBOSE.
    pub verbose: bool,
    /// With VERBOSE: the names of schemas.
    pub catalog: Option<&'a Snapshot>,
    /// For constants.
    pub format: &'a FormatContext,
}

impl About<'_> {
    /// The name of a table's schema, with VERBOSE.
    pub fn schema_of(&self, table: &Table) -> Option<String> {
        Some(self.catalog?.schema(table.schema)?.name.clone())
    }
}

/// The tables of a query and how they come together, as EXPLAIN says it.
pub fn relations(rel: &RemoteRel, about: &About<'_>) -> String {
    match rel {
        RemoteRel::Table { table, alias, .. } => {
            let name = types::func::quote_ident(&table.name);
            let name = match about.schema_of(table) {
                Some(schema) => format!("{}.{name}", types::func::quote_ident(&schema)),
                None => name,
            };
            match alias {
                Some(alias) => format!("{name} {}", types::func::quote_ident(alias)),
                None => name,
            }
        }
        RemoteRel::Join { left, right, kind, .. } => {
            let word = match kind {
                JoinKind::Left => "LEFT",
                JoinKind::Right => "RIGHT",
                JoinKind::Full => "FULL",
                _ => "INNER",
            };
            let (left, right) = (relations(left, about), relations(right, about));
            format!("({left}) {word} JOIN ({right})")
        }
        RemoteRel::Aggregate { input, .. } => {
            format!("Aggregate on ({})", relations(input, about))
        }
        RemoteRel::Filter { input, .. }
        | RemoteRel::Project { input, .. }
        | RemoteRel::Sort { input, .. }
        | RemoteRel::Limit { input, .. } => relations(input, about),
    }
}

/// Lines of EXPLAIN for a query.
pub fn explain_query(query: &ForeignQuery, about: &About<'_>) -> Vec<(&'static str, String)> {
    let mut out = vec![("Relations", relations(&query.rel, about))];
    if let Ok(wrapper) = find(&query.code) {
        out.extend(wrapper.explain_query(query, about));
    }
    out
}

/// A scan on its way.
pub trait ForeignRows: Send {
    /// The next rows, each with the scan's columns; None at the end. Some hundred at a time are well.
    ///
    /// # Errors
    /// The wrapper's own.
    fn next(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Vec<Vec<Datum>>>>;
}

/// A change of rows on its way. Rows are in table order.
pub trait ForeignChange: Send {
    /// Inserts rows; gives them back as they are on the server (with `returning`), or none.
    ///
    /// # Errors
    /// The wrapper's own.
    fn insert(&mut self, rows: Vec<Vec<Datum>>, run: &mut Run<'_, '_>) -> Result<Vec<Vec<Datum>>>;

    /// Changes the row at a place to new values; the row as it is on the server, None: it is not there.
    ///
    /// # Errors
    /// The wrapper's own.
    fn update(
        &mut self,
        place: &Datum,
        row: Vec<Datum>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Vec<Datum>>>;

    /// Deletes the row at a place; false: it is not there.
    ///
    /// # Errors
    /// The wrapper's own.
    fn delete(&mut self, place: &Datum, run: &mut Run<'_, '_>) -> Result<bool>;
}

static WRAPPERS: Mutex<Vec<(&str, &'static dyn Wrapper)>> = Mutex::new(Vec::new());

/// Makes a wrapper's code known under its handler's `library/symbol`, when the server starts.
pub fn register(code: &'static str, wrapper: &'static dyn Wrapper) {
    WRAPPERS.lock().unwrap_or_else(PoisonError::into_inner).push((code, wrapper));
}

/// The code by that name.
///
/// # Errors
/// `55000` when it is not there.
pub fn find(code: &str) -> Result<&'static dyn Wrapper> {
    let all = WRAPPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter().find(|(known, _)| *known == code).map(|(_, wrapper)| *wrapper);
    found.ok_or_else(|| {
        err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "there is no foreign-data wrapper behind {code}")
    })
}

/// Lines of EXPLAIN for a scan, beside its table and filter.
pub fn explain(scan: &ForeignScan, about: &About<'_>) -> Vec<(&'static str, String)> {
    find(&scan.code).map_or_else(|_| Vec::new(), |wrapper| wrapper.explain(scan, about))
}

/// The server of a foreign table.
///
/// # Errors
/// `42809` for another table.
pub fn server_of(view: &Snapshot, table: &Table) -> Result<ForeignServer> {
    let server = table.foreign.as_ref().and_then(|f| view.foreign_server(f.server));
    server
        .cloned()
        .ok_or_else(|| err!(WRONG_OBJECT_TYPE, "\"{}\" is not a foreign table", table.name))
}

/// An option's value.
pub fn option<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// A wrapper's state in a session, such as its connections.
pub trait SessionPart: Send {
    /// The transaction is about to commit: what can fail happens now.
    ///
    /// # Errors
    /// Those of the servers: the transaction rolls back.
    fn before_commit(&mut self) -> Result<()> {
        Ok(())
    }
    /// The transaction is to be prepared for a commit by somebody else.
    ///
    /// # Errors
    /// `0A000` when that can't be done.
    fn before_prepare(&mut self) -> Result<()> {
        Ok(())
    }
    /// The transaction has ended; `committed` or rolled back.
    fn ended(&mut self, committed: bool);
    /// A subtransaction has been rolled back: `depth` are left, 0 being none.
    fn rolled_back(&mut self, _depth: usize) {}
    /// A subtransaction has been merged into the one around it: `depth` are left.
    fn released(&mut self, _depth: usize) {}
    /// For the wrapper, which knows its own.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The state of all wrappers in a session, by wrapper.
#[derive(Default)]
pub struct SessionParts(Vec<(&'static str, Box<dyn SessionPart>)>);

impl SessionParts {
    /// A wrapper's part, made at its first use.
    pub fn of<T: SessionPart + Default + 'static>(
        &mut self,
        wrapper: &'static str,
    ) -> Option<&mut T> {
        let at = match self.0.iter().position(|(known, _)| *known == wrapper) {
            Some(at) => at,
            None => {
                self.0.push((wrapper, Box::new(T::default())));
                self.0.len() - 1
            }
        };
        self.0[at].1.as_any().downcast_mut()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// See [`SessionPart::before_commit`].
    ///
    /// # Errors
    /// The first part's that fails.
    pub fn before_commit(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|(_, part)| part.before_commit())
    }

    /// See [`SessionPart::before_prepare`].
    ///
    /// # Errors
    /// The first part's that fails.
    pub fn before_prepare(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|(_, part)| part.before_prepare())
    }

    /// See [`SessionPart::ended`].
    pub fn ended(&mut self, committed: bool) {
        self.0.iter_mut().for_each(|(_, part)| part.ended(committed));
    }

    /// See [`SessionPart::rolled_back`].
    pub fn rolled_back(&mut self, depth: usize) {
        self.0.iter_mut().for_each(|(_, part)| part.rolled_back(depth));
    }

    /// See [`SessionPart::released`].
    pub fn released(&mut self, depth: usize) {
        self.0.iter_mut().for_each(|(_, part)| part.released(depth));
    }
}
