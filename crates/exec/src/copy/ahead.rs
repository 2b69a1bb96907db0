//! Lines that are parsed ahead: helpers make rows of them while the statement's own task writes those of the lines before
//! and reads those that come next.
//!
//! ```text
//!   round      1          2               3
//!   own task   read a     read b          write a, read c     write b, read d   …
//!   helpers               parse a         parse b             parse c
//! ```
//!
//! * The own task splits the data into lines and writes rows in their order, one by one as without helpers: triggers,
//!   defaults, constraints and errors come in the same order. What it has time for it parses, too.
//! * A line that can't be parsed ends its piece. When its turn comes the own task parses it again, so that its error
//!   is the one that it would be without helpers.
//! * Rows go back when they are written, so that those who parse free what others have parsed before, not the own task.
//! * A round is a few milliseconds of work. How many helpers there may be is decided anew for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::settings::setting;
use base::{Error, Result};
use sched::SpinLock;
use types::Datum;

use super::from::{LineText, Load, Target};
use super::parse::Parser;
use crate::context::SessionHooks;
use crate::parallel::{self, Helpers};
use crate::run::Run;

/// Bytes and lines of a piece, which one thread parses at a time.
const PIECE: (usize, usize) = (64 << 10, 1024);
/// Bytes and lines of a round.
const ROUND: (usize, usize) = (1 << 20, 16 << 10);

/// How the message begins when the client ends the data by CopyFail.
const CLIENT_FAILED: &str = "COPY from stdin failed";

/// Some lines of the data.
pub(super) struct Piece {
    /// Their text, one after the other.
    pub(super) bytes: Vec<u8>,
    /// Where each of them ends, and its number.
    ends: Vec<(usize, u64)>,
}

impl Piece {
    /// The lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut begin = 0;
        let line = move |(end, number): &(usize, u64)| {
            (&self.bytes[std::mem::replace(&mut begin, *end)..*end], *number)
        };
        self.ends.iter().map(line)
    }
}

/// Rows of a piece's first lines: of all, unless one can't be parsed.
struct Rows {
    /// There may be more than are filled.
    rows: Vec<Vec<Datum>>,
    filled: usize,
}

impl Parser<'_> {
    fn parse_piece(&self, piece: &Piece, mut rows: Vec<Vec<Datum>>) -> Rows {
        let (mut filled, columns) = (0, self.table.columns.len());
        for (line, number) in piece.lines() {
            if rows.len() == filled {
                rows.push(Vec::new());
            }
            let row = &mut rows[filled];
            row.clear();
            row.resize(columns, Datum::Null);
            if self.parse(line, number, row).is_err() {
                break;
            }
            filled += 1;
        }
        Rows { rows, filled }
    }
}

/// How far it has come.
#[derive(Default)]
struct Ahead {
    /// Lines that were read and are not parsed yet.
    read: Vec<Piece>,
    /// Lines that were parsed and are not written yet.
    parsed: Vec<(Piece, Rows)>,
    /// There is nothing more to read.
    ended: bool,
    /// Why: an error behind all that was read.
    broken: Option<Error>,
}

/// Loads rows as long as there are helpers; true: there is more to load.
///
/// # Errors
/// Those of the data, of writing rows, and interrupts.
pub fn load(load: &mut Load, target: &mut Target<'_>, run: &mut Run<'_, '_>) -> Result<bool> {
    let (table, columns, options) = load.layout();
    let format = run.cx.format;
    let parser = Parser { table: &table, columns: &columns, options: &options, format };
    let wanted = run.cx.settings.int(setting::MAX_PARALLEL_WORKERS_PER_GATHER).max(0) as usize;
    let empty: SpinLock<Vec<Vec<Vec<Datum>>>> = SpinLock::default();
    let mut ahead = Ahead::default();
    loop {
        sched::check_interrupts()?;
        let mut helpers = parallel::available_to(wanted.min(ahead.read.len().max(1)), run.cx);
        let goes_on = !ahead.ended && helpers.count() > 0;
        if !goes_on && ahead.read.is_empty() && ahead.parsed.is_empty() {
            break;
        }
        if ahead.read.is_empty() {
            // Nothing to parse yet, and the client may be slow.
            helpers = Helpers::none();
        }
        ahead.round(goes_on, &helpers, (&parser, &empty), load, target, run)?;
    }
    match ahead.broken {
        Some(error) => Err(error),
        None => Ok(!ahead.ended),
    }
}

