//! The way from text to [`Prepared`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use base::settings::Settings;
use base::{Error, Oid, Result, err};
use catalog::Snapshot;
use types::FormatContext;

use crate::Identity;
use crate::embedded::Variables;
use crate::parse::{RawStatement, parse};
use crate::plan::{Prepared, Statement};
use crate::statement;

/// What binding and planning depend on.
pub struct PrepareContext<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Arc<Snapshot>,
    /// The session's settings.
    pub settings: &'a Settings,
    /// Schemas to search, ids, implicit pg_catalog first.
    pub search_path: &'a [u32],
    /// For constants.
    pub format: &'a FormatContext,
    /// The session's role name.
    pub user: &'a str,
    /// Its oid: whose rights are checked.
    pub role: u32,
    /// A statement of the server's own, about a relation that the statement around it may use: the role's
    /// rights on relations aren't asked for, those on functions are.
    pub trusted: bool,
    /// The session's database name.
    pub database: &'a str,
    /// Hash of the settings that planning reads and of the search path: [`environment`].
    pub environment: u64,
    /// When the body of a user's function is bound: its parameters.
    pub arguments: Option<&'a Arguments>,
    /// When a statement of a procedural language is bound: its variables.
    pub variables: Option<&'a dyn Variables>,
    /// The parameters' values, when the plan is for these alone ([`crate::custom`]).
    pub values: &'a [types::Datum],
    /// Pages and rows of a table now, for the planner: (pages, rows).
    pub table_size: &'a dyn Fn(&catalog::Table) -> (u32, f64),
}

/// The parameters of a function whose body is bound: `$1`, `$2`, …, and by name.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The function's name.
    pub function: String,
    /// The parameters'; may be empty.
    pub names: Vec<String>,
}

/// Splits a query string into statements (byte ranges) by a parse of the whole, as the simple
/// protocol needs: a syntax error anywhere means that nothing runs. A string that can only hold
/// one statement is not parsed here: preparing it will tell.
///
/// # Errors
/// `42601` with position.
pub fn split_statements(text: &str) -> Result<Vec<Range<usize>>> {
    let trimmed = text.trim_end();
    let body = trimmed.strip_suffix(';').unwrap_or(trimmed);
    if !body.contains(';') && !body.trim().is_empty() {
        return Ok(vec![0..text.len()]);
    }
    Ok(parse(text)?.into_iter().map(|s| s.range).collect())
}

/// Parses, binds and plans one statement. `param_types`: declared types of parameters (0: to be
/// inferred). `literals`: when the text was normalised, the byte ranges of the literals that may
/// become parameters; on return `lifted` says which of them did, in order of parameter number, the
/// others are fixed in the plan. Literals that can't be lifted for whatever reason are fixed.
///
/// # Errors
/// Everything that parse and bind can find.
pub fn prepare(
    text: &str,
    param_types: &[Oid],
    cx: &PrepareContext<'_>,
    literals: Option<&[Literal]>,
) -> Result<(Prepared, Vec<Lifted>)> {
    let began = Instant::now();
    match parse_one(text)? {
        Some(one) => prepare_parsed(&one, began, text, param_types, cx, literals),
        None => Ok((Prepared::empty(cx.catalog.version), Vec::new())),
    }
}

/// The only statement of a text; None where it is empty.
pub(crate) fn parse_one(text: &str) -> Result<Option<RawStatement>> {
    let mut statements = parse(text)?;
    if statements.len() > 1 {
        return Err(err!(
            SYNTAX_ERROR,
            "cannot insert multiple commands into a prepared statement"
        ));
    }
    Ok(statements.pop())
}

/// As [`prepare`], of a statement that is parsed. `began`: when its preparation did.
pub(crate) fn prepare_parsed(
    one: &RawStatement,
    began: Instant,
    text: &str,
    param_types: &[Oid],
    cx: &PrepareContext<'_>,
    literals: Option<&[Literal]>,
) -> Result<(Prepared, Vec<Lifted>)> {
    let lifting = literals
        .filter(|l| !l.is_empty())
        .and_then(|literals| with_parameters(&one.node, text, param_types, cx, literals));
    let (mut prepared, lifted) = match lifting {
        Some(done) => done,
        None => statement::prepare(&one.node, text, param_types, cx, None)?,
    };
    prepared.identity = Identity::new(&text[one.range.clone()], &prepared);
    if let Statement::Query(_) = prepared.statement {
        prepared.trials.add_planned(1, began.elapsed().as_nanos() as u64);
    }
    Ok((prepared, lifted))
}

