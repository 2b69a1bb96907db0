//! Procedural languages: the point at which code that users wrote is attached to the executor.
//!
//! ```text
//!   CREATE FUNCTION ──► Language::validate
//!   a call ──► compiled routines (by function version and types) ──► Routine::call, call_set, …
//!                  │ the first time: Language::compile
//!   DO ──► Language::run_block          a trigger ──► Routine::call_trigger
//! ```
//!
//! * A language lies above this crate; the layer that starts the server fills [`Languages`].
//! * A compiled [`Routine`] is shared by all sessions and never changes; what one call needs of its own
//!   lies in the call.
//! * A routine runs in the role and under the settings that its [`ExecContext`] says: SECURITY DEFINER and
//!   SET are the caller's to put in force.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::{Function, Table};
use types::datum::Shape;
use types::oids::{RECORD, TRIGGER, VOID};
use types::{Column, Datum, Text};

use crate::context::ExecContext;
use crate::modify::row_store::RowStore;

/// The types of one call: polymorphic parameters and results have real ones here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallSignature {
    /// Of the inputs.
    pub args: Vec<Oid>,
    /// Of the result; `trigger` when a trigger calls.
    pub result: Oid,
}

/// The form of a function's results: a type, and the columns where they are rows.
#[derive(Clone, Debug)]
pub struct ResultForm {
    /// The type.
    pub ty: Oid,
    /// The columns of a row.
    pub shape: Option<Arc<Shape>>,
}

impl ResultForm {
    /// The form that a function is declared with. `result`: its type in this call, below a domain for languages that
    /// take such for the type below. Types that users define are known to conversions from here on.
    pub fn of(
        function: &Function,
        signature: &CallSignature,
        result: Oid,
        cx: &mut ExecContext<'_>,
    ) -> ResultForm {
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
        if signature.result != RECORD {
            return ResultForm { ty: signature.result, shape: types::user::shape(result) };
        }
        let columns = sql::routine::columns(&view, function);
        let real = |ty| sql::routine::real_type(function, &signature.args, ty);
        let columns: Vec<(Text, Oid)> =
            columns.into_iter().map(|(name, ty)| (Text::from(name), real(ty))).collect();
        match columns.is_empty() {
            true => ResultForm { ty: RECORD, shape: None },
            false => ResultForm::rows(&columns),
        }
    }

    /// Rows of these columns.
    pub fn rows(columns: &[(Text, Oid)]) -> ResultForm {
        let shape = Shape { ty: RECORD, columns: columns.to_vec() };
        ResultForm { ty: RECORD, shape: Some(Arc::new(shape)) }
    }

    /// The result of a procedure's CALL, from its body's value.
    pub fn outputs(&self, value: Datum) -> Datum {
        if self.shape.is_some() { value } else { Datum::Null }
    }

    /// The form in a call that may ask for columns (`AS t (a int, b text)`).
    pub fn wanted(&self, columns: Option<&[(Text, Oid)]>) -> ResultForm {
        columns.map_or_else(|| self.clone(), ResultForm::rows)
    }
}

/// A function as CONTEXT lines name it: `name(integer,text)`.
pub fn signature_text(function: &Function) -> String {
    let types: Vec<String> =
        function.input_types().iter().map(|t| types::io::format_type(*t, -1)).collect();
    format!("{}({})", catalog::definition::quote_ident(&function.name), types.join(","))
}

/// `42P13` for a trigger's function with parameters.
pub fn check_trigger_parameters(function: &Function, signature: &CallSignature) -> Result<()> {
    if signature.result == TRIGGER && !function.args.is_empty() {
        return Err(err!(
            INVALID_FUNCTION_DEFINITION,
            "trigger functions cannot have declared arguments"
        ));
    }
    Ok(())
}

/// The types with which the body of a new function is compiled; None: those of a polymorphic one are known when it is
/// called.
pub fn types_when_made(function: &Function) -> Option<CallSignature> {
    let signature = CallSignature { args: function.input_types(), result: Oid(function.result) };
    let is_open = |ty: &Oid| {
        types::TypeIo::get(*ty).is_some_and(|io| io.category == b'P')
            && !matches!(*ty, VOID | TRIGGER | RECORD)
    };
    let is_known = !signature.args.iter().chain([&signature.result]).any(is_open);
    is_known.then_some(signature)
}

/// `0A000` for a call of a trigger's function that no trigger makes.
pub fn only_as_trigger() -> Error {
    err!(FEATURE_NOT_SUPPORTED, "trigger functions can only be called as triggers")
}

/// Lets code of a language ask the server for something. Each language calls it before it answers a request, as an answer
/// may run the code again: by a query that calls its function, or by methods of the values that it converts.
///
/// # Errors
/// Interrupts; `54001` when little of the stack is left.
pub fn admit_request() -> Result<()> {
    sched::check_interrupts()?;
    sched::check_stack()
}

/// A procedural language.
pub trait Language: Send + Sync {
    /// Its name in `pg_language`.
    fn name(&self) -> &'static str;

