//! Replication origins: the servers that transactions come from, and how far each has been applied here.
//!
//! ```text
//! pg_toast.pg_replication_progress    origin (a name) │ remote_lsn │ roident │ local_lsn
//!     row of an origin ── updated by the transaction that applies ──► committed with it
//! ```
//! * The table is one of each database, made when it is first needed; so an origin belongs to its database.
//! * Subscriptions have one each, `pg_` and their oid. Users' own are made by `pg_replication_origin_create`. A session that has
//!   set one up says of its transactions where they come from ([`SessionOrigin`]), and changes that they log say so.
//! * One session at a time uses an origin.

use base::{Result, err};
use types::Datum;
use types::func::SessionFunction as F;
use types::func::quote_literal;

use crate::context::ExecContext;
use crate::run::Run;
use crate::session_origin::{SessionOrigin, claim, user_of};
use crate::spi;

/// The table with the positions up to which transactions of origins were applied here.
const PROGRESS: &str = "pg_toast.pg_replication_progress";
const NAME: &str = "pg_replication_progress";

fn text_at(values: &[Datum], n: usize) -> &str {
    match values.get(n) {
        Some(Datum::Text(text)) => text,
        _ => "",
    }
}

fn columns(cx: &mut ExecContext<'_>) -> Option<usize> {
    let view = cx.catalog_tx.view();
    let found = view.relation_in(catalog::object::ids::PG_TOAST, NAME)?;
    view.table(found.oid()).map(|table| table.columns.len())
}

/// Makes the table, unless it is there.
///
/// # Errors
/// Those of making it.
pub fn make_table(cx: &mut ExecContext<'_>) -> Result<()> {
    let text = match columns(cx) {
        Some(2) => {
            format!(
                "ALTER TABLE {PROGRESS} ADD COLUMN roident int4 UNIQUE, ADD COLUMN local_lsn int8"
            )
        }
        Some(_) => return Ok(()),
        None => format!(
            "CREATE TABLE {PROGRESS} (origin text NOT NULL, remote_lsn int8 NOT NULL, roident int4 UNIQUE, local_lsn int8, \
             CONSTRAINT pg_replication_progress_index PRIMARY KEY (origin))"
        ),
    };
    let role = Some((catalog::object::ids::SUPERUSER, "postgres".to_owned()));
    spi::statement_as(&text, &spi::As { role, ..spi::As::default() }, cx)
}

/// An origin as the table has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Origin {
    id: u32,
    name: String,
    remote: u64,
    local: u64,
}

/// The origins for which a condition holds.
fn select(condition: &str, cx: &mut ExecContext<'_>) -> Result<Vec<Origin>> {
    if columns(cx).is_none_or(|count| count < 4) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let text = format!(
        "SELECT roident, origin, remote_lsn, local_lsn FROM {PROGRESS} {condition} ORDER BY roident"
    );
    spi::query(&text, cx, &mut |row| {
        let number = |at: usize| match row.get(at) {
            Some(Datum::Int4(n)) => *n as u64,
            Some(Datum::Int8(n)) => *n as u64,
            _ => 0,
        };
        let name = text_at(row, 1).to_owned();
        all.push(Origin { id: number(0) as u32, name, remote: number(2), local: number(3) });
        Ok(())
    })?;
    Ok(all)
}

fn find(name: &str, cx: &mut ExecContext<'_>) -> Result<Option<Origin>> {
    Ok(select(&format!("WHERE origin = {}", quote_literal(name)), cx)?.pop())
}

fn known(name: &str, cx: &mut ExecContext<'_>) -> Result<Origin> {
    find(name, cx)?
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "replication origin \"{name}\" does not exist"))
}

/// The position up to which transactions of an origin were applied; 0: none was.
///
/// # Errors
/// I/O.
pub fn progress(name: &str, cx: &mut ExecContext<'_>) -> Result<u64> {
    make_table(cx)?;
    Ok(find(name, cx)?.map_or(0, |origin| origin.remote))
}

