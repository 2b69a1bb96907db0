//! Foreign keys between columns of two types: what a value of one table is in the other.
//!
//! ```text
//!   referring column    referred column
//!   int4                int8              one operator family: compared as they are ([`types::cross`])
//!   int4                numeric           cast: the referring value becomes one of the referred type
//!   numeric             int4              refused when the key is defined: no implicit cast goes that way
//! ```
//!
//! Two values are equal when the referring one, brought to the referred type, is equal to the other. The way
//! back isn't always one value (of int8 among float8, several are equal to one), so referring rows are found by
//! an index only where it is.

use base::{Oid, Result, err};
use catalog::{ForeignKey, Table};
use types::cross::{self, Place};
use types::func::{CastContext, convert};
use types::io::FormatContext;
use types::{Datum, oids};

use crate::ops::grouping::same_value;

/// `pg_am.oid` of B-trees.
const BTREE: u32 = 403;

/// How values of the two columns are compared.
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    /// They have one type.
    Same,
    /// By an operator of the family that takes both types.
    Family,
    /// As the referred column's, after an implicit cast.
    Cast,
}

/// A referring and a referred column's types, without domains.
#[derive(Clone, Copy)]
struct Pair {
    referring: Oid,
    referred: Oid,
    comparison: Comparison,
}

impl Pair {
    /// None: the types can't be compared, or only after a cast of the referred column.
    fn new(referring: Oid, referred: Oid) -> Option<Pair> {
        let base = |ty| types::user::base_type(ty, -1).0;
        let (referring, declared) = (base(referring), base(referred));
        let pair = |referred, comparison| Some(Pair { referring, referred, comparison });
        if referring == declared {
            return pair(declared, Comparison::Same);
        }
        // The type that the index's operators take.
        let class = types::opclass::default_class(BTREE, declared)?;
        let referred = match types::TypeIo::get(class.ty).is_some_and(|t| t.category == b'P') {
            true => declared,
            false => class.ty,
        };
        if cross::relation(referred, referring).is_some() {
            return pair(referred, Comparison::Family);
        }
        let castable = referred == class.ty && convert::is_implicit(referring, referred);
        if castable { pair(referred, Comparison::Cast) } else { None }
    }

    /// The referred value that equals a referring one; None: there is none.
    fn referred(self, value: &Datum, cx: &FormatContext) -> Result<Option<Datum>> {
        match self.comparison {
            Comparison::Same => Ok(Some(value.clone())),
            Comparison::Family => match cross::place(self.referred, value.clone(), cx)? {
                Place::At(value) => Ok(Some(value)),
                // An instant at which clocks are turned: the local time that stands for it.
                Place::Near(..) => {
                    let local = convert::convert(
                        value,
                        (self.referring, self.referred),
                        CastContext::Implicit,
                        cx,
                    );
                    Ok(local.unwrap_or(None))
                }
                Place::Null | Place::Below | Place::Above | Place::Behind(_) => Ok(None),
            },
            Comparison::Cast => {
                let types = (self.referring, self.referred);
                convert::convert(value, types, CastContext::Implicit, cx)
            }
        }
    }

    /// The only referring value that can equal a referred one.
    fn referring(self, value: &Datum, cx: &FormatContext) -> Result<Back> {
        match self.comparison {
            Comparison::Same => Ok(Back::Only(value.clone())),
            Comparison::Family => Ok(match cross::place(self.referring, value.clone(), cx)? {
                Place::At(value) => Back::Only(value),
                Place::Near(..) => Back::Several,
                Place::Null | Place::Below | Place::Above | Place::Behind(_) => Back::None,
            }),
            Comparison::Cast => {
                let integers = [oids::INT2, oids::INT4, oids::INT8];
                if self.referred != oids::NUMERIC || !integers.contains(&self.referring) {
                    return Ok(Back::Several);
                }
                // A value too large for the narrower type is no row's.
                let types = (self.referred, self.referring);
                let near = convert::convert(value, types, CastContext::Assignment, cx);
                let Ok(Some(near)) = near else { return Ok(Back::None) };
                let exact = self.referred(&near, cx)?.is_some_and(|v| same_value(&v, value));
                Ok(if exact { Back::Only(near) } else { Back::None })
            }
        }
    }
}

/// Referring values that equal a referred one.
enum Back {
    None,
    /// At most this one.
    Only(Datum),
    /// Maybe several: each is looked at.
    Several,
}

