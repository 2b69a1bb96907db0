//! `pg_stat_blocking` and `pg_stat_blocking_history`: who blocks whom, now and in the past.

use types::Datum;

use super::time;
use crate::profiler::blocking::{Edge, Episode, tree};
use crate::profiler::object::object;
use crate::server::Server;
use crate::views::text::text;

fn pid(pid: i32) -> Datum {
    if pid == 0 { Datum::Null } else { Datum::Int4(pid) }
}

fn words(value: &str) -> Datum {
    if value.is_empty() { Datum::Null } else { text(value) }
}

/// Waits of sessions for one another just now.
pub(super) fn now(server: &Server) -> Vec<Vec<Datum>> {
    tree(server).iter().map(|edge| edge_row(server, edge)).collect()
}

fn edge_row(server: &Server, edge: &Edge) -> Vec<Datum> {
    let info = edge.event.info();
    let activity = |pid: i32| server.sessions.get(pid).map(|entry| entry.activity());
    let waiting = activity(edge.waiting.pid());
    let blocking = activity(edge.blocking.pid());
    let query = |a: &Option<crate::registry::Activity>| {
        a.as_ref().map_or(Datum::Null, |a| words(&a.query.text()))
    };
    let waited = edge.since.elapsed();
    let since = crate::server::now() - waited.as_micros() as i64;
    let in_the_way = server.sessions.get(edge.blocking.pid()).map(|e| e.blocking_text(since));
    vec![
        pid(edge.waiting.pid()),
        text(edge.waiting.kind()),
        text(info.kind),
        text(info.name),
        words(&object(server, edge.object)),
        pid(edge.blocking.pid()),
        text(edge.blocking.kind()),
        Datum::Int4(edge.depth),
        time(since),
        Datum::Float8(waited.as_secs_f64() * 1e3),
        query(&waiting),
        in_the_way.map_or(Datum::Null, |text| words(&text)),
        blocking.and_then(|a| a.state.as_str()).map_or(Datum::Null, text),
    ]
}

/// Waits of sessions for one another; the episodes that go on have no end.
pub(super) fn history(server: &Server) -> Vec<Vec<Datum>> {
    server.profiler.blocking.episodes().iter().map(|episode| episode_row(episode)).collect()
}

fn episode_row(episode: &Episode) -> Vec<Datum> {
    let info = episode.event.info();
    vec![
        pid(episode.waiting.pid),
        text(episode.waiting.kind),
        text(info.kind),
        text(info.name),
        words(&episode.object),
        pid(episode.blocking.pid),
        text(episode.blocking.kind),
        time(episode.started),
        if episode.open { Datum::Null } else { time(episode.ended) },
        Datum::Float8((episode.ended - episode.started) as f64 / 1e3),
        words(&episode.waiting.query),
        words(&episode.blocking.query),
    ]
}
