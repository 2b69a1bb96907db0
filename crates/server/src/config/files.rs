//! The configuration files, read into one list of lines: `include`, `include_if_exists` and `include_dir` are followed,
//! and a line that can't be read is an entry with its fault.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{SettingId, setting};
use base::{Error, Result, config_file, err};

use super::Overrides;

/// The main file.
pub const FILE: &str = "postgresql.conf";
/// The file that ALTER SYSTEM writes.
pub const AUTO_FILE: &str = "postgresql.auto.conf";
/// Their names in directories that an earlier version made; read where the others are missing.
const OLD_FILE: &str = "threadgres.conf";
const OLD_AUTO_FILE: &str = "threadgres.auto.conf";
/// Files may include others so deep.
const MAX_DEPTH: u32 = 10;

/// Settings of other versions of PostgreSQL than the one that is followed. A file that has one still serves; the line is
/// shown with an error.
#[rustfmt::skip]
const FOREIGN: &[&str] = &[
    // Before 15.
    "add_missing_from", "checkpoint_segments", "custom_variable_classes", "default_with_oids", "krb_srvname",
    "min_parallel_relation_size", "operator_precedence_warning", "regex_flavor", "replacement_sort_tuples", "silent_mode",
    "sql_inheritance", "ssl_renegotiation_limit", "standby_mode", "stats_temp_directory", "trigger_file",
    "unix_socket_directory", "vacuum_cleanup_index_scale_factor", "wal_keep_segments", "wal_sender_delay",
    // 16.
    "createrole_self_grant", "debug_io_direct", "debug_logical_replication_streaming", "debug_parallel_query",
    "gss_accept_delegation", "icu_validation_level", "max_parallel_apply_workers_per_subscription",
    "reserved_connections", "scram_iterations", "send_abort_for_crash", "send_abort_for_kill", "vacuum_buffer_usage_limit",
    // 17.
    "allow_alter_system", "commit_timestamp_buffers", "enable_group_by_reordering", "event_triggers", "huge_pages_status",
    "io_combine_limit", "max_notify_queue_pages", "multixact_member_buffers", "multixact_offset_buffers", "notify_buffers",
    "restrict_nonsystem_relation_kind", "serializable_buffers", "subtransaction_buffers", "summarize_wal",
    "sync_replication_slots", "synchronized_standby_slots", "trace_connection_negotiation", "transaction_buffers",
    "wal_summary_keep_time",
    // 18.
    "autovacuum_vacuum_max_threshold", "autovacuum_worker_slots", "enable_distinct_reordering",
    "enable_self_join_elimination", "file_copy_method", "idle_replication_slot_timeout", "io_max_combine_limit",
    "io_max_concurrency", "io_method", "io_workers", "log_lock_failures", "max_active_replication_origins",
    "md5_password_warnings", "oauth_validator_libraries", "ssl_groups", "ssl_tls13_ciphers", "track_cost_delay_timing",
    "vacuum_max_eager_freeze_failure_rate", "vacuum_truncate",
];

/// Whether another version of PostgreSQL has a setting of this name, in lower case.
pub(super) fn is_foreign(name: &str) -> bool {
    FOREIGN.contains(&name)
}

/// A line of a file, as `pg_file_settings` shows it.
#[derive(Debug, Default)]
pub struct Entry {
    /// The file.
    pub file: Arc<str>,
    /// The line's number.
    pub line: u32,
    /// The setting; None: the line has no meaning.
    pub name: Option<String>,
    /// Its value.
    pub value: String,
    /// It is in force, or was, when the command line has another value.
    pub applied: bool,
    /// The fault of the line.
    pub error: Option<String>,
    /// The same for the log.
    pub(super) fault: Option<Error>,
    /// A later line has the same setting.
    pub(super) is_replaced: bool,
}

impl Entry {
    /// Whether its value is the one to be put in force.
    pub(super) fn counts(&self) -> bool {
        self.name.is_some() && !self.is_replaced && self.error.is_none()
    }
}

/// The lines of all files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The main file.
    pub main: PathBuf,
    /// The lines, in the order in which they count.
    pub entries: Vec<Entry>,
}

