//! WHERE CURRENT OF: a cursor's rows carry their places, and a change of "the cursor's row" is one of the row
//! with that place.
//!
//! The places are columns that DECLARE adds to a simple query, behind its own: `ctid` and `tableoid` of each
//! table in FROM. A query that does not take them (it groups, for one) has no current row.

use base::Result;
use catalog::TableKind;
use catalog::snapshot::Relation;
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::func::{Body, FunctionRow, SessionFunction, Volatility};
use types::oids::{OID, REFCURSOR, TEXT, TID};

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::plan::ScanColumn;
use crate::prepare::PrepareContext;

use super::Binder;

/// `(cursor, table, name of the table)`: where a cursor's row is in the table; NULL when it is in another.
pub static CURRENT_OF: FunctionRow = FunctionRow {
    oid: base::Oid(9916),
    name: "current_of",
    args: &[],
    defaults: &[],
    variadic: false,
    result: TID,
    columns: &[],
    returns_set: false,
    strict: true,
    volatility: Volatility::Stable,
    body: Body::Session(SessionFunction::CurrentOf),
    operator: base::Oid::INVALID,
    helpers: types::func::InHelpers::Never,
};

/// A cursor's query with the columns that say where its rows are, and the tables that these are in, each
/// with its children; None: there are none.
pub(crate) fn with_places(
    select: &pb::SelectStmt,
    cx: &PrepareContext<'_>,
) -> Option<(pb::SelectStmt, Vec<Vec<u32>>)> {
    let simple = select.op <= pb::SetOperation::SetopNone as i32
        && select.values_lists.is_empty()
        && select.distinct_clause.is_empty()
        && select.group_clause.is_empty()
        && select.having_clause.is_none();
    if !simple {
        return None;
    }
    let mut named: Vec<(&str, Vec<u32>)> = Vec::new();
    select.from_clause.iter().for_each(|node| tables(node, select, cx, &mut named));
    let locked = locked(select);
    if !locked.is_empty() {
        named.retain(|(name, _)| locked.contains(name));
    }
    if named.is_empty() {
        return None;
    }
    let mut extended = select.clone();
    for (name, _) in &named {
        extended.target_list.extend(["ctid", "tableoid"].map(|column| target(name, column)));
    }
    Some((extended, named.into_iter().map(|(_, family)| family).collect()))
}

/// What FOR UPDATE OF names.
fn locked(select: &pb::SelectStmt) -> Vec<&str> {
    let mut out = Vec::new();
    for node in &select.locking_clause {
        let Some(NodeEnum::LockingClause(clause)) = &node.node else { continue };
        for node in &clause.locked_rels {
            if let Some(NodeEnum::RangeVar(range)) = &node.node {
                out.push(range.relname.as_str());
            }
        }
    }
    out
}

fn tables<'n>(
    node: &'n pb::Node,
    select: &pb::SelectStmt,
    cx: &PrepareContext<'_>,
    out: &mut Vec<(&'n str, Vec<u32>)>,
) {
    match &node.node {
        Some(NodeEnum::RangeVar(range)) => {
            let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
            let ctes = select.with_clause.iter().flat_map(|w| &w.ctes);
            let is_cte = schema.is_none()
                && ctes.into_iter().any(|n| {
                    matches!(&n.node, Some(NodeEnum::CommonTableExpr(c)) if c.ctename == range.relname)
                });
            if is_cte {
                return;
            }
            let found = cx.catalog.relation(cx.search_path, schema, &range.relname);
            let Some(Relation::Table(table)) = found else { return };
            if matches!(table.kind, TableKind::Table | TableKind::Materialized) {
                let name = range.alias.as_ref().map_or(&range.relname, |a| &a.aliasname);
                out.push((name, family(table.oid, cx)));
            }
        }
        Some(NodeEnum::JoinExpr(join)) if join.alias.is_none() => {
            for side in [&join.larg, &join.rarg].into_iter().flatten() {
                tables(side, select, cx, out);
            }
        }
        _ => {}
    }
}

/// A table and all that inherit from it.
fn family(table: u32, cx: &PrepareContext<'_>) -> Vec<u32> {
    let (mut found, mut next) = (vec![table], 0);
    while next < found.len() {
        let children = cx.catalog.table(found[next]).map_or(&[][..], |t| &t.children);
        for child in children {
            if !found.contains(child) {
                found.push(*child);
            }
        }
        next += 1;
    }
    found
}

fn target(table: &str, column: &str) -> pb::Node {
    let word = |text: &str| pb::Node {
        node: Some(NodeEnum::String(pb::String { sval: text.to_owned() })),
    };
    let reference = pb::ColumnRef { fields: vec![word(table), word(column)], location: -1 };
    let target = pb::ResTarget {
        val: Some(Box::new(pb::Node { node: Some(NodeEnum::ColumnRef(reference)) })),
        location: -1,
        ..Default::default()
    };
    pb::Node { node: Some(NodeEnum::ResTarget(Box::new(target))) }
}

impl Binder<'_> {
    /// The condition of WHERE CURRENT OF for a table.
    pub(crate) fn current_of(
        &mut self,
        cursor: &pb::CurrentOfExpr,
        target: &TableRel,
    ) -> Result<Expr> {
        if cursor.cursor_name.is_empty() {
            return Err(base::Error::unsupported("WHERE CURRENT OF a parameter"));
        }
        let constant = |text: &str| Expr::Const(Datum::Text(text.into()), TEXT);
        let table = match &target.children {
            None => Expr::Const(Datum::Oid(target.table.oid), OID),
            Some(_) => self.column(target.col(ScanColumn::TableOid)),
        };
        // The cursor may be the one whose name a variable of the program holds.
        let named = self.variables().and_then(|v| v.find(&[&cursor.cursor_name]).ok().flatten());
        let name = match named.filter(|v| v.ty == REFCURSOR && v.field.is_none()) {
            Some(variable) => Expr::Relabel(Box::new(self.variable(&variable)), TEXT),
            None => constant(&cursor.cursor_name),
        };
        let args = vec![name, table, constant(&target.table.name)];
        let place = self.call(&CURRENT_OF, args, TID, 0);
        let own = self.column(target.col(ScanColumn::Tid));
        self.equals(own, place, 0)
    }
}

/// The cursor that a condition is about, if it is CURRENT OF.
pub(crate) fn cursor_of(condition: &Option<Box<pb::Node>>) -> Option<&pb::CurrentOfExpr> {
    match super::inner(condition) {
        Some(NodeEnum::CurrentOfExpr(cursor)) => Some(cursor),
        _ => None,
    }
}
