//! A client's encoding: texts of its messages become UTF-8 where they are read, and messages to it are recoded after
//! they have been written, so that a client that speaks UTF-8 costs a look at one byte.

use std::borrow::Cow;

use base::{Error, Oid, Result};
use types::encodings::{self, Encoding};
use types::io::TypeRef;
use types::user::{self, UserKind};
use types::{TypeIo, oids};
use wire::response;

/// A way from one encoding to another.
pub type Way<'a> = &'a dyn Fn(&[u8]) -> Result<Cow<'_, [u8]>>;

/// Appends an ErrorResponse; when the client's encoding lacks a character of it, that is the error.
pub fn error(out: &mut Vec<u8>, error: &Error, encoding: Encoding) {
    let start = out.len();
    response::error(out, error);
    if let Err(unmapped) = messages(out, start, &strict(encoding), encoding) {
        out.truncate(start);
        response::error(out, &unmapped);
    }
}

/// Recodes the messages from `start` on, with question marks for characters that the encoding lacks.
pub fn lossy(out: &mut Vec<u8>, start: usize, encoding: Encoding) {
    let way: Way<'_> = &|bytes| {
        let text = String::from_utf8_lossy(bytes);
        Ok(Cow::Owned(encodings::from_utf8_lossy(encoding, &text).into_owned()))
    };
    // It raises nothing but internal errors: the messages are the server's own.
    let _ = messages(out, start, way, encoding);
}

/// Recodes the messages from `start` on.
///
/// # Errors
/// `22P05`.
pub fn checked(out: &mut Vec<u8>, start: usize, encoding: Encoding) -> Result<()> {
    messages(out, start, &strict(encoding), encoding)
}

/// Recodes the value with its length before it that begins at `start`: the last one of a DataRow.
///
/// # Errors
/// `22P05`.
pub fn value(
    out: &mut Vec<u8>,
    start: usize,
    ty: Oid,
    in_binary: bool,
    encoding: Encoding,
) -> Result<()> {
    let Some(bytes) = out.get(start + 4..).filter(|bytes| !bytes.is_ascii()) else {
        return Ok(());
    };
    let way = strict(encoding);
    let recoded = match in_binary {
        true => binary(ty, bytes, &way)?,
        false => Some(way(bytes)?.into_owned()),
    };
    if let Some(bytes) = recoded {
        out.truncate(start);
        wire::rows::value(out, &bytes);
    }
    Ok(())
}

/// From the database's texts to the client's.
pub(super) fn strict(encoding: Encoding) -> impl Fn(&[u8]) -> Result<Cow<'_, [u8]>> {
    move |bytes| {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::internal("a text of the server is no UTF-8"))?;
        encodings::from_utf8(encoding, text)
    }
}

fn messages(out: &mut Vec<u8>, start: usize, way: Way<'_>, encoding: Encoding) -> Result<()> {
    if encoding.is_plain() || out[start..].is_ascii() {
        return Ok(());
    }
    let mut recoded = Vec::with_capacity(out.len() - start + 64);
    let mut rest = &out[start..];
    while let Some(length) = rest.get(1..).and_then(number) {
        let size = (1 + length.max(4) as usize).min(rest.len());
        let at = recoded.len();
        recoded.extend_from_slice(&rest[..5]);
        body(rest[0], &rest[5..size], way, &mut recoded)?;
        let length = (recoded.len() - at - 1) as u32;
        recoded[at + 1..at + 5].copy_from_slice(&length.to_be_bytes());
        rest = &rest[size..];
    }
    recoded.extend_from_slice(rest);
    out.truncate(start);
    out.append(&mut recoded);
    Ok(())
}

/// The strings in the body of a message, recoded among the rest.
fn body(tag: u8, body: &[u8], way: Way<'_>, out: &mut Vec<u8>) -> Result<()> {
    match tag {
        // Bytes and strings; zero bytes stay where they are.
        b'E' | b'N' | b'S' => out.extend_from_slice(&way(body)?),
        b'A' => {
            let (pid, texts) = body.split_at(4.min(body.len()));
            out.extend_from_slice(pid);
            out.extend_from_slice(&way(texts)?);
        }
        b'T' => {
            let (count, mut rest) = body.split_at(2.min(body.len()));
            out.extend_from_slice(count);
            while let Some(end) = rest.iter().position(|b| *b == 0) {
                out.extend_from_slice(&way(&rest[..end])?);
                let (fixed, next) = rest[end..].split_at(19.min(rest.len() - end));
                out.extend_from_slice(fixed);
                rest = next;
            }
        }
        _ => out.extend_from_slice(body),
    }
    Ok(())
}

