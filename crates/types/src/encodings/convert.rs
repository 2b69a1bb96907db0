//! Whole texts from one encoding into another.

use std::borrow::Cow;

use base::{Error, Result, err};

use super::Encoding;
use super::characters::{self, Found};

/// Looks for interrupts now and then. (That of `bulk` would close a circle: formats of values name encodings.)
#[derive(Default)]
struct Pace(u8);

impl Pace {
    fn step(&mut self) -> Result<()> {
        self.0 = self.0.wrapping_add(1);
        if self.0 == 0 { sched::check_interrupts_now() } else { Ok(()) }
    }
}

/// The bytes of an error, as it shows them: at most eight.
fn shown(bytes: &[u8], count: usize) -> String {
    let bytes = &bytes[..count.min(bytes.len()).min(8)];
    bytes.iter().map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ")
}

/// `22021`: the bytes, of which `count` are shown, are no character of the encoding.
#[cold]
fn malformed(encoding: Encoding, bytes: &[u8], count: usize) -> Error {
    err!(
        CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"{}\": {}",
        encoding.name(),
        shown(bytes, count)
    )
}

/// `22P05`: the character's bytes mean nothing in the other encoding.
#[cold]
fn unmapped(bytes: &[u8], from: Encoding, to: Encoding) -> Error {
    err!(
        UNTRANSLATABLE_CHARACTER,
        "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
        shown(bytes, bytes.len()),
        from.name(),
        to.name()
    )
}

/// How many bytes at the beginning are ASCII and not zero.
fn plain(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| !(1..0x80).contains(b)).unwrap_or(bytes.len())
}

/// Bytes as text; they are the database's own.
///
/// # Errors
/// `22021` at the first byte that is no part of a character, as a zero byte is.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) if memchr::memchr(0, bytes).is_none() => return Ok(text),
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let at = memchr::memchr(0, &bytes[..valid]).unwrap_or(valid);
    Err(malformed(Encoding::UTF8, &bytes[at..], characters::length(Encoding::UTF8, &bytes[at..])))
}

/// A text in an encoding as the database has it.
///
/// # Errors
/// `22021`, `22P05`; interrupts.
pub fn to_utf8(encoding: Encoding, bytes: &[u8]) -> Result<Cow<'_, str>> {
    if encoding.is_plain() {
        return utf8(bytes).map(Cow::Borrowed);
    }
    if plain(bytes) == bytes.len() {
        // ASCII.
        return utf8(bytes).map(Cow::Borrowed);
    }
    let mut out = String::with_capacity(bytes.len() * 2);
    let used = decode(encoding, bytes, &mut out)?;
    debug_assert_eq!(used, bytes.len());
    Ok(Cow::Owned(out))
}

/// Appends all characters of `bytes`; with an error, those before it. Returns the bytes used.
fn decode(encoding: Encoding, bytes: &[u8], out: &mut String) -> Result<usize> {
    let (mut at, mut pace) = (0, Pace::default());
    while at < bytes.len() {
        pace.step()?;
        let run = plain(&bytes[at..]);
        // ASCII is UTF-8.
        out.push_str(std::str::from_utf8(&bytes[at..at + run]).unwrap_or_default());
        at += run;
        let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else { break };
        match characters::first(encoding, rest) {
            Found::Character(character, length) => {
                out.push(character);
                at += length;
            }
            Found::Unmapped(length) => {
                return Err(unmapped(&rest[..length], encoding, Encoding::UTF8));
            }
            Found::Malformed(length) => return Err(malformed(encoding, rest, length)),
        }
    }
    Ok(at)
}

/// A text of the database in another encoding.
///
/// # Errors
/// `22P05`; interrupts.
pub fn from_utf8(encoding: Encoding, text: &str) -> Result<Cow<'_, [u8]>> {
    if encoding.is_plain() || text.is_ascii() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let mut out = Vec::with_capacity(text.len());
    let (mut rest, mut pace) = (text, Pace::default());
    while !rest.is_empty() {
        pace.step()?;
        let run = rest.bytes().position(|b| b >= 0x80).unwrap_or(rest.len());
        let (ascii, other) = rest.split_at(run);
        out.extend_from_slice(ascii.as_bytes());
        let Some(character) = other.chars().next() else { break };
        let (bytes, left) = other.split_at(character.len_utf8());
        if !characters::append(encoding, character, &mut out) {
            return Err(unmapped(bytes.as_bytes(), Encoding::UTF8, encoding));
        }
        rest = left;
    }
    Ok(Cow::Owned(out))
}

/// The same, with a question mark for what the encoding has not: for messages that must be sent.
pub fn from_utf8_lossy(encoding: Encoding, text: &str) -> Cow<'_, [u8]> {
    if encoding.is_plain() || text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    for character in text.chars() {
        if !characters::append(encoding, character, &mut out) {
            out.push(b'?');
        }
    }
    Cow::Owned(out)
}

