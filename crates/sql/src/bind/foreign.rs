//! Statements about foreign data.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::foreign::{ForeignClause, ForeignStatement as F, Import, ImportKind, WrapperFunction};
use crate::role::{RoleRef, RoleStatement};
use crate::utility::{Name, Utility};

use super::ast::options;
use super::{Binder, ast, inner};

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn role_of(role: &Option<pb::RoleSpec>) -> RoleRef {
    role.as_ref().map_or(RoleRef::Current, super::role::role_ref)
}

fn name_of(node: &Option<Box<pb::Node>>) -> String {
    match inner(node) {
        Some(NodeEnum::String(name)) => name.sval.clone(),
        _ => String::new(),
    }
}

impl Binder<'_> {
    /// A statement about foreign data; None for others.
    pub(crate) fn foreign_statement(&mut self, node: &NodeEnum) -> Result<Option<Utility>> {
        let (wrapper, server) = (pb::ObjectType::ObjectFdw, pb::ObjectType::ObjectForeignServer);
        let is_kind = |kind: i32| kind == wrapper as i32 || kind == server as i32;
        let is_server = |kind: i32| kind == server as i32;
        let statement = match node {
            NodeEnum::AlterOwnerStmt(s) if is_kind(s.object_type) => {
                let Some(owner) = s.newowner.as_ref().map(super::role::role_ref) else {
                    return Ok(None);
                };
                let kind = if is_server(s.object_type) { "SERVER" } else { "FOREIGN DATA WRAPPER" };
                let name = name_of(&s.object);
                let object = Name { schema: None, name, position: 0, only: false };
                return Ok(Some(Utility::Role(RoleStatement::Owner { kind, object, owner })));
            }
            NodeEnum::CreateFdwStmt(s) => F::CreateWrapper {
                name: s.fdwname.clone(),
                functions: self.wrapper_functions(&s.func_options)?,
                options: options(&s.options),
            },
            NodeEnum::AlterFdwStmt(s) => F::AlterWrapper {
                name: s.fdwname.clone(),
                functions: self.wrapper_functions(&s.func_options)?,
                options: options(&s.options),
            },
            NodeEnum::CreateForeignServerStmt(s) => F::CreateServer {
                name: s.servername.clone(),
                kind: filled(&s.servertype),
                version: filled(&s.version),
                wrapper: s.fdwname.clone(),
                if_not_exists: s.if_not_exists,
                options: options(&s.options),
            },
            NodeEnum::AlterForeignServerStmt(s) => F::AlterServer {
                name: s.servername.clone(),
                version: s.has_version.then(|| filled(&s.version)),
                options: options(&s.options),
            },
            NodeEnum::CreateUserMappingStmt(s) => F::CreateMapping {
                role: role_of(&s.user),
                server: s.servername.clone(),
                if_not_exists: s.if_not_exists,
                options: options(&s.options),
            },
            NodeEnum::AlterUserMappingStmt(s) => F::AlterMapping {
                role: role_of(&s.user),
                server: s.servername.clone(),
                options: options(&s.options),
            },
            NodeEnum::DropUserMappingStmt(s) => F::DropMapping {
                role: role_of(&s.user),
                server: s.servername.clone(),
                if_exists: s.missing_ok,
            },
            NodeEnum::RenameStmt(s) if is_kind(s.rename_type) => F::Rename {
                server: is_server(s.rename_type),
                name: name_of(&s.object),
                to: s.newname.clone(),
            },
            NodeEnum::DropStmt(s) if is_kind(s.remove_type) => F::Drop {
                server: is_server(s.remove_type),
                names: ast::owned_strings(&s.objects),
                if_exists: s.missing_ok,
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            },
            NodeEnum::ImportForeignSchemaStmt(s) => F::Import(self.import(s)),
            NodeEnum::CreateForeignTableStmt(s) => return self.foreign_table(s).map(Some),
            _ => return Ok(None),
        };
        Ok(Some(Utility::Foreign(Box::new(statement))))
    }

    fn wrapper_functions(&self, nodes: &[pb::Node]) -> Result<Vec<WrapperFunction>> {
        let mut out: Vec<WrapperFunction> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let function = match inner(&def.arg) {
                Some(NodeEnum::List(list)) => Some(self.name_of_list(&list.items)),
                _ => None,
            };
            let validator = def.defname == "validator";
            let position = self.at(def.location);
            if out.iter().any(|f| f.validator == validator) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(position));
            }
            out.push(WrapperFunction { validator, function, position });
        }
        Ok(out)
    }

    fn import(&self, s: &pb::ImportForeignSchemaStmt) -> Import {
        use pb::ImportForeignSchemaType as K;
        let name = |node: &pb::Node| match &node.node {
            Some(NodeEnum::RangeVar(range)) => Some(range.relname.clone()),
            _ => None,
        };
        Import {
            server: s.server_name.clone(),
            remote: s.remote_schema.clone(),
            local: s.local_schema.clone(),
            kind: match K::try_from(s.list_type) {
                Ok(K::FdwImportSchemaLimitTo) => ImportKind::LimitTo,
                Ok(K::FdwImportSchemaExcept) => ImportKind::Except,
                _ => ImportKind::All,
            },
            tables: s.table_list.iter().filter_map(name).collect(),
            options: options(&s.options),
        }
    }

    /// CREATE FOREIGN TABLE.
    fn foreign_table(&mut self, s: &pb::CreateForeignTableStmt) -> Result<Utility> {
        let Some(stmt) = &s.base_stmt else {
            return Err(err!(SYNTAX_ERROR, "CREATE FOREIGN TABLE without a table"));
        };
        let own = stmt.table_elts.iter().chain(&stmt.constraints);
        for node in own {
            match &node.node {
                Some(NodeEnum::ColumnDef(def)) => {
                    def.constraints.iter().try_for_each(|c| self.check_foreign(c))?;
                }
                _ => self.check_foreign(node)?,
            }
        }
        let mut utility = self.create_table(stmt)?;
        if let Utility::CreateTable { foreign, .. } = &mut utility {
            let (server, options) = (s.servername.clone(), options(&s.options));
            *foreign = Some(Box::new(ForeignClause { server, options }));
        }
        Ok(utility)
    }

    /// `0A000` for constraints that a foreign table can't have.
    ///
    /// # Errors
    /// See above.
    pub(crate) fn check_foreign(&self, node: &pb::Node) -> Result<()> {
        use pb::ConstrType as T;
        let Some(NodeEnum::Constraint(c)) = &node.node else { return Ok(()) };
        let what = match T::try_from(c.contype) {
            Ok(T::ConstrPrimary) => "primary key",
            Ok(T::ConstrUnique) => "unique",
            Ok(T::ConstrExclusion) => "exclusion",
            Ok(T::ConstrForeign) => "foreign key",
            _ => return Ok(()),
        };
        Err(err!(FEATURE_NOT_SUPPORTED, "{what} constraints are not supported on foreign tables")
            .at(self.at(c.location)))
    }
}
