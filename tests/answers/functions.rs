//! Every immutable and stable function and operator that both servers have is called with odd values, and
//! gives here what it gives on PostgreSQL 15: the value as text, its type, or the SQLSTATE of the error.
//!
//! The functions come from `pg_proc` and `pg_operator` of both servers, the values from
//! `tests/functions/values.txt`: a line a type, with bounds, infinities, NULL, empty and long ones. What may
//! differ stands in `tests/functions/differs.txt`, each with the reason. What the catalog names but has no
//! body here (`42883`, `0A000`) is counted, not compared.
//!
//! ```text
//! FUNCTIONS=all           makes up to 60 calls of each instead of 4
//! FUNCTIONS_SEED=n        chooses other calls
//! FUNCTION=name           only functions and operators of this name
//! FUNCTIONS_REPORT=file   writes every call that differs to a file
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use crate::support::client::{Answer, Client};
use crate::support::{Oracle, Server, TempDir, warn_moved};

/// Calls of one function or operator: in `make test`, and with `FUNCTIONS=all`.
const CALLS: (usize, usize) = (4, 60);
/// Calls that are sent at once.
const BATCH: usize = 100;
/// Functions that differ and are shown.
const SHOWN_MAX: usize = 40;
/// Functions that another minor release of PostgreSQL may have mended: so many that differ beside it are a warning.
const MOVED_MAX: usize = 10;

/// What is called: a function's quoted name, or an operator.
#[derive(Clone, Debug)]
struct Callee {
    name: String,
    /// As regtype prints them; for a prefix operator the left one is missing.
    args: Vec<String>,
    operator: bool,
}

impl Callee {
    /// `name(type, type)`, as `differs.txt` has it.
    fn signature(&self) -> String {
        format!("{}({})", self.name, self.args.join(","))
    }

    fn call(&self, values: &[String]) -> String {
        let args: Vec<String> = self
            .args
            .iter()
            .zip(values)
            .map(|(ty, value)| match value.as_str() {
                "NULL" => format!("null::{ty}"),
                value => format!("'{}'::{ty}", value.replace('\'', "''")),
            })
            .collect();
        match (self.operator, args.as_slice()) {
            (true, [left, right]) => {
                format!("({left}) operator(pg_catalog.{}) ({right})", self.name)
            }
            (true, [right]) => format!("operator(pg_catalog.{}) ({right})", self.name),
            _ => format!("pg_catalog.{}({})", self.name, args.join(", ")),
        }
    }
}

/// A small generator of numbers (splitmix64): the same seed chooses the same calls.
struct Random(u64);

