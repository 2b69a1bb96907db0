//! Standard bodies of functions in SQL (`RETURN …`, `BEGIN ATOMIC … END`). The statements are bound when the function
//! is made and kept under qualified names, their parameters as `$1`, `$2`; a change of a name rewrites them
//! ([`renamed`]), and [`print`] shows them as `pg_get_function_sqlbody` does, with the parameters' names.

use base::{Error, Oid, Result, err};
use catalog::{Function, Snapshot};
use pg_query::NodeEnum;

use super::actions::{Look, action_at};
use crate::bind::record::{SelectRecord, address};
use crate::bind::routine::RETURN_MARK;
use crate::bind::rule::BoundPart;
use crate::bind::{Binder, words};
use crate::parse::{Tree, parse};
use crate::prepare::{Arguments, PrepareContext};
use crate::routine::text_of;

/// How far the statements of BEGIN ATOMIC stand from the margin.
const STATEMENT: i32 = 1;

/// A new function's body as it is kept, and what it uses: objects (column 0) and columns.
///
/// # Errors
/// Those of the statements; `0A000` for those that a standard body can't hold.
pub(crate) fn defined(
    cx: &PrepareContext<'_>,
    function: &Function,
) -> Result<(String, Vec<(u32, u16)>)> {
    let mut uses = Vec::new();
    let body = each(cx, function, true, &mut |binder, bound, returns| {
        uses.extend_from_slice(&bound.record.uses);
        text(binder, bound, returns, Look::stored(cx.catalog))
    })?;
    uses.sort_unstable();
    uses.dedup();
    Ok((joined(function, &body), uses))
}

/// A body under the names of another version of the catalog.
///
/// # Errors
/// A body that can't be bound any more.
pub fn renamed(cx: &PrepareContext<'_>, function: &Function, naming: &Snapshot) -> Result<String> {
    let look = Look::stored(naming);
    let body =
        each(cx, function, true, &mut |binder, bound, returns| text(binder, bound, returns, look))?;
    Ok(joined(function, &body))
}

/// A body as PostgreSQL prints it.
///
/// # Errors
/// A body that can't be bound any more.
pub fn print(cx: &PrepareContext<'_>, function: &Function) -> Result<String> {
    let look = Look { naming: cx.catalog, path: Some(cx.search_path), pretty: false };
    let body = each(cx, function, false, &mut |binder, bound, returns| {
        text(binder, bound, returns, look)
    })?;
    if returns_value(function) {
        return Ok(format!("RETURN {}", on_one_line(&body.concat())));
    }
    let mut out = "BEGIN ATOMIC\n".to_owned();
    body.iter().for_each(|statement| out.push_str(&format!("{statement};\n")));
    Ok(out + "END")
}

/// The body is `RETURN …`.
fn returns_value(function: &Function) -> bool {
    function.body.starts_with("RETURN ")
}

/// The kept form of a body.
fn joined(function: &Function, statements: &[String]) -> String {
    if returns_value(function) {
        return format!("RETURN {}", statements.concat());
    }
    statements.iter().map(|s| format!("{s};")).collect::<Vec<_>>().join("\n")
}

/// Binds each statement and calls `f` with it; the last argument: it is the SELECT that RETURN stands for.
fn each(
    cx: &PrepareContext<'_>,
    function: &Function,
    stored: bool,
    f: &mut dyn FnMut(&Binder<'_>, &BoundPart, bool) -> Result<String>,
) -> Result<Vec<String>> {
    let sql = text_of(function);
    let names = Arguments {
        function: function.name.clone(),
        names: function.inputs().map(|a| a.name.clone()).collect(),
    };
    let types: Vec<Oid> = function.input_types();
    let path = if function.path.is_empty() { cx.search_path } else { &function.path };
    let inner = PrepareContext {
        arguments: Some(&names),
        variables: None,
        values: &[],
        search_path: path,
        ..*cx
    };
    // Names are found as the function's maker found them, and shown as the asker finds them.
    let shown = PrepareContext { search_path: cx.search_path, ..inner };
    let mut out = Vec::new();
    for one in parse(&sql)? {
        sched::check_interrupts()?;
        expect_kept(&one.node)?;
        let mark = RETURN_MARK.trim();
        let before = sql.get(..one.range.start).unwrap_or_default();
        let marked = sql.get(one.range.clone()).is_some_and(|s| s.trim_start().starts_with(mark))
            || before.trim_end().ends_with(mark);
        let returns = returns_value(function) || marked;
        let mut binder = Binder::new(&inner, &sql, &types);
        let bound = binder.body_part(one.node)?;
        binder.cx = &shown;
        let text = f(&binder, &bound, returns)?;
        out.push(match returns && !returns_value(function) {
            true => format!(" {}{text}", if stored { "/* RETURN */ SELECT " } else { "RETURN " }),
            false => text,
        });
    }
    Ok(out)
}

/// `0A000` for statements that a standard body can't hold.
fn expect_kept(node: &Tree) -> Result<()> {
    match &**node {
        NodeEnum::SelectStmt(_)
        | NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_) => Ok(()),
        other => Err(err!(
            FEATURE_NOT_SUPPORTED,
            "{} is not yet supported in unquoted SQL function body",
            words::statement(other)
        )),
    }
}

fn text(binder: &Binder<'_>, bound: &BoundPart, returns: bool, look: Look<'_>) -> Result<String> {
    let Some(node) = &bound.node else {
        return Err(Error::internal("a body without a statement"));
    };
    let mut printer = look.printer(binder, bound);
    let (true, NodeEnum::SelectStmt(stmt)) = (returns, &**node) else {
        printer.qualifies = match &**node {
            NodeEnum::SelectStmt(stmt) => !bound.record.selects.contains_key(&address(&**stmt)),
            _ => true,
        };
        return action_at(&printer, node, &[], STATEMENT);
    };
    let select = bound.record.selects.get(&address(&**stmt));
    let value = select.and_then(|s| s.targets.first().map(|(_, e)| e));
    let Some(value) = value else {
        return Err(Error::internal("a RETURN that was not recorded"));
    };
    printer.enter(SelectRecord::default(), Vec::new());
    Ok(printer.expr(value, STATEMENT + super::STD))
}

/// The lines of an expression on one, as they stand without indentation.
fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            Some(q) => {
                quote = (c != q).then_some(q);
                out.push(c);
            }
            None if c == '\n' => {
                while chars.peek() == Some(&' ') {
                    chars.next();
                }
                if !out.is_empty() && !out.ends_with([' ', '(']) {
                    out.push(' ');
                }
            }
            None => {
                quote = matches!(c, '\'' | '"').then_some(c);
                if c == ' ' && out.ends_with('(') {
                    continue;
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::on_one_line;

    #[test]
    fn strings_keep_their_lines() {
        assert_eq!(
            on_one_line("( SELECT 'a\n  b'::text\n   FROM t)"),
            "(SELECT 'a\n  b'::text FROM t)"
        );
    }
}
