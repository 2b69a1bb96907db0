//! `pg_policy` and `pg_policies`.

use base::Result;
use types::{Datum, oids};

use super::row::{array, oid, row};
use crate::object::Policy;
use crate::object::ids::PG_CATALOG;
use crate::system::cx::SystemCx;
use crate::system::names::{role_name, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

fn text(sql: &Option<String>) -> Datum {
    sql.as_ref().map_or(Datum::Null, |sql| Datum::Text(sql.as_str().into()))
}

pub(super) fn pg_policy(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for table in cx.catalog.tables() {
        // As they were made: psql shows them so.
        let mut all: Vec<&Policy> = table.policies.iter().collect();
        all.sort_by_key(|policy| policy.oid);
        for policy in all {
            let roles = policy.roles.iter().map(|id| oid(*id)).collect();
            out.push(
                row(PG_CATALOG, "pg_policy")
                    .set("oid", oid(policy.oid))
                    .set("polname", policy.name.as_str())
                    .set("polrelid", oid(table.oid))
                    .set("polcmd", policy.command)
                    .set("polpermissive", policy.permissive)
                    .set("polroles", array(oids::OID, 1, roles))
                    .set("polqual", text(&policy.using))
                    .set("polwithcheck", text(&policy.check))
                    .done(),
            );
        }
    }
    Ok(out)
}

/// The roles' names, in their order; `public` for everybody.
fn roles(cx: &SystemCx<'_>, policy: &Policy) -> Datum {
    let public = || Datum::Text("public".into());
    let mut names: Vec<Datum> = policy
        .roles
        .iter()
        .map(|id| if *id == 0 { public() } else { role_name(cx, *id) })
        .collect();
    names.sort_by_key(|name| match name {
        Datum::Text(name) => name.to_string(),
        _ => String::new(),
    });
    array(oids::NAME, 1, names)
}

/// The conditions are as they are stored; the executor prints them.
pub(super) fn pg_policies(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for table in cx.catalog.tables() {
        for policy in &table.policies {
            let permissive = if policy.permissive { "PERMISSIVE" } else { "RESTRICTIVE" };
            out.push(
                row(PG_CATALOG, "pg_policies")
                    .set("schemaname", schema_name(cx, table.schema))
                    .set("tablename", table.name.as_str())
                    .set("policyname", policy.name.as_str())
                    .set("permissive", permissive)
                    .set("roles", roles(cx, policy))
                    .set("cmd", policy.command_word())
                    .set("qual", text(&policy.using))
                    .set("with_check", text(&policy.check))
                    .done(),
            );
        }
    }
    Ok(out)
}
