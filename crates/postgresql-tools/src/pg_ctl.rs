//! `pg_ctl`: starts, stops and asks about the server of a directory.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use lexopt::prelude::*;
use nix::sys::signal::Signal;

use crate::options::{Failure, data_directory, parser, text};
use crate::program::{self, shell_word};
use crate::running::{self, Running};

pub const HELP: &str = "
pg_ctl is a utility to initialize, start, stop, or control a server.

Usage:
  pg_ctl init[db]   [-D DATADIR] [-s] [-o OPTIONS]
  pg_ctl start      [-D DATADIR] [-l FILENAME] [-W] [-t SECS] [-s] [-o OPTIONS] [-p PATH] [-c]
  pg_ctl stop       [-D DATADIR] [-m SHUTDOWN-MODE] [-W] [-t SECS] [-s]
  pg_ctl restart    [-D DATADIR] [-m SHUTDOWN-MODE] [-W] [-t SECS] [-s] [-o OPTIONS] [-c]
  pg_ctl reload     [-D DATADIR] [-s]
  pg_ctl status     [-D DATADIR]
  pg_ctl promote    [-D DATADIR] [-W] [-t SECS] [-s]
  pg_ctl logrotate  [-D DATADIR] [-s]
  pg_ctl kill       SIGNALNAME PID

Shutdown modes are smart, fast (the default), immediate.";

/// Seconds that are waited unless told otherwise.
const TIMEOUT_S: u64 = 60;
/// The file that asks a standby to become a primary.
const PROMOTE: &str = "promote";
/// `status` of a directory without a server.
const NOT_RUNNING: u8 = 3;

struct Control {
    dir: PathBuf,
    log: Option<PathBuf>,
    mode: Signal,
    waits: bool,
    patience: Duration,
    silent: bool,
    options: Vec<String>,
    program: Option<PathBuf>,
}

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut words = Vec::new();
    let mut dir = None;
    let (mut log, mut program, mut options) = (None, None, Vec::new());
    let (mut mode, mut waits, mut silent) = (Signal::SIGINT, true, false);
    let mut seconds = std::env::var("PGCTLTIMEOUT").ok().and_then(|s| s.parse().ok());
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') | Long("pgdata") => dir = Some(PathBuf::from(parser.value()?)),
            Short('l') | Long("log") => log = Some(PathBuf::from(parser.value()?)),
            Short('m') | Long("mode") => mode = mode_of(&text(&mut parser)?)?,
            Short('o') | Long("options") => options.push(text(&mut parser)?),
            Short('p') => program = Some(PathBuf::from(parser.value()?)),
            Short('t') | Long("timeout") => seconds = text(&mut parser)?.parse().ok(),
            Short('w') | Long("wait") => waits = true,
            Short('W') | Long("no-wait") => waits = false,
            Short('s') | Long("silent") => silent = true,
            Short('c') | Long("core-files") => {}
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(command) = words.first().cloned() else {
        return Err(Failure::from(
            "no operation specified\nTry \"pg_ctl --help\" for more information.",
        ));
    };
    if command == "kill" {
        return send(words.get(1), words.get(2));
    }
    let Some(dir) = data_directory(dir) else {
        return Err(Failure::from(
            "no database directory specified and environment variable PGDATA unset\n\
             Try \"pg_ctl --help\" for more information.",
        ));
    };
    let patience = Duration::from_secs(seconds.unwrap_or(TIMEOUT_S));
    let control = Control { dir, log, mode, waits, patience, silent, options, program };
    if !matches!(command.as_str(), "init" | "initdb") {
        running::check(&control.dir)?;
    }
    match command.as_str() {
        "init" | "initdb" => control.init(),
        "start" => control.start(),
        "stop" => control.stop(),
        "restart" => control.restart(),
        "reload" => control.reload(),
        "status" => control.status(),
        "promote" => control.promote(),
        "logrotate" => Err(Failure::from(
            "logrotate is refused: SELECT pg_rotate_logfile() on the running server does it",
        )),
        other => Err(Failure::from(format!("unrecognized operation mode \"{other}\""))),
    }
}

