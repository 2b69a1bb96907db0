//! A module as CREATE FUNCTION gives it: text, hexadecimal digits, base64, or the name of a file.

use std::path::{Path, PathBuf};

use base::{Result, err};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The largest module, in bytes.
pub const MODULE_MAX_BYTES: usize = 32 << 20;

/// The first bytes of every module in binary form.
const MAGIC: &[u8; 4] = b"\0asm";

/// A module's source by its form.
#[derive(Debug, PartialEq)]
pub enum Source {
    /// In the binary or the text form.
    Module(Vec<u8>),
    /// In a file of the server.
    File(PathBuf),
}

fn bad(why: impl std::fmt::Display) -> base::Error {
    err!(INVALID_FUNCTION_DEFINITION, "invalid WebAssembly module: {why}")
}

/// Whether it begins as the text form does: with `(`, after blanks and comments of a line.
fn is_text(source: &str) -> bool {
    let mut rest = source.trim_start();
    while let Some(comment) = rest.strip_prefix(";;") {
        rest = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest.starts_with('(')
}

/// The form of the first item of AS.
///
/// # Errors
/// `42P13` for one that is no form, or too large.
pub fn parse(source: &str) -> Result<Source> {
    if source.len() > 2 * MODULE_MAX_BYTES + 2 {
        return Err(bad("it is larger than 32 MB"));
    }
    if is_text(source) {
        return Ok(Source::Module(source.as_bytes().to_vec()));
    }
    let plain: String = source.split_ascii_whitespace().collect();
    let digits = plain.strip_prefix("\\x").unwrap_or(&plain);
    let bytes = if digits.starts_with("0061736d") || digits.starts_with("0061736D") {
        from_hex(digits).ok_or_else(|| bad("its digits are not hexadecimal"))?
    } else if plain.starts_with("AGFzb") {
        STANDARD.decode(&plain).map_err(|error| bad(format_args!("its base64: {error}")))?
    } else if plain.starts_with("\\x") || source.contains('\n') || source.trim().is_empty() {
        return Err(bad("it begins neither as text nor as bytes of one"));
    } else {
        return Ok(Source::File(source.trim().into()));
    };
    if bytes.len() > MODULE_MAX_BYTES {
        return Err(bad("it is larger than 32 MB"));
    }
    Ok(Source::Module(bytes))
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8);
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// The bytes of a file.
///
/// # Errors
/// `58P01` and its kin; `42P13` when it is no module.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let doing = || format!("could not read module \"{}\"", path.display());
    let failed = |e: std::io::Error| base::Error::io(doing(), &e);
    let mut file = exec::server_file::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut take = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    // One more than a module may have says that it is too large.
    exec::server_file::read(&mut file, MODULE_MAX_BYTES as u64 + 1, &failed, &mut take)?;
    if bytes.len() > MODULE_MAX_BYTES {
        return Err(bad("it is larger than 32 MB"));
    }
    // A parser's message must not show the content of a file that is no module.
    match bytes.starts_with(MAGIC) {
        true => Ok(bytes),
        false => Err(bad(format_args!("file \"{}\" has no module", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_known_by_its_beginning() {
        let text = " ;; a comment\n (module)";
        assert_eq!(parse(text).ok(), Some(Source::Module(text.as_bytes().to_vec())));
        let module = Source::Module(b"\0asm\x01\0\0\0".to_vec());
        assert_eq!(parse("\\x0061736d 01000000").ok(), Some(module));
        let module = Source::Module(b"\0asm\x01\0\0\0".to_vec());
        assert_eq!(parse("AGFzbQEA\nAAA=").ok(), Some(module));
        assert_eq!(parse("$libdir/a.wasm").ok(), Some(Source::File("$libdir/a.wasm".into())));
        for bad in ["", "\\x00", "0061736d0", "0061736dzz", "AGFzbQ=", "no\nfile"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
