//! Fault points: places where a test makes the server fail, to show what is left behind (nothing) and
//! who notices (nobody else).
//!
//! [`reach`] stands in the code at each point; `debug_faults = 'heap_insert=panic/50, plan=error'` arms
//! points: on average (exactly, by count) one passage in 50 panics, each `plan` fails; `wal_write=slow` makes a slow disk; `sort=hold` holds the worker as
//! a loop that looks for no interrupts does. In a server built
//! without debug assertions a point is no code at all and the setting is refused.
//!
//! The rule that each point tests: a panic at a point of a *statement* ends that statement with `XX000`, and its latches,
//! pins, locks and memory are given back; at a *critical* point shared state is in doubt, so the server
//! stops and its supervisor starts it again, with recovery.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::{Error, Result, err};

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FaultInfo {
    /// The point.
    pub fault: Fault,
    /// Its name in `debug_faults`.
    pub name: &'static str,
    /// Whether a panic there stops the server.
    pub critical: bool,
    /// The work that the server does at the point.
    pub description: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/faults.rs"));

/// Whether fault points are part of this program.
pub const COMPILED: bool = cfg!(debug_assertions);

/// The effect of an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Panics.
    Panic,
    /// Returns an error (a critical point panics).
    Error,
    /// Takes [`SLOW`] and goes on.
    Slow,
    /// Takes [`HOLD`] and goes on.
    Hold,
}

/// How long a slow point takes.
const SLOW: std::time::Duration = std::time::Duration::from_millis(20);

/// How long a point takes that holds its worker: several times `worker_hold_limit`.
const HOLD: std::time::Duration = std::time::Duration::from_millis(1000);

/// A point, what it does, and at every how many passages.
pub type Arm = (Fault, Kind, u32);

/// Every how many passages, with the top bit for [`Kind::Error`], the next ones for [`Kind::Slow`] and [`Kind::Hold`]; 0: not
/// armed.
static ARMED: [AtomicU64; FAULTS.len()] = [const { AtomicU64::new(0) }; FAULTS.len()];
static PASSED: [AtomicU64; FAULTS.len()] = [const { AtomicU64::new(0) }; FAULTS.len()];
const ERROR: u64 = 1 << 63;
const SLOWS: u64 = 1 << 62;
const HOLDS: u64 = 1 << 61;

/// A point in a statement.
///
/// # Errors
/// `XX000` when it is armed so.
///
/// # Panics
/// When it is armed so.
#[inline(always)]
pub fn reach(fault: Fault) -> Result<()> {
    if COMPILED { passed(fault) } else { Ok(()) }
}

/// A point in a critical section, where nothing can be returned.
///
/// # Panics
/// When it is armed.
#[inline(always)]
pub fn reach_critical(fault: Fault) {
    if COMPILED && let Err(error) = passed(fault) {
        panic!("{error}");
    }
}

fn passed(fault: Fault) -> Result<()> {
    let armed = ARMED[fault as usize].load(Relaxed);
    if armed == 0 {
        return Ok(());
    }
    let count = PASSED[fault as usize].fetch_add(1, Relaxed) + 1;
    if !count.is_multiple_of(armed & !(ERROR | SLOWS | HOLDS)) {
        return Ok(());
    }
    if armed & SLOWS != 0 {
        std::thread::sleep(SLOW);
        return Ok(());
    }
    if armed & HOLDS != 0 {
        std::thread::sleep(HOLD);
        return Ok(());
    }
    let name = FAULTS[fault as usize].name;
    if armed & ERROR == 0 && !std::thread::panicking() {
        panic!("fault point {name}");
    }
    Err(err!(INTERNAL_ERROR, "fault point {name}"))
}

/// Arms these points and no others; counting begins anew.
pub fn arm(arms: &[Arm]) {
    for (armed, passed) in ARMED.iter().zip(&PASSED) {
        armed.store(0, Relaxed);
        passed.store(0, Relaxed);
    }
    for (fault, kind, every) in arms {
        let effect = match kind {
            Kind::Panic => 0,
            Kind::Error => ERROR,
            Kind::Slow => SLOWS,
            Kind::Hold => HOLDS,
        };
        ARMED[*fault as usize].store(u64::from(*every) | effect, Relaxed);
    }
}

/// Reads the setting: `NAME=panic|error|slow|hold[/N]`, separated by commas.
///
/// # Errors
/// `22023` for what isn't that; `0A000` where [`COMPILED`] is false, but for nothing at all.
pub fn parse(text: &str) -> Result<Vec<Arm>> {
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
    if !words.is_empty() && !COMPILED {
        return Err(Error::unsupported("debug_faults in a server built without debug assertions"));
    }
    words.into_iter().map(parse_arm).collect()
}

fn parse_arm(word: &str) -> Result<Arm> {
    let wrong = || {
        err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"debug_faults\": \"{word}\"")
            .hint("It is a list of POINT=panic, POINT=error, POINT=slow or POINT=hold, each with /N for one passage in N.")
    };
    let (name, what) = word.split_once('=').ok_or_else(wrong)?;
    let (kind, every) = what.split_once('/').unwrap_or((what, "1"));
    let info = FAULTS.iter().find(|f| f.name == name.trim()).ok_or_else(wrong)?;
    let kind = match kind.trim() {
        "panic" => Kind::Panic,
        "error" => Kind::Error,
        "slow" => Kind::Slow,
        "hold" => Kind::Hold,
        _ => return Err(wrong()),
    };
    let every = every.trim().parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
    Ok((info.fault, kind, every))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn armed_points_fail_at_every_nth_passage_and_others_never() {
        let arms = parse("plan = error/3, sort=panic").unwrap();
        assert_eq!(arms, [(Fault::Plan, Kind::Error, 3), (Fault::Sort, Kind::Panic, 1)]);
        arm(&arms);
        let outcomes: Vec<bool> = (0..6).map(|_| reach(Fault::Plan).is_ok()).collect();
        assert_eq!(outcomes, [true, true, false, true, true, false]);
        assert!(std::panic::catch_unwind(|| reach(Fault::Sort)).is_err());
        assert!(reach(Fault::Execute).is_ok());
        arm(&[]);
        assert!((0..6).all(|_| reach(Fault::Plan).is_ok()));
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        for wrong in ["plan", "nothing=panic", "plan=delay", "plan=panic/0", "plan=panic/x"] {
            assert_eq!(parse(wrong).unwrap_err().code().as_str(), "22023", "{wrong}");
        }
        assert!(parse("").unwrap().is_empty());
    }
}
