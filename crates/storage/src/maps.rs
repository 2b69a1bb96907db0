//! The maps of relations' pages that the layer above keeps in memory: which pages everybody sees all of, and how much room
//! each has. They are saved with each checkpoint, so that neither a restart nor a crash forgets them.
//!
//! ```text
//! DIR/threadgres.maps     CRC-32C of the rest u32, format u32, system id u64, redo u64, end u64, then for each relation
//!                         [rel u32][words u32][bits u64]…[runs u32][(pages u16, room u8)]…
//! ```
//!
//! Nobody needs the file: without it, or when it is damaged, nothing is known of any page. Room is a hint. Why a bit
//! can be trusted:
//!
//! * It is set under a latch on the page, once the record of the page's last change is in the log, and cleared under the
//!   exclusive latch before the record of the next change is. The bits are read after the checkpoint's redo position
//!   was taken, so whatever changed a page before has cleared its bit by then.
//! * Redo clears the bit of each page that it comes across, also where the page itself has the change already. So a
//!   file that is newer than the control file (a crash in between) is as good, and one that is older is not read.
//! * `end` is the log's end when the bits had been read: recovery must come that far, for a change that made a page what
//!   its bit says might be lost otherwise. The log is flushed up to there before the file is written.
//! * A server that follows another one neither reads nor writes maps, and takes the file away; no copy of a directory has it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use base::{Error, Fork, Lsn, PageId, RelId, Result, WaitEvent};
use sched::{Mutex, io_wait};

use crate::control::Control;
use crate::core::Core;
use crate::wal::cursor::Cursor;

/// The file's name.
pub(crate) const MAPS: &str = "threadgres.maps";
/// In format 1 pages that were never used had bits, too.
const FORMAT: u32 = 2;
/// In front of the first relation.
const HEADER: usize = 32;

/// The maps of a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMaps {
    /// Page 64 n + i is bit i of word n. A page that was never used has none.
    pub visible: Vec<u64>,
    /// A class of room for each page; 0: nothing is known.
    pub room: Vec<u8>,
}

type Source = Box<dyn Fn() -> Vec<(RelId, PageMaps)> + Send + Sync>;

/// The maps that nobody has asked for since the start, and who has the others.
pub(crate) struct SavedMaps {
    waiting: Mutex<HashMap<RelId, PageMaps>>,
    source: OnceLock<Source>,
}

impl SavedMaps {
    /// Reads a directory's maps for a recovery that ends at `end`. Also none, if they can't be trusted.
    pub(crate) fn read(dir: &Path, control: &Control, end: Lsn) -> SavedMaps {
        let waiting = match fs::read(dir.join(MAPS)) {
            Ok(bytes) => decode(&bytes, control, end).unwrap_or_default(),
            Err(_) => HashMap::new(),
        };
        SavedMaps::with(waiting)
    }

    /// No maps.
    pub(crate) fn none() -> SavedMaps {
        SavedMaps::with(HashMap::new())
    }

    fn with(waiting: HashMap<RelId, PageMaps>) -> SavedMaps {
        SavedMaps { waiting: Mutex::new(WaitEvent::LWLockOther, waiting), source: OnceLock::new() }
    }

    /// Redo is about to change a page.
    pub(crate) fn clear(&self, id: PageId) {
        if id.fork == Fork::Main
            && let Some(maps) = self.waiting.lock().get_mut(&id.rel)
            && let Some(word) = maps.visible.get_mut(id.block as usize / 64)
        {
            *word &= !(1 << (id.block % 64));
        }
    }

    /// Redo cuts a relation.
    pub(crate) fn cut(&self, rel: RelId, blocks: u32) {
        if let Some(maps) = self.waiting.lock().get_mut(&rel) {
            maps.cut(blocks);
        }
    }

    /// The relation's files are removed.
    pub(crate) fn remove(&self, rel: RelId) {
        self.waiting.lock().remove(&rel);
    }

