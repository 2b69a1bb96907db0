//! The server's settings: defaults, then `threadgres.conf`, then `threadgres.auto.conf` (written by
//! ALTER SYSTEM), then the command line. Later ones win.
//!
//! A reload reads the files again and either takes all of them or, when anything is wrong, nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{self, Context, SettingId, Settings, setting};
use base::{Error, Lsn, Result, err};

use crate::log;
use crate::session::checks;

/// The main file.
pub const FILE: &str = "threadgres.conf";
/// The file that ALTER SYSTEM writes.
pub const AUTO_FILE: &str = "threadgres.auto.conf";

/// `name=value` pairs from the command line.
pub type Overrides = Vec<(String, String)>;

/// A complete set of values, with those of settings that only clients know (`my.setting`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The table's.
    pub settings: Settings,
    /// The others, by name in lower case.
    pub custom: BTreeMap<String, String>,
}

/// Where the settings come from, and what they are.
pub struct Config {
    dir: PathBuf,
    overrides: Overrides,
    /// Damage of the log at this position is accepted.
    pub accept_loss_from: Option<Lsn>,
    /// The values in force.
    pub values: Arc<Values>,
}

impl Config {
    /// Reads the files of a data directory (those that exist) and applies the command line.
    ///
    /// # Errors
    /// One clear line: an unknown name, a bad value, a line that can't be read.
    pub fn load(dir: &Path, overrides: Overrides) -> Result<Config> {
        let values = read(dir, &overrides)?;
        let (dir, values) = (dir.to_owned(), Arc::new(values));
        Ok(Config { dir, overrides, accept_loss_from: None, values })
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The settings of the command line.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Reads the files again. Settings that can't change while running keep their values, and the
    /// log says so.
    ///
    /// # Errors
    /// As [`Config::load`]; then nothing has changed.
    pub fn reload(&mut self) -> Result<()> {
        let mut values = read(&self.dir, &self.overrides)?;
        for (index, def) in settings::SETTINGS.iter().enumerate() {
            let id = SettingId(index as u16);
            let old = self.values.settings.get(id);
            if def.context == Context::Postmaster && values.settings.get(id) != old {
                log::info(format_args!(
                    "parameter \"{}\" cannot be changed without restarting the server",
                    def.name
                ));
                values.settings.set(id, old.clone());
            }
        }
        self.values = Arc::new(values);
        Ok(())
    }

    /// ALTER SYSTEM: writes one setting (or takes it out; None for the name: all) to the file that
    /// the next reload reads.
    ///
    /// # Errors
    /// Unknown names, bad values, settings that are nobody's to set; I/O errors.
    pub fn alter_system(&self, name: Option<&str>, value: Option<&str>) -> Result<()> {
        let path = self.dir.join(AUTO_FILE);
        let mut lines = if name.is_some() { read_file(&path)? } else { Vec::new() };
        if let Some(name) = name {
            let id = SettingId::find(name).ok_or_else(|| settings::unrecognized(name))?;
            let def = id.def();
            if def.context == Context::Internal {
                return Err(err!(
                    CANT_CHANGE_RUNTIME_PARAM,
                    "parameter \"{}\" cannot be changed",
                    def.name
                ));
            }
            lines.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
            if let Some(value) = value {
                checks::parse(id, value)?;
                if value.contains('\n') {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "parameter value for ALTER SYSTEM must not contain a newline"
                    ));
                }
                lines.push((def.name.to_owned(), value.to_owned()));
            }
        }
        let mut text = "# Written by ALTER SYSTEM. Do not edit: it is overwritten.\n".to_owned();
        for (name, value) in lines {
            let value = value.replace('\\', "\\\\").replace('\'', "''");
            text += &format!("{name} = '{value}'\n");
        }
        replace_file(&path, &text)
    }
}

