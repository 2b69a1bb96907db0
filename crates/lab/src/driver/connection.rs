//! A connection that has logged in, and what is done on it one statement at a time: questions to the
//! server's views, setting up tables. The load's clients take its socket and go on without waiting.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::address::{Address, Dialect};
use super::frames::{self, Frame};
use super::mysql::{self, Answers};

/// How long connecting and logging in may take.
const LOGIN: Duration = Duration::from_secs(10);
/// How long one of the laboratory's own statements may take.
const STATEMENT: Duration = Duration::from_secs(600);

/// What went wrong: SQLSTATE and text. `08001` and `08006` also stand for what the network says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE.
    pub code: String,
    /// Message.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl From<Failure> for crate::Error {
    fn from(failure: Failure) -> crate::Error {
        crate::Error::new(failure.to_string())
    }
}

/// A socket, and what to say when it is closed.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    good_bye: &'static [u8],
}

#[derive(Debug)]
enum Socket {
    /// Over IP.
    Tcp(TcpStream),
    /// In the file system.
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &Address) -> std::io::Result<Stream> {
        let good_bye: &[u8] = match address.dialect {
            Dialect::PostgreSql => &frames::TERMINATE,
            Dialect::MySql => &mysql::QUIT,
        };
        if let Some(path) = address.socket() {
            return Ok(Stream { socket: Socket::Unix(UnixStream::connect(path)?), good_bye });
        }
        let mut last = std::io::Error::other("the host has no address");
        for place in (address.host.as_str(), address.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&place, LOGIN) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Stream { socket: Socket::Tcp(stream), good_bye });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn patience(&self, time: Duration) -> std::io::Result<()> {
        match &self.socket {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(time)),
        }
    }

    /// From now on reads and writes do not wait.
    pub fn set_nonblocking(&self) -> std::io::Result<()> {
        match &self.socket {
            Socket::Tcp(stream) => stream.set_nonblocking(true),
            Socket::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Drop for Stream {
    /// Says good-bye; where that fails the server notices the closed socket.
    fn drop(&mut self) {
        let _ = self.write(self.good_bye);
    }
}

/// Rows of text; none is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// A session that waits for its answers.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    input: Vec<u8>,
    asked: u64,
    dialect: Dialect,
    /// What the server reported of itself: `server_version` and others.
    pub parameters: BTreeMap<String, String>,
}

impl Connection {
    /// Connects and logs in: trust, password, MD5 or SCRAM-SHA-256.
    ///
    /// # Errors
    /// Nobody listens (`08001`), the server refuses, another way of authentication is asked for.
    pub fn open(address: &Address) -> Result<Connection, Failure> {
        let broken =
            |e: std::io::Error| Failure { code: "08001".to_owned(), message: e.to_string() };
        let stream = Stream::connect(address).map_err(broken)?;
        stream.patience(LOGIN).map_err(broken)?;
        let mut connection = Connection {
            stream,
            input: Vec::new(),
            asked: 0,
            dialect: address.dialect,
            parameters: BTreeMap::new(),
        };
        match address.dialect {
            Dialect::PostgreSql => {
                let mut out = Vec::new();
                frames::startup(&mut out, &address.user, &address.database);
                connection.send(&out)?;
                connection.log_in(address)?;
            }
            Dialect::MySql => connection.log_in_to_mysql(address)?,
        }
        connection.stream.patience(STATEMENT).map_err(broken)?;
        Ok(connection)
    }

    /// How many query strings were sent.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// The socket; everything that came in was read.
    pub fn into_stream(self) -> Stream {
        self.stream
    }

    fn log_in(&mut self, address: &Address) -> Result<(), Failure> {
        let password = || {
            address.password.as_deref().ok_or_else(|| Failure {
                code: "28P01".to_owned(),
                message: format!(
                    "{} asks for a password, and the address has none",
                    address.shown()
                ),
            })
        };
        let mut scram = None;
        let mut out = Vec::new();
        loop {
            let frame = self.frame()?;
            match frame.tag {
                b'Z' => return Ok(()),
                b'E' => return Err(not_let_in(frames::failure(&frame.body))),
                b'S' => {
                    let mut words = frame.body.split(|b| *b == 0).map(String::from_utf8_lossy);
                    if let (Some(name), Some(value)) = (words.next(), words.next()) {
                        self.parameters.insert(name.into_owned(), value.into_owned());
                    }
                    continue;
                }
                b'R' => {}
                _ => continue,
            }
            let (kind, rest) = frames::int32(&frame.body).ok_or_else(protocol)?;
            out.clear();
            match kind {
                0 => continue,
                3 => frames::message(&mut out, b'p', |out| {
                    frames::string(out, password()?.as_bytes())
                })?,
                5 => {
                    let salt: [u8; 4] = rest.try_into().map_err(|_| protocol())?;
                    let hash = md5_hash(address.user.as_bytes(), password()?.as_bytes(), salt);
                    frames::message(&mut out, b'p', |out| frames::string(out, hash.as_bytes()))?;
                }
                10 => {
                    let offered = rest.split(|b| *b == 0).any(|m| m == SCRAM_SHA_256.as_bytes());
                    if !offered {
                        return Err(unknown_method());
                    }
                    let begun =
                        ScramSha256::new(password()?.as_bytes(), ChannelBinding::unsupported());
                    frames::message(&mut out, b'p', |out| {
                        frames::string(out, SCRAM_SHA_256.as_bytes())?;
                        out.extend_from_slice(&(begun.message().len() as i32).to_be_bytes());
                        out.extend_from_slice(begun.message());
                        Ok(())
                    })?;
                    scram = Some(begun);
                }
                11 => {
                    let scram = scram.as_mut().ok_or_else(protocol)?;
                    scram.update(rest).map_err(refused)?;
                    frames::message(&mut out, b'p', |out| {
                        out.extend_from_slice(scram.message());
                        Ok(())
                    })?;
                }
                12 => {
                    scram.as_mut().ok_or_else(protocol)?.finish(rest).map_err(refused)?;
                    continue;
                }
                _ => return Err(unknown_method()),
            }
            self.send(&out)?;
        }
    }

    fn log_in_to_mysql(&mut self, address: &Address) -> Result<(), Failure> {
        let (_, greeting) = self.packet()?;
        let mut answer = Some(mysql::log_in(&greeting, &address.user, &address.database)?);
        while let Some(bytes) = answer {
            self.send(&bytes)?;
            let (number, body) = self.packet()?;
            answer = mysql::logged_in(number, &body)?;
        }
        Ok(())
    }

    fn query_mysql(&mut self, sql: &str) -> Result<Rows, Failure> {
        let mut out = Vec::new();
        mysql::query(&mut out, |out| out.extend_from_slice(sql.as_bytes()));
        self.send(&out)?;
        let mut answers = Answers::new(false);
        answers.rows = Some(Rows::new());
        while !answers.take(&self.packet()?.1)? {}
        answers.failure.map_or(Ok(answers.rows.unwrap_or_default()), Err)
    }

    /// The protocol that the server speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Runs one or several statements (of MySQL's: one); the rows are those of the last one that has any.
    ///
    /// # Errors
    /// The statement's, or a broken connection (`08006`).
    pub fn query(&mut self, sql: &str) -> Result<Rows, Failure> {
        if self.dialect == Dialect::MySql {
            return self.query_mysql(sql);
        }
        self.send_query(sql)?;
        let (mut rows, mut failure) = (Rows::new(), None);
        loop {
            let frame = self.frame()?;
            match frame.tag {
                b'T' => rows.clear(),
                b'D' => rows.push(frames::row(&frame.body).ok_or_else(protocol)?),
                b'E' => failure = Some(frames::failure(&frame.body)),
                b'Z' => return failure.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    /// Prepares a statement under a name and runs it with one parameter, given as text.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn prepared(&mut self, name: &str, sql: &str, parameter: &str) -> Result<(), Failure> {
        self.execute(name, Some(sql), &[parameter]).map(drop)
    }

    /// Runs a prepared statement with parameters given as text; with `sql` it is prepared under this name in the
    /// same round trip.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn execute<T: AsRef<str>>(
        &mut self,
        name: &str,
        sql: Option<&str>,
        parameters: &[T],
    ) -> Result<Rows, Failure> {
        self.asked += 1;
        let mut out = Vec::new();
        if let Some(sql) = sql {
            frames::message(&mut out, b'P', |out| {
                frames::string(out, name.as_bytes())?;
                frames::string(out, sql.as_bytes())?;
                out.extend_from_slice(&[0, 0]);
                Ok(())
            })?;
        }
        frames::message(&mut out, b'B', |out| {
            out.push(0);
            frames::string(out, name.as_bytes())?;
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
            for parameter in parameters {
                let text = parameter.as_ref().as_bytes();
                out.extend_from_slice(&(text.len() as i32).to_be_bytes());
                out.extend_from_slice(text);
            }
            out.extend_from_slice(&[0, 0]);
            Ok(())
        })?;
        out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
        out.extend_from_slice(&frames::SYNC);
        self.send(&out)?;
        let (mut rows, mut failure) = (Rows::new(), None);
        loop {
            let frame = self.frame()?;
            match frame.tag {
                b'D' => rows.push(frames::row(&frame.body).ok_or_else(protocol)?),
                b'E' => failure = Some(frames::failure(&frame.body)),
                b'Z' => return failure.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    /// The first value of the first row; none for NULL and no row.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let rows = self.query(sql)?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Fills a table (`name (column, …)`) with these blocks of text, as COPY takes them.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn copy(
        &mut self,
        table: &str,
        mut data: impl Iterator<Item = Vec<u8>>,
    ) -> Result<(), Failure> {
        if self.dialect == Dialect::MySql {
            return data.try_for_each(|block| self.query(&insert(table, &block)).map(drop));
        }
        self.send_query(&format!("COPY {table} FROM STDIN"))?;
        let mut failure = None;
        let mut data = Some(data);
        loop {
            let frame = self.frame()?;
            match frame.tag {
                b'G' => {
                    let mut out = Vec::new();
                    for block in data.take().into_iter().flatten() {
                        out.clear();
                        frames::message(&mut out, b'd', |out| {
                            out.extend_from_slice(&block);
                            Ok(())
                        })?;
                        self.send(&out)?;
                    }
                    out.clear();
                    frames::message(&mut out, b'c', |_| Ok(()))?;
                    self.send(&out)?;
                }
                b'E' => failure = Some(frames::failure(&frame.body)),
                b'Z' => return failure.map_or(Ok(()), Err),
                _ => {}
            }
        }
    }

    fn send_query(&mut self, sql: &str) -> Result<(), Failure> {
        self.asked += 1;
        let mut out = Vec::new();
        frames::message(&mut out, b'Q', |out| frames::string(out, sql.as_bytes()))?;
        self.send(&out)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(|e| frames::broken(&e))
    }

    fn frame(&mut self) -> Result<Frame, Failure> {
        loop {
            if let Some((tag, body)) = frames::next(&self.input) {
                let frame = Frame { tag, body: body.to_vec() };
                self.input.drain(..5 + frame.body.len());
                return Ok(frame);
            }
            self.more()?;
        }
    }

    /// A packet of MySQL's: its number and body.
    fn packet(&mut self) -> Result<(u8, Vec<u8>), Failure> {
        loop {
            if let Some((number, body)) = mysql::next(&self.input) {
                let body = body.to_vec();
                self.input.drain(..4 + body.len());
                return Ok((number, body));
            }
            self.more()?;
        }
    }

    /// Waits for more input.
    fn more(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 16384];
        match self.stream.read(&mut buffer) {
            Ok(0) => {
                let message = "the server closed the connection".to_owned();
                return Err(Failure { code: "08006".to_owned(), message });
            }
            Ok(n) => self.input.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(frames::broken(&error)),
        }
        Ok(())
    }
}

/// Lines of fields, which hold letters and digits only, as one INSERT.
fn insert(table: &str, block: &[u8]) -> String {
    let mut sql = format!("INSERT INTO {table} VALUES ");
    for (i, line) in String::from_utf8_lossy(block).lines().enumerate() {
        sql.push_str(if i == 0 { "('" } else { ",('" });
        sql.push_str(&line.replace('\t', "','"));
        sql.push_str("')");
    }
    sql
}

fn protocol() -> Failure {
    let message = "the server's answer does not follow the protocol".to_owned();
    Failure { code: "08P01".to_owned(), message }
}

/// The server's refusal. Who forgot to say who they are went by the operating system's name for them,
/// which need not be a role.
fn not_let_in(mut failure: Failure) -> Failure {
    if failure.code == "28000" && failure.message.ends_with("does not exist") {
        failure.message += "; name another one: postgres://user@host:port/database";
    }
    failure
}

fn unknown_method() -> Failure {
    let message = "the server asks for a way of authentication that the laboratory does not have";
    Failure { code: "0A000".to_owned(), message: message.to_owned() }
}

fn refused(error: std::io::Error) -> Failure {
    Failure { code: "28P01".to_owned(), message: error.to_string() }
}
