//! Physical replication: the log's bytes as they are, and the slots that keep them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::setting;
use base::{Lsn, Result, err};
use logical::slot::PHYSICAL;
use storage::{History, Storage};
use types::oids;

use super::SessionState;
use super::stream::{Piece, Source, Status};
use crate::senders::{Sender, Senders};
use crate::standby::Note;

/// Bytes of the log in one message.
const PIECE_BYTES: usize = 128 << 10;
/// The bytes of the log from a position on.
struct Bytes {
    storage: Arc<Storage>,
    slot: Option<String>,
    at: Lsn,
    /// The timeline that the client asked for.
    timeline: u32,
    /// The client is a standby, which is told of checkpoints and ended transactions: what it was told last, and when.
    standby: bool,
    told: Option<(Note, Instant)>,
}

/// Between two notes to a standby.
const NOTED_AGAIN: Duration = Duration::from_secs(1);

impl Source for Bytes {
    fn next(&mut self, _session: &mut SessionState) -> Result<Option<Piece>> {
        let mut bytes = vec![0; PIECE_BYTES];
        let count = self.storage.read_log(self.at, &mut bytes)?;
        // After the read: the new timeline is known before anything of it is logged. The client has to take its history
        // over before it goes on.
        let now = self.storage.timeline();
        if now != self.timeline {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the log goes on in timeline {now}"
            )
            .fatal());
        }
        if count == 0 {
            return Ok(None);
        }
        bytes.truncate(count);
        let start = self.at;
        self.at = Lsn(start.0 + count as u64);
        let log_end = self.storage.wal.flushed();
        Ok(Some(Piece { start, end: self.at, log_end, bytes }))
    }

    fn position(&self) -> Lsn {
        self.at
    }

    fn note(&mut self, session: &SessionState) -> Result<Option<Vec<u8>>> {
        let due = self.told.is_none_or(|(_, at)| at.elapsed() >= NOTED_AGAIN);
        if !self.standby || !due {
            return Ok(None);
        }
        let oldest = session.server.engine.txn.ended_below();
        // After that: whatever had ended has its record before this.
        let at = match session.server.standby.follows() {
            true => session.server.standby.applied(),
            false => self.storage.wal.insert_position(),
        };
        if self.told.is_none() {
            // A standby lets nobody in before it has the log up to there.
            self.storage.wal.flush(at)?;
        }
        let note = Note { redo: self.storage.redo_position(), oldest, at };
        let known = self.told.map(|told| told.0);
        self.told = Some((note, Instant::now()));
        let same = |known: Note| (known.redo, known.oldest) == (note.redo, note.oldest);
        Ok(Some(note.encode()).filter(|_| !known.is_some_and(same)))
    }

    fn confirmed(&mut self, status: &Status, _session: &SessionState) -> Result<()> {
        let Some(slot) = &self.slot else { return Ok(()) };
        let slots = self.storage.slots();
        let moved = |known: storage::SlotRecord| known.restart < status.flushed;
        if status.flushed > Lsn::ZERO && slots.get(slot).is_some_and(moved) {
            // After a crash an older position keeps a little more of the log.
            slots.advance(slot, status.flushed, PHYSICAL.to_vec(), false)?;
        }
        Ok(())
    }

    fn tags(&self) -> &'static [&'static str] {
        &["START_STREAMING"]
    }
}

/// `42601`.
fn syntax(near: &str) -> base::Error {
    err!(SYNTAX_ERROR, "syntax error at or near \"{near}\"")
}

/// `X/X`.
fn position_of(word: &str) -> Result<Lsn> {
    let parsed = word.split_once('/').and_then(|(high, low)| {
        let part = |text| u64::from(u32::from_str_radix(text, 16).unwrap_or(u32::MAX));
        (!high.is_empty() && !low.is_empty()).then(|| part(high) << 32 | part(low))
    });
    parsed.map(Lsn).ok_or_else(|| syntax(word))
}

/// A slot's name as a command has it: an identifier, in quotes or not.
fn slot_name(word: &str) -> Result<String> {
    let name = word.trim_matches('"').to_owned();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() {
        base::bail!(INVALID_NAME, "replication slot name \"{name}\" is too short");
    }
    if name.len() > 63 {
        base::bail!(NAME_TOO_LONG, "replication slot name \"{name}\" is too long");
    }
    if !name.chars().all(fits) {
        let hint = "Replication slot names may only contain lower case letters, numbers, and the underscore character.";
        let text = format!("replication slot name \"{name}\" contains invalid character");
        return Err(err!(INVALID_NAME, "{text}").hint(hint));
    }
    Ok(name)
}

