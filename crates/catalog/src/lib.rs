//! The catalog's objects: schemas, tables, indexes, constraints, roles, databases.
//!
//! An object is one row of an internal heap, transactional and logged like all others. In memory
//! all sessions share one immutable [`Snapshot`]; a transaction that changes definitions works on
//! a private one ([`CatalogTx`]) and publishes its changes at commit, before anybody can see the
//! commit. `pg_catalog` and `information_schema` are tables computed from the snapshot
//! ([`system`]).
//!
//! Each database has a snapshot of its own ([`OpenDatabase`]); roles, databases and what is said of them
//! belong to all and are part of each.
#![forbid(unsafe_code)]

pub mod acl;
pub mod collation;
mod database;
mod defined;
mod defined_map;
pub mod definition;
pub mod extension;
mod follow;
mod foreign;
pub mod object;
pub mod partition;
pub mod partition_text;
mod prepared;
pub mod privilege;
pub mod publication;
mod references;
pub mod routine;
pub mod sequence;
pub mod snapshot;
pub mod store;
pub mod system;
mod temp;
pub mod type_view;

pub use acl::Rights;
pub use database::{AttachRefused, Attachment, Closed, OpenDatabase, SHARED};
pub use follow::Followed;
pub use object::{
    Acl, AclItem, AclKind, Aggregate, AggregateSteps, BaseKind, Cast, CheckOption, Collation,
    Column, Constraint, ConstraintKind, Conversion, Database, DefaultAcl, Defined, EnumLabel,
    EventTrigger, ExtendedStatistics, Extension, FamilyFunction, FamilyOperator, ForeignKey,
    ForeignKeyAction, ForeignServer, ForeignTable, ForeignWrapper, Function, FunctionArg, Identity,
    Index, IndexColumn, KeyCollation, KeyExpression, Membership, NamedMethod, Object, OnCommit,
    Operator, OperatorClass, OperatorFamily, Options, PartitionBound, PartitionKey, Partitioning,
    Policy, Publication, PublicationSchema, PublicationTable, RangeKind, ReplicaIdentity, Role,
    Rule, Schema, Sequence, SessionDefaults, Subscription, SubscriptionTable, Table, TableKind,
    TableStats, TextSearchConfig, TextSearchDictionary, TextSearchParser, TextSearchTemplate,
    Trigger, UserMapping, UserType, UserTypeKind, ViewQuery, rule_event, trigger_type,
};
pub use prepared::Restored;
pub use snapshot::Snapshot;
pub use store::{Catalog, CatalogTx, HelperView, overflow_rel};
pub use type_view::TypeView;
