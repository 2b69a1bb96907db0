//! Comparisons between the types of one operator family: where a value of one type lies among those of
//! another, so that an index on the other one finds what the comparison finds.
//!
//! ```text
//! family      types                           a value between two of a column's
//! integers    int2, int4, int8                never: it is one of them or beyond their ends
//! floats      float4, float8                  0.1::float8 among float4
//! datetimes   date, timestamp, timestamptz    noon among dates
//! texts       text, varchar, name             never (name ends sooner, but compares like text)
//! ```
//!
//! A local time is an instant by the session's zone. Local times that clocks skip or repeat are not in the
//! order of their instants, so among timestamps an instant's place is known only roughly there
//! ([`Place::Near`]); dates are in order, whatever clocks do.

use base::{Oid, Result};

use crate::datetime::{self, DAY};
use crate::datum::Datum;
use crate::io::FormatContext;
use crate::oids::*;

/// Where a value lies among those of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// NULL: nothing equals or bounds it.
    Null,
    /// Below the smallest.
    Below,
    /// Above the largest.
    Above,
    /// This one, and no other, equals it.
    At(Datum),
    /// Above this one and below the next.
    Behind(Datum),
    /// A value below the first is below it, and one above the second above it.
    Near(Datum, Datum),
}

/// Whether values of the second type have places among those of the first, and whether these are exact
/// ([`Place::Near`] is not).
pub fn relation(ty: Oid, of: Oid) -> Option<bool> {
    let among = |family: &[Oid]| family.contains(&ty) && family.contains(&of);
    match (ty, of) {
        _ if ty == of => Some(true),
        (TIMESTAMP, TIMESTAMPTZ) => Some(false),
        _ => {
            let related = among(&[INT2, INT4, INT8])
                || among(&[FLOAT4, FLOAT8])
                || among(&[DATE, TIMESTAMP, TIMESTAMPTZ])
                || among(&[TEXT, VARCHAR, NAME]);
            related.then_some(true)
        }
    }
}

/// The place of a value of the type itself or of one that is related to it.
///
/// # Errors
/// Internal: types that are not related.
pub fn place(ty: Oid, value: Datum, cx: &FormatContext) -> Result<Place> {
    Ok(match (ty, &value) {
        (_, Datum::Null) => Place::Null,
        (INT2 | INT4 | INT8 | OID, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_)) => {
            integer(ty, value.to_i64().unwrap_or_default())
        }
        (FLOAT4, Datum::Float8(v)) => single(*v),
        (FLOAT8, Datum::Float4(v)) => Place::At(Datum::Float8(f64::from(*v))),
        (DATE, Datum::Timestamp(t)) => {
            date(*t, *t, &|d| datetime::date_to_timestamp(d).unwrap_or(i64::MIN + 1))
        }
        (DATE, Datum::Timestamptz(t)) => {
            let instant = |d: i32| {
                let local = datetime::date_to_timestamp(d);
                local.and_then(|local| datetime::local_to_utc(local, &cx.time_zone))
            };
            // Beyond what instants reach is no date of a row's that could be compared with one.
            match datetime::utc_to_local(*t, &cx.time_zone) {
                Ok(local) => date(local, *t, &|d| instant(d).unwrap_or(i64::MIN + 1)),
                Err(_) if *t < 0 => Place::Below,
                Err(_) => Place::Above,
            }
        }
        (TIMESTAMP, Datum::Date(d)) => converted(*d < 0, datetime::date_to_timestamp(*d), false),
        (TIMESTAMPTZ, Datum::Date(d)) => {
            let local = datetime::date_to_timestamp(*d);
            let instant = local.and_then(|t| datetime::local_to_utc(t, &cx.time_zone));
            converted(*d < 0, instant, true)
        }
        (TIMESTAMPTZ, Datum::Timestamp(t)) => {
            converted(*t < 0, datetime::local_to_utc(*t, &cx.time_zone), true)
        }
        (TIMESTAMP, Datum::Timestamptz(t)) => local(*t, cx),
        _ => Place::At(value),
    })
}

fn integer(ty: Oid, wide: i64) -> Place {
    let below = |min: i64| if wide < min { Place::Below } else { Place::Above };
    match ty {
        INT2 => i16::try_from(wide)
            .map_or_else(|_| below(i64::from(i16::MIN)), |v| Place::At(Datum::Int2(v))),
        INT4 => i32::try_from(wide)
            .map_or_else(|_| below(i64::from(i32::MIN)), |v| Place::At(Datum::Int4(v))),
        OID => u32::try_from(wide).map_or_else(|_| below(0), |v| Place::At(Datum::Oid(v))),
        _ => Place::At(Datum::Int8(wide)),
    }
}

/// Among float4; infinities are some of these.
fn single(v: f64) -> Place {
    let near = v as f32;
    if v.is_nan() || f64::from(near) == v {
        return Place::At(Datum::Float4(near));
    }
    Place::Behind(Datum::Float4(if f64::from(near) < v { near } else { near.next_down() }))
}

