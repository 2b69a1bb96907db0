//! Types that users define: enums and what all kinds have in common. Domains and composite types have
//! files of their own ([`super::domain`], [`super::composite`]).
//!
//! A change of a type takes a lock on its oid first, then looks at it again: two sessions change a type
//! one after the other.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::snapshot::{Relation, TypeId};
use catalog::{AclKind, EnumLabel, Object, Snapshot, UserType, UserTypeKind};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{Name, Persistence};

use super::{name, notice};
use crate::follow::follow;
use crate::item::Item;

/// Bytes of an enum's label, at most.
const LABEL_MAX_BYTES: usize = 63;
/// How far apart the ranks of an enum's labels are when it is made: so often can labels be put between
/// the same two.
const RANK_STEP: u64 = 1 << 40;

/// A name as messages have it.
pub fn full(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    }
}

pub(crate) fn missing(view: &Snapshot, name: &Name) -> Error {
    if let Some(schema) = name.schema.as_deref().filter(|s| view.schema_named(s).is_none()) {
        return err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist");
    }
    err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", full(name))
}

/// A name's type, whatever it is: its oid.
fn oid_of(view: &Snapshot, path: &[u32], name: &Name) -> Option<u32> {
    let built_in = match name.schema.as_deref() {
        None | Some("pg_catalog") => types::TypeIo::by_name(&name.name).map(|io| io.oid.0),
        Some(_) => None,
    };
    built_in.or_else(|| view.type_oid(path, name.schema.as_deref(), &name.name))
}

/// The type that a user made under this name, locked, for its owner. `wrong` makes the error for a type
/// of another kind from its name.
///
/// # Errors
/// `42704`, `42809`, `42501`.
pub fn open(
    cx: &mut ExecContext<'_>,
    name: &Name,
    fits: impl Fn(&UserType) -> bool,
    wrong: impl Fn(&str) -> Error,
) -> Result<UserType> {
    let find = |cx: &mut ExecContext<'_>| {
        let view = cx.catalog_tx.view();
        let ty = oid_of(&view, cx.search_path, name).ok_or_else(|| missing(&view, name))?;
        match view.user_type(ty) {
            Some(found) if fits(found) => Ok(found.clone()),
            _ => Err(wrong(&types::io::format_type(Oid(ty), -1))),
        }
    };
    let found = find(cx)?;
    rights::require_owner(cx, AclKind::Type, found.oid, "type", &found.name)?;
    name::reserve(cx, found.oid, "")?;
    Ok(UserType::clone(&*find(cx)?))
}

/// Puts a type that was changed in.
///
/// # Errors
/// Those of the catalog.
pub fn put(cx: &mut ExecContext<'_>, ty: UserType) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Type(Box::new(ty)))
}

/// `42710` when a type has the name.
///
/// # Errors
/// See above.
fn check_free(cx: &mut ExecContext<'_>, schema: u32, to: &str) -> Result<()> {
    name::reserve(cx, schema, to)?;
    if cx.catalog_tx.view().type_oid_in(schema, to).is_some() {
        return Err(err!(DUPLICATE_OBJECT, "type \"{to}\" already exists"));
    }
    Ok(())
}

/// A relation's name must be free as a type's, too: its rows are one.
///
/// # Errors
/// `42710`, `42P07`.
pub fn check_row_type(cx: &mut ExecContext<'_>, schema: u32, relation: &str) -> Result<()> {
    let view = cx.catalog_tx.view();
    match view.type_in(schema, relation).map(|t| &t.kind) {
        None => Ok(()),
        Some(UserTypeKind::Composite(_)) => {
            Err(err!(DUPLICATE_TABLE, "relation \"{relation}\" already exists"))
        }
        Some(_) => Err(err!(DUPLICATE_OBJECT, "type \"{relation}\" already exists").hint(
            "A relation has an associated type of the same name, so you must use a name that \
             doesn't conflict with any existing type.",
        )),
    }
}

/// The oids of the type of a new relation's rows and of its arrays.
///
/// # Errors
/// When none is left.
pub fn row_type(cx: &mut ExecContext<'_>, beside: u32) -> Result<[u32; 2]> {
    Ok([super::new_oid(cx, beside)?, super::new_oid(cx, beside)?])
}

/// Makes a type under a free name.
///
/// # Errors
/// `42710`, `3F000`, `42501`.
pub fn create(cx: &mut ExecContext<'_>, name: &Name, kind: UserTypeKind) -> Result<UserType> {
    let plain = Name { position: 0, ..name.clone() };
    let schema = name::creation_schema(cx, &plain, Persistence::Permanent)?;
    check_free(cx, schema, &name.name)?;
    let (oid, array) = (super::new_oid(cx, schema)?, super::new_oid(cx, schema)?);
    let mut ty = UserType::new(oid, array, &name.name, kind);
    (ty.schema, ty.owner) = (schema, cx.role);
    put(cx, ty.clone())?;
    rights::begin(cx, AclKind::Type, oid, cx.role, schema)?;
    Ok(ty)
}

