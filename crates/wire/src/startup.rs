//! The client's first messages (manual, section 55.7, StartupMessage and kin): a length and a code,
//! without a type byte.

use base::{Error, Result, err};

use crate::reader::{Reader, violation};

/// Longest start-up packet, as in PostgreSQL.
pub const LIMIT: usize = 10_000;

/// The newest minor version of protocol 3. (There is no 3.1.)
pub const NEWEST_MINOR: u16 = 2;
/// From this one on secrets of cancel requests may be long.
pub const LONG_SECRETS: u16 = 2;
/// Lengths of such secrets.
const SECRET_MIN: usize = 4;
const SECRET_MAX: usize = 256;

const CANCEL: i32 = 80_877_102;
const SSL: i32 = 80_877_103;
const GSSENC: i32 = 80_877_104;

/// The first packet, or one of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Startup<'a> {
    /// Asks for TLS; the answer is one byte.
    SslRequest,
    /// Asks for GSSAPI encryption; the answer is one byte.
    GssEncRequest,
    /// Asks to cancel what another session runs; no answer.
    Cancel {
        /// That session's number.
        pid: i32,
        /// And its secret: four bytes, or more since protocol 3.2.
        secret: &'a [u8],
    },
    /// Begins a session.
    Session(Parameters<'a>),
}

/// The parameters with which a session begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters<'a> {
    /// The protocol's minor version; the major one is 3.
    pub minor: u16,
    /// Names and values in the order sent, protocol options (`_pq_.…`) left out.
    pub values: Vec<(&'a str, &'a str)>,
    /// Protocol options that the client asked for; none is known.
    pub protocol_options: Vec<&'a str>,
}

impl<'a> Parameters<'a> {
    /// The last value given for a name.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.values.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }
}

/// Reads the packet at the beginning of `input` and says how long it is; None when it isn't
/// complete.
///
/// # Errors
/// `08P01` malformed; `0A000` a protocol of another major version. Both fatal.
pub fn next_startup(input: &[u8]) -> Result<Option<(Startup<'_>, usize)>> {
    let Some(length) = input.get(..4) else { return Ok(None) };
    let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if length < 8 || length as usize > LIMIT {
        return Err(violation("invalid length of startup packet"));
    }
    let Some(body) = input.get(4..length as usize) else { return Ok(None) };
    Ok(Some((decode(body).map_err(Error::fatal)?, length as usize)))
}

fn decode(body: &[u8]) -> Result<Startup<'_>> {
    let mut r = Reader::new(body);
    let startup = match r.int32()? {
        SSL => Startup::SslRequest,
        GSSENC => Startup::GssEncRequest,
        CANCEL => {
            let (pid, secret) = (r.int32()?, r.rest());
            if !(SECRET_MIN..=SECRET_MAX).contains(&secret.len()) {
                return Err(violation("invalid length of cancel request packet"));
            }
            Startup::Cancel { pid, secret }
        }
        version if version >> 16 == 3 => {
            return parameters(r, version as u16).map(Startup::Session);
        }
        version => {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{NEWEST_MINOR}",
                version >> 16,
                version & 0xffff
            )
            .fatal());
        }
    };
    r.end()?;
    Ok(startup)
}

fn parameters(mut r: Reader<'_>, minor: u16) -> Result<Parameters<'_>> {
    let bad = || violation("invalid startup packet layout: expected terminator as last byte");
    let mut parameters = Parameters { minor, ..Parameters::default() };
    loop {
        let name = text(r.string().map_err(|_| bad())?)?;
        if name.is_empty() {
            break;
        }
        let value = text(r.string().map_err(|_| bad())?)?;
        if name.starts_with("_pq_.") {
            parameters.protocol_options.push(name);
        } else {
            parameters.values.push((name, value));
        }
    }
    r.end().map_err(|_| bad())?;
    Ok(parameters)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| violation("startup packet is not valid UTF-8"))
}

