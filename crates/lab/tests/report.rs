//! The report in a browser: made from records, opened in headless Chromium, looked at.
//!
//! The page says itself that its script ran to the end (`data-ready`) and whether it failed
//! (`data-error`); a screenshot must hold more than a blank sheet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lab::arguments::Arguments;
use lab::results::{
    Environment, IncidentSecond, Latency, LockPoint, Point, Record, SimulatedPoint, Target, Wait,
    write,
};

const COUNTS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A run as `lab sweep`, `locks`, `simulate` and `incident` write them, with invented figures.
fn records() -> Vec<Record> {
    let mut out = vec![Record::Environment(Environment {
        started: "2026-11-21T12:00:00Z".into(),
        lab: "0.1.0".into(),
        cores: 2,
        processor: "Example 3000 <fast & cheap>".into(),
        kernel: "6.1.0".into(),
        memory: 8_000_000_000,
        arguments: vec!["sweep".into(), "--quick".into()],
    })];
    let servers = [
        ("threadgres", "Threadgres 0.1.0", 14_000.0, 0.35, 2e-4, 70.0),
        ("postgres", "PostgreSQL 15.15 (Debian)", 12_000.0, 0.37, 9e-3, 90.0),
        ("null", "a server that does nothing", 60_000.0, 0.38, 1e-4, 15.0),
    ];
    for (name, version, ..) in servers {
        out.push(Record::Target(Target {
            name: name.into(),
            url: format!("postgres://localhost/{name}"),
            version: version.into(),
            settings: BTreeMap::from([("shared_buffers".into(), "128MB".into())]),
        }));
    }
    for (server, (name, _, scale, a, b, latency)) in servers.into_iter().enumerate() {
        for clients in COUNTS {
            for repetition in 0..3 {
                let n = f64::from(clients);
                let wobble = 1.0 + 0.02 * f64::from((clients * 7 + repetition * 3) % 5) - 0.04;
                let tps = scale * wobble * n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0));
                let mean = 1e6 * n / tps;
                out.push(Record::Point(Point {
                    target: name.into(),
                    workload: "select-only".into(),
                    protocol: "prepared".into(),
                    driver: "lab".into(),
                    clients,
                    repetition,
                    seconds: 2.0,
                    transactions: (2.0 * tps) as u64,
                    tps,
                    latency: Latency {
                        mean,
                        percentiles: vec![
                            (50.0, (0.9 * mean + latency) as u64),
                            (99.0, (4.0 * mean + latency * n) as u64),
                            (100.0, (20.0 * mean) as u64),
                        ],
                        ..Latency::default()
                    },
                    server_cpu: Some(2.4),
                    driver_cpu: Some(1.1),
                    server_memory: Some(150_000_000),
                    waits: if server < 2 { waits(server, n) } else { Vec::new() },
                    stacks: (server == 0)
                        .then(|| "on CPU;run;read 30\nwaiting;Lock:relation 70\n".into()),
                    ..Point::default()
                }));
            }
        }
    }
    out.extend(others());
    out
}

fn waits(server: usize, n: f64) -> Vec<Wait> {
    let wait = |kind: &str, event: &str, share: f64| Wait {
        kind: kind.into(),
        event: event.into(),
        count: (100.0 * share) as u64,
        seconds: 2.0 * n * share,
        sampled: server == 1,
    };
    let contention = 0.4 * (1.0 - 1.0 / n);
    match server {
        0 => vec![
            wait("Client", "ClientRead", 0.4),
            wait("LWLock", "BufferMapping", 0.1 * contention),
        ],
        _ => vec![
            wait("Client", "ClientRead", 0.3),
            wait("LWLock", "BufferMapping", 0.5 * contention),
            wait("LWLock", "ProcArray", 0.6 * contention),
            wait("Lock", "transactionid", 0.1 * contention),
            wait("CPU", "", 0.2),
        ],
    }
}

fn others() -> Vec<Record> {
    let mut out = Vec::new();
    for (i, primitive) in
        ["pin-add", "pin-cas", "pin-both", "add-one", "add-padded", "lwlock-fair", "std"]
            .into_iter()
            .enumerate()
    {
        for threads in [1, 2, 4] {
            let mean_ns = 10.0 * f64::from(threads) * (1.0 + i as f64 / 3.0);
            out.push(Record::Lock(LockPoint {
                primitive: primitive.into(),
                parameters: BTreeMap::from([("writers".into(), 10.0), ("hold_ns".into(), 0.0)]),
                threads,
                mean_ns,
                longest_ns: 100_000,
                ..LockPoint::default()
            }));
        }
    }
    for (variant, cost) in [("spin lock", 0.02), ("atomic", 0.001)] {
        for cores in [2, 8, 32, 128, 512] {
            let n = f64::from(cores);
            out.push(Record::Simulated(SimulatedPoint {
                machine: "8 blades, 16 sockets".into(),
                scenario: "buffer pin".into(),
                variant: variant.into(),
                cores,
                throughput: 1e6 * n / (1.0 + cost * n + cost * cost * n * n),
                ..SimulatedPoint::default()
            }));
        }
    }
    for limit in [-1, 16] {
        for second in 0..20 {
            let waited = if limit < 0 { f64::from(second) * 1000.0 } else { 3.0 };
            out.push(Record::Second(IncidentSecond {
                part: limit.to_string(),
                limit,
                second,
                values: BTreeMap::from([
                    ("longest_insert_ms".into(), waited),
                    ("transactions".into(), 9000.0),
                ]),
            }));
        }
    }
    out
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-report-{name}"));
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("a folder of an earlier run");
    }
    std::fs::create_dir_all(&dir).expect("a folder for the test");
    dir
}

