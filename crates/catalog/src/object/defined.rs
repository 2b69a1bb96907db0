//! Objects that users define besides tables, types and functions: aggregates (which are functions), operators,
//! casts, operator classes and families, conversions.

use serde::{Deserialize, Serialize};

use super::{
    ExtendedStatistics, ForeignServer, ForeignWrapper, Publication, Subscription, UserMapping,
};
use crate::object::id::Id;
use crate::system::class;

/// The definition that makes a function an aggregate. Functions and types are oids; 0: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// `n` (ordinary), `o` (ordered-set) or `h` (hypothetical-set), as in `pg_aggregate.aggkind`.
    pub kind: char,
    /// Direct arguments of an ordered-set aggregate.
    pub direct: u16,
    /// The forward half: state, functions and what it begins with.
    pub plain: AggregateSteps,
    /// The half that windows with a moving frame use, if there is one.
    pub moving: Option<AggregateSteps>,
    /// COMBINEFUNC.
    pub combine: Id,
    /// SERIALFUNC.
    pub serial: Id,
    /// DESERIALFUNC.
    pub deserial: Id,
    /// SORTOP.
    pub sort_operator: Id,
}

/// One way of computing an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AggregateSteps {
    /// SFUNC.
    pub transition: Id,
    /// MINVFUNC; 0 in the forward half.
    pub inverse: Id,
    /// STYPE.
    pub state: Id,
    /// SSPACE.
    pub space: i32,
    /// FINALFUNC.
    pub finish: Id,
    /// FINALFUNC_EXTRA.
    pub extra: bool,
    /// FINALFUNC_MODIFY: `r`, `s` or `w`.
    pub modify: char,
    /// INITCOND.
    pub initial: Option<String>,
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operator {
    /// Oid.
    pub oid: Id,
    /// Its characters.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// LEFTARG; 0: a prefix operator.
    pub left: Id,
    /// RIGHTARG.
    pub right: Id,
    /// Result's type; 0 while it is a shell.
    pub result: Id,
    /// FUNCTION; 0: a shell, which another operator names as its commutator or negator.
    pub function: Id,
    /// COMMUTATOR.
    pub commutator: Id,
    /// NEGATOR.
    pub negator: Id,
    /// RESTRICT.
    pub restrict: Id,
    /// JOIN.
    pub join: Id,
    /// HASHES.
    pub hashes: bool,
    /// MERGES.
    pub merges: bool,
}

/// A cast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cast {
    /// Oid.
    pub oid: Id,
    /// From.
    pub source: Id,
    /// To.
    pub target: Id,
    /// WITH FUNCTION; 0 otherwise.
    pub function: Id,
    /// `e` (explicit), `a` (assignment) or `i` (implicit).
    pub context: char,
    /// `f` (function), `b` (WITHOUT FUNCTION) or `i` (WITH INOUT).
    pub method: char,
}

/// An operator of a class or family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyOperator {
    /// Oid of its row in `pg_amop`.
    pub oid: Id,
    /// Strategy number.
    pub number: i16,
    /// Left type.
    pub left: Id,
    /// Right type.
    pub right: Id,
    /// The operator.
    pub operator: Id,
    /// FOR ORDER BY: the B-tree family that sorts; 0: FOR SEARCH.
    pub sort_family: Id,
}

/// A support function of a class or family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyFunction {
    /// Oid of its row in `pg_amproc`.
    pub oid: Id,
    /// Support number.
    pub number: i16,
    /// Left type.
    pub left: Id,
    /// Right type.
    pub right: Id,
    /// The function.
    pub function: Id,
}

/// A family of operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorFamily {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Access method.
    pub method: Id,
    /// Operators that belong to no class.
    pub operators: Vec<FamilyOperator>,
    /// Functions that belong to no class.
    pub functions: Vec<FamilyFunction>,
}

