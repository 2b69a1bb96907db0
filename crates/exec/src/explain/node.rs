//! The tree that EXPLAIN shows.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use catalog::Table;
use sql::plan::{
    Conflict, IndexBounds, JoinKind, KeyStep, Modify, ModifyAction, Node, SampleMethod, Scan,
    ScanColumn, ScanKey,
};
use sql::{AggCall, Expr, Plan, Prepared};
use types::FormatContext;

use super::expression::Names;
use super::verbose::Verbose;
use crate::ops::aggregate::{BATCHES, MEMORY};
use crate::ops::bitmap_heap_scan::{EXACT_PAGES, LOSSY_PAGES, REMOVED_BY_RECHECK};
use crate::ops::gather::LAUNCHED;
use crate::ops::hash_join::HASH;
use crate::ops::index_only_scan::HEAP_FETCHES;
use crate::ops::measure::{Measure, OfWorker, REMOVED_BY_FILTER, REMOVED_BY_JOIN};
use crate::ops::memoize::COUNTS;
use crate::ops::sort::METHODS;

/// A node as it is shown.
pub struct Shown {
    /// `Seq Scan`.
    pub kind: String,
    /// ` using t_pkey on t`.
    pub on: String,
    /// For JSON: names of table, index and so on.
    pub facts: Vec<(&'static str, String)>,
    /// For JSON: what kind of node it is, where `kind` says more, and what stands right behind it.
    pub node_type: Option<&'static str>,
    /// See `node_type`.
    pub strategy: Vec<(&'static str, String)>,
    /// `Filter` and what it is.
    pub details: Vec<(&'static str, Detail)>,
    /// Expected rows and costs.
    pub estimate: sql::plan::Estimate,
    /// What was measured.
    pub measure: Option<Measure>,
    /// A heading above the node: `SubPlan 1`.
    pub title: Option<String>,
    /// Inputs, then subplans.
    pub children: Vec<Shown>,
}

/// What stands behind the name of a detail.
#[derive(Clone)]
pub enum Detail {
    /// A text.
    One(String),
    /// Several, with commas between them.
    List(Vec<String>),
    /// A number.
    Count(u64),
    /// Rows that were removed, in all loops: shown by loop, in text only if there are any.
    Removed(u64),
    /// Pages of a bitmap: exact, lossy.
    Pages(u64, u64),
    /// A sort's method, and kilobytes in memory or (true) on disk.
    Sort(&'static str, u64, bool),
    /// A hash join's table: buckets, batches, kilobytes.
    Hash([u64; 3]),
    /// The table of a hash aggregate: batches, kilobytes.
    Groups([u64; 2]),
    /// A cache of rows: hits, misses, evictions, overflows, kilobytes.
    Cache([u64; 5]),
}

impl From<String> for Detail {
    fn from(text: String) -> Detail {
        Detail::One(text)
    }
}

impl Shown {
    /// What the node counted under this name.
    fn counted(&self, name: &str) -> Option<u64> {
        let counts = &self.measure.as_ref()?.counts;
        counts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Names of nodes' output columns, by the nodes' addresses.
#[derive(Default)]
struct Outputs {
    /// How many slots had names when they were found.
    slots: usize,
    names: HashMap<usize, Vec<String>>,
}

/// An expression's text as the name of a column. The names of the columns below stand in it, so that a column that is
/// used twice in each of several subqueries would double the text in each.
fn shortened(mut text: String) -> String {
    const MAX_BYTES: usize = 4096;
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push_str("...");
    }
    text
}

/// Makes the tree.
pub struct Describe<'p> {
    prepared: &'p Prepared,
    measures: Option<&'p [Measure]>,
    format: &'p FormatContext,
    /// Several tables: their columns are shown with the table's name.
    qualify: bool,
    /// VERBOSE.
    pub(super) verbose: Option<Verbose>,
    /// The name of the table that a scan reads, by the plan's address: no two have the same.
    aliases: RefCell<HashMap<usize, String>>,
    outputs: RefCell<Outputs>,
    /// Partitions that are left out of scans when they begin.
    pub removed: super::partition::Removed,
}

fn count_scans(plan: &Plan) -> usize {
    let mut scans = 0;
    plan.walk(&mut |plan| {
        let is_scan = matches!(
            &plan.node,
            Node::SeqScan(_)
                | Node::IndexScan { .. }
                | Node::IndexOnlyScan { .. }
                | Node::BitmapHeapScan { .. }
                | Node::SampleScan { .. }
                | Node::ForeignScan(_)
                | Node::SystemScan { .. }
        );
        scans += usize::from(is_scan);
        // A WITH query and what it reads.
        scans += 2 * usize::from(matches!(&plan.node, Node::Cte { .. }));
    });
    scans
}

/// A table's column as the table's own scan shows it.
pub(super) fn own_column(table: &Table, column: ScanColumn) -> String {
    match column {
        ScanColumn::Attr(n) => {
            crate::session::quote_identifier(&table.columns[usize::from(n) - 1].name)
        }
        ScanColumn::Tid | ScanColumn::Root => "ctid".to_owned(),
        ScanColumn::TableOid => "tableoid".to_owned(),
        ScanColumn::Xmin => "xmin".to_owned(),
        ScanColumn::Xmax => "xmax".to_owned(),
        ScanColumn::Cmin => "cmin".to_owned(),
        ScanColumn::Cmax => "cmax".to_owned(),
    }
}

/// The columns of a scan as it shows them itself; None for other nodes.
fn own_columns(plan: &Plan) -> Option<Vec<String>> {
    match &plan.node {
        Node::SeqScan(scan)
        | Node::IndexScan { scan, .. }
        | Node::IndexOnlyScan { scan, .. }
        | Node::BitmapHeapScan { scan, .. }
        | Node::SampleScan { scan, .. } => {
            Some(scan.columns.iter().map(|c| own_column(&scan.table, *c)).collect())
        }
        Node::ForeignScan(foreign) => {
            let scan = &foreign.scan;
            Some(scan.columns.iter().map(|c| own_column(&scan.table, *c)).collect())
        }
        Node::SystemScan { table, columns, .. } => {
            let name = |c: &u16| table.columns[usize::from(*c)].0.to_owned();
            Some(columns.iter().map(name).collect())
        }
        Node::Cte { columns, .. } => {
            Some(columns.iter().map(|name| crate::session::quote_identifier(name)).collect())
        }
        _ => None,
    }
}

/// The name that a scan's table has in the statement.
pub(super) fn name_of_scan(plan: &Plan) -> Option<&str> {
    match &plan.node {
        Node::SeqScan(scan)
        | Node::IndexScan { scan, .. }
        | Node::IndexOnlyScan { scan, .. }
        | Node::BitmapHeapScan { scan, .. }
        | Node::SampleScan { scan, .. } => Some(scan.alias.as_deref().unwrap_or(&scan.table.name)),
        Node::ForeignScan(foreign) => {
            let scan = &foreign.scan;
            Some(scan.alias.as_deref().unwrap_or(&scan.table.name))
        }
        Node::SystemScan { table, .. } => Some(table.name),
        Node::Cte { name, alias, .. } => Some(alias.as_ref().unwrap_or(name)),
        _ => None,
    }
}

/// The WITH queries that are read below a node: (subplan, name).
fn cte_names(plan: &Plan, out: &mut Vec<(usize, String)>) {
    plan.walk(&mut |plan| {
        if let Node::Cte { plan, name, .. } = &plan.node {
            out.push((*plan, name.clone()));
        }
    });
}

impl<'p> Describe<'p> {
    /// For a statement.
    pub fn new(
        prepared: &'p Prepared,
        measures: Option<&'p [Measure]>,
        format: &'p FormatContext,
    ) -> Describe<'p> {
        let scans: usize = prepared.subplans.iter().map(count_scans).sum();
        let own = match &prepared.statement {
            sql::Statement::Query(plan) => count_scans(plan),
            _ => 0,
        };
        let aliases = RefCell::default();
        Describe {
            prepared,
            measures,
            format,
            qualify: scans + own > 1,
            verbose: None,
            aliases,
            outputs: RefCell::default(),
            removed: Default::default(),
        }
    }

    /// The same for VERBOSE.
    pub fn verbose(self, verbose: Option<Verbose>) -> Describe<'p> {
        Describe { verbose, ..self }
    }

    /// The whole tree.
    pub fn root(&self, plan: &Plan) -> Shown {
        self.name_scans(plan);
        let mut slots = HashMap::new();
        let mut shown = self.node(plan, &mut slots);
        let mut ctes = Vec::new();
        cte_names(plan, &mut ctes);
        self.prepared.subplans.iter().for_each(|p| cte_names(p, &mut ctes));
        let mut first = 0;
        for (n, subplan) in self.prepared.subplans.iter().enumerate() {
            // Planned for a way that was not taken.
            if matches!(subplan.node, Node::Nothing) {
                continue;
            }
            let mut child = self.node(subplan, &mut slots);
            let name = ctes.iter().find(|(plan, _)| *plan == n).map(|(_, name)| name);
            child.title = Some(match name {
                Some(name) => format!("CTE {name}"),
                None => format!("SubPlan {}", n + 1),
            });
            if name.is_some() {
                shown.children.insert(first, child);
                first += 1;
                continue;
            }
            shown.children.push(child);
        }
        shown
    }

    /// Finds a name for each scan: the statement's, with a number where another scan has it.
    fn name_scans(&self, root: &Plan) {
        let mut taken = HashSet::new();
        let mut aliases = self.aliases.borrow_mut();
        for plan in std::iter::once(root).chain(&self.prepared.subplans) {
            plan.walk(&mut |plan| {
                let Some(name) = name_of_scan(plan) else { return };
                let numbered = |n: usize| match n {
                    0 => name.to_owned(),
                    n => format!("{name}_{n}"),
                };
                let free = (0..).map(numbered).find(|name| !taken.contains(name));
                let name = free.unwrap_or_default();
                taken.insert(name.clone());
                aliases.insert(std::ptr::from_ref(plan) as usize, name);
            });
        }
    }

    /// The name of the table that a node reads.
    pub(super) fn alias(&self, plan: &Plan) -> String {
        let known = self.aliases.borrow().get(&(std::ptr::from_ref(plan) as usize)).cloned();
        known.or_else(|| name_of_scan(plan).map(str::to_owned)).unwrap_or_default()
    }

    /// A key column of an index, as text.
    fn key_column(&self, table: &Table, index: &catalog::Index, n: usize) -> String {
        match index.columns.get(n) {
            Some(key) => match &key.expression {
                Some(e) if is_call(&e.sql) => e.sql.clone(),
                Some(e) => format!("({})", e.sql),
                None => self.own_column(table, ScanColumn::Attr(key.column)),
            },
            None => String::new(),
        }
    }

    /// [`own_columns`], with the scan's name for VERBOSE.
    fn own_columns(&self, plan: &Plan) -> Option<Vec<String>> {
        self.enter(plan);
        let columns = own_columns(plan)?;
        Some(columns.into_iter().map(|name| self.prefixed(name)).collect())
    }

    fn measure(&self, plan: &Plan) -> Option<Measure> {
        let address = std::ptr::from_ref(plan) as usize;
        let all = self.measures?;
        Some(all.iter().rev().find(|m| m.node == address).cloned().unwrap_or_default())
    }

    fn scan_column(&self, table: &Table, alias: &str, column: ScanColumn) -> String {
        self.qualified(alias, own_column(table, column))
    }

    fn qualified(&self, table: &str, name: String) -> String {
        if self.qualify {
            format!("{}.{name}", crate::session::quote_identifier(table))
        } else {
            name
        }
    }

    fn names<'a>(&'a self, columns: &'a [String], slots: &'a HashMap<u16, String>) -> Names<'a> {
        Names { columns, slots, format: self.format }
    }

