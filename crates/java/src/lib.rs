//! Java: functions, procedures and triggers that are static methods.
//!
//! ```text
//!   CREATE EXTENSION java ──► the JVM is found, loaded and started; the tables and functions of sqlj
//!   CREATE FUNCTION ──► jars of the schema ──► a loader of the JVM ──► the method is looked up
//!   a call ──► values as bytes ──► a lane of the pool ──► Bridge ──► Routine ──► the method
//!                 the session is parked ◄── SQL, rows, notices ──┘ (java.sql)
//! ```
//!
//! * One JVM for the process, which all sessions share: classes are loaded once, and static fields are the same for
//!   all.
//! * The language is not trusted: code in it may do what the server's process may. Only superusers make functions.
//! * A call runs on a thread of the pool ([`lane`]); the session's coroutine answers what it asks ([`call`]).
//! * A function of one value that is not volatile takes whole batches: one job for all rows.
//! * The Java half is in `java/`; the form of values in messages is [`value`]'s.
#![warn(missing_docs)]

mod call;
mod classes;
mod compile;
mod jars;
mod jvm;
mod lane;
mod locate;
mod value;

pub use call::{ThreadInfo, threads};
pub use lane::Holder;

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::Function;
use exec::ExecContext;
use exec::language::{
    CallSignature, Language, ResultForm, Routine, TriggerCall, TriggerResult,
    check_trigger_parameters, only_as_trigger, signature_text, types_when_made,
};
use types::oids::{EVENT_TRIGGER, RECORD, TRIGGER, VOID};
use types::{Column, Datum, Text};

use call::{Done, Host};
use jars::Loader;
use value::{Reader, put_count, put_text, put_texts};

/// The language.
pub struct Java;

/// How Java gives a function's result: the numbers are `Routine`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Value = 0,
    Row = 1,
    Set = 2,
    SetOfRows = 3,
    Trigger = 4,
}

/// A function that is ready to be called.
struct JavaRoutine {
    /// Its number in the JVM.
    number: i32,
    /// As CONTEXT lines name it.
    signature: String,
    schema: String,
    loader: Arc<Loader>,
    args: Vec<Oid>,
    result: ResultForm,
    kind: Kind,
    volatile: bool,
    batch: bool,
}

impl Drop for JavaRoutine {
    fn drop(&mut self) {
        call::forget(self.number);
    }
}

impl Language for Java {
    fn name(&self) -> &'static str {
        "java"
    }

    fn validate(
        &self,
        function: &Arc<Function>,
        _body_at: Option<u32>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        if !cx.settings.bool(base::settings::setting::CHECK_FUNCTION_BODIES) {
            return Ok(());
        }
        match types_when_made(function) {
            None => call::pool(cx).map(drop),
            Some(signature) => self.compile(function, &signature, cx).map(drop),
        }
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        check_trigger_parameters(function, signature)?;
        if signature.result == EVENT_TRIGGER {
            return Err(Error::unsupported("an event trigger function in this language"));
        }
        let mut result =
            ResultForm::of(function, signature, value::plain_type(signature.result), cx);
        if function.procedure && result.shape.is_none() {
            result.ty = VOID;
        }
        let rows = result.shape.is_some() || result.ty == RECORD;
        let kind = match (signature.result, function.set, rows) {
            (TRIGGER, ..) => Kind::Trigger,
            (_, true, true) => Kind::SetOfRows,
            (_, true, false) => Kind::Set,
            (_, false, true) => Kind::Row,
            (_, false, false) => Kind::Value,
        };
        let view = cx.catalog_tx.view();
        let schema = view.schema(function.schema).map_or("", |s| s.name.as_str()).to_owned();
        let loader = jars::loader(&schema, cx)?;
        let mut job = vec![2];
        job.extend_from_slice(&loader.number.to_be_bytes());
        put_text(&function.body, &mut job)?;
        job.extend_from_slice(&[kind as u8, u8::from(function.strict)]);
        let columns = result.shape.as_ref().map_or(&[][..], |shape| &shape.columns);
        put_texts(columns.iter().map(|(name, _)| &**name), &mut job)?;
        job.extend_from_slice(&(signature.args.len() as i16).to_be_bytes());
        for ty in &signature.args {
            let (tag, element) = value::tags(*ty);
            job.extend_from_slice(&[tag, element]);
        }
        let done = call::plain(job, cx)?;
        let number = Reader(done.payload()).i32()?;
        let volatile = function.volatility == 'v';
        Ok(Arc::new(JavaRoutine {
            number,
            signature: signature_text(function),
            schema,
            loader,
            args: signature.args.clone(),
            result,
            kind,
            volatile,
            batch: kind == Kind::Value && !volatile && !function.procedure,
        }))
    }

    fn run_block(&self, _body: &str, _cx: &mut ExecContext<'_>) -> Result<()> {
        Err(err!(FEATURE_NOT_SUPPORTED, "language \"java\" does not support inline code execution"))
    }
}

