//! Any object by its address, rights taken apart, files and sizes: functions that applications ask about
//! objects of all kinds.

use std::sync::Arc;

use access::AnyIndex;
use base::{AccessMethod, Result, err};
use catalog::acl::privilege;
use catalog::system::address::{Address, Identity};
use catalog::system::reg::Names;
use catalog::{AclItem, AclKind, Snapshot};
use types::datum::Shape;
use types::func::SessionFunction as F;
use types::{Datum, FunctionRow, oids};

use crate::run::Run;
use crate::session::args::{int_at, oid_at, text, text_at};
use crate::{index_search, rights};

/// Functions of this file.
///
/// # Errors
/// `42704` and kin for what is missing.
pub fn call(
    function: F,
    row: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    let view = run.cx.catalog_tx.view();
    let id = oid_at(args, 0);
    let record = |fields: Vec<Datum>| record(row, fields);
    Ok(Some(match function {
        F::PgDescribeObject => match identify(&view, args, run) {
            Some(found) => text(found.description),
            None => Datum::Null,
        },
        F::PgIdentifyObject => {
            let found = identify(&view, args, run).unwrap_or_default();
            let kind = if found.kind.is_empty() { Datum::Null } else { text(found.kind) };
            let identity = if kind.is_null() { Datum::Null } else { text(found.identity) };
            record(vec![kind, optional(found.schema), optional(found.name), identity])
        }
        F::PgIdentifyObjectAsAddress => match identify(&view, args, run) {
            Some(found) => record(vec![text(found.kind), list(found.names), list(found.args)]),
            None => record(vec![Datum::Null, Datum::Null, Datum::Null]),
        },
        F::PgGetObjectAddress => {
            let (words, types) = (words(args.get(1)), words(args.get(2)));
            let found = names(&view, run).address(text_at(args, 0), &words, &types)?;
            record(vec![
                Datum::Oid(found.class),
                Datum::Oid(found.object),
                Datum::Int4(found.column),
            ])
        }
        F::Aclexplode => {
            let rows = match args.first() {
                Some(Datum::Array(items)) => exploded(&items.items, &view)?,
                _ => Vec::new(),
            };
            Datum::array(oids::RECORD, rows.into_iter().map(record).collect())
        }
        F::PgSequenceParameters => {
            let missing = || err!(UNDEFINED_TABLE, "could not open relation with OID {id}");
            let s = view.sequence(id).ok_or_else(missing)?;
            record(vec![
                Datum::Int8(s.start),
                Datum::Int8(s.min),
                Datum::Int8(s.max),
                Datum::Int8(s.increment),
                Datum::Bool(s.cycle),
                Datum::Int8(s.cache),
                Datum::Oid(s.ty),
            ])
        }
        F::PgRelationFilepath => match file_of(&view, id) {
            Some(rel) => text(format!("base/{rel}")),
            None => Datum::Null,
        },
        F::PgFilenodeRelation => {
            let node = oid_at(args, 1);
            let own = view.tables().map(|t| (t.rel, t.oid));
            let own = own.chain(view.indexes().map(|i| (i.rel, i.oid)));
            let mut own = own.chain(view.sequences().map(|s| (s.rel, s.oid)));
            own.find(|(rel, _)| *rel == node && node != 0).map_or(Datum::Null, |f| Datum::Oid(f.1))
        }
        F::PgTablespaceSize => tablespace_size(args, &view, run)?,
        F::PgTablespaceDatabases => {
            let all = if id == catalog::object::ids::PG_DEFAULT { Some(&view) } else { None };
            let databases = all.into_iter().flat_map(|v| v.databases());
            Datum::array(oids::OID, databases.map(|d| Datum::Oid(d.oid)).collect())
        }
        F::PgGetReplicaIdentityIndex => match view.table(id) {
            Some(table) => view.replica_index(table).map_or(Datum::Null, |i| Datum::Oid(i.oid)),
            None => Datum::Null,
        },
        F::PgGetPublicationTables => {
            let name = text_at(args, 0);
            let publication = view
                .publication_named(name)
                .ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))?;
            let one = |p: catalog::publication::Published| {
                let columns = p.columns.iter().map(|n| Datum::Int2(*n as i16)).collect();
                let filter = p.filter.as_deref().map_or(Datum::Null, Datum::text);
                record(vec![Datum::Oid(p.table), vector(columns), filter])
            };
            let all = view.published_tables(publication).into_iter().map(one).collect();
            Datum::array(oids::RECORD, all)
        }
        F::BrinSummarizeNewValues | F::BrinSummarizeRange | F::BrinDesummarizeRange => {
            super::brin::call(function, args, run)?
        }
        F::GinCleanPendingList => clean_pending_list(id, &view, run)?,
        F::PgIndexamHasProperty => am_property(id, text_at(args, 1)),
        F::PgIndexHasProperty => view
            .index(id)
            .map_or(Datum::Null, |index| index_property(index.method, text_at(args, 1))),
        F::PgIndexColumnHasProperty => {
            let at = usize::try_from(int_at(args, 1)).unwrap_or_default().wrapping_sub(1);
            match view.index(id) {
                Some(index) => column_property(index, at, text_at(args, 2)),
                None => Datum::Null,
            }
        }
        F::PgGetRuledef => {
            let pretty = matches!(args.get(1), Some(Datum::Bool(true)));
            match super::definition::rule(id, pretty, run) {
                Some(own) => text(own),
                None => rule_definition(&view, id, pretty, run),
            }
        }
        F::PgSettingsGetFlags => match base::settings::SettingId::find(text_at(args, 0)) {
            Some(_) => Datum::array(oids::TEXT, Vec::new()),
            None => Datum::Null,
        },
        F::PgJitAvailable => Datum::Bool(false),
        F::PgGetStatisticsobjdefExpressions => {
            super::definition::statistics_expressions(&view, id, run)
        }
        F::PgCurrentLogfile => Datum::Null,
        F::PgGetMultixactMembers | F::PgGetCatalogForeignKeys => {
            Datum::array(oids::RECORD, Vec::new())
        }
        F::PgExtensionConfigDump => {
            config_dump(id, text_at(args, 1), run)?;
            Datum::text("")
        }
        F::PgExtensionUpdatePaths => {
            let row = |[from, to, way]: [Option<String>; 3]| {
                record(vec![optional(from), optional(to), optional(way)])
            };
            let paths = catalog::system::extensions::update_paths(&text_at(args, 0));
            Datum::array(oids::RECORD, paths.into_iter().map(row).collect())
        }
        F::PgXactCommitTimestamp | F::PgXactCommitTimestampOrigin | F::PgLastCommittedXact => {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "could not get commit timestamp data"
            )
            .hint("Make sure the configuration parameter \"track_commit_timestamp\" is set."));
        }
        F::PgDatabaseCollationActualVersion if id == 0 => Datum::Null,
        _ => return Ok(None),
    }))
}

