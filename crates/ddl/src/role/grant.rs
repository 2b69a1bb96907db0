//! GRANT and REVOKE of rights, ALTER DEFAULT PRIVILEGES.

use base::{Error, Result, err};
use catalog::acl::{self, Change, privilege};
use catalog::object::ids;
use catalog::snapshot::Relation;
use catalog::{AclItem, AclKind, DefaultAcl, Object, Sequence, Snapshot, Table};
use sql::role::{Grant, GrantObjects, RoleRef};
use sql::utility::Name;

use exec::context::ExecContext;
use exec::rights;

/// An object to grant on.
struct Item {
    kind: AclKind,
    object: u32,
    name: String,
    /// Its columns, when it is a table.
    table: Option<std::sync::Arc<Table>>,
}

/// See the module's documentation.
pub fn run(grant: &Grant, cx: &mut ExecContext<'_>) -> Result<()> {
    if let Some(grantor) = &grant.grantor
        && rights::role(cx, grantor)? != cx.role
    {
        base::bail!(FEATURE_NOT_SUPPORTED, "grantor must be current user");
    }
    if let GrantObjects::Later { kind, roles, schemas } = &grant.target {
        return defaults(grant, *kind, roles, schemas, cx);
    }
    let items = objects(&grant.target, cx)?;
    let grantees = grantees(grant, cx)?;
    check_words(grant)?;
    items.iter().try_for_each(|item| grant_on(grant, item, &grantees, cx))
}

/// Oids of those who get or lose rights; 0: everybody.
fn grantees(grant: &Grant, cx: &mut ExecContext<'_>) -> Result<Vec<u32>> {
    let one = |role: &RoleRef| match role {
        RoleRef::Public => Ok(0),
        role => rights::role(cx, role),
    };
    let all = grant.grantees.iter().map(one).collect::<Result<Vec<u32>>>()?;
    if grant.grant && grant.option && all.contains(&0) {
        base::bail!(INVALID_GRANT_OPERATION, "grant options can only be granted to roles");
    }
    Ok(all)
}

/// Words that are no rights at all, or no rights on such objects.
fn check_words(grant: &Grant) -> Result<()> {
    let (kind, what) = match &grant.target {
        GrantObjects::Relations(_) | GrantObjects::AllIn(AclKind::Table, _) => {
            (AclKind::Table, "relation")
        }
        GrantObjects::Sequences(_) => (AclKind::Sequence, "sequence"),
        GrantObjects::Functions(_) => (AclKind::Function, "function"),
        GrantObjects::Databases(_) => (AclKind::Database, "database"),
        GrantObjects::Schemas(_) => (AclKind::Schema, "schema"),
        GrantObjects::Types(_) => (AclKind::Type, "type"),
        GrantObjects::Languages(_) => (AclKind::Language, "language"),
        GrantObjects::Tablespaces(_) => (AclKind::Tablespace, "tablespace"),
        GrantObjects::Wrappers(_) => (AclKind::Wrapper, "foreign-data wrapper"),
        GrantObjects::Servers(_) => (AclKind::Server, "foreign server"),
        GrantObjects::AllIn(kind, _) | GrantObjects::Later { kind, .. } => (*kind, kind.word()),
    };
    // A relation that is called a table may be a sequence.
    let all = match what {
        "relation" => kind.all() | AclKind::Sequence.all(),
        _ => kind.all(),
    };
    for (word, columns) in &grant.privileges {
        let Some(bit) = privilege::named(word) else {
            base::bail!(SYNTAX_ERROR, "unrecognized privilege type \"{word}\"");
        };
        if !columns.is_empty() && what != "relation" {
            base::bail!(INVALID_GRANT_OPERATION, "column privileges are only valid for relations");
        }
        let (all, what) = if columns.is_empty() { (all, what) } else { (acl::COLUMN, "column") };
        if bit & !all != 0 {
            let word = word.to_uppercase();
            base::bail!(INVALID_GRANT_OPERATION, "invalid privilege type {word} for {what}");
        }
    }
    Ok(())
}

