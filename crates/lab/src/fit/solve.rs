//! Least squares for one curve with up to three coefficients that may not be negative.
//!
//! All three models say that one operation takes, seen from outside, `N / X(N)`, and that this time
//! is a sum of at most three terms:
//!
//! ```text
//! N / X(N) = c0 · 1  +  c1 · (N-1)  +  c2 · N(N-1)
//!            alone      queueing       agreement of every pair
//!
//! scale = 1 / c0     a = c1 / c0     b = c2 / c0        c0 > 0, c1 >= 0, c2 >= 0
//! ```
//! In the coefficients `c` everything that is asked of a fit (a parameter, the knee, the throughput
//! at one N) is one *linear* equation, so one solver gives the estimate and every profile: minimise
//! the weighted squares of `X - N/(c·z)` over `c >= 0` and, if wanted, `v·c = k`.
//!
//! Bounds are met exactly: each set of coefficients that may be held at zero (seven at most) is
//! solved without bounds by Levenberg and Marquardt's method, and the best of those solutions that
//! obey the bounds wins. A library for least squares would know neither bounds nor the equation.

/// Coefficients of the three terms.
pub type Coefficients = [f64; 3];

/// One measured throughput.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Clients or cores, 1 or more.
    pub n: f64,
    /// Throughput, above zero.
    pub x: f64,
    /// Inverse of its variance, or any number in proportion to it.
    pub weight: f64,
}

impl Row {
    /// The three terms at this N.
    fn terms(&self) -> Coefficients {
        terms(self.n)
    }
}

/// The three terms at `n`.
#[must_use]
pub fn terms(n: f64) -> Coefficients {
    [1.0, n - 1.0, n * (n - 1.0)]
}

/// Throughput at `n`.
#[must_use]
pub fn throughput(c: &Coefficients, n: f64) -> f64 {
    n / dot(c, &terms(n))
}

/// The equation `v·c = k`.
#[derive(Clone, Copy, Debug)]
pub struct Equation {
    /// Its left side.
    pub v: Coefficients,
    /// Its right side.
    pub k: f64,
}

/// What the solver found.
#[derive(Clone, Copy, Debug)]
pub struct Solution {
    /// The coefficients, none negative.
    pub c: Coefficients,
    /// Weighted sum of squared residuals.
    pub squares: f64,
}

/// Steps of one descent; a few are enough near a solution.
const STEPS: u32 = 80;

/// The best coefficients, of which only those in `allowed` may differ from zero; `None` when no
/// coefficients obey the equation with a finite throughput everywhere.
#[must_use]
pub fn solve(rows: &[Row], allowed: [bool; 3], equation: Option<&Equation>) -> Option<Solution> {
    let mut best: Option<Solution> = None;
    // The largest sets first: if the largest obeys the bounds, nothing is better.
    for set in [7u8, 6, 5, 3, 4, 2, 1] {
        let free = [set & 1 != 0, set & 2 != 0, set & 4 != 0];
        if (0..3).any(|i| free[i] && !allowed[i]) {
            continue;
        }
        let Some(plane) = Plane::new(free, equation) else { continue };
        let Some(start) = straight(rows, &plane) else { continue };
        // Where the start has no throughput at some N, its part without negative terms may have.
        let clipped = plane.nearest(&plane.at(&start).map(|c| c.max(0.0)));
        let found = descend(rows, &plane, start).or_else(|| descend(rows, &plane, clipped));
        let Some(found) = found.filter(|f| f.c.iter().all(|c| *c >= 0.0)) else { continue };
        if free == allowed {
            return Some(found);
        }
        if best.is_none_or(|b| found.squares < b.squares) {
            best = Some(found);
        }
    }
    best
}

/// All coefficients that an equation leaves free: `origin + u·basis`.
struct Plane {
    origin: Coefficients,
    basis: Vec<Coefficients>,
    /// Which coefficient each direction moves.
    index: Vec<usize>,
}

