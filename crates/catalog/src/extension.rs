//! Extensions that can be installed: control files and scripts, those that come with the server and those of a
//! directory of the user's.
//!
//! ```text
//!   extensions/citext/citext.control              comment, default_version, threads, …
//!                     citext--1.6.sql             makes version 1.6
//!                     citext--1.5--1.6.sql        turns version 1.5 into 1.6
//! ```
//!
//! The format is PostgreSQL's ("Packaging Related Objects into an Extension"), with one parameter more, `threads`: what
//! the extension's code does with threads. Scripts in SQL and PL/pgSQL only need none. What says nothing and names a
//! library is refused: it was written for a process for each session.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use base::{Result, err};

/// Files of extensions: name and text.
pub type Files = &'static [(&'static str, &'static str)];

static EMBEDDED: Mutex<Files> = Mutex::new(&[]);

/// Makes the files known that come with the server.
pub fn embed(files: Files) {
    *EMBEDDED.lock().unwrap_or_else(PoisonError::into_inner) = files;
}

static PATH: Mutex<String> = Mutex::new(String::new());

/// Notes `extension_control_path`: at the start, and whenever it changes.
pub fn set_control_path(path: &str) {
    path.clone_into(&mut PATH.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Directories with extensions of the user's, separated by colons.
pub fn control_path() -> String {
    PATH.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// How safe an extension's code is beside other threads: `threads` of its control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Any number of sessions may run it at once.
    Safe,
    /// Its state lies in the session.
    Session,
    /// Nothing was said.
    Undeclared,
}

impl Threads {
    /// As control files write it.
    pub fn word(self) -> &'static str {
        match self {
            Threads::Safe => "safe",
            Threads::Session => "session",
            Threads::Undeclared => "undeclared",
        }
    }
}

/// A control file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The extension's name.
    pub name: String,
    /// The description of its purpose: `comment`.
    pub comment: Option<String>,
    /// The version that CREATE EXTENSION makes.
    pub default_version: Option<String>,
    /// The library that replaces MODULE_PATHNAME in its scripts: `module_pathname`.
    pub module: Option<String>,
    /// Extensions that it needs.
    pub requires: Vec<String>,
    /// Only superusers may install it.
    pub superuser: bool,
    /// A role with CREATE on the database may install it; its scripts run as a superuser.
    pub trusted: bool,
    /// Its objects may move to another schema.
    pub relocatable: bool,
    /// The schema that it must be in.
    pub schema: Option<String>,
    /// How safe its code is beside other threads.
    pub threads: Threads,
    /// Why it is so.
    pub reason: Option<String>,
    /// Scripts, by their names.
    pub scripts: BTreeMap<String, String>,
    /// It comes with the server.
    pub embedded: bool,
}

/// The items of a control file: `name = value`, a value in quotes or not, `#` begins a comment.
fn items(text: &str, file: &str) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = || {
            let message = format!("syntax error in file \"{file}\" line {}", n + 1);
            err!(SYNTAX_ERROR, "{message}")
        };
        let end = line.find(|c: char| c == '=' || c.is_whitespace()).ok_or_else(bad)?;
        let (name, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
        let value = match rest.strip_prefix('\'') {
            Some(quoted) => {
                let mut value = String::new();
                let mut letters = quoted.chars().peekable();
                loop {
                    match letters.next() {
                        Some('\'') if letters.peek() == Some(&'\'') => {
                            letters.next();
                            value.push('\'');
                        }
                        Some('\'') => break,
                        Some('\\') => value.extend(letters.next()),
                        Some(other) => value.push(other),
                        None => return Err(bad()),
                    }
                }
                value
            }
            None => rest.split('#').next().unwrap_or_default().trim().to_owned(),
        };
        out.push((name.to_ascii_lowercase(), value));
    }
    Ok(out)
}

impl Control {
    /// Reads a control file.
    ///
    /// # Errors
    /// `42601`: it is not one; `22023`: a value is not.
    pub fn parse(name: &str, text: &str) -> Result<Control> {
        let mut control = Control {
            name: name.to_owned(),
            comment: None,
            default_version: None,
            module: None,
            requires: Vec::new(),
            superuser: true,
            trusted: false,
            relocatable: false,
            schema: None,
            threads: Threads::Undeclared,
            reason: None,
            scripts: BTreeMap::new(),
            embedded: false,
        };
        let file = format!("{name}.control");
        for (item, value) in items(text, &file)? {
            control.apply(&item, value)?;
        }
        if control.relocatable && control.schema.is_some() {
            base::bail!(
                SYNTAX_ERROR,
                "parameter \"schema\" cannot be specified when \"relocatable\" is true"
            );
        }
        Ok(control)
    }

