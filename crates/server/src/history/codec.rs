//! A [`Slice`] as bytes.
//!
//! ```text
//!   record:  [new texts: n, n × (length, bytes)] [at] [span] [counts: n, n × number] [waits: n, …] …
//! ```
//! Numbers have 7 bits a byte, the least first (LEB128). A text is written once a file, when it first comes up,
//! and from then on named by its number; number 0 is the empty text. Events of waits are texts, so that files
//! outlive changes of their list; a count, list or field that a later version adds comes last.

use std::collections::HashMap;
use std::sync::Arc;

use base::WaitEvent;
use base::usage::{USES, Usage};
use base::waits::WAITS;

use super::clients::{Client, ClientSum};
use super::plans::{PLAN_BYTES_MAX, PlanNote};
use super::relations::RelationSum;
use super::slice::{Block, COUNTS, Event, SessionNote, Slice, StatementSum, TableNote, WaitSum};

/// Longest text that is kept, bytes; a plan's may be longer.
const TEXT_MAX: usize = 600;
/// Texts of a file; then it gives numbers anew, so that neither side holds more.
const TEXTS_MAX: usize = 1 << 20;

/// Writes slices; one for a file.
#[derive(Default)]
pub struct Encoder {
    texts: HashMap<Arc<str>, u64>,
    /// Texts that the next record brings, with their greatest lengths.
    fresh: Vec<(Arc<str>, usize)>,
    body: Vec<u8>,
}

/// When a slice ended, and its length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// See [`Slice::at`].
    pub at: i64,
    /// See [`Slice::span_us`].
    pub span_us: u64,
    /// Bytes of the record before the counts.
    bytes: usize,
}

impl Head {
    /// When the slice began.
    pub fn from(&self) -> i64 {
        self.at.saturating_sub_unsigned(self.span_us)
    }
}

/// Reads them again; one for a file.
pub struct Decoder {
    texts: Vec<Arc<str>>,
    /// The events that the texts name.
    events: Vec<Option<WaitEvent>>,
    by_name: HashMap<Arc<str>, WaitEvent>,
}

impl Encoder {
    /// Whether another file should be begun.
    pub fn is_full(&self) -> bool {
        self.texts.len() >= TEXTS_MAX
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }

    fn numbers<const N: usize>(&mut self, values: [u64; N]) {
        values.into_iter().for_each(|value| self.number(value));
    }

    /// Zero, one, minus one, two, …
    fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    fn text(&mut self, text: &Arc<str>) {
        self.text_of(text, TEXT_MAX);
    }

    fn text_of(&mut self, text: &Arc<str>, most: usize) {
        if text.is_empty() {
            return self.number(0);
        }
        let number = match self.texts.get(text) {
            Some(number) => *number,
            None => {
                let number = self.texts.len() as u64 + 1;
                self.texts.insert(text.clone(), number);
                self.fresh.push((text.clone(), most));
                number
            }
        };
        self.number(number);
    }

    fn event(&mut self, event: WaitEvent) {
        let info = event.info();
        self.text(&format!("{}:{}", info.kind, info.name).into());
    }

    /// The record of a slice.
    pub fn encode(&mut self, slice: &Slice) -> Vec<u8> {
        self.body.clear();
        self.signed(slice.at);
        self.number(slice.span_us);
        self.number(COUNTS.len() as u64);
        slice.counts.iter().for_each(|count| self.number(*count));
        self.number(slice.waits.len() as u64);
        for wait in &slice.waits {
            self.event(wait.event);
            self.text(&wait.object);
            self.numbers([wait.statement, wait.count, wait.ns, wait.longest_ns]);
        }
        self.number(slice.statements.len() as u64);
        slice.statements.iter().for_each(|statement| self.statement(statement));
        self.number(slice.blocks.len() as u64);
        slice.blocks.iter().for_each(|block| self.block(block));
        self.number(slice.sessions.len() as u64);
        for session in &slice.sessions {
            self.signed(session.pid.into());
            self.text(&session.state);
            self.text(&session.query);
            let SessionNote { statement, state_us, transaction_us, snapshot_log, memory, .. } =
                *session;
            self.numbers([statement, state_us, transaction_us, snapshot_log, memory]);
        }
        self.number(slice.tables.len() as u64);
        for table in &slice.tables {
            self.text(&table.name);
            self.numbers(table_numbers(table));
        }
        self.number(slice.events.len() as u64);
        for event in &slice.events {
            self.signed(event.at);
            self.signed(event.pid.into());
            self.text(&event.kind);
            self.text(&event.text);
        }
        self.shares(slice);
        self.record()
    }

