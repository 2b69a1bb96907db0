//! Types that other crates define: the one open variant of [`Datum`], and the packages that bring such types
//! with their functions, operators, casts and aggregates.
//!
//! A value is an object behind a pointer ([`OpenValue`], its vtable is the type's); what makes values of text
//! or bytes is the type's [`OpenType`]. A row holds what [`OpenValue::store`] writes, an index key what
//! [`OpenValue::key`] writes, in an order that `memcmp` sees.
//!
//! A **package** ([`Package`]) has rows in the form of `table/*.txt` and bodies by their keys, as the families
//! of `func` have. It is registered before the tables are read for the first time, so that look-ups are as
//! fast as those of the types here and need no lock. Its types have oids that are fixed (PostgreSQL's, where
//! PostgreSQL has the type). Types that a statement creates get their oid then; what the running task knows of
//! them ([`crate::user::UserKind::Open`]) names the [`OpenType`], which [`class`] finds.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::{Arc, Mutex, OnceLock};

use base::{Oid, Result, err};

use crate::datum::Datum;
use crate::func::aggregate::Start;
use crate::func::{Body, FunctionRow};
use crate::io::FormatContext;

/// A value of a type that is defined outside this crate.
pub trait OpenValue: Any + Debug + Send + Sync {
    /// Its type.
    fn ty(&self) -> Oid;
    /// Appends its text.
    ///
    /// # Errors
    /// Errors that printing may run into (no memory).
    fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()>;
    /// Appends its binary form.
    ///
    /// # Errors
    /// `42883` by default: the type has none.
    fn send(&self, _out: &mut Vec<u8>) -> Result<()> {
        let name = crate::io::format_type(self.ty(), -1);
        Err(err!(UNDEFINED_FUNCTION, "no binary output function available for type {name}"))
    }
    /// Appends the bytes that stand in rows.
    fn store(&self, out: &mut Vec<u8>);
    /// Appends bytes whose order is the values'. Types without an order need not define it: then it tells
    /// equal values from others.
    fn key(&self, out: &mut Vec<u8>) {
        self.store(out);
    }
    /// SQL's order; `other` is of the same type.
    fn compare(&self, other: &dyn OpenValue) -> Ordering {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.key(&mut a);
        other.key(&mut b);
        a.cmp(&b)
    }
    /// A hash that agrees with [`OpenValue::compare`].
    fn hash(&self, state: &mut dyn Hasher) {
        let mut key = Vec::new();
        self.key(&mut key);
        state.write(&key);
    }
    /// The item at a subscript, of a type that has [`OpenType::element`].
    fn item(&self, _index: i32) -> Option<Datum> {
        None
    }
    /// The texts of its elements, none twice, of values that are sets of such; ANALYZE counts them.
    fn elements(&self) -> Option<Vec<&str>> {
        None
    }
    /// The share of values with elements that a query is satisfied by, of the share of those that have an element, or (true)
    /// one that begins so, as if elements were independent; None: the value is no query.
    fn share(&self, _of: &dyn Fn(&str, bool) -> f64) -> Option<f64> {
        None
    }
    /// The value as one of a built-in type of the same form, for casts WITHOUT FUNCTION; None: there is none.
    fn plain(&self) -> Option<Datum> {
        None
    }
    /// Bytes held beyond the pointer.
    fn heap_bytes(&self) -> usize;
    /// For [`Open::get`].
    fn as_any(&self) -> &dyn Any;
}

/// The pointer in [`Datum::Open`].
#[derive(Clone, Debug)]
pub struct Open(pub Arc<dyn OpenValue>);

impl Open {
    /// The value, when it is of this Rust type.
    pub fn get<T: OpenValue>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Open) -> bool {
        let bytes = |v: &Open| {
            let mut out = Vec::new();
            v.0.store(&mut out);
            out
        };
        self.0.ty() == other.0.ty() && bytes(self) == bytes(other)
    }
}

