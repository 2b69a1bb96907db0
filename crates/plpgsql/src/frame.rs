//! One call of a program: its frame, and how SQL is run over it.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Oid, Result, err};
use exec::context::RowSink;
use exec::plan_slot::PlanKey;
use exec::run::ExecState;
use exec::{ExecContext, nested};
use sql::Prepared;
use sql::embedded::Expression;
use types::datum::Shape;
use types::oids::RECORD;
use types::{Batch, Datum, Text};

use crate::fast::{Append, Fast};
use crate::names::{Names, Transition};
use crate::program::*;

/// See the module's documentation.
pub struct Frame<'p> {
    /// The program that runs.
    pub program: &'p Program,
    /// As CONTEXT lines name it here.
    pub signature: Arc<str>,
    /// Its variables; they are the parameters of its SQL.
    pub slots: Vec<Datum>,
    /// Its SQL as last used.
    cache: Vec<Option<Arc<Compiled>>>,
    state: ExecState,
    /// The error on its way has this frame's CONTEXT line.
    pub located: bool,
    /// Rows of the last statement.
    pub row_count: u64,
    /// The value that it returns.
    pub result: Datum,
    /// Type of that.
    pub result_type: Oid,
    /// The rows that a set-returning function has returned so far.
    pub rows: Vec<Datum>,
    /// Errors whose handlers run, innermost last.
    pub errors: Vec<Error>,
    /// The columns that the caller wants.
    pub wanted: Option<Arc<Shape>>,
    /// Transition tables.
    pub tables: Vec<Transition>,
    /// Records that are NULL and nevertheless have columns: a trigger's row that its event lacks.
    pub absent: Vec<(Slot, Arc<Shape>)>,
    /// Subtransactions around the running statement.
    pub subtransactions: u32,
    /// The running statement's line and kind, for PG_CONTEXT.
    pub at: (u32, &'static str),
}

