//! Tables with children: an Append over the table's own rows and those of each table that inherits from
//! it takes the place of the table. Its columns are the table's, so nothing above it changes; conditions
//! sink through it to each table, which is read in its own best way.

use std::sync::Arc;

use base::{Result, err};
use catalog::Table;

use super::Planner;
use crate::logical::{Col, Input, Rel, SYSTEM_COLUMNS, TableRel, Var};
use crate::plan::ScanColumn;

impl Planner<'_> {
    /// Makes a query's rows ready for planning: WITH queries that are used once in place, and tables
    /// with their children.
    pub fn prepare_rows(&mut self, rel: &mut Rel) -> Result<()> {
        self.inline_ctes(rel)?;
        self.expand_children(rel)
    }

    fn expand_children(&mut self, rel: &mut Rel) -> Result<()> {
        sched::check_stack()?;
        if let Rel::Table(table) | Rel::Sample { table, .. } = rel
            && table.children.is_some()
            && !table.table.is_partitioned()
        {
            let table = table.clone();
            *rel = self.append_of(&table, rel)?;
            return Ok(());
        }
        let mut failure = None;
        rel.for_inputs_mut(&mut |input| {
            if let Err(error) = self.expand_children(input) {
                failure = Some(error);
            }
        });
        failure.map_or(Ok(()), Err)
    }

    /// The rows of a table and its children, read as `rel` reads the table's.
    fn append_of(&mut self, table: &TableRel, rel: &Rel) -> Result<Rel> {
        let children = table.children.clone().unwrap_or_default();
        let own: Vec<ScanColumn> = table
            .table
            .live_columns()
            .map(|(n, _)| ScanColumn::Attr(n))
            .chain(SYSTEM_COLUMNS.iter().map(|c| c.0))
            .collect();
        let mut inputs = Vec::with_capacity(children.len() + 1);
        // The name is that of all of them; each has a number behind it.
        let named = |n: usize| format!("{}_{n}", table.alias);
        inputs.push(self.input_of(&table.table, &own, named(1), rel)?);
        for (n, child) in children.iter().enumerate() {
            let columns: Vec<ScanColumn> = own.iter().map(|c| child.column(*c)).collect();
            inputs.push(self.input_of(&child.table, &columns, named(n + 2), rel)?);
        }
        Ok(Rel::Append { inputs, cols: own.iter().map(|c| table.col(*c)).collect() })
    }

    fn input_of(
        &mut self,
        table: &Arc<Table>,
        columns: &[ScanColumn],
        alias: String,
        rel: &Rel,
    ) -> Result<Input> {
        let base = self.new_vars(table)?;
        let role = match rel {
            Rel::Sample { table, .. } | Rel::Table(table) => table.role,
            _ => 0,
        };
        let own = TableRel { table: table.clone(), base, alias, children: None, role };
        let cols = columns.iter().map(|c| own.col(*c)).collect();
        let rel = match rel {
            Rel::Sample { method, percent, seed, .. } => Rel::Sample {
                table: own,
                method: *method,
                percent: percent.clone(),
                seed: seed.clone(),
            },
            _ => Rel::Table(own),
        };
        Ok(Input { rel, cols })
    }

    /// Numbers for a table's columns and system columns.
    fn new_vars(&mut self, table: &Table) -> Result<Col> {
        let base = self.vars.len();
        let count = table.columns.len() + SYSTEM_COLUMNS.len();
        if base + count > usize::from(Col::MAX) {
            return Err(err!(STATEMENT_TOO_COMPLEX, "statement uses too many columns"));
        }
        let var = |name: &str, ty, typmod, origin| Var {
            name: name.to_owned(),
            ty,
            typmod,
            origin,
            position: 0,
            read: false,
            row: Vec::new(),
            collation: 0,
        };
        for (i, c) in table.columns.iter().enumerate() {
            let origin = Some((table.oid, i as u16 + 1));
            self.vars.push(var(&c.name, base::Oid(c.ty), c.typmod, origin));
        }
        self.vars.extend(SYSTEM_COLUMNS.iter().map(|(_, name, ty)| var(name, *ty, -1, None)));
        Ok(base as Col)
    }
}
