//! Rights: what a role may do with an object (manual, section 5.7).
//!
//! ```text
//!   grantee = letters / grantor        alice=ar*w/bob: bob gave alice INSERT, SELECT (which she may
//!                                      grant on: *) and UPDATE;  =r/bob: SELECT to everybody
//! ```
//! Rights are kept apart from the objects ([`Acl`], by kind, object and column), so that every kind of
//! object has them by giving its owner ([`Rights::owner`]). An object that no GRANT named has none
//! stored: [`default_items`] hold.
//!
//! Invariants: superusers have every right; an owner may always grant; a chain of grants begins at the
//! owner, and goes when its beginning goes ([`change`]).
//!
//! Left out: rights on large objects and settings.

pub use crate::privilege;

use base::{Error, Result, err};
use types::func::quote_ident;

use crate::object::{Acl, AclItem, AclKind, DefaultAcl, Id, Table, ids};
use crate::privilege::*;
use crate::snapshot::Snapshot;
use crate::system::tables::by_oid;

impl AclKind {
    /// Every right that there is on such an object.
    pub fn all(self) -> u16 {
        match self {
            AclKind::Table => INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER,
            AclKind::Sequence => SELECT | UPDATE | USAGE,
            AclKind::Database => CREATE | TEMPORARY | CONNECT,
            AclKind::Function => EXECUTE,
            AclKind::Schema => USAGE | CREATE,
            AclKind::Type | AclKind::Language | AclKind::Wrapper | AclKind::Server => USAGE,
            AclKind::Tablespace => CREATE,
            AclKind::Collation | AclKind::Defined => 0,
        }
    }

    /// The rights that everybody has on a new one.
    fn public(self) -> u16 {
        match self {
            AclKind::Database => TEMPORARY | CONNECT,
            AclKind::Function => EXECUTE,
            AclKind::Type | AclKind::Language => USAGE,
            AclKind::Table
            | AclKind::Sequence
            | AclKind::Schema
            | AclKind::Tablespace
            | AclKind::Collation
            | AclKind::Wrapper
            | AclKind::Server
            | AclKind::Defined => 0,
        }
    }

    /// PostgreSQL's letter for `acldefault`.
    pub fn of_letter(letter: char) -> Option<AclKind> {
        Some(match letter {
            'r' => AclKind::Table,
            's' => AclKind::Sequence,
            'd' => AclKind::Database,
            'f' => AclKind::Function,
            'n' => AclKind::Schema,
            'T' => AclKind::Type,
            'l' => AclKind::Language,
            't' => AclKind::Tablespace,
            'F' => AclKind::Wrapper,
            'S' => AclKind::Server,
            _ => return None,
        })
    }

    /// PostgreSQL's letter in `pg_default_acl`.
    pub fn default_letter(self) -> char {
        match self {
            AclKind::Table => 'r',
            AclKind::Sequence => 'S',
            AclKind::Function => 'f',
            AclKind::Schema => 'n',
            AclKind::Type => 'T',
            AclKind::Database
            | AclKind::Language
            | AclKind::Tablespace
            | AclKind::Collation
            | AclKind::Wrapper
            | AclKind::Server
            | AclKind::Defined => '-',
        }
    }

    /// As messages name it.
    pub fn word(self) -> &'static str {
        match self {
            AclKind::Table => "table",
            AclKind::Sequence => "sequence",
            AclKind::Database => "database",
            AclKind::Function => "function",
            AclKind::Schema => "schema",
            AclKind::Type => "type",
            AclKind::Language => "language",
            AclKind::Tablespace => "tablespace",
            AclKind::Collation => "collation",
            AclKind::Defined => "object",
            AclKind::Wrapper => "foreign-data wrapper",
            AclKind::Server => "foreign server",
        }
    }
}

/// Columns of tables have fewer rights.
pub const COLUMN: u16 = INSERT | SELECT | UPDATE | REFERENCES;

