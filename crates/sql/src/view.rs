//! Views' queries written back as SQL, laid out as PostgreSQL lays them out (`pg_get_viewdef`). The
//! grammar's tree gives the shape, a [`Record`] of its binding the names and expressions.
//!
//! Two forms: the *stored* one qualifies every relation, so that it means the same under any search
//! path; the *shown* one leaves out what the session's search path finds. Names are looked up when
//! printing, in the catalog of `naming`: so a query bound before a rename and printed after it
//! follows the rename ([`renamed`]).

pub(crate) mod actions;
pub mod body;
mod calls;
mod functions;
mod pinned;
mod tail;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use base::{Error, Result};
use catalog::Snapshot;
use catalog::definition::quote_ident;
use pg_query::{NodeEnum, protobuf as pb};

use crate::bind::record::{Part, Record, SelectRecord, WindowSpec, address};
use crate::bind::{Binder, ast, inner};
use crate::expr::{Expr, SortKey, SubqueryExpr, SubqueryKind};
use crate::logical::Col;
use crate::prepare::PrepareContext;
use crate::print::{self, Names};
use crate::window::{self, Exclude, FrameBound, FrameMode};

mod stored;

use stored::again;
pub use stored::changes_of;
pub(crate) use stored::{
    default_survives, expression_survives, print_target, query_survives, recorded,
};

/// PostgreSQL's steps of indentation.
const STD: i32 = 8;
const JOIN: i32 = 4;
const VAR: i32 = 4;

/// A view's query as PostgreSQL prints it, without the semicolon.
///
/// # Errors
/// A query that can't be bound any more.
pub fn print(cx: &PrepareContext<'_>, view: &catalog::Table, pretty: bool) -> Result<String> {
    let Some(query) = &view.query else { return Err(Error::internal("a view without a query")) };
    let names: Vec<String> = view.live_columns().map(|(_, c)| c.name.clone()).collect();
    again(cx, &query.sql, |binder, record, select| {
        let printer = Printer {
            binder,
            record,
            naming: cx.catalog,
            path: Some(cx.search_path),
            pretty,
            bare: false,
            frames: RefCell::default(),
            rows: true,
            qualifies: false,
            selects: record.selects_of(select),
        };
        printer.statement(select, Some(&names))
    })
}

/// The stored text of a query under the names of another version of the catalog, with what it uses
/// unchanged.
///
/// # Errors
/// A query that can't be bound any more.
pub fn renamed(
    cx: &PrepareContext<'_>,
    view: &catalog::Table,
    naming: &Snapshot,
) -> Result<String> {
    let Some(query) = &view.query else { return Err(Error::internal("a view without a query")) };
    let names: Vec<String> = view.live_columns().map(|(_, c)| c.name.clone()).collect();
    again(cx, &query.sql, |binder, record, select| {
        let printer = Printer { naming, ..Printer::stored(binder, record, select) };
        printer.statement(select, Some(&names))
    })
}

/// Text under construction.
struct Out {
    text: String,
    indent: i32,
}

impl Out {
    /// A keyword on a line of its own.
    fn keyword(&mut self, word: &str, before: i32, after: i32, plus: i32) {
        self.indent += before;
        self.trim();
        self.text.push('\n');
        let spaces = self.indent.max(0) + plus;
        self.text.extend(std::iter::repeat_n(' ', spaces.max(0) as usize));
        self.text.push_str(word);
        self.indent = (self.indent + after).max(0);
    }

