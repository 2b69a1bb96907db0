//! FunctionCall: a function by its oid, as the large objects of client libraries are read and written.
//!
//! It is run as a SELECT of the function over parameters would be: with the same rights, in the same
//! transaction, its plan found like any other's.

use base::{Error, Oid, Result, err};
use types::{Datum, io};
use wire::extended::FunctionCall;
use wire::response;

use super::SessionState;
use super::portal::ResultFormats;
use super::rows::CollectedRows;
use crate::session::statement_run::Run;

impl SessionState {
    /// FunctionCall. Fatal errors only are returned.
    pub(super) fn function_call(&mut self, call: &FunctionCall<'_>) -> Result<()> {
        self.prologue();
        let result = self.guarded(|s| s.run_function(call));
        if let Err(error) = result {
            self.failed(error, None)?;
        }
        self.ready()
    }

    fn run_function(&mut self, call: &FunctionCall<'_>) -> Result<()> {
        let id = call.function;
        let (name, types) = self.function_of(id)?;
        let given = call.arguments.count;
        if given != types.len() {
            return Err(err!(
                PROTOCOL_VIOLATION,
                "function call message contains {given} arguments but function requires {}",
                types.len()
            ));
        }
        let params: Vec<String> = (1..=given).map(|n| format!("${n}")).collect();
        let text = format!("SELECT {name}({})", params.join(", "));
        self.begin_statement(&text);
        self.arm_timeout();
        self.check_not_failed()?;
        self.ensure_transaction();
        let mut plan = self.plan(&text, &types)?;
        let view = self.view();
        let params = self.parameters(&call.arguments, &types, Some(&view))?;
        let mut run = Run {
            text: &text,
            declared: Some(&types),
            plan: &mut plan,
            params,
            formats: &ResultFormats::default(),
            rest: &[],
            describe: false,
            discard: true,
        };
        self.begin_run(&mut run)?;
        let prepared = run.plan.prepared.clone();
        let snapshot = self.snapshot()?;
        let column = prepared.columns.first().map_or(Oid::INVALID, |c| c.ty);
        let mut kept = CollectedRows { rows: Vec::new(), types: vec![column] };
        self.with_context(&run, snapshot, |cx, _| exec::run(&prepared, cx, &mut kept))?;
        self.end_command(&prepared, 1);
        let value = kept.rows.pop().and_then(|mut row| row.pop()).unwrap_or_default();
        let mut bytes = Vec::new();
        match value {
            Datum::Null => {}
            _ if call.arguments.results.binary(0) => io::send(column, &value, &mut bytes)?,
            _ => io::output(column, &value, &self.settings.format, &mut bytes)?,
        }
        let in_binary = call.arguments.results.binary(0);
        let bytes = self.recoded(column, bytes, in_binary)?;
        self.end_implicit()?;
        let out = &mut self.out.get_mut().buffer;
        response::function_result(out, (!value.is_null()).then_some(&bytes));
        Ok(())
    }

    /// A function's qualified name and the types of its arguments.
    fn function_of(&mut self, id: u32) -> Result<(String, Vec<Oid>)> {
        let quote = catalog::definition::quote_ident;
        if let Some(row) = types::func::function(Oid(id)) {
            return Ok((format!("pg_catalog.{}", quote(row.name)), row.args.to_vec()));
        }
        let view = self.view();
        let missing = || -> Error {
            match catalog::system::facts::function_name(id) {
                Some(name) => Error::unsupported(format!("function {name}")),
                None => err!(UNDEFINED_FUNCTION, "function with OID {id} does not exist"),
            }
        };
        let function = view.function(id).ok_or_else(missing)?;
        let schema = view.schema(function.schema).map_or("", |s| s.name.as_str());
        Ok((format!("{}.{}", quote(schema), quote(&function.name)), function.input_types()))
    }
}
