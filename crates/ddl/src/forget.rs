//! Removing comments and files of an object that goes.

use base::{RelId, Result};
use exec::context::ExecContext;
use exec::rights;

/// Takes the comments on an object and its columns away.
///
/// # Errors
/// Those of the catalog.
pub fn remove_comments(cx: &mut ExecContext<'_>, object: u32) -> Result<()> {
    rights::forget(cx, object)?;
    let view = cx.catalog_tx.view();
    let ids: Vec<u32> = view.comments_on(object).map(|c| c.oid).collect();
    ids.into_iter().try_for_each(|id| cx.catalog_tx.remove(cx.tx, id))
}

/// Takes the comment on a column away.
///
/// # Errors
/// Those of the catalog.
pub fn remove_column_comment(cx: &mut ExecContext<'_>, object: u32, column: u16) -> Result<()> {
    let view = cx.catalog_tx.view();
    let found = view.comments_on(object).find(|c| c.column == column);
    match found {
        Some(comment) => cx.catalog_tx.remove(cx.tx, comment.oid),
        None => Ok(()),
    }
}

/// Files that go when the transaction commits.
pub fn drop_files(cx: &mut ExecContext<'_>, rel: u32) -> Result<()> {
    if rel != 0 {
        cx.tx.replaces_relation(RelId(rel))?;
        cx.catalog_tx.drop_files_at_commit(RelId(rel));
    }
    Ok(())
}
