//! FROM: tables, subqueries, functions, joins.

use std::sync::Arc;

use base::{Result, err};
use catalog::snapshot::Relation;
use catalog::{Table, TableKind, object::ids};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;
use types::oids::*;

use crate::expr::Expr;
use crate::logical::{Child, Col, Rel, SYSTEM_COLUMNS, TableRel, Var};
use crate::plan::{JoinKind, SampleMethod};

use super::record::{Part, address};
use super::scope::{NsColumn, NsItem, Place};
use super::{Binder, Scope, ast, inner};

/// Name of the column that [`NsItem::witness`] is; no user's column has it.
pub(crate) const WITNESS: &str = "";

/// A bound FROM item.
pub(crate) struct FromItem {
    /// Rows.
    pub rel: Rel,
    /// Names.
    pub items: Vec<NsItem>,
}

impl Binder<'_> {
    /// A whole FROM list: the cross product of its items.
    pub(crate) fn from_clause(
        &mut self,
        scope: &mut Scope<'_>,
        nodes: &[pb::Node],
    ) -> Result<Option<Rel>> {
        let mut whole = None;
        for node in nodes {
            let left = scope.items.clone();
            let item = self.from_item(scope, &left, true, node)?;
            for new in &item.items {
                self.check_alias(&scope.items, new)?;
            }
            scope.items.extend(item.items);
            whole = Some(match whole {
                None => item.rel,
                Some(left) => join(JoinKind::Inner, left, item.rel, Vec::new()),
            });
        }
        Ok(whole)
    }

    fn check_alias(&self, items: &[NsItem], new: &NsItem) -> Result<()> {
        let (Some(name), true) = (&new.name, new.rel_visible) else { return Ok(()) };
        // Different tables of one name, without aliases, are told apart by their schemas.
        let apart = |i: &NsItem| {
            i.schema.is_some() && new.schema.is_some() && i.oid != new.oid && i.oid != 0
        };
        let same = |i: &&NsItem| i.rel_visible && i.name.as_ref() == Some(name);
        let clash = items.iter().filter(same).any(|i| !apart(i));
        if clash {
            return Err(err!(DUPLICATE_ALIAS, "table name \"{name}\" specified more than once"));
        }
        Ok(())
    }

    fn from_item(
        &mut self,
        scope: &Scope<'_>,
        left: &[NsItem],
        lateral_ok: bool,
        node: &pb::Node,
    ) -> Result<FromItem> {
        sched::check_stack()?;
        match &node.node {
            Some(NodeEnum::RangeVar(range)) => self.range_var(range),
            Some(NodeEnum::RangeSubselect(sub)) => {
                self.range_subselect(scope, left, lateral_ok, sub)
            }
            Some(NodeEnum::RangeFunction(f)) => self.range_function(scope, left, lateral_ok, f),
            Some(NodeEnum::JoinExpr(j)) => self.join_expr(scope, left, lateral_ok, j),
            Some(NodeEnum::RangeTableSample(s)) => self.table_sample(scope, s),
            Some(other) => Err(base::Error::unsupported(super::words::from_item(other))),
            None => Err(base::Error::unsupported("this FROM item")),
        }
    }

    fn range_var(&mut self, range: &pb::RangeVar) -> Result<FromItem> {
        if let Some(item) = self.cte_item(range)? {
            return Ok(item);
        }
        if let Some(item) = self.transition_table(range)? {
            return Ok(item);
        }
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        if let Some(Relation::Sequence(sequence)) = self.find_relation(schema, &range.relname) {
            return self.sequence_item(&sequence, range);
        }
        let table = self.find_table(range).map_err(|error| self.hidden_cte(range, error))?;
        if table.query.is_some() && table.kind == TableKind::View {
            return self.view_item(&table, range);
        }
        self.lock_unless_system(&table, LockMode::AccessShare);
        self.note_use(table.oid, 0);
        let unpopulated =
            table.query.as_ref().is_some_and(|q| q.unpopulated).then(|| table.clone());
        let (mut rel, mut item) = self.table_item(table, range)?;
        if let Rel::Table(target) = &rel {
            rel = self.guard_rows(&target.clone())?;
        }
        if let Some(table) = unpopulated {
            self.check_rights()?;
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "materialized view \"{}\" has not been populated",
                table.name
            )
            .hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        self.rename_columns(&mut item, range.alias.as_ref())?;
        Ok(FromItem { rel, items: vec![item] })
    }

    /// Notes the lock that a use of a table needs.
    pub(crate) fn lock_unless_system(&mut self, table: &Table, mode: LockMode) {
        if matches!(table.kind, TableKind::Table | TableKind::Materialized | TableKind::Foreign) {
            self.lock(table.oid, mode);
        }
    }

    /// The table that a name means.
    ///
    /// # Errors
    /// `42P01`, `42809`, with position.
    pub(crate) fn find_table(&self, range: &pb::RangeVar) -> Result<Arc<Table>> {
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let position = self.at(range.location);
        self.check_range(range)?;
        if let Some(schema) = schema {
            self.check_schema(schema, position)?;
        }
        match self.find_relation(schema, &range.relname) {
            Some(Relation::Table(table)) => Ok(table),
            Some(Relation::Sequence(_)) => {
                Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", range.relname).at(position))
            }
            Some(Relation::Index(_)) => {
                Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an index", range.relname).at(position))
            }
            None => Err(self.cx.catalog.missing_relation(schema, &range.relname).at(position)),
        }
    }

    /// A table or index by name, computed tables included.
    pub(crate) fn find_relation(&self, schema: Option<&str>, name: &str) -> Option<Relation> {
        let system = |schema: &str| match self.cx.catalog.large_object_table(name) {
            Some(table) if schema == "pg_catalog" => Some(Relation::Table(table.clone())),
            _ => catalog::system::find(Some(schema), name).map(Relation::Table),
        };
        match schema {
            Some(schema @ ("pg_catalog" | "information_schema")) => system(schema),
            Some(schema) => self.cx.catalog.relation(&[], Some(schema), name),
            None => {
                let path = self.cx.search_path;
                if let Some(schema) = self.cx.catalog.implicit_temporary(path)
                    && let Some(found) = self.cx.catalog.relation_in(schema, name)
                {
                    return Some(found);
                }
                let implicit = !path.contains(&ids::PG_CATALOG);
                if implicit && let Some(found) = system("pg_catalog") {
                    return Some(found);
                }
                path.iter().find_map(|id| match *id {
                    ids::PG_CATALOG => system("pg_catalog"),
                    ids::INFORMATION_SCHEMA => system("information_schema"),
                    id => self.cx.catalog.relation_in(id, name),
                })
            }
        }
    }

    /// Gives a table's columns their numbers.
    pub(crate) fn table_rel(&mut self, table: Arc<Table>, alias: &str) -> Result<TableRel> {
        let rel = self.unasked_rel(table, alias)?;
        let count = self.vars.len() - usize::from(rel.base);
        self.need(&rel.table, rel.base, count);
        Ok(rel)
    }

    /// As [`Binder::table_rel`], without asking for rights: whoever may use a table may use its children.
    pub(crate) fn unasked_rel(&mut self, table: Arc<Table>, alias: &str) -> Result<TableRel> {
        let base = self.vars.len() as Col;
        for (i, column) in table.columns.iter().enumerate() {
            let col = self.new_var(&column.name, base::Oid(column.ty), column.typmod)?;
            self.vars[usize::from(col)].origin = Some((table.oid, i as u16 + 1));
            self.note_column_collation(col, column.collation);
            self.note_type_collation(base::Oid(column.ty));
        }
        if matches!(table.kind, TableKind::Table | TableKind::Materialized | TableKind::Foreign) {
            for (_, name, ty) in SYSTEM_COLUMNS {
                self.new_var(name, ty, -1)?;
            }
        }
        let role = if self.acting == self.cx.role { 0 } else { self.acting };
        Ok(TableRel { table, base, alias: alias.to_owned(), children: None, role })
    }

    /// The tables that inherit from one, level by level, locked in this mode; None: there are none.
    pub(crate) fn children_of(&mut self, table: &Table, mode: LockMode) -> Option<Arc<[Child]>> {
        if table.is_partitioned() {
            // Its partitions are found, and locked, when it runs.
            return Some(Arc::from([]));
        }
        if table.children.is_empty() {
            return None;
        }
        let mut level = table.children.clone();
        let mut found: Vec<Child> = Vec::new();
        while !level.is_empty() {
            level.sort_unstable();
            let mut next = Vec::new();
            for id in level {
                let Some(child) = self.cx.catalog.table(id) else { continue };
                if found.iter().any(|c| c.table.oid == id) {
                    continue;
                }
                self.lock(id, mode);
                let number = |column: &catalog::Column| match column.dropped {
                    true => 0,
                    false => child.column(&column.name).map_or(0, |(n, _)| n),
                };
                let numbers = table.columns.iter().map(number).collect();
                next.extend(&child.children);
                found.push(Child { table: child.clone(), numbers });
            }
            level = next;
        }
        Some(found.into())
    }

    /// A table with its names.
    pub(crate) fn table_item(
        &mut self,
        table: Arc<Table>,
        range: &pb::RangeVar,
    ) -> Result<(Rel, NsItem)> {
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let oid = table.oid;
        let schema = match (&range.alias, self.cx.catalog.schema(table.schema)) {
            (None, Some(schema)) => Some(schema.name.clone()),
            (None, None) if !range.schemaname.is_empty() => Some(range.schemaname.clone()),
            _ => None,
        };
        let mut rel = self.table_rel(table, alias)?;
        if range.inh {
            rel.children = self.children_of(&rel.table.clone(), LockMode::AccessShare);
        }
        let columns = self.table_columns(&rel);
        let system = (rel.table.kind == TableKind::System)
            .then(|| catalog::system::by_oid(base::Oid(oid)))
            .flatten();
        let item = NsItem {
            schema,
            table: system.is_none().then(|| rel.clone()),
            oid,
            ..NsItem::of_columns(Some(alias.to_owned()), columns)
        };
        let rel = match system {
            Some(table) => Rel::System { table, base: rel.base },
            None => Rel::Table(rel),
        };
        Ok((rel, item))
    }

    /// The names of a table's live columns.
    pub(crate) fn table_columns(&self, rel: &TableRel) -> Vec<NsColumn> {
        rel.table
            .live_columns()
            .map(|(n, c)| NsColumn {
                name: c.name.clone(),
                expr: self.column(rel.base + n - 1),
                of: None,
            })
            .collect()
    }

    pub(crate) fn rename_columns(
        &mut self,
        item: &mut NsItem,
        alias: Option<&pb::Alias>,
    ) -> Result<()> {
        let Some(alias) = alias else { return Ok(()) };
        if alias.colnames.len() > item.columns.len() {
            return Err(err!(
                INVALID_COLUMN_REFERENCE,
                "table \"{}\" has {} columns available but {} columns specified",
                alias.aliasname,
                item.columns.len(),
                alias.colnames.len()
            ));
        }
        for (column, name) in item.columns.iter_mut().zip(&alias.colnames) {
            column.name = ast::string(name).to_owned();
        }
        Ok(())
    }

    /// New columns like these, and their names.
    pub(crate) fn columns_for(
        &mut self,
        output: &[crate::plan::OutputColumn],
    ) -> Result<(Vec<String>, Vec<Col>)> {
        let mut cols = Vec::with_capacity(output.len());
        for column in output {
            cols.push(self.new_var(&column.name, column.ty, column.typmod)?);
        }
        Ok((output.iter().map(|c| c.name.clone()).collect(), cols))
    }

    /// Rows that are no table's, under the name and alias of a FROM item.
    pub(crate) fn plain_from(
        &mut self,
        rel: Rel,
        names: &[String],
        cols: &[Col],
        range: &pb::RangeVar,
    ) -> Result<FromItem> {
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let mut item = self.plain_item(Some(alias), names, cols);
        self.rename_columns(&mut item, range.alias.as_ref())?;
        Ok(FromItem { rel, items: vec![item] })
    }

    pub(crate) fn plain_item(&self, alias: Option<&str>, names: &[String], cols: &[Col]) -> NsItem {
        let column = |(name, col): (&String, &Col)| NsColumn {
            name: name.clone(),
            expr: self.column(*col),
            of: None,
        };
        let columns = names.iter().zip(cols).map(column).collect();
        NsItem::of_columns(alias.map(str::to_owned), columns)
    }

    fn range_subselect(
        &mut self,
        scope: &Scope<'_>,
        left: &[NsItem],
        lateral_ok: bool,
        sub: &pb::RangeSubselect,
    ) -> Result<FromItem> {
        let Some(NodeEnum::SelectStmt(select)) = inner(&sub.subquery) else {
            return Err(base::Error::unsupported("this subquery in FROM"));
        };
        if sub.alias.is_none() {
            let word = if select.values_lists.is_empty() { "subquery" } else { "VALUES" };
            let form = if select.values_lists.is_empty() { "SELECT" } else { "VALUES" };
            return Err(err!(SYNTAX_ERROR, "{word} in FROM must have an alias")
                .hint(format!("For example, FROM ({form} ...) [AS] foo."))
                .at(self.before(super::setop::leaf_location(select, 0))));
        }
        let locking = self.locking_of(sub.alias.as_ref(), select);
        let mut query = if sub.lateral {
            let around = lateral_scope(scope, left, lateral_ok);
            self.select_below(select, Some(&around), &locking)?
        } else {
            let mut rows = Scope::new(scope.parent);
            rows.items = scope.items.iter().filter(|item| item.rule_row).cloned().collect();
            match rows.items.is_empty() {
                true => self.select_below(select, scope.parent, &locking)?,
                false => self.select_below(select, Some(&rows), &locking)?,
            }
        };
        let names: Vec<String> = query.output.iter().map(|c| c.name.clone()).collect();
        let alias = sub.alias.as_ref().map(|a| a.aliasname.as_str());
        let mut item = self.plain_item(alias, &names, &query.cols);
        self.merge_locked(&mut item, &mut query.rel, &locking)?;
        self.rename_columns(&mut item, sub.alias.as_ref())?;
        Ok(FromItem { rel: query.rel, items: vec![item] })
    }

    /// The parenthesis before a place.
    fn before(&self, location: i32) -> u32 {
        let before = self.text.get(..usize::try_from(location).unwrap_or(0)).unwrap_or_default();
        before.rfind('(').map_or(0, |at| self.at(at as i32))
    }

    fn range_function(
        &mut self,
        scope: &Scope<'_>,
        left: &[NsItem],
        lateral_ok: bool,
        f: &pb::RangeFunction,
    ) -> Result<FromItem> {
        let functions = each_function(f);
        if functions.len() != 1 {
            return self.rows_from(scope, left, lateral_ok, f, &functions);
        }
        let parts = ast::list(&f.functions[0]);
        let node = parts.first().and_then(|n| n.node.as_ref());
        // Inside of ROWS FROM the list stands with the function.
        let definitions = match f.coldeflist.as_slice() {
            [] => parts.get(1).map(ast::list).unwrap_or_default(),
            own => own,
        };
        let Some(node) = node else { return Err(base::Error::unsupported("this FROM item")) };
        let around = lateral_scope(scope, left, lateral_ok);
        around.place.set(Place::From);
        if let Some(range) = function_table(node, f) {
            if let Some(first) = definitions.first() {
                return Err(redundant("a function with OUT parameters", self.at_definition(first)));
            }
            let item = self.range_var(&range)?;
            if let NodeEnum::FuncCall(call) = node {
                self.need_call_instead(&super::select::column_name(node), call.args.len());
            }
            return Ok(item);
        }
        if let Some(select) = function_by_pid(node, f) {
            return self.range_subselect(scope, left, lateral_ok, &select);
        }
        self.keep_call = true;
        let call = self.expr(&around, node);
        self.keep_call = false;
        let call = call?;
        around.check_top_of_from(&call)?;
        let mut call = self.resolve_unknown(call)?;
        self.note(f, Part::Call, std::slice::from_ref(&call));
        let location = ast::location(node);
        let function_name = super::select::column_name(node);
        let alias = f.alias.as_ref().map_or(function_name.as_str(), |a| &a.aliasname).to_owned();
        let (columns, scalar) = self.function_columns(&mut call, definitions, &alias, location)?;
        let mut names: Vec<String> = columns.iter().map(|c| c.0.to_string()).collect();
        let mut cols = Vec::with_capacity(columns.len() + 1);
        for (name, ty) in &columns {
            cols.push(self.new_var(name, *ty, -1)?);
        }
        self.note_fields(&call, &cols);
        if f.ordinality {
            names.push("ordinality".to_owned());
            cols.push(self.new_var("ordinality", INT8, -1)?);
        }
        let mut item = self.plain_item(Some(&alias), &names, &cols);
        if scalar && !f.ordinality {
            item.oid = super::scope::SCALAR_FUNCTION;
        }
        self.rename_columns(&mut item, f.alias.as_ref())?;
        if !f.ordinality
            && let Some(rel) = self.inlined_rows(&call, &columns, &cols)
        {
            return Ok(FromItem { rel, items: vec![item] });
        }
        Ok(FromItem {
            rel: Rel::Function { calls: vec![call], ordinality: f.ordinality, cols },
            items: vec![item],
        })
    }

    /// The columns of a function in FROM, and whether it is a plain value's one.
    fn function_columns(
        &mut self,
        call: &mut Expr,
        definitions: &[pb::Node],
        alias: &str,
        location: i32,
    ) -> Result<(Vec<(types::Text, base::Oid)>, bool)> {
        let listed = self.column_definitions(definitions)?;
        let mut columns = record_columns(call);
        if !listed.is_empty() {
            let at = definitions.first().map_or(0, |first| self.at_definition(first));
            if call.ty() != RECORD && types::user::shape(call.ty()).is_some() {
                return Err(redundant("a function returning a named composite type", at));
            }
            if call.ty() == RECORD && !columns.is_empty() {
                return Err(redundant("a function with OUT parameters", at));
            }
            if call.ty() != RECORD {
                return Err(err!(
                    SYNTAX_ERROR,
                    "a column definition list is only allowed for functions returning \"record\""
                )
                .at(at));
            }
            add_row_template(call, &listed);
            columns = listed;
        }
        let composite = call.ty() == RECORD || types::user::shape(call.ty()).is_some();
        let scalar = columns.len() <= 1 && !composite;
        if scalar {
            let name = columns.first().map_or_else(|| alias.into(), |c| c.0.clone());
            columns = vec![(name, call.ty())];
        } else if columns.is_empty() {
            return Err(err!(
                SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\""
            )
            .at(self.at(location)));
        }
        Ok((columns, scalar))
    }

    fn at_definition(&self, node: &pb::Node) -> u32 {
        match &node.node {
            Some(NodeEnum::ColumnDef(c)) => self.at(c.location),
            _ => 0,
        }
    }

    /// `AS t (a int, b text)`.
    fn column_definitions(&self, nodes: &[pb::Node]) -> Result<Vec<(types::Text, base::Oid)>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::ColumnDef(c)) = &node.node else { continue };
            if let Some(name) = &c.type_name {
                out.push((c.colname.as_str().into(), self.type_name(name)?.0));
            }
        }
        Ok(out)
    }

    /// ROWS FROM (f(…), g(…), …): side by side, the shorter ones padded with NULL.
    fn rows_from(
        &mut self,
        scope: &Scope<'_>,
        left: &[NsItem],
        lateral_ok: bool,
        f: &pb::RangeFunction,
        functions: &[pb::Node],
    ) -> Result<FromItem> {
        let around = lateral_scope(scope, left, lateral_ok);
        around.place.set(Place::From);
        let mut calls = Vec::with_capacity(functions.len());
        let mut written = Vec::with_capacity(functions.len());
        let mut names = Vec::with_capacity(functions.len() + 1);
        let mut cols = Vec::with_capacity(functions.len() + 1);
        let mut first = None;
        for item in functions {
            let parts = ast::list(item);
            let Some(node) = parts.first().and_then(|n| n.node.as_ref()) else { continue };
            self.keep_call = true;
            let call = self.expr(&around, node);
            self.keep_call = false;
            let call = call?;
            around.check_top_of_from(&call)?;
            let mut call = self.resolve_unknown(call)?;
            written.push(call.clone());
            let definitions = parts.get(1).map(ast::list).unwrap_or_default();
            let name = super::select::column_name(node);
            let location = ast::location(node);
            let (columns, _) = self.function_columns(&mut call, definitions, &name, location)?;
            let first_col = cols.len();
            for (name, ty) in columns {
                cols.push(self.new_var(&name, ty, -1)?);
                names.push(name.to_string());
            }
            self.note_fields(&call, &cols[first_col..]);
            first.get_or_insert(name);
            calls.push(call);
        }
        if f.ordinality {
            names.push("ordinality".to_owned());
            cols.push(self.new_var("ordinality", INT8, -1)?);
        }
        self.note(f, Part::Call, &written);
        let alias = f.alias.as_ref().map(|a| a.aliasname.as_str());
        let alias = alias.map(str::to_owned).or(first);
        let mut item = self.plain_item(alias.as_deref(), &names, &cols);
        self.rename_columns(&mut item, f.alias.as_ref())?;
        let rel = Rel::Function { calls, ordinality: f.ordinality, cols };
        Ok(FromItem { rel, items: vec![item] })
    }

    /// `table TABLESAMPLE method (percent) [REPEATABLE (seed)]`.
    fn table_sample(
        &mut self,
        scope: &Scope<'_>,
        sample: &pb::RangeTableSample,
    ) -> Result<FromItem> {
        let Some(NodeEnum::RangeVar(range)) = inner(&sample.relation) else {
            return Err(base::Error::unsupported("TABLESAMPLE of this"));
        };
        let item = self.range_var(range)?;
        let (table, guard) = match item.rel {
            Rel::Barrier { input } => match *input {
                Rel::Filter { input, conditions } => (*input, Some(conditions)),
                other => (other, None),
            },
            other => (other, None),
        };
        let foreign = |rel: &Rel| matches!(rel, Rel::Table(t) if t.table.foreign.is_some());
        let is_foreign = foreign(&table);
        let Some(table) = (match table {
            Rel::Table(table) if !is_foreign => Some(table),
            _ => None,
        }) else {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "TABLESAMPLE clause can only be applied to tables and materialized views"
            )
            .at(self.at(range.location)));
        };
        let names = ast::strings(&sample.method);
        let method = match names.last().copied() {
            Some("bernoulli") => SampleMethod::Bernoulli,
            Some("system") => SampleMethod::System,
            Some("system_rows") if self.cx.catalog.extension_named("tsm_system_rows").is_some() => {
                SampleMethod::SystemRows
            }
            Some("system_time") if self.cx.catalog.extension_named("tsm_system_time").is_some() => {
                SampleMethod::SystemTime
            }
            other => {
                return Err(err!(
                    UNDEFINED_OBJECT,
                    "tablesample method {} does not exist",
                    other.unwrap_or_default()
                )
                .at(self.at(sample.location)));
            }
        };
        let [percent] = sample.args.as_slice() else {
            return Err(err!(
                INVALID_TABLESAMPLE_ARGUMENT,
                "tablesample method {} requires 1 argument, not {}",
                names.last().copied().unwrap_or_default(),
                sample.args.len()
            )
            .at(self.at(sample.location)));
        };
        let around = Scope::new(scope.parent);
        around.place.set(Place::From);
        let ty = match method {
            SampleMethod::Bernoulli | SampleMethod::System => FLOAT4,
            SampleMethod::SystemRows => INT8,
            SampleMethod::SystemTime => FLOAT8,
        };
        let percent = self.sample_argument(&around, percent, ty)?;
        let of_extension = matches!(method, SampleMethod::SystemRows | SampleMethod::SystemTime);
        if of_extension && sample.repeatable.is_some() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "tablesample method {} does not support REPEATABLE",
                names.last().copied().unwrap_or_default()
            )
            .at(self.at(sample.location)));
        }
        let seed = match &sample.repeatable {
            Some(node) => Some(self.sample_argument(&around, node, FLOAT8)?),
            None => None,
        };
        let args: Vec<Expr> = std::iter::once(&percent).chain(&seed).cloned().collect();
        self.note(sample, super::record::Part::Call, &args);
        let rel = Rel::Sample { table, method, percent, seed };
        let rel = match guard {
            Some(conditions) => super::policy::behind(rel, conditions),
            None => rel,
        };
        Ok(FromItem { rel, items: item.items })
    }

    fn sample_argument(
        &mut self,
        scope: &Scope<'_>,
        node: &pb::Node,
        ty: base::Oid,
    ) -> Result<Expr> {
        let position = self.at(ast::location_of(node));
        let bound = self.expr_node(scope, node)?;
        let from = bound.ty();
        let cast = self.coerce(bound, ty, types::func::CastContext::Assignment, position)?;
        cast.ok_or_else(|| {
            err!(
                DATATYPE_MISMATCH,
                "argument of TABLESAMPLE must be type {}, not type {}",
                types::io::format_type(ty, -1),
                types::io::format_type(from, -1)
            )
            .at(position)
        })
    }

    fn join_expr(
        &mut self,
        scope: &Scope<'_>,
        left: &[NsItem],
        lateral_ok: bool,
        j: &pb::JoinExpr,
    ) -> Result<FromItem> {
        let (Some(larg), Some(rarg)) = (&j.larg, &j.rarg) else {
            return Err(err!(SYNTAX_ERROR, "join without two sides"));
        };
        let kind = pb::JoinType::try_from(j.jointype).unwrap_or(pb::JoinType::Undefined);
        // Whether a row has a partner must not be a matter of rounds.
        let outer = |nullable: bool| nullable.then_some("an outer join");
        use pb::JoinType::{JoinFull, JoinLeft, JoinRight};
        let (of_left, of_right) = (
            outer(matches!(kind, JoinRight | JoinFull)),
            outer(matches!(kind, JoinLeft | JoinFull)),
        );
        let l = self.not_recursive_in(of_left, |b| b.from_item(scope, left, lateral_ok, larg))?;
        let mut visible = left.to_vec();
        let inner_or_left = matches!(kind, pb::JoinType::JoinInner | pb::JoinType::JoinLeft);
        visible.extend(l.items.iter().cloned().map(|mut i| {
            i.lateral_ok = inner_or_left;
            i.lateral_only = true;
            i
        }));
        let r =
            self.not_recursive_in(of_right, |b| b.from_item(scope, &visible, lateral_ok, rarg))?;
        for new in &r.items {
            self.check_alias(&l.items, new)?;
        }
        let (mut l, mut r) = (l, r);
        if matches!(kind, pb::JoinType::JoinLeft | pb::JoinType::JoinFull) {
            self.make_nullable(&mut r)?;
        }
        if matches!(kind, pb::JoinType::JoinRight | pb::JoinType::JoinFull) {
            self.make_nullable(&mut l)?;
        }
        let using = self.using_names(j, &l.items, &r.items);
        let mut on = Vec::new();
        let mut items;
        if !using.is_empty() || j.is_natural {
            let merged = self.merge_columns(kind, &using, &l.items, &r.items, &mut on)?;
            if j.is_natural && self.record.is_some() {
                let all = using.iter().map(|n| one_column(&l.items, n, "left").map(|c| c.expr));
                let all = all.collect::<Result<Vec<_>>>()?;
                self.note(j, Part::Call, &all);
            }
            items = hide_columns(l.items, r.items);
            items.push(merged);
        } else {
            items = l.items;
            items.extend(r.items);
            if let Some(quals) = inner(&j.quals) {
                let on_scope = scope.with_items(items.clone(), Place::JoinOn);
                let condition = self.condition(&on_scope, quals, Place::JoinOn)?;
                self.note(j, Part::On, std::slice::from_ref(&condition));
                crate::walk::conjuncts(condition, &mut on);
            }
        }
        if let Some(alias) = &j.join_using_alias {
            let of = |c: &&NsColumn| using.contains(&c.name);
            let merged: Vec<NsColumn> = self::visible(&items).filter(of).cloned().collect();
            let merged = NsItem::of_columns(Some(alias.aliasname.clone()), merged);
            self.check_alias(&items, &merged)?;
            items.push(NsItem { cols_visible: false, ..merged });
        }
        if let Some(alias) = &j.alias {
            if let Some(record) = &mut self.record {
                record.joins.insert(address(j), items.clone());
            }
            items = vec![self.join_alias(items, alias)?];
        }
        let rel = match kind {
            pb::JoinType::JoinLeft => join(JoinKind::Left, l.rel, r.rel, on),
            pb::JoinType::JoinRight => join(JoinKind::Left, r.rel, l.rel, on),
            pb::JoinType::JoinFull => join(JoinKind::Full, l.rel, r.rel, on),
            _ => join(JoinKind::Inner, l.rel, r.rel, on),
        };
        Ok(FromItem { rel, items })
    }

    /// Notes that an outer join may put NULLs in the place of these rows, and gives the items a column by which
    /// a missing row differs from a row of NULLs.
    fn make_nullable(&mut self, side: &mut FromItem) -> Result<()> {
        // Tables have their `ctid`; an item of a join below has the witness of that join.
        let needs = |i: &NsItem| i.table.is_none() && i.witness.is_none() && !i.joined;
        let witness = match side.items.iter().any(needs) {
            true => Some(self.witness(&mut side.rel)?),
            false => None,
        };
        for item in &mut side.items {
            item.nullable = true;
            item.witness = item.witness.or(witness);
        }
        Ok(())
    }

    /// A column of these rows that is never NULL.
    fn witness(&mut self, rel: &mut Rel) -> Result<Col> {
        sched::check_stack()?;
        match rel {
            Rel::Table(table) | Rel::Sample { table, .. } => {
                Ok(table.col(crate::plan::ScanColumn::Tid))
            }
            Rel::Filter { input, .. }
            | Rel::Barrier { input }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Lock { input, .. }
            | Rel::Distinct { input, .. } => self.witness(input),
            Rel::Join { kind: JoinKind::Inner | JoinKind::Left, left, .. } => self.witness(left),
            Rel::Project { exprs, .. } => {
                let col = self.new_var(WITNESS, BOOL, -1)?;
                exprs.push((col, Expr::Const(types::Datum::Bool(true), BOOL)));
                Ok(col)
            }
            other => {
                let mut cols = Vec::new();
                other.output(&mut cols);
                let exprs = cols.into_iter().map(|col| (col, self.column(col))).collect();
                let input = Box::new(std::mem::replace(other, Rel::Nothing));
                *other = Rel::Project { input, exprs, set: false };
                self.witness(other)
            }
        }
    }

    fn using_names(&self, j: &pb::JoinExpr, l: &[NsItem], r: &[NsItem]) -> Vec<String> {
        if !j.is_natural {
            return ast::owned_strings(&j.using_clause);
        }
        let right: Vec<&str> = visible(r).map(|c| c.name.as_str()).collect();
        visible(l).filter(|c| right.contains(&c.name.as_str())).map(|c| c.name.clone()).collect()
    }

    /// Columns of a join with USING: merged ones first, then the others of both sides.
    fn merge_columns(
        &mut self,
        kind: pb::JoinType,
        using: &[String],
        l: &[NsItem],
        r: &[NsItem],
        on: &mut Vec<Expr>,
    ) -> Result<NsItem> {
        let mut columns = Vec::new();
        for name in using {
            let left = one_column(l, name, "left")?;
            let right = one_column(r, name, "right")?;
            self.note_column(&left);
            self.note_column(&right);
            let (left, right) = (left.expr, right.expr);
            on.push(self.equals(left.clone(), right.clone(), 0)?);
            let ty = self.common_type(&[(left.ty(), 0), (right.ty(), 0)], "JOIN/USING")?;
            let right_is_plain = left.ty() != ty && right.ty() == ty;
            let left = self.to_common(left, ty, "JOIN/USING", 0)?;
            let right = self.to_common(right, ty, "JOIN/USING", 0)?;
            let expr = match kind {
                pb::JoinType::JoinRight => right,
                pb::JoinType::JoinInner if right_is_plain => right,
                pb::JoinType::JoinFull => Expr::Coalesce(vec![left, right], ty),
                _ => left,
            };
            columns.push(NsColumn { name: name.clone(), expr, of: None });
        }
        columns.extend(visible(l).filter(|c| !using.contains(&c.name)).cloned());
        columns.extend(visible(r).filter(|c| !using.contains(&c.name)).cloned());
        Ok(NsItem::of_columns(None, columns))
    }

    fn join_alias(&mut self, items: Vec<NsItem>, alias: &pb::Alias) -> Result<NsItem> {
        let columns: Vec<NsColumn> = visible(&items).cloned().collect();
        let item = NsItem::of_columns(Some(alias.aliasname.clone()), columns);
        let mut item = NsItem { joined: true, ..item };
        self.rename_columns(&mut item, Some(alias))?;
        Ok(item)
    }
}

