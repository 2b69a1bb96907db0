//! The system calls of this crate, each in one small function.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Prefetches a cache line; an address where nothing is does no harm.
#[inline]
pub fn prefetch_line(at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(at)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Sleeps while `*word == expected`, at most `timeout_ns`. Returns early for any reason.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) {
    let timeout = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` and `timeout` live across the call; the kernel only reads them.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout,
        );
    }
}

/// The kernel's monotonic clock, in nanoseconds; no system call where the vDSO has it.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a timespec into one of ours. It fails for unknown clocks only.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Processor time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a timespec into one of ours. It fails for unknown clocks only.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Wakes one sleeper of [`futex_wait`].
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel only uses the address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        );
    }
}

// Commands of membarrier(2).
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whether [`heavy_fence`] executes its barrier on other processors, too.
static EXPEDITED: AtomicBool = AtomicBool::new(false);

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// From now on [`light_fence`] costs nothing, if the system allows it.
pub fn prepare_fences() {
    let registered = membarrier(REGISTER_PRIVATE_EXPEDITED);
    if registered && membarrier(PRIVATE_EXPEDITED) {
        EXPEDITED.store(true, Ordering::SeqCst);
    }
}

/// A full barrier as seen by who executes a [`heavy_fence`]: its store before and its load after are in this order.
#[inline]
pub fn light_fence() {
    match EXPEDITED.load(Ordering::Relaxed) {
        true => compiler_fence(Ordering::SeqCst),
        false => fence(Ordering::SeqCst),
    }
}

/// A full barrier, on all processors that run this process where light fences count on it.
pub fn heavy_fence() {
    fence(Ordering::SeqCst);
    if EXPEDITED.load(Ordering::SeqCst) {
        // Registered, it fails no more.
        membarrier(PRIVATE_EXPEDITED);
    }
    fence(Ordering::SeqCst);
}

/// The system's number of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }
}

/// Reads what the system has of this in its cache. Where that is nothing it begins to read it from the disk, if
/// the file system can do so without waiting, and fails.
pub fn read_cached(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes, which are all ours.
    let read = unsafe {
        let at = at as libc::off_t;
        libc::preadv2(file.as_raw_fd(), &raw const piece, 1, at, libc::RWF_NOWAIT)
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// A non-blocking event counter.
pub fn eventfd() -> io::Result<RawFd> {
    // SAFETY: no pointers.
    check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
}

/// Makes an event counter readable.
pub fn eventfd_write(fd: RawFd) {
    let one = 1u64;
    // SAFETY: eight readable bytes.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

/// Gives a socket what it takes now; how much of it. A failure is for the next one who uses the socket.
pub fn send(fd: RawFd, bytes: &[u8]) -> usize {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: so many readable bytes.
    let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).unwrap_or(0)
}

/// Makes an event counter unreadable again.
pub fn eventfd_drain(fd: RawFd) {
    let mut count = 0u64;
    // SAFETY: eight writable bytes.
    unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
}

/// Closes a descriptor that this crate made.
pub fn close(fd: RawFd) {
    // SAFETY: callers own the descriptor.
    unsafe { libc::close(fd) };
}

/// A new epoll set.
pub fn epoll_create() -> io::Result<RawFd> {
    // SAFETY: no pointers.
    check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// Adds, changes or removes a descriptor.
pub fn epoll_ctl(set: RawFd, op: libc::c_int, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    // SAFETY: `event` lives across the call.
    check(unsafe { libc::epoll_ctl(set, op, fd, &raw mut event) }).map(drop)
}

/// Waits for events; an interrupted or failed call is no events. -1 waits for ever.
pub fn epoll_wait(set: RawFd, events: &mut [libc::epoll_event], timeout_ms: i32) -> usize {
    // SAFETY: the kernel writes at most `events.len()` entries.
    let n = unsafe {
        libc::epoll_wait(set, events.as_mut_ptr(), events.len() as libc::c_int, timeout_ms)
    };
    usize::try_from(n).unwrap_or(0)
}

/// Waits until one of the descriptors has what it asks for; false on time-out or interruption.
pub fn poll(fds: &mut [libc::pollfd], timeout_ms: i32) -> bool {
    // SAFETY: the kernel reads and writes exactly these entries.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) > 0 }
}

/// Takes a connection from a listening socket: one that does not block and that programs which are
/// started don't inherit; over TCP, with the address of who came.
pub fn accept(listening: RawFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    // SAFETY: all zeros are a sockaddr_storage of no family.
    let mut from = unsafe { std::mem::zeroed::<libc::sockaddr_storage>() };
    let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let place = (&raw mut from).cast();
    // SAFETY: the kernel writes at most `len` bytes of `from`, and `len`.
    let fd = check(unsafe { libc::accept4(listening, place, &raw mut len, flags) })?;
    // SAFETY: the descriptor is new: nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok((socket, internet_address(&from)))
}

fn internet_address(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let place = std::ptr::from_ref(from);
    let (ip, port): (IpAddr, u16) = match i32::from(from.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is; the storage is large enough and aligned for all.
            let v4 = unsafe { &*place.cast::<libc::sockaddr_in>() };
            (Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into(), v4.sin_port)
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*place.cast::<libc::sockaddr_in6>() };
            (Ipv6Addr::from(v6.sin6_addr.s6_addr).into(), v6.sin6_port)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be(port)))
}

/// The processor on which the system last handled a packet for this socket; none for a Unix socket.
pub fn incoming_processor(socket: RawFd) -> Option<usize> {
    let mut processor: libc::c_int = -1;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut processor).cast();
    // SAFETY: the kernel writes at most `len` bytes of `processor`, and `len`.
    let known = check(unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, place, &raw mut len)
    });
    known.ok().and(usize::try_from(processor).ok())
}

/// The processor that runs the caller now.
pub fn processor() -> Option<usize> {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The processors that this process may use: those of the thread that asks first.
pub fn processors() -> &'static [usize] {
    static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
    PROCESSORS.get_or_init(allowed)
}

/// The processors that the calling thread may use; none if the system does not say.
fn allowed() -> Vec<usize> {
    // SAFETY: all zeros are an empty set.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: the kernel writes at most a set.
    let known = check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) });
    let most = if known.is_ok() { libc::CPU_SETSIZE as usize } else { 0 };
    // SAFETY: below the set's size.
    (0..most).filter(|p| unsafe { libc::CPU_ISSET(*p, &set) }).collect()
}

/// The only processor that the calling thread may use.
pub fn bound_to() -> Option<usize> {
    match allowed()[..] {
        [processor] => Some(processor),
        _ => None,
    }
}

/// From now on the calling thread keeps off a processor, if there is another one.
pub fn keep_off(processor: usize) {
    let others: Vec<usize> = processors().iter().copied().filter(|p| *p != processor).collect();
    if !others.is_empty() {
        // Where the system forbids it, the thread runs as before.
        let _ = bind(&others);
    }
}

/// From now on the calling thread, which may have been started by one that is bound, runs on all of
/// [`processors`].
pub fn unbind() {
    // It fails where the system forbids it, and then nobody is bound either.
    let _ = bind(processors());
}

/// From now on that thread of this process runs on all of [`processors`].
pub fn unbind_thread(thread: i32) {
    // As in `unbind`; and the thread may have ended.
    let _ = bind_thread(thread, processors());
}

/// From now on the calling thread runs on these processors only.
pub fn bind(processors: &[usize]) -> io::Result<()> {
    bind_thread(0, processors)
}

fn bind_thread(thread: i32, processors: &[usize]) -> io::Result<()> {
    // SAFETY: all zeros are an empty set.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    for processor in processors {
        // SAFETY: they came out of such a set, so they fit into this one.
        unsafe { libc::CPU_SET(*processor, &mut set) };
    }
    // SAFETY: the kernel reads a set.
    check(unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) }).map(drop)
}

/// Milliseconds from `now` to `deadline` for epoll and poll, rounded up; -1 for no deadline.
pub fn timeout_ms(now: u64, deadline: u64) -> i32 {
    if deadline == crate::clock::NEVER {
        return -1;
    }
    i32::try_from(deadline.saturating_sub(now).div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// The lowest usable address of the calling thread's own stack.
pub fn thread_stack_limit() -> usize {
    let mut attr = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut start: *mut libc::c_void = std::ptr::null_mut();
    let mut size = 0usize;
    // SAFETY: pthread_getattr_np initialises `attr` when it returns 0; it is destroyed after use.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attr.as_mut_ptr()) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(attr.as_ptr(), &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(attr.as_mut_ptr());
    }
    start as usize
}
