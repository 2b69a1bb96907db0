//! PL/pgSQL (manual, chapter 43).
//!
//! ```text
//!   body ── scan ── parse ──► Program (shared by all sessions) ── a call: Frame ── run
//!                                │                                   │
//!                                └ SQL: expressions and statements whose parameters are the frame's slots
//! ```
//!
//! * A body is compiled once for all sessions, by function version and types of the arguments.
//! * An expression that touches no table is evaluated as it is; a statement's plan is kept with the program.
//!   Both are bound when they are first reached, since only then records have their shapes; a plan is kept
//!   with the shapes that it was made for.
//! * A block with EXCEPTION runs in a subtransaction.
//!
//! Never knows the protocol or the session; what it needs of these it asks of [`exec::context::SessionHooks`].
#![forbid(unsafe_code)]

mod assign;
mod cursor;
mod fast;
mod frame;
mod names;
mod parse;
mod program;
mod report;
mod result;
mod run;
mod scan;

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::Function;
use exec::ExecContext;
use exec::language::{
    CallSignature, Language, Routine, TriggerCall, TriggerResult, only_as_trigger,
};
use exec::modify::row_store::StoredRows;
use types::datum::Shape;
use types::oids::{RECORD, TRIGGER, VOID};
use types::{Datum, Text};

use frame::Frame;
use parse::Heading;
use program::{Program, Returns, TriggerSlots};
use run::Flow;

/// The language.
pub struct PlPgSql;

impl Language for PlPgSql {
    fn name(&self) -> &'static str {
        "plpgsql"
    }

    fn validate(
        &self,
        function: &Arc<Function>,
        body_at: Option<u32>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        check_types(function)?;
        if !cx.settings.bool(base::settings::setting::CHECK_FUNCTION_BODIES) {
            return Ok(());
        }
        let polymorphic = |ty: u32| types::io::format_type(Oid(ty), -1).starts_with("any");
        let real = |ty: u32| match polymorphic(ty) {
            // Any type does to see whether the body is well formed.
            true if types::io::format_type(Oid(ty), -1).ends_with("array") => Oid(1007),
            true => types::oids::INT4,
            false => Oid(ty),
        };
        let signature = CallSignature {
            args: function.inputs().map(|a| real(a.ty)).collect(),
            result: real(function.result),
        };
        let heading = Heading { body_at, ..heading(function, &signature, true, cx) };
        let parsed = parse::parse(&function.body, heading, cx).map(drop);
        parsed.map_err(|error| match (error.fields().position, body_at) {
            (0, _) => error,
            (_, Some(at)) => error.shift(at - 1),
            (_, None) => error.inside(&function.body),
        })
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        let heading = heading(function, signature, false, cx);
        exec::language::check_trigger_parameters(function, signature)?;
        let program =
            parse::parse(&function.body, heading, cx).map_err(|e| e.inside(&function.body))?;
        Ok(Arc::new(program))
    }

    fn run_block(&self, body: &str, cx: &mut ExecContext<'_>) -> Result<()> {
        let heading = Heading {
            name: "inline_code_block".to_owned(),
            signature: "inline_code_block".to_owned(),
            schema: None,
            params: Vec::new(),
            returns: Returns::Void,
            row_of: None,
            set: false,
            procedure: false,
            volatile: true,
            check: false,
            body_at: None,
        };
        let program = parse::parse(body, heading, cx)?;
        Frame::new(&program).run(cx).map(drop)
    }
}

/// `0A000` for types that values never have.
fn check_types(function: &Function) -> Result<()> {
    let pseudo = |ty: u32| {
        let name = types::io::format_type(Oid(ty), -1);
        matches!(
            name.as_str(),
            "cstring"
                | "internal"
                | "any"
                | "\"any\""
                | "void"
                | "trigger"
                | "event_trigger"
                | "language_handler"
                | "fdw_handler"
        )
        .then_some(name)
    };
    let result = pseudo(function.result)
        .filter(|name| !matches!(name.as_str(), "void" | "trigger" | "event_trigger"));
    if let Some(name) = result {
        base::bail!(FEATURE_NOT_SUPPORTED, "PL/pgSQL functions cannot return type {name}");
    }
    for arg in &function.args {
        if let Some(name) = pseudo(arg.ty) {
            base::bail!(FEATURE_NOT_SUPPORTED, "PL/pgSQL functions cannot accept type {name}");
        }
    }
    if Oid(function.result) == types::oids::EVENT_TRIGGER && function.inputs().next().is_some() {
        return Err(err!(
            INVALID_FUNCTION_DEFINITION,
            "event trigger functions cannot have declared arguments"
        )
        .context(format!("compilation of PL/pgSQL function \"{}\" near line 1", function.name)));
    }
    if Oid(function.result) == TRIGGER && function.inputs().next().is_some() {
        return Err(err!(
            INVALID_FUNCTION_DEFINITION,
            "trigger functions cannot have declared arguments"
        )
        .hint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.")
        .context(format!("compilation of PL/pgSQL function \"{}\" near line 1", function.name)));
    }
    Ok(())
}