fn visible(items: &[NsItem]) -> impl Iterator<Item = &NsColumn> {
    items.iter().filter(|i| i.cols_visible).flat_map(|i| &i.columns)
}

fn one_column(items: &[NsItem], name: &str, side: &str) -> Result<NsColumn> {
    let mut found = visible(items).filter(|c| c.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.clone()),
        (Some(_), Some(_)) => Err(err!(
            AMBIGUOUS_COLUMN,
            "common column name \"{name}\" appears more than once in {side} table"
        )),
        _ => Err(err!(
            UNDEFINED_COLUMN,
            "column \"{name}\" specified in USING clause does not exist in {side} table"
        )),
    }
}

fn hide_columns(l: Vec<NsItem>, r: Vec<NsItem>) -> Vec<NsItem> {
    l.into_iter()
        .chain(r)
        .map(|mut item| {
            item.cols_visible = false;
            item
        })
        .collect()
}

/// What a LATERAL item sees: the items to its left, then the outer query.
fn lateral_scope<'p>(scope: &Scope<'p>, left: &[NsItem], lateral_ok: bool) -> Scope<'p> {
    let mut items = left.to_vec();
    for item in &mut items {
        item.lateral_only = true;
        item.lateral_ok = item.lateral_ok && lateral_ok;
    }
    scope.with_items(items, Place::From)
}

