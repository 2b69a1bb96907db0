//! `information_schema`: users' functions and their parameters, what standard bodies use, and the columns that
//! generated ones are computed from.

use std::collections::BTreeSet;

use base::Result;
use types::Datum;

use super::row::Row;
use crate::acl::{Rights, privilege};
use crate::object::{AclKind, Function, Id, Table};
use crate::system::cx::SystemCx;
use crate::system::names::{database_name, info, info_visible, schema_name};

type Rows = Result<Vec<Vec<Datum>>>;

fn specific_name(f: &Function) -> String {
    format!("{}_{}", f.name, f.oid)
}

/// The first columns of a view about a function; `routine_name` is another one's in one of the views.
fn of_function(cx: &SystemCx<'_>, view: &'static str, f: &Function, named: (Id, &str)) -> Row {
    info(cx, view, "specific", f.schema, &specific_name(f))
        .set("routine_catalog", database_name(cx))
        .set("routine_schema", schema_name(cx, named.0))
        .set("routine_name", named.1)
}

/// Calls `f` with each function and each object that it uses, in order.
fn each_use(cx: &SystemCx<'_>, f: &mut dyn FnMut(&Function, Id, u16)) {
    for function in cx.catalog.functions() {
        for (id, column) in function.uses.iter().collect::<BTreeSet<_>>() {
            f(function, *id, *column);
        }
    }
}

fn may_see(cx: &SystemCx<'_>, owner: Id) -> bool {
    Rights { catalog: cx.catalog, database: cx.database }.has_rights_of(cx.role, owner)
}

fn of_table(cx: &SystemCx<'_>, view: &'static str, f: &Function, t: &Table) -> Row {
    of_function(cx, view, f, (f.schema, &f.name))
        .set("table_catalog", database_name(cx))
        .set("table_schema", schema_name(cx, t.schema))
        .set("table_name", t.name.as_str())
}

pub(super) fn routine_table_usage(cx: &SystemCx<'_>) -> Rows {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    each_use(cx, &mut |f, id, _| {
        if let Some(table) = cx.catalog.table(id).filter(|t| may_see(cx, t.owner))
            && seen.insert((f.oid, id))
        {
            out.push(of_table(cx, "routine_table_usage", f, table).done());
        }
    });
    Ok(out)
}

pub(super) fn routine_column_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_use(cx, &mut |f, id, column| {
        let Some(table) = cx.catalog.table(id).filter(|t| may_see(cx, t.owner)) else { return };
        let at = usize::from(column).checked_sub(1);
        if let Some(column) = at.and_then(|at| table.columns.get(at)) {
            let row = of_table(cx, "routine_column_usage", f, table);
            out.push(row.set("column_name", column.name.as_str()).done());
        }
    });
    Ok(out)
}

pub(super) fn routine_sequence_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_use(cx, &mut |f, id, _| {
        if let Some(sequence) = cx.catalog.sequence(id).filter(|s| may_see(cx, s.owner)) {
            let row = of_function(cx, "routine_sequence_usage", f, (f.schema, &f.name))
                .set("sequence_catalog", database_name(cx))
                .set("sequence_schema", schema_name(cx, sequence.schema))
                .set("sequence_name", sequence.name.as_str());
            out.push(row.done());
        }
    });
    Ok(out)
}

pub(super) fn routine_routine_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    each_use(cx, &mut |f, id, _| {
        let called = cx.catalog.function(id).filter(|c| may_see(cx, c.owner));
        if let (None, Some(called)) = (&f.aggregate, called.filter(|c| c.aggregate.is_none())) {
            let name = specific_name(called);
            let named = (called.schema, name.as_str());
            out.push(of_function(cx, "routine_routine_usage", f, named).done());
        }
    });
    Ok(out)
}

pub(super) fn column_column_usage(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in info_visible(cx).filter(|t| may_see(cx, t.owner)) {
        for (_, generated) in t.live_columns().filter(|(_, c)| c.generated) {
            let names = columns_in(generated.default.as_deref().unwrap_or_default());
            for (_, column) in t.live_columns().filter(|(_, c)| names.contains(&c.name)) {
                let row = info(cx, "column_column_usage", "table", t.schema, &t.name)
                    .set("column_name", column.name.as_str())
                    .set("dependent_column", generated.name.as_str());
                out.push(row.done());
            }
        }
    }
    Ok(out)
}

