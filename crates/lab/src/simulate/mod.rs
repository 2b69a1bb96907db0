//! `lab simulate`: lock algorithms on simulated machines with many cores.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab simulate --help` prints.
pub const HELP: &str = "\
Simulates lock algorithms on machines with many cores.

Usage: threadgres lab simulate [OPTION]…
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
