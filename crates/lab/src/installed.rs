//! Programs of others that are installed here.

use std::path::{Path, PathBuf};

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
