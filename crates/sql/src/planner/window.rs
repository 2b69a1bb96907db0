//! Window functions: a sort by partition and order below them, unless the rows come so.

use base::Result;

use crate::expr::{Expr, SortKey};
use crate::logical::{Col, Rel};
use crate::plan::{Node, Plan};
use crate::walk;
use crate::window::WindowCall;

use super::cols::Cols;
use super::{PhysicalPlan, Planner, RequiredProperties, cost};

impl Planner<'_> {
    /// Plans the operator for calls that share PARTITION BY and ORDER BY.
    pub fn window(
        &mut self,
        input: Rel,
        partition: Vec<Expr>,
        order: Vec<SortKey>,
        calls: Vec<(Col, WindowCall)>,
        need: &Cols,
    ) -> Result<PhysicalPlan> {
        let keys_act = partition.iter().chain(order.iter().map(|k| &k.expr)).any(walk::acts);
        let acts = |call: &WindowCall| {
            let mut found = keys_act;
            call.for_exprs(&mut |e| found = found || walk::acts(e));
            found
        };
        let calls: Vec<_> =
            calls.into_iter().filter(|(c, call)| need.contains(*c) || acts(call)).collect();
        let output = Cols::output(&input);
        let mut inner: Cols = need.iter().filter(|c| output.contains(*c)).collect();
        if calls.is_empty() {
            return self.rel(input, &inner, &RequiredProperties::default());
        }
        for (_, call) in &calls {
            call.for_exprs(&mut |e| inner.add(&Cols::of(e)));
        }
        partition.iter().for_each(|e| inner.add(&Cols::of(e)));
        order.iter().for_each(|k| inner.add(&Cols::of(&k.expr)));
        let mut keys: Vec<SortKey> = Vec::with_capacity(partition.len() + order.len());
        let by = partition.iter().map(|e| SortKey {
            expr: e.clone(),
            descending: false,
            nulls_first: false,
        });
        for key in by.chain(order.iter().cloned()) {
            if !keys.iter().any(|k| walk::same(&k.expr, &key.expr)) {
                keys.push(key);
            }
        }
        let phys = self.sort(input, keys, &inner, &RequiredProperties::default())?;
        let partition = self.resolve_all(partition, &phys.cols)?;
        let mut sorted = Vec::with_capacity(order.len());
        for mut key in order {
            key.expr = self.resolve(key.expr, &phys.cols)?;
            sorted.push(key);
        }
        let mut cols = phys.cols;
        let mut list = Vec::with_capacity(calls.len());
        let layout = cols.clone();
        for (col, mut call) in calls {
            let mut failure = None;
            call.for_exprs_mut(&mut |e| {
                let old = std::mem::replace(e, Expr::Row(Vec::new()));
                match self.resolve(old, &layout) {
                    Ok(new) => *e = new,
                    Err(error) => failure = Some(error),
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            cols.push(col);
            list.push(call);
        }
        let mut estimate = cost::project(&phys.plan.estimate, list.len(), self.width(&cols), false);
        estimate.startup = phys.plan.estimate.startup;
        let input = Box::new(phys.plan);
        let node = Node::Window { input, partition, order: sorted, calls: list, workers: 0 };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols, order: phys.order })
    }
}
