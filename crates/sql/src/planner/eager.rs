//! Groups made below joins where that leaves few rows to join (eager aggregation: Yan and Larson, VLDB 1995).
//!
//! ```text
//!   sum(s.x) by d.name                     sum(p.sum) by d.name
//!        │                                      │
//!   s ⋈ d  on s.d = d.id          ─▶       p ⋈ d  on p.d = d.id
//!                                               │
//!                                    p: sum(s.x) as sum, by s.d
//! ```
//!
//! Rows of a table that agree in all columns that are used elsewhere meet the same partners, so the aggregates of such rows
//! go through the joins as one row, once for each partner as each of the rows would. The table is on the left or right of
//! inner joins and on the left of others.
//!
//! Only aggregates whose partial values are of types of SQL: counts, sums but for floats (whose last digits the order of
//! rows decides), `min` and `max`; of arguments that can't fail, as rows without partners are looked at, too. The
//! cheaper plan is taken; where groups have fewer rows than `min_eager_agg_group_size` none is made. Columns count as
//! independent there: a group for each row would be made for nothing.

use base::Result;
use base::settings::setting;
use types::oids;

use crate::expr::{AggCall, Expr};
use crate::logical::{Col, Rel, Var};
use crate::plan::JoinKind;
use crate::walk;

use super::Planner;
use super::cols::Cols;

/// Smaller tables are not worth a second plan.
const LEAST_ROWS: f64 = 5000.0;

/// The rows that are joined when groups are made below, and the aggregates above.
pub(super) struct Eager {
    pub input: Rel,
    pub aggs: Vec<(Col, AggCall)>,
}

/// A table among joins: the conditions that are about it alone, and the columns of it that are used elsewhere.
struct Found {
    own: Vec<Expr>,
    used: Cols,
}

impl Planner<'_> {
    /// The same groups by way of groups below a join; None where that can't be or isn't worth a thought.
    pub(super) fn eager(
        &mut self,
        input: &Rel,
        groups: &[(Col, Expr)],
        aggs: &[(Col, AggCall)],
    ) -> Result<Option<Eager>> {
        let least = self.cx.settings.real(setting::MIN_EAGER_AGG_GROUP_SIZE);
        if least <= 0.0 || groups.is_empty() || !has_join(input) || !aggs.iter().all(is_partial) {
            return Ok(None);
        }
        let mut args = Cols::default();
        aggs.iter().flat_map(|(_, agg)| &agg.args).for_each(|e| args.add(&Cols::of(e)));
        let Some(table) = table_of(input, &args) else { return Ok(None) };
        let output = Cols::output(&Rel::Table(table.clone()));
        let (_, rows) = (self.cx.table_size)(&table.table);
        if rows < LEAST_ROWS || table.children.is_some() || table.table.is_partitioned() {
            return Ok(None);
        }
        let mut found = Found { own: Vec::new(), used: Cols::default() };
        groups.iter().for_each(|(_, e)| found.used.add(&Cols::of(e)));
        if !look_for(input, &output, &mut found) {
            return Ok(None);
        }
        let keys: Vec<Col> = found.used.iter().filter(|col| output.contains(*col)).collect();
        let exprs: Vec<Expr> = keys.iter().map(|col| self.column(*col)).collect();
        let kept = rows * self.selectivity(None, &found.own);
        if exprs.is_empty() || self.most_distinct_rows(&exprs, kept) * least > kept {
            return Ok(None);
        }
        let (mut partial, mut above) = (Vec::new(), Vec::new());
        for (col, agg) in aggs {
            let Ok(own) = Col::try_from(self.vars.len()) else { return Ok(None) };
            self.vars.push(Var {
                name: agg.name().to_owned(),
                ty: agg.ty,
                typmod: -1,
                origin: None,
                position: 0,
                read: false,
                row: Vec::new(),
                collation: 0,
            });
            let Some(combined) = combining(agg, own) else { return Ok(None) };
            partial.push((own, agg.clone()));
            above.push((*col, combined));
        }
        let own = match found.own.is_empty() {
            true => Rel::Table(table),
            false => Rel::Filter { input: Box::new(Rel::Table(table)), conditions: found.own },
        };
        let below = Rel::Aggregate {
            input: Box::new(own),
            groups: keys.into_iter().zip(exprs).collect(),
            aggs: partial,
            plain: false,
            sets: None,
        };
        let mut below = Some(below);
        let input = replaced(input.clone(), &output, &mut below);
        Ok(below.is_none().then_some(Eager { input, aggs: above }))
    }
}

/// Whether there is a join to make groups below of.
fn has_join(rel: &Rel) -> bool {
    match rel {
        Rel::Join { .. } => true,
        Rel::Filter { input, .. } => has_join(input),
        _ => false,
    }
}

