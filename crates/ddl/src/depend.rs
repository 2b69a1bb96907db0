//! Dependencies between objects, and cascaded drops: the order, the messages and the difference
//! between RESTRICT and CASCADE are PostgreSQL's.
//!
//! Nothing is stored: who uses an object is read off the other objects ([`users`]). A definition
//! statement that drops something names its items; [`drop_items`] finds everything that must go with
//! them, takes the locks, looks again, and deletes from the far end.

use std::collections::HashSet;

use base::{Result, err};
use catalog::{ConstraintKind, Object, Snapshot, Table, TableKind, UserTypeKind};
use exec::context::ExecContext;
use exec::session::quote_identifier;
use txn::LockMode;

use super::{lock, notice, refresh};
use crate::describe::{array_over, describe};
use crate::forget::{remove_column_comment, remove_comments};
use crate::item::{Item, item_of};
use crate::mentions::mentions;
use crate::remove::{forget_reference, remove_index, remove_table};

/// Dependent objects that a message lists, at most.
const LISTED_MAX: usize = 100;

/// How something depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// It goes only with CASCADE.
    Normal,
    /// It goes along.
    Auto,
}

/// The oids that tables, indexes, sequences, types and functions name as what they use: who isn't among them
/// needs no search for users, which goes through all of these.
struct Used(HashSet<u32>);

impl Used {
    fn of(view: &Snapshot) -> Used {
        let mut out = HashSet::new();
        for table in view.tables() {
            out.extend(table.query.iter().flat_map(|q| q.uses.iter().map(|(id, _)| *id)));
            out.extend(table.policies.iter().flat_map(|p| p.uses.iter().map(|(id, _)| *id)));
            for trigger in &table.triggers {
                out.extend([trigger.other, trigger.function]);
                out.extend(trigger.uses.iter().map(|(id, _)| *id));
            }
            out.extend(table.constraints.iter().flat_map(|c| &c.uses));
            for column in &table.columns {
                out.insert(column.ty);
                out.extend(&column.default_uses);
            }
            out.insert(table.of_type);
            out.extend(table.partitioning.iter().flat_map(|by| &by.uses));
        }
        for index in view.indexes() {
            out.extend(&index.uses);
            out.insert(index.parent);
        }
        out.extend(view.sequences().filter_map(|s| s.owned_by).map(|(table, _)| table));
        for ty in view.user_types() {
            out.extend(&ty.uses);
            match &ty.kind {
                UserTypeKind::Domain { base, .. } => drop(out.insert(*base)),
                UserTypeKind::Composite(columns) => out.extend(columns.iter().map(|c| c.ty)),
                UserTypeKind::Range(range) => drop(out.insert(range.subtype)),
                UserTypeKind::Multirange { range } => drop(out.insert(*range)),
                UserTypeKind::Base(base) => drop(out.insert(base.element)),
                UserTypeKind::Enum(_) | UserTypeKind::Shell => {}
            }
        }
        for function in view.functions() {
            out.insert(function.result);
            out.extend(function.args.iter().map(|a| a.ty));
            out.extend(function.uses.iter().map(|(id, _)| *id));
        }
        Used(out)
    }

    fn has(&self, id: u32) -> bool {
        self.0.contains(&id)
    }
}

