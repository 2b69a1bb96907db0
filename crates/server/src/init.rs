//! Making a new data directory: its files, its rules, and the first role's password.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};

use base::settings::{Settings, Value, live_bool, publish_live, setting};
use base::{Error, Result, err};
use catalog::object::ids;
use catalog::{CatalogTx, Object, Role};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use storage::Storage;
use txn::Isolation;
use wire::scram::{self, Verifier};

use crate::{client_auth, config, control, directory, postmaster};

/// The options of `threadgres init`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitOptions {
    /// How clients on this machine log in, as `pg_hba.conf` calls it; None: `trust`.
    pub auth: Option<String>,
    /// Asks for the superuser's password.
    pub prompt: bool,
    /// Reads it from a file's first line.
    pub password_file: Option<PathBuf>,
    /// Lets the owner's group read.
    pub group_access: bool,
    /// The first role's name; None: `postgres`.
    pub superuser: Option<String>,
    /// Megabytes of a segment of the log; None: the usual ones.
    pub segment_size_mb: Option<u64>,
}

/// Bytes of a role's name, without the end that PostgreSQL's clients count.
const NAME_BYTES_MAX: usize = 63;

/// Methods that `--auth` knows, and whether they want a password.
const METHODS: [(&str, bool); 6] = [
    ("trust", false),
    ("reject", false),
    ("peer", false),
    ("scram-sha-256", true),
    ("md5", true),
    ("password", true),
];

/// Makes a new data directory.
///
/// # Errors
/// `55000` when it holds anything; what is wrong with the options; I/O errors. Nothing is made unless the
/// options are sound.
pub fn init(dir: &Path, options: &InitOptions) -> Result<()> {
    crate::packages::register();
    if !control::is_new(dir)? {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "directory \"{}\" is already initialised",
            dir.display()
        )
        .hint("serve it, or choose another directory"));
    }
    let method = options.auth.as_deref().unwrap_or("trust");
    let Some((_, wants)) = METHODS.iter().find(|(name, _)| *name == method) else {
        base::bail!(INVALID_PARAMETER_VALUE, "invalid authentication method \"{method}\"");
    };
    if let Some(name) = &options.superuser {
        check_name(name)?;
    }
    let password = password(options)?;
    if *wants && password.is_none() {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "must specify a password for the superuser to enable password authentication"
        )
        .hint("--pwprompt asks for it, --pwfile FILE reads it."));
    }
    if let Some(size) = options.segment_size_mb {
        let mut settings = Settings::default();
        settings.set(setting::WAL_SEGMENT_SIZE, Value::Int((size << 20) as i64));
        publish_live(&settings);
    }
    directory::claim(dir, options.group_access)?;
    Storage::create(dir)?;
    client_auth::write_rules(dir, method)?;
    config::write_default(dir)?;
    postmaster::write_version(dir)?;
    if password.is_some() || options.superuser.is_some() {
        set_first_role(dir, options.superuser.as_deref(), password.as_deref())?;
    }
    match live_bool(setting::FSYNC) {
        true => directory::sync(dir),
        false => Ok(()),
    }
}

fn password(options: &InitOptions) -> Result<Option<String>> {
    if let Some(path) = &options.password_file {
        let failed = |e| Error::io(format_args!("read file \"{}\"", path.display()), &e);
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let line = text.lines().next().unwrap_or_default();
        if line.is_empty() {
            base::bail!(INVALID_PARAMETER_VALUE, "password file \"{}\" is empty", path.display());
        }
        return Ok(Some(line.to_owned()));
    }
    if !options.prompt {
        return Ok(None);
    }
    let failed = |e| Error::io("read the password", &e);
    let first = ask("Enter new superuser password: ").map_err(failed)?;
    if first != ask("Enter it again: ").map_err(failed)? {
        base::bail!(INVALID_PARAMETER_VALUE, "Passwords didn't match.");
    }
    if first.is_empty() {
        base::bail!(INVALID_PARAMETER_VALUE, "the password is empty");
    }
    Ok(Some(first))
}

/// A line from the terminal that it does not show, or from the standard input when there is none.
fn ask(prompt: &str) -> std::io::Result<String> {
    let mut line = String::new();
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty");
    let Ok(mut terminal) = terminal else {
        std::io::stdin().lock().read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    };
    terminal.write_all(prompt.as_bytes())?;
    let shown = terminal.is_terminal().then(|| tcgetattr(&terminal)).transpose()?;
    if let Some(shown) = &shown {
        let mut hidden = shown.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&terminal, SetArg::TCSAFLUSH, &hidden)?;
    }
    let read = BufReader::new(&terminal).read_line(&mut line);
    if let Some(shown) = &shown {
        tcsetattr(&terminal, SetArg::TCSAFLUSH, shown)?;
        terminal.write_all(b"\n")?;
    }
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Refuses what CREATE ROLE refuses, and names that the catalog would cut.
fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        return Err(err!(RESERVED_NAME, "role name \"{name}\" is reserved")
            .detail("Role names starting with \"pg_\" are reserved."));
    }
    let reserved = ["public", "none", "current_user", "current_role", "session_user", "user"];
    if reserved.contains(&name) {
        base::bail!(RESERVED_NAME, "role name \"{name}\" is reserved");
    }
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        base::bail!(
            INVALID_NAME,
            "the first role's name must have 1 to {NAME_BYTES_MAX} bytes: \"{name}\""
        );
    }
    Ok(())
}

/// Gives the first role its name and password.
fn set_first_role(dir: &Path, name: Option<&str>, password: Option<&str>) -> Result<()> {
    let verifier = password.map(verifier_of).transpose()?;
    let txn = txn::TxnManager::new(dir);
    let storage = Storage::open(dir, txn.participant(None))?;
    txn.attach(&storage);
    let catalog = catalog::Catalog::open(&storage, &txn)?;
    let database = catalog
        .database(ids::POSTGRES_DB)
        .ok_or_else(|| Error::internal("a new directory has no database"))?;
    let task = sched::current();
    let owner = txn.new_owner(&task, task.pid());
    let tx = txn.begin(&owner, Isolation::ReadCommitted, false);
    let mut changes = CatalogTx::new(&catalog, &database);
    let view = changes.view();
    let Some(role) = view.role(ids::SUPERUSER) else {
        return Err(Error::internal("a new directory has no role"));
    };
    let mut role = Role::clone(role);
    role.password = verifier;
    if let Some(name) = name {
        role.name = name.into();
    }
    changes.put(&tx, Object::Role(role))?;
    tx.set_publishes();
    let lsn = tx.commit(&[], |csn| changes.publish(csn))?;
    storage.wal.flush(lsn)?;
    changes.committed();
    storage.shutdown()
}

/// The form in which the catalog keeps a password.
fn verifier_of(password: &str) -> Result<String> {
    let mut salt = [0; scram::SALT_BYTES];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut salt))
        .map_err(|e| Error::io("read /dev/urandom", &e))?;
    Ok(Verifier::new(password, &salt, scram::ITERATIONS, &mut || Ok(()))?.to_string())
}
