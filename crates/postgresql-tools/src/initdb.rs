//! `initdb`: makes a data directory by `threadgres init`, then writes its rules of access and a few settings.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::options::{Failure, data_directory, parser, text};
use crate::program;

pub const HELP: &str = "
initdb initializes a database cluster.

Usage:
  initdb [OPTION]... [DATADIR]

Options:
  -A, --auth=METHOD         default authentication method for local connections
      --auth-host=METHOD    default authentication method for local TCP/IP connections
      --auth-local=METHOD   default authentication method for local-socket connections
 [-D, --pgdata=]DATADIR     location for this database cluster
  -E, --encoding=ENCODING   UTF8, the only one
  -g, --allow-group-access  allow group read/execute on data directory
  -k, --data-checksums      pages always have checksums
      --locale=LOCALE, --lc-collate=, --lc-ctype=, --lc-messages=, --lc-monetary=, --lc-numeric=, --lc-time=
      --no-locale           equivalent to --locale=C
      --pwfile=FILE         read password for the new superuser from file
  -T, --text-search-config=CFG
                            default text search configuration
  -U, --username=NAME       database superuser name
  -W, --pwprompt            prompt for a password for the new superuser
      --wal-segsize=SIZE    size of WAL segments, in megabytes
  -c, --set NAME=VALUE      override default setting for server parameter
  -N, --no-sync             do not wait for changes to be written safely to disk
  -S, --sync-only           only sync database files to disk, then exit
  -s, --show                show internal settings";

#[derive(Default)]
struct Init {
    dir: Option<PathBuf>,
    auth_host: Option<String>,
    auth_local: Option<String>,
    username: Option<String>,
    password_file: Option<PathBuf>,
    prompts: bool,
    group_access: bool,
    segment_size: Option<String>,
    /// Lines for the configuration file.
    settings: Vec<(String, String)>,
    quiet_start: bool,
    syncs: bool,
    only_syncs: bool,
    only_shows: bool,
}

/// Methods that want a password.
const WITH_PASSWORD: [&str; 3] = ["scram-sha-256", "md5", "password"];
/// Methods that rules of connections on this machine may have here.
const METHODS: [&str; 6] = ["trust", "reject", "peer", "scram-sha-256", "md5", "password"];

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let init = parse(args)?;
    let Some(dir) = data_directory(init.dir.clone()) else {
        return Err(Failure::from(
            "error: no data directory specified\n\
             initdb: hint: You must identify the directory where the data for this database system will reside.  Do this \
             with either the invocation option -D or the environment variable PGDATA.",
        ));
    };
    if init.only_shows {
        println!("VERSION={}\nPGDATA={}", program::version(), dir.display());
        return Ok(ExitCode::SUCCESS);
    }
    if init.only_syncs {
        print!("syncing data to disk ... ");
        sync(&dir)?;
        println!("ok");
        return Ok(ExitCode::SUCCESS);
    }
    check(&init)?;
    if dir.is_dir() && std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let name = dir.display();
        return Err(Failure::from(format!(
            "error: directory \"{name}\" exists but is not empty\n\
             initdb: hint: If you want to create a new database system, either remove or empty the directory \"{name}\" or \
             run initdb with an argument other than \"{name}\"."
        )));
    }
    make(&init, &dir)
}

