//! Where the JVM's library is.
//!
//! The setting `java_home` names it, or the folder of a Java that has it; without it `JAVA_HOME` of the server's
//! environment does, then the `java` of its `PATH`, then the folders in which systems keep theirs.

use std::env;
use std::path::{Path, PathBuf};

use base::{Error, Result, err};

/// The JVM's library, from the folder of a Java.
const LIBRARY: &str = "lib/server/libjvm.so";

/// Folders of folders of Javas.
const USUAL: [&str; 4] = ["/usr/lib/jvm", "/usr/java", "/opt/java", "/opt/jdk"];

/// A library, and the Java that it belongs to.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The library.
    pub library: PathBuf,
    /// Java's version: 17 of `17.0.15`; None when it isn't said.
    pub version: Option<u32>,
}

fn in_home(home: &Path) -> Option<Found> {
    // A JDK of version 8 had its JRE inside; it is too old, but naming it says so.
    let library = home.join(LIBRARY);
    let library = library.is_file().then_some(library)?;
    Some(Found { version: version(home), library })
}

/// `JAVA_VERSION="17.0.15"` of the file `release`.
fn version(home: &Path) -> Option<u32> {
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    let line = release.lines().find_map(|l| l.strip_prefix("JAVA_VERSION="))?;
    let number = line.trim_matches('"').split(['.', '-', '+']).next()?;
    number.parse().ok()
}

/// The folder of the Java whose `java` is found first.
fn of_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let program = env::split_paths(&path).map(|d| d.join("java")).find(|f| f.is_file())?;
    let real = program.canonicalize().ok()?;
    Some(real.parent()?.parent()?.to_owned())
}

fn usual() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for folder in USUAL {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        out.extend(entries.flatten().map(|entry| entry.path()));
    }
    // The newest of each maker's comes last.
    out.sort();
    out.reverse();
    out
}

/// Finds the library. `named`: the setting.
///
/// # Errors
/// `58P01` with the places that were looked at.
pub fn library(named: &str) -> Result<Found> {
    if !named.is_empty() {
        let path = Path::new(named);
        if path.is_file() {
            let home = path.ancestors().nth(3).unwrap_or(path);
            return Ok(Found { library: path.to_owned(), version: version(home) });
        }
        return in_home(path).ok_or_else(|| {
            missing().detail(format!("java_home is \"{named}\", which has no {LIBRARY}."))
        });
    }
    let own = env::var_os("JAVA_HOME").map(PathBuf::from);
    let mut homes = own.iter().cloned().chain(of_path()).chain(usual());
    homes.find_map(|home| in_home(&home)).ok_or_else(|| {
        missing()
            .detail(format!(
                "Neither JAVA_HOME nor the java of PATH nor the folders of {} have {LIBRARY}.",
                USUAL.join(", ")
            ))
            .hint(
                "Install a Java of version 11 or later (Debian: openjdk-17-jre-headless), or set java_home to where it is.",
            )
    })
}

fn missing() -> Error {
    err!(UNDEFINED_FILE, "could not find the library of a Java virtual machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_library_is_named() {
        let error = library("/nowhere/java").expect_err("there is none");
        assert!(error.fields().detail.as_ref().is_some_and(|d| d.contains("/nowhere/java")));
    }
}
