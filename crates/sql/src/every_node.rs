//! All nodes of a statement's tree. The library's own walk leaves out places where expressions can stand (FILTER, LIMIT,
//! ARRAY, the operand of CASE, RETURNING …), which are added here.

use pg_query::{NodeEnum, NodeRef, protobuf as pb};

/// A node and all below it, in no order.
pub(crate) fn every_node(root: &NodeEnum) -> Vec<NodeRef<'_>> {
    let mut rest = vec![root];
    let mut out = Vec::new();
    while let Some(node) = rest.pop() {
        for (found, ..) in node.nodes() {
            left_out(found, &mut |child| rest.extend(&child.node));
            out.push(found);
        }
    }
    out
}

/// Calls `f` with the children of a node that the library's walk doesn't go to.
fn left_out<'a>(node: NodeRef<'a>, f: &mut dyn FnMut(&'a pb::Node)) {
    match node {
        NodeRef::SelectStmt(s) => {
            let lists = [&s.distinct_clause, &s.window_clause, &s.values_lists];
            lists.into_iter().flatten().for_each(&mut *f);
            s.limit_count.iter().chain(&s.limit_offset).for_each(|n| f(n));
        }
        NodeRef::InsertStmt(s) => returned(&s.returning_clause, f),
        NodeRef::UpdateStmt(s) => returned(&s.returning_clause, f),
        NodeRef::DeleteStmt(s) => returned(&s.returning_clause, f),
        NodeRef::OnConflictClause(c) => {
            c.target_list.iter().for_each(&mut *f);
            c.where_clause.iter().for_each(|n| f(n));
        }
        NodeRef::MergeWhenClause(w) => {
            w.condition.iter().for_each(|n| f(n));
            w.target_list.iter().chain(&w.values).for_each(f);
        }
        NodeRef::SubLink(l) => l.testexpr.iter().for_each(|n| f(n)),
        NodeRef::FuncCall(c) => {
            c.agg_order.iter().for_each(&mut *f);
            c.agg_filter.iter().for_each(|n| f(n));
            c.over.iter().for_each(|window| of_window(window, f));
        }
        NodeRef::WindowDef(window) => of_window(window, f),
        NodeRef::CaseExpr(c) => c.arg.iter().for_each(|n| f(n)),
        NodeRef::AArrayExpr(a) => a.elements.iter().for_each(f),
        NodeRef::AIndirection(i) => {
            i.arg.iter().for_each(|n| f(n));
            i.indirection.iter().for_each(f);
        }
        NodeRef::AIndices(i) => i.lidx.iter().chain(&i.uidx).for_each(|n| f(n)),
        NodeRef::CollateClause(c) => c.arg.iter().for_each(|n| f(n)),
        NodeRef::NamedArgExpr(a) => a.arg.iter().for_each(|n| f(n)),
        NodeRef::GroupingSet(g) => g.content.iter().for_each(f),
        NodeRef::GroupingFunc(g) => g.args.iter().for_each(f),
        NodeRef::MultiAssignRef(m) => m.source.iter().for_each(|n| f(n)),
        NodeRef::RangeTableSample(s) => {
            s.relation.iter().for_each(|n| f(n));
            s.args.iter().for_each(&mut *f);
            s.repeatable.iter().for_each(|n| f(n));
        }
        NodeRef::XmlExpr(x) => x.named_args.iter().chain(&x.args).for_each(f),
        NodeRef::XmlSerialize(x) => x.expr.iter().for_each(|n| f(n)),
        _ => {}
    }
}

fn returned<'a>(clause: &'a Option<pb::ReturningClause>, f: &mut dyn FnMut(&'a pb::Node)) {
    clause.iter().flat_map(|clause| &clause.exprs).for_each(f);
}

fn of_window<'a>(window: &'a pb::WindowDef, f: &mut dyn FnMut(&'a pb::Node)) {
    window.partition_clause.iter().chain(&window.order_clause).for_each(&mut *f);
    window.start_offset.iter().chain(&window.end_offset).for_each(|n| f(n));
}
