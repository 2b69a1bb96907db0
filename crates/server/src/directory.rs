//! Permissions of a data directory, and the user of the system as whom the server runs.
//!
//! All that a directory holds, verifiers of passwords among it, is its owner's: directories have the mode
//! 0700 and files 0600; where `init --allow-group-access` asked for it, 0750 and 0640. The process's umask
//! sees to that, so that whatever makes a file makes it private. The directory's own mode says which of
//! the two it is, and no other is served.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use base::{Error, Result, err};
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;

/// In the environment: as `--allow-root`.
pub const ALLOW_ROOT: &str = "THREADGRES_ALLOW_ROOT";

/// `42501` for the system's superuser, unless that is meant: by the option, or by [`ALLOW_ROOT`] = 1.
///
/// # Errors
/// See above.
pub fn refuse_root(allowed: bool) -> Result<()> {
    let meant = || allowed || std::env::var_os(ALLOW_ROOT).is_some_and(|v| v == "1");
    if !geteuid().is_root() || meant() {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "execution as \"root\" is not permitted").hint(format!(
        "Run it as an unprivileged user; --allow-root or {ALLOW_ROOT}=1 says that root is meant."
    )))
}

/// Files and directories that are made from now on are the owner's, or the group may read them, too.
pub fn make_private(group: bool) {
    umask(if group { Mode::from_bits_truncate(0o027) } else { Mode::from_bits_truncate(0o077) });
}

/// Checks who may read a directory that is about to be served, and makes files as it is.
///
/// # Errors
/// `55000` when it is another user's, or others may read or write it.
pub fn check(dir: &Path) -> Result<()> {
    let about = std::fs::metadata(dir)
        .map_err(|e| Error::io(format_args!("open directory \"{}\"", dir.display()), &e))?;
    let name = dir.display();
    if about.uid() != geteuid().as_raw() {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "data directory \"{name}\" has wrong ownership"
        )
        .hint("The server must be started by the user that owns the data directory."));
    }
    if about.mode() & 0o027 != 0 {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "data directory \"{name}\" has invalid permissions"
        )
        .detail("Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).")
        .hint(format!("chmod -R u=rwX,g=,o= {name}")));
    }
    make_private(about.mode() & 0o050 != 0);
    Ok(())
}

/// Makes files as the directory's mode says, whatever it is.
pub fn follow_mode(dir: &Path) {
    make_private(std::fs::metadata(dir).is_ok_and(|m| m.mode() & 0o050 != 0));
}

/// Makes a directory durable with all that it holds, and its name in the directories above it.
///
/// # Errors
/// I/O errors.
pub fn sync(dir: &Path) -> Result<()> {
    let mut failed = dir.to_owned();
    let mut one = |path: &Path| {
        path.clone_into(&mut failed);
        std::fs::File::open(path)?.sync_all()
    };
    let whole = dir.canonicalize().and_then(|dir| {
        sync_below(&dir, &mut one)?;
        // `init` makes the directories above, too, where they are missing. A directory that can't be read can't be
        // synced by us, and was not made by us.
        for above in dir.ancestors().skip(1) {
            match one(above) {
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => break,
                synced => synced?,
            }
        }
        Ok(())
    });
    whole.map_err(|e| Error::io(format_args!("sync \"{}\"", failed.display()), &e))
}

/// Calls `sync` for everything below a directory, then for the directory: a name is durable with its directory.
fn sync_below(
    dir: &Path,
    sync: &mut dyn FnMut(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        match kind {
            kind if kind.is_dir() => sync_below(&entry.path(), sync)?,
            kind if kind.is_file() => sync(&entry.path())?,
            _ => {}
        }
    }
    sync(dir)
}

/// Gives a new directory, which may have been there empty, its mode.
///
/// # Errors
/// I/O errors.
pub fn claim(dir: &Path, group: bool) -> Result<()> {
    make_private(group);
    let mode = if group { 0o750 } else { 0o700 };
    let claim = || {
        std::fs::create_dir_all(dir)?;
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode))
    };
    claim().map_err(|e| Error::io(format_args!("make directory \"{}\" private", dir.display()), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_a_new_directory_is_synced_before_the_directory_that_names_it() {
        let dir = std::env::temp_dir().join(format!("threadgres-init-{}", std::process::id()));
        let data = dir.join("above").join("data");
        crate::init::init(&data, &crate::init::InitOptions::default()).expect("a new directory");
        sync(&data).expect("all can be synced");
        let mut synced = Vec::new();
        let mut note = |path: &Path| {
            synced.push(path.to_owned());
            Ok(())
        };
        sync_below(&data, &mut note).expect("all can be read");
        for name in ["pg_hba.conf", "postgresql.conf", "threadgres.control", "base", "wal", ""] {
            let path = data.join(name);
            let at = |path: &Path| synced.iter().position(|s| s == path);
            let own = at(&path).unwrap_or_else(|| panic!("{} is not synced", path.display()));
            let last = at(&data).expect("the directory itself is synced");
            assert!(own <= last, "{} is synced after its directory", path.display());
        }
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}
