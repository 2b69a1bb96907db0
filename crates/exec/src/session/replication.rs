//! Functions of logical decoding and of replication slots; those of origins are in [`crate::origins`].

use base::{Lsn, Result, err};
use types::func::SessionFunction as F;
use types::{Datum, FunctionRow, oids};

use crate::logical_stream::{LogicalStream, create_slot};
use crate::rights;
use crate::run::Run;
use crate::session::args::{int_at, text_at};
use crate::session::objects::record;

/// Functions of this file.
///
/// # Errors
/// `42501`, `42704`, `42710`, `55000` and those of decoding.
pub fn call(
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    let flag = |n: usize| matches!(args.get(n), Some(Datum::Bool(true)));
    Ok(Some(match function {
        F::PgCreateLogicalReplicationSlot => {
            require_right(run)?;
            let (name, plugin) = (text_at(args, 0), text_at(args, 1));
            let at = create_slot(name, plugin, (flag(2), flag(3)), run.cx)?;
            if flag(2) {
                let pid = own_pid(run)?;
                run.cx.engine.storage.slots().acquire(name, pid)?;
            }
            record(row, vec![Datum::text(name), lsn(at)])
        }
        F::PgCreatePhysicalReplicationSlot => {
            require_right(run)?;
            let (name, temporary) = (text_at(args, 0), flag(2));
            logical::slot::check_name(name)?;
            let storage = &run.cx.engine.storage;
            let most = run.cx.settings.int(base::settings::setting::MAX_REPLICATION_SLOTS);
            if storage.slots().all().len() >= most as usize {
                return Err(err!(CONFIGURATION_LIMIT_EXCEEDED, "all replication slots are in use")
                    .hint("Free one or increase max_replication_slots."));
            }
            let state = logical::slot::PHYSICAL.to_vec();
            let position = || storage.redo_position();
            let slot = storage.slots().create(name, temporary, state, position)?;
            if temporary {
                let pid = own_pid(run)?;
                run.cx.engine.storage.slots().acquire(name, pid)?;
            }
            // It keeps the log from the start, asked for or not.
            let at = if flag(1) { lsn(slot.restart) } else { Datum::Null };
            record(row, vec![Datum::text(name), at])
        }
        F::PgDropReplicationSlot => {
            require_right(run)?;
            drop_slot(text_at(args, 0), run)?;
            Datum::text("")
        }
        F::PgReplicationSlotAdvance => {
            require_right(run)?;
            let (name, upto) = (text_at(args, 0), Lsn(int_at(args, 1) as u64));
            let mut stream = LogicalStream::open(name, &advance_options(name, run)?, run.cx)?;
            let end = run.cx.engine.storage.wal.insert_position();
            if upto.0 <= stream.confirmed().0 {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "cannot advance replication slot to {}, minimum is {}",
                    shown(upto),
                    shown(stream.confirmed())
                ));
            }
            let upto = Lsn(upto.0.min(end.0));
            run.cx.engine.storage.wal.flush(upto)?;
            stream.skip_to(upto);
            let mut out = Vec::new();
            while stream.position() < upto
                && stream.next(upto, run.cx, &types::FormatContext::default(), &mut out)?
            {
                out.clear();
            }
            stream.confirm(upto, true, run.cx.engine)?;
            record(row, vec![Datum::text(name), lsn(upto)])
        }
        F::PgLogicalSlotGetChanges => changes(row, args, (true, false), run)?,
        F::PgLogicalSlotPeekChanges => changes(row, args, (false, false), run)?,
        F::PgLogicalSlotGetBinaryChanges => changes(row, args, (true, true), run)?,
        F::PgLogicalSlotPeekBinaryChanges => changes(row, args, (false, true), run)?,
        F::PgLogicalEmitMessage => {
            let content: Vec<u8> = match args.get(2) {
                Some(Datum::Bytea(bytes)) => bytes.to_vec(),
                _ => text_at(args, 2).as_bytes().to_vec(),
            };
            let end = crate::change_log::message(flag(0), text_at(args, 1), &content, run.cx)?;
            lsn(end)
        }
        _ => return crate::origins::call(function, args, run),
    }))
}

fn lsn(at: Lsn) -> Datum {
    Datum::Int8(at.0 as i64)
}

fn shown(at: Lsn) -> String {
    format!("{:X}/{:X}", at.0 >> 32, at.0 & 0xffff_ffff)
}

/// `42501` unless the role may use replication slots.
fn require_right(run: &mut Run<'_, '_>) -> Result<()> {
    let view = run.cx.catalog_tx.view();
    let may = rights::of(run.cx, &view).is_superuser(run.cx.role)
        || view.role(run.cx.role).is_some_and(|role| role.replication);
    if may {
        return Ok(());
    }
    Err(err!(
        INSUFFICIENT_PRIVILEGE,
        "must be superuser or replication role to use replication slots"
    ))
}

