//! COPY.

use base::{Error, Result, err};
use catalog::acl::privilege;
use catalog::{Table, TableKind};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;
use types::encodings::{self, Encoding};

use crate::plan::{Modify, ModifyAction, Node, OutputColumn, Plan};
use crate::utility::{CopyFormat, CopyOptions};

use super::define::{def_value, unplaced};
use super::{Binder, ast, inner};

/// What COPY is bound to; the query of COPY TO is still to be planned.
pub(crate) enum BoundCopy {
    /// COPY FROM STDIN.
    From {
        modify: Box<Modify>,
        columns: Vec<u16>,
        defaults: Vec<Option<crate::expr::Expr>>,
        filter: Option<crate::expr::Expr>,
        /// The columns of a row that the filter is over.
        row: Vec<crate::logical::Col>,
        options: CopyOptions,
    },
    /// COPY TO of a query.
    To { query: crate::logical::Query, options: CopyOptions },
    /// COPY TO STDOUT of what a statement that changes data returns.
    Change { change: Box<crate::logical::Change>, output: Vec<OutputColumn>, options: CopyOptions },
}

/// COPY FROM's options as those of a foreign table give them.
///
/// # Errors
/// COPY's.
pub fn options_of(
    list: &[(String, String)],
    cx: &crate::PrepareContext<'_>,
) -> Result<CopyOptions> {
    let def = |(name, value): &(String, String)| pb::Node {
        node: Some(NodeEnum::DefElem(Box::new(pb::DefElem {
            defname: name.clone(),
            arg: Some(Box::new(pb::Node {
                node: Some(NodeEnum::String(pb::String { sval: value.clone() })),
            })),
            location: -1,
            ..pb::DefElem::default()
        }))),
    };
    let options = list.iter().map(def).collect();
    let stmt = pb::CopyStmt { is_from: true, options, ..pb::CopyStmt::default() };
    Binder::new(cx, "", &[]).copy_options(&stmt).map_err(Error::without_position)
}

