//! Changes of another server, applied to tables of the same names: what a subscription's worker does in a transaction.
//!
//! Each change is a statement of one row, planned once for the transaction; rows are found by what identifies them, and
//! one that is not there is passed over, as in PostgreSQL.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Result, err};
use catalog::{Defined, Object, Subscription, Table};
use sql::Prepared;
use sql::prepare::prepare;
use txn::LockMode;
use types::Datum;
use types::func::quote_ident;

use crate::context::ExecContext;
use crate::relation_lock::lock;
use crate::spi;

/// A table of the publisher.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteTable {
    /// Its oid there.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// As in `pg_class.relreplident`.
    pub identity: char,
    /// Its columns, and whether they identify rows.
    pub columns: Vec<(String, bool)>,
}

/// A value of the publisher.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// As it was, and not sent.
    Unchanged,
    /// As text.
    Text(String),
}

/// A change of the publisher.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteChange {
    /// INSERT.
    Insert(u32, Vec<Cell>),
    /// UPDATE: the old row, if it was sent, and the new one.
    Update(u32, Option<Vec<Cell>>, Vec<Cell>),
    /// DELETE.
    Delete(u32, Vec<Cell>),
    /// TRUNCATE: the tables, CASCADE, RESTART IDENTITY.
    Truncate(Vec<u32>, bool, bool),
}

/// The statements of one transaction.
pub struct Applier<'r> {
    tables: &'r HashMap<u32, RemoteTable>,
    subscription: Subscription,
    /// The position at which the transaction ends on the publisher.
    end: u64,
    plans: HashMap<(u32, String), Arc<Prepared>>,
}

