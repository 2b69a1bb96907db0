//! Partitions: bounds of new ones, ATTACH, DETACH, and what a partition takes over from its table.
//!
//! A partition names its table ([`Table::parents`], the only one) and says what it holds ([`Table::bound`]);
//! the table's own row of the catalog does not change with it. Indexes, keys, foreign keys and row triggers of
//! the table have a part in each partition, which names the whole as its parent and goes with it.

use base::{Error, Oid, Result, err};
use catalog::object::Edge;
use catalog::partition::{Held, compare_edges, held};
use catalog::{
    Constraint, ConstraintKind, Index, Object, PartitionBound, PartitionKey, Partitioning,
    Snapshot, Table, TableKind, Trigger,
};
use exec::context::ExecContext;
use exec::spi::{expression_value, query_of};
use sql::partition::{BoundSpec, BoundValue, BoundValues};
use txn::LockMode;
use types::{Datum, FormatContext};

use super::{create_index, lock, name, refresh};
use crate::adopt::{adopt_columns, adopt_constraints};

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

fn wrong(message: String) -> Error {
    Error::new(base::sqlstate::INVALID_OBJECT_DEFINITION, message)
}

/// The bound that a statement says, its values computed.
///
/// # Errors
/// Those of the values; `22004` for a NULL in a range.
pub fn bound(
    cx: &mut ExecContext<'_>,
    by: &Partitioning,
    spec: &BoundSpec,
) -> Result<PartitionBound> {
    let edges = |cx: &mut ExecContext<'_>, list: &[Edge<BoundValue>]| {
        let mut out = Vec::with_capacity(list.len());
        for (edge, key) in list.iter().zip(&by.keys) {
            out.push(match edge {
                Edge::Min => Edge::Min,
                Edge::Max => Edge::Max,
                Edge::Value(v) => match value(cx, key, v)? {
                    Some(text) => Edge::Value(text),
                    None => {
                        base::bail!(INVALID_OBJECT_DEFINITION, "cannot specify NULL in range bound")
                    }
                },
            });
        }
        Ok::<_, Error>(out)
    };
    Ok(match &spec.values {
        BoundValues::Default => PartitionBound::Default,
        BoundValues::Hash(modulus, remainder) => PartitionBound::Hash {
            modulus: modulus.unsigned_abs(),
            remainder: remainder.unsigned_abs(),
        },
        BoundValues::Range(from, to) => {
            PartitionBound::Range { from: edges(cx, from)?, to: edges(cx, to)? }
        }
        BoundValues::List(values) => {
            let mut out: Vec<Option<String>> = Vec::with_capacity(values.len());
            for v in values {
                let text = value(cx, &by.keys[0], v)?;
                if !out.contains(&text) {
                    out.push(text);
                }
            }
            PartitionBound::List(out)
        }
    })
}

/// A value's text.
fn value(
    cx: &mut ExecContext<'_>,
    key: &PartitionKey,
    value: &BoundValue,
) -> Result<Option<String>> {
    let ty = Oid(key.ty);
    let datum = match value {
        BoundValue::Null => return Ok(None),
        BoundValue::Literal(text) => types::io::input(ty, key.typmod, text, cx.format)?,
        BoundValue::Sql(sql) => expression_value(sql, ty, key.typmod, cx.role, cx)?,
    };
    match datum {
        Datum::Null => Ok(None),
        datum => types::io::to_text(ty, &datum, &FormatContext::default().stored())
            .map(|s| Some(s.to_string())),
    }
}

