//! Operators: look-up, and the calls they become.

use base::{Error, Oid, Result, err};
use types::func::{CastContext, FunctionRow, OperatorRow};
use types::oids::*;

use crate::expr::Expr;

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

impl Binder<'_> {
    /// `left op right`.
    pub(crate) fn binary(
        &mut self,
        name: &str,
        left: Expr,
        right: Expr,
        position: u32,
    ) -> Result<Expr> {
        let (lt, rt) = (left.ty(), right.ty());
        let row = match resolve(name, lt, rt) {
            Choice::One(row) => row,
            Choice::None => return Err(missing(name, Some(lt), rt, position)),
            Choice::Ambiguous => return Err(ambiguous(name, Some(lt), rt, position)),
        };
        self.operator_call(row, vec![left, right], position)
    }

    /// `op right`.
    pub(crate) fn prefix(&mut self, name: &str, right: Expr, position: u32) -> Result<Expr> {
        let ty = right.ty();
        match resolve_prefix(name, ty) {
            Choice::One(row) => self.operator_call(row, vec![right], position),
            Choice::None => Err(missing(name, None, ty, position)),
            Choice::Ambiguous => Err(ambiguous(name, None, ty, position)),
        }
    }

    fn operator_call(
        &mut self,
        row: &'static OperatorRow,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        let function = operator_function(row, position)?;
        let declared: &[Oid] =
            if row.left == Oid::INVALID { &[row.right] } else { &[row.left, row.right] };
        let signature = Signature { declared, result: row.result };
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
        let (lt, rt) = (left.ty(), right.ty());
        let row = match resolve(name, lt, rt) {
            Choice::One(row) => row,
            Choice::None => return Err(missing(name, Some(lt), rt, position)),
            Choice::Ambiguous => return Err(ambiguous(name, Some(lt), rt, position)),
        };
        let function = operator_function(row, position)?;
        let signature = Signature { declared: &[row.left, row.right], result: row.result };
        let (mut args, _) = self.fit(&signature, vec![left, right], position)?;
        match (args.pop(), args.pop()) {
            (Some(right), Some(left)) => self.collated_pair(function, left, right),
            _ => Err(err!(INTERNAL_ERROR, "comparison without two sides")),
        }
    }

    /// `left op ANY|ALL (array)`.
    pub(crate) fn array_operator(
        &mut self,
        name: &str,
        left: Expr,
        array: Expr,
        all: bool,
        position: u32,
    ) -> Result<Expr> {
        let lt = left.ty();
        let mut at = array.ty();
        let element = if at == UNKNOWN { UNKNOWN } else { super::coerce::element_of(at) };
        if element == Oid::INVALID {
            return Err(err!(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side")
                .at(position));
        }
        let row = match resolve(name, lt, element) {
            Choice::One(row) => row,
            Choice::None => return Err(missing(name, Some(lt), element, position)),
            Choice::Ambiguous => return Err(ambiguous(name, Some(lt), element, position)),
        };
        if row.result != BOOL {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires operator to yield boolean"
            )
            .at(position));
        }
        let function = operator_function(row, position)?;
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

fn operator_function(row: &OperatorRow, position: u32) -> Result<&'static FunctionRow> {
    types::func::function(row.function).ok_or_else(|| {
        Error::unsupported(format!(
            "operator {} {} {}",
            types::io::format_type(row.left, -1),
            row.name,
            types::io::format_type(row.right, -1)
        ))
        .at(position)
    })
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