    fn trim(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

/// The names of a join's columns.
struct JoinNames {
    /// Its alias.
    alias: String,
    /// The names of the columns that the query knows, in their order.
    names: Vec<String>,
    /// The list behind the alias, if it needs one.
    list: Option<Vec<String>>,
}

impl JoinNames {
    /// The list as it is written.
    fn written(&self) -> String {
        let Some(list) = &self.list else { return String::new() };
        let list: Vec<String> = list.iter().map(|name| quote_ident(name)).collect();
        format!("({})", list.join(", "))
    }
}

/// One query level's names.
struct Frame {
    select: SelectRecord,
    /// Names of FROM as written, and as printed: unlike those of the levels outside.
    names: Vec<(String, String)>,
    /// Those that are joins.
    joins: Vec<JoinNames>,
    /// Names that the columns of a table have here, whatever they are called in the catalog ([`pinned`]).
    pinned: Vec<(String, Vec<String>)>,
}

/// See the module's documentation.
pub(crate) struct Printer<'p, 'b> {
    binder: &'p Binder<'b>,
    record: &'p Record,
    naming: &'p Snapshot,
    /// Relations that need no schema; None: all get one.
    path: Option<&'p [u32]>,
    pretty: bool,
    /// The columns of the outermost level stand without their table's name.
    bare: bool,
    /// Levels around what is being printed, outermost first, with the indentation of each.
    frames: RefCell<Vec<Frame>>,
    /// Whole rows of FROM items are printed as such.
    rows: bool,
    /// Parameters stand with their function's name even where no table is in FROM.
    qualifies: bool,
    /// All SELECTs inside, by address.
    selects: HashMap<usize, &'p pb::SelectStmt>,
}

impl<'p, 'b> Printer<'p, 'b> {
    /// For the form that is kept.
    pub(crate) fn stored(
        binder: &'p Binder<'b>,
        record: &'p Record,
        root: &'p NodeEnum,
    ) -> Printer<'p, 'b> {
        Printer {
            binder,
            record,
            naming: binder.cx.catalog,
            path: None,
            pretty: false,
            bare: false,
            frames: RefCell::default(),
            rows: true,
            qualifies: false,
            selects: record.selects_of(root),
        }
    }

    /// A whole query; `names`: of its columns.
    pub(crate) fn statement(&self, node: &NodeEnum, names: Option<&[String]>) -> Result<String> {
        match node {
            NodeEnum::SelectStmt(select) => self.query(select, names, 0).map(print::trimmed),
            _ => Err(Error::internal("a view's query is not a SELECT")),
        }
    }

    /// A subquery of an expression.
    fn nested(&self, address: usize, indent: i32) -> Option<String> {
        let select = self.selects.get(&address)?;
        self.query(select, None, indent).ok()
    }

    fn query(
        &self,
        stmt: &pb::SelectStmt,
        names: Option<&[String]>,
        indent: i32,
    ) -> Result<String> {
        sched::check_stack()?;
        let mut out = Out { text: String::new(), indent };
        if let Some(with) = &stmt.with_clause {
            self.with(with, &mut out)?;
        }
        if stmt.op > pb::SetOperation::SetopNone as i32 {
            self.set_operation(stmt, names, &mut out)?;
            self.set_order(stmt, &mut out)?;
        } else if !stmt.values_lists.is_empty() {
            out.indent += STD;
            out.push(" ");
            let values = self.values(stmt)?;
            out.push(&values);
            self.set_order(stmt, &mut out)?;
        } else {
            self.plain(stmt, names, &mut out)?;
        }
        self.limits(stmt, &mut out)?;
        self.locks(stmt, &mut out)?;
        let own = stmt.op <= pb::SetOperation::SetopNone as i32 && stmt.values_lists.is_empty();
        if own {
            self.frames.borrow_mut().pop();
        }
        Ok(out.text)
    }

    fn with(&self, with: &pb::WithClause, out: &mut Out) -> Result<()> {
        out.indent += STD;
        out.push(" ");
        let mut word = if with.recursive { "WITH RECURSIVE " } else { "WITH " };
        for node in &with.ctes {
            let Some(NodeEnum::CommonTableExpr(cte)) = &node.node else { continue };
            out.push(std::mem::replace(&mut word, ", "));
            out.push(&quote_ident(&cte.ctename));
            let columns = ast::strings(&cte.aliascolnames);
            if !columns.is_empty() {
                let list: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
                out.push(&format!("({})", list.join(", ")));
            }
            out.push(" AS ");
            match pb::CteMaterialize::try_from(cte.ctematerialized) {
                Ok(pb::CteMaterialize::Always) => out.push("MATERIALIZED "),
                Ok(pb::CteMaterialize::Never) => out.push("NOT MATERIALIZED "),
                _ => {}
            }
            out.push("(");
            out.keyword("", 0, 0, 0);
            let Some(query) = inner(&cte.ctequery) else {
                return Err(Error::internal("a WITH query without a statement"));
            };
            let text = self.changing(query, out.indent)?;
            out.push(&text);
            out.keyword("", 0, 0, 0);
            out.push(")");
            search_and_cycle(cte, out)?;
        }
        out.indent -= STD;
        out.keyword("", 0, 0, 0);
        Ok(())
    }

    fn plain(&self, stmt: &pb::SelectStmt, names: Option<&[String]>, out: &mut Out) -> Result<()> {
        let Some(select) = self.record.selects.get(&address(stmt)) else {
            return Err(Error::internal("a query that was not recorded"));
        };
        let pinned = self.pinned(&select.items, &stmt.from_clause);
        let joins = self.aliased_joins(&select.items, &stmt.from_clause);
        self.enter(select.clone(), joins);
        self.pin(pinned);
        out.indent += STD;
        out.push(" SELECT");
        if let Some(on) = &select.distinct {
            out.push(" DISTINCT");
            if !on.is_empty() {
                let list: Vec<String> = on
                    .iter()
                    .map(|t| self.sort_expression(&select.targets[*t].1, out.indent))
                    .collect();
                out.push(&format!(" ON ({})", list.join(", ")));
            }
        }
        self.targets(select, names, out);
        self.from(stmt, out)?;
        if !select.conditions.is_empty() {
            out.keyword(" WHERE ", -STD, STD, 1);
            let condition = crate::bind::expr::and(select.conditions.clone());
            let text = self.expr(print::shown(&condition), out.indent);
            out.push(&text);
        }
        if select.sets {
            let text = self.grouping_sets(stmt, out.indent);
            out.keyword(" GROUP BY ", -STD, STD, 1);
            out.push(&text);
        } else if !select.groups.is_empty() {
            out.keyword(" GROUP BY ", -STD, STD, 1);
            let list: Vec<String> =
                select.groups.iter().map(|g| self.sort_expression(g, out.indent)).collect();
            out.push(&list.join(", "));
        }
        if let Some(having) = &select.having {
            out.keyword(" HAVING ", -STD, STD, 0);
            let text = self.expr(print::shown(having), out.indent);
            out.push(&text);
        }
        for (n, (name, spec)) in select.named.iter().enumerate() {
            if n == 0 {
                out.keyword(" WINDOW ", -STD, STD, 1);
            } else {
                out.push(", ");
            }
            out.push(&format!("{} AS {}", quote_ident(name), self.window(spec, out.indent)));
        }
        if !select.order.is_empty() {
            out.keyword(" ORDER BY ", -STD, STD, 1);
            let list: Vec<String> = select
                .order
                .iter()
                .map(|(target, descending, nulls_first)| {
                    let text = self.sort_expression(&select.targets[*target].1, out.indent);
                    text + direction(*descending, *nulls_first)
                })
                .collect();
            out.push(&list.join(", "));
        }
        Ok(())
    }

    /// GROUP BY with grouping sets.
    fn grouping_sets(&self, stmt: &pb::SelectStmt, indent: i32) -> String {
        let items: Vec<String> = stmt
            .group_clause
            .iter()
            .flat_map(|node| self.grouping_set(node, true, true, indent))
            .collect();
        let list = if items.is_empty() { "()".to_owned() } else { items.join(", ") };
        format!("{}{list}", if stmt.group_distinct { "DISTINCT " } else { "" })
    }

    /// One item of GROUP BY; nothing for an empty set at the `top`, several for GROUPING SETS in the like.
    /// `bare`: a single expression needs no parentheses.
    fn grouping_set(&self, node: &pb::Node, top: bool, bare: bool, indent: i32) -> Vec<String> {
        use pb::GroupingSetKind as K;
        match &node.node {
            Some(NodeEnum::GroupingSet(set)) => {
                let kind = K::try_from(set.kind).unwrap_or(K::GroupingSetEmpty);
                let (word, bare) = match kind {
                    K::GroupingSetRollup => ("ROLLUP(", true),
                    K::GroupingSetCube => ("CUBE(", true),
                    K::GroupingSetSets => ("GROUPING SETS (", false),
                    _ if top => return Vec::new(),
                    _ => return vec!["()".to_owned()],
                };
                let inside = |n| self.grouping_set(n, false, bare, indent);
                let items: Vec<String> = set.content.iter().flat_map(inside).collect();
                let nested = kind == K::GroupingSetSets && !top;
                if nested { items } else { vec![format!("{word}{})", items.join(", "))] }
            }
            Some(NodeEnum::RowExpr(row)) if top && is_list(row) => {
                row.args.iter().flat_map(|n| self.grouping_set(n, true, true, indent)).collect()
            }
            _ => {
                let mut list = Vec::new();
                self.grouped_by(node, indent, &mut list);
                let plain = bare && list.len() == 1;
                let list = list.join(", ");
                vec![if plain { list } else { format!("({list})") }]
            }
        }
    }

    /// An expression of GROUP BY, or a row of them.
    fn grouped_by(&self, node: &pb::Node, indent: i32, out: &mut Vec<String>) {
        match &node.node {
            Some(NodeEnum::RowExpr(row)) if is_list(row) => {
                row.args.iter().for_each(|n| self.grouped_by(n, indent, out));
            }
            Some(value) => {
                let noted = self.record.exprs.get(&(address(value), Part::Group));
                out.extend(noted.into_iter().flatten().map(|e| self.sort_expression(e, indent)));
            }
            None => {}
        }
    }

    /// A window's definition in parentheses.
    fn window(&self, spec: &WindowSpec, indent: i32) -> String {
        let mut parts: Vec<String> = Vec::new();
        if !spec.base.is_empty() {
            parts.push(quote_ident(&spec.base));
        }
        if !spec.partition.is_empty() {
            let list: Vec<String> =
                spec.partition.iter().map(|e| self.sort_expression(e, indent)).collect();
            parts.push(format!("PARTITION BY {}", list.join(", ")));
        }
        if !spec.order.is_empty() {
            let key = |k: &SortKey| {
                self.sort_expression(&k.expr, indent) + direction(k.descending, k.nulls_first)
            };
            let list: Vec<String> = spec.order.iter().map(key).collect();
            parts.push(format!("ORDER BY {}", list.join(", ")));
        }
        if let Some((frame, between)) = &spec.frame {
            parts.push(self.frame(frame, *between, indent));
        }
        format!("({})", parts.join(" "))
    }

    fn frame(&self, frame: &window::Frame, between: bool, indent: i32) -> String {
        let mode = match frame.mode {
            FrameMode::Range => "RANGE",
            FrameMode::Rows => "ROWS",
            FrameMode::Groups => "GROUPS",
        };
        let bound = |bound: &FrameBound| match bound {
            FrameBound::First => "UNBOUNDED PRECEDING".to_owned(),
            FrameBound::Preceding(e) => format!("{} PRECEDING", self.offset(e, indent)),
            FrameBound::Current => "CURRENT ROW".to_owned(),
            FrameBound::Following(e) => format!("{} FOLLOWING", self.offset(e, indent)),
            FrameBound::Last => "UNBOUNDED FOLLOWING".to_owned(),
        };
        let start = bound(&frame.start);
        let reach = match between {
            true => format!("BETWEEN {start} AND {}", bound(&frame.end)),
            false => start,
        };
        let exclude = match frame.exclude {
            Exclude::Nothing => "",
            Exclude::Current => " EXCLUDE CURRENT ROW",
            Exclude::Group => " EXCLUDE GROUP",
            Exclude::Ties => " EXCLUDE TIES",
        };
        format!("{mode} {reach}{exclude}")
    }

    /// A frame's offset: small numbers without their type.
    fn offset(&self, e: &Expr, indent: i32) -> String {
        match e {
            Expr::Const(types::Datum::Int8(_), _) => self.limit(e),
            e => {
                let names = Here::new(self, indent);
                self.printer(&names, indent).outer(e)
            }
        }
    }

    /// A level's names: unlike those outside.
    fn enter(&self, select: SelectRecord, joins: Vec<JoinNames>) {
        let mut frames = self.frames.borrow_mut();
        let mut names: Vec<(String, String)> = Vec::new();
        for item in select.items.iter().filter(|i| i.name.is_some()) {
            let name = item.name.clone().unwrap_or_default();
            let taken = |n: &str| {
                frames.iter().flat_map(|f| &f.names).any(|(_, used)| used == n)
                    || names.iter().any(|(_, used)| used == n)
            };
            // A table that goes by its own name goes by its new one after a rename.
            let plain = match self.naming.relation_by_oid(item.oid) {
                Some(relation) if item.schema.is_some() => relation_name(&relation),
                _ => name.clone(),
            };
            let mut shown = plain.clone();
            let mut n = 1;
            while taken(&shown) {
                shown = format!("{plain}_{n}");
                n += 1;
            }
            names.push((name, shown));
        }
        frames.push(Frame { select, names, joins, pinned: Vec::new() });
    }

    fn targets(&self, select: &SelectRecord, names: Option<&[String]>, out: &mut Out) {
        let mut last_was_multiline = false;
        for (n, (name, e)) in select.targets[..select.visible].iter().enumerate() {
            out.push(if n == 0 { " " } else { ", " });
            let name = names.and_then(|names| names.get(n)).unwrap_or(name);
            let mut text = match e {
                Expr::Column(col, _) => match self.variable(*col) {
                    Some((text, column)) if column == *name => text,
                    Some((text, _)) => format!("{text} AS {}", quote_ident(name)),
                    None => format!("{} AS {}", self.expr(e, out.indent), quote_ident(name)),
                },
                Expr::Coalesce(..) if self.merged(e) == Some(quote_ident(name)) => {
                    quote_ident(name)
                }
                _ => {
                    let names = Here::new(self, out.indent);
                    let text = self.printer(&names, out.indent).alone(e);
                    format!("{text} AS {}", quote_ident(name))
                }
            };
            // As PostgreSQL: no name where none was given and none is needed.
            if name == "?column?" && names.is_none() {
                text = text.trim_end_matches(" AS \"?column?\"").to_owned();
            }
            if text.starts_with('\n') {
                out.trim();
            } else if n > 0 {
                out.keyword("", -STD, STD, VAR);
            }
            last_was_multiline |= text.contains('\n');
            out.push(&text);
        }
        let _ = last_was_multiline;
    }

    fn from(&self, stmt: &pb::SelectStmt, out: &mut Out) -> Result<()> {
        self.from_list(" FROM ", &stmt.from_clause, out)
    }

    fn from_list(&self, word: &str, nodes: &[pb::Node], out: &mut Out) -> Result<()> {
        for (n, node) in nodes.iter().enumerate() {
            if n == 0 {
                out.keyword(word, -STD, STD, 2);
                self.from_item(node, out)?;
                continue;
            }
            out.push(", ");
            let mut item = Out { text: String::new(), indent: out.indent };
            self.from_item(node, &mut item)?;
            if item.text.starts_with('\n') {
                out.trim();
            } else {
                out.keyword("", -STD, STD, VAR);
            }
            out.push(&item.text);
        }
        Ok(())
    }

    /// The innermost level's item for a table in FROM: its place among those with names, and the table's oid. Of
    /// several tables with one name the one that the name leads to.
    fn item_of(&self, range: &pb::RangeVar) -> Option<(usize, u32)> {
        let written = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let frames = self.frames.borrow();
        let named = frames.last()?.select.items.iter().filter(|i| i.name.is_some()).enumerate();
        let mut same: Vec<(usize, u32)> = named
            .filter(|(_, item)| item.name.as_deref() == Some(written))
            .map(|(at, item)| (at, item.oid))
            .collect();
        if same.len() > 1 {
            let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
            let meant = self.binder.find_relation(schema, &range.relname).map(|r| r.oid());
            same.retain(|(_, oid)| Some(*oid) == meant);
        }
        same.first().copied()
    }

    /// The printed name of a FROM item of the innermost level.
    fn refname(&self, name: &str) -> String {
        let frames = self.frames.borrow();
        let found = frames.last().and_then(|f| f.names.iter().find(|(n, _)| n == name));
        found.map_or_else(|| name.to_owned(), |(_, shown)| shown.clone())
    }

    fn columns_of_alias(alias: Option<&pb::Alias>) -> String {
        let names: Vec<String> = alias
            .map(|a| ast::strings(&a.colnames).iter().map(|c| quote_ident(c)).collect())
            .unwrap_or_default();
        if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) }
    }

