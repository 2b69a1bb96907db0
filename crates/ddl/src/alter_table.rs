//! ALTER TABLE: one function a step.

use base::{Error, Oid, Result, err};
use catalog::snapshot::Relation;
use catalog::{Column, Object, Table, TableKind};
use exec::context::ExecContext;
use exec::rights;
use exec::session::quote_identifier;
use exec::spi::{As, expression_value, rows_of, with_context_as};
use sql::column_keeping::ColumnKeeping;
use sql::utility::{AlterTable, ColumnDef, LaterPasses, Name, Utility};
use txn::LockMode;

use super::{
    constraint, identity, inherit, notice, open_owned, refresh, relation, rewrite, sequence,
};
use crate::column::{check_column_name, check_count, column, missing_column, table_action};
use crate::column_type::{self, TypeChange};
use crate::maintain::clustered::{index_of, note};
use crate::role::owner::{check_new_owner, reassign_table};

/// ALTER TABLE.
pub fn run(
    kind: &str,
    name: &Name,
    if_exists: bool,
    passes: (&[AlterTable], Option<&LaterPasses>),
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    run_passes(kind, name, if_exists, passes, None, cx)
}

/// The first pass, then those after it. `held`: the lock that an earlier pass of the statement took for all of them.
fn run_passes(
    kind: &str,
    name: &Name,
    if_exists: bool,
    (steps, later): (&[AlterTable], Option<&LaterPasses>),
    held: Option<LockMode>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let named = cx.catalog_tx.view().relation(cx.search_path, name.schema.as_deref(), &name.name);
    if let Some(found) = named {
        relation::require_owner(cx, &found)?;
        relation::expect(kind, &found)?;
        if let Relation::Index(index) = &found {
            return alter_index(index.oid, steps, cx);
        }
        if let Relation::Sequence(sequence) = found {
            let mut steps = steps.iter();
            return steps.try_for_each(|step| sequence::alter_as_table(cx, sequence.oid, step));
        }
    }
    let level = match later.is_some_and(|later| later.exclusive) {
        true => LockMode::AccessExclusive,
        false => held.unwrap_or_else(|| lock_level(steps)),
    };
    let table = match open_owned(cx, name, level) {
        Err(error) if if_exists && error.code() == base::sqlstate::UNDEFINED_TABLE => {
            let message = format!("relation \"{}\" does not exist, skipping", name.name);
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        other => other?,
    };
    super::expect_checked(cx, &table, "ALTER TABLE")?;
    super::type_usage::check_steps(steps, cx)?;
    if table.kind == catalog::TableKind::View
        && steps.iter().any(|s| {
            !matches!(
                s,
                AlterTable::Owner(_)
                    | AlterTable::CheckOption(_)
                    | AlterTable::SetOptions(_)
                    | AlterTable::ResetOptions(_)
                    | AlterTable::EnableTrigger { .. }
                    | AlterTable::EnableRule { .. }
                    | AlterTable::SetDefault { .. }
            )
        })
    {
        let Some(action) = steps.iter().find_map(table_action) else {
            return Err(Error::unsupported("this form of ALTER for a view"));
        };
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "ALTER action {action} cannot be performed on relation \"{}\"",
            table.name
        )
        .detail("This operation is not supported for views."));
    }
    steps.iter().try_for_each(|step| super::foreign::table::check_step(&table, step))?;
    if table.of_type != 0 {
        steps.iter().try_for_each(check_typed)?;
    }
    run_steps(steps, table.oid, name.only, cx)?;
    let Some(later) = later else { return Ok(()) };
    let own = As { role: Some((cx.role, cx.user.to_owned())), ..As::default() };
    match with_context_as(cx, &own, |cx| later.bind(cx))? {
        Utility::AlterTable { kind, table, steps, later, .. } => {
            run_passes(kind, &table, false, (&steps, later.as_ref()), Some(level), cx)
        }
        _ => Err(Error::internal("a pass of ALTER TABLE is another statement")),
    }
}

