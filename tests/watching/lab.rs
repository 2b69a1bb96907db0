//! `lab sweep` against real servers: its counts are the server's, and nothing measured is lost when
//! something goes wrong.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use crate::support::{BIN, Server, TempDir, free_port, text_of};
use lab::results::{self, Point, Record};

fn sweep(file: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(BIN);
    command.args(["lab", "sweep", "--init", "--output"]).arg(file).args(args);
    command
}

fn target(name: &str, port: u16) -> String {
    format!("{name}=postgres://postgres@127.0.0.1:{port}/postgres")
}

fn records(file: &Path) -> Vec<Record> {
    let file = fs::File::open(file).expect("the sweep made its file");
    results::read(BufReader::new(file)).expect("every line is a record")
}

fn points(file: &Path) -> Vec<Point> {
    let of = |record| if let Record::Point(point) = record { Some(point) } else { None };
    records(file).into_iter().filter_map(of).collect()
}

fn run(mut command: Command) -> (Option<i32>, String) {
    let out: Output = command.output().expect("the binary was built with the tests");
    (out.status.code(), text_of(&out))
}

/// A sweep that runs. It writes a line for each point that it has kept.
struct Sweep {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Sweep {
    fn start(mut command: Command) -> Sweep {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built with the tests");
        let said = BufReader::new(child.stderr.take().expect("stderr is piped"));
        Sweep { child, said }
    }

    fn wait_for_point(&mut self) {
        let mut line = String::new();
        while !line.contains(" tps, ") {
            line.clear();
            let read = self.said.read_line(&mut line).expect("its words can be read");
            assert!(read > 0, "it ended without a point");
        }
    }

    /// Its exit code and what else it said.
    fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.said.read_to_string(&mut text).expect("its words can be read");
        (self.child.wait().expect("it is ours").code(), text)
    }
}

#[test]
fn counts_are_the_servers() {
    let dir = TempDir::new("lab-counts");
    // The commits of autovacuum count as well, as on PostgreSQL.
    let server = Server::start(&dir.path().join("data"), &["autovacuum=off"]);
    let file = dir.path().join("results.jsonl");
    let script = dir.path().join("mine.sql");
    fs::write(&script, "\\set n random(1, 10)\nSELECT :n * 2 AS twice \\gset\nSELECT :twice;\n")
        .expect("the folder is writable");
    let workloads = "select-only,tpcb-like,hot-row,ycsb-f";
    let short = ["-T", "0.4", "--warm-up", "0.1", "--no-stacks"];
    let target = target("own", server.port);
    let args = ["-w", workloads, "-c", "1,5", "-M", "simple,prepared", "-s", "1", &target];
    let (code, text) = run(sweep(&file, &[&args[..], &short].concat()));
    assert_eq!(code, Some(0), "{text}");
    let measured = points(&file);
    assert_eq!(measured.len(), 16, "{text}");
    for point in &measured {
        let of = format!("{} {} {}", point.workload, point.protocol, point.clients);
        assert!(point.transactions > 0, "{of}");
        assert!(point.errors.is_empty(), "{of}: {:?}", point.errors);
        let commits = point.server_commits;
        assert_eq!(commits, Some(point.all_transactions), "{of}: what pg_stat_database counted");
        assert!(point.server_memory.is_some() && point.server_cpu.is_some(), "{of}");
        assert!(point.latency.percentiles.iter().any(|(p, us)| *p == 99.0 && *us > 0), "{of}");
    }
    // Each transaction of these left a trace, in warm-up and at the end too.
    for (workload, trace) in [
        ("hot-row", "SELECT n FROM lab_hot"),
        ("tpcb-like", "SELECT count(*) FROM pgbench_history"),
    ] {
        let counted: u64 =
            measured.iter().filter(|p| p.workload == workload).map(|p| p.all_transactions).sum();
        assert_eq!(server.query(trace), counted.to_string(), "{workload}");
    }
    assert!(matches!(&records(&file)[0], Record::Environment(e) if e.cores > 0));
    // Its own script, and pgbench as the driver, are added to the same file.
    let script = script.to_string_lossy().into_owned();
    let (code, text) = run(sweep(&file, &["-w", &script, "-c", "2", "-T", "0.3", &target]));
    assert_eq!(code, Some(0), "{text}");
    let pgbench = ["-d", "pgbench", "-c", "2", "-T", "1", "--warm-up", "0", &target];
    let (code, text) = run(sweep(&file, &pgbench));
    assert_eq!(code, Some(0), "{text}");
    let measured = points(&file);
    let names: Vec<(&str, &str)> =
        measured[16..].iter().map(|p| (p.workload.as_str(), p.driver.as_str())).collect();
    assert_eq!(names, [("mine.sql", "lab"), ("select-only", "pgbench")]);
    assert!(measured[16..].iter().all(|p| p.transactions > 0 && p.errors.is_empty()));
}

