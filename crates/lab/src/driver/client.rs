//! One client: runs its scripts one statement after the other and never waits itself.
//!
//! ```text
//!            begin ──► Answer ──(last statement)──► counted, begin again
//!                       │  ▲                              ▲
//!              \sleep ──► Pause                           │
//!                       │ error inside a transaction      │
//!                       └──────► Undo (ROLLBACK) ─────────┘
//!     connection broken, from anywhere ──► Lost ──(connected again)──► begin
//! ```
//! As in pgbench every statement is a round trip of its own, and an error ends the transaction at hand;
//! unlike there, every error is counted by its SQLSTATE and the client goes on.

mod mysql;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::address::Dialect;
use super::connection::{Connection, Stream};
use super::frames;
use super::mysql::Answers;
use super::{Control, Protocol, Tally, Window};
use crate::script::{Machine, Statement, Step, Value};
use crate::{Error, Result};

/// How soon a client tries again to connect.
const RETRY: Duration = Duration::from_millis(100);
/// For how long it tries before the whole run is given up.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    Answer,
    Pause,
    Undo,
    Lost,
    Done,
}

/// What the worker has to do for the client next.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// Call [`Client::ready`] when its socket is; also when it takes more, if `true`.
    Socket(bool),
    /// Call [`Client::wake`] then.
    Timer(Instant),
    /// Nothing any more.
    Done,
}

/// What a client needs to know of the run.
pub struct Context<'a> {
    /// Load and flags.
    pub control: &'a Control<'a>,
    /// The measured time.
    pub window: Window,
    /// The worker's counts.
    pub tally: Tally,
}

/// A client.
pub struct Client<'a> {
    stream: Stream,
    state: ClientState,
    machine: Machine,
    protocol: Protocol,
    script: usize,
    at: usize,
    begun: Instant,
    lost: Instant,
    /// Whether the transaction at hand has sent or awaited anything.
    took_time: bool,
    error: Option<String>,
    status: u8,
    current: Option<&'a Statement>,
    columns: Vec<String>,
    row: Vec<Option<String>>,
    rows: usize,
    /// Which statements the server knows; of MySQL's, by which number.
    prepared: Vec<Option<u32>>,
    dialect: Dialect,
    /// What of MySQL's answers is to come.
    answers: Answers,
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    sent: usize,
}

