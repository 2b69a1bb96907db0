//! The rows of each statistics view.

use types::Datum;

use super::{
    activity, blocking, buffers, database, extension, functions, locks, lwlock, memory, past,
    prepared, progress, replication, shares, snapshots, statements, storage, tables, waits,
    workers, zones,
};
use crate::server::Server;
use crate::views::text::text;

/// Rows of a view, in a database; none for a view that isn't kept.
pub fn rows(server: &Server, database: u32, view: &str) -> Vec<Vec<Datum>> {
    match view {
        "pg_stat_activity" => activity::activity(server),
        "pg_wait_events" => waits::events(),
        "pg_stat_wait_current" => waits::current(server),
        "pg_stat_wait_history" => waits::history(server),
        "pg_stat_wait_profile" => waits::profile(server),
        "pg_wait_sampling_current" | "pg_wait_sampling_get_current()" => waits::sampling_current(),
        "pg_wait_sampling_history" | "pg_wait_sampling_get_history()" => waits::sampling_history(),
        "pg_wait_sampling_profile" | "pg_wait_sampling_get_profile()" => waits::sampling_profile(),
        "pg_events" => past::events(server),
        "pg_alerts" => past::alerts(server),
        "pg_alert_rules" => past::alert_rules(server),
        "pg_plans" => shares::plans(server),
        "pg_plan_changes" => shares::changes(server),
        "pg_stat_lwlock" => lwlock::rows(),
        "pg_stat_workers" => workers::rows(server),
        "pg_buffercache" => buffers::frames(server),
        "pg_stat_relation_extension" => extension::relations(server, database),
        "pg_stat_snapshots" => snapshots::rows(server, database),
        "pg_stat_session_memory" => memory::sessions(),
        "pg_stat_server_memory" => memory::server(server),
        "pg_prepared_xacts" => prepared::rows(server),
        "pg_prepared_xact()" => prepared::function(server),
        "pg_locks" | "pg_lock_status()" => locks::locks(server),
        "pg_stat_user_functions" => tables::functions(server, database, "pg_stat_user_functions"),
        "pg_stat_all_tables" => tables::tables(server, database, "pg_stat_all_tables"),
        "pg_stat_sys_tables" => tables::tables(server, database, "pg_stat_sys_tables"),
        "pg_stat_user_tables" => tables::tables(server, database, "pg_stat_user_tables"),
        "pg_stat_all_indexes" => tables::indexes(server, database, "pg_stat_all_indexes"),
        "pg_stat_sys_indexes" => tables::indexes(server, database, "pg_stat_sys_indexes"),
        "pg_stat_user_indexes" => tables::indexes(server, database, "pg_stat_user_indexes"),
        "pg_statio_all_tables" => tables::table_pages(server, database, "pg_statio_all_tables"),
        "pg_statio_sys_tables" => tables::table_pages(server, database, "pg_statio_sys_tables"),
        "pg_statio_user_tables" => tables::table_pages(server, database, "pg_statio_user_tables"),
        "pg_statio_all_sequences" => tables::sequences(server, database, "pg_statio_all_sequences"),
        "pg_statio_sys_sequences" => tables::sequences(server, database, "pg_statio_sys_sequences"),
        "pg_statio_user_sequences" => {
            tables::sequences(server, database, "pg_statio_user_sequences")
        }
        "pg_statio_all_indexes" => tables::indexes(server, database, "pg_statio_all_indexes"),
        "pg_statio_sys_indexes" => tables::indexes(server, database, "pg_statio_sys_indexes"),
        "pg_statio_user_indexes" => tables::indexes(server, database, "pg_statio_user_indexes"),
        "pg_stat_get_activity()" => activity::function(server),
        "pg_ls_waldir()" => functions::wal_files(server),
        "pg_ls_tmpdir()" => functions::temporary_files(server),
        "pg_stat_progress_vacuum" => progress::vacuum(server),
        "pg_stat_progress_analyze" => progress::analyze(server),
        "pg_stat_progress_create_index" => progress::create_index(server),
        "pg_stat_progress_copy" => progress::copy(server),
        "pg_stat_progress_partition" => progress::partition(server),
        "pg_stat_ssl" => activity::ssl(server),
        "pg_stat_gssapi" => activity::gssapi(server),
        "pg_stat_slru" | "pg_stat_get_slru()" => storage::slru(server),
        "pg_stat_replication" | "pg_stat_get_wal_senders()" => replication::senders(server),
        "pg_stat_wal_receiver" | "pg_stat_get_wal_receiver()" => replication::receiver(server),
        "pg_stat_database" => database::databases(server),
        "pg_stat_database_conflicts" => database::conflicts(server),
        "pg_stat_bgwriter" => storage::bgwriter(server),
        "pg_stat_wal" | "pg_stat_get_wal()" => storage::wal(server),
        "pg_stat_io" => storage::io(server),
        "pg_stat_subscription" | "pg_stat_get_subscription()" => replication::subscriptions(server),
        "pg_stat_subscription_stats" => replication::subscription_errors(server),
        "pg_replication_slots" | "pg_get_replication_slots()" => replication::slots(server),
        "pg_stat_archiver" | "pg_stat_get_archiver()" => storage::archiver(server),
        "pg_stat_statements" => statements::statements(server),
        "pg_stat_statements_info" => statements::info(server),
        "pg_stat_blocking" => blocking::now(server),
        "pg_stat_blocking_history" => blocking::history(server),
        "pg_shmem_allocations" => memory::allocations(server),
        "pg_java_threads" => java_threads(),
        "pg_file_settings" => file_settings(server),
        "pg_hba_file_rules" => hba_rules(server),
        "pg_ident_file_mappings" => ident_maps(server),
        "pg_timezone_names" => zones::names(),
        "pg_timezone_abbrevs" => zones::abbreviations(),
        _ => Vec::new(),
    }
}

