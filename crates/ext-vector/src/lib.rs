//! vector: the types, functions, operators, aggregates and operator classes of pgvector 0.8.
//!
//! ```text
//!   vector, halfvec   [1,2,3]         stored: numbers of 4 bytes, little-endian (halfvec: of 2)
//!   sparsevec         {1:1.5,3:2}/5   stored: dimensions, then place from 0 and number of each that isn't zero
//! ```
//!
//! The access methods (hnsw, ivfflat) are `access`'s; what they ask of values is `classes`'.
//! Source: the README of pgvector, which says names, types and errors.

#![forbid(unsafe_code)]

mod classes;
mod dense;
mod functions;
mod half;
mod sparse;

use types::extension::Library;

/// Makes the extension known. To be called before anything is looked up.
pub fn register() {
    types::extension::register(&[&LIBRARY]);
}

static LIBRARY: Library = Library {
    name: "vector",
    bodies: functions::bodies,
    types: &[
        ("vector_in", &dense::DenseType { half: false }),
        ("halfvec_in", &dense::DenseType { half: true }),
        ("sparsevec_in", &sparse::SparseType),
    ],
    vectors: classes::CLASSES,
    silent: &[
        "hnswhandler",
        "ivfflathandler",
        "hnsw_bit_support",
        "hnsw_halfvec_support",
        "hnsw_sparsevec_support",
        "ivfflat_bit_support",
        "ivfflat_halfvec_support",
        "vector_in",
        "vector_out",
        "vector_recv",
        "vector_typmod_in",
        "halfvec_in",
        "halfvec_out",
        "halfvec_recv",
        "halfvec_typmod_in",
        "sparsevec_in",
        "sparsevec_out",
        "sparsevec_recv",
        "sparsevec_typmod_in",
    ],
    ..Library::EMPTY
};
