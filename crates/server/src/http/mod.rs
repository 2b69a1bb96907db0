//! The page to look at, its data as JSON, and `/metrics` for Prometheus: a small HTTP/1.1 server
//! (RFC 9112) on loopback, off unless `http_port` is set.
//!
//! ```text
//!   one thread:  poll ──▶ accept ──▶ client::Client  reading ─▶ routes ─▶ writing ─▶ reading …
//!                  ▲                                     │ takes seconds (a flame graph)
//!                  └── a byte on the bell ◀── job ◀──────┘ a thread, at most JOBS_MAX at a time
//! ```
//!
//! * **A slow client holds nothing**: an answer is complete before its first byte is sent, so no
//!   lock, snapshot or session waits for a client. Each step has a deadline, and when CLIENTS_MAX
//!   are connected a newcomer takes the place of whoever has been at the same step for longest.
//! * **Nobody who isn't known** ([`login`]): the password of a role with the rights of `pg_monitor`, or a
//!   token that the owner of the data directory can read. Guesses take turns ([`gate`]). The documents
//!   ([`docs`]) are for everybody on this machine.
//! * **Only this machine**: passwords go over the wire as they are, so addresses that others could
//!   reach are refused. A page of another origin that a browser on this machine shows must not read the
//!   answers either: a request whose `Host` is a name that isn't ours (DNS rebinding) and one that
//!   the browser marks as cross-site are refused.
//! * Only GET and HEAD: nothing here changes anything.
//! * It doesn't use the workers, so that it answers while they are all stuck.
//!
//! Left out: TLS, compression, request bodies, pipelining beyond one request at a time (the next
//! one waits in the buffer).

mod api;
mod client;
mod docs;
pub mod endpoint;
mod gate;
pub mod login;
pub(crate) mod metrics;
mod past;
mod request;
mod response;
mod routes;
mod view;

pub(crate) use view::time_ms;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use base::{Error, Result, WaitEvent, err};
use client::Client;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::http::endpoint::{Endpoint, Running, address};
use crate::log;
use crate::server::Server;

/// Clients connected at a time.
const CLIENTS_MAX: usize = 64;
/// Answers being computed on threads of their own at a time.
const JOBS_MAX: usize = 4;
/// How often deadlines and the order to stop are looked at, in milliseconds.
const TICK_MS: u16 = 500;

/// The content of `/api/PART.json`; None: there is no such part.
pub fn status(server: &Server, part: &str) -> Option<serde_json::Value> {
    match part {
        "now" => Some(api::now(server)),
        "figures" => Some(api::figures(server)),
        "waits" => Some(api::waits(server)),
        _ => None,
    }
}

/// Opens the socket.
///
/// # Errors
/// `55006` a busy port; I/O errors.
pub fn open(address: SocketAddr) -> Result<TcpListener> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            err!(OBJECT_IN_USE, "port {} on {} is in use", address.port(), address.ip())
                .hint("stop what uses it, or choose another http_port (0: none)")
        }
        _ => Error::io(format_args!("listen on {address}"), &e),
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The state that the thread works with.
struct Loop {
    server: Arc<Server>,
    listener: TcpListener,
    clients: Vec<Client>,
    /// Jobs that are done ring it.
    bell: Arc<UnixStream>,
    heard: UnixStream,
    jobs: Arc<AtomicUsize>,
    guard: login::Guard,
}

impl Endpoint {
    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.lock().as_ref().map(|r| r.address)
    }

    /// Serves on an open socket.
    pub fn start(&self, server: &Arc<Server>, listener: TcpListener) {
        let Ok(address) = listener.local_addr() else { return };
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let mut endpoint = match Loop::new(server, listener) {
            Ok(endpoint) => endpoint,
            Err(e) => return log::write(log::Level::Warning, 0, format_args!("no HTTP: {e}")),
        };
        let thread = sched::spawn_thread("http server", move || endpoint.run(&told));
        *self.running.lock() = Some(Running { address, stop, thread });
    }

    /// Ends the thread and waits for it: at most a tick.
    pub fn stop(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.stop.store(true, Ordering::Release);
            // One that panicked has said so in the log.
            let _ = sched::io_wait(WaitEvent::IPCTaskJoin, || running.thread.join());
        }
    }

    /// Does what changed settings ask for. What can't be done is logged, and the endpoint stays as
    /// it was.
    pub fn follow_settings(&self, server: &Arc<Server>) {
        let (values, _) = server.values();
        let result = address(&values.settings).and_then(|wanted| {
            if wanted == self.address() {
                return Ok(());
            }
            let listener = wanted.map(open).transpose()?;
            self.stop();
            if let (Some(listener), Some(address)) = (listener, wanted) {
                log::info(format_args!("serving http://{address}/"));
                self.start(server, listener);
            }
            Ok(())
        });
        if let Err(error) = result {
            log::error(0, &error, None);
        }
    }
}

