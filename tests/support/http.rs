//! A small HTTP client: one request a connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// 200 and the like; 0 when the connection ended without an answer.
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

/// GET of a path from the server's own page.
pub fn get(port: u16, path: &str) -> Answer {
    talk(
        port,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"),
    )
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
