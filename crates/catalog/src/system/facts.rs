//! Facts of PostgreSQL 15's catalogs about its own objects beyond what the server needs to run them:
//! who supports a type or an operator, what functions cost, names of arguments, descriptions.
//!
//! One file a catalog in `facts/`, fields separated by tabs, made from PostgreSQL 15's catalogs;
//! the first comment of each names its fields. A fact is shown only of what the server has:
//! a function that does not run here is in `pg_proc` all the same, for those who look it up.

use std::collections::HashMap;
use std::sync::OnceLock;

use base::Oid;
use types::{Datum, TypeIo, func, oids, opclass};

use super::row::{array, oid};
use crate::object::Id;
use crate::object::ids::{BTREE_AM, INFORMATION_SCHEMA, PG_CATALOG};
use crate::system::tables::{by_oid, lines, tables};

/// A line's fields.
#[derive(Clone, Copy)]
pub(super) struct Fact(&'static [&'static str]);

impl Fact {
    /// The field; empty when it is missing.
    pub(super) fn text(self, n: usize) -> &'static str {
        self.0.get(n).copied().unwrap_or_default()
    }

    /// A field that is an object id; 0 when it is none.
    pub(super) fn id(self, n: usize) -> Id {
        self.text(n).parse().unwrap_or_default()
    }

    /// A field that is an object id, as a value.
    pub(super) fn oid(self, n: usize) -> Datum {
        oid(self.id(n))
    }

    /// A field that is one letter.
    pub(super) fn letter(self, n: usize) -> char {
        self.text(n).chars().next().unwrap_or(' ')
    }

    /// A field that is a truth value.
    pub(super) fn flag(self, n: usize) -> bool {
        self.text(n) == "t"
    }

    /// A small number; 0 when it is none.
    pub(super) fn small(self, n: usize) -> i16 {
        self.text(n).parse().unwrap_or_default()
    }

    /// A text, NULL when it is empty.
    pub(super) fn optional(self, n: usize) -> Datum {
        match self.text(n) {
            "" => Datum::Null,
            text => Datum::Text(text.into()),
        }
    }

    /// Ids separated by blanks.
    pub(super) fn ids(self, n: usize) -> impl Iterator<Item = Id> {
        self.text(n).split(' ').filter_map(|id| id.parse().ok())
    }
}

/// A file's lines, found by their first field.
pub(super) struct Facts {
    lines: Vec<Fact>,
    by_id: HashMap<Id, usize>,
}

impl Facts {
    fn read(text: &'static str) -> Facts {
        let line = |l: &'static str| Fact(Vec::leak(l.split('\t').collect()));
        let lines: Vec<Fact> = lines(text).map(line).collect();
        let by_id = lines.iter().enumerate().map(|(i, l)| (l.id(0), i)).collect();
        Facts { lines, by_id }
    }

