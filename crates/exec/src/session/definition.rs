//! Descriptions of objects: definitions as SQL, descriptions, sizes.

use base::{Fork, RelId, Result, err};
use catalog::Snapshot;
use catalog::system::facts;
use types::func::SessionFunction as F;
use types::{Datum, oids};

use crate::run::Run;
use crate::session::args::{int_at, oid_at, text, text_at};
use crate::spi::with_context;

pub use catalog::definition::quote_ident as quote_identifier;

/// Functions over definitions.
pub fn call(function: F, args: &[Datum], run: &mut Run<'_, '_>) -> Result<Option<Datum>> {
    let view = run.cx.catalog_tx.view();
    let id = oid_at(args, 0);
    Ok(Some(match function {
        F::FormatType => {
            if args.first().is_none_or(Datum::is_null) {
                return Ok(Some(Datum::Null));
            }
            let typmod = match args.get(1) {
                None | Some(Datum::Null) => -1,
                Some(_) => int_at(args, 1) as i32,
            };
            // With a typmod, if only -1, the type has not the length that its name in SQL means.
            match (base::Oid(id), args.get(1)) {
                (types::oids::BPCHAR, Some(Datum::Int4(-1))) => text("bpchar"),
                (types::oids::BIT, Some(Datum::Int4(-1))) => text("\"bit\""),
                (ty, _) => text(types::io::format_type(ty, typmod)),
            }
        }
        F::PgGetExpr => match args.first() {
            Some(Datum::Text(sql)) if super::partition::is_bound(sql) => {
                let own = view.table(oid_at(args, 1));
                let shown = own.and_then(|t| super::partition::bound(&view, t, run));
                text(shown.unwrap_or_else(|| sql.to_string()))
            }
            Some(Datum::Text(sql)) => {
                text(stored_expression(sql, oid_at(args, 1), flag(args, 2), run))
            }
            _ => Datum::Null,
        },
        F::PgGetIndexdef => match args.len() {
            3 if int_at(args, 1) > 0 => {
                index_part(&view, id, int_at(args, 1) as usize, flag(args, 2), run)
            }
            _ => index_definition(&view, id, flag(args, 2), run).map_or(Datum::Null, text),
        },
        F::PgGetConstraintdef => {
            constraint_definition(id, flag(args, 1), run).map_or(Datum::Null, text)
        }
        F::PgGetUserbyid => match view.roles().find(|r| r.oid == id) {
            Some(role) => text(role.name.as_str()),
            None => text(format!("unknown (OID={id})")),
        },
        F::ObjDescription | F::ShobjDescription => {
            let class = args.get(1).and_then(|_| {
                catalog::system::find(Some("pg_catalog"), text_at(args, 1)).map(|t| t.oid)
            });
            match (args.len(), class) {
                (2.., None) => Datum::Null,
                _ => description(&view, id, 0, class, function == F::ShobjDescription),
            }
        }
        F::ColDescription => {
            let class = Some(catalog::system::class::RELATION);
            description(&view, id, int_at(args, 1) as u16, class, false)
        }
        F::PgRelationSize => {
            let fork = if args.len() > 1 { text_at(args, 1) } else { "main" };
            size(&[(id, fork)], &view, run)?
        }
        F::PgTableSize => size(&[(id, "main"), (id, "fsm"), (id, "vm")], &view, run)?,
        F::PgIndexesSize => {
            let indexes = view.table(id).map(|t| t.indexes.clone()).unwrap_or_default();
            let parts: Vec<(u32, &str)> = indexes.iter().map(|i| (*i, "main")).collect();
            size(&parts, &view, run)?
        }
        F::PgTotalRelationSize => {
            let mut parts = vec![(id, "main"), (id, "fsm"), (id, "vm")];
            if let Some(table) = view.table(id) {
                parts.extend(table.indexes.iter().map(|i| (*i, "main")));
            }
            size(&parts, &view, run)?
        }
        F::PgDatabaseSize => database_size(args, &view, run)?,
        F::PgSizePretty => text(match args.first() {
            Some(Datum::Numeric(n)) => pretty_numeric(n, run.cx.format)?,
            _ => pretty_size(int_at(args, 0)),
        }),
        F::PgGetFunctionArguments | F::PgGetFunctionIdentityArguments
            if view.function(id).is_some() =>
        {
            let all = function == F::PgGetFunctionArguments;
            match view.function(id) {
                Some(own) => text(catalog::routine::arguments(&*with_defaults(own, run)?, all)),
                None => Datum::Null,
            }
        }
        F::PgGetFunctionResult if view.function(id).is_some() => {
            let path = run.cx.search_path;
            let result = view.function(id).and_then(|f| catalog::routine::result(&view, path, f));
            result.map_or(Datum::Null, text)
        }
        F::PgGetFunctiondef if view.function(id).is_some() => {
            let path = run.cx.search_path;
            match view.function(id) {
                Some(own) => {
                    let body = standard_body(own, run)?;
                    let own = with_defaults(own, run)?;
                    text(catalog::routine::definition(&view, path, &own, body))
                }
                None => Datum::Null,
            }
        }
        F::PgGetFunctionSqlbody => match view.function(id) {
            Some(own) => standard_body(own, run)?.map_or(Datum::Null, text),
            None => Datum::Null,
        },
        F::PgGetFunctionArgDefault => {
            let wanted = int_at(args, 1).checked_sub(1).and_then(|n| usize::try_from(n).ok());
            let own = view.function(id).map(|f| with_defaults(f, run)).transpose()?;
            let default = own.zip(wanted).and_then(|(f, n)| {
                f.args.get(n).filter(|a| a.mode != 'o').and_then(|a| a.default.clone())
            });
            default.map_or(Datum::Null, text)
        }
        F::PgGetFunctionArguments => function_part(id, &|f| facts::function_arguments(f, false)),
        F::PgGetFunctionIdentityArguments => {
            function_part(id, &|f| facts::function_arguments(f, true))
        }
        F::PgGetFunctionResult => function_part(id, &facts::function_result),
        F::PgRelationFilenode => match (view.table(id), view.index(id)) {
            (Some(table), _) => Datum::Oid(table.rel),
            (None, Some(index)) => Datum::Oid(index.rel),
            (None, None) => view.sequence(id).map_or(Datum::Null, |s| Datum::Oid(s.rel)),
        },
        F::PgGetFunctiondef => function_part(id, &facts::function_definition),
        F::PgGetViewdef => view_definition(args, run)?,
        F::PgGetTriggerdef => trigger_definition(id, flag(args, 1), run)?,
        F::PgGetStatisticsobjdef => statistics_definition(&view, id, true, run),
        F::PgGetStatisticsobjdefColumns => statistics_definition(&view, id, false, run),
        // Those that are here lie in the data directory.
        F::PgTablespaceLocation if matches!(id, 0 | 1663 | 1664) => text(""),
        F::PgTablespaceLocation => {
            return Err(err!(
                UNDEFINED_FILE,
                "could not stat file \"pg_tblspc/{id}\": No such file or directory"
            ));
        }
        F::PgRelationIsPublishable => match view.relation_by_oid(id) {
            Some(catalog::snapshot::Relation::Table(t)) => Datum::Bool(t.is_publishable()),
            Some(_) => Datum::Bool(false),
            None if catalog::system::by_oid(base::Oid(id)).is_some() => Datum::Bool(false),
            None => Datum::Null,
        },
        F::PgRelationIsUpdatable => Datum::Int4(changes(&view, id, flag(args, 1), None, run)),
        F::PgColumnIsUpdatable => {
            let column = u16::try_from(int_at(args, 1)).ok().filter(|n| *n > 0);
            let events = match column {
                Some(_) => changes(&view, id, flag(args, 2), column, run),
                None => 0,
            };
            Datum::Bool(events & 20 == 20)
        }
        _ => return Ok(None),
    }))
}

