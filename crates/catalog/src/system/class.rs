//! Classes, as `pg_depend` and `pg_description` name them, and oids of objects that have none of their own.

use crate::object::Id;

/// `pg_class`.
pub const RELATION: Id = 1259;
/// `pg_type`.
pub const TYPE: Id = 1247;
/// `pg_proc`.
pub const FUNCTION: Id = 1255;
/// `pg_constraint`.
pub const CONSTRAINT: Id = 2606;
/// `pg_attrdef`.
pub const DEFAULT: Id = 2604;
/// `pg_namespace`.
pub const SCHEMA: Id = 2615;
/// `pg_trigger`.
pub const TRIGGER: Id = 2620;
/// `pg_event_trigger`.
pub const EVENT_TRIGGER: Id = 3466;
/// `pg_policy`.
pub const POLICY: Id = 3256;
/// `pg_rewrite`.
pub const REWRITE: Id = 2618;
/// `pg_authid`.
pub const ROLE: Id = 1260;
/// `pg_database`.
pub const DATABASE: Id = 1262;
/// `pg_tablespace`.
pub const TABLESPACE: Id = 1213;
/// `pg_collation`.
pub const COLLATION: Id = 3456;
/// `pg_am`.
pub const ACCESS_METHOD: Id = 2601;
/// `pg_cast`.
pub const CAST: Id = 2605;
/// `pg_language`.
pub const LANGUAGE: Id = 2612;
/// `pg_opclass`.
pub const OPERATOR_CLASS: Id = 2616;
/// `pg_operator`.
pub const OPERATOR: Id = 2617;
/// `pg_opfamily`.
pub const OPERATOR_FAMILY: Id = 2753;
/// `pg_statistic_ext`.
pub const STATISTICS: Id = 3381;
/// `pg_amop`.
pub const FAMILY_OPERATOR: Id = 2602;
/// `pg_amproc`.
pub const FAMILY_FUNCTION: Id = 2603;
/// `pg_conversion`.
pub const CONVERSION: Id = 2607;
/// `pg_ts_config`.
pub const TS_CONFIG: Id = 3602;
/// `pg_ts_dict`.
pub const TS_DICT: Id = 3600;
/// `pg_ts_parser`.
pub const TS_PARSER: Id = 3601;
/// `pg_ts_template`.
pub const TS_TEMPLATE: Id = 3764;
/// `pg_extension`.
pub const EXTENSION: Id = 3079;
/// `pg_publication`.
pub const PUBLICATION: Id = 6104;
/// `pg_publication_rel`.
pub const PUBLICATION_TABLE: Id = 6106;
/// `pg_publication_namespace`.
pub const PUBLICATION_SCHEMA: Id = 6237;
/// `pg_subscription`.
pub const SUBSCRIPTION: Id = 6100;
/// `pg_foreign_data_wrapper`.
pub const WRAPPER: Id = 2328;
/// `pg_foreign_server`.
pub const SERVER: Id = 1417;
/// `pg_user_mapping`.
pub const MAPPING: Id = 1418;
/// `pg_largeobject`.
pub const LARGE_OBJECT: Id = 2613;

/// A default has no object of its own; its oid is made from the table's and the column's, which is
/// unique for tables below 2^20 columns apart.
pub fn default_id(table: Id, column: u16) -> Id {
    table.wrapping_mul(2048).wrapping_add(u32::from(column)) | 1 << 30
}

/// The oid of a view's rule, which is no object here.
pub fn rule_id(view: Id) -> Id {
    view | 1 << 29
}

/// The view whose rule has this oid, if it is one of a view's.
pub fn view_of_rule(rule: Id) -> Option<Id> {
    (rule & 1 << 29 != 0).then_some(rule & !(1 << 29))
}
