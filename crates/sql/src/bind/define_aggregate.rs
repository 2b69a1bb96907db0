//! CREATE AGGREGATE: the functions that it names are looked up, and must fit together.

use base::{Error, Oid, Result, err};
use catalog::routine::RoutineInfo;
use catalog::{Aggregate, AggregateSteps, Function, FunctionArg};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::*;

use crate::utility::{Name, RoutineDef, Utility};

use super::coerce::{element_of, is_binary_coercible, is_polymorphic};
use super::define::def_value;
use super::overload::{Candidate, Choice, choose};
use super::{Binder, ast, inner};

fn bad(message: impl std::fmt::Display) -> Error {
    err!(INVALID_FUNCTION_DEFINITION, "{message}")
}

/// `bytea`.
const BYTES: Oid = BYTEA;

/// What a definition says, by the attributes' names of today.
#[derive(Default)]
struct Attributes<'n> {
    base: Option<&'n pb::DefElem>,
    transition: Option<Name>,
    finish: Option<Name>,
    combine: Option<Name>,
    serial: Option<Name>,
    deserial: Option<Name>,
    moving: Option<Name>,
    inverse: Option<Name>,
    moving_finish: Option<Name>,
    sort: Option<Name>,
    state: Option<Oid>,
    moving_state: Option<Oid>,
    space: i32,
    moving_space: i32,
    initial: Option<String>,
    moving_initial: Option<String>,
    extra: bool,
    moving_extra: bool,
    modify: Option<char>,
    moving_modify: Option<char>,
    parallel: char,
    hypothetical: bool,
}

/// The arguments of an aggregate, and how its functions see them.
struct Inputs {
    all: Vec<Oid>,
    direct: usize,
    ordered: bool,
}

impl Inputs {
    /// Those that are aggregated.
    fn aggregated(&self) -> &[Oid] {
        match self.all.len() {
            // A VARIADIC parameter stands for both.
            count if self.direct == count && self.ordered => &self.all[count.saturating_sub(1)..],
            _ => &self.all[self.direct..],
        }
    }

    fn transition(&self, state: Oid) -> Vec<Oid> {
        std::iter::once(state).chain(self.aggregated().iter().copied()).collect()
    }

    fn finish(&self, state: Oid, extra: bool) -> Vec<Oid> {
        let seen = if extra { self.all.len() } else { self.direct };
        std::iter::once(state).chain(self.all[..seen].iter().copied()).collect()
    }
}

