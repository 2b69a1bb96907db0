//! The command line's arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use base::Lsn;
use server::Overrides;
use server::control::Restore;
use server::init::InitOptions;
use server::signals::Stop;

/// The text that `--help` prints.
pub const HELP: &str = "\
Threadgres: a threaded server that speaks PostgreSQL.

Usage:
  threadgres serve -D DIR [-h ADDRESS] [-p PORT] [-k SOCKETDIR] [-c NAME=VALUE]… [--single-process]
                  [--standby-of URL] [--accept-loss-from LSN] [--allow-root]
      serves the data directory in the foreground; a missing or empty one is initialised first.
      A supervisor process starts the server again after a crash; with --single-process there is none.
      --accept-loss-from gives up what was committed after the position at which the log is damaged.
      --standby-of follows the server at URL: a missing or empty directory becomes a copy of it first
  threadgres promote -D DIR [-t SECONDS]
      makes the directory's server, a standby, a primary, and waits for that (default: 60 seconds)
  threadgres rewind -D DIR --from URL
      makes a directory that was a primary's a standby's of the server at URL: gives up what was written there
      after the histories parted, and fetches the pages that differ. Serve DIR afterwards
  threadgres init -D DIR [-A|--auth METHOD] [-W|--pwprompt | --pwfile FILE] [-g|--allow-group-access]
                  [--allow-root]
      makes a new data directory; METHOD (trust, peer, scram-sha-256, …) is how clients on this machine
      log in, and the first role gets the password. The owner's group may read the files with -g
  threadgres stop -D DIR [-m smart|fast|immediate] [-t SECONDS]
      stops the directory's server and waits until it has gone (default: fast, 60 seconds)
  threadgres status -D DIR
      says whether the directory's server is running (exit code 0) or not (3)
  threadgres reload -D DIR
      makes the directory's server read its settings again
  threadgres check -D DIR
      reads every file, table and index of a directory that nobody serves and says what is damaged;
      changes nothing
  threadgres restore -D COPY [--archive FOLDER|COMMAND] [--target-lsn POSITION | --target-time TIME |
                  --target-name NAME | --target-immediate]
      takes the log of an archive over into a base backup, as far as the target (default: all of it); COMMAND
      has %f for a segment's name and %p for the file to be made. Serve COPY afterwards
  threadgres upgrade -D DIR
      makes a directory that an earlier version left one of this version's format (as serve does)
  threadgres top -D DIR | --url URL [-d SECONDS] [--once]
      shows in the terminal what a server does: sessions, waits, who blocks whom
  threadgres lab COMMAND [OPTION]…
      the laboratory: measures how a server scales; see threadgres lab --help
  threadgres --version
  threadgres --help

Settings are in DIR/threadgres.conf; -c overrides them.
As root serve and init run with --allow-root only, or with THREADGRES_ALLOW_ROOT=1 in the environment.
";

/// Says that `serve` is to work without a supervisor.
pub const SINGLE_PROCESS: &str = "--single-process";

/// Names the damaged place after which everything may be lost.
const ACCEPT_LOSS: &str = "--accept-loss-from";
/// Names the primary.
const STANDBY_OF: &str = "--standby-of";
/// Says that `serve` and `init` may run as root.
const ALLOW_ROOT: &str = "--allow-root";

/// Long options and the letters that stand for them.
const LONG: [(&str, char); 10] = [
    ("--auth", 'A'),
    ("--pwprompt", 'W'),
    ("--pwfile", 'F'),
    ("--allow-group-access", 'g'),
    ("--archive", 'R'),
    ("--target-lsn", 'L'),
    ("--target-time", 'T'),
    ("--target-name", 'N'),
    ("--target-immediate", 'I'),
    ("--from", 'U'),
];

/// One invocation.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `serve`.
    Serve {
        /// Data directory.
        dir: PathBuf,
        /// Settings given by options.
        settings: Overrides,
        /// Without a supervisor.
        single: bool,
        /// Where the log is damaged, if that is accepted.
        accept_loss_from: Option<Lsn>,
        /// The primary to follow.
        standby_of: Option<String>,
        /// As root, too.
        allow_root: bool,
    },
    /// `promote`.
    Promote {
        /// Data directory.
        dir: PathBuf,
        /// How long to wait.
        timeout_s: u64,
    },
    /// `rewind`.
    Rewind {
        /// Data directory.
        dir: PathBuf,
        /// The new primary.
        url: String,
    },
    /// `init`.
    Init {
        /// Data directory.
        dir: PathBuf,
        /// Further options.
        options: InitOptions,
        /// As root, too.
        allow_root: bool,
    },
    /// `stop`.
    Stop {
        /// Data directory.
        dir: PathBuf,
        /// How.
        mode: Stop,
        /// How long to wait.
        timeout_s: u64,
    },
    /// `status`.
    Status {
        /// Data directory.
        dir: PathBuf,
    },
    /// `reload`.
    Reload {
        /// Data directory.
        dir: PathBuf,
    },
    /// `check`.
    Check {
        /// Data directory.
        dir: PathBuf,
    },
    /// `restore`.
    Restore {
        /// A base backup.
        dir: PathBuf,
        /// The archive, and where to stop.
        restore: Restore,
    },
    /// `upgrade`.
    Upgrade {
        /// Data directory.
        dir: PathBuf,
    },
    /// `null-server`, for benchmarks.
    NullServer {
        /// Port on 127.0.0.1.
        port: u16,
        /// Workers (0: one a core).
        workers: usize,
    },
}

