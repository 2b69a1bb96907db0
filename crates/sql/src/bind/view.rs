//! Views: making them, and what they stand for in FROM.
//!
//! FOR UPDATE and kin above subqueries and views in FROM: the rows of the tables inside are locked.
//!
//! ```text
//!   SELECT … FROM (SELECT a + 1 AS b FROM t WHERE a > 0) s WHERE b < 9 FOR UPDATE
//!   a subquery that only filters and joins    SELECT … FROM t WHERE a > 0 AND a + 1 < 9 FOR UPDATE
//!   one that sorts, limits, …                 the clause is written into it
//! ```
//! * A subquery of the first kind becomes part of the query around it: its columns stand for what they are computed of, so
//!   that all is computed anew from a newer version of a row. Conditions from outside reach the rows before they are
//!   locked.
//! * Inside of one of the second kind the clause means what it means there, with its errors.

use std::sync::Arc;

use base::{Result, err};
use catalog::acl::privilege;
use catalog::snapshot::Relation;
use catalog::{CheckOption, Table, ViewQuery};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;

use crate::every_node::every_node;
use crate::expr::Expr;
use crate::logical::{Col, Query, Rel, RelLock, TableRel};
use crate::parse::{Tree, parse};
use crate::plan::{JoinKind, LockRowsWait};
use crate::utility::{ColumnDef, Utility};
use crate::walk;

use super::from::FromItem;
use super::record::Record;
use super::scope::NsItem;
use super::select::{lock_strength, not_allowed};
use super::{Binder, Scope, ast, inner};

/// Deepest nesting of views.
const NESTING_MAX: u32 = 64;

/// A view's tree.
pub(crate) fn tree_of(sql: &str) -> Result<Tree> {
    match parse(sql)?.pop() {
        Some(one) => Ok(one.node),
        None => Err(base::Error::internal("a view without a query")),
    }
}

