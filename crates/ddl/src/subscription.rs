//! CREATE, ALTER and DROP SUBSCRIPTION.
//!
//! A subscription is an object of the catalog with its tables in it. Reaching the publisher is the session's
//! ([`exec::context::SessionHooks::publisher`]): it makes and drops slots there, and says which tables its
//! publications have.

use base::{Result, err, sqlstate};
use catalog::{AclKind, Defined, Subscription, SubscriptionTable};
use exec::context::ExecContext;
use exec::publisher::PublisherRequest as Ask;
use exec::rights;
use logical::conninfo::Conninfo;
use sql::publication::{ListChange, StreamOption, SubscriptionStatement};
use sql::role::RoleRef;

use crate::defined::place::put;
use crate::publication::options::{boolean, expect_once, text};
use crate::{name, notice};

/// Runs a statement about subscriptions.
///
/// # Errors
/// `42501`, `42601`, `42710`, `42704`, `25001`, `55000`, `08006` and those of the publisher.
pub fn run(statement: &SubscriptionStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        SubscriptionStatement::Create { name, connection, publications, options } => {
            create(name, connection, publications, options, cx)
        }
        SubscriptionStatement::Options(name, options) => set_options(name, options, cx),
        SubscriptionStatement::Connection(name, connection) => {
            let mut subscription = open(name, cx)?;
            check_connection(connection)?;
            connection.clone_into(&mut subscription.connection);
            store(subscription, cx)
        }
        SubscriptionStatement::Publications(name, change, names, options) => {
            change_publications(name, *change, names, options, cx)
        }
        SubscriptionStatement::Refresh(name, options) => {
            let mut subscription = open(name, cx)?;
            let options = Options::read(options, &["copy_data"])?;
            if !subscription.enabled {
                base::bail!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "ALTER SUBSCRIPTION ... REFRESH is not allowed for disabled subscriptions"
                );
            }
            cx.hooks.prevent_in_block("ALTER SUBSCRIPTION ... REFRESH")?;
            refresh(&mut subscription, options.copy_data.unwrap_or(true), cx)?;
            store(subscription, cx)
        }
        SubscriptionStatement::Enable(name, enabled) => {
            let mut subscription = open(name, cx)?;
            if *enabled && subscription.slot.is_none() {
                base::bail!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "cannot enable subscription that does not have a slot name"
                );
            }
            subscription.enabled = *enabled;
            store(subscription, cx)
        }
        SubscriptionStatement::Skip(name, options) => {
            let mut subscription = open(name, cx)?;
            let options = Options::read(options, &["lsn"])?;
            if !rights::is_superuser(cx) {
                base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to skip transaction");
            }
            subscription.skip_lsn = options.lsn.unwrap_or(subscription.skip_lsn);
            store(subscription, cx)
        }
        SubscriptionStatement::Rename(name, to) => {
            let mut subscription = open(name, cx)?;
            check_free(to, cx)?;
            to.clone_into(&mut subscription.name);
            store(subscription, cx)
        }
        SubscriptionStatement::Drop { name, if_exists } => drop(name, *if_exists, cx),
    }
}

/// The options of a subscription, as far as they are given.
#[derive(Default)]
struct Options {
    connect: Option<bool>,
    enabled: Option<bool>,
    create_slot: Option<bool>,
    copy_data: Option<bool>,
    refresh: Option<bool>,
    /// Some(None): NONE.
    slot: Option<Option<String>>,
    synchronous_commit: Option<String>,
    binary: Option<bool>,
    streaming: Option<bool>,
    two_phase: Option<bool>,
    disable_on_error: Option<bool>,
    origin: Option<String>,
    lsn: Option<u64>,
}