    fn from_item(&self, node: &pb::Node, out: &mut Out) -> Result<()> {
        match &node.node {
            Some(NodeEnum::RangeVar(range)) => self.range_var(range, out),
            Some(NodeEnum::RangeSubselect(sub)) => {
                let Some(NodeEnum::SelectStmt(select)) = inner(&sub.subquery) else {
                    return Err(Error::unsupported("a view with this subquery"));
                };
                if sub.lateral {
                    out.push("LATERAL ");
                }
                let alias = sub.alias.as_ref();
                let name = alias.map_or("", |a| a.aliasname.as_str());
                let text = self.query(select, None, out.indent)?;
                out.push(&format!(
                    "({text}) {}{}",
                    quote_ident(&self.refname(name)),
                    Self::columns_of_alias(alias)
                ));
                Ok(())
            }
            Some(NodeEnum::RangeFunction(f)) => self.range_function(f, out),
            Some(NodeEnum::JoinExpr(join)) => self.join(join, out),
            Some(NodeEnum::RangeTableSample(sample)) => self.sample(sample, out),
            _ => Err(Error::unsupported("a view with this FROM item")),
        }
    }

    /// A table of which a part is read.
    fn sample(&self, sample: &pb::RangeTableSample, out: &mut Out) -> Result<()> {
        if let Some(NodeEnum::RangeVar(range)) = inner(&sample.relation) {
            self.range_var(range, out)?;
        }
        let method = ast::strings(&sample.method).last().copied().unwrap_or_default();
        let noted = self.record.exprs.get(&(address(sample), Part::Call));
        let indent = out.indent;
        let names = Here::new(self, indent);
        let shown = |e: &Expr| self.printer(&names, indent).outer(e);
        let mut args = noted.into_iter().flatten().map(shown);
        let percent = args.next().unwrap_or_default();
        out.push(&format!(" TABLESAMPLE {} ({percent})", quote_ident(method)));
        if let Some(seed) = args.next() {
            out.push(&format!(" REPEATABLE ({seed})"));
        }
        Ok(())
    }