impl Binder<'_> {
    /// CREATE AGGREGATE.
    pub(crate) fn create_aggregate(&mut self, stmt: &pb::DefineStmt) -> Result<Utility> {
        let name = self.name_of_list(&stmt.defnames);
        let (attributes, warnings) = self.attributes(&stmt.definition)?;
        let Some(state) = attributes.state else {
            return Err(bad("aggregate stype must be specified"));
        };
        if attributes.transition.is_none() {
            return Err(bad("aggregate sfunc must be specified"));
        }
        check_moving(&attributes)?;
        let (args, direct) = match stmt.oldstyle {
            true => (self.old_arguments(&attributes)?, None),
            false if attributes.base.is_some() => {
                return Err(bad("basetype is redundant with aggregate input type specification"));
            }
            false => self.aggregate_arguments(&stmt.args)?,
        };
        self.check_state(state)?;
        if attributes.serial.is_some() || attributes.deserial.is_some() {
            if state != INTERNAL {
                return Err(bad(
                    "serialization functions may be specified only when the aggregate transition data type is internal",
                ));
            }
            if attributes.serial.is_none() || attributes.deserial.is_none() {
                return Err(bad(
                    "must specify both or neither of serialization and deserialization functions",
                ));
            }
        }
        if let Some(moving) = attributes.moving_state {
            self.check_state(moving)?;
        }
        self.check_initial(state, attributes.initial.as_deref())?;
        if let Some(moving) = attributes.moving_state {
            self.check_initial(moving, attributes.moving_initial.as_deref())?;
        }
        let kind = match direct {
            None => 'n',
            Some(_) if attributes.hypothetical => 'h',
            Some(_) => 'o',
        };
        let mut function = Function {
            args,
            name: name.name.clone(),
            set: false,
            language: "internal".to_owned(),
            body: "aggregate_dummy".to_owned(),
            volatility: 'i',
            parallel: attributes.parallel,
            cost: 1.0,
            ..super::routine::blank()
        };
        let inputs = Inputs {
            all: function.input_types(),
            direct: direct.unwrap_or(0),
            ordered: direct.is_some(),
        };
        if inputs.all.len() >= ast::ARGUMENTS_MAX {
            base::bail!(
                TOO_MANY_ARGUMENTS,
                "aggregates cannot have more than {} arguments",
                ast::ARGUMENTS_MAX - 1
            );
        }
        check_ordered(&function, &inputs, kind)?;
        let aggregate =
            self.assemble_aggregate(&mut function, &inputs, kind, state, &attributes)?;
        function.aggregate = Some(Box::new(aggregate));
        Ok(Utility::CreateRoutine(Box::new(RoutineDef {
            name: Name { position: 0, ..name },
            function,
            replace: stmt.replace,
            body_at: None,
            warnings,
            notices: Vec::new(),
        })))
    }

    fn attributes<'n>(&self, nodes: &'n [pb::Node]) -> Result<(Attributes<'n>, Vec<String>)> {
        let mut out = Attributes { parallel: 'u', ..Attributes::default() };
        let mut warnings = Vec::new();
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let def = def.as_ref();
            match def.defname.as_str() {
                "sfunc" | "sfunc1" => out.transition = self.name_of_def(def),
                "finalfunc" => out.finish = self.name_of_def(def),
                "combinefunc" => out.combine = self.name_of_def(def),
                "serialfunc" => out.serial = self.name_of_def(def),
                "deserialfunc" => out.deserial = self.name_of_def(def),
                "msfunc" => out.moving = self.name_of_def(def),
                "minvfunc" => out.inverse = self.name_of_def(def),
                "mfinalfunc" => out.moving_finish = self.name_of_def(def),
                "sortop" => out.sort = self.name_of_def(def),
                "finalfunc_extra" => out.extra = flag(def),
                "mfinalfunc_extra" => out.moving_extra = flag(def),
                "finalfunc_modify" => out.modify = Some(modify(def)?),
                "mfinalfunc_modify" => out.moving_modify = Some(modify(def)?),
                "hypothetical" => out.hypothetical = flag(def),
                "basetype" => out.base = Some(def),
                "stype" | "stype1" => out.state = Some(self.type_of_def(def)?),
                "mstype" => out.moving_state = Some(self.type_of_def(def)?),
                "sspace" => out.space = number(def),
                "msspace" => out.moving_space = number(def),
                "initcond" | "initcond1" => out.initial = def_value(def),
                "minitcond" => out.moving_initial = def_value(def),
                "parallel" => out.parallel = parallel(def)?,
                other => {
                    warnings.push(format!("aggregate attribute \"{other}\" not recognized"));
                }
            }
        }
        Ok((out, warnings))
    }

    /// The name of a function or operator that an attribute gives.
    pub(crate) fn name_of_def(&self, def: &pb::DefElem) -> Option<Name> {
        let plain =
            |name: &str| Name { schema: None, name: name.to_owned(), position: 0, only: false };
        Some(match inner(&def.arg)? {
            NodeEnum::TypeName(t) => self.name_of_list(&t.names),
            NodeEnum::List(list) => self.name_of_list(&list.items),
            NodeEnum::String(s) => plain(&s.sval),
            _ => plain(&def_value(def)?),
        })
    }

    /// The type that an attribute gives.
    ///
    /// # Errors
    /// `42704`, without a position.
    pub(crate) fn type_of_def(&self, def: &pb::DefElem) -> Result<Oid> {
        let name = match inner(&def.arg) {
            Some(NodeEnum::TypeName(t)) => t.clone(),
            Some(NodeEnum::String(s)) => {
                let names = catalog::system::reg::Names {
                    catalog: self.cx.catalog,
                    path: self.cx.search_path,
                    database: None,
                };
                return names.expect(REGTYPE, &s.sval).map(Oid);
            }
            _ => return Err(err!(SYNTAX_ERROR, "{} requires a parameter", def.defname)),
        };
        self.type_name(&name).map(|t| t.0).map_err(Error::without_position)
    }

    /// BASETYPE of the old form: one argument, or none.
    fn old_arguments(&self, attributes: &Attributes<'_>) -> Result<Vec<FunctionArg>> {
        let Some(def) = attributes.base else {
            return Err(bad("aggregate input type must be specified"));
        };
        if def_value(def).is_some_and(|word| word.eq_ignore_ascii_case("any")) {
            return Ok(Vec::new());
        }
        let ty = self.type_of_def(def)?.0;
        Ok(vec![FunctionArg { name: String::new(), ty, mode: 'i', default: None }])
    }

    /// The arguments, and how many of them are direct.
    fn aggregate_arguments(&self, nodes: &[pb::Node]) -> Result<(Vec<FunctionArg>, Option<usize>)> {
        use pb::FunctionParameterMode as M;
        let list = nodes.first().map_or(&[][..], ast::list);
        let direct = match nodes.get(1).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::Integer(i)) => usize::try_from(i.ival).ok(),
            _ => None,
        };
        let mut args = Vec::with_capacity(list.len());
        for node in list {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else { continue };
            let Some(name) = &p.arg_type else { continue };
            let mode = match M::try_from(p.mode) {
                Ok(M::FuncParamVariadic) => 'v',
                Ok(M::FuncParamOut | M::FuncParamInout | M::FuncParamTable) => {
                    return Err(bad("aggregates cannot have output arguments"));
                }
                _ => 'i',
            };
            if name.setof {
                return Err(bad("aggregates cannot accept set arguments"));
            }
            let ty = self.type_name(name)?.0;
            let array =
                matches!(ty, ANYARRAY | ANYCOMPATIBLEARRAY | ANY) || element_of(ty) != Oid::INVALID;
            if mode == 'v' && !array {
                return Err(bad("VARIADIC parameter must be an array"));
            }
            args.push(FunctionArg { name: p.name.clone(), ty: ty.0, mode, default: None });
        }
        Ok((args, direct))
    }

    /// A type that a state can have.
    fn check_state(&self, state: Oid) -> Result<()> {
        let pseudo = types::TypeIo::get(state).is_none_or(|io| io.category == b'P');
        let allowed = is_polymorphic(state) || state == INTERNAL && self.is_superuser();
        if pseudo && !allowed {
            let name = types::io::format_type(state, -1);
            return Err(bad(format_args!("aggregate transition data type cannot be {name}")));
        }
        Ok(())
    }

    fn is_superuser(&self) -> bool {
        self.cx.catalog.role(self.cx.role).is_some_and(|role| role.superuser)
    }

    /// INITCOND is a value of the state's type, as far as that is known.
    fn check_initial(&self, state: Oid, initial: Option<&str>) -> Result<()> {
        let known = types::TypeIo::get(state).is_some_and(|io| io.category != b'P');
        match initial {
            Some(text) if known => types::io::input(state, -1, text, self.cx.format).map(drop),
            _ => Ok(()),
        }
    }

    fn assemble_aggregate(
        &mut self,
        function: &mut Function,
        inputs: &Inputs,
        kind: char,
        state: Oid,
        a: &Attributes<'_>,
    ) -> Result<Aggregate> {
        let plain = HalfNames {
            transition: a.transition.as_ref(),
            inverse: None,
            finish: a.finish.as_ref(),
            extra: a.extra,
            initial: a.initial.is_some(),
        };
        super::routine::check_deducible_as(
            function,
            state,
            "cannot determine transition data type",
        )?;
        if let Some(moving) = a.moving_state {
            let what = "cannot determine transition data type";
            super::routine::check_deducible_as(function, moving, what)?;
        }
        let (mut steps, _) = self.half(inputs, state, &plain)?;
        let mut moving_steps = None;
        if let Some(moving) = a.moving_state {
            let half = HalfNames {
                transition: a.moving.as_ref(),
                inverse: a.inverse.as_ref(),
                finish: None,
                extra: false,
                initial: a.moving_initial.is_some(),
            };
            moving_steps = Some((moving, self.half(inputs, moving, &half)?.0));
        }
        let result = match a.finish.as_ref() {
            Some(name) => {
                let args = inputs.finish(state, a.extra);
                let (found, result) = self.support_function(name, &args)?;
                if a.extra && found.strict {
                    return Err(err!(
                        DATATYPE_MISMATCH,
                        "final function with extra arguments must not be declared STRICT"
                    ));
                }
                steps.finish = found.oid;
                result
            }
            None => state,
        };
        let combine = self.combine_function(state, a)?;
        let (serial, deserial) = self.serial_functions(a)?;
        if is_polymorphic(result) {
            super::routine::check_deducible_as(
                function,
                result,
                "cannot determine result data type",
            )?;
        }
        if result == INTERNAL && !inputs.all.contains(&INTERNAL) {
            return Err(bad("unsafe use of pseudo-type \"internal\"").detail(
                "A function returning \"internal\" must have at least one \"internal\" argument.",
            ));
        }
        function.result = result.0;
        (steps.space, steps.initial) = (a.space, a.initial.clone());
        let usual = if kind == 'n' { 'r' } else { 'w' };
        (steps.extra, steps.modify) = (a.extra, a.modify.unwrap_or(usual));
        let moving = match moving_steps {
            None => None,
            Some((ty, mut half)) => {
                let made = match &a.moving_finish {
                    Some(name) => {
                        let args = inputs.finish(ty, a.moving_extra);
                        let (found, made) = self.support_function(name, &args)?;
                        if a.moving_extra && found.strict {
                            return Err(err!(
                                DATATYPE_MISMATCH,
                                "final function with extra arguments must not be declared STRICT"
                            ));
                        }
                        half.finish = found.oid;
                        made
                    }
                    None => ty,
                };
                if made != result {
                    return Err(bad(format_args!(
                        "moving-aggregate implementation returns type {}, but plain implementation returns type {}",
                        types::io::format_type(made, -1),
                        types::io::format_type(result, -1)
                    )));
                }
                (half.space, half.initial) = (a.moving_space, a.moving_initial.clone());
                (half.extra, half.modify) = (a.moving_extra, a.moving_modify.unwrap_or(usual));
                Some(half)
            }
        };
        let sort_operator = self.sort_operator(inputs, a)?;
        let direct = inputs.direct as u16;
        Ok(Aggregate {
            kind,
            direct,
            plain: steps,
            moving,
            combine,
            serial,
            deserial,
            sort_operator,
        })
    }

    /// The transition function of one half, and its inverse.
    fn half(
        &mut self,
        inputs: &Inputs,
        state: Oid,
        names: &HalfNames<'_>,
    ) -> Result<(AggregateSteps, RoutineInfo)> {
        let Some(name) = names.transition else {
            return Err(bad("aggregate sfunc must be specified"));
        };
        let args = inputs.transition(state);
        let (found, result) = self.support_function(name, &args)?;
        let check = |result: Oid, what: &str, name: &Name| {
            if result == state {
                return Ok(());
            }
            Err(err!(
                DATATYPE_MISMATCH,
                "return type of {what} {} is not {}",
                full(name),
                types::io::format_type(state, -1)
            ))
        };
        check(result, "transition function", name)?;
        let first = inputs.aggregated().first();
        if found.strict
            && !names.initial
            && first.is_none_or(|first| !is_binary_coercible(self.cx.catalog, *first, state))
        {
            return Err(bad(
                "must not omit initial value when transition function is strict and transition type is not compatible with input type",
            ));
        }
        let mut steps = AggregateSteps {
            transition: found.oid,
            state: state.0,
            modify: 'r',
            ..AggregateSteps::default()
        };
        if let Some(inverse) = names.inverse {
            let (back, result) = self.support_function(inverse, &args)?;
            check(result, "inverse transition function", inverse)?;
            if back.strict != found.strict {
                return Err(bad(
                    "strictness of aggregate's forward and inverse transition functions must match",
                ));
            }
            steps.inverse = back.oid;
        }
        let _ = (names.finish, names.extra);
        Ok((steps, found))
    }

    fn combine_function(&mut self, state: Oid, a: &Attributes<'_>) -> Result<u32> {
        let Some(name) = &a.combine else { return Ok(0) };
        let (found, result) = self.support_function(name, &[state, state])?;
        let ty = types::io::format_type(state, -1);
        if result != state {
            return Err(err!(
                DATATYPE_MISMATCH,
                "return type of combine function {} is not {ty}",
                full(name)
            ));
        }
        if state == INTERNAL && found.strict {
            return Err(bad(format_args!(
                "combine function with transition type {ty} must not be declared STRICT"
            )));
        }
        Ok(found.oid)
    }

    fn serial_functions(&mut self, a: &Attributes<'_>) -> Result<(u32, u32)> {
        let (Some(serial), Some(deserial)) = (&a.serial, &a.deserial) else { return Ok((0, 0)) };
        let wrong = |what: &str, name: &Name, ty: Oid| {
            let ty = types::io::format_type(ty, -1);
            err!(DATATYPE_MISMATCH, "return type of {what} function {} is not {ty}", full(name))
        };
        let (out, result) = self.support_function(serial, &[INTERNAL])?;
        if result != BYTES {
            return Err(wrong("serialization", serial, BYTES));
        }
        let (back, result) = self.support_function(deserial, &[BYTES, INTERNAL])?;
        if result != INTERNAL {
            return Err(wrong("deserialization", deserial, INTERNAL));
        }
        Ok((out.oid, back.oid))
    }

    fn sort_operator(&self, inputs: &Inputs, a: &Attributes<'_>) -> Result<u32> {
        let Some(name) = &a.sort else { return Ok(0) };
        let [ty] = inputs.all[..] else {
            return Err(bad("sort operator can only be specified for single-argument aggregates"));
        };
        let path = self.cx.search_path;
        self.cx
            .catalog
            .operator_named(path, name.schema.as_deref(), &name.name, [ty.0, ty.0])
            .ok_or_else(|| {
                let ty = types::io::format_type(ty, -1);
                err!(UNDEFINED_FUNCTION, "operator does not exist: {ty} {} {ty}", full(name))
            })
    }

    /// A function that an aggregate names, called with these types, and what it returns then.
    fn support_function(&self, name: &Name, inputs: &[Oid]) -> Result<(RoutineInfo, Oid)> {
        let catalog = &self.cx.catalog;
        let schema = name.schema.as_deref();
        let missing = || {
            let text = format!("{}({})", full(name), list(inputs));
            err!(UNDEFINED_FUNCTION, "function {text} does not exist")
        };
        if let Some(schema) = schema.filter(|s| catalog.schema_named(s).is_none()) {
            return Err(err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"));
        }
        let all = catalog::routine::named(catalog, self.cx.search_path, schema, &name.name);
        let mut candidates: Vec<Candidate<RoutineInfo>> = Vec::new();
        for found in all.into_iter().filter_map(|id| catalog::routine::info(catalog, id)) {
            let args = match found.args.last() {
                Some(&ANY) if found.variadic && inputs.len() >= found.args.len() => {
                    let mut args = found.args.clone();
                    args.resize(inputs.len(), ANY);
                    args
                }
                _ if found.args.len() == inputs.len() => found.args.clone(),
                _ => continue,
            };
            if !candidates.iter().any(|c| c.args == args) {
                candidates.push(Candidate { args, item: found });
            }
        }
        let exact = candidates.iter().find(|c| c.args == inputs).cloned();
        let declared = |found: &RoutineInfo| {
            let mut args = found.args.clone();
            args.resize(inputs.len(), ANY);
            args
        };
        let found = match exact {
            Some(exact) => exact.item,
            None => match choose(inputs, candidates) {
                Choice::One(found) => found,
                _ => return Err(missing()),
            },
        };
        if found.kind != 'f' {
            return Err(missing());
        }
        if found.set {
            let text = format!("{}({})", full(name), list(inputs));
            return Err(err!(DATATYPE_MISMATCH, "function {text} returns a set"));
        }
        let args = declared(&found);
        // Between placeholders nothing is known yet: they stand for themselves.
        let open = inputs.iter().zip(&args).any(|(i, a)| is_polymorphic(*i) && is_polymorphic(*a));
        let real = |ty: Oid| {
            if open && is_polymorphic(ty) {
                return ty;
            }
            let pairs = args.iter().copied().zip(inputs.iter().copied());
            super::polymorphic::real_in_call(ty, pairs)
        };
        let reals: Vec<Oid> = args.iter().map(|ty| real(*ty)).collect();
        let fits = inputs
            .iter()
            .zip(&reals)
            .all(|(from, to)| is_binary_coercible(catalog, *from, *to) || is_polymorphic(*from));
        if !fits {
            let text = format!("{}({})", full(name), list(&reals));
            return Err(err!(DATATYPE_MISMATCH, "function {text} requires run-time type coercion"));
        }
        let result = real(found.result);
        Ok((found, result))
    }
}

