//! Partitioning written back as SQL: PARTITION BY, FOR VALUES, and the condition that a partition's rows fulfil.

use base::{Oid, Result};
use types::{Datum, FormatContext, oids};

use crate::definition::{collation_name, quote_ident};
use crate::object::{Edge, PartitionBound, PartitionKey, Partitioning, Strategy, Table};
use crate::snapshot::Snapshot;

/// `RANGE (a, lower(b))`. `expression` prints a stored expression as a key.
pub fn key(
    catalog: &Snapshot,
    table: &Table,
    by: &Partitioning,
    expression: &dyn Fn(&str) -> String,
) -> String {
    let one = |key: &PartitionKey| {
        let column = usize::from(key.column).checked_sub(1).and_then(|n| table.columns.get(n));
        let (mut out, usual) = match (column, &key.expression) {
            (Some(column), _) => (quote_ident(&column.name), catalog.column_collation(column)),
            (None, Some(sql)) => (expression(sql), own_collation(catalog, key)),
            (None, None) => (String::new(), 0),
        };
        if key.collation != 0 && key.collation != usual {
            out.push_str(" COLLATE ");
            out.push_str(&collation_name(catalog, key.collation));
        }
        if let Some(class) = key.class.as_ref().filter(|class| !is_usual(class, key.ty)) {
            out.push(' ');
            out.push_str(class);
        }
        out
    };
    let keys: Vec<String> = by.keys.iter().map(one).collect();
    format!("{} ({})", by.strategy.word(), keys.join(", "))
}

/// Whether an operator class is its type's default one.
fn is_usual(class: &str, ty: u32) -> bool {
    let name = types::io::format_type(Oid(ty), -1);
    let usual = match Oid(ty) {
        oids::INT2 => "int2_ops",
        oids::INT4 => "int4_ops",
        oids::INT8 => "int8_ops",
        oids::VARCHAR | oids::TEXT => "text_ops",
        oids::BPCHAR => "bpchar_ops",
        oids::TIMESTAMPTZ => "timestamptz_ops",
        oids::TIMESTAMP => "timestamp_ops",
        _ => return class.strip_suffix("_ops") == Some(&name),
    };
    class == usual
}

/// A value as PostgreSQL prints one in a bound.
fn value(ty: u32, text: &str, format: Option<&FormatContext>) -> String {
    let shown = format
        .and_then(|format| {
            let datum = types::io::input(Oid(ty), -1, text, &FormatContext::default()).ok()?;
            types::io::to_text(Oid(ty), &datum, format).ok().map(|s| s.to_string())
        })
        .unwrap_or_else(|| text.to_owned());
    let digit = shown.as_bytes().first().is_some_and(u8::is_ascii_digit);
    match Oid(ty) {
        oids::INT4 if digit => shown,
        oids::NUMERIC if digit && shown.contains(['.', 'e', 'E']) => shown,
        oids::BOOL => if shown.starts_with('t') { "true" } else { "false" }.to_owned(),
        _ => types::func::quote_literal(&shown),
    }
}

/// `(1, MINVALUE)`.
pub fn edges(by: &Partitioning, list: &[Edge<String>], format: Option<&FormatContext>) -> String {
    let one = |(edge, key): (&Edge<String>, &PartitionKey)| match edge {
        Edge::Min => "MINVALUE".to_owned(),
        Edge::Max => "MAXVALUE".to_owned(),
        Edge::Value(text) => value(key.ty, text, format),
    };
    let all: Vec<String> = list.iter().zip(&by.keys).map(one).collect();
    format!("({})", all.join(", "))
}

/// `FOR VALUES …` or `DEFAULT`.
pub fn bound(by: &Partitioning, bound: &PartitionBound, format: Option<&FormatContext>) -> String {
    match bound {
        PartitionBound::Default => "DEFAULT".to_owned(),
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
        PartitionBound::Range { from, to } => {
            format!("FOR VALUES FROM {} TO {}", edges(by, from, format), edges(by, to, format))
        }
        PartitionBound::List(values) => {
            let ty = by.keys.first().map_or(0, |k| k.ty);
            let one = |v: &Option<String>| match v {
                Some(text) => value(ty, text, format),
                None => "NULL".to_owned(),
            };
            let all: Vec<String> = values.iter().map(one).collect();
            format!("FOR VALUES IN ({})", all.join(", "))
        }
    }
}

/// A value as a constant of a condition.
fn constant(key: &PartitionKey, text: &str) -> String {
    let ty = Oid(key.ty);
    let digit = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
    match ty {
        oids::INT4 if digit => text.to_owned(),
        oids::BOOL => if text.starts_with('t') { "true" } else { "false" }.to_owned(),
        oids::NUMERIC if digit && text.contains('.') => text.to_owned(),
        oids::VARCHAR => format!("{}::character varying", types::func::quote_literal(text)),
        oids::BPCHAR => format!("{}::bpchar", types::func::quote_literal(text)),
        _ => {
            let name = types::io::format_type(ty, key.typmod);
            format!("{}::{name}", types::func::quote_literal(text))
        }
    }
}

