//! `pg_ident.conf` (manual, section 21.2): which roles a user of the system may be, by the maps that rules of `pg_hba.conf`
//! name with `map=`.
//!
//! ```text
//!   map     name in the system      role
//!   staff   /^(.*)@example\.com$    \1
//! ```
//! A name that begins with a slash is a regular expression; its first group stands for `\1` in the role.

use base::{Error, err};
use types::Datum;
use types::regex::Pattern;

use super::hba::{logical_lines, words};

/// The file of a new directory.
pub(super) const DEFAULT: &str = "\
# Which roles a user of the system may be, where a line of pg_hba.conf says map=NAME.
# A system's name that begins with a slash is a regular expression; its first group stands for \\1 in the role.
#
# MAPNAME       SYSTEM-USERNAME         PG-USERNAME
";

/// A line of the file.
#[derive(Debug)]
struct Mapping {
    line: usize,
    map: String,
    system: String,
    role: String,
    /// Of a system's name that begins with a slash.
    pattern: Option<Pattern>,
}

/// The whole file: a mapping or what is wrong with the line.
#[derive(Debug, Default)]
pub struct Ident {
    lines: Vec<Result<Mapping, (usize, String)>>,
}

impl Ident {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Ident {
        let mut lines = Vec::new();
        for (number, line) in logical_lines(text) {
            match words(&line) {
                Ok(fields) if fields.is_empty() => {}
                Ok(fields) => lines.push(mapping(number, &fields).map_err(|e| (number, e))),
                Err(error) => lines.push(Err((number, error))),
            }
        }
        Ident { lines }
    }

    /// The faults of the file.
    pub fn errors(&self) -> Vec<Error> {
        let faults = self.lines.iter().filter_map(|line| line.as_ref().err());
        faults
            .map(|(line, what)| {
                err!(CONFIG_FILE_ERROR, "line {line} of \"{}\": {what}", super::IDENT_FILE)
            })
            .collect()
    }

    /// Whether somebody who is `system` elsewhere may be `role` here; without a map the names must be equal.
    pub fn allows(&self, map: Option<&str>, system: &str, role: &str) -> bool {
        let Some(map) = map else { return system == role };
        let lines = self.lines.iter().filter_map(|line| line.as_ref().ok());
        lines.filter(|mapping| mapping.map == map).any(|mapping| mapping.allows(system, role))
    }

    /// The rows of `pg_ident_file_mappings`.
    pub fn rows(&self) -> Vec<Vec<Datum>> {
        let text = |t: &str| Datum::Text(t.into());
        let row = |line: &Result<Mapping, (usize, String)>| match line {
            Err((number, error)) => vec![
                Datum::Int4(*number as i32),
                Datum::Null,
                Datum::Null,
                Datum::Null,
                text(error),
            ],
            Ok(mapping) => vec![
                Datum::Int4(mapping.line as i32),
                text(&mapping.map),
                text(&mapping.system),
                text(&mapping.role),
                Datum::Null,
            ],
        };
        self.lines.iter().map(row).collect()
    }
}

impl Mapping {
    fn allows(&self, system: &str, role: &str) -> bool {
        let Some(pattern) = &self.pattern else {
            return self.system == system && self.role == role;
        };
        let Ok(Some(found)) = pattern.first_group(system) else { return false };
        match self.role.split_once("\\1") {
            None => self.role == role,
            Some((before, after)) => {
                let group = found.unwrap_or_default();
                format!("{before}{group}{after}") == role
            }
        }
    }
}

fn mapping(line: usize, fields: &[Vec<String>]) -> Result<Mapping, String> {
    let field = |at: usize| match fields.get(at).map(Vec::as_slice) {
        None => Err("missing entry at end of line".to_owned()),
        Some([one]) => Ok(one.clone()),
        Some(_) => Err("multiple values in ident field".to_owned()),
    };
    let (map, system, role) = (field(0)?, field(1)?, field(2)?);
    let pattern =
        match system.strip_prefix('/') {
            None => None,
            Some(text) => Some(Pattern::new(text).map_err(|why| {
                format!("invalid regular expression \"{text}\": {}", why.message())
            })?),
        };
    Ok(Mapping { line, map, system, role, pattern })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_allow_by_name_and_by_pattern() {
        let ident = Ident::parse(
            "# c\nstaff root postgres\nmail /^(.*)@example\\.com$ \\1\nbroken one\nmail /^adm postgres\n",
        );
        assert!(ident.allows(Some("staff"), "root", "postgres"));
        assert!(!ident.allows(Some("staff"), "root", "root"));
        assert!(!ident.allows(Some("none"), "root", "root"));
        assert!(ident.allows(None, "root", "root"));
        assert!(ident.allows(Some("mail"), "ann@example.com", "ann"));
        assert!(!ident.allows(Some("mail"), "ann@example.org", "ann"));
        assert!(ident.allows(Some("mail"), "admin", "postgres"));
        assert_eq!(ident.errors().len(), 1);
        assert_eq!(ident.rows().len(), 4);
        assert_eq!(Ident::parse(DEFAULT).rows().len(), 0);
    }
}
