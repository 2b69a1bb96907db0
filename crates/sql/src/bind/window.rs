//! Calls with OVER, and the WINDOW clause.
//!
//! A call is noted in the scope, beside the others with the same PARTITION BY and ORDER BY, and
//! stands as a column. Above grouping, and below ORDER BY and DISTINCT, each such group of calls
//! becomes one operator.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::func::CastContext;
use types::oids::*;

use crate::expr::{AggCall, Expr, SortKey};
use crate::logical::{Col, Rel};
use crate::walk;
use crate::window::{Exclude, Frame, FrameBound, FrameMode, RangeKey, WindowCall, WindowFunction};

use super::function::{Callee, Signature};
use super::record::{WindowNote, WindowSpec};
use super::scope::Place;
use super::{Binder, Scope, ast, inner};

/// Calls over one PARTITION BY and ORDER BY.
#[derive(Clone)]
pub(crate) struct Window {
    partition: Vec<Expr>,
    order: Vec<SortKey>,
    calls: Vec<(Col, WindowCall)>,
}

/// A window as it is written, with what it inherits.
struct Definition {
    partition: Vec<Expr>,
    order: Vec<SortKey>,
    frame: Frame,
    framed: bool,
    /// Without what it inherits.
    own: WindowSpec,
}

mod bits {
    pub const NON_DEFAULT: i32 = 0x1;
    pub const ROWS: i32 = 0x4;
    pub const BETWEEN: i32 = 0x10;
    pub const GROUPS: i32 = 0x8;
    pub const START_FIRST: i32 = 0x20;
    pub const START_CURRENT: i32 = 0x200;
    pub const END_CURRENT: i32 = 0x400;
    pub const START_PRECEDING: i32 = 0x800;
    pub const END_PRECEDING: i32 = 0x1000;
    pub const START_FOLLOWING: i32 = 0x2000;
    pub const END_FOLLOWING: i32 = 0x4000;
    pub const EXCLUDE_CURRENT: i32 = 0x8000;
    pub const EXCLUDE_GROUP: i32 = 0x10000;
    pub const EXCLUDE_TIES: i32 = 0x20000;
}

