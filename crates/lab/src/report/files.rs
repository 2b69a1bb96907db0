//! Files that are whole or not there.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Writes all files, or none: each beside its place first, and only when all are whole are they
/// renamed, in their order. A file that was there before stays until then.
///
/// # Errors
/// Names the file that could not be written.
pub fn write_all(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    let mut beside: Vec<PathBuf> = Vec::new();
    let written = files.iter().try_for_each(|(path, bytes)| {
        let partial = partial(path);
        beside.push(partial.clone());
        write(&partial, bytes).map_err(|e| Error::file(path, e))
    });
    let renamed = written.and_then(|()| {
        files.iter().zip(&beside).try_for_each(|((path, _), partial)| {
            fs::rename(partial, path).map_err(|e| Error::file(path, e))
        })
    });
    if renamed.is_err() {
        for partial in beside {
            // What isn't there any more needs no removal.
            let _ = fs::remove_file(partial);
        }
    }
    renamed
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_or_none() {
        let dir = std::env::temp_dir().join(format!("lab-report-files-{}", std::process::id()));
        let (first, second) = (dir.join("a/first"), dir.join("second"));
        write_all(&[(first.clone(), b"old".to_vec())]).unwrap();
        // A folder where the second file's neighbour should be.
        fs::create_dir_all(dir.join("second.partial")).unwrap();
        let files = [(first.clone(), b"new".to_vec()), (second.clone(), b"new".to_vec())];
        let error = write_all(&files).unwrap_err();
        assert!(error.to_string().contains("second"), "{error}");
        assert_eq!(fs::read(&first).unwrap(), b"old");
        assert!(!dir.join("a/first.partial").exists());
        fs::remove_dir(dir.join("second.partial")).unwrap();
        write_all(&files).unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"new");
        fs::remove_dir_all(&dir).unwrap();
    }
}
