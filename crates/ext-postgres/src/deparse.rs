//! Expressions, names and values as SQL for another server.
//!
//! The other server must take each piece as this one does, whatever its search path is (which is `pg_catalog`) and
//! whatever extensions it has: conditions have built-in operators, immutable built-in functions and built-in types
//! only ([`ships`]). Types are written out, so that constants are resolved as they were here.

use base::{Oid, Result};
use catalog::{Column, Table};
use exec::foreign::option;
use sql::expr::RowOp;
use sql::{Expr, walk};
use types::func::{Volatility, quote_literal, quote_name};
use types::{Datum, FormatContext, FunctionRow, oids};

/// Functions from this oid on are not PostgreSQL's.
const OWN_FUNCTIONS: u32 = 9000;

/// Whether a condition means the same on another server.
pub fn ships(e: &Expr) -> bool {
    !walk::any(e, &|part| !is_plain(part))
}

fn is_known(function: &FunctionRow) -> bool {
    function.oid.0 < OWN_FUNCTIONS
        && function.volatility == Volatility::Immutable
        && !function.returns_set
        && types::func::function(function.oid).is_some()
}

/// Whether an expression, its parts apart, is one that other servers know.
fn is_plain(e: &Expr) -> bool {
    if e.ty().0 >= Oid::FIRST_USER.0 {
        return false;
    }
    match e {
        Expr::Const(..)
        | Expr::Param(..)
        | Expr::Column(..)
        | Expr::Slot(..)
        | Expr::Relabel(..)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull { .. }
        | Expr::BooleanTest { .. }
        | Expr::Case { operand: None, .. }
        | Expr::Coalesce(..)
        | Expr::MinMax { .. }
        | Expr::Typmod { .. }
        | Expr::Array { .. } => true,
        Expr::Call { function, .. } => is_known(function),
        Expr::Distinct { equal, .. } | Expr::NullIf { equal, .. } => is_known(equal),
        Expr::ArrayOp { function, .. } => is_known(function) && operator(function).is_some(),
        Expr::RowCompare { fields, .. } => fields.iter().all(|f| is_known(f.2) && is_known(f.3)),
        Expr::Case { operand: Some(_), .. }
        | Expr::Held(_)
        | Expr::InOutCast { .. }
        | Expr::Collate(..)
        | Expr::Subscript { .. }
        | Expr::Row(_)
        | Expr::Subquery(_)
        | Expr::SessionValue(..) => false,
    }
}

/// The operator's characters, if a function is behind one.
fn operator(function: &FunctionRow) -> Option<&'static str> {
    types::func::operators().iter().find(|o| o.function == function.oid).map(|o| o.name)
}

/// A type as SQL, whatever the search path is.
fn type_name(ty: Oid, typmod: i32) -> String {
    types::io::format_type(ty, typmod)
}

/// A value as SQL of its type.
///
/// # Errors
/// Those of printing it.
pub fn constant(value: &Datum, ty: Oid) -> Result<String> {
    let text = match value {
        Datum::Null => return Ok(format!("NULL::{}", type_name(ty, -1))),
        Datum::Bool(value) => return Ok(value.to_string()),
        value => types::io::to_text(ty, value, &FormatContext::default())?,
    };
    let is_number = matches!(
        ty,
        oids::INT2
            | oids::INT4
            | oids::INT8
            | oids::FLOAT4
            | oids::FLOAT8
            | oids::NUMERIC
            | oids::OID
    ) && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let is_plain = is_number && text.bytes().all(|b| b.is_ascii_digit());
    let is_float = text.contains(['.', 'e', 'E']);
    let shown = match is_number {
        true if text.starts_with(['+', '-']) => format!("({text})"),
        true => text.to_string(),
        false => quote_literal(&text),
    };
    Ok(match ty {
        oids::INT4 => shown,
        oids::NUMERIC if is_number && is_float && !is_plain => shown,
        _ => format!("{shown}::{}", type_name(ty, -1)),
    })
}

/// A value as the input of a column: its type is the column's.
///
/// # Errors
/// Those of printing it.
pub fn literal(value: &Datum, ty: Oid) -> Result<String> {
    if value.is_null() {
        return Ok("NULL".to_owned());
    }
    Ok(quote_literal(&types::io::to_text(ty, value, &FormatContext::default())?))
}

