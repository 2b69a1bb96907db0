//! IMPORT FOREIGN SCHEMA: a wrapper says which CREATE FOREIGN TABLE statements describe the remote schema.

use base::Result;
use exec::context::{ExecContext, RowSink};
use exec::nested;
use sql::foreign::Import;
use types::{Batch, Datum};

use super::place::{require_use, server_named};

/// Definitions give no rows.
struct Nowhere;

impl RowSink for Nowhere {
    fn batch(&mut self, _batch: &Batch) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Runs IMPORT FOREIGN SCHEMA.
///
/// # Errors
/// `42704`, `42501`, `3F000`, `55000` for a wrapper without code, `HV00P` for one that can't; those of the
/// statements.
pub fn run(import: &Import, cx: &mut ExecContext<'_>) -> Result<()> {
    let server = server_named(&import.server, cx)?;
    require_use(&server, cx)?;
    let view = cx.catalog_tx.view();
    if view.schema_named(&import.local).is_none() {
        base::bail!(UNDEFINED_SCHEMA, "schema \"{}\" does not exist", import.local);
    }
    let code = sql::foreign::code_of_wrapper(&view, server.wrapper)?;
    for statement in exec::foreign::find(&code)?.import(import, &server, cx)? {
        sched::check_interrupts()?;
        let prepared = nested::prepare(&statement, &[], cx)?;
        let snapshot = nested::snapshot(true, cx);
        nested::run(&prepared, &[], snapshot, cx, &mut Nowhere)?;
        cx.tx.next_command();
    }
    Ok(())
}
