//! The commit log: transaction id to outcome, in memory.
//!
//! ```text
//!  xid ->  directory -> folder -> entry of 16384 xids -+-> live chunk: one word an xid
//!                                                      +-> bits: one bit an xid, for ever
//! ```
//!
//! A **live chunk** has one atomic word for each of its 16384 transactions:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | id not handed out yet (or this very moment): counts as running |
//! | bit 63, kind 0, owner | running, for the session in this slot of the registry |
//! | bit 63, kind 1, owner | committing: the commit record is on its way into the log |
//! | bit 63, kind 2 | aborted |
//! | bit 63, kind 3 | committed before the last start of the server |
//! | bit 63 clear | committed; the word is the CSN |
//!
//! A word goes `0 -> running -> committing -> csn` or `running -> aborted` and then never changes.
//! That the word names the session costs nothing and is how a waiter finds whom it waits for.
//!
//! Once every transaction of a chunk has ended, its commits are durable and seen by every snapshot,
//! the chunk is **reduced**: committed or not is one bit (a CSN is of no interest any more), and the
//! live chunk is used again for new ids. So an old transaction costs one bit of memory for ever
//! (a thousand million take 120 MB), a recent one eight bytes. A transaction that runs for long keeps
//! one chunk from being reduced; a snapshot that is held for long, all that began after it: it costs
//! eight bytes for each transaction meanwhile.
//!
//! Reading takes no lock and never waits. A live chunk carries the number of the chunk that it holds
//! (`tag`). Reuse goes: bits written, entry's link cleared, tag cleared, words cleared, new tag, new
//! link, each with release ordering. A reader loads link, word, tag: when the tag is still the right
//! one, the word belongs to the chunk, because a cleared word would have brought the cleared tag with
//! it; otherwise it looks again and finds the bits.
//!
//! The form on disk is described in `commit_file`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::{Csn, WaitEvent, Xid};
use sched::Mutex;

/// The fate of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// Not finished.
    Running,
    /// Committed at this point; `Csn(0)` when it was so long ago that every snapshot sees it.
    Committed(Csn),
    /// Rolled back, or lost in a crash.
    Aborted,
}

/// A transaction's word, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XidState {
    /// Not handed out, as far as the log knows.
    Unassigned,
    /// Running for the session in this registry slot.
    Running(u32),
    /// Its commit record is being written.
    Committing(u32),
    /// Ended without effect.
    Aborted,
    /// Committed; `Csn(0)` when that was long ago.
    Committed(Csn),
}

const SPECIAL: u64 = 1 << 63;
const KIND_SHIFT: u32 = 32;

impl XidState {
    fn to_word(self) -> u64 {
        let special = |kind: u64, owner: u32| SPECIAL | kind << KIND_SHIFT | u64::from(owner);
        match self {
            XidState::Unassigned => 0,
            XidState::Running(owner) => special(0, owner),
            XidState::Committing(owner) => special(1, owner),
            XidState::Aborted => special(2, 0),
            XidState::Committed(Csn(0)) => special(3, 0),
            XidState::Committed(csn) => csn.0,
        }
    }

    fn from_word(word: u64) -> XidState {
        if word == 0 {
            return XidState::Unassigned;
        }
        if word & SPECIAL == 0 {
            return XidState::Committed(Csn(word));
        }
        let owner = word as u32;
        match (word & !SPECIAL) >> KIND_SHIFT {
            0 => XidState::Running(owner),
            1 => XidState::Committing(owner),
            2 => XidState::Aborted,
            _ => XidState::Committed(Csn(0)),
        }
    }

    /// Whether the outcome is settled.
    pub(crate) fn ended(self) -> bool {
        matches!(self, XidState::Aborted | XidState::Committed(_))
    }
}

/// Transactions in a chunk.
pub(crate) const CHUNK: u64 = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 14;
/// Words of 64 bits in a reduced chunk.
pub(crate) const BIT_WORDS: usize = CHUNK as usize / 64;
/// Entries of a directory level.
const FAN: usize = 1 << 12;
/// Ids at and above this do not fit the directory; at 100,000 transactions a second that is three
/// and a half centuries away.
pub(crate) const XID_LIMIT: u64 = CHUNK << 36;

/// A reduced chunk.
pub(crate) type Bits = [u64; BIT_WORDS];

/// Where one chunk's outcomes are.
struct Entry {
    /// Number of the live chunk in the pool plus one; 0: reduced.
    live: AtomicU32,
    bits: OnceLock<Box<[AtomicU64]>>,
}

struct LiveChunk {
    /// The chunk that it holds; `u64::MAX` while it holds none.
    tag: AtomicU64,
    words: Box<[AtomicU64]>,
}

