//! The messages of `pgoutput`: the logical streaming replication protocol.
//! Source: the manual's sections 55.5 and 55.9.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Lsn, Oid, Result};
use types::{Datum, FormatContext};

use super::Piece;
use crate::decode::{Change, Committed, Finished};
use crate::record::{Message, OldRow, Operation};

/// A table under the name and with the columns that subscribers get.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Oid.
    pub oid: u32,
    /// Schema's name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// As in `pg_class.relreplident`.
    pub identity: char,
    /// The columns.
    pub columns: Vec<RelationColumn>,
}

/// A column of a [`Relation`].
#[derive(Clone, Debug, PartialEq)]
pub struct RelationColumn {
    /// Name.
    pub name: String,
    /// Type's oid.
    pub ty: u32,
    /// Length or precision; -1: none.
    pub typmod: i32,
    /// It identifies rows.
    pub key: bool,
    /// Schema and name of a type that users made.
    pub named: Option<(String, String)>,
}

/// A change of a row as it is sent; values in the order of the relation's columns.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The table.
    pub relation: Arc<Relation>,
    /// The kind of change.
    pub operation: Operation,
    /// The row before.
    pub old: OldRow<Vec<Datum>>,
    /// The row afterwards.
    pub new: Option<Vec<Datum>>,
}

/// The publications of a stream.
pub trait Publisher {
    /// The change as it is sent, if it is.
    ///
    /// # Errors
    /// Those of row filters.
    fn row(&mut self, change: &Change) -> Result<Option<Outgoing>>;

    /// The tables of TRUNCATE that are sent.
    ///
    /// # Errors
    /// Those of the catalog.
    fn truncated(&mut self, change: &Change) -> Result<Vec<Arc<Relation>>>;
}

/// A stream's state.
pub struct PgOutput {
    /// Values in their binary form, where there is one.
    pub binary: bool,
    /// Messages of `pg_logical_emit_message` are sent.
    pub messages: bool,
    /// The subscriber applies parts beside each other, and wants to know more of those that come to nothing.
    pub parallel: bool,
    /// Relations that the subscriber knows.
    sent: HashMap<u32, Arc<Relation>>,
    /// Transactions that have begun to be sent, with the relations that were told of within.
    streams: HashMap<u64, HashMap<u32, Arc<Relation>>>,
    /// The one of which a part is being sent.
    streamed: Option<u64>,
}

/// Positions, times, id and name, as the messages of two-phase commit end.
fn ending(out: &mut Vec<u8>, positions: &[u64], times: &[i64], (xid, gid): (u64, &str)) {
    out.extend(positions.iter().flat_map(|at| at.to_be_bytes()));
    out.extend(times.iter().flat_map(|at| at.to_be_bytes()));
    out.extend((xid as u32).to_be_bytes());
    text(out, gid);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.push(0);
}

impl PgOutput {
    /// A new stream.
    pub fn new(binary: bool, messages: bool) -> PgOutput {
        let (sent, streams) = (HashMap::new(), HashMap::new());
        PgOutput { binary, messages, parallel: false, sent, streams, streamed: None }
    }

    /// Adds the messages of a transaction; one that sends nothing has none. One with a name is prepared, and comes so.
    ///
    /// # Errors
    /// Those of row filters and of values that can't be printed.
    pub fn transaction(
        &mut self,
        t: &Committed,
        publisher: &mut dyn Publisher,
        cx: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        if self.streams.contains_key(&t.xid) {
            return self.end_stream(t, publisher, cx, out);
        }
        let (start, xid) = (out.len(), t.xid);
        let begin = match t.gid.as_str() {
            "" => {
                let mut begin = vec![b'B'];
                begin.extend(t.commit.0.to_be_bytes());
                begin.extend(t.info.time.to_be_bytes());
                begin.extend((xid as u32).to_be_bytes());
                begin
            }
            gid => {
                let mut begin = vec![b'b'];
                ending(&mut begin, &[t.commit.0, t.end.0], &[t.info.time], (xid, gid));
                begin
            }
        };
        out.push(Piece { lsn: t.begin, xid, data: begin });
        if !t.info.origin.is_empty() {
            let mut origin = vec![b'O'];
            origin.extend(t.info.origin_lsn.to_be_bytes());
            text(&mut origin, &t.info.origin);
            out.push(Piece { lsn: t.begin, xid, data: origin });
        }
        let any = self.changes(t.xid, &t.changes, publisher, cx, out)?;
        if !any && t.gid.is_empty() {
            out.truncate(start);
            return Ok(());
        }
        let mut end = Vec::new();
        match t.gid.as_str() {
            "" => {
                end.extend([b'C', 0]);
                end.extend(t.commit.0.to_be_bytes());
                end.extend(t.end.0.to_be_bytes());
                end.extend(t.info.time.to_be_bytes());
            }
            gid => {
                end.extend([b'P', 0]);
                ending(&mut end, &[t.commit.0, t.end.0], &[t.info.time], (xid, gid));
            }
        }
        out.push(Piece { lsn: t.end, xid, data: end });
        Ok(())
    }

