//! `lab incident`: the starvation of the exclusive locker as a story.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab incident --help` prints.
pub const HELP: &str = "\
Shows the starvation of the exclusive locker, and its cure.

Usage: threadgres lab incident [OPTION]…
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