fn objects(target: &GrantObjects, cx: &mut ExecContext<'_>) -> Result<Vec<Item>> {
    let plain =
        |kind, object, name: &str| Item { kind, object, name: name.to_owned(), table: None };
    let view = cx.catalog_tx.view();
    let mut out = Vec::new();
    match target {
        GrantObjects::Relations(names) => {
            for name in names {
                out.push(relation(name, cx)?);
            }
        }
        GrantObjects::Sequences(names) => {
            for name in names {
                let item = relation(name, cx)?;
                if item.kind != AclKind::Sequence {
                    base::bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", item.name);
                }
                out.push(item);
            }
        }
        GrantObjects::Functions(functions) => {
            for (name, args) in functions {
                let id = function(name, args.as_deref(), cx)?;
                out.push(plain(AclKind::Function, id, &name.name));
            }
        }
        GrantObjects::Databases(names) => {
            for name in names {
                let found = view.database_named(name).ok_or_else(|| {
                    err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist")
                })?;
                out.push(plain(AclKind::Database, found.oid, name));
            }
        }
        GrantObjects::Schemas(names) => {
            for name in names {
                out.push(plain(AclKind::Schema, schema(name, cx)?, name));
            }
        }
        GrantObjects::AllIn(kind, names) => {
            for name in names {
                let schema = schema(name, cx)?;
                all_in(&view, *kind, schema, &mut out);
            }
        }
        GrantObjects::Types(names) => {
            for name in names {
                let built_in = types::TypeIo::by_name(&name.name).map(|io| io.oid.0);
                let schema = name.schema.as_deref();
                let made = || view.type_oid(cx.search_path, schema, &name.name);
                let Some(ty) = built_in.filter(|_| schema.is_none()).or_else(made) else {
                    base::bail!(UNDEFINED_OBJECT, "type \"{}\" does not exist", name.name);
                };
                out.push(plain(AclKind::Type, ty, &name.name));
            }
        }
        GrantObjects::Wrappers(names) => {
            for name in names {
                let found = view.wrapper_named(name).ok_or_else(|| {
                    err!(UNDEFINED_OBJECT, "foreign-data wrapper \"{name}\" does not exist")
                })?;
                out.push(plain(AclKind::Wrapper, found.oid, name));
            }
        }
        GrantObjects::Servers(names) => {
            for name in names {
                let found = view
                    .foreign_server_named(name)
                    .ok_or_else(|| err!(UNDEFINED_OBJECT, "server \"{name}\" does not exist"))?;
                out.push(plain(AclKind::Server, found.oid, name));
            }
        }
        GrantObjects::Languages(names) => {
            for name in names {
                out.push(plain(AclKind::Language, language(name, &view)?, name));
            }
        }
        GrantObjects::Tablespaces(_) => return Err(Error::unsupported("GRANT on a tablespace")),
        GrantObjects::Later { .. } => {}
    }
    Ok(out)
}

/// ALL TABLES, SEQUENCES, FUNCTIONS IN SCHEMA.
fn all_in(view: &Snapshot, kind: AclKind, schema: u32, out: &mut Vec<Item>) {
    match kind {
        AclKind::Table => {
            let tables = view.tables().filter(|t| t.schema == schema);
            out.extend(tables.map(|t| of_table(t.clone())));
        }
        AclKind::Sequence => {
            let sequences = view.sequences().filter(|s| s.schema == schema);
            out.extend(sequences.map(|s| of_sequence(s)));
        }
        _ => {
            let functions = view.functions().filter(|f| f.schema == schema);
            let item = |f: &std::sync::Arc<catalog::Function>| {
                let (object, name) = (f.oid, f.name.clone());
                Item { kind: AclKind::Function, object, name, table: None }
            };
            out.extend(functions.map(item));
        }
    }
}

fn of_sequence(sequence: &Sequence) -> Item {
    let (object, name) = (sequence.oid, sequence.name.clone());
    Item { kind: AclKind::Sequence, object, name, table: None }
}

fn of_table(table: std::sync::Arc<Table>) -> Item {
    let (object, name) = (table.oid, table.name.clone());
    Item { kind: AclKind::Table, object, name, table: Some(table) }
}

