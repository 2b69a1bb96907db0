//! PostgreSQL's oids of the built-in types (facts: `pg_type.dat`).

use base::Oid;

macro_rules! oids { ($($name:ident = $oid:literal, $array:literal, $sql:literal;)*) => {
    $(#[doc = concat!("`", $sql, "`.")] pub const $name: Oid = Oid($oid);)*
    /// (oid, array type's oid, PostgreSQL's internal name) of each built-in type.
    pub const ALL: &[(Oid, Oid, &str)] = &[$((Oid($oid), Oid($array), $sql)),*];
} }

oids! {
    BOOL = 16, 1000, "bool";
    BYTEA = 17, 1001, "bytea";
    CHAR = 18, 1002, "char";
    NAME = 19, 1003, "name";
    INT8 = 20, 1016, "int8";
    INT2 = 21, 1005, "int2";
    INT4 = 23, 1007, "int4";
    REGPROC = 24, 1008, "regproc";
    TEXT = 25, 1009, "text";
    OID = 26, 1028, "oid";
    TID = 27, 1010, "tid";
    XID = 28, 1011, "xid";
    JSON = 114, 199, "json";
    FLOAT4 = 700, 1021, "float4";
    FLOAT8 = 701, 1022, "float8";
    UNKNOWN = 705, 0, "unknown";
    BPCHAR = 1042, 1014, "bpchar";
    VARCHAR = 1043, 1015, "varchar";
    DATE = 1082, 1182, "date";
    TIME = 1083, 1183, "time";
    TIMESTAMP = 1114, 1115, "timestamp";
    TIMESTAMPTZ = 1184, 1185, "timestamptz";
    INTERVAL = 1186, 1187, "interval";
    NUMERIC = 1700, 1231, "numeric";
    REGCLASS = 2205, 2210, "regclass";
    REGTYPE = 2206, 2211, "regtype";
    RECORD = 2249, 2287, "record";
    CSTRING = 2275, 1263, "cstring";
    VOID = 2278, 0, "void";
    ANY = 2276, 0, "any";
    ANYELEMENT = 2283, 0, "anyelement";
    ANYARRAY = 2277, 0, "anyarray";
    UUID = 2950, 2951, "uuid";
    INT2VECTOR = 22, 1006, "int2vector";
    OIDVECTOR = 30, 1013, "oidvector";
    REGNAMESPACE = 4089, 4090, "regnamespace";
    REGROLE = 4096, 4097, "regrole";
    PG_NODE_TREE = 194, 0, "pg_node_tree";
    PG_NDISTINCT = 3361, 0, "pg_ndistinct";
    PG_DEPENDENCIES = 3402, 0, "pg_dependencies";
    PG_MCV_LIST = 5017, 0, "pg_mcv_list";
    ACLITEM = 1033, 1034, "aclitem";
    XID8 = 5069, 271, "xid8";
    PG_LSN = 3220, 3221, "pg_lsn";
    CID = 29, 1012, "cid";
    REGPROCEDURE = 2202, 2207, "regprocedure";
    REGOPER = 2203, 2208, "regoper";
    REGOPERATOR = 2204, 2209, "regoperator";
    REGCOLLATION = 4191, 4192, "regcollation";
    REGCONFIG = 3734, 3735, "regconfig";
    REGDICTIONARY = 3769, 3770, "regdictionary";
    ANYNONARRAY = 2776, 0, "anynonarray";
    ANYENUM = 3500, 0, "anyenum";
    ANYCOMPATIBLE = 5077, 0, "anycompatible";
    ANYCOMPATIBLEARRAY = 5078, 0, "anycompatiblearray";
    ANYCOMPATIBLENONARRAY = 5079, 0, "anycompatiblenonarray";
    INTERNAL = 2281, 0, "internal";
    TRIGGER = 2279, 0, "trigger";
    EVENT_TRIGGER = 3838, 0, "event_trigger";
    FDW_HANDLER = 3115, 0, "fdw_handler";
    JSONB = 3802, 3807, "jsonb";
    JSONPATH = 4072, 4073, "jsonpath";
    TIMETZ = 1266, 1270, "timetz";
    BIT = 1560, 1561, "bit";
    VARBIT = 1562, 1563, "varbit";
    INET = 869, 1041, "inet";
    CIDR = 650, 651, "cidr";
    MACADDR = 829, 1040, "macaddr";
    MACADDR8 = 774, 775, "macaddr8";
    MONEY = 790, 791, "money";
    REFCURSOR = 1790, 2201, "refcursor";
    TXID_SNAPSHOT = 2970, 2949, "txid_snapshot";
    PG_SNAPSHOT = 5038, 5039, "pg_snapshot";
    INT4RANGE = 3904, 3905, "int4range";
    NUMRANGE = 3906, 3907, "numrange";
    TSRANGE = 3908, 3909, "tsrange";
    TSTZRANGE = 3910, 3911, "tstzrange";
    DATERANGE = 3912, 3913, "daterange";
    INT8RANGE = 3926, 3927, "int8range";
    INT4MULTIRANGE = 4451, 6150, "int4multirange";
    NUMMULTIRANGE = 4532, 6151, "nummultirange";
    TSMULTIRANGE = 4533, 6152, "tsmultirange";
    TSTZMULTIRANGE = 4534, 6153, "tstzmultirange";
    DATEMULTIRANGE = 4535, 6155, "datemultirange";
    INT8MULTIRANGE = 4536, 6157, "int8multirange";
    ANYRANGE = 3831, 0, "anyrange";
    ANYMULTIRANGE = 4537, 0, "anymultirange";
    ANYCOMPATIBLERANGE = 5080, 0, "anycompatiblerange";
    ANYCOMPATIBLEMULTIRANGE = 4538, 0, "anycompatiblemultirange";
}