impl<'a> Client<'a> {
    /// Logs in.
    ///
    /// # Errors
    /// The server refuses or isn't there.
    pub fn connect(control: &Control<'a>, id: u32) -> Result<Client<'a>> {
        let load = control.load;
        let stream = open(control).map_err(|failure| {
            let (of, shown) = (load.clients, load.address.shown());
            Error::new(format!("client {} of {of} can't log in to {shown}: {failure}", id + 1))
        })?;
        // Seeds that differ in many bits, from ids that differ in few.
        let seed = load.seed.wrapping_add(u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut variables = load.variables.to_vec();
        variables.push(("client_id", Value::Int(i64::from(id))));
        variables.push(("random_seed", Value::Int(load.seed as i64)));
        variables.push(("default_seed", Value::Int(load.seed as i64)));
        Ok(Client {
            stream,
            state: ClientState::Pause,
            machine: Machine::new(load.program, seed, &variables),
            protocol: load.protocol,
            script: 0,
            at: 0,
            begun: Instant::now(),
            lost: Instant::now(),
            took_time: false,
            error: None,
            status: b'I',
            current: None,
            columns: Vec::new(),
            row: Vec::new(),
            rows: 0,
            prepared: vec![None; load.program.statements()],
            dialect: load.address.dialect,
            answers: Answers::new(false),
            input: vec![0; 4096],
            filled: 0,
            out: Vec::with_capacity(1024),
            sent: 0,
        })
    }

    /// Its socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether it has nothing more to do.
    pub fn is_done(&self) -> bool {
        self.state == ClientState::Done
    }

    /// Whether its connection is broken.
    pub fn is_lost(&self) -> bool {
        self.state == ClientState::Lost
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// The script can't go on.
    pub fn begin(&mut self, cx: &mut Context<'a>, now: Instant) -> Result<Wish> {
        if now >= cx.window.until || cx.control.ended() {
            self.state = ClientState::Done;
            return Ok(Wish::Done);
        }
        self.script = self.machine.choose(cx.control.load.program);
        (self.at, self.begun, self.took_time, self.error) = (0, now, false, None);
        self.advance(cx, now)
    }

    /// The time that a [`Wish::Timer`] named has come.
    ///
    /// # Errors
    /// The script can't go on; the server has been away for too long.
    pub fn wake(&mut self, cx: &mut Context<'a>, now: Instant) -> Result<Wish> {
        match self.state {
            ClientState::Pause if self.took_time => self.advance(cx, now),
            ClientState::Pause => self.begin(cx, now),
            ClientState::Lost => self.reconnect(cx, now),
            ClientState::Answer | ClientState::Undo => Ok(Wish::Socket(self.sent < self.out.len())),
            ClientState::Done => Ok(Wish::Done),
        }
    }

    /// The socket has something, or takes something.
    ///
    /// # Errors
    /// The script can't go on.
    pub fn ready(&mut self, cx: &mut Context<'a>) -> Result<Wish> {
        if self.sent < self.out.len() {
            if self.flush().is_err() {
                return Ok(self.lose(cx));
            }
        }
        loop {
            if self.filled == self.input.len() {
                self.input.resize(self.filled * 2, 0);
            }
            let room = self.input.len() - self.filled;
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Ok(self.lose(cx)),
                Ok(n) => {
                    self.filled += n;
                    if self.messages() {
                        return self.answered(cx);
                    }
                    if n < room {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(self.lose(cx)),
            }
        }
        Ok(Wish::Socket(self.sent < self.out.len()))
    }

    /// Takes in all whole messages; whether ReadyForQuery was among them.
    fn messages(&mut self) -> bool {
        if self.dialect == Dialect::MySql {
            return self.take_packets();
        }
        let (mut at, mut ready, mut copy) = (0, false, false);
        while let Some((tag, body)) = frames::next(&self.input[at..self.filled]) {
            match tag {
                b'Z' => {
                    self.status = body.first().copied().unwrap_or(b'I');
                    ready = true;
                }
                b'E' if self.error.is_none() => self.error = Some(frames::failure(body).code),
                b'1' => {
                    if let Some(statement) = self.current {
                        self.prepared[statement.number] = Some(0);
                    }
                }
                b'T' | b'D' if self.current.is_some_and(|s| s.keep.is_some()) => {
                    if tag == b'T' {
                        self.columns = frames::names(body).unwrap_or_default();
                    } else {
                        self.row = frames::row(body).unwrap_or_default();
                        self.rows += 1;
                    }
                }
                b'G' => copy = true,
                _ => {}
            }
            at += 5 + body.len();
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        if copy {
            self.refuse_copy();
        }
        ready
    }

    /// The server waits for data: CopyFail, which it answers with an error, which is counted.
    fn refuse_copy(&mut self) {
        self.out.extend_from_slice(b"f\0\0\0\x05\0");
        if self.protocol != Protocol::Simple {
            self.out.extend_from_slice(&frames::SYNC);
        }
        // A failure to write shows at the next read.
        let _ = self.flush();
    }

    /// The server is done with what was sent.
    fn answered(&mut self, cx: &mut Context<'a>) -> Result<Wish> {
        let now = Instant::now();
        if self.state == ClientState::Undo {
            return self.finish(cx, now);
        }
        if self.error.is_some() {
            if self.status == b'I' {
                return self.finish(cx, now);
            }
            self.state = ClientState::Undo;
            match self.dialect {
                Dialect::PostgreSql => self.out.extend_from_slice(b"Q\0\0\0\x0dROLLBACK\0"),
                Dialect::MySql => self.put_rollback(),
            }
            return Ok(self.send(cx));
        }
        if let Some(statement) = self.current.filter(|s| s.keep.is_some()) {
            self.keep(cx, statement)?;
        }
        self.advance(cx, now)
    }

    /// `\gset`: the result's row becomes variables.
    fn keep(&mut self, cx: &Context<'a>, statement: &Statement) -> Result<()> {
        let Some(keep) = &statement.keep else { return Ok(()) };
        if self.rows != 1 && !keep.any_rows {
            let name = &cx.control.load.program.scripts()[self.script].0.name;
            return Err(Error::new(format!("{name}: \\gset got {} rows, not one", self.rows)));
        }
        for (name, value) in self.columns.iter().zip(&self.row) {
            let name = format!("{}{name}", keep.prefix);
            self.machine.keep(cx.control.load.program, &name, value.as_deref());
        }
        Ok(())
    }

    /// Goes on with the script.
    fn advance(&mut self, cx: &mut Context<'a>, now: Instant) -> Result<Wish> {
        let (script, _) = &cx.control.load.program.scripts()[self.script];
        let step = self.machine.run(&script.commands, &mut self.at);
        match step.map_err(|why| Error::new(format!("{}: {why}", script.name)))? {
            Step::Send(statement) => {
                self.state = ClientState::Answer;
                self.took_time = true;
                self.rows = 0;
                self.encode(cx, statement)
                    .map_err(|why| Error::new(format!("{}: {why}", script.name)))?;
                Ok(self.send(cx))
            }
            Step::Sleep(us) => {
                self.state = ClientState::Pause;
                self.took_time = true;
                Ok(Wish::Timer(now + Duration::from_micros(us)))
            }
            Step::End if self.status != b'I' => {
                let why = "the script ends inside a transaction; a COMMIT or END is missing";
                Err(Error::new(format!("{}: {why}", script.name)))
            }
            Step::End => self.finish(cx, now),
        }
    }

    /// Counts the transaction and begins the next.
    fn finish(&mut self, cx: &mut Context<'a>, now: Instant) -> Result<Wish> {
        count(&mut cx.tally, cx.window, self.begun, now, self.error.take());
        if self.took_time {
            return self.begin(cx, now);
        }
        // A script that did nothing this time must not keep the worker from its other clients.
        self.state = ClientState::Pause;
        Ok(Wish::Timer(now))
    }

    fn encode(&mut self, cx: &Context<'a>, statement: &'a Statement) -> Result<(), super::Failure> {
        if self.dialect == Dialect::MySql {
            return self.put_command(cx, statement);
        }
        let load = cx.control.load;
        let out = &mut self.out;
        if self.protocol == Protocol::Simple {
            self.current = statement.keep.is_some().then_some(statement);
            let start = begin(out, b'Q');
            self.machine.fill(load.program, statement, out);
            out.push(0);
            frames::end(out, start);
            return Ok(());
        }
        self.current = Some(statement);
        let prepared = self.protocol == Protocol::Prepared;
        let mut name = [0; 12];
        let name = if prepared { statement_name(&mut name, statement.number) } else { b"\0" };
        if !prepared || self.prepared[statement.number].is_none() {
            let start = begin(out, b'P');
            out.extend_from_slice(name);
            frames::string(out, statement.numbered.as_bytes())?;
            out.extend_from_slice(&[0, 0]);
            frames::end(out, start);
        }
        let start = begin(out, b'B');
        out.push(0);
        out.extend_from_slice(name);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(statement.parameters.len() as u16).to_be_bytes());
        for slot in &statement.parameters {
            let at = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if self.machine.write(*slot, out) {
                let length = (out.len() - at - 4) as i32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        out.extend_from_slice(&[0, 0]);
        frames::end(out, start);
        out.extend_from_slice(b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0");
        out.extend_from_slice(&frames::SYNC);
        Ok(())
    }

    fn send(&mut self, cx: &mut Context<'a>) -> Wish {
        match self.flush() {
            Ok(()) => Wish::Socket(self.sent < self.out.len()),
            Err(_) => self.lose(cx),
        }
    }

    /// Writes what the socket takes.
    fn flush(&mut self) -> std::io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// The connection is gone: the transaction is counted under what the server said last.
    fn lose(&mut self, cx: &mut Context<'a>) -> Wish {
        let now = Instant::now();
        let code = self.error.take().unwrap_or_else(|| "08006".to_owned());
        count(&mut cx.tally, cx.window, self.begun, now, Some(code));
        (self.state, self.lost) = (ClientState::Lost, now);
        Wish::Timer(now + RETRY)
    }

    fn reconnect(&mut self, cx: &mut Context<'a>, now: Instant) -> Result<Wish> {
        if now >= cx.window.until || cx.control.ended() {
            self.state = ClientState::Done;
            return Ok(Wish::Done);
        }
        match open(cx.control) {
            Ok(stream) => self.stream = stream,
            Err(failure) if now > self.lost + PATIENCE => {
                let shown = cx.control.load.address.shown();
                let s = PATIENCE.as_secs();
                return Err(Error::new(format!("{shown} went away {s} s ago: {failure}")));
            }
            Err(_) => return Ok(Wish::Timer(now + RETRY)),
        }
        self.prepared.fill(None);
        self.out.clear();
        (self.filled, self.sent, self.status) = (0, 0, b'I');
        self.begin(cx, Instant::now())
    }
}

fn open(control: &Control<'_>) -> Result<Stream, super::Failure> {
    let stream = Connection::open(control.load.address)?.into_stream();
    stream.set_nonblocking().map_err(|e| frames::broken(&e))?;
    Ok(stream)
}

fn count(tally: &mut Tally, window: Window, begun: Instant, now: Instant, error: Option<String>) {
    let measured = now >= window.from && now < window.until;
    match error {
        None => {
            tally.all_transactions += 1;
            if measured {
                let time = now - begun;
                tally.transactions += 1;
                tally.latency_ns += time.as_nanos();
                tally.latency.saturating_record((time.as_micros() as u64).max(1));
            }
        }
        Some(code) => {
            tally.all_errors += 1;
            if measured {
                *tally.errors.entry(code).or_default() += 1;
            }
        }
    }
}

/// Begins a message; the place of its length.
fn begin(out: &mut Vec<u8>, tag: u8) -> usize {
    out.extend_from_slice(&[tag, 0, 0, 0, 0]);
    out.len() - 4
}

/// `P0`, `P1`, … with a zero byte.
fn statement_name(buffer: &mut [u8; 12], number: usize) -> &[u8] {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number as u32).as_bytes();
    buffer[0] = b'P';
    buffer[1..=digits.len()].copy_from_slice(digits);
    buffer[digits.len() + 1] = 0;
    &buffer[..digits.len() + 2]
}
