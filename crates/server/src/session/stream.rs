//! START_REPLICATION's loop, for whatever is streamed: bytes of the log, changes of rows.
//!
//! ```text
//! CopyBoth ─▶ d 'p' note to a standby: [`crate::standby::Note`]
//!             d 'w' start, end, time, data  ──▶ …        ◀── d 'r' written, flushed, applied, time, reply?
//!             d 'k' end, time, reply?                    ◀── d 'h' hot standby's feedback
//!                                                        ◀── d 'H' oldest snapshot of a standby (CSN; 0: none)
//!             c ◀──▶ c                                    then CommandComplete
//! ```
//! * The loop sends what its [`Source`] has, hears what the client says, and waits for either: the log's writer wakes
//!   it when more is durable.
//! * A client that says nothing for half of `wal_sender_timeout` is asked; after all of it its connection ends.
//!
//! Source: PostgreSQL's manual, "Streaming Replication Protocol".

use std::time::{Duration, Instant};

use base::settings::setting;
use base::{Lsn, Result, WaitEvent, err};
use wire::Frontend;

use super::SessionState;
use crate::connection::{Fill, Input};
use crate::senders::Registered;
use crate::server;

/// The time between two keepalives that only tell of a position.
const TOLD_AGAIN: Duration = Duration::from_millis(200);

/// Something to be sent.
#[derive(Debug)]
pub(super) struct Piece {
    /// The position that its data begins at.
    pub start: Lsn,
    /// Everything up to here has been sent with it.
    pub end: Lsn,
    /// The log's end as the client is told it. A subscriber takes all before it for received.
    pub log_end: Lsn,
    /// The data.
    pub bytes: Vec<u8>,
}

/// The client's word about what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Received up to here.
    pub written: Lsn,
    /// Durable up to here.
    pub flushed: Lsn,
    /// Applied up to here.
    pub applied: Lsn,
}

/// Where the stream comes from.
pub(super) trait Source {
    /// The next piece; None: there is nothing yet.
    ///
    /// # Errors
    /// Those that end the stream.
    fn next(&mut self, session: &mut SessionState) -> Result<Option<Piece>>;

    /// Everything before this has been handed out.
    fn position(&self) -> Lsn;

    /// Something that the client is to be told beside the pieces, when it is time for it.
    ///
    /// # Errors
    /// Those that end the stream.
    fn note(&mut self, _session: &SessionState) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// The client has said how far it has come.
    ///
    /// # Errors
    /// Those that end the stream.
    fn confirmed(&mut self, status: &Status, session: &SessionState) -> Result<()>;

    /// The command tags in the end.
    fn tags(&self) -> &'static [&'static str];
}

/// A stream under way.
struct Streaming<'s> {
    session: &'s mut SessionState,
    registered: &'s Registered,
    /// The client's last word, and whether it has been asked for the next one.
    heard: Instant,
    asked: bool,
    /// A client wants to know where the server is.
    answer: bool,
    /// The position that the client was told last, and when.
    told: (Lsn, Instant),
    /// The client has ended its half.
    ended: bool,
}

impl SessionState {
    /// Streams until the client ends it. `rest`: what came behind the command.
    ///
    /// # Errors
    /// Those of the source; those of the connection, fatal; interrupts.
    pub(super) fn stream(
        &mut self,
        rest: &[u8],
        registered: &Registered,
        source: &mut dyn Source,
    ) -> Result<()> {
        // Nothing is held while it goes on, and no statement's time runs.
        self.end_implicit()?;
        self.disarm_timeout();
        wire::copy::both_response(&mut self.out.get_mut().buffer);
        self.send_all()?;
        self.copy_input.get_or_insert_with(|| Input::with(rest));
        let mut streaming = Streaming {
            session: self,
            registered,
            heard: Instant::now(),
            asked: false,
            answer: false,
            told: (Lsn::ZERO, Instant::now()),
            ended: false,
        };
        streaming.run(source)?;
        wire::copy::done(&mut self.out.get_mut().buffer);
        for tag in source.tags() {
            wire::response::complete(&mut self.out.get_mut().buffer, tag);
        }
        Ok(())
    }

    fn send_all(&mut self) -> Result<()> {
        let out = self.out.get_mut();
        out.complete = out.buffer.len();
        out.send()
    }
}

