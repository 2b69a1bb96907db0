//! A client of another server, for subscriptions and foreign tables: the protocol's simple queries, COPY OUT and
//! streams.
//!
//! It waits in [`sched::blocking`]: a session that waits for an answer leaves its worker to others, and looks for
//! interrupts ten times a second.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use base::{Error, Result, WaitEvent, err};
use logical::conninfo::Conninfo;

use crate::tls::{self, Attempt};

/// Time in which a server must take a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time in which a server must answer a statement, unless it sends something.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// Time after which a reader looks for interrupts.
const TICK: Duration = Duration::from_millis(100);

/// Time in which what has come already is read.
const LOOK: Duration = Duration::from_millis(1);

/// Notifications that are kept until somebody asks for them.
const NOTIFIED_MAX: usize = 10_000;

/// Bytes that are read at a time.
const PIECE: usize = 32_768;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<tls::Stream>),
}

impl Stream {
    fn set_patience(&self, time: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.set_read_timeout(Some(time)),
            Stream::Unix(s) => s.set_read_timeout(Some(time)),
            Stream::Tls(s) => s.socket().set_read_timeout(Some(time)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(s) => s.read(buffer),
            Stream::Unix(s) => s.read(buffer),
            Stream::Tls(s) => s.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(s) => s.write_all(bytes),
            Stream::Unix(s) => s.write_all(bytes),
            Stream::Tls(s) => s.write_all(bytes),
        }
    }
}

/// A connection.
pub struct Client {
    stream: Stream,
    input: Vec<u8>,
    start: usize,
    /// The server asked for the password.
    asked: bool,
    /// Where the server is, and the numbers by which it knows the session: for cancel requests.
    place: (String, u16),
    key: [u8; 8],
    /// Parameters that the server told.
    told: Vec<(String, String)>,
    /// Notifications that nobody has asked for yet: channel, the session that sent it, payload.
    notified: Vec<(String, i32, String)>,
}

/// A statement's outcome.
#[derive(Debug, Default)]
pub struct Answer {
    /// The rows of its results.
    pub rows: Vec<TextRow>,
    /// The last command tag.
    pub tag: String,
    /// The names of the last result's columns.
    pub columns: Vec<String>,
}

