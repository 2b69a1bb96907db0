//! One kind of error for all commands: a line for the user and the exit code that goes with it.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// `Result` with the laboratory's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What to say, and how to leave.
#[derive(Debug)]
pub struct Error {
    message: String,
    exit: Exit,
}

/// How a command ends that did not do everything it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing useful came out: exit code 1.
    Failed = 1,
    /// The command line was wrong, nothing was begun: exit code 2.
    Usage = 2,
    /// Some of it is measured and kept, some failed: exit code 3.
    Partly = 3,
    /// Ctrl-C; what was measured until then is kept: exit code 130, as shells have it.
    Interrupted = 130,
}

impl Error {
    /// A failure that left nothing.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), exit: Exit::Failed }
    }

    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Error {
        Error { message: message.into(), exit: Exit::Usage }
    }

    /// A failure of a file or folder, named.
    pub fn file(path: &Path, error: impl fmt::Display) -> Error {
        Error::new(format!("{}: {error}", path.display()))
    }

    /// The same message with another way to leave.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Error {
        self.exit = exit;
        self
    }

    /// Whether this is the way to leave.
    pub fn is(&self, exit: Exit) -> bool {
        self.exit == exit
    }

    /// The process's exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(message)
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::new(message)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(error.to_string())
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Error {
        Error::usage(error.to_string())
    }
}
