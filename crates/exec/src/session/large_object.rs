//! Large objects: `lo_create`, `lo_open`, `loread`, `lowrite` and kin.
//!
//! ```text
//!   pg_largeobject           loid │ pageno │ data       a page has 2048 bytes; those that are missing,
//!   pg_largeobject_metadata  oid │ lomowner │ lomacl    and what is missing of one, read as zeroes
//! ```
//! Both are tables like any other, in a schema that dumps leave out, made when the database's first large
//! object is made; so large objects are as transactional as rows. What is done here is done by statements
//! over them, in the name of the system, after the rights were asked for.
//!
//! Left out: descriptors that a savepoint's rollback closes; a descriptor opened for reading sees what its
//! statement sees, not what was there when it was opened.

use std::io::ErrorKind;
use std::path::Path;

use base::{Result, bail, err};
use catalog::AclItem;
use catalog::acl::privilege;
use catalog::object::ids;
use txn::LockMode;
use types::Datum;
use types::func::SessionFunction as F;

use crate::context::ExecContext;
use crate::run::Run;
use crate::server_file;
use crate::session::args::{int_at, oid_at, text_at};
use crate::session::open_large_objects::{Descriptor, LargeObjects};
use crate::spi;

/// Bytes of a page.
const PAGE: i64 = 2048;
/// A large object's size, at most.
const SIZE_MAX: i64 = PAGE * i32::MAX as i64;
/// Pages that one statement writes.
const PAGES_AT_ONCE: usize = 128;
/// The modes of `lo_open`.
const WRITE: i64 = 0x20000;
const READ: i64 = 0x40000;
/// The oid by which the making of the tables is locked: `pg_largeobject`'s.
const LOCK: u32 = 2613;

const DATA: &str = "pg_toast.pg_largeobject";
const METADATA: &str = "pg_toast.pg_largeobject_metadata";

/// Functions over large objects.
///
/// # Errors
/// `42704` for one that isn't there, `42501`, `25006`, `23505`.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let id = oid_at(args, 0);
    Ok(Some(match function {
        F::LoCreat => Datum::Oid(create(0, "lo_creat()", run)?),
        F::LoCreate => Datum::Oid(create(id, "lo_create()", run)?),
        F::LoFromBytea => {
            let id = create(id, "lo_from_bytea()", run)?;
            write(id, 0, bytes(args, 1), run.cx)?;
            Datum::Oid(id)
        }
        F::LoOpen => Datum::Int4(open(id, int_at(args, 1), run)?),
        F::LoClose => {
            *descriptors(run)?.get(int_at(args, 0))? = None;
            Datum::Int4(0)
        }
        F::Loread => {
            let d = descriptor(args, run)?;
            if !d.readable {
                bail!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "large object descriptor {} was not opened for reading",
                    int_at(args, 0)
                );
            }
            let data = read(d.object, d.at, int_at(args, 1).max(0), run.cx)?;
            seek(args, d.at + data.len() as i64, run)?;
            Datum::bytea(&data)
        }
        F::Lowrite => {
            writes("lowrite()", run)?;
            let d = writable(args, run)?;
            let data = bytes(args, 1);
            write(d.object, d.at, data, run.cx)?;
            seek(args, d.at + data.len() as i64, run)?;
            Datum::Int4(data.len() as i32)
        }
        F::LoLseek => Datum::Int4(lseek(args, run)? as i32),
        F::LoLseek64 => Datum::Int8(lseek(args, run)?),
        F::LoTell => Datum::Int4(descriptor(args, run)?.at as i32),
        F::LoTell64 => Datum::Int8(descriptor(args, run)?.at),
        F::LoTruncate | F::LoTruncate64 => {
            writes("lo_truncate()", run)?;
            let d = writable(args, run)?;
            truncate(d.object, int_at(args, 1), run.cx)?;
            Datum::Int4(0)
        }
        F::LoUnlink => {
            writes("lo_unlink()", run)?;
            unlink(id, run)?;
            Datum::Int4(1)
        }
        F::LoGet => {
            permit(id, privilege::SELECT, run.cx)?;
            let (from, length) = match args.len() {
                1 => (0, SIZE_MAX),
                _ => (int_at(args, 1), int_at(args, 2)),
            };
            if length < 0 {
                bail!(INVALID_PARAMETER_VALUE, "requested length cannot be negative");
            }
            Datum::bytea(&read(id, from, length, run.cx)?)
        }
        F::LoPut => {
            writes("lo_put()", run)?;
            permit(id, privilege::UPDATE, run.cx)?;
            write(id, int_at(args, 1), bytes(args, 2), run.cx)?;
            Datum::text("")
        }
        F::LoImport => {
            let path = text_at(args, 0);
            let mut file = server_file::open(Path::new(path)).map_err(|e| {
                let why = reason(&e);
                match e.kind() {
                    ErrorKind::InvalidInput => {
                        err!(WRONG_OBJECT_TYPE, "could not open server file \"{path}\": {why}")
                    }
                    _ => err!(UNDEFINED_FILE, "could not open server file \"{path}\": {why}"),
                }
            })?;
            let id = create(oid_at(args, 1), "lo_import()", run)?;
            let failed = |e: std::io::Error| {
                err!(IO_ERROR, "could not read server file \"{path}\": {}", reason(&e))
            };
            let mut at = 0;
            let mut take = |piece: &[u8]| {
                write(id, at, piece, run.cx)?;
                at += piece.len() as i64;
                Ok(())
            };
            server_file::read(&mut file, u64::MAX, &failed, &mut take)?;
            Datum::Oid(id)
        }
        F::LoExport => {
            permit(id, privilege::SELECT, run.cx)?;
            let path = text_at(args, 1);
            let failed = |e: std::io::Error| {
                err!(UNDEFINED_FILE, "could not create server file \"{path}\": {}", reason(&e))
            };
            let mut file = crate::copy::make_file(path).map_err(failed)?;
            let (mut at, end) = (0, size(id, run.cx)?);
            while at < end {
                sched::check_interrupts()?;
                let data = read(id, at, EXPORT_BYTES, run.cx)?;
                std::io::Write::write_all(&mut file, &data).map_err(failed)?;
                at += EXPORT_BYTES;
            }
            Datum::Int4(1)
        }
        _ => return Ok(None),
    }))
}

