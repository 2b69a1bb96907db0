//! CREATE, ALTER and DROP SEQUENCE, and the sequences that come with columns.

use base::{Error, Oid, Result, bail, err};
use catalog::sequence::Value;
use catalog::snapshot::Relation;
use catalog::{AclKind, Identity, Object, Sequence, Table};
use exec::context::ExecContext;
use exec::rights;
use exec::session::sequence::type_range;
use sql::utility::{AlterTable, ColumnSequence, Name, OwnedBy, Persistence, SequenceOptions};
use txn::LockMode;
use types::oids;

use super::{lock, name, notice, refresh};
use crate::column::{new_files, table_action};
use crate::describe::describe;
use crate::forget::remove_comments;
use crate::item::Item;
use crate::role::owner::{check_new_owner, reassign_sequence};

/// CREATE SEQUENCE.
///
/// # Errors
/// `42P07`, `22023`, those of OWNED BY.
pub fn create(
    cx: &mut ExecContext<'_>,
    name: &Name,
    options: &SequenceOptions,
    if_not_exists: bool,
    persistence: Persistence,
) -> Result<()> {
    let schema = name::creation_schema(cx, &name.unplaced(), persistence)?;
    name::reserve(cx, schema, &name.name)?;
    if cx.catalog_tx.view().relation_in(schema, &name.name).is_some() {
        let message = format!("relation \"{}\" already exists", name.name);
        if !if_not_exists {
            return Err(err!(DUPLICATE_TABLE, "{message}"));
        }
        notice(cx, base::sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"));
        return Ok(());
    }
    let mut sequence = Sequence {
        name: name.name.clone(),
        schema,
        owner: cx.role,
        unlogged: persistence == Persistence::Unlogged,
        ..Sequence::default()
    };
    let start = apply(&mut sequence, options, None)?;
    if let Some(owner) = &options.owned_by {
        sequence.owned_by = owned_by(cx, owner, &sequence)?;
    }
    make(cx, sequence, start).map(drop)
}

/// Files and object of a new sequence that begins at `start`.
fn make(cx: &mut ExecContext<'_>, mut sequence: Sequence, start: Value) -> Result<Sequence> {
    sequence.oid = super::new_oid(cx, sequence.schema)?;
    sequence.rel = new_files(cx, sequence.oid)?.0;
    cx.engine.catalog.sequences.create(sequence.rel, start)?;
    cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(sequence.clone())))?;
    let (id, owner, schema) = (sequence.oid, sequence.owner, sequence.schema);
    rights::begin(cx, AclKind::Sequence, id, owner, schema)?;
    Ok(sequence)
}

/// Applies options to a sequence, new (`now` is None) or old; where it stands afterwards.
fn apply(sequence: &mut Sequence, options: &SequenceOptions, now: Option<Value>) -> Result<Value> {
    let fresh = now.is_none();
    let old_range = type_range(Oid(sequence.ty));
    let (mut max, mut min) = (options.max, options.min);
    if fresh {
        (sequence.ty, sequence.increment, sequence.cache) = (oids::INT8.0, 1, 1);
        max.get_or_insert(None);
        min.get_or_insert(None);
    }
    if let Some(ty) = options.ty {
        if ![oids::INT2, oids::INT4, oids::INT8].contains(&ty) {
            bail!(
                INVALID_PARAMETER_VALUE,
                "{} must be smallint, integer, or bigint",
                if sequence.identity { "identity column type" } else { "sequence type" }
            );
        }
        // Bounds that were the old type's become the new one's.
        if !fresh && sequence.max == old_range.1 {
            max.get_or_insert(None);
        }
        if !fresh && sequence.min == old_range.0 {
            min.get_or_insert(None);
        }
        sequence.ty = ty.0;
    }
    if let Some(increment) = options.increment {
        if increment == 0 {
            bail!(INVALID_PARAMETER_VALUE, "INCREMENT must not be zero");
        }
        sequence.increment = increment;
    }
    sequence.cycle = options.cycle.unwrap_or(sequence.cycle);
    let (least, greatest) = type_range(Oid(sequence.ty));
    let up = sequence.increment > 0;
    if let Some(max) = max {
        sequence.max = max.unwrap_or(if up { greatest } else { -1 });
    }
    if let Some(min) = min {
        sequence.min = min.unwrap_or(if up { 1 } else { least });
    }
    let ty = types::io::format_type(Oid(sequence.ty), -1);
    if sequence.max > greatest || sequence.max < least {
        bail!(
            INVALID_PARAMETER_VALUE,
            "MAXVALUE ({}) is out of range for sequence data type {ty}",
            sequence.max
        );
    }
    if sequence.min > greatest || sequence.min < least {
        bail!(
            INVALID_PARAMETER_VALUE,
            "MINVALUE ({}) is out of range for sequence data type {ty}",
            sequence.min
        );
    }
    if sequence.min >= sequence.max {
        bail!(
            INVALID_PARAMETER_VALUE,
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            sequence.min,
            sequence.max
        );
    }
    match options.start {
        Some(start) => sequence.start = start,
        None if fresh => sequence.start = if up { sequence.min } else { sequence.max },
        None => {}
    }
    within(sequence, "START", sequence.start)?;
    if let Some(cache) = options.cache {
        if cache <= 0 {
            bail!(INVALID_PARAMETER_VALUE, "CACHE ({cache}) must be greater than zero");
        }
        sequence.cache = cache;
    }
    let value = match (options.restart, now) {
        (Some(Some(value)), _) => Value { last: value, is_called: false },
        (Some(None), _) | (None, None) => Value { last: sequence.start, is_called: false },
        (None, Some(now)) => now,
    };
    within(sequence, "RESTART", value.last)?;
    Ok(value)
}

