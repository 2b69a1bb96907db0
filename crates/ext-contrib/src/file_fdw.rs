//! file_fdw: foreign tables whose rows are in a file of the server, or come from a program, read as COPY reads them.
//!
//! The right to name a file or a program is asked for when the option is set ([`validate`]), not when the table is read.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use base::{Result, WaitEvent, err};
use catalog::Options;
use catalog::object::ids;
use exec::context::ExecContext;
use exec::copy::file::open_unasked;
use exec::copy::from::{Load, recoder};
use exec::copy::input::Input;
use exec::foreign::{About, ForeignRows, Wrapper, option};
use exec::native::{Native, Symbols};
use exec::run::Run;
use exec::{rights, spi};
use sched::observe::progress::{Kind, Reporting};
use sql::plan::{ForeignScan, ScanColumn};
use types::Datum;
use types::extension::Library;
use types::foreign::valid_options;
use types::func::validated;

use crate::common::Bodies;

/// The extension's code.
pub static LIBRARY: Library = Library { name: "file_fdw", bodies: no_bodies, ..Library::EMPTY };

/// The functions that need the session.
pub const SYMBOLS: Symbols = &[
    ("file_fdw_handler", Native::Scalar(handler)),
    ("file_fdw_validator", Native::Scalar(|args, cx| validate(args, cx))),
];

/// `pg_foreign_table` and `pg_attribute`.
const TABLE: u32 = 3118;
const COLUMN: u32 = 1249;

/// The options, and the catalog of what has them.
const OPTIONS: &[(&str, u32)] = &[
    ("filename", TABLE),
    ("program", TABLE),
    ("format", TABLE),
    ("header", TABLE),
    ("delimiter", TABLE),
    ("quote", TABLE),
    ("escape", TABLE),
    ("null", TABLE),
    ("encoding", TABLE),
    ("force_not_null", COLUMN),
    ("force_null", COLUMN),
];

/// Rows that are read at a time.
const PART_ROWS: usize = 500;

fn no_bodies() -> Bodies {
    Vec::new()
}

fn handler(_args: &[Datum], _cx: &mut ExecContext<'_>) -> Result<Datum> {
    Err(err!(FEATURE_NOT_SUPPORTED, "cannot display a value of type fdw_handler"))
}

fn permit(role: u32, name: &str, what: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let known = rights::of(cx, &view);
    if known.is_superuser(cx.role) || known.has_rights_of(cx.role, role) {
        return Ok(());
    }
    Err(err!(
        INSUFFICIENT_PRIVILEGE,
        "only superuser or a role with privileges of the {name} role may specify the {what} option of a file_fdw foreign table"
    ))
}

/// `file_fdw_validator`.
fn validate(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (list, of) = validated(args);
    let mut source = false;
    let mut forced: Vec<&str> = Vec::new();
    let mut others = Options::new();
    for (name, value) in &list {
        if !OPTIONS.iter().any(|(known, place)| known == name && *place == of) {
            let valid: Vec<&str> =
                OPTIONS.iter().filter(|(_, place)| *place == of).map(|(name, _)| *name).collect();
            let hint = valid_options(&valid);
            return Err(err!(FDW_INVALID_OPTION_NAME, "invalid option \"{name}\"").hint(hint));
        }
        match name.as_str() {
            "filename" => {
                permit(ids::READ_SERVER_FILES, "pg_read_server_files", name, cx)?;
                if std::mem::replace(&mut source, true) {
                    base::bail!(SYNTAX_ERROR, "conflicting or redundant options");
                }
            }
            "program" => {
                permit(EXECUTE_SERVER_PROGRAM, "pg_execute_server_program", name, cx)?;
                if std::mem::replace(&mut source, true) {
                    base::bail!(SYNTAX_ERROR, "conflicting or redundant options");
                }
            }
            "force_not_null" | "force_null" => {
                if forced.contains(&name.as_str()) {
                    return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                        .hint(format!("Option \"{name}\" supplied more than once for a column.")));
                }
                if base::settings::parse_bool(value).is_none() {
                    base::bail!(SYNTAX_ERROR, "{name} requires a Boolean value");
                }
                forced.push(name);
            }
            _ => others.push((name.clone(), value.clone())),
        }
    }
    spi::with_context(cx, |context| sql::copy_options_of(&others, context))?;
    if of == TABLE && !source {
        base::bail!(
            FDW_DYNAMIC_PARAMETER_VALUE_NEEDED,
            "either filename or program is required for file_fdw foreign tables"
        );
    }
    Ok(Datum::Null)
}

/// `pg_execute_server_program`.
const EXECUTE_SERVER_PROGRAM: u32 = 4571;

/// Server, then table: later options count.
fn options_of(scan: &ForeignScan) -> Options {
    scan.scan.table.foreign.as_ref().map_or_else(Options::new, |f| f.options.clone())
}

/// The wrapper's code.
pub struct FileWrapper;

