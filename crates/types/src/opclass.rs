//! Operator classes and families: which operators an index of a method serves for a type, under which
//! strategy numbers, and by which functions. The rows are PostgreSQL's, in `table/classes.txt`,
//! `families.txt`, `family_operators.txt` and `family_functions.txt`; those of types and methods that the
//! house lacks stand in `pg_opclass` and are never asked for. What users define lies in the catalog.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use base::Oid;

use crate::TypeIo;
use crate::func::{self, OperatorRow};
use crate::oids;

/// Lines of `pg_opclass`.
pub const CLASSES: &str = include_str!("table/classes.txt");
/// Lines of `pg_opfamily`.
pub const FAMILIES: &str = include_str!("table/families.txt");
/// Lines of `pg_amop`.
pub const FAMILY_OPERATORS: &str = include_str!("table/family_operators.txt");
/// Lines of `pg_amproc`.
pub const FAMILY_FUNCTIONS: &str = include_str!("table/family_functions.txt");

/// An operator class.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Oid.
    pub oid: u32,
    /// Name.
    pub name: &'static str,
    /// Its family's oid.
    pub family: u32,
    /// Of which type.
    pub ty: Oid,
    /// Whether indexes have it when they name none.
    pub default: bool,
    /// The type of what the index keeps; 0: the same.
    pub key_type: Oid,
    /// The access method's oid.
    pub method: u32,
}

/// An operator of a family.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The family's oid.
    pub family: u32,
    /// Types of the operands.
    pub sides: [Oid; 2],
    /// Strategy number.
    pub strategy: u16,
    /// The operator's oid.
    pub operator: Oid,
    /// It gives the order of the rows, not a condition.
    pub orders: bool,
}

/// The oid of the B-tree in `pg_am`.
const BTREE: u32 = 403;

struct Tables {
    classes: Vec<Class>,
    members: HashMap<(u32, Oid), Vec<Member>>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let classes = lines(CLASSES).map(|f| Class {
        oid: number(&f, 0),
        name: f.get(1).copied().unwrap_or_default(),
        family: number(&f, 2),
        ty: Oid(number(&f, 3)),
        default: f.get(4) == Some(&"t"),
        key_type: Oid(number(&f, 5)),
        method: number(&f, 6),
    });
    let mut members: HashMap<(u32, Oid), Vec<Member>> = HashMap::new();
    for f in lines(FAMILY_OPERATORS) {
        let operator = Oid(number(&f, 5));
        let Some(row) = func::operator(operator) else { continue };
        let member = Member {
            family: number(&f, 1),
            sides: [Oid(number(&f, 2)), Oid(number(&f, 3))],
            strategy: number(&f, 4) as u16,
            operator,
            orders: f.get(6) == Some(&"o"),
        };
        members.entry((member.family, row.function)).or_default().push(member);
    }
    Tables { classes: classes.collect(), members }
});

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let used = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    used.map(|l| l.split('\t').collect())
}

fn number(fields: &[&str], n: usize) -> u32 {
    fields.get(n).and_then(|f| f.parse().ok()).unwrap_or_default()
}

/// All classes.
pub fn classes() -> &'static [Class] {
    &TABLES.classes
}

/// A class by its oid: PostgreSQL's, or one that was learnt.
pub fn class(oid: u32) -> Option<&'static Class> {
    let own = || learned(|l| l.classes.get(&oid).map(|known| known.class));
    classes().iter().find(|c| c.oid == oid).or_else(own)
}

/// The operator classes that the catalog has, beside PostgreSQL's own. Their oids are never used for
/// anything else, so what was learnt once stays; nobody defines classes by the million.
#[derive(Default)]
struct Learned {
    classes: HashMap<u32, LearnedClass>,
    /// By family and function.
    members: HashMap<(u32, Oid), &'static [Member]>,
    /// Operators that compare two values of one type, by oid.
    comparisons: HashMap<Oid, &'static str>,
}

struct LearnedClass {
    class: &'static Class,
    code: String,
}

static LEARNED: RwLock<Option<Learned>> = RwLock::new(None);
static SOME_LEARNED: AtomicBool = AtomicBool::new(false);

fn learned<R>(look: impl FnOnce(&Learned) -> Option<R>) -> Option<R> {
    if !SOME_LEARNED.load(Ordering::Acquire) {
        return None;
    }
    let known = LEARNED.read().unwrap_or_else(PoisonError::into_inner);
    look(known.as_ref()?)
}