/// Extended statistics as CREATE STATISTICS has them, or (`whole` false) their columns and expressions.
fn statistics_definition(view: &Snapshot, id: u32, whole: bool, run: &mut Run<'_, '_>) -> Datum {
    let Some(s) = view.statistics_object(id) else { return Datum::Null };
    let Some(table) = view.table(s.table) else { return Datum::Null };
    let name = |n: &u16| quote_identifier(&table.columns[usize::from(*n) - 1].name);
    let mut parts: Vec<String> = s.columns.iter().map(name).collect();
    for e in &s.expressions {
        let printed = with_context(run.cx, |cx| sql::print::index_key(cx, table, &e.sql, true));
        parts.push(printed.unwrap_or_else(|_| format!("({})", e.sql)));
    }
    let columns = parts.join(", ");
    if !whole {
        return text(columns);
    }
    let all = [('d', "ndistinct"), ('f', "dependencies"), ('m', "mcv")];
    let kinds: Vec<&str> = all.iter().filter(|k| s.kinds.contains(k.0)).map(|k| k.1).collect();
    let shown = match kinds.len() == all.len() || s.len() < 2 {
        true => String::new(),
        false => format!(" ({})", kinds.join(", ")),
    };
    let schema = view.schema(s.schema).map_or("", |s| s.name.as_str());
    let names =
        catalog::system::reg::Names { catalog: view, path: run.cx.search_path, database: None };
    let of = names.relation_name(s.table).unwrap_or_default();
    text(format!(
        "CREATE STATISTICS {}.{}{shown} ON {columns} FROM {of}",
        quote_identifier(schema),
        quote_identifier(&s.name)
    ))
}

