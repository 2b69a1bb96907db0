//! Stored expressions (defaults, checks) as PostgreSQL prints them: bound again without computing
//! constants, every cast that was implied is written out, every operator in parentheses; the
//! pretty form leaves out the parentheses that precedence makes unnecessary.
//!
//! Subqueries and aggregates can't stand in such expressions and are not printed. Functions that words of SQL called are
//! written so again: `EXTRACT(day FROM x)`, `x AT TIME ZONE 'UTC'`.

use std::sync::Arc;

use base::{Oid, Result};
use catalog::Table;
use catalog::definition::quote_ident;
use pg_query::protobuf as pb;
use types::Datum;
use types::func::{CastMethod, FunctionRow, internal};
use types::oids::*;

use crate::bind::{Binder, ast};
use crate::expr::{BY_SHORT_SYNTAX, BY_SYNTAX, Expr, RowOp};
use crate::parse::parse_expr;
use crate::prepare::PrepareContext;
use crate::walk;

/// A type's name in an expression: `character` without a length would mean one letter.
pub(crate) fn format_type(ty: Oid, typmod: i32) -> String {
    match (ty, typmod) {
        (BPCHAR, ..0) => quote_ident("bpchar"),
        // One without a length would be one bit.
        (BIT, ..0) => "\"bit\"".to_owned(),
        (BIT_ARRAY, ..0) => "\"bit\"[]".to_owned(),
        (BPCHAR_ARRAY, ..0) => format!("{}[]", quote_ident("bpchar")),
        _ => types::io::format_type(ty, typmod),
    }
}

/// `bpchar[]`.
const BPCHAR_ARRAY: Oid = Oid(1014);
/// `bit[]`.
const BIT_ARRAY: Oid = Oid(1561);

/// A check's expression.
///
/// # Errors
/// An expression that can't be bound any more.
pub fn check(cx: &PrepareContext<'_>, table: &Table, sql: &str, pretty: bool) -> Result<String> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let rel = binder.table_rel(Arc::new(table.clone()), &table.name)?;
    let expr = binder.check_expr(&rel, &node)?;
    Ok(Printer { binder: &binder, pretty, by_oid: false, names: None, indent: 0 }.outer(&expr))
}

/// A domain's condition over VALUE.
///
/// # Errors
/// An expression that can't be bound any more.
pub fn domain_check(
    cx: &PrepareContext<'_>,
    sql: &str,
    base: Oid,
    typmod: i32,
    pretty: bool,
) -> Result<String> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let expr = binder.domain_condition(&node, base, typmod)?;
    let printer =
        Printer { binder: &binder, pretty, by_oid: false, names: Some(&Value), indent: 0 };
    Ok(printer.outer(&expr))
}

/// The only column of a domain's condition.
pub(crate) struct Value;

impl Names for Value {
    fn column(&self, _: u16) -> Option<String> {
        Some("VALUE".to_owned())
    }
    fn subquery(&self, _: &crate::expr::SubqueryExpr) -> Option<String> {
        None
    }
}

/// An expression over a table's row (an index's, a generated column's).
///
/// # Errors
/// An expression that can't be bound any more.
pub fn over_row(cx: &PrepareContext<'_>, table: &Table, sql: &str, pretty: bool) -> Result<String> {
    let node = parse_expr(sql)?;
    printed_over_row(cx, table, (sql, &*node), pretty, |printer, expr| printer.outer(expr))
}

/// Binds an expression over a table's row, and prints it with `print`.
fn printed_over_row(
    cx: &PrepareContext<'_>,
    table: &Table,
    (sql, node): (&str, &pg_query::NodeEnum),
    pretty: bool,
    print: impl Fn(&Printer<'_, '_>, &Expr) -> String,
) -> Result<String> {
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let rel = binder.table_rel(Arc::new(table.clone()), &table.name)?;
    let expr = binder.row_expr(&rel, node)?;
    Ok(print(&Printer { binder: &binder, pretty, by_oid: false, names: None, indent: 0 }, &expr))
}

/// An index's key expression as `CREATE INDEX` takes it: a call stands alone, all else in
/// parentheses.
///
/// # Errors
/// An expression that can't be bound any more.
pub fn index_key(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
    pretty: bool,
) -> Result<String> {
    let node = parse_expr(sql)?;
    // A key has the type of its expression: none of its casts is implied.
    let text = printed_over_row(cx, table, (sql, &*node), pretty, |printer, expr| {
        trimmed(printer.print(expr))
    })?;
    use pg_query::NodeEnum as N;
    let call = match &*node {
        N::FuncCall(call) => {
            call.funcformat() != pb::CoercionForm::CoerceSqlSyntax
                || !call.funcname.last().map(ast::string).is_some_and(prints_as_operator)
        }
        N::CoalesceExpr(_) | N::MinMaxExpr(_) | N::SqlvalueFunction(_) => true,
        _ => false,
    };
    Ok(if call { text } else { format!("({text})") })
}

/// A column's default.
///
/// # Errors
/// An expression that can't be bound any more.
pub fn default(
    cx: &PrepareContext<'_>,
    (ty, typmod): (Oid, i32),
    sql: &str,
    pretty: bool,
) -> Result<String> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let expr = binder.default_expr(&node, ty, typmod, "")?;
    let printer = Printer { binder: &binder, pretty, by_oid: false, names: None, indent: 0 };
    Ok(printer.outer(&expr))
}

