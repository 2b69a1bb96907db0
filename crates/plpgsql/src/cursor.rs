//! Cursors: portals of the session, by the names that refcursor variables hold.

use std::sync::Arc;

use base::{Result, err};
use exec::ExecContext;
use exec::context::OpenCursor;
use sql::utility::FetchHow;
use types::datum::Shape;
use types::oids::{RECORD, REFCURSOR};
use types::{Datum, Text};

use crate::frame::Frame;
use crate::program::*;
use crate::run::{Flow, Started};

impl Frame<'_> {
    fn cursor_name(&self, slot: Slot) -> Result<String> {
        match &self.slots[usize::from(slot)] {
            Datum::Text(name) => Ok(name.to_string()),
            _ => Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "cursor variable \"{}\" is null",
                self.program.slots[usize::from(slot)].name
            )),
        }
    }

    /// OPEN of a bound cursor.
    ///
    /// # Errors
    /// The query's; `42P03`.
    pub fn open(&mut self, slot: Slot, args: &[CodeId], cx: &mut ExecContext<'_>) -> Result<()> {
        let Some(info) = self.program.slots[usize::from(slot)].cursor.clone() else {
            return Ok(());
        };
        self.check_free(slot, cx)?;
        for (param, code) in info.params.iter().zip(args) {
            let (value, ty) = self.typed_value(*code, cx)?;
            self.store(*param, value, ty, cx)?;
        }
        let started = self.start(&Source::Query(info.query), cx)?;
        self.opened(slot, started, info.scroll, cx)
    }

    /// OPEN … FOR.
    ///
    /// # Errors
    /// The query's; `42P03`.
    pub fn open_for(
        &mut self,
        slot: Slot,
        scroll: Option<bool>,
        source: &Source,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        self.check_free(slot, cx)?;
        let started = self.start(source, cx)?;
        self.opened(slot, started, scroll, cx)
    }

    fn check_free(&self, slot: Slot, cx: &mut ExecContext<'_>) -> Result<()> {
        let Datum::Text(name) = &self.slots[usize::from(slot)] else { return Ok(()) };
        match cx.hooks.take_cursor(name) {
            None => Ok(()),
            Some(cursor) => {
                cx.hooks.put_cursor(name, cursor);
                Err(err!(DUPLICATE_CURSOR, "cursor \"{name}\" already in use"))
            }
        }
    }

    fn opened(
        &mut self,
        slot: Slot,
        started: Started,
        scroll: Option<bool>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let Started { prepared, execution, snapshot, pin, text, tables, .. } = started;
        let name = self.cursor_name(slot).ok();
        let params = execution.params().to_vec();
        let cursor =
            OpenCursor { name, prepared, text, params, execution, snapshot, pin, scroll, tables };
        let name = match cx.hooks.open_cursor(cursor) {
            Ok(name) => name,
            Err(error) => {
                cx.tx.unpin_snapshot(pin);
                return Err(error);
            }
        };
        self.store(slot, Datum::from(name), REFCURSOR, cx)
    }

    fn how(&mut self, go: &Go, cx: &mut ExecContext<'_>) -> Result<FetchHow> {
        let (code, make): (CodeId, fn(i64) -> FetchHow) = match go {
            Go::Fixed(how) => return Ok(*how),
            Go::Absolute(code) => (*code, FetchHow::Absolute),
            Go::Relative(code) => (*code, FetchHow::Relative),
            Go::Forward(code) => (*code, |n| match n < 0 {
                true => FetchHow::Backward(Some(-n)),
                false => FetchHow::Forward(Some(n)),
            }),
            Go::Backward(code) => (*code, |n| match n < 0 {
                true => FetchHow::Forward(Some(-n)),
                false => FetchHow::Backward(Some(n)),
            }),
        };
        match self.value(code, cx)? {
            Datum::Int4(n) => Ok(make(i64::from(n))),
            _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "relative or absolute cursor position is null")),
        }
    }

    /// Moves a cursor; its rows and their shape.
    fn advance(
        &mut self,
        slot: Slot,
        how: FetchHow,
        moving: bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<(Vec<Vec<Datum>>, Arc<Shape>, u64)> {
        let name = self.cursor_name(slot)?;
        let Some(mut cursor) = cx.hooks.take_cursor(&name) else {
            return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
        };
        let columns = cursor.columns();
        let types: Vec<base::Oid> = columns.iter().map(|c| c.ty).collect();
        let mut rows = exec::nested::RowList::of(&types);
        let fetched = cursor.fetch(how, moving, cx, &mut rows);
        cx.hooks.put_cursor(&name, cursor);
        let count = fetched?;
        let columns = columns.iter().map(|c| (Text::from(c.name.as_str()), c.ty)).collect();
        Ok((rows.rows, Arc::new(Shape { ty: RECORD, columns }), count))
    }

    /// FETCH.
    ///
    /// # Errors
    /// `34000`; the query's; those of assigning.
    pub fn fetch(
        &mut self,
        slot: Slot,
        go: &Go,
        targets: &[Assignable],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let name = self.cursor_name(slot)?;
        if let Some(cursor) = cx.hooks.take_cursor(&name) {
            cx.hooks.put_cursor(&name, cursor);
        } else {
            return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
        }
        let how = self.how(go, cx)?;
        let (rows, shape, _) = self.advance(slot, how, false, cx)?;
        let count = rows.len();
        self.move_row(targets, rows.into_iter().next(), &shape, cx)?;
        self.row_count = count as u64;
        self.set_found(count > 0);
        Ok(())
    }

    /// MOVE.
    ///
    /// # Errors
    /// `34000`; the query's.
    pub fn move_cursor(&mut self, slot: Slot, go: &Go, cx: &mut ExecContext<'_>) -> Result<()> {
        let how = self.how(go, cx)?;
        let (_, _, count) = self.advance(slot, how, true, cx)?;
        self.row_count = count;
        self.set_found(count > 0);
        Ok(())
    }

    /// CLOSE.
    ///
    /// # Errors
    /// `34000`.
    pub fn close(&mut self, slot: Slot, cx: &mut ExecContext<'_>) -> Result<()> {
        let name = self.cursor_name(slot)?;
        match cx.hooks.close_cursor(&name) {
            true => Ok(()),
            false => Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist")),
        }
    }

    /// FOR over a bound cursor.
    pub fn for_cursor(
        &mut self,
        id: LabelId,
        targets: &[Assignable],
        slot: Slot,
        args: &[CodeId],
        body: &[Stmt],
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        let unnamed = self.slots[usize::from(slot)].is_null();
        self.open(slot, args, cx)?;
        let name = self.cursor_name(slot)?;
        let mut any = false;
        let result = self.cursor_rounds(id, targets, slot, body, &mut any, cx);
        cx.hooks.close_cursor(&name);
        if unnamed {
            self.slots[usize::from(slot)] = Datum::Null;
        }
        let flow = result?;
        self.set_found(any);
        Ok(flow)
    }

    fn cursor_rounds(
        &mut self,
        id: LabelId,
        targets: &[Assignable],
        slot: Slot,
        body: &[Stmt],
        any: &mut bool,
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        let ends = self.program.ends_transactions && cx.nonatomic;
        if ends {
            // Rows have to be there before a body that ends the transaction.
            let (rows, shape, _) = self.advance(slot, FetchHow::Forward(None), false, cx)?;
            for row in rows {
                *any = true;
                self.move_row(targets, Some(row), &shape, cx)?;
                if let Some(flow) = self.round_of(id, body, cx)? {
                    return Ok(flow);
                }
            }
            return Ok(Flow::Next);
        }
        loop {
            sched::check_interrupts()?;
            let (rows, shape, _) = self.advance(slot, FetchHow::Forward(Some(1)), false, cx)?;
            let Some(row) = rows.into_iter().next() else { return Ok(Flow::Next) };
            *any = true;
            self.move_row(targets, Some(row), &shape, cx)?;
            if let Some(flow) = self.round_of(id, body, cx)? {
                return Ok(flow);
            }
        }
    }
}
