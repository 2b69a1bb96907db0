//! Text queries over paths: `Europe & Russia*@ & !Transportation`. A query is kept as it is computed: operands before
//! their operator.

use std::any::Any;

use base::{Oid, Result, err};
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use super::lquery::Flags;
use super::{Ltree, is_letter, received};

#[derive(Clone, Debug)]
enum Step {
    Word(String, Flags),
    Not,
    And,
    Or,
}

/// A query.
#[derive(Debug)]
pub(super) struct LTxtQuery {
    ty: Oid,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Word,
    Or,
    Other,
}

impl LTxtQuery {
    pub(super) fn text(&self) -> String {
        let mut stack: Vec<(String, Form)> = Vec::new();
        for step in &self.steps {
            let next = match step {
                Step::Word(word, flags) => (format!("{word}{}", flags.text()), Form::Word),
                Step::Not => match stack.pop() {
                    Some((text, Form::Word)) => (format!("!{text}"), Form::Other),
                    Some((text, _)) => (format!("!( {text} )"), Form::Other),
                    None => continue,
                },
                Step::And | Step::Or => {
                    let (Some(b), Some(a)) = (stack.pop(), stack.pop()) else { continue };
                    let inside = |(text, form): (String, Form)| match form {
                        Form::Or => format!("( {text} )"),
                        _ => text,
                    };
                    let is_or = matches!(step, Step::Or);
                    let (sign, form) = if is_or { ('|', Form::Or) } else { ('&', Form::Other) };
                    (format!("{} {sign} {}", inside(a), inside(b)), form)
                }
            };
            stack.push(next);
        }
        stack.pop().map(|(text, _)| text).unwrap_or_default()
    }

    pub(super) fn matches(&self, path: &Ltree) -> bool {
        let mut stack = Vec::new();
        for step in &self.steps {
            match step {
                Step::Word(word, flags) => {
                    stack.push(path.labels.iter().any(|label| flags.fit(word, label)));
                }
                Step::Not => {
                    let of = stack.pop().unwrap_or_default();
                    stack.push(!of);
                }
                Step::And | Step::Or => {
                    let b = stack.pop().unwrap_or_default();
                    let a = stack.pop().unwrap_or_default();
                    stack.push(if matches!(step, Step::And) { a && b } else { a || b });
                }
            }
        }
        stack.pop().unwrap_or_default()
    }
}

impl OpenValue for LTxtQuery {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.push(1);
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }

    fn heap_bytes(&self) -> usize {
        size_of::<LTxtQuery>() + self.steps.len() * 64
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) struct LTxtQueryType;

impl OpenType for LTxtQueryType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ok(Datum::open(LTxtQuery { ty, steps: parse(text)? }))
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
        self.input(ty, -1, received("ltxtquery", bytes)?, cx)
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let steps = parse(std::str::from_utf8(bytes).ok()?).ok()?;
        Some(Datum::open(LTxtQuery { ty, steps }))
    }
}

/// Words at once, operators when what binds less comes (E. Dijkstra's shunting yard).
fn parse(text: &str) -> Result<Vec<Step>> {
    let wrong = || err!(SYNTAX_ERROR, "syntax error");
    let mut out = Vec::new();
    // Operators with how strongly they bind, and None for an open parenthesis.
    let mut waiting: Vec<Option<(u8, Step)>> = Vec::new();
    let mut wants_word = true;
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        match (first, wants_word) {
            (c, _) if c.is_whitespace() => {}
            ('!', true) => waiting.push(Some((3, Step::Not))),
            ('(', true) => waiting.push(None),
            (c, true) if is_letter(c) => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| is_letter(*c)) {
                    word.push(c);
                }
                let mut flags = Flags::default();
                while chars.peek().is_some_and(|c| flags.note(*c)) {
                    chars.next();
                }
                if !flags.text().is_empty() && chars.peek().is_some_and(|c| is_letter(*c)) {
                    return Err(err!(SYNTAX_ERROR, "modifiers syntax error"));
                }
                out.push(Step::Word(word, flags));
                wants_word = false;
            }
            (_, true) => return Err(err!(SYNTAX_ERROR, "operand syntax error")),
            ('&' | '|', false) => {
                let (binds, own) = if first == '&' { (2, Step::And) } else { (1, Step::Or) };
                while let Some(Some((other, _))) = waiting.last() {
                    if *other < binds {
                        break;
                    }
                    out.extend(waiting.pop().flatten().map(|(_, step)| step));
                }
                waiting.push(Some((binds, own)));
                wants_word = true;
            }
            (')', false) => loop {
                match waiting.pop().ok_or_else(wrong)? {
                    Some((_, step)) => out.push(step),
                    None => break,
                }
            },
            _ => return Err(wrong()),
        }
    }
    if wants_word {
        return Err(err!(SYNTAX_ERROR, "operand syntax error"));
    }
    while let Some(step) = waiting.pop() {
        out.push(step.ok_or_else(wrong)?.1);
    }
    Ok(out)
}
