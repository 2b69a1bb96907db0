//! One curve, three models: which one the data speak for, and what they can't say.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::interval::{Profile, Quantity, standard_errors};
use super::series::{Scatter, Series};
use super::solve::{Row, Solution, solve, throughput};
use super::warning::{self, Warning};

/// A law of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Throughput in proportion to N.
    Linear,
    /// `B(N) = N / (1 + a(N-1))`.
    Amdahl,
    /// `B(N) = N / (1 + a(N-1) + bN(N-1))`.
    Usl,
}

impl Model {
    /// From the simplest to the richest.
    pub const ALL: [Model; 3] = [Model::Linear, Model::Amdahl, Model::Usl];

    /// As the field calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Model::Linear => "linear",
            Model::Amdahl => "Amdahl",
            Model::Usl => "USL",
        }
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameters(self) -> usize {
        self as usize + 1
    }

    fn allowed(self) -> [bool; 3] {
        [true, self != Model::Linear, self == Model::Usl]
    }
}

/// N for which every fit says its throughput.
pub const PREDICTED: [f64; 4] = [64.0, 128.0, 256.0, 512.0];

/// One model fitted to one curve.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// Which.
    pub model: Model,
    /// Throughput of one client or core.
    pub scale: Quantity,
    /// Serial part a, from 0 to 1.
    pub serial: Option<Quantity>,
    /// Cost of agreement b.
    pub coherency: Option<Quantity>,
    /// Standard errors of scale, a and b by linearisation; NaN (JSON: null) where held at zero.
    pub standard_errors: [f64; 3],
    /// N of the greatest throughput.
    pub knee: Option<Quantity>,
    /// The greatest throughput; for Amdahl's law its limit `scale / a`.
    pub peak: Option<Quantity>,
    /// Measured less fitted throughput, by observation.
    pub residuals: Vec<f64>,
    /// Share of the (weighted) variance that the model explains.
    pub r_squared: f64,
    /// Akaike's criterion with the correction for few data; none with too few.
    pub aicc: Option<f64>,
    /// Its weight among the models.
    pub weight: Option<f64>,
    /// Degrees of freedom of the intervals.
    pub degrees: f64,
    /// Residual standard error: of one observation, or with repetitions in units of their own error.
    pub deviation: f64,
    /// Probability of residuals this large if the model held and only repetitions scattered.
    pub misfit: Option<f64>,
    /// (N, throughput) at [`PREDICTED`].
    pub predictions: Vec<(f64, Quantity)>,
    /// Why the parameters mean nothing, if they don't.
    pub meaningless: Option<&'static str>,
    /// For bands.
    #[serde(skip)]
    pub profile: Profile,
}

impl Fit {
    /// The curve at `n`.
    #[must_use]
    pub fn at(&self, n: f64) -> f64 {
        throughput(&self.profile.best.c, n)
    }
}

/// What `lab fit` knows of one curve.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// The data.
    pub series: Series,
    /// The models that could be fitted, simplest first.
    pub fits: Vec<Fit>,
    /// Index of the one that the data speak for.
    pub chosen: Option<usize>,
    /// What the data can't carry.
    pub warnings: Vec<Warning>,
}

impl Analysis {
    /// The fit that the data speak for.
    #[must_use]
    pub fn best(&self) -> Option<&Fit> {
        self.fits.get(self.chosen?)
    }
}

/// Fits all models to one curve.
#[must_use]
pub fn analyse(series: Series) -> Analysis {
    let (rows, scatter) = series.rows();
    let mut fits: Vec<Fit> =
        Model::ALL.into_iter().filter_map(|m| fit(m, &rows, scatter)).collect();
    let chosen = choose(&mut fits);
    let warnings = warning::all(&series, &fits, chosen);
    Analysis { series, fits, chosen, warnings }
}

/// Level of the test that decides whether the repetitions' scatter explains the residuals too.
const MISFIT: f64 = 0.05;

fn fit(model: Model, rows: &[Row], scatter: Option<Scatter>) -> Option<Fit> {
    let count = rows.len();
    let parameters = model.parameters();
    if count < parameters {
        return None;
    }
    // Throughputs of about one make all numbers in the solver about one.
    let unit = rows.iter().map(|r| r.x).fold(0.0, f64::max);
    let scaled = |r: &Row| Row { n: r.n, x: r.x / unit, weight: r.weight * unit * unit };
    let scaled: Vec<Row> = rows.iter().map(scaled).collect();
    let best = solve(&scaled, model.allowed(), None)?;
    if best.c[0] <= 0.0 {
        return None;
    }
    let residual_degrees = (count - parameters) as f64;
    let misfit = misfit(&best, residual_degrees, scatter);
    let (variance, degrees) = noise(&best, residual_degrees, scatter, misfit);
    let limit = (degrees > 0.0).then(|| {
        let t = student(degrees);
        best.squares + (t * t * variance).max(1e-24 * scaled.iter().map(|r| r.weight).sum::<f64>())
    });
    let errors = standard_errors(&scaled, &best.c, variance);
    let profile = Profile { rows: scaled, allowed: model.allowed(), best, limit };
    let knee = (model == Model::Usl).then(|| profile.knee());
    let peak = match (model, &knee) {
        (Model::Linear, _) => None,
        (Model::Amdahl, _) => Some(profile.coefficient(1).inverse()),
        (Model::Usl, knee) => knee.as_ref().map(|knee| profile.peak(knee)),
    };
    let back = |q: Quantity| q.map(|x| x * unit);
    // The profile goes on in the data's own unit.
    let profile = Profile { best: rescaled(best, unit), rows: rows.to_vec(), ..profile };
    let serial = (model != Model::Linear).then(|| profile.ratio(1));
    let r_squared = r_squared(rows, best.squares);
    Some(Fit {
        model,
        meaningless: meaningless(model, serial, r_squared, rows),
        scale: profile.coefficient(0).inverse(),
        serial,
        coherency: (model == Model::Usl).then(|| profile.ratio(2)),
        standard_errors: [errors[0] * unit, errors[1], errors[2]],
        knee,
        peak: peak.map(back),
        residuals: rows.iter().map(|r| r.x - throughput(&profile.best.c, r.n)).collect(),
        r_squared,
        aicc: aicc(count, parameters, best.squares),
        weight: None,
        degrees,
        deviation: variance.sqrt(),
        misfit,
        predictions: PREDICTED.map(|n| (n, profile.throughput(n))).to_vec(),
        profile,
    })
}

