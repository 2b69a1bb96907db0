//! The wait sampler: the thread that wakes up once a second and keeps what has passed. It feeds the timeline,
//! the history of blocking ([`crate::profiler`]) and the history of everything ([`crate::history`]), and says in
//! the log what lasts ([`crate::why`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;

use crate::history::Recorder;
use crate::profiler::{blocking, timeline};
use crate::server::Server;
use crate::why::Watch;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the thread.
pub fn start(server: &Arc<Server>) {
    server.profiler.belong_to(server);
    server.profiler.thread.start(server, work);
}

fn work(server: &Arc<Server>) {
    let mut sampler = timeline::Sampler::new();
    let mut watcher = blocking::Watcher::default();
    let mut recorder = Recorder::new(server);
    let mut watch = Watch::default();
    let mut generation = server.generation();
    let mut next = Instant::now() + PERIOD;
    loop {
        while Instant::now() < next {
            sched::park(WaitEvent::ActivityWaitSamplerMain, Some(next));
            if sched::check_interrupts().is_err() {
                return recorder.stop(server);
            }
        }
        // After a stop (a suspended machine) the lost seconds are not made up for.
        next = (next + PERIOD).max(Instant::now());
        sampler.sample(server);
        let (finished, edges) = (watcher.finished(), blocking::edges(server));
        recorder.record(server, &edges, &finished);
        watcher.look(server, edges, &finished);
        watch.look(server);
        if generation != server.generation() {
            generation = server.generation();
            server.http.follow_settings(server);
        }
    }
}