/// The rights on an object of this kind that nobody has granted anything on.
pub fn default_items(kind: AclKind, owner: Id) -> Vec<AclItem> {
    let item = |grantee, privileges| AclItem { grantee, grantor: owner, privileges, grantable: 0 };
    let public = Some(item(0, kind.public())).filter(|i| i.privileges != 0);
    public.into_iter().chain([item(owner, kind.all())]).collect()
}

/// The rights of a role on an object: bits of rights, and those of them that it may grant on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Rights.
    pub privileges: u16,
    /// May grant.
    pub grantable: u16,
}

/// Questions about rights, in one version of the catalog, in one database.
#[derive(Clone, Copy)]
pub struct Rights<'a> {
    /// The catalog.
    pub catalog: &'a Snapshot,
    /// The session's database, whose owner is a member of `pg_database_owner`.
    pub database: Id,
}

impl<'a> Rights<'a> {
    /// In a database by name.
    pub fn new(catalog: &'a Snapshot, database: &str) -> Rights<'a> {
        Rights { catalog, database: catalog.database_named(database).map_or(0, |d| d.oid) }
    }

    /// Whether the role may do everything.
    pub fn is_superuser(&self, role: Id) -> bool {
        self.catalog.role(role).is_some_and(|r| r.superuser)
    }

    /// The role and the roles that it is a member of, directly or not; with `inherit`, only those
    /// whose rights it uses without SET ROLE.
    pub fn roles_of(&self, member: Id, inherit: bool) -> Vec<Id> {
        let owner = self.catalog.database(self.database).map(|d| d.owner);
        let mut all = vec![member];
        let mut at = 0;
        while at < all.len() {
            let role = self.catalog.role(all[at]);
            at += 1;
            let Some(role) = role.filter(|r| r.inherit || !inherit) else { continue };
            let implied = (owner == Some(role.oid)).then_some(ids::DATABASE_OWNER);
            for of in role.member_of.iter().map(|m| m.role).chain(implied) {
                if !all.contains(&of) {
                    all.push(of);
                }
            }
        }
        all
    }

    /// Whether `member` has the rights of `role`.
    pub fn has_rights_of(&self, member: Id, role: Id) -> bool {
        member == role || self.is_superuser(member) || self.roles_of(member, true).contains(&role)
    }

    /// Whether the policies of a table count for a role: row-level security is enabled, and the role is neither
    /// one that bypasses it nor, unless it is forced, the owner.
    pub fn is_guarded(&self, role: Id, table: &Table) -> bool {
        let bypasses = || self.catalog.role(role).is_none_or(|r| r.superuser || r.bypassrls);
        table.row_security
            && !bypasses()
            && (table.force_row_security || !self.has_rights_of(role, table.owner))
    }

    /// Whether `member` may become `role`.
    pub fn is_member(&self, member: Id, role: Id) -> bool {
        member == role || self.is_superuser(member) || self.roles_of(member, false).contains(&role)
    }

    /// Whether `member` may make others members of `role`.
    pub fn is_admin(&self, member: Id, role: Id) -> bool {
        let admin = |id: &Id| {
            let known = self.catalog.role(*id);
            known.is_some_and(|r| r.member_of.iter().any(|m| m.role == role && m.admin))
        };
        self.is_superuser(member) || self.roles_of(member, false).iter().any(admin)
    }

    /// Whether a role can reach more than what users own and grant: it is a superuser's, a predefined one,
    /// or has an attribute that only superusers give, itself or by membership.
    pub fn is_privileged(&self, role: Id) -> bool {
        let predefined = |id: Id| id < base::Oid::FIRST_USER.0 && id != ids::DATABASE_OWNER;
        self.roles_of(role, false).into_iter().any(|id| {
            let known = self.catalog.role(id);
            predefined(id) || known.is_some_and(|r| r.superuser || r.replication || r.bypassrls)
        })
    }

    /// An object's owner; None when it isn't there.
    pub fn owner(&self, kind: AclKind, object: Id) -> Option<Id> {
        let catalog = self.catalog;
        match kind {
            AclKind::Sequence => catalog.sequence(object).map(|s| s.owner),
            AclKind::Table => match (catalog.table(object), catalog.sequence(object)) {
                (Some(table), _) => Some(table.owner),
                (None, Some(sequence)) => Some(sequence.owner),
                _ => by_oid(base::Oid(object)).map(|_| ids::SUPERUSER),
            },
            AclKind::Schema => catalog.schema(object).map(|s| s.owner),
            AclKind::Database => catalog.database(object).map(|d| d.owner),
            AclKind::Function => match catalog.function(object) {
                Some(own) => Some(own.owner),
                None => crate::system::facts::function_name(object).map(|_| ids::SUPERUSER),
            },
            AclKind::Type => Some(catalog.type_place(object).map_or(ids::SUPERUSER, |p| p.1)),
            AclKind::Collation => catalog.collation(object).map(|c| c.owner),
            AclKind::Wrapper => catalog.wrapper(object).map(|w| w.owner),
            AclKind::Server => catalog.foreign_server(object).map(|s| s.owner),
            AclKind::Defined => match catalog.defined_by_oid(object) {
                Some(own) => own.owner(),
                None => Some(ids::SUPERUSER),
            },
            AclKind::Language | AclKind::Tablespace => Some(ids::SUPERUSER),
        }
    }

    /// The rights in force on an object.
    pub fn items(&self, kind: AclKind, object: Id) -> Vec<AclItem> {
        if let Some(acl) = self.catalog.acl(kind, object, 0) {
            return acl.items.clone();
        }
        self.first_items(kind, object)
    }

    /// The rights on an object before anybody granted or revoked any.
    pub fn first_items(&self, kind: AclKind, object: Id) -> Vec<AclItem> {
        let owner = self.owner(kind, object).unwrap_or(ids::SUPERUSER);
        let mut items = default_items(kind, owner);
        let mut give = |roles: &[Id], privileges: u16| {
            let item = |grantee: &Id| AclItem {
                grantee: *grantee,
                grantor: owner,
                privileges,
                grantable: 0,
            };
            items.extend(roles.iter().map(item));
        };
        match kind {
            AclKind::Table => {
                if let Some(table) = by_oid(base::Oid(object)) {
                    give(table.readers(), SELECT);
                }
            }
            AclKind::Function => {
                if let Some(roles) = callers(object) {
                    give(roles, EXECUTE);
                    items.retain(|i| i.grantee != 0);
                }
            }
            _ => {}
        }
        items
    }

    /// The rights of a role on an object.
    pub fn held(&self, role: Id, kind: AclKind, object: Id) -> Held {
        let everything = Held { privileges: kind.all(), grantable: kind.all() };
        if self.is_superuser(role) {
            return everything;
        }
        if kind == AclKind::Schema && base::Oid(object).is_temporary() {
            // The session's, whatever its role is now.
            let create = self.may(role, AclKind::Database, self.database, TEMPORARY);
            let privileges = USAGE | if create { CREATE } else { 0 };
            return Held { privileges, grantable: 0 };
        }
        let Some(owner) = self.owner(kind, object) else { return Held::default() };
        let roles = self.roles_of(role, true);
        let mut held = sum(&self.items(kind, object), &roles, owner, kind.all());
        held.privileges |= predefined(kind, &roles);
        held
    }

    /// The rights of a role on a column by grants on the column alone.
    pub fn held_on_column(&self, role: Id, table: Id, column: u16) -> Held {
        let Some(acl) = self.catalog.acl(AclKind::Table, table, column) else {
            return Held::default();
        };
        let Some(owner) = self.owner(AclKind::Table, table) else { return Held::default() };
        sum(&acl.items, &self.roles_of(role, true), owner, 0)
    }

    /// Whether a role has all of these rights on an object.
    pub fn may(&self, role: Id, kind: AclKind, object: Id, privileges: u16) -> bool {
        self.held(role, kind, object).privileges & privileges == privileges
    }

    /// `42501` unless the role has all of these rights.
    ///
    /// # Errors
    /// See above; `name` is how the message names the object.
    pub fn require(
        &self,
        role: Id,
        kind: AclKind,
        object: Id,
        privileges: u16,
        name: &str,
    ) -> Result<()> {
        if self.is_superuser(role) || self.may(role, kind, object, privileges) {
            return Ok(());
        }
        Err(denied(kind.word(), name))
    }

    /// Whether a role owns an object, or has the rights of who does.
    pub fn owns(&self, role: Id, kind: AclKind, object: Id) -> bool {
        self.owner(kind, object).is_some_and(|owner| self.has_rights_of(role, owner))
    }

    /// The grantor of a grant by this role, and which of the rights it may grant: the owner's if
    /// it has the owner's rights, else that of the role whose rights allow the most.
    pub fn best_grantor(&self, role: Id, owner: Id, items: &[AclItem], wanted: u16) -> (Id, u16) {
        if self.has_rights_of(role, owner) {
            return (owner, wanted);
        }
        let grantable = |id: Id| sum(items, &[id], owner, 0).grantable & wanted;
        let roles = self.roles_of(role, true).into_iter().map(|id| (id, grantable(id)));
        // The first of the best: the role itself comes first.
        roles.rev().max_by_key(|(_, bits)| bits.count_ones()).unwrap_or((role, 0))
    }

    /// The rights that a new object begins with, when they are not just the usual ones.
    pub fn initial_items(&self, kind: AclKind, owner: Id, schema: Id) -> Option<Vec<AclItem>> {
        let find = |schema: Id| {
            let fits = |d: &&std::sync::Arc<DefaultAcl>| {
                (d.role, d.schema, d.kind) == (owner, schema, kind)
            };
            self.catalog.default_acls().find(fits)
        };
        let global = find(0).map(|d| d.items.clone());
        let local = if schema == 0 { None } else { find(schema) };
        if global.is_none() && local.is_none() {
            return None;
        }
        let mut items = global.unwrap_or_else(|| default_items(kind, owner));
        for item in local.iter().flat_map(|d| &d.items) {
            add(&mut items, item);
        }
        sort(&mut items);
        let mut usual = default_items(kind, owner);
        sort(&mut usual);
        (items != usual).then_some(items)
    }

    /// An item as `aclitem` is shown.
    pub fn text(&self, item: &AclItem) -> String {
        let name = |id: Id| match self.catalog.role(id) {
            Some(role) if is_plain(&role.name) => role.name.clone(),
            Some(role) => format!("\"{}\"", role.name.replace('"', "\"\"")),
            None => id.to_string(),
        };
        let mut out = if item.grantee == 0 { String::new() } else { name(item.grantee) };
        out.push('=');
        for (_, bit, letter) in ALL {
            if item.privileges & bit != 0 {
                out.push(letter);
            }
            if item.grantable & bit != 0 {
                out.push('*');
            }
        }
        out.push('/');
        out + &name(item.grantor)
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80)
}

/// Brings items into the order in which defaults are kept and compared.
pub fn sort(items: &mut [AclItem]) {
    items.sort_by_key(|i| (i.grantee, i.grantor, i.privileges, i.grantable));
}

/// The rights that these roles have together; a role with the owner's rights may grant `all`.
fn sum(items: &[AclItem], roles: &[Id], owner: Id, all: u16) -> Held {
    let mut held = Held::default();
    if roles.contains(&owner) {
        held.grantable = all;
    }
    for item in items.iter().filter(|i| i.grantee == 0 || roles.contains(&i.grantee)) {
        held.privileges |= item.privileges;
        held.grantable |= item.grantable;
    }
    held
}

/// Rights that come with a predefined role.
fn predefined(kind: AclKind, roles: &[Id]) -> u16 {
    let (read, write) = (roles.contains(&ids::READ_ALL_DATA), roles.contains(&ids::WRITE_ALL_DATA));
    match kind {
        AclKind::Table if read && write => SELECT | INSERT | UPDATE | DELETE,
        AclKind::Table if read => SELECT,
        AclKind::Table if write => INSERT | UPDATE | DELETE,
        AclKind::Sequence if read && write => SELECT | UPDATE,
        AclKind::Sequence if read => SELECT,
        AclKind::Sequence if write => UPDATE,
        AclKind::Schema if read || write => USAGE,
        _ => 0,
    }
}

/// Functions of the system that not everybody may call: superusers may, and these predefined roles, unless
/// somebody grants it. PostgreSQL's by its catalog; ours that show or undo what other sessions do.
const RESTRICTED: &[(&str, &[Id])] = &[
    ("lo_export", &[]),
    ("lo_import", &[]),
    ("pg_backup_start", &[]),
    ("pg_backup_stop", &[]),
    ("pg_compare_statements", &[ids::READ_ALL_STATS]),
    ("pg_config", &[]),
    ("pg_create_restore_point", &[]),
    ("pg_current_logfile", &[]),
    ("pg_flamegraph", &[ids::MONITOR]),
    ("pg_get_backend_memory_contexts", &[ids::READ_ALL_STATS]),
    ("pg_get_shmem_allocations", &[ids::READ_ALL_STATS]),
    ("pg_hba_file_rules", &[]),
    ("pg_ident_file_mappings", &[]),
    ("pg_log_backend_memory_contexts", &[]),
    ("pg_ls_archive_statusdir", &[ids::MONITOR]),
    ("pg_ls_dir", &[]),
    ("pg_ls_logdir", &[ids::MONITOR]),
    ("pg_ls_logicalmapdir", &[ids::MONITOR]),
    ("pg_ls_logicalsnapdir", &[ids::MONITOR]),
    ("pg_ls_replslotdir", &[ids::MONITOR]),
    ("pg_ls_tmpdir", &[ids::MONITOR]),
    ("pg_ls_waldir", &[ids::MONITOR]),
    ("pg_promote", &[]),
    ("pg_read_binary_file", &[]),
    ("pg_read_file", &[]),
    ("pg_reload_conf", &[]),
    ("pg_replication_origin_advance", &[]),
    ("pg_replication_origin_create", &[]),
    ("pg_replication_origin_drop", &[]),
    ("pg_replication_origin_oid", &[]),
    ("pg_replication_origin_progress", &[]),
    ("pg_replication_origin_session_is_setup", &[]),
    ("pg_replication_origin_session_progress", &[]),
    ("pg_replication_origin_session_reset", &[]),
    ("pg_replication_origin_session_setup", &[]),
    ("pg_replication_origin_xact_reset", &[]),
    ("pg_replication_origin_xact_setup", &[]),
    ("pg_rotate_logfile", &[]),
    ("pg_server_status", &[ids::MONITOR]),
    ("pg_show_all_file_settings", &[]),
    ("pg_show_replication_origin_status", &[]),
    ("pg_stacks", &[ids::MONITOR]),
    ("pg_stat_file", &[]),
    ("pg_stat_have_stats", &[]),
    ("pg_stat_reset", &[]),
    ("pg_stat_reset_replication_slot", &[]),
    ("pg_stat_reset_shared", &[]),
    ("pg_stat_reset_single_function_counters", &[]),
    ("pg_stat_reset_single_table_counters", &[]),
    ("pg_stat_reset_slru", &[]),
    ("pg_stat_reset_subscription_stats", &[]),
    ("pg_stat_statements_reset", &[]),
    ("pg_stat_wait_reset", &[]),
    ("pg_stat_wait_trace", &[]),
    ("pg_switch_wal", &[]),
    ("pg_top_clients", &[ids::READ_ALL_STATS]),
    ("pg_top_relations", &[ids::READ_ALL_STATS]),
    ("pg_top_statements", &[ids::READ_ALL_STATS]),
    ("pg_wait_history", &[ids::READ_ALL_STATS]),
    ("pg_wait_sampling_reset_profile", &[]),
    ("pg_wal_replay_pause", &[]),
    ("pg_wal_replay_resume", &[]),
    ("pg_why", &[ids::READ_ALL_STATS]),
];

/// Which predefined roles may call a function that not everybody may call.
fn callers(function: Id) -> Option<&'static [Id]> {
    let name = crate::system::facts::function_name(function)?;
    let at = RESTRICTED.binary_search_by(|r| r.0.cmp(name)).ok()?;
    Some(RESTRICTED[at].1)
}

