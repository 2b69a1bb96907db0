//! A slot's changes as its plugin tells of them: what the functions of logical decoding and senders of changes share.
//!
//! ```text
//! slot ─ position ─► storage::LogStream ─► logical::Decoder ─► plugin ─► pieces
//! ```
//! * Transactions that ended at or before the confirmed position are decoded and left out.
//! * [`LogicalStream::confirm`] moves the slot: to begin anew it needs the log from the first change of what was open
//!   at the confirmed position.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Lsn, Oid, Result, Xid, err};
use catalog::{Publication, Snapshot, Table};
use logical::decode::{Change, Decoded, Decoder, StreamTable};
use logical::output::Piece;
use logical::output::json::JsonOutput;
use logical::output::pgoutput::{Outgoing, PgOutput, Publisher, Relation, RelationColumn};
use logical::output::text::TextOutput;
use logical::record::{Committing, OldRow, Operation};
use logical::slot::{PLUGINS, SlotState};
use sql::Expr;
use storage::LogStream;
use txn::XidStatus;
use types::{Datum, FormatContext};

use crate::context::{Engine, ExecContext};
use crate::eval;
use crate::rows::Row;

/// Positions of the stream that are kept for [`LogicalStream::confirm`], at most.
const MARKS_MAX: usize = 4096;

enum Plugin {
    Text(TextOutput),
    Json(JsonOutput),
    Pg { output: PgOutput, publications: Vec<String>, local_only: bool, phases: Phases },
}

/// Events that a stream of `pgoutput` sends before a transaction has committed.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    /// Parts of transactions that are large.
    streaming: bool,
    /// That one is prepared.
    two_phase: bool,
}

/// See the module's documentation.
pub struct LogicalStream {
    slot: String,
    state: SlotState,
    log: LogStream,
    decoder: Decoder,
    plugin: Plugin,
    /// Positions that were reached, each with the one from which the log is needed to go on from there.
    marks: VecDeque<(Lsn, Lsn)>,
}

/// The state of a slot for logical decoding.
///
/// # Errors
/// `42704`, `55000`.
pub fn slot_state(engine: &Engine, slot: &str) -> Result<SlotState> {
    let Some(found) = engine.storage.slots().get(slot) else {
        return Err(err!(UNDEFINED_OBJECT, "replication slot \"{slot}\" does not exist"));
    };
    match SlotState::decode(&found.state).filter(|state| !state.plugin.is_empty()) {
        Some(state) if !found.lost => Ok(state),
        Some(_) => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot read from logical replication slot \"{slot}\""
        )
        .detail("This slot has been invalidated because it exceeded the maximum reserved size.")),
        None => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot use physical replication slot for logical decoding"
        )),
    }
}

/// A slot for logical decoding that is to be made: its stream begins with the transactions that begin from now on and
/// that commit after all that are open have ended.
pub struct NewSlot<'n> {
    /// Its name.
    pub name: &'n str,
    /// The output plugin.
    pub plugin: &'n str,
    /// It ends with its session.
    pub temporary: bool,
    /// Prepared transactions are decoded when they are prepared.
    pub two_phase: bool,
    /// Its database.
    pub database: u32,
    /// Slots that there may be.
    pub limit: i64,
    /// The setting `output_plugin_libraries`.
    pub libraries: &'n str,
}

/// Refuses a plugin that `output_plugin_libraries` does not list.
fn check_plugin(plugin: &str, libraries: &str) -> Result<()> {
    let listed = base::settings::split_libraries(libraries).unwrap_or_default();
    if listed.iter().any(|library| library == plugin) {
        return Ok(());
    }
    Err(err!(
        INSUFFICIENT_PRIVILEGE,
        "library \"{plugin}\" may not be used as an output plugin"
    )
    .hint(
        "If it is safe for all REPLICATION users to use this library as an output plugin, add it to \
         \"output_plugin_libraries\" and reload the server configuration.",
    ))
}

