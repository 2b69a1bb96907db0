//! CREATE, ALTER and DROP EXTENSION, LOAD.
//!
//! ```text
//!   CREATE EXTENSION ─► control file ─► who may, threads, schema, what it requires
//!        ─► the extension's object ─► its scripts, statement by statement ─► what they made are its members
//! ```
//!
//! * While a script runs, `running` of the session's deferred work has the extension's mark on top: definitions
//!   may drop members then, and `pg_extension_config_dump` knows whom it is called for.
//! * Members are found by what the catalog has after the scripts and had not before.
//!
//! Source: PostgreSQL's manual, "Packaging Related Objects into an Extension".

use std::collections::HashSet;
use std::sync::Arc;

use base::{Error, Result, err};
use catalog::acl::privilege;
use catalog::extension::{Control, Threads};
use catalog::object::{Comment, ids};
use catalog::system::reg::Names;
use catalog::{AclKind, Defined, Extension, Object, Schema, Snapshot, UserTypeKind};
use exec::context::{ExecContext, RowSink};
use exec::session::quote_identifier;
use exec::{nested, rights};
use sql::Prepared;
use sql::extension_statement::{CreateExtension, ExtensionStatement, MemberObject};
use sql::utility::Name;
use types::Batch;

use super::depend::drop_items;
use super::{name, notice};
use crate::extension_files::{available, no_library, not_available};
use crate::item::Item;

pub use exec::native::SCRIPT_MARK as MARK;

/// Runs the statement.
///
/// # Errors
/// Whatever it raises.
pub fn run(statement: &ExtensionStatement, cx: &mut ExecContext<'_>) -> Result<()> {
    match statement {
        ExtensionStatement::Create(def) => create(def, &mut Vec::new(), cx),
        ExtensionStatement::Update { name, to } => update(name, to.as_deref(), cx),
        ExtensionStatement::Member { name, add, object } => member(name, *add, object, cx),
        ExtensionStatement::SetSchema { name, to } => set_schema(name, to, cx),
        ExtensionStatement::Drop { names, if_exists, cascade } => {
            drop(names, *if_exists, *cascade, cx)
        }
        ExtensionStatement::Load(file) => load(file),
    }
}

/// LOAD: there is nothing to load.
fn load(file: &str) -> Result<()> {
    let name = types::extension::library_name(file);
    let name = name.rsplit('/').next().unwrap_or(name);
    if types::extension::has_library(name) || matches!(name, "plpgsql" | "auto_explain") {
        return Ok(());
    }
    Err(no_library(file))
}

fn control(name: &str) -> Result<Control> {
    if name.is_empty() || name.contains("--") || name.starts_with('-') || name.ends_with('-') {
        let message = format!("invalid extension name: \"{name}\"");
        return Err(err!(INVALID_PARAMETER_VALUE, "{message}")
            .detail("Extension names must not contain \"--\", or begin or end with \"-\"."));
    }
    let found = available()?.into_iter().find(|c| c.name == name);
    found.ok_or_else(|| not_available(name))
}

/// `0A000` unless the extension's code is safe for threads.
fn check_threads(control: &Control) -> Result<()> {
    if control.threads != Threads::Undeclared {
        return Ok(());
    }
    let Some(module) = &control.module else { return Ok(()) };
    let reason = control.reason.clone().unwrap_or_else(|| {
        format!(
            "Its control file names the library \"{module}\" and does not say what that does with threads (threads = safe or session)."
        )
    });
    let name = &control.name;
    Err(err!(FEATURE_NOT_SUPPORTED, "extension \"{name}\" is not safe for threads").detail(reason))
}

