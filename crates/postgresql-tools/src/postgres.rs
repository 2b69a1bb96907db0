//! `postgres`: the server under PostgreSQL's name. It becomes `threadgres serve`, and keeps its process id.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use base::settings::{self, Kind, SETTINGS, SettingId};
use lexopt::prelude::*;

use crate::options::{Failure, data_directory, parser, text};
use crate::program;

pub const HELP: &str = "
postgres is the server, Threadgres.

Usage:
  postgres [OPTION]...

Options:
  -B NBUFFERS        number of shared buffers
  -c NAME=VALUE      set run-time parameter
  -C NAME            print value of run-time parameter, then exit
  -D DATADIR         database directory
  -F                 turn fsync off
  -h HOSTNAME        host name or IP address to listen on
  -i                 enable TCP/IP connections
  -k DIRECTORY       Unix-domain socket location
  -l                 enable SSL connections
  -N MAX-CONNECT     maximum number of allowed connections
  -p PORT            port number to listen on
  -S WORK-MEM        set amount of memory for sorts (in kB)
  -V, --version      output version information, then exit
  --NAME=VALUE       set run-time parameter
  --describe-config  describe configuration parameters, then exit
  --single           is refused, but for a recovery without statements";

/// In the environment: the command line, for `postmaster.opts`.
const OPTIONS: &str = "THREADGRES_POSTMASTER_OPTIONS";

#[derive(Default)]
struct Arguments {
    dir: Option<PathBuf>,
    settings: Vec<(String, String)>,
    /// The setting to be printed.
    show: Option<String>,
    single: bool,
}

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    if args.first().is_some_and(|first| first == "--describe-config") {
        describe();
        return Ok(ExitCode::SUCCESS);
    }
    let line = command_line(&args);
    let arguments = parse(args)?;
    let dir = data_directory(arguments.dir.clone());
    let config_file = arguments.settings.iter().rfind(|(name, _)| name == "config_file");
    let Some(dir) =
        dir.or_else(|| config_file.and_then(|(_, f)| Some(Path::new(f).parent()?.to_owned())))
    else {
        return Err(Failure::with_code(
            "does not know where to find the server configuration file.\n\
             You must specify the --config-file or -D invocation option or set the PGDATA environment variable.",
            2,
        ));
    };
    if let Some(name) = &arguments.show {
        return show(&dir, name, &arguments.settings);
    }
    if !dir.is_dir() {
        let name = dir.display();
        return Err(Failure::with_code(
            format!(
                "could not access directory \"{name}\": No such file or directory\n\
                 Run initdb or pg_basebackup to initialize a PostgreSQL data directory."
            ),
            2,
        ));
    }
    if arguments.single {
        return single(&dir, &arguments.settings);
    }
    let server = program::server();
    let mut command = Command::new(&server);
    command.arg("serve").arg("-D").arg(&dir).env(OPTIONS, line);
    for (name, value) in &arguments.settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    Err(program::failed(&server, &command.exec()))
}

/// The command line as `postmaster.opts` has it.
fn command_line(args: &[OsString]) -> String {
    let mut line = program::named("postgres")[0].display().to_string();
    for arg in args {
        line += &format!(" \"{}\"", arg.to_string_lossy());
    }
    line
}

fn parse(args: Vec<OsString>) -> Result<Arguments, Failure> {
    let mut out = Arguments::default();
    let mut parser = parser(args);
    let mut set = |name: &str, value: String| out.settings.push((name.to_owned(), value));
    let (mut dir, mut show, mut is_single) = (None, None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') => dir = Some(PathBuf::from(parser.value()?)),
            Short('C') => show = Some(text(&mut parser)?),
            Short('c') => {
                let given = text(&mut parser)?;
                let (name, value) = given
                    .split_once('=')
                    .ok_or_else(|| Failure::from(format!("-c {given} requires a value")))?;
                set(&name.trim().replace('-', "_"), value.trim().to_owned());
            }
            Short('p') => set("port", text(&mut parser)?),
            Short('h') => set("listen_addresses", text(&mut parser)?),
            Short('k') => set("unix_socket_directories", text(&mut parser)?),
            Short('B') => set("shared_buffers", text(&mut parser)?),
            Short('N') => set("max_connections", text(&mut parser)?),
            Short('S') => set("work_mem", text(&mut parser)?),
            Short('i') => set("listen_addresses", "*".to_owned()),
            Short('l') => set("ssl", "on".to_owned()),
            Short('F') => set("fsync", "off".to_owned()),
            Short('e') => set("datestyle", "euro".to_owned()),
            // Debugging, and how to deal with crashed processes, of which there are none.
            Short('d' | 'f' | 't') => drop(parser.value()?),
            Short('s' | 'n' | 'T' | 'O' | 'P' | 'j' | 'E') => {}
            Long("single") => is_single = true,
            Long("boot" | "check" | "forkboot") => {
                return Err(Failure::from(
                    "--boot and --check are refused: initdb makes a directory",
                ));
            }
            Long(name) => {
                let name = name.replace('-', "_");
                set(&name, text(&mut parser)?);
            }
            // The database of --single.
            Value(_) if is_single => {}
            other => return Err(other.unexpected().into()),
        }
    }
    (out.dir, out.show, out.single) = (dir, show, is_single);
    Ok(out)
}

