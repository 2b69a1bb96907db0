//! A range of the history for the page: `/api/history.json`, and as a file of lines `/api/history.csv`.
//!
//! ```text
//!   ?last=SECONDS | ?from=MS&to=MS     the range (milliseconds since 1970)
//!   &user= &application= &database= &query=IDENTIFIER     only what was done for these
//!   &back=SECONDS                      statements beside themselves so long before
//! ```
//! The chart has at most [`STEPS_MAX`] steps, whatever the range: seconds, minutes and hours are spread over those that
//! they touch.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use base::usage::Use;
use base::{Result, WaitEvent, err};
use serde_json::{Value, json};

use super::api::{finding, round};
use super::request::Request;
use super::view::{micros, time_ms};
use crate::history;
use crate::history::clients::Client;
use crate::history::plans::difference;
use crate::history::slice::{Count, Slice, StatementSum, Sum};
use crate::profiler::timeline;
use crate::server::{self, Server};
use crate::views::shares::{self, OfAll, PlanChange};
use crate::why;
use crate::why::facts::{Facts, Gathering};

/// Steps of the chart.
const STEPS_MAX: i64 = 360;
/// Shortest step, microseconds.
const STEP_US: i64 = 1_000_000;
/// Longest list of statements, clients, relations.
const ROWS_MAX: usize = 30;
/// Statements of which the processor time is drawn, and those of which it is added up.
const SPLIT_SHOWN: usize = 5;
const SPLIT_MAX: usize = 300;
/// Events that are shown; of more the last.
const EVENTS_MAX: usize = 500;
/// Lines of a file.
const LINES_MAX: usize = 1_000_000;

/// See the module's documentation.
#[derive(Debug, Default, PartialEq)]
pub struct Wanted {
    from: i64,
    to: i64,
    user: Option<String>,
    application: Option<String>,
    database: Option<String>,
    statement: Option<u64>,
    back_us: i64,
}

/// The text behind a parameter: `+` and `%xx` decoded. One with a `%` that stands for itself is as it is.
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    match base::percent::decode(&spaced) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => spaced,
    }
}

impl Wanted {
    /// The range and the filters of a request; without a range the last five minutes.
    ///
    /// # Errors
    /// `22023` for numbers that are none and a range that ends before it begins.
    pub fn of(request: &Request<'_>) -> Result<Wanted> {
        let number =
            |name: &str, most: f64| match request.parameter(name).filter(|text| !text.is_empty()) {
                None => Ok(None),
                Some(text) => text
                    .parse::<f64>()
                    .ok()
                    .filter(|n| n.abs() < most)
                    .map(Some)
                    .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "{name} is not a number")),
            };
        let word =
            |name: &str| request.parameter(name).map(decoded).filter(|text| !text.is_empty());
        let now = server::now();
        let last_us = number("last", SECONDS_MAX)?.unwrap_or(300.0).max(1.0) * 1e6;
        let to = number("to", SECONDS_MAX * 1e3)?.map_or(now, micros);
        let from = number("from", SECONDS_MAX * 1e3)?.map_or(to - last_us as i64, micros);
        if from >= to {
            return Err(err!(INVALID_PARAMETER_VALUE, "the range ends before it begins"));
        }
        let statement = match word("query") {
            None => None,
            Some(text) => Some(
                text.parse::<i64>()
                    .map_err(|_| err!(INVALID_PARAMETER_VALUE, "query is not an identifier"))?
                    as u64,
            ),
        };
        Ok(Wanted {
            from,
            to,
            user: word("user"),
            application: word("application"),
            database: word("database"),
            statement,
            back_us: (number("back", SECONDS_MAX)?.unwrap_or(0.0).max(0.0) * 1e6) as i64,
        })
    }

    fn is_filtered(&self) -> bool {
        self.of_clients() || self.statement.is_some()
    }

    fn of_clients(&self) -> bool {
        self.user.is_some() || self.application.is_some() || self.database.is_some()
    }

    /// Whether a role and a database are asked for.
    fn fits(&self, names: &OfAll, user: u32, database: u32) -> bool {
        let is = |wanted: &Option<String>, known: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| known == Some(wanted))
        };
        is(&self.user, names.role(user)) && is(&self.database, names.database(database))
    }

    fn fits_client(&self, names: &OfAll, client: &Client) -> bool {
        self.fits(names, client.user, client.database)
            && self.application.as_deref().is_none_or(|wanted| *client.application == *wanted)
    }
}

