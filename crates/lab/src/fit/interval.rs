//! Confidence intervals by profile: a value is inside as long as the best fit that is forced to have
//! it is not much worse than the best of all.
//!
//! ```text
//! squares │ ╲               ╱
//!         │  ╲             ╱        inside: squares(q) <= least + t² · variance,
//!  limit  │───╳───────────╳───      t the 97.5 % point of Student's distribution
//!         │    ╲_       _╱
//!  least  │      ‾‾‾‾‾‾‾            (for a straight line in its coefficients
//!         └────low──best──high──q    this is the textbook interval exactly)
//! ```
//! Unlike an interval of estimate ± t · standard error it needs no straight line: it is lopsided where
//! the data are, stays within the bounds, and is open above (infinite) where no value is too large.
//!
//! Source: D. M. Bates, D. G. Watts, *Nonlinear Regression Analysis and Its Applications*, 1988,
//! chapter 6.

use serde::Serialize;

use super::solve::{Coefficients, Equation, Row, Solution, solve, terms, throughput};

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// The best value.
    pub estimate: f64,
    /// Lower end; NaN when there are too few data for an interval.
    pub low: f64,
    /// Upper end; infinite when the data set no upper end (JSON has no such number: null).
    pub high: f64,
}

impl Quantity {
    /// `1 / self`, ends exchanged.
    #[must_use]
    pub fn inverse(self) -> Quantity {
        let Quantity { estimate, low, high } = self;
        Quantity { estimate: 1.0 / estimate, low: 1.0 / high, high: 1.0 / low }
    }

    /// The same in another unit.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Quantity {
        Quantity { estimate: f(self.estimate), low: f(self.low), high: f(self.high) }
    }

    /// Whether there is an interval.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.low.is_nan()
    }
}

/// A fitted curve and how far from its least squares one may go.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The data.
    pub rows: Vec<Row>,
    /// Coefficients of the model.
    pub allowed: [bool; 3],
    /// The fit.
    pub best: Solution,
    /// Squares at the ends of intervals; `None` when there are too few data for intervals.
    pub limit: Option<f64>,
}

impl Profile {
    /// One term's coefficient.
    #[must_use]
    pub fn coefficient(&self, i: usize) -> Quantity {
        let mut v = [0.0; 3];
        v[i] = 1.0;
        self.interval(self.best.c[i], f64::INFINITY, |k| Equation { v, k })
    }

    /// One term's coefficient in relation to the first's.
    #[must_use]
    pub fn ratio(&self, i: usize) -> Quantity {
        let c = &self.best.c;
        self.interval(c[i] / c[0], f64::INFINITY, |q| {
            let mut v = [-q, 0.0, 0.0];
            v[i] = 1.0;
            Equation { v, k: 0.0 }
        })
    }

    /// The curve's throughput at `n`: where its mean lies, not where one more measurement would.
    #[must_use]
    pub fn throughput(&self, n: f64) -> Quantity {
        let v = terms(n).map(|z| z / n);
        self.interval(1.0 / throughput(&self.best.c, n), f64::INFINITY, |k| Equation { v, k })
            .inverse()
    }

    /// N of the greatest throughput, `sqrt((1-a)/b)` and at least 1; infinite without coherency cost.
    #[must_use]
    pub fn knee(&self) -> Quantity {
        let c = &self.best.c;
        // By 1/N², which is 0 for a knee in the infinite.
        let estimate = if c[0] - c[1] > c[2] { c[2] / (c[0] - c[1]) } else { 1.0 };
        self.interval(estimate, 1.0, |q| Equation { v: [q, -q, -1.0], k: 0.0 })
            .inverse()
            .map(f64::sqrt)
    }