/// A default that names objects, as it is kept: by their oids.
///
/// # Errors
/// An expression that can't be bound.
pub(crate) fn stored_default(
    cx: &PrepareContext<'_>,
    node: &pg_query::NodeEnum,
    (ty, typmod): (Oid, i32),
) -> Result<String> {
    let mut binder = Binder::new(cx, "", &[]);
    binder.unfolded = true;
    let expr = binder.default_expr(node, ty, typmod, "")?;
    let printer = Printer { binder: &binder, pretty: false, by_oid: true, names: None, indent: 0 };
    Ok(printer.outer(&expr))
}

/// The objects that an expression names: sequences and tables as constants, user's types, functions and
/// collations.
pub(crate) fn objects_of(expr: &Expr) -> Vec<u32> {
    let mut out = Vec::new();
    collect_objects(expr, &mut out);
    out.sort_unstable();
    out.dedup();
    out
}

fn collect_objects(expr: &Expr, out: &mut Vec<u32>) {
    if let Expr::Const(Datum::Oid(id), ty) = expr
        && crate::bind::coerce::needs_catalog(*ty)
        && !matches!(*ty, REGROLE | REGNAMESPACE)
        && *id >= Oid::FIRST_USER.0
    {
        out.push(*id);
    }
    if let Expr::Call { function, .. } = expr
        && function.oid >= Oid::FIRST_USER
    {
        out.push(function.oid.0);
    }
    let called = match expr {
        Expr::Call { function, .. } | Expr::ArrayOp { function, .. } => Some(function),
        Expr::Distinct { equal, .. } | Expr::NullIf { equal, .. } => Some(equal),
        _ => None,
    };
    out.extend(called.map(|f| f.operator).filter(|id| *id >= Oid::FIRST_USER).map(|id| id.0));
    if let Expr::Collate(_, collation, _) = expr
        && *collation >= Oid::FIRST_USER.0
    {
        out.push(*collation);
    }
    let ty = expr.ty();
    if ty >= Oid::FIRST_USER {
        out.push(ty.0);
    }
    crate::walk::for_children(expr, &mut |child| collect_objects(child, out));
}

/// Whether the text of a constant in an expression would not mean the same later: its reading depends on settings, on the
/// clock, or on names that can change.
pub(crate) fn has_fleeting_constant(expr: &Expr) -> bool {
    if let Expr::Const(value, ty) = expr
        && !value.is_null()
        && is_fleeting(*ty)
    {
        return true;
    }
    let mut found = false;
    crate::walk::for_children(expr, &mut |child| found |= has_fleeting_constant(child));
    found
}

/// Whether an expression names an object without an oid: the table that it is made for.
pub(crate) fn names_itself(expr: &Expr) -> bool {
    if let Expr::Const(Datum::Oid(0), REGCLASS) = expr {
        return true;
    }
    let mut found = false;
    crate::walk::for_children(expr, &mut |child| found |= names_itself(child));
    found
}

fn is_fleeting(ty: Oid) -> bool {
    let ty = types::user::base_type(ty, -1).0;
    let element = crate::bind::coerce::element_of(ty);
    if element != Oid::INVALID {
        return is_fleeting(element);
    }
    crate::bind::coerce::needs_catalog(ty)
        || types::user::shape(ty).is_some()
        // Dates and times, enums, ranges, spans of time.
        || types::TypeIo::get(ty).is_some_and(|io| matches!(io.category, b'D' | b'E' | b'R' | b'T'))
}

/// The objects that stored expressions over a table's row name.
///
/// # Errors
/// An expression that can't be bound.
pub fn objects_in<'s>(
    cx: &PrepareContext<'_>,
    table: &Table,
    all: impl IntoIterator<Item = &'s str>,
) -> Result<Vec<u32>> {
    let mut out = Vec::new();
    for sql in all {
        let node = parse_expr(sql)?;
        let mut binder = Binder::new(cx, sql, &[]);
        binder.unfolded = true;
        let rel = binder.table_rel(Arc::new(table.clone()), &table.name)?;
        collect_objects(&binder.row_expr(&rel, &node)?, &mut out);
    }
    // The row's own type is the table.
    out.retain(|id| !table.row_type.contains(id));
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// The table and the number of the column that a field of a row type is; None for types of their own.
fn column_of(catalog: &catalog::Snapshot, row: Oid, at: i32) -> Option<(u32, u16)> {
    let Some(catalog::snapshot::TypeId::Row(table, false)) = catalog.type_id(row.0) else {
        return None;
    };
    let (number, _) = catalog.table(table)?.live_columns().nth(usize::try_from(at).ok()?)?;
    Some((table, number))
}

/// The columns of tables that an expression takes as fields of rows.
pub(crate) fn fields_of(catalog: &catalog::Snapshot, expr: &Expr, out: &mut Vec<(u32, u16)>) {
    if let Expr::Call { function, args, .. } = expr
        && function.oid == internal::FIELD.oid
        && let [row, Expr::Const(Datum::Int4(at), _)] = &args[..]
    {
        out.extend(column_of(catalog, row.ty(), *at));
    }
    crate::walk::for_children(expr, &mut |child| fields_of(catalog, child, out));
}

/// A relation's name, with its schema where the search path doesn't lead to it.
pub(crate) fn relation_name(cx: &PrepareContext<'_>, id: u32) -> Option<String> {
    if let Some(system) = catalog::system::by_oid(Oid(id)) {
        let schema = cx.catalog.schema(system.schema).map_or("pg_catalog", |s| s.name.as_str());
        return Some(match schema {
            "pg_catalog" => quote_ident(system.name),
            schema => format!("{schema}.{}", quote_ident(system.name)),
        });
    }
    let (schema, name) = match cx.catalog.relation_by_oid(id)? {
        catalog::snapshot::Relation::Table(t) => (t.schema, t.name.clone()),
        catalog::snapshot::Relation::Index(i) => (i.schema, i.name.clone()),
        catalog::snapshot::Relation::Sequence(s) => (s.schema, s.name.clone()),
    };
    let found = cx.catalog.relation(cx.search_path, None, &name).map(|r| r.oid());
    if found == Some(id) {
        return Some(quote_ident(&name));
    }
    let schema = cx.catalog.schema(schema)?;
    Some(format!("{}.{}", quote_ident(&schema.name), quote_ident(&name)))
}

/// How tightly an operator's text binds, for the pretty form.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Not,
    Test,
    Operator,
    Additive,
    Multiplicative,
    Whole,
}