impl Files {
    /// Reads the main file, with those that it includes, and ALTER SYSTEM's.
    ///
    /// # Errors
    /// When the command line names a file that can't be read.
    pub(super) fn read(dir: &Path, overrides: &Overrides) -> Result<Files> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_config_file =
            |name: &str| SettingId::find(&name.replace('-', "_")) == Some(setting::CONFIG_FILE);
        let given = overrides.iter().rfind(|(name, _)| is_config_file(name));
        let main = match given {
            Some((_, path)) => absolute(Path::new(path)),
            None => older_if_alone(&absolute(dir), FILE, OLD_FILE),
        };
        let mut files = Files { main: main.clone(), entries: Vec::new() };
        if given.is_some() && !main.exists() {
            return Err(err!(
                CONFIG_FILE_ERROR,
                "could not access the server configuration file \"{}\": No such file or directory",
                main.display()
            ));
        }
        files.file(&main, &Place::top(false), 0);
        let auto = older_if_alone(&absolute(dir), AUTO_FILE, OLD_AUTO_FILE);
        files.file(&auto, &Place::top(false), 0);
        Ok(files)
    }

    /// Reads a file behind the lines that are there.
    fn file(&mut self, path: &Path, place: &Place, depth: u32) {
        let name: Arc<str> = path.display().to_string().into();
        if depth > MAX_DEPTH {
            return self.fault(
                place,
                "nesting depth exceeded".to_owned(),
                format!(
                    "could not open configuration file \"{name}\": maximum nesting depth exceeded"
                ),
            );
        }
        if place.file.as_ref().is_some_and(|(file, _)| *file == name) {
            return self.fault(
                place,
                "configuration file recursion".to_owned(),
                format!("configuration file recursion in \"{name}\""),
            );
        }
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !place.strict => return,
            Err(e) => {
                return self.fault(
                    place,
                    format!("could not open file \"{name}\""),
                    format!("could not open configuration file \"{name}\": {}", reason(&e)),
                );
            }
        };
        for line in config_file::parse(&text) {
            let at = Place { file: Some((name.clone(), line.number)), strict: true };
            match line.content {
                Err(near) => {
                    let message = near.message(&name, line.number);
                    let fault = Some(err!(SYNTAX_ERROR, "{message}"));
                    self.entries.push(Entry {
                        file: name.clone(),
                        line: line.number,
                        error: Some("syntax error".to_owned()),
                        fault,
                        ..Entry::default()
                    });
                }
                Ok((name, value)) => self.line(path, name, value, at, depth),
            }
        }
    }

    fn line(&mut self, path: &Path, name: String, value: String, at: Place, depth: u32) {
        let folder = path.parent().unwrap_or(Path::new("."));
        match name.to_lowercase().as_str() {
            word @ ("include" | "include_if_exists") => {
                if value.trim().is_empty() {
                    let text = format!("empty configuration file name: \"{value}\"");
                    return self.fault(&at, "empty configuration file name".to_owned(), text);
                }
                let at = Place { strict: word == "include", ..at };
                self.file(&folder.join(value), &at, depth + 1);
            }
            "include_dir" => {
                if value.trim().is_empty() {
                    let text = format!("empty configuration directory name: \"{value}\"");
                    return self.fault(&at, "empty configuration directory name".to_owned(), text);
                }
                self.folder(&folder.join(value), &at, depth + 1);
            }
            _ => {
                let Some((file, line)) = at.file else { return };
                self.entries.push(Entry {
                    file,
                    line,
                    name: Some(name),
                    value,
                    ..Entry::default()
                });
            }
        }
    }

    /// Reads the files of a folder that end in `.conf`, in the order of their names.
    fn folder(&mut self, folder: &Path, at: &Place, depth: u32) {
        let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let listed = match listed {
            Ok(listed) => listed,
            Err(e) => {
                let name = folder.display();
                return self.fault(
                    at,
                    format!("could not open directory \"{name}\""),
                    format!("could not open configuration directory \"{name}\": {}", reason(&e)),
                );
            }
        };
        let is_wanted = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.len() > ".conf".len()
                && name.ends_with(".conf")
                && !name.starts_with('.')
                && !path.is_dir()
        };
        let mut paths: Vec<PathBuf> =
            listed.into_iter().map(|entry| entry.path()).filter(is_wanted).collect();
        paths.sort();
        for path in paths {
            self.file(&path, at, depth);
        }
    }

    /// Notes what is wrong at a line; `shown` goes to `pg_file_settings`.
    fn fault(&mut self, place: &Place, shown: String, message: String) {
        let (file, line) = place.file.clone().unwrap_or_default();
        self.entries.push(Entry {
            file,
            line,
            error: Some(shown),
            fault: Some(err!(CONFIG_FILE_ERROR, "{message}")),
            ..Entry::default()
        });
    }
}

/// The line that names a file.
struct Place {
    file: Option<(Arc<str>, u32)>,
    /// The file must be there.
    strict: bool,
}

impl Place {
    fn top(strict: bool) -> Place {
        Place { file: None, strict }
    }
}

/// The system's words for an error, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn older_if_alone(dir: &Path, name: &str, older: &str) -> PathBuf {
    let path = dir.join(name);
    if !path.exists() && dir.join(older).exists() {
        return dir.join(older);
    }
    path
}

/// The settings of ALTER SYSTEM's file.
///
/// # Errors
/// `F0000` for lines without meaning; I/O.
pub(super) fn auto_lines(dir: &Path) -> Result<Vec<(String, String)>> {
    let path = older_if_alone(dir, AUTO_FILE, OLD_AUTO_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::io(format_args!("read file \"{}\"", path.display()), &e)),
    };
    let lines = config_file::parse(&text).into_iter().map(|line| line.content);
    lines.collect::<Result<_, _>>().map_err(|_| {
        err!(CONFIG_FILE_ERROR, "could not parse contents of file \"{}\"", path.display())
    })
}

/// Replaces ALTER SYSTEM's file, and takes away the one that an earlier version wrote.
///
/// # Errors
/// I/O.
pub(super) fn replace_auto(dir: &Path, text: &str) -> Result<()> {
    replace_file(&dir.join(AUTO_FILE), text)?;
    // If it stays it is no longer read.
    let _ = std::fs::remove_file(dir.join(OLD_AUTO_FILE));
    Ok(())
}

/// Writes a file so that after a crash there is the old or the new one, whole.
pub(super) fn replace_file(path: &Path, text: &str) -> Result<()> {
    let failed = |e| Error::io(format_args!("write file \"{}\"", path.display()), &e);
    let new = path.with_extension("tmp");
    let write = || {
        let mut file = std::fs::File::create(&new)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(failed)
}
