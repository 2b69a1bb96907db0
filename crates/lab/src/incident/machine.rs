//! How busy the machine is with what is no part of the experiment: then its times say little.

use std::fs;

/// From this share of the processors on, times are said to be worth little.
pub const BUSY: f64 = 0.1;

/// Ticks of all processors so far.
#[derive(Clone, Copy, Default)]
struct Ticks {
    all: u64,
    busy: u64,
    /// Of this process and the server.
    own: u64,
}

/// A look at the machine, to be compared with a later one.
pub struct Machine {
    server: u32,
    began: Option<Ticks>,
}

impl Machine {
    /// Looks now. `server`: the process of the server.
    pub fn look(server: u32) -> Machine {
        Machine { server, began: ticks(server) }
    }

    /// Share of the processors' time since then that others took; None: it can't be read.
    pub fn others(&self) -> Option<f64> {
        share(self.began?, ticks(self.server)?)
    }
}

fn share(before: Ticks, after: Ticks) -> Option<f64> {
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let others =
        after.busy.saturating_sub(before.busy).saturating_sub(after.own.saturating_sub(before.own));
    Some(others as f64 / all as f64)
}

fn ticks(server: u32) -> Option<Ticks> {
    let (all, busy) = of_machine(&fs::read_to_string("/proc/stat").ok()?)?;
    let own = [std::process::id(), server]
        .into_iter()
        .filter_map(|pid| of_process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?));
    Some(Ticks { all, busy, own: own.sum() })
}

/// All ticks, and those that were not idle (`idle` and `iowait`): the file's first line.
fn of_machine(text: &str) -> Option<(u64, u64)> {
    let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    // What guests took is among the first ones already.
    let ticks: Vec<u64> = fields.take(8).map_while(|f| f.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    Some((all, all - ticks.get(3)? - ticks.get(4)?))
}

/// `utime` and `stime`, fields 14 and 15; the name before them may have spaces.
fn of_process(text: &str) -> Option<u64> {
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(fields.skip(11).take(2).map_while(|f| f.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_take_is_what_is_left() {
        let machine = "cpu  100 10 30 500 60 1 2 7 9 9\ncpu0 1 1\n";
        assert_eq!(of_machine(machine), Some((710, 150)));
        assert_eq!(of_process("7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0"), Some(42));
        let before = Ticks::default();
        let after = Ticks { all: 200, busy: 100, own: 60 };
        assert_eq!(share(before, after), Some(0.2));
        assert_eq!(share(after, after), None);
        assert!(Machine::look(std::process::id()).began.is_some());
    }
}
