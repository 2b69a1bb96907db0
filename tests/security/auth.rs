//! Who may come in, and how: the real psql against passwords, certificates and `pg_hba.conf`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::raw::{self, Raw, query};
use crate::support::{Server, TempDir};

/// psql as a user with a password (in the environment) and further connection settings; whether it got
/// in, and what it said.
fn connect(server: &Server, settings: &str, password: &str, sql: &str) -> (bool, String) {
    let out = Command::new("psql")
        .args(["-XAtq", "-c", sql])
        .arg(format!("port={} dbname=postgres {settings}", server.port))
        .env("PGPASSWORD", password)
        .env("PGCONNECT_TIMEOUT", "30")
        .stdin(Stdio::null())
        .output()
        .expect("psql is installed");
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).trim_end().to_owned())
}

fn gets_in(server: &Server, settings: &str, password: &str) -> String {
    let (ok, text) = connect(server, settings, password, "SELECT current_user");
    assert!(ok, "{settings}: {text}");
    text
}

fn is_refused(server: &Server, settings: &str, password: &str, why: &str) {
    let (ok, text) = connect(server, settings, password, "SELECT 1");
    assert!(!ok && text.contains(why), "{settings}: {text}");
}

/// Other rules, taken over while the server runs.
fn rules(server: &Server, text: &str) {
    std::fs::write(server.dir.join("pg_hba.conf"), text).expect("the rules can be written");
    assert_eq!(server.query("SELECT pg_reload_conf()"), "t");
}

/// The superuser stays in by a rule of its own.
const BOSS: &str = "host all postgres 127.0.0.1/32 trust\n";
const HOST: &str = "host=127.0.0.1 user=";

fn log(server: &Server) -> String {
    std::fs::read_to_string(server.dir.with_extension("log")).unwrap_or_default()
}

#[test]
fn passwords_open_the_door_and_wrong_ones_do_not() {
    let dir = TempDir::new("passwords");
    let server = Server::start(&dir.path().join("data"), &["authentication_failure_delay=1"]);
    server.query(
        "CREATE ROLE alice LOGIN PASSWORD 'secret-one';
         CREATE ROLE nopass LOGIN;
         CREATE ROLE late LOGIN PASSWORD 'secret-two' VALID UNTIL '2001-01-01';
         CREATE ROLE idle PASSWORD 'secret-three';
         CREATE ROLE single LOGIN PASSWORD 'secret-four' CONNECTION LIMIT 0;
         SET password_encryption = md5; CREATE ROLE old LOGIN PASSWORD 'secret-five'",
    );
    assert_eq!(
        server.query("SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname = 'alice'"),
        "SCRAM-SHA-256$"
    );
    assert_eq!(gets_in(&server, &format!("{HOST}alice"), ""), "alice", "trust asks for nothing");
    for method in ["scram-sha-256", "md5", "password"] {
        rules(&server, &format!("{BOSS}host all all 127.0.0.1/32 {method}\n"));
        assert_eq!(gets_in(&server, &format!("{HOST}alice"), "secret-one"), "alice");
        for (user, password) in [
            ("alice", "secret-two"),
            ("nopass", "secret-one"),
            ("late", "secret-two"),
            ("nobody", "secret-one"),
        ] {
            let why = format!("password authentication failed for user \"{user}\"");
            is_refused(&server, &format!("{HOST}{user}"), password, &why);
        }
        let why = "is not permitted to log in";
        is_refused(&server, &format!("{HOST}idle"), "secret-three", why);
        let why = "too many connections for role \"single\"";
        is_refused(&server, &format!("{HOST}single"), "secret-four", why);
    }
    // MD5 only when a setting asks for it.
    rules(&server, &format!("{BOSS}host all all 127.0.0.1/32 md5\n"));
    is_refused(&server, &format!("{HOST}old"), "secret-five", "authentication failed");
    server.query("ALTER SYSTEM SET password_encryption = md5");
    server.query("SELECT pg_reload_conf()");
    assert_eq!(gets_in(&server, &format!("{HOST}old"), "secret-five"), "old");
    is_refused(&server, &format!("{HOST}old"), "secret-six", "authentication failed");
    let log = log(&server);
    assert!(log.contains("Connection matched pg_hba.conf line 2"), "{log}");
    assert!(log.contains("Role \"nobody\" does not exist."), "{log}");
    assert!(log.contains("has an expired password"), "{log}");
    assert!(!log.contains("secret-"), "a password is in the log");
    assert!(server.stop());
}