/// What the system says of a file, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn bytes(args: &[Datum], n: usize) -> &[u8] {
    match args.get(n) {
        Some(Datum::Bytea(bytes)) => bytes,
        _ => &[],
    }
}

fn writes(what: &str, run: &Run<'_, '_>) -> Result<()> {
    if run.cx.tx.read_only() {
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {what} in a read-only transaction");
    }
    Ok(())
}

fn descriptors<'r>(run: &'r mut Run<'_, '_>) -> Result<&'r mut LargeObjects> {
    let none = || base::Error::unsupported("a large object outside of sessions");
    run.cx.hooks.large_objects().ok_or_else(none)
}

/// The descriptor in the first argument.
fn descriptor(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Descriptor> {
    let number = int_at(args, 0);
    let found = descriptors(run)?.get(number)?.clone();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "invalid large-object descriptor: {number}"))
}

fn writable(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Descriptor> {
    let found = descriptor(args, run)?;
    if !found.writable {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "large object descriptor {} was not opened for writing",
            int_at(args, 0)
        );
    }
    Ok(found)
}

fn seek(args: &[Datum], to: i64, run: &mut Run<'_, '_>) -> Result<()> {
    if let Some(found) = descriptors(run)?.get(int_at(args, 0))? {
        found.at = to;
    }
    Ok(())
}

fn lseek(args: &[Datum], run: &mut Run<'_, '_>) -> Result<i64> {
    let d = descriptor(args, run)?;
    let offset = int_at(args, 1);
    let from = match int_at(args, 2) {
        0 => 0,
        1 => d.at,
        2 => size(d.object, run.cx)?,
        other => bail!(INVALID_PARAMETER_VALUE, "invalid whence setting: {other}"),
    };
    let to = from.saturating_add(offset);
    if !(0..=SIZE_MAX).contains(&to) {
        bail!(INVALID_PARAMETER_VALUE, "invalid large object seek target: {to}");
    }
    if args.len() == 3 && matches!(args[1], Datum::Int4(_)) && to > i64::from(i32::MAX) {
        let number = int_at(args, 0);
        bail!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "lo_lseek result out of range for large-object descriptor {number}"
        );
    }
    seek(args, to, run)?;
    Ok(to)
}

