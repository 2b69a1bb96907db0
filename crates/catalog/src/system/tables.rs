//! The computed tables with their columns, from `tables.txt`; their rows are [`super::rows`].

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use base::Oid;
use types::oids;

use crate::object::{Column, Id, Table, TableKind, ids};

/// A computed table.
pub struct SystemTable {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Schema's oid.
    pub schema: Id,
    /// Name.
    pub name: &'static str,
    /// Columns with their types.
    pub columns: &'static [(&'static str, Oid)],
    /// Further facts of each column.
    pub(crate) marks: &'static [Marks],
    /// Whether PostgreSQL has it as a view.
    pub is_view: bool,
}

/// The facts that PostgreSQL's catalog has of a column besides its type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// NOT NULL.
    pub not_null: bool,
    /// Collation C where the type's is another.
    pub collate_c: bool,
}

/// Tables that belong to all databases.
const SHARED: [&str; 11] = [
    "pg_auth_members",
    "pg_authid",
    "pg_database",
    "pg_db_role_setting",
    "pg_parameter_acl",
    "pg_replication_origin",
    "pg_shdepend",
    "pg_shdescription",
    "pg_shseclabel",
    "pg_subscription",
    "pg_tablespace",
];

impl SystemTable {
    /// The query that a view shows as its own. Rows of such views are computed; the query reads them.
    pub fn definition(&self) -> String {
        let quote = types::func::quote_ident;
        let columns: Vec<String> =
            self.columns.iter().map(|c| format!("{}.{}", self.name, quote(c.0))).collect();
        let schema = match self.schema {
            ids::PG_CATALOG => "pg_catalog",
            _ => "information_schema",
        };
        format!(" SELECT {}\n   FROM {schema}.{};", columns.join(",\n    "), self.name)
    }

    /// Whether its rows are the result of a function, so that it is no relation.
    pub(crate) fn is_function(&self) -> bool {
        self.name.ends_with("()")
    }

    /// Whether it belongs to all databases.
    pub fn is_shared(&self) -> bool {
        SHARED.contains(&self.name)
    }

    /// Roles that may read it besides superusers: everybody (0), or these roles.
    pub fn readers(&self) -> &'static [Id] {
        match self.name {
            "pg_authid"
            | "pg_shadow"
            | "pg_hba_file_rules"
            | "pg_ident_file_mappings"
            | "pg_file_settings"
            | "pg_config"
            | "pg_statistic"
            | "pg_statistic_ext_data"
            | "pg_largeobject"
            | "pg_user_mapping"
            | "pg_subscription"
            | "pg_replication_origin_status" => &[],
            "pg_backend_memory_contexts" | "pg_shmem_allocations" => &[ids::READ_ALL_STATS],
            "pg_buffercache" => &[ids::MONITOR],
            _ => &[0],
        }
    }
}

pub(super) struct Registry {
    all: Vec<&'static SystemTable>,
    pub(super) by_name: HashMap<(Id, &'static str), (&'static SystemTable, Arc<Table>)>,
    pub(super) by_oid: HashMap<Oid, (&'static SystemTable, Arc<Table>)>,
}

pub(super) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let all: Vec<&'static SystemTable> =
            lines(include_str!("tables.txt")).map(parse_table).collect();
        let pair = |t: &&'static SystemTable| (*t, Arc::new(as_table(t)));
        Registry {
            by_name: all.iter().map(|t| ((t.schema, t.name), pair(t))).collect(),
            by_oid: all.iter().map(|t| (t.oid, pair(t))).collect(),
            all: all.into_iter().filter(|t| !t.is_function()).collect(),
        }
    })
}