/// A new bound fits beside those that are there.
///
/// # Errors
/// `42P17`.
pub fn check_bound(
    view: &Snapshot,
    parent: &Table,
    partition: &str,
    bound: &PartitionBound,
    spec: &BoundSpec,
) -> Result<()> {
    let Some(by) = &parent.partitioning else { return Ok(()) };
    let new = held(by, bound)?;
    if let Held::Range(from_row, to_row) = &new
        && compare_edges(from_row, to_row).is_ge()
    {
        let PartitionBound::Range { from, to } = bound else { return Ok(()) };
        return Err(wrong(format!("empty range bound specified for partition \"{partition}\""))
            .detail(format!(
                "Specified lower bound {} is greater than or equal to upper bound {}.",
                catalog::partition_text::edges(by, from, Some(&FormatContext::default())),
                catalog::partition_text::edges(by, to, Some(&FormatContext::default()))
            ))
            .at(spec.lower_place(first_difference(from_row, to_row))));
    }
    let whole;
    let mut view = view;
    if view.detaching_from(parent.oid).next().is_some() {
        whole = view.clone().with_detaching(|_| true);
        view = &whole;
    }
    let Some(family) = view.family(parent.oid) else { return Ok(()) };
    let register = family.register(by)?;
    let name = |id: u32| family.member(id).map_or("", |t| t.name.as_str());
    let overlaps = |(with, at): (u32, u32)| {
        let other = name(with);
        Err(wrong(format!("partition \"{partition}\" would overlap partition \"{other}\"")).at(at))
    };
    match &new {
        Held::Default => match register.default {
            Some(other) => Err(wrong(format!(
                "partition \"{partition}\" conflicts with existing default partition \"{}\"",
                name(other)
            ))
            .at(spec.at)),
            None => Ok(()),
        },
        Held::List(values, null) => {
            // NULL has no place among the values: its own is sought in the statement.
            let nulls = |v: &Option<String>| v.is_none();
            let null_at = match bound {
                PartitionBound::List(texts) => texts.iter().position(nulls),
                _ => None,
            };
            let place = |at: usize| at + usize::from(null_at.is_some_and(|null| null <= at));
            let taken = |(at, value)| Some((register.list_part(value)?, place(at)));
            if let Some((with, at)) = values.iter().enumerate().find_map(taken) {
                return overlaps((with, spec.lower_place(at)));
            }
            let null = register.null.filter(|_| *null);
            null.map_or(Ok(()), |with| overlaps((with, spec.lower_place(null_at.unwrap_or(0)))))
        }
        Held::Range(from, to) => match register.range_part(from, to) {
            None => Ok(()),
            Some((with, edge, true)) => {
                overlaps((with, spec.lower_place(first_difference(from, &edge))))
            }
            Some((with, edge, false)) => {
                overlaps((with, spec.upper_place(first_difference(to, &edge))))
            }
        },
        Held::Hash(modulus, remainder) => {
            let (modulus, remainder) = (*modulus, *remainder);
            check_modulus(register, modulus, &name)?;
            let held = |(m, r): (u32, u32)| remainder % modulus.min(m) == r % modulus.min(m);
            let found = register.hashes().find(|(hash, _)| held(*hash));
            found.map_or(Ok(()), |(_, id)| overlaps((id, spec.at)))
        }
    }
}

/// The first column in which two bounds differ; the last one when they are equal.
fn first_difference(a: &[Edge<Datum>], b: &[Edge<Datum>]) -> usize {
    let differ = |(x, y): (&Edge<Datum>, &Edge<Datum>)| {
        compare_edges(std::slice::from_ref(x), std::slice::from_ref(y)).is_ne()
    };
    a.iter().zip(b).position(differ).unwrap_or(a.len().saturating_sub(1))
}

/// Each modulus divides the next larger one.
fn check_modulus<'n>(
    register: &catalog::partition::Register,
    modulus: u32,
    name: &dyn Fn(u32) -> &'n str,
) -> Result<()> {
    let refused = |detail: String| {
        let message = "every hash partition modulus must be a factor of the next larger modulus";
        Err(wrong(message.to_owned()).detail(detail))
    };
    if let Some(((below, _), id)) = register.hashes().rfind(|((m, _), _)| *m <= modulus)
        && modulus % below != 0
    {
        return refused(format!(
            "The new modulus {modulus} is not divisible by {below}, the modulus of existing partition \"{}\".",
            name(id)
        ));
    }
    if let Some(((above, _), id)) = register.hashes().find(|((m, _), _)| *m > modulus)
        && above % modulus != 0
    {
        return refused(format!(
            "The new modulus {modulus} is not a factor of {above}, the modulus of existing partition \"{}\".",
            name(id)
        ));
    }
    Ok(())
}

/// The rows of the default partition that a new bound takes for itself must not be there.
///
/// # Errors
/// `23514`.
pub fn check_default(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    bound: &PartitionBound,
) -> Result<()> {
    let Some(by) = &parent.partitioning else { return Ok(()) };
    let view = cx.catalog_tx.view();
    let Some(family) = view.family(parent.oid) else { return Ok(()) };
    let default = family.register(by)?.default;
    let Some(default) = default.and_then(|id| family.member(id)).cloned() else { return Ok(()) };
    lock(cx, default.oid, LockMode::AccessExclusive)?;
    let view = cx.catalog_tx.view();
    let Some(condition) = catalog::partition_text::condition(&view, parent, bound)? else {
        return Ok(());
    };
    find_row(cx, &default, &format!("({condition})"), &|| {
        format!(
            "updated partition constraint for default partition \"{}\" would be violated by some row",
            default.name
        )
    })
}

/// `23514` with these words when a table has a row for which the condition holds.
fn find_row(
    cx: &mut ExecContext<'_>,
    table: &Table,
    condition: &str,
    message: &dyn Fn() -> String,
) -> Result<()> {
    if table.kind == TableKind::Foreign {
        return Ok(());
    }
    let view = cx.catalog_tx.view();
    let from = match table.is_partitioned() {
        true => exec::spi::qualified(&view, table),
        false => exec::spi::rows_of(&view, table),
    };
    let text = format!("SELECT 1 FROM {from} WHERE {condition} LIMIT 1");
    let schema = view.schema(table.schema).map_or(String::new(), |s| s.name.clone());
    query_of(table.owner, &text, cx, &mut |_| {
        Err(err!(CHECK_VIOLATION, "{}", message()).table(&schema, &table.name))
    })
}

