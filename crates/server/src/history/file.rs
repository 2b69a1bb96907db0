//! The past on disk: files of the directory's `history/`, to which a record is appended every second.
//!
//! ```text
//!   history/s-0000845234567890123     seconds    first begins at this time (microseconds since 2000)
//!           m-…                       minutes
//!           h-…                       hours
//!
//!   file:   [TGHISTRY][format u32][0 u32]  record  record …
//!   record: [length u32][CRC-32C of the bytes u32][bytes: codec.rs]
//! ```
//! * A record is written in one call and not synced: the process may be killed at any time, and a crash of the machine
//!   loses the last seconds. A file is read up to the first record that is not whole; every start begins
//!   another file.
//! * Beside each file of seconds its minutes are written (`m-….open`, and `m-…` when that is whole), so that a long range
//!   is read from a sixtieth of the slices: see [`read`]. Old seconds go when their minutes are there; old minutes become
//!   hours: a file is written aside, renamed, and the finer one removed.
//! * `pg_history_retention` bounds the age, `pg_history_size` the bytes: when they are used up, the oldest seconds become
//!   minutes early, and when there are none the oldest file goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::codec::{Decoder, Encoder, Head};
use super::slice::{Slice, Sum};

const MAGIC: &[u8; 8] = b"TGHISTRY";
const FORMAT: u32 = 1;
const HEADER: usize = 16;
/// Longest record that is believed.
const RECORD_MAX: usize = 16 << 20;
/// A file of seconds ends after so long.
const FILE_US: i64 = 3_600_000_000;
/// And after so many bytes.
const FILE_BYTES: u64 = 8 << 20;
/// Seconds are kept as such for so long.
const SECONDS_US: i64 = 6 * 3_600_000_000;
/// And minutes.
const MINUTES_US: i64 = 3 * 24 * 3_600_000_000;

/// The length of the slices in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// A second, as it was written.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Grain {
    fn letter(self) -> &'static str {
        match self {
            Grain::Second => "s",
            Grain::Minute => "m",
            Grain::Hour => "h",
        }
    }

    fn us(self) -> i64 {
        match self {
            Grain::Second => 1_000_000,
            Grain::Minute => 60_000_000,
            Grain::Hour => 3_600_000_000,
        }
    }

    /// The longest of a second and a minute that is no longer than so many microseconds; the second.
    pub fn within(us: i64) -> Grain {
        if us >= Grain::Minute.us() { Grain::Minute } else { Grain::Second }
    }

    fn coarser(self) -> Option<Grain> {
        match self {
            Grain::Second => Some(Grain::Minute),
            Grain::Minute => Some(Grain::Hour),
            Grain::Hour => None,
        }
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Microseconds.
    pub age_us: i64,
    /// Bytes.
    pub bytes: u64,
}

/// A file's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    /// When its first slice began, in microseconds since 2000.
    from: i64,
    grain: Grain,
    path: PathBuf,
}

fn path_of(dir: &Path, grain: Grain, from: i64) -> PathBuf {
    dir.join(format!("{}-{:019}", grain.letter(), from.max(0)))
}

/// The minutes of a file of seconds while they are not whole.
fn open_minutes(dir: &Path, from: i64) -> PathBuf {
    path_of(dir, Grain::Minute, from).with_extension("open")
}

/// The files of a directory, oldest first, of one time the finer first. Whatever else is there is left alone.
fn files(dir: &Path) -> io::Result<Vec<Named>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some((letter, from)) = name.to_str().and_then(|name| name.split_once('-')) else {
            continue;
        };
        let known = [Grain::Second, Grain::Minute, Grain::Hour];
        let grain = known.into_iter().find(|grain| grain.letter() == letter);
        if let (Some(grain), Ok(from)) = (grain, from.parse()) {
            all.push(Named { from, grain, path: entry.path() });
        }
    }
    all.sort();
    Ok(all)
}

