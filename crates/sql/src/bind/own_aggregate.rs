//! Calls of aggregates that users made: their functions become expressions over the state and the arguments.
//!
//! A state of type `internal` can't be kept: such an aggregate is computed as the built-in one that has the
//! same functions.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::{Aggregate, AggregateSteps, Function, system};
use pg_query::protobuf as pb;
use types::Datum;
use types::func::{AggregateRow, CastContext, FunctionRow};
use types::oids::*;

use crate::expr::{AggCall, Expr, OwnAggregate, OwnSteps, SortKey};

use super::coerce::is_polymorphic;
use super::function::Signature;
use super::polymorphic::real_in_call;
use super::{Binder, Scope};

impl Binder<'_> {
    /// A plain call of an aggregate that a user made, with arguments not yet cast.
    pub(crate) fn own_aggregate(
        &mut self,
        scope: &Scope<'_>,
        row: &'static FunctionRow,
        call: &pb::FuncCall,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        let written = args.clone();
        let (args, own, aggregate, ty) = self.own_call(row, args, call.func_variadic, position)?;
        let args = (args, &written[..], ty);
        self.plain_aggregate(scope, (aggregate, Some(own)), call, args, position)
    }

    /// The same as a window function's parts.
    pub(crate) fn own_call(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        spread: bool,
        position: u32,
    ) -> Result<(Vec<Expr>, Arc<OwnAggregate>, &'static AggregateRow, Oid)> {
        let catalog = self.cx.catalog.clone();
        let (function, definition) = definition_of(&catalog, row)?;
        if definition.kind != 'n' {
            return Err(super::aggregate::without_group(&function.name).at(position));
        }
        let (args, ty) = self.own_arguments(row, args, spread, position)?;
        let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
        let (own, aggregate) = self.steps_of(function, definition, (&types, &[]), ty, position)?;
        Ok((args, own, aggregate, ty))
    }

    /// Arguments cast to what the aggregate takes, those of a VARIADIC parameter packed up.
    fn own_arguments(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        spread: bool,
        position: u32,
    ) -> Result<(Vec<Expr>, Oid)> {
        self.note_call(row.oid);
        self.note_use(row.oid.0, 0);
        self.fit_packed(row, args, spread, position)
    }

    /// A call with WITHIN GROUP of an aggregate that a user made.
    #[allow(clippy::type_complexity)]
    pub(crate) fn own_within_group(
        &mut self,
        scope: &Scope<'_>,
        row: &'static FunctionRow,
        (direct, mut order, filter): (Vec<Expr>, Vec<SortKey>, Option<Expr>),
        position: u32,
    ) -> Result<Expr> {
        let catalog = self.cx.catalog.clone();
        let (function, definition) = definition_of(&catalog, row)?;
        if definition.kind == 'n' {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "{} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
                function.name
            )
            .at(position));
        }
        let count = direct.len();
        let declared = usize::from(definition.direct);
        let open = row.variadic && row.args.last() == Some(&ANY);
        let fits = match definition.kind {
            'h' => count == order.len(),
            _ => count == declared || open && declared == row.args.len() && count >= declared,
        };
        if !fits {
            return Err(wrong_direct(function, definition, (count, order.len()), position));
        }
        let mut all = direct;
        all.extend(order.iter().map(|key| key.expr.clone()));
        if definition.kind == 'h' {
            self.match_hypothetical(&mut all, count, position)?;
        }
        let (mut direct, ty) = self.own_arguments(row, all, false, position)?;
        let values = direct.split_off(count);
        for (key, value) in order.iter_mut().zip(&values) {
            key.expr = self.sort_value(value.clone())?;
        }
        let types: Vec<Oid> = values.iter().map(Expr::ty).collect();
        let direct_types: Vec<Oid> = direct.iter().map(Expr::ty).collect();
        let parts = (&types[..], &direct_types[..]);
        let (own, aggregate) = self.steps_of(function, definition, parts, ty, position)?;
        let call = AggCall {
            aggregate,
            args: values,
            distinct: false,
            order,
            filter,
            direct: Some(direct),
            ty,
            own: Some(own),
        };
        self.note_aggregate(scope, call)
    }

    /// The hypothetical row gets the types of the rows that it stands among.
    fn match_hypothetical(&mut self, all: &mut [Expr], count: usize, position: u32) -> Result<()> {
        for n in 0..count.min(all.len() - count) {
            let types = [(all[count + n].ty(), position), (all[n].ty(), position)];
            let ty = self.common_type(&types, "WITHIN GROUP")?;
            for at in [n, count + n] {
                let old = std::mem::replace(&mut all[at], Expr::Row(Vec::new()));
                all[at] = self.to_common(old, ty, "WITHIN GROUP", position)?;
            }
        }
        Ok(())
    }

    /// How a call is computed. `types`: of the aggregated and of the direct arguments.
    fn steps_of(
        &mut self,
        function: &Function,
        definition: &Aggregate,
        types: (&[Oid], &[Oid]),
        result: Oid,
        position: u32,
    ) -> Result<(Arc<OwnAggregate>, &'static AggregateRow)> {
        let mut own = OwnAggregate {
            function: Oid(function.oid),
            name: function.name.as_str().into(),
            steps: None,
            moving: None,
            parallel: function.parallel == 's',
        };
        if Oid(definition.plain.state) == INTERNAL {
            let Some(row) = built_in(&definition.plain) else {
                let what = format!("aggregate {} with a state of type internal", function.name);
                return Err(Error::unsupported(what).at(position));
            };
            return Ok((Arc::new(own), row));
        }
        let given: Vec<Oid> = types.1.iter().chain(types.0).copied().collect();
        let declared = function.input_types();
        let mut steps =
            self.steps(&definition.plain, (&declared, &given), types, result, position)?;
        // One that does not run here is not needed, either.
        if let Some(row) = crate::routine::callable(self.cx.catalog, definition.combine) {
            let state = steps.transition.ty();
            let both = vec![Expr::Column(0, state), Expr::Column(1, state)];
            steps.combine = Some(self.step_call(row, both, state, position)?);
            steps.combine_strict = row.strict;
        }
        own.steps = Some(steps);
        if let Some(moving) = &definition.moving
            && Oid(moving.state) != INTERNAL
        {
            let steps = self.steps(moving, (&declared, &given), types, result, position)?;
            own.moving = Some(steps);
        }
        Ok((Arc::new(own), &types::func::internal::OWN_AGGREGATE))
    }

    fn steps(
        &mut self,
        steps: &AggregateSteps,
        (declared, given): (&[Oid], &[Oid]),
        (args, direct): (&[Oid], &[Oid]),
        result: Oid,
        position: u32,
    ) -> Result<OwnSteps> {
        let pairs = declared.iter().copied().zip(given.iter().copied());
        let state = real_in_call(Oid(steps.state), pairs);
        let initial = match &steps.initial {
            Some(text) => types::io::input(state, -1, text, self.cx.format)?,
            None => Datum::Null,
        };
        let column = |n: usize, ty: Oid| Expr::Column(n as u16, ty);
        let mut inputs = vec![column(0, state)];
        inputs.extend(args.iter().enumerate().map(|(n, ty)| column(n + 1, *ty)));
        let row = self.callable(steps.transition, position)?;
        let transition = self.step_call(row, inputs.clone(), state, position)?;
        let inverse = match steps.inverse {
            0 => None,
            id => {
                let row = self.callable(id, position)?;
                Some(self.step_call(row, inputs, state, position)?)
            }
        };
        let finish = match steps.finish {
            0 => None,
            id => {
                let row = self.callable(id, position)?;
                let mut inputs = vec![column(0, state)];
                inputs.extend(direct.iter().enumerate().map(|(n, ty)| column(n + 1, *ty)));
                if steps.extra {
                    inputs.extend(args.iter().map(|ty| Expr::Const(Datum::Null, *ty)));
                }
                Some(self.step_call(row, inputs, result, position)?)
            }
        };
        Ok(OwnSteps {
            initial,
            transition,
            strict: row.strict,
            inverse,
            combine: None,
            combine_strict: false,
            finish,
        })
    }

    /// A call of one of an aggregate's functions, whose result is of this type.
    fn step_call(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        ty: Oid,
        position: u32,
    ) -> Result<Expr> {
        let last = row.args.last().copied();
        let mut out = Vec::with_capacity(args.len());
        for (n, arg) in args.into_iter().enumerate() {
            let to = row.args.get(n).copied().or(last).unwrap_or(ANY);
            let given = arg.clone();
            let cast = match is_polymorphic(to) || to == ANY {
                true => None,
                false => self.coerce(arg, to, CastContext::Implicit, position)?,
            };
            out.push(cast.unwrap_or(given));
        }
        self.note_call(row.oid);
        Ok(Expr::Call { function: row, args: out.into(), ty, position: 0 })
    }

    /// What is called for a function's oid: a built-in row or a user's function.
    ///
    /// # Errors
    /// `0A000` for a function of PostgreSQL's that does not run here.
    pub(crate) fn callable(&self, id: u32, position: u32) -> Result<&'static FunctionRow> {
        crate::routine::callable(self.cx.catalog, id).ok_or_else(|| {
            let name = system::facts::function_name(id).unwrap_or("???");
            Error::unsupported(format!("function {name}")).at(position)
        })
    }
}