fn parse(args: Vec<OsString>) -> Result<Init, Failure> {
    let mut init = Init { syncs: true, ..Init::default() };
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') | Long("pgdata") => init.dir = Some(PathBuf::from(parser.value()?)),
            Value(dir) if init.dir.is_none() => init.dir = Some(PathBuf::from(dir)),
            Short('A') | Long("auth") => {
                let method = text(&mut parser)?;
                // Where one of them means nothing, PostgreSQL takes the other of the two.
                let host = if method == "peer" { "ident" } else { &method };
                let local = if method == "ident" { "peer" } else { &method };
                init.auth_host.get_or_insert_with(|| host.to_owned());
                init.auth_local.get_or_insert_with(|| local.to_owned());
            }
            Long("auth-host") => init.auth_host = Some(text(&mut parser)?),
            Long("auth-local") => init.auth_local = Some(text(&mut parser)?),
            Short('U') | Long("username") => init.username = Some(text(&mut parser)?),
            Short('W') | Long("pwprompt") => init.prompts = true,
            Long("pwfile") => init.password_file = Some(PathBuf::from(parser.value()?)),
            Short('g') | Long("allow-group-access") => init.group_access = true,
            Long("wal-segsize") => init.segment_size = Some(text(&mut parser)?),
            Short('E') | Long("encoding") => encoding(&text(&mut parser)?)?,
            Short('T') | Long("text-search-config") => {
                let name = text(&mut parser)?;
                let name = if name.contains('.') { name } else { format!("pg_catalog.{name}") };
                init.set("default_text_search_config", name);
            }
            Short('c') | Long("set") => {
                let given = text(&mut parser)?;
                let (name, value) = given
                    .split_once('=')
                    .ok_or_else(|| Failure::from(format!("error: -c {given} requires a value")))?;
                init.set(name.trim(), value.trim().to_owned());
            }
            Long("locale") => init.locale(&text(&mut parser)?),
            Long("no-locale") => init.locale("C"),
            Long(name @ ("lc-messages" | "lc-monetary" | "lc-numeric" | "lc-time")) => {
                let name = name.replace('-', "_");
                let value = text(&mut parser)?;
                init.set(&name, value);
            }
            // The first database's: the order of texts is that of their bytes, and each column or index can have another.
            Long(
                "lc-collate" | "lc-ctype" | "locale-provider" | "icu-locale" | "icu-rules"
                | "sync-method",
            ) => {
                text(&mut parser)?;
            }
            Short('k') | Long("data-checksums") => {}
            Long("no-data-checksums") => {
                return Err(Failure::from("error: pages of Threadgres always have checksums"));
            }
            Short('X') | Long("waldir") => {
                return Err(Failure::from(
                    "error: the write-ahead log lies in the data directory: -X is refused\n\
                     initdb: hint: After initdb, move DIR/wal away and put a symbolic link in its place.",
                ));
            }
            Short('N') | Long("no-sync" | "nosync") => init.syncs = false,
            Short('S') | Long("sync-only") => init.only_syncs = true,
            Short('s') | Long("show") => init.only_shows = true,
            Long("no-instructions") => init.quiet_start = true,
            Short('d' | 'n') | Long("debug" | "no-clean" | "noclean" | "discard-caches") => {}
            Short('L') => drop(parser.value()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(init)
}

/// Only one encoding is there.
fn encoding(name: &str) -> Result<(), Failure> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_uppercase().as_str() {
        "UTF8" | "UNICODE" => Ok(()),
        _ => Err(Failure::from(format!(
            "error: \"{name}\" is not a valid server encoding name: databases of Threadgres are in UTF8"
        ))),
    }
}

impl Init {
    fn set(&mut self, name: &str, value: String) {
        self.settings.retain(|(other, _)| other != name);
        self.settings.push((name.to_owned(), value));
    }

    fn locale(&mut self, locale: &str) {
        for name in ["lc_messages", "lc_monetary", "lc_numeric", "lc_time"] {
            self.set(name, locale.to_owned());
        }
    }

    fn local(&self) -> &str {
        self.auth_local.as_deref().unwrap_or("trust")
    }

    fn host(&self) -> &str {
        self.auth_host.as_deref().unwrap_or("trust")
    }
}

fn check(init: &Init) -> Result<(), Failure> {
    for method in [init.local(), init.host()] {
        if !METHODS.contains(&method) && method != "ident" {
            return Err(Failure::from(format!(
                "error: invalid authentication method \"{method}\" for \"local\" or \"host\" connections"
            )));
        }
    }
    let has_password = init.prompts || init.password_file.is_some();
    if [init.local(), init.host()].iter().any(|m| WITH_PASSWORD.contains(m)) && !has_password {
        return Err(Failure::from(
            "error: must specify a password for the superuser to enable password authentication",
        ));
    }
    if init.prompts && init.password_file.is_some() {
        return Err(Failure::from(
            "error: password prompt and password file cannot be specified together",
        ));
    }
    Ok(())
}