/// Runs a statement over the tables and gives back the first row.
fn ask(sql: &str, cx: &mut ExecContext<'_>) -> Result<Option<Vec<Datum>>> {
    let mut first = None;
    spi::query(sql, cx, &mut |row| {
        first.get_or_insert_with(|| row.to_vec());
        Ok(())
    })?;
    Ok(first)
}

fn has_tables(cx: &mut ExecContext<'_>) -> bool {
    cx.catalog_tx.view().large_object_table("pg_largeobject").is_some()
}

/// Makes the tables, unless they are there.
fn make_tables(cx: &mut ExecContext<'_>) -> Result<()> {
    if has_tables(cx) {
        return Ok(());
    }
    crate::relation_lock::lock(cx, LOCK, LockMode::Exclusive)?;
    if has_tables(cx) {
        return Ok(());
    }
    let system =
        || spi::As { role: Some((ids::SUPERUSER, "postgres".to_owned())), ..Default::default() };
    for sql in [
        format!(
            "CREATE TABLE {DATA} (loid oid NOT NULL, pageno int4 NOT NULL, data bytea NOT NULL, \
             CONSTRAINT pg_largeobject_loid_pn_index PRIMARY KEY (loid, pageno))"
        ),
        format!(
            "CREATE TABLE {METADATA} (oid oid NOT NULL, lomowner oid NOT NULL, lomacl aclitem[], \
             CONSTRAINT pg_largeobject_metadata_oid_index PRIMARY KEY (oid))"
        ),
        format!("GRANT SELECT ON {METADATA} TO PUBLIC"),
    ] {
        spi::statement_as(&sql, &system(), cx)?;
    }
    Ok(())
}

/// A new large object; 0: of any oid.
fn create(id: u32, what: &str, run: &mut Run<'_, '_>) -> Result<u32> {
    writes(what, run)?;
    make_tables(run.cx)?;
    let id = match id {
        0 => crate::relation_lock::new_oid(run.cx, 0)?,
        id => id,
    };
    let owner = run.cx.role;
    ask(&format!("INSERT INTO {METADATA} VALUES ({id}, {owner}, NULL)"), run.cx)?;
    Ok(id)
}

/// The owner and the rights of a large object; None: there is none.
fn metadata(id: u32, cx: &mut ExecContext<'_>) -> Result<Option<(u32, Option<Vec<String>>)>> {
    if !has_tables(cx) {
        return Ok(None);
    }
    let sql = format!("SELECT lomowner, lomacl FROM {METADATA} WHERE oid = {id}");
    Ok(ask(&sql, cx)?.map(|row| {
        let word = |d: &Datum| match d {
            Datum::Text(word) => word.to_string(),
            _ => String::new(),
        };
        let items = match &row[1] {
            Datum::Array(items) => Some(items.items.iter().map(word).collect()),
            _ => None,
        };
        (oid_at(&row, 0), items)
    }))
}

fn missing(id: u32) -> base::Error {
    err!(UNDEFINED_OBJECT, "large object {id} does not exist")
}

/// Whether there is a large object with this oid.
///
/// # Errors
/// I/O.
pub fn exists(id: u32, cx: &mut ExecContext<'_>) -> Result<bool> {
    metadata(id, cx).map(|found| found.is_some())
}

/// `42704`, or `42501` unless the session's role owns the large object.
///
/// # Errors
/// See above.
pub fn require_owner(id: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    let (owner, _) = metadata(id, cx)?.ok_or_else(|| missing(id))?;
    let view = cx.catalog_tx.view();
    if !crate::rights::of(cx, &view).has_rights_of(cx.role, owner) {
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of large object {id}");
    }
    Ok(())
}

/// The rights on a large object, those of its owner if no GRANT named it.
fn items(owner: u32, stored: Option<Vec<String>>, cx: &mut ExecContext<'_>) -> Vec<AclItem> {
    let view = cx.catalog_tx.view();
    match stored {
        Some(words) => words.iter().filter_map(|w| super::objects::item(w, &view)).collect(),
        None => vec![own(owner)],
    }
}

fn own(owner: u32) -> AclItem {
    let privileges = privilege::SELECT | privilege::UPDATE;
    AclItem { grantee: owner, grantor: owner, privileges, grantable: 0 }
}