/// An operator class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorClass {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Access method.
    pub method: Id,
    /// Family.
    pub family: Id,
    /// The type that is indexed.
    pub input: Id,
    /// STORAGE; 0: the same.
    pub key: Id,
    /// DEFAULT.
    pub default: bool,
    /// Its operators.
    pub operators: Vec<FamilyOperator>,
    /// Its functions.
    pub functions: Vec<FamilyFunction>,
    /// Whether indexes can have it: the type's own order is behind it, or the code of an extension.
    #[serde(default)]
    pub usable: bool,
    /// Library and symbol of that code, or `=` and the oid of PostgreSQL's class that it does the same as;
    /// empty: there is none.
    #[serde(default)]
    pub code: String,
    /// The access method behind a user's; 0: [`OperatorClass::method`] is PostgreSQL's or an extension's.
    #[serde(default)]
    pub base: Id,
    /// The functions behind its operators, in their order.
    #[serde(default)]
    pub behind: Vec<Id>,
}

impl OperatorClass {
    /// The access method whose code indexes with this class run.
    pub fn base_method(&self) -> Id {
        if self.base == 0 { self.method } else { self.base }
    }
}

/// A conversion between encodings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// From this encoding, by its number.
    pub from: i32,
    /// To this one.
    pub to: i32,
    /// The function that does it.
    pub function: Id,
    /// DEFAULT.
    pub default: bool,
}

/// A configuration of text search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextSearchConfig {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Its parser.
    pub parser: Id,
    /// Types of tokens, each with its dictionaries in order.
    pub map: Vec<(i32, Vec<Id>)>,
}

/// A dictionary of text search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextSearchDictionary {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Its template.
    pub template: Id,
    /// Its options as `name = 'value', …`.
    pub options: String,
}

/// A template of dictionaries of text search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextSearchTemplate {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Oid of the superuser: templates have no owner of their own.
    pub owner: Id,
    /// The function that makes a dictionary; 0: none.
    pub init: Id,
    /// The function that asks one for a word.
    pub lexize: Id,
    /// The name of the code behind it: the symbol of `init`, or else of `lexize`, with the library's name in front if
    /// it is an extension's.
    pub code: String,
}

/// A parser of text search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextSearchParser {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Oid of the superuser: parsers have no owner of their own.
    pub owner: Id,
    /// Its functions: START, GETTOKEN, END, HEADLINE (0: none), LEXTYPES.
    pub functions: [Id; 5],
}

/// An extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// The schema of its objects; the extension itself is in none.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// Its objects may move to another schema.
    pub relocatable: bool,
    /// Version.
    pub version: String,
    /// Its members' oids, in the order in which they were made.
    pub members: Vec<Id>,
    /// Extensions that it needs.
    pub requires: Vec<Id>,
    /// Tables of users' settings, whose rows are dumped, with the condition.
    pub config: Vec<(Id, String)>,
}

/// An access method that a user made: another name of one that the server has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedMethod {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// `i` (of indexes) or `t` (of tables).
    pub kind: char,
    /// The function that says which method is behind it.
    pub handler: Id,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Defined {
    /// An extension.
    Extension(Extension),
    /// An operator.
    Operator(Operator),
    /// A cast.
    Cast(Cast),
    /// A family of operators.
    Family(OperatorFamily),
    /// An operator class.
    Class(OperatorClass),
    /// A conversion.
    Conversion(Conversion),
    /// A configuration of text search.
    TextSearchConfig(TextSearchConfig),
    /// A dictionary of text search.
    TextSearchDictionary(TextSearchDictionary),
    /// Extended statistics.
    Statistics(ExtendedStatistics),
    /// A publication.
    Publication(Publication),
    /// A subscription.
    Subscription(Subscription),
    /// A template of text search.
    TextSearchTemplate(TextSearchTemplate),
    /// A parser of text search.
    TextSearchParser(TextSearchParser),
    /// A foreign-data wrapper.
    Wrapper(ForeignWrapper),
    /// A foreign server.
    Server(ForeignServer),
    /// A user mapping.
    Mapping(UserMapping),
    /// An access method.
    Method(NamedMethod),
}

impl Defined {
    /// Its oid.
    pub fn oid(&self) -> Id {
        match self {
            Defined::Extension(o) => o.oid,
            Defined::Operator(o) => o.oid,
            Defined::Cast(o) => o.oid,
            Defined::Family(o) => o.oid,
            Defined::Class(o) => o.oid,
            Defined::Conversion(o) => o.oid,
            Defined::TextSearchConfig(o) => o.oid,
            Defined::TextSearchDictionary(o) => o.oid,
            Defined::TextSearchTemplate(o) => o.oid,
            Defined::TextSearchParser(o) => o.oid,
            Defined::Statistics(o) => o.oid,
            Defined::Publication(o) => o.oid,
            Defined::Subscription(o) => o.oid,
            Defined::Wrapper(o) => o.oid,
            Defined::Server(o) => o.oid,
            Defined::Mapping(o) => o.oid,
            Defined::Method(o) => o.oid,
        }
    }

