//! Requests of JavaScript to the server: the `plv8` object's functions, as plv8's manual has them.
//!
//! The object is made by `prelude.js` over one native function whose first argument is the number of the request:
//!
//! | number | request | answer |
//! |---|---|---|
//! | 0 | `elog(level, text)` | |
//! | 1 | `execute(sql, values, types?)` in a subtransaction | rows as objects, or how many were changed |
//! | 2 | `cursor(sql, values, types?)` | its name |
//! | 3, 4, 5 | fetch, move, close by name | rows, places |
//! | 6 | `subtransaction(function)` | the function's value |
//! | 7 | `find_function(name)` | a function that takes and gives JavaScript's values |
//! | 8 | `return_next(row)` | |
//! | 9, 10 | `quote_literal`, `quote_ident` | text |
//! | 11, 12 | commit, rollback (in procedures and DO) | |
//! | 13 | parse of a statement that will be run later | |

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::acl::privilege;
use catalog::{AclKind, Rights};
use exec::ExecContext;
use exec::context::TransactionEnd;
use exec::language::{ResultForm, admit_request};
use exec::nested::{self, RowList};
use rquickjs::{Array, Ctx, Function, IntoJs, Object, Value};
use sql::utility::FetchHow;
use sql::{Prepared, Statement, Utility};
use types::Datum;

use crate::JavaScriptRoutine;
use crate::failure::{Failure, ends_statement, throw};
use crate::guard::Guard;
use crate::lend::{Host, Lent};
use crate::value::{from_js, to_js};

/// Makes the `plv8` object.
pub const PRELUDE: &str = include_str!("prelude.js");

/// Replaces built-ins that no interrupt would reach.
pub const BUILTINS: &str = include_str!("builtins.js");

/// One call as its host.
pub struct Call<'a, 'x> {
    pub cx: &'a mut ExecContext<'x>,
    pub lent: Arc<Lent>,
    pub guard: Arc<Guard>,
    /// The columns that `return_next` takes; None where it may not be called.
    pub shape: Option<ResultForm>,
    /// The rows that it has taken.
    pub rows: Vec<Datum>,
    /// Whether statements see what was committed meanwhile, and may write.
    pub volatile: bool,
}

type Answer<'js> = std::result::Result<Value<'js>, Failure>;

impl Host for Call<'_, '_> {
    fn call<'js>(&mut self, ctx: &Ctx<'js>, args: Vec<Value<'js>>) -> rquickjs::Result<Value<'js>> {
        let admitted = self.guard.error().map_or_else(admit_request, Err).map_err(Failure::from);
        let answer = admitted.and_then(|()| self.answer(ctx, args));
        answer.map_err(|failure| {
            if let Failure::Sql(error) = &failure
                && ends_statement(error)
            {
                self.guard.note(error.clone());
            }
            throw(ctx, failure)
        })
    }
}

/// Arguments by place.
struct Given<'js>(std::vec::IntoIter<Value<'js>>);

impl<'js> Given<'js> {
    fn next(&mut self, ctx: &Ctx<'js>) -> Value<'js> {
        self.0.next().unwrap_or_else(|| Value::new_undefined(ctx.clone()))
    }

    fn text(&mut self, ctx: &Ctx<'js>) -> std::result::Result<String, Failure> {
        Ok(self.next(ctx).get::<rquickjs::convert::Coerced<String>>()?.0)
    }

    fn list(&mut self, ctx: &Ctx<'js>) -> Vec<Value<'js>> {
        match self.next(ctx).into_array() {
            Some(array) => array.iter().filter_map(std::result::Result::ok).collect(),
            None => Vec::new(),
        }
    }
}

impl Call<'_, '_> {
    fn answer<'js>(&mut self, ctx: &Ctx<'js>, args: Vec<Value<'js>>) -> Answer<'js> {
        let mut given = Given(args.into_iter());
        let request = given.next(ctx).as_number().map_or(u32::MAX, |number| number as u32);
        let nothing = Value::new_undefined(ctx.clone());
        match request {
            0 => {
                let level = given.next(ctx).as_number().unwrap_or(0.0) as i32;
                let text = given.text(ctx)?;
                self.elog(level, text)?;
            }
            1 => {
                let (text, values) = (given.text(ctx)?, given.list(ctx));
                let types = self.types(ctx, given.next(ctx))?;
                return self.execute(ctx, &text, values, &types);
            }
            2 => {
                let (text, values) = (given.text(ctx)?, given.list(ctx));
                let types = self.types(ctx, given.next(ctx))?;
                return Ok(self.open(ctx, &text, values, &types)?.into_js(ctx)?);
            }
            3 | 4 => {
                let name = given.text(ctx)?;
                let count = given.next(ctx).as_number().map_or(1, |n| n as i64);
                return self.advance(ctx, &name, count, request == 4);
            }
            5 => {
                let name = given.text(ctx)?;
                if !self.cx.hooks.close_cursor(&name) {
                    return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist").into());
                }
            }
            6 => {
                let Some(body) = given.next(ctx).into_function() else {
                    return Err(not_a_function().into());
                };
                return self.subtransaction(&body);
            }
            7 => {
                let name = given.text(ctx)?;
                return Ok(self.find_function(ctx, &name)?.into_value());
            }
            8 => {
                let row = given.next(ctx);
                let Some(shape) = &self.shape else {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "return_next called in context that cannot accept a set"
                    )
                    .into());
                };
                let row = crate::result_of(&shape.clone(), ctx, row, self.cx)?;
                self.rows.push(row);
            }
            9 => return Ok(types::func::quote_literal(&given.text(ctx)?).into_js(ctx)?),
            10 => return Ok(types::func::quote_ident(&given.text(ctx)?).into_js(ctx)?),
            11 | 12 => {
                let end = TransactionEnd { commit: request == 11, chain: false };
                nested::end_transaction(end, self.cx)?;
            }
            13 => {
                let text = given.text(ctx)?;
                let types = self.types(ctx, given.next(ctx))?;
                nested::prepare(&text, &types, self.cx)?;
            }
            _ => return Err(Error::internal("an unknown request of JavaScript").into()),
        }
        Ok(nothing)
    }

