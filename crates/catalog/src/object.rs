//! The objects. Their serde form (JSON) is what the internal heap keeps; a field added later needs
//! `#[serde(default)]`.

use serde::{Deserialize, Serialize};

use crate::privilege;

mod defined;
mod event_trigger;
mod foreign;
mod id;
mod index;
mod kinds;
mod partition;
mod policy;
mod publication;
mod role;
mod rule;
mod statistics;
mod table;
mod trigger;

pub use defined::*;
pub use event_trigger::*;
pub use foreign::*;
pub use id::*;
pub use index::*;
pub use kinds::*;
pub use partition::*;
pub use policy::*;
pub use publication::*;
pub use role::*;
pub use rule::*;
pub use statistics::*;
pub use table::*;
pub use trigger::*;

/// Any object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Object {
    /// A schema.
    Schema(Schema),
    /// A table with its columns and constraints (boxed: much larger than the rest).
    Table(Box<Table>),
    /// An index.
    Index(Index),
    /// A role.
    Role(Role),
    /// A database.
    Database(Database),
    /// The findings of ANALYZE; their id is the table's with the top bit set.
    Stats(Box<TableStats>),
    /// A comment on an object (or on one of its columns).
    Comment(Comment),
    /// A sequence.
    Sequence(Box<Sequence>),
    /// A type: enum, domain or composite.
    Type(Box<UserType>),
    /// A function.
    Function(Box<Function>),
    /// A collation.
    Collation(Box<Collation>),
    /// Rights on an object (or on one of its columns).
    Acl(Acl),
    /// Rights that objects made later begin with.
    DefaultAcl(DefaultAcl),
    /// Settings that sessions of a role or in a database begin with.
    SessionDefaults(SessionDefaults),
    /// An event trigger.
    EventTrigger(EventTrigger),
    /// An operator, a cast, an operator class or family, a conversion.
    Defined(Box<Defined>),
}

/// A schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schema {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
}

/// A sequence. Its value is not here: it is not transactional ([`crate::sequence`]).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sequence {
    /// Oid.
    pub oid: Id,
    /// Name; shares the name space of tables.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Its file, which keeps the value; a new number when ALTER SEQUENCE changes the value.
    pub rel: u32,
    /// smallint, integer or bigint.
    pub ty: Id,
    /// START.
    pub start: i64,
    /// INCREMENT.
    pub increment: i64,
    /// MINVALUE.
    pub min: i64,
    /// MAXVALUE.
    pub max: i64,
    /// CACHE.
    pub cache: i64,
    /// CYCLE.
    pub cycle: bool,
    /// OWNED BY: table and column.
    pub owned_by: Option<(Id, u16)>,
    /// It is an identity column's.
    pub identity: bool,
    /// UNLOGGED.
    #[serde(default)]
    pub unlogged: bool,
}

/// A database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Database {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Owner's oid.
    pub owner: Id,
    /// IS_TEMPLATE: whoever may make databases may copy it.
    pub template: bool,
    /// ALLOW_CONNECTIONS.
    pub connect: bool,
    /// CONNECTION LIMIT; -1: none.
    #[serde(default = "unlimited")]
    pub connection_limit: i32,
    /// LC_COLLATE. All that there are compare bytes.
    #[serde(default = "default_locale")]
    pub collate: String,
    /// LC_CTYPE.
    #[serde(default = "default_locale")]
    pub ctype: String,
}

fn unlimited() -> i32 {
    -1
}

fn default_locale() -> String {
    DEFAULT_LOCALE.to_owned()
}

/// The locale of databases that nobody gave another.
const DEFAULT_LOCALE: &str = "C.UTF-8";

impl Database {
    /// One that takes any number of connections.
    pub fn new(oid: Id, name: &str, owner: Id) -> Database {
        Database {
            oid,
            name: name.to_owned(),
            owner,
            template: false,
            connect: true,
            connection_limit: unlimited(),
            collate: default_locale(),
            ctype: default_locale(),
        }
    }
}