/// The objects that depend directly on an item.
fn users(view: &Snapshot, used: &Used, item: Item) -> Vec<(Item, Tie)> {
    let mut out = Vec::new();
    match item {
        Item::Schema(id) => schema_contents(view, id, &mut out),
        Item::Relation(id) => {
            functions_using(view, id, &mut out);
            if used.has(id) {
                views_using(view, id, None, &mut out);
                let before = out.len();
                expression_users(view, id, &mut out);
                let mut at = 0;
                out.retain(|(item, _)| {
                    at += 1;
                    at <= before || !is_part_of(view, *item, id)
                });
                let from = |t: &catalog::Trigger| t.other == id;
                for table in view.tables().filter(|t| t.oid != id) {
                    let all = table.triggers.iter().filter(|t| from(t));
                    out.extend(all.map(|t| (Item::Trigger(table.oid, t.oid), Tie::Auto)));
                }
                let owned = view.sequences().filter(|s| s.owned_by.is_some_and(|o| o.0 == id));
                out.extend(owned.map(|s| (Item::Sequence(s.oid), Tie::Auto)));
            }
            let about = view.extended_statistics().filter(|s| s.table == id);
            out.extend(about.map(|s| (Item::Defined(s.oid), Tie::Auto)));
            if let Some(table) = view.table(id) {
                out.extend(keys_from_others(view, table, |_| true));
                let child = |id: &u32| (Item::Relation(*id), Tie::Normal);
                let tie = if table.is_partitioned() { Tie::Auto } else { Tie::Normal };
                out.extend(view.children(table).iter().map(child).map(|(item, _)| (item, tie)));
                let leaving = view.detaching_from(id).map(|t| Item::Relation(t.oid));
                out.extend(leaving.map(|item| (item, Tie::Auto)));
                if table.row_type[0] != 0 {
                    out.push((Item::Type(table.row_type[0]), Tie::Auto));
                }
            }
        }
        Item::Column(id, n) => column_users(view, id, n, &mut out),
        Item::Index(id) => {
            if let Some(table) = view.index(id).and_then(|i| view.table(i.table)) {
                out.extend(keys_from_others_and_self(view, table, |k| k.index == id));
                if used.has(id) {
                    let parts = view.indexes().filter(|i| i.parent == id);
                    out.extend(parts.map(|i| (Item::Index(i.oid), Tie::Auto)));
                }
            }
        }
        Item::Constraint(table, id) => {
            let table = view.table(table);
            let found = table.and_then(|t| t.constraints.iter().find(|c| c.oid == id));
            if let Some(ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index }) =
                found.map(|c| &c.kind)
            {
                out.push((Item::Index(*index), Tie::Auto));
            }
            // A query that groups by a primary key relies on it.
            if used.has(id) {
                views_using(view, id, None, &mut out);
                functions_using(view, id, &mut out);
            }
            if let Some(table) = table.filter(|t| t.is_partitioned()) {
                for part in view.children(table).iter().filter_map(|id| view.table(*id)) {
                    let parts = part.constraints.iter().filter(|c| c.parent == id);
                    out.extend(parts.map(|c| (Item::Constraint(part.oid, c.oid), Tie::Auto)));
                }
            }
        }
        Item::Sequence(id) => {
            expression_users(view, id, &mut out);
            views_using(view, id, None, &mut out);
            functions_using(view, id, &mut out);
        }
        Item::Type(id) => {
            if used.has(id) {
                bodies_using(view, id, &mut out);
                type_users(view, id, &mut out);
                expression_users(view, id, &mut out);
            }
            out.extend(array_over(view, id).map(|array| (Item::Type(array), Tie::Auto)));
            defined_users(view, id, &mut out);
        }
        Item::Function(id) => {
            expression_users(view, id, &mut out);
            views_using(view, id, None, &mut out);
            functions_using(view, id, &mut out);
            defined_users(view, id, &mut out);
        }
        Item::Defined(id) => {
            let of =
                |t: &&std::sync::Arc<Table>| t.foreign.as_ref().is_some_and(|f| f.server == id);
            out.extend(view.tables().filter(of).map(|t| (Item::Relation(t.oid), Tie::Normal)));
            let stored = view.tables().filter(|t| t.method == id);
            out.extend(stored.map(|t| (Item::Relation(t.oid), Tie::Normal)));
            let has = |i: &&std::sync::Arc<catalog::Index>| {
                i.columns.iter().any(|c| c.class == id) || i.exclude.contains(&id)
            };
            out.extend(view.indexes().filter(has).map(|i| (index_or_key(view, i), Tie::Normal)));
            expression_users(view, id, &mut out);
            views_using(view, id, None, &mut out);
            functions_using(view, id, &mut out);
            defined_users(view, id, &mut out);
            language_users(view, id, &mut out);
        }
        Item::Collation(id) => collation_users(view, id, &mut out),
        Item::Trigger(table, id) => {
            for part in view.table(table).map_or_else(Vec::new, |t| view.children(t)) {
                let Some(part) = view.table(part) else { continue };
                let parts = part.triggers.iter().filter(|t| t.parent == id);
                out.extend(parts.map(|t| (Item::Trigger(part.oid, t.oid), Tie::Auto)));
            }
        }
        Item::Default(..)
        | Item::Attribute(..)
        | Item::Policy(..)
        | Item::Published(..)
        | Item::Rule(..) => {}
    }
    // Newer objects go first.
    out.sort_by_key(|(i, _)| std::cmp::Reverse(i.oid()));
    out
}