/// The expressions of extended statistics.
pub(super) fn statistics_expressions(view: &Snapshot, id: u32, run: &mut Run<'_, '_>) -> Datum {
    let Some(s) = view.statistics_object(id) else { return Datum::Null };
    let Some(table) = view.table(s.table) else { return Datum::Null };
    let printed = |sql: &str, run: &mut Run<'_, '_>| {
        let found = with_context(run.cx, |cx| sql::print::over_row(cx, table, sql, false));
        text(found.unwrap_or_else(|_| sql.to_owned()))
    };
    let all: Vec<Datum> = s.expressions.iter().map(|e| printed(&e.sql, run)).collect();
    if all.is_empty() { Datum::Null } else { Datum::array(oids::TEXT, all) }
}

/// What can be done to the rows of a relation: see [`sql::view::changes_of`].
fn changes(
    view: &Snapshot,
    id: u32,
    triggers: bool,
    column: Option<u16>,
    run: &mut Run<'_, '_>,
) -> i32 {
    let Some(table) = view.table(id) else { return 0 };
    let known = with_context(run.cx, |cx| sql::view::changes_of(cx, table, triggers, column));
    known.unwrap_or(0)
}

/// Rows of `information_schema` that say what can be done to a view's rows.
fn print_changes(table: &str, row: &mut [Datum], run: &mut Run<'_, '_>) {
    let (Some(Datum::Text(schema)), Some(Datum::Text(name))) = (row.get(1), row.get(2)) else {
        return;
    };
    let view = run.cx.catalog_tx.view();
    let found = view.schema_named(schema).and_then(|s| view.relation_in(s.oid, name));
    let Some(catalog::snapshot::Relation::Table(found)) = found else { return };
    if found.kind != catalog::TableKind::View {
        return;
    }
    let column = match (table, row.get(3)) {
        ("columns", Some(Datum::Text(name))) => found.column(name).map(|(n, _)| n),
        _ => None,
    };
    let events = changes(&view, found.oid, false, column, run);
    let Some(columns) = catalog::system::find(Some("information_schema"), table) else { return };
    for (name, bits) in [("is_updatable", 20), ("is_insertable_into", 8)] {
        if let Some((n, _)) = columns.column(name) {
            row[usize::from(n) - 1] = text(if events & bits == bits { "YES" } else { "NO" });
        }
    }
}