/// A new table becomes a partition: its bound, then what it has of its table.
///
/// # Errors
/// Those of the bound; `42501` for somebody else's table.
pub fn begin(cx: &mut ExecContext<'_>, id: u32, parent: u32, spec: &BoundSpec) -> Result<()> {
    let parent = refresh(cx, parent)?;
    exec::rights::require_table_owner(cx, &parent)?;
    let Some(by) = &parent.partitioning else {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not partitioned", parent.name);
    };
    super::expect_checked(cx, &parent, "CREATE TABLE .. PARTITION OF")?;
    let mut table = refresh(cx, id)?;
    if table.kind == TableKind::Foreign && has_unique(cx, &parent) {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "cannot create foreign partition of partitioned table \"{}\"",
            parent.name
        )
        .detail(format!("Table \"{}\" contains indexes that are unique.", parent.name)));
    }
    let bound = bound(cx, by, spec)?;
    check_bound(&cx.catalog_tx.view(), &parent, &table.name, &bound, spec)?;
    check_default(cx, &parent, &bound)?;
    table.parents = vec![parent.oid];
    table.bound = Some(Box::new(bound));
    put(cx, table)
}

fn has_unique(cx: &mut ExecContext<'_>, table: &Table) -> bool {
    let view = cx.catalog_tx.view();
    table.indexes.iter().any(|id| view.index(*id).is_some_and(|i| i.unique))
}

/// Gives a new partition the objects of its table: indexes and keys, foreign keys, row triggers.
///
/// # Errors
/// Those of making them.
pub fn take_over(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let table = refresh(cx, id)?;
    let Some(parent) = table.partition_of() else { return Ok(()) };
    let parent = refresh(cx, parent)?;
    for index in &parent.indexes {
        let Some(index) = cx.catalog_tx.view().index(*index).cloned() else { continue };
        part_of_index(cx, &parent, &index, id)?;
    }
    for constraint in parent.constraints.iter().filter(|c| c.refers_to().is_some()) {
        part_of_foreign_key(cx, &parent, constraint, id)?;
    }
    for trigger in parent.triggers.iter().filter(|t| t.is_row()) {
        part_of_trigger(cx, &parent, trigger, id)?;
    }
    Ok(())
}

/// A table's column numbers as one of its partitions has them.
pub fn numbers(parent: &Table, table: &Table) -> Vec<u16> {
    let number = |c: &catalog::Column| match c.dropped {
        true => 0,
        false => table.column(&c.name).map_or(0, |(n, _)| n),
    };
    parent.columns.iter().map(number).collect()
}

/// A table's index as a partition of it would have it; not named, not made.
fn translated(index: &Index, numbers: &[u16]) -> Index {
    let mut part = index.clone();
    let number = |n: u16| if n == 0 { 0 } else { numbers[usize::from(n) - 1] };
    for key in &mut part.columns {
        key.column = number(key.column);
        if let Some(expression) = &mut key.expression {
            expression.columns.iter_mut().for_each(|n| *n = number(*n));
        }
    }
    part.include.iter_mut().for_each(|n| *n = number(*n));
    (part.oid, part.rel, part.table) = (0, 0, 0);
    (part.clustered, part.invalid) = (false, false);
    part.parent = index.oid;
    part
}

/// Whether two indexes of a table do the same.
fn alike(a: &Index, b: &Index) -> bool {
    let key = |i: &catalog::IndexColumn| {
        (
            i.column,
            i.descending,
            i.nulls_first,
            i.expression.as_ref().map(|e| e.sql.clone()),
            i.collation.as_ref().map(|c| c.oid),
            i.class,
        )
    };
    a.unique == b.unique
        && a.method == b.method
        && a.nulls_equal == b.nulls_equal
        && a.predicate == b.predicate
        && a.include == b.include
        && a.columns.iter().map(key).eq(b.columns.iter().map(key))
}

/// The constraint that an index backs.
fn backed_by(table: &Table, index: u32) -> Option<&Constraint> {
    table.constraints.iter().find(|c| {
        matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i }
            if i == index)
    })
}