/// Where rows that refer to a key are.
pub enum Referrers {
    /// There are none.
    None,
    /// They have this key.
    With(Vec<Datum>),
    /// Each row of the table is to be asked ([`KeyTypes::refers`]).
    Anywhere,
}

/// The types of a foreign key's columns.
#[derive(Clone)]
pub struct KeyTypes {
    /// None where definitions of old have columns that can't be compared: nothing equals anything.
    pairs: Vec<Option<Pair>>,
}

/// Whether a foreign key from one column to another can be: the types are equal, or of one operator family,
/// or the referring one is cast implicitly to what the referred column's index takes.
pub fn comparable(referring: Oid, referred: Oid) -> bool {
    Pair::new(referring, referred).is_some()
}

/// Whether referring values are cast before they are compared, and to what.
pub fn cast_to(referring: Oid, referred: Oid) -> Option<Oid> {
    let pair = Pair::new(referring, referred)?;
    (pair.comparison == Comparison::Cast).then_some(pair.referred)
}

impl KeyTypes {
    /// Those of a key from one table to another.
    pub fn new(key: &ForeignKey, referring: &Table, referred: &Table) -> KeyTypes {
        KeyTypes::of((referring, &key.columns), (referred, &key.referenced))
    }

    /// As [`KeyTypes::new`], of the columns that are named.
    pub fn of(
        (referring, columns): (&Table, &[u16]),
        (referred, referenced): (&Table, &[u16]),
    ) -> KeyTypes {
        let ty = |table: &Table, n: &u16| Oid(table.columns[usize::from(*n) - 1].ty);
        let pairs = columns
            .iter()
            .zip(referenced)
            .map(|(a, b)| Pair::new(ty(referring, a), ty(referred, b)))
            .collect();
        KeyTypes { pairs }
    }

    /// The referred key that equals a referring one; None: there can be none.
    ///
    /// # Errors
    /// Those of casts.
    pub fn referred(&self, key: &[Datum], cx: &FormatContext) -> Result<Option<Vec<Datum>>> {
        let mut out = Vec::with_capacity(key.len());
        for (pair, value) in self.pairs.iter().zip(key) {
            let Some(pair) = pair else { return Ok(None) };
            match pair.referred(value, cx)? {
                Some(value) => out.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(out))
    }

    /// Where rows are that refer to a key.
    ///
    /// # Errors
    /// Those of casts.
    pub fn referrers(&self, key: &[Datum], cx: &FormatContext) -> Result<Referrers> {
        let mut out = Vec::with_capacity(key.len());
        let mut several = false;
        for (pair, value) in self.pairs.iter().zip(key) {
            let Some(pair) = pair else { return Ok(Referrers::None) };
            match pair.referring(value, cx)? {
                Back::None => return Ok(Referrers::None),
                Back::Only(value) => out.push(value),
                Back::Several => several = true,
            }
        }
        Ok(if several { Referrers::Anywhere } else { Referrers::With(out) })
    }

    /// Whether a referring key equals a referred one.
    ///
    /// # Errors
    /// Those of casts.
    pub fn refers(&self, key: &[Datum], referred: &[Datum], cx: &FormatContext) -> Result<bool> {
        if key.iter().any(Datum::is_null) {
            return Ok(false);
        }
        let key = self.referred(key, cx)?;
        Ok(key.is_some_and(|key| key.iter().zip(referred).all(|(a, b)| same_value(a, b))))
    }

    /// The values that ON UPDATE CASCADE writes into the referring columns.
    ///
    /// # Errors
    /// `42804` where there is no cast on assignment, and those of casts and lengths.
    pub fn assigned(
        &self,
        (table, columns): (&Table, &[u16]),
        key: &[Datum],
        cx: &FormatContext,
    ) -> Result<Vec<Datum>> {
        let mut out = Vec::with_capacity(key.len());
        for ((pair, n), value) in self.pairs.iter().zip(columns).zip(key) {
            let column = &table.columns[usize::from(*n) - 1];
            let (to, typmod) = types::user::base_type(Oid(column.ty), column.typmod);
            let from = pair.map_or(to, |p| p.referred);
            let cast = convert::convert(value, (from, to), CastContext::Assignment, cx)?;
            let value = cast.ok_or_else(|| {
                let named = |ty| types::io::format_type(ty, -1);
                err!(
                    DATATYPE_MISMATCH,
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    named(Oid(column.ty)),
                    named(from)
                )
                .hint("You will need to rewrite or cast the expression.")
            })?;
            out.push(types::io::apply_typmod(to, typmod, value, false)?);
        }
        Ok(out)
    }
}
