//! Types that users define.

use base::{Error, Result};
use sql::utility::Name;

use super::depend::Item;
use super::notice;
use crate::context::ExecContext;

/// The type that DROP TYPE or DROP DOMAIN names.
///
/// # Errors
/// `42704` when there is none.
pub fn find_to_drop(
    kind: &str,
    name: &Name,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Item>> {
    let view = cx.catalog_tx.view();
    if let Some(found) = view.type_named(cx.search_path, name.schema.as_deref(), &name.name) {
        let domain = matches!(found.kind, catalog::UserTypeKind::Domain { .. });
        if kind == "DOMAIN" && !domain {
            base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", name.name);
        }
        return Ok(Some(Item::Type(found.oid)));
    }
    let full = match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    };
    let message = format!("type \"{full}\" does not exist");
    if !if_exists {
        return Err(Error::new(base::sqlstate::UNDEFINED_OBJECT, message));
    }
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
    Ok(None)
}
