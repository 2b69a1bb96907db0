//! COPY FROM: rows are read into a part of a thousand, checked, and inserted together.

use std::ops::Range;
use std::sync::Arc;

use base::faults::{self, Fault};
use base::settings::setting;
use base::{Error, Oid, Result, err};
use catalog::Table;
use sched::observe::progress::{Count, Kind, Reporting};
use sql::plan::Modify;
use sql::utility::{CopyFormat, CopyOptions, Utility};
use sql::{Expr, Prepared};
use types::Datum;
use types::encodings::Recoder;

use super::ahead::Piece;
use super::csv::Dialect;
use super::input::Input;
use super::parse::{self, Parser, shorten};
use super::{ahead, binary, csv, text};
use crate::context::{ExecContext, Outcome, SessionHooks};
use crate::eval;
use crate::language::{TriggerEvent, TriggerTiming};
use crate::modify::parts::Parts;
use crate::modify::{References, Touched, Writer, pipeline};
use crate::rows::Row;
use crate::run::{ExecState, Run};

/// Rows that are inserted together.
const PART_ROWS: usize = 1000;
/// The same for a table with partitions, so that several go into one where they go into many.
const PARTS_ROWS: usize = PART_ROWS * 8;
/// …or so many bytes of data, if that comes first.
const PART_BYTES: usize = 1 << 20;

/// Bytes that are loaded without helpers first.
const ALONE_BYTES: u64 = 256 << 10;

/// Options and columns of a COPY FROM, or of a foreign table whose rows are in a file.
pub struct Load {
    table: Arc<Table>,
    /// Columns in the data, from 1.
    columns: Arc<[u16]>,
    defaults: Vec<Option<Expr>>,
    options: Arc<CopyOptions>,
    /// Columns in the data whose types are domains or hold some.
    domains: Vec<u16>,
    pub(super) input: Input,
    /// The line of the row that is being loaded, and the last one that was read: in CSV a record has several where
    /// fields have line ends.
    pub(super) line: u64,
    read: u64,
    /// Whether there was a record, and whether the first one ended with a carriage return before its newline.
    begun: bool,
    returns: Option<bool>,
    /// The rows of the part, reused from part to part, how many are filled, and their lines.
    rows: Vec<Vec<Datum>>,
    lines: Vec<u64>,
    filled: usize,
    bytes: usize,
    /// Bytes of all lines so far.
    taken: u64,
    /// The text of [`Load::line`].
    pub(super) text: LineText,
}

/// Where the text of a line is, which messages show.
#[derive(Default)]
pub(super) enum LineText {
    /// It has none: the data is binary.
    #[default]
    None,
    /// At the end of what the input has used: its length, and what was used with it.
    Input(usize, usize),
    /// In a piece of lines that were read before.
    Piece(Arc<Piece>, Range<usize>),
}

/// Makes UTF-8 of the data, where that isn't what it is.
pub fn recoder(options: &CopyOptions, cx: &ExecContext<'_>) -> Option<Recoder> {
    let encoding = options.encoding.unwrap_or(cx.format.client_encoding);
    let plain = encoding.is_plain() || options.format == CopyFormat::Binary;
    (!plain).then(|| Recoder::new(encoding))
}

