//! A request's head: what of it matters here.

use std::net::IpAddr;

use super::response::Response;

/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub struct Request<'a> {
    /// HEAD: the answer's body is not sent.
    pub head: bool,
    /// Without the query.
    pub path: &'a str,
    /// `name=value&…`, as sent.
    pub query: &'a str,
    /// The `Host`, without port and brackets.
    host: &'a str,
    /// Whether the browser says that the page that asks is another site's.
    cross_site: bool,
    /// The `Authorization` header; empty: none.
    pub authorization: &'a str,
    /// The connection is closed after the answer.
    pub close: bool,
}

/// Reads a head. None: it isn't complete. Else the request and the head's length, or the answer
/// that says what is wrong with it.
pub fn parse(bytes: &[u8]) -> Option<Result<(Request<'_>, usize), Response>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(Err(Response::refuse(431, "the request's head is too large")));
        }
        Err(_) => return Some(Err(Response::refuse(400, "not an HTTP request"))),
    };
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        head: parsed.method == Some("HEAD"),
        path,
        query,
        host: "",
        cross_site: false,
        authorization: "",
        close: parsed.version == Some(0),
    };
    if !matches!(parsed.method, Some("GET" | "HEAD")) {
        return Some(Err(Response::refuse(405, "only GET and HEAD")));
    }
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or("").trim();
        match header.name.to_ascii_lowercase().as_str() {
            "host" => request.host = without_port(value),
            "connection" => request.close |= value.eq_ignore_ascii_case("close"),
            "authorization" => request.authorization = value,
            "sec-fetch-site" => request.cross_site = value == "cross-site",
            "content-length" if value == "0" => {}
            "content-length" | "transfer-encoding" => {
                return Some(Err(Response::refuse(413, "a request has no body here")));
            }
            _ => {}
        }
    }
    Some(Ok((request, length)))
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    }
}

impl<'a> Request<'a> {
    /// Whether a browser that asks was told to by somebody on this machine: the host is a loopback
    /// address or `localhost`, which no foreign name server decides, and the page is not another
    /// site's.
    pub fn is_local(&self) -> bool {
        let address = self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        !self.cross_site && (address || self.host.eq_ignore_ascii_case("localhost"))
    }

    /// A parameter of the query. Only plain words and numbers are understood.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.query
            .split('&')
            .filter_map(|p| p.split_once('='))
            .find(|(n, _)| *n == name)
            .map(|p| p.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Request<'_> {
        parse(text.as_bytes()).expect("complete").map_err(|r| r.status).expect("well-formed").0
    }

    fn refused(text: &str) -> u16 {
        parse(text.as_bytes()).expect("complete").expect_err("refused").status
    }

    #[test]
    fn what_matters_is_read() {
        let r = ok("GET /a/b?seconds=5&kind=cpu HTTP/1.1\r\nHost: [::1]:80\r\n\r\nrest");
        assert_eq!((r.path, r.parameter("kind"), r.close), ("/a/b", Some("cpu"), false));
        assert_eq!(r.parameter("absent"), None);
        assert!(r.is_local());
        assert!(ok("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").close);
        assert!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n").is_none());
    }

    #[test]
    fn strangers_are_known() {
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:8432", ""] {
            assert!(!ok(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).is_local(), "{host}");
        }
        let cross = "GET / HTTP/1.1\r\nHost: localhost:8432\r\nSec-Fetch-Site: cross-site\r\n\r\n";
        assert!(!ok(cross).is_local());
    }

    #[test]
    fn what_is_not_served_is_refused() {
        assert_eq!(refused("POST / HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(refused("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 413);
        assert_eq!(refused("\0\0\0\x08\x04\x52\x16\x2f"), 400);
        assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES_MAX))), 431);
        let many: String = (0..=HEADERS_MAX).map(|i| format!("h{i}: x\r\n")).collect();
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), 431);
    }
}
