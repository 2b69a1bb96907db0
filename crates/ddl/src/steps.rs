//! Statements that commit while they go on: CREATE INDEX, DROP INDEX, REINDEX and DETACH CONCURRENTLY, and
//! REINDEX of a whole schema or database. Each step is a transaction; the session commits it and waits
//! before the next ([`Job::pause`]).
//!
//! ```text
//! CREATE   listed, empty, not valid │ writers that don't know it end │ rows are added, valid
//! DROP     not valid                │ all who may read it end        │ no longer listed
//!                                   │ all who may write to it end    │ gone
//! DETACH   not found in its table    │ all who may have found it end  │ a table of its own
//! REINDEX  CREATE of a second one; the two change files; DROP of the second one with the old files
//! ```
//!
//! * From the first commit on, every statement that begins to write keeps the index up to date, and its
//!   updates start a new version chain when the key changes. Those that began before hold a lock on
//!   the table, and are waited for. So when rows are added, each row of the snapshot has one key in its
//!   chain, and rows that the snapshot does not see are put in by whoever writes them.
//! * Readers with snapshots older than the last commit plan without the index (`catalog::Index::since`):
//!   they need not be waited for.
//! * While anybody may read an index that is about to go, writers keep it up to date: serializable
//!   transactions find each other there. What was read in it counts as read in the table from then on.
//! * A lock of the session, not of its transactions, keeps other definitions away from the table all the
//!   while. A step that fails leaves the index not valid: it is kept up to date, never read, and DROP
//!   INDEX or REINDEX deals with it.

use std::collections::VecDeque;

use base::{Oid, RelId, Result, err};
use catalog::{AclKind, Index, Object, Table};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{Name, Reindex, ReindexWhat, Utility};
use txn::{LockMode, LockOwner, LockTag, LockWait};

use super::maintain::verbose::{Meter, say};
use super::rewrite::rebuild_index;
use super::{create_index, drop, index_build, lock, name, notice, open_if, partition, refresh};
use crate::remove::remove_index;

/// A statement on its way; see the module's documentation.
pub struct Job {
    steps: VecDeque<(Option<(u32, LockMode)>, Step)>,
    /// Tables that the session has locked.
    locked: Vec<LockTag>,
    verbose: bool,
}

enum Step {
    /// Adds the rows to a new index, which is valid then.
    Fill(u32),
    /// Adds the rows to indexes that are to take the places of others; the first of each pair is the old
    /// one. They change files.
    Replace(Vec<(u32, u32)>),
    /// Takes indexes that nobody reads off their table's list.
    Retire(Vec<u32>),
    /// Takes indexes away that no table lists any more.
    Remove(Vec<u32>),
    /// Builds a table's indexes again, concurrently or not.
    Reindex(u32, bool),
    /// Takes a partition out of its table, which nobody finds there any more.
    Detach(u32, u32),
}

/// The session's own lock on each table.
const MODE: LockMode = LockMode::ShareUpdateExclusive;

