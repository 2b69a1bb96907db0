//! The parser: tokens to a [`Program`]. Names are resolved while it reads, since what a statement is
//! may depend on what its first word means.

mod cursor;
mod declare;
mod raise;
mod statement;

use std::sync::Arc;

use base::{Oid, Result, err};
use exec::ExecContext;
use exec::nested;
use sql::embedded::Conflict;
use types::oids;

pub use declare::sqlstate;

use crate::program::*;
use crate::scan::{self, Kind, Token};

/// How deeply statements may be nested.
const DEPTH_MAX: u32 = 500;

/// The heading that a body is compiled for.
pub struct Heading {
    /// The function's name.
    pub name: String,
    /// As CONTEXT lines name it.
    pub signature: String,
    /// Its schema, by oid and name; None: it is in none.
    pub schema: Option<(u32, String)>,
    /// Name, type, and mode of each parameter.
    pub params: Vec<(String, Oid, char)>,
    /// The result.
    pub returns: Returns,
    /// The table whose rows those are.
    pub row_of: Option<u32>,
    /// SETOF.
    pub set: bool,
    /// A procedure.
    pub procedure: bool,
    /// VOLATILE.
    pub volatile: bool,
    /// Whether SQL text is parsed now, for its syntax.
    pub check: bool,
    /// Where the body begins in the client's statement, for warnings.
    pub body_at: Option<u32>,
}

/// The parser's state.
pub struct Parser<'a, 'c> {
    cx: &'a mut ExecContext<'c>,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    check: bool,
    body_at: Option<u32>,
    slots: Vec<SlotInfo>,
    names: Vec<NameEntry>,
    /// The last name in force.
    scope: usize,
    codes: Vec<Code>,
    labels: LabelId,
    /// Loops around the place, innermost last.
    loops: Vec<LabelId>,
    depth: u32,
    cases: u32,
    ends_transactions: bool,
    conflict: Conflict,
    print_strict_params: bool,
    returns: Returns,
    set: bool,
    procedure: bool,
    outputs: Vec<Slot>,
    found: Slot,
}

/// Compiles a body.
///
/// # Errors
/// `42601` and others with positions in the body, or with a CONTEXT that says near which line.
pub fn parse(text: &str, heading: Heading, cx: &mut ExecContext<'_>) -> Result<Program> {
    let tokens = scan::scan(text)?;
    let mut parser = Parser {
        cx,
        text,
        tokens,
        at: 0,
        check: heading.check,
        body_at: heading.body_at,
        slots: Vec::new(),
        names: Vec::new(),
        scope: 0,
        codes: Vec::new(),
        labels: 0,
        loops: Vec::new(),
        depth: 0,
        cases: 0,
        ends_transactions: false,
        conflict: Conflict::Error,
        print_strict_params: false,
        returns: heading.returns.clone(),
        set: heading.set,
        procedure: heading.procedure,
        outputs: Vec::new(),
        found: 0,
    };
    let name = heading.name.clone();
    let program = parser.program(heading);
    let line = parser.tokens[parser.at.min(parser.tokens.len() - 1)].line;
    program.map_err(|e| {
        if e.fields().position > 0 || e.fields().internal.is_some() {
            return e;
        }
        e.context(format!("compilation of PL/pgSQL function \"{name}\" near line {line}"))
    })
}

