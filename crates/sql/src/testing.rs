//! Shared parts of the unit tests: a small catalog, and plans as text.

use std::sync::Arc;

use base::settings::Settings;
use base::{Oid, Result};
use catalog::object::{Object, Schema, ids};
use catalog::{Column, Constraint, ConstraintKind, Index, IndexColumn, Snapshot, Table, TableKind};
use types::oids::*;
use types::{Datum, FormatContext};

use crate::expr::{Expr, SubqueryKind};
use crate::plan::{
    IndexBounds, KeyStep, ModifyAction, Node, Plan, Prepared, ScanColumn, Statement,
};
use crate::prepare::{Lifted, Literal, PrepareContext, normalize, prepare};

fn column(name: &str, ty: Oid, typmod: i32) -> Column {
    Column::new(name, ty.0, typmod)
}

fn table(oid: u32, name: &str, columns: Vec<Column>) -> Table {
    Table {
        oid,
        name: name.into(),
        schema: ids::PUBLIC,
        owner: ids::SUPERUSER,
        kind: TableKind::Table,
        rel: oid,
        columns,
        ..Table::default()
    }
}

/// Adds a unique index over columns (from 1) that backs the primary key.
fn primary_key(snapshot: &mut Snapshot, mut table: Table, columns: &[u16]) {
    let oid = table.oid + 1000;
    for column in columns {
        table.columns[usize::from(*column) - 1].not_null = true;
    }
    table.indexes.push(oid);
    let kind = ConstraintKind::PrimaryKey { index: oid };
    table.constraints.push(Constraint::new(oid + 1000, format!("{}_pkey", table.name), kind));
    snapshot.put(Object::Index(Index {
        oid,
        name: format!("{}_pkey", table.name),
        schema: table.schema,
        table: table.oid,
        rel: oid,
        columns: columns
            .iter()
            .map(|c| IndexColumn { column: *c, ..IndexColumn::default() })
            .collect(),
        unique: true,
        primary: true,
        ..Index::default()
    }));
    snapshot.put(Object::Table(Box::new(table)));
}

/// pgbench's tables, and `t(a int4 key, b text, c int8, d numeric, e timestamptz)`,
/// `u(x int4, y int4, z varchar(10))` with the key (x, y), `w(id int4 key, state text, n int8)` with an
/// index on n where the state is open.
pub(crate) fn snapshot() -> Arc<Snapshot> {
    let mut s = Snapshot::default();
    s.version = 1;
    for (oid, name) in [(ids::PUBLIC, "public"), (ids::PG_CATALOG, "pg_catalog")] {
        s.put(Object::Schema(Schema { oid, name: name.into(), owner: ids::SUPERUSER }));
    }
    let int = |name| column(name, INT4, -1);
    let accounts = vec![int("aid"), int("bid"), int("abalance"), column("filler", BPCHAR, 88)];
    primary_key(&mut s, table(20001, "pgbench_accounts", accounts), &[1]);
    let tellers = vec![int("tid"), int("bid"), int("tbalance"), column("filler", BPCHAR, 88)];
    primary_key(&mut s, table(20002, "pgbench_tellers", tellers), &[1]);
    let branches = vec![int("bid"), int("bbalance"), column("filler", BPCHAR, 92)];
    primary_key(&mut s, table(20003, "pgbench_branches", branches), &[1]);
    let history = vec![
        int("tid"),
        int("bid"),
        int("aid"),
        int("delta"),
        column("mtime", TIMESTAMP, -1),
        column("filler", BPCHAR, 26),
    ];
    s.put(Object::Table(Box::new(table(20004, "pgbench_history", history))));
    let mut t = vec![
        int("a"),
        column("b", TEXT, -1),
        column("c", INT8, -1),
        column("d", NUMERIC, -1),
        column("e", TIMESTAMPTZ, -1),
    ];
    t[2].default = Some("1 + 41".into());
    primary_key(&mut s, table(20005, "t", t), &[1]);
    let u = vec![int("x"), int("y"), column("z", VARCHAR, 14)];
    primary_key(&mut s, table(20006, "u", u), &[1, 2]);
    let w = vec![int("id"), column("state", TEXT, -1), column("n", INT8, -1)];
    let mut w = table(20007, "w", w);
    w.indexes.push(30007);
    primary_key(&mut s, w, &[1]);
    s.put(Object::Index(Index {
        oid: 30007,
        name: "w_open".into(),
        schema: ids::PUBLIC,
        table: 20007,
        rel: 30007,
        columns: vec![IndexColumn { column: 3, ..IndexColumn::default() }],
        predicate: Some("(state = 'open'::text)".into()),
        ..Index::default()
    }));
    Arc::new(s)
}