    pub(super) fn get(&self, id: Id) -> Option<Fact> {
        self.by_id.get(&id).map(|i| self.lines[*i])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Fact> {
        self.lines.iter().copied()
    }
}

/// One function a file, which reads it once.
macro_rules! files { ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => { $(
    $(#[$doc])*
    pub(super) fn $name() -> &'static Facts {
        static FACTS: OnceLock<Facts> = OnceLock::new();
        FACTS.get_or_init(|| Facts::read($text))
    }
)* } }

files! {
    /// `pg_proc`.
    functions = include_str!("facts/functions.txt");
    /// `pg_aggregate`.
    aggregates = include_str!("facts/aggregates.txt");
    /// `pg_operator`.
    operators = include_str!("facts/operators.txt");
    /// `pg_type`.
    kinds = include_str!("facts/types.txt");
    /// `pg_cast`.
    casts = include_str!("facts/casts.txt");
    /// `pg_opclass`.
    classes = opclass::CLASSES;
    /// `pg_opfamily`.
    families = opclass::FAMILIES;
    /// `pg_amop`.
    family_operators = opclass::FAMILY_OPERATORS;
    /// `pg_amproc`.
    family_functions = opclass::FAMILY_FUNCTIONS;
    /// `pg_get_keywords`.
    keywords = include_str!("facts/keywords.txt");
    /// `pg_collation`, those of ICU.
    collations = include_str!("facts/collations.txt");
    /// `pg_conversion`.
    conversions = include_str!("facts/conversions.txt");
    /// `pg_ts_parser`, `pg_ts_template`, `pg_ts_dict`, `pg_ts_config`.
    text_search = include_str!("facts/text_search.txt");
    /// `pg_ts_config_map`.
    text_search_map = include_str!("facts/text_search_map.txt");
    /// `pg_range`.
    ranges = include_str!("facts/ranges.txt");
}

/// Places of the fields in `types.txt`.
pub(super) mod kind {
    pub const NAME: usize = 12;
    pub const SCHEMA: usize = 13;
    pub const RELATION: usize = 14;
    pub const LENGTH: usize = 15;
    pub const BY_VALUE: usize = 16;
    pub const CATEGORY: usize = 17;
    pub const PREFERRED: usize = 18;
    pub const ELEMENT: usize = 19;
    pub const ARRAY: usize = 20;
    pub const ALIGNMENT: usize = 21;
    pub const COLLATION: usize = 22;
    pub const NOT_NULL: usize = 23;
    pub const BASE: usize = 24;
    pub const TYPMOD: usize = 25;
}

/// Places of the fields in `operators.txt`.
pub(super) mod operator {
    pub const NAME: usize = 5;
    pub const KIND: usize = 6;
    pub const LEFT: usize = 7;
    pub const RIGHT: usize = 8;
    pub const RESULT: usize = 9;
    pub const COMMUTATOR: usize = 10;
    pub const NEGATOR: usize = 11;
    pub const FUNCTION: usize = 12;
}

/// Places of the fields in `functions.txt`.
pub(super) mod field {
    pub const NAME: usize = 1;
    pub const KIND: usize = 2;
    pub const FLAGS: usize = 3;
    pub const LANGUAGE: usize = 4;
    pub const COST: usize = 5;
    pub const ROWS: usize = 6;
    pub const VARIADIC: usize = 7;
    pub const RESULT: usize = 8;
    pub const ARGUMENTS: usize = 9;
    pub const ALL_TYPES: usize = 10;
    pub const MODES: usize = 11;
    pub const NAMES: usize = 12;
    pub const SOURCE: usize = 13;
    pub const SIGNATURE: usize = 14;
    pub const IDENTITY: usize = 15;
    pub const SUPPORT: usize = 16;
}

/// PostgreSQL's functions with a name, whether or not they run here.
pub fn named(name: &str) -> Vec<Id> {
    static NAMES: OnceLock<HashMap<&'static str, Vec<Id>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: HashMap<&'static str, Vec<Id>> = HashMap::new();
        functions()
            .iter()
            .for_each(|f| names.entry(f.text(field::NAME)).or_default().push(f.id(0)));
        names
    });
    names.get(name).cloned().unwrap_or_default()
}

/// PostgreSQL's operators with a name, whether or not they run here.
pub fn operators_named(name: &str) -> impl Iterator<Item = Id> {
    operators().iter().filter(move |f| f.text(operator::NAME) == name).map(|f| f.id(0))
}

/// An operator's name.
pub(super) fn operator_name(id: Id) -> Option<&'static str> {
    operators().get(id).map(|f| f.text(operator::NAME))
}

/// Whether a function is an aggregate.
pub(super) fn is_aggregate(id: Id) -> bool {
    functions().get(id).is_some_and(|f| f.text(field::KIND) == "a")
}

/// The aggregate with this transition function and this final one.
pub fn aggregate_of(transition: Id, finish: Id) -> Option<Id> {
    let fits = |f: &Fact| f.id(3) == transition && f.id(4) == finish;
    aggregates().iter().find(fits).map(|f| f.id(0))
}

/// The built-in type whose input and output functions have these names.
pub fn type_with_functions(input: &str, output: &str) -> Option<Id> {
    let is = |f: &Fact, n: usize, name: &str| function_name(f.id(n)) == Some(name);
    let usual = |f: &Fact| f.letter(1) == 'b' && f.letter(kind::CATEGORY) != 'A';
    kinds().iter().find(|f| usual(f) && is(f, 5, input) && is(f, 6, output)).map(|f| f.id(0))
}

