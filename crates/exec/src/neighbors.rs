//! Keys of HNSW and IVFFlat indexes: what the column's class keeps of a vector, which is the whole key.

use std::sync::Arc;

use access::vector::{Iterative, VectorOps, VectorSearch};
use base::settings::setting;
use base::{AccessMethod, Error, Result};
use catalog::Index;
use sql::plan::IndexBounds;
use types::Datum;
use types::vectors::VectorClass;

use crate::eval;
use crate::rows::Row;
use crate::run::Run;

/// The class of an index's column.
pub struct VectorKeys {
    class: &'static dyn VectorClass,
    method: AccessMethod,
}

impl VectorKeys {
    /// Of an index; None: its class isn't known.
    pub fn new(index: &Index) -> Option<VectorKeys> {
        let class = types::vectors::class(index.columns.first()?.class)?;
        Some(VectorKeys { class, method: index.method })
    }

    /// Whether the index has an entry for a value.
    pub fn holds(&self, value: &Datum) -> bool {
        // For a value that can't be kept, `encode` fails.
        !value.is_null() && !matches!(self.class.key(value, self.method), Ok(None))
    }

    /// Appends a value's key.
    ///
    /// # Errors
    /// For values that the index can't keep.
    pub fn encode(&self, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
        if !value.is_null()
            && let Some(key) = self.class.key(value, self.method)?
        {
            out.extend_from_slice(&key);
        }
        Ok(())
    }
}

impl VectorOps for VectorKeys {
    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        self.class.distance(a, b)
    }

    fn check(&self, a: &[u8], b: &[u8]) -> Result<()> {
        self.class.check(a, b)
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        self.class.sample(vector)
    }

    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        self.class.mean(samples)
    }
}

/// The distances of an index of vectors.
pub fn ops(index: &Index) -> Option<Arc<dyn VectorOps>> {
    VectorKeys::new(index).map(|keys| Arc::new(keys) as Arc<dyn VectorOps>)
}

fn iterative(word: &str) -> Iterative {
    match word {
        "relaxed_order" => Iterative::Relaxed,
        "strict_order" => Iterative::Strict,
        _ => Iterative::Off,
    }
}

/// The search for the rows nearest to the value that the bounds say.
///
/// # Errors
/// Those of the bounds' expressions; `0A000` for bounds that no such index serves.
pub fn search(index: &Index, bounds: &IndexBounds, run: &mut Run<'_, '_>) -> Result<VectorSearch> {
    let without = || Error::internal("an index of vectors without a distance");
    let [key] = &bounds.nearest[..] else { return Err(without()) };
    let class = index.columns.first().and_then(|c| types::vectors::class(c.class));
    let class = class.ok_or_else(without)?;
    let value = eval::eval(&key.value, Row::Empty, run)?;
    let query = if value.is_null() { None } else { Some(class.query(&value)?) };
    let settings = run.cx.settings;
    Ok(match index.method {
        AccessMethod::Hnsw => VectorSearch {
            query,
            breadth: settings.int(setting::HNSW_EF_SEARCH).max(1) as usize,
            iterative: iterative(settings.str(setting::HNSW_ITERATIVE_SCAN)),
            most: settings.int(setting::HNSW_MAX_SCAN_TUPLES).max(1) as u64,
        },
        _ => VectorSearch {
            query,
            breadth: settings.int(setting::IVFFLAT_PROBES).max(1) as usize,
            iterative: iterative(settings.str(setting::IVFFLAT_ITERATIVE_SCAN)),
            most: settings.int(setting::IVFFLAT_MAX_PROBES).max(1) as u64,
        },
    })
}