fn make(init: &Init, dir: &Path) -> Result<ExitCode, Failure> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let user = user.map_or_else(|| "postgres".to_owned(), |user| user.name);
    println!(
        "The files belonging to this database system will be owned by user \"{user}\".\n\
         This user must also own the server process.\n\n\
         The default database encoding is \"UTF8\".\n\nData page checksums are enabled.\n"
    );
    let mut args: Vec<OsString> =
        vec!["init".into(), "-D".into(), dir.into(), "--auth".into(), "trust".into()];
    let username = init.username.clone().unwrap_or(user);
    args.extend(["--username".into(), username.into()]);
    if let Some(file) = &init.password_file {
        args.extend(["--pwfile".into(), file.into()]);
    }
    if let Some(size) = &init.segment_size {
        args.extend(["--wal-segsize".into(), size.into()]);
    }
    for (given, option) in
        [(init.prompts, "--pwprompt"), (init.group_access, "--allow-group-access")]
    {
        if given {
            args.push(option.into());
        }
    }
    let made = match init.prompts {
        // It asks at the terminal.
        true => {
            let code = program::run_server(&args)?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
            None
        }
        false => Some(program::ask_server(&args)?),
    };
    if let Some(made) = made.filter(|made| !made.status.success()) {
        let said = String::from_utf8_lossy(&made.stderr);
        let said = said.trim().trim_start_matches("threadgres: ");
        return Err(Failure::from(format!("error: {said}")));
    }
    let failed = |name: &str, e: std::io::Error| {
        Failure::from(format!("error: could not write file \"{name}\": {e}"))
    };
    std::fs::write(dir.join("pg_hba.conf"), rules(init)).map_err(|e| failed("pg_hba.conf", e))?;
    let path = dir.join("postgresql.conf");
    let mut conf = std::fs::read_to_string(&path).unwrap_or_default();
    for (name, value) in &init.settings {
        let _ = writeln!(conf, "\n{name} = {}", base::config_file::quote(value));
    }
    std::fs::write(&path, conf).map_err(|e| failed("postgresql.conf", e))?;
    if init.syncs {
        print!("syncing data to disk ... ");
        sync(dir)?;
        println!("ok");
    }
    say_done(init, dir);
    Ok(ExitCode::SUCCESS)
}

fn say_done(init: &Init, dir: &Path) {
    if init.auth_local.is_none() || init.auth_host.is_none() {
        eprintln!(
            "\ninitdb: warning: enabling \"trust\" authentication for local connections\n\
             initdb: hint: You can change this by editing pg_hba.conf or using the option -A, or --auth-local and \
             --auth-host, the next time you run initdb."
        );
    }
    if !init.quiet_start {
        let program: Vec<String> =
            program::named("pg_ctl").iter().map(|part| part.display().to_string()).collect();
        println!(
            "\nSuccess. You can now start the database server using:\n\n    {} -D {} -l logfile start\n",
            program.join(" "),
            dir.display()
        );
    }
}

fn rules(init: &Init) -> String {
    let (local, host) = (init.local(), init.host());
    format!(
        "# Who may connect, and how. The first line that fits decides; if none does, the client is refused.\n\
         # Changes take effect with: pg_ctl reload, SIGHUP, or SELECT pg_reload_conf().\n\
         #\n\
         # TYPE  DATABASE        USER            ADDRESS                 METHOD\n\n\
         # \"local\" is for Unix domain socket connections only\n\
         local   all             all                                     {local}\n\
         # IPv4 local connections:\n\
         host    all             all             127.0.0.1/32            {host}\n\
         # IPv6 local connections:\n\
         host    all             all             ::1/128                 {host}\n\
         # Allow replication connections from localhost, by a user with the\n\
         # replication privilege.\n\
         local   replication     all                                     {local}\n\
         host    replication     all             127.0.0.1/32            {host}\n\
         host    replication     all             ::1/128                 {host}\n"
    )
}

/// Makes a folder durable with all that it holds.
pub fn sync(dir: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| {
        Failure::from(format!("error: could not fsync file \"{}\": {e}", path.display()))
    };
    for entry in std::fs::read_dir(dir).map_err(|e| failed(dir, e))? {
        let path = entry.map_err(|e| failed(dir, e))?.path();
        if path.is_dir() {
            sync(&path)?;
        } else if let Ok(file) = std::fs::File::open(&path) {
            file.sync_all().map_err(|e| failed(&path, e))?;
        }
    }
    std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| failed(dir, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Init, Failure> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_of_cluster_managers_are_read() {
        let init = read("-D d --encoding=UTF8 --data-checksums -A scram-sha-256 --pwfile=x --locale=C.UTF-8 -U adm -T english")
            .unwrap();
        assert!(check(&init).is_ok());
        assert_eq!((init.local(), init.host()), ("scram-sha-256", "scram-sha-256"));
        assert_eq!(init.username.as_deref(), Some("adm"));
        assert_eq!(init.settings.len(), 5);
        assert!(rules(&init).contains(
            "host    replication     all             ::1/128                 scram-sha-256"
        ));
        assert!(read("-E LATIN1").is_err());
        assert!(check(&read("-A md5").unwrap()).is_err());
        assert!(check(&read("-A nonsense").unwrap()).is_err());
        assert_eq!(read("--auth-local peer -A trust d").unwrap().local(), "peer");
    }
}