impl Streaming<'_> {
    fn run(&mut self, source: &mut dyn Source) -> Result<()> {
        loop {
            self.hear(source)?;
            if self.ended {
                return Ok(());
            }
            if let Some(note) = source.note(self.session)? {
                wire::copy::data(&mut self.session.out.get_mut().buffer, &note);
                self.session.send_all()?;
            }
            // Before the source looks, so that nothing that becomes durable meanwhile is slept through.
            let seen = self.session.server.engine.storage.wal.flushed();
            if let Some(piece) = source.next(self.session)? {
                self.send(&piece)?;
                continue;
            }
            self.registered.update(|sender| {
                if sender.state == "catchup" {
                    sender.state = "streaming";
                }
            });
            let answer = std::mem::take(&mut self.answer);
            if answer || self.untold(source).is_some_and(|at| at <= Instant::now()) {
                self.keepalive(source.position(), false)?;
            }
            self.wait(source, seen)?;
        }
    }

    fn send(&mut self, piece: &Piece) -> Result<()> {
        sched::check_interrupts()?;
        let mut body = Vec::with_capacity(25 + piece.bytes.len());
        body.push(b'w');
        body.extend_from_slice(&piece.start.0.to_be_bytes());
        body.extend_from_slice(&piece.log_end.0.to_be_bytes());
        body.extend_from_slice(&server::now().to_be_bytes());
        body.extend_from_slice(&piece.bytes);
        wire::copy::data(&mut self.session.out.get_mut().buffer, &body);
        self.session.send_all()?;
        self.told = (piece.end, Instant::now());
        self.registered.update(|sender| sender.sent = piece.end);
        Ok(())
    }

    /// The time to tell the client of a position that no piece came with: log that a change stream leaves out.
    fn untold(&self, source: &dyn Source) -> Option<Instant> {
        let (told, at) = self.told;
        (source.position() > told).then(|| at + TOLD_AGAIN)
    }

    fn keepalive(&mut self, position: Lsn, reply: bool) -> Result<()> {
        self.told = (position, Instant::now());
        let mut body = vec![b'k'];
        body.extend_from_slice(&position.0.to_be_bytes());
        body.extend_from_slice(&server::now().to_be_bytes());
        body.push(u8::from(reply));
        wire::copy::data(&mut self.session.out.get_mut().buffer, &body);
        self.session.send_all()
    }

    /// Takes what the client has said.
    fn hear(&mut self, source: &mut dyn Source) -> Result<()> {
        let gone = || err!(CONNECTION_FAILURE, "unexpected EOF on standby connection").fatal();
        let Some(mut input) = self.session.copy_input.take() else { return Err(gone()) };
        let result = loop {
            match self.messages(&mut input, source) {
                Ok(()) if self.ended => break Ok(()),
                Ok(()) => {}
                Err(error) => break Err(error),
            }
            match input.fill(&self.session.socket) {
                Ok(Fill::End) => break Err(gone()),
                Ok(Fill::Empty) => break Ok(()),
                Ok(Fill::More | Fill::Drained) => {}
                Err(error) => break Err(error),
            }
        };
        self.session.copy_input = Some(input);
        result
    }

    fn messages(&mut self, input: &mut Input, source: &mut dyn Source) -> Result<()> {
        while let Some(frame) = wire::next_frame(input.bytes())? {
            let size = frame.size();
            match wire::frontend::decode(frame)? {
                Frontend::CopyData(bytes) => self.word(bytes, source)?,
                Frontend::CopyDone | Frontend::CopyFail(_) => self.ended = true,
                Frontend::Flush | Frontend::Sync => {}
                Frontend::Terminate => {
                    return Err(err!(CONNECTION_FAILURE, "connection to client lost").fatal());
                }
                _ => {
                    return Err(wire::violation(format!(
                        "unexpected standby message type \"{}\"",
                        char::from(frame.tag)
                    )));
                }
            }
            input.consume(size);
            if self.ended {
                break;
            }
        }
        Ok(())
    }

    fn word(&mut self, bytes: &[u8], source: &mut dyn Source) -> Result<()> {
        (self.heard, self.asked) = (Instant::now(), false);
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        match bytes.first() {
            Some(b'r') => {
                let (Some(written), Some(flushed), Some(applied)) =
                    (number(1), number(9), number(17))
                else {
                    return Err(wire::violation("a standby's status is cut".to_owned()));
                };
                self.answer |= bytes.get(33).is_some_and(|reply| *reply != 0);
                let (written, flushed, applied) = (Lsn(written), Lsn(flushed), Lsn(applied));
                let status = Status { written, flushed, applied };
                source.confirmed(&status, self.session)?;
                self.registered.update(|sender| {
                    (sender.written, sender.flushed, sender.applied) = (written, flushed, applied);
                    sender.replied = Some(server::now());
                });
                Ok(())
            }
            // A standby of ours keeps what its snapshots see.
            Some(b'H') => {
                let oldest = number(1)
                    .ok_or_else(|| wire::violation("a standby's feedback is cut".to_owned()))?;
                self.session.owner.hold_from(base::Csn(oldest));
                Ok(())
            }
            // Feedback of a standby's snapshots: nothing here is kept for them.
            Some(b'h') => Ok(()),
            other => Err(wire::violation(format!(
                "unexpected message type \"{}\"",
                char::from(other.copied().unwrap_or(b'?'))
            ))),
        }
    }

    /// Waits for more of the log than was durable at `seen`, a word of the client, or the time to ask for one.
    fn wait(&mut self, source: &dyn Source, seen: Lsn) -> Result<()> {
        let session = &mut *self.session;
        let patience = session.settings.get().int(setting::WAL_SENDER_TIMEOUT).max(0) as u64;
        let deadline = match patience {
            0 => None,
            ms if self.asked => Some(self.heard + Duration::from_millis(ms)),
            ms => Some(self.heard + Duration::from_millis(ms / 2)),
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            if self.asked {
                let text = "terminating walsender process due to replication timeout";
                return Err(err!(CONNECTION_FAILURE, "{text}").fatal());
            }
            self.asked = true;
            return self.keepalive(source.position(), true);
        }
        let deadline = deadline.into_iter().chain(self.untold(source)).min();
        let session = &mut *self.session;
        let wal = &session.server.engine.storage.wal;
        let task = sched::current();
        // A wake-up may be that of a flush that had been seen before: whoever goes on waiting asks for the next one.
        let done = || {
            wal.watch(&task);
            wal.flushed() > seen
        };
        sched::wait_readable_or(
            session.socket.fd(),
            WaitEvent::ClientWalSenderWait,
            deadline,
            &done,
        )
    }
}