    /// Adds a part of a transaction that is open, as far as something of it is sent.
    ///
    /// # Errors
    /// As [`PgOutput::transaction`].
    pub fn part(
        &mut self,
        (xid, changes): (u64, &[(Lsn, Change)]),
        publisher: &mut dyn Publisher,
        cx: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        let Some(lsn) = changes.first().map(|change| change.0) else { return Ok(()) };
        let start = out.len();
        let first = !self.streams.contains_key(&xid);
        let mut begin = vec![b'S'];
        begin.extend((xid as u32).to_be_bytes());
        begin.push(u8::from(first));
        out.push(Piece { lsn, xid, data: begin });
        self.streams.entry(xid).or_default();
        self.streamed = Some(xid);
        let any = self.changes(xid, changes, publisher, cx, out);
        self.streamed = None;
        if any? {
            let lsn = changes.last().map_or(lsn, |change| change.0);
            out.push(Piece { lsn, xid, data: vec![b'E'] });
        } else {
            out.truncate(start);
            if first {
                self.streams.remove(&xid);
            }
        }
        Ok(())
    }

    fn end_stream(
        &mut self,
        t: &Committed,
        publisher: &mut dyn Publisher,
        cx: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        self.part((t.xid, &t.changes), publisher, cx, out)?;
        let mut end = Vec::new();
        if t.gid.is_empty() {
            end.push(b'c');
            end.extend((t.xid as u32).to_be_bytes());
            end.push(0);
            end.extend(t.commit.0.to_be_bytes());
            end.extend(t.end.0.to_be_bytes());
            end.extend(t.info.time.to_be_bytes());
        } else {
            end.extend([b'p', 0]);
            ending(&mut end, &[t.commit.0, t.end.0], &[t.info.time], (t.xid, &t.gid));
        }
        out.push(Piece { lsn: t.end, xid: t.xid, data: end });
        // The subscriber knows now what it was told within.
        self.sent.extend(self.streams.remove(&t.xid).unwrap_or_default());
        Ok(())
    }

    /// Transactions have ended without a commit: says so of those that have begun to be sent.
    pub fn aborted(&mut self, ended: &[u64], lsn: Lsn, out: &mut Vec<Piece>) {
        for xid in ended.iter().copied() {
            if self.streams.remove(&xid).is_none() {
                continue;
            }
            let mut data = vec![b'A'];
            data.extend((xid as u32).to_be_bytes());
            data.extend((xid as u32).to_be_bytes());
            if self.parallel {
                data.extend(lsn.0.to_be_bytes());
                data.extend(0_i64.to_be_bytes());
            }
            out.push(Piece { lsn, xid, data });
        }
    }

    /// Adds the end of a transaction that was sent when it was prepared.
    pub fn finished(&mut self, f: &Finished, out: &mut Vec<Piece>) {
        let mut data = Vec::new();
        if f.commits {
            data.extend([b'K', 0]);
            ending(&mut data, &[f.at.0.0, f.at.1.0], &[f.time], (f.xid, &f.gid));
        } else {
            data.extend([b'r', 0]);
            ending(
                &mut data,
                &[f.prepared.1.0, f.at.1.0],
                &[f.prepared.0, f.time],
                (f.xid, &f.gid),
            );
        }
        out.push(Piece { lsn: f.at.1, xid: f.xid, data });
    }

