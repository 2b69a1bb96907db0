//! Statistics of the databases, their tables and their indexes. Kept in memory; a copy is written
//! from time to time ([`crate::saved_statistics`]).
//!
//! ```text
//!   executor ─▶ Tally ─┐  at the end of a statement             at a look
//!   session  ─▶ Account ┴─────────▶ stripe of the worker ───────────▶ sum ─▶ views
//!                                        │ dead rows, in portions
//!                                        ▼
//!                                   Table: thresholds and times ─▶ background vacuum
//! ```
//!
//! Each worker has a stripe of its own, so counting touches no memory that another worker writes;
//! its lock is free but for the moment of a look. Only dead rows must be known to all, since one
//! statement is to wake the vacuum, the one whose rows cross the threshold: a stripe passes them on
//! in portions of a small part of the threshold.
//!
//! Most executions use nothing but pages in memory and the log, and are of a few statements. Those are
//! counted in a small table of a place by identifier, under a spin lock ([`Recent`]): no search, and no second
//! sum for the database. Such a place is added to the stripe when another statement wants it, and before
//! each look, so that a look misses nothing. A statement that has a place is in the stripe.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use base::WaitEvent;
use base::settings::{live_int, setting};
use base::usage::Usage;
use crossbeam_utils::CachePadded;
use exec::tally::{RelationCounts, Tally};
use rustc_hash::FxHashMap;
use sched::{Mutex, MutexGuard, SpinLock};

use crate::statements::{FEW, Recent, Sample, Statement, StatementKey, Work};

/// Workers beyond this share stripes.
const STRIPES: usize = 128;
/// A stripe keeps dead rows to itself up to this part of the table's threshold.
const PORTIONS: u64 = 64;
/// Applications that are told apart; those of statements that come later are not known.
const APPLICATIONS_MAX: usize = 2000;
/// Places for statements that have just run, in a stripe.
const PLACES: usize = 64;

/// A table or index: its database's oid and its own.
pub type Relid = (u32, u32);

/// Counts of a database. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions rolled back.
    pub rollbacks: u64,
    /// Deadlocks detected.
    pub deadlocks: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Ended because the client went away.
    pub abandoned: u64,
    /// Ended by a fatal error.
    pub fatal: u64,
    /// Ended by an administrator.
    pub killed: u64,
    /// Time of sessions that have ended, and of the others up to their last statement.
    pub session_time: u64,
    /// Time of statements.
    pub active_time: u64,
    /// Time between the statements of transactions.
    pub idle_in_transaction_time: u64,
}

impl DatabaseCounts {
    fn list(&self) -> [u64; 10] {
        [
            self.commits,
            self.rollbacks,
            self.deadlocks,
            self.sessions,
            self.abandoned,
            self.fatal,
            self.killed,
            self.session_time,
            self.active_time,
            self.idle_in_transaction_time,
        ]
    }

    fn of_list(list: [u64; 10]) -> DatabaseCounts {
        let [commits, rollbacks, deadlocks, sessions, abandoned, fatal, killed, times @ ..] = list;
        let [session_time, active_time, idle_in_transaction_time] = times;
        DatabaseCounts {
            commits,
            rollbacks,
            deadlocks,
            sessions,
            abandoned,
            fatal,
            killed,
            session_time,
            active_time,
            idle_in_transaction_time,
        }
    }

    fn add(&mut self, other: &DatabaseCounts) {
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.deadlocks += other.deadlocks;
        self.sessions += other.sessions;
        self.abandoned += other.abandoned;
        self.fatal += other.fatal;
        self.killed += other.killed;
        self.session_time += other.session_time;
        self.active_time += other.active_time;
        self.idle_in_transaction_time += other.idle_in_transaction_time;
    }
}

/// Rows changed by a transaction whose end isn't known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Inserted.
    pub inserted: u64,
    /// Updated.
    pub updated: u64,
    /// Deleted.
    pub deleted: u64,
}

impl Changes {
    /// The net effect of the changes on a table's rows.
    pub fn settled(&self, table: u32, committed: bool) -> Settled {
        if committed {
            Settled {
                table,
                live: self.inserted as i64 - self.deleted as i64,
                dead: self.updated + self.deleted,
                modified: self.inserted + self.updated + self.deleted,
            }
        } else {
            Settled { table, dead: self.inserted + self.updated, ..Settled::default() }
        }
    }

