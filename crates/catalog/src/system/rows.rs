//! The function that computes each table's rows. To add a table: a line in `tables.txt`, a function, a line in [`function`].

use std::collections::HashMap;
use std::sync::OnceLock;

use base::{Oid, Result};
use types::Datum;

use super::cx::SystemCx;
use super::tables::{SystemTable, all};
use super::{
    builtin, collations, depend, extensions, foreign, information, partitions, policies,
    publications, relations, roles, schema, sequences, shared_depend, statistics, text_search,
    triggers, usage, user_types, views,
};
use crate::snapshot::Snapshot;

type Function = fn(&SystemCx<'_>) -> Result<Vec<Vec<Datum>>>;

/// The rows of a computed table.
///
/// # Errors
/// Those of reading what the server knows.
pub fn rows(table: &SystemTable, cx: &SystemCx<'_>) -> Result<Vec<Vec<Datum>>> {
    match of_catalog(table) {
        Some(function) => function(cx),
        None => Ok(cx.server.rows(table.name, cx.role)),
    }
}

/// Whether a table's rows come from the catalog: those of temporary objects of other sessions are among them.
pub fn is_of_catalog(table: &SystemTable) -> bool {
    of_catalog(table).is_some()
}

/// Whether a statement may keep the rows of a table that it has computed: they come from the catalog and nothing else.
pub fn stays(table: &SystemTable) -> bool {
    let counted = ["pg_settings", "pg_sequences", "pg_sequence_data()"];
    is_of_catalog(table) && !counted.contains(&table.name)
}

/// Whether a table computes the rows with these values of columns without the others.
pub fn by_key(table: &SystemTable, equal: &[(u16, Datum)]) -> bool {
    matches!(table.name, "pg_class" | "pg_attribute" | "pg_type" | "pg_proc")
        && equal.iter().any(|(column, value)| *column == 0 && matches!(value, Datum::Oid(_)))
}

/// How many rows a table has, about.
pub fn estimate(table: &SystemTable, catalog: &Snapshot) -> f64 {
    let (tables, indexes) = catalog.sizes();
    let (tables, indexes) = (tables as f64, indexes as f64);
    match table.name {
        "pg_class" => 400.0 + tables + indexes,
        "pg_attribute" => 3_000.0 + 8.0 * (tables + indexes),
        "pg_type" => 620.0 + 2.0 * tables,
        "pg_proc" => 3_300.0,
        "pg_depend" => 100.0 + 4.0 * (tables + indexes),
        "pg_description" => 5_000.0,
        "columns" => 2_500.0 + 8.0 * tables,
        "pg_operator" => 800.0,
        "pg_index" | "pg_constraint" | "pg_indexes" => 200.0 + indexes,
        "pg_attrdef" | "pg_trigger" | "pg_inherits" | "tables" => 200.0 + tables,
        "pg_namespace" | "pg_am" | "pg_database" | "pg_roles" | "pg_authid" | "pg_tablespace"
        | "pg_language" | "pg_extension" | "pg_enum" | "pg_policy" => 20.0,
        _ => 500.0,
    }
}

fn of_catalog(table: &SystemTable) -> Option<Function> {
    static FUNCTIONS: OnceLock<HashMap<Oid, Function>> = OnceLock::new();
    let find = |t: &'static SystemTable| function(t.name).map(|f| (t.oid, f));
    let functions = FUNCTIONS.get_or_init(|| all().filter_map(find).collect());
    functions.get(&table.oid).copied()
}

/// The function that computes a table's rows; None: the server is asked.
fn function(name: &str) -> Option<Function> {
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
        "pg_publication" => publications::pg_publication,
        "pg_publication_rel" => publications::pg_publication_rel,
        "pg_publication_namespace" => publications::pg_publication_namespace,
        "pg_publication_tables" => publications::pg_publication_tables,
        "pg_subscription" => publications::pg_subscription,
        "pg_subscription_rel" => publications::pg_subscription_rel,
        "pg_foreign_data_wrapper" => foreign::pg_foreign_data_wrapper,
        "pg_foreign_server" => foreign::pg_foreign_server,
        "pg_foreign_table" => foreign::pg_foreign_table,
        "pg_user_mapping" => foreign::pg_user_mapping,
        "pg_user_mappings" => foreign::pg_user_mappings,
        "foreign_data_wrappers" => foreign::info_wrappers,
        "foreign_data_wrapper_options" => foreign::info_wrapper_options,
        "foreign_servers" => foreign::info_servers,
        "foreign_server_options" => foreign::info_server_options,
        "foreign_tables" => foreign::info_tables,
        "foreign_table_options" => foreign::info_table_options,
        "column_options" => foreign::info_column_options,
        "user_mappings" => foreign::info_mappings,
        "user_mapping_options" => foreign::info_mapping_options,
        "role_usage_grants" => foreign::role_usage_grants,
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
        "routines" => usage::routines,
        "parameters" => usage::parameters,
        "routine_column_usage" => usage::routine_column_usage,
        "routine_routine_usage" => usage::routine_routine_usage,
        "routine_sequence_usage" => usage::routine_sequence_usage,
        "routine_table_usage" => usage::routine_table_usage,
        "information_schema_catalog_name" => information::catalog_name,
        "character_sets" => information::character_sets,
        "usage_privileges" => information::usage_privileges,
        "administrable_role_authorizations" => roles::info_administrable_roles,
        "routine_privileges" => roles::info_routine_privileges,
        "role_routine_grants" => roles::info_role_routine_grants,
        "udt_privileges" => roles::info_udt_privileges,
        "role_udt_grants" => roles::info_role_udt_grants,
        "role_column_grants" => roles::info_role_column_grants,
        _ => return None,
    })
}