/// `42501` unless the role may read (SELECT) or write (UPDATE).
fn permit(id: u32, right: u16, cx: &mut ExecContext<'_>) -> Result<()> {
    let (owner, stored) = metadata(id, cx)?.ok_or_else(|| missing(id))?;
    if cx.settings.bool(base::settings::setting::LO_COMPAT_PRIVILEGES) {
        return Ok(());
    }
    let items = items(owner, stored, cx);
    let view = cx.catalog_tx.view();
    let rights = crate::rights::of(cx, &view);
    let has = |i: &AclItem| {
        i.privileges & right != 0 && (i.grantee == 0 || rights.has_rights_of(cx.role, i.grantee))
    };
    if rights.is_superuser(cx.role) || items.iter().any(has) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for large object {id}"))
}

fn open(id: u32, mode: i64, run: &mut Run<'_, '_>) -> Result<i32> {
    if mode & (READ | WRITE) == 0 {
        bail!(INVALID_PARAMETER_VALUE, "invalid flags for opening a large object: {mode}");
    }
    let writable = mode & WRITE != 0;
    if writable {
        writes("lo_open(INV_WRITE)", run)?;
    }
    if metadata(id, run.cx)?.is_none() {
        return Err(missing(id));
    }
    permit(id, privilege::SELECT, run.cx)?;
    if writable {
        permit(id, privilege::UPDATE, run.cx)?;
    }
    let descriptor = Descriptor { object: id, readable: true, writable, at: 0 };
    Ok(descriptors(run)?.add(descriptor))
}

/// Bytes up to the last that was written.
fn size(id: u32, cx: &mut ExecContext<'_>) -> Result<i64> {
    let sql = format!(
        "SELECT pageno, length(data) FROM {DATA} WHERE loid = {id} ORDER BY pageno DESC LIMIT 1"
    );
    let last = ask(&sql, cx)?;
    Ok(last.map_or(0, |row| int_at(&row, 0) * PAGE + int_at(&row, 1)))
}

/// Bytes that `lo_export` reads at a time.
const EXPORT_BYTES: i64 = 16 << 20;
/// Most bytes that one value holds.
const READ_MAX: i64 = 0x3fff_ffff - 4;

fn read(id: u32, from: i64, length: i64, cx: &mut ExecContext<'_>) -> Result<Vec<u8>> {
    let end = from.saturating_add(length).min(size(id, cx)?);
    if from >= end {
        return Ok(Vec::new());
    }
    if end - from > READ_MAX {
        bail!(PROGRAM_LIMIT_EXCEEDED, "large object read request is too large");
    }
    let mut out = vec![0; (end - from) as usize];
    let (first, last) = (from / PAGE, (end - 1) / PAGE);
    let sql = format!(
        "SELECT pageno, data FROM {DATA} WHERE loid = {id} AND pageno BETWEEN {first} AND {last}"
    );
    spi::query(&sql, cx, &mut |row| {
        let (begin, data) = (int_at(row, 0) * PAGE, bytes(row, 1));
        let (a, b) = (begin.max(from), (begin + data.len() as i64).min(end));
        if a < b {
            let piece = &data[(a - begin) as usize..(b - begin) as usize];
            out[(a - from) as usize..(b - from) as usize].copy_from_slice(piece);
        }
        Ok(())
    })?;
    Ok(out)
}

