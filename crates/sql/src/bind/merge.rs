//! MERGE: the source's rows beside the table's rows that match them, and what to do with each.

use base::{Oid, Result, err};
use catalog::acl::privilege;
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;

use crate::expr::Expr;
use crate::logical::{Change, ChangeAction, MergeAction, MergeClause, Rel, TableRel};
use crate::plan::{JoinKind, RowRules};
use crate::walk;

use super::dml::BoundChange;
use super::from::join;
use super::scope::Place;
use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// MERGE.
    pub(crate) fn merge(&mut self, stmt: &pb::MergeStmt) -> Result<BoundChange> {
        if stmt.returning_clause.is_some() {
            return Err(base::Error::unsupported("RETURNING of MERGE"));
        }
        let names = self.cte_names.len();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, true)?;
        }
        self.changing = true;
        let (table, range) = self.target_table(&stmt.relation)?;
        if table.rules.iter().any(|r| r.enabled != 'D') {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot execute MERGE on relation \"{}\"",
                table.name
            )
            .detail("MERGE is not supported for relations with rules."));
        }
        let (rel, item) = self.table_item(table, &range)?;
        let Rel::Table(target) = rel.clone() else {
            return Err(err!(INTERNAL_ERROR, "change of a computed table"));
        };
        self.need_change(target.base, 0, &[]);
        let mut source = Scope::new(None);
        let Some(node) = &stmt.source_relation else {
            return Err(err!(SYNTAX_ERROR, "MERGE without a source"));
        };
        let rows = self.from_clause(&mut source, std::slice::from_ref(&**node))?;
        let rows = rows.unwrap_or(Rel::OneRow);
        if source.items.iter().any(|i| i.rel_visible && i.name == item.name) {
            return Err(err!(
                DUPLICATE_ALIAS,
                "name \"{}\" specified more than once",
                item.name.clone().unwrap_or_default()
            )
            .detail("The name is used both as MERGE target table and data source."));
        }
        let mut both = Scope::new(None);
        both.items.push(item.clone());
        both.items.extend(source.items.iter().cloned());
        let mut on = Vec::new();
        if let Some(node) = inner(&stmt.join_condition) {
            let bound = self.condition(&both, node, Place::JoinOn)?;
            walk::conjuncts(bound, &mut on);
        }
        // Where nothing matches, the table is known but has no row.
        let mut hidden = item;
        (hidden.rel_visible, hidden.cols_visible) = (false, false);
        source.items.push(hidden);
        let mut clauses = Vec::with_capacity(stmt.merge_when_clauses.len());
        let mut closed = [false; 2];
        for node in &stmt.merge_when_clauses {
            let Some(NodeEnum::MergeWhenClause(when)) = &node.node else { continue };
            let matched = match pb::MergeMatchKind::try_from(when.match_kind) {
                Ok(pb::MergeMatchKind::MergeWhenMatched) => true,
                Ok(pb::MergeMatchKind::MergeWhenNotMatchedByTarget) => false,
                _ => return Err(base::Error::unsupported("WHEN NOT MATCHED BY SOURCE")),
            };
            let done = &mut closed[usize::from(matched)];
            if *done {
                return Err(err!(
                    SYNTAX_ERROR,
                    "unreachable WHEN clause specified after unconditional WHEN clause"
                ));
            }
            *done = when.condition.is_none();
            let scope = if matched { &both } else { &source };
            clauses.push(self.merge_clause(scope, &target, when, matched)?);
        }
        self.cte_names.truncate(names);
        let kind =
            if clauses.iter().any(|c| !c.matched) { JoinKind::Left } else { JoinKind::Inner };
        let mut rel = join(kind, rows, rel, on.clone());
        let policies = self.merged_rules(&mut rel, &mut on, &target)?;
        let checks = RowRules { policies, ..self.checks(&target)? };
        let action = ChangeAction::Merge { rel, recheck: on, clauses };
        let children = self.child_targets(&target, Some(&checks))?;
        Ok((Change { table: target, action, returning: None, checks, children }, Vec::new()))
    }

    fn merge_clause(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        when: &pb::MergeWhenClause,
        matched: bool,
    ) -> Result<MergeClause> {
        let mut conditions = Vec::new();
        if let Some(node) = inner(&when.condition) {
            let bound = self.condition(scope, node, Place::When)?;
            walk::conjuncts(bound, &mut conditions);
        }
        let action = match pb::CmdType::try_from(when.command_type) {
            Ok(pb::CmdType::CmdInsert) => {
                MergeAction::Insert(self.merge_insert(scope, target, when)?)
            }
            Ok(pb::CmdType::CmdUpdate) => {
                MergeAction::Update(self.set_list(scope, target, &when.target_list)?)
            }
            Ok(pb::CmdType::CmdDelete) => MergeAction::Delete,
            _ => MergeAction::Nothing,
        };
        match &action {
            MergeAction::Insert(_) => {
                let columns = self.insert_columns(&target.table, &when.target_list)?;
                self.need_more(target.base, privilege::INSERT, &columns);
            }
            MergeAction::Update(set) => {
                let written: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
                self.need_more(target.base, privilege::UPDATE, &written);
            }
            MergeAction::Delete => self.need_more(target.base, privilege::DELETE, &[]),
            _ => {}
        }
        Ok(MergeClause { matched, conditions, action })
    }

    /// The row that INSERT makes, in table order.
    fn merge_insert(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        when: &pb::MergeWhenClause,
    ) -> Result<Vec<Expr>> {
        let table = target.table.clone();
        let columns = self.insert_columns(&table, &when.target_list)?;
        let given = when.values.len();
        if given > columns.len() {
            let at = ast::location_of(&when.values[columns.len()]);
            return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns")
                .at(self.at(at)));
        }
        if given < columns.len() && !when.target_list.is_empty() && given > 0 {
            let at = ast::location_of(&when.target_list[given]);
            return Err(err!(SYNTAX_ERROR, "INSERT has more target columns than expressions")
                .at(self.at(at)));
        }
        scope.place.set(Place::Values);
        let mut row = Vec::with_capacity(table.columns.len());
        for (i, column) in table.columns.iter().enumerate() {
            let number = i as u16 + 1;
            let node = columns.iter().position(|c| *c == number).and_then(|n| when.values.get(n));
            row.push(match node {
                _ if column.dropped => Expr::Const(Datum::Null, Oid(column.ty)),
                None => self.column_default(&table, number)?,
                Some(node) if matches!(node.node, Some(NodeEnum::SetToDefault(_))) => {
                    self.column_default(&table, number)?
                }
                Some(node) => {
                    let position = self.at(ast::location_of(node));
                    let e = self.expr_node(scope, node)?;
                    self.assign(e, Oid(column.ty), column.typmod, &column.name, position)?
                }
            });
        }
        Ok(row)
    }
}