impl Options {
    /// Reads those that a statement may have.
    ///
    /// # Errors
    /// `42601`, `42602`, `22023`.
    fn read(options: &[StreamOption], allowed: &[&str]) -> Result<Options> {
        let mut out = Options::default();
        for (n, option) in options.iter().enumerate() {
            let name = option.name.as_str();
            if !allowed.contains(&name) {
                return Err(err!(SYNTAX_ERROR, "unrecognized subscription parameter: \"{name}\""));
            }
            expect_once(&options[..n], option)?;
            match name {
                "connect" => out.connect = Some(boolean(option)?),
                "enabled" => out.enabled = Some(boolean(option)?),
                "create_slot" => out.create_slot = Some(boolean(option)?),
                "copy_data" => out.copy_data = Some(boolean(option)?),
                "refresh" => out.refresh = Some(boolean(option)?),
                "binary" => out.binary = Some(boolean(option)?),
                "streaming" => out.streaming = Some(boolean(option)?),
                "two_phase" => out.two_phase = Some(boolean(option)?),
                "disable_on_error" => out.disable_on_error = Some(boolean(option)?),
                "origin" => {
                    let value = text(option)?.to_ascii_lowercase();
                    if !matches!(value.as_str(), "none" | "any") {
                        base::bail!(
                            INVALID_PARAMETER_VALUE,
                            "unrecognized origin value: \"{value}\""
                        );
                    }
                    out.origin = Some(value);
                }
                "slot_name" => {
                    let value = text(option)?;
                    out.slot = Some(match value {
                        "none" => None,
                        name => {
                            logical::slot::check_name(name)?;
                            Some(name.to_owned())
                        }
                    });
                }
                "synchronous_commit" => {
                    let value = text(option)?;
                    base::settings::parse(base::settings::setting::SYNCHRONOUS_COMMIT, value)?;
                    out.synchronous_commit = Some(value.to_owned());
                }
                _ => out.lsn = Some(position(text(option)?)?),
            }
        }
        Ok(out)
    }

    /// The defaults of CREATE, and what does not go together.
    fn check_new(&mut self) -> Result<()> {
        let exclusive =
            |a: &str, b: &str| err!(SYNTAX_ERROR, "{a} and {b} are mutually exclusive options");
        if self.connect == Some(false) {
            for (given, name) in [
                (self.enabled, "enabled = true"),
                (self.create_slot, "create_slot = true"),
                (self.copy_data, "copy_data = true"),
            ] {
                if given == Some(true) {
                    return Err(exclusive("connect = false", name));
                }
            }
            (self.enabled, self.create_slot, self.copy_data) =
                (Some(false), Some(false), Some(false));
        }
        if self.slot == Some(None) {
            for (given, name) in [(self.enabled, "enabled"), (self.create_slot, "create_slot")] {
                match given {
                    Some(true) => {
                        return Err(exclusive("slot_name = NONE", &format!("{name} = true")));
                    }
                    None => {
                        return Err(err!(
                            SYNTAX_ERROR,
                            "subscription with slot_name = NONE must also set {name} = false"
                        ));
                    }
                    Some(false) => {}
                }
            }
        }
        Ok(())
    }
}

/// A log position; 0 for NONE.
fn position(text: &str) -> Result<u64> {
    if text == "none" {
        return Ok(0);
    }
    let part = |hex: &str| {
        (!hex.is_empty() && hex.len() <= 8).then(|| u64::from_str_radix(hex, 16).ok()).flatten()
    };
    let parsed = text.split_once('/').and_then(|(high, low)| Some(part(high)? << 32 | part(low)?));
    match parsed {
        None => Err(err!(
            INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type pg_lsn: \"{text}\""
        )),
        Some(0) => Err(err!(INVALID_PARAMETER_VALUE, "invalid WAL location (LSN): {text}")),
        Some(lsn) => Ok(lsn),
    }
}

fn check_connection(text: &str) -> Result<Conninfo> {
    Conninfo::parse(text)
        .map_err(|why| err!(SYNTAX_ERROR, "invalid connection string syntax: {why}\n"))
}

fn check_free(name: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    name::reserve(cx, 0, &format!("subscription {name}"))?;
    if cx.catalog_tx.view().subscription_named(name).is_some() {
        base::bail!(DUPLICATE_OBJECT, "subscription \"{name}\" already exists");
    }
    Ok(())
}

/// A subscription that its owner changes; nobody else does until the transaction ends.
fn open(name: &str, cx: &mut ExecContext<'_>) -> Result<Subscription> {
    let find = |cx: &mut ExecContext<'_>| {
        let view = cx.catalog_tx.view();
        let found = view.subscription_named(name).cloned();
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "subscription \"{name}\" does not exist"))
    };
    let found = find(cx)?;
    rights::require_owner(cx, AclKind::Defined, found.oid, "subscription", name)?;
    name::reserve(cx, found.oid, "")?;
    find(cx)
}

fn store(subscription: Subscription, cx: &mut ExecContext<'_>) -> Result<()> {
    put(cx, Defined::Subscription(subscription))?;
    cx.hooks.subscriptions_changed();
    Ok(())
}

