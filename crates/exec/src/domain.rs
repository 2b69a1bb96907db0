//! Constraints of domains: checked wherever a value becomes one of a domain, also inside arrays and
//! composite values. The binder puts the check (`types::func::internal::DOMAIN_CHECK`) where that
//! happens; what reads values by itself (COPY) calls [`check`].
//!
//! A domain's own conditions come after those of the domain below it; NOT NULL comes first. They are
//! bound once for all sessions ([`crate::stored_plans`]).

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::{ConstraintKind, Snapshot, UserTypeKind};
use types::Datum;
use types::datum::Array;
use types::user::{self, UserKind};

use crate::context::ExecContext;
use crate::eval;
use crate::rows::Row;
use crate::run::{DomainRules, Run};
use crate::spi::with_context;
use crate::stored_plans::{self, PlanOf};

/// The value as one of a type, whose domains' constraints it fulfils.
///
/// # Errors
/// `23502`, `23514`.
pub fn check(ty: Oid, value: Datum, run: &mut Run<'_, '_>) -> Result<Datum> {
    let Some(known) = user::get(ty) else { return Ok(value) };
    match (&known.kind, value) {
        (UserKind::Domain { .. }, value) => check_domain(ty, value, run),
        (UserKind::Array, Datum::Array(array)) => {
            let element = known.io.element;
            let Array { dims, items, .. } = Arc::unwrap_or_clone(array);
            let items = items.into_iter().map(|item| check(element, item, run));
            let items = items.collect::<Result<Vec<Datum>>>()?;
            Ok(Datum::Array(Array { element, dims, items }.into()))
        }
        (UserKind::Composite { shape, .. }, Datum::Record(row)) => {
            let mut fields = Vec::with_capacity(row.fields.len());
            for (field, (_, ty)) in row.fields.iter().zip(&shape.columns) {
                fields.push(check(*ty, field.clone(), run)?);
            }
            Ok(Datum::record(row.shape.clone(), fields))
        }
        (_, value) => Ok(value),
    }
}

fn check_domain(ty: Oid, value: Datum, run: &mut Run<'_, '_>) -> Result<Datum> {
    let rules = rules(ty, run)?;
    if rules.not_null && value.is_null() {
        return Err(named(
            ty,
            run,
            err!(
                NOT_NULL_VIOLATION,
                "domain {} does not allow null values",
                types::io::format_type(ty, -1)
            ),
        ));
    }
    // What the type below has inside has been checked when it became one of that type.
    let value = if user::has_domains(rules.base) { check(rules.base, value, run)? } else { value };
    let row = [value];
    for (name, condition) in &rules.checks {
        if let Datum::Bool(false) = eval::eval(condition, Row::Values(&row), run)? {
            let error = err!(
                CHECK_VIOLATION,
                "value for domain {} violates check constraint \"{name}\"",
                types::io::format_type(ty, -1)
            );
            return Err(named(ty, run, error.constraint(name)));
        }
    }
    let [value] = row;
    Ok(value)
}

/// The error with the domain in its fields.
fn named(ty: Oid, run: &mut Run<'_, '_>, error: Error) -> Error {
    let view = run.cx.catalog_tx.view();
    let Some((schema, _, name)) = view.type_place(ty.0) else { return error };
    let schema = view.schema(schema).map_or("", |s| s.name.as_str());
    error.of_type(schema, &name)
}

fn rules(ty: Oid, run: &mut Run<'_, '_>) -> Result<Arc<DomainRules>> {
    if let Some((_, rules)) = run.state.domains.iter().find(|(known, _)| *known == ty) {
        return Ok(rules.clone());
    }
    let of = PlanOf::Domain(run.cx.database.1, ty.0);
    let rules = stored_plans::get(of, run.cx, |cx| {
        let view = cx.catalog_tx.view();
        let mut rules = DomainRules { not_null: false, checks: Vec::new(), base: ty };
        gather(&view, ty, &mut rules, cx)?;
        rules.base = user::base_type(ty, -1).0;
        Ok(rules)
    })?;
    run.state.domains.push((ty, rules.clone()));
    Ok(rules)
}

fn gather(
    view: &Snapshot,
    ty: Oid,
    rules: &mut DomainRules,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    sched::check_stack()?;
    let Some(UserTypeKind::Domain { base, typmod, not_null, checks, .. }) =
        view.user_type(ty.0).map(|t| &t.kind)
    else {
        return Ok(());
    };
    gather(view, Oid(*base), rules, cx)?;
    rules.not_null |= not_null;
    let mut own: Vec<(&str, &str)> = Vec::with_capacity(checks.len());
    for check in checks {
        if let ConstraintKind::Check(sql) = &check.kind {
            own.push((&check.name, sql));
        }
    }
    own.sort_unstable();
    for (name, sql) in own {
        let bound =
            with_context(cx, |cx| sql::stored_domain_condition(cx, sql, Oid(*base), *typmod))?;
        rules.checks.push((name.to_owned(), bound));
    }
    Ok(())
}
