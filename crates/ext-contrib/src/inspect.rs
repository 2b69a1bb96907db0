//! Extensions that look at pages: `pg_prewarm`, `pg_freespacemap`, `pg_visibility`, `pgstattuple`, `amcheck`,
//! `pageinspect`, `pgrowlocks`, and `old_snapshot`, whose mapping is always empty.
//!
//! Pages are the server's own: sizes differ from PostgreSQL's, a page that everybody sees is one whose rows need no
//! freezing either, and free space is what the page has, not what a map says.

use std::sync::Arc;

use base::settings::{live_bool, setting};
use base::{Oid, Result, bail, err};
use catalog::{Index, Table};
use exec::context::ExecContext;
use exec::inspect::{self, Contents, IndexPages, Paged};
use exec::native::{Native, SetCall, Symbols};
use types::Datum;
use types::datum::Shape;
use types::extension::Library;
use types::oids::{BOOL, BYTEA, FLOAT8, INT2, INT4, INT8, OID, PG_LSN, RECORD, TEXT, TID, XID};

/// The libraries, whose functions all need the session.
pub static LIBRARIES: [Library; 8] = [
    Library { name: "pg_prewarm", ..Library::EMPTY },
    Library { name: "pg_freespacemap", ..Library::EMPTY },
    Library { name: "pg_visibility", ..Library::EMPTY },
    Library { name: "pgstattuple", ..Library::EMPTY },
    Library { name: "amcheck", ..Library::EMPTY },
    Library { name: "pageinspect", ..Library::EMPTY },
    Library { name: "pgrowlocks", ..Library::EMPTY },
    Library { name: "old_snapshot", ..Library::EMPTY },
];

/// Their functions.
pub const SYMBOLS: [(&str, Symbols); 8] = [
    (
        "pg_prewarm",
        &[
            ("pg_prewarm", Native::Scalar(prewarm)),
            ("autoprewarm_dump_now", Native::Scalar(dump_pages)),
            ("autoprewarm_start_worker", Native::Scalar(start_worker)),
        ],
    ),
    ("pg_freespacemap", &[("pg_freespace", Native::Scalar(free_space))]),
    (
        "pg_visibility",
        &[
            ("pg_visibility_map", Native::Scalar(|args, cx| visibility_of_page(args, false, cx))),
            ("pg_visibility", Native::Scalar(|args, cx| visibility_of_page(args, true, cx))),
            ("pg_visibility_map_rel", Native::Set(|call, cx| visibility(call, false, cx))),
            ("pg_visibility_rel", Native::Set(|call, cx| visibility(call, true, cx))),
            ("pg_visibility_map_summary", Native::Scalar(visibility_summary)),
            ("pg_check_frozen", Native::Set(no_faults)),
            ("pg_check_visible", Native::Set(no_faults)),
            ("pg_truncate_visibility_map", Native::Scalar(truncate_map)),
        ],
    ),
    (
        "pgstattuple",
        &[
            ("pgstattuple_v1_5", Native::Scalar(|args, cx| statistics(named(&args[0], cx)?, cx))),
            ("pgstattuplebyid_v1_5", Native::Scalar(|args, cx| statistics(oid(&args[0]), cx))),
            ("pg_relpages_v1_5", Native::Scalar(|args, cx| pages(named(&args[0], cx)?, cx))),
            ("pg_relpagesbyid_v1_5", Native::Scalar(|args, cx| pages(oid(&args[0]), cx))),
            ("pgstattuple_approx_v1_5", Native::Scalar(approximate)),
            ("pgstatindex_v1_5", Native::Scalar(|args, cx| tree_pages(named(&args[0], cx)?, cx))),
            ("pgstatindexbyid_v1_5", Native::Scalar(|args, cx| tree_pages(oid(&args[0]), cx))),
            ("pgstatginindex_v1_5", Native::Scalar(|args, cx| pending_pages(oid(&args[0]), cx))),
            ("pgstathashindex", Native::Scalar(|args, cx| hash_pages(oid(&args[0]), cx))),
        ],
    ),
    (
        "amcheck",
        &[
            ("bt_index_check", Native::Scalar(check_index)),
            ("bt_index_parent_check", Native::Scalar(check_index)),
            ("verify_heapam", Native::Set(check_table)),
        ],
    ),
    (
        "pageinspect",
        &[
            ("get_raw_page_1_9", Native::Scalar(|args, cx| raw(&args[0], "main", &args[1], cx))),
            (
                "get_raw_page_fork_1_9",
                Native::Scalar(|args, cx| raw(&args[0], args[1].as_str(), &args[2], cx)),
            ),
            ("page_header", Native::Scalar(header)),
            ("heap_page_items", Native::Set(page_items)),
        ],
    ),
    ("pgrowlocks", &[("pgrowlocks", Native::Set(row_locks))]),
    ("old_snapshot", &[("pg_old_snapshot_time_mapping", Native::Set(|_, _| Ok(Vec::new())))]),
];