/// A comment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comment {
    /// The comment's own id.
    pub oid: Id,
    /// The object.
    pub object: Id,
    /// Its column from 1, or 0.
    pub column: u16,
    /// The comment's text.
    pub text: String,
    /// The object belongs to all databases.
    #[serde(default)]
    pub shared: bool,
    /// The object's class (the oid of its catalog) when users don't make such objects, or it is built in: oids are
    /// unique among those that users make. Else 0.
    #[serde(default)]
    pub class: Id,
}

/// The findings of ANALYZE about a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableStats {
    /// The table.
    pub table: Id,
    /// Rows.
    pub rows: f64,
    /// Pages.
    pub pages: u32,
    /// Pages of which every snapshot saw all rows.
    #[serde(default)]
    pub visible: u32,
    /// By column, in table order.
    pub columns: Vec<ColumnStats>,
    /// By expression of an index.
    #[serde(default)]
    pub keys: Vec<KeyStats>,
    /// By extended statistics of the table.
    #[serde(default)]
    pub extended: Vec<ExtendedData>,
}

impl Object {
    /// The bit that tells a table's statistics from the table.
    pub(crate) const STATS: Id = 1 << 31;

    /// The id that a table's statistics are kept under.
    pub(crate) fn stats_id(table: Id) -> Id {
        table | Object::STATS
    }

    /// The functions, types and sequences that its definition names, and other objects among them.
    pub fn named(&self) -> Vec<Id> {
        let first = |uses: &[(Id, u16)]| uses.iter().map(|u| u.0).collect::<Vec<_>>();
        match self {
            Object::Table(t) => {
                let columns = t.columns.iter().flat_map(|c| &c.default_uses).copied();
                let constraints = t.constraints.iter().flat_map(|c| &c.uses).copied();
                let keys = t.partitioning.iter().flat_map(|p| &p.uses).copied();
                let policies = t.policies.iter().flat_map(|p| first(&p.uses));
                let rules = t.rules.iter().flat_map(|r| first(&r.uses));
                let triggers = t.triggers.iter().flat_map(|t| {
                    let mut all = first(&t.uses);
                    all.push(t.function);
                    all
                });
                let all = columns.chain(constraints).chain(keys).chain(policies).chain(rules);
                all.chain(triggers).collect()
            }
            Object::Index(i) => i.uses.clone(),
            Object::Type(t) => t.uses.clone(),
            Object::Function(f) => first(&f.uses),
            _ => Vec::new(),
        }
    }