/// Makes (or finds) a partition's part of an index, and of the constraint that rests on it.
///
/// # Errors
/// Those of making it.
pub fn part_of_index(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    index: &Index,
    id: u32,
) -> Result<()> {
    sched::check_interrupts()?;
    let mut table = refresh(cx, id)?;
    if table.kind == TableKind::Foreign {
        return Ok(());
    }
    let constraint = backed_by(parent, index.oid).cloned();
    let part = translated(index, &numbers(parent, &table));
    let view = cx.catalog_tx.view();
    let fits = |own: &&std::sync::Arc<Index>| {
        own.parent == 0
            && !own.invalid
            && alike(own, &part)
            && backed_by(&table, own.oid).is_some() == constraint.is_some()
    };
    if let Some(own) = view.indexes_of(&table).iter().find(fits) {
        let own = Index { parent: index.oid, ..Index::clone(own) };
        if let (Some(whole), Some(mine)) = (
            &constraint,
            table.constraints.iter_mut().find(|c| {
                matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i }
                    if i == own.oid)
            }),
        ) {
            (mine.parent, mine.inherited, mine.only_inherited) = (whole.oid, 1, true);
            mine.no_inherit = true;
            put(cx, table)?;
        }
        return cx.catalog_tx.put(cx.tx, Object::Index(own));
    }
    let named = |key: &catalog::IndexColumn| match &key.expression {
        Some(e) => e.name.clone(),
        None => table.columns[usize::from(key.column) - 1].name.clone(),
    };
    let included = part.include.iter().map(|n| table.columns[usize::from(*n) - 1].name.clone());
    let names: Vec<String> = part.columns.iter().map(named).chain(included).collect();
    let names = name::distinct(&names);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (names, suffix) = match &constraint {
        Some(c) if matches!(c.kind, ConstraintKind::PrimaryKey { .. }) => (&[][..], "pkey"),
        Some(_) => (&names[..], "key"),
        None => (&names[..], "idx"),
    };
    let own_name = name::index_name(&view, &table, names, suffix);
    name::reserve_relation(cx, table.schema, &own_name)?;
    let mut expected = table.clone();
    if index.primary {
        if table.constraints.iter().any(|c| matches!(c.kind, ConstraintKind::PrimaryKey { .. })) {
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "multiple primary keys for table \"{}\" are not allowed",
                table.name
            );
        }
        part.columns.iter().for_each(|c| {
            expected.columns[usize::from(c.column) - 1].not_null = true;
        });
    }
    let made = create_index::build(cx, &expected, Index { name: own_name.clone(), ..part })?;
    expected.indexes.push(made.oid);
    if let Some(whole) = constraint {
        let kind = match whole.kind {
            ConstraintKind::PrimaryKey { .. } => ConstraintKind::PrimaryKey { index: made.oid },
            _ => ConstraintKind::Unique { index: made.oid },
        };
        let oid = super::new_oid(cx, table.oid)?;
        let mut own = Constraint::new(oid, own_name, kind);
        (own.deferrable, own.deferred) = (whole.deferrable, whole.deferred);
        (own.parent, own.inherited, own.only_inherited) = (whole.oid, 1, true);
        expected.constraints.push(own);
    }
    table = expected;
    put(cx, table)?;
    spread_index(cx, made.oid)
}

/// An index of a partitioned table gets its part in each partition.
///
/// # Errors
/// Those of making them.
pub fn spread_index(cx: &mut ExecContext<'_>, index: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(index) = view.index(index).cloned() else { return Ok(()) };
    let table = refresh(cx, index.table)?;
    if !table.is_partitioned() {
        return Ok(());
    }
    if index.unique {
        expect_no_foreign(&view, &table)?;
    }
    for id in view.children(&table) {
        lock(cx, id, LockMode::Share)?;
        part_of_index(cx, &table, &index, id)?;
    }
    Ok(())
}

/// `42809` for a unique index over rows some of which are elsewhere.
fn expect_no_foreign(view: &Snapshot, table: &Table) -> Result<()> {
    let mut next = vec![table.oid];
    while let Some(id) = next.pop() {
        let Some(part) = view.table(id) else { continue };
        if part.kind == TableKind::Foreign {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "cannot create unique index on partitioned table \"{}\"",
                table.name
            )
            .detail(format!(
                "Table \"{}\" contains partitions that are foreign tables.",
                table.name
            )));
        }
        next.extend(view.children(part));
    }
    Ok(())
}

/// An index that was made for a partitioned table alone: it is not valid before each partition has its part.
///
/// # Errors
/// Those of the catalog.
pub fn await_parts(cx: &mut ExecContext<'_>, index: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(index) = view.index(index) else { return Ok(()) };
    let Some(table) = view.table(index.table) else { return Ok(()) };
    if !table.is_partitioned() || view.children(table).is_empty() {
        return Ok(());
    }
    let invalid = Index { invalid: true, ..Index::clone(index) };
    cx.catalog_tx.put(cx.tx, Object::Index(invalid))
}

/// `0A000` for a unique key without the partition key.
///
/// # Errors
/// See above.
pub fn check_unique(table: &Table, columns: &[catalog::IndexColumn], word: &str) -> Result<()> {
    let Some(by) = &table.partitioning else { return Ok(()) };
    for key in &by.keys {
        if key.column == 0 {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "unsupported {word} constraint with partition key definition"
            )
            .detail(format!(
                "{word} constraints cannot be used when partition keys include expressions."
            )));
        }
        if !columns.iter().any(|c| c.column == key.column) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "unique constraint on partitioned table must include all partitioning columns"
            )
            .detail(format!(
                "{word} constraint on table \"{}\" lacks column \"{}\" which is part of the partition key.",
                table.name,
                table.columns[usize::from(key.column) - 1].name
            )));
        }
    }
    Ok(())
}

