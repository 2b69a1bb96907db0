//! A terminal's connection: statements with parameters, sent as the mode says.

use std::collections::HashMap;

use super::Mode;
use crate::driver::connection::Rows;
use crate::driver::{Connection, Failure};

/// A parameter's value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// An amount of money, in cents.
    Cents(i64),
    /// A text, or an array in its text form.
    Text(String),
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl Value {
    /// As a parameter.
    fn text(&self) -> String {
        match self {
            Value::Int(value) => value.to_string(),
            Value::Cents(value) => {
                let sign = if *value < 0 { "-" } else { "" };
                format!("{sign}{}.{:02}", value.abs() / 100, value.abs() % 100)
            }
            Value::Text(value) => value.clone(),
        }
    }

    /// In a statement's text.
    fn literal(&self) -> String {
        match self {
            Value::Text(value) => format!("'{}'", value.replace('\'', "''")),
            value => value.text(),
        }
    }
}

/// One connection in one mode.
pub struct Session {
    connection: Connection,
    mode: Mode,
    /// Names of prepared statements by their text.
    prepared: HashMap<String, String>,
}

impl Session {
    /// Takes a connection that has logged in.
    pub fn new(connection: Connection, mode: Mode) -> Session {
        Session { connection, mode, prepared: HashMap::new() }
    }

    /// Whether transactions are procedures.
    pub fn calls_procedures(&self) -> bool {
        self.mode == Mode::Procedures
    }

    /// A statement without parameters.
    ///
    /// # Errors
    /// The statement's.
    pub fn command(&mut self, sql: &str) -> Result<(), Failure> {
        self.connection.query(sql).map(drop)
    }

    /// A statement with `$1` and so on.
    ///
    /// # Errors
    /// The statement's.
    pub fn query(&mut self, sql: &str, values: &[Value]) -> Result<Rows, Failure> {
        if self.mode == Mode::Simple {
            return self.connection.query(&inlined(sql, values));
        }
        let parameters: Vec<String> = values.iter().map(Value::text).collect();
        if let Some(name) = self.prepared.get(sql) {
            return self.connection.execute(name, None, &parameters);
        }
        let name = format!("s{}", self.prepared.len());
        let rows = self.connection.execute(&name, Some(sql), &parameters)?;
        self.prepared.insert(sql.to_owned(), name);
        Ok(rows)
    }
}

/// The statement with its values in place of `$1` and so on; what has no value stays.
fn inlined(sql: &str, values: &[Value]) -> String {
    let mut out = String::with_capacity(sql.len() + 64);
    let mut parts = sql.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let value =
            part[..digits].parse::<usize>().ok().and_then(|n| values.get(n.checked_sub(1)?));
        match value {
            Some(value) => {
                out.push_str(&value.literal());
                out.push_str(&part[digits..]);
            }
            None => {
                out.push('$');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_places_of_parameters() {
        let values = [Value::Int(7), Value::Cents(-1205), Value::Text("O'Hara".to_owned())];
        assert_eq!(inlined("f($1, $2) = $3", &values), "f(7, -12.05) = 'O''Hara'");
        assert_eq!(inlined("$4 $x", &values), "$4 $x");
    }
}