impl NewSlot<'_> {
    /// Makes it. `point` gives the position at which the stream begins, once all that were open have ended.
    ///
    /// # Errors
    /// `42501`, `42602`, `42710`, `53400`, `55000`, `58P01`.
    pub fn make(&self, engine: &Engine, point: impl FnOnce() -> Result<Lsn>) -> Result<Lsn> {
        if !logical::record::is_enabled() {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "logical decoding requires wal_level >= logical"
            );
        }
        let (name, plugin) = (self.name, self.plugin);
        logical::slot::check_name(name)?;
        let slots = engine.storage.slots();
        // A slot that exists already is the first thing to be told, which its creation does.
        if slots.get(name).is_none() {
            check_plugin(plugin, self.libraries)?;
            if !PLUGINS.contains(&plugin) {
                base::bail!(
                    UNDEFINED_FILE,
                    "could not access file \"{plugin}\": No such file or directory"
                );
            }
        }
        if slots.all().len() as i64 >= self.limit {
            return Err(err!(CONFIGURATION_LIMIT_EXCEEDED, "all replication slots are in use")
                .hint("Free one or increase max_replication_slots."));
        }
        let wal = &engine.storage.wal;
        let mut state = SlotState {
            plugin: plugin.to_owned(),
            database: self.database,
            confirmed: u64::MAX,
            two_phase: self.two_phase,
            two_phase_at: 0,
        };
        let made = slots.create(name, self.temporary, state.encode(), || wal.insert_position())?;
        let found = wait_for_others(engine).and_then(|()| point()).and_then(|confirmed| {
            state.confirmed = confirmed.0;
            wal.flush(confirmed)?;
            slots.advance(name, made.restart, state.encode(), true)?;
            Ok(confirmed)
        });
        if found.is_err() {
            slots.remove(name)?;
        }
        found
    }
}

/// The same for the session that runs a statement.
///
/// # Errors
/// As [`NewSlot::make`]; `25001` when its transaction has written.
pub fn create_slot(
    name: &str,
    plugin: &str,
    (temporary, two_phase): (bool, bool),
    cx: &mut ExecContext<'_>,
) -> Result<Lsn> {
    if cx.tx.top_xid().is_some() {
        base::bail!(
            ACTIVE_SQL_TRANSACTION,
            "cannot create logical replication slot in transaction that has performed writes"
        );
    }
    let limit = cx.settings.int(base::settings::setting::MAX_REPLICATION_SLOTS);
    let libraries = cx.settings.str(base::settings::setting::OUTPUT_PLUGIN_LIBRARIES).to_owned();
    let database = cx.database.1;
    let wanted =
        NewSlot { name, plugin, temporary, two_phase, database, limit, libraries: &libraries };
    let engine = cx.engine;
    wanted.make(engine, || Ok(engine.storage.wal.insert_position()))
}

/// Waits until all transactions that have an id by now have ended.
fn wait_for_others(engine: &Engine) -> Result<()> {
    let manager = &engine.txn;
    let until = manager.next_xid();
    while manager.oldest_running() < until {
        sched::check_interrupts()?;
        let soon = std::time::Instant::now() + std::time::Duration::from_millis(10);
        sched::park(base::WaitEvent::LockTransactionid, Some(soon));
    }
    Ok(())
}

