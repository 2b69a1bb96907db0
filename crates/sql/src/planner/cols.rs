//! Sets of column numbers.

use crate::expr::Expr;
use crate::logical::{Col, Rel};

/// A set of columns, one bit each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cols(Vec<u64>);

impl Cols {
    /// The columns that an expression uses.
    pub fn of(e: &Expr) -> Cols {
        let mut list = Vec::new();
        crate::walk::columns_of(e, &mut list);
        list.into_iter().collect()
    }

    /// The columns that an operator gives.
    pub fn output(rel: &Rel) -> Cols {
        let mut list = Vec::new();
        rel.output(&mut list);
        list.into_iter().collect()
    }

    /// Whether an expression has one value for all rows, which have these columns.
    pub fn leave_constant(&self, e: &Expr) -> bool {
        !Cols::of(e).intersects(self) && !crate::walk::is_volatile(e)
    }

    pub fn insert(&mut self, col: Col) {
        let word = usize::from(col) / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (col % 64);
    }

    pub fn contains(&self, col: Col) -> bool {
        self.0.get(usize::from(col) / 64).is_some_and(|w| w & 1 << (col % 64) != 0)
    }

    pub fn add(&mut self, other: &Cols) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    pub fn intersects(&self, other: &Cols) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub fn is_subset(&self, other: &Cols) -> bool {
        self.0.iter().enumerate().all(|(i, a)| a & !other.0.get(i).copied().unwrap_or(0) == 0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = Col> + '_ {
        self.0.iter().enumerate().flat_map(|(i, w)| {
            (0..64).filter(move |b| w & 1 << b != 0).map(move |b| (i * 64 + b) as Col)
        })
    }
}

impl FromIterator<Col> for Cols {
    fn from_iter<T: IntoIterator<Item = Col>>(iter: T) -> Cols {
        let mut set = Cols::default();
        iter.into_iter().for_each(|c| set.insert(c));
        set
    }
}
