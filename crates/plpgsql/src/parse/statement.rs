//! Statements.

use base::{Result, err};
use types::oids;

use super::Parser;
use crate::program::*;
use crate::scan::Kind;

impl Parser<'_, '_> {
    /// Statements up to one of these keywords, which is left.
    pub(super) fn statements(&mut self, ends: &[&str]) -> Result<Vec<Stmt>> {
        let mut out = Vec::new();
        loop {
            let token = self.token();
            if token.kind == Kind::Word && ends.contains(&token.text.as_str()) {
                return Ok(out);
            }
            if token.kind == Kind::End {
                return Err(self.syntax_error());
            }
            let line = token.line;
            let kind = self.deeper(Self::statement)?;
            out.push(Stmt { line, kind });
        }
    }

    /// Whether the next tokens begin an assignment to a variable.
    fn begins_assignment(&self) -> bool {
        let Some((_, width, _)) = self.variable_here() else { return false };
        let next = self.ahead(width);
        next.is_sign(":=") || next.is_sign("=") || next.is_sign("[") || next.is_sign(".")
    }

    fn statement(&mut self) -> Result<StmtKind> {
        if self.begins_assignment() {
            return self.assignment();
        }
        let label = self.optional_label()?;
        let word = match self.token().kind {
            Kind::Word => self.token().text.clone(),
            _ => String::new(),
        };
        if matches!(word.as_str(), "declare" | "begin") {
            let block = self.block(label)?;
            self.expect_sign(";")?;
            return Ok(StmtKind::Block(block));
        }
        if matches!(word.as_str(), "loop" | "while" | "for" | "foreach") {
            return self.loop_statement(&word, label);
        }
        if label.is_some() {
            return Err(self.syntax_error());
        }
        match word.as_str() {
            "if" => self.if_statement(),
            "case" => self.case_statement(),
            "exit" | "continue" => self.leave(word == "exit"),
            "return" => self.return_statement(),
            "raise" => self.raise(),
            "assert" => self.assert(),
            "perform" => self.perform(),
            "execute" => self.execute(),
            "get" => self.get_diagnostics(),
            "open" => self.open(),
            "fetch" => self.fetch(),
            "move" => self.move_cursor(),
            "close" => self.close(),
            "null" if self.ahead(1).is_sign(";") => {
                self.at += 2;
                Ok(StmtKind::Null)
            }
            "call" | "do" => self.call(&word),
            "commit" | "rollback" => self.end_of_transaction(word == "commit"),
            "elsif" | "elseif" | "else" | "then" | "when" | "end" | "exception" | "using" => {
                Err(self.syntax_error())
            }
            _ => self.sql(),
        }
    }

    fn assignment(&mut self) -> Result<StmtKind> {
        let from = self.token().start;
        let target = self.target(true)?;
        if !(self.skip_sign(":=") || self.skip_sign("=")) {
            return Err(self.syntax_error());
        }
        let lead = self.text[from..self.token().start].to_owned();
        let ty = self.target_type(&target);
        let value = self.typed_expression(&[";"], CodeKind::Assignment, ty)?;
        self.expect_sign(";")?;
        self.codes[value].lead = lead;
        self.codes[value].into = target.path.is_empty().then_some(target.slot);
        Ok(StmtKind::Assign(target, value))
    }

    /// A variable or a part of one; `parts`: subscripts may follow.
    pub(super) fn target(&mut self, parts: bool) -> Result<Assignable> {
        let position = self.here();
        let Some((slot, width, fields)) = self.variable_here() else {
            let name = &self.token().text;
            if !self.token().is_name() {
                return Err(self.syntax_error());
            }
            return Err(err!(SYNTAX_ERROR, "\"{name}\" is not a known variable").at(position));
        };
        self.at += width;
        let info = &self.slots[usize::from(slot)];
        if info.constant {
            return Err(err!(
                ERROR_IN_ASSIGNMENT,
                "variable \"{}\" is declared CONSTANT",
                info.name
            )
            .at(position));
        }
        let mut path: Vec<Step> = fields.into_iter().map(Step::Field).collect();
        while parts {
            if self.skip_sign("[") {
                path.push(self.subscript()?);
            } else if self.token().is_sign(".") && self.ahead(1).is_name() {
                self.at += 1;
                path.push(Step::Field(self.identifier()?));
            } else {
                break;
            }
        }
        Ok(Assignable { slot, path })
    }

