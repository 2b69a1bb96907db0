//! Reads `table/*.txt` once, joins rows with bodies, and answers look-ups by oid and name.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use base::{Oid, Result};

use super::{
    AggregateRow, Body, CallTypes, CastContext, CastMethod, CastRow, FunctionRow, InHelpers,
    NamedBody, OperatorRow, Volatility, aggregate, session,
};
use crate::Datum;
use crate::io::{self, FormatContext, TypeIo};
use crate::open::{self, Package};
use crate::row;

/// The bodies of each family.
const FAMILIES: &[fn() -> Vec<NamedBody>] = &[
    super::int::bodies,
    super::float::bodies,
    super::numeric::bodies,
    super::compare::bodies,
    super::text::bodies,
    super::cast::bodies,
    super::datetime::bodies,
    super::like::bodies,
    super::regex::bodies,
    super::array::bodies,
    super::series::bodies,
    super::encode::bodies,
    super::enums::bodies,
    super::template::bodies,
    super::common_values::bodies,
    super::json::bodies,
    super::jsonb::bodies,
    super::range::bodies,
    super::network::bodies,
    super::bits::bodies,
    super::lsn::bodies,
    super::typmods::bodies,
    super::money::bodies,
    super::timetz::bodies,
    super::hash::bodies,
    super::more_text::bodies,
];

/// Rows sorted by name, found by oid and by name.
struct Table<T: 'static> {
    rows: Vec<T>,
    by_oid: HashMap<Oid, u32>,
    by_name: HashMap<&'static str, Range<usize>>,
}

impl<T> Table<T> {
    fn new(mut rows: Vec<T>, oid: fn(&T) -> Oid, name: fn(&T) -> &'static str) -> Table<T> {
        rows.sort_by_key(|r| (name(r), oid(r)));
        let by_oid = rows.iter().enumerate().map(|(i, r)| (oid(r), i as u32)).collect();
        let mut by_name: HashMap<_, Range<usize>> = HashMap::new();
        for (i, r) in rows.iter().enumerate() {
            by_name.entry(name(r)).or_insert(i..i).end = i + 1;
        }
        Table { rows, by_oid, by_name }
    }

    fn get(&self, oid: Oid) -> Option<&T> {
        self.by_oid.get(&oid).map(|i| &self.rows[*i as usize])
    }

    fn named(&self, name: &str) -> &[T] {
        self.by_name.get(name).map_or(&[], |range| &self.rows[range.clone()])
    }
}

/// The fields of each row of a table file and of those of the packages.
fn rows(
    own: &'static str,
    of: fn(&Package) -> &'static str,
) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = open::tables(own, of).flat_map(str::lines);
    lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(|l| l.split('\t').collect())
}

fn oid(field: &str) -> Oid {
    Oid(field.parse().expect("the tables are checked by a test"))
}

fn oid_list(field: &str) -> &'static [Oid] {
    Vec::leak(field.split_ascii_whitespace().map(oid).collect())
}

fn function_table() -> &'static Table<FunctionRow> {
    static TABLE: OnceLock<Table<FunctionRow>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families = FAMILIES.iter().copied().chain(open::packages().iter().map(|p| p.bodies));
        let bodies: HashMap<&str, Body> = families.flat_map(|family| family()).collect();
        let rows = rows(include_str!("../table/functions.txt"), |p| p.functions)
            .filter_map(|f| function_row(&f, &bodies))
            .collect();
        Table::new(rows, |r| r.oid, |r| r.name)
    })
}