    /// The parts that earlier versions did not have.
    fn shares(&mut self, slice: &Slice) {
        self.number(slice.clients.len() as u64);
        for sum in &slice.clients {
            self.client(&sum.client);
            let ClientSum { sessions, began, transactions, active_ns, waited_ns, .. } = *sum;
            self.numbers([sessions, began, transactions, active_ns, waited_ns]);
            self.usage(&sum.used);
        }
        self.number(slice.relations.len() as u64);
        for relation in &slice.relations {
            self.numbers([relation.database.into(), relation.oid.into()]);
            self.text(&relation.name);
            self.text(&relation.table);
            let counts = relation.clone().counts().map(|count| *count);
            self.numbers(counts);
        }
        self.number(slice.plans.len() as u64);
        for plan in &slice.plans {
            self.signed(plan.at);
            self.numbers([plan.database.into(), plan.statement]);
            self.text(&plan.query);
            self.text_of(&plan.plan, PLAN_BYTES_MAX);
            self.text_of(&plan.before, PLAN_BYTES_MAX);
        }
        // Of the waits above, in their order.
        self.number(slice.waits.len() as u64);
        slice.waits.iter().for_each(|wait| self.client(&wait.client));
        // Of the statements above, likewise.
        self.number(slice.statements.len() as u64);
        slice.statements.iter().for_each(|statement| self.text(&statement.application));
    }

    fn client(&mut self, client: &Client) {
        self.numbers([client.user.into(), client.database.into()]);
        self.text(&client.application);
    }

    /// The amounts that are not 0.
    fn usage(&mut self, used: &Usage) {
        let used = used.0;
        self.number(used.iter().filter(|n| **n > 0).count() as u64);
        for (what, amount) in used.iter().enumerate().filter(|(_, n)| **n > 0) {
            self.number(what as u64);
            self.number(*amount);
        }
    }

    fn statement(&mut self, statement: &StatementSum) {
        self.text(&statement.text);
        let StatementSum { id, user, database, calls, ns, waited_ns, caused_ns, rows, .. } =
            *statement;
        self.numbers([id, user.into(), database.into(), calls, ns, waited_ns, caused_ns, rows]);
        self.usage(&statement.used);
    }

    fn block(&mut self, block: &Block) {
        self.signed(block.pid.into());
        for text in [&block.state, &block.query, &block.object, &block.victim] {
            self.text(text);
        }
        self.event(block.event);
        let Block { statement, state_us, transaction_us, waiting, indirect, ns, .. } = *block;
        self.numbers([statement, state_us, transaction_us, waiting, indirect, ns]);
        let (pid, query) = block.next.clone().unwrap_or_default();
        self.signed(pid.into());
        self.text(&query);
    }

    /// The body behind the texts that are new in it.
    fn record(&mut self) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        let fresh = std::mem::take(&mut self.fresh);
        self.number(fresh.len() as u64);
        for (text, most) in fresh {
            let text = &text[..text.floor_char_boundary(most)];
            self.number(text.len() as u64);
            self.body.extend_from_slice(text.as_bytes());
        }
        self.body.extend_from_slice(&body);
        std::mem::replace(&mut self.body, body)
    }
}

fn table_numbers(table: &TableNote) -> [u64; 12] {
    let t = table;
    [
        t.database.into(),
        t.oid.into(),
        t.scans,
        t.scanned,
        t.inserted,
        t.changed,
        t.live,
        t.dead,
        t.modified,
        t.threshold,
        t.vacuums,
        t.analyzes,
    ]
}

/// The rest of a record.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(numbers)
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn bytes(&mut self, len: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A list. Each item takes a byte at least, so that its length is bounded by the record's.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Rest<'a>) -> Option<T>) -> Option<Vec<T>> {
        let len = self.number()?;
        let mut list = Vec::new();
        for _ in 0..len {
            list.push(item(self)?);
        }
        Some(list)
    }
}

fn usage(rest: &mut Rest<'_>) -> Option<Usage> {
    let mut used = Usage([0; USES]);
    for [what, amount] in rest.list(Rest::numbers)? {
        if let Some(mine) = used.0.get_mut(what as usize) {
            *mine = amount;
        }
    }
    Some(used)
}