/// A join.
pub(crate) fn join(kind: JoinKind, left: Rel, right: Rel, on: Vec<Expr>) -> Rel {
    Rel::Join { kind, left: Box::new(left), right: Box::new(right), on }
}

/// A function whose rows are those of a computed table with one session's number, as
/// `(SELECT * FROM function(NULL) AS name WHERE number IS NULL OR name.pid = number)`.
fn function_by_pid(node: &NodeEnum, f: &pb::RangeFunction) -> Option<pb::RangeSubselect> {
    let NodeEnum::FuncCall(call) = node else { return None };
    let [number] = call.args.as_slice() else { return None };
    let node = |node: NodeEnum| pb::Node { node: Some(node) };
    let null = pb::AConst { isnull: true, ..Default::default() };
    let all = pb::FuncCall { args: vec![node(NodeEnum::AConst(null))], ..(**call).clone() };
    let all = NodeEnum::FuncCall(Box::new(all));
    let from = pb::RangeFunction {
        functions: vec![node(NodeEnum::List(pb::List { items: vec![node(all.clone())] }))],
        alias: None,
        ..f.clone()
    };
    let range = function_table(&all, &from)?;
    let name = range.relname.trim_end_matches("()").to_owned();
    let table = catalog::system::find_function(&name)?;
    table.column("pid")?;
    let word = |text: &str| node(NodeEnum::String(pb::String { sval: text.to_owned() }));
    let column = |fields| node(NodeEnum::ColumnRef(pb::ColumnRef { fields, location: -1 }));
    let equal = pb::AExpr {
        kind: pb::AExprKind::AexprOp as i32,
        name: vec![word("=")],
        lexpr: Some(Box::new(column(vec![word(&name), word("pid")]))),
        rexpr: Some(Box::new(number.clone())),
        location: call.location,
        ..Default::default()
    };
    let is_null = pb::NullTest {
        arg: Some(Box::new(number.clone())),
        nulltesttype: pb::NullTestType::IsNull as i32,
        ..Default::default()
    };
    let either = pb::BoolExpr {
        boolop: pb::BoolExprType::OrExpr as i32,
        args: vec![
            node(NodeEnum::NullTest(Box::new(is_null))),
            node(NodeEnum::AExpr(Box::new(equal))),
        ],
        ..Default::default()
    };
    let star = column(vec![node(NodeEnum::AStar(pb::AStar {}))]);
    let target = pb::ResTarget { val: Some(Box::new(star)), location: -1, ..Default::default() };
    let select = pb::SelectStmt {
        target_list: vec![node(NodeEnum::ResTarget(Box::new(target)))],
        from_clause: vec![node(NodeEnum::RangeFunction(from))],
        where_clause: Some(Box::new(node(NodeEnum::BoolExpr(Box::new(either))))),
        limit_option: pb::LimitOption::Default as i32,
        op: pb::SetOperation::SetopNone as i32,
        ..Default::default()
    };
    let named = || pb::Alias { aliasname: name, colnames: Vec::new() };
    Some(pb::RangeSubselect {
        lateral: true,
        subquery: Some(Box::new(node(NodeEnum::SelectStmt(Box::new(select))))),
        alias: Some(f.alias.clone().unwrap_or_else(named)),
    })
}

