//! `pg_catalog` and `information_schema`: tables computed from a [`Snapshot`].
//!
//! `tables.txt` lists every table with its columns; a table that has rows of its own has one
//! function in one of the files here, found by name in [`rows`]. What only the running server
//! knows (`pg_stat_activity`, `pg_locks`, …) comes from [`ServerInfo::rows`]. To add a table: a
//! line in `tables.txt`, a function, a line in [`rows`].

mod acl_rows;
pub mod address;
mod builtin;
mod checked;
pub mod class;
pub(crate) mod classes;
mod collations;
pub mod cx;
mod defined;
mod depend;
pub mod extensions;
pub mod facts;
mod foreign;
mod information;
mod libraries;
pub mod named;
mod names;
mod partitions;
mod policies;
mod publications;
pub mod reg;
mod relation_rows;
mod relations;
mod roles;
pub mod row;
pub mod rows;
mod schema;
mod sequences;
mod shared_depend;
pub mod statistics;
pub mod tables;
pub(crate) mod text_search;
mod triggers;
mod type_text;
mod usage;
mod user_types;
mod views;

pub use class::{default_id, rule_id, view_of_rule};
pub use cx::{ServerInfo, SystemCx};
pub use facts::{description, descriptions};
pub use schema::{commented_class, is_shared_class};
pub use tables::{SystemTable, by_oid, find, find_function, table_by_oid, tables};

#[cfg(test)]
mod tests {
    use base::settings::Settings;
    use types::Datum;

    use super::tables::registry;
    use super::*;
    use crate::object::{Id, ids};
    use crate::snapshot::Snapshot;

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
            for row in rows::rows(table, &cx).unwrap() {
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            }
        }
        let class = find(None, "pg_class").unwrap();
        assert_eq!((class.oid, class.columns[1].name.as_str()), (1259, "relname"));
    }
}
