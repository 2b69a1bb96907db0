//! Which expressions keep a row type's columns as they are: a stored expression has been bound for the columns' types, so
//! none of them may change while a view, default, check, index or the like uses the type.

use std::collections::HashSet;

use base::Result;
use catalog::{Snapshot, Table, UserTypeKind};
use exec::context::ExecContext;

use crate::depend;
use crate::describe::describe;
use crate::item::Item;
use crate::mentions::mentions;
use crate::user_types::has_inside;

/// `0A000` when a column somewhere has rows of the table as values.
pub fn expect_no_column(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    let view = cx.catalog_tx.view();
    let inside = crate::user_types::columns_of(&view, table.row_type[0]);
    let Some((other, n, _)) = inside.first().filter(|_| table.row_type[0] != 0) else {
        return Ok(());
    };
    let other = crate::refresh(cx, *other)?;
    let column = &other.columns[usize::from(*n) - 1];
    refuse(table, &format!("column \"{}.{}\"", other.name, column.name))
}

/// `0A000` when an expression uses rows of the table as values.
pub fn expect_no_expression(cx: &mut ExecContext<'_>, table: &Table) -> Result<()> {
    let view = cx.catalog_tx.view();
    let user = match table.row_type[0] {
        0 => None,
        ty => expression_with(&view, cx.search_path, ty),
    };
    user.map_or(Ok(()), |user| refuse(table, &user))
}

fn refuse(table: &Table, user: &str) -> Result<()> {
    base::bail!(
        FEATURE_NOT_SUPPORTED,
        "cannot alter {} \"{}\" because {user} uses its row type",
        exec::relation_lock::kind_word(table),
        table.name
    )
}

/// An object whose expressions use values of a type, or of one that has such values inside, as errors name it.
pub fn expression_with(view: &Snapshot, path: &[u32], ty: u32) -> Option<String> {
    let mut inside: HashSet<u32> = HashSet::from([ty]);
    for other in view.user_types() {
        let holds = other.oid == ty || has_inside(view, other.oid, ty);
        inside.extend(holds.then_some([other.oid, other.array]).into_iter().flatten());
    }
    for table in view.tables().filter(|t| t.row_type[0] == ty) {
        inside.insert(table.row_type[1]);
    }
    let mut inside: Vec<u32> = inside.into_iter().filter(|id| *id != 0).collect();
    inside.sort_unstable();
    inside.into_iter().find_map(|id| {
        let user = depend::expressions_using(view, id).into_iter().next();
        user.map(|item| described(view, path, item, id)).or_else(|| domain_check(view, id))
    })
}

/// A view is named by the rule that is its query.
fn described(view: &Snapshot, path: &[u32], item: Item, used: u32) -> String {
    let word = describe(view, path, item);
    let by_query = match item {
        Item::Relation(id) => view.table(id).and_then(|t| t.query.as_ref()),
        _ => None,
    };
    match by_query {
        Some(query) if query.uses.iter().any(|(id, _)| *id == used) => {
            format!("rule _RETURN on {word}")
        }
        _ => word,
    }
}

/// A domain whose conditions use the type.
fn domain_check(view: &Snapshot, used: u32) -> Option<String> {
    let name = view.user_type(used).map_or("", |t| t.name.as_str());
    let domain = view.user_types().find(|t| t.oid != used && t.uses.contains(&used))?;
    let UserTypeKind::Domain { checks, .. } = &domain.kind else { return None };
    let about = |c: &&catalog::Constraint| match &c.kind {
        catalog::ConstraintKind::Check(sql) => mentions(sql, name),
        _ => false,
    };
    let check = checks.iter().find(about).or_else(|| checks.first())?;
    Some(format!("constraint {}", exec::session::quote_identifier(&check.name)))
}
