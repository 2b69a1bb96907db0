//! Warnings about conclusions that the data can't carry.

use serde::Serialize;

use super::analysis::{Fit, PREDICTED};
use super::interval::Quantity;
use super::series::{Series, Unit};
use super::text::{number, percent, probability};

/// A sentence with a name that programs can test for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// `few-counts`, `clients`, `few-cores`, `knee-outside`, …
    pub kind: &'static str,
    /// The sentence.
    pub text: String,
}

/// Counts below which three parameters are hardly more than drawn through the points.
const ENOUGH_COUNTS: usize = 6;
/// How far beyond the last N a prediction is still called one.
const REACH: f64 = 4.0;
/// R² below which a law explains less than it leaves.
const HALF: f64 = 0.5;
/// Level of the tests of residuals.
const LEVEL: f64 = 0.05;

/// All warnings for one curve.
#[must_use]
pub fn all(series: &Series, fits: &[Fit], chosen: Option<usize>) -> Vec<Warning> {
    let mut out = Vec::new();
    let mut say = |kind, text| out.push(Warning { kind, text });
    counts(series, &mut say);
    machine(series, &mut say);
    if let Some(best) = chosen.and_then(|i| fits.get(i)) {
        for fit in fits {
            if let Some(why) = fit.meaningless {
                let name = fit.model.name();
                say("meaningless", format!("The parameters of {name} mean nothing: {why}."));
            }
        }
        model(series, fits, best, &mut say);
        residuals(best, &mut say);
        reach(series, best, &mut say);
    } else {
        say("no-fit", "No model can be fitted: it takes at least one count of clients or cores with a throughput above nought.".into());
    }
    out
}