fn mode_of(word: &str) -> Result<Signal, Failure> {
    match word {
        "s" | "smart" => Ok(Signal::SIGTERM),
        "f" | "fast" => Ok(Signal::SIGINT),
        "i" | "immediate" => Ok(Signal::SIGQUIT),
        other => Err(Failure::from(format!("unrecognized shutdown mode \"{other}\""))),
    }
}

/// `kill SIGNALNAME PID`.
fn send(name: Option<&String>, pid: Option<&String>) -> Result<ExitCode, Failure> {
    let (Some(name), Some(pid)) = (name, pid) else {
        return Err(Failure::from("missing arguments for kill mode"));
    };
    let known = ["HUP", "INT", "QUIT", "ABRT", "KILL", "TERM", "USR1", "USR2"];
    let signal =
        format!("SIG{name}").parse::<Signal>().ok().filter(|_| known.contains(&name.as_str()));
    let signal =
        signal.ok_or_else(|| Failure::from(format!("unrecognized signal name \"{name}\"")))?;
    let pid: i32 =
        pid.parse().map_err(|_| Failure::from(format!("invalid process id \"{pid}\"")))?;
    Running { pid, ..Running::default() }.signal(signal)?;
    Ok(ExitCode::SUCCESS)
}

impl Control {
    fn say(&self, text: &str) {
        if !self.silent {
            print!("{text}");
            // A terminal that has gone is no reason to stop.
            let _ = std::io::stdout().flush();
        }
    }

    /// Waits for something with words around it; false: not in time.
    fn wait(&self, words: &str, has_happened: impl FnMut() -> bool) -> bool {
        self.say(&format!("waiting for {words}...."));
        let done = running::wait(self.patience, has_happened);
        self.say(if done { " done\n" } else { " stopped waiting\n" });
        done
    }

    /// The server, or PostgreSQL's words for that there is none.
    fn running(&self) -> Result<Running, Failure> {
        let path = self.dir.join(running::PID_FILE);
        match (Running::alive(&self.dir), Running::read(&self.dir)) {
            (Some(running), _) => Ok(running),
            (None, Some(stale)) => Err(Failure::from(format!(
                "old server process (PID: {}) seems to be gone\nIs server running?",
                stale.pid
            ))),
            (None, None) => Err(Failure::from(format!(
                "PID file \"{}\" does not exist\nIs server running?",
                path.display()
            ))),
        }
    }

