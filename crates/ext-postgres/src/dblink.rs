//! dblink: statements on other servers, by connections that the session opens, names and closes itself.
//!
//! A connection belongs to no transaction: what is done over it stays whatever becomes of the local one. A cursor that
//! is opened outside of a remote transaction begins one, which ends when the last such cursor is closed.

use std::any::Any;

use base::{Error, Oid, Result, err};
use catalog::AclKind;
use catalog::acl::privilege;
use exec::context::ExecContext;
use exec::foreign::SessionPart;
use exec::native::{Native, SetCall, Symbols};
use exec::{rights, spi};
use logical::conninfo::Conninfo;
use std::sync::Arc;
use types::datum::Shape;
use types::oids::{INT4, RECORD, TEXT};
use types::{Datum, Text};

use crate::client::{Answer, Client};
use crate::deparse::value_of;
use crate::local;
use crate::options::{self, is_of_connection};

/// By symbol.
pub const SYMBOLS: Symbols = &[
    ("dblink_connect", Native::Scalar(|args, cx| open_connection(args, true, cx))),
    ("dblink_connect_u", Native::Scalar(|args, cx| open_connection(args, false, cx))),
    ("dblink_disconnect", Native::Scalar(disconnect)),
    ("dblink_open", Native::Scalar(open)),
    ("dblink_fetch", Native::Set(fetch)),
    ("dblink_close", Native::Scalar(close)),
    ("dblink_record", Native::Set(record)),
    ("dblink_exec", Native::Scalar(execute)),
    ("dblink_get_connections", Native::Scalar(names)),
    ("dblink_send_query", Native::Scalar(send)),
    ("dblink_is_busy", Native::Scalar(is_busy)),
    ("dblink_get_result", Native::Set(result)),
    ("dblink_cancel_query", Native::Scalar(cancel)),
    ("dblink_error_message", Native::Scalar(error_message)),
    ("dblink_get_notify", Native::Set(notifications)),
    ("dblink_current_query", Native::Scalar(current_query)),
    ("dblink_get_pkey", Native::Set(local::primary_key)),
    ("dblink_build_sql_insert", Native::Scalar(local::build_insert)),
    ("dblink_build_sql_update", Native::Scalar(local::build_update)),
    ("dblink_build_sql_delete", Native::Scalar(local::build_delete)),
    ("dblink_fdw_validator", Native::Scalar(options::validate_link)),
];

/// The name under which the session keeps them.
const PART: &str = "dblink";

/// A connection that the session has opened.
struct Link {
    /// Empty: the unnamed one.
    name: String,
    client: Client,
    /// Cursors that began the remote transaction.
    cursors: u32,
    began: bool,
    /// A statement that was sent, run when its result is asked for.
    sent: Option<String>,
    /// The last error.
    error: Option<String>,
}

/// The session's connections.
#[derive(Default)]
struct Links(Vec<Link>);

impl SessionPart for Links {
    fn ended(&mut self, _committed: bool) {}

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

fn links<'c>(cx: &'c mut ExecContext<'_>) -> Result<&'c mut Links> {
    let parts = cx.hooks.foreign().and_then(|parts| parts.of::<Links>(PART));
    parts.ok_or_else(|| err!(FEATURE_NOT_SUPPORTED, "dblink needs a session"))
}

fn missing(name: &str) -> Error {
    match name {
        "" => err!(CONNECTION_DOES_NOT_EXIST, "connection not available"),
        name => err!(CONNECTION_DOES_NOT_EXIST, "connection \"{name}\" not available"),
    }
}

fn link<'c>(name: &str, cx: &'c mut ExecContext<'_>) -> Result<&'c mut Link> {
    links(cx)?.0.iter_mut().find(|l| l.name == name).ok_or_else(|| missing(name))
}

fn text(value: &Datum) -> &str {
    match value {
        Datum::Text(text) => text,
        _ => "",
    }
}

fn ok() -> Datum {
    Datum::text("OK")
}

/// The arguments before a last boolean, and that (true where it isn't said).
fn with_fail(args: &[Datum]) -> (&[Datum], bool) {
    match args {
        [rest @ .., Datum::Bool(fail)] => (rest, *fail),
        all => (all, true),
    }
}

/// A connection string, or that of a foreign server.
fn conninfo(text: &str, cx: &mut ExecContext<'_>) -> Result<Conninfo> {
    let view = cx.catalog_tx.view();
    let mut string = text.to_owned();
    if let Some(server) = view.foreign_server_named(text) {
        rights::require(cx, AclKind::Server, server.oid, privilege::USAGE, &server.name)?;
        let mapping = view.user_mapping_for(cx.role, server.oid).ok_or_else(|| {
            let name = view.role(cx.role).map_or("", |r| r.name.as_str());
            err!(UNDEFINED_OBJECT, "user mapping not found for \"{name}\"")
        })?;
        string.clear();
        for (name, value) in server.options.iter().chain(&mapping.options) {
            if is_of_connection(name) {
                let value = value.replace('\\', "\\\\").replace('\'', "\\'");
                string += &format!("{name}='{value}' ");
            }
        }
    }
    Conninfo::parse(&string).map_err(not_established)
}

fn not_established(detail: String) -> Error {
    err!(SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, "could not establish connection")
        .detail(detail)
}

/// Connects; with `checked`, only superusers without a password.
fn connect(text: &str, checked: bool, cx: &mut ExecContext<'_>) -> Result<Client> {
    let checked = checked && !rights::is_superuser(cx);
    let info = conninfo(text, cx)?;
    let refused = |detail: &'static str| {
        err!(S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED, "password is required").detail(detail)
    };
    if checked && info.get("password").is_none_or(str::is_empty) {
        return Err(refused("Non-superusers must provide a password in the connection string."));
    }
    let client = Client::open(&info, "dblink", false).map_err(|e| match e.code() {
        base::sqlstate::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION => {
            not_established(e.message().to_owned())
        }
        _ => e,
    })?;
    if checked && !client.asked_for_password() {
        return Err(refused(
            "Non-superuser cannot connect if the server does not request a password.",
        )
        .hint("Target server's authentication method must be changed."));
    }
    Ok(client)
}

