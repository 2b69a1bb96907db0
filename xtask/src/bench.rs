//! `make bench`: PostgreSQL 15, Threadgres in both session models and a server that does nothing,
//! side by side in one run with the same durability, by the real `pgbench`.
//!
//! The targets take turns at every measuring point, so that a noisy machine hurts all alike; what
//! counts are the ratios. Each server is started once for a whole run. Results go to
//! `bench/results/`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{idle, root};

pub const PG_BIN: &str = "/usr/lib/postgresql/15/bin";

struct Plan {
    seconds: u32,
    clients: Vec<u32>,
    select_scale: u32,
    tpcb_scales: Vec<u32>,
}

pub struct Server {
    pub name: &'static str,
    pub port: u16,
    pub child: Option<Child>,
    pub is_null: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let signal = if self.is_null { "-TERM" } else { "-INT" };
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).status();
        let _ = child.wait();
    }
}

/// Runs the whole comparison.
pub fn run(args: &[String]) -> Result<(), String> {
    let plan = plan(args)?;
    let dir = std::env::temp_dir().join(format!("threadgres-bench-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let result = measure(&plan, &dir);
    let _ = fs::remove_dir_all(&dir);
    let table = result?;
    println!("{table}");
    let path = root().join("bench/results/side-by-side.md");
    fs::create_dir_all(root().join("bench/results")).map_err(|e| e.to_string())?;
    fs::write(&path, table).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("kept as bench/results/side-by-side.md");
    Ok(())
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let mut plan = Plan {
        seconds: 5,
        clients: vec![1, 10, 100, 1000],
        select_scale: 100,
        tpcb_scales: vec![10, 100],
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => {
                plan = Plan { seconds: 3, select_scale: 10, tpcb_scales: vec![10], ..plan };
            }
            "--seconds" => {
                let value = args.next().and_then(|v| v.parse().ok());
                plan.seconds = value.ok_or("--seconds takes a number")?;
            }
            other => return Err(format!("bench: unknown argument {other}")),
        }
    }
    Ok(plan)
}

fn measure(plan: &Plan, dir: &Path) -> Result<String, String> {
    let servers = start_all(dir)?;
    let mut out = header(plan);
    out.push_str("\n## Idle clients that have run one query\n\n| server | clients | resident memory each | server alone | CPU while idle |\n| --- | --- | --- | --- | --- |\n");
    for server in &servers[1..] {
        let pid = server.child.as_ref().map_or(0, Child::id);
        let line = idle::measure(server.name, server.port, pid, 1000)?;
        eprintln!("{line}");
        let _ = writeln!(out, "{line}");
    }
    let scales: Vec<u32> = {
        let mut all = plan.tpcb_scales.clone();
        all.push(plan.select_scale);
        all.sort_unstable();
        all.dedup();
        all
    };
    out.push_str("\n## Loading: pgbench -i, seconds\n\n");
    table_head(&mut out, &servers);
    for scale in &scales {
        let row: Vec<Option<f64>> = servers
            .iter()
            .map(|s| if s.is_null { Ok(None) } else { load(s, *scale).map(Some) })
            .collect::<Result<_, _>>()?;
        let label = format!("scale {scale}");
        table_row(&mut out, &label, &row, false);
        if *scale == plan.select_scale {
            section(&mut out, plan, &servers, "select-only", *scale)?;
        }
        if plan.tpcb_scales.contains(scale) {
            section(&mut out, plan, &servers, "tpcb-like", *scale)?;
        }
        if Some(scale) != scales.last() {
            out.push_str("\n## Loading: pgbench -i, seconds\n\n");
            table_head(&mut out, &servers);
        }
    }
    Ok(out)
}

fn section(
    out: &mut String,
    plan: &Plan,
    servers: &[Server],
    script: &str,
    scale: u32,
) -> Result<(), String> {
    for mode in ["simple", "prepared"] {
        let _ = writeln!(out, "\n## {script}, {mode}, scale {scale}: transactions per second\n");
        table_head(out, servers);
        for clients in &plan.clients {
            let row: Vec<Option<f64>> = servers
                .iter()
                .map(|s| point(s, script, mode, scale, *clients, plan.seconds))
                .collect();
            table_row(out, &format!("{clients} clients"), &row, true);
        }
    }
    Ok(())
}

fn header(plan: &Plan) -> String {
    let line = |program: &str, args: &[&str]| {
        let out = Command::new(program).args(args).output();
        out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    format!(
        "# pgbench, side by side\n\n{cores} cores, client and servers on one machine; {} seconds a point; fsync on everywhere.\n{}; {}\nRatios: to the do-nothing server (of null) and to PostgreSQL (x PG).\n",
        plan.seconds,
        line(&format!("{PG_BIN}/postgres"), &["--version"]),
        line("uname", &["-sr"]),
    )
}

fn table_head(out: &mut String, servers: &[Server]) {
    let names: Vec<&str> = servers.iter().map(|s| s.name).collect();
    let _ = writeln!(out, "| | {} | pooled of null | pooled x PG |", names.join(" | "));
    let _ = writeln!(out, "|{}", " --- |".repeat(names.len() + 3));
}

/// `row`: PostgreSQL, pooled, thread, null. More is better when `rate`.
fn table_row(out: &mut String, label: &str, row: &[Option<f64>], rate: bool) {
    let number = |v: &Option<f64>| match v {
        Some(v) if rate => format!("{v:.0}"),
        Some(v) => format!("{v:.1}"),
        None => "-".to_owned(),
    };
    let ratio = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", if rate { a / b } else { b / a }),
        _ => "-".to_owned(),
    };
    let cells: Vec<String> = row.iter().map(number).collect();
    let line = format!(
        "| {label} | {} | {} | {} |",
        cells.join(" | "),
        ratio(row[1], row[3]),
        ratio(row[1], row[0]),
    );
    eprintln!("{line}");
    let _ = writeln!(out, "{line}");
}

fn start_all(dir: &Path) -> Result<Vec<Server>, String> {
    let ours = root().join("target/release/threadgres");
    let ours = ours.to_string_lossy().into_owned();
    let data = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let serve = |name: &str, port: u16, model: &str| -> Result<Child, String> {
        let (port, model) = (port.to_string(), format!("session_model={model}"));
        let data = data(name);
        spawn(
            dir,
            name,
            &ours,
            &[
                "serve",
                "--allow-root",
                "--single-process",
                "-D",
                &data,
                "-p",
                &port,
                "-c",
                &model,
                "-c",
                "shared_buffers=2GB",
                "-c",
                "max_wal_size=8GB",
                "-c",
                "max_connections=2000",
            ],
        )
    };
    let servers = vec![
        Server {
            name: "PostgreSQL 15",
            port: 7201,
            child: Some(postgres(dir, 7201)?),
            is_null: false,
        },
        Server {
            name: "pooled",
            port: 7202,
            child: Some(serve("pooled", 7202, "pooled")?),
            is_null: false,
        },
        Server {
            name: "thread",
            port: 7203,
            child: Some(serve("thread", 7203, "thread")?),
            is_null: false,
        },
        Server {
            name: "null",
            port: 7204,
            child: Some(spawn(dir, "null", &ours, &["null-server", "-p", "7204"])?),
            is_null: true,
        },
    ];
    for server in &servers {
        wait_for(server)?;
    }
    Ok(servers)
}

fn postgres(dir: &Path, port: u16) -> Result<Child, String> {
    let data = dir.join("postgres");
    fs::create_dir_all(&data).map_err(|e| e.to_string())?;
    let data = data.to_string_lossy().into_owned();
    let initdb = format!("{PG_BIN}/initdb");
    if is_root() {
        ok(Command::new("chmod").args(["a+rx", &dir.to_string_lossy()]))?;
        ok(Command::new("chown").args(["postgres", &data]))?;
    }
    let (program, mut args) = as_postgres(&initdb);
    args.extend(["-D", &data, "-A", "trust", "-U", "postgres", "--no-sync"].map(str::to_owned));
    ok(Command::new(program).args(args).stdout(Stdio::null()))?;
    let server = format!("{PG_BIN}/postgres");
    let (program, mut args) = as_postgres(&server);
    let port = port.to_string();
    let list = [
        "-D",
        &data,
        "-p",
        &port,
        "-k",
        "",
        "-h",
        "127.0.0.1",
        "-c",
        "shared_buffers=2GB",
        "-c",
        "max_wal_size=8GB",
        "-c",
        "max_connections=2000",
        "-c",
        "fsync=on",
    ];
    args.extend(list.map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    spawn(dir, "postgres", &program, &args)
}

fn is_root() -> bool {
    let out = Command::new("id").arg("-u").output();
    out.is_ok_and(|o| o.stdout.starts_with(b"0"))
}

/// PostgreSQL refuses to run as root.
fn as_postgres(program: &str) -> (String, Vec<String>) {
    if is_root() {
        let args = ["--reuid=postgres", "--regid=postgres", "--init-groups", "--", program];
        ("setpriv".to_owned(), args.map(str::to_owned).to_vec())
    } else {
        (program.to_owned(), Vec::new())
    }
}

pub fn spawn(dir: &Path, name: &str, program: &str, args: &[&str]) -> Result<Child, String> {
    let log: PathBuf = dir.join(format!("{name}.log"));
    let log = fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let err = log.try_clone().map_err(|e| e.to_string())?;
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(err)
        .spawn()
        .map_err(|e| format!("{program}: {e}"))
}

fn ok(command: &mut Command) -> Result<(), String> {
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&out.stderr)))
}

