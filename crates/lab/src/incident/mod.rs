//! `lab incident`: the starvation of the exclusive locker as a story.
//!
//! In the case that this comes from, a steady stream of shared lockers on one partition of the buffer
//! mapping never let an exclusive locker in, while it held the right to extend a table: INSERTs
//! waited for up to an hour. To happen, it needs shared holders that overlap without a gap. On the
//! 300 cores of that machine they did: taking and giving back a lock whose cache line all cores want
//! takes each of them microseconds, so most of a look-up's time was spent holding the partition.
//! On a few cores the same look-up holds it for some tens of nanoseconds, so the share is restored
//! with `buffer_lookup_hold`: each look-up holds the partition for 20 microseconds. As there are more
//! readers than cores, some always lost their core while they held it.
//!
//! This server doesn't look up pages under a lock any more, nor does it hold the extension lock while
//! it waits for a latch. So the case is rebuilt with settings that bring the historical ways back
//! ([`HISTORICAL`]), and a last part shows the server as it is.
//!
//! `client.rs`: a connection; `server.rs`: a part's server; `load.rs`: readers and writers;
//! `sample.rs`: what is looked at; `verdict.rs`: what it amounts to; `many.rs`: `--locks`; `machine.rs`: how
//! busy the machine is with something else.

mod client;
mod load;
mod machine;
mod many;
mod sample;
mod server;
mod verdict;

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base::settings::{Const, setting};

use crate::arguments::Argument::Long;
use crate::arguments::Arguments;
use crate::results::{self, IncidentSecond, Record};
use crate::{Error, Result};

use load::Load;
use sample::{COLUMNS, Sampler, Values};
use server::Server;
use verdict::Part;

/// What `threadgres lab incident --help` prints.
pub const HELP: &str = "\
Shows the starvation of the exclusive locker, and its cure: many readers on one hot index and one
partition of the buffer mapping, writers that extend a table, with lwlock_shared_limit -1, 0 and the
default, and the historical ways of looking up and extending; then the server as it is.

