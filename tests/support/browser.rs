//! A browser that a test operates: Chromium, told what to do by its debugging protocol over a WebSocket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long something may take to be seen on a page.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module's documentation. Dropped, it ends.
pub struct Browser {
    child: Child,
    stream: TcpStream,
    number: u64,
}

impl Browser {
    /// Opens an address in a window of this size. `dir`: for its profile.
    pub fn open(dir: &Path, url: &str, (width, height): (u32, u32)) -> Browser {
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", dir.join("operated").display()))
            .arg(format!("--window-size={width},{height}"))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium is installed (scripts/need browser)");
        let said = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut lines = said.lines();
        let port: u16 = loop {
            let line = lines.next().expect("it says where it listens").expect("a line");
            let address = line.strip_prefix("DevTools listening on ws://127.0.0.1:");
            if let Some(rest) = address {
                break rest.split('/').next().and_then(|port| port.parse().ok()).expect("a port");
            }
        };
        // The rest of its output is read, so that it does not wait for room.
        std::thread::spawn(move || lines.for_each(drop));
        let stream = connect(port);
        let mut browser = Browser { child, stream, number: 0 };
        browser.call("Runtime.enable", json!({}));
        browser
    }

    /// Calls a method of the protocol; its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let message = json!({ "id": self.number, "method": method, "params": params });
        send(&mut self.stream, &message.to_string());
        loop {
            let answer: Value = serde_json::from_str(&receive(&mut self.stream)).expect("JSON");
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, script: &str) -> Value {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{script}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn await_true(&mut self, script: &str) {
        let until = Instant::now() + PATIENCE;
        // The page's scripts may not have run yet.
        let careful =
            format!("(() => {{ try {{ return Boolean({script}) }} catch {{ return false }} }})()");
        while self.eval(&careful) != true {
            if Instant::now() > until {
                let text = self.eval("document.body.innerText");
                panic!("{script} does not become true: {text}");
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Drags with the mouse from one place of an element to another, both as parts of its width.
    pub fn drag(&mut self, selector: &str, from: f64, to: f64) {
        let find = format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView(); \
             const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()"
        );
        let found = self.eval(&find);
        let number = |n: usize| found[n].as_f64().expect("a number");
        let y = number(1) + number(3) / 2.0;
        for (kind, part) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let x = number(0) + number(2) * part;
            let params = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The list of pages, as JSON. The browser keeps the connection open after its answer.
fn pages(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the browser listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    let request = format!("GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let (mut answer, mut part) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = answer.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
            });
            if body.len() >= length.expect("it says its length").expect("a number") {
                return body.to_owned();
            }
        }
        match stream.read(&mut part).expect("the browser answers") {
            0 => return String::new(),
            n => answer.push_str(&String::from_utf8_lossy(&part[..n])),
        }
    }
}

/// The WebSocket of the first page.
fn connect(port: u16) -> TcpStream {
    let until = Instant::now() + PATIENCE;
    let path = loop {
        let pages: Value = serde_json::from_str(&pages(port)).unwrap_or_default();
        let page = pages.as_array().into_iter().flatten().find(|page| page["type"] == "page");
        if let Some(url) = page.and_then(|page| page["webSocketDebuggerUrl"].as_str()) {
            let path = url.splitn(4, '/').nth(3).expect("an address has a path");
            break format!("/{path}");
        }
        assert!(Instant::now() < until, "the browser opens no page");
    };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the browser listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream
}

/// A text in one frame. The mask that clients must use may be all zeros.
fn send(stream: &mut TcpStream, text: &str) {
    let mut frame = vec![0x81];
    match text.len() {
        len @ 0..126 => frame.push(0x80 | len as u8),
        len @ 126..65536 => {
            frame.push(0x80 | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    stream.write_all(&frame).expect("the browser listens");
}

/// The next text, in as many frames as it comes.
fn receive(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).expect("the browser answers");
        let len = match head[1] & 0x7f {
            126 => {
                let mut len = [0; 2];
                stream.read_exact(&mut len).expect("a length");
                u64::from(u16::from_be_bytes(len))
            }
            127 => {
                let mut len = [0; 8];
                stream.read_exact(&mut len).expect("a length");
                u64::from_be_bytes(len)
            }
            len => u64::from(len),
        };
        let mut part = vec![0; len as usize];
        stream.read_exact(&mut part).expect("a frame");
        // Texts and what continues them; pings are not sent on this connection.
        if head[0] & 0x0f <= 1 {
            text.extend(part);
        }
        if head[0] & 0x80 != 0 && head[0] & 0x0f <= 1 {
            return String::from_utf8_lossy(&text).into_owned();
        }
    }
}
