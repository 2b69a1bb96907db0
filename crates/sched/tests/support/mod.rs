//! Sources over socket pairs, and workers that run them.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sched::{Readiness, Source, Task, TaskRef, Workers};

type Run = dyn Fn(&Echo, Readiness) -> bool + Send + Sync;

/// A source whose `run` is a closure.
pub struct Echo {
    pub socket: UnixStream,
    task: TaskRef,
    run: Box<Run>,
    pub unsent: Mutex<Vec<u8>>,
    dropped: Arc<AtomicUsize>,
}

impl Source for Echo {
    fn task(&self) -> &TaskRef {
        &self.task
    }
    fn run(&self, ready: Readiness) -> bool {
        (self.run)(self, ready)
    }
    fn unsent(&self, answer: &[u8]) {
        self.unsent.lock().unwrap().extend_from_slice(answer);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sends back what is there; false at the end of the input.
pub fn echo(source: &Echo, _ready: Readiness) -> bool {
    let mut buffer = [0u8; 1024];
    loop {
        match (&source.socket).read(&mut buffer) {
            Ok(0) => return false,
            Ok(n) => (&source.socket).write_all(&buffer[..n]).unwrap(),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
            Err(_) => return false,
        }
    }
}

/// Workers with sources over socket pairs.
pub struct Server {
    pub workers: Arc<Workers>,
    dropped: Arc<AtomicUsize>,
}

impl Server {
    pub fn new(workers: usize) -> Server {
        let workers = Workers::start(workers).unwrap();
        Server { workers, dropped: Arc::default() }
    }

    pub fn connect(
        &self,
        run: impl Fn(&Echo, Readiness) -> bool + Send + Sync + 'static,
    ) -> (UnixStream, TaskRef) {
        let (client, socket) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let (fd, task) = (socket.as_raw_fd(), Task::new("test"));
        let dropped = Arc::clone(&self.dropped);
        let (run, unsent) = (Box::new(run), Mutex::default());
        let source = Echo { socket, task: task.clone(), run, unsent, dropped };
        self.workers.add(fd, Arc::new(source)).unwrap();
        (client, task)
    }

    /// Ends once all clients are gone; the number of sources that were dropped.
    pub fn end(self) -> usize {
        self.workers.shutdown();
        self.workers.join();
        self.dropped.load(Ordering::SeqCst)
    }
}

/// Sends `text` and waits until it comes back.
pub fn ask(client: &mut UnixStream, text: &[u8]) {
    client.write_all(text).unwrap();
    let mut answer = vec![0; text.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, text);
}
