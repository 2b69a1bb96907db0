//! Checks of row-level security policies on single rows: of those that are written, and of those that ON
//! CONFLICT and MERGE found, which are an error rather than left alone. Rows that a statement only looks for are
//! filtered by its plan.

use base::{Error, Result, err};
use sql::plan::{PolicyCheck, PolicyRules};
use types::Datum;

use crate::rows;
use crate::run::Run;

/// Which row a check is about, for its error.
#[derive(Clone, Copy, PartialEq)]
pub enum Row {
    /// One that is about to be written.
    New,
    /// One that ON CONFLICT found.
    Conflicting,
    /// One that MERGE found.
    Target,
}

/// Checks a row in table order.
///
/// # Errors
/// `42501`, and those of the conditions.
pub fn check(
    rules: &PolicyRules,
    checks: &[PolicyCheck],
    which: Row,
    row: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    for check in checks {
        if !crate::eval::holds(&check.condition, rows::Row::Values(row), run)? {
            return Err(violation(&rules.table, check.policy.as_deref(), which));
        }
    }
    Ok(())
}

fn violation(table: &str, policy: Option<&str>, which: Row) -> Error {
    let row = if which == Row::Target { "target row" } else { "new row" };
    let policy = policy.map_or_else(String::new, |name| format!(" \"{name}\""));
    let using = if which == Row::New { "" } else { " (USING expression)" };
    err!(
        INSUFFICIENT_PRIVILEGE,
        "{row} violates row-level security policy{policy}{using} for table \"{table}\""
    )
}