/// `42710` for a publication that is named twice.
fn check_once(names: &[String]) -> Result<()> {
    for (n, name) in names.iter().enumerate() {
        if names[..n].contains(name) {
            base::bail!(DUPLICATE_OBJECT, "publication name \"{name}\" used more than once");
        }
    }
    Ok(())
}

fn create(
    name: &str,
    connection: &str,
    publications: &[String],
    given: &[StreamOption],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut options = Options::read(
        given,
        &[
            "connect",
            "enabled",
            "create_slot",
            "slot_name",
            "copy_data",
            "synchronous_commit",
            "binary",
            "streaming",
            "two_phase",
            "disable_on_error",
            "origin",
        ],
    )?;
    options.check_new()?;
    let create_slot = options.create_slot.unwrap_or(true);
    if create_slot {
        cx.hooks.prevent_in_block("CREATE SUBSCRIPTION ... WITH (create_slot = true)")?;
    }
    if !rights::is_superuser(cx) {
        base::bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create subscriptions");
    }
    check_free(name, cx)?;
    let slot = match options.slot {
        Some(slot) => slot,
        None => {
            logical::slot::check_name(name)?;
            Some(name.to_owned())
        }
    };
    check_once(publications)?;
    let parsed = check_connection(connection)?;
    let two_phase = options.two_phase.unwrap_or(false);
    let mut subscription = Subscription {
        oid: crate::new_oid(cx, 0)?,
        name: name.to_owned(),
        owner: cx.role,
        enabled: options.enabled.unwrap_or(true),
        binary: options.binary.unwrap_or(false),
        streaming: options.streaming.unwrap_or(false),
        two_phase: if two_phase { 'p' } else { 'd' },
        disable_on_error: options.disable_on_error.unwrap_or(false),
        connection: connection.to_owned(),
        slot: slot.clone(),
        synchronous_commit: options.synchronous_commit.unwrap_or_else(|| "off".to_owned()),
        publications: publications.to_vec(),
        origin: options.origin.unwrap_or_default(),
        ..Subscription::default()
    };
    if options.connect.unwrap_or(true) {
        parsed
            .port()
            .map_err(|why| err!(CONNECTION_FAILURE, "could not connect to the publisher: {why}"))?;
        refresh(&mut subscription, options.copy_data.unwrap_or(true), cx)?;
        if let (true, Some(slot)) = (create_slot, &slot) {
            let ask = Ask::CreateSlot { slot: slot.clone(), two_phase };
            cx.hooks.publisher(connection, name, &ask)?;
            notice(
                cx,
                sqlstate::SUCCESSFUL_COMPLETION,
                format!("created replication slot \"{slot}\" on publisher"),
            );
        }
    } else {
        let warning = err!(
            WARNING,
            "tables were not subscribed, you will have to run ALTER SUBSCRIPTION ... REFRESH PUBLICATION to subscribe the tables"
        );
        cx.hooks.notice("WARNING", warning);
    }
    store(subscription, cx)
}

/// Takes over which tables the publications have.
fn refresh(subscription: &mut Subscription, copy: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let ask = Ask::Tables(subscription.publications.clone());
    let (connection, name) = (subscription.connection.clone(), subscription.name.clone());
    let found = cx.hooks.publisher(&connection, &name, &ask)?;
    let view = cx.catalog_tx.view();
    let mut tables = Vec::with_capacity(found.len());
    for row in found {
        let [schema, table] = row.as_slice() else { continue };
        let local = view.expect_table(cx.search_path, Some(schema), table)?;
        let known = subscription.tables.iter().find(|t| t.table == local.oid).cloned();
        let state = if copy { 'i' } else { 'r' };
        let fresh = || SubscriptionTable { table: local.oid, state, lsn: None };
        tables.push(known.unwrap_or_else(fresh));
    }
    subscription.tables = tables;
    Ok(())
}

fn set_options(name: &str, given: &[StreamOption], cx: &mut ExecContext<'_>) -> Result<()> {
    let mut subscription = open(name, cx)?;
    let options = Options::read(
        given,
        &["slot_name", "synchronous_commit", "binary", "streaming", "disable_on_error", "origin"],
    )?;
    if let Some(slot) = options.slot {
        if slot.is_none() && subscription.enabled {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot set slot_name = NONE for enabled subscription"
            );
        }
        subscription.slot = slot;
    }
    if let Some(value) = options.synchronous_commit {
        subscription.synchronous_commit = value;
    }
    subscription.binary = options.binary.unwrap_or(subscription.binary);
    subscription.streaming = options.streaming.unwrap_or(subscription.streaming);
    subscription.origin = options.origin.unwrap_or(subscription.origin);
    subscription.disable_on_error =
        options.disable_on_error.unwrap_or(subscription.disable_on_error);
    store(subscription, cx)
}

