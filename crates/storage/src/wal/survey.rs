//! A look at the whole log before anything is done by it: where it ends, whether it ends there because the
//! server stopped or because something is damaged, and which files it is about.
//!
//! The log ends at the first place that holds no valid record. That is a **torn tail** when the server or the
//! machine stopped while it wrote: the disk may have any of the bytes that were not yet synced. It is **damage**
//! when the place must have been whole once, since
//!
//! * the control file says that the log was durable beyond it;
//! * a segment has a wrong length, or is missing between others;
//! * a valid record lies in a later segment (a segment is synced before the next one is begun);
//! * a valid record behind it was placed when the log was durable beyond it (its durable mark,
//!   [`super::record`]).
//!
//! Cases that can't be told from a torn tail: damage of the records after the last sync that a later record knows
//! of, the last group of commits before a crash.
//!
//! A torn tail was never acknowledged and is cut off. Damage stops the start: everything behind it was
//! acknowledged, and only the user can say that it may be lost (`--accept-loss-from`).

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::FileExt;

use base::{Error, Fork, Lsn, RelId, Result};

use super::reader::LogReader;
use super::record::{self, CHANGES, CUT, DROPPED, HEADER, Record};
use super::segment::Segments;
use crate::control::Control;

/// Bytes of the next segment in which a record is looked for: more than the longest record has.
const NEXT_MOST: u64 = 4 << 20;
/// Bytes of segments after that.
const LATER_MOST: u64 = 64 << 10;
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Words of eight bytes that are passed by together if they are zero.
const BLOCK: usize = 512;

/// The log that redo is going to find.
#[derive(Default)]
pub(crate) struct Survey {
    /// The log ends here.
    pub end: Lsn,
    /// Records from the redo position to the end.
    pub records: u64,
    /// There was damage at the end, and the user gives up what lies behind it.
    pub gives_up: bool,
    /// The message about the end, if it is worth one.
    pub tail: Option<String>,
    /// Relations with records.
    pub touched: HashSet<RelId>,
    /// Relations whose files may have been removed.
    pub dropped: HashSet<RelId>,
    /// To how many blocks a fork was cut at most.
    pub cuts: HashMap<(RelId, Fork), u32>,
}

impl Survey {
    /// Reads the log from the control file's redo position on. Changes nothing.
    ///
    /// # Errors
    /// `XX001` for damage, unless `accept` is its position; `58P01` when a promised segment is missing.
    pub(crate) fn make(
        segments: &Segments,
        control: &Control,
        (accept, follows): (Option<Lsn>, bool),
    ) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut reader = LogReader::to_look(segments.clone(), control.redo);
        while let Some((start, bytes)) = reader.next()? {
            survey.note(&Record::parse(bytes, start)?)?;
            survey.records += 1;
        }
        survey.end = reader.position();
        let found = Ending { segments, control, end: survey.end.0, follows }
            .look()
            .map_err(|e| Error::io("read the write-ahead log", &e))?;
        match found {
            Tail::Damaged(damage) if accept == Some(survey.end) => {
                survey.gives_up = true;
                survey.tail = Some(damage.what);
            }
            Tail::Damaged(damage) => return Err(damage.error(survey.end)),
            Tail::Torn(what) => survey.tail = what,
        }
        Ok(survey)
    }

    fn note(&mut self, record: &Record<'_>) -> Result<()> {
        let (pages, mut body) = record.pages()?;
        match record.kind {
            CHANGES => self.touched.extend(
                pages.iter().filter(|p| p.flags & record::UNCHANGED == 0).map(|p| p.id.rel),
            ),
            CUT => {
                let key = (RelId(body.u32()?), body.fork()?);
                let blocks = body.u32()?;
                self.touched.insert(key.0);
                self.cuts.entry(key).and_modify(|b| *b = blocks.min(*b)).or_insert(blocks);
            }
            DROPPED => drop(self.dropped.insert(RelId(body.u32()?))),
            _ => {}
        }
        Ok(())
    }
}

/// How the log ends.
enum Tail {
    Torn(Option<String>),
    Damaged(Damage),
}

struct Damage {
    what: String,
    missing: bool,
}

impl Damage {
    fn error(self, at: Lsn) -> Error {
        let message = format!("the write-ahead log is damaged at {at}: {}", self.what);
        let code = if self.missing {
            base::sqlstate::UNDEFINED_FILE
        } else {
            base::sqlstate::DATA_CORRUPTED
        };
        Error::new(code, message)
            .detail(
                "What was committed after that position cannot be recovered; nothing was changed.",
            )
            .hint(choices(at))
    }
}

/// The remedies for damage, in words.
fn choices(at: Lsn) -> String {
    format!(
        "Restore the data directory from a backup, or, to give up everything that was committed after that \
         position, serve it with --accept-loss-from {at}."
    )
}

/// The place where the log ends, looked at from all sides.
struct Ending<'a> {
    segments: &'a Segments,
    control: &'a Control,
    end: u64,
    /// The records' durable marks are another server's.
    follows: bool,
}