fn oid(value: &Datum) -> u32 {
    match value {
        Datum::Oid(oid) => *oid,
        other => other.to_i64().unwrap_or_default() as u32,
    }
}

/// A relation by its name as text.
fn named(value: &Datum, cx: &ExecContext<'_>) -> Result<u32> {
    types::io::input(types::oids::REGCLASS, -1, value.as_str(), cx.format).map(|value| oid(&value))
}

fn record(columns: &[(&str, Oid)], fields: Vec<Datum>) -> Datum {
    let columns = columns.iter().map(|(name, ty)| ((*name).into(), *ty)).collect();
    Datum::record(Arc::new(Shape { ty: RECORD, columns }), fields)
}

fn whole(number: u64) -> Datum {
    Datum::Int8(number as i64)
}

/// A relation with pages.
fn paged(id: u32, cx: &mut ExecContext<'_>) -> Result<Paged> {
    inspect::relation(cx, id)?.map_err(|_| {
        err!(INVALID_PARAMETER_VALUE, "fork \"main\" does not exist for this relation")
    })
}

/// A table.
fn table(id: u32, cx: &mut ExecContext<'_>) -> Result<Arc<Table>> {
    let (name, kinds) = match inspect::relation(cx, id)? {
        Ok(Paged::Table(table)) => return Ok(table),
        Ok(Paged::Index(index)) => (index.name.clone(), "indexes"),
        Err(other) => other,
    };
    Err(err!(WRONG_OBJECT_TYPE, "relation \"{name}\" is of wrong relation kind")
        .detail(format!("This operation is not supported for {kinds}.")))
}

/// The number of a block, which the table has or (`None` in the answer) has not.
fn block(value: &Datum, least: i64) -> Result<i64> {
    let number = value.to_i64().unwrap_or(-1);
    if !(least..=i64::from(u32::MAX) - 1).contains(&number) {
        bail!(INVALID_PARAMETER_VALUE, "invalid block number");
    }
    Ok(number)
}

fn prewarm(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    for (value, what) in args.iter().zip(["relation", "prewarm type", "relation fork"]) {
        if value.is_null() {
            bail!(INVALID_PARAMETER_VALUE, "{what} cannot be null");
        }
    }
    let mode = args[1].as_str();
    if !["prefetch", "read", "buffer"].contains(&mode) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid prewarm type")
            .hint("Valid prewarm types are \"prefetch\", \"read\", and \"buffer\"."));
    }
    let fork = args[2].as_str();
    if !["main", "fsm", "vm", "init"].contains(&fork) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."));
    }
    let relation = paged(oid(&args[0]), cx)?;
    if fork != "main" {
        bail!(INVALID_PARAMETER_VALUE, "fork \"{fork}\" does not exist for this relation");
    }
    let count = i64::from(relation.pages(cx)?);
    let bound = |value: &Datum, default: i64, word: &str| match value.to_i64() {
        None => Ok(default),
        Some(number) if (0..count).contains(&number) => Ok(number),
        Some(_) => Err(err!(
            INVALID_PARAMETER_VALUE,
            "{word} block number must be between 0 and {}",
            count - 1
        )),
    };
    let first = bound(&args[3], 0, "starting")?;
    let last = bound(&args[4], count - 1, "ending")?;
    if last < first {
        return Ok(Datum::Int8(0));
    }
    relation.read(cx, first as u32..=last as u32).map(whole)
}