/// A key of a table as a condition names it.
/// A key as an expression over the rows of its table.
pub fn operand(catalog: &Snapshot, table: &Table, key: &PartitionKey) -> String {
    let column = usize::from(key.column).checked_sub(1).and_then(|n| table.columns.get(n));
    let (mut out, usual) = match (column, &key.expression) {
        (Some(column), _) => {
            let name = quote_ident(&column.name);
            let name = match Oid(column.ty) == oids::VARCHAR {
                true => format!("({name})::text"),
                false => name,
            };
            (name, catalog.column_collation(column))
        }
        (None, Some(sql)) => (enclosed(sql), own_collation(catalog, key)),
        (None, None) => (String::new(), 0),
    };
    if key.collation != 0 && key.collation != usual {
        out = format!("({out} COLLATE {})", collation_name(catalog, key.collation));
    }
    out
}

/// The collation of a key that is an expression, where none is named.
fn own_collation(catalog: &Snapshot, key: &PartitionKey) -> u32 {
    if key.own_collation != 0 { key.own_collation } else { catalog.type_collation(key.ty) }
}

/// The condition that a bound makes, without those of tables further up; None: it is no condition.
///
/// # Errors
/// A bound of a neighbour that can't be read.
pub fn condition(
    catalog: &Snapshot,
    table: &Table,
    bound: &PartitionBound,
) -> Result<Option<String>> {
    Ok(conditions(catalog, table, bound)?.map(|parts| all_of(&parts)))
}

/// The same, part by part.
fn conditions(
    catalog: &Snapshot,
    table: &Table,
    bound: &PartitionBound,
) -> Result<Option<Vec<String>>> {
    let Some(by) = &table.partitioning else { return Ok(None) };
    let operands: Vec<String> = by.keys.iter().map(|k| operand(catalog, table, k)).collect();
    Ok(match bound {
        PartitionBound::Default => default_condition(catalog, table)?.map(|one| vec![one]),
        PartitionBound::Hash { modulus, remainder } => Some(vec![format!(
            "satisfies_hash_partition('{}'::oid, {modulus}, {remainder}, {})",
            table.oid,
            operands.join(", ")
        )]),
        PartitionBound::List(values) => Some(list(&by.keys[0], &operands[0], values)),
        PartitionBound::Range { from, to } => {
            let mut parts = not_null(&operands);
            parts.extend(range(by, &operands, from, to));
            Some(parts)
        }
    })
}

fn all_of(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        all => format!("({})", all.join(" AND ")),
    }
}

fn not_null(operands: &[String]) -> Vec<String> {
    operands.iter().map(|operand| format!("({operand} IS NOT NULL)")).collect()
}

fn list(key: &PartitionKey, operand: &str, values: &[Option<String>]) -> Vec<String> {
    let some: Vec<String> = values.iter().flatten().map(|text| constant(key, text)).collect();
    let null = values.iter().any(Option::is_none);
    let test = match &some[..] {
        [] => return vec![format!("({operand} IS NULL)")],
        [one] => format!("({operand} = {one})"),
        // The elements of an array of arrays would not be arrays.
        all if types::TypeIo::get(base::Oid(key.ty)).is_some_and(|io| io.element.0 != 0) => {
            let tests = all.iter().map(|one| format!("({operand} = {one})"));
            format!("({})", tests.collect::<Vec<_>>().join(" OR "))
        }
        all => format!("({operand} = ANY (ARRAY[{}]))", all.join(", ")),
    };
    match null {
        true => vec![format!("(({operand} IS NULL) OR {test})")],
        false => vec![format!("({operand} IS NOT NULL)"), test],
    }
}

fn range(
    by: &Partitioning,
    operands: &[String],
    from: &[Edge<String>],
    to: &[Edge<String>],
) -> Vec<String> {
    let mut parts = Vec::new();
    // The columns that both bounds begin with alike are said once.
    let common = from.iter().zip(to).take_while(|(a, b)| a == b && matches!(a, Edge::Value(_)));
    let common = common.count();
    for ((edge, key), operand) in from.iter().zip(&by.keys).zip(operands).take(common) {
        if let Edge::Value(text) = edge {
            parts.push(format!("({operand} = {})", constant(key, text)));
        }
    }
    for (edges, outer, inner) in [(from, ">", ">="), (to, "<", "<")] {
        parts.extend(side(&by.keys[common..], &operands[common..], &edges[common..], outer, inner));
    }
    parts
}