    /// The changes since an earlier reading.
    pub fn since(&self, earlier: &Changes) -> Changes {
        Changes {
            inserted: self.inserted - earlier.inserted,
            updated: self.updated - earlier.updated,
            deleted: self.deleted - earlier.deleted,
        }
    }
}

/// Changes whose transaction has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The table's oid.
    pub table: u32,
    /// Rows that came to life, less those that went.
    pub live: i64,
    /// Row versions that died.
    pub dead: u64,
    /// Rows changed.
    pub modified: u64,
}

/// The counts that a session has to pass on.
#[derive(Debug, Default)]
pub struct Report {
    /// Of tables and indexes.
    pub tally: Tally,
    /// Of tables whose changes are settled.
    pub settled: Vec<Settled>,
    /// Of the database.
    pub database: DatabaseCounts,
}

/// A table or index in a stripe.
#[derive(Clone, Copy, Debug, Default)]
struct Relation {
    counts: RelationCounts,
    live: i64,
    /// Dead rows that the table has not been told of.
    dead: u64,
    /// Dead rows at which it is told; 0: not known yet.
    portion: u64,
    modified: u64,
    /// Rows inserted since the last vacuum.
    fresh: u64,
}

/// The counts and usage of sessions, by database.
type Databases = Vec<(u32, DatabaseCounts, Usage)>;

#[derive(Default)]
struct Stripe {
    databases: Databases,
    relations: FxHashMap<Relid, Relation>,
    statements: FxHashMap<StatementKey, Statement>,
}

/// A stripe, and what is yet to be added to it.
struct Lane {
    /// By identifier; none until a statement has run, and after a look. But for their counts they are changed
    /// only while the stripe is held.
    recent: SpinLock<Box<[Recent]>>,
    stripe: Mutex<Stripe>,
}

/// The counts of a table that all workers share.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Rows that lived when it was last counted.
    pub live: i64,
    /// Row versions that died since the last vacuum, about.
    pub dead: u64,
    /// Number of dead rows at which the vacuum is woken.
    pub threshold: u64,
    /// Rows changed since the last ANALYZE.
    pub modified: u64,
    /// Rows inserted since the last vacuum.
    pub fresh: u64,
    /// VACUUM by command, in the background; ANALYZE by command, in the background.
    pub runs: [u64; 4],
    /// When the last one of each ended (microseconds since 2000); 0: never.
    pub last: [i64; 4],
}

/// Index into [`Table::runs`]: VACUUM. In the background: one more.
pub const VACUUM: usize = 0;
/// Index into [`Table::runs`]: ANALYZE. In the background: one more.
pub const ANALYZE: usize = 2;

/// Everything about a table or index, summed up.
#[derive(Clone, Debug, Default)]
pub struct RelationStats {
    /// Its counts.
    pub counts: RelationCounts,
    /// Of a table: the rest.
    pub table: Table,
}

/// Where storage's counts, which only grow, stood when a part of the statistics was reset, and
/// when that was (microseconds since 2000; 0: never).
#[derive(Clone, Copy, Debug, Default)]
pub struct Bases {
    /// `pg_stat_bgwriter`: storage's counts, what sessions and the background writer had used.
    pub bgwriter: (storage::Stats, Usage, Usage),
    /// When.
    pub bgwriter_reset: i64,
    /// `pg_stat_wal`.
    pub wal: storage::Stats,
    /// When.
    pub wal_reset: i64,
}

/// The saved form of a database: its oid; the fields of [`DatabaseCounts`] in their order.
type SavedDatabase = (u32, [u64; 10]);
/// The saved form of a table or index: its identity; the fields of [`RelationCounts`] in their order; rows that
/// live, row versions that died, rows modified and inserted; [`Table::runs`] and [`Table::last`].
type SavedRelation = (Relid, [u64; 9], i64, [u64; 3], [u64; 4], [i64; 4]);

/// The counts that outlive the server.
pub struct Saved {
    /// Of databases.
    pub databases: Vec<SavedDatabase>,
    /// Of tables and indexes.
    pub relations: Vec<SavedRelation>,
}

