//! Libraries: the built-in code of extensions, as `LANGUAGE c` functions of their scripts name it
//! (`AS 'MODULE_PATHNAME', 'symbol'`).
//!
//! ```text
//!   script: CREATE FUNCTION … AS '$libdir/citext', 'citext_eq'   ─► symbol("citext", "citext_eq") ─► Body
//!           CREATE TYPE … (INPUT = citextin, …)                  ─► open_type("citext/citextin")  ─► OpenType
//!           CREATE OPERATOR CLASS … USING gin … FUNCTION 2 …     ─► gin_class("pg_trgm/…", type)  ─► GinClass
//!           CREATE OPERATOR CLASS … USING gist … FUNCTION 1 …    ─► gist_class("pg_trgm/…", type) ─► GistClass
//!           CREATE OPERATOR CLASS … USING hnsw … FUNCTION 1 …    ─► vector_class("vector/…")      ─► VectorClass
//! ```
//!
//! Libraries are registered when the server starts, before anything is looked up, and never change. Bodies that
//! need the session are not here: the executor has them under the same names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base::Oid;

use crate::func::Body;
use crate::gin::GinClass;
use crate::gist::{GistClass, Maker as GistMaker};
use crate::open::OpenType;
use crate::vectors::VectorClass;

/// Makes a class of GIN for values of a type, which the extension may have made.
pub type GinMaker = fn(Oid) -> Arc<dyn GinClass>;

/// The code of one extension.
pub struct Library {
    /// Its name: what follows `$libdir/`.
    pub name: &'static str,
    /// Functions by their symbols.
    pub bodies: fn() -> Vec<(&'static str, Body)>,
    /// Types, by the symbols of their input functions.
    pub types: &'static [(&'static str, &'static dyn OpenType)],
    /// Classes of GIN, by the symbols of the functions that take values apart (support function 2).
    pub gin: &'static [(&'static str, GinMaker)],
    /// Classes of GiST, by the symbols of the functions that ask keys (support function 1).
    pub gist: &'static [(&'static str, GistMaker)],
    /// Classes of `hnsw` and `ivfflat`, by the symbols of their distances (support function 1), with `+norm` behind them when
    /// there is a support function 2.
    pub vectors: &'static [(&'static str, &'static dyn VectorClass)],
    /// Symbols that stand in scripts and are never called: the support functions of index methods, selectivity
    /// estimators and kin, whose work the server does in its own way.
    pub silent: &'static [&'static str],
}

impl Library {
    /// A library of nothing, to be filled by `..`.
    pub const EMPTY: Library = Library {
        name: "",
        bodies: Vec::new,
        types: &[],
        gin: &[],
        gist: &[],
        vectors: &[],
        silent: &[],
    };
}

static REGISTERED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// Registers libraries; those that are known by name stay as they are. To be called before anything else.
pub fn register(libraries: &[&'static Library]) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    for library in libraries {
        if !registered.iter().any(|l| l.name == library.name) {
            registered.push(library);
        }
    }
}

/// The registrations made before the first look-up.
struct Known {
    libraries: Vec<&'static Library>,
    bodies: HashMap<&'static str, HashMap<&'static str, Body>>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let libraries = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of = |l: &&'static Library| (l.name, (l.bodies)().into_iter().collect());
        let bodies = libraries.iter().map(of).collect();
        Known { libraries, bodies }
    })
}

/// The name of a library in a file name: without `$libdir/` and the suffix.
pub fn library_name(file: &str) -> &str {
    let name = file.strip_prefix("$libdir/").unwrap_or(file);
    name.strip_suffix(".so").unwrap_or(name)
}

/// Whether there is a library of this name.
pub fn has_library(name: &str) -> bool {
    known().libraries.iter().any(|l| l.name == name)
}

/// The body behind a symbol, for functions that need values only.
pub fn symbol(library: &str, symbol: &str) -> Option<Body> {
    let library = known().libraries.iter().find(|l| l.name == library)?;
    if library.silent.contains(&symbol) {
        return Some(Body::Session(crate::func::SessionFunction::ExtensionSupport));
    }
    known().bodies.get(library.name)?.get(symbol).copied()
}

/// The maker of a type's values; `name` is the library's and the symbol of the input function, with a slash between.
pub fn open_type(name: &str) -> Option<&'static dyn OpenType> {
    let (library, symbol) = name.split_once('/')?;
    let library = known().libraries.iter().find(|l| l.name == library)?;
    library.types.iter().find(|(s, _)| *s == symbol).map(|(_, class)| *class)
}

/// A class of GIN for values of a type, by library and symbol as in [`open_type`].
pub fn gin_class(name: &str, ty: Oid) -> Option<Arc<dyn GinClass>> {
    let (library, symbol) = name.split_once('/')?;
    let library = known().libraries.iter().find(|l| l.name == library)?;
    library.gin.iter().find(|(s, _)| *s == symbol).map(|(_, make)| make(ty))
}

/// The same of GiST.
pub fn gist_class(name: &str, ty: Oid) -> Option<Arc<dyn GistClass>> {
    let (library, symbol) = name.split_once('/')?;
    let library = known().libraries.iter().find(|l| l.name == library)?;
    library.gist.iter().find(|(s, _)| *s == symbol).map(|(_, make)| make(ty))
}

/// A class of `hnsw` or `ivfflat`, by library and symbol.
pub fn vector_class(name: &str) -> Option<&'static dyn VectorClass> {
    let (library, symbol) = name.split_once('/')?;
    let library = known().libraries.iter().find(|l| l.name == library)?;
    library.vectors.iter().find(|(s, _)| *s == symbol).map(|(_, class)| *class)
}