impl<'r> Applier<'r> {
    /// For a transaction that ends at a position of the publisher's log.
    pub fn new(
        tables: &'r HashMap<u32, RemoteTable>,
        subscription: &Subscription,
        end: u64,
    ) -> Applier<'r> {
        Applier { tables, subscription: subscription.clone(), end, plans: HashMap::new() }
    }

    /// Applies a change.
    ///
    /// # Errors
    /// `55000` for tables and columns that are not here; those of the statements.
    pub fn apply(&mut self, change: &RemoteChange, cx: &mut ExecContext<'_>) -> Result<()> {
        sched::check_interrupts()?;
        match change {
            RemoteChange::Insert(oid, new) => {
                let Some((remote, table)) = self.open(*oid, cx)? else { return Ok(()) };
                insert_row(&mut self.plans, *oid, &remote.columns, &table, new, cx)
            }
            RemoteChange::Update(oid, old, new) => {
                let Some((remote, table)) = self.open(*oid, cx)? else { return Ok(()) };
                self.change(remote, &table, old.as_deref().unwrap_or(new), Some(new), cx)
            }
            RemoteChange::Delete(oid, old) => {
                let Some((remote, table)) = self.open(*oid, cx)? else { return Ok(()) };
                self.change(remote, &table, old, None, cx)
            }
            RemoteChange::Truncate(oids, cascade, restart) => {
                let mut names = Vec::new();
                for oid in oids {
                    if let Some((_, table)) = self.open(*oid, cx)? {
                        names.push(spi::qualified(&cx.catalog_tx.view(), &table));
                    }
                }
                if names.is_empty() {
                    return Ok(());
                }
                let restart = if *restart { " RESTART IDENTITY" } else { "" };
                let cascade = if *cascade { " CASCADE" } else { "" };
                let text = format!("TRUNCATE {}{restart}{cascade}", names.join(", "));
                spi::statement_as(&text, &spi::As { trusted: true, ..spi::As::default() }, cx)
            }
        }
    }

    /// The table for a change; None: what it had by then has been copied, or it is not the subscription's yet.
    fn open(
        &self,
        oid: u32,
        cx: &mut ExecContext<'_>,
    ) -> Result<Option<(&'r RemoteTable, Arc<Table>)>> {
        let Some(remote) = self.tables.get(&oid) else {
            return Err(err!(
                PROTOCOL_VIOLATION,
                "no relation map entry for remote relation ID {oid}"
            ));
        };
        let table = local(remote, cx)?;
        let known = self.subscription.tables.iter().find(|t| t.table == table.oid);
        let applies = match known {
            Some(t) if t.state == 'r' => true,
            Some(t) if t.state == 's' => t.lsn.is_none_or(|lsn| lsn < self.end),
            _ => false,
        };
        if !applies {
            return Ok(None);
        }
        lock(cx, table.oid, LockMode::RowExclusive)?;
        Ok(Some((remote, table)))
    }

    /// UPDATE or DELETE of the row that `old` identifies.
    fn change(
        &mut self,
        remote: &RemoteTable,
        table: &Arc<Table>,
        old: &[Cell],
        new: Option<&Vec<Cell>>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let view = cx.catalog_tx.view();
        let name = spi::qualified(&view, table);
        let own: Vec<String> = view
            .identity_columns(table)
            .iter()
            .map(|n| table.columns[usize::from(*n) - 1].name.clone())
            .collect();
        let sent = |n: usize| !matches!(old.get(n), None | Some(Cell::Unchanged));
        let by_own = !own.is_empty()
            && own.iter().all(|name| {
                let at = remote.columns.iter().position(|(c, _)| c == name);
                at.is_some_and(|n| sent(n) && (remote.identity == 'f' || remote.columns[n].1))
            });
        let is_key = |n: usize| match by_own {
            true => own.contains(&remote.columns[n].0),
            false => remote.identity == 'f' || remote.columns[n].1,
        };
        let mut values: Vec<&Cell> = Vec::new();
        let mut set = Vec::new();
        if let Some(new) = new {
            for (n, cell) in new.iter().enumerate() {
                let Some((column, _)) = remote.columns.get(n) else { continue };
                if *cell != Cell::Unchanged {
                    values.push(cell);
                    set.push(format!("{} = ${}", quote_ident(column), values.len()));
                }
            }
            if set.is_empty() {
                return Ok(());
            }
        }
        let mut conditions = Vec::new();
        for (n, cell) in old.iter().enumerate() {
            let Some((column, _)) = remote.columns.get(n) else { continue };
            if !is_key(n) || *cell == Cell::Unchanged {
                continue;
            }
            let column = quote_ident(column);
            if *cell == Cell::Null {
                conditions.push(format!("{column} IS NULL"));
            } else {
                values.push(cell);
                conditions.push(format!("{column} = ${}", values.len()));
            }
        }
        if conditions.is_empty() {
            return Ok(());
        }
        let found = conditions.join(" AND ");
        // Without a key, one of the rows that are alike.
        let found = match by_own {
            true => found,
            false if table.is_partitioned() => found,
            false => format!("ctid = (SELECT ctid FROM {name} WHERE {found} LIMIT 1)"),
        };
        let text = match new {
            Some(_) => format!("UPDATE {name} SET {} WHERE {found}", set.join(", ")),
            None => format!("DELETE FROM {name} WHERE {found}"),
        };
        run(&mut self.plans, remote.oid, text, &values, cx)
    }
}

/// The table of the same name.
///
/// # Errors
/// `55000` when it or a column is not here.
pub fn local(remote: &RemoteTable, cx: &mut ExecContext<'_>) -> Result<Arc<Table>> {
    let view = cx.catalog_tx.view();
    let schema = if remote.schema.is_empty() { "pg_catalog" } else { &remote.schema };
    let found = view.expect_table(&[], Some(schema), &remote.name).map_err(|_| {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "logical replication target relation \"{schema}.{}\" does not exist",
            remote.name
        )
    })?;
    let missing: Vec<String> = remote
        .columns
        .iter()
        .filter(|(name, _)| found.column(name).is_none())
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let word = if missing.len() == 1 { "column" } else { "columns" };
    Err(err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "logical replication target relation \"{schema}.{}\" is missing replicated {word}: {}",
        remote.name,
        missing.join(", ")
    ))
}

