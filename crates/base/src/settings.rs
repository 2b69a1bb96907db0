//! Settings (GUCs), generated from `settings.txt`: one row gives the constant, its check, its
//! `pg_settings` line and its documentation.
//!
//! A [`Settings`] is one complete set of values. A session holds an `Arc` of the server's set and
//! takes a copy when it first changes something. The layers below sessions read server-wide values
//! with [`live_int`] and its kin; the server publishes them with [`publish_live`].
//! Spelling, units and messages follow PostgreSQL (manual, section 20.1).

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result, err};

/// Index of a setting in [`SETTINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SettingId(pub u16);

/// Type and range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// on or off.
    Bool,
    /// A whole number in the setting's unit.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A number.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Any text.
    String,
    /// One of these words.
    Enum(&'static [&'static str]),
}

/// The unit that a setting's bare number is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    None,
    /// Bytes.
    B,
    /// Kilobytes.
    KB,
    /// Megabytes.
    MB,
    /// Pages of 8 kB.
    Pages,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// Minutes.
    Min,
}

/// When a setting may change; PostgreSQL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// By any session.
    User,
    /// By a superuser's session.
    Superuser,
    /// By any client when it connects.
    Backend,
    /// By a superuser when it connects.
    SuperuserBackend,
    /// By the file or ALTER SYSTEM, while running.
    Sighup,
    /// At start only.
    Postmaster,
    /// Never.
    Internal,
}

impl Context {
    /// As `pg_settings` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Context::User => "user",
            Context::Superuser => "superuser",
            Context::Backend => "backend",
            Context::SuperuserBackend => "superuser-backend",
            Context::Sighup => "sighup",
            Context::Postmaster => "postmaster",
            Context::Internal => "internal",
        }
    }
}

/// A value known at compile time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    /// For [`Kind::Bool`].
    Bool(bool),
    /// For [`Kind::Int`].
    Int(i64),
    /// For [`Kind::Real`].
    Real(f64),
    /// For [`Kind::String`] and [`Kind::Enum`].
    Str(&'static str),
}

/// A setting's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// For [`Kind::Bool`].
    Bool(bool),
    /// For [`Kind::Int`].
    Int(i64),
    /// For [`Kind::Real`].
    Real(f64),
    /// For [`Kind::String`] and [`Kind::Enum`].
    Str(Arc<str>),
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct SettingDef {
    /// Name, spelled as PostgreSQL spells it.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// The value without any configuration.
    pub default: Const,
    /// Unit of a bare number.
    pub unit: Unit,
    /// When it may change.
    pub context: Context,
    /// Heading in `pg_settings`.
    pub group: &'static str,
    /// One sentence.
    pub description: &'static str,
}

/// Identifiers of all settings, in upper case.
pub mod setting {
    use super::{Const, Context, Kind, SettingDef, SettingId, Unit};
    include!(concat!(env!("OUT_DIR"), "/settings.rs"));
}
pub use setting::SETTINGS;

const LIVE_ZERO: AtomicI64 = AtomicI64::new(i64::MIN);
static LIVE: [AtomicI64; SETTINGS.len()] = [LIVE_ZERO; SETTINGS.len()];

/// The server-wide value of an integer setting, in its unit.
#[inline]
pub fn live_int(id: SettingId) -> i64 {
    match LIVE[usize::from(id.0)].load(Ordering::Relaxed) {
        i64::MIN => unpublished(id),
        v => v,
    }
}

/// The server-wide value of a boolean setting.
#[inline]
pub fn live_bool(id: SettingId) -> bool {
    live_int(id) != 0
}

/// The position of an enum setting's server-wide value in its list of words.
#[inline]
pub fn live_enum(id: SettingId) -> usize {
    live_int(id) as usize
}

/// The default, before anything was published.
#[cold]
fn unpublished(id: SettingId) -> i64 {
    match (id.def().default, id.def().kind) {
        (Const::Int(v), _) => v,
        (Const::Bool(v), _) => i64::from(v),
        (Const::Str(d), Kind::Enum(words)) => {
            words.iter().position(|w| *w == d).unwrap_or(0) as i64
        }
        _ => 0,
    }
}