#[test]
fn rules_are_read_again_and_bad_ones_change_nothing() {
    let dir = TempDir::new("rules");
    let server = Server::start(&dir.path().join("data"), &["authentication_failure_delay=1"]);
    server.query("CREATE ROLE alice LOGIN; CREATE ROLE staff; CREATE ROLE bob LOGIN IN ROLE staff");
    rules(&server, &format!("{BOSS}host all +staff 127.0.0.1/32 trust\nhost all all all reject\n"));
    gets_in(&server, &format!("{HOST}bob"), "");
    let why = "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"alice\", \
               database \"postgres\", no encryption";
    is_refused(&server, &format!("{HOST}alice"), "", why);
    rules(&server, BOSS);
    let why = "no pg_hba.conf entry for host \"127.0.0.1\", user \"bob\", \
               database \"postgres\", no encryption";
    is_refused(&server, &format!("{HOST}bob"), "", why);
    rules(&server, &format!("{BOSS}host all all 127.0.0.1/32 trust\nnonsense\n"));
    is_refused(&server, &format!("{HOST}bob"), "", why);
    assert_eq!(
        server.query(
            "SELECT line_number, type, user_name, auth_method, error FROM pg_hba_file_rules"
        ),
        "1|host|{postgres}|trust|\n2|host|{all}|trust|\n3||||invalid connection type \"nonsense\""
    );
    // Rights to the database, and settings that sessions begin with.
    rules(&server, &format!("{BOSS}host all all 127.0.0.1/32 trust\n"));
    server.query("ALTER ROLE bob SET work_mem = '3MB'; ALTER ROLE bob SET role = staff");
    let (_, text) = connect(
        &server,
        &format!("{HOST}bob"),
        "",
        "SELECT current_user, current_setting('work_mem')",
    );
    assert_eq!(text, "staff|3MB");
    server.query("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO bob");
    gets_in(&server, &format!("{HOST}bob"), "");
    let why = "permission denied for database \"postgres\"";
    is_refused(&server, &format!("{HOST}alice"), "", why);
    let why = "permission denied to set role \"postgres\"";
    is_refused(&server, &format!("{HOST}bob options='-c role=postgres'"), "", why);
    assert!(server.stop());
}

#[test]
fn the_last_places_are_for_superusers() {
    let dir = TempDir::new("places");
    let settings = ["max_connections=5", "superuser_reserved_connections=2"];
    let server = Server::start(&dir.path().join("data"), &settings);
    server.query("CREATE ROLE app LOGIN; CREATE ROLE boss LOGIN SUPERUSER");
    let enter = |user: &str| Raw::begin(server.port, user);
    let is_in = |lines: &[String]| lines.last().is_some_and(|l| l == "Z I");
    // The session that made the roles may still be leaving.
    let mut inside = Vec::new();
    while inside.len() < 3 {
        let (client, lines) = enter("app");
        if is_in(&lines) {
            inside.push(client);
        }
    }
    let reserved = "E FATAL 53300 remaining connection slots are reserved for non-replication \
                    superuser connections";
    assert_eq!(enter("app").1, [reserved, "EOF"]);
    for _ in 0..2 {
        let (client, lines) = enter("boss");
        assert!(is_in(&lines), "{lines:?}");
        inside.push(client);
    }
    for user in ["app", "boss"] {
        assert_eq!(enter(user).1, ["E FATAL 53300 sorry, too many clients already", "EOF"]);
    }
    // Everybody who is in works on, and a place that becomes free is taken again.
    for client in &mut inside {
        assert!(client.query("SELECT 1").contains(&"D 1".to_owned()));
    }
    drop(inside.split_off(2));
    while !is_in(&enter("app").1) {}
    drop(inside);
    assert!(server.stop());
}