/// Whether an aggregate's values of parts of the rows are enough for its value of all.
fn is_partial((_, agg): &(Col, AggCall)) -> bool {
    let plain = agg.own.is_none()
        && !agg.distinct
        && agg.order.is_empty()
        && agg.direct.is_none()
        && agg.filter.is_none();
    let known = match agg.aggregate.name {
        "count" => true,
        // Texts are compared by collations.
        "min" | "max" => matches!(
            agg.aggregate.args,
            [oids::INT2
                | oids::INT4
                | oids::INT8
                | oids::NUMERIC
                | oids::DATE
                | oids::TIMESTAMP
                | oids::TIMESTAMPTZ]
        ),
        "sum" => {
            matches!(agg.aggregate.args, [oids::INT2 | oids::INT4 | oids::INT8 | oids::NUMERIC])
        }
        _ => false,
    };
    plain && known && agg.args.iter().all(cannot_fail)
}

/// Whether it has a value for each row.
fn cannot_fail(e: &Expr) -> bool {
    match e {
        Expr::Column(..) | Expr::Const(..) => true,
        Expr::Call { function, args, .. } => {
            matches!(function.name, "numeric_add" | "numeric_sub" | "numeric_mul")
                && args.iter().all(cannot_fail)
        }
        _ => false,
    }
}

/// The aggregate of partial values that stand in this column.
fn combining(agg: &AggCall, partial: Col) -> Option<AggCall> {
    let sum_of = |arg| types::func::aggregates_named("sum").iter().find(|row| *row.args == [arg]);
    let aggregate = match (agg.aggregate.name, agg.aggregate.args) {
        // The sums of these are int8, and so is what they make together.
        ("count", _) | ("sum", [oids::INT2 | oids::INT4]) => sum_of(oids::INT4)?,
        ("sum", _) => sum_of(oids::NUMERIC)?,
        _ => agg.aggregate,
    };
    Some(AggCall { aggregate, args: vec![Expr::Column(partial, agg.ty)], ..agg.clone() })
}

/// The table that has all these columns; of none, no table.
fn table_of(rel: &Rel, args: &Cols) -> Option<crate::logical::TableRel> {
    match rel {
        Rel::Table(table) => {
            (!args.is_empty() && args.is_subset(&Cols::output(rel))).then(|| table.clone())
        }
        Rel::Filter { input, .. } => table_of(input, args),
        Rel::Join { left, right, .. } => table_of(left, args).or_else(|| table_of(right, args)),
        _ => None,
    }
}

/// Collects what is used of the table with these columns; false: it is where its rows can't be put together.
fn look_for(rel: &Rel, output: &Cols, found: &mut Found) -> bool {
    if sched::check_stack().is_err() {
        return false;
    }
    match rel {
        Rel::Table(_) => true,
        Rel::Filter { input, conditions } => {
            for e in conditions {
                let used = Cols::of(e);
                let own = used.is_subset(output) && !used.is_empty();
                if walk::is_volatile(e) || walk::has_subquery(e) && used.intersects(output) {
                    return false;
                }
                if own && !walk::has_subquery(e) {
                    found.own.push(e.clone());
                } else {
                    found.used.add(&used);
                }
            }
            look_for(input, output, found)
        }
        Rel::Join { kind, left, right, on } => {
            let of_left = Cols::output(left).intersects(output);
            let kept = match kind {
                JoinKind::Inner => true,
                JoinKind::Left | JoinKind::Semi | JoinKind::Anti => of_left,
                _ => false,
            };
            if !kept || on.iter().any(|e| walk::is_volatile(e) || walk::has_subquery(e)) {
                return false;
            }
            on.iter().for_each(|e| found.used.add(&Cols::of(e)));
            let (side, other) = if of_left { (left, right) } else { (right, left) };
            // The other side may look at the table's rows one by one (LATERAL).
            let outer: Cols = other.outer_columns().into_iter().collect();
            !outer.intersects(output) && look_for(side, output, found)
        }
        _ => false,
    }
}

/// The relation with the groups in the table's place.
fn replaced(rel: Rel, output: &Cols, groups: &mut Option<Rel>) -> Rel {
    match rel {
        Rel::Table(_) if Cols::output(&rel) == *output => groups.take().unwrap_or(rel),
        Rel::Filter { input, conditions } => {
            // Those of the table alone are below.
            let above = conditions.into_iter().filter(|e| {
                let used = Cols::of(e);
                !used.is_subset(output) || used.is_empty() || walk::has_subquery(e)
            });
            let conditions: Vec<Expr> = above.collect();
            let input = Box::new(replaced(*input, output, groups));
            if conditions.is_empty() { *input } else { Rel::Filter { input, conditions } }
        }
        Rel::Join { kind, left, right, on } => {
            let of_left = Cols::output(&left).intersects(output);
            let (left, right) = match of_left {
                true => (Box::new(replaced(*left, output, groups)), right),
                false => (left, Box::new(replaced(*right, output, groups))),
            };
            Rel::Join { kind, left, right, on }
        }
        other => other,
    }
}
