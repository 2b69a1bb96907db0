//! `lab locks`: microbenchmarks of lock primitives over threads.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab locks --help` prints.
pub const HELP: &str = "\
Measures lock primitives over threads.

Usage: threadgres lab locks [OPTION]…
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
