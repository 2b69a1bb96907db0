//! Programs of others that are installed here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders outside of `PATH` where distributions keep servers.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/lib/postgresql/15/bin"];

/// A program by its name.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A program of PostgreSQL 15, whatever other versions are there.
pub fn postgresql_15(name: &str) -> Option<PathBuf> {
    let file = Path::new("/usr/lib/postgresql/15/bin").join(name);
    if file.is_file() { Some(file) } else { find(name) }
}

/// `pgbench`, 15's if it is there.
pub fn pgbench() -> Option<PathBuf> {
    postgresql_15("pgbench")
}

/// Major and minor version that a program prints for `--version`.
pub fn version(name: &str) -> Option<(u32, u32)> {
    let out = Command::new(find(name)?).arg("--version").output().ok()?;
    numbers(&String::from_utf8_lossy(&out.stdout))
}

/// The first `X.Y` in a text.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    words.filter_map(|w| w.split_once('.')).find_map(|(major, rest)| {
        let minor = rest.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        assert_eq!(numbers("PgBouncer 1.18.0\nlibevent 2.1"), Some((1, 18)));
        assert_eq!(numbers("no version"), None);
    }
}