/// The steps of one pass. Types are changed together: USING reads the rows as they were before.
fn run_steps(steps: &[AlterTable], id: u32, only: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let changes: Vec<TypeChange<'_>> = steps.iter().filter_map(column_type::change_of).collect();
    if !changes.is_empty() {
        change_types(cx, id, &changes, only)?;
    }
    let others = steps.iter().filter(|step| column_type::change_of(step).is_none());
    others.into_iter().try_for_each(|step| run_step(step, id, only, cx))
}

/// `42809` for what can't be done to a table that has the columns of a type.
fn check_typed(step: &AlterTable) -> Result<()> {
    let what = match step {
        AlterTable::AddColumn { .. } => "add column to typed table",
        AlterTable::DropColumn { .. } => "drop column from typed table",
        AlterTable::SetType { .. } => "alter column type of typed table",
        AlterTable::Inherit(_) | AlterTable::NoInherit(_) => "change inheritance of typed table",
        _ => return Ok(()),
    };
    Err(err!(WRONG_OBJECT_TYPE, "cannot {what}"))
}

/// Whether a storage parameter of a table, view or index is changed while nobody reads: what plans and scans depend
/// on.
fn keeps_out(option: &str) -> bool {
    const OPTIONS: &[&str] = &[
        "autosummarize",
        "buffering",
        "check_option",
        "fastupdate",
        "gin_pending_list_limit",
        "pages_per_range",
        "security_barrier",
        "security_invoker",
        "user_catalog_table",
    ];
    OPTIONS.contains(&option)
}

/// The weakest lock under which all steps may run: the manual's notes on ALTER TABLE. A step that only
/// says how later statements go on lets readers and writers be.
fn lock_level(steps: &[AlterTable]) -> LockMode {
    let level = |step: &AlterTable| match step {
        AlterTable::SetOptions(options) if options.iter().any(|(name, _)| keeps_out(name)) => {
            LockMode::AccessExclusive
        }
        AlterTable::ResetOptions(names) if names.iter().any(|name| keeps_out(name)) => {
            LockMode::AccessExclusive
        }
        AlterTable::SetOptions(_)
        | AlterTable::ResetOptions(_)
        | AlterTable::ClusterOn(_)
        | AlterTable::SetStatistics { .. }
        | AlterTable::Keep { how: ColumnKeeping::Options { .. }, .. }
        | AlterTable::Partition(sql::partition::PartitionCommand::Finalize(_))
        | AlterTable::ValidateConstraint(_) => LockMode::ShareUpdateExclusive,
        AlterTable::AddConstraint(def)
            if matches!(def.kind, sql::utility::ConstraintDefKind::ForeignKey { .. }) =>
        {
            LockMode::ShareRowExclusive
        }
        AlterTable::EnableTrigger { .. } => LockMode::ShareRowExclusive,
        _ => LockMode::AccessExclusive,
    };
    steps.iter().map(level).max().unwrap_or(LockMode::ShareUpdateExclusive)
}

/// ALTER INDEX (or TABLE) of an index: SET and RESET of its parameters.
fn alter_index(id: u32, steps: &[AlterTable], cx: &mut ExecContext<'_>) -> Result<()> {
    for step in steps {
        let view = cx.catalog_tx.view();
        let Some(index) = view.index(id) else { return Ok(()) };
        // Readers lock tables, not their indexes.
        let mode = match step {
            AlterTable::SetOptions(_) | AlterTable::ResetOptions(_) => {
                lock_level(std::slice::from_ref(step))
            }
            _ => LockMode::ShareUpdateExclusive,
        };
        super::lock(cx, index.table, mode)?;
        let view = cx.catalog_tx.view();
        let Some(mut index) = view.index(id).map(|i| catalog::Index::clone(i)) else {
            return Ok(());
        };
        match step {
            AlterTable::SetOptions(options) => {
                for (name, value) in options {
                    index.options.retain(|(n, _)| n != name);
                    index.options.push((name.clone(), value.clone()));
                }
            }
            AlterTable::ResetOptions(names) => index.options.retain(|(n, _)| !names.contains(n)),
            AlterTable::Owner(_) => continue,
            AlterTable::IndexStatistics(number, target) => {
                check_index_column(&view, &index, *number)?;
                let at = usize::try_from(number - 1).unwrap_or_default();
                if let Some(key) = index.columns.get_mut(at) {
                    key.statistics = *target;
                }
            }
            AlterTable::Partition(sql::partition::PartitionCommand::AttachIndex(part)) => {
                super::partition::attach_index(cx, id, part)?;
                continue;
            }
            step => {
                let Some(action) = table_action(step) else {
                    return Err(Error::unsupported("this form of ALTER for an index"));
                };
                return Err(err!(
                    WRONG_OBJECT_TYPE,
                    "ALTER action {action} cannot be performed on relation \"{}\"",
                    index.name
                )
                .detail("This operation is not supported for indexes."));
            }
        }
        cx.catalog_tx.put(cx.tx, catalog::Object::Index(index))?;
    }
    Ok(())
}

