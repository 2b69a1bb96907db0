//! Functions and procedures written back as SQL: what `pg_get_functiondef` and its kin show.

use std::fmt::Write as _;

use base::Oid;

use crate::definition::quote_ident;
use crate::object::{Function, FunctionArg, Id};
use crate::snapshot::Snapshot;

pub use crate::system::facts::RoutineInfo;

fn argument(function: &Function, arg: &FunctionArg, defaults: bool) -> String {
    let mut out = String::new();
    out.push_str(match arg.mode {
        'i' if function.procedure => "IN ",
        'o' => "OUT ",
        'b' => "INOUT ",
        'v' => "VARIADIC ",
        _ => "",
    });
    if !arg.name.is_empty() {
        let _ = write!(out, "{} ", quote_ident(&arg.name));
    }
    out.push_str(&types::io::format_type(Oid(arg.ty), -1));
    if let Some(default) = arg.default.as_deref().filter(|_| defaults) {
        let _ = write!(out, " DEFAULT {default}");
    }
    out
}

/// `a integer, b text DEFAULT 'x'::text`: all parameters but the columns of RETURNS TABLE.
pub fn arguments(function: &Function, defaults: bool) -> String {
    let shown = function.args.iter().filter(|a| a.mode != 't');
    let mut all: Vec<String> = shown.map(|a| argument(function, a, defaults)).collect();
    let Some(aggregate) = function.aggregate.as_deref().filter(|a| a.kind != 'n') else {
        return all.join(", ");
    };
    let direct = usize::from(aggregate.direct);
    let ordered = match all.last().filter(|_| direct == all.len() && function.is_variadic()) {
        // The last one stands for both.
        Some(last) => vec![last.clone()],
        None => all.split_off(direct.min(all.len())),
    };
    let space = if all.is_empty() { "" } else { " " };
    format!("{}{space}ORDER BY {}", all.join(", "), ordered.join(", "))
}

/// The text behind RETURNS; None for a procedure. `path`: schemas that need not be named.
pub fn result(catalog: &Snapshot, path: &[Id], function: &Function) -> Option<String> {
    if function.procedure {
        return None;
    }
    let columns: Vec<String> = function
        .args
        .iter()
        .filter(|a| a.mode == 't')
        .map(|a| argument(function, a, false))
        .collect();
    if function.set && !columns.is_empty() {
        return Some(format!("TABLE({})", columns.join(", ")));
    }
    let ty = match function.row_of.and_then(|id| catalog.table(id)) {
        Some(table) => match catalog.schema(table.schema) {
            Some(s) if !path.contains(&s.oid) => {
                format!("{}.{}", quote_ident(&s.name), quote_ident(&table.name))
            }
            _ => quote_ident(&table.name),
        },
        None => types::io::format_type(Oid(function.result), -1),
    };
    Some(if function.set { format!("SETOF {ty}") } else { ty })
}

/// A standard body under the names that it is kept with; None for one that is a string.
pub fn standard_body(function: &Function) -> Option<String> {
    if !function.standard_body {
        return None;
    }
    Some(match function.body.starts_with("RETURN ") {
        true => function.body.clone(),
        false => format!("BEGIN ATOMIC\n{}\nEND", function.body),
    })
}

/// Functions with a name, built in (also such as only stand behind a type) or users', in a schema or along the
/// path.
pub fn named(catalog: &Snapshot, path: &[Id], schema: Option<&str>, name: &str) -> Vec<Id> {
    let mut out = Vec::new();
    if schema.is_none_or(|s| s == "pg_catalog") {
        out = crate::system::facts::named(name);
        // Those that PostgreSQL does not have.
        let own = types::func::functions_named(name).iter().map(|f| f.oid.0);
        let own: Vec<Id> = own.filter(|id| !out.contains(id)).collect();
        out.extend(own);
    }
    let schemas = match schema {
        Some(schema) => catalog.schema_named(schema).map(|s| s.oid).into_iter().collect(),
        None => path.to_vec(),
    };
    let own = catalog.functions_named(name).filter(|f| schemas.contains(&f.schema));
    out.extend(own.map(|f| f.oid));
    out
}

/// See [`RoutineInfo`].
pub fn info(catalog: &Snapshot, id: Id) -> Option<RoutineInfo> {
    let Some(f) = catalog.function(id) else { return crate::system::facts::routine_info(id) };
    Some(RoutineInfo {
        oid: id,
        name: f.name.clone(),
        args: f.input_types(),
        result: Oid(f.result),
        set: f.set,
        strict: f.strict,
        kind: match &f.aggregate {
            Some(_) => 'a',
            None if f.procedure => 'p',
            None => 'f',
        },
        volatility: f.volatility,
        variadic: f.is_variadic(),
    })
}

/// The function with a name and these parameters.
pub fn with_types(
    catalog: &Snapshot,
    path: &[Id],
    schema: Option<&str>,
    name: &str,
    types: &[Oid],
) -> Option<Id> {
    let fits = |id: &Id| match catalog.function(*id) {
        Some(function) => function.input_types() == types,
        None => match crate::system::facts::argument_types(*id) {
            Some(known) => known.iter().eq(types.iter().map(|t| &t.0)),
            None => types::func::function(Oid(*id)).is_some_and(|f| f.args == types),
        },
    };
    named(catalog, path, schema, name).into_iter().find(fits)
}

