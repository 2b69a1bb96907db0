//! Statements about event triggers, and the events of statements that define something.
//!
//! The objects that a statement has made and dropped are read off the catalog before and after it.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Result, err, sqlstate};
use catalog::system::address::{Address, Identity};
use catalog::system::class;
use catalog::system::reg::Names;
use catalog::{EventTrigger, Object, Snapshot};
use exec::context::{ExecContext, Outcome};
use exec::event::{Command, Dropped, Event};
use exec::{event_trigger, rights};
use sql::event_trigger::{EventTriggerStatement, fires, is_tag};
use sql::utility::{Name, Utility};

use super::notice;
use crate::forget::remove_comments;

/// Runs a statement about event triggers.
///
/// # Errors
/// `42501`, `42601`, `0A000`, `42710`, `42704`, `42883`, `42P17`.
pub fn run(statement: &EventTriggerStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        EventTriggerStatement::Create { name, event, filters, function } => {
            create(name, event, filters, function, cx)
        }
        EventTriggerStatement::Enable(name, enabled) => {
            let mut trigger = owned(name, cx)?;
            trigger.enabled = *enabled;
            put(trigger, cx)
        }
        EventTriggerStatement::Rename(name, to) => {
            let mut trigger = owned(name, cx)?;
            if find(to, cx).is_some() {
                base::bail!(DUPLICATE_OBJECT, "event trigger \"{to}\" already exists");
            }
            to.clone_into(&mut trigger.name);
            put(trigger, cx)
        }
        EventTriggerStatement::Owner(name, to) => {
            let to = rights::role(cx, to)?;
            let mut trigger = owned(name, cx)?;
            let view = cx.catalog_tx.view();
            if !rights::of(cx, &view).is_superuser(to) {
                return Err(err!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied to change owner of event trigger \"{name}\""
                )
                .hint("The owner of an event trigger must be a superuser."));
            }
            trigger.owner = to;
            put(trigger, cx)
        }
        EventTriggerStatement::Drop { names, if_exists, .. } => {
            for name in names {
                if find(name, cx).is_none() && *if_exists {
                    let message = format!("event trigger \"{name}\" does not exist, skipping");
                    notice(cx, sqlstate::SUCCESSFUL_COMPLETION, message);
                    continue;
                }
                let trigger = owned(name, cx)?;
                remove_comments(cx, trigger.oid)?;
                cx.catalog_tx.remove(cx.tx, trigger.oid)?;
            }
            Ok(())
        }
    }
}

fn create(
    name: &str,
    event: &str,
    filters: &[(String, Vec<String>)],
    function: &Name,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    if !rights::is_superuser(cx) {
        return Err(err!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to create event trigger \"{name}\""
        )
        .hint("Must be superuser to create an event trigger."));
    }
    if !matches!(event, "ddl_command_start" | "ddl_command_end" | "sql_drop" | "table_rewrite") {
        base::bail!(SYNTAX_ERROR, "unrecognized event name \"{event}\"");
    }
    let mut tags: Option<Vec<String>> = None;
    for (variable, values) in filters {
        if variable != "tag" {
            base::bail!(SYNTAX_ERROR, "unrecognized filter variable \"{variable}\"");
        }
        if tags.is_some() {
            base::bail!(SYNTAX_ERROR, "filter variable \"tag\" specified more than once");
        }
        values.iter().try_for_each(|value| check_tag(event, value))?;
        tags = Some(values.iter().map(|value| value.to_uppercase()).collect());
    }
    if find(name, cx).is_some() {
        base::bail!(DUPLICATE_OBJECT, "event trigger \"{name}\" already exists");
    }
    let function = find_function(function, cx)?;
    let (oid, owner, tags) = (super::new_oid(cx, 0)?, cx.role, tags.unwrap_or_default());
    let (name, event) = (name.to_owned(), event.to_owned());
    put(EventTrigger { oid, name, event, owner, function, enabled: 'O', tags }, cx)
}

