//! One immutable version of a database's catalog, shared by all its sessions. Maps are persistent: a new version
//! shares all but the changed paths with the old one.

use std::sync::Arc;

use base::{Error, Result, err};
use imbl::{HashMap, OrdMap, OrdSet};

use crate::defined_map::DefinedMap;
use crate::object::{
    Acl, AclKind, Collation, Comment, Database, DefaultAcl, Defined, EventTrigger, Function, Id,
    Index, Object, Role, Schema, Sequence, SessionDefaults, Table, TableStats, UserType,
    UserTypeKind, ids,
};
use crate::partition::Family;

/// See the module's documentation.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Grows with every published change; 0 in a private version that isn't published.
    pub version: u64,
    schemas: OrdMap<Id, Arc<Schema>>,
    tables: OrdMap<Id, Arc<Table>>,
    indexes: OrdMap<Id, Arc<Index>>,
    roles: OrdMap<Id, Arc<Role>>,
    databases: OrdMap<Id, Arc<Database>>,
    stats: OrdMap<Id, Arc<TableStats>>,
    comments: OrdMap<Id, Arc<Comment>>,
    sequences: OrdMap<Id, Arc<Sequence>>,
    types: OrdMap<Id, Arc<UserType>>,
    /// The type behind each oid, those of arrays and of tables' rows included.
    type_ids: OrdMap<Id, TypeId>,
    functions: OrdMap<Id, Arc<Function>>,
    pub(crate) collations: OrdMap<Id, Arc<Collation>>,
    pub(crate) defined: DefinedMap,
    acls: OrdMap<Id, Arc<Acl>>,
    /// The rights on an object and its columns.
    acl_of: OrdMap<(AclKind, Id, u16), Id>,
    default_acls: OrdMap<Id, Arc<DefaultAcl>>,
    session_defaults: OrdMap<Id, Arc<SessionDefaults>>,
    event_triggers: OrdMap<Id, Arc<EventTrigger>>,
    /// (table, index), also of indexes that are no longer on the table's list.
    index_of: OrdSet<(Id, Id)>,
    /// The table of each constraint, trigger, rule and policy.
    part_of: OrdMap<Id, Id>,
    /// (object, comment).
    comment_of: OrdSet<(Id, Id)>,
    /// The partitions of each partitioned table that has some.
    families: OrdMap<Id, Arc<Family>>,
    /// Partitions that are being taken out of their tables.
    detaching: OrdMap<Id, Arc<Table>>,
    role_names: HashMap<String, Id>,
    /// (schema, name) of tables, indexes and sequences: they share one name space, as in `pg_class`.
    relation_names: HashMap<(Id, String), Id>,
    /// (schema, name) of types.
    type_names: HashMap<(Id, String), Id>,
    /// Oids of the functions with a name, whatever their schema.
    function_names: HashMap<String, Vec<Id>>,
    schema_names: HashMap<String, Id>,
    database_names: HashMap<String, Id>,
}

/// The type that an oid stands for; true for the array type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeId {
    /// A type, by its oid.
    User(Id, bool),
    /// The rows of a table, by the table's oid.
    Row(Id, bool),
}

/// An object of the name space of `pg_class`.
#[derive(Clone)]
pub enum Relation {
    /// A table or view.
    Table(Arc<Table>),
    /// An index.
    Index(Arc<Index>),
    /// A sequence.
    Sequence(Arc<Sequence>),
}

impl Relation {
    /// Its oid.
    pub fn oid(&self) -> Id {
        match self {
            Relation::Table(t) => t.oid,
            Relation::Index(i) => i.oid,
            Relation::Sequence(s) => s.oid,
        }
    }
}

impl Snapshot {
    /// The view to plan with for a transaction whose snapshot is as old as this CSN: younger indexes are there, to
    /// be kept up to date, but hidden. Private, like a version with uncommitted changes.
    pub fn for_snapshot(&self, csn: u64) -> Snapshot {
        let mut old = self.clone();
        old.version = 0;
        for index in self.indexes.values().filter(|index| index.since > csn) {
            let hidden = Index { hidden: true, ..Index::clone(index) };
            old.indexes.insert(hidden.oid, Arc::new(hidden));
        }
        old.with_detaching(|since| since > csn)
    }