/// `-C`: the value with which the server would start.
fn show(dir: &Path, name: &str, given: &[(String, String)]) -> Result<ExitCode, Failure> {
    let mut args: Vec<OsString> = vec!["show".into(), "-D".into(), dir.into()];
    for (name, value) in given {
        args.extend(["-c".into(), format!("{name}={value}").into()]);
    }
    args.push(name.into());
    program::run_server(&args)
}

/// Without statements it is what cluster managers do to a directory after a crash: recovery, and a clean stop.
fn single(dir: &Path, given: &[(String, String)]) -> Result<ExitCode, Failure> {
    let mut statements = Vec::new();
    // What can't be read is no statement.
    let _ = std::io::stdin().lock().read_to_end(&mut statements);
    if statements.iter().any(|byte| !byte.is_ascii_whitespace()) {
        return Err(Failure::from(
            "--single is refused: there is no mode for one session without a server\n\
             hint: Start the server with listen_addresses='' and a unix_socket_directories of your own, and use psql.",
        ));
    }
    let loses = given.iter().any(|(name, value)| name == "fsync" && value == "off");
    if loses {
        eprintln!("postgres: warning: fsync stays on");
    }
    program::run_server(&["upgrade".into(), "-D".into(), OsString::from(dir)])
}

/// `--describe-config`: name, context, group, type, default, least and greatest value, description; tabs between.
fn describe() {
    for (index, def) in SETTINGS.iter().enumerate() {
        let value = match (def.default, def.kind) {
            (settings::Const::Bool(value), _) => value.to_string().to_uppercase(),
            (settings::Const::Int(value), _) => value.to_string(),
            (settings::Const::Real(value), _) => value.to_string(),
            (settings::Const::Str(value), _) => value.to_owned(),
        };
        let (kind, least, greatest) = match def.kind {
            Kind::Bool => ("BOOLEAN", String::new(), String::new()),
            Kind::Int { min, max } => ("INTEGER", min.to_string(), max.to_string()),
            Kind::Real { min, max } => ("REAL", min.to_string(), max.to_string()),
            Kind::String => ("STRING", String::new(), String::new()),
            Kind::Enum(_) => ("ENUM", String::new(), String::new()),
        };
        let id = SettingId(index as u16);
        debug_assert_eq!(id.def().name, def.name);
        println!(
            "{}\t{}\t{}\t{kind}\t{value}\t{least}\t{greatest}\t{}\t",
            def.name,
            def.context.as_str(),
            def.group,
            def.description
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_cluster_managers_are_read() {
        let line = [
            "-D",
            "/d",
            "--config-file=/d/postgresql.conf",
            "--listen_addresses=127.0.0.1",
            "--port=5433",
            "--wal-log-hints",
            "on",
            "-c",
            "work_mem=1MB",
            "-i",
            "-k/tmp",
        ];
        let read = parse(line.iter().map(OsString::from).collect()).unwrap();
        assert_eq!(read.dir, Some("/d".into()));
        let names: Vec<&str> = read.settings.iter().map(|(name, _)| name.as_str()).collect();
        let want = [
            "config_file",
            "listen_addresses",
            "port",
            "wal_log_hints",
            "work_mem",
            "listen_addresses",
            "unix_socket_directories",
        ];
        assert_eq!(names, want);
        assert!(parse(vec!["-c".into(), "x".into()]).is_err());
        let single =
            parse(vec!["--single".into(), "-D".into(), "d".into(), "template1".into()]).unwrap();
        assert!(single.single);
    }
}
