//! A statement of a session while it runs.

use base::Oid;
use types::Datum;

use crate::session::portal::{PlanOf, ResultFormats};

/// A statement to run.
pub struct Run<'a> {
    /// Its text.
    pub text: &'a str,
    /// Declared parameter types; None for the simple protocol, whose parameters are literals of the
    /// text.
    pub declared: Option<&'a [Oid]>,
    /// Its plan, which may be made anew before it is run.
    pub plan: &'a mut PlanOf,
    /// Its parameters.
    pub params: Vec<Datum>,
    /// Formats of the result's columns.
    pub formats: &'a ResultFormats,
    /// Input that came after the message.
    pub rest: &'a [u8],
    /// The client is told the columns before the rows.
    pub describe: bool,
    /// Rows are made and thrown away.
    pub discard: bool,
}