    /// With partitions that a DETACH CONCURRENTLY is taking out of their tables, if `still` says so of the CSN
    /// since which they are not found there.
    pub fn with_detaching(mut self, still: impl Fn(u64) -> bool) -> Snapshot {
        let is_seen = |t: &&Arc<Table>| t.detaching.is_some_and(&still);
        let seen: Vec<Arc<Table>> = self.detaching.values().filter(is_seen).cloned().collect();
        for table in seen {
            self.join_family(&table);
        }
        self
    }

    fn join_family(&mut self, table: &Arc<Table>) {
        let Some(parent) = table.partition_of() else { return };
        let family = self.families.get(&parent).cloned().unwrap_or_default();
        self.families.insert(parent, Arc::new(family.with(table)));
    }

    /// The partitions that a DETACH CONCURRENTLY is taking out of a table.
    pub fn detaching_from(&self, table: Id) -> impl Iterator<Item = &Arc<Table>> {
        self.detaching.values().filter(move |t| t.partition_of() == Some(table))
    }

    /// Whether there is any, of any table.
    pub fn has_detaching(&self) -> bool {
        !self.detaching.is_empty()
    }

    /// Puts an object in, or in the place of the one with its id.
    pub fn put(&mut self, object: Object) {
        self.remove(object.oid());
        match object {
            Object::Schema(o) => {
                self.schema_names.insert(o.name.clone(), o.oid);
                self.schemas.insert(o.oid, Arc::new(o));
            }
            Object::Table(o) => {
                self.relation_names.insert((o.schema, o.name.clone()), o.oid);
                if let [row, array] = o.row_type
                    && row != 0
                {
                    self.type_ids.insert(row, TypeId::Row(o.oid, false));
                    self.type_ids.insert(array, TypeId::Row(o.oid, true));
                }
                let table = Arc::new(*o);
                self.part_of.extend(table.parts().map(|part| (part, table.oid)));
                match table.detaching {
                    Some(_) => drop(self.detaching.insert(table.oid, table.clone())),
                    None => self.join_family(&table),
                }
                self.tables.insert(table.oid, table);
            }
            Object::Index(o) => {
                self.relation_names.insert((o.schema, o.name.clone()), o.oid);
                self.index_of.insert((o.table, o.oid));
                self.indexes.insert(o.oid, Arc::new(o));
            }
            Object::Role(o) => {
                self.role_names.insert(o.name.clone(), o.oid);
                self.roles.insert(o.oid, Arc::new(o));
            }
            Object::Database(o) => {
                self.database_names.insert(o.name.clone(), o.oid);
                self.databases.insert(o.oid, Arc::new(o));
            }
            Object::Stats(o) => drop(self.stats.insert(o.table, Arc::new(*o))),
            Object::Comment(o) => {
                self.comment_of.insert((o.object, o.oid));
                self.comments.insert(o.oid, Arc::new(o));
            }
            Object::Sequence(o) => {
                self.relation_names.insert((o.schema, o.name.clone()), o.oid);
                self.sequences.insert(o.oid, Arc::new(*o));
            }
            Object::Type(o) => {
                self.type_names.insert((o.schema, o.name.clone()), o.oid);
                self.type_ids.insert(o.oid, TypeId::User(o.oid, false));
                self.type_ids.insert(o.array, TypeId::User(o.oid, true));
                self.types.insert(o.oid, Arc::new(*o));
            }
            Object::Function(o) => {
                self.function_names.entry(o.name.clone()).or_default().push(o.oid);
                self.functions.insert(o.oid, Arc::new(*o));
            }
            Object::Collation(o) => drop(self.collations.insert(o.oid, Arc::new(*o))),
            Object::Acl(o) => {
                self.acl_of.insert((o.kind, o.object, o.column), o.oid);
                self.acls.insert(o.oid, Arc::new(o));
            }
            Object::DefaultAcl(o) => drop(self.default_acls.insert(o.oid, Arc::new(o))),
            Object::EventTrigger(o) => drop(self.event_triggers.insert(o.oid, Arc::new(o))),
            Object::SessionDefaults(o) => drop(self.session_defaults.insert(o.oid, Arc::new(o))),
            Object::Defined(o) => self.defined.put(*o),
        }
    }