impl Binder<'_> {
    /// Binds a view's query as it stands alone: no outer names, literals kept, errors without the
    /// positions of another text.
    fn view_query(&mut self, view: &Table, query: &ViewQuery, locking: &Pushed) -> Result<Query> {
        if self.expanding.contains(&view.oid) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "infinite recursion detected in rules for relation \"{}\"",
                view.name
            ));
        }
        if self.view_depth >= NESTING_MAX {
            return Err(err!(STATEMENT_TOO_COMPLEX, "views are nested too deeply"));
        }
        let tree = tree_of(&query.sql)?;
        let NodeEnum::SelectStmt(select) = &*tree else {
            return Err(base::Error::internal("a view's query is not a SELECT"));
        };
        let names = std::mem::take(&mut self.cte_names);
        let record = self.record.take();
        let unfolded = std::mem::replace(&mut self.unfolded, false);
        self.view_depth += 1;
        self.expanding.push(view.oid);
        let result = self.holding(|b| b.select_below(select, None, locking));
        self.expanding.pop();
        self.view_depth -= 1;
        self.unfolded = unfolded;
        self.record = record;
        self.cte_names = names;
        result.map_err(|e| self.near(e))
    }

    /// A view in FROM: its query in its place.
    pub(crate) fn view_item(
        &mut self,
        view: &Arc<Table>,
        range: &pb::RangeVar,
    ) -> Result<FromItem> {
        let Some(query) = &view.query else {
            return Err(base::Error::internal("a view without a query"));
        };
        let need = self.need_view(view);
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let locking = self.locking_of_view(alias);
        let recorded = self.record.is_some();
        let (mut rel, cols) = match recorded {
            true => self.view_as_such(view)?,
            false => {
                let query = |b: &mut Self| b.view_query(view, query, &locking);
                let bound = self.without_variables(|b| b.within_view(view, query))?;
                (bound.rel, bound.cols)
            }
        };
        let names: Vec<String> = view.columns.iter().map(|c| c.name.clone()).collect();
        let mut item = self.plain_item(Some(alias), &names, &cols);
        if !recorded {
            self.merge_locked(&mut item, &mut rel, &locking)?;
        }
        item.oid = view.oid;
        for (n, column) in item.columns.iter_mut().enumerate() {
            column.of = Some((need, n as u16 + 1));
        }
        if range.alias.is_none() {
            item.schema = self.cx.catalog.schema(view.schema).map(|s| s.name.clone());
        }
        self.note_use(view.oid, 0);
        if self.record.is_some() {
            for (n, col) in cols.iter().enumerate() {
                self.vars[usize::from(*col)].origin = Some((view.oid, n as u16 + 1));
            }
        }
        self.rename_columns(&mut item, range.alias.as_ref())?;
        let rel = match view.is_security_barrier() {
            true => Rel::Barrier { input: Box::new(rel) },
            false => rel,
        };
        Ok(FromItem { rel, items: vec![item] })
    }

    /// A view in a query that is not run but recorded: its columns alone, whatever its query has become. So one that
    /// names itself, or others without end, can be printed.
    fn view_as_such(&mut self, view: &Table) -> Result<(Rel, Vec<Col>)> {
        let mut cols = Vec::with_capacity(view.columns.len());
        for column in &view.columns {
            let col = self.new_var(&column.name, base::Oid(column.ty), column.typmod)?;
            self.note_column_collation(col, column.collation);
            cols.push(col);
        }
        Ok((Rel::Values { cols: cols.clone(), rows: Vec::new() }, cols))
    }

    /// CREATE [OR REPLACE] VIEW.
    pub(crate) fn create_view(&mut self, stmt: &pb::ViewStmt) -> Result<Utility> {
        let none = pb::OnCommitAction::OncommitNoop as i32;
        let persistence = self.persistence(stmt.view.as_ref(), none);
        let persistence = persistence.map_err(base::Error::without_position)?;
        let name = self.name_of_range(&stmt.view)?;
        let Some(node) = inner(&stmt.query) else {
            return Err(err!(SYNTAX_ERROR, "view without a query"));
        };
        let NodeEnum::SelectStmt(select) = node else {
            return Err(base::Error::unsupported("a view of this statement"));
        };
        if select.into_clause.is_some() {
            return Err(err!(FEATURE_NOT_SUPPORTED, "views must not contain SELECT INTO"));
        }
        let mut check = match pb::ViewCheckOption::try_from(stmt.with_check_option) {
            Ok(pb::ViewCheckOption::LocalCheckOption) => CheckOption::Local,
            Ok(pb::ViewCheckOption::CascadedCheckOption) => CheckOption::Cascaded,
            _ => CheckOption::None,
        };
        let (options, asked) = self.view_options(&stmt.options)?;
        check = asked.unwrap_or(check);
        let (columns, mut query) = self.defined_query(node, &stmt.aliases)?;
        if super::cte::changes_data(node) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "views must not contain data-modifying statements in WITH"
            ));
        }
        query.check = check;
        if check != CheckOption::None && !query.updatable {
            return Err(no_check_option(self.why_not_updatable(select)?));
        }
        let replace = stmt.replace;
        Ok(Utility::CreateView { name, columns, query, replace, options, persistence })
    }

    /// The options of a view, and the CHECK OPTION among them.
    pub(crate) fn view_options(
        &self,
        nodes: &[pb::Node],
    ) -> Result<(Vec<(String, String)>, Option<CheckOption>)> {
        let (mut options, mut check) = (Vec::new(), None);
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let value = super::define::def_value(def).unwrap_or_else(|| "true".to_owned());
            match (def.defname.as_str(), value.as_str()) {
                ("check_option", "local") => check = Some(CheckOption::Local),
                ("check_option", "cascaded") => check = Some(CheckOption::Cascaded),
                ("check_option", other) => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "invalid value for enum option \"check_option\": {other}"
                    )
                    .detail("Valid values are \"local\" and \"cascaded\"."));
                }
                (name @ ("security_barrier" | "security_invoker"), _) => {
                    let bool = types::io::input(types::oids::BOOL, -1, &value, self.cx.format);
                    if bool.is_err() {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "invalid value for boolean option \"{name}\": {value}"
                        ));
                    }
                    options.push((name.to_owned(), value));
                }
                (other, _) => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "unrecognized parameter \"{other}\""
                    ));
                }
            }
        }
        Ok((options, check))
    }

    /// The columns that a view's query gives, and the query as it is kept.
    pub(crate) fn defined_query(
        &mut self,
        node: &NodeEnum,
        aliases: &[pb::Node],
    ) -> Result<(Vec<ColumnDef>, ViewQuery)> {
        let NodeEnum::SelectStmt(select) = node else {
            return Err(base::Error::unsupported("a view of this statement"));
        };
        self.record = Some(Record::default());
        self.unfolded = true;
        let bypassing = std::mem::replace(&mut self.bypassing, true);
        let query = self.holding(|b| b.select(select, None, true));
        self.bypassing = bypassing;
        let query = query?;
        if !self.params.is_empty() {
            return Err(err!(UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        let names = ast::strings(aliases);
        if names.len() > query.output.len() {
            return Err(err!(SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns"));
        }
        let mut columns: Vec<ColumnDef> = Vec::with_capacity(query.output.len());
        for (n, output) in query.output.iter().enumerate() {
            let name = names.get(n).copied().unwrap_or(&output.name);
            if columns.iter().any(|c| c.name == name) {
                return Err(err!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once"));
            }
            if ast::is_pseudo(output.ty) {
                return Err(err!(
                    INVALID_TABLE_DEFINITION,
                    "column \"{name}\" has pseudo-type {}",
                    types::io::format_type(output.ty, -1)
                ));
            }
            let mut column = ColumnDef::new(name, output.ty, output.typmod);
            if output.collation == crate::plan::NO_COLLATION {
                return Err(err!(
                    INDETERMINATE_COLLATION,
                    "could not determine which collation to use for view column \"{name}\""
                )
                .hint("Use the COLLATE clause to set the collation explicitly."));
            }
            column.collation = output.collation;
            columns.push(column);
        }
        self.note_columns();
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let record = self.record.take().unwrap_or_default();
        let sql =
            crate::view::Printer::stored(self, &record, node).statement(node, Some(&names))?;
        crate::view::query_survives(self.cx, &sql, &columns)?;
        let uses = record.uses;
        let updatable = self.is_updatable(select)?;
        let query =
            ViewQuery { sql, uses, check: CheckOption::None, updatable, unpopulated: false };
        Ok((columns, query))
    }

    /// Notes the columns, types and other objects of all recorded expressions.
    pub(crate) fn note_columns(&mut self) {
        let Some(record) = &self.record else { return };
        let mut exprs: Vec<&crate::Expr> = record.exprs.values().flatten().collect();
        for select in record.selects.values() {
            exprs.extend(select.targets.iter().map(|(_, e)| e));
            exprs.extend(&select.conditions);
            exprs.extend(&select.groups);
            exprs.extend(&select.having);
            for (_, agg) in &select.aggs {
                exprs.extend(&agg.args);
                exprs.extend(agg.order.iter().map(|k| &k.expr));
                exprs.extend(&agg.filter);
            }
        }
        for change in record.changes.values() {
            let conflict = change.conflict.iter();
            let (sets, rest): (Vec<_>, Vec<_>) = conflict.map(|(_, s, c)| (s, c)).unzip();
            exprs.extend(change.set.iter().chain(sets.into_iter().flatten()).map(|(_, e)| e));
            exprs.extend(change.conditions.iter().chain(rest.into_iter().flatten()));
            exprs.extend(change.returning.iter().map(|(_, e)| e));
        }
        let (mut cols, mut objects, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for e in exprs {
            crate::print::fields_of(self.cx.catalog, e, &mut fields);
            crate::walk::columns_of(e, &mut cols);
            objects.extend(crate::print::objects_of(e));
        }
        for sublink in record.sublinks.values() {
            sublink.left.iter().for_each(|e| crate::walk::columns_of(e, &mut cols));
        }
        let origins: Vec<(u32, u16)> =
            cols.iter().filter_map(|c| self.vars[usize::from(*c)].origin).collect();
        let of_functions = record.fields.iter().filter(|(col, _)| cols.contains(col));
        fields.extend(of_functions.map(|(_, field)| *field));
        for (table, column) in origins.into_iter().chain(fields) {
            self.note_use(table, column);
        }
        for id in objects {
            self.note_use(id, 0);
        }
    }

    /// Why rows can't be changed through a view with this query: PostgreSQL's words; empty when they
    /// can.
    pub(crate) fn why_not_updatable(&self, select: &pb::SelectStmt) -> Result<String> {
        let because =
            |what: &str| Ok(format!("Views containing {what} are not automatically updatable."));
        if !select.distinct_clause.is_empty() {
            return because("DISTINCT");
        }
        if !select.group_clause.is_empty() {
            return because("GROUP BY");
        }
        if select.having_clause.is_some() {
            return because("HAVING");
        }
        if select.op > pb::SetOperation::SetopNone as i32 {
            return because("UNION, INTERSECT, or EXCEPT");
        }
        if select.with_clause.is_some() {
            return because("WITH");
        }
        if select.limit_count.is_some() || select.limit_offset.is_some() {
            return because("LIMIT or OFFSET");
        }
        let no_single =
            "Views that do not select from a single table or view are not automatically updatable.";
        let [from] = select.from_clause.as_slice() else { return Ok(no_single.to_owned()) };
        let Some(NodeEnum::RangeVar(range)) = &from.node else { return Ok(no_single.to_owned()) };
        if range.schemaname.is_empty() && self.cte_names.iter().any(|n| n.name == range.relname) {
            return Ok(no_single.to_owned());
        }
        if has_call_that_forbids(select, &["agg"]) {
            return Ok(
                "Views that return aggregate functions are not automatically updatable.".to_owned()
            );
        }
        if has_call_that_forbids(select, &["window"]) {
            return Ok(
                "Views that return window functions are not automatically updatable.".to_owned()
            );
        }
        if has_call_that_forbids(select, &["set"]) {
            return Ok(
                "Views that return set-returning functions are not automatically updatable."
                    .to_owned(),
            );
        }
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let base = match self.find_relation(schema, &range.relname) {
            Some(Relation::Table(table)) => table,
            _ => return Ok(no_single.to_owned()),
        };
        let fits = match base.kind {
            catalog::TableKind::Table | catalog::TableKind::Foreign => true,
            // Whether its rows can be changed is seen when they are.
            catalog::TableKind::View => true,
            _ => false,
        };
        if !fits {
            return Ok(no_single.to_owned());
        }
        let any = select.target_list.iter().any(|node| match &node.node {
            Some(NodeEnum::ResTarget(t)) => {
                matches!(inner(&t.val), Some(NodeEnum::ColumnRef(_)))
            }
            _ => false,
        });
        if !any {
            return Ok(
                "Views that have no updatable columns are not automatically updatable.".to_owned()
            );
        }
        Ok(String::new())
    }

    /// `0A000` unless a view can have a CHECK OPTION.
    pub(crate) fn expect_updatable(&self, view: &Table) -> Result<()> {
        let Some(query) = &view.query else { return Ok(()) };
        let tree = tree_of(&query.sql)?;
        let NodeEnum::SelectStmt(select) = &*tree else { return Ok(()) };
        match self.why_not_updatable(select)? {
            why if why.is_empty() => Ok(()),
            why => Err(no_check_option(why)),
        }
    }

    /// What can be done to the rows of a relation, as `pg_relation_is_updatable` says it: 4 (UPDATE), 8 (INSERT),
    /// 16 (DELETE). `triggers`: INSTEAD OF triggers count; `columns`: only these count.
    pub(crate) fn changes_of(
        &self,
        table: &Table,
        triggers: bool,
        columns: Option<&[u16]>,
    ) -> Result<i32> {
        sched::check_stack()?;
        use catalog::trigger_type as t;
        const ALL: i32 = 4 | 8 | 16;
        let query = match (table.kind, &table.query) {
            (catalog::TableKind::Table | catalog::TableKind::Foreign, _) => return Ok(ALL),
            (catalog::TableKind::View, Some(query)) => query,
            _ => return Ok(0),
        };
        let mut events = 0;
        if triggers {
            let bits = [(t::UPDATE, 4), (t::INSERT, 8), (t::DELETE, 16)];
            let own = bits.iter().filter(|(event, _)| table.has_instead(*event));
            events |= own.fold(0, |all, (_, bit)| all | bit);
        }
        use catalog::rule_event as r;
        let bits = [(r::UPDATE, 4), (r::INSERT, 8), (r::DELETE, 16)];
        let own = bits.iter().filter(|(event, _)| table.has_instead_rule(*event));
        events |= own.fold(0, |all, (_, bit)| all | bit);
        let tree = tree_of(&query.sql)?;
        let NodeEnum::SelectStmt(select) = &*tree else { return Ok(events) };
        if !self.why_not_updatable(select)?.is_empty() {
            return Ok(events);
        }
        let range = match select.from_clause.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::RangeVar(range)) => range,
            _ => return Ok(events),
        };
        let base = self.find_table(range)?;
        let mut below: Vec<u16> = Vec::new();
        for (n, node) in select.target_list.iter().enumerate() {
            let asked = columns.is_none_or(|all| all.contains(&(n as u16 + 1)));
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let Some(NodeEnum::ColumnRef(column)) = inner(&target.val) else { continue };
            let name = ast::strings(&column.fields).last().copied().unwrap_or_default();
            if let (true, Some((number, _))) = (asked, base.column(name)) {
                below.push(number);
            }
        }
        let mut own = if below.is_empty() && columns.is_some() { 16 } else { ALL };
        if !matches!(base.kind, catalog::TableKind::Table | catalog::TableKind::Foreign) {
            own &= self.changes_of(&base, triggers, columns.map(|_| below.as_slice()))?;
        }
        Ok(events | own)
    }

    fn is_updatable(&self, select: &pb::SelectStmt) -> Result<bool> {
        Ok(self.why_not_updatable(select)?.is_empty())
    }
}

fn no_check_option(why: String) -> base::Error {
    err!(
        FEATURE_NOT_SUPPORTED,
        "WITH CHECK OPTION is supported only on automatically updatable views"
    )
    .hint(why)
}

/// Whether the target list calls an aggregate, a window function or a set-returning function.
fn has_call_that_forbids(select: &pb::SelectStmt, kinds: &[&str]) -> bool {
    select.target_list.iter().any(|node| {
        let Some(target) = &node.node else { return false };
        every_node(target).into_iter().any(|inner| {
            let pg_query::NodeRef::FuncCall(call) = inner else { return false };
            let names = ast::strings(&call.funcname);
            let name = names.last().copied().unwrap_or_default();
            let window = call.over.is_some();
            kinds.iter().any(|kind| match *kind {
                "window" => window,
                "agg" => !window && types::func::aggregates().iter().any(|a| a.name == name),
                _ => types::func::functions_named(name).iter().any(|f| f.returns_set),
            })
        })
    })
}

/// What a locking clause locks of a subquery or view.
#[derive(Clone, Default)]
pub(crate) struct Beneath {
    pub tables: Vec<TableRel>,
    /// Conditions that a newer version of a row must fulfil, too.
    pub conditions: Vec<Expr>,
}

/// The locking clauses that apply to a subquery, without the names that they have.
#[derive(Default)]
pub(crate) struct Pushed {
    clauses: Vec<pb::LockingClause>,
    is_view: bool,
}

/// Whether a query only filters and joins, as far as its text says.
fn is_simple(select: &pb::SelectStmt) -> bool {
    select.op <= pb::SetOperation::SetopNone as i32
        && select.values_lists.is_empty()
        && select.distinct_clause.is_empty()
        && select.group_clause.is_empty()
        && select.having_clause.is_none()
        && select.window_clause.is_empty()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.with_clause.is_none()
        && select.locking_clause.is_empty()
}

impl Binder<'_> {
    /// FROM of a query whose locking clauses, and those around it, go for its subqueries, too.
    pub(crate) fn locked_from(
        &mut self,
        scope: &mut Scope<'_>,
        stmt: &pb::SelectStmt,
    ) -> Result<Option<Rel>> {
        let mut locking = std::mem::take(&mut self.locking_around);
        for node in &stmt.locking_clause {
            if let Some(NodeEnum::LockingClause(clause)) = &node.node {
                locking.push(clause.clone());
            }
        }
        let before = std::mem::replace(&mut self.locking, locking);
        let from = self.from_clause(scope, &stmt.from_clause);
        self.locking = before;
        from
    }

    /// The clauses that apply to a subquery of this name.
    pub(crate) fn locking_of(&self, alias: Option<&pb::Alias>, select: &pb::SelectStmt) -> Pushed {
        if self.record.is_some() || !select.values_lists.is_empty() {
            return Pushed::default();
        }
        let name = alias.map(|alias| alias.aliasname.as_str());
        Pushed { clauses: self.clauses_for(name), is_view: false }
    }

    /// The clauses that apply to a view of this name.
    pub(crate) fn locking_of_view(&self, name: &str) -> Pushed {
        if self.record.is_some() {
            return Pushed::default();
        }
        Pushed { clauses: self.clauses_for(Some(name)), is_view: true }
    }

    fn clauses_for(&self, name: Option<&str>) -> Vec<pb::LockingClause> {
        let names = |clause: &pb::LockingClause| {
            clause.locked_rels.is_empty()
                || clause.locked_rels.iter().any(|rel| match &rel.node {
                    Some(NodeEnum::RangeVar(range)) => Some(range.relname.as_str()) == name,
                    _ => false,
                })
        };
        let all = self.locking.iter().filter(|clause| names(clause)).cloned();
        all.map(|clause| pb::LockingClause { locked_rels: Vec::new(), ..clause }).collect()
    }

    /// A subquery in FROM to which these clauses apply.
    pub(crate) fn select_below(
        &mut self,
        select: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
        locking: &Pushed,
    ) -> Result<Query> {
        // Nobody locks through the sides of a set operation that a view has.
        let of_sets = select.op > pb::SetOperation::SetopNone as i32;
        let values = !select.values_lists.is_empty();
        if locking.clauses.is_empty() || values || locking.is_view && of_sets {
            return self.select(select, parent, true);
        }
        if is_simple(select) {
            self.locking_around = locking.clauses.clone();
            let query = self.select(select, parent, true);
            self.locking_around.clear();
            return query;
        }
        let mut locked = select.clone();
        for clause in &locking.clauses {
            let clause = NodeEnum::LockingClause(clause.clone());
            locked.locking_clause.push(pb::Node { node: Some(clause) });
        }
        self.select(&locked, parent, true)
    }

    /// Makes a subquery to which clauses apply part of the query around it, if it only filters and joins.
    pub(crate) fn merge_locked(
        &mut self,
        item: &mut NsItem,
        rel: &mut Rel,
        locking: &Pushed,
    ) -> Result<()> {
        let Some(clause) = locking.clauses.first() else { return Ok(()) };
        let name = lock_strength(clause.strength).1;
        let mut beneath = Beneath::default();
        look_beneath(rel, name, &mut beneath)?;
        if beneath.tables.is_empty() {
            return Ok(());
        }
        item.beneath = beneath;
        let computed = |exprs: &[(crate::logical::Col, Expr)]| {
            !exprs.iter().any(|(_, e)| walk::is_volatile(e) || walk::has_set(e))
        };
        match rel {
            Rel::Project { input, exprs, set: false } if computed(exprs) => {
                for column in &mut item.columns {
                    if let Expr::Column(col, _) = column.expr
                        && let Some((_, e)) = exprs.iter().find(|(own, _)| *own == col)
                    {
                        column.expr = e.clone();
                    }
                }
                *rel = std::mem::replace(&mut **input, Rel::OneRow);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes the locks and rights that a row lock needs.
    pub(crate) fn add_row_lock(&mut self, locks: &mut Vec<RelLock>, new: RelLock) {
        let table = &new.table;
        self.lock(table.table.oid, LockMode::RowShare);
        if table.children.is_some() {
            self.children_of(&table.table, LockMode::RowShare);
        }
        if let Some(need) = self.need_at(table.base) {
            need.required |= privilege::UPDATE;
        }
        match locks.iter_mut().find(|l| l.table.base == table.base) {
            Some(lock) => {
                lock.mode = lock.mode.max(new.mode);
                if new.wait != LockRowsWait::Block {
                    lock.wait = new.wait;
                }
            }
            None => locks.push(new),
        }
    }

    /// Who locks rows through a view needs the right to change them.
    pub(crate) fn need_locks(&mut self, item: &NsItem) {
        let view = item.columns.iter().find_map(|column| column.of);
        if let Some((need, _)) = view
            && let Some(need) = self.needs.get_mut(need)
        {
            need.required |= privilege::UPDATE;
        }
    }
}

/// Finds the tables whose rows a clause `name` locks, and the conditions on them.
fn look_beneath(rel: &Rel, name: &str, out: &mut Beneath) -> Result<()> {
    sched::check_stack()?;
    match rel {
        Rel::Table(table) => out.tables.push(table.clone()),
        Rel::Filter { input, conditions } => {
            out.conditions.extend(conditions.iter().cloned());
            look_beneath(input, name, out)?;
        }
        Rel::Barrier { input } | Rel::Project { input, set: false, .. } => {
            look_beneath(input, name, out)?;
        }
        Rel::Join { kind: JoinKind::Inner, left, right, on } => {
            out.conditions.extend(on.iter().cloned());
            look_beneath(left, name, out)?;
            look_beneath(right, name, out)?;
        }
        Rel::Join { kind, left, right, .. } => {
            let mut nullable = Beneath::default();
            look_beneath(right, name, &mut nullable)?;
            if *kind == JoinKind::Full {
                look_beneath(left, name, &mut nullable)?;
            }
            if !nullable.tables.is_empty() {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "{name} cannot be applied to the nullable side of an outer join"
                ));
            }
            look_beneath(left, name, out)?;
        }
        Rel::Aggregate { .. } => return Err(not_allowed(name, "aggregate functions")),
        Rel::Window { .. } => return Err(not_allowed(name, "window functions")),
        Rel::Project { set: true, .. } => {
            return Err(not_allowed(name, "set-returning functions in the target list"));
        }
        _ => {}
    }
    Ok(())
}
