//! Expressions as SQL, near enough to what was written.

use std::collections::HashMap;

use base::Oid;
use sql::expr::{RowOp, SortKey, SubqueryKind};
use sql::{Expr, walk};
use types::func::internal;
use types::{Datum, FormatContext, FunctionRow, oids};

/// What names mean where an expression stands.
pub struct Names<'a> {
    /// Columns of the input row.
    pub columns: &'a [String],
    /// What slots were filled with.
    pub slots: &'a HashMap<u16, String>,
    /// For constants.
    pub format: &'a FormatContext,
}

/// The operator's characters, if a function is behind one.
fn operator(function: &FunctionRow) -> Option<&'static str> {
    types::func::operators().iter().find(|o| o.function == function.oid).map(|o| o.name)
}

fn constant(value: &Datum, ty: Oid, format: &FormatContext) -> String {
    let text = match value {
        Datum::Null => return format!("NULL::{}", types::io::format_type(ty, -1)),
        Datum::Bool(value) => return value.to_string(),
        value => types::io::to_text(ty, value, format).unwrap_or_default(),
    };
    match ty {
        oids::INT4 | oids::INT2 if !text.starts_with('-') => text.to_string(),
        _ => {
            let quoted = text.as_str().replace('\'', "''");
            format!("'{quoted}'::{}", types::io::format_type(ty, -1))
        }
    }
}

impl Names<'_> {
    fn list(&self, exprs: &[Expr], between: &str) -> String {
        let texts: Vec<String> = exprs.iter().map(|e| self.text(e)).collect();
        texts.join(between)
    }

    fn call(&self, function: &FunctionRow, args: &[Expr]) -> String {
        if function.oid == internal::SORT_KEY.oid {
            return self.text(&args[0]);
        }
        let cased = [&internal::LOWER, &internal::UPPER, &internal::INITCAP];
        if cased.iter().any(|f| f.oid == function.oid) {
            return format!("{}({})", function.name, self.text(&args[0]));
        }
        match (operator(function), args) {
            (Some(op), [a, b]) => format!("({} {op} {})", self.text(a), self.text(b)),
            (Some(op), [a]) => format!("({op} {})", self.text(a)),
            _ => {
                let is_cast = args.len() == 1
                    && types::func::cast(args[0].ty(), function.result).is_some_and(|c| {
                        c.method == types::func::CastMethod::Function(function.oid)
                    });
                if is_cast {
                    let ty = types::io::format_type(function.result, -1);
                    return format!("({})::{ty}", self.text(&args[0]));
                }
                format!("{}({})", function.name, self.list(args, ", "))
            }
        }
    }

    /// An expression as SQL.
    pub fn text(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const(value, ty) => constant(value, *ty, self.format),
            Expr::Param(n, _) => format!("${}", n + 1),
            Expr::Column(n, _) => match self.columns.get(usize::from(*n)) {
                Some(name) => name.clone(),
                None => format!("column{n}"),
            },
            Expr::Slot(n, _) => match self.slots.get(n) {
                Some(name) => name.clone(),
                None => format!("$slot{n}"),
            },
            Expr::Call { function, args, .. } => self.call(function, args),
            Expr::InOutCast { arg, ty, typmod } | Expr::Typmod { arg, ty, typmod, .. } => {
                format!("({})::{}", self.text(arg), types::io::format_type(*ty, *typmod))
            }
            Expr::Collate(arg, ..) => self.text(arg),
            Expr::Relabel(arg, ty) => {
                format!("({})::{}", self.text(arg), types::io::format_type(*ty, -1))
            }
            Expr::And(args) => format!("({})", self.list(args, " AND ")),
            Expr::Or(args) => format!("({})", self.list(args, " OR ")),
            Expr::Not(arg) => format!("(NOT {})", self.text(arg)),
            Expr::IsNull { arg, negated } => {
                format!("({} IS {}NULL)", self.text(arg), not(*negated))
            }
            Expr::BooleanTest { arg, is, negated } => {
                let word = match is {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("({} IS {}{word})", self.text(arg), not(*negated))
            }
            Expr::Distinct { args, negated, .. } => {
                let (a, b) = (self.text(&args[0]), self.text(&args[1]));
                format!("({a} IS {}DISTINCT FROM {b})", not(*negated))
            }
            Expr::Case { operand, arms, default, .. } => {
                let mut out = "CASE".to_owned();
                out.extend(operand.iter().map(|e| format!(" {}", self.text(e))));
                for (test, result) in arms {
                    let test = walk::compared_with_held(test).unwrap_or(test);
                    out += &format!(" WHEN {} THEN {}", self.text(test), self.text(result));
                }
                format!("{out} ELSE {} END", self.text(default))
            }
            Expr::Held(_) => "CASE_TEST_EXPR".to_owned(),
            Expr::Coalesce(args, _) => format!("COALESCE({})", self.list(args, ", ")),
            Expr::NullIf { args, .. } => {
                format!("NULLIF({}, {})", self.text(&args[0]), self.text(&args[1]))
            }
            Expr::MinMax { greatest, args, .. } => {
                let word = if *greatest { "GREATEST" } else { "LEAST" };
                format!("{word}({})", self.list(args, ", "))
            }
            Expr::ArrayOp { function, left, array, all } => {
                let op = operator(function).unwrap_or("?");
                let word = if *all { "ALL" } else { "ANY" };
                format!("({} {op} {word} ({}))", self.text(left), self.text(array))
            }
            Expr::Array { items, .. } => format!("ARRAY[{}]", self.list(items, ", ")),
            Expr::Subscript { array, indexes, .. } => {
                format!("({})[{}]", self.text(array), self.list(indexes, "]["))
            }
            Expr::Row(items) => format!("ROW({})", self.list(items, ", ")),
            Expr::RowCompare { op, fields } => {
                let left: Vec<String> = fields.iter().map(|f| self.text(&f.0)).collect();
                let right: Vec<String> = fields.iter().map(|f| self.text(&f.1)).collect();
                let op = match op {
                    RowOp::Eq => "=",
                    RowOp::Ne => "<>",
                    RowOp::Lt => "<",
                    RowOp::Le => "<=",
                    RowOp::Gt => ">",
                    RowOp::Ge => ">=",
                };
                format!("(ROW({}) {op} ROW({}))", left.join(", "), right.join(", "))
            }
            Expr::Subquery(query) => {
                let name = format!("SubPlan {}", query.plan + 1);
                match query.kind {
                    SubqueryKind::Exists => format!("EXISTS({name})"),
                    SubqueryKind::Compare { .. } if query.is_hashed() => {
                        format!("(hashed {name})")
                    }
                    SubqueryKind::Compare { .. } => format!("({name})"),
                    _ if query.once => format!("(InitPlan {})", query.plan + 1),
                    _ => format!("({name})"),
                }
            }
            Expr::SessionValue(name, _) => name.as_str().to_uppercase(),
        }
    }

    /// A sort key.
    pub fn sort_key(&self, key: &SortKey) -> String {
        let mut out = self.text(&key.expr);
        if let Expr::Call { function, args, .. } = &key.expr
            && function.oid == internal::SORT_KEY.oid
            && let Expr::Const(Datum::Text(name), _) = &args[2]
        {
            out += " COLLATE ";
            out += name.as_str();
        }
        if key.descending {
            out += " DESC";
        }
        match (key.descending, key.nulls_first) {
            (false, true) => out += " NULLS FIRST",
            (true, false) => out += " NULLS LAST",
            _ => {}
        }
        out
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}
