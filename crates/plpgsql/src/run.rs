//! The interpreter: statements over a frame.

use std::sync::Arc;

use base::{Error, Result, err};
use exec::compiled::CallPlace;
use exec::context::TransactionEnd;
use exec::execution::Execution;
use exec::{ExecContext, nested};
use sql::Statement;
use types::datum::Shape;
use types::oids::RECORD;
use types::{Datum, Text};

use crate::frame::{Frame, check_length, extra, located_in};
use crate::program::*;

/// Advice for a query of several rows.
const ONE_ROW: &str = "Make sure the query returns a single row, or use LIMIT 1.";
/// Rows that a FOR loop takes at a time.
const ROWS: u64 = 256;
/// The same where others can see it: at first, and then.
const SEEN_FIRST: u64 = 10;
const SEEN_THEN: u64 = 50;

/// Where control goes after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// Out of a block or loop.
    Exit(LabelId),
    /// To a loop's next round.
    Continue(LabelId),
    /// To the caller.
    Return,
}

/// The way on of a loop after its body.
enum Round {
    Next,
    Leave(Flow),
}

fn round(id: LabelId, flow: Flow) -> Round {
    match flow {
        Flow::Next => Round::Next,
        Flow::Continue(to) if to == id => Round::Next,
        Flow::Exit(from) if from == id => Round::Leave(Flow::Next),
        other => Round::Leave(other),
    }
}

/// The word of CONTEXT lines for a statement.
fn word(kind: &StmtKind) -> &'static str {
    match kind {
        StmtKind::Block(_) => "at statement block",
        StmtKind::Assign(..) => "at assignment",
        StmtKind::If(..) => "at IF",
        StmtKind::Case(..) => "at CASE",
        StmtKind::Loop(..) => "at LOOP",
        StmtKind::While(..) => "at WHILE",
        StmtKind::ForInteger { .. } => "at FOR with integer loop variable",
        StmtKind::ForRows { source: Source::Query(_), .. } => "at FOR over SELECT rows",
        StmtKind::ForRows { source: Source::Execute(..), .. } => "at FOR over EXECUTE statement",
        StmtKind::ForRows { source: Source::Cursor(..), .. } => "at FOR over cursor",
        StmtKind::Foreach { .. } => "at FOREACH over array",
        StmtKind::Leave { exit: true, .. } => "at EXIT",
        StmtKind::Leave { .. } => "at CONTINUE",
        StmtKind::Return(_) => "at RETURN",
        StmtKind::ReturnNext(_) => "at RETURN NEXT",
        StmtKind::ReturnQuery(_) => "at RETURN QUERY",
        StmtKind::Raise(_) => "at RAISE",
        StmtKind::Assert(..) => "at ASSERT",
        StmtKind::Sql(..) => "at SQL statement",
        StmtKind::Execute(..) => "at EXECUTE",
        StmtKind::Perform(_) => "at PERFORM",
        StmtKind::Call(..) => "at CALL",
        StmtKind::Do(_) => "at DO",
        StmtKind::GetDiagnostics(true, _) => "at GET STACKED DIAGNOSTICS",
        StmtKind::GetDiagnostics(..) => "at GET DIAGNOSTICS",
        StmtKind::Open(..) | StmtKind::OpenFor(..) => "at OPEN",
        StmtKind::Fetch(..) => "at FETCH",
        StmtKind::Move(..) => "at MOVE",
        StmtKind::Close(_) => "at CLOSE",
        StmtKind::Commit(_) => "at COMMIT",
        StmtKind::Rollback(_) => "at ROLLBACK",
        StmtKind::Null => "at NULL",
    }
}

