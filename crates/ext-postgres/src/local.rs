//! The functions of dblink about tables of this server: their primary keys, and statements that carry a row elsewhere.

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::AclKind;
use catalog::acl::privilege;
use exec::context::ExecContext;
use exec::native::SetCall;
use exec::{nested, rights, spi};
use types::datum::Shape;
use types::func::{quote_ident, quote_literal};
use types::oids::{INT4, RECORD, REGCLASS, TEXT};
use types::{Datum, FormatContext};

/// A table that the role may read, and its columns.
struct Local {
    oid: u32,
    /// As statements of the session name it.
    name: String,
    columns: Vec<String>,
}

impl Local {
    fn find(name: &Datum, cx: &mut ExecContext<'_>) -> Result<Local> {
        let found = types::io::input(REGCLASS, -1, name.as_str(), cx.format)?;
        let oid = match &found {
            Datum::Oid(oid) => *oid,
            other => other.to_i64().unwrap_or_default() as u32,
        };
        let view = cx.catalog_tx.view();
        let short = view.table(oid).map_or("", |table| table.name.as_str());
        rights::require(cx, AclKind::Table, oid, privilege::SELECT, short)?;
        let mut columns = Vec::new();
        let question = format!(
            "SELECT attname::text FROM pg_catalog.pg_attribute
             WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        );
        spi::query(&question, cx, &mut |row| {
            columns.push(row[0].as_str().to_owned());
            Ok(())
        })?;
        let name = nested::text_of(&Datum::Oid(oid), REGCLASS, cx)?;
        Ok(Local { oid, name, columns })
    }

    /// `a = 'x' AND b IS NULL` for the columns of a key.
    fn condition(&self, key: &[usize], values: &[Option<String>]) -> String {
        let one = |(column, value): (&usize, &Option<String>)| {
            let name = quote_ident(&self.columns[*column]);
            match value {
                Some(value) => format!("{name} = {}", quote_literal(value)),
                None => format!("{name} IS NULL"),
            }
        };
        let all: Vec<String> = key.iter().zip(values).map(one).collect();
        all.join(" AND ")
    }

    /// The values of the row with this key, as texts, with those of another key in their places.
    fn row(
        &self,
        key: &[usize],
        (from, to): (&[Option<String>], &[Option<String>]),
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Option<String>>> {
        let names: Vec<String> = self.columns.iter().map(|c| quote_ident(c)).collect();
        let condition = self.condition(key, from);
        let text = format!("SELECT {} FROM {} WHERE {condition}", names.join(", "), self.name);
        let (prepared, mut rows) = spi::rows_in_session(&text, cx)?;
        if rows.len() > 1 {
            base::bail!(CARDINALITY_VIOLATION, "source criteria matched more than one record");
        }
        let row = rows.pop().ok_or_else(|| err!(CARDINALITY_VIOLATION, "source row not found"))?;
        let mut texts = Vec::with_capacity(row.len());
        for (value, column) in row.iter().zip(&prepared.columns) {
            texts.push(match value {
                Datum::Null => None,
                value => Some(nested::text_of(value, column.ty, cx)?),
            });
        }
        for (column, value) in key.iter().zip(to) {
            texts[*column].clone_from(value);
        }
        Ok(texts)
    }

    /// The columns of a key, by their places among those that are there.
    fn key(&self, places: &Datum, count: &Datum) -> Result<Vec<usize>> {
        let count = usize::try_from(count.to_i64().unwrap_or_default()).unwrap_or(0);
        if count == 0 {
            base::bail!(INVALID_PARAMETER_VALUE, "number of key attributes must be > 0");
        }
        let place = |item: &Datum| {
            let number = item.to_i64().unwrap_or_default();
            let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
            at.filter(|at| *at < self.columns.len())
                .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid attribute number {number}"))
        };
        places.as_array().items.iter().take(count).map(place).collect()
    }
}

/// The texts of an array with as many items as a key has columns; `what` it is, for the message.
fn values(
    value: &Datum,
    key: &[usize],
    what: &str,
    cx: &FormatContext,
) -> Result<Vec<Option<String>>> {
    let items = &value.as_array().items;
    if items.len() != key.len() {
        base::bail!(
            ARRAY_SUBSCRIPT_ERROR,
            "{what} key array length must match number of key attributes"
        );
    }
    let text = |item: &Datum| match item {
        Datum::Null => Ok(None),
        item => types::io::to_text(TEXT, item, cx).map(|text| Some(text.into())),
    };
    items.iter().map(text).collect()
}

fn literal(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "NULL".to_owned(), |text| quote_literal(text))
}