    /// Its name; casts and user mappings have none.
    pub fn name(&self) -> &str {
        match self {
            Defined::Extension(o) => &o.name,
            Defined::Operator(o) => &o.name,
            Defined::Cast(_) | Defined::Mapping(_) => "",
            Defined::Family(o) => &o.name,
            Defined::Class(o) => &o.name,
            Defined::Conversion(o) => &o.name,
            Defined::TextSearchConfig(o) => &o.name,
            Defined::TextSearchDictionary(o) => &o.name,
            Defined::TextSearchTemplate(o) => &o.name,
            Defined::TextSearchParser(o) => &o.name,
            Defined::Statistics(o) => &o.name,
            Defined::Publication(o) => &o.name,
            Defined::Subscription(o) => &o.name,
            Defined::Wrapper(o) => &o.name,
            Defined::Server(o) => &o.name,
            Defined::Method(o) => &o.name,
        }
    }

    /// Its schema; a cast is in none.
    pub fn schema(&self) -> Option<Id> {
        match self {
            Defined::Extension(_) => None,
            Defined::Operator(o) => Some(o.schema),
            Defined::Cast(_) => None,
            Defined::Family(o) => Some(o.schema),
            Defined::Class(o) => Some(o.schema),
            Defined::Conversion(o) => Some(o.schema),
            Defined::TextSearchConfig(o) => Some(o.schema),
            Defined::TextSearchDictionary(o) => Some(o.schema),
            Defined::TextSearchTemplate(o) => Some(o.schema),
            Defined::TextSearchParser(o) => Some(o.schema),
            Defined::Statistics(o) => Some(o.schema),
            Defined::Publication(_)
            | Defined::Subscription(_)
            | Defined::Wrapper(_)
            | Defined::Server(_)
            | Defined::Mapping(_)
            | Defined::Method(_) => None,
        }
    }

    /// Its owner; a cast's are those of its types, a user mapping's is its role. Access methods have none.
    pub fn owner(&self) -> Option<Id> {
        match self {
            Defined::Extension(o) => Some(o.owner),
            Defined::Operator(o) => Some(o.owner),
            Defined::Cast(_) | Defined::Method(_) => None,
            Defined::Family(o) => Some(o.owner),
            Defined::Class(o) => Some(o.owner),
            Defined::Conversion(o) => Some(o.owner),
            Defined::TextSearchConfig(o) => Some(o.owner),
            Defined::TextSearchDictionary(o) => Some(o.owner),
            Defined::TextSearchTemplate(o) => Some(o.owner),
            Defined::TextSearchParser(o) => Some(o.owner),
            Defined::Statistics(o) => Some(o.owner),
            Defined::Publication(o) => Some(o.owner),
            Defined::Subscription(o) => Some(o.owner),
            Defined::Wrapper(o) => Some(o.owner),
            Defined::Server(o) => Some(o.owner),
            Defined::Mapping(o) => (o.role != 0).then_some(o.role),
        }
    }

