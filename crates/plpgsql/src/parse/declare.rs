//! Blocks and their declarations.

use std::sync::Arc;

use base::SqlState;
use base::sqlstate::CONDITIONS;
use base::{Result, err};
use types::oids;

use super::Parser;
use crate::program::*;
use crate::scan::{Kind, string_value};

impl Parser<'_, '_> {
    /// `[DECLARE …] BEGIN … [EXCEPTION …] END`.
    pub(super) fn block(&mut self, label: Option<String>) -> Result<Block> {
        self.deeper(|p| p.block_inside(label))
    }

    fn block_inside(&mut self, label: Option<String>) -> Result<Block> {
        let outer = self.scope;
        let id = self.open_label(label.as_deref().unwrap_or_default(), LabelKind::Block);
        let mut declares = Vec::new();
        while self.skip("declare") {
            while !self.is("begin") && !self.is("declare") {
                self.declaration(&mut declares)?;
            }
        }
        self.expect("begin")?;
        let body = self.statements(&["end", "exception"])?;
        let handlers = match self.skip("exception") {
            true => Some(self.handlers()?),
            false => None,
        };
        self.expect("end")?;
        self.scope = outer;
        self.end_label(label.as_deref())?;
        Ok(Block { id, declares, body, handlers })
    }

    fn is_declared(&self, name: &str) -> bool {
        let mut at = self.scope;
        while at > 0 {
            let entry = &self.names[at - 1];
            match entry.what {
                NameKind::Label(..) => return false,
                NameKind::Variable(_) if entry.name == name => return true,
                NameKind::Variable(_) => at = entry.before,
            }
        }
        false
    }

