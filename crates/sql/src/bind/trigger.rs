//! CREATE and DROP TRIGGER, and the binding of their conditions.

use base::{Error, Result, err};
use catalog::snapshot::Relation;
use catalog::{TableKind, Trigger, trigger_type as t};
use pg_query::{NodeEnum, protobuf as pb};

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::parse::deparse_expr;
use crate::trigger::{CreateTrigger, DropTrigger};
use crate::utility::{Name, Utility};

use super::scope::Place;
use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// CREATE TRIGGER.
    pub(crate) fn create_trigger(&mut self, stmt: &pb::CreateTrigStmt) -> Result<Utility> {
        let row = if stmt.row { t::ROW } else { 0 };
        let kind = row | stmt.timing as i16 | stmt.events as i16;
        let mut trigger = Trigger {
            name: stmt.trigname.clone(),
            kind,
            enabled: 'O',
            deferrable: stmt.deferrable,
            deferred: stmt.initdeferred,
            args: ast::owned_strings(&stmt.args),
            ..Trigger::default()
        };
        if let Some(node) = inner(&stmt.when_clause) {
            let before = stmt.row && stmt.timing & i32::from(catalog::trigger_type::BEFORE) != 0;
            self.bind_when(&stmt.relation, node, before)?;
            trigger.when = Some(deparse_expr(node)?);
        }
        for node in &stmt.transition_rels {
            let Some(NodeEnum::TriggerTransition(one)) = &node.node else { continue };
            transition(&mut trigger, one)?;
        }
        let other = match &stmt.constrrel {
            Some(_) => Some(self.name_of_range(&stmt.constrrel)?),
            None => None,
        };
        Ok(Utility::CreateTrigger(Box::new(CreateTrigger {
            replace: stmt.replace,
            constraint: stmt.isconstraint,
            trigger,
            table: self.name_of_range(&stmt.relation)?,
            function: self.name_of_list(&stmt.funcname),
            columns: ast::owned_strings(&stmt.columns),
            other,
        })))
    }

    /// DROP TRIGGER.
    pub(crate) fn drop_trigger(&self, stmt: &pb::DropStmt) -> Option<Utility> {
        if stmt.remove_type != pb::ObjectType::ObjectTrigger as i32 {
            return None;
        }
        let Some(NodeEnum::List(list)) = stmt.objects.first().and_then(|n| n.node.as_ref()) else {
            return None;
        };
        let (name, table) = list.items.split_last()?;
        let table: Name = self.name_of_list(table);
        Some(Utility::DropTrigger(DropTrigger {
            table,
            name: ast::string(name).to_owned(),
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
        }))
    }

    /// What is wrong with WHEN by itself is said with its place in the statement.
    fn bind_when(
        &mut self,
        range: &Option<pb::RangeVar>,
        node: &NodeEnum,
        before: bool,
    ) -> Result<()> {
        let Some(range) = range else { return Ok(()) };
        self.check_range(range)?;
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let Some(Relation::Table(table)) = self.find_relation(schema, &range.relname) else {
            return Ok(());
        };
        if !matches!(table.kind, TableKind::Table | TableKind::Foreign) {
            return Ok(());
        }
        let old = self.unasked_rel(table.clone(), "old")?;
        let new = self.unasked_rel(table, "new")?;
        let condition = self.trigger_condition(&old, &new, node)?;
        let columns = super::define::table_columns(&new, &condition);
        let generated = |n: &&u16| new.table.columns[usize::from(**n) - 1].generated;
        let Some(number) = columns.iter().find(generated).filter(|_| before) else {
            return Ok(());
        };
        let error = err!(
            INVALID_OBJECT_DEFINITION,
            "BEFORE trigger's WHEN condition cannot reference NEW generated columns"
        );
        Err(match super::define::whole_row(node, &new) {
            Some(location) => error
                .detail("A whole-row reference is used and the table contains generated columns.")
                .at(self.at(location)),
            None => {
                let name = &new.table.columns[usize::from(*number) - 1].name;
                let col = new.col(crate::plan::ScanColumn::Attr(*number));
                error
                    .detail(format!("Column \"{name}\" is a generated column."))
                    .at(self.vars[usize::from(col)].position)
            }
        })
    }

    /// Binds WHEN over the two rows of a trigger.
    pub(crate) fn trigger_condition(
        &mut self,
        old: &TableRel,
        new: &TableRel,
        node: &NodeEnum,
    ) -> Result<Expr> {
        let mut scope = Scope::new(None);
        for row in [old, new] {
            let item = self.item_of(row);
            scope.items.push(item);
        }
        self.unseen += 1;
        let condition = self.holding(|b| b.condition(&scope, node, Place::TriggerWhen));
        self.unseen -= 1;
        condition
    }
}

/// REFERENCING.
fn transition(trigger: &mut Trigger, one: &pb::TriggerTransition) -> Result<()> {
    if !one.is_table {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "ROW variable naming in the REFERENCING clause is not supported"
        )
        .hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
    }
    let slot = if one.is_new { &mut trigger.new_table } else { &mut trigger.old_table };
    if slot.is_some() {
        let word = if one.is_new { "NEW" } else { "OLD" };
        return Err(Error::new(
            base::sqlstate::INVALID_OBJECT_DEFINITION,
            format!("{word} TABLE cannot be specified multiple times"),
        ));
    }
    *slot = Some(one.name.clone());
    if trigger.old_table.is_some() && trigger.old_table == trigger.new_table {
        return Err(err!(
            INVALID_OBJECT_DEFINITION,
            "OLD TABLE name and NEW TABLE name cannot be the same"
        ));
    }
    Ok(())
}
