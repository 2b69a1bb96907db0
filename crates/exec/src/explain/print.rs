//! The tree as lines of text and as fields.

use std::borrow::Cow;
use std::fmt::Write as _;

use base::usage::{Usage, Use};
use sched::observe::Metered;
use sql::utility::ExplainOptions;

use super::Whole;
use super::document::{Fields, Value};
use super::node::{Detail, Shown};
use crate::ops::bitmap_heap_scan::{EXACT_PAGES, LOSSY_PAGES};
use crate::ops::measure::OfWorker;
use crate::ops::memoize::COUNTS;

/// The text format's lines.
pub fn text(tree: &Shown, options: &ExplainOptions, whole: &Whole) -> Vec<String> {
    let mut lines = lines(tree, options, whole.io_times);
    if !whole.settings.is_empty() {
        let one = |(name, value): &(&str, String)| format!("{name} = '{value}'");
        let settings: Vec<String> = whole.settings.iter().map(one).collect();
        lines.push(format!("Settings: {}", settings.join(", ")));
    }
    if options.summary {
        lines.push(format!("Planning Time: {:.3} ms", ms(whole.planning.as_nanos() as u64)));
        let execution = whole.execution.map(|time| ms(time.as_nanos() as u64));
        lines.extend(execution.map(|time| format!("Execution Time: {time:.3} ms")));
    }
    lines
}