/// Notes a table whose rows are settings of the extension's users, for pg_dump.
fn config_dump(table: u32, condition: &str, run: &mut Run<'_, '_>) -> Result<()> {
    let mark = crate::native::SCRIPT_MARK;
    let running = &run.cx.hooks.deferred().running;
    let name = running.iter().rev().find_map(|tag| tag.strip_prefix(mark)).map(str::to_owned);
    let view = run.cx.catalog_tx.view();
    let extension = name.and_then(|name| view.extension_named(&name).cloned());
    let Some(mut extension) = extension else {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "pg_extension_config_dump() can only be called from an SQL script executed by CREATE EXTENSION"
        ));
    };
    extension.config.retain(|(id, _)| *id != table);
    extension.config.push((table, condition.to_owned()));
    let object = catalog::Defined::Extension(extension);
    run.cx.catalog_tx.put(run.cx.tx, catalog::Object::Defined(Box::new(object)))
}

fn names<'a>(view: &'a Snapshot, run: &'a Run<'_, '_>) -> Names<'a> {
    Names { catalog: view, path: run.cx.search_path, database: None }
}

/// What the object at the address in the first three arguments is.
fn identify(view: &Snapshot, args: &[Datum], run: &Run<'_, '_>) -> Option<Identity> {
    let (class, object) = (oid_at(args, 0), oid_at(args, 1));
    names(view, run).identify(Address { class, object, column: int_at(args, 2) as i32 })
}

/// A row of the function's columns.
pub(super) fn record(function: &'static FunctionRow, fields: Vec<Datum>) -> Datum {
    let columns = function.columns.iter().map(|(name, ty)| ((*name).into(), *ty)).collect();
    Datum::record(Arc::new(Shape { ty: oids::RECORD, columns }), fields)
}

