//! Roles and rights: CREATE ROLE, GRANT and kin.

use base::{Error, Result, err};
use catalog::AclKind;
use pg_query::{NodeEnum, protobuf as pb};

use crate::role::{Grant, GrantObjects, RoleOption, RoleRef, RoleStatement};
use crate::utility::{LargeObjectStatement, Name};

use super::define::def_value;
use super::{Binder, ast, inner};

/// A role as written.
///
/// # Errors
/// `42939` for `none` and `public` in quotes.
pub(crate) fn role_ref(spec: &pb::RoleSpec) -> RoleRef {
    match pb::RoleSpecType::try_from(spec.roletype) {
        Ok(pb::RoleSpecType::RolespecCurrentRole | pb::RoleSpecType::RolespecCurrentUser) => {
            RoleRef::Current
        }
        Ok(pb::RoleSpecType::RolespecSessionUser) => RoleRef::Session,
        Ok(pb::RoleSpecType::RolespecPublic) => RoleRef::Public,
        _ => RoleRef::Named(spec.rolename.clone()),
    }
}

pub(crate) fn role_refs(nodes: &[pb::Node]) -> Vec<RoleRef> {
    let one = |node: &pb::Node| match &node.node {
        Some(NodeEnum::RoleSpec(spec)) => Some(role_ref(spec)),
        _ => None,
    };
    nodes.iter().filter_map(one).collect()
}

fn optional(spec: &Option<pb::RoleSpec>) -> Result<RoleRef> {
    spec.as_ref().map(role_ref).ok_or_else(|| err!(SYNTAX_ERROR, "statement without a role"))
}

/// The number of a large object.
pub(crate) fn large_object(node: &NodeEnum) -> Result<u32> {
    let text = match node {
        NodeEnum::Integer(i) => i.ival.to_string(),
        NodeEnum::Float(f) => f.fval.clone(),
        NodeEnum::AConst(c) => super::define::const_text(c).unwrap_or_default(),
        _ => String::new(),
    };
    let invalid =
        || err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type oid: \"{text}\"");
    text.parse().map_err(|_| invalid())
}

fn flag(def: &pb::DefElem) -> bool {
    def_value(def).is_none_or(|v| v != "0" && v != "false")
}