/// What can't be: a part that is larger than the whole, a law that knows less than the mean.
fn meaningless(
    model: Model,
    serial: Option<Quantity>,
    r_squared: f64,
    rows: &[Row],
) -> Option<&'static str> {
    let least = rows.iter().map(|r| r.n).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|r| r.n).fold(0.0, f64::max);
    if least == most {
        return Some("it has one N only, which says nothing about growth");
    }
    if serial.is_some_and(|a| a.estimate > 1.0) {
        return Some(
            "its serial part is more than the whole (100 %): throughput falls from the first N on, which a \
             serial part does not explain",
        );
    }
    // Throughput that does not depend on N has nothing to explain: there a serial part of all is right.
    if r_squared < 0.0 && model != Model::Linear {
        return Some("it lies further from the points than their mean does");
    }
    None
}

fn rescaled(best: Solution, unit: f64) -> Solution {
    Solution { c: best.c.map(|c| c / unit), squares: best.squares }
}

/// The test of the residuals against the repetitions' scatter.
fn misfit(best: &Solution, degrees: f64, scatter: Option<Scatter>) -> Option<f64> {
    let scatter = scatter?;
    if degrees == 0.0 {
        return None;
    }
    let ratio = best.squares / degrees / (scatter.squares / scatter.degrees);
    let f = FisherSnedecor::new(degrees, scatter.degrees).ok()?;
    Some(f.sf(ratio))
}

/// Variance of a row of weight one, and its degrees of freedom: residuals and repetitions together,
/// but the residuals alone where they are larger than the repetitions explain.
fn noise(
    best: &Solution,
    degrees: f64,
    scatter: Option<Scatter>,
    misfit: Option<f64>,
) -> (f64, f64) {
    let (mut squares, mut all) = (best.squares, degrees);
    if let Some(scatter) = scatter
        && misfit.is_none_or(|p| p > MISFIT)
    {
        squares += scatter.squares;
        all += scatter.degrees;
    }
    (if all > 0.0 { squares / all } else { f64::NAN }, all)
}

/// The 97.5 % point of Student's distribution.
fn student(degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

fn r_squared(rows: &[Row], squares: f64) -> f64 {
    let weights: f64 = rows.iter().map(|r| r.weight).sum();
    let mean = rows.iter().map(|r| r.weight * r.x).sum::<f64>() / weights;
    let total: f64 = rows.iter().map(|r| r.weight * (r.x - mean).powi(2)).sum();
    1.0 - squares / total
}

/// Akaike's criterion up to a constant, the variance counted as a parameter.
fn aicc(count: usize, parameters: usize, squares: f64) -> Option<f64> {
    let (n, k) = (count as f64, parameters as f64 + 1.0);
    let left = n - k - 1.0;
    (left > 0.0).then(|| n * (squares / n).ln() + 2.0 * k + 2.0 * k * (k + 1.0) / left)
}

/// Level of the test that decides whether a richer model is worth its parameters.
const RICHER: f64 = 0.05;

/// The richest model that explains significantly more than the simpler one chosen before it (F test
/// on the squares that it saves), or more at all if that one fails: if it is worse than a flat line,
/// or the repetitions don't explain its residuals. Akaike's weights are worked out beside it.
fn choose(fits: &mut [Fit]) -> Option<usize> {
    weigh(fits);
    let mut chosen = 0;
    for (i, fit) in fits.iter().enumerate().skip(1) {
        if fit.degrees == 0.0 {
            continue;
        }
        let saved = fits[chosen].profile.best.squares - fit.profile.best.squares;
        let more = (fit.model.parameters() - fits[chosen].model.parameters()) as f64;
        let ratio = saved / more / fit.deviation.powi(2);
        let p = FisherSnedecor::new(more, fit.degrees).map_or(1.0, |f| f.sf(ratio.max(0.0)));
        let fails = |f: &Fit| f.r_squared < 0.0 || f.misfit.is_some_and(|p| p < MISFIT);
        if p < RICHER || saved > 0.0 && fails(&fits[chosen]) {
            chosen = i;
        }
    }
    (!fits.is_empty()).then_some(chosen)
}

fn weigh(fits: &mut [Fit]) {
    let least = fits.iter().filter_map(|f| f.aicc).min_by(f64::total_cmp).unwrap_or(0.0);
    let likelihood = |a: f64| if a == least { 1.0 } else { (-(a - least) / 2.0).exp() };
    let sum: f64 = fits.iter().filter_map(|f| f.aicc).map(likelihood).sum();
    for fit in fits {
        fit.weight = fit.aicc.map(|a| likelihood(a) / sum);
    }
}