/// `dblink_build_sql_insert`.
///
/// # Errors
/// `42P01`, `42501`, `22023`, `2202E`; `21000` unless there is one row.
pub fn build_insert(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let local = Local::find(&args[0], cx)?;
    let key = local.key(&args[1], &args[2])?;
    let (from, to) = (
        values(&args[3], &key, "source", cx.format)?,
        values(&args[4], &key, "target", cx.format)?,
    );
    let row = local.row(&key, (&from, &to), cx)?;
    let names: Vec<String> = local.columns.iter().map(|c| quote_ident(c)).collect();
    let all: Vec<String> = row.iter().map(literal).collect();
    let text = format!("INSERT INTO {}({}) VALUES({})", local.name, names.join(","), all.join(","));
    Ok(Datum::text(&text))
}

/// `dblink_build_sql_update`.
///
/// # Errors
/// As [`build_insert`].
pub fn build_update(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let local = Local::find(&args[0], cx)?;
    let key = local.key(&args[1], &args[2])?;
    let (from, to) = (
        values(&args[3], &key, "source", cx.format)?,
        values(&args[4], &key, "target", cx.format)?,
    );
    let row = local.row(&key, (&from, &to), cx)?;
    let set = |(name, value): (&String, &Option<String>)| {
        format!("{} = {}", quote_ident(name), literal(value))
    };
    let all: Vec<String> = local.columns.iter().zip(&row).map(set).collect();
    let condition = local.condition(&key, &to);
    let text = format!("UPDATE {} SET {} WHERE {condition}", local.name, all.join(", "));
    Ok(Datum::text(&text))
}

/// `dblink_build_sql_delete`.
///
/// # Errors
/// As [`build_insert`], whatever rows there are.
pub fn build_delete(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let local = Local::find(&args[0], cx)?;
    let key = local.key(&args[1], &args[2])?;
    let to = values(&args[3], &key, "target", cx.format)?;
    let text = format!("DELETE FROM {} WHERE {}", local.name, local.condition(&key, &to));
    Ok(Datum::text(&text))
}

/// `dblink_get_pkey`: the columns of a table's primary key, in its order.
///
/// # Errors
/// `42P01`, `42501`.
pub fn primary_key(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let local = Local::find(&call.args[0], cx)?;
    let shape = types::user::shape(call.signature.result).unwrap_or_else(|| {
        let columns: Vec<(_, Oid)> = vec![("position".into(), INT4), ("colname".into(), TEXT)];
        Arc::new(Shape { ty: RECORD, columns })
    });
    let question = format!(
        "SELECT attname::text FROM pg_catalog.pg_index, unnest(indkey) WITH ORDINALITY AS k (place, n)
         JOIN pg_catalog.pg_attribute ON attrelid = {oid} AND attnum = place
         WHERE indrelid = {oid} AND indisprimary ORDER BY n",
        oid = local.oid
    );
    let mut out = Vec::new();
    spi::query(&question, cx, &mut |row| {
        let position = Datum::Int4(out.len() as i32 + 1);
        out.push(Datum::record(shape.clone(), vec![position, row[0].clone()]));
        Ok(())
    })?;
    Ok(out)
}
