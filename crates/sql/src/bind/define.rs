//! CREATE and DROP of tables, indexes, schemas.

use base::{Result, err};
use catalog::{Column, ForeignKeyAction, OnCommit, Table, TableKind};
use pg_query::{NodeEnum, protobuf as pb};

use crate::every_node::every_node;
use crate::logical::SYSTEM_COLUMNS;
use crate::plan::ScanColumn;
use crate::utility::{
    ColumnDef, ColumnSequence, ConstraintDef, ConstraintDefKind, IndexKey, Inherits, Name,
    Persistence, SequenceOptions, Utility,
};

use super::{Binder, ast, inner, record};

impl Binder<'_> {
    /// `0A000` for a relation of another database.
    pub(super) fn check_range(&self, range: &pb::RangeVar) -> Result<()> {
        if range.catalogname.is_empty() {
            return Ok(());
        }
        let names = [&*range.catalogname, &*range.schemaname, &*range.relname];
        ast::check_database(&names, self.cx.database, true)
            .map_err(|e| e.at(self.at(range.location)))
    }

    /// A table's name as written.
    pub(crate) fn name_of_range(&self, range: &Option<pb::RangeVar>) -> Result<Name> {
        let Some(range) = range else {
            return Err(err!(SYNTAX_ERROR, "statement without a name"));
        };
        self.check_range(range)?;
        Ok(Name {
            schema: (!range.schemaname.is_empty()).then(|| range.schemaname.clone()),
            name: range.relname.clone(),
            // As in PostgreSQL: errors about tables of such statements have no position.
            position: 0,
            only: !range.inh,
        })
    }

    /// A name given as a list of strings.
    pub(crate) fn name_of_list(&self, nodes: &[pb::Node]) -> Name {
        let names = ast::strings(nodes);
        if let Err(error) = ast::check_database(&names, self.cx.database, false) {
            self.elsewhere.borrow_mut().get_or_insert(error);
        }
        let (schema, name) = ast::qualified(&names);
        let schema = schema.map(str::to_owned);
        Name { schema, name: name.to_owned(), position: 0, only: false }
    }

    /// CREATE TABLE.
    pub(crate) fn create_table(&mut self, stmt: &pb::CreateStmt) -> Result<Utility> {
        let mut name = self.name_of_range(&stmt.relation)?;
        let range = stmt.relation.as_ref();
        name.position = range.map_or(0, |r| self.at(r.location));
        if stmt.partspec.is_some() && stmt.partbound.is_none() && !stmt.inh_relations.is_empty() {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "cannot create partitioned table as inheritance child"
            ));
        }
        let of_type = stmt.of_typename.as_ref().map(|name| self.type_of_table(name)).transpose()?;
        let persistence = self.persistence(range, stmt.oncommit)?;
        let mut partition = crate::partition::PartitionClause::default();
        if let Some(spec) = &stmt.partbound {
            let parent = stmt.inh_relations.first().and_then(|node| match &node.node {
                Some(NodeEnum::RangeVar(range)) => Some(unplaced(range)),
                _ => None,
            });
            let parent = parent.map(|range| self.find_table(&range)).transpose()?;
            if let Some(parent) = parent {
                self.check_parent(&parent, persistence, true)?;
                partition.bound = Some(self.bound_spec(spec, &parent)?);
            }
        }
        let is_partition = partition.bound.is_some();
        let mut inherited = self.inherited(&stmt.inh_relations, persistence, is_partition)?;
        if let Some(failure) = inherited.failure.take() {
            return Ok(self.failed_table(name, persistence, inherited, failure));
        }
        if is_partition || of_type.is_some() {
            let what = if is_partition { "partitions" } else { "typed tables" };
            stmt.table_elts.iter().try_for_each(|node| ast::expect_plain_column(node, what))?;
        }
        let typed = match (is_partition, of_type) {
            (true, _) => Some(self.partition_elements(&stmt.table_elts, &inherited.columns)?),
            (false, Some(ty)) => Some(self.typed_elements(&stmt.table_elts, ty)?),
            (false, None) => None,
        };
        let elements = typed.as_deref().unwrap_or(&stmt.table_elts);
        self.check_checks(&name.name, &inherited.columns, elements)?;
        ast::check_tablespace(&stmt.tablespacename)?;
        let mut columns: Vec<ColumnDef> = Vec::new();
        let mut constraints = Vec::new();
        let mut indexes = Vec::new();
        for node in elements {
            match &node.node {
                Some(NodeEnum::ColumnDef(def)) => {
                    let (column, own) = self.column_def(def, &name.name)?;
                    if columns.iter().any(|c| c.name == column.name) {
                        return Err(err!(
                            DUPLICATE_COLUMN,
                            "column \"{}\" specified more than once",
                            column.name
                        ));
                    }
                    columns.push(column);
                    constraints.extend(own);
                }
                Some(NodeEnum::Constraint(c)) => {
                    constraints.extend(self.constraint(c, None)?);
                }
                Some(NodeEnum::TableLikeClause(like)) => {
                    self.like(like, &mut columns, &mut constraints, &mut indexes)?;
                }
                _ => return Err(base::Error::unsupported("this table element")),
            }
        }
        for node in &stmt.constraints {
            if let Some(NodeEnum::Constraint(c)) = &node.node {
                constraints.extend(self.constraint(c, None)?);
            }
        }
        if !inherited.parents.is_empty() {
            let merged = self.merge_own(&name.name, &mut inherited, &mut columns, &mut constraints);
            if let Err(failure) = merged {
                return Ok(self.failed_table(name, persistence, inherited, failure));
            }
        }
        self.generated_columns(&name.name, elements, &mut columns)?;
        self.check_constraints(&name, &columns, &constraints)?;
        for constraint in &constraints {
            if let ConstraintDefKind::PrimaryKey { columns: keys, .. } = &constraint.kind {
                for column in columns.iter_mut().filter(|c| keys.contains(&c.name)) {
                    column.not_null = true;
                }
            }
        }
        if let Some(spec) = &stmt.partspec {
            if constraints.iter().any(|c| c.no_inherit) {
                return Err(err!(
                    INVALID_TABLE_DEFINITION,
                    "cannot add NO INHERIT constraint to partitioned table \"{}\"",
                    name.name
                ));
            }
            let mut table = transient_table(&name.name, &columns);
            for (column, def) in table.columns.iter_mut().zip(&columns) {
                column.collation = def.collation;
            }
            partition.by = Some(self.partitioning(spec, table)?);
        }
        if is_partition {
            inherited.notices.retain(|(message, _)| message.starts_with("merging constraint"));
            columns.iter_mut().for_each(|c| c.only_inherited = true);
        }
        Ok(Utility::CreateTable {
            of_type: of_type.map_or(0, |ty| ty.0),
            foreign: None,
            method: (!stmt.access_method.is_empty()).then(|| stmt.access_method.clone()),
            partition,
            name,
            columns,
            constraints,
            if_not_exists: stmt.if_not_exists,
            indexes,
            options: self.options(&stmt.options)?,
            persistence,
            inherits: Inherits {
                parents: inherited.parents,
                notices: inherited.notices,
                failure: None,
            },
        })
    }

    /// TEMPORARY, UNLOGGED, and ON COMMIT.
    ///
    /// # Errors
    /// `42P16` for ON COMMIT of a table that isn't temporary, and for a temporary one in a schema of the
    /// others.
    pub(crate) fn persistence(
        &self,
        range: Option<&pb::RangeVar>,
        on_commit: i32,
    ) -> Result<Persistence> {
        let action = pb::OnCommitAction::try_from(on_commit);
        let on_commit = match action {
            Ok(pb::OnCommitAction::OncommitDeleteRows) => OnCommit::DeleteRows,
            Ok(pb::OnCommitAction::OncommitDrop) => OnCommit::Drop,
            _ => OnCommit::PreserveRows,
        };
        let word = range.map_or("", |r| &r.relpersistence);
        let in_temp = range.is_some_and(|r| r.schemaname == "pg_temp");
        if let Some(r) = range.filter(|r| word == "t" && !r.schemaname.is_empty()) {
            let schema = self.cx.catalog.schema_named(&r.schemaname).map(|s| s.oid);
            if !in_temp && (schema.is_none() || schema != self.cx.catalog.temporary()) {
                return Err(err!(
                    INVALID_TABLE_DEFINITION,
                    "cannot create temporary relation in non-temporary schema"
                )
                .at(self.at(r.location)));
            }
        }
        if word == "t" || (in_temp && word != "u") {
            return Ok(Persistence::Temporary(on_commit));
        }
        let none = pb::OnCommitAction::OncommitNoop;
        if !matches!(action, Ok(a) if a == none || a == pb::OnCommitAction::Undefined) {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "ON COMMIT can only be used on temporary tables"
            ));
        }
        Ok(if word == "u" { Persistence::Unlogged } else { Persistence::Permanent })
    }

    /// CHECK expressions of a new table: bound over its columns before anything copies them.
    fn check_checks(
        &mut self,
        name: &str,
        inherited: &[ColumnDef],
        elements: &[pb::Node],
    ) -> Result<()> {
        let (mut columns, mut checks) = (inherited.to_vec(), Vec::new());
        for node in elements {
            match &node.node {
                Some(NodeEnum::ColumnDef(def)) => {
                    let Some(ty) = &def.type_name else { continue };
                    let (ty, typmod) = match self.serial_type(ty)? {
                        Some(ty) => (ty, -1),
                        None => self.type_name(ty)?,
                    };
                    if !inherited.iter().any(|c| c.name == def.colname) {
                        columns.push(ColumnDef::new(&def.colname, ty, typmod));
                    }
                    checks.extend(def.constraints.iter().filter_map(check_of));
                }
                Some(NodeEnum::TableLikeClause(like)) => {
                    let Some(range) = &like.relation else { continue };
                    let Ok(table) = self.find_table(&unplaced(range)) else { continue };
                    for (_, column) in table.live_columns() {
                        let ty = base::Oid(column.ty);
                        columns.push(ColumnDef::new(&column.name, ty, column.typmod));
                    }
                }
                _ => checks.extend(check_of(node)),
            }
        }
        if checks.is_empty() {
            return Ok(());
        }
        let table = transient_table(name, &columns);
        let rel = self.table_rel(std::sync::Arc::new(table), name)?;
        for check in checks {
            self.new_check(&rel, check)?;
        }
        Ok(())
    }

    /// Expressions of generated columns, bound over all columns of the new table.
    fn generated_columns(
        &mut self,
        table: &str,
        elements: &[pb::Node],
        columns: &mut [ColumnDef],
    ) -> Result<()> {
        if !columns.iter().any(|c| c.generated) {
            return Ok(());
        }
        let rel = self.table_rel(std::sync::Arc::new(transient_table(table, columns)), table)?;
        for node in elements {
            let Some(NodeEnum::ColumnDef(def)) = &node.node else { continue };
            let Some(node) = generation_of(def) else { continue };
            let Some(at) = columns.iter().position(|c| c.name == def.colname) else { continue };
            self.new_table = Some(table.to_owned());
            let expr = self.generated_expr(&rel, node, at as u16 + 1)?;
            let bind = |b: &mut Self, node: &NodeEnum| b.generated_expr(&rel, node, at as u16 + 1);
            columns[at].default_uses = self.objects_of(&expr, |b| bind(b, node))?;
            // The table that is being made has no oid by which its name could be kept.
            let names_itself = columns[at].default_uses.contains(&0);
            columns[at].default = Some(match names_itself {
                true => self.stored_text(node)?,
                false => self.stored_form(node, None, bind)?,
            });
            self.new_table = None;
            columns[at].default_uses.retain(|id| *id != 0);
        }
        Ok(())
    }

    /// Binds a generated column's expression over a table.
    pub(crate) fn generated_expr(
        &mut self,
        rel: &crate::logical::TableRel,
        node: &NodeEnum,
        number: u16,
    ) -> Result<crate::Expr> {
        let column = &rel.table.columns[usize::from(number) - 1];
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(rel));
        scope.place.set(super::scope::Place::Generated);
        if let Some(location) = whole_row(node, rel) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot use whole-row variable in column generation expression"
            )
            .detail("This would cause the generated column to depend on its own value.")
            .at(self.at(location)));
        }
        let expr = self.holding(|b| b.expr(&scope, node))?;
        let position = self.at(ast::location(node));
        let (ty, from) = (base::Oid(column.ty), expr.ty());
        let expr = self
            .holding(|b| b.assign(expr, ty, column.typmod, &column.name, position))
            .map_err(|e| default_mismatch(e, &column.name, ty, from))?;
        let mut used = Vec::new();
        crate::walk::columns_of(&expr, &mut used);
        for col in used {
            let n = match rel.column(col) {
                Some(crate::plan::ScanColumn::Attr(n)) => n,
                Some(crate::plan::ScanColumn::TableOid) | None => continue,
                Some(_) => {
                    let var = &self.vars[usize::from(col)];
                    return Err(err!(
                        INVALID_COLUMN_REFERENCE,
                        "cannot use system column \"{}\" in column generation expression",
                        var.name
                    )
                    .at(var.position));
                }
            };
            let other = &rel.table.columns[usize::from(n) - 1];
            if other.generated {
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "cannot use generated column \"{}\" in column generation expression",
                    other.name
                )
                .detail("A generated column cannot reference another generated column.")
                .at(self.vars[usize::from(col)].position));
            }
        }
        if crate::walk::is_changeable(&expr) {
            return Err(err!(INVALID_OBJECT_DEFINITION, "generation expression is not immutable"));
        }
        Ok(expr)
    }

    /// Constraints over the new table's columns: names exist, expressions are boolean.
    fn check_constraints(
        &mut self,
        name: &Name,
        columns: &[ColumnDef],
        constraints: &[ConstraintDef],
    ) -> Result<()> {
        let mut primary = false;
        for constraint in constraints {
            let keys: &[String] = match &constraint.kind {
                ConstraintDefKind::PrimaryKey { columns: keys, .. } => {
                    if std::mem::replace(&mut primary, true) {
                        return Err(err!(
                            INVALID_TABLE_DEFINITION,
                            "multiple primary keys for table \"{}\" are not allowed",
                            name.name
                        )
                        .at(constraint.position));
                    }
                    keys
                }
                ConstraintDefKind::Unique { columns: keys, .. } => keys,
                ConstraintDefKind::ForeignKey { columns, .. } => columns,
                _ => &[],
            };
            for key in keys {
                if !columns.iter().any(|c| c.name == *key) {
                    let what = match constraint.kind {
                        ConstraintDefKind::ForeignKey { .. } => {
                            "referenced in foreign key constraint"
                        }
                        _ => "named in key",
                    };
                    let error = err!(UNDEFINED_COLUMN, "column \"{key}\" {what} does not exist");
                    let foreign = matches!(constraint.kind, ConstraintDefKind::ForeignKey { .. });
                    return Err(if foreign { error } else { error.at(constraint.position) });
                }
            }
        }
        Ok(())
    }

    /// An error whose position belongs to another text.
    pub(crate) fn near(&self, error: base::Error) -> base::Error {
        let fields = error.fields();
        let mut out = base::Error::new(fields.code, fields.message.clone());
        if let Some(detail) = &fields.detail {
            out = out.detail(detail.clone());
        }
        if let Some(hint) = &fields.hint {
            out = out.hint(hint.clone());
        }
        out
    }

    /// A column definition with the constraints written at it.
    pub(crate) fn column_def(
        &mut self,
        def: &pb::ColumnDef,
        table: &str,
    ) -> Result<(ColumnDef, Vec<ConstraintDef>)> {
        let Some(type_name) = &def.type_name else {
            return Err(err!(SYNTAX_ERROR, "column without a type"));
        };
        let serial = self.serial_type(type_name)?;
        let (ty, typmod) = match serial {
            Some(ty) => (ty, -1),
            None => self.type_name(type_name)?,
        };
        if ast::is_pseudo(ty) {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "column \"{}\" has pseudo-type {}",
                def.colname,
                types::io::format_type(ty, -1)
            ));
        }
        let mut column = ColumnDef::new(&def.colname, ty, typmod);
        column.not_null = def.is_not_null || serial.is_some();
        column.foreign_options = ast::options(&def.fdwoptions);
        if let Some(clause) = &def.coll_clause {
            column.collation = self.column_collation(clause, ty)?;
        }
        if serial.is_some() {
            let options = SequenceOptions { ty: Some(ty), ..SequenceOptions::default() };
            column.sequence = Some(ColumnSequence { identity: None, options });
        }
        let mut constraints: Vec<ConstraintDef> = Vec::new();
        // The last constraint was said to be NOT DEFERRABLE.
        let mut fixed = false;
        let mut null = false;
        for node in &def.constraints {
            let Some(NodeEnum::Constraint(c)) = &node.node else { continue };
            match pb::ConstrType::try_from(c.contype) {
                Ok(pb::ConstrType::ConstrNotnull) if null => {
                    return Err(self.null_conflict(def, table, c.location));
                }
                Ok(pb::ConstrType::ConstrNotnull) => column.not_null = true,
                Ok(pb::ConstrType::ConstrNull) => {
                    null = true;
                    if column.sequence.is_some() || column.not_null {
                        return Err(self.null_conflict(def, table, c.location));
                    }
                    column.not_null = false;
                }
                Ok(pb::ConstrType::ConstrDefault) => {
                    if column.default.is_some()
                        || matches!(&column.sequence, Some(s) if s.identity.is_none())
                    {
                        return Err(err!(
                            SYNTAX_ERROR,
                            "multiple default values specified for column \"{}\" of table \"{table}\"",
                            def.colname
                        )
                        .at(self.at(c.location)));
                    }
                    let Some(node) = inner(&c.raw_expr) else { continue };
                    let found = self.own_default(node, (ty, typmod), &def.colname)?;
                    let Some((sql, uses)) = found else { continue };
                    (column.default, column.default_uses) = (Some(sql), uses);
                    column.default_volatile = self.is_volatile_default(node, &column)?;
                }
                Ok(pb::ConstrType::ConstrIdentity) => {
                    if null {
                        return Err(self.null_conflict(def, table, c.location));
                    }
                    self.identity_column(&mut column, c, table)?
                }
                Ok(pb::ConstrType::ConstrGenerated) if column.generated => {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "multiple generation clauses specified for column \"{}\" of table \"{table}\"",
                        def.colname
                    )
                    .at(self.at(c.location)));
                }
                Ok(pb::ConstrType::ConstrGenerated) => column.generated = true,
                // DEFERRABLE and kin belong to the constraint before them.
                Ok(
                    kind @ (pb::ConstrType::ConstrAttrDeferrable
                    | pb::ConstrType::ConstrAttrDeferred
                    | pb::ConstrType::ConstrAttrNotDeferrable
                    | pb::ConstrType::ConstrAttrImmediate),
                ) => {
                    fixed |= kind == pb::ConstrType::ConstrAttrNotDeferrable;
                    self.constraint_attribute(kind, fixed, constraints.last_mut(), c.location)?;
                }
                _ => {
                    fixed = false;
                    constraints.extend(self.constraint(c, Some(&def.colname))?);
                }
            }
        }
        if column.generated {
            self.check_generated(&column, def, table)?;
        }
        Ok((column, constraints))
    }

    /// COLLATE of a column of this type; 0 for the type's own.
    pub(crate) fn column_collation(
        &self,
        clause: &pb::CollateClause,
        ty: base::Oid,
    ) -> Result<u32> {
        let collation = self.collation(clause)?;
        let usual = match self.cx.catalog.type_collation(ty.0) {
            usual if usual != 0 => usual,
            _ => {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "collations are not supported by type {}",
                    types::io::format_type(ty, -1)
                )
                .at(self.at(clause.location)));
            }
        };
        Ok(if collation == usual { 0 } else { collation })
    }

    fn null_conflict(&self, def: &pb::ColumnDef, table: &str, location: i32) -> base::Error {
        err!(
            SYNTAX_ERROR,
            "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{table}\"",
            def.colname
        )
        .at(self.at(location))
    }

    /// GENERATED … AS IDENTITY.
    fn identity_column(
        &self,
        column: &mut ColumnDef,
        c: &pb::Constraint,
        table: &str,
    ) -> Result<()> {
        use types::oids::{INT2, INT4, INT8};
        if ![INT2, INT4, INT8].contains(&column.ty) {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "identity column type must be smallint, integer, or bigint"
            ));
        }
        if let Some(other) = &column.sequence {
            let what = if other.identity.is_some() {
                "multiple identity specifications"
            } else {
                "both default and identity specified"
            };
            return Err(err!(
                SYNTAX_ERROR,
                "{what} for column \"{}\" of table \"{table}\"",
                column.name
            )
            .at(self.at(c.location)));
        }
        if column.default.is_some() {
            return Err(err!(
                SYNTAX_ERROR,
                "both default and identity specified for column \"{}\" of table \"{table}\"",
                column.name
            )
            .at(self.at(c.location)));
        }
        let mut options = self.sequence_options(&c.options)?;
        options.ty.get_or_insert(column.ty);
        column.not_null = true;
        column.sequence = Some(ColumnSequence { identity: Some(c.generated_when == "a"), options });
        Ok(())
    }

    fn check_generated(&self, column: &ColumnDef, def: &pb::ColumnDef, table: &str) -> Result<()> {
        let at = def.constraints.iter().find_map(|n| match &n.node {
            Some(NodeEnum::Constraint(c))
                if c.contype == pb::ConstrType::ConstrGenerated as i32 =>
            {
                Some(c.location)
            }
            _ => None,
        });
        let what = match (&column.default, &column.sequence) {
            (Some(_), _) => "both default and generation expression",
            (_, Some(s)) if s.identity.is_some() => "both identity and generation expression",
            (_, Some(_)) => "both default and generation expression",
            _ => return Ok(()),
        };
        Err(err!(
            SYNTAX_ERROR,
            "{what} specified for column \"{}\" of table \"{table}\"",
            column.name
        )
        .at(self.at(at.unwrap_or(-1))))
    }

    /// DEFERRABLE, INITIALLY DEFERRED and their opposites behind a column's constraint.
    fn constraint_attribute(
        &self,
        kind: pb::ConstrType,
        fixed: bool,
        last: Option<&mut ConstraintDef>,
        location: i32,
    ) -> Result<()> {
        use pb::ConstrType as T;
        let fits = last.filter(|c| {
            matches!(
                c.kind,
                ConstraintDefKind::PrimaryKey { .. }
                    | ConstraintDefKind::Unique { .. }
                    | ConstraintDefKind::ForeignKey { .. }
            )
        });
        let Some(last) = fits else {
            let word = match kind {
                T::ConstrAttrDeferrable => "DEFERRABLE",
                T::ConstrAttrNotDeferrable => "NOT DEFERRABLE",
                T::ConstrAttrDeferred => "INITIALLY DEFERRED",
                _ => "INITIALLY IMMEDIATE",
            };
            return Err(err!(SYNTAX_ERROR, "misplaced {word} clause").at(self.at(location)));
        };
        match kind {
            T::ConstrAttrDeferrable => last.deferrable = true,
            T::ConstrAttrDeferred if !fixed => (last.deferrable, last.deferred) = (true, true),
            T::ConstrAttrNotDeferrable | T::ConstrAttrDeferred
                if last.deferred || fixed && kind == T::ConstrAttrDeferred =>
            {
                return Err(err!(
                    SYNTAX_ERROR,
                    "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
                )
                .at(self.at(location)));
            }
            _ => {}
        }
        Ok(())
    }

    fn is_volatile_default(&mut self, node: &NodeEnum, column: &ColumnDef) -> Result<bool> {
        let expr = self.default_expr(node, column.ty, column.typmod, &column.name)?;
        Ok(crate::walk::is_volatile(&expr))
    }

    /// A constraint; `column`: the column that it is written at.
    pub(crate) fn constraint(
        &mut self,
        c: &pb::Constraint,
        column: Option<&str>,
    ) -> Result<Option<ConstraintDef>> {
        use pb::ConstrType as T;
        let keys = |nodes: &[pb::Node]| match column {
            Some(column) if nodes.is_empty() => vec![column.to_owned()],
            _ => ast::owned_strings(nodes),
        };
        let kind = match T::try_from(c.contype) {
            Ok(T::ConstrCheck) => {
                let Some(node) = inner(&c.raw_expr) else { return Ok(None) };
                let mut columns = Vec::new();
                column_names(node, &mut columns);
                let known = self.check_texts.iter().find(|(at, _)| *at == record::address(node));
                let sql = match known {
                    Some((_, text)) => text.clone(),
                    None => self.stored_text(node)?,
                };
                ConstraintDefKind::Check { sql, columns }
            }
            Ok(T::ConstrPrimary | T::ConstrUnique) => {
                let primary = c.contype == T::ConstrPrimary as i32;
                let (columns, include) = (keys(&c.keys), ast::owned_strings(&c.including));
                if !c.indexname.is_empty() {
                    ConstraintDefKind::UsingIndex { index: c.indexname.clone(), primary }
                } else if primary {
                    ConstraintDefKind::PrimaryKey { columns, include }
                } else {
                    ConstraintDefKind::Unique {
                        columns,
                        include,
                        nulls_equal: c.nulls_not_distinct,
                    }
                }
            }
            Ok(T::ConstrForeign) => {
                if c.fk_matchtype == "p" {
                    return Err(err!(FEATURE_NOT_SUPPORTED, "MATCH PARTIAL not yet implemented")
                        .at(self.at(c.location)));
                }
                ConstraintDefKind::ForeignKey {
                    columns: keys(&c.fk_attrs),
                    table: self.name_of_range(&c.pktable)?,
                    referenced: ast::owned_strings(&c.pk_attrs),
                    on_delete: key_action(&c.fk_del_action),
                    on_update: key_action(&c.fk_upd_action),
                    match_full: c.fk_matchtype == "f",
                    set_columns: ast::owned_strings(&c.fk_del_set_cols),
                }
            }
            Ok(T::ConstrExclusion) => ConstraintDefKind::Exclude(super::exclusion::written(c)),
            Ok(T::ConstrAttrNotDeferrable | T::ConstrAttrImmediate | T::ConstrAttrEnforced) => {
                return Ok(None);
            }
            _ => return Err(self.unsupported("this constraint", c.location)),
        };
        let name = (!c.conname.is_empty()).then(|| c.conname.clone());
        let options = match &kind {
            ConstraintDefKind::PrimaryKey { .. } | ConstraintDefKind::Unique { .. } => {
                self.index_options(&c.options, base::AccessMethod::default())?
            }
            _ => Vec::new(),
        };
        Ok(Some(ConstraintDef {
            name,
            kind,
            position: self.at(c.location),
            deferrable: c.deferrable || c.initdeferred,
            deferred: c.initdeferred,
            unvalidated: c.skip_validation,
            options,
            no_inherit: c.is_no_inherit,
            inherited: 0,
            only_inherited: false,
        }))
    }

    /// `WITH (name = value, …)`.
    pub(crate) fn options(&self, nodes: &[pb::Node]) -> Result<Vec<(String, String)>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let value = def_value(def).unwrap_or_else(|| "true".to_owned());
            match def.defname.as_str() {
                "fillfactor" => {
                    let ok = value.parse::<i64>().is_ok_and(|v| (10..=100).contains(&v));
                    if !ok {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "value {value} out of bounds for option \"fillfactor\""
                        )
                        .detail("Valid values are between \"10\" and \"100\"."));
                    }
                }
                "oids" => {
                    if !matches!(value.as_str(), "false" | "off" | "no" | "0") {
                        return Err(err!(
                            FEATURE_NOT_SUPPORTED,
                            "tables declared WITH OIDS are not supported"
                        ));
                    }
                    continue;
                }
                name if name.starts_with("autovacuum_")
                    || name.starts_with("toast")
                    || matches!(
                        name,
                        "parallel_workers"
                            | "user_catalog_table"
                            | "vacuum_truncate"
                            | "vacuum_index_cleanup"
                            | "deduplicate_items"
                            | "empty_default"
                            | "interval"
                            | "partition_name"
                            | "partitions"
                            | "premake"
                            | "retain"
                            | "retain_by"
                    ) => {}
                name => {
                    return Err(err!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\""));
                }
            }
            out.push((def.defname.clone(), value));
        }
        Ok(out)
    }

    /// CREATE INDEX.
    pub(crate) fn create_index(&mut self, stmt: &pb::IndexStmt) -> Result<Utility> {
        let range = stmt.relation.as_ref();
        let table = match range {
            Some(range) => self.find_table(&unplaced(range))?,
            None => return Err(err!(SYNTAX_ERROR, "index without a table")),
        };
        ast::check_tablespace(&stmt.table_space)?;
        let rel = self.table_rel(table.clone(), &table.name)?;
        let method = self.index_method(stmt)?;
        let mut columns = Vec::with_capacity(stmt.index_params.len());
        for node in &stmt.index_params {
            let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
            columns.push(self.index_key(&rel, elem, &columns, &method)?);
        }
        let mut include = Vec::new();
        for node in &stmt.index_including_params {
            let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
            if elem.name.is_empty() {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "expressions are not supported in included columns"
                ));
            }
            if table.column(&elem.name).is_none() {
                return Err(err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", elem.name));
            }
            include.push(elem.name.clone());
        }
        let predicate = match inner(&stmt.where_clause) {
            None => None,
            Some(node) => Some(self.index_predicate(&rel, node)?),
        };
        Ok(Utility::CreateIndex {
            name: (!stmt.idxname.is_empty()).then(|| stmt.idxname.clone()),
            table: self.name_of_range(&stmt.relation)?,
            columns,
            include,
            predicate,
            nulls_equal: stmt.nulls_not_distinct,
            concurrently: stmt.concurrent,
            unique: stmt.unique,
            if_not_exists: stmt.if_not_exists,
            options: self.index_options(&stmt.options, method.code)?,
            method: method.code,
            named_method: method.own,
        })
    }

    /// One key of an index: a column or an expression.
    pub(super) fn index_key(
        &mut self,
        rel: &crate::logical::TableRel,
        elem: &pb::IndexElem,
        before: &[IndexKey],
        method: &crate::index_statement::UsedMethod,
    ) -> Result<IndexKey> {
        let descending = elem.ordering == pb::SortByDir::SortbyDesc as i32;
        let nulls_first = match pb::SortByNulls::try_from(elem.nulls_ordering) {
            Ok(pb::SortByNulls::SortbyNullsFirst) => true,
            Ok(pb::SortByNulls::SortbyNullsLast) => false,
            _ => descending,
        };
        // A column in parentheses is a column, with COLLATE inside of them or behind.
        let bare = inner(&elem.expr).and_then(|node| self.bare_column(rel, node));
        if let Some((name, collation)) = bare {
            let collation = match elem.collation.is_empty() {
                true => collation,
                false => elem.collation.clone(),
            };
            let elem = pb::IndexElem { name, expr: None, collation, ..elem.clone() };
            return self.index_key(rel, &elem, before, method);
        }
        let Some(node) = inner(&elem.expr) else {
            if rel.table.column(&elem.name).is_none() {
                if SYSTEM_COLUMNS.iter().any(|(_, name, _)| *name == elem.name) {
                    return Err(on_system_columns());
                }
                return Err(err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", elem.name));
            }
            let name = elem.name.clone();
            let column = rel.table.column(&name).map(|(_, c)| c);
            let (ty, own) = column.map_or((0, 0), |c| (c.ty, self.cx.catalog.column_collation(c)));
            let collation = self.key_collation(elem, base::Oid(ty))?.unwrap_or(own);
            let class = self.index_class(elem, base::Oid(ty), method)?;
            let class_options = self.class_options(elem, class, base::Oid(ty), method.code)?;
            self.check_dimensions(class, column.map_or(-1, |c| c.typmod), method.code)?;
            return Ok(IndexKey {
                name,
                expression: None,
                collation,
                descending,
                nulls_first,
                class,
                class_options,
            });
        };
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(rel));
        scope.place.set(super::scope::Place::IndexKey);
        let expr = self.holding(|b| b.expr(&scope, node))?;
        let expr = self.resolve_unknown(expr)?;
        if has_system_columns(rel, &expr) {
            return Err(on_system_columns());
        }
        if crate::walk::is_changeable(&expr) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "functions in index expression must be marked IMMUTABLE"
            ));
        }
        if expr.ty() != types::oids::UNKNOWN && ast::is_pseudo(expr.ty()) {
            base::bail!(
                INVALID_TABLE_DEFINITION,
                "column \"{}\" has pseudo-type {}",
                super::select::column_name(node),
                types::io::format_type(expr.ty(), -1)
            );
        }
        let name = match super::select::column_name(node).as_str() {
            "?column?" => "expr".to_owned(),
            name => name.to_owned(),
        };
        // The names of an index's columns differ.
        let taken = |name: &str| before.iter().any(|k| k.name == name);
        let name = if taken(&name) {
            (1..).map(|n| format!("{name}{n}")).find(|n| !taken(n)).unwrap_or(name)
        } else {
            name
        };
        // COLLATE around the expression is the key's.
        let (mut own, mut value) = (node, expr.clone());
        while let NodeEnum::CollateClause(clause) = own
            && let Some(inside) = inner(&clause.arg)
        {
            own = inside;
            value = self.holding(|b| b.expr(&scope, own))?;
        }
        let text = self.stored_form(own, None, |b, node| b.row_expr(rel, node))?;
        let of_value = self.known_collation(&value)?;
        let expression = Some((text, expr.ty(), table_columns(rel, &expr), of_value));
        let collation = match self.key_collation(elem, expr.ty())? {
            Some(own) => own,
            None => self.known_collation(&expr)?,
        };
        let expr_type = self.cx.catalog.type_collation(expr.ty().0);
        if collation == 0 && expr_type != 0 {
            return Err(err!(
                INDETERMINATE_COLLATION,
                "could not determine which collation to use for index expression"
            )
            .hint("Use the COLLATE clause to set the collation explicitly."));
        }
        let class = self.index_class(elem, expr.ty(), method)?;
        let class_options = self.class_options(elem, class, expr.ty(), method.code)?;
        self.check_dimensions(class, self.typmod_of(&expr), method.code)?;
        Ok(IndexKey { name, expression, collation, descending, nulls_first, class, class_options })
    }

    /// COLLATE of an index's key.
    fn key_collation(&self, elem: &pb::IndexElem, ty: base::Oid) -> Result<Option<u32>> {
        if elem.collation.is_empty() {
            return Ok(None);
        }
        let found = self.collation_named(&ast::strings(&elem.collation))?;
        if self.cx.catalog.type_collation(ty.0) == 0 {
            return Err(err!(
                DATATYPE_MISMATCH,
                "collations are not supported by type {}",
                types::io::format_type(ty, -1)
            ));
        }
        Ok(Some(found.oid))
    }

    /// WHERE of a partial index, and the columns in it.
    pub(super) fn index_predicate(
        &mut self,
        rel: &crate::logical::TableRel,
        node: &NodeEnum,
    ) -> Result<(String, Vec<u16>)> {
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(rel));
        let expr = self.holding(|b| b.condition(&scope, node, super::scope::Place::IndexWhere))?;
        if has_system_columns(rel, &expr) {
            return Err(on_system_columns());
        }
        if crate::walk::is_changeable(&expr) {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "functions in index predicate must be marked IMMUTABLE"
            ));
        }
        let text = self.stored_form(node, None, |b, node| b.row_expr(rel, node))?;
        Ok((text, table_columns(rel, &expr)))
    }

    /// DROP.
    pub(crate) fn drop_objects(&mut self, stmt: &pb::DropStmt) -> Result<Utility> {
        let (kind, _) = object_kind(stmt.remove_type)
            .filter(|(k, _)| !matches!(*k, "COLUMN" | "CONSTRAINT" | "DATABASE" | "ROLE"))
            .ok_or_else(|| {
                let object = super::words::object(stmt.remove_type);
                base::Error::unsupported(format!("DROP {object}"))
            })?;
        let names = stmt
            .objects
            .iter()
            .map(|node| match &node.node {
                Some(NodeEnum::List(list)) => self.name_of_list(&list.items),
                Some(NodeEnum::TypeName(name)) => self.name_of_list(&name.names),
                _ => Name {
                    schema: None,
                    name: ast::string(node).to_owned(),
                    position: 0,
                    only: false,
                },
            })
            .collect();
        Ok(Utility::Drop {
            kind,
            names,
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
            concurrently: stmt.concurrent,
        })
    }
}