fn definition_of<'c>(
    catalog: &'c catalog::Snapshot,
    row: &FunctionRow,
) -> Result<(&'c Function, &'c Aggregate)> {
    let function = catalog.function(row.oid.0);
    let found = function.and_then(|f| Some((&**f, f.aggregate.as_deref()?)));
    found.ok_or_else(|| Error::internal("an aggregate that the catalog doesn't have"))
}

/// The built-in aggregate with these functions.
fn built_in(steps: &AggregateSteps) -> Option<&'static AggregateRow> {
    let id = system::facts::aggregate_of(steps.transition, steps.finish)?;
    types::func::aggregates().iter().find(|row| row.oid.0 == id)
}

fn wrong_direct(
    function: &Function,
    definition: &Aggregate,
    (direct, ordered): (usize, usize),
    position: u32,
) -> Error {
    let name = &function.name;
    let hint = match definition.kind {
        'h' => format!(
            "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {direct}) must match the number of ordering columns (here {ordered})."
        ),
        _ => {
            let wanted = usize::from(definition.direct);
            let word = if wanted == 1 { "argument" } else { "arguments" };
            format!(
                "There is an ordered-set aggregate {name}, but it requires {wanted} direct {word}, not {direct}."
            )
        }
    };
    err!(UNDEFINED_FUNCTION, "function {name} does not exist").hint(hint).at(position)
}

impl Binder<'_> {
    /// Arguments cast to a user's function's parameters, those of a VARIADIC one packed up; and the
    /// result's type.
    pub(crate) fn fit_packed(
        &mut self,
        row: &'static FunctionRow,
        args: Vec<Expr>,
        spread: bool,
        position: u32,
    ) -> Result<(Vec<Expr>, Oid)> {
        let full = row.args.len();
        let mut declared = row.args.to_vec();
        let last = row.args.last().copied().unwrap_or(ANY);
        let packed = row.variadic && !spread && args.len() >= full;
        if packed {
            let element = super::routine::variadic_element(last);
            declared.truncate(full - 1);
            declared.resize(args.len(), element);
        }
        let signature = Signature { declared: &declared, result: row.result };
        let (mut args, ty) = self.fit(&signature, args, position)?;
        if packed && last != ANY {
            let items = args.split_off(full - 1);
            let element = match super::coerce::element_of(last) {
                known if !is_polymorphic(last) => known,
                _ => items.first().map_or(TEXT, Expr::ty),
            };
            let ty = super::coerce::array_of(element);
            args.push(Expr::Array { items, element, ty, nested: false });
        }
        Ok((args, ty))
    }
}