/// Notes such a position, as part of the transaction.
///
/// # Errors
/// I/O.
pub fn set_progress(name: &str, lsn: u64, cx: &mut ExecContext<'_>) -> Result<()> {
    let (name, local) = (quote_literal(name), cx.engine.storage.wal.insert_position().0);
    let mut found = false;
    let text = format!(
        "UPDATE {PROGRESS} SET remote_lsn = {lsn}, local_lsn = {local} WHERE origin = {name} AND roident IS NOT NULL RETURNING 1"
    );
    spi::query(&text, cx, &mut |_| {
        found = true;
        Ok(())
    })?;
    cx.tx.next_command();
    if !found {
        make_table(cx)?;
        insert(&name, lsn, local, cx)?;
    }
    Ok(())
}

/// A row with the least number that is free. `name`: a literal.
fn insert(name: &str, lsn: u64, local: u64, cx: &mut ExecContext<'_>) -> Result<()> {
    let text = format!(
        "INSERT INTO {PROGRESS} (origin, remote_lsn, local_lsn, roident) SELECT {name}, {lsn}, {local}, min(n) \
         FROM (SELECT 1 AS n UNION ALL SELECT roident + 1 FROM {PROGRESS}) x \
         WHERE NOT EXISTS (SELECT 1 FROM {PROGRESS} p WHERE p.roident = x.n) \
         ON CONFLICT (origin) DO UPDATE SET remote_lsn = excluded.remote_lsn, local_lsn = excluded.local_lsn, \
         roident = excluded.roident"
    );
    spi::query(&text, cx, &mut |_| Ok(()))?;
    cx.tx.next_command();
    Ok(())
}

/// Removes an origin; nothing happens when it is not there.
///
/// # Errors
/// I/O.
pub fn remove(name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    if columns(cx).is_none() {
        return Ok(());
    }
    let text = format!("DELETE FROM {PROGRESS} WHERE origin = {}", quote_literal(name));
    spi::query(&text, cx, &mut |_| Ok(()))?;
    cx.tx.next_command();
    Ok(())
}

/// Rows of `pg_replication_origin` and `pg_replication_origin_status`; None for other tables.
///
/// # Errors
/// I/O.
pub fn rows(table: &str, run: &mut Run<'_, '_>) -> Result<Option<Vec<Vec<Datum>>>> {
    let status = match table {
        "pg_replication_origin" => false,
        "pg_replication_origin_status" | "pg_show_replication_origin_status()" => true,
        _ => return Ok(None),
    };
    let mut all = select("WHERE roident IS NOT NULL", run.cx)?;
    if status {
        all.retain(|origin| origin.remote != 0);
    }
    let row = |origin: Origin| {
        let mut row = vec![Datum::Oid(origin.id), Datum::text(&origin.name)];
        if status {
            row.extend([origin.remote, origin.local].map(|lsn| Datum::Int8(lsn as i64)));
        }
        row
    };
    Ok(Some(all.into_iter().map(row).collect()))
}

fn none_configured() -> base::Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "no replication origin is configured")
}

/// `55006` for an origin that another session uses.
fn check_free(origin: &Origin, database: u32) -> Result<()> {
    match user_of(database, &origin.name) {
        Some(pid) => Err(err!(
            OBJECT_IN_USE,
            "replication origin with ID {} is already active for PID {pid}",
            origin.id
        )),
        None => Ok(()),
    }
}

/// The session's origin.
fn session<'h>(run: &'h mut Run<'_, '_>) -> Result<&'h mut SessionOrigin> {
    run.cx.hooks.origin().ok_or_else(|| base::Error::unsupported("replication origins here"))
}

/// The name of the session's origin.
fn session_name(run: &mut Run<'_, '_>) -> Result<String> {
    session(run)?.active.as_ref().map(|(_, name)| name.clone()).ok_or_else(none_configured)
}

