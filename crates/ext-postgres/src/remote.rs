//! Queries over several tables of a server, with groups, an order or a limit, as SQL.
//!
//! A query below another is a subquery in FROM whose columns are called c1, c2 …; a table stands there by
//! its own name.

use base::{Result, err};
use catalog::Table;
use exec::eval;
use exec::foreign::ForeignRows;
use exec::rows::Row;
use exec::run::Run;
use sql::Expr;
use sql::plan::{ForeignQuery, JoinKind, RemoteRel};
use types::Datum;

use crate::deparse::{Deparser, column_name, table_name};
use crate::scan;

/// The schema of a table, where no option says another.
type SchemaOf<'a> = &'a dyn Fn(&Table) -> Option<String>;
/// The value of an expression without columns, if it is known.
type Value<'a> = &'a mut dyn FnMut(&Expr) -> Result<Option<Datum>>;

/// Begins a query.
///
/// # Errors
/// Those of the connection and of the query.
pub fn begin(query: &ForeignQuery, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
    let view = run.cx.catalog_tx.view();
    let server = view.foreign_server(query.server).cloned();
    let server = server.ok_or_else(|| err!(UNDEFINED_OBJECT, "the foreign server is gone"))?;
    let schema = |table: &Table| view.schema(table.schema).map(|s| s.name.clone());
    let mut value = |e: &Expr| eval::eval(e, Row::Empty, run).map(Some);
    let sql = text(query, &schema, &mut value)?;
    scan::begin_query((server, query.role), &sql, &query.types, run)
}

/// The query as SQL.
///
/// # Errors
/// Those of evaluating its parts.
pub fn text(query: &ForeignQuery, schema: SchemaOf<'_>, value: Value<'_>) -> Result<String> {
    Writer { schema, value, unknown: 0, aliases: 0 }.select(&query.rel, false)
}

struct Writer<'a> {
    schema: SchemaOf<'a>,
    value: Value<'a>,
    unknown: usize,
    /// Names given to items of FROM so far.
    aliases: usize,
}

/// An item of FROM, the names of its columns, and conditions that are still to be said.
struct From {
    text: String,
    columns: Vec<String>,
    conditions: Vec<String>,
}