/// A trigger as `CREATE TRIGGER` makes it.
fn trigger_definition(id: u32, pretty: bool, run: &mut Run<'_, '_>) -> Result<Datum> {
    let view = run.cx.catalog_tx.view();
    let table = view.owner_of_part(id);
    let found = table.and_then(|t| Some((t, t.triggers.iter().find(|c| c.oid == id)?)));
    let Some((table, trigger)) = found else { return Ok(Datum::Null) };
    let when = match &trigger.when {
        Some(sql) => Some(with_context(run.cx, |cx| sql::trigger::print(cx, table, sql, pretty))?),
        None => None,
    };
    let path = run.cx.search_path;
    let parts = (&**table, trigger);
    Ok(text(catalog::definition::trigger(&view, path, parts, when.as_deref(), pretty)))
}

/// A rule as `CREATE RULE` makes it.
pub(super) fn rule(id: u32, pretty: bool, run: &mut Run<'_, '_>) -> Option<String> {
    let view = run.cx.catalog_tx.view();
    let table = view.owner_of_part(id)?;
    let rule = table.rules.iter().find(|r| r.oid == id)?;
    with_context(run.cx, |cx| sql::rule::print(cx, table, rule, pretty)).ok()
}

/// A view's query as PostgreSQL prints it; by oid or name.
/// The default of a function's parameter.
fn print_parameter(row: &mut [Datum], run: &mut Run<'_, '_>) {
    let Some(columns) = catalog::system::find(Some("information_schema"), "parameters") else {
        return;
    };
    let Some((n, _)) = columns.column("parameter_default") else { return };
    let place = usize::from(n) - 1;
    let Some(Datum::Text(default)) = row.get(place) else { return };
    let view = run.cx.catalog_tx.view();
    let found = default.split_once(' ').and_then(|(id, number)| {
        Some((view.function(id.parse().ok()?)?, number.parse::<usize>().ok()?.checked_sub(1)?))
    });
    let printed = found.and_then(|(function, at)| {
        let shown = with_defaults(function, run).ok()?;
        shown.args.get(at)?.default.clone()
    });
    row[place] = printed.map_or(Datum::Null, text);
}

/// A function with the defaults of its parameters as PostgreSQL prints them.
fn with_defaults<'f>(
    function: &'f catalog::Function,
    run: &mut Run<'_, '_>,
) -> Result<std::borrow::Cow<'f, catalog::Function>> {
    if function.args.iter().all(|a| a.default.is_none()) {
        return Ok(std::borrow::Cow::Borrowed(function));
    }
    let mut shown = catalog::Function::clone(function);
    for arg in &mut shown.args {
        let Some(default) = arg.default.take() else { continue };
        let ty = (base::Oid(arg.ty), -1);
        let printed = with_context(run.cx, |cx| sql::print::default(cx, ty, &default, false))?;
        arg.default = Some(printed);
    }
    Ok(std::borrow::Cow::Owned(shown))
}

/// A standard body as PostgreSQL prints it; None for a function whose body is a string.
fn standard_body(function: &catalog::Function, run: &mut Run<'_, '_>) -> Result<Option<String>> {
    if !function.standard_body {
        return Ok(None);
    }
    with_context(run.cx, |cx| sql::view::body::print(cx, function)).map(Some)
}

fn view_definition(args: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let id = match args.first() {
        Some(Datum::Text(name)) => super::names::regclass_from_name(name, run)?,
        _ => oid_at(args, 0),
    };
    let pretty = flag(args, 1) || matches!(args.get(1), Some(Datum::Int4(_)));
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(id).filter(|t| t.query.is_some()) else {
        let system = catalog::system::by_oid(base::Oid(id)).filter(|t| t.is_view);
        return Ok(system.map_or(Datum::Null, |t| text(t.definition())));
    };
    let printed = with_context(run.cx, |cx| sql::view::print(cx, table, pretty))?;
    Ok(text(format!("{printed};")))
}

