//! CREATE and ALTER TYPE and DOMAIN.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::expr::Expr;
use crate::type_statement::{AlterComposite, AlterDomain, DomainCheck, DomainDef, TypeStatement};
use crate::utility::{ColumnDef, Name};

use super::scope::{NsColumn, NsItem, Place};
use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// A statement about types; None when it is none.
    pub(crate) fn type_statement(&mut self, node: &NodeEnum) -> Result<Option<TypeStatement>> {
        Ok(Some(match node {
            NodeEnum::CreateEnumStmt(s) => TypeStatement::CreateEnum {
                name: self.name_of_list(&s.type_name),
                labels: ast::owned_strings(&s.vals),
            },
            NodeEnum::AlterEnumStmt(s) => self.alter_enum(s),
            NodeEnum::CreateDomainStmt(s) => self.create_domain(s)?,
            NodeEnum::AlterDomainStmt(s) => self.alter_domain(s)?,
            NodeEnum::CompositeTypeStmt(s) => self.create_composite(s)?,
            NodeEnum::AlterTableStmt(s) if s.objtype == pb::ObjectType::ObjectType as i32 => {
                self.alter_composite(s)?
            }
            NodeEnum::RenameStmt(s) => return self.rename_of_type(s),
            NodeEnum::AlterObjectSchemaStmt(s) => {
                let (Some(kind), Some(NodeEnum::List(list))) =
                    (type_word(s.object_type), inner(&s.object))
                else {
                    return Ok(None);
                };
                let name = self.name_of_list(&list.items);
                TypeStatement::SetSchema { kind, name, to: s.newschema.clone() }
            }
            NodeEnum::CreateRangeStmt(s) => self.create_range(s)?,
            NodeEnum::DefineStmt(s) if s.kind == pb::ObjectType::ObjectType as i32 => {
                self.create_base_type(s)?
            }
            NodeEnum::AlterTypeStmt(s) => self.alter_base_type(s)?,
            _ => return Ok(None),
        }))
    }

    fn alter_enum(&self, s: &pb::AlterEnumStmt) -> TypeStatement {
        let name = self.name_of_list(&s.type_name);
        if !s.old_val.is_empty() {
            return TypeStatement::RenameValue {
                name,
                from: s.old_val.clone(),
                to: s.new_val.clone(),
            };
        }
        let beside = &s.new_val_neighbor;
        TypeStatement::AddValue {
            name,
            label: s.new_val.clone(),
            if_not_exists: s.skip_if_new_val_exists,
            neighbor: (!beside.is_empty()).then(|| (beside.clone(), s.new_val_is_after)),
        }
    }

    fn rename_of_type(&self, s: &pb::RenameStmt) -> Result<Option<TypeStatement>> {
        let listed = || match inner(&s.object) {
            Some(NodeEnum::List(list)) => Some(self.name_of_list(&list.items)),
            _ => None,
        };
        if s.rename_type == pb::ObjectType::ObjectAttribute as i32 {
            return Ok(Some(TypeStatement::RenameAttribute {
                name: self.name_of_range(&s.relation)?,
                from: s.subname.clone(),
                to: s.newname.clone(),
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            }));
        }
        if s.rename_type == pb::ObjectType::ObjectDomconstraint as i32 {
            let Some(name) = listed() else { return Ok(None) };
            let step = AlterDomain::Rename { from: s.subname.clone(), to: s.newname.clone() };
            return Ok(Some(TypeStatement::AlterDomain { name, step }));
        }
        let (Some(kind), Some(name)) = (type_word(s.rename_type), listed()) else {
            return Ok(None);
        };
        Ok(Some(TypeStatement::Rename { kind, name, to: s.newname.clone() }))
    }

    fn create_domain(&mut self, s: &pb::CreateDomainStmt) -> Result<TypeStatement> {
        let Some(type_name) = &s.type_name else {
            return Err(err!(SYNTAX_ERROR, "domain without a type"));
        };
        let (base, typmod) = self.type_name(type_name).map_err(|e| self.near(e))?;
        if types::TypeIo::get(base).is_none_or(|io| io.category == b'P') {
            return Err(err!(
                DATATYPE_MISMATCH,
                "\"{}\" is not a valid base type for a domain",
                types::io::format_type(base, -1)
            ));
        }
        let name = self.name_of_list(&s.domainname);
        let (mut not_null, mut checks, mut uses) = (None, Vec::new(), Vec::new());
        let mut default = None;
        for node in &s.constraints {
            let Some(NodeEnum::Constraint(c)) = &node.node else { continue };
            match pb::ConstrType::try_from(c.contype) {
                Ok(kind @ (pb::ConstrType::ConstrNotnull | pb::ConstrType::ConstrNull)) => {
                    let wanted = kind == pb::ConstrType::ConstrNotnull;
                    if not_null.is_some_and(|known| known != wanted) {
                        return Err(err!(SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints"));
                    }
                    not_null = Some(wanted);
                }
                Ok(pb::ConstrType::ConstrDefault) => {
                    if default.is_some() {
                        return Err(err!(SYNTAX_ERROR, "multiple default expressions"));
                    }
                    let Some(node) = inner(&c.raw_expr) else { continue };
                    let found = self.own_default(node, (base, typmod), &name.name);
                    if let Some((sql, used)) = found.map_err(|e| self.near(e))? {
                        uses.extend(used);
                        default = Some(sql);
                    }
                }
                Ok(pb::ConstrType::ConstrCheck) => {
                    let (check, used) = self.domain_check(c, base, typmod)?;
                    uses.extend(used);
                    checks.push(check);
                }
                Ok(other) => return Err(not_for_domains(other)),
                Err(_) => return Err(base::Error::unsupported("this constraint of a domain")),
            }
        }
        let not_null = not_null.unwrap_or(false);
        let collation = match &s.coll_clause {
            Some(clause) => self.column_collation(clause, base)?,
            None => 0,
        };
        let def = DomainDef { name, base, typmod, collation, not_null, default, checks, uses };
        Ok(TypeStatement::CreateDomain(Box::new(def)))
    }

    fn domain_check(
        &mut self,
        c: &pb::Constraint,
        base: Oid,
        typmod: i32,
    ) -> Result<(DomainCheck, Vec<u32>)> {
        let Some(node) = inner(&c.raw_expr) else {
            return Err(err!(SYNTAX_ERROR, "CHECK without an expression"));
        };
        if c.is_no_inherit {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "check constraints for domains cannot be marked NO INHERIT"
            )
            .at(self.at(c.location)));
        }
        let expr = self.domain_condition(node, base, typmod).map_err(|e| self.near(e))?;
        let check = DomainCheck {
            name: (!c.conname.is_empty()).then(|| c.conname.clone()),
            sql: self.stored_form(node, Some(&crate::print::Value), |b, node| {
                b.domain_condition(node, base, typmod)
            })?,
            unvalidated: c.skip_validation,
        };
        let uses = self.objects_of(&expr, |b| b.domain_condition(node, base, typmod))?;
        Ok((check, uses))
    }

    /// A condition over VALUE: the only column, number 0, of what it is evaluated over.
    pub(crate) fn domain_condition(
        &mut self,
        node: &NodeEnum,
        base: Oid,
        typmod: i32,
    ) -> Result<Expr> {
        let col = self.new_var("value", base, typmod)?;
        self.note_type_collation(base);
        let mut scope = Scope::new(None);
        let value = NsColumn { name: "value".to_owned(), expr: self.column(col), of: None };
        scope.items.push(NsItem::of_columns(None, vec![value]));
        let condition = self.holding(|b| b.condition(&scope, node, Place::Check))?;
        if crate::walk::has_subquery(&condition) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "cannot use subquery in check constraint"));
        }
        let place = |c: u16| (c == col).then_some(Expr::Column(0, base));
        Ok(crate::walk::substitute(condition, &place))
    }

    fn alter_domain(&mut self, s: &pb::AlterDomainStmt) -> Result<TypeStatement> {
        let name = self.name_of_list(&s.type_name);
        // An unknown domain is the executor's to report.
        let path = self.cx.search_path;
        let found = self.cx.catalog.type_named(path, name.schema.as_deref(), &name.name);
        let (base, typmod) = match found.map(|t| &t.kind) {
            Some(catalog::UserTypeKind::Domain { base, typmod, .. }) => (Oid(*base), *typmod),
            _ => return Ok(TypeStatement::AlterDomain { name, step: AlterDomain::NotNull(false) }),
        };
        let step = match s.subtype.as_str() {
            "T" => match inner(&s.def) {
                Some(node) => {
                    let found = self.own_default(node, (base, typmod), &name.name);
                    match found.map_err(|e| self.near(e))? {
                        Some((sql, uses)) => AlterDomain::Default(Some(sql), uses),
                        None => AlterDomain::Default(None, Vec::new()),
                    }
                }
                None => AlterDomain::Default(None, Vec::new()),
            },
            "N" => AlterDomain::NotNull(false),
            "O" => AlterDomain::NotNull(true),
            "C" => match inner(&s.def) {
                Some(NodeEnum::Constraint(c)) => match pb::ConstrType::try_from(c.contype) {
                    Ok(pb::ConstrType::ConstrCheck) => {
                        let (check, uses) = self.domain_check(c, base, typmod)?;
                        AlterDomain::Add(check, uses)
                    }
                    Ok(pb::ConstrType::ConstrNotnull) => AlterDomain::NotNull(true),
                    Ok(other) => return Err(not_for_domains(other)),
                    Err(_) => return Err(base::Error::unsupported("this constraint of a domain")),
                },
                _ => return Err(err!(SYNTAX_ERROR, "ALTER DOMAIN without a constraint")),
            },
            "X" => AlterDomain::Drop { name: s.name.clone(), if_exists: s.missing_ok },
            "V" => AlterDomain::Validate(s.name.clone()),
            _ => return Err(base::Error::unsupported("this ALTER DOMAIN")),
        };
        Ok(TypeStatement::AlterDomain { name, step })
    }

    fn composite_column(&mut self, def: &pb::ColumnDef) -> Result<ColumnDef> {
        let Some(type_name) = &def.type_name else {
            return Err(err!(SYNTAX_ERROR, "attribute without a type"));
        };
        let (ty, typmod) = self.type_name(type_name).map_err(|e| self.near(e))?;
        let pseudo = types::TypeIo::get(ty).is_none_or(|io| io.category == b'P');
        if pseudo || ty == types::oids::UNKNOWN {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "column \"{}\" has pseudo-type {}",
                def.colname,
                types::io::format_type(ty, -1)
            ));
        }
        Ok(ColumnDef::new(&def.colname, ty, typmod))
    }

    fn create_composite(&mut self, s: &pb::CompositeTypeStmt) -> Result<TypeStatement> {
        let name: Name = self.name_of_range(&s.typevar)?;
        let mut columns: Vec<ColumnDef> = Vec::with_capacity(s.coldeflist.len());
        for node in &s.coldeflist {
            let Some(NodeEnum::ColumnDef(def)) = &node.node else { continue };
            let column = self.composite_column(def)?;
            if columns.iter().any(|c| c.name == column.name) {
                return Err(err!(
                    DUPLICATE_COLUMN,
                    "column \"{}\" specified more than once",
                    column.name
                ));
            }
            columns.push(column);
        }
        Ok(TypeStatement::CreateComposite { name, columns })
    }

    fn alter_composite(&mut self, s: &pb::AlterTableStmt) -> Result<TypeStatement> {
        use pb::AlterTableType as T;
        let name = self.name_of_range(&s.relation)?;
        let mut steps = Vec::with_capacity(s.cmds.len());
        for node in &s.cmds {
            let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else { continue };
            let def = match inner(&cmd.def) {
                Some(NodeEnum::ColumnDef(def)) => Some(def),
                _ => None,
            };
            steps.push(match (T::try_from(cmd.subtype), def) {
                (Ok(T::AtAddColumn), Some(def)) => AlterComposite::Add(self.composite_column(def)?),
                (Ok(T::AtDropColumn), _) => {
                    AlterComposite::Drop { name: cmd.name.clone(), if_exists: cmd.missing_ok }
                }
                (Ok(T::AtAlterColumnType), Some(def)) => {
                    let Some(type_name) = &def.type_name else { continue };
                    let (ty, typmod) = self.type_name(type_name)?;
                    AlterComposite::Type { name: cmd.name.clone(), ty, typmod }
                }
                _ => return Err(base::Error::unsupported("this ALTER TYPE")),
            });
        }
        let cascades = |node: &pb::Node| match &node.node {
            Some(NodeEnum::AlterTableCmd(cmd)) => {
                cmd.behavior == pb::DropBehavior::DropCascade as i32
            }
            _ => false,
        };
        let cascade = s.cmds.iter().any(cascades);
        Ok(TypeStatement::AlterComposite { name, steps, cascade })
    }
}