/// Whatever a client sends meanwhile, and in however many pieces: it is told in the end why it is not let in, and
/// one that stops half-way does not stay.
#[test]
fn who_is_not_let_in_is_told_so_and_who_says_no_more_is_put_out() {
    let dir = TempDir::new("told");
    let settings = ["authentication_failure_delay=300", "authentication_timeout=2"];
    let server = Server::start(&dir.path().join("data"), &settings);
    server.query("CREATE ROLE alice LOGIN PASSWORD 'secret'; CREATE ROLE bob LOGIN");
    rules(
        &server,
        &format!(
            "{BOSS}host all bob 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 scram-sha-256\n"
        ),
    );
    let enter = |user: &str| {
        let mut client = Raw::open(server.port);
        client.send(&raw::startup(196_608, &[("user", user), ("database", "postgres")]));
        client
    };
    let mut refused = enter("bob");
    // Each piece makes the session run again.
    (0..50).for_each(|_| refused.send(&raw::sync()[..1]));
    let told = refused.line();
    assert!(told.starts_with("E FATAL 28000 pg_hba.conf rejects"), "{told}");
    assert_eq!(refused.line(), "EOF");

    let mut silent = enter("alice");
    assert!(silent.line().starts_with("R 10"), "a password is wanted");
    let told = silent.line();
    assert_eq!(told, "E FATAL 57014 canceling authentication due to timeout");
    assert_eq!(silent.line(), "EOF");

    // The beginning of a message is no answer either.
    let mut slow = enter("alice");
    assert!(slow.line().starts_with("R 10"));
    slow.send(b"p\0\0");
    assert_eq!(slow.line(), told);
    assert!(server.stop());
}

#[test]
fn what_others_do_is_theirs() {
    let dir = TempDir::new("others");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query(
        "CREATE ROLE plain LOGIN; CREATE ROLE bob LOGIN;
         CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
         CREATE ROLE guard LOGIN IN ROLE pg_signal_backend",
    );
    let session = |user: &str| {
        let (mut client, _) = Raw::begin(server.port, user);
        let pid = client.query("SELECT pg_backend_pid()");
        let pid = pid.iter().find_map(|l| l.strip_prefix("D ")).expect("a number").to_owned();
        client.query("SELECT 'secret'");
        (client, pid)
    };
    let ((mut boss, boss_pid), (mut bob, bob_pid)) = (session("postgres"), session("bob"));
    let ask = |user: &str, sql: &str| connect(&server, &format!("{HOST}{user}"), "", sql).1;
    let look = format!(
        "SELECT usename, coalesce(state, '-'), query, backend_type IS NULL FROM pg_stat_activity \
         WHERE pid IN ({boss_pid}, {bob_pid}) ORDER BY 1"
    );
    let hidden = |user| format!("{user}|-|<insufficient privilege>|t");
    let shown = |user| format!("{user}|idle|SELECT 'secret'|f");
    assert_eq!(ask("plain", &look), [hidden("bob"), hidden("postgres")].join("\n"));
    assert_eq!(ask("bob", &look), [shown("bob"), hidden("postgres")].join("\n"));
    assert_eq!(ask("watcher", &look), [shown("bob"), shown("postgres")].join("\n"));
    let background = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    assert_eq!((ask("plain", background), ask("watcher", background)), ("0".into(), "1".into()));
    // Statements are known by those who ran them and by who may see all.
    let statements =
        "SELECT count(*) FROM pg_stat_statements WHERE query = 'CREATE ROLE plain LOGIN'";
    let all = "SELECT count(*) FROM pg_stat_statements WHERE query <> '<insufficient privilege>' \
               AND userid = 10";
    assert_eq!(ask("plain", statements), "0");
    assert_eq!(ask("plain", all), "0");
    assert_ne!(ask("watcher", all), "0");
    // Disturbing a session: one's own roles', or anybody's but superusers' for pg_signal_backend.
    for (function, thing, done) in [
        ("pg_cancel_backend", ("superuser query", "query"), "canceled"),
        ("pg_terminate_backend", ("superuser process", "process"), "terminated"),
    ] {
        let call = |pid: &str| format!("SELECT {function}({pid})");
        let verb = if done == "canceled" { "cancel" } else { "terminate" };
        let superuser = format!("ERROR:  must be a superuser to {verb} {}", thing.0);
        let member = format!(
            "ERROR:  must be a member of the role whose {} is being {done} or member of \
             pg_signal_backend",
            thing.1
        );
        assert_eq!(ask("plain", &call(&boss_pid)), superuser);
        assert_eq!(ask("guard", &call(&boss_pid)), superuser);
        assert_eq!(ask("plain", &call(&bob_pid)), member);
        assert_eq!(ask("watcher", &call(&bob_pid)), member);
    }
    assert!(boss.query("SELECT 1").contains(&"D 1".to_owned()), "nobody disturbed it");
    bob.send(&query("SELECT pg_sleep(600)"));
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while server.query(sleeps) != "1" {}
    assert_eq!(ask("guard", &format!("SELECT pg_cancel_backend({bob_pid})")), "t");
    let said = bob.until(|l| l.starts_with("Z "));
    let canceled = "E ERROR 57014 canceling statement due to user request";
    assert!(said.contains(&canceled.to_owned()), "{said:?}");
    assert_eq!(ask("bob", &format!("SELECT pg_terminate_backend({bob_pid})")), "t");
    let said = bob.until(|l| l == "EOF");
    assert!(said.iter().any(|l| l.starts_with("E FATAL 57P01")), "{said:?}");
    assert!(server.stop());
}

