//! bloom: the names behind the access method of the same name, which is `access`'s.

use types::extension::Library;

/// The extension's code.
pub static LIBRARY: Library = Library { name: "bloom", silent: &["blhandler"], ..Library::EMPTY };
