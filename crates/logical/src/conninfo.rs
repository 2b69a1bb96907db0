//! Connection strings: `key=value` pairs as libpq reads them, and URIs.
//! Source: the manual's section 34.1.1.

use std::collections::BTreeMap;

/// The parameters of libpq 15.
const KNOWN: [&str; 41] = [
    "service",
    "user",
    "password",
    "passfile",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "client_encoding",
    "options",
    "application_name",
    "fallback_application_name",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslmode",
    "sslcompression",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "requirepeer",
    "require_auth",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "gssencmode",
    "krbsrvname",
    "gsslib",
    "replication",
    "target_session_attrs",
    "requiressl",
    "authtype",
    "tty",
    "load_balance_hosts",
];

/// The parameters that a connection string gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conninfo {
    values: BTreeMap<String, String>,
}

impl Conninfo {
    /// Reads a connection string.
    ///
    /// # Errors
    /// libpq's words for what is wrong.
    pub fn parse(text: &str) -> Result<Conninfo, String> {
        let trimmed = text.trim_start();
        for prefix in ["postgresql://", "postgres://"] {
            if let Some(rest) = trimmed.strip_prefix(prefix) {
                return Conninfo::parse_uri(rest);
            }
        }
        let mut out = Conninfo::default();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let skip = |at: &mut usize| {
            while chars.get(*at).is_some_and(|c| c.is_ascii_whitespace()) {
                *at += 1;
            }
        };
        loop {
            skip(&mut at);
            if at == chars.len() {
                return Ok(out);
            }
            let begin = at;
            while chars.get(at).is_some_and(|c| *c != '=' && !c.is_ascii_whitespace()) {
                at += 1;
            }
            let name: String = chars[begin..at].iter().collect();
            skip(&mut at);
            if chars.get(at) != Some(&'=') {
                return Err(format!("missing \"=\" after \"{name}\" in connection info string"));
            }
            at += 1;
            skip(&mut at);
            let mut value = String::new();
            if chars.get(at) == Some(&'\'') {
                at += 1;
                loop {
                    match chars.get(at) {
                        None => {
                            return Err(
                                "unterminated quoted string in connection info string".to_owned()
                            );
                        }
                        Some('\'') => break,
                        Some('\\') => {
                            at += 1;
                            value.extend(chars.get(at));
                        }
                        Some(c) => value.push(*c),
                    }
                    at += 1;
                }
                at += 1;
            } else {
                while let Some(c) = chars.get(at).filter(|c| !c.is_ascii_whitespace()) {
                    if *c == '\\' {
                        at += 1;
                        value.extend(chars.get(at));
                    } else {
                        value.push(*c);
                    }
                    at += 1;
                }
            }
            out.put(&name, value)?;
        }
    }

    fn put(&mut self, name: &str, value: String) -> Result<(), String> {
        if !KNOWN.contains(&name) {
            return Err(format!("invalid connection option \"{name}\""));
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// `[user[:password]@][host][:port][/dbname][?name=value[&…]]`
    fn parse_uri(rest: &str) -> Result<Conninfo, String> {
        let mut out = Conninfo::default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, dbname) = place.split_once('/').unwrap_or((place, ""));
        let (who, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let (host, port) = match place.strip_prefix('[').and_then(|p| p.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or("")),
            None => place.rsplit_once(':').unwrap_or((place, "")),
        };
        let parts = [
            ("user", user),
            ("password", password),
            ("host", host),
            ("port", port),
            ("dbname", dbname),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            out.put(name, decode(value)?)?;
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!(
                    "missing key/value separator \"=\" in URI query parameter: \"{pair}\""
                ));
            };
            let name = if name == "ssl" && value == "true" { "sslmode" } else { name };
            if !KNOWN.contains(&name) {
                return Err(format!("invalid URI query parameter: \"{name}\""));
            }
            let value = if name == "sslmode" && value == "true" { "require" } else { value };
            out.put(name, decode(value)?)?;
        }
        Ok(out)
    }

    /// The same with one parameter more, or another value of it.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Conninfo {
        let mut out = self.clone();
        out.values.insert(name.to_owned(), value.to_owned());
        out
    }

    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The port; libpq's default when none is given.
    ///
    /// # Errors
    /// libpq's words for a number that is no port.
    pub fn port(&self) -> Result<u16, String> {
        match self.get("port").filter(|port| !port.is_empty()) {
            None => Ok(5432),
            Some(text) => match text.trim().parse::<i64>() {
                Ok(port) if (1..=65535).contains(&port) => Ok(port as u16),
                Ok(_) => Err(format!("invalid port number: \"{text}\"")),
                Err(_) => {
                    Err(format!("invalid integer value \"{text}\" for connection option \"port\""))
                }
            },
        }
    }
}

/// A part of a URI.
fn decode(text: &str) -> Result<String, String> {
    let invalid = || format!("invalid percent-encoded token: \"{text}\"");
    let bytes = base::percent::decode(text).ok_or_else(invalid)?;
    if bytes.contains(&0) {
        return Err(format!("forbidden value %00 in percent-encoded value: \"{text}\""));
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::Conninfo;

    #[test]
    fn pairs_are_read_as_libpq_reads_them() {
        let read = Conninfo::parse("host=a port = 5433 password='it\\'s \\\\' dbname=b").unwrap();
        assert_eq!(read.get("host"), Some("a"));
        assert_eq!(read.port(), Ok(5433));
        assert_eq!(read.get("password"), Some("it's \\"));
        assert_eq!(read.get("dbname"), Some("b"));
        let error = |text: &str| Conninfo::parse(text).unwrap_err();
        assert_eq!(error("foo"), "missing \"=\" after \"foo\" in connection info string");
        assert_eq!(error("i_dont_exist=param"), "invalid connection option \"i_dont_exist\"");
        let port = Conninfo::parse("port=-1").unwrap().port();
        assert_eq!(port, Err("invalid port number: \"-1\"".to_owned()));
    }

    #[test]
    fn uris_are_read() {
        let read = Conninfo::parse("postgres://u%40x:p@[::1]:77/d?application_name=z").unwrap();
        assert_eq!(read.get("user"), Some("u@x"));
        assert_eq!(read.get("password"), Some("p"));
        assert_eq!(read.get("host"), Some("::1"));
        assert_eq!(read.port(), Ok(77));
        assert_eq!(read.get("dbname"), Some("d"));
        assert_eq!(read.get("application_name"), Some("z"));
    }
}