fn function_row(f: &[&'static str], bodies: &HashMap<&str, Body>) -> Option<FunctionRow> {
    let flags = f[3].as_bytes();
    let returns_set = flags[1] == b'r';
    let of_session = || session::of_row(f[0], f[2], returns_set).map(Body::Session);
    let body = match bodies.get(f[2]).copied().or_else(of_session) {
        Some(body) => body,
        // Every type's output functions are one.
        None if f[4] == "2275" && !f[5].contains(' ') => Body::Typed(output_function),
        None if f[4] == "17" && f[0].ends_with("send") => Body::Typed(send_function),
        None => return None,
    };
    let volatility = match flags[2] {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        _ => Volatility::Volatile,
    };
    let defaults: &[&str] = match f[6] {
        "" => &[],
        list => Vec::leak(list.split(", ").collect()),
    };
    Some(FunctionRow {
        oid: oid(f[1]),
        name: f[0],
        args: oid_list(f[5]),
        defaults,
        variadic: flags[3] == b'v',
        result: oid(f[4]),
        columns: column_list(f.get(7).copied().unwrap_or("")),
        returns_set,
        // A NULL among several ranges is an error, not the result.
        strict: flags[0] == b's' && f[2] != "multirange_constructor2",
        volatility,
        body,
        operator: Oid::INVALID,
        helpers: InHelpers::Never,
    })
}

fn output_function(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    io::to_text(types.args[0], &a[0], cx).map(Datum::Text)
}

fn send_function(a: &[Datum], types: CallTypes<'_>, _cx: &FormatContext) -> Result<Datum> {
    let mut out = Vec::new();
    io::send(types.args[0], &a[0], &mut out)?;
    Ok(Datum::bytea(&out))
}

/// `key:25 value:114`.
fn column_list(field: &'static str) -> &'static [(&'static str, Oid)] {
    let column = |c: &'static str| c.split_once(':').map(|(name, ty)| (name, oid(ty)));
    Vec::leak(field.split_ascii_whitespace().filter_map(column).collect())
}

fn operator_table() -> &'static Table<OperatorRow> {
    static TABLE: OnceLock<Table<OperatorRow>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows = rows(include_str!("../table/operators.txt"), |p| p.operators)
            .map(|f| OperatorRow {
                oid: oid(f[0]),
                name: f[1],
                left: oid(f[2]),
                right: oid(f[3]),
                result: oid(f[4]),
                function: oid(f[5]),
                commutator: oid(f[6]),
                negator: oid(f[7]),
            })
            .filter(|r| function(r.function).is_some())
            .collect();
        Table::new(rows, |r| r.oid, |r| r.name)
    })
}

fn aggregate_table() -> &'static Table<AggregateRow> {
    static TABLE: OnceLock<Table<AggregateRow>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows = rows(include_str!("../table/aggregates.txt"), |p| p.aggregates)
            .filter_map(|f| {
                let args = oid_list(f[3]);
                let find = |p: &&Package| (p.find_aggregate)(f[0], args);
                let (strict, start) = match aggregate::find(f[0], args) {
                    Some(found) => found,
                    None => open::packages().iter().find_map(find)?,
                };
                let (oid, result) = (oid(f[1]), oid(f[2]));
                Some(AggregateRow { oid, name: f[0], args, result, strict, start })
            })
            .collect();
        Table::new(rows, |r| r.oid, |r| r.name)
    })
}

struct Casts {
    /// `pg_cast`.
    rows: Vec<CastRow>,
    /// The casts that the binder asks for: those, and the ones that PostgreSQL makes up.
    by_types: HashMap<(Oid, Oid), CastRow>,
}

fn cast_table() -> &'static Casts {
    static TABLE: OnceLock<Casts> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows: Vec<CastRow> =
            rows(include_str!("../table/casts.txt"), |p| p.casts).filter_map(cast_row).collect();
        let mut by_types = HashMap::new();
        for row in &rows {
            let mut row = *row;
            // Both types share bits in PostgreSQL, but not the form of their datums here.
            if row.method == CastMethod::Binary && !row::same_form(row.source, row.target) {
                row.method = CastMethod::InOut;
            }
            by_types.insert((row.source, row.target), row);
        }
        made_up_casts(&mut by_types);
        Casts { rows, by_types }
    })
}

fn cast_row(f: Vec<&'static str>) -> Option<CastRow> {
    let context = match f[2] {
        "i" => CastContext::Implicit,
        "a" => CastContext::Assignment,
        _ => CastContext::Explicit,
    };
    let method = match f[3] {
        "b" => CastMethod::Binary,
        "i" => CastMethod::InOut,
        _ => CastMethod::Function(oid(f[4])),
    };
    if let CastMethod::Function(f) = method {
        function(f)?;
    }
    Some(CastRow { source: oid(f[0]), target: oid(f[1]), context, method })
}