/// A partition's part of a foreign key.
fn part_of_foreign_key(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    whole: &Constraint,
    id: u32,
) -> Result<()> {
    let ConstraintKind::ForeignKey(key) = &whole.kind else { return Ok(()) };
    let mut table = refresh(cx, id)?;
    let numbers = numbers(parent, &table);
    let mut key = key.clone();
    let number = |n: &mut u16| *n = numbers[usize::from(*n) - 1];
    key.columns.iter_mut().for_each(number);
    key.set_columns.iter_mut().for_each(number);
    let same = |c: &&mut Constraint| match &c.kind {
        ConstraintKind::ForeignKey(own) => {
            c.parent == 0
                && own.columns == key.columns
                && own.table == key.table
                && own.referenced == key.referenced
                && own.on_delete == key.on_delete
                && own.on_update == key.on_update
                && c.deferrable == whole.deferrable
                && c.deferred == whole.deferred
        }
        _ => false,
    };
    if let Some(own) = table.constraints.iter_mut().find(same) {
        (own.parent, own.inherited, own.only_inherited) = (whole.oid, 1, true);
        return put(cx, table);
    }
    if !table.is_partitioned() {
        let other = refresh(cx, key.table)?;
        super::constraint::check_rows(cx, &table, &other, &whole.name, &key)?;
    }
    let mut name = whole.name.clone();
    if table.constraints.iter().any(|c| c.name == name) {
        let names: Vec<&str> =
            key.columns.iter().map(|n| table.columns[usize::from(*n) - 1].name.as_str()).collect();
        name = super::name::constraint_name(&table, &names, "fkey");
    }
    let oid = super::new_oid(cx, table.oid)?;
    let target = key.table;
    let mut own = Constraint { oid, name, kind: ConstraintKind::ForeignKey(key), ..whole.clone() };
    (own.parent, own.inherited, own.only_inherited) = (whole.oid, 1, true);
    table.constraints.push(own.clone());
    put(cx, table.clone())?;
    let mut other = refresh(cx, target)?;
    if !other.referenced_by.contains(&id) {
        other.referenced_by.push(id);
        put(cx, other)?;
    }
    spread_foreign_key(cx, &table, &own)
}

/// A partitioned table's foreign key gets its part in each partition.
///
/// # Errors
/// `23503`.
pub fn spread_foreign_key(
    cx: &mut ExecContext<'_>,
    table: &Table,
    whole: &Constraint,
) -> Result<()> {
    if !table.is_partitioned() {
        return Ok(());
    }
    for id in cx.catalog_tx.view().children(table) {
        lock(cx, id, LockMode::ShareRowExclusive)?;
        part_of_foreign_key(cx, table, whole, id)?;
    }
    Ok(())
}

/// A partition's part of a row trigger.
fn part_of_trigger(
    cx: &mut ExecContext<'_>,
    parent: &Table,
    whole: &Trigger,
    id: u32,
) -> Result<()> {
    let mut table = refresh(cx, id)?;
    if table.trigger(&whole.name).is_some() {
        base::bail!(
            DUPLICATE_OBJECT,
            "trigger \"{}\" for relation \"{}\" already exists",
            whole.name,
            table.name
        );
    }
    let numbers = numbers(parent, &table);
    let mut own = whole.clone();
    own.oid = super::new_oid(cx, table.oid)?;
    if own.constraint != 0 {
        own.constraint = super::new_oid(cx, table.oid)?;
    }
    own.parent = whole.oid;
    own.columns.iter_mut().for_each(|n| *n = numbers[usize::from(*n) - 1]);
    for (of, n) in own.uses.iter_mut().filter(|(of, _)| *of == parent.oid) {
        *of = id;
        if *n > 0 {
            *n = numbers[usize::from(*n) - 1];
        }
    }
    table.triggers.push(own.clone());
    table.triggers.sort_by(|a, b| a.name.cmp(&b.name));
    put(cx, table.clone())?;
    spread_trigger(cx, &table, &own)
}

/// A partitioned table's row trigger gets its part in each partition.
///
/// # Errors
/// `42710`.
pub fn spread_trigger(cx: &mut ExecContext<'_>, table: &Table, whole: &Trigger) -> Result<()> {
    if !table.is_partitioned() || !whole.is_row() {
        return Ok(());
    }
    for id in cx.catalog_tx.view().children(table) {
        lock(cx, id, LockMode::ShareRowExclusive)?;
        part_of_trigger(cx, table, whole, id)?;
    }
    Ok(())
}

/// `42P16` for a change of a column by which rows are spread. `done`: what can't be done to it.
///
/// # Errors
/// See above.
pub fn check_no_key(table: &Table, column: &str, done: &str) -> Result<()> {
    let (Some(by), Some((number, _))) = (&table.partitioning, table.column(column)) else {
        return Ok(());
    };
    if by.keys.iter().any(|k| k.column == number || k.columns.contains(&number)) {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "cannot {done} column \"{column}\" because it is part of the partition key of relation \"{}\"",
            table.name
        );
    }
    Ok(())
}