    fn all(&self) -> HashMap<RelId, PageMaps> {
        // A relation that is asked for in between is in both: its own are the newer ones.
        let mut all = self.waiting.lock().clone();
        if let Some(source) = self.source.get() {
            all.extend(source());
        }
        all
    }

    /// A checkpoint with this redo position is about to be complete.
    pub(crate) fn save(core: &Core, redo: Lsn) {
        let save = || -> Result<()> {
            let all = core.maps.all();
            let end = core.log.insert_position();
            core.log.flush(end)?;
            let system_id = core.control.lock().system_id;
            let bytes = encode(all, system_id, redo, end);
            write(&core.dir, &bytes, core.options.fsync())
                .map_err(|e| Error::io("write the maps of pages", &e))
        };
        if let Err(e) = save()
            && !core.log.is_abandoned()
        {
            // The file of the checkpoint before is not read any more.
            eprintln!("WARNING:  visibility and free space maps could not be saved: {e}");
        }
    }
}

impl PageMaps {
    fn cut(&mut self, blocks: u32) {
        self.visible.truncate((blocks as usize).div_ceil(64));
        if let Some(last) = self.visible.get_mut(blocks as usize / 64) {
            *last &= (1 << (blocks % 64)) - 1;
        }
        self.room.truncate(blocks as usize);
    }
}

impl crate::Storage {
    /// The maps of a relation that were saved, clipped to its length. Given once: from now on the caller has them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn take_maps(&self, rel: RelId) -> Result<Option<PageMaps>> {
        let Some(mut maps) = self.core.maps.waiting.lock().remove(&rel) else { return Ok(None) };
        maps.cut(self.block_count(rel, Fork::Main)?);
        Ok(Some(maps))
    }

    /// Says who has the maps that were taken: asked by each checkpoint. The first one counts.
    pub fn keep_maps(&self, source: impl Fn() -> Vec<(RelId, PageMaps)> + Send + Sync + 'static) {
        let _ = self.core.maps.source.set(Box::new(source));
    }
}

/// Takes the file away.
pub(crate) fn remove_file(dir: &Path) -> Result<()> {
    match fs::remove_file(dir.join(MAPS)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove the maps of pages", &e))
        }
        _ => Ok(()),
    }
}

fn write(dir: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let aside = dir.join(format!("{MAPS}.tmp"));
    let mut file = File::create(&aside)?;
    io_wait(WaitEvent::IOControlFileWrite, || file.write_all(bytes))?;
    if sync {
        io_wait(WaitEvent::IOControlFileSync, || file.sync_all())?;
    }
    fs::rename(&aside, dir.join(MAPS))?;
    if sync { File::open(dir)?.sync_all() } else { Ok(()) }
}

fn encode(all: HashMap<RelId, PageMaps>, system_id: u64, redo: Lsn, end: Lsn) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&FORMAT.to_le_bytes());
    for number in [system_id, redo.0, end.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for (rel, maps) in all {
        let words = maps.visible.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        let rooms = maps.room.iter().rposition(|room| *room != 0).map_or(0, |last| last + 1);
        if words + rooms == 0 || rel.is_temporary() {
            continue;
        }
        out.extend_from_slice(&rel.0.to_le_bytes());
        out.extend_from_slice(&(words as u32).to_le_bytes());
        out.extend(maps.visible[..words].iter().flat_map(|word| word.to_le_bytes()));
        let same = maps.room[..rooms].chunk_by(|a, b| a == b);
        let runs: Vec<&[u8]> = same.flat_map(|run| run.chunks(usize::from(u16::MAX))).collect();
        out.extend_from_slice(&(runs.len() as u32).to_le_bytes());
        for run in runs {
            out.extend_from_slice(&(run.len() as u16).to_le_bytes());
            out.push(run[0]);
        }
    }
    let sum = crc32c::crc32c(&out[4..]);
    out[..4].copy_from_slice(&sum.to_le_bytes());
    out
}