/// The functions of a FROM item, `unnest(a, b, …)` as `unnest(a), unnest(b), …`.
pub(crate) fn each_function(f: &pb::RangeFunction) -> Vec<pb::Node> {
    let node = |node: NodeEnum| pb::Node { node: Some(node) };
    let mut out = Vec::with_capacity(f.functions.len());
    for item in &f.functions {
        let parts = ast::list(item);
        let listed = parts.get(1).is_some_and(|list| !ast::list(list).is_empty());
        match parts.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::FuncCall(call))
                if ast::strings(&call.funcname) == ["unnest"] && call.args.len() > 1 && !listed =>
            {
                for arg in &call.args {
                    let mut single = call.clone();
                    single.args = vec![arg.clone()];
                    let none = node(NodeEnum::List(pb::List { items: Vec::new() }));
                    let items = vec![node(NodeEnum::FuncCall(single)), none];
                    out.push(node(NodeEnum::List(pb::List { items })));
                }
            }
            _ => out.push(item.clone()),
        }
    }
    out
}

/// `42601` for a column definition list where the columns are known.
fn redundant(of: &str, position: u32) -> base::Error {
    err!(SYNTAX_ERROR, "a column definition list is redundant for {of}").at(position)
}

/// Names and types of the columns of a row value over these columns; None where they are not known, or
/// it is no row.
pub(crate) fn columns_of_row(row: &Expr, vars: &[Var]) -> Option<Vec<(types::Text, base::Oid)>> {
    if let Some(shape) = types::user::shape(row.ty()) {
        return Some(shape.columns.clone());
    }
    match row {
        Expr::Row(fields) => {
            Some(types::datum::Shape::anonymous(fields.iter().map(Expr::ty)).columns)
        }
        Expr::Const(types::Datum::Record(r), RECORD) => Some(r.shape.columns.clone()),
        Expr::Case { default, .. } => columns_of_row(default, vars),
        Expr::Column(col, RECORD) => {
            vars.get(usize::from(*col)).map(|v| v.row.clone()).filter(|row| !row.is_empty())
        }
        Expr::Call { .. } if row.ty() == RECORD => {
            Some(record_columns(row)).filter(|columns| !columns.is_empty())
        }
        _ => None,
    }
}

