//! A connection's socket and buffers.
//!
//! Buffers belong to the worker (a thread-local pool) and are lent to a session while it has
//! something in them: an idle session has none. They are plain memory, so a session that parks with
//! one in its hands merely makes its worker allocate another. A large one is needed for reading, since
//! nobody knows how much has come; but of most reads little is kept, in a small one: so hundreds of
//! sessions that wait for a row have hundreds of small ones.
//!
//! Invariant: nothing leaves the server before the log is durable up to [`Output::needs`].

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use base::{Error, Lsn, Result, WaitEvent, err};
use sched::SpinLock;
use storage::Storage;

use crate::client_auth::tls::{Tls, TlsInfo, TlsStream};

/// Size of a large input buffer; it grows for longer messages.
const INPUT_BYTES: usize = 64 * 1024;
/// Size of a small one.
const SMALL_BYTES: usize = 1024;
/// Output is sent when the buffer exceeds this.
const OUTPUT_BYTES: usize = 64 * 1024;
/// Buffers larger than this are freed instead of pooled.
const POOLED_BYTES: usize = 256 * 1024;
/// Buffers of each kind that a worker keeps.
const POOLED_COUNT: usize = 16;

thread_local! {
    static INPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static SMALL_INPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static OUTPUTS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn take_input() -> Vec<u8> {
    INPUTS.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; INPUT_BYTES])
}

#[inline(never)]
fn take_small_input() -> Vec<u8> {
    SMALL_INPUTS.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; SMALL_BYTES])
}

#[inline(never)]
fn take_output() -> Vec<u8> {
    OUTPUTS.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(SMALL_BYTES))
}

#[inline(never)]
fn give_input(buffer: Vec<u8>) {
    let pool = match buffer.len() {
        SMALL_BYTES => &SMALL_INPUTS,
        INPUT_BYTES..=POOLED_BYTES => &INPUTS,
        _ => return,
    };
    pool.with_borrow_mut(|pool| {
        if pool.len() < POOLED_COUNT {
            pool.push(buffer);
        }
    });
}

#[inline(never)]
fn give_output(mut buffer: Vec<u8>) {
    if buffer.capacity() > 0 && buffer.capacity() <= POOLED_BYTES {
        buffer.clear();
        OUTPUTS.with_borrow_mut(|pool| {
            if pool.len() < POOLED_COUNT {
                pool.push(buffer);
            }
        });
    }
}

/// Where the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Client's address and port; None over a Unix socket.
    pub client: Option<(IpAddr, u16)>,
    /// The address and port that it came to.
    pub server: Option<(IpAddr, u16)>,
}

/// A connected, non-blocking socket. Reads and writes go through shared references.
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// Unix.
    Unix(UnixStream),
    /// TCP with TLS. One run of a session goes on at a time, so nobody waits for the lock.
    Tls(Arc<Socket>, Box<SpinLock<TlsStream>>, Arc<Tls>),
    /// No client at all: nothing comes, and what is sent is dropped.
    Nobody,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Socket({})", self.fd())
    }
}

/// A socket that is not encrypted, or what lies below encryption.
struct Raw<'a>(&'a Socket);

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `tcp_keepalives_*` and `tcp_user_timeout`; 0: the system's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Silence before the first probe.
    pub idle_s: u64,
    /// Between probes.
    pub interval_s: u64,
    /// Probes without an answer.
    pub count: u32,
    /// Sent data that nobody acknowledges.
    pub timeout_ms: u64,
}

impl Socket {
    /// Makes it non-blocking and, over TCP, sends small packets at once.
    pub fn prepare(&self) -> std::io::Result<()> {
        match self {
            Socket::Tcp(s) => {
                s.set_nodelay(true)?;
                socket2::SockRef::from(s).set_keepalive(true)?;
                s.set_nonblocking(true)
            }
            Socket::Unix(s) => s.set_nonblocking(true),
            Socket::Tls(s, ..) => s.prepare(),
            Socket::Nobody => Ok(()),
        }
    }