/// Names of columns inside a query.
pub(crate) trait Names {
    /// What stands for a column; None: its own name.
    fn column(&self, col: crate::logical::Col) -> Option<String>;
    /// A subquery's text.
    fn subquery(&self, subquery: &crate::expr::SubqueryExpr) -> Option<String>;
    /// What stands for a whole row of these columns; None: it is written out.
    fn whole(&self, _fields: &[Expr]) -> Option<String> {
        None
    }
    /// The name of a column that USING merges; None: it is written out.
    fn merged(&self, _e: &Expr) -> Option<String> {
        None
    }
    /// What follows is so much further in.
    fn shift(&self, _by: i32) {}
    /// Whether a column is one of FROM, and no aggregate or the like.
    fn is_variable(&self, _col: crate::logical::Col) -> bool {
        true
    }
    /// The name of a function's parameter, by number from 0; None: `$1` and so on.
    fn parameter(&self, _number: u32) -> Option<String> {
        None
    }
    /// The catalog that names of functions, operators and types come from; None: the binder's.
    fn naming(&self) -> Option<&catalog::Snapshot> {
        None
    }
}

/// Prints bound expressions.
pub(crate) struct Printer<'p, 'b> {
    /// The binder that bound them.
    pub binder: &'p Binder<'b>,
    /// Without needless parentheses.
    pub pretty: bool,
    /// Objects as their oids, as stored expressions have them.
    pub by_oid: bool,
    /// Names, where there are more tables than one.
    pub names: Option<&'p dyn Names>,
    /// Spaces before a line that begins inside of an expression.
    pub indent: usize,
}

impl Printer<'_, '_> {
    /// A whole expression: the casts that its target implied are not shown.
    pub fn outer(&self, expr: &Expr) -> String {
        let below = shown(expr);
        let text = self.print(below);
        trimmed(match self.pretty && !std::ptr::eq(below, expr) && level(below) < Level::Whole {
            true => format!("({text})"),
            false => text,
        })
    }

    /// The text of an operand inside something of a level.
    fn operand(&self, expr: &Expr, least: Level) -> String {
        let text = self.print(expr);
        if self.pretty && level(expr) < least { format!("({text})") } else { text }
    }

    /// The same of a condition: without the casts that it implies.
    fn test(&self, expr: &Expr, least: Level) -> String {
        self.operand(shown(expr), least)
    }

    /// An operator's text: in parentheses unless pretty.
    fn wrap(&self, text: String) -> String {
        if self.pretty { text } else { format!("({text})") }
    }

    fn list(&self, args: &[Expr]) -> String {
        args.iter().map(|a| self.print(a)).collect::<Vec<_>>().join(", ")
    }

