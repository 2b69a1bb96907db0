//! `has_…_privilege`, `pg_has_role` and the functions over `aclitem`.

use base::{Oid, Result, err};
use catalog::acl::{self, privilege};
use catalog::object::ids;
use catalog::{AclItem, AclKind, Rights};
use types::func::SessionFunction as F;
use types::{Datum, oids};

use super::names;
use crate::run::Run;
use crate::session::args::{oid_at, text, text_at};

/// Functions over rights.
///
/// # Errors
/// `42704`, `42P01` and kin for names that name nothing; `22023` for words that are no rights.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    Ok(Some(match function {
        F::PgHasRole => has_role(args, run)?,
        F::RowSecurityActive => row_security(args, run)?,
        F::Acldefault => {
            let letter = match args.first() {
                Some(Datum::Char(c)) => char::from(*c),
                _ => text_at(args, 0).chars().next().unwrap_or(' '),
            };
            let owner = oid_at(args, 1);
            let items = match (letter, AclKind::of_letter(letter)) {
                ('c', _) => Vec::new(),
                ('L', _) => {
                    let privileges = privilege::SELECT | privilege::UPDATE;
                    vec![AclItem { grantee: owner, grantor: owner, privileges, grantable: 0 }]
                }
                (_, Some(kind)) => acl::default_items(kind, owner),
                _ => base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "unrecognized object type abbreviation: {letter}"
                ),
            };
            shown(&items, run)
        }
        F::Makeaclitem => {
            let words = words("any", text_at(args, 2))?;
            let bits = words.iter().fold(0, |all, (bit, _)| all | bit);
            let grantable = if args.get(3) == Some(&Datum::Bool(true)) { bits } else { 0 };
            let item = AclItem {
                grantee: oid_at(args, 0),
                grantor: oid_at(args, 1),
                privileges: bits,
                grantable,
            };
            let view = run.cx.catalog_tx.view();
            text(rights_of(run, &view).text(&item))
        }
        F::Aclcontains => match (args.first(), args.get(1)) {
            (Some(Datum::Array(items)), Some(item)) => Datum::Bool(items.items.contains(item)),
            _ => Datum::Null,
        },
        other => match other.name().strip_prefix("has_").and_then(|n| n.strip_suffix("_privilege"))
        {
            Some(what) => has_privilege(what, args, run)?,
            None => return Ok(None),
        },
    }))
}

fn rights_of<'a>(run: &Run<'_, '_>, view: &'a catalog::Snapshot) -> Rights<'a> {
    Rights { catalog: view, database: run.cx.database.1 }
}

fn shown(items: &[AclItem], run: &mut Run<'_, '_>) -> Datum {
    let view = run.cx.catalog_tx.view();
    let rights = rights_of(run, &view);
    Datum::array(oids::ACLITEM, items.iter().map(|i| text(rights.text(i))).collect())
}

/// A role by name or oid; 0: everybody.
fn role(value: &Datum, run: &mut Run<'_, '_>) -> Result<u32> {
    let name = match value {
        Datum::Text(name) => name,
        other => return Ok(oid_at(std::slice::from_ref(other), 0)),
    };
    if &**name == "public" {
        return Ok(0);
    }
    match run.cx.catalog_tx.view().role_named(name) {
        Some(role) => Ok(role.oid),
        None => Err(err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist")),
    }
}

/// The privileges that a function's objects can have.
fn known_words(what: &str) -> &'static [&'static str] {
    match what {
        "table" => {
            &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"]
        }
        "column" | "any_column" => &["SELECT", "INSERT", "UPDATE", "REFERENCES"],
        "sequence" => &["USAGE", "SELECT", "UPDATE"],
        "schema" => &["CREATE", "USAGE"],
        "database" => &["CREATE", "TEMPORARY", "TEMP", "CONNECT"],
        "function" => &["EXECUTE"],
        "tablespace" => &["CREATE"],
        "parameter" => &["SET", "ALTER SYSTEM"],
        _ => &["USAGE"],
    }
}

/// `SELECT, INSERT WITH GRANT OPTION`: bits, and whether they must be grantable.
fn words(what: &str, list: &str) -> Result<Vec<(u16, bool)>> {
    let one = |word: &str| {
        let word = word.trim();
        let upper = word.to_uppercase();
        let (plain, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(plain) => (plain, true),
            None => (upper.as_str(), false),
        };
        let bit = match what == "any" || known_words(what).contains(&plain) {
            // Nobody has it, and nobody asks for it but programs of old.
            true if plain == "RULE" => Some(0),
            true => privilege::named(plain),
            false => None,
        };
        match bit {
            Some(bit) => Ok((bit, option)),
            None => Err(err!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{word}\"")),
        }
    };
    list.split(',').map(one).collect()
}

/// Whether the policies of a table count for the session's role.
fn row_security(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let id = match args.first() {
        Some(Datum::Text(name)) => names::regclass_from_name(name, run)?,
        _ => oid_at(args, 0),
    };
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(id) else { return Ok(Datum::Bool(false)) };
    Ok(Datum::Bool(rights_of(run, &view).is_guarded(run.cx.role, table)))
}

