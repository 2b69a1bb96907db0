//! Rules: the statements that stand in place of one (manual, chapter 41). A change of a relation with rules becomes
//! its rules' actions, which may have rules themselves, and the statement itself, unless an INSTEAD rule without a
//! condition takes its place.
//!
//! ```text
//!   UPDATE t …        ALSO a; INSTEAD b WHERE c          a, with the rows of the statement
//!                                                        b, with those of them for which c holds
//!                                                        UPDATE t … AND (c) IS NOT TRUE
//! ```
//! Of an INSERT the statement itself comes first, else last. Each is bound and planned by itself, so that it sees
//! what those before it have done; they run as one [`Node::Rewritten`].

use std::rc::Rc;
use std::sync::Arc;

use base::settings::setting;
use base::{Error, Oid, Result, err};
use catalog::{Rule, Table, TableKind, rule_event};
use pg_query::NodeEnum;
use txn::LockMode;
use types::oids::UNKNOWN;

use crate::bind::Binder;
use crate::bind::rule::{Applied, Excepted, changed, trigger_event};
use crate::logical::{Change, Query};
use crate::parse::{Tree, parse};
use crate::plan::{Node, OutputColumn, Plan, Prepared, Rewritten, RewrittenStep, Statement};
use crate::prepare::PrepareContext;
use crate::statement::{plan_change, plan_query};

/// A statement that a rule applies to.
struct Layer {
    /// The statement.
    stmt: Rc<Tree>,
    /// The relation whose rule it is.
    table: Arc<Table>,
    /// The rule.
    rule: Rule,
    /// In whose name the statement runs.
    acting: u32,
    /// Whether the rule's action uses the statement's rows.
    uses_rows: bool,
}

/// Why there is a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It was given.
    Original,
    /// An INSTEAD rule has it.
    Instead,
    /// An ALSO rule has it.
    Also,
}

/// A statement on its way.
#[derive(Clone)]
struct Pending {
    /// It.
    stmt: Rc<Tree>,
    /// The statements that it stands for, the given one first.
    layers: Vec<Rc<Layer>>,
    /// In whose name it runs.
    acting: u32,
    /// Relations whose rules have been applied to it.
    done: Vec<u32>,
    /// What its rows must not be.
    excepted: Vec<Excepted>,
    reason: Reason,
}

/// A statement that is bound.
enum Bound {
    Change(Box<Change>, Vec<OutputColumn>, &'static str),
    Query(Query),
    Utility(Rc<Tree>),
}

fn replica(cx: &PrepareContext<'_>) -> bool {
    let id = setting::SESSION_REPLICATION_ROLE;
    base::settings::show(id, cx.settings.get(id)) == "replica"
}

/// A relation's rules for an event that count.
fn rules_for(table: &Table, event: char, cx: &PrepareContext<'_>) -> Vec<Rule> {
    let replica = replica(cx);
    table.rules.iter().filter(|r| r.event == event && r.is_on(replica)).cloned().collect()
}

/// Whether rules say anything about a statement.
///
/// # Errors
/// `0A000` for ON CONFLICT beside rules.
pub(crate) fn concerns(binder: &Binder<'_>, node: &NodeEnum) -> Result<bool> {
    let Some((range, event)) = changed(node) else { return Ok(false) };
    if range.relname.is_empty() {
        return Ok(false);
    }
    let mut any = false;
    for table in binder.changed_relations(range, event)? {
        if table.rules.is_empty() {
            continue;
        }
        any |= !rules_for(&table, event, binder.cx).is_empty();
        if let NodeEnum::InsertStmt(stmt) = node
            && stmt.on_conflict_clause.is_some()
        {
            let updates = table.kind == TableKind::Table
                && !rules_for(&table, rule_event::UPDATE, binder.cx).is_empty();
            let acts = |r: &Rule| !r.actions.is_empty();
            if rules_for(&table, event, binder.cx).iter().any(acts) || updates {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "INSERT with ON CONFLICT clause cannot be used with table that has INSERT or UPDATE rules"
                ));
            }
        }
    }
    Ok(any)
}

