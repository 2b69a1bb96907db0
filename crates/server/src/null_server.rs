//! A server that does nothing: it speaks the protocol's frames on the same scheduler and answers
//! every query with one canned row or tag. What it reaches is the limit that client, protocol and
//! kernel set; benchmarks take their ratios against it.

use std::sync::Arc;

use base::settings::{Settings, publish_live};
use base::{Error, Oid, Result};
use sched::{Readiness, Source, SpinLock, TaskRef, Workers};
use wire::response::{self, TransactionStatus};
use wire::startup::Startup;
use wire::{Frontend, auth, rows};

use crate::connection::{Fill, Input, Output, Socket};

/// The one value of the one row; pgbench takes it for the number of its branches.
const CANNED: i64 = 100;

struct Null {
    task: TaskRef,
    state: SpinLock<Option<Box<NullSession>>>,
    /// Open until the worker polls it no more; see [`crate::session::Session`].
    _socket: Arc<Socket>,
}

struct NullSession {
    socket: Arc<Socket>,
    input: Input,
    out: Output,
    begun: bool,
    status: TransactionStatus,
    /// Statements by name, reduced to their tag; enough for a benchmark's few.
    statements: Vec<(Vec<u8>, &'static str)>,
    bound: &'static str,
}

/// Listens on 127.0.0.1 and serves for ever.
///
/// # Errors
/// A busy port and the like.
pub fn serve(port: u16, workers: usize) -> Result<()> {
    publish_live(&Settings::default());
    let address = (std::net::Ipv4Addr::LOCALHOST, port);
    let listener = std::net::TcpListener::bind(address)
        .map_err(|e| Error::io(format_args!("listen on port {port}"), &e))?;
    crate::listener::spare_congestion_control(&listener);
    crate::run::raise_descriptor_limit(0);
    let workers = Workers::start(workers)?;
    println!("null-server is ready on port {port}");
    loop {
        let (stream, _) = listener.accept().map_err(|e| Error::io("accept", &e))?;
        let socket = Socket::Tcp(stream);
        socket.prepare().map_err(|e| Error::io("prepare a client's socket", &e))?;
        let fd = socket.fd();
        let socket = Arc::new(socket);
        let state = NullSession {
            out: Output::new(socket.clone(), None),
            socket: socket.clone(),
            input: Input::default(),
            begun: false,
            status: TransactionStatus::Idle,
            statements: Vec::new(),
            bound: "SELECT",
        };
        let task = sched::Task::new("client backend");
        let state = SpinLock::new(Some(Box::new(state)));
        workers.add(fd, Arc::new(Null { task, state, _socket: socket }))?;
    }
}

impl Source for Null {
    fn task(&self) -> &TaskRef {
        &self.task
    }

    fn run(&self, ready: Readiness) -> bool {
        let Some(mut state) = self.state.lock().take() else { return false };
        let go_on = state.serve(ready).unwrap_or(false);
        if go_on {
            *self.state.lock() = Some(state);
        }
        go_on
    }

    fn unsent(&self, answer: &[u8]) {
        if let Some(state) = &mut *self.state.lock() {
            state.out.take_back(answer);
        }
    }
}

impl NullSession {
    fn serve(&mut self, ready: Readiness) -> Result<bool> {
        self.out.send()?;
        loop {
            let fill = self.input.fill(&self.socket)?;
            match fill {
                Fill::End => return Ok(false),
                Fill::Empty => break,
                Fill::More | Fill::Drained => {}
            }
            self.out.open();
            let mut input = std::mem::take(&mut self.input);
            let go_on = self.messages(&mut input);
            self.input = input;
            if !go_on? {
                return Ok(false);
            }
            if fill == Fill::Drained && !ready.hangup {
                self.out.leave()?;
                break;
            }
            self.out.send()?;
        }
        self.input.rest();
        self.out.rest();
        Ok(true)
    }

