//! ALTER, GRANT and REVOKE … LARGE OBJECT.

use base::{Result, err};
use catalog::acl::privilege;
use exec::context::ExecContext;
use exec::rights;
use exec::session::large_object;
use sql::utility::LargeObjectStatement;

/// See the module's documentation.
///
/// # Errors
/// `42704` for what isn't there, `42501`, `0LP01` for rights that large objects don't have.
pub fn run(statement: &LargeObjectStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        LargeObjectStatement::Owner(id, role) => {
            let owner = rights::role(cx, role)?;
            let view = cx.catalog_tx.view();
            if !rights::of(cx, &view).has_rights_of(cx.role, owner) {
                let name = view.role(owner).map_or("", |r| r.name.as_str());
                base::bail!(INSUFFICIENT_PRIVILEGE, "must be member of role \"{name}\"");
            }
            large_object::set_owner(*id, owner, cx)
        }
        LargeObjectStatement::Grant { grant, objects, privileges, grantees, option } => {
            let bits = bits(privileges)?;
            let mut roles = Vec::with_capacity(grantees.len());
            for grantee in grantees {
                roles.push(match grantee {
                    sql::role::RoleRef::Public => 0,
                    role => rights::role(cx, role)?,
                });
            }
            for id in objects {
                large_object::grant(*id, (*grant, bits, *option), &roles, cx)?;
            }
            Ok(())
        }
    }
}

/// The bits of rights; none are named: all.
fn bits(words: &[String]) -> Result<u16> {
    let all = privilege::SELECT | privilege::UPDATE;
    if words.is_empty() {
        return Ok(all);
    }
    let mut bits = 0;
    for word in words {
        let bit = privilege::named(word)
            .ok_or_else(|| err!(SYNTAX_ERROR, "unrecognized privilege type \"{word}\""))?;
        if bit & all == 0 {
            base::bail!(
                INVALID_GRANT_OPERATION,
                "invalid privilege type {} for large object",
                word.to_uppercase()
            );
        }
        bits |= bit;
    }
    Ok(bits)
}