    fn subscript(&mut self) -> Result<Step> {
        let int = Some((oids::INT4, -1));
        let step = if self.skip_sign(":") {
            match self.token().is_sign("]") {
                true => Step::Slice(None, None),
                false => Step::Slice(
                    None,
                    Some(self.typed_expression(&["]"], CodeKind::Expression, int)?),
                ),
            }
        } else {
            let low = self.typed_expression(&["]", ":"], CodeKind::Expression, int)?;
            if self.skip_sign(":") {
                let high = match self.token().is_sign("]") {
                    true => None,
                    false => Some(self.typed_expression(&["]"], CodeKind::Expression, int)?),
                };
                Step::Slice(Some(low), high)
            } else {
                Step::Index(low)
            }
        };
        self.expect_sign("]")?;
        Ok(step)
    }

    fn if_statement(&mut self) -> Result<StmtKind> {
        self.expect("if")?;
        let mut arms = Vec::new();
        loop {
            let test = self.condition(&["then"])?;
            self.expect("then")?;
            arms.push((test, self.statements(&["elsif", "elseif", "else", "end"])?));
            if !(self.skip("elsif") || self.skip("elseif")) {
                break;
            }
        }
        let otherwise = match self.skip("else") {
            true => self.statements(&["end"])?,
            false => Vec::new(),
        };
        self.end("if")?;
        Ok(StmtKind::If(arms, otherwise))
    }

    /// `END word;`
    fn end(&mut self, word: &str) -> Result<()> {
        self.expect("end")?;
        self.expect(word)?;
        self.expect_sign(";")
    }

    fn case_statement(&mut self) -> Result<StmtKind> {
        self.expect("case")?;
        let outer = self.scope;
        let mut hidden = String::new();
        let search = match self.is("when") {
            true => None,
            false => {
                let code = self.expression(&["when"])?;
                self.cases += 1;
                hidden = format!("__case__variable_{}__", self.cases);
                let slot = self.slot(&hidden, SlotKind::Case, oids::RECORD, -1, 0)?;
                self.name(&hidden, NameKind::Variable(slot));
                Some((code, slot))
            }
        };
        let mut arms = Vec::new();
        while self.skip("when") {
            let test = match &search {
                None => self.condition(&["then"])?,
                Some(_) => {
                    let (from, to) = self.until(&["then"], "SQL expression")?;
                    let text = format!("\"{hidden}\" IN ({})", &self.text[from..to]);
                    if self.check {
                        sql::embedded::check_expression(&text)?;
                    }
                    self.code_of(&text, CodeKind::Expression)
                }
            };
            self.expect("then")?;
            arms.push((test, self.statements(&["when", "else", "end"])?));
        }
        if arms.is_empty() {
            return Err(self.syntax_error());
        }
        let otherwise = match self.skip("else") {
            true => Some(self.statements(&["end"])?),
            false => None,
        };
        self.scope = outer;
        self.end("case")?;
        Ok(StmtKind::Case(search, arms, otherwise))
    }

    fn loop_statement(&mut self, word: &str, label: Option<String>) -> Result<StmtKind> {
        let outer = self.scope;
        let id = self.open_label(label.as_deref().unwrap_or_default(), LabelKind::Loop);
        let kind = match word {
            "loop" => StmtKind::Loop(id, self.loop_body(id, label.as_deref())?),
            "while" => {
                self.at += 1;
                let test = self.condition(&["loop"])?;
                StmtKind::While(id, test, self.loop_body(id, label.as_deref())?)
            }
            "for" => self.for_statement(id, label.as_deref())?,
            _ => self.foreach(id, label.as_deref())?,
        };
        self.scope = outer;
        Ok(kind)
    }