fn within(sequence: &Sequence, what: &str, value: i64) -> Result<()> {
    if value < sequence.min {
        bail!(
            INVALID_PARAMETER_VALUE,
            "{what} value ({value}) cannot be less than MINVALUE ({})",
            sequence.min
        );
    }
    if value > sequence.max {
        bail!(
            INVALID_PARAMETER_VALUE,
            "{what} value ({value}) cannot be greater than MAXVALUE ({})",
            sequence.max
        );
    }
    Ok(())
}

/// Resolves OWNED BY.
fn owned_by(
    cx: &mut ExecContext<'_>,
    owner: &OwnedBy,
    sequence: &Sequence,
) -> Result<Option<(u32, u16)>> {
    let OwnedBy::Column { table, column } = owner else { return Ok(None) };
    let table = super::open_table(cx, table, LockMode::AccessShare)?;
    if table.owner != sequence.owner {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must have same owner as table it is linked to"
        );
    }
    if table.schema != sequence.schema {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must be in same schema as table it is linked to"
        );
    }
    match table.column(column) {
        Some((number, _)) => Ok(Some((table.oid, number))),
        None => bail!(
            UNDEFINED_COLUMN,
            "column \"{column}\" of relation \"{}\" does not exist",
            table.name
        ),
    }
}

/// A sequence by name, locked.
///
/// # Errors
/// `42P01`, `42809`.
pub fn open(cx: &mut ExecContext<'_>, name: &Name) -> Result<Sequence> {
    let find = |cx: &mut ExecContext<'_>| {
        let view = cx.catalog_tx.view();
        let schema = name.schema.as_deref();
        match view.relation(cx.search_path, schema, &name.name) {
            Some(Relation::Sequence(sequence)) => Ok(Sequence::clone(&sequence)),
            Some(_) => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", name.name)),
            None => Err(view.missing_relation(schema, &name.name)),
        }
    };
    let found = find(cx)?;
    rights::require_owner(cx, AclKind::Sequence, found.oid, "sequence", &found.name)?;
    lock(cx, found.oid, LockMode::ShareRowExclusive)?;
    find(cx)
}

/// ALTER SEQUENCE … OWNER TO. The caller has seen that it is the session's to change.
///
/// # Errors
/// `42501`; `0A000` for other steps, and for a sequence that belongs to a table.
pub fn alter_as_table(cx: &mut ExecContext<'_>, id: u32, step: &AlterTable) -> Result<()> {
    let AlterTable::Owner(role) = step else {
        if let Some(action) = table_action(step)
            && let Some(sequence) = cx.catalog_tx.view().sequence(id)
        {
            let name = &sequence.name;
            let message =
                format!("ALTER action {action} cannot be performed on relation \"{name}\"");
            return Err(Error::new(base::sqlstate::WRONG_OBJECT_TYPE, message)
                .detail("This operation is not supported for sequences."));
        }
        return Err(Error::unsupported("this form of ALTER for a sequence"));
    };
    lock(cx, id, LockMode::AccessExclusive)?;
    let to = rights::role(cx, role)?;
    let view = cx.catalog_tx.view();
    let Some(sequence) = view.sequence(id).filter(|s| s.owner != to) else { return Ok(()) };
    if let Some((table, _)) = sequence.owned_by {
        let table = refresh(cx, table)?;
        let message = format!("cannot change owner of sequence \"{}\"", sequence.name);
        return Err(Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, message).detail(format!(
            "Sequence \"{}\" is linked to table \"{}\".",
            sequence.name, table.name
        )));
    }
    check_new_owner(to, sequence.schema, cx)?;
    reassign_sequence(sequence, to, cx)
}

