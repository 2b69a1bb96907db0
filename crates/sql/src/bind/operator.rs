//! Operators: look-up, and the calls they become.

use base::{Error, Oid, Result, err};
use types::func::{CastContext, FunctionRow, OperatorRow};
use types::oids::*;

use crate::expr::{BY_SHORT_SYNTAX, BY_SYNTAX, Expr};

use super::Binder;
use super::coerce::base_of;
use super::function::Signature;
use super::overload::{Candidate, Choice, choose};

/// The operator with this name for these types, without casts.
pub(crate) fn exact(name: &str, left: Oid, right: Oid) -> Option<&'static OperatorRow> {
    types::func::operators_named(name).iter().find(|o| o.left == left && o.right == right)
}

/// The function of a comparison operator over one type.
pub(crate) fn comparison(name: &str, ty: Oid) -> Option<&'static FunctionRow> {
    let row = find(name, ty, ty)?;
    types::func::function(row.function)
}

/// The operator for two operands, casts allowed.
pub(crate) fn find(name: &str, left: Oid, right: Oid) -> Option<&'static OperatorRow> {
    match resolve(name, left, right) {
        Choice::One(row) => Some(row),
        _ => None,
    }
}

fn resolve(name: &str, left: Oid, right: Oid) -> Choice<&'static OperatorRow> {
    // An unknown side is first tried as the other side's type.
    let (l, r) = match (left, right) {
        (UNKNOWN, r) if r != UNKNOWN => (r, r),
        (l, UNKNOWN) if l != UNKNOWN => (l, l),
        both => both,
    };
    if let Some(row) = exact(name, l, r).or_else(|| exact(name, base_of(l), base_of(r))) {
        return Choice::One(row);
    }
    let candidates = types::func::operators_named(name)
        .iter()
        .filter(|o| o.left != Oid::INVALID)
        .map(|o| Candidate { args: vec![o.left, o.right], item: o })
        .collect();
    choose(&[left, right], candidates)
}

fn resolve_prefix(name: &str, right: Oid) -> Choice<&'static OperatorRow> {
    let candidates = types::func::operators_named(name)
        .iter()
        .filter(|o| o.left == Oid::INVALID)
        .map(|o| Candidate { args: vec![o.right], item: o })
        .collect();
    choose(&[right], candidates)
}

/// An operator's name as written: with a schema in `OPERATOR(schema.op)`.
#[derive(Clone, Copy)]
pub(crate) struct OperatorPath<'n> {
    /// The schema.
    pub schema: Option<&'n str>,
    /// Its characters.
    pub name: &'n str,
}

impl<'n> From<&'n str> for OperatorPath<'n> {
    fn from(name: &'n str) -> OperatorPath<'n> {
        OperatorPath { schema: None, name }
    }
}