    /// `LOOP … END LOOP [label];`
    pub(super) fn loop_body(&mut self, id: LabelId, label: Option<&str>) -> Result<Vec<Stmt>> {
        self.expect("loop")?;
        self.loops.push(id);
        let body = self.statements(&["end"])?;
        self.loops.pop();
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label)?;
        self.expect_sign(";")?;
        Ok(body)
    }

    fn for_statement(&mut self, id: LabelId, label: Option<&str>) -> Result<StmtKind> {
        self.expect("for")?;
        let variable = self.at;
        // Over the variables, to see what is looped over.
        while !self.is("in") {
            let known = self.token().is_name()
                || self.token().kind == Kind::Param
                || self.token().is_sign(".")
                || self.token().is_sign(",");
            if !known {
                return Err(self.syntax_error());
            }
            self.at += 1;
        }
        let after = self.at + 1;
        self.at = after;
        if self.skip("execute") {
            let code = self.typed_expression(
                &["loop", "using"],
                CodeKind::Expression,
                Some((oids::TEXT, -1)),
            )?;
            let using = match self.skip("using") {
                true => self.list(&["loop"])?,
                false => Vec::new(),
            };
            return self.for_rows(id, label, variable, Source::Execute(code, using));
        }
        if let Some((slot, width, fields)) = self.variable_here()
            && fields.is_empty()
            && self.slots[usize::from(slot)].ty == oids::REFCURSOR
            && (self.ahead(width).is("loop") || self.ahead(width).is_sign("("))
        {
            return self.for_cursor(id, label, variable, slot, width);
        }
        let reverse = self.skip("reverse");
        let start = self.at;
        let (from, to) = self.until(&["..", "loop"], "SQL expression")?;
        if self.token().is_sign("..") {
            return self.for_integer(id, label, variable, reverse, (from, to));
        }
        if reverse {
            return Err(self.error("cannot specify REVERSE in query FOR loop"));
        }
        let _ = start;
        let code = self.add_code(from, to, CodeKind::Statement, None)?;
        self.for_rows(id, label, variable, Source::Query(code))
    }

    fn for_integer(
        &mut self,
        id: LabelId,
        label: Option<&str>,
        variable: usize,
        reverse: bool,
        (from, to): (usize, usize),
    ) -> Result<StmtKind> {
        let int = Some((oids::INT4, -1));
        let low = self.add_code(from, to, CodeKind::Expression, int)?;
        self.expect_sign("..")?;
        let high = self.typed_expression(&["loop", "by"], CodeKind::Expression, int)?;
        let step = match self.skip("by") {
            true => Some(self.typed_expression(&["loop"], CodeKind::Expression, int)?),
            false => None,
        };
        let body_at = self.at;
        self.at = variable;
        let name = self.identifier()?;
        if !self.is("in") {
            return Err(self.error("integer FOR loop must have only one target variable"));
        }
        self.at = body_at;
        let slot = self.variable(&name, oids::INT4, -1, 0)?;
        let body = self.loop_body(id, label)?;
        Ok(StmtKind::ForInteger { id, slot, low, high, step, reverse, body })
    }

    fn for_rows(
        &mut self,
        id: LabelId,
        label: Option<&str>,
        variable: usize,
        source: Source,
    ) -> Result<StmtKind> {
        let body_at = self.at;
        self.at = variable;
        if self.variable_here().is_none() {
            return Err(self.error(
                "loop variable of loop over rows must be a record variable or list of scalar variables",
            ));
        }
        let targets = self.targets()?;
        if !self.is("in") {
            return Err(self.syntax_error());
        }
        self.at = body_at;
        let body = self.loop_body(id, label)?;
        Ok(StmtKind::ForRows { id, targets, source, body })
    }

    fn for_cursor(
        &mut self,
        id: LabelId,
        label: Option<&str>,
        variable: usize,
        slot: Slot,
        width: usize,
    ) -> Result<StmtKind> {
        if self.cursor_of(slot).is_none() {
            return Err(self.error("cursor FOR loop must use a bound cursor variable"));
        }
        self.at += width;
        let args = self.cursor_arguments(slot)?;
        let body_at = self.at;
        self.at = variable;
        let name = self.identifier()?;
        if !self.is("in") {
            return Err(self.error("cursor FOR loop must have only one target variable"));
        }
        self.at = body_at;
        let record = self.variable(&name, oids::RECORD, -1, 0)?;
        let body = self.loop_body(id, label)?;
        let targets = vec![Assignable { slot: record, path: Vec::new() }];
        Ok(StmtKind::ForRows { id, targets, source: Source::Cursor(slot, args), body })
    }

    fn foreach(&mut self, id: LabelId, label: Option<&str>) -> Result<StmtKind> {
        self.expect("foreach")?;
        if self.variable_here().is_none() {
            return Err(self
                .error("loop variable of FOREACH must be a known variable or list of variables"));
        }
        let targets = self.targets()?;
        let mut slice = 0;
        if self.skip("slice") {
            let token = self.token();
            let Ok(number) = token.text.parse::<u32>() else { return Err(self.syntax_error()) };
            slice = number;
            self.at += 1;
        }
        self.expect("in")?;
        self.expect("array")?;
        let array = self.expression(&["loop"])?;
        let body = self.loop_body(id, label)?;
        Ok(StmtKind::Foreach { id, targets, slice, array, body })
    }

    fn leave(&mut self, exit: bool) -> Result<StmtKind> {
        self.at += 1;
        let mut id = None;
        if self.token().is_name() && !self.is("when") {
            let position = self.here();
            let name = self.identifier()?;
            let Some((found, kind)) = self.label_named(&name) else {
                return Err(err!(
                    SYNTAX_ERROR,
                    "there is no label \"{name}\" attached to any block or loop enclosing this statement"
                )
                .at(position));
            };
            if !exit && kind != LabelKind::Loop {
                return Err(err!(
                    SYNTAX_ERROR,
                    "block label \"{name}\" cannot be used in CONTINUE"
                )
                .at(position));
            }
            id = Some(found);
        }
        let id = match id.or_else(|| self.loops.last().copied()) {
            Some(id) => id,
            None => {
                self.at -= 1;
                let message = match exit {
                    true => "EXIT cannot be used outside a loop, unless it has a label",
                    false => "CONTINUE cannot be used outside a loop",
                };
                return Err(self.error(message));
            }
        };
        let when = match self.skip("when") {
            true => Some(self.condition(&[";"])?),
            false => None,
        };
        self.expect_sign(";")?;
        Ok(StmtKind::Leave { exit, id, when })
    }

    fn label_named(&self, name: &str) -> Option<(LabelId, LabelKind)> {
        let mut at = self.scope;
        while at > 0 {
            let entry = &self.names[at - 1];
            if let NameKind::Label(id, kind) = entry.what
                && entry.name == name
                && kind != LabelKind::Other
            {
                return Some((id, kind));
            }
            at = entry.before;
        }
        None
    }

    fn return_statement(&mut self) -> Result<StmtKind> {
        self.expect("return")?;
        if self.is("next") {
            self.at += 1;
            return self.return_next();
        }
        if self.is("query") {
            self.at += 1;
            return self.return_query();
        }
        let refuse = |p: &Self, message: &str| {
            if p.token().is_sign(";") {
                Ok(())
            } else {
                Err(err!(DATATYPE_MISMATCH, "{message}").at(p.here()))
            }
        };
        if self.set {
            if !self.token().is_sign(";") {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "RETURN cannot have a parameter in function returning set"
                )
                .hint("Use RETURN NEXT or RETURN QUERY.")
                .at(self.here()));
            }
        } else if self.procedure {
            if !self.token().is_sign(";") {
                return Err(err!(SYNTAX_ERROR, "RETURN cannot have a parameter in a procedure")
                    .at(self.here()));
            }
        } else if matches!(self.returns, Returns::Void | Returns::EventTrigger) {
            refuse(self, "RETURN cannot have a parameter in function returning void")?;
        } else if !self.outputs.is_empty() {
            refuse(self, "RETURN cannot have a parameter in function with OUT parameters")?;
        } else {
            let target = match self.returns {
                Returns::Scalar(ty) => Some((ty, -1)),
                _ => None,
            };
            if self.token().is_sign(";") {
                return Err(self.error_near("missing expression"));
            }
            let _ = target;
            let value = self.expression(&[";"])?;
            self.expect_sign(";")?;
            return Ok(StmtKind::Return(Some(value)));
        }
        self.expect_sign(";")?;
        Ok(StmtKind::Return(None))
    }

    fn return_next(&mut self) -> Result<StmtKind> {
        if !self.set {
            return Err(err!(DATATYPE_MISMATCH, "cannot use RETURN NEXT in a non-SETOF function")
                .at(self.here()));
        }
        if !self.outputs.is_empty() {
            if !self.token().is_sign(";") {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "RETURN NEXT cannot have a parameter in function with OUT parameters"
                )
                .at(self.here()));
            }
            self.at += 1;
            return Ok(StmtKind::ReturnNext(None));
        }
        let value = self.expression(&[";"])?;
        self.expect_sign(";")?;
        Ok(StmtKind::ReturnNext(Some(value)))
    }

    fn return_query(&mut self) -> Result<StmtKind> {
        if !self.set {
            return Err(err!(DATATYPE_MISMATCH, "cannot use RETURN QUERY in a non-SETOF function")
                .at(self.here()));
        }
        let source = self.source(&[";"])?;
        self.expect_sign(";")?;
        Ok(StmtKind::ReturnQuery(source))
    }

    /// A query, or `EXECUTE … USING …`.
    pub(super) fn source(&mut self, ends: &[&str]) -> Result<Source> {
        if self.skip("execute") {
            let mut all = vec!["using"];
            all.extend(ends);
            let ends_first: Vec<&str> = ends.iter().copied().chain(["using"]).collect();
            let code =
                self.typed_expression(&ends_first, CodeKind::Expression, Some((oids::TEXT, -1)))?;
            let using = match self.skip("using") {
                true => self.list(ends)?,
                false => Vec::new(),
            };
            return Ok(Source::Execute(code, using));
        }
        let (from, to) = self.until(ends, "SQL statement")?;
        Ok(Source::Query(self.add_code(from, to, CodeKind::Statement, None)?))
    }

    /// Expressions between commas, up to one of these tokens.
    pub(super) fn list(&mut self, ends: &[&str]) -> Result<Vec<CodeId>> {
        let mut out = Vec::new();
        let all: Vec<&str> = ends.iter().copied().chain([","]).collect();
        loop {
            out.push(self.expression(&all)?);
            if !self.skip_sign(",") {
                return Ok(out);
            }
        }
    }

    fn assert(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let test = self.condition(&[";", ","])?;
        let message = match self.skip_sign(",") {
            true => {
                let text = Some((oids::TEXT, -1));
                Some(self.typed_expression(&[";"], CodeKind::Expression, text)?)
            }
            false => None,
        };
        self.expect_sign(";")?;
        Ok(StmtKind::Assert(test, message))
    }

    fn perform(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let (from, to) = self.until(&[";"], "SQL statement")?;
        let text = format!("SELECT {}", &self.text[from..to]);
        if self.check {
            sql::embedded::check_statement(&text).map_err(|e| {
                let at = crate::scan::position(self.text, from);
                match e.fields().position {
                    0 => e.at(at),
                    found => {
                        let inside = found.saturating_sub(7).max(1);
                        e.without_position().at(inside).shift(at - 1)
                    }
                }
            })?;
        }
        let code = self.code_of(&text, CodeKind::Statement);
        self.expect_sign(";")?;
        Ok(StmtKind::Perform(code))
    }

    fn execute(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let ends = ["into", "using", ";"];
        let text = Some((oids::TEXT, -1));
        let code = self.typed_expression(&[";", "into", "using"], CodeKind::Expression, text)?;
        let (mut into, mut using) = (None, Vec::new());
        loop {
            if self.skip("into") {
                if into.is_some() {
                    return Err(self.syntax_error());
                }
                into = Some(self.into_targets()?);
            } else if self.skip("using") {
                if !using.is_empty() {
                    return Err(self.syntax_error());
                }
                using = self.list(&ends)?;
            } else {
                self.expect_sign(";")?;
                return Ok(StmtKind::Execute(code, into, using));
            }
        }
    }

    /// `[STRICT] target, …`
    pub(super) fn into_targets(&mut self) -> Result<Into> {
        let strict = self.skip("strict");
        Ok(Into { strict, targets: self.targets()? })
    }

    /// A row or record, or scalars.
    pub(super) fn targets(&mut self) -> Result<Vec<Assignable>> {
        let first = self.target(false)?;
        let is_row = |p: &Self, t: &Assignable| {
            t.path.is_empty() && p.slots[usize::from(t.slot)].kind != SlotKind::Scalar
        };
        let row = is_row(self, &first);
        let name = self.slots[usize::from(first.slot)].name.clone();
        let mut out = vec![first];
        if row && self.token().is_sign(",") {
            return Err(self.error("record variable cannot be part of multiple-item INTO list"));
        }
        while self.skip_sign(",") {
            let position = self.here();
            let next = self.target(false)?;
            if is_row(self, &next) {
                let name = &self.slots[usize::from(next.slot)].name;
                return Err(err!(SYNTAX_ERROR, "\"{name}\" is not a scalar variable").at(position));
            }
            out.push(next);
        }
        let _ = name;
        Ok(out)
    }

    fn call(&mut self, word: &str) -> Result<StmtKind> {
        let first = self.at;
        let (from, to) = self.until(&[";"], "SQL statement")?;
        let code = self.add_code(from, to, CodeKind::Statement, None)?;
        let args = match word {
            "call" => self.call_arguments(first)?,
            _ => Vec::new(),
        };
        self.expect_sign(";")?;
        self.ends_transactions = true;
        if word == "do" {
            return Ok(StmtKind::Do(code));
        }
        Ok(StmtKind::Call(code, args))
    }

    /// The arguments of a CALL that begins at a token: names, and the variables that they are.
    fn call_arguments(
        &mut self,
        first: usize,
    ) -> Result<Vec<(Option<String>, Option<Assignable>)>> {
        let end = self.at;
        self.at = first;
        while self.at < end && !self.token().is_sign("(") {
            self.at += 1;
        }
        self.at += 1;
        let mut out = Vec::new();
        while self.at < end && !self.token().is_sign(")") {
            let mut name = None;
            if self.token().is_name()
                && (self.ahead(1).is_sign("=>") || self.ahead(1).is_sign(":="))
            {
                name = Some(self.token().text.clone());
                self.at += 2;
            }
            let from = self.at;
            let mut depth = 0i32;
            while self.at < end {
                let token = self.token();
                match token.text.as_str() {
                    "(" | "[" if token.kind == Kind::Sign => depth += 1,
                    ")" | "]" if token.kind == Kind::Sign => {
                        if depth == 0 {
                            break;
                        }
                        depth -= 1;
                    }
                    "," if token.kind == Kind::Sign && depth == 0 => break,
                    _ => {}
                }
                self.at += 1;
            }
            let to = self.at;
            self.at = from;
            let mut target = None;
            if self
                .variable_here()
                .is_some_and(|(slot, _, _)| !self.slots[usize::from(slot)].constant)
            {
                let found = self.target(true)?;
                target = (self.at == to).then_some(found);
            }
            self.at = to;
            out.push((name, target));
            self.skip_sign(",");
        }
        self.at = end;
        Ok(out)
    }

    fn end_of_transaction(&mut self, commit: bool) -> Result<StmtKind> {
        if commit && self.ahead(1).is("prepared")
            || !commit && (self.ahead(1).is("to") || self.ahead(1).is("prepared"))
        {
            return self.sql();
        }
        self.at += 1;
        let _ = self.skip("work") || self.skip("transaction");
        let mut chain = false;
        if self.skip("and") {
            chain = !self.skip("no");
            self.expect("chain")?;
        }
        self.expect_sign(";")?;
        self.ends_transactions = true;
        Ok(if commit { StmtKind::Commit(chain) } else { StmtKind::Rollback(chain) })
    }

    /// A statement in SQL; INTO is taken out of it.
    fn sql(&mut self) -> Result<StmtKind> {
        let first = self.at;
        let token = self.token();
        if token.kind != Kind::Word {
            // A name that nobody knows, before an assignment.
            let next = self.ahead(1);
            if token.kind == Kind::Quoted
                && (next.is_sign(":=") || next.is_sign("=") || next.is_sign("["))
            {
                let name = &token.text;
                return Err(self.error(format_args!("\"{name}\" is not a known variable")));
            }
            if !(token.is_sign("(")) {
                return Err(self.syntax_error());
            }
        } else if self.ahead(1).is_sign(":=")
            || self.ahead(1).is_sign("=")
            || self.ahead(1).is_sign("[")
        {
            let name = &token.text;
            return Err(self.error(format_args!("\"{name}\" is not a known variable")));
        }
        let word = self.token().text.clone();
        let mut depth = 0i32;
        let mut into: Option<(usize, usize, Into)> = None;
        let mut atomic = 0i32;
        loop {
            let token = self.token().clone();
            match token.kind {
                Kind::End => return Err(self.error("unexpected end of function definition")),
                Kind::Sign if token.text == "(" => depth += 1,
                Kind::Sign if token.text == ")" => depth -= 1,
                Kind::Sign if token.text == ";" && depth <= 0 && atomic <= 0 => break,
                Kind::Word if token.text == "begin" && word == "create" => {
                    atomic += i32::from(self.ahead(1).is("atomic"));
                }
                Kind::Word if token.text == "end" && atomic > 0 => atomic -= 1,
                Kind::Word if token.text == "into" && self.at > first => {
                    let before = &self.tokens[self.at - 1];
                    let other = before.is("insert")
                        || before.is("merge")
                        || word == "import"
                        || word == "create"
                        || depth > 0;
                    if !other {
                        if into.is_some() {
                            return Err(self.error("INTO specified more than once"));
                        }
                        let from = self.token().start;
                        self.at += 1;
                        let found = self.into_targets()?;
                        into = Some((from, self.token().start, found));
                        continue;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        let (from, to) = (self.tokens[first].start, self.tokens[self.at - 1].end);
        let code = match &into {
            None => self.add_code(from, to, CodeKind::Statement, None)?,
            Some((cut, on, _)) => {
                let end = to.max(*on);
                let gap = " ".repeat(on - cut);
                let text = format!("{}{gap}{}", &self.text[from..*cut], &self.text[*on..end]);
                if self.check {
                    sql::embedded::check_statement(&text)
                        .map_err(|e| e.shift(crate::scan::position(self.text, from) - 1))?;
                }
                self.code_of(text.trim_end(), CodeKind::Statement)
            }
        };
        self.expect_sign(";")?;
        Ok(StmtKind::Sql(code, into.map(|i| i.2)))
    }

    fn get_diagnostics(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let stacked = self.skip("stacked");
        if !stacked {
            self.skip("current");
        }
        self.expect("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let position = self.here();
            let target = self.target(true)?;
            let info = &self.slots[usize::from(target.slot)];
            if target.path.is_empty() && info.kind != SlotKind::Scalar {
                let name = &info.name;
                return Err(err!(SYNTAX_ERROR, "\"{name}\" is not a scalar variable").at(position));
            }
            if !(self.skip_sign(":=") || self.skip_sign("=")) {
                return Err(self.syntax_error());
            }
            let name = self.token().text.clone();
            let item = diagnostic(&name);
            let Some(item) = item else {
                return Err(self.error_near("unrecognized GET DIAGNOSTICS item"));
            };
            let current = matches!(item, Diagnostic::RowCount | Diagnostic::Context);
            if current == stacked {
                let which = if stacked { "STACKED" } else { "CURRENT" };
                return Err(self.error(format_args!(
                    "diagnostics item {} is not allowed in GET {which} DIAGNOSTICS",
                    name.to_uppercase()
                )));
            }
            self.at += 1;
            items.push((item, target));
            if !self.skip_sign(",") {
                break;
            }
        }
        self.expect_sign(";")?;
        Ok(StmtKind::GetDiagnostics(stacked, items))
    }
}

fn diagnostic(name: &str) -> Option<Diagnostic> {
    Some(match name {
        "row_count" => Diagnostic::RowCount,
        "pg_context" => Diagnostic::Context,
        "pg_exception_context" => Diagnostic::ExceptionContext,
        "pg_exception_detail" => Diagnostic::Detail,
        "pg_exception_hint" => Diagnostic::Hint,
        "returned_sqlstate" => Diagnostic::State,
        "column_name" => Diagnostic::Column,
        "constraint_name" => Diagnostic::Constraint,
        "pg_datatype_name" => Diagnostic::DataType,
        "message_text" => Diagnostic::Message,
        "table_name" => Diagnostic::Table,
        "schema_name" => Diagnostic::Schema,
        _ => return None,
    })
}