/// ATTACH and DETACH PARTITION.
///
/// # Errors
/// Those of each.
pub fn run(
    cx: &mut ExecContext<'_>,
    id: u32,
    command: &sql::partition::PartitionCommand,
) -> Result<()> {
    use sql::partition::PartitionCommand;
    match command {
        PartitionCommand::Attach(name, spec) => attach(cx, id, name, spec),
        PartitionCommand::Detach { name, concurrently: false } => detach(cx, id, name),
        PartitionCommand::Detach { concurrently: true, .. } => {
            Err(Error::internal("DETACH CONCURRENTLY in one transaction"))
        }
        PartitionCommand::Finalize(name) => {
            let parent = refresh(cx, id)?;
            let table = super::open_table(cx, name, LockMode::AccessExclusive)?;
            expect_partition(&parent, &table)?;
            if table.detaching.is_none() {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "cannot complete detaching partition \"{}\"",
                    table.name
                )
                .detail("There's no pending concurrent detach."));
            }
            finish_detach(cx, id, table.oid)
        }
        PartitionCommand::AttachIndex(_) => Err(Error::unsupported("an index of a table")),
    }
}

/// ATTACH PARTITION.
///
/// # Errors
/// `42809`, `42P17`, `42804`; `23514` when the table has rows that the bound excludes.
pub fn attach(
    cx: &mut ExecContext<'_>,
    parent: u32,
    partition: &sql::utility::Name,
    spec: &BoundSpec,
) -> Result<()> {
    let parent = refresh(cx, parent)?;
    let table = super::open_owned(cx, partition, LockMode::AccessExclusive)?;
    super::expect_checked(cx, &table, "ALTER TABLE")?;
    let Some(by) = &parent.partitioning else {
        return Err(not_partitioned(&parent, "ATTACH PARTITION"));
    };
    check_attachable(cx, &parent, &table)?;
    let bound = bound(cx, by, spec)?;
    check_bound(&cx.catalog_tx.view(), &parent, &table.name, &bound, spec)?;
    let mut table = refresh(cx, table.oid)?;
    let extra = table.live_columns().find(|(_, c)| parent.column(&c.name).is_none());
    if let Some((_, column)) = extra {
        return Err(err!(
            DATATYPE_MISMATCH,
            "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
            table.name,
            column.name,
            parent.name
        )
        .detail("The new partition may contain only the columns present in parent."));
    }
    adopt_columns(&mut table, &parent)?;
    adopt_constraints(&mut table, &parent)?;
    let view = cx.catalog_tx.view();
    let condition = match &bound {
        PartitionBound::Default => catalog::partition_text::default_condition(&view, &parent)?,
        bound => catalog::partition_text::condition(&view, &parent, bound)?,
    };
    if let Some(condition) = condition
        && !is_implied(&table, &condition)
    {
        let name = table.name.clone();
        find_row(cx, &table, &format!("NOT ({condition})"), &|| {
            format!("partition constraint of relation \"{name}\" is violated by some row")
        })?;
    }
    check_default(cx, &parent, &bound)?;
    if table.kind == TableKind::Foreign && has_unique(cx, &parent) {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "cannot attach foreign table \"{}\" as partition of partitioned table \"{}\"",
            table.name,
            parent.name
        )
        .detail(format!("Partitioned table \"{}\" contains unique indexes.", parent.name)));
    }
    table.parents = vec![parent.oid];
    table.bound = Some(Box::new(bound));
    let id = table.oid;
    put(cx, table)?;
    take_over(cx, id)
}

/// Whether a CHECK constraint says all that the bound asks, in the same words.
fn is_implied(table: &Table, condition: &str) -> bool {
    table.constraints.iter().any(
        |c| matches!(&c.kind, ConstraintKind::Check(sql) if !c.unvalidated && sql == condition),
    )
}

fn not_partitioned(table: &Table, action: &str) -> Error {
    if table.kind == catalog::TableKind::Table {
        return err!(INVALID_OBJECT_DEFINITION, "table \"{}\" is not partitioned", table.name);
    }
    err!(
        WRONG_OBJECT_TYPE,
        "ALTER action {action} cannot be performed on relation \"{}\"",
        table.name
    )
    .detail("This operation is not supported for tables.")
}

fn check_attachable(cx: &mut ExecContext<'_>, parent: &Table, table: &Table) -> Result<()> {
    if table.of_type != 0 {
        base::bail!(WRONG_OBJECT_TYPE, "cannot attach a typed table as partition");
    }
    if table.bound.is_some() {
        base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is already a partition", table.name);
    }
    if !matches!(table.kind, TableKind::Table | TableKind::Foreign) {
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
            table.name
        )
        .detail(format!(
            "This operation is not supported for {}s.",
            exec::relation_lock::kind_word(table)
        )));
    }
    if !table.parents.is_empty() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot attach inheritance child as partition");
    }
    if !table.children.is_empty() {
        base::bail!(WRONG_OBJECT_TYPE, "cannot attach inheritance parent as partition");
    }
    let view = cx.catalog_tx.view();
    if parent.oid == table.oid || view.partition_ancestors(parent.oid).contains(&table.oid) {
        return Err(err!(DUPLICATE_TABLE, "circular inheritance not allowed")
            .detail(format!("\"{}\" is already a child of \"{}\".", parent.name, table.name)));
    }
    let temporary = (parent.is_temporary(), table.is_temporary());
    match temporary {
        (false, true) => base::bail!(
            WRONG_OBJECT_TYPE,
            "cannot attach a temporary relation as partition of permanent relation \"{}\"",
            parent.name
        ),
        (true, false) => base::bail!(
            WRONG_OBJECT_TYPE,
            "cannot attach a permanent relation as partition of temporary relation \"{}\"",
            parent.name
        ),
        _ => {}
    }
    let transitional = table
        .triggers
        .iter()
        .find(|t| t.is_row() && (t.old_table.is_some() || t.new_table.is_some()));
    if let Some(trigger) = transitional {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "trigger \"{}\" prevents table \"{}\" from becoming a partition",
            trigger.name,
            table.name
        )
        .detail("ROW triggers with transition tables are not supported on partitions."));
    }
    Ok(())
}