impl Wrapper for FileWrapper {
    fn scan(&self, scan: &ForeignScan, run: &mut Run<'_, '_>) -> Result<Box<dyn ForeignRows>> {
        let table = scan.scan.table.clone();
        let options = options_of(scan);
        let is_source = |name: &str| matches!(name, "filename" | "program");
        let copy: Options = options.iter().filter(|(name, _)| !is_source(name)).cloned().collect();
        let mut copy = spi::with_context(run.cx, |context| sql::copy_options_of(&copy, context))?;
        let columns: Vec<u16> =
            table.live_columns().filter(|(_, c)| !c.generated).map(|(n, _)| n).collect();
        for (at, number) in columns.iter().enumerate() {
            let own = &table.columns[usize::from(*number) - 1].foreign_options;
            let is_set =
                |name| option(own, name).and_then(base::settings::parse_bool).unwrap_or(false);
            if is_set("force_not_null") {
                copy.force_not_null.push(at as u16);
            }
            if is_set("force_null") {
                copy.force_null.push(at as u16);
            }
        }
        let (file, program) = match (option(&options, "filename"), option(&options, "program")) {
            (Some(name), _) => (open_unasked(name)?, None),
            (None, Some(text)) => {
                let (file, child) = start(text)?;
                (file, Some((text.to_owned(), child)))
            }
            (None, None) => base::bail!(
                FDW_DYNAMIC_PARAMETER_VALUE_NEEDED,
                "either filename or program is required for file_fdw foreign tables"
            ),
        };
        let place = (run.cx.database.1, table.oid);
        let progress = Reporting::unlisted(Kind::Copy, "COPY FROM", place);
        let input = Input::new(progress, Some(file), recoder(&copy, run.cx));
        let load = Load::new(table.clone(), columns, copy, input);
        let wanted = scan.scan.columns.clone();
        Ok(Box::new(FileRows { load, wanted, table: table.oid, program, ended: false }))
    }

    fn explain(&self, scan: &ForeignScan, _about: &About<'_>) -> Vec<(&'static str, String)> {
        let options = options_of(scan);
        let named = |name| option(&options, name).map(str::to_owned);
        match (named("filename"), named("program")) {
            (Some(file), _) => vec![("Foreign File", file)],
            (None, Some(program)) => vec![("Foreign Program", program)],
            (None, None) => Vec::new(),
        }
    }
}

/// Starts a program whose output is read.
fn start(text: &str) -> Result<(File, Child)> {
    let failed = |e: std::io::Error| err!(IO_ERROR, "could not execute command \"{text}\": {e}");
    let spawned = sched::blocking(WaitEvent::IOCopyFileRead, || {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(text).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    });
    let mut child = spawned.map_err(failed)?;
    match child.stdout.take() {
        Some(out) => Ok((File::from(OwnedFd::from(out)), child)),
        None => Err(base::Error::internal("a program without its output")),
    }
}

/// A file on its way.
struct FileRows {
    load: Load,
    wanted: Vec<ScanColumn>,
    table: u32,
    /// A program, and what it was called.
    program: Option<(String, Child)>,
    ended: bool,
}

impl FileRows {
    /// The values of the wanted columns.
    fn project(&self, row: &mut [Datum]) -> Result<Vec<Datum>> {
        let one = |column: &ScanColumn| match column {
            ScanColumn::Attr(n) => Ok(row[usize::from(*n) - 1].clone()),
            ScanColumn::TableOid => Ok(Datum::Oid(self.table)),
            // No place at all.
            ScanColumn::Tid | ScanColumn::Root => {
                Ok(Datum::Tid(base::TupleId { block: u32::MAX, offset: 0 }))
            }
            _ => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot retrieve a system column in this context"))
            }
        };
        self.wanted.iter().map(one).collect()
    }

    /// The program has ended well.
    fn finish(&mut self) -> Result<()> {
        let Some((text, mut child)) = self.program.take() else { return Ok(()) };
        let status = sched::blocking(WaitEvent::IOCopyFileRead, || child.wait());
        let status = status.map_err(|e| base::Error::io("wait for a program", &e))?;
        if status.success() {
            return Ok(());
        }
        let detail = match status.code() {
            Some(127) => "command not found".to_owned(),
            Some(code) => format!("child process exited with exit code {code}"),
            None => "child process was terminated by a signal".to_owned(),
        };
        Err(err!(EXTERNAL_ROUTINE_EXCEPTION, "program \"{text}\" failed").detail(detail))
    }
}

impl ForeignRows for FileRows {
    fn next(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Vec<Vec<Datum>>>> {
        if self.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        while out.len() < PART_ROWS {
            sched::check_interrupts()?;
            let Some(mut row) = self.load.read(run)? else {
                self.ended = true;
                self.finish()?;
                break;
            };
            out.push(self.project(&mut row)?);
        }
        Ok(Some(out))
    }
}

impl Drop for FileRows {
    fn drop(&mut self) {
        if let Some((_, mut child)) = self.program.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
