//! Changes of foreign tables: INSERT of several rows at a time, UPDATE and DELETE of a row by its place.

use base::{Oid, Result, err};
use catalog::{ForeignServer, Table};
use exec::context::ExecContext;
use exec::foreign::{ForeignChange, server_of};
use exec::run::Run;
use sql::plan::{Modify, ModifyAction};
use std::sync::Arc;
use types::Datum;

use crate::client::TextRow;
use crate::connection::connect;
use crate::deparse::{column_name, literal, table_name, value_of};
use crate::scan::table_option;

/// A change on its way.
struct Change {
    table: Arc<Table>,
    server: ForeignServer,
    role: u32,
    /// The table's name there.
    name: String,
    /// Rows in one INSERT.
    batch: usize,
    /// ON CONFLICT DO NOTHING.
    skips: bool,
    /// The columns that an UPDATE sets.
    set: Vec<u16>,
    /// The rows as they are on the server are asked for.
    returning: bool,
}

/// Begins a change.
///
/// # Errors
/// `55000` where an option forbids it.
pub fn begin(modify: &Modify, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignChange>> {
    let view = run.cx.catalog_tx.view();
    let table = modify.table.clone();
    let server = server_of(&view, &table)?;
    let updatable = table_option(&table, &server, "updatable");
    if updatable.and_then(base::settings::parse_bool) == Some(false) {
        let way = match modify.action {
            ModifyAction::Insert { .. } => "inserts",
            ModifyAction::Delete { .. } => "deletes",
            _ => "updates",
        };
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "foreign table \"{}\" does not allow {way}",
            table.name
        ));
    }
    let schema = view.schema(table.schema).map(|s| s.name.clone());
    let name = table_name(&table, schema.as_deref());
    let batch = table_option(&table, &server, "batch_size").and_then(|n| n.trim().parse().ok());
    let (skips, set) = match &modify.action {
        ModifyAction::Insert { conflict, .. } => (conflict.is_some(), Vec::new()),
        ModifyAction::Update { set, .. } => (false, set.iter().map(|(n, _)| *n).collect()),
        _ => (false, Vec::new()),
    };
    let returning = modify.returning.is_some() || !table.triggers.is_empty();
    let role = if modify.role == 0 { run.cx.role } else { modify.role };
    let batch = batch.unwrap_or(1);
    Ok(Box::new(Change { table, server, role, name, batch, skips, set, returning }))
}

/// TRUNCATE.
///
/// # Errors
/// `55000` where an option forbids it.
pub fn truncate(
    table: &Table,
    cascade: bool,
    restart: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let server = server_of(&view, table)?;
    let truncatable = table_option(table, &server, "truncatable");
    if truncatable.and_then(base::settings::parse_bool) == Some(false) {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "foreign table \"{}\" does not allow truncates",
            table.name
        ));
    }
    let schema = view.schema(table.schema).map(|s| s.name.clone());
    let sql = format!(
        "TRUNCATE {} {} IDENTITY {}",
        table_name(table, schema.as_deref()),
        if restart { "RESTART" } else { "CONTINUE" },
        if cascade { "CASCADE" } else { "RESTRICT" }
    );
    let role = cx.role;
    connect(&server, role, cx)?.run(&sql).map(drop)
}

impl Change {
    /// The columns that there are.
    fn columns(&self) -> Vec<u16> {
        self.table.live_columns().map(|(n, _)| n).collect()
    }

    fn value(&self, number: u16, row: &[Datum]) -> Result<String> {
        let column = &self.table.columns[usize::from(number) - 1];
        match column.generated {
            true => Ok("DEFAULT".to_owned()),
            false => literal(&row[usize::from(number) - 1], Oid(column.ty)),
        }
    }

    fn names(&self, numbers: &[u16]) -> String {
        let name = |n: &u16| column_name(&self.table.columns[usize::from(*n) - 1]);
        numbers.iter().map(name).collect::<Vec<String>>().join(", ")
    }

    /// ` RETURNING …`, or nothing.
    fn returning(&self) -> String {
        match self.returning {
            true => format!(" RETURNING {}", self.names(&self.columns())),
            false => String::new(),
        }
    }

    /// A row that came back, in table order.
    fn row(&self, sent: &TextRow, run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
        let mut row = vec![Datum::Null; self.table.columns.len()];
        for (number, text) in self.columns().into_iter().zip(sent) {
            let at = usize::from(number) - 1;
            let column = &self.table.columns[at];
            let ty = (Oid(column.ty), column.typmod);
            row[at] = value_of(text.as_ref(), ty, run.cx.format)?;
        }
        Ok(row)
    }
}

/// A row's place as SQL.
fn place_of(place: &Datum) -> Result<String> {
    literal(place, types::oids::TID)
}

impl ForeignChange for Change {
    fn insert(&mut self, rows: Vec<Vec<Datum>>, run: &mut Run<'_, '_>) -> Result<Vec<Vec<Datum>>> {
        let numbers = self.columns();
        let mut out = Vec::new();
        for part in rows.chunks(self.batch.max(1)) {
            sched::check_interrupts()?;
            let mut lists = Vec::with_capacity(part.len());
            for row in part {
                let values: Result<Vec<String>> =
                    numbers.iter().map(|n| self.value(*n, row)).collect();
                lists.push(format!("({})", values?.join(", ")));
            }
            let what = match numbers.is_empty() {
                true => " DEFAULT VALUES".to_owned(),
                false => format!("({}) VALUES {}", self.names(&numbers), lists.join(", ")),
            };
            let conflict = if self.skips { " ON CONFLICT DO NOTHING" } else { "" };
            let sql = format!("INSERT INTO {}{what}{conflict}{}", self.name, self.returning());
            let answer = connect(&self.server, self.role, run.cx)?.run(&sql)?;
            for sent in &answer.rows {
                out.push(self.row(sent, run)?);
            }
        }
        Ok(out)
    }

    fn update(
        &mut self,
        place: &Datum,
        row: Vec<Datum>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Vec<Datum>>> {
        let mut set = self.set.clone();
        // A BEFORE trigger may have changed any of them.
        if !self.table.triggers.is_empty() {
            set = self.columns();
        }
        set.extend(self.table.live_columns().filter(|(_, c)| c.generated).map(|(n, _)| n));
        set.sort_unstable();
        set.dedup();
        let one = |n: &u16| {
            let name = column_name(&self.table.columns[usize::from(*n) - 1]);
            Ok(format!("{name} = {}", self.value(*n, &row)?))
        };
        let list: Result<Vec<String>> = set.iter().map(one).collect();
        let sql = format!(
            "UPDATE {} SET {} WHERE ctid = {}{}",
            self.name,
            list?.join(", "),
            place_of(place)?,
            self.returning()
        );
        let answer = connect(&self.server, self.role, run.cx)?.run(&sql)?;
        if answer.affected() == 0 {
            return Ok(None);
        }
        match answer.rows.first() {
            Some(sent) => self.row(sent, run).map(Some),
            None => Ok(Some(row)),
        }
    }

    fn delete(&mut self, place: &Datum, run: &mut Run<'_, '_>) -> Result<bool> {
        let sql = format!("DELETE FROM {} WHERE ctid = {}", self.name, place_of(place)?);
        let answer = connect(&self.server, self.role, run.cx)?.run(&sql)?;
        Ok(answer.affected() > 0)
    }
}
