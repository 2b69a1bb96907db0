//! Statements that are not queries.

use base::{Error, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;

use crate::utility::{
    ExplainFormat, ExplainOptions, FetchHow, Reindex, ReindexWhat, TransactionModes, Utility,
};

use super::define::{const_text, def_value};
use super::scope::Place;
use super::{Binder, Scope, inner};

impl Binder<'_> {
    /// BEGIN, COMMIT, SAVEPOINT and kin.
    pub(crate) fn transaction(&mut self, stmt: &pb::TransactionStmt) -> Result<Utility> {
        use pb::TransactionStmtKind as K;
        let name = stmt.savepoint_name.clone();
        Ok(match K::try_from(stmt.kind).unwrap_or(K::Undefined) {
            K::TransStmtBegin | K::TransStmtStart => {
                Utility::Begin(transaction_modes(&stmt.options)?)
            }
            K::TransStmtCommit => Utility::Commit { chain: stmt.chain },
            K::TransStmtRollback => Utility::Rollback { chain: stmt.chain },
            K::TransStmtSavepoint => Utility::Savepoint(name),
            K::TransStmtRelease => Utility::Release(name),
            K::TransStmtRollbackTo => Utility::RollbackTo(name),
            K::TransStmtPrepare => Utility::TwoPhase("PREPARE TRANSACTION", stmt.gid.clone()),
            K::TransStmtCommitPrepared => Utility::TwoPhase("COMMIT PREPARED", stmt.gid.clone()),
            K::TransStmtRollbackPrepared => {
                Utility::TwoPhase("ROLLBACK PREPARED", stmt.gid.clone())
            }
            K::Undefined => return Err(Error::unsupported("this transaction statement")),
        })
    }

    /// SET and RESET.
    pub(crate) fn set_variable(&mut self, stmt: &pb::VariableSetStmt) -> Result<Utility> {
        use pb::VariableSetKind as K;
        let name = stmt.name.clone();
        Ok(match K::try_from(stmt.kind).unwrap_or(K::Undefined) {
            K::VarSetValue => Utility::Set {
                name,
                value: Some(self.set_value(&stmt.name, &stmt.args)?),
                local: stmt.is_local,
            },
            K::VarSetDefault => Utility::Set { name, value: None, local: stmt.is_local },
            K::VarReset => Utility::Reset(Some(name)),
            K::VarResetAll => Utility::Reset(None),
            K::VarSetMulti => match name.as_str() {
                "TRANSACTION" => Utility::SetTransaction {
                    modes: transaction_modes(&stmt.args)?,
                    session: false,
                },
                "SESSION CHARACTERISTICS" => {
                    Utility::SetTransaction { modes: transaction_modes(&stmt.args)?, session: true }
                }
                "TRANSACTION SNAPSHOT" => Utility::ImportSnapshot(self.set_value("", &stmt.args)?),
                other => return Err(Error::unsupported(format!("SET {other}"))),
            },
            _ => return Err(Error::unsupported("SET … FROM CURRENT")),
        })
    }

    /// The value of SET as text; several become a list. The names of settings that are lists of names are quoted.
    pub(crate) fn set_value(&self, name: &str, args: &[pb::Node]) -> Result<String> {
        use base::settings::{is_list, is_list_of_names};
        if args.len() > 1 && !is_list(name) {
            base::bail!(INVALID_PARAMETER_VALUE, "SET {name} takes only one argument");
        }
        let quotes = is_list_of_names(name);
        let mut parts = Vec::with_capacity(args.len());
        for arg in args {
            parts.push(match &arg.node {
                Some(NodeEnum::AConst(c)) => {
                    let text = const_text(c).unwrap_or_default();
                    if quotes { catalog::definition::quote_ident(&text) } else { text }
                }
                Some(NodeEnum::TypeCast(c)) => self.set_interval(c)?,
                _ => return Err(Error::unsupported("this value in SET")),
            });
        }
        Ok(parts.join(", "))
    }

    /// SET TIME ZONE INTERVAL '…', the only cast that a value of SET can be.
    fn set_interval(&self, cast: &pb::TypeCast) -> Result<String> {
        let (Some(NodeEnum::AConst(c)), Some(name)) = (inner(&cast.arg), &cast.type_name) else {
            return Err(Error::unsupported("this value in SET"));
        };
        let (ty, typmod) = self.type_name(name)?;
        let cx = types::FormatContext::default();
        let value = types::io::input(ty, typmod, &const_text(c).unwrap_or_default(), &cx)?;
        Ok(format!("INTERVAL '{}'", &*types::io::to_text(ty, &value, &cx)?))
    }

    /// ALTER SYSTEM.
    pub(crate) fn alter_system(&mut self, stmt: &pb::AlterSystemStmt) -> Result<Utility> {
        use pb::VariableSetKind as K;
        let Some(set) = &stmt.setstmt else {
            return Err(err!(SYNTAX_ERROR, "ALTER SYSTEM without a setting"));
        };
        Ok(match K::try_from(set.kind).unwrap_or(K::Undefined) {
            K::VarSetValue => Utility::AlterSystem {
                name: Some(set.name.clone()),
                value: Some(self.set_value(&set.name, &set.args)?),
            },
            K::VarResetAll => Utility::AlterSystem { name: None, value: None },
            _ => Utility::AlterSystem { name: Some(set.name.clone()), value: None },
        })
    }

    /// VACUUM and ANALYZE.
    pub(crate) fn vacuum(&mut self, stmt: &pb::VacuumStmt) -> Result<Utility> {
        let (mut analyze, mut full, mut verbose) = (!stmt.is_vacuumcmd, false, false);
        let (mut parallel, mut truncate, mut skip_locked) = (None, None, false);
        for node in &stmt.options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let on = def_value(def).is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(true));
            match def.defname.as_str() {
                "truncate" if stmt.is_vacuumcmd => truncate = Some(on),
                "analyze" => analyze = on,
                "full" => full = on,
                "verbose" => verbose = on,
                "parallel" if stmt.is_vacuumcmd => parallel = Some(self.vacuum_helpers(def)?),
                "skip_locked" => skip_locked = on,
                "freeze"
                | "disable_page_skipping"
                | "truncate"
                | "index_cleanup"
                | "process_toast"
                | "process_main"
                | "buffer_usage_limit"
                | "skip_database_stats"
                | "only_database_stats" => {}
                other => {
                    let statement = if stmt.is_vacuumcmd { "VACUUM" } else { "ANALYZE" };
                    return Err(err!(SYNTAX_ERROR, "unrecognized {statement} option \"{other}\"")
                        .at(self.at(def.location)));
                }
            }
        }
        if full && parallel.is_some_and(|n| n > 0) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "VACUUM FULL cannot be performed in parallel"));
        }
        let mut tables = Vec::with_capacity(stmt.rels.len());
        for node in &stmt.rels {
            let Some(NodeEnum::VacuumRelation(rel)) = &node.node else { continue };
            let columns = super::ast::strings(&rel.va_cols);
            if let (Some(range), false) = (&rel.relation, columns.is_empty()) {
                let table = self.find_table(range).map_err(|e| self.near(e))?;
                if let Some(name) = columns.iter().find(|c| table.column(c).is_none()) {
                    return Err(err!(
                        UNDEFINED_COLUMN,
                        "column \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ));
                }
            }
            tables.push(self.name_of_range(&rel.relation)?);
        }
        let vacuum = stmt.is_vacuumcmd;
        Ok(Utility::Vacuum {
            tables,
            vacuum,
            analyze,
            full,
            verbose,
            parallel,
            truncate,
            skip_locked,
        })
    }

    /// The value of VACUUM's option PARALLEL.
    fn vacuum_helpers(&self, def: &pb::DefElem) -> Result<u16> {
        let Some(value) = def_value(def) else {
            return Err(err!(SYNTAX_ERROR, "parallel option requires a value between 0 and 1024")
                .at(self.at(def.location)));
        };
        let not_integer = |_| err!(SYNTAX_ERROR, "parallel requires an integer value");
        let value = value.parse::<i64>().map_err(not_integer)?;
        u16::try_from(value).ok().filter(|n| *n <= 1024).ok_or_else(|| {
            err!(SYNTAX_ERROR, "parallel workers for vacuum must be between 0 and 1024")
                .at(self.at(def.location))
        })
    }

    /// The options of CLUSTER: VERBOSE.
    fn cluster_verbose(&self, options: &[pb::Node]) -> Result<bool> {
        let mut verbose = false;
        for node in options {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            match def.defname.as_str() {
                "verbose" => {
                    let value = def_value(def);
                    verbose = value.is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(true));
                }
                other => {
                    return Err(err!(SYNTAX_ERROR, "unrecognized CLUSTER option \"{other}\"")
                        .at(self.at(def.location)));
                }
            }
        }
        Ok(verbose)
    }

    /// REINDEX.
    pub(crate) fn reindex(&mut self, stmt: &pb::ReindexStmt) -> Result<Utility> {
        use pb::ReindexObjectType as T;
        let (mut concurrently, mut verbose) = (false, false);
        for node in &stmt.params {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let on = def_value(def).is_none_or(|v| base::settings::parse_bool(&v).unwrap_or(true));
            match def.defname.as_str() {
                "concurrently" => concurrently = on,
                "verbose" => verbose = on,
                "tablespace" => {
                    super::ast::check_tablespace(&def_value(def).unwrap_or_default())?;
                }
                other => {
                    return Err(err!(SYNTAX_ERROR, "unrecognized REINDEX option \"{other}\"")
                        .at(self.at(def.location)));
                }
            }
        }
        let what = match T::try_from(stmt.kind).unwrap_or(T::Undefined) {
            T::ReindexObjectIndex => ReindexWhat::Index(self.name_of_range(&stmt.relation)?),
            T::ReindexObjectSchema => ReindexWhat::Schema(stmt.name.clone()),
            T::ReindexObjectDatabase => ReindexWhat::Database(stmt.name.clone()),
            T::ReindexObjectSystem => ReindexWhat::System(stmt.name.clone()),
            T::ReindexObjectTable | T::Undefined => {
                ReindexWhat::Table(self.name_of_range(&stmt.relation)?)
            }
        };
        Ok(Utility::Reindex(Reindex { what, concurrently, verbose }))
    }

    /// TRUNCATE.
    pub(crate) fn truncate(&mut self, stmt: &pb::TruncateStmt) -> Result<Utility> {
        Ok(Utility::Truncate {
            tables: self.range_names(&stmt.relations)?,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
            restart: stmt.restart_seqs,
        })
    }

    fn range_names(&self, nodes: &[pb::Node]) -> Result<Vec<crate::utility::Name>> {
        nodes
            .iter()
            .filter_map(|n| match &n.node {
                Some(NodeEnum::RangeVar(range)) => Some(self.name_of_range(&Some(range.clone()))),
                _ => None,
            })
            .collect()
    }

    /// LOCK TABLE.
    pub(crate) fn lock_table(&mut self, stmt: &pb::LockStmt) -> Result<Utility> {
        let mode = match stmt.mode {
            1 => LockMode::AccessShare,
            2 => LockMode::RowShare,
            3 => LockMode::RowExclusive,
            4 => LockMode::ShareUpdateExclusive,
            5 => LockMode::Share,
            6 => LockMode::ShareRowExclusive,
            7 => LockMode::Exclusive,
            _ => LockMode::AccessExclusive,
        };
        let tables = self.range_names(&stmt.relations)?;
        Ok(Utility::LockTable { tables, mode, nowait: stmt.nowait })
    }

    /// PREPARE.
    pub(crate) fn prepare_statement(&mut self, stmt: &pb::PrepareStmt) -> Result<Utility> {
        let mut params = Vec::with_capacity(stmt.argtypes.len());
        for node in &stmt.argtypes {
            let Some(NodeEnum::TypeName(name)) = &node.node else { continue };
            let (ty, _) = self.type_name(name)?;
            params.push(if ty == types::oids::UNKNOWN { base::Oid(0) } else { ty });
        }
        let Some(text) = text_behind_as(self.text) else {
            return Err(err!(SYNTAX_ERROR, "PREPARE without AS"));
        };
        let text = text.to_owned();
        Ok(Utility::Prepare { name: stmt.name.clone(), params, text })
    }

    /// EXECUTE.
    pub(crate) fn execute(&mut self, stmt: &pb::ExecuteStmt) -> Result<Utility> {
        let scope = Scope::new(None);
        scope.place.set(Place::Execute);
        let args = self.expr_list(&scope, &stmt.params)?;
        Ok(Utility::Execute { name: stmt.name.clone(), args })
    }

    /// FETCH and MOVE.
    pub(crate) fn fetch(&mut self, stmt: &pb::FetchStmt) -> Result<Utility> {
        use pb::FetchDirection as D;
        let rows = stmt.how_many;
        // A negative number turns the direction round.
        let size = || (rows != i64::MAX).then_some(rows.saturating_abs());
        let how = match D::try_from(stmt.direction) {
            Ok(D::FetchBackward) if rows >= 0 => FetchHow::Backward(size()),
            Ok(D::FetchBackward) => FetchHow::Forward(size()),
            Ok(D::FetchAbsolute) => FetchHow::Absolute(rows),
            Ok(D::FetchRelative) => FetchHow::Relative(rows),
            _ if rows >= 0 => FetchHow::Forward(size()),
            _ => FetchHow::Backward(size()),
        };
        Ok(Utility::Fetch { name: stmt.portalname.clone(), how, moving: stmt.ismove })
    }

    /// EXPLAIN's options.
    pub(crate) fn explain_options(&self, nodes: &[pb::Node]) -> Result<ExplainOptions> {
        let mut options = ExplainOptions { costs: true, ..ExplainOptions::default() };
        let (mut timing, mut summary) = (None, None);
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            let value = def_value(def);
            let on = match value.as_deref() {
                None => true,
                Some(v) => base::settings::parse_bool(v).unwrap_or(true),
            };
            match def.defname.as_str() {
                "analyze" => options.analyze = on,
                "verbose" => options.verbose = on,
                "costs" => options.costs = on,
                "buffers" => options.buffers = on,
                "timing" => timing = Some(on),
                "waits" => options.waits = on,
                "summary" => summary = Some(on),
                "wal" => options.wal = on,
                "settings" => options.settings = on,
                "format" => {
                    options.format = match value.as_deref() {
                        Some("text") => ExplainFormat::Text,
                        Some("json") => ExplainFormat::Json,
                        Some("yaml") => ExplainFormat::Yaml,
                        Some("xml") => ExplainFormat::Xml,
                        other => {
                            let other = other.unwrap_or_default();
                            return Err(err!(
                                INVALID_PARAMETER_VALUE,
                                "unrecognized value for EXPLAIN option \"format\": \"{other}\""
                            )
                            .at(self.at(def.location)));
                        }
                    }
                }
                other => {
                    return Err(err!(SYNTAX_ERROR, "unrecognized EXPLAIN option \"{other}\"")
                        .at(self.at(def.location)));
                }
            }
        }
        let of_runs =
            [("WAL", options.wal), ("TIMING", timing == Some(true)), ("WAITS", options.waits)];
        if let Some((name, _)) = of_runs.iter().find(|(_, on)| *on && !options.analyze) {
            return Err(err!(INVALID_PARAMETER_VALUE, "EXPLAIN option {name} requires ANALYZE"));
        }
        options.timing = timing.unwrap_or(options.analyze);
        options.summary = summary.unwrap_or(options.analyze);
        Ok(options)
    }

    /// Statements that are bound without planning anything; None for others.
    pub(crate) fn plain_utility(&mut self, node: &NodeEnum) -> Result<Option<Utility>> {
        if let Some(statement) = self.role_statement(node)? {
            return Ok(Some(Utility::Role(statement)));
        }
        if let Some(statement) = self.database_statement(node)? {
            return Ok(Some(Utility::Database(statement)));
        }
        if let Some(statement) = self.statistics_statement(node)? {
            return Ok(Some(Utility::Define(statement)));
        }
        if let Some(statement) = self.define_statement(node)? {
            return Ok(Some(Utility::Define(statement)));
        }
        if let Some(statement) = self.extension_statement(node)? {
            return Ok(Some(Utility::Extension(statement)));
        }
        if let Some(statement) = self.collation_statement(node)? {
            return Ok(Some(Utility::Collation(statement)));
        }
        if let Some(statement) = self.type_statement(node)? {
            return Ok(Some(Utility::Type(statement)));
        }
        if let Some(utility) = self.event_trigger_statement(node)? {
            return Ok(Some(utility));
        }
        if let Some(utility) = self.foreign_statement(node)? {
            return Ok(Some(utility));
        }
        if let Some(utility) = self.publication_statement(node)? {
            return Ok(Some(utility));
        }
        Ok(Some(match node {
            NodeEnum::TransactionStmt(s) => self.transaction(s)?,
            NodeEnum::DoStmt(s) => self.do_block(s)?,
            NodeEnum::VariableSetStmt(s) => self.set_variable(s)?,
            NodeEnum::VariableShowStmt(s) => {
                let all = s.name.eq_ignore_ascii_case("all");
                Utility::Show((!all).then(|| s.name.clone()))
            }
            NodeEnum::ConstraintsSetStmt(s) => {
                let range = |node: &pb::Node| match &node.node {
                    Some(NodeEnum::RangeVar(range)) => {
                        Some(self.name_of_range(&Some(range.clone())))
                    }
                    _ => None,
                };
                let names = s.constraints.iter().filter_map(range).collect::<Result<_>>()?;
                Utility::SetConstraints { names, deferred: s.deferred }
            }
            NodeEnum::AlterSystemStmt(s) => self.alter_system(s)?,
            NodeEnum::DiscardStmt(s) => {
                Utility::Discard(match pb::DiscardMode::try_from(s.target) {
                    Ok(pb::DiscardMode::DiscardPlans) => "PLANS",
                    Ok(pb::DiscardMode::DiscardSequences) => "SEQUENCES",
                    Ok(pb::DiscardMode::DiscardTemp) => "TEMP",
                    _ => "ALL",
                })
            }
            NodeEnum::PrepareStmt(s) => self.prepare_statement(s)?,
            NodeEnum::ExecuteStmt(s) => self.execute(s)?,
            NodeEnum::DeallocateStmt(s) => {
                Utility::Deallocate((!s.isall && !s.name.is_empty()).then(|| s.name.clone()))
            }
            NodeEnum::CreateStmt(s) => self.create_table(s)?,
            NodeEnum::CreateSeqStmt(s) => self.create_sequence(s)?,
            NodeEnum::AlterSeqStmt(s) => self.alter_sequence(s)?,
            NodeEnum::IndexStmt(s) => self.create_index(s)?,
            NodeEnum::CreateFunctionStmt(s) => self.create_routine(s)?,
            NodeEnum::DefineStmt(s) if s.kind == pb::ObjectType::ObjectAggregate as i32 => {
                self.create_aggregate(s)?
            }
            NodeEnum::AlterFunctionStmt(s) => self.alter_routine(s)?,
            NodeEnum::CreateTrigStmt(s) => self.create_trigger(s)?,
            NodeEnum::RuleStmt(s) => self.create_rule(s)?,
            NodeEnum::CreatePolicyStmt(s) => self.create_policy(s)?,
            NodeEnum::AlterPolicyStmt(s) => self.alter_policy(s)?,
            NodeEnum::DropStmt(s) => {
                let policy = || {
                    self.drop_trigger(s)
                        .or_else(|| self.drop_policy(s))
                        .or_else(|| self.drop_rule(s))
                };
                match self.drop_routines(s)?.or_else(policy) {
                    Some(utility) => utility,
                    None => match self.drop_absent(s)? {
                        Some(utility) => utility,
                        None => self.drop_objects(s)?,
                    },
                }
            }
            NodeEnum::AlterTableStmt(s) => self.alter_table(s)?,
            NodeEnum::RenameStmt(s) => self.rename(s)?,
            NodeEnum::AlterObjectSchemaStmt(s) => self.set_schema(s)?,
            NodeEnum::AlterOwnerStmt(s) => self.alter_owner(s)?,
            NodeEnum::GrantStmt(s) if s.objtype == pb::ObjectType::ObjectLargeobject as i32 => {
                Utility::LargeObject(self.grant_large_objects(s)?)
            }
            NodeEnum::CommentStmt(s) => self.comment(s)?,
            NodeEnum::CreateSchemaStmt(s) => {
                let owner = s.authrole.as_ref().map(super::role::role_ref);
                let role = s.authrole.as_ref().map(|r| self.role_name(r)).unwrap_or_default();
                let name = if s.schemaname.is_empty() { role } else { s.schemaname.clone() };
                let elements = super::schema::elements(&name, &s.schema_elts)?;
                Utility::CreateSchema { name, owner, if_not_exists: s.if_not_exists, elements }
            }
            NodeEnum::TruncateStmt(s) => self.truncate(s)?,
            NodeEnum::VacuumStmt(s) => self.vacuum(s)?,
            NodeEnum::ReindexStmt(s) => self.reindex(s)?,
            NodeEnum::ClusterStmt(s) => Utility::Cluster {
                table: match &s.relation {
                    None => None,
                    Some(_) => Some(self.name_of_range(&s.relation)?),
                },
                index: (!s.indexname.is_empty()).then(|| s.indexname.clone()),
                verbose: self.cluster_verbose(&s.params)?,
            },
            NodeEnum::LockStmt(s) => self.lock_table(s)?,
            NodeEnum::CheckPointStmt(_) => Utility::Checkpoint,
            NodeEnum::FetchStmt(s) => self.fetch(s)?,
            NodeEnum::ClosePortalStmt(s) => {
                Utility::ClosePortal((!s.portalname.is_empty()).then(|| s.portalname.clone()))
            }
            NodeEnum::ListenStmt(s) => Utility::Listen(s.conditionname.clone()),
            NodeEnum::UnlistenStmt(s) => {
                Utility::Unlisten((!s.conditionname.is_empty()).then(|| s.conditionname.clone()))
            }
            NodeEnum::NotifyStmt(s) => {
                Utility::Notify { channel: s.conditionname.clone(), payload: s.payload.clone() }
            }
            _ => return Ok(None),
        }))
    }

    /// DECLARE's options.
    pub(crate) fn cursor_options(&self, stmt: &pb::DeclareCursorStmt) -> Result<(bool, bool)> {
        const SCROLL: i32 = 0x2;
        const NO_SCROLL: i32 = 0x4;
        const HOLD: i32 = 0x20;
        let hold = stmt.options & HOLD != 0;
        let clause = match inner(&stmt.query) {
            Some(NodeEnum::SelectStmt(query)) => query.locking_clause.first(),
            _ => None,
        };
        let strength = clause.and_then(|c| match &c.node {
            Some(NodeEnum::LockingClause(clause)) => Some(clause.strength),
            _ => None,
        });
        let locks = strength.map(|strength| super::select::lock_strength(strength).1);
        // Going back would lock, or find changed, other rows.
        let refused = |kind: &str, locks: &str, kinds: &str| {
            err!(FEATURE_NOT_SUPPORTED, "DECLARE {kind} ... {locks} is not supported")
                .detail(format!("{kinds} cursors must be READ ONLY."))
        };
        match locks {
            Some(locks) if hold => Err(refused("CURSOR WITH HOLD", locks, "Holdable")),
            Some(locks) if stmt.options & SCROLL != 0 => {
                Err(refused("SCROLL CURSOR", locks, "Scrollable"))
            }
            locks => Ok((hold, locks.is_none() && stmt.options & NO_SCROLL == 0)),
        }
    }
}