impl Plane {
    fn new(free: [bool; 3], equation: Option<&Equation>) -> Option<Plane> {
        let mut index: Vec<usize> = (0..3).filter(|i| free[*i]).collect();
        let mut origin = [0.0; 3];
        let mut basis: Vec<Coefficients> = Vec::new();
        let Some(Equation { v, k }) = equation else {
            basis.extend(index.iter().map(|i| unit(*i)));
            return Some(Plane { origin, basis, index });
        };
        let pivot = *index.iter().max_by(|a, b| v[**a].abs().total_cmp(&v[**b].abs()))?;
        if v[pivot] == 0.0 {
            return None;
        }
        index.retain(|i| *i != pivot);
        origin[pivot] = k / v[pivot];
        for i in &index {
            let mut direction = unit(*i);
            direction[pivot] = -v[*i] / v[pivot];
            basis.push(direction);
        }
        Some(Plane { origin, basis, index })
    }

    fn at(&self, u: &[f64]) -> Coefficients {
        let mut c = self.origin;
        for (u, direction) in u.iter().zip(&self.basis) {
            for i in 0..3 {
                c[i] += u * direction[i];
            }
        }
        c
    }

    fn nearest(&self, c: &Coefficients) -> Vec<f64> {
        self.index.iter().map(|i| c[*i]).collect()
    }
}

/// A start: the times `N/X` are linear in the coefficients, so one linear step fits them, with the
/// weights that errors of `X` have there.
fn straight(rows: &[Row], plane: &Plane) -> Option<Vec<f64>> {
    let size = plane.basis.len();
    let (mut square, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for row in rows {
        let z = row.terms();
        let weight = row.weight * row.x.powi(4) / (row.n * row.n);
        let left = row.n / row.x - dot(&plane.origin, &z);
        for i in 0..size {
            let slope = dot(&plane.basis[i], &z);
            right[i] += weight * slope * left;
            for (cell, other) in square[i].iter_mut().zip(&plane.basis) {
                *cell += weight * slope * dot(other, &z);
            }
        }
    }
    linear(&square, &right, size).map(|u| u[..size].to_vec())
}

/// Levenberg and Marquardt's descent on one plane; `None` where the start has no finite throughput.
fn descend(rows: &[Row], plane: &Plane, mut u: Vec<f64>) -> Option<Solution> {
    let size = plane.basis.len();
    let mut squares = squares(rows, &plane.at(&u))?;
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (normal, right) = normal_equations(rows, &plane.at(&u), &plane.basis);
        let mut damped = normal;
        for (i, row) in damped.iter_mut().enumerate().take(size) {
            row[i] *= 1.0 + damping;
        }
        let Some(step) = linear(&damped, &right, size) else { break };
        let next: Vec<f64> = u.iter().zip(step).map(|(u, s)| u + s).collect();
        match self::squares(rows, &plane.at(&next)) {
            Some(fewer) if fewer <= squares => {
                let done = squares - fewer <= 1e-13 * squares && damping < 1e-2;
                (u, squares) = (next, fewer);
                damping = (damping / 8.0).max(1e-14);
                if done {
                    break;
                }
            }
            _ => damping *= 6.0,
        }
        if damping > 1e12 {
            break;
        }
    }
    Some(Solution { c: plane.at(&u), squares })
}

/// Weighted squares of the residuals; `None` where the throughput is not finite and positive.
fn squares(rows: &[Row], c: &Coefficients) -> Option<f64> {
    let mut sum = 0.0;
    for row in rows {
        let time = dot(c, &row.terms());
        if time.is_nan() || time <= 0.0 {
            return None;
        }
        sum += row.weight * (row.x - row.n / time).powi(2);
    }
    sum.is_finite().then_some(sum)
}

/// `JᵀJ` and `Jᵀr` of the throughputs' residuals along `basis`.
fn normal_equations(
    rows: &[Row],
    c: &Coefficients,
    basis: &[Coefficients],
) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut square, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for row in rows {
        let z = row.terms();
        let x = row.n / dot(c, &z);
        let mut slope = [0.0; 3];
        for (slope, direction) in slope.iter_mut().zip(basis) {
            *slope = -x * x / row.n * dot(direction, &z);
        }
        for i in 0..basis.len() {
            right[i] += row.weight * slope[i] * (row.x - x);
            for j in 0..basis.len() {
                square[i][j] += row.weight * slope[i] * slope[j];
            }
        }
    }
    (square, right)
}