#[test]
fn who_is_no_role_is_told_what_to_say() {
    let dir = TempDir::new("stranger");
    let server = Server::start(&dir.path().join("data"), &[]);
    let (ok, text) = connect(&server, "host=127.0.0.1 user=stranger", "", "SELECT 1");
    assert!(!ok && text.contains("role \"stranger\" does not exist"), "{text}");
    assert!(text.contains("HINT:  Say who you are: user="), "{text}");
    let address = format!("it=postgres://stranger@127.0.0.1:{}/postgres", server.port);
    let out = Command::new(crate::support::BIN)
        .args(["lab", "sweep", "-c", "1", "-T", "0.3", "--output"])
        .arg(dir.path().join("results.jsonl"))
        .arg(&address)
        .output()
        .expect("the binary was built with the tests");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success(), "{text}");
    assert!(text.contains("name another one: postgres://user@host"), "{text}");
    assert!(server.stop());
}

fn openssl(dir: &Path, args: &[&str]) {
    let out = Command::new("openssl").current_dir(dir).args(args).output();
    let out = out.expect("openssl is installed");
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// An authority, and certificates that it signed for the server and for a client.
fn certificates(dir: &Path) {
    openssl(
        dir,
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=threadgres test authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        ],
    );
    for (name, subject, extension) in [
        ("server", "/CN=localhost", "subjectAltName=DNS:localhost"),
        ("alice", "/CN=alice", "extendedKeyUsage=clientAuth"),
        ("two", "/CN=bob/CN=alice", "extendedKeyUsage=clientAuth"),
        ("old", "/CN=alice", ""),
    ] {
        std::fs::write(dir.join("extension"), extension).expect("the folder is writable");
        openssl(
            dir,
            &[
                "req",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                subject,
                "-keyout",
                &format!("{name}.key"),
                "-out",
                &format!("{name}.csr"),
            ],
        );
        let (request, signed) = (format!("{name}.csr"), format!("{name}.crt"));
        let mut sign = vec!["x509", "-req", "-in", &request, "-CA", "ca.crt", "-CAkey", "ca.key"];
        sign.extend(["-CAcreateserial", "-days", "30", "-out", &signed]);
        // Without extensions it is one of version 1.
        if !extension.is_empty() {
            sign.extend(["-extfile", "extension"]);
        }
        openssl(dir, &sign);
        openssl(dir, &["x509", "-in", &format!("{name}.crt"), "-noout"]);
    }
}