/// A function as `regproc` shows it, or as `regprocedure` (with its parameters' types); None when there
/// is none.
pub fn shown(catalog: &Snapshot, path: &[Id], id: Id, signature: bool) -> Option<String> {
    let types = |types: &[Oid]| {
        let names: Vec<String> = types.iter().map(|t| types::io::format_type(*t, -1)).collect();
        if signature { format!("({})", names.join(",")) } else { String::new() }
    };
    let Some(function) = catalog.function(id) else {
        let row = types::func::function(Oid(id))?;
        return Some(format!("{}{}", row.name, types(row.args)));
    };
    let name = quote_ident(&function.name);
    let inputs = function.input_types();
    let found = if signature {
        with_types(catalog, path, None, &function.name, &inputs) == Some(id)
    } else {
        named(catalog, path, None, &function.name) == [id]
    };
    let types = types(&inputs);
    Some(match catalog.schema(function.schema) {
        Some(schema) if !found => format!("{}.{name}{types}", quote_ident(&schema.name)),
        _ => format!("{name}{types}"),
    })
}

/// The attributes that differ from what CREATE FUNCTION makes by itself.
fn attributes(function: &Function) -> String {
    let mut out = String::new();
    out.push_str(match function.volatility {
        'i' => " IMMUTABLE",
        's' => " STABLE",
        _ => "",
    });
    out.push_str(match function.parallel {
        's' => " PARALLEL SAFE",
        'r' => " PARALLEL RESTRICTED",
        _ => "",
    });
    for (set, word) in [
        (function.strict, " STRICT"),
        (function.security_definer, " SECURITY DEFINER"),
        (function.leakproof, " LEAKPROOF"),
    ] {
        out.push_str(if set { word } else { "" });
    }
    if function.cost
        != if matches!(function.language.as_str(), "internal" | "c") { 1.0 } else { 100.0 }
    {
        let _ = write!(out, " COST {}", function.cost);
    }
    if function.rows != 0.0 && function.rows != 1000.0 {
        let _ = write!(out, " ROWS {}", function.rows);
    }
    if let Some(name) = crate::system::facts::function_name(function.support) {
        let _ = write!(out, " SUPPORT {name}");
    }
    out
}

/// `CREATE OR REPLACE FUNCTION …`. `body`: a standard body as it is shown; None: as it is kept.
pub fn definition(
    catalog: &Snapshot,
    path: &[Id],
    function: &Function,
    body: Option<String>,
) -> String {
    let kind = if function.procedure { "PROCEDURE" } else { "FUNCTION" };
    let schema = catalog.schema(function.schema).map_or("", |s| s.name.as_str());
    let mut out = format!(
        "CREATE OR REPLACE {kind} {}.{}({})\n",
        quote_ident(schema),
        quote_ident(&function.name),
        arguments(function, true)
    );
    if let Some(result) = result(catalog, path, function) {
        let _ = writeln!(out, " RETURNS {result}");
    }
    let _ = writeln!(out, " LANGUAGE {}", quote_ident(&function.language));
    let attributes = attributes(function);
    if !attributes.is_empty() {
        let _ = writeln!(out, "{attributes}");
    }
    for (name, value) in &function.settings {
        let quoted = |v: &str| format!("'{}'", v.replace('\'', "''"));
        // Lists of names: each by itself.
        let names = base::settings::split_names(value);
        let items: Vec<String> = match names.filter(|_| base::settings::is_list_of_names(name)) {
            Some(names) => names.iter().map(|name| quoted(name)).collect(),
            None => vec![quoted(value)],
        };
        let _ = writeln!(out, " SET {} TO {}", quote_ident(name), items.join(", "));
    }
    match body.or_else(|| standard_body(function)) {
        Some(body) => out.push_str(&body),
        None if !function.library.is_empty() => {
            let library = function.library.replace('\'', "''");
            let _ = write!(out, "AS '{library}', $function${}$function$", function.body);
        }
        None => {
            let mut tag = kind.to_lowercase();
            while function.body.contains(&format!("${tag}")) {
                tag.push('x');
            }
            let _ = write!(out, "AS ${tag}${}${tag}$", function.body);
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        let arg = |name: &str, ty, mode, default: Option<&str>| FunctionArg {
            name: name.to_owned(),
            ty,
            mode,
            default: default.map(str::to_owned),
        };
        Function {
            oid: 20000,
            name: "F".to_owned(),
            schema: 2200,
            owner: 10,
            args: vec![
                arg("a", 23, 'i', None),
                arg("", 25, 'i', Some("'x'::text")),
                arg("n", 23, 't', None),
            ],
            result: 23,
            set: true,
            language: "sql".to_owned(),
            body: "select $function$ a".to_owned(),
            volatility: 's',
            strict: true,
            procedure: false,
            security_definer: false,
            leakproof: false,
            parallel: 'u',
            cost: 10.0,
            rows: 1000.0,
            standard_body: false,
            path: vec![],
            uses: vec![],
            settings: vec![],
            row_of: None,
            aggregate: None,
            support: 0,
            library: String::new(),
        }
    }

    #[test]
    fn a_definition_can_be_given_again() {
        let text = definition(&Snapshot::default(), &[], &function(), None);
        assert_eq!(
            text,
            "CREATE OR REPLACE FUNCTION \"\".\"F\"(a integer, text DEFAULT 'x'::text)\n \
             RETURNS TABLE(n integer)\n LANGUAGE sql\n STABLE STRICT COST 10\n\
             AS $functionx$select $function$ a$functionx$\n"
        );
    }
}