    /// The options of this EXPLAIN that foreign-data wrappers heed.
    fn about(&self) -> crate::foreign::About<'_> {
        crate::foreign::About {
            verbose: self.verbose.is_some(),
            catalog: self.verbose.as_ref().map(Verbose::catalog),
            format: self.format,
        }
    }

    /// Names of the columns of rows on a foreign server.
    fn remote_columns(
        &self,
        rel: &sql::plan::RemoteRel,
        slots: &HashMap<u16, String>,
    ) -> Vec<String> {
        use sql::plan::RemoteRel as R;
        let texts = |input: &R, exprs: &[Expr]| {
            let columns = self.remote_columns(input, slots);
            let names = self.names(&columns, slots);
            exprs.iter().map(|e| names.text(e)).collect::<Vec<String>>()
        };
        match rel {
            R::Table { table, alias, columns, .. } => {
                let alias = alias.as_deref().unwrap_or(&table.name);
                let name = |n: &u16| {
                    let own = own_column(table, ScanColumn::Attr(*n));
                    format!("{}.{own}", crate::session::quote_identifier(alias))
                };
                columns.iter().map(name).collect()
            }
            R::Join { left, right, .. } => {
                let mut all = self.remote_columns(left, slots);
                all.extend(self.remote_columns(right, slots));
                all
            }
            R::Project { input, exprs } => texts(input, exprs),
            R::Aggregate { input, groups, aggs } => {
                let mut all = texts(input, groups);
                for agg in aggs {
                    let args = texts(input, &agg.args).join(", ");
                    let args = if agg.args.is_empty() { "*".to_owned() } else { args };
                    let distinct = if agg.distinct { "DISTINCT " } else { "" };
                    all.push(format!("({}({distinct}{args}))", agg.name()));
                }
                all
            }
            R::Filter { input, .. } | R::Sort { input, .. } | R::Limit { input, .. } => {
                self.remote_columns(input, slots)
            }
        }
    }

    /// Names of a node's output columns. Each node that is described asks for those of its inputs, and these for
    /// those of theirs, so what was found is kept while the names of slots stay the same.
    pub(super) fn output(&self, plan: &Plan, slots: &HashMap<u16, String>) -> Vec<String> {
        let address = std::ptr::from_ref(plan) as usize;
        {
            let mut known = self.outputs.borrow_mut();
            if known.slots != slots.len() {
                *known = Outputs { slots: slots.len(), names: HashMap::new() };
            }
            if let Some(names) = known.names.get(&address) {
                return names.clone();
            }
        }
        let names = self.find_output(plan, slots);
        self.outputs.borrow_mut().names.insert(address, names.clone());
        names
    }

    fn find_output(&self, plan: &Plan, slots: &HashMap<u16, String>) -> Vec<String> {
        let texts = |input: &Plan, exprs: &[Expr]| {
            let columns = self.output(input, slots);
            let names = self.names(&columns, slots);
            exprs.iter().map(|e| shortened(names.text(e))).collect::<Vec<String>>()
        };
        match &plan.node {
            Node::SeqScan(scan)
            | Node::IndexScan { scan, .. }
            | Node::IndexOnlyScan { scan, .. }
            | Node::BitmapHeapScan { scan, .. }
            | Node::SampleScan { scan, .. } => {
                let alias = self.alias(plan);
                scan.columns.iter().map(|c| self.scan_column(&scan.table, &alias, *c)).collect()
            }
            Node::ForeignScan(foreign) => {
                let (scan, alias) = (&foreign.scan, self.alias(plan));
                scan.columns.iter().map(|c| self.scan_column(&scan.table, &alias, *c)).collect()
            }
            Node::ForeignQuery(query) => self.remote_columns(&query.rel, slots),
            Node::PartitionScan(parts) => self.output(&parts.scan, slots),
            Node::PartitionWise { input, .. } => self.output(input, slots),
            Node::SystemScan { table, columns, .. } => columns
                .iter()
                .map(|c| self.qualified(table.name, table.columns[usize::from(*c)].0.to_owned()))
                .collect(),
            Node::FunctionScan { calls, .. } => calls
                .iter()
                .map(|call| match call {
                    Expr::Call { function, .. } => function.name.to_owned(),
                    _ => "value".to_owned(),
                })
                .chain(["ordinality".to_owned()])
                .collect(),
            Node::Window { input, calls, .. } => {
                let mut all = self.output(input, slots);
                let columns = all.clone();
                let names = self.names(&columns, slots);
                all.extend(calls.iter().map(|c| window_call(c, &names)));
                all
            }
            Node::WorkTable { columns, .. } => columns.iter().map(|c| c.0.clone()).collect(),
            Node::Project { input, exprs } | Node::ProjectSet { input, exprs } => {
                texts(input, exprs)
            }
            Node::NestedLoop { left, right, kind, .. }
            | Node::HashJoin { left, right, kind, .. }
            | Node::MergeJoin { left, right, kind, .. } => {
                let mut all = Vec::new();
                if kind.gives_left() {
                    all.extend(self.output(left, slots));
                }
                if kind.gives_right() {
                    all.extend(self.output(right, slots));
                }
                all
            }
            Node::Aggregate { input, groups, aggs, sets, .. } => {
                let mut all = texts(input, groups);
                let columns = self.output(input, slots);
                all.extend(aggs.iter().map(|a| aggregate(a, &self.names(&columns, slots))));
                for args in sets.iter().flat_map(|s| &s.masks) {
                    let names: Vec<&str> = args.iter().map(|n| all[*n].as_str()).collect();
                    let text = format!("GROUPING({})", names.join(", "));
                    all.push(text);
                }
                all
            }
            // Not those of its plan: a WITH query is described once, whatever number of nodes read it.
            Node::Cte { .. } => {
                let alias = self.alias(plan);
                let own = own_columns(plan).unwrap_or_default().into_iter();
                own.map(|name| self.qualified(&alias, name)).collect()
            }
            Node::Values(rows) => {
                (1..=rows.first().map_or(0, Vec::len)).map(|n| format!("column{n}")).collect()
            }
            Node::Modify(_) | Node::OneRow | Node::Nothing => vec![],
            _ => match plan.children().first() {
                Some(input) => self.output(input, slots),
                None => vec![],
            },
        }
    }

    fn plain(&self, plan: &Plan, kind: &str, slots: &mut HashMap<u16, String>) -> Shown {
        Shown {
            kind: kind.to_owned(),
            on: String::new(),
            facts: vec![],
            node_type: node_type(plan),
            strategy: strategy(plan),
            details: vec![],
            estimate: plan.estimate,
            measure: self.measure(plan),
            title: None,
            children: plan.children().into_iter().map(|c| self.node(c, slots)).collect(),
        }
    }

    /// Shows the conditions on `ctid` by which pages are chosen; the others.
    fn tid_condition(
        &self,
        shown: &mut Shown,
        plan: &Plan,
        scan: &Scan,
        slots: &HashMap<u16, String>,
    ) -> Option<Expr> {
        let all = |mut conditions: Vec<&Expr>| match conditions.len() {
            0 | 1 => conditions.pop().cloned(),
            _ => Some(Expr::And(conditions.into_iter().cloned().collect())),
        };
        let (on_tid, others) = scan.by_tids();
        if let Some(condition) = all(on_tid) {
            let columns = self.own_columns(plan).unwrap_or_default();
            shown.details.push(("TID Cond", self.names(&columns, slots).text(&condition).into()));
        }
        all(others)
    }

    fn on_table(&self, shown: &mut Shown, plan: &Plan, scan: &Scan, slots: &HashMap<u16, String>) {
        let table = &scan.table.name;
        let alias = self.alias(plan);
        let schema = self.schema_of(scan);
        let place = schema.as_ref().map(|s| format!("{}.", crate::session::quote_identifier(s)));
        let place = place.unwrap_or_default();
        shown.on += &format!(" on {place}{}", crate::session::quote_identifier(table));
        if alias != *table {
            shown.on += &format!(" {}", crate::session::quote_identifier(&alias));
        }
        shown.facts.push(("Relation Name", table.clone()));
        shown.facts.extend(schema.map(|s| ("Schema", s)));
        shown.facts.push(("Alias", alias));
        let filter = match &plan.node {
            Node::SeqScan(_) => self.tid_condition(shown, plan, scan, slots),
            _ => scan.filter.clone(),
        };
        if let Some(filter) = filter {
            let columns = self.own_columns(plan).unwrap_or_default();
            shown.details.push(("Filter", self.names(&columns, slots).text(&filter).into()));
            let removed = shown.counted(REMOVED_BY_FILTER).map(Detail::Removed);
            shown.details.extend(removed.map(|n| (REMOVED_BY_FILTER, n)));
        }
    }

    /// One node with those below it.
    fn node(&self, plan: &Plan, slots: &mut HashMap<u16, String>) -> Shown {
        match &plan.node {
            // They belong to the node below.
            Node::Project { input, .. } => {
                let mut shown = self.node(input, slots);
                shown.estimate = plan.estimate;
                shown.measure = self.measure(plan);
                self.show_output(plan, &mut shown, slots);
                return shown;
            }
            Node::Filter { input, condition } => {
                let mut shown = self.node(input, slots);
                let columns = self.own_columns(input).unwrap_or_else(|| self.output(input, slots));
                let whole = super::filter::with_scans_own(input, condition);
                shown.details.retain(|(name, _)| whole.is_none() || *name != "Filter");
                let text = self.names(&columns, slots).text(whole.as_ref().unwrap_or(condition));
                let at = shown.details.iter().position(|(name, _)| *name == "Batches");
                shown.details.insert(at.unwrap_or(shown.details.len()), ("Filter", text.into()));
                shown.estimate = plan.estimate;
                shown.measure = self.measure(plan);
                let removed = shown.counted(REMOVED_BY_FILTER).map(Detail::Removed);
                shown.details.extend(removed.map(|n| (REMOVED_BY_FILTER, n)));
                return shown;
            }
            Node::NestedLoop { left, slots: filled, .. } => {
                let columns = self.output(left, slots);
                for (slot, expr) in filled {
                    let text = self.names(&columns, slots).text(expr);
                    slots.insert(*slot, shortened(text));
                }
            }
            _ => {}
        }
        self.enter(plan);
        let mut shown = self.plain(plan, plan.node.label(), slots);
        self.enter(plan);
        self.particulars(plan, &mut shown, slots);
        self.show_output(plan, &mut shown, slots);
        if let Node::HashJoin { right, shared, .. } = &plan.node {
            self.show_hash(right, *shared, &mut shown);
        }
        if let Node::Aggregate { input, .. } = &plan.node
            && let Node::Gather { absorbed: true, .. } = &input.node
        {
            show_partial(&mut shown);
        }
        if let Node::Sort { input, .. } = &plan.node
            && let Node::Gather { absorbed: true, .. } = &input.node
        {
            return show_merge(shown);
        }
        shown
    }

    /// The table that a hash join makes of its right side is shown as a node.
    fn show_hash(&self, right: &Plan, shared: bool, shown: &mut Shown) {
        let table = HASH.map(|name| shown.counted(name));
        let table = match table {
            [Some(buckets), Some(batches), Some(memory)] => {
                vec![("Buckets", Detail::Hash([buckets, batches, memory]))]
            }
            _ => vec![],
        };
        let Some(child) = shown.children.pop() else { return };
        let output = child.details.iter().find(|(name, _)| *name == "Output").cloned().into_iter();
        let estimate = sql::plan::Estimate { startup: right.estimate.total, ..right.estimate };
        let measure =
            child.measure.clone().map(|m| Measure { startup: m.total, waits: vec![], ..m });
        shown.children.push(Shown {
            kind: if shared { PARALLEL_HASH } else { "Hash" }.to_owned(),
            on: String::new(),
            facts: vec![],
            node_type: shared.then_some("Hash"),
            strategy: vec![],
            details: output.chain(table).collect(),
            estimate,
            measure,
            title: None,
            children: vec![child],
        });
    }

    /// What a node has beside its inputs.
    fn particulars(&self, plan: &Plan, shown: &mut Shown, slots: &HashMap<u16, String>) {
        if let Some(number) = self.removed.get(&super::partition::place(&plan.node)) {
            shown.details.push(("Subplans Removed", Detail::Count(*number)));
            if matches!(plan.node, Node::PartitionScan(_)) && shown.measure.is_none() {
                shown.children.clear();
            }
        }
        match &plan.node {
            Node::SeqScan(scan) => self.on_table(shown, plan, scan, slots),
            Node::IndexScan { scan, index, bounds, backward }
            | Node::IndexOnlyScan { scan, index, bounds, backward } => {
                if *backward {
                    shown.kind += " Backward";
                }
                let direction = if *backward { "Backward" } else { "Forward" };
                shown.facts.push(("Scan Direction", direction.to_owned()));
                shown.on = format!(" using {}", crate::session::quote_identifier(&index.name));
                shown.facts.push(("Index Name", index.name.clone()));
                let condition = self.bounds(&scan.table, index, bounds, slots);
                if !condition.is_empty() {
                    shown.details.push(("Index Cond", condition.into()));
                    if shown.measure.is_some() {
                        shown.details.push((REMOVED_BY_RECHECK, Detail::Removed(0)));
                    }
                }
                if !bounds.nearest.is_empty() {
                    let keys = self.keys(&scan.table, index, &bounds.nearest, slots);
                    shown.details.push(("Order By", keys.join(" AND ").into()));
                }
                self.on_table(shown, plan, scan, slots);
                let fetches = shown.counted(HEAP_FETCHES).map(Detail::Count);
                shown.details.extend(fetches.map(|n| (HEAP_FETCHES, n)));
            }
            Node::BitmapHeapScan { scan, recheck, .. } => {
                if let Some(recheck) = recheck {
                    let columns = self.own_columns(plan).unwrap_or_default();
                    let text = self.names(&columns, slots).text(recheck);
                    shown.details.push(("Recheck Cond", text.into()));
                    let removed = shown.counted(REMOVED_BY_RECHECK).map(Detail::Removed);
                    shown.details.extend(removed.map(|n| (REMOVED_BY_RECHECK, n)));
                }
                self.on_table(shown, plan, scan, slots);
                if let Some(exact) = shown.counted(EXACT_PAGES) {
                    let lossy = shown.counted(LOSSY_PAGES).unwrap_or(0);
                    shown.details.push(("Heap Blocks", Detail::Pages(exact, lossy)));
                }
            }
            Node::BitmapIndexScan { table, index, bounds } => {
                shown.on = format!(" on {}", crate::session::quote_identifier(&index.name));
                shown.facts.push(("Index Name", index.name.clone()));
                let condition = self.bounds(table, index, bounds, slots);
                if !condition.is_empty() {
                    shown.details.push(("Index Cond", condition.into()));
                }
            }
            Node::ForeignScan(foreign) => {
                self.on_table(shown, plan, &foreign.scan, slots);
                for (name, text) in crate::foreign::explain(foreign, &self.about()) {
                    shown.details.push((name, text.into()));
                }
            }
            Node::ForeignQuery(query) => {
                for (name, text) in crate::foreign::explain_query(query, &self.about()) {
                    shown.details.push((name, text.into()));
                }
            }
            Node::SystemScan { table, filter, .. } => {
                shown.on = format!(" on {}", table.name);
                shown.facts.push(("Relation Name", table.name.to_owned()));
                if let Some(filter) = filter {
                    let names = self.own_columns(plan).unwrap_or_default();
                    shown.details.push(("Filter", self.names(&names, slots).text(filter).into()));
                }
            }
            Node::SampleScan { scan, method, percent, seed } => {
                self.on_table(shown, plan, scan, slots);
                let names = self.names(&[], slots);
                let method = match method {
                    SampleMethod::Bernoulli => "bernoulli",
                    SampleMethod::System => "system",
                    SampleMethod::SystemRows => "system_rows",
                    SampleMethod::SystemTime => "system_time",
                };
                let mut text = format!("{method} ({})", names.text(percent));
                if let Some(seed) = seed {
                    text += &format!(" REPEATABLE ({})", names.text(seed));
                }
                shown.details.insert(0, ("Sampling", text.into()));
            }
            Node::WorkTable { name, .. } => shown.on = format!(" on {name}"),
            Node::FunctionScan { calls, filter, .. } => {
                let names = self.output(plan, slots);
                if let [Expr::Call { function, .. }] = calls.as_slice() {
                    shown.on = format!(" on {}", function.name);
                    shown.facts.push(("Function Name", function.name.to_owned()));
                }
                if let Some(filter) = filter {
                    shown.details.push(("Filter", self.names(&names, slots).text(filter).into()));
                }
            }
            Node::NestedLoop { left, right, kind, condition, .. } => {
                shown.kind = join_label("Nested Loop", *kind, false);
                self.join(shown, *kind, [left, right], None, condition.as_ref(), slots);
            }
            Node::HashJoin { left, right, kind, keys, condition, shared } => {
                shown.kind = join_label("Hash", *kind, true);
                if *shared {
                    shown.kind.insert_str(0, "Parallel ");
                }
                let pairs = keys.iter().map(|(left, right)| (left, right)).collect();
                let keys = Some(("Hash Cond", pairs));
                self.join(shown, *kind, [left, right], keys, condition.as_ref(), slots);
            }
            Node::MergeJoin { left, right, kind, keys, condition } => {
                shown.kind = join_label("Merge", *kind, true);
                let pairs = keys.iter().map(|key| (&key.left, &key.right)).collect();
                let keys = Some(("Merge Cond", pairs));
                self.join(shown, *kind, [left, right], keys, condition.as_ref(), slots);
            }
            Node::Aggregate { input, groups, sets: Some(sets), .. } => {
                let columns = self.output(input, slots);
                let names = self.names(&columns, slots);
                let texts: Vec<String> = groups.iter().map(|g| names.text(g)).collect();
                for set in &sets.sets {
                    if set.is_empty() {
                        shown.details.push(("Group Key", "()".to_owned().into()));
                        continue;
                    }
                    let keys: Vec<&str> = set.iter().map(|n| texts[*n].as_str()).collect();
                    shown.details.push(("Hash Key", keys.join(", ").into()));
                }
            }
            Node::Aggregate { input, groups, .. } if !groups.is_empty() => {
                let columns = self.output(input, slots);
                let names = self.names(&columns, slots);
                let texts: Vec<String> = groups.iter().map(|g| names.text(g)).collect();
                shown.details.push(("Group Key", Detail::List(texts)));
                if let (Some(batches), Some(memory)) =
                    (shown.counted(BATCHES), shown.counted(MEMORY))
                {
                    shown.details.push(("Batches", Detail::Groups([batches, memory])));
                }
            }
            Node::Distinct { input, keys, sorted: false } => {
                let columns = self.output(input, slots);
                let names = self.names(&columns, slots);
                let texts = keys.iter().map(|key| names.text(key)).map(in_parentheses).collect();
                shown.details.push(("Group Key", Detail::List(texts)));
            }
            Node::Sort { input, keys, .. } => {
                let columns = self.output(input, slots);
                let names = self.names(&columns, slots);
                let texts: Vec<String> = keys.iter().map(|k| names.sort_key(k)).collect();
                shown.details.push(("Sort Key", Detail::List(texts)));
                let how = METHODS.iter().find_map(|name| Some((*name, shown.counted(name)?)));
                let how = how.map(|(name, kb)| Detail::Sort(name, kb, name == METHODS[2]));
                shown.details.extend(how.map(|how| ("Sort Method", how)));
            }
            Node::IncrementalSort { input, keys, presorted } => {
                let columns = self.output(input, slots);
                let names = self.names(&columns, slots);
                let texts: Vec<String> = keys.iter().map(|k| names.sort_key(k)).collect();
                let first: Vec<String> =
                    keys[..*presorted].iter().map(|k| names.text(&k.expr)).collect();
                shown.details.push(("Sort Key", Detail::List(texts)));
                shown.details.push(("Presorted Key", Detail::List(first)));
            }
            Node::Memoize { keys, binary, .. } => {
                let names = self.names(&[], slots);
                let key = |(slot, ty): &(u16, base::Oid)| names.text(&Expr::Slot(*slot, *ty));
                let keys: Vec<String> = keys.iter().map(key).collect();
                shown.details.push(("Cache Key", keys.join(", ").into()));
                let mode = if *binary { "binary" } else { "logical" };
                shown.details.push(("Cache Mode", mode.to_owned().into()));
                let counts = COUNTS.map(|name| shown.counted(name).unwrap_or(0));
                if counts[1] > 0 {
                    shown.details.push(("Hits", Detail::Cache(counts)));
                }
            }
            Node::Modify(modify) => {
                let name = crate::session::quote_identifier(&modify.table.name);
                shown.on = format!(" on {name}");
                shown.facts.push(("Relation Name", modify.table.name.clone()));
                if let ModifyAction::Insert { conflict: Some(conflict), .. } = &modify.action {
                    self.conflict(modify, conflict, shown, slots);
                }
            }
            Node::SetOp { except, all, .. } => {
                shown.kind = format!(
                    "HashSetOp {}{}",
                    if *except { "Except" } else { "Intersect" },
                    if *all { " All" } else { "" }
                );
            }
            Node::Cte { name, .. } => {
                let alias = self.alias(plan);
                shown.on = format!(" on {}", crate::session::quote_identifier(name));
                if alias != *name {
                    shown.on += &format!(" {}", crate::session::quote_identifier(&alias));
                }
                shown.facts.push(("CTE Name", name.clone()));
                shown.facts.push(("Alias", alias));
            }
            Node::Window { workers, .. } if *workers > 0 => {
                shown.details.push(("Workers Planned", Detail::Count(u64::from(*workers))));
                let launched = shown.counted(LAUNCHED).map(Detail::Count);
                shown.details.extend(launched.map(|n| (LAUNCHED, n)));
            }
            Node::Gather { workers, .. } => {
                shown.details.push(("Workers Planned", Detail::Count(u64::from(*workers))));
                let launched = shown.counted(LAUNCHED).map(Detail::Count);
                shown.details.extend(launched.map(|n| (LAUNCHED, n)));
                shown.children.iter_mut().take(1).for_each(name_parallel);
            }
            _ => {}
        }
    }

    fn conflict(
        &self,
        modify: &Modify,
        conflict: &Conflict,
        shown: &mut Shown,
        slots: &HashMap<u16, String>,
    ) {
        let word = if conflict.update.is_some() { "UPDATE" } else { "NOTHING" };
        shown.details.push(("Conflict Resolution", word.to_owned().into()));
        let unique = modify.indexes.iter().filter(|i| i.unique).count();
        if conflict.update.is_some() || conflict.arbiters.len() < unique {
            let names: Vec<&str> =
                conflict.arbiters.iter().map(|n| modify.indexes[*n].name.as_str()).collect();
            shown.details.push(("Conflict Arbiter Indexes", names.join(", ").into()));
        }
        let condition = conflict.update.as_ref().and_then(|u| u.condition.as_ref());
        if let Some(condition) = condition {
            let own = modify.table.columns.iter();
            let mut columns: Vec<String> =
                own.map(|c| format!("{}.{}", modify.table.name, c.name)).collect();
            let excluded = modify.table.columns.iter().map(|c| format!("excluded.{}", c.name));
            columns.extend(excluded);
            shown
                .details
                .push(("Conflict Filter", self.names(&columns, slots).text(condition).into()));
        }
    }

    /// What joins of all methods have: their kind, the equalities of their keys, other conditions.
    fn join(
        &self,
        shown: &mut Shown,
        kind: JoinKind,
        [left, right]: [&Plan; 2],
        keys: Option<(&'static str, Vec<(&Expr, &Expr)>)>,
        condition: Option<&Expr>,
        slots: &HashMap<u16, String>,
    ) {
        shown.facts.push(("Join Type", join_word(kind).to_owned()));
        let (mut columns, of_right) = (self.output(left, slots), self.output(right, slots));
        if let Some((name, keys)) = keys {
            let pair = |(l, r): (&Expr, &Expr)| {
                let l = self.names(&columns, slots).text(l);
                format!("({l} = {})", self.names(&of_right, slots).text(r))
            };
            let text = together(keys.into_iter().map(pair).collect());
            shown.details.push((name, text.into()));
        }
        if let Some(condition) = condition {
            columns.extend(of_right);
            let text = self.names(&columns, slots).text(condition);
            shown.details.push(("Join Filter", text.into()));
            let removed = shown.counted(REMOVED_BY_JOIN).map(Detail::Removed);
            shown.details.extend(removed.map(|n| (REMOVED_BY_JOIN, n)));
        }
    }

    /// Conditions of operators, or distances.
    fn keys(
        &self,
        table: &Table,
        index: &catalog::Index,
        keys: &[ScanKey],
        slots: &HashMap<u16, String>,
    ) -> Vec<String> {
        let names = self.names(&[], slots);
        let key = |key: &ScanKey| {
            let sign = self.operator(key.operator);
            let column = self.key_column(table, index, usize::from(key.column));
            match key.null_test() {
                Some(true) => return format!("({column} IS NULL)"),
                Some(false) => return format!("({column} IS NOT NULL)"),
                None => {}
            }
            format!("({column} {sign} {})", names.text(&key.value))
        };
        keys.iter().map(key).collect()
    }

    /// An operator's name, also of one that users or extensions made.
    fn operator(&self, operator: base::Oid) -> String {
        if let Some(row) = types::func::operator(operator) {
            return row.name.to_owned();
        }
        let mut name = Vec::new();
        let own = types::Datum::Oid(operator.0);
        match types::io::output(types::oids::REGOPERATOR, &own, self.format, &mut name) {
            // With the types of its sides behind it.
            Ok(()) => {
                let whole = String::from_utf8_lossy(&name);
                whole.split('(').next().unwrap_or_default().to_owned()
            }
            Err(_) => "?".to_owned(),
        }
    }

    /// `((a = 1) AND (b > 2))`.
    fn bounds(
        &self,
        table: &Table,
        index: &catalog::Index,
        bounds: &IndexBounds,
        slots: &HashMap<u16, String>,
    ) -> String {
        if !bounds.either.is_empty() {
            let arm = |arm: &IndexBounds| self.bounds(table, index, arm, slots);
            let arms: Vec<String> = bounds.either.iter().map(arm).collect();
            return format!("({})", arms.join(" OR "));
        }
        let column = |n: usize| self.key_column(table, index, n);
        let names = self.names(&[], slots);
        if !bounds.keys.is_empty() {
            return together(self.keys(table, index, &bounds.keys, slots));
        }
        let mut parts: Vec<String> = bounds
            .equal
            .iter()
            .enumerate()
            .map(|(n, e)| format!("({} = {})", column(n), names.text(e)))
            .collect();
        for (n, step) in bounds.steps.iter().enumerate() {
            let column = column(bounds.equal.len() + n);
            parts.push(match step {
                KeyStep::Equal(e) => format!("({column} = {})", names.text(e)),
                KeyStep::Any(e) => format!("({column} = ANY ({}))", names.text(e)),
                KeyStep::Null => format!("({column} IS NULL)"),
                KeyStep::Each(_) => continue,
            });
        }
        let place = bounds.fixed();
        for (bound, op) in [(&bounds.lower, '>'), (&bounds.upper, '<')] {
            let Some((row, included)) = bound else { continue };
            let values: Vec<String> = row.iter().map(|e| names.text(e)).collect();
            let columns: Vec<String> = (place..place + row.len()).map(column).collect();
            let equals = if *included { "=" } else { "" };
            parts.push(match row.len() {
                1 => format!("({} {op}{equals} {})", columns[0], values[0]),
                _ => {
                    format!("(ROW({}) {op}{equals} ROW({}))", columns.join(", "), values.join(", "))
                }
            });
        }
        if let Some((text, is_pattern)) = &bounds.begins {
            let op = if *is_pattern { "~~" } else { "^@" };
            parts.push(format!("({} {op} {})", column(place), names.text(text)));
        }
        if bounds.not_null {
            parts.push(format!("({} IS NOT NULL)", column(place)));
        }
        together(parts)
    }
}