/// ALTER INDEX … ALTER COLUMN number SET STATISTICS is for expressions.
fn check_index_column(view: &catalog::Snapshot, index: &catalog::Index, number: i32) -> Result<()> {
    if !(1..=i32::from(i16::MAX)).contains(&number) {
        base::bail!(INVALID_PARAMETER_VALUE, "column number must be in range from 1 to 32767");
    }
    let at = number as usize - 1;
    let key = index.columns.get(at).map(|key| (key.column, key.expression.is_some()));
    let included = || Some((*index.include.get(at - index.columns.len())?, false));
    let Some((column, is_expression)) = key.or_else(included) else {
        base::bail!(
            UNDEFINED_COLUMN,
            "column number {number} of relation \"{}\" does not exist",
            index.name
        );
    };
    if is_expression {
        return Ok(());
    }
    let table = view.table(index.table);
    let name = table.and_then(|t| t.columns.get(usize::from(column) - 1)).map_or("", |c| &c.name);
    let what = if at < index.columns.len() { "non-expression" } else { "included" };
    let message =
        format!("cannot alter statistics on {what} column \"{name}\" of index \"{}\"", index.name);
    let error = Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, message);
    Err(if what == "included" {
        error
    } else {
        error.hint("Alter statistics on table column instead.")
    })
}

