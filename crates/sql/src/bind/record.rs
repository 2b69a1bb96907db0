//! A record of what binding knew of a query's parts, kept for printing it (views). Binding turns the grammar's
//! tree into relational operators and forgets what was written; with a [`Record`] in place it notes,
//! beside the tree's nodes (by their address: the tree outlives the record's use), the names in
//! force and the bound expressions.

use std::collections::HashMap;

use pg_query::{NodeEnum, protobuf as pb};

use crate::expr::{AggCall, Expr, SortKey};
use crate::logical::Col;
use crate::window::{Frame, WindowCall};

use super::scope::NsItem;
use super::{Binder, Scope};

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Record {
    /// By address of the SELECT.
    pub selects: HashMap<usize, SelectRecord>,
    /// Expressions by node and part of it.
    pub exprs: HashMap<(usize, Part), Vec<Expr>>,
    /// What is inside of a join with an alias, by address of the join.
    pub joins: HashMap<usize, Vec<NsItem>>,
    /// By number of the subquery.
    pub sublinks: HashMap<usize, SublinkRecord>,
    /// Data-changing statements, by address.
    pub changes: HashMap<usize, ChangeRecord>,
    /// The definitions of WINDOW clauses, which are bound from copies of the tree's.
    pub windows: Vec<std::sync::Arc<pb::WindowDef>>,
    /// Objects and columns used.
    pub uses: Vec<(u32, u16)>,
    /// Columns of functions in FROM that are those of a table whose rows they return.
    pub fields: Vec<(Col, (u32, u16))>,
}

/// Which part of a node an expression is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// ON of a join.
    On,
    /// The call of a function in FROM.
    Call,
    /// LIMIT.
    Limit,
    /// OFFSET.
    Offset,
    /// The n-th row of VALUES.
    Row(usize),
    /// An item of GROUP BY.
    Group,
    /// What is assigned to a part of a column.
    Assigned,
}

/// A plain SELECT.
#[derive(Clone, Default)]
pub(crate) struct SelectRecord {
    /// Names of FROM.
    pub items: Vec<NsItem>,
    /// Target list: name and expression; hidden entries behind the first `visible`.
    pub targets: Vec<(String, Expr)>,
    /// See `targets`.
    pub visible: usize,
    /// WHERE's conditions.
    pub conditions: Vec<Expr>,
    /// GROUP BY.
    pub groups: Vec<Expr>,
    /// HAVING.
    pub having: Option<Expr>,
    /// ORDER BY: target, DESC, NULLS FIRST.
    pub order: Vec<(usize, bool, bool)>,
    /// DISTINCT (no targets) or DISTINCT ON.
    pub distinct: Option<Vec<usize>>,
    /// It has grouping sets.
    pub sets: bool,
    /// `grouping(…)`, which stands as columns.
    pub groupings: Vec<(Col, Vec<Expr>)>,
    /// Window functions, which stand as columns.
    pub windows: Vec<WindowNote>,
    /// The WINDOW clause.
    pub named: Vec<(String, WindowSpec)>,
    /// Aggregates, which stand as columns.
    pub aggs: Vec<(Col, AggCall)>,
}

/// An INSERT, UPDATE or DELETE.
#[derive(Clone, Default)]
pub(crate) struct ChangeRecord {
    /// The table, with column names.
    pub target: u32,
    /// Names in force, the target's first.
    pub items: Vec<NsItem>,
    /// An INSERT's columns.
    pub columns: Vec<u16>,
    /// SET.
    pub set: Vec<(u16, Expr)>,
    /// WHERE.
    pub conditions: Vec<Expr>,
    /// ON CONFLICT DO UPDATE: its names, SET and WHERE.
    pub conflict: Option<(Vec<NsItem>, Vec<(u16, Expr)>, Vec<Expr>)>,
    /// RETURNING.
    pub returning: Vec<(String, Expr)>,
}

/// A call with OVER.
#[derive(Clone)]
pub(crate) struct WindowNote {
    /// The column that it stands as.
    pub col: Col,
    /// The call.
    pub call: WindowCall,
    /// `OVER name`, or `OVER (…)`.
    pub over: Result<String, WindowSpec>,
}

