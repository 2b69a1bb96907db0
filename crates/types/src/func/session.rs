//! Which functions get their body from the executor, because they need the session, the
//! transaction or the catalog. (A name here is a promise that the executor either runs the function
//! or says that it isn't supported.)

const NAMES: &[&str] = &[
    "aclcontains",
    "loread",
    "lowrite",
    "acldefault",
    "makeaclitem",
    "clock_timestamp",
    "col_description",
    "current_database",
    "current_query",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "currval",
    "format_type",
    "gen_random_uuid",
    "getdatabaseencoding",
    "gin_clean_pending_list",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "lastval",
    "mxid_age",
    "nextval",
    "now",
    "obj_description",
    "random",
    "regclass",
    "row_security_active",
    "session_user",
    "set_config",
    "setseed",
    "setval",
    "shobj_description",
    "pg_maintain_partitions",
    "satisfies_hash_partition",
    "statement_timestamp",
    "timeofday",
    "transaction_timestamp",
    "txid_current",
    "txid_current_if_assigned",
    "txid_status",
    "version",
];

/// Functions whose name others have that need no session, by their bodies' keys.
const BODIES: &[&str] = &["tsquery_rewrite_query", "xid_age"];

/// Beginnings of names whose functions are all the session's.
const PREFIXES: &[&str] = &["has_", "lo_", "pg_", "to_reg"];

/// Functions that return sets and are the session's.
const SETS: &[&str] = &[
    "ts_stat",
    "pg_stat_get_backend_idset",
    "pg_stat_wait_trace",
    "pg_stacks",
    "pg_lock_status",
    "pg_partition_tree",
    "pg_partition_ancestors",
    "pg_options_to_table",
    "aclexplode",
    "pg_tablespace_databases",
    "pg_listening_channels",
    "pg_prepared_xact",
    "pg_extension_update_paths",
    "pg_get_multixact_members",
    "pg_get_catalog_foreign_keys",
];

/// Whether the executor has the body with this key of the function.
pub(super) fn is_session(name: &str, body: &str, returns_set: bool) -> bool {
    if returns_set {
        return SETS.contains(&name);
    }
    NAMES.contains(&name) || BODIES.contains(&body) || PREFIXES.iter().any(|p| name.starts_with(p))
}
