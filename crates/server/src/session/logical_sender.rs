//! Logical replication's commands on a connection with `replication=database`: `CREATE_REPLICATION_SLOT … LOGICAL`,
//! `DROP_REPLICATION_SLOT`, `START_REPLICATION … LOGICAL`.
//! Source: the manual's section 55.4.
//!
//! ```text
//!   server                                     client
//!   CopyBothResponse ───────────────────────►
//!   w: begin, end, time, piece of the plugin ─►
//!   k: end, time, reply wanted ──────────────►
//!      ◄────────── r: written, flushed, applied, time, reply wanted
//! ```
//! * What the client has flushed moves the slot: the log before it is needed no longer.
//! * A snapshot with `SNAPSHOT 'use'` is that of the session's transaction: it sees exactly the transactions that the
//!   stream leaves out, since both are told apart by the end of the commit record.

use std::time::{Duration, Instant};

use base::{Error, Lsn, Result, WaitEvent, err};
use exec::context::ExecContext;
use exec::logical_stream::{LogicalStream, NewSlot};
use logical::output::Piece;
use types::oids;
use wire::frontend::Frontend;

use super::SessionState;
use super::portal::ResultFormats;
use super::transaction::Block;
use crate::connection::{Fill, Input};
use crate::session::statement_run::Run;

/// The time between two looks at the log when nothing happens.
const PAUSE: Duration = Duration::from_millis(10);
/// The time after which a client is told how far the log has come, if nothing else is sent.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Words, quoted names, strings and signs of a command.
struct Words<'a>(&'a str);

