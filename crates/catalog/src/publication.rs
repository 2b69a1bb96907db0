//! Publications and subscriptions: look-ups, which tables a publication is about, and which rows can be changed when
//! the changes are published.
//!
//! A publication names tables, schemas, or all tables. A partition is published with the tables above it; what its
//! changes are published as is the topmost of those that the publication names when `publish_via_partition_root` is
//! set, else the partition.

use std::sync::Arc;

use base::{Result, err};

use crate::object::{
    Defined, Id, Index, Publication, PublicationTable, ReplicaIdentity, Subscription, Table,
    TableKind,
};
use crate::snapshot::Snapshot;

/// A table that a publication is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The table.
    pub table: Id,
    /// The columns that are published, from 1.
    pub columns: Vec<u16>,
    /// WHERE, as SQL over the table's row.
    pub filter: Option<String>,
}

/// The change of a row that may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touching {
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl Snapshot {
    /// All publications.
    pub fn publications(&self) -> impl Iterator<Item = &Publication> {
        self.defined.publications.iter().filter_map(|id| match &**self.defined.all.get(id)? {
            Defined::Publication(o) => Some(o),
            _ => None,
        })
    }

    /// A publication by its name.
    pub fn publication_named(&self, name: &str) -> Option<&Publication> {
        self.publications().find(|p| p.name == name)
    }

    /// All subscriptions of the database.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.defined.subscriptions.iter().filter_map(|id| match &**self.defined.all.get(id)? {
            Defined::Subscription(o) => Some(o),
            _ => None,
        })
    }

    /// A subscription by its name.
    pub fn subscription_named(&self, name: &str) -> Option<&Subscription> {
        self.subscriptions().find(|s| s.name == name)
    }

    /// The index whose columns identify a table's rows to those who follow its changes.
    pub fn replica_index(&self, table: &Table) -> Option<Arc<Index>> {
        let usable = |i: &Arc<Index>| !i.invalid && !i.deferrable && i.predicate.is_none();
        let mut all = self.indexes_of(table).into_iter().filter(usable);
        match table.replica_identity {
            ReplicaIdentity::Default => all.find(|i| i.primary),
            ReplicaIdentity::Index(id) => all.find(|i| i.oid == id),
            ReplicaIdentity::Full | ReplicaIdentity::Nothing => None,
        }
    }

    /// The columns that identify a table's rows, from 1; none when nothing does, or all do.
    pub fn identity_columns(&self, table: &Table) -> Vec<u16> {
        let index = self.replica_index(table);
        index.map_or_else(Vec::new, |i| i.columns.iter().map(|c| c.column).collect())
    }

    /// The publications that a table is part of, by itself or by its schema or partitioned tables.
    pub fn publications_of<'a>(
        &'a self,
        table: &'a Table,
    ) -> impl Iterator<Item = &'a Publication> {
        let none = self.defined.publications.is_empty() || !table.is_publishable();
        let above: Vec<Id> = match none {
            true => Vec::new(),
            false => [table.oid].into_iter().chain(self.partition_ancestors(table.oid)).collect(),
        };
        let names = move |p: &&Publication| p.all_tables || self.named_among(p, &above).is_some();
        self.publications().filter(move |_| !none).filter(names)
    }

    /// The topmost of these tables, from the lowest up, that a publication names.
    fn named_among(&self, publication: &Publication, tables: &[Id]) -> Option<Id> {
        let schema = |id: Id| self.table(id).map_or(0, |t| t.schema);
        let named =
            |id: &&Id| publication.table(**id).is_some() || publication.has_schema(schema(**id));
        tables.iter().rev().find(named).copied()
    }

    /// The table under whose name a publication sends a table's changes.
    pub fn published_as(&self, publication: &Publication, table: &Table) -> Id {
        if !publication.via_root || table.bound.is_none() {
            return table.oid;
        }
        let above = self.partition_ancestors(table.oid);
        if publication.all_tables {
            return above.last().copied().unwrap_or(table.oid);
        }
        self.named_among(publication, &above).unwrap_or(table.oid)
    }

    /// The entry of a publication about a table itself: columns and WHERE; None when it is there by its schema.
    fn own_entry<'p>(
        &self,
        publication: &'p Publication,
        table: &Table,
    ) -> Option<&'p PublicationTable> {
        if publication.all_tables || publication.has_schema(table.schema) {
            return None;
        }
        publication.table(table.oid)
    }

    /// The tables that a publication is about, in the order of their oids.
    pub fn published_tables(&self, publication: &Publication) -> Vec<Published> {
        let mut ids: Vec<Id> = Vec::new();
        if publication.all_tables {
            let all = self.tables().filter(|t| t.is_publishable()).filter(|t| {
                match publication.via_root {
                    true => t.bound.is_none(),
                    false => !t.is_partitioned(),
                }
            });
            ids.extend(all.map(|t| t.oid));
        } else {
            let named = publication.tables.iter().filter_map(|t| self.table(t.table));
            let inside = self.tables().filter(|t| publication.has_schema(t.schema));
            for table in named.chain(inside).filter(|t| t.is_publishable()) {
                match table.is_partitioned() && !publication.via_root {
                    true => self.add_leaves(table, &mut ids),
                    false => ids.push(table.oid),
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        if publication.via_root && !publication.all_tables {
            let named = ids.clone();
            ids.retain(|id| !self.partition_ancestors(*id).iter().any(|a| named.contains(a)));
        }
        let published = |id: &Id| {
            let table = self.table(*id)?;
            let entry = self.own_entry(publication, table);
            let all = || {
                let live = table.live_columns().filter(|(_, c)| !c.generated);
                live.map(|(n, _)| n).collect()
            };
            Some(Published {
                table: *id,
                columns: entry.and_then(|e| e.columns.clone()).unwrap_or_else(all),
                filter: entry.and_then(|e| e.filter.clone()),
            })
        };
        ids.iter().filter_map(published).collect()
    }

    fn add_leaves(&self, table: &Table, out: &mut Vec<Id>) {
        for child in self.children(table).into_iter().filter_map(|id| self.table(id)) {
            match child.is_partitioned() {
                true => self.add_leaves(child, out),
                false => out.push(child.oid),
            }
        }
    }

    /// The number in `table` of a column of another table of its partition hierarchy.
    fn same_column(&self, of: Id, column: u16, table: &Table) -> Option<u16> {
        if of == table.oid {
            return Some(column);
        }
        let name = &self.table(of)?.columns.get(usize::from(column) - 1)?.name;
        table.column(name).map(|(n, _)| n)
    }

    /// Whether rows of a table can be updated or deleted as far as publications go. Partitioned tables have no
    /// rows of their own.
    ///
    /// # Errors
    /// `42P10` when a WHERE or a list of columns does not go with the replica identity, `55000` when there is none.
    pub fn check_published(&self, table: &Table, touching: Touching) -> Result<()> {
        if self.defined.publications.is_empty() || table.is_partitioned() {
            return Ok(());
        }
        let touches = |p: &&Publication| match touching {
            Touching::Update => p.update,
            Touching::Delete => p.delete,
        };
        let all: Vec<&Publication> = self.publications_of(table).filter(touches).collect();
        if all.is_empty() {
            return Ok(());
        }
        let (verb, noun) = match touching {
            Touching::Update => ("update", "updates"),
            Touching::Delete => ("delete from", "deletes"),
        };
        let identity = self.identity_columns(table);
        let full = table.replica_identity == ReplicaIdentity::Full;
        let refused = |detail: &str| {
            err!(INVALID_COLUMN_REFERENCE, "cannot {verb} table \"{}\"", table.name).detail(detail)
        };
        let entry = |p: &Publication| {
            let of = self.published_as(p, table);
            p.table(of).cloned().map(|entry| (of, entry))
        };
        let entries: Vec<(Id, PublicationTable)> = all.iter().filter_map(|p| entry(p)).collect();
        for (of, entry) in &entries {
            let is_key = |n: &u16| {
                self.same_column(*of, *n, table).is_some_and(|own| identity.contains(&own))
            };
            if entry.filter.is_some() && !full && !entry.filter_columns.iter().all(is_key) {
                return Err(refused(
                    "Column used in the publication WHERE expression is not part of the replica identity.",
                ));
            }
        }
        for (of, entry) in &entries {
            let Some(columns) = &entry.columns else { continue };
            let listed: Vec<u16> =
                columns.iter().filter_map(|n| self.same_column(*of, *n, table)).collect();
            if full || !identity.iter().all(|n| listed.contains(n)) {
                return Err(refused(
                    "Column list used by the publication does not cover the replica identity.",
                ));
            }
        }
        if full || self.replica_index(table).is_some() {
            return Ok(());
        }
        let verb = if touching == Touching::Update { "update" } else { "delete from" };
        let doing = if touching == Touching::Update { "updating" } else { "deleting from" };
        Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot {verb} table \"{}\" because it does not have a replica identity and publishes {noun}",
            table.name
        )
        .hint(format!("To enable {doing} the table, set REPLICA IDENTITY using ALTER TABLE.")))
    }
}

impl Table {
    /// Whether its changes can be published: it is a table of the users, logged and for all sessions.
    pub fn is_publishable(&self) -> bool {
        self.kind == TableKind::Table
            && self.persistence() == 'p'
            && self.schema != crate::object::ids::PG_TOAST
            && self.oid >= base::Oid::FIRST_USER.0
    }
}
