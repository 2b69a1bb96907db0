//! tsm_system_rows and tsm_system_time: the names of methods of TABLESAMPLE, which are the executor's.

use types::extension::Library;

/// The code of tsm_system_rows.
pub static SYSTEM_ROWS: Library =
    Library { name: "tsm_system_rows", silent: &["tsm_system_rows_handler"], ..Library::EMPTY };

/// The code of tsm_system_time.
pub static SYSTEM_TIME: Library =
    Library { name: "tsm_system_time", silent: &["tsm_system_time_handler"], ..Library::EMPTY };
