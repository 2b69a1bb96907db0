//! Single characters: how many bytes one has, which it is, and which bytes stand for it.
//!
//! Encodings of one byte a character are tables of 128 entries, made when they are first used. Of the others the
//! characters are looked up in `encoding_rs`, behind the ranges of bytes that PostgreSQL accepts.

use std::sync::OnceLock;

use encoding_rs::{self as web, DecoderResult, EncoderResult};

use super::{ENCODINGS, Encoding, differences};

/// The first of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A character of this many bytes.
    Character(char, usize),
    /// This many bytes, which are formed as a character but stand for none.
    Unmapped(usize),
    /// No character; this many bytes are to be shown, as far as there are.
    Malformed(usize),
}

/// The tables of an encoding of one byte a character.
struct Single {
    /// The characters of the bytes from 0x80 on.
    characters: [Option<char>; 128],
    /// The same the other way, in the order of characters.
    bytes: Vec<(char, u8)>,
}

static SINGLE: [OnceLock<Option<Box<Single>>>; ENCODINGS.len()] =
    [const { OnceLock::new() }; ENCODINGS.len()];

/// The encoding of the web that is nearest.
fn relative(encoding: Encoding) -> Option<&'static web::Encoding> {
    Some(match encoding.name() {
        "EUC_JP" => web::EUC_JP,
        "EUC_CN" | "GBK" => web::GBK,
        "EUC_KR" | "UHC" => web::EUC_KR,
        "LATIN1" => web::WINDOWS_1252,
        "LATIN2" => web::ISO_8859_2,
        "LATIN3" => web::ISO_8859_3,
        "LATIN4" => web::ISO_8859_4,
        "LATIN5" | "WIN1254" => web::WINDOWS_1254,
        "LATIN6" => web::ISO_8859_10,
        "LATIN7" => web::ISO_8859_13,
        "LATIN8" => web::ISO_8859_14,
        "LATIN9" => web::ISO_8859_15,
        "LATIN10" => web::ISO_8859_16,
        "WIN1256" => web::WINDOWS_1256,
        "WIN1258" => web::WINDOWS_1258,
        "WIN866" => web::IBM866,
        "WIN874" => web::WINDOWS_874,
        "KOI8R" => web::KOI8_R,
        "WIN1251" => web::WINDOWS_1251,
        "WIN1252" => web::WINDOWS_1252,
        "ISO_8859_5" => web::ISO_8859_5,
        "ISO_8859_6" => web::ISO_8859_6,
        "ISO_8859_7" => web::ISO_8859_7,
        "ISO_8859_8" => web::ISO_8859_8,
        "WIN1250" => web::WINDOWS_1250,
        "WIN1253" => web::WINDOWS_1253,
        "WIN1255" => web::WINDOWS_1255,
        "WIN1257" => web::WINDOWS_1257,
        "KOI8U" => web::KOI8_U,
        "SJIS" => web::SHIFT_JIS,
        "BIG5" => web::BIG5,
        "GB18030" => web::GB18030,
        _ => return None,
    })
}

pub(super) fn is_known(encoding: Encoding) -> bool {
    relative(encoding).is_some()
}

/// Whether each of its characters is one byte.
pub(super) fn is_single(encoding: Encoding) -> bool {
    super::of_number(encoding.number()).is_some_and(|(_, most)| most == 1)
}

fn single(encoding: Encoding) -> Option<&'static Single> {
    let place = SINGLE.get(encoding.number() as usize)?;
    place.get_or_init(|| Single::new(encoding).map(Box::new)).as_deref()
}

impl Single {
    fn new(encoding: Encoding) -> Option<Single> {
        let web = relative(encoding)?;
        let name = encoding.name();
        let mut characters = [None; 128];
        for byte in 0x80..=0xff_u8 {
            let character = match (name, byte) {
                // The web reads these two as their supersets.
                ("LATIN1", _) | ("LATIN5", 0x80..=0x9f) => Some(char::from(byte)),
                _ => web
                    .decode_without_bom_handling_and_without_replacement(&[byte])
                    .and_then(|text| text.chars().next()),
            };
            // And fills holes of Windows' encodings with control characters.
            let hole = name.starts_with("WIN") && character.is_some_and(char::is_control);
            let differs = differences::DECODED
                .iter()
                .find(|(e, code, _)| *e == encoding.number() && *code == u32::from(byte));
            characters[usize::from(byte - 0x80)] = match differs {
                Some((_, _, character)) => char::from_u32(*character).filter(|c| *c != '\0'),
                None => character.filter(|_| !hole),
            };
        }
        let pairs = characters.iter().zip(0x80_u8..=0xff);
        let mut bytes: Vec<(char, u8)> = pairs.filter_map(|(c, b)| Some(((*c)?, b))).collect();
        bytes.sort_unstable();
        Some(Single { characters, bytes })
    }
}