/// Writes a file so that after a crash there is the old or the new one, whole.
fn replace_file(path: &Path, text: &str) -> Result<()> {
    let failed = |e| Error::io(format_args!("write file \"{}\"", path.display()), &e);
    let new = path.with_extension("new");
    let write = || {
        let mut file = std::fs::File::create(&new)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        std::fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(failed)
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>> {
    match std::fs::read_to_string(path) {
        Ok(text) => settings::parse_file(&path.display().to_string(), &text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io(format_args!("read file \"{}\"", path.display()), &e)),
    }
}

fn read(dir: &Path, overrides: &Overrides) -> Result<Values> {
    let mut values = Values::default();
    for file in [FILE, AUTO_FILE] {
        let path = dir.join(file);
        for (name, value) in read_file(&path)? {
            apply(&mut values, &name, &value).map_err(|e| in_file(e, &path))?;
        }
    }
    for (name, value) in overrides {
        apply(&mut values, name, value)?;
    }
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    for (id, path) in [
        (setting::DATA_DIRECTORY, full.clone()),
        (setting::CONFIG_FILE, full.join(FILE)),
        (setting::HBA_FILE, full.join(crate::client_auth::HBA_FILE)),
        (setting::IDENT_FILE, full.join("pg_ident.conf")),
    ] {
        values.settings.set(id, settings::Value::Str(path.display().to_string().into()));
    }
    Ok(values)
}

fn in_file(error: Error, path: &Path) -> Error {
    let code = error.code();
    Error::new(code, format!("{} in file \"{}\"", error.message(), path.display()))
        .hint("correct or remove that line")
}

fn apply(values: &mut Values, name: &str, value: &str) -> Result<()> {
    match SettingId::find(name) {
        Some(id) if id.def().context == Context::Internal => Err(err!(
            CANT_CHANGE_RUNTIME_PARAM,
            "parameter \"{}\" cannot be changed",
            id.def().name
        )),
        Some(id) => {
            values.settings.set(id, checks::parse(id, value)?);
            Ok(())
        }
        None if name.contains('.') => {
            values.custom.insert(name.to_lowercase(), value.to_owned());
            Ok(())
        }
        None => Err(settings::unrecognized(name).hint(
            "see the settings in docs/reference/settings.md, or SHOW ALL on a running server",
        )),
    }
}

/// Writes the commented `threadgres.conf` of a new data directory.
///
/// # Errors
/// I/O errors.
pub fn write_default(dir: &Path) -> Result<()> {
    const MAIN: &[SettingId] = &[
        setting::LISTEN_ADDRESSES,
        setting::PORT,
        setting::UNIX_SOCKET_DIRECTORIES,
        setting::MAX_CONNECTIONS,
        setting::WORKERS,
        setting::SESSION_MODEL,
        setting::SHARED_BUFFERS,
        setting::WORK_MEM,
        setting::PLAN_CACHE_SIZE,
        setting::FSYNC,
        setting::SYNCHRONOUS_COMMIT,
        setting::MAX_WAL_SIZE,
        setting::CHECKPOINT_TIMEOUT,
        setting::DEADLOCK_TIMEOUT,
        setting::STATEMENT_TIMEOUT,
        setting::LOCK_TIMEOUT,
        setting::AUTOVACUUM,
        setting::LOG_MIN_MESSAGES,
        setting::TIMEZONE,
        setting::DATESTYLE,
    ];
    let mut text = "# Threadgres settings. A line is name = value; # begins a comment.\n\
                    # After a change: threadgres reload -D DIR, or SELECT pg_reload_conf().\n\
                    # Settings marked (restart) are read at start only.\n"
        .to_owned();
    for id in MAIN {
        let def = id.def();
        let value = settings::show(*id, &def.default.value());
        let quoted = matches!(def.kind, settings::Kind::String).then(|| format!("'{value}'"));
        let restart = if def.context == Context::Postmaster { " (restart)" } else { "" };
        text += &format!(
            "\n# {}{restart}\n#{} = {}\n",
            def.description,
            def.name,
            quoted.unwrap_or(value)
        );
    }
    replace_file(&dir.join(FILE), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("threadgres-config-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory can be made");
        dir
    }

    #[test]
    fn later_sources_win_and_the_default_file_says_nothing() {
        let dir = dir("order");
        write_default(&dir).unwrap();
        let config = Config::load(&dir, vec![]).unwrap();
        let mut defaults = Settings::default();
        // Where the files are is known only now.
        for id in
            [setting::CONFIG_FILE, setting::DATA_DIRECTORY, setting::HBA_FILE, setting::IDENT_FILE]
        {
            defaults.set(id, config.values.settings.get(id).clone());
        }
        assert_eq!(config.values.settings, defaults);
        config.alter_system(Some("work_mem"), Some("1MB")).unwrap();
        config.alter_system(Some("search_path"), Some(r#""a'b\", public"#)).unwrap();
        let config = Config::load(&dir, vec![("port".into(), "7".into())]).unwrap();
        let settings = &config.values.settings;
        assert_eq!(settings.int(setting::WORK_MEM), 1024);
        assert_eq!(settings.str(setting::SEARCH_PATH), r#""a'b\", public"#);
        assert_eq!(settings.int(setting::PORT), 7);
        config.alter_system(None, None).unwrap();
        let config = Config::load(&dir, vec![]).unwrap();
        assert_eq!(config.values.settings, defaults);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_bad_line_names_its_file_and_a_reload_with_one_changes_nothing() {
        let dir = dir("bad");
        std::fs::write(dir.join(FILE), "port = 1\nwork_mem = 1MB\n").unwrap();
        let mut config = Config::load(&dir, vec![]).unwrap();
        std::fs::write(dir.join(FILE), "work_mem = 2MB\nnonsense = 1\n").unwrap();
        let error = config.reload().unwrap_err();
        assert!(error.message().contains("nonsense"), "{error}");
        assert!(error.message().contains(FILE), "{error}");
        assert_eq!(config.values.settings.int(setting::WORK_MEM), 1024);
        std::fs::write(dir.join(FILE), "work_mem = 2MB\nport = 2\n").unwrap();
        config.reload().unwrap();
        assert_eq!(config.values.settings.int(setting::WORK_MEM), 2048);
        assert_eq!(config.values.settings.int(setting::PORT), 1, "needs a restart");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