impl Datum {
    /// A value of a type that is defined outside this crate.
    pub fn open(value: impl OpenValue) -> Datum {
        Datum::Open(Open(Arc::new(value)))
    }

    /// The value of a type that is defined elsewhere.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn as_open<T: OpenValue>(&self) -> &T {
        match self {
            Datum::Open(v) => v.get().unwrap_or_else(|| self.mismatch(std::any::type_name::<T>())),
            other => other.mismatch(std::any::type_name::<T>()),
        }
    }
}

/// The maker of a type's values. `ty` is the type's oid, which types that a statement created have only then.
pub trait OpenType: Send + Sync + 'static {
    /// Reads a value from text and fits it to the typmod (-1: none).
    ///
    /// # Errors
    /// `22P02` and kin.
    fn input(&self, ty: Oid, typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum>;
    /// Reads a value from its binary form.
    ///
    /// # Errors
    /// `22P03`; `42883` by default: the type has none.
    fn receive(&self, ty: Oid, _typmod: i32, _bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let name = crate::io::format_type(ty, -1);
        Err(err!(UNDEFINED_FUNCTION, "no binary input function available for type {name}"))
    }
    /// Reads a value from the bytes that [`OpenValue::store`] wrote; None: they are damaged.
    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum>;
    /// Fits a value to a typmod, as casts do.
    ///
    /// # Errors
    /// A value that does not fit.
    fn fit(&self, _ty: Oid, _typmod: i32, value: Datum, _explicit: bool) -> Result<Datum> {
        Ok(value)
    }
    /// The typmod of the numbers behind the type's name; None: it takes none.
    fn typmod(&self, _values: &[i32]) -> Option<Result<i32>> {
        None
    }
    /// A typmod as it is written behind the type's name.
    fn typmod_text(&self, typmod: i32) -> String {
        format!("({typmod})")
    }
    /// The built-in type whose values have the same form: what [`OpenValue::plain`] gives.
    fn plain_type(&self) -> Option<Oid> {
        None
    }
    /// Makes a value of one of a built-in type of the same form, for casts WITHOUT FUNCTION.
    fn from_plain(&self, _ty: Oid, value: Datum) -> Datum {
        value
    }
    /// The type of what a subscript gives; None: there are no subscripts.
    fn element(&self) -> Option<Oid> {
        None
    }
    /// The separator of the items of an array of such values.
    fn delimiter(&self) -> u8 {
        b','
    }
}

/// Finds the state of an aggregate by name and argument types: whether it skips NULLs, and its start.
pub type FindAggregate = fn(&str, &[Oid]) -> Option<(bool, Start)>;

/// Types with what belongs to them, as another crate brings them. The texts are rows in the form of the files in
/// `table/`; empty where there are none.
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// Rows of `types.txt`.
    pub types: &'static str,
    /// Rows of `functions.txt`.
    pub functions: &'static str,
    /// Rows of `operators.txt`.
    pub operators: &'static str,
    /// Rows of `casts.txt`.
    pub casts: &'static str,
    /// Rows of `aggregates.txt`.
    pub aggregates: &'static str,
    /// The bodies of the functions, by key.
    pub bodies: fn() -> Vec<(&'static str, Body)>,
    /// The states of the aggregates.
    pub find_aggregate: FindAggregate,
    /// The makers of values of the types with fixed oids.
    pub open_types: &'static [(Oid, &'static dyn OpenType)],
    /// The makers of values of types that statements create, by name.
    pub classes: &'static [(&'static str, &'static dyn OpenType)],
}

impl Package {
    /// A package of nothing, to be filled by `..`.
    pub const EMPTY: Package = Package {
        name: "",
        types: "",
        functions: "",
        operators: "",
        casts: "",
        aggregates: "",
        bodies: Vec::new,
        find_aggregate: |_, _| None,
        open_types: &[],
        classes: &[],
    };
}