/// COPY FROM STDIN.
pub fn run(
    utility: &Utility,
    prepared: &Arc<Prepared>,
    cx: &mut ExecContext<'_>,
) -> Result<Outcome> {
    let Utility::CopyFrom { modify, columns, defaults, filter, options } = utility else {
        return Err(Error::internal("not a COPY FROM"));
    };
    let mut writer = Writer::open(&modify.table, &modify.indexes, cx)?;
    writer.keys.clone_from(&modify.checks.keys);
    if !modify.table.is_partitioned() {
        writer.references = References::open(&modify.table, Touched::Insert, cx)?;
    }
    writer.check_membership(cx)?;
    let mut parts = modify.table.is_partitioned().then(|| Parts::new(&modify.table));
    let file = match &options.file {
        Some(path) => Some(super::file::open(path, cx)?),
        None => None,
    };
    let progress = Reporting::begin(Kind::Copy, "COPY FROM", (cx.database.1, modify.table.oid));
    let mut load = Load::new(
        modify.table.clone(),
        columns.clone(),
        options.clone(),
        Input::new(progress, file, recoder(options, cx)),
    );
    load.defaults.clone_from(defaults);
    writer.open_triggers(&modify.checks, None, cx);
    // A BEFORE trigger sees the rows before its own.
    let alone = writer.triggers.as_ref().is_some_and(|t| t.has_before_row(TriggerEvent::Insert));
    let part = if alone { 1 } else { PART_ROWS };
    if let (Some(parts), Some(triggers)) = (&mut parts, &writer.triggers) {
        parts.capture(triggers.captures());
    }
    let mut state = ExecState::new(prepared);
    let (params, snapshot) = (cx.params, cx.snapshot);
    let mut run = Run { cx, prepared, params, snapshot, state: &mut state };
    if options.format == CopyFormat::Binary {
        binary::header(&mut load.input, run.cx.hooks)?;
    }
    writer.statement_triggers(TriggerEvent::Insert, TriggerTiming::Before, &mut run)?;
    if modify.table.kind == catalog::TableKind::Foreign {
        let count = load.into_foreign(modify, filter.as_ref(), &mut writer, &mut run)?;
        writer.statement_triggers(TriggerEvent::Insert, TriggerTiming::After, &mut run)?;
        return Ok(Outcome { rows: count, tag: None });
    }
    let filter = filter.as_ref();
    let mut target = Target { modify, filter, writer, parts, part, count: 0 };
    load.load(&mut target, &mut run)?;
    let Target { mut writer, mut parts, count, .. } = target;
    if let Some(parts) = &mut parts {
        parts.flush(&mut run).map_err(|e| load.part_error(e, parts))?;
        parts.finish(&mut run)?;
        if let Some(triggers) = &mut writer.triggers {
            parts.give_captured(triggers, run.cx)?;
        }
    }
    writer.finish(&mut run)?;
    writer.statement_triggers(TriggerEvent::Insert, TriggerTiming::After, &mut run)?;
    Ok(Outcome { rows: count, tag: None })
}

/// Where rows go, and how many there have been.
pub(super) struct Target<'a> {
    modify: &'a Modify,
    /// WHERE.
    filter: Option<&'a Expr>,
    writer: Writer,
    parts: Option<Parts>,
    /// Rows that are inserted together into one table.
    part: usize,
    count: u64,
}

impl Target<'_> {
    /// Takes the row that was just read.
    pub(super) fn take(&mut self, load: &mut Load, run: &mut Run<'_, '_>) -> Result<()> {
        let (row, line) = (load.filled, load.line);
        if let Some(filter) = self.filter {
            let holds = eval::eval(filter, Row::Values(&load.rows[row]), run);
            if !matches!(holds.map_err(|e| load.line_error(e))?, Datum::Bool(true)) {
                return Ok(());
            }
        }
        let modify = self.modify;
        if let Some(parts) = &mut self.parts {
            parts.line = line;
            let added = parts.add(modify, &mut load.rows[row], run);
            if added.map_err(|e| load.part_error(e, parts))? {
                self.count += 1;
                load.input.progress.set(Count::RowsDone, self.count);
            }
            if parts.waiting() >= PARTS_ROWS || load.bytes > PART_BYTES {
                parts.flush(run).map_err(|e| load.part_error(e, parts))?;
                load.bytes = 0;
            }
            return Ok(());
        }
        let wanted =
            pipeline::prepare_insert(&mut self.writer, &mut load.rows[row], &modify.checks, run);
        if !wanted.map_err(|e| load.line_error(e))? {
            return Ok(());
        }
        load.filled += 1;
        load.lines.push(line);
        self.count += 1;
        load.input.progress.set(Count::RowsDone, self.count);
        if load.filled == self.part || load.bytes > PART_BYTES {
            let alone = self.part == 1;
            load.flush(&mut self.writer, alone, run)?;
        }
        Ok(())
    }
}

impl Load {
    /// Before the first row.
    pub fn new(table: Arc<Table>, columns: Vec<u16>, options: CopyOptions, input: Input) -> Load {
        let ty = |n: &u16| Oid(table.columns[usize::from(*n) - 1].ty);
        let domains = columns.iter().copied().filter(|n| types::user::has_domains(ty(n))).collect();
        Load {
            domains,
            table,
            columns: columns.into(),
            defaults: Vec::new(),
            options: Arc::new(options),
            input,
            line: 0,
            read: 0,
            begun: false,
            returns: None,
            taken: 0,
            text: LineText::None,
            rows: Vec::new(),
            lines: Vec::new(),
            filled: 0,
            bytes: 0,
        }
    }

