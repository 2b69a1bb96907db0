//! The page: one file of HTML with all plots, styles and the script in it.

use crate::fit::analysis::{Analysis, PREDICTED};
use crate::fit::interval::Quantity;
use crate::fit::text::{describe, number, percent, verdict};
use crate::results::{Environment, Target};

use super::axis::Measure;
use super::chart::{NARROW, WIDE, put, svg};
use super::flame::{Flame, address};
use super::gather::{Curve, Load, Results, mean};
use super::others::lock_points;
use super::sentences::{self, title};
use super::theme::{escape, page_css};
use super::{Content, LoadContent, Plot};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
#[must_use]
pub fn page(results: &Results, content: &Content) -> String {
    let (top, rest) = sentences::all(results);
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{0}</title><style>{1}{CSS}</style></head><body>\
             <header><p class=\"eyebrow\">Threadgres laboratory\
             <button id=\"theme\" type=\"button\" title=\"light or dark\">◐</button></p><h1>{0}</h1>",
            escape(&top),
            page_css()
        ),
    );
    for sentence in rest {
        put(&mut out, format_args!("<p class=\"lead\">{}</p>", escape(&sentence)));
    }
    if let Some(environment) = results.environments.first() {
        put(&mut out, format_args!("<p class=\"meta\">{}</p>", escape(&where_it_ran(environment))));
    }
    out.push_str("</header>");
    navigation(&mut out, content);
    out.push_str("<main>");
    for (load, made) in results.loads.iter().zip(&content.loads) {
        load_section(&mut out, load, made);
    }
    grid(&mut out, "incident", "The incident", INCIDENT, &content.incident);
    locks(&mut out, results, content);
    simulated(&mut out, content);
    environment(&mut out, results);
    put(&mut out, format_args!("</main><script>{SCRIPT}</script></body></html>\n"));
    out
}

const INCIDENT: &str = "Many readers share a page while a few writers want it for themselves. Where \
    readers never queue behind a waiting writer, the writer may wait without end; a bound on how many \
    may pass it ends that.";

