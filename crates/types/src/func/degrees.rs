//! Trigonometry in degrees. The angle is folded into the first quadrant, and there what the functions give is
//! scaled by what they give at 30, 45 and 60 degrees, so that the well-known angles come out exactly
//! (`sind(30)` is 0.5); the last digits are PostgreSQL's.

/// Radians in a degree.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// From 0 to 30 degrees.
fn sine_to_30(x: f64) -> f64 {
    (x * DEGREE).sin() / (30.0 * DEGREE).sin() / 2.0
}

/// From 0 to 60 degrees.
fn cosine_to_60(x: f64) -> f64 {
    let rest = |x: f64| 1.0 - (x * DEGREE).cos();
    1.0 - rest(x) / rest(60.0) / 2.0
}

/// From 0 to 90 degrees.
fn sine_to_90(x: f64) -> f64 {
    if x <= 30.0 { sine_to_30(x) } else { cosine_to_60(90.0 - x) }
}

/// From 0 to 90 degrees.
fn cosine_to_90(x: f64) -> f64 {
    if x <= 60.0 { cosine_to_60(x) } else { sine_to_30(90.0 - x) }
}

/// An angle below 360 degrees in the first quadrant: the angle, and the signs of its sine and its cosine.
fn folded(x: f64) -> (f64, f64, f64) {
    let (mut angle, mut sine, mut cosine) = ((x % 360.0).abs(), 1.0, 1.0);
    if x < 0.0 {
        sine = -sine;
    }
    if angle > 180.0 {
        angle = 360.0 - angle;
        sine = -sine;
    }
    if angle > 90.0 {
        angle = 180.0 - angle;
        cosine = -cosine;
    }
    (angle, sine, cosine)
}

/// The sine of an angle.
pub(super) fn sine(x: f64) -> f64 {
    let (angle, sign, _) = folded(x);
    sign * sine_to_90(angle)
}

/// The cosine of an angle.
pub(super) fn cosine(x: f64) -> f64 {
    let (angle, _, sign) = folded(x);
    sign * cosine_to_90(angle)
}

/// The tangent of an angle.
pub(super) fn tangent(x: f64) -> f64 {
    let (angle, sine, cosine) = folded(x);
    let at_45 = sine_to_90(45.0) / cosine_to_90(45.0);
    // No zero below zero.
    sine * cosine * (sine_to_90(angle) / cosine_to_90(angle) / at_45) + 0.0
}

/// The cotangent of an angle.
pub(super) fn cotangent(x: f64) -> f64 {
    let (angle, sine, cosine) = folded(x);
    let at_45 = cosine_to_90(45.0) / sine_to_90(45.0);
    sine * cosine * (cosine_to_90(angle) / sine_to_90(angle) / at_45) + 0.0
}

/// The angle with this sine, of 0 to 1.
fn arc_sine_from_0(x: f64) -> f64 {
    if x <= 0.5 {
        x.asin() / 0.5_f64.asin() * 30.0
    } else {
        90.0 - x.acos() / 0.5_f64.acos() * 60.0
    }
}

/// The angle with this sine.
pub(super) fn arc_sine(x: f64) -> f64 {
    if x >= 0.0 { arc_sine_from_0(x) } else { -arc_sine_from_0(-x) }
}

/// The angle with this cosine.
pub(super) fn arc_cosine(x: f64) -> f64 {
    if x < 0.0 {
        90.0 + arc_sine_from_0(-x)
    } else if x <= 0.5 {
        90.0 - x.asin() / 0.5_f64.asin() * 30.0
    } else {
        x.acos() / 0.5_f64.acos() * 60.0
    }
}

/// An angle in radians that an inverse tangent gave.
pub(super) fn of_arc_tangent(radians: f64) -> f64 {
    radians / 1.0_f64.atan() * 45.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_angles_are_exact() {
        for (x, wanted) in
            [(0.0, 0.0), (30.0, 0.5), (90.0, 1.0), (150.0, 0.5), (-30.0, -0.5), (750.0, 0.5)]
        {
            assert_eq!(sine(x), wanted, "sine of {x}");
        }
        for (x, wanted) in
            [(0.0, 1.0), (60.0, 0.5), (90.0, 0.0), (120.0, -0.5), (-60.0, 0.5), (270.0, 0.0)]
        {
            assert_eq!(cosine(x), wanted, "cosine of {x}");
        }
        for (x, wanted) in [(45.0, 1.0), (-45.0, -1.0), (135.0, -1.0), (225.0, 1.0), (180.0, 0.0)] {
            assert_eq!(tangent(x), wanted, "tangent of {x}");
        }
        assert_eq!((arc_sine(0.5), arc_cosine(0.5), arc_cosine(-1.0)), (30.0, 60.0, 180.0));
        assert_eq!((arc_sine(-1.0), of_arc_tangent(1.0_f64.atan())), (-90.0, 45.0));
        // As PostgreSQL has the last digit.
        assert_eq!(
            (sine(1.0), tangent(2.5)),
            (0.017_452_406_437_283_515, 0.043_660_942_908_512_065)
        );
    }
}