/// Whether an item goes with a table anyway.
fn is_part_of(view: &Snapshot, item: Item, table: u32) -> bool {
    match item {
        Item::Relation(of)
        | Item::Column(of, _)
        | Item::Default(of, _)
        | Item::Constraint(of, _)
        | Item::Trigger(of, _) => of == table,
        Item::Index(index) => view.index(index).is_some_and(|i| i.table == table),
        _ => false,
    }
}

/// Functions in the language that an extension brings.
fn language_users(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    if view.extension_named("java").is_some_and(|e| e.oid == id) {
        let uses = |f: &&std::sync::Arc<catalog::Function>| {
            f.language == "java" && view.extension_of(f.oid).is_none()
        };
        let functions = view.functions().filter(uses);
        out.extend(functions.map(|f| (Item::Function(f.oid), Tie::Normal)));
    }
}

/// Operators, casts and kin, and aggregates, that use an object.
fn defined_users(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    let tie = |along: bool| if along { Tie::Auto } else { Tie::Normal };
    let users = super::defined::users(view, id);
    out.extend(users.into_iter().map(|(item, along)| (item, tie(along))));
}

fn schema_contents(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    let tables = view.tables().filter(|t| t.schema == id).map(|t| Item::Relation(t.oid));
    let sequences = view.sequences().filter(|s| s.schema == id).map(|s| Item::Sequence(s.oid));
    let types = view.user_types().filter(|t| t.schema == id).map(|t| Item::Type(t.oid));
    let functions = view.functions().filter(|f| f.schema == id).map(|f| Item::Function(f.oid));
    let collations =
        view.user_collations().filter(|c| c.schema == id).map(|c| Item::Collation(c.oid));
    let defined = view.defined().filter(|d| d.schema() == Some(id)).map(|d| Item::Defined(d.oid()));
    let all = tables.chain(sequences).chain(types).chain(functions).chain(collations);
    let extensions = view.extensions().filter(|e| e.schema == id).map(|e| Item::Defined(e.oid));
    // Members go with their extensions.
    let inside = |item: &Item| view.extension_of(item.oid()).is_none();
    let all = all.chain(defined).filter(inside).chain(extensions);
    out.extend(all.map(|item| (item, Tie::Normal)));
}

/// Views whose query uses an object, or one column of it.
fn views_using(view: &Snapshot, id: u32, column: Option<u16>, out: &mut Vec<(Item, Tie)>) {
    for table in view.tables() {
        let Some(query) = &table.query else { continue };
        if query.uses.iter().any(|(o, c)| *o == id && column.is_none_or(|n| *c == n)) {
            out.push((Item::Relation(table.oid), Tie::Normal));
        }
    }
}

/// Policies and rules that use an object, or one column of it.
fn policies_using(view: &Snapshot, id: u32, column: Option<u16>, out: &mut Vec<(Item, Tie)>) {
    let all = super::policy::users(view, id, column).into_iter();
    let all = all.chain(super::rule::users(view, id, column));
    out.extend(all.map(|item| (item, Tie::Normal)));
}

/// Functions whose standard body uses an object, or that return a table's rows.
fn functions_using(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    let uses = |f: &&std::sync::Arc<catalog::Function>| {
        f.row_of == Some(id) || f.uses.iter().any(|(o, _)| *o == id)
    };
    out.extend(view.functions().filter(uses).map(|f| (Item::Function(f.oid), Tie::Normal)));
}

/// Functions whose standard body uses a type and whose signature does not.
fn bodies_using(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    let uses = |f: &&std::sync::Arc<catalog::Function>| {
        let named = f.result == id || f.args.iter().any(|a| a.ty == id);
        !named && f.uses.iter().any(|(o, _)| *o == id)
    };
    out.extend(view.functions().filter(uses).map(|f| (Item::Function(f.oid), Tie::Normal)));
}

