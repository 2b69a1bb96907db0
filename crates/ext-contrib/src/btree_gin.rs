//! btree_gin: classes of GIN that answer what a B-tree answers, for columns beside those that only GIN can index.
//!
//! A value has one key: its bytes in an index, whose order is the values'.

use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Oid, Result};
use types::Datum;
use types::extension::{GinMaker, Library};
use types::func::Body;
use types::gin::{GinClass, GinQuery, QueryKey};
use types::key::KeyOrder;

use crate::common::Bodies;

const MAKE: GinMaker = |ty| Arc::new(BtreeOps(ty));

macro_rules! classes { ($($symbol:literal)*) => { &[$(($symbol, MAKE)),*] } }

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "btree_gin",
    bodies,
    gin: classes! {
        "gin_extract_value_int2" "gin_extract_value_int4" "gin_extract_value_int8"
        "gin_extract_value_float4" "gin_extract_value_float8" "gin_extract_value_money"
        "gin_extract_value_oid" "gin_extract_value_timestamp" "gin_extract_value_timestamptz"
        "gin_extract_value_time" "gin_extract_value_timetz" "gin_extract_value_date"
        "gin_extract_value_interval" "gin_extract_value_macaddr" "gin_extract_value_macaddr8"
        "gin_extract_value_inet" "gin_extract_value_cidr" "gin_extract_value_text"
        "gin_extract_value_bpchar" "gin_extract_value_char" "gin_extract_value_bytea"
        "gin_extract_value_bit" "gin_extract_value_varbit" "gin_extract_value_numeric"
        "gin_extract_value_anyenum" "gin_extract_value_uuid" "gin_extract_value_name"
        "gin_extract_value_bool"
    },
    silent: &["gin_enum_cmp", "gin_numeric_cmp", "gin_btree_consistent"],
    ..Library::EMPTY
};

fn bodies() -> Bodies {
    let compared =
        Body::Scalar(|args, _| Ok(Datum::Int4(types::order::compare(&args[0], &args[1]) as i32)));
    vec![("gin_numeric_cmp", compared), ("gin_enum_cmp", compared)]
}

struct BtreeOps(Oid);

/// A value's bytes in an index.
fn key(ty: Oid, value: &Datum) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    types::key::encode(ty, value, KeyOrder::default(), &mut out)?;
    Ok(out)
}

impl GinClass for BtreeOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        keys.push(Some(key(self.0, value)?));
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        let key = key(self.0, value)?;
        // Ranges take what equals their end; those that don't want it ask again.
        let above = |key: &[u8]| [key, &[0xff]].concat();
        let keys = vec![match strategy {
            1 | 2 => QueryKey::Range(Vec::new(), Some(above(&key))),
            3 => QueryKey::Key(key),
            _ => QueryKey::Range(key, None),
        }];
        let exact = matches!(strategy, 3);
        let check: base::ternary::Check = Arc::new(move |present: &[Ternary]| {
            let found = present.iter().copied().max().unwrap_or(Ternary::False);
            if exact { found } else { found.min(Ternary::Maybe) }
        });
        Ok(GinQuery { keys, mode: Mode::Default, check })
    }
}
