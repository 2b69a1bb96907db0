//! DROP TRIGGER.

use base::{Result, sqlstate};
use catalog::AclKind;
use catalog::snapshot::Relation;
use exec::context::ExecContext;
use exec::rights;
use sql::trigger::DropTrigger;
use txn::LockMode;

use crate::depend::drop_items;
use crate::item::Item;
use crate::lock;
use crate::notice;
use crate::refresh;
use crate::relation;
use crate::trigger::expect_whole;

/// DROP TRIGGER.
///
/// # Errors
/// `42P01`, `42704`, `42501`.
pub fn drop(def: &DropTrigger, cx: &mut ExecContext<'_>) -> Result<()> {
    let (schema, name) = (def.table.schema.as_deref(), &def.table.name);
    let Some(found) = crate::relation::find(schema, name, def.if_exists, cx)? else {
        return Ok(());
    };
    let trigger = match &found {
        Relation::Table(table) => table.trigger(&def.name).map(|one| (table.oid, one.oid)),
        _ => None,
    };
    let Some((table, trigger)) = trigger else {
        let name = relation::name(&found);
        if !def.if_exists {
            base::bail!(
                UNDEFINED_OBJECT,
                "trigger \"{}\" for table \"{name}\" does not exist",
                def.name
            );
        }
        let message =
            format!("trigger \"{}\" for relation \"{name}\" does not exist, skipping", def.name);
        notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    };
    let class = refresh(cx, table)?;
    let word = "relation";
    rights::require_owner(cx, AclKind::Table, table, word, &class.name)?;
    lock(cx, table, LockMode::AccessExclusive)?;
    crate::expect_checked(cx, &class, "DROP TRIGGER")?;
    expect_whole(cx, &class, trigger)?;
    drop_items(cx, &[Item::Trigger(table, trigger)], def.cascade)
}