    fn range_var(&self, range: &pb::RangeVar, out: &mut Out) -> Result<()> {
        self.relation_as(range, "", out)
    }

    /// The same; `word` stands before an alias.
    fn relation_as(&self, range: &pb::RangeVar, word: &str, out: &mut Out) -> Result<()> {
        let alias = range.alias.as_ref();
        let written = alias.map_or(range.relname.as_str(), |a| &a.aliasname);
        let (shown, oid) = match self.item_of(range) {
            Some((at, oid)) => {
                let frames = self.frames.borrow();
                let shown = frames.last().and_then(|f| f.names.get(at));
                (shown.map_or_else(|| written.to_owned(), |(_, shown)| shown.clone()), oid)
            }
            None => (self.refname(written), 0),
        };
        let (text, own) = match self.naming.relation_by_oid(oid) {
            Some(relation) => (self.relation(&relation), relation_name(&relation)),
            None if oid != 0 => {
                let schema = match range.schemaname.as_str() {
                    "" => "pg_catalog",
                    other => other,
                };
                let plain = quote_ident(&range.relname);
                let text = match self.path {
                    Some(_) if schema == "pg_catalog" => plain,
                    _ => format!("{}.{plain}", quote_ident(schema)),
                };
                (text, range.relname.clone())
            }
            // A WITH query.
            None => (quote_ident(&range.relname), range.relname.clone()),
        };
        if !range.inh {
            out.push("ONLY ");
        }
        out.push(&text);
        let columns = match (self.pinned_columns(written), alias) {
            (Some(names), _) => format!("({names})"),
            (None, Some(alias)) if !alias.colnames.is_empty() => self.columns_of_table(alias),
            (None, _) => String::new(),
        };
        if shown != own || !columns.is_empty() {
            out.push(&format!(" {word}{}{columns}", quote_ident(&shown)));
        }
        Ok(())
    }