/// The heading that a function's body is compiled for.
fn heading(
    function: &Function,
    signature: &CallSignature,
    check: bool,
    cx: &mut ExecContext<'_>,
) -> Heading {
    let view = cx.catalog_tx.view();
    cx.hooks.see_types(&view, cx.search_path);
    let mut given = signature.args.iter();
    let mut params = Vec::with_capacity(function.args.len());
    for arg in &function.args {
        let ty = match arg.mode {
            'i' | 'b' | 'v' => given.next().copied().unwrap_or(Oid(arg.ty)),
            _ => sql::routine::real_type(function, &signature.args, Oid(arg.ty)),
        };
        params.push((arg.name.clone(), ty, arg.mode));
    }
    let types: Vec<String> =
        function.input_types().iter().map(|t| types::io::format_type(*t, -1)).collect();
    let result = signature.result;
    let returns = if result == VOID && !function.procedure {
        Returns::Void
    } else if result == TRIGGER {
        Returns::Trigger
    } else if types::io::format_type(result, -1) == "event_trigger" {
        Returns::EventTrigger
    } else if result == RECORD {
        let columns = sql::routine::columns(&view, function);
        let shape = (!columns.is_empty()).then(|| {
            let real = |ty| sql::routine::real_type(function, &signature.args, ty);
            let columns =
                columns.into_iter().map(|(name, ty)| (Text::from(name), real(ty))).collect();
            Arc::new(Shape { ty: RECORD, columns })
        });
        Returns::Row(shape)
    } else if let Some(shape) = types::user::shape(result) {
        Returns::Row(Some(shape))
    } else if result == VOID {
        Returns::Void
    } else {
        Returns::Scalar(result)
    };
    Heading {
        name: function.name.clone(),
        signature: format!(
            "{}({})",
            catalog::definition::quote_ident(&function.name),
            types.join(",")
        ),
        schema: view.schema(function.schema).map(|s| (s.oid, s.name.clone())),
        params,
        returns,
        row_of: function.row_of,
        set: function.set,
        procedure: function.procedure,
        volatile: function.volatility == 'v',
        check,
        body_at: None,
    }
}

impl Program {
    fn begin(&self, args: &[Datum]) -> Frame<'_> {
        let mut frame = Frame::new(self);
        for (slot, value) in self.inputs.iter().zip(args) {
            frame.slots[usize::from(*slot)] = value.clone();
        }
        frame
    }

    fn value(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        let mut frame = self.begin(args);
        let flow = frame.run(cx)?;
        if !self.outputs.is_empty() {
            return frame.outputs(cx);
        }
        if flow != Flow::Return && !matches!(self.returns, Returns::Void) && !self.procedure {
            return Err(err!(
                S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
                "control reached end of function without RETURN"
            )
            .context(frame.line_of(0, "")));
        }
        self.returned(&mut frame, cx)
    }

    /// The value of RETURN, of the function's type.
    fn returned(&self, frame: &mut Frame<'_>, cx: &mut ExecContext<'_>) -> Result<Datum> {
        let value = std::mem::take(&mut frame.result);
        match &self.returns {
            Returns::Scalar(ty) => {
                let from = frame.result_type;
                if from == *ty {
                    return Ok(value);
                }
                frame.convert(value, from, (*ty, -1), cx).map_err(|e| {
                    e.context(
                        frame.line_of(0, "while casting return value to function's return type"),
                    )
                })
            }
            Returns::Row(_) => match value {
                Datum::Null => Ok(Datum::Null),
                row @ Datum::Record(_) => frame
                    .as_returned(
                        row,
                        "returned record type does not match expected record type",
                        cx,
                    )
                    .map_err(|e| {
                        e.context(
                            frame
                                .line_of(0, "while casting return value to function's return type"),
                        )
                    }),
                _ => Err(err!(
                    DATATYPE_MISMATCH,
                    "cannot return non-composite value from function returning composite type"
                )
                .context(frame.line_of(frame.at.0, "at RETURN"))),
            },
            _ => Ok(Datum::Null),
        }
    }
}

