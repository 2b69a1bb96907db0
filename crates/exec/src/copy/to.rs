//! COPY TO STDOUT: one piece of the data stream a row.

use base::{Oid, Result};
use sched::observe::progress::{Count, Kind, Reporting};
use sql::Prepared;
use sql::utility::{CopyFormat, CopyOptions};
use types::encodings::{self, Encoding};
use types::{Batch, Datum};

use super::csv::{self, Dialect};
use super::{SIGNATURE, file, text};
use crate::context::{ExecContext, Outcome, RowSink};
use crate::execution::run_with;
use crate::run::ExecState;

/// Formats rows on their way to the client.
struct Writer<'s> {
    sink: &'s mut dyn RowSink,
    format: &'s types::FormatContext,
    options: &'s CopyOptions,
    /// Of what is sent; plain for the binary format.
    encoding: Encoding,
    types: Vec<Oid>,
    /// The beginning of the data, which travels with the first row as PostgreSQL sends it: clients
    /// count on that.
    head: Vec<u8>,
    line: Vec<u8>,
    field: Vec<u8>,
    rows: u64,
    progress: Reporting,
}

impl Writer<'_> {
    fn dialect(&self) -> Dialect {
        Dialect {
            delimiter: self.options.delimiter,
            quote: self.options.quote,
            escape: self.options.escape,
        }
    }

    fn write(&mut self, values: impl Iterator<Item = Datum>) -> Result<()> {
        self.line.clear();
        self.line.append(&mut self.head);
        if self.options.format == CopyFormat::Binary {
            self.line.extend_from_slice(&(self.types.len() as i16).to_be_bytes());
        }
        for (n, value) in values.enumerate() {
            match self.options.format {
                CopyFormat::Binary => self.binary(n, &value)?,
                CopyFormat::Text | CopyFormat::Csv => self.field(n, &value)?,
            }
        }
        if self.options.format != CopyFormat::Binary {
            self.line.push(b'\n');
        }
        self.rows += 1;
        self.progress.set(Count::RowsDone, self.rows);
        self.progress.add(Count::BytesDone, self.line.len() as u64);
        self.send()
    }

    /// Hands the line over in the encoding that is wanted.
    fn send(&mut self) -> Result<()> {
        if self.encoding.is_plain() {
            return self.sink.copy_data(&self.line);
        }
        let text = encodings::utf8(&self.line)?;
        self.sink.copy_data(&encodings::from_utf8(self.encoding, text)?)
    }

    fn field(&mut self, n: usize, value: &Datum) -> Result<()> {
        if n > 0 {
            self.line.push(self.options.delimiter);
        }
        let null = self.options.null.as_bytes();
        if value.is_null() {
            self.line.extend_from_slice(null);
            return Ok(());
        }
        self.field.clear();
        types::io::output(self.types[n], value, self.format, &mut self.field)?;
        let alone = self.types.len() == 1;
        if self.options.force_quote.contains(&(n as u16)) {
            csv::write_quoted(&self.field, self.dialect(), &mut self.line);
        } else if self.options.format == CopyFormat::Csv {
            csv::write(&self.field, self.dialect(), null, alone, &mut self.line);
        } else {
            text::escape(&self.field, self.options.delimiter, &mut self.line);
        }
        Ok(())
    }

    fn binary(&mut self, n: usize, value: &Datum) -> Result<()> {
        if value.is_null() {
            self.line.extend_from_slice(&(-1i32).to_be_bytes());
            return Ok(());
        }
        self.field.clear();
        types::io::send(self.types[n], value, &mut self.field)?;
        self.line.extend_from_slice(&(self.field.len() as i32).to_be_bytes());
        self.line.extend_from_slice(&self.field);
        Ok(())
    }
}

impl RowSink for Writer<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            let types = self.types.clone();
            let values = batch.columns.iter().zip(types).map(|(c, ty)| c.get(row, ty));
            self.write(values)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.write(row.iter().cloned())
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.copy_data(bytes)
    }
}

/// COPY TO, of a table (its oid; 0: of a query).
pub fn run(
    table: u32,
    query: &Prepared,
    options: &CopyOptions,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let Some(path) = &options.file else { return write(table, query, options, cx, sink) };
    let mut file = file::FileSink::create(path, cx)?;
    let outcome = write(table, query, options, cx, &mut file)?;
    file.flush()?;
    Ok(outcome)
}

fn write(
    table: u32,
    query: &Prepared,
    options: &CopyOptions,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    let mut writer = Writer {
        sink,
        format: cx.format,
        options,
        encoding: match options.format {
            CopyFormat::Binary => Encoding::UTF8,
            _ => options.encoding.unwrap_or(cx.format.client_encoding),
        },
        types: query.columns.iter().map(|c| c.ty).collect(),
        head: Vec::new(),
        line: Vec::new(),
        field: Vec::new(),
        rows: 0,
        progress: Reporting::begin(Kind::Copy, "COPY TO", (cx.database.1, table)),
    };
    if options.format == CopyFormat::Binary {
        writer.head.extend_from_slice(SIGNATURE);
        writer.head.extend_from_slice(&[0; 8]);
    }
    if options.header {
        header(&mut writer, query)?;
    }
    let mut state = ExecState::new(query);
    run_with(query, cx, &mut state, &mut writer)?;
    if options.format == CopyFormat::Binary {
        writer.head.extend_from_slice(&(-1i16).to_be_bytes());
        writer.sink.copy_data(&writer.head)?;
    }
    Ok(Outcome { rows: writer.rows, tag: None })
}

/// The column names, as the first line.
fn header(writer: &mut Writer<'_>, query: &Prepared) -> Result<()> {
    let mut line = std::mem::take(&mut writer.line);
    for (n, column) in query.columns.iter().enumerate() {
        if n > 0 {
            line.push(writer.options.delimiter);
        }
        let name = column.name.as_bytes();
        if writer.options.format == CopyFormat::Csv {
            csv::write(name, writer.dialect(), writer.options.null.as_bytes(), false, &mut line);
        } else {
            text::escape(name, writer.options.delimiter, &mut line);
        }
    }
    line.push(b'\n');
    writer.line = line;
    writer.send()
}
