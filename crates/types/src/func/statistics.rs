//! Aggregates of statistics.

use base::Oid;

use super::aggregate::Start;

/// Whether the aggregate skips NULLs, and its start.
pub(super) fn find(_name: &str, _args: &[Oid]) -> Option<(bool, Start)> {
    None
}
