//! Classes of GIN indexes: of which keys a value consists, which keys an operator asks for, and what the keys
//! that a row has say of the condition. Keys are bytes in whose order the index has them.
//!
//! A crate that has types of its own adds its classes with [`register`]; text search, trigrams and the like
//! are such.

mod array;
mod jsonb;
mod jsonpath;

use std::sync::{Arc, LazyLock};

use base::ternary::{Check, Mode, Ternary};
use base::{Oid, Result, WaitEvent};
use sched::Mutex;

use crate::datum::Datum;
use crate::opclass;

/// A key that an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryKey {
    /// This one.
    Key(Vec<u8>),
    /// NULL.
    Null,
    /// All that begin with these bytes.
    Beginning(Vec<u8>),
    /// All from here on, and below the second one if there is one.
    Range(Vec<u8>, Option<Vec<u8>>),
}

/// The query that an operator makes of its value.
#[derive(Clone)]
pub struct GinQuery {
    /// The keys.
    pub keys: Vec<QueryKey>,
    /// Which rows come into question.
    pub mode: Mode,
    /// The rule by which a row's keys decide the condition.
    pub check: Check,
}

impl GinQuery {
    /// Nothing satisfies it.
    pub fn nothing() -> GinQuery {
        GinQuery { keys: Vec::new(), mode: Mode::Default, check: Arc::new(|_| Ternary::False) }
    }

    /// The index can't tell: every row must be asked.
    pub fn everything() -> GinQuery {
        GinQuery { keys: Vec::new(), mode: Mode::All, check: Arc::new(|_| Ternary::Maybe) }
    }
}

/// An operator class of GIN, for values of one type.
pub trait GinClass: Send + Sync {
    /// Adds the keys of a value that is not NULL, in any order; None: a NULL among them. A value without
    /// keys is kept as an empty one.
    ///
    /// # Errors
    /// For values that have no keys of this class.
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()>;

    /// The query of an operator, by its strategy number in the class, with this value, which is not NULL, on its right
    /// side.
    ///
    /// # Errors
    /// For values that the operator doesn't take.
    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery>;
}

/// Makes a class for values of a type.
type Maker = fn(Oid) -> Arc<dyn GinClass>;

static OTHERS: LazyLock<Mutex<Vec<(u32, Maker)>>> =
    LazyLock::new(|| Mutex::new(WaitEvent::LWLockOther, Vec::new()));

/// Makes a class known, by its oid, when the server starts.
pub fn register(class: u32, make: Maker) {
    OTHERS.lock().push((class, make));
}

/// The class with an oid, for values of this type; None: the house doesn't have it.
pub fn class(oid: u32, ty: Oid) -> Option<Arc<dyn GinClass>> {
    let oid = opclass::resolved(oid);
    match opclass::class(oid).map(|c| c.name) {
        Some("array_ops") => Some(Arc::new(array::ArrayOps::new(ty))),
        Some("jsonb_ops") => Some(Arc::new(jsonb::JsonbOps)),
        Some("jsonb_path_ops") => Some(Arc::new(jsonb::JsonbPathOps)),
        _ => {
            if let Some(code) = opclass::code(oid) {
                return crate::extension::gin_class(&code, ty);
            }
            let known = OTHERS.lock().iter().find(|(class, _)| *class == oid).map(|c| c.1);
            known.map(|make| make(ty))
        }
    }
}

/// All of the keys are there, as far as is known.
fn all(present: &[Ternary]) -> Ternary {
    present.iter().copied().min().unwrap_or(Ternary::True)
}

/// One of them is.
fn any(present: &[Ternary]) -> Ternary {
    present.iter().copied().max().unwrap_or(Ternary::False)
}

/// A condition that holds for sure becomes one that may hold.
fn doubted(of: Ternary) -> Ternary {
    of.min(Ternary::Maybe)
}