/// Kinds of objects that statements name: the word, and whether it is a relation.
pub(crate) fn object_kind(kind: i32) -> Option<(&'static str, bool)> {
    use pb::ObjectType as T;
    Some(match T::try_from(kind).ok()? {
        T::ObjectTable => ("TABLE", true),
        T::ObjectIndex => ("INDEX", true),
        T::ObjectForeignTable => ("FOREIGN TABLE", true),
        T::ObjectView => ("VIEW", true),
        T::ObjectMatview => ("MATERIALIZED VIEW", true),
        T::ObjectSequence => ("SEQUENCE", true),
        T::ObjectType => ("TYPE", false),
        T::ObjectDomain => ("DOMAIN", false),
        T::ObjectCollation => ("COLLATION", false),
        T::ObjectSchema => ("SCHEMA", false),
        T::ObjectColumn => ("COLUMN", true),
        T::ObjectTrigger => ("TRIGGER", true),
        T::ObjectPolicy => ("POLICY", true),
        T::ObjectRule => ("RULE", true),
        T::ObjectTabconstraint => ("CONSTRAINT", true),
        T::ObjectDatabase => ("DATABASE", false),
        T::ObjectRole => ("ROLE", false),
        _ => return None,
    })
}

fn key_action(letter: &str) -> ForeignKeyAction {
    match letter {
        "r" => ForeignKeyAction::Restrict,
        "c" => ForeignKeyAction::Cascade,
        "n" => ForeignKeyAction::SetNull,
        "d" => ForeignKeyAction::SetDefault,
        _ => ForeignKeyAction::NoAction,
    }
}