/// The functions behind a built-in type: input, output, receive, send, typmod in and out, analyze, subscript.
pub fn type_functions(id: Id) -> [Id; 8] {
    let Some(f) = kinds().get(id) else { return [0; 8] };
    [f.id(5), f.id(6), f.id(7), f.id(8), f.id(9), f.id(10), f.id(11), f.id(4)]
}

/// A built-in function with this source: what LANGUAGE internal names.
pub fn with_source(source: &str) -> Option<Id> {
    functions().iter().find(|f| f.text(field::SOURCE) == source).map(|f| f.id(0))
}

/// A built-in function with this source that runs here.
pub fn runs_with_source(source: &str) -> Option<&'static func::FunctionRow> {
    let named = functions().iter().filter(|f| f.text(field::SOURCE) == source);
    named.map(|f| base::Oid(f.id(0))).find_map(func::function)
}

/// The type of an operator's result.
pub fn operator_result(id: Id) -> Id {
    operators().get(id).map_or(0, |f| f.id(operator::RESULT))
}

/// The types of an operator's operands; 0: it has none there.
pub fn operand_types(id: Id) -> Option<[Id; 2]> {
    operators().get(id).map(|f| [f.id(operator::LEFT), f.id(operator::RIGHT)])
}

/// See [`crate::routine::RoutineInfo`].
pub(crate) fn routine_info(id: Id) -> Option<RoutineInfo> {
    let own = || {
        let f = func::function(base::Oid(id))?;
        Some(RoutineInfo {
            oid: id,
            name: f.name.to_owned(),
            args: f.args.to_vec(),
            result: f.result,
            set: f.returns_set,
            strict: f.strict,
            kind: 'f',
            volatility: 'v',
            variadic: f.variadic,
        })
    };
    let Some(f) = functions().get(id) else { return own() };
    let flags = f.text(field::FLAGS).as_bytes();
    Some(RoutineInfo {
        oid: id,
        name: f.text(field::NAME).to_owned(),
        args: f.ids(field::ARGUMENTS).map(base::Oid).collect(),
        result: base::Oid(f.id(field::RESULT)),
        set: flags.get(1) == Some(&b'r'),
        strict: flags.first() == Some(&b's'),
        kind: f.letter(field::KIND),
        volatility: flags.get(2).map_or('v', |c| char::from(*c)),
        variadic: f.id(field::VARIADIC) != 0,
    })
}

/// Whether a value of one type is one of another as it is, without being asked.
pub fn is_binary_cast(source: Id, target: Id) -> bool {
    let fits = |f: &Fact| f.id(1) == source && f.id(2) == target;
    casts().iter().any(|f| fits(&f) && f.letter(4) == 'i' && f.letter(5) == 'b')
}

/// The types of a function's arguments.
pub fn argument_types(id: Id) -> Option<Vec<Id>> {
    functions().get(id).map(|f| f.ids(field::ARGUMENTS).collect())
}

/// One of PostgreSQL's types by schema and name.
pub fn type_named(schema: Id, name: &str) -> Option<Id> {
    static NAMES: OnceLock<HashMap<(&'static str, &'static str), Id>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let key = |f: Fact| ((f.text(kind::SCHEMA), f.text(kind::NAME)), f.id(0));
        kinds().iter().filter(|f| is_kind_here(*f)).map(key).collect()
    });
    let schema = match schema {
        PG_CATALOG => "pg_catalog",
        INFORMATION_SCHEMA => "information_schema",
        _ => return None,
    };
    names.get(&(schema, name)).copied()
}

/// Whether a type is shown: row types need their relation.
pub(super) fn is_kind_here(f: Fact) -> bool {
    let of_relation = |f: Fact| {
        let relation = f.id(kind::RELATION);
        relation == 0 || by_oid(base::Oid(relation)).is_some()
    };
    let element = (f.letter(1) == 'b').then(|| kinds().get(f.id(kind::ELEMENT))).flatten();
    of_relation(f) && element.is_none_or(of_relation)
}