impl Ahead {
    fn round(
        &mut self,
        goes_on: bool,
        helpers: &Helpers,
        (parser, empty): (&Parser<'_>, &SpinLock<Vec<Vec<Vec<Datum>>>>),
        load: &mut Load,
        target: &mut Target<'_>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let pieces = std::mem::take(&mut self.read);
        let next = AtomicUsize::new(0);
        let parsed = SpinLock::new(Vec::with_capacity(pieces.len()));
        let parse = |leads: bool| -> Result<()> {
            while leads || !sched::helpers::should_yield() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(number) else { break };
                sched::check_interrupts()?;
                let rows = empty.lock().pop().unwrap_or_default();
                let rows = parser.parse_piece(piece, rows);
                parsed.lock().push((number, rows));
            }
            Ok(())
        };
        let help = || {
            let ended = parse(false);
            // The own task may wait for its client.
            helpers.give_one_back();
            ended
        };
        let mut lead = || {
            for (piece, rows) in self.parsed.drain(..) {
                let rows = write(Arc::new(piece), rows, parser, load, target, run)?;
                empty.lock().push(rows);
            }
            if goes_on {
                self.read_on(load, run.cx.hooks)?;
            }
            parse(true)
        };
        match helpers.count().min(pieces.len()) {
            0 => lead()?,
            count => drop(sched::helpers::together(count, &help, lead)?),
        }
        let mut parsed = parsed.into_inner();
        parsed.sort_unstable_by_key(|(number, _)| *number);
        self.parsed = pieces.into_iter().zip(parsed.into_iter().map(|(_, rows)| rows)).collect();
        Ok(())
    }

    /// Reads the lines of a round. An error of reading waits until the lines before it are written.
    fn read_on(&mut self, load: &mut Load, hooks: &mut dyn SessionHooks) -> Result<()> {
        let (mut bytes, mut lines) = (0, 0);
        while !self.ended && bytes < ROUND.0 && lines < ROUND.1 {
            let mut piece = Piece { bytes: Vec::new(), ends: Vec::new() };
            while piece.bytes.len() < PIECE.0 && piece.ends.len() < PIECE.1 {
                match load.next_record(hooks) {
                    Ok(Some((length, consumed))) => {
                        piece.bytes.extend_from_slice(&load.input.rest()[..length]);
                        piece.ends.push((piece.bytes.len(), load.line_read()));
                        load.input.consume(consumed);
                    }
                    Ok(None) => {
                        self.ended = true;
                        break;
                    }
                    Err(error) if ends_at_once(&error) => return Err(error),
                    Err(error) => {
                        (self.ended, self.broken) = (true, Some(error));
                        break;
                    }
                }
            }
            bytes += piece.bytes.len();
            lines += piece.ends.len();
            if !piece.ends.is_empty() {
                self.read.push(piece);
            }
        }
        Ok(())
    }
}

/// Interrupts, a lack of memory, and a client that is gone. A client that says that it fails (CopyFail) is heard in its
/// turn.
fn ends_at_once(error: &Error) -> bool {
    let code = error.code();
    ["57", "08", "53"].contains(&&code.as_str()[..2]) && !error.message().starts_with(CLIENT_FAILED)
}

/// Writes a piece's rows; what comes back is to be filled anew.
fn write(
    piece: Arc<Piece>,
    mut rows: Rows,
    parser: &Parser<'_>,
    load: &mut Load,
    target: &mut Target<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Vec<Datum>>> {
    let mut begin = 0;
    for (n, (line, number)) in piece.lines().enumerate() {
        load.line = number;
        let range = begin..begin + line.len();
        begin = range.end;
        load.text = LineText::Piece(piece.clone(), range);
        match rows.rows.get_mut(n).filter(|_| n < rows.filled) {
            Some(parsed) => std::mem::swap(load.row_to_fill(), parsed),
            None => {
                load.begin_row();
                parser.parse(line, load.line, load.row_to_fill())?;
            }
        }
        load.finish_row(line.len(), run)?;
        target.take(load, run)?;
    }
    Ok(rows.rows)
}