/// See the module's documentation.
pub struct Counters {
    lanes: Box<[CachePadded<Lane>]>,
    tables: Mutex<HashMap<Relid, Table>>,
    /// Readings at which parts of the statistics were reset.
    bases: Mutex<Bases>,
    /// See [`Counters::database_base`].
    database_bases: Mutex<HashMap<u32, (Usage, i64)>>,
    /// Databases with the applications that have run statements in them.
    works: Mutex<HashMap<(u32, Arc<str>), Arc<Work>>>,
    /// When the statements were.
    statements_reset: AtomicI64,
    /// Statements that were forgotten to make room.
    forgotten: AtomicI64,
}

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The calling thread's stripe. Not inlined: a coroutine's thread-locals are looked up anew.
#[inline(never)]
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    STRIPE.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        own.get()
    })
}

fn base_threshold() -> u64 {
    live_int(setting::AUTOVACUUM_VACUUM_THRESHOLD).max(1) as u64
}

impl Default for Counters {
    fn default() -> Counters {
        let lane = || Lane {
            recent: SpinLock::default(),
            stripe: Mutex::new(WaitEvent::LWLockStatistics, Stripe::default()),
        };
        Counters {
            lanes: (0..STRIPES).map(|_| CachePadded::new(lane())).collect(),
            tables: Mutex::new(WaitEvent::LWLockStatistics, HashMap::new()),
            bases: Mutex::new(WaitEvent::LWLockStatistics, Bases::default()),
            database_bases: Mutex::new(WaitEvent::LWLockStatistics, HashMap::new()),
            works: Mutex::new(WaitEvent::LWLockStatistics, HashMap::new()),
            statements_reset: AtomicI64::new(0),
            forgotten: AtomicI64::new(0),
        }
    }
}

impl Stripe {
    /// The counts and usage of sessions in a database.
    fn database(&mut self, oid: u32) -> (&mut DatabaseCounts, &mut Usage) {
        of_database(&mut self.databases, oid)
    }

    /// Adds executions of a statement that is there.
    fn add(&mut self, recent: &Recent) {
        if let Some(statement) = self.statements.get_mut(&recent.key) {
            statement.take_recent(recent);
            let database = statement.work.database;
            let (_, of_database) = self.database(database);
            of_database.0.iter_mut().zip(recent.used).for_each(|(sum, amount)| *sum += amount);
        }
    }
}

impl Lane {
    /// The stripe with all that has been counted.
    fn all(&self) -> MutexGuard<'_, Stripe> {
        let mut stripe = self.stripe.lock();
        self.add_recent(&mut stripe);
        stripe
    }

    /// Gives a statement of the stripe a place, and adds what was there.
    fn give_place(&self, stripe: &mut Stripe, key: StatementKey) {
        if self.recent.lock().is_empty() {
            *self.recent.lock() = vec![Recent::default(); PLACES].into();
        }
        let place = std::mem::replace(&mut self.recent.lock()[place_of(&key)], Recent::of(key));
        stripe.add(&place);
    }

    /// Adds what is in places to the stripe; there are none then.
    fn add_recent(&self, stripe: &mut Stripe) {
        let places = std::mem::take(&mut *self.recent.lock());
        places.iter().for_each(|place| stripe.add(place));
    }
}

/// Where a statement is in [`Lane::recent`]; identifiers are hashes.
#[inline]
fn place_of(key: &StatementKey) -> usize {
    key.id as usize % PLACES
}

/// See [`Stripe::database`].
fn of_database(databases: &mut Databases, oid: u32) -> (&mut DatabaseCounts, &mut Usage) {
    let at = match databases.iter().position(|(known, ..)| *known == oid) {
        Some(at) => at,
        None => {
            databases.push((oid, DatabaseCounts::default(), Usage::default()));
            databases.len() - 1
        }
    };
    let (_, counts, usage) = &mut databases[at];
    (counts, usage)
}

impl Counters {
    /// The calling thread's.
    #[inline]
    fn own(&self) -> &Lane {
        &self.lanes[own_stripe()]
    }

    /// Takes what a session in a database has to report, and empties it; `use_up` adds what the session
    /// has used. True when the vacuum should be woken.
    pub fn take(
        &self,
        database: u32,
        report: &mut Report,
        use_up: impl FnOnce(&mut Usage),
    ) -> bool {
        let mut portions = Vec::new();
        {
            let mut stripe = self.own().stripe.lock();
            let (counts, usage) = stripe.database(database);
            counts.add(&std::mem::take(&mut report.database));
            use_up(usage);
            for (oid, counts) in report.tally.iter() {
                let relation = stripe.relations.entry((database, *oid)).or_default();
                relation.counts.add(counts);
                relation.fresh += counts.inserted;
            }
            for settled in report.settled.drain(..) {
                let oid = (database, settled.table);
                let relation = stripe.relations.entry(oid).or_default();
                relation.live += settled.live;
                relation.dead += settled.dead;
                relation.modified += settled.modified;
                if relation.dead > 0 && relation.dead >= relation.portion {
                    portions.push((oid, std::mem::take(&mut relation.dead)));
                }
            }
        }
        report.tally.clear();
        !portions.is_empty() && self.pass_on(&portions)
    }

