//! postgres_fdw and dblink: tables of other PostgreSQL servers (and of servers like this one) as foreign tables.
//!
//! ```text
//! ForeignScan { remote conditions } ── deparse ──► DECLARE c1 CURSOR FOR SELECT … ──► FETCH 100 ──► rows
//! INSERT, UPDATE, DELETE ── deparse ──► INSERT … VALUES (…), (…) │ UPDATE … WHERE ctid = … [RETURNING …]
//! ```
//!
//! * A session has one connection for each user mapping ([`connection`]), in a remote transaction that is as long as
//!   the local one (REPEATABLE READ, so that all scans of a query see the same) and has its savepoints.
//! * All values travel as text in the forms that do not depend on settings; conditions with values in them are
//!   computed when a scan begins.
//! * The remote transactions commit before the local one: a crash in between leaves them committed, as with
//!   PostgreSQL's.
//!
//! Left out: direct UPDATE and DELETE; orders of strings and semi-joins on the server; asynchronous scans; remote estimates.

#![forbid(unsafe_code)]

pub mod client;
mod connection;
mod dblink;
mod deparse;
mod functions;
mod import;
mod local;
mod modify;
mod options;
mod passfile;
mod remote;
mod scan;
mod tls;
mod wrapper;

use types::extension::Library;

/// The wrapper's handler, by which its code is known.
const CODE: &str = "postgres_fdw/postgres_fdw_handler";

static LIBRARY: Library = Library { name: "postgres_fdw", ..Library::EMPTY };

static LINK: Library = Library { name: "dblink", ..Library::EMPTY };

/// Makes the extensions' code known. To be called before anything is looked up.
pub fn register() {
    types::extension::register(&[&LIBRARY, &LINK]);
    exec::native::register("dblink", dblink::SYMBOLS);
    exec::native::register("postgres_fdw", functions::SYMBOLS);
    exec::foreign::register(CODE, &wrapper::PostgresWrapper);
    sql::foreign::register(CODE, deparse::ships);
}
