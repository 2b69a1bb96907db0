//! `lab fit`: linear, Amdahl and USL models of measured throughput.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab fit --help` prints.
pub const HELP: &str = "\
Fits linear, Amdahl and USL models to results.

Usage: threadgres lab fit [OPTION]…
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
