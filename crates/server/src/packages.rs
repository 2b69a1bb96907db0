//! The families of types that are crates of their own, and the extensions that come with the server.

use types::open::Package;

const PACKAGES: &[&Package] = &[&textsearch::PACKAGE, &geometry::PACKAGE];

/// Registers them all. Whatever reads rows or looks functions up comes after this.
pub fn register() {
    types::open::register(PACKAGES);
    textsearch::gin::register();
    textsearch::gist::register();
    geometry::gist::register();
    ext_contrib::register();
    ext_vector::register();
    ext_postgres::register();
}
