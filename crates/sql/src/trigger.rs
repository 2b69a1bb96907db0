//! Triggers: what CREATE TRIGGER says, and their conditions, which are stored as SQL over `old` and `new`.

use std::sync::Arc;

use base::{Error, Result, err};
use catalog::{Table, Trigger, trigger_type as t};

use crate::bind::Binder;
use crate::expr::Expr;
use crate::logical::{SYSTEM_COLUMNS, TableRel};
use crate::parse::parse_expr;
use crate::plan::ScanColumn;
use crate::prepare::PrepareContext;
use crate::print::{Names, Printer, objects_of};
use crate::utility::Name;
use crate::walk;

/// CREATE TRIGGER.
#[derive(Clone, Debug)]
pub struct CreateTrigger {
    /// OR REPLACE.
    pub replace: bool,
    /// CONSTRAINT.
    pub constraint: bool,
    /// What is said of it but for what is looked up: the function, columns, the other table.
    pub trigger: Trigger,
    /// The table.
    pub table: Name,
    /// The function.
    pub function: Name,
    /// UPDATE OF.
    pub columns: Vec<String>,
    /// FROM.
    pub other: Option<Name>,
}

/// DROP TRIGGER.
#[derive(Clone, Debug)]
pub struct DropTrigger {
    /// Its table.
    pub table: Name,
    /// Its name.
    pub name: String,
    /// IF EXISTS.
    pub if_exists: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// Which triggers ALTER TABLE enables or disables.
#[derive(Clone, Debug)]
pub enum TriggerSelection {
    /// The one of this name.
    Named(String),
    /// ALL, those of constraints among them.
    All,
    /// USER.
    User,
}

/// Names of the two rows' columns.
struct Rows<'r>(&'r Binder<'r>, &'r TableRel, &'r TableRel, Option<&'r catalog::Snapshot>);

impl Names for Rows<'_> {
    fn column(&self, col: u16) -> Option<String> {
        let name = catalog::definition::quote_ident(&self.0.vars[usize::from(col)].name);
        let row = if self.1.column(col).is_some() { "old" } else { "new" };
        debug_assert!(self.1.column(col).is_some() || self.2.column(col).is_some());
        Some(format!("{row}.{name}"))
    }

    fn subquery(&self, _: &crate::expr::SubqueryExpr) -> Option<String> {
        None
    }

    fn naming(&self) -> Option<&catalog::Snapshot> {
        self.3
    }

    fn whole(&self, fields: &[Expr]) -> Option<String> {
        let all = |row: &TableRel| {
            let columns = row.table.live_columns().map(|(n, _)| row.col(ScanColumn::Attr(n)));
            let same =
                |(field, col): (&Expr, u16)| matches!(field, Expr::Column(c, _) if *c == col);
            fields.len() == row.table.live_columns().count() && fields.iter().zip(columns).all(same)
        };
        match (all(self.1), all(self.2)) {
            (true, _) => Some("old.*".to_owned()),
            (_, true) => Some("new.*".to_owned()),
            _ => None,
        }
    }
}

fn bind<'b>(
    binder: &mut Binder<'b>,
    table: &Table,
    sql: &str,
) -> Result<(TableRel, TableRel, Expr)> {
    let node = parse_expr(sql)?;
    let table = Arc::new(table.clone());
    let old = binder.unasked_rel(table.clone(), "old")?;
    let new = binder.unasked_rel(table, "new")?;
    let condition = binder.trigger_condition(&old, &new, &node)?;
    Ok((old, new, condition))
}

/// A condition over a row that has the old row's columns before the new one's.
///
/// # Errors
/// One that can't be bound any more.
pub fn condition(cx: &PrepareContext<'_>, table: &Table, sql: &str) -> Result<Expr> {
    let mut binder = Binder::new(cx, sql, &[]);
    let (old, new, bound) = bind(&mut binder, table, sql)?;
    let width = table.columns.len() as u16;
    let place = |col: u16| {
        let at = match (old.column(col), new.column(col)) {
            (Some(ScanColumn::Attr(n)), _) => n - 1,
            (_, Some(ScanColumn::Attr(n))) => width + n - 1,
            _ => return None,
        };
        Some(Expr::Column(at, binder.vars[usize::from(col)].ty))
    };
    Ok(walk::substitute(bound, &place))
}

