//! The system table that an object belongs to, by its oid.

use crate::object::Id;
use crate::snapshot::Snapshot;
use crate::system::class;
use crate::system::cx::SystemCx;

/// The class of an object that a user made.
pub(crate) fn class_of(cx: &SystemCx<'_>, id: Id) -> Id {
    kind_of(cx.catalog, id)
}

pub(crate) fn kind_of(catalog: &Snapshot, id: Id) -> Id {
    if catalog.schema(id).is_some() {
        class::SCHEMA
    } else if catalog.type_id(id).is_some() {
        class::TYPE
    } else if catalog.function(id).is_some() {
        class::FUNCTION
    } else if catalog.collation(id).is_some() {
        class::COLLATION
    } else if let Some(own) = catalog.defined_by_oid(id) {
        own.class()
    } else if catalog.role(id).is_some() {
        class::ROLE
    } else if catalog.database(id).is_some() {
        class::DATABASE
    } else if catalog.relation_by_oid(id).is_some() || catalog.composite_of_class(id).is_some() {
        class::RELATION
    } else if catalog.event_triggers().any(|t| t.oid == id) {
        class::EVENT_TRIGGER
    } else if catalog.tables().any(|t| t.triggers.iter().any(|one| one.oid == id)) {
        class::TRIGGER
    } else if catalog.tables().any(|t| t.policies.iter().any(|one| one.oid == id)) {
        class::POLICY
    } else {
        class::CONSTRAINT
    }
}