/// Seconds that a request may name, either way: sums of three of them are far from the end of microseconds in an i64.
const SECONDS_MAX: f64 = 1e12;

/// The chart under construction.
struct Steps {
    from: i64,
    step_us: i64,
    cpu: Vec<f64>,
    /// Of it, by statement, with its text.
    statements: HashMap<u64, (Arc<str>, Vec<f64>)>,
    waits: HashMap<WaitEvent, Vec<f64>>,
}

impl Steps {
    fn new(from: i64, to: i64) -> Steps {
        let step_us = ((to - from) / STEPS_MAX).max(STEP_US);
        let count = (to - from).div_euclid(step_us) + i64::from((to - from) % step_us > 0);
        let count = count.clamp(1, STEPS_MAX + 1) as usize;
        let (statements, waits) = (HashMap::new(), HashMap::new());
        Steps { from, step_us, cpu: vec![0.0; count], statements, waits }
    }

    /// The steps that a slice touches, with the part of it that lies in each.
    fn parts(&self, slice: &Slice) -> Vec<(usize, f64)> {
        let (begins, ends) = (slice.from().max(self.from), slice.at);
        let span = slice.span_us.max(1) as f64;
        let mut parts = Vec::new();
        let mut at = begins;
        while at < ends {
            let step = (at - self.from) / self.step_us;
            let until = (self.from + (step + 1) * self.step_us).min(ends);
            if step as usize >= self.cpu.len() {
                break;
            }
            parts.push((step as usize, (until - at) as f64 / span));
            at = until;
        }
        parts
    }

    /// Adds to the list of an event, or of the processors, time that was spent in the slice.
    fn add(&mut self, event: Option<WaitEvent>, ns: f64, parts: &[(usize, f64)]) {
        let (step_ns, count) = (self.step_us as f64 * 1e3, self.cpu.len());
        let list = match event {
            Some(event) => self.waits.entry(event).or_insert_with(|| vec![0.0; count]),
            None => &mut self.cpu,
        };
        parts.iter().for_each(|(step, part)| list[*step] += ns * part / step_ns);
    }

    /// Adds a statement's processor time.
    fn add_statement(&mut self, statement: &StatementSum, parts: &[(usize, f64)]) {
        let (step_ns, count) = (self.step_us as f64 * 1e3, self.cpu.len());
        if self.statements.len() >= SPLIT_MAX && !self.statements.contains_key(&statement.id) {
            return;
        }
        let new = || (statement.text.clone(), vec![0.0; count]);
        let (_, list) = self.statements.entry(statement.id).or_insert_with(new);
        let ns = statement.busy_ns() as f64;
        parts.iter().for_each(|(step, part)| list[*step] += ns * part / step_ns);
    }

    /// The statements that used the processors most.
    fn split(&self) -> Vec<Value> {
        let sum = |list: &[f64]| list.iter().sum::<f64>();
        let mut all: Vec<_> = self.statements.iter().collect();
        all.sort_by(|a, b| sum(&b.1.1).total_cmp(&sum(&a.1.1)));
        let one = |(id, (text, list)): &(&u64, &(Arc<str>, Vec<f64>))| {
            let values: Vec<f64> = list.iter().map(|n| round(*n as f32)).collect();
            json!({ "id": identifier(**id), "query": &**text, "values": values })
        };
        all.iter().take(SPLIT_SHOWN).filter(|(_, (_, list))| sum(list) > 0.0).map(one).collect()
    }
}

/// Everything about a range.
struct Range {
    steps: Steps,
    /// The range's facts, of all clients and statements.
    facts: Gathering,
    /// The sum of what is asked for; None: of all.
    sum: Option<Sum>,
    users: BTreeSet<String>,
    applications: BTreeSet<String>,
    databases: BTreeSet<String>,
}

/// Reads a range once.
fn gather(server: &Server, wanted: &Wanted, names: &OfAll) -> Result<Range> {
    let mut range = Range {
        steps: Steps::new(wanted.from, wanted.to),
        facts: Gathering::default(),
        sum: wanted.is_filtered().then(Sum::default),
        users: BTreeSet::new(),
        applications: BTreeSet::new(),
        databases: BTreeSet::new(),
    };
    history::each_part(server, (wanted.from, wanted.to), STEPS_MAX, &mut |slice| {
        range.facts.add(slice);
        for sum in &slice.clients {
            let client = &sum.client;
            let note = |all: &mut BTreeSet<String>, name: Option<&str>| {
                if let Some(name) = name.filter(|name| !name.is_empty() && !all.contains(*name)) {
                    all.insert(name.to_owned());
                }
            };
            note(&mut range.users, names.role(client.user));
            note(&mut range.databases, names.database(client.database));
            note(&mut range.applications, Some(&client.application));
        }
        match &mut range.sum {
            None => draw(&mut range.steps, wanted, slice),
            Some(sum) => {
                let slice = filtered(slice, wanted, names);
                draw(&mut range.steps, wanted, &slice);
                sum.add(&slice);
            }
        }
    })?;
    Ok(range)
}