fn optional(value: Option<String>) -> Datum {
    value.map_or(Datum::Null, text)
}

fn list(words: Vec<String>) -> Datum {
    Datum::array(oids::TEXT, words.into_iter().map(text).collect())
}

/// The texts of an array.
fn words(value: Option<&Datum>) -> Vec<String> {
    let Some(Datum::Array(array)) = value else { return Vec::new() };
    let word = |d: &Datum| match d {
        Datum::Text(word) => word.to_string(),
        _ => String::new(),
    };
    array.items.iter().map(word).collect()
}

/// A grant by its text.
pub fn item(text: &str, view: &Snapshot) -> Option<AclItem> {
    let (grantee, rest) = role_before(text, '=', view);
    let (letters, grantor) = rest.split_once('/')?;
    let (grantor, _) = role_before(grantor, '\0', view);
    let (mut privileges, mut grantable) = (0, 0);
    let mut letters = letters.chars().peekable();
    while let Some(letter) = letters.next() {
        let bit = privilege::ALL.iter().find(|p| p.2 == letter).map_or(0, |p| p.1);
        privileges |= bit;
        if letters.next_if_eq(&'*').is_some() {
            grantable |= bit;
        }
    }
    Some(AclItem { grantee, grantor, privileges, grantable })
}

/// Each right of each grant: grantor, grantee, the right, and whether it may be granted on.
fn exploded(items: &[Datum], view: &Snapshot) -> Result<Vec<Vec<Datum>>> {
    let mut out = Vec::new();
    for item in items {
        let Datum::Text(item) = item else {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "ACL arrays must not contain null values"));
        };
        let (grantee, rest) = role_before(item, '=', view);
        let (letters, grantor) = rest.split_once('/').unwrap_or((rest, ""));
        let (grantor, _) = role_before(grantor, '\0', view);
        let mut letters = letters.chars().peekable();
        while let Some(letter) = letters.next() {
            let grantable = letters.next_if_eq(&'*').is_some();
            let Some((word, ..)) = privilege::ALL.iter().find(|p| p.2 == letter) else { continue };
            out.push(vec![
                Datum::Oid(grantor),
                Datum::Oid(grantee),
                text(*word),
                Datum::Bool(grantable),
            ]);
        }
    }
    Ok(out)
}

/// A role's name, perhaps in quotes, up to a character, and what follows that; nothing is everybody.
fn role_before<'a>(text: &'a str, end: char, view: &Snapshot) -> (u32, &'a str) {
    let mut quoted = false;
    let at = text.find(|c| {
        quoted ^= c == '"';
        c == end && !quoted
    });
    let (name, rest) = match at {
        Some(at) => (&text[..at], &text[at + end.len_utf8()..]),
        None => (text, ""),
    };
    let name = match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    };
    let role = view.role_named(&name).map(|r| r.oid);
    // A role that is gone is shown by its number.
    (role.or_else(|| name.parse().ok()).unwrap_or(0), rest)
}

/// The number of a relation's file.
fn file_of(view: &Snapshot, id: u32) -> Option<u32> {
    let table = view.table(id).map(|t| t.rel);
    let rel = table.or_else(|| view.index(id).map(|i| i.rel));
    rel.or_else(|| view.sequence(id).map(|s| s.rel)).filter(|rel| *rel != 0)
}

/// Bytes of a tablespace, by name or oid: `pg_default` has all there is.
fn tablespace_size(args: &[Datum], view: &Snapshot, run: &Run<'_, '_>) -> Result<Datum> {
    let id = match args.first() {
        Some(Datum::Text(name)) => {
            let missing = || err!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist");
            catalog::system::named::tablespace(name).ok_or_else(missing)?
        }
        _ => oid_at(args, 0),
    };
    if id != catalog::object::ids::PG_DEFAULT {
        let known = id == catalog::object::ids::PG_GLOBAL;
        return Ok(if known { Datum::Int8(0) } else { Datum::Null });
    }
    let mut bytes = 0;
    for database in view.databases() {
        if let Some(open) = run.cx.engine.catalog.database(database.oid) {
            bytes += super::definition::bytes_of(&run.cx.engine.storage, &open.current())?;
        }
    }
    Ok(Datum::Int8(bytes as i64))
}