fn type_word(kind: i32) -> Option<&'static str> {
    match pb::ObjectType::try_from(kind) {
        Ok(pb::ObjectType::ObjectType) => Some("TYPE"),
        Ok(pb::ObjectType::ObjectDomain) => Some("DOMAIN"),
        _ => None,
    }
}

fn not_for_domains(kind: pb::ConstrType) -> base::Error {
    use pb::ConstrType as T;
    let what = match kind {
        T::ConstrPrimary => "primary key constraints",
        T::ConstrUnique => "unique constraints",
        T::ConstrForeign => "foreign key constraints",
        T::ConstrExclusion => "exclusion constraints",
        T::ConstrAttrDeferrable
        | T::ConstrAttrNotDeferrable
        | T::ConstrAttrDeferred
        | T::ConstrAttrImmediate => {
            return base::Error::unsupported(
                "specifying constraint deferrability not supported for domains",
            );
        }
        _ => return base::Error::unsupported("this constraint of a domain"),
    };
    err!(SYNTAX_ERROR, "{what} not possible for domains")
}

/// Binds a domain's stored condition over the type below; for the executor.
///
/// # Errors
/// When it no longer binds.
pub fn stored_domain_condition(
    cx: &crate::prepare::PrepareContext<'_>,
    sql: &str,
    base: Oid,
    typmod: i32,
) -> Result<Expr> {
    let node = crate::parse::parse_expr(sql)?;
    Binder::new(cx, sql, &[]).domain_condition(&node, base, typmod)
}