    /// A relation's name, with its schema where it needs one.
    fn relation(&self, relation: &catalog::snapshot::Relation) -> String {
        let name = relation_name(relation);
        let schema = relation_schema(relation);
        if let Some(path) = self.path
            && self.naming.relation(path, None, &name).map(|r| r.oid()) == Some(relation.oid())
        {
            return quote_ident(&name);
        }
        match self.naming.schema(schema) {
            Some(s) => format!("{}.{}", quote_ident(&s.name), quote_ident(&name)),
            None => quote_ident(&name),
        }
    }

    fn join(&self, join: &pb::JoinExpr, out: &mut Out) -> Result<()> {
        let (Some(left), Some(right)) = (&join.larg, &join.rarg) else {
            return Err(Error::internal("a join without two sides"));
        };
        let Some(alias) = &join.alias else {
            return self.sides(join, (left, right), !self.pretty, out);
        };
        let shown = self.refname(&alias.aliasname);
        let columns = self.join_columns(&alias.aliasname);
        // Inside, the tables go by their own names.
        let items = self.record.joins.get(&address(join)).cloned().unwrap_or_default();
        let inside = SelectRecord { items, ..SelectRecord::default() };
        let pinned = self.pinned_in(&inside.items, join);
        let joins = self.aliased_joins(&inside.items, [&**left, &**right]);
        self.enter(inside, joins);
        self.pin(pinned);
        let done = self.sides(join, (left, right), true, out);
        self.frames.borrow_mut().pop();
        out.push(&format!(" {}{columns}", quote_ident(&shown)));
        done
    }

    /// The list of names of the columns of a join with an alias, if it needs one.
    fn join_columns(&self, alias: &str) -> String {
        let frames = self.frames.borrow();
        let joins = frames.last().map_or(&[][..], |f| &f.joins);
        joins.iter().find(|j| j.alias == alias).map_or_else(String::new, JoinNames::written)
    }

