//! The command line's arguments.
//!
//! [`program`] is the one table of commands and options: parsing, `--help` of each command, the nearest name for a mistake, shell
//! completions and man pages come from it (the crate clap).

use std::ffi::OsString;
use std::path::PathBuf;

use base::Lsn;
use clap::builder::NonEmptyStringValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use server::Overrides;
use server::control::Restore;
use server::init::InitOptions;
use server::signals::Stop;

/// Makes `serve` work without a supervisor.
pub const SINGLE_PROCESS: &str = "--single-process";

/// Seconds that `stop` and `promote` wait unless told otherwise.
const TIMEOUT_S: u64 = 60;

/// One invocation.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Text that was asked for: help, the version, a shell's completions.
    Print(String),
    /// Man pages, to be written into this folder.
    ManPages(PathBuf),
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
    /// `show`.
    Show {
        /// Data directory.
        dir: PathBuf,
        /// Settings given by options.
        settings: Overrides,
        /// The setting to be printed.
        name: String,
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
        /// Whether the directory follows it from the next start on.
        follow: bool,
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

/// An option with a value.
fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help)
        .action(ArgAction::Set)
        .value_parser(NonEmptyStringValueParser::new())
}

/// A letter with a value.
fn letter(name: &'static str, letter: char, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .short(letter)
        .value_name(value)
        .help(help)
        .action(ArgAction::Set)
        .allow_hyphen_values(true)
}

/// A switch.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// A command without options but `--help`.
fn command(name: &'static str, about: &'static str) -> clap::Command {
    clap::Command::new(name)
        .about(about)
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").help("Prints this text").action(ArgAction::Help))
}

/// A command on a data directory.
fn on_directory(name: &'static str, about: &'static str) -> clap::Command {
    command(name, about).arg(
        letter("dir", 'D', "DIR", "The data directory")
            .required(true)
            .value_parser(value_parser!(PathBuf)),
    )
}

fn timeout() -> Arg {
    letter("timeout", 't', "SECONDS", "How long to wait [default: 60]").value_parser(seconds)
}

fn allow_root() -> Arg {
    switch("allow-root", "Runs as root, too (or THREADGRES_ALLOW_ROOT=1 in the environment)")
}

fn serve() -> clap::Command {
    on_directory("serve", "Serves the data directory in the foreground")
        .long_about(
            "Serves the data directory in the foreground; a missing or empty one is initialised first. A supervisor process \
             starts the server again after a crash.",
        )
        .args([
            letter("host", 'h', "ADDRESS", "Where it listens, over listen_addresses"),
            letter("port", 'p', "PORT", "The port, over the setting port"),
            letter("sockets", 'k', "SOCKETDIR", "The Unix socket's folder, over unix_socket_directories"),
            letter("setting", 'c', "NAME=VALUE", "A setting, over those of DIR/postgresql.conf")
                .action(ArgAction::Append),
            switch("single-process", "Runs without the supervisor"),
            option("standby-of", "URL", "Follows the server at URL; a missing or empty directory becomes a copy of it first"),
            option("accept-loss-from", "LSN", "Gives up what was committed after the position at which the log is damaged"),
            allow_root(),
        ])
}

fn init() -> clap::Command {
    on_directory("init", "Makes a new data directory").args([
        option(
            "auth",
            "METHOD",
            "How clients on this machine log in: trust, peer, scram-sha-256, …",
        )
        .short('A'),
        option("username", "NAME", "The first role's name [default: postgres]").short('U'),
        switch("pwprompt", "Asks for the first role's password").short('W'),
        option("pwfile", "FILE", "Reads the first role's password from a file"),
        switch("allow-group-access", "Lets the owner's group read the files").short('g'),
        option("wal-segsize", "MB", "The size of a segment of the log, in megabytes")
            .value_parser(segment),
        allow_root(),
    ])
}

fn restore() -> clap::Command {
    on_directory(
        "restore",
        "Takes the log of an archive over into a base backup; serve it afterwards",
    )
    .args([
        option(
            "archive",
            "FOLDER|COMMAND",
            "The archive; a command has %f for a segment's name and %p for the file to be made",
        ),
        option("target-lsn", "POSITION", "Stops at a position of the log"),
        option("target-time", "TIME", "Stops at a time"),
        option("target-name", "NAME", "Stops at a restore point"),
        switch("target-immediate", "Stops as soon as the copy is consistent"),
    ])
}

