//! `session_model = thread`. Alone in its binary: the setting is the process's.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use base::settings::{Settings, Value, publish_live, setting};
use base::{WaitEvent, sqlstate};
use sched::{
    Interrupt, Readiness, Source, Task, TaskRef, Wake, Workers, check_interrupts, park,
    wait_readable,
};

struct Session<F>(UnixStream, TaskRef, F);

impl<F: Fn(&UnixStream, Readiness) -> bool + Send + Sync + 'static> Source for Session<F> {
    fn task(&self) -> &TaskRef {
        &self.1
    }
    fn run(&self, ready: Readiness) -> bool {
        (self.2)(&self.0, ready)
    }
}

fn connect(
    workers: &Workers,
    run: impl Fn(&UnixStream, Readiness) -> bool + Send + Sync + 'static,
) -> (UnixStream, TaskRef) {
    let (client, socket) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (fd, task) = (socket.as_raw_fd(), Task::new("test"));
    workers.add(fd, Arc::new(Session(socket, task.clone(), run))).unwrap();
    (client, task)
}

fn start() -> Arc<Workers> {
    let mut settings = Settings::default();
    settings.set(setting::SESSION_MODEL, Value::Str("thread".into()));
    publish_live(&settings);
    Workers::start(1).unwrap()
}

fn end(workers: &Workers) {
    workers.shutdown();
    workers.join();
    while workers.sources() > 0 {
        std::thread::yield_now();
    }
}

fn echo(mut socket: &UnixStream, _: Readiness) -> bool {
    let mut bytes = [0; 64];
    match socket.read(&mut bytes) {
        Ok(0) => false,
        Ok(n) => socket.write_all(&bytes[..n]).is_ok(),
        Err(_) => true,
    }
}

#[test]
fn each_session_has_a_thread() {
    let workers = start();
    let mut clients: Vec<_> = (0..20).map(|_| connect(&workers, echo).0).collect();
    for _ in 0..50 {
        clients.iter_mut().for_each(|c| c.write_all(b"hi").unwrap());
        clients.iter_mut().for_each(|c| c.read_exact(&mut [0; 2]).unwrap());
    }
    assert_eq!(workers.sources(), 20);
    drop(clients);
    end(&workers);
}

#[test]
fn an_idle_session_waits_for_its_client_and_can_be_woken() {
    let workers = start();
    let (mut client, task) = connect(&workers, |mut socket, ready| {
        if ready.woken {
            let what = if check_interrupts().is_err() { b"i" } else { b"w" };
            socket.write_all(what).unwrap();
        }
        !ready.hangup
    });
    while task.wait().map(|w| w.0) != Some(WaitEvent::ClientClientRead) {
        std::thread::yield_now();
    }
    let mut answer = [0];
    workers.wake(&task);
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"w");
    task.interrupt(Interrupt::Terminate);
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"i");
    workers.wake_at(&task, Some(Instant::now() + Duration::from_millis(2)));
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"w");
    drop(client);
    end(&workers);
}

#[test]
fn waiting_for_the_socket_inside_a_run_can_be_interrupted() {
    let workers = start();
    let (send, receive) = mpsc::channel();
    let (mut client, task) = connect(&workers, move |mut socket, _| {
        let mut got = 0;
        while got < 4 {
            match socket.read(&mut [0; 4]) {
                Ok(0) => return false,
                Ok(n) => got += n,
                Err(_) => {
                    let event = WaitEvent::ClientClientRead;
                    if let Err(error) = wait_readable(socket.as_raw_fd(), event) {
                        send.send(error.code()).unwrap();
                        return false;
                    }
                }
            }
        }
        socket.write_all(b"four").is_ok()
    });
    client.write_all(b"ab").unwrap();
    client.write_all(b"cd").unwrap();
    client.read_exact(&mut [0; 4]).unwrap();
    client.write_all(b"ab").unwrap();
    task.interrupt(Interrupt::Terminate);
    assert_eq!(receive.recv().unwrap(), sqlstate::ADMIN_SHUTDOWN);
    drop(client);
    end(&workers);
}

#[test]
fn a_hang_up_ends_a_wait() {
    let workers = start();
    let (send, receive) = mpsc::channel();
    let (mut client, task) = connect(&workers, move |mut socket, ready| {
        if !ready.hangup {
            let _ = socket.read(&mut [0]);
            let wake = park(WaitEvent::LockTransactionid, None);
            send.send((wake, check_interrupts().unwrap_err().code())).unwrap();
        }
        false
    });
    client.write_all(b"x").unwrap();
    while task.wait().map(|w| w.0) != Some(WaitEvent::LockTransactionid) {
        std::thread::yield_now();
    }
    drop(client);
    assert_eq!(receive.recv().unwrap(), (Wake::Interrupted, sqlstate::CONNECTION_FAILURE));
    end(&workers);
}