static REGISTERED: Mutex<Vec<&'static Package>> = Mutex::new(Vec::new());
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Registers packages; those that are known by name stay as they are. To be called before anything else.
///
/// # Panics
/// When a new one comes after the tables were read.
pub fn register(packages: &[&'static Package]) {
    let mut registered = REGISTERED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for package in packages {
        if registered.iter().any(|p| p.name == package.name) {
            continue;
        }
        assert!(!IN_USE.load(Memory::Relaxed), "package {} comes too late", package.name);
        registered.push(package);
    }
}

/// The packages; from now on there will be no others.
pub fn packages() -> &'static [&'static Package] {
    static PACKAGES: OnceLock<Vec<&'static Package>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let registered = REGISTERED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        IN_USE.store(true, Memory::Relaxed);
        registered.clone()
    })
}

/// The text of this crate's own table, then each package's.
pub(crate) fn tables(
    own: &'static str,
    of: fn(&Package) -> &'static str,
) -> impl Iterator<Item = &'static str> {
    std::iter::once(own).chain(packages().iter().map(move |p| of(p)))
}

/// The maker of values of a type with a fixed oid.
pub fn built_in(ty: Oid) -> Option<&'static dyn OpenType> {
    static TYPES: OnceLock<HashMap<Oid, &'static dyn OpenType>> = OnceLock::new();
    let types =
        TYPES.get_or_init(|| packages().iter().flat_map(|p| p.open_types).copied().collect());
    types.get(&ty).copied()
}

/// The maker of values of types that statements create, by the name that they know it by.
pub fn class(name: &str) -> Option<&'static dyn OpenType> {
    packages().iter().flat_map(|p| p.classes).find(|(n, _)| *n == name).map(|(_, class)| *class)
}

/// The maker of a type's values: one with a fixed oid, or one that a statement created.
pub fn get(ty: Oid) -> Option<&'static dyn OpenType> {
    if crate::user::is_user(ty) {
        return match crate::user::get(ty)?.kind {
            crate::user::UserKind::Open(class) => Some(class.0),
            _ => None,
        };
    }
    built_in(ty)
}

/// A value as one of another type of the same form (a cast WITHOUT FUNCTION). Most stay as they are.
pub fn relabel(value: Datum, ty: Oid) -> Datum {
    if let Datum::Open(open) = &value {
        if open.0.ty() == ty {
            return value;
        }
        if let Some(plain) = open.0.plain() {
            return relabel(plain, ty);
        }
        return value;
    }
    if let Datum::Array(array) = &value {
        let element = crate::TypeIo::array_element(ty).unwrap_or(Oid::INVALID);
        let opened = crate::user::is_user(element) && get(element).is_some();
        if opened || array.items.iter().any(|i| matches!(i, Datum::Open(_))) {
            let mut array = Arc::unwrap_or_clone(array.clone());
            array.element = element;
            array.items = array.items.into_iter().map(|i| relabel(i, element)).collect();
            return Datum::Array(array.into());
        }
        return value;
    }
    let value = match (value, ty) {
        (Datum::Text(text), crate::oids::BPCHAR) => Datum::Bpchar(text),
        (value, _) => value,
    };
    if value.is_null() || !crate::user::is_user(ty) {
        return value;
    }
    match crate::user::get(ty).map(|user| user.kind.clone()) {
        Some(crate::user::UserKind::Open(class)) => class.0.from_plain(ty, value),
        Some(crate::user::UserKind::Domain { base, .. }) => relabel(value, base),
        _ => value,
    }
}

/// An [`OpenType`] that can be printed.
#[derive(Clone, Copy)]
pub struct Class(pub &'static dyn OpenType);

impl Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Class")
    }
}

/// Calls a function of the table by its oid, as bodies that are built on others do.
///
/// # Errors
/// Those of the function; internal when it has no body that needs values only.
pub fn call(row: &FunctionRow, args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let types = crate::func::CallTypes { args: row.args, result: row.result };
    let missing = || Err(base::Error::internal(format!("{} needs a session", row.name)));
    row.body.run(args, types, cx).unwrap_or_else(missing)
}