#[test]
fn the_last_points_have_stacks() {
    let dir = TempDir::new("lab-stacks");
    let server = Server::start(&dir.path().join("data"), &[]);
    let file = dir.path().join("results.jsonl");
    let args = ["-w", "select-only,hot-row", "-c", "1,5", "-T", "0.2", "--warm-up", "0.1"];
    let (code, text) = run(sweep(&file, &[&args[..], &[&target("own", server.port)]].concat()));
    assert_eq!(code, Some(0), "{text}");
    let measured = points(&file);
    assert_eq!(measured.len(), 4, "{text}");
    for point in measured {
        let (of, stacks) = (&point.workload, point.stacks.unwrap_or_default());
        assert!(point.clients == 5 || stacks.is_empty(), "{of}");
        assert!(!stacks.contains("on CPU;profiler"), "{of}: what measures is not measured");
        let wanted = match (point.clients, of.as_str()) {
            (5, "select-only") => "on CPU;client backend;",
            (5, "hot-row") => "waiting;UPDATE lab_hot",
            _ => "",
        };
        assert!(stacks.contains(wanted), "{of}: {stacks}");
    }
}

#[test]
fn errors_are_counted_and_clients_go_on() {
    let dir = TempDir::new("lab-errors");
    let server = Server::start(&dir.path().join("data"), &[]);
    let (file, script) = (dir.path().join("results.jsonl"), dir.path().join("errors.sql"));
    let text = "\\set n random(0, 1)\nBEGIN;\nSELECT 1 / :n;\nCOMMIT;\n";
    fs::write(&script, text).expect("the folder is writable");
    let script = script.to_string_lossy().into_owned();
    for protocol in ["simple", "prepared"] {
        let args =
            ["-w", &script, "-c", "3", "-T", "0.3", "-M", protocol, &target("own", server.port)];
        let (code, text) = run(sweep(&file, &args));
        assert_eq!(code, Some(0), "{text}");
    }
    for point in points(&file) {
        assert!(point.transactions > 0, "{}", point.protocol);
        let codes: Vec<&str> = point.errors.keys().map(String::as_str).collect();
        assert_eq!(codes, ["22012"], "{}", point.protocol);
    }
}

#[test]
fn mistakes_are_said_before_anything_is_measured() {
    let dir = TempDir::new("lab-mistakes");
    let (file, script) = (dir.path().join("results.jsonl"), dir.path().join("wrong.sql"));
    fs::write(&script, "SELECT 1;\n\\nonsense\n").expect("the folder is writable");
    let script = script.to_string_lossy().into_owned();
    let nobody = target("nobody", free_port());
    let (code, text) = run(sweep(&file, &["-w", &script, &nobody]));
    assert_eq!(code, Some(2));
    assert!(text.contains("wrong.sql: line 2: there is no meta-command \\nonsense"), "{text}");
    assert!(!file.exists());
    let (code, text) = run(sweep(&file, &[&nobody]));
    assert_eq!(code, Some(1));
    assert!(text.contains("nobody: no connection to postgres://postgres@127.0.0.1:"), "{text}");
    let (code, text) = run(sweep(Path::new("/dev/full"), &[&nobody]));
    assert_eq!(code, Some(1));
    assert!(text.contains("/dev/full: No space left on device"), "{text}");
}

