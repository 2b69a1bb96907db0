//! Names in force: what FROM brought in, level by level.

use std::cell::{Cell, RefCell};

use base::{Result, err};
use pg_query::protobuf as pb;

use crate::expr::{AggCall, Expr};
use crate::logical::{Col, TableRel};

use super::record::{WindowNote, WindowSpec};
use super::window::Window;
use super::{Binder, similar};

/// Stands for an oid where an item is a function with one value: its row is that value.
pub(crate) const SCALAR_FUNCTION: u32 = u32::MAX;

/// A column that a FROM item offers.
#[derive(Clone)]
pub(crate) struct NsColumn {
    /// Name.
    pub name: String,
    /// What it stands for (a column; COALESCE for a merged column of a full join).
    pub expr: Expr,
    /// The use of a view ([`Binder::needs`]) whose column it is, and its number, from 1.
    pub of: Option<(usize, u16)>,
}

/// A FROM item's names.
#[derive(Clone)]
pub(crate) struct NsItem {
    /// Alias or table name; joins without alias have none.
    pub name: Option<String>,
    /// Its schema, when it may be written.
    pub schema: Option<String>,
    /// Columns in order.
    pub columns: Vec<NsColumn>,
    /// `name.column` finds it.
    pub rel_visible: bool,
    /// Plain `column` finds it.
    pub cols_visible: bool,
    /// Only usable from LATERAL items (FROM is still being bound), and whether that is allowed.
    pub lateral_only: bool,
    /// With `lateral_only`: false when the join type forbids it.
    pub lateral_ok: bool,
    /// The table that the statement changes, which FROM and USING beside it must not see.
    pub target: bool,
    /// The table, for system columns and row locks.
    pub table: Option<TableRel>,
    /// What a locking clause locks of a subquery or view.
    pub beneath: super::view::Beneath,
    /// Oid of the table or computed table.
    pub oid: u32,
    /// On the side of an outer join that may be NULL.
    pub nullable: bool,
    /// With `nullable`: a column that is NULL exactly where an outer join found no row of the item.
    pub witness: Option<Col>,
    /// A join with an alias: its whole row is made of its columns, and is never NULL itself.
    pub joined: bool,
    /// `old` or `new` of a rule, which subqueries in FROM may name.
    pub rule_row: bool,
}

impl NsItem {
    /// Columns that can be written plainly and, where there is a name, with it; of no table.
    pub(crate) fn of_columns(name: Option<String>, columns: Vec<NsColumn>) -> NsItem {
        NsItem {
            rel_visible: name.is_some(),
            name,
            schema: None,
            columns,
            cols_visible: true,
            lateral_only: false,
            lateral_ok: true,
            target: false,
            table: None,
            beneath: Default::default(),
            oid: 0,
            nullable: false,
            witness: None,
            joined: false,
            rule_row: false,
        }
    }
}

/// What an expression is part of: decides what may stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Where,
    JoinOn,
    Having,
    Target,
    GroupBy,
    OrderBy,
    Limit,
    From,
    Values,
    /// The only row of an INSERT's VALUES, which is computed as a SELECT's list.
    ValuesRow,
    Returning,
    Set,
    Default,
    Check,
    Generated,
    IndexKey,
    IndexWhere,
    Execute,
    Window,
    WindowFrame,
    Filter,
    When,
    CopyWhere,
    Transform,
    TriggerWhen,
    Policy,
    PartitionKey,
    PartitionBound,
    PublicationWhere,
}

impl Place {
    /// As PostgreSQL names it in "… are not allowed in …".
    pub fn name(self) -> &'static str {
        match self {
            Place::Where => "WHERE",
            Place::JoinOn => "JOIN conditions",
            Place::Having => "HAVING",
            Place::Target => "SELECT",
            Place::GroupBy => "GROUP BY",
            Place::OrderBy => "ORDER BY",
            Place::Limit => "LIMIT",
            Place::From => "functions in FROM",
            Place::Values | Place::ValuesRow => "VALUES",
            Place::Returning => "RETURNING",
            Place::Set => "UPDATE",
            Place::Default => "DEFAULT expressions",
            Place::Check => "check constraints",
            Place::Generated => "column generation expressions",
            Place::IndexKey => "index expressions",
            Place::IndexWhere => "index predicates",
            Place::Execute => "EXECUTE parameters",
            Place::Window | Place::WindowFrame => "window definitions",
            Place::Filter => "FILTER",
            Place::When => "MERGE WHEN conditions",
            Place::TriggerWhen => "trigger WHEN conditions",
            Place::Policy => "policy expressions",
            Place::PartitionKey => "partition key expressions",
            Place::PartitionBound => "partition bound",
            Place::Transform => "transform expressions",
            Place::CopyWhere => "COPY FROM WHERE conditions",
            Place::PublicationWhere => "WHERE",
        }
    }

    fn allows_aggregates(self) -> bool {
        matches!(self, Place::Having | Place::Target | Place::OrderBy | Place::Window)
    }

    fn allows_sets(self) -> bool {
        matches!(
            self,
            Place::Target
                | Place::From
                | Place::OrderBy
                | Place::GroupBy
                | Place::Window
                | Place::ValuesRow
        )
    }
}