fn check_tag(event: &str, tag: &str) -> Result<()> {
    let upper = tag.to_uppercase();
    if !is_tag(&upper) {
        base::bail!(
            SYNTAX_ERROR,
            "filter value \"{tag}\" not recognized for filter variable \"tag\""
        );
    }
    let rewrites = ["ALTER TABLE", "ALTER MATERIALIZED VIEW", "ALTER TYPE"];
    let ok = match event {
        "table_rewrite" => rewrites.contains(&upper.as_str()),
        _ => fires(&upper),
    };
    if !ok {
        base::bail!(FEATURE_NOT_SUPPORTED, "event triggers are not supported for {upper}");
    }
    Ok(())
}

fn find_function(name: &Name, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let schemas = match &name.schema {
        Some(schema) => vec![
            view.schema_named(schema)
                .ok_or_else(|| err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist"))?
                .oid,
        ],
        None => cx.search_path.to_vec(),
    };
    let found = schemas.iter().find_map(|schema| {
        let mut all = view.functions_named(&name.name).filter(|f| f.schema == *schema);
        all.find(|f| f.inputs().next().is_none() && !f.procedure)
    });
    let built_in = catalog::system::facts::named(&name.name);
    let bare = |id: &u32| {
        catalog::system::facts::function_arguments(*id, true).is_some_and(|a| a.is_empty())
    };
    match found {
        Some(found) if base::Oid(found.result) == types::oids::EVENT_TRIGGER => Ok(found.oid),
        None if !built_in.iter().any(bare) => {
            Err(err!(UNDEFINED_FUNCTION, "function {}() does not exist", name.name))
        }
        _ => Err(err!(
            INVALID_OBJECT_DEFINITION,
            "function {} must return type event_trigger",
            name.name
        )),
    }
}

fn find(name: &str, cx: &mut ExecContext<'_>) -> Option<Arc<EventTrigger>> {
    cx.catalog_tx.view().event_triggers().find(|t| t.name == name).cloned()
}

/// One of the session's role.
fn owned(name: &str, cx: &mut ExecContext<'_>) -> Result<EventTrigger> {
    let found = find(name, cx)
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "event trigger \"{name}\" does not exist"))?;
    let view = cx.catalog_tx.view();
    if !rights::of(cx, &view).has_rights_of(cx.role, found.owner) {
        base::bail!(INSUFFICIENT_PRIVILEGE, "must be owner of event trigger {name}");
    }
    Ok(EventTrigger::clone(&found))
}

fn put(trigger: EventTrigger, cx: &mut ExecContext<'_>) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::EventTrigger(trigger))
}

/// Runs a statement between its events.
///
/// # Errors
/// The statement's, and those of the triggers' functions.
pub fn around(
    utility: &Utility,
    tag: &str,
    cx: &mut ExecContext<'_>,
    run: impl FnOnce(&mut ExecContext<'_>) -> Result<Outcome>,
) -> Result<Outcome> {
    let before = cx.catalog_tx.view();
    // A statement that another one consists of is no statement of its own.
    let part = !cx.hooks.deferred().running.is_empty();
    if part || before.event_triggers().next().is_none() || !fires(tag) || is_shared(utility) {
        return run(cx);
    }
    let event = |name| Event { name, tag: tag.to_owned(), ..Event::default() };
    event_trigger::fire(event("ddl_command_start"), cx)?;
    let before = cx.catalog_tx.view();
    cx.hooks.deferred().running.push(tag.to_owned());
    let outcome = run(cx);
    cx.hooks.deferred().running.pop();
    let outcome = outcome?;
    if event_trigger::has("sql_drop", tag, cx) {
        let dropped = dropped(&before, utility, cx);
        if !dropped.is_empty() {
            event_trigger::fire(Event { dropped, ..event("sql_drop") }, cx)?;
        }
    }
    if event_trigger::has("ddl_command_end", tag, cx) {
        let commands = commands(&before, utility, tag, cx);
        event_trigger::fire(Event { commands, ..event("ddl_command_end") }, cx)?;
    }
    Ok(outcome)
}

/// The event before a table is written anew. `reason`: as `pg_event_trigger_table_rewrite_reason` has it.
///
/// # Errors
/// Those of the triggers' functions.
pub fn rewriting(table: u32, reason: i32, cx: &mut ExecContext<'_>) -> Result<()> {
    let Some(tag) = cx.hooks.deferred().running.last().cloned() else { return Ok(()) };
    if !event_trigger::has("table_rewrite", &tag, cx) {
        return Ok(());
    }
    let rewrite = Some((table, reason));
    event_trigger::fire(Event { name: "table_rewrite", tag, rewrite, ..Event::default() }, cx)
}

/// Whether a statement is about what all databases share.
fn is_shared(utility: &Utility) -> bool {
    use sql::role::RoleStatement as R;
    match utility {
        Utility::Database(_) => true,
        Utility::Comment(statement) => match &statement.target {
            sql::comment_statement::CommentTarget::Named { kind, .. } => {
                matches!(*kind, "DATABASE" | "ROLE" | "TABLESPACE" | "EVENT TRIGGER")
            }
            _ => false,
        },
        Utility::Role(R::Owner { kind, .. }) => matches!(*kind, "DATABASE"),
        _ => false,
    }
}

fn names<'a>(view: &'a Snapshot, cx: &'a ExecContext<'_>) -> Names<'a> {
    Names { catalog: view, path: &[], database: Some(cx.database.0) }
}