fn dump_pages(_args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    exec::prewarm::dump(&cx.engine.storage).map(whole)
}

/// The server's thread is always there; the setting says whether it does anything.
fn start_worker(_args: &[Datum], _cx: &mut ExecContext<'_>) -> Result<Datum> {
    let state = match live_bool(setting::PG_PREWARM_AUTOPREWARM) {
        true => "worker is already running",
        false => "is disabled",
    };
    Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "autoprewarm {state}")
        .hint("pg_prewarm.autoprewarm switches it on and off."))
}

fn free_space(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let relation = paged(oid(&args[0]), cx)?;
    let number = block(&args[1], 0)?;
    let Paged::Table(table) = &relation else { return Ok(Datum::Int2(0)) };
    if number >= i64::from(relation.pages(cx)?) {
        return Ok(Datum::Int2(0));
    }
    // In steps of 32 bytes, as PostgreSQL's map has them.
    let free = inspect::page_contents(cx, table, number as u32)?.free_bytes;
    Ok(Datum::Int2((free / 32 * 32) as i16))
}

/// The names of what is said of a page.
const SEEN: [(&str, Oid); 4] =
    [("blkno", INT8), ("all_visible", BOOL), ("all_frozen", BOOL), ("pd_all_visible", BOOL)];

fn seen(table: &Table, number: u32, cx: &ExecContext<'_>) -> Result<[Datum; 3]> {
    let (noted, is) = inspect::page_visibility(cx, table, number)?;
    Ok([Datum::Bool(noted), Datum::Bool(noted), Datum::Bool(is)])
}

fn visibility_of_page(args: &[Datum], with_page: bool, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let table = table(oid(&args[0]), cx)?;
    let number = block(&args[1], 0)?;
    let pages = Paged::Table(table.clone()).pages(cx)?;
    let values = match number < i64::from(pages) {
        true => seen(&table, number as u32, cx)?,
        false => std::array::from_fn(|_| Datum::Bool(false)),
    };
    let count = if with_page { 3 } else { 2 };
    Ok(record(&SEEN[1..=count], values.into_iter().take(count).collect()))
}

fn visibility(call: &SetCall<'_>, with_page: bool, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let table = table(oid(&call.args[0]), cx)?;
    let count = if with_page { 4 } else { 3 };
    let mut out = Vec::new();
    for number in 0..Paged::Table(table.clone()).pages(cx)? {
        sched::check_interrupts()?;
        let values = [Datum::Int8(number.into())].into_iter().chain(seen(&table, number, cx)?);
        out.push(record(&SEEN[..count], values.take(count).collect()));
    }
    Ok(out)
}

fn visibility_summary(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let table = table(oid(&args[0]), cx)?;
    let mut count = 0;
    for number in 0..Paged::Table(table.clone()).pages(cx)? {
        sched::check_interrupts()?;
        count += u64::from(inspect::page_visibility(cx, &table, number)?.0);
    }
    let columns = [("all_visible", INT8), ("all_frozen", INT8)];
    Ok(record(&columns, vec![whole(count), whole(count)]))
}

/// Rows on pages that everybody is said to see, and that somebody doesn't: the map is of pages that were looked at, and
/// it forgets a page before it changes.
fn no_faults(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    table(oid(&call.args[0]), cx).map(|_| Vec::new())
}

/// The map is in memory and needs no repair.
fn truncate_map(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    table(oid(&args[0]), cx).map(|_| Datum::text(""))
}

/// Tuples and free space of a relation.
fn counted(id: u32, cx: &mut ExecContext<'_>) -> Result<(Contents, u64)> {
    let (name, kinds) = match inspect::relation(cx, id)? {
        Ok(Paged::Table(table)) => {
            let (held, pages) = inspect::table_contents(cx, &table)?;
            return Ok((held, u64::from(pages)));
        }
        Ok(Paged::Index(index)) => {
            let Some(held) = inspect::index_contents(cx, &index)? else {
                let method = index.method.name();
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "index \"{}\" ({method} index) is not supported",
                    index.name
                );
            };
            let contents = Contents {
                live: held.entries,
                live_bytes: held.entry_bytes,
                free_bytes: held.free_bytes,
                ..Contents::default()
            };
            return Ok((contents, held.pages));
        }
        Err(other) => other,
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "cannot get tuple-level statistics for relation \"{name}\"")
        .detail(format!("This operation is not supported for {kinds}.")))
}

