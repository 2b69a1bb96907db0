//! RAISE.

use base::sqlstate::CONDITIONS;
use base::{Result, err};
use types::oids;

use super::Parser;
use super::declare::unknown_condition;
use crate::program::*;
use crate::scan::{Kind, string_value};

impl Parser<'_, '_> {
    pub(super) fn raise(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let mut raise = Raise {
            level: "EXCEPTION",
            condition: None,
            format: None,
            params: Vec::new(),
            options: Vec::new(),
            again: false,
        };
        if self.skip_sign(";") {
            raise.again = true;
            return Ok(StmtKind::Raise(Box::new(raise)));
        }
        let levels = [
            ("exception", "EXCEPTION"),
            ("warning", "WARNING"),
            ("notice", "NOTICE"),
            ("info", "INFO"),
            ("log", "LOG"),
            ("debug", "DEBUG"),
        ];
        if let Some((_, level)) = levels.iter().find(|(word, _)| self.is(word)) {
            raise.level = level;
            self.at += 1;
        }
        if self.token().kind == Kind::String {
            self.format(&mut raise)?;
        } else if self.token().is_name() && !self.is("using") {
            self.raised_condition(&mut raise)?;
        } else if !self.is("using") {
            return Err(self.syntax_error());
        }
        if self.skip("using") {
            self.raise_options(&mut raise)?;
        }
        self.expect_sign(";")?;
        Ok(StmtKind::Raise(Box::new(raise)))
    }

    fn format(&mut self, raise: &mut Raise) -> Result<()> {
        let token = self.token();
        let text = string_value(&self.text[token.start..token.end]);
        self.at += 1;
        while self.skip_sign(",") {
            raise.params.push(self.expression(&[",", ";", "using"])?);
        }
        let parts = split_format(&text);
        let (wanted, given) = (parts.len() - 1, raise.params.len());
        if wanted != given {
            let word = if wanted < given { "many" } else { "few" };
            return Err(err!(SYNTAX_ERROR, "too {word} parameters specified for RAISE"));
        }
        raise.format = Some(parts);
        Ok(())
    }

    fn raised_condition(&mut self, raise: &mut Raise) -> Result<()> {
        let name = self.identifier()?;
        if name == "sqlstate" {
            let state = self.state_literal()?;
            raise.condition = Some((state.as_str().to_owned(), state));
            return Ok(());
        }
        let Some((_, code)) = CONDITIONS.iter().find(|(known, _)| *known == name) else {
            return Err(unknown_condition(&name));
        };
        raise.condition = Some((name, *code));
        Ok(())
    }

    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let option = match self.token().text.as_str() {
                "errcode" => RaiseOption::Code,
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "column" => RaiseOption::Column,
                "constraint" => RaiseOption::Constraint,
                "datatype" => RaiseOption::DataType,
                "table" => RaiseOption::Table,
                "schema" => RaiseOption::Schema,
                _ => return Err(self.error_near("unrecognized RAISE statement option")),
            };
            self.at += 1;
            if !(self.skip_sign("=") || self.skip_sign(":=")) {
                return Err(self.error_near("syntax error, expected \"=\""));
            }
            let text = Some((oids::TEXT, -1));
            let value = self.typed_expression(&[",", ";"], CodeKind::Expression, text)?;
            raise.options.push((option, value));
            if !self.skip_sign(",") {
                return Ok(());
            }
        }
    }
}

/// The texts between a format's `%`; `%%` is one of its signs.
fn split_format(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '%' && chars.peek() != Some(&'%') {
            parts.push(String::new());
            continue;
        }
        if c == '%' {
            chars.next();
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::split_format;

    #[test]
    fn formats_are_split_at_their_parameters() {
        assert_eq!(split_format("a % b"), ["a ", " b"]);
        assert_eq!(split_format("100%% of %"), ["100% of ", ""]);
        assert_eq!(split_format(""), [""]);
    }
}