/// Whether only some roles may call a function of the system.
pub fn is_restricted(function: Id) -> bool {
    callers(function).is_some()
}

/// `42501`: the role lacks a right.
pub fn denied(word: &str, name: &str) -> Error {
    err!(INSUFFICIENT_PRIVILEGE, "permission denied for {word} {name}")
}

/// `42501`: the role doesn't own it.
pub fn not_owner(word: &str, name: &str) -> Error {
    err!(INSUFFICIENT_PRIVILEGE, "must be owner of {word} {name}")
}

/// A grant or a revocation.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// GRANT, else REVOKE.
    pub grant: bool,
    /// The role that gets or loses rights; 0: everybody.
    pub grantee: Id,
    /// In whose name.
    pub grantor: Id,
    /// Rights.
    pub privileges: u16,
    /// WITH GRANT OPTION; GRANT OPTION FOR.
    pub option: bool,
    /// CASCADE.
    pub cascade: bool,
}

/// Grants or revokes. What rests on a grant option that goes away goes, too, or is an error.
///
/// # Errors
/// `2BP01` without CASCADE; `0LP01` when an option is granted back to where it came from.
pub fn change(items: &[AclItem], owner: Id, change: &Change) -> Result<Vec<AclItem>> {
    let mut items = items.to_vec();
    if change.grant && change.option && change.grantee != owner {
        check_circle(&items, owner, change)?;
    }
    let at = items
        .iter()
        .position(|i| (i.grantee, i.grantor) == (change.grantee, change.grantor))
        .unwrap_or_else(|| {
            items.push(AclItem {
                grantee: change.grantee,
                grantor: change.grantor,
                privileges: 0,
                grantable: 0,
            });
            items.len() - 1
        });
    let item = &mut items[at];
    let before = item.grantable;
    match (change.grant, change.option) {
        (true, option) => {
            item.privileges |= change.privileges;
            item.grantable |= if option { change.privileges } else { 0 };
        }
        (false, true) => item.grantable &= !change.privileges,
        (false, false) => {
            item.privileges &= !change.privileges;
            item.grantable &= !change.privileges;
        }
    }
    let lost = before & !item.grantable;
    if item.privileges == 0 && item.grantable == 0 {
        items.remove(at);
    }
    if lost == 0 || change.grantee == owner {
        return Ok(items);
    }
    revoke_dependent(items, owner, change.grantee, lost, change.cascade)
}

