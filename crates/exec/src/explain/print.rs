//! The tree as text and as JSON.

use std::fmt::Write as _;

use sched::observe::Metered;
use sql::utility::ExplainOptions;

use super::node::{Detail, Shown};
use crate::ops::bitmap_heap_scan::{EXACT_PAGES, LOSSY_PAGES};

/// The text format's lines.
pub fn text(tree: &Shown, options: &ExplainOptions, seconds: Option<f64>) -> Vec<String> {
    let mut lines = Vec::new();
    node(tree, options, 0, 0, &mut lines);
    if let Some(seconds) = seconds
        && options.summary
    {
        lines.push(format!("Execution Time: {:.3} ms", seconds * 1000.0));
    }
    lines
}

fn node(
    shown: &Shown,
    options: &ExplainOptions,
    depth: usize,
    mut shift: usize,
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
    if let Some(waits) = shown.measure.as_ref().map(|m| &m.waits).filter(|w| !w.is_empty()) {
        lines.push(format!("{}Waits: {}", " ".repeat(below), waits_text(waits)));
    }
    for child in &shown.children {
        node(child, options, depth + 1, shift, lines);
    }
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
    })
}

/// A detail as fields.
fn detail_json(name: &'static str, detail: &Detail, shown: &Shown) -> Vec<(&'static str, String)> {
    let one = |text: String| vec![(name, text)];
    match detail {
        Detail::One(text) => one(quote(text)),
        Detail::List(texts) => {
            let texts: Vec<String> = texts.iter().map(|t| quote(t)).collect();
            one(format!("[{}]", texts.join(", ")))
        }
        Detail::Count(n) => one(n.to_string()),
        Detail::Removed(n) => one(format!("{:.0}", *n as f64 / loops(shown) as f64)),
        Detail::Pages(exact, lossy) => {
            vec![(EXACT_PAGES, exact.to_string()), (LOSSY_PAGES, lossy.to_string())]
        }
    }
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

/// The same as an array of objects.
fn waits_json(waits: &[Metered]) -> String {
    let one = |w: &Metered| {
        let (info, ms) = (w.event.info(), w.total_ns as f64 / 1e6);
        format!(
            "{{\"Wait Event Type\": {}, \"Wait Event\": {}, \"Waits\": {}, \"Wait Time\": {ms:.3}}}",
            quote(info.kind),
            quote(info.name),
            w.count
        )
    };
    format!("[{}]", waits.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 32 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The JSON format's document.
pub fn json(tree: &Shown, options: &ExplainOptions, seconds: Option<f64>) -> String {
    let mut out = "[\n  {\n    \"Plan\": ".to_owned();
    json_node(tree, options, 4, None, &mut out);
    if seconds.is_some() {
        out.push_str(",\n    \"Triggers\": [\n    ]");
    }
    if let Some(seconds) = seconds
        && options.summary
    {
        let _ = write!(out, ",\n    \"Execution Time\": {:.3}", seconds * 1000.0);
    }
    out.push_str("\n  }\n]");
    out
}

fn json_node(
    shown: &Shown,
    options: &ExplainOptions,
    indent: usize,
    parent: Option<&str>,
    out: &mut String,
) {
    let mut fields = vec![("Node Type", quote(shown.node_type.unwrap_or(&shown.kind)))];
    fields.extend(shown.strategy.iter().map(|(name, value)| (*name, quote(value))));
    if let Some(parent) = parent {
        fields.push(("Parent Relationship", quote(parent)));
    }
    fields.push(("Parallel Aware", "false".to_owned()));
    fields.push(("Async Capable", "false".to_owned()));
    fields.extend(shown.facts.iter().map(|(name, value)| (*name, quote(value))));
    if options.costs {
        let e = &shown.estimate;
        fields.push(("Startup Cost", format!("{:.2}", e.startup)));
        fields.push(("Total Cost", format!("{:.2}", e.total)));
        fields.push(("Plan Rows", format!("{:.0}", e.rows)));
        fields.push(("Plan Width", e.width.to_string()));
    }
    if let Some(m) = &shown.measure {
        let loops = m.loops.max(1) as f64;
        if options.timing {
            fields.push(("Actual Startup Time", format!("{:.3}", m.startup * 1000.0 / loops)));
            fields.push(("Actual Total Time", format!("{:.3}", m.total * 1000.0 / loops)));
        }
        fields.push(("Actual Rows", format!("{:.0}", m.rows as f64 / loops)));
        fields.push(("Actual Loops", m.loops.to_string()));
        if options.waits {
            fields.push(("Waits", waits_json(&m.waits)));
        }
    }
    for (name, detail) in &shown.details {
        fields.extend(detail_json(name, detail, shown));
    }
    let pad = " ".repeat(indent + 2);
    let texts: Vec<String> =
        fields.iter().map(|(name, value)| format!("{pad}\"{name}\": {value}")).collect();
    out.push_str("{\n");
    out.push_str(&texts.join(",\n"));
    if !shown.children.is_empty() {
        let _ = write!(out, ",\n{pad}\"Plans\": [\n{pad}  ");
        for (n, child) in shown.children.iter().enumerate() {
            if n > 0 {
                let _ = write!(out, ",\n{pad}  ");
            }
            let member = matches!(shown.kind.as_str(), "Append" | "BitmapAnd" | "BitmapOr");
            let relation = match (&child.title, n) {
                (Some(_), _) => "SubPlan",
                (None, _) if member => "Member",
                (None, 0) => "Outer",
                (None, _) => "Inner",
            };
            json_node(child, options, indent + 4, Some(relation), out);
        }
        let _ = write!(out, "\n{pad}]");
    }
    let _ = write!(out, "\n{}}}", " ".repeat(indent));
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let lines = text(&tree, &options, None);
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
        let measure = crate::ops::Measure { loops: 1, waits: waits.to_vec(), ..Default::default() };
        tree.measure = Some(measure);
        let options = ExplainOptions { waits: true, ..ExplainOptions::default() };
        let lines = text(&tree, &options, None);
        assert_eq!(lines[2], "  Waits: Lock:tuple 1 in 2.000 ms, IO:DataFileRead 2 in 1.500 ms");
        assert!(json(&tree, &options, None).contains(
            "{\"Wait Event Type\": \"Lock\", \"Wait Event\": \"tuple\", \"Waits\": 1, \"Wait Time\": 2.000}"
        ));
    }

    #[test]
    fn json_strings_are_escaped() {
        assert_eq!(quote("a\"b\\\n\u{1}"), "\"a\\\"b\\\\\\n\\u0001\"");
    }
}