pub fn wait_for(server: &Server) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", server.port)).is_err() {
        if Instant::now() > until {
            return Err(format!("{} does not listen on port {}", server.name, server.port));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

pub fn base_args(server: &Server) -> Vec<String> {
    ["-h", "127.0.0.1", "-p", &server.port.to_string(), "-U", "postgres"]
        .map(str::to_owned)
        .to_vec()
}

pub fn load(server: &Server, scale: u32) -> Result<f64, String> {
    let start = Instant::now();
    let mut args = base_args(server);
    args.extend(["-i", "-q", "-s", &scale.to_string(), "postgres"].map(str::to_owned));
    ok(Command::new(format!("{PG_BIN}/pgbench")).args(args))
        .map_err(|e| format!("{}: {e}", server.name))?;
    Ok(start.elapsed().as_secs_f64())
}

/// One point; none when pgbench failed on that server, which is said.
fn point(
    server: &Server,
    script: &str,
    mode: &str,
    scale: u32,
    clients: u32,
    seconds: u32,
) -> Option<f64> {
    let result = pgbench(server, script, mode, scale, clients, seconds);
    result.map_err(|text| eprintln!("{text}")).ok()
}

/// Transactions per second.
pub fn pgbench(
    server: &Server,
    script: &str,
    mode: &str,
    scale: u32,
    clients: u32,
    seconds: u32,
) -> Result<f64, String> {
    let mut args = base_args(server);
    let threads = clients.min(2).to_string();
    args.extend(
        [
            "-n",
            "-b",
            script,
            "-M",
            mode,
            "-s",
            &scale.to_string(),
            "-c",
            &clients.to_string(),
            "-j",
            &threads,
            "-T",
            &seconds.to_string(),
            "postgres",
        ]
        .map(str::to_owned),
    );
    let out = Command::new(format!("{PG_BIN}/pgbench"))
        .args(args)
        .output()
        .map_err(|e| format!("pgbench: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let tps = text.lines().find_map(|l| l.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    match tps {
        Some(tps) if out.status.success() => Ok(tps),
        _ => Err(format!(
            "{}: pgbench {script} {mode} with {clients} clients failed: {}",
            server.name,
            String::from_utf8_lossy(&out.stderr)
                .lines()
                .rev()
                .take(3)
                .collect::<Vec<_>>()
                .join("; ")
        )),
    }
}
