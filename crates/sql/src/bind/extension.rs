//! CREATE, ALTER and DROP EXTENSION, LOAD.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::extension_statement::{CreateExtension, ExtensionStatement, MemberObject};

use super::define::def_value;
use super::{Binder, ast, inner};

impl Binder<'_> {
    /// A statement about extensions; None when it is none.
    pub(crate) fn extension_statement(
        &mut self,
        node: &NodeEnum,
    ) -> Result<Option<ExtensionStatement>> {
        let extension = pb::ObjectType::ObjectExtension as i32;
        Ok(Some(match node {
            NodeEnum::CreateExtensionStmt(s) => self.create_extension(s)?,
            NodeEnum::AlterExtensionStmt(s) => self.update_extension(s)?,
            NodeEnum::AlterExtensionContentsStmt(s) => ExtensionStatement::Member {
                name: s.extname.clone(),
                add: s.action >= 0,
                object: self.member_object(s)?,
            },
            NodeEnum::AlterObjectSchemaStmt(s) if s.object_type == extension => {
                let Some(NodeEnum::String(name)) = inner(&s.object) else { return Ok(None) };
                ExtensionStatement::SetSchema { name: name.sval.clone(), to: s.newschema.clone() }
            }
            NodeEnum::DropStmt(s) if s.remove_type == extension => ExtensionStatement::Drop {
                names: s.objects.iter().map(|n| ast::string(n).to_owned()).collect(),
                if_exists: s.missing_ok,
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            },
            NodeEnum::LoadStmt(s) => ExtensionStatement::Load(s.filename.clone()),
            _ => return Ok(None),
        }))
    }

    fn create_extension(&self, stmt: &pb::CreateExtensionStmt) -> Result<ExtensionStatement> {
        let mut out = CreateExtension {
            name: stmt.extname.clone(),
            if_not_exists: stmt.if_not_exists,
            ..CreateExtension::default()
        };
        let mut seen: Vec<&str> = Vec::new();
        for node in &stmt.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let word = def.defname.as_str();
            if seen.contains(&word) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(word);
            match word {
                "schema" => out.schema = def_value(def),
                "new_version" => out.version = def_value(def),
                "cascade" => out.cascade = true,
                other => base::bail!(SYNTAX_ERROR, "unrecognized option: {other}"),
            }
        }
        Ok(ExtensionStatement::Create(out))
    }

    fn update_extension(&self, stmt: &pb::AlterExtensionStmt) -> Result<ExtensionStatement> {
        let mut to = None;
        for node in &stmt.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            if to.is_some() {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            to = def_value(def);
        }
        Ok(ExtensionStatement::Update { name: stmt.extname.clone(), to })
    }

    /// The type's name with its schema, as it can be read again under any search path.
    fn full_type(&self, name: &pb::TypeName) -> Result<String> {
        let ty = self.type_name(name)?.0;
        let names =
            catalog::system::reg::Names { catalog: self.cx.catalog, path: &[], database: None };
        Ok(names.qualified_type(ty.0))
    }

    fn member_object(&self, stmt: &pb::AlterExtensionContentsStmt) -> Result<MemberObject> {
        use pb::ObjectType as T;
        let of = T::try_from(stmt.objtype).unwrap_or(T::Undefined);
        let kind = super::words::object(stmt.objtype).to_lowercase();
        let missing = || err!(SYNTAX_ERROR, "an object is missing");
        let node = inner(&stmt.object).ok_or_else(missing)?;
        let mut out = MemberObject { kind, names: Vec::new(), args: Vec::new() };
        match node {
            NodeEnum::String(name) => out.names.push(name.sval.clone()),
            NodeEnum::TypeName(name) => out.names.push(self.full_type(name)?),
            NodeEnum::ObjectWithArgs(object) => {
                out.names = ast::owned_strings(&object.objname);
                for arg in &object.objargs {
                    out.args.push(match &arg.node {
                        Some(NodeEnum::TypeName(name)) => self.full_type(name)?,
                        _ => "none".to_owned(),
                    });
                }
            }
            NodeEnum::List(list) if of == T::ObjectCast => {
                for item in &list.items {
                    if let Some(NodeEnum::TypeName(name)) = &item.node {
                        let name = self.full_type(name)?;
                        match out.names.is_empty() {
                            true => out.names.push(name),
                            false => out.args.push(name),
                        }
                    }
                }
            }
            NodeEnum::List(list) => out.names = ast::owned_strings(&list.items),
            _ => return Err(missing()),
        }
        Ok(out)
    }
}