    /// A whole row of one of the tables, whatever type it is implied to have.
    fn whole(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Relabel(arg, RECORD) => self.whole(arg),
            // Of a side of an outer join.
            Expr::Case { arms, default, .. } if self.is_witnessed(arms) => self.whole(default),
            Expr::Call { function, args, .. } if function.oid == internal::SHAPED_ROW.oid => {
                match args.first() {
                    Some(Expr::Row(fields)) => self.names?.whole(fields),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the only arm is NULL for a row that an outer join didn't find.
    fn is_witnessed(&self, arms: &[(Expr, Expr)]) -> bool {
        let [(Expr::IsNull { arg, negated: false }, Expr::Const(Datum::Null, _))] = arms else {
            return false;
        };
        let Expr::Column(col, ty) = &**arg else { return false };
        let name = self.binder.vars.get(usize::from(*col)).map(|var| var.name.as_str());
        name == Some(crate::bind::from::WITNESS) || *ty == TID && name == Some("ctid")
    }

    /// An expression's text where `t.*` would stand for the columns of `t`.
    pub fn alone(&self, expr: &Expr) -> String {
        match self.whole(expr) {
            Some(whole) => format!("{whole}::{}", self.type_name(expr.ty(), -1)),
            None => self.print(expr),
        }
    }

    /// An expression's text.
    pub fn print(&self, expr: &Expr) -> String {
        if let Some(whole) = self.whole(expr) {
            return whole;
        }
        match expr {
            Expr::Const(value, ty) => self.constant(value, *ty),
            Expr::Column(col, _) => self
                .names
                .and_then(|n| n.column(*col))
                .unwrap_or_else(|| quote_ident(&self.binder.vars[usize::from(*col)].name)),
            Expr::Call { function, args, ty, .. } => self.call(function, args, *ty),
            Expr::InOutCast { ty, typmod, .. } => self.cast(expr, *ty, *typmod),
            // Any row is a record as it is.
            Expr::Relabel(arg, RECORD) => self.print(arg),
            Expr::Relabel(_, ty) => self.cast(expr, *ty, -1),
            Expr::Collate(arg, oid, _) => {
                let cx = self.binder.cx;
                let name = match self.by_oid {
                    true => catalog::definition::collation_name(cx.catalog, *oid),
                    false => cx.catalog.shown_collation(cx.search_path, *oid).unwrap_or_default(),
                };
                self.wrap(format!("{} COLLATE {name}", self.part(arg)))
            }
            Expr::Typmod { arg, ty, typmod, explicit: true }
                if *typmod >= 0 && matches!(&**arg, Expr::SessionValue(_, own) if own == ty) =>
            {
                format!("{}({typmod})", self.print(arg))
            }
            Expr::Typmod { ty, typmod, .. } => self.cast(expr, *ty, *typmod),
            Expr::And(parts) => self.joined(parts, " AND ", Level::Not),
            Expr::Or(parts) => self.joined(parts, " OR ", Level::And),
            Expr::Not(arg) => self.wrap(format!("NOT {}", self.test(arg, Level::Test))),
            Expr::IsNull { arg, negated } => {
                let test = if *negated { "IS NOT NULL" } else { "IS NULL" };
                self.wrap(format!("{} {test}", self.part(arg)))
            }
            Expr::BooleanTest { arg, is, negated } => {
                let not = if *negated { "NOT " } else { "" };
                let what = match is {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                self.wrap(format!("{} IS {not}{what}", self.test(arg, Level::Whole)))
            }
            Expr::Distinct { args, negated, .. } => {
                let [a, b] = &**args;
                let text = format!("{} IS DISTINCT FROM {}", self.part(a), self.part(b));
                let text = self.wrap(text);
                if *negated { self.wrap(format!("NOT {text}")) } else { text }
            }
            Expr::Case { operand, arms, default, .. } => {
                self.case(operand.as_deref(), arms, default)
            }
            // Of a test whose form is not that of a comparison.
            Expr::Held(_) => "CASE_TEST_EXPR".to_owned(),
            Expr::Coalesce(args, _) => match self.names.and_then(|names| names.merged(expr)) {
                Some(name) => name,
                None => format!("COALESCE({})", self.list(args)),
            },
            Expr::NullIf { args, .. } => format!("NULLIF({})", self.list(&args[..])),
            Expr::MinMax { greatest, args, .. } => {
                format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, self.list(args))
            }
            Expr::ArrayOp { function, left, array, all } => {
                let name = operator_of(function, 2).unwrap_or(function.name);
                let word = if *all { "ALL" } else { "ANY" };
                let (left, array) = (self.part(left), self.part(array));
                self.wrap(format!("{left} {name} {word} ({array})"))
            }
            Expr::Array { items, .. } if items.is_empty() => {
                format!("ARRAY[]::{}", self.type_name(expr.ty(), -1))
            }
            Expr::Array { items, .. } => format!("ARRAY[{}]", self.list(items)),
            Expr::Subscript { array, indexes, .. } => {
                let indexes: String =
                    indexes.iter().map(|i| format!("[{}]", self.outer(i))).collect();
                format!("{}{indexes}", self.subscripted(array))
            }
            Expr::Row(fields) => {
                let fields: Vec<String> = fields.iter().map(|f| self.alone(f)).collect();
                format!("ROW({})", fields.join(", "))
            }
            Expr::RowCompare { op, fields } => self.row_compare(*op, fields),
            Expr::SessionValue(name, _) => name.to_uppercase().to_string(),
            Expr::Subquery(subquery) => {
                self.names.and_then(|n| n.subquery(subquery)).unwrap_or_else(|| "?".to_owned())
            }
            Expr::Param(number, _) => self
                .names
                .and_then(|n| n.parameter(*number))
                .unwrap_or_else(|| format!("${}", number + 1)),
            Expr::Slot(..) => "?".to_owned(),
        }
    }

    /// A side of an operator other than arithmetic.
    fn part(&self, expr: &Expr) -> String {
        self.operand(expr, Level::Whole)
    }

    fn joined(&self, parts: &[Expr], word: &str, least: Level) -> String {
        let parts: Vec<String> = parts.iter().map(|p| self.test(p, least)).collect();
        self.wrap(parts.join(word))
    }

    fn case(&self, operand: Option<&Expr>, arms: &[(Expr, Expr)], default: &Expr) -> String {
        // PostgreSQL puts every CASE on lines of its own.
        let end = format!("\n{}", " ".repeat(self.indent));
        let space = format!("{end}    ");
        let inside = Printer { indent: self.indent + 4, ..*self };
        let shift = |by| self.names.iter().for_each(|names| names.shift(by));
        shift(4);
        let mut out = format!("{end}CASE");
        out.extend(operand.map(|operand| format!(" {}", inside.print(operand))));
        for (test, result) in arms {
            let test = walk::compared_with_held(test).unwrap_or(test);
            out += &format!("{space}WHEN {} THEN {}", inside.outer(test), inside.print(result));
        }
        out += &format!("{space}ELSE {}{end}END", inside.print(default));
        shift(-4);
        out
    }

    fn row_compare(
        &self,
        op: RowOp,
        fields: &[(Expr, Expr, &'static FunctionRow, &'static FunctionRow)],
    ) -> String {
        let side = |texts: Vec<String>| format!("ROW({})", texts.join(", "));
        let left = side(fields.iter().map(|f| self.print(&f.0)).collect());
        let right = side(fields.iter().map(|f| self.print(&f.1)).collect());
        let op = match op {
            RowOp::Eq => "=",
            RowOp::Ne => "<>",
            RowOp::Lt => "<",
            RowOp::Le => "<=",
            RowOp::Gt => ">",
            RowOp::Ge => ">=",
        };
        format!("({left} {op} {right})")
    }

    fn call(&self, function: &'static FunctionRow, args: &[Expr], ty: Oid) -> String {
        if let Some(text) = self.as_written(function, args, ty) {
            return text;
        }
        if is_implied_cast(function, args, ty) {
            return self.cast_of(&args[0], ty, length_of(function, args));
        }
        if function.oid == internal::FIELD.oid
            && let [row, Expr::Const(Datum::Int4(at), _)] = args
            && let Some(columns) = crate::bind::from::columns_of_row(row, &self.binder.vars)
            && let Some((name, _)) = columns.get(*at as usize)
        {
            let renamed = column_of(self.naming(), row.ty(), *at).map(|(table, number)| {
                let column =
                    self.naming().table(table).map(|t| &t.columns[usize::from(number) - 1]);
                column.map_or_else(String::new, |c| c.name.clone())
            });
            let name = renamed.as_deref().unwrap_or(name);
            return format!("({}).{}", self.print(row), quote_ident(name));
        }
        if function.oid == internal::SHAPED_ROW.oid && types::user::is_user(ty) {
            return format!("{}::{}", self.print(&args[0]), self.type_name(ty, -1));
        }
        if let Some(text) = self.syntax(function, args) {
            return text;
        }
        let own = self.own_operator(function);
        let name = own.as_deref().or_else(|| operator_of(function, args.len()));
        match (name, args) {
            (Some(name), [left, right]) => {
                let own = level_of(name);
                let right_least =
                    if own == Level::Additive { Level::Multiplicative } else { Level::Whole };
                let left_least = if own == Level::Operator { Level::Whole } else { own };
                let left = self.operand(left, left_least);
                self.wrap(format!("{left} {name} {}", self.operand(right, right_least)))
            }
            (Some(name), [arg]) => self.wrap(format!("{name} {}", self.part(arg))),
            _ => self.plain_call(function, args),
        }
    }

    /// A call by the function's name.
    fn plain_call(&self, function: &FunctionRow, args: &[Expr]) -> String {
        let name = self.function_name(function.oid, function.name);
        // Values for a VARIADIC parameter are one array, but for one of any type.
        let packed = function.variadic
            && types::func::function(function.oid).is_some()
            && function.args.last() != Some(&ANY)
            && args.len() >= function.args.len()
            && !args.iter().any(is_spread);
        if packed {
            let (plain, items) = args.split_at(function.args.len() - 1);
            let mut all = self.arguments(plain);
            if !all.is_empty() {
                all += ", ";
            }
            return format!("{name}({all}VARIADIC ARRAY[{}])", self.list(items));
        }
        format!("{name}({})", self.arguments(args))
    }

    /// A form that the binder noted as it was written; None: it is none of those.
    fn as_written(&self, function: &FunctionRow, args: &[Expr], ty: Oid) -> Option<String> {
        let inner = args.first()?;
        if function.oid == internal::WRITTEN_CAST.oid {
            return Some(match inner {
                Expr::Call { function, args, .. } if function.oid == internal::SHAPED_ROW.oid => {
                    format!("{}::{}", self.print(&args[0]), self.type_name(ty, -1))
                }
                Expr::Typmod { typmod, .. } | Expr::InOutCast { typmod, .. } => {
                    self.cast(inner, ty, *typmod)
                }
                Expr::Call { function, args, ty: of, .. } if is_cast(function, args, *of) => {
                    self.cast(inner, ty, length_of(function, args))
                }
                _ => self.cast(inner, ty, -1),
            });
        }
        if function.oid == internal::WRITTEN_CALL.oid
            && let Expr::Call { function, args, .. } = inner
        {
            return Some(self.plain_call(function, args));
        }
        if function.oid == internal::SPREAD.oid {
            return Some(format!("VARIADIC {}", self.print(inner)));
        }
        if function.oid == internal::WRITTEN_SUBSCRIPTS.oid {
            return Some(format!("{}{}", self.subscripted(inner), self.subscripts(&args[1..])));
        }
        None
    }

    /// What subscripts stand behind: in parentheses, but for a column and a field.
    fn subscripted(&self, value: &Expr) -> String {
        let text = self.print(value);
        let plain = match value {
            Expr::Column(col, _) => self.names.is_none_or(|names| names.is_variable(*col)),
            Expr::Call { function, .. } => function.oid == internal::FIELD.oid,
            _ => false,
        };
        if plain { text } else { format!("({text})") }
    }

    /// See [`internal::WRITTEN_SUBSCRIPTS`].
    fn subscripts(&self, parts: &[Expr]) -> String {
        let mut out = String::new();
        let mut parts = parts.iter();
        while let Some(Expr::Const(Datum::Char(form), _)) = parts.next() {
            let mut bound = |wanted: &[u8]| match wanted.contains(form) {
                true => parts.next().map_or_else(String::new, |e| self.outer(e)),
                false => String::new(),
            };
            if *form == b'i' {
                out += &format!("[{}]", bound(b"i"));
                continue;
            }
            let low = bound(b"bl");
            out += &format!("[{low}:{}]", bound(b"bu"));
        }
        out
    }

    /// A call's arguments as they were given: without those that defaults fill, by name where they had one.
    fn arguments(&self, args: &[Expr]) -> String {
        let mut out = Vec::with_capacity(args.len());
        let mut named = Vec::new();
        for arg in args {
            match arg {
                Expr::Call { function, .. } if function.oid == internal::DEFAULTED.oid => {}
                Expr::Call { function, args, .. } if function.oid == internal::NAMED.oid => {
                    let Some(Expr::Const(Datum::Text(name), _)) = args.get(1) else { continue };
                    let at = match args.get(2) {
                        Some(Expr::Const(Datum::Int4(at), _)) => *at,
                        _ => 0,
                    };
                    let name = quote_ident(name);
                    named.push(match spread(&args[0]) {
                        Some(array) => (at, format!("VARIADIC {name} => {}", self.print(array))),
                        None => (at, format!("{name} => {}", self.print(&args[0]))),
                    });
                }
                arg => out.push(self.print(arg)),
            }
        }
        // As the call named them.
        named.sort_by_key(|(at, _)| *at);
        out.extend(named.into_iter().map(|(_, text)| text));
        out.join(", ")
    }

    fn naming(&self) -> &catalog::Snapshot {
        self.names.and_then(|n| n.naming()).unwrap_or(self.binder.cx.catalog)
    }

    /// A user's operator as it is called, with its schema where the search path doesn't lead to it.
    fn own_operator(&self, function: &FunctionRow) -> Option<String> {
        let (cx, naming) = (self.binder.cx, self.naming());
        let own = naming.operator(function.operator.0)?;
        let hidden = self.by_oid || !cx.search_path.contains(&own.schema);
        Some(match naming.schema(own.schema) {
            Some(schema) if hidden => {
                format!("OPERATOR({}.{})", quote_ident(&schema.name), own.name)
            }
            _ => own.name.clone(),
        })
    }

    /// A function's name, with its schema where it is a user's that the search path doesn't lead to (in
    /// what is stored: always).
    pub fn function_name(&self, function: Oid, name: &str) -> String {
        let (cx, naming) = (self.binder.cx, self.naming());
        let Some(own) = naming.function(function.0) else { return quote_ident(name) };
        let name = quote_ident(&own.name);
        let hidden = self.by_oid || !cx.search_path.contains(&own.schema);
        match naming.schema(own.schema) {
            Some(schema) if hidden => format!("{}.{name}", quote_ident(&schema.name)),
            _ => name,
        }
    }

    /// A type's name, with its schema where the search path doesn't lead to it (in what is stored: always).
    pub(crate) fn type_name(&self, ty: Oid, typmod: i32) -> String {
        match self.by_oid && types::user::is_user(ty) {
            true => self.naming().type_name(&[], ty.0).unwrap_or_else(|| "???".to_owned()),
            false => format_type(ty, typmod),
        }
    }

    /// A cast, of what stands below all the casts that it implies.
    fn cast(&self, cast: &Expr, ty: Oid, typmod: i32) -> String {
        let below = match cast {
            Expr::Typmod { arg, .. } | Expr::InOutCast { arg, .. } | Expr::Relabel(arg, _) => arg,
            Expr::Call { function, args, ty, .. } if is_implied_cast(function, args, *ty) => {
                &args[0]
            }
            other => other,
        };
        self.cast_of(below, ty, typmod)
    }

    fn cast_of(&self, arg: &Expr, ty: Oid, typmod: i32) -> String {
        let name = self.type_name(ty, typmod);
        let arg = shown(arg);
        match arg {
            Expr::Const(value, from) if *from == ty && value.is_null() => format!("NULL::{name}"),
            Expr::Const(value, from) if *from == ty => {
                format!("{}::{name}", self.quoted(value, ty))
            }
            _ if self.pretty => format!("{}::{name}", self.part(arg)),
            _ => format!("({})::{name}", self.print(arg)),
        }
    }

    fn text_of(&self, value: &Datum, ty: Oid) -> String {
        if let (Datum::Oid(id), true) =
            (value, self.by_oid && crate::bind::coerce::needs_catalog(ty))
        {
            return id.to_string();
        }
        if self.by_oid {
            let format = self.binder.cx.format.stored();
            return types::io::to_text(ty, value, &format).unwrap_or_default().to_string();
        }
        if let (Datum::Oid(id), REGCLASS) = (value, ty) {
            return relation_name(self.binder.cx, *id).unwrap_or_else(|| id.to_string());
        }
        types::io::to_text(ty, value, self.binder.cx.format).unwrap_or_default().to_string()
    }

    fn quoted(&self, value: &Datum, ty: Oid) -> String {
        let text = self.text_of(value, ty);
        format!("'{}'", text.replace('\'', "''"))
    }

    /// A constant with its type, whatever its text alone means: where a bare number would be a place.
    pub fn labelled(&self, value: &Datum, ty: Oid) -> String {
        let text = self.constant(value, ty);
        let bare = !value.is_null() && ty != types::oids::UNKNOWN && !text.contains("::");
        if bare { format!("{text}::{}", self.type_name(ty, -1)) } else { text }
    }

    /// A constant, labelled with its type unless its text alone has that type.
    fn constant(&self, value: &Datum, ty: Oid) -> String {
        if ty == types::oids::UNKNOWN {
            return if value.is_null() {
                "NULL::unknown".to_owned()
            } else {
                self.quoted(value, ty)
            };
        }
        if value.is_null() {
            return format!("NULL::{}", self.type_name(ty, -1));
        }
        match ty {
            BOOL => return (if *value == Datum::Bool(true) { "true" } else { "false" }).to_owned(),
            INT4 | NUMERIC => {
                let text = self.text_of(value, ty);
                let plain = text.starts_with(|c: char| c.is_ascii_digit())
                    && (ty == INT4 || text.contains(['.', 'e', 'E']));
                if plain {
                    return text;
                }
            }
            _ => {}
        }
        format!("{}::{}", self.quoted(value, ty), self.type_name(ty, -1))
    }
}

/// The name of the operator that a function stands for.
fn operator_of(function: &FunctionRow, args: usize) -> Option<&'static str> {
    types::func::operators()
        .iter()
        .find(|o| o.function == function.oid && (o.left == Oid::INVALID) == (args == 1))
        .filter(|_| matches!(args, 1 | 2))
        .map(|o| o.name)
}

/// A text without the blanks before its line feeds, which come of forms that begin on a line of their own (CASE). What is
/// quoted stays as it is.
pub(crate) fn trimmed(text: String) -> String {
    if !text.contains(" \n") {
        return text;
    }
    let (mut out, mut quote) = (String::with_capacity(text.len()), None);
    for c in text.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '\n') => out.truncate(out.trim_end_matches(' ').len()),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// What is shown of an expression where implied casts are not: what stands below them.
pub(crate) fn shown(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Typmod { arg, .. } if !is_current(arg) => arg,
            Expr::InOutCast { arg, .. } => arg,
            Expr::Relabel(arg, to) if *to != RECORD => arg,
            Expr::Call { function, args, ty, .. } if is_implied_cast(function, args, *ty) => {
                &args[0]
            }
            other => return other,
        };
    }
}