/// Among dates: a local time, and the same moment on the scale on which `midnight` says where dates begin.
fn date(local: i64, at: i64, midnight: &dyn Fn(i32) -> i64) -> Place {
    let mut day = datetime::timestamp_to_date(local);
    if !datetime::is_finite_date(day) {
        return Place::At(Datum::Date(day));
    }
    // Midnight may be skipped or repeated.
    if midnight(day) > at {
        day -= 1;
    } else if midnight(day + 1) <= at {
        day += 1;
    }
    match midnight(day) == at {
        true => Place::At(Datum::Date(day)),
        false => Place::Behind(Datum::Date(day)),
    }
}

fn converted(negative: bool, time: Result<i64>, zoned: bool) -> Place {
    match time {
        Ok(t) if zoned => Place::At(Datum::Timestamptz(t)),
        Ok(t) => Place::At(Datum::Timestamp(t)),
        Err(_) if negative => Place::Below,
        Err(_) => Place::Above,
    }
}

/// An instant among local times.
fn local(at: i64, cx: &FormatContext) -> Place {
    let zone = &cx.time_zone;
    let Ok(local) = datetime::utc_to_local(at, zone) else {
        return if at < 0 { Place::Below } else { Place::Above };
    };
    // Clocks are never turned by more than a day.
    let around = [at.saturating_sub(2 * DAY), at.saturating_add(2 * DAY)];
    let steady = around.iter().all(|t| zone.seconds_at(*t) == zone.seconds_at(at));
    if !datetime::is_finite(at) || steady {
        return Place::At(Datum::Timestamp(local));
    }
    let shifted = |by: i64| Datum::Timestamp(local.saturating_add(by));
    Place::Near(shifted(-2 * DAY), shifted(2 * DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ty: Oid, value: Datum) -> Place {
        place(ty, value, &FormatContext::default()).expect("related")
    }

    #[test]
    fn integers_are_one_of_a_narrower_type_or_beyond_its_ends() {
        assert_eq!(of(INT2, Datum::Int8(7)), Place::At(Datum::Int2(7)));
        assert_eq!(of(INT2, Datum::Int4(40_000)), Place::Above);
        assert_eq!(of(INT4, Datum::Int8(i64::MIN)), Place::Below);
        assert_eq!(of(INT8, Datum::Int2(-1)), Place::At(Datum::Int8(-1)));
    }

    #[test]
    fn floats_lie_between_those_of_less_precision() {
        assert_eq!(of(FLOAT4, Datum::Float8(0.5)), Place::At(Datum::Float4(0.5)));
        let Place::Behind(Datum::Float4(low)) = of(FLOAT4, Datum::Float8(0.1)) else {
            panic!("0.1 is no float4");
        };
        assert!(f64::from(low) < 0.1 && f64::from(low.next_up()) > 0.1);
        assert_eq!(of(FLOAT4, Datum::Float8(1e300)), Place::Behind(Datum::Float4(f32::MAX)));
        assert_eq!(
            of(FLOAT4, Datum::Float8(-1e300)),
            Place::Behind(Datum::Float4(f32::NEG_INFINITY))
        );
    }

    #[test]
    fn times_lie_between_dates() {
        assert_eq!(of(DATE, Datum::Timestamp(3 * DAY)), Place::At(Datum::Date(3)));
        assert_eq!(of(DATE, Datum::Timestamp(3 * DAY + 1)), Place::Behind(Datum::Date(3)));
        assert_eq!(of(DATE, Datum::Timestamp(-1)), Place::Behind(Datum::Date(-1)));
        assert_eq!(of(DATE, Datum::Timestamp(i64::MAX)), Place::At(Datum::Date(i32::MAX)));
        assert_eq!(of(TIMESTAMP, Datum::Date(i32::MAX - 1)), Place::Above);
    }

    #[test]
    fn midnight_is_where_the_zone_has_it() {
        let zone = datetime::TimeZone::parse("Europe/Berlin").expect("a zone");
        let cx = FormatContext { time_zone: zone, ..FormatContext::default() };
        // 2000-01-02 in Berlin begins an hour earlier.
        let hour = datetime::HOUR;
        let at = |t| place(DATE, Datum::Timestamptz(t), &cx).expect("related");
        assert_eq!(at(DAY - hour), Place::At(Datum::Date(1)));
        assert_eq!(at(DAY - hour - 1), Place::Behind(Datum::Date(0)));
        // Far from a turn of the clocks an instant is one local time, near one it is not known.
        let at = |t| place(TIMESTAMP, Datum::Timestamptz(t), &cx).expect("related");
        assert_eq!(at(0), Place::At(Datum::Timestamp(hour)));
        assert!(matches!(at(85 * DAY), Place::Near(..)));
    }
}