/// Whether any of these columns of a system table is one that [`print_definition`] prints.
pub fn prints_definition(table: &catalog::system::SystemTable, columns: &[u16]) -> bool {
    let printed: &[&str] = match table.name {
        "check_constraints" => &["check_clause"],
        "tables" => &["is_insertable_into"],
        "views" => &["view_definition", "is_updatable", "is_insertable_into"],
        "columns" => &["column_default", "generation_expression", "is_updatable"],
        "parameters" => &["parameter_default"],
        "pg_publication_tables" => &["rowfilter"],
        "pg_policies" => &["qual", "with_check"],
        "pg_rules" | "pg_views" | "pg_matviews" => &["definition"],
        "pg_indexes" => &["indexdef"],
        _ => return false,
    };
    let name = |c: &u16| table.columns.get(usize::from(*c)).map(|(name, _)| *name);
    columns.iter().filter_map(name).any(|name| printed.contains(&name))
}

/// Rows of the tables that show definitions have the stored text; here it becomes what PostgreSQL
/// prints.
pub fn print_definition(table: &str, row: &mut [Datum], run: &mut Run<'_, '_>) {
    if table == "check_constraints" {
        if let Some(Datum::Oid(id)) = row.get(3) {
            let printed = constraint_definition(*id, false, run).unwrap_or_default();
            row[3] = text(printed.trim_start_matches("CHECK "));
        }
        return;
    }
    if matches!(table, "tables" | "views" | "columns") {
        print_changes(table, row, run);
    }
    if table == "parameters" {
        print_parameter(row, run);
        return;
    }
    if table == "columns" {
        print_column(row, run);
        return;
    }
    if table == "pg_publication_tables" {
        print_published(row, run);
        return;
    }
    if table == "pg_policies" {
        print_policy(row, run);
        return;
    }
    if table == "pg_rules" {
        if let Some(Datum::Text(id)) = row.get(3)
            && let Some(printed) = id.parse().ok().and_then(|id| rule(id, false, run))
        {
            row[3] = text(printed);
        }
        return;
    }
    // Where the schema, the name and the text are.
    let (schema, name, place) = match table {
        "pg_views" => (0, 1, 3),
        "pg_matviews" => (0, 1, 6),
        "views" if row.len() == 10 => (1, 2, 3),
        "pg_indexes" => (0, 2, 4),
        _ => return,
    };
    let (Some(Datum::Text(schema)), Some(Datum::Text(name))) = (row.get(schema), row.get(name))
    else {
        return;
    };
    let view = run.cx.catalog_tx.view();
    let Some(schema) = view.schema_named(schema) else { return };
    let printed = match view.relation_in(schema.oid, name) {
        Some(catalog::snapshot::Relation::Table(table)) => {
            with_context(run.cx, |cx| sql::view::print(cx, &table, false))
                .ok()
                .map(|text| format!("{text};"))
        }
        Some(catalog::snapshot::Relation::Index(index)) => {
            index_definition(&view, index.oid, false, run)
        }
        _ => None,
    };
    if let (Some(printed), Some(cell)) = (printed, row.get_mut(place)) {
        *cell = text(printed);
    }
}

/// A row of `pg_policies`: the conditions.
fn print_policy(row: &mut [Datum], run: &mut Run<'_, '_>) {
    for at in [6, 7] {
        let Some(Datum::Text(sql)) = row.get(at) else { continue };
        let printed = with_context(run.cx, |cx| sql::policy::print(cx, sql, false));
        if let Ok(printed) = printed {
            row[at] = text(printed);
        }
    }
}

/// A row of `pg_publication_tables`: the condition.
fn print_published(row: &mut [Datum], run: &mut Run<'_, '_>) {
    let (Some(Datum::Text(schema)), Some(Datum::Text(name)), Some(Datum::Text(sql))) =
        (row.get(1), row.get(2), row.get(4))
    else {
        return;
    };
    let view = run.cx.catalog_tx.view();
    let Some(schema) = view.schema_named(schema) else { return };
    if let Some(found) = view.relation_in(schema.oid, name) {
        let printed = stored_expression(sql, found.oid(), false, run);
        row[4] = text(printed);
    }
}