/// DETACH PARTITION.
///
/// # Errors
/// `42809`, `42P01`; `23503` when rows of the partition are referred to.
pub fn detach(cx: &mut ExecContext<'_>, parent: u32, name: &sql::utility::Name) -> Result<()> {
    let parent = refresh(cx, parent)?;
    if parent.partitioning.is_none() {
        return Err(not_partitioned(&parent, "DETACH PARTITION"));
    }
    let table = super::open_table(cx, name, LockMode::AccessExclusive)?;
    expect_partition(&parent, &table)?;
    expect_attached(cx, &parent, &table)?;
    super::expect_checked(cx, &table, "ALTER TABLE")?;
    super::constraint::check_not_referred(cx, &parent, &table)?;
    release(cx, table.oid)
}

fn expect_partition(parent: &Table, table: &Table) -> Result<()> {
    if table.partition_of() != Some(parent.oid) {
        base::bail!(
            UNDEFINED_TABLE,
            "relation \"{}\" is not a partition of relation \"{}\"",
            table.name,
            parent.name
        );
    }
    Ok(())
}

/// `55000` for a partition that a DETACH CONCURRENTLY is taking out.
fn expect_attached(cx: &mut ExecContext<'_>, parent: &Table, table: &Table) -> Result<()> {
    if table.detaching.is_none() {
        return Ok(());
    }
    let view = cx.catalog_tx.view();
    let schema = view.schema(parent.schema).map_or("public", |s| s.name.as_str());
    Err(err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "partition \"{}\" already pending detach in partitioned table \"{schema}.{}\"",
        table.name,
        parent.name
    )
    .hint("Use ALTER TABLE ... DETACH PARTITION ... FINALIZE to complete the pending detach operation."))
}

/// The first transaction of DETACH CONCURRENTLY: from its commit on statements do not find the partition in its
/// table, and what its bound said is a constraint of its own. The oids of table and partition.
///
/// # Errors
/// As [`detach`]; `55000` with a default partition.
pub fn begin_detach(
    cx: &mut ExecContext<'_>,
    parent: &sql::utility::Name,
    name: &sql::utility::Name,
) -> Result<(u32, u32)> {
    let parent = super::open_owned(cx, parent, LockMode::ShareUpdateExclusive)?;
    let Some(by) = &parent.partitioning else {
        return Err(not_partitioned(&parent, "DETACH PARTITION"));
    };
    let view = cx.catalog_tx.view();
    let family = view.family(parent.oid);
    if family.map(|f| f.register(by)).transpose()?.is_some_and(|r| r.default.is_some()) {
        base::bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot detach partitions concurrently when a default partition exists"
        );
    }
    let table = super::open_table(cx, name, LockMode::ShareUpdateExclusive)?;
    expect_partition(&parent, &table)?;
    expect_attached(cx, &parent, &table)?;
    super::expect_checked(cx, &table, "ALTER TABLE")?;
    super::constraint::check_not_referred(cx, &parent, &table)?;
    let view = cx.catalog_tx.view();
    let condition = match table.bound.as_deref() {
        // The condition of a hash partition names its table, which may be dropped.
        Some(bound) if by.strategy.letter() != 'h' => {
            catalog::partition_text::condition(&view, &parent, bound)?
        }
        _ => None,
    };
    let mut table = Table { detaching: Some(0), ..Table::clone(&table) };
    if let Some(condition) = condition.filter(|c| !is_implied(&table, c)) {
        let keys = parent.partitioning.iter().flat_map(|by| &by.keys).filter(|k| k.column > 0);
        let names = keys.map(|k| parent.columns[usize::from(k.column) - 1].name.as_str());
        let name = name::constraint_name(&table, &names.take(1).collect::<Vec<_>>(), "check");
        let oid = super::new_oid(cx, table.oid)?;
        table.constraints.push(Constraint::new(oid, name, ConstraintKind::Check(condition)));
    }
    let ids = (parent.oid, table.oid);
    put(cx, table)?;
    Ok(ids)
}

/// The last transaction of DETACH CONCURRENTLY, and FINALIZE.
///
/// # Errors
/// Those of the catalog.
pub fn finish_detach(cx: &mut ExecContext<'_>, parent: u32, id: u32) -> Result<()> {
    lock(cx, parent, LockMode::ShareUpdateExclusive)?;
    lock(cx, id, LockMode::AccessExclusive)?;
    let (parent, table) = (refresh(cx, parent)?, refresh(cx, id)?);
    if table.detaching.is_none() {
        return Ok(());
    }
    super::constraint::check_not_referred(cx, &parent, &table)?;
    release(cx, id)
}

