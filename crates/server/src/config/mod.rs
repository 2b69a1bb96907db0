//! The server's settings: defaults, then `postgresql.conf` with the files that it includes, then
//! `postgresql.auto.conf` (written by ALTER SYSTEM), then the command line. Later ones win.
//!
//! As in PostgreSQL (manual, section 20.1), a start fails on anything that is wrong in a file. A reload that meets a line
//! without meaning or an unknown name changes nothing; a value that is out of its range, or needs a restart, keeps that one
//! setting as it was. `pg_file_settings` shows the lines with what is wrong with them.

mod files;
mod sample;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{self, Context, Origin, SettingId, Settings, Source, setting};
use base::{Error, Lsn, Result, config_file, err};

use crate::log;
use crate::session::checks;
pub use files::{AUTO_FILE, Entry, FILE};
use files::{Files, is_foreign};
pub use sample::write_default;

/// `name=value` pairs from the command line.
pub type Overrides = Vec<(String, String)>;

/// `pg_file_settings`' words for a value that is not in force.
const NOT_APPLIED: &str = "setting could not be applied";

/// A complete set of values, with those of settings that only clients know (`my.setting`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// The table's.
    pub settings: Settings,
    /// The others, by name in lower case.
    pub custom: BTreeMap<String, String>,
}

/// The settings and the files and command line that they come from.
pub struct Config {
    dir: PathBuf,
    overrides: Overrides,
    /// Damage of the log at this position is accepted.
    pub accept_loss_from: Option<Lsn>,
    /// The values in force.
    pub values: Arc<Values>,
    /// Their origins, by the number of the setting.
    pub origins: Vec<Origin>,
}

/// The content of the files, compared with the settings in force.
struct Examined {
    entries: Vec<Entry>,
    values: Values,
    origins: Vec<Origin>,
    /// The faults, for the log.
    errors: Vec<Error>,
    /// Every line means something: what is sound of it may be put in force.
    is_readable: bool,
}

impl Config {
    /// Reads the files of a data directory (those that exist) and applies the command line.
    ///
    /// # Errors
    /// One clear line: an unknown name, a bad value, a line that can't be read.
    pub fn load(dir: &Path, overrides: Overrides) -> Result<Config> {
        let files = Files::read(dir, &overrides)?;
        let examined = examine(dir, files, &overrides, None)?;
        let mut errors = examined.errors.into_iter();
        if let Some(first) = errors.next() {
            errors.for_each(|error| log::error(0, &error, None));
            return Err(first.hint("correct or remove that line"));
        }
        Ok(Config {
            dir: dir.to_owned(),
            overrides,
            accept_loss_from: None,
            values: Arc::new(examined.values),
            origins: examined.origins,
        })
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The settings of the command line.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Reads the files again and puts in force what is sound of them; the log says what is not. Whether all is.
    ///
    /// # Errors
    /// `F0000`, I/O: when the files can't be read, or hold lines without meaning; then nothing has changed.
    pub fn reload(&mut self) -> Result<bool> {
        let files = Files::read(&self.dir, &self.overrides)?;
        let main = files.main.display().to_string();
        let examined = examine(&self.dir, files, &self.overrides, Some(self))?;
        for error in &examined.errors {
            log::error(0, error, None);
        }
        if !examined.is_readable {
            return Err(err!(
                CONFIG_FILE_ERROR,
                "configuration file \"{main}\" contains errors; no changes were applied"
            ));
        }
        if !examined.errors.is_empty() {
            log::info(format_args!(
                "configuration file \"{main}\" contains errors; unaffected changes were applied"
            ));
        }
        self.values = Arc::new(examined.values);
        self.origins = examined.origins;
        Ok(examined.errors.is_empty())
    }

    /// The files' lines as they are now, as `pg_file_settings` shows them.
    ///
    /// # Errors
    /// When the files can't be read.
    pub fn file_entries(&self) -> Result<Vec<Entry>> {
        let files = Files::read(&self.dir, &self.overrides)?;
        Ok(examine(&self.dir, files, &self.overrides, Some(self))?.entries)
    }

    /// ALTER SYSTEM: writes one setting (or takes it out; None for the name: all) to the file that
    /// the next reload reads.
    ///
    /// # Errors
    /// Unknown names, bad values, settings that are nobody's to set; I/O errors.
    pub fn alter_system(&self, name: Option<&str>, value: Option<&str>) -> Result<()> {
        let mut lines = match name {
            Some(_) => files::auto_lines(&self.dir)?,
            None => Vec::new(),
        };
        if let Some(name) = name {
            let id = SettingId::find(name).ok_or_else(|| settings::unrecognized(name))?;
            let def = id.def();
            if is_not_for_auto_file(id) {
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
        let mut text = "# Do not edit this file manually!\n\
                        # It will be overwritten by the ALTER SYSTEM command.\n"
            .to_owned();
        for (name, value) in lines {
            text += &format!("{name} = {}\n", config_file::quote(&value));
        }
        files::replace_auto(&self.dir, &text)
    }
}

/// Whether ALTER SYSTEM may not set it.
fn is_not_for_auto_file(id: SettingId) -> bool {
    id.def().context == Context::Internal
        || matches!(id, setting::CONFIG_FILE | setting::DATA_DIRECTORY)
}

/// The data directory, and the settings of the command line, where `-D` names a folder whose configuration says that the
/// data lie elsewhere.
///
/// # Errors
/// As [`Config::load`].
pub fn locate(dir: &Path, mut overrides: Overrides) -> Result<(PathBuf, Overrides)> {
    let files = Files::read(dir, &overrides)?;
    let in_files = files.entries.iter().filter_map(|e| Some((e.name.as_ref()?, &e.value)));
    let given = overrides.iter().map(|(name, value)| (name, value));
    let elsewhere =
        in_files.chain(given).filter(|(name, _)| is_named(name, setting::DATA_DIRECTORY));
    let Some(elsewhere) = elsewhere.last().map(|(_, value)| PathBuf::from(value)) else {
        return Ok((dir.to_owned(), overrides));
    };
    if elsewhere.as_os_str().is_empty() || elsewhere == dir {
        return Ok((dir.to_owned(), overrides));
    }
    let is_file_given = overrides.iter().any(|(name, _)| is_named(name, setting::CONFIG_FILE));
    if !is_file_given && files.main.exists() {
        overrides
            .push((setting::CONFIG_FILE.def().name.to_owned(), files.main.display().to_string()));
    }
    Ok((elsewhere, overrides))
}

/// The value of one setting, as SHOW prints it, with which a server of the directory would start.
///
/// # Errors
/// As [`Config::load`]; `42704` for a name that is none.
pub fn shown(dir: &Path, overrides: Overrides, name: &str) -> Result<String> {
    let id = SettingId::find(name).ok_or_else(|| settings::unrecognized(name))?;
    let config = Config::load(dir, overrides)?;
    Ok(settings::show(id, config.values.settings.get(id)))
}

fn is_named(name: &str, id: SettingId) -> bool {
    SettingId::find(&name.replace('-', "_")) == Some(id)
}

/// Whether a setting that the table does not have may have this name.
fn is_custom_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii())
    };
    name.contains('.') && name.split('.').all(part)
}

