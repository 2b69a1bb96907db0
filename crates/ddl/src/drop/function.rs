//! DROP FUNCTION, PROCEDURE, ROUTINE and AGGREGATE.

use base::{Result, err};
use catalog::AclKind;
use exec::context::ExecContext;
use exec::rights;
use sql::utility::RoutineRef;

use crate::defined::place::full;
use crate::depend::drop_items;
use crate::function::{find, is_missing, owned_word};
use crate::item::Item;
use crate::notice;

/// DROP FUNCTION, PROCEDURE, ROUTINE.
///
/// # Errors
/// As [`find`]; `2BP01`, `42501`.
pub fn drop(
    routines: &[RoutineRef],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut items = Vec::new();
    for routine in routines {
        if let Some(missing) = &routine.missing {
            let message = format!("{missing}, skipping");
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            continue;
        }
        let function = match find(routine, cx) {
            Ok(function) => function,
            Err(error) if if_exists && is_missing(&error) => {
                let kind = routine.kind.to_lowercase();
                let message = match error.code() == base::sqlstate::UNDEFINED_SCHEMA {
                    true => format!("{}, skipping", error.message()),
                    false => format!(
                        "{kind} {}({}) does not exist, skipping",
                        full(&routine.name),
                        routine.written.join(",")
                    ),
                };
                notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
                continue;
            }
            Err(error) => return Err(error),
        };
        if routine.kind == "FUNCTION" && function.aggregate.is_some() {
            return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an aggregate function", function.name)
                .hint("Use DROP AGGREGATE to drop aggregate functions."));
        }
        let view = cx.catalog_tx.view();
        if !rights::of(cx, &view).owns(cx.role, AclKind::Schema, function.schema) {
            rights::require_owner(
                cx,
                AclKind::Function,
                function.oid,
                owned_word(&function),
                &function.name,
            )?;
        }
        let item = Item::Function(function.oid);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    drop_items(cx, &items, cascade)
}