/// A row of `information_schema.columns`: the default or generation expression.
fn print_column(row: &mut [Datum], run: &mut Run<'_, '_>) {
    let Some(columns) = catalog::system::find(Some("information_schema"), "columns") else {
        return;
    };
    for place in ["column_default", "generation_expression"] {
        let at = columns.column(place).map_or(0, |(n, _)| usize::from(n) - 1);
        let (Some(Datum::Text(schema)), Some(Datum::Text(name)), Some(Datum::Text(sql))) =
            (row.get(1), row.get(2), row.get(at))
        else {
            continue;
        };
        let view = run.cx.catalog_tx.view();
        let Some(schema) = view.schema_named(schema) else { return };
        if let Some(found) = view.relation_in(schema.oid, name) {
            let printed = stored_expression(sql, found.oid(), false, run);
            row[at] = text(printed);
        }
    }
}

/// Something about a function; NULL when there is no such function.
fn function_part(id: u32, part: &dyn Fn(u32) -> Option<String>) -> Datum {
    part(id).map_or(Datum::Null, text)
}

/// `CREATE INDEX …` of an index.
pub fn index_definition(
    view: &Snapshot,
    id: u32,
    pretty: bool,
    run: &mut Run<'_, '_>,
) -> Option<String> {
    if let Some(system) = facts::index(id) {
        return Some(system.definition());
    }
    let index = view.index(id)?;
    let table = view.table(index.table)?;
    let path = run.cx.search_path;
    Some(with_context(run.cx, |cx| {
        catalog::definition::index(view, path, index, &|sql, key| {
            let printed = if key {
                sql::print::index_key(cx, table, sql, pretty)
            } else {
                sql::print::over_row(cx, table, sql, pretty)
            };
            printed.unwrap_or_else(|_| format!("({sql})"))
        })
    }))
}

/// One key column of an index.
fn index_part(
    view: &Snapshot,
    id: u32,
    number: usize,
    pretty: bool,
    run: &mut Run<'_, '_>,
) -> Datum {
    if let Some(system) = facts::index(id) {
        return system.column_names().get(number - 1).map_or(text(""), |name| text(*name));
    }
    let Some(index) = view.index(id) else { return Datum::Null };
    let Some(table) = view.table(index.table) else { return Datum::Null };
    let column = |n: u16| text(quote_identifier(&table.columns[usize::from(n) - 1].name));
    match index.columns.get(number - 1) {
        Some(key) => match &key.expression {
            Some(e) => {
                let printed =
                    with_context(run.cx, |cx| sql::print::index_key(cx, table, &e.sql, pretty));
                text(printed.unwrap_or_else(|_| format!("({})", e.sql)))
            }
            None => column(key.column),
        },
        None => match index.include.get(number - 1 - index.columns.len()) {
            Some(n) => column(*n),
            None => text(""),
        },
    }
}

fn flag(args: &[Datum], n: usize) -> bool {
    args.get(n) == Some(&Datum::Bool(true))
}

/// A default or check as PostgreSQL prints it; the stored text where it can't be bound any more.
pub fn stored_expression(sql: &str, table: u32, pretty: bool, run: &mut Run<'_, '_>) -> String {
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.table(table) else { return sql.to_owned() };
    let has = |text: &Option<String>| text.as_deref() == Some(sql);
    if table.policies.iter().any(|p| has(&p.using) || has(&p.check)) {
        let printed = with_context(run.cx, |cx| sql::policy::print(cx, sql, pretty));
        return printed.unwrap_or_else(|_| sql.to_owned());
    }
    let column = table.columns.iter().find(|c| !c.dropped && c.default.as_deref() == Some(sql));
    let printed = with_context(run.cx, |cx| match column {
        Some(c) if c.generated => sql::print::over_row(cx, table, sql, pretty),
        Some(c) => sql::print::default(cx, (base::Oid(c.ty), c.typmod), sql, pretty),
        None => sql::print::over_row(cx, table, sql, pretty),
    });
    printed.unwrap_or_else(|_| sql.to_owned())
}

