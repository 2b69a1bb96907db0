//! Policies of row-level security: what their statements say, and their conditions, which are stored as queries of
//! one column over the table: so a condition may ask other tables, and is printed as a view's query is.

use base::Result;
use catalog::{Policy, Snapshot, Table};

use crate::bind::Binder;
use crate::bind::policy::rel_of;
use crate::parse::parse_expr;
use crate::prepare::PrepareContext;
use crate::role::RoleRef;
use crate::utility::Name;
use crate::view;

/// CREATE POLICY.
#[derive(Clone, Debug)]
pub struct CreatePolicy {
    /// The table.
    pub table: Name,
    /// TO.
    pub roles: Vec<RoleRef>,
    /// What is said of it; its conditions are not in the stored form yet.
    pub policy: Policy,
}

/// ALTER POLICY.
#[derive(Clone, Debug)]
pub struct AlterPolicy {
    /// The table.
    pub table: Name,
    /// The policy's name.
    pub name: String,
    /// TO; none: as before.
    pub roles: Vec<RoleRef>,
    /// USING.
    pub using: Option<String>,
    /// WITH CHECK.
    pub check: Option<String>,
}

/// DROP POLICY.
#[derive(Clone, Debug)]
pub struct DropPolicy {
    /// Its table.
    pub table: Name,
    /// Its name.
    pub name: String,
    /// IF EXISTS.
    pub if_exists: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// The stored form of a new condition, and what it uses.
///
/// # Errors
/// Those of the expression.
pub fn stored(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
) -> Result<(String, Vec<(u32, u16)>)> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.bypassing = true;
    let rel = rel_of(&mut binder, table)?;
    binder.policy_condition(&rel, &node)?;
    let quoted = catalog::definition::quote_ident;
    let schema = cx.catalog.schema(table.schema).map_or_else(String::new, |s| quoted(&s.name));
    let query = format!("SELECT ({sql})::bool AS c FROM ONLY {schema}.{}", quoted(&table.name));
    view::recorded(cx, &query, cx.catalog)
}

/// A stored condition, and what it uses.
///
/// # Errors
/// A condition that can't be bound any more.
pub fn uses(cx: &PrepareContext<'_>, sql: &str) -> Result<(String, Vec<(u32, u16)>)> {
    view::recorded(cx, sql, cx.catalog)
}

/// The stored form after a change of names: `naming` has the new ones.
///
/// # Errors
/// A condition that can't be bound any more.
pub fn renamed(cx: &PrepareContext<'_>, sql: &str, naming: &Snapshot) -> Result<String> {
    view::recorded(cx, sql, naming).map(|(text, _)| text)
}

/// A stored condition as PostgreSQL prints it.
///
/// # Errors
/// A condition that can't be bound any more.
pub fn print(cx: &PrepareContext<'_>, sql: &str, pretty: bool) -> Result<String> {
    view::print_target(cx, sql, pretty)
}