/// Foreign keys of other tables that refer to a table.
fn keys_from_others(
    view: &Snapshot,
    table: &Table,
    fits: impl Fn(&catalog::ForeignKey) -> bool,
) -> Vec<(Item, Tie)> {
    let mut out = keys_from_others_and_self(view, table, fits);
    out.retain(|(item, _)| !matches!(item, Item::Constraint(t, _) if *t == table.oid));
    out
}

fn keys_from_others_and_self(
    view: &Snapshot,
    table: &Table,
    fits: impl Fn(&catalog::ForeignKey) -> bool,
) -> Vec<(Item, Tie)> {
    let mut out = Vec::new();
    let mut add = |to: &Table| {
        for child in to.referenced_by.iter().filter_map(|id| view.table(*id)) {
            for (constraint, key) in child.foreign_keys() {
                let own = to.oid == table.oid || constraint.parent == 0;
                if key.table == to.oid && own && fits(key) {
                    out.push((Item::Constraint(child.oid, constraint.oid), Tie::Normal));
                }
            }
        }
    };
    add(table);
    // Keys to the whole need its partitions' rows.
    if table.bound.is_some() {
        let above = view.partition_ancestors(table.oid);
        above.iter().filter_map(|id| view.table(*id)).for_each(|whole| add(whole));
    }
    out
}

fn column_users(view: &Snapshot, id: u32, n: u16, out: &mut Vec<(Item, Tie)>) {
    let Some(table) = view.table(id) else { return };
    let column = &table.columns[usize::from(n) - 1];
    views_using(view, id, Some(n), out);
    policies_using(view, id, Some(n), out);
    let bodies = view.functions().filter(|f| f.uses.contains(&(id, n)));
    out.extend(bodies.map(|f| (Item::Function(f.oid), Tie::Normal)));
    let about = view.extended_statistics().filter(|s| s.table == id && s.uses_column(n));
    out.extend(about.map(|s| (Item::Defined(s.oid), Tie::Auto)));
    let published = super::publication::column_users(view, id, n);
    out.extend(published.into_iter().map(|item| (item, Tie::Normal)));
    let owned = view.sequences().filter(|s| s.owned_by == Some((id, n)));
    out.extend(owned.map(|s| (Item::Sequence(s.oid), Tie::Auto)));
    out.extend(keys_from_others(view, table, |k| k.referenced.contains(&n)));
    for trigger in &table.triggers {
        if trigger.columns.contains(&n) || trigger.uses.contains(&(id, n)) {
            out.push((Item::Trigger(id, trigger.oid), Tie::Normal));
        }
    }
    let indexes = view.indexes_of(table);
    let index_has = |index: u32| indexes.iter().any(|i| i.oid == index && i.uses_column(n));
    for constraint in &table.constraints {
        let about = match &constraint.kind {
            ConstraintKind::Check(sql) => mentions(sql, &column.name),
            ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
                index_has(*index)
            }
            ConstraintKind::ForeignKey(key) => {
                key.columns.contains(&n) || key.table == id && key.referenced.contains(&n)
            }
        };
        if about {
            out.push((Item::Constraint(id, constraint.oid), Tie::Auto));
        }
    }
    let backs = |index: u32| {
        table.constraints.iter().any(|c| {
            matches!(c.kind, ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } if i == index)
        })
    };
    for index in &indexes {
        let predicate = index.predicate.as_deref();
        let about =
            index.uses_column(n) || predicate.is_some_and(|sql| mentions(sql, &column.name));
        if about && !backs(index.oid) {
            out.push((Item::Index(index.oid), Tie::Auto));
        }
    }
    for (other, c) in table.live_columns() {
        let sql = c.default.as_deref().unwrap_or_default();
        if c.generated && other != n && mentions(sql, &column.name) {
            out.push((Item::Column(id, other), Tie::Normal));
        }
    }
}

/// The constraint that an index backs, else the index.
fn index_or_key(view: &Snapshot, index: &catalog::Index) -> Item {
    let backs = |c: &&catalog::Constraint| match c.kind {
        ConstraintKind::PrimaryKey { index: own } | ConstraintKind::Unique { index: own } => {
            own == index.oid
        }
        _ => false,
    };
    let constraint = view.table(index.table).and_then(|t| t.constraints.iter().find(backs));
    match constraint {
        Some(constraint) => Item::Constraint(index.table, constraint.oid),
        None => Item::Index(index.oid),
    }
}

