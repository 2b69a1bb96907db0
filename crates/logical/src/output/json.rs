//! The JSON of `wal2json`: format 1 (a document a transaction) and format 2 (a document a change).

use base::{Lsn, Oid, Result, err};
use serde_json::{Map, Value, json};
use types::{Datum, FormatContext, oids};

use super::{Piece, boolean};
use crate::decode::{Change, Committed, StreamTable};
use crate::record::{Message, OldRow, Operation};

/// The plugin's options.
#[derive(Clone, Debug)]
pub struct JsonOutput {
    version: u32,
    include_xids: bool,
    include_timestamp: bool,
    include_lsn: bool,
    include_types: bool,
    include_typmod: bool,
    include_schemas: bool,
    include_transaction: bool,
    include_pk: bool,
    add_tables: Vec<String>,
    filter_tables: Vec<String>,
}

impl JsonOutput {
    /// Reads options.
    ///
    /// # Errors
    /// `22023`.
    pub fn new(options: &[(String, Option<String>)]) -> Result<JsonOutput> {
        let mut out = JsonOutput {
            version: 1,
            include_xids: false,
            include_timestamp: false,
            include_lsn: false,
            include_types: true,
            include_typmod: true,
            include_schemas: true,
            include_transaction: true,
            include_pk: false,
            add_tables: Vec::new(),
            filter_tables: Vec::new(),
        };
        for (name, value) in options {
            let on = || boolean(name, value.as_deref());
            let list = || {
                let value = value.as_deref().unwrap_or_default();
                value.split(',').map(|s| s.trim().to_owned()).collect::<Vec<_>>()
            };
            match name.as_str() {
                "format-version" => {
                    out.version = match value.as_deref() {
                        Some("1") => 1,
                        Some("2") => 2,
                        other => {
                            return Err(err!(
                                INVALID_PARAMETER_VALUE,
                                "client sent format_version={} but we only support format 1 or 2",
                                other.unwrap_or_default()
                            ));
                        }
                    };
                }
                "include-xids" => out.include_xids = on()?,
                "include-timestamp" => out.include_timestamp = on()?,
                "include-lsn" => out.include_lsn = on()?,
                "include-types" => out.include_types = on()?,
                "include-typmod" => out.include_typmod = on()?,
                "include-schemas" => out.include_schemas = on()?,
                "include-transaction" => out.include_transaction = on()?,
                "include-pk" => out.include_pk = on()?,
                "add-tables" => out.add_tables = list(),
                "filter-tables" => out.filter_tables = list(),
                "pretty-print"
                | "write-in-chunks"
                | "include-type-oids"
                | "include-not-null"
                | "include-default"
                | "include-unchanged-toast"
                | "actions"
                | "add-msg-prefixes"
                | "filter-msg-prefixes"
                | "filter-origins"
                | "numeric-data-types-as-string"
                | "include-domain-data-type"
                | "include-column-positions"
                | "include-origin" => {}
                _ => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "option \"{name}\" = \"{}\" is unknown",
                        value.as_deref().unwrap_or("(null)")
                    ));
                }
            }
        }
        Ok(out)
    }

    fn shows(&self, table: &StreamTable) -> bool {
        let is = |pattern: &String| {
            let (schema, name) = pattern.split_once('.').unwrap_or(("*", pattern));
            (schema == "*" || schema == table.shape.schema)
                && (name == "*" || name == table.shape.name)
        };
        (self.add_tables.is_empty() || self.add_tables.iter().any(is))
            && !self.filter_tables.iter().any(is)
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
        let mut changes = Vec::new();
        for (lsn, change) in &t.changes {
            changes.extend(self.change(change, cx)?.into_iter().map(|value| (*lsn, value)));
        }
        let time = || -> Result<Value> {
            let text = types::io::to_text(oids::TIMESTAMPTZ, &Datum::Timestamptz(t.info.time), cx)?;
            Ok(Value::String(text.to_string()))
        };
        let mut head = Map::new();
        if self.include_xids {
            head.insert("xid".into(), json!(t.xid));
        }
        if self.include_timestamp {
            head.insert("timestamp".into(), time()?);
        }
        let position = |lsn: Lsn| json!(format!("{:X}/{:X}", lsn.0 >> 32, lsn.0 & 0xffff_ffff));
        let mut push = |lsn: Lsn, value: Map<String, Value>| {
            let data = serde_json::to_vec(&value).unwrap_or_default();
            out.push(Piece { lsn, xid: t.xid, data });
        };
        if self.version == 1 {
            if self.include_lsn {
                head.insert("nextlsn".into(), position(t.end));
            }
            let all = changes.into_iter().map(|(_, value)| Value::Object(value)).collect();
            head.insert("change".into(), Value::Array(all));
            push(t.end, head);
            return Ok(());
        }
        let bare = |action: &str, lsn: Lsn| {
            let mut value = Map::new();
            value.insert("action".into(), json!(action));
            value.extend(head.clone());
            if self.include_lsn {
                value.insert("lsn".into(), position(lsn));
            }
            value
        };
        if self.include_transaction {
            push(t.begin, bare("B", t.begin));
        }
        for (lsn, change) in changes {
            let mut value = Map::new();
            let mut rest = change;
            if let Some(action) = rest.remove("action") {
                value.insert("action".into(), action);
            }
            value.extend(head.clone());
            if self.include_lsn {
                value.insert("lsn".into(), position(lsn));
            }
            value.extend(rest);
            push(lsn, value);
        }
        if self.include_transaction {
            push(t.end, bare("C", t.end));
        }
        Ok(())
    }

    /// Adds a message that waits for nothing.
    pub fn message(&self, lsn: Lsn, message: &Message, out: &mut Vec<Piece>) {
        let value = self.message_value(message, false);
        let value = match self.version {
            1 => json!({ "change": [value] }),
            _ => Value::Object(value),
        };
        out.push(Piece { lsn, xid: 0, data: serde_json::to_vec(&value).unwrap_or_default() });
    }

    fn message_value(&self, message: &Message, transactional: bool) -> Map<String, Value> {
        let mut out = Map::new();
        match self.version {
            1 => out.insert("kind".into(), json!("message")),
            _ => out.insert("action".into(), json!("M")),
        };
        out.insert("transactional".into(), json!(transactional));
        out.insert("prefix".into(), json!(message.prefix));
        out.insert("content".into(), json!(String::from_utf8_lossy(&message.content)));
        out
    }

    fn change(&self, change: &Change, cx: &FormatContext) -> Result<Vec<Map<String, Value>>> {
        let (table, operation, old, new) = match change {
            Change::Message(message) => return Ok(vec![self.message_value(message, true)]),
            Change::Truncate { tables, .. } => {
                if self.version == 1 {
                    return Ok(Vec::new());
                }
                let one = |t: &std::sync::Arc<StreamTable>| self.head(t, "T");
                return Ok(tables.iter().filter(|t| self.shows(t)).map(one).collect());
            }
            Change::Row { table, operation, old, new } => (table, operation, old, new),
        };
        if !self.shows(table) {
            return Ok(Vec::new());
        }
        let (word, letter) = match operation {
            Operation::Insert => ("insert", "I"),
            Operation::Update => ("update", "U"),
            Operation::Delete => ("delete", "D"),
        };
        // An update of a row that can't be identified says nothing of use.
        let keys: Vec<usize> = table.shape.live().filter(|(_, c)| c.key).map(|(n, _)| n).collect();
        let full = matches!(old, OldRow::Full(_));
        if *operation != Operation::Insert && keys.is_empty() && !full {
            return Ok(Vec::new());
        }
        let known = old.values().or(new.as_ref());
        let identity: Vec<usize> = match full {
            true => table.shape.live().map(|(n, _)| n).collect(),
            false => keys,
        };
        let live: Vec<usize> = table.shape.live().map(|(n, _)| n).collect();
        let mut out = self.head(table, if self.version == 1 { word } else { letter });
        if self.version == 2 {
            if let Some(row) = new {
                out.insert("columns".into(), self.columns(table, row, &live, cx)?);
            }
            if let (Operation::Update | Operation::Delete, Some(row)) = (operation, known) {
                out.insert("identity".into(), self.columns(table, row, &identity, cx)?);
            }
            return Ok(vec![out]);
        }
        if let Some(row) = new {
            out.insert("columnnames".into(), names(table, &live));
            if self.include_types {
                out.insert("columntypes".into(), self.types(table, &live));
            }
            out.insert("columnvalues".into(), values(table, row, &live, cx)?);
        }
        if let (Operation::Update | Operation::Delete, Some(row)) = (operation, known) {
            let mut keys = Map::new();
            keys.insert("keynames".into(), names(table, &identity));
            if self.include_types {
                keys.insert("keytypes".into(), self.types(table, &identity));
            }
            keys.insert("keyvalues".into(), values(table, row, &identity, cx)?);
            out.insert("oldkeys".into(), Value::Object(keys));
        }
        Ok(vec![out])
    }

    fn head(&self, table: &StreamTable, word: &str) -> Map<String, Value> {
        let mut out = Map::new();
        let key = if self.version == 1 { "kind" } else { "action" };
        out.insert(key.into(), json!(word));
        if self.include_schemas {
            out.insert("schema".into(), json!(table.shape.schema));
        }
        out.insert("table".into(), json!(table.shape.name));
        out
    }

    fn type_of(&self, table: &StreamTable, n: usize) -> Value {
        let column = &table.shape.columns[n];
        let typmod = if self.include_typmod { column.typmod } else { -1 };
        json!(types::io::format_type(Oid(column.ty), typmod))
    }

    fn types(&self, table: &StreamTable, columns: &[usize]) -> Value {
        Value::Array(columns.iter().map(|n| self.type_of(table, *n)).collect())
    }

    fn columns(
        &self,
        table: &StreamTable,
        row: &[Datum],
        columns: &[usize],
        cx: &FormatContext,
    ) -> Result<Value> {
        let mut out = Vec::with_capacity(columns.len());
        for n in columns {
            let mut one = Map::new();
            one.insert("name".into(), json!(table.shape.columns[*n].name));
            if self.include_types {
                one.insert("type".into(), self.type_of(table, *n));
            }
            one.insert("value".into(), value(table, row, *n, cx)?);
            out.push(Value::Object(one));
        }
        Ok(Value::Array(out))
    }
}