/// One query level.
pub(crate) struct Scope<'p> {
    /// The outer query's.
    pub parent: Option<&'p Scope<'p>>,
    /// FROM items.
    pub items: Vec<NsItem>,
    /// What is being bound.
    pub place: Cell<Place>,
    /// Aggregates found so far, with their result columns.
    pub aggs: RefCell<Vec<(Col, AggCall)>>,
    /// Inside an aggregate's arguments.
    pub in_aggregate: Cell<bool>,
    /// Window function calls found so far.
    pub windows: RefCell<Vec<Window>>,
    /// The same for printing, when the query is recorded.
    pub window_notes: RefCell<Vec<WindowNote>>,
    /// The WINDOW clause's definitions, likewise.
    pub window_specs: RefCell<Vec<(String, WindowSpec)>>,
    /// The WINDOW clause, and how many of it are visible.
    pub named_windows: Vec<std::sync::Arc<pb::WindowDef>>,
    /// See `named_windows`.
    pub named_limit: Cell<usize>,
    /// Inside a window function's arguments or definition.
    pub in_window: Cell<bool>,
    /// `grouping(…)` calls: column, and the arguments with their places.
    pub groupings: RefCell<Vec<(Col, Vec<(Expr, u32)>)>>,
    /// GROUP BY has grouping sets.
    pub grouping_sets: Cell<bool>,
    /// The places of the groups that all of them have.
    pub common_groups: RefCell<Option<Vec<usize>>>,
    /// Calls of set-returning functions so far, and where the last one stands.
    pub sets: Cell<(u32, u32)>,
}

impl<'p> Scope<'p> {
    /// `grouping(…)` found so far, for printing.
    pub(crate) fn noted_groupings(&self) -> Vec<(Col, Vec<Expr>)> {
        let args = |args: &[(Expr, u32)]| args.iter().map(|(e, _)| e.clone()).collect();
        self.groupings.borrow().iter().map(|(col, a)| (*col, args(a))).collect()
    }

    /// A level inside `parent`.
    pub fn new(parent: Option<&'p Scope<'p>>) -> Scope<'p> {
        Scope {
            parent,
            items: Vec::new(),
            place: Cell::new(Place::From),
            aggs: RefCell::new(Vec::new()),
            in_aggregate: Cell::new(false),
            windows: RefCell::new(Vec::new()),
            window_notes: RefCell::new(Vec::new()),
            window_specs: RefCell::new(Vec::new()),
            named_windows: Vec::new(),
            named_limit: Cell::new(usize::MAX),
            in_window: Cell::new(false),
            groupings: RefCell::new(Vec::new()),
            grouping_sets: Cell::new(false),
            common_groups: RefCell::new(None),
            sets: Cell::new((0, 0)),
        }
    }

    /// The same level with other items, as a join's condition sees it.
    pub fn with_items(&self, items: Vec<NsItem>, place: Place) -> Scope<'p> {
        let scope = Scope::new(self.parent);
        scope.place.set(place);
        Scope { items, ..scope }
    }

    /// `42803` where aggregates may not stand.
    pub fn check_aggregate(&self, position: u32) -> Result<()> {
        if self.in_aggregate.get() && self.place.get() != Place::Filter {
            return Err(
                err!(GROUPING_ERROR, "aggregate function calls cannot be nested").at(position)
            );
        }
        let place = self.place.get();
        if !place.allows_aggregates() {
            return Err(err!(
                GROUPING_ERROR,
                "aggregate functions are not allowed in {}",
                place.name()
            )
            .at(position));
        }
        Ok(())
    }

    /// `0A000` where set-returning functions may not stand. `before`: how many of them had been seen
    /// before the call's arguments.
    pub fn check_set(&self, before: u32, position: u32) -> Result<()> {
        let place = self.place.get();
        let (seen, last) = self.sets.get();
        if !place.allows_sets() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "set-returning functions are not allowed in {}",
                place.name()
            )
            .at(position));
        }
        let around = match () {
            () if self.in_aggregate.get() => Some("aggregate"),
            () if self.in_window.get() && place != Place::Window => Some("window"),
            () => None,
        };
        if let Some(kind) = around {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{kind} function calls cannot contain set-returning function calls"
            )
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(position));
        }
        if place == Place::From && seen > before {
            return Err(below_top_of_from(last));
        }
        self.sets.set((seen + 1, position));
        Ok(())
    }

    /// `0A000` when a set-returning call stands inside of a call in FROM that returns none.
    pub fn check_top_of_from(&self, call: &Expr) -> Result<()> {
        let (seen, last) = self.sets.replace((0, 0));
        let mut top = call;
        while let Expr::Relabel(inner, _) | Expr::Collate(inner, ..) = top {
            top = inner;
        }
        let at_top = matches!(top, Expr::Call { function, .. } if function.returns_set);
        if seen > 0 && !at_top && crate::walk::has_set(call) {
            return Err(below_top_of_from(last));
        }
        Ok(())
    }
}

