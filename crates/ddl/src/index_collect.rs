//! The keys of a new index over plain columns: several threads read pieces of the table, each sorts the keys of its
//! own, and what they have sorted is merged while the index is written.

use access::index::entries;
use base::settings::setting;
use base::{Result, TupleId};
use exec::context::ExecContext;
use exec::ops::team::{Member, Pieces};
use exec::parallel;
use exec::table::{KeyCodec, TableHandle};
use sched::SpinLock;
use sched::memory::Use;
use sched::observe::progress::{Count, Progress};
use txn::{Snapshot, Transaction};
use types::{Datum, row};

use super::index_build::{Collected, shuffled};
use super::index_keys::{KeySorter, Place, SortedKeys};

/// Each thread has this much to sort its keys in, at least.
const LEAST_BYTES: usize = 32 << 20;

/// The table and what is read of it: all that threads share.
struct Source<'a> {
    tx: &'a Transaction,
    snapshot: Snapshot,
    handle: &'a TableHandle,
    codec: &'a KeyCodec,
    /// Columns (from 0, ascending), and where among them each key column is.
    wanted: Vec<u16>,
    places: Vec<usize>,
}

/// A thread's keys.
struct Part {
    keys: KeySorter,
    null_in: Option<u16>,
}

/// Keys of all rows, sorted.
///
/// # Errors
/// Those of encoding keys; I/O; interrupts.
pub(super) fn collect(
    cx: &ExecContext<'_>,
    handle: &TableHandle,
    codec: &KeyCodec,
    progress: &Progress,
) -> Result<Collected> {
    let mut wanted: Vec<u16> = codec.columns.iter().map(|(n, _, _)| *n).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let places: Vec<usize> =
        codec.columns.iter().map(|(n, _, _)| wanted.binary_search(n).unwrap_or_default()).collect();
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command() + 1;
    let source = Source { tx: cx.tx, snapshot, handle, codec, wanted, places };
    let pages = handle.heap.pages()?;
    progress.set(Count::BlocksTotal, u64::from(pages));
    let memory = cx.settings.int(setting::MAINTENANCE_WORK_MEM) as usize * 1024;
    let helpers = helpers(cx, handle, pages, memory);
    let threads = helpers.count() + 1;
    let leader = Member::leader(threads);
    let (dir, method) = (cx.engine.storage.dir(), codec.method);
    let part = || Part { keys: KeySorter::of(method, dir, memory / threads), null_in: None };
    let sorted: SpinLock<Vec<Sorted>> = SpinLock::default();
    let finish = |part: Part| {
        let count = part.keys.count();
        let keys = part.keys.finish()?;
        sorted.lock().push((keys, count, part.null_in));
        Ok(())
    };
    let help = || {
        let _memory = sched::memory::for_use(Use::Sort);
        let pieces = leader.helper().pieces(0);
        let part = source.read(&pieces, pages, part(), &mut |_| ());
        finish(part.inspect_err(|_| leader.close())?)
    };
    let lead = || {
        let mut tell = |at: u32| progress.set(Count::BlocksDone, u64::from(at));
        let part = source.read(&leader.pieces(0), pages, part(), &mut tell);
        finish(part.inspect_err(|_| leader.close())?)
    };
    match helpers.count() {
        0 => lead()?,
        count => drop(sched::helpers::together(count, &help, lead)?),
    }
    let all = std::mem::take(&mut *sorted.lock());
    let count = all.iter().map(|(_, count, _)| count).sum();
    let null_in = all.iter().find_map(|(_, _, null_in)| *null_in);
    let keys = SortedKeys::of_all(all.into_iter().map(|(keys, ..)| keys).collect())?;
    Ok(Collected { keys, count, null_in })
}

/// The keys that a thread has sorted, how many, and a column that is NULL somewhere.
type Sorted = (SortedKeys, u64, Option<u16>);

/// How many helpers there may be: by the table's size, and so that each thread has memory enough.
fn helpers(
    cx: &ExecContext<'_>,
    handle: &TableHandle,
    pages: u32,
    memory: usize,
) -> parallel::Helpers {
    // So many threads have memory enough.
    let most = (memory / LEAST_BYTES).saturating_sub(1);
    let planned = match base::Oid(handle.table.oid).is_temporary() {
        true => 0,
        false => parallel::wanted_for(pages, cx).min(most),
    };
    parallel::available_to(planned, cx)
}

impl Source<'_> {
    /// Adds the keys of a thread's pieces; `tell` is told how far the table has been handed out.
    fn read(
        &self,
        pieces: &Pieces,
        pages: u32,
        mut part: Part,
        tell: &mut dyn FnMut(u32),
    ) -> Result<Part> {
        let (mut values, mut bytes): (Vec<Datum>, Vec<u8>) = (Vec::new(), Vec::new());
        while let Some(piece) = pieces.take(|| Ok(pages))? {
            tell(piece.start);
            let mut scan = self.handle.heap.scan(&self.snapshot, Some(piece));
            loop {
                sched::check_interrupts()?;
                let mut failed = None;
                let more = scan.next_page(self.tx, |_, root, data| {
                    values.clear();
                    bytes.clear();
                    let added = self.add(root, data, &mut values, &mut bytes, &mut part);
                    failed = added.err().or(failed.take());
                })?;
                if let Some(error) = failed {
                    return Err(error);
                }
                part.keys.make_room()?;
                if !more {
                    break;
                }
            }
        }
        tell(pages);
        Ok(part)
    }

    /// Adds a row's entries.
    fn add(
        &self,
        root: TupleId,
        data: &[u8],
        values: &mut Vec<Datum>,
        bytes: &mut Vec<u8>,
        part: &mut Part,
    ) -> Result<()> {
        let codec = self.codec;
        row::decode(&self.handle.columns, data, &self.wanted, values)?;
        if !codec.is_simple() {
            return self.add_entries(root, values, bytes, part);
        }
        for (place, (_, ty, order)) in self.places.iter().zip(&codec.columns) {
            types::key::encode(*ty, &values[*place], *order, bytes)?;
        }
        let keys = &mut part.keys;
        if codec.method.is_btree() {
            let null = values.iter().position(Datum::is_null);
            part.null_in = null.map(|n| self.wanted[n]).or(part.null_in);
            keys.push(bytes, Place { root, null: null.is_some() });
        } else if !values[0].is_null() {
            // Methods of one column.
            entries(codec.method, bytes, &mut |entry| {
                keys.push(entry, Place { root, null: false });
            });
        }
        Ok(())
    }

    /// Adds the entries of a row of an index whose class makes them.
    fn add_entries(
        &self,
        root: TupleId,
        values: &mut Vec<Datum>,
        bytes: &mut Vec<u8>,
        part: &mut Part,
    ) -> Result<()> {
        let codec = self.codec;
        // The row as the table has it, up to the last column that is wanted.
        let width = self.wanted.last().map_or(0, |last| usize::from(*last) + 1);
        let mut row = vec![Datum::Null; width];
        for (place, value) in self.wanted.iter().zip(values.drain(..)) {
            row[usize::from(*place)] = value;
        }
        if !codec.holds(&row) {
            return Ok(());
        }
        codec.encode(&row, bytes)?;
        let place = Place { root, null: false };
        if codec.method.is_of_vectors() {
            part.keys.push(&[&shuffled(root).to_be_bytes(), &bytes[..]].concat(), place);
            return Ok(());
        }
        entries(codec.method, bytes, &mut |entry| part.keys.push(entry, place));
        Ok(())
    }
}