/// COPY takes the rows of one statement that changes data, which rules may not make several of.
///
/// # Errors
/// `0A000` for one that rules say something about.
pub(crate) fn refuse_in_copy(binder: &Binder<'_>, node: &NodeEnum) -> Result<()> {
    let Some((range, event)) = changed(node) else { return Ok(()) };
    let mut rules = Vec::new();
    for table in binder.changed_relations(range, event)? {
        rules.extend(rules_for(&table, event, binder.cx));
    }
    let what = match &rules[..] {
        [] => return Ok(()),
        all if all.iter().any(|r| r.instead && r.condition.is_some()) => {
            "conditional DO INSTEAD rules are not supported for COPY"
        }
        all if all.iter().any(|r| !r.instead && !r.actions.is_empty()) => {
            "DO ALSO rules are not supported for COPY"
        }
        all => {
            let actions: Vec<&String> = all.iter().flat_map(|r| &r.actions).collect();
            match actions[..] {
                [] if !all.iter().any(|r| r.instead) => return Ok(()),
                [] => "DO INSTEAD NOTHING rules are not supported for COPY",
                [one] if one.trim_start().to_ascii_uppercase().starts_with("NOTIFY") => {
                    "COPY query must not be a utility command"
                }
                [one] if !one.to_ascii_uppercase().contains("RETURNING") => {
                    "COPY query must have a RETURNING clause"
                }
                [_] => {
                    return Err(base::Error::unsupported(
                        "COPY of a statement that a rule replaces",
                    ));
                }
                _ => "multi-statement DO INSTEAD rules are not supported for COPY",
            }
        }
    };
    Err(base::Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, what))
}

/// A data-changing WITH query stays one statement.
///
/// # Errors
/// `0A000` for one that rules say something about.
pub(crate) fn refuse_in_with(binder: &Binder<'_>, node: &NodeEnum) -> Result<()> {
    if !concerns(binder, node)? {
        return Ok(());
    }
    let Some((range, event)) = changed(node) else { return Ok(()) };
    let tables = binder.changed_relations(range, event)?;
    let rules: Vec<Rule> =
        tables.iter().flat_map(|table| rules_for(table, event, binder.cx)).collect();
    let actions = || rules.iter().map(|r| r.actions.len()).sum::<usize>();
    let what = if rules.iter().any(|r| r.instead && r.condition.is_some()) {
        "conditional DO INSTEAD rules are"
    } else if rules.iter().any(|r| !r.instead) {
        "DO ALSO rules are"
    } else if actions() == 0 {
        "DO INSTEAD NOTHING rules are"
    } else if actions() == 1 {
        return Err(Error::unsupported("a rule of a data-modifying statement in WITH"));
    } else {
        "multi-statement DO INSTEAD rules are"
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "{what} not supported for data-modifying statements in WITH"))
}

/// Rewrites, binds and plans a statement that rules say something about.
///
/// # Errors
/// Everything that binding can find; `42P17` for rules that lead to themselves.
pub(crate) fn prepare(
    node: &NodeEnum,
    text: &str,
    declared: &[Oid],
    cx: &PrepareContext<'_>,
) -> Result<Prepared> {
    let lookup = Binder::new(cx, text, declared);
    let stmt = Rc::new(Tree::copy(node)?);
    let original = Pending {
        stmt,
        layers: Vec::new(),
        acting: cx.role,
        done: Vec::new(),
        excepted: Vec::new(),
        reason: Reason::Original,
    };
    let mut locks: Vec<u32> = Vec::new();
    let all =
        Rewriter { binder: &lookup, events: Vec::new(), locks: &mut locks }.rewrite(original)?;
    let event = changed(node).map_or(rule_event::INSERT, |(_, event)| event);
    if with_of(node).is_some() && all.len() > 1 {
        return Err(Error::new(
            base::sqlstate::FEATURE_NOT_SUPPORTED,
            "WITH cannot be used in a query that is rewritten by rules into multiple queries",
        ));
    }
    let mut bound = Vec::with_capacity(all.len());
    for one in &all {
        bound.push(bind(one, text, declared, cx)?);
    }
    let width = bound.iter().map(|(b, _)| b.params.len()).max().unwrap_or(0);
    let mut params = vec![UNKNOWN; width];
    for (binder, _) in &bound {
        for (known, own) in params.iter_mut().zip(&binder.params) {
            if *known == UNKNOWN {
                *known = *own;
            }
        }
    }
    let original = all.iter().position(|p| p.reason == Reason::Original);
    let alike = |p: &Pending| {
        p.reason == Reason::Instead && changed(&p.stmt).is_some_and(|(_, e)| e == event)
    };
    let counts = original.or_else(|| all.iter().rposition(alike));
    let mut prepared = Vec::with_capacity(bound.len());
    for (mut binder, what) in bound {
        binder.params.resize(params.len(), UNKNOWN);
        for (own, known) in binder.params.iter_mut().zip(&params) {
            if *own == UNKNOWN {
                *own = *known;
            }
        }
        binder.variables = cx.variables;
        prepared.push(match what {
            Bound::Change(change, output, tag) => plan_change(binder, *change, output, tag)?.0,
            Bound::Query(query) => plan_query(binder, query)?.0,
            Bound::Utility(tree) => crate::statement::prepare(&tree, "", &[], cx, None)?.0,
        });
    }
    Ok(whole(prepared, counts, event, params, &locks, cx))
}