fn write(id: u32, at: i64, data: &[u8], cx: &mut ExecContext<'_>) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    if at < 0 || at.saturating_add(data.len() as i64) > SIZE_MAX {
        bail!(INVALID_PARAMETER_VALUE, "invalid large object write request size: {}", data.len());
    }
    let end = at + data.len() as i64;
    let pages: Vec<i64> = (at / PAGE..=(end - 1) / PAGE).collect();
    for pages in pages.chunks(PAGES_AT_ONCE) {
        sched::check_interrupts()?;
        let (first, last) = (pages[0], pages[pages.len() - 1]);
        let mut old = std::collections::HashMap::new();
        let range = format!("loid = {id} AND pageno BETWEEN {first} AND {last}");
        spi::query(&format!("SELECT pageno, data FROM {DATA} WHERE {range}"), cx, &mut |row| {
            old.insert(int_at(row, 0), bytes(row, 1).to_vec());
            Ok(())
        })?;
        if !old.is_empty() {
            ask(&format!("DELETE FROM {DATA} WHERE {range}"), cx)?;
        }
        let mut values = Vec::with_capacity(pages.len());
        for page in pages {
            let begin = page * PAGE;
            let (a, b) = (begin.max(at), (begin + PAGE).min(end));
            let mut content = old.remove(page).unwrap_or_default();
            if content.len() < (b - begin) as usize {
                content.resize((b - begin) as usize, 0);
            }
            content[(a - begin) as usize..(b - begin) as usize]
                .copy_from_slice(&data[(a - at) as usize..(b - at) as usize]);
            values.push(format!("({id}, {page}, '\\x{}')", hex(&content)));
        }
        ask(&format!("INSERT INTO {DATA} VALUES {}", values.join(", ")), cx)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn truncate(id: u32, length: i64, cx: &mut ExecContext<'_>) -> Result<()> {
    if !(0..=SIZE_MAX).contains(&length) {
        bail!(INVALID_PARAMETER_VALUE, "invalid large object truncation target: {length}");
    }
    let now = size(id, cx)?;
    if length > now {
        // One byte at the new end: all before it reads as zeroes.
        return write(id, length - 1, &[0], cx);
    }
    let kept = length % PAGE;
    let page = length / PAGE;
    let rest = read(id, page * PAGE, kept, cx)?;
    ask(&format!("DELETE FROM {DATA} WHERE loid = {id} AND pageno >= {page}"), cx)?;
    write(id, page * PAGE, &rest, cx)
}

fn unlink(id: u32, run: &mut Run<'_, '_>) -> Result<()> {
    if metadata(id, run.cx)?.is_none() {
        return Err(missing(id));
    }
    if !run.cx.settings.bool(base::settings::setting::LO_COMPAT_PRIVILEGES) {
        require_owner(id, run.cx)?;
    }
    ask(&format!("DELETE FROM {DATA} WHERE loid = {id}"), run.cx)?;
    ask(&format!("DELETE FROM {METADATA} WHERE oid = {id}"), run.cx)?;
    if let Ok(open) = descriptors(run) {
        let of = |d: &Option<Descriptor>| d.as_ref().is_some_and(|d| d.object == id);
        open.open.iter_mut().filter(|d| of(d)).for_each(|d| *d = None);
    }
    Ok(())
}

/// ALTER LARGE OBJECT … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(id: u32, owner: u32, cx: &mut ExecContext<'_>) -> Result<()> {
    require_owner(id, cx)?;
    ask(&format!("UPDATE {METADATA} SET lomowner = {owner} WHERE oid = {id}"), cx).map(drop)
}

/// GRANT and REVOKE ON LARGE OBJECT.
///
/// # Errors
/// `42704`, `42501`.
pub fn grant(
    id: u32,
    (grant, rights, option): (bool, u16, bool),
    grantees: &[u32],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    require_owner(id, cx)?;
    let Some((owner, stored)) = metadata(id, cx)? else { return Err(missing(id)) };
    let mut all = items(owner, stored, cx);
    for grantee in grantees {
        let at = all.iter().position(|i| i.grantee == *grantee && i.grantor == owner);
        let at = at.unwrap_or_else(|| {
            let none = AclItem { grantee: *grantee, grantor: owner, privileges: 0, grantable: 0 };
            all.push(none);
            all.len() - 1
        });
        let item = &mut all[at];
        match grant {
            true => {
                item.privileges |= rights;
                item.grantable |= if option { rights } else { 0 };
            }
            false => {
                item.grantable &= !rights;
                item.privileges &= if option { u16::MAX } else { !rights };
            }
        }
    }
    all.retain(|i| i.privileges != 0);
    let view = cx.catalog_tx.view();
    let known = crate::rights::of(cx, &view);
    let words: Vec<String> = all.iter().map(|i| quoted(&known.text(i))).collect();
    let list = format!("{{{}}}", words.join(",")).replace('\'', "''");
    ask(&format!("UPDATE {METADATA} SET lomacl = '{list}' WHERE oid = {id}"), cx).map(drop)
}

/// As an array's element.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
