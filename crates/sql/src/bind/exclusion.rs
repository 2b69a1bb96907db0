//! EXCLUDE constraints: the index that they ask for, and the operators by which no two rows may agree.

use base::{Error, Oid, Result, err};
use catalog::Table;
use pg_query::{NodeEnum, protobuf as pb};
use types::opclass;

use super::{Binder, ast, inner};
use crate::utility::{ConstraintDefKind, ExcludeDef, Exclusion};

/// A constraint as it is written: its index's statement, and the operators.
pub(super) fn written(c: &pb::Constraint) -> ExcludeDef {
    let (mut index_params, mut operators) = (Vec::new(), Vec::new());
    for pair in &c.exclusions {
        let Some(NodeEnum::List(pair)) = &pair.node else { continue };
        let [key, operator] = &pair.items[..] else { continue };
        index_params.push(key.clone());
        let names = match &operator.node {
            Some(NodeEnum::List(list)) => ast::owned_strings(&list.items),
            _ => ast::owned_strings(std::slice::from_ref(operator)),
        };
        operators.push(names);
    }
    let column = |name: &pb::Node| {
        let Some(NodeEnum::String(name)) = &name.node else { return name.clone() };
        let elem = pb::IndexElem { name: name.sval.clone(), ..pb::IndexElem::default() };
        pb::Node { node: Some(NodeEnum::IndexElem(Box::new(elem))) }
    };
    let index = pb::IndexStmt {
        access_method: c.access_method.clone(),
        index_params,
        index_including_params: c.including.iter().map(column).collect(),
        options: c.options.clone(),
        where_clause: c.where_clause.clone(),
        ..pb::IndexStmt::default()
    };
    ExcludeDef { index: Box::new(index), operators }
}

impl Binder<'_> {
    /// The constraint behind an index, as it would be written (LIKE … INCLUDING INDEXES).
    pub(super) fn exclusion_of(
        &self,
        table: &Table,
        index: &catalog::Index,
    ) -> Result<ConstraintDefKind> {
        let own = table.constraints.iter().find(
            |c| matches!(c.kind, catalog::ConstraintKind::Unique { index: i } if i == index.oid),
        );
        let Some(own) = own else { return Err(Error::internal("an index without constraint")) };
        let plain = catalog::Constraint { deferrable: false, deferred: false, ..own.clone() };
        let text = catalog::definition::constraint(
            self.cx.catalog,
            self.cx.search_path,
            table,
            &plain,
            &|_| String::new(),
            &|sql, _| format!("({sql})"),
        );
        let parsed = crate::parse::parse(&format!("ALTER TABLE x ADD {text}"))?;
        let constraint = parsed.iter().find_map(|raw| match &*raw.node {
            NodeEnum::AlterTableStmt(stmt) => stmt.cmds.iter().find_map(|cmd| {
                let Some(NodeEnum::AlterTableCmd(cmd)) = &cmd.node else { return None };
                match inner(&cmd.def) {
                    Some(NodeEnum::Constraint(c)) => Some(written(c)),
                    _ => None,
                }
            }),
            _ => None,
        });
        let constraint =
            constraint.ok_or_else(|| Error::internal("a constraint that can't be read"))?;
        Ok(ConstraintDefKind::Exclude(constraint))
    }

    /// Binds one to its table.
    pub(crate) fn exclusion(&mut self, table: &Table, def: &ExcludeDef) -> Result<Exclusion> {
        let rel = self.table_rel(std::sync::Arc::new(table.clone()), &table.name)?;
        let method = self.index_method(&def.index)?;
        if !method.code.properties().exclusion {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "access method \"{}\" does not support exclusion constraints",
                method.name
            );
        }
        let mut keys = Vec::new();
        let mut operators = Vec::new();
        for (node, names) in def.index.index_params.iter().zip(&def.operators) {
            let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
            if elem.expr.is_none() && table.column(&elem.name).is_none() {
                base::bail!(
                    UNDEFINED_COLUMN,
                    "column \"{}\" named in key does not exist",
                    elem.name
                );
            }
            let key = self.index_key(&rel, elem, &keys, &method)?;
            let ty = match &key.expression {
                Some((_, ty, ..)) => *ty,
                None => Oid(table.column(&key.name).map_or(0, |(_, c)| c.ty)),
            };
            let ty = types::user::base_type(ty, -1).0;
            let column = catalog::IndexColumn { class: key.class, ..Default::default() };
            let class = opclass::class(column.class_of(method.code, ty.0));
            operators.push(self.excluding_operator(names, ty, class)?);
            keys.push(key);
        }
        let mut include = Vec::new();
        for node in &def.index.index_including_params {
            let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
            include.push(elem.name.clone());
        }
        let predicate = match inner(&def.index.where_clause) {
            Some(node) => Some(self.index_predicate(&rel, node)?.0),
            None => None,
        };
        let options = self.index_options(&def.index.options, method.code)?;
        let (method, named_method) = (method.code, method.own);
        Ok(Exclusion { method, named_method, keys, operators, include, predicate, options })
    }

    /// The operator with a name for two values of a key's type: commutative, and one of its class's family.
    fn excluding_operator(
        &self,
        names: &[String],
        ty: Oid,
        class: Option<&opclass::Class>,
    ) -> Result<u32> {
        let found = self.operator_over(names, ty)?;
        let (oid, function, commutator, shown) = found;
        if commutator != oid {
            return Err(err!(WRONG_OBJECT_TYPE, "operator {shown} is not commutative")
                .detail("Only commutative operators can be used in exclusion constraints."));
        }
        let family = class.map_or(0, |c| c.family);
        if opclass::members(family, function).iter().all(|m| m.orders) {
            let own = self.cx.catalog.operator_families().find(|f| f.oid == family);
            let name = own.map(|f| f.name.clone());
            let known = || catalog::system::named::family_name(family);
            let name = name.or_else(known).unwrap_or_default();
            return Err(Error::new(
                base::sqlstate::WRONG_OBJECT_TYPE,
                format!("operator {shown} is not a member of operator family \"{name}\""),
            )
            .detail(
                "The exclusion operator must be related to the index operator class for the \
                 constraint.",
            ));
        }
        Ok(oid.0)
    }
}