fn open_connection(args: &[Datum], checked: bool, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (name, string) = match args {
        [name, string] => (text(name).to_owned(), text(string)),
        [string] => (String::new(), text(string)),
        _ => return Ok(Datum::Null),
    };
    if !name.is_empty() && links(cx)?.0.iter().any(|l| l.name == name) {
        base::bail!(DUPLICATE_OBJECT, "duplicate connection name");
    }
    let client = connect(string, checked, cx)?;
    let all = links(cx)?;
    all.0.retain(|l| !name.is_empty() || !l.name.is_empty());
    all.0.push(Link { name, client, cursors: 0, began: false, sent: None, error: None });
    Ok(ok())
}

fn disconnect(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let name = args.first().map_or("", text);
    let all = links(cx)?;
    let at = all.0.iter().position(|l| l.name == name).ok_or_else(|| missing(name))?;
    all.0.remove(at);
    Ok(ok())
}

/// Runs a statement over a connection. None: it failed, and that is told as a notice (not `fail`).
fn run(
    name: &str,
    sql: &str,
    what: &str,
    fail: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Answer>> {
    let own = link(name, cx)?;
    let answer = own.client.run(sql);
    own.error = answer.as_ref().err().map(|e| e.message().to_owned());
    told(answer, name, what, fail, cx)
}

/// A failure as an error, or as a notice.
fn told(
    answer: Result<Answer>,
    name: &str,
    what: &str,
    fail: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Answer>> {
    let error = match answer {
        Ok(answer) => return Ok(Some(answer)),
        Err(error) => error,
    };
    if base::sqlstate::QUERY_CANCELED == error.code() {
        return Err(error);
    }
    let on = match name {
        "" => "unnamed dblink connection".to_owned(),
        name => format!("dblink connection named \"{name}\""),
    };
    let error = error.context(format!("while {what} on {on}"));
    if fail {
        return Err(error);
    }
    cx.hooks.notice("NOTICE", error);
    Ok(None)
}

fn open(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (args, fail) = with_fail(args);
    let (name, cursor, sql) = match args {
        [name, cursor, sql] => (text(name), text(cursor), text(sql)),
        [cursor, sql] => ("", text(cursor), text(sql)),
        _ => return Ok(Datum::Null),
    };
    let own = link(name, cx)?;
    if own.cursors == 0 {
        own.client.run("BEGIN")?;
        own.began = true;
    }
    let sql = format!("DECLARE {cursor} CURSOR FOR {sql}");
    let done = run(name, &sql, &format!("opening cursor \"{cursor}\""), fail, cx)?;
    if done.is_none() {
        return Ok(Datum::text("ERROR"));
    }
    link(name, cx)?.cursors += 1;
    Ok(ok())
}

fn close(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (args, fail) = with_fail(args);
    let (name, cursor) = match args {
        [name, cursor] => (text(name), text(cursor)),
        [cursor] => ("", text(cursor)),
        _ => return Ok(Datum::Null),
    };
    let what = format!("closing cursor \"{cursor}\"");
    if run(name, &format!("CLOSE {cursor}"), &what, fail, cx)?.is_none() {
        return Ok(Datum::text("ERROR"));
    }
    let own = link(name, cx)?;
    own.cursors = own.cursors.saturating_sub(1);
    if own.began && own.cursors == 0 {
        own.began = false;
        own.client.run("COMMIT")?;
    }
    Ok(ok())
}

/// The rows of an answer in the columns that the caller wants.
fn rows(answer: &Answer, call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let Some(wanted) = call.wanted else {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "function returning record called in context that cannot accept type record"
        );
    };
    let shape = Arc::new(Shape { ty: RECORD, columns: wanted.to_vec() });
    if answer.columns.is_empty() {
        // A command without a result.
        let status = vec![Datum::text(&answer.tag)];
        return match wanted {
            [(_, ty)] if *ty == TEXT => Ok(vec![Datum::record(shape, status)]),
            _ => Err(mismatch()),
        };
    }
    if answer.columns.len() != wanted.len() {
        return Err(mismatch());
    }
    let mut out = Vec::with_capacity(answer.rows.len());
    for row in &answer.rows {
        sched::check_interrupts()?;
        let value = |((_, ty), text): (&(Text, Oid), &Option<String>)| {
            value_of(text.as_ref(), (*ty, -1), cx.format)
        };
        let fields: Result<Vec<Datum>> = wanted.iter().zip(row).map(value).collect();
        out.push(Datum::record(shape.clone(), fields?));
    }
    Ok(out)
}

fn mismatch() -> Error {
    err!(
        DATATYPE_MISMATCH,
        "remote query result rowtype does not match the specified FROM clause rowtype"
    )
}

fn fetch(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let (args, fail) = with_fail(call.args);
    let (name, cursor, count) = match args {
        [name, cursor, Datum::Int4(count)] => (text(name), text(cursor), *count),
        [cursor, Datum::Int4(count)] => ("", text(cursor), *count),
        _ => return Ok(Vec::new()),
    };
    let what = format!("fetching from cursor \"{cursor}\"");
    match run(name, &format!("FETCH {count} FROM {cursor}"), &what, fail, cx)? {
        Some(answer) => rows(&answer, call, cx),
        None => Ok(Vec::new()),
    }
}

/// Runs a statement over the connection that the arguments name, or over one of its own.
fn statement(
    args: &[Datum],
    what: &str,
    fail: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Answer>> {
    let (place, sql) = match args {
        [place, sql] => (text(place), text(sql)),
        [sql] => ("", text(sql)),
        _ => return Ok(None),
    };
    let named = place.is_empty() || links(cx)?.0.iter().any(|l| l.name == place);
    if named {
        return run(place, sql, what, fail, cx);
    }
    let answer = connect(place, true, cx)?.run(sql);
    told(answer, "", what, fail, cx)
}

fn record(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let (args, fail) = with_fail(call.args);
    match statement(args, "executing query", fail, cx)? {
        Some(answer) => rows(&answer, call, cx),
        None => Ok(Vec::new()),
    }
}

fn execute(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (args, fail) = with_fail(args);
    match statement(args, "executing command", fail, cx)? {
        Some(answer) if !answer.columns.is_empty() => Err(err!(
            S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED,
            "statement returning results not allowed"
        )),
        Some(answer) => Ok(Datum::text(&answer.tag)),
        None => Ok(Datum::text("ERROR")),
    }
}

fn names(_args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let named = links(cx)?.0.iter().filter(|l| !l.name.is_empty());
    let items: Vec<Datum> = named.map(|l| Datum::text(&l.name)).collect();
    Ok(match items.is_empty() {
        true => Datum::Null,
        false => Datum::Array(Arc::new(types::datum::Array::of(TEXT, items))),
    })
}

fn send(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let own = link(text(&args[0]), cx)?;
    own.sent = Some(text(&args[1]).to_owned());
    Ok(Datum::Int4(1))
}

fn is_busy(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    link(text(&args[0]), cx)?;
    Ok(Datum::Int4(0))
}

fn result(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let (args, fail) = with_fail(call.args);
    let name = args.first().map_or("", text).to_owned();
    let Some(sql) = link(&name, cx)?.sent.take() else { return Ok(Vec::new()) };
    match run(&name, &sql, "executing query", fail, cx)? {
        Some(answer) => rows(&answer, call, cx),
        None => Ok(Vec::new()),
    }
}

fn cancel(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let own = link(text(&args[0]), cx)?;
    own.sent = None;
    own.client.cancel();
    Ok(ok())
}

fn error_message(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let own = link(text(&args[0]), cx)?;
    Ok(own.error.as_ref().map_or_else(ok, |text| Datum::text(text)))
}

/// The notifications that have come over a connection since they were last asked for.
fn notifications(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let name = call.args.first().map_or("", text);
    let came = match links(cx)?.0.iter_mut().find(|l| l.name == name) {
        Some(link) => link.client.notifications()?,
        // The unnamed connection need not be there.
        None if name.is_empty() => Vec::new(),
        None => return Err(missing(name)),
    };
    let columns = [("notify_name", TEXT), ("be_pid", INT4), ("extra", TEXT)];
    let columns = columns.map(|(name, ty)| (name.into(), ty)).to_vec();
    let shape = Arc::new(Shape { ty: RECORD, columns });
    let row = |(channel, pid, payload): &(String, i32, String)| {
        let fields = vec![Datum::text(channel), Datum::Int4(*pid), Datum::text(payload)];
        Datum::record(shape.clone(), fields)
    };
    Ok(came.iter().map(row).collect())
}

fn current_query(_args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let mut text = Datum::Null;
    spi::query("SELECT pg_catalog.current_query()", cx, &mut |row| {
        text = row[0].clone();
        Ok(())
    })?;
    Ok(text)
}