impl Parser<'_, '_> {
    fn program(&mut self, heading: Heading) -> Result<Program> {
        self.settings();
        self.options()?;
        self.open_label(&heading.name, LabelKind::Block);
        let mut numbered = Vec::new();
        let mut inputs = Vec::new();
        for (n, (name, ty, mode)) in heading.params.iter().enumerate() {
            let alias = format!("${}", n + 1);
            let slot = self.variable(if name.is_empty() { &alias } else { name }, *ty, -1, 0)?;
            if !name.is_empty() {
                self.name(&alias, NameKind::Variable(slot));
            }
            if *mode != 't' {
                numbered.push(slot);
            }
            if matches!(mode, 'i' | 'b' | 'v') {
                inputs.push(slot);
            }
            if matches!(mode, 'o' | 'b' | 't') {
                self.outputs.push(slot);
            }
        }
        self.found = self.variable("found", oids::BOOL, -1, 0)?;
        let trigger = match heading.returns {
            Returns::Trigger => Some(self.trigger_variables()?),
            Returns::EventTrigger => {
                for name in ["tg_event", "tg_tag"] {
                    let slot = self.variable(name, oids::TEXT, -1, 0)?;
                    inputs.push(slot);
                }
                None
            }
            _ => None,
        };
        let label = self.optional_label()?;
        let body = self.block(label)?;
        if self.token().is_sign(";") {
            self.at += 1;
        }
        if self.token().kind != Kind::End {
            return Err(self.syntax_error());
        }
        let composite = self.slots.iter().filter(|s| s.kind == SlotKind::Row);
        let shapes = composite.filter_map(|s| Some((s.ty, types::user::shape(s.ty)?))).collect();
        Ok(Program {
            shapes,
            placed: heading.schema.map(|(schema, name)| {
                let name = catalog::definition::quote_ident(&name);
                (schema, format!("{name}.{}", heading.signature).into())
            }),
            signature: heading.signature.into(),
            name: heading.name,
            slots: std::mem::take(&mut self.slots),
            names: std::mem::take(&mut self.names),
            codes: std::mem::take(&mut self.codes),
            body,
            inputs,
            outputs: self.outputs.clone(),
            numbered,
            found: self.found,
            returns: heading.returns,
            row_of: heading.row_of,
            set: heading.set,
            procedure: heading.procedure,
            volatile: heading.volatile,
            conflict: self.conflict,
            print_strict_params: self.print_strict_params,
            ends_transactions: self.ends_transactions,
            trigger,
            conversions: Default::default(),
        })
    }

    fn settings(&mut self) {
        use base::settings::setting;
        let settings = self.cx.settings;
        self.conflict = match settings.str(setting::PLPGSQL_VARIABLE_CONFLICT) {
            "use_variable" => Conflict::Variable,
            "use_column" => Conflict::Column,
            _ => Conflict::Error,
        };
        self.print_strict_params = settings.bool(setting::PLPGSQL_PRINT_STRICT_PARAMS);
    }

    /// `#option …` lines.
    fn options(&mut self) -> Result<()> {
        while self.token().is_sign("#") {
            self.at += 1;
            let option = self.token().text.clone();
            self.at += 1;
            let value = self.token().text.clone();
            match (option.as_str(), value.as_str()) {
                ("option", "dump") => {}
                ("print_strict_params", "on") => self.print_strict_params = true,
                ("print_strict_params", "off") => self.print_strict_params = false,
                ("variable_conflict", "error") => self.conflict = Conflict::Error,
                ("variable_conflict", "use_variable") => self.conflict = Conflict::Variable,
                ("variable_conflict", "use_column") => self.conflict = Conflict::Column,
                _ => return Err(self.syntax_error()),
            }
            self.at += 1;
        }
        Ok(())
    }

    fn trigger_variables(&mut self) -> Result<TriggerSlots> {
        let mut slots = TriggerSlots {
            new: self.variable("new", oids::RECORD, -1, 0)?,
            old: self.variable("old", oids::RECORD, -1, 0)?,
            ..TriggerSlots::default()
        };
        for (name, ty) in [
            ("tg_name", oids::NAME),
            ("tg_when", oids::TEXT),
            ("tg_level", oids::TEXT),
            ("tg_op", oids::TEXT),
            ("tg_relid", oids::OID),
            ("tg_relname", oids::NAME),
            ("tg_table_name", oids::NAME),
            ("tg_table_schema", oids::NAME),
            ("tg_nargs", oids::INT4),
            ("tg_argv", Oid(1009)),
        ] {
            if self.tokens.iter().any(|t| t.kind != Kind::Sign && t.text == name)
                || self.tokens.iter().any(|t| t.kind == Kind::String)
            {
                slots.others.push((name, self.variable(name, ty, -1, 0)?));
            }
        }
        for table in &mut slots.tables {
            *table = self.slot("", SlotKind::Scalar, Oid(2287), -1, 0)?;
        }
        Ok(slots)
    }

    // Tokens.

    fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn ahead(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    fn is(&self, word: &str) -> bool {
        self.token().is(word)
    }

    /// Goes over a keyword, if it is the next token.
    fn skip(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = self.token().is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.skip(word) { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.skip_sign(sign) { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn identifier(&mut self) -> Result<String> {
        if !self.token().is_name() {
            return Err(self.syntax_error());
        }
        self.at += 1;
        Ok(self.tokens[self.at - 1].text.clone())
    }

    fn here(&self) -> u32 {
        scan::position(self.text, self.token().start)
    }

    /// `42601` at the next token.
    fn syntax_error(&self) -> base::Error {
        self.error_near("syntax error")
    }

    fn error_near(&self, message: &str) -> base::Error {
        let token = self.token();
        let error = match token.kind {
            Kind::End => err!(SYNTAX_ERROR, "{message} at end of input"),
            _ => {
                let text = &self.text[token.start..token.end];
                err!(SYNTAX_ERROR, "{message} at or near \"{text}\"")
            }
        };
        error.at(self.here())
    }

    fn error(&self, message: impl std::fmt::Display) -> base::Error {
        err!(SYNTAX_ERROR, "{message}").at(self.here())
    }

    // Names.

    fn name(&mut self, name: &str, what: NameKind) {
        self.names.push(NameEntry { what, name: name.to_owned(), before: self.scope });
        self.scope = self.names.len();
    }

    fn open_label(&mut self, name: &str, kind: LabelKind) -> LabelId {
        self.labels += 1;
        self.name(name, NameKind::Label(self.labels, kind));
        self.labels
    }

    fn slot(
        &mut self,
        name: &str,
        kind: SlotKind,
        ty: Oid,
        typmod: i32,
        collation: u32,
    ) -> Result<Slot> {
        let number = Slot::try_from(self.slots.len())
            .map_err(|_| err!(PROGRAM_LIMIT_EXCEEDED, "a function has too many variables"))?;
        self.slots.push(SlotInfo {
            name: name.to_owned(),
            kind,
            ty,
            typmod,
            collation,
            not_null: false,
            constant: false,
            default: None,
            cursor: None,
            line: self.token().line,
        });
        Ok(number)
    }

    /// A new variable in the innermost block.
    fn variable(&mut self, name: &str, ty: Oid, typmod: i32, collation: u32) -> Result<Slot> {
        let kind = if ty == oids::RECORD {
            SlotKind::Record
        } else if types::user::shape(ty).is_some() {
            SlotKind::Row
        } else {
            SlotKind::Scalar
        };
        let slot = self.slot(name, kind, ty, typmod, collation)?;
        self.name(name, NameKind::Variable(slot));
        Ok(slot)
    }

    fn lookup(&self, parts: &[&str]) -> Option<Found> {
        lookup(&self.names, &self.slots, self.scope, parts)
    }

    /// `plpgsql.extra_warnings` and `extra_errors` about a name that hides another.
    fn check_shadow(&mut self, name: &str, position: u32) -> Result<()> {
        if !self.check || self.lookup(&[name]).is_none() {
            return Ok(());
        }
        let message = format!("variable \"{name}\" shadows a previously defined variable");
        let error = base::Error::new(base::sqlstate::DUPLICATE_ALIAS, message).at(position);
        match crate::frame::extra(self.cx, "shadowed_variables") {
            Some(true) => Err(error),
            Some(false) => {
                let error = match self.body_at {
                    Some(at) => error.shift(at - 1),
                    None => error.without_position(),
                };
                self.cx.hooks.notice("WARNING", error);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The variable that the next tokens name (`a`, `l.a`, `r.f`), how many tokens that takes, and the
    /// fields.
    fn variable_here(&self) -> Option<(Slot, usize, Vec<String>)> {
        if self.token().kind == Kind::Param {
            let name = format!("${}", self.token().text);
            return self.lookup(&[&name]).map(|f| (f.slot, 1, Vec::new()));
        }
        let mut parts: Vec<&str> = Vec::new();
        let mut at = 0;
        while self.ahead(at).is_name() && parts.len() < 3 {
            parts.push(&self.ahead(at).text);
            if !self.ahead(at + 1).is_sign(".") {
                break;
            }
            at += 2;
        }
        let found = self.lookup(&parts)?;
        let fields: Vec<String> = parts[found.used..].iter().map(|s| (*s).to_owned()).collect();
        Some((found.slot, parts.len() * 2 - 1, fields))
    }

    // SQL.

    fn add_code(
        &mut self,
        from: usize,
        to: usize,
        kind: CodeKind,
        target: Option<(Oid, i32)>,
    ) -> Result<CodeId> {
        let text = self.text[from..to].trim_end().to_owned();
        if self.check {
            let checked = match kind {
                CodeKind::Statement | CodeKind::Cursor => sql::embedded::check_statement(&text),
                _ => sql::embedded::check_expression(&text),
            };
            checked.map_err(|e| match e.fields().position {
                0 => e.at(scan::position(self.text, from)),
                _ => e.shift(scan::position(self.text, from) - 1),
            })?;
        }
        self.codes.push(Code {
            text: text.into(),
            lead: String::new(),
            kind,
            scope: self.scope,
            into: None,
            target,
            plans: Default::default(),
        });
        Ok(self.codes.len() - 1)
    }

    fn code_of(&mut self, text: &str, kind: CodeKind) -> CodeId {
        let (text, scope) = (text.into(), self.scope);
        let lead = String::new();
        self.codes.push(Code {
            text,
            lead,
            kind,
            scope,
            into: None,
            target: None,
            plans: Default::default(),
        });
        self.codes.len() - 1
    }

    /// Tokens up to one of `ends` outside of parentheses; where the text begins and ends. The end is the
    /// next token then.
    fn until(&mut self, ends: &[&str], what: &str) -> Result<(usize, usize)> {
        let start = self.at;
        let mut depth = 0i32;
        loop {
            let token = self.token();
            if depth == 0 && ends.iter().any(|e| token.is(e) || token.is_sign(e)) {
                break;
            }
            match token.kind {
                Kind::Sign if token.text == "(" || token.text == "[" => depth += 1,
                Kind::Sign if token.text == ")" || token.text == "]" => {
                    depth -= 1;
                    if depth < 0 {
                        return Err(self.error_near("mismatched parentheses"));
                    }
                }
                Kind::End => {
                    if depth != 0 {
                        return Err(self.error("mismatched parentheses"));
                    }
                    return Err(self.syntax_error());
                }
                Kind::Sign if token.text == ";" => {
                    if depth != 0 {
                        return Err(self.error_near("mismatched parentheses"));
                    }
                    return Err(self.missing(ends, what));
                }
                _ => {}
            }
            self.at += 1;
        }
        if self.at == start {
            let what = if what == "SQL statement" { what } else { "expression" };
            return Err(self.error_near(&format!("missing {what}")));
        }
        Ok((self.tokens[start].start, self.tokens[self.at - 1].end))
    }

    fn missing(&self, ends: &[&str], what: &str) -> base::Error {
        let end = ends.first().copied().unwrap_or(";");
        let end = if end.starts_with(|c: char| c.is_ascii_alphabetic()) {
            end.to_uppercase()
        } else {
            end.to_owned()
        };
        self.error_near(&format!("missing \"{end}\" at end of {what}"))
    }

    /// An expression up to a token, which is left.
    fn expression(&mut self, ends: &[&str]) -> Result<CodeId> {
        self.typed_expression(ends, CodeKind::Expression, None)
    }

    fn typed_expression(
        &mut self,
        ends: &[&str],
        kind: CodeKind,
        target: Option<(Oid, i32)>,
    ) -> Result<CodeId> {
        let (from, to) = self.until(ends, "SQL expression")?;
        self.add_code(from, to, kind, target)
    }

    fn condition(&mut self, ends: &[&str]) -> Result<CodeId> {
        self.typed_expression(ends, CodeKind::Expression, Some((oids::BOOL, -1)))
    }

    // Types.

    fn in_catalog<R>(&mut self, f: impl FnOnce(&sql::PrepareContext<'_>) -> R) -> R {
        nested::preparing(self.cx, None, |_, cx| f(cx))
    }

    /// A data type up to one of these tokens: type, typmod.
    fn data_type(&mut self, ends: &[&str]) -> Result<(Oid, i32)> {
        let position = self.here();
        if self.is("record") && !self.ahead(1).is_sign(".") && !self.ahead(1).is_sign("%") {
            self.at += 1;
            return Ok((oids::RECORD, -1));
        }
        // name%TYPE, name%ROWTYPE
        let mut names = Vec::new();
        let mut ahead = 0;
        while self.ahead(ahead).is_name() {
            names.push(self.ahead(ahead).text.clone());
            if !self.ahead(ahead + 1).is_sign(".") {
                break;
            }
            ahead += 2;
        }
        if !names.is_empty() && self.ahead(ahead + 1).is_sign("%") {
            let parts: Vec<&str> = names.iter().map(String::as_str).collect();
            if self.ahead(ahead + 2).is("type") {
                let found = self.type_of(&parts)?;
                self.at += ahead + 3;
                return Ok(found);
            }
            if self.ahead(ahead + 2).is("rowtype") {
                let found = self.in_catalog(|cx| sql::embedded::row_type(&parts, cx));
                let named = found.or_else(|| {
                    let ty =
                        self.in_catalog(|cx| sql::embedded::type_by_name(&names.join("."), cx));
                    ty.ok().map(|t| t.0).filter(|t| types::user::shape(*t).is_some())
                });
                let Some(ty) = named else {
                    return Err(err!(
                        UNDEFINED_TABLE,
                        "relation \"{}\" does not exist",
                        names.join(".")
                    ));
                };
                self.at += ahead + 3;
                return Ok((ty, -1));
            }
        }
        let start = self.at;
        let mut depth = 0i32;
        loop {
            let token = self.token();
            if depth == 0 && ends.iter().any(|e| token.is(e) || token.is_sign(e)) {
                break;
            }
            match token.text.as_str() {
                "(" | "[" if token.kind == Kind::Sign => depth += 1,
                ")" | "]" if token.kind == Kind::Sign => depth -= 1,
                ";" if token.kind == Kind::Sign => break,
                _ if token.kind == Kind::End => {
                    return Err(self.error("incomplete data type declaration"));
                }
                _ => {}
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("missing data type declaration"));
        }
        let text = &self.text[self.tokens[start].start..self.tokens[self.at - 1].end];
        let found = nested::preparing(self.cx, None, |_, cx| sql::embedded::type_by_name(text, cx));
        found.map_err(|e| e.without_position().at(position))
    }

    fn type_of(&mut self, parts: &[&str]) -> Result<(Oid, i32)> {
        if let Some(found) = self.lookup(parts) {
            let slot = &self.slots[usize::from(found.slot)];
            match &parts[found.used..] {
                [] => return Ok((slot.ty, slot.typmod)),
                [field] => {
                    if let Some(shape) = types::user::shape(slot.ty)
                        && let Some((_, ty)) = shape.columns.iter().find(|(n, _)| n == field)
                    {
                        return Ok((*ty, -1));
                    }
                }
                _ => {}
            }
        }
        if parts.len() > 1 {
            if let Some(found) = self.in_catalog(|cx| sql::embedded::column_type(parts, cx)) {
                return Ok(found);
            }
            let table = &parts[..parts.len() - 1];
            if self.in_catalog(|cx| sql::embedded::row_type(table, cx)).is_some() {
                return Err(err!(
                    UNDEFINED_COLUMN,
                    "column \"{}\" of relation \"{}\" does not exist",
                    parts[parts.len() - 1],
                    table[table.len() - 1]
                ));
            }
            return Err(err!(UNDEFINED_TABLE, "relation \"{}\" does not exist", table.join(".")));
        }
        Err(err!(SYNTAX_ERROR, "syntax error at or near \"%\"").at(self.here()))
    }

    /// `<<label>>`.
    fn optional_label(&mut self) -> Result<Option<String>> {
        if !self.skip_sign("<<") {
            return Ok(None);
        }
        let name = self.identifier()?;
        self.expect_sign(">>")?;
        Ok(Some(name))
    }

    /// The label behind END, which must be the block's.
    fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if !self.token().is_name() || self.token().is_sign(";") {
            return Ok(());
        }
        let position = self.here();
        let name = self.identifier()?;
        match label {
            Some(label) if label == name => Ok(()),
            Some(label) => Err(err!(
                SYNTAX_ERROR,
                "end label \"{name}\" differs from block's label \"{label}\""
            )
            .at(position)),
            None => Err(err!(SYNTAX_ERROR, "end label \"{name}\" specified for unlabeled block")
                .at(position)),
        }
    }

    fn deeper<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.depth >= DEPTH_MAX {
            return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
                .hint("The function's statements are nested too deeply."));
        }
        sched::check_stack()?;
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Type and typmod of what a target takes, where that is known before it is run.
    fn target_type(&self, target: &Assignable) -> Option<(Oid, i32)> {
        let slot = &self.slots[usize::from(target.slot)];
        if slot.kind != SlotKind::Scalar || !target.path.is_empty() {
            return None;
        }
        Some((slot.ty, slot.typmod))
    }

    fn cursor_of(&self, slot: Slot) -> Option<Arc<CursorInfo>> {
        self.slots[usize::from(slot)].cursor.clone()
    }
}