    /// Another name for a schema that is there (`pg_temp`).
    pub(crate) fn alias(&mut self, name: &str, schema: Id) {
        self.schema_names.insert(name.to_owned(), schema);
    }

    /// Takes the object with this id out, if it is there.
    pub fn remove(&mut self, id: Id) {
        if id & Object::STATS != 0 {
            self.stats.remove(&(id & !Object::STATS));
        } else if let Some(o) = self.tables.remove(&id) {
            take_name(&mut self.relation_names, &(o.schema, o.name.clone()), id);
            self.detaching.remove(&id);
            for part in o.parts() {
                self.part_of.remove(&part);
            }
            if let Some(parent) = o.partition_of()
                && let Some(family) = self.families.get(&parent)
            {
                let family = Arc::new(family.without(id));
                self.families.insert(parent, family);
            }
            for ty in o.row_type {
                self.type_ids.remove(&ty);
            }
        } else if let Some(o) = self.indexes.remove(&id) {
            self.index_of.remove(&(o.table, id));
            take_name(&mut self.relation_names, &(o.schema, o.name.clone()), id);
        } else if let Some(o) = self.schemas.remove(&id) {
            take_name(&mut self.schema_names, &o.name, id);
        } else if let Some(o) = self.sequences.remove(&id) {
            take_name(&mut self.relation_names, &(o.schema, o.name.clone()), id);
        } else if let Some(o) = self.types.remove(&id) {
            take_name(&mut self.type_names, &(o.schema, o.name.clone()), id);
            self.type_ids.remove(&o.oid);
            self.type_ids.remove(&o.array);
        } else if let Some(o) = self.functions.remove(&id) {
            let left = self.function_names.get_mut(&o.name).is_some_and(|ids| {
                ids.retain(|f| *f != id);
                !ids.is_empty()
            });
            if !left {
                self.function_names.remove(&o.name);
            }
        } else if let Some(o) = self.roles.remove(&id) {
            take_name(&mut self.role_names, &o.name, id);
        } else if let Some(o) = self.acls.remove(&id) {
            self.acl_of.remove(&(o.kind, o.object, o.column));
        } else if let Some(o) = self.databases.remove(&id) {
            take_name(&mut self.database_names, &o.name, id);
        } else if let Some(o) = self.comments.remove(&id) {
            self.comment_of.remove(&(o.object, id));
        } else if self.default_acls.remove(&id).is_none()
            && self.collations.remove(&id).is_none()
            && !self.defined.remove(id)
        {
            self.session_defaults.remove(&id);
            self.event_triggers.remove(&id);
        }
    }

    /// Whether the object with this id belongs to all databases.
    pub(crate) fn is_shared(&self, id: Id) -> bool {
        self.roles.contains_key(&id)
            || self.databases.contains_key(&id)
            || self.session_defaults.contains_key(&id)
            || self.acls.get(&id).is_some_and(|acl| acl.kind.is_shared())
            || self.comments.get(&id).is_some_and(|comment| comment.shared)
    }

    /// The files of tables, indexes and sequences; those of large values are not named.
    pub fn files(&self) -> impl Iterator<Item = base::RelId> {
        let tables = self.tables.values().map(|t| t.rel).filter(|rel| *rel != 0);
        let others = self.indexes.values().map(|i| i.rel).filter(|rel| *rel != 0);
        let sequences = self.sequences.values().map(|s| s.rel);
        tables.chain(others).chain(sequences).map(base::RelId)
    }

