//! The rules for Prometheus and the dashboard for Grafana: every figure in them is one that the server has, and a real
//! Prometheus reads the server and takes every expression.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Server, TempDir, free_port, http};
use serde_json::Value;

fn contrib(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    std::fs::read_to_string(path).expect("the file is part of the repository")
}

/// The expressions of the dashboard and of the rules, about one server.
fn expressions(instance: &str) -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&contrib("grafana/threadgres.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("there are panels");
    let targets = panels.iter().flat_map(|p| p["targets"].as_array().expect("there are targets"));
    let text = |t: &Value| {
        let text = t["expr"].as_str().expect("a target has an expression");
        text.replace("$instance", instance).replace("$__rate_interval", "1m")
    };
    let rules = contrib("prometheus/threadgres.yml");
    let of_rules = rules.lines().filter_map(|l| l.trim().strip_prefix("expr: ")).map(str::to_owned);
    targets.map(text).chain(of_rules).collect()
}

#[test]
fn every_figure_is_one_that_the_server_has() {
    let dir = TempDir::new("prometheus");
    let port = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    server.query("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let metrics = http::get(port, "/metrics").body;
    let known: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|l| l.strip_prefix("# TYPE "))
        .filter_map(|l| l.split(' ').next())
        .collect();
    for expression in expressions("any") {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|w| w.starts_with("threadgres_")) {
            let family = ["_sum", "_count", "_bucket"].iter().find_map(|s| word.strip_suffix(s));
            assert!(known.contains(word) || family.is_some_and(|f| known.contains(f)), "{word}");
        }
    }
    assert!(server.stop());
}

/// A Prometheus that ends with the test.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer's `data.result`.
fn ask(port: u16, expression: &str) -> Result<Value, String> {
    let encoded: String = expression.bytes().map(|b| format!("%{b:02X}")).collect();
    let answer = http::get_as(port, &format!("/api/v1/query?query={encoded}"), "");
    let begin = answer.body.find('{').unwrap_or(0);
    let end = answer.body.rfind('}').map_or(0, |n| n + 1);
    let value: Value = serde_json::from_str(answer.body.get(begin..end).unwrap_or_default())
        .map_err(|e| format!("{e}: {answer:?}"))?;
    match value["status"].as_str() {
        Some("success") => Ok(value["data"]["result"].clone()),
        _ => Err(answer.body),
    }
}

#[test]
#[ignore = "wants Debian's prometheus: make prometheus"]
fn a_real_prometheus_reads_the_server() {
    let dir = TempDir::new("prometheus-real");
    let page = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={page}")]);
    // Somebody has locks.
    let mut holder = Client::connect(server.port).expect("a connection");
    holder.query("CREATE TABLE t (a int)").expect("it is made");
    holder.query("BEGIN; LOCK TABLE t").expect("it is locked");
    let rules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus/threadgres.yml");
    let rules = rules.canonicalize().expect("the rules are there");
    let checked = Command::new("promtool").args(["check", "rules"]).arg(&rules).output();
    let checked = checked.expect("promtool is installed");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let instance = format!("localhost:{page}");
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n  \
         - job_name: threadgres\n    authorization: {{credentials: '{}'}}\n    static_configs: [{{targets: ['{instance}']}}]\n",
        rules.display(),
        http::token(page),
    );
    let file = dir.path().join("prometheus.yml");
    std::fs::write(&file, config).expect("the folder is writable");
    let port = free_port();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("tsdb").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus is installed");
    let _prometheus = Prometheus(prometheus);
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "Prometheus does not listen");
    }
    // Rates want two samples.
    let transactions = "threadgres:transactions:rate1m";
    loop {
        server.query("SELECT 1");
        let found = ask(port, transactions).unwrap_or_default();
        if found.as_array().is_some_and(|list| !list.is_empty()) {
            break;
        }
        assert!(Instant::now() < deadline, "no figure arrives: {:?}", ask(port, "up"));
    }
    let mut empty = Vec::new();
    for expression in expressions(&instance) {
        let found = ask(port, &expression).unwrap_or_else(|e| panic!("{expression}: {e}"));
        if found.as_array().is_none_or(Vec::is_empty) {
            empty.push(expression);
        }
    }
    // Alerts that are silent and waits that nobody had are empty; the others are not.
    let silent = |e: &String| e.contains(" > ") || e.contains("== 0") || e.contains("quantile");
    empty.retain(|e| !silent(e));
    assert!(empty.is_empty(), "{empty:#?}");
    drop(holder);
    assert!(server.stop());
}