    /// Tells the tables of their dead rows; true when one crossed its threshold.
    fn pass_on(&self, portions: &[(Relid, u64)]) -> bool {
        let mut wake = false;
        let mut sizes = Vec::with_capacity(portions.len());
        {
            let mut tables = self.tables.lock();
            for (oid, dead) in portions {
                let table = tables.entry(*oid).or_default();
                if table.threshold == 0 {
                    table.threshold = base_threshold();
                }
                wake |= table.dead < table.threshold && table.dead + dead >= table.threshold;
                table.dead += dead;
                sizes.push((*oid, (table.threshold / PORTIONS).max(1)));
            }
        }
        let mut stripe = self.own().stripe.lock();
        for (oid, portion) in sizes {
            if let Some(relation) = stripe.relations.get_mut(&oid) {
                relation.portion = portion;
            }
        }
        wake
    }

    /// Adds to a database's counts from outside of a session's report.
    pub fn database_event(&self, database: u32, change: impl FnOnce(&mut DatabaseCounts)) {
        change(self.own().stripe.lock().database(database).0);
    }

    /// A database's counts and what its sessions used.
    pub fn database(&self, database: u32) -> (DatabaseCounts, Usage) {
        self.sum(|oid| oid == database)
    }

    /// The counts of all databases together.
    pub fn database_totals(&self) -> DatabaseCounts {
        let mut totals = DatabaseCounts::default();
        for lane in &self.lanes {
            lane.stripe.lock().databases.iter().for_each(|(_, counts, _)| totals.add(counts));
        }
        totals
    }

    /// The usage of the sessions of all databases.
    pub fn usage(&self) -> Usage {
        self.sum(|_| true).1
    }

    fn sum(&self, which: impl Fn(u32) -> bool) -> (DatabaseCounts, Usage) {
        let (mut counts, mut usage) = (DatabaseCounts::default(), Usage::default());
        for lane in &self.lanes {
            let stripe = lane.all();
            for (_, of, used) in stripe.databases.iter().filter(|(oid, ..)| which(*oid)) {
                counts.add(of);
                usage.add(used);
            }
        }
        (counts, usage)
    }

    /// All tables and indexes that something happened to.
    pub fn relations(&self) -> HashMap<Relid, RelationStats> {
        let mut all: HashMap<Relid, RelationStats> = HashMap::new();
        for lane in &self.lanes {
            for (oid, relation) in &lane.stripe.lock().relations {
                let sum = all.entry(*oid).or_default();
                sum.counts.add(&relation.counts);
                sum.table.live += relation.live;
                sum.table.dead += relation.dead;
                sum.table.modified += relation.modified;
                sum.table.fresh += relation.fresh;
            }
        }
        for (oid, table) in self.tables.lock().iter() {
            let sum = &mut all.entry(*oid).or_default().table;
            sum.live += table.live;
            sum.dead += table.dead;
            (sum.threshold, sum.runs, sum.last) = (table.threshold, table.runs, table.last);
        }
        all.values_mut().for_each(|s| s.table.live = s.table.live.max(0));
        all
    }

    /// The counts that are to outlive the server.
    pub fn saved(&self) -> Saved {
        let mut databases: HashMap<u32, DatabaseCounts> = HashMap::new();
        for lane in &self.lanes {
            for (oid, counts, _) in &lane.stripe.lock().databases {
                databases.entry(*oid).or_default().add(counts);
            }
        }
        let relation = |(id, sum): (Relid, RelationStats)| {
            let (c, t) = (sum.counts, sum.table);
            let counts = [
                c.scans,
                c.returned,
                c.fetched,
                c.inserted,
                c.updated,
                c.hot_updated,
                c.deleted,
                c.blocks_hit,
                c.blocks_read,
            ];
            (id, counts, t.live, [t.dead, t.modified, t.fresh], t.runs, t.last)
        };
        Saved {
            databases: databases.into_iter().map(|(oid, counts)| (oid, counts.list())).collect(),
            relations: self.relations().into_iter().map(relation).collect(),
        }
    }