fn below_top_of_from(position: u32) -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "set-returning functions must appear at top level of FROM")
        .at(position)
}

impl Binder<'_> {
    /// A column by its plain name; None when no level has it.
    pub(crate) fn find_column(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        let mut level = Some(scope);
        while let Some(scope) = level {
            let mut found: Option<(&NsItem, &NsColumn)> = None;
            for item in scope.items.iter().filter(|i| i.cols_visible) {
                for column in item.columns.iter().filter(|c| c.name == name) {
                    if found.is_some() {
                        return Err(err!(
                            AMBIGUOUS_COLUMN,
                            "column reference \"{name}\" is ambiguous"
                        )
                        .at(self.at(location)));
                    }
                    found = Some((item, column));
                }
            }
            if let Some((item, column)) = found {
                self.check_lateral(item, location)?;
                return Ok(Some(self.used(column, location)));
            }
            if let Some(expr) = self.find_system_column(scope, name, location)? {
                self.note_read(&expr);
                return Ok(Some(expr));
            }
            level = scope.parent;
        }
        Ok(None)
    }

    fn find_system_column(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        let mut found = None;
        for item in scope.items.iter().filter(|i| i.cols_visible || i.rel_visible) {
            if let Some(expr) = self.system_column(item, name) {
                if found.is_some() {
                    return Err(err!(AMBIGUOUS_COLUMN, "column reference \"{name}\" is ambiguous")
                        .at(self.at(location)));
                }
                found = Some(expr);
            }
        }
        Ok(found)
    }

    fn system_column(&self, item: &NsItem, name: &str) -> Option<Expr> {
        if name == "tableoid"
            && item.table.is_none()
            && item.oid != 0
            && item.oid != SCALAR_FUNCTION
        {
            let oid = types::Datum::Oid(item.oid);
            return Some(Expr::Const(oid, types::oids::OID));
        }
        let Some(table) = item.table.as_ref() else {
            return catalog_column(item.oid, name);
        };
        let (column, _, _) = crate::logical::SYSTEM_COLUMNS
            .iter()
            .find(|c| c.1 == name && c.0 != crate::plan::ScanColumn::Root)?;
        Some(self.column(table.col(*column)))
    }

    /// Remembers where a column is first named, for later errors about it.
    fn used(&mut self, column: &NsColumn, location: i32) -> Expr {
        self.note_column(column);
        let expr = column.expr.clone();
        if let Expr::Column(col, _) = &expr {
            let position = self.at(location);
            let var = &mut self.vars[usize::from(*col)];
            if var.position == 0 {
                var.position = position;
            }
        }
        expr
    }

    fn check_lateral(&self, item: &NsItem, location: i32) -> Result<()> {
        if !item.lateral_only || item.lateral_ok {
            return Ok(());
        }
        let name = item.name.as_deref().unwrap_or_default();
        let error = err!(
            INVALID_COLUMN_REFERENCE,
            "invalid reference to FROM-clause entry for table \"{name}\""
        );
        let error = match item.target {
            true => error.hint(not_from_here(name)),
            false => error
                .detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference."),
        };
        Err(error.at(self.at(location)))
    }

    /// The FROM item with this name.
    pub(crate) fn find_item<'s>(
        &self,
        scope: &'s Scope<'_>,
        schema: Option<&str>,
        name: &str,
        location: i32,
    ) -> Result<Option<&'s NsItem>> {
        let mut level: Option<&'s Scope<'_>> = Some(scope);
        while let Some(scope) = level {
            let mut found = None;
            for item in scope.items.iter().filter(|i| i.rel_visible) {
                if item.name.as_deref() != Some(name) {
                    continue;
                }
                if schema.is_some() && item.schema.as_deref() != schema {
                    continue;
                }
                if found.is_some() {
                    return Err(err!(AMBIGUOUS_ALIAS, "table reference \"{name}\" is ambiguous")
                        .at(self.at(location)));
                }
                found = Some(item);
            }
            if let Some(item) = found {
                self.check_lateral(item, location)?;
                return Ok(Some(item));
            }
            level = scope.parent;
        }
        Ok(None)
    }

    /// A column of the FROM item with this name.
    pub(crate) fn find_qualified(
        &mut self,
        scope: &Scope<'_>,
        schema: Option<&str>,
        table: &str,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        let Some(item) = self.find_item(scope, schema, table, location)? else {
            return Err(self.missing_from(scope, schema, table, location));
        };
        let mut matches = item.columns.iter().filter(|c| c.name == name);
        if let Some(column) = matches.next() {
            if matches.next().is_some() {
                return Err(err!(AMBIGUOUS_COLUMN, "column reference \"{name}\" is ambiguous")
                    .at(self.at(location)));
            }
            return Ok(self.used(column, location));
        }
        if let Some(expr) = self.system_column(item, name) {
            self.note_read(&expr);
            return Ok(expr);
        }
        let error = err!(UNDEFINED_COLUMN, "column {table}.{name} does not exist");
        Err(similar::hint(scope, Some(table), name, error).at(self.at(location)))
    }

    /// `42P01` for a name that FROM doesn't have.
    pub(crate) fn missing_from(
        &self,
        scope: &Scope<'_>,
        schema: Option<&str>,
        table: &str,
        location: i32,
    ) -> base::Error {
        let oid = match self.find_relation(schema, table) {
            Some(catalog::snapshot::Relation::Table(table)) => table.oid,
            _ => 0,
        };
        let is_meant = |i: &&NsItem| i.name.as_deref() == Some(table) || oid != 0 && i.oid == oid;
        let mut levels = std::iter::successors(Some(scope), |s| s.parent);
        if let Some(item) = levels.find_map(|s| s.items.iter().find(is_meant)) {
            let alias = item.name.as_deref().unwrap_or_default();
            let hint = if alias != table && item.rel_visible {
                format!("Perhaps you meant to reference the table alias \"{alias}\".")
            } else {
                not_from_here(alias)
            };
            return err!(
                UNDEFINED_TABLE,
                "invalid reference to FROM-clause entry for table \"{table}\""
            )
            .hint(hint)
            .at(self.at(location));
        }
        err!(UNDEFINED_TABLE, "missing FROM-clause entry for table \"{table}\"")
            .at(self.at(location))
    }
}

fn not_from_here(name: &str) -> String {
    format!(
        "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
    )
}

/// A system column of one of the catalog's own tables, whose rows are computed: they look as if a
/// transaction that just ended had written them, so that who keeps an `xmin` reads them anew.
fn catalog_column(oid: u32, name: &str) -> Option<Expr> {
    use types::{Datum, oids};
    let table = catalog::system::by_oid(base::Oid(oid))?;
    if table.is_view || table.name.ends_with("()") {
        return None;
    }
    let none = |ty| Some(Expr::Const(Datum::Oid(0), ty));
    match name {
        "ctid" => Some(Expr::Const(Datum::Tid(base::TupleId { block: 0, offset: 1 }), oids::TID)),
        "xmin" => Some(Expr::Call {
            function: &types::func::internal::CATALOG_XMIN,
            args: Box::default(),
            ty: oids::XID,
            position: 0,
        }),
        "xmax" | "cmin" | "cmax" => none(oids::XID),
        _ => None,
    }
}
