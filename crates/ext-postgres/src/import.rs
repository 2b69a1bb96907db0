//! IMPORT FOREIGN SCHEMA: the tables of a schema of the other server, as its catalog tells them.

use base::{Result, err};
use catalog::ForeignServer;
use exec::context::ExecContext;
use sql::foreign::{Import, ImportKind};
use types::func::{quote_literal, quote_name};

use crate::connection::connect;

/// Which parts of the columns are taken.
struct Parts {
    collate: bool,
    default: bool,
    generated: bool,
    not_null: bool,
}

fn parts(import: &Import) -> Result<Parts> {
    let mut out = Parts { collate: true, default: false, generated: true, not_null: true };
    for option in &import.options {
        let place = match option.name.as_str() {
            "import_collate" => &mut out.collate,
            "import_default" => &mut out.default,
            "import_generated" => &mut out.generated,
            "import_not_null" => &mut out.not_null,
            other => base::bail!(FDW_INVALID_OPTION_NAME, "invalid option \"{other}\""),
        };
        *place = base::settings::parse_bool(&option.value)
            .ok_or_else(|| err!(SYNTAX_ERROR, "{} requires a Boolean value", option.name))?;
    }
    Ok(out)
}

/// The statements that make the foreign tables.
///
/// # Errors
/// `HV00Q` when the schema is not there; those of the connection.
pub fn statements(
    import: &Import,
    server: &ForeignServer,
    cx: &mut ExecContext<'_>,
) -> Result<Vec<String>> {
    let parts = parts(import)?;
    let role = cx.role;
    let connection = connect(server, role, cx)?;
    let remote = quote_literal(&import.remote);
    let there = format!("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {remote}");
    if connection.run(&there)?.rows.is_empty() {
        base::bail!(
            FDW_SCHEMA_NOT_FOUND,
            "schema \"{}\" is not present on foreign server \"{}\"",
            import.remote,
            server.name
        );
    }
    let list: Vec<String> = import.tables.iter().map(|t| quote_literal(t)).collect();
    let only = match import.kind {
        ImportKind::All => String::new(),
        ImportKind::LimitTo => format!(" AND c.relname IN ({})", list.join(", ")),
        ImportKind::Except => format!(" AND c.relname NOT IN ({})", list.join(", ")),
    };
    // Partitions are read through their tables, unless they are asked for by name.
    let whole = match import.kind {
        ImportKind::LimitTo => "",
        _ => " AND NOT c.relispartition",
    };
    let answer = connection.run(&format!(
        "SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, \
         pg_get_expr(adbin, adrelid), attgenerated, collname, collnsp.nspname \
         FROM pg_class c JOIN pg_namespace n ON relnamespace = n.oid \
         LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped \
         LEFT JOIN pg_attrdef ad ON adrelid = c.oid AND adnum = attnum \
         LEFT JOIN pg_type t ON t.oid = atttypid \
         LEFT JOIN pg_collation coll ON coll.oid = attcollation AND attcollation <> typcollation \
         LEFT JOIN pg_namespace collnsp ON collnsp.oid = collnamespace \
         WHERE c.relkind IN ('r', 'v', 'f', 'm', 'p') AND n.nspname = {remote}{only}{whole} \
         ORDER BY c.relname, a.attnum"
    ))?;
    let mut out = Vec::new();
    let mut rows = answer.rows.iter().peekable();
    while let Some(first) = rows.peek() {
        let table = first.first().cloned().flatten().unwrap_or_default();
        let mut columns = Vec::new();
        while let Some(row) = rows.next_if(|row| row[0].as_ref() == Some(&table)) {
            let text = |at: usize| row.get(at).and_then(Option::as_deref);
            let (Some(name), Some(ty)) = (text(1), text(2)) else { continue };
            let quoted = quote_name(name);
            let mut column = format!("{quoted} {ty} OPTIONS (column_name {})", quote_literal(name));
            if let (true, Some(name), Some(place)) = (parts.collate, text(6), text(7)) {
                column += &format!(" COLLATE {}.{}", quote_name(place), quote_name(name));
            }
            let generated = text(5).is_some_and(|g| g == "s");
            match text(4) {
                Some(value) if generated && parts.generated => {
                    column += &format!(" GENERATED ALWAYS AS ({value}) STORED");
                }
                Some(value) if !generated && parts.default => {
                    column += &format!(" DEFAULT {value}");
                }
                _ => {}
            }
            if parts.not_null && text(3) == Some("t") {
                column += " NOT NULL";
            }
            columns.push(column);
        }
        out.push(format!(
            "CREATE FOREIGN TABLE {}.{} (\n  {}\n) SERVER {}\nOPTIONS (schema_name {remote}, table_name {})",
            quote_name(&import.local),
            quote_name(&table),
            columns.join(",\n  "),
            quote_name(&server.name),
            quote_literal(&table)
        ));
    }
    Ok(out)
}
