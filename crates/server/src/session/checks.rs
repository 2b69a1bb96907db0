//! Settings whose values need more than a type and a range: what PostgreSQL's check hooks do.

use base::settings::{self, SettingId, Value, setting};
use base::{Result, err, sqlstate};
use types::FormatContext;
use types::encodings::Encoding;
use types::io::{DateOrder, DateStyle, IntervalStyle, TimeZone};

/// Reads and checks a value.
///
/// # Errors
/// `22023` with PostgreSQL's wording.
pub fn parse(id: SettingId, text: &str) -> Result<Value> {
    let value = settings::parse(id, text)?;
    match id {
        setting::DATESTYLE => {
            let (style, order) = date_style(text, (DateStyle::Iso, DateOrder::Mdy))
                .ok_or_else(|| invalid(id, text))?;
            Ok(Value::Str(date_style_text(style, order).into()))
        }
        setting::CLIENT_ENCODING => client_encoding(text),
        setting::DEFAULT_TABLE_ACCESS_METHOD => table_method(text).map(|()| value),
        setting::TIMEZONE => time_zone(text).map(|zone| Value::Str(zone.name().into())),
        setting::APPLICATION_NAME | setting::CLUSTER_NAME => {
            let clean: String =
                text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).collect();
            Ok(Value::Str(types::io::cut_name(&clean).into()))
        }
        setting::LWLOCK_SHARED_LIMITS => {
            sched::lwlock::parse_shared_limits(text)?;
            Ok(value)
        }
        setting::DEBUG_FAULTS => base::faults::parse(text).map(|_| value),
        setting::SEARCH_PATH => match base::settings::split_names(text) {
            Some(_) => Ok(value),
            None => Err(invalid(id, text).detail("List syntax is invalid.")),
        },
        setting::OUTPUT_PLUGIN_LIBRARIES => match settings::split_libraries(text) {
            Some(_) => Ok(value),
            None => Err(invalid(id, text).detail("List syntax is invalid.")),
        },
        _ => Ok(value),
    }
}

fn invalid(id: SettingId, text: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{}\": \"{text}\"", id.def().name)
}

/// Whether it can be an access method's name; whether it is one of tables, [`existing_table_method`] knows.
fn table_method(text: &str) -> Result<()> {
    if text.is_empty() {
        let refused = invalid(setting::DEFAULT_TABLE_ACCESS_METHOD, text);
        return Err(refused.detail("default_table_access_method cannot be empty."));
    }
    Ok(())
}

/// `22023` unless a session may have this access method of tables by default.
///
/// # Errors
/// `55000` for one of indexes.
pub fn existing_table_method(text: &str, catalog: &catalog::Snapshot) -> Result<()> {
    match catalog.access_method_named(text).map(|method| method.kind) {
        Some('t') => Ok(()),
        Some(_) => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "access method \"{text}\" is not of type TABLE"
        )),
        None if text.is_empty() => table_method(text),
        None => {
            let refused = invalid(setting::DEFAULT_TABLE_ACCESS_METHOD, text);
            Err(refused.detail(format!("Table access method \"{text}\" does not exist.")))
        }
    }
}

fn client_encoding(text: &str) -> Result<Value> {
    let Some(encoding) = Encoding::find(text) else {
        return Err(invalid(setting::CLIENT_ENCODING, text));
    };
    let name = encoding.name();
    if !encoding.is_known() {
        let detail = format!("Conversion between {name} and UTF8 is not supported.");
        let message = invalid(setting::CLIENT_ENCODING, text).message().to_owned();
        return Err(base::Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message).detail(detail));
    }
    // Old drivers of Java look for the name that they sent.
    Ok(Value::Str(if text == "UNICODE" { text } else { name }.into()))
}

/// The zone that a value of `TimeZone` means.
pub fn time_zone(text: &str) -> Result<TimeZone> {
    TimeZone::parse_setting(text, &Default::default()).map_err(|detail| {
        let error = invalid(setting::TIMEZONE, text);
        match detail {
            Some(detail) => error.detail(detail),
            None => error,
        }
    })
}

