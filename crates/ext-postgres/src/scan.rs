//! Scans: a cursor on the other server, fetched piece by piece.

use base::{Oid, Result};
use catalog::{ForeignServer, Table};
use exec::eval;
use exec::foreign::{ForeignRows, option, server_of};
use exec::rows::Row;
use exec::run::Run;
use sql::Expr;
use sql::plan::{ForeignScan, ScanColumn};
use types::{Datum, oids};

use crate::client::TextRow;
use crate::connection::connect;
use crate::deparse::{Deparser, column_name, table_name, value_of};

/// Rows that are fetched at a time where no option says another number.
const FETCH_SIZE: usize = 100;

/// An option of the table, or else of its server.
pub fn table_option<'o>(
    table: &'o Table,
    server: &'o ForeignServer,
    name: &str,
) -> Option<&'o str> {
    let own = table.foreign.as_ref().and_then(|f| option(&f.options, name));
    own.or_else(|| option(&server.options, name))
}

/// The columns that a scan fetches, each once, in the table's order; then, whether the row's place comes behind.
fn fetched(scan: &ForeignScan) -> (Vec<u16>, bool) {
    let mut numbers: Vec<u16> = Vec::new();
    let mut place = false;
    for column in &scan.scan.columns {
        match column {
            ScanColumn::Attr(n) => numbers.push(*n),
            ScanColumn::Tid | ScanColumn::Root => place = true,
            _ => {}
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    (numbers, place)
}

/// The query of a scan; `schema`: the local table's, where no option says another.
///
/// # Errors
/// Those of evaluating parts of the conditions.
pub fn query(
    scan: &ForeignScan,
    schema: Option<&str>,
    value: &mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
) -> Result<String> {
    let table = &scan.scan.table;
    let (numbers, place) = fetched(scan);
    let name = |n: &u16| column_name(&table.columns[usize::from(*n) - 1]);
    let mut list: Vec<String> = numbers.iter().map(name).collect();
    if place {
        list.push("ctid".to_owned());
    }
    if list.is_empty() {
        list.push("NULL".to_owned());
    }
    let mut deparser = Deparser::new(table, value);
    let conditions = deparser.conditions(&scan.remote)?;
    // Only changes ask for the root of a row's versions.
    let locks = scan.scan.columns.contains(&ScanColumn::Root);
    let lock = if locks { " FOR UPDATE" } else { "" };
    let from = table_name(table, schema);
    Ok(format!("SELECT {} FROM {from}{conditions}{lock}", list.join(", ")))
}

/// A scan on its way.
pub struct Rows {
    server: ForeignServer,
    role: u32,
    cursor: String,
    size: usize,
    /// The source of each of the scan's columns.
    columns: Vec<Source>,
    /// The first rows came with the cursor.
    first: Option<Vec<TextRow>>,
    ended: bool,
}

/// Where a column of a scan comes from.
#[derive(Clone, Copy)]
enum Source {
    /// A fetched column, of this type.
    Fetched(usize, Oid, i32),
    /// The table's oid.
    Table(u32),
    /// Nothing is known of it.
    Nothing,
}

/// Begins a scan.
///
/// # Errors
/// Those of the connection and of the query.
pub fn begin(scan: &ForeignScan, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
    let view = run.cx.catalog_tx.view();
    let table = &scan.scan.table;
    let server = server_of(&view, table)?;
    let schema = view.schema(table.schema).map(|s| s.name.clone());
    let mut value = |e: &Expr| eval::eval(e, Row::Empty, run).map(Some);
    let sql = query(scan, schema.as_deref(), &mut value)?;
    let (numbers, _) = fetched(scan);
    let source = |column: &ScanColumn| match column {
        ScanColumn::Attr(n) => {
            let at = numbers.iter().position(|own| own == n).unwrap_or(0);
            let column = &table.columns[usize::from(*n) - 1];
            Source::Fetched(at, Oid(column.ty), column.typmod)
        }
        ScanColumn::Tid | ScanColumn::Root => Source::Fetched(numbers.len(), oids::TID, -1),
        ScanColumn::TableOid => Source::Table(table.oid),
        _ => Source::Nothing,
    };
    let columns = scan.scan.columns.iter().map(source).collect();
    let size = table_option(table, &server, "fetch_size").and_then(|n| n.trim().parse().ok());
    open((server, scan.role), &sql, size.unwrap_or(FETCH_SIZE), columns, run)
}

/// Opens a cursor for a query whose columns are of these types.
///
/// # Errors
/// Those of the connection and of the query.
pub fn begin_query(
    from: (ForeignServer, u32),
    sql: &str,
    types: &[Oid],
    run: &mut Run<'_, '_>,
) -> Result<Box<dyn ForeignRows>> {
    let size = option(&from.0.options, "fetch_size").and_then(|n| n.trim().parse().ok());
    let column = |(at, ty): (usize, &Oid)| Source::Fetched(at, *ty, -1);
    let columns = types.iter().enumerate().map(column).collect();
    open(from, sql, size.unwrap_or(FETCH_SIZE), columns, run)
}

/// `role`: as in a plan, 0 is the session's.
fn open(
    (server, role): (ForeignServer, u32),
    sql: &str,
    size: usize,
    columns: Vec<Source>,
    run: &mut Run<'_, '_>,
) -> Result<Box<dyn ForeignRows>> {
    let role = if role == 0 { run.cx.role } else { role };
    let connection = connect(&server, role, run.cx)?;
    let cursor = connection.cursor();
    let text = format!("DECLARE {cursor} CURSOR FOR {sql}");
    connection.run_shown(&text, sql)?;
    let first = connection.run_shown(&format!("FETCH {size} FROM {cursor}"), sql)?.rows;
    let ended = first.len() < size;
    Ok(Box::new(Rows { server, role, cursor, size, columns, first: Some(first), ended }))
}

impl ForeignRows for Rows {
    fn next(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Vec<Vec<Datum>>>> {
        let fetched = match self.first.take() {
            Some(rows) => rows,
            None if self.ended => {
                let connection = connect(&self.server, self.role, run.cx)?;
                connection.run(&format!("CLOSE {}", self.cursor))?;
                return Ok(None);
            }
            None => {
                let connection = connect(&self.server, self.role, run.cx)?;
                let rows = connection.run(&format!("FETCH {} FROM {}", self.size, self.cursor))?;
                self.ended = rows.rows.len() < self.size;
                rows.rows
            }
        };
        let format = run.cx.format;
        let mut out = Vec::with_capacity(fetched.len());
        for row in &fetched {
            let one = |source: &Source| match source {
                Source::Fetched(at, ty, typmod) => {
                    value_of(row.get(*at).and_then(Option::as_ref), (*ty, *typmod), format)
                }
                Source::Table(id) => Ok(Datum::Oid(*id)),
                Source::Nothing => Ok(Datum::Null),
            };
            out.push(self.columns.iter().map(one).collect::<Result<Vec<Datum>>>()?);
        }
        Ok(Some(out))
    }
}