    /// How soon a peer that says nothing is taken for gone; over TCP only.
    ///
    /// # Errors
    /// Errors of options that the system does not take.
    pub fn set_patience(&self, patience: &Patience) -> std::io::Result<()> {
        let s = match self {
            Socket::Tcp(s) => s,
            Socket::Tls(raw, ..) => return raw.set_patience(patience),
            Socket::Unix(_) | Socket::Nobody => return Ok(()),
        };
        let socket = socket2::SockRef::from(s);
        let seconds = |n: u64| std::time::Duration::from_secs(n);
        let mut keepalive = socket2::TcpKeepalive::new();
        if patience.idle_s > 0 {
            keepalive = keepalive.with_time(seconds(patience.idle_s));
        }
        if patience.interval_s > 0 {
            keepalive = keepalive.with_interval(seconds(patience.interval_s));
        }
        if patience.count > 0 {
            keepalive = keepalive.with_retries(patience.count);
        }
        socket.set_tcp_keepalive(&keepalive)?;
        let timeout = std::time::Duration::from_millis(patience.timeout_ms);
        socket.set_tcp_user_timeout((patience.timeout_ms > 0).then_some(timeout))
    }

    /// The same connection from here on encrypted.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn encrypted(socket: Arc<Socket>, tls: Arc<Tls>) -> Result<Socket> {
        Ok(Socket::Tls(socket, Box::new(SpinLock::new(TlsStream::new(&tls)?)), tls))
    }

    /// The connection's encryption, if it has one.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        match self {
            Socket::Tls(_, stream, tls) => Some(stream.lock().info(tls)),
            _ => None,
        }
    }

    /// Whether encrypted bytes wait to leave.
    fn is_pending(&self) -> bool {
        matches!(self, Socket::Tls(_, stream, _) if stream.lock().is_pending())
    }

    /// Sends encrypted bytes that wait to leave.
    fn flush(&self) -> std::io::Result<()> {
        match self {
            Socket::Tls(raw, stream, _) => stream.lock().flush(&mut Raw(raw)),
            _ => Ok(()),
        }
    }

    /// Waits until all encrypted bytes have left.
    fn flush_wait(&self) -> Result<()> {
        while self.is_pending() {
            match self.flush() {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    sched::wait_writable(self.fd(), WaitEvent::ClientClientWrite)?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(gone("send data to client", &e)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The address and port that the client came to; over TCP.
    pub fn own_address(&self) -> Option<(IpAddr, u16)> {
        match self {
            Socket::Tcp(s) => s.local_addr().ok().map(|a| (a.ip(), a.port())),
            Socket::Unix(_) | Socket::Nobody => None,
            Socket::Tls(s, ..) => s.own_address(),
        }
    }

    /// The descriptor, for the scheduler.
    pub fn fd(&self) -> RawFd {
        match self {
            Socket::Tcp(s) => s.as_raw_fd(),
            Socket::Unix(s) => s.as_raw_fd(),
            Socket::Tls(s, ..) => s.fd(),
            Socket::Nobody => -1,
        }
    }

    fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(s) => (&mut &*s).read(buffer),
            Socket::Unix(s) => (&mut &*s).read(buffer),
            Socket::Tls(raw, stream, _) => stream.lock().read(&mut Raw(raw), buffer),
            Socket::Nobody => Ok(0),
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(s) => (&mut &*s).write(bytes),
            Socket::Unix(s) => (&mut &*s).write(bytes),
            Socket::Tls(raw, stream, _) => stream.lock().write(&mut Raw(raw), bytes),
            Socket::Nobody => Ok(bytes.len()),
        }
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Bytes, and perhaps there are more.
    More,
    /// Bytes, and there were no more at that moment.
    Drained,
    /// Nothing now.
    Empty,
    /// The client ended the connection.
    End,
}

/// Bytes that came and are not used yet.
#[derive(Debug, Default)]
pub struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// With these bytes already read.
    pub fn with(bytes: &[u8]) -> Input {
        let mut input = Input::default();
        input.reserve(bytes.len());
        input.buffer[..bytes.len()].copy_from_slice(bytes);
        input.end = bytes.len();
        input
    }

    /// The bytes that aren't used yet.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks the first bytes as used.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// Makes room for at least one more byte, and for `wanted` up to a bound: a message is given
    /// memory as it arrives, not as it announces itself.
    fn reserve(&mut self, wanted: usize) {
        if self.buffer.len() < INPUT_BYTES {
            let mut larger = take_input();
            let held = self.end - self.start;
            larger[..held].copy_from_slice(self.bytes());
            give_input(std::mem::replace(&mut self.buffer, larger));
            (self.start, self.end) = (0, held);
        }
        if self.start > 0 && self.buffer.len() - self.end < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.end, self.start) = (self.end - self.start, 0);
        }
        if self.end == self.buffer.len() {
            let more = wanted.clamp(INPUT_BYTES, self.buffer.len().max(INPUT_BYTES));
            self.buffer.resize(self.buffer.len() + more, 0);
        }
    }

    /// Reads once from the socket.
    ///
    /// # Errors
    /// `08006`, fatal, when the connection broke.
    pub fn fill(&mut self, socket: &Socket) -> Result<Fill> {
        let missing = if self.start == self.end {
            (self.start, self.end) = (0, 0);
            1
        } else {
            wire::frame::missing(self.bytes())
        };
        self.reserve(missing);
        let fill = self.read(socket);
        self.shrink();
        fill
    }

    /// Keeps the little that there is in a small buffer.
    fn shrink(&mut self) {
        let held = self.end - self.start;
        if self.buffer.len() >= INPUT_BYTES && held <= SMALL_BYTES {
            let mut small = if held > 0 { take_small_input() } else { Vec::new() };
            small[..held].copy_from_slice(self.bytes());
            give_input(std::mem::replace(&mut self.buffer, small));
            (self.start, self.end) = (0, held);
        }
    }

    fn read(&mut self, socket: &Socket) -> Result<Fill> {
        let room = self.buffer.len() - self.end;
        loop {
            return match socket.read(&mut self.buffer[self.end..]) {
                Ok(0) => Ok(Fill::End),
                Ok(count) => {
                    self.end += count;
                    // Encrypted bytes come in pieces of their own: only the next read can tell.
                    let all = count < room && !matches!(socket, Socket::Tls(..));
                    Ok(if all { Fill::Drained } else { Fill::More })
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock && socket.is_pending() => {
                    // The handshake goes on when its answer has left.
                    socket.flush_wait()?;
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(Fill::Empty),
                // A client that ends an encrypted connection without a word is as gone as others.
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(Fill::End),
                Err(e) => Err(gone("receive data from client", &e)),
            };
        }
    }

    /// Gives the buffer back to the worker; unused bytes move to memory of their own size.
    pub fn rest(&mut self) {
        let left = self.bytes().to_vec();
        give_input(std::mem::replace(&mut self.buffer, left));
        (self.start, self.end) = (0, self.buffer.len());
    }
}

fn gone(doing: &str, error: &std::io::Error) -> Error {
    err!(CONNECTION_FAILURE, "could not {doing}: {error}").fatal()
}

/// Bytes on their way to the client.
pub struct Output {
    /// Complete messages, and the one being made.
    pub buffer: Vec<u8>,
    /// Where the message being made begins; what is before it is complete.
    pub complete: usize,
    needs: Lsn,
    /// See [`Output::need_applied`].
    needs_applied: Lsn,
    socket: Arc<Socket>,
    storage: Option<Arc<Storage>>,
    deferred: Option<Error>,
    broken: bool,
}

impl Output {
    /// Takes messages back, if nothing has been said since.
    pub fn unsay(&mut self, messages: std::ops::Range<usize>) {
        if self.complete == messages.end {
            self.buffer.truncate(messages.start);
            self.complete = messages.start;
        }
    }

    /// Empty. Without storage there is nothing to wait for before a send.
    pub fn new(socket: Arc<Socket>, storage: Option<Arc<Storage>>) -> Output {
        Output {
            buffer: Vec::new(),
            complete: 0,
            needs: Lsn::ZERO,
            needs_applied: Lsn::ZERO,
            socket,
            storage,
            deferred: None,
            broken: false,
        }
    }

    /// Sends from here on go this way.
    pub fn set_socket(&mut self, socket: Arc<Socket>) {
        self.socket = socket;
    }

    /// Takes a buffer from the worker if there is none.
    pub fn open(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer = take_output();
        }
    }

    /// Gives an empty buffer back to the worker.
    pub fn rest(&mut self) {
        if self.buffer.is_empty() {
            give_output(std::mem::take(&mut self.buffer));
        }
    }

    /// The log must be durable up to here before the buffer leaves.
    pub fn need_durable(&mut self, upto: Lsn) {
        self.needs = self.needs.max(upto);
    }

    /// The log must be applied by replicas up to here, too, if any are asked (`synchronous_commit = remote_apply`).
    pub fn need_applied(&mut self, upto: Lsn) {
        self.needs = self.needs.max(upto);
        self.needs_applied = self.needs_applied.max(upto);
    }

    /// The position that [`Output::need_durable`] asked for.
    pub fn needed(&self) -> Lsn {
        self.needs
    }

    /// Whether the next [`Output::pace`] will send.
    pub fn is_large(&self) -> bool {
        self.buffer.len() >= OUTPUT_BYTES
    }

    /// Throws away a message that was begun and not finished.
    pub fn drop_incomplete(&mut self) {
        self.buffer.truncate(self.complete);
    }

    /// Notes that all of the buffer is complete messages, and sends it when it has grown large.
    ///
    /// # Errors
    /// A cancel that came while the client was slow; a broken connection.
    pub fn pace(&mut self) -> Result<()> {
        self.complete = self.buffer.len();
        if self.buffer.len() < OUTPUT_BYTES {
            return Ok(());
        }
        self.send()?;
        self.deferred.take().map_or(Ok(()), Err)
    }

    /// Sends everything; parks while the client takes nothing.
    ///
    /// # Errors
    /// Fatal ones only: the connection broke, or the session is to end. A cancel is kept for
    /// [`Output::pace`]: half a message must not be left behind.
    pub fn send(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.broken {
            self.buffer.clear();
            self.complete = 0;
            return Err(err!(CONNECTION_FAILURE, "connection to client lost").fatal());
        }
        self.wait_durable()?;
        let result = self.write_all();
        self.buffer.clear();
        self.complete = 0;
        self.broken |= result.is_err();
        result
    }

    /// As [`Output::send`], for the last that a run sends: the worker may do it when the run is over.
    ///
    /// # Errors
    /// The same.
    pub fn leave(&mut self) -> Result<()> {
        let plain = !self.broken && !matches!(*self.socket, Socket::Tls(..));
        if !self.buffer.is_empty() && plain {
            self.wait_durable()?;
            if sched::leave(&self.buffer) {
                self.buffer.clear();
                self.complete = 0;
                return Ok(());
            }
        }
        self.send()
    }

    /// An answer that was left and could not be sent is the next to be sent.
    pub fn take_back(&mut self, answer: &[u8]) {
        self.buffer.splice(0..0, answer.iter().copied());
        self.complete += answer.len();
    }

    /// Waits until what is in the buffer may leave.
    ///
    /// # Errors
    /// When the log can't be written.
    pub fn wait_durable(&mut self) -> Result<()> {
        if let (Some(storage), true) = (&self.storage, self.needs > Lsn::ZERO) {
            if storage.wal.acknowledged() < self.needs {
                storage.wal.await_acknowledged(self.needs)?;
            }
            self.needs = Lsn::ZERO;
            if self.needs_applied > Lsn::ZERO {
                storage.wal.await_applied(std::mem::replace(&mut self.needs_applied, Lsn::ZERO))?;
            }
        }
        Ok(())
    }

    fn write_all(&mut self) -> Result<()> {
        let mut sent = 0;
        while sent < self.buffer.len() {
            match self.socket.write(&self.buffer[sent..]) {
                Ok(count) => sent += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    match sched::wait_writable(self.socket.fd(), WaitEvent::ClientClientWrite) {
                        Ok(()) => {}
                        Err(e) if e.severity() == base::error::Severity::Error => {
                            self.deferred.get_or_insert(e);
                        }
                        Err(e) => return Err(e),
                    }
                }
                Err(e) => return Err(gone("send data to client", &e)),
            }
        }
        match self.socket.flush_wait() {
            Err(e) if e.severity() == base::error::Severity::Error => {
                // Encrypted bytes can't be taken back: the rest leaves before anything else does.
                self.deferred.get_or_insert(e);
                Ok(())
            }
            other => other,
        }
    }

    /// Forgets a cancel that came too late for its statement.
    pub fn forget_deferred(&mut self) {
        self.deferred = None;
    }

    /// One last attempt to tell the client why, without waiting for it.
    pub fn send_last(&mut self) {
        if !self.broken && self.wait_durable().is_ok() {
            self.write_last();
        }
        self.buffer.clear();
        self.complete = 0;
    }

    fn write_last(&self) {
        if !self.buffer.is_empty() {
            // Whoever doesn't take it now is not told.
            let _ = self.socket.write(&self.buffer);
        }
        if let Socket::Tls(raw, stream, _) = &*self.socket {
            stream.lock().close(&mut Raw(raw));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Socket, UnixStream) {
        let (a, b) = UnixStream::pair().expect("a pair of sockets");
        let a = Socket::Unix(a);
        a.prepare().expect("a socket can be made non-blocking");
        (a, b)
    }

    #[test]
    fn input_keeps_what_is_not_used() {
        let (socket, mut client) = pair();
        client.write_all(b"Q\0\0\0\x06a\0S\0\0").unwrap();
        let mut input = Input::default();
        assert_eq!(input.fill(&socket).unwrap(), Fill::Drained);
        assert_eq!(input.fill(&socket).unwrap(), Fill::Empty);
        input.consume(7);
        input.rest();
        assert_eq!(input.bytes(), b"S\0\0");
        client.write_all(b"\0\x04").unwrap();
        assert_eq!(input.fill(&socket).unwrap(), Fill::Drained);
        assert_eq!(input.bytes(), b"S\0\0\0\x04");
        drop(client);
        assert_eq!(input.fill(&socket).unwrap(), Fill::End);
    }

    #[test]
    fn a_short_message_is_kept_in_a_small_buffer() {
        let (socket, mut client) = pair();
        let mut input = Input::default();
        for (message, small) in [(SMALL_BYTES, true), (SMALL_BYTES + 1, false), (5, true)] {
            client.write_all(&vec![b'x'; message]).unwrap();
            assert_eq!(input.fill(&socket).unwrap(), Fill::Drained);
            assert_eq!(input.bytes(), vec![b'x'; message]);
            assert_eq!(input.buffer.len() <= SMALL_BYTES, small, "{message}");
            input.consume(message);
        }
        // The rest of a message joins what was kept.
        for piece in [&b"Q\0\0"[..], b"\0\x06a", b"\0"] {
            client.write_all(piece).unwrap();
            assert_eq!(input.fill(&socket).unwrap(), Fill::Drained);
        }
        assert_eq!(input.bytes(), b"Q\0\0\0\x06a\0");
        input.consume(7);
        assert_eq!(input.fill(&socket).unwrap(), Fill::Empty);
        assert!(input.buffer.is_empty(), "nothing is kept for nothing");
    }

    #[test]
    fn a_long_message_grows_the_buffer_as_it_comes() {
        let (socket, mut client) = pair();
        let mut message = b"Q\0\x10\0\0".to_vec();
        message.resize((1 << 20) + 1, b'x');
        let writer = std::thread::spawn({
            let message = message.clone();
            move || client.write_all(&message).map(|()| client)
        });
        let mut input = Input::default();
        while input.bytes().len() < message.len() {
            assert!(input.buffer.len() <= 2 * input.bytes().len() + 2 * INPUT_BYTES);
            assert_ne!(input.fill(&socket).unwrap(), Fill::End);
        }
        assert_eq!(input.bytes(), message);
        drop(writer.join());
    }

    #[test]
    fn output_leaves_in_one_piece() {
        let (socket, mut client) = pair();
        let mut output = Output::new(Arc::new(socket), None);
        output.open();
        output.buffer.extend_from_slice(b"whole");
        output.pace().unwrap();
        output.buffer.extend_from_slice(b"half");
        output.drop_incomplete();
        output.send().unwrap();
        output.rest();
        assert_eq!(output.buffer.capacity(), 0);
        let mut got = [0; 16];
        assert_eq!(client.read(&mut got).unwrap(), 5);
        drop(client);
        output.buffer.extend_from_slice(b"x");
        assert_eq!(output.send().unwrap_err().code().as_str(), "08006");
    }
}
