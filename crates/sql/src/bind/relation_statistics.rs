//! UPDATE of `pg_class` by a superuser: the columns that ANALYZE sets may be set by hand, as tests of planners do.

use base::Result;
use pg_query::{NodeEnum, protobuf as pb};

use crate::utility::Utility;

use super::Binder;

/// The columns that can be set, in the order of the query's.
const COLUMNS: [&str; 3] = ["reltuples", "relpages", "relallvisible"];

fn target(node: &pb::Node) -> Option<&pb::ResTarget> {
    match &node.node {
        Some(NodeEnum::ResTarget(target)) => Some(target),
        _ => None,
    }
}

fn output(val: Option<Box<pb::Node>>) -> pb::Node {
    let target = pb::ResTarget { val, ..pb::ResTarget::default() };
    pb::Node { node: Some(NodeEnum::ResTarget(Box::new(target))) }
}

impl Binder<'_> {
    /// Whether an UPDATE is such a one.
    pub(crate) fn sets_statistics(&self, stmt: &pb::UpdateStmt) -> bool {
        let Some(range) = &stmt.relation else { return false };
        let plain = stmt.from_clause.is_empty()
            && stmt.returning_clause.is_none()
            && stmt.with_clause.is_none();
        let known = |node: &pb::Node| {
            target(node)
                .is_some_and(|t| t.indirection.is_empty() && COLUMNS.contains(&t.name.as_str()))
        };
        plain
            && !self.checks
            && range.relname == "pg_class"
            && matches!(range.schemaname.as_str(), "" | "pg_catalog")
            && stmt.target_list.iter().all(known)
            && self.find_table(range).is_ok_and(|t| t.kind == catalog::TableKind::System)
    }

    /// The statement that sets them.
    ///
    /// # Errors
    /// Those of the query.
    pub(crate) fn relation_statistics(&mut self, stmt: &pb::UpdateStmt) -> Result<Utility> {
        let column = |name: &str| {
            let field =
                pb::Node { node: Some(NodeEnum::String(pb::String { sval: name.to_owned() })) };
            let column = pb::ColumnRef { fields: vec![field], location: -1 };
            Some(Box::new(pb::Node { node: Some(NodeEnum::ColumnRef(column)) }))
        };
        let mut targets = vec![output(column("oid"))];
        for name in COLUMNS {
            let set = stmt.target_list.iter().filter_map(target).find(|t| t.name == name);
            targets.push(output(match set {
                Some(set) => set.val.clone(),
                None => column(name),
            }));
        }
        let from = stmt
            .relation
            .iter()
            .map(|range| pb::Node { node: Some(NodeEnum::RangeVar(range.clone())) });
        let select = pb::SelectStmt {
            target_list: targets,
            from_clause: from.collect(),
            where_clause: stmt.where_clause.clone(),
            limit_option: pb::LimitOption::Default as i32,
            op: pb::SetOperation::SetopNone as i32,
            ..pb::SelectStmt::default()
        };
        let inner = crate::parse::deparse_statement(&NodeEnum::SelectStmt(Box::new(select)))?;
        Ok(Utility::RelationStatistics(format!(
            "SELECT oid, reltuples::float8, relpages::int4, relallvisible::int4 FROM ({inner}) AS s (oid, {})",
            COLUMNS.join(", ")
        )))
    }
}
