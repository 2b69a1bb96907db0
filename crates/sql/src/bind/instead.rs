//! Changes of a view's rows that its INSTEAD OF triggers do: the view takes the place of a table, whose rows have
//! no place of their own.

use std::sync::Arc;

use base::Result;
use catalog::snapshot::Relation;
use catalog::{Table, TableKind};
use pg_query::protobuf as pb;
use types::Datum;
use types::oids::TID;

use crate::expr::Expr;
use crate::logical::{Rel, SYSTEM_COLUMNS, TableRel};
use crate::plan::ScanColumn;

use super::Binder;
use super::scope::NsItem;

/// A view with triggers in place of a change.
pub(crate) struct Instead {
    /// The view, as the table that is changed.
    pub target: TableRel,
    /// Its names.
    pub item: NsItem,
}

impl Binder<'_> {
    /// The view that a change names, if it has triggers for that: `event` is one of
    /// [`catalog::trigger_type`].
    ///
    /// # Errors
    /// `54011`.
    pub(crate) fn instead(
        &mut self,
        range: &Option<pb::RangeVar>,
        event: i16,
    ) -> Result<Option<Instead>> {
        let Some(range) = range else { return Ok(None) };
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let Some(Relation::Table(view)) = self.find_relation(schema, &range.relname) else {
            return Ok(None);
        };
        // What is printed names the view's own columns.
        if view.kind != TableKind::View || !view.has_instead(event) && self.record.is_none() {
            return Ok(None);
        }
        self.view_as_table(view, range).map(Some)
    }

    /// A view in place of a table that is changed.
    ///
    /// # Errors
    /// `54011`.
    pub(crate) fn view_as_table(
        &mut self,
        view: Arc<Table>,
        range: &pb::RangeVar,
    ) -> Result<Instead> {
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let target = self.table_rel(view.clone(), alias)?;
        for (_, name, ty) in SYSTEM_COLUMNS {
            self.new_var(name, ty, -1)?;
        }
        let mut item = self.item_of(&target);
        if range.alias.is_none() {
            item.schema = self.cx.catalog.schema(view.schema).map(|s| s.name.clone());
        }
        Ok(Instead { target, item })
    }

    /// The view's rows, as those of the table that is changed.
    ///
    /// # Errors
    /// Those of the view's query.
    pub(crate) fn instead_rows(&mut self, target: &TableRel, range: &pb::RangeVar) -> Result<Rel> {
        let needs = self.needs.len();
        let from = self.view_item(&target.table.clone(), range)?;
        // Whoever may change the view need not be allowed to read it.
        self.need_nothing(needs, target.table.oid);
        let none = |column| (target.col(column), Expr::Const(Datum::Null, TID));
        let mut exprs = vec![none(ScanColumn::Tid), none(ScanColumn::Root)];
        let columns = from.items.into_iter().flat_map(|item| item.columns);
        for ((n, _), column) in target.table.live_columns().zip(columns) {
            exprs.push((target.col(ScanColumn::Attr(n)), column.expr));
        }
        Ok(Rel::Project { input: Box::new(from.rel), exprs, set: false })
    }
}