/// An aggregate that helpers make partial groups for is shown as two, as PostgreSQL does.
fn show_partial(shown: &mut Shown) {
    let Some(mut gather) = shown.children.pop() else { return };
    let mode = |shown: &mut Shown, mode: &str| {
        shown.kind = format!("{mode} {}", shown.kind);
        let facts = shown.strategy.iter_mut().filter(|(name, _)| *name == "Partial Mode");
        facts.for_each(|(_, value)| *value = mode.to_owned());
    };
    let details = shown.details.iter().filter(|(name, _)| *name == "Group Key");
    let details: Vec<_> = details.cloned().collect();
    // The threads share one table of groups, so what each has made is not counted: all of them, as far as it had rows.
    let removed = shown.counted(REMOVED_BY_FILTER).unwrap_or(0);
    let groups = shown.measure.as_ref().map_or(0, |m| (m.rows + removed) / m.loops.max(1));
    let least = u64::from(details.is_empty());
    let measure = of_threads(&gather, |rows| groups.min(rows).max(least));
    if let (Some(gather), Some(partial)) = (&mut gather.measure, &measure) {
        gather.rows = partial.rows;
    }
    let mut partial = Shown {
        kind: shown.kind.clone(),
        on: String::new(),
        facts: vec![],
        node_type: shown.node_type,
        strategy: shown.strategy.clone(),
        details,
        estimate: gather.estimate,
        measure,
        title: None,
        children: std::mem::take(&mut gather.children),
    };
    mode(&mut partial, "Partial");
    mode(shown, "Finalize");
    gather.children.push(partial);
    shown.children.push(gather);
}