/// One plan of several.
fn whole(
    mut steps: Vec<Prepared>,
    counts: Option<usize>,
    event: char,
    params: Vec<Oid>,
    locks: &[u32],
    cx: &PrepareContext<'_>,
) -> Prepared {
    let mut all: Vec<(Oid, LockMode)> =
        locks.iter().map(|t| (Oid(*t), LockMode::RowExclusive)).collect();
    for (table, mode) in steps.iter().flat_map(|p| &p.locks) {
        match all.iter_mut().find(|(t, _)| t == table) {
            Some((_, held)) => *held = (*held).max(*mode),
            None => all.push((*table, *mode)),
        }
    }
    let tag = match event {
        rule_event::INSERT => "INSERT",
        rule_event::UPDATE => "UPDATE",
        _ => "DELETE",
    };
    if let (1, Some(0)) = (steps.len(), counts)
        && let Some(mut one) = steps.pop()
    {
        one.locks = all;
        return one;
    }
    let gives = |p: &Prepared| matches!(&p.statement, Statement::Query(Plan { node: Node::Modify(m), .. }) if m.returning.is_some());
    let returns = steps.iter().position(gives);
    // A client that sends text sees the rows of a rule's SELECT, too.
    let returns = returns.or_else(|| {
        let last = steps.iter().rposition(|p| p.tag == "SELECT");
        last.filter(|_| cx.variables.is_none() && cx.arguments.is_none() && params.is_empty())
    });
    let columns = returns.map_or_else(Vec::new, |at| steps[at].columns.clone());
    let types = columns.iter().map(|c| c.ty).collect();
    let step = |(n, prepared): (usize, Prepared)| RewrittenStep {
        counts: counts == Some(n),
        returns: returns == Some(n),
        prepared: Arc::new(prepared),
    };
    let steps: Vec<RewrittenStep> = steps.into_iter().enumerate().map(step).collect();
    let node = Node::Rewritten(Box::new(Rewritten { steps, returns: returns.is_some(), types }));
    let mut prepared = Prepared::empty(cx.catalog.version);
    prepared.statement = Statement::Query(Plan { node, estimate: Default::default() });
    (prepared.params, prepared.columns, prepared.locks) = (params, columns, all);
    (prepared.tag, prepared.writes, prepared.stack) = (tag, true, sched::stack_bytes());
    prepared
}

fn with_of(node: &NodeEnum) -> Option<&pg_query::protobuf::WithClause> {
    match node {
        NodeEnum::InsertStmt(s) => s.with_clause.as_ref(),
        NodeEnum::UpdateStmt(s) => s.with_clause.as_ref(),
        NodeEnum::DeleteStmt(s) => s.with_clause.as_ref(),
        _ => None,
    }
}