/// Those of the plan alone.
pub fn lines(tree: &Shown, options: &ExplainOptions, io_times: bool) -> Vec<String> {
    let mut lines = Vec::new();
    node(tree, options, io_times, [0, 0], &mut lines);
    lines
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn node(
    shown: &Shown,
    options: &ExplainOptions,
    io_times: bool,
    [depth, mut shift]: [usize; 2],
    lines: &mut Vec<String>,
) {
    let mut indent = depth * 6 + shift;
    if let Some(title) = &shown.title {
        lines.push(format!("{}{title}", " ".repeat(indent.saturating_sub(4))));
        // What stands under a title is two further in.
        (shift, indent) = (shift + 2, indent + 2);
    }
    let arrow = if depth == 0 { "" } else { "->  " };
    if depth > 0 {
        indent -= 4;
    }
    let mut line = format!("{}{arrow}{}{}", " ".repeat(indent), shown.kind, shown.on);
    if options.costs {
        let e = &shown.estimate;
        let _ = write!(
            line,
            "  (cost={:.2}..{:.2} rows={:.0} width={})",
            e.startup, e.total, e.rows, e.width
        );
    }
    match &shown.measure {
        Some(m) if m.loops == 0 => line.push_str(" (never executed)"),
        Some(m) => {
            let loops = m.loops as f64;
            let rows = m.rows as f64 / loops;
            if options.timing {
                let (first, all) = (m.startup * 1000.0 / loops, m.total * 1000.0 / loops);
                let _ = write!(
                    line,
                    " (actual time={first:.3}..{all:.3} rows={rows:.0} loops={})",
                    m.loops
                );
            } else {
                let _ = write!(line, " (actual rows={rows:.0} loops={})", m.loops);
            }
        }
        None => {}
    }
    lines.push(line);
    let below = if depth == 0 { 2 } else { indent + 6 };
    for (name, value) in &shown.details {
        if let Some(text) = detail_text(value, shown) {
            lines.push(format!("{}{name}: {text}", " ".repeat(below)));
        }
    }
    for worker in shown.measure.iter().flat_map(|m| &m.workers).filter(|_| options.verbose) {
        lines.push(format!("{}{}", " ".repeat(below), worker_text(worker, options)));
    }
    if let Some(measure) = &shown.measure {
        let used = usage_text(&measure.used, options, io_times);
        let waits = (!measure.waits.is_empty()).then(|| waits_text(&measure.waits));
        let more = used.into_iter().chain(waits.map(|waits| format!("Waits: {waits}")));
        lines.extend(more.map(|line| format!("{}{line}", " ".repeat(below))));
    }
    for child in &shown.children {
        node(child, options, io_times, [depth + 1, shift], lines);
    }
}

/// A helper's part of a node's work.
fn worker_text(worker: &OfWorker, options: &ExplainOptions) -> String {
    let loops = worker.loops.max(1) as f64;
    let rows = worker.rows as f64 / loops;
    let (first, all) = (worker.startup * 1000.0 / loops, worker.total * 1000.0 / loops);
    let time = if options.timing { format!("time={first:.3}..{all:.3} ") } else { String::new() };
    format!("Worker {}:  actual {time}rows={rows:.0} loops={}", worker.number, worker.loops)
}

/// The same as groups of fields.
fn worker_fields(workers: &[OfWorker], options: &ExplainOptions) -> Value {
    let one = |worker: &OfWorker| {
        let loops = worker.loops.max(1) as f64;
        let mut fields: Fields = vec![("Worker Number".into(), Value::bare(worker.number))];
        if options.timing {
            let time = |seconds: f64| Value::Bare(format!("{:.3}", seconds * 1000.0 / loops));
            fields.push(("Actual Startup Time".into(), time(worker.startup)));
            fields.push(("Actual Total Time".into(), time(worker.total)));
        }
        let rows = format!("{:.0}", worker.rows as f64 / loops);
        fields.push(("Actual Rows".into(), Value::Bare(rows)));
        fields.push(("Actual Loops".into(), Value::bare(worker.loops)));
        fields
    };
    Value::Groups("Worker", workers.iter().map(one).collect())
}

fn loops(shown: &Shown) -> u64 {
    shown.measure.as_ref().map_or(1, |m| m.loops.max(1))
}

/// A detail as text; None when it goes without saying.
fn detail_text(detail: &Detail, shown: &Shown) -> Option<String> {
    Some(match detail {
        Detail::One(text) => text.clone(),
        Detail::List(texts) => texts.join(", "),
        Detail::Count(n) => n.to_string(),
        Detail::Removed(0) | Detail::Pages(0, 0) => return None,
        Detail::Removed(n) => format!("{:.0}", *n as f64 / loops(shown) as f64),
        Detail::Pages(exact, 0) => format!("exact={exact}"),
        Detail::Pages(0, lossy) => format!("lossy={lossy}"),
        Detail::Pages(exact, lossy) => format!("exact={exact} lossy={lossy}"),
        Detail::Sort(method, kb, true) => format!("{method}  Disk: {kb}kB"),
        Detail::Sort(method, kb, false) => format!("{method}  Memory: {kb}kB"),
        Detail::Hash([buckets, batches, kb]) => {
            format!("{buckets}  Batches: {batches}  Memory Usage: {kb}kB")
        }
        Detail::Groups([batches, kb]) => format!("{batches}  Memory Usage: {kb}kB"),
        Detail::Cache([hits, misses, evictions, overflows, kb]) => format!(
            "{hits}  Misses: {misses}  Evictions: {evictions}  Overflows: {overflows}  Memory Usage: {kb}kB"
        ),
    })
}

/// A detail as fields.
fn detail_fields(name: &'static str, detail: &Detail, shown: &Shown) -> Fields {
    let one = |value| vec![(name.into(), value)];
    match detail {
        Detail::One(text) => one(Value::Text(text.clone())),
        Detail::List(texts) => one(Value::Texts(texts.clone())),
        Detail::Count(n) => one(Value::bare(n)),
        Detail::Removed(n) => one(Value::Bare(format!("{:.0}", *n as f64 / loops(shown) as f64))),
        Detail::Pages(exact, lossy) => {
            vec![(EXACT_PAGES.into(), Value::bare(exact)), (LOSSY_PAGES.into(), Value::bare(lossy))]
        }
        Detail::Sort(method, kb, disk) => vec![
            ("Sort Method".into(), Value::Text((*method).to_owned())),
            ("Sort Space Used".into(), Value::bare(kb)),
            ("Sort Space Type".into(), Value::Text(if *disk { "Disk" } else { "Memory" }.into())),
        ],
        Detail::Hash([buckets, batches, kb]) => vec![
            ("Hash Buckets".into(), Value::bare(buckets)),
            ("Original Hash Buckets".into(), Value::bare(buckets)),
            ("Hash Batches".into(), Value::bare(batches)),
            ("Original Hash Batches".into(), Value::bare(batches)),
            ("Peak Memory Usage".into(), Value::bare(kb)),
        ],
        Detail::Cache(counts) => {
            let field = |(name, count): (&&'static str, &u64)| ((*name).into(), Value::bare(count));
            COUNTS.iter().zip(counts).map(field).collect()
        }
        Detail::Groups([batches, kb]) => vec![
            ("Planned Partitions".into(), Value::bare(&0)),
            ("HashAgg Batches".into(), Value::bare(batches)),
            ("Peak Memory Usage".into(), Value::bare(kb)),
            ("Disk Usage".into(), Value::bare(&0)),
        ],
    }
}

/// Pages in blocks of PostgreSQL's size, which is ours.
fn blocks(used: &Usage, bytes: Use) -> u64 {
    used.get(bytes).div_ceil(storage::PAGE_SIZE as u64)
}

/// `Buffers`, `I/O Timings` and `WAL`, where there is something to say.
fn usage_text(used: &Usage, options: &ExplainOptions, io_times: bool) -> Vec<String> {
    let counts = |named: &[(&str, u64)]| {
        let some = named.iter().filter(|(_, count)| *count > 0);
        some.map(|(name, count)| format!(" {name}={count}")).collect::<String>()
    };
    let times = |named: [(&str, u64); 2]| {
        let some = named.into_iter().filter(|(_, ns)| *ns > 0);
        some.map(|(name, ns)| format!(" {name}={:.3}", ms(ns))).collect::<String>()
    };
    let both = |shared: String, temporary: String| {
        let parts = [("shared", shared), ("temp", temporary)];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        parts.map(|(name, text)| format!("{name}{text}")).collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    if options.buffers {
        let shared = counts(&[
            ("hit", used.get(Use::BufferHit)),
            ("read", used.get(Use::BufferRead)),
            ("dirtied", used.get(Use::BufferDirtied)),
            ("written", used.get(Use::BufferWritten)),
        ]);
        let temporary = counts(&[
            ("read", blocks(used, Use::TempRead)),
            ("written", blocks(used, Use::TempWritten)),
        ]);
        lines.push(("Buffers", both(shared, temporary)));
    }
    if options.buffers && io_times {
        let shared = times([("read", used.get(Use::ReadNs)), ("write", used.get(Use::WriteNs))]);
        let temporary =
            times([("read", used.get(Use::TempReadNs)), ("write", used.get(Use::TempWriteNs))]);
        lines.push(("I/O Timings", both(shared, temporary)));
    }
    if options.wal {
        let logged = counts(&[
            ("records", used.get(Use::WalRecords)),
            ("fpi", used.get(Use::WalImages)),
            ("bytes", used.get(Use::WalBytes)),
        ]);
        lines.push(("WAL", logged.trim_start().to_owned()));
    }
    let said = lines.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| format!("{name}: {text}")).collect()
}

/// The counts of pages, and the times of reading and writing them.
fn buffer_fields(used: &Usage, io_times: bool) -> Fields {
    let counts = [
        ("Shared Hit Blocks", used.get(Use::BufferHit)),
        ("Shared Read Blocks", used.get(Use::BufferRead)),
        ("Shared Dirtied Blocks", used.get(Use::BufferDirtied)),
        ("Shared Written Blocks", used.get(Use::BufferWritten)),
        ("Local Hit Blocks", 0),
        ("Local Read Blocks", 0),
        ("Local Dirtied Blocks", 0),
        ("Local Written Blocks", 0),
        ("Temp Read Blocks", blocks(used, Use::TempRead)),
        ("Temp Written Blocks", blocks(used, Use::TempWritten)),
    ];
    let times = [
        ("I/O Read Time", Use::ReadNs),
        ("I/O Write Time", Use::WriteNs),
        ("Temp I/O Read Time", Use::TempReadNs),
        ("Temp I/O Write Time", Use::TempWriteNs),
    ];
    let counts = counts.map(|(name, count)| (name.into(), Value::bare(count)));
    let time = |(name, time)| (Cow::from(name), Value::Bare(format!("{:.3}", ms(used.get(time)))));
    let times = times.into_iter().filter(|_| io_times).map(time);
    counts.into_iter().chain(times).collect()
}

fn wal_fields(used: &Usage) -> Fields {
    let counts = [
        ("WAL Records", Use::WalRecords),
        ("WAL FPI", Use::WalImages),
        ("WAL Bytes", Use::WalBytes),
    ];
    counts.map(|(name, count)| (name.into(), Value::bare(used.get(count)))).into()
}

/// `IO:DataFileRead 3 in 1.250 ms`, the longest first.
fn waits_text(waits: &[Metered]) -> String {
    let mut waits = waits.to_vec();
    waits.sort_by_key(|w| std::cmp::Reverse(w.total_ns));
    let one = |w: &Metered| {
        let (info, ms) = (w.event.info(), w.total_ns as f64 / 1e6);
        format!("{}:{} {} in {ms:.3} ms", info.kind, info.name, w.count)
    };
    waits.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The same as groups of fields.
fn waits_fields(waits: &[Metered]) -> Value {
    let one = |w: &Metered| {
        let info = w.event.info();
        vec![
            ("Wait Event Type".into(), Value::Text(info.kind.to_owned())),
            ("Wait Event".into(), Value::Text(info.name.to_owned())),
            ("Waits".into(), Value::bare(w.count)),
            ("Wait Time".into(), Value::Bare(format!("{:.3}", ms(w.total_ns)))),
        ]
    };
    Value::Groups("Wait", waits.iter().map(one).collect())
}

/// What the formats other than text print.
pub fn fields(tree: &Shown, options: &ExplainOptions, whole: &Whole) -> Fields {
    let time = |ns: u128| Value::Bare(format!("{:.3}", ms(ns as u64)));
    let plan = node_fields(tree, options, whole.io_times, None);
    let mut fields: Fields = vec![("Plan".into(), Value::Group(plan))];
    if !whole.settings.is_empty() {
        let one =
            |(name, value): &(&'static str, String)| (Cow::from(*name), Value::Text(value.clone()));
        let settings = whole.settings.iter().map(one).collect();
        fields.push(("Settings".into(), Value::Group(settings)));
    }
    if options.buffers {
        // Plans are made from what is in memory.
        let none = buffer_fields(&Usage::default(), whole.io_times);
        fields.push(("Planning".into(), Value::Group(none)));
    }
    if options.summary {
        fields.push(("Planning Time".into(), time(whole.planning.as_nanos())));
    }
    if let Some(execution) = whole.execution {
        fields.push(("Triggers".into(), Value::Groups("Trigger", vec![])));
        if options.summary {
            fields.push(("Execution Time".into(), time(execution.as_nanos())));
        }
    }
    fields
}

fn node_fields(
    shown: &Shown,
    options: &ExplainOptions,
    io_times: bool,
    parent: Option<&str>,
) -> Fields {
    let text = |text: &str| Value::Text(text.to_owned());
    let kind = shown.node_type.unwrap_or(&shown.kind);
    let mut fields: Fields = vec![("Node Type".into(), text(kind))];
    fields.extend(shown.strategy.iter().map(|(name, value)| ((*name).into(), text(value))));
    if let Some(parent) = parent {
        fields.push(("Parent Relationship".into(), text(parent)));
    }
    let aware = shown.kind.starts_with("Parallel ");
    fields.push(("Parallel Aware".into(), Value::bare(aware)));
    fields.push(("Async Capable".into(), Value::bare(false)));
    fields.extend(shown.facts.iter().map(|(name, value)| ((*name).into(), text(value))));
    if options.costs {
        let e = &shown.estimate;
        fields.push(("Startup Cost".into(), Value::Bare(format!("{:.2}", e.startup))));
        fields.push(("Total Cost".into(), Value::Bare(format!("{:.2}", e.total))));
        fields.push(("Plan Rows".into(), Value::Bare(format!("{:.0}", e.rows))));
        fields.push(("Plan Width".into(), Value::bare(e.width)));
    }
    if let Some(m) = &shown.measure {
        let loops = m.loops.max(1) as f64;
        if options.timing {
            let time = |seconds: f64| Value::Bare(format!("{:.3}", seconds * 1000.0 / loops));
            fields.push(("Actual Startup Time".into(), time(m.startup)));
            fields.push(("Actual Total Time".into(), time(m.total)));
        }
        let rows = format!("{:.0}", m.rows as f64 / loops);
        fields.push(("Actual Rows".into(), Value::Bare(rows)));
        fields.push(("Actual Loops".into(), Value::bare(m.loops)));
    }
    for (name, detail) in &shown.details {
        fields.extend(detail_fields(name, detail, shown));
    }
    if let Some(m) = &shown.measure {
        fields.extend(
            options.buffers.then(|| buffer_fields(&m.used, io_times)).into_iter().flatten(),
        );
        fields.extend(options.wal.then(|| wal_fields(&m.used)).into_iter().flatten());
        fields.extend(options.waits.then(|| ("Waits".into(), waits_fields(&m.waits))));
        if options.verbose && !m.workers.is_empty() {
            fields.push(("Workers".into(), worker_fields(&m.workers, options)));
        }
    }
    if !shown.children.is_empty() {
        let member = matches!(shown.kind.as_str(), "Append" | "BitmapAnd" | "BitmapOr");
        let relation = |(n, child): (usize, &Shown)| match (&child.title, n) {
            (Some(_), _) => "SubPlan",
            (None, _) if member => "Member",
            (None, 0) => "Outer",
            (None, _) => "Inner",
        };
        let children = shown.children.iter().enumerate();
        let children = children
            .map(|(n, child)| node_fields(child, options, io_times, Some(relation((n, child)))));
        fields.push(("Plans".into(), Value::Groups("Plan", children.collect())));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::measure::Measure;

    fn shown(kind: &str, children: Vec<Shown>) -> Shown {
        Shown {
            kind: kind.to_owned(),
            on: " on t".to_owned(),
            facts: vec![],
            node_type: None,
            strategy: vec![],
            details: vec![("Filter", "(a = 1)".to_owned().into())],
            estimate: sql::plan::Estimate { startup: 0.0, total: 1.5, rows: 2.0, width: 4 },
            measure: None,
            title: None,
            children,
        }
    }

    #[test]
    fn text_is_indented_as_postgresql_does() {
        let tree = shown("Limit", vec![shown("Sort", vec![shown("Seq Scan", vec![])])]);
        let options = ExplainOptions { costs: true, ..ExplainOptions::default() };
        let lines = lines(&tree, &options, false);
        assert_eq!(
            lines,
            [
                "Limit on t  (cost=0.00..1.50 rows=2 width=4)",
                "  Filter: (a = 1)",
                "  ->  Sort on t  (cost=0.00..1.50 rows=2 width=4)",
                "        Filter: (a = 1)",
                "        ->  Seq Scan on t  (cost=0.00..1.50 rows=2 width=4)",
                "              Filter: (a = 1)",
            ]
        );
    }

    #[test]
    fn waits_stand_below_their_node() {
        let waits = [
            (base::WaitEvent::IODataFileRead, 2, 1_500_000),
            (base::WaitEvent::LockTuple, 1, 2_000_000),
        ];
        let waits = waits.map(|(event, count, total_ns)| Metered { event, count, total_ns });
        let mut tree = shown("Seq Scan", vec![]);
        let measure = Measure { loops: 1, waits: waits.to_vec(), ..Default::default() };
        tree.measure = Some(measure);
        let options = ExplainOptions { waits: true, ..ExplainOptions::default() };
        let lines = lines(&tree, &options, false);
        assert_eq!(lines[2], "  Waits: Lock:tuple 1 in 2.000 ms, IO:DataFileRead 2 in 1.500 ms");
        let last = node_fields(&tree, &options, false, None).pop();
        let Some((name, Value::Groups(_, groups))) = last else {
            panic!("the waits are groups");
        };
        assert_eq!((name.as_ref(), groups.len()), ("Waits", 2));
        let texts = groups[1].iter().map(|(name, value)| match value {
            Value::Text(text) | Value::Bare(text) => format!("{name}: {text}"),
            _ => panic!("{name} is no text"),
        });
        let expected =
            ["Wait Event Type: Lock", "Wait Event: tuple", "Waits: 1", "Wait Time: 2.000"];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_was_used_is_said_as_far_as_it_is_wanted() {
        let mut used = Usage::default();
        for (what, amount) in [
            (Use::BufferHit, 3),
            (Use::BufferRead, 2),
            (Use::ReadNs, 1_500_000),
            (Use::TempWritten, 8193),
            (Use::WalRecords, 1),
            (Use::WalBytes, 70),
        ] {
            used.0[what as usize] = amount;
        }
        let mut options = ExplainOptions { buffers: true, ..ExplainOptions::default() };
        let buffers = "Buffers: shared hit=3 read=2, temp written=2";
        assert_eq!(usage_text(&used, &options, false), [buffers]);
        options.wal = true;
        assert_eq!(
            usage_text(&used, &options, true),
            [buffers, "I/O Timings: shared read=1.500", "WAL: records=1 bytes=70"]
        );
        assert!(usage_text(&Usage::default(), &options, true).is_empty());
    }
}
