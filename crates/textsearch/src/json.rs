//! The texts of JSON documents, in the order in which they stand there.

use base::{Result, err};
use types::Text;
use types::json::{self, Kind};
use types::jsonb::Json;

/// Which parts of a document are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// Keys of objects.
    pub keys: bool,
    /// Strings.
    pub strings: bool,
    /// Numbers.
    pub numbers: bool,
    /// Truth values.
    pub booleans: bool,
}

impl Parts {
    /// Strings only.
    pub const STRINGS: Parts =
        Parts { keys: false, strings: true, numbers: false, booleans: false };

    /// Reads `"all"`, or an array of names of parts.
    ///
    /// # Errors
    /// `22023`.
    pub fn read(filter: &Json) -> Result<Parts> {
        const NAMES: &str =
            "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
        let wrong = |message: String| Err(err!(INVALID_PARAMETER_VALUE, "{message}").hint(NAMES));
        let items: Vec<&Json> = match filter {
            Json::Array(items) => items.iter().collect(),
            Json::Object(_) => {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "wrong flag type, only arrays and scalars are allowed"
                ));
            }
            scalar => vec![scalar],
        };
        let mut parts = Parts::default();
        for item in items {
            let Json::String(name) = item else {
                return wrong("flag array element is not a string".into());
            };
            match name.to_ascii_lowercase().as_str() {
                "all" => parts = Parts { keys: true, strings: true, numbers: true, booleans: true },
                "key" => parts.keys = true,
                "string" => parts.strings = true,
                "numeric" => parts.numbers = true,
                "boolean" => parts.booleans = true,
                _ => return wrong(format!("wrong flag in flag array: \"{name}\"")),
            }
        }
        Ok(parts)
    }
}

/// Calls `f` with each text of a jsonb document.
///
/// # Errors
/// Those of `f`.
pub fn each(value: &Json, parts: Parts, f: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    sched::check_stack()?;
    match value {
        Json::Null => {}
        Json::Bool(b) if parts.booleans => f(if *b { "true" } else { "false" })?,
        Json::Number(_) if parts.numbers => f(&value.to_text()?)?,
        Json::String(s) if parts.strings => f(s)?,
        Json::Array(items) => items.iter().try_for_each(|i| each(i, parts, f))?,
        Json::Object(members) => {
            for (key, value) in members.iter() {
                if parts.keys {
                    f(key)?;
                }
                each(value, parts, f)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Calls `f` with each text of a json document.
///
/// # Errors
/// Those of `f`.
pub fn each_of_text(text: &str, parts: Parts, f: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    sched::check_stack()?;
    match json::kind(text) {
        Kind::Array => json::items(text)?.into_iter().try_for_each(|i| each_of_text(i, parts, f)),
        Kind::Object => json::members(text)?.into_iter().try_for_each(|(key, value)| {
            if parts.keys {
                f(&key)?;
            }
            each_of_text(value, parts, f)
        }),
        Kind::String if parts.strings => {
            let plain: Option<Text> = json::plain_text(text)?.map(|t| Text::from(t.as_ref()));
            plain.map_or(Ok(()), |t| f(&t))
        }
        Kind::Number if parts.numbers => f(text.trim()),
        Kind::Bool if parts.booleans => f(text.trim()),
        _ => Ok(()),
    }
}

/// A jsonb document with each string replaced.
///
/// # Errors
/// Those of `f`.
pub fn map(value: &Json, f: &mut dyn FnMut(&str) -> Result<String>) -> Result<Json> {
    sched::check_stack()?;
    Ok(match value {
        Json::String(s) => Json::string(&f(s)?),
        Json::Array(items) => {
            Json::array(items.iter().map(|i| map(i, f)).collect::<Result<Vec<_>>>()?)
        }
        Json::Object(members) => {
            let member = |(k, v): &(Text, Json)| Ok((k.clone(), map(v, f)?));
            Json::object(members.iter().map(member).collect::<Result<Vec<_>>>()?)
        }
        other => other.clone(),
    })
}

/// A json document with each string replaced.
///
/// # Errors
/// Those of `f`.
pub fn map_text(
    text: &str,
    out: &mut Vec<u8>,
    f: &mut dyn FnMut(&str) -> Result<String>,
) -> Result<()> {
    sched::check_stack()?;
    match json::kind(text) {
        Kind::Array => {
            out.push(b'[');
            for (n, item) in json::items(text)?.into_iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                map_text(item, out, f)?;
            }
            out.push(b']');
        }
        Kind::Object => {
            out.push(b'{');
            for (n, (key, value)) in json::members(text)?.into_iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                json::put_string(&key, out)?;
                out.push(b':');
                map_text(value, out, f)?;
            }
            out.push(b'}');
        }
        Kind::String => {
            let plain = json::plain_text(text)?.map(|t| t.into_owned()).unwrap_or_default();
            json::put_string(&f(&plain)?, out)?;
        }
        _ => out.extend_from_slice(text.trim().as_bytes()),
    }
    Ok(())
}