impl Ending<'_> {
    fn look(&self) -> io::Result<Tail> {
        let all = self.segments.list()?;
        let size = self.segments.size;
        let damaged = |what| Ok(Tail::Damaged(Damage { what, missing: false }));
        let missing = |number| {
            let what = format!("file \"{}\" is missing", Segments::name(number));
            Ok(Tail::Damaged(Damage { what, missing: true }))
        };
        // The segments that the control file promises: what was durable lies in them.
        let (redo, durable) =
            (self.control.redo.0, self.control.durable.0.max(self.control.redo.0));
        let promised = redo / size..durable.div_ceil(size);
        if let Some(number) = promised.clone().find(|n| !all.contains(n)) {
            return missing(number);
        }
        for number in all.iter().copied().filter(|n| *n >= redo / size) {
            let length = self.segments.length(number)?.unwrap_or(0);
            // Format 2 made the newest file first and gave it its length then.
            let half_made = !self.control.is_listed() && length == 0 && number > self.end / size;
            if length != size && !half_made {
                let name = Segments::name(number);
                return damaged(format!("file \"{name}\" has {length} bytes instead of {size}"));
            }
        }
        if self.end < durable {
            let file = Segments::name(self.end / size);
            return damaged(format!(
                "file \"{file}\" has no valid record there, and the log was durable up to {}",
                Lsn(durable)
            ));
        }
        let last = all.last().copied().unwrap_or(0);
        let own = self.end / size;
        if last > own && !all.contains(&own) {
            return missing(own);
        }
        if last > own + 1 && !all.contains(&(own + 1)) && self.runs_into_next()? {
            return missing(own + 1);
        }
        if self.control.clean || self.follows {
            // Nothing was logged after the last server had said so.
            return Ok(Tail::Torn(None));
        }
        self.look_behind(&all)
    }

    /// Looks for records behind the end that show that it was not always the end.
    fn look_behind(&self, all: &[u64]) -> io::Result<Tail> {
        let (size, own) = (self.segments.size, self.end / self.segments.size);
        let file = Segments::name(own);
        let mut behind = None;
        for number in all.iter().copied().filter(|n| *n >= own) {
            let from = if number == own { self.end + 8 } else { number * size };
            let most = match number - own {
                0 => size,
                1 => NEXT_MOST,
                _ => LATER_MOST,
            };
            let (mut at, until) = (from, (from + most).min((number + 1) * size));
            while let Some(first) = self.next_valid(at, until)? {
                behind.get_or_insert(first);
                let (later, end) = self.read_on(first, until)?;
                if let Some(later) = if number > own { Some(first) } else { later } {
                    let what = format!(
                        "file \"{file}\" has no valid record there, and one that was written later \
                         follows at {}",
                        Lsn(later)
                    );
                    return Ok(Tail::Damaged(Damage { what, missing: false }));
                }
                at = end;
            }
        }
        let torn = || -> io::Result<bool> {
            let mut bytes = [0; HEADER];
            let file = self.segments.open_read(own)?;
            let got = file.read_at(&mut bytes, self.end % size)?;
            Ok(bytes[..got].iter().any(|b| *b != 0))
        };
        let tail = match behind {
            Some(at) => Some(format!(
                "a record there is incomplete; one at {}, which was not durable either, is left out",
                Lsn(at)
            )),
            None if all.contains(&own) && torn()? => {
                Some("a record there is incomplete".to_owned())
            }
            None => None,
        };
        Ok(Tail::Torn(tail))
    }

    /// Reads valid records from here on: the first one that was placed when the log was durable beyond the
    /// end, and where they end.
    fn read_on(&self, from: u64, until: u64) -> io::Result<(Option<u64>, u64)> {
        let mut reader = LogReader::to_look(self.segments.clone(), Lsn(from));
        while let Ok(Some((at, bytes))) = reader.next() {
            let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            if record::durable_before(word, at).is_some_and(|durable| durable > self.end) {
                return Ok((Some(at), at));
            }
            if at >= until {
                break;
            }
        }
        Ok((None, reader.position().0))
    }

    /// The first valid record from here on, in one segment.
    fn next_valid(&self, from: u64, until: u64) -> io::Result<Option<u64>> {
        let size = self.segments.size;
        if from >= until {
            return Ok(None);
        }
        let file = match self.segments.open_read(from / size) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut at = from;
        let mut bytes = vec![0; CHUNK];
        while at < until {
            let want = CHUNK.min((until - at) as usize);
            let got = file.read_at(&mut bytes[..want], at % size)?;
            let (words, _) = bytes[..got].as_chunks::<8>();
            for (number, block) in words.chunks(BLOCK).enumerate() {
                // Most of what lies behind the log's end was never written, and no position is zero.
                if block.as_flattened() == &[0; BLOCK * 8][..block.len() * 8] {
                    continue;
                }
                for (index, word) in block.iter().enumerate() {
                    // A record's second word says where its first one is.
                    let lsn = (at + (number * BLOCK + index) as u64 * 8).wrapping_sub(8);
                    if *word == lsn.to_le_bytes() && lsn >= at && self.is_valid(lsn) {
                        return Ok(Some(lsn));
                    }
                }
            }
            if got < 16 {
                break;
            }
            // The header's second word may be in the next chunk.
            at += (words.len() as u64 - 1) * 8;
        }
        Ok(None)
    }

    fn is_valid(&self, lsn: u64) -> bool {
        let mut reader = LogReader::to_look(self.segments.clone(), Lsn(lsn));
        matches!(reader.next(), Ok(Some(_)))
    }

    /// Whether the record at the end has a header that says it goes on in the next segment.
    fn runs_into_next(&self) -> io::Result<bool> {
        let size = self.segments.size;
        let mut header = [0; HEADER];
        let file = match self.segments.open_read(self.end / size) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let got = file.read_at(&mut header, self.end % size)?;
        let word = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let is_cut = got < HEADER && got > 0;
        let in_place = header[8..16] == self.end.to_le_bytes();
        let end = self.end % size + u64::from(record::len_of(word));
        Ok(is_cut || (in_place && end > size))
    }
}