/// Adds a slice to the chart.
fn draw(steps: &mut Steps, wanted: &Wanted, slice: &Slice) {
    let parts = steps.parts(slice);
    let cpu_ns = if wanted.statement.is_some() {
        slice.statements.iter().map(StatementSum::busy_ns).sum()
    } else if wanted.of_clients() {
        slice.clients.iter().map(|sum| sum.busy_ns()).sum()
    } else {
        slice.count(Count::CpuUs) * 1000
    };
    steps.add(None, cpu_ns as f64, &parts);
    for statement in slice.statements.iter().filter(|s| s.busy_ns() > 0) {
        steps.add_statement(statement, &parts);
    }
    for wait in slice.waits.iter().filter(|wait| timeline::counts(wait.event)) {
        steps.add(Some(wait.event), wait.ns as f64, &parts);
    }
}

/// The part of a slice that is asked for. Statements of files of earlier versions know no application: of these those
/// are shown that waited in it.
fn filtered(slice: &Slice, wanted: &Wanted, names: &OfAll) -> Slice {
    let mut slice = slice.clone();
    let is_it = |id: u64| wanted.statement.is_none_or(|statement| statement == id);
    slice.waits.retain(|w| is_it(w.statement) && wanted.fits_client(names, &w.client));
    slice.clients.retain(|sum| wanted.fits_client(names, &sum.client));
    let waited: BTreeSet<u64> = slice.waits.iter().map(|wait| wait.statement).collect();
    slice.statements.retain(|s| {
        is_it(s.id)
            && wanted.fits(names, s.user, s.database)
            && wanted.application.as_deref().is_none_or(|application| {
                *s.application == *application
                    || (s.application.is_empty() && waited.contains(&s.id))
            })
    });
    slice.plans.retain(|plan| is_it(plan.statement));
    slice
}

/// The answer.
///
/// # Errors
/// Those of reading the history.
pub fn json(server: &Server, wanted: &Wanted) -> Result<Value> {
    let names = OfAll::now(server);
    let range = gather(server, wanted, &names)?;
    let Range { steps, facts, sum, users, applications, databases } = range;
    let facts = facts.done(why::before(server, wanted.from)?);
    let sum = sum.map(Sum::done);
    let sum = sum.as_ref().unwrap_or(&facts.total);
    let times: Vec<f64> = (0..steps.cpu.len() as i64)
        .map(|n| time_ms(steps.from + (n + 1) * steps.step_us).round())
        .collect();
    let rounded = |list: &[f64]| list.iter().map(|n| round(*n as f32)).collect::<Vec<f64>>();
    let mut series: Vec<Value> = Vec::new();
    for (event, values) in &steps.waits {
        let info = event.info();
        series.push(json!({ "type": info.kind, "event": info.name, "values": rounded(values) }));
    }
    let before = match wanted.back_us {
        0 => None,
        back => {
            let (from, to) = (wanted.from - back, wanted.to - back);
            let earlier = Wanted { from, to, ..shallow(wanted) };
            let Range { facts, sum, .. } = gather(server, &earlier, &names)?;
            Some(sum.map_or_else(|| facts.done(Slice::new(0, 1)).total, Sum::done))
        }
    };
    let notes = facts.total.plans.clone();
    let changes = shares::changes_among(server, notes, wanted.from)?;
    let changes = changes.iter().filter(|c| wanted.statement.is_none_or(|s| s == c.note.statement));
    let skipped = sum.events.len().saturating_sub(EVENTS_MAX);
    let events: Vec<Value> = sum.events.iter().skip(skipped).map(event).collect();
    Ok(json!({
        "from": time_ms(wanted.from), "to": time_ms(wanted.to),
        "step_ms": steps.step_us as f64 / 1e3,
        "times": times, "cpu": rounded(&steps.cpu), "cpu_by": steps.split(), "series": series,
        "events": events,
        "why": findings(&facts, wanted),
        "statements": statements(sum, before.as_ref(), &names),
        "clients": clients(sum, &names),
        "relations": relations(sum, &names),
        "plans": changes.map(plan).collect::<Vec<Value>>(),
        "filters": { "users": users, "applications": applications, "databases": databases },
    }))
}

