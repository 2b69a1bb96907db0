//! Cursors: OPEN, FETCH, MOVE, CLOSE.

use base::{Result, err};
use sql::utility::FetchHow;
use types::oids;

use super::Parser;
use crate::program::*;
use crate::scan::Kind;

impl Parser<'_, '_> {
    /// The cursor variable that the next token names.
    fn cursor_variable(&mut self) -> Result<Slot> {
        let position = self.here();
        let Some((slot, width, fields)) = self.variable_here() else {
            if !self.token().is_name() {
                return Err(self.syntax_error());
            }
            let name = &self.token().text;
            return Err(err!(SYNTAX_ERROR, "\"{name}\" is not a known variable").at(position));
        };
        let info = &self.slots[usize::from(slot)];
        if !fields.is_empty() || info.kind != SlotKind::Scalar {
            return Err(
                err!(DATATYPE_MISMATCH, "cursor variable must be a simple variable").at(position)
            );
        }
        if info.ty != oids::REFCURSOR {
            return Err(err!(
                DATATYPE_MISMATCH,
                "variable \"{}\" must be of type cursor or refcursor",
                info.name
            )
            .at(position));
        }
        self.at += width;
        Ok(slot)
    }

    pub(super) fn open(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let slot = self.cursor_variable()?;
        if self.cursor_of(slot).is_some() {
            let args = self.cursor_arguments(slot)?;
            self.expect_sign(";")?;
            return Ok(StmtKind::Open(slot, args));
        }
        let scroll = if self.skip("no") {
            self.expect("scroll")?;
            Some(false)
        } else {
            self.skip("scroll").then_some(true)
        };
        self.expect("for")?;
        let source = self.source(&[";"])?;
        if let Source::Query(code) = source {
            self.codes[code].kind = CodeKind::Cursor;
        }
        self.expect_sign(";")?;
        Ok(StmtKind::OpenFor(slot, scroll, source))
    }