/// The server-wide value of a number setting.
pub fn live_real(id: SettingId) -> f64 {
    match (LIVE[usize::from(id.0)].load(Ordering::Relaxed), id.def().default) {
        (i64::MIN, Const::Real(v)) => v,
        (bits, _) => f64::from_bits(bits as u64),
    }
}

/// The kind of place that a server-wide value comes from, with `pg_settings`' words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The table.
    #[default]
    Default,
    /// The server, which finds it out when it starts.
    Override,
    /// A file.
    File,
    /// The command line.
    CommandLine,
    /// The session that looks at it.
    Session,
}

impl Source {
    /// As `pg_settings` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::Override => "override",
            Source::File => "configuration file",
            Source::CommandLine => "command line",
            Source::Session => "session",
        }
    }
}

/// The place that a server-wide value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its kind.
    pub source: Source,
    /// The file and the line.
    pub place: Option<(Arc<str>, u32)>,
    /// The files have another value, which a restart will put in force.
    pub pending_restart: bool,
}

/// The server-wide values with their origins, as `pg_settings` shows them.
#[derive(Clone, Debug, Default)]
pub struct ServerWide {
    /// The values, to which RESET goes back in a session that began with nothing else.
    pub settings: Settings,
    /// Those of the settings that are in force, by number; without a row: the default.
    pub origins: Vec<Origin>,
}

static SERVER_WIDE: Mutex<Option<Arc<ServerWide>>> = Mutex::new(None);

/// Makes these what [`server_wide`] returns.
pub fn publish_server_wide(values: ServerWide) {
    let mut published = SERVER_WIDE.lock().unwrap_or_else(PoisonError::into_inner);
    *published = Some(Arc::new(values));
}

/// The server-wide values with their origins.
pub fn server_wide() -> Arc<ServerWide> {
    let published = SERVER_WIDE.lock().unwrap_or_else(PoisonError::into_inner);
    published.clone().unwrap_or_default()
}

/// Makes these the server-wide values that [`live_int`] and its kin return.
pub fn publish_live(settings: &Settings) {
    for (i, value) in settings.values.iter().enumerate() {
        let number = match (value, SETTINGS[i].kind) {
            (Value::Bool(b), _) => i64::from(*b),
            (Value::Int(n), _) => *n,
            (Value::Real(r), _) => r.to_bits() as i64,
            (Value::Str(s), Kind::Enum(words)) => {
                words.iter().position(|w| **w == **s).unwrap_or(0) as i64
            }
            _ => continue,
        };
        LIVE[i].store(number, Ordering::Relaxed);
    }
}

impl SettingId {
    /// Finds a setting by name, without regard to case.
    pub fn find(name: &str) -> Option<SettingId> {
        let lower = name.to_lowercase();
        SETTINGS
            .binary_search_by(|d| d.name.to_lowercase().as_str().cmp(&lower))
            .ok()
            .map(|i| SettingId(i as u16))
    }

    /// Whether only those may see the value who may read all settings: where files are, and the like.
    pub fn is_secret(self) -> bool {
        use setting::*;
        matches!(
            self,
            CONFIG_FILE
                | DATA_DIRECTORY
                | DYNAMIC_LIBRARY_PATH
                | EXTENSION_DESTDIR
                | EXTERNAL_PID_FILE
                | HBA_FILE
                | IDENT_FILE
                | JIT_PROVIDER
                | KRB_SERVER_KEYFILE
                | LOG_DIRECTORY
                | LOG_FILENAME
                | PG_ALERT_WEBHOOK
                | PRIMARY_CONNINFO
                | SESSION_PRELOAD_LIBRARIES
                | SHARED_PRELOAD_LIBRARIES
                | SSL_CIPHERS
                | SSL_DH_PARAMS_FILE
                | SSL_ECDH_CURVE
                | SSL_MAX_PROTOCOL_VERSION
                | SSL_MIN_PROTOCOL_VERSION
                | SSL_PASSPHRASE_COMMAND
                | UNIX_SOCKET_DIRECTORIES
        )
    }

