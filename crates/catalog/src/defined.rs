//! Look-ups of what users define besides tables, types and functions.

use std::sync::Arc;

use crate::object::ids::{self, PG_CATALOG};
use crate::object::{
    Aggregate, Cast, Conversion, Defined, ExtendedStatistics, Extension, Id, NamedMethod, Operator,
    OperatorClass, OperatorFamily, TextSearchConfig, TextSearchDictionary, TextSearchParser,
    TextSearchTemplate,
};
use crate::snapshot::Snapshot;
use crate::system::{facts, named};

impl Snapshot {
    /// All extensions that were created.
    pub fn extensions(&self) -> impl Iterator<Item = &Extension> {
        self.defined().filter_map(|d| match &**d {
            Defined::Extension(o) => Some(o),
            _ => None,
        })
    }

    /// An extension by its name.
    pub fn extension_named(&self, name: &str) -> Option<&Extension> {
        self.extensions().find(|e| e.name == name)
    }

    /// The extension that an object belongs to.
    pub fn extension_of(&self, id: Id) -> Option<&Extension> {
        self.extensions().find(|e| e.members.contains(&id))
    }

    /// All operators, casts, classes, families and conversions that users made.
    pub fn defined(&self) -> impl Iterator<Item = &Arc<Defined>> {
        self.defined.all.values()
    }

    /// One of them.
    pub fn defined_by_oid(&self, id: Id) -> Option<&Arc<Defined>> {
        self.defined.all.get(&id)
    }

    /// A user's operator.
    pub fn operator(&self, id: Id) -> Option<&Operator> {
        match &**self.defined.all.get(&id)? {
            Defined::Operator(o) => Some(o),
            _ => None,
        }
    }

