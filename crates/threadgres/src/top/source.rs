//! The source of the numbers: `/api/now.json`, or the SQL function `pg_server_status()`, which
//! gives the same text over the simple query protocol (manual, section 55.2.2).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::screen::Sample;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer.
const ANSWER_MAX: usize = 64 << 20;

/// See the module's documentation.
pub enum Source {
    /// Asked anew each time: `host:port`, and what says who asks.
    Http(String, String),
    /// A session.
    Sql(Box<dyn Stream>),
}

/// A TCP or Unix connection.
pub trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Source {
    /// Opens what a URL names.
    ///
    /// # Errors
    /// In words.
    pub fn open(url: &str, token: Option<&str>) -> Result<Source, String> {
        let failed = |e: io::Error| format!("{url}: {e}");
        if let Some(rest) = url.strip_prefix("http://") {
            let header = match (token, credentials(rest)) {
                (Some(token), _) => format!("Authorization: Bearer {token}\r\n"),
                (None, Some(pair)) => format!("Authorization: Basic {}\r\n", STANDARD.encode(pair)),
                (None, None) => String::new(),
            };
            return Ok(Source::Http(authority(rest, 8432), header));
        }
        let mut stream: Box<dyn Stream> = if let Some(path) = url.strip_prefix("unix:") {
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
            Box::new(stream)
        } else {
            let rest =
                url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
            let rest = rest.ok_or(format!("{url}: use postgres:// or http://"))?;
            Box::new(connect(&authority(rest, 5432)).map_err(failed)?)
        };
        start(&mut *stream).map_err(failed)?;
        Ok(Source::Sql(stream))
    }

    /// The numbers now.
    ///
    /// # Errors
    /// In words.
    pub fn fetch(&mut self) -> Result<Sample, String> {
        let text = match self {
            Source::Http(address, header) => get(address, header),
            Source::Sql(stream) => query(&mut **stream, "SELECT pg_server_status()"),
        };
        let text = text.map_err(|e| e.to_string())?;
        serde_json::from_str::<Value>(&text).map(Sample).map_err(|e| format!("not an answer: {e}"))
    }
}

/// `host:port` of what follows `scheme://`; users, databases and paths don't matter.
fn authority(rest: &str, port: u16) -> String {
    let host = rest.split(['/', '?']).next().unwrap_or("");
    let host = host.rsplit('@').next().unwrap_or("");
    let has_port = host.rsplit(':').next().is_some_and(|p| p.parse::<u16>().is_ok())
        && (!host.starts_with('[') || host.contains("]:"))
        && host.contains(':');
    let host = if host.is_empty() { "localhost" } else { host };
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// `user:password` of what follows `scheme://`, its %xx read.
fn credentials(rest: &str) -> Option<Vec<u8>> {
    let host = rest.split(['/', '?']).next()?;
    let (user, _) = host.rsplit_once('@')?;
    Some(base::percent::decode(user).unwrap_or_else(|| user.as_bytes().to_vec()))
}

fn get(address: &str, header: &str) -> io::Result<String> {
    let mut stream = connect(address)?;
    let head = "GET /api/now.json HTTP/1.1\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Host: {address}\r\n{header}\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_MAX as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    if !head.starts_with("HTTP/1.1 200 ") {
        let line = head.lines().next().unwrap_or("nothing");
        return Err(io::Error::other(format!("{line}: {}", body.trim())));
    }
    Ok(body.to_owned())
}

/// Begins a session.
fn start(stream: &mut dyn Stream) -> io::Result<()> {
    let body =
        b"\0\x03\0\0user\0postgres\0database\0postgres\0application_name\0threadgres top\0\0";
    stream.write_all(&((body.len() + 4) as u32).to_be_bytes())?;
    stream.write_all(body)?;
    answer(stream).map(drop)
}

/// The first column of the first row.
fn query(stream: &mut dyn Stream, sql: &str) -> io::Result<String> {
    let mut message = vec![b'Q'];
    message.extend(((sql.len() + 5) as u32).to_be_bytes());
    message.extend(sql.bytes());
    message.push(0);
    stream.write_all(&message)?;
    answer(stream)?.ok_or_else(|| io::Error::other("the server sent no row"))
}

/// Reads up to ReadyForQuery.
fn answer(stream: &mut dyn Stream) -> io::Result<Option<String>> {
    let mut row = None;
    let mut error = None;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).map_err(|e| error.take().unwrap_or(e))?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..ANSWER_MAX).contains(&length) {
            return Err(io::Error::other("this is not a PostgreSQL server"));
        }
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body)?;
        match head[0] {
            // Two bytes for the number of columns, four for the first one's length.
            b'D' if body.len() >= 6 => row = Some(String::from_utf8_lossy(&body[6..]).into_owned()),
            b'R' if body != [0; 4] => {
                return Err(io::Error::other("the server wants a password; use http:// or -D"));
            }
            b'E' => {
                let message = body.split(|b| *b == 0).find_map(|f| f.strip_prefix(b"M"));
                let message = String::from_utf8_lossy(message.unwrap_or_default()).into_owned();
                error = Some(io::Error::other(message));
            }
            b'Z' => return error.map_or(Ok(row), Err),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{authority, credentials};

    #[test]
    fn credentials_are_before_the_host() {
        assert_eq!(credentials("a%3Ab:c%40@h:1/x@y"), Some(b"a:b:c@".to_vec()));
        assert_eq!(credentials("h:1/x@y"), None);
    }

    #[test]
    fn urls_are_cut_to_host_and_port() {
        for (url, want) in [
            ("localhost", "localhost:1"),
            ("me:secret@db:7/x?y=z", "db:7"),
            ("[::1]", "[::1]:1"),
            ("[::1]:8", "[::1]:8"),
            ("", "localhost:1"),
        ] {
            assert_eq!(authority(url, 1), want);
        }
    }
}
