//! Lines and points over a number, drawn as SVG.
//!
//! Names stand at the ends of their lines where there is room, else in a row above. A plot exists in
//! two widths, for desks and for telephones, since letters that shrink with a picture can't be read.

use std::fmt::Write;

use super::axis::{Axis, Scale};
use super::theme::escape;

/// How large and for where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Width in pixels.
    pub width: f64,
    /// Height of the plot proper in pixels.
    pub height: f64,
    /// Whether it is for a narrow screen.
    pub narrow: bool,
}

/// For desks and files.
pub const WIDE: Frame = Frame { width: 760.0, height: 330.0, narrow: false };
/// For telephones.
pub const NARROW: Frame = Frame { width: 360.0, height: 250.0, narrow: true };

/// Anything that can be drawn.
pub trait Draw {
    /// The inside of an `svg` element, and its height.
    fn draw(&self, frame: Frame) -> (String, f64);
}

/// One measured value.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Place.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Lowest and highest repetition.
    pub range: Option<(f64, f64)>,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name; none is shown for an empty one.
    pub name: String,
    /// Index into the theme's colours.
    pub colour: usize,
    /// Broken rather than whole.
    pub dashed: bool,
    /// Whether each value is marked.
    pub marked: bool,
    /// Whether values are joined.
    pub joined: bool,
    /// By rising place.
    pub dots: Vec<Dot>,
    /// An interval around it: place, low, high.
    pub band: Vec<(f64, f64, f64)>,
}

/// A plot of lines.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What is measured at.
    pub x: Axis,
    /// What is measured.
    pub y: Axis,
    /// Drawn in this order.
    pub lines: Vec<Line>,
    /// A horizontal rule.
    pub rule: Option<f64>,
    /// From where on nothing was measured.
    pub beyond: Option<f64>,
    /// An upper end for the vertical axis, where lines may leave the plot.
    pub ceiling: Option<f64>,
}

const LINE_HEIGHT: f64 = 16.0;
/// Longest name at the end of a line.
const NAME_WIDTH: f64 = 215.0;
/// How much wider bold letters are.
const BOLD: f64 = 1.16;
/// Most names at the ends of lines.
const NAMES: usize = 9;

impl Draw for Chart {
    fn draw(&self, frame: Frame) -> (String, f64) {
        let mut out = String::new();
        let beside = !frame.narrow && self.named().count() <= NAMES;
        let top = 26.0 + if beside { 0.0 } else { self.legend(frame, &mut out) };
        let right = if beside { self.names_width() } else { 12.0 };
        let left = if frame.narrow { 52.0 } else { 64.0 };
        let area = Area { left, right: frame.width - right, top, bottom: top + frame.height };
        let (x, y) = self.scales(&area, frame);
        self.ground(&mut out, &area, &x, &y, frame);
        // Lines end at the plot's edge, marks may stand on it.
        let (wide, high) = (area.right - area.left, area.bottom - area.top);
        put(
            &mut out,
            format_args!(
                "<svg x=\"{0:.1}\" y=\"{1:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
             viewBox=\"{0:.1} {1:.1} {wide:.1} {high:.1}\">",
                area.left, area.top
            ),
        );
        self.lines.iter().for_each(|line| line.shade(&mut out, &x, &y));
        self.lines.iter().for_each(|line| line.curve(&mut out, &x, &y));
        out.push_str("</svg>");
        self.lines.iter().for_each(|line| line.marks(&mut out, &x, &y, &self.x, &self.y));
        if beside {
            self.names(&mut out, &area, &y);
        }
        (out, area.bottom + 42.0)
    }
}

struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Chart {
    fn named(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|l| !(l.name.is_empty() || l.dots.is_empty() && l.band.is_empty()))
    }

    fn names_width(&self) -> f64 {
        let widest = self.named().map(|l| BOLD * text_width(&l.name)).fold(0.0, f64::max);
        widest.min(NAME_WIDTH) + 18.0
    }

    fn scales(&self, area: &Area, frame: Frame) -> (Scale, Scale) {
        let dots = || self.lines.iter().flat_map(|l| &l.dots);
        let bands = || self.lines.iter().flat_map(|l| &l.band);
        let xs = dots().map(|d| d.x).chain(bands().map(|b| b.0));
        let ends = dots().filter_map(|d| d.range).flat_map(|(a, b)| [a, b]);
        let mut ys: Vec<f64> = dots().map(|d| d.y).chain(ends).chain(self.rule).collect();
        if !self.y.log {
            ys.extend(bands().map(|b| b.2));
        }
        let ceiling = self.ceiling.unwrap_or(f64::INFINITY);
        let ys = ys.into_iter().map(|y| y.min(ceiling));
        let mut measured: Vec<f64> =
            self.lines.iter().filter(|l| l.marked).flat_map(|l| &l.dots).map(|d| d.x).collect();
        measured.sort_by(f64::total_cmp);
        measured.dedup();
        let wanted = if self.x.log && measured.len() <= 14 { &measured[..] } else { &[] };
        let mut wanted = wanted.to_vec();
        if !wanted.is_empty() && self.beyond.is_some() {
            wanted.extend(crate::fit::analysis::PREDICTED);
        }
        let apart = if frame.narrow { 34.0 } else { 40.0 };
        let x =
            Scale::new(&self.x, extent(xs), (area.left + 6.0, area.right - 6.0), apart, &wanted);
        let y = Scale::new(&self.y, extent(ys), (area.bottom, area.top), 44.0, &[]);
        (x, y)
    }

    /// Grid, ticks, axes' names.
    fn ground(&self, out: &mut String, area: &Area, x: &Scale, y: &Scale, frame: Frame) {
        let Area { left, right, top, bottom } = *area;
        if let Some(beyond) = self.beyond {
            let from = x.inside(beyond);
            if right - from > 2.0 {
                put(
                    out,
                    format_args!(
                        "<rect class=\"beyond\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                        right - from,
                        bottom - top
                    ),
                );
                if right - from > 90.0 {
                    put(
                        out,
                        format_args!(
                            "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">not measured</text>",
                            right - 6.0,
                            top + 16.0
                        ),
                    );
                }
            }
        }
        for (value, text) in &y.ticks {
            let at = y.at(*value);
            put(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{left}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    left - 8.0,
                    at + 4.5,
                    escape(text)
                ),
            );
        }
        for (value, text) in &x.ticks {
            let at = x.at(*value);
            put(
                out,
                format_args!(
                    "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text class=\"soft\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 4.0,
                    bottom + 19.0,
                    escape(text)
                ),
            );
        }
        put(
            out,
            format_args!(
                "<line class=\"axis\" x1=\"{left}\" x2=\"{right:.1}\" y1=\"{bottom}\" y2=\"{bottom}\"/>"
            ),
        );
        if let Some(rule) = self.rule {
            let at = y.inside(rule);
            put(
                out,
                format_args!(
                    "<line class=\"rule\" x1=\"{left}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
                ),
            );
        }
        let middle = if frame.narrow { frame.width / 2.0 } else { left.midpoint(right) };
        put(
            out,
            format_args!(
                "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"soft\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                8.0,
                top - 12.0,
                escape(&self.y.label),
                bottom + 37.0,
                escape(&self.x.label)
            ),
        );
    }

    /// Names at the ends of their lines, moved apart where they would meet.
    fn names(&self, out: &mut String, area: &Area, y: &Scale) {
        let mut names: Vec<(f64, &Line)> = self
            .named()
            .map(|l| {
                let end = l.dots.last().map(|d| d.y).or(l.band.last().map(|b| b.1));
                (y.inside(end.unwrap_or(0.0)), l)
            })
            .collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        for i in 1..names.len() {
            names[i].0 = names[i].0.max(names[i - 1].0 + LINE_HEIGHT);
        }
        let mut limit = area.bottom;
        for (at, _) in names.iter_mut().rev() {
            *at = at.min(limit);
            limit = *at - LINE_HEIGHT;
        }
        for (at, line) in names {
            put(
                out,
                format_args!(
                    "<text class=\"name f{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    line.colour,
                    area.right + 8.0,
                    at + 4.5,
                    escape(&shorten(&line.name, NAME_WIDTH / BOLD))
                ),
            );
        }
    }

    /// Names in rows above; returns their height.
    fn legend(&self, frame: Frame, out: &mut String) -> f64 {
        let entries: Vec<(String, String)> = self
            .named()
            .map(|l| {
                let dash = if l.dashed { " dash" } else { "" };
                let sample = format!(
                    "<line class=\"line l{}{dash}\" x1=\"0\" x2=\"16\" y1=\"0\" y2=\"0\"/>",
                    l.colour
                );
                (l.name.clone(), sample)
            })
            .collect();
        legend(&entries, frame.width, out)
    }
}