type Level<T> = OnceLock<Box<[T]>>;

/// Outcomes of all transactions.
pub(crate) struct CommitLog {
    directory: Box<[Level<Level<Entry>>]>,
    pool: Box<[Level<OnceLock<LiveChunk>>]>,
    /// Chunks below this exist.
    chunks: AtomicU64,
    upkeep: Mutex<Upkeep>,
}

#[derive(Default)]
struct Upkeep {
    /// Chunks below this are reduced.
    first_live: u64,
    /// Pool chunks in no use, and how many there are in all.
    free: Vec<u32>,
    pooled: u32,
}

fn level<T>(make: impl Fn() -> T) -> Box<[T]> {
    (0..FAN).map(|_| make()).collect()
}

impl CommitLog {
    pub(crate) fn new() -> CommitLog {
        CommitLog {
            directory: level(OnceLock::new),
            pool: level(OnceLock::new),
            chunks: AtomicU64::new(0),
            upkeep: Mutex::new(WaitEvent::LWLockCommitLog, Upkeep::default()),
        }
    }

    fn entry(&self, chunk: u64) -> Option<&Entry> {
        let (top, middle, low) = split(chunk);
        self.directory.get(top)?.get()?[middle].get().map(|folder| &folder[low])
    }

    fn make_entry(&self, chunk: u64) -> &Entry {
        let (top, middle, low) = split(chunk);
        let entry = || Entry { live: AtomicU32::new(0), bits: OnceLock::new() };
        let middle = &self.directory[top].get_or_init(|| level(OnceLock::new))[middle];
        &middle.get_or_init(|| level(entry))[low]
    }

    /// The live chunk under this number of the pool.
    fn live(&self, link: u32) -> Option<&LiveChunk> {
        let number = link.checked_sub(1)? as usize;
        self.pool[number / FAN].get()?[number % FAN].get()
    }

    /// The log's word about a transaction now.
    #[inline]
    pub(crate) fn get(&self, xid: Xid) -> XidState {
        let chunk = xid.0 >> CHUNK_BITS;
        loop {
            let Some(entry) = self.entry(chunk) else { return self.without_chunk(xid, chunk) };
            let Some(live) = self.live(entry.live.load(Ordering::Acquire)) else {
                return match entry.bits.get() {
                    Some(bits) => from_bits(bits, xid),
                    None => self.without_chunk(xid, chunk),
                };
            };
            let word = live.words[index(xid)].load(Ordering::Acquire);
            if live.tag.load(Ordering::Acquire) == chunk {
                return XidState::from_word(word);
            }
        }
    }

    /// A chunk without bits: either none of its transactions committed, or it does not exist yet.
    #[cold]
    fn without_chunk(&self, xid: Xid, chunk: u64) -> XidState {
        match xid {
            Xid::BOOTSTRAP => XidState::Committed(Csn(0)),
            _ if chunk < self.chunks.load(Ordering::Acquire) => XidState::Aborted,
            _ => XidState::Unassigned,
        }
    }

    /// Notes a transaction's state. Its chunk is live, because the transaction has not ended.
    #[inline]
    pub(crate) fn set(&self, xid: Xid, state: XidState) {
        let chunk = xid.0 >> CHUNK_BITS;
        let live = self.entry(chunk).and_then(|e| self.live(e.live.load(Ordering::Acquire)));
        let live = live.expect("the chunk of a transaction that has not ended is live");
        debug_assert_eq!(live.tag.load(Ordering::Relaxed), chunk);
        live.words[index(xid)].store(state.to_word(), Ordering::Release);
    }

    /// Makes sure that every id below `xid` has a word.
    pub(crate) fn extend_to(&self, xid: u64) {
        let wanted = xid.div_ceil(CHUNK);
        if self.chunks.load(Ordering::Acquire) >= wanted {
            return;
        }
        let mut upkeep = self.upkeep.lock();
        while self.chunks.load(Ordering::Acquire) < wanted {
            let chunk = self.chunks.load(Ordering::Acquire);
            self.make_live(&mut upkeep, chunk, |_| XidState::Unassigned);
            self.chunks.store(chunk + 1, Ordering::Release);
        }
    }

