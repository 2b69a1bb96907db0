//! CREATE STATISTICS and ALTER STATISTICS … SET STATISTICS. The other statements about them are those of
//! [`super::define_objects`].

use base::{Oid, Result, err};
use catalog::object::ids::PG_CATALOG;
use catalog::snapshot::Relation;
use catalog::{KeyExpression, Table, TableKind};
use pg_query::{NodeEnum, protobuf as pb};

use crate::define_statement::{DefineStatement, DefineTarget, StatisticsDef};

use super::define::{table_columns, unplaced};
use super::scope::Place;
use super::{Binder, ast, inner};

/// Columns and expressions that one object may be about.
const COLUMNS_MAX: usize = 8;
/// The largest statistics target.
const TARGET_MAX: i32 = 10_000;

impl Binder<'_> {
    /// One of these statements; None for others.
    pub(crate) fn statistics_statement(
        &mut self,
        node: &NodeEnum,
    ) -> Result<Option<DefineStatement>> {
        Ok(Some(match node {
            NodeEnum::CreateStatsStmt(s) => {
                DefineStatement::CreateStatistics(Box::new(self.statistics_def(s)?))
            }
            NodeEnum::AlterStatsStmt(s) => {
                let target = match inner(&s.stxstattarget) {
                    Some(NodeEnum::Integer(n)) => n.ival,
                    _ => -1,
                };
                DefineStatement::AlterStatistics {
                    target: DefineTarget::Statistics(self.name_of_list(&s.defnames)),
                    rows: target_of(target)?.map_or(-1, i32::from),
                    if_exists: s.missing_ok,
                }
            }
            _ => return Ok(None),
        }))
    }

    fn statistics_def(&mut self, stmt: &pb::CreateStatsStmt) -> Result<StatisticsDef> {
        let [relation] = stmt.relations.as_slice() else {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "only a single relation is allowed in CREATE STATISTICS"
            ));
        };
        let Some(NodeEnum::RangeVar(range)) = &relation.node else {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "CREATE STATISTICS only supports relation names in the FROM clause"
            ));
        };
        let table = self.statistics_table(range)?;
        let mut def = StatisticsDef {
            name: (!stmt.defnames.is_empty()).then(|| self.name_of_list(&stmt.defnames)),
            table: table.oid,
            if_not_exists: stmt.if_not_exists,
            ..StatisticsDef::default()
        };
        if stmt.exprs.len() > COLUMNS_MAX {
            return Err(err!(
                TOO_MANY_COLUMNS,
                "cannot have more than {COLUMNS_MAX} columns in statistics"
            ));
        }
        for node in &stmt.exprs {
            let Some(NodeEnum::StatsElem(elem)) = &node.node else { continue };
            let single = stmt.exprs.len() == 1;
            match inner(&elem.expr) {
                None => self.statistics_column(&table, &elem.name, &mut def)?,
                Some(node) => self.statistics_expression(&table, node, single, &mut def)?,
            }
        }
        let given: Vec<&str> = ast::strings(&stmt.stat_types);
        let alone = def.columns.is_empty() && def.expressions.len() == 1;
        if alone && !given.is_empty() {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "when building statistics on a single expression, statistics kinds may not be specified"
            ));
        }
        def.kinds = kinds(&given)?;
        if alone {
            def.kinds.clear();
        } else if def.columns.len() + def.expressions.len() < 2 {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "extended statistics require at least 2 columns"
            ));
        }
        def.columns.sort_unstable();
        if def.columns.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(err!(DUPLICATE_COLUMN, "duplicate column name in statistics definition"));
        }
        let again = |(n, e): (usize, &KeyExpression)| {
            def.expressions[..n].iter().any(|before| before.sql == e.sql)
        };
        if def.expressions.iter().enumerate().any(again) {
            return Err(err!(DUPLICATE_COLUMN, "duplicate expression in statistics definition"));
        }
        if !def.expressions.is_empty() {
            def.kinds.push('e');
        }
        Ok(def)
    }

    /// The table that the statistics are to be about.
    fn statistics_table(&self, range: &pb::RangeVar) -> Result<std::sync::Arc<Table>> {
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let refused = |what: &str| {
            err!(WRONG_OBJECT_TYPE, "cannot define statistics for relation \"{}\"", range.relname)
                .detail(format!("This operation is not supported for {what}."))
        };
        match self.cx.catalog.relation(self.cx.search_path, schema, &range.relname) {
            Some(Relation::Index(_)) => return Err(refused("indexes")),
            Some(Relation::Sequence(_)) => return Err(refused("sequences")),
            Some(Relation::Table(t)) if t.kind == TableKind::View => return Err(refused("views")),
            _ => {}
        }
        let table = self.find_table(&unplaced(range))?;
        if table.schema == PG_CATALOG {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied: \"{}\" is a system catalog",
                table.name
            ));
        }
        Ok(table)
    }

    fn statistics_column(&self, table: &Table, name: &str, def: &mut StatisticsDef) -> Result<()> {
        let Some((n, column)) = table.column(name) else {
            if crate::logical::SYSTEM_COLUMNS.iter().any(|c| c.1 == name && c.1 != "root") {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "statistics creation on system columns is not supported"
                ));
            }
            return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"));
        };
        if !is_ordered(Oid(column.ty)) {
            let ty = types::io::format_type(Oid(column.ty), -1);
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "column \"{name}\" cannot be used in statistics because its type {ty} has no \
                 default btree operator class"
            ));
        }
        def.columns.push(n);
        def.names.push(name.to_owned());
        Ok(())
    }

    fn statistics_expression(
        &mut self,
        table: &std::sync::Arc<Table>,
        node: &NodeEnum,
        single: bool,
        def: &mut StatisticsDef,
    ) -> Result<()> {
        let rel = self.table_rel(table.clone(), &table.name)?;
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(&rel));
        scope.place.set(Place::IndexKey);
        let expr = self.holding(|b| b.expr(&scope, node))?;
        if ast::is_pseudo(expr.ty()) {
            return Err(err!(
                INVALID_TABLE_DEFINITION,
                "expression has pseudo-type {}",
                types::io::format_type(expr.ty(), -1)
            ));
        }
        if let crate::Expr::Column(col, _) = &expr
            && let Some(crate::plan::ScanColumn::Attr(n)) = rel.column(*col)
        {
            let name = table.columns[usize::from(n) - 1].name.clone();
            return self.statistics_column(table, &name, def);
        }
        let ty = expr.ty();
        if !single && !is_ordered(ty) {
            let ty = types::io::format_type(ty, -1);
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "expression cannot be used in multivariate statistics because its type {ty} has \
                 no default btree operator class"
            ));
        }
        def.expressions.push(KeyExpression {
            sql: self.stored_form(node, None, |b, node| b.row_expr(&rel, node))?,
            name: "expr".to_owned(),
            ty: ty.0,
            columns: table_columns(&rel, &expr),
            collation: 0,
        });
        def.names.push("expr".to_owned());
        Ok(())
    }
}

/// A statistics target; None: the default.
pub(super) fn target_of(target: i32) -> Result<Option<u16>> {
    if target < -1 {
        return Err(err!(INVALID_PARAMETER_VALUE, "statistics target {target} is too low"));
    }
    Ok(u16::try_from(target.min(TARGET_MAX)).ok())
}

/// Letters of the kinds that are named; all when none is.
fn kinds(given: &[&str]) -> Result<String> {
    const ALL: [(&str, char); 3] = [("ndistinct", 'd'), ("dependencies", 'f'), ("mcv", 'm')];
    if let Some(unknown) = given.iter().find(|g| ALL.iter().all(|(word, _)| word != *g)) {
        return Err(err!(SYNTAX_ERROR, "unrecognized statistics kind \"{unknown}\""));
    }
    let wanted = |word: &str| given.is_empty() || given.contains(&word);
    Ok(ALL.iter().filter(|(word, _)| wanted(word)).map(|(_, letter)| *letter).collect())
}

fn is_ordered(ty: Oid) -> bool {
    const BTREE: u32 = 403;
    types::opclass::default_class(BTREE, types::user::base_type(ty, -1).0).is_some()
}