/// The functions of one half, by name.
struct HalfNames<'a> {
    transition: Option<&'a Name>,
    inverse: Option<&'a Name>,
    finish: Option<&'a Name>,
    extra: bool,
    initial: bool,
}

fn full(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    }
}

fn list(types: &[Oid]) -> String {
    types.iter().map(|t| types::io::format_type(*t, -1)).collect::<Vec<_>>().join(", ")
}

fn flag(def: &pb::DefElem) -> bool {
    def_value(def).is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(false))
}

fn number(def: &pb::DefElem) -> i32 {
    def_value(def).and_then(|v| v.parse().ok()).unwrap_or(0)
}

fn modify(def: &pb::DefElem) -> Result<char> {
    match def_value(def).unwrap_or_default().as_str() {
        "read_only" => Ok('r'),
        "shareable" => Ok('s'),
        "read_write" => Ok('w'),
        _ => Err(err!(
            SYNTAX_ERROR,
            "parameter \"{}\" must be READ_ONLY, SHAREABLE, or READ_WRITE",
            def.defname
        )),
    }
}

fn parallel(def: &pb::DefElem) -> Result<char> {
    match def_value(def).unwrap_or_default().as_str() {
        "safe" => Ok('s'),
        "restricted" => Ok('r'),
        "unsafe" => Ok('u'),
        _ => Err(err!(SYNTAX_ERROR, "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE")),
    }
}

