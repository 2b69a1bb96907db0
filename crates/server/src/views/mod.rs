//! Rows of the statistics views that the running server fills.

mod activity;
mod blocking;
mod locks;
mod memory;
mod session;
mod tables;

use base::settings::show;
use types::Datum;

use crate::server::Server;

pub use session::{cursors, prepared_statements};
pub use tables::pages;

/// Rows of a view; none for a view that isn't kept.
pub fn rows(server: &Server, view: &str) -> Vec<Vec<Datum>> {
    match view {
        "pg_stat_activity" => server.sessions.all().iter().map(|e| activity::activity(e)).collect(),
        "pg_stat_blocking" => blocking::now(server),
        "pg_stat_blocking_history" => blocking::history(server),
        "pg_locks" => locks::locks(server),
        "pg_stat_all_tables" => tables::tables(server, true),
        "pg_stat_user_tables" => tables::tables(server, false),
        "pg_stat_session_memory" => memory::sessions(),
        "pg_stat_server_memory" => memory::server(server),
        "pg_shmem_allocations" => memory::allocations(server),
        "pg_file_settings" => file_settings(server),
        _ => Vec::new(),
    }
}

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

fn time(value: i64) -> Datum {
    if value == 0 { Datum::Null } else { Datum::Timestamptz(value) }
}

/// What the files say, as `pg_file_settings` shows it.
fn file_settings(server: &Server) -> Vec<Vec<Datum>> {
    let (values, _) = server.values();
    let defaults = base::settings::Settings::default();
    let mut rows = Vec::new();
    for (i, def) in base::settings::SETTINGS.iter().enumerate() {
        let id = base::settings::SettingId(i as u16);
        let value = values.settings.get(id);
        if value != defaults.get(id) {
            rows.push(vec![
                Datum::Null,
                Datum::Null,
                Datum::Int4(rows.len() as i32 + 1),
                text(def.name),
                text(&show(id, value)),
                Datum::Bool(true),
                Datum::Null,
            ]);
        }
    }
    rows
}
