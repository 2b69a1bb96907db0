//! The command line: reads it, calls the server, says what went wrong in one line.
#![forbid(unsafe_code)]

mod arguments;
mod top;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use arguments::{Command, SINGLE_PROCESS, parse};
use server::directory::refuse_root;
use server::run::explain;
use server::{control, null_server};

/// Counts by session; see [`sched::memory`].
#[global_allocator]
static ALLOCATOR: sched::memory::Counting = sched::memory::Counting;

/// Every failure.
const FAILED: u8 = 1;
/// `status` of a directory that nobody serves, as `pg_ctl` says it.
const NOT_RUNNING: u8 = 3;

fn main() -> ExitCode {
    server::packages::register();
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|a| a == "lab").is_some() {
        return lab::command::run(args);
    }
    if args.next_if(|a| a == "top").is_some() {
        return top::run(args);
    }
    let command = match parse(args) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("threadgres: {message}; see threadgres --help");
            return ExitCode::from(FAILED);
        }
    };
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("threadgres: {}", explain(&error));
            ExitCode::from(FAILED)
        }
    }
}

fn run(command: Command) -> base::Result<ExitCode> {
    match command {
        Command::Print(text) => print!("{text}"),
        Command::ManPages(folder) => write_man_pages(&folder)?,
        Command::Serve {
            dir,
            settings,
            single: true,
            accept_loss_from,
            standby_of,
            allow_root,
        } => {
            refuse_root(allow_root)?;
            let (dir, settings) = server::config::locate(&dir, settings)?;
            // A supervisor has done that before its first start.
            if let Some(url) = standby_of.filter(|_| !server::supervisor::is_supervised()) {
                server::standby::clone::prepare(&dir, &url)?;
            }
            server::supervisor::follow_supervisor()?;
            server::serve(&dir, settings, accept_loss_from)?;
        }
        Command::Serve { dir, settings, single: false, standby_of, allow_root, .. } => {
            refuse_root(allow_root)?;
            let (dir, settings) = server::config::locate(&dir, settings)?;
            if let Some(url) = standby_of {
                server::standby::clone::prepare(&dir, &url)?;
            }
            // They were read as text before.
            let mut arguments: Vec<String> = std::env::args().skip(1).collect();
            arguments.push(SINGLE_PROCESS.to_owned());
            return Ok(ExitCode::from(server::supervise(&dir, settings, &arguments)?));
        }
        Command::Init { dir, options, allow_root } => {
            refuse_root(allow_root)?;
            server::init::init(&dir, &options)?;
            println!("initialised; serve it with: threadgres serve -D {}", dir.display());
        }
        Command::Stop { dir, mode, timeout_s } => {
            control::stop(&dir, mode, Duration::from_secs(timeout_s))?;
            println!("stopped");
        }
        Command::Check { dir } => {
            let findings = control::check(&dir)?;
            for finding in &findings {
                println!("{finding}");
            }
            if !findings.is_empty() {
                return Ok(ExitCode::from(FAILED));
            }
            println!("no damage found");
        }
        Command::Restore { dir, restore } => {
            let end = control::restore(&dir, &restore)?;
            println!("restored up to {end}; serve it with: threadgres serve -D {}", dir.display());
        }
        Command::Upgrade { dir } => {
            control::upgrade(&dir)?;
            println!("the directory has this version's format");
        }
        Command::Promote { dir, timeout_s } => {
            control::promote(&dir, Duration::from_secs(timeout_s))?;
            println!("promoted");
        }
        Command::Rewind { dir, url, follow } => {
            let rewound = server::standby::rewind::rewind(&dir, &url, follow)?;
            println!("{rewound}\nserve it with: threadgres serve -D {}", dir.display());
        }
        Command::Show { dir, settings, name } => {
            let (dir, settings) = server::config::locate(&dir, settings)?;
            println!("{}", server::config::shown(&dir, settings, &name)?);
        }
        Command::Reload { dir } => control::reload(&dir)?,
        Command::Status { dir } => {
            let (line, running) = control::status(&dir)?;
            println!("{line}");
            return Ok(if running { ExitCode::SUCCESS } else { ExitCode::from(NOT_RUNNING) });
        }
        Command::NullServer { port, workers } => null_server::serve(port, workers)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the man page of the program, and one of each command.
fn write_man_pages(folder: &Path) -> base::Result<()> {
    let failed = |error: std::io::Error| {
        base::err!(IO_ERROR, "could not write man pages to \"{}\": {error}", folder.display())
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(arguments::program(), folder).map_err(failed)
}
