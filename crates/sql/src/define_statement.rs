//! Statements about operators, casts, operator classes and families, conversions, languages and transforms, bound as
//! far as the grammar and types go: functions and operators by name are the executor's to find.

use base::Oid;

use crate::name::Name;
use crate::role::RoleRef;

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
    /// CREATE STATISTICS.
    CreateStatistics(Box<StatisticsDef>),
    /// ALTER STATISTICS … SET STATISTICS.
    AlterStatistics {
        /// Which.
        target: DefineTarget,
        /// The statistics target; -1: the default.
        rows: i32,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE TEXT SEARCH CONFIGURATION, DICTIONARY, PARSER or TEMPLATE.
    CreateTextSearch(TextSearchKind, Name, Vec<(String, TextSearchValue)>),
    /// ALTER TEXT SEARCH DICTIONARY: options with their new values (None: without it).
    AlterDictionary(Name, Vec<(String, Option<String>)>),
    /// ALTER TEXT SEARCH CONFIGURATION.
    AlterConfiguration(Name, MappingChange),
    /// CREATE ACCESS METHOD.
    CreateMethod {
        /// Name.
        name: String,
        /// `i` (INDEX) or `t` (TABLE).
        kind: char,
        /// HANDLER.
        handler: Name,
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

/// Kinds of objects of text search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSearchKind {
    /// A configuration.
    Configuration,
    /// A dictionary.
    Dictionary,
    /// A parser.
    Parser,
    /// A template.
    Template,
}

impl TextSearchKind {
    /// As statements write it, and as messages call it.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            TextSearchKind::Configuration => {
                ("TEXT SEARCH CONFIGURATION", "text search configuration")
            }
            TextSearchKind::Dictionary => ("TEXT SEARCH DICTIONARY", "text search dictionary"),
            TextSearchKind::Parser => ("TEXT SEARCH PARSER", "text search parser"),
            TextSearchKind::Template => ("TEXT SEARCH TEMPLATE", "text search template"),
        }
    }

    /// Its letter in the catalog's list of PostgreSQL's.
    pub fn letter(self) -> &'static str {
        match self {
            TextSearchKind::Configuration => "c",
            TextSearchKind::Dictionary => "d",
            TextSearchKind::Parser => "p",
            TextSearchKind::Template => "t",
        }
    }
}

/// The value of an option: a name, or what was written.
#[derive(Clone, Debug)]
pub struct TextSearchValue {
    /// As a name.
    pub name: Name,
    /// As text.
    pub text: String,
}

/// ALTER TEXT SEARCH CONFIGURATION … MAPPING.
#[derive(Clone, Debug)]
pub enum MappingChange {
    /// ADD MAPPING FOR types WITH dictionaries.
    Add(Vec<String>, Vec<Name>),
    /// ALTER MAPPING FOR types WITH dictionaries.
    Alter(Vec<String>, Vec<Name>),
    /// ALTER MAPPING FOR types (none: all) REPLACE a dictionary WITH another.
    Replace(Vec<String>, Name, Name),
    /// DROP MAPPING IF EXISTS FOR types.
    Drop(Vec<String>, bool),
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
    /// Extended statistics.
    Statistics(Name),
    /// An object of text search.
    TextSearch(TextSearchKind, Name),
    /// A transform.
    Transform(Oid, String),
    /// An access method.
    Method(String),
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

/// CREATE STATISTICS.
#[derive(Clone, Debug, Default)]
pub struct StatisticsDef {
    /// Name; None: one is made.
    pub name: Option<Name>,
    /// Letters of the kinds, as `pg_statistic_ext.stxkind` has them.
    pub kinds: String,
    /// The table's oid.
    pub table: u32,
    /// Its columns, ascending, from 1.
    pub columns: Vec<u16>,
    /// Expressions over its rows.
    pub expressions: Vec<catalog::KeyExpression>,
    /// Names of columns, `expr` for an expression, in the statement's order: a name is made of them.
    pub names: Vec<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
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
            DefineTarget::Statistics(_) => "STATISTICS",
            DefineTarget::TextSearch(kind, _) => kind.words().0,
            DefineTarget::Transform(..) => "TRANSFORM",
            DefineTarget::Method(_) => "ACCESS METHOD",
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
            DefineStatement::CreateMethod { .. } => "CREATE ACCESS METHOD",
            DefineStatement::CreateStatistics(_) => "CREATE STATISTICS",
            DefineStatement::AlterStatistics { .. } => "ALTER STATISTICS",
            DefineStatement::CreateTextSearch(kind, ..) => match kind {
                TextSearchKind::Configuration => "CREATE TEXT SEARCH CONFIGURATION",
                TextSearchKind::Dictionary => "CREATE TEXT SEARCH DICTIONARY",
                TextSearchKind::Parser => "CREATE TEXT SEARCH PARSER",
                TextSearchKind::Template => "CREATE TEXT SEARCH TEMPLATE",
            },
            DefineStatement::AlterDictionary(..) => "ALTER TEXT SEARCH DICTIONARY",
            DefineStatement::AlterConfiguration(..) => "ALTER TEXT SEARCH CONFIGURATION",
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
                Some("STATISTICS") => "DROP STATISTICS",
                Some("ACCESS METHOD") => "DROP ACCESS METHOD",
                Some("TEXT SEARCH CONFIGURATION") => "DROP TEXT SEARCH CONFIGURATION",
                Some("TEXT SEARCH DICTIONARY") => "DROP TEXT SEARCH DICTIONARY",
                Some("TEXT SEARCH PARSER") => "DROP TEXT SEARCH PARSER",
                Some("TEXT SEARCH TEMPLATE") => "DROP TEXT SEARCH TEMPLATE",
                _ => "DROP TRANSFORM",
            },
            DefineStatement::Rename(target, _)
            | DefineStatement::SetSchema(target, _)
            | DefineStatement::Owner(target, _) => match target.words() {
                "OPERATOR" => "ALTER OPERATOR",
                "OPERATOR CLASS" => "ALTER OPERATOR CLASS",
                "OPERATOR FAMILY" => "ALTER OPERATOR FAMILY",
                "TEXT SEARCH CONFIGURATION" => "ALTER TEXT SEARCH CONFIGURATION",
                "TEXT SEARCH DICTIONARY" => "ALTER TEXT SEARCH DICTIONARY",
                "TEXT SEARCH PARSER" => "ALTER TEXT SEARCH PARSER",
                "TEXT SEARCH TEMPLATE" => "ALTER TEXT SEARCH TEMPLATE",
                "STATISTICS" => "ALTER STATISTICS",
                _ => "ALTER CONVERSION",
            },
        }
    }
}
