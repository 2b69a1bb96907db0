//! Time zones.

use types::Datum;
use types::datetime::{ListedZone, listed_abbreviations, listed_zones};
use types::datum::Interval;

use crate::views::text::text;

fn offset(zone: &ListedZone) -> Datum {
    let micros = i64::from(zone.seconds) * 1_000_000;
    Datum::Interval(Interval { months: 0, days: 0, micros }.into())
}

/// `pg_timezone_names`.
pub fn names() -> Vec<Vec<Datum>> {
    let row = |zone: ListedZone| {
        let offset = offset(&zone);
        vec![text(&zone.name), text(&zone.abbreviation), offset, Datum::Bool(zone.daylight)]
    };
    listed_zones(crate::server::now()).into_iter().map(row).collect()
}

/// `pg_timezone_abbrevs`.
pub fn abbreviations() -> Vec<Vec<Datum>> {
    let row = |zone: ListedZone| vec![text(&zone.name), offset(&zone), Datum::Bool(zone.daylight)];
    listed_abbreviations().into_iter().map(row).collect()
}
