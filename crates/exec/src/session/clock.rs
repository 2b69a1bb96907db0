//! Dates, times and chance.

use std::cell::Cell;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::{Oid, Result, WaitEvent};
use sched::Wake;
use types::func::{Body, CastMethod, SessionFunction as F};
use types::{Datum, oids};

use crate::run::Run;
use crate::session::args::text;

/// Microseconds from 1970 to 2000.
const EPOCH_US: i64 = 946_684_800_000_000;

/// Microseconds since 2000-01-01 UTC, now.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as i64 - EPOCH_US
}

/// Functions of time and chance.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    Ok(Some(match function {
        F::Now | F::TransactionTimestamp => Datum::Timestamptz(run.cx.format.now),
        F::ClockTimestamp => Datum::Timestamptz(now_us()),
        F::StatementTimestamp => Datum::Timestamptz(*run.state.started.get_or_insert_with(now_us)),
        F::GenRandomUuid => Datum::Uuid(Arc::new(random_uuid()?)),
        F::Random => Datum::Float8(random()),
        F::PgSleep => {
            if let Some(Datum::Float8(seconds)) = args.first() {
                sleep(*seconds)?;
            }
            text("")
        }
        F::PgSleepFor => {
            if let Some(Datum::Interval(i)) = args.first() {
                let days = f64::from(i.months) * 30.0 + f64::from(i.days);
                sleep(days * 86_400.0 + i.micros as f64 / 1e6)?;
            }
            text("")
        }
        F::PgSleepUntil => {
            if let Some(Datum::Timestamptz(until)) = args.first() {
                sleep(until.saturating_sub(now_us()) as f64 / 1e6)?;
            }
            text("")
        }
        F::PgTriggerDepth => Datum::Int4(run.cx.hooks.deferred().trigger_depth as i32),
        _ => return Ok(None),
    }))
}

/// `current_date` and kin.
pub fn value(
    name: &str,
    precision: Option<i32>,
    ty: Oid,
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    let target = match name {
        "current_timestamp" => oids::TIMESTAMPTZ,
        "current_date" => oids::DATE,
        "localtimestamp" => oids::TIMESTAMP,
        "localtime" | "current_time" => ty,
        _ => return Ok(None),
    };
    let mut now = run.cx.format.now;
    if let Some(digits) = precision.filter(|p| (0..6).contains(p)) {
        let unit = 10i64.pow(6 - digits as u32);
        now = (now + unit / 2).div_euclid(unit) * unit;
    }
    convert(Datum::Timestamptz(now), target, run).map(Some)
}

/// A cast of the function table.
fn convert(value: Datum, target: Oid, run: &mut Run<'_, '_>) -> Result<Datum> {
    if target == oids::TIMESTAMPTZ {
        return Ok(value);
    }
    if let Some(cast) = types::func::cast(oids::TIMESTAMPTZ, target)
        && let CastMethod::Function(id) = cast.method
        && let Some(function) = types::func::function(id)
        && let Body::Scalar(body) = function.body
    {
        return body(&[value], run.cx.format);
    }
    super::cast_through_text(value, oids::TIMESTAMPTZ, target, -1, run)
}

/// Waits, interruptibly.
fn sleep(seconds: f64) -> Result<()> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Ok(());
    }
    let end = Instant::now() + Duration::from_secs_f64(seconds.min(1e9));
    while Instant::now() < end {
        sched::check_interrupts()?;
        if sched::park(WaitEvent::TimeoutPgSleep, Some(end)) == Wake::TimedOut {
            break;
        }
    }
    sched::check_interrupts()
}

std::thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// Version 4 (RFC 9562): 122 bits from the system's generator.
fn random_uuid() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| base::Error::io("read random bytes", &e))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(bytes)
}

/// A number from 0 to below 1 (xorshift64*, Vigna 2016; seeded by the clock). Not inlined: a task that waits between
/// two calls may go on on another thread.
#[inline(never)]
pub fn random() -> f64 {
    let mut x = SEED.get();
    if x == 0 {
        x = now_us() as u64 ^ (&raw const x as usize as u64) << 20 | 1;
    }
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    SEED.set(x);
    (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn random_numbers_differ_and_stay_below_one() {
        let numbers: Vec<f64> = (0..100).map(|_| super::random()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        assert!(numbers.windows(2).any(|w| w[0] != w[1]));
    }
}