fn relation(name: &Name, cx: &mut ExecContext<'_>) -> Result<Item> {
    let view = cx.catalog_tx.view();
    let schema = name.schema.as_deref();
    match view.relation(cx.search_path, schema, &name.name) {
        Some(Relation::Table(table)) => Ok(of_table(table)),
        Some(Relation::Sequence(sequence)) => Ok(of_sequence(&sequence)),
        Some(Relation::Index(_)) => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an index", name.name)),
        None => match catalog::system::find(schema, &name.name) {
            Some(table) => Ok(of_table(table)),
            None => Err(view.missing_relation(schema, &name.name)),
        },
    }
}

fn schema(name: &str, cx: &mut ExecContext<'_>) -> Result<u32> {
    match cx.catalog_tx.view().schema_named(name) {
        Some(schema) => Ok(schema.oid),
        None => Err(err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist")),
    }
}

/// A language that rights can be given on.
fn language(name: &str, view: &Snapshot) -> Result<u32> {
    use catalog::system::named;
    let there = name != "java" || view.extension_named(name).is_some();
    let Some(id) = named::language(name).filter(|_| there) else {
        base::bail!(UNDEFINED_OBJECT, "language \"{name}\" does not exist");
    };
    if !named::is_trusted_language(id) {
        return Err(err!(WRONG_OBJECT_TYPE, "language \"{name}\" is not trusted").detail(
            "GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use untrusted languages.",
        ));
    }
    Ok(id)
}

fn function(name: &Name, args: Option<&[base::Oid]>, cx: &mut ExecContext<'_>) -> Result<u32> {
    if cx.catalog_tx.view().has_functions_named(&name.name) {
        let args = args.map(<[base::Oid]>::to_vec);
        let routine = sql::utility::RoutineRef {
            kind: "ROUTINE",
            name: name.clone(),
            args,
            all_args: None,
            written: Vec::new(),
            missing: None,
        };
        return crate::function::find(&routine, cx).map(|f| f.oid);
    }
    // Those that don't run here have rights, too.
    let found = match name.schema.as_deref() {
        None | Some("pg_catalog") => known_functions(&name.name, args),
        Some(_) => Vec::new(),
    };
    match (&found[..], args) {
        ([function], _) | ([function, ..], Some(_)) => Ok(*function),
        ([_, ..], None) => {
            Err(err!(AMBIGUOUS_FUNCTION, "function name \"{}\" is not unique", name.name)
                .hint("Specify the argument list to select the function unambiguously."))
        }
        ([], Some(args)) => {
            let args: Vec<String> = args.iter().map(|a| types::io::format_type(*a, -1)).collect();
            let args = args.join(", ");
            Err(err!(UNDEFINED_FUNCTION, "function {}({args}) does not exist", name.name))
        }
        ([], None) => {
            Err(err!(UNDEFINED_FUNCTION, "could not find a function named \"{}\"", name.name))
        }
    }
}

/// The system's functions with a name, and with these arguments if they are given.
fn known_functions(name: &str, args: Option<&[base::Oid]>) -> Vec<u32> {
    let fits = |f: &&types::FunctionRow| args.is_none_or(|args| f.args == args);
    let mut found: Vec<u32> =
        types::func::functions_named(name).iter().filter(fits).map(|f| f.oid.0).collect();
    for (id, _) in catalog::system::named::routines(name, args) {
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// The rights of a statement on the object as a whole; None: the statement is about columns only.
fn whole(grant: &Grant, kind: AclKind) -> Option<u16> {
    if grant.privileges.is_empty() {
        return grant.all_columns.is_empty().then(|| kind.all());
    }
    let words = grant.privileges.iter().filter(|(_, columns)| columns.is_empty());
    let bits = words.filter_map(|(word, _)| privilege::named(word)).fold(0, |a, b| a | b);
    (bits != 0).then_some(bits)
}

/// The rights by column.
fn by_column(grant: &Grant, table: &Table) -> Result<Vec<(u16, u16)>> {
    let mut out: Vec<(u16, u16)> = Vec::new();
    let all = ("ALL".to_owned(), grant.all_columns.clone());
    let lists = grant.privileges.iter().chain((!grant.all_columns.is_empty()).then_some(&all));
    for (word, columns) in lists.filter(|(_, columns)| !columns.is_empty()) {
        let bits = privilege::named(word).unwrap_or(acl::COLUMN);
        for name in columns {
            let Some((number, _)) = table.column(name) else {
                base::bail!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.name
                );
            };
            match out.iter_mut().find(|(n, _)| *n == number) {
                Some((_, known)) => *known |= bits,
                None => out.push((number, bits)),
            }
        }
    }
    out.sort_unstable();
    Ok(out)
}

fn has_columns(grant: &Grant) -> bool {
    !grant.all_columns.is_empty() || grant.privileges.iter().any(|(_, columns)| !columns.is_empty())
}

/// Of the rights that a table or sequence can have, those that this one can.
fn supported(wanted: u16, item: &Item, cx: &mut ExecContext<'_>) -> Result<u16> {
    let known = wanted & item.kind.all();
    if known != wanted && item.kind == AclKind::Sequence {
        let message = "only supports USAGE, SELECT, and UPDATE privileges";
        let warning = err!(INVALID_GRANT_OPERATION, "sequence \"{}\" {message}", item.name);
        cx.hooks.notice("WARNING", warning);
    } else if known != wanted {
        base::bail!(INVALID_GRANT_OPERATION, "invalid privilege type USAGE for table");
    }
    Ok(known)
}

fn grant_on(grant: &Grant, item: &Item, grantees: &[u32], cx: &mut ExecContext<'_>) -> Result<()> {
    rights::lock_acl(cx, item.kind, item.object, 0)?;
    let view = cx.catalog_tx.view();
    let questions = rights::of(cx, &view);
    let owner = questions.owner(item.kind, item.object).unwrap_or(ids::SUPERUSER);
    let whole_items = questions.items(item.kind, item.object);
    let columns = match &item.table {
        Some(table) => by_column(grant, table)?,
        None if has_columns(grant) => {
            return Err(Error::unsupported("GRANT on columns of a sequence"));
        }
        None => Vec::new(),
    };
    if let Some(wanted) = whole(grant, item.kind) {
        let wanted = supported(wanted, item, cx)?;
        let (grantor, may) = questions.best_grantor(cx.role, owner, &whole_items, wanted);
        let held = questions.held(grantor, item.kind, item.object);
        let all = grant.privileges.is_empty();
        let word = (item.kind.word(), item.name.as_str());
        let given = allowed(grant.grant, all, wanted, may, held, word, None, cx)?;
        let items = apply(grant, whole_items.clone(), owner, grantor, grantees, given)?;
        rights::store(cx, item.kind, item.object, 0, items)?;
        // A right that is revoked on the table is revoked on its columns.
        if !grant.grant && item.kind == AclKind::Table {
            let numbers: Vec<u16> = view.column_acls(item.object).map(|a| a.column).collect();
            for number in numbers {
                let known = rights::lock_acl(cx, AclKind::Table, item.object, number)?;
                let items = known.map(|a| a.items.clone()).unwrap_or_default();
                let bits = given & acl::COLUMN;
                let items = apply(grant, items, owner, grantor, grantees, bits)?;
                rights::store(cx, AclKind::Table, item.object, number, items)?;
            }
        }
    }
    for (number, wanted) in columns {
        let known = rights::lock_acl(cx, AclKind::Table, item.object, number)?;
        let own = known.map(|a| a.items.clone()).unwrap_or_default();
        let view = cx.catalog_tx.view();
        let questions = rights::of(cx, &view);
        let both: Vec<AclItem> = whole_items.iter().chain(&own).copied().collect();
        let (grantor, may) = questions.best_grantor(cx.role, owner, &both, wanted);
        let column = item.table.as_ref().map(|t| &t.columns[usize::from(number) - 1].name);
        let mut held = questions.held(grantor, AclKind::Table, item.object);
        held.privileges |= questions.held_on_column(grantor, item.object, number).privileges;
        let all = grant.privileges.is_empty();
        let word = ("table", item.name.as_str());
        let column = column.map(String::as_str);
        let given = allowed(grant.grant, all, wanted, may, held, word, column, cx)?;
        let items = apply(grant, own, owner, grantor, grantees, given)?;
        rights::store(cx, AclKind::Table, item.object, number, items)?;
    }
    Ok(())
}

/// Which of the rights the grantor may grant or revoke; warns of those that it may not.
#[allow(clippy::too_many_arguments, reason = "one question with all that its messages name")]
fn allowed(
    granting: bool,
    all: bool,
    wanted: u16,
    may: u16,
    held: acl::Held,
    (word, name): (&str, &str),
    column: Option<&str>,
    cx: &mut ExecContext<'_>,
) -> Result<u16> {
    if may == 0 && held.privileges == 0 && held.grantable == 0 {
        return Err(match column {
            Some(column) => err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied for column \"{column}\" of relation \"{name}\""
            ),
            None => acl::denied(word, name),
        });
    }
    let given = wanted & may;
    let how = match (given == 0, !all && given != wanted) {
        (true, _) => "no",
        (false, true) => "not all",
        (false, false) => return Ok(given),
    };
    let what = match column {
        Some(column) => format!("column \"{column}\" of relation \"{name}\""),
        None => format!("\"{name}\""),
    };
    let warning = if granting {
        err!(WARNING_PRIVILEGE_NOT_GRANTED, "{how} privileges were granted for {what}")
    } else {
        err!(WARNING_PRIVILEGE_NOT_REVOKED, "{how} privileges could be revoked for {what}")
    };
    cx.hooks.notice("WARNING", warning);
    Ok(given)
}

fn apply(
    grant: &Grant,
    mut items: Vec<AclItem>,
    owner: u32,
    grantor: u32,
    grantees: &[u32],
    privileges: u16,
) -> Result<Vec<AclItem>> {
    for grantee in grantees {
        let change = Change {
            grant: grant.grant,
            grantee: *grantee,
            grantor,
            privileges,
            option: grant.option,
            cascade: grant.cascade,
        };
        items = acl::change(&items, owner, &change)?;
    }
    Ok(items)
}

/// ALTER DEFAULT PRIVILEGES.
fn defaults(
    grant: &Grant,
    kind: AclKind,
    roles: &[RoleRef],
    schemas: &[String],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let grantees = grantees(grant, cx)?;
    check_words(grant)?;
    let mut owners = Vec::new();
    for role in roles {
        let role = rights::role(cx, role)?;
        rights::require_membership(cx, role)?;
        owners.push(role);
    }
    if roles.is_empty() {
        owners.push(cx.role);
    }
    if !schemas.is_empty() && kind == AclKind::Schema {
        base::bail!(
            INVALID_GRANT_OPERATION,
            "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"
        );
    }
    let mut places = Vec::new();
    for name in schemas {
        places.push(schema(name, cx)?);
    }
    if schemas.is_empty() {
        places.push(0);
    }
    for owner in owners {
        for place in &places {
            change_defaults(grant, kind, owner, *place, &grantees, cx)?;
        }
    }
    Ok(())
}

fn change_defaults(
    grant: &Grant,
    kind: AclKind,
    role: u32,
    schema: u32,
    grantees: &[u32],
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    super::name::reserve(cx, role, &format!("default {kind:?} {schema}"))?;
    let view = cx.catalog_tx.view();
    let known = view.default_acls().find(|d| (d.role, d.schema, d.kind) == (role, schema, kind));
    let mut usual = if schema == 0 { acl::default_items(kind, role) } else { Vec::new() };
    let before = known.map_or_else(|| usual.clone(), |d| d.items.clone());
    let wanted = whole(grant, kind).unwrap_or_default();
    let mut items = apply(grant, before, role, role, grantees, wanted)?;
    acl::sort(&mut items);
    acl::sort(&mut usual);
    if items == usual {
        return known.map_or(Ok(()), |d| cx.catalog_tx.remove(cx.tx, d.oid));
    }
    let oid = match known {
        Some(known) => known.oid,
        None => cx.engine.txn.next_oid()?,
    };
    let changed = DefaultAcl { oid, role, schema, kind, items };
    cx.catalog_tx.put(cx.tx, Object::DefaultAcl(changed))
}
