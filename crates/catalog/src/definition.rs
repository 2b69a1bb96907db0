//! Objects written back as SQL: what `pg_get_indexdef`, `pg_get_constraintdef` and psql show.

use std::fmt::Write as _;

use crate::object::{
    Constraint, ConstraintKind, ForeignKeyAction, Id, Index, IndexColumn, Table, Trigger, ids,
};
use crate::snapshot::Snapshot;

pub use types::func::quote_ident;

fn column_name(table: &Table, number: u16) -> String {
    table
        .columns
        .get(usize::from(number).wrapping_sub(1))
        .map_or_else(|| "?".to_owned(), |c| quote_ident(&c.name))
}

fn column_list(table: &Table, numbers: impl Iterator<Item = u16>) -> String {
    numbers.map(|n| column_name(table, n)).collect::<Vec<_>>().join(", ")
}

fn qualified(catalog: &Snapshot, schema: Id, name: &str) -> String {
    match catalog.schema(schema) {
        Some(s) => format!("{}.{}", quote_ident(&s.name), quote_ident(name)),
        None => quote_ident(name),
    }
}

/// A collation's name, with its schema where it is none of PostgreSQL's own.
pub fn collation_name(catalog: &Snapshot, id: Id) -> String {
    match catalog.collation(id) {
        Some(c) if c.schema == ids::PG_CATALOG => quote_ident(&c.name),
        Some(c) => qualified(catalog, c.schema, &c.name),
        None => id.to_string(),
    }
}

/// The value of a storage parameter or of a class's.
fn option_text(value: &str) -> String {
    match quote_ident(value) == value {
        true => value.to_owned(),
        false => types::func::quote_literal(value),
    }
}

/// One key column with its order, as `CREATE INDEX` takes it.
pub fn index_column(
    (catalog, path): (&Snapshot, &[Id]),
    (table, method): (&Table, base::AccessMethod),
    key: &IndexColumn,
    expression: &dyn Fn(&str) -> String,
) -> String {
    let mut out = match &key.expression {
        Some(e) => expression(&e.sql),
        None => column_name(table, key.column),
    };
    let usual = match (&key.expression, table.columns.get(usize::from(key.column).wrapping_sub(1)))
    {
        (None, Some(column)) => catalog.column_collation(column),
        (Some(e), _) if e.collation != 0 => e.collation,
        _ => ids::COLLATION_DEFAULT,
    };
    if let Some(own) = key.collation.as_ref().filter(|c| c.oid != usual) {
        let name = catalog.shown_collation(path, own.oid).unwrap_or_default();
        let _ = write!(out, " COLLATE {name}");
    }
    let named = match key.class {
        0 if !key.class_options.is_empty() => {
            let ty = match &key.expression {
                Some(e) => e.ty,
                None => {
                    table.columns.get(usize::from(key.column).wrapping_sub(1)).map_or(0, |c| c.ty)
                }
            };
            key.class_of(method, ty)
        }
        class => class,
    };
    if let Some(class) = types::opclass::class(named) {
        let own = match catalog.defined_by_oid(class.oid).map(|d| &**d) {
            Some(crate::object::Defined::Class(own)) => Some(own),
            _ => None,
        };
        let schema = own
            .filter(|own| !path.contains(&own.schema))
            .and_then(|own| catalog.schema(own.schema))
            .map_or_else(String::new, |s| format!("{}.", quote_ident(&s.name)));
        if own.is_none_or(|own| !own.default) || !key.class_options.is_empty() {
            let _ = write!(out, " {schema}{}", quote_ident(class.name));
        }
        if !key.class_options.is_empty() {
            let list = key.class_options.iter().map(|(n, v)| format!("{n}={}", option_text(v)));
            let _ = write!(out, " ({})", list.collect::<Vec<_>>().join(", "));
        }
    }
    match (key.descending, key.nulls_first) {
        (false, false) => {}
        (false, true) => out.push_str(" NULLS FIRST"),
        (true, true) => out.push_str(" DESC"),
        (true, false) => out.push_str(" DESC NULLS LAST"),
    }
    out
}