    /// The setting's row.
    pub fn def(self) -> &'static SettingDef {
        &SETTINGS[usize::from(self.0)]
    }
}

/// PostgreSQL's error for a name that isn't there.
pub fn unrecognized(name: &str) -> Error {
    err!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\"")
}

/// One value for every setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: Vec<Value>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { values: SETTINGS.iter().map(|d| d.default.value()).collect() }
    }
}

impl Const {
    /// The same value, owned.
    pub fn value(self) -> Value {
        match self {
            Const::Bool(v) => Value::Bool(v),
            Const::Int(v) => Value::Int(v),
            Const::Real(v) => Value::Real(v),
            Const::Str(v) => Value::Str(v.into()),
        }
    }
}

impl Settings {
    /// The value of any setting.
    pub fn get(&self, id: SettingId) -> &Value {
        &self.values[usize::from(id.0)]
    }

    /// A boolean's value; false for another type.
    pub fn bool(&self, id: SettingId) -> bool {
        matches!(self.get(id), Value::Bool(true))
    }

    /// An integer's value in the setting's unit; 0 for another type.
    pub fn int(&self, id: SettingId) -> i64 {
        match self.get(id) {
            Value::Int(v) => *v,
            _ => 0,
        }
    }

    /// A real's value; 0 for another type.
    pub fn real(&self, id: SettingId) -> f64 {
        match self.get(id) {
            Value::Real(v) => *v,
            _ => 0.0,
        }
    }

    /// A string's or enum's text; empty for another type.
    pub fn str(&self, id: SettingId) -> &str {
        match self.get(id) {
            Value::Str(v) => v,
            _ => "",
        }
    }

    /// Puts a checked value in.
    pub fn set(&mut self, id: SettingId, value: Value) {
        self.values[usize::from(id.0)] = value;
    }
}

/// The word that is meant: those of Booleans stand for `on` and `off` where both are among them.
fn word_of(words: &'static [&'static str], text: &str) -> Option<&'static str> {
    let find = |text: &str| words.iter().find(|w| w.eq_ignore_ascii_case(text)).copied();
    let is_switch = find("on").is_some() && find("off").is_some();
    find(text).or_else(|| match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" if is_switch => find("on"),
        "false" | "no" | "0" if is_switch => find("off"),
        _ => None,
    })
}

/// Reads a setting's value from text, checking type, unit and range.
///
/// # Errors
/// `22023` with PostgreSQL's wording.
pub fn parse(id: SettingId, text: &str) -> Result<Value> {
    let def = id.def();
    let invalid = || {
        err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{}\": \"{text}\"", def.name)
    };
    match def.kind {
        Kind::Bool => parse_bool(text).map(Value::Bool).ok_or_else(|| {
            err!(INVALID_PARAMETER_VALUE, "parameter \"{}\" requires a Boolean value", def.name)
        }),
        Kind::String => Ok(Value::Str(text.into())),
        Kind::Enum(words) => match word_of(words, text.trim()) {
            Some(word) => Ok(Value::Str(word.into())),
            None => Err(invalid().hint(format!("Available values: {}.", words.join(", ")))),
        },
        Kind::Int { min, max } => {
            let number = parse_number(text, def.unit).ok_or_else(invalid)?;
            let value = number.round();
            if value < min as f64 || value > max as f64 {
                let unit = def.unit.suffix();
                let space = if unit.is_empty() { "" } else { " " };
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "{value}{space}{unit} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                    def.name
                ));
            }
            Ok(Value::Int(value as i64))
        }
        Kind::Real { min, max } => {
            let value = parse_number(text, def.unit).ok_or_else(invalid)?;
            if value < min || value > max {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "{value} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                    def.name
                ));
            }
            Ok(Value::Real(value))
        }
    }
}

