//! A subscription's worker: it copies tables that are new, then applies the stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{Value, setting};
use base::{Result, err};
use catalog::{OpenDatabase, Subscription, SubscriptionTable};
use exec::apply::{self, Applier, Copying, RemoteChange, RemoteTable};
use logical::conninfo::Conninfo;
use types::func::quote_ident;

use super::publisher::{literal, literals};
use super::registry::Key;
use super::stream::{Message, read};
use crate::server::{self, Server};
use crate::session::headless::Headless;
use ext_postgres::client::Client;

/// Time after which the publisher is told how far changes were applied, if it does not ask.
const REPORT: Duration = Duration::from_secs(1);
/// Time for which a reader waits for messages before it looks at its subscription.
const PATIENCE: Duration = Duration::from_millis(200);

struct Worker<'s> {
    server: &'s Arc<Server>,
    database: &'s Arc<OpenDatabase>,
    key: Key,
    session: Headless,
    info: Conninfo,
    /// The subscription as it was when the worker began, and its tables as they are.
    subscription: Subscription,
    origin: String,
}

/// The worker's life.
///
/// # Errors
/// Whatever keeps changes from being applied.
pub fn run(
    server: &Arc<Server>,
    database: &Arc<OpenDatabase>,
    subscription: &Subscription,
) -> Result<()> {
    let Some(mut session) = Headless::attach(server, database, subscription.owner)? else {
        return Ok(());
    };
    session.set(setting::SESSION_REPLICATION_ROLE, Value::Str("replica".into()));
    let info = Conninfo::parse(&subscription.connection)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}"))?;
    let key = (database.oid(), subscription.oid);
    server.subscriptions.note(key, |p| {
        p.pid = sched::current().pid();
        p.name.clone_from(&subscription.name);
    });
    let origin = format!("pg_{}", subscription.oid);
    let subscription = subscription.clone();
    let mut worker = Worker { server, database, key, session, info, subscription, origin };
    let done = worker.work();
    if let Err(error) = &done
        && worker.subscription.disable_on_error
        && error.code() != base::sqlstate::CONNECTION_FAILURE
        && error.code() != base::sqlstate::ADMIN_SHUTDOWN
    {
        let oid = worker.subscription.oid;
        worker
            .session
            .within(None, |cx| apply::change_subscription(oid, cx, |s| s.enabled = false))?;
    }
    server.subscriptions.note(key, |p| p.pid = 0);
    done
}