/// The role in whose name the scripts run.
fn script_role(
    control: &Control,
    what: &str,
    cx: &mut ExecContext<'_>,
) -> Result<(u32, Option<String>)> {
    if rights::is_superuser(cx) {
        return Ok((cx.role, None));
    }
    let view = cx.catalog_tx.view();
    let (_, database) = cx.database;
    let may = rights::of(cx, &view).may(cx.role, AclKind::Database, database, privilege::CREATE);
    let name = &control.name;
    let denied =
        || err!(INSUFFICIENT_PRIVILEGE, "permission denied to {what} extension \"{name}\"");
    match (control.superuser, control.trusted, may) {
        (false, _, _) => Ok((cx.role, None)),
        (true, true, true) => {
            let name = view.role(ids::SUPERUSER).map(|r| r.name.clone());
            Ok((ids::SUPERUSER, Some(name.unwrap_or_default())))
        }
        (true, true, false) => Err(denied().hint(format!(
            "Must have CREATE privilege on current database to {what} this extension."
        ))),
        _ => Err(denied().hint(format!("Must be superuser to {what} this extension."))),
    }
}

fn check_version(version: &str) -> Result<()> {
    let message = match version {
        "" => "Version names must not be empty.",
        v if v.contains("--") => "Version names must not contain \"--\".",
        v if v.starts_with('-') || v.ends_with('-') => {
            "Version names must not begin or end with \"-\"."
        }
        v if v.contains(['/', '\\']) => {
            "Version names must not contain directory separator characters."
        }
        _ => return Ok(()),
    };
    Err(err!(INVALID_PARAMETER_VALUE, "invalid extension version name: \"{version}\"")
        .detail(message))
}

/// CREATE EXTENSION. `around`: those because of which this one is created.
fn create(def: &CreateExtension, around: &mut Vec<String>, cx: &mut ExecContext<'_>) -> Result<()> {
    sched::check_stack()?;
    let extension = &def.name;
    name::reserve(cx, 0, &format!("extension {extension}"))?;
    let view = cx.catalog_tx.view();
    if catalog::system::named::extension(&view, extension).is_some() {
        let message = format!("extension \"{extension}\" already exists");
        if !def.if_not_exists {
            base::bail!(DUPLICATE_OBJECT, "{message}");
        }
        notice(cx, base::sqlstate::DUPLICATE_OBJECT, format!("{message}, skipping"));
        return Ok(());
    }
    if cx.hooks.deferred().running.iter().any(|tag| tag.starts_with(MARK)) && around.is_empty() {
        base::bail!(FEATURE_NOT_SUPPORTED, "nested CREATE EXTENSION is not supported");
    }
    let control = control(extension)?;
    check_threads(&control)?;
    let Some(version) = def.version.clone().or_else(|| control.default_version.clone()) else {
        base::bail!(INVALID_PARAMETER_VALUE, "version to install must be specified");
    };
    check_version(&version)?;
    let control = control.of_version(&version)?;
    let Some(way) = control.way(None, &version) else {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "extension \"{extension}\" has no installation script nor update path for version \"{version}\""
        );
    };
    let schema = schema_for(def, &control, cx)?;
    let mut requires = Vec::with_capacity(control.requires.len());
    for needed in &control.requires {
        requires.push(require(needed, def, around, cx)?);
    }
    let role = script_role(&control, "create", cx)?;
    let oid = cx.engine.txn.next_oid()?;
    let made = Extension {
        oid,
        name: extension.clone(),
        schema,
        owner: cx.role,
        relocatable: control.relocatable,
        version,
        members: Vec::new(),
        requires,
        config: Vec::new(),
    };
    put(cx, made)?;
    let mut from: Option<&str> = None;
    for to in &way {
        run_script(oid, &control, (from, to), &role, cx)?;
        from = Some(to);
    }
    if let Some(comment) = &control.comment {
        let comment = Comment {
            oid: cx.engine.txn.next_oid()?,
            object: oid,
            column: 0,
            text: comment.clone(),
            shared: false,
            class: catalog::system::class::EXTENSION,
        };
        cx.catalog_tx.put(cx.tx, Object::Comment(comment))?;
    }
    Ok(())
}

fn put(cx: &mut ExecContext<'_>, extension: Extension) -> Result<()> {
    cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(Defined::Extension(extension))))
}

