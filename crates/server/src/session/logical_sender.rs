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
//! * A snapshot with `SNAPSHOT 'use'` is that of the session's transaction, one with `'export'` that of a transaction that
//!   lasts until the next command, for others to take over (`SET TRANSACTION SNAPSHOT`): it sees exactly the transactions that the
//!   stream leaves out, since both are told apart by the end of the commit record.

use std::collections::VecDeque;

use base::{Lsn, Result, err};
use exec::context::ExecContext;
use exec::logical_stream::{LogicalStream, NewSlot};
use types::{FormatContext, oids};

use super::SessionState;
use super::portal::ResultFormats;
use super::stream::{Piece, Source, Status};
use super::transaction::Block;
use crate::senders::{Sender, Senders};
use crate::session::statement_run::Run;

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
    /// Runs a command of logical replication; false: it is none. `bytes`: what came behind its message.
    pub(super) fn logical_command(&mut self, word: &str, rest: &str, bytes: &[u8]) -> Result<bool> {
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
                self.start_logical(&slot, from, &options, bytes)?;
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
        let (used, exported) = (snapshot == "use", snapshot == "export");
        if exported && self.transaction.block != Block::None {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "CREATE_REPLICATION_SLOT ... (SNAPSHOT 'export') must not be called inside a transaction"
            ));
        }
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
        let settings = self.settings.get();
        let libraries = settings.str(base::settings::setting::OUTPUT_PLUGIN_LIBRARIES).to_owned();
        let wanted = NewSlot {
            name: slot,
            plugin,
            temporary,
            two_phase,
            database: self.database.1,
            limit: settings.int(base::settings::setting::MAX_REPLICATION_SLOTS),
            libraries: &libraries,
        };
        self.ensure_transaction();
        if self.transaction.current.as_ref().is_some_and(|tx| tx.top_xid().is_some()) {
            return Err(err!(
                ACTIVE_SQL_TRANSACTION,
                "cannot create logical replication slot in transaction that has performed writes"
            ));
        }
        if let Some(tx) = self.transaction.current.as_ref().filter(|_| exported) {
            // One snapshot, the slot's and that which is exported.
            tx.set_modes(txn::Isolation::RepeatableRead, true);
        }
        let pid = self.entry.pid;
        let at = wanted.make(&server.engine, || match used || exported {
            true => self.snapshot().map(|snapshot| Lsn(snapshot.csn.0)),
            false => Ok(server.engine.storage.wal.insert_position()),
        })?;
        let name = match &self.transaction.current {
            Some(tx) if exported => {
                Some(server.exports.export(tx, self.database.1, self.entry.pid)?)
            }
            _ => None,
        };
        self.exports_slot = name.is_some();
        if temporary {
            server.engine.storage.slots().acquire(slot, pid)?;
        }
        let columns = [
            ("slot_name", oids::TEXT),
            ("consistent_point", oids::TEXT),
            ("snapshot_name", oids::TEXT),
            ("output_plugin", oids::TEXT),
        ];
        let row = vec![Some(slot.to_owned()), Some(at.to_string()), name, Some(plugin.to_owned())];
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
        rest: &[u8],
    ) -> Result<()> {
        let slots = self.server.engine.storage.clone();
        let pid = self.entry.pid;
        slots.slots().acquire(slot, pid)?;
        let done = self.send_changes(slot, from, options, rest);
        slots.slots().release(slot, pid);
        done
    }

    fn send_changes(
        &mut self,
        slot: &str,
        from: Lsn,
        options: &[(String, Option<String>)],
        rest: &[u8],
    ) -> Result<()> {
        let mut stream = self.in_context(|cx| LogicalStream::open(slot, options, cx))?;
        stream.skip_to(from);
        let mut format = self.settings.format.clone();
        format.extra_float_digits = format.extra_float_digits.max(1);
        let mut source = Changes { stream, format, pieces: VecDeque::new() };
        let application = self.settings.show("application_name")?;
        let sent = source.position();
        let sender = Sender { application, state: "catchup", sent, ..Sender::default() };
        let registered = Senders::register(&self.server, self.entry.pid, sender);
        self.stream(rest, &registered, &mut source)
    }
}

/// A slot's changes.
struct Changes {
    stream: LogicalStream,
    format: FormatContext,
    /// Printed and not yet sent.
    pieces: VecDeque<logical::output::Piece>,
}

impl Source for Changes {
    fn next(&mut self, session: &mut SessionState) -> Result<Option<Piece>> {
        let flushed = session.server.engine.storage.wal.flushed();
        if self.pieces.is_empty() && self.stream.position() < flushed {
            let mut printed = Vec::new();
            let (stream, format) = (&mut self.stream, &self.format);
            session.in_context(|cx| stream.next(flushed, cx, format, &mut printed))?;
            self.pieces.extend(printed);
        }
        Ok(self.pieces.pop_front().map(|piece| Piece {
            start: piece.lsn,
            end: piece.lsn,
            log_end: piece.lsn,
            bytes: piece.data,
        }))
    }

    fn position(&self) -> Lsn {
        self.stream.position()
    }

    fn confirmed(&mut self, status: &Status, session: &SessionState) -> Result<()> {
        if status.flushed == Lsn::ZERO {
            return Ok(());
        }
        let durable = status.flushed > self.stream.confirmed();
        self.stream.confirm(status.flushed, durable, &session.server.engine)
    }

    fn tags(&self) -> &'static [&'static str] {
        &["COPY 0", "START_REPLICATION"]
    }
}
