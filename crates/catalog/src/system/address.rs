//! Any object by its address: the oid of its catalog, its own, and a column's number. What
//! `pg_describe_object`, `pg_identify_object` and `pg_get_object_address` say.

use base::{Oid, Result, bail, err};
use types::func::quote_ident;
use types::oids;

use super::facts::{self, Fact};
use super::reg::Names;
use crate::object::{Defined, Id, TableKind, ids};
use crate::snapshot::Relation;
use crate::system::class::{self, default_id, view_of_rule};
use crate::system::named::{ACCESS_METHODS, TABLESPACES, language_name};
use crate::system::tables::by_oid;

/// An object's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The oid of its catalog.
    pub class: Id,
    /// Its oid.
    pub object: Id,
    /// A column's number, or 0.
    pub column: i32,
}

/// Names and schema of an object: enough to name it anywhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// Its kind, in the words of `pg_identify_object`.
    pub kind: String,
    /// Its schema, if it is in one.
    pub schema: Option<String>,
    /// Its name, if it is enough beside the schema.
    pub name: Option<String>,
    /// Its name, with all that makes it unique.
    pub identity: String,
    /// The same, in parts.
    pub names: Vec<String>,
    /// The types of its arguments.
    pub args: Vec<String>,
    /// As messages describe it.
    pub description: String,
}

/// Kinds that are a name of one part: catalog, kind and word.
const PLAIN: [(Id, &str); 5] = [
    (class::SCHEMA, "schema"),
    (class::ROLE, "role"),
    (class::DATABASE, "database"),
    (class::LANGUAGE, "language"),
    (class::ACCESS_METHOD, "access method"),
];