/// None: damaged, of another directory, too old, or of a future that is lost.
fn decode(bytes: &[u8], control: &Control, recovered: Lsn) -> Option<HashMap<RelId, PageMaps>> {
    if bytes.len() < HEADER {
        return None;
    }
    let mut rest = Cursor(bytes);
    let sum = rest.u32().ok()?;
    if sum != crc32c::crc32c(rest.0) || rest.u32().ok()? != FORMAT {
        return None;
    }
    let (system_id, redo, end) = (rest.u64().ok()?, rest.u64().ok()?, rest.u64().ok()?);
    if system_id != control.system_id || redo < control.redo.0 || end > recovered.0 {
        return None;
    }
    let mut all = HashMap::new();
    while !rest.is_empty() {
        let (rel, words) = (RelId(rest.u32().ok()?), rest.u32().ok()? as usize);
        let bits = rest.bytes(words.checked_mul(8)?).ok()?;
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let visible = bits.chunks_exact(8).map(word).collect();
        let mut room = Vec::new();
        for _ in 0..rest.u32().ok()? {
            let (pages, class) = (rest.u16().ok()?, rest.u8().ok()?);
            room.resize(room.len() + usize::from(pages), class);
        }
        all.insert(rel, PageMaps { visible, room });
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(redo: u64) -> Control {
        let dir = std::env::temp_dir().join(format!("threadgres-maps-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let options = crate::Options { fsync: Some(false), ..crate::Options::from_settings() };
        crate::control::create(&dir, &options).unwrap();
        let control = Control::read(&dir).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        Control { redo: Lsn(redo), system_id: 9, ..control }
    }

    #[test]
    fn what_is_damaged_old_foreign_or_ahead_of_the_log_is_not_read() {
        let maps = |visible: &[u64], room: &[u8]| PageMaps {
            visible: visible.to_vec(),
            room: room.to_vec(),
        };
        let far = [vec![3; 70_000], vec![0, 9]].concat();
        let all = HashMap::from([
            (RelId(7), maps(&[0, 5, 0, 0], &[1, 1, 0, 2, 0])),
            (RelId(8), maps(&[0], &[0, 0])),
            (RelId(9), maps(&[u64::MAX], &far)),
        ]);
        let bytes = encode(all, 9, Lsn(100), Lsn(120));
        let kept = HashMap::from([
            (RelId(7), maps(&[0, 5], &[1, 1, 0, 2])),
            (RelId(9), maps(&[u64::MAX], &far)),
        ]);
        assert_eq!(decode(&bytes, &control(100), Lsn(120)), Some(kept.clone()));
        assert_eq!(decode(&bytes, &control(90), Lsn(121)), Some(kept));
        assert_eq!(decode(&bytes, &control(101), Lsn(120)), None);
        assert_eq!(decode(&bytes, &control(100), Lsn(119)), None);
        let now = control(100);
        let other = Control { system_id: 8, ..now.clone() };
        assert_eq!(decode(&bytes, &other, Lsn(120)), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged, &now, Lsn(120)), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], &now, Lsn(120)), None, "{at} bytes");
        }
    }

    #[test]
    fn pages_behind_the_end_go_with_a_cut() {
        let saved = PageMaps { visible: vec![u64::MAX; 3], room: vec![4; 192] };
        let maps = SavedMaps::with(HashMap::from([(RelId(7), saved)]));
        let page = |block, fork| PageId { rel: RelId(7), fork, block };
        maps.clear(page(65, Fork::Main));
        maps.clear(page(1, Fork::Fsm));
        maps.clear(page(1000, Fork::Main));
        let bits = || maps.all()[&RelId(7)].visible.clone();
        assert_eq!(bits(), [u64::MAX, u64::MAX - 2, u64::MAX]);
        maps.cut(RelId(7), 67);
        assert_eq!(bits(), [u64::MAX, 5]);
        maps.cut(RelId(7), 64);
        assert_eq!((bits(), maps.all()[&RelId(7)].room.len()), (vec![u64::MAX], 64));
        maps.remove(RelId(7));
        assert!(maps.all().is_empty());
    }
}
