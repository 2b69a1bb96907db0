//! A slice of the server's past: what was counted in a second, a minute or an hour.
//!
//! Slices can be added: two seconds make one of two seconds, so that a range of time is the sum of its
//! slices, and old slices are kept as fewer, longer ones. Sums are added; levels (memory, sessions) keep
//! the highest; texts are shared between slices.
//!
//! A slice is bounded: of waits, statements, blockers, sessions and tables it keeps those that weigh most
//! ([`Slice::trim`]).

use std::hash::Hash;
use std::sync::Arc;

use base::WaitEvent;
use base::usage::{Usage, Use};
use rustc_hash::FxHashMap;

use super::clients::{CLIENTS_MAX, Client, ClientSum};
use super::plans::{PLANS_MAX, PlanNote};
use super::relations::{RELATIONS_MAX, RelationSum};

/// Waits that a slice keeps at most.
const WAITS_MAX: usize = 128;
/// Statements.
const STATEMENTS_MAX: usize = 64;
/// Blockers.
const BLOCKS_MAX: usize = 16;
/// Sessions.
const SESSIONS_MAX: usize = 16;
/// Tables.
const TABLES_MAX: usize = 32;
/// Events.
const EVENTS_MAX: usize = 256;

macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// One count of the server as a whole. Levels keep the highest value of a slice, all others are sums.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Count {
            $($(#[doc = $doc])+ $name,)*
        }

        /// All of them.
        pub const COUNTS: &[Count] = &[$(Count::$name,)*];
    };
}

counts! {
    /// Processor time of the process, microseconds.
    CpuUs,
    /// Processor time of the whole machine, microseconds.
    MachineCpuUs,
    /// Time of sessions that ran a statement, microseconds.
    ActiveUs,
    /// Sessions that began.
    Connections,
    /// Transactions committed.
    Commits,
    /// Transactions rolled back.
    Rollbacks,
    /// Deadlocks found.
    Deadlocks,
    /// Bytes of log.
    WalBytes,
    /// Log records.
    WalRecords,
    /// Full images of pages in the log.
    WalImages,
    /// Writes of the log.
    WalWrites,
    /// Syncs of the log.
    WalSyncs,
    /// Time of the log's writes, nanoseconds.
    WalWriteNs,
    /// Time of its syncs, nanoseconds.
    WalSyncNs,
    /// Times that a record had to wait for room in the log's buffers.
    WalBuffersFull,
    /// Checkpoints because of the time.
    CheckpointsTimed,
    /// Checkpoints because of the log's volume, or asked for.
    CheckpointsRequested,
    /// Pages written by checkpoints.
    CheckpointPages,
    /// Time in which a checkpoint was under way, microseconds.
    CheckpointUs,
    /// Pages found in memory.
    PagesHit,
    /// Pages read.
    PagesRead,
    /// Pages written.
    PagesWritten,
    /// Of these: by somebody who needed the frame at once.
    PagesWrittenForeground,
    /// Pages that had to leave memory.
    Evictions,
    /// Pages by which files were extended.
    PagesExtended,
    /// Plans that had to be made.
    PlansMade,
    /// Plans that were found made.
    PlansFound,
    /// A level: sessions.
    Sessions,
    /// A level: sessions that run a statement.
    SessionsActive,
    /// A level: sessions idle in a transaction.
    SessionsIdleInTransaction,
    /// A level: bytes that sessions hold.
    MemoryBytes,
    /// A level: `server_memory_limit` in bytes; 0: none.
    MemoryLimit,
    /// A level: processors of the machine.
    Processors,
    /// Bytes that all processes read from and wrote to the disk of the data directory.
    DiskBytes,
    /// Of these: this process, as far as the system has passed it on.
    DiskBytesOwn,
    /// Time in which that disk was at work, microseconds.
    DiskBusyUs,
}

