//! Partitioned tables in plans: one scan of a partition as the template of all, and what conditions say about
//! which ones are read ([`crate::prune`]).

use std::collections::BTreeSet;

use base::Result;
use catalog::object::Strategy;
use catalog::{PartitionKey, Table};
use types::Datum;

use crate::expr::{Expr, RowOp, SortKey};
use crate::logical::TableRel;
use crate::plan::{Node, PartitionScan, Plan, ScanColumn};
use crate::prune::{Prune, PruneKey, Test, leaf_count};
use crate::walk;

use super::cols::Cols;
use super::index::{KeyPart, KeyValue};
use super::selectivity::plain_column;
use super::{OrderKey, PhysicalPlan, Planner};

/// Partitions whose sizes are looked at to estimate that of the whole.
const SAMPLED: usize = 16;

/// A partition key and how conditions name it.
struct Part<'e> {
    name: PruneKey,
    key: KeyPart<'e>,
}

impl Planner<'_> {
    /// Pages and rows of a table; of a partitioned one, those of its partitions.
    pub fn size_of(&self, table: &Table) -> (u32, f64) {
        if !table.is_partitioned() {
            return (self.cx.table_size)(table);
        }
        let (Some(by), Some(family)) = (&table.partitioning, self.cx.catalog.family(table.oid))
        else {
            return (0, 0.0);
        };
        let Ok(bounds) = family.bounds(by) else { return (0, 0.0) };
        let step = bounds.parts.len().div_ceil(SAMPLED).max(1);
        let (mut pages, mut rows, mut seen) = (0.0, 0.0, 0.0);
        for part in bounds.parts.iter().step_by(step) {
            let (p, r) = self.size_of(part);
            pages += f64::from(p);
            rows += r;
            seen += 1.0;
        }
        let scale = bounds.parts.len() as f64 / f64::max(seen, 1.0);
        ((pages * scale) as u32, rows * scale)
    }

    /// The share of a partitioned table's partitions that conditions leave over, as far as it can be known.
    pub fn share_of_parts(&self, table: &TableRel, conditions: &[Expr]) -> f64 {
        let Some(family) = self.cx.catalog.family(table.table.oid) else { return 1.0 };
        let prune = self.prune_of(table, conditions);
        if prune.is_all() {
            return 1.0;
        }
        let mut unknown = false;
        let found = leaf_count(self.cx.catalog, &table.table, &prune, self.cx.format, &mut |e| {
            let known = self.estimated(e);
            unknown |= known.is_none();
            Ok(known)
        });
        let found = found.unwrap_or(family.len());
        let share = found as f64 / family.len().max(1) as f64;
        match unknown {
            true => share.min(1.0 / (family.len().max(1) as f64).sqrt()).max(0.0),
            false => share.min(1.0),
        }
    }

    /// What conditions say about partition keys; values are not resolved yet.
    pub fn prune_of(&self, table: &TableRel, conditions: &[Expr]) -> Prune {
        let Some(by) = &table.table.partitioning else { return Prune::All };
        let texts: Vec<&str> = by.keys.iter().filter_map(|k| k.expression.as_deref()).collect();
        let computed: Vec<Expr> = match texts.is_empty() {
            true => Vec::new(),
            false => crate::stored::row_expressions(self.cx, &table.table, &texts)
                .map(|list| {
                    let place = |n: u16| {
                        let col = table.base + n;
                        Some(Expr::Column(col, self.vars[usize::from(col)].ty))
                    };
                    list.into_iter().map(|e| walk::substitute(e, &place)).collect()
                })
                .unwrap_or_default(),
        };
        let mut computed = computed.iter();
        let mut parts = Vec::new();
        for (at, key) in by.keys.iter().enumerate() {
            let slot = key.slot.as_ref().map_or(Ok(types::collation::Slot::BYTES), |s| s.slot());
            let Ok(slot) = slot else { continue };
            if key.column == 0 {
                let Some(e) = computed.next() else { continue };
                let name = PruneKey::Expression(at as u16);
                parts.push(Part { name, key: KeyPart::new(KeyValue::Computed(e), slot) });
            } else {
                parts.push(column_part(table, key.column, slot));
            }
        }
        let mut below = BTreeSet::new();
        self.keys_below(&table.table, &table.table, &mut below);
        for number in below {
            if !parts.iter().any(|p| p.name == PruneKey::Column(number)) {
                parts.push(column_part(table, number, types::collation::Slot::BYTES));
            }
        }
        let count = table.table.columns.len() + crate::logical::SYSTEM_COLUMNS.len();
        let own: Cols = (table.base..table.base + count as u16).collect();
        let list: Vec<Prune> =
            conditions.iter().map(|e| prune(&parts, &own, e)).filter(|p| !p.is_all()).collect();
        match list.is_empty() {
            true => Prune::All,
            false => Prune::And(list),
        }
    }

    /// Columns of the table at the top that are keys of partitions which are partitioned themselves.
    fn keys_below(&self, root: &Table, table: &Table, out: &mut BTreeSet<u16>) {
        let (Some(by), Some(family)) = (&table.partitioning, self.cx.catalog.family(table.oid))
        else {
            return;
        };
        let Ok(bounds) = family.bounds(by) else { return };
        for at in &bounds.nested {
            let part = &bounds.parts[*at];
            let Some(by) = &part.partitioning else { continue };
            for key in by.keys.iter().filter(|k| k.column > 0 && k.slot.is_none()) {
                let name = &part.columns[usize::from(key.column) - 1].name;
                out.extend(root.column(name).map(|(n, _)| n));
            }
            self.keys_below(root, part, out);
        }
    }

    /// A scan of a partitioned table over the scan of one partition.
    pub fn partition_scan(
        &mut self,
        table: &TableRel,
        prune: Prune,
        template: PhysicalPlan,
    ) -> Result<PhysicalPlan> {
        let prune = prune.map(&mut |e| self.resolve(e, &[]))?;
        let estimate = template.plan.estimate;
        let plain = |key: &&OrderKey| key.0.slot == types::collation::Slot::BYTES;
        let kept: Vec<OrderKey> = template.order.iter().take_while(plain).copied().collect();
        let mut order = Vec::with_capacity(kept.len());
        for (by, descending, nulls_first) in &kept {
            let expr = self.resolve(self.column(by.col), &template.cols)?;
            order.push(SortKey { expr, descending: *descending, nulls_first: *nulls_first });
        }
        let by_bounds = self.order_of_bounds(table, &kept);
        let (role, table) = (table.role, table.table.clone());
        let scan = PartitionScan { table, prune, scan: template.plan, order, by_bounds, role };
        let node = Node::PartitionScan(Box::new(scan));
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols: template.cols, order: kept })
    }

    /// Whether the partitions, one after the other, are in an order (true: from the last one on).
    fn order_of_bounds(&self, table: &TableRel, order: &[OrderKey]) -> Option<bool> {
        let by = table.table.partitioning.as_ref()?;
        let bounds = self.cx.catalog.family(table.table.oid)?.bounds(by).ok()?;
        if by.strategy != Strategy::Range || !bounds.nested.is_empty() || order.is_empty() {
            return None;
        }
        let descending = order[0].1;
        let fits = |(key, (of, down, _)): (&PartitionKey, &OrderKey)| {
            key.column > 0
                && key.slot.is_none()
                && *down == descending
                && of.col == table.col(ScanColumn::Attr(key.column))
        };
        let common = by.keys.iter().zip(order).take_while(|pair| fits(*pair)).count();
        (common == order.len() || common == by.keys.len()).then_some(descending)
    }
}

