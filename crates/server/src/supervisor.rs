//! The small process above the server: it owns the listening sockets, starts the server, and starts
//! it again after a crash. Clients that connect meanwhile wait in the sockets' queues.
//!
//! It shares no memory with the server, has one thread, takes its signals one by one, and does
//! nothing with what the server says except to look at how it ended:
//!
//! ```text
//!   exit 0                     it was told to stop: so do we
//!   exit 1 at the first start  what is wrong was said in one line: so do we
//!   anything else              a crash: start it again, later if it did not live long
//! ```
//! Signals that stop or reload go on to the server. If this process is killed the system sends the
//! server SIGQUIT: it stops at once, and the next start recovers.

use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use base::settings::{publish_live, setting};
use base::{Error, Result};
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getppid};
use sd_notify::NotifyState;

use crate::config::{Config, Overrides};
use crate::listener::{self, Listener};
use crate::{control, log, postmaster, signals};

/// First number of the descriptors that the server inherits.
const FIRST_DESCRIPTOR: i32 = 100;
/// A server that lived as long as this did not crash "at once again".
const LONG_LIFE: Duration = Duration::from_secs(10);
/// The first pause before a server that crashed at once is started again; each further one doubles.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Where the server finds the number of the supervisor that it must not outlive.
const SUPERVISOR: &str = "THREADGRES_SUPERVISOR";

/// Keeps a server for the directory running until it is told to stop; the process's exit code.
/// `arguments` are those of the command that serves without a supervisor.
///
/// # Errors
/// As [`crate::serve`] before the server is started; when the program can't be started.
pub fn supervise(dir: &Path, overrides: Overrides, arguments: &[String]) -> Result<u8> {
    let mut set = signals::signals();
    set.add(Signal::SIGCHLD);
    set.thread_block().map_err(|e| Error::io("block signals", &e.into()))?;
    signals::report_sent_faults()?;
    let given = listener::inherited()?;
    let new = control::is_new(dir)?;
    let config = Config::load(dir, overrides.clone())?;
    if !new {
        control::check_free(dir)?;
    }
    publish_live(&config.values.settings);
    let listeners = if given.is_empty() { listener::open(&config.values.settings)? } else { given };
    for listener in &listeners {
        listener.listen()?;
    }
    inherit(&listeners)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals =
        SignalFd::with_flags(&set, flags).map_err(|e| Error::io("wait for signals", &e.into()))?;
    let tiny = config.values.settings.bool(setting::DEBUG_TINY);
    let supervisor = Supervisor {
        signals,
        arguments,
        listeners: listeners.len(),
        dir,
        overrides,
        long_life: if tiny { Duration::ZERO } else { LONG_LIFE },
        started: postmaster::now(),
    };
    let code = supervisor.run();
    postmaster::end(dir, &config.values.settings);
    code
}

/// Whether a supervisor has started this process.
pub fn is_supervised() -> bool {
    std::env::var_os(SUPERVISOR).is_some()
}

/// The supervisor that has started this process.
pub(crate) fn supervising() -> Option<u32> {
    std::env::var(SUPERVISOR).ok()?.parse().ok()
}

/// Called by the server: it ends when its supervisor does.
///
/// # Errors
/// When the supervisor has gone already.
pub fn follow_supervisor() -> Result<()> {
    let Some(pid) = std::env::var(SUPERVISOR).ok().and_then(|v| v.parse::<i32>().ok()) else {
        return Ok(());
    };
    let set = nix::sys::prctl::set_pdeathsig(Signal::SIGQUIT);
    set.map_err(|e| Error::io("follow the supervisor", &e.into()))?;
    // A session of its own: Linux's autogroups give each session one share of a busy machine, and a server that was started
    // from a shell would divide the share of that session with everything else in it.
    // It fails where the process leads one already.
    let _ = nix::unistd::setsid();
    if getppid().as_raw() == pid {
        return Ok(());
    }
    Err(base::err!(ADMIN_SHUTDOWN, "the supervisor (process {pid}) has gone"))
}

/// Tells the service manager, if there is one.
pub fn tell_manager(state: &[NotifyState<'_>]) {
    // A manager that can't be told is one that doesn't wait for it.
    let _ = sd_notify::notify(state);
}

/// Copies the sockets to consecutive descriptors that stay open in a program that is started.
fn inherit(listeners: &[Listener]) -> Result<()> {
    for (listener, wanted) in listeners.iter().zip(FIRST_DESCRIPTOR..) {
        let copied = copy_to(listener.descriptor(), wanted);
        let got = copied.map_err(|e| Error::io("copy a listening socket", &e.into()))?;
        if got != wanted {
            return Err(base::err!(INTERNAL_ERROR, "descriptor {wanted} is in use"));
        }
    }
    Ok(())
}

fn copy_to(descriptor: BorrowedFd<'_>, number: i32) -> nix::Result<i32> {
    fcntl(descriptor, FcntlArg::F_DUPFD(number))
}

struct Supervisor<'a> {
    signals: SignalFd,
    arguments: &'a [String],
    listeners: usize,
    dir: &'a Path,
    overrides: Overrides,
    /// [`LONG_LIFE`], but for tests.
    long_life: Duration,
    /// When this process was started, in seconds since 1970.
    started: u64,
}

/// The measure to take with a server that has ended.
#[derive(Debug, PartialEq)]
enum Verdict {
    Exit(u8),
    StartAgain,
}