/// Makes values of the files' lines and the command line. With a configuration in force, what can't be changed keeps its
/// value there.
///
/// # Errors
/// Faults of the command line.
fn examine(
    dir: &Path,
    files: Files,
    overrides: &Overrides,
    current: Option<&Config>,
) -> Result<Examined> {
    let Files { main, mut entries } = files;
    let mut errors = find_names(&mut entries);
    let mut examined = Examined {
        entries: Vec::new(),
        values: Values::default(),
        origins: vec![Origin::default(); settings::SETTINGS.len()],
        errors: Vec::new(),
        is_readable: errors.is_empty(),
    };
    let given: HashSet<SettingId> =
        overrides.iter().filter_map(|(name, _)| SettingId::find(&name.replace('-', "_"))).collect();
    let is_readable = examined.is_readable;
    for entry in entries.iter_mut().filter(|entry| is_readable && entry.counts()) {
        if let Err(error) = examined.take(entry, &given, current) {
            entry.error = Some(NOT_APPLIED.to_owned());
            errors.push(in_file(error, entry));
        } else {
            entry.applied = entry.error.is_none();
        }
    }
    if let Some(current) = current.filter(|_| examined.is_readable) {
        errors.extend(examined.keep_what_needs_a_restart(current, &mut entries, &given));
    }
    for (name, value) in overrides {
        let name = name.replace('-', "_");
        let id = apply(&mut examined.values, &name, value)?;
        if let Some(id) = id {
            examined.origins[usize::from(id.0)] =
                Origin { source: Source::CommandLine, ..Origin::default() };
        }
    }
    examined.set_places(dir, &main);
    (examined.entries, examined.errors) = (entries, errors);
    Ok(examined)
}

/// Marks entries that a later one of the same name replaces, and those whose names nobody knows.
fn find_names(entries: &mut [Entry]) -> Vec<Error> {
    let mut errors: Vec<Error> =
        entries.iter_mut().filter_map(|entry| entry.fault.take()).collect();
    let mut seen = HashSet::new();
    for entry in entries.iter_mut().rev() {
        let Some(name) = entry.name.as_ref().map(|name| name.to_lowercase()) else { continue };
        entry.is_replaced = !seen.insert(name.clone());
        if SettingId::find(&name).is_some() || is_custom_name(&name) {
            continue;
        }
        if is_foreign(&name) {
            entry.error = Some("setting has no effect in this server".to_owned());
            continue;
        }
        entry.error = Some("unrecognized configuration parameter".to_owned());
        errors.push(in_file(settings::unrecognized(&name), entry));
    }
    errors
}

