//! The text of `test_decoding`.
//!
//! ```text
//! BEGIN 731
//! table public.t: INSERT: id[integer]:1 name[text]:'one'
//! table public.t: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 name[text]:'one'
//! COMMIT 731
//! ```

use base::{Lsn, Oid, Result, err};
use types::func::quote_ident;
use types::{Datum, FormatContext, oids};

use super::{Piece, boolean};
use crate::decode::{Change, Committed, Finished, StreamTable};
use crate::record::{Message, OldRow, Operation};

/// The plugin's options.
#[derive(Clone, Copy, Debug)]
pub struct TextOutput {
    include_xids: bool,
    include_timestamp: bool,
    skip_empty: bool,
    only_local: bool,
    /// The output is bytes that need not be text.
    pub binary: bool,
}

impl TextOutput {
    /// Reads options.
    ///
    /// # Errors
    /// `22023`.
    pub fn new(options: &[(String, Option<String>)]) -> Result<TextOutput> {
        let mut out = TextOutput {
            include_xids: true,
            include_timestamp: false,
            skip_empty: false,
            only_local: false,
            binary: false,
        };
        for (name, value) in options {
            let on = || boolean(name, value.as_deref());
            match name.as_str() {
                "include-xids" => out.include_xids = on()?,
                "include-timestamp" => out.include_timestamp = on()?,
                "force-binary" => out.binary = on()?,
                "skip-empty-xacts" => out.skip_empty = on()?,
                "only-local" => out.only_local = on()?,
                "include-rewrites" | "stream-changes" => drop(on()?),
                _ => {
                    let value = value.as_deref().unwrap_or("(null)");
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "option \"{name}\" = \"{value}\" is unknown"
                    ));
                }
            }
        }
        Ok(out)
    }

    /// Adds what a transaction says.
    ///
    /// # Errors
    /// Values that can't be printed.
    pub fn transaction(
        &self,
        t: &Committed,
        cx: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        if self.only_local && !t.info.origin.is_empty() {
            return Ok(());
        }
        let xid = t.xid;
        let mut push = |lsn: Lsn, text: String| {
            out.push(Piece { lsn, xid, data: text.into_bytes() });
        };
        let word = |word: &str| match self.include_xids {
            true => format!("{word} {xid}"),
            false => word.to_owned(),
        };
        // With skip-empty-xacts, messages alone make no transaction.
        let mut begun = !self.skip_empty;
        if begun {
            push(t.begin, word("BEGIN"));
        }
        for (lsn, change) in &t.changes {
            if !begun && !matches!(change, Change::Message(_)) {
                begun = true;
                push(t.begin, word("BEGIN"));
            }
            push(*lsn, change_text(change, cx)?);
        }
        if !begun {
            return Ok(());
        }
        let mut last = match t.gid.as_str() {
            "" => word("COMMIT"),
            gid => self.ended("PREPARE TRANSACTION", gid, xid),
        };
        if self.include_timestamp {
            let time = types::io::to_text(oids::TIMESTAMPTZ, &Datum::Timestamptz(t.info.time), cx)?;
            last.push_str(&format!(" (at {time})"));
        }
        push(t.end, last);
        Ok(())
    }

    fn ended(&self, words: &str, gid: &str, xid: u64) -> String {
        let gid = types::func::quote_literal(gid);
        match self.include_xids {
            true => format!("{words} {gid}, txid {xid}"),
            false => format!("{words} {gid}"),
        }
    }

    /// Adds the end of a transaction that came out when it was prepared.
    ///
    /// # Errors
    /// As [`TextOutput::transaction`].
    pub fn finished(&self, f: &Finished, cx: &FormatContext, out: &mut Vec<Piece>) -> Result<()> {
        let words = if f.commits { "COMMIT PREPARED" } else { "ROLLBACK PREPARED" };
        let mut text = self.ended(words, &f.gid, f.xid);
        if self.include_timestamp {
            let time = types::io::to_text(oids::TIMESTAMPTZ, &Datum::Timestamptz(f.time), cx)?;
            text.push_str(&format!(" (at {time})"));
        }
        out.push(Piece { lsn: f.at.1, xid: f.xid, data: text.into_bytes() });
        Ok(())
    }

    /// Adds a message that waits for nothing.
    pub fn message(&self, lsn: Lsn, message: &Message, out: &mut Vec<Piece>) {
        out.push(Piece { lsn, xid: 0, data: message_text(message, false).into_bytes() });
    }
}