impl Routine for Program {
    fn is_current(&self, cx: &mut ExecContext<'_>) -> Result<bool> {
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
        let same = |(ty, shape): &(Oid, Arc<Shape>)| {
            types::user::shape(*ty).is_some_and(|now| Arc::ptr_eq(&now, shape) || now == *shape)
        };
        let rows = match (&self.returns, self.row_of) {
            (Returns::Row(Some(shape)), Some(table)) => view.table(table).is_some_and(|table| {
                let columns = table.live_columns().map(|(_, c)| (c.name.as_str(), Oid(c.ty)));
                columns.eq(shape.columns.iter().map(|(n, t)| (n.as_str(), *t)))
            }),
            (Returns::Row(Some(shape)), None) if shape.ty != RECORD => {
                same(&(shape.ty, shape.clone()))
            }
            _ => true,
        };
        Ok(rows && self.shapes.iter().all(same))
    }

    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        match self.returns {
            Returns::Void => {
                self.begin(args).run(cx)?;
                Ok(Datum::text(""))
            }
            Returns::Trigger | Returns::EventTrigger => Err(only_as_trigger().context(format!(
                "compilation of PL/pgSQL function \"{}\" near line 1",
                self.name
            ))),
            _ => self.value(args, cx),
        }
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        let shape = wanted.map(|columns| Arc::new(Shape { ty: RECORD, columns: columns.to_vec() }));
        if !self.set {
            let mut frame = self.begin(args);
            frame.wanted = shape;
            let flow = frame.run(cx)?;
            if !self.outputs.is_empty() {
                return Ok(vec![frame.outputs(cx)?]);
            }
            if flow != Flow::Return && self.returns != Returns::Void {
                return Err(err!(
                    S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
                    "control reached end of function without RETURN"
                )
                .context(frame.line_of(0, "")));
            }
            if self.returns == Returns::Void {
                return Ok(vec![Datum::text("")]);
            }
            return Ok(vec![self.returned(&mut frame, cx)?]);
        }
        let mut frame = self.begin(args);
        frame.wanted = shape;
        frame.run(cx)?;
        Ok(frame.rows)
    }

    fn call_procedure(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        let mut frame = self.begin(args);
        frame.run(cx)?;
        if self.outputs.is_empty() {
            return Ok(Datum::Null);
        }
        frame.outputs(cx)
    }

    fn call_event_trigger(&self, event: &str, tag: &str, cx: &mut ExecContext<'_>) -> Result<()> {
        if self.returns != Returns::EventTrigger {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "function {} was not called as an event trigger",
                self.name
            ));
        }
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
        self.begin(&[Datum::text(event), Datum::text(tag)]).run(cx)?;
        Ok(())
    }

    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        let Some(slots) = &self.trigger else {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "function {} was not called as a trigger",
                self.name
            ));
        };
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
        let mut frame = Frame::new(self);
        let columns = Columns::of(call.table);
        fill(&mut frame, slots, call, &columns, &view);
        let flow = frame.run(cx)?;
        if flow != Flow::Return {
            return Err(err!(
                S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
                "control reached end of trigger procedure without RETURN"
            )
            .context(frame.line_of(0, "")));
        }
        let result = std::mem::take(&mut frame.result);
        match result {
            Datum::Null => Ok(TriggerResult::Skip),
            Datum::Record(row) => {
                let base = call.new.or(call.old);
                let same = base.is_some_and(|base| columns.same(base, &row.fields));
                if same && row.fields.len() == columns.places.len() {
                    return Ok(TriggerResult::Unchanged);
                }
                let ty = Oid(call.table.row_type[0]);
                let given = row.shape.columns.clone();
                let fields = match columns.shape.columns.len() == row.fields.len()
                    && columns.shape.columns.iter().zip(&given).all(|(a, b)| a.1 == b.1)
                {
                    true => row.fields.to_vec(),
                    false if given.len() != columns.shape.columns.len() => {
                        return Err(err!(
                            DATATYPE_MISMATCH,
                            "returned row structure does not match the structure of the triggering table"
                        )
                        .detail(format!(
                            "Number of returned columns ({}) does not match expected column count ({}).",
                            given.len(),
                            columns.shape.columns.len()
                        ))
                        .context(frame.line_of(0, "during function exit")));
                    }
                    false => match frame.row_of_type(ty, row.fields.to_vec(), &given, cx)? {
                        Datum::Record(row) => row.fields.to_vec(),
                        _ => row.fields.to_vec(),
                    },
                };
                Ok(TriggerResult::Row(columns.physical(fields, call.table.columns.len())))
            }
            _ => Err(err!(
                DATATYPE_MISMATCH,
                "cannot return non-composite value from function returning composite type"
            )
            .context(frame.line_of(frame.at.0, "at RETURN"))),
        }
    }
}