/// The program: its commands and their options.
pub fn program() -> clap::Command {
    clap::Command::new("threadgres")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Threadgres: a threaded server that speaks PostgreSQL")
        .after_help(
            "Settings are in DIR/postgresql.conf; -c overrides them. As root serve and init run with --allow-root only, or with \
             THREADGRES_ALLOW_ROOT=1 in the environment.",
        )
        .subcommand_required(true)
        .subcommands([
            serve(),
            init(),
            on_directory("show", "Prints the value that a setting has in a directory").args([
                letter("setting", 'c', "NAME=VALUE", "A setting, over those of DIR/postgresql.conf")
                    .action(ArgAction::Append),
                Arg::new("name").value_name("NAME").required(true).help("The setting"),
            ]),
            on_directory("stop", "Stops the directory's server and waits until it has gone").args([
                letter("mode", 'm', "MODE", "smart waits for clients, fast ends their sessions, immediate leaves the rest to recovery [default: fast]")
                    .value_parser(mode),
                timeout(),
            ]),
            on_directory("status", "Says whether the directory's server is running (exit code 0) or not (3)"),
            on_directory("reload", "Makes the directory's server read its settings again"),
            on_directory("promote", "Makes the directory's server, a standby, a primary, and waits for that").arg(timeout()),
            on_directory("rewind", "Makes a directory that was a primary's a standby's of another server")
                .long_about(
                    "Makes a directory that was a primary's a standby's of the server at URL: gives up what was written there \
                     after the histories parted, and fetches the pages that differ. Serve DIR afterwards.",
                )
                .args([
                    option("from", "URL", "The new primary").required(true),
                    switch("no-follow", "Leaves the settings alone and writes no standby.signal: what follows is the caller's"),
                ]),
            on_directory("check", "Reads every file, table and index of a directory that nobody serves and says what is damaged"),
            restore(),
            on_directory("upgrade", "Makes a directory that an earlier version left one of this version's format (as serve does)"),
            clap::Command::new("top").about("Shows in the terminal what a server does: sessions, waits, who blocks whom"),
            clap::Command::new("lab").about("The laboratory: measures how a server scales"),
            command("completions", "Prints the completions of a shell").arg(
                Arg::new("shell")
                    .value_name("SHELL")
                    .required(true)
                    .value_parser(value_parser!(clap_complete::Shell)),
            ),
            command("man", "Writes man pages into a folder").arg(
                Arg::new("folder").value_name("FOLDER").required(true).value_parser(value_parser!(PathBuf)),
            ),
            command("null-server", "A server that does nothing, for benchmarks").hide(true).args([
                letter("port", 'p', "PORT", "Port on 127.0.0.1").required(true).value_parser(value_parser!(u16)),
                letter("setting", 'c', "workers=N", "Workers (0: one a core)"),
            ]),
        ])
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A message of one line about the wrong argument, with the nearest name where there is one.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let args = std::iter::once(OsString::from("threadgres")).chain(args);
    match program().try_get_matches_from(args) {
        Ok(matches) => match matches.subcommand() {
            Some((name, matches)) => build(name, matches),
            None => Err("a command is missing".to_owned()),
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Command::Print(error.to_string()))
            }
            _ => Err(one_line(&error)),
        },
    }
}

/// An error of the command line as one line.
fn one_line(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        // Suggestions come in ascending likeness: the last one is the nearest.
        Some(ContextValue::Strings(texts)) => texts.last().cloned(),
        Some(other) => Some(other.to_string()),
        None => None,
    };
    let given = context(ContextKind::InvalidArg).unwrap_or_default();
    let value = context(ContextKind::InvalidValue).filter(|value| !value.is_empty());
    let reason = std::error::Error::source(error).map(ToString::to_string);
    let said = match (error.kind(), value) {
        (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            "a command is missing".to_owned()
        }
        (ErrorKind::InvalidSubcommand, _) => {
            format!(
                "unknown command \"{}\"",
                context(ContextKind::InvalidSubcommand).unwrap_or_default()
            )
        }
        (ErrorKind::UnknownArgument, _) => format!("unknown option \"{given}\""),
        (ErrorKind::MissingRequiredArgument, _) => format!("option {given} is missing"),
        (ErrorKind::InvalidValue, None) => format!("option {given} needs a value"),
        (_, Some(value)) => match reason {
            Some(reason) => format!("{given}: \"{value}\": {reason}"),
            None => format!("{given}: \"{value}\" is not one of its values"),
        },
        _ => error.to_string().lines().next().unwrap_or_default().replace("error: ", ""),
    };
    let near =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(context);
    match near {
        Some(near) => format!("{said}; did you mean {near}?"),
        None => said,
    }
}

fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

/// The settings that options give, in the order of the options: a later one is over an earlier one.
fn settings(matches: &ArgMatches) -> Result<Overrides, String> {
    let mut placed = Vec::new();
    for (option, name) in
        [("host", "listen_addresses"), ("port", "port"), ("sockets", "unix_socket_directories")]
    {
        // Not every command has these.
        let given = matches.try_get_one::<String>(option).ok().flatten().cloned();
        let value = given.map(|value| (name.to_owned(), value));
        let index = value.is_some().then(|| matches.index_of(option)).flatten();
        placed.extend(index.zip(value));
    }
    let given = matches.get_many::<String>("setting").into_iter().flatten();
    for (index, given) in matches.indices_of("setting").into_iter().flatten().zip(given) {
        let (name, value) = given
            .split_once('=')
            .ok_or_else(|| format!("-c {given} lacks a value: use -c name=value"))?;
        placed.push((index, (name.trim().to_owned(), value.trim().to_owned())));
    }
    placed.sort_by_key(|(index, _)| *index);
    Ok(placed.into_iter().map(|(_, setting)| setting).collect())
}

/// A position in the log, as messages write it.
fn position(text: &str) -> Result<Lsn, String> {
    let halves = text.split_once('/').and_then(|(high, low)| {
        let half = |digits| u32::from_str_radix(digits, 16).ok();
        Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
    });
    halves.map(Lsn).ok_or(format!("{text} is not a position such as 0/1A2B3C8"))
}

fn mode(word: &str) -> Result<Stop, String> {
    match word {
        "smart" | "s" => Ok(Stop::Smart),
        "fast" | "f" => Ok(Stop::Fast),
        "immediate" | "i" => Ok(Stop::Immediate),
        other => Err(format!("unknown stop mode \"{other}\": use smart, fast or immediate")),
    }
}

fn segment(word: &str) -> Result<u64, String> {
    let size = word.parse().ok().filter(|mb: &u64| mb.is_power_of_two() && *mb <= 1024);
    size.ok_or_else(|| format!("{word} is not a power of two between 1 and 1024"))
}

fn seconds(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number of seconds"))
}

fn build(name: &str, matches: &ArgMatches) -> Result<Command, String> {
    let dir = || matches.get_one::<PathBuf>("dir").cloned().unwrap_or_default();
    let timeout_s = || matches.get_one("timeout").copied().unwrap_or(TIMEOUT_S);
    Ok(match name {
        "serve" => Command::Serve {
            dir: dir(),
            settings: settings(matches)?,
            single: matches.get_flag("single-process"),
            accept_loss_from: text(matches, "accept-loss-from")
                .map(|at| position(&at))
                .transpose()?,
            standby_of: text(matches, "standby-of"),
            allow_root: matches.get_flag("allow-root"),
        },
        "init" => build_init(dir(), matches)?,
        "restore" => build_restore(dir(), matches)?,
        "upgrade" => Command::Upgrade { dir: dir() },
        "promote" => Command::Promote { dir: dir(), timeout_s: timeout_s() },
        "rewind" => Command::Rewind {
            dir: dir(),
            url: text(matches, "from").unwrap_or_default(),
            follow: !matches.get_flag("no-follow"),
        },
        "show" => Command::Show {
            dir: dir(),
            settings: settings(matches)?,
            name: text(matches, "name").unwrap_or_default(),
        },
        "check" => Command::Check { dir: dir() },
        "status" => Command::Status { dir: dir() },
        "reload" => Command::Reload { dir: dir() },
        "stop" => Command::Stop {
            dir: dir(),
            mode: matches.get_one("mode").copied().unwrap_or(Stop::Fast),
            timeout_s: timeout_s(),
        },
        "completions" => completions(matches),
        "man" => {
            Command::ManPages(matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default())
        }
        "null-server" => build_null_server(matches)?,
        other => return Err(format!("\"{other}\" stands first")),
    })
}