/// The schema of the extension's objects.
fn schema_for(def: &CreateExtension, control: &Control, cx: &mut ExecContext<'_>) -> Result<u32> {
    let view = cx.catalog_tx.view();
    let missing = |name: &str| err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist");
    if let Some(name) = &def.schema {
        let found = view.schema_named(name).map(|s| s.oid);
        match &control.schema {
            Some(fixed) if fixed != name && !def.cascade => base::bail!(
                FEATURE_NOT_SUPPORTED,
                "extension \"{}\" must be installed in schema \"{fixed}\"",
                control.name
            ),
            Some(fixed) if fixed != name => {}
            _ => {
                let found = found.ok_or_else(|| missing(name))?;
                // Objects there go with the session, and with them what the catalog says of the extension.
                if base::Oid(found).is_temporary() {
                    base::bail!(RESERVED_NAME, "unacceptable extension schema name \"{name}\"");
                }
                return Ok(found);
            }
        }
    }
    if let Some(fixed) = &control.schema {
        if let Some(found) = view.schema_named(fixed) {
            return Ok(found.oid);
        }
        let oid = cx.engine.txn.next_oid()?;
        let made = Schema { oid, name: fixed.clone(), owner: cx.role };
        cx.catalog_tx.put(cx.tx, Object::Schema(made))?;
        rights::begin(cx, AclKind::Schema, oid, cx.role, 0)?;
        return Ok(oid);
    }
    let usual = |s: &&u32| **s != ids::PG_CATALOG && !base::Oid(**s).is_temporary();
    let found = cx.search_path.iter().find(usual).copied();
    found.ok_or_else(|| err!(UNDEFINED_SCHEMA, "no schema has been selected to create in"))
}

/// An extension that another one needs; with CASCADE it is created.
fn require(
    needed: &str,
    def: &CreateExtension,
    around: &mut Vec<String>,
    cx: &mut ExecContext<'_>,
) -> Result<u32> {
    let found =
        |cx: &mut ExecContext<'_>| catalog::system::named::extension(&cx.catalog_tx.view(), needed);
    if let Some(id) = found(cx) {
        return Ok(id);
    }
    if !def.cascade {
        return Err(err!(UNDEFINED_OBJECT, "required extension \"{needed}\" is not installed")
            .hint("Use CREATE EXTENSION ... CASCADE to install required extensions too."));
    }
    if around.iter().any(|n| n == needed) || needed == def.name {
        base::bail!(
            INVALID_RECURSION,
            "cyclic dependency detected between extensions \"{needed}\" and \"{}\"",
            def.name
        );
    }
    let message = format!("installing required extension \"{needed}\"");
    notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    around.push(def.name.clone());
    let inner = CreateExtension {
        name: needed.to_owned(),
        schema: def.schema.clone(),
        cascade: true,
        ..CreateExtension::default()
    };
    create(&inner, around, cx)?;
    around.pop();
    found(cx).ok_or_else(|| Error::internal("the required extension is not there"))
}

/// The objects that can be members of an extension.
fn objects(view: &Snapshot) -> Vec<u32> {
    let mut out: Vec<u32> = view.schemas().map(|o| o.oid).collect();
    out.extend(view.sequences().map(|o| o.oid));
    out.extend(view.tables().map(|o| o.oid));
    let alone = |t: &&Arc<catalog::UserType>| !matches!(t.kind, UserTypeKind::Multirange { .. });
    out.extend(view.user_types().filter(alone).map(|o| o.oid));
    out.extend(view.functions().filter(|f| !f.is_constructor()).map(|o| o.oid));
    out.extend(view.user_collations().map(|o| o.oid));
    let own = |d: &&Arc<Defined>| !matches!(***d, Defined::Extension(_));
    out.extend(view.defined().filter(own).map(|o| o.oid()));
    out.extend(view.event_triggers().map(|o| o.oid));
    out
}

/// Rows that scripts give go nowhere.
struct Nowhere;

impl RowSink for Nowhere {
    fn batch(&mut self, _batch: &Batch) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &[types::Datum]) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Refuses a name that could end its place in a script and go on as SQL, also where the script puts the name within