    fn apply(&mut self, item: &str, value: String) -> Result<()> {
        let flag = |value: &str| {
            base::settings::parse_bool(value).ok_or_else(|| {
                err!(INVALID_PARAMETER_VALUE, "parameter \"{item}\" requires a Boolean value")
            })
        };
        match item {
            "comment" => self.comment = Some(value),
            "default_version" => self.default_version = Some(value),
            "module_pathname" => self.module = Some(value),
            "schema" => self.schema = Some(value),
            "directory" | "encoding" => {}
            "superuser" => self.superuser = flag(&value)?,
            "trusted" => self.trusted = flag(&value)?,
            "relocatable" => self.relocatable = flag(&value)?,
            "requires" => {
                let names = value.split(',').map(|n| n.trim().trim_matches('"').to_owned());
                self.requires = names.filter(|n| !n.is_empty()).collect();
            }
            "threads" => {
                self.threads = match value.as_str() {
                    "safe" => Threads::Safe,
                    "session" => Threads::Session,
                    _ => base::bail!(
                        INVALID_PARAMETER_VALUE,
                        "parameter \"threads\" must be safe or session"
                    ),
                };
            }
            "threads_reason" => self.reason = Some(value),
            _ => base::bail!(
                SYNTAX_ERROR,
                "unrecognized parameter \"{item}\" in file \"{}.control\"",
                self.name
            ),
        }
        Ok(())
    }

    /// The control file with what a version's own (`name--version.control`) says.
    ///
    /// # Errors
    /// As [`Control::parse`].
    pub fn of_version(&self, version: &str) -> Result<Control> {
        let mut own = self.clone();
        let file = format!("{}--{version}.control", self.name);
        if let Some(text) = self.scripts.get(&file) {
            for (item, value) in items(text, &file)? {
                own.apply(&item, value)?;
            }
        }
        Ok(own)
    }

    /// Versions from and to of each script; without a from it makes the version.
    fn steps(&self) -> Vec<(Option<&str>, &str)> {
        let prefix = format!("{}--", self.name);
        let step = |file: &'_ String| -> Option<(usize, usize)> {
            let rest = file.strip_prefix(&prefix)?.strip_suffix(".sql")?;
            match rest.find("--") {
                Some(at) if rest[at + 2..].contains("--") => None,
                Some(at) => Some((at, rest.len())),
                None => Some((usize::MAX, rest.len())),
            }
        };
        let mut out = Vec::new();
        for file in self.scripts.keys() {
            let Some((at, len)) = step(file) else { continue };
            let rest = &file[prefix.len()..prefix.len() + len];
            out.push(match at {
                usize::MAX => (None, rest),
                at => (Some(&rest[..at]), &rest[at + 2..]),
            });
        }
        out
    }

    /// All versions that a script names.
    pub fn versions(&self) -> Vec<&str> {
        let mut out: Vec<&str> = Vec::new();
        for (from, to) in self.steps() {
            out.extend(from);
            out.push(to);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Versions that can be installed: by a script of their own, or by one and updates.
    pub fn installable(&self) -> Vec<&str> {
        self.versions().into_iter().filter(|v| self.way(None, v).is_some()).collect()
    }

    /// The shortest chain of versions from one to another, both in it; from nothing: the first is one that a script
    /// makes. None: there is no such chain.
    pub fn way(&self, from: Option<&str>, to: &str) -> Option<Vec<String>> {
        let steps = self.steps();
        let makes = |v: &str| steps.iter().any(|(from, to)| from.is_none() && *to == v);
        let starts: Vec<&str> = match from {
            Some(from) => vec![from],
            None if makes(to) => return Some(vec![to.to_owned()]),
            None => steps.iter().filter(|(from, _)| from.is_none()).map(|(_, to)| *to).collect(),
        };
        let chain = |start: &str| {
            let mut before: HashMap<String, String> = HashMap::new();
            let mut queue = VecDeque::from([start.to_owned()]);
            while let Some(at) = queue.pop_front() {
                if at == to {
                    let mut chain = vec![at.clone()];
                    let mut at = &at;
                    while let Some(last) = before.get(at) {
                        chain.push(last.clone());
                        at = last;
                    }
                    chain.reverse();
                    return Some(chain);
                }
                for (_, next) in steps.iter().filter(|(from, _)| *from == Some(&at)) {
                    if *next != start && !before.contains_key(*next) {
                        before.insert((*next).to_owned(), at.clone());
                        queue.push_back((*next).to_owned());
                    }
                }
            }
            None
        };
        starts.into_iter().filter_map(chain).min_by_key(Vec::len)
    }

    /// The script that makes a version, or turns another into it.
    pub fn script(&self, from: Option<&str>, to: &str) -> Option<&str> {
        let name = &self.name;
        let file = match from {
            Some(from) => format!("{name}--{from}--{to}.sql"),
            None => format!("{name}--{to}.sql"),
        };
        self.scripts.get(&file).map(String::as_str)
    }
}

/// The extensions that come with the server, in order of their names.
pub fn embedded() -> Vec<Control> {
    let files = *EMBEDDED.lock().unwrap_or_else(PoisonError::into_inner);
    collect(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())), true)
}