/// Calls `f` with a context over [`snapshot`].
pub(crate) fn with_context<R>(f: impl FnOnce(&PrepareContext<'_>) -> R) -> R {
    let snapshot = snapshot();
    let settings = Settings::default();
    let format = FormatContext::default();
    let size = |t: &Table| match t.name.as_str() {
        "pgbench_accounts" => (1640, 100_000.0),
        "pgbench_branches" => (1, 1.0),
        "pgbench_tellers" => (1, 10.0),
        _ => (100, 10_000.0),
    };
    f(&PrepareContext {
        catalog: &snapshot,
        settings: &settings,
        search_path: &[ids::PG_CATALOG, ids::PUBLIC],
        format: &format,
        user: "postgres",
        role: ids::SUPERUSER,
        trusted: false,
        database: "postgres",
        environment: 0,
        arguments: None,
        variables: None,
        values: &[],
        table_size: &size,
    })
}

/// Prepares a text.
pub(crate) fn prepared(text: &str) -> Result<Prepared> {
    with_context(|cx| prepare(text, &[], cx, None).map(|p| p.0))
}

/// Prepares a text with its literals lifted.
pub(crate) fn lifted(text: &str) -> (Prepared, Vec<Lifted>, Vec<Literal>) {
    let mut literals = Vec::new();
    normalize(text, &mut literals).expect("a candidate");
    let (p, l) = with_context(|cx| prepare(text, &[], cx, Some(&literals))).expect("it plans");
    (p, l, literals)
}

/// The plan of a text, one operator a line.
pub(crate) fn plan(text: &str) -> String {
    match prepared(text) {
        Ok(p) => show(&p),
        Err(e) => panic!("{text}: {} {}", e.code().as_str(), e.message()),
    }
}

/// SQLSTATE, message, position of a text's error.
pub(crate) fn error(text: &str) -> (String, String, u32) {
    match prepared(text) {
        Ok(p) => panic!("{text}: no error\n{}", show(&p)),
        Err(e) => (e.code().as_str().to_owned(), e.message().to_owned(), e.fields().position),
    }
}

/// A prepared statement as text.
pub(crate) fn show(p: &Prepared) -> String {
    let mut out = String::new();
    match &p.statement {
        Statement::Query(plan) => show_plan(plan, 0, &mut out),
        Statement::Utility(_) => out.push_str(p.tag),
        Statement::Empty => out.push_str("empty"),
    }
    for (i, plan) in p.subplans.iter().enumerate() {
        out.push_str(&format!("subplan {i}\n"));
        show_plan(plan, 1, &mut out);
    }
    out.trim_end().to_owned()
}

fn list(items: &[Expr]) -> String {
    items.iter().map(expr).collect::<Vec<_>>().join(", ")
}

fn filter(e: &Option<Expr>) -> String {
    e.as_ref().map(|e| format!(" filter {}", expr(e))).unwrap_or_default()
}

fn columns(table: &Table, list: &[ScanColumn]) -> String {
    let names = list.iter().map(|c| match c {
        ScanColumn::Attr(n) => table.columns[usize::from(*n) - 1].name.clone(),
        other => format!("{other:?}").to_lowercase(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn bounds_text(bounds: &IndexBounds) -> String {
    if !bounds.either.is_empty() {
        let arms: Vec<String> = bounds.either.iter().map(bounds_text).collect();
        return format!(" either{}", arms.join(" or"));
    }
    let mut out = String::new();
    if !bounds.equal.is_empty() {
        out.push_str(&format!(" = {}", list(&bounds.equal)));
    }
    for step in &bounds.steps {
        out.push_str(&match step {
            KeyStep::Equal(e) => format!(" = {}", expr(e)),
            KeyStep::Any(e) => format!(" any {}", expr(e)),
            KeyStep::Null => " null".to_owned(),
            KeyStep::Each(_) => " each".to_owned(),
        });
    }
    if let Some((row, included)) = &bounds.lower {
        out.push_str(&format!(" {} {}", if *included { ">=" } else { ">" }, list(row)));
    }
    if let Some((row, included)) = &bounds.upper {
        out.push_str(&format!(" {} {}", if *included { "<=" } else { "<" }, list(row)));
    }
    if let Some((e, _)) = &bounds.begins {
        out.push_str(&format!(" begins {}", expr(e)));
    }
    if bounds.not_null {
        out.push_str(" not null");
    }
    out
}

fn show_plan(plan: &Plan, depth: usize, out: &mut String) {
    let line = match &plan.node {
        Node::OneRow => "one row".to_owned(),
        Node::Nothing => "nothing".to_owned(),
        Node::Values(rows) => format!("values {} rows", rows.len()),
        Node::SeqScan(s) => {
            format!("seq {} ({}){}", s.table.name, columns(&s.table, &s.columns), filter(&s.filter))
        }
        Node::IndexScan { scan, index, bounds, backward }
        | Node::IndexOnlyScan { scan, index, bounds, backward } => {
            let only = matches!(plan.node, Node::IndexOnlyScan { .. });
            let mut line = format!(
                "index {}{} ({})",
                if only { "only " } else { "" },
                index.name,
                columns(&scan.table, &scan.columns)
            );
            if *backward {
                line.push_str(" backward");
            }
            line + &bounds_text(bounds) + &filter(&scan.filter)
        }
        Node::BitmapHeapScan { scan, recheck, .. } => {
            let recheck = recheck.as_ref().map(expr).unwrap_or_default();
            let columns = columns(&scan.table, &scan.columns);
            format!("bitmap {} ({columns}) [{recheck}]{}", scan.table.name, filter(&scan.filter))
        }
        Node::BitmapIndexScan { index, bounds, .. } => {
            format!("bits {}{}", index.name, bounds_text(bounds))
        }
        Node::BitmapAnd(_) => "bits and".to_owned(),
        Node::BitmapOr(_) => "bits or".to_owned(),
        Node::MergeJoin { kind, keys, condition, .. } => {
            let keys: Vec<String> =
                keys.iter().map(|k| format!("{}={}", expr(&k.left), expr(&k.right))).collect();
            format!("merge {kind:?} [{}]{}", keys.join(", "), filter(condition))
        }
        Node::IncrementalSort { keys, presorted, .. } => {
            let keys: Vec<String> = keys.iter().map(|k| expr(&k.expr)).collect();
            format!("incremental sort {} after {presorted}", keys.join(", "))
        }
        Node::SystemScan { table, columns, equal, filter: f } => {
            let equal: Vec<String> =
                equal.iter().map(|(c, e)| format!("{c}={}", expr(e))).collect();
            format!("system {} {columns:?} [{}]{}", table.name, equal.join(", "), filter(f))
        }
        Node::ForeignQuery(_) => "foreign query".to_owned(),
        Node::ForeignScan(foreign) => {
            format!("foreign {}{}", foreign.scan.table.name, filter(&foreign.scan.filter))
        }
        Node::FunctionScan { calls, ordinality, filter: f } => {
            let ordinality = if *ordinality { " ord" } else { "" };
            format!("function {}{ordinality}{}", list(calls), filter(f))
        }
        Node::SampleScan { scan, method, percent, .. } => {
            format!("sample {} {method:?} {}", scan.table.name, expr(percent))
        }
        Node::Window { partition, order, calls, .. } => {
            let names: Vec<&str> = calls.iter().map(|c| c.name()).collect();
            let order: Vec<String> = order.iter().map(|k| expr(&k.expr)).collect();
            format!("window [{}] [{}] {}", list(partition), order.join(", "), names.join(", "))
        }
        Node::Memoize { keys, .. } => {
            let keys: Vec<String> = keys.iter().map(|(slot, _)| format!("s{slot}")).collect();
            format!("memoize {}", keys.join(", "))
        }
        Node::RecursiveUnion { all, .. } => {
            format!("recursive union{}", if *all { " all" } else { "" })
        }
        Node::WorkTable { name, .. } => format!("work table {name}"),
        Node::Filter { condition, .. } => {
            format!("filter {}", expr(condition))
        }
        Node::Project { exprs, .. } => {
            format!("project {}", list(exprs))
        }
        Node::ProjectSet { exprs, .. } => {
            format!("project set {}", list(exprs))
        }
        Node::NestedLoop { kind, slots, condition, .. } => {
            let slots: Vec<String> =
                slots.iter().map(|(s, e)| format!("@{s}={}", expr(e))).collect();
            format!("loop {kind:?} [{}]{}", slots.join(", "), filter(condition))
        }
        Node::HashJoin { kind, keys, condition, .. } => {
            let keys: Vec<String> =
                keys.iter().map(|(l, r)| format!("{}={}", expr(l), expr(r))).collect();
            format!("hash {kind:?} [{}]{}", keys.join(", "), filter(condition))
        }
        Node::Aggregate { groups, aggs, plain, sorted, .. } => {
            let aggs: Vec<String> = aggs
                .iter()
                .map(|a| {
                    let distinct = if a.distinct { "distinct " } else { "" };
                    format!("{}({distinct}{})", a.name(), list(&a.args))
                })
                .collect();
            let plain = match (plain, sorted) {
                (true, _) => " plain",
                (_, true) => " sorted",
                _ => "",
            };
            format!("aggregate{plain} [{}] {}", list(groups), aggs.join(", "))
        }
        Node::Sort { keys, top, .. } => {
            let keys: Vec<String> = keys
                .iter()
                .map(|k| format!("{}{}", expr(&k.expr), if k.descending { " desc" } else { "" }))
                .collect();
            format!("sort {}{}", keys.join(", "), if *top { " top" } else { "" })
        }
        Node::PartitionScan(scan) => format!("partitions of {}", scan.table.name),
        Node::PartitionWise { .. } => "partition by partition".to_owned(),
        Node::Gather { workers, .. } => format!("gather {workers}"),
        Node::Limit { count, offset, ties, .. } => {
            let text = |e: &Option<Expr>| e.as_ref().map_or("all".to_owned(), expr);
            let ties = if ties.is_empty() { "" } else { " ties" };
            format!("limit {} offset {}{ties}", text(count), text(offset))
        }
        Node::Distinct { keys, sorted, .. } => {
            format!("distinct {}{}", list(keys), if *sorted { " sorted" } else { "" })
        }
        Node::Append(_) => "append".to_owned(),
        Node::SetOp { except, all, .. } => {
            let name = if *except { "except" } else { "intersect" };
            format!("{name}{}", if *all { " all" } else { "" })
        }
        Node::LockRows { targets, .. } => {
            let names: Vec<String> = targets
                .iter()
                .map(|t| format!("{} {:?}@{}{}", t.table.name, t.mode, t.tid, filter(&t.recheck)))
                .collect();
            format!("lock {}", names.join(", "))
        }
        Node::Rewritten(all) => format!("{} rewritten statements", all.steps.len()),
        Node::Modify(m) => {
            let returning =
                m.returning.as_ref().map(|r| format!(" returning {}", list(r))).unwrap_or_default();
            let line = match &m.action {
                ModifyAction::Insert { .. } => {
                    format!("insert {}", m.table.name)
                }
                ModifyAction::Update { set, recheck, .. } => {
                    let set: Vec<String> =
                        set.iter().map(|(n, e)| format!("{n}={}", expr(e))).collect();
                    format!("update {} set {}{}", m.table.name, set.join(", "), filter(recheck))
                }
                ModifyAction::Merge { .. } => {
                    format!("merge {}", m.table.name)
                }
                ModifyAction::Delete { recheck, .. } => {
                    format!("delete {}{}", m.table.name, filter(recheck))
                }
            };
            line + &returning
        }
        Node::Cte { plan, .. } => format!("cte {plan}"),
    };
    out.push_str(&"  ".repeat(depth));
    out.push_str(&line);
    out.push('\n');
    for child in plan.children() {
        show_plan(child, depth + 1, out);
    }
}

/// An expression as text: `#n` columns, `$n` parameters, `@n` slots.
pub(crate) fn expr(e: &Expr) -> String {
    match e {
        Expr::Const(Datum::Null, _) => "NULL".to_owned(),
        Expr::Const(value, ty) => {
            let mut text = Vec::new();
            let format = FormatContext::default();
            match types::io::output(*ty, value, &format, &mut text) {
                Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                Err(_) => format!("{value:?}"),
            }
        }
        Expr::Param(n, _) => format!("${}", n + 1),
        Expr::Column(n, _) => format!("#{n}"),
        Expr::Slot(n, _) => format!("@{n}"),
        Expr::Held(_) => "held".to_owned(),
        Expr::Call { function, args, .. } => format!("{}({})", function.name, list(args)),
        Expr::InOutCast { arg, ty, .. } => format!("{}::{}", expr(arg), name(*ty)),
        Expr::Typmod { arg, ty, typmod, .. } => {
            format!("{}::{}", expr(arg), types::io::format_type(*ty, *typmod))
        }
        Expr::Relabel(arg, _) | Expr::Collate(arg, ..) => expr(arg),
        Expr::And(items) => {
            format!("({})", items.iter().map(expr).collect::<Vec<_>>().join(" and "))
        }
        Expr::Or(items) => {
            format!("({})", items.iter().map(expr).collect::<Vec<_>>().join(" or "))
        }
        Expr::Not(arg) => format!("not {}", expr(arg)),
        Expr::IsNull { arg, negated } => {
            format!("{} is {}null", expr(arg), if *negated { "not " } else { "" })
        }
        Expr::BooleanTest { arg, is, negated } => format!("{} is {negated} {is:?}", expr(arg)),
        Expr::Distinct { args, .. } => format!("distinct({})", list(&args[..])),
        Expr::Case { operand, arms, default, .. } => {
            let arms: Vec<String> =
                arms.iter().map(|(t, r)| format!("{}: {}", expr(t), expr(r))).collect();
            let of = operand.as_ref().map_or_else(String::new, |e| format!("{} of ", expr(e)));
            format!("case({of}{}, {})", arms.join(", "), expr(default))
        }
        Expr::Coalesce(items, _) => format!("coalesce({})", list(items)),
        Expr::NullIf { args, .. } => format!("nullif({})", list(&args[..])),
        Expr::MinMax { greatest, args, .. } => {
            format!("{}({})", if *greatest { "greatest" } else { "least" }, list(args))
        }
        Expr::ArrayOp { function, left, array, all } => {
            let what = if *all { "all" } else { "any" };
            format!("{} {} {what} {}", expr(left), function.name, expr(array))
        }
        Expr::Array { items, .. } => format!("array[{}]", list(items)),
        Expr::Subscript { array, indexes, .. } => format!("{}[{}]", expr(array), list(indexes)),
        Expr::Row(items) => format!("row({})", list(items)),
        Expr::RowCompare { op, fields } => format!("rows {op:?} {}", fields.len()),
        Expr::Subquery(s) => {
            let slots: Vec<String> =
                s.slots.iter().map(|(n, e)| format!("@{n}={}", expr(e))).collect();
            let kind = match &s.kind {
                SubqueryKind::Scalar => "scalar".to_owned(),
                SubqueryKind::Exists => "exists".to_owned(),
                SubqueryKind::Array => "array".to_owned(),
                SubqueryKind::Compare { test, all, hash_left, .. } => format!(
                    "{} {}{}",
                    if *all { "all" } else { "any" },
                    expr(test),
                    if hash_left.is_some() { " hashed" } else { "" }
                ),
            };
            format!(
                "sub{}[{kind}; {}]{}",
                s.plan,
                slots.join(", "),
                if s.once { "once" } else { "" }
            )
        }
        Expr::SessionValue(name, _) => name.to_string(),
    }
}

fn name(ty: Oid) -> String {
    types::io::format_type(ty, -1)
}
