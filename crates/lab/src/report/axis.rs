//! Scales: from values to pixels, and where the ticks go.

use crate::fit::text::number;

/// What the values along an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Clients, cores, threads.
    Count,
    /// Things a second, in thousands and millions.
    Rate,
    /// Microseconds, shown as µs, ms or s.
    Microseconds,
    /// How many times another.
    Times,
    /// Seconds since a beginning.
    Seconds,
}

impl Measure {
    /// The value as text.
    #[must_use]
    pub fn show(self, x: f64) -> String {
        match self {
            Measure::Count | Measure::Seconds => number(x),
            Measure::Rate => scaled(x, &[(1e9, "G"), (1e6, "M"), (1e3, "k")], ""),
            Measure::Microseconds => scaled(x, &[(1e6, "s"), (1e3, "ms"), (1.0, "µs")], "ns"),
            Measure::Times => format!("{}×", number(x)),
        }
    }
}

fn scaled(x: f64, units: &[(f64, &str)], below: &str) -> String {
    let sign = if x < 0.0 { "-" } else { "" };
    let found = units.iter().find(|(size, _)| x.abs() >= *size * 0.999_95);
    let (value, unit) = match found {
        Some((size, unit)) => (x.abs() / size, *unit),
        None if below == "ns" && x != 0.0 => (x.abs() * 1e3, below),
        None if below.is_empty() => (x.abs(), ""),
        None => return "0".to_owned(),
    };
    let text = three(value);
    if unit.is_empty() { format!("{sign}{text}") } else { format!("{sign}{text}\u{a0}{unit}") }
}

/// Three significant digits.
fn three(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let places = (2.0 - x.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{x:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub label: String,
    /// What its values are.
    pub measure: Measure,
    /// Whether equal ratios are equally far apart.
    pub log: bool,
}

/// An axis laid out over pixels.
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
    /// Values and their texts.
    pub ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Lays `axis` out for values from `low` to `high` over the pixels `from` to `to`, with ticks at
    /// least `apart` pixels from each other, at `wanted` values where these are given.
    ///
    /// A linear vertical axis begins at nought.
    #[must_use]
    pub fn new(
        axis: &Axis,
        (low, high): (f64, f64),
        (from, to): (f64, f64),
        apart: f64,
        wanted: &[f64],
    ) -> Scale {
        let log = axis.log && low > 0.0;
        let vertical = to < from;
        let mut scale = Scale { low, high, log, from, to, ticks: Vec::new() };
        if log && high <= low {
            (scale.low, scale.high) = (low / 1.5, high * 1.5);
        } else if !log && vertical {
            scale.low = low.min(0.0);
            scale.high = if high > scale.low { high } else { scale.low + 1.0 };
        } else if high <= low {
            (scale.low, scale.high) = (low - 0.5, high + 0.5);
        }
        let room = ((to - from).abs() / apart).max(1.0);
        let values = match (wanted.is_empty(), log) {
            (false, _) => scale.spread(wanted, apart),
            (true, true) => scale.log_ticks(room),
            (true, false) => scale.linear_ticks(room, vertical),
        };
        scale.ticks = values.into_iter().map(|v| (v, axis.measure.show(v))).collect();
        scale
    }

    /// The pixel of a value; values outside lie outside.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(1e-300) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// The pixel of a value, kept inside.
    #[must_use]
    pub fn inside(&self, value: f64) -> f64 {
        let (a, b) = if self.from < self.to { (self.from, self.to) } else { (self.to, self.from) };
        let at = self.at(value);
        if at.is_nan() { a } else { at.clamp(a, b) }
    }

    /// Those of the wanted values that stand far enough from each other, the last one among them.
    fn spread(&self, wanted: &[f64], apart: f64) -> Vec<f64> {
        let mut values: Vec<f64> = wanted.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let mut out: Vec<f64> = Vec::new();
        for value in values.into_iter().rev() {
            if out.last().is_none_or(|last| (self.at(*last) - self.at(value)).abs() >= apart) {
                out.push(value);
            }
        }
        out.reverse();
        out
    }

    fn log_ticks(&mut self, room: f64) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match () {
            () if decades * 3.0 <= room => &[1.0, 2.0, 5.0],
            () if decades * 2.0 <= room => &[1.0, 3.0],
            () => &[1.0],
        };
        let every = (decades / room).ceil().max(1.0) as i32;
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all: Vec<f64> = (first..=last)
            .filter(|e| (e - first) % every == 0)
            .flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)))
            .collect();
        // Begin and end at ticks where that costs little room.
        let near = 10f64.powf(0.12 * decades.max(0.5));
        if let Some(below) = all.iter().rfind(|v| **v <= self.low * 1.0001)
            && self.low / below <= near
        {
            self.low = *below;
        }
        if let Some(above) = all.iter().find(|v| **v >= self.high * 0.9999)
            && above / self.high <= near
        {
            self.high = *above;
        }
        let within = |v: &f64| *v >= self.low * 0.9999 && *v <= self.high * 1.0001;
        all.into_iter().filter(within).collect()
    }

    fn linear_ticks(&mut self, room: f64, widen: bool) -> Vec<f64> {
        let rough = (self.high - self.low) / room.clamp(1.0, 6.0);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|s| s * power)
            .find(|s| *s >= rough * 0.999)
            .unwrap_or(10.0 * power);
        if widen {
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(log: bool, low: f64, high: f64, wanted: &[f64]) -> Vec<String> {
        let axis = Axis { label: String::new(), measure: Measure::Rate, log };
        let scale = Scale::new(&axis, (low, high), (300.0, 0.0), 40.0, wanted);
        scale.ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            scale(false, 900.0, 9_100.0, &[]),
            ["0", "2\u{a0}k", "4\u{a0}k", "6\u{a0}k", "8\u{a0}k", "10\u{a0}k"]
        );
        assert_eq!(
            scale(true, 100.0, 100_000.0, &[]),
            ["100", "300", "1\u{a0}k", "3\u{a0}k", "10\u{a0}k", "30\u{a0}k", "100\u{a0}k"]
        );
    }

    #[test]
    fn wanted_ticks_keep_their_distance() {
        assert_eq!(
            scale(true, 1.0, 1000.0, &[1.0, 2.0, 10.0, 100.0, 1000.0]),
            ["2", "10", "100", "1\u{a0}k"]
        );
    }

    #[test]
    fn latencies_have_units() {
        let show = |x| Measure::Microseconds.show(x);
        let texts = [show(0.25), show(40.0), show(1500.0), show(2e6), show(0.0)];
        assert_eq!(texts, ["250\u{a0}ns", "40\u{a0}µs", "1.5\u{a0}ms", "2\u{a0}s", "0"]);
    }
}