impl Job {
    /// The statement's first transaction.
    ///
    /// # Errors
    /// The statement's.
    pub fn begin(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<Job> {
        let mut job = Job { steps: VecDeque::new(), locked: Vec::new(), verbose: false };
        match utility {
            Utility::CreateIndex { .. } => {
                if let Some(index) = create_index::begin_concurrently(utility, cx)? {
                    let table = table_of(cx, index)?;
                    job.steps.push_back((Some((table, LockMode::Share)), Step::Fill(index)));
                    job.keep(table, cx)?;
                }
            }
            Utility::Drop { names, if_exists, cascade, .. } => {
                job.begin_drop(names, *if_exists, *cascade, cx)?;
            }
            Utility::Reindex(reindex) => job.begin_reindex(reindex, cx)?,
            Utility::AlterTable { table, steps, .. } => job.begin_detach(table, steps, cx)?,
            _ => return Err(base::Error::internal("not a statement of several transactions")),
        }
        Ok(job)
    }

    /// The table and mode whose holders are waited for after the commit, if any; None: the statement is done.
    pub fn pause(&self) -> Option<Option<(Oid, LockMode)>> {
        let (pause, _) = self.steps.front()?;
        Some(pause.map(|(table, mode)| (Oid(table), mode)))
    }

    /// The next transaction.
    ///
    /// # Errors
    /// The statement's.
    pub fn step(&mut self, cx: &mut ExecContext<'_>) -> Result<()> {
        match self.steps.pop_front() {
            Some((_, Step::Fill(index))) => fill(cx, index),
            Some((_, Step::Replace(pairs))) => self.replace(&pairs, cx),
            Some((_, Step::Retire(indexes))) => {
                indexes.iter().try_for_each(|index| retire(cx, *index))
            }
            Some((_, Step::Remove(indexes))) => {
                indexes.iter().try_for_each(|index| remove_index(cx, *index))
            }
            Some((_, Step::Detach(parent, id))) => partition::finish_detach(cx, parent, id),
            Some((_, Step::Reindex(table, concurrently))) => {
                self.reindex(table, concurrently, false, cx)
            }
            None => Ok(()),
        }
    }

    /// Gives the session's locks up: at the statement's end, however it ends.
    pub fn release(&mut self, owner: &LockOwner) {
        for tag in self.locked.drain(..) {
            owner.manager().locks.unlock_session(owner, tag, MODE);
        }
    }

    /// Keeps a table's lock, which the transaction has, beyond its end.
    fn keep(&mut self, table: u32, cx: &ExecContext<'_>) -> Result<()> {
        let locks = &cx.tx.manager().locks;
        let tag = LockTag::Relation(Oid(cx.database.1), Oid(table));
        locks.lock_session(cx.tx.locks(), tag, MODE, LockWait::Block)?;
        self.locked.push(tag);
        Ok(())
    }

    fn begin_drop(
        &mut self,
        names: &[Name],
        if_exists: bool,
        cascade: bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let [name] = names else {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "DROP INDEX CONCURRENTLY does not support dropping multiple objects"
            );
        };
        if cascade {
            base::bail!(FEATURE_NOT_SUPPORTED, "DROP INDEX CONCURRENTLY does not support CASCADE");
        }
        let Some(id) = drop::index_to_drop(name, if_exists, cx)? else { return Ok(()) };
        let table = table_of(cx, id)?;
        if let Some(index) = cx.catalog_tx.view().index(id)
            && cx.catalog_tx.view().table(table).is_some_and(|t| t.is_partitioned())
        {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot drop partitioned index \"{}\" concurrently",
                index.name
            );
        }
        if Oid(table).is_temporary() {
            retire(cx, id)?;
            return remove_index(cx, id);
        }
        let index = index(cx, id)?;
        cx.catalog_tx.put(cx.tx, Object::Index(Index { invalid: true, ..index }))?;
        self.push_drop(table, vec![id]);
        self.keep(table, cx)
    }

    /// The steps that take away indexes which are not valid any more.
    fn push_drop(&mut self, table: u32, indexes: Vec<u32>) {
        let pause = Some((table, LockMode::AccessExclusive));
        self.steps.push_front((pause, Step::Remove(indexes.clone())));
        self.steps.push_front((pause, Step::Retire(indexes)));
    }

    fn begin_detach(
        &mut self,
        table: &Name,
        steps: &[sql::utility::AlterTable],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        use sql::partition::PartitionCommand;
        let [sql::utility::AlterTable::Partition(PartitionCommand::Detach { name, .. })] = steps
        else {
            return Err(base::Error::internal("a DETACH CONCURRENTLY beside other steps"));
        };
        let (parent, part) = partition::begin_detach(cx, table, name)?;
        let pause = Some((parent, LockMode::AccessExclusive));
        self.steps.push_back((pause, Step::Detach(parent, part)));
        self.keep(parent, cx)
    }

    fn begin_reindex(&mut self, reindex: &Reindex, cx: &mut ExecContext<'_>) -> Result<()> {
        self.verbose = reindex.verbose;
        let concurrently = reindex.concurrently;
        let tables = match &reindex.what {
            ReindexWhat::Index(name) => {
                let (table, index) = open_index(cx, name, MODE)?;
                if table.is_temporary() {
                    return one(cx, &table, &index, self.verbose);
                }
                if !index.exclude.is_empty() {
                    base::bail!(
                        FEATURE_NOT_SUPPORTED,
                        "concurrent index creation for exclusion constraints is not supported"
                    );
                }
                return self.begin_replacing(&table, vec![index], cx);
            }
            ReindexWhat::Table(name) => {
                expect_table(cx, name)?;
                let table = open_if(cx, name, MODE, check_table)?;
                if table.is_partitioned() {
                    let below = crate::inherit::descendants(cx, table.oid, LockMode::AccessShare)?;
                    for id in below {
                        if !refresh(cx, id)?.is_partitioned() {
                            self.steps.push_back((None, Step::Reindex(id, concurrently)));
                        }
                    }
                    return Ok(());
                }
                return self.reindex(table.oid, concurrently, true, cx);
            }
            ReindexWhat::Schema(schema) => {
                let view = cx.catalog_tx.view();
                let Some(found) = view.schema_named(schema).cloned() else {
                    base::bail!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist");
                };
                rights::require_owner(cx, AclKind::Schema, found.oid, "schema", schema)?;
                if concurrently && found.oid == catalog::object::ids::PG_CATALOG {
                    let message = "cannot reindex system catalogs concurrently, skipping all";
                    let warning = base::Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, message);
                    cx.hooks.notice("WARNING", warning);
                    return Ok(());
                }
                view.tables().filter(|t| t.schema == found.oid && t.rel != 0).cloned().collect()
            }
            ReindexWhat::Database(name) | ReindexWhat::System(name) => {
                let (database, id) = cx.database;
                if concurrently && matches!(reindex.what, ReindexWhat::System(_)) {
                    base::bail!(
                        FEATURE_NOT_SUPPORTED,
                        "cannot reindex system catalogs concurrently"
                    );
                }
                if name != database {
                    base::bail!(
                        FEATURE_NOT_SUPPORTED,
                        "can only reindex the currently open database"
                    );
                }
                rights::require_owner(cx, AclKind::Database, id, "database", name)?;
                if let ReindexWhat::System(_) = reindex.what {
                    // They have no indexes.
                    return Ok(());
                }
                cx.catalog_tx.view().tables().filter(|t| t.rel != 0).cloned().collect::<Vec<_>>()
            }
        };
        for table in tables {
            self.steps.push_back((None, Step::Reindex(table.oid, concurrently)));
        }
        Ok(())
    }

    /// One table's indexes, as a step of its own; it may be gone by now. `named`: the statement names
    /// the table.
    fn reindex(
        &mut self,
        table: u32,
        concurrently: bool,
        named: bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let concurrently = concurrently && !Oid(table).is_temporary();
        lock(cx, table, if concurrently { MODE } else { LockMode::AccessExclusive })?;
        let Ok(table) = refresh(cx, table) else { return Ok(()) };
        let indexes = cx.catalog_tx.view().indexes_of(&table);
        if !concurrently {
            return all(cx, &table, self.verbose, named);
        }
        let mut usable = Vec::new();
        for index in indexes {
            if index.invalid || !index.exclude.is_empty() {
                let view = cx.catalog_tx.view();
                let schema = view.schema(index.schema).map_or("", |s| s.name.as_str());
                let what = if index.invalid { "invalid" } else { "exclusion constraint" };
                let message = format!(
                    "cannot reindex {what} index \"{schema}.{}\" concurrently, skipping",
                    index.name
                );
                let warning = base::Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, message);
                cx.hooks.notice("WARNING", warning);
                continue;
            }
            usable.push(Index::clone(&index));
        }
        if usable.is_empty() && named {
            let message = format!(
                "table \"{}\" has no indexes that can be reindexed concurrently",
                table.name
            );
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        }
        if usable.is_empty() {
            return Ok(());
        }
        self.begin_replacing(&table, usable, cx)
    }

    /// Makes an empty index beside each of these, under a name of its own.
    fn begin_replacing(
        &mut self,
        table: &Table,
        indexes: Vec<Index>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let mut pairs = Vec::with_capacity(indexes.len());
        for old in indexes {
            if old.deferrable {
                // Two of them would not agree on when a key is there twice.
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot reindex index \"{}\" of a deferrable constraint concurrently",
                    old.name
                );
            }
            let view = cx.catalog_tx.view();
            let taken = |name: &str| view.relation_in(table.schema, name).is_some();
            let name = name::choose(&old.name, &[], "ccnew", &taken);
            name::reserve_relation(cx, table.schema, &name)?;
            let id = old.oid;
            let new = Index { name, primary: false, ..old };
            pairs.push((id, create_index::make_empty(cx, table, new)?));
        }
        self.steps.push_front((Some((table.oid, LockMode::Share)), Step::Replace(pairs)));
        self.keep(table.oid, cx)
    }

    /// The second half of REINDEX CONCURRENTLY: the new index's files become the old one's, and the other
    /// way round; the new one goes with the old files.
    fn replace(&mut self, pairs: &[(u32, u32)], cx: &mut ExecContext<'_>) -> Result<()> {
        let meter = Meter::new();
        let mut table = 0;
        for (old, new) in pairs {
            let (first, second) = (index(cx, *old)?, index(cx, *new)?);
            table = first.table;
            let known = refresh(cx, table)?;
            index_build::fill_beside_writers(cx, &known, &second)?;
        }
        for (old, new) in pairs {
            let (mut first, mut second) = (index(cx, *old)?, index(cx, *new)?);
            std::mem::swap(&mut first.rel, &mut second.rel);
            first.invalid = false;
            if self.verbose {
                say_built(cx, &first, &meter);
            }
            cx.catalog_tx.put(cx.tx, Object::Index(first))?;
            cx.catalog_tx.put(cx.tx, Object::Index(second))?;
        }
        self.push_drop(table, pairs.iter().map(|(_, new)| *new).collect());
        Ok(())
    }
}

