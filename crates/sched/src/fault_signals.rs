//! SIGSEGV and SIGBUS that somebody sent, as opposed to those of the program's own faults.
//!
//! The standard library's handler takes either for a fault: it puts the default action back and returns, so that the
//! instruction at fault runs and ends the process. For a signal that was sent there is no such
//! instruction, and the first one would be lost without a word. The handler here reports who sent it, and then
//! ends the process as the signal does by default. Faults are left to the handler before it.

use std::io;
use std::sync::OnceLock;

/// A signal that somebody sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSignal {
    /// Its number.
    pub signal: i32,
    /// The process that sent it.
    pub pid: i32,
    /// That one's user.
    pub uid: u32,
}

/// Called in a signal handler: it may neither take memory nor locks.
pub type Report = fn(SentSignal);

const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

static REPORT: OnceLock<Report> = OnceLock::new();
/// The actions before, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Has sent signals reported before they end the process. Does nothing the second time.
///
/// # Errors
/// When the system refuses the handler.
pub fn report_sent_faults(report: Report) -> io::Result<()> {
    if REPORT.set(report).is_err() {
        return Ok(());
    }
    let mut before = [default_action(); 2];
    for (signal, before) in SIGNALS.into_iter().zip(&mut before) {
        // SAFETY: only writes to `before`.
        check(unsafe { libc::sigaction(signal, std::ptr::null(), before) })?;
    }
    BEFORE.get_or_init(|| before);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    let mut action = default_action();
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in SIGNALS {
        // SAFETY: the handler takes no memory and no lock.
        check(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })?;
    }
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zeroes are a sigaction, with the default's handler and an empty mask.
    unsafe { std::mem::zeroed() }
}

extern "C" fn on_signal(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo_t; codes up to 0 say that a process sent the
    // signal, and which. The handler before is called as it would be without this one.
    unsafe {
        if (*info).si_code <= 0 {
            if let Some(report) = REPORT.get() {
                report(SentSignal { signal, pid: (*info).si_pid(), uid: (*info).si_uid() });
            }
            libc::signal(signal, libc::SIG_DFL);
            // Comes when this handler returns, which blocks it.
            libc::raise(signal);
            return;
        }
        let place = SIGNALS.iter().position(|known| *known == signal).unwrap_or(0);
        let before = BEFORE.get().map(|all| all[place]);
        match before.filter(|b| ![libc::SIG_DFL, libc::SIG_IGN].contains(&b.sa_sigaction)) {
            Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 => {
                type Action = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                let action: Action = std::mem::transmute(before.sa_sigaction);
                action(signal, info, context);
            }
            Some(before) => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(before.sa_sigaction);
                handler(signal);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