/// Those of a list of files: control files, each with its scripts. What can't be read is left out.
pub fn collect(files: impl Iterator<Item = (String, String)>, embedded: bool) -> Vec<Control> {
    let files: BTreeMap<String, String> = files.collect();
    let mut out = Vec::new();
    for (file, text) in &files {
        let Some(name) = file.strip_suffix(".control").filter(|n| !n.contains("--")) else {
            continue;
        };
        let Ok(mut control) = Control::parse(name, text) else { continue };
        let prefix = format!("{name}--");
        let own = files.iter().filter(|(file, _)| file.starts_with(&prefix));
        control.scripts = own.map(|(file, text)| (file.clone(), text.clone())).collect();
        control.embedded = embedded;
        out.push(control);
    }
    out
}

/// Reads the directories of `extension_control_path`, separated by colons. What is embedded comes first. It waits for
/// the disk.
pub fn available(path: &str) -> Vec<Control> {
    let mut out = embedded();
    for directory in path.split(':').map(str::trim).filter(|d| !d.is_empty() && *d != "$system") {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        let wanted = |entry: &std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let known = name.ends_with(".control") || name.ends_with(".sql");
            known.then_some(name)
        };
        let files = entries.flatten().filter_map(|entry| {
            let name = wanted(&entry)?;
            Some((name, std::fs::read_to_string(entry.path()).ok()?))
        });
        for control in collect(files, false) {
            if !out.iter().any(|known| known.name == control.name) {
                out.push(control);
            }
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Control {
        let files = [
            (
                "a.control",
                "comment = 'it''s a' # c\ndefault_version=1.2\ntrusted = on\nrequires = 'b, c'",
            ),
            ("a--1.0.sql", "x"),
            ("a--1.0--1.1.sql", "y"),
            ("a--1.1--1.2.sql", "z"),
            ("a--0.9--1.0.sql", "w"),
            ("ab--1.0.sql", "not of a"),
        ];
        let files = files.into_iter().map(|(n, t)| (n.to_owned(), t.to_owned()));
        collect(files, true).remove(0)
    }

    #[test]
    fn control_files_are_read() {
        let control = some();
        assert_eq!(control.comment.as_deref(), Some("it's a"));
        assert_eq!(control.default_version.as_deref(), Some("1.2"));
        assert_eq!(control.requires, ["b", "c"]);
        assert!(control.trusted && control.superuser && !control.relocatable);
        assert_eq!(control.threads, Threads::Undeclared);
        assert!(Control::parse("x", "nonsense = 1").is_err());
        assert!(Control::parse("x", "threads = maybe").is_err());
    }

    #[test]
    fn versions_are_reached_by_the_shortest_way() {
        let control = some();
        assert_eq!(control.versions(), ["0.9", "1.0", "1.1", "1.2"]);
        assert_eq!(control.installable(), ["1.0", "1.1", "1.2"]);
        assert_eq!(control.way(None, "1.2"), Some(["1.0", "1.1", "1.2"].map(str::to_owned).into()));
        assert_eq!(control.way(Some("1.2"), "1.0"), None);
        assert_eq!(control.script(Some("1.0"), "1.1"), Some("y"));
    }
}