/// Names and types of the columns that a function in FROM returns; none for those with one value.
pub fn record_columns(call: &Expr) -> Vec<(types::Text, base::Oid)> {
    if let Some(shape) = types::user::shape(call.ty()) {
        return shape.columns.clone();
    }
    let Expr::Call { function, args, .. } = call else { return Vec::new() };
    let real = |ty: base::Oid| {
        let given = function.args.iter().copied().zip(args.iter().map(Expr::ty));
        super::polymorphic::real_in_call(ty, given)
    };
    match args.last() {
        // The row that a column definition list asks for.
        Some(Expr::Const(types::Datum::Record(r), RECORD)) if call.ty() == RECORD => {
            r.shape.columns.clone()
        }
        _ => function.columns.iter().map(|(name, ty)| ((*name).into(), real(*ty))).collect(),
    }
}

/// Tells a function that returns any record which columns are wanted: a row of NULLs as another
/// argument.
fn add_row_template(call: &mut Expr, columns: &[(types::Text, base::Oid)]) {
    let shape = types::datum::Shape { ty: RECORD, columns: columns.to_vec() };
    let nulls = vec![types::Datum::Null; columns.len()];
    let template = Expr::Const(types::Datum::record(shape.into(), nulls), RECORD);
    match call {
        Expr::Call { args, .. } => {
            let mut all = std::mem::take(args).into_vec();
            all.push(template);
            *args = all.into();
        }
        // COALESCE and the like take no more arguments.
        other => {
            let row = std::mem::replace(other, Expr::Const(types::Datum::Null, RECORD));
            *other = Expr::Call {
                function: &types::func::internal::FITTING_ROW,
                args: Box::new([row, template]),
                ty: RECORD,
                position: 0,
            };
        }
    }
}

