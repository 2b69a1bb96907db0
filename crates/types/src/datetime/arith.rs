//! Arithmetic of dates, timestamps and intervals.

use base::{Result, err};

use super::{
    DATE_INFINITY, DATE_MINUS_INFINITY, DAY, INFINITY, MINUS_INFINITY, SECOND, TimeZone,
    check_timestamp, civil_of, days_of, interval_out_of_range, is_finite, month_days, split,
    timestamp_out_of_range,
};
use crate::datum::Interval;

/// A local time's instant in a zone.
pub(crate) fn local_to_utc(local: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite(local) {
        return Ok(local);
    }
    let seconds = i128::from(zone.seconds_of_local(local));
    check_timestamp(i128::from(local) - seconds * i128::from(SECOND))
}

/// An instant's local time in a zone.
pub(crate) fn utc_to_local(utc: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite(utc) {
        return Ok(utc);
    }
    let seconds = i128::from(zone.seconds_at(utc));
    check_timestamp(i128::from(utc) + seconds * i128::from(SECOND))
}

/// An instant's local time in a zone, which may lie behind the last timestamp.
pub(crate) fn wall_clock(utc: i64, zone: &TimeZone) -> i64 {
    if is_finite(utc) { utc.saturating_add(i64::from(zone.seconds_at(utc)) * SECOND) } else { utc }
}

/// Midnight of a date.
pub(crate) fn date_to_timestamp(d: i32) -> Result<i64> {
    match d {
        DATE_INFINITY => Ok(INFINITY),
        DATE_MINUS_INFINITY => Ok(MINUS_INFINITY),
        _ => check_timestamp(i128::from(d) * i128::from(DAY))
            .map_err(|_| err!(DATETIME_VALUE_OUT_OF_RANGE, "date out of range for timestamp")),
    }
}

/// The date of a timestamp.
pub(crate) fn timestamp_to_date(t: i64) -> i32 {
    match t {
        INFINITY => DATE_INFINITY,
        MINUS_INFINITY => DATE_MINUS_INFINITY,
        _ => split(t).0 as i32,
    }
}

