//! A client that says exactly what a test wants said, byte by byte, and tells what came back one
//! line a message:
//!
//! ```text
//!   R 0 · K · S name=value · Z I · T a:23,b:25 · D 1|x|NULL · C SELECT 1 · I · n · s · 1 2 3
//!   t 23,25 · E ERROR 42601 message · N WARNING 25P01 message · G 0 2 · H 0 2 · d text · c
//! ```

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection.
pub struct Raw {
    pub stream: TcpStream,
    pending: Vec<u8>,
    /// From BackendKeyData.
    pub key: (i32, i32),
    /// The same secret, whole.
    pub secret: Vec<u8>,
    /// The last error's source file and routine.
    pub origin: String,
}

/// A message: type, then body.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend(((body.len() + 4) as u32).to_be_bytes());
    out.extend(body);
    out
}

/// A start-up packet.
pub fn startup(version: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in pairs {
        body.extend(format!("{name}\0{value}\0").bytes());
    }
    body.push(0);
    let mut out = ((body.len() + 4) as u32).to_be_bytes().to_vec();
    out.extend(body);
    out
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

pub fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{text}\0").into_bytes();
    body.extend((types.len() as u16).to_be_bytes());
    types.iter().for_each(|t| body.extend(t.to_be_bytes()));
    message(b'P', &body)
}

/// Text parameters; `binary`: result in binary.
pub fn bind(portal: &str, statement: &str, values: &[Option<&str>], binary: bool) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0").into_bytes();
    body.extend(0u16.to_be_bytes());
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            Some(v) => {
                body.extend((v.len() as u32).to_be_bytes());
                body.extend(v.bytes());
            }
            None => body.extend([0xff; 4]),
        }
    }
    body.extend(if binary { &[0, 1, 0, 1][..] } else { &[0, 0][..] });
    message(b'B', &body)
}

pub fn describe(kind: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{kind}{name}\0").as_bytes())
}

pub fn close(kind: char, name: &str) -> Vec<u8> {
    message(b'C', format!("{kind}{name}\0").as_bytes())
}

pub fn execute(portal: &str, limit: u32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend(limit.to_be_bytes());
    message(b'E', &body)
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

impl Raw {
    /// Connects and says nothing.
    pub fn open(port: u16) -> Raw {
        Raw::of(TcpStream::connect(("127.0.0.1", port)).expect("the server listens"))
    }

    /// Over a connection that is there.
    pub fn of(stream: TcpStream) -> Raw {
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        Raw { stream, pending: Vec::new(), key: (0, 0), secret: Vec::new(), origin: String::new() }
    }

    /// Connects and begins a session.
    pub fn connect(port: u16) -> Raw {
        let (raw, lines) = Raw::begin(port, "postgres");
        assert_eq!(lines.first().map(String::as_str), Some("R 0"), "{lines:?}");
        raw
    }

    /// Begins a session as a role; what the server said.
    pub fn begin(port: u16, user: &str) -> (Raw, Vec<String>) {
        let mut raw = Raw::open(port);
        let lines = raw.talk(&startup(196_608, &[("user", user), ("database", "postgres")]));
        (raw, lines)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
    }

    /// Sends, then reads up to ReadyForQuery or the end of the connection (`EOF`).
    pub fn talk(&mut self, bytes: &[u8]) -> Vec<String> {
        self.send(bytes);
        self.until(|line| line.starts_with("Z ") || line == "EOF")
    }

    /// Sends, then reads up to and with the first line that begins so.
    pub fn talk_until(&mut self, bytes: &[u8], first: &str) -> Vec<String> {
        self.send(bytes);
        self.until(|line| line.starts_with(first))
    }

    /// As [`Raw::talk`] for a query string.
    pub fn query(&mut self, text: &str) -> Vec<String> {
        self.talk(&query(text))
    }

    /// Reads up to and with the first line that `last` accepts.
    pub fn until(&mut self, last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let end = last(&line) || line == "EOF";
            lines.push(line);
            if end {
                return lines;
            }
        }
    }

    /// One message.
    pub fn line(&mut self) -> String {
        loop {
            if let Some(length) = self.pending.get(1..5) {
                let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
                if self.pending.len() > length {
                    let rest = self.pending.split_off(length + 1);
                    let whole = std::mem::replace(&mut self.pending, rest);
                    return self.tell(whole[0], &whole[5..]);
                }
            }
            let mut buffer = [0; 16384];
            match self.stream.read(&mut buffer) {
                Ok(0) => return "EOF".to_owned(),
                Ok(n) => self.pending.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {
                    return "EOF".to_owned();
                }
                Err(e) => panic!("no answer: {e}"),
            }
        }
    }

    fn tell(&mut self, tag: u8, body: &[u8]) -> String {
        let int = |at: usize| i32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        let strings = || -> Vec<String> {
            body.split(|b| *b == 0).map(|s| String::from_utf8_lossy(s).into_owned()).collect()
        };
        let name = tag as char;
        match tag {
            b'R' => format!("R {}", int(0)),
            b'K' => {
                self.key = (int(0), int(4));
                self.secret = body[4..].to_vec();
                "K".to_owned()
            }
            b'A' => {
                let text = String::from_utf8_lossy(&body[4..]).into_owned();
                format!("A {}", text.trim_end_matches('\0').replace('\0', " "))
            }
            b'S' => format!("S {}={}", strings()[0], strings()[1]),
            b'Z' => format!("Z {}", body[0] as char),
            b'C' => format!("C {}", strings()[0]),
            b'E' | b'N' => {
                let strings = strings();
                let field = |f: char| {
                    let found = strings.iter().find(|s| s.starts_with(f));
                    found.map(|s| s[1..].to_owned()).unwrap_or_default()
                };
                self.origin = format!("{} {}", field('F'), field('R'));
                format!("{name} {} {} {}", field('V'), field('C'), field('M'))
            }
            b'T' => format!("T {}", fields(body)),
            b'D' => format!("D {}", values(body)),
            b't' => {
                let types: Vec<_> =
                    (0..body.len() / 4).map(|i| int(2 + i * 4).to_string()).collect();
                format!("t {}", types.join(","))
            }
            b'G' | b'H' => format!("{name} {} {}", body[0], (body.len() - 3) / 2),
            b'd' => format!("d {}", String::from_utf8_lossy(body).escape_debug()),
            b'v' => format!("v {} {}", int(0), int(4)),
            _ => name.to_string(),
        }
    }
}

fn fields(body: &[u8]) -> String {
    let mut rest = &body[2..];
    let mut out = Vec::new();
    while let Some(end) = rest.iter().position(|b| *b == 0) {
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        let ty = u32::from_be_bytes(rest[end + 7..end + 11].try_into().expect("four bytes"));
        out.push(format!("{name}:{ty}"));
        rest = &rest[end + 19..];
    }
    out.join(",")
}

fn values(body: &[u8]) -> String {
    let mut rest = &body[2..];
    let mut out = Vec::new();
    while rest.len() >= 4 {
        let length = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        rest = &rest[4..];
        let Ok(length) = usize::try_from(length) else {
            out.push("NULL".to_owned());
            continue;
        };
        out.push(String::from_utf8_lossy(&rest[..length]).escape_debug().to_string());
        rest = &rest[length..];
    }
    out.join("|")
}