impl Count {
    /// Whether it is a level, of which a slice keeps the highest.
    pub fn is_level(self) -> bool {
        (Count::Sessions as usize..=Count::Processors as usize).contains(&(self as usize))
    }
}

/// Waits for one event, by statement, object and client.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitSum {
    /// The event.
    pub event: WaitEvent,
    /// The statement that waited: its query identifier; 0: none, a thread of the server's own.
    pub statement: u64,
    /// For what, in words; empty: the event says it.
    pub object: Arc<str>,
    /// Waits that ended or began.
    pub count: u64,
    /// Their time, nanoseconds.
    pub ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// For whom the session works.
    pub client: Client,
}

/// The executions of a statement, the running ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementSum {
    /// Its query identifier.
    pub id: u64,
    /// The role's oid.
    pub user: u32,
    /// The database's.
    pub database: u32,
    /// `application_name` of the sessions; empty: not known, as of files of earlier versions.
    pub application: Arc<str>,
    /// Its text without constants.
    pub text: Arc<str>,
    /// Executions that ended.
    pub calls: u64,
    /// Their time and that of those under way, nanoseconds.
    pub ns: u64,
    /// Of that: waiting, nanoseconds. The rest is work on a processor.
    pub waited_ns: u64,
    /// Time that others waited for its session, nanoseconds.
    pub caused_ns: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// The resources used.
    pub used: Usage,
}

impl StatementSum {
    /// Nothing of a statement.
    pub fn new(id: u64, user: u32, database: u32, text: Arc<str>) -> StatementSum {
        StatementSum {
            id,
            user,
            database,
            application: Arc::default(),
            text,
            calls: 0,
            ns: 0,
            waited_ns: 0,
            caused_ns: 0,
            rows: 0,
            used: Usage::default(),
        }
    }

    /// Time on a processor, nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.ns.saturating_sub(self.waited_ns)
    }

    /// One amount that it used.
    pub fn get(&self, what: Use) -> u64 {
        self.used.get(what)
    }

    /// Adds another time, or another role's.
    pub(crate) fn add(&mut self, other: &StatementSum) {
        self.calls += other.calls;
        self.ns += other.ns;
        self.waited_ns += other.waited_ns;
        self.caused_ns += other.caused_ns;
        self.rows += other.rows;
        self.used.add(&other.used);
    }
}

/// A session at the end of a chain of waits, and those who stood behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The session at the end.
    pub pid: i32,
    /// Its `pg_stat_activity.state`, or its kind.
    pub state: Arc<str>,
    /// Its statement, or its last.
    pub query: Arc<str>,
    /// That statement's identifier; 0: none.
    pub statement: u64,
    /// How long it had been in that state, microseconds, at most.
    pub state_us: u64,
    /// How old its transaction was, microseconds, at most; 0: it had none.
    pub transaction_us: u64,
    /// The event that those behind it waited for first of all.
    pub event: WaitEvent,
    /// The object of that wait.
    pub object: Arc<str>,
    /// How many stood behind it, at most.
    pub waiting: u64,
    /// Of these: how many stood behind another who waited.
    pub indirect: u64,
    /// Their time, nanoseconds.
    pub ns: u64,
    /// A session that stood directly behind it while others stood behind that one, and its statement.
    pub next: Option<(i32, Arc<str>)>,
    /// A statement that waited.
    pub victim: Arc<str>,
}