/// Users' functions and procedures that the session's role may know of.
fn routines_of<'a>(cx: &'a SystemCx<'_>) -> impl Iterator<Item = &'a std::sync::Arc<Function>> {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    cx.catalog.functions().filter(move |f| {
        rights.has_rights_of(cx.role, f.owner)
            || rights.may(cx.role, AclKind::Function, f.oid, privilege::EXECUTE)
    })
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

pub(super) fn routines(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for f in routines_of(cx) {
        let external = if f.language == "sql" { "SQL" } else { "EXTERNAL" };
        let mut row = of_function(cx, "routines", f, (f.schema, &f.name))
            .set("routine_body", external)
            .set("external_language", f.language.to_uppercase().as_str())
            .set("parameter_style", "GENERAL")
            .set("is_deterministic", yes_no(f.volatility == 'i'))
            .set("sql_data_access", "MODIFIES")
            .set("schema_level_routine", "YES")
            .set("max_dynamic_result_sets", 0)
            .set("security_type", if f.security_definer { "DEFINER" } else { "INVOKER" })
            .set("as_locator", "NO")
            .set("is_udt_dependent", "NO");
        if f.aggregate.is_none() {
            row = row.set("routine_type", if f.procedure { "PROCEDURE" } else { "FUNCTION" });
        }
        if may_see(cx, f.owner) {
            row = row.set("routine_definition", if f.standard_body { "" } else { &f.body });
        }
        if f.language == "c" {
            row = row.set("external_name", f.body.as_str());
        }
        if !f.procedure {
            let what = super::user_types::described(cx, f.result, -1);
            row = row
                .set("data_type", what.data_type.as_str())
                .set("type_udt_catalog", database_name(cx))
                .set("type_udt_schema", what.schema.as_str())
                .set("type_udt_name", what.name.as_str())
                .set("dtd_identifier", "0")
                .set("is_null_call", yes_no(f.strict));
        }
        out.push(row.done());
    }
    Ok(out)
}

/// The default of a parameter is the function's oid and the parameter's number, which the executor prints.
pub(super) fn parameters(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for f in routines_of(cx) {
        for (n, arg) in f.args.iter().enumerate() {
            let what = super::user_types::described(cx, arg.ty, -1);
            let mode = match arg.mode {
                'o' | 't' => "OUT",
                'b' => "INOUT",
                _ => "IN",
            };
            let number = n as i32 + 1;
            let mut row = info(cx, "parameters", "specific", f.schema, &specific_name(f))
                .set("ordinal_position", number)
                .set("parameter_mode", mode)
                .set("is_result", "NO")
                .set("as_locator", "NO")
                .set("data_type", what.data_type.as_str())
                .set("udt_catalog", database_name(cx))
                .set("udt_schema", what.schema.as_str())
                .set("udt_name", what.name.as_str())
                .set("dtd_identifier", number.to_string().as_str());
            if !arg.name.is_empty() {
                row = row.set("parameter_name", arg.name.as_str());
            }
            if arg.default.is_some() && may_see(cx, f.owner) {
                row = row.set("parameter_default", format!("{} {number}", f.oid).as_str());
            }
            out.push(row.done());
        }
    }
    Ok(out)
}

/// The names in a stored expression that may be columns': not strings, types behind `::`, or functions.
pub(super) fn columns_in(sql: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut rest = sql;
    let mut before = "";
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        let called = after.starts_with('(') || before.ends_with("::") || before.ends_with('.');
        let name = word.trim_matches('"');
        if !called
            && first != '\''
            && name.starts_with(|c: char| !c.is_ascii_digit() && (first == '"' || is_word(c)))
        {
            out.insert(name.to_owned());
        }
        before = &sql[..sql.len() - after.len()];
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::columns_in;

    #[test]
    fn columns_are_told_from_what_else_has_names() {
        let names: Vec<String> =
            columns_in("((a * f(b)) || 'c'::d) || \"E f\"").into_iter().collect();
        assert_eq!(names, ["E f", "a", "b"]);
    }
}
