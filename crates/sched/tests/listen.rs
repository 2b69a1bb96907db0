//! Listening sockets on workers.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sched::{Acceptor, Readiness, Source, Task, TaskRef, Workers};

/// Sends back what is there; `x` takes as long as the test says, like a long statement.
struct Echo {
    socket: TcpStream,
    task: TaskRef,
    door: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    refused: AtomicUsize,
    /// Sources that go on and on.
    occupied: AtomicUsize,
    free: AtomicBool,
}

impl Source for Echo {
    fn task(&self) -> &TaskRef {
        &self.task
    }
    fn run(&self, _ready: Readiness) -> bool {
        let mut buffer = [0u8; 64];
        loop {
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    if buffer[0] == b'x' {
                        self.door.occupied.fetch_add(1, Ordering::SeqCst);
                        while !self.door.free.load(Ordering::SeqCst) {
                            sched::check_interrupts().unwrap();
                        }
                    }
                    if (&self.socket).write_all(&buffer[..n]).is_err() {
                        return false;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

struct Door(Weak<Workers>, Arc<Counts>);

impl Acceptor for Door {
    fn accepted(&self, socket: OwnedFd, from: Option<SocketAddr>) {
        self.1.accepted.fetch_add(1, Ordering::SeqCst);
        assert!(from.is_some_and(|a| a.ip().is_loopback()), "{from:?}");
        let socket = TcpStream::from(socket);
        let echo = Echo { task: Task::new("test"), door: self.1.clone(), socket };
        let workers = self.0.upgrade().expect("the workers outlive the test");
        workers.add(echo.socket.as_raw_fd(), Arc::new(echo)).unwrap();
    }
    fn refused(&self, error: &io::Error) {
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        self.1.refused.fetch_add(1, Ordering::SeqCst);
    }
}

struct Place {
    workers: Arc<Workers>,
    counts: Arc<Counts>,
    address: SocketAddr,
    /// Open for as long as the workers look at it.
    _listener: TcpListener,
}

fn place(workers: usize) -> Place {
    let workers = Workers::start(workers).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let counts = Arc::new(Counts::default());
    let door = Door(Arc::downgrade(&workers), counts.clone());
    workers.listen(listener.as_raw_fd(), Box::new(door));
    Place { workers, counts, address: listener.local_addr().unwrap(), _listener: listener }
}

fn ask(client: &mut TcpStream) {
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
}

/// One test: the limit on descriptors is the process's.
#[test]
fn workers_let_clients_in() {
    bursts_are_let_in_whole();
    workers_come_and_go();
    long_statements_let_them_in();
    without_descriptors_clients_wait();
}

fn bursts_are_let_in_whole() {
    let place = place(2);
    let mut clients: Vec<_> =
        (0..300).map(|_| TcpStream::connect(place.address).unwrap()).collect();
    clients.iter_mut().for_each(ask);
    assert_eq!(place.counts.accepted.load(Ordering::SeqCst), 300);
    assert_eq!(place.workers.sources(), 300);
    end(place, clients);
}

fn workers_come_and_go() {
    let place = place(1);
    let mut clients = Vec::new();
    for workers in [4, 2, 3, 1, 2, 1] {
        place.workers.resize(workers).unwrap();
        while place.workers.running() > workers {
            std::thread::yield_now();
        }
        clients.extend((0..20).map(|_| TcpStream::connect(place.address).unwrap()));
        clients.iter_mut().for_each(ask);
    }
    end(place, clients);
}

fn long_statements_let_them_in() {
    let place = place(2);
    let mut hogs: Vec<_> = (0..4).map(|_| TcpStream::connect(place.address).unwrap()).collect();
    hogs.iter_mut().for_each(|hog| hog.write_all(b"x").unwrap());
    while place.counts.occupied.load(Ordering::SeqCst) < 4 {
        std::thread::yield_now();
    }
    // These are served while both workers have two that go on and on.
    let mut clients: Vec<_> = (0..50).map(|_| TcpStream::connect(place.address).unwrap()).collect();
    clients.iter_mut().for_each(ask);
    place.counts.free.store(true, Ordering::SeqCst);
    for mut hog in hogs {
        hog.read_exact(&mut [0]).unwrap();
        clients.push(hog);
    }
    end(place, clients);
}

fn without_descriptors_clients_wait() {
    let place = place(2);
    let began = Instant::now();
    // The sockets are there before the limit falls.
    let sockets: Vec<_> = (0..10).map(|_| raw_socket()).collect();
    let before = set_limit(sockets.iter().map(AsRawFd::as_raw_fd).max().unwrap() as u64 + 1);
    let mut clients: Vec<_> = sockets.into_iter().map(|s| connect(s, place.address)).collect();
    for client in &mut clients {
        client.write_all(b"hello").unwrap();
    }
    // Tried again and again, but not all the time.
    while place.counts.refused.load(Ordering::SeqCst) < 6 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (refused, pauses) = (place.counts.refused.load(Ordering::SeqCst), began.elapsed());
    assert!(refused as u128 <= 2 * (pauses.as_millis() / 100 + 1), "{refused} in {pauses:?}");
    assert_eq!(place.counts.accepted.load(Ordering::SeqCst), 0);
    set_limit(before);
    for client in &mut clients {
        client.read_exact(&mut [0; 5]).unwrap();
    }
    end(place, clients);
}

fn end(place: Place, clients: Vec<TcpStream>) {
    drop(clients);
    place.workers.shutdown();
    place.workers.join();
    assert_eq!(place.workers.sources(), 0);
}

fn raw_socket() -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: no pointers; a new descriptor that nobody else owns.
    unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)) }
}

fn connect(socket: OwnedFd, address: SocketAddr) -> TcpStream {
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let len = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: the kernel reads `len` bytes of `to`.
    let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const to).cast(), len) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    TcpStream::from(socket)
}

/// Sets the limit on open descriptors; what it was.
fn set_limit(limit: u64) -> u64 {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes and reads one of ours.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut now), 0);
        let before = std::mem::replace(&mut now.rlim_cur, limit);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const now), 0);
        before
    }
}