/// Covariance of the coefficients that aren't zero, for residuals of variance `variance / weight`.
#[must_use]
pub fn covariance(rows: &[Row], c: &Coefficients, variance: f64) -> Option<[[f64; 3]; 3]> {
    let index: Vec<usize> = (0..3).filter(|i| c[*i] > 0.0).collect();
    let basis: Vec<Coefficients> = index.iter().map(|i| unit(*i)).collect();
    let (normal, _) = normal_equations(rows, c, &basis);
    let mut out = [[0.0; 3]; 3];
    for (at, i) in index.iter().enumerate() {
        let column = linear(&normal, &unit(at), index.len())?;
        for (value, j) in column.iter().zip(&index) {
            out[*j][*i] = value * variance;
        }
    }
    Some(out)
}

/// Solves a small symmetric system by elimination after scaling its diagonal to ones.
fn linear(square: &[[f64; 3]; 3], right: &[f64; 3], size: usize) -> Option<[f64; 3]> {
    let mut scale = [1.0; 3];
    for i in 0..size {
        scale[i] = square[i][i].sqrt();
        if !scale[i].is_normal() {
            return None;
        }
    }
    let mut rows = [[0.0; 4]; 3];
    for i in 0..size {
        for j in 0..size {
            rows[i][j] = square[i][j] / (scale[i] * scale[j]);
        }
        rows[i][3] = right[i] / scale[i];
    }
    for i in 0..size {
        let pivot = (i..size).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))?;
        rows.swap(i, pivot);
        if rows[i][i].abs() < 1e-15 {
            return None;
        }
        let upper = rows[i];
        for (j, row) in rows.iter_mut().enumerate().take(size) {
            if j != i {
                let factor = row[i] / upper[i];
                row.iter_mut().zip(upper).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    let mut out = [0.0; 3];
    for i in 0..size {
        out[i] = rows[i][3] / rows[i][i] / scale[i];
    }
    Some(out)
}

/// Scalar product.
#[must_use]
pub fn dot(a: &Coefficients, b: &Coefficients) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn unit(i: usize) -> Coefficients {
    let mut out = [0.0; 3];
    out[i] = 1.0;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(c: Coefficients) -> Vec<Row> {
        let counts = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        counts.map(|n| Row { n, x: throughput(&c, n), weight: 1.0 }).to_vec()
    }

    #[test]
    fn exact_curves_come_back() {
        for c in [[1.0, 0.05, 1e-4], [1.0, 0.016, 0.0], [0.2, 0.0, 1e-3], [1.0, 0.0, 0.0]] {
            let found = solve(&rows(c), [true; 3], None).unwrap();
            for i in 0..3 {
                assert!((found.c[i] - c[i]).abs() < 1e-9, "{c:?} became {:?}", found.c);
            }
        }
    }

    #[test]
    fn a_curve_that_bends_upwards_is_held_at_the_bound() {
        let mut rows = rows([1.0, 0.0, 0.0]);
        rows.iter_mut().for_each(|r| r.x *= 1.0 + r.n / 100.0);
        let found = solve(&rows, [true; 3], None).unwrap();
        assert_eq!(found.c[1..], [0.0, 0.0]);
    }

    #[test]
    fn an_equation_is_obeyed_and_costs_squares() {
        let rows = rows([1.0, 0.05, 1e-4]);
        // a = 0.06
        let equation = Equation { v: [-0.06, 1.0, 0.0], k: 0.0 };
        let found = solve(&rows, [true; 3], Some(&equation)).unwrap();
        assert!((found.c[1] / found.c[0] - 0.06).abs() < 1e-12);
        assert!(found.squares > 1e-6, "{}", found.squares);
        assert!(found.c[2] > 0.0 && found.c[2] < 1e-4, "a higher serial part needs less coherency");
    }
}
