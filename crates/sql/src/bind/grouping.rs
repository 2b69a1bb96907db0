//! GROUP BY with grouping sets, `grouping()`, and aggregates with WITHIN GROUP.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::*;

use crate::expr::{AggCall, Expr};
use crate::logical::{Col, GroupingSets, Rel};
use crate::walk;

use super::function::{Callee, Signature};
use super::record::Part;
use super::scope::Place;
use super::select::{Targets, filter};
use super::{Binder, Scope, ast};

/// Most grouping sets of a query, as in PostgreSQL.
const SETS_MAX: usize = 4096;

/// What is grouped by: columns of the groups, and the sets if there are several.
pub(crate) type Groups = (Vec<(Col, Expr)>, Option<Vec<Vec<usize>>>);

type Sets = Vec<Vec<usize>>;

impl Binder<'_> {
    /// GROUP BY.
    pub(crate) fn group_by(
        &mut self,
        scope: &Scope<'_>,
        targets: &Targets,
        stmt: &pb::SelectStmt,
    ) -> Result<Groups> {
        let mut groups = Vec::with_capacity(stmt.group_clause.len());
        let is_set = |n: &pb::Node| matches!(n.node, Some(NodeEnum::GroupingSet(_)));
        if !stmt.group_clause.iter().any(is_set) {
            for node in &stmt.group_clause {
                self.group_items(scope, targets, node, &mut groups)?;
            }
            return Ok((groups, None));
        }
        scope.grouping_sets.set(true);
        let mut sets: Sets = vec![Vec::new()];
        for node in &stmt.group_clause {
            let factor = self.group_sets(scope, targets, node, &mut groups)?;
            let mut product = Vec::with_capacity(sets.len() * factor.len());
            for left in &sets {
                for right in &factor {
                    let mut set = left.clone();
                    set.extend(right.iter().filter(|g| !left.contains(g)));
                    product.push(set);
                }
            }
            sets = product;
            if sets.len() > SETS_MAX {
                return Err(err!(
                    STATEMENT_TOO_COMPLEX,
                    "too many grouping sets present (maximum {SETS_MAX})"
                ));
            }
        }
        sets.iter_mut().for_each(|s| s.sort_unstable());
        if stmt.group_distinct {
            let mut kept: Sets = Vec::with_capacity(sets.len());
            for set in sets {
                if !kept.contains(&set) {
                    kept.push(set);
                }
            }
            sets = kept;
        }
        if groups.is_empty() && sets.len() == 1 {
            return Ok((groups, None));
        }
        let common = (0..groups.len()).filter(|at| sets.iter().all(|set| set.contains(at)));
        scope.common_groups.replace(Some(common.collect()));
        Ok((groups, Some(sets)))
    }

    /// The sets that one item of GROUP BY stands for.
    fn group_sets(
        &mut self,
        scope: &Scope<'_>,
        targets: &Targets,
        node: &pb::Node,
        groups: &mut Vec<(Col, Expr)>,
    ) -> Result<Sets> {
        sched::check_stack()?;
        let Some(NodeEnum::GroupingSet(set)) = &node.node else {
            return Ok(vec![self.group_items(scope, targets, node, groups)?]);
        };
        use pb::GroupingSetKind as K;
        let kind = K::try_from(set.kind).unwrap_or(K::GroupingSetEmpty);
        if kind == K::GroupingSetSets {
            let mut all = Vec::new();
            for item in &set.content {
                all.extend(self.group_sets(scope, targets, item, groups)?);
            }
            return Ok(all);
        }
        let mut parts = Vec::with_capacity(set.content.len());
        for item in &set.content {
            parts.push(self.group_items(scope, targets, item, groups)?);
        }
        let join = |chosen: &mut dyn Iterator<Item = &Vec<usize>>| {
            let mut out: Vec<usize> = Vec::new();
            for part in chosen {
                out.extend(part.iter().filter(|g| !out.contains(g)).collect::<Vec<_>>());
            }
            out
        };
        Ok(match kind {
            K::GroupingSetRollup => {
                (0..=parts.len()).rev().map(|n| join(&mut parts[..n].iter())).collect()
            }
            K::GroupingSetCube => {
                if parts.len() > 12 {
                    return Err(err!(TOO_MANY_COLUMNS, "CUBE is limited to 12 elements")
                        .at(self.at(set.location)));
                }
                (0..1usize << parts.len())
                    .rev()
                    .map(|mask| {
                        let chosen = parts.iter().enumerate();
                        let at = |n: usize| mask >> (parts.len() - 1 - n) & 1 == 1;
                        join(&mut chosen.filter(|(n, _)| at(*n)).map(|(_, p)| p))
                    })
                    .collect()
            }
            _ => vec![join(&mut parts.iter())],
        })
    }

    /// An expression, or a row of them, as places in `groups`.
    fn group_items(
        &mut self,
        scope: &Scope<'_>,
        targets: &Targets,
        node: &pb::Node,
        groups: &mut Vec<(Col, Expr)>,
    ) -> Result<Vec<usize>> {
        match &node.node {
            Some(NodeEnum::RowExpr(row))
                if row.row_format == pb::CoercionForm::CoerceImplicitCast as i32 =>
            {
                let mut out: Vec<usize> = Vec::with_capacity(row.args.len());
                for item in &row.args {
                    for at in self.group_items(scope, targets, item, groups)? {
                        if !out.contains(&at) {
                            out.push(at);
                        }
                    }
                }
                Ok(out)
            }
            Some(value) => Ok(vec![self.group_item(scope, targets, value, groups)?]),
            None => Ok(Vec::new()),
        }
    }

    /// One expression of the input; names of output columns are a second choice.
    fn group_item(
        &mut self,
        scope: &Scope<'_>,
        targets: &Targets,
        value: &NodeEnum,
        groups: &mut Vec<(Col, Expr)>,
    ) -> Result<usize> {
        scope.place.set(Place::GroupBy);
        let position = self.at(ast::location(value));
        let column = match value {
            NodeEnum::ColumnRef(c) if c.fields.len() == 1 => {
                self.find_column(scope, ast::string(&c.fields[0]), c.location)?
            }
            _ => None,
        };
        let expr = match column {
            Some(column) => column,
            None => match self.output_reference(targets, value, "GROUP BY")? {
                Some(target) => targets.list[target].expr.clone(),
                None => self.expr(scope, value)?,
            },
        };
        let expr = self.resolve_unknown(expr)?;
        let mut used = Vec::new();
        walk::columns_of(&expr, &mut used);
        if used.iter().any(|c| scope.aggs.borrow().iter().any(|(a, _)| a == c)) {
            return Err(err!(GROUPING_ERROR, "aggregate functions are not allowed in GROUP BY")
                .at(position));
        }
        if used.iter().any(|c| scope.windows.borrow().iter().any(|w| w.has(*c))) {
            return Err(
                err!(WINDOWING_ERROR, "window functions are not allowed in GROUP BY").at(position)
            );
        }
        self.check_groupable(expr.ty(), position)?;
        self.note(value, Part::Group, std::slice::from_ref(&expr));
        if let Some(at) = groups.iter().position(|(_, g)| walk::same(g, &expr)) {
            return Ok(at);
        }
        let col = self.new_var("group", expr.ty(), self.typmod_of(&expr))?;
        if let Expr::Column(from, _) = &expr {
            let var = self.vars[usize::from(*from)].clone();
            self.vars[usize::from(col)] = var;
        }
        self.equal_value(&expr)?;
        self.pass_collation(col, &expr)?;
        groups.push((col, expr));
        Ok(groups.len() - 1)
    }

    /// Puts the grouping operator in and rewrites what stands above it.
    pub(crate) fn grouped(
        &mut self,
        scope: &Scope<'_>,
        rel: Rel,
        (mut groups, sets): Groups,
        targets: &mut Targets,
        having: Option<Expr>,
    ) -> Result<Rel> {
        let plain = groups.is_empty() && sets.is_none();
        let count = groups.len();
        for target in &mut targets.list {
            let expr = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
            target.expr = self.over_groups(scope, &mut groups, expr)?;
        }
        let mut windows = scope.windows.take();
        for window in &mut windows {
            window.map(&mut |e| self.over_groups(scope, &mut groups, e))?;
        }
        scope.windows.replace(windows);
        let mut conditions = Vec::new();
        if let Some(having) = having {
            let having = self.over_groups(scope, &mut groups, having)?;
            walk::conjuncts(having, &mut conditions);
        }
        let masks = self.grouping_masks(scope, &groups[..count])?;
        let sets = match sets {
            None if masks.is_empty() => None,
            None => Some(GroupingSets { sets: vec![(0..groups.len()).collect()], masks }),
            Some(mut sets) => {
                // Columns that follow from a key which all sets have belong to all of them.
                sets.iter_mut().for_each(|set| set.extend(count..groups.len()));
                Some(GroupingSets { sets, masks })
            }
        };
        let rel = self.sets_below_groups(rel, &mut groups, &scope.aggs.borrow())?;
        self.group_by_keys(scope, &mut groups, sets.is_some())?;
        let input = Box::new(rel);
        let rel = Rel::Aggregate { input, groups, aggs: scope.aggs.take(), plain, sets };
        Ok(filter(rel, conditions))
    }

    /// Texts that may be equal without being the same are grouped by their keys; a group shows the first
    /// of its texts.
    fn group_by_keys(
        &mut self,
        scope: &Scope<'_>,
        groups: &mut [(Col, Expr)],
        sets: bool,
    ) -> Result<()> {
        for (col, value) in groups {
            let Some(key) = self.equal_value(value)? else { continue };
            if sets {
                return Err(base::Error::unsupported(
                    "GROUPING SETS over texts with a collation that is not deterministic",
                ));
            }
            let group = self.new_var("group", key.ty(), -1)?;
            let ty = value.ty();
            let first = AggCall {
                own: None,
                aggregate: &types::func::internal::FIRST,
                args: vec![std::mem::replace(value, key)],
                distinct: false,
                order: Vec::new(),
                filter: None,
                direct: None,
                ty,
            };
            scope.aggs.borrow_mut().push((*col, first));
            *col = group;
        }
        Ok(())
    }

    /// `grouping(…)`: a column whose value the grouping operator knows.
    pub(crate) fn grouping_call(
        &mut self,
        scope: &Scope<'_>,
        call: &pb::GroupingFunc,
    ) -> Result<Expr> {
        let position = self.at(call.location);
        if call.args.len() > 31 {
            return Err(
                err!(TOO_MANY_ARGUMENTS, "GROUPING must have fewer than 32 arguments").at(position)
            );
        }
        let args = self.holding(|b| b.expr_list(scope, &call.args))?;
        // As with aggregates: it is about the groups of the level whose columns it names.
        let owner = self.aggregate_level(scope, &args.iter().collect::<Vec<_>>());
        let place = owner.place.get();
        if !matches!(place, Place::Having | Place::Target | Place::OrderBy | Place::Window) {
            return Err(err!(
                GROUPING_ERROR,
                "grouping operations are not allowed in {}",
                place.name()
            )
            .at(position));
        }
        let places = call.args.iter().map(|a| self.at(ast::location_of(a)));
        let args = args.into_iter().zip(places).collect();
        let col = self.new_var("grouping", INT4, -1)?;
        owner.groupings.borrow_mut().push((col, args));
        Ok(Expr::Column(col, INT4))
    }

    fn grouping_masks(
        &self,
        scope: &Scope<'_>,
        groups: &[(Col, Expr)],
    ) -> Result<Vec<(Col, Vec<usize>)>> {
        let mut masks = Vec::new();
        for (col, args) in scope.groupings.take() {
            let mut places = Vec::with_capacity(args.len());
            for (arg, position) in &args {
                let Some(at) = groups.iter().position(|(_, g)| walk::same(g, arg)) else {
                    return Err(err!(
                        GROUPING_ERROR,
                        "arguments to GROUPING must be grouping expressions of the associated query level"
                    )
                    .at(*position));
                };
                places.push(at);
            }
            masks.push((col, places));
        }
        Ok(masks)
    }

    /// An aggregate with WITHIN GROUP: ordered-set, or hypothetical-set.
    pub(crate) fn within_group(
        &mut self,
        scope: &Scope<'_>,
        (schema, name): (Option<&str>, &str),
        call: &pb::FuncCall,
        position: u32,
    ) -> Result<Expr> {
        if call.over.is_some() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "OVER is not supported for ordered-set aggregate {name}"
            )
            .at(position));
        }
        scope.check_aggregate(position)?;
        scope.in_aggregate.set(true);
        let bound = self.within_group_parts(scope, call);
        scope.in_aggregate.set(false);
        let (direct, mut order, filter) = bound?;
        let is_own = self.cx.catalog.functions_named(name).any(|f| f.aggregate.is_some());
        if !is_own && matches!(name, "rank" | "dense_rank" | "percent_rank" | "cume_dist") {
            return self.hypothetical(scope, name, (direct, order, filter), position);
        }
        let mut all = direct.clone();
        all.extend(order.iter().map(|k| k.expr.clone()));
        let row = match self.find_callee(schema, name, &all, &[], position, false, false)? {
            Some(Callee::OwnAggregate(row)) => {
                return self.own_within_group(scope, row, (direct, order, filter), position);
            }
            Some(Callee::Aggregate(row)) if types::func::is_ordered_set(row.name) => row,
            Some(Callee::Aggregate(_)) => {
                return Err(err!(
                    WRONG_OBJECT_TYPE,
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                )
                .at(position));
            }
            _ => {
                return Err(err!(
                    WRONG_OBJECT_TYPE,
                    "WITHIN GROUP specified, but {name} is not an aggregate function"
                )
                .at(position));
            }
        };
        let signature = Signature { declared: row.args, result: row.result };
        let (mut direct_args, ty) = self.fit(&signature, all, position)?;
        // The result has the collation of all arguments together, direct ones and others.
        let all = self.collating.then(|| direct_args.clone());
        let values = direct_args.split_off(direct.len());
        for (key, value) in order.iter_mut().zip(&values) {
            key.expr = self.sort_value(value.clone())?;
        }
        let aggregate = AggCall {
            own: None,
            aggregate: row,
            args: values,
            distinct: false,
            order,
            filter,
            direct: Some(direct_args),
            ty,
        };
        let value = self.note_aggregate(scope, aggregate)?;
        if let (Expr::Column(col, _), Some(all)) = (&value, all) {
            self.pass_collations(*col, ty, &all)?;
        }
        Ok(value)
    }

    #[allow(clippy::type_complexity)]
    fn within_group_parts(
        &mut self,
        scope: &Scope<'_>,
        call: &pb::FuncCall,
    ) -> Result<(Vec<Expr>, Vec<crate::expr::SortKey>, Option<Expr>)> {
        let direct = self.expr_list(scope, &call.args)?;
        let order = self.aggregate_order(scope, call)?;
        let filter = self.aggregate_filter(scope, call)?;
        Ok((direct, order, filter))
    }

    /// `rank(values) WITHIN GROUP (ORDER BY …)` and kin: where a row would stand.
    #[allow(clippy::type_complexity)]
    fn hypothetical(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        (direct, mut order, filter): (Vec<Expr>, Vec<crate::expr::SortKey>, Option<Expr>),
        position: u32,
    ) -> Result<Expr> {
        let Some(row) = types::func::aggregates_named(name).first() else {
            return Err(base::Error::unsupported(name).at(position));
        };
        if direct.len() != order.len() {
            let given: Vec<String> = direct
                .iter()
                .chain(order.iter().map(|k| &k.expr))
                .map(|e| types::io::format_type(e.ty(), -1))
                .collect();
            return Err(err!(
                UNDEFINED_FUNCTION,
                "function {name}({}) does not exist",
                given.join(", ")
            )
            .hint(format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {}).",
                direct.len(),
                order.len()
            ))
            .at(position));
        }
        let mut given = Vec::with_capacity(direct.len());
        for (value, key) in direct.into_iter().zip(&mut order) {
            let types = [(key.expr.ty(), position), (value.ty(), position)];
            let ty = self.common_type(&types, "WITHIN GROUP")?;
            let old = std::mem::replace(&mut key.expr, Expr::Row(Vec::new()));
            let old = self.to_common(old, ty, "WITHIN GROUP", position)?;
            let value = self.to_common(value, ty, "WITHIN GROUP", position)?;
            let (old, value) = match super::operator::comparison("<", ty) {
                Some(less) if self.collating => {
                    let (_, old, value) = self.collated_pair(less, old, value)?;
                    (old, value)
                }
                _ => (old, value),
            };
            key.expr = old;
            given.push(value);
        }
        let aggregate = AggCall {
            own: None,
            aggregate: row,
            args: order.iter().map(|k| k.expr.clone()).collect(),
            distinct: false,
            order,
            filter,
            direct: Some(given),
            ty: row.result,
        };
        self.note_aggregate(scope, aggregate)
    }
}

impl Binder<'_> {
    /// The WINDOW clause's definitions.
    pub(crate) fn window_clause(&self, nodes: &[pb::Node]) -> Result<Vec<pb::WindowDef>> {
        let mut out: Vec<pb::WindowDef> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::WindowDef(def)) = &node.node else { continue };
            if out.iter().any(|d| d.name == def.name) {
                return Err(err!(WINDOWING_ERROR, "window \"{}\" is already defined", def.name)
                    .at(self.at(def.location)));
            }
            out.push((**def).clone());
        }
        Ok(out)
    }
}