fn build_init(dir: PathBuf, matches: &ArgMatches) -> Result<Command, String> {
    let options = InitOptions {
        auth: text(matches, "auth"),
        prompt: matches.get_flag("pwprompt"),
        password_file: text(matches, "pwfile").map(PathBuf::from),
        group_access: matches.get_flag("allow-group-access"),
        superuser: text(matches, "username"),
        segment_size_mb: matches.get_one("wal-segsize").copied(),
    };
    if options.prompt && options.password_file.is_some() {
        return Err("--pwprompt and --pwfile exclude each other".to_owned());
    }
    Ok(Command::Init { dir, options, allow_root: matches.get_flag("allow-root") })
}

fn build_restore(dir: PathBuf, matches: &ArgMatches) -> Result<Command, String> {
    let restore = Restore {
        source: text(matches, "archive"),
        position: text(matches, "target-lsn").map(|at| position(&at)).transpose()?,
        time: text(matches, "target-time"),
        name: text(matches, "target-name"),
        immediate: matches.get_flag("target-immediate"),
    };
    let targets = [
        restore.position.is_some(),
        restore.time.is_some(),
        restore.name.is_some(),
        restore.immediate,
    ];
    if targets.into_iter().filter(|given| *given).count() > 1 {
        return Err("only one target can be given".to_owned());
    }
    Ok(Command::Restore { dir, restore })
}

fn build_null_server(matches: &ArgMatches) -> Result<Command, String> {
    let workers = match text(matches, "setting") {
        Some(given) => match given.strip_prefix("workers=").and_then(|n| n.parse().ok()) {
            Some(workers) => workers,
            None => return Err(format!("bad workers \"{given}\"")),
        },
        None => 0,
    };
    Ok(Command::NullServer { port: matches.get_one("port").copied().unwrap_or(0), workers })
}

fn completions(matches: &ArgMatches) -> Command {
    let mut out = Vec::new();
    if let Some(shell) = matches.get_one::<clap_complete::Shell>("shell").copied() {
        clap_complete::generate(shell, &mut program(), "threadgres", &mut out);
    }
    Command::Print(String::from_utf8_lossy(&out).into_owned())
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
            superuser: Some("owner".into()),
            ..InitOptions::default()
        };
        let init = Command::Init { dir: "x".into(), options, allow_root: true };
        for line in [
            "init -Dx --auth=md5 -U owner --pwfile f -g --allow-root",
            "init -D x -A md5 --pwfile=f --username=owner \
             --allow-group-access --allow-root",
        ] {
            assert_eq!(get(line).unwrap(), init);
        }
        let stop = Command::Stop { dir: "x".into(), mode: Stop::Immediate, timeout_s: 5 };
        assert_eq!(get("stop -Dx -m immediate -t 5").unwrap(), stop);
        let version = format!("threadgres {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(get("--version").unwrap(), Command::Print(version));
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
    #[test]
    fn the_nearest_name_is_offered() {
        for (line, near) in [
            ("sreve -D x", "serve"),
            ("serve -D x --standby-off y", "--standby-of"),
            ("restore -D x --target-tim y", "--target-time"),
        ] {
            let said = get(line).unwrap_err();
            assert!(said.contains(&format!("did you mean {near}")), "{line}: {said}");
        }
    }

    #[test]
    fn each_command_has_help_and_completions() {
        program().debug_assert();
        for command in
            program().get_subcommands().filter(|c| !["top", "lab"].contains(&c.get_name()))
        {
            let name = command.get_name();
            match get(&format!("{name} --help")) {
                Ok(Command::Print(text)) => assert!(text.contains("Usage"), "{name}: {text}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        for shell in ["bash", "zsh", "fish"] {
            match get(&format!("completions {shell}")) {
                Ok(Command::Print(text)) => assert!(text.contains("accept-loss-from"), "{shell}"),
                other => panic!("{shell}: {other:?}"),
            }
        }
    }
}