/// Options as given; each command takes those that it knows.
#[derive(Default)]
struct Options {
    dir: Option<PathBuf>,
    mode: Option<Stop>,
    timeout_s: Option<u64>,
    settings: Overrides,
    single: bool,
    accept_loss_from: Option<Lsn>,
    standby_of: Option<String>,
    from: Option<String>,
    allow_root: bool,
    init: InitOptions,
    restore: Restore,
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A message about the wrong argument.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let mut args =
        args.map(|a| a.into_string().map_err(|a| format!("argument {a:?} is not valid UTF-8")));
    let Some(command) = args.next().transpose()? else {
        return Err("a command is missing".to_owned());
    };
    let allowed = match command.as_str() {
        "--help" | "-h" | "help" => return Ok(Command::Help),
        "--version" | "-V" => return Ok(Command::Version),
        "serve" => "Dhpkc1r",
        "init" => "DAWgrF",
        "status" | "reload" | "check" | "upgrade" => "D",
        "restore" => "DRLTNI",
        "stop" => "Dmt",
        "promote" => "Dt",
        "rewind" => "DU",
        "null-server" => "pc",
        other => return Err(format!("unknown command \"{other}\"")),
    };
    let options = read_options(args, allowed)?;
    build(&command, options)
}

fn read_options(
    mut args: impl Iterator<Item = Result<String, String>>,
    allowed: &str,
) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(arg) = args.next().transpose()? {
        if arg == SINGLE_PROCESS && allowed.contains('1') {
            options.single = true;
            continue;
        }
        if arg == ACCEPT_LOSS && allowed.contains('1') {
            let value =
                args.next().transpose()?.ok_or(format!("option {ACCEPT_LOSS} needs a value"))?;
            options.accept_loss_from = Some(position(&value)?);
            continue;
        }
        if arg == STANDBY_OF && allowed.contains('1') {
            let value =
                args.next().transpose()?.ok_or(format!("option {STANDBY_OF} needs a value"))?;
            options.standby_of = Some(value);
            continue;
        }
        if arg == ALLOW_ROOT && allowed.contains('r') {
            options.allow_root = true;
            continue;
        }
        let arg = match LONG.iter().find(|(long, _)| arg.split('=').next() == Some(long)) {
            Some((long, letter)) if allowed.contains(*letter) => {
                let value = arg[long.len()..].strip_prefix('=').unwrap_or_default();
                format!("-{letter}{value}")
            }
            _ => arg,
        };
        match arg.as_str() {
            "-W" if allowed.contains('W') => {
                options.init.prompt = true;
                continue;
            }
            "-I" if allowed.contains('I') => {
                options.restore.immediate = true;
                continue;
            }
            "-g" if allowed.contains('g') => {
                options.init.group_access = true;
                continue;
            }
            _ => {}
        }
        let mut chars = arg.chars();
        let letter = match (chars.next(), chars.next()) {
            (Some('-'), Some(letter @ 'A'..='z')) if allowed.contains(letter) => letter,
            _ => return Err(format!("unknown option \"{arg}\"")),
        };
        let value = match chars.as_str() {
            "" => args.next().transpose()?.ok_or(format!("option -{letter} needs a value"))?,
            attached => attached.to_owned(),
        };
        let mut set = |name: &str, value: String| options.settings.push((name.to_owned(), value));
        match letter {
            'D' => options.dir = Some(value.into()),
            'h' => set("listen_addresses", value),
            'p' => set("port", value),
            'k' => set("unix_socket_directories", value),
            'c' => match value.split_once('=') {
                Some((name, value)) => set(name.trim(), value.trim().to_owned()),
                None => return Err(format!("-c {value} lacks a value: use -c name=value")),
            },
            'A' => options.init.auth = Some(value),
            'F' => options.init.password_file = Some(value.into()),
            'R' => options.restore.source = Some(value),
            'L' => options.restore.position = Some(position(&value)?),
            'T' => options.restore.time = Some(value),
            'N' => options.restore.name = Some(value),
            'U' => options.from = Some(value),
            'm' => options.mode = Some(mode(&value)?),
            _ => {
                let seconds = value.parse();
                options.timeout_s =
                    Some(seconds.map_err(|_| format!("-t {value} is not a number of seconds"))?);
            }
        }
    }
    Ok(options)
}

/// A position in the log, as messages write it.
fn position(text: &str) -> Result<Lsn, String> {
    let halves = text.split_once('/').and_then(|(high, low)| {
        let half = |digits| u32::from_str_radix(digits, 16).ok();
        Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
    });
    halves.map(Lsn).ok_or(format!("{ACCEPT_LOSS} {text} is not a position such as 0/1A2B3C8"))
}