fn change_publications(
    name: &str,
    change: ListChange,
    names: &[String],
    given: &[StreamOption],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut subscription = open(name, cx)?;
    let options = Options::read(given, &["copy_data", "refresh"])?;
    check_once(names)?;
    let list = &mut subscription.publications;
    for publication in names {
        let known = list.contains(publication);
        match change {
            ListChange::Add if known => base::bail!(
                DUPLICATE_OBJECT,
                "publication \"{publication}\" is already in subscription \"{name}\""
            ),
            ListChange::Drop if !known => base::bail!(
                INVALID_OBJECT_DEFINITION,
                "publication \"{publication}\" is not in subscription \"{name}\""
            ),
            _ => {}
        }
    }
    match change {
        ListChange::Set => *list = names.to_vec(),
        ListChange::Add => list.extend(names.iter().cloned()),
        ListChange::Drop => list.retain(|p| !names.contains(p)),
    }
    if list.is_empty() {
        base::bail!(
            INVALID_OBJECT_DEFINITION,
            "cannot drop all the publications from a subscription"
        );
    }
    if options.refresh.unwrap_or(true) {
        if !subscription.enabled {
            let words = match change {
                ListChange::Set => "SET",
                ListChange::Add => "ADD",
                ListChange::Drop => "DROP",
            };
            return Err(err!(
                SYNTAX_ERROR,
                "ALTER SUBSCRIPTION with refresh is not allowed for disabled subscriptions"
            )
            .hint(format!(
                "Use ALTER SUBSCRIPTION ... {words} PUBLICATION ... WITH (refresh = false)."
            )));
        }
        cx.hooks.prevent_in_block("ALTER SUBSCRIPTION with refresh")?;
        refresh(&mut subscription, options.copy_data.unwrap_or(true), cx)?;
    }
    store(subscription, cx)
}

/// ALTER SUBSCRIPTION … OWNER TO.
///
/// # Errors
/// `42704`, `42501`.
pub fn set_owner(name: &str, to: &RoleRef, cx: &mut ExecContext<'_>) -> Result<()> {
    let to = rights::role(cx, to)?;
    let mut subscription = open(name, cx)?;
    if subscription.owner == to {
        return Ok(());
    }
    let view = cx.catalog_tx.view();
    if !rights::of(cx, &view).is_superuser(to) {
        return Err(err!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to change owner of subscription \"{name}\""
        )
        .hint("The owner of a subscription must be a superuser."));
    }
    subscription.owner = to;
    store(subscription, cx)
}

fn drop(name: &str, if_exists: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    if if_exists && cx.catalog_tx.view().subscription_named(name).is_none() {
        let message = format!("subscription \"{name}\" does not exist, skipping");
        notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    let subscription = open(name, cx)?;
    if subscription.slot.is_some() {
        cx.hooks.prevent_in_block("DROP SUBSCRIPTION")?;
    }
    crate::defined::remove(cx, subscription.oid)?;
    exec::origins::remove(&format!("pg_{}", subscription.oid), cx)?;
    if let Some(slot) = &subscription.slot {
        let ask = Ask::DropSlot(slot.clone());
        cx.hooks.publisher(&subscription.connection, name, &ask).map_err(|error| {
            let message = format!(
                "could not connect to publisher when attempting to drop replication slot \"{slot}\": {}",
                error.message().trim_start_matches("could not connect to the publisher: ")
            );
            match error.code() == sqlstate::CONNECTION_FAILURE {
                true => base::Error::new(sqlstate::CONNECTION_FAILURE, message).hint(
                    "Use ALTER SUBSCRIPTION ... DISABLE to disable the subscription, and then use ALTER SUBSCRIPTION ... SET (slot_name = NONE) to disassociate it from the slot.",
                ),
                false => error,
            }
        })?;
        notice(
            cx,
            sqlstate::SUCCESSFUL_COMPLETION,
            format!("dropped replication slot \"{slot}\" on publisher"),
        );
    }
    cx.hooks.subscriptions_changed();
    Ok(())
}
