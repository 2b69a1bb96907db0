//! `lab sweep`: measures servers over client counts, protocols and workloads.

use crate::arguments::Arguments;
use crate::{Error, Result};

/// What `threadgres lab sweep --help` prints.
pub const HELP: &str = "\
Measures servers over client counts, protocols and workloads.

Usage: threadgres lab sweep [OPTION]…
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
