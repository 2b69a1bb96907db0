//! Objects of the further kinds ([`crate::object::Defined`]) by oid and by name.

use std::sync::Arc;

use imbl::{HashMap, OrdMap, OrdSet};

use crate::object::{Defined, Id, OperatorClass};

/// Such objects, and what finds them.
#[derive(Clone, Default)]
pub(crate) struct DefinedMap {
    pub(crate) all: OrdMap<Id, Arc<Defined>>,
    /// Oids of the operators with a name, whatever their schema.
    pub(crate) operators: HashMap<String, Vec<Id>>,
    /// Casts by source and target.
    pub(crate) casts: HashMap<(Id, Id), Id>,
    /// Oids of publications: every change of a row asks whether there are any.
    pub(crate) publications: OrdSet<Id>,
    /// Oids of subscriptions.
    pub(crate) subscriptions: OrdSet<Id>,
}

impl DefinedMap {
    pub(crate) fn put(&mut self, object: Defined) {
        let oid = object.oid();
        match &object {
            Defined::Operator(o) => self.operators.entry(o.name.clone()).or_default().push(oid),
            Defined::Cast(o) => {
                types::user::some_casts();
                self.casts.insert((o.source, o.target), oid);
            }
            Defined::Class(o) if o.usable => learn(o),
            Defined::Publication(_) => drop(self.publications.insert(oid)),
            Defined::Subscription(_) => drop(self.subscriptions.insert(oid)),
            _ => {}
        }
        self.all.insert(oid, Arc::new(object));
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, id: Id) -> bool {
        let Some(object) = self.all.remove(&id) else { return false };
        match &*object {
            Defined::Operator(o) => {
                let left = self.operators.get_mut(&o.name).is_some_and(|ids| {
                    ids.retain(|known| *known != id);
                    !ids.is_empty()
                });
                if !left {
                    self.operators.remove(&o.name);
                }
            }
            Defined::Cast(o) => drop(self.casts.remove(&(o.source, o.target))),
            Defined::Publication(_) => drop(self.publications.remove(&id)),
            Defined::Subscription(_) => drop(self.subscriptions.remove(&id)),
            _ => {}
        }
        true
    }

    pub(crate) fn same(&self, other: &DefinedMap, id: Id) -> bool {
        match (self.all.get(&id), other.all.get(&id)) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Tells `types` of a class that indexes can have, which looks classes up by oid.
fn learn(class: &OperatorClass) {
    use types::opclass;
    opclass::learn(opclass::NewClass {
        class: opclass::Class {
            oid: class.oid,
            name: "",
            family: class.family,
            ty: base::Oid(class.input),
            default: class.default,
            key_type: base::Oid(class.key),
            method: class.base_method(),
        },
        name: &class.name,
        code: &class.code,
    });
    for (operator, function) in class.operators.iter().zip(&class.behind) {
        let member = opclass::Member {
            family: class.family,
            sides: [base::Oid(operator.left), base::Oid(operator.right)],
            strategy: operator.number as u16,
            operator: base::Oid(operator.operator),
            orders: operator.sort_family != 0,
        };
        opclass::learn_member(member, base::Oid(*function), class.base_method());
    }
}