    /// The next row in table order; None at the end.
    ///
    /// # Errors
    /// Those of the data.
    pub fn read(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Vec<Datum>>> {
        if self.line == 0 && self.options.format == CopyFormat::Binary {
            binary::header(&mut self.input, run.cx.hooks)?;
        }
        self.filled = 0;
        Ok(match self.next_row(run)? {
            true => self.rows.pop(),
            false => None,
        })
    }

    /// Gives the rows to a foreign table's wrapper, a part at a time; says how many.
    fn into_foreign(
        &mut self,
        modify: &Modify,
        filter: Option<&Expr>,
        writer: &mut Writer,
        run: &mut Run<'_, '_>,
    ) -> Result<u64> {
        let mut change = crate::modify::foreign::begin(modify, run)?;
        let (mut part, mut count) = (Vec::new(), 0);
        loop {
            sched::check_interrupts()?;
            let more = self.next_row(run)?;
            if more {
                let mut row = std::mem::take(&mut self.rows[self.filled]);
                self.rows.pop();
                if let Some(filter) = filter
                    && !eval::holds(filter, Row::Values(&row), run)?
                {
                    continue;
                }
                let wanted = pipeline::prepare_insert(writer, &mut row, &modify.checks, run);
                if wanted.map_err(|e| self.line_error(e))? {
                    part.push(row);
                    count += 1;
                }
            }
            if part.len() >= PART_ROWS || !more && !part.is_empty() {
                change.insert(std::mem::take(&mut part), run)?;
            }
            if !more {
                return Ok(count);
            }
        }
    }

    /// Inserts the rows of the part. `alone`: it is the row of the line that was read last.
    fn flush(&mut self, writer: &mut Writer, alone: bool, run: &mut Run<'_, '_>) -> Result<()> {
        sched::check_interrupts()?;
        let part = &self.rows[..self.filled];
        if !part.is_empty() {
            writer.insert_many(part, run).map_err(|e| {
                if alone {
                    return self.line_error(e);
                }
                let line = self.lines.get(writer.at).copied().unwrap_or(self.line);
                self.row_error(e, line)
            })?;
        }
        self.filled = 0;
        self.bytes = 0;
        self.lines.clear();
        Ok(())
    }

    fn header_error(&self, error: Error, line: &[u8]) -> Error {
        let line = String::from_utf8_lossy(line);
        error.context(format!("COPY {}, line 1: \"{line}\"", self.table.name))
    }

    fn row_error(&self, error: Error, line: u64) -> Error {
        error.context(format!("COPY {}, line {line}", self.table.name))
    }

    /// An error of the row that is being loaded, or of one that waited in its partition.
    fn part_error(&self, error: Error, parts: &Parts) -> Error {
        match parts.failed_line() {
            Some(line) => self.row_error(error, line),
            None => self.line_error(error),
        }
    }

    /// An error of the row that is being loaded.
    fn line_error(&self, error: Error) -> Error {
        let line = match &self.text {
            LineText::None => None,
            LineText::Input(length, used) => {
                self.input.before(*used).and_then(|bytes| bytes.get(..*length))
            }
            LineText::Piece(piece, range) => piece.bytes.get(range.clone()),
        };
        let Some(line) = line else { return self.row_error(error, self.line) };
        let shown = shorten(&String::from_utf8_lossy(line));
        error.context(format!("COPY {}, line {}: \"{shown}\"", self.table.name, self.line))
    }

    /// Makes room for the next row: all NULL.
    pub(super) fn begin_row(&mut self) {
        let columns = self.table.columns.len();
        let row = self.row_to_fill();
        row.clear();
        row.resize(columns, Datum::Null);
    }

    /// Reads a row into `rows[filled]`; false at the end.
    fn next_row(&mut self, run: &mut Run<'_, '_>) -> Result<bool> {
        self.begin_row();
        let more = match self.options.format {
            CopyFormat::Binary => self.next_binary(run)?,
            CopyFormat::Text | CopyFormat::Csv => self.next_line(run)?,
        };
        if more {
            faults::reach(Fault::CopyRow)?;
            self.fill_defaults(run).map_err(|e| self.line_error(e))?;
        }
        Ok(more)
    }

    fn fill_defaults(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        for (n, default) in self.defaults.iter().enumerate() {
            if let Some(expr) = default
                && !self.columns.contains(&(n as u16 + 1))
            {
                self.rows[self.filled][n] = eval::eval(expr, Row::Empty, run)?;
            }
        }
        Ok(())
    }

    fn next_line(&mut self, run: &mut Run<'_, '_>) -> Result<bool> {
        let Some((length, consumed)) = self.next_record(run.cx.hooks)? else { return Ok(false) };
        self.line = self.read;
        self.bytes += length;
        self.taken += length as u64;
        let line = &self.input.rest()[..length];
        let (table, columns, options) = (&*self.table, &*self.columns, &*self.options);
        let parser = Parser { table, columns, options, format: run.cx.format };
        let result = parser.parse(line, self.line, &mut self.rows[self.filled]);
        self.input.consume(consumed);
        self.text = LineText::Input(length, consumed);
        result?;
        self.check_domains(run)?;
        Ok(true)
    }

    /// Table, columns and options, by which lines become rows.
    pub(super) fn layout(&self) -> (Arc<Table>, Arc<[u16]>, Arc<CopyOptions>) {
        (self.table.clone(), self.columns.clone(), self.options.clone())
    }

    /// The next line of the data at the input's front: its length, and what is to be consumed with it. None at the end.
    pub(super) fn next_record(
        &mut self,
        hooks: &mut dyn SessionHooks,
    ) -> Result<Option<(usize, usize)>> {
        let dialect = parse::dialect(&self.options);
        loop {
            let found = match dialect {
                Some(dialect) => csv::next_record(&mut self.input, dialect, hooks)
                    .map_err(|e| self.row_error(e, self.read + 1))?,
                None => text::next_line(&mut self.input, hooks)?,
            };
            let Some((length, consumed)) = found else {
                return Ok(None);
            };
            self.read += 1;
            // As PostgreSQL counts, which knows how lines end only after the first record.
            let counted = self.returns.map(|returns| if returns { b'\r' } else { b'\n' });
            self.check_end(length, consumed, dialect).map_err(|e| self.row_error(e, self.read))?;
            if let Some(byte) = counted.filter(|_| dialect.is_some()) {
                let record = &self.input.rest()[..length];
                self.read += memchr::memchr_iter(byte, record).count() as u64;
            }
            let first = !std::mem::replace(&mut self.begun, true);
            if &self.input.rest()[..length] == b"\\." {
                self.input.drain(hooks)?;
                return Ok(None);
            }
            if !first || !self.options.header {
                return Ok(found);
            }
            if self.options.header_match {
                self.check_header(length, dialect)?;
            }
            self.input.consume(consumed);
        }
    }

    /// Lines end alike: with a newline, or all with a carriage return before it; others are part of no field unless they
    /// are escaped or quoted.
    fn check_end(&mut self, length: usize, consumed: usize, csv: Option<Dialect>) -> Result<()> {
        let line = &self.input.rest()[..length];
        let ended = consumed - length;
        let returns = (ended > 0).then_some(ended == 2);
        let expected = self.returns.or(returns);
        let has_return = || match csv {
            Some(dialect) => csv::has_return(line, dialect),
            None => text::has_return(line),
        };
        let (name, escape) = match (expected, returns) {
            (Some(true), Some(false)) => ("newline", "\\n"),
            (Some(false), Some(true)) => ("carriage return", "\\r"),
            _ if memchr::memchr(b'\r', line).is_some() && has_return() => {
                ("carriage return", "\\r")
            }
            _ => {
                self.returns = expected;
                return Ok(());
            }
        };
        Err(match csv {
            Some(_) => err!(BAD_COPY_FILE_FORMAT, "unquoted {name} found in data")
                .hint(format!("Use quoted CSV field to represent {name}.")),
            None => err!(BAD_COPY_FILE_FORMAT, "literal {name} found in data")
                .hint(format!("Use \"{escape}\" to represent {name}.")),
        })
    }

    /// The number of the line that [`Load::next_record`] has read last.
    pub(super) fn line_read(&self) -> u64 {
        self.read
    }

    /// Loads all rows: the first ones alone, those of much data with helpers.
    fn load(&mut self, target: &mut Target<'_>, run: &mut Run<'_, '_>) -> Result<()> {
        let most = run.cx.settings.int(setting::MAX_PARALLEL_WORKERS_PER_GATHER);
        let (table, columns, options) = (&*self.table, &*self.columns, &*self.options);
        let parser = Parser { table, columns, options, format: run.cx.format };
        let ahead = most > 0 && options.format != CopyFormat::Binary && parser.is_for_helpers();
        loop {
            let until = if ahead { self.taken + ALONE_BYTES } else { u64::MAX };
            while self.taken < until {
                if !self.next_row(run)? {
                    return self.flush(&mut target.writer, false, run);
                }
                target.take(self, run)?;
            }
            if !ahead::load(self, target, run)? {
                return self.flush(&mut target.writer, false, run);
            }
        }
    }

    /// The row that is being read, with what it held before.
    pub(super) fn row_to_fill(&mut self) -> &mut Vec<Datum> {
        if self.rows.len() == self.filled {
            self.rows.push(Vec::new());
        }
        &mut self.rows[self.filled]
    }

    /// The values of a line of so many bytes are in the row: what is left to do before it goes to its table.
    pub(super) fn finish_row(&mut self, length: usize, run: &mut Run<'_, '_>) -> Result<()> {
        self.bytes += length;
        self.taken += length as u64;
        self.check_domains(run)?;
        faults::reach(Fault::CopyRow)?;
        self.fill_defaults(run).map_err(|e| self.line_error(e))
    }

    /// HEADER MATCH: the line at the input's front names the columns.
    fn check_header(&self, length: usize, csv: Option<Dialect>) -> Result<()> {
        let line = &self.input.rest()[..length];
        let null = self.options.null.as_bytes();
        let table = &self.table;
        let mut names: Vec<Option<String>> = Vec::new();
        let mut read = |_: usize, field: Option<&str>| {
            names.push(field.map(str::to_owned));
            Ok(())
        };
        match csv {
            Some(dialect) => csv::fields(line, dialect, null, |n, f, _| read(n, f))?,
            None => {
                let line = types::encodings::utf8(line)?;
                text::fields(line, self.options.delimiter, null, &mut read)?
            }
        };
        if names.len() != self.columns.len() {
            let error = err!(
                BAD_COPY_FILE_FORMAT,
                "wrong number of fields in header line: got {}, expected {}",
                names.len(),
                self.columns.len()
            );
            return Err(self.header_error(error, line));
        }
        for (n, (name, column)) in names.iter().zip(self.columns.iter()).enumerate() {
            let wanted = &table.columns[usize::from(*column) - 1].name;
            if name.as_ref() == Some(wanted) {
                continue;
            }
            let got = match name {
                None => format!("null value (\"{}\")", self.options.null),
                Some(name) => format!("\"{name}\""),
            };
            let error = err!(
                BAD_COPY_FILE_FORMAT,
                "column name mismatch in header line field {}: got {got}, expected \"{wanted}\"",
                n + 1
            );
            return Err(self.header_error(error, line));
        }
        Ok(())
    }

    fn next_binary(&mut self, run: &mut Run<'_, '_>) -> Result<bool> {
        let Some(count) = binary::begin_row(&mut self.input, run.cx.hooks)? else {
            self.input.drain(run.cx.hooks)?;
            return Ok(false);
        };
        self.line += 1;
        self.read = self.line;
        if usize::try_from(count).ok() != Some(self.columns.len()) {
            let error = err!(
                BAD_COPY_FILE_FORMAT,
                "row field count is {count}, expected {}",
                self.columns.len()
            );
            return Err(self.row_error(error, self.line));
        }
        for column in self.columns.iter() {
            let bytes = binary::field(&mut self.input, run.cx.hooks)?;
            let Some(bytes) = bytes else {
                continue;
            };
            self.bytes += bytes.len();
            let n = usize::from(*column) - 1;
            let def = &self.table.columns[n];
            let value = types::io::receive(Oid(def.ty), def.typmod, &bytes, run.cx.format);
            self.rows[self.filled][n] = value.map_err(|e| {
                let (table, line) = (&self.table.name, self.line);
                e.context(format!("COPY {table}, line {line}, column {}", def.name))
            })?;
        }
        self.check_domains(run)?;
        Ok(true)
    }

    /// The values of the row just read fulfil their domains' constraints.
    fn check_domains(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        for column in &self.domains {
            let n = usize::from(*column) - 1;
            let def = &self.table.columns[n];
            let ty = Oid(def.ty);
            let value = std::mem::take(&mut self.rows[self.filled][n]);
            let shown = match &value {
                Datum::Null => "null input".to_owned(),
                value => {
                    let text = types::io::to_text(ty, value, run.cx.format)?;
                    format!("\"{}\"", shorten(&text))
                }
            };
            self.rows[self.filled][n] = crate::domain::check(ty, value, run).map_err(|e| {
                let (table, line) = (&self.table.name, self.line);
                e.context(format!("COPY {table}, line {line}, column {}: {shown}", def.name))
            })?;
        }
        Ok(())
    }
}
