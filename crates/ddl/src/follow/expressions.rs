//! Defaults, conditions, keys and other expressions that name functions, operators, types or schemas which get other names.

use base::{Oid, Result};
use catalog::{ConstraintKind, Defined, Function, Index, Object, Snapshot, Table, UserTypeKind};
use exec::context::ExecContext;
use exec::spi::with_context;
use sql::stored::Over;

/// The objects whose expressions name one of `ids`, with their texts under the names that `changed` brings. Constants of
/// objects are kept by oid and stay.
///
/// # Errors
/// An expression that can't be bound any more.
pub fn renamed(cx: &mut ExecContext<'_>, ids: &[u32], changed: &Object) -> Result<Vec<Object>> {
    let old = cx.catalog_tx.view();
    let itself = match changed {
        Object::Table(table) => table.oid,
        Object::Function(function) => function.oid,
        Object::Type(ty) => ty.oid,
        _ => 0,
    };
    let mut naming = Snapshot::clone(&old);
    naming.put(changed.clone());
    let mut follow = Follow { cx, ids, naming };
    let mut out = Vec::new();
    for table in old.tables().filter(|t| t.oid != itself) {
        let mut own = Table::clone(table);
        if follow.table(table, &mut own)? {
            out.push(Object::Table(Box::new(own)));
        }
    }
    for index in old.indexes().filter(|i| names(ids, &i.uses)) {
        let Some(table) = old.table(index.table) else { continue };
        let mut own = Index::clone(index);
        for key in &mut own.columns {
            if let Some(expression) = &mut key.expression {
                follow.text(&Over::Row(table), &mut expression.sql)?;
            }
        }
        if let Some(sql) = &mut own.predicate {
            follow.text(&Over::Row(table), sql)?;
        }
        out.push(Object::Index(own));
    }
    for about in old.extended_statistics().filter(|s| names(ids, &s.uses)) {
        let Some(table) = old.table(about.table) else { continue };
        let mut own = about.clone();
        for expression in &mut own.expressions {
            follow.text(&Over::Row(table), &mut expression.sql)?;
        }
        out.push(Object::Defined(Box::new(Defined::Statistics(own))));
    }
    for ty in old.user_types().filter(|t| t.oid != itself && names(ids, &t.uses)) {
        let mut own = catalog::UserType::clone(ty);
        let UserTypeKind::Domain { base, typmod, default, checks, .. } = &mut own.kind else {
            continue;
        };
        let (base, typmod) = (Oid(*base), *typmod);
        if let Some(sql) = default {
            follow.text(&Over::Nothing(base, typmod), sql)?;
        }
        for check in checks {
            if let ConstraintKind::Check(sql) = &mut check.kind {
                follow.text(&Over::Value(base, typmod), sql)?;
            }
        }
        out.push(Object::Type(Box::new(own)));
    }
    for function in old.functions().filter(|f| f.oid != itself) {
        let used: Vec<u32> = function.uses.iter().map(|(id, _)| *id).collect();
        if !names(ids, &used) || function.args.iter().all(|a| a.default.is_none()) {
            continue;
        }
        let mut own = Function::clone(function);
        for arg in &mut own.args {
            if let Some(sql) = &mut arg.default {
                follow.text(&Over::Nothing(Oid(arg.ty), -1), sql)?;
            }
        }
        out.push(Object::Function(Box::new(own)));
    }
    Ok(out)
}

/// Whether one of `ids` is among the objects that an expression uses.
fn names(ids: &[u32], uses: &[u32]) -> bool {
    uses.iter().any(|id| ids.contains(id))
}

struct Follow<'f, 'c, 'x> {
    cx: &'f mut ExecContext<'c>,
    ids: &'x [u32],
    naming: Snapshot,
}

impl Follow<'_, '_, '_> {
    fn names(&self, uses: &[u32]) -> bool {
        names(self.ids, uses)
    }

    fn text(&mut self, over: &Over<'_>, sql: &mut String) -> Result<()> {
        let naming = &self.naming;
        *sql = with_context(self.cx, |cx| sql::stored::under_names(cx, over, sql, naming))?;
        Ok(())
    }

    /// Whether a table names one of them; `own` gets the new texts.
    fn table(&mut self, table: &Table, own: &mut Table) -> Result<bool> {
        let mut any = false;
        for column in own.columns.iter_mut().filter(|c| !c.dropped) {
            if self.names(&column.default_uses)
                && let Some(sql) = &mut column.default
            {
                let over = match column.generated {
                    true => Over::Row(table),
                    false => Over::Nothing(Oid(column.ty), column.typmod),
                };
                self.text(&over, sql)?;
                any = true;
            }
        }
        for constraint in &mut own.constraints {
            if self.names(&constraint.uses)
                && let ConstraintKind::Check(sql) = &mut constraint.kind
            {
                self.text(&Over::Row(table), sql)?;
                any = true;
            }
        }
        for trigger in &mut own.triggers {
            let used: Vec<u32> = trigger.uses.iter().map(|(id, _)| *id).collect();
            if self.names(&used)
                && let Some(sql) = &mut trigger.when
            {
                self.text(&Over::Rows(table), sql)?;
                any = true;
            }
        }
        if let Some(by) = own.partitioning.as_mut().filter(|by| self.names(&by.uses)) {
            for key in &mut by.keys {
                if let Some(sql) = &mut key.expression {
                    self.text(&Over::Row(table), sql)?;
                    any = true;
                }
            }
        }
        Ok(any)
    }
}