/// Defaults, conditions and indexes whose expressions name a sequence, type, function or collation.
fn expression_users(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    out.extend(super::trigger::users(view, id).into_iter().map(|item| (item, Tie::Normal)));
    policies_using(view, id, None, out);
    for index in view.indexes().filter(|i| i.uses.contains(&id)) {
        out.push((index_or_key(view, index), Tie::Normal));
    }
    for table in view.tables() {
        if table.partitioning.as_ref().is_some_and(|by| by.uses.contains(&id)) {
            out.push((Item::Relation(table.oid), Tie::Normal));
        }
        for constraint in table.constraints.iter().filter(|c| c.uses.contains(&id)) {
            out.push((Item::Constraint(table.oid, constraint.oid), Tie::Normal));
        }
        for (n, column) in table.live_columns() {
            if column.default_uses.contains(&id) {
                let item = match column.generated {
                    true => Item::Column(table.oid, n),
                    false => Item::Default(table.oid, n),
                };
                out.push((item, Tie::Normal));
            }
        }
    }
}

/// The objects with an expression that uses a type: views, functions' bodies and defaults, and parts of tables.
pub fn expressions_using(view: &Snapshot, id: u32) -> Vec<Item> {
    let mut out = Vec::new();
    let about = view.extended_statistics().filter(|s| s.uses.contains(&id));
    out.extend(about.map(|s| (Item::Defined(s.oid), Tie::Normal)));
    views_using(view, id, None, &mut out);
    functions_using(view, id, &mut out);
    expression_users(view, id, &mut out);
    out.into_iter().map(|(item, _)| item).collect()
}

fn type_users(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    for table in view.tables() {
        if table.of_type == id {
            out.push((Item::Relation(table.oid), Tie::Normal));
        }
        if table.kind == TableKind::View {
            continue;
        }
        for (n, column) in table.live_columns() {
            if column.ty == id {
                // A partition key's column does not go without its table.
                let is_key = |by: &catalog::Partitioning| {
                    by.keys.iter().any(|k| k.column == n || k.columns.contains(&n))
                };
                let item = match table.partitioning.as_deref().is_some_and(is_key) {
                    true => Item::Relation(table.oid),
                    false => Item::Column(table.oid, n),
                };
                out.push((item, Tie::Normal));
            }
        }
    }
    views_using(view, id, None, out);
    for other in view.user_types() {
        let uses = match &other.kind {
            UserTypeKind::Domain { base, .. } => *base == id,
            UserTypeKind::Composite(columns) => {
                for (n, _) in columns.iter().enumerate().filter(|(_, c)| !c.dropped && c.ty == id) {
                    out.push((Item::Attribute(other.oid, n as u16 + 1), Tie::Normal));
                }
                false
            }
            UserTypeKind::Range(range) => range.subtype == id,
            UserTypeKind::Multirange { range } => {
                if *range == id {
                    out.push((Item::Type(other.oid), Tie::Auto));
                }
                false
            }
            UserTypeKind::Base(base) => base.element == id,
            UserTypeKind::Enum(_) | UserTypeKind::Shell => false,
        };
        if uses || other.uses.contains(&id) && other.oid != id {
            out.push((Item::Type(other.oid), Tie::Normal));
        }
    }
    for function in view.functions() {
        let uses = function.result == id || function.args.iter().any(|a| a.ty == id);
        if function.is_constructor() && function.result == id {
            out.push((Item::Function(function.oid), Tie::Auto));
        } else if uses && !function.is_constructor() {
            out.push((Item::Function(function.oid), Tie::Normal));
        }
    }
}

