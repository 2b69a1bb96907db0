//! CREATE and ALTER SEQUENCE; serial and identity columns.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::{INT2, INT4, INT8};

use crate::expr::Expr;
use crate::utility::{OwnedBy, SequenceOptions, Utility};

use super::{Binder, ast, inner};

impl Binder<'_> {
    /// CREATE SEQUENCE.
    pub(crate) fn create_sequence(&mut self, stmt: &pb::CreateSeqStmt) -> Result<Utility> {
        let none = pb::OnCommitAction::OncommitNoop as i32;
        let persistence = self.persistence(stmt.sequence.as_ref(), none);
        let persistence = persistence.map_err(base::Error::without_position)?;
        Ok(Utility::CreateSequence {
            name: self.name_of_range(&stmt.sequence)?,
            options: self.sequence_options(&stmt.options)?,
            if_not_exists: stmt.if_not_exists,
            persistence,
        })
    }

    /// ALTER SEQUENCE with options.
    pub(crate) fn alter_sequence(&mut self, stmt: &pb::AlterSeqStmt) -> Result<Utility> {
        Ok(Utility::AlterSequence {
            name: self.name_of_range(&stmt.sequence)?,
            options: self.sequence_options(&stmt.options)?,
            if_exists: stmt.missing_ok,
        })
    }

    /// The options of CREATE and ALTER SEQUENCE and of identity columns.
    pub(crate) fn sequence_options(&self, nodes: &[pb::Node]) -> Result<SequenceOptions> {
        let mut out = SequenceOptions::default();
        let mut seen: Vec<&str> = Vec::new();
        for node in nodes {
            let Some(NodeEnum::DefElem(def)) = &node.node else { continue };
            if seen.contains(&def.defname.as_str()) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options")
                    .at(self.at(def.location)));
            }
            seen.push(&def.defname);
            self.sequence_option(def, &mut out)?;
        }
        Ok(out)
    }

    fn sequence_option(&self, def: &pb::DefElem, out: &mut SequenceOptions) -> Result<()> {
        let value = || number(def);
        match def.defname.as_str() {
            "as" => {
                let Some(NodeEnum::TypeName(name)) = inner(&def.arg) else { return Ok(()) };
                out.ty = Some(self.type_name(name)?.0);
            }
            "increment" => out.increment = value()?,
            "start" => out.start = value()?,
            "restart" => out.restart = Some(value()?),
            "maxvalue" => out.max = Some(value()?),
            "minvalue" => out.min = Some(value()?),
            "cache" => out.cache = value()?,
            "cycle" => {
                out.cycle = Some(!matches!(
                    inner(&def.arg),
                    Some(NodeEnum::Boolean(pb::Boolean { boolval: false }))
                ));
            }
            "owned_by" => {
                let Some(NodeEnum::List(list)) = inner(&def.arg) else { return Ok(()) };
                let names = ast::strings(&list.items);
                out.owned_by = Some(match names.as_slice() {
                    ["none"] => OwnedBy::None,
                    [_] | [] => {
                        return Err(err!(SYNTAX_ERROR, "invalid OWNED BY option")
                            .hint("Specify OWNED BY table.column or OWNED BY NONE."));
                    }
                    [table @ .., column] => {
                        let (schema, name) = ast::qualified(table);
                        OwnedBy::Column {
                            table: crate::utility::Name {
                                schema: schema.map(str::to_owned),
                                name: name.to_owned(),
                                position: 0,
                                only: false,
                            },
                            column: (*column).to_owned(),
                        }
                    }
                });
            }
            "sequence_name" => {
                let Some(NodeEnum::List(list)) = inner(&def.arg) else { return Ok(()) };
                out.name = Some(self.name_of_list(&list.items));
            }
            "logged" | "unlogged" => {}
            other => return Err(base::Error::unsupported(format!("sequence option {other}"))),
        }
        Ok(())
    }

    /// The integer type of `serial` and kin.
    pub(crate) fn serial_type(&self, name: &pb::TypeName) -> Result<Option<Oid>> {
        let names = ast::strings(&name.names);
        let ty = match names.as_slice() {
            ["smallserial" | "serial2"] => INT2,
            ["serial" | "serial4"] => INT4,
            ["bigserial" | "serial8"] => INT8,
            _ => return Ok(None),
        };
        if !name.array_bounds.is_empty() {
            return Err(err!(FEATURE_NOT_SUPPORTED, "array of serial is not implemented")
                .at(self.at(name.location)));
        }
        Ok(Some(ty))
    }

    /// A sequence in FROM: one row with its value.
    pub(crate) fn sequence_item(
        &mut self,
        sequence: &catalog::Sequence,
        range: &pb::RangeVar,
    ) -> Result<super::from::FromItem> {
        let Some(data) = catalog::system::find_function("pg_sequence_data") else {
            return Err(base::Error::internal("the table of sequences' values is missing"));
        };
        let (rel, mut item) = self.table_item(data, range)?;
        self.need_sequence(sequence);
        self.note_use(sequence.oid, 0);
        let key = item.columns.remove(0).expr;
        item.oid = sequence.oid;
        self.rename_columns(&mut item, range.alias.as_ref())?;
        let oid = Expr::Const(types::Datum::Oid(sequence.oid), types::oids::OID);
        let condition = self.equals(key, oid, 0)?;
        let rel = super::select::filter(rel, vec![condition]);
        Ok(super::from::FromItem { rel, items: vec![item] })
    }

    /// The next value of an identity column's sequence: no right on the sequence is asked for.
    pub(crate) fn next_value(&mut self, sequence: u32, ty: Oid) -> Result<Expr> {
        let sequence = Expr::Const(types::Datum::Oid(sequence), types::oids::REGCLASS);
        let call = self.call(&types::func::internal::NEXT_VALUE, vec![sequence], INT8, 0);
        self.assign(call, ty, -1, "", 0)
    }
}

/// A number, negative ones and such that don't fit an int4 included; None for NO … and without one.
fn number(def: &pb::DefElem) -> Result<Option<i64>> {
    match super::define::def_value(def) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type bigint")
        }),
    }
}
