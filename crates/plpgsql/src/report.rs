//! RAISE and GET DIAGNOSTICS.

use base::SqlState;
use base::sqlstate::{self, CONDITIONS};
use base::{Error, Result, err};
use exec::ExecContext;
use types::Datum;
use types::oids::{INT8, TEXT};

use crate::frame::Frame;
use crate::parse::sqlstate as parse_state;
use crate::program::*;

impl Frame<'_> {
    /// RAISE.
    ///
    /// # Errors
    /// The one that is raised.
    pub fn raise(&mut self, raise: &Raise, cx: &mut ExecContext<'_>) -> Result<()> {
        if raise.again {
            return match self.errors.last() {
                Some(error) => {
                    // The line of its origin is there already.
                    self.located = true;
                    Err(error.clone())
                }
                None => Err(err!(
                    STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER,
                    "RAISE without parameters cannot be used outside an exception handler"
                )),
            };
        }
        let mut code = raise.condition.as_ref().map(|(_, code)| *code);
        let condition = raise.condition.as_ref().map(|(name, _)| name.clone());
        let mut message = match &raise.format {
            Some(parts) => Some(self.formatted(parts, &raise.params, cx)?),
            None => None,
        };
        let mut found: Vec<(RaiseOption, String)> = Vec::new();
        let mut named = condition;
        for (option, value) in &raise.options {
            let Some(text) = self.text(*value, cx)? else {
                return Err(err!(NULL_VALUE_NOT_ALLOWED, "RAISE statement option cannot be null"));
            };
            let twice = match option {
                RaiseOption::Code => code.is_some(),
                RaiseOption::Message => message.is_some(),
                other => found.iter().any(|(known, _)| known == other),
            };
            if twice {
                return Err(err!(
                    SYNTAX_ERROR,
                    "RAISE option already specified: {}",
                    option_name(*option)
                ));
            }
            match option {
                RaiseOption::Code => {
                    code = Some(state_named(&text)?);
                    named = Some(text);
                }
                RaiseOption::Message => message = Some(text),
                other => found.push((*other, text)),
            }
        }
        let fails = raise.level == "EXCEPTION";
        let code = code.unwrap_or(match raise.level {
            "EXCEPTION" => sqlstate::RAISE_EXCEPTION,
            "WARNING" => sqlstate::WARNING,
            _ => sqlstate::SUCCESSFUL_COMPLETION,
        });
        let message = message.or(named).unwrap_or_else(|| code.as_str().to_owned());
        let mut error = Error::new(code, message).routine("exec_stmt_raise");
        for (option, text) in found {
            let fields = error.fields_mut();
            match option {
                RaiseOption::Detail => fields.detail = Some(text),
                RaiseOption::Hint => fields.hint = Some(text),
                RaiseOption::Column => fields.object.column = Some(text),
                RaiseOption::Constraint => fields.object.constraint = Some(text),
                RaiseOption::DataType => fields.object.data_type = Some(text),
                RaiseOption::Table => fields.object.table = Some(text),
                RaiseOption::Schema => fields.object.schema = Some(text),
                RaiseOption::Code | RaiseOption::Message => {}
            }
        }
        if fails {
            return Err(error);
        }
        let level = if raise.level == "DEBUG" { "DEBUG1" } else { raise.level };
        let context = self.context(cx);
        cx.hooks.notice(level, error.context(context));
        cx.hooks.send_notices(cx.tx.durability_needed())
    }

    fn formatted(
        &mut self,
        parts: &[String],
        params: &[CodeId],
        cx: &mut ExecContext<'_>,
    ) -> Result<String> {
        let mut out = String::new();
        for (n, part) in parts.iter().enumerate() {
            out.push_str(part);
            if let Some(param) = params.get(n) {
                let text = self.text(*param, cx)?;
                out.push_str(text.as_deref().unwrap_or("<NULL>"));
            }
        }
        Ok(out)
    }

    /// GET [STACKED] DIAGNOSTICS.
    ///
    /// # Errors
    /// `0Z002` outside of handlers; those of assigning.
    pub fn diagnostics(
        &mut self,
        stacked: bool,
        items: &[(Diagnostic, Assignable)],
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let error = self.errors.last().cloned();
        if stacked && error.is_none() {
            return Err(err!(
                STACKED_DIAGNOSTICS_ACCESSED_WITHOUT_ACTIVE_HANDLER,
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler"
            ));
        }
        for (item, target) in items {
            let (value, ty) = match item {
                Diagnostic::RowCount => (Datum::Int8(self.row_count as i64), INT8),
                Diagnostic::Context => (Datum::from(self.context(cx)), TEXT),
                other => {
                    let text = error.as_ref().and_then(|e| stacked_item(e, *other));
                    (Datum::from(text.unwrap_or_default()), TEXT)
                }
            };
            self.assign(target, value, ty, cx)?;
        }
        Ok(())
    }
}

fn stacked_item(error: &Error, item: Diagnostic) -> Option<String> {
    let fields = error.fields();
    match item {
        Diagnostic::ExceptionContext => fields.context.clone(),
        Diagnostic::Detail => fields.detail.clone(),
        Diagnostic::Hint => fields.hint.clone(),
        Diagnostic::State => Some(fields.code.as_str().to_owned()),
        Diagnostic::Column => fields.object.column.clone(),
        Diagnostic::Constraint => fields.object.constraint.clone(),
        Diagnostic::DataType => fields.object.data_type.clone(),
        Diagnostic::Message => Some(fields.message.clone()),
        Diagnostic::Table => fields.object.table.clone(),
        Diagnostic::Schema => fields.object.schema.clone(),
        Diagnostic::RowCount | Diagnostic::Context => None,
    }
}

fn option_name(option: RaiseOption) -> &'static str {
    match option {
        RaiseOption::Code => "ERRCODE",
        RaiseOption::Message => "MESSAGE",
        RaiseOption::Detail => "DETAIL",
        RaiseOption::Hint => "HINT",
        RaiseOption::Column => "COLUMN",
        RaiseOption::Constraint => "CONSTRAINT",
        RaiseOption::DataType => "DATATYPE",
        RaiseOption::Table => "TABLE",
        RaiseOption::Schema => "SCHEMA",
    }
}

/// A code, or a condition's name.
fn state_named(text: &str) -> Result<SqlState> {
    if let Some(state) = parse_state(text) {
        return Ok(state);
    }
    let found = CONDITIONS.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, code)| *code)
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{text}\""))
}
