//! The one error type. It carries what PostgreSQL's ErrorResponse carries (manual, section 55.8);
//! codes come from `errcodes.txt`, never from literals where the error is raised.

use std::panic::Location;
use std::{error, fmt};

/// Five characters that name a kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The code with this text; None: it is none.
    pub fn parse(text: &str) -> Option<SqlState> {
        text.as_bytes().try_into().ok().map(SqlState)
    }

    /// The code's text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Constants for every SQLSTATE.
pub mod sqlstate {
    use super::SqlState;
    include!(concat!(env!("OUT_DIR"), "/sqlstate.rs"));
}

/// How bad it is; decides what happens to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Ends the statement.
    Error,
    /// Ends the connection.
    Fatal,
    /// Ends the server.
    Panic,
}

impl Severity {
    /// The word that goes over the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
        }
    }
}

/// Shorthand of the whole server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error; one pointer wide, since it travels through hot paths that mostly succeed.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Fields>);

/// The parts of an [`Error`] besides its code.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// Kind.
    pub code: SqlState,
    /// Whether the statement, the connection or the server ends.
    pub severity: Severity,
    /// The primary message.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// Advice on a remedy.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1; 0 when not known.
    pub position: u32,
    /// Call stack of what was being done (`CONTEXT`).
    pub context: Option<String>,
    /// A statement inside the client's (`QUERY`) that the error is in, and where: characters from 1.
    pub internal: Option<(String, u32)>,
    /// Schema, table, column, data type and constraint that the error names.
    pub object: ObjectNames,
    /// The place in the server's source that made the error.
    pub source: Source,
}

/// The place in the server's source that made an error, as clients are told it: fields F, L and R of the protocol. Any two
/// are equal, for an error is the same wherever it was made.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    location: &'static Location<'static>,
    routine: Option<&'static str>,
}

impl Source {
    /// The file's name, without directories.
    pub fn file(&self) -> &'static str {
        let path = self.location.file();
        path.rsplit(['/', '\\']).next().unwrap_or(path)
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.location.line()
    }

    /// PostgreSQL's name of the function where clients look at it, else the module's.
    pub fn routine(&self) -> &'static str {
        self.routine.unwrap_or_else(|| self.file().trim_end_matches(".rs"))
    }
}

impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

/// The objects that an error names, for clients that react to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectNames {
    /// Schema.
    pub schema: Option<String>,
    /// Table.
    pub table: Option<String>,
    /// Column.
    pub column: Option<String>,
    /// Data type.
    pub data_type: Option<String>,
    /// Constraint.
    pub constraint: Option<String>,
}

