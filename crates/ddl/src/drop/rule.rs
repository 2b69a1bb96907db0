//! DROP RULE.

use base::{Result, err, sqlstate};
use catalog::snapshot::Relation;
use exec::context::ExecContext;
use exec::rights;
use sql::rule::DropRule;
use txn::LockMode;

use crate::depend::drop_items;
use crate::describe::describe;
use crate::item::Item;
use crate::lock;
use crate::notice;
use crate::rule::RETURN;

/// DROP RULE.
///
/// # Errors
/// `42P01`, `42704`, `42501`; `2BP01` for a view's query.
pub fn drop(def: &DropRule, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let (schema, name) = (def.table.schema.as_deref(), &def.table.name);
    let Some(found) = crate::relation::find(schema, name, def.if_exists, cx)? else {
        return Ok(());
    };
    let table = match &found {
        Relation::Table(table) => Some(table.clone()),
        _ => None,
    };
    if let Some(table) = table.as_ref().filter(|t| t.query.is_some() && def.name == RETURN) {
        rights::require_table_owner(cx, table)?;
        let what = describe(&view, cx.search_path, Item::Relation(table.oid));
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop rule {RETURN} on {what} because {what} requires it"
        )
        .hint(format!("You can drop {what} instead.")));
    }
    let rule = table.as_ref().and_then(|t| t.rule(&def.name)).map(|r| r.oid);
    let (Some(table), Some(rule)) = (table, rule) else {
        let name = crate::relation::name(&found);
        let message = format!("rule \"{}\" for relation \"{name}\" does not exist", def.name);
        if !def.if_exists {
            base::bail!(UNDEFINED_OBJECT, "{message}");
        }
        notice(cx, sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
        return Ok(());
    };
    let (kind, word) = (catalog::AclKind::Table, "relation");
    rights::require_owner(cx, kind, table.oid, word, &table.name)?;
    lock(cx, table.oid, LockMode::AccessExclusive)?;
    crate::expect_checked(cx, &table, "DROP RULE")?;
    drop_items(cx, &[Item::Rule(table.oid, rule)], def.cascade)
}
