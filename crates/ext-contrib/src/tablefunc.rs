//! tablefunc: rows turned into columns (`crosstab`), trees as rows (`connectby`), normally distributed numbers.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Oid, Result, bail, err};
use exec::context::ExecContext;
use exec::native::{Native, SetCall, Symbols};
use exec::spi;
use types::datum::Shape;
use types::extension::Library;
use types::func::{Body, quote_literal};
use types::oids::{INT4, RECORD, TEXT};
use types::{Datum, FormatContext};

use crate::common::{Bodies, random, text_of};

/// The extension's code.
pub static LIBRARY: Library = Library { name: "tablefunc", bodies, ..Library::EMPTY };

/// The functions that run queries.
pub const SYMBOLS: Symbols = &[
    ("crosstab", Native::Set(crosstab)),
    ("crosstab_hash", Native::Set(crosstab_hash)),
    ("connectby_text", Native::Set(|call, cx| connect_by(call, false, cx))),
    ("connectby_text_serial", Native::Set(|call, cx| connect_by(call, true, cx))),
];

fn bodies() -> Bodies {
    vec![("normal_rand", Body::Set(|args, _| normal_rand(args)))]
}

/// The columns that the caller wants.
fn wanted(call: &SetCall<'_>) -> Result<Arc<Shape>> {
    if let Some(columns) = call.wanted {
        return Ok(Arc::new(Shape { ty: RECORD, columns: columns.to_vec() }));
    }
    types::user::shape(call.signature.result).ok_or_else(|| {
        err!(
            FEATURE_NOT_SUPPORTED,
            "function returning record called in context that cannot accept type record"
        )
    })
}

fn invalid_return(detail: impl Into<String>) -> base::Error {
    err!(DATATYPE_MISMATCH, "invalid return type").detail(detail)
}

/// A value as one of another type, by its text.
fn as_type(value: &Datum, ty: Oid, wanted: Oid, cx: &FormatContext) -> Result<Datum> {
    if value.is_null() || ty == wanted {
        return Ok(value.clone());
    }
    types::io::input(wanted, -1, &text_of(ty, value, cx)?, cx)
}

fn crosstab(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let (prepared, rows) = spi::rows_in_session(call.args[0].as_str(), cx)?;
    let types: Vec<Oid> = prepared.columns.iter().map(|c| c.ty).collect();
    let [row_type, _, value_type] = types[..] else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid source data SQL statement")
            .detail("The provided SQL must return 3 columns: rowid, category, and values."));
    };
    let shape = wanted(call)?;
    let mismatch = || err!(SYNTAX_ERROR, "return and sql tuple descriptions are incompatible");
    let columns = &shape.columns;
    if columns.len() < 2 {
        return Err(mismatch());
    }
    if columns[0].1 != row_type {
        return Err(invalid_return("SQL rowid datatype does not match return rowid datatype."));
    }
    if columns[1..].iter().any(|c| c.1 != value_type) {
        return Err(mismatch());
    }
    let mut out: Vec<Datum> = Vec::new();
    let mut group: Option<Vec<Datum>> = None;
    for row in rows {
        sched::check_interrupts()?;
        match &mut group {
            Some(fields) if fields[0] == row[0] => {
                if fields.len() < columns.len() {
                    fields.push(row[2].clone());
                }
            }
            _ => {
                let before = group.replace(vec![row[0].clone(), row[2].clone()]);
                out.extend(before.map(|fields| filled(fields, &shape)));
            }
        }
    }
    out.extend(group.map(|fields| filled(fields, &shape)));
    Ok(out)
}

/// A row with NULL in the columns at its end.
fn filled(mut fields: Vec<Datum>, shape: &Arc<Shape>) -> Datum {
    fields.resize(shape.columns.len(), Datum::Null);
    Datum::record(shape.clone(), fields)
}

/// The categories that a query names, by their texts.
fn categories(text: &str, cx: &mut ExecContext<'_>) -> Result<HashMap<String, usize>> {
    let (prepared, rows) = spi::rows_in_session(text, cx)?;
    let [column] = &prepared.columns[..] else { return Err(no_categories()) };
    if rows.is_empty() {
        return Err(no_categories());
    }
    let mut out = HashMap::new();
    for row in &rows {
        if row[0].is_null() {
            bail!(SYNTAX_ERROR, "provided \"categories\" SQL must not return NULL values");
        }
        let next = out.len();
        if out.insert(text_of(column.ty, &row[0], cx.format)?, next).is_some() {
            bail!(DUPLICATE_OBJECT, "duplicate category name");
        }
    }
    Ok(out)
}

