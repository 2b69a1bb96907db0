//! The routes; `/` lists them.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};

use super::client::{Answer, Asker, Pending};
use super::login::{Admission, Guard};
use super::request::Request;
use super::response::Response;
use super::{api, docs, metrics, past};
use crate::log;
use crate::profiler::profile;
use crate::server::Server;

const HTML: &str = "text/html; charset=utf-8";

/// Answers that take long are computed elsewhere.
pub struct Jobs<'a> {
    /// Rung when one is done.
    pub bell: &'a Arc<UnixStream>,
    /// How many run.
    pub running: &'a Arc<AtomicUsize>,
    /// How many may.
    pub most: usize,
}

impl Jobs<'_> {
    /// Computes an answer on a thread of its own.
    pub fn run(&self, f: impl FnOnce() -> Response + Send + 'static) -> Answer {
        let free = |n: usize| (n < self.most).then_some(n + 1);
        if self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_err() {
            return Answer::Now(Response::fail(
                503,
                "too many profiles are being taken; try later",
            ));
        }
        let pending = Pending::default();
        let (bell, running, place) = (self.bell.clone(), self.running.clone(), pending.clone());
        sched::spawn_thread("http job", move || {
            let response = guarded(f);
            *place.lock() = Some(response);
            running.fetch_sub(1, Ordering::AcqRel);
            // When its buffer is full it has been rung.
            let _ = std::io::Write::write(&mut &*bell, &[1]);
        });
        Answer::Later(pending)
    }
}

/// A panic is in the log; it ends neither the thread nor the server.
fn guarded(f: impl FnOnce() -> Response) -> Response {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Response::fail(500, "internal error; the server's log says more"))
}

/// The answer to a request without credentials, or with wrong ones.
fn who_are_you() -> Response {
    Response::fail(
        401,
        "name a role with the rights of pg_monitor and its password, or give the word in the data \
         directory's threadgres.http_token as the password",
    )
}

/// The answer to a request.
pub fn answer(
    server: &Arc<Server>,
    guard: &Guard,
    own: Option<SocketAddr>,
    request: &Request<'_>,
    asker: Asker,
    jobs: &Jobs<'_>,
) -> Answer {
    if !request.is_local() {
        let port = own.map_or(0, |a| a.port());
        let why = format!("only for pages of this machine: ask for http://localhost:{port}/");
        return Answer::Now(Response::fail(403, &why));
    }
    if let Some(rest) = docs::below(request.path) {
        return Answer::Now(guarded(|| docs::answer(rest)));
    }
    match guard.admit(server, request.authorization, asker.waited) {
        Admission::In => {}
        Admission::Unknown => return Answer::Now(who_are_you()),
        Admission::Out(user) => {
            log::write(
                log::Level::Warning,
                0,
                format_args!("HTTP authentication failed for user \"{}\"", log::one_line(&user)),
            );
            let first = live_int(setting::AUTHENTICATION_FAILURE_DELAY).max(0) as u64;
            let first = Duration::from_millis(first);
            let at = guard.gate.failed(Some(asker.address), first, Instant::now());
            return Answer::At(at, who_are_you());
        }
        Admission::Later(at) => return Answer::Again(at),
        Admission::Never => {
            let why = "too many wrong passwords; try later, or give the token";
            return Answer::Now(Response::fail(429, why));
        }
    }
    if let "/flamegraph.svg" | "/stacks.txt" = request.path {
        let seconds = request.parameter("seconds").map_or(Ok(5.0), str::parse);
        let kind = request.parameter("kind").unwrap_or("cpu");
        let picture = request.path == "/flamegraph.svg";
        return match profile::Request::new(seconds.unwrap_or(f64::NAN), kind) {
            Ok(profile) => profile_job(server, profile, picture, jobs),
            Err(error) => Answer::Now(Response::fail(400, error.message())),
        };
    }
    if let "/api/history.json" | "/api/history.csv" = request.path {
        return match past::Wanted::of(request) {
            Ok(wanted) => history_job(server, wanted, request.path.ends_with(".csv"), jobs),
            Err(error) => Answer::Now(Response::fail(400, error.message())),
        };
    }
    Answer::Now(guarded(|| page(server, request)))
}

/// Reads the history on a thread of its own: a range may be weeks long.
fn history_job(server: &Arc<Server>, wanted: past::Wanted, csv: bool, jobs: &Jobs<'_>) -> Answer {
    let server = server.clone();
    jobs.run(move || {
        let answer = match csv {
            true => past::csv(&server, &wanted)
                .map(|text| Response::ok("text/csv; charset=utf-8", text)),
            false => past::json(&server, &wanted).map(|value| Response::json(&value)),
        };
        answer.unwrap_or_else(|error| Response::fail(503, error.message()))
    })
}

/// Takes a profile on a thread of its own.
fn profile_job(
    server: &Arc<Server>,
    profile: profile::Request,
    picture: bool,
    jobs: &Jobs<'_>,
) -> Answer {
    let server = server.clone();
    jobs.run(move || {
        let taken = profile.take(&server, &AtomicBool::new(false)).and_then(|folded| {
            if picture {
                let svg = folded.svg(profile.kind, profile.seconds)?;
                return Ok(Response::ok("image/svg+xml", svg));
            }
            let lines: String = folded.lines().map(|line| line + "\n").collect();
            Ok(Response::ok("text/plain; charset=utf-8", lines))
        });
        taken.unwrap_or_else(|error| Response::fail(503, error.message()))
    })
}

fn page(server: &Server, request: &Request<'_>) -> Response {
    match request.path {
        "/" => Response::ok(HTML, include_str!("page/index.html")),
        "/page.css" => Response::ok("text/css; charset=utf-8", include_str!("page/page.css")),
        "/page.js" => Response::ok("text/javascript; charset=utf-8", include_str!("page/page.js")),
        "/past.js" => Response::ok("text/javascript; charset=utf-8", include_str!("page/past.js")),
        "/metrics" => Response::ok(metrics::MEDIA_TYPE, metrics::text(server)),
        "/api/now.json" => Response::json(&api::now(server)),
        "/api/figures.json" => Response::json(&api::figures(server)),
        "/api/waits.json" => Response::json(&api::waits(server)),
        path => match path.strip_prefix("/api/views/").and_then(|p| p.strip_suffix(".json")) {
            Some(name) => api::view(server, request.parameter("database"), name).map_or_else(
                || Response::fail(404, "no such view or database"),
                |v| Response::json(&v),
            ),
            None => Response::fail(404, "there is nothing here; / is the page"),
        },
    }
}