fn shallow(wanted: &Wanted) -> Wanted {
    Wanted {
        user: wanted.user.clone(),
        application: wanted.application.clone(),
        database: wanted.database.clone(),
        ..*wanted
    }
}

/// An event as the page shows it.
pub(super) fn event(event: &history::slice::Event) -> Value {
    json!({ "at": time_ms(event.at), "kind": &*event.kind, "pid": event.pid, "text": &*event.text })
}

/// Those of the whole server, or those that concern the statement.
fn findings(facts: &Facts, wanted: &Wanted) -> Vec<Value> {
    let found = why::explain(facts);
    let concerns = |found: &&why::Finding| {
        let of = |id: u64| found.statement == id || found.victims.contains(&id);
        wanted.statement.is_none_or(of)
    };
    found.iter().filter(concerns).map(|found| finding(found, facts)).collect()
}

/// Identifiers are texts: a browser's numbers have 53 bits.
fn identifier(statement: u64) -> String {
    (statement as i64).to_string()
}

fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

fn statements(sum: &Slice, before: Option<&Slice>, names: &OfAll) -> Vec<Value> {
    let nothing = Slice::new(0, 1);
    let mut all = shares::compared(sum, before.unwrap_or(&nothing));
    if before.is_none() {
        all.sort_by_key(|one| std::cmp::Reverse(one.now.ns));
    }
    let one = |one: &shares::Compared| {
        let (s, earlier) = (&one.now, &one.before);
        let mut value = json!({
            "id": identifier(s.id), "query": &*s.text, "database": names.database(s.database),
            "calls": s.calls, "ms": ms(s.ns), "mean_ms": ms(shares::mean_ns(s)),
            "busy_ms": ms(s.busy_ns()), "waited_ms": ms(s.waited_ns), "caused_ms": ms(s.caused_ns),
            "rows": s.rows, "wal_bytes": s.get(Use::WalBytes), "read": s.get(Use::BufferRead),
            "dirtied": s.get(Use::BufferDirtied), "temp_bytes": s.get(Use::TempWritten),
        });
        if before.is_some() {
            value["before"] = json!({
                "calls": earlier.calls, "ms": ms(earlier.ns),
                "mean_ms": ms(shares::mean_ns(earlier)),
            });
        }
        value
    };
    all.iter().take(ROWS_MAX).map(one).collect()
}

fn clients(sum: &Slice, names: &OfAll) -> Vec<Value> {
    let mut all: Vec<_> = sum.clients.iter().collect();
    all.sort_by_key(|sum| std::cmp::Reverse(sum.active_ns));
    let one = |sum: &&history::clients::ClientSum| {
        json!({
            "user": names.role(sum.client.user), "database": names.database(sum.client.database),
            "application": &*sum.client.application, "sessions": sum.sessions,
            "transactions": sum.transactions, "ms": ms(sum.active_ns), "busy_ms": ms(sum.busy_ns()),
            "waited_ms": ms(sum.waited_ns), "wal_bytes": sum.get(Use::WalBytes),
            "read": sum.get(Use::BufferRead),
        })
    };
    all.iter().take(ROWS_MAX).map(one).collect()
}

fn relations(sum: &Slice, names: &OfAll) -> Vec<Value> {
    let mut all: Vec<_> = sum.relations.iter().collect();
    all.sort_by_key(|sum| std::cmp::Reverse(sum.weight()));
    let one = |sum: &&history::relations::RelationSum| {
        json!({
            "name": &*sum.name, "table": &*sum.table, "database": names.database(sum.database),
            "scans": sum.scans, "rows": sum.returned, "inserted": sum.inserted,
            "updated": sum.updated, "deleted": sum.deleted, "hit": sum.blocks_hit,
            "read": sum.blocks_read, "waited_ms": ms(sum.waited_ns),
        })
    };
    all.iter().take(ROWS_MAX).map(one).collect()
}

