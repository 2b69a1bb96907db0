//! earthdistance: great circles. Its functions over cubes are SQL; here is the distance of two points in statute miles,
//! by the haversine formula.

use base::{Oid, Result, err};
use types::extension::Library;
use types::func::Body;
use types::{Datum, FormatContext};

use crate::common::{Bodies, text_of};

/// The extension's code.
pub static LIBRARY: Library = Library { name: "earthdistance", bodies, ..Library::EMPTY };

/// The earth's radius in statute miles.
const RADIUS: f64 = 3958.747716;
const POINT: Oid = Oid(600);

/// Longitude and latitude of a point, in radians.
fn place(point: &Datum, cx: &FormatContext) -> Result<(f64, f64)> {
    let text = text_of(POINT, point, cx)?;
    let numbers = text.trim_matches(['(', ')']).split_once(',');
    let numbers = numbers.and_then(|(x, y)| Some((x.parse::<f64>().ok()?, y.parse::<f64>().ok()?)));
    let (x, y) = numbers.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid point"))?;
    Ok((x.to_radians(), y.to_radians()))
}

fn distance(args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let ((long1, lat1), (long2, lat2)) = (place(&args[0], cx)?, place(&args[1], cx)?);
    let apart = (long1 - long2).abs();
    let apart = if apart > std::f64::consts::PI { std::f64::consts::TAU - apart } else { apart };
    let (north, east) = (((lat1 - lat2).abs() / 2.0).sin(), (apart / 2.0).sin());
    let sine = (north * north + lat1.cos() * lat2.cos() * east * east).sqrt().min(1.0);
    Ok(Datum::Float8(2.0 * RADIUS * sine.asin()))
}

fn bodies() -> Bodies {
    vec![("geo_distance", Body::Scalar(distance))]
}