impl Writer<'_> {
    /// Expressions over columns with these names.
    fn exprs(&mut self, columns: &[String], exprs: &[Expr]) -> Result<Vec<String>> {
        let mut deparser =
            Deparser { columns: columns.to_vec(), value: &mut *self.value, unknown: self.unknown };
        let texts: Result<Vec<String>> = exprs.iter().map(|e| deparser.text(e)).collect();
        self.unknown = deparser.unknown;
        texts
    }

    fn conditions(&mut self, columns: &[String], exprs: &[Expr]) -> Result<Vec<String>> {
        Ok(self.exprs(columns, exprs)?.into_iter().map(|text| format!("({text})")).collect())
    }

    fn alias(&mut self, letter: char) -> String {
        self.aliases += 1;
        format!("{letter}{}", self.aliases)
    }

    /// A rel as an item of FROM; `beside` others its columns are named with its alias.
    fn from(&mut self, rel: &RemoteRel, beside: bool) -> Result<From> {
        sched::check_stack()?;
        match rel {
            RemoteRel::Table { table, columns, conditions, .. } => {
                let alias = if beside { self.alias('r') } else { String::new() };
                let name = |n: &u16| {
                    let own = column_name(&table.columns[usize::from(*n) - 1]);
                    if alias.is_empty() { own } else { format!("{alias}.{own}") }
                };
                let all: Vec<u16> = (1..=table.columns.len() as u16).collect();
                let all: Vec<String> = all.iter().map(name).collect();
                let columns = columns.iter().map(name).collect();
                let conditions = self.conditions(&all, conditions)?;
                let schema = (self.schema)(table);
                let text = format!("{} {alias}", table_name(table, schema.as_deref()));
                Ok(From { text: text.trim_end().to_owned(), columns, conditions })
            }
            RemoteRel::Filter { input, conditions } => {
                let mut from = self.from(input, beside)?;
                let more = self.conditions(&from.columns, conditions)?;
                from.conditions.extend(more);
                Ok(from)
            }
            RemoteRel::Join { left, right, kind, conditions } => {
                let outer = *kind != JoinKind::Inner;
                let (left, right) = (self.side(left, outer)?, self.side(right, outer)?);
                let columns = [left.columns, right.columns].concat();
                let mut on = self.conditions(&columns, conditions)?;
                if !outer {
                    on.extend(left.conditions);
                    on.extend(right.conditions);
                }
                let on = if on.is_empty() { "TRUE".to_owned() } else { on.join(" AND ") };
                let word = match kind {
                    JoinKind::Left => "LEFT",
                    JoinKind::Right => "RIGHT",
                    JoinKind::Full => "FULL",
                    _ => "INNER",
                };
                let text = format!("({} {word} JOIN {} ON ({on}))", left.text, right.text);
                Ok(From { text, columns, conditions: Vec::new() })
            }
            _ => {
                let alias = self.alias('s');
                let text = format!("({}) {alias}", self.select(rel, true)?);
                let columns = (1..=rel.width()).map(|n| format!("{alias}.c{n}")).collect();
                Ok(From { text, columns, conditions: Vec::new() })
            }
        }
    }

    /// A side of a join; a condition on a side of an `outer` one is not one on the join.
    fn side(&mut self, rel: &RemoteRel, outer: bool) -> Result<From> {
        let from = self.from(rel, true)?;
        if !outer || from.conditions.is_empty() {
            return Ok(from);
        }
        let alias = self.alias('s');
        let text = format!("({}) {alias}", self.select(rel, true)?);
        let columns = (1..=rel.width()).map(|n| format!("{alias}.c{n}")).collect();
        Ok(From { text, columns, conditions: Vec::new() })
    }

    /// `SELECT …`; its columns are called c1, c2 … if it is `nested`.
    fn select(&mut self, rel: &RemoteRel, nested: bool) -> Result<String> {
        sched::check_stack()?;
        let list = |texts: &[String]| match texts.is_empty() {
            true => "NULL".to_owned(),
            false => {
                let one = |(n, text): (usize, &String)| match nested {
                    true => format!("{text} AS c{}", n + 1),
                    false => text.clone(),
                };
                texts.iter().enumerate().map(one).collect::<Vec<String>>().join(", ")
            }
        };
        let filtered = |from: &From| match from.conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", from.conditions.join(" AND ")),
        };
        Ok(match rel {
            RemoteRel::Table { .. } | RemoteRel::Filter { .. } | RemoteRel::Join { .. } => {
                let from = self.from(rel, false)?;
                format!("SELECT {} FROM {}{}", list(&from.columns), from.text, filtered(&from))
            }
            RemoteRel::Project { input, exprs } => {
                let from = self.from(input, false)?;
                let texts = self.exprs(&from.columns, exprs)?;
                format!("SELECT {} FROM {}{}", list(&texts), from.text, filtered(&from))
            }
            RemoteRel::Aggregate { input, groups, aggs } => {
                let from = self.from(input, false)?;
                let mut texts = self.exprs(&from.columns, groups)?;
                for agg in aggs {
                    let args = match agg.args.is_empty() {
                        true => "*".to_owned(),
                        false => self.exprs(&from.columns, &agg.args)?.join(", "),
                    };
                    let distinct = if agg.distinct { "DISTINCT " } else { "" };
                    let mut text = format!("{}({distinct}{args})", agg.name());
                    if let Some(filter) = &agg.filter {
                        let filter = self.exprs(&from.columns, std::slice::from_ref(filter))?;
                        text += &format!(" FILTER (WHERE {})", filter.join(""));
                    }
                    texts.push(text);
                }
                let places: Vec<String> = (1..=groups.len()).map(|n| n.to_string()).collect();
                let by = match places.is_empty() {
                    true => String::new(),
                    false => format!(" GROUP BY {}", places.join(", ")),
                };
                format!("SELECT {} FROM {}{}{by}", list(&texts), from.text, filtered(&from))
            }
            RemoteRel::Sort { input, keys } => {
                let from = self.from(input, false)?;
                let mut by = Vec::with_capacity(keys.len());
                for key in keys {
                    let text = self.exprs(&from.columns, std::slice::from_ref(&key.expr))?;
                    let way = if key.descending { "DESC" } else { "ASC" };
                    let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
                    by.push(format!("{} {way} NULLS {nulls}", text.join("")));
                }
                let (columns, where_) = (list(&from.columns), filtered(&from));
                format!("SELECT {columns} FROM {}{where_} ORDER BY {}", from.text, by.join(", "))
            }
            RemoteRel::Limit { input, count, offset } => {
                let mut text = match **input {
                    RemoteRel::Limit { .. } => {
                        let from = self.from(input, false)?;
                        format!("SELECT {} FROM {}", list(&from.columns), from.text)
                    }
                    _ => self.select(input, nested)?,
                };
                for (word, value) in [("LIMIT", count), ("OFFSET", offset)] {
                    if let Some(value) = value {
                        let value = self.exprs(&[], std::slice::from_ref(value))?;
                        text += &format!(" {word} {}", value.join(""));
                    }
                }
                text
            }
        })
    }
}
