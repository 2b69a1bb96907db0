//! The files of extensions.

use base::{Error, Result, err};
use catalog::extension::Control;

/// `0A000`: libraries in C can't be loaded.
pub fn no_library(file: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED, "library \"{file}\" cannot be loaded")
        .detail(
            "Libraries for PostgreSQL expect a process for each session; this server runs sessions in threads.",
        )
        .hint(
            "Extensions that come with the server are listed in pg_available_extensions; CREATE EXTENSION installs them.",
        )
}

/// The extensions that can be installed; reading directories, if there are any, leaves the worker to others.
pub(crate) fn available() -> Result<Vec<Control>> {
    let path = catalog::extension::control_path();
    if path.is_empty() {
        return Ok(catalog::extension::embedded());
    }
    Ok(sched::blocking(base::WaitEvent::ExtensionExtension, move || {
        catalog::extension::available(&path)
    }))
}

/// `0A000`: there is no such extension; what there is.
pub fn not_available(name: &str) -> Error {
    let names = available().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|c| c.name.as_str()).collect();
    err!(FEATURE_NOT_SUPPORTED, "extension \"{name}\" is not available")
        .detail("Neither the server nor extension_control_path has a control file of this name.")
        .hint(format!("The extensions that are here: {}.", names.join(", ")))
}