    fn init(&self) -> Result<ExitCode, Failure> {
        let program: Vec<String> =
            program::named("initdb").iter().map(|p| shell_word(&p.display().to_string())).collect();
        let line = format!(
            "{} -D {} {}",
            program.join(" "),
            shell_word(&self.dir.display().to_string()),
            self.options.join(" ")
        );
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line);
        if self.silent {
            command.stdout(Stdio::null());
        }
        let status = command.status().map_err(|e| program::failed(Path::new("/bin/sh"), &e))?;
        match status.success() {
            true => Ok(ExitCode::SUCCESS),
            false => Err(Failure::from("database system initialization failed")),
        }
    }

    fn start(&self) -> Result<ExitCode, Failure> {
        if Running::alive(&self.dir).is_some() {
            eprintln!("pg_ctl: another server might be running; trying to start server anyway");
        }
        let options = format!(
            "-D {} {}",
            shell_word(&self.dir.display().to_string()),
            self.options.join(" ")
        );
        self.start_with(&options)
    }

    /// Starts the server by a shell, which takes the options apart.
    fn start_with(&self, options: &str) -> Result<ExitCode, Failure> {
        let program: Vec<String> = match &self.program {
            Some(program) => vec![shell_word(&program.display().to_string())],
            None => {
                let path = |p: &PathBuf| shell_word(&p.display().to_string());
                program::named("postgres").iter().map(path).collect()
            }
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("exec {} {options}", program.join(" ")));
        command.stdin(Stdio::null()).process_group(0);
        if let Some(log) = &self.log {
            let file = OpenOptions::new().create(true).append(true).open(log);
            let file = file.map_err(|e| {
                Failure::from(format!("could not open log file \"{}\": {e}", log.display()))
            })?;
            let copy = file.try_clone().map_err(|e| program::failed(log, &e))?;
            command.stdout(file).stderr(copy);
        }
        let mut child = command.spawn().map_err(|e| program::failed(Path::new("/bin/sh"), &e))?;
        if !self.waits {
            self.say("server starting\n");
            return Ok(ExitCode::SUCCESS);
        }
        self.await_start(&mut child)
    }

    fn await_start(&self, child: &mut Child) -> Result<ExitCode, Failure> {
        let pid = child.id() as i32;
        let (mut ended, mut is_up) = (false, false);
        let in_time = self.wait("server to start", || {
            let running = Running::read(&self.dir);
            is_up = running.is_some_and(|running| running.pid == pid && running.is_up());
            ended = !is_up && child.try_wait().ok().flatten().is_some();
            is_up || ended
        });
        if is_up {
            self.say("server started\n");
            return Ok(ExitCode::SUCCESS);
        }
        Err(Failure::from(match in_time {
            true => "could not start server\nExamine the log output.",
            false => "server did not start in time",
        }))
    }

    fn stop(&self) -> Result<ExitCode, Failure> {
        let running = self.running()?;
        running.signal(self.mode)?;
        if !self.waits {
            self.say("server shutting down\n");
            return Ok(ExitCode::SUCCESS);
        }
        if !self.wait("server to shut down", || !running::is_alive(running.pid)) {
            let hint = match self.mode {
                Signal::SIGTERM => {
                    "\nHINT: The \"-m fast\" option immediately disconnects sessions rather than\n\
                     waiting for session-initiated disconnection."
                }
                _ => "",
            };
            return Err(Failure::from(format!("server does not shut down{hint}")));
        }
        self.say("server stopped\n");
        Ok(ExitCode::SUCCESS)
    }

    fn restart(&self) -> Result<ExitCode, Failure> {
        let written = std::fs::read_to_string(self.dir.join("postmaster.opts")).unwrap_or_default();
        match self.running() {
            Ok(_) => drop(Control { waits: true, ..self.copy() }.stop()?),
            Err(failure) => {
                eprintln!("pg_ctl: {}", failure.text);
                eprintln!("trying to start server anyway");
            }
        }
        // The options with which it was started, unless there are others now.
        let before = written.lines().next().and_then(|line| Some(&line[line.find(" \"")?..]));
        match before.filter(|_| self.options.is_empty()) {
            Some(options) if !options.contains("\"serve\"") => self.start_with(options),
            _ => self.start(),
        }
    }

    fn copy(&self) -> Control {
        Control {
            dir: self.dir.clone(),
            log: self.log.clone(),
            options: self.options.clone(),
            program: self.program.clone(),
            ..*self
        }
    }

    fn reload(&self) -> Result<ExitCode, Failure> {
        self.running()?.signal(Signal::SIGHUP)?;
        self.say("server signaled\n");
        Ok(ExitCode::SUCCESS)
    }

    fn status(&self) -> Result<ExitCode, Failure> {
        let Some(running) = Running::alive(&self.dir) else {
            println!("pg_ctl: no server running");
            return Ok(ExitCode::from(NOT_RUNNING));
        };
        println!("pg_ctl: server is running (PID: {})", running.pid);
        let options = std::fs::read_to_string(self.dir.join("postmaster.opts"));
        print!("{}", options.unwrap_or_default());
        Ok(ExitCode::SUCCESS)
    }

    fn promote(&self) -> Result<ExitCode, Failure> {
        let running = self.running()?;
        let signal = self.dir.join("standby.signal");
        if !signal.exists() {
            return Err(Failure::from("cannot promote server; server is not in standby mode"));
        }
        std::fs::write(self.dir.join(PROMOTE), "")
            .map_err(|e| Failure::from(format!("could not create promote signal file: {e}")))?;
        running.signal(Signal::SIGHUP)?;
        if !self.waits {
            self.say("server promoting\n");
            return Ok(ExitCode::SUCCESS);
        }
        let is_primary = || !signal.exists() && !self.dir.join(PROMOTE).exists();
        if !self.wait("server to promote", is_primary) {
            return Err(Failure::from("server did not promote in time"));
        }
        self.say("server promoted\n");
        Ok(ExitCode::SUCCESS)
    }
}