impl LogicalStream {
    /// Opens a slot's stream with the plugin's options.
    ///
    /// # Errors
    /// `42501`, `42704`, `55000`, and those of the options.
    pub fn open(
        slot: &str,
        options: &[(String, Option<String>)],
        cx: &ExecContext<'_>,
    ) -> Result<LogicalStream> {
        let mut state = slot_state(cx.engine, slot)?;
        if state.database != cx.database.1 {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "replication slot \"{slot}\" was not created in this database"
            );
        }
        let libraries = cx.settings.str(base::settings::setting::OUTPUT_PLUGIN_LIBRARIES);
        check_plugin(&state.plugin, libraries)?;
        let plugin = match state.plugin.as_str() {
            "test_decoding" => Plugin::Text(TextOutput::new(options)?),
            "wal2json" => Plugin::Json(JsonOutput::new(options)?),
            _ => pgoutput(options)?,
        };
        if matches!(&plugin, Plugin::Pg { phases, .. } if phases.two_phase) && !state.two_phase {
            // The stream's reader has asked for it later than for the slot; what was prepared by now was not told of.
            (state.two_phase, state.two_phase_at) = (true, state.confirmed);
        }
        let restart = cx.engine.storage.slots().get(slot).map_or(Lsn(0), |s| s.restart);
        Ok(LogicalStream {
            slot: slot.to_owned(),
            log: cx.engine.storage.stream_from(restart),
            decoder: Decoder::new(state.database),
            state,
            plugin,
            marks: VecDeque::new(),
        })
    }

    /// Whether what comes out need not be text.
    pub fn is_binary(&self) -> bool {
        match &self.plugin {
            Plugin::Text(output) => output.binary,
            Plugin::Json(_) => false,
            Plugin::Pg { .. } => true,
        }
    }

    /// The plugin's name.
    pub fn plugin(&self) -> &str {
        &self.state.plugin
    }

    /// Everything before this has come out.
    pub fn position(&self) -> Lsn {
        self.log.position()
    }

    /// The position up to which the stream's reader has received everything.
    pub fn confirmed(&self) -> Lsn {
        Lsn(self.state.confirmed)
    }

    /// Leaves out what ended at or before a position; never goes back.
    pub fn skip_to(&mut self, position: Lsn) {
        self.state.confirmed = self.state.confirmed.max(position.0);
    }

    /// Goes on until something comes out, or the log ends at `upto`, up to which it is durable. False: it has ended.
    ///
    /// # Errors
    /// Damage of the log; those of printing values and of publications.
    pub fn next(
        &mut self,
        upto: Lsn,
        cx: &mut ExecContext<'_>,
        format: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<bool> {
        let before = out.len();
        let mut steps = 0_u32;
        loop {
            steps += 1;
            if steps.is_multiple_of(64) {
                sched::check_interrupts()?;
            }
            let wants =
                |code| Decoder::wants(code) || matches!(code, txn::PREPARED | txn::ROLLED_BACK);
            let Some(logged) = self.log.next(upto, wants)? else {
                let manager = cx.tx.manager();
                let ended =
                    self.decoder.forget(|top| manager.status(Xid(top)) == XidStatus::Aborted);
                let position = self.log.position();
                if let Plugin::Pg { output, .. } = &mut self.plugin {
                    output.aborted(&ended, position, out);
                }
                self.mark(position);
                return Ok(out.len() > before);
            };
            let at = (logged.begin, logged.end);
            let decoded = match logged.code {
                txn::PREPARED if self.tells_of_prepared(logged.end) => {
                    let prepared = txn::Prepared::decode(&logged.bytes)?;
                    let ids: Vec<u64> = prepared.xids.iter().map(|xid| xid.0).collect();
                    self.decoder.prepare(&ids, (&prepared.name.gid, prepared.name.at), at)
                }
                txn::ROLLED_BACK => match logged.bytes.first_chunk::<8>() {
                    Some(top) => self.decoder.rolled_back(u64::from_le_bytes(*top), at),
                    None => None,
                },
                txn::PREPARED => None,
                code => self.decoder.feed(code, &logged.bytes, at)?,
            };
            let Some(decoded) = decoded else {
                if self.stream_part(cx, format, out)? {
                    return Ok(true);
                }
                continue;
            };
            match decoded {
                Decoded::Transaction(t) | Decoded::Prepared(t) if self.leaves_out(&t.info) => {}
                Decoded::Finished(f) if f.at.1.0 > self.state.confirmed => match &mut self.plugin {
                    Plugin::Text(output) => output.finished(&f, format, out)?,
                    Plugin::Json(_) => {}
                    Plugin::Pg { output, .. } => output.finished(&f, out),
                },
                Decoded::Transaction(t) | Decoded::Prepared(t)
                    if t.end.0 > self.state.confirmed =>
                {
                    match &mut self.plugin {
                        Plugin::Text(output) => output.transaction(&t, format, out)?,
                        Plugin::Json(output) => output.transaction(&t, format, out)?,
                        Plugin::Pg { output, publications, .. } => {
                            let mut publisher = StreamPublications::open(publications, cx)?;
                            output.transaction(&t, &mut publisher, format, out)?;
                        }
                    }
                }
                Decoded::Message(lsn, message) if lsn.0 > self.state.confirmed => {
                    match &self.plugin {
                        Plugin::Text(output) => output.message(lsn, &message, out),
                        Plugin::Json(output) => output.message(lsn, &message, out),
                        Plugin::Pg { output, .. } => output.message(lsn, &message, out),
                    }
                }
                _ => {}
            }
            self.mark(logged.end);
            if out.len() > before {
                return Ok(true);
            }
        }
    }

    /// Whether a transaction that is prepared by a record with this end comes out then.
    fn tells_of_prepared(&self, end: Lsn) -> bool {
        let asked = match &self.plugin {
            Plugin::Text(_) => true,
            Plugin::Json(_) => false,
            Plugin::Pg { phases, .. } => phases.two_phase,
        };
        self.state.two_phase && end.0 > self.state.two_phase_at && asked
    }

    /// Adds a part of the largest transaction that is open, if changes take more memory than they may and the stream's
    /// reader wants parts; whether there is something.
    fn stream_part(
        &mut self,
        cx: &mut ExecContext<'_>,
        format: &FormatContext,
        out: &mut Vec<Piece>,
    ) -> Result<bool> {
        let Plugin::Pg { output, publications, phases, .. } = &mut self.plugin else {
            return Ok(false);
        };
        let limit = cx.settings.int(base::settings::setting::LOGICAL_DECODING_WORK_MEM) as usize;
        // Transactions before the confirmed position may have ended.
        let begun = self.log.position().0 > self.state.confirmed;
        if !phases.streaming || !begun || self.decoder.bytes() <= limit * 1024 {
            return Ok(false);
        }
        let manager = cx.tx.manager();
        let part = self.decoder.take_part(|xid| manager.status(Xid(xid)) == XidStatus::Aborted);
        let before = out.len();
        if let Some((top, changes)) = part {
            let mut publisher = StreamPublications::open(publications, cx)?;
            output.part((top, &changes), &mut publisher, format, out)?;
        }
        Ok(out.len() > before)
    }

    /// Whether the plugin tells nothing of what comes from elsewhere, as this transaction does.
    fn leaves_out(&self, info: &Committing) -> bool {
        matches!(self.plugin, Plugin::Pg { local_only: true, .. }) && !info.origin.is_empty()
    }

    fn mark(&mut self, reached: Lsn) {
        if self.marks.back().is_some_and(|(at, _)| *at == reached) {
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            // Every other one is enough.
            let mut keep = false;
            self.marks.retain(|_| {
                keep = !keep;
                keep
            });
        }
        let needed = self.decoder.oldest().unwrap_or(reached);
        self.marks.push_back((reached, needed));
    }

    /// Moves the slot: its reader has received everything that ended at or before a position.
    ///
    /// # Errors
    /// I/O.
    pub fn confirm(&mut self, position: Lsn, durable: bool, engine: &Engine) -> Result<()> {
        if position.0 <= self.state.confirmed && !durable {
            return Ok(());
        }
        self.state.confirmed = self.state.confirmed.max(position.0);
        let mut restart = Lsn(0);
        while let Some((reached, needed)) = self.marks.front().copied() {
            if reached > position {
                break;
            }
            restart = needed;
            if self.marks.len() == 1 {
                break;
            }
            self.marks.pop_front();
        }
        engine.storage.slots().advance(&self.slot, restart, self.state.encode(), durable)
    }
}