fn returns(node: &NodeEnum) -> bool {
    match node {
        NodeEnum::InsertStmt(s) => s.returning_clause.is_some(),
        NodeEnum::UpdateStmt(s) => s.returning_clause.is_some(),
        NodeEnum::DeleteStmt(s) => s.returning_clause.is_some(),
        _ => false,
    }
}

/// Whether a statement has rows that come from its WHERE or FROM, whatever its rules' actions use.
fn has_rows(node: &NodeEnum) -> bool {
    match node {
        NodeEnum::UpdateStmt(s) => s.where_clause.is_some() || !s.from_clause.is_empty(),
        NodeEnum::DeleteStmt(s) => s.where_clause.is_some() || !s.using_clause.is_empty(),
        _ => true,
    }
}

struct Rewriter<'r, 'b> {
    binder: &'r Binder<'b>,
    /// Relations whose rules are being applied, one inside the other.
    events: Vec<(u32, char)>,
    /// Relations whose rules have a say.
    locks: &'r mut Vec<u32>,
}

impl Rewriter<'_, '_> {
    fn rewrite(&mut self, one: Pending) -> Result<Vec<Pending>> {
        sched::check_stack()?;
        sched::check_interrupts()?;
        let cx = self.binder.cx;
        let Some((range, event)) = changed(&one.stmt) else { return Ok(vec![one]) };
        for table in self.binder.changed_relations(range, event)? {
            let rules = rules_for(&table, event, cx);
            if one.done.contains(&table.oid) || rules.is_empty() {
                continue;
            }
            if self.events.contains(&(table.oid, event)) {
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "infinite recursion detected in rules for relation \"{}\"",
                    table.name
                ));
            }
            if !self.locks.contains(&table.oid) {
                self.locks.push(table.oid);
            }
            return self.apply(one.clone(), &table, &rules, event);
        }
        Ok(vec![one])
    }

    fn apply(
        &mut self,
        one: Pending,
        table: &Arc<Table>,
        rules: &[Rule],
        event: char,
    ) -> Result<Vec<Pending>> {
        let (mut instead, mut returning) = (false, false);
        let mut excepted = Vec::new();
        let mut actions = Vec::new();
        for rule in rules {
            match (rule.instead, &rule.condition) {
                (true, None) => instead = true,
                (true, Some(condition)) => {
                    let (table, condition) = (table.clone(), condition.clone());
                    excepted.push(Excepted { table, condition });
                }
                (false, _) => {}
            }
            for sql in &rule.actions {
                let Some(parsed) = parse(sql)?.pop() else { continue };
                let stmt = Rc::new(parsed.node);
                if rule.instead && rule.condition.is_none() && returns(&stmt) && returns(&one.stmt)
                {
                    if returning {
                        return Err(Error::new(
                            base::sqlstate::FEATURE_NOT_SUPPORTED,
                            "cannot have RETURNING lists in multiple rules",
                        ));
                    }
                    returning = true;
                }
                let names_rows = |text: &str| text.contains("old.") || text.contains("new.");
                let layer = Layer {
                    stmt: one.stmt.clone(),
                    table: table.clone(),
                    rule: rule.clone(),
                    acting: one.acting,
                    uses_rows: names_rows(sql) || sql.contains("old") || rule.condition.is_some(),
                };
                let mut layers = one.layers.clone();
                layers.push(Rc::new(layer));
                let reason = if rule.instead { Reason::Instead } else { Reason::Also };
                actions.push(Pending {
                    stmt,
                    layers,
                    acting: table.owner,
                    done: Vec::new(),
                    excepted: Vec::new(),
                    reason,
                });
            }
        }
        let trigger = table.has_instead(trigger_event(event));
        if table.kind == TableKind::View && !instead && !trigger && !excepted.is_empty() {
            return Err(conditional(table, event));
        }
        self.events.push((table.oid, event));
        let mut out = Vec::new();
        for action in actions {
            out.extend(self.rewrite(action)?);
        }
        self.events.pop();
        if returns(&one.stmt) && (instead || !excepted.is_empty()) && !returning {
            return Err(no_returning(table, event));
        }
        if instead {
            return Ok(out);
        }
        let mut original = one;
        original.done.push(table.oid);
        original.excepted.extend(excepted);
        let own = self.rewrite(original)?;
        if event == rule_event::INSERT {
            out.splice(0..0, own);
        } else {
            out.extend(own);
        }
        Ok(out)
    }
}

