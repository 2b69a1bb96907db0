//! Texts of a client's messages, in the encoding that it speaks.

use std::borrow::Cow;

use base::{Oid, Result};
use types::encodings::{self, Encoding};

use super::recode::{Way, binary, strict};
use super::{SessionState, utf8};

impl SessionState {
    /// The client's encoding.
    pub(super) fn encoding(&self) -> Encoding {
        self.settings.format.client_encoding
    }

    /// A name or text of the client's message.
    pub(super) fn text<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>> {
        let encoding = self.encoding();
        if encoding.is_plain() {
            return utf8(bytes).map(Cow::Borrowed);
        }
        encodings::to_utf8(encoding, bytes)
    }

    /// A parameter of this type in binary form, with the texts in it.
    pub(super) fn binary_parameter<'a>(&self, ty: Oid, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let encoding = self.encoding();
        if encoding.is_plain() || bytes.is_ascii() {
            return Ok(Cow::Borrowed(bytes));
        }
        let way: Way<'_> =
            &|bytes| Ok(Cow::Owned(encodings::to_utf8(encoding, bytes)?.into_owned().into_bytes()));
        Ok(binary(ty, bytes, way)?.map_or(Cow::Borrowed(bytes), Cow::Owned))
    }

    /// A result in the client's encoding.
    pub(super) fn recoded(&self, ty: Oid, bytes: Vec<u8>, in_binary: bool) -> Result<Vec<u8>> {
        let encoding = self.encoding();
        if encoding.is_plain() || bytes.is_ascii() {
            return Ok(bytes);
        }
        let way = strict(encoding);
        match in_binary {
            true => Ok(binary(ty, &bytes, &way)?.unwrap_or(bytes)),
            false => Ok(way(&bytes)?.into_owned()),
        }
    }
}
