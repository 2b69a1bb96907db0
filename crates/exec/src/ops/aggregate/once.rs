//! An aggregate's inputs under grouping sets: computed once for each row, whatever number of sets takes them.

use base::Result;
use sql::{AggCall, Expr, walk};
use types::Datum;

use crate::eval;
use crate::rows::Row;
use crate::run::Run;

/// A call whose inputs are computed apart from it.
pub struct SharedInputs {
    filter: Option<Expr>,
    inputs: Vec<Expr>,
    /// The call over the values of `inputs`, without its filter.
    pub call: AggCall,
}

impl SharedInputs {
    /// Of a call; None where it must see the row itself: direct arguments are computed once a group.
    pub fn of(call: &AggCall) -> Option<SharedInputs> {
        if call.direct.iter().flatten().any(walk::is_volatile) {
            return None;
        }
        let mut inputs = Vec::new();
        let mut shared = call.clone();
        let filter = shared.filter.take();
        let mut take = |e: &mut Expr| {
            let (ty, place) = (e.ty(), place_of(&mut inputs, e));
            *e = Expr::Column(place, ty);
        };
        shared.args.iter_mut().for_each(&mut take);
        shared.order.iter_mut().for_each(|key| take(&mut key.expr));
        shared.direct.iter_mut().flatten().for_each(take);
        Some(SharedInputs { filter, inputs, call: shared })
    }

    /// The inputs of a row; None: the filter keeps it out.
    ///
    /// # Errors
    /// The filter's and the inputs'.
    pub fn values(&self, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Option<Vec<Datum>>> {
        if let Some(filter) = &self.filter
            && !eval::holds(filter, row, run)?
        {
            return Ok(None);
        }
        eval::eval_all(&self.inputs, row, run).map(Some)
    }
}

/// The place of an input; one that is written twice in a call (`array_agg(f(x) ORDER BY f(x))`) is computed once.
fn place_of(inputs: &mut Vec<Expr>, e: &Expr) -> u16 {
    let known = inputs.iter().position(|other| walk::same(other, e));
    let place = known.unwrap_or_else(|| {
        inputs.push(e.clone());
        inputs.len() - 1
    });
    place as u16
}
