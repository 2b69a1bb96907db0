//! Answers that a worker sends together.
//!
//! A send wakes whoever waits for it, who on a busy machine then runs in the worker's place: two switches
//! of the processor for each answer, and what the caches held of the next one's work is gone. So a run may
//! leave a short last answer to its worker. That sends what was left, in one call (`ring.rs`), when nothing
//! more is ready to start, when there are [`MOST`] of them, when the oldest is [`OLD_NS`] old, and before it blocks. (Event loops
//! that answer all who are ready before they look for more do the same.)
//!
//! Until its answer is sent a connection stays active: it is in no queue, and nobody runs or moves it.
//! Events that come for it meanwhile stay in its flags, as they do while it runs.

use std::cell::{Cell, RefCell};

use super::conn::Conn;
use super::ring::{MOST, Ring};
use crate::clock::now_ns;
use crate::local::local;

/// No answer waits longer than this for the end of another run, in nanoseconds.
const OLD_NS: u64 = 500_000;
/// Longer ones the run sends itself.
const SHORT_BYTES: usize = 2048;

/// A finished run's answer.
#[derive(Clone, Copy)]
struct Letter {
    conn: &'static Conn,
    /// Where it ends in the bytes; it begins where the one before it ends.
    end: usize,
}

/// A worker's.
pub(super) struct Outbox {
    bytes: RefCell<Vec<u8>>,
    letters: RefCell<Vec<Letter>>,
    /// The run at hand has left something, which lies behind the last letter.
    left: Cell<bool>,
    /// When the oldest letter was left.
    since: Cell<u64>,
    ring: RefCell<Ring>,
}

impl Outbox {
    /// Empty. For the thread that calls.
    pub fn new() -> Outbox {
        Outbox {
            bytes: RefCell::default(),
            letters: RefCell::default(),
            left: Cell::new(false),
            since: Cell::new(0),
            ring: RefCell::new(Ring::new()),
        }
    }

    /// Whether letters wait.
    pub fn is_empty(&self) -> bool {
        self.letters.borrow().is_empty()
    }

    fn leave(&self, answer: &[u8]) {
        self.bytes.borrow_mut().extend_from_slice(answer);
        self.left.set(true);
    }

    /// Whether the run that is over has left something, which is then a letter of its connection.
    pub fn take_in(&self, conn: &'static Conn) -> bool {
        let left = self.left.take();
        if left {
            let mut letters = self.letters.borrow_mut();
            if letters.is_empty() {
                self.since.set(now_ns());
            }
            letters.push(Letter { conn, end: self.bytes.borrow().len() });
        }
        left
    }

    /// What the run has left goes nowhere: its connection has ended.
    pub fn drop_left(&self) {
        if self.left.take() {
            let end = self.letters.borrow().last().map_or(0, |letter| letter.end);
            self.bytes.borrow_mut().truncate(end);
        }
    }

    /// Whether it is time to send.
    pub fn is_due(&self) -> bool {
        let waiting = self.letters.borrow().len();
        waiting >= MOST || waiting > 0 && now_ns() - self.since.get() >= OLD_NS
    }

    /// Sends all letters; of each its connection is told to `sent`, which may run it again.
    pub fn post(&self, mut sent: impl FnMut(&'static Conn)) {
        // Nothing is left here while it lasts: no run ends, and the one at hand, if there is one, goes on.
        let mut letters = self.letters.take();
        let mut bytes = self.bytes.take();
        let begin = |at: usize| if at == 0 { 0 } else { letters[at - 1].end };
        let answer = |at: usize| &bytes[begin(at)..letters[at].end];
        let packets = (0..letters.len()).map(|at| (letters[at].conn.fd(), answer(at)));
        let taken = self.ring.borrow_mut().send(packets);
        for (at, letter) in letters.iter().enumerate() {
            if taken[at] < answer(at).len() {
                letter.conn.take_back(&answer(at)[taken[at]..]);
            }
            sent(letter.conn);
        }
        letters.clear();
        bytes.clear();
        self.letters.replace(letters);
        self.bytes.replace(bytes);
    }
}

/// Leaves a run's last bytes to the worker: nothing may be sent after them, and nothing waited for, until
/// `run` has returned true. What the socket does not take comes back by [`super::Source::unsent`]. False:
/// the caller sends them itself, now. So it is outside of workers, for long answers, where nobody else is
/// ready, and for who is waited for (see `queue.rs`).
pub fn leave(answer: &[u8]) -> bool {
    let local = local();
    let Some(worker) = local.worker().filter(|_| local.on_coroutine()) else { return false };
    let alone = worker.outbox.is_empty() && worker.shared.ready_len() == 0;
    if alone || answer.len() > SHORT_BYTES || local.current().is_awaited() {
        return false;
    }
    worker.outbox.leave(answer);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_ended_run_left_goes_nowhere() {
        let outbox = Outbox::new();
        outbox.leave(b"one");
        assert!(outbox.take_in(Conn::unused()));
        outbox.leave(b"other");
        outbox.drop_left();
        assert!(!outbox.take_in(Conn::unused()), "nothing was left");
        assert_eq!(outbox.bytes.borrow().as_slice(), b"one");
        let mut sent = 0;
        outbox.post(|_| sent += 1);
        assert_eq!((sent, outbox.is_empty()), (1, true));
    }

    #[test]
    fn many_letters_are_due() {
        let outbox = Outbox::new();
        for _ in 0..MOST {
            outbox.leave(b"x");
            assert!(outbox.take_in(Conn::unused()));
        }
        assert!(outbox.is_due());
    }
}