/// Takes back what somebody granted who no longer may.
fn revoke_dependent(
    mut items: Vec<AclItem>,
    owner: Id,
    grantee: Id,
    lost: u16,
    cascade: bool,
) -> Result<Vec<AclItem>> {
    // The option may still come from somebody else.
    let lost = lost & !sum(&items, &[grantee], owner, 0).grantable;
    while let Some(item) =
        items.iter().find(|i| i.grantor == grantee && i.privileges & lost != 0).copied()
    {
        if !cascade {
            return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist")
                .hint("Use CASCADE to revoke them too."));
        }
        let revoke = Change {
            grant: false,
            grantee: item.grantee,
            grantor: grantee,
            privileges: lost,
            option: false,
            cascade,
        };
        items = change(&items, owner, &revoke)?;
    }
    Ok(items)
}

/// A grant option must not come back to whom it came from: then nobody could revoke it.
fn check_circle(items: &[AclItem], owner: Id, wanted: &Change) -> Result<()> {
    if wanted.grantor == owner {
        return Ok(());
    }
    let mut without = items.to_vec();
    while let Some(at) =
        without.iter().position(|i| i.grantee == wanted.grantee && i.grantable != 0)
    {
        let (grantor, grantable) = (without[at].grantor, without[at].grantable);
        let revoke = Change {
            grant: false,
            grantee: wanted.grantee,
            grantor,
            privileges: grantable,
            option: true,
            cascade: true,
        };
        without = change(&without, owner, &revoke)?;
    }
    let own = sum(&without, &[wanted.grantor], owner, 0).grantable;
    if wanted.privileges & !own != 0 {
        return Err(err!(
            INVALID_GRANT_OPERATION,
            "grant options cannot be granted back to your own grantor"
        ));
    }
    Ok(())
}