/// The number of characters of a text, which is checked.
///
/// # Errors
/// `22021`; interrupts.
pub fn count(encoding: Encoding, bytes: &[u8]) -> Result<usize> {
    match encoding {
        Encoding::UTF8 => return utf8(bytes).map(|text| text.chars().count()),
        Encoding::SQL_ASCII => return check(encoding, bytes).map(|()| bytes.len()),
        _ => {}
    }
    let (mut at, mut count, mut pace) = (0, 0, Pace::default());
    while at < bytes.len() {
        pace.step()?;
        at += match characters::first(encoding, &bytes[at..]) {
            Found::Character(_, length) | Found::Unmapped(length) => length,
            Found::Malformed(length) => return Err(malformed(encoding, &bytes[at..], length)),
        };
        count += 1;
    }
    Ok(count)
}

/// Checks that bytes have the form of texts of an encoding.
///
/// # Errors
/// `22021`; interrupts.
pub fn check(encoding: Encoding, bytes: &[u8]) -> Result<()> {
    match encoding {
        Encoding::UTF8 => utf8(bytes).map(drop),
        Encoding::SQL_ASCII => match memchr::memchr(0, bytes) {
            Some(at) => Err(malformed(encoding, &bytes[at..], 1)),
            None => Ok(()),
        },
        _ => count(encoding, bytes).map(drop),
    }
}

/// Pairs that PostgreSQL converts without going through UTF-8; here they go through Unicode, too.
fn is_direct(from: Encoding, to: Encoding) -> bool {
    let groups: [&[&str]; 3] = [
        &["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"],
        &["LATIN2", "WIN1250"],
        &["EUC_JP", "SJIS"],
    ];
    groups.iter().any(|group| group.contains(&from.name()) && group.contains(&to.name()))
}

/// Whether PostgreSQL has a conversion of one of the encodings that are only names here.
fn is_nameable(encoding: Encoding, other: Encoding) -> bool {
    let unknown = !encoding.is_known();
    let mule = encoding.name() == "MULE_INTERNAL";
    unknown && !(mule && other == Encoding::UTF8)
}

/// `convert`: bytes of one encoding in another.
///
/// # Errors
/// `22021`, `22P05`; `42883` when PostgreSQL knows no way, `0A000` when only it does; interrupts.
pub fn between<'a>(from: Encoding, to: Encoding, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    if from.is_known() {
        check(from, bytes)?;
    }
    if bytes.is_empty() || from == to || to == Encoding::SQL_ASCII {
        return Ok(Cow::Borrowed(bytes));
    }
    if from == Encoding::SQL_ASCII {
        check(to, bytes)?;
        return Ok(Cow::Borrowed(bytes));
    }
    // All of PostgreSQL's encodings have ASCII in common.
    if plain(bytes) == bytes.len() && (is_nameable(from, to) || is_nameable(to, from)) {
        return Ok(Cow::Borrowed(bytes));
    }
    require(from, to)?;
    if to == Encoding::UTF8 {
        return Ok(match to_utf8(from, bytes)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
    }
    if from == Encoding::UTF8 {
        return from_utf8(to, utf8(bytes)?);
    }
    recode(from, to, bytes).map(Cow::Owned)
}

/// Checks that there is a way from one encoding to the other.
///
/// # Errors
/// `42883` when PostgreSQL knows none, `0A000` when only it does.
pub fn require(from: Encoding, to: Encoding) -> Result<()> {
    if from.is_known() && to.is_known() {
        let through = [from, to].iter().any(|e| e.is_plain());
        if through || from == to || is_direct(from, to) {
            return Ok(());
        }
    } else if is_nameable(from, to) || is_nameable(to, from) {
        return Err(Error::unsupported(format!(
            "conversion between {} and {}",
            from.name(),
            to.name()
        )));
    }
    Err(err!(
        UNDEFINED_FUNCTION,
        "default conversion function for encoding \"{}\" to \"{}\" does not exist",
        from.name(),
        to.name()
    ))
}

fn recode(from: Encoding, to: Encoding, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut pace) = (0, Pace::default());
    while at < bytes.len() {
        pace.step()?;
        let rest = &bytes[at..];
        at += match characters::first(from, rest) {
            Found::Character(character, length) => {
                if !characters::append(to, character, &mut out) {
                    return Err(unmapped(&rest[..length], from, to));
                }
                length
            }
            Found::Unmapped(length) => return Err(unmapped(&rest[..length], from, to)),
            Found::Malformed(length) => return Err(malformed(from, rest, length)),
        };
    }
    Ok(out)
}

/// Makes UTF-8 of data that comes in pieces, whose ends may lie within a character.
#[derive(Debug)]
pub struct Recoder {
    encoding: Encoding,
    /// The beginning of a character.
    left: Vec<u8>,
    /// Raised when the text before it has been used up.
    error: Option<Error>,
}

impl Recoder {
    /// Of texts in this encoding.
    pub fn new(encoding: Encoding) -> Recoder {
        Recoder { encoding, left: Vec::new(), error: None }
    }

