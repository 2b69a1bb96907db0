//! The binder: from the grammar's tree to bound statements. Names become columns, types are
//! resolved as PostgreSQL resolves them (manual, chapter 10), every implicit cast is written out.
//! Queries become the small tree of [`crate::logical`]; the grammar's tree is freed at once.
//!
//! Left out for now, answered with `0A000`: SEARCH and CYCLE of recursive queries.

use std::collections::HashMap;

use base::{Error, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;
use types::oids::UNKNOWN;

use crate::expr::Expr;
use crate::logical::{Col, Cte, Query, Var};
use crate::parse::Positions;
use crate::prepare::{Lift, Lifted, LiteralKind, PrepareContext};

mod absent;
pub(crate) mod aggregate;
pub(crate) mod alter;
mod alter_passes;
pub(crate) mod ast;
mod attribute;
mod case;
pub(crate) mod coerce;
pub(crate) mod collation;
mod column_options;
mod comment;
pub(crate) mod conflict;
pub(crate) mod copy;
pub(crate) mod cte;
pub(crate) mod current;
pub(crate) mod database;
mod defaults;
pub(crate) mod define;
mod define_aggregate;
mod define_collation;
mod define_objects;
mod define_type;
pub(crate) mod dml;
mod event_trigger;
mod exclusion;
pub(crate) mod expr;
mod extension;
mod foreign;
pub(crate) mod from;
pub(crate) mod function;
pub(crate) mod generated;
pub(crate) mod grouping;
mod index_class;
pub(crate) mod inherit;
mod inline;
mod instead;
pub(crate) mod like;
pub(crate) mod merge;
pub(crate) mod object;
pub(crate) mod operator;
pub(crate) mod overload;
mod own_aggregate;
pub(crate) mod partition;
pub(crate) mod policy;
pub(crate) mod polymorphic;
mod publication;
pub(crate) mod qualify;
pub(crate) mod record;
mod relation_statistics;
pub(crate) mod rights;
pub(crate) mod role;
pub(crate) mod routine;
pub(crate) mod rule;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod sequence;
pub(crate) mod setop;
pub(crate) mod similar;
mod statistics;
pub(crate) mod sublink;
mod subscript;
mod target_sets;
pub(crate) mod through;
mod trigger;
mod typed_table;
pub(crate) mod typename;
pub(crate) mod user_types;
pub(crate) mod utility;
mod variable;
pub(crate) mod view;
pub(crate) mod window;
pub(crate) mod words;

pub(crate) use scope::Scope;
pub use user_types::stored_domain_condition;

/// Deepest nesting of an expression on an ordinary stack. What follows binding (printing, planning, running)
/// recurses over it too.
const DEPTH_MAX: usize = 1000;

/// Deepest nesting of an expression that the running stack has room for.
fn depth_max() -> usize {
    crate::nesting::levels_of(sched::stack_bytes()).max(DEPTH_MAX)
}

/// Parameters that any statement may have.
const PARAMS_MAX: usize = 65_535;
/// PostgreSQL's greatest number of a parameter.
const NUMBER_MAX: usize = 0x3fff_ffff / size_of::<Oid>();

/// Literals of a normalised text on their way to become parameters.
struct Lifting {
    /// Literal by byte position.
    by_start: HashMap<usize, usize>,
    kinds: Vec<LiteralKind>,
    ranges: Vec<std::ops::Range<usize>>,
    /// Literal of each parameter.
    lifted: Vec<usize>,
    /// Above 0 where literals must stay.
    held: u32,
    /// Parameters that stand in several places: these keep their type.
    pinned: Vec<u32>,
}

/// Binds one statement.
pub(crate) struct Binder<'a> {
    /// What binding depends on.
    pub cx: &'a PrepareContext<'a>,
    /// The statement's text.
    pub text: &'a str,
    positions: Positions,
    /// All columns of the statement.
    pub vars: Vec<Var>,
    /// Types of the parameters; UNKNOWN until inferred.
    pub params: Vec<Oid>,
    lifting: Option<Lifting>,
    /// WITH queries of the statement.
    pub ctes: Vec<Cte>,
    /// WITH names in force, innermost last.
    pub(crate) cte_names: Vec<cte::CteName>,
    /// WITH queries that are not bound yet, the next one last.
    pending_ctes: Vec<cte::PendingCte>,
    /// Queries that are being bound, one inside the other.
    pub(crate) queries: u32,
    /// Subqueries of expressions that are being bound, one inside the other.
    pub(crate) sublinks: u32,
    /// The views around what is being bound, outermost first.
    pub(crate) expanding: Vec<u32>,
    /// Subqueries whose literals stay, as they were written.
    pub(crate) written_sublinks: Vec<sublink::WrittenSublink>,
    /// The names of scalar subqueries' columns, by address of the SELECT.
    pub(crate) scalar_names: std::collections::HashMap<usize, String>,
    /// Tables with the locks that they need.
    pub locks: Vec<(Oid, LockMode)>,
    /// What the statement needs the right to do.
    pub(crate) needs: Vec<rights::Need>,
    /// Functions called that not everybody may call.
    pub(crate) called: Vec<Oid>,
    /// In whose name tables are used: the session's role, or the owner of the view being bound.
    pub(crate) acting: u32,
    /// Whether the session's role is one whose rights are checked: no superuser.
    pub(crate) checks: bool,
    /// Above 0 while what is bound is not the statement's own, and so no use of columns.
    pub(crate) unseen: u32,
    /// How deeply the expression that is being bound is nested.
    pub(crate) depth: usize,
    /// The next query may have INTO.
    into_allowed: bool,
    /// Constructs around what is being bound in which a recursive query must not refer to itself.
    pub(crate) unrecursive: Vec<&'static str>,
    /// The statement changes data: its own WITH, which is the only one at the top, is bound already.
    pub(crate) changing: bool,
    /// Bound subqueries of expressions; `SubqueryExpr::plan` refers to them.
    pub subqueries: Vec<Query>,
    /// Keeps calls and casts of constants as they are, for printing.
    pub(crate) unfolded: bool,
    /// The texts that are kept of new CHECKs, by the address of their nodes.
    pub(crate) check_texts: Vec<(usize, String)>,
    /// The error of a statement's first name that is one of another database.
    pub(crate) elsewhere: std::cell::RefCell<Option<base::Error>>,
    /// See [`crate::plan::Prepared::constant_calls`].
    pub(crate) constant_calls: std::cell::RefCell<Vec<crate::plan::ConstantCall>>,
    /// How many expressions around the one at hand may leave it out.
    pub(crate) elective: u32,
    /// How many may do so for some rows.
    pub(crate) conditional: u32,
    /// OVERRIDING of the INSERT that is being bound ([`pb::OverridingKind`]).
    pub(crate) overriding: i32,
    /// Notes what printing needs, while a view's query is bound.
    pub(crate) record: Option<record::Record>,
    /// What is bound is a CALL.
    pub(crate) calling: bool,
    /// Something in the statement has a collation other than its type's.
    pub(crate) collating: bool,
    /// Collations of the subquery's columns, in the test that is being bound.
    pub(crate) slot_collations: Vec<u32>,
    /// The table that the statement makes, which `regclass` literals may name.
    pub(crate) new_table: Option<String>,
    /// What a definition has to say.
    pub(crate) notices: Vec<String>,
    /// The function that is looked for is a procedure of CALL.
    pub(crate) in_call: bool,
    /// Variables of the program whose statement is bound.
    pub(crate) variables: Option<&'a dyn crate::embedded::Variables>,
    /// FOR UPDATE and kin of the query whose FROM is being bound.
    pub(crate) locking: Vec<pb::LockingClause>,
    /// The same, of the query around the one that is bound next: it applies to all tables of that one's FROM.
    pub(crate) locking_around: Vec<pb::LockingClause>,
    /// How many views deep the query is that is being bound.
    pub(crate) view_depth: u32,
    /// Tables of FROM by their first columns, with what row-level security demands of their rows.
    pub(crate) guards: Vec<(Col, Vec<Expr>)>,
    /// Defaults of the views that an INSERT goes through, in place of those of the table's columns: table, column
    /// from 1, expression.
    pub(crate) shown_defaults: Vec<(u32, u16, String)>,
    /// What is bound is printed, not run: no policies.
    pub(crate) bypassing: bool,
    /// Tables whose policies are being bound, one inside the other.
    pub(crate) guarding: Vec<u32>,
    /// The next call stays one: what it is called by and gives counts in FROM.
    pub(crate) keep_call: bool,
    /// Functions whose bodies are being bound in place of their calls, one inside the other.
    pub(crate) inlining: Vec<inline::Inlining>,
    /// The view below others that is changed itself, because its rules are looked at; 0: none.
    pub(crate) changed_view: u32,
    /// The statement has a set-returning call somewhere.
    pub(crate) expands: bool,
    /// What a rule lets the statement see that is bound next.
    pub(crate) applied: Option<rule::Applied>,
    /// Conditions of INSTEAD rules that must not hold for the rows of the statement that is bound next.
    pub(crate) excepted: Vec<rule::Excepted>,
    /// RETURNING of the statements that rules have replaced by the one that is bound next, the innermost first.
    pub(crate) returned: Vec<rule::Returned<'a>>,
}

