//! Samples of running threads: registers and stack bytes, taken by a signal handler.
//!
//! ```text
//!   ITIMER_PROF ─SIGPROF─▶ handler, on the thread that used the processor
//!                             registers + up to STACK_BYTES from the stack pointer upwards
//!                             ▼
//!                          ring of slots   free ─▶ writing ─▶ full ─(drain)─▶ free
//! ```
//! * The handler makes two system calls, takes no lock, allocates nothing, and follows no pointer
//!   of the interrupted code: the stack is copied by the kernel (`process_vm_readv`), which stops at
//!   a guard page or the end of a mapping instead of faulting. So it does not matter what the thread
//!   was doing: in the middle of a switch between coroutines, in the allocator, in C code. Stacks
//!   are walked later, by [`super::unwind`], over the copy.
//! * The timer counts processor time of the whole process, and its signal goes to the thread that
//!   used it up. Nothing is sampled, and no signal sent, while no profile is being taken.
//! * One profile at a time. The ring stays allocated after the first one (a late signal may still
//!   write to it), and the handler stays installed (the signal's default would end the process).

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a stack that are copied.
pub const STACK_BYTES: usize = 48 << 10;
/// Samples between two drains; those beyond are lost, and counted.
const SLOTS: usize = 192;
const PAGE: usize = 4096;
/// Pieces in which a stack is copied: the kernel copies whole pieces.
const PIECES: usize = STACK_BYTES / PAGE + 1;

const FREE: u32 = 0;
const WRITING: u32 = 1;
const FULL: u32 = 2;

/// One sample.
pub struct Sample {
    /// The task that ran: its kind, its number to users, its statement. None outside of any task.
    pub task: Option<sched::Running>,
    /// The thread.
    pub thread: i32,
    /// Program counter, stack pointer, frame pointer, and (aarch64) link register.
    pub registers: [u64; 4],
    /// How much of `stack` is valid.
    pub length: usize,
    /// The bytes from the stack pointer upwards.
    pub stack: [u8; STACK_BYTES],
}

struct Slot {
    state: AtomicU32,
    sample: UnsafeCell<MaybeUninit<Sample>>,
}

// SAFETY: the sample is touched only by whoever moved `state` to WRITING, and by the one drain after
// it was FULL.
unsafe impl Sync for Slot {}

static RING: OnceLock<Box<[Slot]>> = OnceLock::new();
static NEXT: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static ON: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// The timer, while it runs. One at a time.
pub struct Sampler(());

impl Sampler {
    /// Starts to sample this often a second of processor time; None while somebody else does.
    ///
    /// # Errors
    /// When the system refuses the handler or the timer.
    pub fn start(frequency: u32) -> io::Result<Option<Sampler>> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        // From here on its drop gives the place back.
        let mut sampler = Sampler(());
        PROCESS.store(std::process::id() as i32, Ordering::Relaxed);
        let slot =
            || Slot { state: AtomicU32::new(FREE), sample: UnsafeCell::new(MaybeUninit::uninit()) };
        RING.get_or_init(|| (0..SLOTS).map(|_| slot()).collect());
        sampler.drain(|_| ());
        LOST.store(0, Ordering::Relaxed);
        install()?;
        ON.store(true, Ordering::Release);
        set_timer(1_000_000 / i64::from(frequency.max(1)))?;
        Ok(Some(sampler))
    }

    /// Hands over the samples that have come since the last call. The ring holds two seconds of
    /// one busy processor, so this is called many times a second.
    pub fn drain(&mut self, mut take: impl FnMut(&Sample)) {
        for slot in RING.get().into_iter().flatten() {
            if slot.state.load(Ordering::Acquire) == FULL {
                // SAFETY: FULL says that the handler has written it and is done; only this drain
                // (there is one Sampler) moves on from FULL.
                take(unsafe { (*slot.sample.get()).assume_init_ref() });
                slot.state.store(FREE, Ordering::Release);
            }
        }
    }

    /// Samples for which there was no room.
    pub fn lost(&self) -> u64 {
        LOST.load(Ordering::Relaxed)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // It can't fail with these arguments; and if it did, the handler would do nothing.
        let _ = set_timer(0);
        ON.store(false, Ordering::Release);
        TAKEN.store(false, Ordering::Release);
    }
}

fn set_timer(interval_us: i64) -> io::Result<()> {
    let interval = libc::timeval { tv_sec: 0, tv_usec: interval_us };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: a system call that reads `timer`.
    match unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn install() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    // SAFETY: zeroes are a valid sigaction; the handler is async-signal-safe (see the module) and
    // needs little stack. Coroutines have room for it: `check_stack` keeps a reserve.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler. See the module for what it may do.
extern "C" fn on_signal(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if !ON.load(Ordering::Acquire) {
        return;
    }
    let Some(ring) = RING.get() else { return };
    let slot = &ring[NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS];
    let claim = slot.state.compare_exchange(FREE, WRITING, Ordering::Acquire, Ordering::Relaxed);
    if claim.is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: with SA_SIGINFO the kernel passes a ucontext_t. The slot is this handler's until it is
    // FULL; each field is written before that. errno is put back for the interrupted code.
    unsafe {
        let errno = *libc::__errno_location();
        let sample = (*slot.sample.get()).as_mut_ptr();
        let registers = registers(&*context.cast::<libc::ucontext_t>());
        (&raw mut (*sample).task).write(sched::running());
        (&raw mut (*sample).thread).write(libc::syscall(libc::SYS_gettid) as i32);
        (&raw mut (*sample).registers).write(registers);
        let length = copy_stack(registers[1] as usize, (&raw mut (*sample).stack).cast());
        (&raw mut (*sample).length).write(length);
        *libc::__errno_location() = errno;
    }
    slot.state.store(FULL, Ordering::Release);
}

/// Copies from `from` upwards as far as memory can be read; returns how many bytes.
///
/// # Safety
/// `to` has room for [`STACK_BYTES`].
unsafe fn copy_stack(from: usize, to: *mut libc::c_void) -> usize {
    let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
    let (mut at, end) = (from, from.saturating_add(STACK_BYTES));
    for piece in &mut pieces {
        let next = ((at / PAGE + 1) * PAGE).min(end);
        *piece = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: next - at };
        at = next;
    }
    let local = libc::iovec { iov_base: to, iov_len: STACK_BYTES };
    // SAFETY: the kernel writes at most STACK_BYTES to `to`; what it reads, it checks.
    let copied = unsafe {
        let process = PROCESS.load(Ordering::Relaxed);
        libc::process_vm_readv(process, &raw const local, 1, pieces.as_ptr(), PIECES as u64, 0)
    };
    usize::try_from(copied).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let register = |r: libc::c_int| context.uc_mcontext.gregs[r as usize] as u64;
    [register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP), 0]
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let machine = &context.uc_mcontext;
    [machine.pc, machine.sp, machine.regs[29], machine.regs[30]]
}
