//! Who may come in, and how: the real psql against passwords, certificates and `pg_hba.conf`.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use support::{Server, TempDir};

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
        openssl(
            dir,
            &[
                "x509",
                "-req",
                "-in",
                &format!("{name}.csr"),
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "30",
                "-extfile",
                "extension",
                "-out",
                &format!("{name}.crt"),
            ],
        );
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
        Command::new(support::BIN)
            .args(["serve", "--single-process", "-p", &support::free_port().to_string()])
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