/// Draws samples with names in rows; returns the rows' height.
pub fn legend(entries: &[(String, String)], width: f64, out: &mut String) -> f64 {
    let (mut x, mut y) = (8.0, 14.0);
    for (name, sample) in entries {
        let name = shorten(name, width - 50.0);
        let wide = 22.0 + text_width(&name) + 14.0;
        if x > 8.0 && x + wide > width {
            (x, y) = (8.0, y + 20.0);
        }
        put(
            out,
            format_args!(
                "<g transform=\"translate({x:.1},{y:.1})\">{sample}<text x=\"22\" y=\"4.5\">{}</text></g>",
                escape(&name)
            ),
        );
        x += wide;
    }
    if entries.is_empty() { 0.0 } else { y + 12.0 }
}

impl Line {
    fn shade(&self, out: &mut String, x: &Scale, y: &Scale) {
        let colour = self.colour;
        if self.band.len() > 1 {
            let upper = self.band.iter().map(|b| (b.0, b.2));
            let lower = self.band.iter().rev().map(|b| (b.0, b.1));
            let path = path(upper.chain(lower).map(|(a, b)| (x.at(a), y.at(b))));
            put(out, format_args!("<path class=\"b{colour}\" d=\"{path}Z\"/>"));
        }
    }

    fn curve(&self, out: &mut String, x: &Scale, y: &Scale) {
        let colour = self.colour;
        if self.joined && self.dots.len() > 1 {
            let dash = if self.dashed { " dash" } else { "" };
            let path = path(self.dots.iter().map(|d| (x.at(d.x), y.at(d.y))));
            put(out, format_args!("<path class=\"line l{colour}{dash}\" d=\"{path}\"/>"));
        }
    }

    fn marks(&self, out: &mut String, x: &Scale, y: &Scale, xs: &Axis, ys: &Axis) {
        let colour = self.colour;
        if !self.marked {
            return;
        }
        for dot in &self.dots {
            let (at, value) = (x.at(dot.x), y.inside(dot.y));
            let mut note =
                format!("{}: {} at {}", self.name, ys.measure.show(dot.y), xs.measure.show(dot.x));
            if let Some((low, high)) = dot.range {
                put(
                    out,
                    format_args!(
                        "<line class=\"whisker l{colour}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                        y.inside(low),
                        y.inside(high)
                    ),
                );
                let _ = write!(note, " ({} … {})", ys.measure.show(low), ys.measure.show(high));
            }
            put(
                out,
                format_args!(
                    "<circle class=\"dot f{colour}\" cx=\"{at:.1}\" cy=\"{value:.1}\" r=\"4\"><title>{}</title></circle>",
                    escape(&note)
                ),
            );
        }
    }
}

/// A whole `svg` element.
#[must_use]
pub fn svg(drawing: &dyn Draw, frame: Frame, name: &str, class: &str) -> String {
    let (inside, height) = drawing.draw(frame);
    format!(
        "<svg class=\"plot {class}\" viewBox=\"0 0 {} {height:.0}\" role=\"img\" aria-label=\"{}\">{inside}</svg>",
        frame.width,
        escape(name)
    )
}

/// A file of its own, with a title, in the given style.
#[must_use]
pub fn file(drawing: &dyn Draw, title: &str, css: &str) -> String {
    let (inside, height) = drawing.draw(WIDE);
    let (width, height) = (WIDE.width + 32.0, height + 60.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{width}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width} {height:.0}\"><style>{css}</style>\
         <rect class=\"ground\" width=\"{width}\" height=\"{height:.0}\"/>\
         <text class=\"title\" x=\"24\" y=\"30\">{}</text>\
         <g transform=\"translate(16,46)\">{inside}</g></svg>\n",
        escape(title)
    )
}

/// Appends; writing into a string does not fail.
pub fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// About how wide a text is, in pixels.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    let wide = |c: char| match c {
        'i' | 'l' | 'j' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | 't' | 'f' | 'r' => 4.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.0,
        c if c.is_uppercase() => 8.8,
        _ => 7.4,
    };
    text.chars().map(wide).sum()
}

/// As much of a text as fits.
#[must_use]
pub fn shorten(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if text_width(&out) + 12.0 > width {
            break;
        }
        out.push(c);
    }
    out.trim_end().to_owned() + "…"
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.enumerate() {
        put(&mut out, format_args!("{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' }));
    }
    out
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}
