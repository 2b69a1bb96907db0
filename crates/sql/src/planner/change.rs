//! INSERT, UPDATE, DELETE and row locks.

use std::sync::Arc;

use base::Result;
use catalog::Index;

use super::cols::Cols;
use super::{PhysicalPlan, Planner, RequiredProperties};
use crate::expr::Expr;
use crate::logical::{self, Change, ChangeAction, ChildTarget, Col, Rel, RelLock, TableRel};
use crate::plan::{
    Conflict, ConflictUpdate, LockTarget, MergeAction, MergeClause, Modify, ModifyAction,
    ModifyChild, Node, PLACED, Plan, ScanColumn,
};

impl Planner<'_> {
    /// Plans a change of rows.
    pub fn change(&mut self, change: Change) -> Result<Plan> {
        let Change { table, action, returning, checks, children } = change;
        let indexes = self.cx.catalog.indexes_of(&table.table);
        let own = all_columns(&table);
        let checks = checks.map(&mut |e| self.resolve(e, &own))?;
        let mut layout = own.clone();
        let mut places = Vec::new();
        let (action, estimate) = match action {
            ChangeAction::Insert { mut input, conflict } => {
                self.prepare_rows(&mut input.rel)?;
                let need: Cols = input.cols.iter().copied().collect();
                let phys = self.rel(input.rel, &need, &RequiredProperties::default())?;
                let input = self.arrange(phys, &input.cols)?;
                let estimate = input.estimate;
                let conflict = match conflict {
                    Some(conflict) => Some(Box::new(self.conflict(conflict, &own, &indexes)?)),
                    None => None,
                };
                layout.extend([ScanColumn::Xmax, ScanColumn::TableOid].map(|c| table.col(c)));
                (ModifyAction::Insert { input, conflict }, estimate)
            }
            ChangeAction::Update { mut rel, set, recheck } => {
                self.prepare_rows(&mut rel)?;
                let mut used: Vec<&Expr> = set.iter().map(|(_, e)| e).collect();
                used.extend(&recheck);
                used.extend(returning.iter().flatten());
                let (input, cols, columns) = self.change_input(rel, &table, true, &used)?;
                let mut values = Vec::with_capacity(set.len());
                for (number, e) in set {
                    values.push((number, self.resolve(e, &cols)?));
                }
                let recheck = self.condition(recheck, &cols)?;
                layout.extend(&cols);
                places = cols;
                let estimate = input.estimate;
                (ModifyAction::Update { input, columns, set: values, recheck }, estimate)
            }
            ChangeAction::Merge { mut rel, recheck, clauses } => {
                self.prepare_rows(&mut rel)?;
                let mut used: Vec<&Expr> = recheck.iter().collect();
                clauses.iter().for_each(|c| merge_exprs(c, &mut used));
                let (input, cols, columns) = self.change_input(rel, &table, true, &used)?;
                let recheck = self.condition(recheck, &cols)?;
                let clauses = self.merge_clauses(clauses, &cols)?;
                places.clone_from(&cols);
                let estimate = input.estimate;
                (ModifyAction::Merge { input, columns, recheck, clauses }, estimate)
            }
            ChangeAction::Delete { mut rel, recheck } => {
                self.prepare_rows(&mut rel)?;
                let mut used: Vec<&Expr> = recheck.iter().collect();
                used.extend(returning.iter().flatten());
                let whole = returning.is_some() || !is_forgotten(&table);
                let (input, cols, columns) = self.change_input(rel, &table, whole, &used)?;
                let recheck = self.condition(recheck, &cols)?;
                layout.extend(&cols);
                places = cols;
                let estimate = input.estimate;
                (ModifyAction::Delete { input, columns, recheck }, estimate)
            }
        };
        let placed = self.placed(&table, &action, returning.as_deref(), &mut layout);
        let returning = match returning {
            Some(list) => {
                let mut out = Vec::with_capacity(list.len());
                for e in list {
                    out.push(self.resolve(e, &layout)?);
                }
                Some(out)
            }
            None => None,
        };
        let children = self.modify_children(&table, children, &action)?;
        let tableoid = table.col(ScanColumn::TableOid);
        let tableoid = places.iter().position(|c| *c == tableoid).unwrap_or(0) as u16;
        let (role, table) = (table.role, table.table);
        let modify = Modify {
            table,
            indexes,
            action,
            returning,
            checks,
            children,
            tableoid,
            places: placed,
            role,
        };
        Ok(Plan { node: Node::Modify(Box::new(modify)), estimate })
    }

    /// Makes room behind a change's input for what is known of a row when it is written, if RETURNING asks for
    /// that; whether it does.
    fn placed(
        &self,
        table: &TableRel,
        action: &ModifyAction,
        returning: Option<&[Expr]>,
        layout: &mut Vec<Col>,
    ) -> bool {
        let inserts = matches!(action, ModifyAction::Insert { .. });
        let known = if inserts { &PLACED[..4] } else { &PLACED[..] };
        let known: Vec<Col> = known.iter().map(|c| table.col(*c)).collect();
        let asks = |e: &Expr| {
            let used = Cols::of(e);
            known.iter().any(|col| used.contains(*col))
        };
        if !returning.is_some_and(|list| list.iter().any(asks)) {
            return false;
        }
        // The input has the columns of the row as it was.
        layout.iter_mut().filter(|col| known.contains(col)).for_each(|col| *col = Col::MAX);
        layout.extend(known);
        true
    }

    /// The children of a change's table, for rows that are in them.
    fn modify_children(
        &mut self,
        table: &TableRel,
        targets: Vec<ChildTarget>,
        action: &ModifyAction,
    ) -> Result<Vec<ModifyChild>> {
        let (columns, set): (&[(u16, ScanColumn)], &[(u16, Expr)]) = match action {
            ModifyAction::Update { columns, set, .. } => (columns, set),
            ModifyAction::Delete { columns, .. } | ModifyAction::Merge { columns, .. } => {
                (columns, &[])
            }
            ModifyAction::Insert { .. } => return Ok(Vec::new()),
        };
        let written: Vec<u16> = match action {
            ModifyAction::Merge { clauses, .. } => clauses.iter().flat_map(merge_written).collect(),
            _ => set.iter().map(|(n, _)| *n).collect(),
        };
        let Some(children) = &table.children else { return Ok(Vec::new()) };
        let mut out = Vec::with_capacity(targets.len());
        for (child, target) in children.iter().zip(targets) {
            let own = all_columns(&target.rel);
            let number = |n: u16| child.numbers[usize::from(n) - 1];
            let mut checks = target.checks.map(&mut |e| self.resolve(e, &own))?;
            checks.written = written.iter().map(|n| number(*n)).collect();
            out.push(ModifyChild {
                table: child.table.clone(),
                indexes: self.cx.catalog.indexes_of(&child.table),
                checks,
                numbers: child.numbers.clone(),
                columns: columns.iter().map(|(at, c)| (*at, child.column(*c))).collect(),
                set: set.iter().map(|(n, e)| (number(*n), e.clone())).collect(),
            });
        }
        Ok(out)
    }

    /// ON CONFLICT: expressions over the existing row and the one that was to be inserted.
    fn conflict(
        &mut self,
        conflict: logical::Conflict,
        own: &[Col],
        indexes: &[Arc<Index>],
    ) -> Result<Conflict> {
        let named = |index: &Index| conflict.arbiters.iter().find(|(oid, _)| *oid == index.oid);
        let wanted = |index: &Index| {
            (index.unique || !index.exclude.is_empty())
                && (conflict.arbiters.is_empty() || named(index).is_some())
        };
        let places = indexes.iter().enumerate().filter(|(_, i)| wanted(i));
        let arbiters = places.map(|(n, _)| n).collect();
        let assumes = |(n, index): (usize, &Arc<Index>)| {
            let (_, assumed) = named(index).filter(|(_, assumed)| !assumed.is_empty())?;
            Some((n, assumed.clone()))
        };
        let assumed = indexes.iter().enumerate().filter_map(assumes).collect();
        let any = conflict.arbiters.is_empty();
        let Some(update) = conflict.update else {
            return Ok(Conflict { arbiters, assumed, any, update: None });
        };
        let mut layout = own.to_vec();
        layout.extend(all_columns(&update.excluded));
        let set = self.assignments(update.set, &layout)?;
        let condition = self.condition(update.conditions, &layout)?;
        Ok(Conflict { arbiters, assumed, any, update: Some(ConflictUpdate { set, condition }) })
    }

    fn assignments(&mut self, set: Vec<(u16, Expr)>, layout: &[Col]) -> Result<Vec<(u16, Expr)>> {
        set.into_iter().map(|(number, e)| Ok((number, self.resolve(e, layout)?))).collect()
    }

    fn merge_clauses(
        &mut self,
        clauses: Vec<logical::MergeClause>,
        cols: &[Col],
    ) -> Result<Vec<MergeClause>> {
        let mut out = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let condition = self.condition(clause.conditions, cols)?;
            let action = match clause.action {
                MergeAction::Nothing => MergeAction::Nothing,
                MergeAction::Delete => MergeAction::Delete,
                MergeAction::Update(set) => MergeAction::Update(self.assignments(set, cols)?),
                MergeAction::Insert(row) => MergeAction::Insert(self.resolve_all(row, cols)?),
            };
            out.push(MergeClause { matched: clause.matched, condition, action });
        }
        Ok(out)
    }

    /// The rows to change: tid, root, the table's live columns unless only the used ones are wanted, then what
    /// else is used.
    #[allow(clippy::type_complexity)]
    fn change_input(
        &mut self,
        rel: Rel,
        table: &TableRel,
        whole: bool,
        used: &[&Expr],
    ) -> Result<(Plan, Vec<Col>, Vec<(u16, ScanColumn)>)> {
        let mut wanted = vec![table.col(ScanColumn::Tid), table.col(ScanColumn::Root)];
        if whole {
            wanted.extend(table.table.live_columns().map(|(n, _)| table.col(ScanColumn::Attr(n))));
        }
        if table.children.is_some() {
            wanted.push(table.col(ScanColumn::TableOid));
        }
        let mut others = Cols::default();
        used.iter().for_each(|e| others.add(&Cols::of(e)));
        let output = Cols::output(&rel);
        for col in others.iter() {
            if output.contains(col) && !wanted.contains(&col) {
                wanted.push(col);
            }
        }
        let need: Cols = wanted.iter().copied().collect();
        let phys = self.rel(rel, &need, &RequiredProperties::default())?;
        let input = self.arrange(phys, &wanted)?;
        let columns = table_columns(table, &wanted);
        Ok((input, wanted, columns))
    }

    /// FOR UPDATE and kin.
    pub fn lock_rows(
        &mut self,
        input: Rel,
        targets: Vec<RelLock>,
        recheck: Vec<Expr>,
        need: &Cols,
        required: &RequiredProperties,
    ) -> Result<PhysicalPlan> {
        let mut wanted = Vec::new();
        for target in &targets {
            wanted.push(target.table.col(ScanColumn::Tid));
            wanted.push(target.table.col(ScanColumn::Root));
            if target.table.children.is_some() {
                wanted.push(target.table.col(ScanColumn::TableOid));
            }
        }
        let mut others = need.clone();
        recheck.iter().for_each(|e| others.add(&Cols::of(e)));
        let output = computed(&input);
        for col in others.iter() {
            if output.contains(col) && !wanted.contains(&col) {
                wanted.push(col);
            }
        }
        let all: Cols = wanted.iter().copied().collect();
        let phys = self.rel(input, &all, required)?;
        let order = phys.order.clone();
        let plan = self.arrange(phys, &wanted)?;
        let mut out = Vec::with_capacity(targets.len());
        for target in targets {
            let recheck = self.condition(recheck.clone(), &wanted)?;
            let place = |c: ScanColumn| {
                let col = target.table.col(c);
                wanted.iter().position(|w| *w == col).unwrap_or(0) as u16
            };
            let own = LockTarget {
                table: target.table.table.clone(),
                tid: place(ScanColumn::Tid),
                mode: target.mode,
                wait: target.wait,
                columns: table_columns(&target.table, &wanted),
                recheck,
                tableoid: None,
            };
            let Some(children) = &target.table.children else {
                out.push(own);
                continue;
            };
            let own = LockTarget { tableoid: Some(place(ScanColumn::TableOid)), ..own };
            out.extend(children.iter().map(|child| LockTarget {
                table: child.table.clone(),
                columns: own.columns.iter().map(|(at, c)| (*at, child.column(*c))).collect(),
                ..own.clone()
            }));
            out.push(own);
        }
        // Rows of foreign tables have no locks here.
        out.retain(|target| target.table.foreign.is_none());
        let estimate = plan.estimate;
        let node = Node::LockRows { input: Box::new(plan), targets: out };
        Ok(PhysicalPlan { plan: Plan { node, estimate }, cols: wanted, order })
    }
}