fn missing(name: &str) -> base::Error {
    err!(UNDEFINED_OBJECT, "replication slot \"{name}\" does not exist")
}

impl SessionState {
    /// `START_REPLICATION [SLOT name] [PHYSICAL] position [TIMELINE n]`; None: it asks for a change stream.
    pub(super) fn start_physical(&mut self, text: &str, rest: &[u8]) -> Result<Option<()>> {
        let mut words = text.split_whitespace().peekable();
        let is = |word: Option<&&str>, wanted: &str| {
            word.is_some_and(|word| word.eq_ignore_ascii_case(wanted))
        };
        let mut slot = None;
        if is(words.peek(), "SLOT") {
            words.next();
            slot = Some(slot_name(words.next().ok_or_else(|| syntax("SLOT"))?)?);
        }
        if is(words.peek(), "LOGICAL") {
            return Ok(None);
        }
        if is(words.peek(), "PHYSICAL") {
            words.next();
        }
        let at = position_of(words.next().ok_or_else(|| syntax(text))?)?;
        // Before the history is looked at: one that changes meanwhile ends the stream.
        let timeline = self.server.engine.storage.timeline();
        if is(words.peek(), "TIMELINE") {
            words.next();
            let asked = words.next().ok_or_else(|| syntax("TIMELINE"))?;
            self.check_timeline(asked, at)?;
        }
        let standby = is(words.peek(), "STANDBY");
        if standby {
            words.next();
        }
        if let Some(word) = words.next() {
            return Err(syntax(word));
        }
        let storage = self.server.engine.storage.clone();
        let flushed = storage.wal.flushed();
        if at > flushed {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "requested starting point {at} is ahead of the WAL flush position of this server {flushed}"
            ));
        }
        if let Some(name) = &slot {
            let known = storage.slots().get(name).ok_or_else(|| missing(name))?;
            if known.state != PHYSICAL {
                base::bail!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "cannot use a logical replication slot for physical replication"
                );
            }
            if known.lost {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "cannot read from replication slot \"{name}\""
                )
                .detail(
                    "This slot has been invalidated because it exceeded the maximum reserved size.",
                ));
            }
        }
        // Said before the stream begins, in place of at its first bytes.
        storage.read_log(at, &mut [0; 1])?;
        let application = self.settings.show("application_name")?;
        let sender = Sender { application, state: "catchup", sent: at, ..Sender::default() };
        let pid = self.entry.pid;
        if let Some(name) = &slot {
            storage.slots().acquire(name, pid)?;
        }
        let registered = Senders::register(&self.server, pid, sender);
        let (told, slot_name) = (None, slot.clone());
        let storage_of = storage.clone();
        let mut source =
            Bytes { storage: storage_of, slot: slot_name, at, timeline, standby, told };
        let streamed = self.stream(rest, &registered, &mut source);
        self.owner.hold_from(base::Csn(0));
        if let Some(name) = &slot {
            storage.slots().release(name, pid);
        }
        streamed.map(Some)
    }

    /// Whether the timeline is the one that the log is on. (A standby takes our history over before it asks.)
    fn check_timeline(&self, word: &str, at: Lsn) -> Result<()> {
        let timeline: u32 = word.parse().map_err(|_| syntax(word))?;
        let history = History::read(self.server.engine.storage.dir())?;
        if timeline == history.current() {
            return Ok(());
        }
        let error = err!(
            INVALID_PARAMETER_VALUE,
            "requested starting point {at} on timeline {timeline} is not in this server's history"
        );
        Err(match history.end_of(timeline) {
            Some(end) => error
                .detail(format!("This server's history forked from timeline {timeline} at {end}.")),
            None => error,
        })
    }

    /// `TIMELINE_HISTORY n`.
    pub(super) fn timeline_history(&mut self, text: &str) -> Result<()> {
        let history = History::read(self.server.engine.storage.dir())?;
        let wanted: u32 = text.trim().parse().map_err(|_| syntax(text))?;
        if wanted != history.current() || wanted == 1 {
            return Err(err!(
                UNDEFINED_FILE,
                "could not open file \"pg_wal/{wanted:08X}.history\": No such file or directory"
            ));
        }
        let row = vec![Some(format!("{wanted:08X}.history")), Some(history.text())];
        self.answer_table(&[("filename", oids::TEXT), ("content", oids::TEXT)], &[row]);
        self.complete_command("TIMELINE_HISTORY");
        Ok(())
    }

    /// `CREATE_REPLICATION_SLOT name [TEMPORARY] PHYSICAL …`; None: it asks for a change stream's.
    pub(super) fn create_physical_slot(&mut self, text: &str) -> Result<Option<()>> {
        let text = text.replace(['(', ')', ','], " ");
        let mut words = text.split_whitespace();
        let name = slot_name(words.next().ok_or_else(|| syntax("CREATE_REPLICATION_SLOT"))?)?;
        let (mut temporary, mut reserve, mut physical) = (false, false, false);
        for word in words {
            match word.to_ascii_uppercase().as_str() {
                "TEMPORARY" => temporary = true,
                "PHYSICAL" => physical = true,
                "RESERVE_WAL" => reserve = true,
                "TRUE" | "ON" | "1" if reserve => {}
                "FALSE" | "OFF" | "0" if reserve => reserve = false,
                "LOGICAL" => return Ok(None),
                _ => return Err(syntax(word)),
            }
        }
        if !physical {
            return Err(syntax(&text));
        }
        self.make_physical_slot(&name, temporary)?;
        let columns = [
            ("slot_name", oids::TEXT),
            ("consistent_point", oids::TEXT),
            ("snapshot_name", oids::TEXT),
            ("output_plugin", oids::TEXT),
        ];
        let row = vec![Some(name), Some("0/0".to_owned()), None, None];
        self.answer_table(&columns, &[row]);
        self.complete_command("CREATE_REPLICATION_SLOT");
        Ok(Some(()))
    }

    /// Makes a slot that keeps the log from the last checkpoint on.
    fn make_physical_slot(&mut self, name: &str, temporary: bool) -> Result<Lsn> {
        let storage = self.server.engine.storage.clone();
        let most = self.settings.get().int(setting::MAX_REPLICATION_SLOTS) as usize;
        if storage.slots().all().len() >= most {
            return Err(err!(CONFIGURATION_LIMIT_EXCEEDED, "all replication slots are in use")
                .hint("Free one or increase max_replication_slots."));
        }
        let position = || storage.redo_position();
        let slot = storage.slots().create(name, temporary, PHYSICAL.to_vec(), position)?;
        if temporary {
            storage.slots().acquire(name, self.entry.pid)?;
        }
        Ok(slot.restart)
    }

    /// `DROP_REPLICATION_SLOT name [WAIT]`.
    pub(super) fn drop_slot(&mut self, text: &str) -> Result<()> {
        let mut words = text.split_whitespace();
        let name = slot_name(words.next().ok_or_else(|| syntax("DROP_REPLICATION_SLOT"))?)?;
        let slots = self.server.engine.storage.slots();
        slots.acquire(&name, self.entry.pid)?;
        slots.remove(&name)?;
        self.complete_command("DROP_REPLICATION_SLOT");
        Ok(())
    }

    /// `READ_REPLICATION_SLOT name`.
    pub(super) fn read_slot(&mut self, text: &str) -> Result<()> {
        let name = slot_name(text.trim())?;
        let slot = self.server.engine.storage.slots().get(&name);
        if slot.as_ref().is_some_and(|slot| slot.state != PHYSICAL) {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot use READ_REPLICATION_SLOT with a logical replication slot"
            );
        }
        let row = match slot {
            Some(slot) => vec![
                Some("physical".to_owned()),
                Some(slot.restart.to_string()),
                Some(self.server.engine.storage.timeline().to_string()),
            ],
            None => vec![None, None, None],
        };
        let columns =
            [("slot_type", oids::TEXT), ("restart_lsn", oids::TEXT), ("restart_tli", oids::INT8)];
        self.answer_table(&columns, &[row]);
        self.complete_command("READ_REPLICATION_SLOT");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_names_are_read() {
        assert_eq!(position_of("1/2C").unwrap(), Lsn(0x1_0000_002C));
        assert!(position_of("12").is_err());
        assert_eq!(slot_name("\"pg_basebackup_12\"").unwrap(), "pg_basebackup_12");
        assert!(slot_name("Big").is_err() && slot_name("").is_err());
    }
}
