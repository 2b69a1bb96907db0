//! The receiver: takes the primary's log in, makes it durable, and says how far it is.
//!
//! A connection that fails is made again after a while. What the primary can't give any more, or another history than
//! ours, is said each time; the standby goes on serving what it has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::settings::setting;
use base::{Lsn, Result, WaitEvent, err};
use logical::conninfo::Conninfo;
use sql::secrets::in_message;
use storage::{History, LogReceiver};

use super::archive::Fetched;
use super::{Arrival, Note, Receiving, archive, said};
use crate::log;
use crate::server::{self, Server};
use ext_postgres::client::Client;

/// Between two tries to connect.
const RETRY: Duration = Duration::from_secs(2);
/// For how long a message is waited for before the settings are looked at.
const PATIENCE: Duration = Duration::from_millis(200);
/// Arrivals that are remembered.
const ARRIVALS: usize = 4096;

/// The thread's life.
pub fn work(server: &Arc<Server>) {
    let mut last = String::new();
    let mut receiver = server.engine.storage.receiver();
    server.standby.join();
    while server.standby.follows() && !server.stopping() {
        if server.standby.is_promoted() {
            server.standby.receiver_ended.store(true, Ordering::Release);
            server.standby.wake();
            return;
        }
        let result = stream(server, &mut receiver);
        *server.standby.primary.lock() = None;
        *server.standby.receiving.lock() = Receiving::default();
        if sched::check_interrupts().is_err() {
            return;
        }
        if let Err(error) = result {
            if error.code() == base::sqlstate::ADMIN_SHUTDOWN && server.stopping() {
                return;
            }
            let error = match archive::may_help(&error) {
                true => match archive::fetch(server, &mut receiver) {
                    // The primary may have the rest.
                    Ok(Fetched::Some) => continue,
                    Ok(fetched) => archive::advised(error, fetched),
                    Err(error) => error,
                },
                false => error,
            };
            if error.code() == base::sqlstate::DATA_CORRUPTED {
                // Nothing is gone on with that was not understood.
                receiver = server.engine.storage.receiver();
            }
            let text = said(&error);
            if text != last {
                log::info(format_args!("the log of the primary is not received: {text}"));
                last = text;
            }
        } else {
            last.clear();
        }
        if server.standby.is_promoted() {
            continue;
        }
        sched::park(WaitEvent::ActivityThreadMain, Some(Instant::now() + RETRY));
        if sched::check_interrupts().is_err() {
            return;
        }
    }
}

/// The numbers of an answer of IDENTIFY_SYSTEM.
pub(super) fn identify(client: &mut Client) -> Result<(u64, u32)> {
    let rows = client.query("IDENTIFY_SYSTEM")?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at).cloned().flatten());
    let id = cell(0).and_then(|text| text.parse().ok());
    let timeline = cell(1).and_then(|text| text.parse().ok());
    id.zip(timeline).ok_or_else(|| err!(PROTOCOL_VIOLATION, "invalid response from primary server"))
}

/// Sees to it that the primary's history is ours up to where our log ends, and takes it over.
fn agree(server: &Server, client: &mut Client, at: Lsn) -> Result<u32> {
    let storage = &server.engine.storage;
    let (id, theirs) = identify(client)?;
    if id != storage.system_id() {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "database system identifier differs between the primary and standby"
        )
        .detail(format!(
            "The primary's identifier is {id}, the standby's identifier is {}.",
            storage.system_id()
        )));
    }
    let own = History::read(storage.dir())?;
    let current = own.current();
    if theirs < current {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "highest timeline {theirs} of the primary is behind recovery timeline {current}"
        ));
    }
    if theirs == current {
        return Ok(current);
    }
    let rows = client.query(&format!("TIMELINE_HISTORY {theirs}"))?;
    let text = rows.first().and_then(|row| row.get(1).cloned().flatten()).unwrap_or_default();
    let history = History::parse(&text)?;
    check(&own, &history, at)?;
    history.write(storage.dir())?;
    storage.set_timeline(history.current());
    log::info(format_args!("following timeline {theirs} of the primary"));
    Ok(theirs)
}