fn message_text(message: &Message, transactional: bool) -> String {
    format!(
        "message: transactional: {} prefix: {}, sz: {} content:{}",
        u8::from(transactional),
        message.prefix,
        message.content.len(),
        String::from_utf8_lossy(&message.content)
    )
}

fn name_of(table: &StreamTable) -> String {
    format!("{}.{}", quote_ident(&table.shape.schema), quote_ident(&table.shape.name))
}

fn change_text(change: &Change, cx: &FormatContext) -> Result<String> {
    let (table, operation, old, new) = match change {
        Change::Message(message) => return Ok(message_text(message, true)),
        Change::Truncate { tables, cascade, restart } => {
            let names: Vec<String> = tables.iter().map(|t| name_of(t)).collect();
            let flags = match (restart, cascade) {
                (false, false) => " (no-flags)",
                (true, false) => " restart_seqs",
                (false, true) => " cascade",
                (true, true) => " restart_seqs cascade",
            };
            return Ok(format!("table {}: TRUNCATE:{flags}", names.join(", ")));
        }
        Change::Row { table, operation, old, new } => (table, operation, old, new),
    };
    let mut out = format!("table {}:", name_of(table));
    let none = " (no-tuple-data)";
    match operation {
        Operation::Insert => {
            out.push_str(" INSERT:");
            match new {
                Some(row) => tuple(table, row, false, cx, &mut out)?,
                None => out.push_str(none),
            }
        }
        Operation::Update => {
            out.push_str(" UPDATE:");
            if let Some(row) = old.values() {
                out.push_str(" old-key:");
                tuple(table, row, true, cx, &mut out)?;
                out.push_str(" new-tuple:");
            }
            match new {
                Some(row) => tuple(table, row, false, cx, &mut out)?,
                None => out.push_str(none),
            }
        }
        Operation::Delete => {
            out.push_str(" DELETE:");
            match old {
                OldRow::None => out.push_str(none),
                OldRow::Key(row) | OldRow::Full(row) => tuple(table, row, true, cx, &mut out)?,
            }
        }
    }
    Ok(out)
}

fn tuple(
    table: &StreamTable,
    row: &[Datum],
    skip_nulls: bool,
    cx: &FormatContext,
    out: &mut String,
) -> Result<()> {
    for (n, column) in table.shape.live() {
        let value = &row[n];
        if skip_nulls && value.is_null() {
            continue;
        }
        let ty = Oid(column.ty);
        out.push(' ');
        out.push_str(&quote_ident(&column.name));
        out.push('[');
        out.push_str(&types::io::format_type(ty, -1));
        out.push_str("]:");
        if value.is_null() {
            out.push_str("null");
            continue;
        }
        let text = types::io::to_text(ty, value, cx)?;
        let plain = [
            oids::INT2,
            oids::INT4,
            oids::INT8,
            oids::OID,
            oids::FLOAT4,
            oids::FLOAT8,
            oids::NUMERIC,
        ];
        if plain.contains(&ty) {
            out.push_str(&text);
        } else if ty == oids::BIT || ty == oids::VARBIT {
            out.push_str(&format!("B'{text}'"));
        } else if ty == oids::BOOL {
            out.push_str(if &*text == "t" { "true" } else { "false" });
        } else {
            out.push_str(&format!("'{}'", text.as_str().replace('\'', "''")));
        }
    }
    Ok(())
}
