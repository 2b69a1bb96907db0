//! EXPLAIN.

use std::sync::Arc;

use base::{Error, Result};
use sql::Prepared;
use sql::utility::ExplainOptions;

use crate::context::{ExecContext, Outcome, RowSink};

/// EXPLAIN.
pub fn run(
    _statement: &Arc<Prepared>,
    _options: &ExplainOptions,
    _cx: &mut ExecContext<'_>,
    _sink: &mut dyn RowSink,
) -> Result<Outcome> {
    Err(Error::unsupported("EXPLAIN"))
}