/// The rules as the file has them now, whether they are in force or not.
fn hba_rules(server: &Server) -> Vec<Vec<Datum>> {
    let (values, _) = server.values();
    let path = crate::client_auth::hba_path(&server.directory(), &values.settings);
    crate::client_auth::hba(&path).map(|hba| hba.rows()).unwrap_or_default()
}

/// The maps of names as the file has them now.
fn ident_maps(server: &Server) -> Vec<Vec<Datum>> {
    let (values, _) = server.values();
    let path = crate::client_auth::ident_path(&server.directory(), &values.settings);
    crate::client_auth::ident(&path).map(|maps| maps.rows()).unwrap_or_default()
}

fn java_threads() -> Vec<Vec<Datum>> {
    let row = |thread: java::ThreadInfo| {
        let of = |value: fn(java::Holder) -> Datum| thread.holder.map_or(Datum::Null, value);
        vec![
            Datum::Int8(thread.number),
            of(|holder| Datum::Int4(holder.pid)),
            of(|holder| Datum::Oid(holder.role)),
            text(thread.state),
            of(|holder| Datum::Timestamptz(crate::server::micros(holder.since))),
        ]
    };
    java::threads().into_iter().map(row).collect()
}

/// The lines of the files as they are now, as `pg_file_settings` shows them.
fn file_settings(server: &Server) -> Vec<Vec<Datum>> {
    let optional = |value: Option<&String>| value.map_or(Datum::Null, |value| text(value));
    let row = |(index, entry): (usize, &crate::config::Entry)| {
        let is_known = entry.name.is_some();
        vec![
            if entry.file.is_empty() { Datum::Null } else { text(&entry.file) },
            if entry.line == 0 { Datum::Null } else { Datum::Int4(entry.line as i32) },
            Datum::Int4(index as i32 + 1),
            optional(entry.name.as_ref()),
            optional(is_known.then_some(&entry.value)),
            Datum::Bool(entry.applied),
            optional(entry.error.as_ref()),
        ]
    };
    let entries = server.file_entries().unwrap_or_default();
    entries.iter().enumerate().map(row).collect()
}