/// A session that did one thing for long.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionNote {
    /// The session.
    pub pid: i32,
    /// Its `pg_stat_activity.state`.
    pub state: Arc<str>,
    /// Its statement, or its last.
    pub query: Arc<str>,
    /// That statement's identifier; 0: none.
    pub statement: u64,
    /// How long it had been in that state, microseconds.
    pub state_us: u64,
    /// How old its transaction was, microseconds; 0: it had none.
    pub transaction_us: u64,
    /// Log between its oldest snapshot and the newest commit, bytes; 0: it had no snapshot.
    pub snapshot_log: u64,
    /// Bytes of memory that it held.
    pub memory: u64,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableNote {
    /// Its database's oid.
    pub database: u32,
    /// Its own.
    pub oid: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Scans of the whole table.
    pub scans: u64,
    /// Rows that these read.
    pub scanned: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated and deleted.
    pub changed: u64,
    /// A level: rows that live.
    pub live: u64,
    /// A level: row versions that died since the last vacuum.
    pub dead: u64,
    /// A level: rows changed since the last ANALYZE.
    pub modified: u64,
    /// Dead rows at which the background vacuum comes; 0: not known.
    pub threshold: u64,
    /// Vacuums, by command or in the background.
    pub vacuums: u64,
    /// ANALYZEs, likewise.
    pub analyzes: u64,
}

impl TableNote {
    /// Nothing of a table.
    pub fn new(database: u32, oid: u32) -> TableNote {
        TableNote {
            database,
            oid,
            name: Arc::default(),
            scans: 0,
            scanned: 0,
            inserted: 0,
            changed: 0,
            live: 0,
            dead: 0,
            modified: 0,
            threshold: 0,
            vacuums: 0,
            analyzes: 0,
        }
    }
}

/// Something that happened at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, in microseconds since 2000.
    pub at: i64,
    /// Its kind: `start`, `stop`, `crash`, `checkpoint`, `definition`, `setting`, `vacuum`, `analyze`, `deadlock`,
    /// `error`, `finding`, `plan`, `alert`.
    pub kind: Arc<str>,
    /// The session; 0: the server.
    pub pid: i32,
    /// In words.
    pub text: Arc<str>,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its end, in microseconds since 2000.
    pub at: i64,
    /// Its length, microseconds.
    pub span_us: u64,
    /// By [`Count`].
    pub counts: [u64; COUNTS.len()],
    /// Waits.
    pub waits: Vec<WaitSum>,
    /// Statements.
    pub statements: Vec<StatementSum>,
    /// Sessions that stood in others' way.
    pub blocks: Vec<Block>,
    /// Sessions that did one thing for long.
    pub sessions: Vec<SessionNote>,
    /// Tables.
    pub tables: Vec<TableNote>,
    /// Events, oldest first.
    pub events: Vec<Event>,
    /// Clients.
    pub clients: Vec<ClientSum>,
    /// Tables and indexes.
    pub relations: Vec<RelationSum>,
    /// Plans that were made, oldest first.
    pub plans: Vec<PlanNote>,
}