    /// Takes over what an earlier server saved.
    pub fn restore(&self, saved: Saved) {
        let mut stripe = self.own().stripe.lock();
        for (oid, counts) in saved.databases {
            stripe.database(oid).0.add(&DatabaseCounts::of_list(counts));
        }
        let mut tables = self.tables.lock();
        for (id, c, live, [dead, modified, fresh], runs, last) in saved.relations {
            let counts = RelationCounts {
                scans: c[0],
                returned: c[1],
                fetched: c[2],
                inserted: c[3],
                updated: c[4],
                hot_updated: c[5],
                deleted: c[6],
                blocks_hit: c[7],
                blocks_read: c[8],
            };
            let relation = stripe.relations.entry(id).or_default();
            relation.counts.add(&counts);
            relation.modified += modified;
            relation.fresh += fresh;
            if live != 0 || dead != 0 || runs != [0; 4] {
                let threshold = base_threshold();
                let table = Table { live, dead, threshold, runs, last, ..Table::default() };
                tables.insert(id, table);
            }
        }
    }

    /// Tables with dead rows, and how many, about.
    pub fn dead_rows(&self) -> Vec<(Relid, u64)> {
        self.tables.lock().iter().map(|(oid, table)| (*oid, table.dead)).collect()
    }

    /// How many dead rows wake the vacuum.
    pub fn set_threshold(&self, oid: Relid, threshold: u64) {
        if let Some(table) = self.tables.lock().get_mut(&oid) {
            table.threshold = threshold;
        }
    }

    /// Changes what is known of a table in all stripes.
    fn each_stripe(&self, oid: Relid, change: impl Fn(&mut Relation)) {
        for lane in &self.lanes {
            if let Some(relation) = lane.stripe.lock().relations.get_mut(&oid) {
                change(relation);
            }
        }
    }

    /// A vacuum that began when there were `dead` dead rows is done; it left so many rows.
    pub fn vacuumed(&self, oid: Relid, dead: u64, rows: f64, background: bool, now: i64) {
        self.each_stripe(oid, |r| (r.live, r.dead, r.fresh) = (0, 0, 0));
        let mut tables = self.tables.lock();
        let table = tables.entry(oid).or_default();
        table.live = rows as i64;
        table.dead = table.dead.saturating_sub(dead);
        table.runs[VACUUM + usize::from(background)] += 1;
        table.last[VACUUM + usize::from(background)] = now;
    }

    /// ANALYZE counted a table's rows.
    pub fn analyzed(&self, oid: Relid, rows: f64, background: bool, now: i64) {
        self.each_stripe(oid, |r| (r.live, r.modified) = (0, 0));
        let mut tables = self.tables.lock();
        let table = tables.entry(oid).or_default();
        table.live = rows as i64;
        table.runs[ANALYZE + usize::from(background)] += 1;
        table.last[ANALYZE + usize::from(background)] = now;
    }

    /// A table has no rows any more.
    pub fn truncated(&self, oid: Relid) {
        self.each_stripe(oid, |r| (r.live, r.dead, r.fresh) = (0, 0, 0));
        if let Some(table) = self.tables.lock().get_mut(&oid) {
            (table.live, table.dead) = (0, 0);
        }
    }

    /// Forgets databases and relations that are no more. What was used in a database stays part of what
    /// the server used.
    pub fn retain(&self, is_database: impl Fn(u32) -> bool, exists: impl Fn(Relid) -> bool) {
        for lane in &self.lanes {
            let mut stripe = lane.all();
            stripe.relations.retain(|id, _| exists(*id));
            let mut gone = Usage::default();
            stripe.databases.retain(|(oid, _, used)| {
                let stays = *oid == catalog::SHARED || is_database(*oid);
                if !stays {
                    gone.add(used);
                }
                stays
            });
            stripe.database(catalog::SHARED).1.add(&gone);
        }
        self.tables.lock().retain(|id, _| exists(*id));
        self.database_bases.lock().retain(|oid, _| is_database(*oid));
    }

