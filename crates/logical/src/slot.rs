//! Names of replication slots.

use base::{Result, err};

/// Bytes of a name, at most.
const NAME_MAX: usize = 63;

/// `42602` for a name that a slot can't have.
///
/// # Errors
/// See above.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        base::bail!(INVALID_NAME, "replication slot name \"{name}\" is too short");
    }
    if name.len() > NAME_MAX {
        base::bail!(NAME_TOO_LONG, "replication slot name \"{name}\" is too long");
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.chars().all(fits) {
        return Err(err!(
            INVALID_NAME,
            "replication slot name \"{name}\" contains invalid character"
        )
        .hint("Replication slot names may only contain lower case letters, numbers, and the underscore character."));
    }
    Ok(())
}