impl Slice {
    /// Nothing, ending then.
    pub fn new(at: i64, span_us: u64) -> Slice {
        Slice {
            at,
            span_us,
            counts: [0; COUNTS.len()],
            waits: Vec::new(),
            statements: Vec::new(),
            blocks: Vec::new(),
            sessions: Vec::new(),
            tables: Vec::new(),
            events: Vec::new(),
            clients: Vec::new(),
            relations: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// One count.
    pub fn count(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// Sets a count.
    pub fn set(&mut self, what: Count, value: u64) {
        self.counts[what as usize] = value;
    }

    /// When it began, in microseconds since 2000.
    pub fn from(&self) -> i64 {
        self.at - self.span_us as i64
    }

    /// Keeps what weighs most.
    pub fn trim(&mut self) {
        keep(&mut self.waits, WAITS_MAX, |wait| wait.ns);
        keep(&mut self.statements, STATEMENTS_MAX, weight);
        keep(&mut self.blocks, BLOCKS_MAX, |block| block.ns);
        keep(&mut self.sessions, SESSIONS_MAX, |session| session.state_us);
        keep(&mut self.tables, TABLES_MAX, |table| table.scanned + table.dead + table.modified);
        keep(&mut self.clients, CLIENTS_MAX, ClientSum::weight);
        keep(&mut self.relations, RELATIONS_MAX, RelationSum::weight);
        // Of plans those that took another's place.
        keep(&mut self.plans, PLANS_MAX, |plan| u64::from(!plan.before.is_empty()));
        self.plans.sort_by_key(|plan| plan.at);
        if self.events.len() > EVENTS_MAX {
            let surplus = self.events.len() - EVENTS_MAX;
            self.events.drain(..surplus);
        }
    }
}

/// A statement that took time, or wrote or read much in little time, is worth keeping.
fn weight(statement: &StatementSum) -> u64 {
    let pages = [Use::BufferRead, Use::Evicted, Use::Extended, Use::BufferDirtied];
    let pages: u64 = pages.iter().map(|what| statement.get(*what)).sum();
    let bytes = statement.get(Use::WalBytes) + statement.get(Use::TempWritten);
    // A page for 10 µs, a megabyte for a millisecond.
    statement.ns + statement.caused_ns + pages * 10_000 + bytes
}

fn keep<T>(all: &mut Vec<T>, most: usize, weight: impl Fn(&T) -> u64) {
    if all.len() > most {
        all.sort_by_key(|one| std::cmp::Reverse(weight(one)));
        all.truncate(most);
    }
}

/// Slices that are being added up, oldest first.
pub struct Sum {
    /// The sum so far.
    slice: Slice,
    waits: FxHashMap<(WaitEvent, u64, Arc<str>, Client), usize>,
    statements: FxHashMap<(u64, u32, u32, Arc<str>), usize>,
    blocks: FxHashMap<(i32, u64), usize>,
    sessions: FxHashMap<(i32, Arc<str>, i64), usize>,
    tables: FxHashMap<(u32, u32), usize>,
    clients: FxHashMap<Client, usize>,
    relations: FxHashMap<(u32, u32), usize>,
}

/// The place of a key in a list, at which `new` puts an item if there is none.
fn place<K: Hash + Eq, T>(
    places: &mut FxHashMap<K, usize>,
    list: &mut Vec<T>,
    key: K,
    new: impl FnOnce() -> T,
) -> (usize, bool) {
    match places.get(&key) {
        Some(at) => (*at, true),
        None => {
            places.insert(key, list.len());
            list.push(new());
            (list.len() - 1, false)
        }
    }
}

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            slice: Slice::new(0, 0),
            waits: FxHashMap::default(),
            statements: FxHashMap::default(),
            blocks: FxHashMap::default(),
            sessions: FxHashMap::default(),
            tables: FxHashMap::default(),
            clients: FxHashMap::default(),
            relations: FxHashMap::default(),
        }
    }
}

impl Sum {
    /// Adds a slice, which is later than those before.
    pub fn add(&mut self, other: &Slice) {
        let sum = &mut self.slice;
        sum.at = other.at;
        sum.span_us += other.span_us;
        for count in COUNTS {
            let (mine, its) = (&mut sum.counts[*count as usize], other.count(*count));
            *mine = if count.is_level() { its.max(*mine) } else { *mine + its };
        }
        for wait in &other.waits {
            let key = (wait.event, wait.statement, wait.object.clone(), wait.client.clone());
            let (at, known) = place(&mut self.waits, &mut sum.waits, key, || wait.clone());
            if known {
                let mine = &mut sum.waits[at];
                mine.count += wait.count;
                mine.ns += wait.ns;
                mine.longest_ns = mine.longest_ns.max(wait.longest_ns);
            }
        }
        for statement in &other.statements {
            let StatementSum { id, user, database, application, .. } = statement;
            let key = (*id, *user, *database, application.clone());
            let (at, known) =
                place(&mut self.statements, &mut sum.statements, key, || statement.clone());
            if known {
                sum.statements[at].add(statement);
            }
        }
        self.add_sessions(other);
        for table in &other.tables {
            let key = (table.database, table.oid);
            let (at, known) =
                place(&mut self.tables, &mut self.slice.tables, key, || table.clone());
            if known {
                add_table(&mut self.slice.tables[at], table);
            }
        }
        self.add_shares(other);
        self.slice.events.extend(other.events.iter().cloned());
        self.slice.plans.extend(other.plans.iter().cloned());
    }

