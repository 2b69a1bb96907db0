//! The wrapper as the executor knows it.

use base::Result;
use catalog::{ForeignServer, Table};
use exec::context::ExecContext;
use exec::foreign::{About, ForeignChange, ForeignRows, Wrapper};
use exec::run::Run;
use sql::foreign::Import;
use sql::plan::{ForeignQuery, ForeignScan, Modify};

use crate::{import, modify, remote, scan};

/// postgres_fdw.
pub struct PostgresWrapper;

impl Wrapper for PostgresWrapper {
    fn scan(&self, scan: &ForeignScan, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
        scan::begin(scan, run)
    }

    fn explain(&self, scan: &ForeignScan, about: &About<'_>) -> Vec<(&'static str, String)> {
        if !about.verbose {
            return Vec::new();
        }
        let schema = about.schema_of(&scan.scan.table);
        match scan::query(scan, schema.as_deref(), &mut |_| Ok(None)) {
            Ok(sql) => vec![("Remote SQL", sql)],
            Err(_) => Vec::new(),
        }
    }

    fn query(&self, query: &ForeignQuery, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
        remote::begin(query, run)
    }

    fn explain_query(
        &self,
        query: &ForeignQuery,
        about: &About<'_>,
    ) -> Vec<(&'static str, String)> {
        if !about.verbose {
            return Vec::new();
        }
        let schema = |table: &Table| about.schema_of(table);
        match remote::text(query, &schema, &mut |_| Ok(None)) {
            Ok(sql) => vec![("Remote SQL", sql)],
            Err(_) => Vec::new(),
        }
    }

    fn modify(&self, modify: &Modify, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignChange>> {
        modify::begin(modify, run)
    }

    fn truncate(
        &self,
        table: &Table,
        cascade: bool,
        restart: bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        modify::truncate(table, cascade, restart, cx)
    }

    fn import(
        &self,
        import: &Import,
        server: &ForeignServer,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<String>> {
        import::statements(import, server, cx)
    }
}
