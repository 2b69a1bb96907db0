//! Replays `tests/golden/*.txt`: what PostgreSQL 15 answered to inputs, function calls, casts and
//! aggregates. One case a line, fields by tabs; a result is `=text`, `null` or `!SQLSTATE message`.
//!
//! ```text
//! set   setting  value
//! io    type  typmod  text  result
//! fn    name  result  type  text  type  text …        (text \N: NULL)
//! cast  type  text  type  typmod  result
//! agg   name  type  result  text  text …
//! ```

use base::{Oid, Result};
use types::func::{self, Body, CastMethod, FunctionRow};
use types::io::{self, DateOrder, DateStyle, IntervalStyle, TimeZone};
use types::{Datum, FormatContext, TypeIo, oids};

fn type_oid(name: &str) -> Oid {
    match name {
        "timestamptz" => oids::TIMESTAMPTZ,
        _ => TypeIo::by_name(name).unwrap_or_else(|| panic!("type {name}")).oid,
    }
}

fn unescape(s: &str) -> String {
    let mut out = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(c) => out.push(c),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

fn apply_setting(cx: &mut FormatContext, name: &str, value: &str) {
    match name {
        "DateStyle" => {
            for word in value.split(',').map(str::trim) {
                match word {
                    "ISO" => cx.date_style = DateStyle::Iso,
                    "SQL" => cx.date_style = DateStyle::Sql,
                    "Postgres" => cx.date_style = DateStyle::Postgres,
                    "German" => cx.date_style = DateStyle::German,
                    "MDY" => cx.date_order = DateOrder::Mdy,
                    "DMY" => cx.date_order = DateOrder::Dmy,
                    "YMD" => cx.date_order = DateOrder::Ymd,
                    _ => panic!("DateStyle {word}"),
                }
            }
        }
        "IntervalStyle" => {
            cx.interval_style = match value {
                "postgres" => IntervalStyle::Postgres,
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                _ => IntervalStyle::Iso8601,
            }
        }
        "TimeZone" => cx.time_zone = TimeZone::parse(value).expect("a known zone"),
        "extra_float_digits" => cx.extra_float_digits = value.parse().unwrap(),
        "bytea_output" => cx.bytea_hex = value == "hex",
        _ => panic!("setting {name}"),
    }
}

fn show(ty: Oid, result: Result<Datum>, cx: &FormatContext) -> String {
    match result {
        Err(e) => format!("!{} {}", e.code().as_str(), e.message()),
        Ok(Datum::Null) => "null".to_owned(),
        Ok(value) => {
            // The result's own type decides for polymorphic functions.
            let ty = match TypeIo::get(ty) {
                Some(t) if t.category == b'P' => io::natural_type(&value),
                _ => ty,
            };
            let mut out = b"=".to_vec();
            io::output(ty, &value, cx, &mut out).unwrap();
            let stored = round_trip(ty, &value);
            assert!(types::io::compare(&stored, &value).is_eq(), "row form of {value:?}");
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// Through the row codec and back.
fn round_trip(ty: Oid, value: &Datum) -> Datum {
    let layout = types::row::RowLayout::of_types(&[ty]);
    let (mut bytes, mut back) = (Vec::new(), Vec::new());
    types::row::encode(&layout, std::slice::from_ref(value), &mut bytes).unwrap();
    types::row::decode(&layout, &bytes, &[0], &mut back).unwrap();
    back.remove(0)
}

fn argument(ty: Oid, text: &str, cx: &FormatContext) -> Result<Datum> {
    if text == "\\N" { Ok(Datum::Null) } else { io::input(ty, -1, &unescape(text), cx) }
}

fn resolve(name: &str, args: &[Oid]) -> Option<&'static FunctionRow> {
    let rows = func::functions_named(name);
    rows.iter().find(|r| r.args == args).or_else(|| {
        rows.iter().find(|r| {
            let category = |ty: Oid| TypeIo::get(ty).map(|t| t.category);
            let fits = |(want, have): (&Oid, &Oid)| match *want {
                oids::ANYRANGE | oids::ANYMULTIRANGE => category(*have) == Some(b'R'),
                want => want == *have || category(want) == Some(b'P'),
            };
            (r.args.len() == args.len() || (r.variadic && args.len() >= r.args.len()))
                && r.args.iter().zip(args).all(fits)
        })
    })
}

fn call(name: &str, pairs: &[&str], cx: &FormatContext) -> String {
    let types: Vec<Oid> = pairs.chunks(2).map(|p| type_oid(p[0])).collect();
    let Some(row) = resolve(name, &types) else { return format!("no function {name}{types:?}") };
    let args: Result<Vec<Datum>> =
        pairs.chunks(2).zip(&types).map(|(p, ty)| argument(*ty, p[1], cx)).collect();
    let args = match args {
        Ok(args) => args,
        Err(e) => return format!("!{} {}", e.code().as_str(), e.message()),
    };
    if row.strict && args.iter().any(Datum::is_null) {
        return "null".to_owned();
    }
    match row.body {
        Body::Scalar(body) => show(row.result, body(&args, cx), cx),
        Body::Set(body) => {
            let rows = body(&args, cx).map(|rows| {
                let element = match row.result {
                    oids::ANYELEMENT => rows.first().map_or(oids::TEXT, io::natural_type),
                    ty => ty,
                };
                match rows.first() {
                    None => Datum::Null,
                    Some(Datum::Array(_)) => stack(&rows),
                    Some(_) => Datum::array(element, rows),
                }
            });
            show(oids::ANYARRAY, rows, cx)
        }
        Body::Typed(body) => {
            let call = func::CallTypes { args: &types, result: row.result };
            show(row.result, body(&args, call, cx), cx)
        }
        Body::Session(_) | Body::User => "not of this crate".to_owned(),
    }
}

/// Arrays as one of a dimension more.
fn stack(rows: &[Datum]) -> Datum {
    let all = func::aggregates_named("array_agg");
    let row = all.iter().find(|r| r.args == [oids::ANYARRAY]).expect("array_agg(anyarray)");
    let mut state = (row.start)();
    rows.iter().for_each(|r| state.add(std::slice::from_ref(r)).unwrap());
    state.finish().unwrap()
}

fn cast(from: Oid, text: &str, to: Oid, typmod: i32, cx: &FormatContext) -> String {
    let result = (|| {
        let value = argument(from, text, cx)?;
        let Some(row) = func::cast(from, to) else {
            if from == to {
                return io::apply_typmod(to, typmod, value, true);
            }
            return Err(base::Error::internal("no cast"));
        };
        let value = match row.method {
            CastMethod::Binary => value,
            CastMethod::InOut => io::input(to, -1, &io::to_text(from, &value, cx)?, cx)?,
            CastMethod::Function(oid) => {
                let f = func::function(oid).expect("casts name functions");
                let all = [value, Datum::Int4(typmod), Datum::Bool(true)];
                match f.body {
                    Body::Scalar(body) => body(&all[..f.args.len()], cx)?,
                    _ => return Err(base::Error::internal("cast needs a session")),
                }
            }
        };
        io::apply_typmod(to, typmod, value, true)
    })();
    show(to, result, cx)
}

fn aggregate(name: &str, ty: Oid, values: &[&str], cx: &FormatContext) -> String {
    let rows = func::aggregates_named(name);
    let fits = |args: &[Oid]| match args {
        [oids::ANYENUM] => false,
        [oids::ANYARRAY] => TypeIo::array_element(ty).is_some(),
        [oids::ANYNONARRAY] => TypeIo::array_element(ty).is_none(),
        [t] => TypeIo::get(*t).is_some_and(|t| t.category == b'P'),
        _ => false,
    };
    let row = rows.iter().find(|r| r.args == [ty]).or_else(|| rows.iter().rfind(|r| fits(r.args)));
    let Some(row) = row else { return format!("no aggregate {name}({ty})") };
    let result = (|| {
        // In two halves, so that merging is tested as well; sums of floats depend on the order.
        let float = matches!(ty, oids::FLOAT4 | oids::FLOAT8);
        let mut halves = [(row.start)(), (row.start)()];
        for (i, v) in values.iter().enumerate() {
            let v = argument(ty, v, cx)?;
            if !(row.strict && v.is_null()) {
                halves[usize::from(i >= values.len() / 2 && !float)]
                    .add(std::slice::from_ref(&v))?;
            }
        }
        let [mut first, second] = halves;
        first.merge(second)?;
        first.finish()
    })();
    show(row.result, result, cx)
}

fn run(cx: &mut FormatContext, f: &[&str]) -> Option<(String, String)> {
    let (expected, got) = match f[0] {
        "set" => {
            apply_setting(cx, f[1], f[2]);
            return None;
        }
        "io" => {
            let ty = type_oid(f[1]);
            let value = io::input(ty, f[2].parse().unwrap(), &unescape(f[3]), cx);
            if let Ok(v) = &value {
                let mut binary = Vec::new();
                io::send(ty, v, &mut binary).unwrap();
                let back = io::receive(ty, -1, &binary, cx).unwrap();
                assert!(types::io::compare(v, &back).is_eq(), "binary form of {v:?}");
            }
            (f[4], show(ty, value, cx))
        }
        "fn" => (f[2], call(f[1], &f[3..], cx)),
        "cast" => (f[5], cast(type_oid(f[1]), f[2], type_oid(f[3]), f[4].parse().unwrap(), cx)),
        "agg" => (f[3], aggregate(f[1], type_oid(f[2]), &f[4..], cx)),
        other => panic!("case {other}"),
    };
    Some((unescape(expected), got))
}

fn replay(name: &str, text: &str) {
    let mut cx = FormatContext::default();
    let (mut failures, mut count) = (Vec::new(), 0);
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let Some((expected, got)) = run(&mut cx, &fields) else { continue };
        count += 1;
        if expected != got {
            failures.push(format!("{line}\n    got {got}"));
        }
    }
    assert!(count > 0, "{name} has no cases");
    assert!(
        failures.is_empty(),
        "{name}: {} of {count} differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}

macro_rules! golden {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            replay(stringify!($name), include_str!(concat!("golden/", stringify!($name), ".txt")));
        }
    )* };
}
golden! { numbers datetime strings templates }
