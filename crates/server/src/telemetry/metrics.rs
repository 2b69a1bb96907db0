//! The metrics of `/metrics` as OTLP has them: one list of metrics, two ways to write it down.
//!
//! | Prometheus | OTLP |
//! | --- | --- |
//! | counter | sum, cumulative, monotonic |
//! | gauge | gauge |
//! | histogram (`_bucket`, `_sum`, `_count`) | histogram; its counts are those of single buckets |

use serde_json::{Value, json};

use super::json::{attribute, unix_ns};

/// Cumulative, in OTLP's words.
const CUMULATIVE: u32 = 2;

/// A sample: its name's end behind the family's, its labels, its value.
struct Sample<'t> {
    end: &'t str,
    labels: Vec<(&'t str, String)>,
    value: f64,
}

/// The metrics of a page in Prometheus's text format. `started`: since when counters count, in microseconds since 2000.
pub fn of_text(text: &str, started: i64) -> Vec<Value> {
    let (start, now) = (unix_ns(started), unix_ns(crate::server::now()));
    let mut metrics = Vec::new();
    let mut help = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
            continue;
        }
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' '))
        else {
            continue;
        };
        let mut samples = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            samples.extend(sample(line, name));
        }
        if samples.is_empty() {
            continue;
        }
        let data = match kind {
            "histogram" => json!({ "histogram": {
                "aggregationTemporality": CUMULATIVE, "dataPoints": histograms(&samples, &start, &now),
            } }),
            "counter" => json!({ "sum": {
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
                "dataPoints": points(&samples, Some(&start), &now),
            } }),
            _ => json!({ "gauge": { "dataPoints": points(&samples, None, &now) } }),
        };
        let mut metric = json!({ "name": name, "description": help });
        if let (Some(metric), Value::Object(data)) = (metric.as_object_mut(), data) {
            metric.extend(data);
        }
        metrics.push(metric);
    }
    metrics
}

/// A line of the page.
fn sample<'t>(line: &'t str, family: &str) -> Option<Sample<'t>> {
    let (head, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let (name, rest) = match head.split_once('{') {
        Some((name, rest)) => (name, rest.strip_suffix('}')?),
        None => (head, ""),
    };
    Some(Sample { end: name.strip_prefix(family)?, labels: labels(rest)?, value })
}

/// `a="x",b="y"`, in which backslashes, quotes and line ends have a backslash before them.
fn labels(mut text: &str) -> Option<Vec<(&str, String)>> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    c => value.push(c),
                },
                (_, c) => value.push(c),
            }
        };
        all.push((name, value));
        text = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
    }
    Some(all)
}

fn attributes(labels: &[(&str, String)]) -> Vec<Value> {
    let named = labels.iter().filter(|(name, _)| *name != "le");
    named.map(|(name, value)| attribute(name, value)).collect()
}

fn points(samples: &[Sample<'_>], start: Option<&str>, now: &str) -> Vec<Value> {
    let point = |sample: &Sample<'_>| {
        let mut point = json!({
            "attributes": attributes(&sample.labels), "timeUnixNano": now, "asDouble": sample.value,
        });
        if let Some(start) = start {
            point["startTimeUnixNano"] = start.into();
        }
        point
    };
    samples.iter().map(point).collect()
}

/// A point for each set of labels, in the order of the page.
fn histograms(samples: &[Sample<'_>], start: &str, now: &str) -> Vec<Value> {
    let same = |a: &Sample<'_>, b: &Sample<'_>| {
        let of = |sample: &Sample<'_>| {
            let named = sample.labels.iter().filter(|(name, _)| *name != "le").cloned();
            named.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        };
        of(a) == of(b)
    };
    let mut points = Vec::new();
    for group in samples.chunk_by(same) {
        let (mut bounds, mut counts, mut below) = (Vec::new(), Vec::new(), 0.0);
        let (mut sum, mut count) = (0.0, 0.0);
        for sample in group {
            match sample.end {
                "_bucket" => {
                    let le = sample.labels.iter().find(|(name, _)| *name == "le");
                    bounds.extend(
                        le.and_then(|(_, le)| le.parse::<f64>().ok()).filter(|b| b.is_finite()),
                    );
                    counts.push(format!("{:.0}", sample.value - below));
                    below = sample.value;
                }
                "_sum" => sum = sample.value,
                _ => count = sample.value,
            }
        }
        points.push(json!({
            "attributes": attributes(&group[0].labels), "startTimeUnixNano": start, "timeUnixNano": now,
            "count": format!("{count:.0}"), "sum": sum, "bucketCounts": counts, "explicitBounds": bounds,
        }));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_become_metrics() {
        let text = "# HELP t_a_total So many.\n# TYPE t_a_total counter\nt_a_total{db=\"x\\\"y\",k=\"1\"} 5\n\
                    # HELP t_g Now.\n# TYPE t_g gauge\nt_g 0.5\n# HELP t_none None.\n# TYPE t_none gauge\n\
                    # HELP t_h Times.\n# TYPE t_h histogram\nt_h_bucket{e=\"A\",le=\"0.1\"} 2\n\
                    t_h_bucket{e=\"A\",le=\"1\"} 5\nt_h_bucket{e=\"A\",le=\"+Inf\"} 6\nt_h_sum{e=\"A\"} 3.5\n\
                    t_h_count{e=\"A\"} 6\nt_h_bucket{e=\"B\",le=\"+Inf\"} 1\nt_h_sum{e=\"B\"} 1\nt_h_count{e=\"B\"} 1\n";
        let all = of_text(text, 0);
        assert_eq!(all.len(), 3);
        let counter = &all[0]["sum"]["dataPoints"][0];
        assert_eq!(
            (&all[0]["name"], &all[0]["description"]),
            (&json!("t_a_total"), &json!("So many."))
        );
        assert_eq!(counter["asDouble"], 5.0);
        assert_eq!(counter["startTimeUnixNano"], "946684800000000000");
        assert_eq!(counter["attributes"][0]["value"]["stringValue"], "x\"y");
        assert_eq!(all[1]["gauge"]["dataPoints"][0]["asDouble"], 0.5);
        let histogram = &all[2]["histogram"]["dataPoints"];
        assert_eq!(histogram[0]["bucketCounts"], json!(["2", "3", "1"]));
        assert_eq!(histogram[0]["explicitBounds"], json!([0.1, 1.0]));
        assert_eq!((&histogram[0]["count"], &histogram[0]["sum"]), (&json!("6"), &json!(3.5)));
        assert_eq!(histogram[1]["attributes"][0]["value"]["stringValue"], "B");
    }
}