pub(crate) fn run_step(
    step: &AlterTable,
    id: u32,
    only: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match step {
        AlterTable::ForeignOptions(options) => super::foreign::table::set_options(cx, id, options),
        AlterTable::ColumnForeignOptions { column, options } => {
            super::foreign::table::set_column_options(cx, id, column, options)
        }
        AlterTable::CheckOption(check) => {
            let mut table = refresh(cx, id)?;
            if let Some(query) = &mut table.query {
                query.check = *check;
            }
            cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
        }
        AlterTable::RowSecurity(on) => super::policy::enable(id, Some(*on), None, cx),
        AlterTable::ForceRowSecurity(on) => super::policy::enable(id, None, Some(*on), cx),
        AlterTable::EnableRule { name, enabled } => super::rule::enable(id, name, *enabled, cx),
        AlterTable::EnableTrigger { which, enabled } => {
            super::trigger::enable(id, which, *enabled, only, cx)
        }
        AlterTable::AddColumn { column, constraints, if_not_exists } => {
            inherit::add_column(cx, id, column, constraints, *if_not_exists, only)
        }
        AlterTable::DropColumn { name, if_exists, cascade } => {
            inherit::drop_column(cx, id, name, *if_exists, *cascade, only)
        }
        AlterTable::SetDefault { column, default, uses } => {
            let default = default.as_deref();
            inherit::each(cx, id, only, |cx, id| set_default(cx, id, column, default, uses))
        }
        AlterTable::SetNotNull { column, not_null } => {
            inherit::check_not_null(cx, id, column, only, *not_null)?;
            inherit::each(cx, id, only, |cx, id| set_not_null(cx, id, column, *not_null))
        }
        AlterTable::SetStatistics { column, target } => {
            let mode = LockMode::ShareUpdateExclusive;
            inherit::each_under(cx, id, only, mode, |cx, id| {
                let mut table = refresh(cx, id)?;
                column_mut(&mut table, column)?.statistics = *target;
                put(cx, table)
            })
        }
        AlterTable::Keep { column, how } => {
            let alone = matches!(how, ColumnKeeping::Options { .. });
            inherit::each(cx, id, only || alone, |cx, id| keep(cx, id, column, how))
        }
        AlterTable::IndexStatistics(..) => {
            let table = refresh(cx, id)?;
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot refer to non-index column by number on relation \"{}\"",
                table.name
            )
        }
        AlterTable::SetLogged(logged) => set_logged(cx, id, *logged),
        AlterTable::SetMethod(method) => set_method(cx, id, method),
        AlterTable::Of(ty) => super::composite::set_of_type(cx, id, *ty),
        AlterTable::SetType { .. } => {
            let changes: Vec<TypeChange<'_>> = column_type::change_of(step).into_iter().collect();
            change_types(cx, id, &changes, only)
        }
        AlterTable::AddConstraint(def) => inherit::add_constraint(cx, id, def, only),
        AlterTable::DropConstraint { name, if_exists, cascade } => {
            inherit::drop_constraint(cx, id, name, *if_exists, *cascade, only)
        }
        AlterTable::SetOptions(options) => {
            let mut table = refresh(cx, id)?;
            for (name, value) in options {
                table.options.retain(|(n, _)| n != name);
                table.options.push((name.clone(), value.clone()));
            }
            let partitions = exec::redistribute::PARTITIONS;
            if options.iter().any(|(name, _)| name == partitions) {
                if table.partitioning.is_none() {
                    base::bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{partitions}\"");
                }
                if !exec::redistribute::check(&cx.catalog_tx.view(), &table)? {
                    table.options.retain(|(name, _)| name != partitions);
                }
            }
            exec::interval::check(&table, cx)?;
            put(cx, table)
        }
        AlterTable::ResetOptions(names) => {
            let mut table = refresh(cx, id)?;
            table.options.retain(|(n, _)| !names.contains(n));
            if let Some(query) =
                table.query.as_mut().filter(|_| names.iter().any(|n| n == "check_option"))
            {
                query.check = catalog::CheckOption::None;
            }
            put(cx, table)
        }
        AlterTable::AddIdentity { column, always, options } => {
            identity::add(cx, id, column, *always, options)
        }
        AlterTable::SetIdentity { column, always, options } => {
            identity::set(cx, id, column, *always, options)
        }
        AlterTable::DropIdentity { column, if_exists } => {
            identity::drop(cx, id, column, *if_exists)
        }
        AlterTable::DropExpression { column, if_exists } => {
            if only && !inherit::child_ids(cx, id)?.is_empty() {
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "ALTER TABLE / DROP EXPRESSION must be applied to child tables too"
                );
            }
            let table = refresh(cx, id)?;
            if table.column(column).is_some_and(|(_, c)| c.generated && c.inherited > 0) {
                base::bail!(
                    INVALID_TABLE_DEFINITION,
                    "cannot drop generation expression from inherited column"
                );
            }
            let drop = |cx: &mut ExecContext<'_>, id| {
                identity::drop_expression(cx, id, column, *if_exists)
            };
            inherit::each(cx, id, only, drop)
        }
        AlterTable::ValidateConstraint(name) => inherit::validate(cx, id, name, only),
        AlterTable::Partition(command) => super::partition::run(cx, id, command),
        AlterTable::Inherit(parent) => inherit::inherit(cx, id, parent),
        AlterTable::NoInherit(parent) => inherit::no_inherit(cx, id, parent),
        AlterTable::ReplicaIdentity(letter, index) => {
            super::replica_identity::set(cx, id, *letter, index)
        }
        AlterTable::ClusterOn(name) => {
            let table = refresh(cx, id)?;
            let index = match name {
                Some(name) => Some(index_of(cx, &table, name)?.oid),
                None => None,
            };
            if table.is_partitioned() {
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot mark index clustered in partitioned table"
                );
            }
            note(cx, id, index)
        }
        AlterTable::AlterConstraint { name, deferrable, deferred } => {
            constraint::alter(cx, id, name, *deferrable, *deferred)
        }
        AlterTable::Owner(role) => {
            let owner = rights::role(cx, role)?;
            let table = refresh(cx, id)?;
            if table.owner == owner {
                return Ok(());
            }
            check_new_owner(owner, table.schema, cx)?;
            reassign_table(table, owner, cx)
        }
    }
}