/// One bound of a range: `(a > 1) OR ((a = 1) AND (b >= 2))`.
fn side(
    keys: &[PartitionKey],
    operands: &[String],
    edges: &[Edge<String>],
    outer: &str,
    inner: &str,
) -> Option<String> {
    let upper = outer == "<";
    let open = if upper { Edge::Max } else { Edge::Min };
    let mut arms: Vec<String> = Vec::new();
    let mut equal: Vec<String> = Vec::new();
    for (at, ((edge, key), operand)) in edges.iter().zip(keys).zip(operands).enumerate() {
        match edge {
            Edge::Value(text) => {
                let value = constant(key, text);
                let next_open = edges.get(at + 1).is_some_and(|e| *e == open);
                let last = at + 1 == edges.len();
                let test = match (last, next_open, upper) {
                    (true, ..) => format!("({operand} {inner} {value})"),
                    (_, true, true) => format!("({operand} <= {value})"),
                    (_, true, false) => format!("({operand} >= {value})"),
                    _ => format!("({operand} {outer} {value})"),
                };
                arms.push(joined(&equal, test));
                if next_open {
                    break;
                }
                equal.push(format!("({operand} = {value})"));
            }
            edge if *edge == open && at == 0 => return None,
            // Above everything (or below): no row has more to say.
            _ => break,
        }
    }
    match &arms[..] {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("({})", all.join(" OR "))),
    }
}

fn joined(equal: &[String], test: String) -> String {
    match equal.is_empty() {
        true => test,
        false => format!("({} AND {test})", equal.join(" AND ")),
    }
}

/// The condition of a default partition: none of the others'.
///
/// # Errors
/// As [`condition`].
pub fn default_condition(catalog: &Snapshot, table: &Table) -> Result<Option<String>> {
    let (Some(by), Some(family)) = (&table.partitioning, catalog.family(table.oid)) else {
        return Ok(None);
    };
    let operands: Vec<String> = by.keys.iter().map(|k| operand(catalog, table, k)).collect();
    let bounds = family.bounds(by)?;
    let mut arms: Vec<String> = Vec::new();
    if by.strategy == Strategy::List {
        let mut values: Vec<Option<String>> = Vec::new();
        for part in &bounds.parts {
            if let Some(PartitionBound::List(list)) = part.bound.as_deref() {
                values.extend(list.iter().cloned());
            }
        }
        return Ok((!values.is_empty())
            .then(|| format!("(NOT {})", all_of(&list(&by.keys[0], &operands[0], &values)))));
    }
    for part in &bounds.parts {
        if let Some(PartitionBound::Range { from, to }) = part.bound.as_deref() {
            arms.push(all_of(&range(by, &operands, from, to)));
        }
    }
    let held = match &arms[..] {
        [] => return Ok(None),
        [one] => one.clone(),
        all => format!("({})", all.join(" OR ")),
    };
    let mut parts = not_null(&operands);
    parts.push(held);
    Ok(Some(format!("(NOT {})", all_of(&parts))))
}

/// `pg_get_partition_constraintdef`: the conditions of a partition and of the tables above it.
///
/// # Errors
/// As [`condition`].
pub fn whole_condition(catalog: &Snapshot, table: &Table) -> Result<Option<String>> {
    let mut parts: Vec<String> = Vec::new();
    let mut at = catalog.table(table.oid).cloned();
    while let Some(part) = at {
        let (Some(parent), Some(bound)) = (part.partition_of(), &part.bound) else { break };
        let Some(parent) = catalog.table(parent).cloned() else { break };
        if let Some(own) = conditions(catalog, &parent, bound)? {
            parts.splice(0..0, own);
        }
        at = Some(parent);
    }
    Ok((!parts.is_empty()).then(|| all_of(&parts)))
}

/// An expression in parentheses, which one call of a function does not need.
pub fn enclosed(sql: &str) -> String {
    if is_call(sql) { sql.to_owned() } else { format!("({sql})") }
}

/// Whether an expression is one call of a function.
fn is_call(sql: &str) -> bool {
    let name = sql.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    let Some(rest) = name.filter(|at| *at > 0).map(|at| &sql[at..]) else { return false };
    if !rest.starts_with('(') {
        return false;
    }
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1 == rest.len();
        }
    }
    false
}

/// A key's values as an error shows them: `(a, b) = (1, 2)`.
pub fn shown_key(
    table: &Table,
    by: &Partitioning,
    values: &[Datum],
    format: &FormatContext,
    expression: &dyn Fn(&str) -> String,
) -> String {
    let name = |key: &PartitionKey| match (usize::from(key.column), &key.expression) {
        (0, Some(sql)) => expression(sql),
        (n, _) => {
            table.columns.get(n.wrapping_sub(1)).map_or(String::new(), |c| quote_ident(&c.name))
        }
    };
    let text = |(key, value): (&PartitionKey, &Datum)| match value {
        Datum::Null => "null".to_owned(),
        value => types::io::to_text(Oid(key.ty), value, format)
            .map_or_else(|_| "?".to_owned(), |s| s.to_string()),
    };
    let names: Vec<String> = by.keys.iter().map(name).collect();
    let texts: Vec<String> = by.keys.iter().zip(values).map(text).collect();
    format!("({}) = ({})", names.join(", "), texts.join(", "))
}
