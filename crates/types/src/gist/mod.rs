//! Classes of GiST and SP-GiST indexes: the key that covers a value, keys that cover several, which operators they
//! serve, and by which distances they order.
//!
//! ```text
//!  value ─ key() ─► key ─┐
//!                  key ──┴─ union() ─► key ─► …      what an inner page says of a page below it
//!  condition ─ check() ─► of a key: can a value below it satisfy the condition?
//! ```
//!
//! Leaves have keys as inner pages do: what a key can't tell is asked of the row. One form of keys serves many
//! types: [`interval`] (scalars, ranges, networks, texts), [`signature`] (sets), boxes in the crate of the
//! geometric types. A crate that has types of its own adds its classes with [`register`], an extension in its
//! `Library`.

pub mod interval;
pub mod signature;

use std::sync::{Arc, LazyLock};

use base::ternary::Ternary;
use base::{Oid, Result, WaitEvent};
use sched::Mutex;

use crate::datum::Datum;
use crate::opclass;

/// Whether a value with a key (true: a value's own key, in a leaf), or one of those that it covers, satisfies a
/// condition.
pub type KeyCheck = Arc<dyn Fn(&[u8], bool) -> Ternary + Send + Sync>;

/// The distance of a value with a key (true: its own), or the least of those that it covers; and whether the
/// value's own may be greater.
pub type KeyDistance = Arc<dyn Fn(&[u8], bool) -> (f64, bool) + Send + Sync>;

/// An operator class of GiST or SP-GiST, for values of one type.
pub trait GistClass: Send + Sync {
    /// The key of a value that is not NULL. It may say less than the value.
    ///
    /// # Errors
    /// For values that have no key of this class.
    fn key(&self, value: &Datum) -> Result<Vec<u8>>;

    /// The key that covers these, of which there is one at least: the same bytes as the first when that covers the
    /// others.
    fn union(&self, keys: &[&[u8]]) -> Vec<u8>;

    /// How much a key must grow to cover another one, too.
    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64;

    /// For each of at least two keys, whether it belongs to the second of two pages.
    fn split(&self, keys: &[&[u8]]) -> Vec<bool>;

    /// The check of keys for an operator, by its strategy number in the class, with this value, which is not NULL, on its
    /// right side. False must be right; the rest is asked of the row.
    ///
    /// # Errors
    /// For values that the operator doesn't take.
    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck>;

    /// The distance that an ordering operator gives, by its strategy number, to this value. None: there is none.
    ///
    /// # Errors
    /// For values that the operator doesn't take.
    fn distance(&self, _strategy: u16, _value: &Datum) -> Result<Option<KeyDistance>> {
        Ok(None)
    }

    /// The order of leaf keys in which neighbours are near each other; None: nothing gives one.
    fn place(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Whether [`GistClass::place`] gives something.
    fn is_sortable(&self) -> bool {
        false
    }

    /// Whether [`GistClass::value`] gives values back.
    fn returns_values(&self) -> bool {
        false
    }

    /// The value that a leaf key was made of.
    fn value(&self, _key: &[u8]) -> Option<Datum> {
        None
    }
}

/// Makes a class for values of a type.
pub type Maker = fn(Oid) -> Arc<dyn GistClass>;

static OTHERS: LazyLock<Mutex<Vec<(u32, Maker)>>> =
    LazyLock::new(|| Mutex::new(WaitEvent::LWLockOther, Vec::new()));

/// Makes a class known, by its oid, when the server starts.
pub fn register(class: u32, make: Maker) {
    OTHERS.lock().push((class, make));
}

/// The class with an oid, for values of this type; None: the house doesn't have it.
pub fn class(oid: u32, ty: Oid) -> Option<Arc<dyn GistClass>> {
    let oid = opclass::resolved(oid);
    let class = opclass::class(oid)?;
    match (class.name, class.method) {
        ("range_ops" | "multirange_ops", 783 | 4000) if opclass::code(oid).is_none() => {
            Some(Arc::new(interval::RangeOps))
        }
        ("inet_ops", 783 | 4000) if opclass::code(oid).is_none() => {
            Some(Arc::new(interval::InetOps))
        }
        ("text_ops", 4000) => Some(Arc::new(interval::TextOps)),
        _ => {
            if let Some(code) = opclass::code(oid) {
                return crate::extension::gist_class(&code, ty);
            }
            let known = OTHERS.lock().iter().find(|(class, _)| *class == oid).map(|c| c.1);
            known.map(|make| make(ty))
        }
    }
}

/// True as Maybe: the row decides.
pub fn possible(can: bool) -> Ternary {
    if can { Ternary::Maybe } else { Ternary::False }
}
