//! Names of replication slots.

use base::{Result, err};

/// Bytes of a name, at most.
const NAME_MAX: usize = 63;

/// The state of a slot that is no change stream's.
pub const PHYSICAL: &[u8] = br#"{"plugin":"","database":0,"confirmed":0,"two_phase":false}"#;

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

/// The state of a slot beside the position from which the log is kept.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SlotState {
    /// The output plugin; empty: a physical slot.
    pub plugin: String,
    /// Its database.
    pub database: u32,
    /// Transactions that end at or before this position have been received.
    pub confirmed: u64,
    /// Prepared transactions are decoded when they are prepared.
    #[serde(default)]
    pub two_phase: bool,
    /// Those that were prepared before this position come when they are committed.
    #[serde(default)]
    pub two_phase_at: u64,
}

impl SlotState {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The inverse; None for another layer's.
    pub fn decode(bytes: &[u8]) -> Option<SlotState> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The plugins that there are.
pub const PLUGINS: [&str; 3] = ["pgoutput", "test_decoding", "wal2json"];