/// The measure of a step that each thread of a Gather runs on its own share of the input: one loop for each thread, with
/// `rows` of the rows that the thread has had.
fn of_threads(gather: &Shown, rows: impl Fn(u64) -> u64) -> Option<Measure> {
    let (all, input) = (gather.measure.as_ref()?, gather.children.first()?.measure.as_ref()?);
    let each = |of: u64, loops: u64| match loops {
        0 => 0,
        loops => rows(of.div_ceil(loops)) * loops,
    };
    let worker = |w: &OfWorker| OfWorker { rows: each(w.rows, w.loops), startup: w.total, ..*w };
    Some(Measure {
        loops: input.loops,
        rows: each(input.rows, input.loops),
        startup: input.total,
        total: input.total,
        workers: input.workers.iter().map(worker).collect(),
        counts: vec![],
        ..all.clone()
    })
}

/// A sort by several threads is shown as PostgreSQL does: sorts whose rows a Gather Merge brings together.
fn show_merge(mut sort: Shown) -> Shown {
    let Some(mut gather) = sort.children.pop() else { return sort };
    gather.kind = "Gather Merge".to_owned();
    // As many as were asked for, which are all but below a LIMIT.
    let asked = sort.measure.as_ref().map_or(0, |m| m.rows / m.loops.max(1));
    let had = gather.children.first().and_then(|c| c.measure.as_ref()).map_or(0, |m| m.rows);
    let each = of_threads(&gather, |rows| rows.min(asked));
    let each = each.map(|m| Measure { rows: m.rows.min(had), ..m });
    gather.title = sort.title.take();
    sort.children.splice(0..0, std::mem::take(&mut gather.children));
    std::mem::swap(&mut sort.estimate, &mut gather.estimate);
    gather.measure = std::mem::replace(&mut sort.measure, each);
    gather.children.push(sort);
    gather
}