impl Binder<'_> {
    /// A call with OVER.
    pub(crate) fn window_call(
        &mut self,
        scope: &Scope<'_>,
        call: &pb::FuncCall,
        over: &pb::WindowDef,
        callee: Callee,
        args: Vec<Expr>,
    ) -> Result<Expr> {
        let position = self.at(call.location);
        let name = ast::strings(&call.funcname).last().copied().unwrap_or_default().to_owned();
        let refuse = |what: &str| {
            Err(base::Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, what).at(position))
        };
        if call.agg_within_group {
            return refuse(&format!("OVER is not supported for ordered-set aggregate {name}"));
        }
        if call.agg_distinct {
            return refuse("DISTINCT is not implemented for window functions");
        }
        if !call.agg_order.is_empty() {
            return refuse("aggregate ORDER BY is not implemented for window functions");
        }
        let mut passed: Vec<Expr> = Vec::new();
        let (function, args, ty) = match callee {
            Callee::Function(_) | Callee::Several => {
                return Err(err!(
                    WRONG_OBJECT_TYPE,
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                )
                .at(position));
            }
            Callee::Window(row) => {
                if call.agg_filter.is_some() {
                    return refuse("FILTER is not implemented for non-aggregate window functions");
                }
                let signature = Signature { declared: row.args, result: row.result };
                let (args, ty) = self.fit(&signature, args, position)?;
                passed.clone_from(&args);
                (WindowFunction::Own(row), args, ty)
            }
            Callee::Aggregate(_) | Callee::OwnAggregate(_) => {
                let (row, own, args, ty) = match callee {
                    Callee::OwnAggregate(row) => {
                        let spread = call.func_variadic;
                        let (args, own, row, ty) = self.own_call(row, args, spread, position)?;
                        (row, Some(own), args, ty)
                    }
                    Callee::Aggregate(row) if types::func::is_ordered_set(row.name) => {
                        return Err(super::aggregate::without_group(row.name).at(position));
                    }
                    Callee::Aggregate(row) => {
                        let signature = Signature { declared: row.args, result: row.result };
                        let (args, ty) = self.fit(&signature, args, position)?;
                        (row, None, super::aggregate::json_items(row.name, args), ty)
                    }
                    _ => return Err(base::Error::internal("no aggregate")),
                };
                let filter = match inner(&call.agg_filter) {
                    Some(node) => {
                        let at = self.at(ast::location(node));
                        let place = scope.place.replace(Place::Filter);
                        let bound = self.expr(scope, node);
                        scope.place.set(place);
                        Some(self.boolean(bound?, "FILTER", at)?)
                    }
                    None => None,
                };
                passed.clone_from(&args);
                let mut call = AggCall {
                    aggregate: row,
                    args,
                    distinct: false,
                    order: Vec::new(),
                    filter,
                    direct: None,
                    ty,
                    own,
                };
                self.collated_aggregate(&mut call)?;
                (WindowFunction::Aggregate(call), Vec::new(), ty)
            }
        };
        self.check_window(scope, position)?;
        scope.in_window.set(true);
        let definition = self.holding(|b| b.definition(scope, over, !over.name.is_empty()));
        scope.in_window.set(false);
        let definition = definition?;
        let call = WindowCall { function, args, frame: definition.frame, ty };
        let col = self.new_var(&name, ty, -1)?;
        if self.collating {
            self.pass_collations(col, ty, &passed)?;
        }
        if self.record.is_some() {
            let over = match over.name.as_str() {
                "" => Err(definition.own),
                name => Ok(name.to_owned()),
            };
            scope.window_notes.borrow_mut().push(WindowNote { col, call: call.clone(), over });
        }
        let mut windows = scope.windows.borrow_mut();
        let known = windows.iter_mut().find(|w| {
            same_list(&w.partition, &definition.partition) && same_keys(&w.order, &definition.order)
        });
        match known {
            Some(window) => window.calls.push((col, call)),
            None => windows.push(Window {
                partition: definition.partition,
                order: definition.order,
                calls: vec![(col, call)],
            }),
        }
        Ok(Expr::Column(col, ty))
    }

    /// `42P20` where window functions may not stand.
    fn check_window(&self, scope: &Scope<'_>, position: u32) -> Result<()> {
        if scope.in_aggregate.get() && scope.place.get() != Place::Filter {
            return Err(err!(
                GROUPING_ERROR,
                "aggregate function calls cannot contain window function calls"
            )
            .at(position));
        }
        let place = scope.place.get();
        if scope.in_window.get() && place != Place::Window {
            return Err(
                err!(WINDOWING_ERROR, "window function calls cannot be nested").at(position)
            );
        }
        if !matches!(place, Place::Target | Place::OrderBy) {
            return Err(err!(
                WINDOWING_ERROR,
                "window functions are not allowed in {}",
                place.name()
            )
            .at(position));
        }
        Ok(())
    }

    /// A window's definition; `whole`: it is only named (`OVER w`).
    fn definition(
        &mut self,
        scope: &Scope<'_>,
        def: &pb::WindowDef,
        whole: bool,
    ) -> Result<Definition> {
        sched::check_stack()?;
        let position = self.at(def.location);
        let base_name = if whole { &def.name } else { &def.refname };
        let mut inherited = None;
        if !base_name.is_empty() {
            let at = scope.named_windows.iter().position(|w| w.name == *base_name);
            // A window of the WINDOW clause sees those before it.
            let limit = scope.named_limit.get();
            let Some(at) = at.filter(|at| *at < limit) else {
                return Err(
                    err!(UNDEFINED_OBJECT, "window \"{base_name}\" does not exist").at(position)
                );
            };
            let before = scope.named_limit.replace(at);
            let named = scope.named_windows[at].clone();
            let definition = self.definition(scope, &named, false);
            scope.named_limit.set(before);
            inherited = Some(definition?);
        }
        if whole && let Some(inherited) = inherited {
            return Ok(inherited);
        }
        let place = scope.place.replace(Place::Window);
        let order = self.window_order(scope, &def.order_clause);
        let partition = self.window_partition(scope, &def.partition_clause);
        scope.place.set(place);
        let (mut order, mut partition) = (order?, partition?);
        let own = (partition.clone(), order.clone());
        if let Some(inherited) = inherited {
            if !partition.is_empty() {
                return Err(err!(
                    WINDOWING_ERROR,
                    "cannot override PARTITION BY clause of window \"{base_name}\""
                )
                .at(position));
            }
            if !order.is_empty() && !inherited.order.is_empty() {
                return Err(err!(
                    WINDOWING_ERROR,
                    "cannot override ORDER BY clause of window \"{base_name}\""
                )
                .at(position));
            }
            if inherited.framed {
                let plain = order.is_empty() && def.frame_options & bits::NON_DEFAULT == 0;
                let error = err!(
                    WINDOWING_ERROR,
                    "cannot copy window \"{base_name}\" because it has a frame clause"
                );
                return Err(if plain && def.name.is_empty() {
                    error.hint("Omit the parentheses in this OVER clause.").at(position)
                } else {
                    error.at(position)
                });
            }
            partition = inherited.partition;
            if order.is_empty() {
                order = inherited.order;
            }
        }
        let frame = self.frame(scope, def, &order)?;
        let framed = def.frame_options & bits::NON_DEFAULT != 0;
        let between = def.frame_options & bits::BETWEEN != 0;
        let own = WindowSpec {
            base: base_name.clone(),
            partition: own.0,
            order: own.1,
            frame: framed.then(|| (frame.clone(), between)),
        };
        Ok(Definition { partition, order, frame, framed, own })
    }

    /// Every window of the WINDOW clause is checked, used or not.
    pub(crate) fn check_named_windows(&mut self, scope: &Scope<'_>) -> Result<()> {
        for at in 0..scope.named_windows.len() {
            scope.named_limit.set(at);
            let named = scope.named_windows[at].clone();
            let definition = self.holding(|b| b.definition(scope, &named, false))?;
            if self.record.is_some() {
                scope.window_specs.borrow_mut().push((named.name.clone(), definition.own));
            }
        }
        scope.named_limit.set(usize::MAX);
        Ok(())
    }

    fn window_order(&mut self, scope: &Scope<'_>, nodes: &[pb::Node]) -> Result<Vec<SortKey>> {
        let mut keys: Vec<SortKey> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { continue };
            let Some(value) = inner(&sort.node) else { continue };
            let bound = self.expr(scope, value)?;
            let bound = self.resolve_unknown(bound)?;
            self.check_sortable(bound.ty(), self.at(ast::location(value)))?;
            keys.push(self.sort_key(sort, bound)?);
        }
        self.sort_values(&mut keys)?;
        Ok(keys)
    }

    fn window_partition(&mut self, scope: &Scope<'_>, nodes: &[pb::Node]) -> Result<Vec<Expr>> {
        let mut out: Vec<Expr> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let bound = self.expr_node(scope, node)?;
            let bound = self.resolve_unknown(bound)?;
            let position = self.at(ast::location_of(node));
            self.check_groupable(bound.ty(), position)?;
            self.check_sortable(bound.ty(), position)?;
            if !out.iter().any(|e| walk::same(e, &bound)) {
                out.push(bound);
            }
        }
        self.equal_values(&mut out)?;
        Ok(out)
    }

    fn frame(
        &mut self,
        scope: &Scope<'_>,
        def: &pb::WindowDef,
        order: &[SortKey],
    ) -> Result<Frame> {
        let has = |bit: i32| def.frame_options & bit != 0;
        let mode = match () {
            () if has(bits::ROWS) => FrameMode::Rows,
            () if has(bits::GROUPS) => FrameMode::Groups,
            () => FrameMode::Range,
        };
        let position = self.at(def.location);
        let start_offset = has(bits::START_PRECEDING | bits::START_FOLLOWING);
        let end_offset = has(bits::END_PRECEDING | bits::END_FOLLOWING);
        let mut range = None;
        let offset_type = match mode {
            FrameMode::Range if start_offset || end_offset => {
                let [key] = order else {
                    return Err(err!(
                        WINDOWING_ERROR,
                        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
                    )
                    .at(position));
                };
                let (found, offset) = self.range_key(key, def)?;
                range = Some(found);
                offset
            }
            FrameMode::Groups if order.is_empty() => {
                return Err(
                    err!(WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause").at(position)
                );
            }
            _ => INT8,
        };
        let key = order.first().map_or(INT8, |k| k.expr.ty());
        let place = scope.place.replace(Place::WindowFrame);
        let given = start_offset.then(|| inner(&def.start_offset)).flatten();
        let start = self.offset(scope, given, mode, (key, offset_type));
        let given = end_offset.then(|| inner(&def.end_offset)).flatten();
        let end = self.offset(scope, given, mode, (key, offset_type));
        scope.place.set(place);
        let start = match start? {
            Some(e) if has(bits::START_PRECEDING) => FrameBound::Preceding(e),
            Some(e) => FrameBound::Following(e),
            None if has(bits::START_CURRENT) => FrameBound::Current,
            None if has(bits::START_FIRST) || def.frame_options == 0 => FrameBound::First,
            None => FrameBound::Last,
        };
        let end = match end? {
            Some(e) if has(bits::END_PRECEDING) => FrameBound::Preceding(e),
            Some(e) => FrameBound::Following(e),
            None if has(bits::END_CURRENT) || def.frame_options == 0 => FrameBound::Current,
            None => FrameBound::Last,
        };
        let exclude = match () {
            () if has(bits::EXCLUDE_CURRENT) => Exclude::Current,
            () if has(bits::EXCLUDE_GROUP) => Exclude::Group,
            () if has(bits::EXCLUDE_TIES) => Exclude::Ties,
            () => Exclude::Nothing,
        };
        Ok(Frame { mode, start, end, exclude, range })
    }

    /// A frame's offset: no columns in it.
    fn offset(
        &mut self,
        scope: &Scope<'_>,
        node: Option<&NodeEnum>,
        mode: FrameMode,
        (key, ty): (Oid, Oid),
    ) -> Result<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        let word = match mode {
            FrameMode::Rows => "ROWS",
            FrameMode::Range => "RANGE",
            FrameMode::Groups => "GROUPS",
        };
        let position = self.at(ast::location(node));
        let bound = self.expr(scope, node)?;
        self.refuse_variables(scope, &bound, word, position)?;
        let from = bound.ty();
        let context = match mode {
            FrameMode::Range => CastContext::Implicit,
            _ => CastContext::Assignment,
        };
        match self.coerce(bound, ty, context, position)? {
            Some(bound) => Ok(Some(bound)),
            None if mode == FrameMode::Range => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset type {}",
                types::io::format_type(key, -1),
                types::io::format_type(from, -1)
            )
            .hint("Cast the offset value to an appropriate type.")
            .at(position)),
            None => Err(err!(
                DATATYPE_MISMATCH,
                "argument of {word} must be type bigint, not type {}",
                types::io::format_type(from, -1)
            )
            .at(position)),
        }
    }

    /// How RANGE adds an offset to the ORDER BY value, and the offset's type.
    fn range_key(&mut self, key: &SortKey, def: &pb::WindowDef) -> Result<(RangeKey, Oid)> {
        let ty = key.expr.ty();
        let (as_type, offset) = match ty {
            INT2 | INT4 | INT8 => (INT8, INT8),
            FLOAT4 | FLOAT8 => (FLOAT8, FLOAT8),
            NUMERIC => (NUMERIC, NUMERIC),
            DATE | TIMESTAMP => (TIMESTAMP, INTERVAL),
            TIMESTAMPTZ => (TIMESTAMPTZ, INTERVAL),
            TIME | INTERVAL => (INTERVAL, INTERVAL),
            _ => {
                let at = inner(&def.start_offset)
                    .or(inner(&def.end_offset))
                    .map_or(def.location, ast::location);
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    types::io::format_type(ty, -1)
                )
                .at(self.at(at)));
            }
        };
        let value = self
            .coerce(key.expr.clone(), as_type, CastContext::Explicit, 0)?
            .ok_or_else(|| base::Error::internal("RANGE key has no cast"))?;
        let operator = |name: &str| {
            types::func::operators_named(name)
                .iter()
                .find(|o| o.left == as_type && o.right == offset)
                .and_then(|o| types::func::function(o.function))
        };
        let own = matches!(as_type, INT8 | FLOAT8);
        let (plus, minus) = if own { (None, None) } else { (operator("+"), operator("-")) };
        Ok((RangeKey { key: value, plus, minus }, offset))
    }

    /// Puts the window operators above the rows, in the order that PostgreSQL has them. `before`:
    /// expressions that other clauses sort or group by.
    pub(crate) fn windows(&mut self, scope: &Scope<'_>, mut rel: Rel, before: &[Expr]) -> Rel {
        let mut windows = scope.windows.take();
        let mut refs: Vec<Expr> = Vec::new();
        let number =
            |e: &Expr, refs: &mut Vec<Expr>| match refs.iter().position(|r| walk::same(r, e)) {
                Some(at) => at,
                None => {
                    refs.push(e.clone());
                    refs.len() - 1
                }
            };
        for e in before {
            number(e, &mut refs);
        }
        let mut keyed: Vec<(Vec<usize>, Window)> = Vec::with_capacity(windows.len());
        for window in windows.drain(..) {
            let order: Vec<usize> =
                window.order.iter().map(|k| number(&k.expr, &mut refs)).collect();
            let mut key: Vec<usize> =
                window.partition.iter().map(|e| number(e, &mut refs)).collect();
            for at in order {
                if !key.contains(&at) {
                    key.push(at);
                }
            }
            keyed.push((key, window));
        }
        // Those with a common beginning stand together, the longer ones first.
        keyed.sort_by(|(a, _), (b, _)| {
            for (x, y) in a.iter().zip(b) {
                if x != y {
                    return y.cmp(x);
                }
            }
            b.len().cmp(&a.len())
        });
        for (_, window) in keyed {
            let Window { partition, order, calls } = window;
            rel = Rel::Window { input: Box::new(rel), partition, order, calls };
        }
        rel
    }
}