fn plan(change: &PlanChange) -> Value {
    let PlanChange { note, before, after } = change;
    let (was, is) = difference(&note.before, &note.plan).unwrap_or_default();
    json!({
        "at": time_ms(note.at), "id": identifier(note.statement), "query": &*note.query,
        "before": &*note.before, "plan": &*note.plan, "was": was, "is": is,
        "calls_before": before.calls, "calls": after.calls,
        "mean_ms_before": ms(shares::mean_ns(before)), "mean_ms": ms(shares::mean_ns(after)),
    })
}

/// A field of a line.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// Every wait of the range as a line of a file (RFC 4180): by second, minute or hour as the history has it. Processor
/// time of statements is the event `CPU`.
///
/// # Errors
/// Those of reading the history.
pub fn csv(server: &Server, wanted: &Wanted) -> Result<String> {
    let names = OfAll::now(server);
    let mut out = String::from(
        "at,seconds,event_type,event,queryid,object,user,database,application,count,ms\r\n",
    );
    let mut lines = 0;
    history::each_between(server, wanted.from, wanted.to, &mut |slice| {
        if lines >= LINES_MAX {
            return;
        }
        let some = wanted.is_filtered().then(|| filtered(slice, wanted, &names));
        let slice = some.as_ref().unwrap_or(slice);
        let (at, seconds) = (time_ms(slice.from()), slice.span_us as f64 / 1e6);
        for wait in &slice.waits {
            let (info, client) = (wait.event.info(), &wait.client);
            let [user, database] = [names.role(client.user), names.database(client.database)]
                .map(|name| quoted(name.unwrap_or_default()));
            let _ = write!(
                out,
                "{at:.0},{seconds:.3},{},{},{},{},{user},{database},{},{},{:.3}\r\n",
                info.kind,
                info.name,
                identifier(wait.statement),
                quoted(&wait.object),
                quoted(&client.application),
                wait.count,
                ms(wait.ns)
            );
        }
        for sum in &slice.statements {
            let [user, database] = [names.role(sum.user), names.database(sum.database)]
                .map(|name| quoted(name.unwrap_or_default()));
            let _ = write!(
                out,
                "{at:.0},{seconds:.3},CPU,CPU,{},,{user},{database},,{},{:.3}\r\n",
                identifier(sum.id),
                sum.calls,
                ms(sum.busy_ns())
            );
        }
        lines += slice.waits.len() + slice.statements.len();
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_spread_over_the_steps_that_it_touches() {
        let mut steps = Steps::new(0, 100_000_000);
        assert_eq!((steps.cpu.len(), steps.step_us), (100, 1_000_000));
        let slice = Slice::new(90_000_000, 60_000_000);
        let parts = steps.parts(&slice);
        assert_eq!((parts.len(), parts[0].0, parts[59].0), (60, 30, 89));
        steps.add(None, 60e9, &parts);
        assert!((steps.cpu[30] - 1.0).abs() < 1e-9 && steps.cpu[29] == 0.0);
        // One that begins before the range and one that ends after it.
        assert_eq!(steps.parts(&Slice::new(2_500_000, 60_000_000)).len(), 3);
        assert_eq!(steps.parts(&Slice::new(130_000_000, 60_000_000)).len(), 30);
        let year = Steps::new(0, 365 * 86_400_000_000);
        assert!(year.cpu.len() <= STEPS_MAX as usize + 1);
    }

    #[test]
    fn requests_say_what_they_want() {
        let of = |query: &str| {
            let text = format!("GET /api/history.json?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let (request, _) = super::super::request::parse(text.as_bytes())
                .expect("complete")
                .map_err(|r| r.status)
                .expect("well-formed");
            Wanted::of(&request)
        };
        let wanted =
            of("from=946684801000&to=946684802000&user=a+b%2Bc&query=-5&back=86400").unwrap();
        assert_eq!((wanted.from, wanted.to), (1_000_000, 2_000_000));
        assert_eq!((wanted.user.as_deref(), wanted.statement), (Some("a b+c"), Some(-5i64 as u64)));
        assert_eq!(wanted.back_us, 86_400_000_000);
        let today = of("from=1795621053816.498&to=1795621233816.498").unwrap();
        assert_eq!(today.to - today.from, 180_000_000);
        let lately = of("last=60").unwrap();
        assert_eq!(lately.to - lately.from, 60_000_000);
        for wrong in
            ["from=x", "from=946684802000&to=946684801000", "query=x", "last=1e99", "to=1e16"]
        {
            assert_eq!(of(wrong).unwrap_err().code().as_str(), "22023", "{wrong}");
        }
    }

    #[test]
    fn fields_are_quoted() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
