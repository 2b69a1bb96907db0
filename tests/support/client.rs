//! A small client of the simple query protocol (manual, section 55.2.2).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection.
pub struct Client {
    stream: TcpStream,
    pending: Vec<u8>,
}

/// What a query string gave.
#[derive(Debug, Default)]
pub struct Answer {
    /// Types of the columns (oids), of the last statement that had any.
    pub types: Option<Vec<u32>>,
    /// Rows of all statements, as text; None is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Command tags.
    pub tags: Vec<String>,
    /// What COPY TO sent, and whether in the binary format.
    pub copied: Option<(Vec<u8>, bool)>,
    /// SQLSTATE and message of the error, if there was one.
    pub error: Option<(String, String)>,
    /// The error's CONTEXT.
    pub context: String,
    /// Payloads of notifications that came meanwhile.
    pub notifications: Vec<String>,
}

impl Client {
    /// Connects as `postgres` to database `postgres`.
    pub fn connect(port: u16) -> io::Result<Client> {
        Client::connect_to(port, "postgres", "postgres")
    }

    /// Connects as a role to a database.
    pub fn connect_to(port: u16, user: &str, database: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream, pending: Vec::new() };
        let body = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
        let mut message = ((body.len() + 4) as u32).to_be_bytes().to_vec();
        message.extend_from_slice(body.as_bytes());
        client.stream.write_all(&message)?;
        let answer = client.read_answer(|_| Vec::new())?;
        match answer.error {
            None => Ok(client),
            Some((code, text)) => Err(io::Error::other(format!("{code}: {text}"))),
        }
    }

    /// Makes reads fail that wait longer than this.
    pub fn give_up_after(&mut self, time: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(time))
    }

    /// Sends a query string and reads everything up to ReadyForQuery. An `Err` means that the
    /// connection broke, and with it that nobody knows what became of the statement.
    pub fn query(&mut self, sql: &str) -> io::Result<Answer> {
        self.query_with(sql, |_| Vec::new())
    }

    /// The first column of the first row; a NULL, or no row, is the empty string.
    #[track_caller]
    pub fn one(&mut self, sql: &str) -> String {
        let answer = self.query(sql).expect("the server answers");
        assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        answer.rows.first().and_then(|row| row[0].clone()).unwrap_or_default()
    }

    /// Asks again, for a minute at most, until [`Client::one`] is this.
    #[track_caller]
    pub fn await_one(&mut self, sql: &str, wanted: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = self.one(sql);
            if answer == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{sql}: {answer} instead of {wanted}");
        }
    }

    /// As [`Client::query`]; `data` gives what COPY FROM STDIN is to read, knowing whether in binary.
    pub fn query_with(&mut self, sql: &str, data: impl Fn(bool) -> Vec<u8>) -> io::Result<Answer> {
        self.send(sql)?;
        self.read_answer(data)
    }

    /// Sends a query string and reads nothing.
    pub fn send(&mut self, sql: &str) -> io::Result<()> {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&((sql.len() + 5) as u32).to_be_bytes());
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.stream.write_all(&message)
    }

    /// Reads the answer to what [`Client::send`] sent.
    pub fn answer(&mut self) -> io::Result<Answer> {
        self.read_answer(|_| Vec::new())
    }

    /// Sends query strings at once and reads the answer of each.
    pub fn query_all(&mut self, statements: &[String]) -> io::Result<Vec<Answer>> {
        let mut messages = Vec::new();
        for sql in statements {
            messages.push(b'Q');
            messages.extend_from_slice(&((sql.len() + 5) as u32).to_be_bytes());
            messages.extend_from_slice(sql.as_bytes());
            messages.push(0);
        }
        self.stream.write_all(&messages)?;
        statements.iter().map(|_| self.read_answer(|_| Vec::new())).collect()
    }

    /// CopyData and CopyDone.
    fn send_copy(&mut self, data: &[u8]) -> io::Result<()> {
        let mut message = vec![b'd'];
        message.extend_from_slice(&((data.len() + 4) as u32).to_be_bytes());
        message.extend_from_slice(data);
        message.extend_from_slice(b"c\0\0\0\x04");
        self.stream.write_all(&message)
    }

    fn read_answer(&mut self, data: impl Fn(bool) -> Vec<u8>) -> io::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => return Ok(answer),
                b'T' => answer.types = Some(column_types(&body)),
                b'D' => answer.rows.push(row(&body)),
                b'G' => self.send_copy(&data(body[0] == 1))?,
                b'H' => answer.copied = Some((Vec::new(), body[0] == 1)),
                b'd' => {
                    if let Some((copied, _)) = &mut answer.copied {
                        copied.extend_from_slice(&body);
                    }
                }
                b'C' => answer.tags.push(text(&body)),
                b'A' => {
                    // The sender's number, the channel, the payload.
                    let mut texts = body[4..].split(|b| *b == 0).skip(1);
                    let payload = texts.next().unwrap_or_default();
                    answer.notifications.push(String::from_utf8_lossy(payload).into_owned());
                }
                b'E' => {
                    let error = error(&body);
                    let fatal = body.split(|b| *b == 0).any(|f| f == b"VFATAL");
                    let context = body.split(|b| *b == 0).find_map(|f| f.strip_prefix(b"W"));
                    answer.context = String::from_utf8_lossy(context.unwrap_or_default()).into();
                    answer.error = Some(error);
                    if fatal {
                        return Ok(answer);
                    }
                }
                _ => {}
            }
        }
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        loop {
            if self.pending.len() >= 5 {
                let length: [u8; 4] = self.pending[1..5].try_into().expect("four bytes");
                let end = 1 + u32::from_be_bytes(length) as usize;
                if self.pending.len() >= end {
                    let kind = self.pending[0];
                    let body = self.pending[5..end].to_vec();
                    self.pending.drain(..end);
                    return Ok((kind, body));
                }
            }
            let mut buffer = [0; 16384];
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => self.pending.extend_from_slice(&buffer[..n]),
            }
        }
    }
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let mut out = Vec::new();
    let mut rest = &body[2..];
    while rest.len() >= 4 {
        let length = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        rest = &rest[4..];
        let Ok(length) = usize::try_from(length) else {
            out.push(None);
            continue;
        };
        out.push(Some(String::from_utf8_lossy(&rest[..length]).into_owned()));
        rest = &rest[length..];
    }
    out
}

/// The types in a RowDescription.
fn column_types(body: &[u8]) -> Vec<u32> {
    let mut out = Vec::new();
    let mut rest = &body[2..];
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        let oid: [u8; 4] = rest[end + 7..end + 11].try_into().expect("four bytes");
        out.push(u32::from_be_bytes(oid));
        rest = &rest[end + 19..];
    }
    out
}

fn error(body: &[u8]) -> (String, String) {
    let field = |letter: u8| {
        let found = body.split(|b| *b == 0).find(|f| f.first() == Some(&letter));
        found.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).unwrap_or_default()
    };
    (field(b'C'), field(b'M'))
}