fn column_part(table: &TableRel, number: u16, slot: types::collation::Slot) -> Part<'static> {
    let declared = table.table.columns[usize::from(number) - 1].ty;
    let (ty, _) = types::user::base_type(base::Oid(declared), -1);
    let of = KeyValue::Column(table.col(ScanColumn::Attr(number)), ty);
    Part { name: PruneKey::Column(number), key: KeyPart::new(of, slot) }
}

fn prune(parts: &[Part<'_>], own: &Cols, e: &Expr) -> Prune {
    if sched::check_stack().is_err() || walk::has_subquery(e) {
        return Prune::All;
    }
    match e {
        Expr::And(list) => {
            let list: Vec<Prune> =
                list.iter().map(|e| prune(parts, own, e)).filter(|p| !p.is_all()).collect();
            if list.is_empty() { Prune::All } else { Prune::And(list) }
        }
        Expr::Or(list) => {
            let list: Vec<Prune> = list.iter().map(|e| prune(parts, own, e)).collect();
            if list.iter().any(Prune::is_all) { Prune::All } else { Prune::Or(list) }
        }
        Expr::Const(Datum::Bool(false) | Datum::Null, _) => Prune::Never,
        Expr::RowCompare { op, fields } => rows(parts, own, *op, fields),
        e => parts.iter().find_map(|part| test(part, own, e)).unwrap_or(Prune::All),
    }
}

fn test(part: &Part<'_>, own: &Cols, e: &Expr) -> Option<Prune> {
    if let Some(c) = part.key.comparison(e, own).filter(|c| has_place(part, c.value.ty())) {
        let exact = c.exact;
        return Some(Prune::Test(
            part.name,
            match c.op {
                "=" if exact => Test::Equal(c.value),
                "<" => Test::Upper(c.value, !exact),
                "<=" => Test::Upper(c.value, true),
                ">" => Test::Lower(c.value, !exact),
                ">=" => Test::Lower(c.value, true),
                _ => return None,
            },
        ));
    }
    if part.key.is_null(e, false) {
        return Some(Prune::Test(part.name, Test::Null));
    }
    if part.key.is_null(e, true) {
        return Some(Prune::Test(part.name, Test::NotNull));
    }
    match e {
        Expr::ArrayOp { function, left, array, all: false } if walk::is_equality(function) => {
            let array = part.key.any_of(left, array, own)?;
            let element = types::TypeIo::get(array.ty()).map(|t| t.element)?;
            if !is_of_kind(part, element) {
                return None;
            }
            Some(Prune::Test(part.name, Test::Any(array)))
        }
        Expr::Call { function, args, .. }
            if args.len() == 2 && walk::is_operator(function, "<>") =>
        {
            let (key, value) = if part.key.is(&args[0]) {
                (&args[0], &args[1])
            } else if part.key.is(&args[1]) {
                (&args[1], &args[0])
            } else {
                return None;
            };
            let known = key.ty() == value.ty() && !Cols::of(value).intersects(own);
            (known && !walk::is_volatile(value))
                .then(|| Prune::Test(part.name, Test::NotEqual(value.clone())))
        }
        _ => boolean(part, e),
    }
}

/// Whether values of a type are compared with bounds of the key as they are: those of other types have a place
/// among them only in the session's time zone, or by rounding.
fn is_of_kind(part: &Part<'_>, ty: base::Oid) -> bool {
    use types::oids::{BPCHAR, INT2, INT4, INT8, NAME, TEXT, VARCHAR};
    let (own, ty) = (part.key.ty(), types::user::base_type(ty, -1).0);
    let both = |kind: &[base::Oid]| kind.contains(&own) && kind.contains(&ty);
    own == ty || both(&[INT2, INT4, INT8]) || both(&[TEXT, VARCHAR, BPCHAR, NAME])
}

/// Whether a value of a type has a place among those of a column that is a key: of dates and times that is known
/// when the value is.
fn has_place(part: &Part<'_>, ty: base::Oid) -> bool {
    use types::oids::{DATE, TIMESTAMP, TIMESTAMPTZ};
    let of_time = |ty: base::Oid| [DATE, TIMESTAMP, TIMESTAMPTZ].contains(&ty);
    let times = of_time(part.key.ty()) && of_time(types::user::base_type(ty, -1).0);
    is_of_kind(part, ty) || times && matches!(part.name, PruneKey::Column(_))
}

/// A boolean key by itself.
fn boolean(part: &Part<'_>, e: &Expr) -> Option<Prune> {
    let truth = |value| {
        let value = Expr::Const(Datum::Bool(value), types::oids::BOOL);
        Some(Prune::Test(part.name, Test::Equal(value)))
    };
    match e {
        Expr::Not(inner) if is_boolean(inner) && part.key.is(inner) => truth(false),
        Expr::BooleanTest { arg, is: Some(value), negated: false } if part.key.is(arg) => {
            truth(*value)
        }
        Expr::BooleanTest { arg, is: None, negated } if part.key.is(arg) => {
            let test = if *negated { Test::NotNull } else { Test::Null };
            Some(Prune::Test(part.name, test))
        }
        e if is_boolean(e) && part.key.is(e) => truth(true),
        _ => None,
    }
}

fn is_boolean(e: &Expr) -> bool {
    e.ty() == types::oids::BOOL && plain_column(e).is_some()
}

/// Row comparisons: equality says something of each column, an order of the first one.
fn rows(
    parts: &[Part<'_>],
    own: &Cols,
    op: RowOp,
    fields: &[(Expr, Expr, &'static types::FunctionRow, &'static types::FunctionRow)],
) -> Prune {
    let compared = |name: &'static str, (a, b, ..): &(Expr, Expr, _, _)| {
        parts.iter().find_map(|part| {
            let c = part.key.compared(name, a, b, own)?;
            if !has_place(part, c.value.ty()) {
                return None;
            }
            let test = match c.op {
                "=" if c.exact => Test::Equal(c.value),
                "<" | "<=" => Test::Upper(c.value, true),
                ">" | ">=" => Test::Lower(c.value, true),
                _ => return None,
            };
            Some(Prune::Test(part.name, test))
        })
    };
    if op == RowOp::Eq {
        let list: Vec<Prune> = fields.iter().filter_map(|f| compared("=", f)).collect();
        return if list.is_empty() { Prune::All } else { Prune::And(list) };
    }
    let Some(name) = super::index::row_operator(op) else { return Prune::All };
    fields.first().and_then(|f| compared(name, f)).unwrap_or(Prune::All)
}
