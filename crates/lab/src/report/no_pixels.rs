//! In the place of `pixels` in a program that was built without them.

use crate::Result;

/// `None`: plots are SVG only.
///
/// # Errors
/// None.
pub fn png(_svg: &str) -> Result<Option<Vec<u8>>> {
    Ok(None)
}
