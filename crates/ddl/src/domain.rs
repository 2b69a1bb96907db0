//! CREATE and ALTER DOMAIN.

use base::{Error, Oid, Result, err};
use catalog::{Constraint, ConstraintKind, UserType, UserTypeKind};
use exec::context::ExecContext;
use exec::session::quote_identifier;
use sql::type_statement::{AlterDomain, DomainCheck, DomainDef};
use sql::utility::Name;
use txn::LockMode;

use super::user_types::{self, columns_of, open, put};
use super::{lock, name, notice};
use crate::forget::remove_comments;

/// A domain's own parts.
struct Parts {
    base: u32,
    typmod: i32,
    not_null: bool,
    default: Option<String>,
    checks: Vec<Constraint>,
    collation: u32,
}

impl Parts {
    fn of(ty: &UserType) -> Result<Parts> {
        match ty.kind.clone() {
            UserTypeKind::Domain { base, typmod, not_null, default, checks, collation } => {
                Ok(Parts { base, typmod, not_null, default, checks, collation })
            }
            _ => Err(Error::internal("not a domain")),
        }
    }

    fn kind(self) -> UserTypeKind {
        let Parts { base, typmod, not_null, default, checks, collation } = self;
        UserTypeKind::Domain { base, typmod, not_null, default, checks, collation }
    }
}

/// CREATE DOMAIN.
///
/// # Errors
/// `42710`, `3F000`, `42501`.
pub fn create(cx: &mut ExecContext<'_>, def: &DomainDef) -> Result<()> {
    let mut parts = Parts {
        base: def.base.0,
        typmod: def.typmod,
        not_null: def.not_null,
        default: def.default.clone(),
        checks: Vec::new(),
        collation: def.collation,
    };
    for check in &def.checks {
        let made = constraint(cx, &def.name.name, &parts.checks, check)?;
        parts.checks.push(made);
    }
    let ty = user_types::create(cx, &def.name, parts.kind())?;
    if def.uses.is_empty() {
        return Ok(());
    }
    put(cx, UserType { uses: def.uses.clone(), ..ty })
}

/// A new constraint, named after the domain when nobody says.
fn constraint(
    cx: &mut ExecContext<'_>,
    domain: &str,
    others: &[Constraint],
    check: &DomainCheck,
) -> Result<Constraint> {
    let taken = |name: &str| others.iter().any(|c| c.name == name);
    let name = match &check.name {
        Some(name) if taken(name) => {
            return Err(err!(
                DUPLICATE_OBJECT,
                "constraint \"{name}\" for domain \"{domain}\" already exists"
            ));
        }
        Some(name) => name.clone(),
        None => name::choose(domain, &[], "check", &taken),
    };
    let oid = super::new_oid(cx, 0)?;
    let kind = ConstraintKind::Check(check.sql.clone());
    Ok(Constraint { unvalidated: check.unvalidated, ..Constraint::new(oid, name, kind) })
}

/// ALTER DOMAIN.
///
/// # Errors
/// `42704`, `42809`, `42710`; `23502` and `23514` when there are values that don't fit.
pub fn alter(cx: &mut ExecContext<'_>, name: &Name, step: &AlterDomain) -> Result<()> {
    let is_domain = |t: &UserType| matches!(t.kind, UserTypeKind::Domain { .. });
    let wrong = |name: &str| err!(WRONG_OBJECT_TYPE, "{name} is not a domain");
    let mut ty = open(cx, name, is_domain, wrong)?;
    let mut parts = Parts::of(&ty)?;
    match step {
        AlterDomain::Default(default, uses) => {
            parts.default.clone_from(default);
            ty.uses.extend(uses);
        }
        AlterDomain::NotNull(not_null) => {
            if *not_null && !parts.not_null {
                check_no_nulls(cx, &ty)?;
            }
            parts.not_null = *not_null;
        }
        AlterDomain::Add(check, uses) => {
            let made = constraint(cx, &ty.name, &parts.checks, check)?;
            if !check.unvalidated {
                check_values(cx, &ty, &made)?;
            }
            parts.checks.push(made);
            ty.uses.extend(uses);
        }
        AlterDomain::Drop { name, if_exists } => {
            match parts.checks.iter().position(|c| c.name == *name) {
                Some(at) => {
                    let gone = parts.checks.remove(at);
                    remove_comments(cx, gone.oid)?;
                }
                None => {
                    let message = missing_constraint(name, &ty.name);
                    if !if_exists {
                        return Err(err!(UNDEFINED_OBJECT, "{message}"));
                    }
                    let message = format!("{message}, skipping");
                    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
                    return Ok(());
                }
            }
        }
        AlterDomain::Validate(name) => {
            let at =
                parts.checks.iter().position(|c| c.name == *name).ok_or_else(|| {
                    err!(UNDEFINED_OBJECT, "{}", missing_constraint(name, &ty.name))
                })?;
            let check = parts.checks[at].clone();
            check_values(cx, &ty, &check)?;
            parts.checks[at].unvalidated = false;
        }
        AlterDomain::Rename { from, to } => rename(&ty, &mut parts, from, to)?,
    }
    put(cx, UserType { kind: parts.kind(), ..ty })
}

