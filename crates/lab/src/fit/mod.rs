//! `lab fit`: linear, Amdahl and USL models of measured throughput.
//!
//! ```text
//! results or table ─► series (means, weights) ─► analysis ─► text, JSON, lab report
//!                                                 │  solve     least squares with bounds
//!                                                 │  interval  profiles
//!                                                 └  warning   what the data can't carry
//! ```
//! It draws no random numbers: the same input gives the same output. The models and their sources are
//! in docs/guide/laboratory.md.

pub mod analysis;
pub mod interval;
pub mod series;
pub mod solve;
#[cfg(test)]
mod tests;
pub mod text;
pub mod warning;

use std::path::PathBuf;

use crate::arguments::{Argument, Arguments};
use crate::output::print;
use crate::{Error, Result};
use series::Unit;

/// What `threadgres lab fit --help` prints.
pub const HELP: &str = "\
Fits three laws of growth to throughput over clients or cores: linear, Amdahl's
N/(1+a(N-1)) and the universal scalability law N/(1+a(N-1)+bN(N-1)), each times
the throughput of one. Prints their parameters with 95 % intervals, residuals,
the knee, the peak, what they predict for 64 to 512, and what the data can't carry.

Usage: threadgres lab fit [OPTION]… FILE…

FILE is a results file of the laboratory, or a table of two columns: N and
throughput. The same N may come several times: those are repetitions.

Options:
      --json        print JSON; null stands for infinite ends of intervals
      --cores       N counts processors at work, whatever the file says
      --clients     N counts clients
";

/// Runs it.
///
/// # Errors
/// A wrong command line, a file that can't be read or holds no curve.
pub fn run(mut args: Arguments) -> Result<()> {
    let (mut files, mut json, mut unit) = (Vec::new(), false, None);
    while let Some(option) = args.option()? {
        match option {
            Argument::Long("json") => json = true,
            Argument::Long("cores") => unit = Some(Unit::Cores),
            Argument::Long("clients") => unit = Some(Unit::Clients),
            Argument::Operand(file) => files.push(PathBuf::from(file)),
            other => return Err(other.unknown()),
        }
    }
    if files.is_empty() {
        return Err(Error::usage("which results file?"));
    }
    let mut all = Vec::new();
    for file in &files {
        all.extend(series::read(file, unit)?);
    }
    let analyses: Vec<_> = all.into_iter().map(analysis::analyse).collect();
    let text = if json {
        serde_json::to_string_pretty(&analyses).map_err(|e| e.to_string())? + "\n"
    } else {
        analyses.iter().map(text::text).collect::<Vec<_>>().join("\n")
    };
    print(&text)
}