/// A file that records are appended to.
struct Open {
    file: File,
    encoder: Encoder,
    from: i64,
    bytes: u64,
}

impl Open {
    fn create(path: &Path, from: i64) -> io::Result<Open> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut header = MAGIC.to_vec();
        header.extend(FORMAT.to_le_bytes());
        header.extend([0; 4]);
        file.write_all(&header)?;
        Ok(Open { file, encoder: Encoder::default(), from, bytes: HEADER as u64 })
    }

    fn append(&mut self, slice: &Slice) -> io::Result<()> {
        let body = self.encoder.encode(slice);
        let mut record = (body.len() as u32).to_le_bytes().to_vec();
        record.extend(crc32c::crc32c(&body).to_le_bytes());
        record.extend(body);
        self.file.write_all(&record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }
}

/// Reads a file's records, up to the first that is not whole.
struct Reader {
    bytes: Vec<u8>,
    /// Where the next record begins, and where the last one's bytes are.
    next: usize,
    body: std::ops::Range<usize>,
    head: Head,
    decoder: Decoder,
}

impl Reader {
    /// None: the file is gone, or not one of these.
    fn open(path: &Path) -> io::Result<Option<Reader>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            // It became minutes meanwhile, or too old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if bytes.len() < HEADER || &bytes[..8] != MAGIC || bytes[8..12] != FORMAT.to_le_bytes() {
            return Ok(None);
        }
        let (head, decoder) = (Head::default(), Decoder::default());
        Ok(Some(Reader { bytes, next: HEADER, body: 0..0, head, decoder }))
    }

    /// Goes to the next record.
    fn advance(&mut self) -> Option<Head> {
        let (head, behind) = self.bytes.get(self.next..)?.split_at_checked(8)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = word(0) as usize;
        let body = behind.get(..len).filter(|_| len <= RECORD_MAX)?;
        if crc32c::crc32c(body) != word(4) {
            return None;
        }
        self.head = self.decoder.head(body)?;
        self.body = self.next + 8..self.next + 8 + len;
        self.next = self.body.end;
        Some(self.head)
    }

    /// The record's slice.
    fn slice(&self) -> Option<Slice> {
        self.decoder.slice(&self.bytes[self.body.clone()], &self.head)
    }
}

/// A range that is read, and how far its slices have come.
struct ReadRange<'a> {
    from: i64,
    to: i64,
    last: i64,
    each: &'a mut dyn FnMut(Slice) -> bool,
}

/// After a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// The next one follows.
    On,
    /// It was none: the next file follows.
    Torn,
    /// It was the range's last, or one that was enough.
    Last,
}