/// The name of a table on its server.
pub fn table_name(table: &Table, schema: Option<&str>) -> String {
    let options = table.foreign.as_ref().map_or(&[][..], |f| &f.options[..]);
    let schema = option(options, "schema_name").or(schema);
    let name = option(options, "table_name").unwrap_or(&table.name);
    match schema {
        Some(schema) => format!("{}.{}", quote_name(schema), quote_name(name)),
        None => quote_name(name),
    }
}

/// The name of a column on its server.
pub fn column_name(column: &Column) -> String {
    quote_name(option(&column.foreign_options, "column_name").unwrap_or(&column.name))
}

/// Writes expressions.
pub struct Deparser<'a> {
    /// The table's columns on its server, in their order.
    pub columns: Vec<String>,
    /// The value of an expression without columns; None: it isn't known yet.
    pub value: &'a mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
    /// Parameters that are not known yet, so far.
    pub unknown: usize,
}

impl Deparser<'_> {
    /// For the rows of a table.
    pub fn new<'a>(
        table: &Table,
        value: &'a mut dyn FnMut(&Expr) -> Result<Option<Datum>>,
    ) -> Deparser<'a> {
        let columns = table.columns.iter().map(column_name).collect();
        Deparser { columns, value, unknown: 0 }
    }

    /// ` WHERE …`, or nothing.
    ///
    /// # Errors
    /// Those of evaluating the parts.
    pub fn conditions(&mut self, conditions: &[Expr]) -> Result<String> {
        let texts: Result<Vec<String>> =
            conditions.iter().map(|e| Ok(format!("({})", self.text(e)?))).collect();
        let texts = texts?;
        Ok(match texts.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", texts.join(" AND ")),
        })
    }

    fn list(&mut self, all: &[Expr], between: &str) -> Result<String> {
        let texts: Result<Vec<String>> = all.iter().map(|e| self.text(e)).collect();
        Ok(texts?.join(between))
    }

    fn given(&mut self, e: &Expr) -> Result<String> {
        match (self.value)(e)? {
            Some(value) => constant(&value, e.ty()),
            None => {
                self.unknown += 1;
                Ok(format!("${}::{}", self.unknown, type_name(e.ty(), -1)))
            }
        }
    }

    /// An operand of an operator: a string beside a column of its type needs no type of its own.
    fn operand(&mut self, e: &Expr, other: &Expr) -> Result<String> {
        let beside = matches!(other, Expr::Column(_, ty) if *ty == e.ty());
        let text = self.text(e)?;
        let label = format!("'::{}", type_name(e.ty(), -1));
        Ok(match e {
            Expr::Const(..) if beside && text.ends_with(&label) => {
                text[..text.len() - label.len() + 1].to_owned()
            }
            _ => text,
        })
    }

    fn call(&mut self, function: &FunctionRow, args: &[Expr]) -> Result<String> {
        match (operator(function), args) {
            (Some(op), [a, b]) => {
                let (a, b) = (self.operand(a, b)?, self.operand(b, a)?);
                return Ok(format!("({a} {op} {b})"));
            }
            (Some(op), [a]) => return Ok(format!("({op} {})", self.text(a)?)),
            _ => {}
        }
        let is_cast = args.len() == 1
            && types::func::cast(args[0].ty(), function.result)
                .is_some_and(|c| c.method == types::func::CastMethod::Function(function.oid));
        if is_cast {
            return Ok(format!("({})::{}", self.text(&args[0])?, type_name(function.result, -1)));
        }
        Ok(format!("{}({})", quote_name(function.name), self.list(args, ", ")?))
    }

    /// An expression as SQL.
    ///
    /// # Errors
    /// Those of evaluating the parts without columns.
    pub fn text(&mut self, e: &Expr) -> Result<String> {
        sched::check_stack()?;
        let not = |negated: bool| if negated { "NOT " } else { "" };
        Ok(match e {
            Expr::Const(value, ty) => constant(value, *ty)?,
            Expr::Column(n, _) => match self.columns.get(usize::from(*n)) {
                Some(name) => name.clone(),
                None => return Err(base::Error::internal("a column of no table")),
            },
            Expr::Param(..) | Expr::Slot(..) => self.given(e)?,
            Expr::Call { .. } | Expr::Typmod { .. } | Expr::Coalesce(..) | Expr::MinMax { .. }
                if !walk::has_columns(e) && walk::any(e, &is_given) =>
            {
                self.given(e)?
            }
            Expr::Call { function, args, .. } => self.call(function, args)?,
            Expr::Typmod { arg, ty, typmod, .. } | Expr::InOutCast { arg, ty, typmod } => {
                format!("({})::{}", self.text(arg)?, type_name(*ty, *typmod))
            }
            Expr::Collate(arg, ..) => self.text(arg)?,
            Expr::Relabel(arg, ty) => match walk::has_columns(arg) {
                // The operators of a type of the same form take it as it is.
                true if *ty == oids::TEXT && arg.ty() == oids::VARCHAR => {
                    format!("({})::text", self.text(arg)?)
                }
                _ => format!("({})::{}", self.text(arg)?, type_name(*ty, -1)),
            },
            Expr::And(args) => format!("({})", self.list(args, " AND ")?),
            Expr::Or(args) => format!("({})", self.list(args, " OR ")?),
            Expr::Not(arg) => format!("(NOT {})", self.text(arg)?),
            Expr::IsNull { arg, negated } => {
                format!("({} IS {}NULL)", self.text(arg)?, not(*negated))
            }
            Expr::BooleanTest { arg, is, negated } => {
                let word = match is {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("({} IS {}{word})", self.text(arg)?, not(*negated))
            }
            Expr::Distinct { args, negated, .. } => {
                let (a, b) = (self.text(&args[0])?, self.text(&args[1])?);
                format!("({a} IS {}DISTINCT FROM {b})", not(*negated))
            }
            Expr::Case { arms, default, .. } => {
                let mut out = "CASE".to_owned();
                for (test, result) in arms {
                    out += &format!(" WHEN {} THEN {}", self.text(test)?, self.text(result)?);
                }
                format!("({out} ELSE {} END)", self.text(default)?)
            }
            Expr::Coalesce(args, _) => format!("COALESCE({})", self.list(args, ", ")?),
            Expr::NullIf { args, .. } => {
                format!("NULLIF({}, {})", self.text(&args[0])?, self.text(&args[1])?)
            }
            Expr::MinMax { greatest, args, .. } => {
                let word = if *greatest { "GREATEST" } else { "LEAST" };
                format!("{word}({})", self.list(args, ", ")?)
            }
            Expr::ArrayOp { function, left, array, all } => {
                let op = operator(function).unwrap_or("=");
                let word = if *all { "ALL" } else { "ANY" };
                format!("({} {op} {word} ({}))", self.text(left)?, self.text(array)?)
            }
            Expr::Array { items, ty, .. } => {
                format!("ARRAY[{}]::{}", self.list(items, ", ")?, type_name(*ty, -1))
            }
            Expr::RowCompare { op, fields } => {
                let mut sides = [Vec::new(), Vec::new()];
                for field in fields {
                    sides[0].push(self.text(&field.0)?);
                    sides[1].push(self.text(&field.1)?);
                }
                let op = match op {
                    RowOp::Eq => "=",
                    RowOp::Ne => "<>",
                    RowOp::Lt => "<",
                    RowOp::Le => "<=",
                    RowOp::Gt => ">",
                    RowOp::Ge => ">=",
                };
                let [left, right] = sides.map(|side| side.join(", "));
                format!("(ROW({left}) {op} ROW({right}))")
            }
            Expr::Held(_)
            | Expr::Subscript { .. }
            | Expr::Row(_)
            | Expr::Subquery(_)
            | Expr::SessionValue(..) => {
                return Err(base::Error::internal("an expression that does not ship"));
            }
        })
    }
}

fn is_given(e: &Expr) -> bool {
    matches!(e, Expr::Param(..) | Expr::Slot(..))
}

/// A value that a server sent.
///
/// # Errors
/// Those of reading it.
pub fn value_of(
    text: Option<&String>,
    (ty, typmod): (Oid, i32),
    format: &FormatContext,
) -> Result<Datum> {
    match text {
        None => Ok(Datum::Null),
        Some(text) => types::io::input(ty, typmod, text, format),
    }
}
