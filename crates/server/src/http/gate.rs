//! Guesses of passwords take turns.
//!
//! A wrong password is answered late, but who guesses need not wait for the answer: a right one would have come at
//! once. So after failures passwords are not even compared before the delay is over, one at a time, whatever number
//! of connections they come by:
//!
//! ```text
//!   guess 1 ─ compared, wrong ─┐ 0.5 s  ┌─ guess 2 compared, wrong ─┐ 1 s      ┌─ guess 3 …
//!                              └────────┘                           └──────────┘
//! ```
//!
//! The delay is that of the server's other port ([`Failures`]), by address and of all together; all clients are of
//! this machine, which has many addresses. It ends by being quiet: a right password does not end it, since a guesser
//! may know one. The token and passwords that were right lately have no turn to wait for.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sched::SpinLock;

use crate::client_auth::failures::Failures;

/// A turn that is further away is not given.
const FAR: Duration = Duration::from_secs(30);

/// When a password is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Now,
    At(Instant),
    /// Too many wait.
    Never,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Gate {
    failures: Failures,
    turns: SpinLock<Turns>,
}

#[derive(Default)]
struct Turns {
    /// From when on a password may be compared.
    next: Option<Instant>,
    /// The delay after the last failure.
    delay: Duration,
}

impl Gate {
    /// The turn of a password that has just come.
    pub fn turn(&self, now: Instant) -> Turn {
        let mut turns = self.turns.lock();
        match turns.next {
            Some(next) if next > now + FAR => Turn::Never,
            Some(next) if next > now => {
                // Those that wait together guess, it must be feared: each makes the next wait longer, as its failure would.
                turns.next = Some(next + turns.delay);
                turns.delay = (turns.delay * 2).min(FAR);
                Turn::At(next)
            }
            _ => Turn::Now,
        }
    }

    /// Notes a wrong password; when it is answered. `first`: the delay of a first failure.
    pub fn failed(&self, from: Option<IpAddr>, first: Duration, now: Instant) -> Instant {
        let of_address = from.map_or(first, |ip| self.failures.note(Some(ip), first, now));
        let delay = of_address.max(self.failures.note(None, first, now));
        let mut turns = self.turns.lock();
        turns.delay = delay;
        turns.next = Some(turns.next.unwrap_or(now).max(now + delay));
        now + delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guesses that are compared in a minute when many connections guess without waiting for answers.
    fn guesses(connections: u32, addresses: u8) -> u32 {
        let gate = Gate::default();
        let (begin, first) = (Instant::now(), Duration::from_millis(500));
        let (mut waiting, mut compared) = (Vec::new(), 0);
        for ms in 0..60_000 {
            let now = begin + Duration::from_millis(ms);
            let mut due = waiting.iter().filter(|at| **at <= now).count();
            waiting.retain(|at| *at > now);
            for n in 0..connections {
                match gate.turn(now) {
                    Turn::Now => due += 1,
                    Turn::At(at) => waiting.push(at),
                    Turn::Never => {}
                }
                if due > 0 {
                    due -= 1;
                    compared += 1;
                    gate.failed(Some(IpAddr::from([127, 0, 0, n as u8 % addresses])), first, now);
                }
            }
        }
        compared
    }

    #[test]
    fn connections_and_addresses_gain_nothing() {
        for (connections, addresses) in [(1, 1), (24, 1), (24, 24)] {
            let compared = guesses(connections, addresses);
            assert!((5..=40).contains(&compared), "{compared} by {connections} of {addresses}");
        }
    }

    #[test]
    fn without_failures_nobody_waits() {
        let (gate, now) = (Gate::default(), Instant::now());
        let first = Duration::from_millis(500);
        assert_eq!([gate.turn(now), gate.turn(now)], [Turn::Now; 2]);
        assert_eq!(gate.failed(None, first, now), now + first);
        assert_eq!(gate.turn(now), Turn::At(now + first));
        assert_eq!(gate.turn(now), Turn::At(now + 2 * first), "one at a time");
        assert_eq!(gate.turn(now + FAR), Turn::Now);
        assert_eq!(gate.failed(None, 100 * first, now), now + 200 * first, "it doubles");
        assert_eq!(gate.turn(now), Turn::Never);
    }
}