    /// Where it is, who owns it and what it is called; None for a cast. Publications and
    /// subscriptions are in no schema.
    pub fn place_mut(&mut self) -> Option<(Option<&mut Id>, &mut Id, &mut String)> {
        Some(match self {
            Defined::Extension(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Operator(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Cast(_) | Defined::Mapping(_) | Defined::Method(_) => return None,
            Defined::Family(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Class(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Conversion(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::TextSearchConfig(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::TextSearchDictionary(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::TextSearchTemplate(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::TextSearchParser(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Statistics(o) => (Some(&mut o.schema), &mut o.owner, &mut o.name),
            Defined::Publication(o) => (None, &mut o.owner, &mut o.name),
            Defined::Subscription(o) => (None, &mut o.owner, &mut o.name),
            Defined::Wrapper(o) => (None, &mut o.owner, &mut o.name),
            Defined::Server(o) => (None, &mut o.owner, &mut o.name),
        })
    }

    /// The oid of its catalog.
    pub fn class(&self) -> Id {
        match self {
            Defined::Extension(_) => class::EXTENSION,
            Defined::Operator(_) => class::OPERATOR,
            Defined::Cast(_) => class::CAST,
            Defined::Family(_) => class::OPERATOR_FAMILY,
            Defined::Class(_) => class::OPERATOR_CLASS,
            Defined::Conversion(_) => class::CONVERSION,
            Defined::TextSearchConfig(_) => class::TS_CONFIG,
            Defined::TextSearchDictionary(_) => class::TS_DICT,
            Defined::TextSearchTemplate(_) => class::TS_TEMPLATE,
            Defined::TextSearchParser(_) => class::TS_PARSER,
            Defined::Statistics(_) => class::STATISTICS,
            Defined::Publication(_) => class::PUBLICATION,
            Defined::Subscription(_) => class::SUBSCRIPTION,
            Defined::Wrapper(_) => class::WRAPPER,
            Defined::Server(_) => class::SERVER,
            Defined::Mapping(_) => class::MAPPING,
            Defined::Method(_) => class::ACCESS_METHOD,
        }
    }

    /// As messages call its kind.
    pub fn word(&self) -> &'static str {
        match self {
            Defined::Extension(_) => "extension",
            Defined::Operator(_) => "operator",
            Defined::Cast(_) => "cast",
            Defined::Family(_) => "operator family",
            Defined::Class(_) => "operator class",
            Defined::Conversion(_) => "conversion",
            Defined::TextSearchConfig(_) => "text search configuration",
            Defined::TextSearchDictionary(_) => "text search dictionary",
            Defined::TextSearchTemplate(_) => "text search template",
            Defined::TextSearchParser(_) => "text search parser",
            Defined::Statistics(_) => "statistics object",
            Defined::Publication(_) => "publication",
            Defined::Subscription(_) => "subscription",
            Defined::Wrapper(_) => "foreign-data wrapper",
            Defined::Server(_) => "server",
            Defined::Mapping(_) => "user mapping",
            Defined::Method(_) => "access method",
        }
    }

    /// Types, functions, operators and families that it uses; zeros among them.
    pub fn uses(&self) -> Vec<Id> {
        let members = |operators: &[FamilyOperator], functions: &[FamilyFunction]| {
            let operators = operators.iter().flat_map(|o| [o.left, o.right, o.operator]);
            let functions = functions.iter().flat_map(|f| [f.left, f.right, f.function]);
            operators.chain(functions).collect::<Vec<Id>>()
        };
        match self {
            Defined::Extension(o) => o.requires.iter().copied().chain([o.schema]).collect(),
            Defined::Operator(o) => vec![o.left, o.right, o.result, o.function, o.restrict, o.join],
            Defined::Cast(o) => vec![o.source, o.target, o.function],
            Defined::Family(o) => {
                let mut out = members(&o.operators, &o.functions);
                out.push(o.method);
                out
            }
            Defined::Class(o) => {
                let mut out = members(&o.operators, &o.functions);
                out.extend([o.input, o.key, o.family]);
                out
            }
            Defined::Conversion(o) => vec![o.function],
            Defined::TextSearchConfig(o) => {
                let dictionaries = o.map.iter().flat_map(|(_, ids)| ids.iter().copied());
                dictionaries.chain([o.parser]).collect()
            }
            Defined::TextSearchDictionary(o) => vec![o.template],
            Defined::TextSearchTemplate(o) => vec![o.init, o.lexize],
            Defined::TextSearchParser(o) => o.functions.to_vec(),
            // Dropping the table drops them along: `ddl::depend` knows.
            Defined::Statistics(o) => o.uses.clone(),
            // Tables and schemas that go are forgotten: `ddl::publication`.
            Defined::Publication(_) | Defined::Subscription(_) => Vec::new(),
            Defined::Wrapper(o) => vec![o.handler, o.validator],
            Defined::Server(o) => vec![o.wrapper],
            Defined::Mapping(o) => vec![o.server],
            Defined::Method(o) => vec![o.handler],
        }
    }
}
