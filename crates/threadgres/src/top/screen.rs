//! The numbers as lines of text.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// One answer of the server.
pub struct Sample(pub Value);

/// A line and how it looks.
pub struct Line {
    /// The line's text.
    pub text: String,
    /// Stands out.
    pub strong: bool,
}

/// Rows of a table at most.
const WAITS_MAX: usize = 8;
const FINDINGS_MAX: usize = 4;
const SESSIONS_MAX: usize = 40;
const TREE_MAX: usize = 20;

impl Sample {
    fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.0, |value, key| &value[key])
    }

    fn number(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or(0.0)
    }

    fn rows(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    fn seconds_since(&self, before: &Sample) -> f64 {
        (self.number("now") - before.number("now")) / 1000.0
    }

    /// Growth a second.
    fn rate(&self, before: Option<&Sample>, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        let before = before?;
        let seconds = self.seconds_since(before);
        (seconds > 0.0).then(|| ((of(self) - of(before)) / seconds).max(0.0))
    }

    fn transactions(&self) -> f64 {
        let ended = |r: &Value| number(r, "xact_commit") + number(r, "xact_rollback");
        self.rows("database").iter().map(ended).sum()
    }
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(0.0)
}

fn word<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("")
}

/// A length of time.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{}m {:02}s", s as u64 / 60, s as u64 % 60),
        s if s < 86400.0 => format!("{}h {:02}m", s as u64 / 3600, s as u64 % 3600 / 60),
        s => format!("{}d {:02}h", s as u64 / 86400, s as u64 % 86400 / 3600),
    }
}