impl<'a> Binder<'a> {
    /// For one statement with declared parameter types (0: to be inferred).
    pub fn new(cx: &'a PrepareContext<'a>, text: &'a str, declared: &[Oid]) -> Binder<'a> {
        Binder {
            cx,
            text,
            positions: Positions::new(text),
            vars: Vec::new(),
            params: declared.iter().map(|t| if t.0 == 0 { UNKNOWN } else { *t }).collect(),
            lifting: None,
            ctes: Vec::new(),
            cte_names: Vec::new(),
            pending_ctes: Vec::new(),
            queries: 0,
            sublinks: 0,
            expanding: Vec::new(),
            written_sublinks: Vec::new(),
            scalar_names: std::collections::HashMap::new(),
            locks: Vec::new(),
            needs: Vec::new(),
            called: Vec::new(),
            acting: cx.role,
            checks: !cx.catalog.role(cx.role).is_some_and(|r| r.superuser),
            unseen: 0,
            depth: 0,
            into_allowed: false,
            changing: false,
            unrecursive: Vec::new(),
            subqueries: Vec::new(),
            unfolded: false,
            constant_calls: Default::default(),
            elective: 0,
            conditional: 0,
            overriding: 0,
            record: None,
            locking: Vec::new(),
            locking_around: Vec::new(),
            calling: false,
            collating: false,
            slot_collations: Vec::new(),
            new_table: None,
            notices: Vec::new(),
            check_texts: Vec::new(),
            elsewhere: Default::default(),
            in_call: false,
            variables: None,
            view_depth: 0,
            guards: Vec::new(),
            shown_defaults: Vec::new(),
            bypassing: false,
            guarding: Vec::new(),
            inlining: Vec::new(),
            keep_call: false,
            changed_view: 0,
            expands: false,
            applied: None,
            excepted: Vec::new(),
            returned: Vec::new(),
        }
    }

    /// Lets these literals become parameters.
    pub fn lift(&mut self, lift: &Lift<'_>) {
        let literals = lift.literals;
        let free = literals.iter().enumerate().filter(|(i, _)| !lift.fixed.contains(i));
        self.lifting = Some(Lifting {
            by_start: free.map(|(i, l)| (l.range.start, i)).collect(),
            kinds: literals.iter().map(|l| l.kind).collect(),
            ranges: literals.iter().map(|l| l.range.clone()).collect(),
            lifted: Vec::new(),
            held: 0,
            pinned: Vec::new(),
        });
    }

    /// Character position of a byte location of the tree.
    pub fn at(&self, location: i32) -> u32 {
        self.positions.at(location)
    }

    /// A new column.
    ///
    /// # Errors
    /// `54011` when the statement has too many.
    pub fn new_var(&mut self, name: &str, ty: Oid, typmod: i32) -> Result<Col> {
        let col = Col::try_from(self.vars.len())
            .map_err(|_| err!(TOO_MANY_COLUMNS, "statement uses more than 65536 columns"))?;
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            typmod,
            origin: None,
            position: 0,
            read: false,
            collation: 0,
            row: Vec::new(),
        });
        Ok(col)
    }

    /// Keeps what is known of the columns of a record that becomes a column.
    pub(crate) fn note_row(&mut self, col: Col, value: &Expr) {
        if value.ty() == types::oids::RECORD
            && let Some(row) = from::columns_of_row(value, &self.vars)
        {
            self.vars[usize::from(col)].row = row;
        }
    }

    /// A column as an expression.
    pub fn column(&self, col: Col) -> Expr {
        Expr::Column(col, self.vars[usize::from(col)].ty)
    }

    /// The typmod that an expression is known to have.
    pub fn typmod_of(&self, expr: &Expr) -> i32 {
        match expr {
            // Places in a plan's rows are no columns of the statement.
            Expr::Column(col, _) => self.vars.get(usize::from(*col)).map_or(-1, |var| var.typmod),
            Expr::Typmod { typmod, .. } | Expr::InOutCast { typmod, .. } => *typmod,
            Expr::Collate(arg, ..) => self.typmod_of(arg),
            Expr::NullIf { args, .. } => self.typmod_of(&args[0]),
            Expr::Coalesce(args, _) | Expr::MinMax { args, .. } => self.typmod_of_all(args.iter()),
            Expr::Case { arms, default, .. } => {
                self.typmod_of_all(std::iter::once(&**default).chain(arms.iter().map(|arm| &arm.1)))
            }
            Expr::Subscript { array, .. } => self.typmod_of(array),
            Expr::Array { items, .. } => self.typmod_of_all(items.iter()),
            Expr::Call { function, args, .. } => match &args[..] {
                [value, ..] if keeps_typmod(function) => self.typmod_of(value),
                _ => -1,
            },
            _ => -1,
        }
    }

    /// The typmod that all of several values have.
    fn typmod_of_all<'e>(&self, mut all: impl Iterator<Item = &'e Expr>) -> i32 {
        let typmod = all.next().map_or(-1, |e| self.typmod_of(e));
        if typmod >= 0 && all.all(|e| self.typmod_of(e) == typmod) { typmod } else { -1 }
    }

    /// A statement's parameter (`$1` is 0).
    pub fn param(&mut self, number: i32, location: i32) -> Result<Expr> {
        if let Ok(at) = usize::try_from(number - 1)
            && let Some(arg) = self.inlined_by(None, Ok(at))
        {
            return Ok(arg);
        }
        if let Some(arguments) = self.cx.arguments
            && usize::try_from(number).is_ok_and(|n| n > arguments.names.len())
        {
            return Err(
                err!(UNDEFINED_PARAMETER, "there is no parameter ${number}").at(self.at(location))
            );
        }
        if let Some(variables) = self.variables() {
            return match variables.numbered(number) {
                Some(variable) => Ok(self.variable(&variable)),
                None => Err(err!(UNDEFINED_PARAMETER, "there is no parameter ${number}")
                    .at(self.at(location))),
            };
        }
        let index = match usize::try_from(number - 1) {
            Ok(n) if n < PARAMS_MAX.max(self.text.len()).max(self.params.len()) => n,
            // The text is too short to name all those before it, so there is one whose type nobody can tell.
            Ok(n) if n < NUMBER_MAX => {
                let unknown = self.params.iter().position(|ty| *ty == UNKNOWN);
                let unknown = unknown.unwrap_or(self.params.len()) + 1;
                return Err(err!(
                    INDETERMINATE_DATATYPE,
                    "could not determine data type of parameter ${unknown}"
                ));
            }
            _ => {
                return Err(err!(UNDEFINED_PARAMETER, "there is no parameter ${number}")
                    .at(self.at(location)));
            }
        };
        if self.params.len() <= index {
            self.params.resize(index + 1, UNKNOWN);
        }
        let ty = self.params[index];
        let param = Expr::Param(index as u32, ty);
        Ok(if types::user::has_domains(ty) { self.checked(param, ty) } else { param })
    }

    /// Fixes the type of a parameter.
    pub fn set_param(&mut self, param: u32, ty: Oid, position: u32) -> Result<Expr> {
        let known = self.params[param as usize];
        if known != UNKNOWN && known != ty {
            return Err(err!(
                AMBIGUOUS_PARAMETER,
                "inconsistent types deduced for parameter ${}",
                param + 1
            )
            .detail(format!(
                "{} versus {}",
                types::io::format_type(known, -1),
                types::io::format_type(ty, -1)
            ))
            .at(position));
        }
        self.params[param as usize] = ty;
        Ok(Expr::Param(param, ty))
    }

    /// Whether a parameter stands for a literal.
    pub fn is_lifted(&self) -> bool {
        self.lifting.is_some()
    }

    /// An expression is about to be used in several places: a literal in it keeps its type.
    pub fn pin(&mut self, e: &Expr) {
        if let (Expr::Param(param, _), Some(lifting)) = (e, &mut self.lifting) {
            lifting.pinned.push(*param);
        }
    }

    /// The type of a lifted literal becomes another one: its text is read as that. A literal that
    /// is used in several places becomes another parameter instead.
    pub fn retype_lifted(&mut self, param: u32, ty: Oid) -> Expr {
        if let Some(lifting) = &mut self.lifting
            && lifting.pinned.contains(&param)
            && let Ok(new) = u32::try_from(self.params.len())
        {
            let literal = lifting.lifted[param as usize];
            lifting.lifted.push(literal);
            self.params.push(ty);
            return Expr::Param(new, ty);
        }
        self.params[param as usize] = ty;
        Expr::Param(param, ty)
    }

    /// A parameter for the literal at this place, if literals may become parameters here and the
    /// scanner saw the same literal as the grammar.
    pub fn lift_literal(&mut self, c: &pb::AConst) -> Option<Expr> {
        let start = usize::try_from(c.location).ok()?;
        let lifting = self.lifting.as_mut()?;
        if lifting.held > 0 {
            return None;
        }
        // A literal bound twice becomes two parameters.
        let literal = *lifting.by_start.get(&start)?;
        if !agrees(&self.text[lifting.ranges[literal].clone()], c) {
            return None;
        }
        let param = u32::try_from(self.params.len()).ok()?;
        let ty = match lifting.kinds[literal] {
            LiteralKind::Int4 => types::oids::INT4,
            LiteralKind::Int8 => types::oids::INT8,
            LiteralKind::Numeric => types::oids::NUMERIC,
            LiteralKind::String => UNKNOWN,
        };
        lifting.lifted.push(literal);
        self.params.push(ty);
        Some(Expr::Param(param, ty))
    }

    /// The next query may be SELECT … INTO.
    pub fn allow_into(&mut self) {
        self.into_allowed = true;
    }

    /// Variables of the program, where its own text is bound.
    pub(crate) fn variables(&self) -> Option<&'a dyn crate::embedded::Variables> {
        self.variables.filter(|_| self.unseen == 0)
    }

    /// Runs `f` over text that is not the program's: a view's query, a default.
    pub(crate) fn without_variables<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let variables = self.variables.take();
        let result = f(self);
        self.variables = variables;
        result
    }

    /// Binds a part of an expression that is not computed for each row; `decided`: perhaps for none, by constants
    /// before it.
    pub(crate) fn reached_if<R>(&mut self, decided: bool, f: impl FnOnce(&mut Self) -> R) -> R {
        self.conditional += 1;
        let result = if decided { self.electively(f) } else { f(self) };
        self.conditional -= 1;
        result
    }

    /// Binds what an expression may leave out.
    pub(crate) fn electively<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.elective += 1;
        let result = f(self);
        self.elective -= 1;
        result
    }

    /// Runs `f` with literals kept as they are.
    pub fn holding<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        if let Some(lifting) = &mut self.lifting {
            lifting.held += 1;
        }
        let result = f(self);
        if let Some(lifting) = &mut self.lifting {
            lifting.held -= 1;
        }
        result
    }

    /// Ends binding: every parameter must have a type. Returns the lifted literals in order.
    pub fn finish_params(&mut self) -> Result<Vec<Lifted>> {
        if let Some(at) = self.params.iter().position(|t| *t == UNKNOWN) {
            if self.lifting.is_none() && self.variables.is_none() {
                return Err(err!(
                    INDETERMINATE_DATATYPE,
                    "could not determine data type of parameter ${}",
                    at + 1
                ));
            }
            for ty in self.params.iter_mut().filter(|t| **t == UNKNOWN) {
                *ty = types::oids::TEXT;
            }
        }
        let lifted = self.lifting.as_ref().map(|l| l.lifted.as_slice()).unwrap_or_default();
        Ok(lifted
            .iter()
            .zip(&self.params)
            .map(|(literal, ty)| Lifted { literal: *literal, ty: *ty, relied: false })
            .collect())
    }

    /// The values of literals that became parameters.
    pub fn lifted_values(&self, lifted: &[Lifted]) -> Vec<Option<types::Datum>> {
        let Some(lifting) = &self.lifting else { return Vec::new() };
        let value = |one: &Lifted| {
            let text = self.text.get(lifting.ranges.get(one.literal)?.clone())?;
            crate::cache::parameter(text, one.ty, self.cx).ok()
        };
        lifted.iter().map(value).collect()
    }

    /// Notes the lock that a table needs; the stronger one of several.
    pub fn lock(&mut self, table: u32, mode: LockMode) {
        match self.locks.iter_mut().find(|(t, _)| t.0 == table) {
            Some((_, held)) => *held = (*held).max(mode),
            None => self.locks.push((Oid(table), mode)),
        }
    }

    /// `0A000` at a place.
    pub fn unsupported(&self, what: &str, location: i32) -> Error {
        Error::unsupported(what).at(self.at(location))
    }
}