/// A position as the functions give it: NULL when nothing has been applied.
fn shown(lsn: u64) -> Datum {
    if lsn == 0 { Datum::Null } else { Datum::Int8(lsn as i64) }
}

/// Functions `pg_replication_origin_…`; None for others.
///
/// # Errors
/// `42704`, `42939`, `23505`, `55000`, `55006`.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let database = run.cx.database.1;
    let name = text_at(args, 0);
    let lsn = |n: usize| match args.get(n) {
        Some(Datum::Int8(lsn)) => *lsn as u64,
        _ => 0,
    };
    let void = Datum::text("");
    Ok(Some(match function {
        F::PgReplicationOriginCreate => Datum::Oid(create(name, run.cx)?),
        F::PgReplicationOriginDrop => {
            let origin = known(name, run.cx)?;
            if let Some(pid) = user_of(database, name) {
                base::bail!(
                    OBJECT_IN_USE,
                    "could not drop replication origin with ID {}, in use by PID {pid}",
                    origin.id
                );
            }
            remove(name, run.cx)?;
            void
        }
        F::PgReplicationOriginOid => {
            find(name, run.cx)?.map_or(Datum::Null, |origin| Datum::Oid(origin.id))
        }
        F::PgReplicationOriginProgress => shown(known(name, run.cx)?.remote),
        F::PgReplicationOriginAdvance => {
            let origin = known(name, run.cx)?;
            check_free(&origin, database)?;
            set_progress(name, lsn(1), run.cx)?;
            void
        }
        F::PgReplicationOriginSessionSetup => {
            let origin = known(name, run.cx)?;
            set_up(&origin, database, run)?;
            void
        }
        F::PgReplicationOriginSessionReset => {
            session_name(run)?;
            session(run)?.release();
            void
        }
        F::PgReplicationOriginSessionIsSetup => Datum::Bool(session(run)?.active.is_some()),
        F::PgReplicationOriginSessionProgress => {
            let name = session_name(run)?;
            shown(find(&name, run.cx)?.map_or(0, |origin| origin.remote))
        }
        F::PgReplicationOriginXactSetup => {
            let name = session_name(run)?;
            let before = find(&name, run.cx)?.map_or(0, |origin| origin.remote);
            let before = session(run)?.at.map_or(before, |at| at.1);
            set_progress(&name, lsn(0), run.cx)?;
            session(run)?.at = Some((lsn(0), before));
            void
        }
        F::PgReplicationOriginXactReset => {
            if let Some((_, before)) = session(run)?.at.take() {
                let name = session_name(run)?;
                set_progress(&name, before, run.cx)?;
            }
            void
        }
        _ => return Ok(None),
    }))
}

fn create(name: &str, cx: &mut ExecContext<'_>) -> Result<u32> {
    if name.starts_with("pg_") {
        return Err(err!(RESERVED_NAME, "replication origin name \"{name}\" is reserved")
            .detail("Origin names starting with \"pg_\" are reserved."));
    }
    make_table(cx)?;
    if find(name, cx)?.is_some() {
        return Err(err!(
            UNIQUE_VIOLATION,
            "duplicate key value violates unique constraint \"pg_replication_origin_roname_index\""
        )
        .detail(format!("Key (roname)=({name}) already exists.")));
    }
    insert(&quote_literal(name), 0, 0, cx)?;
    known(name, cx).map(|origin| origin.id)
}

fn set_up(origin: &Origin, database: u32, run: &mut Run<'_, '_>) -> Result<()> {
    if session(run)?.active.is_some() {
        base::bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot setup replication origin when one is already setup"
        );
    }
    let pid = match run.cx.hooks.call(F::PgBackendPid, &[], run.cx.acting())? {
        Datum::Int4(pid) => pid,
        _ => 0,
    };
    let key = (database, origin.name.clone());
    if !claim(&key, pid) {
        return check_free(origin, database);
    }
    session(run)?.active = Some(key);
    Ok(())
}
