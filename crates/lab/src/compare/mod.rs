//! `lab compare`: the servers that are installed here, side by side.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab compare --help` prints.
pub const HELP: &str = "\
Measures the servers that are installed here, side by side.

Usage: threadgres lab compare [OPTION]…
";

/// Runs it.
///
/// # Errors
/// A wrong command line.
pub fn run(mut args: Arguments) -> Result<()> {
    if let Some(option) = args.option()? {
        return Err(option.unknown());
    }
    Err(Error::new("not built yet"))
}