fn counts(series: &Series, say: &mut impl FnMut(&'static str, String)) {
    let count = series.observations.len();
    if count < ENOUGH_COUNTS {
        say(
            "few-counts",
            format!(
                "Only {count} different {}: too few to tell the models apart or to trust their \
                 parameters; measure at least {ENOUGH_COUNTS}.",
                if count == 1 { "N" } else { "values of N" }
            ),
        );
    }
}

fn machine(series: &Series, say: &mut impl FnMut(&'static str, String)) {
    if series.simulated {
        say(
            "simulated",
            "The points are a model's output, not measurements: the intervals say how well the law \
             describes the simulator, not how sure the result is."
                .into(),
        );
    }
    if series.unit == Unit::Cores {
        return;
    }
    let last = series.observations.last().map_or(0.0, |o| o.n);
    let machine = match series.cores {
        Some(1) => ", and the machine stayed at 1 core".to_owned(),
        Some(cores) => format!(", and the machine stayed at {cores} cores"),
        None => String::new(),
    };
    say(
        "clients",
        format!(
            "N counts clients{machine}: a and b say how the server bears more connections, and the \
             predictions are for that many clients. How it would use that many cores only a sweep \
             over cores could tell."
        ),
    );
    if let Some(cores @ 1..=2) = series.cores
        && last > f64::from(cores)
    {
        say(
            "few-cores",
            format!(
                "With {cores} core{} there is next to nothing that could run at once: most of the \
                 serial part found here is clients waiting for a processor, not for a lock.",
                if cores == 1 { "" } else { "s" }
            ),
        );
    }
}

fn model(series: &Series, fits: &[Fit], best: &Fit, say: &mut impl FnMut(&'static str, String)) {
    if best.degrees == 0.0 {
        say(
            "no-interval",
            format!(
                "{} has as many parameters as there are points: it passes through all of them, and \
                 nothing is left to say how sure it is.",
                best.model.name()
            ),
        );
    }
    if best.aicc.is_none() {
        say(
            "no-criterion",
            format!("Too few points for Akaike's criterion to speak of {}.", best.model.name()),
        );
    } else if let Some(other) = fits.iter().find(|f| f.weight > best.weight) {
        say(
            "close-model",
            format!(
                "Akaike's criterion, which is strict with few points, prefers {} to {} (weight {} \
                 against {}).",
                other.model.name(),
                best.model.name(),
                percent(other.weight.unwrap_or(0.0)),
                percent(best.weight.unwrap_or(0.0)),
            ),
        );
    }
    if best.r_squared < HALF {
        let share = if best.r_squared < 0.0 {
            "is worse than a flat line".to_owned()
        } else {
            format!("explains only {} of the differences", percent(best.r_squared))
        };
        say(
            "weak-law",
            format!(
                "{} {share}: the points scatter too much, or hardly depend on N.",
                best.model.name()
            ),
        );
    }
    parameter("serial part a", &best.serial, percent, say);
    parameter("coherency cost b", &best.coherency, number, say);
    let last = series.observations.last().map_or(0.0, |o| o.n);
    if let Some(knee) = &best.knee {
        if knee.estimate > last {
            say(
                "knee-outside",
                format!(
                    "Throughput still grows at the largest N ({}): the knee was not reached, it is \
                     extrapolated.",
                    number(last)
                ),
            );
        }
    } else {
        let top = series.observations.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput));
        if top.is_some_and(|o| o.n >= last) {
            say(
                "no-saturation",
                format!(
                    "Throughput still grows at the largest N ({}): these data show no saturation, \
                     so they can't say where it lies.",
                    number(last)
                ),
            );
        }
    }
}

fn parameter(
    name: &str,
    value: &Option<Quantity>,
    show: impl Fn(f64) -> String,
    say: &mut impl FnMut(&'static str, String),
) {
    let Some(q) = value.filter(Quantity::is_known) else { return };
    if q.estimate == 0.0 {
        say(
            "at-bound",
            if q.high.is_finite() {
                format!(
                    "The {name} is held at its bound 0: the data show none, and none larger than {}.",
                    show(q.high)
                )
            } else {
                format!(
                    "The {name} is held at its bound 0, yet no value is too large for the data."
                )
            },
        );
    } else if q.high - q.low > q.estimate {
        say(
            "wide",
            format!(
                "The interval of the {name}, {} to {}, is wider than the estimate {} itself{}.",
                show(q.low),
                show(q.high),
                show(q.estimate),
                if q.low == 0.0 { ", and 0 is in it" } else { "" }
            ),
        );
    }
}

fn residuals(best: &Fit, say: &mut impl FnMut(&'static str, String)) {
    if let Some(p) = best.misfit.filter(|p| *p < LEVEL) {
        say(
            "misfit",
            format!(
                "The points lie further from the {} curve than their repetitions scatter ({}): \
                 the law is not the whole story.",
                best.model.name(),
                probability(p)
            ),
        );
    }
    if let Some(p) = runs(&best.residuals).filter(|p| *p < LEVEL) {
        say(
            "structure",
            format!(
                "The residuals lie above and below the curve in long runs ({}): they have a \
                 structure that the law doesn't have.",
                probability(p)
            ),
        );
    }
}

fn reach(series: &Series, best: &Fit, say: &mut impl FnMut(&'static str, String)) {
    let last = series.observations.last().map_or(0.0, |o| o.n);
    let beyond: Vec<String> =
        PREDICTED.iter().filter(|n| **n > REACH * last).map(|n| number(*n)).collect();
    if !beyond.is_empty() {
        say(
            "extrapolation",
            format!(
                "The throughput at {} lies more than {REACH} times beyond the largest N measured \
                 ({}): it is arithmetic, not a prediction.",
                beyond.join(", "),
                number(last)
            ),
        );
    }
    let wide: Vec<String> = best
        .predictions
        .iter()
        .filter(|(_, q)| q.is_known() && q.high - q.low > q.estimate)
        .map(|(n, _)| number(*n))
        .collect();
    if !wide.is_empty() {
        let at = wide.join(", ");
        say(
            "wide-prediction",
            format!("At {at} the interval of the throughput is wider than the throughput itself."),
        );
    }
}

/// Probability of at most as few runs of equal sign, if signs came at random; none below 8 residuals.
///
/// Source: A. Wald, J. Wolfowitz, *On a test whether two samples are from the same population*, 1940.
fn runs(residuals: &[f64]) -> Option<f64> {
    let signs: Vec<bool> = residuals.iter().filter(|r| **r != 0.0).map(|r| *r > 0.0).collect();
    let above = signs.iter().filter(|s| **s).count() as u32;
    let below = signs.len() as u32 - above;
    if signs.len() < 8 || above == 0 || below == 0 {
        return None;
    }
    let seen = 1 + signs.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32;
    let ways = |runs: u32| {
        let half = runs / 2;
        if runs.is_multiple_of(2) {
            2.0 * choose(above - 1, half - 1) * choose(below - 1, half - 1)
        } else {
            choose(above - 1, half) * choose(below - 1, half - 1)
                + choose(above - 1, half - 1) * choose(below - 1, half)
        }
    };
    let sum: f64 = (2..=seen).map(ways).sum();
    Some(sum / choose(above + below, above))
}

fn choose(n: u32, k: u32) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_exactly() {
        // Four above, then four below: 2 runs of 8 signs, 2 of the 70 orders have as few.
        let p = runs(&[1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]).unwrap();
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        let all = runs(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap();
        assert!((all - 1.0).abs() < 1e-12, "{all}");
        assert!(runs(&[1.0; 5]).is_none());
    }
}