#[derive(Clone, Debug, PartialEq)]
enum Word {
    /// A word, in lower case, or a quoted name.
    Name(String),
    /// A string.
    Text(String),
    /// Anything else.
    Sign(char),
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Word>> {
        let text = self.0.trim_start();
        let Some(first) = text.chars().next() else { return Ok(None) };
        if first == '\'' || first == '"' {
            let mut out = String::new();
            let mut rest = &text[1..];
            loop {
                let Some(end) = rest.find(first) else {
                    return Err(err!(SYNTAX_ERROR, "unterminated quoted string"));
                };
                out.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                match rest.strip_prefix(first) {
                    Some(more) => {
                        out.push(first);
                        rest = more;
                    }
                    None => break,
                }
            }
            self.0 = rest;
            return Ok(Some(if first == '"' { Word::Name(out) } else { Word::Text(out) }));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
        if !plain(first) {
            self.0 = &text[first.len_utf8()..];
            return Ok(Some(Word::Sign(first)));
        }
        let end = text.find(|c| !plain(c)).unwrap_or(text.len());
        self.0 = &text[end..];
        Ok(Some(Word::Name(text[..end].to_ascii_lowercase())))
    }

    fn peek(&mut self) -> Result<Option<Word>> {
        let before = self.0;
        let word = self.next()?;
        self.0 = before;
        Ok(word)
    }

    fn name(&mut self) -> Result<String> {
        match self.next()? {
            Some(Word::Name(name)) => Ok(name),
            _ => Err(err!(SYNTAX_ERROR, "syntax error")),
        }
    }

    /// `( name [value] [, …] )`, if it is there.
    fn options(&mut self) -> Result<Vec<(String, Option<String>)>> {
        let mut out = Vec::new();
        if self.peek()? != Some(Word::Sign('(')) {
            return Ok(out);
        }
        self.next()?;
        loop {
            match self.next()? {
                Some(Word::Sign(')')) => return Ok(out),
                Some(Word::Sign(',')) => {}
                Some(Word::Name(name)) => {
                    let value = match self.peek()? {
                        Some(Word::Text(text) | Word::Name(text)) => {
                            self.next()?;
                            Some(text)
                        }
                        _ => None,
                    };
                    out.push((name, value));
                }
                _ => return Err(err!(SYNTAX_ERROR, "syntax error")),
            }
        }
    }
}

fn position(text: &str) -> Result<Lsn> {
    let part = |hex: &str| u64::from_str_radix(hex, 16).ok();
    let parsed = text.split_once('/').and_then(|(high, low)| Some(part(high)? << 32 | part(low)?));
    parsed.map(Lsn).ok_or_else(|| err!(SYNTAX_ERROR, "invalid WAL location \"{text}\""))
}

impl SessionState {
    /// Runs a command of logical replication; false: it is none.
    pub(super) fn logical_command(&mut self, word: &str, rest: &str) -> Result<bool> {
        let mut words = Words(rest);
        match word {
            "CREATE_REPLICATION_SLOT" => {
                let slot = words.name()?;
                let mut temporary = false;
                let mut next = words.name()?;
                if next == "temporary" {
                    temporary = true;
                    next = words.name()?;
                }
                if next != "logical" {
                    return Ok(false);
                }
                let plugin = words.name()?;
                let mut options = words.options()?;
                while let Some(Word::Name(word)) = words.next()? {
                    match word.as_str() {
                        "use_snapshot" => options.push(("snapshot".into(), Some("use".into()))),
                        "noexport_snapshot" => {
                            options.push(("snapshot".into(), Some("nothing".into())));
                        }
                        _ => {}
                    }
                }
                self.create_logical_slot(&slot, &plugin, temporary, &options)?;
            }
            "DROP_REPLICATION_SLOT" => {
                let slot = words.name()?;
                let slots = self.server.engine.storage.slots();
                slots.acquire(&slot, self.entry.pid)?;
                slots.remove(&slot)?;
                let out = self.out.get_mut();
                wire::response::complete(&mut out.buffer, "DROP_REPLICATION_SLOT");
            }
            "START_REPLICATION" => {
                if words.name()? != "slot" {
                    return Ok(false);
                }
                let slot = words.name()?;
                if words.name()? != "logical" {
                    return Ok(false);
                }
                let from = position(&words.name()?)?;
                let options = words.options()?;
                self.start_logical(&slot, from, &options)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn create_logical_slot(
        &mut self,
        slot: &str,
        plugin: &str,
        temporary: bool,
        options: &[(String, Option<String>)],
    ) -> Result<()> {
        let value = |name: &str| {
            options.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone().unwrap_or_default())
        };
        let snapshot = value("snapshot").unwrap_or_else(|| "export".to_owned());
        let two_phase = options
            .iter()
            .any(|(n, v)| n == "two_phase" && !matches!(v.as_deref(), Some("false" | "off" | "0")));
        let used = snapshot == "use";
        if used && self.transaction.block != Block::Explicit {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "CREATE_REPLICATION_SLOT ... (SNAPSHOT 'use') must be called inside a transaction"
            ));
        }
        if used && self.transaction.has_snapshot {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "CREATE_REPLICATION_SLOT ... (SNAPSHOT 'use') must be called before any query"
            ));
        }
        let server = self.server.clone();
        let wanted = NewSlot {
            name: slot,
            plugin,
            temporary,
            two_phase,
            database: self.database.1,
            limit: self.settings.get().int(base::settings::setting::MAX_REPLICATION_SLOTS),
        };
        self.ensure_transaction();
        if self.transaction.current.as_ref().is_some_and(|tx| tx.top_xid().is_some()) {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "cannot create logical replication slot in transaction that has performed writes"
            ));
        }
        let pid = self.entry.pid;
        let at = wanted.make(&server.engine, || match used {
            true => self.snapshot().map(|snapshot| Lsn(snapshot.csn.0)),
            false => Ok(server.engine.storage.wal.insert_position()),
        })?;
        if temporary {
            server.engine.storage.slots().acquire(slot, pid)?;
        }
        let columns = [
            ("slot_name", oids::TEXT),
            ("consistent_point", oids::TEXT),
            ("snapshot_name", oids::TEXT),
            ("output_plugin", oids::TEXT),
        ];
        let row = vec![Some(slot.to_owned()), Some(at.to_string()), None, Some(plugin.to_owned())];
        self.answer_table(&columns, &[row]);
        wire::response::complete(&mut self.out.get_mut().buffer, "CREATE_REPLICATION_SLOT");
        Ok(())
    }

    /// Calls `f` with what reading the catalog and evaluating expressions needs, in a transaction of its own.
    pub(super) fn in_context<R>(
        &mut self,
        f: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
    ) -> Result<R> {
        let text = "SELECT 1";
        let mut plan = self.plan(text, &[])?;
        let mut run = Run {
            text,
            declared: Some(&[]),
            plan: &mut plan,
            params: Vec::new(),
            formats: &ResultFormats::default(),
            rest: &[],
            describe: false,
            discard: true,
        };
        self.begin_run(&mut run)?;
        let snapshot = self.snapshot()?;
        let out = self.with_context(&run, snapshot, |cx, _| f(cx))?;
        self.commit()?;
        Ok(out)
    }

    fn start_logical(
        &mut self,
        slot: &str,
        from: Lsn,
        options: &[(String, Option<String>)],
    ) -> Result<()> {
        let server = self.server.clone();
        let pid = self.entry.pid;
        server.engine.storage.slots().acquire(slot, pid)?;
        let done = self.send_changes(slot, from, options);
        server.engine.storage.slots().release(slot, pid);
        done?;
        let out = self.out.get_mut();
        wire::copy::done(&mut out.buffer);
        wire::response::complete(&mut out.buffer, "COPY 0");
        wire::response::complete(&mut out.buffer, "START_REPLICATION");
        Ok(())
    }

    fn send_changes(
        &mut self,
        slot: &str,
        from: Lsn,
        options: &[(String, Option<String>)],
    ) -> Result<()> {
        let server = self.server.clone();
        let engine = &server.engine;
        let mut stream = self.in_context(|cx| LogicalStream::open(slot, options, cx))?;
        stream.skip_to(from);
        wire::copy::both_response(&mut self.out.get_mut().buffer);
        self.out.get_mut().send()?;
        let mut format = self.settings.format.clone();
        format.extra_float_digits = format.extra_float_digits.max(1);
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut told, mut told_at) = (stream.position(), Instant::now());
        loop {
            sched::check_interrupts()?;
            let mut reply = false;
            if self.read_answers(&mut stream, &mut reply)? {
                return Ok(());
            }
            let flushed = engine.storage.wal.flushed();
            let mut more = false;
            if stream.position() < flushed {
                more = self.in_context(|cx| stream.next(flushed, cx, &format, &mut pieces))?;
            }
            for piece in pieces.drain(..) {
                let mut body = Vec::with_capacity(piece.data.len() + 25);
                body.push(b'w');
                body.extend(piece.lsn.0.to_be_bytes());
                body.extend(piece.lsn.0.to_be_bytes());
                body.extend(crate::server::now().to_be_bytes());
                body.extend(piece.data);
                let out = self.out.get_mut();
                wire::copy::data(&mut out.buffer, &body);
                out.pace()?;
            }
            if more {
                continue;
            }
            let reached = stream.position();
            let due = reply
                || told_at.elapsed() >= KEEPALIVE
                || reached > told && told_at.elapsed() >= Duration::from_millis(200);
            if due {
                (told, told_at) = (reached, Instant::now());
                let mut body = vec![b'k'];
                body.extend(reached.0.to_be_bytes());
                body.extend(crate::server::now().to_be_bytes());
                body.push(0);
                wire::copy::data(&mut self.out.get_mut().buffer, &body);
            }
            self.out.get_mut().send()?;
            if engine.storage.wal.flushed() <= reached {
                sched::park(WaitEvent::ClientClientRead, Some(Instant::now() + PAUSE));
            }
        }
    }

    /// Reads what the client says; true: it ends the stream. `reply`: it wants to hear how far the log has come.
    fn read_answers(&mut self, stream: &mut LogicalStream, reply: &mut bool) -> Result<bool> {
        let server = self.server.clone();
        let engine = &server.engine;
        let socket = self.socket.clone();
        let input = self.copy_input.get_or_insert_with(|| Input::with(&[]));
        loop {
            while let Some(frame) = wire::next_frame(input.bytes())? {
                let size = frame.size();
                match wire::frontend::decode(frame)? {
                    Frontend::CopyData(bytes) => match bytes.split_first() {
                        Some((b'r', rest)) if rest.len() >= 33 => {
                            let number = |at: usize| {
                                let mut bytes = [0; 8];
                                bytes.copy_from_slice(&rest[at..at + 8]);
                                u64::from_be_bytes(bytes)
                            };
                            let flushed = Lsn(number(8));
                            *reply |= rest[32] != 0;
                            if flushed.0 > 0 {
                                let durable = flushed > stream.confirmed();
                                stream.confirm(flushed, durable, engine)?;
                            }
                        }
                        _ => {}
                    },
                    Frontend::CopyDone => {
                        input.consume(size);
                        return Ok(true);
                    }
                    Frontend::CopyFail(_) => {
                        input.consume(size);
                        return Err(err!(QUERY_CANCELED, "the stream was ended by the client"));
                    }
                    Frontend::Flush | Frontend::Sync => {}
                    Frontend::Terminate => {
                        return Err(err!(
                            CONNECTION_FAILURE,
                            "the client has ended the connection"
                        )
                        .fatal());
                    }
                    _ => return Err(Error::internal("unexpected message in a stream").fatal()),
                }
                input.consume(size);
            }
            match input.fill(&socket)? {
                Fill::End => {
                    return Err(
                        err!(CONNECTION_FAILURE, "unexpected EOF on standby connection").fatal()
                    );
                }
                Fill::Empty => return Ok(false),
                Fill::More | Fill::Drained => {}
            }
        }
    }
}
