//! Access control lists as rows show them.

use types::{Datum, oids};

use crate::acl::Rights;
use crate::object::{AclItem, AclKind, Id};
use crate::system::SystemCx;
use crate::system::row::{array, text};

/// Rights as an `aclitem[]`.
pub(super) fn acl_datum(cx: &SystemCx<'_>, items: &[AclItem]) -> Datum {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    array(oids::ACLITEM, 1, items.iter().map(|i| text(&rights.text(i))).collect())
}

/// The rights stored for an object or column; NULL: the usual ones.
pub(super) fn stored_acl(cx: &SystemCx<'_>, kind: AclKind, object: Id, column: u16) -> Datum {
    cx.catalog.acl(kind, object, column).map_or(Datum::Null, |a| acl_datum(cx, &a.items))
}

/// The rights on a system table, which PostgreSQL writes down.
pub(super) fn system_acl(cx: &SystemCx<'_>, table: Id) -> Datum {
    let rights = Rights { catalog: cx.catalog, database: cx.database };
    acl_datum(cx, &rights.items(AclKind::Table, table))
}