Usage: threadgres lab incident [OPTION]…

  --seconds NUMBER    length of a part (default: 40)
  --readers NUMBER    sessions that read (default: 14)
  --writers NUMBER    sessions that insert (default: 6)
  --pace SECONDS      time between the INSERTs of one writer (default: 1)
  --limits LIST       values of lwlock_shared_limit (default: -1, 0 and the server's default)
  --output FILE       write the results as JSON lines, too
  --locks             instead: 200,000 heavyweight locks held by 2,000 sessions
";

/// As PostgreSQL 15 does these things, with a process for each session and one partition.
const HISTORICAL: [&str; 6] = [
    "session_model=thread",
    "buffer_partitions=1",
    "buffer_lookup=locked",
    "buffer_lookup_hold=20",
    "btree_descent=latched",
    "heap_extension=locked",
];
/// In all parts: no disturbance from elsewhere.
const QUIET: [&str; 3] = ["autovacuum=off", "fsync=off", "checkpoint_timeout=86400"];

struct Plan {
    seconds: u32,
    readers: u32,
    writers: u32,
    pace: Duration,
    limits: Vec<i64>,
    output: Option<PathBuf>,
}

/// `lwlock_shared_limit`'s default.
fn default_limit() -> i64 {
    match setting::LWLOCK_SHARED_LIMIT.def().default {
        Const::Int(limit) => limit,
        _ => 0,
    }
}

/// Runs it.
///
/// # Errors
/// A wrong command line; a server that doesn't start or breaks down; a claim that didn't hold.
pub fn run(mut args: Arguments) -> Result<()> {
    let mut plan = Plan {
        seconds: 40,
        readers: 14,
        writers: 6,
        pace: Duration::from_secs(1),
        limits: vec![-1, 0, default_limit()],
        output: None,
    };
    let mut locks = false;
    while let Some(option) = args.option()? {
        match option {
            Long("seconds") => plan.seconds = args.value()?,
            Long("readers") => plan.readers = args.value()?,
            Long("writers") => plan.writers = args.value()?,
            Long("pace") => plan.pace = args.seconds()?,
            Long("limits") => plan.limits = args.list()?,
            Long("output") => plan.output = Some(args.path()?),
            Long("locks") => locks = true,
            other => return Err(other.unknown()),
        }
    }
    if locks { many::run() } else { tell(&plan) }
}

/// All parts, then the verdicts.
fn tell(plan: &Plan) -> Result<()> {
    let mut parts = Vec::new();
    for limit in &plan.limits {
        parts.push(play(plan, *limit, true)?);
    }
    parts.push(play(plan, default_limit(), false)?);
    if let Some(path) = &plan.output {
        write(path, &parts)?;
    }
    println!("\n{EXPLANATION}\n");
    let verdicts = verdict::verdicts(&parts, default_limit());
    for verdict in &verdicts {
        println!("{}  {}", if verdict.holds { "holds " } else { "FAILED" }, verdict.text);
    }
    if verdicts.iter().all(|v| v.holds) { Ok(()) } else { Err(Error::new("a claim did not hold")) }
}

const EXPLANATION: &str = "\
What the parts rebuild: each INSERT that needs a new page takes the right to extend the table and,
while it has that, the partition of the buffer mapping exclusively. The readers take the same partition
shared, again and again, and hold it for 20 microseconds each time, as the traffic of cache lines
between hundreds of cores makes it; so their holds overlap without a gap. Where newcomers are never held
back (-1), the INSERT cannot get in, and all who want to extend wait behind it; with a limit the
newcomers queue after so many, and it gets in. The server as it is looks up pages without a lock and
brings new pages in outside of the extension lock.";

/// One part: a server, the crowds, a line a second.
fn play(plan: &Plan, limit: i64, historical: bool) -> Result<Part> {
    let mut settings: Vec<String> = QUIET.map(str::to_owned).to_vec();
    settings.push(format!("lwlock_shared_limit={limit}"));
    let mut name = format!("limit {limit}");
    if historical {
        settings.extend(HISTORICAL.map(str::to_owned));
    } else {
        name = "as it is".to_owned();
    }
    println!(
        "\n{name}: {} readers, {} writers, {}",
        plan.readers,
        plan.writers,
        settings.join(" ")
    );
    let mut server = Server::start(&settings)?;
    load::prepare(&server)?;
    let seconds = crowd(plan, &mut server)?;
    Ok(Part { name, limit, historical, seconds })
}

/// Lets the crowds loose and looks on.
fn crowd(plan: &Plan, server: &mut Server) -> Result<Vec<Values>> {
    let load = Load::new(plan.writers);
    let mut sampler = Sampler::new(server.connect()?);
    let connect = |n: u32| (0..n).map(|_| server.connect()).collect::<Result<Vec<_>>>();
    let (readers, writers) = (connect(plan.readers)?, connect(plan.writers)?);
    std::thread::scope(|scope| {
        let load = &load;
        // They end with an error when the part is over and the server is gone.
        for client in readers {
            scope.spawn(move || load.read(client));
        }
        for (number, client) in writers.into_iter().enumerate() {
            scope.spawn(move || load.write(number, client, plan.pace));
        }
        let seconds = watch(plan.seconds, &mut sampler, load);
        load.stop();
        server.end();
        seconds
    })
}

fn watch(count: u32, sampler: &mut Sampler, load: &Load) -> Result<Vec<Values>> {
    let headings: Vec<String> = COLUMNS.iter().map(|(_, h)| (*h).to_owned()).collect();
    println!("{:>4}  {}", "s", headings.join("  "));
    let began = Instant::now();
    let mut last = began;
    let mut seconds = Vec::new();
    for second in 1..=count {
        let until = began + Duration::from_secs(u64::from(second));
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let values = sampler.look(load, now - std::mem::replace(&mut last, now))?;
        let cell = |(name, heading): &(&str, &str)| {
            let value = values.get(*name).copied().unwrap_or(0.0);
            let digits = usize::from(*name == "longest_latch_wait_ms");
            format!("{value:>width$.digits$}", width = heading.len())
        };
        let line: Vec<String> = COLUMNS.iter().map(cell).collect();
        println!("{second:>4}  {}", line.join("  "));
        seconds.push(values);
    }
    Ok(seconds)
}

fn write(path: &PathBuf, parts: &[Part]) -> Result<()> {
    let mut file = File::create(path).map_err(|e| Error::file(path, e))?;
    for part in parts {
        for (second, values) in (1..).zip(&part.seconds) {
            let record = Record::Second(IncidentSecond {
                part: part.name.clone(),
                limit: part.limit,
                second,
                values: values.clone(),
            });
            results::write(&mut file, &record).map_err(|e| Error::file(path, e))?;
        }
    }
    Ok(())
}