impl Random {
    /// One function's own: its calls do not hang on which others there are.
    fn of(seed: u64, signature: &str) -> Random {
        let step = |hash: u64, b: u8| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        Random(signature.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, step))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

const FUNCTIONS: &str = "select 'f', quote_ident(p.proname), coalesce((select string_agg(format_type(t, null), ';' \
     order by n) from unnest(p.proargtypes::oid[]) with ordinality a(t, n)), '') \
     from pg_catalog.pg_proc p where p.provolatile in ('i', 's') and p.prokind = 'f' and not p.proretset \
     and p.pronamespace = 'pg_catalog'::regnamespace and p.pronargs between 1 and 5";
const OPERATORS: &str = "select 'o', o.oprname, case when o.oprleft = 0 then '' else \
     format_type(o.oprleft, null) || ';' end || format_type(o.oprright, null) \
     from pg_catalog.pg_operator o where o.oprnamespace = 'pg_catalog'::regnamespace";

/// What a server has.
fn callees(client: &mut Client) -> Vec<Callee> {
    let mut out = Vec::new();
    for sql in [FUNCTIONS, OPERATORS] {
        let answer = client.query(sql).expect("the server answers");
        assert!(answer.error.is_none(), "{:?}", answer.error);
        for row in answer.rows {
            let field = |n: usize| row[n].clone().unwrap_or_default();
            let args = field(2).split(';').map(str::to_owned).collect();
            out.push(Callee { name: field(1), args, operator: field(0) == "o" });
        }
    }
    out
}

/// A file of `tests/functions`, without comments and blank lines.
fn lines_of(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/functions");
    let text =
        std::fs::read_to_string(folder.join(name)).expect("the file is part of the repository");
    text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(str::to_owned).collect()
}

/// Values by type: `type: value | value | …`.
fn pools() -> HashMap<String, Vec<String>> {
    let mut pools = HashMap::new();
    for line in lines_of("values.txt") {
        let (types, values) = line.split_once(": ").expect("a line is `type: values`");
        let mut values: Vec<String> = values.split(" | ").map(unescaped).collect();
        values.push("NULL".to_owned());
        for ty in types.split(", ") {
            pools.insert(ty.to_owned(), values.clone());
        }
    }
    pools
}

/// `(empty)` and `(value*1000)`.
fn unescaped(value: &str) -> String {
    let inner = value.strip_prefix('(').and_then(|v| v.strip_suffix(')'));
    match inner {
        Some("empty") => String::new(),
        Some("blank") => " ".to_owned(),
        Some(inner) => match inner.rsplit_once('*').and_then(|(v, n)| Some((v, n.parse().ok()?))) {
            Some((value, times)) => value.repeat(times),
            None => value.to_owned(),
        },
        None => value.to_owned(),
    }
}

/// What may differ: what stands before the reason.
fn differing() -> HashSet<String> {
    let pair = |line: String| {
        let (name, reason) = line.split_once(" -- ").expect("a line is `name -- reason`");
        assert!(!reason.is_empty());
        name.to_owned()
    };
    lines_of("differs.txt").into_iter().map(pair).collect()
}

/// Whether a line of `differs.txt` means this: `name`, `name(types)`, or `name*`.
fn is_named(known: &str, name: &str, signature: &str) -> bool {
    match known.strip_suffix('*') {
        Some(start) if start.len() > 1 => name.starts_with(start),
        _ => known == name || known == signature,
    }
}

/// An answer, to be compared.
fn shown(answer: &Answer) -> String {
    match &answer.error {
        Some((code, _)) => format!("ERROR {code}"),
        None => {
            let row = answer.rows.first().map(|row| {
                row.iter().map(|v| v.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" : ")
            });
            row.unwrap_or_default()
        }
    }
}

/// The calls to make of one callee.
fn calls(
    callee: &Callee,
    pools: &HashMap<String, Vec<String>>,
    most: usize,
    random: &mut Random,
) -> Vec<String> {
    let lists: Vec<&Vec<String>> = callee.args.iter().filter_map(|ty| pools.get(ty)).collect();
    let all: usize =
        lists.iter().map(|l| l.len()).try_fold(1usize, usize::checked_mul).unwrap_or(usize::MAX);
    let mut seen = HashSet::new();
    for n in 0..most.min(all) * 2 {
        if seen.len() == most.min(all) {
            break;
        }
        let values: Vec<String> = lists
            .iter()
            .map(|list| {
                if all <= most {
                    list[n % list.len()].clone()
                } else {
                    list[random.below(list.len())].clone()
                }
            })
            .collect();
        seen.insert(callee.call(&values));
    }
    let mut calls: Vec<String> = seen.into_iter().collect();
    calls.sort();
    calls
}

#[test]
fn functions_and_operators_answer_as_on_postgresql() {
    let (all, only) = (std::env::var("FUNCTIONS").is_ok(), std::env::var("FUNCTION").ok());
    let seed = std::env::var("FUNCTIONS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(15);
    let most = if all || only.is_some() { CALLS.1 } else { CALLS.0 };
    let oracle = Oracle::start();
    let dir = TempDir::new("functions");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut theirs = Client::connect(oracle.port).expect("PostgreSQL runs");
    let mut ours = Client::connect(server.port).expect("the server runs");
    let setup =
        "set timezone = 'Europe/Paris'; set statement_timeout = '20s'; set lc_monetary = 'C'";
    for client in [&mut theirs, &mut ours] {
        let answer = client.query(setup).expect("the server answers");
        assert!(answer.error.is_none(), "{:?}", answer.error);
    }
    let known: HashSet<String> = callees(&mut ours).iter().map(Callee::signature).collect();
    let (pools, differing) = (pools(), differing());
    let mut statements: Vec<(String, String)> = Vec::new();
    let mut called = 0;
    for callee in callees(&mut theirs) {
        let signature = callee.signature();
        let wanted = only.as_ref().is_none_or(|name| callee.name == *name)
            && known.contains(&signature)
            && callee.args.iter().all(|ty| pools.contains_key(ty))
            && !differing.iter().any(|known| is_named(known, &callee.name, &signature));
        if !wanted {
            continue;
        }
        called += 1;
        let mut random = Random::of(seed, &signature);
        for call in calls(&callee, &pools, most, &mut random) {
            if differing.contains(&format!("call {call}")) {
                continue;
            }
            statements.push((
                signature.clone(),
                format!("select x, pg_typeof(x) from (select {call} as x) s"),
            ));
        }
    }
    let mut missing = HashSet::new();
    let mut differ: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    for batch in statements.chunks(BATCH) {
        let texts: Vec<String> = batch.iter().map(|(_, sql)| sql.clone()).collect();
        let here = std::thread::scope(|scope| {
            let here = scope.spawn(|| ours.query_all(&texts));
            let there = theirs.query_all(&texts).expect("PostgreSQL answers");
            (
                here.join().expect("no panic").unwrap_or_else(|e| panic!("{e} after {texts:#?}")),
                there,
            )
        });
        for (((signature, sql), here), there) in batch.iter().zip(&here.0).zip(&here.1) {
            let (here, there) = (shown(here), shown(there));
            if here == "ERROR 42883" || here == "ERROR 0A000" {
                missing.insert(signature.clone());
            } else if here != there {
                differ.entry(signature.clone()).or_default().push((sql.clone(), here, there));
            }
        }
    }
    let count: usize = differ.values().map(Vec::len).sum();
    let summary = format!(
        "{} calls of {called} functions and operators; {count} of {} differ; {} have no body here",
        statements.len(),
        differ.len(),
        missing.len()
    );
    println!("{summary}");
    let cut = |text: &str| text.chars().take(200).collect::<String>();
    let mut report = String::new();
    for (signature, calls) in &differ {
        let _ = writeln!(report, "{signature}: {} differ", calls.len());
        for (sql, here, there) in calls {
            let _ = writeln!(
                report,
                "    {}\n        ours: {}\n        PostgreSQL: {}",
                cut(sql),
                cut(here),
                cut(there)
            );
        }
    }
    if let Ok(path) = std::env::var("FUNCTIONS_REPORT") {
        std::fs::write(path, &report).expect("the report's file can be written");
    }
    let first: Vec<&str> = report.lines().take(SHOWN_MAX * 4).collect();
    if !oracle.is_followed() && differ.len() <= MOVED_MAX {
        warn_moved(&first.join("\n"));
        return;
    }
    assert!(differ.is_empty(), "{summary}\n{}", first.join("\n"));
}
