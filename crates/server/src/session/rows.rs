//! Result rows, from the executor's batches straight into the output buffer.

use std::cell::RefCell;
use std::sync::Arc;

use base::faults::{self, Fault};
use base::{Oid, Result};
use catalog::Snapshot;
use exec::RowSink;
use sql::plan::OutputColumn;
use txn::Transaction;
use types::batch::Vector;
use types::encodings::Encoding;
use types::{Batch, Column, Datum, FormatContext, TypeIo, io, oids, user};
use wire::rows;

use super::portal::ResultFormats;
use super::{names, recode};
use crate::connection::Output;

/// RowDescription of a statement's or portal's columns.
///
/// # Errors
/// `22P05` for names that the client's encoding lacks.
pub fn describe(
    out: &mut Vec<u8>,
    columns: &[OutputColumn],
    formats: &ResultFormats,
    encoding: Encoding,
) -> Result<()> {
    let start = out.len();
    rows::description(
        out,
        columns.iter().enumerate().map(|(i, c)| {
            // Clients are told the type below a domain.
            let (ty, typmod) = user::base_type(c.ty, c.typmod);
            rows::Field {
                name: &c.name,
                table: c.table,
                column: c.column as i16,
                ty,
                len: TypeIo::get(ty).map_or(-1, |t| t.len),
                typmod,
                binary: formats.binary(i),
            }
        }),
    );
    recode::checked(out, start, encoding)
}

/// Takes rows and COPY data for one statement.
pub struct Rows<'a> {
    /// Where to.
    pub out: &'a RefCell<Output>,
    /// The result's columns.
    pub columns: &'a [OutputColumn],
    /// Their formats.
    pub formats: &'a ResultFormats,
    /// For text output.
    pub context: &'a FormatContext,
    /// The transaction whose reads must be durable before rows leave.
    pub tx: &'a Transaction,
    /// For the names behind `regclass` and kin; None when no column needs it.
    pub names: Option<(Arc<Snapshot>, &'a [u32])>,
    /// Takes rows and sends none (MOVE).
    pub discard: bool,
}

impl Rows<'_> {
    fn finish(&self, out: &mut Output) -> Result<()> {
        if out.is_large() {
            out.need_durable(self.tx.durability_needed());
            sched::check_interrupts()?;
        }
        out.pace()
    }

    fn datum(&self, out: &mut Vec<u8>, index: usize, value: &Datum) -> Result<()> {
        let Some(column) = self.columns.get(index) else {
            return Err(base::Error::internal("a row has more values than its description"));
        };
        if self.formats.binary(index) {
            if let Datum::Null = value {
                rows::null(out);
                return Ok(());
            }
            return rows::value_with(out, |o| io::send(column.ty, value, o));
        }
        match value {
            Datum::Null => rows::null(out),
            Datum::Int4(v) => rows::decimal_value(out, i64::from(*v)),
            Datum::Int8(v) if column.ty == oids::INT8 => rows::decimal_value(out, *v),
            Datum::Text(v) => rows::value(out, v.as_bytes()),
            Datum::Oid(oid) if io::is_reg(column.ty) => {
                let text = self.reg_name(column.ty, *oid);
                rows::value(out, text.as_bytes());
            }
            value => {
                return rows::value_with(out, |o| io::output(column.ty, value, self.context, o));
            }
        }
        Ok(())
    }

    /// Makes the last value of a row, which begins at `start`, one in the client's encoding.
    #[inline]
    fn recode(&self, out: &mut Vec<u8>, start: usize, index: usize) -> Result<()> {
        let encoding = self.context.client_encoding;
        if encoding.is_plain() {
            return Ok(());
        }
        let ty = self.columns.get(index).map_or(Oid::INVALID, |c| c.ty);
        recode::value(out, start, ty, self.formats.binary(index), encoding)
    }

    /// The name behind an oid; the number when there is none.
    fn reg_name(&self, ty: Oid, oid: u32) -> String {
        match &self.names {
            Some((catalog, path)) => names::of(ty, oid, catalog, path),
            None => oid.to_string(),
        }
    }

    fn value(&self, out: &mut Vec<u8>, index: usize, column: &Column, row: usize) -> Result<()> {
        if column.is_null(row) {
            rows::null(out);
            return Ok(());
        }
        let ty = self.columns.get(index).map_or(Oid::INVALID, |c| c.ty);
        if !self.formats.binary(index) {
            match (&column.data, ty) {
                (Vector::Int4(v), oids::INT4) => {
                    rows::decimal_value(out, i64::from(v[row]));
                    return Ok(());
                }
                (Vector::Int8(v), oids::INT8) => {
                    rows::decimal_value(out, v[row]);
                    return Ok(());
                }
                (Vector::Text(v) | Vector::Bpchar(v), _) => {
                    rows::value(out, v[row].as_bytes());
                    return Ok(());
                }
                _ => {}
            }
        }
        self.datum(out, index, &column.get(row, ty))
    }
}

impl RowSink for Rows<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        if self.discard {
            return Ok(());
        }
        let mut out = self.out.borrow_mut();
        // A cursor's rows end with what only WHERE CURRENT OF asks for.
        let shown = self.columns.len();
        for row in 0..batch.rows {
            let start = rows::begin_row(&mut out.buffer, shown);
            faults::reach(Fault::SendRow)?;
            for (index, column) in batch.columns.iter().take(shown).enumerate() {
                let at = out.buffer.len();
                self.value(&mut out.buffer, index, column, row)?;
                self.recode(&mut out.buffer, at, index)?;
            }
            rows::end_row(&mut out.buffer, start);
            self.finish(&mut out)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        if self.discard {
            return Ok(());
        }
        let mut out = self.out.borrow_mut();
        let start = rows::begin_row(&mut out.buffer, self.columns.len());
        faults::reach(Fault::SendRow)?;
        for (index, value) in row.iter().take(self.columns.len()).enumerate() {
            let at = out.buffer.len();
            self.datum(&mut out.buffer, index, value)?;
            self.recode(&mut out.buffer, at, index)?;
        }
        rows::end_row(&mut out.buffer, start);
        self.finish(&mut out)
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        let mut out = self.out.borrow_mut();
        wire::copy::data(&mut out.buffer, bytes);
        self.finish(&mut out)
    }
}

/// Keeps rows instead of sending them.
#[derive(Default)]
pub struct CollectedRows {
    /// The rows.
    pub rows: Vec<Vec<Datum>>,
    /// Types of the columns.
    pub types: Vec<Oid>,
}

impl RowSink for CollectedRows {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            let value = |(i, c): (usize, &Column)| match c.is_null(row) {
                true => Datum::Null,
                false => c.get(row, self.types.get(i).copied().unwrap_or(oids::TEXT)),
            };
            self.rows.push(batch.columns.iter().enumerate().map(value).collect());
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.rows.push(row.to_vec());
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Err(base::Error::internal("COPY data where rows were expected"))
    }
}