/// How many bytes a character has that begins so, by its first bytes alone.
pub(super) fn length(encoding: Encoding, bytes: &[u8]) -> usize {
    let Some(first) = bytes.first().copied() else { return 0 };
    match encoding {
        _ if first < 0x80 || is_single(encoding) => 1,
        Encoding::UTF8 => match first {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        },
        Encoding::EUC_JP | Encoding::EUC_KR if first == 0x8f => 3,
        Encoding::SJIS if (0xa1..=0xdf).contains(&first) => 1,
        Encoding::GB18030 if bytes.get(1).is_some_and(u8::is_ascii_digit) => 4,
        _ => 2,
    }
}

/// Whether the bytes, which are as many as [`length`] says, have the form of a character.
fn is_formed(encoding: Encoding, bytes: &[u8]) -> bool {
    let euc = |b: &u8| (0xa1..=0xfe).contains(b);
    match (encoding, bytes) {
        (_, []) => false,
        (Encoding::EUC_JP, [0x8e, kana]) => (0xa1..=0xdf).contains(kana),
        (Encoding::EUC_JP, [0x8f, rest @ ..]) => rest.iter().all(euc),
        (Encoding::EUC_JP | Encoding::EUC_CN | Encoding::EUC_KR, both) => both.iter().all(euc),
        (Encoding::SJIS, [_]) => true,
        (Encoding::SJIS, [first, second, ..]) => {
            matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
        }
        (Encoding::GB18030, [a, b, c, d]) => {
            let (lead, digit) = (0x81..=0xfe, 0x30..=0x39);
            lead.contains(a) && digit.contains(b) && lead.contains(c) && digit.contains(d)
        }
        (Encoding::GB18030, [first, second, ..]) => {
            (0x81..=0xfe).contains(first) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
        }
        // The bytes that PostgreSQL takes for surely no character.
        (_, [0x8d, 0x20]) => false,
        (_, [_, rest @ ..]) => !rest.contains(&0),
    }
}

/// Whether the web's character for a code of two bytes is one of the encoding's own.
fn is_own(encoding: Encoding, bytes: &[u8]) -> bool {
    match (encoding, bytes) {
        // No Hong Kong supplement, no characters that Windows or users added.
        (Encoding::BIG5, [first, second]) => {
            matches!(first, 0xa1..=0xf9) && matches!(second, 0x40..=0x7e | 0xa1..=0xfe)
        }
        // No rows of vendors.
        (Encoding::EUC_JP, [first, _]) => *first < 0xf9,
        (Encoding::UHC | Encoding::GBK, [first, _]) => (0x81..=0xfe).contains(first),
        _ => true,
    }
}

/// The character with which bytes begin, of which there is at least one. An encoding without characters here has
/// none but ASCII.
pub(super) fn first(encoding: Encoding, bytes: &[u8]) -> Found {
    match bytes[0] {
        0 => return Found::Malformed(1),
        byte @ ..0x80 => return Found::Character(char::from(byte), 1),
        _ => {}
    }
    if is_single(encoding) {
        let character = single(encoding).and_then(|s| s.characters[usize::from(bytes[0] - 0x80)]);
        return character.map_or(Found::Unmapped(1), |c| Found::Character(c, 1));
    }
    let length = length(encoding, bytes);
    let Some(bytes) = bytes.get(..length) else { return Found::Malformed(length) };
    if !is_formed(encoding, bytes) {
        return Found::Malformed(length);
    }
    match decode(encoding, bytes) {
        Some(character) => Found::Character(character, length),
        None => Found::Unmapped(length),
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte))
}