/// PostgreSQL's Boolean spellings: unambiguous prefixes of true, false, yes, no; on, off, 1, 0.
pub fn parse_bool(text: &str) -> Option<bool> {
    let t = text.trim().to_ascii_lowercase();
    match t.as_str() {
        "" | "o" => None,
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        t if "true".starts_with(t) || "yes".starts_with(t) => Some(true),
        t if "false".starts_with(t) || "no".starts_with(t) => Some(false),
        _ => None,
    }
}

impl Unit {
    /// Size in the family's smallest unit (bytes or microseconds) and whether it is a time.
    fn scale(self) -> Option<(f64, bool)> {
        Some(match self {
            Unit::None => return None,
            Unit::B => (1.0, false),
            Unit::KB => (1024.0, false),
            Unit::Pages => (8192.0, false),
            Unit::MB => (1048576.0, false),
            Unit::Us => (1.0, true),
            Unit::Ms => (1e3, true),
            Unit::S => (1e6, true),
            Unit::Min => (6e7, true),
        })
    }

    /// As `pg_settings.unit` shows it; empty for none.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::B => "B",
            Unit::KB => "kB",
            Unit::MB => "MB",
            Unit::Pages => "8kB",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
            Unit::Min => "min",
        }
    }
}

fn parse_number(text: &str, unit: Unit) -> Option<f64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(hex) = hex {
        return i64::from_str_radix(hex, 16).ok().map(|v| v as f64);
    }
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| (b'0'..b'8').contains(&b)) {
        return i64::from_str_radix(text, 8).ok().map(|v| v as f64);
    }
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let c = bytes[end];
        let exponent = (c == b'e' || c == b'E')
            && bytes.get(end + 1).is_some_and(|n| n.is_ascii_digit() || *n == b'-' || *n == b'+');
        let sign = (c == b'-' || c == b'+') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        if !(c.is_ascii_digit() || c == b'.' || exponent || sign) {
            break;
        }
        end += 1;
    }
    let number: f64 = text[..end].parse().ok()?;
    let suffix = text[end..].trim();
    if suffix.is_empty() {
        return Some(number);
    }
    let (base, is_time) = unit.scale()?;
    let factor = match (suffix, is_time) {
        ("B", false) => 1.0,
        ("kB", false) => 1024.0,
        ("MB", false) => 1048576.0,
        ("GB", false) => 1073741824.0,
        ("TB", false) => 1099511627776.0,
        ("us", true) => 1.0,
        ("ms", true) => 1e3,
        ("s", true) => 1e6,
        ("min", true) => 6e7,
        ("h", true) => 3.6e9,
        ("d", true) => 8.64e10,
        _ => return None,
    };
    Some(number * factor / base)
}

/// A value as SHOW prints it: integers with the largest unit that divides them.
pub fn show(id: SettingId, value: &Value) -> String {
    match value {
        Value::Bool(v) => if *v { "on" } else { "off" }.to_owned(),
        Value::Str(v) => v.to_string(),
        Value::Real(v) => show_real(*v, id.def().unit),
        Value::Int(v) if is_mode(id) => format!("{v:04o}"),
        Value::Int(v) => show_int(*v, id.def().unit),
    }
}

/// Whether a number is the mode of a file or directory, which is shown in octal.
pub fn is_mode(id: SettingId) -> bool {
    matches!(
        id,
        setting::DATA_DIRECTORY_MODE | setting::LOG_FILE_MODE | setting::UNIX_SOCKET_PERMISSIONS
    )
}

fn show_real(value: f64, unit: Unit) -> String {
    match unit.scale() {
        Some((base, true)) if value > 0.0 => show_total((value * base).round() as i128, true),
        _ => format!("{value}"),
    }
}

fn show_int(value: i64, unit: Unit) -> String {
    let Some((base, is_time)) = unit.scale() else { return value.to_string() };
    if value <= 0 {
        return value.to_string();
    }
    show_total(value as i128 * base as i128, is_time)
}