/// Binds a statement with what its rules let it see.
fn bind<'a>(
    one: &Pending,
    text: &'a str,
    declared: &[Oid],
    cx: &'a PrepareContext<'a>,
) -> Result<(Binder<'a>, Bound)> {
    let mut binder = Binder::new(cx, text, declared);
    binder.variables = cx.variables;
    let applied = apply(&mut binder, &one.layers)?;
    binder.applied = applied;
    binder.excepted.clone_from(&one.excepted);
    binder.acting = one.acting;
    let own = one.layers.is_empty();
    if !own {
        binder.variables = None;
    }
    let done = match &**one.stmt {
        NodeEnum::InsertStmt(stmt) => {
            binder.insert(stmt).map(|(c, o)| Bound::Change(Box::new(c), o, "INSERT"))
        }
        NodeEnum::UpdateStmt(stmt) => {
            binder.update(stmt).map(|(c, o)| Bound::Change(Box::new(c), o, "UPDATE"))
        }
        NodeEnum::DeleteStmt(stmt) => {
            binder.delete(stmt).map(|(c, o)| Bound::Change(Box::new(c), o, "DELETE"))
        }
        NodeEnum::SelectStmt(stmt) => binder.select(stmt, None, true).map(Bound::Query),
        _ => Ok(Bound::Utility(one.stmt.clone())),
    };
    let done = done.map_err(|e| if own { e } else { binder.near(e) })?;
    Ok((binder, done))
}

/// The rows that the innermost of these statements lets its rule's action see.
fn apply(binder: &mut Binder<'_>, layers: &[Rc<Layer>]) -> Result<Option<Applied>> {
    let Some((last, before)) = layers.split_last() else { return Ok(None) };
    sched::check_stack()?;
    let outer = apply(binder, before)?;
    let variables = binder.variables;
    if !before.is_empty() {
        binder.variables = None;
    }
    binder.applied = outer;
    binder.acting = last.acting;
    let source = binder.rule_source(&last.stmt, &last.table);
    binder.applied = None;
    binder.variables = variables;
    let source = source.map_err(|e| if before.is_empty() { e } else { binder.near(e) })?;
    let mut rel = source.rel;
    if let Some(sql) = &last.rule.condition {
        let conditions = binder.rule_condition(&last.table, &source.items, sql)?;
        rel = crate::bind::select::filter(rel, conditions);
    }
    let own = if before.is_empty() { binder.cx.variables } else { None };
    let returned = binder.returned_by(&last.stmt, &last.table, source.from, last.acting, own);
    binder.returned.insert(0, returned);
    let needed = last.uses_rows || has_rows(&last.stmt);
    Ok(Some(Applied { rel: needed.then_some(rel), items: source.items }))
}

fn conditional(table: &Table, event: char) -> Error {
    let name = &table.name;
    let (what, doing, verb) = match event {
        rule_event::INSERT => ("insert into", "inserting into", "INSERT"),
        rule_event::UPDATE => ("update", "updating", "UPDATE"),
        _ => ("delete from", "deleting from", "DELETE"),
    };
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot {what} view \"{name}\"")
        .detail("Views with conditional DO INSTEAD rules are not automatically updatable.")
        .hint(format!(
            "To enable {doing} the view, provide an INSTEAD OF {verb} trigger or an unconditional ON {verb} DO INSTEAD rule."
        ))
}

fn no_returning(table: &Table, event: char) -> Error {
    let verb = match event {
        rule_event::INSERT => "INSERT",
        rule_event::UPDATE => "UPDATE",
        _ => "DELETE",
    };
    err!(FEATURE_NOT_SUPPORTED, "cannot perform {verb} RETURNING on relation \"{}\"", table.name)
        .hint(format!(
            "You need an unconditional ON {verb} DO INSTEAD rule with a RETURNING clause."
        ))
}