/// A table's columns that are not dropped.
struct Columns {
    shape: Arc<Shape>,
    /// Where each is among all columns.
    places: Vec<usize>,
}

impl Columns {
    fn of(table: &catalog::Table) -> Columns {
        let places: Vec<usize> =
            table.live_columns().map(|(number, _)| usize::from(number) - 1).collect();
        let shape = types::user::shape(Oid(table.row_type[0])).unwrap_or_else(|| {
            let columns = table.live_columns().map(|(_, c)| (c.name.as_str().into(), Oid(c.ty)));
            Arc::new(Shape { ty: RECORD, columns: columns.collect() })
        });
        Columns { shape, places }
    }

    fn row(&self, values: &[Datum]) -> Datum {
        let fields = self.places.iter().map(|at| values.get(*at).cloned().unwrap_or_default());
        Datum::record(self.shape.clone(), fields.collect())
    }

    fn same(&self, values: &[Datum], fields: &[Datum]) -> bool {
        self.places.iter().zip(fields).all(|(at, field)| values.get(*at) == Some(field))
    }

    fn physical(&self, fields: Vec<Datum>, count: usize) -> Vec<Datum> {
        let mut out = vec![Datum::Null; count];
        for (at, field) in self.places.iter().zip(fields) {
            out[*at] = field;
        }
        out
    }
}

/// A trigger's variables.
fn fill(
    frame: &mut Frame<'_>,
    slots: &TriggerSlots,
    call: &TriggerCall<'_>,
    columns: &Columns,
    view: &catalog::Snapshot,
) {
    // The row that an event lacks is NULL, and its fields can be named.
    for (row, slot) in [(call.new, slots.new), (call.old, slots.old)] {
        match row {
            Some(row) => frame.slots[usize::from(slot)] = columns.row(row),
            None => frame.absent.push((slot, columns.shape.clone())),
        }
    }
    let schema = view.schema(call.table.schema).map_or("", |s| s.name.as_str());
    for (name, slot) in &slots.others {
        frame.slots[usize::from(*slot)] = match *name {
            "tg_name" => Datum::text(call.name),
            "tg_when" => Datum::text(call.timing.word()),
            "tg_level" => Datum::text(if call.row_level { "ROW" } else { "STATEMENT" }),
            "tg_op" => Datum::text(call.event.word()),
            "tg_relid" => Datum::Oid(call.table.oid),
            "tg_table_schema" => Datum::text(schema),
            "tg_nargs" => Datum::Int4(call.args.len() as i32),
            "tg_argv" => {
                let items: Vec<Datum> = call.args.iter().map(|a| Datum::text(a)).collect();
                // These count from 0.
                let dims = if items.is_empty() { vec![] } else { vec![(items.len() as i32, 0)] };
                let array = types::datum::Array { element: types::oids::TEXT, dims, items };
                Datum::Array(Arc::new(array))
            }
            _ => Datum::text(&call.table.name),
        };
    }
    let tables = [(&call.old_table, slots.tables[0]), (&call.new_table, slots.tables[1])];
    for (table, slot) in tables {
        let Some(table) = table else { continue };
        frame.slots[usize::from(slot)] = match table.rows.in_memory() {
            Some(rows) => Datum::array(RECORD, rows.iter().map(|row| columns.row(row)).collect()),
            None => Datum::open(StoredRows::new(table.rows, &columns.places, &columns.shape)),
        };
        frame.tables.push((table.name.to_owned(), slot, columns.shape.clone()));
    }
}