    /// `pg_stat_reset`: everything of a database and its relations begins anew. What the
    /// background vacuum goes by stays.
    pub fn reset(&self, database: u32, now: i64) {
        for lane in &self.lanes {
            let mut stripe = lane.stripe.lock();
            *stripe.database(database).0 = DatabaseCounts::default();
            for (_, relation) in stripe.relations.iter_mut().filter(|(id, _)| id.0 == database) {
                *relation = Relation { dead: relation.dead, ..Relation::default() };
            }
        }
        for (_, table) in self.tables.lock().iter_mut().filter(|(id, _)| id.0 == database) {
            *table = Table { dead: table.dead, threshold: table.threshold, ..Table::default() };
        }
        let usage = self.database(database).1;
        self.database_bases.lock().insert(database, (usage, now));
    }

    /// The usage of a database's sessions when its statistics were reset, and when that was.
    pub fn database_base(&self, database: u32) -> (Usage, i64) {
        self.database_bases.lock().get(&database).copied().unwrap_or_default()
    }

    /// Readings at which parts of the statistics were reset.
    pub fn bases(&self) -> Bases {
        *self.bases.lock()
    }

    /// Notes that a part was reset.
    pub fn change_bases(&self, change: impl FnOnce(&mut Bases)) {
        change(&mut self.bases.lock());
    }

    /// Likewise for one table or index.
    pub fn reset_relation(&self, oid: Relid) {
        self.each_stripe(oid, |r| *r = Relation { dead: r.dead, ..Relation::default() });
        if let Some(table) = self.tables.lock().get_mut(&oid) {
            *table = Table { dead: table.dead, threshold: table.threshold, ..Table::default() };
        }
    }

    /// Has a statement that has a place counted there; false if it has none.
    #[inline]
    pub fn in_place(&self, key: &StatementKey, count: impl FnOnce(&mut Recent) -> bool) -> bool {
        let mut recent = self.own().recent.lock();
        match recent.get_mut(place_of(key)) {
            Some(place) if place.key == *key => count(place),
            _ => false,
        }
    }

    /// Counts one execution of a statement that used this; if that was no more than usual, the next ones
    /// have a place. `text`: without constants; `work`: that of the key.
    pub fn statement(
        &self,
        key: StatementKey,
        sample: Sample,
        used: &Usage,
        (text, work): (&Arc<str>, &Arc<Work>),
    ) {
        let lane = self.own();
        let mut stripe = lane.stripe.lock();
        stripe.database(work.database).1.add(used);
        match stripe.statements.get_mut(&key) {
            Some(statement) => statement.count(sample, used),
            None => self.begin_statement(lane, &mut stripe, key, (text, work)).count(sample, used),
        }
        if used.0[FEW..].iter().all(|amount| *amount == 0) {
            lane.give_place(&mut stripe, key);
        }
    }

    /// Counts plans that were made for a statement and took so long together. `text`: without constants; `work`: that of
    /// the key.
    #[cold]
    #[inline(never)]
    pub fn planned(
        &self,
        key: StatementKey,
        (count, ns): (u32, u64),
        (text, work): (&Arc<str>, &Arc<Work>),
    ) {
        let lane = self.own();
        let mut stripe = lane.stripe.lock();
        match stripe.statements.get_mut(&key) {
            Some(statement) => statement.plan(count, ns),
            None => self.begin_statement(lane, &mut stripe, key, (text, work)).plan(count, ns),
        }
    }