    fn messages(&mut self, input: &mut Input) -> Result<bool> {
        while !self.begun {
            let Some((startup, size)) = wire::startup::next_startup(input.bytes())? else {
                return Ok(true);
            };
            match startup {
                Startup::SslRequest | Startup::GssEncRequest => self.out.buffer.push(b'N'),
                Startup::Cancel { .. } => return Ok(false),
                Startup::Session(_) => self.begin(),
            }
            input.consume(size);
        }
        while let Some(frame) = wire::next_frame(input.bytes())? {
            let size = frame.size();
            let go_on = self.message(wire::frontend::decode(frame)?);
            input.consume(size);
            if !go_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin(&mut self) {
        let out = &mut self.out.buffer;
        auth::ok(out);
        for (name, value) in [
            ("server_version", "15.0"),
            ("client_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
        ] {
            auth::parameter_status(out, name, value);
        }
        auth::key_data(out, 1, &[0, 0, 0, 1]);
        response::ready(out, TransactionStatus::Idle);
        self.begun = true;
    }

    fn message(&mut self, message: Frontend<'_>) -> bool {
        let out = &mut self.out.buffer;
        match message {
            Frontend::Query(text) => {
                let tag = tag(text);
                if is_partition_question(text) {
                    say_no_partitions(out);
                } else {
                    if tag == "SELECT" {
                        describe(out);
                    }
                    self.answer(tag);
                }
                response::ready(&mut self.out.buffer, self.status);
            }
            Frontend::Parse(parse) => {
                response::parse_complete(out);
                self.statements.retain(|(name, _)| name != parse.name);
                self.statements.push((parse.name.to_vec(), tag(parse.text)));
            }
            Frontend::Bind(bind) => {
                response::bind_complete(out);
                let found = self.statements.iter().find(|(name, _)| name == bind.statement);
                self.bound = found.map_or("SELECT", |(_, tag)| tag);
            }
            Frontend::Describe(..) if self.bound == "SELECT" => describe(out),
            Frontend::Describe(..) => response::no_data(out),
            Frontend::Execute(..) => self.answer(self.bound),
            Frontend::Close(..) => response::close_complete(out),
            Frontend::Sync => response::ready(out, self.status),
            Frontend::Terminate => return false,
            _ => {}
        }
        true
    }

    fn answer(&mut self, tag: &'static str) {
        let out = &mut self.out.buffer;
        match tag {
            "BEGIN" => self.status = TransactionStatus::InBlock,
            "COMMIT" => self.status = TransactionStatus::Idle,
            _ => {}
        }
        match tag {
            "SELECT" => {
                let start = rows::begin_row(out, 1);
                rows::decimal_value(out, CANNED);
                rows::end_row(out, start);
                response::complete_rows(out, tag, 1);
            }
            "INSERT" | "UPDATE" | "DELETE" => response::complete_rows(out, tag, 1),
            tag => response::complete(out, tag),
        }
    }
}

fn describe(out: &mut Vec<u8>) {
    let field = rows::Field {
        name: "abalance",
        table: Oid(0),
        column: 0,
        ty: Oid(23),
        len: 4,
        typmod: -1,
        binary: false,
    };
    rows::description(out, std::iter::once(field));
}

/// pgbench asks once how its tables are partitioned, and needs an answer of three columns.
fn is_partition_question(text: &[u8]) -> bool {
    text.windows(9).any(|w| w == b"partstrat")
}

/// One row: found in the search path's first schema, no strategy, no partitions.
fn say_no_partitions(out: &mut Vec<u8>) {
    let field = |name| rows::Field {
        name,
        table: Oid(0),
        column: 0,
        ty: Oid(20),
        len: 8,
        typmod: -1,
        binary: false,
    };
    rows::description(out, ["n", "partstrat", "count"].map(field).into_iter());
    let start = rows::begin_row(out, 3);
    rows::decimal_value(out, 1);
    rows::null(out);
    rows::decimal_value(out, 0);
    rows::end_row(out, start);
    response::complete_rows(out, "SELECT", 1);
}

/// The tag that a statement's first letters mean.
fn tag(text: &[u8]) -> &'static str {
    let text = text.trim_ascii_start();
    let starts = |word: &str| {
        text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes()))
    };
    let known = ["SELECT", "UPDATE", "INSERT", "DELETE", "BEGIN", "COMMIT", "SET"];
    match known.into_iter().find(|word| starts(word)) {
        Some(word) => word,
        None if starts("END") => "COMMIT",
        None => "OK",
    }
}
