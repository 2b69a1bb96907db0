//! One execution of a statement: the part that it shares, and the state that changes while it runs.

use std::sync::Arc;

use base::Oid;
use sql::{Expr, Prepared};
use txn::Snapshot;
use types::{Batch, Datum};

use crate::context::ExecContext;
use crate::members::Members;
use crate::ops::measure::{Measure, MeasuredPart};
use crate::ops::system_tables::SystemTables;
use crate::ops::team::Member;
use crate::subquery::SubqueryState;

/// What all operators and expressions of one execution share.
pub struct Run<'r, 'c> {
    /// The session's side.
    pub cx: &'r mut ExecContext<'c>,
    /// The statement.
    pub prepared: &'r Prepared,
    /// Its parameters.
    pub params: &'r [Datum],
    /// What it sees.
    pub snapshot: Snapshot,
    /// What changes while it runs.
    pub state: &'r mut ExecState,
}

/// What changes while a statement runs, apart from the operators' own states.
#[derive(Default)]
pub struct ExecState {
    /// Values of correlated columns.
    pub slots: Vec<Datum>,
    /// Values of the operands of the CASEs whose tests are being evaluated, innermost last.
    pub held: Vec<Datum>,
    /// Results of subqueries that are computed once, and operator trees of the others.
    pub subqueries: Vec<SubqueryState>,
    /// Rows of the last rounds of recursive queries, by number.
    pub work_tables: Vec<Arc<Vec<Batch>>>,
    /// When the statement first asked for its own time: microseconds since 2000-01-01 UTC.
    pub started: Option<i64>,
    /// Rows and times by plan node, for EXPLAIN ANALYZE.
    pub measure: Option<Vec<Measure>>,
    /// The partitions' scans among them.
    pub parts: Vec<MeasuredPart>,
    /// Waits by plan node, too: the task is metered.
    pub measure_waits: bool,
    /// What each node uses, too.
    pub measure_usage: bool,
    /// While operators are built that several threads run: the thread's place among them.
    pub member: Option<Member>,
    /// While operators are built: their reader may stop before the last row.
    pub may_stop: bool,
    /// What the domains demand that values were checked against so far.
    pub domains: Vec<(Oid, Arc<DomainRules>)>,
    /// The change of rows at hand asks where they are ([`sql::plan::Modify::places`]).
    pub asks_places: bool,
    /// Then: the version that was written last.
    pub placed: Option<(base::TupleId, access::SystemColumns)>,
    /// Long lists, to be looked up.
    pub(crate) members: Members,
    /// System tables that were read.
    pub system_tables: Option<Box<SystemTables>>,
}

impl Run<'_, '_> {
    /// Whether operators that are built now hand rows up one by one where somebody can see what they do.
    pub fn goes_by_row(&self) -> bool {
        let effects = self.prepared.effects;
        effects.crossed || effects.any && self.state.may_stop
    }

    /// Builds operators for a reader that may stop, or (false) reads all rows.
    pub fn reading<R>(&mut self, may_stop: bool, build: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.state.may_stop, may_stop);
        let built = build(self);
        self.state.may_stop = before;
        built
    }
}

impl ExecState {
    /// For a statement's first run.
    pub fn new(prepared: &Prepared) -> ExecState {
        ExecState {
            slots: vec![Datum::Null; prepared.slots],
            held: Vec::new(),
            subqueries: prepared.subplans.iter().map(|_| SubqueryState::default()).collect(),
            work_tables: Vec::new(),
            started: None,
            measure: sched::observe::is_traced().then(Vec::new),
            parts: Vec::new(),
            measure_waits: false,
            measure_usage: false,
            member: None,
            may_stop: false,
            domains: Vec::new(),
            asks_places: false,
            placed: None,
            members: Members::default(),
            system_tables: None,
        }
    }
}

/// The conditions of a domain and of those below it.
pub struct DomainRules {
    pub(crate) not_null: bool,
    /// Conditions by the names of their constraints, those of domains below first.
    pub(crate) checks: Vec<(String, Expr)>,
    /// The type below all domains.
    pub(crate) base: Oid,
}