impl<'p> Frame<'p> {
    /// For a call; all variables are NULL.
    pub fn new(program: &'p Program) -> Frame<'p> {
        let mut slots = vec![Datum::Null; program.slots.len()];
        slots[usize::from(program.found)] = Datum::Bool(false);
        Frame {
            program,
            signature: program.signature.clone(),
            slots,
            cache: vec![None; program.codes.len()],
            state: ExecState::default(),
            located: false,
            row_count: 0,
            result: Datum::Null,
            result_type: RECORD,
            rows: Vec::new(),
            errors: Vec::new(),
            wanted: None,
            tables: Vec::new(),
            absent: Vec::new(),
            subtransactions: 0,
            at: (0, ""),
        }
    }

    /// Whether records have the shapes that a plan was made for.
    fn fits(&self, guard: &[(Slot, Arc<Shape>)]) -> bool {
        guard.iter().all(|(slot, shape)| match &self.slots[usize::from(*slot)] {
            Datum::Record(row) => Arc::ptr_eq(&row.shape, shape) || row.shape == *shape,
            Datum::Null => match self.absent_shape(*slot) {
                Some(absent) => Arc::ptr_eq(absent, shape) || absent == shape,
                None => shape.columns.is_empty(),
            },
            _ => {
                self.tables.iter().any(|(_, known, s)| known == slot && s.columns == shape.columns)
            }
        })
    }

    /// The columns of a record that is NULL; None: it has none.
    pub fn absent_shape(&self, slot: Slot) -> Option<&Arc<Shape>> {
        self.absent.iter().find(|(known, _)| *known == slot).map(|(_, shape)| shape)
    }

    /// A piece of SQL made ready.
    ///
    /// # Errors
    /// Everything that parse and bind can find.
    pub fn compiled(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<Arc<Compiled>> {
        let key = PlanKey::now(cx);
        if let Some(known) = &self.cache[id]
            && known.key == key
            && self.fits(&known.guard)
        {
            return Ok(known.clone());
        }
        let code = &self.program.codes[id];
        let found = code.plans.get(key, cx.routines, |c: &Compiled| self.fits(&c.guard));
        let compiled = match found {
            Some(compiled) => compiled,
            None => {
                let compiled = Arc::new(self.compile(code, key, cx)?);
                code.plans.put(key, cx.routines, compiled.clone());
                compiled
            }
        };
        self.cache[id] = Some(compiled.clone());
        Ok(compiled)
    }

    fn compile(&self, code: &Code, key: PlanKey, cx: &mut ExecContext<'_>) -> Result<Compiled> {
        let names = Names {
            program: self.program,
            at: code.scope,
            slots: &self.slots,
            tables: &self.tables,
            absent: &self.absent,
            guard: RefCell::new(Vec::new()),
        };
        let what = nested::preparing(cx, Some(&names), |_, cx| match code.kind {
            CodeKind::Statement => {
                sql::prepare(&code.text, &[], cx, None).map(|(p, _)| query(Arc::new(p), vec![]))
            }
            CodeKind::Cursor => sql::embedded::prepare_cursor(&code.text, &[], cx)
                .map(|(p, tables)| query(Arc::new(p), tables)),
            _ => {
                let expression = {
                    let apart = code.kind == CodeKind::Default;
                    sql::embedded::prepare_expression(&code.text, (code.target, apart), cx)?
                };
                Ok(match expression {
                    Expression::Value(expr, prepared, constant) => What::Value {
                        reads: !prepared.locks.is_empty() || !prepared.subplans.is_empty(),
                        constant,
                        fast: Fast::of(&expr),
                        append: code.into.and_then(|slot| Append::of(&expr, slot)),
                        calls: sql::embedded::calls_users(&expr),
                        expr,
                        prepared: Box::new(prepared),
                    },
                    Expression::Query(prepared) => query(Arc::new(prepared), vec![]),
                })
            }
        });
        let what = what.map_err(|e| inside(e, code))?;
        Ok(Compiled { what, guard: names.guard.into_inner().into(), key })
    }

    /// The value of an expression, of its target's type if it has one.
    ///
    /// # Errors
    /// The expression's.
    #[inline]
    pub fn value(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<Datum> {
        if let Some(compiled) = &self.cache[id]
            && let What::Value {
                expr,
                prepared,
                fast,
                reads: false,
                calls: false,
                constant: false,
                ..
            } = &compiled.what
            && (compiled.guard.is_empty() || self.fits(&compiled.guard))
        {
            if let Some(value) = fast.as_ref().and_then(|fast| fast.value(&self.slots)) {
                return Ok(value);
            }
            let snapshot = cx.snapshot;
            return nested::value(expr, prepared, &self.slots, snapshot, &mut self.state, cx);
        }
        self.typed_value(id, cx).map(|(value, _)| value)
    }

    /// `a := a || item` and `s := s || text` in place. False when it is nothing of the kind, or not plain.
    ///
    /// # Errors
    /// Those of what is added.
    pub fn append(&mut self, slot: Slot, id: CodeId, cx: &mut ExecContext<'_>) -> Result<bool> {
        let Some(compiled) = &self.cache[id] else { return Ok(false) };
        let What::Value { prepared, append: Some(append), reads: false, calls: false, .. } =
            &compiled.what
        else {
            return Ok(false);
        };
        let (Append::Item(added) | Append::Text(added)) = append;
        let plain = match (&self.slots[usize::from(slot)], append) {
            (Datum::Array(array), Append::Item(_)) => array.dims.len() == 1,
            (Datum::Text(_), Append::Text(_)) => true,
            _ => false,
        };
        if !plain || !(compiled.guard.is_empty() || self.fits(&compiled.guard)) {
            return Ok(false);
        }
        let snapshot = cx.snapshot;
        let value = nested::value(added, prepared, &self.slots, snapshot, &mut self.state, cx)?;
        match (&mut self.slots[usize::from(slot)], value) {
            (Datum::Array(array), value) => {
                let array = Arc::make_mut(array);
                let Some(length) = array.dims[0].0.checked_add(1) else {
                    base::bail!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed")
                };
                array.dims[0].0 = length;
                array.items.push(value);
            }
            (Datum::Text(text), Datum::Text(more)) => {
                check_length(text.len() + more.len())?;
                text.push_str(&more);
            }
            (target, _) => *target = Datum::Null,
        }
        Ok(true)
    }

    /// As [`Frame::value`], with the type.
    ///
    /// # Errors
    /// The expression's; `42601` when it has not one column, `21000` for several rows.
    pub fn typed_value(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<(Datum, Oid)> {
        let program = self.program;
        let code = &program.codes[id];
        for _ in 0..nested::ATTEMPTS {
            let compiled = self.compiled(id, cx)?;
            let (value, ty) = match &compiled.what {
                What::Value { expr, prepared, reads, calls, constant, .. } => {
                    if *reads {
                        nested::lock(prepared, cx)?;
                        if PlanKey::now(cx) != compiled.key {
                            continue;
                        }
                    }
                    let snapshot = match *reads || *calls {
                        true => nested::snapshot(program.volatile, cx),
                        false => cx.snapshot,
                    };
                    let value = if prepared.subplans.is_empty() {
                        nested::value(expr, prepared, &self.slots, snapshot, &mut self.state, cx)
                    } else {
                        let mut state = ExecState::new(prepared);
                        nested::value(expr, prepared, &self.slots, snapshot, &mut state, cx)
                    };
                    let value = match *reads || *constant {
                        true => value.map_err(|e| located_in(e, code))?,
                        false => value?,
                    };
                    return Ok((value, expr.ty()));
                }
                What::Query { prepared, .. } => {
                    let columns = prepared.columns.len();
                    if columns != 1 {
                        let word = if columns == 1 { "column" } else { "columns" };
                        if code.kind == CodeKind::Assignment {
                            let error =
                                err!(SYNTAX_ERROR, "assignment source returned {columns} {word}");
                            return Err(located_in(error, code));
                        }
                        return Err(err!(SYNTAX_ERROR, "query returned {columns} {word}")
                            .context(format!("query: {}", code.text)));
                    }
                    let mut rows =
                        self.run_query(&compiled, 2, cx).map_err(|e| located_in(e, code))?;
                    if rows.len() > 1 {
                        let query = format!("query: {}{}", code.lead, code.text);
                        return Err(err!(
                            CARDINALITY_VIOLATION,
                            "query returned more than one row"
                        )
                        .context(query));
                    }
                    let value = rows.pop().and_then(|mut r| r.pop()).unwrap_or_default();
                    (value, prepared.columns[0].ty)
                }
            };
            return match code.target {
                Some((to, typmod)) => Ok((self.convert(value, ty, (to, typmod), cx)?, to)),
                None => Ok((value, ty)),
            };
        }
        Err(changes_too_fast())
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// The expression's.
    #[inline]
    pub fn holds(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<bool> {
        Ok(matches!(self.value(id, cx)?, Datum::Bool(true)))
    }

    /// A statement, with its locks.
    ///
    /// # Errors
    /// Everything that parse and bind can find; lock errors.
    pub fn query(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<Arc<Compiled>> {
        for _ in 0..nested::ATTEMPTS {
            let compiled = self.compiled(id, cx)?;
            if let What::Query { prepared, .. } = &compiled.what {
                nested::lock(prepared, cx)?;
                if PlanKey::now(cx) != compiled.key {
                    continue;
                }
            }
            return Ok(compiled);
        }
        Err(changes_too_fast())
    }

    /// Runs a locked query; at most so many rows (0: all).
    pub fn run_query(
        &mut self,
        compiled: &Compiled,
        limit: usize,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Vec<Datum>>> {
        let What::Query { prepared, .. } = &compiled.what else { return Ok(Vec::new()) };
        nested::lock(prepared, cx)?;
        self.rows_of(prepared, None, limit, cx).map(|r| r.0)
    }

    /// Runs a plan: its rows, and how many it returned or changed. A query that only reads is stopped
    /// after `limit` rows.
    ///
    /// # Errors
    /// The statement's.
    pub fn rows_of(
        &mut self,
        prepared: &Arc<Prepared>,
        params: Option<&[Datum]>,
        limit: usize,
        cx: &mut ExecContext<'_>,
    ) -> Result<(Vec<Vec<Datum>>, u64)> {
        let snapshot = nested::snapshot(self.program.volatile, cx);
        if prepared.writes && !self.program.volatile {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{} is not allowed in a non-volatile function",
                prepared.tag
            ));
        }
        let stops = limit > 0 && !prepared.writes;
        let mut sink = Collect {
            types: prepared.columns.iter().map(|c| c.ty).collect(),
            limit: if limit == 0 { usize::MAX } else { limit },
            stops,
            full: false,
            rows: Vec::new(),
        };
        let params = params.unwrap_or(&self.slots);
        let done = nested::run(prepared, params, snapshot, cx, &mut sink);
        match done {
            Err(_) if sink.full => Ok((sink.rows, limit as u64)),
            Err(error) => Err(error),
            Ok(outcome) => Ok((sink.rows, outcome.rows)),
        }
    }

    /// A value as another type.
    ///
    /// # Errors
    /// When it can't be converted.
    pub fn convert(
        &mut self,
        value: Datum,
        from: Oid,
        (to, typmod): (Oid, i32),
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        if from == to && typmod < 0 || to == RECORD {
            return Ok(value);
        }
        if value.is_null() && !types::user::has_domains(to) {
            return Ok(value);
        }
        let key = (from, to, typmod);
        let known = {
            let known = self.program.conversions.read().unwrap_or_else(|e| e.into_inner());
            known.get(&key).cloned()
        };
        let expr = match known {
            Some(expr) => expr,
            None => {
                let expr = Arc::new(nested::preparing(cx, None, |_, cx| {
                    sql::embedded::conversion(from, (to, typmod), cx)
                })?);
                let mut all = self.program.conversions.write().unwrap_or_else(|e| e.into_inner());
                all.insert(key, expr.clone());
                expr
            }
        };
        let nothing = Prepared::empty(0);
        let snapshot = cx.snapshot;
        nested::value(&expr, &nothing, &[value], snapshot, &mut self.state, cx)
    }

    /// A value as text; None for NULL.
    ///
    /// # Errors
    /// When it can't be converted.
    pub fn text(&mut self, id: CodeId, cx: &mut ExecContext<'_>) -> Result<Option<String>> {
        let (value, ty) = self.typed_value(id, cx)?;
        self.text_of(value, ty, cx)
    }

    /// The same for a value.
    ///
    /// # Errors
    /// When it can't be converted.
    pub fn text_of(
        &mut self,
        value: Datum,
        ty: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<Option<String>> {
        if value.is_null() {
            return Ok(None);
        }
        if !types::io::is_reg(ty) && !types::user::is_user(ty) {
            return types::io::to_text(ty, &value, cx.format).map(|t| Some(t.into()));
        }
        let text = types::oids::TEXT;
        Ok(match self.convert(value, ty, (text, -1), cx)? {
            Datum::Text(text) | Datum::Bpchar(text) => Some(text.into()),
            _ => None,
        })
    }

    /// Notes which SQL statement is about to run.
    pub fn note_statement(&self, code: CodeId, cx: &mut ExecContext<'_>) {
        if let Some(place) = cx.routines.calls.last_mut() {
            place.statement = Some(self.program.codes[code].text.clone());
        }
    }

    /// The CONTEXT of what runs here: this frame's line and those around it.
    pub fn context(&self, cx: &ExecContext<'_>) -> String {
        let mut lines = Vec::new();
        for (n, place) in cx.routines.calls.iter().rev().enumerate() {
            if let (Some(text), true) = (&place.statement, n > 0) {
                lines.push(format!("SQL statement \"{text}\""));
            }
            let (line, what) = place.at;
            lines.push(format!("PL/pgSQL function {} line {line} {what}", place.signature));
        }
        lines.join("\n")
    }

    /// This frame's CONTEXT line.
    pub fn line_of(&self, line: u32, what: &str) -> String {
        let signature = &self.signature;
        match line {
            0 if what.is_empty() => format!("PL/pgSQL function {signature}"),
            0 => format!("PL/pgSQL function {signature} {what}"),
            _ => format!("PL/pgSQL function {signature} line {line} {what}"),
        }
    }
}

/// Whether `plpgsql.extra_errors` (true) or `extra_warnings` (false) asks for a check.
pub fn extra(cx: &ExecContext<'_>, check: &str) -> Option<bool> {
    use base::settings::setting;
    let asked = |list: &str| {
        list != "none" && list.split(',').map(str::trim).any(|word| word == "all" || word == check)
    };
    if asked(cx.settings.str(setting::PLPGSQL_EXTRA_ERRORS)) {
        return Some(true);
    }
    asked(cx.settings.str(setting::PLPGSQL_EXTRA_WARNINGS)).then_some(false)
}

fn query(prepared: Arc<Prepared>, tables: Vec<Vec<u32>>) -> What {
    let columns = prepared.columns.iter().map(|c| (Text::from(c.name.as_str()), c.ty)).collect();
    What::Query { prepared, shape: Arc::new(Shape { ty: RECORD, columns }), tables }
}

/// `54000` for a text that is longer than a value may be.
pub fn check_length(length: usize) -> Result<()> {
    if length >= 1 << 30 {
        base::bail!(PROGRAM_LIMIT_EXCEEDED, "invalid memory alloc request size {length}");
    }
    Ok(())
}

fn changes_too_fast() -> Error {
    err!(OBJECT_IN_USE, "definitions change too fast for this statement")
}

/// An error that parse and bind found: with the text that it is in, or a line that names it.
fn inside(error: Error, code: &Code) -> Error {
    if error.fields().internal.is_some() {
        return error;
    }
    if error.fields().position == 0 {
        return located_in(error, code);
    }
    let lead = code.lead.chars().count() as u32;
    error.shift(lead).inside(&format!("{}{}", code.lead, code.text))
}

/// An error that a statement raised: with a line that names it.
pub fn located_in(error: Error, code: &Code) -> Error {
    let what = match code.kind {
        CodeKind::Expression | CodeKind::Default => "SQL expression",
        CodeKind::Assignment => "PL/pgSQL assignment",
        CodeKind::Statement | CodeKind::Cursor => "SQL statement",
    };
    error.without_position().context(format!("{what} \"{}{}\"", code.lead, code.text))
}

/// Keeps rows, up to a limit.
struct Collect {
    types: Vec<Oid>,
    limit: usize,
    stops: bool,
    full: bool,
    rows: Vec<Vec<Datum>>,
}

impl Collect {
    /// Whether that was enough: the run ends with an error that its caller expects.
    fn keep(&mut self, row: Vec<Datum>) -> Result<()> {
        if self.rows.len() < self.limit {
            self.rows.push(row);
        }
        if self.stops && self.rows.len() >= self.limit {
            self.full = true;
            return Err(Error::internal("enough rows"));
        }
        Ok(())
    }
}

impl RowSink for Collect {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            if !self.stops && self.rows.len() >= self.limit {
                return Ok(());
            }
            self.keep(exec::rows::get(batch, row, &self.types))?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.keep(row.to_vec())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}