/// A hash join's table that all threads make.
const PARALLEL_HASH: &str = "Parallel Hash";

/// Names the scans whose pieces several threads take: that of the outer inputs, and those of tables that all make.
fn name_parallel(shown: &mut Shown) {
    let all = shown.kind == "Append";
    const KINDS: [&str; 5] =
        ["Seq Scan", "Bitmap Heap Scan", "Append", "Index Scan", "Index Only Scan"];
    if let Some(kind) = KINDS.iter().find(|k| shown.kind == **k) {
        shown.kind = format!("Parallel {kind}");
        shown.node_type = Some(kind);
    }
    let bitmap = shown.kind == "Parallel Bitmap Heap Scan";
    let inputs = shown.children.iter_mut().enumerate();
    for (n, input) in inputs {
        if all || (n == 0 && !bitmap) || input.kind == PARALLEL_HASH {
            name_parallel(input);
        }
    }
}

/// A key that is no column stands in parentheses.
fn in_parentheses(text: String) -> String {
    let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"' || c == '(');
    if is_name { text } else { format!("({text})") }
}

/// Whether an expression's text is one call, which stands without parentheses.
fn is_call(sql: &str) -> bool {
    let name = sql.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let mut depth = 0;
    let closes = |b: u8| {
        depth += i32::from(b == b'(') - i32::from(b == b')');
        depth == 0
    };
    name > 0 && sql.bytes().skip(name).position(closes) == Some(sql.len() - name - 1)
}