/// One of PostgreSQL's types, whether or not its values are here: schema and name, and whether it is an array over
/// the type so named.
pub fn type_place(id: Id) -> Option<(Id, &'static str, bool)> {
    let f = kinds().get(id).filter(|f| is_kind_here(*f))?;
    let array = f.letter(kind::CATEGORY) == 'A';
    let named = if array { kinds().get(f.id(kind::ELEMENT))? } else { f };
    let schema = match named.text(kind::SCHEMA) {
        "pg_catalog" => PG_CATALOG,
        _ => INFORMATION_SCHEMA,
    };
    Some((schema, named.text(kind::NAME), array))
}

/// The row type of a system table.
pub fn row_type(relation: Id) -> Id {
    static TYPES: OnceLock<HashMap<Id, Id>> = OnceLock::new();
    let types =
        TYPES.get_or_init(|| kinds().iter().map(|f| (f.id(kind::RELATION), f.id(0))).collect());
    if relation == 0 {
        return 0;
    }
    types.get(&relation).copied().or_else(|| own_row_types().get(&relation).copied()).unwrap_or(0)
}

/// The row types of system tables that PostgreSQL does not have, by their relations.
pub(super) fn own_row_types() -> &'static HashMap<Id, Id> {
    static TYPES: OnceLock<HashMap<Id, Id>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let known: Vec<Id> = kinds().iter().map(|f| f.id(kind::RELATION)).collect();
        let own = tables().iter().filter(|t| !known.contains(&t.oid.0));
        own.zip(OWN_ROW_TYPES..).map(|(t, ty)| (t.oid.0, ty)).collect()
    })
}

/// Oids that PostgreSQL gives to nothing.
const OWN_ROW_TYPES: Id = 15000;

/// Whether a built-in function tells nothing of its arguments but by its result.
pub fn is_leakproof(id: Id) -> bool {
    functions().get(id).is_some_and(|f| f.text(field::FLAGS).as_bytes().get(4) == Some(&b'l'))
}

/// A built-in function's name, whether or not it runs here.
pub fn function_name(id: Id) -> Option<&'static str> {
    let own = || func::function(base::Oid(id)).map(|f| f.name);
    functions().get(id).map(|f| f.text(field::NAME)).or_else(own)
}

/// As `regproc` shows a built-in function: with its schema when others have its name.
pub fn regproc(id: Id) -> Option<String> {
    static COUNTS: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    let counts = COUNTS.get_or_init(|| {
        let mut counts = HashMap::new();
        functions().iter().for_each(|f| *counts.entry(f.text(field::NAME)).or_default() += 1);
        counts
    });
    let name = function_name(id)?;
    let quoted = types::func::quote_ident(name);
    Some(match counts.get(name) {
        Some(2..) => format!("pg_catalog.{quoted}"),
        _ => quoted,
    })
}

/// As `regprocedure` shows a built-in function.
pub fn regprocedure(id: Id) -> Option<String> {
    let types: Vec<Id> = match functions().get(id) {
        Some(f) => f.ids(field::ARGUMENTS).collect(),
        None => func::function(base::Oid(id))?.args.iter().map(|a| a.0).collect(),
    };
    let types: Vec<String> = types.iter().map(|t| type_name(*t)).collect();
    Some(format!("{}({})", types::func::quote_ident(function_name(id)?), types.join(",")))
}

fn type_name(id: Id) -> String {
    if TypeIo::get(base::Oid(id)).is_some() {
        return types::io::format_type(base::Oid(id), -1);
    }
    let Some((schema, name, array)) = type_place(id) else { return "???".to_owned() };
    let quote = types::func::quote_ident;
    let schema = if schema == PG_CATALOG { "" } else { "information_schema." };
    format!("{schema}{}{}", quote(name), if array { "[]" } else { "" })
}

/// As `regoper` shows an operator: with its schema when others have its name.
pub fn regoper(id: Id) -> Option<String> {
    let name = operators().get(id)?.text(operator::NAME);
    Some(match operators_named(name).count() {
        2.. => format!("pg_catalog.{name}"),
        _ => name.to_owned(),
    })
}

/// As `regoperator` shows an operator.
pub fn regoperator(id: Id) -> Option<String> {
    let name = operators().get(id)?.text(operator::NAME);
    let side = |t: Id| if t == 0 { "NONE".to_owned() } else { type_name(t) };
    let [left, right] = operand_types(id)?;
    Some(format!("{name}({},{})", side(left), side(right)))
}

