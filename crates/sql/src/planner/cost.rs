//! Costs, in PostgreSQL's unit (one sequential page read) and by simpler forms of its formulas.

use base::settings::{Settings, setting};
use types::oids::*;

use crate::logical::Var;
use crate::plan::{Estimate, Plan};

/// Cost settings in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub seq_page: f64,
    pub random_page: f64,
    pub tuple: f64,
    pub index_tuple: f64,
    pub operator: f64,
    /// Pages that are in some memory or other (`effective_cache_size`).
    pub cache_pages: f64,
    /// Bytes.
    pub work_mem: f64,
    /// How often a scan is run.
    pub runs: f64,
    pub seqscan: bool,
    pub indexscan: bool,
    pub indexonlyscan: bool,
    pub bitmapscan: bool,
    pub tidscan: bool,
    pub hashjoin: bool,
    pub mergejoin: bool,
    pub nestloop: bool,
    pub hashagg: bool,
    pub sort: bool,
    pub incremental_sort: bool,
}

/// What a forbidden way costs more.
pub(crate) const DISABLED: f64 = 1e10;

const TUPLE: f64 = 0.01;
const OPERATOR: f64 = 0.0025;

impl Costs {
    pub fn of(settings: &Settings) -> Costs {
        Costs {
            seq_page: settings.real(setting::SEQ_PAGE_COST),
            random_page: settings.real(setting::RANDOM_PAGE_COST),
            tuple: settings.real(setting::CPU_TUPLE_COST),
            index_tuple: settings.real(setting::CPU_INDEX_TUPLE_COST),
            operator: settings.real(setting::CPU_OPERATOR_COST),
            cache_pages: settings.int(setting::EFFECTIVE_CACHE_SIZE) as f64,
            work_mem: settings.int(setting::WORK_MEM) as f64 * 1024.0,
            runs: 1.0,
            seqscan: settings.bool(setting::ENABLE_SEQSCAN),
            indexscan: settings.bool(setting::ENABLE_INDEXSCAN),
            indexonlyscan: settings.bool(setting::ENABLE_INDEXONLYSCAN),
            bitmapscan: settings.bool(setting::ENABLE_BITMAPSCAN),
            tidscan: settings.bool(setting::ENABLE_TIDSCAN),
            hashjoin: settings.bool(setting::ENABLE_HASHJOIN),
            mergejoin: settings.bool(setting::ENABLE_MERGEJOIN),
            nestloop: settings.bool(setting::ENABLE_NESTLOOP),
            hashagg: settings.bool(setting::ENABLE_HASHAGG),
            sort: settings.bool(setting::ENABLE_SORT),
            incremental_sort: settings.bool(setting::ENABLE_INCREMENTAL_SORT),
        }
    }
}

impl Costs {
    /// Of something that is run so many times, where this share of the pages that it visits must be fetched.
    pub fn of_runs(self, runs: f64, share: f64) -> Costs {
        let (seq_page, random_page) = (self.seq_page * share, self.random_page * share);
        Costs { seq_page, random_page, runs: runs.max(1.0), ..self }
    }
}

fn at_least_one(rows: f64) -> f64 {
    if rows.is_finite() { rows.round().max(1.0) } else { 1e30 }
}

pub(crate) fn one_row() -> Estimate {
    Estimate { startup: 0.0, total: TUPLE, rows: 1.0, width: 0 }
}

pub(crate) fn values(rows: usize, width: i32) -> Estimate {
    let rows = rows as f64;
    let per_row = if rows > 1.0 { OPERATOR + TUPLE } else { TUPLE };
    Estimate { startup: 0.0, total: rows * per_row, rows, width }
}

pub(crate) fn append(inputs: &[Plan]) -> Estimate {
    let mut out = Estimate::default();
    for input in inputs {
        let e = &input.estimate;
        out.rows += e.rows;
        out.total += e.total + e.rows * TUPLE * 0.5;
        out.width = out.width.max(e.width);
    }
    out.startup = inputs.first().map_or(0.0, |i| i.estimate.startup);
    out
}