/// `CREATE INDEX …`. `expression` prints a stored expression: as a key (true) or as the condition. `path`
/// are the schemas whose collations need no qualification.
pub fn index(
    catalog: &Snapshot,
    path: &[Id],
    index: &Index,
    expression: &dyn Fn(&str, bool) -> String,
) -> String {
    let Some(table) = catalog.table(index.table) else { return String::new() };
    let keys: Vec<String> = index
        .columns
        .iter()
        .map(|c| {
            index_column((catalog, path), (table, index.method), c, &|sql| expression(sql, true))
        })
        .collect();
    let mut out = format!(
        "CREATE {}INDEX {} ON {}{} USING {} ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_ident(&index.name),
        // Its partitions' parts are statements of their own.
        if table.is_partitioned() { "ONLY " } else { "" },
        qualified(catalog, table.schema, &table.name),
        quote_ident(catalog.method_of_index(index)),
        keys.join(", "),
    );
    if !index.include.is_empty() {
        let list = column_list(table, index.include.iter().copied());
        let _ = write!(out, " INCLUDE ({list})");
    }
    if index.nulls_equal {
        out.push_str(" NULLS NOT DISTINCT");
    }
    if !index.options.is_empty() {
        let list: Vec<String> =
            index.options.iter().map(|(n, v)| format!("{n}={}", option_text(v))).collect();
        let _ = write!(out, " WITH ({})", list.join(", "));
    }
    if let Some(predicate) = &index.predicate {
        let _ = write!(out, " WHERE {}", expression(predicate, false));
    }
    out
}

/// `EXCLUDE USING gist (a WITH =, b WITH &&)`.
fn exclusion(
    catalog: &Snapshot,
    path: &[Id],
    table: &Table,
    index: &Index,
    expression: &dyn Fn(&str, bool) -> String,
) -> String {
    let operator = |oid: &Id| match catalog.operator(*oid) {
        Some(own) if path.contains(&own.schema) => own.name.clone(),
        Some(own) => {
            let schema = catalog.schema(own.schema).map_or("", |s| s.name.as_str());
            format!("OPERATOR({}.{})", quote_ident(schema), own.name)
        }
        None => types::func::operator(base::Oid(*oid)).map_or_else(String::new, |o| o.name.into()),
    };
    let keys: Vec<String> = index
        .columns
        .iter()
        .zip(&index.exclude)
        .map(|(key, with)| {
            let key = index_column((catalog, path), (table, index.method), key, &|sql| {
                expression(sql, true)
            });
            format!("{key} WITH {}", operator(with))
        })
        .collect();
    let mut out = format!(
        "EXCLUDE USING {} ({})",
        quote_ident(catalog.method_of_index(index)),
        keys.join(", ")
    );
    if !index.include.is_empty() {
        let list = column_list(table, index.include.iter().copied());
        let _ = write!(out, " INCLUDE ({list})");
    }
    if !index.options.is_empty() {
        let list: Vec<String> = index.options.iter().map(|(n, v)| format!("{n}='{v}'")).collect();
        let _ = write!(out, " WITH ({})", list.join(", "));
    }
    if let Some(predicate) = &index.predicate {
        let _ = write!(out, " WHERE ({})", expression(predicate, false));
    }
    out
}

fn action(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
    }
}

/// `PRIMARY KEY (a)`, `FOREIGN KEY (a) REFERENCES t(b)`, … `path` are the schemas whose tables need
/// no qualification.
/// `check` prints a CHECK's stored expression; `expression` one of an index, as [`index`] has it.
pub fn constraint(
    catalog: &Snapshot,
    path: &[Id],
    table: &Table,
    constraint: &Constraint,
    check: &dyn Fn(&str) -> String,
    expression: &dyn Fn(&str, bool) -> String,
) -> String {
    let keyed = |word: &str, id: &Id| {
        let Some(index) = catalog.index(*id) else { return String::new() };
        let nulls = if index.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
        let columns = column_list(table, index.columns.iter().map(|c| c.column));
        let include = match index.include.is_empty() {
            true => String::new(),
            false => format!(" INCLUDE ({})", column_list(table, index.include.iter().copied())),
        };
        format!("{word}{nulls} ({columns}){include}")
    };
    let mut out = match &constraint.kind {
        ConstraintKind::Check(sql) => {
            let inherit = if constraint.no_inherit { " NO INHERIT" } else { "" };
            format!("CHECK ({}){inherit}", check(sql))
        }
        ConstraintKind::PrimaryKey { index } => keyed("PRIMARY KEY", index),
        ConstraintKind::Unique { index } => match catalog.index(*index) {
            Some(own) if !own.exclude.is_empty() => {
                exclusion(catalog, path, table, own, expression)
            }
            _ => keyed("UNIQUE", index),
        },
        ConstraintKind::ForeignKey(key) => {
            let Some(other) = catalog.table(key.table) else { return String::new() };
            let name = if path.contains(&other.schema) {
                quote_ident(&other.name)
            } else {
                qualified(catalog, other.schema, &other.name)
            };
            let mut out = format!(
                "FOREIGN KEY ({}) REFERENCES {name}({})",
                column_list(table, key.columns.iter().copied()),
                column_list(other, key.referenced.iter().copied()),
            );
            if key.match_full {
                out.push_str(" MATCH FULL");
            }
            for (when, what) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if what != ForeignKeyAction::NoAction {
                    let _ = write!(out, " ON {when} {}", action(what));
                }
            }
            if !key.set_columns.is_empty() {
                let _ = write!(out, " ({})", column_list(table, key.set_columns.iter().copied()));
            }
            out
        }
    };
    if constraint.deferrable {
        out.push_str(" DEFERRABLE");
    }
    if constraint.deferred {
        out.push_str(" INITIALLY DEFERRED");
    }
    if constraint.unvalidated {
        out.push_str(" NOT VALID");
    }
    out
}