fn short(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.1}G", n / 1e9),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// One line of a statement, without what could drive the terminal.
fn clean(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Everything, for a screen of this width.
pub fn lines(now: &Sample, before: Option<&Sample>, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    findings(now, &mut lines);
    head(now, before, &mut lines);
    waits(now, before, &mut lines);
    tree(now, &mut lines);
    sessions(now, &mut lines);
    for line in &mut lines {
        line.text = line.text.chars().take(width).collect();
    }
    lines
}

fn say(lines: &mut Vec<Line>, text: String) {
    lines.push(Line { text, strong: false });
}

fn title(lines: &mut Vec<Line>, text: &str) {
    say(lines, String::new());
    lines.push(Line { text: text.to_owned(), strong: true });
}

/// Where time is lost and to what; the rest of the screen shows by what that is known.
fn findings(now: &Sample, lines: &mut Vec<Line>) {
    for finding in now.rows("why").iter().take(FINDINGS_MAX) {
        let lost = match number(finding, "seconds_lost") {
            0.0 => String::new(),
            seconds => format!("{} lost: ", span(seconds)),
        };
        let text = format!("! {lost}{}", clean(word(finding, "sentence")));
        lines.push(Line { text, strong: true });
        say(lines, format!("  {}", clean(word(finding, "advice"))));
    }
}

fn head(now: &Sample, before: Option<&Sample>, lines: &mut Vec<Line>) {
    let version = now.at("version").as_str().unwrap_or("?");
    let up = span((now.number("now") - now.number("started")) / 1000.0);
    lines.push(Line { text: format!("threadgres {version}, up {up}"), strong: true });
    let states = now.at("sessions.states").as_object();
    let states: Vec<String> =
        states.into_iter().flatten().map(|(state, count)| format!("{count} {state}")).collect();
    say(lines, format!("sessions   {}", states.join(", ")));
    let (hits, reads) = (now.number("pool.hits"), now.number("pool.reads"));
    let hit = if hits + reads > 0.0 { 100.0 * hits / (hits + reads) } else { 100.0 };
    let rate = |of: &dyn Fn(&Sample) -> f64| now.rate(before, of).map_or("-".into(), short);
    say(
        lines,
        format!(
            "work       {}/s transactions, {}/s log bytes, {}/s pages read, {}/s evicted, {hit:.1}% page hits",
            rate(&Sample::transactions),
            rate(&|s| s.number("wal.bytes")),
            rate(&|s| s.number("pool.reads")),
            rate(&|s| s.number("pool.evictions")),
        ),
    );
}

/// The events for which most was waited since the last sample, or since the start.
fn waits(now: &Sample, before: Option<&Sample>, lines: &mut Vec<Line>) {
    let key = |w: &Value| (word(w, "type").to_owned(), word(w, "event").to_owned());
    let old: HashMap<_, _> =
        before.map_or(&[][..], |b| b.rows("waits")).iter().map(|w| (key(w), w)).collect();
    let seconds = before.map_or(0.0, |b| now.seconds_since(b)).max(1e-3);
    let grown = |w: &Value, what: &str| {
        (number(w, what) - old.get(&key(w)).map_or(0.0, |o| number(o, what))).max(0.0)
    };
    let mut rows: Vec<(f64, f64, &Value)> = now
        .rows("waits")
        .iter()
        .map(|w| (grown(w, "total_ns") / 1e9, grown(w, "count"), w))
        .filter(|(time, count, _)| *time > 0.0 || *count > 0.0)
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    title(
        lines,
        "WAITS                                 waiting    waits/s       mean    longest ever",
    );
    for (time, count, wait) in rows.iter().take(WAITS_MAX) {
        say(
            lines,
            format!(
                "{:<38}{:>7.2} {:>10} {:>10} {:>15}",
                format!("{} / {}", word(wait, "type"), word(wait, "event")),
                time / seconds,
                short(count / seconds),
                // Waits that go on are no new ones.
                if *count > 0.0 { span(time / count) } else { "-".to_owned() },
                span(number(wait, "longest_ns") / 1e9),
            ),
        );
    }
    if rows.is_empty() {
        say(lines, "nobody waited".to_owned());
    }
}

/// Blocked sessions, each under the one it waits for.
fn tree(now: &Sample, lines: &mut Vec<Line>) {
    // A session in a queue waits for all before it; it is shown under the last of them.
    let mut nearest: HashMap<i64, &Value> = HashMap::new();
    for edge in now.rows("blocking") {
        let known = nearest.entry(edge["waiting_pid"].as_i64().unwrap_or(0)).or_insert(edge);
        if number(edge, "depth") > number(known, "depth") {
            *known = edge;
        }
    }
    let mut edges: Vec<&Value> = nearest.into_values().collect();
    edges.sort_by(|a, b| number(a, "wait_start").total_cmp(&number(b, "wait_start")));
    let Some(first) = edges.first().copied() else { return };
    title(lines, "BLOCKING");
    let waiting: HashSet<i64> = edges.iter().filter_map(|e| e["waiting_pid"].as_i64()).collect();
    let mut roots: Vec<&Value> = edges
        .iter()
        .filter(|e| e["blocking_pid"].as_i64().is_none_or(|pid| !waiting.contains(&pid)))
        .copied()
        .collect();
    if roots.is_empty() {
        roots.push(first);
    }
    let mut seen = HashSet::new();
    let end = lines.len() + TREE_MAX;
    for root in roots {
        let pid = root["blocking_pid"].as_i64();
        if seen.insert(pid) {
            let state = word(root, "blocking_state");
            let query = clean(word(root, "blocking_query"));
            say(lines, format!("{} {state}: {query}", pid.unwrap_or(0)));
            branch(now, &edges, pid, 1, &mut seen, lines, end);
        }
    }
}

fn branch(
    now: &Sample,
    edges: &[&Value],
    over: Option<i64>,
    depth: usize,
    seen: &mut HashSet<Option<i64>>,
    lines: &mut Vec<Line>,
    end: usize,
) {
    for edge in edges.iter().filter(|e| e["blocking_pid"].as_i64() == over) {
        let pid = edge["waiting_pid"].as_i64();
        if lines.len() >= end || !seen.insert(pid) {
            continue;
        }
        let waited = (now.number("now") - number(edge, "wait_start")).max(0.0) / 1000.0;
        say(
            lines,
            format!(
                "{}└ {} waits {} for {} / {} {}: {}",
                "  ".repeat(depth),
                pid.unwrap_or(0),
                span(waited),
                word(edge, "wait_event_type"),
                word(edge, "wait_event"),
                word(edge, "object"),
                clean(word(edge, "waiting_query")),
            ),
        );
        branch(now, edges, pid, depth + 1, seen, lines, end);
    }
}

fn sessions(now: &Sample, lines: &mut Vec<Line>) {
    let busy = |s: &&Value| {
        let state = word(s, "state");
        state == "active" || state.starts_with("idle in")
    };
    let rows: Vec<&Value> = now.rows("sessions.rows").iter().filter(busy).collect();
    title(lines, "    PID STATE                waits for                           for  STATEMENT");
    for session in rows.iter().take(SESSIONS_MAX) {
        let active = word(session, "state") == "active";
        let since = number(session, if active { "query_start" } else { "state_change" });
        let wait = match (word(session, "wait_event_type"), word(session, "wait_event")) {
            ("", _) if active => "on CPU".to_owned(),
            ("", _) => String::new(),
            (kind, event) => format!("{kind} / {event}"),
        };
        say(
            lines,
            format!(
                "{:>7} {:<20} {:<30} {:>8}  {}",
                session["pid"].as_i64().unwrap_or(0),
                word(session, "state"),
                wait,
                span((now.number("now") - since).max(0.0) / 1000.0),
                clean(word(session, "query")),
            ),
        );
    }
    if rows.is_empty() {
        say(lines, "      - nobody works".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(now_ms: f64, waits: u64) -> Sample {
        Sample(serde_json::json!({
            "version": "1", "now": now_ms, "started": 0.0,
            "sessions": { "states": { "active": 2 }, "rows": [
                { "pid": 7, "state": "active", "query": "UPDATE t\n SET a = '\u{1b}[31m'",
                  "wait_event_type": "Lock", "wait_event": "transactionid", "query_start": 0.0 },
                { "pid": 8, "state": "idle", "query": "SELECT 8" },
            ] },
            "waits": [{ "type": "Lock", "event": "transactionid", "count": waits,
                        "total_ns": waits * 500_000_000, "longest_ns": 9e9 }],
            "blocking": [
                { "waiting_pid": 7, "blocking_pid": 6, "wait_start": 0.0, "wait_event_type": "Lock",
                  "wait_event": "transactionid", "blocking_query": "root", "waiting_query": "UPDATE" },
                { "waiting_pid": 9, "blocking_pid": 7, "wait_start": 0.0, "waiting_query": "leaf" },
                { "waiting_pid": 1, "blocking_pid": 2 }, { "waiting_pid": 2, "blocking_pid": 1 },
            ],
            "why": [{ "seconds_lost": 2.5, "sentence": "2 of 3 sessions stand\nbehind pid 6.", "advice": "End it." }],
            "pool": {}, "wal": {}, "database": [{ "xact_commit": now_ms, "xact_rollback": 0 }],
        }))
    }

    #[test]
    fn what_happens_is_shown() {
        let lines = lines(&sample(2000.0, 3), Some(&sample(1000.0, 1)), 120);
        let text: String = lines.iter().map(|l| l.text.clone() + "\n").collect();
        for part in ["1000/s transactions", "Lock / transactionid", "1.00", "500 ms", "6 : root"] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(
            text.starts_with("! 2.5 s lost: 2 of 3 sessions stand behind pid 6.\n  End it.\n"),
            "{text}"
        );
        assert!(text.contains("  └ 7 waits 2.0 s for") && text.contains("    └ 9 waits"), "{text}");
        assert!(text.contains("UPDATE t SET a = '?[31m'") && !text.contains('\u{1b}'), "{text}");
        assert!(!text.contains("SELECT 8"), "the idle are not listed");
    }
}