    /// The users' operators with a name, in all schemas; shells among them.
    pub fn operators_named(&self, name: &str) -> impl Iterator<Item = &Operator> {
        let ids = self.defined.operators.get(name).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.operator(*id))
    }

    /// Whether users made an operator with this name.
    pub fn has_operators_named(&self, name: &str) -> bool {
        self.defined.operators.contains_key(name)
    }

    /// All operators that users made.
    pub fn operators(&self) -> impl Iterator<Item = &Operator> {
        self.defined().filter_map(|d| match &**d {
            Defined::Operator(o) => Some(o),
            _ => None,
        })
    }

    /// An operator by name and types along the search path, or in the named schema: PostgreSQL's or a user's.
    pub fn operator_named(
        &self,
        path: &[Id],
        schema: Option<&str>,
        name: &str,
        types: [Id; 2],
    ) -> Option<Id> {
        let built_in = || {
            let mut all = facts::operators_named(name);
            all.find(|id| facts::operand_types(*id) == Some(types))
        };
        let in_schema = |schema: Id| match schema {
            PG_CATALOG => built_in(),
            schema => {
                let fits = |o: &&Operator| o.schema == schema && [o.left, o.right] == types;
                self.operators_named(name).find(fits).map(|o| o.oid)
            }
        };
        match schema {
            Some(schema) => in_schema(self.schema_named(schema)?.oid),
            None => {
                let first = (!path.contains(&PG_CATALOG)).then_some(PG_CATALOG).into_iter();
                first.chain(path.iter().copied()).find_map(in_schema)
            }
        }
    }

    /// A user's cast.
    pub fn cast(&self, source: Id, target: Id) -> Option<&Cast> {
        let id = self.defined.casts.get(&(source, target))?;
        match &**self.defined.all.get(id)? {
            Defined::Cast(o) => Some(o),
            _ => None,
        }
    }

    /// All casts that users made.
    pub fn casts(&self) -> impl Iterator<Item = &Cast> {
        self.defined().filter_map(|d| match &**d {
            Defined::Cast(o) => Some(o),
            _ => None,
        })
    }

    /// All operator families that users made.
    pub fn operator_families(&self) -> impl Iterator<Item = &OperatorFamily> {
        self.defined().filter_map(|d| match &**d {
            Defined::Family(o) => Some(o),
            _ => None,
        })
    }

    /// All operator classes that users made.
    pub fn operator_classes(&self) -> impl Iterator<Item = &OperatorClass> {
        self.defined().filter_map(|d| match &**d {
            Defined::Class(o) => Some(o),
            _ => None,
        })
    }

    /// All access methods that users made.
    pub fn named_methods(&self) -> impl Iterator<Item = &NamedMethod> {
        self.defined().filter_map(|d| match &**d {
            Defined::Method(o) => Some(o),
            _ => None,
        })
    }

    /// An access method by its name: PostgreSQL's, an extension's that is there, or a user's.
    pub fn access_method_named(&self, name: &str) -> Option<NamedMethod> {
        let built_in = named::built_in_method(name).filter(|method| {
            let extension = base::AccessMethod::of_oid(method.oid).and_then(|m| m.extension());
            extension.is_none_or(|extension| self.extension_named(extension).is_some())
        });
        built_in.or_else(|| self.named_methods().find(|m| m.name == name).cloned())
    }

    /// An access method's name.
    pub fn access_method_name(&self, id: Id) -> Option<&str> {
        match self.defined.all.get(&id).map(|d| &**d) {
            Some(Defined::Method(own)) => Some(&own.name),
            _ => named::access_method_name(id),
        }
    }

    /// The name of an index's access method.
    pub fn method_of_index<'s>(&'s self, index: &crate::object::Index) -> &'s str {
        let own = (index.named_method != 0).then(|| self.access_method_name(index.named_method));
        own.flatten().unwrap_or_else(|| index.method.name())
    }

    /// All conversions that users made.
    pub fn conversions(&self) -> impl Iterator<Item = &Conversion> {
        self.defined().filter_map(|d| match &**d {
            Defined::Conversion(o) => Some(o),
            _ => None,
        })
    }

    /// All configurations of text search that users made.
    pub fn text_search_configs(&self) -> impl Iterator<Item = &TextSearchConfig> {
        self.defined().filter_map(|d| match &**d {
            Defined::TextSearchConfig(o) => Some(o),
            _ => None,
        })
    }

    /// All dictionaries of text search that users made.
    pub fn text_search_dictionaries(&self) -> impl Iterator<Item = &TextSearchDictionary> {
        self.defined().filter_map(|d| match &**d {
            Defined::TextSearchDictionary(o) => Some(o),
            _ => None,
        })
    }

    /// All templates of text search that users made.
    pub fn text_search_templates(&self) -> impl Iterator<Item = &TextSearchTemplate> {
        self.defined().filter_map(|d| match &**d {
            Defined::TextSearchTemplate(o) => Some(o),
            _ => None,
        })
    }

    /// All parsers of text search that users made.
    pub fn text_search_parsers(&self) -> impl Iterator<Item = &TextSearchParser> {
        self.defined().filter_map(|d| match &**d {
            Defined::TextSearchParser(o) => Some(o),
            _ => None,
        })
    }

    /// An object of text search (`letter` as in `facts/text_search.txt`) by name along the search path, or in the
    /// named schema.
    pub fn text_search_named(
        &self,
        path: &[Id],
        letter: &str,
        schema: Option<&str>,
        name: &str,
    ) -> Option<Id> {
        let in_schema = |place: Id| {
            let own = self.defined().find(|d| {
                let kind = match &***d {
                    Defined::TextSearchConfig(_) => "c",
                    Defined::TextSearchDictionary(_) => "d",
                    Defined::TextSearchTemplate(_) => "t",
                    Defined::TextSearchParser(_) => "p",
                    _ => return false,
                };
                kind == letter && d.schema() == Some(place) && d.name() == name
            });
            let built_in = || match place == ids::PG_CATALOG {
                true => crate::system::named::text_search(letter, name),
                false => None,
            };
            own.map(|d| d.oid()).or_else(built_in)
        };
        match schema {
            Some(schema) => in_schema(self.schema_named(schema)?.oid),
            None => {
                let catalog = ids::PG_CATALOG;
                let first = (!path.contains(&catalog)).then_some(catalog);
                first.into_iter().chain(path.iter().copied()).find_map(in_schema)
            }
        }
    }

    /// All extended statistics.
    pub fn extended_statistics(&self) -> impl Iterator<Item = &ExtendedStatistics> {
        self.defined().filter_map(|d| match &**d {
            Defined::Statistics(o) => Some(o),
            _ => None,
        })
    }

    /// Extended statistics by oid.
    pub fn statistics_object(&self, id: Id) -> Option<&ExtendedStatistics> {
        match &**self.defined.all.get(&id)? {
            Defined::Statistics(o) => Some(o),
            _ => None,
        }
    }

    /// Extended statistics by name along the search path, or in the named schema.
    pub fn statistics_named(
        &self,
        path: &[Id],
        schema: Option<&str>,
        name: &str,
    ) -> Option<&ExtendedStatistics> {
        let in_schema =
            |place: Id| self.extended_statistics().find(|s| s.schema == place && s.name == name);
        match schema {
            Some(schema) => in_schema(self.schema_named(schema)?.oid),
            None => path.iter().copied().find_map(in_schema),
        }
    }

    /// The definition that makes a function an aggregate.
    pub fn aggregate(&self, function: Id) -> Option<&Aggregate> {
        self.function(function)?.aggregate.as_deref()
    }
}