/// Columns, indexes and types whose texts are sorted by a collation, and what names it.
fn collation_users(view: &Snapshot, id: u32, out: &mut Vec<(Item, Tie)>) {
    for table in view.tables().filter(|t| t.kind != TableKind::View) {
        for (n, column) in table.live_columns() {
            if column.collation == id {
                out.push((Item::Column(table.oid, n), Tie::Normal));
            }
        }
    }
    let by = |c: &catalog::IndexColumn| c.collation.as_ref().is_some_and(|c| c.oid == id);
    for index in view.indexes().filter(|i| i.columns.iter().any(by)) {
        // An index of a column with this collation goes with the column.
        let of_column = view.table(index.table).is_some_and(|t| {
            let own = |c: &&catalog::IndexColumn| by(c) && c.column > 0;
            index.columns.iter().filter(own).any(|c| {
                t.columns.get(usize::from(c.column) - 1).is_some_and(|t| t.collation == id)
            })
        });
        if !of_column {
            out.push((Item::Index(index.oid), Tie::Normal));
        }
    }
    for ty in view.user_types() {
        let uses = match &ty.kind {
            UserTypeKind::Domain { collation, .. } => *collation == id,
            _ => false,
        };
        if uses || ty.uses.contains(&id) {
            out.push((Item::Type(ty.oid), Tie::Normal));
        }
    }
    views_using(view, id, None, out);
    expression_users(view, id, out);
}

/// An item on the list of what goes.
struct Doomed {
    item: Item,
    /// The item that it goes with, and whether that needs CASCADE. None: the statement names it.
    because: Option<(Item, Tie)>,
}

/// Everything that goes with the items: dependents before what they depend on.
fn collect(view: &Snapshot, items: &[Item]) -> Vec<Doomed> {
    let seen = items.iter().copied().collect();
    let mut walk = Walk { view, used: Used::of(view), seen, out: Vec::new() };
    for item in items {
        walk.add_members(*item);
        walk.add_users(*item);
        walk.out.push(Doomed { item: *item, because: None });
    }
    // A part of a relation that goes is not named by itself.
    let whole: HashSet<Item> = walk.out.iter().map(|d| d.item).collect();
    walk.out.retain(|d| {
        let owner = match d.item {
            Item::Column(t, _)
            | Item::Constraint(t, _)
            | Item::Trigger(t, _)
            | Item::Policy(t, _)
            | Item::Rule(t, _)
            | Item::Default(t, _) => Some(Item::Relation(t)),
            Item::Attribute(t, _) => Some(Item::Type(t)),
            _ => None,
        };
        d.because.is_none() || owner.is_none_or(|owner| !whole.contains(&owner))
    });
    walk.out
}

struct Walk<'v> {
    view: &'v Snapshot,
    used: Used,
    seen: HashSet<Item>,
    out: Vec<Doomed>,
}

impl Walk<'_> {
    /// The members of an extension, which go with it whatever they use of each other.
    fn add_members(&mut self, item: Item) {
        let Item::Defined(id) = item else { return };
        let Some(catalog::Defined::Extension(extension)) =
            self.view.defined_by_oid(id).map(|d| &**d)
        else {
            return;
        };
        let of = |id: &u32| item_of(self.view, *id);
        let members: Vec<Item> = extension.members.iter().rev().filter_map(of).collect();
        let members: Vec<Item> = members.into_iter().filter(|m| self.seen.insert(*m)).collect();
        for member in members {
            self.add_users(member);
            self.out.push(Doomed { item: member, because: Some((item, Tie::Auto)) });
        }
    }

    fn add_users(&mut self, item: Item) {
        for (user, tie) in users(self.view, &self.used, item) {
            // Part of a relation that goes anyway.
            let whole = match user {
                Item::Column(t, _)
                | Item::Constraint(t, _)
                | Item::Trigger(t, _)
                | Item::Policy(t, _)
                | Item::Rule(t, _)
                | Item::Default(t, _) => Some(Item::Relation(t)),
                Item::Index(i) => self.view.index(i).map(|i| Item::Relation(i.table)),
                _ => None,
            };
            let column = match user {
                Item::Default(t, n) => Some(Item::Column(t, n)),
                _ => None,
            };
            let gone = |i: Option<Item>| i.is_some_and(|i| self.seen.contains(&i));
            if gone(whole) || gone(column) || !self.seen.insert(user) {
                if tie == Tie::Auto {
                    self.soften(user);
                }
                continue;
            }
            self.add_members(user);
            self.add_users(user);
            self.out.push(Doomed { item: user, because: Some((item, tie)) });
        }
    }

    /// It would go along with something anyhow.
    fn soften(&mut self, item: Item) {
        for doomed in self.out.iter_mut().filter(|d| d.item == item) {
            if let Some((_, tie)) = &mut doomed.because {
                *tie = Tie::Auto;
            }
        }
    }
}