/// The value of an option as text.
pub(crate) fn def_value(def: &pb::DefElem) -> Option<String> {
    Some(match inner(&def.arg)? {
        NodeEnum::String(s) => s.sval.clone(),
        NodeEnum::Integer(i) => i.ival.to_string(),
        NodeEnum::Float(f) => f.fval.clone(),
        NodeEnum::Boolean(b) => b.boolval.to_string(),
        NodeEnum::AConst(c) => const_text(c)?,
        NodeEnum::TypeName(t) => ast::strings(&t.names).last()?.to_string(),
        NodeEnum::List(l) => ast::strings(&l.items).join("."),
        NodeEnum::AStar(_) => "*".to_owned(),
        _ => return None,
    })
}

/// A constant's text.
pub(crate) fn const_text(c: &pb::AConst) -> Option<String> {
    use pb::a_const::Val;
    Some(match &c.val {
        Some(Val::Ival(i)) => i.ival.to_string(),
        Some(Val::Fval(f)) => f.fval.clone(),
        Some(Val::Boolval(b)) => b.boolval.to_string(),
        Some(Val::Sval(s)) => s.sval.clone(),
        Some(Val::Bsval(s)) => s.bsval.clone(),
        None if c.isnull => return None,
        None => "0".to_owned(),
    })
}

