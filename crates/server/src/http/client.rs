//! One client: what it is at, and for how long it may be.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use sched::SpinLock;

use super::request::{self, HEAD_BYTES_MAX, Request};
use super::response::Response;

/// For a connection between two requests.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// For the rest of a request's head.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// For the client to take the answer.
const WRITE_MAX: Duration = Duration::from_secs(20);

/// Where a job leaves its answer.
pub type Pending = Arc<SpinLock<Option<Response>>>;

/// The result of a request.
pub enum Answer {
    /// The answer.
    Now(Response),
    /// A thread works on it.
    Later(Pending),
    /// The answer, at a time.
    At(Instant, Response),
    /// The request is looked at again at a time.
    Again(Instant),
}

/// The sender of a request.
#[derive(Clone, Copy)]
pub struct Asker {
    /// The address.
    pub address: IpAddr,
    /// Whether the request is looked at again, at the time that was said.
    pub waited: bool,
}

enum Step {
    /// Reads a request's head.
    Reading,
    /// A job works; what the answer will be like: without its body, the last one.
    Working { pending: Pending, head: bool, close: bool },
    /// Waits for the time of the answer, or, without one, for that of the request in the buffer.
    Waiting { until: Instant, answer: Option<Response>, head: bool, close: bool },
    /// Sends from this position on; the last answer.
    Writing { bytes: Vec<u8>, sent: usize, close: bool },
}

/// See the module's documentation.
pub struct Client {
    stream: TcpStream,
    address: IpAddr,
    input: Vec<u8>,
    step: Step,
    since: Instant,
}

impl Client {
    /// A client that has just connected; None when the system won't have it.
    pub fn new(stream: TcpStream, address: IpAddr) -> Option<Client> {
        stream.set_nonblocking(true).ok()?;
        // Without it only the last packet of an answer may be late.
        let _ = stream.set_nodelay(true);
        Some(Client {
            stream,
            address,
            input: Vec::new(),
            step: Step::Reading,
            since: Instant::now(),
        })
    }

    /// For `poll`.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// For what it waits.
    pub fn interest(&self) -> PollFlags {
        match self.step {
            Step::Reading => PollFlags::POLLIN,
            // Only that it has gone, which needs no asking.
            Step::Working { .. } | Step::Waiting { .. } => PollFlags::empty(),
            Step::Writing { .. } => PollFlags::POLLOUT,
        }
    }

    /// For what time it waits.
    pub fn wakes_at(&self) -> Option<Instant> {
        match &self.step {
            Step::Waiting { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// Since when it has been at this step.
    pub fn since(&self) -> Instant {
        self.since
    }

    fn enter(&mut self, step: Step) {
        self.step = step;
        self.since = Instant::now();
    }

    /// Does what can be done without waiting; false when the client is to go.
    pub fn go_on(
        &mut self,
        ready: bool,
        now: Instant,
        answer: &dyn Fn(&Request<'_>, Asker) -> Answer,
    ) -> bool {
        let asks_nothing = matches!(self.step, Step::Working { .. } | Step::Waiting { .. });
        if self.is_late(now) || (ready && asks_nothing) {
            return false;
        }
        if ready && matches!(self.step, Step::Reading) && !self.read() {
            return false;
        }
        // One answer at a time; the next request waits in the buffer until this one is sent.
        loop {
            match &mut self.step {
                Step::Reading => {
                    if !self.begin(answer, false) {
                        return true;
                    }
                }
                Step::Waiting { until, .. } if *until > now => return true,
                Step::Waiting { answer: response, head, close, .. } => {
                    let (head, close) = (*head, *close);
                    match response.take() {
                        Some(response) => self.send(response, head, close),
                        None => drop(self.begin(answer, true)),
                    }
                }
                Step::Working { pending, head, close } => {
                    let (head, close) = (*head, *close);
                    let Some(response) = pending.lock().take() else { return true };
                    self.send(response, head, close);
                }
                Step::Writing { .. } => match self.write() {
                    Ok(true) => self.enter(Step::Reading),
                    Ok(false) => return true,
                    Err(()) => return false,
                },
            }
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        let limit = match self.step {
            Step::Reading if self.input.is_empty() => IDLE_MAX,
            Step::Reading => HEAD_MAX,
            Step::Working { .. } | Step::Waiting { .. } => return false,
            Step::Writing { .. } => WRITE_MAX,
        };
        now.saturating_duration_since(self.since) > limit
    }

    /// Takes what has come; false at the connection's end.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        while self.input.len() <= HEAD_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    if self.input.is_empty() {
                        self.since = Instant::now();
                    }
                    self.input.extend_from_slice(&buffer[..n]);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// Begins with the request in the buffer; false when it isn't complete.
    fn begin(&mut self, answer: &dyn Fn(&Request<'_>, Asker) -> Answer, waited: bool) -> bool {
        let asker = Asker { address: self.address, waited };
        let (answer, head, close, length) = match request::parse(&self.input) {
            None => return false,
            Some(Err(refusal)) => (Answer::Now(refusal), false, true, self.input.len()),
            Some(Ok((request, length))) => {
                (answer(&request, asker), request.head, request.close, length)
            }
        };
        if !matches!(answer, Answer::Again(_)) {
            self.input.drain(..length);
        }
        match answer {
            Answer::Now(response) => self.send(response, head, close),
            Answer::Later(pending) => self.enter(Step::Working { pending, head, close }),
            Answer::At(until, response) => {
                self.enter(Step::Waiting { until, answer: Some(response), head, close });
            }
            Answer::Again(until) => {
                self.enter(Step::Waiting { until, answer: None, head, close });
            }
        }
        true
    }

    fn send(&mut self, response: Response, head: bool, close: bool) {
        let close = close || response.close;
        let bytes = response.encode(head, close);
        self.enter(Step::Writing { bytes, sent: 0, close });
    }

    /// Sends what the socket takes: whether that was all. An error: the connection is over.
    fn write(&mut self) -> Result<bool, ()> {
        let Step::Writing { bytes, sent, close } = &mut self.step else { return Ok(true) };
        while *sent < bytes.len() {
            match self.stream.write(&bytes[*sent..]) {
                Ok(0) => return Err(()),
                Ok(n) => *sent += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(()),
            }
        }
        if *close { Err(()) } else { Ok(true) }
    }
}