impl Binder<'_> {
    /// COPY.
    pub(crate) fn copy(&mut self, stmt: &pb::CopyStmt) -> Result<BoundCopy> {
        if stmt.is_program {
            return Err(Error::unsupported("COPY with PROGRAM"));
        }
        let mut options = self.copy_options(stmt)?;
        options.file = (!stmt.filename.is_empty()).then(|| stmt.filename.clone());
        if let Some(query) = inner(&stmt.query) {
            let names = |output: &[OutputColumn]| -> Vec<String> {
                output.iter().map(|c| c.name.clone()).collect()
            };
            let unknown = |name: &str| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist");
            crate::rewrite::refuse_in_copy(self, query)?;
            let (change, output) = match query {
                NodeEnum::SelectStmt(select) => {
                    if select.into_clause.is_some() {
                        return Err(err!(
                            FEATURE_NOT_SUPPORTED,
                            "COPY (SELECT INTO) is not supported"
                        ));
                    }
                    let query = self.select(select, None, true)?;
                    force(stmt, &mut options, &names(&query.output), unknown)?;
                    return Ok(BoundCopy::To { query, options });
                }
                NodeEnum::InsertStmt(stmt) => self.insert(stmt)?,
                NodeEnum::UpdateStmt(stmt) => self.update(stmt)?,
                NodeEnum::DeleteStmt(stmt) => self.delete(stmt)?,
                _ => return Err(Error::unsupported("COPY of this statement")),
            };
            if change.returning.is_none() {
                return Err(err!(FEATURE_NOT_SUPPORTED, "COPY query must have a RETURNING clause"));
            }
            force(stmt, &mut options, &names(&output), unknown)?;
            return Ok(BoundCopy::Change { change: Box::new(change), output, options });
        }
        let Some(range) = &stmt.relation else {
            return Err(err!(SYNTAX_ERROR, "COPY without a table"));
        };
        let table = self.find_table(&unplaced(range))?;
        if table.kind == TableKind::View {
            return Err(self.copy_of_view(&table, stmt.is_from));
        }
        let columns = self.copy_columns(&table, &stmt.attlist)?;
        let names: Vec<String> =
            columns.iter().map(|n| table.columns[usize::from(*n) - 1].name.clone()).collect();
        force(stmt, &mut options, &names, |name| {
            err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            )
        })?;
        if !stmt.is_from && table.kind == TableKind::Foreign {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "cannot copy from foreign table \"{}\"",
                table.name
            )
            .hint("Try the COPY (SELECT ...) TO variant."));
        }
        if !stmt.is_from {
            let query = self.copy_table(&table, range, &columns)?;
            return Ok(BoundCopy::To { query, options });
        }
        if table.kind == TableKind::System {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "cannot copy to system catalog \"{}\"",
                table.name
            ));
        }
        self.lock(table.oid, LockMode::RowExclusive);
        for (_, key) in table.foreign_keys() {
            self.lock(key.table, LockMode::RowShare);
        }
        let mut defaults = Vec::with_capacity(table.columns.len());
        for number in 1..=table.columns.len() as u16 {
            let listed = columns.contains(&number);
            let column = &table.columns[usize::from(number) - 1];
            let has = column.default.is_some() && !column.generated || column.identity.is_some();
            defaults.push(if listed || !has {
                None
            } else {
                Some(self.column_default(&table, number)?)
            });
        }
        let target = self.table_rel(table.clone(), &table.name)?;
        let place = |binder: &Self, col| {
            let at: u16 = u16::checked_sub(col, target.base)?;
            Some(crate::expr::Expr::Column(at, binder.vars[usize::from(col)].ty))
        };
        self.need_change(target.base, privilege::INSERT, &columns);
        self.refuse_guarded_copy(&target)?;
        let checks = self.checks(&target)?;
        let checks =
            checks.map(&mut |e| Ok(crate::walk::substitute(e, &|col| place(self, col))))?;
        let filter = match inner(&stmt.where_clause) {
            None => None,
            Some(node) => Some(self.copy_filter(&target, node)?),
        };
        let nothing = Plan { node: Node::Nothing, estimate: Default::default() };
        let modify = Modify {
            indexes: self.cx.catalog.indexes_of(&table),
            table,
            action: ModifyAction::Insert { input: nothing, conflict: None },
            returning: None,
            checks,
            children: Vec::new(),
            tableoid: 0,
            places: false,
            role: 0,
        };
        let row = (0..defaults.len() as u16).map(|at| target.base + at).collect();
        Ok(BoundCopy::From { modify: Box::new(modify), columns, defaults, filter, row, options })
    }

    /// COPY FROM's WHERE.
    fn copy_filter(
        &mut self,
        target: &crate::logical::TableRel,
        node: &NodeEnum,
    ) -> Result<crate::expr::Expr> {
        let mut scope = super::Scope::new(None);
        scope.items.push(self.item_of(target));
        let filter = self.holding(|b| b.condition(&scope, node, super::scope::Place::CopyWhere))?;
        for number in super::define::table_columns(target, &filter) {
            let column = &target.table.columns[usize::from(number) - 1];
            if column.generated {
                return Err(err!(
                    INVALID_COLUMN_REFERENCE,
                    "generated columns are not supported in COPY FROM WHERE conditions"
                )
                .detail(format!("Column \"{}\" is a generated column.", column.name)));
            }
        }
        Ok(filter)
    }

    fn copy_of_view(&self, table: &Table, from: bool) -> Error {
        if from {
            return err!(WRONG_OBJECT_TYPE, "cannot copy to view \"{}\"", table.name)
                .hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.");
        }
        err!(WRONG_OBJECT_TYPE, "cannot copy from view \"{}\"", table.name)
            .hint("Try the COPY (SELECT ...) TO variant.")
    }

    fn copy_columns(&self, table: &Table, names: &[pb::Node]) -> Result<Vec<u16>> {
        if names.is_empty() {
            let own = table.live_columns().filter(|(_, c)| !c.generated);
            return Ok(own.map(|(n, _)| n).collect());
        }
        let mut out = Vec::with_capacity(names.len());
        for name in ast::strings(names) {
            let Some((number, _)) = table.column(name) else {
                return Err(err!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.name
                ));
            };
            if table.columns[usize::from(number) - 1].generated {
                return Err(err!(
                    INVALID_COLUMN_REFERENCE,
                    "column \"{name}\" is a generated column"
                )
                .detail("Generated columns cannot be used in COPY."));
            }
            if out.contains(&number) {
                return Err(err!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once"));
            }
            out.push(number);
        }
        Ok(out)
    }

    /// `COPY table TO` is a query of its columns.
    fn copy_table(
        &mut self,
        table: &std::sync::Arc<Table>,
        range: &pb::RangeVar,
        columns: &[u16],
    ) -> Result<crate::logical::Query> {
        self.lock_unless_system(table, LockMode::AccessShare);
        // The table's own rows, not those of its children.
        let range = &pb::RangeVar { inh: false, ..range.clone() };
        let (mut rel, _) = self.table_item(table.clone(), range)?;
        let base = match &rel {
            crate::logical::Rel::Table(t) => t.base,
            crate::logical::Rel::System { base, .. } => *base,
            _ => 0,
        };
        for number in columns {
            let column = self.column(base + number - 1);
            self.note_read(&column);
        }
        if table.row_security {
            self.check_rights()?;
        }
        if let crate::logical::Rel::Table(target) = &rel {
            rel = self.guard_rows(&target.clone())?;
        }
        let targets: Vec<super::select::TargetEntry> = columns
            .iter()
            .map(|n| super::select::TargetEntry {
                name: table.columns[usize::from(*n) - 1].name.clone(),
                expr: self.column(base + n - 1),
                typmod: -1,
            })
            .collect();
        let output = self.describe_targets(&targets)?;
        let (rel, cols) = self.project(rel, &targets)?;
        Ok(crate::logical::Query { rel, cols, output })
    }

    fn copy_options(&self, stmt: &pb::CopyStmt) -> Result<CopyOptions> {
        let mut format = CopyFormat::Text;
        for def in defs(&stmt.options) {
            if def.defname == "format" {
                format = match def_value(def).unwrap_or_default().as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    other => {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "COPY format \"{other}\" not recognized"
                        )
                        .at(self.at(def.location)));
                    }
                };
            }
        }
        let csv = format == CopyFormat::Csv;
        let mut options = CopyOptions {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            header: false,
            header_match: false,
            force_quote: Vec::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
            quote: b'"',
            escape: b'"',
            freeze: false,
            encoding: None,
            file: None,
        };
        let mut escape = None;
        let mut seen: Vec<&str> = Vec::new();
        for def in defs(&stmt.options) {
            if seen.contains(&def.defname.as_str()) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(&def.defname);
            let value = def_value(def);
            let text = value.clone().unwrap_or_default();
            let flag = || match value.as_deref() {
                None => Ok(true),
                Some(v) => base::settings::parse_bool(v).ok_or_else(|| {
                    err!(SYNTAX_ERROR, "{} requires a Boolean value{}", def.defname, or_match(def))
                }),
            };
            match def.defname.as_str() {
                "format" => {}
                "freeze" => options.freeze = flag()?,
                "delimiter" => options.delimiter = one_byte(&text, "COPY delimiter")?,
                "null" => options.null = text,
                "header" if text.eq_ignore_ascii_case("match") => {
                    if !stmt.is_from {
                        return Err(err!(
                            FEATURE_NOT_SUPPORTED,
                            "cannot use \"match\" with HEADER in COPY TO"
                        ));
                    }
                    options.header = true;
                    options.header_match = true;
                }
                "header" => options.header = flag()?,
                "quote" => options.quote = one_byte(&text, "COPY quote")?,
                "escape" => escape = Some(one_byte(&text, "COPY escape")?),
                "encoding" => {
                    options.encoding = Some(self.copy_encoding(&text, stmt.is_from, def)?);
                }
                "force_quote" | "force_not_null" | "force_null" => {}
                other => {
                    return Err(err!(SYNTAX_ERROR, "option \"{other}\" not recognized")
                        .at(self.at(def.location)));
                }
            }
        }
        options.escape = escape.unwrap_or(options.quote);
        check_together(&options, &seen, stmt.is_from)?;
        Ok(options)
    }

    /// The encoding with this name.
    fn copy_encoding(&self, name: &str, from: bool, def: &pb::DefElem) -> Result<Encoding> {
        let encoding = Encoding::find(name).ok_or_else(|| {
            err!(
                INVALID_PARAMETER_VALUE,
                "argument to option \"encoding\" must be a valid encoding name"
            )
            .at(self.at(def.location))
        })?;
        let (source, destination) =
            if from { (encoding, Encoding::UTF8) } else { (Encoding::UTF8, encoding) };
        encodings::require(source, destination)?;
        Ok(encoding)
    }
}