/// The node inside a box, if any.
pub(crate) fn inner(node: &Option<Box<pb::Node>>) -> Option<&NodeEnum> {
    node.as_ref().and_then(|n| n.node.as_ref())
}

/// Whether a literal's text is what the grammar read. (Strings that continue on another line, for
/// one, are not.)
fn agrees(text: &str, c: &pb::AConst) -> bool {
    use pb::a_const::Val;
    match &c.val {
        Some(Val::Sval(s)) => match text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
            Some(inner) if inner.contains('\'') => inner.replace("''", "'") == s.sval,
            Some(inner) => inner == s.sval,
            None => false,
        },
        Some(Val::Ival(i)) => text.parse() == Ok(i.ival),
        Some(Val::Fval(f)) => text == f.fval,
        Some(_) => false,
        None => !c.isnull && text.parse() == Ok(0),
    }
}

/// Whether a function's result has the typmod of its first argument.
fn keeps_typmod(function: &types::func::FunctionRow) -> bool {
    use types::func::internal::{ARRAY_SLICE, WRITTEN_CAST, WRITTEN_SUBSCRIPTS};
    [&ARRAY_SLICE, &WRITTEN_CAST, &WRITTEN_SUBSCRIPTS].iter().any(|f| f.oid == function.oid)
}