pub(crate) fn set_op(left: &Plan, right: &Plan) -> Estimate {
    let (l, r) = (&left.estimate, &right.estimate);
    let startup = l.total + r.total + (l.rows + r.rows) * OPERATOR;
    Estimate { startup, total: startup + l.rows * TUPLE, rows: l.rows, width: l.width }
}

pub(crate) fn project(input: &Estimate, exprs: usize, width: i32, set: bool) -> Estimate {
    let rows = if set { input.rows * 100.0 } else { input.rows };
    let total = input.total + input.rows * exprs as f64 * OPERATOR;
    Estimate { startup: input.startup, total, rows, width }
}

pub(crate) fn aggregate(
    input: &Estimate,
    calls: usize,
    groups: usize,
    distinct: f64,
    plain: bool,
    width: i32,
) -> Estimate {
    let work = input.rows * OPERATOR * (calls + groups).max(1) as f64;
    let rows = if plain { 1.0 } else { at_least_one(distinct.min(input.rows)) };
    let startup = input.total + work;
    Estimate { startup, total: startup + rows * TUPLE, rows, width }
}

pub(crate) fn distinct(input: &Estimate, distinct: f64) -> Estimate {
    let rows = at_least_one(distinct.min(input.rows));
    let startup = input.total + input.rows * OPERATOR;
    Estimate { startup, total: startup + rows * TUPLE, rows, width: input.width }
}

/// Startup and further cost of sorting so many rows; only the first `bound` may be wanted.
fn tuplesort(rows: f64, width: i32, bound: Option<f64>, costs: &Costs) -> (f64, f64) {
    let n = rows.max(2.0);
    let bytes = n * (f64::from(width) + 24.0);
    let kept = bound.filter(|b| *b > 0.0 && *b * 2.0 < n);
    let compared = match kept {
        Some(kept) => n * (2.0 * kept).max(2.0).log2(),
        None => n * n.log2(),
    };
    let mut startup = 2.0 * costs.operator * compared;
    if kept.is_none() && bytes > costs.work_mem {
        // Written once, read once, mostly in order.
        let pages = (bytes / 8192.0).ceil() * 2.0;
        startup += pages * (costs.seq_page * 0.75 + costs.random_page * 0.25);
    }
    (startup, costs.operator * n)
}

/// Sorting all rows, of which `bound` will be read.
pub(crate) fn sort_all(input: &Estimate, bound: Option<f64>, costs: &Costs) -> Estimate {
    let (first, rest) = tuplesort(input.rows, input.width, bound, costs);
    let extra = if costs.sort { 0.0 } else { DISABLED };
    let startup = input.total + first + extra;
    Estimate { startup, total: startup + rest, ..*input }
}

/// Sorting rows group by group.
pub(crate) fn sort_groups(input: &Estimate, groups: f64, costs: &Costs) -> Estimate {
    let groups = groups.max(1.0);
    let (first, rest) = tuplesort(input.rows / groups, input.width, None, costs);
    let read = (input.total - input.startup) / groups;
    let startup = input.startup + read + first;
    let total = startup
        + rest
        + (groups - 1.0) * (read + first + rest)
        + input.rows * (costs.tuple + 2.0 * costs.operator)
        + groups * 2.0 * costs.tuple;
    Estimate { startup, total, ..*input }
}

/// Grouping rows that come sorted by the groups.
pub(crate) fn group_sorted(
    input: &Estimate,
    calls: usize,
    groups: usize,
    distinct: f64,
    width: i32,
) -> Estimate {
    let work = input.rows * OPERATOR * (calls + groups).max(1) as f64;
    let rows = at_least_one(distinct.min(input.rows));
    let total = input.total + work + rows * TUPLE;
    Estimate { startup: input.startup, total, rows, width }
}

pub(crate) fn limit(input: &Estimate, count: Option<f64>, offset: f64) -> Estimate {
    let left = (input.rows - offset).max(0.0);
    let rows = at_least_one(count.map_or(left, |c| c.min(left)));
    let share = |n: f64| {
        let part = if input.rows > 0.0 { (n / input.rows).min(1.0) } else { 1.0 };
        input.startup + (input.total - input.startup) * part
    };
    Estimate { startup: share(offset), total: share(offset + rows), rows, width: input.width }
}