/// Adds months to a local time; a day that the month doesn't have becomes its last.
fn add_months(local: i64, months: i32) -> Result<i64> {
    if months == 0 {
        return Ok(local);
    }
    let (days, micros) = split(local);
    let (year, month, day) = civil_of(days);
    let total = year * 12 + month - 1 + i64::from(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let days = days_of(year, month, day.min(month_days(year, month)));
    check_timestamp(i128::from(days) * i128::from(DAY) + i128::from(micros))
}

/// Timestamp plus interval: months first, then days, then time. With a zone `t` is an instant, and
/// months and days count in local time.
pub(crate) fn add_interval(t: i64, i: &Interval, zone: Option<&TimeZone>) -> Result<i64> {
    if !is_finite(t) {
        return Ok(t);
    }
    let mut t = t;
    if i.months != 0 || i.days != 0 {
        let local = zone.map_or(t, |z| wall_clock(t, z));
        let moved = add_months(local, i.months)?;
        let moved = check_timestamp(i128::from(moved) + i128::from(i.days) * i128::from(DAY))?;
        t = zone.map_or(Ok(moved), |z| local_to_utc(moved, z))?;
    }
    check_timestamp(i128::from(t) + i128::from(i.micros))
}

/// Date plus interval → timestamp.
pub(crate) fn add_interval_to_date(d: i32, i: &Interval) -> Result<i64> {
    add_interval(date_to_timestamp(d)?, i, None)
}

/// Difference of timestamps, in days and time.
pub(crate) fn subtract_times(a: i64, b: i64) -> Result<Interval> {
    if !is_finite(a) || !is_finite(b) {
        return Err(err!(DATETIME_VALUE_OUT_OF_RANGE, "cannot subtract infinite timestamps"));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_out_of_range)?;
    justify_hours(Interval { months: 0, days: 0, micros })
}

/// Time of day plus interval, modulo a day.
pub(crate) fn time_plus_interval(t: i64, micros: i64) -> i64 {
    (i128::from(t) + i128::from(micros)).rem_euclid(i128::from(DAY)) as i64
}

/// Time of day of an interval.
pub(crate) fn interval_to_time(i: &Interval) -> i64 {
    i.micros.rem_euclid(DAY)
}

/// An interval under way, whose fields may be too large.
struct Wide {
    months: i64,
    days: i64,
    micros: i64,
}

impl Wide {
    fn new(i: Interval) -> Wide {
        Wide { months: i.months.into(), days: i.days.into(), micros: i.micros }
    }

    fn hours_to_days(&mut self) {
        self.days += self.micros / DAY;
        self.micros %= DAY;
    }

    fn days_to_months(&mut self) {
        self.months += self.days / 30;
        self.days %= 30;
    }

    /// Gives days the sign of the months. `micros` decides where there are no days.
    fn turn_days(&mut self, micros: i64) {
        let days = if self.days == 0 { micros.signum() } else { self.days.signum() };
        if self.months.signum() * days < 0 {
            self.days += 30 * self.months.signum();
            self.months -= self.months.signum();
        }
    }

    /// Gives the time the sign of the days.
    fn turn_time(&mut self) {
        if self.days.signum() * self.micros.signum() < 0 {
            self.micros += DAY * self.days.signum();
            self.days -= self.days.signum();
        }
    }

    fn finish(self) -> Result<Interval> {
        let field = |v: i64| i32::try_from(v).map_err(|_| interval_out_of_range());
        Ok(Interval { months: field(self.months)?, days: field(self.days)?, micros: self.micros })
    }
}

/// 24 hours become a day.
pub(crate) fn justify_hours(i: Interval) -> Result<Interval> {
    let mut wide = Wide::new(i);
    wide.hours_to_days();
    wide.turn_time();
    wide.finish()
}

/// 30 days become a month.
pub(crate) fn justify_days(i: Interval) -> Result<Interval> {
    let mut wide = Wide::new(i);
    wide.days_to_months();
    wide.turn_days(0);
    wide.finish()
}

/// Both, and all fields of one sign.
pub(crate) fn justify_interval(i: Interval) -> Result<Interval> {
    let mut wide = Wide::new(i);
    wide.hours_to_days();
    wide.days_to_months();
    wide.turn_days(wide.micros);
    wide.turn_time();
    wide.finish()
}

/// Interval times a factor: what is lost of months goes to days (30 a month), of days to time.
pub(crate) fn scale_interval(i: &Interval, scale: impl Fn(f64) -> f64) -> Result<Interval> {
    let field = |v: f64| -> Result<i32> {
        if v.is_nan() || v.abs() > 2_147_483_647.0 {
            return Err(interval_out_of_range());
        }
        Ok(v as i32)
    };
    let months_exact = scale(f64::from(i.months));
    let months = field(months_exact)?;
    let days_exact = scale(f64::from(i.days));
    let days = field(days_exact)?;
    let rounded = |v: f64| (v * 1e6).round_ties_even() / 1e6;
    // A month's rest in days, and both rests of a day in seconds.
    let month_days = rounded((months_exact - f64::from(months)) * 30.0);
    let mut seconds =
        rounded((days_exact - f64::from(days) + month_days - month_days.trunc()) * 86_400.0);
    let mut days = i64::from(days);
    if seconds.abs() >= 86_400.0 {
        days += (seconds / 86_400.0) as i64;
        seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
    }
    days += month_days as i64;
    let micros = (scale(i.micros as f64) + seconds * 1e6).round_ties_even();
    if micros.is_nan() || micros.abs() >= 9.223_372_036_854_775e18 {
        return Err(interval_out_of_range());
    }
    let days = i32::try_from(days).map_err(|_| interval_out_of_range())?;
    Ok(Interval { months, days, micros: micros as i64 })
}

/// `age(a, b)`: the difference in years, months, days and time, by the calendar.
pub(crate) fn age(a: i64, b: i64) -> Result<Interval> {
    if !is_finite(a) || !is_finite(b) {
        return Err(timestamp_out_of_range());
    }
    let ((da, ta), (db, tb)) = (split(a), split(b));
    let ((ya, ma, dda), (yb, mb, ddb)) = (civil_of(da), civil_of(db));
    let mut months = (ya - yb) * 12 + ma - mb;
    let (mut days, mut micros) = (dda - ddb, ta - tb);
    // Everything counts from the earlier to the later.
    let negative = a < b;
    if negative {
        (months, days, micros) = (-months, -days, -micros);
    }
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    while days < 0 {
        // The month that is borrowed from is the earlier date's.
        let (y, m) = if negative { (ya, ma) } else { (yb, mb) };
        days += month_days(y, m);
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    Ok(Interval {
        months: (sign * months) as i32,
        days: (sign * days) as i32,
        micros: sign * micros,
    })
}

/// `date_bin(stride, t, origin)`.
pub(crate) fn bin(stride: &Interval, t: i64, origin: i64) -> Result<i64> {
    if !is_finite(t) {
        return Ok(t);
    }
    if !is_finite(origin) {
        return Err(err!(DATETIME_VALUE_OUT_OF_RANGE, "origin out of range"));
    }
    if stride.months != 0 {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years"
        ));
    }
    let step = i128::from(stride.days) * i128::from(DAY) + i128::from(stride.micros);
    if step <= 0 {
        return Err(err!(DATETIME_VALUE_OUT_OF_RANGE, "stride must be greater than zero"));
    }
    let distance = i128::from(t) - i128::from(origin);
    check_timestamp(i128::from(origin) + distance.div_euclid(step) * step)
}
