//! `pg_catalog` and `information_schema`: tables computed from a [`Snapshot`].
//!
//! `tables.txt` lists every table with its columns; a table that has rows of its own has one
//! function in one of the files here, found by name in [`rows_of`]. What only the running server
//! knows (`pg_stat_activity`, `pg_locks`, …) comes from [`ServerInfo::rows`]. To add a table: a
//! line in `tables.txt`, a function, a line in [`rows_of`].

pub mod address;
mod builtin;
mod checked;
mod collations;
mod defined;
mod depend;
pub mod extensions;
pub mod facts;
mod information;
pub mod named;
mod partitions;
mod policies;
pub mod reg;
mod relations;
mod roles;
pub mod row;
mod schema;
mod sequences;
mod shared_depend;
pub mod statistics;
pub(crate) mod text_search;
mod triggers;
mod type_text;
mod usage;
mod user_types;
mod views;

pub(crate) use facts::icu_locales;
pub use facts::{description, descriptions};
pub use relations::{default_id, rule_id};
pub use schema::{commented_class, is_shared_class};
pub use sequences::class;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use base::settings::Settings;
use base::{Oid, Result};
use types::{Datum, oids};

use crate::object::{Column, Id, Table, TableKind, ids};
use crate::snapshot::Snapshot;

/// What the functions that compute rows get.
pub struct SystemCx<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Snapshot,
    /// The session's settings.
    pub settings: &'a Settings,
    /// What only the running server knows.
    pub server: &'a dyn ServerInfo,
    /// The session's database.
    pub database: Id,
    /// The session's role.
    pub role: Id,
    /// Equality conditions on columns known when the scan starts: (column number from 0, value).
    /// A function may use them to compute fewer rows; the scan filters in any case.
    pub equal: &'a [(u16, Datum)],
}

impl SystemCx<'_> {
    /// The oid that a column of the first table that is filled must have, if the statement says so.
    fn wanted_at(&self, column: u16) -> Option<Id> {
        self.equal.iter().find(|(n, _)| *n == column).and_then(|(_, value)| match value {
            Datum::Oid(id) => Some(*id),
            _ => None,
        })
    }
}

/// What only the running server knows: the rows of its statistics views and the like.
pub trait ServerInfo: Send + Sync {
    /// Rows of a view such as `pg_stat_activity`, `pg_locks`, as a role may see them; empty when it isn't
    /// kept.
    fn rows(&self, view: &str, role: Id) -> Vec<Vec<Datum>>;
    /// Pages of a relation's main fork.
    fn pages(&self, rel: u32) -> u32;
    /// A sequence's value by its file: last, how many more the log covers, is_called.
    ///
    /// # Errors
    /// Damage of the file, I/O errors.
    fn sequence(&self, _rel: u32) -> Result<Option<(i64, i64, bool)>> {
        Ok(None)
    }
}

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
    /// What else is known of each column.
    pub(crate) marks: &'static [Marks],
    /// Whether PostgreSQL has it as a view.
    pub is_view: bool,
    /// Its rows come from the catalog: those of temporary objects of other sessions are among them.
    pub of_catalog: bool,
    /// Its rows.
    pub rows: &'static RowsFn,
}

/// What PostgreSQL's catalog says of a column besides its type.
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

