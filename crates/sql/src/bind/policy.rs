//! Row-level security: which conditions of a table's policies a statement must meet, and CREATE, ALTER and
//! DROP POLICY.
//!
//! ```text
//!   SELECT … FROM t WHERE f(a)          Filter f(a)
//!                                         └ Barrier          only leakproof conditions go below
//!                                             └ Filter       USING of the policies for SELECT
//!                                                 └ t
//! ```
//! * What is read is filtered below a [`Rel::Barrier`]; what is written is checked ([`PolicyRules`]).
//! * Whose policies: those of the role in whose name the table is used, the owner of the view that it stands in
//!   or the session's. That role, and the setting `row_security`, are part of the plan cache's key; policies are
//!   part of the catalog's version.
//! * A policy's own condition may ask other tables. They are used in the same name, under their own policies; a
//!   policy that asks its own table ends in `42P17`.

use std::sync::Arc;

use base::settings::setting;
use base::{Result, err};
use catalog::{Policy, Table, TableKind};
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::oids::BOOL;

use crate::expr::Expr;
use crate::logical::{Col, Rel, TableRel};
use crate::parse::deparse_expr;
use crate::plan::{PolicyCheck, PolicyRules};
use crate::policy::{AlterPolicy, CreatePolicy, DropPolicy};
use crate::utility::Utility;

use super::scope::Place;
use super::{Binder, Scope, ast, inner};

/// SELECT, INSERT, UPDATE and DELETE in [`Policy::command`].
pub(crate) mod command {
    pub const SELECT: char = 'r';
    pub const INSERT: char = 'a';
    pub const UPDATE: char = 'w';
    pub const DELETE: char = 'd';
}

/// A use of a table whose policies count.
#[derive(Clone)]
pub(crate) struct Guarded {
    /// The table's use.
    target: TableRel,
    /// In whose name.
    role: u32,
}

