//! The server's one plan cache: sharded, bounded in bytes, for both protocols.
//!
//! * Extended protocol and PREPARE: an entry is found by text and declared parameter types.
//! * Simple protocol: by the text's shape ([`crate::prepare::normalize`]). The literals that became
//!   parameters when the entry was made take their values from the new text; all other literals
//!   must be equal to the entry's, since the plan has them inside (LIMIT 10, ORDER BY 1, type
//!   modifiers).
//!
//! An entry serves while nothing that its plan depends on has changed: the catalog's version and the
//! environment (settings that planning reads, search path) are part of it. Tables grow without a
//! change of either, so every so often an entry compares its tables' sizes with those that it was
//! planned for, and is made again when they differ much.
//!
//! Transactions with definitions of their own (snapshot version 0) neither use nor fill the cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::settings::{live_int, setting};
use base::{Oid, Result, WaitEvent, err};
use sched::LwLock;
use types::Datum;

use crate::plan::{Prepared, Statement};
use crate::prepare::{Lifted, Literal, PrepareContext, normalize, prepare};
use crate::scan;
use crate::utility::Utility;

const SHARDS: usize = 64;
/// What a plan is counted as, beside its text.
const PLAN_BYTES: usize = 4096;
/// How many uses of an entry lie between two looks at its tables' sizes.
const SIZE_CHECK_EVERY: u64 = 64;
/// A table may grow or shrink by this factor before its plans are made again.
const SIZE_FACTOR: u32 = 4;
/// Texts up to this length are worth keeping though they have no shape.
const SHORT_TEXT: usize = 64;
/// A plan that costs more (about a millisecond, ten times what planning takes) is made anew each time, for
/// its own literals.
const EXPENSIVE: f64 = 500.0;
/// Below this many pages a table's size changes no plan.
const SMALL_PAGES: u32 = 8;

/// Expensive shapes of which a cache knows at most.
const EXPENSIVE_KNOWN: usize = 1024;

/// See the module's documentation.
pub struct PlanCache {
    shards: Vec<LwLock<Shard>>,
    /// Shapes of texts that are expensive, which are planned for their own literals at once.
    expensive: Box<[AtomicU64]>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<u64, Vec<Arc<Entry>>>,
    bytes: usize,
}

struct Entry {
    key: Key,
    text: Box<str>,
    literals: Box<[Literal]>,
    lifted: Box<[Lifted]>,
    /// Literals that the plan has inside.
    fixed: Box<[usize]>,
    prepared: Arc<Prepared>,
    /// Tables and their pages when the plan was made.
    sizes: Box<[(Oid, u32)]>,
    uses: AtomicU64,
    /// Used since the last look of the one who makes room.
    recent: AtomicBool,
}

/// What a plan depends on besides the text.
#[derive(Clone, PartialEq)]
struct Key {
    simple: bool,
    param_types: Box<[Oid]>,
    environment: u64,
    catalog_version: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache::new()
    }
}