/// Everything that an operator can give, computed columns inside of it included.
fn computed(rel: &Rel) -> Cols {
    let mut out = Cols::output(rel);
    rel.for_inputs(&mut |input| out.add(&computed(input)));
    out
}

/// The expressions of a WHEN.
fn merge_exprs<'e>(clause: &'e logical::MergeClause, out: &mut Vec<&'e Expr>) {
    out.extend(&clause.conditions);
    match &clause.action {
        MergeAction::Nothing | MergeAction::Delete => {}
        MergeAction::Update(set) => out.extend(set.iter().map(|(_, e)| e)),
        MergeAction::Insert(row) => out.extend(row),
    }
}

/// The columns that a WHEN's UPDATE sets.
fn merge_written(clause: &MergeClause) -> Vec<u16> {
    match &clause.action {
        MergeAction::Update(set) => set.iter().map(|(n, _)| *n).collect(),
        _ => Vec::new(),
    }
}

/// All columns of a table, dropped ones too.
fn all_columns(table: &TableRel) -> Vec<Col> {
    (1..=table.table.columns.len() as u16).map(|n| table.col(ScanColumn::Attr(n))).collect()
}

/// Whether nobody but a statement itself asks what was in a row that it deletes.
fn is_forgotten(table: &TableRel) -> bool {
    let alone = table.children.is_none() && table.table.bound.is_none();
    alone
        && table.table.kind == catalog::TableKind::Table
        && !table.table.is_partitioned()
        && table.table.triggers.is_empty()
        && table.table.referenced_by.is_empty()
}

/// Which input columns come from the table (other than its place).
fn table_columns(table: &TableRel, cols: &[Col]) -> Vec<(u16, ScanColumn)> {
    cols.iter()
        .enumerate()
        .filter_map(|(at, col)| match table.column(*col)? {
            ScanColumn::Tid | ScanColumn::Root => None,
            column => Some((at as u16, column)),
        })
        .collect()
}