    /// `(value, name := value, …)` for a bound cursor's parameters, in their order.
    pub(super) fn cursor_arguments(&mut self, slot: Slot) -> Result<Vec<CodeId>> {
        let Some(info) = self.cursor_of(slot) else { return Ok(Vec::new()) };
        let name = self.slots[usize::from(slot)].name.clone();
        if info.params.is_empty() {
            if self.token().is_sign("(") {
                return Err(self.error(format_args!("cursor \"{name}\" has no arguments")));
            }
            return Ok(Vec::new());
        }
        if !self.skip_sign("(") {
            return Err(self.error(format_args!("cursor \"{name}\" has arguments")));
        }
        let mut given: Vec<Option<CodeId>> = vec![None; info.params.len()];
        for n in 0..info.params.len() {
            let mut at = n;
            let named = self.token().is_name()
                && (self.ahead(1).is_sign(":=") || self.ahead(1).is_sign("=>"));
            if named {
                let position = self.here();
                let argument = self.identifier()?;
                self.at += 1;
                let known =
                    info.params.iter().position(|p| self.slots[usize::from(*p)].name == argument);
                let Some(found) = known else {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "cursor \"{name}\" has no argument named \"{argument}\""
                    )
                    .at(position));
                };
                at = found;
            }
            if given[at].is_some() {
                let argument = &self.slots[usize::from(info.params[at])].name;
                return Err(self.error(format_args!(
                    "value for parameter \"{argument}\" of cursor \"{name}\" specified more than once"
                )));
            }
            let param = &self.slots[usize::from(info.params[at])];
            let target = match param.kind {
                SlotKind::Scalar => Some((param.ty, param.typmod)),
                _ => None,
            };
            let value = self.typed_expression(&[",", ")"], CodeKind::Expression, target)?;
            given[at] = Some(value);
            let last = n + 1 == info.params.len();
            if self.token().is_sign(")") && !last {
                return Err(self.error(format_args!("not enough arguments for cursor \"{name}\"")));
            }
            if self.token().is_sign(",") && last {
                return Err(self.error(format_args!("too many arguments for cursor \"{name}\"")));
            }
            self.at += 1;
        }
        Ok(given.into_iter().flatten().collect())
    }

    pub(super) fn fetch(&mut self) -> Result<StmtKind> {
        let position = self.here();
        self.at += 1;
        let go = self.direction()?;
        let slot = self.cursor_variable()?;
        if !self.skip("into") {
            return Err(self.syntax_error());
        }
        let targets = self.targets()?;
        let many = match &go {
            Go::Fixed(FetchHow::Forward(rows) | FetchHow::Backward(rows)) => *rows != Some(1),
            Go::Forward(_) | Go::Backward(_) => true,
            _ => false,
        };
        if many {
            return Err(err!(FEATURE_NOT_SUPPORTED, "FETCH statement cannot return multiple rows")
                .at(position));
        }
        self.expect_sign(";")?;
        Ok(StmtKind::Fetch(slot, go, targets))
    }

    pub(super) fn move_cursor(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let go = self.direction()?;
        let slot = self.cursor_variable()?;
        self.expect_sign(";")?;
        Ok(StmtKind::Move(slot, go))
    }

    /// NEXT, PRIOR … with FROM or IN.
    fn direction(&mut self) -> Result<Go> {
        let words = [
            "next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward",
            "from", "in",
        ];
        let word = match self.token().kind {
            Kind::Word
                if self.variable_here().is_none() || words.contains(&&*self.token().text) =>
            {
                self.token().text.clone()
            }
            _ => String::new(),
        };
        // A cursor may have the name of a direction.
        let alone = self.ahead(1).is_sign(";") || self.ahead(1).is("into");
        if alone && self.variable_here().is_some() {
            return Ok(Go::Fixed(FetchHow::Forward(Some(1))));
        }
        let go = match word.as_str() {
            "next" => self.fixed(FetchHow::Forward(Some(1))),
            "prior" => self.fixed(FetchHow::Backward(Some(1))),
            "first" => self.fixed(FetchHow::Absolute(1)),
            "last" => self.fixed(FetchHow::Absolute(-1)),
            "all" => self.fixed(FetchHow::Forward(None)),
            "absolute" => {
                self.at += 1;
                Go::Absolute(self.count()?)
            }
            "relative" => {
                self.at += 1;
                Go::Relative(self.count()?)
            }
            "forward" | "backward" => {
                self.at += 1;
                let forward = word == "forward";
                let fixed = |rows| match forward {
                    true => Go::Fixed(FetchHow::Forward(rows)),
                    false => Go::Fixed(FetchHow::Backward(rows)),
                };
                if self.is("from") || self.is("in") {
                    fixed(Some(1))
                } else if self.skip("all") {
                    fixed(None)
                } else if self.variable_here().is_some()
                    && (self.ahead(1).is_sign(";") || self.ahead(1).is("into"))
                {
                    return Ok(fixed(Some(1)));
                } else {
                    let count = self.count()?;
                    if forward { Go::Forward(count) } else { Go::Backward(count) }
                }
            }
            "from" | "in" => Go::Fixed(FetchHow::Forward(Some(1))),
            "" => return Ok(Go::Fixed(FetchHow::Forward(Some(1)))),
            _ if self.token().kind == Kind::Number => Go::Forward(self.count()?),
            _ => return Ok(Go::Fixed(FetchHow::Forward(Some(1)))),
        };
        if !(self.skip("from") || self.skip("in")) && self.variable_here().is_none() {
            return Err(self.error_near("expected FROM or IN"));
        }
        Ok(go)
    }

    fn fixed(&mut self, how: FetchHow) -> Go {
        self.at += 1;
        Go::Fixed(how)
    }

    fn count(&mut self) -> Result<CodeId> {
        self.typed_expression(&["from", "in"], CodeKind::Expression, Some((oids::INT4, -1)))
    }

    pub(super) fn close(&mut self) -> Result<StmtKind> {
        self.at += 1;
        let slot = self.cursor_variable()?;
        self.expect_sign(";")?;
        Ok(StmtKind::Close(slot))
    }
}