impl PlanCache {
    /// Empty.
    pub fn new() -> PlanCache {
        let shard = || LwLock::new(WaitEvent::LWLockPlanCache, Shard::default());
        PlanCache {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            expensive: (0..EXPENSIVE_KNOWN).map(|_| AtomicU64::new(0)).collect(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Hits and misses so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// For the extended protocol and PREPARE: the plan for this text and these types, from the cache
    /// if the catalog's version and the settings that matter are the same.
    ///
    /// # Errors
    /// As [`prepare`].
    pub fn prepare(
        &self,
        text: &str,
        param_types: &[Oid],
        cx: &PrepareContext<'_>,
    ) -> Result<Arc<Prepared>> {
        let plan = || prepare(text, param_types, cx, None).map(|(p, _)| Arc::new(p));
        if cx.catalog.version == 0 {
            return plan();
        }
        let hash = text_hash(text);
        let fits = |e: &Entry| {
            !e.key.simple && *e.text == *text && *e.key.param_types == *param_types && e.fits(cx)
        };
        if let Some(entry) = self.find(hash, cx, fits) {
            return Ok(entry.prepared.clone());
        }
        let prepared = plan()?;
        if !is_kept(&prepared.statement) {
            return Ok(prepared);
        }
        let key = Key::new(false, param_types, cx);
        self.insert(hash, Entry::new(key, text, &[], &[], &prepared, cx));
        Ok(prepared)
    }

    /// For the simple protocol: finds the plan by the text's shape, with the literals as
    /// parameters; falls back to a plan of its own. Only for a single statement.
    ///
    /// # Errors
    /// As [`prepare`], and those of reading a literal as its parameter's type.
    pub fn prepare_simple(
        &self,
        text: &str,
        cx: &PrepareContext<'_>,
    ) -> Result<(Arc<Prepared>, Vec<Datum>)> {
        let mut literals = Vec::with_capacity(8);
        let hash = match normalize(text, &mut literals) {
            Some(hash) if cx.catalog.version != 0 => hash,
            // BEGIN, END and kin are worth keeping by their text.
            _ if text.len() <= SHORT_TEXT => {
                return without_parameters(self.prepare(text, &[], cx)?, text);
            }
            _ => return without_parameters(Arc::new(prepare(text, &[], cx, None)?.0), text),
        };
        let fits = |e: &Entry| {
            e.key.simple
                && e.fits(cx)
                && scan::same_shape(&e.text, &e.literals, text, &literals)
                && e.fixed_literals_equal(text, &literals)
        };
        if let Some(entry) = self.find(hash, cx, fits) {
            return match parameters(text, &literals, &entry.lifted, cx) {
                Ok(params) => Ok((entry.prepared.clone(), params)),
                // A plan without lifted literals tells the error with its position.
                Err(_) => Ok((Arc::new(prepare(text, &[], cx, None)?.0), Vec::new())),
            };
        }
        // With other definitions or statistics it may be another matter.
        let shape = hash ^ cx.catalog.version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let known = &self.expensive[shape as usize % EXPENSIVE_KNOWN];
        if known.load(Ordering::Relaxed) == shape {
            return Ok((Arc::new(prepare(text, &[], cx, None)?.0), Vec::new()));
        }
        let (prepared, lifted) = prepare(text, &[], cx, Some(&literals))?;
        if !lifted.is_empty() && is_expensive(&prepared.statement) {
            // What the literals say about the rows is worth more than a plan in the cache.
            known.store(shape, Ordering::Relaxed);
            return Ok((Arc::new(prepare(text, &[], cx, None)?.0), Vec::new()));
        }
        let prepared = Arc::new(prepared);
        let Ok(params) = parameters(text, &literals, &lifted, cx) else {
            return Ok((Arc::new(prepare(text, &[], cx, None)?.0), Vec::new()));
        };
        if matches!(prepared.statement, Statement::Query(_)) {
            let key = Key::new(true, &[], cx);
            self.insert(hash, Entry::new(key, text, &literals, &lifted, &prepared, cx));
        }
        Ok((prepared, params))
    }

    fn shard(&self, hash: u64) -> &LwLock<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    fn find(
        &self,
        hash: u64,
        cx: &PrepareContext<'_>,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<Arc<Entry>> {
        let found = {
            let shard = self.shard(hash).read();
            shard.entries.get(&hash).and_then(|list| list.iter().find(|e| fits(e)).cloned())
        };
        let found = found.filter(|e| e.still_good(cx));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Puts an entry in, in the place of those that it supersedes, and makes room for it.
    fn insert(&self, hash: u64, entry: Entry) {
        let limit = live_int(setting::PLAN_CACHE_SIZE).max(0) as usize * 1024 / SHARDS;
        let bytes = entry.bytes();
        if bytes > limit {
            return;
        }
        let mut shard = self.shard(hash).write();
        let shard = &mut *shard;
        let list = shard.entries.entry(hash).or_default();
        let bytes_before: usize = list.iter().map(|e| e.bytes()).sum();
        list.retain(|e| !e.superseded_by(&entry));
        let bytes_after: usize = list.iter().map(|e| e.bytes()).sum();
        list.push(Arc::new(entry));
        shard.bytes = shard.bytes + bytes + bytes_after - bytes_before;
        while shard.bytes > limit {
            shard.make_room();
        }
    }
}

impl Shard {
    /// Drops what was not used since the last call; each call frees something or makes everything
    /// free for the next.
    fn make_room(&mut self) {
        let mut bytes = 0;
        self.entries.retain(|_, list| {
            list.retain(|e| e.recent.swap(false, Ordering::Relaxed));
            bytes += list.iter().map(|e| e.bytes()).sum::<usize>();
            !list.is_empty()
        });
        self.bytes = bytes;
    }
}

impl Key {
    fn new(simple: bool, param_types: &[Oid], cx: &PrepareContext<'_>) -> Key {
        Key {
            simple,
            param_types: param_types.into(),
            environment: cx.environment,
            catalog_version: cx.catalog.version,
        }
    }
}

impl Entry {
    fn new(
        key: Key,
        text: &str,
        literals: &[Literal],
        lifted: &[Lifted],
        prepared: &Arc<Prepared>,
        cx: &PrepareContext<'_>,
    ) -> Entry {
        let size = |(oid, _): &(Oid, txn::LockMode)| {
            cx.catalog.table(oid.0).map(|t| (*oid, (cx.table_size)(t).0))
        };
        Entry {
            key,
            text: text.into(),
            literals: literals.into(),
            lifted: lifted.into(),
            fixed: (0..literals.len())
                .filter(|i| !lifted.iter().any(|l| l.literal == *i))
                .collect(),
            prepared: prepared.clone(),
            sizes: prepared.locks.iter().filter_map(size).collect(),
            uses: AtomicU64::new(1),
            recent: AtomicBool::new(true),
        }
    }

    fn bytes(&self) -> usize {
        PLAN_BYTES + self.text.len() * 3 + self.literals.len() * size_of::<Literal>()
    }

    fn fits(&self, cx: &PrepareContext<'_>) -> bool {
        self.key.catalog_version == cx.catalog.version && self.key.environment == cx.environment
    }

    /// Whether `new` answers the same question, in newer circumstances.
    fn superseded_by(&self, new: &Entry) -> bool {
        let same = self.key.simple == new.key.simple
            && self.key.param_types == new.key.param_types
            && self.key.environment == new.key.environment;
        same && (self.key.catalog_version != new.key.catalog_version || self.text == new.text)
    }

    /// Literals that the plan has inside are the same in the new text.
    fn fixed_literals_equal(&self, text: &str, literals: &[Literal]) -> bool {
        self.fixed
            .iter()
            .all(|i| self.text[self.literals[*i].range.clone()] == text[literals[*i].range.clone()])
    }

    /// Counts a use; now and then compares the tables' sizes with those that it was planned for.
    fn still_good(&self, cx: &PrepareContext<'_>) -> bool {
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
        let uses = self.uses.load(Ordering::Relaxed) + 1;
        self.uses.store(uses, Ordering::Relaxed);
        if !uses.is_multiple_of(SIZE_CHECK_EVERY) && !uses.is_power_of_two() {
            return true;
        }
        self.sizes.iter().all(|(oid, then)| {
            let now = cx.catalog.table(oid.0).map_or(*then, |t| (cx.table_size)(t).0);
            let (small, large) = (now.min(*then), now.max(*then));
            large <= SMALL_PAGES || large / SIZE_FACTOR <= small
        })
    }
}

/// A LIMIT hides what a statement may cost for other literals.
fn is_expensive(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(plan) if plan.greatest_cost() > EXPENSIVE)
}

/// Statements that come again: queries, and what drivers send around them.
fn is_kept(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_) => true,
        Statement::Utility(utility) => matches!(
            utility,
            Utility::Begin(_)
                | Utility::Commit { .. }
                | Utility::Rollback { .. }
                | Utility::Savepoint(_)
                | Utility::Release(_)
                | Utility::RollbackTo(_)
                | Utility::Set { .. }
                | Utility::Show(_)
                | Utility::Reset(_)
                | Utility::Discard(_)
        ),
        Statement::Empty => false,
    }
}

/// The simple protocol has no values for `$1`.
fn without_parameters(prepared: Arc<Prepared>, text: &str) -> Result<(Arc<Prepared>, Vec<Datum>)> {
    let inside = matches!(prepared.statement, Statement::Utility(Utility::Prepare { .. }));
    if prepared.params.is_empty() || inside {
        return Ok((prepared, Vec::new()));
    }
    let number = (1..=prepared.params.len()).find(|n| text.contains(&format!("${n}"))).unwrap_or(1);
    let place = text.find(&format!("${number}")).unwrap_or(0);
    Err(err!(UNDEFINED_PARAMETER, "there is no parameter ${number}")
        .at(crate::parse::char_position(text, place)))
}

/// The values of the literals that became parameters.
fn parameters(
    text: &str,
    literals: &[Literal],
    lifted: &[Lifted],
    cx: &PrepareContext<'_>,
) -> Result<Vec<Datum>> {
    let mut params = Vec::with_capacity(lifted.len());
    for one in lifted {
        let literal = &literals[one.literal];
        params.push(parameter(&text[literal.range.clone()], one.ty, cx)?);
    }
    Ok(params)
}

/// A literal's value as a parameter's type.
pub(crate) fn parameter(text: &str, ty: Oid, cx: &PrepareContext<'_>) -> Result<Datum> {
    let Some(quoted) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) else {
        if ty == types::oids::INT4
            && let Ok(value) = text.parse()
        {
            return Ok(Datum::Int4(value));
        }
        return types::io::input(ty, -1, text, cx.format);
    };
    if quoted.contains('\'') {
        types::io::input(ty, -1, &quoted.replace("''", "'"), cx.format)
    } else {
        types::io::input(ty, -1, quoted, cx.format)
    }
}

fn text_hash(text: &str) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}