/// Inserts a row of these columns.
fn insert_row(
    plans: &mut HashMap<(u32, String), Arc<Prepared>>,
    oid: u32,
    columns: &[(String, bool)],
    table: &Table,
    new: &[Cell],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let name = spi::qualified(&cx.catalog_tx.view(), table);
    let names: Vec<String> = columns.iter().map(|(c, _)| quote_ident(c)).collect();
    let places: Vec<String> = (1..=names.len()).map(|n| format!("${n}")).collect();
    let text = match names.is_empty() {
        true => format!("INSERT INTO {name} DEFAULT VALUES"),
        false => format!(
            "INSERT INTO {name} ({}) OVERRIDING SYSTEM VALUE VALUES ({})",
            names.join(", "),
            places.join(", ")
        ),
    };
    let values: Vec<&Cell> = new.iter().take(names.len()).collect();
    run(plans, oid, text, &values, cx)
}

fn run(
    plans: &mut HashMap<(u32, String), Arc<Prepared>>,
    oid: u32,
    text: String,
    values: &[&Cell],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let key = (oid, text);
    let prepared = match plans.get(&key) {
        Some(known) => known.clone(),
        None => {
            let own = spi::As { trusted: true, ..spi::As::default() };
            let made = spi::with_context_as(cx, &own, |context| {
                Ok(Arc::new(prepare(&key.1, &[], context, None)?.0))
            })?;
            plans.insert(key, made.clone());
            made
        }
    };
    let format = cx.format.clone();
    let read = |(ty, cell): (&base::Oid, &&Cell)| match cell {
        Cell::Text(text) => types::io::input(*ty, -1, text, &format),
        Cell::Null | Cell::Unchanged => Ok(Datum::Null),
    };
    let params: Result<Vec<Datum>> = prepared.params.iter().zip(values).map(read).collect();
    let params = params?;
    spi::run_with(&prepared, &params, cx, &mut |_| Ok(()))?;
    cx.tx.next_command();
    Ok(())
}

/// Rows of an initial copy.
pub struct Copying {
    columns: Vec<(String, bool)>,
    table: Arc<Table>,
    plans: HashMap<(u32, String), Arc<Prepared>>,
}

impl Copying {
    /// Into the table of a publisher's one, locked.
    ///
    /// # Errors
    /// As [`local`].
    pub fn begin(remote: &RemoteTable, cx: &mut ExecContext<'_>) -> Result<Copying> {
        let table = local(remote, cx)?;
        lock(cx, table.oid, LockMode::RowExclusive)?;
        Ok(Copying { columns: remote.columns.clone(), table, plans: HashMap::new() })
    }

    /// Adds a line of COPY's text format.
    ///
    /// # Errors
    /// Those of the values and of INSERT.
    pub fn line(&mut self, line: &[u8], cx: &mut ExecContext<'_>) -> Result<()> {
        sched::check_interrupts()?;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let cells: Vec<Cell> = match self.columns.is_empty() {
            true => Vec::new(),
            false => line.split(|b| *b == b'\t').map(cell).collect(),
        };
        let (plans, table) = (&mut self.plans, self.table.clone());
        insert_row(plans, 0, &self.columns, &table, &cells, cx)
    }
}

/// A field of COPY's text format.
fn cell(field: &[u8]) -> Cell {
    if field == b"\\N" {
        return Cell::Null;
    }
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(b) = bytes.next() {
        if *b != b'\\' {
            out.push(*b);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 11,
            Some(other) => *other,
            None => b'\\',
        });
    }
    Cell::Text(String::from_utf8_lossy(&out).into_owned())
}

/// Changes a subscription's object; nothing happens when it is gone.
///
/// # Errors
/// Those of locking and of the catalog.
pub fn change_subscription(
    oid: u32,
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&mut Subscription),
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(Defined::Subscription(known)) = view.defined_by_oid(oid).map(|d| &**d) else {
        return Ok(());
    };
    let mut changed = known.clone();
    f(&mut changed);
    cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(Defined::Subscription(changed))))
}