    /// The types of its columns, parameters and results, and those that a type is made of.
    pub fn types(&self) -> Vec<Id> {
        match self {
            Object::Table(t) => t.columns.iter().map(|c| c.ty).collect(),
            Object::Function(f) => f.args.iter().map(|a| a.ty).chain([f.result]).collect(),
            Object::Type(t) => match &t.kind {
                UserTypeKind::Domain { base, .. } => vec![*base],
                UserTypeKind::Composite(columns) => columns.iter().map(|c| c.ty).collect(),
                UserTypeKind::Range(range) => vec![range.subtype],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The id that the catalog keeps it under.
    pub fn oid(&self) -> Id {
        match self {
            Object::Schema(o) => o.oid,
            Object::Table(o) => o.oid,
            Object::Index(o) => o.oid,
            Object::Role(o) => o.oid,
            Object::Database(o) => o.oid,
            Object::Stats(o) => Object::stats_id(o.table),
            Object::Comment(o) => o.oid,
            Object::Sequence(o) => o.oid,
            Object::Type(o) => o.oid,
            Object::Function(o) => o.oid,
            Object::Collation(o) => o.oid,
            Object::Acl(o) => o.oid,
            Object::DefaultAcl(o) => o.oid,
            Object::SessionDefaults(o) => o.oid,
            Object::EventTrigger(o) => o.oid,
            Object::Defined(o) => o.oid(),
        }
    }

    /// Whether it belongs to all databases.
    pub fn is_shared(&self) -> bool {
        match self {
            Object::Role(_) | Object::Database(_) | Object::SessionDefaults(_) => true,
            Object::Acl(acl) => acl.kind.is_shared(),
            Object::Comment(comment) => comment.shared,
            _ => false,
        }
    }

    /// The files that it names, if any.
    pub fn files_mut(&mut self) -> Option<&mut u32> {
        let rel = match self {
            Object::Table(o) => &mut o.rel,
            Object::Index(o) => &mut o.rel,
            Object::Sequence(o) => &mut o.rel,
            _ => return None,
        };
        (*rel != 0).then_some(rel)
    }
}

/// The objects of a new data directory; those that are not shared, in each database.
pub(crate) fn initial() -> Vec<Object> {
    let schema =
        |oid, name: &str, owner| Object::Schema(Schema { oid, name: name.to_owned(), owner });
    let boss = Role {
        superuser: true,
        login: true,
        createdb: true,
        createrole: true,
        replication: true,
        bypassrls: true,
        ..Role::new(ids::SUPERUSER, "postgres")
    };
    let database = |oid, name: &str, template, connect| {
        let new = Database::new(oid, name, ids::SUPERUSER);
        Object::Database(Database { template, connect, ..new })
    };
    let mut objects = vec![
        schema(ids::PG_CATALOG, "pg_catalog", ids::SUPERUSER),
        schema(ids::PG_TOAST, "pg_toast", ids::SUPERUSER),
        schema(ids::PUBLIC, "public", ids::DATABASE_OWNER),
        schema(ids::INFORMATION_SCHEMA, "information_schema", ids::SUPERUSER),
        Object::Role(boss),
        database(ids::TEMPLATE1, "template1", true, true),
        database(ids::TEMPLATE0, "template0", true, false),
        database(ids::POSTGRES_DB, "postgres", false, true),
    ];
    objects.extend(ids::PREDEFINED.iter().map(|(oid, name)| {
        let mut role = Role::new(*oid, name);
        if *oid == ids::MONITOR {
            let of = [ids::READ_ALL_SETTINGS, ids::READ_ALL_STATS, ids::STAT_SCAN_TABLES];
            let membership = |role| Membership { role, grantor: ids::SUPERUSER, admin: false };
            role.member_of = of.map(membership).to_vec();
        }
        Object::Role(role)
    }));
    let acl = |oid, kind, object, items: &[(Id, Id, u16)]| {
        let item = |(grantee, grantor, privileges): &(Id, Id, u16)| AclItem {
            grantee: *grantee,
            grantor: *grantor,
            privileges: *privileges,
            grantable: 0,
        };
        let items = items.iter().map(item).collect();
        Object::Acl(Acl { oid, kind, object, column: 0, items })
    };
    let (usage, both) = (privilege::USAGE, privilege::USAGE | privilege::CREATE);
    let (boss, owner) = (ids::SUPERUSER, ids::DATABASE_OWNER);
    let all = privilege::CREATE | privilege::TEMPORARY | privilege::CONNECT;
    let template = [(0, boss, privilege::CONNECT), (boss, boss, all)];
    let system = [(boss, boss, both), (0, boss, usage)];
    let public = [(owner, owner, both), (0, owner, usage)];
    objects.extend([
        acl(13001, AclKind::Schema, ids::PG_CATALOG, &system),
        acl(13002, AclKind::Schema, ids::INFORMATION_SCHEMA, &system),
        acl(13003, AclKind::Schema, ids::PUBLIC, &public),
        acl(13004, AclKind::Database, ids::TEMPLATE1, &template),
        acl(13005, AclKind::Database, ids::TEMPLATE0, &template),
    ]);
    objects
}