/// In the largest unit of which it is a whole number; microseconds or bytes are given.
fn show_total(total: i128, is_time: bool) -> String {
    let units: &[(&str, i128)] = if is_time {
        &[
            ("d", 86_400_000_000),
            ("h", 3_600_000_000),
            ("min", 60_000_000),
            ("s", 1_000_000),
            ("ms", 1000),
            ("us", 1),
        ]
    } else {
        &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)]
    };
    for (name, size) in units {
        if total % size == 0 {
            return format!("{}{name}", total / size);
        }
    }
    total.to_string()
}

/// Settings whose value is a list of names, each an identifier of its own: SET quotes them where they need it.
const LISTS_OF_NAMES: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Settings whose value is another list.
const LISTS: [&str; 7] = [
    "datestyle",
    "listen_addresses",
    "log_destination",
    "plpgsql.extra_errors",
    "plpgsql.extra_warnings",
    "synchronous_standby_names",
    "wal_consistency_checking",
];

/// Whether a setting's value is a list of names.
pub fn is_list_of_names(name: &str) -> bool {
    LISTS_OF_NAMES.iter().any(|list| list.eq_ignore_ascii_case(name))
}

/// Whether SET takes several values for a setting.
pub fn is_list(name: &str) -> bool {
    is_list_of_names(name) || LISTS.iter().any(|list| list.eq_ignore_ascii_case(name))
}

/// Splits a list of identifiers: commas, blanks, quotes as in SQL; bare names are folded to lower
/// case. None when it is malformed.
pub fn split_names(text: &str) -> Option<Vec<String>> {
    split_list(text, |c, name| name.extend(c.to_lowercase()))
}

/// Splits a list of libraries: as [`split_names`], but with the letters that are written.
pub fn split_libraries(text: &str) -> Option<Vec<String>> {
    split_list(text, |c, name| name.push(c))
}

/// Splits a list whose bare names are made by `add`, letter by letter.
fn split_list(text: &str, add: impl Fn(char, &mut String)) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut chars = text.trim().chars().peekable();
    if chars.peek().is_none() {
        return Some(names);
    }
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut name = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next()? {
                    '"' if chars.next_if_eq(&'"').is_some() => name.push('"'),
                    '"' => break,
                    c => name.push(c),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',' && !c.is_whitespace()) {
                add(c, &mut name);
            }
            if name.is_empty() {
                return None;
            }
        }
        names.push(name);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.next() {
            None => return Some(names),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SettingId {
        SettingId::find(name).expect("a known setting")
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(id("datestyle").def().name, "DateStyle");
        assert_eq!(id("WORK_MEM"), setting::WORK_MEM);
        assert!(SettingId::find("nope").is_none());
    }

    #[test]
    fn units_convert_and_print_as_postgresql_does() {
        let shown = |name: &str, text: &str| show(id(name), &parse(id(name), text).unwrap());
        assert_eq!(shown("work_mem", "64MB"), "64MB");
        assert_eq!(shown("work_mem", "4096"), "4MB");
        assert_eq!(shown("work_mem", "4097"), "4097kB");
        assert_eq!(shown("shared_buffers", "128 MB"), "128MB");
        assert_eq!(shown("statement_timeout", "1.5s"), "1500ms");
        assert_eq!(shown("statement_timeout", "0"), "0");
        assert_eq!(shown("checkpoint_timeout", "5min"), "5min");
        assert_eq!(shown("random_page_cost", "1.1"), "1.1");
    }

    #[test]
    fn bad_values_say_what_is_allowed() {
        let error =
            |name: &str, text: &str| parse(id(name), text).unwrap_err().message().to_owned();
        assert_eq!(
            error("work_mem", "1kB"),
            "1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)"
        );
        assert_eq!(error("work_mem", "1min"), "invalid value for parameter \"work_mem\": \"1min\"");
        assert_eq!(error("fsync", "maybe"), "parameter \"fsync\" requires a Boolean value");
    }
}
