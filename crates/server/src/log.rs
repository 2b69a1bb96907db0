//! The server's log: lines on standard error, in PostgreSQL's form.
//!
//! An entry's first line begins with a time, all others with a tab, whatever is in the texts: [`put`] is the only
//! place that writes. Names and values of clients that have not logged in yet stay in one line
//! ([`refusal`], [`one_line`]), so that they can't look like a detail either. Secrets are hidden
//! ([`sql::secrets`]).

use std::fmt;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use base::Error;
use base::settings::{live_enum, setting};
use sql::secrets::{in_message, without_secrets};

/// The level of a line; the order is that of the `log_min_messages` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something that may be wrong.
    Warning = 7,
    /// A statement failed.
    Error = 8,
    /// For the administrator.
    Log = 9,
    /// A connection failed.
    Fatal = 10,
    /// The server fails.
    Panic = 11,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
            Level::Log => "LOG",
            Level::Fatal => "FATAL",
            Level::Panic => "PANIC",
        }
    }
}

/// `log_error_verbosity = verbose` in the list of its words.
const VERBOSE: usize = 2;

/// Whether lines of this level are wanted.
pub fn wanted(level: Level) -> bool {
    level as usize >= live_enum(setting::LOG_MIN_MESSAGES)
}

/// Writes a text; `pid` is the session's number, 0 for the server itself.
pub fn write(level: Level, pid: i32, text: impl fmt::Display) {
    if wanted(level) {
        put(level, pid, &in_message(&text.to_string()));
    }
}

fn put(level: Level, pid: i32, text: &str) {
    let (now, word, text) = (Timestamp(SystemTime::now()), level.word(), indented(text));
    let line = format!("{now} [{pid}] {word}:  {text}\n");
    // The log is best effort: there is nowhere to say that it can't be written.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Writes a line of level LOG about the server itself.
pub fn info(text: impl fmt::Display) {
    write(Level::Log, 0, text);
}

/// Lines after the first begin with a tab, and characters by which a terminal or a reader of lines is misled
/// are shown as their codes.
fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' if rest.peek() == Some(&'\t') => out.push(c),
            '\n' => out.push_str("\n\t"),
            '\t' => out.push(c),
            c => push_visible(&mut out, c),
        }
    }
    out
}

/// A text of somebody unknown, in one line.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut out, c));
    out
}

/// Separators of lines and paragraphs count as control characters.
fn push_visible(out: &mut String, c: char) {
    match c {
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
            out.push_str(&format!("\\x{:02x}", u32::from(c)));
        }
        c => out.push(c),
    }
}

/// Writes a line of level LOG about a session, with a detail: a long wait for a lock, a statement.
pub fn session(pid: i32, text: &str, detail: Option<&str>) {
    match detail {
        Some(detail) => write(Level::Log, pid, format_args!("{text}\n\tDETAIL:  {detail}")),
        None => write(Level::Log, pid, text),
    }
}

/// Writes an error with its detail, hint and the statement that it ended.
pub fn error(pid: i32, error: &Error, statement: Option<&str>) {
    let level = match error.severity() {
        base::error::Severity::Error => Level::Error,
        base::error::Severity::Fatal => Level::Fatal,
        base::error::Severity::Panic => Level::Panic,
    };
    if !wanted(level) {
        return;
    }
    let fields = error.fields();
    let mut text = match live_enum(setting::LOG_ERROR_VERBOSITY) {
        VERBOSE => format!("{}: {}", fields.code.as_str(), error.message()),
        _ => error.message().to_owned(),
    };
    for (label, more) in
        [("DETAIL", &fields.detail), ("HINT", &fields.hint), ("CONTEXT", &fields.context)]
    {
        if let Some(more) = more {
            text += &format!("\n\t{label}:  {}", more);
        }
    }
    if live_enum(setting::LOG_ERROR_VERBOSITY) == VERBOSE {
        let source = fields.source;
        text +=
            &format!("\n\tLOCATION:  {}, {}:{}", source.routine(), source.file(), source.line());
    }
    let mut text = in_message(&text).into_owned();
    if let Some(statement) = statement.filter(|s| !s.is_empty()) {
        text += &format!("\n\tSTATEMENT:  {}", without_secrets(statement));
    }
    put(level, pid, &text);
}

/// Writes an error of a client that has not logged in: each field is one line, apart from a detail of several, in
/// which what comes from the client is [`one_line`].
pub fn refusal(pid: i32, error: &Error, detail: Option<&str>) {
    let fields = error.fields();
    let mut plain = Error::new(fields.code, one_line(error.message()));
    if error.severity() != base::error::Severity::Error {
        plain = plain.fatal();
    }
    if let Some(detail) = detail.map(str::to_owned).or(fields.detail.as_deref().map(one_line)) {
        plain = plain.detail(detail);
    }
    self::error(pid, &plain, None);
}

/// `2026-11-21 20:44:19.123 UTC`.
struct Timestamp(SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since.as_secs();
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let millis = since.subsec_millis();
        write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03} UTC")
    }
}

/// A line of level LOG from a signal handler: neither memory nor a lock is taken, and what is longer than the
/// buffer is cut.
pub fn from_signal_handler(text: fmt::Arguments<'_>) {
    let mut line = [0; 256];
    let mut rest = &mut line[..];
    let now = Timestamp(SystemTime::now());
    // Lines that don't fit are not written.
    let _ = writeln!(rest, "{now} [0] {}:  {text}", Level::Log.word());
    let left = rest.len();
    let written = line.len() - left;
    // The log is best effort, here, too.
    let _ = nix::unistd::write(std::io::stderr(), &line[..written]);
}

/// Date of a day since 1970-01-01, by counting from 1 March in 400-year cycles.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn texts_cannot_look_like_entries() {
        assert_eq!(
            indented("a\n2026 LOG\n\tb\r\nc\x1b[2J\rd"),
            "a\n\t2026 LOG\n\tb\n\tc\\x1b[2J\\x0dd"
        );
        assert_eq!(one_line("é\n\tx\u{2028}\u{85}"), "é\\x0a\\x09x\\x2028\\x85");
    }

    #[test]
    fn timestamps_know_leap_years() {
        let at = |s| Timestamp(UNIX_EPOCH + Duration::from_millis(s)).to_string();
        assert_eq!(at(0), "1970-01-01 00:00:00.000 UTC");
        assert_eq!(at(951_782_400_123), "2000-02-29 00:00:00.123 UTC");
        assert_eq!(at(1_795_293_859_000), "2026-11-21 20:44:19.000 UTC");
        assert_eq!(at(4_107_542_400_000), "2100-03-01 00:00:00.000 UTC");
    }
}
