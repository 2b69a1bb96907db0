//! The statistics views as JSON. Times are milliseconds since 1970-01-01 UTC.

use base::Oid;
use serde_json::{Map, Value};
use types::{Datum, FormatContext};

use crate::server::Server;
use crate::views::rows as view_rows;

/// Milliseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MS: f64 = 946_684_800_000.0;

/// A point in time (microseconds since 2000) for a page.
pub fn time_ms(micros: i64) -> f64 {
    micros as f64 / 1000.0 + EPOCH_MS
}

/// Such a time in microseconds since 2000.
pub fn micros(ms: f64) -> i64 {
    ((ms - EPOCH_MS) * 1000.0) as i64
}

/// A view's rows, each an object by column name; None: there is no such view. Those about one database
/// are about `postgres`.
pub fn rows(server: &Server, name: &str) -> Option<Vec<Map<String, Value>>> {
    rows_in(server, catalog::object::ids::POSTGRES_DB, name)
}

/// The same, about a database.
pub fn rows_in(server: &Server, database: u32, name: &str) -> Option<Vec<Map<String, Value>>> {
    let view = catalog::system::find(None, name)?;
    let format = FormatContext::default();
    let object = |row: Vec<Datum>| {
        let cells = view.columns.iter().zip(row);
        cells.map(|(c, v)| (c.name.clone(), value(Oid(c.ty), &v, &format))).collect()
    };
    let rows = view_rows::rows(server, database, name);
    Some(rows.into_iter().map(object).collect())
}

fn value(ty: Oid, datum: &Datum, format: &FormatContext) -> Value {
    match datum {
        Datum::Null => Value::Null,
        Datum::Bool(v) => (*v).into(),
        Datum::Int2(v) => (*v).into(),
        Datum::Int4(v) => (*v).into(),
        Datum::Int8(v) => (*v).into(),
        Datum::Float4(v) => (*v).into(),
        Datum::Float8(v) => (*v).into(),
        Datum::Oid(v) => (*v).into(),
        Datum::Timestamptz(v) => time_ms(*v).into(),
        Datum::Text(v) => Value::String(v.to_string()),
        Datum::Array(v) => {
            let ty = types::io::natural_type(v.items.first().unwrap_or(&Datum::Null));
            v.items.iter().map(|item| value(ty, item, format)).collect()
        }
        other => match types::io::to_text(ty, other, format) {
            Ok(text) => Value::String(text.to_string()),
            Err(_) => Value::Null,
        },
    }
}
