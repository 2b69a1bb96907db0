//! Objects of the further kinds ([`crate::object::Defined`]) by oid and by name.

use std::sync::Arc;

use imbl::{HashMap, OrdMap, OrdSet};

use crate::object::{Defined, Id, OperatorClass, OperatorFamily};

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
            Defined::Class(o) if o.usable => {
                learn(o);
                if let Some(Defined::Family(family)) = self.all.get(&o.family).map(|d| &**d) {
                    learn_loose(family, o);
                }
            }
            Defined::Family(family) => {
                for other in self.all.values() {
                    if let Defined::Class(class) = &**other
                        && class.usable
                        && class.family == family.oid
                    {
                        learn_loose(family, class);
                    }
                }
            }
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

/// Tells `types` of the operators of a family that are in no class: those that PostgreSQL's class has under the same
/// numbers whose code is behind one of the family's.
fn learn_loose(family: &OperatorFamily, class: &OperatorClass) {
    use base::Oid;
    use types::opclass;
    let same = class.code.strip_prefix('=').and_then(|oid| oid.parse().ok());
    let Some(behind) = same.and_then(opclass::class) else { return };
    for operator in &family.operators {
        let sides = [Oid(operator.left), Oid(operator.right)];
        let known = opclass::family_operators(behind.family, sides);
        let Some(row) = types::func::operator(Oid(operator.operator)) else { continue };
        if known.contains(&(operator.number, Oid(operator.operator))) {
            let member = opclass::Member {
                family: family.oid,
                sides,
                strategy: operator.number as u16,
                operator: Oid(operator.operator),
                orders: operator.sort_family != 0,
            };
            opclass::learn_member(member, row.function, class.base_method());
        }
    }
}
