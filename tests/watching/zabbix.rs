//! The Zabbix template: every user parameter answers, and what the template cuts out of the answers
//! is there.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::support::client::Client;
use crate::support::{Server, TempDir};
use serde_json::Value;

fn contrib(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/zabbix").join(name);
    std::fs::read_to_string(path).expect("the template is part of the repository")
}

/// Runs a user parameter as the agent does: `$1` and so on are replaced in a shell's command.
fn run(command: &str, server: &Server) -> String {
    let port = server.port.to_string();
    let values = ["127.0.0.1", &port, "zabbix", "postgres"];
    let mut command = command.to_owned();
    for (i, value) in values.iter().enumerate() {
        command = command.replace(&format!("${}", i + 1), value);
    }
    let out = Command::new("sh").args(["-c", &command]).output().expect("there is a shell");
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && error.is_empty(), "{command}: {error}");
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

/// `$.a.b` and `$.a["b c"]`.
fn follow<'a>(status: &'a Value, path: &str) -> &'a Value {
    let path = path.trim_start_matches('$').replace("[\"", ".").replace("\"]", "");
    path.split('.').filter(|p| !p.is_empty()).fold(status, |value, key| &value[key])
}

#[test]
fn every_item_of_the_template_has_a_value() {
    let dir = TempDir::new("zabbix");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE ROLE zabbix LOGIN IN ROLE pg_monitor");
    server.query("CREATE TABLE shelf (id int PRIMARY KEY); INSERT INTO shelf VALUES (1)");
    // Somebody who waits, so that there is something to say.
    let mut holder = Client::connect(server.port).unwrap();
    holder.query("BEGIN; DELETE FROM shelf").unwrap();
    let port = server.port;
    let waiter = std::thread::spawn(move || {
        Client::connect(port).unwrap().query("DELETE FROM shelf").unwrap();
    });
    while server.query("SELECT count(*) FROM pg_stat_blocking WHERE duration_ms >= 1000") != "1" {}

    let mut answers = HashMap::new();
    let parameters = contrib("threadgres.conf");
    for line in parameters.lines().filter(|l| !l.starts_with('#')) {
        let (key, command) = line
            .strip_prefix("UserParameter=")
            .and_then(|rest| rest.split_once("[*],"))
            .unwrap_or_else(|| panic!("not a user parameter: {line}"));
        answers.insert(key, run(command, &server));
    }
    assert_eq!(answers["threadgres.ping"], "1");
    assert_eq!(answers["threadgres.blocked.sessions"], "1");
    assert_eq!(answers["threadgres.locks.waiting"], "1");
    assert!(answers["threadgres.blocked.who"].ends_with("DELETE FROM shelf"));
    for seconds in ["threadgres.blocked.longest", "threadgres.transaction.oldest"] {
        let value: f64 = answers[seconds].parse().unwrap_or_else(|_| panic!("{seconds}"));
        assert!(value >= 1.0, "{seconds}: {value}");
    }
    let status: Value = serde_json::from_str(&answers["threadgres.status"]).expect("JSON");
    let template = contrib("threadgres.yaml");
    for line in template.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("key: 'threadgres.") {
            let key = rest.split('[').next().unwrap_or(rest);
            let known = answers.contains_key(format!("threadgres.{key}").as_str());
            assert!(known || key.starts_with("waits."), "no user parameter for {key}");
        }
        let Some(path) = line.strip_prefix("- '$.").and_then(|p| p.strip_suffix('\'')) else {
            continue;
        };
        if let Some((_, field)) = path.split_once("].").filter(|_| path.starts_with("waits[")) {
            let field = field.trim_end_matches(".first()");
            assert!(status["waits"][0][field].is_number(), "{path}");
        } else if !path.starts_with("sessions.states") {
            // A state that nobody is in is left out; the template takes 0 then.
            assert!(!follow(&status, path).is_null(), "{path} in {status}");
        }
    }
    assert_eq!(follow(&status, "$.sessions.states[\"idle in transaction\"]"), 1);
    assert!(status["waits"][0]["type"].is_string() && status["waits"][0]["event"].is_string());
    holder.query("COMMIT").unwrap();
    waiter.join().unwrap();
    assert!(server.stop());
}