fn check_label(label: &str) -> Result<()> {
    if label.is_empty() || label.len() > LABEL_MAX_BYTES {
        return Err(err!(INVALID_NAME, "invalid enum label \"{label}\"")
            .detail("Labels must be 63 bytes or less."));
    }
    Ok(())
}

pub(crate) fn create_enum(cx: &mut ExecContext<'_>, name: &Name, labels: &[String]) -> Result<()> {
    let ty = create(cx, name, UserTypeKind::Enum(Vec::new()))?;
    let mut made: Vec<EnumLabel> = Vec::with_capacity(labels.len());
    for (n, label) in labels.iter().enumerate() {
        if label.len() > LABEL_MAX_BYTES {
            check_label(label)?;
        }
        if made.iter().any(|l| l.name == *label) {
            return Err(err!(
                UNIQUE_VIOLATION,
                "duplicate key value violates unique constraint \"pg_enum_typid_label_index\""
            )
            .detail(format!("Key (enumtypid, enumlabel)=({}, {label}) already exists.", ty.oid))
            .table("pg_catalog", "pg_enum")
            .constraint("pg_enum_typid_label_index"));
        }
        let oid = super::new_oid(cx, ty.oid)?;
        let (order, rank) = ((n + 1) as f32, (n as u64 + 1) * RANK_STEP);
        made.push(EnumLabel { oid, name: label.clone(), order, rank });
    }
    put(cx, UserType { kind: UserTypeKind::Enum(made), ..ty })
}

/// The enum with this name, and its labels in order.
fn open_enum(cx: &mut ExecContext<'_>, name: &Name) -> Result<(UserType, Vec<EnumLabel>)> {
    let is_enum = |t: &UserType| matches!(t.kind, UserTypeKind::Enum(_));
    let wrong = |name: &str| err!(WRONG_OBJECT_TYPE, "{name} is not an enum");
    let ty = open(cx, name, is_enum, wrong)?;
    let mut labels = match &ty.kind {
        UserTypeKind::Enum(labels) => labels.clone(),
        _ => Vec::new(),
    };
    labels.sort_by_key(|l| l.rank);
    Ok((ty, labels))
}

fn unknown_label(label: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE, "\"{label}\" is not an existing enum label")
}