impl Binder<'_> {
    /// The use of a table, noted under its first column, if the policies of the table count for it.
    ///
    /// # Errors
    /// `42501` when they would and `row_security` is off; `42P17`.
    pub(crate) fn guarded(&mut self, target: &TableRel) -> Result<Option<Guarded>> {
        let table = &target.table;
        if !table.row_security || table.kind != TableKind::Table || self.bypassing {
            return Ok(None);
        }
        let session = self.cx.role;
        let role = self.need_at(target.base).map_or(session, |need| need.role());
        let rights = self.rights();
        if self.cx.trusted && role == session || !rights.is_guarded(role, table) {
            return Ok(None);
        }
        if !self.cx.settings.bool(setting::ROW_SECURITY) {
            let error = err!(
                INSUFFICIENT_PRIVILEGE,
                "query would be affected by row-level security policy for table \"{}\"",
                table.name
            );
            return Err(match rights.has_rights_of(role, table.owner) {
                true => error.hint(
                    "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY.",
                ),
                false => error,
            });
        }
        if self.guarding.contains(&table.oid) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "infinite recursion detected in policy for relation \"{}\"",
                table.name
            ));
        }
        Ok(Some(Guarded { target: target.clone(), role }))
    }

    /// A table's rows in FROM: those that the policies for SELECT show.
    pub(crate) fn guard_rows(&mut self, target: &TableRel) -> Result<Rel> {
        let rel = Rel::Table(target.clone());
        let Some(guarded) = self.guarded(target)? else { return Ok(rel) };
        let conditions = self.using(&guarded, &[command::SELECT])?;
        self.guards.push((target.base, conditions.clone()));
        Ok(behind(rel, conditions))
    }

    /// The rows of a table in FROM are locked, too: those that the policies for UPDATE show.
    pub(crate) fn guard_locked(&mut self, rel: &mut Rel, target: &TableRel) -> Result<()> {
        if !self.guards.iter().any(|(base, _)| *base == target.base) {
            return Ok(());
        }
        let Some(guarded) = self.guarded(target)? else { return Ok(()) };
        let conditions = self.using(&guarded, &[command::UPDATE])?;
        tighten(rel, target.base, &conditions);
        for (_, known) in self.guards.iter_mut().filter(|(base, _)| *base == target.base) {
            known.splice(0..0, conditions.iter().cloned());
        }
        Ok(())
    }

    /// What the rows of locked tables must still be when they are read again.
    pub(crate) fn guards_of(&self, bases: impl Iterator<Item = Col>) -> Vec<Expr> {
        let mut out = Vec::new();
        for base in bases {
            let of = self.guards.iter().filter(|(b, _)| *b == base);
            out.extend(of.flat_map(|(_, conditions)| conditions.iter().cloned()));
        }
        out
    }

    /// The rows of a table that UPDATE or DELETE (`command`) changes: those that the policies show. Called when
    /// all that the statement reads is noted. The conditions hold on newer versions of a row, too.
    pub(crate) fn guard_changed(
        &mut self,
        rel: &mut Rel,
        recheck: &mut Vec<Expr>,
        target: &TableRel,
        command: char,
    ) -> Result<()> {
        let Some(guarded) = self.guarded(target)? else { return Ok(()) };
        let mut commands = vec![command];
        if self.reads_of(target) {
            commands.push(command::SELECT);
        }
        let conditions = self.using(&guarded, &commands)?;
        tighten(rel, target.base, &conditions);
        recheck.splice(0..0, conditions);
        Ok(())
    }

    /// What INSERT or UPDATE (`command`) must write; `conflict`: ON CONFLICT DO UPDATE.
    pub(crate) fn written_rules(
        &mut self,
        target: &TableRel,
        command: char,
        conflict: bool,
    ) -> Result<Option<Box<PolicyRules>>> {
        let Some(guarded) = self.guarded(target)? else { return Ok(None) };
        let reads = self.reads_of(target);
        let mut rules = PolicyRules { table: target.table.name.clone(), ..PolicyRules::default() };
        let mut written = self.checks_of(&guarded, command, false)?;
        if reads {
            written.extend(self.checks_of(&guarded, command::SELECT, true)?);
        }
        match command {
            command::INSERT => rules.insert = written,
            _ => rules.update = written,
        }
        if conflict {
            rules.conflict = self.checks_of(&guarded, command::UPDATE, true)?;
            rules.update = self.checks_of(&guarded, command::UPDATE, false)?;
            if reads {
                let select = self.checks_of(&guarded, command::SELECT, true)?;
                rules.conflict.extend(select.iter().cloned());
                rules.update.extend(select);
            }
        }
        Ok(Some(Box::new(rules)))
    }

    /// What MERGE must find and write; its rows are those that the policies for SELECT show.
    pub(crate) fn merged_rules(
        &mut self,
        rel: &mut Rel,
        recheck: &mut Vec<Expr>,
        target: &TableRel,
    ) -> Result<Option<Box<PolicyRules>>> {
        let Some(guarded) = self.guarded(target)? else { return Ok(None) };
        let mut rules = PolicyRules { table: target.table.name.clone(), ..PolicyRules::default() };
        rules.merge_update = self.checks_of(&guarded, command::UPDATE, true)?;
        rules.update = self.checks_of(&guarded, command::UPDATE, false)?;
        rules.merge_delete = self.checks_of(&guarded, command::DELETE, true)?;
        rules.insert = self.checks_of(&guarded, command::INSERT, false)?;
        if self.reads_of(target) {
            rules.update.extend(self.checks_of(&guarded, command::SELECT, true)?);
            let conditions = self.using(&guarded, &[command::SELECT])?;
            tighten(rel, target.base, &conditions);
            recheck.splice(0..0, conditions);
        }
        Ok(Some(Box::new(rules)))
    }

    /// `0A000` for COPY FROM a client or file into a table whose policies count.
    pub(crate) fn refuse_guarded_copy(&mut self, target: &TableRel) -> Result<()> {
        if target.table.row_security {
            self.check_rights()?;
        }
        if self.guarded(target)?.is_none() {
            return Ok(());
        }
        Err(err!(FEATURE_NOT_SUPPORTED, "COPY FROM not supported with row-level security")
            .hint("Use INSERT statements instead."))
    }

    /// USING of the policies for each of these commands: all of the restrictive ones, and one of the others.
    fn using(&mut self, guarded: &Guarded, commands: &[char]) -> Result<Vec<Expr>> {
        let mut out: Vec<Expr> = Vec::new();
        for command in commands {
            let (permissive, restrictive) = self.policies(guarded, *command);
            let mut any = Vec::with_capacity(permissive.len());
            for policy in permissive {
                any.extend(self.condition_of(guarded, &policy, true)?);
            }
            if any.is_empty() {
                return Ok(vec![Expr::Const(Datum::Bool(false), BOOL)]);
            }
            for policy in restrictive {
                out.extend(self.condition_of(guarded, &policy, true)?);
            }
            out.push(either(any));
        }
        Ok(out)
    }

    /// WITH CHECK of the policies for a command, or USING where there is none; `using`: USING in any case.
    fn checks_of(
        &mut self,
        guarded: &Guarded,
        command: char,
        using: bool,
    ) -> Result<Vec<PolicyCheck>> {
        let (permissive, restrictive) = self.policies(guarded, command);
        let mut any = Vec::with_capacity(permissive.len());
        for policy in permissive {
            any.extend(self.condition_of(guarded, &policy, using)?);
        }
        let check = |policy: Option<String>, condition| PolicyCheck { policy, condition };
        if any.is_empty() {
            return Ok(vec![check(None, Expr::Const(Datum::Bool(false), BOOL))]);
        }
        let mut out = vec![check(None, either(any))];
        for policy in restrictive {
            if let Some(condition) = self.condition_of(guarded, &policy, using)? {
                out.push(check(Some(policy.name.clone()), condition));
            }
        }
        Ok(out)
    }

    /// The policies for a command and the role: permissive and restrictive ones.
    fn policies(&self, guarded: &Guarded, command: char) -> (Vec<Policy>, Vec<Policy>) {
        let rights = self.rights();
        let counts = |policy: &&Policy| {
            policy.is_for(command)
                && policy.roles.iter().any(|to| *to == 0 || rights.has_rights_of(guarded.role, *to))
        };
        let all = guarded.target.table.policies.iter().filter(counts).cloned();
        all.partition(|policy| policy.permissive)
    }

    /// A policy's condition over the table's columns.
    fn condition_of(
        &mut self,
        guarded: &Guarded,
        policy: &Policy,
        using: bool,
    ) -> Result<Option<Expr>> {
        let sql = match &policy.check {
            Some(check) if !using => Some(check),
            _ => policy.using.as_ref(),
        };
        let Some(sql) = sql else { return Ok(None) };
        self.guarding.push(guarded.target.table.oid);
        let bound = self.stored_condition(&guarded.target, sql, guarded.role);
        self.guarding.pop();
        bound.map(Some)
    }

    /// Binds a policy's stored condition in the name of a role.
    pub(crate) fn stored_condition(
        &mut self,
        target: &TableRel,
        sql: &str,
        role: u32,
    ) -> Result<Expr> {
        let tree = crate::parse::parse(sql)?.pop();
        let Some(NodeEnum::SelectStmt(select)) = tree.as_ref().map(|one| &*one.node) else {
            return Err(base::Error::internal("a policy without a query"));
        };
        let node = match select.target_list.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::ResTarget(target)) => inner(&target.val),
            _ => None,
        };
        let Some(node) = node else {
            return Err(base::Error::internal("a policy without a condition"));
        };
        // What the policy reads of the table needs no right.
        let own = usize::from(target.base)..usize::from(target.base) + target.table.columns.len();
        let read: Vec<bool> = self.vars[own.clone()].iter().map(|var| var.read).collect();
        let names = std::mem::take(&mut self.cte_names);
        let record = self.record.take();
        let acting = std::mem::replace(&mut self.acting, role);
        self.view_depth += 1;
        let bound = self.without_variables(|b| b.policy_condition(target, node));
        self.view_depth -= 1;
        self.acting = acting;
        self.record = record;
        self.cte_names = names;
        self.vars[own].iter_mut().zip(read).for_each(|(var, read)| var.read = read);
        bound.map_err(|e| self.near(e))
    }

    /// Binds a policy's condition over a table.
    pub(crate) fn policy_condition(&mut self, target: &TableRel, node: &NodeEnum) -> Result<Expr> {
        let mut scope = Scope::new(None);
        let mut item = self.item_of(target);
        item.name = Some(target.table.name.clone());
        scope.items.push(item);
        self.holding(|b| b.condition(&scope, node, Place::Policy))
    }

    /// The text of a condition that can be bound over the table, if there is such a table.
    fn check_policy(
        &mut self,
        range: &Option<pb::RangeVar>,
        node: Option<&NodeEnum>,
    ) -> Result<Option<String>> {
        let Some(node) = node else { return Ok(None) };
        if let Some(range) = range
            && let Ok(table) = self.find_table(range)
            && table.kind == TableKind::Table
        {
            let rel = self.unasked_rel(table, &range.relname)?;
            let bypassing = std::mem::replace(&mut self.bypassing, true);
            let bound = self.policy_condition(&rel, node);
            self.bypassing = bypassing;
            // PostgreSQL gives no place in the statement for these.
            bound.map_err(base::Error::without_position)?;
        }
        deparse_expr(node).map(Some)
    }

    /// CREATE POLICY.
    pub(crate) fn create_policy(&mut self, stmt: &pb::CreatePolicyStmt) -> Result<Utility> {
        let command = match stmt.cmd_name.as_str() {
            "select" => command::SELECT,
            "insert" => command::INSERT,
            "update" => command::UPDATE,
            "delete" => command::DELETE,
            _ => '*',
        };
        let (using, check) = (inner(&stmt.qual), inner(&stmt.with_check));
        if matches!(command, command::SELECT | command::DELETE) && check.is_some() {
            return Err(err!(SYNTAX_ERROR, "WITH CHECK cannot be applied to SELECT or DELETE"));
        }
        if command == command::INSERT && using.is_some() {
            return Err(err!(SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT"));
        }
        let policy = Policy {
            name: stmt.policy_name.clone(),
            permissive: stmt.permissive,
            command,
            using: self.check_policy(&stmt.table, using)?,
            check: self.check_policy(&stmt.table, check)?,
            ..Policy::default()
        };
        Ok(Utility::CreatePolicy(Box::new(CreatePolicy {
            table: self.name_of_range(&stmt.table)?,
            roles: super::role::role_refs(&stmt.roles),
            policy,
        })))
    }

    /// ALTER POLICY, but for RENAME.
    pub(crate) fn alter_policy(&mut self, stmt: &pb::AlterPolicyStmt) -> Result<Utility> {
        let using = self.check_policy(&stmt.table, inner(&stmt.qual))?;
        let check = self.check_policy(&stmt.table, inner(&stmt.with_check))?;
        Ok(Utility::AlterPolicy(Box::new(AlterPolicy {
            table: self.name_of_range(&stmt.table)?,
            name: stmt.policy_name.clone(),
            roles: super::role::role_refs(&stmt.roles),
            using,
            check,
        })))
    }

    /// DROP POLICY.
    pub(crate) fn drop_policy(&self, stmt: &pb::DropStmt) -> Option<Utility> {
        if stmt.remove_type != pb::ObjectType::ObjectPolicy as i32 {
            return None;
        }
        let Some(NodeEnum::List(list)) = stmt.objects.first().and_then(|n| n.node.as_ref()) else {
            return None;
        };
        let (name, table) = list.items.split_last()?;
        Some(Utility::DropPolicy(DropPolicy {
            table: self.name_of_list(table),
            name: ast::string(name).to_owned(),
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
        }))
    }
}

/// One of the conditions.
fn either(mut any: Vec<Expr>) -> Expr {
    match any.len() {
        1 => any.swap_remove(0),
        _ => Expr::Or(any),
    }
}

/// Rows behind a barrier that lets only these through.
pub(crate) fn behind(rel: Rel, conditions: Vec<Expr>) -> Rel {
    Rel::Barrier { input: Box::new(super::select::filter(rel, conditions)) }
}

/// Puts conditions before those that a table's rows have to meet already.
fn tighten(rel: &mut Rel, base: Col, conditions: &[Expr]) {
    let is_it =
        |rel: &Rel| matches!(rel, Rel::Table(t) | Rel::Sample { table: t, .. } if t.base == base);
    if is_it(rel) {
        let own = std::mem::replace(rel, Rel::Nothing);
        *rel = behind(own, conditions.to_vec());
        return;
    }
    if let Rel::Barrier { input } = rel
        && let Rel::Filter { input: inside, conditions: known } = &mut **input
        && is_it(inside)
    {
        known.splice(0..0, conditions.iter().cloned());
        return;
    }
    rel.for_inputs_mut(&mut |input| tighten(input, base, conditions));
}

/// A table as its policies see it.
pub(crate) fn rel_of(binder: &mut Binder<'_>, table: &Table) -> Result<TableRel> {
    let table = Arc::new(table.clone());
    let name = table.name.clone();
    binder.unasked_rel(table, &name)
}
