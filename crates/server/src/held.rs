//! Workers that were held: a line of the log for each, with the statement.

use std::sync::{Arc, Weak};

use sql::secrets::without_secrets;

use crate::log;
use crate::server::Server;

/// Has the server hear of its workers.
pub(crate) fn listen(server: &Arc<Server>) {
    let known = Arc::downgrade(server);
    server.workers.on_held(Box::new(move |held| report(&known, held)));
}

fn report(server: &Weak<Server>, held: &sched::Held) {
    let Some(server) = server.upgrade() else { return };
    let pid = held.task.pid();
    let entry = server.sessions.get(pid);
    let text = entry.map_or_else(String::new, |e| e.activity().query.text().into_owned());
    let (worker, ms) = (held.worker, held.time.as_secs_f64() * 1e3);
    let text = without_secrets(&text);
    log::session(pid, &format!("held: worker {worker} for {ms:.3} ms  statement: {text}"), None);
}