    /// Makes room for a statement in a stripe.
    #[cold]
    fn begin_statement<'a>(
        &self,
        lane: &Lane,
        stripe: &'a mut Stripe,
        key: StatementKey,
        (text, work): (&Arc<str>, &Arc<Work>),
    ) -> &'a mut Statement {
        let max = live_int(setting::PG_STAT_STATEMENTS_MAX).max(100) as usize;
        if stripe.statements.len() >= max {
            lane.add_recent(stripe);
            let gone = crate::statements::make_room(&mut stripe.statements);
            self.forgotten.fetch_add(gone as i64, Ordering::Relaxed);
        }
        stripe.statements.entry(key).or_insert_with(|| Statement::new(text.clone(), work.clone()))
    }

    /// The number of an application in a database, under which its statements are counted.
    pub fn work(&self, database: u32, application: &str) -> Arc<Work> {
        let mut works = self.works.lock();
        let mut key = (database, Arc::from(application));
        if works.len() >= APPLICATIONS_MAX && !works.contains_key(&key) {
            key.1 = Arc::default();
        }
        let number = works.len() as u32;
        let new = || Work { number, database, application: key.1.clone() };
        works.entry(key.clone()).or_insert_with(|| Arc::new(new())).clone()
    }

    /// All statements.
    pub fn statements(&self) -> HashMap<StatementKey, Statement> {
        let mut all: HashMap<StatementKey, Statement> = HashMap::new();
        for lane in &self.lanes {
            for (key, statement) in &lane.all().statements {
                match all.get_mut(key) {
                    Some(sum) => sum.merge(statement),
                    None => drop(all.insert(*key, statement.clone())),
                }
            }
        }
        all
    }

    /// Forgets statements.
    pub fn reset_statements(&self, which: impl Fn(&StatementKey, &Work) -> bool, now: i64) {
        for lane in &self.lanes {
            lane.all().statements.retain(|key, statement| !which(key, &statement.work));
        }
        self.statements_reset.store(now, Ordering::Relaxed);
    }

    /// Statements that were forgotten to make room.
    pub fn forgotten(&self) -> i64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// When that was last done; 0: never.
    pub fn statements_reset_at(&self) -> i64 {
        self.statements_reset.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(counters: &Counters, oid: u32, changes: Changes, committed: bool) -> bool {
        let mut report = Report::default();
        let counts = report.tally.of(oid);
        (counts.inserted, counts.updated) = (changes.inserted, changes.updated);
        counts.deleted = changes.deleted;
        report.settled.push(changes.settled(oid, committed));
        counters.take(5, &mut report, |_| ())
    }

    fn updates(updated: u64) -> Changes {
        Changes { updated, ..Changes::default() }
    }

    #[test]
    fn counts_of_all_threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let changes = Changes { inserted: 3, updated: 2, deleted: 1 };
                        change(&counters, 7, changes, true);
                        counters.database_event(5, |d| d.commits += 1);
                    }
                });
            }
        });
        let all = counters.relations();
        let (counts, table) = (&all[&(5, 7)].counts, &all[&(5, 7)].table);
        assert_eq!((counts.inserted, counts.updated, counts.deleted), (1200, 800, 400));
        assert_eq!((table.live, table.dead, table.modified), (800, 1200, 2400));
        assert_eq!(counters.database(5).0.commits, 400);
    }

    #[test]
    fn what_was_rolled_back_is_dead() {
        let counters = Counters::default();
        change(&counters, 7, Changes { inserted: 5, updated: 2, deleted: 9 }, false);
        let table = counters.relations()[&(5, 7)].table.clone();
        assert_eq!((table.live, table.dead), (0, 7));
    }

    #[test]
    fn the_vacuum_is_woken_once() {
        let counters = Counters::default();
        assert!(!change(&counters, 7, updates(1), true));
        counters.set_threshold((5, 7), 10);
        let woken: Vec<bool> = (0..5).map(|_| change(&counters, 7, updates(4), true)).collect();
        assert_eq!(woken, [false, false, true, false, false]);
        let dead = counters.dead_rows()[0].1;
        assert_eq!(dead, 21);
        counters.vacuumed((5, 7), dead, 3.0, true, 1);
        assert!(!change(&counters, 7, updates(9), true));
        assert!(change(&counters, 7, updates(1), true));
        assert_eq!(counters.relations()[&(5, 7)].table.runs, [0, 1, 0, 0]);
    }

    #[test]
    fn databases_are_counted_apart_and_forgotten_with_what_they_held() {
        let counters = Counters::default();
        change(&counters, 7, updates(5), true);
        let mut report = Report::default();
        report.tally.of(7).updated = 2;
        report.database.commits = 3;
        counters.take(6, &mut report, |_| ());
        let all = counters.relations();
        assert_eq!((all[&(5, 7)].counts.updated, all[&(6, 7)].counts.updated), (5, 2));
        assert_eq!((counters.database(5).0.commits, counters.database(6).0.commits), (0, 3));
        counters.retain(|oid| oid == 5, |(database, _)| database == 5);
        assert!(!counters.relations().contains_key(&(6, 7)));
        assert_eq!(counters.database(6).0.commits, 0);
        assert_eq!(counters.relations()[&(5, 7)].counts.updated, 5);
    }

    #[test]
    fn a_reset_keeps_what_the_vacuum_goes_by() {
        let counters = Counters::default();
        change(&counters, 7, updates(5), true);
        counters.reset(5, 99);
        let all = counters.relations();
        assert_eq!((all[&(5, 7)].counts.updated, all[&(5, 7)].table.dead), (0, 5));
        assert_eq!(counters.database_base(5).1, 99);
        assert_eq!(counters.database_base(6).1, 0);
    }
}
