//! PARTITION BY, PARTITION OF and FOR VALUES.

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::object::Strategy;
use catalog::{PartitionKey, Partitioning, Table};
use pg_query::{NodeEnum, protobuf as pb};

use crate::partition::{BoundSpec, BoundValue, BoundValues, Edge, PartitionCommand};
use crate::utility::ColumnDef;

use super::{Binder, ast, inner};

/// Columns of a partition key, at most.
const MAX_KEYS: usize = 32;

fn refused(message: String) -> base::Error {
    base::Error::new(base::sqlstate::INVALID_TABLE_DEFINITION, message)
}

impl Binder<'_> {
    /// PARTITION BY over a new table's columns.
    pub(crate) fn partitioning(
        &mut self,
        spec: &pb::PartitionSpec,
        table: Table,
    ) -> Result<Partitioning> {
        let strategy = match pb::PartitionStrategy::try_from(spec.strategy) {
            Ok(pb::PartitionStrategy::List) => Strategy::List,
            Ok(pb::PartitionStrategy::Hash) => Strategy::Hash,
            _ => Strategy::Range,
        };
        if strategy == Strategy::List && spec.part_params.len() != 1 {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot use \"list\" partition strategy with more than one column"
            ));
        }
        if spec.part_params.len() > MAX_KEYS {
            return Err(err!(
                TOO_MANY_COLUMNS,
                "cannot partition using more than {MAX_KEYS} columns"
            ));
        }
        let name = table.name.clone();
        let rel = self.table_rel(Arc::new(table), &name)?;
        let mut out = Partitioning { strategy, ..Partitioning::default() };
        for node in &spec.part_params {
            let Some(NodeEnum::PartitionElem(elem)) = &node.node else { continue };
            let key = match inner(&elem.expr) {
                None => self.partition_column(&rel, &elem.name, elem.location)?,
                Some(NodeEnum::ColumnRef(column)) if column.fields.len() == 1 => {
                    let name = ast::string(&column.fields[0]).to_owned();
                    match super::define::whole_row(&NodeEnum::ColumnRef(column.clone()), &rel) {
                        Some(_) => self.no_generated_key(&rel, elem.location)?,
                        None => {}
                    }
                    self.partition_column(&rel, &name, elem.location)?
                }
                Some(node) => {
                    let number = out.keys.len() + 1;
                    if super::define::whole_row(node, &rel).is_some() {
                        self.no_generated_key(&rel, elem.location)?;
                    }
                    self.partition_expression(&rel, (node, elem.location), number, &mut out.uses)?
                }
            };
            let key = self.partition_order(key, elem, strategy)?;
            out.uses.extend(Some(key.hash_function).filter(|function| *function != 0));
            out.keys.push(key);
        }
        Ok(out)
    }

    fn partition_column(
        &mut self,
        rel: &crate::logical::TableRel,
        name: &str,
        location: i32,
    ) -> Result<PartitionKey> {
        let at = self.at(location);
        if ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"].contains(&name) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot use system column \"{name}\" in partition key"
            )
            .at(at));
        }
        let Some((column, found)) = rel.table.column(name) else {
            return Err(err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" named in partition key does not exist"
            )
            .at(at));
        };
        if found.generated {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot use generated column in partition key"
            )
            .detail(format!("Column \"{name}\" is a generated column."))
            .at(at));
        }
        let (ty, typmod) = (found.ty, found.typmod);
        let collation = self.cx.catalog.column_collation(found);
        Ok(PartitionKey { column, ty, typmod, collation, ..PartitionKey::default() })
    }

    /// `42P17` where a key is the whole row of a table with generated columns.
    fn no_generated_key(&self, rel: &crate::logical::TableRel, location: i32) -> Result<()> {
        let Some(column) = rel.table.columns.iter().find(|c| c.generated) else { return Ok(()) };
        Err(err!(INVALID_OBJECT_DEFINITION, "cannot use generated column in partition key")
            .detail(format!("Column \"{}\" is a generated column.", column.name))
            .at(self.at(location)))
    }

    fn partition_expression(
        &mut self,
        rel: &crate::logical::TableRel,
        (node, location): (&NodeEnum, i32),
        number: usize,
        uses: &mut Vec<u32>,
    ) -> Result<PartitionKey> {
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(rel));
        scope.place.set(super::scope::Place::PartitionKey);
        let expr = self.holding(|b| b.expr(&scope, node)).map_err(base::Error::without_position)?;
        let pseudo = match expr.ty() {
            types::oids::UNKNOWN => Some("unknown"),
            types::oids::RECORD => Some("record"),
            _ => None,
        };
        if let Some(ty) = pseudo {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "partition key column {number} has pseudo-type {ty}"
            ));
        }
        let expr = self.resolve_unknown(expr)?;
        let refuse = |message: &str| Err(err!(INVALID_OBJECT_DEFINITION, "{message}"));
        if !crate::walk::has_columns(&expr) {
            return refuse("cannot use constant expression as partition key");
        }
        if crate::walk::is_changeable(&expr) {
            return refuse("functions in partition key expression must be marked IMMUTABLE");
        }
        let columns = super::define::table_columns(rel, &expr);
        for number in &columns {
            let column = &rel.table.columns[usize::from(*number) - 1];
            if column.generated {
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "cannot use generated column in partition key"
                )
                .detail(format!("Column \"{}\" is a generated column.", column.name))
                .at(self.at(location)));
            }
        }
        uses.extend(self.objects_of(&expr, |b| b.expr(&scope, node))?);
        let collation = self.known_collation(&expr)?;
        let (mut own, mut value) = (node, expr.clone());
        while let NodeEnum::CollateClause(clause) = own
            && let Some(inside) = super::inner(&clause.arg)
        {
            own = inside;
            value = self.holding(|b| b.expr(&scope, own))?;
        }
        Ok(PartitionKey {
            expression: Some(self.stored_form(own, None, |b, node| b.expr(&scope, node))?),
            columns,
            ty: expr.ty().0,
            typmod: -1,
            collation,
            own_collation: self.known_collation(&value)?,
            ..PartitionKey::default()
        })
    }

    /// COLLATE and the operator class.
    fn partition_order(
        &mut self,
        mut key: PartitionKey,
        elem: &pb::PartitionElem,
        strategy: Strategy,
    ) -> Result<PartitionKey> {
        if !elem.collation.is_empty() {
            let found = self.collation_named(&ast::strings(&elem.collation))?;
            if self.cx.catalog.type_collation(key.ty) == 0 {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "collations are not supported by type {}",
                    types::io::format_type(Oid(key.ty), -1)
                ));
            }
            key.collation = found.oid;
        }
        key.slot = self.cx.catalog.key_collation(key.collation, key.ty);
        key.class = ast::strings(&elem.opclass).last().map(|s| (*s).to_owned());
        let method = match strategy {
            Strategy::Hash => base::AccessMethod::Hash,
            _ => base::AccessMethod::BTree,
        };
        if let Some(function) = self.partition_class(elem, Oid(key.ty), method)? {
            key.hash_function = function;
            return Ok(key);
        }
        let method = method.name();
        let base = types::user::base_type(Oid(key.ty), -1).0;
        let fits = match strategy {
            Strategy::Hash => types::is_partition_hashable(base),
            _ => self.check_sortable(base, 0).is_ok(),
        };
        if !fits {
            return Err(err!(
                UNDEFINED_OBJECT,
                "data type {} has no default operator class for access method \"{method}\"",
                types::io::format_type(Oid(key.ty), -1)
            )
            .hint(match strategy {
                Strategy::Hash => {
                    "You must specify a hash operator class or define a default hash operator class for the data type."
                }
                _ => {
                    "You must specify a btree operator class or define a default btree operator class for the data type."
                }
            }));
        }
        Ok(key)
    }

    /// The named operator class must be there; the hash function of a user's one.
    fn partition_class(
        &self,
        elem: &pb::PartitionElem,
        ty: Oid,
        method: base::AccessMethod,
    ) -> Result<Option<u32>> {
        let names = ast::strings(&elem.opclass);
        if names.is_empty() {
            return Ok(None);
        }
        let (schema, name) = ast::qualified(&names);
        let catalog = &self.cx.catalog;
        let in_place = |c: &&catalog::OperatorClass| match schema {
            Some(schema) => catalog.schema_named(schema).is_some_and(|s| s.oid == c.schema),
            None => self.cx.search_path.contains(&c.schema),
        };
        let mut own = catalog.operator_classes().filter(|c| c.method == method.oid());
        let own = own.find(|c| c.name == name && in_place(c));
        if let Some(class) = own {
            let hash = class.functions.iter().find(|f| f.number == 2);
            return Ok(hash.map(|f| f.function).filter(|_| method == base::AccessMethod::Hash));
        }
        let base = types::user::base_type(ty, -1).0;
        if types::opclass::named(method.oid(), name, base).is_none() {
            return Err(err!(
                UNDEFINED_OBJECT,
                "operator class \"{}\" does not exist for access method \"{}\"",
                names.join("."),
                method.name()
            ));
        }
        Ok(None)
    }

    /// Elements of PARTITION OF: columns that the parent has, with its types.
    pub(crate) fn partition_elements(
        &self,
        elements: &[pb::Node],
        inherited: &[ColumnDef],
    ) -> Result<Vec<pb::Node>> {
        let mut out = elements.to_vec();
        for node in &mut out {
            let Some(NodeEnum::ColumnDef(def)) = &mut node.node else { continue };
            let Some(known) = inherited.iter().find(|c| c.name == def.colname) else {
                return Err(err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", def.colname));
            };
            let (type_oid, typemod) = (known.ty.0, known.typmod);
            def.coll_clause = None;
            def.type_name =
                Some(pb::TypeName { type_oid, typemod, location: -1, ..pb::TypeName::default() });
        }
        Ok(out)
    }

    /// FOR VALUES of a partition of `parent`.
    pub(crate) fn bound_spec(
        &mut self,
        spec: &pb::PartitionBoundSpec,
        parent: &Table,
    ) -> Result<BoundSpec> {
        let values = self.bound_values(spec, parent)?;
        let place = |node: &pb::Node| node.node.as_ref().map_or(0, |n| self.at(ast::location(n)));
        let lower = if spec.listdatums.is_empty() { &spec.lowerdatums } else { &spec.listdatums };
        Ok(BoundSpec {
            values,
            at: self.at(spec.location),
            lower_at: lower.iter().map(place).collect(),
            upper_at: spec.upperdatums.iter().map(place).collect(),
        })
    }

    fn bound_values(
        &mut self,
        spec: &pb::PartitionBoundSpec,
        parent: &Table,
    ) -> Result<BoundValues> {
        let Some(by) = &parent.partitioning else {
            return Err(err!(INVALID_OBJECT_DEFINITION, "\"{}\" is not partitioned", parent.name));
        };
        let at = self.at(spec.location);
        if spec.is_default {
            if by.strategy == Strategy::Hash {
                return Err(refused(
                    "a hash-partitioned table may not have a default partition".to_owned(),
                ));
            }
            return Ok(BoundValues::Default);
        }
        let given = spec.strategy.chars().next().unwrap_or(' ');
        if given != by.strategy.letter() {
            let what = by.strategy.word().to_lowercase();
            return Err(
                refused(format!("invalid bound specification for a {what} partition")).at(at)
            );
        }
        match by.strategy {
            Strategy::Hash => {
                if spec.modulus <= 0 {
                    return Err(refused(
                        "modulus for hash partition must be an integer value greater than zero"
                            .to_owned(),
                    ));
                }
                if spec.remainder < 0 {
                    return Err(refused(
                        "remainder for hash partition must be an integer value greater than or equal to zero"
                            .to_owned(),
                    ));
                }
                if spec.remainder >= spec.modulus {
                    return Err(refused(
                        "remainder for hash partition must be less than modulus".to_owned(),
                    ));
                }
                Ok(BoundValues::Hash(spec.modulus, spec.remainder))
            }
            Strategy::List => {
                let name = key_name(parent, &by.keys[0]);
                let mut values: Vec<BoundValue> = Vec::with_capacity(spec.listdatums.len());
                for node in &spec.listdatums {
                    let Some(node) = &node.node else { continue };
                    let value = self.bound_value(node, &by.keys[0], &name)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(BoundValues::List(values))
            }
            Strategy::Range => {
                let keys = by.keys.len();
                for (word, list) in [("FROM", &spec.lowerdatums), ("TO", &spec.upperdatums)] {
                    if list.len() != keys {
                        return Err(refused(format!(
                            "{word} must specify exactly one value per partitioning column"
                        )));
                    }
                }
                let lower = self.bound_edges(&spec.lowerdatums, parent, by)?;
                let upper = self.bound_edges(&spec.upperdatums, parent, by)?;
                Ok(BoundValues::Range(lower, upper))
            }
        }
    }

    /// ATTACH and DETACH PARTITION.
    pub(crate) fn partition_command(
        &mut self,
        table: &crate::utility::Name,
        command: &pb::PartitionCmd,
        subtype: i32,
    ) -> Result<PartitionCommand> {
        let name = self.name_of_range(&command.name)?;
        if subtype == pb::AlterTableType::AtDetachPartitionFinalize as i32 {
            return Ok(PartitionCommand::Finalize(name));
        }
        if subtype == pb::AlterTableType::AtDetachPartition as i32 {
            return Ok(PartitionCommand::Detach { name, concurrently: command.concurrent });
        }
        let Some(spec) = &command.bound else { return Ok(PartitionCommand::AttachIndex(name)) };
        match self.find_relation(table.schema.as_deref(), &table.name) {
            Some(catalog::snapshot::Relation::Table(parent))
                if parent.kind == catalog::TableKind::Table && !parent.is_partitioned() =>
            {
                Err(err!(INVALID_OBJECT_DEFINITION, "table \"{}\" is not partitioned", parent.name))
            }
            Some(catalog::snapshot::Relation::Table(parent)) if !parent.is_partitioned() => {
                Err(err!(
                    WRONG_OBJECT_TYPE,
                    "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
                    parent.name
                )
                .detail("This operation is not supported for tables."))
            }
            Some(catalog::snapshot::Relation::Table(parent)) => {
                Ok(PartitionCommand::Attach(name, self.bound_spec(spec, &parent)?))
            }
            Some(_) => Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name)),
            None => Err(self.cx.catalog.missing_relation(table.schema.as_deref(), &table.name)),
        }
    }

    fn bound_edges(
        &mut self,
        nodes: &[pb::Node],
        parent: &Table,
        by: &Partitioning,
    ) -> Result<Vec<Edge<BoundValue>>> {
        let mut out: Vec<Edge<BoundValue>> = Vec::with_capacity(nodes.len());
        for (node, key) in nodes.iter().zip(&by.keys) {
            let Some(node) = &node.node else { continue };
            let word = match node {
                NodeEnum::ColumnRef(c) if c.fields.len() == 1 => ast::string(&c.fields[0]),
                _ => "",
            };
            let location = ast::location(node);
            let edge = match word {
                "minvalue" => Edge::Min,
                "maxvalue" => Edge::Max,
                _ => {
                    let value = self.bound_value(node, key, &key_name(parent, key))?;
                    if value == BoundValue::Null {
                        return Err(err!(
                            INVALID_OBJECT_DEFINITION,
                            "cannot specify NULL in range bound"
                        ));
                    }
                    Edge::Value(value)
                }
            };
            let word = match out.last() {
                Some(Edge::Min) if edge != Edge::Min => "MINVALUE",
                Some(Edge::Max) if edge != Edge::Max => "MAXVALUE",
                _ => "",
            };
            if !word.is_empty() {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "every bound following {word} must also be {word}"
                )
                .at(self.at(location)));
            }
            out.push(edge);
        }
        Ok(out)
    }

    fn bound_value(
        &mut self,
        node: &NodeEnum,
        key: &PartitionKey,
        name: &str,
    ) -> Result<BoundValue> {
        let ty = Oid(key.ty);
        let position = self.at(ast::location(node));
        if let NodeEnum::AConst(c) = node {
            if c.isnull {
                return Ok(BoundValue::Null);
            }
            let is_text = matches!(c.val, Some(pb::a_const::Val::Sval(_)));
            if is_text && let Some(text) = super::define::const_text(c) {
                types::io::input(ty, key.typmod, &text, self.cx.format)
                    .map_err(|e| e.at(position))?;
                return Ok(BoundValue::Literal(text));
            }
        }
        let scope = super::Scope::new(None);
        scope.place.set(super::scope::Place::PartitionBound);
        let expr = self.holding(|b| b.expr(&scope, node)).map_err(|error| {
            // There are no columns here, whatever their names.
            let mut error = error;
            let code = error.code();
            if ![base::sqlstate::UNDEFINED_COLUMN, base::sqlstate::UNDEFINED_TABLE].contains(&code)
            {
                return error;
            }
            err!(FEATURE_NOT_SUPPORTED, "cannot use column reference in partition bound expression")
                .at(error.fields_mut().position)
        })?;
        let expr = self.resolve_unknown(expr)?;
        self.holding(|b| b.assign(expr, ty, key.typmod, name, position)).map_err(|error| {
            if error.code() != base::sqlstate::DATATYPE_MISMATCH {
                return error;
            }
            err!(
                DATATYPE_MISMATCH,
                "specified value cannot be cast to type {} for column \"{name}\"",
                types::io::format_type(ty, -1)
            )
            .at(position)
        })?;
        Ok(BoundValue::Sql(crate::parse::deparse_expr(node)?))
    }
}

/// A key's name in errors.
fn key_name(table: &Table, key: &PartitionKey) -> String {
    match usize::from(key.column).checked_sub(1).and_then(|at| table.columns.get(at)) {
        Some(column) => column.name.clone(),
        None => key.expression.clone().unwrap_or_default(),
    }
}