fn where_it_ran(e: &Environment) -> String {
    let cores = if e.cores == 1 { "1 core".to_owned() } else { format!("{} cores", e.cores) };
    let parts = [e.started.clone(), cores, e.processor.clone(), e.kernel.clone()];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn navigation(out: &mut String, content: &Content) {
    out.push_str("<nav>");
    for load in &content.loads {
        put(out, format_args!("<a href=\"#{}\">{}</a>", load.slug, escape(&load.name)));
    }
    let others = [
        ("incident", "incident", content.incident.is_empty()),
        ("locks", "locks", content.locks.is_empty()),
        ("simulated", "simulator", content.simulated.is_empty()),
        ("environment", "environment", false),
    ];
    for (id, name, empty) in others {
        if !empty {
            put(out, format_args!("<a href=\"#{id}\">{name}</a>"));
        }
    }
    out.push_str("</nav>");
}

fn load_section(out: &mut String, load: &Load, made: &LoadContent) {
    put(out, format_args!("<section id=\"{}\"><h2>{}</h2>", made.slug, escape(&load.name())));
    for error in sentences::errors(load) {
        put(out, format_args!("<p class=\"warning\">{}</p>", escape(&error)));
    }
    for plot in &made.plots {
        figure(out, plot);
    }
    out.push_str("<details><summary>All figures of this load</summary>");
    figures_table(out, load);
    out.push_str("</details>");
    fits(out, load, made);
    if let Some(plot) = &made.waits {
        figure(out, plot);
    }
    for flame in &made.flames {
        flame_figure(out, flame);
    }
    out.push_str("</section>");
}

fn figure(out: &mut String, plot: &Plot) {
    put(
        out,
        format_args!(
            "<figure id=\"{}\"><h3>{}</h3>{}{}",
            plot.id,
            escape(&plot.title),
            svg(&*plot.drawing, WIDE, &plot.title, "wide"),
            svg(&*plot.drawing, NARROW, &plot.title, "narrow")
        ),
    );
    if !plot.caption.is_empty() {
        put(out, format_args!("<figcaption>{}</figcaption>", escape(&plot.caption)));
    }
    out.push_str("</figure>");
}

/// Small plots side by side.
fn grid(out: &mut String, id: &str, name: &str, text: &str, plots: &[Plot]) {
    if plots.is_empty() {
        return;
    }
    put(out, format_args!("<section id=\"{id}\"><h2>{name}</h2><p>{text}</p>"));
    small(out, plots);
    out.push_str("</section>");
}

fn small(out: &mut String, plots: &[Plot]) {
    out.push_str("<div class=\"grid2\">");
    for plot in plots {
        put(
            out,
            format_args!(
                "<figure id=\"{}\"><h3>{}</h3>{}</figure>",
                plot.id,
                escape(&plot.title),
                svg(&*plot.drawing, NARROW, &plot.title, "")
            ),
        );
    }
    out.push_str("</div>");
    if let Some(caption) = plots.first().map(|p| &p.caption).filter(|c| !c.is_empty()) {
        put(out, format_args!("<p class=\"caption\">{}</p>", escape(caption)));
    }
}

fn flame_figure(out: &mut String, flame: &Flame) {
    put(
        out,
        format_args!(
            "<figure id=\"{}\"><h3>Flame graph: {}</h3>\
             <iframe class=\"flame\" sandbox=\"allow-scripts\" loading=\"lazy\" height=\"{}\" \
             title=\"Flame graph\" src=\"{}\"></iframe>\
             <figcaption>Width is a stack’s share of the time; click a frame to zoom, Ctrl-F \
             searches.</figcaption></figure>",
            flame.id,
            escape(&flame.title),
            flame.height,
            address(&flame.svg)
        ),
    );
}

/// A table: head, then rows; the first column to the left.
fn table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for cell in head {
        put(out, format_args!("<th>{}</th>", escape(cell)));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            // What follows a line feed is small: an estimate's interval.
            let (first, second) = cell.split_once('\n').unwrap_or((cell, ""));
            put(out, format_args!("<td>{}", escape(first)));
            if !second.is_empty() {
                put(out, format_args!("<small>{}</small>", escape(second)));
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn figures_table(out: &mut String, load: &Load) {
    let mut rows = Vec::new();
    for curve in &load.curves {
        for count in &curve.counts {
            let percentile = |p: f64| {
                count
                    .percentile(p)
                    .map_or("–".into(), |all| Measure::Microseconds.show(mean(all)))
            };
            let range = count.range().map_or("–".into(), |(low, high)| {
                format!("{} … {}", number(low.round()), number(high.round()))
            });
            let cores = |cpu: Option<f64>| {
                cpu.map_or("–".into(), |cpu| format!("{:.2}", cpu / count.seconds.max(1e-9)))
            };
            let cpu = format!("{} + {}", cores(count.server_cpu), cores(count.driver_cpu));
            let memory =
                count.memory.map_or("–".into(), |m| format!("{:.0} MB", m as f64 / 1048576.0));
            rows.push(vec![
                title(&curve.target),
                count.clients.to_string(),
                number(count.mean().round()),
                range,
                percentile(50.0),
                percentile(99.0),
                percentile(100.0),
                cpu,
                memory,
                count.errors.to_string(),
            ]);
        }
    }
    let head = [
        "server",
        "clients",
        "tps",
        "lowest … highest",
        "p50",
        "p99",
        "longest",
        "cores used (server + driver)",
        "memory",
        "errors",
    ];
    table(out, &head, &rows);
}

fn fits(out: &mut String, load: &Load, made: &LoadContent) {
    let Some(plot) = &made.fit else { return };
    figure(out, plot);
    let analyses: Vec<(&Curve, Analysis)> =
        load.curves.iter().zip(made.analyses.iter().cloned()).collect();
    let mut rows = Vec::new();
    for (curve, analysis) in &analyses {
        let Some(fit) = analysis.best() else { continue };
        let show = |q: &Option<Quantity>, f: fn(f64) -> String| {
            q.as_ref().map_or("–".into(), |q| stacked(q, f))
        };
        let mut row = vec![
            title(&curve.target),
            match fit.meaningless {
                Some(_) => format!("{}\n(meaningless)", fit.model.name()),
                None => fit.model.name().to_owned(),
            },
            show(&fit.serial, percent),
            show(&fit.coherency, number),
            show(&fit.knee, number),
            show(&fit.peak, number),
            format!("{:.3}", fit.r_squared),
        ];
        row.extend(fit.predictions.iter().map(|(_, q)| stacked(q, number)));
        rows.push(row);
    }
    let at: Vec<String> = PREDICTED.iter().map(|n| format!("at {}", number(*n))).collect();
    let mut head = vec!["server", "law", "serial part a", "coherency b", "knee N*", "most", "R²"];
    head.extend(at.iter().map(String::as_str));
    table(out, &head, &rows);
    let warnings = sentences::warnings(&analyses);
    if !warnings.is_empty() {
        out.push_str("<div class=\"warning\"><p>What these fits can’t carry:</p><ul>");
        for warning in warnings {
            put(out, format_args!("<li>{}</li>", escape(&warning)));
        }
        out.push_str("</ul></div>");
    }
}

/// An estimate above its interval.
fn stacked(q: &Quantity, show: fn(f64) -> String) -> String {
    if !q.is_known() {
        return show(q.estimate);
    }
    format!("{}\n{} … {}", show(q.estimate), show(q.low), show(q.high))
}

fn locks(out: &mut String, results: &Results, content: &Content) {
    if content.locks.is_empty() && lock_points(&results.records).next().is_none() {
        return;
    }
    out.push_str("<section id=\"locks\"><h2>Locks</h2>");
    small(out, &content.locks);
    let optional = |x: Option<f64>| x.map_or("–".into(), |x| number(x.round()));
    let row = |p: &crate::results::LockPoint| {
        let parameters: Vec<String> =
            p.parameters.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
        let unfair = p.wait_mean_ns.filter(|mean| *mean > 0.0).map(|m| p.longest_ns as f64 / m);
        vec![
            p.primitive.clone(),
            parameters.join(", "),
            p.threads.to_string(),
            number(p.mean_ns),
            optional(p.cpu_ns),
            optional(p.wait_mean_ns),
            number(p.longest_ns as f64),
            optional(unfair),
            optional(p.hand_over_ns),
        ]
    };
    let rows: Vec<Vec<String>> = lock_points(&results.records).map(row).collect();
    out.push_str("<details><summary>All lock measurements (nanoseconds)</summary>");
    let head = [
        "primitive",
        "parameters",
        "threads",
        "one operation",
        "its CPU time",
        "mean wait",
        "longest wait",
        "longest over mean",
        "hand-over",
    ];
    table(out, &head, &rows);
    out.push_str("</details></section>");
}

/// More plots of the simulator than this are shown small, side by side.
const LARGE_PLOTS: usize = 3;

fn simulated(out: &mut String, content: &Content) {
    if content.simulated.is_empty() {
        return;
    }
    out.push_str("<section id=\"simulated\"><h2>Simulator</h2>");
    if content.simulated.len() > LARGE_PLOTS {
        small(out, &content.simulated);
    } else {
        content.simulated.iter().for_each(|plot| figure(out, plot));
    }
    if !content.simulated_fits.is_empty() {
        out.push_str("<details><summary>Laws fitted to the simulated points</summary>");
        let rows: Vec<Vec<String>> = content
            .simulated_fits
            .iter()
            .map(|a| vec![a.series.name.clone(), describe(a), verdict(a)])
            .collect();
        table(out, &["curve", "points", "law"], &rows);
        out.push_str("</details>");
    }
    out.push_str("</section>");
}

fn environment(out: &mut String, results: &Results) {
    out.push_str("<section id=\"environment\"><h2>Environment</h2>");
    for e in &results.environments {
        let rows = [
            ("started", e.started.clone()),
            ("processor", e.processor.clone()),
            ("cores", e.cores.to_string()),
            ("memory", format!("{:.1} GB", e.memory as f64 / 1e9)),
            ("kernel", e.kernel.clone()),
            ("laboratory", e.lab.clone()),
            ("arguments", e.arguments.join(" ")),
        ];
        out.push_str("<dl>");
        for (name, value) in rows.iter().filter(|(_, v)| !v.is_empty()) {
            put(out, format_args!("<dt>{name}</dt><dd>{}</dd>", escape(value)));
        }
        out.push_str("</dl>");
    }
    for target in &results.targets {
        settings(out, target);
    }
    out.push_str("</section>");
}

fn settings(out: &mut String, target: &Target) {
    put(
        out,
        format_args!(
            "<h3>{}</h3><dl><dt>version</dt><dd>{}</dd><dt>address</dt><dd>{}</dd></dl>",
            escape(&title(&target.name)),
            escape(&target.version),
            escape(&target.url)
        ),
    );
    if target.settings.is_empty() {
        return;
    }
    out.push_str("<details><summary>Settings</summary>");
    let rows: Vec<Vec<String>> =
        target.settings.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    table(out, &["setting", "value"], &rows);
    out.push_str("</details>");
}