/// A class of the catalog's, to be learnt.
pub struct NewClass<'a> {
    /// As of any class; the name is leaked.
    pub class: Class,
    /// Its name.
    pub name: &'a str,
    /// Library and symbol of the code behind it; empty: it has none of its own.
    pub code: &'a str,
}

/// Notes a class that has an index behind it, before the catalog gives it to anybody.
pub fn learn(new: NewClass<'_>) {
    let mut known = LEARNED.write().unwrap_or_else(PoisonError::into_inner);
    let learned = known.get_or_insert_default();
    if !learned.classes.contains_key(&new.class.oid) {
        let name: &'static str = String::leak(new.name.to_owned());
        let class: &'static Class = Box::leak(Box::new(Class { name, ..new.class }));
        learned.classes.insert(class.oid, LearnedClass { class, code: new.code.to_owned() });
    }
    SOME_LEARNED.store(true, Ordering::Release);
}

/// Notes an operator of such a class or of its family, with the function behind it.
pub fn learn_member(member: Member, function: Oid, method: u32) {
    const COMPARISONS: [&str; 5] = ["<", "<=", "=", ">=", ">"];
    let mut known = LEARNED.write().unwrap_or_else(PoisonError::into_inner);
    let learned = known.get_or_insert_default();
    if method == BTREE
        && member.sides[0] == member.sides[1]
        && crate::user::is_user(member.sides[0])
        && let Some(name) = COMPARISONS.get(usize::from(member.strategy).wrapping_sub(1))
    {
        learned.comparisons.insert(member.operator, *name);
    }
    let list = learned.members.entry((member.family, function)).or_insert(&[]);
    if !list.iter().any(|m| m.operator == member.operator && m.strategy == member.strategy) {
        let copies = list.iter().copied().chain([member]).collect();
        *list = Vec::leak(copies);
    }
    SOME_LEARNED.store(true, Ordering::Release);
}

/// The comparison that a user's operator is, between two values of one type.
pub fn comparison(operator: Oid) -> Option<&'static str> {
    learned(|l| l.comparisons.get(&operator).copied())
}

/// Whether a family has an operator that gives the order of rows.
pub fn orders(family: u32) -> bool {
    let of = |m: &Member| m.family == family && m.orders;
    let own = || {
        learned(|l| l.members.values().flat_map(|all| all.iter()).any(of).then_some(())).is_some()
    };
    TABLES.members.values().flatten().any(of) || own()
}

/// Library and symbol of the code behind a class that was learnt.
pub fn code(oid: u32) -> Option<String> {
    learned(|l| l.classes.get(&oid).map(|c| c.code.clone()))
}

/// The class of PostgreSQL's that does the same as a class that was learnt; any other is itself.
pub fn resolved(oid: u32) -> u32 {
    let same = || code(oid)?.strip_prefix('=')?.parse().ok();
    if classes().iter().any(|c| c.oid == oid) { oid } else { same().unwrap_or(oid) }
}

/// The support functions of a family for values of two types: numbers and functions.
pub fn support_functions(family: u32, sides: [Oid; 2]) -> Vec<(i16, Oid)> {
    let is =
        |f: &Vec<&str>| number(f, 1) == family && [Oid(number(f, 2)), Oid(number(f, 3))] == sides;
    lines(FAMILY_FUNCTIONS).filter(is).map(|f| (number(&f, 4) as i16, Oid(number(&f, 5)))).collect()
}

/// The operators of a family for values of two types: strategies and operators.
pub fn family_operators(family: u32, sides: [Oid; 2]) -> Vec<(i16, Oid)> {
    let is =
        |f: &Vec<&str>| number(f, 1) == family && [Oid(number(f, 2)), Oid(number(f, 3))] == sides;
    lines(FAMILY_OPERATORS).filter(is).map(|f| (number(&f, 4) as i16, Oid(number(&f, 5)))).collect()
}

/// A class of an access method by its name, of several with the name the one for the type.
pub fn named(method: u32, name: &str, ty: Oid) -> Option<&'static Class> {
    let fits = |c: &&Class| c.method == method && c.name == name;
    let of_type = classes().iter().filter(fits).find(|c| accepts(c, ty));
    of_type.or_else(|| classes().iter().find(fits))
}

/// The class that an index of a method over values of this type has by default.
pub fn default_class(method: u32, ty: Oid) -> Option<&'static Class> {
    let of = |ty: Oid| classes().iter().find(|c| c.default && c.method == method && c.ty == ty);
    of(ty).or_else(|| of(stands_for(ty)))
}