/// `55000` when a log of `own` history that ends at `at` is not the beginning of the other's.
fn check(own: &History, other: &History, at: Lsn) -> Result<()> {
    let current = own.current();
    let end = other.end_of(current).filter(|end| *end >= at);
    if end.is_some() && other.0.starts_with(&own.0) {
        return Ok(());
    }
    let fork = other.end_of(current).unwrap_or(Lsn::ZERO);
    Err(err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the primary's history does not contain this directory's log up to {at} on timeline {current}"
    )
    .detail(format!("The primary's history forked from timeline {current} at {fork}."))
    .hint("What was written here after that is in no other server. To give it up: threadgres rewind -D DIR --from URL"))
}

/// A connection, from its beginning to its end.
fn stream(server: &Arc<Server>, receiver: &mut LogReceiver) -> Result<()> {
    let (values, _) = server.values();
    let text = values.settings.str(setting::PRIMARY_CONNINFO).to_owned();
    if text.is_empty() {
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "primary_conninfo is not set"));
    }
    let info = Conninfo::parse(&text)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}"))?;
    let mut client = Client::connect_physical(&info, "walreceiver")?;
    let storage = &server.engine.storage;
    let before = storage.timeline();
    let timeline = agree(server, &mut client, storage.wal.flushed())?;
    // Another timeline may have begun before the end of the record of which a part is here.
    if timeline != before || !receiver.is_across() {
        *receiver = storage.receiver();
    }
    let at = receiver.position();
    let slot = values.settings.str(setting::PRIMARY_SLOT_NAME).to_owned();
    let with_slot = match slot.as_str() {
        "" => String::new(),
        slot => format!("SLOT \"{slot}\" "),
    };
    client.start_stream(&format!(
        "START_REPLICATION {with_slot}PHYSICAL {at} TIMELINE {timeline} STANDBY"
    ))?;
    log::info(format_args!("started streaming WAL from primary at {at} on timeline {timeline}"));
    *server.standby.receiving.lock() = Receiving {
        pid: sched::current().pid(),
        began: at,
        written: at,
        slot,
        host: info.get("host").unwrap_or("localhost").to_owned(),
        port: info.port().unwrap_or(5432),
        conninfo: in_message(&text).into_owned(),
        ..Receiving::default()
    };
    *server.standby.primary.lock() = Some(client.writer()?);
    let mut heard = Instant::now();
    let mut told = Instant::now();
    loop {
        if server.standby.is_promoted() {
            receiver.flush();
            return Ok(());
        }
        let Some(message) = client.poll(PATIENCE)? else {
            let (values, _) = server.values();
            if values.settings.str(setting::PRIMARY_CONNINFO) != text {
                return Ok(());
            }
            let patience = values.settings.int(setting::WAL_RECEIVER_TIMEOUT).max(0) as u64;
            if patience > 0 && heard.elapsed() > Duration::from_millis(patience) {
                return Err(err!(CONNECTION_FAILURE, "terminating walreceiver due to timeout"));
            }
            let every = values.settings.int(setting::WAL_RECEIVER_STATUS_INTERVAL).max(0) as u64;
            if every > 0 && told.elapsed() >= Duration::from_secs(every.min(10)) {
                told = Instant::now();
                send_status(server)?;
            }
            continue;
        };
        heard = Instant::now();
        let mut answer = take(server, receiver, message)?;
        while let Some(message) = client.buffered() {
            answer |= take(server, receiver, message)?;
        }
        let before = storage.wal.flushed();
        let flushed = receiver.flush();
        if flushed > before || answer {
            told = Instant::now();
            send_status(server)?;
        }
    }
}

