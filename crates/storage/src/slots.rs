//! Replication slots as far as the log goes: each holds the log back from a position on, over restarts and crashes.
//!
//! ```text
//! DIR/slots/NAME     CRC-32C of the rest (8 hexadecimal digits), a line feed,
//!                    the position (hexadecimal), a line feed, the state of the layer above
//! ```
//! * A file is replaced as a whole: written aside, synced, renamed, and the folder synced.
//! * `max_slot_wal_keep_size` is stronger than a slot: a checkpoint that takes the log away that a slot needs marks
//!   it as lost. What a slot's owner has learned until then stays true; it can't go on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base::settings::{live_int, setting};
use base::{Error, Lsn, Result, WaitEvent, err};
use sched::Mutex;

/// A slot.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotRecord {
    /// The log is kept from here on.
    pub restart: Lsn,
    /// The state of the layer above.
    pub state: Vec<u8>,
    /// It ends with its session, and is in no file.
    pub temporary: bool,
    /// The log that it needs is gone.
    pub lost: bool,
    /// The process id of the session that uses it; 0: none does.
    pub active: i32,
}

/// All slots of the server.
pub struct Slots {
    dir: PathBuf,
    all: Mutex<BTreeMap<String, SlotRecord>>,
}

impl Slots {
    /// Reads the slots of a directory.
    ///
    /// # Errors
    /// I/O; `XX001` for a file that is damaged.
    pub fn open(dir: &Path) -> Result<Slots> {
        let dir = dir.join("slots");
        let mut all = BTreeMap::new();
        let failed = |e: io::Error| Error::io("read the replication slots", &e);
        match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(failed)?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if name.ends_with(".tmp") {
                        continue;
                    }
                    let bytes = fs::read(entry.path()).map_err(failed)?;
                    let damaged =
                        || err!(DATA_CORRUPTED, "the replication slot \"{name}\" is damaged");
                    all.insert(name.clone(), decode(&bytes).ok_or_else(damaged)?);
                }
            }
        }
        Ok(Slots { dir, all: Mutex::new(WaitEvent::LWLockReplicationSlots, all) })
    }

    /// The least position from which the log is kept.
    pub fn least(&self) -> Option<Lsn> {
        let all = self.all.lock();
        all.values().filter(|slot| !slot.lost).map(|slot| slot.restart).min()
    }

    /// The position from which a checkpoint keeps the log when it ends at `end`: slots that would need more than
    /// `max_slot_wal_keep_size` are lost by that.
    pub(crate) fn keep_from(&self, redo: u64, end: u64, segment: u64) -> u64 {
        let Some(least) = self.least() else { return redo };
        let limit = live_int(setting::MAX_SLOT_WAL_KEEP_SIZE);
        let mut from = least.0.min(redo);
        if limit >= 0 {
            from = from.max(end.saturating_sub((limit as u64) << 20).min(redo));
        }
        let from = from / segment * segment;
        let mut all = self.all.lock();
        let mut lost = Vec::new();
        for (name, slot) in all.iter_mut().filter(|(_, s)| !s.lost && s.restart.0 < from) {
            slot.lost = true;
            lost.push((name.clone(), slot.clone()));
        }
        drop(all);
        for (name, slot) in lost {
            let (high, low) = (slot.restart.0 >> 32, slot.restart.0 & 0xffff_ffff);
            eprintln!(
                "WARNING:  replication slot \"{name}\" is lost: it needs the log from {high:X}/{low:X} on, more \
                 than max_slot_wal_keep_size"
            );
            if let Err(error) = self.write(&name, &slot) {
                eprintln!("WARNING:  could not write replication slot \"{name}\": {error}");
            }
        }
        from
    }

    /// A slot.
    pub fn get(&self, name: &str) -> Option<SlotRecord> {
        self.all.lock().get(name).cloned()
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<(String, SlotRecord)> {
        self.all.lock().iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    /// Makes a slot. `restart` gives the position, with no slot's log going away meanwhile.
    ///
    /// # Errors
    /// `42710` when there is one of that name; I/O.
    pub fn create(
        &self,
        name: &str,
        temporary: bool,
        state: Vec<u8>,
        restart: impl FnOnce() -> Lsn,
    ) -> Result<SlotRecord> {
        let mut all = self.all.lock();
        if all.contains_key(name) {
            return Err(err!(DUPLICATE_OBJECT, "replication slot \"{name}\" already exists"));
        }
        let slot = SlotRecord { restart: restart(), state, temporary, lost: false, active: 0 };
        all.insert(name.to_owned(), slot.clone());
        drop(all);
        if let Err(error) = self.write(name, &slot) {
            self.all.lock().remove(name);
            return Err(error);
        }
        Ok(slot)
    }

    /// Moves a slot on, and makes that durable when `durable`. A slot that is gone meanwhile stays gone.
    ///
    /// # Errors
    /// I/O.
    pub fn advance(&self, name: &str, restart: Lsn, state: Vec<u8>, durable: bool) -> Result<()> {
        let mut all = self.all.lock();
        let Some(slot) = all.get_mut(name) else { return Ok(()) };
        slot.restart = Lsn(slot.restart.0.max(restart.0));
        slot.state = state;
        let slot = slot.clone();
        drop(all);
        if durable { self.write(name, &slot) } else { Ok(()) }
    }

    /// Takes a slot for a session.
    ///
    /// # Errors
    /// `42704`, `55006` while another one has it.
    pub fn acquire(&self, name: &str, pid: i32) -> Result<()> {
        let mut all = self.all.lock();
        let Some(slot) = all.get_mut(name) else {
            return Err(err!(UNDEFINED_OBJECT, "replication slot \"{name}\" does not exist"));
        };
        if slot.active != 0 && slot.active != pid {
            let other = slot.active;
            return Err(err!(
                OBJECT_IN_USE,
                "replication slot \"{name}\" is active for PID {other}"
            ));
        }
        slot.active = pid;
        Ok(())
    }

    /// Gives a slot back.
    pub fn release(&self, name: &str, pid: i32) {
        if let Some(slot) = self.all.lock().get_mut(name)
            && slot.active == pid
            && !slot.temporary
        {
            slot.active = 0;
        }
    }

    /// Gives back what a session that ends has, and drops its temporary slots.
    pub fn end_session(&self, pid: i32) {
        self.all.lock().retain(|_, slot| {
            let own = slot.active == pid;
            if own && !slot.temporary {
                slot.active = 0;
            }
            !(own && slot.temporary)
        });
    }

    /// Drops a slot; false: there is none.
    ///
    /// # Errors
    /// I/O.
    pub fn remove(&self, name: &str) -> Result<bool> {
        let Some(slot) = self.all.lock().remove(name) else { return Ok(false) };
        if !slot.temporary {
            let failed = |e: io::Error| Error::io("remove a replication slot", &e);
            match fs::remove_file(self.dir.join(name)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
                _ => {}
            }
            File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
        }
        Ok(true)
    }

    fn write(&self, name: &str, slot: &SlotRecord) -> Result<()> {
        if slot.temporary {
            return Ok(());
        }
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.dir)?;
            let aside = self.dir.join(format!("{name}.tmp"));
            let mut file = File::create(&aside)?;
            file.write_all(&encode(slot))?;
            file.sync_all()?;
            fs::rename(&aside, self.dir.join(name))?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|e| Error::io("write a replication slot", &e))
    }
}