impl ReadRange<'_> {
    fn touches(&self, head: &Head) -> bool {
        head.at > self.from && head.from() < self.to
    }

    fn contains(&self, head: &Head) -> bool {
        head.from() >= self.from && head.at <= self.to
    }

    /// Passes a record, of which the slice is made if it is asked for. Clocks are set back, and a minute ends with its
    /// last second: half a slice's length is let pass.
    fn pass(&mut self, head: &Head, slice: impl FnOnce() -> Option<Slice>) -> Passed {
        if head.from().saturating_add_unsigned(head.span_us / 2) >= self.last {
            self.last = head.at;
            if self.touches(head) {
                let Some(slice) = slice() else { return Passed::Torn };
                if !(self.each)(slice) {
                    return Passed::Last;
                }
            }
        }
        if self.last <= self.to { Passed::On } else { Passed::Last }
    }

    /// Passes the records of a file; whether the next one follows.
    fn file(&mut self, mut reader: Reader) -> bool {
        while let Some(head) = reader.advance() {
            match self.pass(&head, || reader.slice()) {
                Passed::On => {}
                other => return other == Passed::Torn,
            }
        }
        true
    }

    /// Passes a file of seconds, of which those that lie in the range are read as minutes; whether the next one follows.
    /// `whole`: all of its seconds are in the minutes.
    fn minutes(&mut self, seconds: &Path, minutes: &Path, whole: bool) -> io::Result<bool> {
        let mut list = Vec::new();
        // The seconds in this interval are in the list.
        let (mut begins, mut ends, mut before) = (i64::MIN, i64::MIN, i64::MIN);
        let mut are_all = whole;
        let mut reader = Reader::open(minutes)?;
        while let Some((reader, head)) = reader.as_mut().and_then(|r| r.advance().map(|h| (r, h))) {
            if self.contains(&head) {
                let Some(slice) = reader.slice() else { break };
                if list.is_empty() {
                    begins = before;
                }
                ends = head.at;
                list.push((head, slice));
            } else {
                are_all &= !self.touches(&head);
            }
            before = head.at;
        }
        // One that is damaged or gone does not have all.
        are_all &= reader.is_some_and(|reader| reader.next == reader.bytes.len());
        let mut list = list.into_iter();
        let mut give = |range: &mut Self| {
            list.by_ref().all(|(head, slice)| range.pass(&head, || Some(slice)) == Passed::On)
        };
        let reader = if are_all { None } else { Reader::open(seconds)? };
        let Some(mut reader) = reader else { return Ok(give(self)) };
        while let Some(head) = reader.advance() {
            if head.at > begins && !give(self) {
                return Ok(false);
            }
            if head.at > begins && head.at <= ends {
                continue;
            }
            match self.pass(&head, || reader.slice()) {
                Passed::On => {}
                Passed::Torn => break,
                Passed::Last => return Ok(false),
            }
        }
        Ok(give(self))
    }
}

