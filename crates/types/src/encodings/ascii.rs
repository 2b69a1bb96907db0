//! `to_ascii`: the letters of four encodings without their marks, byte by byte as PostgreSQL's tables have them.

use base::{Result, err};

use super::Encoding;

/// From 0x80 on, what a byte becomes.
type Table = [u8; 128];

const LATIN1: &Table = b"                                  cL Y  \"Ca  -R     'u .,      ?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty";
const LATIN2: &Table = b"                                 A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt.";
const LATIN9: &Table = b"                                  cL YS sCa  -R     Zu .z   EeY?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty";
const WIN1250: &Table = b"  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt ";

/// A text's bytes, taken for an encoding's, in ASCII.
///
/// # Errors
/// `0A000` for an encoding that has no table.
pub fn to_ascii(encoding: Encoding, bytes: &[u8]) -> Result<String> {
    let table = match encoding.name() {
        "LATIN1" => LATIN1,
        "LATIN2" => LATIN2,
        "LATIN9" => LATIN9,
        "WIN1250" => WIN1250,
        name => {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "encoding conversion from {name} to ASCII not supported"
            ));
        }
    };
    let one = |byte: &u8| match byte {
        0x80.. => char::from(table[usize::from(*byte - 0x80)]),
        byte => char::from(*byte),
    };
    let mut out = String::with_capacity(bytes.len());
    for piece in bytes.chunks(64 << 10) {
        sched::check_interrupts_now()?;
        out.extend(piece.iter().map(one));
    }
    Ok(out)
}

/// The encoding with a number.
///
/// # Errors
/// `42704`.
pub fn of_code(code: i32) -> Result<Encoding> {
    let name = super::of_number(code).map(|(name, _)| name);
    name.and_then(Encoding::find)
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "{code} is not a valid encoding code"))
}

/// The encoding with a name.
///
/// # Errors
/// `42704`.
pub fn named(name: &str) -> Result<Encoding> {
    Encoding::find(name)
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "{name} is not a valid encoding name"))
}