impl Worker<'_> {
    /// Whether the subscription is still what the worker works for; takes over its tables.
    fn is_current(&mut self) -> bool {
        let catalog = self.database.current();
        let found = catalog.subscriptions().find(|s| s.oid == self.subscription.oid);
        let Some(found) = found else { return false };
        let same = Subscription { tables: self.subscription.tables.clone(), ..found.clone() };
        if same != self.subscription || !found.enabled {
            return false;
        }
        self.subscription.tables.clone_from(&found.tables);
        true
    }

    fn work(&mut self) -> Result<()> {
        let origin = self.origin.clone();
        let mut applied = self.session.within(None, |cx| exec::origins::progress(&origin, cx))?;
        loop {
            if !self.is_current() {
                return Ok(());
            }
            let fresh: Vec<u32> = self
                .subscription
                .tables
                .iter()
                .filter(|t| matches!(t.state, 'i' | 'd' | 'f'))
                .map(|t| t.table)
                .collect();
            for table in fresh {
                if let Err(error) = self.copy(table) {
                    self.server.subscriptions.note(self.key, |p| p.errors.1 += 1);
                    return Err(error);
                }
            }
            self.is_current();
            if !self.follow(&mut applied)? {
                return Ok(());
            }
        }
    }

    /// Copies a table under the snapshot of a temporary slot.
    fn copy(&mut self, table: u32) -> Result<()> {
        let catalog = self.database.current();
        let Some(local) = catalog.table(table) else { return Ok(()) };
        let schema = catalog.schema(local.schema).map_or_else(String::new, |s| s.name.clone());
        let name = local.name.clone();
        let mut client = Client::connect(&self.info, &self.subscription.name, true)?;
        let (of, from) = (
            literals(&self.subscription.publications),
            format!("{}.{}", quote_ident(&schema), quote_ident(&name)),
        );
        client.query("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ")?;
        let slot = format!("pg_{}_sync_{}_{}", self.subscription.oid, table, server::now() as u64);
        let made = client.query(&format!(
            "CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'use')",
            quote_ident(&slot)
        ))?;
        let at = made.first().and_then(|row| row.get(1).cloned().flatten()).unwrap_or_default();
        let at = position(&at)
            .ok_or_else(|| err!(PROTOCOL_VIOLATION, "the publisher's slot has no position"))?;
        let shown = client.query(&format!(
            "SELECT DISTINCT array_to_string(ARRAY(SELECT quote_ident(n) FROM unnest(t.attnames) n), ', '), \
             array_to_string(t.attnames, chr(1)), t.rowfilter \
             FROM pg_catalog.pg_publication_tables t \
             WHERE t.pubname IN ({of}) AND t.schemaname = {} AND t.tablename = {}",
            literal(&schema),
            literal(&name)
        ))?;
        let Some(first) = shown.first() else {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "table \"{schema}.{name}\" not found on publisher"
            ));
        };
        let list = first.first().cloned().flatten().unwrap_or_default();
        let plain = first.get(1).cloned().flatten().unwrap_or_default();
        let columns: Vec<(String, bool)> = plain
            .split('\u{1}')
            .filter(|column| !column.is_empty())
            .map(|column| (column.to_owned(), false))
            .collect();
        let filters: Vec<Option<String>> =
            shown.iter().map(|row| row.get(2).cloned().flatten()).collect();
        let condition = match filters.iter().all(Option::is_some) {
            true => {
                let all: Vec<String> = filters.iter().flatten().map(|f| format!("({f})")).collect();
                format!(" WHERE {}", all.join(" OR "))
            }
            false => String::new(),
        };
        let sql = format!("COPY (SELECT {list} FROM {from}{condition}) TO STDOUT");
        let remote = RemoteTable { oid: 0, schema, name, identity: 'd', columns };
        let oid = self.subscription.oid;
        self.session.within(Some((self.origin.clone(), at)), |cx| {
            let mut copying = Copying::begin(&remote, cx)?;
            client.copy_out(&sql, &mut |line| copying.line(line, cx))?;
            apply::change_subscription(oid, cx, |s| {
                for t in s.tables.iter_mut().filter(|t| t.table == table) {
                    (t.state, t.lsn) = ('s', Some(at));
                }
            })
        })?;
        client.query("COMMIT")?;
        Ok(())
    }

    /// Applies the stream; true: begin anew, there are tables to be copied. False: the subscription has changed.
    fn follow(&mut self, applied: &mut u64) -> Result<bool> {
        let mut client = Client::connect(&self.info, &self.subscription.name, true)?;
        let Some(slot) = self.subscription.slot.clone() else { return Ok(false) };
        let names: Vec<String> = self
            .subscription
            .publications
            .iter()
            .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
            .collect();
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL {} ({}, publication_names {}{})",
            quote_ident(&slot),
            shown(*applied),
            match self.subscription.streaming {
                true => "proto_version '2', streaming 'on'",
                false => "proto_version '1'",
            },
            literal(&names.join(",")),
            // A PostgreSQL before 16 does not know the option.
            if self.subscription.origin == "none" { ", origin 'none'" } else { "" }
        );
        client.start_stream(&command)?;
        let mut tables: HashMap<u32, RemoteTable> = HashMap::new();
        let mut changes: Vec<RemoteChange> = Vec::new();
        let mut parts = Parts::default();
        let (mut inside, mut looked, mut reported) = (false, Instant::now(), Instant::now());
        // Behind everything that was applied, nothing was to be applied.
        let mut reached = *applied;
        loop {
            let found = client.poll(PATIENCE)?;
            if !inside && (found.is_none() || looked.elapsed() >= Duration::from_secs(1)) {
                looked = Instant::now();
                if !self.is_current() {
                    return Ok(false);
                }
                if self.subscription.tables.iter().any(|t| matches!(t.state, 'i' | 'd' | 'f')) {
                    return Ok(true);
                }
            }
            let mut reply = false;
            match found {
                None => {}
                Some((b'd', body)) => match body.split_first() {
                    Some((b'w', rest)) if rest.len() >= 24 => {
                        let (end, sent) = (be64(rest, 8), be64(rest, 16) as i64);
                        self.server.subscriptions.note(self.key, |p| {
                            p.received = p.received.max(end);
                            p.times = (sent, server::now());
                        });
                        match read(&rest[24..], parts.current.is_some())? {
                            Message::Begin => {
                                inside = true;
                                changes.clear();
                            }
                            Message::Table(table) => drop(tables.insert(table.oid, table)),
                            Message::Change(change) => changes.push(change),
                            Message::Commit(end) => {
                                inside = false;
                                let ended = self.commit(&tables, &changes, end);
                                changes.clear();
                                if let Err(error) = ended {
                                    self.server.subscriptions.note(self.key, |p| p.errors.0 += 1);
                                    return Err(error);
                                }
                                *applied = end;
                                reached = reached.max(end);
                            }
                            Message::Part(xid) => {
                                (inside, parts.current) = (true, Some(xid));
                            }
                            Message::PartEnd => (inside, parts.current) = (false, None),
                            Message::PartChange(xid, change) => parts.add(xid, change),
                            Message::PartsAbort(top, xid) => parts.abort(top, xid),
                            Message::PartsCommit(top, end) => {
                                let all = parts.take(top);
                                if let Err(error) = self.commit(&tables, &all, end) {
                                    self.server.subscriptions.note(self.key, |p| p.errors.0 += 1);
                                    return Err(error);
                                }
                                *applied = end;
                                reached = reached.max(end);
                            }
                            Message::Other => {}
                        }
                    }
                    Some((b'k', rest)) if rest.len() >= 17 => {
                        let end = be64(rest, 0);
                        reply = rest[16] != 0;
                        if !inside {
                            reached = reached.max(end);
                        }
                        self.server.subscriptions.note(self.key, |p| {
                            p.received = p.received.max(end);
                            p.times = (be64(rest, 8) as i64, server::now());
                        });
                    }
                    _ => {}
                },
                Some((b'E', body)) => return Err(ext_postgres::client::error_of(&body)),
                Some((b'c', _)) => return Ok(false),
                Some(_) => {}
            }
            if !inside && (reply || reported.elapsed() >= REPORT) {
                reported = Instant::now();
                let mut status = vec![b'r'];
                for _ in 0..3 {
                    status.extend(reached.to_be_bytes());
                }
                status.extend(server::now().to_be_bytes());
                status.push(0);
                client.send_copy(&status)?;
                self.server.subscriptions.note(self.key, |p| {
                    (p.reported, p.reported_at) = (reached, server::now());
                });
                self.finish_tables(reached)?;
            }
        }
    }

    /// Tables whose copy the stream has caught up with become ready.
    fn finish_tables(&mut self, reached: u64) -> Result<()> {
        let done =
            move |t: &SubscriptionTable| t.state == 's' && t.lsn.is_none_or(|lsn| lsn <= reached);
        if !self.subscription.tables.iter().any(done) {
            return Ok(());
        }
        let oid = self.subscription.oid;
        self.session.within(None, |cx| {
            apply::change_subscription(oid, cx, |s| {
                s.tables.iter_mut().filter(|t| done(t)).for_each(|t| t.state = 'r');
            })
        })?;
        self.is_current();
        Ok(())
    }

    fn commit(
        &mut self,
        tables: &HashMap<u32, RemoteTable>,
        changes: &[RemoteChange],
        end: u64,
    ) -> Result<()> {
        let (subscription, origin) = (&self.subscription, self.origin.clone());
        let skipped = subscription.skip_lsn != 0 && subscription.skip_lsn == end;
        let oid = subscription.oid;
        let subscription = subscription.clone();
        self.session.within(Some((origin.clone(), end)), |cx| {
            if skipped {
                apply::change_subscription(oid, cx, |s| s.skip_lsn = 0)?;
            } else {
                let mut applier = Applier::new(tables, &subscription, end);
                changes.iter().try_for_each(|change| applier.apply(change, cx))?;
            }
            exec::origins::set_progress(&origin, end, cx)
        })
    }
}

/// Transactions that come in parts before they end: their changes, each with its subtransaction's id.
#[derive(Default)]
struct Parts {
    /// The one of which a part is coming.
    current: Option<u32>,
    all: HashMap<u32, Vec<(u32, RemoteChange)>>,
}

impl Parts {
    fn add(&mut self, xid: u32, change: RemoteChange) {
        if let Some(top) = self.current {
            self.all.entry(top).or_default().push((xid, change));
        }
    }

    /// A subtransaction has all that follows its first change.
    fn abort(&mut self, top: u32, xid: u32) {
        if top == xid {
            self.all.remove(&top);
        } else if let Some(changes) = self.all.get_mut(&top)
            && let Some(at) = changes.iter().position(|change| change.0 == xid)
        {
            changes.truncate(at);
        }
    }

    fn take(&mut self, top: u32) -> Vec<RemoteChange> {
        let changes = self.all.remove(&top).unwrap_or_default();
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

fn be64(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    if let Some(part) = bytes.get(at..at + 8) {
        out.copy_from_slice(part);
    }
    u64::from_be_bytes(out)
}

fn position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?)
}

fn shown(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff)
}