/// All objects that statements report: class and oid, tables before what belongs to them.
fn objects(view: &Snapshot) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    out.extend(view.schemas().map(|o| (class::SCHEMA, o.oid)));
    out.extend(view.sequences().map(|o| (class::RELATION, o.oid)));
    out.extend(view.tables().map(|o| (class::RELATION, o.oid)));
    out.extend(view.indexes().map(|o| (class::RELATION, o.oid)));
    out.extend(view.user_types().map(|o| (class::TYPE, o.oid)));
    out.extend(view.functions().map(|o| (class::FUNCTION, o.oid)));
    out.extend(view.user_collations().map(|o| (class::COLLATION, o.oid)));
    out.extend(view.defined().map(|o| (o.class(), o.oid())));
    out
}

/// The objects that belong to a table and are dropped with it, or by themselves.
fn parts(view: &Snapshot, table: u32) -> Vec<(u32, u32, i32)> {
    let Some(t) = view.table(table) else { return Vec::new() };
    let mut out = Vec::new();
    if t.row_type[0] != 0 {
        out.push((class::TYPE, t.row_type[0], 0));
        out.push((class::TYPE, t.row_type[1], 0));
    }
    for (n, column) in t.live_columns() {
        if column.default.is_some() {
            out.push((class::DEFAULT, catalog::system::default_id(table, n), 0));
        }
    }
    out.extend(t.constraints.iter().map(|c| (class::CONSTRAINT, c.oid, 0)));
    if t.query.is_some() {
        out.push((class::REWRITE, catalog::system::rule_id(table), 0));
    }
    out.extend(t.triggers.iter().map(|c| (class::TRIGGER, c.oid, 0)));
    out.extend(t.policies.iter().map(|c| (class::POLICY, c.oid, 0)));
    out.extend(t.rules.iter().map(|c| (class::REWRITE, c.oid, 0)));
    out
}

/// The objects that a statement has dropped: those that it names first, each before those that belong to it.
fn dropped(before: &Snapshot, utility: &Utility, cx: &mut ExecContext<'_>) -> Vec<Dropped> {
    let after = cx.catalog_tx.view();
    let there: HashSet<(u32, u32)> = objects(&after).into_iter().collect();
    let named = named_objects(utility, before, cx);
    let mut gone: Vec<Gone> = Vec::new();
    // Sequences and indexes that were told with their table.
    let mut told: HashSet<u32> = HashSet::new();
    for (class, object) in in_order(before, &named) {
        let is_gone = !there.contains(&(class, object));
        if class == class::RELATION && told.contains(&object) {
            continue;
        }
        if is_gone {
            gone.push(Gone { address: (class, object, 0), normal: true, alone: false });
        }
        if class == class::RELATION && before.table(object).is_some() {
            let lost = lost_columns(before, &after, object);
            let whole = lost.is_empty() && !is_gone;
            let column = |address| Gone { address, normal: false, alone: false };
            gone.extend(lost.into_iter().map(column));
            let owned = |s: &&Arc<catalog::Sequence>| s.owned_by.is_some_and(|o| o.0 == object);
            for sequence in before.sequences().filter(owned) {
                if !there.contains(&(class::RELATION, sequence.oid)) && told.insert(sequence.oid) {
                    let by_schema = named.contains(&sequence.schema);
                    let normal = is_gone && by_schema && !sequence.identity;
                    let address = (class::RELATION, sequence.oid, 0);
                    gone.push(Gone { address, normal, alone: false });
                }
            }
            let left: Vec<_> = if is_gone { Vec::new() } else { parts(&after, object) };
            for (class, part, _) in parts(before, object).into_iter().filter(|p| !left.contains(p))
            {
                let normal = !whole && uses_others(before, object, class, part, is_gone);
                gone.push(Gone { address: (class, part, 0), normal, alone: whole });
                let constraints = before.table(object).into_iter().flat_map(|t| &t.constraints);
                let index = constraints.filter(|c| c.oid == part).find_map(|c| c.index());
                if let Some(index) = index
                    && !there.contains(&(class::RELATION, index))
                    && told.insert(index)
                {
                    let address = (class::RELATION, index, 0);
                    gone.push(Gone { address, normal: false, alone: false });
                }
            }
        }
        if class == class::TYPE && is_gone {
            let array =
                |array| Gone { address: (class::TYPE, array, 0), normal: false, alone: false };
            gone.extend(before.user_type(object).map(|t| array(t.array)));
        }
    }
    let mut out = Vec::with_capacity(gone.len());
    for Gone { address: (class, object, column), normal, alone } in gone {
        let Some(found) = names(before, cx).identify(Address { class, object, column }) else {
            continue;
        };
        let original = named.contains(&object) || alone;
        let normal = normal && !original && before.index(object).is_none();
        out.push(described(found, (class, object, column), original, normal));
    }
    out
}