impl Binder<'_> {
    /// Statements about roles and rights; None for others.
    pub(crate) fn role_statement(&mut self, node: &NodeEnum) -> Result<Option<RoleStatement>> {
        Ok(Some(match node {
            NodeEnum::CreateRoleStmt(s) => {
                let user = s.stmt_type == pb::RoleStmtType::RolestmtUser as i32;
                let mut options = self.role_options(&s.options)?;
                if user && !options.iter().any(|o| matches!(o, RoleOption::Login(_))) {
                    options.push(RoleOption::Login(true));
                }
                RoleStatement::Create { name: s.role.clone(), options }
            }
            NodeEnum::AlterRoleStmt(s) => self.alter_role(s)?,
            NodeEnum::AlterRoleSetStmt(s) => {
                let database = (!s.database.is_empty()).then(|| s.database.clone());
                let role = s.role.as_ref().map(role_ref);
                RoleStatement::Set { role, database, setting: self.setting(&s.setstmt)? }
            }
            NodeEnum::AlterDatabaseSetStmt(s) => RoleStatement::Set {
                role: None,
                database: Some(s.dbname.clone()),
                setting: self.setting(&s.setstmt)?,
            },
            NodeEnum::DropRoleStmt(s) => {
                RoleStatement::Drop { roles: role_refs(&s.roles), if_exists: s.missing_ok }
            }
            NodeEnum::GrantRoleStmt(s) => self.grant_role(s)?,
            // Large objects are no objects of the catalog.
            NodeEnum::GrantStmt(s) if s.objtype == pb::ObjectType::ObjectLargeobject as i32 => {
                return Ok(None);
            }
            NodeEnum::GrantStmt(s) => RoleStatement::Grant(self.grant(s)?),
            NodeEnum::AlterDefaultPrivilegesStmt(s) => RoleStatement::Grant(self.defaults(s)?),
            NodeEnum::ReassignOwnedStmt(s) => {
                RoleStatement::Reassign { roles: role_refs(&s.roles), to: optional(&s.newrole)? }
            }
            NodeEnum::DropOwnedStmt(s) => RoleStatement::DropOwned {
                roles: role_refs(&s.roles),
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            },
            NodeEnum::RenameStmt(s) if s.rename_type == pb::ObjectType::ObjectRole as i32 => {
                RoleStatement::Rename { from: s.subname.clone(), to: s.newname.clone() }
            }
            _ => return Ok(None),
        }))
    }

    fn alter_role(&self, s: &pb::AlterRoleStmt) -> Result<RoleStatement> {
        let role = optional(&s.role)?;
        let mut options = self.role_options(&s.options)?;
        // ALTER GROUP … ADD USER, DROP USER.
        if let [RoleOption::Members(members)] = options.as_mut_slice() {
            let RoleRef::Named(name) = role else {
                return Err(Error::unsupported("ALTER GROUP of CURRENT_USER"));
            };
            return Ok(RoleStatement::Membership {
                grant: s.action > 0,
                roles: vec![name],
                members: std::mem::take(members),
                admin: false,
                grantor: None,
                group: true,
            });
        }
        Ok(RoleStatement::Alter { role, options })
    }

    fn role_options(&self, nodes: &[pb::Node]) -> Result<Vec<RoleOption>> {
        let mut out: Vec<RoleOption> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let option = self.role_option(def)?;
            let same =
                |o: &RoleOption| std::mem::discriminant(o) == std::mem::discriminant(&option);
            if out.iter().any(same) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            out.push(option);
        }
        Ok(out)
    }

    fn role_option(&self, def: &pb::DefElem) -> Result<RoleOption> {
        let roles = || match inner(&def.arg) {
            Some(NodeEnum::List(list)) => role_refs(&list.items),
            _ => Vec::new(),
        };
        Ok(match def.defname.as_str() {
            "superuser" => RoleOption::Superuser(flag(def)),
            "createdb" => RoleOption::CreateDb(flag(def)),
            "createrole" => RoleOption::CreateRole(flag(def)),
            "inherit" => RoleOption::Inherit(flag(def)),
            "canlogin" => RoleOption::Login(flag(def)),
            "isreplication" => RoleOption::Replication(flag(def)),
            "bypassrls" => RoleOption::BypassRls(flag(def)),
            "connectionlimit" => {
                let limit = def_value(def).and_then(|v| v.parse().ok()).unwrap_or(-1);
                if limit < -1 {
                    let message = format!("invalid connection limit: {limit}");
                    return Err(Error::new(base::sqlstate::INVALID_PARAMETER_VALUE, message));
                }
                RoleOption::ConnectionLimit(limit)
            }
            "password" => RoleOption::Password(def_value(def)),
            "validUntil" => RoleOption::ValidUntil(def_value(def).unwrap_or_default()),
            "addroleto" => RoleOption::InRole(roles()),
            "rolemembers" => RoleOption::Members(roles()),
            "adminmembers" => RoleOption::Admins(roles()),
            other => return Err(Error::unsupported(format!("role option \"{other}\""))),
        })
    }

    fn setting(
        &self,
        set: &Option<pb::VariableSetStmt>,
    ) -> Result<(Option<String>, Option<String>)> {
        use pb::VariableSetKind as K;
        let Some(set) = set else { return Err(err!(SYNTAX_ERROR, "SET without a setting")) };
        let name = Some(set.name.clone());
        Ok(match K::try_from(set.kind).unwrap_or(K::Undefined) {
            K::VarSetValue => (name, Some(self.set_value(&set.name, &set.args)?)),
            K::VarSetDefault | K::VarReset => (name, None),
            K::VarResetAll => (None, None),
            _ => return Err(Error::unsupported("this form of ALTER ROLE … SET")),
        })
    }

    fn grant_role(&self, s: &pb::GrantRoleStmt) -> Result<RoleStatement> {
        let mut admin = false;
        for node in &s.opt {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            match def.defname.as_str() {
                // REVOKE names the option that it takes back; its value is what is left.
                "admin" => admin = flag(def) || !s.is_grant,
                // Options of version 16.
                other => {
                    return Err(Error::unsupported(format!("GRANT … WITH {other}")));
                }
            }
        }
        let mut roles = Vec::with_capacity(s.granted_roles.len());
        for node in &s.granted_roles {
            let Some(NodeEnum::AccessPriv(role)) = &node.node else { continue };
            if !role.cols.is_empty() {
                return Err(err!(
                    INVALID_GRANT_OPERATION,
                    "column names cannot be included in GRANT/REVOKE ROLE"
                ));
            }
            roles.push(role.priv_name.clone());
        }
        Ok(RoleStatement::Membership {
            grant: s.is_grant,
            roles,
            members: role_refs(&s.grantee_roles),
            admin,
            grantor: s.grantor.as_ref().map(role_ref),
            group: false,
        })
    }

    fn grant(&mut self, s: &pb::GrantStmt) -> Result<Grant> {
        let target = if s.targtype == pb::GrantTargetType::AclTargetAllInSchema as i32 {
            let schemas = ast::owned_strings(&s.objects);
            GrantObjects::AllIn(self.grant_kind(s.objtype)?, schemas)
        } else {
            self.grant_target(s)?
        };
        self.grant_of(s, target)
    }

    fn grant_of(&self, s: &pb::GrantStmt, target: GrantObjects) -> Result<Grant> {
        let (mut privileges, mut all_columns) = (Vec::new(), Vec::new());
        for node in &s.privileges {
            let Some(NodeEnum::AccessPriv(one)) = &node.node else { continue };
            let columns = ast::owned_strings(&one.cols);
            if one.priv_name.is_empty() {
                all_columns = columns;
            } else {
                privileges.push((one.priv_name.clone(), columns));
            }
        }
        Ok(Grant {
            grant: s.is_grant,
            privileges,
            all_columns,
            target,
            grantees: role_refs(&s.grantees),
            option: s.grant_option,
            grantor: s.grantor.as_ref().map(role_ref),
            cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
        })
    }

    /// GRANT and REVOKE ON LARGE OBJECT.
    pub(crate) fn grant_large_objects(&self, s: &pb::GrantStmt) -> Result<LargeObjectStatement> {
        let mut privileges = Vec::new();
        for node in &s.privileges {
            if let Some(NodeEnum::AccessPriv(one)) = &node.node {
                privileges.push(one.priv_name.clone());
            }
        }
        let id = |node: &pb::Node| match &node.node {
            Some(node) => large_object(node),
            None => Err(err!(SYNTAX_ERROR, "a large object without its number")),
        };
        Ok(LargeObjectStatement::Grant {
            grant: s.is_grant,
            objects: s.objects.iter().map(id).collect::<Result<_>>()?,
            privileges,
            grantees: role_refs(&s.grantees),
            option: s.grant_option,
        })
    }

    fn defaults(&mut self, s: &pb::AlterDefaultPrivilegesStmt) -> Result<Grant> {
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        for node in &s.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let Some(NodeEnum::List(list)) = inner(&def.arg) else { continue };
            match def.defname.as_str() {
                "roles" => roles = role_refs(&list.items),
                _ => schemas = ast::owned_strings(&list.items),
            }
        }
        let Some(action) = &s.action else {
            return Err(err!(SYNTAX_ERROR, "ALTER DEFAULT PRIVILEGES without an action"));
        };
        let kind = self.grant_kind(action.objtype)?;
        self.grant_of(action, GrantObjects::Later { kind, roles, schemas })
    }

    fn grant_kind(&self, kind: i32) -> Result<AclKind> {
        use pb::ObjectType as T;
        Ok(match T::try_from(kind) {
            Ok(T::ObjectTable) => AclKind::Table,
            Ok(T::ObjectSequence) => AclKind::Sequence,
            Ok(T::ObjectFunction | T::ObjectProcedure | T::ObjectRoutine) => AclKind::Function,
            Ok(T::ObjectSchema) => AclKind::Schema,
            Ok(T::ObjectType | T::ObjectDomain) => AclKind::Type,
            _ => {
                return Err(Error::unsupported(format!("GRANT ON {}", super::words::object(kind))));
            }
        })
    }

    fn grant_target(&mut self, s: &pb::GrantStmt) -> Result<GrantObjects> {
        use pb::ObjectType as T;
        let strings = || ast::owned_strings(&s.objects);
        Ok(match T::try_from(s.objtype) {
            Ok(T::ObjectTable) => GrantObjects::Relations(self.ranges(&s.objects)?),
            Ok(T::ObjectSequence) => GrantObjects::Sequences(self.ranges(&s.objects)?),
            Ok(T::ObjectDatabase) => GrantObjects::Databases(strings()),
            Ok(T::ObjectSchema) => GrantObjects::Schemas(strings()),
            Ok(T::ObjectLanguage) => GrantObjects::Languages(strings()),
            Ok(T::ObjectTablespace) => GrantObjects::Tablespaces(strings()),
            Ok(T::ObjectFdw) => GrantObjects::Wrappers(strings()),
            Ok(T::ObjectForeignServer) => GrantObjects::Servers(strings()),
            Ok(T::ObjectType | T::ObjectDomain) => {
                let name = |node: &pb::Node| match &node.node {
                    Some(NodeEnum::List(list)) => Some(self.name_of_list(&list.items)),
                    Some(NodeEnum::TypeName(t)) => Some(self.name_of_list(&t.names)),
                    _ => None,
                };
                GrantObjects::Types(s.objects.iter().filter_map(name).collect())
            }
            Ok(T::ObjectFunction | T::ObjectProcedure | T::ObjectRoutine) => {
                let mut functions = Vec::with_capacity(s.objects.len());
                for node in &s.objects {
                    let Some(NodeEnum::ObjectWithArgs(f)) = &node.node else { continue };
                    functions.push(self.function_named(f)?);
                }
                GrantObjects::Functions(functions)
            }
            _ => {
                return Err(Error::unsupported(format!(
                    "GRANT ON {}",
                    super::words::object(s.objtype)
                )));
            }
        })
    }

    fn ranges(&self, nodes: &[pb::Node]) -> Result<Vec<Name>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let Some(NodeEnum::RangeVar(range)) = &node.node {
                out.push(self.name_of_range(&Some(range.clone()))?);
            }
        }
        Ok(out)
    }

    fn function_named(&mut self, f: &pb::ObjectWithArgs) -> Result<(Name, Option<Vec<base::Oid>>)> {
        let name = self.name_of_list(&f.objname);
        if f.args_unspecified {
            return Ok((name, None));
        }
        let mut args = Vec::with_capacity(f.objargs.len());
        for node in &f.objargs {
            let Some(NodeEnum::TypeName(ty)) = &node.node else { continue };
            args.push(self.type_name(ty)?.0);
        }
        Ok((name, Some(args)))
    }
}
