//! A thread of the driver: waits for its clients' sockets and timers, and lets each go on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::client::{Client, Context, Wish};
use super::{Control, Tally, Window};
use crate::{Error, Result};

/// How long clients may take at the end to finish what they began.
const GRACE: Duration = Duration::from_secs(10);
/// What transactions are counted under that did not end even then.
const UNFINISHED: &str = "unfinished";
/// How often flags are looked at when nothing else happens.
const NAP: Duration = Duration::from_millis(100);
/// Events taken at once.
const BATCH: usize = 256;

/// Connects the clients with these ids, says so, and runs them through each window that comes, saying
/// when all have finished; keeps them connected until the channel closes.
pub fn run(
    control: &Control<'_>,
    ids: impl Iterator<Item = u32>,
    said: &Sender<()>,
    orders: &Receiver<Window>,
) -> Tally {
    match serve(control, ids, said, orders) {
        Ok(tally) => tally,
        Err(error) => {
            control.fail(error);
            Tally::new()
        }
    }
}

fn serve(
    control: &Control<'_>,
    ids: impl Iterator<Item = u32>,
    said: &Sender<()>,
    orders: &Receiver<Window>,
) -> Result<Tally> {
    let mut clients = Vec::new();
    for id in ids {
        let client = Client::connect(control, id);
        if control.ended() {
            return Ok(Tally::new());
        }
        clients.push(client?);
    }
    let now = Instant::now();
    let window = Window { from: now, until: now };
    let mut worker = Worker::new(clients, Context { control, window, tally: Tally::new() })?;
    let _ = said.send(());
    for window in orders {
        worker.cx.window = window;
        worker.work()?;
        let _ = said.send(());
    }
    Ok(worker.cx.tally)
}

struct Worker<'a> {
    epoll: Epoll,
    clients: Vec<Client<'a>>,
    /// Whether the client's socket is watched for room to write, too.
    writing: Vec<bool>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    cx: Context<'a>,
    running: usize,
}

impl<'a> Worker<'a> {
    fn new(clients: Vec<Client<'a>>, cx: Context<'a>) -> Result<Worker<'a>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?;
        let writing = vec![false; clients.len()];
        Ok(Worker { epoll, clients, writing, timers: BinaryHeap::new(), cx, running: 0 })
    }

    /// Runs the clients until the window is over and each has finished what it began.
    fn work(&mut self) -> Result<()> {
        self.running = self.clients.len();
        for i in 0..self.clients.len() {
            self.epoll.add(self.clients[i].stream(), event(i, false)).map_err(system)?;
            self.writing[i] = false;
            let wish = self.clients[i].begin(&mut self.cx, Instant::now())?;
            self.grant(i, wish)?;
        }
        let mut events = vec![EpollEvent::empty(); BATCH];
        let mut over: Option<Instant> = None;
        while self.running > 0 {
            let now = Instant::now();
            if now >= self.cx.window.until {
                // From when it is noticed: a process that was stopped meanwhile still reads its answers.
                let noticed = *over.get_or_insert(now);
                if now > noticed + GRACE {
                    *self.cx.tally.errors.entry(UNFINISHED.to_owned()).or_default() +=
                        self.running as u64;
                    return Ok(());
                }
            }
            if self.cx.control.ended() {
                return Ok(());
            }
            let count = match self.epoll.wait(&mut events, self.timeout(now)) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(error) => return Err(system(error)),
            };
            for event in &events[..count] {
                let i = event.data() as usize;
                let wish = self.clients[i].ready(&mut self.cx)?;
                self.grant(i, wish)?;
            }
            self.wake()?;
        }
        Ok(())
    }

    fn wake(&mut self) -> Result<()> {
        if self.timers.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        while let Some(Reverse((time, i))) = self.timers.peek().copied() {
            if time > now {
                break;
            }
            self.timers.pop();
            let was_lost = self.clients[i].is_lost();
            let wish = self.clients[i].wake(&mut self.cx, now)?;
            if was_lost && !self.clients[i].is_lost() && !self.clients[i].is_done() {
                // The old socket left the set when it was closed.
                self.epoll.add(self.clients[i].stream(), event(i, false)).map_err(system)?;
                self.writing[i] = false;
            }
            self.grant(i, wish)?;
        }
        Ok(())
    }

    fn grant(&mut self, i: usize, wish: Wish) -> Result<()> {
        match wish {
            Wish::Socket(writing) => {
                if writing != self.writing[i] {
                    self.writing[i] = writing;
                    let stream = self.clients[i].stream();
                    self.epoll.modify(stream, &mut event(i, writing)).map_err(system)?;
                }
            }
            Wish::Timer(time) => {
                if self.clients[i].is_lost() {
                    // A broken socket would be ready for ever.
                    let _ = self.epoll.delete(self.clients[i].stream());
                }
                self.timers.push(Reverse((time, i)));
            }
            Wish::Done => {
                self.running -= 1;
                // What the server still says to it is of no interest; a lost one isn't in the set.
                let _ = self.epoll.delete(self.clients[i].stream());
            }
        }
        Ok(())
    }

    fn timeout(&self, now: Instant) -> EpollTimeout {
        let next = self
            .timers
            .peek()
            .map_or(NAP, |Reverse((time, _))| time.saturating_duration_since(now).min(NAP));
        // Up to whole milliseconds, so that nothing wakes too early and turns in circles.
        let ms = next.as_micros().div_ceil(1000) as u16;
        EpollTimeout::from(ms)
    }
}

fn event(i: usize, writing: bool) -> EpollEvent {
    let mut flags = EpollFlags::EPOLLIN;
    if writing {
        flags |= EpollFlags::EPOLLOUT;
    }
    EpollEvent::new(flags, i as u64)
}

fn system(error: nix::errno::Errno) -> Error {
    Error::new(format!("epoll: {error}"))
}
