//! Rewrite rules: what their statements say, and their parts as they are stored and printed.

use base::Result;
use catalog::{Rule, Snapshot, Table, ViewQuery};

use crate::bind::rule::{Parts, bind_stored};
use crate::prepare::PrepareContext;
use crate::utility::{ColumnDef, Name};
use crate::view::actions::{self, Look};

/// CREATE RULE.
#[derive(Clone, Debug)]
pub struct CreateRule {
    /// OR REPLACE.
    pub replace: bool,
    /// The relation.
    pub table: Name,
    /// The rule, its parts in the stored form.
    pub rule: Rule,
    /// Of an ON SELECT rule: the query of the view that the relation becomes.
    pub select: Option<(Vec<ColumnDef>, ViewQuery)>,
}

/// DROP RULE.
#[derive(Clone, Debug)]
pub struct DropRule {
    /// Its relation.
    pub table: Name,
    /// Its name.
    pub name: String,
    /// IF EXISTS.
    pub if_exists: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// A rule as PostgreSQL prints it.
///
/// # Errors
/// A rule that can't be bound any more.
pub fn print(cx: &PrepareContext<'_>, table: &Table, rule: &Rule, pretty: bool) -> Result<String> {
    let quoted = catalog::definition::quote_ident;
    let schema = cx.catalog.schema(table.schema).map_or_else(String::new, |s| quoted(&s.name));
    let found = cx.catalog.relation(cx.search_path, None, &table.name).map(|r| r.oid());
    let on = match pretty && found == Some(table.oid) {
        true => quoted(&table.name),
        false => format!("{schema}.{}", quoted(&table.name)),
    };
    let look = Look { naming: cx.catalog, path: Some(cx.search_path), pretty };
    let mut out =
        format!("CREATE RULE {} AS\n    ON {} TO {on}", quoted(&rule.name), rule.event_word());
    if let Some(sql) = &rule.condition {
        let text = bind_stored(cx, table, rule, Parts::Condition(sql), |binder, bound| {
            actions::condition(binder, bound, look)
        })?;
        out.push_str(&format!("\n   WHERE {text}"));
    }
    out.push_str(" DO ");
    if rule.instead {
        out.push_str("INSTEAD ");
    }
    let mut texts = Vec::with_capacity(rule.actions.len());
    for sql in &rule.actions {
        texts.push(bind_stored(cx, table, rule, Parts::Action(sql), |binder, bound| {
            actions::action(binder, bound, look)
        })?);
    }
    if texts.first().is_some_and(|text| text.starts_with('\n')) && texts.len() == 1 {
        out.truncate(out.trim_end().len());
    }
    match texts.as_slice() {
        [] => out.push_str("NOTHING;"),
        [one] => out.push_str(&format!("{one};")),
        several => {
            out.push('(');
            several.iter().for_each(|text| out.push_str(&format!("{text};\n")));
            out.push_str(");");
        }
    }
    Ok(out)
}

/// A rule's parts under the names of `naming`.
///
/// # Errors
/// A rule that can't be bound any more.
pub fn renamed(
    cx: &PrepareContext<'_>,
    table: &Table,
    rule: &Rule,
    naming: &Snapshot,
) -> Result<Rule> {
    let look = Look { naming, path: None, pretty: false };
    let mut out = rule.clone();
    if let Some(sql) = &rule.condition {
        let text = bind_stored(cx, table, rule, Parts::Condition(sql), |binder, bound| {
            actions::condition(binder, bound, look)
        })?;
        out.condition = Some(text);
    }
    for (sql, action) in rule.actions.iter().zip(&mut out.actions) {
        *action = bind_stored(cx, table, rule, Parts::Action(sql), |binder, bound| {
            actions::action(binder, bound, look)
        })?;
    }
    Ok(out)
}