impl Frame<'_> {
    /// Runs the whole body.
    ///
    /// # Errors
    /// The statements', with this frame's CONTEXT line.
    pub fn run(&mut self, cx: &mut ExecContext<'_>) -> Result<Flow> {
        let program = self.program;
        if let Some((schema, placed)) = &program.placed
            && !cx.search_path.contains(schema)
        {
            self.signature = placed.clone();
        }
        let signature = self.signature.clone();
        cx.routines.calls.push(CallPlace { signature, at: (0, ""), statement: None });
        let done = self.block(&program.body, cx);
        cx.routines.calls.pop();
        match done {
            Err(error) if !self.located => {
                self.located = true;
                Err(error.context(self.line_of(0, "")))
            }
            done => done,
        }
    }

    fn statements(&mut self, all: &[Stmt], cx: &mut ExecContext<'_>) -> Result<Flow> {
        for stmt in all {
            let flow = match self.statement(&stmt.kind, stmt.line, cx) {
                Ok(flow) => flow,
                Err(error) if !self.located => {
                    self.located = true;
                    return Err(error.context(self.line_of(stmt.line, word(&stmt.kind))));
                }
                Err(error) => return Err(error),
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, kind: &StmtKind, line: u32, cx: &mut ExecContext<'_>) -> Result<Flow> {
        sched::check_interrupts()?;
        if cx.hooks.settings_version() != cx.settings_version {
            return exec::routine::up_to_date(cx, |cx| self.statement_in(kind, line, cx));
        }
        self.statement_in(kind, line, cx)
    }

    fn statement_in(
        &mut self,
        kind: &StmtKind,
        line: u32,
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        if let Some(place) = cx.routines.calls.last_mut() {
            place.at = (line, word(kind));
            place.statement = None;
        }
        match kind {
            StmtKind::Assign(target, value) => {
                self.assignment(target, *value, cx)?;
                Ok(Flow::Next)
            }
            StmtKind::If(arms, otherwise) => {
                for (test, body) in arms {
                    if self.holds(*test, cx)? {
                        return self.statements(body, cx);
                    }
                }
                self.statements(otherwise, cx)
            }
            StmtKind::Return(value) => self.return_value(*value, cx),
            StmtKind::Leave { exit, id, when } => {
                if let Some(test) = when
                    && !self.holds(*test, cx)?
                {
                    return Ok(Flow::Next);
                }
                Ok(if *exit { Flow::Exit(*id) } else { Flow::Continue(*id) })
            }
            StmtKind::Null => Ok(Flow::Next),
            StmtKind::Block(block) => self.block(block, cx),
            StmtKind::Loop(..)
            | StmtKind::While(..)
            | StmtKind::ForInteger { .. }
            | StmtKind::ForRows { .. }
            | StmtKind::Foreach { .. } => self.loops(kind, cx),
            StmtKind::Case(search, arms, otherwise) => {
                self.case(search.as_ref(), arms, otherwise.as_deref(), cx)
            }
            _ => {
                self.at = (line, word(kind));
                self.other(kind, cx)?;
                Ok(Flow::Next)
            }
        }
    }

    fn other(&mut self, kind: &StmtKind, cx: &mut ExecContext<'_>) -> Result<()> {
        match kind {
            StmtKind::ReturnNext(value) => self.return_next(*value, cx),
            StmtKind::ReturnQuery(source) => self.return_query(source, cx),
            StmtKind::Raise(raise) => self.raise(raise, cx),
            StmtKind::Assert(test, message) => self.assert(*test, *message, cx),
            StmtKind::Sql(code, into) => self.sql(*code, into.as_ref(), cx),
            StmtKind::Execute(code, into, using) => self.execute(*code, into.as_ref(), using, cx),
            StmtKind::Perform(code) => self.perform(*code, cx),
            StmtKind::Call(code, args) => self.call(*code, args, cx),
            StmtKind::Do(code) => {
                let compiled = self.query(*code, cx)?;
                let What::Query { prepared, .. } = &compiled.what else { return Ok(()) };
                let shared = &self.program.codes[*code];
                self.rows_of(prepared, None, 0, cx).map_err(|e| located_in(e, shared))?;
                Ok(())
            }
            StmtKind::GetDiagnostics(stacked, items) => self.diagnostics(*stacked, items, cx),
            StmtKind::Open(slot, args) => self.open(*slot, args, cx),
            StmtKind::OpenFor(slot, scroll, source) => self.open_for(*slot, *scroll, source, cx),
            StmtKind::Fetch(slot, go, targets) => self.fetch(*slot, go, targets, cx),
            StmtKind::Move(slot, go) => self.move_cursor(*slot, go, cx),
            StmtKind::Close(slot) => self.close(*slot, cx),
            StmtKind::Commit(chain) => self.end_transaction(true, *chain, cx),
            StmtKind::Rollback(chain) => self.end_transaction(false, *chain, cx),
            _ => Err(Error::internal("a statement without a body")),
        }
    }

    fn assignment(
        &mut self,
        target: &Assignable,
        code: CodeId,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let program = self.program;
        let info = &program.slots[usize::from(target.slot)];
        if target.path.is_empty() && program.codes[code].target.is_some() {
            if !info.not_null && self.append(target.slot, code, cx)? {
                return Ok(());
            }
            // The expression has the variable's type already.
            let value = self.value(code, cx)?;
            if let Datum::Text(text) = &value {
                check_length(text.len())?;
            }
            if info.not_null && value.is_null() {
                return self.store(target.slot, value, info.ty, cx);
            }
            self.slots[usize::from(target.slot)] = value;
            return Ok(());
        }
        // Where the value goes is found before the value: so errors come in PostgreSQL's order.
        if let [step @ Step::Index(_)] = &target.path[..] {
            let place = self.step(step, cx)?;
            let (value, ty) = self.typed_value(code, cx)?;
            if info.kind == SlotKind::Scalar
                && !value.is_null()
                && !types::user::is_user(info.ty)
                && self.assign_element(target.slot, &place, &value, ty)
            {
                return Ok(());
            }
            return self.assign_at(target, &[place], value, ty, cx);
        }
        let steps = target.path.iter().map(|step| self.step(step, cx));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let (value, ty) = self.typed_value(code, cx)?;
        self.assign_at(target, &steps, value, ty, cx)
    }

    /// Sets FOUND.
    pub fn set_found(&mut self, found: bool) {
        self.slots[usize::from(self.program.found)] = Datum::Bool(found);
    }

    fn block(&mut self, block: &Block, cx: &mut ExecContext<'_>) -> Result<Flow> {
        sched::check_stack()?;
        for slot in &block.declares {
            self.declare(*slot, cx).map_err(|e| {
                if self.located {
                    return e;
                }
                self.located = true;
                let line = self.program.slots[usize::from(*slot)].line;
                e.context(
                    self.line_of(line, "during statement block local variable initialization"),
                )
            })?;
        }
        let flow = match &block.handlers {
            None => self.statements(&block.body, cx)?,
            Some((state, message, handlers)) => {
                self.guarded(block, (*state, *message), handlers, cx)?
            }
        };
        Ok(match flow {
            Flow::Exit(id) if id == block.id => Flow::Next,
            flow => flow,
        })
    }

    fn declare(&mut self, slot: Slot, cx: &mut ExecContext<'_>) -> Result<()> {
        let program = self.program;
        let info = &program.slots[usize::from(slot)];
        if info.cursor.is_some() {
            self.slots[usize::from(slot)] = Datum::text(&info.name);
            return Ok(());
        }
        match info.default {
            Some(code) => {
                let (value, ty) = self.typed_value(code, cx)?;
                self.store(slot, value, ty, cx)
            }
            None if types::user::has_domains(info.ty) => {
                self.slots[usize::from(slot)] = Datum::Null;
                self.store(slot, Datum::Null, types::oids::UNKNOWN, cx)
            }
            None => {
                self.slots[usize::from(slot)] = Datum::Null;
                Ok(())
            }
        }
    }

    /// A block with EXCEPTION: in a subtransaction.
    fn guarded(
        &mut self,
        block: &Block,
        (state, message): (Slot, Slot),
        handlers: &[Handler],
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        self.subtransactions += 1;
        let done = nested::subtransaction(cx, |cx| self.statements(&block.body, cx));
        self.subtransactions -= 1;
        let error = match done {
            Ok(flow) => return Ok(flow),
            Err(error) => error,
        };
        if error.severity() != base::error::Severity::Error {
            return Err(error);
        }
        let catching = handlers.iter().find(|h| h.catches.iter().any(|c| c.catches(&error)));
        let Some(handler) = catching else { return Err(error) };
        self.located = false;
        self.slots[usize::from(state)] = Datum::text(error.code().as_str());
        self.slots[usize::from(message)] = Datum::text(error.message());
        self.errors.push(error);
        let flow = self.statements(&handler.body, cx);
        self.errors.pop();
        flow
    }

    fn case(
        &mut self,
        search: Option<&(CodeId, Slot)>,
        arms: &[(CodeId, Vec<Stmt>)],
        otherwise: Option<&[Stmt]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        if let Some((code, slot)) = search {
            let (value, ty) = self.typed_value(*code, cx)?;
            let known = match &self.slots[usize::from(*slot)] {
                Datum::Record(row) if row.shape.columns[0].1 == ty => Some(row.shape.clone()),
                _ => None,
            };
            let shape = known.unwrap_or_else(|| {
                Arc::new(Shape { ty: RECORD, columns: vec![(Text::from("value"), ty)] })
            });
            self.slots[usize::from(*slot)] = Datum::record(shape, vec![value]);
        }
        for (test, body) in arms {
            if self.holds(*test, cx)? {
                return self.statements(body, cx);
            }
        }
        match otherwise {
            Some(body) => self.statements(body, cx),
            None => {
                Err(err!(CASE_NOT_FOUND, "case not found")
                    .hint("CASE statement is missing ELSE part."))
            }
        }
    }

    fn loops(&mut self, kind: &StmtKind, cx: &mut ExecContext<'_>) -> Result<Flow> {
        match kind {
            StmtKind::Loop(id, body) => loop {
                sched::check_interrupts()?;
                if let Round::Leave(flow) = round(*id, self.statements(body, cx)?) {
                    return Ok(flow);
                }
            },
            StmtKind::While(id, test, body) => {
                while self.holds(*test, cx)? {
                    sched::check_interrupts()?;
                    if let Round::Leave(flow) = round(*id, self.statements(body, cx)?) {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            StmtKind::ForInteger { .. } => self.for_integer(kind, cx),
            StmtKind::ForRows { id, targets, source, body } => {
                self.for_rows(*id, targets, source, body, cx)
            }
            StmtKind::Foreach { id, targets, slice, array, body } => {
                self.foreach(*id, targets, *slice, *array, body, cx)
            }
            _ => Err(Error::internal("a loop without a body")),
        }
    }

    fn bound(&mut self, code: CodeId, what: &str, cx: &mut ExecContext<'_>) -> Result<i32> {
        match self.value(code, cx)? {
            Datum::Int4(value) => Ok(value),
            _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "{what} of FOR loop cannot be null")),
        }
    }

    fn for_integer(&mut self, kind: &StmtKind, cx: &mut ExecContext<'_>) -> Result<Flow> {
        let StmtKind::ForInteger { id, slot, low, high, step, reverse, body } = kind else {
            return Ok(Flow::Next);
        };
        let mut at = self.bound(*low, "lower bound", cx)?;
        let end = self.bound(*high, "upper bound", cx)?;
        let step = match step {
            Some(step) => self.bound(*step, "BY value", cx)?,
            None => 1,
        };
        if step <= 0 {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "BY value of FOR loop must be greater than zero"
            ));
        }
        let mut any = false;
        let mut left = Flow::Next;
        while if *reverse { at >= end } else { at <= end } {
            any = true;
            sched::check_interrupts()?;
            self.slots[usize::from(*slot)] = Datum::Int4(at);
            if let Round::Leave(flow) = round(*id, self.statements(body, cx)?) {
                left = flow;
                break;
            }
            let next = if *reverse { at.checked_sub(step) } else { at.checked_add(step) };
            let Some(next) = next else { break };
            at = next;
        }
        self.set_found(any);
        Ok(left)
    }

    fn for_rows(
        &mut self,
        id: LabelId,
        targets: &[Assignable],
        source: &Source,
        body: &[Stmt],
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        if let Source::Cursor(slot, args) = source {
            return self.for_cursor(id, targets, *slot, args, body, cx);
        }
        let started = self.start(source, cx)?;
        let Started { prepared, shape, mut execution, snapshot, pin, .. } = started;
        let types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        // Rows have to be there before a body that ends the transaction.
        let all = self.program.ends_transactions && cx.nonatomic;
        let mut limit = match () {
            () if all => 0,
            // Others can see how far it is read: no further than PostgreSQL does.
            () if prepared.effects.any => {
                if cx.nonatomic {
                    1
                } else {
                    SEEN_FIRST
                }
            }
            () => ROWS,
        };
        let mut any = false;
        let mut left = Flow::Next;
        let result: Result<()> = 'all: loop {
            let mut rows = exec::nested::RowList::of(&types);
            let fetched = {
                let mut inner = ExecContext { snapshot, ..cx.inner() };
                execution.fetch(&mut inner, limit, &mut rows)
            };
            if limit == SEEN_FIRST {
                limit = SEEN_THEN;
            }
            // Statements after it see the changes of the statement.
            if prepared.writes {
                cx.tx.next_command();
            }
            let end = match fetched {
                Ok((_, end)) => end,
                Err(error) => break Err(error.without_position()),
            };
            for row in rows.rows {
                any = true;
                if let Err(error) = sched::check_interrupts()
                    .and_then(|()| self.move_row(targets, Some(row), &shape, cx))
                {
                    break 'all Err(error);
                }
                match self.statements(body, cx).map(|flow| round(id, flow)) {
                    Ok(Round::Next) => {}
                    Ok(Round::Leave(flow)) => {
                        left = flow;
                        break 'all Ok(());
                    }
                    Err(error) => break 'all Err(error),
                }
            }
            if end {
                break Ok(());
            }
        };
        drop(execution);
        cx.tx.unpin_snapshot(pin);
        result?;
        if !any {
            self.move_row(targets, None, &shape, cx)?;
        }
        self.set_found(any);
        Ok(left)
    }

    fn foreach(
        &mut self,
        id: LabelId,
        targets: &[Assignable],
        slice: u32,
        array: CodeId,
        body: &[Stmt],
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        let (value, ty) = self.typed_value(array, cx)?;
        if value.is_null() {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null"));
        }
        let Datum::Array(array) = value else {
            return Err(err!(
                DATATYPE_MISMATCH,
                "FOREACH expression must yield an array, not type {}",
                types::io::format_type(ty, -1)
            ));
        };
        if slice as usize > array.dims.len() {
            return Err(err!(
                ARRAY_SUBSCRIPT_ERROR,
                "slice dimension ({slice}) is out of the valid range 0..{}",
                array.dims.len()
            ));
        }
        let scalar = targets.first().is_some_and(|t| {
            let info = &self.program.slots[usize::from(t.slot)];
            let is_array = types::TypeIo::get(types::user::base_type(info.ty, -1).0)
                .is_some_and(|io| io.element != base::Oid::INVALID);
            t.path.is_empty() && info.kind == SlotKind::Scalar && !is_array
        });
        if slice > 0 && scalar {
            return Err(err!(
                DATATYPE_MISMATCH,
                "FOREACH ... SLICE loop variable must be of an array type"
            ));
        }
        let array_target = targets.first().is_some_and(|t| {
            let info = &self.program.slots[usize::from(t.slot)];
            t.path.is_empty() && info.kind == SlotKind::Scalar && !scalar
        });
        if slice == 0 && array_target {
            return Err(err!(
                DATATYPE_MISMATCH,
                "FOREACH loop variable must not be of an array type"
            ));
        }
        let inner_dims = &array.dims[array.dims.len() - slice as usize..];
        let width: usize = inner_dims.iter().map(|d| d.0 as usize).product();
        let mut any = false;
        let mut left = Flow::Next;
        for items in array.items.chunks(width.max(1)) {
            any = true;
            sched::check_interrupts()?;
            let (value, ty) = if slice == 0 {
                (items[0].clone(), array.element)
            } else {
                let part = types::datum::Array {
                    element: array.element,
                    dims: inner_dims.iter().map(|d| (d.0, 1)).collect(),
                    items: items.to_vec(),
                };
                (Datum::Array(Arc::new(part)), ty)
            };
            let row = match &value {
                Datum::Record(r) if slice == 0 => Some((r.fields.to_vec(), r.shape.clone())),
                _ => None,
            };
            match (row, targets) {
                (Some((fields, shape)), _) => self.move_row(targets, Some(fields), &shape, cx)?,
                (None, [one]) => self.assign(one, value, ty, cx)?,
                (None, _) => {
                    return Err(err!(
                        DATATYPE_MISMATCH,
                        "cannot assign a single value to several variables"
                    ));
                }
            }
            if let Round::Leave(flow) = round(id, self.statements(body, cx)?) {
                left = flow;
                break;
            }
        }
        self.set_found(any);
        Ok(left)
    }

    /// One round of a loop; where to go when that was the last.
    pub fn round_of(
        &mut self,
        id: LabelId,
        body: &[Stmt],
        cx: &mut ExecContext<'_>,
    ) -> Result<Option<Flow>> {
        Ok(match round(id, self.statements(body, cx)?) {
            Round::Next => None,
            Round::Leave(flow) => Some(flow),
        })
    }

    fn assert(
        &mut self,
        test: CodeId,
        message: Option<CodeId>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        if !cx.settings.bool(base::settings::setting::PLPGSQL_CHECK_ASSERTS) {
            return Ok(());
        }
        if self.holds(test, cx)? {
            return Ok(());
        }
        let text = match message {
            Some(code) => self.text(code, cx)?,
            None => None,
        };
        Err(err!(ASSERT_FAILURE, "{}", text.as_deref().unwrap_or("assertion failed")))
    }

    fn end_transaction(
        &mut self,
        commit: bool,
        chain: bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        if cx.nonatomic && (self.subtransactions > 0 || cx.tx.in_savepoint()) {
            let word = if commit { "commit" } else { "roll back" };
            return Err(err!(
                INVALID_TRANSACTION_TERMINATION,
                "cannot {word} while a subtransaction is active"
            ));
        }
        nested::end_transaction(TransactionEnd { commit, chain }, cx)
    }

    // Statements in SQL.

    fn sql(&mut self, code: CodeId, into: Option<&Into>, cx: &mut ExecContext<'_>) -> Result<()> {
        let compiled = self.query(code, cx)?;
        let program = self.program;
        let shared = &program.codes[code];
        let What::Query { prepared, shape, .. } = &compiled.what else { return Ok(()) };
        self.check_plain(prepared)?;
        self.note_statement(code, cx);
        if prepared.tag == "CALL" && into.is_none() {
            self.rows_of(prepared, None, 0, cx).map_err(|e| located_in(e, shared))?;
            return Ok(());
        }
        let is_query = matches!(prepared.statement, Statement::Query(_));
        let changes = matches!(prepared.tag, "INSERT" | "UPDATE" | "DELETE" | "MERGE");
        match into {
            None => {
                let discarded = is_query && !prepared.columns.is_empty();
                let (_, rows) =
                    self.rows_of(prepared, None, 0, cx).map_err(|e| located_in(e, shared))?;
                if discarded {
                    let error = err!(SYNTAX_ERROR, "query has no destination for result data");
                    return Err(match prepared.tag {
                        "SELECT" => error.hint(
                            "If you want to discard the results of a SELECT, use PERFORM instead.",
                        ),
                        _ => error,
                    });
                }
                self.row_count = rows;
                if is_query && (changes || prepared.tag == "SELECT") {
                    self.set_found(rows > 0);
                }
            }
            Some(into) => {
                if !is_query || prepared.columns.is_empty() && prepared.tag != "SELECT" {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "INTO used with a command that cannot return data"
                    ));
                }
                let limit = match into.strict || changes {
                    true => 2,
                    false => 1 + usize::from(extra(cx, "too_many_rows").is_some()),
                };
                let (rows, _) =
                    self.rows_of(prepared, None, limit, cx).map_err(|e| located_in(e, shared))?;
                self.into(into, rows, shape, changes, Some(code), &[], cx)?;
            }
        }
        Ok(())
    }

    /// Refuses statements that can't stand in a body.
    fn check_plain(&self, prepared: &sql::Prepared) -> Result<()> {
        use sql::Utility as U;
        match &prepared.statement {
            Statement::Utility(
                U::Begin(_)
                | U::Commit { .. }
                | U::Rollback { .. }
                | U::Savepoint(_)
                | U::Release(_)
                | U::RollbackTo(_),
            ) => Err(err!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")),
            Statement::Utility(U::CopyFrom { options, .. }) if options.file.is_none() => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"))
            }
            Statement::Utility(U::CopyTo { options, .. }) if options.file.is_none() => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL"))
            }
            _ => Ok(()),
        }
    }

    /// The rows of a statement into INTO's targets.
    #[allow(clippy::too_many_arguments)]
    fn into(
        &mut self,
        into: &Into,
        rows: Vec<Vec<Datum>>,
        shape: &Arc<Shape>,
        changes: bool,
        code: Option<CodeId>,
        params: &[(Datum, base::Oid)],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let count = rows.len();
        // Also where STRICT fails; EXECUTE leaves it alone.
        if code.is_some() {
            self.set_found(count > 0);
        }
        if count == 0 && into.strict {
            let error = err!(NO_DATA_FOUND, "query returned no rows");
            return Err(self.with_params(error, code, params, cx));
        }
        if count > 1 && (into.strict || changes) {
            let error = err!(TOO_MANY_ROWS, "query returned more than one row");
            let error = self.with_params(error, code, params, cx);
            return Err(match code {
                Some(_) => error.hint(ONE_ROW),
                None => error,
            });
        }
        if count > 1 && code.is_some() {
            let error = err!(TOO_MANY_ROWS, "query returned more than one row").hint(ONE_ROW);
            match extra(cx, "too_many_rows") {
                Some(true) => return Err(error),
                Some(false) => {
                    let context = self.context(cx);
                    cx.hooks.notice("WARNING", error.context(context));
                }
                None => {}
            }
        }
        self.row_count = u64::from(count > 0);
        self.set_found(count > 0);
        self.move_row(&into.targets, rows.into_iter().next(), shape, cx)
    }

    /// The parameters in DETAIL, if `print_strict_params` asks for them.
    fn with_params(
        &mut self,
        error: Error,
        code: Option<CodeId>,
        params: &[(Datum, base::Oid)],
        cx: &mut ExecContext<'_>,
    ) -> Error {
        if !self.program.print_strict_params {
            return error;
        }
        let mut shown = Vec::new();
        match code {
            Some(code) => {
                for (name, slot) in self.named_in(code) {
                    let info = &self.program.slots[usize::from(slot)];
                    let value = self.slots[usize::from(slot)].clone();
                    shown.push((name, value, info.ty));
                }
            }
            None => {
                for (n, (value, ty)) in params.iter().enumerate() {
                    shown.push((format!("${}", n + 1), value.clone(), *ty));
                }
            }
        }
        if shown.is_empty() {
            return error;
        }
        let mut texts = Vec::new();
        for (name, value, ty) in shown {
            let text = self.text_of(value, ty, cx).ok().flatten();
            texts.push(match text {
                Some(text) => format!("{name} = '{}'", text.replace('\'', "''")),
                None => format!("{name} = NULL"),
            });
        }
        error.detail(format!("parameters: {}", texts.join(", ")))
    }

    /// The scalar variables that a statement names.
    fn named_in(&self, code: CodeId) -> Vec<(String, Slot)> {
        let code = &self.program.codes[code];
        let Ok(tokens) = crate::scan::scan(&code.text) else { return Vec::new() };
        let mut out: Vec<(String, Slot)> = Vec::new();
        for token in tokens.iter().filter(|t| t.is_name()) {
            let found =
                lookup(&self.program.names, &self.program.slots, code.scope, &[&token.text]);
            if let Some(found) = found
                && self.program.slots[usize::from(found.slot)].kind == SlotKind::Scalar
                && out.iter().all(|(_, known)| *known != found.slot)
            {
                out.push((token.text.clone(), found.slot));
            }
        }
        out
    }

    fn perform(&mut self, code: CodeId, cx: &mut ExecContext<'_>) -> Result<()> {
        let compiled = self.query(code, cx)?;
        let program = self.program;
        let shared = &program.codes[code];
        let What::Query { prepared, .. } = &compiled.what else { return Ok(()) };
        self.note_statement(code, cx);
        let (_, rows) = self.rows_of(prepared, None, 0, cx).map_err(|e| located_in(e, shared))?;
        self.row_count = rows;
        self.set_found(rows > 0);
        Ok(())
    }

    fn call(
        &mut self,
        code: CodeId,
        args: &[(Option<String>, Option<Assignable>)],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let compiled = self.query(code, cx)?;
        let program = self.program;
        let shared = &program.codes[code];
        let What::Query { prepared, shape, .. } = &compiled.what else { return Ok(()) };
        let targets = self.output_targets(prepared, args, cx)?;
        self.note_statement(code, cx);
        let (rows, _) = self.rows_of(prepared, None, 0, cx).map_err(|e| located_in(e, shared))?;
        if let Some(row) = rows.into_iter().next() {
            for ((target, value), (_, ty)) in targets.into_iter().zip(row).zip(&shape.columns) {
                self.assign(target, value, *ty, cx)?;
            }
        }
        Ok(())
    }

    /// The variables that a CALL's output parameters go to.
    fn output_targets<'t>(
        &self,
        prepared: &sql::Prepared,
        args: &'t [(Option<String>, Option<Assignable>)],
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<&'t Assignable>> {
        let view = cx.catalog_tx.view();
        let function = sql::embedded::called(prepared).and_then(|oid| view.function(oid.0));
        let Some(function) = function else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        for (n, parameter) in function.called_with().enumerate() {
            if !matches!(parameter.mode, 'o' | 'b') {
                continue;
            }
            let by_name = |(name, _): &&(Option<String>, Option<Assignable>)| {
                name.as_deref() == Some(parameter.name.as_str())
            };
            let given = match args.get(n) {
                Some((None, target)) => Some(target),
                _ => args.iter().find(by_name).map(|(_, target)| target),
            };
            match given {
                Some(Some(target)) => out.push(target),
                _ => {
                    let name = match parameter.name.as_str() {
                        "" => format!("procedure parameter {}", n + 1),
                        name => format!("procedure parameter \"{name}\""),
                    };
                    return Err(err!(
                        SYNTAX_ERROR,
                        "{name} is an output parameter but corresponding argument is not writable"
                    ));
                }
            }
        }
        Ok(out)
    }

    /// The values of USING.
    pub fn using(
        &mut self,
        using: &[CodeId],
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<(Datum, base::Oid)>> {
        using.iter().map(|code| self.typed_value(*code, cx)).collect()
    }

    /// The text of an EXECUTE.
    pub fn command(&mut self, code: CodeId, cx: &mut ExecContext<'_>) -> Result<String> {
        match self.value(code, cx)? {
            Datum::Text(text) => Ok(text.into()),
            _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null")),
        }
    }

    /// Prepares a text with parameters of these types, with its locks.
    pub fn prepare_text(
        &self,
        text: &str,
        types: &[base::Oid],
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<sql::Prepared>> {
        for _ in 0..nested::ATTEMPTS {
            let key = exec::plan_slot::PlanKey::now(cx);
            let prepared = nested::preparing(cx, None, |plans, cx| plans.prepare(text, types, cx));
            let prepared = prepared.map_err(|e| match e.fields().position {
                0 => e.context(format!("SQL statement \"{text}\"")),
                _ => e.inside(text),
            })?;
            nested::lock(&prepared, cx)?;
            if exec::plan_slot::PlanKey::now(cx) == key {
                return Ok(prepared);
            }
        }
        Err(err!(OBJECT_IN_USE, "definitions change too fast for this statement"))
    }

    fn execute(
        &mut self,
        code: CodeId,
        into: Option<&Into>,
        using: &[CodeId],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let text = self.command(code, cx)?;
        let params = self.using(using, cx)?;
        let types: Vec<base::Oid> = params.iter().map(|p| p.1).collect();
        let values: Vec<Datum> = params.iter().map(|p| p.0.clone()).collect();
        let parts = match text.contains(';') {
            true => sql::split_statements(&text).map_err(|e| e.inside(&text))?,
            false => vec![0..text.len()],
        };
        let count = parts.len();
        for (n, part) in parts.into_iter().enumerate() {
            let whole = if count == 1 { text.as_str() } else { &text[part] };
            let prepared = self.prepare_text(whole, &types, cx)?;
            if let Statement::Utility(
                sql::Utility::Begin(_)
                | sql::Utility::Commit { .. }
                | sql::Utility::Rollback { .. }
                | sql::Utility::Savepoint(_)
                | sql::Utility::Release(_)
                | sql::Utility::RollbackTo(_)
                | sql::Utility::TwoPhase(..),
            ) = &prepared.statement
            {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "EXECUTE of transaction commands is not implemented"
                ));
            }
            self.check_plain(&prepared)?;
            let last = n + 1 == count;
            let limit = match into {
                Some(into) if last => {
                    if into.strict {
                        2
                    } else {
                        1
                    }
                }
                _ => 0,
            };
            let wanted = values.get(..prepared.params.len()).unwrap_or(&values).to_vec();
            let run = self.rows_of(&prepared, Some(&wanted), limit, cx);
            let (rows, total) = run
                .map_err(|e| e.without_position().context(format!("SQL statement \"{whole}\"")))?;
            self.row_count = total;
            if let (Some(into), true) = (into, last) {
                // `SELECT` without columns gives a row all the same.
                if prepared.columns.is_empty() && prepared.tag != "SELECT" {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "INTO used with a command that cannot return data"
                    ));
                }
                let columns =
                    prepared.columns.iter().map(|c| (Text::from(c.name.as_str()), c.ty)).collect();
                let shape = Arc::new(Shape { ty: RECORD, columns });
                let found = self.slots[usize::from(self.program.found)].clone();
                self.into(into, rows, &shape, false, None, &params, cx)?;
                // EXECUTE leaves FOUND alone.
                self.slots[usize::from(self.program.found)] = found;
            }
        }
        Ok(())
    }

    /// Begins a query that gives its rows step by step.
    pub fn start(&mut self, source: &Source, cx: &mut ExecContext<'_>) -> Result<Started> {
        let mut tables = Vec::new();
        let (mut prepared, shape, mut params, text) = match source {
            Source::Query(code) => {
                let compiled = self.query(*code, cx)?;
                let What::Query { prepared, shape, tables: known } = &compiled.what else {
                    return Err(Error::internal("an expression instead of a query"));
                };
                tables.clone_from(known);
                let text = self.program.codes[*code].text.to_string();
                self.note_statement(*code, cx);
                (prepared.clone(), shape.clone(), self.slots.clone(), text)
            }
            Source::Execute(code, using) => {
                let text = self.command(*code, cx)?;
                let params = self.using(using, cx)?;
                let types: Vec<base::Oid> = params.iter().map(|p| p.1).collect();
                let prepared = self.prepare_text(&text, &types, cx)?;
                let params: Vec<Datum> = params.into_iter().map(|p| p.0).collect();
                let columns =
                    prepared.columns.iter().map(|c| (Text::from(c.name.as_str()), c.ty)).collect();
                (prepared, Arc::new(Shape { ty: RECORD, columns }), params, text)
            }
            Source::Cursor(..) => return Err(Error::internal("a cursor is opened elsewhere")),
        };
        // EXPLAIN and SHOW give all their lines at once; what is begun is a query of these.
        if let (Statement::Utility(_), [column]) =
            (&prepared.statement, prepared.columns.as_slice())
        {
            let (rows, _) = self.rows_of(&prepared, Some(&params), usize::MAX, cx)?;
            let lines = rows.into_iter().filter_map(|row| row.into_iter().next());
            params = vec![Datum::array(types::oids::TEXT, lines.collect())];
            let name = exec::session::quote_identifier(&column.name);
            let text = format!("SELECT pg_catalog.unnest($1) AS {name}");
            prepared = self.prepare_text(&text, &[LINES], cx)?;
        }
        if !sql::embedded::returns_rows(&prepared) {
            if prepared.tag == "SELECT" || matches!(prepared.statement, Statement::Query(_)) {
                return Err(err!(
                    INVALID_CURSOR_DEFINITION,
                    "cannot open {} query as cursor",
                    prepared.tag
                ));
            }
            return Err(err!(
                INVALID_CURSOR_DEFINITION,
                "cannot open {} query as cursor",
                prepared.tag
            ));
        }
        let snapshot = nested::snapshot(self.program.volatile, cx);
        let started = nested::start(&prepared, &params, snapshot, cx);
        let (execution, pin) = started
            .map_err(|e| e.without_position().context(format!("SQL statement \"{text}\"")))?;
        Ok(Started { prepared, shape, execution: Box::new(execution), snapshot, pin, text, tables })
    }
}

/// An array of text.
const LINES: base::Oid = base::Oid(1009);

/// A query that has begun.
pub struct Started {
    /// Its plan.
    pub prepared: Arc<sql::Prepared>,
    /// Its rows'.
    pub shape: Arc<Shape>,
    /// It.
    pub execution: Box<Execution>,
    /// The snapshot that it sees.
    pub snapshot: txn::Snapshot,
    /// The registration of that.
    pub pin: u64,
    /// Its text.
    pub text: String,
    /// The tables that WHERE CURRENT OF can change.
    pub tables: Vec<Vec<u32>>,
}
