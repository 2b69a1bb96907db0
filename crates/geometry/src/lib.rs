//! The geometric types of the plane: point, lseg, line, box, path, polygon and circle.
//!
//! A package of `types`. Most comparisons are fuzzy, as PostgreSQL's are: what differs by no more than
//! [`EPSILON`] is equal. Source: chapters 8.8 and 9.11 of PostgreSQL's manual.

#![forbid(unsafe_code)]

mod areas;
mod basic;
mod functions;
pub mod gist;
mod io;
mod lines;
mod shape;

pub use basic::EPSILON;
pub use shape::Shape;

use shape::Kind;
use types::open::{OpenType, Package};

macro_rules! open_types { ($($kind:ident)*) => {
    &[$((Kind::$kind.oid(), &Kind::$kind as &dyn OpenType)),*]
} }

/// The types with all that belongs to them.
pub static PACKAGE: Package = Package {
    name: "geometry",
    types: include_str!("../table/types.txt"),
    functions: include_str!("../table/functions.txt"),
    operators: include_str!("../table/operators.txt"),
    casts: include_str!("../table/casts.txt"),
    bodies: functions::bodies,
    open_types: open_types!(Point Lseg Line Box Path Polygon Circle),
    ..Package::EMPTY
};