/// Prepares with literals as parameters. One on whose value the plan relies stays as it is; None when
/// it can't be done.
fn with_parameters(
    node: &pg_query::NodeEnum,
    text: &str,
    param_types: &[Oid],
    cx: &PrepareContext<'_>,
    literals: &[Literal],
) -> Option<(Prepared, Vec<Lifted>)> {
    let mut fixed = Vec::new();
    loop {
        let lift = Lift { literals, fixed: &fixed };
        let done = match statement::prepare(node, text, param_types, cx, Some(&lift)) {
            Ok(done) => done,
            Err(error) => {
                keep_interrupt(&error);
                return None;
            }
        };
        let relied = done.1.iter().filter(|l| l.relied).map(|l| l.literal);
        let before = fixed.len();
        let relied: Vec<usize> = relied.filter(|l| !fixed.contains(l)).collect();
        fixed.extend(relied);
        if fixed.len() == before {
            return Some(done);
        }
    }
}

/// For code that goes on after an error: one that an interrupt raised is raised again at the next check.
pub(crate) fn keep_interrupt(error: &Error) {
    if let Some(interrupt) = interrupt_of(error) {
        sched::current().interrupt(interrupt);
    }
}

/// The interrupt that raised an error.
pub(crate) fn interrupt_of(error: &Error) -> Option<sched::Interrupt> {
    use sched::Interrupt as I;
    let known = [
        I::Terminate,
        I::ClientGone,
        I::IdleSessionTimeout,
        I::IdleInTransactionTimeout,
        I::StatementTimeout,
        I::Cancel,
    ];
    let same = |i: &I| {
        let own = i.error();
        own.code() == error.code() && own.message() == error.message()
    };
    known.into_iter().find(same)
}

/// Literals that may become parameters.
pub(crate) struct Lift<'a> {
    /// All that the scanner found.
    pub literals: &'a [Literal],
    /// Those of them that stay.
    pub fixed: &'a [usize],
}

/// A literal that the scanner found.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Where in the text.
    pub range: std::ops::Range<usize>,
    /// Kind, part of the shape.
    pub kind: LiteralKind,
}

/// What a literal looks like; decides the parameter's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// Fits int4.
    Int4,
    /// Fits int8.
    Int8,
    /// Any other number.
    Numeric,
    /// A plain quoted string.
    String,
}

/// A literal that became a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// Which literal.
    pub literal: usize,
    /// The parameter's type: the literal's text goes through this type's input.
    pub ty: Oid,
    /// The plan is right for this value only.
    pub relied: bool,
}

/// Scans a statement once: hashes its shape (text without literals, blanks and case of keywords
/// folded no further than is safe) and lists its literals. None when the text is no candidate
/// (several statements, comments, dollar quotes, escapes, too long, not SELECT/INSERT/UPDATE/DELETE).
/// About a microsecond.
pub fn normalize(text: &str, literals: &mut Vec<Literal>) -> Option<u64> {
    crate::scan::normalize(text, literals)
}

/// For [`PrepareContext::environment`]: what of a session's database, settings and search path can
/// change the meaning or the plan of a text.
pub fn environment(settings: &Settings, path: &[u32], user: &str, database: u32) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hash = DefaultHasher::new();
    for (i, def) in base::settings::SETTINGS.iter().enumerate() {
        let matters = def.group.starts_with("Query Tuning")
            || ["DateStyle", "IntervalStyle", "TimeZone", "work_mem", "bytea_output"]
                .contains(&def.name)
            || ["extra_float_digits", "standard_conforming_strings", "quote_all_identifiers"]
                .contains(&def.name)
            || ["max_parallel_workers_per_gather", "force_parallel_mode", "row_security"]
                .contains(&def.name);
        if matters {
            let id = base::settings::SettingId(i as u16);
            base::settings::show(id, settings.get(id)).hash(&mut hash);
        }
    }
    (path, user, database).hash(&mut hash);
    hash.finish()
}