/// Whether what belongs to a table goes because of what it uses, and not with the table (`is_gone`) or column that
/// it belongs to.
fn uses_others(view: &Snapshot, table: u32, class: u32, part: u32, is_gone: bool) -> bool {
    let Some(t) = view.table(table) else { return false };
    match class {
        class::POLICY | class::REWRITE => true,
        class::DEFAULT => t.live_columns().any(|(n, column)| {
            catalog::system::default_id(table, n) == part && !column.default_uses.is_empty()
        }),
        class::CONSTRAINT => t
            .constraints
            .iter()
            .any(|c| c.oid == part && matches!(c.kind, catalog::ConstraintKind::Check(_))),
        _ => !is_gone,
    }
}

/// An object that a statement has dropped, before it is named.
struct Gone {
    /// Class, oid, column.
    address: (u32, u32, i32),
    /// It goes because of something that it uses.
    normal: bool,
    /// It belongs to a table that stays, with all columns.
    alone: bool,
}

/// All objects: those that a statement names before the others, a table's sequences and indexes after it.
fn in_order(view: &Snapshot, named: &[u32]) -> Vec<(u32, u32)> {
    let mut all = objects(view);
    let rank = |id: u32| named.iter().rev().position(|n| *n == id).unwrap_or(usize::MAX);
    all.sort_by_key(|(class, id)| {
        let schema = match class {
            &class::SCHEMA => Some(*id),
            &class::RELATION => view.relation_by_oid(*id).map(|r| match r {
                catalog::snapshot::Relation::Table(t) => t.schema,
                catalog::snapshot::Relation::Index(i) => i.schema,
                catalog::snapshot::Relation::Sequence(s) => s.schema,
            }),
            &class::FUNCTION => view.function(*id).map(|f| f.schema),
            &class::TYPE => view.user_type(*id).map(|t| t.schema),
            _ => None,
        };
        let owner = match view.sequence(*id).and_then(|s| s.owned_by) {
            Some((table, _)) => table,
            None => view.index(*id).map_or(*id, |i| i.table),
        };
        let first = rank(*id).min(schema.map_or(usize::MAX, rank));
        (first, rank(*id) == usize::MAX, *class != class::RELATION, owner, *id)
    });
    all
}

fn described(
    found: Identity,
    (class, object, column): (u32, u32, i32),
    original: bool,
    normal: bool,
) -> Dropped {
    // An object that belongs to a table is in its schema; it and columns have no name of their own there.
    let part = !matches!(class, class::RELATION | class::TYPE | class::FUNCTION);
    let inner = part && found.names.len() > 2;
    let schema = match inner {
        true if class == class::REWRITE => None,
        true => found.names.first().cloned(),
        false => found.schema,
    };
    let temporary = schema.as_deref().is_some_and(|s| s.starts_with("pg_temp"));
    let name = found.name.filter(|_| column == 0 && !inner).map(|name| unquoted(&name));
    let names = found.names.iter().map(|n| without_number(n)).collect();
    Dropped {
        class,
        object,
        column,
        original,
        normal,
        temporary,
        kind: found.kind,
        schema: schema.map(|s| without_number(&s)),
        name,
        identity: without_number(&found.identity),
        names,
        args: found.args,
    }
}

fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(inside) => inside.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// A session's own schema is just `pg_temp` to it.
fn without_number(text: &str) -> String {
    let Some(at) = text.find("pg_temp_") else { return text.to_owned() };
    let rest = text[at + "pg_temp_".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{}pg_temp{rest}", &text[..at])
}

/// Columns that a table has no longer.
fn lost_columns(before: &Snapshot, after: &Snapshot, table: u32) -> Vec<(u32, u32, i32)> {
    let (Some(old), Some(new)) = (before.table(table), after.table(table)) else {
        return Vec::new();
    };
    let lost = |n: &u16| new.columns.get(usize::from(*n) - 1).is_none_or(|c| c.dropped);
    let all = old.live_columns().map(|(n, _)| n).filter(lost);
    all.map(|n| (class::RELATION, table, i32::from(n))).collect()
}

/// The objects that a statement names, as far as they are there.
fn named_objects(utility: &Utility, view: &Snapshot, cx: &ExecContext<'_>) -> Vec<u32> {
    let relation = |name: &Name| {
        let found = view.relation(cx.search_path, name.schema.as_deref(), &name.name);
        found.map(|r| r.oid())
    };
    match utility {
        Utility::Foreign(statement) => foreign_objects(statement, view),
        Utility::Drop { kind, names, .. } if *kind == "SCHEMA" => {
            names.iter().filter_map(|n| view.schema_named(&n.name)).map(|s| s.oid).collect()
        }
        Utility::Drop { kind, names, .. } if matches!(*kind, "TYPE" | "DOMAIN") => {
            let all = names.iter();
            let fits = |n: &Name, t: &catalog::UserType| {
                t.name == n.name
                    && n.schema
                        .as_ref()
                        .is_none_or(|s| view.schema(t.schema).is_some_and(|own| own.name == *s))
            };
            all.filter_map(|n| view.user_types().find(|t| fits(n, t))).map(|t| t.oid).collect()
        }
        Utility::DropRoutine { routines, .. } => {
            let fits = |r: &sql::utility::RoutineRef, f: &catalog::Function| {
                f.name == r.name.name && r.args.as_ref().is_none_or(|args| *args == f.input_types())
            };
            let all = view.functions();
            all.filter(|f| routines.iter().any(|r| fits(r, f))).map(|f| f.oid).collect()
        }
        Utility::DropTrigger(def) => {
            let table = relation(&def.table).and_then(|id| view.table(id));
            let found = table.and_then(|t| t.trigger(&def.name));
            found.map(|t| t.oid).into_iter().collect()
        }
        Utility::DropPolicy(def) => {
            let table = relation(&def.table).and_then(|id| view.table(id));
            let found = table.and_then(|t| t.policy(&def.name));
            found.map(|p| p.oid).into_iter().collect()
        }
        Utility::DropRule(def) => {
            let table = relation(&def.table).and_then(|id| view.table(id));
            let found = table.and_then(|t| t.rule(&def.name));
            found.map(|r| r.oid).into_iter().collect()
        }
        Utility::Drop { names, .. } => names.iter().filter_map(relation).collect(),
        Utility::AlterTable { table, .. } | Utility::Rename { table, .. } => {
            relation(table).into_iter().collect()
        }
        Utility::SetSchema { object, .. } => relation(object).into_iter().collect(),
        Utility::CreateRule(def) => relation(&def.table).into_iter().collect(),
        Utility::CreatePolicy(def) => relation(&def.table).into_iter().collect(),
        Utility::RefreshView { name, .. } => relation(name).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The wrappers, servers and user mappings that a statement names.
fn foreign_objects(statement: &sql::foreign::ForeignStatement, view: &Snapshot) -> Vec<u32> {
    use sql::foreign::ForeignStatement as F;
    let server = |name: &String| view.foreign_server_named(name).map(|s| s.oid);
    let wrapper = |name: &String| view.wrapper_named(name).map(|w| w.oid);
    match statement {
        F::AlterWrapper { name, .. } | F::Rename { server: false, name, .. } => {
            wrapper(name).into_iter().collect()
        }
        F::AlterServer { name, .. } | F::Rename { name, .. } => server(name).into_iter().collect(),
        F::Drop { server: false, names, .. } => names.iter().filter_map(wrapper).collect(),
        F::Drop { names, .. } => names.iter().filter_map(server).collect(),
        F::DropMapping { server: name, .. } | F::AlterMapping { server: name, .. } => {
            let on = |m: &&catalog::UserMapping| Some(m.server) == server(name);
            view.user_mappings().filter(on).map(|m| m.oid).collect()
        }
        _ => Vec::new(),
    }
}

/// The tag under which an object is reported that is not the statement's own.
fn tag_of(view: &Snapshot, class: u32, object: u32) -> &'static str {
    match class {
        class::SCHEMA => "CREATE SCHEMA",
        class::FUNCTION => "CREATE FUNCTION",
        class::TYPE => "CREATE TYPE",
        class::OPERATOR_FAMILY => "CREATE OPERATOR FAMILY",
        class::WRAPPER => "CREATE FOREIGN DATA WRAPPER",
        class::SERVER => "CREATE SERVER",
        class::ACCESS_METHOD => "CREATE ACCESS METHOD",
        class::MAPPING => "CREATE USER MAPPING",
        class::RELATION if view.sequence(object).is_some() => "CREATE SEQUENCE",
        class::RELATION if view.index(object).is_some() => "CREATE INDEX",
        class::RELATION => match view.table(object).map(|t| t.kind) {
            Some(catalog::TableKind::View) => "CREATE VIEW",
            Some(catalog::TableKind::Materialized) => "CREATE MATERIALIZED VIEW",
            Some(catalog::TableKind::Foreign) => "CREATE FOREIGN TABLE",
            _ => "CREATE TABLE",
        },
        _ => "CREATE",
    }
}

/// Whether OR REPLACE may stand in a statement with this tag.
fn replaces(tag: &str) -> bool {
    !matches!(
        tag,
        "CREATE TABLE" | "CREATE INDEX" | "CREATE SEQUENCE" | "CREATE SCHEMA" | "CREATE TYPE"
    )
}

/// Reports what a statement has made of tables, each between its sequences and the indexes of its constraints.
/// The other objects, parts of partitioned indexes apart.
fn in_order_of_creation(
    after: &Snapshot,
    known: &HashSet<(u32, u32)>,
    add: &mut dyn FnMut(u32, u32, &str),
) -> Vec<(u32, u32)> {
    let all = objects(after);
    let is_new = |object: u32| !known.contains(&(class::RELATION, object));
    let tables: Vec<&Arc<catalog::Table>> =
        after.tables().filter(|t| is_new(t.oid) && t.kind == catalog::TableKind::Table).collect();
    let plain = |t: &catalog::Table| t.query.is_none();
    if !tables.iter().any(|t| plain(t)) {
        return all;
    }
    for (class, object) in all.iter().filter(|(class, _)| *class == class::SCHEMA) {
        if !known.contains(&(*class, *object)) {
            add(*class, *object, "CREATE SCHEMA");
        }
    }
    let mut told: HashSet<u32> = HashSet::new();
    for table in tables.into_iter().filter(|t| plain(t)) {
        let owned = |s: &&Arc<catalog::Sequence>| {
            is_new(s.oid) && s.owned_by.is_some_and(|(id, _)| id == table.oid)
        };
        let sequences: Vec<u32> = after.sequences().filter(owned).map(|s| s.oid).collect();
        sequences.iter().for_each(|id| add(class::RELATION, *id, "CREATE SEQUENCE"));
        add(class::RELATION, table.oid, "CREATE TABLE");
        for index in table.constraints.iter().filter_map(|c| c.index()) {
            if after.index(index).is_some_and(|i| i.parent == 0) {
                add(class::RELATION, index, "CREATE INDEX");
            }
            told.insert(index);
        }
        sequences.iter().for_each(|id| add(class::RELATION, *id, "ALTER SEQUENCE"));
        if table.foreign_keys().next().is_some() && table.bound.is_none() {
            add(class::RELATION, table.oid, "ALTER TABLE");
        }
        told.extend(sequences);
        told.insert(table.oid);
    }
    let part = |id: u32| after.index(id).is_some_and(|i| i.parent != 0);
    let left = |(class, id): &(u32, u32)| {
        *class != class::SCHEMA && (*class != class::RELATION || !told.contains(id) && !part(*id))
    };
    all.into_iter().filter(left).collect()
}

fn commands(
    before: &Snapshot,
    utility: &Utility,
    tag: &str,
    cx: &mut ExecContext<'_>,
) -> Vec<Command> {
    let after = cx.catalog_tx.view();
    let mut out: Vec<Command> = Vec::new();
    if let "GRANT" | "REVOKE" = tag {
        let kind = granted_kind(utility);
        return vec![Command { tag: tag.to_owned(), kind, ..Command::default() }];
    }
    let mut add = |class: u32, object: u32, tag: &str| {
        let address = Address { class, object, column: 0 };
        let Some(found) = names(&after, cx).identify(address) else { return };
        out.push(Command {
            class,
            object,
            tag: tag.to_owned(),
            kind: found.kind,
            schema: found.schema.map(|s| without_number(&s)),
            identity: Some(without_number(&found.identity)),
        });
    };
    let known: HashSet<(u32, u32)> = objects(before).into_iter().collect();
    let creates = tag.starts_with("CREATE") || tag == "SELECT INTO";
    if creates {
        for (class, object) in in_order_of_creation(&after, &known, &mut add) {
            let new = !known.contains(&(class, object));
            let own = tag_of(&after, class, object);
            let own = if own == "CREATE" || tag == "CREATE TABLE AS" && own == "CREATE TABLE" {
                tag
            } else {
                own
            };
            if new {
                add(class, object, own);
            } else if !after.same_object(before, object) && own == tag && replaces(tag) {
                // OR REPLACE.
                add(class, object, own);
            }
            if let Some(table) = after.table(object).filter(|_| class == class::RELATION) {
                let parts_before = parts(before, object);
                for part in parts(&after, table.oid) {
                    let reported =
                        matches!(part.0, class::TRIGGER | class::POLICY | class::REWRITE);
                    if reported && !new && !parts_before.contains(&part) {
                        add(part.0, part.1, tag);
                    }
                }
            }
        }
        return out;
    }
    let named = named_objects(utility, before, cx);
    if let Utility::AlterTable { steps, later, .. } = utility {
        let table = named.first().and_then(|id| after.table(*id));
        let now = steps.iter().filter_map(|step| match step {
            sql::utility::AlterTable::SetType { column, .. } => Some(column.as_str()),
            _ => None,
        });
        for column in now.chain(later.iter().flat_map(|later| later.typed_columns())) {
            let column = table.and_then(|t| t.column(column));
            // The sequence of an identity column follows its type.
            if let Some(identity) = column.and_then(|(_, c)| c.identity) {
                add(class::RELATION, identity.sequence, "ALTER SEQUENCE");
            }
        }
    }
    for object in &named {
        if after.relation_by_oid(*object).is_some() {
            add(class::RELATION, *object, tag);
        }
    }
    if named.is_empty() && tag.starts_with("ALTER") {
        for (class, object) in objects(&after) {
            if known.contains(&(class, object)) && !after.same_object(before, object) {
                add(class, object, tag);
            }
        }
    }
    out
}

/// The kind of object of GRANT and REVOKE.
fn granted_kind(utility: &Utility) -> String {
    use catalog::AclKind as K;
    use sql::role::{GrantObjects, RoleStatement};
    let Utility::Role(RoleStatement::Grant(grant)) = utility else { return "TABLE".to_owned() };
    let word = match &grant.target {
        GrantObjects::Sequences(_) | GrantObjects::AllIn(K::Sequence, _) => "SEQUENCE",
        GrantObjects::Functions(_) | GrantObjects::AllIn(K::Function, _) => "FUNCTION",
        GrantObjects::Databases(_) => "DATABASE",
        GrantObjects::Schemas(_) => "SCHEMA",
        GrantObjects::Types(_) => "TYPE",
        GrantObjects::Languages(_) => "LANGUAGE",
        GrantObjects::Tablespaces(_) => "TABLESPACE",
        _ => "TABLE",
    };
    word.to_owned()
}