impl Default for Decoder {
    fn default() -> Decoder {
        let event = |w: &base::waits::WaitInfo| (format!("{}:{}", w.kind, w.name).into(), w.event);
        let by_name = WAITS.iter().map(event).collect();
        Decoder { texts: vec![Arc::default()], events: vec![None], by_name }
    }
}

impl Decoder {
    fn text(&self, rest: &mut Rest<'_>) -> Option<Arc<str>> {
        self.texts.get(usize::try_from(rest.number()?).ok()?).cloned()
    }

    /// One that this version does not have is an extension's.
    fn event(&self, rest: &mut Rest<'_>) -> Option<WaitEvent> {
        let event = self.events.get(usize::try_from(rest.number()?).ok()?)?;
        Some(event.unwrap_or(WaitEvent::ExtensionExtension))
    }

    /// The slice of a record; None: it isn't one.
    #[cfg(test)]
    pub fn decode(&mut self, record: &[u8]) -> Option<Slice> {
        let head = self.head(record)?;
        self.slice(record, &head)
    }

    /// The beginning of a record, with the texts that it brings for later ones; None: it isn't one. Of a record that
    /// nobody asks for no more is read.
    pub fn head(&mut self, record: &[u8]) -> Option<Head> {
        let mut rest = Rest(record);
        let fresh = rest.list(|rest| {
            let len = rest.number()?;
            Some(Arc::from(std::str::from_utf8(rest.bytes(len)?).ok()?))
        })?;
        self.events.extend(fresh.iter().map(|text| self.by_name.get(text).copied()));
        self.texts.extend(fresh);
        let (at, span_us) = (rest.signed()?, rest.number()?);
        Some(Head { at, span_us, bytes: record.len() - rest.0.len() })
    }

    /// The slice of a record of which the beginning was read; None: it isn't one.
    pub fn slice(&self, record: &[u8], head: &Head) -> Option<Slice> {
        let mut rest = Rest(record.get(head.bytes..)?);
        let mut slice = Slice::new(head.at, head.span_us);
        let counts = rest.list(Rest::number)?;
        slice.counts.iter_mut().zip(counts).for_each(|(mine, its)| *mine = its);
        slice.waits = rest.list(|rest| {
            let (event, object) = (self.event(rest)?, self.text(rest)?);
            let [statement, count, ns, longest_ns] = rest.numbers()?;
            let client = Client::default();
            Some(WaitSum { event, statement, object, count, ns, longest_ns, client })
        })?;
        slice.statements = rest.list(|rest| self.statement(rest))?;
        slice.blocks = rest.list(|rest| self.block(rest))?;
        slice.sessions = rest.list(|rest| {
            let (pid, state, query) = (rest.signed()? as i32, self.text(rest)?, self.text(rest)?);
            let [statement, state_us, transaction_us, snapshot_log, memory] = rest.numbers()?;
            Some(SessionNote {
                pid,
                state,
                query,
                statement,
                state_us,
                transaction_us,
                snapshot_log,
                memory,
            })
        })?;
        slice.tables = rest.list(|rest| self.table(rest))?;
        slice.events = rest.list(|rest| {
            let (at, pid) = (rest.signed()?, rest.signed()? as i32);
            Some(Event { at, kind: self.text(rest)?, pid, text: self.text(rest)? })
        })?;
        // An earlier version's record ends here.
        if !rest.0.is_empty() {
            self.shares(&mut rest, &mut slice)?;
        }
        Some(slice)
    }

