//! CREATE and ALTER COLLATION.

use std::sync::Arc;

use base::{Error, Result, err};
use catalog::object::ids::COLLATION_DEFAULT;
use catalog::{AclKind, Collation, Object};
use exec::context::ExecContext;
use exec::rights;
use sql::collation_statement::{CollationDef, CollationStatement};
use sql::utility::{Name, Persistence};

use super::{database, name, notice};
use crate::item::Item;

/// Runs the statement.
///
/// # Errors
/// Whatever it raises.
pub fn run(statement: &CollationStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        CollationStatement::Create { name, if_not_exists, definition } => {
            create(cx, name, *if_not_exists, definition)
        }
        CollationStatement::Refresh(name) => {
            let found = owned(cx, name)?;
            let version = found.icu_locale.as_ref().map(|_| types::collation::VERSION.to_owned());
            if found.version == version {
                let message = "version has not changed".to_owned();
                notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
                return Ok(());
            }
            put(cx, Collation { version, ..Collation::clone(&found) })
        }
        CollationStatement::Rename(name, to) => {
            let found = owned(cx, name)?;
            rights::require_creation(cx, cx.role, found.schema)?;
            check_free(cx, found.schema, to)?;
            put(cx, Collation { name: to.clone(), ..Collation::clone(&found) })
        }
        CollationStatement::SetSchema(name, to) => {
            let found = owned(cx, name)?;
            let view = cx.catalog_tx.view();
            let schema = view
                .schema_named(to)
                .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist"))?
                .oid;
            if schema == found.schema {
                return Ok(());
            }
            rights::require_creation(cx, cx.role, schema)?;
            check_free(cx, schema, &found.name)?;
            put(cx, Collation { schema, ..Collation::clone(&found) })
        }
    }
}

/// The collation with this name.
///
/// # Errors
/// `42704`, `3F000`.
pub fn find(cx: &mut ExecContext<'_>, name: &Name) -> Result<Arc<Collation>> {
    let view = cx.catalog_tx.view();
    let schema = name.schema.as_deref();
    let found = view.collation_named(cx.search_path, schema, &name.name).cloned();
    found.ok_or_else(|| view.missing_collation(schema, &name.name))
}

/// The same, for its owner. Those of the server can't be changed.
fn owned(cx: &mut ExecContext<'_>, name: &Name) -> Result<Arc<Collation>> {
    let found = find(cx, name)?;
    rights::require_owner(cx, AclKind::Collation, found.oid, "collation", &found.name)?;
    if cx.catalog_tx.view().user_collations().all(|c| c.oid != found.oid) {
        return Ok(found);
    }
    super::name::reserve(cx, found.oid, "")?;
    find(cx, name)
}

fn put(cx: &mut ExecContext<'_>, collation: Collation) -> Result<()> {
    if collation.oid < base::Oid::FIRST_USER.0 {
        return Err(Error::unsupported("changing a collation of the server"));
    }
    cx.catalog_tx.put(cx.tx, Object::Collation(Box::new(collation)))
}

/// `42710` when a collation in the schema has the name.
fn check_free(cx: &mut ExecContext<'_>, schema: u32, to: &str) -> Result<()> {
    name::reserve(cx, schema, to)?;
    let view = cx.catalog_tx.view();
    if let Some(found) = view.collation_in(schema, to) {
        let place = view.schema(schema).map_or("", |s| s.name.as_str());
        let encoding = for_encoding(found.encoding);
        let message = format!("collation \"{to}\"{encoding} already exists in schema \"{place}\"");
        return Err(Error::new(base::sqlstate::DUPLICATE_OBJECT, message));
    }
    Ok(())
}

