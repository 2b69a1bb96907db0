//! `array_ops`: arrays by their elements.

use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Error, Oid, Result};

use super::{GinClass, GinQuery, QueryKey, all, any, doubted};
use crate::TypeIo;
use crate::datum::Datum;
use crate::key::{self, KeyOrder};
use crate::oids;

/// Strategy numbers.
const OVERLAP: u16 = 1;
const CONTAINS: u16 = 2;
const CONTAINED: u16 = 3;
const EQUAL: u16 = 4;

pub(super) struct ArrayOps {
    element: Oid,
}

impl ArrayOps {
    /// For arrays of this type.
    pub(super) fn new(array: Oid) -> ArrayOps {
        ArrayOps { element: TypeIo::array_element(array).unwrap_or(oids::TEXT) }
    }

    fn keys(&self, value: &Datum) -> Result<Vec<Option<Vec<u8>>>> {
        let Datum::Array(array) = value else {
            return Err(Error::internal("array_ops over what is no array"));
        };
        let mut keys = Vec::with_capacity(array.items.len());
        for item in &array.items {
            keys.push(match item {
                Datum::Null => None,
                item => {
                    let mut bytes = Vec::with_capacity(16);
                    key::encode(self.element, item, KeyOrder::default(), &mut bytes)?;
                    Some(bytes)
                }
            });
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}

impl GinClass for ArrayOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        keys.extend(self.keys(value)?);
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        let keys = self.keys(value)?;
        let has_null = keys.contains(&None);
        let wanted = |null: bool| -> Vec<QueryKey> {
            let key = |key: &Option<Vec<u8>>| match key {
                Some(bytes) => Some(QueryKey::Key(bytes.clone())),
                None => null.then_some(QueryKey::Null),
            };
            keys.iter().filter_map(key).collect()
        };
        let query = |keys, mode, check: fn(&[Ternary]) -> Ternary| GinQuery {
            keys,
            mode,
            check: Arc::new(check),
        };
        let nonempty = |mode| if keys.is_empty() { mode } else { Mode::Default };
        Ok(match strategy {
            // A NULL equals nothing.
            OVERLAP => query(wanted(false), Mode::Default, any),
            CONTAINS if has_null => GinQuery::nothing(),
            CONTAINS => query(wanted(false), nonempty(Mode::All), all),
            CONTAINED => query(wanted(false), Mode::IncludeEmpty, |_| Ternary::Maybe),
            EQUAL => query(wanted(true), nonempty(Mode::IncludeEmpty), |p| doubted(all(p))),
            _ => return Err(Error::internal("an unknown strategy of array_ops")),
        })
    }
}