pub(crate) fn add_value(
    cx: &mut ExecContext<'_>,
    name: &Name,
    label: &str,
    if_not_exists: bool,
    neighbor: Option<&(String, bool)>,
) -> Result<()> {
    let (ty, mut labels) = open_enum(cx, name)?;
    check_label(label)?;
    if labels.iter().any(|l| l.name == label) {
        let message = format!("enum label \"{label}\" already exists");
        if !if_not_exists {
            return Err(err!(DUPLICATE_OBJECT, "{message}"));
        }
        notice(cx, base::sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
        return Ok(());
    }
    let at = match neighbor {
        None => labels.len(),
        Some((beside, after)) => {
            let at = labels.iter().position(|l| l.name == *beside);
            at.ok_or_else(|| unknown_label(beside))? + usize::from(*after)
        }
    };
    let rank = rank_at(&labels, at).ok_or_else(|| {
        err!(PROGRAM_LIMIT_EXCEEDED, "too many labels were added between the same two labels")
    })?;
    let order = order_at(&mut labels, at);
    let oid = super::new_oid(cx, ty.oid)?;
    labels.insert(at, EnumLabel { oid, name: label.to_owned(), order, rank });
    put(cx, UserType { kind: UserTypeKind::Enum(labels), ..ty })
}

/// A rank for a new label in this place; None when there is no number left between its neighbours.
fn rank_at(labels: &[EnumLabel], at: usize) -> Option<u64> {
    let below = at.checked_sub(1).map_or(0, |i| labels[i].rank);
    match labels.get(at) {
        None => below.checked_add(RANK_STEP),
        Some(above) => {
            let rank = below + (above.rank - below) / 2;
            (rank > below).then_some(rank)
        }
    }
}

/// `enumsortorder` for the new label. Where a float4 has no more room between two, all labels are
/// numbered anew.
fn order_at(labels: &mut [EnumLabel], at: usize) -> f32 {
    let place = |labels: &[EnumLabel]| match (at.checked_sub(1), labels.get(at)) {
        (None, None) => 1.0,
        (None, Some(above)) => above.order - 1.0,
        (Some(below), None) => labels[below].order + 1.0,
        (Some(below), Some(above)) => (labels[below].order + above.order) / 2.0,
    };
    let order = place(labels);
    if labels.iter().any(|l| l.order == order) {
        labels.iter_mut().enumerate().for_each(|(n, l)| l.order = (n + 1) as f32);
        return place(labels);
    }
    order
}

pub(crate) fn rename_value(
    cx: &mut ExecContext<'_>,
    name: &Name,
    from: &str,
    to: &str,
) -> Result<()> {
    let (ty, mut labels) = open_enum(cx, name)?;
    check_label(to)?;
    let at = labels.iter().position(|l| l.name == from).ok_or_else(|| unknown_label(from))?;
    if labels.iter().any(|l| l.name == to) {
        return Err(err!(DUPLICATE_OBJECT, "enum label \"{to}\" already exists"));
    }
    to.clone_into(&mut labels[at].name);
    put(cx, UserType { kind: UserTypeKind::Enum(labels), ..ty })
}

/// The type for a statement that any kind of type may stand in; `kind` DOMAIN takes only domains.
fn open_any(cx: &mut ExecContext<'_>, kind: &str, name: &Name) -> Result<UserType> {
    let view = cx.catalog_tx.view();
    if let Some(ty) = oid_of(&view, cx.search_path, name) {
        let shown = types::io::format_type(Oid(ty), -1);
        match view.type_id(ty) {
            Some(TypeId::Row(_, false)) => {
                return Err(err!(WRONG_OBJECT_TYPE, "{shown} is a table's row type")
                    .hint("Use ALTER TABLE instead."));
            }
            Some(TypeId::Row(_, true) | TypeId::User(_, true)) => {
                let element = shown.trim_end_matches("[]");
                return Err(err!(WRONG_OBJECT_TYPE, "cannot alter array type {shown}").hint(
                    format!(
                        "You can alter type {element}, which will alter the array type as well."
                    ),
                ));
            }
            None => {
                return Err(err!(INSUFFICIENT_PRIVILEGE, "must be owner of type {shown}"));
            }
            _ => {}
        }
    }
    let fits = |t: &UserType| kind != "DOMAIN" || matches!(t.kind, UserTypeKind::Domain { .. });
    open(cx, name, fits, |name| err!(WRONG_OBJECT_TYPE, "{name} is not a domain"))
}

pub(crate) fn rename(cx: &mut ExecContext<'_>, kind: &str, name: &Name, to: &str) -> Result<()> {
    let ty = open_any(cx, kind, name)?;
    rights::require_creation(cx, cx.role, ty.schema)?;
    check_free(cx, ty.schema, to)?;
    let renamed = UserType { name: to.to_owned(), ..ty };
    follow(cx, &[renamed.oid], Object::Type(Box::new(renamed)))
}

pub(crate) fn set_schema(
    cx: &mut ExecContext<'_>,
    kind: &str,
    name: &Name,
    to: &str,
) -> Result<()> {
    let ty = open_any(cx, kind, name)?;
    let view = cx.catalog_tx.view();
    let schema = view
        .schema_named(to)
        .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist"))?
        .oid;
    if schema == ty.schema {
        return Ok(());
    }
    rights::require_creation(cx, cx.role, schema)?;
    name::reserve(cx, schema, &ty.name)?;
    if view.type_oid_in(schema, &ty.name).is_some() {
        base::bail!(DUPLICATE_OBJECT, "type \"{}\" already exists in schema \"{to}\"", ty.name);
    }
    let moved = UserType { schema, ..ty };
    follow(cx, &[moved.oid], Object::Type(Box::new(moved)))
}

/// ALTER TYPE, DOMAIN … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(
    cx: &mut ExecContext<'_>,
    kind: &str,
    name: &Name,
    to: &sql::role::RoleRef,
) -> Result<()> {
    let ty = open_any(cx, kind, name)?;
    let to = rights::role(cx, to)?;
    if ty.owner == to {
        return Ok(());
    }
    rights::require_membership(cx, to)?;
    rights::require_creation(cx, to, ty.schema)?;
    reassign(cx, ty, to)
}

/// Gives a type to another role.
///
/// # Errors
/// Those of the catalog.
pub fn reassign(cx: &mut ExecContext<'_>, ty: UserType, to: u32) -> Result<()> {
    rights::change_owner(cx, AclKind::Type, ty.oid, ty.owner, to)?;
    put(cx, UserType { owner: to, ..ty })
}

