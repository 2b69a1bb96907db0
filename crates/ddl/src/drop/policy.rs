//! DROP POLICY.

use base::{Result, sqlstate};
use catalog::snapshot::Relation;
use exec::context::ExecContext;
use exec::rights;
use sql::policy::DropPolicy;
use txn::LockMode;

use crate::depend::drop_items;
use crate::item::Item;
use crate::lock;
use crate::notice;

/// DROP POLICY.
///
/// # Errors
/// `42P01`, `42704`, `42501`.
pub fn drop(def: &DropPolicy, cx: &mut ExecContext<'_>) -> Result<()> {
    let (schema, name) = (def.table.schema.as_deref(), &def.table.name);
    let Some(found) = crate::relation::find(schema, name, def.if_exists, cx)? else {
        return Ok(());
    };
    let policy = match &found {
        Relation::Table(table) => table.policy(&def.name).map(|p| (table.clone(), p.oid)),
        _ => None,
    };
    let Some((table, policy)) = policy else {
        let (policy, name) = (&def.name, crate::relation::name(&found));
        if !def.if_exists {
            base::bail!(
                UNDEFINED_OBJECT,
                "policy \"{policy}\" for table \"{name}\" does not exist"
            );
        }
        let message =
            format!("policy \"{policy}\" for relation \"{name}\" does not exist, skipping");
        notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    };
    let (kind, word) = (catalog::AclKind::Table, "relation");
    rights::require_owner(cx, kind, table.oid, word, &table.name)?;
    lock(cx, table.oid, LockMode::AccessExclusive)?;
    crate::expect_checked(cx, &table, "DROP POLICY")?;
    drop_items(cx, &[Item::Policy(table.oid, policy)], def.cascade)
}