impl Names<'_> {
    /// Looks an object up; None when there is none.
    pub fn identify(&self, address: Address) -> Option<Identity> {
        let Address { class, object: id, column } = address;
        if let Some(own) = self.catalog.defined_by_oid(id) {
            return if own.class() == class { self.defined_identity(own) } else { None };
        }
        match class {
            class::RELATION => self.relation_identity(id, column),
            class::FUNCTION => self.function_identity(id),
            class::TYPE => self.type_identity(id),
            class::CONSTRAINT => self.constraint_identity(id),
            class::DEFAULT => self.default_identity(id),
            class::REWRITE => self.rule_identity(id).or_else(|| {
                self.part_identity("rule", id, |t, id| {
                    t.rules.iter().find(|one| one.oid == id).map(|one| one.name.clone())
                })
            }),
            class::TRIGGER => self.part_identity("trigger", id, |t, id| {
                t.triggers.iter().find(|one| one.oid == id).map(|one| one.name.clone())
            }),
            class::POLICY => self.part_identity("policy", id, |t, id| {
                t.policies.iter().find(|one| one.oid == id).map(|one| one.name.clone())
            }),
            class::PUBLICATION_TABLE | class::PUBLICATION_SCHEMA => self.member_identity(id),
            class::EVENT_TRIGGER => {
                let mut all = self.catalog.event_triggers();
                all.find(|t| t.oid == id).map(|t| plain("event trigger", &t.name))
            }
            class::OPERATOR => {
                let [left, right] = facts::operand_types(id)?;
                let name = facts::operator_name(id)?;
                let side = |t: Id| if t == 0 { "-".to_owned() } else { self.type_name(t) };
                let args = vec![side(left), side(right)];
                Some(Identity {
                    kind: "operator".to_owned(),
                    schema: Some("pg_catalog".to_owned()),
                    identity: format!("pg_catalog.{name}({})", args.join(",")),
                    names: vec!["pg_catalog".to_owned(), name.to_owned()],
                    args,
                    description: format!("operator {}", facts::regoperator(id)?),
                    ..Identity::default()
                })
            }
            class::CAST => {
                let fact = facts::casts().get(id)?;
                let (from, to) = (self.type_name(fact.id(1)), self.type_name(fact.id(2)));
                Some(Identity {
                    kind: "cast".to_owned(),
                    identity: format!("({from} AS {to})"),
                    description: format!("cast from {from} to {to}"),
                    names: vec![from],
                    args: vec![to],
                    ..Identity::default()
                })
            }
            class::COLLATION => {
                let found = self.catalog.collation(id)?;
                let shown = self.shown(oids::REGCOLLATION, id);
                Some(self.in_schema("collation", found.schema, &found.name, &shown))
            }
            class::OPERATOR_CLASS => self.of_method("operator class", facts::classes().get(id)?, 6),
            class::OPERATOR_FAMILY => {
                self.of_method("operator family", facts::families().get(id)?, 2)
            }
            class::CONVERSION => {
                let name = facts::conversions().get(id)?.text(1);
                Some(self.in_schema("conversion", ids::PG_CATALOG, name, &quote_ident(name)))
            }
            class::TS_CONFIG | class::TS_DICT | class::TS_PARSER | class::TS_TEMPLATE => {
                let (letter, kind) = match class {
                    class::TS_CONFIG => ("c", "text search configuration"),
                    class::TS_DICT => ("d", "text search dictionary"),
                    class::TS_PARSER => ("p", "text search parser"),
                    _ => ("t", "text search template"),
                };
                let is = |f: &Fact| f.text(0) == letter && f.id(1) == id;
                let name = facts::text_search().iter().find(is)?.text(2);
                Some(self.in_schema(kind, ids::PG_CATALOG, name, &quote_ident(name)))
            }
            class::LARGE_OBJECT => Some(plain("large object", &id.to_string())),
            class::EXTENSION => (super::named::extension(self.catalog, "plpgsql") == Some(id))
                .then(|| plain("extension", "plpgsql")),
            class::TABLESPACE => {
                let found = TABLESPACES.iter().find(|t| t.0 == id)?;
                Some(plain("tablespace", found.1))
            }
            _ => {
                let (_, kind) = PLAIN.iter().find(|(c, _)| *c == class)?;
                let name = match class {
                    class::SCHEMA => self.catalog.schema(id)?.name.clone(),
                    class::ROLE => self.catalog.role(id)?.name.clone(),
                    class::DATABASE => self.catalog.database(id)?.name.clone(),
                    class::LANGUAGE => language_name(id)?.to_owned(),
                    _ => ACCESS_METHODS.iter().find(|m| m.0 == id)?.1.to_owned(),
                };
                Some(plain(kind, &name))
            }
        }
    }

    /// An operator, cast, operator class or family, conversion that a user made.
    fn defined_identity(&self, own: &Defined) -> Option<Identity> {
        let name = own.name();
        Some(match own {
            Defined::Extension(e) => plain("extension", &e.name),
            Defined::Operator(o) => {
                let side = |t: Id| if t == 0 { "-".to_owned() } else { self.qualified_type(t) };
                let args = vec![side(o.left), side(o.right)];
                let schema = self.schema_name(o.schema);
                Identity {
                    kind: "operator".to_owned(),
                    identity: format!("{}.{name}({})", quote_ident(&schema), args.join(",")),
                    names: vec![schema.clone(), name.to_owned()],
                    schema: Some(quote_ident(&schema)),
                    args,
                    description: format!("operator {}", self.shown(oids::REGOPERATOR, o.oid)),
                    ..Identity::default()
                }
            }
            Defined::Cast(c) => {
                let (from, to) = (self.qualified_type(c.source), self.qualified_type(c.target));
                let shown = (self.type_name(c.source), self.type_name(c.target));
                Identity {
                    kind: "cast".to_owned(),
                    identity: format!("({from} AS {to})"),
                    description: format!("cast from {} to {}", shown.0, shown.1),
                    names: vec![from],
                    args: vec![to],
                    ..Identity::default()
                }
            }
            Defined::Class(_) | Defined::Family(_) => {
                let (kind, method, place) = match own {
                    Defined::Class(c) => ("operator class", c.method, c.schema),
                    Defined::Family(f) => ("operator family", f.method, f.schema),
                    _ => return None,
                };
                let method = self.catalog.access_method_name(method)?;
                let base = self.in_schema(kind, place, name, &self.shown_defined(place, name));
                Identity {
                    identity: format!("{} USING {method}", base.identity),
                    names: vec![method.to_owned(), self.schema_name(place), name.to_owned()],
                    description: format!("{} for access method {method}", base.description),
                    ..base
                }
            }
            Defined::Conversion(c) => {
                let shown = self.shown_defined(c.schema, name);
                self.in_schema("conversion", c.schema, name, &shown)
            }
            Defined::TextSearchConfig(c) => {
                let shown = self.shown_defined(c.schema, name);
                self.in_schema("text search configuration", c.schema, name, &shown)
            }
            Defined::TextSearchDictionary(d) => {
                let shown = self.shown_defined(d.schema, name);
                self.in_schema("text search dictionary", d.schema, name, &shown)
            }
            Defined::TextSearchTemplate(d) => {
                let shown = self.shown_defined(d.schema, name);
                self.in_schema("text search template", d.schema, name, &shown)
            }
            Defined::TextSearchParser(d) => {
                let shown = self.shown_defined(d.schema, name);
                self.in_schema("text search parser", d.schema, name, &shown)
            }
            Defined::Statistics(d) => {
                let shown = self.shown_defined(d.schema, name);
                self.in_schema("statistics object", d.schema, name, &shown)
            }
            Defined::Publication(_) => plain("publication", name),
            Defined::Subscription(_) => plain("subscription", name),
            Defined::Wrapper(_) => plain("foreign-data wrapper", name),
            Defined::Server(_) => plain("server", name),
            Defined::Method(_) => plain("access method", name),
            Defined::Mapping(m) => {
                let role = self.catalog.mapped_role(m).to_owned();
                let server = self.catalog.foreign_server(m.server).map_or("", |s| s.name.as_str());
                Identity {
                    kind: "user mapping".to_owned(),
                    identity: format!("{} on server {server}", quote_ident(&role)),
                    names: vec![role.clone()],
                    args: vec![server.to_owned()],
                    description: format!("user mapping for {role} on server {server}"),
                    ..Identity::default()
                }
            }
        })
    }

    /// A table or schema as a part of a publication.
    fn member_identity(&self, id: Id) -> Option<Identity> {
        for publication in self.catalog.publications() {
            let name = &publication.name;
            if let Some(member) = publication.tables.iter().find(|t| t.oid == id) {
                let table = self.relation_identity(member.table, 0)?;
                let shown = self.relation_name(member.table)?;
                return Some(Identity {
                    kind: "publication relation".to_owned(),
                    identity: format!("{} in publication {name}", table.identity),
                    names: table.names,
                    args: vec![name.clone()],
                    description: format!("publication of table {shown} in publication {name}"),
                    ..Identity::default()
                });
            }
            if let Some(member) = publication.schemas.iter().find(|s| s.oid == id) {
                let schema = self.schema_name(member.schema);
                return Some(Identity {
                    kind: "publication namespace".to_owned(),
                    identity: format!("{schema} in publication {name}"),
                    description: format!("publication of schema {schema} in publication {name}"),
                    names: vec![schema],
                    args: vec![name.clone()],
                    ..Identity::default()
                });
            }
        }
        None
    }

    /// A name, with its schema unless that is searched.
    fn shown_defined(&self, schema: Id, name: &str) -> String {
        match self.path.contains(&schema) {
            true => quote_ident(name),
            false => format!("{}.{}", quote_ident(&self.schema_name(schema)), quote_ident(name)),
        }
    }

    /// The address of what a kind and a list of names (and of types) say.
    ///
    /// # Errors
    /// `22023` for a kind that there is not, `42704`, `42P01` and kin for what is missing.
    pub fn address(&self, kind: &str, names: &[String], args: &[String]) -> Result<Address> {
        let quoted: Vec<String> = names.iter().map(|n| quote_ident(n)).collect();
        let joined = quoted.join(".");
        let of = |class, object| Ok(Address { class, object, column: 0 });
        match kind {
            "table" | "view" | "index" | "sequence" | "materialized view" | "composite type" => {
                of(class::RELATION, self.expect(oids::REGCLASS, &joined)?)
            }
            "table column" | "view column" | "materialized view column" => {
                let Some((column, table)) = names.split_last() else {
                    bail!(INVALID_PARAMETER_VALUE, "name list length must be at least 1");
                };
                let table: Vec<String> = table.iter().map(|n| quote_ident(n)).collect();
                let object = self.expect(oids::REGCLASS, &table.join("."))?;
                let missing = || {
                    let name = self.relation_name(object).unwrap_or_default();
                    err!(
                        UNDEFINED_COLUMN,
                        "column \"{column}\" of relation \"{name}\" does not exist"
                    )
                };
                let number = self.column_number(object, column).ok_or_else(missing)?;
                Ok(Address { class: class::RELATION, object, column: number })
            }
            "function" | "aggregate" | "procedure" | "routine" => {
                let signature = format!("{joined}({})", args.join(","));
                of(class::FUNCTION, self.expect(oids::REGPROCEDURE, &signature)?)
            }
            "operator" => {
                let signature = format!("{}({})", names.join("."), args.join(","));
                of(class::OPERATOR, self.expect(oids::REGOPERATOR, &signature)?)
            }
            "type" | "domain" => {
                of(class::TYPE, self.expect(oids::REGTYPE, names.first().map_or("", |n| n))?)
            }
            "event trigger" => {
                let name = names.first().map_or("", |n| n);
                let found = self.catalog.event_triggers().find(|t| t.name == name);
                let missing = || err!(UNDEFINED_OBJECT, "event trigger \"{name}\" does not exist");
                of(class::EVENT_TRIGGER, found.ok_or_else(missing)?.oid)
            }
            "schema" => of(class::SCHEMA, self.expect(oids::REGNAMESPACE, &joined)?),
            "role" => of(class::ROLE, self.expect(oids::REGROLE, &joined)?),
            "collation" => of(class::COLLATION, self.expect(oids::REGCOLLATION, &joined)?),
            "text search configuration" => {
                of(class::TS_CONFIG, self.expect(oids::REGCONFIG, &joined)?)
            }
            "text search dictionary" => {
                of(class::TS_DICT, self.expect(oids::REGDICTIONARY, &joined)?)
            }
            "database"
            | "language"
            | "extension"
            | "access method"
            | "tablespace"
            | "publication"
            | "subscription"
            | "foreign-data wrapper"
            | "server" => {
                let name = names.first().map_or("", |n| n);
                let (class, found) = match kind {
                    "database" => {
                        (class::DATABASE, self.catalog.database_named(name).map(|d| d.oid))
                    }
                    "language" => (class::LANGUAGE, super::named::language(name)),
                    "extension" => (class::EXTENSION, super::named::extension(self.catalog, name)),
                    "access method" => {
                        let found = self.catalog.access_method_named(name);
                        (class::ACCESS_METHOD, found.map(|m| m.oid))
                    }
                    "publication" => {
                        (class::PUBLICATION, self.catalog.publication_named(name).map(|p| p.oid))
                    }
                    "foreign-data wrapper" => {
                        (class::WRAPPER, self.catalog.wrapper_named(name).map(|w| w.oid))
                    }
                    "server" => {
                        (class::SERVER, self.catalog.foreign_server_named(name).map(|s| s.oid))
                    }
                    "subscription" => {
                        (class::SUBSCRIPTION, self.catalog.subscription_named(name).map(|s| s.oid))
                    }
                    _ => (class::TABLESPACE, super::named::tablespace(name)),
                };
                let missing = || err!(UNDEFINED_OBJECT, "{kind} \"{name}\" does not exist");
                of(class, found.ok_or_else(missing)?)
            }
            "user mapping" => {
                let (role, server) = (names.first(), args.first());
                let [role, server] = [role, server].map(|n| n.map_or("", String::as_str));
                let id = match role {
                    "public" => Some(0),
                    name => self.catalog.role_named(name).map(|r| r.oid),
                };
                let at = self.catalog.foreign_server_named(server);
                let found = id.zip(at).and_then(|(role, s)| self.catalog.user_mapping(role, s.oid));
                let missing = || {
                    err!(
                        UNDEFINED_OBJECT,
                        "user mapping for user \"{role}\" on server \"{server}\" does not exist"
                    )
                };
                of(class::MAPPING, found.ok_or_else(missing)?.oid)
            }
            "cast" => {
                let ty = |n: Option<&String>| self.expect(oids::REGTYPE, n.map_or("", |n| n));
                let (from, to) = (ty(names.first())?, ty(args.first())?);
                let own = self.catalog.cast(from, to).map(|c| c.oid);
                let built_in = || super::named::cast(base::Oid(from), base::Oid(to));
                let missing = || {
                    let [from, to] = [from, to].map(|t| self.type_name(t));
                    err!(UNDEFINED_OBJECT, "cast from type {from} to type {to} does not exist")
                };
                of(class::CAST, own.or_else(built_in).ok_or_else(missing)?)
            }
            "operator class" | "operator family" => self.method_address(kind, names),
            "table constraint" => self.constraint_address(names),
            _ => Err(err!(INVALID_PARAMETER_VALUE, "unrecognized object type \"{kind}\"")),
        }
    }

    /// An operator class or family: the method's name comes first.
    fn method_address(&self, kind: &str, names: &[String]) -> Result<Address> {
        let [method, place @ .., name] = names else {
            bail!(INVALID_PARAMETER_VALUE, "name list length must be at least 2");
        };
        let missing = || err!(UNDEFINED_OBJECT, "access method \"{method}\" does not exist");
        let id = self.catalog.access_method_named(method).ok_or_else(missing)?.oid;
        let fits = |d: &&std::sync::Arc<Defined>| {
            let of = match &***d {
                Defined::Class(c) if kind == "operator class" => c.method,
                Defined::Family(f) if kind == "operator family" => f.method,
                _ => return false,
            };
            let in_place = match place.first() {
                Some(place) => d.schema().is_some_and(|s| self.schema_name(s) == *place),
                None => d.schema().is_some_and(|s| self.path.contains(&s)),
            };
            of == id && d.name() == name && in_place
        };
        let class = match kind {
            "operator class" => class::OPERATOR_CLASS,
            _ => class::OPERATOR_FAMILY,
        };
        match self.catalog.defined().find(fits) {
            Some(found) => Ok(Address { class, object: found.oid(), column: 0 }),
            None => Err(err!(
                UNDEFINED_OBJECT,
                "{kind} \"{name}\" does not exist for access method \"{method}\""
            )),
        }
    }

    fn constraint_address(&self, names: &[String]) -> Result<Address> {
        let Some((name, table)) = names.split_last() else {
            bail!(INVALID_PARAMETER_VALUE, "name list length must be at least 1");
        };
        let quoted: Vec<String> = table.iter().map(|n| quote_ident(n)).collect();
        let id = self.expect(oids::REGCLASS, &quoted.join("."))?;
        let found =
            self.catalog.table(id).and_then(|t| t.constraints.iter().find(|c| c.name == *name));
        let table = table.last().map_or("", |t| t);
        let missing =
            || err!(UNDEFINED_OBJECT, "constraint \"{name}\" for table \"{table}\" does not exist");
        let object = found.ok_or_else(missing)?.oid;
        Ok(Address { class: class::CONSTRAINT, object, column: 0 })
    }

    fn type_name(&self, id: Id) -> String {
        self.shown(oids::REGTYPE, id)
    }

    /// A type's name with its schema, but for those that are words of SQL.
    /// A type's name with its schema, whatever the path.
    pub fn qualified_type(&self, id: Id) -> String {
        match self.type_identity(id) {
            Some(found) => found.identity,
            None => self.type_name(id),
        }
    }

    fn schema_name(&self, id: Id) -> String {
        self.catalog.schema(id).map_or_else(|| "information_schema".to_owned(), |s| s.name.clone())
    }

    /// An object in a schema; `shown`: as the search path shows it.
    fn in_schema(&self, kind: &str, schema: Id, name: &str, shown: &str) -> Identity {
        let schema = self.schema_name(schema);
        Identity {
            kind: kind.to_owned(),
            identity: format!("{}.{}", quote_ident(&schema), quote_ident(name)),
            names: vec![schema.clone(), name.to_owned()],
            schema: Some(quote_ident(&schema)),
            name: Some(quote_ident(name)),
            description: format!("{kind} {shown}"),
            ..Identity::default()
        }
    }

    fn of_method(&self, kind: &str, fact: Fact, method: usize) -> Option<Identity> {
        let id = fact.id(method);
        let method = ACCESS_METHODS.iter().find(|m| m.0 == id)?.1;
        let name = fact.text(1);
        let base = self.in_schema(kind, ids::PG_CATALOG, name, name);
        Some(Identity {
            identity: format!("{} USING {method}", base.identity),
            names: vec![method.to_owned(), "pg_catalog".to_owned(), name.to_owned()],
            description: format!("{} for access method {method}", base.description),
            ..base
        })
    }

    fn relation_kind(&self, id: Id) -> &'static str {
        match self.catalog.relation_by_oid(id) {
            Some(Relation::Table(t)) => match t.kind {
                TableKind::View => "view",
                TableKind::Materialized => "materialized view",
                TableKind::Foreign => "foreign table",
                _ => "table",
            },
            Some(Relation::Index(_)) => "index",
            Some(Relation::Sequence(_)) => "sequence",
            None if facts::index(id).is_some() => "index",
            None => match by_oid(Oid(id)) {
                Some(t) if t.is_view => "view",
                Some(_) => "table",
                None => "composite type",
            },
        }
    }

    fn relation_identity(&self, id: Id, column: i32) -> Option<Identity> {
        let (schema, name) = self.relation_parts(id)?;
        let shown = self.relation_name(id)?;
        let kind = self.relation_kind(id);
        let relation = self.in_schema(kind, schema, &name, &shown);
        if column == 0 {
            return Some(relation);
        }
        let column = self.column_name(id, column)?;
        let mut names = relation.names;
        names.push(column.clone());
        Some(Identity {
            kind: format!("{kind} column"),
            identity: format!("{}.{}", relation.identity, quote_ident(&column)),
            names,
            description: format!("column {} of {}", quote_ident(&column), relation.description),
            ..relation
        })
    }

    fn column_name(&self, relation: Id, number: i32) -> Option<String> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        match self.catalog.table(relation) {
            Some(table) => table.columns.get(at).filter(|c| !c.dropped).map(|c| c.name.clone()),
            None => by_oid(Oid(relation))?.columns.get(at).map(|c| c.0.to_owned()),
        }
    }

    fn column_number(&self, relation: Id, name: &str) -> Option<i32> {
        match self.catalog.table(relation) {
            Some(table) => table.column(name).map(|(n, _)| i32::from(n)),
            None => {
                let columns = by_oid(Oid(relation))?.columns;
                columns.iter().position(|c| c.0 == name).map(|n| n as i32 + 1)
            }
        }
    }

    fn function_identity(&self, id: Id) -> Option<Identity> {
        let (schema, name, types, kind) = match self.catalog.function(id) {
            Some(f) => {
                let types = f.input_types().iter().map(|t| t.0).collect::<Vec<_>>();
                let kind = match &f.aggregate {
                    Some(_) => "aggregate",
                    None if f.procedure => "procedure",
                    None => "function",
                };
                (self.schema_name(f.schema), f.name.clone(), types, kind)
            }
            None => {
                let kind = if facts::is_aggregate(id) { "aggregate" } else { "function" };
                let name = facts::function_name(id)?.to_owned();
                ("pg_catalog".to_owned(), name, facts::argument_types(id)?, kind)
            }
        };
        let args: Vec<String> = types.iter().map(|t| self.qualified_type(*t)).collect();
        let identity =
            format!("{}.{}({})", quote_ident(&schema), quote_ident(&name), args.join(","));
        Some(Identity {
            kind: kind.to_owned(),
            identity,
            names: vec![schema.clone(), name],
            schema: Some(quote_ident(&schema)),
            args,
            description: format!("function {}", self.shown(oids::REGPROCEDURE, id)),
            ..Identity::default()
        })
    }

    fn type_identity(&self, id: Id) -> Option<Identity> {
        let shown = self.shown(oids::REGTYPE, id);
        let description = format!("type {shown}");
        let (schema, name) = match facts::kinds().get(id) {
            Some(f) => {
                (f.text(facts::kind::SCHEMA).to_owned(), f.text(facts::kind::NAME).to_owned())
            }
            None => {
                let (schema, _, name) = self.catalog.type_place(id)?;
                (self.schema_name(schema), name)
            }
        };
        let array = shown.strip_suffix("[]");
        let element = array.unwrap_or(&shown);
        let words = ["numeric", "interval", "bit"];
        let is_word = element != quote_ident(name.strip_prefix('_').unwrap_or(&name))
            && element != quote_ident(&name)
            || words.contains(&element);
        let identity = match schema.as_str() {
            "pg_catalog" if is_word => shown,
            "pg_catalog" => format!("pg_catalog.{shown}"),
            _ if element.starts_with(&format!("{}.", quote_ident(&schema))) => shown,
            _ => format!("{}.{shown}", quote_ident(&schema)),
        };
        Some(Identity {
            kind: "type".to_owned(),
            names: vec![identity.clone()],
            identity,
            schema: Some(quote_ident(&schema)),
            name: Some(quote_ident(&name)),
            description,
            ..Identity::default()
        })
    }

    fn constraint_identity(&self, id: Id) -> Option<Identity> {
        let table = self.catalog.owner_of_part(id)?;
        let c = table.constraints.iter().find(|c| c.oid == id)?;
        let relation = self.relation_identity(table.oid, 0)?;
        let name = quote_ident(&c.name);
        let mut names = relation.names;
        names.push(c.name.clone());
        Some(Identity {
            kind: "table constraint".to_owned(),
            schema: relation.schema,
            identity: format!("{name} on {}", relation.identity),
            names,
            description: format!("constraint {name} on {}", relation.description),
            ..Identity::default()
        })
    }

    fn default_identity(&self, id: Id) -> Option<Identity> {
        for table in self.catalog.tables() {
            if default_id(table.oid, 0) >> 11 != id >> 11 {
                continue;
            }
            let is = |n: &u16| default_id(table.oid, *n) == id;
            let with = table.live_columns().filter(|(_, c)| c.default.is_some()).map(|(n, _)| n);
            if let Some(number) = with.into_iter().find(is) {
                let column = self.relation_identity(table.oid, i32::from(number))?;
                return Some(Identity {
                    kind: "default value".to_owned(),
                    identity: format!("for {}", column.identity),
                    names: column.names,
                    description: format!("default value for {}", column.description),
                    ..Identity::default()
                });
            }
        }
        None
    }

    /// The identity of a part of a table that has a name there.
    fn part_identity(
        &self,
        kind: &str,
        id: Id,
        name: impl Fn(&crate::Table, Id) -> Option<String>,
    ) -> Option<Identity> {
        let table = self.catalog.owner_of_part(id)?;
        let name = name(table, id)?;
        let relation = self.relation_identity(table.oid, 0)?;
        let mut names = relation.names;
        names.push(name.clone());
        let quoted = quote_ident(&name);
        Some(Identity {
            kind: kind.to_owned(),
            identity: format!("{quoted} on {}", relation.identity),
            names,
            description: format!("{kind} {name} on {}", relation.description),
            ..Identity::default()
        })
    }

    fn rule_identity(&self, id: Id) -> Option<Identity> {
        let view = view_of_rule(id)?;
        let is_view = self.catalog.table(view).is_some_and(|t| t.query.is_some());
        if !is_view && by_oid(base::Oid(view)).is_none_or(|t| !t.is_view) {
            return None;
        }
        let relation = self.relation_identity(view, 0)?;
        let mut names = relation.names;
        names.push("_RETURN".to_owned());
        Some(Identity {
            kind: "rule".to_owned(),
            identity: format!("\"_RETURN\" on {}", relation.identity),
            names,
            description: format!("rule _RETURN on {}", relation.description),
            ..Identity::default()
        })
    }
}

fn plain(kind: &str, name: &str) -> Identity {
    let quoted = quote_ident(name);
    Identity {
        kind: kind.to_owned(),
        name: (kind != "large object").then(|| quoted.clone()),
        names: vec![name.to_owned()],
        description: format!("{kind} {name}"),
        identity: quoted,
        ..Identity::default()
    }
}