/// Options of `pgoutput`.
fn pgoutput(options: &[(String, Option<String>)]) -> Result<Plugin> {
    let (mut version, mut publications, mut binary, mut messages) = (None, None, false, false);
    let (mut local_only, mut parallel, mut phases) = (false, false, Phases::default());
    for (name, value) in options {
        let text = value.as_deref().unwrap_or_default();
        // Without a value it is meant.
        let on = || match value {
            None => Ok(true),
            Some(text) => types::io::parse_bool(text)
                .map_err(|_| err!(SYNTAX_ERROR, "{name} requires a Boolean value")),
        };
        if value.is_none() && matches!(name.as_str(), "proto_version" | "publication_names") {
            base::bail!(SYNTAX_ERROR, "{name} requires a parameter");
        }
        match name.as_str() {
            "proto_version" => {
                version = Some(
                    text.parse::<u32>()
                        .map_err(|_| err!(INVALID_PARAMETER_VALUE, "invalid proto_version"))?,
                );
            }
            "publication_names" => {
                publications = Some(
                    base::settings::split_names(text)
                        .filter(|names| !names.is_empty())
                        .ok_or_else(|| err!(INVALID_NAME, "invalid publication_names syntax"))?,
                );
            }
            "binary" => binary = on()?,
            "messages" => messages = on()?,
            "streaming" => {
                parallel = text == "parallel";
                phases.streaming = parallel || on()?;
            }
            "two_phase" => phases.two_phase = on()?,
            "origin" => {
                local_only = match text.to_ascii_lowercase().as_str() {
                    "none" => true,
                    "any" => false,
                    _ => base::bail!(
                        INVALID_PARAMETER_VALUE,
                        "unrecognized origin value: \"{text}\""
                    ),
                };
            }
            other => {
                return Err(err!(SYNTAX_ERROR, "unrecognized pgoutput option: {other}"));
            }
        }
    }
    let Some(version) = version else {
        return Err(err!(INVALID_PARAMETER_VALUE, "proto_version option missing"));
    };
    let Some(publications) = publications else {
        return Err(err!(INVALID_PARAMETER_VALUE, "publication_names parameter missing"));
    };
    if version > 4 {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "client sent proto_version={version} but we only support protocol 4 or lower"
        ));
    }
    if version < 1 {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "client sent proto_version={version} but we only support protocol 1 or higher"
        ));
    }
    for (asked, least, what) in [
        (phases.streaming, 2, "streaming"),
        (phases.two_phase, 3, "two-phase commit"),
        (parallel, 4, "parallel streaming"),
    ] {
        if asked && version < least {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "requested proto_version={version} does not support {what}, need {least} or higher"
            );
        }
    }
    // Where a transaction comes from is known at its end only.
    phases.streaming &= !local_only;
    let mut output = PgOutput::new(binary, messages);
    output.parallel = parallel;
    Ok(Plugin::Pg { output, publications, local_only, phases })
}