fn encode(slot: &SlotRecord) -> Vec<u8> {
    let lost = if slot.lost { " lost" } else { "" };
    let mut body = format!("{:x}{lost}\n", slot.restart.0).into_bytes();
    body.extend_from_slice(&slot.state);
    let mut out = format!("{:08x}\n", crc32c::crc32c(&body)).into_bytes();
    out.append(&mut body);
    out
}

fn decode(bytes: &[u8]) -> Option<SlotRecord> {
    let (head, body) = (bytes.get(..9)?, bytes.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(&head[..8]).ok()?, 16).ok()?;
    if head[8] != b'\n' || sum != crc32c::crc32c(body) {
        return None;
    }
    let end = body.iter().position(|b| *b == b'\n')?;
    let line = std::str::from_utf8(&body[..end]).ok()?;
    let (position, lost) = match line.strip_suffix(" lost") {
        Some(position) => (position, true),
        None => (line, false),
    };
    let restart = Lsn(u64::from_str_radix(position, 16).ok()?);
    Some(SlotRecord { restart, state: body[end + 1..].to_vec(), temporary: false, lost, active: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_survives_encoding_and_damage_is_seen() {
        let slot = SlotRecord {
            restart: Lsn(0x1_2345),
            state: b"{\"x\":1}\n".to_vec(),
            temporary: false,
            lost: true,
            active: 0,
        };
        let bytes = encode(&slot);
        assert_eq!(decode(&bytes), Some(slot));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
        }
    }
}
