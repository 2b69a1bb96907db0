//! Type names with their modifiers.

use base::{Error, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::TypeIo;
use types::io::TypeRef;
use types::oids::*;

use super::{Binder, ast};

impl Binder<'_> {
    /// A type name's oid and typmod.
    pub(crate) fn type_name(&self, name: &pb::TypeName) -> Result<(Oid, i32)> {
        let found = self.type_or_shell(name)?;
        if types::user::is_shell(found.0) {
            let shown = ast::strings(&name.names).join(".");
            return Err(err!(UNDEFINED_OBJECT, "type \"{shown}\" is only a shell")
                .at(self.at(name.location)));
        }
        Ok(found)
    }

    /// The same, where a type may be only announced.
    pub(crate) fn type_or_shell(&self, name: &pb::TypeName) -> Result<(Oid, i32)> {
        if name.type_oid != 0 {
            return Ok((Oid(name.type_oid), name.typemod));
        }
        let names = ast::strings(&name.names);
        if name.pct_type && !name.setof {
            return self.column_type_name(&names, name.location);
        }
        if name.setof {
            return Err(self.unsupported("SETOF in type names", name.location));
        }
        ast::check_database(&names, self.cx.database, false)?;
        let (schema, plain) = ast::qualified(&names);
        let position = self.at(name.location);
        let built_in = match schema {
            None | Some("pg_catalog") => TypeIo::by_name(plain),
            Some(_) => None,
        };
        let found = match built_in {
            Some(io) => Some(TypeRef::BuiltIn(io)),
            None => {
                let ty = self.cx.catalog.type_oid(self.cx.search_path, schema, plain);
                ty.and_then(|ty| TypeIo::get(Oid(ty)))
            }
        };
        let Some(io) = found else {
            if schema.is_none_or(|s| s == "pg_catalog") && is_other_builtin(plain) {
                return Err(self.unsupported(&format!("type {plain}"), name.location));
            }
            let full = names.join(".");
            if let Some(schema) = schema
                && schema != "pg_catalog"
                && schema != "information_schema"
                && self.cx.catalog.schema_named(schema).is_none()
            {
                return Err(
                    err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist").at(position)
                );
            }
            return Err(err!(UNDEFINED_OBJECT, "type \"{full}\" does not exist").at(position));
        };
        let typmod = self.type_modifier(io.oid, &name.typmods).map_err(|e| e.at(position))?;
        if name.array_bounds.is_empty() {
            return Ok((io.oid, typmod));
        }
        if io.array == Oid::INVALID {
            return Err(err!(
                UNDEFINED_OBJECT,
                "could not find array type for data type {}",
                io.sql_name
            )
            .at(position));
        }
        Ok((io.array, typmod))
    }

    /// `[schema.]table.column%TYPE`.
    fn column_type_name(&self, names: &[&str], location: i32) -> Result<(Oid, i32)> {
        let position = self.at(location);
        let Some((column, table)) = names.split_last().filter(|(_, table)| !table.is_empty())
        else {
            return Err(err!(
                SYNTAX_ERROR,
                "improper %TYPE reference (too few dotted names): {}",
                names.join(".")
            )
            .at(position));
        };
        let (schema, plain) = ast::qualified(table);
        let Some(catalog::snapshot::Relation::Table(found)) = self.find_relation(schema, plain)
        else {
            return Err(self.cx.catalog.missing_relation(schema, plain).at(position));
        };
        match found.column(column) {
            Some((_, column)) => Ok((Oid(column.ty), column.typmod)),
            None => Err(err!(
                UNDEFINED_COLUMN,
                "column \"{column}\" of relation \"{plain}\" does not exist"
            )
            .at(position)),
        }
    }

    fn type_modifier(&self, ty: Oid, mods: &[pb::Node]) -> Result<i32> {
        let mut values = Vec::with_capacity(mods.len());
        for node in mods {
            match &node.node {
                Some(NodeEnum::AConst(c)) => match &c.val {
                    Some(pb::a_const::Val::Ival(i)) => values.push(i.ival),
                    None if !c.isnull => values.push(0),
                    _ => return Err(bad_modifier()),
                },
                _ => return Err(bad_modifier()),
            }
        }
        encode_typmod(ty, &values)
    }
}

fn bad_modifier() -> Error {
    err!(SYNTAX_ERROR, "type modifiers must be simple constants or identifiers")
}

/// Types that PostgreSQL has and this server not yet.
fn is_other_builtin(name: &str) -> bool {
    matches!(
        name,
        "xml"
            | "point"
            | "line"
            | "lseg"
            | "box"
            | "path"
            | "polygon"
            | "circle"
            | "tsvector"
            | "tsquery"
            | "txid_snapshot"
            | "pg_snapshot"
    )
}

/// A typmod as PostgreSQL encodes it.
fn encode_typmod(ty: Oid, values: &[i32]) -> Result<i32> {
    if !values.is_empty()
        && let Some(typmod) = types::open::get(ty).and_then(|class| class.typmod(values))
    {
        return typmod;
    }
    match (ty, values) {
        (_, []) => Ok(-1),
        (VARCHAR | BPCHAR, [n]) => {
            let name = if ty == VARCHAR { "varchar" } else { "char" };
            if *n < 1 {
                base::bail!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1");
            }
            if *n > 10_485_760 {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "length for type {name} cannot exceed 10485760"
                );
            }
            Ok(n + 4)
        }
        (NUMERIC, [precision]) => numeric_typmod(*precision, 0),
        (NUMERIC, [precision, scale]) => numeric_typmod(*precision, *scale),
        (BIT | VARBIT, [n]) => {
            let name = if ty == BIT { "bit" } else { "varbit" };
            if *n < 1 {
                base::bail!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1");
            }
            if *n > 83_886_080 {
                base::bail!(
                    INVALID_PARAMETER_VALUE,
                    "length for type {name} cannot exceed 83886080"
                );
            }
            Ok(*n)
        }
        (TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ, [p]) => {
            if *p < 0 {
                let name = types::io::format_type(ty, -1);
                base::bail!(INVALID_PARAMETER_VALUE, "{name}({p}) precision must not be negative");
            }
            Ok((*p).min(6))
        }
        (INTERVAL, [fields]) => Ok((fields & 0x7FFF) << 16 | 0xFFFF),
        (INTERVAL, [fields, p]) => Ok((fields & 0x7FFF) << 16 | (p & 0xFFFF)),
        (
            VARCHAR | BPCHAR | BIT | VARBIT | NUMERIC | TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ
            | INTERVAL,
            _,
        ) => {
            base::bail!(INVALID_PARAMETER_VALUE, "invalid type modifier")
        }
        _ => base::bail!(
            SYNTAX_ERROR,
            "type modifier is not allowed for type \"{}\"",
            types::io::format_type(ty, -1)
        ),
    }
}

fn numeric_typmod(precision: i32, scale: i32) -> Result<i32> {
    if !(1..=1000).contains(&precision) {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "NUMERIC precision {precision} must be between 1 and 1000"
        );
    }
    if !(-1000..=1000).contains(&scale) {
        base::bail!(
            INVALID_PARAMETER_VALUE,
            "NUMERIC scale {scale} must be between -1000 and 1000"
        );
    }
    Ok((precision << 16 | (scale & 0x7FF)) + 4)
}