/// The type that DROP TYPE or DROP DOMAIN names.
///
/// # Errors
/// `42704` when there is none; `2BP01` for types that something else needs.
pub fn find_to_drop(
    kind: &str,
    name: &Name,
    if_exists: bool,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Item>> {
    let view = cx.catalog_tx.view();
    let Some(ty) = oid_of(&view, cx.search_path, name) else {
        let error = missing(&view, name);
        if !if_exists {
            return Err(error);
        }
        let message = format!("{}, skipping", error.message());
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(None);
    };
    let shown = types::io::format_type(Oid(ty), -1);
    let user = view.user_type(ty);
    let is_domain = user.is_some_and(|t| matches!(t.kind, UserTypeKind::Domain { .. }));
    if kind == "DOMAIN" && !is_domain {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", name.name);
    }
    let needed = |what: String| {
        err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop type {shown} because {what} requires it")
            .hint(format!("You can drop {what} instead."))
    };
    match (view.type_id(ty), user) {
        (Some(TypeId::Row(_, false)), _) => Err(needed(format!("table {shown}"))),
        (Some(TypeId::Row(_, true) | TypeId::User(_, true)), _) => {
            Err(needed(format!("type {}", shown.trim_end_matches("[]"))))
        }
        (_, Some(user)) => {
            check_drop(cx, user)?;
            Ok(Some(Item::Type(ty)))
        }
        _ => Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop type {shown} because it is required by the database system"
        )),
    }
}

/// Types are dropped by their owner or that of their schema.
fn check_drop(cx: &mut ExecContext<'_>, ty: &Arc<UserType>) -> Result<()> {
    let view = cx.catalog_tx.view();
    if rights::of(cx, &view).owns(cx.role, AclKind::Schema, ty.schema) {
        return Ok(());
    }
    rights::require_owner(cx, AclKind::Type, ty.oid, "type", &ty.name)
}

/// The columns of tables that are of this type, directly or through an array or domain: table, column
/// and the column's type.
pub fn columns_of(view: &Snapshot, ty: u32) -> Vec<(u32, u16, u32)> {
    let mut out = Vec::new();
    for table in view.tables().filter(|t| t.rel != 0) {
        for (n, column) in table.live_columns() {
            if has_inside(view, column.ty, ty) {
                out.push((table.oid, n, column.ty));
            }
        }
    }
    out
}

/// Whether values of a type have values of another one inside.
pub fn has_inside(view: &Snapshot, ty: u32, wanted: u32) -> bool {
    if ty == wanted {
        return true;
    }
    match view.type_id(ty) {
        None => false,
        Some(TypeId::User(id, true)) => has_inside(view, id, wanted),
        Some(TypeId::Row(id, true)) => {
            view.table(id).is_some_and(|t| has_inside(view, t.row_type[0], wanted))
        }
        Some(TypeId::Row(id, false)) => view
            .table(id)
            .is_some_and(|t| t.live_columns().any(|(_, c)| has_inside(view, c.ty, wanted))),
        Some(TypeId::User(id, false)) => match view.user_type(id).map(|t| &t.kind) {
            Some(UserTypeKind::Domain { base, .. }) => has_inside(view, *base, wanted),
            Some(UserTypeKind::Composite(columns)) => {
                columns.iter().any(|c| !c.dropped && has_inside(view, c.ty, wanted))
            }
            _ => false,
        },
    }
}

/// A relation in the way of a composite type's name.
///
/// # Errors
/// `42P07`, and `42710` for another type.
pub fn check_class(cx: &mut ExecContext<'_>, schema: u32, name: &str) -> Result<()> {
    match cx.catalog_tx.view().relation_in(schema, name) {
        Some(Relation::Table(_) | Relation::Index(_) | Relation::Sequence(_)) => {
            Err(err!(DUPLICATE_TABLE, "relation \"{name}\" already exists"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ranks: &[u64]) -> Vec<EnumLabel> {
        let label = |(n, rank): (usize, &u64)| EnumLabel {
            oid: 0,
            name: n.to_string(),
            order: (n + 1) as f32,
            rank: *rank,
        };
        ranks.iter().enumerate().map(label).collect()
    }

    #[test]
    fn a_new_label_gets_a_rank_between_its_neighbours() {
        let known = labels(&[RANK_STEP, 2 * RANK_STEP]);
        assert_eq!(rank_at(&known, 0), Some(RANK_STEP / 2));
        assert_eq!(rank_at(&known, 1), Some(RANK_STEP + RANK_STEP / 2));
        assert_eq!(rank_at(&known, 2), Some(3 * RANK_STEP));
        assert_eq!(rank_at(&[], 0), Some(RANK_STEP));
        assert_eq!(rank_at(&labels(&[7, 8]), 1), None);
    }

    #[test]
    fn orders_are_numbered_anew_when_floats_run_out() {
        let mut known = labels(&[1, 2]);
        known[1].order = known[0].order.next_up();
        let order = order_at(&mut known, 1);
        assert_eq!((known[0].order, order, known[1].order), (1.0, 1.5, 2.0));
    }
}
