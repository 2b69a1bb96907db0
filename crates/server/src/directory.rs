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