fn decode(encoding: Encoding, bytes: &[u8]) -> Option<char> {
    let code = code(bytes);
    let number = encoding.number();
    if let Ok(at) = differences::DECODED.binary_search_by_key(&(number, code), |(e, c, _)| (*e, *c))
    {
        return char::from_u32(differences::DECODED[at].2).filter(|c| *c != '\0');
    }
    if !is_own(encoding, bytes) {
        return None;
    }
    if let (Encoding::UHC, [row @ (0xc9 | 0xfe), at @ 0xa1..=0xfe]) = (encoding, bytes) {
        // Two rows that users define.
        let row = if *row == 0xc9 { 0 } else { 94 };
        return char::from_u32(0xe000 + row + u32::from(at - 0xa1));
    }
    let mut text = [0; 16];
    let (result, read, written) = relative(encoding)?
        .new_decoder_without_bom_handling()
        .decode_to_utf8_without_replacement(bytes, &mut text, true);
    if result != DecoderResult::InputEmpty || read != bytes.len() {
        return None;
    }
    let mut characters = std::str::from_utf8(&text[..written]).ok()?.chars();
    let character = characters.next().filter(|_| characters.next().is_none())?;
    // The web gives characters to what users define; here only GB18030 does.
    (encoding == Encoding::GB18030 || !is_private(character)).then_some(character)
}

fn is_private(character: char) -> bool {
    ('\u{e000}'..='\u{f8ff}').contains(&character)
}

/// The characters of JIS X 0212 in EUC_JP, which the web only reads: each with its last two bytes.
fn supplement() -> &'static [(char, [u8; 2])] {
    static ALL: OnceLock<Vec<(char, [u8; 2])>> = OnceLock::new();
    ALL.get_or_init(|| {
        let codes = (0xa1..=0xfe).flat_map(|a: u8| (0xa1..=0xfe).map(move |b: u8| [a, b]));
        let known = |[a, b]: [u8; 2]| Some((decode(Encoding::EUC_JP, &[0x8f, a, b])?, [a, b]));
        let mut all: Vec<(char, [u8; 2])> = codes.filter_map(known).collect();
        all.sort_unstable();
        all.dedup_by_key(|(character, _)| *character);
        all
    })
}

/// Appends a character's bytes; false: the encoding has none for it.
pub(super) fn append(encoding: Encoding, character: char, out: &mut Vec<u8>) -> bool {
    if character.is_ascii() {
        out.push(character as u8);
        return true;
    }
    if is_single(encoding) {
        let Some(table) = single(encoding) else { return false };
        let found = table.bytes.binary_search_by_key(&character, |(c, _)| *c);
        return found.is_ok_and(|at| {
            out.push(table.bytes[at].1);
            true
        });
    }
    let key = (encoding.number(), u32::from(character));
    if let Ok(at) = differences::ENCODED.binary_search_by_key(&key, |(e, c, _)| (*e, *c)) {
        let code = differences::ENCODED[at].2.to_be_bytes();
        let skip = code.iter().take_while(|b| **b == 0).count();
        out.extend_from_slice(&code[skip..]);
        return skip < code.len();
    }
    let Some(web) = relative(encoding) else { return false };
    if is_private(character) && encoding != Encoding::GB18030 {
        let at = u32::from(character) - 0xe000;
        let users = encoding == Encoding::UHC && at < 188;
        if users {
            out.extend([if at < 94 { 0xc9 } else { 0xfe }, (at % 94) as u8 + 0xa1]);
        }
        return users;
    }
    let (mut utf8, mut bytes) = ([0; 4], [0; 16]);
    let text = character.encode_utf8(&mut utf8);
    let (result, _, written) =
        web.new_encoder().encode_from_utf8_without_replacement(text, &mut bytes, true);
    let bytes = &bytes[..written];
    let whole = result == EncoderResult::InputEmpty
        && written > 0
        && length(encoding, bytes) == written
        && is_formed(encoding, bytes)
        && is_own(encoding, bytes);
    if whole {
        out.extend_from_slice(bytes);
    } else if encoding == Encoding::EUC_JP {
        let all = supplement();
        let found = all.binary_search_by_key(&character, |(c, _)| *c);
        return found.is_ok_and(|at| {
            out.push(0x8f);
            out.extend(all[at].1);
            true
        });
    }
    whole
}
