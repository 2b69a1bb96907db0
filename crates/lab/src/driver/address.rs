//! A server's address: `postgres://user:password@host:port/database`, as libpq reads it in the main.

use std::path::PathBuf;
use std::str::FromStr;

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's, version 3.0.
    #[default]
    PostgreSql,
    /// MySQL's and MariaDB's; only for servers that the laboratory starts itself.
    MySql,
}

/// An address with what is needed to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or number, or the folder of a Unix socket (then it begins with `/`).
    pub host: String,
    /// TCP port, or the number in the Unix socket's name.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Its password, where one is needed.
    pub password: Option<String>,
    /// Database.
    pub database: String,
    /// The protocol.
    pub dialect: Dialect,
}

impl Address {
    /// The Unix socket's path, if this is one.
    pub fn socket(&self) -> Option<PathBuf> {
        let folder = self.host.starts_with('/').then(|| PathBuf::from(&self.host))?;
        Some(folder.join(format!(".s.PGSQL.{}", self.port)))
    }

    /// The address without its password, for results and messages.
    pub fn shown(&self) -> String {
        let (host, port) = (&self.host, self.port);
        match self.socket() {
            Some(_) => {
                format!("postgres://{}@/{}?host={host}&port={port}", self.user, self.database)
            }
            None if host.contains(':') => {
                format!("postgres://{}@[{host}]:{port}/{}", self.user, self.database)
            }
            None if self.dialect == Dialect::MySql => {
                format!("mysql://{}@{host}:{port}/{}", self.user, self.database)
            }
            None => format!("postgres://{}@{host}:{port}/{}", self.user, self.database),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// Missing parts come from `PGUSER` or `USER` and `PGPASSWORD`, else they are `postgres`, port 5432
    /// and the user's name for the database.
    fn from_str(text: &str) -> Result<Address, String> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|s| text.strip_prefix(s));
        let rest =
            rest.ok_or("an address looks like postgres://user:password@host:port/database")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (login, None),
        };
        let (host, port) = host_and_port(place)?;
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let mut address = Address {
            host: decode(host)?,
            port: if port.is_empty() { 5432 } else { number(port)? },
            user: decode(user)?,
            password: password.or_else(|| variable("PGPASSWORD")),
            database: decode(database)?,
            dialect: Dialect::PostgreSql,
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            address.option(pair)?;
        }
        if address.host.is_empty() {
            address.host = "localhost".to_owned();
        }
        if address.user.is_empty() {
            let known = variable("PGUSER").or_else(|| variable("USER"));
            address.user = known.unwrap_or_else(|| "postgres".to_owned());
        }
        if address.database.is_empty() {
            address.database.clone_from(&address.user);
        }
        Ok(address)
    }
}

impl Address {
    fn option(&mut self, pair: &str) -> Result<(), String> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        match name {
            "host" => self.host = value,
            "port" => self.port = number(&value)?,
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "dbname" => self.database = value,
            "sslmode" if matches!(value.as_str(), "disable" | "allow" | "prefer") => {}
            "sslmode" => return Err(format!("sslmode={value}: the laboratory does not speak TLS")),
            _ => return Err(format!("unknown option {name:?} in the address")),
        }
        Ok(())
    }
}

fn host_and_port(place: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a ] is missing in the address")?;
        return Ok((host, rest.strip_prefix(':').unwrap_or_default()));
    }
    Ok(place.rsplit_once(':').unwrap_or((place, "")))
}

fn number(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no port"))
}

/// A part of an address.
fn decode(text: &str) -> Result<String, String> {
    let bytes = base::percent::decode(text);
    let bytes = bytes.ok_or_else(|| format!("{text:?}: two digits must follow %"))?;
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_password() {
        for (text, shown) in [
            ("postgres://u:p%40ss@db.example:5433/x", "postgres://u@db.example:5433/x"),
            ("postgresql://u@[::1]/", "postgres://u@[::1]:5432/u"),
            ("postgres://u@/d?host=/tmp&port=7", "postgres://u@/d?host=/tmp&port=7"),
            ("postgres://u@%2Ftmp:7/d", "postgres://u@/d?host=/tmp&port=7"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.shown(), shown);
            assert_eq!(address.shown().parse::<Address>().unwrap().shown(), shown);
        }
        let address: Address = "postgres://u:p%40ss@h/x".parse().unwrap();
        assert_eq!(address.password.as_deref(), Some("p@ss"));
        for wrong in
            ["mysql://x", "postgres://h:x/", "postgres://h/?sslmode=require", "postgres://%4"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
