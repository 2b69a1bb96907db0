//! `threadgres lab …`: which command gets which arguments.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::{Error, Result};
use crate::{all, compare, fit, incident, locks, report, sessions, simulate, sweep, tpcc};

/// A command: its name, one line on it, what `--help` prints, what it does.
struct Command {
    name: &'static str,
    about: &'static str,
    help: &'static str,
    run: fn(Arguments) -> Result<()>,
}

/// All of them, in the order in which one uses them.
const COMMANDS: [Command; 10] = [
    Command {
        name: "sweep",
        about: "measure servers over client counts, protocols and workloads",
        help: sweep::HELP,
        run: sweep::run,
    },
    Command {
        name: "fit",
        about: "fit linear, Amdahl and USL models to results",
        help: fit::HELP,
        run: fit::run,
    },
    Command {
        name: "report",
        about: "write results as one HTML page",
        help: report::HELP,
        run: report::run,
    },
    Command {
        name: "locks",
        about: "measure lock primitives over threads",
        help: locks::HELP,
        run: locks::run,
    },
    Command {
        name: "simulate",
        about: "simulate lock algorithms on machines with many cores",
        help: simulate::HELP,
        run: simulate::run,
    },
    Command {
        name: "incident",
        about: "show the starvation of the exclusive locker, and its cure",
        help: incident::HELP,
        run: incident::run,
    },
    Command {
        name: "compare",
        about: "measure the servers that are installed here, side by side",
        help: compare::HELP,
        run: compare::run,
    },
    Command {
        name: "sessions",
        about: "measure what sessions cost, idle and at work",
        help: sessions::HELP,
        run: sessions::run,
    },
    Command {
        name: "tpcc",
        about: "run TPC-C's tables and transactions and check its conditions",
        help: tpcc::HELP,
        run: tpcc::run,
    },
    Command {
        name: "all",
        about: "sweep, fit, locks, simulate and report in one go",
        help: all::HELP,
        run: all::run,
    },
];

fn help() -> String {
    let mut text = "\
The laboratory: measure, model and explain how a server scales.

Usage: threadgres lab COMMAND [OPTION]…

"
    .to_owned();
    for command in &COMMANDS {
        text.push_str(&format!("  {:<10}{}\n", command.name, command.about));
    }
    text.push_str("\nthreadgres lab COMMAND --help says more.\n");
    text
}

/// Runs one command of the laboratory; errors are printed as one line on standard error.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.peekable();
    let name = args.next().map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    if matches!(name.as_str(), "" | "--help" | "-h" | "help") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
        let error = Error::usage(format!("there is no command {name:?}"));
        eprintln!("threadgres lab: {error}; see threadgres lab --help");
        return error.code();
    };
    let words: Vec<OsString> = args.collect();
    if words.iter().take_while(|w| *w != "--").any(|w| w == "--help" || w == "-h") {
        print!("{}", command.help);
        return ExitCode::SUCCESS;
    }
    match (command.run)(Arguments::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threadgres lab {name}: {error}");
            error.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_how_it_is_used() {
        for command in &COMMANDS {
            let usage = format!("Usage: threadgres lab {}", command.name);
            assert!(command.help.contains(&usage), "{}", command.name);
            assert!(help().contains(command.about));
        }
    }
}
