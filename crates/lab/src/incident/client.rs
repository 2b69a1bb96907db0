//! A client for one connection: blocking, simple protocol, values as text.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crate::{Error, Result};

/// A row's values; None for NULL.
pub type Row = Vec<Option<String>>;

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects as `postgres` to a server on loopback that asks for no password.
    ///
    /// # Errors
    /// Nobody listens, or the server refuses.
    pub fn connect(port: u16) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let mut client = Client { stream: BufReader::with_capacity(1024, stream) };
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        let mut message = (startup.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend_from_slice(&startup);
        client.stream.get_mut().write_all(&message).map_err(broken)?;
        client.answer()?;
        Ok(client)
    }

    /// Runs statements; the rows of all of them.
    ///
    /// # Errors
    /// The server's error, or a connection that has ended.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>> {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&(sql.len() as u32 + 5).to_be_bytes());
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.stream.get_mut().write_all(&message).map_err(broken)?;
        self.answer()
    }

    /// One statement's only value, as a number; 0 for NULL.
    ///
    /// # Errors
    /// As [`Client::query`]; a value that is no number.
    pub fn number(&mut self, sql: &str) -> Result<f64> {
        let rows = self.query(sql)?;
        let value = rows.first().and_then(|r| r.first()).cloned().flatten();
        number(value.as_deref())
    }

    /// Reads up to "ready for query".
    fn answer(&mut self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).map_err(broken)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut body = vec![0; length.saturating_sub(4)];
            self.stream.read_exact(&mut body).map_err(broken)?;
            match head[0] {
                b'D' => rows.push(row(&body).ok_or_else(|| Error::new("a malformed row"))?),
                b'E' => failed = failed.or_else(|| Some(message(&body))),
                b'R' if body != [0; 4] => return Err(Error::new("the server asks for a password")),
                b'Z' => return failed.map_or(Ok(rows), |text| Err(Error::new(text))),
                _ => {}
            }
        }
    }
}

/// A value as a number; 0 for NULL.
///
/// # Errors
/// It is none.
pub fn number(value: Option<&str>) -> Result<f64> {
    let Some(text) = value else { return Ok(0.0) };
    text.parse().map_err(|_| Error::new(format!("{text:?} is no number")))
}

fn broken(error: std::io::Error) -> Error {
    Error::new(format!("connection: {error}"))
}

fn row(body: &[u8]) -> Option<Row> {
    let count = u16::from_be_bytes([*body.first()?, *body.get(1)?]);
    let mut rest = body.get(2..)?;
    let mut row = Row::with_capacity(usize::from(count));
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => row.push(None),
            Ok(length) => {
                row.push(Some(String::from_utf8_lossy(rest.get(..length)?).into_owned()));
                rest = rest.get(length..)?;
            }
        }
    }
    Some(row)
}

/// The message among an error's fields.
fn message(body: &[u8]) -> String {
    let mut fields = body.split(|b| *b == 0);
    let text = fields.find(|f| f.first() == Some(&b'M')).map_or(&b"?"[..], |f| &f[1..]);
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_errors_are_read() {
        let body = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(row(body), Some(vec![Some("ab".into()), None, Some(String::new())]));
        assert_eq!(row(&body[..7]), None);
        assert_eq!(message(b"SERROR\0C42P01\0Mno such table\0\0"), "no such table");
    }
}
