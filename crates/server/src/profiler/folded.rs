//! Stacks with weights, in the form that flame graph tools share: a line for each stack, its frames
//! from the root on, separated by semicolons, then a blank and the weight.

use std::collections::BTreeMap;

use base::{Error, Result};
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, MultiPalette, Palette};
use inferno::flamegraph::{self, Options};

use super::Kind;

/// Longest frame that is kept.
const FRAME_CHARS_MAX: usize = 160;

/// See the module's documentation. Weights are microseconds.
#[derive(Debug, Default)]
pub struct Folded {
    stacks: BTreeMap<String, u64>,
}

impl Folded {
    /// Adds to a stack, whose frames come from the root on.
    pub fn add<S: AsRef<str>>(&mut self, frames: impl IntoIterator<Item = S>, weight_us: u64) {
        let mut stack = String::new();
        for frame in frames {
            if !stack.is_empty() {
                stack.push(';');
            }
            // A semicolon would begin another frame.
            let clean = frame.as_ref().chars().take(FRAME_CHARS_MAX);
            stack.extend(clean.map(|c| match c {
                ';' => ',',
                c if c.is_control() => ' ',
                c => c,
            }));
        }
        *self.stacks.entry(stack).or_default() += weight_us;
    }

    /// A line for each stack.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.stacks.iter().filter(|s| *s.1 > 0).map(|(stack, weight)| format!("{stack} {weight}"))
    }

    /// The picture, with its script: click to zoom, search.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn svg(&self, kind: Kind, seconds: f64) -> Result<String> {
        let mut options = Options::default();
        let (title, colors) = match kind {
            Kind::Cpu => ("On CPU", Palette::Multi(MultiPalette::Rust)),
            Kind::Waits | Kind::SessionWaits => ("Waits", Palette::Basic(BasicPalette::Orange)),
        };
        title.clone_into(&mut options.title);
        options.subtitle = Some(format!("{seconds} s"));
        options.colors = colors;
        options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
        options.hash = true;
        "µs".clone_into(&mut options.count_name);
        let mut lines: Vec<String> = self.lines().collect();
        if lines.is_empty() {
            // Without any stack there would be no picture.
            let what = if kind == Kind::Cpu { "nothing ran" } else { "nobody waited" };
            lines.push(format!("{what} 1"));
        }
        let mut svg = Vec::new();
        let result =
            flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg);
        let failed = |e: &dyn std::fmt::Display| Error::internal(format!("flame graph: {e}"));
        result.map_err(|e| failed(&e))?;
        String::from_utf8(svg).map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stay_apart_and_weights_add_up() {
        let mut folded = Folded::default();
        folded.add(["a", "[u8; 4]\n"], 3);
        folded.add(["a", "[u8, 4] "], 4);
        folded.add(["b"], 0);
        assert_eq!(folded.lines().collect::<Vec<_>>(), ["a;[u8, 4]  7"]);
    }

    #[test]
    fn what_looks_like_markup_stays_text() {
        let mut folded = Folded::default();
        folded.add(["SELECT '<script>alert(1)</script>' & \"x\""], 3);
        let svg = folded.svg(Kind::Waits, 1.0).unwrap();
        assert!(svg.contains("<svg") && svg.contains("&lt;script&gt;alert"), "{svg}");
        assert!(!svg.contains("<script>alert"));
        assert!(Folded::default().svg(Kind::Cpu, 1.0).unwrap().contains("nothing ran"));
    }
}