    /// Both sides of a join, and what joins them.
    fn sides(
        &self,
        join: &pb::JoinExpr,
        (left, right): (&pb::Node, &pb::Node),
        paren: bool,
        out: &mut Out,
    ) -> Result<()> {
        let nested = matches!(right.node, Some(NodeEnum::JoinExpr(_)));
        if paren {
            out.push("(");
        }
        self.from_item(left, out)?;
        let quals = self.record.exprs.get(&(address(join), Part::On));
        let using = self.using(join);
        let has = quals.is_some_and(|q| !q.is_empty()) || !using.is_empty();
        let word = match pb::JoinType::try_from(join.jointype) {
            Ok(pb::JoinType::JoinLeft) => " LEFT JOIN ",
            Ok(pb::JoinType::JoinRight) => " RIGHT JOIN ",
            Ok(pb::JoinType::JoinFull) => " FULL JOIN ",
            _ if has => " JOIN ",
            _ => " CROSS JOIN ",
        };
        out.keyword(word, -STD, STD, JOIN);
        let inside = self.pretty && nested;
        if inside {
            out.push("(");
        }
        self.from_item(right, out)?;
        if inside {
            out.push(")");
        }
        if !using.is_empty() {
            let list: Vec<String> = using.iter().map(|c| quote_ident(c)).collect();
            out.push(&format!(" USING ({})", list.join(", ")));
            if let Some(alias) = &join.join_using_alias {
                out.push(&format!(" AS {}", quote_ident(&alias.aliasname)));
            }
        } else if join.is_natural && word != " CROSS JOIN " {
            out.push(" ON TRUE");
        } else if let Some(quals) = quals.filter(|q| !q.is_empty()) {
            let condition = crate::bind::expr::and(quals.clone());
            let text = self.expr(&condition, out.indent);
            out.push(" ON ");
            let text = if self.pretty { text } else { format!("({text})") };
            out.push(&text);
        } else if word != " CROSS JOIN " {
            out.push(" ON TRUE");
        }
        if paren {
            out.push(")");
        }
        Ok(())
    }

    /// The columns of USING; of NATURAL, what both sides have.
    fn using(&self, join: &pb::JoinExpr) -> Vec<String> {
        if !join.is_natural {
            return ast::owned_strings(&join.using_clause);
        }
        let noted = self.record.exprs.get(&(address(join), Part::Call));
        let name = |e: &Expr| match e {
            Expr::Column(col, _) => Some(self.binder.vars[usize::from(*col)].name.clone()),
            _ => None,
        };
        noted.into_iter().flatten().filter_map(name).collect()
    }

    fn values(&self, stmt: &pb::SelectStmt) -> Result<String> {
        let mut rows = Vec::with_capacity(stmt.values_lists.len());
        for n in 0..stmt.values_lists.len() {
            let Some(row) = self.record.exprs.get(&(address(stmt), Part::Row(n))) else {
                return Err(Error::internal("VALUES that were not recorded"));
            };
            let nodes = stmt.values_lists.get(n).map(ast::list).unwrap_or_default();
            let item = |(at, e): (usize, &Expr)| match nodes.get(at).map(|node| &node.node) {
                // A constant's cast to the type of the others is not shown.
                Some(Some(NodeEnum::AConst(_))) => self.outermost(e, 0),
                _ => self.alone(e, 0),
            };
            let list: Vec<String> = row.iter().enumerate().map(item).collect();
            rows.push(format!("({})", list.join(",")));
        }
        Ok(format!("VALUES {}", rows.join(", ")))
    }

    fn set_operation(
        &self,
        stmt: &pb::SelectStmt,
        names: Option<&[String]>,
        out: &mut Out,
    ) -> Result<()> {
        let (Some(left), Some(right)) = (&stmt.larg, &stmt.rarg) else {
            return Err(Error::internal("a set operation without two sides"));
        };
        let nested = |s: &pb::SelectStmt| is_nested(s);
        let paren = nested(left) && !(left.op == stmt.op && left.all == stmt.all);
        if paren {
            out.push("(");
            out.keyword("", STD, 0, 0);
        }
        self.set_side(left, names, out)?;
        let back = if paren { -STD } else { 0 };
        out.keyword(if paren { ") " } else { "" }, back, 0, 0);
        out.push(match pb::SetOperation::try_from(stmt.op) {
            Ok(pb::SetOperation::SetopIntersect) => "INTERSECT ",
            Ok(pb::SetOperation::SetopExcept) => "EXCEPT ",
            _ => "UNION ",
        });
        if stmt.all {
            out.push("ALL ");
        }
        let paren = nested(right);
        let step = if paren { STD } else { 0 };
        if paren {
            out.push("(");
        }
        out.keyword("", step, 0, 0);
        self.set_side(right, names, out)?;
        out.indent -= step;
        if paren {
            out.keyword(")", 0, 0, 0);
        }
        Ok(())
    }

    fn set_side(
        &self,
        stmt: &pb::SelectStmt,
        names: Option<&[String]>,
        out: &mut Out,
    ) -> Result<()> {
        if is_nested(stmt) {
            return self.set_operation(stmt, names, out);
        }
        let text = self.query(stmt, names, out.indent)?;
        let paren = stmt.with_clause.is_some()
            || !stmt.sort_clause.is_empty()
            || !stmt.locking_clause.is_empty()
            || stmt.limit_count.is_some()
            || stmt.limit_offset.is_some();
        out.push(&if paren { format!("({text})") } else { text });
        Ok(())
    }