/// Moves what is in a GIN index's pending list to its place; how many pages it had.
fn clean_pending_list(id: u32, view: &Snapshot, run: &mut Run<'_, '_>) -> Result<Datum> {
    let Some(index) = view.index(id) else {
        return Err(match view.table(id) {
            Some(table) => err!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", table.name),
            None => err!(UNDEFINED_OBJECT, "could not open relation with OID {id}"),
        });
    };
    let AnyIndex::Gin(gin) = index_search::open(index, &run.cx.engine.storage) else {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a GIN index", index.name));
    };
    if let Some(table) = view.table(index.table) {
        rights::require_owner(run.cx, AclKind::Table, table.oid, "index", &index.name)?;
    }
    let pages = gin.flush(run.cx.tx.manager(), u64::MAX)?;
    Ok(Datum::Int8(pages as i64))
}

/// What an access method can do.
fn am_property(method: u32, property: &str) -> Datum {
    let Some(method) = AccessMethod::of_oid(method) else { return Datum::Null };
    let of = method.properties();
    Datum::Bool(match property.to_ascii_lowercase().as_str() {
        "can_order" => of.ordered,
        "can_unique" => of.unique,
        "can_multi_col" => of.multi_column,
        "can_exclude" => of.exclusion,
        "can_include" => of.include,
        _ => return Datum::Null,
    })
}

fn index_property(method: AccessMethod, property: &str) -> Datum {
    let of = method.properties();
    Datum::Bool(match property.to_ascii_lowercase().as_str() {
        "clusterable" => of.clusterable,
        "index_scan" => of.plain_scan,
        "bitmap_scan" => true,
        "backward_scan" => of.plain_scan,
        _ => return Datum::Null,
    })
}

fn column_property(index: &catalog::Index, at: usize, property: &str) -> Datum {
    let key = index.columns.get(at);
    let of = index.method.properties();
    let value = match (property.to_ascii_lowercase().as_str(), key) {
        ("asc" | "desc" | "nulls_first" | "nulls_last", Some(_)) if !of.ordered => false,
        ("asc", Some(key)) => !key.descending,
        ("desc", Some(key)) => key.descending,
        ("nulls_first", Some(key)) => key.nulls_first,
        ("nulls_last", Some(key)) => !key.nulls_first,
        ("orderable", Some(_)) => of.ordered,
        ("returnable", Some(_)) => of.returns_values,
        ("search_array", Some(_)) => of.search_array,
        ("search_nulls", Some(_)) => of.search_nulls,
        ("distance_orderable", Some(_)) => orders_by_distance(index, at),
        ("returnable", None) => of.include,
        ("orderable" | "distance_orderable" | "search_array" | "search_nulls", None) => false,
        _ => return Datum::Null,
    };
    Datum::Bool(value)
}

/// Whether a column's class has an operator that orders by distance.
fn orders_by_distance(index: &catalog::Index, at: usize) -> bool {
    let class = index.columns.get(at).and_then(|key| types::opclass::class(key.class));
    index.method.properties().distance_ordered
        && class.is_some_and(|class| types::opclass::orders(class.family))
}

/// `CREATE RULE "_RETURN" …` of a view.
fn rule_definition(view: &Snapshot, id: u32, pretty: bool, run: &mut Run<'_, '_>) -> Datum {
    let Some(relation) = catalog::system::view_of_rule(id) else { return Datum::Null };
    let query = match view.table(relation).filter(|t| t.query.is_some()) {
        Some(table) => {
            let printed =
                crate::spi::with_context(run.cx, |cx| sql::view::print(cx, table, pretty));
            let Ok(query) = printed else { return Datum::Null };
            format!("{query};")
        }
        None => match catalog::system::by_oid(base::Oid(relation)).filter(|t| t.is_view) {
            Some(table) => table.definition(),
            None => return Datum::Null,
        },
    };
    let address = Address { class: catalog::system::class::RELATION, object: relation, column: 0 };
    let found = view.table(relation).map(|t| t.name.clone());
    let visible = found.filter(|name| {
        let first = view.relation(run.cx.search_path, None, name);
        pretty && first.map(|r| r.oid()) == Some(relation)
    });
    let name = match visible {
        Some(name) => catalog::definition::quote_ident(&name),
        None => names(view, run).identify(address).unwrap_or_default().identity,
    };
    text(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}"))
}

/// Numbers as an `int2vector`, which begins at 0.
fn vector(items: Vec<Datum>) -> Datum {
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, 0)] };
    Datum::Array(Arc::new(types::datum::Array { element: oids::INT2, dims, items }))
}