/// quotation marks or a comment. `what`: whose name it is.
fn check_substitute(what: &str, name: &str) -> Result<()> {
    if name.contains(['"', '$', '\'', '\\']) {
        base::bail!(
            INVALID_TEXT_REPRESENTATION,
            "invalid character in {what}: must not contain any of \"\"$'\\\""
        );
    }
    let refused = if ["\n", "\r", "--", "/*", "*/"].iter().any(|part| name.contains(part)) {
        "newline, carriage return, \"--\", \"/*\", or \"*/\""
    } else if ["@extowner@", "@extschema", "MODULE_PATHNAME"].iter().any(|part| name.contains(part))
    {
        "\"@extowner@\", \"@extschema\", or \"MODULE_PATHNAME\""
    } else {
        return Ok(());
    };
    Err(err!(INVALID_TEXT_REPRESENTATION, "invalid string in {what}: must not contain {refused}"))
}

/// A script's text with what stands for the schema, the owner and the library put in; without psql's commands.
///
/// # Errors
/// `22P02` for a name that must not stand in a script.
fn text_of(
    control: &Control,
    script: &str,
    schema: &str,
    owner: &str,
    view: &Snapshot,
) -> Result<String> {
    let lines: Vec<&str> = script.lines().filter(|l| !l.starts_with("\\echo")).collect();
    let mut text = lines.join("\n");
    let mut put = |place: &str, what: &str, name: &str| {
        if text.contains(place) {
            check_substitute(what, name)?;
            text = text.replace(place, &quote_identifier(name));
        }
        Ok(())
    };
    put("@extowner@", "extension owner", owner)?;
    if !control.relocatable {
        put("@extschema@", &format!("extension \"{}\" schema", control.name), schema)?;
    }
    for needed in &control.requires {
        let place = view.extension_named(needed).and_then(|e| view.schema(e.schema));
        let name = place.map_or("", |s| s.name.as_str());
        let what = format!("extension \"{needed}\" schema");
        put(&format!("@extschema:{needed}@"), &what, name)?;
    }
    Ok(match &control.module {
        Some(module) => text.replace("MODULE_PATHNAME", module),
        None => text,
    })
}

/// Runs one script, and notes what it made as members.
fn run_script(
    oid: u32,
    control: &Control,
    (from, to): (Option<&str>, &str),
    role: &(u32, Option<String>),
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let view = cx.catalog_tx.view();
    let Some(extension) = own(&view, oid) else {
        return Err(Error::internal("the extension is not there"));
    };
    let script = control.script(from, to).unwrap_or_default().to_owned();
    let schema = view.schema(extension.schema).map_or_else(String::new, |s| s.name.clone());
    let owner = view.role(extension.owner).map_or_else(String::new, |r| r.name.clone());
    let text = text_of(control, &script, &schema, &owner, &view)?;
    let before: HashSet<u32> = objects(&view).into_iter().collect();
    let mut path = vec![extension.schema];
    for needed in &extension.requires {
        path.extend(own(&view, *needed).map(|e| e.schema));
    }
    path.retain(|s| *s != ids::PG_CATALOG);
    path.dedup();
    // A name that a superuser's script calls must be the server's, whatever users have put into the schema.
    path.insert(0, ids::PG_CATALOG);
    let names: Vec<String> = path
        .iter()
        .skip(1)
        .filter_map(|s| view.schema(*s))
        .map(|s| quote_identifier(&s.name))
        .collect();
    let settings = [
        ("client_min_messages".to_owned(), "warning".to_owned()),
        ("check_function_bodies".to_owned(), "off".to_owned()),
        ("search_path".to_owned(), names.join(", ")),
    ];
    let (values, mark) = cx.hooks.enter(&settings, (cx.settings, cx.format))?;
    cx.hooks.deferred().running.push(format!("{MARK}{}", control.name));
    let user = role.1.as_deref().unwrap_or(cx.user);
    let result = statements(&text, &path, (role.0, user), &values, cx);
    cx.hooks.deferred().running.pop();
    cx.hooks.leave(&settings, mark);
    let file = match from {
        Some(from) => format!("{}--{from}--{to}.sql", control.name),
        None => format!("{}--{to}.sql", control.name),
    };
    result
        .map_err(|e| e.without_position().context(format!("extension script file \"{file}\"")))?;
    let view = cx.catalog_tx.view();
    cx.hooks.see_types(&view, cx.search_path);
    let Some(extension) = own(&view, oid) else {
        return Err(Error::internal("the extension is not there"));
    };
    let mut extension = extension.clone();
    let now = objects(&view);
    let there: HashSet<u32> = now.iter().copied().collect();
    extension.members.retain(|id| there.contains(id));
    let mut fresh: Vec<u32> = now
        .into_iter()
        .filter(|id| !before.contains(id) && !extension.members.contains(id))
        .collect();
    fresh.sort_unstable();
    extension.members.extend(fresh);
    extension.version = to.to_owned();
    put(cx, extension)
}