/// `current_timestamp` and its like, whose precision is no cast.
fn is_current(arg: &Expr) -> bool {
    matches!(arg, Expr::SessionValue(..))
}

/// Whether a call stands for a cast that nobody wrote.
fn is_implied_cast(function: &FunctionRow, args: &[Expr], ty: Oid) -> bool {
    is_cast(function, args, ty)
        || function.oid == internal::DOMAIN_CHECK.oid
        || function.oid == internal::ARRAY_CAST.oid
}

/// The array behind VARIADIC.
fn spread(arg: &Expr) -> Option<&Expr> {
    match arg {
        Expr::Call { function, args, .. } if function.oid == internal::SPREAD.oid => args.first(),
        _ => None,
    }
}

fn is_spread(arg: &Expr) -> bool {
    spread(arg).is_some()
}

/// Whether PostgreSQL has a function call for an expression, which it puts into parentheses in ORDER BY and GROUP BY.
pub(crate) fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Typmod { arg, .. } => !is_current(arg),
        Expr::Call { function, args, ty, .. } => {
            let inner = args.first();
            if function.oid == internal::WRITTEN_CAST.oid {
                return inner.is_some_and(is_call);
            }
            let special = [
                &internal::FIELD,
                &internal::DOMAIN_CHECK,
                &internal::ARRAY_CAST,
                &internal::SHAPED_ROW,
                &internal::WRITTEN_SUBSCRIPTS,
            ];
            if special.iter().any(|f| f.oid == function.oid) {
                return false;
            }
            let by_syntax = matches!(function.operator, BY_SYNTAX | BY_SHORT_SYNTAX);
            let operator = function.operator != Oid::INVALID && !by_syntax
                || operator_of(function, args.len()).is_some();
            !operator || is_cast(function, args, *ty)
        }
        _ => false,
    }
}