fn missing_constraint(name: &str, domain: &str) -> String {
    format!("constraint \"{name}\" of domain \"{domain}\" does not exist")
}

fn rename(ty: &UserType, parts: &mut Parts, from: &str, to: &str) -> Result<()> {
    let shown = types::io::format_type(Oid(ty.oid), -1);
    let at = parts.checks.iter().position(|c| c.name == from).ok_or_else(|| {
        err!(UNDEFINED_OBJECT, "constraint \"{from}\" for domain {shown} does not exist")
    })?;
    if parts.checks.iter().any(|c| c.name == to) {
        base::bail!(DUPLICATE_OBJECT, "constraint \"{to}\" for domain {shown} already exists");
    }
    to.clone_into(&mut parts.checks[at].name);
    Ok(())
}

/// A column with values of the domain: table, its qualified name, and the column's.
type Place = (catalog::Table, String, String);

/// The columns with values of the domain, their tables locked.
fn places(cx: &mut ExecContext<'_>, ty: &UserType) -> Result<Vec<Place>> {
    let view = cx.catalog_tx.view();
    let mut out = Vec::new();
    for (table, n, column_type) in columns_of(&view, ty.oid) {
        lock(cx, table, LockMode::Share)?;
        let table = super::refresh(cx, table)?;
        let Some(column) = table.columns.get(usize::from(n) - 1).filter(|c| !c.dropped) else {
            continue;
        };
        let domain = matches!(
            view.user_type(column_type).map(|t| &t.kind),
            Some(UserTypeKind::Domain { .. })
        );
        if !domain {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                ty.name,
                table.name,
                column.name
            ));
        }
        let (relation, name) = (exec::spi::rows_of(&view, &table), column.name.clone());
        out.push((table, relation, name));
    }
    Ok(out)
}

fn schema_of(cx: &mut ExecContext<'_>, table: &catalog::Table) -> String {
    cx.catalog_tx.view().schema(table.schema).map_or_else(String::new, |s| s.name.clone())
}

fn check_no_nulls(cx: &mut ExecContext<'_>, ty: &UserType) -> Result<()> {
    for (table, relation, column) in places(cx, ty)? {
        let quoted = quote_identifier(&column);
        let mut found = false;
        let text = format!("SELECT 1 FROM {relation} WHERE {quoted} IS NULL LIMIT 1");
        exec::spi::query(&text, cx, &mut |_| {
            found = true;
            Ok(())
        })?;
        if found {
            let schema = schema_of(cx, &table);
            return Err(err!(
                NOT_NULL_VIOLATION,
                "column \"{column}\" of table \"{}\" contains null values",
                table.name
            )
            .table(&schema, &table.name)
            .column(&column));
        }
    }
    Ok(())
}

/// All values that are there fulfil a constraint: they are cast to the domain as it would be with this
/// constraint alone.
fn check_values(cx: &mut ExecContext<'_>, ty: &UserType, check: &Constraint) -> Result<()> {
    let places = places(cx, ty)?;
    if places.is_empty() {
        return Ok(());
    }
    let parts = Parts { not_null: false, checks: vec![check.clone()], ..Parts::of(ty)? };
    let base = types::io::format_type(Oid(parts.base), -1);
    put(cx, UserType { kind: parts.kind(), ..ty.clone() })?;
    let view = cx.catalog_tx.view();
    let schema = view.schema(ty.schema).map_or("public", |s| s.name.as_str());
    let domain = format!("{}.{}", quote_identifier(schema), quote_identifier(&ty.name));
    for (table, relation, column) in places {
        let quoted = quote_identifier(&column);
        let text =
            format!("SELECT count(CAST(CAST({quoted} AS {base}) AS {domain})) FROM {relation}");
        let done = exec::spi::query_of(ty.owner, &text, cx, &mut |_| Ok(()));
        if let Err(error) = done {
            if error.code() != base::sqlstate::CHECK_VIOLATION {
                return Err(error);
            }
            let schema = schema_of(cx, &table);
            return Err(err!(
                CHECK_VIOLATION,
                "column \"{column}\" of table \"{}\" contains values that violate the new constraint",
                table.name
            )
            .table(&schema, &table.name)
            .column(&column));
        }
    }
    Ok(())
}