/// Drops items and everything that must go with them.
///
/// # Errors
/// `2BP01` when others depend on them and CASCADE wasn't said; those of locking and the catalog.
pub fn drop_items(cx: &mut ExecContext<'_>, items: &[Item], cascade: bool) -> Result<()> {
    let (mut locked, mut held): (HashSet<u32>, HashSet<u32>) = Default::default();
    let doomed = loop {
        let view = cx.catalog_tx.view();
        let doomed = collect(&view, items);
        let mut fresh = false;
        for id in doomed.iter().filter_map(|d| d.item.guard(&view)) {
            if locked.insert(id) {
                lock(cx, id, LockMode::AccessExclusive)?;
                fresh = true;
            }
        }
        // Others may be about to make what needs one of these.
        for id in doomed.iter().filter_map(|d| d.item.needed()) {
            if held.insert(id) && !cx.catalog_tx.has_changed(id) {
                cx.catalog_tx.lock_against_references(cx.tx, id)?;
                fresh = true;
            }
        }
        if !fresh {
            break doomed;
        }
    };
    let gone: HashSet<Item> = doomed.iter().map(|d| d.item).collect();
    keep_members(cx, &doomed, &gone)?;
    report(cx, items, &doomed, cascade)?;
    doomed.iter().try_for_each(|d| delete(cx, d.item, &gone))
}

/// `2BP01` when a member of an extension would go without it, unless a script of an extension says so.
fn keep_members(cx: &mut ExecContext<'_>, doomed: &[Doomed], gone: &HashSet<Item>) -> Result<()> {
    let view = cx.catalog_tx.view();
    if view.extensions().next().is_none() {
        return Ok(());
    }
    let mark = super::extension::MARK;
    if cx.hooks.deferred().running.iter().any(|tag| tag.starts_with(mark)) {
        return Ok(());
    }
    for item in doomed.iter().rev().map(|d| d.item) {
        if matches!(item, Item::Column(..) | Item::Constraint(..) | Item::Default(..))
            || matches!(item, Item::Attribute(..) | Item::Trigger(..) | Item::Policy(..))
        {
            continue;
        }
        let Some(extension) = view.extension_of(item.oid()) else { continue };
        if gone.contains(&Item::Defined(extension.oid)) {
            continue;
        }
        let what = describe(&view, cx.search_path, item);
        let name = quote_identifier(&extension.name);
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop {what} because extension {name} requires it"
        )
        .hint(format!("You can drop extension {name} instead.")));
    }
    Ok(())
}

/// The error of RESTRICT, if something uses the item.
///
/// # Errors
/// `2BP01`.
pub fn expect_unused(cx: &mut ExecContext<'_>, item: Item) -> Result<()> {
    let doomed = collect(&cx.catalog_tx.view(), &[item]);
    report(cx, &[item], &doomed, false)
}

/// The error of RESTRICT, or the notice of CASCADE.
fn report(
    cx: &mut ExecContext<'_>,
    items: &[Item],
    doomed: &[Doomed],
    cascade: bool,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let path = cx.search_path;
    let others: Vec<(Item, Item)> = doomed
        .iter()
        .rev()
        .filter_map(|d| match d.because {
            Some((of, Tie::Normal)) => Some((d.item, of)),
            _ => None,
        })
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    let line = |(item, of): &(Item, Item)| {
        if cascade {
            format!("drop cascades to {}", describe(&view, path, *item))
        } else {
            format!("{} depends on {}", describe(&view, path, *item), describe(&view, path, *of))
        }
    };
    let mut lines: Vec<String> = others.iter().take(LISTED_MAX).map(line).collect();
    if others.len() > LISTED_MAX {
        lines.push(format!(
            "and {} other objects (see server log for list)",
            others.len() - LISTED_MAX
        ));
    }
    if !cascade {
        let message = match items {
            [one] => format!(
                "cannot drop {} because other objects depend on it",
                describe(&view, path, *one)
            ),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "{message}")
            .detail(lines.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    if let [line] = &lines[..] {
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, line.clone());
        return Ok(());
    }
    let message = format!("drop cascades to {} other objects", others.len());
    let error = base::Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message);
    cx.hooks.notice("NOTICE", error.detail(lines.join("\n")));
    Ok(())
}