fn create(
    cx: &mut ExecContext<'_>,
    name: &Name,
    if_not_exists: bool,
    definition: &CollationDef,
) -> Result<()> {
    let plain = Name { position: 0, ..name.clone() };
    let schema = name::creation_schema(cx, &plain, Persistence::Permanent)?;
    let mut made = match definition {
        CollationDef::Copy(from) => {
            let from = find(cx, from)?;
            if from.oid == COLLATION_DEFAULT {
                base::bail!(INVALID_OBJECT_DEFINITION, "collation \"default\" cannot be copied");
            }
            Collation::clone(&from)
        }
        CollationDef::Options { libc, icu_locale, deterministic, version } => {
            if let Some((collate, ctype)) = libc {
                [collate, ctype].into_iter().try_for_each(|l| check_locale(l))?;
            }
            let own = icu_locale.as_ref().map(|_| types::collation::VERSION.to_owned());
            Collation {
                provider: if icu_locale.is_some() { 'i' } else { 'c' },
                deterministic: *deterministic,
                libc: libc.clone(),
                icu_locale: icu_locale.clone(),
                version: version.clone().or(own),
                encoding: if icu_locale.is_some() { -1 } else { catalog::collation::UTF8 },
                ..Collation::default()
            }
        }
    };
    // Opened once, so that what can't be opened is no collation.
    made.slot()?;
    name::reserve(cx, schema, &name.name)?;
    if cx.catalog_tx.view().collation_in(schema, &name.name).is_some() {
        let encoding = for_encoding(made.encoding);
        let message = format!("collation \"{}\"{encoding} already exists", name.name);
        if !if_not_exists {
            return Err(err!(DUPLICATE_OBJECT, "{message}"));
        }
        notice(cx, base::sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
        return Ok(());
    }
    (made.oid, made.schema, made.owner) = (super::new_oid(cx, schema)?, schema, cx.role);
    made.name.clone_from(&name.name);
    put(cx, made)
}

/// As messages name a collation's encoding.
fn for_encoding(encoding: i32) -> &'static str {
    if encoding == catalog::collation::UTF8 { " for encoding \"UTF8\"" } else { "" }
}

/// The C library's locales that there are compare bytes.
fn check_locale(locale: &str) -> Result<()> {
    if database::LOCALES.contains(&locale) {
        return Ok(());
    }
    Err(err!(
        INVALID_PARAMETER_VALUE,
        "could not create locale \"{locale}\": No such file or directory"
    )
    .detail(format!(
        "The operating system could not find any locale data for the locale name \"{locale}\"."
    )))
}

/// ALTER COLLATION … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(cx: &mut ExecContext<'_>, name: &Name, to: &sql::role::RoleRef) -> Result<()> {
    let found = owned(cx, name)?;
    let to = rights::role(cx, to)?;
    if found.owner == to {
        return Ok(());
    }
    rights::require_membership(cx, to)?;
    rights::require_creation(cx, to, found.schema)?;
    reassign(cx, &found, to)
}

/// Gives a collation to another role.
///
/// # Errors
/// Those of the catalog.
pub fn reassign(cx: &mut ExecContext<'_>, collation: &Collation, to: u32) -> Result<()> {
    put(cx, Collation { owner: to, ..collation.clone() })
}

/// The collation that DROP names.
///
/// # Errors
/// `42704` when there is none; `2BP01` for those of the server.
pub fn find_to_drop(
    cx: &mut ExecContext<'_>,
    name: &Name,
    if_exists: bool,
) -> Result<Option<Item>> {
    let found = match find(cx, name) {
        Err(error) if if_exists => {
            let message = error.message().replace(" for encoding \"UTF8\"", "");
            let message = format!("{message}, skipping");
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            return Ok(None);
        }
        found => found?,
    };
    rights::require_owner(cx, AclKind::Collation, found.oid, "collation", &found.name)?;
    if found.oid < base::Oid::FIRST_USER.0 {
        base::bail!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop collation {} because it is required by the database system",
            types::func::quote_ident(&found.name)
        );
    }
    name::reserve(cx, found.oid, "")?;
    Ok(Some(Item::Collation(found.oid)))
}