/// A window as it is written.
#[derive(Clone)]
pub(crate) struct WindowSpec {
    /// The window that it begins with, if any.
    pub base: String,
    /// Its own PARTITION BY.
    pub partition: Vec<Expr>,
    /// Its own ORDER BY.
    pub order: Vec<SortKey>,
    /// Its frame, if it says one; and whether with BETWEEN.
    pub frame: Option<(Frame, bool)>,
}

/// A subquery of an expression.
#[derive(Clone)]
pub(crate) struct SublinkRecord {
    /// Address of its SELECT.
    pub select: usize,
    /// Left side of IN, ANY, ALL.
    pub left: Vec<Expr>,
    /// Operator of ANY and ALL.
    pub operator: String,
    /// A row is compared with the subquery's only one: neither ANY nor ALL.
    pub row: bool,
}

/// A node's address.
pub(crate) fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node) as usize
}

impl Binder<'_> {
    /// Notes an expression beside its node.
    pub(crate) fn note<T>(&mut self, node: &T, part: Part, exprs: &[Expr]) {
        if let Some(record) = &mut self.record {
            record.exprs.insert((address(node), part), exprs.to_vec());
        }
    }

    /// Notes a plain SELECT's parts.
    pub(crate) fn note_select(
        &mut self,
        stmt: &pb::SelectStmt,
        scope: &Scope<'_>,
        select: impl FnOnce() -> SelectRecord,
    ) {
        if let Some(record) = &mut self.record {
            let mut noted = select();
            noted.items = scope.items.clone();
            noted.aggs = scope.aggs.borrow().clone();
            record.selects.insert(address(stmt), noted);
        }
    }

    /// Notes a data-changing statement's parts, those that are known so far.
    pub(crate) fn note_change<T>(&mut self, stmt: &T, set: impl FnOnce(&mut ChangeRecord)) {
        if let Some(record) = &mut self.record {
            set(record.changes.entry(address(stmt)).or_default());
        }
    }

    /// Notes which columns of a table those of a function in FROM are, if its rows are that table's.
    pub(crate) fn note_fields(&mut self, call: &Expr, cols: &[Col]) {
        let (Some(record), Expr::Call { function, .. }) = (&mut self.record, call) else { return };
        let catalog = self.cx.catalog;
        let of_type = match catalog.type_id(call.ty().0) {
            Some(catalog::snapshot::TypeId::Row(table, false)) => Some(table),
            _ => None,
        };
        let of_function = || catalog.function(function.oid.0).and_then(|f| f.row_of);
        let Some(table) = of_type.or_else(of_function).and_then(|id| catalog.table(id)) else {
            return;
        };
        let numbers = table.live_columns().map(|(number, _)| (table.oid, number));
        record.fields.extend(cols.iter().copied().zip(numbers));
    }

    /// Notes the use of an object (column 0) or column.
    pub(crate) fn note_use(&mut self, object: u32, column: u16) {
        if let Some(record) = &mut self.record
            && object >= base::Oid::FIRST_USER.0
            && !record.uses.contains(&(object, column))
        {
            record.uses.push((object, column));
        }
    }

    /// Binds something as it is written: constants are not computed, and a call stands without what its defaults fill.
    pub(crate) fn unfolding<R>(&mut self, bind: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.unfolded, true);
        let bound = bind(self);
        self.unfolded = before;
        bound
    }

    /// The objects that an expression names. Binding computes constants and takes COLLATE for comparisons of keys, so
    /// it is bound again without.
    ///
    /// # Errors
    /// Those of binding it.
    pub(crate) fn objects_of(
        &mut self,
        expr: &Expr,
        again: impl FnOnce(&mut Self) -> base::Result<Expr>,
    ) -> base::Result<Vec<u32>> {
        let written = self.unfolding(again);
        let mut all = crate::print::objects_of(expr);
        all.extend(crate::print::objects_of(&written?));
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

impl Record {
    /// All SELECTs of a tree that was recorded, by their address.
    pub(crate) fn selects_of<'n>(
        &'n self,
        node: &'n NodeEnum,
    ) -> HashMap<usize, &'n pb::SelectStmt> {
        let parts =
            self.windows.iter().flat_map(|w| w.partition_clause.iter().chain(&w.order_clause));
        let windows = parts.filter_map(|node| node.node.as_ref());
        let all = std::iter::once(node).chain(windows).flat_map(crate::every_node::every_node);
        let select = |found| match found {
            pg_query::NodeRef::SelectStmt(select) => Some((address(select), select)),
            _ => None,
        };
        all.filter_map(select).collect()
    }
}
