//! The commands of the README, the tutorial and the guide run as they stand: every fenced `sh` block
//! goes to one shell for each page, every `sql` block to psql, against one server of the test's own, as
//! for somebody who reads all of them: a page leaves no table, function, role or setting behind for the next. A
//! block below the line `<!-- docs-test: skip -->` is left out: it starts servers or names others'
//! machines. `make docs-test` runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{BIN, PG_BIN, Server, TempDir};

const SKIP: &str = "<!-- docs-test: skip -->";
/// The port that the pages name.
const SHOWN_PORT: &str = "PGPORT=5433";

/// What a page has made and not taken away; pgbench's tables are made anew by each.
const LEFT: &str = "SELECT string_agg(what, ', ') FROM (
    SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'pgbench%'
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'
    UNION ALL SELECT rolname FROM pg_roles WHERE oid >= 16384
    UNION ALL SELECT datname FROM pg_database WHERE oid >= 16384
    UNION ALL SELECT line FROM regexp_split_to_table(pg_read_file('threadgres.auto.conf', 0, 100000, true), E'\\n') AS line
        WHERE line ~ '^[^#]') AS t (what)";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let guide = std::fs::read_dir(root().join("docs/guide")).expect("the guide is there");
    let mut pages: Vec<_> = guide.map(|e| e.expect("the folder can be read").path()).collect();
    pages.sort();
    pages.insert(0, root().join("docs/tutorial.md"));
    pages.insert(0, root().join("README.md"));
    pages
}

/// The page's blocks as one script for a shell.
fn script(page: &str) -> String {
    let mut script = String::new();
    let (mut skip, mut language) = (false, None);
    for line in page.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(_), Some(open)) => {
                if open == "sql" {
                    script.push_str("SQL\n");
                }
                (skip, language) = (false, None);
            }
            (Some(name @ ("sh" | "sql")), None) if !skip => {
                if name == "sql" {
                    script.push_str("psql -q -v ON_ERROR_STOP=1 <<'SQL'\n");
                }
                language = Some(name);
            }
            (Some(_), None) => language = Some("other"),
            (None, Some("sh" | "sql")) => {
                script.push_str(line);
                script.push('\n');
            }
            (None, Some(_)) => {}
            (None, None) => skip = line == SKIP || (skip && line.is_empty()),
        }
    }
    script
}

#[test]
#[ignore = "a minute; make docs-test runs it"]
fn every_command_of_the_pages_runs() {
    let dir = TempDir::new("docs");
    let server = Server::start(&dir.path().join("data"), &[]);
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page can be read");
        let script = script(&text);
        if script.is_empty() {
            continue;
        }
        println!("{}", page.display());
        let script = script.replace(SHOWN_PORT, &format!("PGPORT={}", server.port));
        let bin = Path::new(BIN).parent().expect("the binary lies in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let out = Command::new("bash")
            .args(["-e", "-x", "-o", "pipefail", "-c", &script])
            .current_dir(dir.path())
            .env("PATH", format!("{}:{PG_BIN}:{path}", bin.display()))
            .envs([("PGHOST", "127.0.0.1"), ("PGUSER", "postgres"), ("PGDATABASE", "postgres")])
            .env("PGPORT", server.port.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("bash is installed");
        let text = crate::support::text_of(&out);
        assert!(out.status.success(), "{}:\n{text}", page.display());
        assert!(!text.contains("ERROR:"), "{}:\n{text}", page.display());
        assert_eq!(server.query(LEFT), "", "{}: what it leaves behind", page.display());
    }
}

#[test]
fn blocks_below_the_mark_are_left_out() {
    let page = format!("a\n```sh\none\n```\n{SKIP}\n```sh\ntwo\n```\n```sql\nSELECT 3;\n```\n");
    assert_eq!(script(&page), "one\npsql -q -v ON_ERROR_STOP=1 <<'SQL'\nSELECT 3;\nSQL\n");
}
