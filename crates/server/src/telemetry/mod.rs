//! OpenTelemetry: metrics and traces of statements, posted to a collector as OTLP's JSON (version 1 of the protocol).
//!
//! ```text
//!   /metrics ──metrics.rs──► otlp_endpoint/v1/metrics     every otlp_interval
//!   a statement that ends ─► Spans ──spans.rs──► otlp_endpoint/v1/traces
//! ```
//! * A statement has a span when it carries the context of a trace that is sampled: in the setting `traceparent`, or in a
//!   comment (`/* traceparent='00-…' */`, as sqlcommenter writes it). Nothing else is traced, so nothing else costs.
//! * What a collector does not take is dropped and counted, never waited for.

mod json;
mod metrics;
pub mod post;
pub mod spans;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{live_int, setting};
use serde_json::{Value, json};

use crate::log;
use crate::server::Server;
use json::attribute;
use spans::Span;

/// The server as the source of what is sent.
fn resource(server: &Server) -> Value {
    let (values, _) = server.values();
    let name = match values.settings.str(setting::CLUSTER_NAME) {
        "" => "threadgres",
        name => name,
    };
    json!({ "attributes": [
        attribute("service.name", name),
        attribute("service.version", env!("CARGO_PKG_VERSION")),
        attribute("service.instance.id", &server.engine.storage.dir().display().to_string()),
    ] })
}

fn scope() -> Value {
    json!({ "name": "threadgres", "version": env!("CARGO_PKG_VERSION") })
}

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    let mut failed = false;
    loop {
        let (values, _) = server.values();
        let endpoint = values.settings.str(setting::OTLP_ENDPOINT).trim_end_matches('/').to_owned();
        server.spans.turn(!endpoint.is_empty());
        if !endpoint.is_empty() {
            match send(server, &endpoint) {
                Ok(()) => failed = false,
                Err(error) if !failed => {
                    failed = true;
                    log::info(format_args!("telemetry: {error}"));
                }
                Err(_) => {}
            }
        }
        let pause = Duration::from_secs(live_int(setting::OTLP_INTERVAL).max(1) as u64);
        let until = (!endpoint.is_empty()).then(|| Instant::now() + pause);
        server.exporter.await_work(WaitEvent::ActivityThreadMain, until);
        if sched::check_interrupts().is_err() {
            return;
        }
    }
}

fn send(server: &Server, endpoint: &str) -> base::Result<()> {
    let spans = server.spans.take();
    let sent = if spans.is_empty() {
        Ok(())
    } else {
        let spans: Vec<Value> = spans.iter().map(Span::json).collect();
        let body = json!({ "resourceSpans": [{
            "resource": resource(server),
            "scopeSpans": [{ "scope": scope(), "spans": spans }],
        }] });
        post::json(&format!("{endpoint}/v1/traces"), &body.to_string())
    };
    let text = crate::http::metrics::text(server);
    let body = json!({ "resourceMetrics": [{
        "resource": resource(server),
        "scopeMetrics": [{ "scope": scope(), "metrics": metrics::of_text(&text, server.started) }],
    }] });
    post::json(&format!("{endpoint}/v1/metrics"), &body.to_string())?;
    sent
}
