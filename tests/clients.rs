//! Programs that look at the catalog, watch a server or keep it up print here what they print with
//! PostgreSQL 15 (`tests/clients/run`, `tests/clients/introspect/expected`). They come from the registries of
//! npm, PyPI and Debian; what was installed once stays in `target/clients`.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Server, TempDir};

#[test]
fn programs_that_look_at_the_catalog_print_what_they_print_with_postgresql() {
    let dir = TempDir::new("clients");
    let server = Server::start(&dir.path().join("data"), &[]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = Command::new(root.join("tests/clients/run"))
        .args(["rails", "sequelize", "typeorm", "drizzle", "postgraphile", "pgadmin"])
        .args(["pg_activity", "check_postgres", "exporter", "maintenance"])
        .env("DSN_BASE", format!("127.0.0.1:{}/postgres", server.port))
        .output()
        .expect("tests/clients/run starts");
    let (out, log) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{log}");
    assert!(server.stop(), "the server did not stop cleanly");
}