/// A condition as PostgreSQL prints it.
///
/// # Errors
/// One that can't be bound any more.
pub fn print(cx: &PrepareContext<'_>, table: &Table, sql: &str, pretty: bool) -> Result<String> {
    printed(cx, table, sql, pretty, false)
}

fn printed(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
    pretty: bool,
    by_oid: bool,
) -> Result<String> {
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let (old, new, bound) = bind(&mut binder, table, sql)?;
    let names = Rows(&binder, &old, &new, None);
    let printer = Printer { binder: &binder, pretty, by_oid, names: Some(&names), indent: 0 };
    Ok(printer.outer(&bound))
}

/// The stored form of a condition after a column has got another name.
///
/// # Errors
/// One that can't be bound any more.
pub fn renamed(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
    column: u16,
    to: &str,
) -> Result<String> {
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let (old, new, bound) = bind(&mut binder, table, sql)?;
    for row in [&old, &new] {
        to.clone_into(&mut binder.vars[usize::from(row.base + column - 1)].name);
    }
    let names = Rows(&binder, &old, &new, None);
    let printer =
        Printer { binder: &binder, pretty: false, by_oid: true, names: Some(&names), indent: 0 };
    Ok(printer.outer(&bound))
}

/// The stored form of a condition with the names that what it uses has in another version of the catalog.
///
/// # Errors
/// One that can't be bound any more.
pub(crate) fn under_names(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
    naming: &catalog::Snapshot,
) -> Result<String> {
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let (old, new, bound) = bind(&mut binder, table, sql)?;
    let names = Rows(&binder, &old, &new, Some(naming));
    let printer =
        Printer { binder: &binder, pretty: false, by_oid: true, names: Some(&names), indent: 0 };
    Ok(printer.outer(&bound))
}

/// Looks at a new trigger's condition: its stored form, and what it uses.
///
/// # Errors
/// `42P17` for rows that the trigger doesn't have; those of the expression.
pub fn check(
    cx: &PrepareContext<'_>,
    table: &Table,
    trigger: &Trigger,
    sql: &str,
) -> Result<(String, Vec<(u32, u16)>)> {
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let (old, new, bound) = bind(&mut binder, table, sql)?;
    let mut used = Vec::new();
    walk::columns_of(&bound, &mut used);
    let mut uses: Vec<(u32, u16)> = Vec::new();
    for col in used {
        let (is_old, column) = match (old.column(col), new.column(col)) {
            (Some(column), _) => (true, column),
            (_, Some(column)) => (false, column),
            _ => continue,
        };
        if !trigger.is_row() {
            return Err(wrong("statement trigger's WHEN condition cannot reference column values"));
        }
        if is_old && trigger.has(t::INSERT) {
            return Err(wrong("INSERT trigger's WHEN condition cannot reference OLD values"));
        }
        if !is_old && trigger.has(t::DELETE) {
            return Err(wrong("DELETE trigger's WHEN condition cannot reference NEW values"));
        }
        match column {
            ScanColumn::Attr(n) => {
                let def = &table.columns[usize::from(n) - 1];
                if !is_old && trigger.has(t::BEFORE) && def.generated {
                    return Err(wrong(
                        "BEFORE trigger's WHEN condition cannot reference NEW generated columns",
                    )
                    .detail(format!("Column \"{}\" is a generated column.", def.name)));
                }
                uses.push((table.oid, n));
            }
            other => {
                if !is_old && trigger.has(t::BEFORE) {
                    return Err(wrong(
                        "BEFORE trigger's WHEN condition cannot reference NEW system columns",
                    ));
                }
                let name = SYSTEM_COLUMNS.iter().find(|c| c.0 == other).map_or("", |c| c.1);
                return Err(Error::unsupported(format!("the system column {name} in WHEN")));
            }
        }
    }
    uses.extend(
        objects_of(&bound).into_iter().filter(|id| !table.row_type.contains(id)).map(|id| (id, 0)),
    );
    uses.sort_unstable();
    uses.dedup();
    Ok((printed(cx, table, sql, false, true)?, uses))
}

fn wrong(message: &str) -> Error {
    err!(INVALID_OBJECT_DEFINITION, "{message}")
}
