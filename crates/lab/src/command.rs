//! `threadgres lab …`: which command gets which arguments.

use std::ffi::OsString;
use std::process::ExitCode;

/// What `threadgres lab --help` prints.
pub const HELP: &str = "\
The laboratory: measure, model and explain how a server scales.

Usage: threadgres lab COMMAND [OPTION]…
";

/// Runs one command of the laboratory; errors are printed as one line on standard error.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(name) = args.map(|a| a.to_string_lossy().into_owned()).next() else {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    };
    match name.as_str() {
        "--help" | "-h" | "help" => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("threadgres lab: there is no command {name:?}; see threadgres lab --help");
            ExitCode::FAILURE
        }
    }
}