    fn add_shares(&mut self, other: &Slice) {
        let sum = &mut self.slice;
        for client in &other.clients {
            let key = client.client.clone();
            let (at, known) = place(&mut self.clients, &mut sum.clients, key, || client.clone());
            if known {
                sum.clients[at].add(client);
            }
        }
        for relation in &other.relations {
            let key = (relation.database, relation.oid);
            let (at, known) =
                place(&mut self.relations, &mut sum.relations, key, || relation.clone());
            if known {
                sum.relations[at].add(relation);
            }
        }
    }

    fn add_sessions(&mut self, other: &Slice) {
        let sum = &mut self.slice;
        for block in &other.blocks {
            let key = (block.pid, block.statement);
            let (at, known) = place(&mut self.blocks, &mut sum.blocks, key, || block.clone());
            if known {
                let mine = &mut sum.blocks[at];
                mine.ns += block.ns;
                mine.state_us = mine.state_us.max(block.state_us);
                mine.transaction_us = mine.transaction_us.max(block.transaction_us);
                mine.indirect = mine.indirect.max(block.indirect);
                if block.waiting >= mine.waiting {
                    mine.waiting = block.waiting;
                    (mine.state, mine.query) = (block.state.clone(), block.query.clone());
                    (mine.event, mine.object) = (block.event, block.object.clone());
                    mine.victim = block.victim.clone();
                    if block.next.is_some() {
                        mine.next = block.next.clone();
                    }
                }
            }
        }
        for session in &other.sessions {
            // The same stay in the same state began at the same time, to a second.
            let began = (other.at - session.state_us as i64 + 500_000).div_euclid(2_000_000);
            let key = (session.pid, session.state.clone(), began);
            let (at, known) = place(&mut self.sessions, &mut sum.sessions, key, || session.clone());
            if known {
                let mine = &mut sum.sessions[at];
                let snapshot_log = session.snapshot_log.max(mine.snapshot_log);
                let memory = session.memory.max(mine.memory);
                *mine = SessionNote { snapshot_log, memory, ..session.clone() };
            }
        }
    }

    /// The sum, whole.
    pub fn slice(&self) -> &Slice {
        &self.slice
    }

    /// The sum, whole.
    pub fn done(self) -> Slice {
        self.slice
    }
}

/// Adds a later note of the same table.
fn add_table(mine: &mut TableNote, later: &TableNote) {
    let old = mine.clone();
    *mine = TableNote {
        scans: old.scans + later.scans,
        scanned: old.scanned + later.scanned,
        inserted: old.inserted + later.inserted,
        changed: old.changed + later.changed,
        vacuums: old.vacuums + later.vacuums,
        analyzes: old.analyzes + later.analyzes,
        dead: old.dead.max(later.dead),
        modified: old.modified.max(later.modified),
        ..later.clone()
    };
}

