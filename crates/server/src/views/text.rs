//! Texts of views.

use types::Datum;

pub(crate) fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}