    /// Adds the messages of changes; whether there were any.
    fn changes(
        &mut self,
        xid: u64,
        changes: &[(Lsn, Change)],
        publisher: &mut dyn Publisher,
        cx: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<bool> {
        let mut any = false;
        let streamed = self.streamed;
        let mut push = |lsn: Lsn, mut data: Vec<u8>| {
            if let Some(xid) = streamed {
                // Within a part each says whose it is.
                data.splice(1..1, (xid as u32).to_be_bytes());
            }
            out.push(Piece { lsn, xid, data });
        };
        for (lsn, change) in changes {
            match change {
                Change::Row { .. } => {
                    let Some(outgoing) = publisher.row(change)? else { continue };
                    self.relation(&outgoing.relation, |data| push(*lsn, data));
                    push(*lsn, self.row(&outgoing, cx)?);
                }
                Change::Truncate { cascade, restart, .. } => {
                    let relations = publisher.truncated(change)?;
                    if relations.is_empty() {
                        continue;
                    }
                    for relation in &relations {
                        self.relation(relation, |data| push(*lsn, data));
                    }
                    let mut data = vec![b'T'];
                    data.extend((relations.len() as u32).to_be_bytes());
                    data.push(u8::from(*cascade) | u8::from(*restart) << 1);
                    data.extend(relations.iter().flat_map(|r| r.oid.to_be_bytes()));
                    push(*lsn, data);
                }
                Change::Message(message) => {
                    if !self.messages {
                        continue;
                    }
                    push(*lsn, message_bytes(*lsn, message, true));
                }
            }
            any = true;
        }
        Ok(any)
    }

    /// Adds a message that waits for nothing.
    pub fn message(&self, lsn: Lsn, message: &Message, out: &mut Vec<Piece>) {
        if self.messages {
            out.push(Piece { lsn, xid: 0, data: message_bytes(lsn, message, false) });
        }
    }

    /// Tells of a relation that the subscriber does not know, or not as it is now.
    fn relation(&mut self, relation: &Arc<Relation>, mut push: impl FnMut(Vec<u8>)) {
        let sent = match self.streamed {
            Some(xid) => self.streams.entry(xid).or_default(),
            None => &mut self.sent,
        };
        if sent.get(&relation.oid).is_some_and(|known| known == relation) {
            return;
        }
        for column in &relation.columns {
            if let Some((schema, name)) = &column.named {
                let mut data = vec![b'Y'];
                data.extend(column.ty.to_be_bytes());
                text(&mut data, schema);
                text(&mut data, name);
                push(data);
            }
        }
        let mut data = vec![b'R'];
        data.extend(relation.oid.to_be_bytes());
        text(&mut data, &relation.schema);
        text(&mut data, &relation.name);
        data.push(relation.identity as u8);
        data.extend((relation.columns.len() as u16).to_be_bytes());
        for column in &relation.columns {
            data.push(u8::from(column.key || relation.identity == 'f'));
            text(&mut data, &column.name);
            data.extend(column.ty.to_be_bytes());
            data.extend(column.typmod.to_be_bytes());
        }
        push(data);
        sent.insert(relation.oid, relation.clone());
    }

    fn row(&self, outgoing: &Outgoing, cx: &FormatContext) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(64);
        out.push(match outgoing.operation {
            Operation::Insert => b'I',
            Operation::Update => b'U',
            Operation::Delete => b'D',
        });
        out.extend(outgoing.relation.oid.to_be_bytes());
        let relation = &outgoing.relation;
        match &outgoing.old {
            _ if outgoing.operation == Operation::Insert => {}
            OldRow::None => {}
            OldRow::Key(row) => {
                out.push(b'K');
                self.tuple(relation, row, cx, &mut out)?;
            }
            OldRow::Full(row) => {
                out.push(b'O');
                self.tuple(relation, row, cx, &mut out)?;
            }
        }
        if let Some(row) = &outgoing.new
            && outgoing.operation != Operation::Delete
        {
            out.push(b'N');
            self.tuple(relation, row, cx, &mut out)?;
        }
        Ok(out)
    }

    fn tuple(
        &self,
        relation: &Relation,
        row: &[Datum],
        cx: &FormatContext,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.extend((relation.columns.len() as u16).to_be_bytes());
        for (column, value) in relation.columns.iter().zip(row) {
            if value.is_null() {
                out.push(b'n');
                continue;
            }
            let ty = Oid(column.ty);
            let at = out.len();
            if self.binary && types::io::send(ty, value, out).is_ok() {
                let bytes = out.split_off(at);
                out.push(b'b');
                out.extend((bytes.len() as u32).to_be_bytes());
                out.extend(bytes);
                continue;
            }
            out.truncate(at);
            let text = types::io::to_text(ty, value, cx)?;
            out.push(b't');
            out.extend((text.len() as u32).to_be_bytes());
            out.extend(text.as_bytes());
        }
        Ok(())
    }
}

fn message_bytes(lsn: Lsn, message: &Message, transactional: bool) -> Vec<u8> {
    let mut out = vec![b'M', u8::from(transactional)];
    out.extend(lsn.0.to_be_bytes());
    text(&mut out, &message.prefix);
    out.extend((message.content.len() as u32).to_be_bytes());
    out.extend(&message.content);
    out
}