impl OperatorPath<'_> {
    fn shown(self) -> String {
        match self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// An operator that was found: a row of the table, or a user's.
#[derive(Clone, Copy)]
pub(crate) struct FoundOperator {
    left: Oid,
    right: Oid,
    result: Oid,
    /// Its oid, if it is a user's.
    own: Oid,
    function: Oid,
}

impl From<&OperatorRow> for FoundOperator {
    fn from(row: &OperatorRow) -> FoundOperator {
        let OperatorRow { left, right, result, function, .. } = *row;
        FoundOperator { left, right, result, own: Oid::INVALID, function }
    }
}

impl From<&catalog::Operator> for FoundOperator {
    fn from(o: &catalog::Operator) -> FoundOperator {
        FoundOperator {
            left: Oid(o.left),
            right: Oid(o.right),
            result: Oid(o.result),
            own: Oid(o.oid),
            function: Oid(o.function),
        }
    }
}

impl Binder<'_> {
    /// The operator for these operands; no left one for a prefix operator.
    fn find_operator(
        &self,
        path: OperatorPath<'_>,
        left: Option<Oid>,
        right: Oid,
        position: u32,
    ) -> Result<FoundOperator> {
        let name = path.name;
        let users = self.cx.catalog.has_operators_named(name);
        let choice = if path.schema.is_none() && !users {
            let found = match left {
                Some(left) => resolve(name, left, right),
                None => resolve_prefix(name, right),
            };
            match found {
                Choice::One(row) => Choice::One(row.into()),
                Choice::None => Choice::None,
                Choice::Ambiguous => Choice::Ambiguous,
            }
        } else {
            self.choose_operator(path, left, right, position)?
        };
        match choice {
            Choice::One(found) if found.own != Oid::INVALID && found.function == Oid::INVALID => {
                let text = signature_text(&path.shown(), left, right);
                Err(err!(UNDEFINED_FUNCTION, "operator is only a shell: {text}").at(position))
            }
            Choice::One(found) => Ok(found),
            Choice::None => Err(missing(&path.shown(), left, right, position)),
            Choice::Ambiguous => Err(ambiguous(&path.shown(), left, right, position)),
        }
    }

    /// The same among users' operators and those of the table, earlier schemas first.
    fn choose_operator(
        &self,
        path: OperatorPath<'_>,
        left: Option<Oid>,
        right: Oid,
        position: u32,
    ) -> Result<Choice<FoundOperator>> {
        use catalog::object::ids::PG_CATALOG;
        let catalog = self.cx.catalog;
        let schemas: Vec<u32> = match path.schema {
            Some(schema) => match catalog.schema_named(schema) {
                Some(found) => {
                    self.check_schema(schema, position)?;
                    vec![found.oid]
                }
                None => {
                    return Err(
                        err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist").at(position)
                    );
                }
            },
            None => {
                let searched = self.cx.search_path;
                let first = (!searched.contains(&PG_CATALOG)).then_some(PG_CATALOG);
                first.into_iter().chain(searched.iter().copied()).collect()
            }
        };
        let mut all: Vec<FoundOperator> = Vec::new();
        let mut add = |new: FoundOperator| {
            let same = |o: &FoundOperator| (o.left, o.right) == (new.left, new.right);
            if (new.left != Oid::INVALID) == left.is_some() && !all.iter().any(same) {
                all.push(new);
            }
        };
        for schema in schemas {
            if schema == PG_CATALOG {
                types::func::operators_named(path.name).iter().for_each(|row| add(row.into()));
                continue;
            }
            let own = catalog.operators_named(path.name).filter(|o| o.schema == schema);
            own.for_each(|o| add(o.into()));
        }
        let inputs: Vec<Oid> = left.into_iter().chain([right]).collect();
        let types = |o: &FoundOperator| match left {
            Some(_) => vec![o.left, o.right],
            None => vec![o.right],
        };
        // An unknown side is first tried as the other side's type.
        let same: Vec<Oid> = match inputs[..] {
            [UNKNOWN, r] => vec![r, r],
            [l, UNKNOWN] => vec![l, l],
            _ => inputs.clone(),
        };
        let bases: Vec<Oid> = same.iter().map(|ty| base_of(*ty)).collect();
        let exact = |wanted: &[Oid]| all.iter().find(|o| types(o) == wanted).copied();
        if let Some(found) = exact(&same).or_else(|| exact(&bases)) {
            return Ok(Choice::One(found));
        }
        let candidates = all.iter().map(|o| Candidate { args: types(o), item: *o }).collect();
        Ok(choose(&inputs, candidates))
    }

    /// The operator between two values of a type, by its name: its oid, its function's, its commutator's, and how it is
    /// shown.
    pub(super) fn operator_over(
        &self,
        names: &[String],
        ty: Oid,
    ) -> Result<(Oid, Oid, Oid, String)> {
        let (name, schema) = match names {
            [schema, name] => (name.as_str(), Some(schema.as_str())),
            [.., name] => (name.as_str(), None),
            [] => ("", None),
        };
        let found = self.find_operator(OperatorPath { schema, name }, Some(ty), ty, 0)?;
        let (oid, commutator) = match self.cx.catalog.operator(found.own.0) {
            Some(own) => (Oid(own.oid), Oid(own.commutator)),
            None => {
                let all = types::func::operators_named(name).iter();
                let same = |row: &&types::func::OperatorRow| {
                    (row.left, row.right) == (found.left, found.right)
                };
                all.filter(same).map(|row| (row.oid, row.commutator)).next().unwrap_or_default()
            }
        };
        let side = |ty: Oid| types::io::format_type(ty, -1);
        let shown = format!("{name}({},{})", side(found.left), side(found.right));
        Ok((oid, found.function, commutator, shown))
    }

    /// What an operator calls.
    fn function_of(
        &mut self,
        found: FoundOperator,
        name: &str,
        position: u32,
    ) -> Result<&'static FunctionRow> {
        if found.own == Oid::INVALID {
            return types::func::function(found.function).ok_or_else(|| {
                let (left, right) = (found.left, found.right);
                let text = signature_text(name, Some(left), right);
                Error::unsupported(format!("operator {text}")).at(position)
            });
        }
        let row = self.callable(found.function.0, position)?;
        self.note_call(row.oid);
        self.note_use(found.own.0, 0);
        Ok(crate::routine::operator_row(found.own.0, row))
    }

    /// `left op right`.
    pub(crate) fn binary<'n>(
        &mut self,
        name: impl Into<OperatorPath<'n>>,
        left: Expr,
        right: Expr,
        position: u32,
    ) -> Result<Expr> {
        let path = name.into();
        let found = self.find_operator(path, Some(left.ty()), right.ty(), position)?;
        self.operator_call(found, path.name, vec![left, right], position)
    }

    /// `op right`.
    pub(crate) fn prefix<'n>(
        &mut self,
        name: impl Into<OperatorPath<'n>>,
        right: Expr,
        position: u32,
    ) -> Result<Expr> {
        let path = name.into();
        let found = self.find_operator(path, None, right.ty(), position)?;
        self.operator_call(found, path.name, vec![right], position)
    }

    fn operator_call(
        &mut self,
        found: FoundOperator,
        name: &str,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        let function = self.function_of(found, name, position)?;
        self.expands |= function.returns_set;
        let declared: &[Oid] =
            if found.left == Oid::INVALID { &[found.right] } else { &[found.left, found.right] };
        let signature = Signature { declared, result: found.result };
        let (args, ty) = self.fit(&signature, args, position)?;
        self.collated_call(function, args, ty, position)
    }

    /// The comparison operator between two operands and both sides cast for it.
    pub(crate) fn compare(
        &mut self,
        name: &str,
        left: Expr,
        right: Expr,
        position: u32,
    ) -> Result<(&'static FunctionRow, Expr, Expr)> {
        let row = self.find_operator(name.into(), Some(left.ty()), right.ty(), position)?;
        let function = self.function_of(row, name, position)?;
        let signature = Signature { declared: &[row.left, row.right], result: row.result };
        let (mut args, _) = self.fit(&signature, vec![left, right], position)?;
        match (args.pop(), args.pop()) {
            (Some(right), Some(left)) => self.collated_pair(function, left, right),
            _ => Err(err!(INTERNAL_ERROR, "comparison without two sides")),
        }
    }

    /// `left op ANY|ALL (array)`.
    pub(crate) fn array_operator<'n>(
        &mut self,
        name: impl Into<OperatorPath<'n>>,
        left: Expr,
        array: Expr,
        all: bool,
        position: u32,
    ) -> Result<Expr> {
        let path = name.into();
        let name = path.name;
        let lt = left.ty();
        let mut at = array.ty();
        let element = if at == UNKNOWN { UNKNOWN } else { super::coerce::element_of(at) };
        if element == Oid::INVALID {
            return Err(err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side")
                .at(position));
        }
        let row = self.find_operator(path, Some(lt), element, position)?;
        if row.result != BOOL {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires operator to yield boolean"
            )
            .at(position));
        }
        let function = self.function_of(row, name, position)?;
        let (left_type, right_type) = match (row.left, row.right) {
            (l, r) if super::coerce::is_polymorphic(l) || super::coerce::is_polymorphic(r) => {
                let or = |ty, other| if ty == UNKNOWN { other } else { ty };
                (or(lt, element), or(element, lt))
            }
            other => other,
        };
        let Some(left) = self.coerce(left, left_type, CastContext::Implicit, position)? else {
            return Err(missing(name, Some(lt), element, position));
        };
        let wanted = super::coerce::array_of(right_type);
        let row = right_type == RECORD && types::user::shape(element).is_some();
        let same = element == right_type || super::coerce::element_of(at) == right_type;
        let array = if row || same {
            array
        } else {
            if at == UNKNOWN {
                at = wanted;
            }
            match self.coerce(array, wanted, CastContext::Implicit, position)? {
                Some(array) => array,
                None => return Err(missing(name, Some(lt), at, position)),
            }
        };
        let (function, left, array) = self.collated_pair(function, left, array)?;
        Ok(Expr::ArrayOp { function, left: Box::new(left), array: Box::new(array), all })
    }
}