/// Reads `DateStyle`: words in any order; what isn't said stays as `now`. None when it contradicts
/// itself or has an unknown word.
pub fn date_style(text: &str, now: (DateStyle, DateOrder)) -> Option<(DateStyle, DateOrder)> {
    let (mut style, mut order) = (None, None);
    for word in text.split(',').map(str::trim) {
        let word = word.to_ascii_lowercase();
        let (s, o) = match word.as_str() {
            "iso" => (Some(DateStyle::Iso), None),
            "sql" => (Some(DateStyle::Sql), None),
            w if w.starts_with("postgres") => (Some(DateStyle::Postgres), None),
            "german" => (Some(DateStyle::German), order.is_none().then_some(DateOrder::Dmy)),
            "ymd" => (None, Some(DateOrder::Ymd)),
            "dmy" | "euro" | "european" => (None, Some(DateOrder::Dmy)),
            "mdy" | "us" | "noneuro" | "noneuropean" => (None, Some(DateOrder::Mdy)),
            "default" => (Some(DateStyle::Iso), Some(DateOrder::Mdy)),
            _ => return None,
        };
        let conflict = s.is_some() && style.is_some() && s != style;
        if conflict {
            return None;
        }
        style = s.or(style);
        order = o.or(order);
    }
    Some((style.unwrap_or(now.0), order.unwrap_or(now.1)))
}

/// `DateStyle` as SHOW prints it.
fn date_style_text(style: DateStyle, order: DateOrder) -> String {
    let style = match style {
        DateStyle::Iso => "ISO",
        DateStyle::Sql => "SQL",
        DateStyle::Postgres => "Postgres",
        DateStyle::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{style}, {order}")
}

/// Reads a `DateStyle` given by a session, which keeps what the text does not say.
///
/// # Errors
/// `22023`.
pub fn parse_over(id: SettingId, text: &str, now: &FormatContext) -> Result<Value> {
    if id != setting::DATESTYLE {
        return parse(id, text);
    }
    match date_style(text, (now.date_style, now.date_order)) {
        Some((style, order)) => Ok(Value::Str(date_style_text(style, order).into())),
        None => Err(invalid(id, text)),
    }
}

/// The context that formatting values depends on.
pub fn format_context(settings: &settings::Settings) -> FormatContext {
    let (date_style, date_order) =
        date_style(settings.str(setting::DATESTYLE), Default::default()).unwrap_or_default();
    FormatContext {
        date_style,
        date_order,
        interval_style: match settings.str(setting::INTERVALSTYLE) {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        time_zone: time_zone(settings.str(setting::TIMEZONE)).unwrap_or_default(),
        extra_float_digits: settings.int(setting::EXTRA_FLOAT_DIGITS) as i32,
        text_search_config: settings.str(setting::DEFAULT_TEXT_SEARCH_CONFIG).into(),
        client_encoding: Encoding::find(settings.str(setting::CLIENT_ENCODING)).unwrap_or_default(),
        bytea_hex: settings.str(setting::BYTEA_OUTPUT) == "hex",
        isn_weak: settings.bool(setting::ISN_WEAK),
        labels_by_rank: false,
        now: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_styles_keep_what_is_not_said() {
        let show = |t: &str| {
            let now = FormatContext { date_order: DateOrder::Ymd, ..FormatContext::default() };
            parse_over(setting::DATESTYLE, t, &now).map(|v| settings::show(setting::DATESTYLE, &v))
        };
        assert_eq!(show("sql").unwrap(), "SQL, YMD");
        assert_eq!(show("German").unwrap(), "German, DMY");
        assert_eq!(show("euro, Postgres").unwrap(), "Postgres, DMY");
        assert_eq!(show("iso, sql").unwrap_err().code().as_str(), "22023");
        assert!(show("nonsense").is_err());
    }

    #[test]
    fn encodings_have_one_spelling() {
        let get = |t: &str| parse(setting::CLIENT_ENCODING, t);
        assert_eq!(get("utf-8").unwrap(), Value::Str("UTF8".into()));
        assert_eq!(get("unicode").unwrap(), Value::Str("UTF8".into()));
        assert_eq!(get("UNICODE").unwrap(), Value::Str("UNICODE".into()));
        assert_eq!(get("iso-8859-1").unwrap(), Value::Str("LATIN1".into()));
        assert_eq!(get("mule_internal").unwrap_err().code().as_str(), "0A000");
        assert_eq!(get("klingon").unwrap_err().code().as_str(), "22023");
    }

    #[test]
    fn name_lists_are_split_as_sql_does() {
        let split = |t: &str| base::settings::split_names(t).map(|v| v.join("|"));
        assert_eq!(split(r#" "$user", Public ,"A""b" "#).as_deref(), Some("$user|public|A\"b"));
        assert_eq!(split("").as_deref(), Some(""));
        assert_eq!(split("a,,b"), None);
        assert_eq!(split("a b"), None);
        assert_eq!(split("\"a"), None);
    }
}