/// Whether a call is what a cast became.
fn is_cast(function: &FunctionRow, args: &[Expr], ty: Oid) -> bool {
    args.first()
        .and_then(|a| types::func::cast(a.ty(), ty))
        .is_some_and(|c| matches!(c.method, CastMethod::Function(oid) if oid == function.oid))
}

/// The length that a cast's function is told, as that from integers to bits is; -1: none.
fn length_of(function: &FunctionRow, args: &[Expr]) -> i32 {
    match args {
        [_, Expr::Const(Datum::Int4(length), INT4), ..] if function.args.get(1) == Some(&INT4) => {
            *length
        }
        _ => -1,
    }
}

/// Whether a call is written as an operator or a cast.
pub(crate) fn is_operator_or_cast(function: &FunctionRow, args: &[Expr], ty: Oid) -> bool {
    let by_syntax = matches!(function.operator, BY_SYNTAX | BY_SHORT_SYNTAX);
    is_cast(function, args, ty)
        || operator_of(function, args.len()).is_some()
        || by_syntax && prints_as_operator(function.name)
}

/// Whether a function that words of SQL called has its words between the arguments (`x AT TIME ZONE 'UTC'`): the grammar
/// takes that for no function, so it needs parentheses where only functions stand alone.
fn prints_as_operator(name: &str) -> bool {
    matches!(name, "timezone" | "overlaps" | "is_normalized")
}

