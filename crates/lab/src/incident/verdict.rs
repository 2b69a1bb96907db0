//! The verdict on the seconds of all parts.

use super::sample::Values;

/// The longest that a latch may be waited for with the default limit, in milliseconds.
const LATCH_WAIT_MOST: f64 = 50.0;
/// What the default limit may cost against no limit.
const LOSS_MOST: f64 = 0.05;

/// One part's seconds.
pub struct Part {
    /// Its name.
    pub name: String,
    /// `lwlock_shared_limit`.
    pub limit: i64,
    /// Whether it ran with the historical settings.
    pub historical: bool,
    /// One after the other.
    pub seconds: Vec<Values>,
}

/// One claim, whether it held, and the figures.
pub struct Verdict {
    /// It held.
    pub holds: bool,
    /// In words.
    pub text: String,
}

impl Part {
    /// A value's course.
    fn course(&self, name: &str) -> Vec<f64> {
        self.seconds.iter().map(|s| s.get(name).copied().unwrap_or(0.0)).collect()
    }

    fn last(&self, name: &str) -> f64 {
        self.course(name).last().copied().unwrap_or(0.0)
    }

    fn most(&self, name: &str) -> f64 {
        self.course(name).into_iter().fold(0.0, f64::max)
    }

    /// The median over the seconds, which a disturbance of the machine leaves as it is.
    fn median(&self, name: &str) -> f64 {
        let mut course = self.course(name);
        course.sort_by(f64::total_cmp);
        course.get(course.len() / 2).copied().unwrap_or(0.0)
    }
}

/// The verdicts: on starvation without a limit, on the default limit, on today's defaults.
pub fn verdicts(parts: &[Part], default: i64) -> Vec<Verdict> {
    let historical = |limit| parts.iter().find(|p| p.historical && p.limit == limit);
    let mut verdicts = Vec::new();
    if let Some(part) = historical(-1) {
        verdicts.push(starves(part));
    }
    if let Some(part) = historical(default) {
        verdicts.push(bounded(part));
        verdicts.extend(historical(-1).map(|without| costs_little(part, without)));
    }
    verdicts.extend(parts.iter().filter(|p| !p.historical).map(bounded));
    verdicts
}

/// The longest INSERT gets longer and longer.
fn starves(part: &Part) -> Verdict {
    let course = part.course("longest_insert_ms");
    let (half, end) =
        (course.get(course.len() / 2).copied().unwrap_or(0.0), part.last("longest_insert_ms"));
    let run = course.len() as f64 * 1000.0;
    Verdict {
        holds: end > half * 1.3 && end > run * 0.5,
        text: format!(
            "{}: the longest wait grows with the run: {:.1} s at half of it, {:.1} s at the end of {:.0} s \
             (longest latch wait {:.1} s)",
            part.name,
            half / 1000.0,
            end / 1000.0,
            run / 1000.0,
            part.most("longest_latch_wait_ms") / 1000.0
        ),
    }
}

/// No latch is waited for as long as that.
fn bounded(part: &Part) -> Verdict {
    let longest = part.most("longest_latch_wait_ms");
    Verdict {
        holds: longest < LATCH_WAIT_MOST,
        text: format!(
            "{}: the longest latch wait is {longest:.1} ms (less than {LATCH_WAIT_MOST} wanted), the \
             longest INSERT {:.0} ms",
            part.name,
            part.last("longest_insert_ms")
        ),
    }
}

/// The throughput is about that without a limit.
fn costs_little(part: &Part, without: &Part) -> Verdict {
    let (with, without) = (part.median("transactions"), without.median("transactions"));
    let loss = 1.0 - with / without.max(1e-9);
    Verdict {
        holds: loss < LOSS_MOST,
        text: format!(
            "{}: {with:.0} transactions a second, {without:.0} without a limit: a loss of {:.1} % (less \
             than {} wanted)",
            part.name,
            loss * 100.0,
            LOSS_MOST * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(limit: i64, seconds: impl IntoIterator<Item = (f64, f64, f64)>) -> Part {
        let values = |(insert, latch, tps): (f64, f64, f64)| {
            let named = [
                ("longest_insert_ms", insert),
                ("longest_latch_wait_ms", latch),
                ("transactions", tps),
            ];
            named.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
        };
        let seconds = seconds.into_iter().map(values).collect();
        Part { name: format!("limit {limit}"), limit, historical: true, seconds }
    }

    fn outcome(parts: &[Part]) -> Vec<bool> {
        verdicts(parts, 16).iter().map(|v| v.holds).collect()
    }

    #[test]
    fn the_claims_hold_only_on_such_figures() {
        let starving = || part(-1, (1..=20).map(|s| (f64::from(s) * 990.0, 900.0, 1000.0)));
        let good = part(16, (0..20).map(|_| (80.0, 7.0, 980.0)));
        assert_eq!(outcome(&[starving(), good]), [true, true, true]);
        let slow = part(16, (0..20).map(|_| (80.0, 51.0, 940.0)));
        assert_eq!(outcome(&[starving(), slow]), [true, false, false]);
        let fine = part(-1, (0..20).map(|_| (900.0, 900.0, 1000.0)));
        assert_eq!(outcome(&[fine]), [false]);
    }
}