    fn declaration(&mut self, declares: &mut Vec<Slot>) -> Result<()> {
        if self.token().is_sign("<<") {
            return Err(self.error("block label must be placed before DECLARE, not after"));
        }
        let (position, line) = (self.here(), self.token().line);
        let name = self.identifier()?;
        if self.is_declared(&name) {
            self.at -= 1;
            return Err(self.error_near("duplicate declaration"));
        }
        if self.skip("alias") {
            self.expect("for")?;
            let Some((slot, width, fields)) = self.variable_here() else {
                let token = self.token();
                let mark = if token.kind == crate::scan::Kind::Param { "$" } else { "" };
                let name = format!("{mark}{}", token.text);
                return Err(
                    err!(UNDEFINED_OBJECT, "variable \"{name}\" does not exist").at(self.here())
                );
            };
            if !fields.is_empty() {
                return Err(self.syntax_error());
            }
            self.at += width;
            self.name(&name, NameKind::Variable(slot));
            return self.expect_sign(";");
        }
        let cursor = self.is("cursor")
            || self.is("scroll") && self.ahead(1).is("cursor")
            || self.is("no") && self.ahead(1).is("scroll");
        if cursor {
            let slot = self.cursor_declaration(&name)?;
            declares.push(slot);
            return Ok(());
        }
        let constant = self.skip("constant");
        let (ty, typmod) = self.data_type(&["collate", "not", "default", "=", ":=", ";"])?;
        let collation = match self.skip("collate") {
            true => self.collation_name(ty)?,
            false => 0,
        };
        let not_null = match self.skip("not") {
            true => {
                self.expect("null")?;
                true
            }
            false => false,
        };
        let mut default = None;
        if !self.skip_sign(";") {
            if !(self.skip_sign(":=") || self.skip_sign("=") || self.skip("default")) {
                return Err(self.syntax_error());
            }
            let scalar = ty != oids::RECORD && types::user::shape(ty).is_none();
            let target = scalar.then_some((ty, typmod));
            default = Some(self.typed_expression(&[";"], CodeKind::Default, target)?);
            self.expect_sign(";")?;
        }
        if not_null && default.is_none() {
            return Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            )
            .at(position));
        }
        if types::io::format_type(ty, -1) == "trigger" || ty == oids::VOID {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "variable \"{name}\" has pseudo-type {}",
                types::io::format_type(ty, -1)
            )
            .at(position));
        }
        self.check_shadow(&name, position)?;
        let slot = self.variable(&name, ty, typmod, collation)?;
        let info = &mut self.slots[usize::from(slot)];
        info.constant = constant;
        info.not_null = not_null;
        info.default = default;
        info.line = line;
        declares.push(slot);
        Ok(())
    }

    fn collation_name(&mut self, ty: base::Oid) -> Result<u32> {
        let position = self.here();
        let mut names = vec![self.identifier()?];
        while self.skip_sign(".") {
            names.push(self.identifier()?);
        }
        let parts: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = self.in_catalog(|cx| sql::embedded::collation(&parts, ty, cx));
        found.map_err(|e| e.without_position().at(position))
    }

    /// `name [[NO] SCROLL] CURSOR [(…)] FOR query`.
    fn cursor_declaration(&mut self, name: &str) -> Result<Slot> {
        let line = self.token().line;
        let scroll = if self.skip("no") {
            self.expect("scroll")?;
            Some(false)
        } else {
            self.skip("scroll").then_some(true)
        };
        self.expect("cursor")?;
        let outer = self.scope;
        self.open_label("", LabelKind::Other);
        let mut params = Vec::new();
        if self.skip_sign("(") {
            loop {
                let name = self.identifier()?;
                if self.is_declared(&name) {
                    self.at -= 1;
                    return Err(self.error_near("duplicate declaration"));
                }
                self.at -= 1;
                let position = self.here();
                self.at += 1;
                let (ty, typmod) = self.data_type(&[",", ")"])?;
                self.check_shadow(&name, position)?;
                params.push(self.variable(&name, ty, typmod, 0)?);
                if self.skip_sign(")") {
                    break;
                }
                self.expect_sign(",")?;
            }
        }
        if !(self.skip("for") || self.skip("is")) {
            return Err(self.syntax_error());
        }
        let (from, to) = self.until(&[";"], "SQL statement")?;
        let query = self.add_code(from, to, CodeKind::Cursor, None)?;
        self.expect_sign(";")?;
        self.scope = outer;
        let slot = self.variable(name, oids::REFCURSOR, -1, 0)?;
        let info = &mut self.slots[usize::from(slot)];
        info.cursor = Some(Arc::new(CursorInfo { query, params, scroll }));
        info.line = line;
        Ok(slot)
    }

    /// `WHEN condition [OR …] THEN statements …`.
    fn handlers(&mut self) -> Result<(Slot, Slot, Vec<Handler>)> {
        let outer = self.scope;
        let state = self.variable("sqlstate", oids::TEXT, -1, 0)?;
        let message = self.variable("sqlerrm", oids::TEXT, -1, 0)?;
        self.slots[usize::from(state)].constant = true;
        self.slots[usize::from(message)].constant = true;
        let mut handlers = Vec::new();
        if !self.is("when") {
            return Err(self.syntax_error());
        }
        while self.skip("when") {
            let mut catches = Vec::new();
            loop {
                self.catch(&mut catches)?;
                if !self.skip("or") {
                    break;
                }
            }
            self.expect("then")?;
            let body = self.statements(&["when", "end"])?;
            handlers.push(Handler { catches, body });
        }
        self.scope = outer;
        Ok((state, message, handlers))
    }

    fn catch(&mut self, catches: &mut Vec<Catch>) -> Result<()> {
        let name = self.identifier()?;
        if name == "sqlstate" {
            catches.push(Catch::State(self.state_literal()?));
            return Ok(());
        }
        if name == "others" {
            catches.push(Catch::Others);
            return Ok(());
        }
        let before = catches.len();
        let named = CONDITIONS.iter().filter(|(known, _)| *known == name);
        catches.extend(named.map(|(_, code)| Catch::State(*code)));
        if catches.len() == before {
            return Err(unknown_condition(&name));
        }
        Ok(())
    }

    /// `'22012'`.
    pub(super) fn state_literal(&mut self) -> Result<SqlState> {
        let token = self.token();
        if token.kind != Kind::String {
            return Err(self.syntax_error());
        }
        let text = string_value(&self.text[token.start..token.end]);
        let state = sqlstate(&text);
        let Some(state) = state else { return Err(self.error("invalid SQLSTATE code")) };
        self.at += 1;
        Ok(state)
    }
}

/// Five digits and capital letters.
pub fn sqlstate(text: &str) -> Option<SqlState> {
    let bytes: [u8; 5] = text.as_bytes().try_into().ok()?;
    bytes.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).then_some(SqlState(bytes))
}

/// `42704`.
pub fn unknown_condition(name: &str) -> base::Error {
    err!(UNDEFINED_OBJECT, "unrecognized exception condition \"{name}\"")
}
