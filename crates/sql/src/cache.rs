//! The server's one plan cache, bounded in bytes, sharded.

use std::sync::Arc;

use base::{Oid, Result};
use types::Datum;

use crate::plan::Prepared;
use crate::prepare::PrepareContext;

/// See the module's documentation.
pub struct PlanCache {}

impl PlanCache {
    /// Empty.
    pub fn new() -> PlanCache {
        todo!()
    }

    /// For the extended protocol and PREPARE: the plan for this text and these types, from the cache
    /// if the catalog's version and the settings that matter are the same.
    pub fn prepare(
        &self,
        _text: &str,
        _param_types: &[Oid],
        _cx: &PrepareContext<'_>,
    ) -> Result<Arc<Prepared>> {
        todo!()
    }

    /// For the simple protocol: finds the plan by the text's shape, with the literals as
    /// parameters; falls back to a plan of its own. Only for a single statement.
    pub fn prepare_simple(
        &self,
        _text: &str,
        _cx: &PrepareContext<'_>,
    ) -> Result<(Arc<Prepared>, Vec<Datum>)> {
        todo!()
    }
}