fn share(part: u64, whole: u64) -> Datum {
    // Two digits, as PostgreSQL gives.
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    Datum::Float8((percent * 100.0).round() / 100.0)
}

fn statistics(id: u32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (held, pages) = counted(id, cx)?;
    let bytes = pages * 8192;
    let columns = [
        ("table_len", INT8),
        ("tuple_count", INT8),
        ("tuple_len", INT8),
        ("tuple_percent", FLOAT8),
        ("dead_tuple_count", INT8),
        ("dead_tuple_len", INT8),
        ("dead_tuple_percent", FLOAT8),
        ("free_space", INT8),
        ("free_percent", FLOAT8),
    ];
    let fields = vec![
        whole(bytes),
        whole(held.live),
        whole(held.live_bytes),
        share(held.live_bytes, bytes),
        whole(held.dead),
        whole(held.dead_bytes),
        share(held.dead_bytes, bytes),
        whole(held.free_bytes),
        share(held.free_bytes, bytes),
    ];
    Ok(record(&columns, fields))
}

/// The contents of the pages of an index, which must be of a method.
fn occupied<T>(
    id: u32,
    method: &str,
    wanted: fn(IndexPages) -> Option<T>,
    cx: &mut ExecContext<'_>,
) -> Result<T> {
    let found = match inspect::relation(cx, id)? {
        Ok(Paged::Index(index)) => {
            wanted(inspect::index_pages(cx, &index)?).ok_or(index.name.clone())
        }
        Ok(Paged::Table(table)) => Err(table.name.clone()),
        Err((name, _)) => Err(name),
    };
    found.map_err(|name| err!(WRONG_OBJECT_TYPE, "relation \"{name}\" is not a {method} index"))
}

fn tree_pages(id: u32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let of_tree = |pages| match pages {
        IndexPages::Tree(pages) => Some(pages),
        _ => None,
    };
    let pages = occupied(id, "btree", of_tree, cx)?;
    let columns = [
        ("version", INT4),
        ("tree_level", INT4),
        ("index_size", INT8),
        ("root_block_no", INT8),
        ("internal_pages", INT8),
        ("leaf_pages", INT8),
        ("empty_pages", INT8),
        ("deleted_pages", INT8),
        ("avg_leaf_density", FLOAT8),
        ("leaf_fragmentation", FLOAT8),
    ];
    // Two digits behind the point, as PostgreSQL's has them.
    let percent =
        |part: u64, all: u64| Datum::Float8((part as f64 / all as f64 * 10_000.0).round() / 100.0);
    let leaves = pages.leaves + pages.empty;
    let fields = vec![
        Datum::Int4(4),
        Datum::Int4(i32::from(pages.level)),
        whole(pages.all * 8192),
        whole(u64::from(pages.root)),
        whole(pages.inner),
        whole(pages.leaves),
        whole(pages.empty),
        whole(pages.unused),
        percent(pages.leaf_bytes - pages.free_bytes.min(pages.leaf_bytes), pages.leaf_bytes),
        percent(pages.out_of_order, leaves),
    ];
    Ok(record(&columns, fields))
}

fn pending_pages(id: u32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let of_gin = |pages| match pages {
        IndexPages::Pending(rows, bytes) => Some((rows, bytes)),
        _ => None,
    };
    let (rows, bytes) = occupied(id, "GIN", of_gin, cx)?;
    let columns = [("version", INT4), ("pending_pages", INT4), ("pending_tuples", INT8)];
    let pages = Datum::Int4(bytes.div_ceil(8192).min(i32::MAX as u64) as i32);
    Ok(record(&columns, vec![Datum::Int4(2), pages, whole(rows)]))
}