/// ALTER SEQUENCE with options.
///
/// # Errors
/// As [`create`].
pub fn alter(
    cx: &mut ExecContext<'_>,
    name: &Name,
    options: &SequenceOptions,
    if_exists: bool,
) -> Result<()> {
    let mut sequence = match open(cx, name) {
        Err(error) if if_exists && error.code() == base::sqlstate::UNDEFINED_TABLE => {
            let message = format!("relation \"{}\" does not exist, skipping", name.name);
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        other => other?,
    };
    if let Some(owner) = &options.owned_by {
        if sequence.identity {
            let (table, _) = sequence.owned_by.unwrap_or_default();
            let table = refresh(cx, table)?;
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot change ownership of identity sequence"
            )
            .detail(format!(
                "Sequence \"{}\" is linked to table \"{}\".",
                sequence.name, table.name
            )));
        }
        sequence.owned_by = owned_by(cx, owner, &sequence)?;
    }
    change(cx, sequence, options)
}

/// Puts options into an existing sequence. What is new of its value is in a new file, so that a
/// rollback takes it back.
///
/// # Errors
/// As [`create`].
pub fn change(
    cx: &mut ExecContext<'_>,
    mut sequence: Sequence,
    options: &SequenceOptions,
) -> Result<()> {
    let (now, _) = cx.engine.catalog.sequences.peek(sequence.rel)?;
    let value = apply(&mut sequence, options, Some(now))?;
    if options.restart.is_some() {
        cx.catalog_tx.drop_files_at_commit(base::RelId(sequence.rel));
        sequence.rel = new_files(cx, sequence.oid)?.0;
        cx.engine.catalog.sequences.create(sequence.rel, value)?;
    }
    cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(sequence)))
}

/// TRUNCATE … RESTART IDENTITY: the sequences of a table's columns begin anew.
///
/// # Errors
/// I/O, those of the catalog.
pub fn restart_owned(cx: &mut ExecContext<'_>, table: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let owned: Vec<Sequence> = view
        .sequences()
        .filter(|s| s.owned_by.is_some_and(|o| o.0 == table))
        .map(|s| Sequence::clone(s))
        .collect();
    let restart = SequenceOptions { restart: Some(None), ..SequenceOptions::default() };
    for sequence in owned {
        lock(cx, sequence.oid, LockMode::ShareRowExclusive)?;
        change(cx, sequence, &restart)?;
    }
    Ok(())
}

/// Takes a sequence and its file away.
///
/// # Errors
/// Those of the catalog.
pub fn remove(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(sequence) = view.sequence(id) else { return Ok(()) };
    cx.catalog_tx.drop_files_at_commit(base::RelId(sequence.rel));
    remove_comments(cx, id)?;
    cx.catalog_tx.remove(cx.tx, id)
}

/// Makes the sequence of a serial or identity column and ties the column to it.
///
/// # Errors
/// As [`create`].
pub fn add_to_column(
    cx: &mut ExecContext<'_>,
    table: &mut Table,
    number: u16,
    def: &ColumnSequence,
) -> Result<()> {
    let at = usize::from(number) - 1;
    let column = table.columns[at].name.clone();
    let view = cx.catalog_tx.view();
    let (schema, chosen) = match &def.options.name {
        Some(given) => {
            let schema = name::creation_schema(cx, &given.unplaced(), Persistence::Permanent)?;
            (schema, given.name.clone())
        }
        None => {
            let taken = |name: &str| view.relation_in(table.schema, name).is_some();
            (table.schema, name::choose(&table.name, &[&column], "seq", &taken))
        }
    };
    name::reserve_relation(cx, schema, &chosen)?;
    let mut sequence = Sequence {
        name: chosen,
        schema,
        owner: table.owner,
        owned_by: Some((table.oid, number)),
        identity: def.identity.is_some(),
        unlogged: table.unlogged,
        ..Sequence::default()
    };
    let start = apply(&mut sequence, &def.options, None)?;
    let sequence = make(cx, sequence, start)?;
    let column = &mut table.columns[at];
    match def.identity {
        Some(always) => column.identity = Some(Identity { always, sequence: sequence.oid }),
        None => {
            column.default = Some(format!("nextval('{}'::regclass)", sequence.oid));
            column.default_uses = vec![sequence.oid];
        }
    }
    Ok(())
}

/// DROP SEQUENCE of one that an identity column needs.
///
/// # Errors
/// `2BP01`.
pub fn check_free(cx: &mut ExecContext<'_>, sequence: &Sequence) -> Result<()> {
    let (Some((table, number)), true) = (sequence.owned_by, sequence.identity) else {
        return Ok(());
    };
    let view = cx.catalog_tx.view();
    let path = cx.search_path;
    let column = describe(&view, path, Item::Column(table, number));
    let what = describe(&view, path, Item::Sequence(sequence.oid));
    Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because {column} requires it")
        .hint(format!("You can drop {column} instead.")))
}

/// The sequence of an identity column.
///
/// # Errors
/// `XX000` when it is gone.
pub fn of_identity(cx: &mut ExecContext<'_>, identity: Identity) -> Result<Sequence> {
    let view = cx.catalog_tx.view();
    view.sequence(identity.sequence)
        .map(|s| Sequence::clone(s))
        .ok_or_else(|| Error::internal("an identity column without its sequence"))
}
