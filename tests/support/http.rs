//! A small HTTP client: one request a connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// 200 and the like; 0 when the connection ended without an answer.
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

/// Data directories of the servers that serve HTTP on a port.
static DIRECTORIES: Mutex<Vec<(u16, PathBuf)>> = Mutex::new(Vec::new());

/// Says whose port it is, for [`token`].
pub fn belongs(port: u16, dir: &Path) {
    DIRECTORIES.lock().expect("nobody panicked").push((port, dir.to_owned()));
}

/// The word that lets the owner of the data directory in.
pub fn token(port: u16) -> String {
    let known = DIRECTORIES.lock().expect("nobody panicked");
    let dir = known.iter().rev().find(|(p, _)| *p == port).expect("a server has the port");
    let path = dir.1.join("threadgres.http_token");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match std::fs::read_to_string(&path) {
            Ok(text) => return text.trim().to_owned(),
            Err(e) => assert!(Instant::now() < deadline, "the server makes no token: {e}"),
        }
    }
}

/// GET of a path from the server's own page, as the owner of the data directory.
pub fn get(port: u16, path: &str) -> Answer {
    get_as(port, path, &format!("Authorization: Bearer {}\r\n", token(port)))
}

/// The same with other headers, each with its line's end.
pub fn get_as(port: u16, path: &str, headers: &str) -> Answer {
    let host = format!("Host: localhost:{port}\r\nConnection: close\r\n");
    talk(port, &format!("GET {path} HTTP/1.1\r\n{host}{headers}\r\n"))
}

/// Sends bytes, reads to the end of the connection.
pub fn talk(port: u16, request: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("HTTP is served");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let mut bytes = Vec::new();
    // A refused request may end in a reset.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}
