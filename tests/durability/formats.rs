//! Directories that earlier versions made are served as they were. `tests/formats` keeps one of each format, as
//! its last version left it: stopped, and killed after some work. (How the first were made: `load.sql` into
//! database `postgres`, `load2.sql` into `second`; then, for the killed one, a checkpoint, 100 rows more in
//! `plain` and a table `late`.)

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::client::Client;
use crate::support::{BIN, Server, TempDir};

/// What is in them, beside a row count.
const QUESTIONS: [(&str, &str, &str); 14] = [
    ("postgres", "SELECT note FROM plain WHERE id = 77", "changed 77"),
    ("postgres", "SET enable_seqscan = off; SELECT id FROM plain WHERE note = 'row 300'", "300"),
    ("postgres", "SELECT count(*) || ' ' || sum(length(body)) FROM large", "3 29760"),
    (
        "postgres",
        "SELECT count(*) FROM large WHERE raw = decode(repeat(md5(id::text), 900), 'hex')",
        "3",
    ),
    ("postgres", "SELECT doc->>'n' FROM large WHERE id = 2", "2"),
    ("postgres", "SELECT nextval('numbers') > 8", "t"),
    ("postgres", "SELECT count(*) || ' ' || count(DISTINCT m) FROM parent", "151 3"),
    ("postgres", "SELECT count(*) FROM ONLY parent", "101"),
    ("postgres", "SELECT count(*) FROM seen", "99"),
    ("postgres", "SELECT count(*) FROM summed", "3"),
    ("postgres", "SELECT twice(21)", "42"),
    ("postgres", "SELECT has_table_privilege('reader', 'plain', 'select')", "t"),
    ("second", "SELECT count(*) || ' ' || max(length(what)) FROM there", "201 6400"),
    ("third", "SELECT count(*) FROM pg_class WHERE relname = 'plain'", "0"),
];

fn unpack(temp: &TempDir, name: &str) -> PathBuf {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats").join(name);
    let packed = archive.with_extension("tar.gz");
    let done = Command::new("tar").arg("xzf").arg(packed).arg("-C").arg(temp.path()).status();
    assert!(done.is_ok_and(|s| s.success()), "{name} can be unpacked");
    let dir = temp.path().join(name);
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&dir, private).expect("it is ours");
    dir
}

/// Exit code, and what was said.
fn run(command: &str, dir: &Path) -> (Option<i32>, String) {
    let out = Command::new(BIN)
        .env("THREADGRES_ALLOW_ROOT", "1")
        .args([command, "-D"])
        .arg(dir)
        .args(if command == "serve" { &["--single-process", "-p", "1"][..] } else { &[] })
        .stdin(Stdio::null())
        .output()
        .expect("the server's binary was built with the tests");
    (out.status.code(), crate::support::text_of(&out))
}

/// All that is in the directory, and that it can be changed.
fn is_as_it_was(dir: &Path, rows: &str) {
    let server = Server::start(dir, &[]);
    for (database, sql, answer) in QUESTIONS {
        let mut client = Client::connect_to(server.port, "postgres", database).expect("it serves");
        let answers = client.query(sql).expect("it answers");
        assert!(answers.error.is_none(), "{sql}: {:?}", answers.error);
        assert_eq!(answers.rows[0][0].as_deref(), Some(answer), "{sql}");
    }
    let mut client = Client::connect(server.port).expect("it serves");
    assert_eq!(client.one("SELECT count(*) FROM plain"), rows);
    client.one("INSERT INTO plain SELECT i, 'new' FROM generate_series(5001, 5100) i");
    client.one("CREATE TABLE newer AS SELECT repeat('z', 9000) AS z FROM generate_series(1, 5)");
    client.one("DROP TABLE child");
    server.kill();
    let server = Server::start(dir, &[]);
    let mut client = Client::connect(server.port).expect("it serves");
    let more: i32 = rows.parse::<i32>().expect("a number") + 100;
    assert_eq!(client.one("SELECT count(*) FROM plain"), more.to_string());
    assert_eq!(client.one("SELECT sum(length(z)) FROM newer"), "45000");
    assert!(server.stop());
    assert_eq!(run("check", dir), (Some(0), "no damage found\n".to_owned()));
}

#[test]
fn directories_of_older_formats_are_checked_upgraded_and_served() {
    let temp = TempDir::new("formats");
    let kept = [
        (2_u32, "v2", "350"),
        (2, "v2-crashed", "450"),
        (3, "v3", "350"),
        (3, "v3-crashed", "450"),
        (4, "v4", "350"),
        (4, "v4-crashed", "450"),
        (5, "v5", "350"),
        (5, "v5-crashed", "450"),
    ];
    for (format, name, rows) in kept {
        let dir = unpack(&temp, name);
        let control = std::fs::read(dir.join("threadgres.control")).expect("it is there");
        assert_eq!(control[8..12], format.to_le_bytes());
        assert_eq!(run("check", &dir), (Some(0), "no damage found\n".to_owned()), "{name}");
        assert_eq!(std::fs::read(dir.join("threadgres.control")).expect("it is there"), control);
        let (code, said) = run("upgrade", &dir);
        assert_eq!(code, Some(0), "{said}");
        let control = std::fs::read(dir.join("threadgres.control")).expect("it is there");
        assert_eq!(control[8..12], 6_u32.to_le_bytes());
        is_as_it_was(&dir, rows);
        // Without a word, too.
        std::fs::remove_dir_all(&dir).expect("writable");
        is_as_it_was(&unpack(&temp, name), rows);
    }
}

#[test]
fn a_directory_of_a_later_version_is_refused_in_words() {
    let temp = TempDir::new("later");
    let dir = temp.path().join("data");
    assert_eq!(run("init", &dir).0, Some(0));
    let path = dir.join("threadgres.control");
    let mut control = std::fs::read(&path).expect("it is there");
    control[8] = 77;
    let body = control.len() - 4;
    let crc = crc32c(&control[..body]);
    control[body..].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, control).expect("writable");
    for command in ["serve", "check", "upgrade", "status"] {
        let (code, said) = run(command, &dir);
        assert_eq!(code, Some(1), "{command}: {said}");
        assert!(
            said.contains("a later version") && said.contains("format 77"),
            "{command}: {said}"
        );
    }
}

/// CRC-32C, a bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg())
        })
    })
}
