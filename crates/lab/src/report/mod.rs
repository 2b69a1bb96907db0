//! `lab report`: results as one HTML page.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab report --help` prints.
pub const HELP: &str = "\
Writes results as one HTML page.

Usage: threadgres lab report [OPTION]…
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