impl Answer {
    /// How many rows the last command was about.
    pub fn affected(&self) -> u64 {
        self.tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// A row of texts.
pub type TextRow = Vec<Option<String>>;

fn failed(why: impl std::fmt::Display) -> Error {
    err!(SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, "{why}")
}

fn lost(why: impl std::fmt::Display) -> Error {
    err!(CONNECTION_FAILURE, "could not receive data from WAL stream: {why}")
}

impl Client {
    /// Connects to a publisher; `replication`: the connection takes commands of replication.
    ///
    /// # Errors
    /// `08006`, and what the server says.
    pub fn connect(info: &Conninfo, application: &str, replication: bool) -> Result<Client> {
        let opened = Client::open(info, application, replication);
        opened.map_err(|e| match e.code() {
            base::sqlstate::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION => {
                err!(CONNECTION_FAILURE, "could not connect to the publisher: {}", e.message())
            }
            _ => e,
        })
    }

    /// Connects and logs in.
    ///
    /// # Errors
    /// `08001` with the words of the server.
    pub fn open(info: &Conninfo, application: &str, replication: bool) -> Result<Client> {
        Client::open_as(info, application, replication.then_some("database"))
    }

    /// As [`Client::open`], for the commands of physical replication.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn connect_physical(info: &Conninfo, application: &str) -> Result<Client> {
        let password = match info.get("password") {
            None => crate::passfile::password(info, "replication"),
            Some(_) => None,
        };
        let complete = password.map(|password| info.with("password", &password));
        Client::open_as(complete.as_ref().unwrap_or(info), application, Some("true"))
    }

    fn open_as(info: &Conninfo, application: &str, replication: Option<&str>) -> Result<Client> {
        let attempts = tls::attempts(info).map_err(failed)?;
        let mut last = None;
        for (number, attempt) in attempts.iter().enumerate() {
            match Client::try_as(info, application, replication, *attempt) {
                Ok(client) => return Ok(client),
                // A refusal without encryption is tried again with it; the other way only where encryption was the reason.
                Err((error, goes_on)) if goes_on && number + 1 < attempts.len() => {
                    last = last.or(Some(error));
                }
                Err((error, _)) => return Err(last.unwrap_or(error)),
            }
        }
        Err(last.unwrap_or_else(|| failed("no way to connect")))
    }

    /// An attempt; an error, and whether another way may be tried.
    fn try_as(
        info: &Conninfo,
        application: &str,
        replication: Option<&str>,
        attempt: Attempt,
    ) -> std::result::Result<Client, (Error, bool)> {
        let port = info.port().map_err(|why| (failed(why), false))?;
        let host = info.get("hostaddr").or(info.get("host")).unwrap_or("localhost");
        let stream = sched::blocking(WaitEvent::ClientForeignServer, || reach(host, port));
        let place = || format!("connection to server at \"{host}\", port {port} failed");
        let stream = stream.map_err(|e| {
            let refused = e.kind() == io::ErrorKind::ConnectionRefused;
            let why = e.to_string();
            let why = why.split(" (os error").next().unwrap_or_default();
            let question = match refused {
                true => "\n\tIs the server running on that host and accepting TCP/IP connections?",
                false => "",
            };
            (failed(format!("{}: {why}{question}", place())), false)
        })?;
        let stream =
            sched::blocking(WaitEvent::ClientForeignServer, || encrypt(stream, info, attempt));
        let stream = stream.map_err(|why| (failed(format!("{}: {why}", place())), true))?;
        let encrypted = matches!(stream, Stream::Tls(_));
        let client = Client::over(stream, info, (host, port), application, replication);
        client.map_err(|error| (error, attempt == Attempt::Plain && !encrypted))
    }

    /// Logs in over a connection.
    fn over(
        stream: Stream,
        info: &Conninfo,
        (host, port): (&str, u16),
        application: &str,
        replication: Option<&str>,
    ) -> Result<Client> {
        stream.set_patience(TICK).map_err(failed)?;
        let mut client = Client {
            stream,
            input: Vec::new(),
            start: 0,
            asked: false,
            place: (host.to_owned(), port),
            key: [0; 8],
            told: Vec::new(),
            notified: Vec::new(),
        };
        let user = info.get("user").unwrap_or("postgres");
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        let mut pair = |name: &str, value: &str| {
            for part in [name, value] {
                body.extend(part.as_bytes());
                body.push(0);
            }
        };
        pair("user", user);
        pair("database", info.get("dbname").unwrap_or(user));
        pair("application_name", info.get("application_name").unwrap_or(application));
        pair("client_encoding", "UTF8");
        pair("datestyle", "ISO");
        pair("intervalstyle", "postgres");
        pair("extra_float_digits", "3");
        if let Some(options) = info.get("options") {
            pair("options", options);
        }
        if let Some(replication) = replication {
            pair("replication", replication);
        }
        body.push(0);
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.append(&mut body);
        client.write(&message).map_err(failed)?;
        client.log_in(user, info.get("password").unwrap_or_default())?;
        Ok(client)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = &mut self.stream;
        // A request that fits the system's buffers does not block: the answer to the one before has been read.
        match bytes.len() < PIECE {
            true => stream.write_all(bytes),
            false => sched::blocking(WaitEvent::ClientForeignServer, || stream.write_all(bytes)),
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) -> Result<()> {
        let mut message = vec![tag];
        message.extend((body.len() as u32 + 4).to_be_bytes());
        message.extend(body);
        self.write(&message).map_err(lost)
    }

    fn log_in(&mut self, user: &str, password: &str) -> Result<()> {
        let mut exchange: Option<wire::scram::ClientExchange> = None;
        let mut signature = String::new();
        loop {
            let (tag, body) = self.expect()?;
            match tag {
                b'R' => {
                    let kind = be32(&body);
                    let rest = body.get(4..).unwrap_or_default();
                    self.asked |= matches!(kind, 3 | 5 | 10);
                    match kind {
                        0 => {}
                        3 => {
                            let mut answer = password.as_bytes().to_vec();
                            answer.push(0);
                            self.message(b'p', &answer)?;
                        }
                        5 => {
                            let mut salt = [0; 4];
                            salt.copy_from_slice(rest.get(..4).unwrap_or(&[0; 4]));
                            let mut answer =
                                wire::password::md5_answer(user, password, salt).into_bytes();
                            answer.push(0);
                            self.message(b'p', &answer)?;
                        }
                        10 => {
                            let mut nonce = [0; 18];
                            getrandom(&mut nonce)?;
                            let begun = wire::scram::ClientExchange::new(password, &nonce);
                            let first = begun.first();
                            let mut answer = b"SCRAM-SHA-256\0".to_vec();
                            answer.extend((first.len() as u32).to_be_bytes());
                            answer.extend(first.as_bytes());
                            self.message(b'p', &answer)?;
                            exchange = Some(begun);
                        }
                        11 => {
                            let text = String::from_utf8_lossy(rest).into_owned();
                            let Some(begun) = &exchange else {
                                return Err(failed("unexpected SCRAM message"));
                            };
                            let (answer, wanted) = begun.answer(&text, &mut || Ok(()))?;
                            signature = wanted;
                            self.message(b'p', answer.as_bytes())?;
                        }
                        12 => {
                            if rest != signature.as_bytes() {
                                return Err(failed("the server's SCRAM signature is wrong"));
                            }
                        }
                        other => {
                            return Err(failed(format!(
                                "authentication method {other} not supported"
                            )));
                        }
                    }
                }
                b'Z' => return Ok(()),
                b'K' => self.key.copy_from_slice(body.get(..8).unwrap_or(&[0; 8])),
                b'S' => {
                    let mut parts = body.split(|b| *b == 0);
                    let mut next = || String::from_utf8_lossy(parts.next().unwrap_or_default());
                    let (name, value) = (next().into_owned(), next().into_owned());
                    self.told.push((name, value));
                }
                b'E' => {
                    let error = error_of(&body);
                    return Err(failed(error.message()));
                }
                _ => {}
            }
        }
    }

    /// Whether the server asked for the password when the client logged in.
    pub fn asked_for_password(&self) -> bool {
        self.asked
    }

    /// A parameter that the server told at its start (`server_version`).
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.told.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Asks the server to cancel what it does for this client.
    pub fn cancel(&self) {
        let mut message = 16_u32.to_be_bytes().to_vec();
        message.extend(80_877_102_u32.to_be_bytes());
        message.extend(self.key);
        let (host, port) = &self.place;
        sched::blocking(WaitEvent::ClientForeignServer, || {
            if let Ok(mut stream) = reach(host, *port) {
                let _ = stream.write_all(&message);
            }
        });
    }

    /// The next message, if it is there within `patience`; None: not yet.
    ///
    /// # Errors
    /// `08006`; interrupts.
    pub fn poll(&mut self, patience: Duration) -> Result<Option<(u8, Vec<u8>)>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(found) = self.take() {
                return Ok(Some(found));
            }
            sched::check_interrupts()?;
            if self.start > 0 {
                self.input.drain(..self.start);
                self.start = 0;
            }
            let mut buffer = vec![0; PIECE];
            let stream = &mut self.stream;
            let read = sched::blocking(WaitEvent::ClientForeignServer, || stream.read(&mut buffer));
            match read {
                Ok(0) => return Err(lost("server closed the connection unexpectedly")),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) =>
                {
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                }
                Err(e) => return Err(lost(e)),
            }
        }
    }

    /// A message that has come already.
    pub fn buffered(&mut self) -> Option<(u8, Vec<u8>)> {
        self.take()
    }

    /// For a thread that sends while another one reads.
    ///
    /// # Errors
    /// `08006`.
    pub fn writer(&self) -> Result<Writer> {
        let stream = match &self.stream {
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
            Stream::Tls(stream) => stream.try_clone().map(|s| Stream::Tls(Box::new(s))),
        };
        stream.map(Writer).map_err(lost)
    }

    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let bytes = &self.input[self.start..];
        let length = be32(bytes.get(1..5)?) as usize;
        let body = bytes.get(5..1 + length)?.to_vec();
        let tag = bytes[0];
        self.start += 1 + length;
        Some((tag, body))
    }

    fn expect(&mut self) -> Result<(u8, Vec<u8>)> {
        match self.poll(ANSWER_TIME)? {
            Some(found) => Ok(found),
            None => Err(lost("the server does not answer")),
        }
    }

    /// Runs a string; the rows of its results.
    ///
    /// # Errors
    /// `08006`; what the server answers.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>> {
        self.run(sql).map(|answer| answer.rows)
    }

    /// Runs a string.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub fn run(&mut self, sql: &str) -> Result<Answer> {
        self.send_query(sql)?;
        let (mut answer, mut error) = (Answer::default(), None);
        loop {
            let (tag, body) = self.expect()?;
            match tag {
                b'T' => answer.columns = names_of(&body),
                b'D' => answer.rows.push(row_of(&body)),
                b'C' => {
                    let text = body.split(|b| *b == 0).next().unwrap_or_default();
                    answer.tag = String::from_utf8_lossy(text).into_owned();
                }
                b'E' => error = error.or(Some(error_of(&body))),
                b'Z' => return error.map_or(Ok(answer), Err),
                b'A' => self.note(&body),
                _ => {}
            }
        }
    }

    fn note(&mut self, body: &[u8]) {
        let mut texts = body.get(4..).unwrap_or_default().split(|b| *b == 0);
        let mut text = || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
        let (channel, payload) = (text(), text());
        if self.notified.len() < NOTIFIED_MAX {
            self.notified.push((channel, be32(body) as i32, payload));
        }
    }

    /// The notifications that have come, without waiting for any.
    ///
    /// # Errors
    /// `08006`; interrupts.
    pub fn notifications(&mut self) -> Result<Vec<(String, i32, String)>> {
        self.stream.set_patience(LOOK).map_err(lost)?;
        let looked = loop {
            match self.poll(Duration::ZERO) {
                Ok(Some((b'A', body))) => self.note(&body),
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.stream.set_patience(TICK).map_err(lost)?;
        looked.map(|()| std::mem::take(&mut self.notified))
    }

    fn send_query(&mut self, sql: &str) -> Result<()> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.message(b'Q', &body)
    }

    /// Runs COPY … TO STDOUT; `each` gets the lines.
    ///
    /// # Errors
    /// `08006`; what the server answers; `each`'s, which end the copy in the middle.
    pub fn copy_out(&mut self, sql: &str, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.send_query(sql)?;
        let mut error = None;
        loop {
            let (tag, body) = self.expect()?;
            match tag {
                b'd' => each(&body)?,
                b'E' => error = error.or(Some(error_of(&body))),
                b'Z' => return error.map_or(Ok(()), Err),
                _ => {}
            }
        }
    }

    /// Begins a stream.
    ///
    /// # Errors
    /// `08006`; what the server answers.
    pub fn start_stream(&mut self, command: &str) -> Result<()> {
        self.send_query(command)?;
        loop {
            let (tag, body) = self.expect()?;
            match tag {
                b'W' => return Ok(()),
                b'E' => return Err(error_of(&body)),
                _ => {}
            }
        }
    }

    /// Sends a piece into a stream.
    ///
    /// # Errors
    /// `08006`.
    pub fn send_copy(&mut self, bytes: &[u8]) -> Result<()> {
        self.message(b'd', bytes)
    }
}