fn hash_pages(id: u32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let of_hash = |pages| match pages {
        IndexPages::Hash(pages) => Some(pages),
        _ => None,
    };
    let pages = occupied(id, "hash", of_hash, cx)?;
    let columns = [
        ("version", INT4),
        ("bucket_pages", INT8),
        ("overflow_pages", INT8),
        ("bitmap_pages", INT8),
        ("unused_pages", INT8),
        ("live_items", INT8),
        ("dead_items", INT8),
        ("free_percent", FLOAT8),
    ];
    let all = pages.room.max(1) as f64;
    let fields = vec![
        Datum::Int4(4),
        whole(pages.buckets),
        whole(pages.overflows),
        // Free pages are in a list, which needs no pages.
        whole(0),
        whole(pages.unused),
        whole(pages.entries),
        whole(0),
        Datum::Float8(100.0 - pages.entries as f64 / all * 100.0),
    ];
    Ok(record(&columns, fields))
}

/// All pages are read: what is approximate costs as much here.
fn approximate(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (name, kinds) = match inspect::relation(cx, oid(&args[0]))? {
        Ok(Paged::Table(table)) => return approximate_of(&table, cx),
        Ok(Paged::Index(index)) => (index.name.clone(), "indexes"),
        Err(other) => other,
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "relation \"{name}\" is of wrong relation kind")
        .detail(format!("This operation is not supported for {kinds}.")))
}

fn approximate_of(table: &Table, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (held, pages) = inspect::table_contents(cx, table)?;
    let bytes = u64::from(pages) * 8192;
    let percent = |part: u64| match bytes {
        0 => Datum::Float8(0.0),
        _ => Datum::Float8(100.0 * part as f64 / bytes as f64),
    };
    let columns = [
        ("table_len", INT8),
        ("scanned_percent", FLOAT8),
        ("approx_tuple_count", INT8),
        ("approx_tuple_len", INT8),
        ("approx_tuple_percent", FLOAT8),
        ("dead_tuple_count", INT8),
        ("dead_tuple_len", INT8),
        ("dead_tuple_percent", FLOAT8),
        ("approx_free_space", INT8),
        ("approx_free_percent", FLOAT8),
    ];
    let fields = vec![
        whole(bytes),
        Datum::Float8(if pages == 0 { 0.0 } else { 100.0 }),
        whole(held.live),
        whole(held.live_bytes),
        percent(held.live_bytes),
        whole(held.dead),
        whole(held.dead_bytes),
        percent(held.dead_bytes),
        whole(held.free_bytes),
        percent(held.free_bytes),
    ];
    Ok(record(&columns, fields))
}

fn pages(id: u32, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let relation = match inspect::relation(cx, id)? {
        Ok(relation) => relation,
        Err((name, kinds)) => {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot get page count of relation \"{name}\"")
                .detail(format!("This operation is not supported for {kinds}.")));
        }
    };
    relation.pages(cx).map(|count| whole(count.into()))
}

/// A B-tree.
fn tree(id: u32, cx: &mut ExecContext<'_>) -> Result<Arc<Index>> {
    let name = match inspect::relation(cx, id)? {
        Ok(Paged::Index(index)) if index.method.is_btree() => {
            if index.invalid {
                return Err(err!(FEATURE_NOT_SUPPORTED, "cannot check index \"{}\"", index.name)
                    .detail("Index is not valid."));
            }
            return Ok(index);
        }
        Ok(Paged::Index(index)) => index.name.clone(),
        Ok(Paged::Table(table)) => {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", table.name)
        }
        Err((name, "partitioned indexes")) => name,
        Err((name, _)) => bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not an index"),
    };
    Err(err!(
        FEATURE_NOT_SUPPORTED,
        "only B-Tree indexes are supported as targets for verification"
    )
    .detail(format!("Relation \"{name}\" is not a B-Tree index.")))
}

fn check_index(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let index = tree(oid(&args[0]), cx)?;
    let with_rows = args.get(1) == Some(&Datum::Bool(true));
    let faults = inspect::index_faults(cx, &index, with_rows)?;
    match faults.first() {
        None => Ok(Datum::text("")),
        Some(first) => Err(err!(INDEX_CORRUPTED, "index \"{}\": {first}", index.name)),
    }
}

