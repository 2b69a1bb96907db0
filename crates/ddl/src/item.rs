//! Objects as far as others depend on them.

use catalog::Snapshot;

/// A member of an extension as what DROP deletes; None: it goes with another member.
pub fn item_of(view: &Snapshot, id: u32) -> Option<Item> {
    Some(if view.defined_by_oid(id).is_some() {
        Item::Defined(id)
    } else if view.function(id).is_some() {
        Item::Function(id)
    } else if view.user_type(id).is_some() {
        Item::Type(id)
    } else if view.table(id).is_some() {
        Item::Relation(id)
    } else if view.sequence(id).is_some() {
        Item::Sequence(id)
    } else if view.schema(id).is_some() {
        Item::Schema(id)
    } else if view.collation(id).is_some() {
        Item::Collation(id)
    } else {
        return None;
    })
}

/// Something that can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// A schema.
    Schema(u32),
    /// A table, view or materialized view.
    Relation(u32),
    /// An index.
    Index(u32),
    /// A sequence.
    Sequence(u32),
    /// A table's column, from 1.
    Column(u32, u16),
    /// A table's constraint, by its oid.
    Constraint(u32, u32),
    /// A column's default.
    Default(u32, u16),
    /// A table's trigger, by its oid.
    Trigger(u32, u32),
    /// A table's policy, by its oid.
    Policy(u32, u32),
    /// A relation's rule, by its oid.
    Rule(u32, u32),
    /// A type.
    Type(u32),
    /// A composite type's column, from 1.
    Attribute(u32, u16),
    /// A function.
    Function(u32),
    /// A collation.
    Collation(u32),
    /// A table in a publication, by the oids of the publication and of the entry.
    Published(u32, u32),
    /// An operator, cast, operator class or family, conversion.
    Defined(u32),
}

impl Item {
    /// The oid of an object that others name as a whole.
    pub fn needed(self) -> Option<u32> {
        match self {
            Item::Schema(id) | Item::Sequence(id) | Item::Relation(id) => Some(id),
            Item::Type(id) | Item::Function(id) | Item::Collation(id) => Some(id),
            _ => None,
        }
    }

    /// Its oid; a column's is its table's.
    pub fn oid(self) -> u32 {
        match self {
            Item::Schema(id)
            | Item::Relation(id)
            | Item::Index(id)
            | Item::Sequence(id)
            | Item::Column(id, _)
            | Item::Constraint(_, id)
            | Item::Trigger(_, id)
            | Item::Policy(_, id)
            | Item::Rule(_, id)
            | Item::Published(_, id)
            | Item::Default(id, _)
            | Item::Type(id)
            | Item::Attribute(id, _)
            | Item::Function(id)
            | Item::Collation(id)
            | Item::Defined(id) => id,
        }
    }

    /// The relation whose lock guards it.
    pub(crate) fn guard(self, view: &Snapshot) -> Option<u32> {
        match self {
            Item::Relation(id)
            | Item::Sequence(id)
            | Item::Column(id, _)
            | Item::Constraint(id, _)
            | Item::Trigger(id, _)
            | Item::Policy(id, _)
            | Item::Rule(id, _)
            | Item::Default(id, _) => Some(id),
            Item::Index(id) => view.index(id).map(|i| i.table),
            Item::Schema(_)
            | Item::Type(_)
            | Item::Attribute(..)
            | Item::Function(_)
            | Item::Collation(_)
            | Item::Published(..)
            | Item::Defined(_) => None,
        }
    }
}