    fn make_live(&self, upkeep: &mut Upkeep, chunk: u64, state: impl Fn(Xid) -> XidState) {
        let link = upkeep.free.pop().unwrap_or_else(|| {
            upkeep.pooled += 1;
            upkeep.pooled
        });
        let number = link as usize - 1;
        let words = || (0..CHUNK).map(|_| AtomicU64::new(0)).collect();
        let folder = self.pool[number / FAN].get_or_init(|| level(OnceLock::new));
        let live = folder[number % FAN]
            .get_or_init(|| LiveChunk { tag: AtomicU64::new(u64::MAX), words: words() });
        for (word, xid) in live.words.iter().zip(chunk * CHUNK..) {
            word.store(state(Xid(xid)).to_word(), Ordering::Release);
        }
        live.tag.store(chunk, Ordering::Release);
        self.make_entry(chunk).live.store(link, Ordering::Release);
    }

    /// Reduces chunks whose transactions have all ended, with commits at or below `seen_by_all`. One
    /// that still runs keeps only its own chunk. Returns how many chunks are live afterwards.
    pub(crate) fn reduce(&self, seen_by_all: Csn) -> u64 {
        let mut upkeep = self.upkeep.lock();
        let end = self.chunks.load(Ordering::Acquire);
        for chunk in upkeep.first_live..end {
            let entry = self.make_entry(chunk);
            let link = entry.live.load(Ordering::Acquire);
            let Some(live) = self.live(link) else { continue };
            match gather(live, seen_by_all) {
                Gathered::Bits(bits) => store_bits(entry, &bits),
                Gathered::Unfinished => continue,
                // The transactions that follow are younger still.
                Gathered::Young => break,
            }
            entry.live.store(0, Ordering::Release);
            live.tag.store(u64::MAX, Ordering::Release);
            upkeep.free.push(link);
        }
        while upkeep.first_live < end && self.is_reduced(upkeep.first_live) {
            upkeep.first_live += 1;
        }
        u64::from(upkeep.pooled) - upkeep.free.len() as u64
    }

    /// Whether nothing can change in this chunk any more.
    pub(crate) fn is_reduced(&self, chunk: u64) -> bool {
        let link = |entry: &Entry| entry.live.load(Ordering::Acquire);
        chunk < self.chunks.load(Ordering::Acquire) && self.entry(chunk).map_or(0, link) == 0
    }

    /// Committed or not of a chunk's transactions, as far as the commit lies at or below `upto`. The
    /// caller knows that none of those is `committing` any more.
    pub(crate) fn bits(&self, chunk: u64, upto: Csn) -> Bits {
        let mut bits = [0; BIT_WORDS];
        let Some(entry) = self.entry(chunk) else { return bits };
        if entry.live.load(Ordering::Acquire) == 0 {
            for (word, old) in bits.iter_mut().zip(entry.bits.get().into_iter().flatten()) {
                *word = old.load(Ordering::Acquire);
            }
            return bits;
        }
        for xid in chunk * CHUNK..(chunk + 1) * CHUNK {
            if matches!(self.get(Xid(xid)), XidState::Committed(csn) if csn <= upto) {
                bits[index(Xid(xid)) / 64] |= 1 << (xid % 64);
            }
        }
        bits
    }

    /// Recovery: notes that these transactions of a chunk committed.
    pub(crate) fn restore_bits(&self, chunk: u64, bits: &Bits) {
        if bits.iter().any(|&word| word != 0) {
            store_bits(self.make_entry(chunk), bits);
        }
    }

    /// Recovery: notes a commit.
    pub(crate) fn restore_commit(&self, xid: Xid) {
        let entry = self.make_entry(xid.0 >> CHUNK_BITS);
        bits_of(entry)[index(xid) / 64].fetch_or(1 << (xid.0 % 64), Ordering::Release);
    }

    /// The end of recovery: whatever has not committed below `next` is aborted; ids from `next` on
    /// are new.
    pub(crate) fn restored(&self, next: Xid) {
        let mut upkeep = self.upkeep.lock();
        let chunk = next.0 >> CHUNK_BITS;
        let old = self.entry(chunk).and_then(|e| e.bits.get());
        self.make_live(&mut upkeep, chunk, |xid| match old {
            _ if xid >= next => XidState::Unassigned,
            _ if xid == Xid::BOOTSTRAP => XidState::Committed(Csn(0)),
            Some(bits) => from_bits(bits, xid),
            None => XidState::Aborted,
        });
        upkeep.first_live = chunk;
        self.chunks.store(chunk + 1, Ordering::Release);
    }