    fn shares(&self, rest: &mut Rest<'_>, slice: &mut Slice) -> Option<()> {
        slice.clients = rest.list(|rest| {
            let client = self.client(rest)?;
            let [sessions, began, transactions, active_ns, waited_ns] = rest.numbers()?;
            let used = usage(rest)?;
            Some(ClientSum { client, sessions, began, transactions, active_ns, waited_ns, used })
        })?;
        slice.relations = rest.list(|rest| {
            let [database, oid] = rest.numbers()?;
            let mut sum = RelationSum::new(database as u32, oid as u32);
            (sum.name, sum.table) = (self.text(rest)?, self.text(rest)?);
            let counts = rest.numbers::<10>()?;
            sum.counts().into_iter().zip(counts).for_each(|(mine, its)| *mine = its);
            Some(sum)
        })?;
        slice.plans = rest.list(|rest| {
            let at = rest.signed()?;
            let [database, statement] = rest.numbers()?;
            let (query, plan) = (self.text(rest)?, self.text(rest)?);
            let before = self.text(rest)?;
            Some(PlanNote { at, database: database as u32, statement, query, plan, before })
        })?;
        let clients = rest.list(|rest| self.client(rest))?;
        slice.waits.iter_mut().zip(clients).for_each(|(wait, client)| wait.client = client);
        // Here another earlier version's record ends.
        if !rest.0.is_empty() {
            let applications = rest.list(|rest| self.text(rest))?;
            let pairs = slice.statements.iter_mut().zip(applications);
            pairs.for_each(|(statement, application)| statement.application = application);
        }
        Some(())
    }

    fn client(&self, rest: &mut Rest<'_>) -> Option<Client> {
        let [user, database] = rest.numbers()?;
        Some(Client { user: user as u32, database: database as u32, application: self.text(rest)? })
    }

    fn statement(&self, rest: &mut Rest<'_>) -> Option<StatementSum> {
        let text = self.text(rest)?;
        let [id, user, database, calls, ns, waited_ns, caused_ns, rows] = rest.numbers()?;
        let used = usage(rest)?;
        let (user, database) = (user as u32, database as u32);
        let mut sum = StatementSum::new(id, user, database, text);
        (sum.calls, sum.ns, sum.waited_ns, sum.caused_ns) = (calls, ns, waited_ns, caused_ns);
        (sum.rows, sum.used) = (rows, used);
        Some(sum)
    }

    fn block(&self, rest: &mut Rest<'_>) -> Option<Block> {
        let pid = rest.signed()? as i32;
        let (state, query) = (self.text(rest)?, self.text(rest)?);
        let (object, victim) = (self.text(rest)?, self.text(rest)?);
        let event = self.event(rest)?;
        let [statement, state_us, transaction_us, waiting, indirect, ns] = rest.numbers()?;
        let next = (rest.signed()? as i32, self.text(rest)?);
        let next = (next.0 != 0).then_some(next);
        Some(Block {
            pid,
            state,
            query,
            statement,
            state_us,
            transaction_us,
            event,
            object,
            waiting,
            indirect,
            ns,
            next,
            victim,
        })
    }

    fn table(&self, rest: &mut Rest<'_>) -> Option<TableNote> {
        let name = self.text(rest)?;
        let [database, oid, scans, scanned, inserted, changed, numbers @ ..] =
            rest.numbers::<12>()?;
        let [live, dead, modified, threshold, vacuums, analyzes] = numbers;
        Some(TableNote {
            database: database as u32,
            oid: oid as u32,
            name,
            scans,
            scanned,
            inserted,
            changed,
            live,
            dead,
            modified,
            threshold,
            vacuums,
            analyzes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::slice::tests::second;
    use super::*;

    #[test]
    fn slices_come_back_as_they_were_and_texts_are_written_once() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let seconds = [second(20_000_000, 3), second(21_000_000, -4), Slice::new(-5, u64::MAX)];
        let records: Vec<Vec<u8>> = seconds.iter().map(|s| encoder.encode(s)).collect();
        assert!(records[1].len() < records[0].len(), "{:?}", records[1]);
        for (second, record) in seconds.iter().zip(&records) {
            assert_eq!(decoder.decode(record).as_ref(), Some(second));
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let whole = second(20_000_000, 3);
        let record = Encoder::default().encode(&whole);
        let mut earlier = Vec::new();
        for len in 0..record.len() {
            earlier.extend(Decoder::default().decode(&record[..len]).map(|slice| (len, slice)));
        }
        // Only those without what later versions have added are some.
        assert_eq!(earlier.len(), 2, "{earlier:?}");
        assert_eq!((&earlier[0].1.events, earlier[0].1.clients.len()), (&whole.events, 0));
        let (clients, application) =
            (earlier[1].1.clients.len(), &*earlier[1].1.statements[0].application);
        assert_eq!((clients, application), (1, ""));
        // A list longer than any record, an unending number.
        assert_eq!(Decoder::default().decode(&[0xff, 0xff, 0xff, 0xff, 0x7f]), None);
        assert_eq!(Decoder::default().decode(&[0x80; 20]), None);
    }
}