/// Takes a message; whether it asks for an answer.
fn take(server: &Server, receiver: &mut LogReceiver, message: (u8, Vec<u8>)) -> Result<bool> {
    let (tag, body) = message;
    let cut = || err!(PROTOCOL_VIOLATION, "a message of the replication stream is cut short");
    let number = |at: usize| -> Result<u64> {
        let bytes = body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_be_bytes).ok_or_else(cut)
    };
    match (tag, body.first()) {
        (b'd', Some(b'w')) => {
            let (start, end, sent) = (number(1)?, number(9)?, number(17)? as i64);
            let bytes = body.get(25..).ok_or_else(cut)?;
            receiver.write(Lsn(start), bytes)?;
            let arrival = Arrival { end: receiver.position(), sent, received: Instant::now() };
            let mut arrivals = server.standby.arrivals.lock();
            if arrivals.len() >= ARRIVALS {
                // The newest stands for those that are not kept.
                arrivals.pop_back();
            }
            arrivals.push_back(arrival);
            drop(arrivals);
            note(server, Lsn(end), sent, Some(receiver.position()));
            Ok(false)
        }
        (b'd', Some(b'k')) => {
            let (end, sent) = (number(1)?, number(9)? as i64);
            note(server, Lsn(end), sent, None);
            Ok(body.get(17).is_some_and(|reply| *reply != 0))
        }
        (b'd', Some(b'p')) => {
            let note = Note::decode(&body).ok_or_else(cut)?;
            server.standby.notes.lock().push_back(note);
            server.standby.wake();
            Ok(false)
        }
        (b'E', _) => Err(ext_postgres::client::error_of(&body)),
        (b'c' | b'C' | b'Z', _) => {
            Err(err!(CONNECTION_FAILURE, "replication terminated by primary server"))
        }
        _ => Ok(false),
    }
}

fn note(server: &Server, end: Lsn, sent: i64, written: Option<Lsn>) {
    let now = server::now();
    server.standby.heard.fetch_max(end.0, Ordering::AcqRel);
    let mut receiving = server.standby.receiving.lock();
    (receiving.end, receiving.end_time) = (end, sent);
    (receiving.sent, receiving.received) = (sent, now);
    if let Some(written) = written {
        receiving.written = written;
    }
}

/// Says how far the log is here, and which snapshots are in use if that is wanted.
///
/// # Errors
/// `08006`.
pub(crate) fn send_status(server: &Server) -> Result<()> {
    let mut primary = server.standby.primary.lock();
    let Some(writer) = primary.as_mut() else { return Ok(()) };
    let flushed = server.engine.storage.wal.flushed();
    let mut body = vec![b'r'];
    let written = server.standby.receiving.lock().written.max(flushed);
    for number in [written.0, flushed.0, server.standby.applied().0] {
        body.extend(number.to_be_bytes());
    }
    body.extend(server::now().to_be_bytes());
    body.push(0);
    let feedback = {
        let (values, _) = server.values();
        values.settings.bool(setting::HOT_STANDBY_FEEDBACK)
    };
    let oldest = if feedback { server.engine.txn.horizon_now().0 } else { 0 };
    let mut held = vec![b'H'];
    held.extend(oldest.to_be_bytes());
    let sent = writer.send_copy(&body).and_then(|()| writer.send_copy(&held));
    if sent.is_err() {
        *primary = None;
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_history_is_refused_and_a_longer_one_is_not() {
        let first = History::default();
        let second = History::parse("1\t0/3000\tpromoted\n").unwrap();
        assert!(check(&first, &second, Lsn(0x3000)).is_ok());
        let error = check(&first, &second, Lsn(0x3008)).unwrap_err();
        assert!(error.fields().detail.as_deref().unwrap_or("").contains("forked"), "{error}");
        let other = History::parse("1\t0/2000\tpromoted\n2\t0/4000\tagain\n").unwrap();
        assert!(check(&second, &other, Lsn(0x3000)).is_err());
    }
}
