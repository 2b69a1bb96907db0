//! A line of COPY's text and CSV formats becomes the values of a row: nothing of the session is needed for that but how
//! values are written, so any thread can do it.

use base::{Error, Oid, Result, err};
use catalog::Table;
use sql::utility::{CopyFormat, CopyOptions};
use types::{Datum, FormatContext, encodings};

use super::csv::{self, Dialect};
use super::text;
use crate::parallel;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub struct Parser<'a> {
    /// The table.
    pub table: &'a Table,
    /// Columns in the data, from 1.
    pub columns: &'a [u16],
    /// The statement's options.
    pub options: &'a CopyOptions,
    /// How values are written.
    pub format: &'a FormatContext,
}

impl Parser<'_> {
    /// Whether helpers can read values of all columns.
    pub fn is_for_helpers(&self) -> bool {
        let ty = |n: &u16| Oid(self.table.columns[usize::from(*n) - 1].ty);
        self.columns.iter().all(|n| parallel::reads_values_of(ty(n)))
    }

    /// Reads the fields of a line, which has this number, into a row that is all NULL.
    ///
    /// # Errors
    /// Those of the data.
    pub fn parse(&self, line: &[u8], number: u64, row: &mut [Datum]) -> Result<()> {
        let null = self.options.null.as_bytes();
        let (table, columns) = (self.table, self.columns);
        let text = encodings::utf8(line)
            .map_err(|e| e.context(format!("COPY {}, line {number}", table.name)))?;
        let whole = |e: Error| {
            let shown = shorten(text);
            e.context(format!("COPY {}, line {number}: \"{shown}\"", table.name))
        };
        // A line with too many fields is wrong before any value of it is.
        let mut failed = None;
        let mut read = |n: usize, field: Option<&str>| -> Result<()> {
            let Some(column) = columns.get(n) else {
                return Err(whole(err!(
                    BAD_COPY_FILE_FORMAT,
                    "extra data after last expected column"
                )));
            };
            let column = usize::from(*column) - 1;
            let def = &table.columns[column];
            let Some(field) = field.filter(|_| failed.is_none()) else {
                return Ok(());
            };
            match types::io::input(Oid(def.ty), def.typmod, field, self.format) {
                Ok(value) => row[column] = value,
                Err(error) => {
                    failed = Some(error.context(format!(
                        "COPY {}, line {number}, column {}: \"{}\"",
                        table.name,
                        def.name,
                        shorten(field)
                    )));
                }
            }
            Ok(())
        };
        // An empty line is no field at all when there are no columns.
        if columns.is_empty() && line.is_empty() {
            return Ok(());
        }
        let count = match dialect(self.options) {
            Some(dialect) => csv::fields(line, dialect, null, |n, field, quoted| {
                let (at, word) = (n as u16, &self.options.null);
                let field = match field {
                    None if self.options.force_not_null.contains(&at) => Some(word.as_str()),
                    Some(f) if quoted && f == word && self.options.force_null.contains(&at) => None,
                    other => other,
                };
                read(n, field)
            }),
            None => text::fields(text, self.options.delimiter, null, &mut read),
        };
        let count = count.map_err(|e| if e.fields().context.is_none() { whole(e) } else { e })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if count < columns.len() {
            let missing = &table.columns[usize::from(columns[count]) - 1].name;
            return Err(whole(err!(BAD_COPY_FILE_FORMAT, "missing data for column \"{missing}\"")));
        }
        Ok(())
    }
}

/// The characters of CSV; None in another format.
pub fn dialect(options: &CopyOptions) -> Option<Dialect> {
    (options.format == CopyFormat::Csv).then_some(Dialect {
        delimiter: options.delimiter,
        quote: options.quote,
        escape: options.escape,
    })
}

/// A value as a message shows it: at most 100 characters.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
