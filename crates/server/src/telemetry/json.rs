//! The forms of OTLP's JSON that metrics and spans share.

use serde_json::{Value, json};

/// An attribute of OTLP.
pub(super) fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The same with a number.
pub(super) fn number(key: &str, value: i64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// Nanoseconds since 1970 of a time in microseconds since 2000.
pub(super) fn unix_ns(micros: i64) -> String {
    ((i128::from(micros) + 946_684_800_000_000) * 1000).to_string()
}