fn level_of(operator: &str) -> Level {
    match operator {
        "+" | "-" => Level::Additive,
        "*" | "/" | "%" => Level::Multiplicative,
        _ => Level::Operator,
    }
}

fn level(expr: &Expr) -> Level {
    match expr {
        Expr::Or(_) => Level::Or,
        Expr::And(_) => Level::And,
        Expr::Not(_) => Level::Not,
        Expr::IsNull { .. } | Expr::BooleanTest { .. } | Expr::Subquery(_) => Level::Test,
        Expr::ArrayOp { .. } => Level::Or,
        Expr::Collate(..) => Level::Operator,
        Expr::Distinct { .. } | Expr::RowCompare { .. } => Level::Operator,
        Expr::Call { function, args, ty, .. } if !is_implied_cast(function, args, *ty) => {
            operator_of(function, args.len()).map_or(Level::Whole, level_of)
        }
        _ => Level::Whole,
    }
}

impl Printer<'_, '_> {
    /// The call in words of SQL; None: it was not called so, or has no such form.
    fn syntax(&self, function: &FunctionRow, args: &[Expr]) -> Option<String> {
        if !matches!(function.operator, BY_SYNTAX | BY_SHORT_SYNTAX) {
            return None;
        }
        let part = |n: usize| args.get(n).map(|arg| self.test(arg, Level::Whole));
        let whole = |n: usize| args.get(n).map(|arg| self.outer(arg));
        let short = function.operator == BY_SHORT_SYNTAX;
        Some(match (function.name, args.len()) {
            ("timezone", 2) => format!("({} AT TIME ZONE {})", part(1)?, part(0)?),
            ("overlaps", 4) => {
                format!("(({}, {}) OVERLAPS ({}, {}))", whole(0)?, whole(1)?, whole(2)?, whole(3)?)
            }
            ("extract", 2) => format!("EXTRACT({} FROM {})", field(&args[0])?, whole(1)?),
            ("is_normalized", 1) => format!("({} IS NORMALIZED)", part(0)?),
            ("is_normalized", 2) if short => format!("({} IS NORMALIZED)", part(0)?),
            ("is_normalized", 2) => format!("({} IS {} NORMALIZED)", part(0)?, word(&args[1])?),
            ("normalize", 1) => format!("NORMALIZE({})", whole(0)?),
            ("normalize", 2) if short => format!("NORMALIZE({})", whole(0)?),
            ("normalize", 2) => format!("NORMALIZE({}, {})", whole(0)?, word(&args[1])?),
            ("overlay", 3) => {
                format!("OVERLAY({} PLACING {} FROM {})", whole(0)?, whole(1)?, whole(2)?)
            }
            ("overlay", 4) => format!(
                "OVERLAY({} PLACING {} FROM {} FOR {})",
                whole(0)?,
                whole(1)?,
                whole(2)?,
                whole(3)?
            ),
            ("position", 2) => format!("POSITION(({}) IN ({}))", whole(1)?, whole(0)?),
            ("substring", 3) if function.oid == Oid(2074) => {
                format!("SUBSTRING({} SIMILAR {} ESCAPE {})", whole(0)?, whole(1)?, whole(2)?)
            }
            ("substring", 2) if function.oid != Oid(2073) => {
                format!("SUBSTRING({} FROM {})", whole(0)?, whole(1)?)
            }
            ("substring", 3) => {
                format!("SUBSTRING({} FROM {} FOR {})", whole(0)?, whole(1)?, whole(2)?)
            }
            (name @ ("btrim" | "ltrim" | "rtrim"), 1 | 2) => {
                let side = match name {
                    "btrim" => "BOTH",
                    "ltrim" => "LEADING",
                    _ => "TRAILING",
                };
                let what = whole(1).map_or_else(String::new, |what| format!(" {what}"));
                format!("TRIM({side}{what} FROM {})", whole(0)?)
            }
            _ => return None,
        })
    }
}

/// The field of EXTRACT: any text may stand for it, quoted where it is no plain name.
fn field(arg: &Expr) -> Option<String> {
    match arg {
        Expr::Const(Datum::Text(text), _) => Some(quote_ident(text)),
        _ => None,
    }
}

/// A constant that stands for a word.
fn word(arg: &Expr) -> Option<String> {
    match arg {
        Expr::Const(Datum::Text(text), _) => {
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            plain.then(|| text.to_string())
        }
        _ => None,
    }
}
