//! Options of foreign data: the one validator that PostgreSQL has without extensions.

use base::{Oid, Result, err};

/// `pg_foreign_server` and `pg_user_mapping`.
const SERVER: u32 = 1417;
const MAPPING: u32 = 1418;

/// The options of connections that `postgresql_fdw_validator` knows, and the catalog of what has them.
const OPTIONS: &[(&str, u32)] = &[
    ("authtype", SERVER),
    ("service", SERVER),
    ("user", MAPPING),
    ("password", MAPPING),
    ("connect_timeout", SERVER),
    ("dbname", SERVER),
    ("host", SERVER),
    ("hostaddr", SERVER),
    ("port", SERVER),
    ("tty", SERVER),
    ("options", SERVER),
    ("requiressl", SERVER),
    ("sslmode", SERVER),
    ("gsslib", SERVER),
];

/// The hint for an option that is none.
pub fn valid_options(names: &[&str]) -> String {
    match names {
        [] => "There are no valid options in this context.".to_owned(),
        list => format!("Valid options in this context are: {}", list.join(", ")),
    }
}

/// `postgresql_fdw_validator`.
///
/// # Errors
/// `42601`.
pub fn validate(options: &[(String, String)], of: u32) -> Result<()> {
    for (name, _) in options {
        if OPTIONS.iter().any(|(known, place)| known == name && *place == of) {
            continue;
        }
        let valid: Vec<&str> =
            OPTIONS.iter().filter(|(_, place)| *place == of).map(|(name, _)| *name).collect();
        return Err(err!(SYNTAX_ERROR, "invalid option \"{name}\"").hint(valid_options(&valid)));
    }
    Ok(())
}

/// The validator's oid.
pub const VALIDATOR: Oid = Oid(2316);
