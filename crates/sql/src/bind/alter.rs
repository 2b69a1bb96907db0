//! ALTER TABLE and RENAME.

use base::{Result, err};
use catalog::TableKind;
use pg_query::{NodeEnum, protobuf as pb};

use crate::column_keeping::ColumnKeeping;
use crate::parse::deparse_expr;
use crate::role::RoleStatement;
use crate::trigger::TriggerSelection;
use crate::utility::{AlterRoutine, AlterTable, LargeObjectStatement, Name, Utility};

use super::column_options::{column_options, def_word, storage_letter};
use super::define::object_kind;
use super::{Binder, inner};

impl Binder<'_> {
    /// ALTER TABLE (and ALTER INDEX … SET).
    pub(crate) fn alter_table(&mut self, stmt: &pb::AlterTableStmt) -> Result<Utility> {
        let kind: &'static str = object_kind(stmt.objtype).map_or("", |k| k.0);
        if !matches!(
            kind,
            "TABLE" | "INDEX" | "SEQUENCE" | "VIEW" | "MATERIALIZED VIEW" | "FOREIGN TABLE"
        ) {
            return Err(base::Error::unsupported(format!(
                "ALTER {}",
                super::words::object(stmt.objtype)
            )));
        }
        let table = self.name_of_range(&stmt.relation)?;
        let found = self.find_relation(table.schema.as_deref(), &table.name);
        let foreign = matches!(&found, Some(catalog::snapshot::Relation::Table(t))
            if t.kind == TableKind::Foreign);
        if foreign {
            for node in &stmt.cmds {
                let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else { continue };
                self.check_foreign_command(cmd)?;
            }
        }
        let passes = super::alter_passes::split(stmt, self.text);
        let (cmds, later) = match &passes {
            Some((now, later)) => (now, Some(later.clone())),
            None => (&stmt.cmds, None),
        };
        let mut steps = Vec::with_capacity(cmds.len());
        for (number, node) in cmds.iter().enumerate() {
            let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else { continue };
            self.check_new_check(&table, cmd, cmds).map_err(base::Error::without_position)?;
            self.alter_step(&table, cmd, &cmds[..number], &mut steps)?;
        }
        Ok(Utility::AlterTable { kind, table, if_exists: stmt.missing_ok, steps, later })
    }

    /// `0A000` for constraints that a foreign table can't have.
    fn check_foreign_command(&self, cmd: &pb::AlterTableCmd) -> Result<()> {
        match (&cmd.def, inner(&cmd.def)) {
            (_, Some(NodeEnum::ColumnDef(def))) => {
                def.constraints.iter().try_for_each(|c| self.check_foreign(c))
            }
            (Some(node), _) => self.check_foreign(node),
            _ => Ok(()),
        }
    }

    /// A CHECK expression is bound before anything copies it, over the table's columns and those that
    /// the statement (`all`) adds.
    fn check_new_check(
        &mut self,
        table: &Name,
        cmd: &pb::AlterTableCmd,
        all: &[pb::Node],
    ) -> Result<()> {
        let mut checks: Vec<&NodeEnum> = Vec::new();
        match (&cmd.def, inner(&cmd.def)) {
            (Some(def), Some(NodeEnum::Constraint(_))) => {
                checks.extend(super::define::check_of(def));
            }
            (_, Some(NodeEnum::ColumnDef(def))) => {
                checks.extend(def.constraints.iter().filter_map(super::define::check_of));
            }
            _ => {}
        }
        let found = self.find_relation(table.schema.as_deref(), &table.name);
        let Some(catalog::snapshot::Relation::Table(found)) = found else { return Ok(()) };
        if checks.is_empty() {
            return Ok(());
        }
        let mut whole = (*found).clone();
        self.add_new_columns(&mut whole, all)?;
        let rel = self.table_rel(std::sync::Arc::new(whole), &table.name)?;
        for check in checks {
            self.new_check(&rel, check)?;
        }
        Ok(())
    }

    /// Adds the columns that commands of an ALTER TABLE add.
    fn add_new_columns(&mut self, whole: &mut catalog::Table, commands: &[pb::Node]) -> Result<()> {
        for node in commands {
            let Some(NodeEnum::AlterTableCmd(other)) = &node.node else { continue };
            let Some(NodeEnum::ColumnDef(def)) = inner(&other.def) else { continue };
            if other.subtype != pb::AlterTableType::AtAddColumn as i32
                || whole.column(&def.colname).is_some()
            {
                continue;
            }
            let Some(ty) = &def.type_name else { continue };
            let (ty, typmod) = match self.serial_type(ty)? {
                Some(ty) => (ty, -1),
                None => self.type_name(ty)?,
            };
            let column = catalog::Column::new(&def.colname, ty.0, typmod);
            let generated = super::define::generation_of(def).is_some();
            whole.columns.push(catalog::Column { generated, ..column });
        }
        Ok(())
    }

    fn alter_step(
        &mut self,
        table: &Name,
        cmd: &pb::AlterTableCmd,
        before: &[pb::Node],
        steps: &mut Vec<AlterTable>,
    ) -> Result<()> {
        use pb::AlterTableType as T;
        let cascade = cmd.behavior == pb::DropBehavior::DropCascade as i32;
        let column = cmd.name.clone();
        let step = match T::try_from(cmd.subtype).unwrap_or(T::Undefined) {
            T::AtAddColumn => {
                let Some(NodeEnum::ColumnDef(def)) = inner(&cmd.def) else {
                    return Err(err!(SYNTAX_ERROR, "ADD COLUMN without a column"));
                };
                let (mut column, constraints) = self.column_def(def, &table.name)?;
                if column.generated {
                    self.added_generated(table, def, before, &mut column)
                        .map_err(base::Error::without_position)?;
                }
                AlterTable::AddColumn { column, constraints, if_not_exists: cmd.missing_ok }
            }
            T::AtDropColumn => {
                AlterTable::DropColumn { name: column, if_exists: cmd.missing_ok, cascade }
            }
            T::AtColumnDefault => {
                let (default, uses) = match (inner(&cmd.def), self.column_type(table, &column)) {
                    (None, _) => (None, Vec::new()),
                    (Some(node), Some(ty)) => {
                        let found = self.own_default(node, ty, &column);
                        let found = found.map_err(base::Error::without_position)?;
                        found.map_or((None, Vec::new()), |(sql, uses)| (Some(sql), uses))
                    }
                    (Some(node), None) => (Some(deparse_expr(node)?), Vec::new()),
                };
                AlterTable::SetDefault { column, default, uses }
            }
            T::AtAddIdentity => {
                let Some(NodeEnum::Constraint(c)) = inner(&cmd.def) else { return Ok(()) };
                let options = self.sequence_options(&c.options)?;
                AlterTable::AddIdentity { column, always: c.generated_when == "a", options }
            }
            T::AtSetIdentity => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                self.set_identity(column, &list.items)?
            }
            T::AtDropIdentity => AlterTable::DropIdentity { column, if_exists: cmd.missing_ok },
            T::AtDropExpression => AlterTable::DropExpression { column, if_exists: cmd.missing_ok },
            T::AtValidateConstraint => AlterTable::ValidateConstraint(column),
            T::AtAlterConstraint => match inner(&cmd.def) {
                Some(NodeEnum::Constraint(c)) => AlterTable::AlterConstraint {
                    name: c.conname.clone(),
                    deferrable: c.deferrable,
                    deferred: c.initdeferred,
                },
                Some(NodeEnum::AtalterConstraint(c)) => AlterTable::AlterConstraint {
                    name: c.conname.clone(),
                    deferrable: c.deferrable,
                    deferred: c.initdeferred,
                },
                _ => return Err(base::Error::unsupported("this form of ALTER CONSTRAINT")),
            },
            T::AtResetRelOptions => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                check_reset(&list.items)?;
                let name = |n: &pb::Node| match &n.node {
                    Some(NodeEnum::DefElem(def)) => Some(def.defname.clone()),
                    _ => None,
                };
                AlterTable::ResetOptions(list.items.iter().filter_map(name).collect())
            }
            T::AtSetNotNull => AlterTable::SetNotNull { column, not_null: true },
            T::AtDropNotNull => AlterTable::SetNotNull { column, not_null: false },
            T::AtAlterColumnType => {
                let Some(NodeEnum::ColumnDef(def)) = inner(&cmd.def) else {
                    return Err(err!(SYNTAX_ERROR, "ALTER COLUMN TYPE without a type"));
                };
                let Some(name) = &def.type_name else {
                    return Err(err!(SYNTAX_ERROR, "ALTER COLUMN TYPE without a type"));
                };
                let (ty, typmod) = self.type_name(name)?;
                let using = match inner(&def.raw_default) {
                    Some(node) => {
                        self.check_using(table, node)?;
                        Some(deparse_expr(node)?)
                    }
                    None => None,
                };
                let collation = match &def.coll_clause {
                    Some(clause) => self.column_collation(clause, ty)?,
                    None => 0,
                };
                AlterTable::SetType { column, ty, typmod, collation, using }
            }
            T::AtAddConstraint => {
                let Some(NodeEnum::Constraint(c)) = inner(&cmd.def) else {
                    return Err(err!(SYNTAX_ERROR, "ADD CONSTRAINT without a constraint"));
                };
                // A condition is looked at when the table is locked: its errors name no place in the text.
                let is_check = c.contype == pb::ConstrType::ConstrCheck as i32;
                let def = self.constraint(c, None);
                let def = def.map_err(|e| if is_check { e.without_position() } else { e })?;
                match def {
                    Some(def) => AlterTable::AddConstraint(def),
                    None => return Ok(()),
                }
            }
            T::AtDropConstraint => {
                AlterTable::DropConstraint { name: column, if_exists: cmd.missing_ok, cascade }
            }
            T::AtSetRelOptions => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                let options = match self.find_relation(table.schema.as_deref(), &table.name) {
                    Some(catalog::snapshot::Relation::Table(t)) if t.kind == TableKind::View => {
                        let (options, check) = self.view_options(&list.items)?;
                        if let Some(check) = check {
                            self.expect_updatable(&t)?;
                            steps.push(AlterTable::CheckOption(check));
                        }
                        options
                    }
                    Some(catalog::snapshot::Relation::Index(index)) => {
                        self.index_options(&list.items, index.method)?
                    }
                    _ => self.options(&list.items)?,
                };
                AlterTable::SetOptions(options)
            }
            T::AtChangeOwner => {
                let Some(owner) = &cmd.newowner else {
                    return Err(err!(SYNTAX_ERROR, "OWNER TO without a role"));
                };
                AlterTable::Owner(super::role::role_ref(owner))
            }
            T::AtAddInherit | T::AtDropInherit => {
                let Some(NodeEnum::RangeVar(range)) = inner(&cmd.def) else { return Ok(()) };
                let parent = self.name_of_range(&Some(range.clone()))?;
                match cmd.subtype == T::AtAddInherit as i32 {
                    true => AlterTable::Inherit(parent),
                    false => AlterTable::NoInherit(parent),
                }
            }
            T::AtAttachPartition | T::AtDetachPartition | T::AtDetachPartitionFinalize => {
                let Some(NodeEnum::PartitionCmd(command)) = inner(&cmd.def) else { return Ok(()) };
                AlterTable::Partition(self.partition_command(table, command, cmd.subtype)?)
            }
            T::AtClusterOn => AlterTable::ClusterOn(Some(column)),
            T::AtDropCluster => AlterTable::ClusterOn(None),
            T::AtSetStatistics => {
                let target = match inner(&cmd.def) {
                    Some(NodeEnum::Integer(n)) => n.ival,
                    _ => -1,
                };
                let target = super::statistics::target_of(target)?;
                match cmd.name.is_empty() {
                    true => AlterTable::IndexStatistics(cmd.num, target),
                    false => AlterTable::SetStatistics { column, target },
                }
            }
            T::AtSetStorage => {
                let how = ColumnKeeping::Storage(storage_letter(&def_word(cmd))?);
                AlterTable::Keep { column, how }
            }
            T::AtSetCompression => {
                let method = match def_word(cmd).as_str() {
                    "default" => None,
                    "pglz" => Some('p'),
                    "lz4" => Some('l'),
                    other => {
                        base::bail!(
                            INVALID_PARAMETER_VALUE,
                            "invalid compression method \"{other}\""
                        )
                    }
                };
                AlterTable::Keep { column, how: ColumnKeeping::Compression(method) }
            }
            T::AtSetOptions | T::AtResetOptions => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                let set = cmd.subtype == T::AtSetOptions as i32;
                if !set {
                    check_reset(&list.items)?;
                }
                AlterTable::Keep { column, how: column_options(&list.items, set)? }
            }
            T::AtAddOf => {
                let Some(NodeEnum::TypeName(name)) = inner(&cmd.def) else { return Ok(()) };
                AlterTable::Of(Some(self.type_of_table(name)?))
            }
            T::AtDropOf => AlterTable::Of(None),
            T::AtGenericOptions => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                AlterTable::ForeignOptions(super::ast::options(&list.items))
            }
            T::AtAlterColumnGenericOptions => {
                let Some(NodeEnum::List(list)) = inner(&cmd.def) else { return Ok(()) };
                let options = super::ast::options(&list.items);
                AlterTable::ColumnForeignOptions { column, options }
            }
            T::AtEnableTrig => enable('O', TriggerSelection::Named(column)),
            T::AtEnableAlwaysTrig => enable('A', TriggerSelection::Named(column)),
            T::AtEnableReplicaTrig => enable('R', TriggerSelection::Named(column)),
            T::AtDisableTrig => enable('D', TriggerSelection::Named(column)),
            T::AtEnableTrigAll => enable('O', TriggerSelection::All),
            T::AtDisableTrigAll => enable('D', TriggerSelection::All),
            T::AtEnableTrigUser => enable('O', TriggerSelection::User),
            T::AtDisableTrigUser => enable('D', TriggerSelection::User),
            T::AtEnableRule => rule('O', column),
            T::AtEnableAlwaysRule => rule('A', column),
            T::AtEnableReplicaRule => rule('R', column),
            T::AtDisableRule => rule('D', column),
            T::AtEnableRowSecurity => AlterTable::RowSecurity(true),
            T::AtDisableRowSecurity => AlterTable::RowSecurity(false),
            T::AtForceRowSecurity => AlterTable::ForceRowSecurity(true),
            T::AtNoForceRowSecurity => AlterTable::ForceRowSecurity(false),
            // So it is already: there are no oids.
            T::AtDropOids => return Ok(()),
            T::AtSetAccessMethod if steps.iter().any(|s| matches!(s, AlterTable::SetMethod(_))) => {
                return Err(base::err!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot have multiple SET ACCESS METHOD subcommands"
                ));
            }
            T::AtSetAccessMethod => AlterTable::SetMethod(cmd.name.clone()),
            T::AtSetLogged => AlterTable::SetLogged(true),
            T::AtSetUnLogged => AlterTable::SetLogged(false),
            T::AtReplicaIdentity => match inner(&cmd.def) {
                Some(NodeEnum::ReplicaIdentityStmt(s)) => AlterTable::ReplicaIdentity(
                    s.identity_type.chars().next().unwrap_or('d'),
                    s.name.clone(),
                ),
                _ => return Ok(()),
            },
            _ => return Err(base::Error::unsupported(super::words::alter_table(cmd))),
        };
        steps.push(step);
        Ok(())
    }

    /// SET GENERATED … and SET of the sequence's options.
    fn set_identity(&self, column: String, nodes: &[pb::Node]) -> Result<AlterTable> {
        let (mut always, mut rest) = (None, Vec::new());
        for node in nodes {
            match &node.node {
                Some(NodeEnum::DefElem(def)) if def.defname == "generated" => {
                    let code = super::define::def_value(def).unwrap_or_default();
                    // The grammar gives the letter's number.
                    always = Some(code == "97" || code == "a");
                }
                _ => rest.push(node.clone()),
            }
        }
        let options = self.sequence_options(&rest)?;
        Ok(AlterTable::SetIdentity { column, always, options })
    }

    /// The expression of a generated column that is added to a table.
    fn added_generated(
        &mut self,
        table: &Name,
        def: &pb::ColumnDef,
        before: &[pb::Node],
        column: &mut crate::utility::ColumnDef,
    ) -> Result<()> {
        let Some(node) = super::define::generation_of(def) else { return Ok(()) };
        let found = self.find_relation(table.schema.as_deref(), &table.name);
        let Some(catalog::snapshot::Relation::Table(found)) = found else { return Ok(()) };
        let mut whole = (*found).clone();
        self.add_new_columns(&mut whole, before)?;
        let own = catalog::Column::new(&column.name, column.ty.0, column.typmod);
        whole.columns.push(catalog::Column { generated: true, ..own });
        let number = whole.columns.len() as u16;
        let rel = self.table_rel(std::sync::Arc::new(whole), &table.name)?;
        let expr = self.generated_expr(&rel, node, number)?;
        column.default_uses = self.objects_of(&expr, |b| b.generated_expr(&rel, node, number))?;
        let bind = |b: &mut Self, node: &NodeEnum| b.generated_expr(&rel, node, number);
        column.default = Some(self.stored_form(node, None, bind)?);
        Ok(())
    }

    /// USING is bound over the table's columns.
    fn check_using(&mut self, table: &Name, node: &NodeEnum) -> Result<()> {
        let found = self.find_relation(table.schema.as_deref(), &table.name);
        let Some(catalog::snapshot::Relation::Table(found)) = found else { return Ok(()) };
        let rel = self.table_rel(found, &table.name)?;
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(&rel));
        scope.place.set(super::scope::Place::Transform);
        self.expr(&scope, node).map(drop)
    }

    /// A role as named, CURRENT_USER and kin resolved.
    pub(crate) fn role_name(&self, role: &pb::RoleSpec) -> String {
        if role.rolename.is_empty() { self.cx.user.to_owned() } else { role.rolename.clone() }
    }

    /// Type and typmod of an existing column.
    fn column_type(&self, table: &Name, column: &str) -> Option<(base::Oid, i32)> {
        match self.find_relation(table.schema.as_deref(), &table.name)? {
            catalog::snapshot::Relation::Table(t) => {
                t.column(column).map(|(_, c)| (base::Oid(c.ty), c.typmod))
            }
            _ => None,
        }
    }

    /// ALTER … RENAME.
    pub(crate) fn rename(&mut self, stmt: &pb::RenameStmt) -> Result<Utility> {
        if let Some(NodeEnum::ObjectWithArgs(object)) = inner(&stmt.object) {
            let routine = self.routine_ref(stmt.rename_type, object)?;
            let change = AlterRoutine::Rename(stmt.newname.clone());
            return Ok(Utility::AlterRoutine { routine, change });
        }
        let (kind, _) = object_kind(stmt.rename_type)
            .filter(|(k, _)| !matches!(*k, "DATABASE" | "ROLE" | "TYPE" | "DOMAIN" | "COLLATION"))
            .ok_or_else(|| {
                let object = super::words::object(stmt.rename_type);
                base::Error::unsupported(format!("ALTER {object} … RENAME"))
            })?;
        let table = if kind == "SCHEMA" {
            Name { schema: None, name: stmt.subname.clone(), position: 0, only: false }
        } else {
            self.name_of_range(&stmt.relation)?
        };
        let part = matches!(kind, "COLUMN" | "CONSTRAINT" | "POLICY" | "RULE" | "TRIGGER")
            .then(|| stmt.subname.clone());
        Ok(Utility::Rename {
            kind,
            table,
            part,
            of: object_kind(stmt.relation_type).map_or("TABLE", |(kind, _)| kind),
            to: stmt.newname.clone(),
            if_exists: stmt.missing_ok,
        })
    }

    /// ALTER … SET SCHEMA.
    pub(crate) fn set_schema(&mut self, stmt: &pb::AlterObjectSchemaStmt) -> Result<Utility> {
        if let Some(NodeEnum::ObjectWithArgs(object)) = inner(&stmt.object) {
            let routine = self.routine_ref(stmt.object_type, object)?;
            let change = AlterRoutine::Schema(stmt.newschema.clone());
            return Ok(Utility::AlterRoutine { routine, change });
        }
        let kind = object_kind(stmt.object_type).filter(|k| k.1).map(|k| k.0);
        let (Some(kind), Some(_)) = (kind, &stmt.relation) else {
            return Err(base::Error::unsupported(format!(
                "ALTER {} … SET SCHEMA",
                super::words::object(stmt.object_type)
            )));
        };
        Ok(Utility::SetSchema {
            kind,
            object: self.name_of_range(&stmt.relation)?,
            to: stmt.newschema.clone(),
            if_exists: stmt.missing_ok,
        })
    }

    /// ALTER … OWNER TO (other objects than tables).
    pub(crate) fn alter_owner(&mut self, stmt: &pb::AlterOwnerStmt) -> Result<Utility> {
        if let (Some(NodeEnum::ObjectWithArgs(object)), Some(owner)) =
            (inner(&stmt.object), &stmt.newowner)
        {
            let routine = self.routine_ref(stmt.object_type, object)?;
            let change = AlterRoutine::Owner(super::role::role_ref(owner));
            return Ok(Utility::AlterRoutine { routine, change });
        }
        if stmt.object_type == pb::ObjectType::ObjectLargeobject as i32
            && let (Some(object), Some(owner)) = (inner(&stmt.object), &stmt.newowner)
        {
            let (id, owner) = (super::role::large_object(object)?, super::role::role_ref(owner));
            return Ok(Utility::LargeObject(LargeObjectStatement::Owner(id, owner)));
        }
        if stmt.object_type == pb::ObjectType::ObjectLanguage as i32
            && let Some(NodeEnum::String(name)) = inner(&stmt.object)
        {
            // The languages are the server's own: who owns them makes no difference to anybody.
            if catalog::system::named::language(&name.sval).is_none() {
                return Err(err!(UNDEFINED_OBJECT, "language \"{}\" does not exist", name.sval));
            }
            return Ok(Utility::Nothing { tag: "ALTER LANGUAGE", notices: Vec::new() });
        }
        let (kind, object, owner) =
            match (object_kind(stmt.object_type), inner(&stmt.object), &stmt.newowner) {
                (Some((kind, _)), Some(NodeEnum::String(name)), Some(owner)) => {
                    let name = name.sval.clone();
                    (kind, Name { schema: None, name, position: 0, only: false }, owner)
                }
                (Some((kind, _)), Some(NodeEnum::List(list)), Some(owner)) => {
                    (kind, self.name_of_list(&list.items), owner)
                }
                _ => {
                    return Err(base::Error::unsupported(format!(
                        "ALTER {} … OWNER TO",
                        super::words::object(stmt.object_type)
                    )));
                }
            };
        let owner = super::role::role_ref(owner);
        Ok(Utility::Role(RoleStatement::Owner { kind, object, owner }))
    }
}

/// ENABLE and DISABLE TRIGGER.
fn enable(enabled: char, which: TriggerSelection) -> AlterTable {
    AlterTable::EnableTrigger { which, enabled }
}

/// ENABLE and DISABLE RULE.
fn rule(enabled: char, name: String) -> AlterTable {
    AlterTable::EnableRule { name, enabled }
}

/// `42601` for values in RESET (…).
fn check_reset(options: &[pb::Node]) -> Result<()> {
    let has_value =
        |node: &pb::Node| matches!(&node.node, Some(NodeEnum::DefElem(def)) if def.arg.is_some());
    if options.iter().any(has_value) {
        base::bail!(SYNTAX_ERROR, "RESET must not include values for parameters");
    }
    Ok(())
}
