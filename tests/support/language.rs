//! Tools for tests of the languages inside the server: statements and their rows, functions in WebAssembly, jars.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::raw::Raw;
use super::{Server, TempDir, text_of};

/// The rows of an answer, in which there must be no error.
#[track_caller]
pub fn rows(lines: &[String]) -> Vec<String> {
    assert!(!lines.iter().any(|l| l.starts_with("E ")), "{lines:?}");
    lines
        .iter()
        .filter_map(|l| l.strip_prefix("D "))
        .map(|l| l.replace("\\\"", "\"").replace("\\'", "'"))
        .collect()
}

/// SQLSTATE and message of an answer's error.
pub fn error(lines: &[String]) -> &str {
    lines.iter().find_map(|l| l.strip_prefix("E ERROR ")).unwrap_or("no error")
}

/// Runs statements that must not fail.
#[track_caller]
pub fn run(client: &mut Raw, text: &str) -> Vec<String> {
    let lines = client.query(text);
    assert!(!lines.iter().any(|l| l.starts_with("E ")), "{text}: {lines:?}");
    lines
}

/// Makes a function of a WebAssembly module's text.
#[track_caller]
pub fn make_wasm(client: &mut Raw, heading: &str, module: &str, export: &str) {
    run(
        client,
        &format!(
            "CREATE OR REPLACE FUNCTION {heading} LANGUAGE wasm AS $wasm${module}$wasm$, '{export}'"
        ),
    );
}

/// Makes a function of a method of `tests/java/Try.java`.
#[track_caller]
pub fn make_java(client: &mut Raw, heading: &str, method: &str) {
    run(
        client,
        &format!("CREATE OR REPLACE FUNCTION {heading} LANGUAGE java AS 'tried.Try.{method}'"),
    );
}

/// The CONTEXT of the error of a statement.
pub fn context_of(client: &mut Raw, statement: &str) -> String {
    run(
        client,
        "CREATE OR REPLACE FUNCTION context_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
         DECLARE said text;
         BEGIN
           EXECUTE statement;
           RETURN 'no error';
         EXCEPTION WHEN OTHERS THEN
           GET STACKED DIAGNOSTICS said = PG_EXCEPTION_CONTEXT;
           RETURN said;
         END $$",
    );
    rows(&run(client, &format!("SELECT context_of('{statement}')"))).concat()
}

/// Ten thousand calls that end with `38000`, on two connections at a time.
pub fn fail_often(port: u16, call: &str) {
    let many = || {
        let mut client = Raw::connect(port);
        for _ in 0..100 {
            run(
                &mut client,
                &format!(
                    "DO $$ BEGIN FOR n IN 1..50 LOOP BEGIN PERFORM {call}; EXCEPTION WHEN OTHERS THEN
                       IF SQLSTATE <> '38000' THEN RAISE; END IF; END; END LOOP; END $$"
                ),
            );
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(many);
        scope.spawn(many);
    });
}

/// Functions in WebAssembly that end badly, each in its own way.
const BAD: &str = r#"(module
  (memory (export "memory") 1)
  (func $inner unreachable)
  (func (export "trap") (call $inner))
  (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func (export "outside") (result i32) (i32.load (i32.const -8)))
  (func (export "bytes") (result i64) (i64.const 0x7fffffff7fffffff))
  (func $deep (export "deep") (result i32) (i32.add (call $deep) (i32.const 1)))
  (func (export "forever") (loop $again (br $again)))
  (func (export "memory_hog")
    (loop $again
      (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
      (br $again)))
  (func (export "fine") (result i32) (i32.const 7)))"#;

/// Makes the functions of a module that ends badly, and `fine()`.
pub fn make_bad_wasm(client: &mut Raw) {
    for (heading, export) in [
        ("trap() RETURNS void", "trap"),
        ("divide(int) RETURNS int", "divide"),
        ("outside() RETURNS int", "outside"),
        ("wild() RETURNS text", "bytes"),
        ("deep_wasm() RETURNS int", "deep"),
        ("forever() RETURNS void", "forever"),
        ("memory_hog() RETURNS void", "memory_hog"),
        ("fine() RETURNS int", "fine"),
    ] {
        make_wasm(client, heading, BAD, export);
    }
}

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run_tool(tool: &str, args: &[&str]) -> bool {
    let output = match Command::new(tool).args(args).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("left out: {tool}: {error}");
            return false;
        }
    };
    assert!(output.status.success(), "{tool}: {}", text_of(&output));
    true
}

/// A jar with the classes of sources; None without a JDK.
pub fn jar(dir: &Path, sources: &[PathBuf]) -> Option<PathBuf> {
    let (api, classes) = (dir.join("api"), dir.join("classes"));
    let interfaces = root().join("crates/java/java/org/postgresql/pljava");
    let text = |path: &Path| path.display().to_string();
    let mut words = vec!["-d".to_owned(), text(&api)];
    for entry in std::fs::read_dir(interfaces).expect("the interfaces are there") {
        words.push(text(&entry.expect("the folder can be read").path()));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !run_tool("javac", &words) {
        return None;
    }
    let (api, classes) = (text(&api), text(&classes));
    let sources: Vec<String> = sources.iter().map(|path| text(path)).collect();
    let mut words = vec!["--release", "11", "-cp", &api, "-d", &classes];
    words.extend(sources.iter().map(String::as_str));
    run_tool("javac", &words);
    let jar = dir.join("tried.jar");
    run_tool("jar", &["cf", &text(&jar), "-C", &classes, "."]);
    Some(jar)
}

/// Brings Java and the tests' jar, in the class path of `public`; false where there is no JDK or JVM.
pub fn install_java(dir: &TempDir, server: &Server) -> bool {
    let Some(jar) = jar(dir.path(), &[root().join("tests/java/Try.java")]) else { return false };
    let mut client = Raw::connect(server.port);
    let made = client.query("CREATE EXTENSION java");
    if error(&made).starts_with("58P01") {
        eprintln!("left out: {}", error(&made));
        return false;
    }
    assert_eq!(error(&made), "no error");
    let install = format!("SELECT sqlj.install_jar('file://{}', 'tried', false)", jar.display());
    run(&mut client, &install);
    run(&mut client, "SELECT sqlj.set_classpath('public', 'tried')");
    true
}