/// A function that computes a table's rows.
pub type RowsFn = dyn Fn(&SystemCx<'_>) -> Result<Vec<Vec<Datum>>> + Sync;

/// The function that computes a table's rows; None: the server is asked.
fn rows_of(name: &str) -> Option<fn(&SystemCx<'_>) -> Result<Vec<Vec<Datum>>>> {
    Some(match name {
        "pg_namespace" => schema::pg_namespace,
        "pg_database" => schema::pg_database,
        "pg_authid" => roles::pg_authid,
        "pg_roles" => roles::pg_roles,
        "pg_user" => roles::pg_user,
        "pg_shadow" => roles::pg_shadow,
        "pg_group" => roles::pg_group,
        "pg_auth_members" => roles::pg_auth_members,
        "pg_db_role_setting" => roles::pg_db_role_setting,
        "pg_default_acl" => roles::pg_default_acl,
        "pg_init_privs" => roles::pg_init_privs,
        "enabled_roles" => roles::info_enabled_roles,
        "applicable_roles" => roles::info_applicable_roles,
        "table_privileges" => roles::info_table_privileges,
        "role_table_grants" => roles::info_role_table_grants,
        "column_privileges" => roles::info_column_privileges,
        "pg_tablespace" => schema::pg_tablespace,
        "pg_am" => schema::pg_am,
        "pg_language" => schema::pg_language,
        "pg_collation" => collations::pg_collation,
        "collations" => collations::info_collations,
        "collation_character_set_applicability" => collations::info_applicability,
        "pg_description" => schema::pg_description,
        "pg_shdescription" => schema::pg_shdescription,
        "pg_class" => relations::pg_class,
        "pg_attribute" => relations::pg_attribute,
        "pg_attrdef" => relations::pg_attrdef,
        "pg_index" => relations::pg_index,
        "pg_constraint" => relations::pg_constraint,
        "pg_inherits" => relations::pg_inherits,
        "pg_partitioned_table" => partitions::pg_partitioned_table,
        "pg_policy" => policies::pg_policy,
        "pg_policies" => policies::pg_policies,
        "pg_rules" => relations::pg_rules,
        "pg_event_trigger" => triggers::pg_event_trigger,
        "pg_event_trigger_ddl_commands()" | "pg_event_trigger_dropped_objects()" => {
            triggers::of_events
        }
        "pg_trigger" => triggers::pg_trigger,
        "triggers" => triggers::info_triggers,
        "triggered_update_columns" => triggers::info_update_columns,
        "pg_type" => builtin::pg_type,
        "pg_enum" => user_types::pg_enum,
        "domains" => user_types::info_domains,
        "domain_constraints" => user_types::info_domain_constraints,
        "user_defined_types" => user_types::info_user_defined_types,
        "attributes" => user_types::info_attributes,
        "pg_proc" => builtin::pg_proc,
        "pg_operator" => builtin::pg_operator,
        "pg_cast" => builtin::pg_cast,
        "pg_aggregate" => builtin::pg_aggregate,
        "pg_opclass" => builtin::pg_opclass,
        "pg_opfamily" => builtin::pg_opfamily,
        "pg_amop" => builtin::pg_amop,
        "pg_amproc" => builtin::pg_amproc,
        "pg_range" => builtin::pg_range,
        "pg_get_keywords()" => builtin::pg_get_keywords,
        "pg_tables" => views::pg_tables,
        "pg_indexes" => views::pg_indexes,
        "pg_settings" => views::pg_settings,
        "pg_stats" => views::pg_stats,
        "pg_statistic_ext" => statistics::pg_statistic_ext,
        "pg_statistic_ext_data" => statistics::pg_statistic_ext_data,
        "pg_stats_ext" => statistics::pg_stats_ext,
        "pg_stats_ext_exprs" => statistics::pg_stats_ext_exprs,
        "pg_extension" => schema::pg_extension,
        "pg_available_extensions" => extensions::available,
        "pg_available_extension_versions" => extensions::versions,
        "pg_extension_threads" => extensions::threads,
        "pg_conversion" => text_search::pg_conversion,
        "pg_ts_parser" => text_search::pg_ts_parser,
        "pg_ts_template" => text_search::pg_ts_template,
        "pg_ts_dict" => text_search::pg_ts_dict,
        "pg_ts_config" => text_search::pg_ts_config,
        "pg_ts_config_map" => text_search::pg_ts_config_map,
        "pg_sequence" => sequences::pg_sequence,
        "pg_sequences" => sequences::pg_sequences,
        "pg_sequence_data()" => sequences::data,
        "sequences" => sequences::info_sequences,
        "pg_depend" => depend::pg_depend,
        "pg_shdepend" => shared_depend::pg_shdepend,
        "pg_rewrite" => relations::pg_rewrite,
        "pg_views" => views::pg_views,
        "pg_matviews" => views::pg_matviews,
        "views" => views::info_views,
        "tables" => views::info_tables,
        "columns" => views::info_columns,
        "schemata" => views::info_schemata,
        "table_constraints" => information::table_constraints,
        "check_constraints" => information::check_constraints,
        "key_column_usage" => information::key_column_usage,
        "referential_constraints" => information::referential_constraints,
        "constraint_column_usage" => information::constraint_column_usage,
        "constraint_table_usage" => information::constraint_table_usage,
        "view_table_usage" => information::view_table_usage,
        "view_column_usage" => information::view_column_usage,
        "column_column_usage" => usage::column_column_usage,
        "routine_column_usage" => usage::routine_column_usage,
        "routine_routine_usage" => usage::routine_routine_usage,
        "routine_sequence_usage" => usage::routine_sequence_usage,
        "routine_table_usage" => usage::routine_table_usage,
        "information_schema_catalog_name" => information::catalog_name,
        "character_sets" => information::character_sets,
        "usage_privileges" => information::usage_privileges,
        "administrable_role_authorizations" => roles::info_administrable_roles,
        "role_column_grants" => roles::info_role_column_grants,
        _ => return None,
    })
}

struct Registry {
    all: Vec<&'static SystemTable>,
    by_name: HashMap<(Id, &'static str), (&'static SystemTable, Arc<Table>)>,
    by_oid: HashMap<Oid, (&'static SystemTable, Arc<Table>)>,
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let all: Vec<&'static SystemTable> =
            row::lines(include_str!("tables.txt")).map(parse_table).collect();
        let pair = |t: &&'static SystemTable| (*t, Arc::new(as_table(t)));
        Registry {
            by_name: all.iter().map(|t| ((t.schema, t.name), pair(t))).collect(),
            by_oid: all.iter().map(|t| (t.oid, pair(t))).collect(),
            all: all.into_iter().filter(|t| !t.name.ends_with("()")).collect(),
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
        of_catalog: rows_of(name).is_some(),
        rows: match rows_of(name) {
            Some(function) => Box::leak(Box::new(function)),
            None => Box::leak(Box::new(move |cx: &SystemCx<'_>| Ok(cx.server.rows(name, cx.role)))),
        },
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

/// What a function returns that has rows of several columns: kept as a computed table with the
/// function's name and a pair of parentheses, or a view's.
pub fn find_function(name: &str) -> Option<Arc<Table>> {
    match VIEW_FUNCTIONS.iter().find(|f| f.0 == name) {
        Some((_, view)) => find(None, view),
        None => find(None, &format!("{name}()")),
    }
}

/// All of them.
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

#[cfg(test)]
mod tests {
    use super::*;

    struct NoServer;
    impl ServerInfo for NoServer {
        fn rows(&self, _view: &str, _role: Id) -> Vec<Vec<Datum>> {
            Vec::new()
        }
        fn pages(&self, _rel: u32) -> u32 {
            0
        }
    }

    #[test]
    fn every_table_gives_rows_as_wide_as_its_columns() {
        let mut catalog = Snapshot::default();
        crate::object::initial().into_iter().for_each(|o| catalog.put(o));
        let settings = Settings::default();
        let cx = SystemCx {
            catalog: &catalog,
            settings: &settings,
            server: &NoServer,
            database: ids::POSTGRES_DB,
            role: ids::SUPERUSER,
            equal: &[],
        };
        assert!(tables().len() > 140);
        assert_eq!(registry().by_oid.len(), registry().by_name.len(), "an oid stands twice");
        for table in tables() {
            for row in (table.rows)(&cx).unwrap() {
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            }
        }
        let class = find(None, "pg_class").unwrap();
        assert_eq!((class.oid, class.columns[1].name.as_str()), (1259, "relname"));
    }
}
