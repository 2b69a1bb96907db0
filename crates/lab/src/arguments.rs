//! Command lines of all commands, in one manner: a loop over [`Arguments::option`], a `match` on the
//! option's name, its value by [`Arguments::value`] or one of its relatives.
//!
//! ```
//! # fn main() -> lab::Result<()> {
//! # use lab::arguments::{Argument::*, Arguments};
//! let mut args = Arguments::new(["--clients", "1,2,4", "--quick", "results.jsonl"]);
//! let (mut clients, mut quick, mut files) = (vec![1], false, Vec::new());
//! while let Some(option) = args.option()? {
//!     match option {
//!         Long("clients") => clients = args.list()?,
//!         Long("quick") => quick = true,
//!         Operand(file) => files.push(file),
//!         other => return Err(other.unknown()),
//!     }
//! }
//! assert_eq!((clients, quick, files.len()), (vec![1, 2, 4], true, 1));
//! # Ok(()) }
//! ```
//! `--help` never arrives here: [`crate::command`] answers it from the command's `HELP`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::{Error, Result};

/// The arguments after the command's name.
pub struct Arguments {
    all: Vec<String>,
    parser: lexopt::Parser,
    current: String,
}

/// One option or operand.
#[derive(Debug, PartialEq)]
pub enum Argument<'a> {
    /// `--name`.
    Long(&'a str),
    /// `-n`.
    Short(char),
    /// What is no option.
    Operand(OsString),
}

impl Argument<'_> {
    /// The error for an option that the command doesn't have.
    pub fn unknown(self) -> Error {
        Error::usage(match self {
            Argument::Long(name) => format!("unknown option --{name}"),
            Argument::Short(letter) => format!("unknown option -{letter}"),
            Argument::Operand(value) => {
                format!("unexpected argument {:?}", value.to_string_lossy())
            }
        })
    }
}

impl Arguments {
    /// From the words after the command's name.
    pub fn new<A: Into<OsString>>(words: impl IntoIterator<Item = A>) -> Arguments {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let all = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        Arguments { all, parser: lexopt::Parser::from_args(words), current: String::new() }
    }

    /// All of them as they were given, for the results' record of the environment.
    pub fn all(&self) -> &[String] {
        &self.all
    }

    /// The next option or operand.
    ///
    /// # Errors
    /// A value left over from the last one (`--quick=yes`), a name that is no text.
    pub fn option(&mut self) -> Result<Option<Argument<'_>>> {
        Ok(match self.parser.next()? {
            None => None,
            Some(lexopt::Arg::Long(name)) => {
                self.current = name.to_owned();
                Some(Argument::Long(&self.current))
            }
            Some(lexopt::Arg::Short(letter)) => {
                self.current = letter.to_string();
                Some(Argument::Short(letter))
            }
            Some(lexopt::Arg::Value(value)) => Some(Argument::Operand(value)),
        })
    }

    /// The option's value as text.
    ///
    /// # Errors
    /// None is there, or it is no UTF-8.
    pub fn text(&mut self) -> Result<String> {
        let value = self.parser.value()?;
        value.into_string().map_err(|v| self.wrong(&v.to_string_lossy(), "not UTF-8"))
    }

    /// The option's value as a path.
    ///
    /// # Errors
    /// None is there.
    pub fn path(&mut self) -> Result<PathBuf> {
        Ok(self.parser.value()?.into())
    }

    /// The option's value as a number or whatever else reads itself from text.
    ///
    /// # Errors
    /// None is there, or it does not read.
    pub fn value<T: FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T> {
        let text = self.text()?;
        text.parse().map_err(|e: T::Err| self.wrong(&text, e))
    }

    /// The option's value as a list with commas, of at least one element.
    ///
    /// # Errors
    /// None is there, an element does not read.
    pub fn list<T: FromStr<Err: std::fmt::Display>>(&mut self) -> Result<Vec<T>> {
        let text = self.text()?;
        let element = |word: &str| word.trim().parse().map_err(|e: T::Err| self.wrong(word, e));
        text.split(',').map(element).collect()
    }

    /// The option's value in seconds, fractions allowed.
    ///
    /// # Errors
    /// None is there, or it is no time from 0 to a year.
    pub fn seconds(&mut self) -> Result<Duration> {
        let seconds: f64 = self.value()?;
        if (0.0..=31_536_000.0).contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
        Err(self.wrong(&seconds.to_string(), "not a number of seconds"))
    }

    /// The error for a value that won't do.
    pub fn wrong(&self, value: &str, why: impl std::fmt::Display) -> Error {
        let dashes = if self.current.chars().count() == 1 { "-" } else { "--" };
        Error::usage(format!("{dashes}{}: {value:?}: {why}", self.current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_option_and_value() {
        let mut args = Arguments::new(["--clients", "1,x", "--seconds=-1", "--what"]);
        assert_eq!(args.option().unwrap(), Some(Argument::Long("clients")));
        let error = args.list::<u32>().unwrap_err();
        assert!(error.to_string().starts_with("--clients: \"x\": "), "{error}");
        assert_eq!(args.option().unwrap(), Some(Argument::Long("seconds")));
        assert!(args.seconds().is_err());
        let error = args.option().unwrap().unwrap().unknown();
        assert_eq!(error.to_string(), "unknown option --what");
        assert!(args.text().is_err());
        assert_eq!(args.option().unwrap(), None);
    }
}