    /// For a server that follows another one, before anybody reads: transactions from `oldest` on that have not
    /// committed may yet do so.
    pub(crate) fn reopen(&self, oldest: Xid) {
        let mut upkeep = self.upkeep.lock();
        let chunks = self.chunks.load(Ordering::Acquire);
        let first = oldest.0 >> CHUNK_BITS;
        for chunk in first..chunks {
            if self.entry(chunk).is_some_and(|e| e.live.load(Ordering::Acquire) != 0) {
                for xid in (chunk * CHUNK).max(oldest.0)..(chunk + 1) * CHUNK {
                    if self.get(Xid(xid)) == XidState::Aborted {
                        self.set(Xid(xid), XidState::Unassigned);
                    }
                }
                continue;
            }
            let old = self.entry(chunk).and_then(|e| e.bits.get());
            self.make_live(&mut upkeep, chunk, |xid| match old {
                _ if xid == Xid::BOOTSTRAP => XidState::Committed(Csn(0)),
                Some(bits) if from_bits(bits, xid) != XidState::Aborted => from_bits(bits, xid),
                _ if xid < oldest => XidState::Aborted,
                _ => XidState::Unassigned,
            });
        }
        upkeep.first_live = upkeep.first_live.min(first);
    }

    /// The fate of a transaction of the server that is followed.
    pub(crate) fn follow(&self, xid: Xid, state: XidState) {
        self.extend_to(xid.0 + 1);
        let chunk = xid.0 >> CHUNK_BITS;
        if self.is_reduced(chunk) {
            let mut upkeep = self.upkeep.lock();
            let old = self.entry(chunk).and_then(|e| e.bits.get());
            self.make_live(&mut upkeep, chunk, |xid| match old {
                _ if xid == Xid::BOOTSTRAP => XidState::Committed(Csn(0)),
                Some(bits) => from_bits(bits, xid),
                None => XidState::Aborted,
            });
            upkeep.first_live = upkeep.first_live.min(chunk);
        }
        self.set(xid, state);
    }

    /// After recovery, before anybody reads: a transaction that was prepared before the start runs on, for the session in
    /// this slot of the registry.
    pub(crate) fn revive(&self, xid: Xid, owner: u32) {
        let chunk = xid.0 >> CHUNK_BITS;
        if self.is_reduced(chunk) {
            let mut upkeep = self.upkeep.lock();
            let old = self.entry(chunk).and_then(|e| e.bits.get());
            self.make_live(&mut upkeep, chunk, |xid| match old {
                _ if xid == Xid::BOOTSTRAP => XidState::Committed(Csn(0)),
                Some(bits) => from_bits(bits, xid),
                None => XidState::Aborted,
            });
            upkeep.first_live = upkeep.first_live.min(chunk);
        }
        self.set(xid, XidState::Running(owner));
    }
}

fn split(chunk: u64) -> (usize, usize, usize) {
    let at = |shift: u32| (chunk >> shift) as usize;
    (at(24), at(12) % FAN, at(0) % FAN)
}

fn index(xid: Xid) -> usize {
    (xid.0 % CHUNK) as usize
}

fn bits_of(entry: &Entry) -> &[AtomicU64] {
    entry.bits.get_or_init(|| (0..BIT_WORDS).map(|_| AtomicU64::new(0)).collect())
}

fn store_bits(entry: &Entry, bits: &Bits) {
    for (word, value) in bits_of(entry).iter().zip(bits) {
        word.store(*value, Ordering::Release);
    }
}

fn from_bits(bits: &[AtomicU64], xid: Xid) -> XidState {
    match bits[index(xid) / 64].load(Ordering::Acquire) >> (xid.0 % 64) & 1 {
        1 => XidState::Committed(Csn(0)),
        _ => XidState::Aborted,
    }
}

/// The work that a live chunk is ready for.
enum Gathered {
    /// To be reduced to these.
    Bits(Box<Bits>),
    /// A transaction has not ended.
    Unfinished,
    /// A commit is not seen by all yet.
    Young,
}