#[test]
fn encryption_is_verified_on_both_sides() {
    let dir = TempDir::new("tls");
    let certs = dir.path().join("certs");
    std::fs::create_dir_all(&certs).expect("the folder is writable");
    certificates(&certs);
    let server = Server::start(&dir.path().join("data"), &["authentication_failure_delay=1"]);
    let path = |name: &str| certs.join(name).display().to_string();
    server.query(
        "CREATE ROLE alice LOGIN PASSWORD 'secret'; CREATE ROLE bob LOGIN PASSWORD 'secret'",
    );
    is_refused(&server, &format!("{HOST}alice sslmode=require"), "", "server does not support SSL");
    for (file, setting) in
        [("server.crt", "ssl_cert_file"), ("server.key", "ssl_key_file"), ("ca.crt", "ssl_ca_file")]
    {
        server.query(&format!("ALTER SYSTEM SET {setting} = '{}'", path(file)));
    }
    server.query("ALTER SYSTEM SET ssl = on");
    rules(
        &server,
        &format!(
            "{BOSS}hostssl all alice 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 cert\n"
        ),
    );
    let full = format!(
        "host=localhost hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={}",
        path("ca.crt")
    );
    assert_eq!(
        gets_in(&server, &format!("{full} user=alice channel_binding=require"), "secret"),
        "alice"
    );
    assert_eq!(
        gets_in(&server, &format!("{full} user=alice channel_binding=disable"), "secret"),
        "alice"
    );
    is_refused(&server, &format!("{full} user=alice"), "wrong", "password authentication failed");
    let wrong_host = full.replace("host=localhost", "host=other.example");
    is_refused(&server, &format!("{wrong_host} user=alice"), "secret", "does not match host name");
    is_refused(&server, &format!("{HOST}alice sslmode=disable"), "secret", "no pg_hba.conf entry");
    let (_, text) = connect(
        &server,
        &format!("{full} user=alice"),
        "secret",
        "SELECT ssl, version, bits >= 128 FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    );
    assert_eq!(text, "t|TLSv1.3|t");
    let older = format!("{full} user=alice ssl_max_protocol_version=TLSv1.2");
    let (_, text) = connect(
        &server,
        &older,
        "secret",
        "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    );
    assert_eq!(text, "TLSv1.2");
    // Much goes through in both directions.
    let (ok, text) = connect(
        &server,
        &format!("{full} user=alice"),
        "secret",
        "SELECT sum(length(repeat('x', 1000) || n)) FROM generate_series(1, 20000) n",
    );
    assert!(ok && text.parse::<u64>().is_ok_and(|n| n > 20_000_000), "{text}");
    let (ok, text) = connect(
        &server,
        &format!("{full} user=alice"),
        "secret",
        "SELECT repeat('y', 100) FROM generate_series(1, 30000)",
    );
    assert!(ok && text.len() == 30_000 * 101 - 1, "{} bytes", text.len());
    // Certificates of clients.
    let with = format!("{full} sslcert={} sslkey={}", path("alice.crt"), path("alice.key"));
    rules(&server, &format!("{BOSS}hostssl all all 127.0.0.1/32 cert\n"));
    assert_eq!(gets_in(&server, &format!("{with} user=alice"), ""), "alice");
    is_refused(
        &server,
        &format!("{with} user=bob"),
        "",
        "certificate authentication failed for user \"bob\"",
    );
    // Of two names the first counts.
    let two = format!("{full} sslcert={} sslkey={}", path("two.crt"), path("two.key"));
    assert_eq!(gets_in(&server, &format!("{two} user=bob"), ""), "bob");
    is_refused(
        &server,
        &format!("{two} user=alice"),
        "",
        "certificate authentication failed for user \"alice\"",
    );
    // Certificates of version 1 are named as what they are.
    let old = format!("{full} sslcert={} sslkey={}", path("old.crt"), path("old.key"));
    let (ok, text) = connect(&server, &format!("{old} user=alice"), "", "SELECT 1");
    assert!(!ok, "{text}");
    server.query(&format!("ALTER SYSTEM SET ssl_cert_file = '{}'", path("old.crt")));
    server.query("SELECT pg_reload_conf()");
    while !log(&server).contains("X.509 certificate of version 1") {}
    is_refused(
        &server,
        &format!("{full} user=alice sslcert=none"),
        "",
        "requires a valid client certificate",
    );
    assert!(server.stop());
}

#[test]
fn other_machines_reach_it_only_when_there_is_a_password() {
    let dir = TempDir::new("reach");
    let data = dir.path().join("data");
    let start = |address: &str| {
        Command::new(crate::support::BIN)
            .args([
                "serve",
                "--allow-root",
                "--single-process",
                "-p",
                &crate::support::free_port().to_string(),
            ])
            .args(["-c", &format!("listen_addresses={address}"), "-D"])
            .arg(&data)
            .output()
            .expect("the binary was built with the tests")
    };
    let out = start("0.0.0.0");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && text.contains("no role has a password"), "{text}");
    let server = Server::start(&data, &[]);
    server.query("ALTER ROLE postgres PASSWORD 'secret'");
    assert!(server.stop());
    let server = Server::start(&data, &["listen_addresses=0.0.0.0"]);
    assert_eq!(server.query("SELECT 1"), "1");
    assert!(server.stop());
}
