//! Indexes and what they are made of; collations.

use base::AccessMethod;
use serde::{Deserialize, Serialize};
use types::collation::Slot;

use crate::object::id::Id;

/// An index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Index {
    /// Oid.
    pub oid: Id,
    /// Name; its schema is the table's.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Its table.
    pub table: Id,
    /// Its files.
    pub rel: u32,
    /// Its access method.
    #[serde(default, with = "method")]
    pub method: AccessMethod,
    /// The oid of the user's access method under whose name it was made; 0: under its own.
    #[serde(default)]
    pub named_method: Id,
    /// Key columns.
    pub columns: Vec<IndexColumn>,
    /// Further columns that it keeps (INCLUDE), from 1.
    #[serde(default)]
    pub include: Vec<u16>,
    /// WHERE of a partial index, as SQL.
    #[serde(default)]
    pub predicate: Option<String>,
    /// Sequences, types, functions and collations that its expressions name.
    #[serde(default)]
    pub uses: Vec<Id>,
    /// NULLS NOT DISTINCT.
    #[serde(default)]
    pub nulls_equal: bool,
    /// Left behind by a CREATE INDEX CONCURRENTLY that failed: kept up to date, not read.
    #[serde(default)]
    pub invalid: bool,
    /// Of an exclusion constraint's index: by which operator, for each key column, no two rows may agree on all.
    #[serde(default)]
    pub exclude: Vec<Id>,
    /// UNIQUE.
    pub unique: bool,
    /// Backs the primary key.
    pub primary: bool,
    /// Its constraint is DEFERRABLE: equal keys may stand in it until a statement or transaction ends.
    #[serde(default)]
    pub deferrable: bool,
    /// The table was last clustered by it.
    #[serde(default)]
    pub clustered: bool,
    /// The index of a partitioned table of which it is a part; 0: none.
    #[serde(default)]
    pub parent: Id,
    /// Storage parameters.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// The CSN of the commit that made its files, or made it valid; 0: before the server started. An older snapshot may
    /// see row versions that it has no entries for.
    #[serde(skip)]
    pub since: u64,
    /// Kept up to date, but not read: the view is that of such an older snapshot.
    #[serde(skip)]
    pub hidden: bool,
}

/// A key column of an index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IndexColumn {
    /// The table's column, from 1; 0 when it is an expression.
    pub column: u16,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// An expression over the row.
    #[serde(default)]
    pub expression: Option<Box<KeyExpression>>,
    /// The collation by which it is sorted, when it is not `default`.
    #[serde(default)]
    pub collation: Option<Box<KeyCollation>>,
    /// Its operator class's oid; 0: the type's default one.
    #[serde(default)]
    pub class: Id,
    /// Its operator class's parameters.
    #[serde(default)]
    pub class_options: Vec<(String, String)>,
    /// The statistics target of an expression; None: the default.
    #[serde(default)]
    pub statistics: Option<u16>,
}

/// An access method in a stored object: its name.
mod method {
    use base::AccessMethod;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(method: &AccessMethod, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(method.name())
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<AccessMethod, D::Error> {
        let name = String::deserialize(from)?;
        AccessMethod::named(&name)
            .ok_or_else(|| de::Error::custom(format!("unknown index access method {name}")))
    }
}

impl IndexColumn {
    /// The collation of its keys.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn slot(&self) -> base::Result<Slot> {
        match &self.collation {
            Some(c) if !self.is_by_pattern() => c.slot(),
            _ => Ok(Slot::BYTES),
        }
    }

    /// Its operator class's oid, for values of this type; 0: there is none.
    pub fn class_of(&self, method: AccessMethod, ty: Id) -> Id {
        match self.class {
            0 => types::opclass::default_class(method.oid(), base::Oid(ty)).map_or(0, |c| c.oid),
            class => class,
        }
    }

    /// Whether its class is one of those that compare texts by their bytes (`text_pattern_ops`).
    pub fn is_by_pattern(&self) -> bool {
        self.class != 0 && types::opclass::is_by_pattern(self.class)
    }
}

/// A collation as an index keeps it: what its keys were made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyCollation {
    /// Its oid.
    pub oid: Id,
    /// See [`Collation::icu_locale`].
    pub icu_locale: Option<String>,
    /// See [`Collation::deterministic`].
    pub deterministic: bool,
}

impl KeyCollation {
    /// Of a collation.
    pub fn of(c: &Collation) -> KeyCollation {
        KeyCollation {
            oid: c.oid,
            icu_locale: c.icu_locale.clone(),
            deterministic: c.deterministic,
        }
    }

    /// See [`Collation::slot`].
    ///
    /// # Errors
    /// As there.
    pub fn slot(&self) -> base::Result<Slot> {
        match &self.icu_locale {
            Some(locale) => Slot::of(locale, self.deterministic),
            None => Ok(Slot::BYTES),
        }
    }
}

/// A collation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collation {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// `c` (the C library's locales, which compare bytes), `i` (ICU), `d` (the database's).
    pub provider: char,
    /// Texts are equal only when their bytes are.
    pub deterministic: bool,
    /// LC_COLLATE and LC_CTYPE.
    pub libc: Option<(String, String)>,
    /// ICU's locale.
    pub icu_locale: Option<String>,
    /// The library's version when it was made.
    pub version: Option<String>,
    /// For this encoding; -1: for all.
    pub encoding: i32,
}

impl Collation {
    /// The collation as values are compared by it.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn slot(&self) -> base::Result<Slot> {
        KeyCollation::of(self).slot()
    }
}

/// An expression over a table's rows: an index's, or of extended statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyExpression {
    /// As SQL.
    pub sql: String,
    /// The index column's name.
    pub name: String,
    /// Type.
    pub ty: Id,
    /// Columns in it, from 1.
    pub columns: Vec<u16>,
    /// The collation that its values have of themselves; 0: the default one, or none.
    #[serde(default)]
    pub collation: Id,
}

impl Index {
    /// Its stored expressions, in order: those of its keys, then the condition of a partial index.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let keys = self.columns.iter().filter_map(|c| Some(c.expression.as_ref()?.sql.as_str()));
        keys.chain(self.predicate.as_deref())
    }

    /// An index of columns over all rows: what foreign keys and conflicts can rest on.
    pub fn is_plain(&self) -> bool {
        self.expressions().next().is_none()
    }

    /// Whether a column of the table is part of it: as key, included, or in an expression or the
    /// condition.
    pub fn uses_column(&self, number: u16) -> bool {
        let in_key = |c: &IndexColumn| {
            c.column == number || c.expression.as_ref().is_some_and(|e| e.columns.contains(&number))
        };
        self.columns.iter().any(in_key) || self.include.contains(&number)
    }
}