    /// The next piece. An error in it comes with the piece after, so that the lines before it are read first.
    ///
    /// # Errors
    /// `22021`, `22P05` of the piece before; interrupts.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.pending()?;
        let joined;
        let bytes = if self.left.is_empty() {
            bytes
        } else {
            joined = [&self.left[..], bytes].concat();
            &joined[..]
        };
        let whole = self.whole(bytes);
        let mut out = String::with_capacity(bytes.len() * 2);
        if let Err(error) = decode(self.encoding, &bytes[..whole], &mut out) {
            self.error = Some(error);
        }
        self.left = bytes[whole..].to_vec();
        Ok(out.into_bytes())
    }

    /// The data has ended.
    ///
    /// # Errors
    /// `22021` for a character that has not, and what is left of [`Recoder::piece`].
    pub fn end(&mut self) -> Result<()> {
        self.pending()?;
        let left = std::mem::take(&mut self.left);
        decode(self.encoding, &left, &mut String::new()).map(drop)
    }

    fn pending(&mut self) -> Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// How many bytes are whole characters, as far as their first bytes say.
    fn whole(&self, bytes: &[u8]) -> usize {
        if characters::is_single(self.encoding) || plain(bytes) == bytes.len() {
            return bytes.len();
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += plain(rest);
            let rest = &bytes[at..];
            if rest.is_empty() {
                break;
            }
            // The second byte may be what says how long it is.
            let length = characters::length(self.encoding, rest).max(1);
            if length > rest.len() || (rest.len() == 1 && length > 1) {
                return at;
            }
            at += length;
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Encoding {
        Encoding::find(name).unwrap()
    }

    fn there_and_back(name: &str, text: &str, bytes: &[u8]) {
        let encoding = named(name);
        assert_eq!(from_utf8(encoding, text).unwrap(), bytes, "{name}");
        assert_eq!(to_utf8(encoding, bytes).unwrap(), text, "{name}");
    }

    #[test]
    fn texts_go_there_and_back() {
        there_and_back("LATIN1", "caf\u{e9} \u{ff}", b"caf\xe9 \xff");
        there_and_back("LATIN2", "\u{159}", b"\xf8");
        there_and_back("LATIN5", "\u{130}\u{15f}", b"\xdd\xfe");
        there_and_back("LATIN9", "\u{20ac}", b"\xa4");
        there_and_back("WIN1251", "\u{44f}", b"\xff");
        there_and_back("WIN1252", "\u{20ac}", b"\x80");
        there_and_back("KOI8R", "\u{44e}", b"\xc0");
        there_and_back("EUC_JP", "\u{65e5}\u{672c}\u{ff71}", b"\xc6\xfc\xcb\xdc\x8e\xb1");
        there_and_back("SJIS", "\u{65e5}\u{672c}\u{8868}", b"\x93\xfa\x96\x7b\x95\\");
        there_and_back("EUC_KR", "\u{d55c}", b"\xc7\xd1");
        there_and_back("EUC_CN", "\u{6c49}", b"\xba\xba");
        there_and_back("GBK", "\u{6f22}", b"\x9dh");
        there_and_back("BIG5", "\u{6f22}", b"\xba~");
        there_and_back("GB18030", "\u{1f600}\u{6c49}", b"\x94\x39\xfc\x36\xba\xba");
    }

    #[test]
    fn errors_name_bytes_and_encodings() {
        let message = |r: Result<Cow<'_, str>>| r.unwrap_err().message().to_owned();
        assert_eq!(
            message(to_utf8(named("WIN1252"), b"a\x81")),
            "character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\""
        );
        assert_eq!(
            message(to_utf8(named("SJIS"), b"\x81")),
            "invalid byte sequence for encoding \"SJIS\": 0x81"
        );
        assert_eq!(
            message(to_utf8(named("LATIN1"), b"\xe9\0")),
            "invalid byte sequence for encoding \"LATIN1\": 0x00"
        );
        let error = from_utf8(named("LATIN1"), "\u{20ac}").unwrap_err();
        assert_eq!(
            error.message(),
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        );
    }

    #[test]
    fn pieces_end_within_characters() {
        for name in ["SJIS", "EUC_JP", "GB18030", "LATIN1"] {
            let encoding = named(name);
            let text = "a\u{e9}\u{65e5}\u{672c}b\u{e9}\u{8868}";
            let text: String = text
                .chars()
                .filter(|c| from_utf8(encoding, c.encode_utf8(&mut [0; 4])).is_ok())
                .collect();
            let bytes = from_utf8(encoding, &text).unwrap();
            for at in 0..=bytes.len() {
                let mut recoder = Recoder::new(encoding);
                let mut all = recoder.piece(&bytes[..at]).unwrap();
                all.extend(recoder.piece(&bytes[at..]).unwrap());
                recoder.end().unwrap();
                assert_eq!(all, text.as_bytes(), "{name} {at}");
            }
        }
        let mut recoder = Recoder::new(named("SJIS"));
        assert_eq!(recoder.piece(b"ok\n\x95").unwrap(), b"ok\n");
        assert_eq!(recoder.end().unwrap_err().code().as_str(), "22021");
    }
}