/// REINDEX INDEX and TABLE, in one transaction.
///
/// # Errors
/// `42P01`, `42809`, `42501`, `23505`; I/O.
pub fn reindex(reindex: &Reindex, cx: &mut ExecContext<'_>) -> Result<()> {
    match &reindex.what {
        ReindexWhat::Index(name) => {
            let (table, index) = open_index(cx, name, LockMode::AccessExclusive)?;
            super::expect_checked(cx, &table, "REINDEX INDEX")?;
            one(cx, &table, &index, reindex.verbose)
        }
        ReindexWhat::Table(name) => {
            expect_table(cx, name)?;
            let table = open_if(cx, name, LockMode::AccessExclusive, check_table)?;
            super::expect_checked(cx, &table, "REINDEX TABLE")?;
            all(cx, &table, reindex.verbose, true)
        }
        _ => Err(base::Error::internal("a REINDEX of several transactions in one")),
    }
}

/// `42809` for what is no table at all.
fn expect_table(cx: &mut ExecContext<'_>, name: &Name) -> Result<()> {
    use catalog::snapshot::Relation;
    let view = cx.catalog_tx.view();
    match view.relation(cx.search_path, name.schema.as_deref(), &name.name) {
        Some(Relation::Index(_) | Relation::Sequence(_)) => {
            Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", name.name))
        }
        _ => Ok(()),
    }
}