    /// Whether a new function's body makes sense; not asked when `check_function_bodies` is off.
    ///
    /// # Errors
    /// Those of the body. `body_at`: where it begins in the statement's text, in characters from 1.
    fn validate(
        &self,
        function: &Arc<Function>,
        body_at: Option<u32>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()>;

    /// Makes a function ready to be called with these types.
    ///
    /// # Errors
    /// Those of the body.
    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>>;

    /// DO: runs a body without parameters and result.
    ///
    /// # Errors
    /// Those of the body.
    fn run_block(&self, body: &str, cx: &mut ExecContext<'_>) -> Result<()>;
}

/// A function that is ready to be called.
pub trait Routine: Send + Sync {
    /// Whether what it was compiled for is still so: asked when definitions have changed.
    ///
    /// # Errors
    /// Interrupts; those of what it asks.
    fn is_current(&self, cx: &mut ExecContext<'_>) -> Result<bool> {
        let _ = cx;
        Ok(true)
    }

    /// The value of a call.
    ///
    /// # Errors
    /// The body's.
    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum>;

    /// The rows of a call of a set-returning function. `wanted`: the columns that a column definition
    /// list names.
    ///
    /// # Errors
    /// The body's.
    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>>;

    /// CALL of a procedure: the row of its output parameters, NULL without any.
    ///
    /// # Errors
    /// The body's.
    fn call_procedure(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        self.call(args, cx)
    }

    /// Whether [`Routine::call_batch`] is there.
    fn takes_batches(&self) -> bool {
        false
    }

    /// The values of a call for each of so many rows of arguments. A strict function's result for a row with a NULL
    /// is NULL.
    ///
    /// # Errors
    /// The body's.
    fn call_batch(&self, args: &[Column], rows: usize, cx: &mut ExecContext<'_>) -> Result<Column> {
        let _ = (args, rows, cx);
        Err(Error::internal("a routine that takes no batches"))
    }

    /// Fires it as an event trigger.
    ///
    /// # Errors
    /// The body's; `0A000` when the language has no event triggers.
    fn call_event_trigger(&self, event: &str, tag: &str, cx: &mut ExecContext<'_>) -> Result<()> {
        let _ = (event, tag, cx);
        Err(Error::unsupported("an event trigger function in this language"))
    }

    /// Fires it as a trigger.
    ///
    /// # Errors
    /// The body's; `0A000` when the language has no triggers.
    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        let _ = (call, cx);
        Err(Error::unsupported("a trigger function in this language"))
    }
}

/// What happens to a row, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// TRUNCATE.
    Truncate,
}

impl TriggerEvent {
    /// `TG_OP`.
    pub fn word(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerTiming {
    /// BEFORE.
    Before,
    /// AFTER.
    After,
    /// INSTEAD OF.
    InsteadOf,
}

impl TriggerTiming {
    /// `TG_WHEN`.
    pub fn word(self) -> &'static str {
        match self {
            TriggerTiming::Before => "BEFORE",
            TriggerTiming::After => "AFTER",
            TriggerTiming::InsteadOf => "INSTEAD OF",
        }
    }
}

/// A transition table: REFERENCING OLD or NEW TABLE AS `name`.
#[derive(Clone)]
pub struct TransitionTable<'a> {
    /// Its name in the trigger's queries.
    pub name: &'a str,
    /// Its rows, each with one value a column of the table, dropped columns included.
    pub rows: &'a Arc<RowStore>,
}

/// One firing of a trigger.
pub struct TriggerCall<'a> {
    /// `TG_OP`.
    pub event: TriggerEvent,
    /// `TG_WHEN`.
    pub timing: TriggerTiming,
    /// FOR EACH ROW (`TG_LEVEL`).
    pub row_level: bool,
    /// `TG_NAME`.
    pub name: &'a str,
    /// The trigger's table: `TG_RELID`, `TG_TABLE_NAME`, `TG_TABLE_SCHEMA`.
    pub table: &'a Arc<Table>,
    /// The row before: one value a column of the table, dropped columns included.
    pub old: Option<&'a [Datum]>,
    /// The row after, of the same form.
    pub new: Option<&'a [Datum]>,
    /// `TG_ARGV`.
    pub args: &'a [String],
    /// REFERENCING OLD TABLE.
    pub old_table: Option<TransitionTable<'a>>,
    /// REFERENCING NEW TABLE.
    pub new_table: Option<TransitionTable<'a>>,
}

impl<'a> TriggerCall<'a> {
    /// `TG_TABLE_SCHEMA`. Types that users define are known to conversions from here on.
    pub fn schema(&self, cx: &mut ExecContext<'_>) -> String {
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
        view.schema(self.table.schema).map_or("", |s| s.name.as_str()).to_owned()
    }

    /// The columns that are there: place in the rows, type and name.
    pub fn columns(&self) -> impl Iterator<Item = (usize, Oid, &'a str)> {
        let live = self.table.live_columns();
        live.map(|(number, c)| (usize::from(number) - 1, Oid(c.ty), c.name.as_str()))
    }

    /// The row that the function may change.
    pub fn changeable(&self) -> Option<&'a [Datum]> {
        self.new.filter(|_| self.row_level && self.event != TriggerEvent::Delete)
    }
}

/// What a BEFORE ROW or INSTEAD OF trigger answers; those of others are ignored.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerResult {
    /// NULL: the row is left alone, and no further trigger fires for it.
    Skip,
    /// The row goes on as it came (the new one, or a DELETE's old one).
    Unchanged,
    /// The row goes on as this: one value a column of the table, dropped columns included.
    Row(Vec<Datum>),
}

/// The languages that the server was started with.
#[derive(Clone, Default)]
pub struct Languages(HashMap<&'static str, Arc<dyn Language>>);

impl Languages {
    /// Adds one.
    pub fn register(&mut self, language: Arc<dyn Language>) {
        self.0.insert(language.name(), language);
    }

    /// The one with this name.
    ///
    /// # Errors
    /// `42704`.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Language>> {
        self.0.get(name).ok_or_else(|| err!(UNDEFINED_OBJECT, "language \"{name}\" does not exist"))
    }
}
