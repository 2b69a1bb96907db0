//! Ids of objects, and those that are known beforehand (PostgreSQL's).

/// Object ids in the catalog are plain numbers, for serde; see [`base::Oid`].
pub type Id = u32;

/// Well-known ids (PostgreSQL's).
pub mod ids {
    use super::Id;
    /// Schema `pg_catalog`.
    pub const PG_CATALOG: Id = 11;
    /// Schema `pg_toast`.
    pub const PG_TOAST: Id = 99;
    /// Schema `public`.
    pub const PUBLIC: Id = 2200;
    /// Schema `information_schema`.
    pub const INFORMATION_SCHEMA: Id = 13000;
    /// The bootstrap role `postgres`.
    pub const SUPERUSER: Id = 10;
    /// The role `pg_database_owner`.
    pub const DATABASE_OWNER: Id = 6171;
    /// The role `pg_read_all_data`.
    pub const READ_ALL_DATA: Id = 6181;
    /// The role `pg_write_all_data`.
    pub const WRITE_ALL_DATA: Id = 6182;
    /// The role `pg_monitor`.
    pub const MONITOR: Id = 3373;
    /// The role `pg_read_all_settings`.
    pub const READ_ALL_SETTINGS: Id = 3374;
    /// The role `pg_read_all_stats`.
    pub const READ_ALL_STATS: Id = 3375;
    /// The role `pg_stat_scan_tables`.
    pub const STAT_SCAN_TABLES: Id = 3377;
    /// The role `pg_read_server_files`.
    pub const READ_SERVER_FILES: Id = 4569;
    /// The role `pg_write_server_files`.
    pub const WRITE_SERVER_FILES: Id = 4570;
    /// The role `pg_signal_backend`.
    pub const SIGNAL_BACKEND: Id = 4200;
    /// The role `pg_checkpoint`.
    pub const CHECKPOINT: Id = 4544;
    /// Roles that there are from the start, besides the superuser.
    pub const PREDEFINED: [(Id, &str); 12] = [
        (DATABASE_OWNER, "pg_database_owner"),
        (READ_ALL_DATA, "pg_read_all_data"),
        (WRITE_ALL_DATA, "pg_write_all_data"),
        (MONITOR, "pg_monitor"),
        (READ_ALL_SETTINGS, "pg_read_all_settings"),
        (READ_ALL_STATS, "pg_read_all_stats"),
        (STAT_SCAN_TABLES, "pg_stat_scan_tables"),
        (READ_SERVER_FILES, "pg_read_server_files"),
        (WRITE_SERVER_FILES, "pg_write_server_files"),
        (4571, "pg_execute_server_program"),
        (SIGNAL_BACKEND, "pg_signal_backend"),
        (CHECKPOINT, "pg_checkpoint"),
    ];
    /// Database `template1`.
    pub const TEMPLATE1: Id = 1;
    /// Database `template0`.
    pub const TEMPLATE0: Id = 4;
    /// Database `postgres`.
    pub const POSTGRES_DB: Id = 5;
    /// Access method `heap`.
    pub const HEAP_AM: Id = 2;
    /// Access method `btree`.
    pub const BTREE_AM: Id = 403;
    /// Tablespace `pg_default`.
    pub const PG_DEFAULT: Id = 1663;
    /// Tablespace `pg_global`.
    pub const PG_GLOBAL: Id = 1664;
    /// Collation `default`.
    pub const COLLATION_DEFAULT: Id = 100;
    /// Collation `C`.
    pub const COLLATION_C: Id = 950;
}