/// The sending half of a connection.
pub struct Writer(Stream);

impl Writer {
    /// Sends a piece into a stream.
    ///
    /// # Errors
    /// `08006`.
    pub fn send_copy(&mut self, bytes: &[u8]) -> Result<()> {
        let mut message = vec![b'd'];
        message.extend((bytes.len() as u32 + 4).to_be_bytes());
        message.extend(bytes);
        self.0.write_all(&message).map_err(lost)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.message(b'X', &[]);
    }
}

/// Asks the server for encryption, as the attempt wants it.
fn encrypt(
    stream: Stream,
    info: &Conninfo,
    attempt: Attempt,
) -> std::result::Result<Stream, String> {
    let Stream::Tcp(mut socket) = stream else { return Ok(stream) };
    if attempt == Attempt::Plain {
        return Ok(Stream::Tcp(socket));
    }
    let mut ask = || -> io::Result<u8> {
        socket.set_read_timeout(Some(CONNECT_TIME))?;
        let mut request = 8_u32.to_be_bytes().to_vec();
        request.extend(80_877_103_u32.to_be_bytes());
        socket.write_all(&request)?;
        let mut answer = [0; 1];
        socket.read_exact(&mut answer)?;
        Ok(answer[0])
    };
    match ask().map_err(|e| e.to_string())? {
        b'S' => {
            let stream = tls::Stream::begin(socket, info, CONNECT_TIME)?;
            Ok(Stream::Tls(Box::new(stream)))
        }
        _ if attempt == Attempt::Always => {
            Err("server does not support SSL, but SSL was required".to_owned())
        }
        _ => Ok(Stream::Tcp(socket)),
    }
}