impl JavaRoutine {
    /// The beginning of a job that calls the method.
    fn job(&self, rows: usize, wanted: Option<&[(Text, Oid)]>) -> Result<Vec<u8>> {
        let mut job = Vec::with_capacity(64);
        job.push(1);
        job.extend_from_slice(&self.number.to_be_bytes());
        put_count(rows, &mut job)?;
        match wanted {
            None => job.push(0),
            Some(columns) => {
                job.push(1);
                put_texts(columns.iter().map(|(name, _)| &**name), &mut job)?;
            }
        }
        Ok(job)
    }

    fn arguments(&self, args: &[Datum], job: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
        for (value, ty) in args.iter().zip(&self.args) {
            value::encode(value, *ty, job, cx)?;
        }
        Ok(())
    }

    fn run(&self, job: Vec<u8>, host: &mut Host<'_>, cx: &mut ExecContext<'_>) -> Result<Done> {
        call::run(job, host, cx)
            .map_err(|error| error.context(format!("Java function {}", self.signature)))
    }

    fn one(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let mut job = self.job(1, wanted)?;
        self.arguments(args, &mut job, cx)?;
        let done = self.run(job, &mut Host::new(self.volatile, None), cx)?;
        if self.result.ty == VOID {
            return Ok(Datum::text(""));
        }
        let form = self.result.wanted(wanted);
        value::result(&mut Reader(done.payload()), &form, cx)
            .map_err(|error| error.context(format!("Java function {}", self.signature)))
    }
}

impl Routine for JavaRoutine {
    fn is_current(&self, cx: &mut ExecContext<'_>) -> Result<bool> {
        Ok(jars::digests(&self.schema, cx)? == self.loader.digests)
    }

    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        if self.kind == Kind::Trigger {
            return Err(only_as_trigger());
        }
        self.one(args, None, cx)
    }

    fn takes_batches(&self) -> bool {
        self.batch
    }

    fn call_batch(&self, args: &[Column], rows: usize, cx: &mut ExecContext<'_>) -> Result<Column> {
        let mut job = self.job(rows, None)?;
        for row in 0..rows {
            sched::check_interrupts()?;
            for (column, ty) in args.iter().zip(&self.args) {
                value::encode(&column.get(row, *ty), *ty, &mut job, cx)?;
            }
        }
        let done = self.run(job, &mut Host::new(self.volatile, None), cx)?;
        let mut from = Reader(done.payload());
        let mut out = Column::new(self.result.ty);
        for _ in 0..rows {
            sched::check_interrupts()?;
            let value = match self.result.ty {
                VOID => Datum::text(""),
                ty => value::decode(&mut from, ty, cx)?,
            };
            out.push(value)?;
        }
        Ok(out)
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        if !matches!(self.kind, Kind::Set | Kind::SetOfRows) {
            return Ok(vec![self.one(args, wanted, cx)?]);
        }
        let form = self.result.wanted(wanted);
        let mut job = self.job(1, wanted)?;
        self.arguments(args, &mut job, cx)?;
        let mut host = Host::new(self.volatile, Some(&form));
        self.run(job, &mut host, cx)?;
        Ok(host.rows)
    }

    fn call_procedure(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        Ok(self.result.outputs(self.call(args, cx)?))
    }

    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        let schema = call.schema(cx);
        let mut job = vec![4];
        job.extend_from_slice(&self.number.to_be_bytes());
        for fact in [call.name, call.timing.word(), call.event.word()] {
            put_text(fact, &mut job)?;
        }
        job.push(u8::from(call.row_level));
        put_text(&call.table.name, &mut job)?;
        put_text(&schema, &mut job)?;
        put_texts(call.args.iter().map(String::as_str), &mut job)?;
        let columns: Vec<(usize, Oid, &str)> = call.columns().collect();
        put_texts(columns.iter().map(|(.., name)| *name), &mut job)?;
        for row in [call.old, call.new] {
            job.push(u8::from(row.is_some()));
            let Some(row) = row else { continue };
            for (at, ty, _) in &columns {
                value::encode(row.get(*at).unwrap_or(&Datum::Null), *ty, &mut job, cx)?;
            }
        }
        let done = self.run(job, &mut Host::new(self.volatile, None), cx)?;
        let mut from = Reader(done.payload());
        match from.u8()? {
            0 => return Ok(TriggerResult::Unchanged),
            1 => return Ok(TriggerResult::Skip),
            _ => {}
        }
        let Some(base) = call.changeable() else { return Ok(TriggerResult::Unchanged) };
        let mut row = base.to_vec();
        for _ in 0..from.count()? {
            let place = columns.get(from.count()?).copied();
            let (at, ty, _) = place.ok_or_else(|| Error::internal("a column that is not there"))?;
            let value = value::decode(&mut from, ty, cx)?;
            if let Some(slot) = row.get_mut(at) {
                *slot = value;
            }
        }
        Ok(TriggerResult::Row(row))
    }
}