fn check_table(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let [relation, stop, toast, skip, start, end] = call.args else {
        return Err(base::Error::internal("verify_heapam has six arguments"));
    };
    if relation.is_null() {
        bail!(INVALID_PARAMETER_VALUE, "relation cannot be null");
    }
    for (value, name) in [(stop, "on_error_stop"), (toast, "check_toast"), (skip, "skip")] {
        if value.is_null() {
            bail!(INVALID_PARAMETER_VALUE, "{name} cannot be null");
        }
    }
    let skip = skip.as_str().to_ascii_lowercase();
    if !["all-visible", "all-frozen", "none"].contains(&skip.as_str()) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid skip option")
            .hint("Valid skip options are \"all-visible\", \"all-frozen\", and \"none\"."));
    }
    let id = oid(relation);
    let table = match inspect::relation(cx, id)? {
        Ok(Paged::Table(table)) => table,
        Ok(Paged::Index(index)) => return Err(not_checkable(&index.name, "indexes")),
        Err((name, kinds)) => return Err(not_checkable(&name, kinds)),
    };
    let pages = i64::from(Paged::Table(table.clone()).pages(cx)?);
    if pages > 0 {
        for (value, word) in [(start, "starting"), (end, "ending")] {
            if value.to_i64().is_some_and(|number| !(0..pages).contains(&number)) {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "{word} block number must be between 0 and {}",
                    pages - 1
                );
            }
        }
    }
    let columns = [("blkno", INT8), ("offnum", INT4), ("attnum", INT4), ("msg", TEXT)];
    let mut faults = inspect::table_faults(cx, &table)?;
    if *stop == Datum::Bool(true) {
        faults.truncate(1);
    }
    let row = |fault: &String| {
        record(&columns, vec![Datum::Null, Datum::Null, Datum::Null, Datum::text(fault)])
    };
    Ok(faults.iter().map(row).collect())
}

fn not_checkable(name: &str, kinds: &str) -> base::Error {
    err!(WRONG_OBJECT_TYPE, "cannot check relation \"{name}\"")
        .detail(format!("This operation is not supported for {kinds}."))
}

fn require_superuser(cx: &mut ExecContext<'_>) -> Result<()> {
    if exec::rights::is_superuser(cx) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "must be superuser to use raw page functions"))
}

fn raw(name: &Datum, fork: &str, number: &Datum, cx: &mut ExecContext<'_>) -> Result<Datum> {
    require_superuser(cx)?;
    let number = block(number, 0)?;
    let id = named(name, cx)?;
    let relation = inspect::relation(cx, id)?.map_err(|(name, kinds)| {
        err!(WRONG_OBJECT_TYPE, "cannot get raw page from relation \"{name}\"")
            .detail(format!("This operation is not supported for {kinds}."))
    })?;
    if !["main", "fsm", "vm", "init"].contains(&fork) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."));
    }
    if fork != "main" || number >= i64::from(relation.pages(cx)?) {
        bail!(
            INVALID_PARAMETER_VALUE,
            "block number {number} is out of range for relation \"{}\"",
            relation.name()
        );
    }
    relation.raw(cx, number as u32).map(|bytes| Datum::bytea(&bytes))
}

/// A page that a caller gives.
fn given(value: &Datum, cx: &mut ExecContext<'_>) -> Result<[u8; 8192]> {
    require_superuser(cx)?;
    let bytes = value.as_bytea();
    bytes.try_into().map_err(|_| {
        err!(INVALID_PARAMETER_VALUE, "invalid page size")
            .detail(format!("Expected 8192 bytes, got {}.", bytes.len()))
    })
}

