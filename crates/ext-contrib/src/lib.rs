//! The extensions that come with the server: their control files and scripts (`extensions/`), and the code behind
//! them, one module each.
//!
//! Everything here is safe for threads: functions of their arguments, or of the session that calls them. The names of
//! functions, types and operators are those of PostgreSQL's contrib modules, whose manual (appendix F) is the source.

#![forbid(unsafe_code)]

mod adminpack;
mod bloom;
mod btree_gin;
mod btree_gist;
mod citext;
mod common;
mod cube;
mod dictionaries;
mod dmetaphone;
mod earthdistance;
mod file_fdw;
mod fuzzystrmatch;
mod hstore;
mod inspect;
mod intarray;
mod isn;
mod ltree;
mod pg_trgm;
mod pgcrypto;
mod row_triggers;
mod sampling;
mod seg;
mod spans;
mod tablefunc;
mod uuid_ossp;

use types::extension::Library;

const LIBRARIES: &[&Library] = &[
    &uuid_ossp::LIBRARY,
    &citext::LIBRARY,
    &pg_trgm::LIBRARY,
    &bloom::LIBRARY,
    &sampling::SYSTEM_ROWS,
    &sampling::SYSTEM_TIME,
    &btree_gin::LIBRARY,
    &btree_gist::LIBRARY,
    &fuzzystrmatch::LIBRARY,
    &hstore::LIBRARY,
    &pgcrypto::LIBRARY,
    &tablefunc::LIBRARY,
    &cube::LIBRARY,
    &seg::LIBRARY,
    &earthdistance::LIBRARY,
    &ltree::LIBRARY,
    &intarray::LIBRARY,
    &adminpack::LIBRARY,
    &isn::LIBRARY,
    &file_fdw::LIBRARY,
];

/// The files of `extensions/`.
const FILES: catalog::extension::Files = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Makes all of them known. To be called before anything is looked up.
pub fn register() {
    catalog::extension::embed(FILES);
    types::extension::register(LIBRARIES);
    let libraries: Vec<&'static Library> = row_triggers::LIBRARIES.iter().collect();
    types::extension::register(&libraries);
    let libraries: Vec<&'static Library> = inspect::LIBRARIES.iter().collect();
    types::extension::register(&libraries);
    let libraries: Vec<&'static Library> = dictionaries::LIBRARIES.iter().collect();
    types::extension::register(&libraries);
    dictionaries::register();
    exec::native::register("unaccent", dictionaries::SYMBOLS);
    exec::native::register("pg_trgm", pg_trgm::SYMBOLS);
    exec::native::register("isn", isn::SYMBOLS);
    exec::native::register("adminpack", adminpack::SYMBOLS);
    exec::native::register("tablefunc", tablefunc::SYMBOLS);
    exec::native::register("file_fdw", file_fdw::SYMBOLS);
    exec::foreign::register("file_fdw/file_fdw_handler", &file_fdw::FileWrapper);
    for (library, symbols) in row_triggers::SYMBOLS.into_iter().chain(inspect::SYMBOLS) {
        exec::native::register(library, symbols);
    }
}