/// One line of `tables.txt`. The tables live as long as the program, so they are leaked.
fn parse_table(line: &'static str) -> &'static SystemTable {
    let mut fields = line.splitn(4, '|').map(str::trim);
    let mut next = || fields.next().unwrap_or_default();
    let (oid, schema, name, columns) = (next(), next(), next(), next());
    let columns = columns.split(", ").filter_map(|c| c.split_once(' '));
    let (columns, marks): (Vec<(&'static str, Oid)>, Vec<Marks>) = columns
        .map(|(name, ty)| {
            let plain = ty.trim_end_matches(['!', '^']);
            let marks = Marks { not_null: ty.contains('!'), collate_c: ty.contains('^') };
            ((name, type_named(plain)), marks)
        })
        .unzip();
    let oid: u32 = oid.parse().unwrap_or_default();
    Box::leak(Box::new(SystemTable {
        oid: Oid(oid),
        schema: if schema == "pg_catalog" { ids::PG_CATALOG } else { ids::INFORMATION_SCHEMA },
        name,
        columns: Vec::leak(columns),
        marks: Vec::leak(marks),
        is_view: oid >= 12000 && !name.starts_with("sql_"),
    }))
}

fn type_named(name: &str) -> Oid {
    let name = match name {
        "cid" => "xid",
        // Domains of information_schema.
        "cardinal_number" => "int4",
        "character_data" | "yes_or_no" => "varchar",
        "sql_identifier" => "name",
        "time_stamp" => "timestamptz",
        name => name,
    };
    types::TypeIo::by_name(name).map_or(oids::TEXT, |t| t.oid)
}

/// A computed table as a [`Table`], for the binder.
fn as_table(table: &SystemTable) -> Table {
    let column = |(name, ty): &(&str, Oid)| Column::new(name, ty.0, -1);
    Table {
        oid: table.oid.0,
        name: table.name.to_owned(),
        schema: table.schema,
        owner: ids::SUPERUSER,
        kind: TableKind::System,
        columns: table.columns.iter().map(column).collect(),
        ..Table::default()
    }
}

/// Functions whose rows are those of a view.
const VIEW_FUNCTIONS: [(&str, &str); 13] = [
    ("pg_available_extension_versions", "pg_available_extension_versions"),
    ("pg_available_extensions", "pg_available_extensions"),
    ("pg_config", "pg_config"),
    ("pg_cursor", "pg_cursors"),
    ("pg_get_backend_memory_contexts", "pg_backend_memory_contexts"),
    ("pg_get_shmem_allocations", "pg_shmem_allocations"),
    ("pg_hba_file_rules", "pg_hba_file_rules"),
    ("pg_ident_file_mappings", "pg_ident_file_mappings"),
    ("pg_prepared_statement", "pg_prepared_statements"),
    ("pg_show_all_file_settings", "pg_file_settings"),
    ("pg_show_all_settings", "pg_settings"),
    ("pg_timezone_abbrevs", "pg_timezone_abbrevs"),
    ("pg_timezone_names", "pg_timezone_names"),
];

/// The result of a function that has rows of several columns: kept as a computed table with the
/// function's name and a pair of parentheses, or a view's.
pub fn find_function(name: &str) -> Option<Arc<Table>> {
    match VIEW_FUNCTIONS.iter().find(|f| f.0 == name) {
        Some((_, view)) => find(None, view),
        None => find(None, &format!("{name}()")),
    }
}

/// All of them, those that functions return among them.
pub(super) fn all() -> impl Iterator<Item = &'static SystemTable> {
    registry().by_oid.values().map(|(table, _)| *table)
}

/// All that stand for themselves.
pub fn tables() -> &'static [&'static SystemTable] {
    &registry().all
}

/// A computed table as the binder sees a table ([`TableKind::System`]). Without a schema:
/// `pg_catalog`.
pub fn find(schema: Option<&str>, name: &str) -> Option<Arc<Table>> {
    let schema = match schema {
        None | Some("pg_catalog") => ids::PG_CATALOG,
        Some("information_schema") => ids::INFORMATION_SCHEMA,
        Some(_) => return None,
    };
    registry().by_name.get(&(schema, name)).map(|(_, table)| table.clone())
}

/// By oid.
pub fn by_oid(oid: Oid) -> Option<&'static SystemTable> {
    registry().by_oid.get(&oid).map(|(system, _)| *system)
}

/// By oid, as a [`Table`].
pub fn table_by_oid(oid: Oid) -> Option<Arc<Table>> {
    registry().by_oid.get(&oid).map(|(_, table)| table.clone())
}

/// Lines of a table file without comments.
pub(super) fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}