fn drop_slot(name: &str, run: &mut Run<'_, '_>) -> Result<()> {
    let slots = run.cx.engine.storage.slots();
    if slots.get(name).is_none() {
        base::bail!(UNDEFINED_OBJECT, "replication slot \"{name}\" does not exist");
    }
    let own = own_pid(run)?;
    slots.acquire(name, own)?;
    slots.remove(name)?;
    Ok(())
}

/// The session's process id.
fn own_pid(run: &mut Run<'_, '_>) -> Result<i32> {
    let acting = run.cx.acting();
    match run.cx.hooks.call(F::PgBackendPid, &[], acting)? {
        Datum::Int4(pid) => Ok(pid),
        _ => Ok(0),
    }
}

/// Options by which any plugin runs without output that counts.
fn advance_options(name: &str, run: &Run<'_, '_>) -> Result<Vec<(String, Option<String>)>> {
    let state = crate::logical_stream::slot_state(run.cx.engine, name)?;
    let option = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    Ok(match state.plugin.as_str() {
        "pgoutput" => vec![option("proto_version", "1"), option("publication_names", "\"\"\"\"")],
        _ => Vec::new(),
    })
}

fn changes(
    row: &'static FunctionRow,
    args: &[Datum],
    (advance, binary): (bool, bool),
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    require_right(run)?;
    let name = match args.first() {
        Some(Datum::Text(name)) => name.to_string(),
        _ => base::bail!(NULL_VALUE_NOT_ALLOWED, "slot name must not be null"),
    };
    let upto = match args.get(1) {
        Some(Datum::Int8(at)) => Some(Lsn(*at as u64)),
        _ => None,
    };
    let count = match args.get(2) {
        Some(Datum::Int4(count)) if *count > 0 => Some(*count as usize),
        _ => None,
    };
    let options = options(args.get(3..).unwrap_or_default())?;
    let pid = own_pid(run)?;
    let slots = run.cx.engine.storage.slots();
    slots.acquire(&name, pid)?;
    let out = read(&name, &options, (upto, count), (advance, binary), row, run);
    run.cx.engine.storage.slots().release(&name, pid);
    out
}

/// Pairs out of the variadic arguments, or out of the array that stands for them.
fn options(given: &[Datum]) -> Result<Vec<(String, Option<String>)>> {
    let items: Vec<Datum> = match given {
        [Datum::Array(array)] => array.items.to_vec(),
        [Datum::Null] => base::bail!(NULL_VALUE_NOT_ALLOWED, "options array must not be null"),
        items => items.to_vec(),
    };
    if items.len() % 2 != 0 {
        base::bail!(ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements");
    }
    let text = |d: &Datum| match d {
        Datum::Text(text) => Some(text.to_string()),
        _ => None,
    };
    Ok(items.chunks(2).map(|pair| (text(&pair[0]).unwrap_or_default(), text(&pair[1]))).collect())
}

fn read(
    name: &str,
    options: &[(String, Option<String>)],
    (upto, count): (Option<Lsn>, Option<usize>),
    (advance, binary): (bool, bool),
    row: &'static FunctionRow,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let mut stream = LogicalStream::open(name, options, run.cx)?;
    if stream.is_binary() && !binary {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "logical decoding output plugin \"{}\" produces binary output, but function \"{}\" expects textual data",
            stream.plugin(),
            "pg_logical_slot_get_changes(name,pg_lsn,integer,text[])"
        ));
    }
    let wal = &run.cx.engine.storage.wal;
    let end = wal.insert_position();
    wal.flush(end)?;
    let end = Lsn(upto.map_or(end.0, |upto| upto.0.min(end.0)));
    let format = run.cx.format.clone();
    let (mut pieces, mut rows) = (Vec::new(), Vec::new());
    let mut reached = stream.position();
    while stream.next(end, run.cx, &format, &mut pieces)? {
        for piece in pieces.drain(..) {
            let data = match binary {
                true => Datum::Bytea(piece.data.into()),
                false => Datum::text(&String::from_utf8_lossy(&piece.data)),
            };
            rows.push(record(row, vec![lsn(piece.lsn), Datum::Oid(piece.xid as u32), data]));
        }
        reached = stream.position();
        if count.is_some_and(|count| rows.len() >= count) {
            break;
        }
    }
    if count.is_none_or(|count| rows.len() < count) {
        reached = stream.position();
    }
    if advance && reached > stream.confirmed() {
        stream.confirm(reached, true, run.cx.engine)?;
    }
    Ok(Datum::array(oids::RECORD, rows))
}
