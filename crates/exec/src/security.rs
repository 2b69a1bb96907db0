//! In whose name users' code runs inside other people's statements.
//!
//! An index's expressions, a CHECK, a default, a generated column, a materialized view's query may call
//! functions that the table's owner wrote, and it is others who maintain the table: a superuser with
//! VACUUM FULL or REINDEX, the server itself. So whatever evaluates them runs as a *security-restricted
//! operation*, [`restricted`]:
//!
//! * in the owner's name, whose rights are asked for;
//! * no SET ROLE, no SET SESSION AUTHORIZATION, no autonomous transaction: nothing leads out of the name;
//! * no temporary objects, which would stay in the session of whoever maintains, no LISTEN, and no checks
//!   or triggers that wait for the transaction's end;
//! * settings that are made inside end with it;
//! * and when the session's role isn't the owner, names are looked for in `pg_catalog` only, so that no
//!   schema of the session's path decides what is called.
//!
//! The operations: building an index in every way, writing a table
//! anew (VACUUM FULL, CLUSTER, ALTER TABLE, REFRESH MATERIALIZED VIEW), ANALYZE, checks of the rows that
//! are there (ALTER TABLE, ALTER DOMAIN), the checker. Actions of foreign keys run in the name of the
//! referring table's owner ([`in_name_of`]), as in PostgreSQL, and what waits for the transaction's end in
//! the name in which it was put off, as in PostgreSQL 18.
//!
//! Source: PostgreSQL's manual, "REFRESH MATERIALIZED VIEW" and the release notes on CVE-2020-25695 and
//! CVE-2022-1552, which say what such an operation must not do.

use base::{Result, err};
use catalog::object::ids;

use crate::context::{Acting, ExecContext, Guard};
use crate::run::Run;

/// Where names are looked for inside, when the session's role isn't the owner.
const SAFE_PATH: &str = "pg_catalog, pg_temp";

/// Calls `f` as a security-restricted operation of a table's (or domain's) owner.
///
/// # Errors
/// `f`'s.
pub fn restricted<R>(
    cx: &mut ExecContext<'_>,
    owner: u32,
    f: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    if cx.guard == Guard::Restricted && cx.role == owner {
        return f(cx);
    }
    let safe = [("search_path".to_owned(), SAFE_PATH.to_owned())];
    let foreign = cx.role != owner;
    let set = if foreign { &safe[..] } else { &[] };
    let (values, mark) = cx.hooks.enter(set, (cx.settings, cx.format))?;
    let user = name_of(cx, owner);
    let search_path = if foreign { &[ids::PG_CATALOG][..] } else { cx.search_path };
    let (snapshot, environment) = (cx.snapshot, cx.environment);
    let settings_version = cx.hooks.settings_version();
    let mut inner = ExecContext {
        snapshot,
        settings: &values.settings,
        settings_version,
        format: &values.format,
        search_path,
        user: &user,
        role: owner,
        guard: Guard::Restricted,
        environment: environment_of(environment, owner, foreign),
        ..cx.inner()
    };
    let result = f(&mut inner);
    cx.hooks.undo(mark);
    result
}

/// Calls `f` in the name of a role, as a function with SECURITY DEFINER runs in its owner's.
///
/// # Errors
/// `f`'s.
pub fn in_name_of<R>(
    run: &mut Run<'_, '_>,
    role: u32,
    f: impl FnOnce(&mut Run<'_, '_>) -> Result<R>,
) -> Result<R> {
    if run.cx.role == role {
        return f(run);
    }
    let user = name_of(run.cx, role);
    let (params, snapshot, guard) = (run.cx.params, run.cx.snapshot, run.cx.guard);
    let guard = guard.max(Guard::Definer);
    let environment = environment_of(run.cx.environment, role, false);
    let mut inner =
        ExecContext { params, snapshot, user: &user, role, guard, environment, ..run.cx.inner() };
    f(&mut Run {
        cx: &mut inner,
        prepared: run.prepared,
        params: run.params,
        snapshot: run.snapshot,
        state: run.state,
    })
}

/// `42501` for a setting that says who the session is, where code of users runs in another's name.
///
/// # Errors
/// See above.
pub fn check_setting(acting: Acting, name: &str) -> Result<()> {
    let identity = ["role", "session_authorization"].iter().any(|n| name.eq_ignore_ascii_case(n));
    let place = match acting.guard {
        Guard::Definer if identity => "security-definer function",
        Guard::Restricted if identity => "security-restricted operation",
        _ => return Ok(()),
    };
    Err(err!(INSUFFICIENT_PRIVILEGE, "cannot set parameter \"{name}\" within {place}"))
}

/// `42501` for what a security-restricted operation must not do.
///
/// # Errors
/// See above.
pub fn expect_unrestricted(cx: &ExecContext<'_>, what: &str) -> Result<()> {
    if cx.guard < Guard::Restricted {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "cannot {what} within security-restricted operation"))
}

/// What plans depend on that are made in another name than the session's: see
/// [`ExecContext::environment`].
fn environment_of(outer: u64, role: u32, safe_path: bool) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hash = DefaultHasher::new();
    (outer, role, safe_path, "restricted").hash(&mut hash);
    hash.finish()
}

fn name_of(cx: &mut ExecContext<'_>, role: u32) -> String {
    cx.catalog_tx.view().role(role).map_or_else(String::new, |r| r.name.clone())
}