impl Examined {
    /// Takes one line's value.
    fn take(
        &mut self,
        entry: &Entry,
        given: &HashSet<SettingId>,
        current: Option<&Config>,
    ) -> Result<()> {
        let Some(name) = &entry.name else { return Ok(()) };
        let Some(id) = SettingId::find(name) else {
            apply(&mut self.values, name, &entry.value)?;
            return Ok(());
        };
        let place = Some((entry.file.clone(), entry.line));
        let before = |current: &Config| current.values.settings.get(id).clone();
        match apply(&mut self.values, name, &entry.value) {
            Ok(_) if given.contains(&id) => {}
            Ok(_) => {
                self.origins[usize::from(id.0)] =
                    Origin { source: Source::File, place, pending_restart: false };
            }
            Err(error) => {
                if let Some(current) = current {
                    self.values.settings.set(id, before(current));
                    self.origins[usize::from(id.0)] = current.origins[usize::from(id.0)].clone();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Settings that are read at a start only keep their values, and are marked.
    fn keep_what_needs_a_restart(
        &mut self,
        current: &Config,
        entries: &mut [Entry],
        given: &HashSet<SettingId>,
    ) -> Vec<Error> {
        let mut errors = Vec::new();
        for (index, def) in settings::SETTINGS.iter().enumerate() {
            let id = SettingId(index as u16);
            let old = current.values.settings.get(id);
            let is_fixed = def.context == Context::Postmaster && !given.contains(&id);
            if !is_fixed || is_place(id) || self.values.settings.get(id) == old {
                continue;
            }
            self.values.settings.set(id, old.clone());
            self.origins[index] =
                Origin { pending_restart: true, ..current.origins[index].clone() };
            let error = err!(
                CANT_CHANGE_RUNTIME_PARAM,
                "parameter \"{}\" cannot be changed without restarting the server",
                def.name
            );
            let of_it = |entry: &&mut Entry| {
                entry.counts()
                    && entry.name.as_ref().is_some_and(|n| n.eq_ignore_ascii_case(def.name))
            };
            if let Some(entry) = entries.iter_mut().find(of_it) {
                (entry.applied, entry.error) = (false, Some(NOT_APPLIED.to_owned()));
            }
            errors.push(error);
        }
        errors
    }

    /// The places of the directory and its files, which the settings show whether or not somebody set them.
    fn set_places(&mut self, dir: &Path, main: &Path) {
        let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let path = |path: PathBuf| settings::Value::Str(path.display().to_string().into());
        let mut set = |id: SettingId, value: PathBuf| {
            self.values.settings.set(id, path(value));
            self.origins[usize::from(id.0)].source = Source::Override;
        };
        set(setting::DATA_DIRECTORY, full.clone());
        set(setting::CONFIG_FILE, main.to_owned());
        for (id, name) in [
            (setting::HBA_FILE, crate::client_auth::HBA_FILE),
            (setting::IDENT_FILE, crate::client_auth::IDENT_FILE),
        ] {
            let given = self.values.settings.str(id);
            let place = match given {
                "" => full.join(name),
                given => std::path::absolute(given).unwrap_or_else(|_| given.into()),
            };
            self.values.settings.set(id, path(place));
            if self.origins[usize::from(id.0)].source == Source::Default {
                self.origins[usize::from(id.0)].source = Source::Override;
            }
        }
    }
}

/// Settings that [`Examined::set_places`] fills in.
fn is_place(id: SettingId) -> bool {
    matches!(
        id,
        setting::DATA_DIRECTORY | setting::CONFIG_FILE | setting::HBA_FILE | setting::IDENT_FILE
    )
}

fn in_file(error: Error, entry: &Entry) -> Error {
    let text = format!("{} in file \"{}\" line {}", error.message(), entry.file, entry.line);
    Error::new(error.code(), text)
}

/// Puts a value in; the setting, unless it is one that the table does not have.
fn apply(values: &mut Values, name: &str, value: &str) -> Result<Option<SettingId>> {
    match SettingId::find(name) {
        Some(id) if id.def().context == Context::Internal => Err(err!(
            CANT_CHANGE_RUNTIME_PARAM,
            "parameter \"{}\" cannot be changed",
            id.def().name
        )),
        Some(id) => {
            values.settings.set(id, checks::parse(id, value)?);
            Ok(Some(id))
        }
        None if is_custom_name(name) => {
            values.custom.insert(name.to_lowercase(), value.to_owned());
            Ok(None)
        }
        None => Err(settings::unrecognized(name).hint(
            "see the settings in docs/reference/settings.md, or SHOW ALL on a running server",
        )),
    }
}

#[cfg(test)]
mod tests;