pub(crate) fn filter(input: &Estimate, selectivity: f64) -> Estimate {
    Estimate {
        total: input.total + input.rows * OPERATOR,
        rows: at_least_one(input.rows * selectivity),
        ..*input
    }
}

pub(crate) fn cte(stored: &Estimate) -> Estimate {
    Estimate { startup: 0.0, total: stored.rows * 2.0 * TUPLE, ..*stored }
}

pub(crate) fn function(rows: f64, width: i32) -> Estimate {
    Estimate { startup: 0.0, total: rows * TUPLE, rows, width }
}

/// A computed table of `all` rows, `selectivity` of which it gives.
pub(crate) fn system(all: f64, selectivity: f64, width: i32) -> Estimate {
    let rows = at_least_one(all * selectivity);
    Estimate { startup: 0.0, total: all * (TUPLE + OPERATOR), rows, width }
}

/// Bytes of a row in a hash table beside its values, about.
const HASHED_ROW: f64 = 24.0;

/// Joins: rows by selectivity, cost by method.
pub(crate) fn hash_join(left: &Estimate, right: &Estimate, rows: f64, costs: &Costs) -> Estimate {
    let mut build = right.total + right.rows * (OPERATOR + TUPLE);
    let mut probe = left.total + left.rows * OPERATOR + rows * TUPLE;
    let bytes = |e: &Estimate| e.rows * (f64::from(e.width) + HASHED_ROW);
    // `hash_mem_multiplier` is two.
    if bytes(right) > costs.work_mem * 2.0 {
        // Both sides are written once and read once, in order.
        let pages = |e: &Estimate| (bytes(e) / 8192.0).ceil() * costs.seq_page;
        build += pages(right);
        probe += pages(right) + 2.0 * pages(left);
    }
    if !costs.hashjoin {
        probe += DISABLED;
    }
    Estimate {
        startup: build + left.startup,
        total: build + probe,
        rows: at_least_one(rows),
        width: left.width + right.width,
    }
}

/// A merge join of two sides that are sorted for it.
pub(crate) fn merge_sorted(
    left: &Estimate,
    right: &Estimate,
    rows: f64,
    costs: &Costs,
) -> Estimate {
    let (l, r) = (sort_all(left, None, costs), sort_all(right, None, costs));
    let mut total = l.total + r.total + (l.rows + r.rows) * costs.operator + rows * costs.tuple;
    if !costs.mergejoin {
        total += DISABLED;
    }
    Estimate {
        startup: l.startup + r.startup,
        total,
        rows: at_least_one(rows),
        width: left.width + right.width,
    }
}

/// A nested loop whose right side is run again for each left row.
pub(crate) fn loop_join(
    left: &Estimate,
    right: &Estimate,
    rows: f64,
    rerun: bool,
    costs: &Costs,
) -> Estimate {
    let runs = left.rows.max(1.0);
    let inner = if rerun {
        runs * right.total
    } else {
        // Computed once, then read from memory.
        right.total + right.rows * OPERATOR * runs
    };
    let pairs = runs * right.rows;
    let forbidden = if costs.nestloop { 0.0 } else { DISABLED };
    Estimate {
        startup: left.startup + if rerun { right.startup } else { right.total },
        total: left.total + inner + pairs * (OPERATOR + TUPLE) + rows * TUPLE + forbidden,
        rows: at_least_one(rows),
        width: left.width + right.width,
    }
}

/// Average bytes of a value.
pub(crate) fn type_width(var: &Var) -> i32 {
    match var.ty {
        BOOL | CHAR => 1,
        INT2 => 2,
        INT4 | DATE | OID | REGCLASS | XID | FLOAT4 => 4,
        INT8 | FLOAT8 | TIMESTAMP | TIMESTAMPTZ | TIME => 8,
        TID => 6,
        NAME => 64,
        INTERVAL | UUID => 16,
        BPCHAR if var.typmod > 4 => var.typmod - 3,
        VARCHAR if var.typmod > 4 => ((var.typmod - 4) / 2).clamp(4, 32),
        _ => 32,
    }
}