/// Conditions as one.
fn together(parts: Vec<String>) -> String {
    let text = parts.join(" AND ");
    if parts.len() > 1 { format!("({text})") } else { text }
}

fn aggregate(call: &AggCall, names: &Names<'_>) -> String {
    let args: Vec<String> = call.args.iter().map(|a| names.text(a)).collect();
    let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    format!("{}({distinct}{args})", call.name())
}

/// `sum(x) OVER (?)`, as PostgreSQL shows a call whose window has a node of its own.
fn window_call(call: &sql::window::WindowCall, names: &Names<'_>) -> String {
    let text = match &call.function {
        sql::window::WindowFunction::Aggregate(agg) => aggregate(agg, names),
        sql::window::WindowFunction::Own(row) => {
            let args: Vec<String> = call.args.iter().map(|a| names.text(a)).collect();
            format!("{}({})", row.name, args.join(", "))
        }
    };
    format!("{text} OVER (?)")
}

/// The node's type in JSON, where the text says more.
fn node_type(plan: &Plan) -> Option<&'static str> {
    match &plan.node {
        Node::IndexScan { .. } => Some("Index Scan"),
        Node::IndexOnlyScan { .. } => Some("Index Only Scan"),
        Node::NestedLoop { .. } => Some("Nested Loop"),
        Node::HashJoin { .. } => Some("Hash Join"),
        Node::MergeJoin { .. } => Some("Merge Join"),
        Node::Aggregate { .. } | Node::Distinct { sorted: false, .. } => Some("Aggregate"),
        Node::SetOp { .. } => Some("SetOp"),
        Node::Modify(_) => Some("ModifyTable"),
        _ => None,
    }
}

