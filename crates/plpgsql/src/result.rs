//! A function's result: RETURN, RETURN NEXT, RETURN QUERY.

use std::sync::Arc;

use base::{Result, err};
use exec::ExecContext;
use types::datum::Shape;
use types::oids::RECORD;
use types::{Datum, Text};

use crate::frame::Frame;
use crate::program::*;
use crate::run::{Flow, Started};

impl Frame<'_> {
    /// RETURN.
    ///
    /// # Errors
    /// The expression's.
    pub fn return_value(
        &mut self,
        value: Option<CodeId>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Flow> {
        if let Some(code) = value {
            (self.result, self.result_type) = self.typed_value(code, cx)?;
            let row = matches!(self.program.returns, Returns::Row(_) | Returns::Trigger);
            if row && !matches!(self.result, Datum::Null | Datum::Record(_)) {
                base::bail!(
                    DATATYPE_MISMATCH,
                    "cannot return non-composite value from function returning composite type"
                );
            }
        } else if !self.program.set {
            self.result = Datum::Null;
        }
        Ok(Flow::Return)
    }

    /// The row of the output parameters, or the one value.
    pub fn outputs(&mut self, cx: &mut ExecContext<'_>) -> Result<Datum> {
        let program = self.program;
        let _ = cx;
        match (&program.outputs[..], &program.returns) {
            ([one], Returns::Scalar(_)) => Ok(self.slots[usize::from(*one)].clone()),
            (all, Returns::Row(shape)) => {
                let values: Vec<Datum> =
                    all.iter().map(|s| self.slots[usize::from(*s)].clone()).collect();
                let shape = match shape {
                    Some(shape) => shape.clone(),
                    None => {
                        let columns = all.iter().map(|s| {
                            let info = &program.slots[usize::from(*s)];
                            (Text::from(info.name.as_str()), info.ty)
                        });
                        Arc::new(Shape { ty: RECORD, columns: columns.collect() })
                    }
                };
                Ok(Datum::record(shape, values))
            }
            ([one], _) => Ok(self.slots[usize::from(*one)].clone()),
            _ => Ok(Datum::Null),
        }
    }

    /// RETURN NEXT.
    ///
    /// # Errors
    /// The expression's; `42804`.
    pub fn return_next(&mut self, value: Option<CodeId>, cx: &mut ExecContext<'_>) -> Result<()> {
        let row = match value {
            None => self.outputs(cx)?,
            Some(code) => {
                let (value, ty) = self.typed_value(code, cx)?;
                match self.program.returns.clone() {
                    Returns::Scalar(to) => self.convert(value, ty, (to, -1), cx)?,
                    Returns::Row(shape) => match value {
                        Datum::Null => {
                            let shape = shape.or_else(|| self.wanted.clone());
                            match shape {
                                Some(shape) => {
                                    let nulls = vec![Datum::Null; shape.columns.len()];
                                    Datum::record(shape, nulls)
                                }
                                None => Datum::Null,
                            }
                        }
                        value @ Datum::Record(_) => self.as_returned(
                            value,
                            "wrong record type supplied in RETURN NEXT",
                            cx,
                        )?,
                        _ => base::bail!(
                            DATATYPE_MISMATCH,
                            "cannot return non-composite value from function returning composite type"
                        ),
                    },
                    _ => value,
                }
            }
        };
        self.rows.push(row);
        Ok(())
    }

    /// A row as the function returns it.
    ///
    /// # Errors
    /// `42804` when it has other columns.
    pub fn as_returned(
        &mut self,
        value: Datum,
        message: &str,
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let Datum::Record(row) = &value else { return Ok(value) };
        let wanted = match &self.program.returns {
            Returns::Row(Some(shape)) => Some(shape.clone()),
            _ => self.wanted.clone(),
        };
        let Some(wanted) = wanted else { return Ok(value) };
        if Arc::ptr_eq(&wanted, &row.shape) {
            return Ok(value);
        }
        let (given, expected) = (row.shape.columns.len(), wanted.columns.len());
        if given != expected {
            return Err(err!(DATATYPE_MISMATCH, "{message}").detail(format!(
                "Number of returned columns ({given}) does not match expected column count ({expected})."
            )));
        }
        let mut fields = Vec::with_capacity(expected);
        let strict = matches!(self.program.returns, Returns::Row(None));
        for (n, ((value, (_, from)), (name, to))) in
            row.fields.iter().zip(&row.shape.columns).zip(&wanted.columns).enumerate()
        {
            if from != to && (strict || *from != types::oids::UNKNOWN) && !same_family(*from, *to) {
                return Err(err!(DATATYPE_MISMATCH, "{message}").detail(format!(
                    "Returned type {} does not match expected type {} in column {}.",
                    types::io::format_type(*from, -1),
                    types::io::format_type(*to, -1),
                    position_of(name, n)
                )));
            }
            fields.push(self.convert(value.clone(), *from, (*to, -1), cx)?);
        }
        Ok(Datum::record(wanted, fields))
    }

    /// RETURN QUERY.
    ///
    /// # Errors
    /// The query's; `42804`.
    pub fn return_query(&mut self, source: &Source, cx: &mut ExecContext<'_>) -> Result<()> {
        let Started { prepared, shape, mut execution, snapshot, pin, text, .. } =
            self.start_returned(source, cx)?;
        let types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        let mut rows = exec::nested::RowList::of(&types);
        let fetched = {
            let mut inner = ExecContext { snapshot, ..cx.inner() };
            execution.fetch(&mut inner, 0, &mut rows)
        };
        drop(execution);
        cx.tx.unpin_snapshot(pin);
        if prepared.writes {
            cx.tx.next_command();
        }
        fetched.map_err(|e| e.without_position().context(format!("SQL statement \"{text}\"")))?;
        let returns = self.program.returns.clone();
        let wanted = match &returns {
            Returns::Row(Some(shape)) => Some(shape.clone()),
            Returns::Scalar(ty) => {
                Some(Arc::new(Shape { ty: RECORD, columns: vec![(Text::from("x"), *ty)] }))
            }
            _ => self.wanted.clone(),
        };
        let message = "structure of query does not match function result type";
        if let Some(wanted) = &wanted {
            check_columns(&shape.columns, &wanted.columns, message)
                .map_err(|e| e.context(format!("SQL statement \"{text}\"")))?;
        }
        let count = rows.rows.len();
        let scalar = matches!(returns, Returns::Scalar(_));
        let shape = match wanted {
            Some(wanted) => wanted,
            None => shape,
        };
        self.rows.reserve(count);
        for mut row in rows.rows {
            self.rows.push(match scalar {
                true => row.pop().unwrap_or_default(),
                false => Datum::record(shape.clone(), row),
            });
        }
        self.row_count = count as u64;
        self.set_found(count > 0);
        Ok(())
    }

    fn start_returned(&mut self, source: &Source, cx: &mut ExecContext<'_>) -> Result<Started> {
        self.start(source, cx).map_err(|e| {
            match e.code() == base::sqlstate::INVALID_CURSOR_DEFINITION {
                true => err!(SYNTAX_ERROR, "query does not return tuples"),
                false => e,
            }
        })
    }
}

fn same_family(a: base::Oid, b: base::Oid) -> bool {
    types::user::base_type(a, -1).0 == types::user::base_type(b, -1).0
        || (types::user::shape(a).is_some() && b == RECORD)
}

fn position_of(name: &str, n: usize) -> String {
    match name {
        "" => (n + 1).to_string(),
        _ => (n + 1).to_string(),
    }
}

/// `42804` unless columns are those that are returned.
fn check_columns(
    given: &[(Text, base::Oid)],
    wanted: &[(Text, base::Oid)],
    message: &str,
) -> Result<()> {
    if given.len() != wanted.len() {
        return Err(err!(DATATYPE_MISMATCH, "{message}").detail(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            given.len(),
            wanted.len()
        )));
    }
    for (n, ((_, from), (_, to))) in given.iter().zip(wanted).enumerate() {
        if from != to && !same_family(*from, *to) {
            return Err(err!(DATATYPE_MISMATCH, "{message}").detail(format!(
                "Returned type {} does not match expected type {} in column {}.",
                types::io::format_type(*from, -1),
                types::io::format_type(*to, -1),
                n + 1
            )));
        }
    }
    Ok(())
}