/// A function without arguments, or with NULL only, whose rows are those of a computed table.
fn function_table(node: &NodeEnum, f: &pb::RangeFunction) -> Option<pb::RangeVar> {
    let NodeEnum::FuncCall(call) = node else { return None };
    let mut names = call.funcname.iter().filter_map(|n| match &n.node {
        Some(NodeEnum::String(s)) => Some(s.sval.as_str()),
        _ => None,
    });
    let (first, second) = (names.next()?, names.next());
    let name = match second {
        None => first,
        Some(name) if first == "pg_catalog" => name,
        Some(_) => return None,
    };
    let plain = |arg: &pb::Node| matches!(&arg.node, Some(NodeEnum::AConst(c)) if c.isnull);
    if f.ordinality || !call.args.iter().all(plain) {
        return None;
    }
    let table = catalog::system::find_function(name)?;
    let alias = f
        .alias
        .clone()
        .unwrap_or_else(|| pb::Alias { aliasname: name.to_owned(), colnames: Vec::new() });
    Some(pb::RangeVar {
        schemaname: "pg_catalog".to_owned(),
        relname: table.name.clone(),
        inh: true,
        relpersistence: "p".to_owned(),
        alias: Some(alias),
        location: call.location,
        ..pb::RangeVar::default()
    })
}