/// Changes the types of columns of a table, and of the tables that inherit from it.
///
/// # Errors
/// `42P16` for a column that is inherited, those of each table's change.
fn change_types(
    cx: &mut ExecContext<'_>,
    id: u32,
    changes: &[TypeChange<'_>],
    only: bool,
) -> Result<()> {
    for change in changes {
        let must = format!(
            "type of inherited column \"{}\" must be changed in child tables too",
            change.name
        );
        let shared = refresh(cx, id)?;
        inherit::check_shared(cx, &shared, change.name, only, "alter", &must)?;
        if let Some(identity) = shared.column(change.name).and_then(|(_, c)| c.identity) {
            identity::check_type(change.ty)?;
            let sequence = sequence::of_identity(cx, identity)?;
            let ty = Some(change.ty);
            let options = sql::utility::SequenceOptions { ty, ..Default::default() };
            sequence::change(cx, sequence, &options)?;
        }
    }
    inherit::each(cx, id, only, |cx, id| {
        let table = refresh(cx, id)?;
        super::shape_users::expect_no_column(cx, &table)?;
        column_type::change_one(cx, id, changes, super::shape_users::expect_no_expression)
    })
}

/// SET STORAGE, SET COMPRESSION, SET and RESET of a column's parameters.
fn keep(cx: &mut ExecContext<'_>, id: u32, name: &str, how: &ColumnKeeping) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let column = column_mut(&mut table, name)?;
    let fixed = types::TypeIo::get(Oid(column.ty)).is_some_and(|io| io.len >= 0);
    let refused = |what: &str| {
        let name = types::io::format_type(Oid(column.ty), -1);
        err!(FEATURE_NOT_SUPPORTED, "column data type {name} {what}")
    };
    match how {
        ColumnKeeping::Storage(storage) if *storage != 'p' && fixed => {
            return Err(refused("can only have storage PLAIN"));
        }
        ColumnKeeping::Compression(Some(_)) if fixed => {
            return Err(refused("does not support compression"));
        }
        ColumnKeeping::Storage(storage) => column.storage = Some(*storage),
        ColumnKeeping::Compression(method) => column.compression = *method,
        ColumnKeeping::Options { set, reset } => {
            let options = &mut column.options;
            let is_set = |name: &String| set.iter().any(|(n, _)| n == name);
            options.retain(|(name, _)| !reset.contains(name) && !is_set(name));
            options.extend(set.iter().cloned());
        }
    }
    put(cx, table)
}

/// SET LOGGED and UNLOGGED, of the table and its sequences.
///
/// # Errors
/// `42P16` where a logged table would refer to one that is not; for temporary tables.
fn set_logged(cx: &mut ExecContext<'_>, id: u32, logged: bool) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.is_temporary() {
        return Err(err!(
            INVALID_TABLE_DEFINITION,
            "cannot change logged status of table \"{}\" because it is temporary",
            table.name
        ));
    }
    if table.unlogged != logged {
        return Ok(());
    }
    let view = cx.catalog_tx.view();
    let others: Vec<u32> = match logged {
        true => table.foreign_keys().map(|(_, key)| key.table).collect(),
        false => table.referenced_by.clone(),
    };
    let other =
        others.into_iter().filter(|other| *other != id).filter_map(|other| view.table(other));
    if let Some(other) = other.into_iter().find(|other| other.unlogged == logged) {
        let (to, of) = if logged { ("logged", "unlogged") } else { ("unlogged", "logged") };
        return Err(err!(
            INVALID_TABLE_DEFINITION,
            "could not change table \"{}\" to {to} because it references {of} table \"{}\"",
            table.name,
            other.name
        ));
    }
    table.unlogged = !logged;
    put(cx, table)?;
    let owned = view.sequences().filter(|s| s.owned_by.is_some_and(|owner| owner.0 == id));
    for sequence in owned {
        let sequence =
            catalog::Sequence { unlogged: !logged, ..catalog::Sequence::clone(sequence) };
        cx.catalog_tx.put(cx.tx, Object::Sequence(Box::new(sequence)))?;
    }
    Ok(())
}

