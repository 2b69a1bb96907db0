//! Files of dictionaries: the stop words that are part of the server, and those that an administrator has put
//! where PostgreSQL has them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base::{Result, WaitEvent, err};

use crate::lower::lower;

macro_rules! own { ($($name:literal)*) => {
    &[$(($name, include_str!(concat!("../data/", $name)))),*]
} }

/// Stop words by file name.
const OWN: &[(&str, &str)] = own! {
    "danish.stop" "dutch.stop" "english.stop" "finnish.stop" "french.stop" "german.stop"
    "hungarian.stop" "italian.stop" "nepali.stop" "norwegian.stop" "portuguese.stop"
    "russian.stop" "spanish.stop" "swedish.stop" "turkish.stop"
};

static OTHERS: Mutex<Vec<(&'static str, &'static str)>> = Mutex::new(Vec::new());

/// Makes a file known that comes with an extension, when the server starts.
pub fn register(name: &'static str, text: &'static str) {
    OTHERS.lock().unwrap_or_else(PoisonError::into_inner).push((name, text));
}

/// Where files are looked for, in this order.
fn folders() -> Vec<PathBuf> {
    let mut out = vec![PathBuf::from("/usr/share/threadgres/tsearch_data")];
    let of = |version: u32| PathBuf::from(format!("/usr/share/postgresql/{version}/tsearch_data"));
    out.extend((15..20).map(of));
    out
}

/// The text of a dictionary's file (`kind`: what messages call it).
///
/// # Errors
/// `22023` for names that are none, `F0000` when there is no such file.
pub fn read(name: &str, extension: &str, kind: &str) -> Result<String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(good) {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "invalid text search configuration file name \"{name}\""
        ));
    }
    let file = format!("{name}.{extension}");
    let others = || OTHERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, text)) = OWN.iter().copied().chain(others()).find(|(n, _)| *n == file) {
        return Ok(text.to_owned());
    }
    let folders = folders();
    let found = sched::blocking(WaitEvent::IOTextSearchFileRead, || {
        folders.iter().find_map(|f| std::fs::read(f.join(Path::new(&file))).ok())
    });
    let Some(bytes) = found else {
        let path = folders[0].join(&file);
        return Err(err!(
            CONFIG_FILE_ERROR,
            "could not open {kind} \"{}\": No such file or directory",
            path.display()
        ));
    };
    String::from_utf8(bytes)
        .map_err(|e| types::io::invalid_utf8(e.as_bytes(), e.utf8_error().valid_up_to()))
}

/// The words of a stop-word file, in lower case.
///
/// # Errors
/// As [`read`].
pub fn stop_words(name: &str) -> Result<std::collections::HashSet<String>> {
    let text = read(name, "stop", "stop-word file")?;
    let words = text.lines().filter_map(|l| l.split_whitespace().next());
    Ok(words.map(lower).collect())
}