/// A support function of the class that a type has by default, by its number.
pub fn support(method: u32, ty: Oid, wanted: u32) -> Option<Oid> {
    let class = classes().iter().find(|c| c.method == method && c.default && c.ty == ty)?;
    let is = |f: &Vec<&str>| {
        let same = number(f, 1) == class.family && number(f, 4) == wanted;
        same && Oid(number(f, 2)) == ty && Oid(number(f, 3)) == ty
    };
    lines(FAMILY_FUNCTIONS).find(is).map(|f| Oid(number(&f, 5)))
}

/// Whether a class compares texts by their bytes (`text_pattern_ops` and its like).
pub fn is_by_pattern(oid: u32) -> bool {
    class(oid).is_some_and(|c| c.name.ends_with("_pattern_ops"))
}

/// Whether a class takes values of this type.
pub fn accepts(class: &Class, ty: Oid) -> bool {
    class.ty == ty || class.ty == stands_for(ty) || (ty == oids::VARCHAR && class.ty == oids::TEXT)
}

/// The type whose classes serve a domain's base type.
fn default_type(base: Oid) -> Oid {
    match default_class(BTREE, base) {
        Some(class) => class.ty,
        None => stands_for(base),
    }
}

/// The type whose classes serve this one.
fn stands_for(ty: Oid) -> Oid {
    match ty {
        oids::VARCHAR => oids::TEXT,
        oids::CIDR => oids::INET,
        oids::REGPROC
        | oids::REGCLASS
        | oids::REGTYPE
        | oids::REGPROCEDURE
        | oids::REGOPER
        | oids::REGOPERATOR
        | oids::REGROLE
        | oids::REGNAMESPACE
        | oids::REGCOLLATION
        | oids::REGCONFIG
        | oids::REGDICTIONARY => oids::OID,
        _ if crate::user::is_user(ty) && !crate::user::is_enum(ty) => {
            match crate::user::base_type(ty, -1).0 {
                base if base != ty => default_type(base),
                _ if crate::user::shape(ty).is_some() => oids::RECORD,
                _ if TypeIo::array_element(ty).is_some() => oids::ANYARRAY,
                _ => ty,
            }
        }
        _ if crate::user::is_enum(ty) => oids::ANYENUM,
        _ if TypeIo::array_element(ty).is_some() => oids::ANYARRAY,
        _ if crate::range::subtype(ty).is_some() => oids::ANYRANGE,
        _ if crate::range::range_of(ty).is_some() => oids::ANYMULTIRANGE,
        _ => ty,
    }
}

/// The operators of a family whose function is this one.
pub fn members(family: u32, function: Oid) -> &'static [Member] {
    let own = || learned(|l| l.members.get(&(family, function)).copied()).unwrap_or_default();
    TABLES.members.get(&(family, function)).map_or_else(own, Vec::as_slice)
}

/// An operator's commutator, as a function.
pub fn commuted(function: Oid) -> Option<Oid> {
    let commutator = |row: &OperatorRow| func::operator(row.commutator).map(|c| c.function);
    func::operators().iter().filter(|row| row.function == function).find_map(commutator)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: u32 = 405;

    #[test]
    fn types_have_their_classes() {
        let name = |method, ty| default_class(method, ty).map(|c| c.name);
        assert_eq!(name(BTREE, oids::INT4), Some("int4_ops"));
        assert_eq!(name(BTREE, oids::VARCHAR), Some("text_ops"));
        assert_eq!(name(HASH, oids::TEXT), Some("text_ops"));
        assert_eq!(name(2742, oids::JSONB), Some("jsonb_ops"));
        assert_eq!(name(BTREE, oids::JSON), None);
        let pattern = named(BTREE, "text_pattern_ops", oids::TEXT).map(|c| c.ty);
        assert_eq!(pattern, Some(oids::TEXT));
        assert!(named(BTREE, "int4_ops", oids::TEXT).is_some_and(|c| !accepts(c, oids::TEXT)));
    }

    #[test]
    fn families_know_their_operators_by_the_functions() {
        let family = default_class(HASH, oids::INT4).map_or(0, |c| c.family);
        // int4eq
        let found: Vec<u16> = members(family, Oid(65)).iter().map(|m| m.strategy).collect();
        assert_eq!(found, [1]);
        assert!(members(family, Oid(66)).is_empty());
    }
}