fn no_categories() -> base::Error {
    err!(SYNTAX_ERROR, "provided \"categories\" SQL must return 1 column of at least one row")
}

fn crosstab_hash(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let shape = wanted(call)?;
    let categories = categories(call.args[1].as_str(), cx)?;
    let (prepared, rows) = spi::rows_in_session(call.args[0].as_str(), cx)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let types: Vec<Oid> = prepared.columns.iter().map(|c| c.ty).collect();
    let Some(extra) = types.len().checked_sub(2).filter(|n| *n > 0) else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid source data SQL statement")
            .detail("The provided SQL must return 3  columns; rowid, category, and values."));
    };
    let columns = &shape.columns;
    if columns.len() != extra + categories.len() {
        return Err(err!(SYNTAX_ERROR, "invalid return type").detail(format!(
            "Query-specified return tuple has {} columns but crosstab returns {}.",
            columns.len(),
            extra + categories.len()
        )));
    }
    let mut out: Vec<Datum> = Vec::new();
    let mut group: Option<(Datum, Vec<Datum>)> = None;
    for row in &rows {
        sched::check_interrupts()?;
        if group.as_ref().is_none_or(|(id, _)| *id != row[0]) {
            let mut fields = Vec::with_capacity(columns.len());
            for n in 0..extra {
                fields.push(as_type(&row[n], types[n], columns[n].1, cx.format)?);
            }
            fields.resize(columns.len(), Datum::Null);
            let before = group.replace((row[0].clone(), fields));
            out.extend(before.map(|(_, fields)| filled(fields, &shape)));
        }
        if row[extra].is_null() {
            continue;
        }
        let category = text_of(types[extra], &row[extra], cx.format)?;
        if let (Some(n), Some((_, fields))) = (categories.get(&category), &mut group) {
            let at = extra + n;
            fields[at] = as_type(&row[extra + 1], types[extra + 1], columns[at].1, cx.format)?;
        }
    }
    out.extend(group.map(|(_, fields)| filled(fields, &shape)));
    Ok(out)
}

/// A tree to be walked.
struct Tree<'a> {
    /// The query of a key's children, without the key.
    table: &'a str,
    key: &'a str,
    parent: &'a str,
    order: Option<&'a str>,
    /// 0: none.
    depth_max: i64,
    delimiter: &'a str,
    with_branch: bool,
    shape: Arc<Shape>,
}

/// A row that was found and whose children are to be sought.
struct Place {
    key: String,
    branch: String,
    level: i64,
    fields: Vec<Datum>,
}

fn connect_by(call: &SetCall<'_>, serial: bool, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let args = call.args;
    let text = |n: usize| args.get(n).map(Datum::as_str);
    let shift = usize::from(serial);
    let tree = Tree {
        table: text(0).unwrap_or_default(),
        key: text(1).unwrap_or_default(),
        parent: text(2).unwrap_or_default(),
        order: if serial { text(3) } else { None },
        depth_max: args.get(4 + shift).and_then(Datum::to_i64).unwrap_or_default(),
        delimiter: text(5 + shift).unwrap_or("~"),
        with_branch: args.len() > 5 + shift,
        shape: wanted(call)?,
    };
    tree.check(serial)?;
    let start = text(3 + shift).unwrap_or_default();
    tree.walk(start, serial, cx)
}