/// SET ACCESS METHOD: all methods of tables are the same one, so that rows stay where they are.
fn set_method(cx: &mut ExecContext<'_>, id: u32, method: &str) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.is_partitioned() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot change access method of a partitioned table");
    }
    table.method = crate::defined::method::table_method(&cx.catalog_tx.view(), method)?;
    put(cx, table)
}

/// SET and DROP DEFAULT.
fn set_default(
    cx: &mut ExecContext<'_>,
    id: u32,
    name: &str,
    default: Option<&str>,
    uses: &[u32],
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let relation = table.name.clone();
    let column = column_mut(&mut table, name)?;
    if column.identity.is_some() {
        let error = err!(
            SYNTAX_ERROR,
            "column \"{name}\" of relation \"{relation}\" is an identity column"
        );
        return Err(if default.is_none() {
            error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
        } else {
            error
        });
    }
    if column.generated {
        let error = err!(
            SYNTAX_ERROR,
            "column \"{name}\" of relation \"{relation}\" is a generated column"
        );
        return Err(if default.is_none() {
            error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
        } else {
            error
        });
    }
    column.default = default.map(str::to_owned);
    column.default_uses = uses.to_vec();
    put(cx, table)
}

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

fn column_mut<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Column> {
    match table.column(name) {
        Some((number, _)) => Ok(&mut table.columns[usize::from(number) - 1]),
        None => Err(missing_column(table, name)),
    }
}

fn has_rows(cx: &mut ExecContext<'_>, table: &Table) -> Result<bool> {
    if table.kind == TableKind::Foreign {
        return Ok(false);
    }
    let view = cx.catalog_tx.view();
    let mut any = false;
    exec::spi::query(&format!("SELECT 1 FROM {} LIMIT 1", rows_of(&view, table)), cx, &mut |_| {
        any = true;
        Ok(())
    })?;
    Ok(any)
}

/// ADD COLUMN. Rows that are there read the default's value of this moment.
///
/// # Errors
/// Those of the definition; `23502`.
pub fn add_column(
    cx: &mut ExecContext<'_>,
    id: u32,
    def: &ColumnDef,
    if_not_exists: bool,
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    check_column_name(&def.name)?;
    if table.column(&def.name).is_some() {
        let message =
            format!("column \"{}\" of relation \"{}\" already exists", def.name, table.name);
        if !if_not_exists {
            return Err(err!(DUPLICATE_COLUMN, "{message}"));
        }
        notice(cx, base::sqlstate::DUPLICATE_COLUMN, format!("{message}, skipping"));
        return Ok(());
    }
    check_count(table.columns.len() + 1)?;
    let mut column = column(def);
    super::follow::make_room(cx, &table, &column)?;
    super::foreign::table::new_column(&table, &mut column, def, cx)?;
    if table.kind == TableKind::Foreign {
        return add_to_foreign(cx, table, column, def);
    }
    if def.generated || def.sequence.is_some() || def.default_volatile {
        return fill_column(cx, table, column, def);
    }
    if table.row_type[0] != 0
        && super::user_types::has_inside(&cx.catalog_tx.view(), def.ty.0, table.row_type[0])
    {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "composite type {} cannot be made a member of itself",
            types::io::format_type(Oid(table.row_type[0]), -1)
        );
    }
    let default = match &def.default {
        Some(default) => Some(expression_value(default, def.ty, def.typmod, table.owner, cx)?),
        // A domain's default; NULL is checked only where there are rows.
        None if types::user::is_user(def.ty) => {
            let value = |cx: &mut ExecContext<'_>| exec::spi::type_default(def.ty, cx);
            match exec::security::restricted(cx, table.owner, value) {
                Err(error) if has_rows(cx, &table)? => return Err(error),
                value => value.ok(),
            }
        }
        None => None,
    };
    if let Some(value) = default {
        if !value.is_null() {
            let text = types::io::to_text(def.ty, &value, &cx.format.stored())?;
            column.missing = Some(text.to_string());
        }
    }
    if column.not_null && column.missing.is_none() && has_rows(cx, &table)? {
        let view = cx.catalog_tx.view();
        let schema = view.schema(table.schema).map_or("", |s| s.name.as_str());
        return Err(err!(
            NOT_NULL_VIOLATION,
            "column \"{}\" of relation \"{}\" contains null values",
            def.name,
            table.name
        )
        .table(schema, &table.name)
        .column(&def.name));
    }
    table.columns.push(column);
    put(cx, table)
}