fn check_table(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    if table.rel == 0 && !table.is_partitioned() {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", table.name);
    }
    rights::require_table_owner(cx, table)
}

/// All indexes of a table that nobody else uses.
fn all(cx: &mut ExecContext<'_>, table: &Table, verbose: bool, named: bool) -> Result<()> {
    let indexes = cx.catalog_tx.view().indexes_of(table);
    if indexes.is_empty() && named {
        let message = format!("table \"{}\" has no indexes to reindex", table.name);
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    }
    indexes.iter().try_for_each(|index| one(cx, table, index, verbose))
}

fn one(cx: &mut ExecContext<'_>, table: &Table, index: &Index, verbose: bool) -> Result<()> {
    let meter = Meter::new();
    rebuild_index(cx, table, index)?;
    if verbose {
        say_built(cx, index, &meter);
    }
    Ok(())
}

fn say_built(cx: &mut ExecContext<'_>, index: &Index, meter: &Meter) {
    let message = format!("index \"{}\" was reindexed", index.name);
    let info = base::Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message);
    say(cx, info.detail(meter.times()));
}

/// The index with this name and its table, which is locked.
fn open_index(cx: &mut ExecContext<'_>, name: &Name, mode: LockMode) -> Result<(Table, Index)> {
    use catalog::snapshot::Relation;
    loop {
        let found = |cx: &mut ExecContext<'_>| {
            let view = cx.catalog_tx.view();
            view.relation(cx.search_path, name.schema.as_deref(), &name.name)
        };
        let Some(relation) = found(cx) else {
            let view = cx.catalog_tx.view();
            return Err(view.missing_relation(name.schema.as_deref(), &name.name));
        };
        let Relation::Index(index) = &relation else {
            return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", name.name));
        };
        super::relation::require_owner(cx, &relation)?;
        lock(cx, index.table, mode)?;
        if found(cx).map(|r| r.oid()) == Some(index.oid) {
            return Ok((refresh(cx, index.table)?, self::index(cx, index.oid)?));
        }
    }
}

fn index(cx: &mut ExecContext<'_>, id: u32) -> Result<Index> {
    let view = cx.catalog_tx.view();
    let found = view.index(id).map(|index| Index::clone(index));
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "index with OID {id} does not exist"))
}

fn table_of(cx: &mut ExecContext<'_>, id: u32) -> Result<u32> {
    Ok(index(cx, id)?.table)
}

/// Adds the rows to an index that all writers know by now; readers may use it from the commit on.
fn fill(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let index = index(cx, id)?;
    let table = refresh(cx, index.table)?;
    index_build::fill_beside_writers(cx, &table, &index)?;
    cx.catalog_tx.put(cx.tx, Object::Index(Index { invalid: false, ..index }))
}

/// Takes an index off its table's list: statements that are planned from now on don't know it.
fn retire(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let index = index(cx, id)?;
    let mut table = refresh(cx, index.table)?;
    cx.engine.txn.serial.transfer(RelId(index.rel), RelId(table.rel));
    table.indexes.retain(|i| *i != id);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}