    /// All that is not shared with other databases: what a copy of the database begins with.
    pub fn local_objects(&self) -> Vec<Object> {
        let mut out: Vec<Object> = Vec::new();
        out.extend(self.schemas.values().map(|o| Object::Schema(Schema::clone(o))));
        out.extend(self.tables.values().map(|o| Object::Table(Box::new(Table::clone(o)))));
        out.extend(self.indexes.values().map(|o| Object::Index(Index::clone(o))));
        out.extend(self.stats.values().map(|o| Object::Stats(Box::new(TableStats::clone(o)))));
        out.extend(self.comments.values().map(|o| Object::Comment(Comment::clone(o))));
        out.extend(self.sequences.values().map(|o| Object::Sequence(Box::new(Sequence::clone(o)))));
        out.extend(self.types.values().map(|o| Object::Type(Box::new(UserType::clone(o)))));
        out.extend(self.functions.values().map(|o| Object::Function(Box::new(Function::clone(o)))));
        let collations = self.collations.values();
        out.extend(collations.map(|o| Object::Collation(Box::new(Collation::clone(o)))));
        out.extend(self.acls.values().map(|o| Object::Acl(Acl::clone(o))));
        out.extend(
            self.event_triggers.values().map(|o| Object::EventTrigger(EventTrigger::clone(o))),
        );
        out.extend(self.default_acls.values().map(|o| Object::DefaultAcl(DefaultAcl::clone(o))));
        out.extend(self.defined().map(|o| Object::Defined(Box::new(Defined::clone(o)))));
        out.retain(|object| !object.is_shared());
        out
    }