/// The fate that the publications of a stream give to the changes of one definition of a table.
struct Plan {
    relation: Arc<Relation>,
    /// For each column of the relation, its place in the rows of the stream.
    places: Vec<usize>,
    insert: Action,
    update: Action,
    delete: Action,
}

/// Whether an operation is published, and which rows.
enum Action {
    No,
    All,
    /// Rows for which one of these holds, over the rows of the table as it is now.
    Some(Vec<Expr>),
}

/// The publications of a stream, while it sends a transaction.
struct StreamPublications<'p, 'c, 'a> {
    names: &'p [String],
    cx: &'c mut ExecContext<'a>,
    view: Arc<Snapshot>,
    plans: Vec<(*const StreamTable, Option<Arc<Plan>>)>,
}

impl<'p, 'c, 'a> StreamPublications<'p, 'c, 'a> {
    fn open(
        names: &'p [String],
        cx: &'c mut ExecContext<'a>,
    ) -> Result<StreamPublications<'p, 'c, 'a>> {
        let view = cx.catalog_tx.view();
        for name in names {
            if view.publication_named(name).is_none() {
                base::bail!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist");
            }
        }
        Ok(StreamPublications { names, cx, view, plans: Vec::new() })
    }

    fn plan(&mut self, table: &Arc<StreamTable>) -> Result<Option<Arc<Plan>>> {
        let key = Arc::as_ptr(table);
        if let Some((_, plan)) = self.plans.iter().find(|(known, _)| *known == key) {
            return Ok(plan.clone());
        }
        let made = self.make(table)?.map(Arc::new);
        self.plans.push((key, made.clone()));
        Ok(made)
    }

    fn make(&mut self, stream: &StreamTable) -> Result<Option<Plan>> {
        let view = self.view.clone();
        let Some(table) = view.table(stream.shape.oid) else { return Ok(None) };
        let of: Vec<&Publication> =
            view.publications_of(table).filter(|p| self.names.contains(&p.name)).collect();
        if of.is_empty() {
            return Ok(None);
        }
        // The topmost table under which one of them publishes it.
        let above: Vec<u32> =
            [table.oid].into_iter().chain(view.partition_ancestors(table.oid)).collect();
        let level = |p: &&Publication| {
            let target = view.published_as(p, table);
            above.iter().position(|id| *id == target).unwrap_or(0)
        };
        let top = of.iter().map(level).max().unwrap_or(0);
        let target_id = above[top];
        let Some(target) = view.table(target_id) else { return Ok(None) };
        let mut columns: Option<Vec<u16>> = None;
        let mut whole = false;
        let (mut insert, mut update, mut delete) = (Action::No, Action::No, Action::No);
        for publication in of.iter().filter(|p| view.published_as(p, table) == target_id) {
            let entry = entry_of(&view, publication, target);
            match entry.as_ref().and_then(|e| e.columns.clone()) {
                Some(list) => {
                    let known = columns.get_or_insert_default();
                    known.extend(list);
                }
                None => whole = true,
            }
            let filter = match entry.as_ref().and_then(|e| e.filter.as_deref()) {
                Some(sql) => {
                    let bound = crate::spi::with_context(self.cx, |cx| {
                        sql::stored::row_expressions(cx, target, &[sql])
                    })?;
                    bound.into_iter().next()
                }
                None => None,
            };
            for (does, action) in [
                (publication.insert, &mut insert),
                (publication.update, &mut update),
                (publication.delete, &mut delete),
            ] {
                if does {
                    action.add(filter.clone());
                }
            }
        }
        let listed = |n: u16| whole || columns.as_ref().is_none_or(|list| list.contains(&n));
        let keys = view.identity_columns(target);
        let mut places = Vec::new();
        let mut shown = Vec::new();
        for (n, column) in target.live_columns() {
            if column.generated || !listed(n) {
                continue;
            }
            // By name: partitions have columns in an order of their own, and the change may be older.
            let place = match stream.shape.oid == target.oid {
                true => usize::from(n) - 1,
                false => match stream.shape.live().find(|(_, c)| c.name == column.name) {
                    Some((place, _)) => place,
                    None => continue,
                },
            };
            if stream.shape.columns.get(place).is_none_or(|c| c.dropped) {
                continue;
            }
            places.push(place);
            let of_change = &stream.shape.columns[place];
            let key =
                if stream.shape.oid == target.oid { of_change.key } else { keys.contains(&n) };
            shown.push(RelationColumn {
                name: of_change.name.clone(),
                ty: of_change.ty,
                typmod: of_change.typmod,
                key,
                named: type_named(&view, of_change.ty),
            });
        }
        let schema = view.schema(target.schema).map_or_else(String::new, |s| s.name.clone());
        let relation = Relation {
            oid: target.oid,
            schema: if schema == "pg_catalog" { String::new() } else { schema },
            name: target.name.clone(),
            identity: target.replica_identity.letter(),
            columns: shown,
        };
        Ok(Some(Plan { relation: Arc::new(relation), places, insert, update, delete }))
    }

    /// Whether a row of the stream is one that an action publishes.
    fn passes(
        &mut self,
        action: &Action,
        plan: &Plan,
        stream: &StreamTable,
        row: &[Datum],
    ) -> Result<bool> {
        let filters = match action {
            Action::No => return Ok(false),
            Action::All => return Ok(true),
            Action::Some(filters) => filters,
        };
        let view = self.view.clone();
        let Some(target) = view.table(plan.relation.oid) else { return Ok(false) };
        let value = |(n, c): (usize, &catalog::Column)| {
            if stream.shape.oid == target.oid {
                return row.get(n).cloned().unwrap_or(Datum::Null);
            }
            let found = stream.shape.live().find(|(_, own)| own.name == c.name && !c.dropped);
            found.map_or(Datum::Null, |(n, _)| row[n].clone())
        };
        let values: Vec<Datum> = target.columns.iter().enumerate().map(value).collect();
        crate::spi::with_run(self.cx, |run| {
            for filter in filters {
                if eval::holds(filter, Row::Values(&values), run)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

impl Action {
    fn add(&mut self, filter: Option<Expr>) {
        match (&mut *self, filter) {
            (Action::All, _) => {}
            (_, None) => *self = Action::All,
            (Action::Some(all), Some(filter)) => all.push(filter),
            (Action::No, Some(filter)) => *self = Action::Some(vec![filter]),
        }
    }
}

/// Columns and condition that a publication has for a table by itself.
fn entry_of(view: &Snapshot, publication: &Publication, table: &Table) -> Option<OwnEntry> {
    let own = publication.table(table.oid)?;
    if publication.all_tables || publication.has_schema(table.schema) {
        return None;
    }
    let _ = view;
    Some(OwnEntry { columns: own.columns.clone(), filter: own.filter.clone() })
}

struct OwnEntry {
    columns: Option<Vec<u16>>,
    filter: Option<String>,
}

/// Schema and name of a type that is not built in.
fn type_named(view: &Snapshot, ty: u32) -> Option<(String, String)> {
    if ty < Oid::FIRST_USER.0 {
        return None;
    }
    let own = view.user_type(ty)?;
    let schema = view.schema(own.schema).map_or_else(String::new, |s| s.name.clone());
    Some((schema, own.name.clone()))
}

impl Publisher for StreamPublications<'_, '_, '_> {
    fn row(&mut self, change: &Change) -> Result<Option<Outgoing>> {
        let Change::Row { table, operation, old, new } = change else { return Ok(None) };
        let Some(plan) = self.plan(table)? else { return Ok(None) };
        let shown = |row: &Vec<Datum>| -> Vec<Datum> {
            plan.places.iter().map(|n| row.get(*n).cloned().unwrap_or(Datum::Null)).collect()
        };
        let action = match operation {
            Operation::Insert => &plan.insert,
            Operation::Update => &plan.update,
            Operation::Delete => &plan.delete,
        };
        if matches!(action, Action::No) {
            return Ok(None);
        }
        // Without an identity nobody could find the row.
        if *operation == Operation::Delete && matches!(old, OldRow::None) {
            return Ok(None);
        }
        let mut operation = *operation;
        if matches!(action, Action::Some(_)) {
            match (operation, old.values(), new) {
                (Operation::Update, Some(before), Some(after)) => {
                    // Columns that do not identify the row are as they are now.
                    let mut was = before.clone();
                    if matches!(old, OldRow::Key(_)) {
                        for ((value, now), column) in
                            was.iter_mut().zip(after).zip(&table.shape.columns)
                        {
                            if !column.key {
                                value.clone_from(now);
                            }
                        }
                    }
                    let before = self.passes(action, &plan, table, &was)?;
                    let after = self.passes(action, &plan, table, after)?;
                    operation = match (before, after) {
                        (false, false) => return Ok(None),
                        (false, true) => Operation::Insert,
                        (true, false) => Operation::Delete,
                        (true, true) => Operation::Update,
                    };
                }
                (_, before, after) => {
                    let Some(row) = after.as_ref().or(before) else { return Ok(None) };
                    if !self.passes(action, &plan, table, row)? {
                        return Ok(None);
                    }
                }
            }
        }
        let old = match old {
            OldRow::None => OldRow::None,
            OldRow::Key(row) => OldRow::Key(shown(row)),
            OldRow::Full(row) => OldRow::Full(shown(row)),
        };
        let new = new.as_ref().map(shown);
        Ok(Some(Outgoing { relation: plan.relation.clone(), operation, old, new }))
    }

    fn truncated(&mut self, change: &Change) -> Result<Vec<Arc<Relation>>> {
        let Change::Truncate { tables, .. } = change else { return Ok(Vec::new()) };
        let mut out: Vec<Arc<Relation>> = Vec::new();
        for table in tables {
            let Some(plan) = self.plan(table)? else { continue };
            let view = self.view.clone();
            let Some(own) = view.table(table.shape.oid) else { continue };
            let truncates =
                view.publications_of(own).any(|p| p.truncate && self.names.contains(&p.name));
            let partition = own.bound.is_some() && plan.relation.oid != table.shape.oid;
            let root = own.is_partitioned() && {
                let mut of = view.publications_of(own).filter(|p| self.names.contains(&p.name));
                !of.any(|p| p.via_root)
            };
            if truncates && !partition && !root {
                out.push(plan.relation.clone());
            }
        }
        Ok(out)
    }
}
