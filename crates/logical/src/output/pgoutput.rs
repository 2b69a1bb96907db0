//! The messages of `pgoutput`: the logical streaming replication protocol.
//! Source: the manual's sections 55.5 and 55.9.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Lsn, Oid, Result};
use types::{Datum, FormatContext};

use super::Piece;
use crate::decode::{Change, Committed};
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
    /// Relations that the subscriber knows.
    sent: HashMap<u32, Arc<Relation>>,
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.push(0);
}

impl PgOutput {
    /// A new stream.
    pub fn new(binary: bool, messages: bool) -> PgOutput {
        PgOutput { binary, messages, sent: HashMap::new() }
    }

    /// Adds the messages of a transaction; one that sends nothing has none.
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
        let (start, xid) = (out.len(), t.xid);
        let mut push = |lsn: Lsn, data: Vec<u8>| out.push(Piece { lsn, xid, data });
        let mut begin = vec![b'B'];
        begin.extend(t.commit.0.to_be_bytes());
        begin.extend(t.info.time.to_be_bytes());
        begin.extend((xid as u32).to_be_bytes());
        push(t.begin, begin);
        if !t.info.origin.is_empty() {
            let mut origin = vec![b'O'];
            origin.extend(t.info.origin_lsn.to_be_bytes());
            text(&mut origin, &t.info.origin);
            push(t.begin, origin);
        }
        let mut any = false;
        for (lsn, change) in &t.changes {
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
        if !any {
            out.truncate(start);
            return Ok(());
        }
        let mut commit = vec![b'C', 0];
        commit.extend(t.commit.0.to_be_bytes());
        commit.extend(t.end.0.to_be_bytes());
        commit.extend(t.info.time.to_be_bytes());
        out.push(Piece { lsn: t.end, xid, data: commit });
        Ok(())
    }

    /// Adds a message that waits for nothing.
    pub fn message(&self, lsn: Lsn, message: &Message, out: &mut Vec<Piece>) {
        if self.messages {
            out.push(Piece { lsn, xid: 0, data: message_bytes(lsn, message, false) });
        }
    }

    /// Tells of a relation that the subscriber does not know, or not as it is now.
    fn relation(&mut self, relation: &Arc<Relation>, mut push: impl FnMut(Vec<u8>)) {
        if self.sent.get(&relation.oid).is_some_and(|known| known == relation) {
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
        self.sent.insert(relation.oid, relation.clone());
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