impl Error {
    /// An error that ends the statement.
    #[cold]
    #[track_caller]
    pub fn new(code: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Fields {
            code,
            severity: Severity::Error,
            message: message.into(),
            detail: None,
            hint: None,
            position: 0,
            context: None,
            internal: None,
            object: ObjectNames::default(),
            source: Source { location: Location::caller(), routine: None },
        }))
    }

    /// `0A000`, naming what isn't supported.
    #[cold]
    #[track_caller]
    pub fn unsupported(what: impl fmt::Display) -> Error {
        Error::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// `XX000`: a broken invariant that can still be reported.
    #[cold]
    #[track_caller]
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(sqlstate::INTERNAL_ERROR, message)
    }

    /// `58030` or the code of what the system said, with that and what was being done.
    #[cold]
    #[track_caller]
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Error {
        let code = match error.raw_os_error() {
            Some(28) => sqlstate::DISK_FULL,
            Some(2) => sqlstate::UNDEFINED_FILE,
            Some(17) => sqlstate::DUPLICATE_FILE,
            Some(1 | 13 | 30) => sqlstate::INSUFFICIENT_PRIVILEGE,
            Some(20 | 21 | 39) => sqlstate::WRONG_OBJECT_TYPE,
            Some(23 | 24) => sqlstate::INSUFFICIENT_RESOURCES,
            _ => sqlstate::IO_ERROR,
        };
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Error::new(code, format!("could not {doing}: {text}"))
    }

    /// Adds a DETAIL.
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }

    /// Names the routine as PostgreSQL does, for clients that know an error by it.
    pub fn routine(mut self, name: &'static str) -> Error {
        self.0.source.routine = Some(name);
        self
    }

    /// Adds a HINT.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds a CONTEXT line below those that are there.
    pub fn context(mut self, line: impl Into<String>) -> Error {
        let line = line.into();
        self.0.context = Some(match self.0.context.take() {
            Some(inner) => format!("{inner}\n{line}"),
            None => line,
        });
        self
    }

    /// Sets the position (characters from 1) unless a more precise one is there.
    pub fn at(mut self, position: u32) -> Error {
        if self.0.position == 0 {
            self.0.position = position;
        }
        self
    }

    /// A position in the statement becomes one in a statement inside it, whose text is told.
    pub fn inside(mut self, text: &str) -> Error {
        let position = std::mem::take(&mut self.0.position);
        if position > 0 && self.0.internal.is_none() {
            self.0.internal = Some((text.to_owned(), position));
        }
        self
    }

    /// Makes it another kind of error, with another message, for one that a program raises.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.0
    }

    /// Takes the position away: it belongs to another text than the client's.
    pub fn without_position(mut self) -> Error {
        self.0.position = 0;
        self
    }

    /// Moves a known position on by this many characters: the statement stood in a longer text.
    pub fn shift(mut self, characters: u32) -> Error {
        if self.0.position > 0 {
            self.0.position += characters;
        }
        self
    }

    /// The position in another text, which lacks so many characters before it.
    pub fn shift_back(mut self, before: impl FnOnce(u32) -> u32) -> Error {
        self.0.position -= before(self.0.position).min(self.0.position);
        self
    }

    /// Makes the error end the connection.
    pub fn fatal(mut self) -> Error {
        self.0.severity = Severity::Fatal;
        self
    }

    /// Names the table (and its schema) that the error is about.
    pub fn table(mut self, schema: &str, table: &str) -> Error {
        self.0.object.schema = Some(schema.to_owned());
        self.0.object.table = Some(table.to_owned());
        self
    }

    /// Names the column that the error is about.
    pub fn column(mut self, column: &str) -> Error {
        self.0.object.column = Some(column.to_owned());
        self
    }

    /// Names the constraint that the error is about.
    pub fn constraint(mut self, constraint: &str) -> Error {
        self.0.object.constraint = Some(constraint.to_owned());
        self
    }

    /// Names the data type, and its schema, that the error is about.
    pub fn of_type(self, schema: &str, data_type: &str) -> Error {
        let mut error = self.data_type(data_type);
        error.0.object.schema = Some(schema.to_owned());
        error
    }

    /// Names the data type that the error is about.
    pub fn data_type(mut self, data_type: &str) -> Error {
        self.0.object.data_type = Some(data_type.to_owned());
        self
    }

    /// Everything that the error carries.
    pub fn fields(&self) -> &Fields {
        &self.0
    }

    /// The SQLSTATE.
    pub fn code(&self) -> SqlState {
        self.0.code
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the statement, the connection or the server ends.
    pub fn severity(&self) -> Severity {
        self.0.severity
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl error::Error for Error {}

/// Returns early with an [`Error`]: `bail!(DIVISION_BY_ZERO, "division by zero")`.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($message:tt)+) => {
        return Err($crate::Error::new($crate::sqlstate::$code, format!($($message)+)))
    };
}

/// Makes an [`Error`]: `err!(DIVISION_BY_ZERO, "division by zero")`.
#[macro_export]
macro_rules! err {
    ($code:ident, $($message:tt)+) => {
        $crate::Error::new($crate::sqlstate::$code, format!($($message)+))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer_and_keeps_the_first_position() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
        let e = err!(SYNTAX_ERROR, "no").at(7).at(1).detail("d");
        assert_eq!((e.fields().position, e.code().as_str()), (7, "42601"));
        assert_eq!((e.fields().source.file(), e.fields().source.routine()), ("error.rs", "error"));
        assert_eq!(e.routine("scanner_yyerror").fields().source.routine(), "scanner_yyerror");
    }
}