    /// ORDER BY of a set operation or VALUES: names and numbers of columns.
    fn set_order(&self, stmt: &pb::SelectStmt, out: &mut Out) -> Result<()> {
        if stmt.sort_clause.is_empty() {
            return Ok(());
        }
        out.keyword(" ORDER BY ", -STD, STD, 1);
        let mut list = Vec::with_capacity(stmt.sort_clause.len());
        for node in &stmt.sort_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { continue };
            let text = match inner(&sort.node) {
                Some(NodeEnum::ColumnRef(c)) => {
                    quote_ident(c.fields.last().map_or("", ast::string))
                }
                Some(NodeEnum::AConst(c)) => crate::bind::define::const_text(c).unwrap_or_default(),
                _ => return Err(Error::unsupported("a view with this ORDER BY")),
            };
            let descending = sort.sortby_dir == pb::SortByDir::SortbyDesc as i32;
            let nulls_first = match pb::SortByNulls::try_from(sort.sortby_nulls) {
                Ok(pb::SortByNulls::SortbyNullsFirst) => true,
                Ok(pb::SortByNulls::SortbyNullsLast) => false,
                _ => descending,
            };
            list.push(text + direction(descending, nulls_first));
        }
        out.push(&list.join(", "));
        Ok(())
    }

    /// An expression of GROUP BY and ORDER BY.
    fn sort_expression(&self, e: &Expr, indent: i32) -> String {
        let text = self.expr(e, indent);
        let is_call = match e {
            Expr::Column(col, _) if self.variable(*col).is_some() => return text,
            Expr::Column(..) => !text.starts_with("GROUPING("),
            Expr::Const(value, ty) => {
                let names = Here::new(self, indent);
                return self.printer(&names, indent).labelled(value, *ty);
            }
            e => print::is_call(e),
        };
        if self.pretty || is_call { format!("({text})") } else { text }
    }

    fn expr(&self, e: &Expr, indent: i32) -> String {
        let names = Here::new(self, indent);
        self.printer(&names, indent).print(e)
    }

    /// An expression's text where `t.*` would stand for the columns of `t`.
    fn alone(&self, e: &Expr, indent: i32) -> String {
        let names = Here::new(self, indent);
        self.printer(&names, indent).alone(e)
    }

    /// A type's name.
    fn type_text(&self, ty: base::Oid, typmod: i32) -> String {
        let names = Here::new(self, 0);
        self.printer(&names, 0).type_name(ty, typmod)
    }

    fn printer<'n>(&'n self, names: &'n Here<'n, 'p, 'b>, indent: i32) -> print::Printer<'n, 'b> {
        print::Printer {
            binder: self.binder,
            pretty: self.pretty,
            by_oid: self.path.is_none(),
            names: Some(names),
            indent: indent.max(0) as usize,
        }
    }

    /// A column of FROM with its table's name, and its own name; None for aggregates and the like.
    fn variable(&self, col: Col) -> Option<(String, String)> {
        let frames = self.frames.borrow();
        for frame in frames.iter().rev() {
            let named = frame.select.items.iter().filter(|i| i.name.is_some());
            for (place, item) in named.enumerate() {
                let is_it = |e: &Expr| matches!(e, Expr::Column(c, _) if *c == col);
                let Some(at) = item.columns.iter().position(|c| is_it(&c.expr)) else { continue };
                let written = item.name.as_deref().unwrap_or_default();
                let shown = frame.names.get(place).map(|(_, s)| s.clone());
                let join = frame.joins.iter().find(|j| j.alias == written).map(|j| &j.names);
                let pins = frame.pinned.iter().find(|(n, _)| n == written).map(|(_, names)| names);
                let column = match join.or(pins).and_then(|names| names.get(at)) {
                    Some(name) => name.clone(),
                    None => self.column_name(item.oid, &item.columns[at].name, col),
                };
                let table = quote_ident(shown.as_deref().unwrap_or(written));
                return Some((format!("{table}.{}", quote_ident(&column)), column));
            }
        }
        None
    }

    /// A column's name in the catalog that names come from.
    fn column_name(&self, oid: u32, written: &str, col: Col) -> String {
        let origin = self.binder.vars[usize::from(col)].origin;
        if let Some((table, number)) = origin
            && table == oid
            && let Some(old) = self.binder.cx.catalog.table(table)
            && let Some(new) = self.naming.table(table)
        {
            let at = usize::from(number) - 1;
            let unchanged = old.columns.get(at).is_some_and(|c| c.name == written);
            if let (true, Some(column)) = (unchanged, new.columns.get(at)) {
                return column.name.clone();
            }
        }
        written.to_owned()
    }
}

fn relation_name(relation: &catalog::snapshot::Relation) -> String {
    use catalog::snapshot::Relation::{Index, Sequence, Table};
    match relation {
        Table(t) => t.name.clone(),
        Index(i) => i.name.clone(),
        Sequence(s) => s.name.clone(),
    }
}

fn relation_schema(relation: &catalog::snapshot::Relation) -> u32 {
    use catalog::snapshot::Relation::{Index, Sequence, Table};
    match relation {
        Table(t) => t.schema,
        Index(i) => i.schema,
        Sequence(s) => s.schema,
    }
}

/// A set operation that is part of another one.
fn is_nested(stmt: &pb::SelectStmt) -> bool {
    stmt.op > pb::SetOperation::SetopNone as i32
        && stmt.sort_clause.is_empty()
        && stmt.limit_count.is_none()
        && stmt.limit_offset.is_none()
        && stmt.with_clause.is_none()
}

fn direction(descending: bool, nulls_first: bool) -> &'static str {
    match (descending, nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

/// Names at one place of a query.
struct Here<'h, 'p, 'b> {
    printer: &'h Printer<'p, 'b>,
    indent: Cell<i32>,
}

impl<'h, 'p, 'b> Here<'h, 'p, 'b> {
    fn new(printer: &'h Printer<'p, 'b>, indent: i32) -> Here<'h, 'p, 'b> {
        Here { printer, indent: Cell::new(indent) }
    }
}

impl Names for Here<'_, '_, '_> {
    fn shift(&self, by: i32) {
        self.indent.set(self.indent.get() + by);
    }

    fn is_variable(&self, col: Col) -> bool {
        self.printer.variable(col).is_some()
    }