/// The statement's own text in `PREPARE name [(types)] AS text`: behind the first AS outside of
/// parentheses, quoted names and comments.
fn text_behind_as(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0usize);
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'"' => at += 1 + rest[1..].iter().position(|b| *b == b'"')?,
            b'-' if rest.starts_with(b"--") => at += rest.iter().position(|b| *b == b'\n')?,
            b'/' if rest.starts_with(b"/*") => {
                at += 3 + rest[2..].windows(2).position(|w| w == b"*/")?;
            }
            b if is_word(b) => {
                let end = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
                if depth == 0 && rest[..end].eq_ignore_ascii_case(b"as") {
                    let text = text.get(at + end..)?.trim();
                    return Some(text.trim_end_matches(';').trim_end());
                }
                at += end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

fn transaction_modes(options: &[pb::Node]) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    for node in options {
        let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
        let value = def_value(def).unwrap_or_default();
        let on = value != "0" && value != "false";
        match def.defname.as_str() {
            "transaction_isolation" => {
                modes.isolation = Some(match value.to_ascii_lowercase().as_str() {
                    "read uncommitted" => "read uncommitted",
                    "read committed" => "read committed",
                    "repeatable read" => "repeatable read",
                    "serializable" => "serializable",
                    other => {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "invalid value for parameter \"transaction_isolation\": \"{other}\""
                        ));
                    }
                });
            }
            "transaction_read_only" => modes.read_only = Some(on),
            "transaction_deferrable" => modes.deferrable = Some(on),
            other => return Err(Error::unsupported(format!("transaction mode {other}"))),
        }
    }
    Ok(modes)
}

#[cfg(test)]
mod tests {
    use super::text_behind_as;

    #[test]
    fn prepare_keeps_the_text_of_its_statement() {
        let text = text_behind_as;
        assert_eq!(text("prepare p as select 1 as x;"), Some("select 1 as x"));
        assert_eq!(text("PREPARE \"as\" (int, text) /* as */ AS\nselect '('"), Some("select '('"));
        assert_eq!(text("prepare basis -- as\n as(select 1)"), Some("(select 1)"));
        assert_eq!(text("prepare p"), None);
    }
}