/// The sum of slices, oldest first.
pub fn sum<'a>(slices: impl IntoIterator<Item = &'a Slice>) -> Slice {
    let mut sum = Sum::default();
    slices.into_iter().for_each(|slice| sum.add(slice));
    sum.done()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A second with something of each kind.
    pub(crate) fn second(at: i64, pid: i32) -> Slice {
        let mut slice = Slice::new(at, 1_000_000);
        slice.set(Count::Commits, 3);
        slice.set(Count::Sessions, pid as u64);
        let client = Client { user: 10, database: 5, application: "shop".into() };
        slice.waits.push(WaitSum {
            event: WaitEvent::IOWALSync,
            statement: 7,
            object: "".into(),
            count: 2,
            ns: 500,
            longest_ns: 300,
            client: client.clone(),
        });
        let mut statement = StatementSum::new(7, 10, 5, "select 1".into());
        statement.application = "shop".into();
        (statement.calls, statement.ns, statement.waited_ns, statement.rows) = (3, 900, 500, 1);
        statement.used.0[Use::WalBytes as usize] = 77;
        slice.statements.push(statement);
        slice.blocks.push(Block {
            pid,
            state: "idle in transaction".into(),
            query: "select x".into(),
            statement: 8,
            state_us: 5,
            transaction_us: 6,
            event: WaitEvent::LockRelation,
            object: "relation t".into(),
            waiting: 2,
            indirect: 1,
            ns: 1000,
            next: Some((4, "alter".into())),
            victim: "update".into(),
        });
        slice.sessions.push(SessionNote {
            pid,
            state: "active".into(),
            query: "q".into(),
            statement: 9,
            state_us: (at - 10_000_000) as u64,
            transaction_us: 8,
            snapshot_log: 1,
            memory: 2,
        });
        slice.tables.push(TableNote {
            database: 5,
            oid: 6,
            name: "t".into(),
            scans: 1,
            scanned: 100,
            inserted: 2,
            changed: 3,
            live: 10,
            dead: pid as u64,
            modified: 4,
            threshold: 50,
            vacuums: 1,
            analyzes: 0,
        });
        slice.events.push(Event { at, kind: "start".into(), pid: 0, text: "x".into() });
        slice.clients.push(ClientSum { sessions: 2, active_ns: 30, ..ClientSum::new(client) });
        slice.relations.push(RelationSum {
            name: "t_a".into(),
            table: "t".into(),
            scans: 4,
            ..RelationSum::new(5, 8)
        });
        slice.plans.push(PlanNote {
            at,
            database: 5,
            statement: 7,
            query: "select 1".into(),
            plan: "Seq Scan on t".into(),
            before: Arc::default(),
        });
        slice
    }

    #[test]
    fn seconds_add_up() {
        let both = sum([&second(20_000_000, 3), &second(21_000_000, 3)]);
        assert_eq!((both.at, both.from(), both.span_us), (21_000_000, 19_000_000, 2_000_000));
        assert_eq!((both.count(Count::Commits), both.count(Count::Sessions)), (6, 3));
        assert_eq!(
            (both.waits[0].count, both.waits[0].ns, both.waits[0].longest_ns),
            (4, 1000, 300)
        );
        assert_eq!((both.statements[0].calls, both.statements[0].busy_ns()), (6, 800));
        let mut other = second(22_000_000, 3);
        other.statements[0].application = "report".into();
        let calls: Vec<u64> =
            sum([&both, &other]).statements.iter().map(|statement| statement.calls).collect();
        assert_eq!(calls, [6, 3], "each application's");
        assert_eq!(both.statements[0].get(Use::WalBytes), 154);
        assert_eq!((both.blocks.len(), both.blocks[0].ns, both.blocks[0].waiting), (1, 2000, 2));
        assert_eq!((both.sessions.len(), both.sessions[0].state_us), (1, 11_000_000));
        assert_eq!(
            (both.tables[0].scanned, both.tables[0].live, both.tables[0].dead),
            (200, 10, 3)
        );
        assert_eq!((both.events.len(), both.plans.len()), (2, 2));
        assert_eq!((both.clients[0].sessions, both.clients[0].active_ns), (2, 60));
        assert_eq!((both.relations.len(), both.relations[0].scans), (1, 8));
    }

    #[test]
    fn a_slice_keeps_what_weighs_most() {
        let mut slice = Slice::new(0, 1);
        for n in 0..200u64 {
            let mut statement = StatementSum::new(n, 10, 5, "x".into());
            statement.ns = n;
            slice.statements.push(statement);
        }
        slice.statements[3].used.0[Use::Evicted as usize] = 5;
        slice.trim();
        assert_eq!((slice.statements.len(), slice.statements[0].id), (STATEMENTS_MAX, 3));
    }
}