#[test]
fn what_was_measured_is_kept() {
    let dir = TempDir::new("lab-kept");
    let (left, right) = (dir.path().join("left"), dir.path().join("right"));
    let (dies, lives) = (Server::start(&left, &[]), Server::start(&right, &[]));
    let file = dir.path().join("results.jsonl");
    let (a, b) = (target("dies", dies.port), target("lives", lives.port));
    let args = ["-w", "hot-row", "-c", "2", "-T", "0.3", "--warm-up", "0", "-r", "3", &a, &b];
    let mut child = Sweep::start(sweep(&file, &args));
    child.wait_for_point();
    dies.kill();
    let (code, text) = child.end();
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("dies is gone; its remaining points are left out"), "{text}");
    let kept = points(&file);
    assert_eq!(kept.iter().filter(|p| p.target == "lives").count(), 3, "{text}");
    assert!(kept.iter().any(|p| p.target == "dies"), "{text}");

    let file = dir.path().join("interrupted.jsonl");
    let args = ["-w", "hot-row", "-c", "2", "-T", "0.3", "--warm-up", "0", "-r", "1000", &b];
    let mut child = Sweep::start(sweep(&file, &args));
    child.wait_for_point();
    let pid = child.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|s| s.success()));
    let (code, text) = child.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("points are kept in"), "{text}");
    assert!(!points(&file).is_empty());
}

/// `make lab` names the page that it has just made in `LAB_REPORT`.
#[test]
#[ignore = "make lab runs it on its report"]
fn the_report_of_a_real_run_opens_in_a_browser() {
    let page = std::env::var("LAB_REPORT").expect("make lab names its report");
    let dir = TempDir::new("lab-browser");
    let profile = format!("--user-data-dir={}", dir.path().display());
    let out = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", &profile, "--dump-dom"])
        .arg(format!("file://{page}"))
        .stdin(Stdio::null())
        .output()
        .expect("a browser is installed; scripts/need browser installs one");
    let dom = String::from_utf8_lossy(&out.stdout);
    let root = &dom[..dom.find("<head").expect("a document")];
    assert!(root.contains("data-ready") && !root.contains("data-error"), "{root}");
    for id in [
        "throughput-select-only-prepared",
        "fit-select-only-prepared",
        "throughput-tpcb-like-prepared",
    ] {
        assert!(dom.contains(&format!("id=\"{id}\"")), "{id} is missing");
    }
}

/// TPC-C over small tables: every mode keeps the conditions, and a broken one is named.
#[test]
fn tpcc_keeps_its_conditions() {
    let dir = TempDir::new("lab-tpcc");
    let server = Server::start(&dir.path().join("data"), &[]);
    let address = target("own", server.port);
    let tpcc = |more: &[&str]| {
        let mut command = Command::new(BIN);
        command.args(["lab", "tpcc", "-w", "2", "-c", "4", "--small", "--warm-up", "0", &address]);
        command.args(more);
        run(command)
    };
    for more in [
        &["-M", "simple", "-T", "1"][..],
        &["-M", "prepared", "-T", "1", "--keep"],
        &["-M", "procedures", "-T", "1", "--keep", "--think", "0.001"],
        &["-M", "prepared", "-T", "1", "--foreign-keys"],
    ] {
        let (code, text) = tpcc(more);
        assert_eq!(code, Some(0), "{more:?}: {text}");
        assert!(text.contains("All conditions hold with 2 warehouses."), "{more:?}: {text}");
    }
    let done = server.query("SELECT count(*) > 1200, count(*) FROM orders");
    assert!(done.starts_with("t|"), "orders were taken: {done}");
    for (broken, name) in [
        (
            "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_number = 2",
            "condition 4:",
        ),
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", "condition 1:"),
    ] {
        server.query(broken);
        let (code, text) = tpcc(&["--keep", "-T", "0"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(name), "{text}");
    }
}