/// What JSON says of it right behind.
fn strategy(plan: &Plan) -> Vec<(&'static str, String)> {
    let aggregate =
        |name: &str| vec![("Strategy", name.to_owned()), ("Partial Mode", "Simple".to_owned())];
    match &plan.node {
        Node::Aggregate { plain: true, .. } => aggregate("Plain"),
        Node::Aggregate { sets: Some(_), .. } => aggregate("Mixed"),
        Node::Aggregate { sorted: true, .. } => aggregate("Sorted"),
        Node::Aggregate { .. } | Node::Distinct { sorted: false, .. } => aggregate("Hashed"),
        Node::Modify(_) => vec![("Operation", plan.node.label().to_owned())],
        Node::SetOp { except, all, .. } => vec![
            ("Strategy", "Hashed".to_owned()),
            (
                "Command",
                format!(
                    "{}{}",
                    if *except { "Except" } else { "Intersect" },
                    if *all { " All" } else { "" }
                ),
            ),
        ],
        _ => vec![],
    }
}

fn join_word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Right => "Right",
        JoinKind::Full => "Full",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
        JoinKind::RightSemi => "Right Semi",
        JoinKind::RightAnti => "Right Anti",
    }
}

fn join_label(method: &str, kind: JoinKind, always: bool) -> String {
    match kind {
        JoinKind::Inner if always => format!("{method} Join"),
        JoinKind::Inner => method.to_owned(),
        kind => format!("{method} {} Join", join_word(kind)),
    }
}