fn results_file(dir: &Path, records: &[Record]) -> PathBuf {
    let path = dir.join("results.jsonl");
    let mut file = std::fs::File::create(&path).expect("a results file");
    for record in records {
        write(&mut file, record).expect("a record");
    }
    path
}

fn report(words: &[&Path]) -> lab::Result<()> {
    lab::report::run(Arguments::new(words.iter().map(|w| w.as_os_str())))
}

fn chromium(dir: &Path, args: &[&str]) -> Output {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    for name in names {
        let profile = format!("--user-data-dir={}", dir.join("profile").display());
        let found = Command::new(name)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", &profile])
            .args(args)
            .stdin(Stdio::null())
            .output();
        if let Ok(output) = found {
            return output;
        }
    }
    panic!("no browser is installed; scripts/need browser installs one");
}

#[test]
fn the_report_opens_in_a_browser() {
    let dir = folder("browser");
    let input = results_file(&dir, &records());
    let out = dir.join("report");
    report(&[Path::new("-o"), &out, &input]).expect("a report");

    let page = out.join("index.html");
    let html = std::fs::read_to_string(&page).expect("the page");
    for outside in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!html.contains(outside), "the page wants {outside} from elsewhere");
    }
    let address = format!("file://{}", page.display());
    let dom = chromium(&dir, &["--dump-dom", &address]);
    let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
    let root = &dom[..dom.find("<head").expect("a document")];
    assert!(!root.contains("data-error"), "the script failed: {root}");
    let figures = root.split("data-ready=\"").nth(1).and_then(|r| r.split('"').next());
    let figures: usize = figures.and_then(|f| f.parse().ok()).expect("the script ran to its end");
    assert!(figures >= 12, "{figures} figures");
    let top = "Threadgres reaches 4.7 times PostgreSQL’s throughput at 128 clients";
    assert!(dom.contains(top), "the first sentence is missing");
    assert!(dom.contains("Example 3000 &lt;fast &amp; cheap&gt;"), "text is escaped");
    assert!(dom.contains("N counts clients"), "the fit's warnings are on the page");
    let ids = [
        "throughput",
        "ratio",
        "latency",
        "fit",
        "waits",
        "flame-threadgres",
        "flame-waits-threadgres",
    ];
    for id in ids {
        assert!(dom.contains(&format!("id=\"{id}-select-only-prepared\"")), "{id} is missing");
    }

    for (name, size) in [("wide", "1000,1400"), ("phone", "390,1400")] {
        let picture = dir.join(format!("{name}.png"));
        let shot = format!("--screenshot={}", picture.display());
        chromium(&dir, &[&shot, &format!("--window-size={size}"), &address]);
        // A blank sheet of this size compresses to some kilobytes.
        let bytes = std::fs::metadata(&picture).expect("a screenshot").len();
        assert!(bytes > 30_000, "{name}: {bytes} bytes are a blank page");
    }
}

#[test]
fn plots_are_files_too() {
    let dir = folder("files");
    let input = results_file(&dir, &records());
    let out = dir.join("report");
    report(&[Path::new("-o"), &out, &input]).expect("a report");
    let names: Vec<String> = std::fs::read_dir(out.join("plots"))
        .expect("plots")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.contains(&"throughput-select-only-prepared.svg".to_owned()), "{names:?}");
    assert!(names.contains(&"throughput-select-only-prepared.png".to_owned()), "{names:?}");
    assert!(!names.iter().any(|n| n.ends_with(".partial")), "{names:?}");

    let main = dir.join("main.svg");
    report(&[Path::new("--plot"), &main, &input]).expect("the main plot");
    let svg = std::fs::read_to_string(&main).expect("the main plot");
    assert!(svg.starts_with("<svg xmlns") && svg.contains("PostgreSQL"), "{svg}");
    assert!(!svg.contains("var(--"), "the colours are plain");
}

#[test]
fn what_is_wrong_with_the_input_is_said() {
    let dir = folder("errors");
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let out = dir.join("report");
    let error = |input: &Path| {
        let error = report(&[Path::new("-o"), &out, input]).expect_err("no report");
        error.to_string()
    };
    assert!(error(&dir.join("absent")).contains("absent: No such file"));
    assert!(error(&file("empty", "")).contains("empty: is empty"));
    assert!(error(&file("broken", "{\"record\":\"x\"}\n{}\n")).contains("broken: line 1:"));
    let environment = results_file(&dir, &records()[..1]);
    assert!(error(&environment).contains("hold no point"));
    assert!(!out.exists(), "nothing was left behind");

    // The device that is always full stands in for the page's place.
    let input = results_file(&dir, &records());
    std::fs::create_dir_all(&out).expect("a folder");
    std::os::unix::fs::symlink("/dev/full", out.join("index.html.partial")).expect("a link");
    let full = error(&input);
    assert!(full.contains("index.html: No space left on device"), "{full}");
    assert!(!out.join("index.html").exists(), "half a report was left");
    let left = std::fs::read_dir(out.join("plots")).expect("plots").count();
    assert_eq!(left, 0, "plots without their page were left");
}