    /// Whether both versions hold the very same object (or none) under this id.
    pub fn same_object(&self, other: &Snapshot, id: Id) -> bool {
        fn same<T>(a: &OrdMap<Id, Arc<T>>, b: &OrdMap<Id, Arc<T>>, id: Id) -> bool {
            match (a.get(&id), b.get(&id)) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            }
        }
        same(&self.tables, &other.tables, id)
            && same(&self.families, &other.families, id)
            && same(&self.indexes, &other.indexes, id)
            && same(&self.schemas, &other.schemas, id)
            && same(&self.roles, &other.roles, id)
            && same(&self.databases, &other.databases, id)
            && same(&self.comments, &other.comments, id)
            && same(&self.sequences, &other.sequences, id)
            && same(&self.types, &other.types, id)
            && same(&self.functions, &other.functions, id)
            && same(&self.collations, &other.collations, id)
            && same(&self.acls, &other.acls, id)
            && same(&self.default_acls, &other.default_acls, id)
            && same(&self.session_defaults, &other.session_defaults, id)
            && same(&self.event_triggers, &other.event_triggers, id)
            && self.defined.same(&other.defined, id)
    }

    /// The table that has the constraint, trigger, rule or policy with this id.
    pub fn owner_of_part(&self, part: Id) -> Option<&Arc<Table>> {
        self.table(*self.part_of.get(&part)?)
    }

    /// A table by id.
    pub fn table(&self, id: Id) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// A partitioned table's partitions; None: it has none.
    pub fn family(&self, id: Id) -> Option<&Arc<Family>> {
        self.families.get(&id).filter(|family| !family.is_empty())
    }

    /// The tables whose rows count among a table's own, one level below it: those that inherit from it, or its
    /// partitions.
    pub fn children(&self, table: &Table) -> Vec<Id> {
        match self.family(table.oid) {
            Some(family) => family.members().map(|t| t.oid).collect(),
            None => table.children.clone(),
        }
    }

    /// The partitioned table at the top of a partition's hierarchy; a table's own id if it is no partition.
    pub fn partition_root(&self, id: Id) -> Id {
        self.partition_ancestors(id).last().copied().unwrap_or(id)
    }

    /// The partitioned tables above a partition, from the nearest one on.
    pub fn partition_ancestors(&self, id: Id) -> Vec<Id> {
        let parent = |id: &Id| self.table(*id).and_then(|t| t.partition_of());
        std::iter::successors(parent(&id), parent).collect()
    }

    /// The index of a partition that is a part of an index of a table above it.
    pub fn part_of_index(&self, table: &Table, index: Id) -> Option<&Arc<Index>> {
        let above = |id: &Id| self.index(*id).map(|i| i.parent).filter(|parent| *parent != 0);
        let is_part = |id: Id| std::iter::successors(Some(id), above).any(|i| i == index);
        table.indexes.iter().find(|id| is_part(**id)).and_then(|id| self.index(*id))
    }

    /// An index by id.
    pub fn index(&self, id: Id) -> Option<&Arc<Index>> {
        self.indexes.get(&id)
    }

    /// A schema by id.
    pub fn schema(&self, id: Id) -> Option<&Arc<Schema>> {
        self.schemas.get(&id)
    }

    /// A schema by name.
    pub fn schema_named(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(self.schema_names.get(name)?)
    }

    /// A table, index or sequence by schema and name.
    pub fn relation_in(&self, schema: Id, name: &str) -> Option<Relation> {
        self.relation_by_oid(*self.relation_names.get(&(schema, name.to_owned()))?)
    }

    /// A table, index or sequence by id.
    pub fn relation_by_oid(&self, id: Id) -> Option<Relation> {
        let table = self.tables.get(&id).cloned().map(Relation::Table);
        table
            .or_else(|| self.indexes.get(&id).cloned().map(Relation::Index))
            .or_else(|| self.sequences.get(&id).cloned().map(Relation::Sequence))
    }

    /// A table or index by name along the search path (schema ids), or in the named schema.
    pub fn relation(&self, path: &[Id], schema: Option<&str>, name: &str) -> Option<Relation> {
        match schema {
            Some(schema) => self.relation_in(self.schema_named(schema)?.oid, name),
            None => {
                let first = self.implicit_temporary(path).into_iter();
                first.chain(path.iter().copied()).find_map(|s| self.relation_in(s, name))
            }
        }
    }

    /// The session's own schema for temporary objects, in a session's view.
    pub fn temporary(&self) -> Option<Id> {
        self.schema_named("pg_temp").map(|s| s.oid)
    }

    /// The same when the search path doesn't name it: then relations are searched there first.
    pub fn implicit_temporary(&self, path: &[Id]) -> Option<Id> {
        self.temporary().filter(|id| !path.contains(id))
    }

    /// As [`Snapshot::relation`], for a table that must be there.
    ///
    /// # Errors
    /// `42P01` missing, `3F000` no such schema, `42809` not a table; without a position.
    pub fn expect_table(
        &self,
        path: &[Id],
        schema: Option<&str>,
        name: &str,
    ) -> Result<Arc<Table>> {
        match self.relation(path, schema, name) {
            Some(Relation::Table(table)) => Ok(table),
            Some(Relation::Index(_)) => Err(err!(WRONG_OBJECT_TYPE, "\"{name}\" is an index")),
            Some(Relation::Sequence(_)) => {
                Err(err!(WRONG_OBJECT_TYPE, "\"{name}\" is not a table"))
            }
            None => match schema {
                Some(schema) if self.schema_named(schema).is_none() => {
                    Err(err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"))
                }
                _ => Err(self.missing_relation(schema, name)),
            },
        }
    }

    /// PostgreSQL's error for a relation that isn't there.
    pub fn missing_relation(&self, schema: Option<&str>, name: &str) -> Error {
        match schema {
            Some(schema) => err!(UNDEFINED_TABLE, "relation \"{schema}.{name}\" does not exist"),
            None => err!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
        }
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// How many tables and indexes there are.
    pub fn sizes(&self) -> (usize, usize) {
        (self.tables.len(), self.indexes.len())
    }

    /// All indexes.
    pub fn indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values()
    }

    /// The indexes of a table, in the order of their making.
    pub fn indexes_of(&self, table: &Table) -> Vec<Arc<Index>> {
        table.indexes.iter().filter_map(|id| self.indexes.get(id).cloned()).collect()
    }

    /// All of a table's indexes, also those that a DROP INDEX CONCURRENTLY has taken off its list.
    pub fn all_indexes_of(&self, table: Id) -> impl Iterator<Item = Id> {
        self.index_of.range((table, 0)..=(table, Id::MAX)).map(|(_, index)| *index)
    }

    /// The comments on an object and its parts.
    pub fn comments_on(&self, object: Id) -> impl Iterator<Item = &Arc<Comment>> {
        let ids = self.comment_of.range((object, 0)..=(object, Id::MAX));
        ids.filter_map(|(_, id)| self.comments.get(id))
    }

    /// All schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values()
    }

    /// All roles.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.values()
    }

    /// A role by id.
    pub fn role(&self, id: Id) -> Option<&Arc<Role>> {
        self.roles.get(&id)
    }

    /// A role by name.
    pub fn role_named(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(self.role_names.get(name)?)
    }

    /// A database by id.
    pub fn database(&self, id: Id) -> Option<&Arc<Database>> {
        self.databases.get(&id)
    }

    /// A database by name.
    pub fn database_named(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(self.database_names.get(name)?)
    }

    /// The rights on an object (`column` 0) or on one of its columns, when they are not just those
    /// that it began with.
    pub fn acl(&self, kind: AclKind, object: Id, column: u16) -> Option<&Arc<Acl>> {
        self.acls.get(self.acl_of.get(&(kind, object, column))?)
    }

    /// The rights on an object's columns.
    pub fn column_acls(&self, table: Id) -> impl Iterator<Item = &Arc<Acl>> {
        let columns = (AclKind::Table, table, 1)..=(AclKind::Table, table, u16::MAX);
        self.acl_of.range(columns).filter_map(|(_, id)| self.acls.get(id))
    }

    /// All rights.
    pub fn acls(&self) -> impl Iterator<Item = &Arc<Acl>> {
        self.acls.values()
    }

    /// All default privileges.
    pub fn default_acls(&self) -> impl Iterator<Item = &Arc<DefaultAcl>> {
        self.default_acls.values()
    }

    /// All event triggers.
    pub fn event_triggers(&self) -> impl Iterator<Item = &Arc<EventTrigger>> {
        self.event_triggers.values()
    }

    /// All settings of roles and databases.
    pub fn session_defaults(&self) -> impl Iterator<Item = &Arc<SessionDefaults>> {
        self.session_defaults.values()
    }

    /// All databases.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// All comments.
    pub fn comments(&self) -> impl Iterator<Item = &Arc<Comment>> {
        self.comments.values()
    }

    /// A sequence by id.
    pub fn sequence(&self, id: Id) -> Option<&Arc<Sequence>> {
        self.sequences.get(&id)
    }

    /// All sequences.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// A user's type by id.
    pub fn user_type(&self, id: Id) -> Option<&Arc<UserType>> {
        self.types.get(&id)
    }

    /// The oid under which `pg_class` lists a composite type.
    pub fn composite_class(&self, path: &[Id], schema: Option<&str>, name: &str) -> Option<Id> {
        let ty = self.type_named(path, schema, name)?;
        matches!(ty.kind, UserTypeKind::Composite(_)).then_some(ty.class)
    }

    /// The composite type that `pg_class` lists under an oid.
    pub fn composite_of_class(&self, class: Id) -> Option<&Arc<UserType>> {
        self.types.values().find(|t| class != 0 && t.class == class)
    }

    /// The type that an oid stands for.
    pub fn type_id(&self, ty: Id) -> Option<TypeId> {
        self.type_ids.get(&ty).copied()
    }

    /// The oid of a type by schema and name: a user's, that of a table's rows, or an array of one of
    /// these, whose name has underscores in front.
    pub fn type_oid_in(&self, schema: Id, name: &str) -> Option<Id> {
        if let Some(ty) = self.type_in(schema, name) {
            return Some(ty.oid);
        }
        if let Some(Relation::Table(table)) = self.relation_in(schema, name)
            && table.row_type[0] != 0
        {
            return Some(table.row_type[0]);
        }
        let element = self.type_oid_in(schema, name.strip_prefix('_')?)?;
        match self.type_id(element)? {
            TypeId::User(id, false) => Some(self.user_type(id)?.array),
            TypeId::Row(id, false) => Some(self.table(id)?.row_type[1]),
            _ => None,
        }
    }

    /// The same by name along the search path, or in the named schema.
    pub fn type_oid(&self, path: &[Id], schema: Option<&str>, name: &str) -> Option<Id> {
        match schema {
            Some(schema) => self.type_oid_in(self.schema_named(schema)?.oid, name),
            None => {
                let first = self.implicit_temporary(path).into_iter();
                first.chain(path.iter().copied()).find_map(|s| self.type_oid_in(s, name))
            }
        }
    }

    /// A user's type by schema and name.
    pub fn type_in(&self, schema: Id, name: &str) -> Option<&Arc<UserType>> {
        self.types.get(self.type_names.get(&(schema, name.to_owned()))?)
    }

    /// A user's type by name along the search path, or in the named schema.
    pub fn type_named(
        &self,
        path: &[Id],
        schema: Option<&str>,
        name: &str,
    ) -> Option<&Arc<UserType>> {
        match schema {
            Some(schema) => self.type_in(self.schema_named(schema)?.oid, name),
            None => {
                let first = self.implicit_temporary(path).into_iter();
                first.chain(path.iter().copied()).find_map(|s| self.type_in(s, name))
            }
        }
    }

    /// The table behind `pg_largeobject` or `pg_largeobject_metadata`, once a large object was made.
    pub fn large_object_table(&self, name: &str) -> Option<&Arc<Table>> {
        if !matches!(name, "pg_largeobject" | "pg_largeobject_metadata") {
            return None;
        }
        match self.relation_in(ids::PG_TOAST, name)? {
            Relation::Table(table) => self.table(table.oid),
            _ => None,
        }
    }

    /// All types that users made.
    pub fn user_types(&self) -> impl Iterator<Item = &Arc<UserType>> {
        self.types.values()
    }

    /// A user's function by id.
    pub fn function(&self, id: Id) -> Option<&Arc<Function>> {
        self.functions.get(&id)
    }

    /// The users' functions with a name, in all schemas.
    pub fn functions_named(&self, name: &str) -> impl Iterator<Item = &Arc<Function>> {
        let ids = self.function_names.get(name).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.functions.get(id))
    }

    /// Whether users made a function with this name.
    pub fn has_functions_named(&self, name: &str) -> bool {
        self.function_names.contains_key(name)
    }

    /// All functions that users made.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// The findings of ANALYZE about a table.
    pub fn stats(&self, table: Id) -> Option<&Arc<TableStats>> {
        self.stats.get(&table)
    }
}

/// Takes an object's name out, unless another object has got it meanwhile.
fn take_name<K: std::hash::Hash + Eq + Clone>(names: &mut HashMap<K, Id>, name: &K, id: Id) {
    if names.get(name) == Some(&id) {
        names.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(oid: Id, name: &str) -> Object {
        Object::Table(Box::new(Table { oid, name: name.to_owned(), ..Table::default() }))
    }

    #[test]
    fn names_that_change_hands_one_after_the_other_lead_to_their_objects() {
        let mut snapshot = Snapshot::default();
        [table(1, "a"), table(2, "b")].into_iter().for_each(|object| snapshot.put(object));
        [table(1, "b"), table(2, "a")].into_iter().for_each(|object| snapshot.put(object));
        let oid = |name: &str| snapshot.relation_in(0, name).map(|found| found.oid());
        assert_eq!((oid("a"), oid("b")), (Some(2), Some(1)));
    }
}