impl Tree<'_> {
    fn check(&self, serial: bool) -> Result<()> {
        let columns: Vec<Oid> = self.shape.columns.iter().map(|c| c.1).collect();
        if columns.len() != 3 + usize::from(self.with_branch) + usize::from(serial) {
            return Err(invalid_return(
                "Query-specified return tuple has wrong number of columns.",
            ));
        }
        if columns[0] != columns[1] {
            return Err(invalid_return("First two columns must be the same type."));
        }
        if columns[2] != INT4 {
            return Err(invalid_return("Third column must be type integer."));
        }
        if self.with_branch && columns[3] != TEXT {
            return Err(invalid_return("Fourth column must be type text."));
        }
        if serial && columns.last() != Some(&INT4) {
            let which = if self.with_branch { "fifth" } else { "fourth" };
            bail!(
                DATATYPE_MISMATCH,
                "query-specified return tuple not valid for Connectby: {which} column must be type integer"
            );
        }
        Ok(())
    }

    /// The rows from the start downwards, each before its children.
    fn walk(&self, start: &str, serial: bool, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
        let key_type = self.shape.columns[0].1;
        let first = types::io::input(key_type, -1, start, cx.format)?;
        let mut fields = vec![first, Datum::Null, Datum::Int4(0)];
        if self.with_branch {
            fields.push(Datum::text(start));
        }
        let (key, branch) = (start.to_owned(), start.to_owned());
        let mut open = vec![Place { key, branch, level: 0, fields }];
        let mut out = Vec::new();
        while let Some(mut place) = open.pop() {
            sched::check_interrupts()?;
            let mut fields = std::mem::take(&mut place.fields);
            if serial {
                fields.push(Datum::Int4(out.len() as i32 + 1));
            }
            out.push(Datum::record(self.shape.clone(), fields));
            if self.depth_max <= 0 || place.level < self.depth_max {
                let mut children = self.children(&place, cx)?;
                children.reverse();
                open.append(&mut children);
            }
        }
        Ok(out)
    }

    fn children(&self, of: &Place, cx: &mut ExecContext<'_>) -> Result<Vec<Place>> {
        let Tree { table, key, parent, .. } = self;
        let order = self.order.map_or(String::new(), |column| format!(" ORDER BY {column}"));
        let start = quote_literal(&of.key);
        let query = format!(
            "SELECT {key}, {parent} FROM {table} WHERE {parent} = {start} AND {key} IS NOT NULL AND {key} <> {parent}{order}"
        );
        let (prepared, rows) = spi::rows_in_session(&query, cx)?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = self.shape.columns[0].1;
        let types = [prepared.columns[0].ty, prepared.columns[1].ty];
        for (ty, which) in types.iter().zip(["key", "parent key"]) {
            if *ty != wanted {
                return Err(invalid_return(format!(
                    "SQL {which} field type {} does not match return {which} field type {}.",
                    types::io::format_type(*ty, -1),
                    types::io::format_type(wanted, -1)
                )));
            }
        }
        let between = self.delimiter;
        let above = format!("{between}{}{between}", of.branch);
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let key = text_of(wanted, &row[0], cx.format)?;
            if above.contains(&format!("{between}{key}{between}")) {
                bail!(INVALID_RECURSION, "infinite recursion detected");
            }
            let branch = format!("{}{between}{key}", of.branch);
            let level = of.level + 1;
            let mut fields = vec![row[0].clone(), row[1].clone(), Datum::Int4(level as i32)];
            if self.with_branch {
                fields.push(Datum::text(&branch));
            }
            out.push(Place { key, branch, level, fields });
        }
        Ok(out)
    }
}

/// Numbers by G. Marsaglia's polar form of the Box–Muller transform.
fn normal_rand(args: &[Datum]) -> Result<Vec<Datum>> {
    let (Some(count), Datum::Float8(mean), Datum::Float8(deviation)) =
        (args[0].to_i64(), &args[1], &args[2])
    else {
        return Ok(Vec::new());
    };
    let count = usize::try_from(count)
        .map_err(|_| err!(INVALID_PARAMETER_VALUE, "number of rows cannot be negative"))?;
    let mut seed = [0; 8];
    random(&mut seed)?;
    let mut state = u64::from_le_bytes(seed) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    };
    let mut out = Vec::new();
    while out.len() < count {
        if out.len() % 1024 == 0 {
            sched::check_interrupts()?;
        }
        let (a, b) = (uniform(), uniform());
        let square = a * a + b * b;
        if square >= 1.0 || square == 0.0 {
            continue;
        }
        let scale = (-2.0 * square.ln() / square).sqrt();
        for one in [a, b] {
            if out.len() < count {
                out.push(Datum::Float8(one * scale * deviation + mean));
            }
        }
    }
    Ok(out)
}
