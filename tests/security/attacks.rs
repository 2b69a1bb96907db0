//! No role gets more than it was given: each test is an attack that must fail, and looks whether anything
//! of it has stayed.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::client::Client;
use crate::support::http::{get, get_as, token};
use crate::support::{BIN, Server, TempDir, text_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A server of its own, and its superuser.
struct Place {
    server: Server,
    boss: Client,
    _dir: TempDir,
}

impl Place {
    fn new(name: &str) -> Place {
        let dir = TempDir::new(name);
        let server = Server::start(&dir.path().join("data"), &[]);
        let boss = Client::connect(server.port).expect("the superuser gets in");
        Place { server, boss, _dir: dir }
    }

    fn role(&self, name: &str) -> Client {
        Client::connect_to(self.server.port, name, "postgres").expect("the role may log in")
    }
}

/// What is done before the attack.
#[track_caller]
fn set_up(client: &mut Client, statements: &[&str]) {
    for sql in statements {
        let answer = client.query(sql).expect("the server answers");
        assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    }
}

/// The statement fails with this SQLSTATE.
#[track_caller]
fn refused(client: &mut Client, sql: &str, code: &str) {
    let answer = client.query(sql).expect("the server answers");
    let error = answer.error.unwrap_or_else(|| panic!("{sql}: let in: {:?}", answer.rows));
    assert_eq!(error.0, code, "{sql}: {}", error.1);
}

#[test]
fn createrole_is_no_way_to_more() {
    let mut place = Place::new("createrole");
    set_up(
        &mut place.boss,
        &[
            "CREATE ROLE maker LOGIN CREATEROLE",
            "CREATE ROLE dba",
            "GRANT postgres TO dba",
            "CREATE ROLE reader",
            "GRANT pg_read_all_data TO reader",
            "CREATE ROLE passes BYPASSRLS",
            "CREATE ROLE plain",
            "CREATE ROLE delegate LOGIN",
            "GRANT pg_monitor TO delegate WITH ADMIN OPTION",
        ],
    );
    let mut maker = place.role("maker");
    let above = [
        "postgres",
        "dba",
        "reader",
        "passes",
        "pg_execute_server_program",
        "pg_write_server_files",
        "pg_read_all_data",
        "pg_monitor",
    ];
    for role in above {
        for way in [
            "CREATE ROLE thief LOGIN IN ROLE",
            "CREATE USER thief IN GROUP plain,",
            "CREATE GROUP thief USER maker IN ROLE",
        ] {
            refused(&mut maker, &format!("{way} {role}"), "42501");
        }
        refused(&mut maker, &format!("GRANT {role} TO maker"), "42501");
        refused(&mut maker, &format!("GRANT {role} TO maker WITH ADMIN OPTION"), "42501");
        refused(
            &mut maker,
            &format!("GRANT plain, {role} TO maker GRANTED BY CURRENT_USER"),
            "42501",
        );
        refused(&mut maker, &format!("REVOKE {role} FROM dba"), "42501");
        let code = if role.starts_with("pg_") { "42939" } else { "42501" };
        refused(&mut maker, &format!("ALTER GROUP {role} ADD USER maker"), code);
        refused(&mut maker, &format!("ALTER ROLE {role} LOGIN PASSWORD 'mine'"), code);
        refused(&mut maker, &format!("ALTER ROLE {role} RENAME TO other"), code);
        refused(&mut maker, &format!("ALTER ROLE {role} SET search_path = mine"), "42501");
        let code = if role.starts_with("pg_") { "2BP01" } else { "42501" };
        let answer = maker.query(&format!("DROP ROLE {role}")).expect("the server answers");
        let refusal = answer.error.expect("the role stays").0;
        assert!(refusal == code || refusal == "42501", "DROP ROLE {role}: {refusal}");
    }
    for attribute in ["SUPERUSER", "REPLICATION", "BYPASSRLS"] {
        refused(&mut maker, &format!("CREATE ROLE thief {attribute}"), "42501");
        refused(&mut maker, &format!("ALTER ROLE maker {attribute}"), "42501");
    }
    refused(&mut maker, "SET ROLE dba", "42501");
    let gained = "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member \
                  WHERE r.rolname IN ('maker', 'thief', 'plain')";
    assert_eq!(place.boss.one(gained), "0");
    assert_eq!(place.boss.one("SELECT count(*) FROM pg_roles WHERE rolname = 'thief'"), "0");

    // What it may: roles from which no more is reached than from its own.
    set_up(
        &mut maker,
        &[
            "CREATE ROLE hand LOGIN IN ROLE plain ROLE maker",
            "GRANT plain TO hand WITH ADMIN OPTION",
            "ALTER ROLE hand PASSWORD 'x' CREATEDB",
            "ALTER ROLE plain SET work_mem = '1MB'",
            "ALTER ROLE hand RENAME TO finger",
            "DROP ROLE finger",
        ],
    );
    // The ADMIN option hands on what it is for.
    let mut delegate = place.role("delegate");
    set_up(&mut delegate, &["GRANT pg_monitor TO plain", "REVOKE pg_monitor FROM plain"]);
    refused(&mut delegate, "GRANT pg_read_all_data TO plain", "42501");
}

/// What a table's owner leaves behind for whoever maintains the table: a function that looks who runs it
/// and tries to do more, in everything that evaluates users' expressions.
const TRAPS: &[&str] = &[
    "CREATE TABLE seen (who text)",
    "CREATE FUNCTION take() RETURNS int LANGUAGE sql VOLATILE AS \
     'INSERT INTO owned.seen VALUES (current_user); SELECT 1'",
    "CREATE FUNCTION spring(int) RETURNS int LANGUAGE sql IMMUTABLE AS \
     'SELECT $1 + 0 * owned.take()'",
    "CREATE TABLE trap (id int, n int DEFAULT owned.take())",
    "INSERT INTO trap VALUES (1, 1), (2, 2)",
    "CREATE INDEX trap_expr ON trap (owned.spring(id))",
    "CREATE INDEX trap_part ON trap (id) WHERE owned.spring(id) > 0",
    "ALTER TABLE trap ADD CHECK (owned.spring(id) > 0)",
    "ALTER TABLE trap ADD g int GENERATED ALWAYS AS (owned.spring(id)) STORED",
    "CREATE MATERIALIZED VIEW mat AS SELECT owned.spring(id) AS n FROM trap",
    "CREATE DOMAIN dom AS int",
    "CREATE TABLE doms (d owned.dom)",
    "INSERT INTO doms VALUES (1)",
    "ALTER DOMAIN dom ADD CONSTRAINT later CHECK (owned.spring(value) > 0) NOT VALID",
    "CREATE TABLE child (id int DEFAULT owned.take() REFERENCES parent ON DELETE SET DEFAULT)",
    "CREATE TABLE cascaded (id int REFERENCES parent ON UPDATE CASCADE CHECK (owned.spring(id) > 0))",
    "INSERT INTO child VALUES (7)",
    "INSERT INTO cascaded VALUES (8)",
    "DELETE FROM seen",
];

/// What a superuser does with somebody else's tables.
const MAINTENANCE: &[&str] = &[
    "VACUUM FULL owned.trap",
    "REINDEX TABLE owned.trap",
    "REINDEX INDEX owned.trap_expr",
    "REINDEX INDEX CONCURRENTLY owned.trap_expr",
    "REINDEX TABLE CONCURRENTLY owned.trap",
    "CLUSTER owned.trap USING trap_expr",
    "CREATE INDEX ON owned.trap ((owned.spring(id) + 1))",
    "CREATE INDEX CONCURRENTLY ON owned.trap ((owned.spring(id) + 2))",
    "ANALYZE owned.trap",
    "VACUUM ANALYZE owned.trap",
    "REFRESH MATERIALIZED VIEW owned.mat",
    "ALTER TABLE owned.trap ALTER n TYPE smallint USING owned.spring(id)",
    "ALTER TABLE owned.trap ADD m int DEFAULT owned.take()",
    "ALTER TABLE owned.trap ADD k owned.dom DEFAULT 1",
    "ALTER TABLE owned.trap ADD CONSTRAINT second CHECK (owned.spring(n) > 0)",
    "ALTER TABLE owned.trap ADD l int GENERATED ALWAYS AS (owned.spring(n)) STORED",
    "ALTER DOMAIN owned.dom VALIDATE CONSTRAINT later",
    "UPDATE owned.parent SET id = 9 WHERE id = 8",
    "DELETE FROM owned.parent WHERE id = 7",
];

#[test]
fn maintenance_runs_the_owners_functions_in_the_owners_name() {
    let mut place = Place::new("maintenance");
    set_up(
        &mut place.boss,
        &[
            "CREATE ROLE mallory LOGIN",
            "CREATE SCHEMA owned AUTHORIZATION mallory",
            "CREATE TABLE owned.parent (id int PRIMARY KEY)",
            "INSERT INTO owned.parent VALUES (1), (7), (8)",
            "GRANT ALL ON owned.parent TO mallory",
        ],
    );
    let mut mallory = place.role("mallory");
    set_up(&mut mallory, &["SET search_path = owned"]);
    set_up(&mut mallory, TRAPS);
    for sql in MAINTENANCE {
        set_up(&mut place.boss, &["DELETE FROM owned.seen"]);
        // What fails may fail, of the owner's own doing; but not in the superuser's name.
        let answer = place.boss.query(sql).expect("the server answers");
        let seen = place.boss.one("SELECT string_agg(DISTINCT who, ' ') FROM owned.seen");
        assert!(["", "mallory"].contains(&&*seen), "{sql} ran as {seen}");
        assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        let evaluates = !sql.contains("ANALYZE") && !sql.contains("owned.dom");
        assert!(!evaluates || seen == "mallory", "{sql}: nothing was evaluated");
    }
}

#[test]
fn nothing_leads_out_of_a_security_restricted_operation() {
    let mut place = Place::new("restricted");
    set_up(
        &mut place.boss,
        &["CREATE ROLE mallory LOGIN", "CREATE SCHEMA owned AUTHORIZATION mallory"],
    );
    let mut mallory = place.role("mallory");
    set_up(
        &mut mallory,
        &[
            "SET search_path = owned",
            "CREATE TABLE armed (what text)",
            "CREATE TABLE goal (id int PRIMARY KEY)",
            "CREATE TABLE refers (id int REFERENCES goal DEFERRABLE INITIALLY DEFERRED)",
            "CREATE FUNCTION goes_off() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN ALTER ROLE mallory SUPERUSER; RETURN NULL; END'",
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON armed DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION goes_off()",
            "CREATE TABLE trap (id int)",
            "INSERT INTO trap VALUES (1)",
        ],
    );
    let ways = [
        "SELECT set_config('role', 'postgres', false)",
        "SELECT set_config('session_authorization', 'postgres', false)",
        "SET ROLE NONE; SELECT 'x'::text",
        "SET SESSION AUTHORIZATION postgres; SELECT 'x'::text",
        "CREATE TEMP TABLE kept (a int); SELECT 'x'::text",
        "CREATE TYPE pg_temp.shadow AS ENUM ('a'); SELECT 'x'::text",
        "CREATE TYPE pg_temp.shadow AS (a int); SELECT 'x'::text",
        "CREATE DOMAIN pg_temp.shadow AS int; SELECT 'x'::text",
        "SELECT pg_autonomous('ALTER TABLE owned.trap OWNER TO postgres')",
        "ALTER ROLE mallory SUPERUSER; SELECT 'x'::text",
        "SELECT rolpassword FROM pg_authid LIMIT 1",
        "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE usename = 'postgres'",
        "SELECT set_config('log_statement', 'all', false)",
        "INSERT INTO owned.armed VALUES ('x'); SELECT 'x'::text",
        "INSERT INTO owned.refers VALUES (1); SELECT 'x'::text",
        "DO 'BEGIN SET ROLE postgres; END'; SELECT 'x'::text",
        "DO 'BEGIN LISTEN x; END'; SELECT 'x'::text",
    ];
    for (n, body) in ways.into_iter().enumerate() {
        let body = body.replace('\'', "''");
        set_up(
            &mut mallory,
            &[
                &format!("CREATE FUNCTION way{n}() RETURNS text LANGUAGE sql VOLATILE AS '{body}'"),
                &format!(
                    "CREATE FUNCTION key{n}(int) RETURNS int LANGUAGE sql IMMUTABLE AS \
                 'SELECT length(owned.way{n}())'"
                ),
            ],
        );
        for sql in [
            format!("CREATE INDEX ON owned.trap (owned.key{n}(id))"),
            format!("CREATE INDEX CONCURRENTLY ON owned.trap (owned.key{n}(id))"),
            format!("ALTER TABLE owned.trap ADD CHECK (owned.key{n}(id) > 0)"),
            format!("ALTER TABLE owned.trap ALTER id TYPE int USING owned.key{n}(id)"),
        ] {
            refused(&mut place.boss, &sql, "42501");
        }
        set_up(&mut place.boss, &["DROP INDEX IF EXISTS owned.trap_key0_idx"]);
    }
    // What a function sets ends with the operation.
    set_up(
        &mut mallory,
        &["CREATE FUNCTION sets(int) RETURNS int LANGUAGE sql IMMUTABLE AS \
         'SELECT length(set_config(''search_path'', ''owned'', false))'"],
    );
    set_up(&mut place.boss, &["CREATE INDEX ON owned.trap (owned.sets(id))"]);
    assert_eq!(place.boss.one("SHOW search_path"), "\"$user\", public");
    // Names are looked for where nobody else can put anything.
    set_up(
        &mut place.boss,
        &["CREATE FUNCTION public.helper(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'"],
    );
    set_up(
        &mut mallory,
        &[
            "SET search_path = owned, public",
            "CREATE FUNCTION bare(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT helper($1)'",
        ],
    );
    refused(&mut place.boss, "CREATE INDEX ON owned.trap (owned.bare(id))", "42883");
    assert_eq!(place.boss.one("SELECT current_user"), "postgres");
    assert_eq!(place.boss.one("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
    assert_eq!(place.boss.one("SELECT count(*) FROM pg_class WHERE relname = 'kept'"), "0");
}

#[test]
fn a_function_of_another_name_cannot_change_who_the_session_is() {
    let mut place = Place::new("definer");
    set_up(
        &mut place.boss,
        &["CREATE ROLE mallory LOGIN", "CREATE SCHEMA owned AUTHORIZATION mallory"],
    );
    let mut mallory = place.role("mallory");
    set_up(
        &mut mallory,
        &[
            "CREATE FUNCTION owned.up() RETURNS text LANGUAGE sql SECURITY DEFINER AS \
         'SELECT set_config(''role'', ''none'', false)'",
            "CREATE FUNCTION owned.other() RETURNS text LANGUAGE sql SECURITY DEFINER AS \
         'SELECT pg_autonomous(''CREATE SCHEMA mine'')'",
            "CREATE FUNCTION owned.asks() RETURNS text LANGUAGE sql SECURITY DEFINER AS \
         'SELECT pg_autonomous(''SELECT current_user || session_user'')'",
            "CREATE FUNCTION owned.ends(int) RETURNS bool LANGUAGE sql SECURITY DEFINER AS \
         'SELECT pg_cancel_backend($1)'",
        ],
    );
    // What a function puts off to the transaction's end runs in the function's name, too.
    set_up(
        &mut mallory,
        &[
            "CREATE TABLE owned.armed (what text)",
            "CREATE FUNCTION owned.goes_off() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN ALTER ROLE mallory SUPERUSER; RETURN NULL; END'",
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON owned.armed \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION owned.goes_off()",
            "CREATE FUNCTION owned.arms() RETURNS void LANGUAGE sql SECURITY DEFINER AS \
             'INSERT INTO owned.armed VALUES (1)'",
            "CREATE FUNCTION owned.block() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS \
             'BEGIN SET ROLE postgres; END'",
        ],
    );
    refused(&mut place.boss, "SELECT owned.arms()", "42501");
    refused(&mut place.boss, "SELECT owned.block()", "42501");
    assert_eq!(place.boss.one("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), "f");
    refused(&mut place.boss, "SELECT owned.up()", "42501");
    refused(&mut place.boss, "SELECT owned.other()", "42501");
    assert_eq!(place.boss.one("SELECT owned.asks()"), "mallorymallory");
    let mut second = place.role("postgres");
    let pid = second.one("SELECT pg_backend_pid()");
    refused(&mut place.boss, &format!("SELECT owned.ends({pid})"), "42501");
}

/// The program's answer, with or without leave to run as root.
fn program(args: &[&str], root: bool) -> (bool, String) {
    let mut command = Command::new(BIN);
    command.args(args).env_remove("THREADGRES_ALLOW_ROOT");
    if root {
        command.env("THREADGRES_ALLOW_ROOT", "1");
    }
    let out = command.output().expect("the binary was built with the tests");
    (out.status.success(), text_of(&out))
}

/// Everything below a directory, with its mode.
fn modes(dir: &Path, out: &mut Vec<(PathBuf, bool, u32)>) {
    let about = std::fs::metadata(dir).expect("it is there");
    out.push((dir.to_owned(), about.is_dir(), about.permissions().mode() & 0o777));
    if about.is_dir() {
        for entry in std::fs::read_dir(dir).expect("it can be read").flatten() {
            modes(&entry.path(), out);
        }
    }
}

#[test]
fn nobody_else_reads_the_data_directory() {
    let dir = TempDir::new("modes");
    let work = |data: &Path, settings: &[&str]| {
        let server = Server::start(data, settings);
        server.query(
            "CREATE TABLE t (a int PRIMARY KEY, b text); ALTER SYSTEM SET work_mem = '5MB';
             INSERT INTO t SELECT n, repeat(md5(n::text), 400) FROM generate_series(1, 50) n;
             CREATE DATABASE other; CHECKPOINT",
        );
        assert!(server.stop());
    };
    let data = dir.path().join("private");
    let path = data.to_str().expect("a path in UTF-8");
    // A directory that is there, empty and open, is closed.
    std::fs::create_dir(&data).expect("the folder is new");
    std::fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("it is ours");
    work(&data, &[]);
    let mut found = Vec::new();
    modes(&data, &mut found);
    assert!(found.len() > 10);
    for (path, is_dir, mode) in found {
        assert_eq!(mode, if is_dir { 0o700 } else { 0o600 }, "{}", path.display());
    }
    for mode in [0o755, 0o707, 0o770] {
        std::fs::set_permissions(&data, Permissions::from_mode(mode)).expect("it is ours");
        let (ok, text) = program(&["serve", "-D", path], true);
        assert!(!ok && text.contains("invalid permissions"), "{mode:o}: {text}");
    }

    let data = dir.path().join("shared");
    let path = data.to_str().expect("a path in UTF-8");
    let (ok, text) = program(&["init", "-D", path, "--allow-group-access"], true);
    assert!(ok, "{text}");
    work(&data, &[]);
    let mut found = Vec::new();
    modes(&data, &mut found);
    for (path, is_dir, mode) in found {
        // Some files are nobody's but the owner's business even so.
        let right = if is_dir { [0o750; 2] } else { [0o640, 0o600] };
        assert!(right.contains(&mode), "{mode:o} {}", path.display());
    }
}

#[test]
fn root_serves_only_when_root_is_meant() {
    let dir = TempDir::new("root");
    let data = dir.path().join("data");
    let path = data.to_str().expect("a path in UTF-8");
    let root = std::fs::metadata("/proc/self").expect("there is a /proc").uid() == 0;
    if !root {
        return;
    }
    for command in ["serve", "init"] {
        let (ok, text) = program(&[command, "-D", path], false);
        assert!(!ok && text.contains("\"root\"") && !data.exists(), "{command}: {text}");
    }
    let (ok, text) = program(&["init", "-D", path, "--allow-root"], false);
    assert!(ok, "{text}");
    // What belongs to somebody else isn't served.
    std::os::unix::fs::chown(&data, Some(65534), None).expect("root may give files away");
    let (ok, text) = program(&["serve", "-D", path, "--allow-root"], false);
    assert!(!ok && text.contains("wrong ownership"), "{text}");
}

#[test]
fn a_new_directory_may_ask_for_a_password_from_its_first_moment() {
    let dir = TempDir::new("pwfile");
    let data = dir.path().join("data");
    let path = data.to_str().expect("a path in UTF-8");
    let (ok, text) = program(&["init", "-D", path, "--auth", "scram-sha-256"], true);
    assert!(!ok && text.contains("must specify a password") && !data.exists(), "{text}");
    let (ok, text) = program(&["init", "-D", path, "-A", "nonsense"], true);
    assert!(!ok && text.contains("nonsense") && !data.exists(), "{text}");
    let file = dir.path().join("password");
    std::fs::write(&file, "first secret\nsecond line\n").expect("the folder is writable");
    let file = file.to_str().expect("a path in UTF-8");
    let (ok, text) = program(&["init", "-D", path, "-A", "scram-sha-256", "--pwfile", file], true);
    assert!(ok, "{text}");
    let server = Server::start(&data, &[]);
    let ask = |password: &str| {
        let out = Command::new("psql")
            .args(["-XAtwc", "SELECT current_user", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &server.port.to_string(), "postgres"])
            .env("PGPASSWORD", password)
            .output()
            .expect("psql is installed");
        text_of(&out)
    };
    assert_eq!(ask("first secret"), "postgres\n");
    for wrong in ["", "first secre", "second line"] {
        assert!(!ask(wrong).contains("postgres\n"), "{wrong:?}");
    }
}

#[test]
fn the_first_role_of_a_new_directory_may_have_another_name() {
    let dir = TempDir::new("first-role");
    let data = dir.path().join("data");
    let path = data.to_str().expect("a path in UTF-8");
    let long = "x".repeat(64);
    for wrong in ["pg_owner", "public", "none", long.as_str()] {
        let (ok, text) = program(&["init", "-D", path, "-U", wrong], true);
        assert!(!ok && text.contains(wrong) && !data.exists(), "{text}");
    }
    let (ok, text) = program(&["init", "-D", path, "--username", "Owner \"1\""], true);
    assert!(ok, "{text}");
    let server = Server::start(&data, &[]);
    let ask = |role: &str| {
        let asked = "SELECT rolname, rolsuper, pg_get_userbyid(datdba) FROM pg_roles, pg_database
                     WHERE rolname = current_user AND datname = current_database()";
        let out = Command::new("psql")
            .args(["-XAtwc", asked, "-h", "127.0.0.1", "-U", role])
            .args(["-p", &server.port.to_string(), "postgres"])
            .output()
            .expect("psql is installed");
        text_of(&out)
    };
    assert_eq!(ask("Owner \"1\""), "Owner \"1\"|t|Owner \"1\"\n");
    assert!(ask("postgres").contains("role \"postgres\" does not exist"));
}

/// The status of a path, with a user and a password.
fn asked(port: u16, path: &str, login: Option<(&str, &str)>) -> u16 {
    let header = login.map_or_else(String::new, |(user, password)| {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        format!("Authorization: Basic {pair}\r\n")
    });
    get_as(port, path, &header).status
}

#[test]
fn the_page_is_for_those_who_may_watch() {
    let dir = TempDir::new("watchers");
    let port = crate::support::free_port();
    let setting = format!("http_port={port}");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[&setting, "authentication_failure_delay=1"]);
    server.query(
        "CREATE ROLE watcher LOGIN PASSWORD 'sees' IN ROLE pg_monitor;
         CREATE ROLE other LOGIN PASSWORD 'blind';
         CREATE ROLE late LOGIN PASSWORD 'past' VALID UNTIL '2001-01-01' IN ROLE pg_monitor;
         CREATE ROLE group_only PASSWORD 'nobody' IN ROLE pg_monitor;
         CREATE ROLE bare LOGIN IN ROLE pg_monitor;
         ALTER ROLE postgres PASSWORD 'all'",
    );
    let paths = [
        "/",
        "/page.js",
        "/past.js",
        "/api/history.json",
        "/api/history.csv",
        "/metrics",
        "/api/now.json",
        "/api/figures.json",
        "/api/waits.json",
        "/api/views/pg_stat_activity.json",
        "/stacks.txt?seconds=0.1",
        "/nothing",
    ];
    for path in paths {
        assert_eq!(asked(port, path, None), 401, "{path}");
        for wrong in [
            ("watcher", "see"),
            ("watcher", ""),
            ("other", "blind"),
            ("late", "past"),
            ("group_only", "nobody"),
            ("bare", ""),
            ("nosuch", "sees"),
            ("", ""),
        ] {
            assert_eq!(asked(port, path, Some(wrong)), 401, "{path} {wrong:?}");
        }
    }
    let answer = get_as(port, "/", "Authorization: Negotiate xyz\r\n");
    assert!(answer.status == 401 && answer.head.contains("www-authenticate: basic"), "{answer:?}");
    assert_eq!(get_as(port, "/", "Authorization: Bearer 00\r\n").status, 401);
    for right in [("watcher", "sees"), ("postgres", "all"), ("anybody", &*token(port))] {
        assert_eq!(asked(port, "/api/now.json", Some(right)), 200, "{right:?}");
        assert_eq!(asked(port, "/", Some(right)), 200, "{right:?}");
    }
    // Who has been let in is so only as long as it holds.
    server.query("ALTER ROLE watcher PASSWORD 'sees more'");
    assert_eq!(asked(port, "/", Some(("watcher", "sees"))), 401);
    assert_eq!(asked(port, "/", Some(("watcher", "sees more"))), 200);
    server.query("REVOKE pg_monitor FROM watcher");
    assert_eq!(asked(port, "/", Some(("watcher", "sees more"))), 401);
    let mode = std::fs::metadata(data.join("threadgres.http_token")).expect("it is there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_view_log_or_page_shows_a_password() {
    let dir = TempDir::new("passwords");
    let port = crate::support::free_port();
    let setting = format!("http_port={port}");
    let data = dir.path().join("data");
    let settings = [&*setting, "log_statement=all", "log_min_duration_statement=0"];
    let server = Server::start(&data, &settings);
    let mut session = Client::connect(server.port).expect("the superuser gets in");
    let mut watcher = Client::connect(server.port).expect("the superuser gets in");
    let mut looks = |what: &str| {
        let all = watcher.one(
            "SELECT string_agg(a::text, ' ') FROM (
                 SELECT query FROM pg_stat_activity UNION ALL SELECT query FROM pg_stat_statements
                 UNION ALL SELECT statement FROM pg_prepared_statements) a",
        );
        assert!(!all.contains("sesame"), "{what}: {all}");
        for path in
            ["now", "figures", "waits", "views/pg_stat_activity", "views/pg_stat_statements"]
        {
            let body = get(port, &format!("/api/{path}.json")).body;
            assert!(!body.contains("sesame"), "{what}: {path}");
        }
    };
    for sql in [
        "CREATE ROLE leak LOGIN PASSWORD 'sesame 1'",
        "alter role leak encrypted password E'sesame\\' 2'",
        "ALTER USER leak PASSWORD $x$sesame 3$x$ VALID UNTIL 'infinity'",
        "ALTER ROLE leak PASSWORD /* the new one */ 'sesame'' 4'; SELECT 1",
        "SELECT 1; ALTER GROUP leak RENAME TO leak2; ALTER ROLE leak2 PASSWORD 'sesame 5'",
        "ALTER ROLE nosuch PASSWORD 'sesame 6'",
        "ALTER ROLE leak2 PASWORD PASSWORD 'sesame 7'",
    ] {
        session.query(sql).expect("the server answers");
        looks(sql);
    }
    let log = std::fs::read_to_string(data.with_extension("log")).expect("there is a log");
    assert!(log.contains("PASSWORD '********'"), "{log}");
    assert!(!log.contains("sesame"), "{log}");
}