/// All of a moving half, or nothing.
fn check_moving(a: &Attributes<'_>) -> Result<()> {
    if a.moving_state.is_some() {
        if a.moving.is_none() {
            return Err(bad("aggregate msfunc must be specified when mstype is specified"));
        }
        if a.inverse.is_none() {
            return Err(bad("aggregate minvfunc must be specified when mstype is specified"));
        }
        return Ok(());
    }
    let given = [
        (a.moving.is_some(), "msfunc"),
        (a.inverse.is_some(), "minvfunc"),
        (a.moving_finish.is_some(), "mfinalfunc"),
        (a.moving_space != 0, "msspace"),
        (a.moving_initial.is_some(), "minitcond"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, name)) => {
            Err(bad(format_args!("aggregate {name} must not be specified without mstype")))
        }
        None => Ok(()),
    }
}

/// What VARIADIC means for ordered sets.
fn check_ordered(function: &Function, inputs: &Inputs, kind: char) -> Result<()> {
    let variadic = function.args.last().filter(|a| a.mode == 'v').map(|a| Oid(a.ty));
    if kind == 'n' {
        return Ok(());
    }
    if variadic.is_some_and(|ty| ty != ANY) {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "a variadic ordered-set aggregate must use VARIADIC type ANY"
        ));
    }
    if kind == 'h' {
        let (direct, count) = (inputs.direct, inputs.all.len());
        let aggregated = count - direct;
        let same = direct == count && variadic.is_some()
            || direct >= aggregated
                && inputs.all[direct - aggregated..direct] == inputs.all[direct..];
        if !same {
            return Err(bad(
                "a hypothetical-set aggregate must have direct arguments matching its aggregated arguments",
            ));
        }
    }
    Ok(())
}