/// The expression of a CHECK constraint.
pub(crate) fn check_of(node: &pb::Node) -> Option<&NodeEnum> {
    match &node.node {
        Some(NodeEnum::Constraint(c)) if c.contype == pb::ConstrType::ConstrCheck as i32 => {
            inner(&c.raw_expr)
        }
        _ => None,
    }
}

/// A table's name without its position, for statements whose errors about it have none.
pub(crate) fn unplaced(range: &pb::RangeVar) -> pb::RangeVar {
    pb::RangeVar { location: -1, ..range.clone() }
}

/// Columns that an expression names, in order, without repetition.
fn column_names(node: &NodeEnum, out: &mut Vec<String>) {
    for inner in every_node(node) {
        if let pg_query::NodeRef::ColumnRef(c) = inner
            && let Some(name) = c.fields.last().map(ast::string)
            && !out.iter().any(|n| n == name)
        {
            out.push(name.to_owned());
        }
    }
}

/// Where an expression names a table's whole row.
pub(crate) fn whole_row(node: &NodeEnum, rel: &crate::logical::TableRel) -> Option<i32> {
    every_node(node).into_iter().find_map(|inner| {
        let pg_query::NodeRef::ColumnRef(c) = inner else { return None };
        let all = matches!(c.fields.last()?.node, Some(NodeEnum::AStar(_)));
        let name = ast::string(&c.fields[0]);
        let whole = match c.fields.len() {
            1 => !all && name == rel.alias && rel.table.column(name).is_none(),
            _ => all && name == rel.alias,
        };
        whole.then_some(c.location)
    })
}