impl Loop {
    fn new(server: &Arc<Server>, listener: TcpListener) -> std::io::Result<Loop> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Loop {
            server: server.clone(),
            listener,
            clients: Vec::new(),
            bell: Arc::new(bell),
            heard,
            jobs: Arc::default(),
            guard: login::Guard::new(server.engine.storage.dir())?,
        })
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let ready = self.wait();
            self.silence_bell();
            self.serve(&ready[1..]);
            if ready[0] {
                self.accept();
            }
        }
    }

    /// Waits until something can be done; says for the listener, then for each client, whether it
    /// is ready.
    fn wait(&self) -> Vec<bool> {
        let mut fds = vec![
            PollFd::new(self.heard.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        fds.extend(self.clients.iter().map(|c| PollFd::new(c.fd(), c.interest())));
        // An interrupted call finds nothing ready, and is made again.
        let until = self.clients.iter().filter_map(Client::wakes_at).min();
        let left = until
            .map_or(u128::MAX, |at| at.saturating_duration_since(Instant::now()).as_millis() + 1);
        let tick = left.min(u128::from(TICK_MS)) as u16;
        let wait = || poll(&mut fds, PollTimeout::from(tick));
        let _ = sched::io_wait(WaitEvent::ActivityHttpMain, wait);
        fds.iter().skip(1).map(|fd| fd.any().unwrap_or(false)).collect()
    }

    fn silence_bell(&mut self) {
        let mut rings = [0; 64];
        while std::io::Read::read(&mut self.heard, &mut rings).is_ok_and(|n| n > 0) {}
    }

    fn accept(&mut self) {
        while let Ok((stream, address)) = self.listener.accept() {
            if self.clients.len() >= CLIENTS_MAX {
                let oldest = (0..self.clients.len()).min_by_key(|i| self.clients[*i].since());
                oldest.map(|i| self.clients.swap_remove(i));
            }
            self.clients.extend(Client::new(stream, address.ip()));
        }
    }

    /// Lets every client do what it can; those that are finished, gone or too slow go.
    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let jobs = routes::Jobs { bell: &self.bell, running: &self.jobs, most: JOBS_MAX };
        let own = self.listener.local_addr().ok();
        let mut index = 0;
        self.clients.retain_mut(|client| {
            let is_ready = ready[index];
            index += 1;
            let answer = |request: &request::Request<'_>, asker: client::Asker| {
                routes::answer(&self.server, &self.guard, own, request, asker, &jobs)
            };
            client.go_on(is_ready, now, &answer)
        });
    }
}

#[cfg(test)]
mod tests {
    use base::settings::{Settings, setting};

    use super::*;

    #[test]
    fn only_this_machine_is_served() {
        let mut settings = Settings::default();
        assert_eq!(address(&settings).unwrap(), None);
        let set = |s: &mut Settings, id, text: &str| {
            s.set(id, base::settings::parse(id, text).expect("a valid value"));
        };
        set(&mut settings, setting::HTTP_PORT, "8432");
        assert_eq!(address(&settings).unwrap().unwrap().to_string(), "127.0.0.1:8432");
        for (name, code) in [("0.0.0.0", "0A000"), ("10.1.2.3", "0A000"), ("nonsense", "22023")] {
            set(&mut settings, setting::HTTP_ADDRESS, name);
            assert_eq!(address(&settings).unwrap_err().code().as_str(), code, "{name}");
        }
    }
}