/// The binary form of a value with its texts recoded; None when the type has none.
pub(super) fn binary(ty: Oid, bytes: &[u8], way: Way<'_>) -> Result<Option<Vec<u8>>> {
    let (ty, _) = user::base_type(ty, -1);
    match ty {
        oids::TEXT
        | oids::VARCHAR
        | oids::BPCHAR
        | oids::NAME
        | oids::UNKNOWN
        | oids::CSTRING
        | oids::JSON
        | oids::REFCURSOR => return Ok(Some(way(bytes)?.into_owned())),
        oids::JSONB | oids::JSONPATH => {
            let (version, text) = bytes.split_at(1.min(bytes.len()));
            return Ok(Some([version, &way(text)?].concat()));
        }
        oids::RECORD => return parts(bytes, 4, None, way),
        _ => {}
    }
    match TypeIo::get(ty) {
        Some(t) if t.element != Oid::INVALID => {
            let dimensions = number(bytes).unwrap_or(0).clamp(0, 6) as usize;
            parts(bytes, 12 + 8 * dimensions, Some(t.element), way)
        }
        Some(TypeRef::User(user)) => match &user.kind {
            UserKind::Enum(_) => Ok(Some(way(bytes)?.into_owned())),
            UserKind::Composite { .. } => parts(bytes, 4, None, way),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn number(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// Values with their lengths behind a head of so many bytes: of an array, or with their types, of a record. None when
/// they aren't formed so, which whoever reads them will say.
fn parts(bytes: &[u8], head: usize, element: Option<Oid>, way: Way<'_>) -> Result<Option<Vec<u8>>> {
    let Some((head, mut rest)) = bytes.split_at_checked(head) else { return Ok(None) };
    let mut out = head.to_vec();
    while !rest.is_empty() {
        let ty = match element {
            Some(element) => element,
            None => {
                let Some(ty) = number(rest) else { return Ok(None) };
                out.extend_from_slice(&rest[..4]);
                rest = &rest[4..];
                Oid(ty as u32)
            }
        };
        let Some(length) = number(rest) else { return Ok(None) };
        let after = &rest[4..];
        let Ok(length) = usize::try_from(length) else {
            out.extend_from_slice(&rest[..4]);
            rest = after;
            continue;
        };
        let Some((value, after)) = after.split_at_checked(length) else { return Ok(None) };
        match binary(ty, value, way)? {
            Some(recoded) => wire::rows::value(&mut out, &recoded),
            None => wire::rows::value(&mut out, value),
        }
        rest = after;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATIN1: Encoding = Encoding::LATIN1;

    #[test]
    fn strings_of_messages_are_recoded() {
        let mut out = b"before\xe9".to_vec();
        let start = out.len();
        response::notification(&mut out, -1, "\u{e9}", "a\u{20ac}");
        assert!(checked(&mut out, start, LATIN1).is_err());
        lossy(&mut out, start, LATIN1);
        assert_eq!(out, b"before\xe9A\0\0\0\x0d\xff\xff\xff\xff\xe9\0a?\0");
    }

    #[test]
    fn an_error_that_cannot_be_said_is_replaced() {
        let mut out = Vec::new();
        error(&mut out, &base::err!(SYNTAX_ERROR, "\u{20ac}"), LATIN1);
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("C22P05\0") && text.contains("0xe2 0x82 0xac"), "{text}");
    }

    #[test]
    fn texts_within_binary_values_are_recoded() {
        let array = |text: &[u8]| {
            let mut bytes = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1].to_vec();
            wire::rows::value(&mut bytes, text);
            bytes
        };
        let recoded = binary(Oid(1009), &array("\u{e9}".as_bytes()), &strict(LATIN1));
        assert_eq!(recoded.unwrap(), Some(array(b"\xe9")));
        assert_eq!(binary(oids::INT8, b"\xff", &strict(LATIN1)).unwrap(), None);
    }
}
