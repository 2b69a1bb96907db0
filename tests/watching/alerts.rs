//! Alerts as rows, notifications and calls of a webhook; metrics and spans for a collector.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Server, TempDir};
use serde_json::Value;

/// A program that takes what is posted: paths and bodies.
struct Collector {
    port: u16,
    posts: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let kept = posts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (mut bytes, mut part) = (Vec::new(), [0; 65536]);
                loop {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let length = head
                            .lines()
                            .find_map(|line| line.strip_prefix("Content-Length: "))
                            .and_then(|length| length.parse::<usize>().ok());
                        if body.len() >= length.expect("posts say their length") {
                            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                            let body = serde_json::from_str(body).expect("JSON");
                            kept.lock().expect("nobody panicked").push((path, body));
                            break;
                        }
                    }
                    match stream.read(&mut part) {
                        Ok(0) | Err(_) => break,
                        Ok(n) => bytes.extend(&part[..n]),
                    }
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Collector { port, posts }
    }

    /// Waits for a post for which `find` has an answer.
    #[track_caller]
    fn find<R>(&self, find: impl Fn(&str, &Value) -> Option<R>) -> R {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let posts = self.posts.lock().expect("nobody panicked").clone();
            if let Some(found) = posts.iter().find_map(|(path, body)| find(path, body)) {
                return found;
            }
            assert!(Instant::now() < until, "not among {} posts: {posts:#?}", posts.len());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

/// The settings are text inside of text.
fn set(client: &mut Client, name: &str, value: &str) {
    client.one(&format!("ALTER SYSTEM SET {name} = '{}'", value.replace('\'', "''")));
    client.one("SELECT pg_reload_conf()");
}

#[test]
fn a_rule_that_holds_is_a_row_a_notification_and_a_post() {
    let dir = TempDir::new("alerts");
    let server = Server::start(&dir.path().join("data"), &["pg_alert_interval=1"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let hook = Collector::start();
    set(&mut client, "pg_alert_webhook", &format!("http://127.0.0.1:{}/hook", hook.port));
    client.one("CREATE TABLE queue (id int)");
    let mut listener = Client::connect(server.port).expect("the server takes connections");
    listener.one("LISTEN pg_alerts");
    set(
        &mut client,
        "pg_alert_rules",
        "long_queue: SELECT count(*) > 2, count(*) || ' wait; at most 2' FROM queue; \
         wrong: SELECT 1 FROM nowhere; late for 3000 s: SELECT true; no rule",
    );
    let rules = "SELECT string_agg(name || ' ' || lasting_s || ' ' || coalesce(left(error, 15), ''), ', ') FROM pg_alert_rules";
    client.await_one(
        rules,
        "long_queue 0 , wrong 0 relation \"nowhe, late 3000 , no rule 0 a rule is \"name",
    );
    client.await_one(
        "SELECT count(*) FROM pg_alert_rules WHERE name = 'late' AND holds_since IS NOT NULL",
        "1",
    );
    assert_eq!(client.one("SELECT count(*) FROM pg_alerts"), "0");
    client.one("INSERT INTO queue VALUES (1), (2), (3)");
    let now =
        "SELECT text FROM pg_alerts WHERE rule = 'long_queue' AND until IS NULL AND since <= now()";
    client.await_one(now, "3 wait; at most 2");
    // Its words follow.
    client.one("INSERT INTO queue VALUES (4)");
    client.await_one(now, "4 wait; at most 2");
    client.one("DELETE FROM queue");
    client.await_one("SELECT count(*) FROM pg_alerts WHERE until > since", "1");
    client.await_one(
        "SELECT string_agg(event, ', ' ORDER BY at) FROM pg_events WHERE kind = 'alert'",
        "alert: long_queue: 3 wait; at most 2, alert is over: long_queue: 4 wait; at most 2",
    );
    for state in ["on", "off"] {
        let text = hook.find(|path, body| {
            let is_it = path == "/hook" && body["rule"] == "long_queue" && body["state"] == state;
            is_it.then(|| body["text"].as_str().expect("a text").to_owned())
        });
        assert!(text.ends_with("wait; at most 2"), "{text}");
    }
    let until = Instant::now() + Duration::from_secs(60);
    let mut payloads = String::new();
    while !payloads.contains("\"off\"") {
        assert!(Instant::now() < until, "told: {payloads}");
        payloads += &listener.query("SELECT 1").expect("an answer").notifications.join("\n");
    }
    assert!(payloads.contains("\"on\"") && payloads.contains("3 wait"), "{payloads}");
    // Rules that are taken away are gone, and who may not look sees nothing.
    set(&mut client, "pg_alert_rules", "");
    client.await_one("SELECT count(*) FROM pg_alert_rules", "0");
    client.one("CREATE ROLE nobody LOGIN");
    let mut nobody = Client::connect_to(server.port, "nobody", "postgres").expect("a role");
    assert_eq!(nobody.one("SELECT count(*) FROM pg_alerts"), "0");
    assert!(server.stop());
}

/// A finding of `pg_why` that lasts is an alert without a rule.
#[test]
fn a_finding_that_lasts_is_an_alert() {
    let dir = TempDir::new("alerts-finding");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE TABLE held (id int)");
    let mut holder = Client::connect(server.port).expect("the server takes connections");
    holder.one("BEGIN");
    holder.one("LOCK TABLE held");
    let mut waiter = Client::connect(server.port).expect("the server takes connections");
    waiter.send("SELECT count(*) FROM held").expect("the connection holds");
    client.await_one(
        "SELECT count(*) FROM pg_alerts WHERE rule = 'lock_queue' AND until IS NULL AND text LIKE '%LOCK TABLE held%'",
        "1",
    );
    assert!(server.stop());
}

#[test]
fn a_collector_gets_metrics_and_the_spans_of_traced_statements() {
    let dir = TempDir::new("alerts-otlp");
    let server =
        Server::start(&dir.path().join("data"), &["otlp_interval=1", "cluster_name=north"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let collector = Collector::start();
    set(&mut client, "otlp_endpoint", &format!("http://127.0.0.1:{}", collector.port));
    let (resource, sessions) = collector.find(|path, body| {
        let one = (path == "/v1/metrics").then(|| &body["resourceMetrics"][0])?;
        let metrics = one["scopeMetrics"][0]["metrics"].as_array()?;
        let found = metrics.iter().find(|metric| metric["name"] == "threadgres_sessions")?;
        Some((one["resource"].to_string(), found.clone()))
    });
    assert!(resource.contains("north"), "{resource}");
    let points = sessions["gauge"]["dataPoints"].as_array().expect("points");
    assert!(
        points.iter().any(|p| p["attributes"][0]["value"]["stringValue"] == "active"),
        "{points:?}"
    );
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let place = |span: &str, flag: &str| format!("00-{trace}-{span}-{flag}");
    client
        .one(&format!("SELECT 7 AS traced /*traceparent='{}'*/", place("00f067aa0ba902b7", "01")));
    client.one(&format!(
        "SELECT 8 AS unsampled /*traceparent='{}'*/",
        place("00f067aa0ba902b7", "00")
    ));
    client.one(&format!("SET traceparent = '{}'", place("00000000000000aa", "01")));
    client.one("SELECT 9 AS by_setting");
    let failed = client.query("SELECT 1 / (SELECT 0) AS failing").expect("an answer").error;
    assert!(failed.is_some());
    let span = |words: &str| {
        collector.find(|path, body| {
            let one = (path == "/v1/traces").then(|| &body["resourceSpans"][0]["scopeSpans"][0])?;
            let spans = one["spans"].as_array()?;
            spans.iter().find(|span| span["attributes"].to_string().contains(words)).cloned()
        })
    };
    let traced = span("AS traced");
    assert_eq!((&traced["traceId"], &traced["name"]), (&trace.into(), &"SELECT".into()));
    assert_eq!(traced["parentSpanId"], "00f067aa0ba902b7");
    assert!(traced["startTimeUnixNano"].as_str() <= traced["endTimeUnixNano"].as_str());
    assert_eq!(span("AS by_setting")["parentSpanId"], "00000000000000aa");
    let failing = span("AS failing");
    assert_eq!(
        (&failing["status"]["code"], &failing["status"]["message"]),
        (&2.into(), &"division by zero".into())
    );
    let posts = collector.posts.lock().expect("nobody panicked").clone();
    assert!(posts.iter().all(|(_, body)| !body.to_string().contains("unsampled")));
    assert!(server.stop());
}