/// Splits the `options` parameter into words as a command line: blanks separate, a backslash takes
/// the next character as it is. Understands `-c name=value` and `--name=value`.
///
/// # Errors
/// `42601` for anything else.
pub fn split_options(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        if c.is_ascii_whitespace() {
            words.extend(word.take());
        } else {
            let c = if c == '\\' { chars.next().unwrap_or('\\') } else { c };
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let bad = || err!(SYNTAX_ERROR, "invalid command-line argument for server process: {word}");
        let assignment = if word == "-c" {
            words.next().ok_or_else(bad)?
        } else if let Some(rest) = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            rest.to_owned()
        } else {
            return Err(bad().fatal());
        };
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(err!(SYNTAX_ERROR, "-c {assignment} requires a value").fatal());
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: i32, rest: &[u8]) -> Vec<u8> {
        let mut p = ((8 + rest.len()) as i32).to_be_bytes().to_vec();
        p.extend(code.to_be_bytes());
        p.extend(rest);
        p
    }

    #[test]
    fn a_session_begins_with_its_parameters() {
        let p = packet(196_610, b"user\0me\0_pq_.x\0y\0database\0d\0\0");
        for cut in 0..p.len() {
            assert_eq!(next_startup(&p[..cut]).unwrap(), None);
        }
        let Some((Startup::Session(s), used)) = next_startup(&p).unwrap() else { panic!() };
        assert_eq!((s.minor, used), (2, p.len()));
        assert_eq!((s.get("user"), s.get("database"), s.get("x")), (Some("me"), Some("d"), None));
        assert_eq!(s.protocol_options, ["_pq_.x"]);
    }

    #[test]
    fn requests_have_codes_of_their_own() {
        let get = |p: &[u8]| next_startup(p).unwrap().unwrap().0 == Startup::SslRequest;
        assert!(get(&packet(SSL, b"")));
        assert!(!get(&packet(GSSENC, b"")));
        let p = packet(CANCEL, &[0, 0, 0, 7, 0, 0, 0, 9]);
        assert_eq!(
            next_startup(&p).unwrap().unwrap().0,
            Startup::Cancel { pid: 7, secret: &[0, 0, 0, 9] }
        );
        let long = [&[0, 0, 0, 7][..], &[5; 32]].concat();
        let p = packet(CANCEL, &long);
        assert_eq!(
            next_startup(&p).unwrap().unwrap().0,
            Startup::Cancel { pid: 7, secret: &[5; 32] }
        );
        for length in [3, 257] {
            let p = packet(CANCEL, &[&[0, 0, 0, 7][..], &vec![5; length]].concat());
            assert!(next_startup(&p).is_err(), "{length}");
        }
    }

    #[test]
    fn malformed_packets_are_refused() {
        let code = |p: &[u8]| next_startup(p).unwrap_err().code().as_str().to_owned();
        assert_eq!(code(&[0, 0, 0, 7]), "08P01");
        assert_eq!(code(&[0, 0, 0x27, 0x11]), "08P01");
        assert_eq!(code(&packet(196_608, b"user\0me\0")), "08P01");
        assert_eq!(code(&packet(196_608, b"user\0me\0\0x")), "08P01");
        assert_eq!(code(&packet(196_608, b"user\0\xff\0\0")), "08P01");
        assert_eq!(code(&packet(131_072, b"")), "0A000");
        assert_eq!(code(&packet(SSL, b"x")), "08P01");
        assert_eq!(code(b"GET / HTTP/1.1\r\n"), "08P01");
    }

    #[test]
    fn options_are_split_like_a_command_line() {
        let got = split_options(r"-c a=1  --work-mem=2\ MB -cb=3").unwrap();
        let want = [("a", "1"), ("work_mem", "2 MB"), ("b", "3")];
        assert_eq!(got, want.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(split_options("-x").is_err());
        assert!(split_options("-c a").is_err());
        assert!(split_options("-c").is_err());
    }
}
