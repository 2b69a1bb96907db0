//! Answers that a worker sends together.
//!
//! A send wakes whoever waits for it, who on a busy machine then runs in the worker's place: two switches
//! of the processor for each answer, and what the caches held of the next one's work is gone. So a run may
//! leave a short last answer to its worker. That sends what was left, in one call (`ring.rs`), when nothing
//! more is ready to start, when there are [`MOST`] of them, before somebody runs for whom nobody waits when
//! one of them is of a connection that is waited for (see `queue.rs`) unless very many are ready, when the
//! oldest is [`OLD_NS`] old, and before it blocks. (Event loops that answer all who are ready before they look
//! for more do the same.)
//!
//! Until its answer is sent a connection stays active: it is in no queue, and nobody runs or moves it.
//! Events that come for it meanwhile stay in its flags, as they do while it runs.

use std::cell::{Cell, RefCell};

use super::conn::Conn;
use super::ring::{MOST, Ring};
use crate::clock::shared_ns;
use crate::local::local;

/// After this time, in nanoseconds, an answer does not wait for one more run. (The one at hand sends it when
/// it looks at the clock: within its first few rows, but not while it is planned.)
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
    /// Somebody waits for one of the connections.
    awaited: Cell<bool>,
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
            awaited: Cell::new(false),
            ring: RefCell::new(Ring::new()),
        }
    }

    /// Another thread, which calls, serves the worker from now on.
    pub fn change_thread(&self) {
        self.ring.replace(Ring::new());
    }

    /// Whether the run at hand has left something, and has not ended.
    pub fn is_being_filled(&self) -> bool {
        self.left.get()
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
                self.since.set(shared_ns());
            }
            self.awaited.set(self.awaited.get() || conn.task().is_awaited());
            letters.push(Letter { conn, end: self.bytes.borrow().len() });
        }
        left
    }

    /// Drops the output that the run has left: its connection has ended.
    pub fn drop_left(&self) {
        if self.left.take() {
            let end = self.letters.borrow().last().map_or(0, |letter| letter.end);
            self.bytes.borrow_mut().truncate(end);
        }
    }

    /// Whether letters must not wait for this connection's run: somebody waits for one of theirs, and
    /// nobody for this one. While `ready` connections more are many, nobody gains by what another gets
    /// sooner, and each send of its own makes all slower.
    pub fn goes_before(&self, next: &Conn, ready: usize) -> bool {
        ready < MOST && self.awaited.get() && !next.task().is_awaited()
    }

    /// Whether it is time to send; asked when a run is over.
    pub fn is_due(&self) -> bool {
        let waiting = self.letters.borrow().len();
        waiting >= MOST || waiting > 0 && shared_ns() - self.since.get() >= OLD_NS
    }

    /// Sends all letters; of each its connection is told to `sent`, which may run it again.
    pub fn post(&self, mut sent: impl FnMut(&'static Conn)) {
        // Nothing is left here while it lasts: no run ends, and the one at hand, if there is one, goes on.
        self.awaited.set(false);
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
        crate::clock::keep_recent(0); // sending takes its time
        letters.clear();
        bytes.clear();
        self.letters.replace(letters);
        self.bytes.replace(bytes);
    }
}

/// Leaves a run's last bytes to the worker: nothing may be sent after them, and nothing waited for, until
/// `run` has returned true. What the socket does not take comes back by [`super::Source::unsent`]. False:
/// the caller sends them itself, now. So it is outside of workers, for long answers, and where nobody else
/// is ready.
pub fn leave(answer: &[u8]) -> bool {
    let local = local();
    if !local.on_coroutine() {
        return false;
    }
    // A run whose worker is another thread's sends its answer before it gives itself back.
    let Some(worker) = local.worker() else { return false };
    let alone = worker.outbox.is_empty() && worker.shared.ready_len() == 0;
    if alone || answer.len() > SHORT_BYTES {
        return false;
    }
    worker.outbox.leave(answer);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    fn conn() -> &'static Conn {
        Conn::of_task(Task::new("test"))
    }

    #[test]
    fn what_an_ended_run_left_goes_nowhere() {
        let outbox = Outbox::new();
        outbox.leave(b"one");
        assert!(outbox.take_in(conn()));
        outbox.leave(b"other");
        outbox.drop_left();
        assert!(!outbox.take_in(conn()), "nothing was left");
        assert_eq!(outbox.bytes.borrow().as_slice(), b"one");
        let mut sent = 0;
        outbox.post(|_| sent += 1);
        assert_eq!((sent, outbox.is_empty()), (1, true));
    }

    #[test]
    fn what_others_wait_for_goes_before_the_rest() {
        let outbox = Outbox::new();
        let (awaited, other) = (conn(), conn());
        awaited.task().count_awaiting(1);
        for (letter, before) in [(other, false), (awaited, true), (other, true)] {
            outbox.leave(b"x");
            assert!(outbox.take_in(letter));
            assert_eq!(outbox.goes_before(other, MOST - 1), before);
            assert!(!outbox.goes_before(awaited, 0));
        }
        assert!(!outbox.goes_before(other, MOST), "so many are ready that all wait their turn");
        outbox.post(|_| ());
        assert!(!outbox.goes_before(other, 0));
    }

    #[test]
    fn many_letters_are_due() {
        let outbox = Outbox::new();
        for _ in 0..MOST {
            outbox.leave(b"x");
            assert!(outbox.take_in(conn()));
        }
        assert!(outbox.is_due());
    }
}
