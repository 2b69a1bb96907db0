//! `pg_isready`: whether a server accepts connections.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::*;

use crate::options::{Failure, parser, text};

pub const HELP: &str = "
pg_isready issues a connection check to a PostgreSQL database.

Usage:
  pg_isready [OPTION]...

Options:
  -d, --dbname=DBNAME      database name
  -q, --quiet              run quietly
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port
  -t, --timeout=SECS       seconds to wait when attempting connection, 0 disables (default: 3)
  -U, --username=USERNAME  user name to connect as";

/// The answers, with PostgreSQL's exit codes and words.
const ACCEPTS: (u8, &str) = (0, "accepting connections");
const REJECTS: (u8, &str) = (1, "rejecting connections");
const SILENT: (u8, &str) = (2, "no response");

struct Target {
    host: String,
    port: String,
    user: String,
    database: String,
    seconds: u64,
}

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let of =
        |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let user = of("PGUSER", &user.map_or_else(|| "postgres".to_owned(), |user| user.name));
    let mut target = Target {
        host: of(
            "PGHOST",
            if Path::new("/var/run/postgresql").is_dir() { "/var/run/postgresql" } else { "/tmp" },
        ),
        port: of("PGPORT", "5432"),
        database: of("PGDATABASE", &user),
        user,
        seconds: of("PGCONNECT_TIMEOUT", "3").parse().unwrap_or(3),
    };
    let mut quiet = false;
    let mut parser = parser(args);
    let usage = |failure: Failure| Failure { code: 3, ..failure };
    while let Some(arg) = parser.next().map_err(|e| usage(e.into()))? {
        match arg {
            Short('d') | Long("dbname") => target.database(&text(&mut parser).map_err(usage)?),
            Short('h') | Long("host") => target.host = text(&mut parser).map_err(usage)?,
            Short('p') | Long("port") => target.port = text(&mut parser).map_err(usage)?,
            Short('U') | Long("username") => target.user = text(&mut parser).map_err(usage)?,
            Short('t') | Long("timeout") => {
                target.seconds = text(&mut parser).map_err(usage)?.parse().unwrap_or(3);
            }
            Short('q') | Long("quiet") => quiet = true,
            other => return Err(usage(other.unexpected().into())),
        }
    }
    let (code, words) = target.ask();
    if !quiet {
        println!("{}:{} - {words}", target.host, target.port);
    }
    Ok(ExitCode::from(code))
}

impl Target {
    /// `-d` takes a connection string, too.
    fn database(&mut self, given: &str) {
        if !given.contains('=') {
            self.database = given.to_owned();
            return;
        }
        for pair in given.split_whitespace() {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = value.trim_matches('\'').to_owned();
            match name {
                "host" | "hostaddr" => self.host = value,
                "port" => self.port = value,
                "user" => self.user = value,
                "dbname" => self.database = value,
                _ => {}
            }
        }
    }

    fn ask(&self) -> (u8, &'static str) {
        let patience = (self.seconds > 0).then(|| Duration::from_secs(self.seconds));
        if self.host.starts_with('/') {
            let path = Path::new(&self.host).join(format!(".s.PGSQL.{}", self.port));
            let Ok(stream) = UnixStream::connect(path) else { return SILENT };
            let set = stream.set_read_timeout(patience).and(stream.set_write_timeout(patience));
            return if set.is_ok() { self.talk(stream) } else { SILENT };
        }
        let port = self.port.parse().unwrap_or(5432);
        let Ok(addresses) = (self.host.as_str(), port).to_socket_addrs() else { return SILENT };
        for address in addresses {
            let stream = match patience {
                Some(patience) => TcpStream::connect_timeout(&address, patience),
                None => TcpStream::connect(address),
            };
            let Ok(stream) = stream else { continue };
            if stream.set_read_timeout(patience).is_ok() {
                return self.talk(stream);
            }
        }
        SILENT
    }

    /// Says who it is, and looks at the first answer: what the server thinks of the client does not matter.
    fn talk(&self, mut stream: impl Read + Write) -> (u8, &'static str) {
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for part in ["user", &self.user, "database", &self.database, ""] {
            body.extend(part.as_bytes());
            body.push(0);
        }
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend(body);
        let mut answer = [0; 4096];
        if stream.write_all(&message).is_err() {
            return SILENT;
        }
        match stream.read(&mut answer) {
            Ok(length) if length > 0 => verdict(&answer[..length]),
            _ => SILENT,
        }
    }
}

fn verdict(answer: &[u8]) -> (u8, &'static str) {
    let cannot_connect_now = answer.windows(7).any(|w| w == b"C57P03\0");
    match answer.first() {
        Some(b'E') if cannot_connect_now => REJECTS,
        Some(b'E' | b'R' | b'v' | b'N' | b'S') => ACCEPTS,
        _ => SILENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_thinks_of_the_client_does_not_matter() {
        assert_eq!(verdict(b"R\0\0\0\x08\0\0\0\0"), ACCEPTS);
        assert_eq!(verdict(b"E\0\0\0\x20SFATAL\0C28000\0Mno\0\0"), ACCEPTS);
        assert_eq!(verdict(b"E\0\0\0\x20SFATAL\0C57P03\0Mno\0\0"), REJECTS);
        assert_eq!(verdict(b"HTTP"), SILENT);
    }
}