fn has_role(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let (member, args) = match args {
        [member, rest @ ..] if rest.len() == 2 => (role(member, run)?, rest),
        rest => (run.cx.role, rest),
    };
    let of = match args.first() {
        Some(value) => role(value, run)?,
        None => return Ok(Datum::Null),
    };
    let view = run.cx.catalog_tx.view();
    let rights = rights_of(run, &view);
    for word in text_at(args, 1).split(',') {
        let held = match word.trim().to_uppercase().as_str() {
            "MEMBER" => rights.is_member(member, of),
            "USAGE" => rights.has_rights_of(member, of),
            "MEMBER WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION"
            | "USAGE WITH ADMIN OPTION"
            | "USAGE WITH GRANT OPTION" => rights.is_admin(member, of),
            _ => base::bail!(
                INVALID_PARAMETER_VALUE,
                "unrecognized privilege type: \"{}\"",
                word.trim()
            ),
        };
        if held {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn has_privilege(what: &str, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let without_role = if what == "column" { 3 } else { 2 };
    let (role, args) = match args {
        [first, rest @ ..] if rest.len() == without_role => (role(first, run)?, rest),
        rest => (run.cx.role, rest),
    };
    let Some(list) = args.last().map(|_| text_at(args, args.len() - 1).to_owned()) else {
        return Ok(Datum::Null);
    };
    if what == "parameter" {
        words(what, &list)?;
        let view = run.cx.catalog_tx.view();
        return Ok(Datum::Bool(rights_of(run, &view).is_superuser(role)));
    }
    let kind = match what {
        "table" | "column" | "any_column" => AclKind::Table,
        "sequence" => AclKind::Sequence,
        "schema" => AclKind::Schema,
        "database" => AclKind::Database,
        "function" => AclKind::Function,
        "type" => AclKind::Type,
        "language" => AclKind::Language,
        "tablespace" => AclKind::Tablespace,
        "foreign_data_wrapper" => AclKind::Wrapper,
        "server" => AclKind::Server,
        _ => return Err(base::Error::unsupported(format!("has_{what}_privilege"))),
    };
    // Of sequences the words come before the name.
    if what == "sequence" {
        words(what, &list)?;
    }
    let object = match args.first() {
        Some(Datum::Text(name)) => object(kind, name, run)?,
        _ => oid_at(args, 0),
    };
    let view = run.cx.catalog_tx.view();
    let of_column = match what {
        "column" => column(&view, object, &args[1])?,
        _ => None,
    };
    let words = words(what, &list)?;
    let rights = rights_of(run, &view);
    if rights.owner(kind, object).is_none() {
        return Ok(Datum::Null);
    }
    let mut held = rights.held(role, kind, object);
    let mut add = |more: acl::Held| {
        held.privileges |= more.privileges;
        held.grantable |= more.grantable;
    };
    match what {
        "any_column" => {
            for acl in view.column_acls(object) {
                add(rights.held_on_column(role, object, acl.column));
            }
        }
        "column" => match of_column {
            Some(number) => add(rights.held_on_column(role, object, number)),
            None => return Ok(Datum::Null),
        },
        _ => {}
    }
    let has = |(bit, option): &(u16, bool)| {
        (if *option { held.grantable } else { held.privileges }) & bit != 0
    };
    Ok(Datum::Bool(words.iter().any(has)))
}

/// A column's number; None when there is none with this number.
fn column(view: &catalog::Snapshot, table: u32, value: &Datum) -> Result<Option<u16>> {
    let known = match view.table(table) {
        Some(table) => table.clone(),
        None => match catalog::system::table_by_oid(Oid(table)) {
            Some(table) => table,
            None => return Ok(None),
        },
    };
    match value {
        Datum::Text(name) => match known.column(name) {
            Some((number, _)) => Ok(Some(number)),
            None => Err(err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                known.name
            )),
        },
        Datum::Int2(number) => {
            let live = |(n, _): &(u16, _)| i32::from(*n) == i32::from(*number);
            Ok(known.live_columns().find(live).map(|(n, _)| n))
        }
        _ => Ok(None),
    }
}

/// An object by name.
fn object(kind: AclKind, name: &str, run: &mut Run<'_, '_>) -> Result<u32> {
    let view = run.cx.catalog_tx.view();
    Ok(match kind {
        AclKind::Table => names::regclass_from_name(name, run)?,
        AclKind::Sequence => {
            let id = names::regclass_from_name(name, run)?;
            if rights_of(run, &view).owner(AclKind::Sequence, id).is_none() {
                base::bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a sequence");
            }
            id
        }
        AclKind::Schema => match view.schema_named(name) {
            Some(schema) => schema.oid,
            None => base::bail!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"),
        },
        AclKind::Wrapper => match view.wrapper_named(name) {
            Some(found) => found.oid,
            None => base::bail!(UNDEFINED_OBJECT, "foreign-data wrapper \"{name}\" does not exist"),
        },
        AclKind::Server => match view.foreign_server_named(name) {
            Some(found) => found.oid,
            None => base::bail!(UNDEFINED_OBJECT, "server \"{name}\" does not exist"),
        },
        AclKind::Database => match view.database_named(name) {
            Some(database) => database.oid,
            None => base::bail!(UNDEFINED_DATABASE, "database \"{name}\" does not exist"),
        },
        AclKind::Type => match names::input(oids::REGTYPE, name, run)? {
            Datum::Oid(id) => id,
            _ => 0,
        },
        AclKind::Function => function(name, run)?,
        AclKind::Language => match catalog::system::named::language(name) {
            Some(id) => id,
            None => base::bail!(UNDEFINED_OBJECT, "language \"{name}\" does not exist"),
        },
        AclKind::Collation | AclKind::Defined => {
            return Err(base::Error::internal("nothing is granted on collations"));
        }
        AclKind::Tablespace => match name {
            "pg_default" => ids::PG_DEFAULT,
            "pg_global" => 1664,
            _ => base::bail!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist"),
        },
    })
}

/// `name(type, …)`.
pub fn function(signature: &str, run: &mut Run<'_, '_>) -> Result<u32> {
    match names::input(oids::REGPROCEDURE, signature, run)? {
        Datum::Oid(id) => Ok(id),
        _ => Err(err!(UNDEFINED_FUNCTION, "function \"{signature}\" does not exist")),
    }
}