fn own(view: &Snapshot, oid: u32) -> Option<&Extension> {
    match &**view.defined_by_oid(oid)? {
        Defined::Extension(e) => Some(e),
        _ => None,
    }
}

fn statements(
    text: &str,
    path: &[u32],
    (role, user): (u32, &str),
    values: &exec::context::Values,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let pieces = sql::split_statements(text)?;
    for piece in pieces {
        sched::check_interrupts()?;
        let statement = &text[piece];
        let environment = sql::environment(&values.settings, path, user, cx.database.1);
        let settings_version = cx.hooks.settings_version();
        let mut inner = ExecContext {
            settings: &values.settings,
            settings_version,
            format: &values.format,
            search_path: path,
            user,
            role,
            environment,
            ..cx.inner()
        };
        let inner = &mut inner;
        let prepared: Arc<Prepared> = nested::preparing(inner, None, |_, context| {
            sql::prepare(statement, &[], context, None).map(|p| Arc::new(p.0))
        })?;
        nested::lock(&prepared, inner)?;
        let snapshot = nested::snapshot(true, inner);
        nested::run(&prepared, &[], snapshot, inner, &mut Nowhere)?;
    }
    Ok(())
}

/// The extension that a statement names, for its owner.
fn open(name: &str, cx: &mut ExecContext<'_>) -> Result<Extension> {
    let view = cx.catalog_tx.view();
    let missing = || err!(UNDEFINED_OBJECT, "extension \"{name}\" does not exist");
    if name == "plpgsql" {
        return Err(Error::unsupported("changing extension plpgsql"));
    }
    let oid = view.extension_named(name).ok_or_else(missing)?.oid;
    rights::require_owner(cx, AclKind::Defined, oid, "extension", name)?;
    name::reserve(cx, oid, "")?;
    let view = cx.catalog_tx.view();
    own(&view, oid).cloned().ok_or_else(missing)
}

/// ALTER EXTENSION … UPDATE.
fn update(name: &str, to: Option<&str>, cx: &mut ExecContext<'_>) -> Result<()> {
    let extension = open(name, cx)?;
    let control = control(name)?;
    check_threads(&control)?;
    let Some(version) = to.map(str::to_owned).or_else(|| control.default_version.clone()) else {
        base::bail!(INVALID_PARAMETER_VALUE, "version to install must be specified");
    };
    check_version(&version)?;
    if extension.version == version {
        let message = format!("version \"{version}\" of extension \"{name}\" is already installed");
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        return Ok(());
    }
    let control = control.of_version(&version)?;
    let role = script_role(&control, "update", cx)?;
    let Some(way) = control.way(Some(&extension.version), &version) else {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "extension \"{name}\" has no update path from version \"{}\" to version \"{version}\"",
            extension.version
        );
    };
    for pair in way.windows(2) {
        run_script(extension.oid, &control, (Some(&pair[0]), &pair[1]), &role, cx)?;
    }
    Ok(())
}

/// ALTER EXTENSION … ADD and DROP.
fn member(name: &str, add: bool, object: &MemberObject, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut extension = open(name, cx)?;
    let view = cx.catalog_tx.view();
    let names = Names { catalog: &view, path: cx.search_path, database: None };
    let address = names.address(&object.kind, &object.names, &object.args)?;
    let shown = names.identify(address).map_or_else(String::new, |i| i.description);
    let id = address.object;
    if add {
        if let Some(other) = view.extension_of(id) {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "{shown} is already a member of extension \"{}\"",
                other.name
            );
        }
        if id == extension.schema {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot add schema \"{}\" to extension \"{name}\" because the schema contains the extension",
                object.names.join(".")
            );
        }
        if !objects(&view).contains(&id) {
            return Err(Error::unsupported(format!("{shown} as a member of an extension")));
        }
        extension.members.push(id);
    } else {
        if !extension.members.contains(&id) {
            base::bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "{shown} is not a member of extension \"{name}\""
            );
        }
        extension.members.retain(|m| *m != id);
        extension.config.retain(|(table, _)| *table != id);
    }
    put(cx, extension)
}