fn mode(word: &str) -> Result<Stop, String> {
    match word {
        "smart" | "s" => Ok(Stop::Smart),
        "fast" | "f" => Ok(Stop::Fast),
        "immediate" | "i" => Ok(Stop::Immediate),
        other => Err(format!("unknown stop mode \"{other}\": use smart, fast or immediate")),
    }
}

fn build(command: &str, options: Options) -> Result<Command, String> {
    if command == "null-server" {
        let number = |name: &str| {
            let given = options.settings.iter().rev().find(|(n, _)| n == name);
            given.map(|(_, v)| v.parse::<u16>().map_err(|_| format!("bad {name} \"{v}\"")))
        };
        let port = number("port").ok_or("option -p PORT is missing")??;
        let workers = number("workers").transpose()?.map_or(0, usize::from);
        return Ok(Command::NullServer { port, workers });
    }
    let dir = options.dir.ok_or("option -D DIR is missing")?;
    Ok(match command {
        "serve" => Command::Serve {
            dir,
            settings: options.settings,
            single: options.single,
            accept_loss_from: options.accept_loss_from,
            standby_of: options.standby_of,
            allow_root: options.allow_root,
        },
        "restore" => {
            let restore = options.restore;
            let targets = [
                restore.position.is_some(),
                restore.time.is_some(),
                restore.name.is_some(),
                restore.immediate,
            ];
            if targets.into_iter().filter(|given| *given).count() > 1 {
                return Err("only one target can be given".to_owned());
            }
            Command::Restore { dir, restore }
        }
        "upgrade" => Command::Upgrade { dir },
        "promote" => Command::Promote { dir, timeout_s: options.timeout_s.unwrap_or(60) },
        "rewind" => {
            let url = options.from.ok_or("option --from URL is missing")?;
            Command::Rewind { dir, url }
        }
        "init" => {
            let (options, allow_root) = (options.init, options.allow_root);
            if options.prompt && options.password_file.is_some() {
                return Err("--pwprompt and --pwfile exclude each other".to_owned());
            }
            Command::Init { dir, options, allow_root }
        }
        "check" => Command::Check { dir },
        "status" => Command::Status { dir },
        "reload" => Command::Reload { dir },
        _ => Command::Stop {
            dir,
            mode: options.mode.unwrap_or(Stop::Fast),
            timeout_s: options.timeout_s.unwrap_or(60),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_may_stand_apart_or_attached() {
        let settings = [("port", "7"), ("listen_addresses", "::1"), ("work_mem", "1MB")]
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .to_vec();
        let want = Command::Serve {
            dir: "x".into(),
            settings,
            single: false,
            accept_loss_from: None,
            standby_of: None,
            allow_root: false,
        };
        assert_eq!(get("serve -D x -p7 -h ::1 -c work_mem=1MB").unwrap(), want);
        let options = InitOptions {
            auth: Some("md5".into()),
            password_file: Some("f".into()),
            group_access: true,
            ..InitOptions::default()
        };
        let init = Command::Init { dir: "x".into(), options, allow_root: true };
        for line in [
            "init -Dx --auth=md5 --pwfile f -g --allow-root",
            "init -D x -A md5 --pwfile=f \
             --allow-group-access --allow-root",
        ] {
            assert_eq!(get(line).unwrap(), init);
        }
        let stop = Command::Stop { dir: "x".into(), mode: Stop::Immediate, timeout_s: 5 };
        assert_eq!(get("stop -Dx -m immediate -t 5").unwrap(), stop);
        assert_eq!(get("--version").unwrap(), Command::Version);
        match get("serve -D x --accept-loss-from 1/A0").unwrap() {
            Command::Serve { accept_loss_from, .. } => {
                assert_eq!(accept_loss_from, Some(Lsn(0x1_0000_00A0)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, word) in [
            ("", "command"),
            ("sreve", "sreve"),
            ("serve", "-D"),
            ("serve -D", "-D"),
            ("serve -D x -m fast", "-m"),
            ("serve -D x -c port", "name=value"),
            ("stop -D x -m hard", "hard"),
            ("stop -D x -t soon", "soon"),
            ("serve -D x extra", "extra"),
            ("serve -D x --pwprompt", "--pwprompt"),
            ("init -D x -W --pwfile y", "exclude"),
            ("stop -D x --allow-root", "--allow-root"),
            ("stop -D x --single-process", "--single-process"),
            ("serve -D x --accept-loss-from", "--accept-loss-from"),
            ("serve -D x --accept-loss-from 77", "0/1A2B3C8"),
            ("check -D x --accept-loss-from 0/10", "--accept-loss-from"),
            ("rewind -D x", "--from"),
            ("restore -D x --target-immediate --target-lsn 0/10", "one target"),
            ("check -D x --archive y", "--archive"),
        ] {
            assert!(get(line).unwrap_err().contains(word), "{line}");
        }
    }
}
