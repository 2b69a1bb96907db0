//! The parts of reading arguments that all programs share.

use std::ffi::OsString;
use std::path::PathBuf;

/// A failure: the text behind the program's name, and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    pub code: u8,
}

impl Failure {
    /// With another exit code than 1.
    pub fn with_code(text: impl Into<String>, code: u8) -> Failure {
        Failure { text: text.into(), code }
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Failure {
        Failure::with_code(text, 1)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::with_code(text, 1)
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Failure {
        let text = match error {
            lexopt::Error::UnexpectedOption(option) => format!("unrecognized option '{option}'"),
            other => other.to_string(),
        };
        Failure::from(text)
    }
}

impl From<base::Error> for Failure {
    fn from(error: base::Error) -> Failure {
        let fields = error.fields();
        let mut text = format!("error: {}", fields.message);
        for (word, more) in [("detail", &fields.detail), ("hint", &fields.hint)] {
            if let Some(more) = more {
                text += &format!("\n{word}: {more}");
            }
        }
        Failure::from(text)
    }
}

/// A parser of the arguments behind the program's name.
pub fn parser(args: Vec<OsString>) -> lexopt::Parser {
    lexopt::Parser::from_args(args)
}

/// The value of an option as text.
pub fn text(parser: &mut lexopt::Parser) -> Result<String, Failure> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

/// The data directory, or what `PGDATA` says.
pub fn data_directory(given: Option<PathBuf>) -> Option<PathBuf> {
    given.or_else(|| std::env::var_os("PGDATA").filter(|v| !v.is_empty()).map(PathBuf::from))
}

/// The data directory of a program that can't do without.
pub fn need_data_directory(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    data_directory(given).ok_or_else(|| {
        Failure::from(
            "error: no data directory specified\nhint: Name it with -D, or set the environment variable PGDATA.",
        )
    })
}