/// A constraint by its oid.
pub fn constraint_definition(id: u32, pretty: bool, run: &mut Run<'_, '_>) -> Option<String> {
    if let Some(index) = facts::indexes().iter().find(|i| i.constraint == id && id != 0) {
        return Some(index.constraint_definition());
    }
    let view = run.cx.catalog_tx.view();
    let Some(table) = view.owner_of_part(id) else {
        return domain_constraint(&view, id, pretty, run);
    };
    let constraint = table.constraints.iter().find(|c| c.oid == id)?;
    let check = match &constraint.kind {
        catalog::ConstraintKind::Check(sql) => {
            with_context(run.cx, |cx| sql::print::check(cx, table, sql, pretty))
                .unwrap_or_else(|_| format!("({sql})"))
        }
        _ => String::new(),
    };
    let path = run.cx.search_path;
    Some(with_context(run.cx, |cx| {
        let expression = |sql: &str, key: bool| {
            let printed = match key {
                true => sql::print::index_key(cx, table, sql, pretty),
                false => sql::print::over_row(cx, table, sql, pretty),
            };
            printed.unwrap_or_else(|_| format!("({sql})"))
        };
        let check = |_: &str| check.clone();
        catalog::definition::constraint(&view, path, table, constraint, &check, &expression)
    }))
}

/// A domain's CHECK.
fn domain_constraint(
    view: &Snapshot,
    id: u32,
    pretty: bool,
    run: &mut Run<'_, '_>,
) -> Option<String> {
    for ty in view.user_types() {
        let catalog::UserTypeKind::Domain { base, typmod, checks, .. } = &ty.kind else { continue };
        let Some(check) = checks.iter().find(|c| c.oid == id) else { continue };
        let catalog::ConstraintKind::Check(sql) = &check.kind else { continue };
        let text = with_context(run.cx, |cx| {
            sql::print::domain_check(cx, sql, base::Oid(*base), *typmod, pretty)
        });
        let text = text.unwrap_or_else(|_| format!("({sql})"));
        let valid = if check.unvalidated { " NOT VALID" } else { "" };
        return Some(format!("CHECK ({text}){valid}"));
    }
    None
}

/// The comment on an object, of this class if one is named, or on one of its columns; of one that all databases
/// share, or of another.
fn description(
    view: &Snapshot,
    object: u32,
    column: u16,
    class: Option<u32>,
    shared: bool,
) -> Datum {
    let is = |c: &&std::sync::Arc<catalog::object::Comment>| {
        c.object == object
            && (c.column, c.shared) == (column, shared)
            && class.is_none_or(|class| catalog::system::commented_class(view, c) == class)
    };
    if let Some(comment) = view.comments().find(is) {
        return if comment.text.is_empty() { Datum::Null } else { text(comment.text.as_str()) };
    }
    let fits = |of: u32| catalog::system::is_shared_class(of) == shared;
    let builtin = match class {
        _ if column != 0 => None,
        Some(class) => facts::description(class, object).filter(|_| fits(class)),
        None => facts::descriptions().find(|d| d.1 == object && fits(d.0)).map(|d| d.2),
    };
    builtin.map_or(Datum::Null, text)
}

/// Bytes of some forks; NULL when the (first) relation isn't there.
fn size(parts: &[(u32, &str)], view: &Snapshot, run: &Run<'_, '_>) -> Result<Datum> {
    let mut pages = 0i64;
    for (id, fork) in parts {
        let rel = view.table(*id).map(|t| t.rel).or_else(|| view.index(*id).map(|i| i.rel));
        let rel = match rel.or_else(|| view.sequence(*id).map(|s| s.rel)) {
            Some(rel) => rel,
            None if is_system(*id) => continue,
            None => return Ok(Datum::Null),
        };
        let fork = match *fork {
            "main" => Fork::Main,
            "fsm" => Fork::Fsm,
            "vm" => Fork::Vm,
            "init" => continue,
            other => base::bail!(INVALID_PARAMETER_VALUE, "invalid fork name: \"{other}\""),
        };
        pages += i64::from(run.cx.engine.storage.block_count(RelId(rel), fork)?);
    }
    Ok(Datum::Int8(pages * storage::PAGE_SIZE as i64))
}

