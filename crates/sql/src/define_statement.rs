//! Statements about operators, casts, operator classes and families, conversions, languages and transforms, bound as
//! far as the grammar and types go: functions and operators by name are the executor's to find.

use base::Oid;

use crate::role::RoleRef;
use crate::utility::Name;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub enum DefineStatement {
    /// CREATE OPERATOR.
    CreateOperator(Box<OperatorDef>),
    /// ALTER OPERATOR … SET.
    AlterOperator {
        /// Which.
        operator: OperatorName,
        /// RESTRICT: Some(None) for NONE.
        restrict: Option<Option<Name>>,
        /// JOIN.
        join: Option<Option<Name>>,
    },
    /// CREATE CAST.
    CreateCast(CastDef),
    /// CREATE OPERATOR FAMILY.
    CreateFamily {
        /// Name.
        name: Name,
        /// Access method.
        method: String,
    },
    /// CREATE OPERATOR CLASS.
    CreateClass(Box<ClassDef>),
    /// ALTER OPERATOR FAMILY … ADD or DROP.
    AlterFamily {
        /// Name.
        name: Name,
        /// Access method.
        method: String,
        /// ADD.
        add: bool,
        /// What.
        items: Vec<ClassItem>,
    },
    /// CREATE CONVERSION.
    CreateConversion {
        /// Name.
        name: Name,
        /// From this encoding.
        from: String,
        /// To this one.
        to: String,
        /// The function.
        function: Name,
        /// DEFAULT.
        default: bool,
    },
    /// CREATE LANGUAGE.
    CreateLanguage {
        /// Name.
        name: String,
        /// OR REPLACE.
        replace: bool,
        /// HANDLER.
        handler: Option<Name>,
    },
    /// CREATE TRANSFORM.
    CreateTransform {
        /// Of this type.
        ty: Oid,
        /// For this language.
        language: String,
    },
    /// DROP.
    Drop {
        /// Which.
        targets: Vec<DefineTarget>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ALTER … RENAME TO.
    Rename(DefineTarget, String),
    /// ALTER … SET SCHEMA.
    SetSchema(DefineTarget, String),
    /// ALTER … OWNER TO.
    Owner(DefineTarget, RoleRef),
    /// SECURITY LABEL.
    SecurityLabel(Option<String>),
    /// ALTER … DEPENDS ON EXTENSION.
    DependsOn(String),
}

/// An object of these kinds, as statements name it.
#[derive(Clone, Debug)]
pub enum DefineTarget {
    /// An operator.
    Operator(OperatorName),
    /// A cast.
    Cast(Oid, Oid),
    /// An operator class of an access method.
    Class(Name, String),
    /// An operator family of an access method.
    Family(Name, String),
    /// A conversion.
    Conversion(Name),
    /// A transform.
    Transform(Oid, String),
    /// Nothing: a notice says that it isn't there. The kind's words.
    Missing(String, &'static str),
}

/// An operator's name and types.
#[derive(Clone, Debug)]
pub struct OperatorName {
    /// Name.
    pub name: Name,
    /// Left type; None: a prefix operator.
    pub left: Option<Oid>,
    /// Right type.
    pub right: Oid,
}

/// CREATE OPERATOR.
#[derive(Clone, Debug, Default)]
pub struct OperatorDef {
    /// Name.
    pub name: Option<Name>,
    /// FUNCTION or PROCEDURE.
    pub function: Option<Name>,
    /// LEFTARG.
    pub left: Option<Oid>,
    /// RIGHTARG.
    pub right: Option<Oid>,
    /// COMMUTATOR.
    pub commutator: Option<Name>,
    /// NEGATOR.
    pub negator: Option<Name>,
    /// RESTRICT.
    pub restrict: Option<Name>,
    /// JOIN.
    pub join: Option<Name>,
    /// HASHES.
    pub hashes: bool,
    /// MERGES.
    pub merges: bool,
    /// Attributes that there are not.
    pub unknown: Vec<String>,
}

/// CREATE CAST.
#[derive(Clone, Debug)]
pub struct CastDef {
    /// From.
    pub source: Oid,
    /// To.
    pub target: Oid,
    /// `e`, `a` or `i`.
    pub context: char,
    /// How.
    pub how: CastHow,
}

/// See [`CastDef`].
#[derive(Clone, Debug)]
pub enum CastHow {
    /// WITH FUNCTION: name and arguments, if they are given.
    Function(Name, Option<Vec<Oid>>),
    /// WITHOUT FUNCTION.
    Binary,
    /// WITH INOUT.
    InOut,
}

/// CREATE OPERATOR CLASS.
#[derive(Clone, Debug)]
pub struct ClassDef {
    /// Name.
    pub name: Name,
    /// DEFAULT.
    pub default: bool,
    /// FOR TYPE.
    pub input: Oid,
    /// The type as written.
    pub input_name: String,
    /// USING.
    pub method: String,
    /// FAMILY.
    pub family: Option<Name>,
    /// AS.
    pub items: Vec<ClassItem>,
}

/// An item of a class or family.
#[derive(Clone, Debug)]
pub enum ClassItem {
    /// OPERATOR.
    Operator {
        /// Strategy.
        number: i32,
        /// Name; none in ALTER OPERATOR FAMILY … DROP.
        name: Option<Name>,
        /// Types.
        types: Vec<Oid>,
        /// FOR ORDER BY.
        sort_family: Option<Name>,
    },
    /// FUNCTION.
    Function {
        /// Support number.
        number: i32,
        /// Name; none in DROP.
        name: Option<Name>,
        /// The function's arguments; None: not given.
        args: Option<Vec<Oid>>,
        /// The operand types that are given before it.
        types: Vec<Oid>,
    },
    /// STORAGE.
    Storage(Oid),
}

impl DefineTarget {
    /// The kind's words.
    fn words(&self) -> &'static str {
        match self {
            DefineTarget::Operator(_) => "OPERATOR",
            DefineTarget::Cast(..) => "CAST",
            DefineTarget::Class(..) => "OPERATOR CLASS",
            DefineTarget::Family(..) => "OPERATOR FAMILY",
            DefineTarget::Conversion(_) => "CONVERSION",
            DefineTarget::Transform(..) => "TRANSFORM",
            DefineTarget::Missing(_, words) => words,
        }
    }
}

impl DefineStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            DefineStatement::CreateOperator(_) => "CREATE OPERATOR",
            DefineStatement::AlterOperator { .. } => "ALTER OPERATOR",
            DefineStatement::CreateCast(_) => "CREATE CAST",
            DefineStatement::CreateFamily { .. } => "CREATE OPERATOR FAMILY",
            DefineStatement::CreateClass(_) => "CREATE OPERATOR CLASS",
            DefineStatement::AlterFamily { .. } => "ALTER OPERATOR FAMILY",
            DefineStatement::CreateConversion { .. } => "CREATE CONVERSION",
            DefineStatement::CreateLanguage { .. } => "CREATE LANGUAGE",
            DefineStatement::CreateTransform { .. } => "CREATE TRANSFORM",
            DefineStatement::SecurityLabel(_) => "SECURITY LABEL",
            DefineStatement::DependsOn(_) => "ALTER OBJECT",
            DefineStatement::Drop { targets, .. } => match targets.first().map(|t| t.words()) {
                Some("OPERATOR") => "DROP OPERATOR",
                Some("CAST") => "DROP CAST",
                Some("OPERATOR CLASS") => "DROP OPERATOR CLASS",
                Some("OPERATOR FAMILY") => "DROP OPERATOR FAMILY",
                Some("CONVERSION") => "DROP CONVERSION",
                _ => "DROP TRANSFORM",
            },
            DefineStatement::Rename(target, _)
            | DefineStatement::SetSchema(target, _)
            | DefineStatement::Owner(target, _) => match target.words() {
                "OPERATOR" => "ALTER OPERATOR",
                "OPERATOR CLASS" => "ALTER OPERATOR CLASS",
                "OPERATOR FAMILY" => "ALTER OPERATOR FAMILY",
                _ => "ALTER CONVERSION",
            },
        }
    }
}
