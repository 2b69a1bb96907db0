//! A small HTTP client that posts: for webhooks and collectors beside the server. Plain HTTP only; what leaves the
//! machine goes through a collector or a proxy that encrypts it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use base::{Error, Result, WaitEvent, err};

/// How long a connection, a write and an answer may take each.
const PATIENCE: Duration = Duration::from_secs(5);
/// So much of an answer is read.
const ANSWER_MAX: u64 = 64 << 10;

/// The parts of an address `http://host[:port][/path]`.
fn parts(url: &str) -> Result<(String, String)> {
    let rest = url.strip_prefix("http://").filter(|rest| !rest.is_empty());
    let Some(rest) = rest else {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "the address of \"{}\" does not begin with http://",
            shown(url)
        ));
    };
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { host.to_owned() } else { format!("{host}:80") };
    Ok((host, path.to_owned()))
}

/// An address as others may see it: without user and path, which are often what only its owner should know.
fn shown(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// Posts JSON.
///
/// # Errors
/// `22023` for an address that is none; `08001` when nobody answers there, or with anything but success.
pub fn json(url: &str, body: &str) -> Result<()> {
    let (host, path) = parts(url)?;
    let send = || talk(&host, &path, body);
    let answer = sched::io_wait(WaitEvent::IOTelemetryPost, send);
    let failed = |why: &dyn std::fmt::Display| {
        err!(SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, "could not post to {}: {why}", shown(url))
    };
    let answer = answer.map_err(|error: io::Error| -> Error { failed(&error) })?;
    let status = answer.split_whitespace().nth(1).unwrap_or("no answer");
    if status.starts_with('2') { Ok(()) } else { Err(failed(&status)) }
}

fn talk(host: &str, path: &str, body: &str) -> io::Result<String> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return exchange(stream, host, path, body),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn exchange(mut stream: TcpStream, host: &str, path: &str, body: &str) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\nUser-Agent: threadgres/{}\r\n\r\n",
        body.len(),
        env!("CARGO_PKG_VERSION")
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_no_paths() {
        let error = json("https://u:p@hooks.example/T0/secret", "").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("hooks.example") && !text.contains("T0") && !text.contains("u:p"));
    }

    #[test]
    fn addresses_have_ports_and_paths() {
        let of = |url: &str| parts(url).unwrap();
        assert_eq!(of("http://a:4318/v1"), ("a:4318".to_owned(), "/v1".to_owned()));
        assert_eq!(of("http://a"), ("a:80".to_owned(), "/".to_owned()));
        for wrong in ["", "https://a", "http://"] {
            assert_eq!(parts(wrong).unwrap_err().code().as_str(), "22023");
        }
    }
}