fn header(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let page = given(&args[0], cx)?;
    let (lower, upper, flags) = inspect::bounds(&page);
    let lsn = page.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let columns = [
        ("lsn", PG_LSN),
        ("checksum", INT2),
        ("flags", INT2),
        ("lower", INT4),
        ("upper", INT4),
        ("special", INT4),
        ("pagesize", INT4),
        ("version", INT2),
        ("prune_xid", XID),
    ];
    let text = format!("{:X}/{:X}", lsn >> 32, lsn as u32);
    let fields = vec![
        types::io::input(PG_LSN, -1, &text, cx.format)?,
        Datum::Int2(i16::from_le_bytes([page[8], page[9]])),
        Datum::Int2(flags as i16),
        Datum::Int4(lower as i32),
        Datum::Int4(upper as i32),
        Datum::Int4(8192),
        Datum::Int4(8192),
        Datum::Int2(0),
        types::io::input(XID, -1, "0", cx.format)?,
    ];
    Ok(record(&columns, fields))
}

fn page_items(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let page = given(&call.args[0], cx)?;
    let Some(items) = inspect::items(&page) else {
        bail!(INVALID_PARAMETER_VALUE, "page is not a page of a table");
    };
    let columns = [
        ("lp", INT2),
        ("lp_off", INT2),
        ("lp_flags", INT2),
        ("lp_len", INT2),
        ("t_xmin", XID),
        ("t_xmax", XID),
        ("t_field3", INT4),
        ("t_ctid", TID),
        ("t_infomask2", INT4),
        ("t_infomask", INT4),
        ("t_hoff", INT2),
        ("t_bits", TEXT),
        ("t_oid", OID),
        ("t_data", BYTEA),
    ];
    let xid = |number: u64| types::io::input(XID, -1, &(number as u32).to_string(), cx.format);
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let mut fields = vec![
            Datum::Int2(item.number as i16),
            Datum::Int2(item.offset as i16),
            Datum::Int2(item.state.into()),
            Datum::Int2(item.len as i16),
        ];
        if let Some(version) = &item.version {
            let head = version.header;
            let own = base::TupleId { block: 0, offset: item.number };
            fields.extend([
                xid(head.xmin)?,
                xid(head.xmax)?,
                Datum::Int4(head.cmin as i32),
                Datum::Tid(version.next(own)),
                Datum::Int4(0),
                Datum::Int4(head.mask.into()),
                Datum::Int2((item.len as usize - version.row.len()) as i16),
                Datum::Null,
                Datum::Null,
                Datum::bytea(&version.row),
            ]);
        }
        fields.resize(columns.len(), Datum::Null);
        out.push(record(&columns, fields));
    }
    Ok(out)
}

/// Locks that exclude others; those that share a row are in memory and not told.
fn row_locks(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let id = named(&call.args[0], cx)?;
    let table = match inspect::relation(cx, id)? {
        Ok(Paged::Table(table)) => table,
        Ok(Paged::Index(index)) => {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", index.name)
        }
        Err((name, "partitioned tables")) => {
            return Err(err!(WRONG_OBJECT_TYPE, "\"{name}\" is a partitioned table")
                .detail("Partitioned tables do not contain rows."));
        }
        Err((name, _)) => bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a table"),
    };
    let select = catalog::acl::privilege::SELECT;
    exec::rights::require(cx, catalog::AclKind::Table, table.oid, select, &table.name)?;
    let columns = [
        ("locked_row", TID),
        ("locker", XID),
        ("multi", BOOL),
        ("xids", Oid(1011)),
        ("modes", Oid(1009)),
        ("pids", Oid(1007)),
    ];
    let mut out = Vec::new();
    for (row, xid, mode) in inspect::locked_rows(cx, &table)? {
        let number = (xid.0 as u32).to_string();
        let query = format!(
            "SELECT pid FROM pg_locks WHERE locktype = 'transactionid' AND transactionid = '{number}' AND granted"
        );
        let (_, rows) = exec::spi::rows_in_session(&query, cx)?;
        let pid = rows.first().map_or(Datum::Int4(0), |row| row[0].clone());
        let xid = types::io::input(XID, -1, &number, cx.format)?;
        let fields = vec![
            Datum::Tid(row),
            xid.clone(),
            Datum::Bool(false),
            Datum::array(XID, vec![xid]),
            Datum::array(TEXT, vec![Datum::text(mode)]),
            Datum::array(INT4, vec![pid]),
        ];
        out.push(record(&columns, fields));
    }
    Ok(out)
}
