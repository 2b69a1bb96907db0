//! The options of postgres_fdw, by what has them.

use base::{Result, err};
use catalog::system::class;
use exec::context::ExecContext;
use exec::rights;
use types::Datum;
use types::foreign::valid_options;
use types::func::validated;

/// `pg_foreign_table` and `pg_attribute`.
const TABLE: u32 = 3118;
const COLUMN: u32 = 1249;

/// libpq's parameters that a server may have, in libpq's order.
const CONNECTION: &[&str] = &[
    "service",
    "passfile",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "options",
    "application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslmode",
    "sslcompression",
    "sslcert",
    "sslkey",
    "sslrootcert",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "requirepeer",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "gssencmode",
    "krbsrvname",
    "gsslib",
    "target_session_attrs",
];

/// The wrapper's own, and the catalogs of what has them.
const OWN: &[(&str, &[u32])] = &[
    ("schema_name", &[TABLE]),
    ("table_name", &[TABLE]),
    ("column_name", &[COLUMN]),
    ("use_remote_estimate", &[class::SERVER, TABLE]),
    ("fdw_startup_cost", &[class::SERVER]),
    ("fdw_tuple_cost", &[class::SERVER]),
    ("extensions", &[class::SERVER]),
    ("updatable", &[class::SERVER, TABLE]),
    ("truncatable", &[class::SERVER, TABLE]),
    ("fetch_size", &[class::SERVER, TABLE]),
    ("batch_size", &[class::SERVER, TABLE]),
    ("async_capable", &[class::SERVER, TABLE]),
    ("parallel_commit", &[class::SERVER]),
    ("keep_connections", &[class::SERVER]),
    ("password_required", &[class::MAPPING]),
    ("sslcert", &[class::MAPPING]),
    ("sslkey", &[class::MAPPING]),
];

/// Whether an option of a server or user mapping is one of the connection.
pub fn is_of_connection(name: &str) -> bool {
    CONNECTION.contains(&name) || matches!(name, "user" | "password")
}

/// All options that an object of this catalog may have.
fn valid(of: u32) -> Vec<&'static str> {
    let mut out: Vec<&str> = Vec::new();
    match of {
        class::SERVER => out.extend(CONNECTION),
        class::MAPPING => out.extend(["user", "password", "sslpassword"]),
        _ => {}
    }
    out.extend(OWN.iter().filter(|(_, places)| places.contains(&of)).map(|(name, _)| *name));
    out
}

/// `postgres_fdw_validator`.
///
/// # Errors
/// `HV00D`, `42601`, `42501`.
pub fn validate(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (list, of) = validated(args);
    for (name, value) in &list {
        let valid = valid(of);
        if !valid.contains(&name.as_str()) {
            let hint = valid_options(&valid);
            return Err(err!(FDW_INVALID_OPTION_NAME, "invalid option \"{name}\"").hint(hint));
        }
        check(name, value)?;
        let superuser_only = match name.as_str() {
            "password_required" => (base::settings::parse_bool(value) == Some(false))
                .then_some("password_required=false"),
            "sslcert" | "sslkey" if of == class::MAPPING => Some("sslcert and sslkey"),
            _ => None,
        };
        if let Some(what) = superuser_only
            && !rights::is_superuser(cx)
        {
            return Err(match what {
                "password_required=false" => {
                    err!(INSUFFICIENT_PRIVILEGE, "password_required=false is superuser-only").hint(
                        "User mappings with the password_required option set to false may only be created or modified by the superuser.",
                    )
                }
                _ => err!(INSUFFICIENT_PRIVILEGE, "sslcert and sslkey are superuser-only").hint(
                    "User mappings with the sslcert or sslkey options set may only be created or modified by the superuser.",
                ),
            });
        }
    }
    Ok(Datum::Null)
}

fn check(name: &str, value: &str) -> Result<()> {
    match name {
        "use_remote_estimate"
        | "updatable"
        | "truncatable"
        | "async_capable"
        | "parallel_commit"
        | "keep_connections"
        | "password_required" => {
            if base::settings::parse_bool(value).is_none() {
                base::bail!(SYNTAX_ERROR, "{name} requires a Boolean value");
            }
        }
        "fdw_startup_cost" | "fdw_tuple_cost" => match value.trim().parse::<f64>() {
            Err(_) => {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for floating point option \"{name}\": {value}"
                )
            }
            Ok(cost) if cost < 0.0 || cost.is_nan() => base::bail!(
                INVALID_PARAMETER_VALUE,
                "\"{name}\" must be a floating point value greater than or equal to zero"
            ),
            Ok(_) => {}
        },
        "fetch_size" | "batch_size" => match value.trim().parse::<i32>() {
            Err(_) => {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for integer option \"{name}\": {value}"
                )
            }
            Ok(count) if count <= 0 => base::bail!(
                INVALID_PARAMETER_VALUE,
                "\"{name}\" must be an integer value greater than zero"
            ),
            Ok(_) => {}
        },
        _ => {}
    }
    Ok(())
}

/// `dblink_fdw_validator`: a server has parameters of connections, a user mapping who logs in.
///
/// # Errors
/// `HV00D`.
pub fn validate_link(args: &[Datum], _cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (list, of) = validated(args);
    let valid: Vec<&str> = match of {
        class::SERVER => {
            let mut valid = CONNECTION.to_vec();
            let after = valid.iter().position(|n| *n == "application_name").map_or(0, |i| i + 1);
            valid.insert(after, "fallback_application_name");
            valid
        }
        class::MAPPING => vec!["user", "password"],
        _ => Vec::new(),
    };
    match list.iter().find(|(name, _)| !valid.contains(&name.as_str())) {
        None => Ok(Datum::Null),
        Some((name, _)) => {
            let hint = valid_options(&valid);
            Err(err!(FDW_OPTION_NAME_NOT_FOUND, "invalid option \"{name}\"").hint(hint))
        }
    }
}