fn view_has_no_type(cx: &mut ExecContext<'_>, id: u32) -> bool {
    cx.catalog_tx.view().user_type(id).is_none()
}

fn put(cx: &mut ExecContext<'_>, table: Table) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

fn delete(cx: &mut ExecContext<'_>, item: Item, gone: &HashSet<Item>) -> Result<()> {
    match item {
        Item::Attribute(id, n) => super::composite::drop_attribute(cx, id, n),
        // A table's row type is no object of its own, nor is an array's.
        Item::Type(id) if view_has_no_type(cx, id) => remove_comments(cx, id),
        Item::Type(id) => {
            exec::rights::forget(cx, id)?;
            let parts: Vec<u32> = match cx.catalog_tx.view().user_type(id) {
                Some(t) => match &t.kind {
                    UserTypeKind::Domain { checks, .. } => checks.iter().map(|c| c.oid).collect(),
                    _ => vec![t.class],
                },
                None => Vec::new(),
            };
            for part in [id].into_iter().chain(parts).filter(|part| *part != 0) {
                remove_comments(cx, part)?;
            }
            cx.catalog_tx.remove(cx.tx, id)
        }
        Item::Defined(id) => super::defined::remove(cx, id),
        Item::Collation(id) => {
            remove_comments(cx, id)?;
            cx.catalog_tx.remove(cx.tx, id)
        }
        Item::Schema(id) | Item::Function(id) => {
            remove_comments(cx, id)?;
            if matches!(item, Item::Schema(_)) {
                super::publication::forget(cx, id)?;
            }
            exec::rights::forget(cx, id)?;
            // Default privileges in a schema go with it.
            let view = cx.catalog_tx.view();
            for known in view.default_acls().filter(|d| d.schema == id) {
                cx.catalog_tx.remove(cx.tx, known.oid)?;
            }
            cx.catalog_tx.remove(cx.tx, id)
        }
        Item::Relation(id) => remove_table(cx, id, gone),
        Item::Sequence(id) => super::sequence::remove(cx, id),
        Item::Index(id) => {
            let view = cx.catalog_tx.view();
            let Some(index) = view.index(id).cloned() else { return Ok(()) };
            if gone.contains(&Item::Relation(index.table)) {
                return Ok(());
            }
            let mut table = refresh(cx, index.table)?;
            table.indexes.retain(|i| *i != id);
            remove_index(cx, id)?;
            put(cx, table)
        }
        Item::Constraint(table, id) => {
            let Ok(mut table) = refresh(cx, table) else { return Ok(()) };
            let Some(at) = table.constraints.iter().position(|c| c.oid == id) else {
                return Ok(());
            };
            let constraint = table.constraints.remove(at);
            remove_comments(cx, id)?;
            let child = table.oid;
            let parent = match &constraint.kind {
                ConstraintKind::ForeignKey(key) => Some(key.table),
                _ => None,
            };
            let still = table.foreign_keys().any(|(_, key)| Some(key.table) == parent);
            put(cx, table)?;
            match parent {
                Some(parent) if !still && !gone.contains(&Item::Relation(parent)) => {
                    forget_reference(cx, parent, child)
                }
                _ => Ok(()),
            }
        }
        Item::Trigger(table, id) => super::trigger::remove(cx, table, id),
        Item::Policy(table, id) => super::policy::remove(cx, table, id),
        Item::Published(publication, id) => super::publication::remove_member(cx, publication, id),
        Item::Rule(table, id) => super::rule::remove(cx, table, id),
        Item::Default(table, n) => {
            let Ok(mut table) = refresh(cx, table) else { return Ok(()) };
            let column = &mut table.columns[usize::from(n) - 1];
            column.default = None;
            column.default_uses.clear();
            put(cx, table)
        }
        Item::Column(table, n) => {
            exec::rights::forget_column(cx, table, n)?;
            let mut table = refresh(cx, table)?;
            let column = &mut table.columns[usize::from(n) - 1];
            *column = catalog::Column {
                name: format!("........pg.dropped.{n}........"),
                ty: column.ty,
                typmod: column.typmod,
                dropped: true,
                ..catalog::Column::default()
            };
            remove_column_comment(cx, table.oid, n)?;
            super::follow::close_up(cx, &table, n)?;
            put(cx, table)
        }
    }
}