    fn column(&self, col: Col) -> Option<String> {
        if let Some((text, name)) = self.printer.variable(col) {
            let bare = self.printer.bare && self.printer.frames.borrow().len() == 1;
            return Some(if bare { quote_ident(&name) } else { text });
        }
        let grouping = {
            let frames = self.printer.frames.borrow();
            let mut all = frames.iter().rev().flat_map(|f| &f.select.groupings);
            all.find(|(c, _)| *c == col).map(|(_, args)| args.clone())
        };
        if let Some(args) = grouping {
            let args: Vec<String> =
                args.iter().map(|a| self.printer.expr(a, self.indent.get())).collect();
            return Some(format!("GROUPING({})", args.join(", ")));
        }
        let (agg, window) = {
            let frames = self.printer.frames.borrow();
            let aggs = frames.iter().rev().flat_map(|f| &f.select.aggs);
            let windows = frames.iter().rev().flat_map(|f| &f.select.windows);
            let mut aggs = aggs.filter(|(c, _)| *c == col).map(|(_, a)| a.clone());
            let mut windows = windows.filter(|w| w.col == col).cloned();
            (aggs.next(), windows.next())
        };
        match (agg, window) {
            (Some(agg), _) => Some(self.aggregate(&agg)),
            (None, Some(window)) => Some(self.window_call(&window)),
            (None, None) => None,
        }
    }

    fn merged(&self, e: &Expr) -> Option<String> {
        self.printer.merged(e)
    }

    fn whole(&self, fields: &[Expr]) -> Option<String> {
        if !self.printer.rows {
            return None;
        }
        let frames = self.printer.frames.borrow();
        let same = |item: &crate::bind::scope::NsItem| {
            let pairs = item.columns.iter().zip(fields);
            item.columns.len() == fields.len()
                && pairs.into_iter().all(|(c, f)| crate::walk::same(&c.expr, f))
        };
        for frame in frames.iter().rev() {
            let named = frame.select.items.iter().filter(|item| item.name.is_some());
            if let Some((_, shown)) =
                named.zip(&frame.names).find_map(|(i, n)| same(i).then_some(n))
            {
                return Some(format!("{}.*", quote_ident(shown)));
            }
        }
        None
    }

    fn parameter(&self, number: u32) -> Option<String> {
        self.printer.path?;
        let cx = self.printer.binder.cx;
        let arguments = cx.arguments?;
        let name = arguments.names.get(number as usize).filter(|n| !n.is_empty())?;
        let frames = self.printer.frames.borrow();
        let alone = !self.printer.qualifies && frames.iter().all(|f| f.select.items.is_empty());
        Some(match alone {
            true => quote_ident(name),
            false => format!("{}.{}", quote_ident(&arguments.function), quote_ident(name)),
        })
    }

    fn naming(&self) -> Option<&Snapshot> {
        Some(self.printer.naming)
    }

    fn subquery(&self, subquery: &SubqueryExpr) -> Option<String> {
        let p = self.printer;
        let record = p.record.sublinks.get(&subquery.plan)?;
        // The tree's nodes are found again by walking from the record's address.
        let text = p.nested(record.select, self.indent.get())?;
        Some(match &subquery.kind {
            SubqueryKind::Exists => format!("(EXISTS ({text}))"),
            SubqueryKind::Array => format!("ARRAY({text})"),
            SubqueryKind::Scalar => format!("({text})"),
            SubqueryKind::Compare { all, .. } => {
                let left: Vec<String> =
                    record.left.iter().map(|e| p.expr(e, self.indent.get())).collect();
                let left = match left.as_slice() {
                    [one] => one.clone(),
                    several => format!("({})", several.join(", ")),
                };
                let word = match (record.operator.as_str(), all) {
                    (op, _) if record.row => op.to_owned(),
                    ("=", false) => "IN".to_owned(),
                    (op, false) => format!("{op} ANY"),
                    (op, true) => format!("{op} ALL"),
                };
                format!("({left} {word} ({text}))")
            }
        })
    }
}

/// Whether a row in GROUP BY is a list of expressions.
fn is_list(row: &pb::RowExpr) -> bool {
    row.row_format == pb::CoercionForm::CoerceImplicitCast as i32
}

/// SEARCH and CYCLE behind a WITH query.
fn search_and_cycle(cte: &pb::CommonTableExpr, out: &mut Out) -> Result<()> {
    let list = |nodes: &[pb::Node]| {
        ast::strings(nodes).iter().map(|c| quote_ident(c)).collect::<Vec<_>>().join(", ")
    };
    if let Some(search) = &cte.search_clause {
        let how = if search.search_breadth_first { "BREADTH" } else { "DEPTH" };
        let (by, name) = (list(&search.search_col_list), quote_ident(&search.search_seq_column));
        out.push(&format!(" SEARCH {how} FIRST BY {by} SET {name}"));
    }
    if let Some(cycle) = &cte.cycle_clause {
        let is = |node: &Option<Box<pb::Node>>, usual: bool| match inner(node) {
            None => true,
            Some(NodeEnum::AConst(c)) => {
                matches!(&c.val, Some(pb::a_const::Val::Boolval(b)) if b.boolval == usual)
            }
            Some(_) => false,
        };
        if !is(&cycle.cycle_mark_value, true) || !is(&cycle.cycle_mark_default, false) {
            return Err(Error::unsupported("a view with CYCLE … TO"));
        }
        let by = list(&cycle.cycle_col_list);
        let (mark, path) =
            (quote_ident(&cycle.cycle_mark_column), quote_ident(&cycle.cycle_path_column));
        out.push(&format!(" CYCLE {by} SET {mark} USING {path}"));
    }
    Ok(())
}
