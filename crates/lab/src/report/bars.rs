//! Stacked bars that lie: shares of a whole, row by row.

use super::chart::{Draw, Frame, legend, put, shorten, text_width};
use super::theme::escape;

/// What a part stands for; the same in all rows.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Class that fills it.
    pub class: String,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Row {
    /// At its left.
    pub label: String,
    /// Sizes in the order of the keys; they are drawn in proportion to their sum.
    pub parts: Vec<f64>,
}

/// Bars under one heading.
#[derive(Clone, Debug)]
pub struct Group {
    /// The heading.
    pub name: String,
    /// Its bars.
    pub rows: Vec<Row>,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Parts.
    pub keys: Vec<Key>,
    /// Bars.
    pub groups: Vec<Group>,
}

const BAR: f64 = 20.0;
const STEP: f64 = 26.0;

impl Draw for Bars {
    fn draw(&self, frame: Frame) -> (String, f64) {
        let mut out = String::new();
        let entry = |k: &Key| {
            let sample = format!(
                "<rect class=\"{}\" x=\"0\" y=\"-6\" width=\"14\" height=\"12\" rx=\"2\"/>",
                k.class
            );
            (k.name.clone(), sample)
        };
        let entries: Vec<_> = self.keys.iter().map(entry).collect();
        let mut y = 4.0 + legend(&entries, frame.width, &mut out);
        let labels = self.groups.iter().flat_map(|g| &g.rows).map(|r| text_width(&r.label));
        let left = labels.fold(0.0, f64::max).min(frame.width * 0.35) + 18.0;
        for group in &self.groups {
            let name = escape(&shorten(&group.name, frame.width - 20.0));
            put(
                &mut out,
                format_args!("<text class=\"name\" x=\"8\" y=\"{:.1}\">{name}</text>", y + 16.0),
            );
            y += 26.0;
            for row in &group.rows {
                self.row(&mut out, row, left, y, frame);
                y += STEP;
            }
            y += 10.0;
        }
        (out, y)
    }
}

impl Bars {
    fn row(&self, out: &mut String, row: &Row, left: f64, y: f64, frame: Frame) {
        put(
            out,
            format_args!(
                "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 15.0,
                escape(&row.label)
            ),
        );
        let whole: f64 = row.parts.iter().sum();
        let width = frame.width - left - 10.0;
        let mut x = left;
        for (part, key) in row.parts.iter().zip(&self.keys) {
            let share = if whole > 0.0 { part / whole } else { 0.0 };
            let wide = share * width;
            if wide < 0.05 {
                continue;
            }
            put(
                out,
                format_args!(
                    "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\">\
                     <title>{}, {}: {:.1} %</title></rect>",
                    key.class,
                    (wide - 0.7).max(0.3),
                    escape(&row.label),
                    escape(&key.name),
                    100.0 * share
                ),
            );
            x += wide;
        }
    }
}