impl Supervisor<'_> {
    fn run(&self) -> Result<u8> {
        let (mut first, mut pause, mut stopping) = (true, Duration::ZERO, false);
        loop {
            let started = Instant::now();
            let mut child = self.start()?;
            let status = self.watch(&mut child, &mut stopping)?;
            match verdict(status, first, stopping, self.restarts()) {
                Verdict::Exit(code) => return Ok(code),
                Verdict::StartAgain => {}
            }
            first = false;
            pause = next_pause(pause, started.elapsed() >= self.long_life);
            let when = match pause.as_millis() {
                0 => "at once".to_owned(),
                ms => format!("in {ms} ms"),
            };
            log::write(
                log::Level::Log,
                0,
                format_args!(
                    "server process (PID {}) {}; it is started again {when}",
                    child.id(),
                    describe(status)
                ),
            );
            if self.stopped_within(pause) {
                return Ok(1);
            }
        }
    }

    /// `restart_after_crash`, as the files say now.
    fn restarts(&self) -> bool {
        // Files that can't be read are no reason to give up a server that ran until now.
        let config = Config::load(self.dir, self.overrides.clone());
        config.map_or(true, |c| c.values.settings.bool(setting::RESTART_AFTER_CRASH))
    }

    fn start(&self) -> Result<Child> {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(self.arguments)
            .env("LISTEN_FDS", self.listeners.to_string())
            .env("LISTEN_FDS_FIRST_FD", FIRST_DESCRIPTOR.to_string())
            .env_remove("LISTEN_PID")
            .env(postmaster::STARTED, self.started.to_string())
            .env(SUPERVISOR, std::process::id().to_string());
        command.spawn().map_err(|e| Error::io("start the server", &e))
    }

    /// Hands signals on until the server has ended.
    fn watch(&self, child: &mut Child, stopping: &mut bool) -> Result<ExitStatus> {
        let pid = Pid::from_raw(child.id() as i32);
        loop {
            let ended = child.try_wait().map_err(|e| Error::io("wait for the server", &e))?;
            if let Some(status) = ended {
                return Ok(status);
            }
            let Some(signal) = self.next_signal(None) else { continue };
            match signal {
                Signal::SIGCHLD => {}
                Signal::SIGHUP => forward(pid, signal),
                stop => {
                    *stopping = true;
                    tell_manager(&[NotifyState::Stopping]);
                    forward(pid, stop);
                }
            }
        }
    }

    /// Whether we are told to stop before the time is over.
    fn stopped_within(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.next_signal(Some(until)) {
                Some(Signal::SIGTERM | Signal::SIGINT | Signal::SIGQUIT) => return true,
                Some(_) => {}
                None if Instant::now() >= until => return false,
                None => {}
            }
        }
    }

    /// The next signal; None when the time is over or nothing came after all.
    fn next_signal(&self, until: Option<Instant>) -> Option<Signal> {
        use std::os::fd::AsFd;
        let timeout = until.map(|u| u.saturating_duration_since(Instant::now()));
        let timeout = timeout.map_or(PollTimeout::NONE, |t| {
            PollTimeout::try_from(t.as_millis() + 1).unwrap_or(PollTimeout::MAX)
        });
        let mut waiting = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        // A poll that fails is tried again by the caller's loop.
        let _ = poll(&mut waiting, timeout);
        let info = self.signals.read_signal().ok()??;
        Signal::try_from(info.ssi_signo as i32).ok()
    }
}

fn forward(pid: Pid, signal: Signal) {
    // One that has just ended is noticed by the next look.
    let _ = kill(pid, signal);
}

fn verdict(status: ExitStatus, first: bool, stopping: bool, restart: bool) -> Verdict {
    let code = status.code();
    if code == Some(0) || stopping || !restart || (first && code == Some(1)) {
        return Verdict::Exit(code.unwrap_or(1) as u8);
    }
    Verdict::StartAgain
}

/// A server that lived long is started at once, others after a pause that doubles.
fn next_pause(last: Duration, lived_long: bool) -> Duration {
    match (lived_long, last) {
        (true, _) => Duration::ZERO,
        (false, Duration::ZERO) => PAUSE_MIN,
        (false, last) => (last * 2).min(PAUSE_MAX),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(number), _) => match Signal::try_from(number) {
            Ok(signal) => format!("was terminated by signal {number} ({signal})"),
            Err(_) => format!("was terminated by signal {number}"),
        },
        (None, code) => format!("exited with exit code {}", code.unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT_1: i32 = 1 << 8;

    #[test]
    fn a_crash_is_followed_by_a_start_and_an_order_by_the_end() {
        let verdict =
            |raw, first, stopping| verdict(ExitStatus::from_raw(raw), first, stopping, true);
        assert_eq!(verdict(0, false, false), Verdict::Exit(0));
        assert_eq!(verdict(EXIT_1, true, false), Verdict::Exit(1));
        assert_eq!(verdict(EXIT_1, false, false), Verdict::StartAgain);
        assert_eq!(verdict(9, true, false), Verdict::StartAgain);
        assert_eq!(verdict(9, false, true), Verdict::Exit(1));
        assert_eq!(super::verdict(ExitStatus::from_raw(9), false, false, false), Verdict::Exit(1));
        assert_eq!(describe(ExitStatus::from_raw(9)), "was terminated by signal 9 (SIGKILL)");
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_end_with_a_long_life() {
        let mut pause = next_pause(Duration::ZERO, false);
        assert_eq!(pause, PAUSE_MIN);
        for _ in 0..20 {
            pause = next_pause(pause, false);
        }
        assert_eq!(pause, PAUSE_MAX);
        assert_eq!(next_pause(pause, true), Duration::ZERO);
    }
}