/// Anything to a string type on assignment, from one when written, arrays as their elements.
fn made_up_casts(casts: &mut HashMap<(Oid, Oid), CastRow>) {
    let types = || TypeIo::all().iter().filter(|t| t.category != b'P' && t.category != b'X');
    let mut add = |source: &TypeIo, target: &TypeIo, context| {
        let (source, target) = (source.oid, target.oid);
        casts.entry((source, target)).or_insert(CastRow {
            source,
            target,
            context,
            method: CastMethod::InOut,
        });
    };
    for a in types() {
        for b in types().filter(|b| b.oid != a.oid) {
            if b.category == b'S' {
                add(a, b, CastContext::Assignment);
            } else if a.category == b'S' {
                add(a, b, CastContext::Explicit);
            }
        }
    }
    let mut arrays = Vec::new();
    for row in casts.values() {
        let array = |ty| TypeIo::get(ty).map(|t| t.array).filter(|a| *a != Oid::INVALID);
        if let (Some(source), Some(target)) = (array(row.source), array(row.target)) {
            arrays.push(CastRow {
                source,
                target,
                context: row.context,
                method: CastMethod::InOut,
            });
        }
    }
    for row in arrays {
        casts.entry((row.source, row.target)).or_insert(row);
    }
}

/// All functions, sorted by name.
pub fn functions() -> &'static [FunctionRow] {
    &function_table().rows
}
/// The function with this oid.
pub fn function(oid: Oid) -> Option<&'static FunctionRow> {
    function_table().get(oid)
}
/// Those with this name.
pub fn functions_named(name: &str) -> &'static [FunctionRow] {
    function_table().named(name)
}
/// All operators, sorted by name.
pub fn operators() -> &'static [OperatorRow] {
    &operator_table().rows
}
/// The operator with this oid.
pub fn operator(oid: Oid) -> Option<&'static OperatorRow> {
    operator_table().get(oid)
}
/// Those with this name.
pub fn operators_named(name: &str) -> &'static [OperatorRow] {
    operator_table().named(name)
}
/// The rows of `pg_cast`. (The binder asks [`cast`], which knows more.)
pub fn casts() -> &'static [CastRow] {
    &cast_table().rows
}
/// The cast between two types, if there is one: those of `pg_cast`, to and from strings through
/// text, and between arrays whose elements have one.
pub fn cast(source: Oid, target: Oid) -> Option<&'static CastRow> {
    cast_table().by_types.get(&(source, target))
}
/// All aggregates, sorted by name.
pub fn aggregates() -> &'static [AggregateRow] {
    &aggregate_table().rows
}
/// Those with this name.
pub fn aggregates_named(name: &str) -> &'static [AggregateRow] {
    aggregate_table().named(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::oids;

    #[test]
    fn every_body_has_a_row_and_only_one_body() {
        let keys: HashSet<&str> =
            rows(include_str!("../table/functions.txt"), |p| p.functions).map(|f| f[2]).collect();
        let mut seen = HashSet::new();
        for (key, _) in FAMILIES.iter().flat_map(|f| f()) {
            assert!(keys.contains(key), "no row for {key}");
            assert!(seen.insert(key), "two bodies for {key}");
        }
    }

    #[test]
    fn look_ups_find_what_the_tables_say() {
        let plus =
            operators_named("+").iter().find(|o| o.left == oids::INT4 && o.right == oids::INT4);
        assert_eq!(plus.map(|o| (o.oid, o.function)), Some((Oid(551), Oid(177))));
        assert_eq!(function(Oid(177)).map(|f| f.name), Some("int4pl"));
        assert!(functions_named("no_such_function").is_empty());
        let c = cast(oids::INT4, oids::INT8).unwrap();
        assert_eq!((c.context, c.method), (CastContext::Implicit, CastMethod::Function(Oid(481))));
        assert_eq!(cast(oids::INT4, oids::OID).unwrap().method, CastMethod::InOut);
        assert_eq!(cast(oids::VARCHAR, oids::TEXT).unwrap().method, CastMethod::Binary);
        assert_eq!(cast(oids::DATE, oids::TEXT).unwrap().context, CastContext::Assignment);
        assert_eq!(cast(oids::TEXT, oids::DATE).unwrap().context, CastContext::Explicit);
        assert!(cast(oids::DATE, oids::INT4).is_none());
    }
}