/// A built-in function's arguments as PostgreSQL lists them: modes, names, types and, unless they
/// are to `identify` the function, defaults.
pub fn function_arguments(id: Id, identify: bool) -> Option<String> {
    let fact = functions().get(id)?;
    let texts = [fact.text(field::IDENTITY), fact.text(field::SIGNATURE)];
    match texts.iter().skip(usize::from(!identify)).find(|t| !t.is_empty()) {
        Some(text) => Some((*text).to_owned()),
        None => {
            let types: Vec<String> = fact.ids(field::ARGUMENTS).map(type_name).collect();
            Some(types.join(", "))
        }
    }
}

/// The names of a built-in function's input parameters; none when it has no names.
pub fn parameter_names(id: Id) -> Vec<&'static str> {
    let Some(fact) = functions().get(id) else { return Vec::new() };
    let modes = fact.text(field::MODES).bytes().map(Some).chain(std::iter::repeat(None));
    let names = fact.text(field::NAMES).split(' ').filter(|n| !n.is_empty());
    let is_input = |mode: &Option<u8>| matches!(mode, None | Some(b'i' | b'b' | b'v'));
    names.zip(modes).filter(|(_, mode)| is_input(mode)).map(|(name, _)| name).collect()
}

/// A built-in function's result; aggregates and window functions have one, too.
pub fn function_result(id: Id) -> Option<String> {
    let fact = functions().get(id)?;
    let set = if fact.text(field::FLAGS).as_bytes().get(1) == Some(&b'r') { "SETOF " } else { "" };
    Some(format!("{set}{}", type_name(fact.id(field::RESULT))))
}

/// A built-in function as `CREATE FUNCTION` would make it; aggregates have no such form.
pub fn function_definition(id: Id) -> Option<String> {
    use std::fmt::Write as _;
    let f = functions().get(id).filter(|f| f.text(field::KIND) != "a")?;
    let flags = f.text(field::FLAGS).as_bytes();
    let mut words = Vec::new();
    if f.text(field::KIND) == "w" {
        words.push("WINDOW".to_owned());
    }
    for (at, letter, word) in [
        (2, b'i', "IMMUTABLE"),
        (2, b's', "STABLE"),
        (3, b's', "PARALLEL SAFE"),
        (3, b'r', "PARALLEL RESTRICTED"),
        (0, b's', "STRICT"),
        (4, b'l', "LEAKPROOF"),
    ] {
        if flags.get(at) == Some(&letter) {
            words.push(word.to_owned());
        }
    }
    let language = match f.text(field::LANGUAGE) {
        "13" => "c",
        "14" => "sql",
        _ => "internal",
    };
    let usual = if language == "sql" { "100" } else { "-" };
    let cost = f.text(field::COST);
    if cost != usual {
        words.push(format!("COST {}", if cost == "-" { "1" } else { cost }));
    }
    let rows = f.text(field::ROWS);
    if !matches!(rows, "-" | "1000") {
        words.push(format!("ROWS {rows}"));
    }
    if let Some(support) = function_name(f.id(field::SUPPORT)) {
        words.push(format!("SUPPORT {support}"));
    }
    let mut out = format!(
        "CREATE OR REPLACE FUNCTION pg_catalog.{}({})\n RETURNS {}\n LANGUAGE {language}\n",
        types::func::quote_ident(f.text(field::NAME)),
        function_arguments(id, false)?,
        function_result(id)?
    );
    if !words.is_empty() {
        let _ = writeln!(out, " {}", words.join(" "));
    }
    let _ = writeln!(out, "AS $function${}$function$", f.text(field::SOURCE));
    Some(out)
}

/// The collations of ICU that initdb makes: oid, locale.
pub(crate) fn icu_locales() -> impl Iterator<Item = (Id, &'static str)> {
    collations().iter().map(|f| (f.id(0), f.text(1)))
}

/// PostgreSQL's comments on its own objects: class, object, text.
pub fn descriptions() -> impl Iterator<Item = (Id, Id, &'static str)> {
    described().iter().map(|((class, id), text)| (*class, *id, *text))
}

