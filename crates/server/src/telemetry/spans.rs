//! Spans of statements: the part of a distributed trace that the server knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sched::SpinLock;
use serde_json::{Value, json};

use super::json::{attribute, number, unix_ns};

/// Spans that wait to be sent; more are dropped.
const SPANS_MAX: usize = 4096;
/// A span of a server, in OTLP's words.
const SERVER: u32 = 2;
/// The status of a span that failed.
const ERROR: u32 = 2;

/// The place in a trace that a statement was sent from: W3C's `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace: u128,
    /// The caller's span.
    pub parent: u64,
}

impl Context {
    /// Of a `traceparent`: `00-<32 digits>-<16 digits>-<2 digits>`. None: it is none, or the trace is not sampled.
    pub fn parse(text: &str) -> Option<Context> {
        let mut parts = text.trim().splitn(4, '-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (parent, flags) = (parts.next()?, parts.next()?);
        let digits = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let flags = flags.get(..2)?;
        if !digits(version, 2) || version == "ff" || !digits(trace, 32) || !digits(parent, 16) {
            return None;
        }
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        let context = Context {
            trace: u128::from_str_radix(trace, 16).ok()?,
            parent: u64::from_str_radix(parent, 16).ok()?,
        };
        (is_sampled && context.trace != 0 && context.parent != 0).then_some(context)
    }

    /// Of a comment in a statement's text: `traceparent='00-…'`.
    pub fn of_comment(text: &str) -> Option<Context> {
        /// Characters of a `traceparent`.
        const LEN: usize = 55;
        let (_, rest) = text.rsplit_once("traceparent=")?;
        let rest = rest.strip_prefix('\'').unwrap_or(rest);
        Context::parse(rest.get(..LEN)?)
    }
}

/// A statement of a trace.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its place.
    pub context: Context,
    /// The command: `SELECT`.
    pub name: &'static str,
    /// When it began and ended, in microseconds since 2000.
    pub began: i64,
    /// See `began`.
    pub ended: i64,
    /// Its text without constants.
    pub text: Arc<str>,
    /// Its query identifier.
    pub statement: u64,
    /// The database's name.
    pub database: Arc<str>,
    /// The user's.
    pub user: Arc<str>,
    /// The session.
    pub pid: i32,
    /// Rows returned or changed.
    pub rows: u64,
    /// How long it waited, microseconds.
    pub waited_us: u64,
    /// SQLSTATE and message, if it failed.
    pub error: Option<(String, String)>,
}

impl Span {
    /// As OTLP has it.
    pub(super) fn json(&self) -> Value {
        let mut attributes = vec![
            attribute("db.system.name", "postgresql"),
            attribute("db.namespace", &self.database),
            attribute("db.operation.name", self.name),
            attribute("db.query.text", &self.text),
            attribute("user.name", &self.user),
            number("db.response.returned_rows", self.rows as i64),
            number("threadgres.query_id", self.statement as i64),
            number("threadgres.pid", self.pid.into()),
            number("threadgres.waited_us", self.waited_us as i64),
        ];
        let status = match &self.error {
            Some((code, message)) => {
                attributes.push(attribute("db.response.status_code", code));
                json!({ "code": ERROR, "message": message })
            }
            None => json!({}),
        };
        json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", span_id()),
            "parentSpanId": format!("{:016x}", self.context.parent),
            "name": self.name, "kind": SERVER,
            "startTimeUnixNano": unix_ns(self.began), "endTimeUnixNano": unix_ns(self.ended),
            "attributes": attributes, "status": status,
        })
    }
}

/// An identifier that no other span of a trace has.
fn span_id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

/// Spans that wait to be sent.
#[derive(Default)]
pub struct Spans {
    wanted: AtomicBool,
    waiting: SpinLock<Vec<Span>>,
}

impl Spans {
    /// Whether anybody wants spans.
    #[inline]
    pub fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Says whether anybody does.
    pub(super) fn turn(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
        if !wanted {
            self.take();
        }
    }

    /// Keeps one to be sent, if there is room.
    pub fn add(&self, span: Span) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < SPANS_MAX {
            waiting.push(span);
        }
    }

    /// Takes all.
    pub(super) fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.waiting.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn contexts_are_found_in_settings_and_comments() {
        let context = Context::parse(PARENT).unwrap();
        assert_eq!(context.parent, 0x00f0_67aa_0ba9_02b7);
        let text = format!("SELECT 1 /*route='x',traceparent='{PARENT}'*/");
        assert_eq!(Context::of_comment(&text), Some(context));
        assert_eq!(
            Context::of_comment(&format!("/* traceparent={PARENT} */ SELECT 1")),
            Some(context)
        );
        for wrong in [
            "",
            "SELECT 1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf9é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::parse(wrong), None, "{wrong}");
            assert_eq!(Context::of_comment(&format!("traceparent='{wrong}'")), None, "{wrong}");
        }
    }

    #[test]
    fn a_span_is_written_as_the_protocol_wants_it() {
        let span = Span {
            context: Context::parse(PARENT).unwrap(),
            name: "SELECT",
            began: 1,
            ended: 3,
            text: "SELECT $1".into(),
            statement: 7,
            database: "shop".into(),
            user: "clerk".into(),
            pid: 5,
            rows: 2,
            waited_us: 1,
            error: Some(("22012".to_owned(), "division by zero".to_owned())),
        };
        let json = span.json();
        assert_eq!(json["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(json["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(json["endTimeUnixNano"], "946684800000003000");
        assert_eq!(json["status"]["code"], 2);
        assert_ne!(json["spanId"], span.json()["spanId"]);
    }
}