fn signature_text(name: &str, left: Option<Oid>, right: Oid) -> String {
    let right = types::io::format_type(right, -1);
    match left {
        Some(left) => format!("{} {name} {right}", types::io::format_type(left, -1)),
        None => format!("{name} {right}"),
    }
}

/// `42883`.
pub(crate) fn missing(name: &str, left: Option<Oid>, right: Oid, position: u32) -> Error {
    let text = signature_text(name, left, right);
    let hint = if left.is_some() {
        "No operator matches the given name and argument types. You might need to add explicit type casts."
    } else {
        "No operator matches the given name and argument type. You might need to add an explicit type cast."
    };
    err!(UNDEFINED_FUNCTION, "operator does not exist: {text}").hint(hint).at(position)
}

fn ambiguous(name: &str, left: Option<Oid>, right: Oid, position: u32) -> Error {
    let text = signature_text(name, left, right);
    err!(AMBIGUOUS_FUNCTION, "operator is not unique: {text}")
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
        .at(position)
}

/// A call, marked if words of SQL made it.
pub(super) fn marked(call: Expr, by: &pg_query::protobuf::FuncCall) -> Expr {
    let syntax = pg_query::protobuf::CoercionForm::CoerceSqlSyntax as i32;
    match call {
        Expr::Call { function, args, ty, position }
            if by.funcformat == syntax && function.oid < Oid::FIRST_USER =>
        {
            let mark = if by.args.len() < args.len() { BY_SHORT_SYNTAX } else { BY_SYNTAX };
            let function = crate::routine::operator_row(mark.0, function);
            Expr::Call { function, args, ty, position }
        }
        other => other,
    }
}