/// A partition becomes a table of its own: it keeps columns, indexes and constraints.
fn release(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let mut table = refresh(cx, id)?;
    table.parents.clear();
    (table.bound, table.detaching) = (None, None);
    for column in &mut table.columns {
        (column.inherited, column.only_inherited) = (0, false);
    }
    for constraint in &mut table.constraints {
        (constraint.inherited, constraint.only_inherited) = (0, false);
        constraint.parent = 0;
    }
    let dropped: Vec<Trigger> = table.triggers.extract_if(.., |t| t.parent != 0).collect();
    put(cx, table.clone())?;
    for index in cx.catalog_tx.view().indexes_of(&table) {
        if index.parent != 0 {
            let own = Index { parent: 0, ..Index::clone(&index) };
            cx.catalog_tx.put(cx.tx, Object::Index(own))?;
        }
    }
    // The triggers that partitions below it have of these go, too.
    for trigger in dropped {
        drop_trigger_parts(cx, &table, trigger.oid)?;
    }
    Ok(())
}

/// Parts of a row trigger in the partitions below a table.
fn drop_trigger_parts(cx: &mut ExecContext<'_>, table: &Table, whole: u32) -> Result<()> {
    for id in cx.catalog_tx.view().children(table) {
        let mut child = refresh(cx, id)?;
        let parts: Vec<Trigger> = child.triggers.extract_if(.., |t| t.parent == whole).collect();
        if parts.is_empty() {
            continue;
        }
        put(cx, child.clone())?;
        for part in parts {
            drop_trigger_parts(cx, &child, part.oid)?;
        }
    }
    Ok(())
}

/// ALTER INDEX … ATTACH PARTITION.
///
/// # Errors
/// `42809`, `55000`.
pub fn attach_index(cx: &mut ExecContext<'_>, index: u32, part: &sql::utility::Name) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(whole) = view.index(index).cloned() else { return Ok(()) };
    let found = view.relation(cx.search_path, part.schema.as_deref(), &part.name);
    let Some(catalog::snapshot::Relation::Index(own)) = found else {
        return match found {
            Some(_) => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", part.name)),
            None => Err(view.missing_relation(part.schema.as_deref(), &part.name)),
        };
    };
    let parent = refresh(cx, whole.table)?;
    let mut table = refresh(cx, own.table)?;
    lock(cx, table.oid, LockMode::ShareUpdateExclusive)?;
    if own.parent == whole.oid {
        return Ok(());
    }
    let cannot = |detail: String| {
        Err(err!(
            INVALID_OBJECT_DEFINITION,
            "cannot attach index \"{}\" as a partition of index \"{}\"",
            own.name,
            whole.name
        )
        .detail(detail))
    };
    if own.parent != 0 {
        return cannot(format!("Index \"{}\" is already attached to another index.", own.name));
    }
    if table.partition_of() != Some(parent.oid) {
        return cannot(format!(
            "Index \"{}\" is not an index on any partition of table \"{}\".",
            own.name, parent.name
        ));
    }
    if !alike(&own, &translated(&whole, &numbers(&parent, &table))) {
        return cannot("The index definitions do not match.".to_owned());
    }
    let taken = view.indexes_of(&table).into_iter().any(|i| i.parent == whole.oid);
    if taken {
        return cannot(format!(
            "Another index is already attached for partition \"{}\".",
            table.name
        ));
    }
    if let Some(constraint) = backed_by(&parent, whole.oid) {
        let oid = constraint.oid;
        if backed_by(&table, own.oid).is_none() {
            return cannot(format!(
                "The index \"{}\" belongs to a constraint in table \"{}\" but no constraint exists for index \"{}\".",
                whole.name, parent.name, own.name
            ));
        }
        for c in &mut table.constraints {
            if matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } if i == own.oid)
            {
                (c.parent, c.inherited, c.only_inherited) = (oid, 1, true);
                c.no_inherit = true;
            }
        }
        put(cx, table)?;
    }
    let own = Index { parent: whole.oid, ..Index::clone(&own) };
    cx.catalog_tx.put(cx.tx, Object::Index(own))?;
    make_valid(cx, whole.oid)
}

/// An index of a partitioned table is valid once each partition has its valid part.
fn make_valid(cx: &mut ExecContext<'_>, index: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(whole) = view.index(index).filter(|i| i.invalid) else { return Ok(()) };
    let Some(table) = view.table(whole.table) else { return Ok(()) };
    let has = |id: &u32| {
        view.table(*id).is_some_and(|part| {
            view.indexes_of(part).iter().any(|i| i.parent == index && !i.invalid)
        })
    };
    if !view.children(table).iter().all(has) {
        return Ok(());
    }
    let valid = Index { invalid: false, ..Index::clone(whole) };
    let parent = valid.parent;
    cx.catalog_tx.put(cx.tx, Object::Index(valid))?;
    match parent {
        0 => Ok(()),
        parent => make_valid(cx, parent),
    }
}
