//! Objects in words, as messages name them.

use catalog::snapshot::TypeId;
use catalog::{Snapshot, UserTypeKind};
use exec::session::quote_identifier;

use crate::function_body::signature;
use crate::item::Item;

fn qualified(view: &Snapshot, path: &[u32], schema: u32, name: &str) -> String {
    let mut path = view.implicit_temporary(path).into_iter().chain(path.iter().copied());
    let first = path.find(|s| view.relation_in(*s, name).is_some() || *s == schema);
    match view.schema(schema) {
        Some(s) if first != Some(schema) => {
            format!("{}.{}", quote_identifier(&s.name), quote_identifier(name))
        }
        _ => quote_identifier(name),
    }
}

fn described_table(view: &Snapshot, path: &[u32], id: u32) -> String {
    match view.table(id) {
        Some(t) => format!(
            "{} {}",
            exec::relation_lock::kind_word(t),
            qualified(view, path, t.schema, &t.name)
        ),
        None => format!("table {id}"),
    }
}

/// As PostgreSQL describes an object in messages.
pub fn describe(view: &Snapshot, path: &[u32], item: Item) -> String {
    let column = |table: u32, n: u16| {
        let name = view.table(table).and_then(|t| t.columns.get(usize::from(n) - 1));
        name.map_or_else(String::new, |c| quote_identifier(&c.name))
    };
    match item {
        Item::Schema(id) => {
            let name = view.schema(id).map_or("", |s| s.name.as_str());
            format!("schema {}", quote_identifier(name))
        }
        Item::Relation(id) => described_table(view, path, id),
        Item::Index(id) => match view.index(id) {
            Some(i) => format!("index {}", qualified(view, path, i.schema, &i.name)),
            None => format!("index {id}"),
        },
        Item::Sequence(id) => match view.sequence(id) {
            Some(s) => format!("sequence {}", qualified(view, path, s.schema, &s.name)),
            None => format!("sequence {id}"),
        },
        Item::Column(table, n) => {
            format!("column {} of {}", column(table, n), described_table(view, path, table))
        }
        Item::Default(table, n) => format!(
            "default value for column {} of {}",
            column(table, n),
            described_table(view, path, table)
        ),
        Item::Constraint(table, id) => {
            let found = view.table(table).and_then(|t| t.constraints.iter().find(|c| c.oid == id));
            let name = found.map_or("", |c| c.name.as_str());
            format!(
                "constraint {} on {}",
                quote_identifier(name),
                described_table(view, path, table)
            )
        }
        Item::Trigger(table, id) => {
            let found = view.table(table).and_then(|t| t.triggers.iter().find(|c| c.oid == id));
            let name = found.map_or("", |c| c.name.as_str());
            let on = described_table(view, path, table);
            format!("trigger {name} on {on}")
        }
        Item::Policy(table, id) => {
            let found = view.table(table).and_then(|t| t.policies.iter().find(|p| p.oid == id));
            let name = found.map_or("", |p| p.name.as_str());
            format!("policy {name} on {}", described_table(view, path, table))
        }
        Item::Rule(table, id) => {
            let found = view.table(table).and_then(|t| t.rules.iter().find(|r| r.oid == id));
            let name = found.map_or("", |r| r.name.as_str());
            format!("rule {name} on {}", described_table(view, path, table))
        }
        Item::Type(id) => match view.type_name(path, id) {
            Some(name) => format!("type {name}"),
            None => format!("type {id}"),
        },
        Item::Attribute(id, n) => {
            let column = match view.user_type(id).map(|t| &t.kind) {
                Some(UserTypeKind::Composite(columns)) => columns.get(usize::from(n) - 1),
                _ => None,
            };
            let column = column.map_or_else(String::new, |c| quote_identifier(&c.name));
            let name = view.type_name(path, id).unwrap_or_default();
            format!("column {column} of composite type {name}")
        }
        Item::Function(id) => match view.function(id) {
            // A procedure, too.
            Some(f) => format!("function {}", signature(view, path, f)),
            None => format!("function {id}"),
        },
        Item::Collation(id) => match view.shown_collation(path, id) {
            Some(name) => format!("collation {name}"),
            None => format!("collation {id}"),
        },
        Item::Published(publication, id) => {
            let found = match view.defined_by_oid(publication).map(|d| &**d) {
                Some(catalog::Defined::Publication(p)) => p,
                _ => return format!("publication {publication}"),
            };
            let table = found.tables.iter().find(|t| t.oid == id).map_or(0, |t| t.table);
            let name = view.table(table).map(|t| qualified(view, path, t.schema, &t.name));
            let name = name.unwrap_or_default();
            format!("publication of table {name} in publication {}", found.name)
        }
        Item::Defined(id) => super::defined::describe(view, path, id),
    }
}

/// The array type over a type, which is part of it.
pub(crate) fn array_over(view: &Snapshot, ty: u32) -> Option<u32> {
    match view.type_id(ty)? {
        TypeId::User(id, false) => view.user_type(id).map(|t| t.array),
        TypeId::Row(id, false) => view.table(id).map(|t| t.row_type[1]),
        _ => None,
    }
}
