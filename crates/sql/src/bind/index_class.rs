//! The method and operator classes of CREATE INDEX.

use base::{AccessMethod, Error, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::opclass;

use crate::index_statement::UsedMethod;

use super::define::def_value;
use super::{Binder, ast, inner};

impl Binder<'_> {
    /// The method of USING, which must do what the statement asks of it.
    pub(super) fn index_method(&self, stmt: &pb::IndexStmt) -> Result<UsedMethod> {
        let name = match stmt.access_method.as_str() {
            "" => "btree",
            "rtree" => "gist",
            name => name,
        };
        let missing = || err!(UNDEFINED_OBJECT, "access method \"{name}\" does not exist");
        let known = self.cx.catalog.access_method_named(name).ok_or_else(missing)?;
        if known.kind != 'i' {
            return Err(err!(
                INTERNAL_ERROR,
                "index access method handler function {} did not return an IndexAmRoutine struct",
                known.handler
            ));
        }
        let behind = match AccessMethod::of_oid(known.oid) {
            Some(method) => Some((method, 0)),
            None => catalog::system::named::handled_method(known.handler)
                .and_then(|(id, _)| AccessMethod::of_oid(id))
                .map(|method| (method, known.oid)),
        };
        let (method, own) = behind.ok_or_else(missing)?;
        let of = method.properties();
        let cannot = |what: &str| {
            Error::new(
                base::sqlstate::FEATURE_NOT_SUPPORTED,
                format!("access method \"{name}\" does not support {what}"),
            )
        };
        if stmt.unique && !of.unique {
            return Err(cannot("unique indexes"));
        }
        if !stmt.index_including_params.is_empty() && !of.include {
            return Err(cannot("included columns"));
        }
        if stmt.index_params.len() > 1 && !of.multi_column {
            return Err(cannot("multicolumn indexes"));
        }
        Ok(UsedMethod { code: method, own, name: name.to_owned() })
    }

    /// WITH (…), as its method takes it.
    pub(super) fn index_options(
        &self,
        list: &[pb::Node],
        method: AccessMethod,
    ) -> Result<Vec<(String, String)>> {
        if method.is_btree() {
            return self.options(list);
        }
        let mut out = Vec::with_capacity(list.len());
        for node in list {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let value = def_value(def).unwrap_or_else(|| "true".to_owned());
            let name = def.defname.as_str();
            match (method, name) {
                (AccessMethod::Hash | AccessMethod::SpGist, "fillfactor") => {
                    within(name, &value, 10, 100)?;
                }
                (AccessMethod::Gist, "fillfactor") => within(name, &value, 10, 100)?,
                (AccessMethod::Gist, "buffering") => {
                    if !["on", "off", "auto"].contains(&value.to_ascii_lowercase().as_str()) {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "invalid value for enum option \"buffering\": {value}"
                        )
                        .detail("Valid values are \"on\", \"off\", and \"auto\"."));
                    }
                }
                (AccessMethod::Brin, "pages_per_range") => within(name, &value, 1, 131_072)?,
                (AccessMethod::Hnsw, "m") => within(name, &value, 2, 100)?,
                (AccessMethod::Hnsw, "ef_construction") => within(name, &value, 4, 1000)?,
                (AccessMethod::IvfFlat, "lists") => within(name, &value, 1, 32_768)?,
                (AccessMethod::Bloom, "length") => within(name, &value, 1, 4096)?,
                (AccessMethod::Bloom, _) if is_bloom_column(name) => {
                    within(name, &value, 1, 4095)?;
                }
                (AccessMethod::Gin, "gin_pending_list_limit") => {
                    within(name, &value, 64, 2_147_483_647)?;
                }
                (AccessMethod::Gin, "fastupdate") | (AccessMethod::Brin, "autosummarize") => {
                    let known = ["on", "off", "true", "false", "yes", "no", "1", "0"];
                    if !known.contains(&value.to_ascii_lowercase().as_str()) {
                        base::bail!(
                            INVALID_PARAMETER_VALUE,
                            "invalid value for boolean option \"{name}\": {value}"
                        );
                    }
                }
                _ => {
                    return Err(err!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\""));
                }
            }
            out.push((name.to_owned(), value));
        }
        let given = |wanted: &str, default: i64| {
            let own = out.iter().find(|(name, _)| name == wanted);
            own.and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
        };
        if method == AccessMethod::Hnsw && given("ef_construction", 64) < 2 * given("m", 16) {
            base::bail!(
                INVALID_PARAMETER_VALUE,
                "ef_construction must be greater than or equal to 2 * m"
            );
        }
        Ok(out)
    }

    /// An index of vectors must know how many numbers they have.
    pub(super) fn check_dimensions(
        &self,
        class: u32,
        typmod: i32,
        method: AccessMethod,
    ) -> Result<()> {
        if !method.is_of_vectors() {
            return Ok(());
        }
        if typmod < 0 {
            base::bail!(INVALID_PARAMETER_VALUE, "column does not have dimensions");
        }
        let most = types::vectors::class(class).and_then(|class| class.dimensions_max(method));
        if let Some(most) = most.filter(|most| typmod > *most) {
            base::bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "column cannot have more than {most} dimensions for {} index",
                method.name()
            );
        }
        Ok(())
    }

    /// The class of an index's key: 0 when it is the type's default one.
    pub(super) fn index_class(
        &self,
        elem: &pb::IndexElem,
        ty: Oid,
        method: &UsedMethod,
    ) -> Result<u32> {
        let found = self.named_class(elem, ty, method)?;
        let name = &method.name;
        if !method.code.properties().ordered {
            if elem.ordering != pb::SortByDir::SortbyDefault as i32 {
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "access method \"{name}\" does not support ASC/DESC options"
                );
            }
            if elem.nulls_ordering != pb::SortByNulls::SortbyNullsDefault as i32 {
                base::bail!(
                    FEATURE_NOT_SUPPORTED,
                    "access method \"{name}\" does not support NULLS FIRST/LAST options"
                );
            }
        }
        Ok(found)
    }

    /// A class must be one that the house has.
    fn require_class(
        &self,
        method: AccessMethod,
        class: &opclass::Class,
        ty: Oid,
        _elem: &pb::IndexElem,
    ) -> Result<()> {
        let known = match method {
            AccessMethod::BTree | AccessMethod::Hash | AccessMethod::Brin | AccessMethod::Bloom => {
                true
            }
            AccessMethod::Hnsw | AccessMethod::IvfFlat => {
                types::vectors::class(class.oid).is_some()
            }
            AccessMethod::Gin => types::gin::class(class.oid, ty).is_some(),
            AccessMethod::Gist | AccessMethod::SpGist => {
                types::gist::class(class.oid, ty).is_some()
            }
        };
        if !known {
            return Err(self.unsupported(&format!("operator class \"{}\"", class.name), -1));
        }
        Ok(())
    }

    fn named_class(&self, elem: &pb::IndexElem, ty: Oid, method: &UsedMethod) -> Result<u32> {
        if let Some(own) = self.own_class(elem, ty, method)? {
            return Ok(own);
        }
        // A user's access method has no classes but users'.
        let default = opclass::default_class(method.oid(), ty);
        let shown = || types::io::format_type(ty, -1);
        let names = ast::strings(&elem.opclass);
        if names.is_empty() {
            return match default {
                Some(class) => {
                    self.require_class(method.code, class, ty, elem)?;
                    Ok(0)
                }
                None => Err(err!(
                    UNDEFINED_OBJECT,
                    "data type {} has no default operator class for access method \"{}\"",
                    shown(),
                    method.name
                )
                .hint(
                    "You must specify an operator class for the index or define a default operator \
                     class for the data type.",
                )),
            };
        }
        let (schema, name) = ast::qualified(&names);
        if let Some(schema) = schema
            && self.cx.catalog.schema_named(schema).is_none()
        {
            base::bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
        }
        let known = schema.is_none_or(|schema| schema == "pg_catalog");
        let class = opclass::named(method.oid(), name, ty).filter(|_| known).ok_or_else(|| {
            err!(
                UNDEFINED_OBJECT,
                "operator class \"{}\" does not exist for access method \"{}\"",
                names.join("."),
                method.name
            )
        })?;
        if !opclass::accepts(class, ty) {
            base::bail!(
                DATATYPE_MISMATCH,
                "operator class \"{}\" does not accept data type {}",
                names.join("."),
                shown()
            );
        }
        self.require_class(method.code, class, ty, elem)?;
        Ok(if default.is_some_and(|d| d.oid == class.oid) { 0 } else { class.oid })
    }
}

