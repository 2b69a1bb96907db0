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
//! * Old seconds become minutes, old minutes hours: a file is written aside, renamed, and the finer one removed. Where
//!   both are there the finer one counts, since a slice that begins before the last one ended is passed over.
//! * `pg_history_retention` bounds the age, `pg_history_size` the bytes: when they are used up, the oldest seconds become
//!   minutes early, and when there are none the oldest file goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::codec::{Decoder, Encoder};
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

/// Hands the slices of a file over, oldest first, until `each` has enough (false). What is not whole ends it.
fn read_file(path: &Path, each: &mut dyn FnMut(Slice) -> bool) -> io::Result<bool> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        // It became minutes meanwhile, or too old.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let Some((header, mut rest)) = bytes.split_at_checked(HEADER) else { return Ok(true) };
    if &header[..8] != MAGIC || header[8..12] != FORMAT.to_le_bytes() {
        return Ok(true);
    }
    let mut decoder = Decoder::default();
    while let Some((head, behind)) = rest.split_at_checked(8) {
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = word(0) as usize;
        let Some((body, behind)) = behind.split_at_checked(len).filter(|_| len <= RECORD_MAX)
        else {
            break;
        };
        if crc32c::crc32c(body) != word(4) {
            break;
        }
        let Some(slice) = decoder.decode(body) else { break };
        if !each(slice) {
            return Ok(false);
        }
        rest = behind;
    }
    Ok(true)
}

/// Hands over the slices of a directory that end after `from` and begin before `to` (microseconds since 2000),
/// oldest first, until `each` has enough (false).
///
/// # Errors
/// The system's.
pub fn read(dir: &Path, from: i64, to: i64, each: &mut dyn FnMut(Slice) -> bool) -> io::Result<()> {
    let files = files(dir)?;
    let mut last = i64::MIN;
    for (n, file) in files.iter().enumerate() {
        // A file ends before the next one that begins later does.
        let ends = files[n..].iter().map(|f| f.from).find(|next| *next > file.from);
        if ends.is_some_and(|ends| ends < from) {
            continue;
        }
        if file.from > to {
            break;
        }
        let goes_on = read_file(&file.path, &mut |slice| {
            // Clocks are set back, and a minute ends with its last second: half a slice's length is let pass.
            if slice.from() + (slice.span_us / 2) as i64 >= last {
                last = slice.at;
                if slice.at > from && slice.from() < to && !each(slice) {
                    return false;
                }
            }
            last <= to
        })?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Appends to a directory's files, and keeps them within limits.
pub struct Writer {
    dir: PathBuf,
    open: Option<Open>,
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
        let is_over = |open: &Open| {
            slice.at - open.from >= FILE_US
                || open.bytes >= FILE_BYTES.min(limits.bytes / 8)
                || open.encoder.is_full()
        };
        if self.open.as_ref().is_some_and(is_over) {
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                fs::create_dir_all(&self.dir)?;
                keep_within(&self.dir, slice.at, limits)?;
                let path = path_of(&self.dir, Grain::Second, slice.from());
                self.open.insert(Open::create(&path, slice.from())?)
            }
        };
        open.append(slice)
    }
}

/// Rolls up and removes what is too old or too much.
fn keep_within(dir: &Path, now: i64, limits: Limits) -> io::Result<()> {
    let mut all = files(dir)?;
    for (n, file) in all.iter().enumerate() {
        let next = all.get(n + 1).map_or(now, |next| next.from);
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
        // Room for the file that is begun now.
        if sizes + limits.bytes / 8 <= limits.bytes {
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

/// Makes slices of the next coarser length of a file's.
fn roll_up(dir: &Path, file: &Named) -> io::Result<()> {
    let Some(grain) = file.grain.coarser() else { return Ok(()) };
    let path = path_of(dir, grain, file.from);
    let aside = path.with_extension("tmp");
    let mut out = Open::create(&aside, file.from)?;
    let mut sum: Option<(i64, Sum)> = None;
    let mut failed = Ok(());
    let mut put = |sum: Sum, failed: &mut io::Result<()>| {
        let mut slice = sum.done();
        slice.trim();
        if failed.is_ok() {
            *failed = out.append(&slice);
        }
    };
    read_file(&file.path, &mut |slice| {
        let number = slice.from().div_euclid(grain.us());
        if let Some((known, _)) = &sum
            && *known != number
            && let Some((_, whole)) = sum.take()
        {
            put(whole, &mut failed);
        }
        sum.get_or_insert_with(|| (number, Sum::default())).1.add(&slice);
        true
    })?;
    if let Some((_, whole)) = sum {
        put(whole, &mut failed);
    }
    failed?;
    fs::rename(aside, path)?;
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
        let mut slices = Vec::new();
        read(&dir.0, from, to, &mut |slice| {
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
