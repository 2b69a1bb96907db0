//! Dates and times.
use crate::datum::Interval;
use crate::io::{FormatContext, IntervalStyle};
use base::{Error, Result};

/// See [`FormatContext`]. A cheap handle; the zone rules are a library's (jiff).
#[derive(Clone, Debug, Default)]
pub struct TimeZone {}

pub(crate) fn parse_date(_t: &str, _cx: &FormatContext) -> Result<i32> {
    Err(Error::unsupported("date input"))
}
pub(crate) fn parse_time(_t: &str, _cx: &FormatContext) -> Result<i64> {
    Err(Error::unsupported("time input"))
}
pub(crate) fn parse_timestamp(_t: &str, _cx: &FormatContext) -> Result<i64> {
    Err(Error::unsupported("time input"))
}
pub(crate) fn parse_timestamptz(_t: &str, _cx: &FormatContext) -> Result<i64> {
    Err(Error::unsupported("time input"))
}
pub(crate) fn parse_interval(_t: &str, _m: i32, _cx: &FormatContext) -> Result<Interval> {
    Err(Error::unsupported("time input"))
}
pub(crate) fn round_time(t: i64, _m: i32) -> i64 {
    t
}
pub(crate) fn round_timestamp(t: i64, _m: i32) -> i64 {
    t
}
pub(crate) fn fit_interval(i: Interval, _m: i32) -> Result<Interval> {
    Ok(i)
}
pub(crate) fn write_date(_d: i32, _cx: &FormatContext, _out: &mut Vec<u8>) {}
pub(crate) fn write_time(_d: i64, _out: &mut Vec<u8>) {}
pub(crate) fn write_timestamp(_d: i64, _cx: &FormatContext, _out: &mut Vec<u8>) {}
pub(crate) fn write_timestamptz(_d: i64, _cx: &FormatContext, _out: &mut Vec<u8>) {}
pub(crate) fn write_interval(_d: &Interval, _s: IntervalStyle, _out: &mut Vec<u8>) {}
pub(crate) fn interval_typmod_name(_m: i32) -> String {
    "interval".into()
}
