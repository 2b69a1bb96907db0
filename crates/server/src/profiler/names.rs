//! Names for people: sessions, statements, and what is waited for.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use types::Datum;

use crate::server::Server;
use crate::views::rows::rows;

/// Longest text of a statement.
const STATEMENT_CHARS: usize = 120;
/// Between two looks at what the sessions run.
const LOOK: Duration = Duration::from_millis(500);

/// The names learnt so far.
#[derive(Default)]
pub struct Names {
    looked: Option<Instant>,
    statements: HashMap<u64, String>,
    /// `pg_stat_statements` was asked.
    asked: bool,
    /// Kinds of background threads by task.
    tasks: Option<HashMap<u64, &'static str>>,
}

/// A statement's text on one line, cut.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(STATEMENT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl Names {
    /// Learns the texts of the statements that run now; now and then.
    pub fn look(&mut self, server: &Server) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        for entry in server.sessions.all() {
            let id = entry.query_id();
            if id != 0 && !self.statements.contains_key(&id) {
                self.statements.insert(id, one_line(&entry.activity().query.text()));
            }
        }
    }

    /// A session, or the background thread of a task.
    pub fn session(&mut self, pid: i32, task: u64) -> String {
        match self.thread(task) {
            Some(kind) => kind.to_owned(),
            None => format!("session {pid}"),
        }
    }

    fn thread(&mut self, task: u64) -> Option<&'static str> {
        let tasks = self.tasks.get_or_insert_with(|| {
            let all = sched::tasks().into_iter();
            all.filter(|t| t.kind() != "client backend").map(|t| (t.id(), t.kind())).collect()
        });
        tasks.get(&task).copied()
    }

    /// A statement's text: as `pg_stat_statements` knows it (without its constants), else of one
    /// that ran when somebody looked, else its number.
    pub fn statement(&mut self, server: &Server, pid: i32, task: u64, id: u64) -> String {
        if id == 0 {
            return match self.thread(task) {
                Some(kind) => kind.to_owned(),
                None if pid == 0 => "background".to_owned(),
                None => "no statement".to_owned(),
            };
        }
        self.known(server, id)
    }

    /// The same of one that has a number.
    pub fn known(&mut self, server: &Server, id: u64) -> String {
        if !self.asked {
            self.asked = true;
            self.ask(server);
        }
        self.statements.get(&id).cloned().unwrap_or_else(|| format!("statement {}", id as i64))
    }

    fn ask(&mut self, server: &Server) {
        let Some(view) = catalog::system::find(None, "pg_stat_statements") else { return };
        let column = |name: &str| view.columns.iter().position(|c| c.name == name);
        let (Some(id), Some(text)) = (column("queryid"), column("query")) else { return };
        for row in rows(server, catalog::SHARED, "pg_stat_statements") {
            if let (Some(Datum::Int8(id)), Some(Datum::Text(text))) = (row.get(id), row.get(text)) {
                self.statements.insert(*id as u64, one_line(text));
            }
        }
    }
}