fn reach(host: &str, port: u16) -> io::Result<Stream> {
    match host.starts_with('/') {
        true => UnixStream::connect(format!("{host}/.s.PGSQL.{port}")).map(Stream::Unix),
        false => tcp(host, port).map(Stream::Tcp),
    }
}

/// The names in a RowDescription.
fn names_of(body: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        out.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = rest.get(end + 19..).unwrap_or_default();
    }
    out
}

fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn getrandom(out: &mut [u8]) -> Result<()> {
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(out))
        .map_err(|e| Error::io("read random bytes", &e))
}

fn be32(bytes: &[u8]) -> u32 {
    let mut out = [0; 4];
    if let Some(head) = bytes.get(..4) {
        out.copy_from_slice(head);
    }
    u32::from_be_bytes(out)
}

fn row_of(body: &[u8]) -> TextRow {
    let mut out = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while rest.len() >= 4 {
        let length = be32(rest) as i32;
        rest = &rest[4..];
        match usize::try_from(length) {
            Ok(length) if length <= rest.len() => {
                out.push(Some(String::from_utf8_lossy(&rest[..length]).into_owned()));
                rest = &rest[length..];
            }
            _ => out.push(None),
        }
    }
    out
}

/// An ErrorResponse as an error of ours.
pub fn error_of(body: &[u8]) -> Error {
    let mut code = base::sqlstate::INTERNAL_ERROR;
    let (mut message, mut detail, mut hint) = (String::from("unknown error"), None, None);
    for field in body.split(|b| *b == 0) {
        let Some((kind, text)) = field.split_first() else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'C' => code = base::SqlState::parse(&text).unwrap_or(code),
            b'M' => message = text,
            b'D' => detail = Some(text),
            b'H' => hint = Some(text),
            _ => {}
        }
    }
    let error = Error::new(code, message);
    let error = detail.into_iter().fold(error, |e, detail| e.detail(detail));
    hint.into_iter().fold(error, |e, hint| e.hint(hint))
}