fn gather(live: &LiveChunk, seen_by_all: Csn) -> Gathered {
    let mut bits = Box::new([0; BIT_WORDS]);
    for (i, word) in live.words.iter().enumerate() {
        match XidState::from_word(word.load(Ordering::Acquire)) {
            XidState::Committed(csn) if csn <= seen_by_all => bits[i / 64] |= 1 << (i % 64),
            XidState::Committed(_) => return Gathered::Young,
            XidState::Aborted => {}
            _ => return Gathered::Unfinished,
        }
    }
    Gathered::Bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_each_state() {
        for state in [
            XidState::Unassigned,
            XidState::Running(0),
            XidState::Running(u32::MAX),
            XidState::Committing(7),
            XidState::Aborted,
            XidState::Committed(Csn(0)),
            XidState::Committed(Csn(1 << 62)),
        ] {
            assert_eq!(XidState::from_word(state.to_word()), state);
        }
    }

    #[test]
    fn a_fresh_log_knows_only_the_bootstrap_transaction() {
        let log = CommitLog::new();
        assert_eq!(log.get(Xid::BOOTSTRAP), XidState::Committed(Csn(0)));
        assert_eq!(log.get(Xid(3)), XidState::Unassigned);
        log.restored(Xid(3));
        assert_eq!(log.get(Xid::BOOTSTRAP), XidState::Committed(Csn(0)));
        assert_eq!(log.get(Xid(2)), XidState::Aborted);
        assert_eq!(log.get(Xid(3)), XidState::Unassigned);
        assert_eq!(log.get(Xid(u64::MAX)), XidState::Unassigned);
    }

    #[test]
    fn old_chunks_are_reduced_in_order_and_used_again() {
        let log = CommitLog::new();
        log.restored(Xid(3));
        log.extend_to(3 * CHUNK);
        for xid in 3..3 * CHUNK {
            let even = xid % 2 == 0;
            log.set(Xid(xid), if even { XidState::Committed(Csn(xid)) } else { XidState::Aborted });
        }
        assert_eq!(log.reduce(Csn(2 * CHUNK)), 1, "two are seen by all");
        for xid in 3..2 * CHUNK {
            let even = xid % 2 == 0;
            let expected = if even { XidState::Committed(Csn(0)) } else { XidState::Aborted };
            assert_eq!(log.get(Xid(xid)), expected);
        }
        assert_eq!(log.get(Xid(2 * CHUNK + 2)), XidState::Committed(Csn(2 * CHUNK + 2)));
        log.extend_to(5 * CHUNK);
        assert_eq!(log.upkeep.lock().pooled, 3, "the two chunks were used again");
        assert_eq!(log.get(Xid(4 * CHUNK)), XidState::Unassigned);
        assert_eq!(log.get(Xid(4)), XidState::Committed(Csn(0)));
    }

    #[test]
    fn a_running_transaction_keeps_its_own_chunk_live_and_no_other() {
        let log = CommitLog::new();
        log.restored(Xid(3));
        log.extend_to(4 * CHUNK);
        for xid in 3..3 * CHUNK {
            log.set(Xid(xid), XidState::Committed(Csn(xid)));
        }
        log.set(Xid(CHUNK + 5), XidState::Running(1));
        assert_eq!(log.reduce(Csn(u64::MAX / 2)), 2, "its own and the newest");
        assert_eq!(log.get(Xid(CHUNK + 6)), XidState::Committed(Csn(CHUNK + 6)));
        assert_eq!(log.get(Xid(2 * CHUNK + 6)), XidState::Committed(Csn(0)));
        log.set(Xid(CHUNK + 5), XidState::Aborted);
        assert_eq!(log.reduce(Csn(u64::MAX / 2)), 1);
        assert_eq!(log.get(Xid(CHUNK + 5)), XidState::Aborted);
    }

    #[test]
    fn restored_commits_are_old_and_the_rest_aborted() {
        let log = CommitLog::new();
        log.restore_commit(Xid(CHUNK + 5));
        log.restore_commit(Xid(7));
        log.restored(Xid(CHUNK + 10));
        assert_eq!(log.get(Xid(CHUNK + 5)), XidState::Committed(Csn(0)));
        assert_eq!(log.get(Xid(CHUNK + 6)), XidState::Aborted);
        assert_eq!(log.get(Xid(7)), XidState::Committed(Csn(0)));
        assert_eq!(log.get(Xid(8)), XidState::Aborted);
        assert_eq!(log.get(Xid(CHUNK + 10)), XidState::Unassigned);
        let bits = log.bits(1, Csn(0));
        assert_eq!(bits.iter().map(|w| w.count_ones()).sum::<u32>(), 1);
    }

    #[test]
    fn readers_never_see_another_chunks_words_while_chunks_are_reused() {
        let log = CommitLog::new();
        log.restored(Xid(3));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Transactions 4 and 5 of every chunk: committed and aborted.
                    let last = log.chunks.load(Ordering::Acquire).saturating_sub(2);
                    for chunk in last.saturating_sub(3)..last {
                        let base = chunk * CHUNK;
                        assert!(matches!(log.get(Xid(base + 4)), XidState::Committed(_)));
                        assert_eq!(log.get(Xid(base + 5)), XidState::Aborted);
                    }
                }
            });
            for chunk in 0..40 {
                log.extend_to((chunk + 1) * CHUNK);
                for xid in (chunk * CHUNK).max(3)..(chunk + 1) * CHUNK {
                    let commit = xid % 2 == 0;
                    let state =
                        if commit { XidState::Committed(Csn(xid)) } else { XidState::Aborted };
                    log.set(Xid(xid), state);
                }
                log.reduce(Csn(chunk * CHUNK));
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