/// ADD COLUMN of a foreign table: its rows are what they are.
fn add_to_foreign(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    column: Column,
    def: &ColumnDef,
) -> Result<()> {
    table.columns.push(column);
    if let Some(sequence) = &def.sequence {
        let number = table.columns.len() as u16;
        sequence::add_to_column(cx, &mut table, number, sequence)?;
    }
    put(cx, table)
}

/// ADD COLUMN whose value differs from row to row: writes the table anew.
fn fill_column(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    column: Column,
    def: &ColumnDef,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let mut list: Vec<String> = table
        .columns
        .iter()
        .map(|c| if c.dropped { "NULL".to_owned() } else { quote_identifier(&c.name) })
        .collect();
    let from = rows_of(&view, &table);
    let (name, not_null) = (column.name.clone(), column.not_null);
    table.columns.push(column);
    let number = table.columns.len() as u16;
    if let Some(sequence) = &def.sequence {
        sequence::add_to_column(cx, &mut table, number, sequence)?;
    }
    let column = &table.columns[usize::from(number) - 1];
    let value = match (&column.default, column.identity) {
        (Some(sql), _) => sql.clone(),
        (None, Some(identity)) => format!("nextval('{}'::regclass)", identity.sequence),
        (None, None) => "NULL".to_owned(),
    };
    list.push(format!("CAST(({value}) AS {})", types::io::format_type(def.ty, -1)));
    let select = format!("SELECT {} FROM {from}", list.join(", "));
    super::shape_users::expect_no_column(cx, &table)?;
    super::shape_users::expect_no_expression(cx, &table)?;
    super::event_trigger::rewriting(table.oid, 2, cx)?;
    rewrite(cx, table.clone(), &select, None)?;
    if not_null {
        let table = refresh(cx, table.oid)?;
        constraint::check_no_nulls(cx, &table, &name)?;
    }
    Ok(())
}

/// DROP COLUMN of one that is not there.
///
/// # Errors
/// `42703`, unless IF EXISTS was said.
pub fn missing_to_drop(
    cx: &mut ExecContext<'_>,
    table: &Table,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    if !if_exists {
        return Err(missing_column(table, name));
    }
    let message =
        format!("column \"{name}\" of relation \"{}\" does not exist, skipping", table.name);
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    Ok(())
}

fn set_not_null(cx: &mut ExecContext<'_>, id: u32, column: &str, not_null: bool) -> Result<()> {
    let mut table = refresh(cx, id)?;
    let Some((number, _)) = table.column(column) else {
        return Err(missing_column(&table, column));
    };
    if not_null {
        constraint::check_no_nulls(cx, &table, column)?;
    } else {
        if table.columns[usize::from(number) - 1].identity.is_some() {
            base::bail!(
                SYNTAX_ERROR,
                "column \"{column}\" of relation \"{}\" is an identity column",
                table.name
            );
        }
        let view = cx.catalog_tx.view();
        let in_primary = view
            .indexes_of(&table)
            .iter()
            .any(|i| i.primary && i.columns.iter().any(|c| c.column == number));
        if in_primary {
            base::bail!(INVALID_TABLE_DEFINITION, "column \"{column}\" is in a primary key");
        }
        super::replica_identity::keep_not_null(&view, &table, number, column)?;
    }
    column_mut(&mut table, column)?.not_null = not_null;
    put(cx, table)
}

/// DROP CONSTRAINT of one that is not there.
///
/// # Errors
/// `42704`, unless IF EXISTS was said.
pub fn missing_constraint(
    cx: &mut ExecContext<'_>,
    table: &Table,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
    if !if_exists {
        return Err(err!(UNDEFINED_OBJECT, "{message}"));
    }
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
    Ok(())
}