impl Window {
    /// Whether a column is one of the calls'.
    pub(crate) fn has(&self, col: Col) -> bool {
        self.calls.iter().any(|(c, _)| *c == col)
    }

    /// Calls `f` with each expression over the input.
    pub(crate) fn for_exprs<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.calls.iter().for_each(|(_, call)| call.for_exprs(f));
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|k| f(&k.expr));
    }

    /// Replaces each expression over the input.
    pub(crate) fn map(&mut self, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<()> {
        let mut failure = None;
        let mut apply = |e: &mut Expr| {
            let old = std::mem::replace(e, Expr::Row(Vec::new()));
            match f(old) {
                Ok(new) => *e = new,
                Err(error) => failure = failure.take().or(Some(error)),
            }
        };
        for (_, call) in &mut self.calls {
            call.for_exprs_mut(&mut apply);
        }
        self.partition.iter_mut().for_each(&mut apply);
        self.order.iter_mut().for_each(|k| apply(&mut k.expr));
        failure.map_or(Ok(()), Err)
    }
}

fn same_list(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| walk::same(x, y))
}

fn same_keys(a: &[SortKey], b: &[SortKey]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(x, y)| {
            x.descending == y.descending
                && x.nulls_first == y.nulls_first
                && walk::same(&x.expr, &y.expr)
        })
}