/// The bytes of a database, by name or oid.
fn database_size(args: &[Datum], view: &Snapshot, run: &Run<'_, '_>) -> Result<Datum> {
    let database = match args.first() {
        Some(Datum::Oid(id)) => view.database(*id),
        _ => {
            let name = text_at(args, 0);
            let missing = || base::err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist");
            Some(view.database_named(name).ok_or_else(missing)?)
        }
    };
    let Some(database) = database else { return Ok(Datum::Null) };
    let (cx, connect) = (&*run.cx, catalog::acl::privilege::CONNECT);
    let rights = crate::rights::of(cx, view);
    if !rights.has_rights_of(cx.role, catalog::object::ids::READ_ALL_STATS) {
        rights.require(
            cx.role,
            catalog::AclKind::Database,
            database.oid,
            connect,
            &database.name,
        )?;
    }
    let bytes = match cx.engine.catalog.database(database.oid) {
        Some(open) => bytes_of(&cx.engine.storage, &open.current())?,
        None => return Ok(Datum::Null),
    };
    Ok(Datum::Int8(bytes as i64))
}

/// Bytes of a database's files.
pub(super) fn bytes_of(storage: &storage::Storage, snapshot: &Snapshot) -> Result<u64> {
    let mut pages = 0;
    for rel in snapshot.files() {
        pages += u64::from(storage.block_count(rel, Fork::Main)?);
        pages += u64::from(storage.block_count(catalog::overflow_rel(rel), Fork::Main)?);
    }
    Ok(pages * storage::PAGE_SIZE as u64)
}

/// A system table or one of its indexes.
fn is_system(id: u32) -> bool {
    catalog::system::by_oid(base::Oid(id)).is_some() || facts::index(id).is_some()
}

/// A size as PostgreSQL rounds it: bytes up to 10 kB, then kB, MB, GB, TB, each up to 10240.
fn pretty_size(bytes: i64) -> String {
    let limit = 10 * 1024;
    if bytes.unsigned_abs() < limit {
        return format!("{bytes} bytes");
    }
    // One bit is kept below the unit, for rounding half away from zero.
    let mut value = bytes / 512;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        if value.unsigned_abs() < 2 * limit - 1 || unit == "PB" {
            let rounded = (value + value.signum()) / 2;
            return format!("{rounded} {unit}");
        }
        value /= 1024;
    }
    String::new()
}

/// The same of a numeric, which keeps its digits where it is shown in bytes.
fn pretty_numeric(bytes: &types::Numeric, format: &types::io::FormatContext) -> Result<String> {
    let is_below = |n: &types::Numeric, limit: i64| n.abs().compare(&limit.into()).is_lt();
    let shown = |n: types::Numeric| types::io::to_text(oids::NUMERIC, &n.into(), format);
    if is_below(bytes, 10 * 1024) {
        return Ok(format!("{} bytes", shown(bytes.clone())?));
    }
    let mut value = bytes.div_trunc(&512.into())?;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        if is_below(&value, 20 * 1024 - 1) || unit == "PB" {
            let half = types::Numeric::from(i64::from(value.signum()));
            return Ok(format!("{} {unit}", shown(value.add(&half)?.div_trunc(&2.into())?)?));
        }
        value = value.div_trunc(&1024.into())?;
    }
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::pretty_size;

    #[test]
    fn sizes_round_as_postgresql_rounds_them() {
        assert_eq!(pretty_size(10239), "10239 bytes");
        assert_eq!(pretty_size(10240), "10 kB");
        assert_eq!(pretty_size(8192 * 100), "800 kB");
        assert_eq!(pretty_size(10 * 1024 * 1024), "10 MB");
        assert_eq!(pretty_size(-20480), "-20 kB");
    }
}