/// The expression of a generated column.
pub(crate) fn generation_of(def: &pb::ColumnDef) -> Option<&NodeEnum> {
    def.constraints.iter().find_map(|node| match &node.node {
        Some(NodeEnum::Constraint(c)) if c.contype == pb::ConstrType::ConstrGenerated as i32 => {
            inner(&c.raw_expr)
        }
        _ => None,
    })
}

/// PostgreSQL's words for a default of another type than its column's.
pub(crate) fn default_mismatch(
    error: base::Error,
    name: &str,
    ty: base::Oid,
    from: base::Oid,
) -> base::Error {
    if error.code() != base::sqlstate::DATATYPE_MISMATCH {
        return error;
    }
    err!(
        DATATYPE_MISMATCH,
        "column \"{name}\" is of type {} but default expression is of type {}",
        types::io::format_type(ty, -1),
        types::io::format_type(from, -1)
    )
    .hint("You will need to rewrite or cast the expression.")
}

/// Columns of the table in an expression, by number.
pub(crate) fn table_columns(rel: &crate::logical::TableRel, expr: &crate::Expr) -> Vec<u16> {
    let mut used = Vec::new();
    crate::walk::columns_of(expr, &mut used);
    let number = |col| match rel.column(col) {
        Some(crate::plan::ScanColumn::Attr(n)) => Some(n),
        _ => None,
    };
    let mut numbers: Vec<u16> = used.into_iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn on_system_columns() -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "index creation on system columns is not supported")
}

/// Whether an expression over a table's row uses `ctid` and its like.
fn has_system_columns(rel: &crate::logical::TableRel, expr: &crate::expr::Expr) -> bool {
    crate::walk::any(expr, &|e| match e {
        crate::expr::Expr::Column(col, _) => rel
            .column(*col)
            .is_some_and(|c| !matches!(c, ScanColumn::Attr(_) | ScanColumn::TableOid)),
        _ => false,
    })
}

/// A table that exists only to bind expressions over its columns.
fn transient_table(name: &str, columns: &[ColumnDef]) -> Table {
    Table {
        name: name.to_owned(),
        kind: TableKind::Table,
        columns: columns
            .iter()
            .map(|c| Column {
                not_null: c.not_null,
                generated: c.generated,
                ..Column::new(&c.name, c.ty.0, c.typmod)
            })
            .collect(),
        ..Table::default()
    }
}