fn defs(nodes: &[pb::Node]) -> impl Iterator<Item = &pb::DefElem> {
    nodes.iter().filter_map(|n| match &n.node {
        Some(NodeEnum::DefElem(def)) => Some(&**def),
        _ => None,
    })
}

/// What HEADER takes besides a Boolean (it isn't supported, but named).
fn or_match(def: &pb::DefElem) -> &'static str {
    if def.defname == "header" { " or \"match\"" } else { "" }
}

/// What options can't be had together, or in this format. `seen`: the options that were given.
fn check_together(options: &CopyOptions, seen: &[&str], from: bool) -> Result<()> {
    let given = |name: &str| seen.contains(&name);
    let csv = options.format == CopyFormat::Csv;
    if options.format == CopyFormat::Binary {
        for name in ["delimiter", "null"] {
            if given(name) {
                let name = name.to_uppercase();
                return Err(err!(SYNTAX_ERROR, "cannot specify {name} in BINARY mode"));
            }
        }
    }
    if options.null.contains(['\n', '\r']) {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "COPY null representation cannot use newline or carriage return"
        ));
    }
    let delimiter = options.delimiter;
    if !csv
        && (delimiter.is_ascii_lowercase()
            || delimiter.is_ascii_digit()
            || b"\\.".contains(&delimiter))
    {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "COPY delimiter cannot be \"{}\"",
            delimiter as char
        ));
    }
    if options.format == CopyFormat::Binary && options.header {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot specify HEADER in BINARY mode"));
    }
    for name in ["quote", "escape"] {
        if given(name) && !csv {
            return Err(err!(FEATURE_NOT_SUPPORTED, "COPY {name} available only in CSV mode"));
        }
    }
    if csv && delimiter == options.quote {
        return Err(err!(INVALID_PARAMETER_VALUE, "COPY delimiter and quote must be different"));
    }
    for (name, only_from) in
        [("force_quote", false), ("force_not_null", true), ("force_null", true)]
    {
        if !given(name) {
            continue;
        }
        let words = name.replace('_', " ");
        if !csv {
            return Err(err!(FEATURE_NOT_SUPPORTED, "COPY {words} available only in CSV mode"));
        }
        if from != only_from {
            let way = if only_from { "COPY FROM" } else { "COPY TO" };
            return Err(err!(FEATURE_NOT_SUPPORTED, "COPY {words} only available using {way}"));
        }
    }
    if options.null.as_bytes().contains(&delimiter) {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "COPY delimiter must not appear in the NULL specification"
        ));
    }
    if csv && options.null.as_bytes().contains(&options.quote) {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "CSV quote character must not appear in the NULL specification"
        ));
    }
    Ok(())
}

/// The columns of FORCE_QUOTE, FORCE_NOT_NULL and FORCE_NULL among those that are copied.
fn force(
    stmt: &pb::CopyStmt,
    options: &mut CopyOptions,
    names: &[String],
    missing: impl Fn(&str) -> Error,
) -> Result<()> {
    for def in defs(&stmt.options) {
        let into = match def.defname.as_str() {
            "force_quote" => &mut options.force_quote,
            "force_not_null" => &mut options.force_not_null,
            "force_null" => &mut options.force_null,
            _ => continue,
        };
        let Some(NodeEnum::List(list)) = inner(&def.arg) else {
            into.extend(0..names.len() as u16);
            continue;
        };
        for name in ast::strings(&list.items) {
            let at = names.iter().position(|n| n == name).ok_or_else(|| missing(name))?;
            into.push(at as u16);
        }
    }
    Ok(())
}

fn one_byte(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [b'\n' | b'\r'] => {
            Err(err!(INVALID_PARAMETER_VALUE, "{what} cannot be newline or carriage return"))
        }
        [one] => Ok(*one),
        _ => Err(err!(FEATURE_NOT_SUPPORTED, "{what} must be a single one-byte character")),
    }
}
