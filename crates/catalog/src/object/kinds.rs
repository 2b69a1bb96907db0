//! Types and functions that users make.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{Aggregate, Column, Constraint};
use crate::object::id::Id;

/// A type that a user made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserType {
    /// Oid.
    pub oid: Id,
    /// The oid of its array type.
    pub array: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// The type's kind.
    pub kind: UserTypeKind,
    /// The oid under which `pg_class` lists a composite type.
    #[serde(default)]
    pub class: Id,
    /// Types and functions that a domain's default and its constraints use.
    #[serde(default)]
    pub uses: Vec<Id>,
    /// The knowledge that `types` has of it, once somebody asked.
    #[serde(skip)]
    pub known: Known,
}

/// A type and its array type as `types` has them. Belongs to one version of an object: a copy starts
/// without.
#[derive(Debug, Default)]
pub struct Known(pub(crate) OnceLock<[Arc<types::user::UserType>; 2]>);

impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}

impl UserType {
    /// A type that nobody owns yet, in no schema.
    pub fn new(oid: Id, array: Id, name: &str, kind: UserTypeKind) -> UserType {
        let name = name.to_owned();
        let (schema, owner, class) = (0, 0, 0);
        let (uses, known) = (Vec::new(), Known::default());
        UserType { oid, array, name, schema, owner, kind, class, uses, known }
    }
}

/// See [`UserType`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum UserTypeKind {
    /// CREATE TYPE … AS ENUM; labels in order.
    Enum(Vec<EnumLabel>),
    /// CREATE DOMAIN.
    Domain {
        /// The type below.
        base: Id,
        /// Its typmod.
        typmod: i32,
        /// NOT NULL.
        not_null: bool,
        /// DEFAULT, as SQL.
        default: Option<String>,
        /// CHECKs over VALUE.
        checks: Vec<Constraint>,
        /// COLLATE; 0: that of the type below.
        #[serde(default)]
        collation: Id,
    },
    /// CREATE TYPE … AS (…).
    Composite(Vec<Column>),
    /// CREATE TYPE … AS RANGE.
    Range(Box<RangeKind>),
    /// The multirange type over a range type.
    Multirange {
        /// The range type.
        range: Id,
    },
    /// CREATE TYPE with input and output functions that are a built-in type's.
    Base(Box<BaseKind>),
    /// CREATE TYPE with a name only.
    Shell,
}

/// The definition of a range type. Oids; 0: none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RangeKind {
    /// SUBTYPE.
    pub subtype: Id,
    /// The multirange type.
    pub multirange: Id,
    /// SUBTYPE_OPCLASS.
    pub class: Id,
    /// COLLATION.
    pub collation: Id,
    /// CANONICAL.
    pub canonical: Id,
    /// SUBTYPE_DIFF.
    pub diff: Id,
}

/// The definition of a base type. Functions are oids; 0: none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BaseKind {
    /// The built-in type whose input and output it has.
    pub form: Id,
    /// Input, output, receive, send, typmod input, typmod output, analyze, subscript.
    pub functions: [Id; 8],
    /// INTERNALLENGTH; -1: variable.
    pub length: i16,
    /// PASSEDBYVALUE.
    pub by_value: bool,
    /// ALIGNMENT, as `pg_type.typalign`.
    pub align: char,
    /// STORAGE, as `pg_type.typstorage`.
    pub storage: char,
    /// CATEGORY.
    pub category: char,
    /// PREFERRED.
    pub preferred: bool,
    /// DEFAULT.
    pub default: Option<String>,
    /// ELEMENT.
    pub element: Id,
    /// DELIMITER.
    pub delimiter: char,
    /// COLLATABLE.
    pub collatable: bool,
    /// Library and symbol of the input function, where an extension's code makes the type's values.
    #[serde(default)]
    pub open: String,
}

/// A label of an enum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumLabel {
    /// Oid.
    pub oid: Id,
    /// Text.
    pub name: String,
    /// Place among the labels, as `pg_enum` shows it.
    pub order: f32,
    /// Place among the labels, as values have it: it never changes.
    pub rank: u64,
}

/// A function or procedure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Parameters, in order.
    pub args: Vec<FunctionArg>,
    /// Result type.
    pub result: Id,
    /// Returns rows.
    pub set: bool,
    /// `sql` for now.
    pub language: String,
    /// Text of the body.
    pub body: String,
    /// `i`, `s` or `v`.
    pub volatility: char,
    /// STRICT.
    pub strict: bool,
    /// A procedure.
    pub procedure: bool,
    /// SECURITY DEFINER.
    pub security_definer: bool,
    /// LEAKPROOF.
    pub leakproof: bool,
    /// PARALLEL: `s`, `r` or `u`.
    pub parallel: char,
    /// COST.
    pub cost: f32,
    /// ROWS.
    pub rows: f32,
    /// The body was written as RETURN or BEGIN ATOMIC.
    #[serde(default)]
    pub standard_body: bool,
    /// Schemas to search for what a standard body names: those in force when it was written.
    #[serde(default)]
    pub path: Vec<Id>,
    /// Objects that a standard body uses: object, and column from 1 or 0 for the whole.
    #[serde(default)]
    pub uses: Vec<(Id, u16)>,
    /// SET: settings while it runs.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The result (`record`) is a row of this table.
    #[serde(default)]
    pub row_of: Option<Id>,
    /// It is an aggregate.
    #[serde(default)]
    pub aggregate: Option<Box<Aggregate>>,
    /// SUPPORT; 0: none.
    #[serde(default)]
    pub support: Id,
    /// The library of a function in LANGUAGE c, whose body is the symbol.
    #[serde(default)]
    pub library: String,
}

impl Function {
    /// Parameters that have a value when the body begins.
    pub fn inputs(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| matches!(a.mode, 'i' | 'b' | 'v'))
    }

    /// Parameters that a call names: a procedure's CALL all of them.
    pub fn called_with(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| self.procedure || matches!(a.mode, 'i' | 'b' | 'v'))
    }

    /// Parameters that are columns of the result.
    pub fn outputs(&self) -> impl DoubleEndedIterator<Item = &FunctionArg> {
        self.args.iter().filter(|a| matches!(a.mode, 'o' | 'b' | 't'))
    }

    /// Types of the inputs: what overloads differ in.
    pub fn input_types(&self) -> Vec<base::Oid> {
        self.inputs().map(|a| base::Oid(a.ty)).collect()
    }

    /// It came with a range type, and goes with it.
    pub fn is_constructor(&self) -> bool {
        self.language == "internal"
            && (self.body.starts_with("range_constructor")
                || self.body.starts_with("multirange_constructor"))
    }

    /// The last parameter is VARIADIC.
    pub fn is_variadic(&self) -> bool {
        self.args.iter().any(|a| a.mode == 'v')
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionArg {
    /// Name; may be empty.
    pub name: String,
    /// Type.
    pub ty: Id,
    /// `i`, `o`, `b`, `v` or `t` as in `pg_proc.proargmodes`.
    pub mode: char,
    /// DEFAULT, as SQL.
    pub default: Option<String>,
}