    fn elog(&mut self, level: i32, text: String) -> Result<()> {
        let severity = match level {
            i32::MIN..=14 => "DEBUG1",
            15 | 16 => "LOG",
            17 => "INFO",
            18 => "NOTICE",
            19 | 20 => "WARNING",
            _ => return Err(err!(EXTERNAL_ROUTINE_EXCEPTION, "{text}")),
        };
        let code = match severity {
            "WARNING" => base::sqlstate::WARNING,
            _ => base::sqlstate::SUCCESSFUL_COMPLETION,
        };
        self.cx.hooks.notice(severity, Error::new(code, text));
        Ok(())
    }

    /// Types by name; none: as the statement has it.
    fn types<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        names: Value<'js>,
    ) -> std::result::Result<Vec<Oid>, Failure> {
        let mut types = Vec::new();
        for name in Given(vec![names].into_iter()).list(ctx) {
            let name: String = name.get()?;
            let found =
                nested::preparing(self.cx, None, |_, cx| sql::embedded::type_by_name(&name, cx))?;
            types.push(found.0);
        }
        Ok(types)
    }

    fn params<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        prepared: &Prepared,
        values: Vec<Value<'js>>,
    ) -> std::result::Result<Vec<Datum>, Failure> {
        if values.len() < prepared.params.len() {
            return Err(err!(
                UNDEFINED_PARAMETER,
                "the statement has {} parameters, {} were given",
                prepared.params.len(),
                values.len()
            )
            .into());
        }
        let mut out = Vec::with_capacity(prepared.params.len());
        for (ty, value) in prepared.params.iter().zip(values) {
            out.push(from_js(ctx, value, *ty, self.cx)?);
        }
        Ok(out)
    }

    fn execute<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        text: &str,
        values: Vec<Value<'js>>,
        types: &[Oid],
    ) -> Answer<'js> {
        let parts = match text.contains(';') {
            true => sql::split_statements(text).map_err(|e| e.inside(text))?,
            false => vec![0..text.len()],
        };
        let mut last = Value::new_undefined(ctx.clone());
        let count = parts.len();
        for part in parts {
            let whole = if count == 1 { text } else { &text[part] };
            let prepared = nested::prepare(whole, types, self.cx)?;
            check_kind(&prepared)?;
            if prepared.writes && !self.volatile {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "{} is not allowed in a non-volatile function",
                    prepared.tag
                )
                .into());
            }
            let params = self.params(ctx, &prepared, values.clone())?;
            let types: Vec<Oid> = prepared.columns.iter().map(|c| c.ty).collect();
            let mut rows = RowList::of(&types);
            let volatile = self.volatile;
            let done = nested::subtransaction(self.cx, |cx| {
                let snapshot = nested::snapshot(volatile, cx);
                nested::run(&prepared, &params, snapshot, cx, &mut rows)
            });
            let done = done
                .map_err(|e| e.without_position().context(format!("SQL statement \"{whole}\"")))?;
            last = match sql::embedded::returns_rows(&prepared) {
                true => self.objects(ctx, &prepared.columns, rows.rows)?,
                false => Value::new_number(ctx.clone(), done.rows as f64),
            };
        }
        Ok(last)
    }

    /// Rows as objects by column.
    fn objects<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        columns: &[sql::plan::OutputColumn],
        rows: Vec<Vec<Datum>>,
    ) -> Answer<'js> {
        let out = Array::new(ctx.clone())?;
        for (n, row) in rows.into_iter().enumerate() {
            sched::check_interrupts()?;
            let object = Object::new(ctx.clone())?;
            for (column, value) in columns.iter().zip(&row) {
                object.set(column.name.as_str(), to_js(ctx, value, column.ty, self.cx)?)?;
            }
            out.set(n, object)?;
        }
        Ok(out.into_value())
    }

    fn open<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        text: &str,
        values: Vec<Value<'js>>,
        types: &[Oid],
    ) -> std::result::Result<String, Failure> {
        let prepared = nested::prepare(text, types, self.cx)?;
        let params = self.params(ctx, &prepared, values)?;
        Ok(nested::open_cursor(prepared, text, params, self.volatile, self.cx)?)
    }

    fn advance<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        count: i64,
        moving: bool,
    ) -> Answer<'js> {
        let Some(mut cursor) = self.cx.hooks.take_cursor(name) else {
            return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist").into());
        };
        let how = match count < 0 {
            true => FetchHow::Backward(Some(count.saturating_neg())),
            false => FetchHow::Forward(Some(count)),
        };
        let columns = cursor.columns();
        let types: Vec<Oid> = columns.iter().map(|c| c.ty).collect();
        let mut rows = RowList::of(&types);
        let fetched = cursor.fetch(how, moving, self.cx, &mut rows);
        self.cx.hooks.put_cursor(name, cursor);
        let fetched = fetched?;
        match moving {
            true => Ok(Value::new_number(ctx.clone(), fetched as f64)),
            false => self.objects(ctx, &columns, rows.rows),
        }
    }

    fn subtransaction<'js>(&mut self, body: &Function<'js>) -> Answer<'js> {
        let (lent, guard) = (self.lent.clone(), self.guard.clone());
        let (volatile, shape) = (self.volatile, self.shape.clone());
        let rows = &mut self.rows;
        let mut answer = Err(Failure::Sql(Error::internal("no answer")));
        let done = nested::subtransaction(self.cx, |cx| {
            let taken = std::mem::take(rows);
            let (lent_to, shape) = (lent.clone(), shape.clone());
            let mut inner = Call { cx, lent: lent_to, guard, shape, rows: taken, volatile };
            let called = lent.scope(&mut inner, || body.call::<_, Value<'js>>(()));
            *rows = inner.rows;
            let failed = called.is_err();
            answer = called.map_err(Failure::Js);
            // The error itself is the exception that is pending.
            if failed { Err(Error::internal("an exception")) } else { Ok(()) }
        });
        match (done, answer) {
            (Err(error), Ok(_)) => Err(error.into()),
            (_, answer) => answer,
        }
    }

    fn find_function<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
    ) -> std::result::Result<Function<'js>, Failure> {
        let regproc =
            if name.contains('(') { types::oids::REGPROCEDURE } else { types::oids::REGPROC };
        let found = nested::convert(Datum::text(name), types::oids::TEXT, regproc, self.cx)?;
        let view = self.cx.catalog_tx.view();
        let function = match found {
            Datum::Oid(oid) => view.function(oid).cloned(),
            _ => None,
        };
        let function = function.filter(|f| f.language == "javascript");
        let Some(function) = function else {
            return Err(err!(
                UNDEFINED_FUNCTION,
                "javascript function is not found for \"{name}\""
            )
            .into());
        };
        let rights = Rights::new(&view, self.cx.database.0);
        let (kind, name) = (AclKind::Function, &function.name);
        rights.require(self.cx.role, kind, function.oid, privilege::EXECUTE, name)?;
        JavaScriptRoutine::compiled(ctx, &crate::source(&function))
    }
}

fn not_a_function() -> Error {
    err!(WRONG_OBJECT_TYPE, "subtransaction takes a function")
}

/// `0A000` for statements that can't stand here.
fn check_kind(prepared: &Prepared) -> Result<()> {
    if let Statement::Utility(
        Utility::Begin(_)
        | Utility::Commit { .. }
        | Utility::Rollback { .. }
        | Utility::Savepoint(_)
        | Utility::Release(_)
        | Utility::RollbackTo(_)
        | Utility::TwoPhase(..),
    ) = &prepared.statement
    {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "{} cannot be executed from a function",
            prepared.tag
        )
        .hint("Use plv8.subtransaction(), plv8.commit() or plv8.rollback()."));
    }
    Ok(())
}
