//! Every message that a client may send in a running session.

use base::Result;

use crate::extended::{self, Bind, FunctionCall, Parse, StatementOrPortal};
use crate::frame::Frame;
use crate::reader::{Reader, violation};
use crate::{copy, query};

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// `Q`: runs statements.
    Query(&'a [u8]),
    /// `P`.
    Parse(Parse<'a>),
    /// `B`.
    Bind(Bind<'a>),
    /// `D`.
    Describe(StatementOrPortal, &'a [u8]),
    /// `E`: portal and most rows (0: all).
    Execute(&'a [u8], u64),
    /// `C`.
    Close(StatementOrPortal, &'a [u8]),
    /// `H`.
    Flush,
    /// `S`.
    Sync,
    /// `d`: COPY data.
    CopyData(&'a [u8]),
    /// `c`.
    CopyDone,
    /// `f`, with the reason.
    CopyFail(&'a [u8]),
    /// `F`: a function call by oid.
    FunctionCall(FunctionCall<'a>),
    /// `p`: a password when none was asked for.
    Password,
    /// `X`.
    Terminate,
}

/// Decodes a message.
///
/// # Errors
/// `08P01`, fatal only for a type that doesn't exist.
pub fn decode(frame: Frame<'_>) -> Result<Frontend<'_>> {
    let body = frame.body;
    Ok(match frame.tag {
        b'Q' => Frontend::Query(query::query(body)?),
        b'P' => Frontend::Parse(extended::parse(body)?),
        b'B' => Frontend::Bind(extended::bind(body)?),
        b'D' => extended::target(body).map(|(t, n)| Frontend::Describe(t, n))?,
        b'E' => extended::execute(body).map(|(p, n)| Frontend::Execute(p, n))?,
        b'C' => extended::target(body).map(|(t, n)| Frontend::Close(t, n))?,
        b'H' => empty(body, Frontend::Flush)?,
        b'S' => empty(body, Frontend::Sync)?,
        b'd' => Frontend::CopyData(body),
        b'c' => empty(body, Frontend::CopyDone)?,
        b'f' => Frontend::CopyFail(copy::fail(body)?),
        b'F' => Frontend::FunctionCall(extended::function_call(body)?),
        b'p' => Frontend::Password,
        b'X' => Frontend::Terminate,
        tag => return Err(violation(format!("invalid frontend message type {tag}"))),
    })
}

fn empty<'a>(body: &[u8], message: Frontend<'a>) -> Result<Frontend<'a>> {
    Reader::new(body).end()?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_byte_finds_its_decoder() {
        let get = |tag, body| decode(Frame { tag, body });
        assert_eq!(get(b'Q', b"x\0").unwrap(), Frontend::Query(b"x"));
        assert_eq!(get(b'S', b"").unwrap(), Frontend::Sync);
        assert_eq!(get(b'd', b"any").unwrap(), Frontend::CopyData(b"any"));
        assert_eq!(get(b'f', b"no\0").unwrap(), Frontend::CopyFail(b"no"));
        assert_eq!(get(b'C', b"Px\0").unwrap(), Frontend::Close(StatementOrPortal::Portal, b"x"));
        for tag in [b'S', b'H', b'c'] {
            assert!(get(tag, b"x").is_err());
        }
        assert!(get(b'z', b"").is_err());
    }
}