/// The description of a built-in object.
pub fn description(class: Id, object: Id) -> Option<&'static str> {
    described().get(&(class, object)).copied()
}

fn described() -> &'static HashMap<(Id, Id), &'static str> {
    static TEXTS: OnceLock<HashMap<(Id, Id), &'static str>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let line = |l: &'static str| {
            let mut fields = l.splitn(3, '\t');
            let mut id = || fields.next().and_then(|f| f.parse().ok()).unwrap_or_default();
            let key = (id(), id());
            (key, fields.next().unwrap_or_default())
        };
        lines(include_str!("facts/descriptions.txt")).map(line).collect()
    })
}

/// The operator class that a B-tree over values of this type has by default; 0: none.
pub fn default_class(ty: Id) -> Id {
    opclass::default_class(BTREE_AM, base::Oid(ty)).map_or(0, |c| c.oid)
}

/// An index of a system table, as PostgreSQL has it. (Here look-ups need none.)
pub struct SystemIndex {
    /// PostgreSQL's oid.
    pub oid: Id,
    /// Name.
    pub name: &'static str,
    /// Its table.
    pub table: Id,
    /// Columns from 1.
    pub columns: Vec<i16>,
    /// UNIQUE or PRIMARY KEY.
    pub unique: bool,
    /// PRIMARY KEY.
    pub primary: bool,
    /// The constraint that it stands behind; 0: none.
    pub constraint: Id,
}

/// The indexes of system tables that there are here.
pub fn indexes() -> &'static [SystemIndex] {
    static INDEXES: OnceLock<Vec<SystemIndex>> = OnceLock::new();
    INDEXES.get_or_init(|| {
        let facts = Facts::read(include_str!("facts/indexes.txt"));
        let one = |f: Fact| SystemIndex {
            oid: f.id(0),
            name: f.text(1),
            table: f.id(2),
            columns: f.ids(3).map(|n| n as i16).collect(),
            unique: f.letter(4) != '-',
            primary: f.letter(4) == 'p',
            constraint: f.id(5),
        };
        let of_table = |i: &SystemIndex| by_oid(base::Oid(i.table)).is_some();
        facts.iter().map(one).filter(of_table).collect()
    })
}

/// One of them.
pub fn index(id: Id) -> Option<&'static SystemIndex> {
    if id >= base::Oid::FIRST_USER.0 {
        return None;
    }
    indexes().iter().find(|i| i.oid == id)
}

impl SystemIndex {
    /// Its columns' names.
    pub fn column_names(&self) -> Vec<&'static str> {
        let table = by_oid(base::Oid(self.table));
        let column = |n: &i16| table.and_then(|t| t.columns.get(*n as usize - 1));
        self.columns.iter().map(|n| column(n).map_or("", |c| c.0)).collect()
    }

    /// `CREATE INDEX …`.
    pub fn definition(&self) -> String {
        let table = by_oid(base::Oid(self.table)).map_or("", |t| t.name);
        let columns: Vec<String> =
            self.column_names().iter().map(|c| types::func::quote_ident(c)).collect();
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!(
            "CREATE {unique}INDEX {} ON pg_catalog.{table} USING btree ({})",
            self.name,
            columns.join(", ")
        )
    }

    /// The constraint: `PRIMARY KEY (oid)`.
    pub fn constraint_definition(&self) -> String {
        let word = if self.primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{word} ({})", self.column_names().join(", "))
    }
}

/// A list of ids as an `oidvector`.
pub(super) fn oid_vector(ids: impl Iterator<Item = Id>) -> Datum {
    array(oids::OID, 0, ids.map(Datum::Oid).collect())
}

/// The facts about a function that a definition which names it needs, whether or not it runs here.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineInfo {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Types of the inputs.
    pub args: Vec<Oid>,
    /// Result.
    pub result: Oid,
    /// Returns a set.
    pub set: bool,
    /// STRICT.
    pub strict: bool,
    /// `f`, `p`, `a` or `w`, as in `pg_proc.prokind`.
    pub kind: char,
    /// `i`, `s` or `v`.
    pub volatility: char,
    /// The last input is VARIADIC.
    pub variadic: bool,
}