impl Binder<'_> {
    /// A class that the catalog has (an extension's), by its name or as the default of a type without a built-in one.
    fn own_class(&self, elem: &pb::IndexElem, ty: Oid, method: &UsedMethod) -> Result<Option<u32>> {
        let base = types::user::base_type(ty, -1).0;
        let takes = |c: &catalog::OperatorClass| {
            let input = Oid(c.input);
            input == ty
                || input == base
                || input == types::oids::TEXT && base == types::oids::VARCHAR
                || input == types::oids::ANYENUM && types::user::is_enum(base)
                || input == types::oids::ANYARRAY && super::coerce::element_of(base) != Oid::INVALID
        };
        let names = ast::strings(&elem.opclass);
        let of_method = |c: &&catalog::OperatorClass| c.method == method.oid();
        let mut all = self.cx.catalog.operator_classes().filter(of_method);
        let found = if names.is_empty() {
            if opclass::default_class(method.oid(), ty).is_some() {
                return Ok(None);
            }
            all.find(|c| c.default && takes(c))
        } else {
            let (schema, name) = ast::qualified(&names);
            let in_place = |c: &&catalog::OperatorClass| match schema {
                Some(schema) => {
                    self.cx.catalog.schema_named(schema).is_some_and(|s| s.oid == c.schema)
                }
                None => self.cx.search_path.contains(&c.schema),
            };
            all.find(|c| c.name == name && in_place(c))
        };
        let Some(class) = found else { return Ok(None) };
        if !takes(class) {
            base::bail!(
                DATATYPE_MISMATCH,
                "operator class \"{}\" does not accept data type {}",
                names.join("."),
                types::io::format_type(ty, -1)
            );
        }
        if !class.usable {
            return Err(self.unsupported(&format!("operator class \"{}\"", class.name), -1));
        }
        Ok(Some(class.oid))
    }
}

