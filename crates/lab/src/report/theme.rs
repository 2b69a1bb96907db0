//! Colours and letters, once for the page, once for plots that stand alone.
//!
//! Eight colours that colour-blind readers can tell apart (after M. Okabe and K. Ito, *Color Universal
//! Design*, 2008), darkened for lines on white and lightened for a dark ground. Plots name them by
//! class: `l3` draws a line in colour 3, `f3` fills with it, `b3` fills a band.

use std::fmt::Write;

/// Colours of series on a light and on a dark ground.
const SERIES: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8f45"),
    ("#008f68", "#2fcf9f"),
    ("#a8478f", "#e59bcb"),
    ("#b47e00", "#f0b93a"),
    ("#6b7280", "#a9b0bb"),
    ("#8a5a44", "#cf9f86"),
    ("#5f6f00", "#c3cf4a"),
];

/// Their number.
pub const COLOURS: usize = SERIES.len();
/// The grey among them, for what is only there to compare with.
pub const GREY: usize = 5;

/// Other colours: name, light, dark.
const OTHERS: [(&str, &str, &str); 6] = [
    ("ground", "#ffffff", "#14171c"),
    ("ink", "#1b1f24", "#e8eaed"),
    ("soft", "#5b6470", "#9aa3af"),
    ("grid", "#e4e7eb", "#2b3038"),
    ("card", "#f6f7f9", "#1c2027"),
    ("idle", "#d8dce2", "#39404a"),
];

/// Rules for everything that plots draw.
const RULES: &str = "
svg.plot{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans Condensed',sans-serif;font-size:13px}
svg.plot text{fill:var(--ink)}
svg.plot text.soft{fill:var(--soft)}
svg.plot text.title{font-size:17px;font-weight:600}
svg.plot text.name{font-weight:600}
.grid{stroke:var(--grid);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.rule{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}
.beyond{fill:var(--soft);fill-opacity:.08}
.line{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}
.dash{stroke-dasharray:6 5;stroke-width:1.75}
.whisker{stroke-width:1.25;stroke-opacity:.75}
.dot{stroke:var(--ground);stroke-width:1.25}
.idle{fill:var(--idle)}
.other{fill:var(--soft)}
.ground{fill:var(--ground)}
";

/// Rules and variables of the page.
#[must_use]
pub fn page_css() -> String {
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = writeln!(out, ":root{{color-scheme:light;{}}}", variables(false));
    let dark = variables(true);
    let _ = writeln!(
        out,
        "@media(prefers-color-scheme:dark){{:root:not([data-theme=light])\
         {{color-scheme:dark;{dark}}}}}"
    );
    let _ = writeln!(out, ":root[data-theme=dark]{{color-scheme:dark;{dark}}}");
    out + &rules()
}

/// The style of a plot that stands alone: light, and dark where the reader's system is. Programs that
/// know neither variables nor media queries find plain colours.
#[must_use]
pub fn plot_css() -> String {
    let resolve = |dark: bool| {
        let mut rules = rules();
        for (name, value) in values(dark) {
            rules = rules.replace(&format!("var(--{name})"), value);
        }
        rules
    };
    format!("{}@media(prefers-color-scheme:dark){{{}}}", resolve(false), resolve(true))
}

/// The style for turning a plot into pixels: light, without what only browsers know.
#[must_use]
pub fn pixel_css() -> String {
    let css = plot_css();
    css.split("@media").next().unwrap_or_default().to_owned()
}

fn rules() -> String {
    let mut out = RULES.to_owned();
    for i in 0..COLOURS {
        let _ = write!(
            out,
            ".l{i}{{stroke:var(--s{i})}}.f{i}{{fill:var(--s{i})}}\
             .b{i}{{fill:var(--s{i});fill-opacity:.16}}svg.plot text.f{i}{{fill:var(--s{i})}}"
        );
    }
    out
}

fn values(dark: bool) -> Vec<(String, &'static str)> {
    let series = SERIES.iter().enumerate();
    let mut out: Vec<_> =
        series.map(|(i, (l, d))| (format!("s{i}"), if dark { *d } else { *l })).collect();
    out.extend(OTHERS.iter().map(|(n, l, d)| ((*n).to_owned(), if dark { *d } else { *l })));
    out
}

fn variables(dark: bool) -> String {
    values(dark)
        .iter()
        .fold(String::new(), |all, (name, value)| all + &format!("--{name}:{value};"))
}

/// Text that HTML and SVG show as it is.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
