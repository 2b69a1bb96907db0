//! Functions of extensions that need the session: what `LANGUAGE c` functions call when values alone don't do.
//!
//! A library's other functions are in `types::extension`; the binder calls those as it calls the server's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, Oid, Result, err};
use catalog::Function;
use types::func::{Body, CallTypes};
use types::{Datum, Text};

use crate::context::ExecContext;
use crate::language::{
    CallSignature, Language, Routine, TriggerCall, TriggerResult, only_as_trigger,
};

/// What stands among the running statements while an extension's script runs: this and the extension's name.
pub const SCRIPT_MARK: &str = "extension script ";

/// A call of a function that returns rows.
pub struct SetCall<'a> {
    /// The arguments.
    pub args: &'a [Datum],
    /// Their types, and the result's.
    pub signature: &'a CallSignature,
    /// The function.
    pub function: &'a Function,
    /// The columns that a column definition list names.
    pub wanted: Option<&'a [(Text, Oid)]>,
}

/// How such a function runs.
#[derive(Clone, Copy)]
pub enum Native {
    /// It gives a value.
    Scalar(fn(&[Datum], &mut ExecContext<'_>) -> Result<Datum>),
    /// It gives rows.
    Set(fn(&SetCall<'_>, &mut ExecContext<'_>) -> Result<Vec<Datum>>),
    /// It is a trigger's.
    Trigger(fn(&TriggerCall<'_>, &mut ExecContext<'_>) -> Result<TriggerResult>),
}

/// Functions by symbol.
pub type Symbols = &'static [(&'static str, Native)];

static LIBRARIES: Mutex<Option<HashMap<&'static str, Symbols>>> = Mutex::new(None);

/// Makes a library's functions known, when the server starts.
pub fn register(library: &'static str, symbols: Symbols) {
    let mut all = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().insert(library, symbols);
}

/// A function by library and symbol.
pub fn find(library: &str, symbol: &str) -> Option<Native> {
    let all = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let symbols = all.as_ref()?.get(library)?;
    symbols.iter().find(|(name, _)| *name == symbol).map(|(_, native)| *native)
}

/// The language of libraries.
pub struct C;

enum Code {
    Native(Native),
    Body(Body),
}

struct Symbol {
    function: Arc<Function>,
    signature: CallSignature,
    code: Code,
}

impl Language for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn validate(
        &self,
        _function: &Arc<Function>,
        _body_at: Option<u32>,
        _cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        _cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        let library = types::extension::library_name(&function.library);
        let body = || match types::extension::symbol(library, &function.body) {
            Some(Body::Session(_)) | None => None,
            Some(body) => Some(Code::Body(body)),
        };
        let code = find(library, &function.body).map(Code::Native).or_else(body);
        let code = code.ok_or_else(|| {
            err!(FEATURE_NOT_SUPPORTED, "function {} cannot be called directly", function.name)
        })?;
        let (function, signature) = (function.clone(), signature.clone());
        Ok(Arc::new(Symbol { function, signature, code }))
    }

    fn run_block(&self, _body: &str, _cx: &mut ExecContext<'_>) -> Result<()> {
        Err(err!(FEATURE_NOT_SUPPORTED, "language \"c\" does not support inline code execution"))
    }
}

impl Symbol {
    fn wrong(&self) -> Error {
        Error::internal(format!("function {} is of another kind", self.function.name))
    }
}

impl Routine for Symbol {
    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        match &self.code {
            Code::Native(Native::Scalar(call)) => call(args, cx),
            Code::Body(body) => {
                let types = CallTypes { args: &self.signature.args, result: self.signature.result };
                body.run(args, types, cx.format).unwrap_or_else(|| Err(self.wrong()))
            }
            Code::Native(Native::Set(_)) => {
                Ok(self.call_set(args, None, cx)?.into_iter().next().unwrap_or_default())
            }
            Code::Native(Native::Trigger(_)) => Err(only_as_trigger()),
        }
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        match &self.code {
            Code::Native(Native::Set(call)) => {
                let signature = &self.signature;
                call(&SetCall { args, signature, function: &self.function, wanted }, cx)
            }
            Code::Body(Body::Set(body)) => body(args, cx.format),
            _ => Ok(vec![self.call(args, cx)?]),
        }
    }

    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        match &self.code {
            Code::Native(Native::Trigger(fire)) => fire(call, cx),
            _ => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "function {} was not called by trigger manager",
                self.function.name
            )),
        }
    }
}