fn names(table: &StreamTable, columns: &[usize]) -> Value {
    Value::Array(columns.iter().map(|n| json!(table.shape.columns[*n].name)).collect())
}

fn values(
    table: &StreamTable,
    row: &[Datum],
    columns: &[usize],
    cx: &FormatContext,
) -> Result<Value> {
    let all: Result<Vec<Value>> = columns.iter().map(|n| value(table, row, *n, cx)).collect();
    all.map(Value::Array)
}

fn value(table: &StreamTable, row: &[Datum], n: usize, cx: &FormatContext) -> Result<Value> {
    let (datum, ty) = (&row[n], Oid(table.shape.columns[n].ty));
    if datum.is_null() {
        return Ok(Value::Null);
    }
    let text = types::io::to_text(ty, datum, cx)?;
    let number =
        [oids::INT2, oids::INT4, oids::INT8, oids::OID, oids::FLOAT4, oids::FLOAT8, oids::NUMERIC];
    Ok(match ty {
        oids::BOOL => json!(&*text == "t"),
        oids::BYTEA => json!(text.trim_start_matches("\\x")),
        ty if number.contains(&ty) => match serde_json::from_str::<Value>(&text) {
            Ok(value @ Value::Number(_)) => value,
            _ => Value::Null,
        },
        _ => json!(&*text),
    })
}