/// `EXECUTE FUNCTION f('a')`. `path`: schemas whose functions need no qualification.
pub fn trigger_call(catalog: &Snapshot, path: &[Id], trigger: &Trigger) -> String {
    let name = match catalog.function(trigger.function) {
        Some(f) if path.contains(&f.schema) => quote_ident(&f.name),
        Some(f) => qualified(catalog, f.schema, &f.name),
        None => crate::system::facts::function_name(trigger.function)
            .map(quote_ident)
            .unwrap_or_default(),
    };
    let args: Vec<String> = trigger.args.iter().map(|a| quote_text(a)).collect();
    format!("EXECUTE FUNCTION {name}({})", args.join(", "))
}

/// A text as a literal.
fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `CREATE TRIGGER …`. `path`: schemas whose functions need no qualification; the tables' names have their
/// schema unless `pretty` and in one of them. `when` is the condition as it is printed.
pub fn trigger(
    catalog: &Snapshot,
    path: &[Id],
    (table, trigger): (&Table, &Trigger),
    when: Option<&str>,
    pretty: bool,
) -> String {
    let relation = |t: &Table| match pretty && path.contains(&t.schema) {
        true => quote_ident(&t.name),
        false => qualified(catalog, t.schema, &t.name),
    };
    let mut out = String::from("CREATE ");
    if trigger.constraint != 0 {
        out.push_str("CONSTRAINT ");
    }
    let events: Vec<String> = trigger
        .events()
        .map(|event| match event {
            "UPDATE" if !trigger.columns.is_empty() => {
                format!("UPDATE OF {}", column_list(table, trigger.columns.iter().copied()))
            }
            event => event.to_owned(),
        })
        .collect();
    let _ = write!(
        out,
        "TRIGGER {} {} {} ON {} ",
        quote_ident(&trigger.name),
        trigger.timing(),
        events.join(" OR "),
        relation(table)
    );
    if trigger.constraint != 0 {
        if let Some(other) = catalog.table(trigger.other) {
            let _ = write!(out, "FROM {} ", relation(other));
        }
        out.push_str(if trigger.deferrable { "DEFERRABLE " } else { "NOT DEFERRABLE " });
        out.push_str(if trigger.deferred { "INITIALLY DEFERRED " } else { "INITIALLY IMMEDIATE " });
    }
    if trigger.old_table.is_some() || trigger.new_table.is_some() {
        out.push_str("REFERENCING ");
        for (word, name) in [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)] {
            if let Some(name) = name {
                let _ = write!(out, "{word} TABLE AS {} ", quote_ident(name));
            }
        }
    }
    out.push_str(if trigger.is_row() { "FOR EACH ROW " } else { "FOR EACH STATEMENT " });
    if let Some(when) = when {
        let _ = write!(out, "WHEN ({when}) ");
    }
    out.push_str(&trigger_call(catalog, path, trigger));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_quoted_where_they_must_be() {
        for (name, quoted) in [
            ("a1", "a1"),
            ("1a", "\"1a\""),
            ("a$", "\"a$\""),
            ("A", "\"A\""),
            ("user", "\"user\""),
            ("q\"q", "\"q\"\"q\""),
        ] {
            assert_eq!(quote_ident(name), quoted);
        }
    }
}