    /// The greatest throughput. Its ends are the highest points of the ends of [`Self::throughput`]:
    /// exact above, somewhat too wide below.
    #[must_use]
    pub fn peak(&self, knee: &Quantity) -> Quantity {
        if !knee.is_known() {
            let estimate = throughput(&self.best.c, knee.estimate.min(FAR));
            return Quantity { estimate, low: f64::NAN, high: f64::NAN };
        }
        let largest = self.rows.iter().map(|r| r.x).fold(0.0, f64::max);
        let estimate = throughput(&self.best.c, knee.estimate.min(FAR));
        let far = |n: f64| if n.is_finite() { n } else { FAR };
        let (first, last) = (knee.low, far(knee.high));
        let (mut low, mut high) = (f64::NAN, f64::NAN);
        for n in (0..=PEAK_STEPS)
            .map(|i| first * (last / first).powf(f64::from(i) / f64::from(PEAK_STEPS)))
        {
            let here = self.throughput(n);
            (low, high) = (low.max(here.low), high.max(here.high));
        }
        let open = |x: f64| if x > 1e5 * largest { f64::INFINITY } else { x };
        Quantity { estimate: open(estimate), low, high: open(high) }
    }

    /// Ends of the values that `equation` may force without leaving the limit.
    ///
    /// `estimate` is within, nothing below 0 or above `ceiling` is asked.
    fn interval(
        &self,
        estimate: f64,
        ceiling: f64,
        equation: impl Fn(f64) -> Equation,
    ) -> Quantity {
        let Some(limit) = self.limit else {
            return Quantity { estimate, low: f64::NAN, high: f64::NAN };
        };
        let over = |q: f64| match solve(&self.rows, self.allowed, Some(&equation(q))) {
            Some(found) => found.squares - limit,
            None => f64::INFINITY,
        };
        let low = if estimate == 0.0 || over(0.0) <= 0.0 {
            0.0
        } else {
            crossing(&over, estimate, 0.0, self.best.squares - limit)
        };
        let (mut inside, mut step) = (estimate, estimate / 64.0 + 1e-12);
        let high = loop {
            let next = (inside + step).min(ceiling);
            if over(next) > 0.0 {
                break crossing(&over, inside, next, over(inside).min(-f64::MIN_POSITIVE));
            }
            inside = next;
            if inside >= ceiling {
                break ceiling;
            }
            step *= 3.0;
            if step > 1e9 * (1.0 + estimate) {
                break f64::INFINITY;
            }
        };
        Quantity { estimate, low, high }
    }
}

/// An N so far out that only the limit of a curve is left.
const FAR: f64 = 1e9;
/// Steps in which the knee's interval is searched for the highest ends.
const PEAK_STEPS: u32 = 12;

/// Where `over` changes its sign between `inside` and `outside`: false position with halving of the
/// side that stays (Illinois), and bisection where there is no finite value.
fn crossing(over: &impl Fn(f64) -> f64, inside: f64, outside: f64, at_inside: f64) -> f64 {
    let (mut a, mut b) = (inside, outside);
    let (mut fa, mut fb) = (at_inside, over(outside));
    for _ in 0..100 {
        if (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) {
            break;
        }
        let straight = (a * fb - b * fa) / (fb - fa);
        let usable = fb.is_finite() && straight.is_finite() && straight != a && straight != b;
        let next = if usable { straight } else { a.midpoint(b) };
        let value = over(next);
        if value <= 0.0 {
            (a, fa) = (next, value);
            fb /= 2.0;
        } else {
            (b, fb) = (next, value);
            fa /= 2.0;
        }
        if value.abs() <= 1e-9 * at_inside.abs() {
            break;
        }
    }
    a
}

/// Standard errors of scale, a and b, by the curve's slope at the estimate: what other programs
/// print. NaN for what the fit holds at zero.
#[must_use]
pub fn standard_errors(rows: &[Row], c: &Coefficients, variance: f64) -> [f64; 3] {
    let Some(covariance) = super::solve::covariance(rows, c, variance) else {
        return [f64::NAN; 3];
    };
    let spread = |slope: Coefficients| {
        let mut sum = 0.0;
        for i in 0..3 {
            for j in 0..3 {
                sum += slope[i] * slope[j] * covariance[i][j];
            }
        }
        sum.sqrt()
    };
    let mut out = [f64::NAN; 3];
    out[0] = spread([-1.0 / (c[0] * c[0]), 0.0, 0.0]);
    for i in 1..3 {
        if c[i] > 0.0 {
            let mut slope = [-c[i] / (c[0] * c[0]), 0.0, 0.0];
            slope[i] = 1.0 / c[0];
            out[i] = spread(slope);
        }
    }
    out
}