/// Hands over the slices of a directory that end after `from` and begin before `to` (microseconds since 2000),
/// oldest first, until `each` has enough (false). With the grain of a minute, seconds come as minutes where these lie in
/// the range; what has become minutes or hours is so in any case.
///
/// # Errors
/// The system's.
pub fn read(
    dir: &Path,
    from: i64,
    to: i64,
    grain: Grain,
    each: &mut dyn FnMut(Slice) -> bool,
) -> io::Result<()> {
    let files = files(dir)?;
    let mut range = ReadRange { from, to, last: i64::MIN, each };
    // Files that begin at one time have the same in different lengths.
    for same in files.chunk_by(|a, b| a.from == b.from) {
        let Some(finest) = same.first() else { continue };
        // A file ends before the next one that begins later does.
        let ends = files.iter().map(|file| file.from).find(|next| *next > finest.from);
        if ends.is_some_and(|ends| ends < from) {
            continue;
        }
        if finest.from > to {
            break;
        }
        let goes_on = if finest.grain == Grain::Second && grain > Grain::Second {
            let whole = same.iter().find(|file| file.grain == Grain::Minute);
            let open = open_minutes(dir, finest.from);
            let minutes = whole.map_or(&open, |file| &file.path);
            range.minutes(&finest.path, minutes, whole.is_some())?
        } else {
            // One that became coarser meanwhile is there as such.
            let mut goes_on = true;
            for file in same {
                if let Some(reader) = Reader::open(&file.path)? {
                    goes_on = range.file(reader);
                    break;
                }
            }
            goes_on
        };
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// A file of slices that become longer ones on their way.
struct Coarser {
    out: Open,
    grain: Grain,
    aside: PathBuf,
    /// The slice under way, with the number of its minute or hour.
    sum: Option<(i64, Sum)>,
}

impl Coarser {
    fn create(aside: PathBuf, grain: Grain, from: i64) -> io::Result<Coarser> {
        Ok(Coarser { out: Open::create(&aside, from)?, grain, aside, sum: None })
    }

    fn add(&mut self, slice: &Slice) -> io::Result<()> {
        let number = slice.from().div_euclid(self.grain.us());
        if self.sum.as_ref().is_some_and(|(known, _)| *known != number) {
            self.put()?;
        }
        self.sum.get_or_insert_with(|| (number, Sum::default())).1.add(slice);
        Ok(())
    }

    fn put(&mut self) -> io::Result<()> {
        let Some((_, sum)) = self.sum.take() else { return Ok(()) };
        let mut slice = sum.done();
        slice.trim();
        self.out.append(&slice)
    }

    /// Gives the file its name. The finer one may go, so that it is made durable first.
    fn finish(mut self, dir: &Path) -> io::Result<()> {
        self.put()?;
        self.out.file.sync_data()?;
        fs::rename(&self.aside, path_of(dir, self.grain, self.out.from))
    }
}

/// The files that a server writes to: seconds, and beside them their minutes.
struct Current {
    seconds: Open,
    minutes: Coarser,
}

impl Current {
    fn create(dir: &Path, from: i64) -> io::Result<Current> {
        let seconds = Open::create(&path_of(dir, Grain::Second, from), from)?;
        let minutes = Coarser::create(open_minutes(dir, from), Grain::Minute, from)?;
        Ok(Current { seconds, minutes })
    }

    fn append(&mut self, slice: &Slice) -> io::Result<()> {
        self.seconds.append(slice)?;
        self.minutes.add(slice)
    }
}

/// Appends to a directory's files, and keeps them within limits.
pub struct Writer {
    dir: PathBuf,
    open: Option<Current>,
}

impl Writer {
    /// For a directory that need not be there yet.
    pub fn new(dir: PathBuf) -> Writer {
        Writer { dir, open: None }
    }

    /// Appends a second.
    ///
    /// # Errors
    /// The system's; another file is begun next time.
    pub fn append(&mut self, slice: &Slice, limits: Limits) -> io::Result<()> {
        let written = self.try_append(slice, limits);
        if written.is_err() {
            self.open = None;
        }
        written
    }

    fn try_append(&mut self, slice: &Slice, limits: Limits) -> io::Result<()> {
        let is_over = |Current { seconds, .. }: &mut Current| {
            slice.at - seconds.from >= FILE_US
                || seconds.bytes >= FILE_BYTES.min(limits.bytes / 8)
                || seconds.encoder.is_full()
        };
        if let Some(current) = self.open.take_if(is_over) {
            current.minutes.finish(&self.dir)?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                fs::create_dir_all(&self.dir)?;
                complete_minutes(&self.dir)?;
                keep_within(&self.dir, slice.at, limits)?;
                self.open.insert(Current::create(&self.dir, slice.from())?)
            }
        };
        open.append(slice)
    }
}

/// Completes minutes that a server left open when it ended: their rest is in the seconds.
fn complete_minutes(dir: &Path) -> io::Result<()> {
    for file in files(dir)?.iter().filter(|file| file.grain == Grain::Second) {
        let open = open_minutes(dir, file.from);
        if !open.exists() {
            continue;
        }
        let path = path_of(dir, Grain::Minute, file.from);
        let mut out = Coarser::create(path.with_extension("tmp"), Grain::Minute, file.from)?;
        let mut added = Ok(());
        let mut add = |slice: Slice| {
            added = out.add(&slice);
            added.is_ok()
        };
        let mut range = ReadRange { from: i64::MIN, to: i64::MAX, last: i64::MIN, each: &mut add };
        range.minutes(&file.path, &open, false)?;
        added?;
        out.finish(dir)?;
        fs::remove_file(open)?;
    }
    Ok(())
}

/// Rolls up and removes what is too old or too much.
fn keep_within(dir: &Path, now: i64, limits: Limits) -> io::Result<()> {
    let mut all = files(dir)?;
    for file in &all {
        let next = all.iter().map(|other| other.from).find(|next| *next > file.from);
        let next = next.unwrap_or(now);
        let ends = next.min(file.from.saturating_add(FILE_US));
        let kept_us = match file.grain {
            Grain::Second => SECONDS_US,
            Grain::Minute => MINUTES_US,
            Grain::Hour => i64::MAX,
        };
        if now.saturating_sub(ends) > limits.age_us {
            fs::remove_file(&file.path)?;
        } else if now.saturating_sub(ends) > kept_us {
            roll_up(dir, file)?;
        }
    }
    // Each round one file gets smaller, or goes.
    loop {
        all = files(dir)?;
        let mut sizes = 0;
        for file in &all {
            sizes += fs::metadata(&file.path)?.len();
        }
        // Room for the file that is begun now, and its minutes.
        if sizes + limits.bytes / 8 + limits.bytes / 64 <= limits.bytes {
            return Ok(());
        }
        match all.iter().find(|file| file.grain == Grain::Second) {
            Some(file) => roll_up(dir, file)?,
            None => match all.first() {
                Some(file) => fs::remove_file(&file.path)?,
                None => return Ok(()),
            },
        }
    }
}

/// Makes slices of the next coarser length of a file's, unless they are there.
fn roll_up(dir: &Path, file: &Named) -> io::Result<()> {
    let Some(grain) = file.grain.coarser() else { return Ok(()) };
    let path = path_of(dir, grain, file.from);
    if !path.exists() {
        let mut out = Coarser::create(path.with_extension("tmp"), grain, file.from)?;
        if let Some(mut reader) = Reader::open(&file.path)? {
            while reader.advance().is_some()
                && let Some(slice) = reader.slice()
            {
                out.add(&slice)?;
            }
        }
        out.finish(dir)?;
    }
    fs::remove_file(&file.path)
}

#[cfg(test)]
mod tests {
    use super::super::slice::Count;
    use super::super::slice::tests::second;
    use super::*;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let path = std::env::temp_dir().join(format!("history-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Dir(path)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const LIMITS: Limits = Limits { age_us: 14 * 24 * FILE_US, bytes: 256 << 20 };
    const HOUR: i64 = FILE_US;

    fn all(dir: &Dir, from: i64, to: i64) -> Vec<Slice> {
        all_of(dir, from, to, Grain::Second)
    }

    fn all_of(dir: &Dir, from: i64, to: i64, grain: Grain) -> Vec<Slice> {
        let mut slices = Vec::new();
        read(&dir.0, from, to, grain, &mut |slice| {
            slices.push(slice);
            true
        })
        .unwrap();
        slices
    }

    fn write(dir: &Dir, seconds: impl Iterator<Item = i64>, limits: Limits) {
        let mut writer = Writer::new(dir.0.clone());
        seconds.for_each(|s| writer.append(&second(s * 1_000_000, 3), limits).unwrap());
    }

    #[test]
    fn what_was_written_is_read_up_to_a_torn_record() {
        let dir = Dir::new("torn");
        write(&dir, 100..110, LIMITS);
        write(&dir, 110..120, LIMITS);
        assert_eq!(all(&dir, 0, i64::MAX).len(), 20);
        let some = all(&dir, 104_000_000, 108_000_000);
        assert_eq!(some.iter().map(|s| s.at / 1_000_000).collect::<Vec<_>>(), [105, 106, 107, 108]);
        let first = &files(&dir.0).unwrap()[0].path;
        let bytes = fs::read(first).unwrap();
        fs::write(first, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(all(&dir, 0, i64::MAX).len(), 19);
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        fs::write(first, damaged).unwrap();
        assert!((11..19).contains(&all(&dir, 0, i64::MAX).len()));
    }

    #[test]
    fn a_day_keeps_its_sums_while_it_gets_coarser() {
        let dir = Dir::new("day");
        // Every tenth second of a day.
        write(&dir, (0..8640).map(|n| 1000 + n * 10), LIMITS);
        let slices = all(&dir, 0, i64::MAX);
        let commits: u64 = slices.iter().map(|s| s.count(Count::Commits)).sum();
        assert_eq!(commits, 3 * 8640);
        assert!(slices.windows(2).all(|pair| pair[0].at < pair[1].at));
        let grains: Vec<Grain> = files(&dir.0).unwrap().iter().map(|f| f.grain).collect();
        assert!(grains.contains(&Grain::Minute) && grains.contains(&Grain::Second), "{grains:?}");
        // A week later.
        write(&dir, std::iter::once(7 * 24 * 3600), LIMITS);
        write(&dir, std::iter::once(7 * 24 * 3600 + 7200), LIMITS);
        let slices = all(&dir, 0, i64::MAX);
        let commits: u64 = slices.iter().map(|s| s.count(Count::Commits)).sum();
        assert_eq!(commits, 3 * 8642);
        assert!(slices.len() < 100, "{}", slices.len());
        // Two weeks later the first day is gone.
        write(&dir, std::iter::once(15 * 24 * 3600 + 7200), LIMITS);
        assert_eq!(all(&dir, 0, 24 * HOUR).len(), 0);
    }

    #[test]
    fn long_ranges_are_read_as_minutes_and_their_edges_as_seconds() {
        let dir = Dir::new("minutes");
        // A day that ends in the midst of a file, of which the last server has left minutes open.
        write(&dir, (0..7150).map(|n| 100_007 + n), LIMITS);
        let open = |dir: &Dir| {
            let entries = fs::read_dir(&dir.0).unwrap().flatten();
            entries.filter(|e| e.path().extension().is_some_and(|e| e == "open")).count()
        };
        assert_eq!(open(&dir), 1);
        let us = |s: i64| s * 1_000_000;
        let check = |from: i64, to: i64, most: usize| {
            let finest = all(&dir, us(from), us(to));
            let minutes = all_of(&dir, us(from), us(to), Grain::Minute);
            let sum = |slices: &[Slice]| {
                let commits: u64 = slices.iter().map(|s| s.count(Count::Commits)).sum();
                let events: usize = slices.iter().map(|s| s.events.len()).sum();
                (commits, events, slices.iter().map(|s| s.span_us).sum::<u64>())
            };
            assert_eq!(sum(&finest), sum(&minutes), "{from} {to}");
            assert!(minutes.windows(2).all(|pair| pair[0].at <= pair[1].from()), "{from} {to}");
            assert!(minutes.len() <= most, "{from} {to}: {} of {}", minutes.len(), finest.len());
        };
        for (from, to, most) in [
            (0, 200_000, 7150 / 60 + 70),
            (100_200, 107_000, 230),
            (100_200, 100_230, 30),
            (103_500, 103_700, 122),
            (103_600, 103_610, 10),
            (107_100, 107_300, 60),
            (107_156, 107_157, 1),
            (107_200, 107_300, 0),
        ] {
            check(from, to, most);
        }
        // A few are enough.
        let mut few = 0;
        let mut five = |_: Slice| {
            few += 1;
            few < 5
        };
        read(&dir.0, 0, i64::MAX, Grain::Minute, &mut five).unwrap();
        assert_eq!(few, 5);
        // The next server completes them, and goes on with its own.
        write(&dir, std::iter::once(107_300), LIMITS);
        assert_eq!(open(&dir), 1);
        let minutes = files(&dir.0).unwrap().iter().filter(|f| f.grain == Grain::Minute).count();
        assert_eq!(minutes, 2);
        check(0, 200_000, 7150 / 60 + 10);
    }

    #[test]
    fn bytes_are_bounded() {
        let dir = Dir::new("bytes");
        let limits = Limits { bytes: 200_000, ..LIMITS };
        write(&dir, 0..20_000, limits);
        let bytes: u64 =
            files(&dir.0).unwrap().iter().map(|f| fs::metadata(&f.path).unwrap().len()).sum();
        assert!(bytes <= limits.bytes, "{bytes}");
        let slices = all(&dir, 0, i64::MAX);
        let last = slices.last().unwrap();
        assert_eq!((last.at, last.span_us), (19_999_000_000, 1_000_000));
        assert!(slices[0].span_us > 1_000_000, "the oldest are minutes");
    }
}
