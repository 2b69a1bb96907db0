//! An answer, complete in memory before it is sent.

/// The sources that a page of ours may load: its own scripts, style and fonts, nothing from elsewhere. Scripts come last: the hashes
/// of those inside a page follow.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; \
                      frame-ancestors 'self'; base-uri 'none'; form-action 'none'; script-src 'self'";
/// The same for a flame graph, whose script is part of it; it runs as a stranger.
const SVG_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
                          style-src 'unsafe-inline'; frame-ancestors 'self'; \
                          sandbox allow-scripts";

/// How to say who one is.
const CHALLENGE: &str = "WWW-Authenticate: Basic realm=\"threadgres\", charset=\"UTF-8\"\r\n";

/// See the module's documentation.
#[derive(Debug)]
pub struct Response {
    /// HTTP's number.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// The content.
    pub body: Vec<u8>,
    /// Only a failure: the connection ends with it.
    pub close: bool,
    /// Hashes of the scripts inside a page, each after a space; empty: it may have none.
    pub scripts: String,
    /// Where to look instead; empty: here.
    pub location: &'static str,
}

impl Response {
    /// Content of some media type.
    pub fn ok(kind: &'static str, body: impl Into<Vec<u8>>) -> Response {
        let body = body.into();
        Response { status: 200, kind, body, close: false, scripts: String::new(), location: "" }
    }

    /// JSON.
    pub fn json(value: &serde_json::Value) -> Response {
        Response::ok("application/json", value.to_string())
    }

    /// A failure that leaves the connection usable.
    pub fn fail(status: u16, why: &str) -> Response {
        let kind = "text/plain; charset=utf-8";
        Response { status, ..Response::ok(kind, format!("{why}\n")) }
    }

    /// It is at another path of this server.
    pub fn moved(location: &'static str) -> Response {
        Response { location, ..Response::fail(301, location) }
    }

    /// A failure after which it is unknown where the next request would begin.
    pub fn refuse(status: u16, why: &str) -> Response {
        Response { close: true, ..Response::fail(status, why) }
    }

    /// The bytes to send.
    pub fn encode(self, head: bool, close: bool) -> Vec<u8> {
        let policy = if self.kind == "image/svg+xml" { SVG_POLICY } else { POLICY };
        let extra = match (self.status, self.location) {
            (401, _) => CHALLENGE.to_owned(),
            (_, "") => String::new(),
            (_, location) => format!("Location: {location}\r\n"),
        };
        let connection = if close || self.close { "close" } else { "keep-alive" };
        let mut out = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\
             Cache-Control: no-store\r\nContent-Security-Policy: {policy}{}\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n{extra}\r\n",
            self.status,
            reason(self.status),
            self.kind,
            self.body.len(),
            self.scripts,
        )
        .into_bytes();
        if !head {
            out.extend_from_slice(&self.body);
        }
        out
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