impl Binder<'_> {
    /// The parameters of a key's class.
    pub(super) fn class_options(
        &self,
        elem: &pb::IndexElem,
        class: u32,
        ty: Oid,
        method: AccessMethod,
    ) -> Result<Vec<(String, String)>> {
        let mut out = Vec::with_capacity(elem.opclassopts.len());
        let base = types::user::base_type(ty, -1).0;
        let column = catalog::IndexColumn { class, ..Default::default() };
        let class = opclass::class(opclass::resolved(column.class_of(method, base.0)))
            .map_or("", |c| c.name);
        for node in &elem.opclassopts {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let value = def_value(def).unwrap_or_else(|| "true".to_owned());
            let name = def.defname.as_str();
            match (method, name) {
                (AccessMethod::Brin, "n_distinct_per_range") if class.ends_with("bloom_ops") => {
                    within_real(name, &value, -1.0, 2_147_483_647.0)?;
                }
                (AccessMethod::Brin, "false_positive_rate") if class.ends_with("bloom_ops") => {
                    within_real(name, &value, 0.0001, 0.25)?;
                }
                (AccessMethod::Brin, "values_per_range") if class.ends_with("multi_ops") => {
                    within(name, &value, 8, 256)?;
                }
                (AccessMethod::Gist, "siglen") if has_signatures(class) => {
                    within(name, &value, 1, 2024)?;
                }
                (AccessMethod::Gist, "numranges") if class.starts_with("gist__int") => {
                    within(name, &value, 1, 252)?;
                }
                (AccessMethod::Brin, _) if class.ends_with("bloom_ops") => {
                    return Err(unrecognized(name));
                }
                (AccessMethod::Brin, _) if class.ends_with("multi_ops") => {
                    return Err(unrecognized(name));
                }
                (AccessMethod::Gist, _) if has_signatures(class) => {
                    return Err(unrecognized(name));
                }
                _ => base::bail!(INVALID_PARAMETER_VALUE, "operator class {class} has no options"),
            }
            out.push((name.to_owned(), value));
        }
        Ok(out)
    }
}

/// Whether it is the parameter of a column's bits: `col1` to `col32`.
fn is_bloom_column(name: &str) -> bool {
    let number = name.strip_prefix("col").and_then(|n| n.parse::<u32>().ok());
    number.is_some_and(|n| (1..=32).contains(&n) && name == format!("col{n}"))
}

/// Whether a class's keys are rows of bits whose length can be chosen.
fn has_signatures(class: &str) -> bool {
    matches!(
        class,
        "tsvector_ops"
            | "gist_trgm_ops"
            | "gist_hstore_ops"
            | "gist_ltree_ops"
            | "gist__ltree_ops"
            | "gist__intbig_ops"
    )
}

fn unrecognized(name: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\"")
}

/// Whether a parameter's value is a number within these bounds.
fn within_real(name: &str, value: &str, least: f64, most: f64) -> Result<()> {
    let Ok(number) = value.parse::<f64>() else {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "invalid value for floating point option \"{name}\": {value}"
        );
    };
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(err!(INVALID_PARAMETER_VALUE, "value {value} out of bounds for option \"{name}\"")
        .detail(format!("Valid values are between \"{least:.6}\" and \"{most:.6}\".")))
}

/// Whether an option's value is a number within these bounds.
fn within(name: &str, value: &str, least: i64, most: i64) -> Result<()> {
    let Ok(number) = value.parse::<i64>() else {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "invalid value for integer option \"{name}\": {value}"
        );
    };
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(err!(INVALID_PARAMETER_VALUE, "value {value} out of bounds for option \"{name}\"")
        .detail(format!("Valid values are between \"{least}\" and \"{most}\".")))
}

impl Binder<'_> {
    /// The column that an index's expression is, and the collation that is named for it.
    pub(super) fn bare_column(
        &self,
        rel: &crate::logical::TableRel,
        node: &NodeEnum,
    ) -> Option<(String, Vec<pb::Node>)> {
        let (mut node, mut collation) = (node, Vec::new());
        while let NodeEnum::CollateClause(clause) = node {
            if collation.is_empty() {
                collation.clone_from(&clause.collname);
            }
            node = inner(&clause.arg)?;
        }
        let NodeEnum::ColumnRef(column) = node else { return None };
        let [name] = ast::strings(&column.fields)[..] else { return None };
        rel.table.column(name).map(|_| (name.to_owned(), collation))
    }
}
