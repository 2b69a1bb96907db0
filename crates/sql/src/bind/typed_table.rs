//! CREATE TABLE … OF: a table that has the columns of a composite type.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::Binder;

impl Binder<'_> {
    /// The composite type that a table is made of.
    ///
    /// # Errors
    /// `42809` for any other type, also for that of a table's rows.
    pub(crate) fn type_of_table(&self, name: &pb::TypeName) -> Result<Oid> {
        let (ty, _) = self.type_name(name)?;
        let kind = self.cx.catalog.user_type(ty.0).map(|t| &t.kind);
        if matches!(kind, Some(catalog::UserTypeKind::Composite(_))) {
            return Ok(ty);
        }
        Err(err!(
            WRONG_OBJECT_TYPE,
            "type {} is not a composite type",
            types::io::format_type(ty, -1)
        ))
    }

    /// The elements of a typed table: the type's columns, with what the statement adds to them, and the table's
    /// constraints.
    pub(crate) fn typed_elements(&self, elements: &[pb::Node], ty: Oid) -> Result<Vec<pb::Node>> {
        let columns = match self.cx.catalog.user_type(ty.0).map(|t| &t.kind) {
            Some(catalog::UserTypeKind::Composite(columns)) => columns.as_slice(),
            _ => &[],
        };
        let own = |node: &pb::Node| match &node.node {
            Some(NodeEnum::ColumnDef(def)) => Some((**def).clone()),
            _ => None,
        };
        let mut added: Vec<pb::ColumnDef> = Vec::new();
        for def in elements.iter().filter_map(own) {
            if added.iter().any(|known| known.colname == def.colname) {
                let name = &def.colname;
                return Err(err!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once"));
            }
            if !columns.iter().any(|c| !c.dropped && c.name == def.colname) {
                return Err(err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", def.colname));
            }
            added.push(def);
        }
        let mut out = Vec::with_capacity(columns.len());
        for column in columns.iter().filter(|c| !c.dropped) {
            let known = added.iter().find(|def| def.colname == column.name);
            let plain = || pb::ColumnDef {
                colname: column.name.clone(),
                is_local: true,
                location: -1,
                ..pb::ColumnDef::default()
            };
            let mut def = known.cloned().unwrap_or_else(plain);
            def.type_name = Some(pb::TypeName {
                type_oid: column.ty,
                typemod: column.typmod,
                location: -1,
                ..pb::TypeName::default()
            });
            out.push(pb::Node { node: Some(NodeEnum::ColumnDef(Box::new(def))) });
        }
        let others = elements.iter().filter(|node| own(node).is_none());
        out.extend(others.cloned());
        Ok(out)
    }
}
