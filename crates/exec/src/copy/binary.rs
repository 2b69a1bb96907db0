//! The binary format: a header, then for each row the number of fields and each field's length and
//! bytes in the type's binary form.

use base::{Result, bail};

use super::SIGNATURE;
use super::input::Input;
use crate::context::SessionHooks;

/// Waits until `count` bytes are there.
fn need(input: &mut Input, count: usize, hooks: &mut dyn SessionHooks) -> Result<()> {
    while input.rest().len() < count {
        if !input.more(hooks)? {
            bail!(BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data");
        }
    }
    Ok(())
}

fn int4(input: &mut Input, hooks: &mut dyn SessionHooks) -> Result<i32> {
    need(input, 4, hooks)?;
    let b = input.rest();
    let value = i32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    input.consume(4);
    Ok(value)
}

/// Reads the header.
///
/// # Errors
/// `22P04`.
pub fn header(input: &mut Input, hooks: &mut dyn SessionHooks) -> Result<()> {
    need(input, SIGNATURE.len(), hooks)?;
    if !input.rest().starts_with(SIGNATURE) {
        bail!(BAD_COPY_FILE_FORMAT, "COPY file signature not recognized");
    }
    input.consume(SIGNATURE.len());
    let flags = int4(input, hooks)?;
    if flags & !0xffff != 0 {
        bail!(BAD_COPY_FILE_FORMAT, "unrecognized critical flags in COPY file header");
    }
    let extension = int4(input, hooks)?;
    let Ok(extension) = usize::try_from(extension) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (missing length)");
    };
    need(input, extension, hooks)?;
    input.consume(extension);
    Ok(())
}

/// The next row's number of fields; None at the end.
///
/// # Errors
/// `22P04`.
pub fn begin_row(input: &mut Input, hooks: &mut dyn SessionHooks) -> Result<Option<i16>> {
    while input.rest().len() < 2 {
        if !input.more(hooks)? {
            if input.rest().is_empty() {
                return Ok(None);
            }
            bail!(BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data");
        }
    }
    let count = i16::from_be_bytes([input.rest()[0], input.rest()[1]]);
    input.consume(2);
    Ok((count != -1).then_some(count))
}

/// The next field's bytes; None for NULL.
///
/// # Errors
/// `22P04`.
pub fn field(input: &mut Input, hooks: &mut dyn SessionHooks) -> Result<Option<Vec<u8>>> {
    let length = int4(input, hooks)?;
    if length == -1 {
        return Ok(None);
    }
    let Ok(length) = usize::try_from(length) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid field size");
    };
    need(input, length, hooks)?;
    let bytes = input.rest()[..length].to_vec();
    input.consume(length);
    Ok(Some(bytes))
}