/// ALTER EXTENSION … SET SCHEMA.
fn set_schema(name: &str, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut extension = open(name, cx)?;
    let view = cx.catalog_tx.view();
    let missing = || err!(UNDEFINED_SCHEMA, "schema \"{to}\" does not exist");
    let schema = view.schema_named(to).ok_or_else(missing)?.oid;
    rights::require_creation(cx, cx.role, schema)?;
    if !extension.relocatable {
        base::bail!(FEATURE_NOT_SUPPORTED, "extension \"{name}\" does not support SET SCHEMA");
    }
    if extension.schema == schema {
        return Ok(());
    }
    for id in extension.members.clone() {
        move_member(id, schema, to, cx)?;
    }
    extension.schema = schema;
    put(cx, extension)
}

fn move_member(id: u32, schema: u32, to: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    let taken = |what: &str, name: &str| {
        err!(DUPLICATE_OBJECT, "{what} \"{name}\" already exists in schema \"{to}\"")
    };
    if let Some(ty) = view.user_type(id) {
        if view.type_in(schema, &ty.name).is_some() {
            return Err(taken("type", &ty.name));
        }
        let mut ty = catalog::UserType::clone(ty);
        ty.schema = schema;
        return cx.catalog_tx.put(cx.tx, Object::Type(Box::new(ty)));
    }
    if let Some(function) = view.function(id) {
        let types = function.input_types();
        let mut same = view.functions_named(&function.name);
        if same.any(|f| f.schema == schema && f.input_types() == types) {
            return Err(taken("function", &function.name));
        }
        let mut function = catalog::Function::clone(function);
        function.schema = schema;
        return cx.catalog_tx.put(cx.tx, Object::Function(Box::new(function)));
    }
    if let Some(defined) = view.defined_by_oid(id) {
        let mut defined = Defined::clone(defined);
        match defined.place_mut() {
            Some((Some(place), _, _)) => *place = schema,
            _ => return Ok(()),
        }
        return cx.catalog_tx.put(cx.tx, Object::Defined(Box::new(defined)));
    }
    let (kind, place, name) = if let Some(table) = view.table(id) {
        let kind = match table.kind {
            catalog::TableKind::View => "VIEW",
            catalog::TableKind::Materialized => "MATERIALIZED VIEW",
            _ => "TABLE",
        };
        (kind, table.schema, table.name.clone())
    } else if let Some(sequence) = view.sequence(id) {
        if sequence.owned_by.is_some() {
            return Ok(());
        }
        ("SEQUENCE", sequence.schema, sequence.name.clone())
    } else {
        return Err(Error::unsupported("moving this member of an extension"));
    };
    let place = view.schema(place).map(|s| s.name.clone());
    let name = Name { schema: place, name, position: 0, only: false };
    super::set_schema::run(cx, kind, &name, to, false)
}

/// DROP EXTENSION.
fn drop(names: &[String], if_exists: bool, cascade: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let mut items = Vec::with_capacity(names.len());
    for name in names {
        let view = cx.catalog_tx.view();
        let Some(id) = catalog::system::named::extension(&view, name) else {
            let message = format!("extension \"{name}\" does not exist");
            if !if_exists {
                base::bail!(UNDEFINED_OBJECT, "{message}");
            }
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            continue;
        };
        if name == "plpgsql" {
            return Err(Error::unsupported("DROP of extension plpgsql"));
        }
        if cx.hooks.deferred().running.contains(&format!("{MARK}{name}")) {
            base::bail!(
                OBJECT_IN_USE,
                "cannot drop extension \"{name}\" because it is being modified"
            );
        }
        rights::require_owner(cx, AclKind::Defined, id, "extension", name)?;
        name::reserve(cx, id, "")?;
        let item = Item::Defined(id);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    drop_items(cx, &items, cascade)
}