fn add(items: &mut Vec<AclItem>, item: &AclItem) {
    match items.iter_mut().find(|i| (i.grantee, i.grantor) == (item.grantee, item.grantor)) {
        Some(known) => {
            known.privileges |= item.privileges;
            known.grantable |= item.grantable;
        }
        None => items.push(*item),
    }
}

/// The rights when the object gets another owner: in all that the old one had or granted, the new one
/// takes its place.
pub fn new_owner(items: &[AclItem], old: Id, new: Id) -> Vec<AclItem> {
    let swap = |id: Id| if id == old { new } else { id };
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let (grantee, grantor) = (swap(item.grantee), swap(item.grantor));
        add(&mut out, &AclItem { grantee, grantor, ..*item });
    }
    out
}

/// The name of an object as messages qualify it: with its schema.
pub fn shown(catalog: &Snapshot, schema: Id, name: &str) -> String {
    match catalog.schema(schema) {
        Some(schema) => format!("{}.{}", quote_ident(&schema.name), quote_ident(name)),
        None => quote_ident(name),
    }
}

impl Acl {
    /// Whether a role has or granted something here.
    pub fn names(&self, role: Id) -> bool {
        self.items.iter().any(|i| i.grantee == role || i.grantor == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricted_functions_are_in_order() {
        assert!(RESTRICTED.is_sorted_by_key(|r| r.0));
    }
    use crate::object::{Database, Membership, Object, Role};

    const OWNER: Id = 100;
    const A: Id = 101;
    const B: Id = 102;
    const C: Id = 103;

    fn grant(grantee: Id, grantor: Id, privileges: u16, option: bool) -> Change {
        Change { grant: true, grantee, grantor, privileges, option, cascade: false }
    }

    fn roles() -> Snapshot {
        let mut catalog = Snapshot::default();
        crate::object::initial().into_iter().for_each(|o| catalog.put(o));
        for (oid, name) in [(OWNER, "owner"), (A, "a"), (B, "b-b"), (C, "c")] {
            catalog.put(Object::Role(Role::new(oid, name)));
        }
        catalog
    }

    fn member(catalog: &mut Snapshot, member: Id, role: Id, inherit: bool) {
        let mut changed = Role::clone(catalog.role(member).unwrap());
        changed.member_of.push(Membership { role, grantor: ids::SUPERUSER, admin: false });
        changed.inherit = inherit;
        catalog.put(Object::Role(changed));
    }

    #[test]
    fn rights_come_by_inheritance_and_not_without_it() {
        let mut catalog = roles();
        member(&mut catalog, A, B, true);
        member(&mut catalog, B, C, false);
        let rights = Rights { catalog: &catalog, database: ids::POSTGRES_DB };
        assert!(rights.has_rights_of(A, B) && !rights.has_rights_of(A, C));
        assert!(rights.is_member(A, C) && !rights.is_member(C, A));
        assert!(rights.has_rights_of(ids::SUPERUSER, C));
        assert!(!rights.is_admin(A, B) && rights.is_admin(ids::SUPERUSER, B));
    }

    #[test]
    fn the_owner_of_the_database_owns_the_public_schema() {
        let mut catalog = roles();
        let rights = Rights { catalog: &catalog, database: ids::POSTGRES_DB };
        assert!(!rights.may(A, AclKind::Schema, ids::PUBLIC, CREATE));
        assert!(rights.may(A, AclKind::Schema, ids::PUBLIC, USAGE));
        assert!(rights.may(A, AclKind::Database, ids::POSTGRES_DB, CONNECT));
        let database = Database::clone(catalog.database(ids::POSTGRES_DB).unwrap());
        catalog.put(Object::Database(Database { owner: A, ..database }));
        let rights = Rights { catalog: &catalog, database: ids::POSTGRES_DB };
        assert!(rights.may(A, AclKind::Schema, ids::PUBLIC, CREATE));
    }

    #[test]
    fn what_rests_on_a_revoked_option_goes_with_it_or_keeps_it() {
        let items = default_items(AclKind::Table, OWNER);
        let items = change(&items, OWNER, &grant(A, OWNER, SELECT | INSERT, true)).unwrap();
        let items = change(&items, OWNER, &grant(B, A, SELECT, true)).unwrap();
        let items = change(&items, OWNER, &grant(C, B, SELECT, false)).unwrap();
        let revoke = Change { grant: false, option: false, ..grant(A, OWNER, SELECT, false) };
        let refused = change(&items, OWNER, &revoke).unwrap_err();
        assert_eq!(refused.code().as_str(), "2BP01");
        let left = change(&items, OWNER, &Change { cascade: true, ..revoke }).unwrap();
        let a: Vec<_> = left.iter().filter(|i| i.grantee != OWNER).collect();
        assert_eq!(a.len(), 1);
        assert_eq!((a[0].grantee, a[0].privileges, a[0].grantable), (A, INSERT, INSERT));
    }

    #[test]
    fn an_option_is_not_granted_back() {
        let items = default_items(AclKind::Table, OWNER);
        let items = change(&items, OWNER, &grant(A, OWNER, SELECT, true)).unwrap();
        let items = change(&items, OWNER, &grant(B, A, SELECT, true)).unwrap();
        let back = change(&items, OWNER, &grant(A, B, SELECT, true)).unwrap_err();
        assert_eq!(back.code().as_str(), "0LP01");
        change(&items, OWNER, &grant(A, B, SELECT, false)).unwrap();
    }

    #[test]
    fn items_are_shown_as_postgresql_shows_them() {
        let catalog = roles();
        let rights = Rights { catalog: &catalog, database: ids::POSTGRES_DB };
        let item = |grantee, privileges, grantable| {
            rights.text(&AclItem { grantee, grantor: B, privileges, grantable })
        };
        assert_eq!(item(A, SELECT | INSERT | UPDATE, SELECT), "a=ar*w/\"b-b\"");
        assert_eq!(item(0, USAGE, 0), "=U/\"b-b\"");
        assert_eq!(item(B, AclKind::Table.all(), 0), "\"b-b\"=arwdDxt/\"b-b\"");
        assert_eq!(item(4242, CONNECT, 0), "4242=c/\"b-b\"");
    }

    #[test]
    fn a_new_owner_takes_the_old_ones_place() {
        let items = default_items(AclKind::Table, OWNER);
        let items = change(&items, OWNER, &grant(A, OWNER, SELECT, false)).unwrap();
        let moved = new_owner(&items, OWNER, A);
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].grantee, moved[0].grantor), (A, A));
        assert_eq!(moved[0].privileges, AclKind::Table.all());
    }
}
