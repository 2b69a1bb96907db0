//! Queries as they are written: `a & !(b | c:*A) <-> d`, and the forgiving form of `websearch_to_tsquery`.

use base::{Result, err};
use types::Text;

use crate::lexer::Lexer;
use crate::query::{Builder, MAX_DISTANCE, Node, Operand, TsQuery};
use crate::vector::MAX_LEXEME_BYTES;

/// The maker of nodes of a word of the query; None: nothing, not even a stop.
pub type OperandMaker<'a> = dyn FnMut(&mut Builder, &str, u8, bool) -> Result<Option<u32>> + 'a;

/// Reads a literal of `tsquery`.
///
/// # Errors
/// `42601` and kin.
pub fn query(text: &str) -> Result<TsQuery> {
    let mut plain = |builder: &mut Builder, word: &str, weights, prefix| {
        if word.len() > MAX_LEXEME_BYTES {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "word is too long in tsquery: \"{text}\""));
        }
        let word = Text::from(word);
        Ok(Some(builder.push(Node::Value(Operand { word, weights, prefix }))))
    };
    let (builder, root) = standard(text, &mut plain)?;
    if root.is_none() {
        types::user::notice(err!(
            SUCCESSFUL_COMPLETION,
            "text-search query doesn't contain lexemes: \"{text}\""
        ));
    }
    Ok(builder.finish(root))
}

/// An operator that waits for its right operand, or an open parenthesis.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Open,
    Or,
    And,
    Phrase(u16),
    Not,
}

impl Pending {
    fn priority(self) -> u8 {
        match self {
            Pending::Open => 0,
            Pending::Or => 1,
            Pending::And => 2,
            Pending::Phrase(_) => 3,
            Pending::Not => 4,
        }
    }
}

/// Operands and operators as they come, joined by priority.
#[derive(Default)]
pub struct Stack {
    /// The nodes so far.
    pub builder: Builder,
    operands: Vec<Option<u32>>,
    pending: Vec<Pending>,
}

impl Stack {
    fn reduce(&mut self) {
        let Some(operator) = self.pending.pop() else { return };
        let right = self.operands.pop().flatten();
        let node = match operator {
            Pending::Open => return,
            Pending::Not => right.map(|a| self.builder.push(Node::Not(a))),
            _ => {
                let left = self.operands.pop().flatten();
                match (left, right) {
                    (Some(a), Some(b)) => Some(self.builder.push(match operator {
                        Pending::Or => Node::Or(a, b),
                        Pending::And => Node::And(a, b),
                        Pending::Phrase(n) => Node::Phrase(a, b, n),
                        _ => return,
                    })),
                    (a, b) => a.or(b),
                }
            }
        };
        self.operands.push(node);
    }

    fn operator(&mut self, operator: Pending) {
        while self.pending.last().is_some_and(|p| p.priority() >= operator.priority()) {
            self.reduce();
        }
        self.pending.push(operator);
    }

    fn close(&mut self) -> bool {
        while self.pending.last().is_some_and(|p| *p != Pending::Open) {
            self.reduce();
        }
        self.pending.pop().is_some()
    }

    fn finish(mut self) -> (Builder, Option<u32>) {
        while !self.pending.is_empty() {
            self.reduce();
        }
        let root = self.operands.pop().flatten();
        (self.builder, root)
    }
}

/// Reads a query whose words become nodes by `make`; the root is None for a query of nothing.
///
/// # Errors
/// `42601` and those of `make`.
pub fn standard(text: &str, make: &mut OperandMaker<'_>) -> Result<(Builder, Option<u32>)> {
    let syntax = || err!(SYNTAX_ERROR, "syntax error in tsquery: \"{text}\"");
    let mut lexer = Lexer::new(text);
    let mut stack = Stack::default();
    let mut begun = false;
    loop {
        // An operand.
        loop {
            sched::check_interrupts()?;
            lexer.skip_blanks();
            match lexer.peek() {
                None if !begun => return Ok(stack.finish()),
                None => return Err(err!(SYNTAX_ERROR, "no operand in tsquery: \"{text}\"")),
                Some('!') => {
                    lexer.next();
                    stack.pending.push(Pending::Not);
                }
                Some('(') => {
                    lexer.next();
                    stack.pending.push(Pending::Open);
                }
                Some(_) => break,
            }
            begun = true;
        }
        begun = true;
        let word = lexer.word(true).map_err(|e| e.error("tsquery", text))?.ok_or_else(syntax)?;
        let (weights, prefix) = flags(&mut lexer);
        let node = make(&mut stack.builder, &word, weights, prefix)?;
        stack.operands.push(node);
        // The operators that follow it.
        loop {
            lexer.skip_blanks();
            match lexer.next() {
                None => {
                    if stack.pending.contains(&Pending::Open) {
                        return Err(syntax());
                    }
                    return Ok(stack.finish());
                }
                Some('&') => stack.operator(Pending::And),
                Some('|') => stack.operator(Pending::Or),
                Some('<') => {
                    let distance = distance(&mut lexer)?.ok_or_else(syntax)?;
                    stack.operator(Pending::Phrase(distance));
                }
                Some(')') => {
                    if !stack.close() {
                        return Err(syntax());
                    }
                    continue;
                }
                Some(_) => return Err(syntax()),
            }
            break;
        }
    }
}

/// `:*AB` behind a word.
fn flags(lexer: &mut Lexer<'_>) -> (u8, bool) {
    let (mut weights, mut prefix) = (0, false);
    if lexer.eat(':') {
        loop {
            match lexer.peek() {
                Some('a' | 'A') => weights |= 8,
                Some('b' | 'B') => weights |= 4,
                Some('c' | 'C') => weights |= 2,
                Some('d' | 'D') => weights |= 1,
                Some('*') => prefix = true,
                _ => break,
            }
            lexer.next();
        }
    }
    (weights, prefix)
}

/// `->` or `5>`, behind the `<`.
fn distance(lexer: &mut Lexer<'_>) -> Result<Option<u16>> {
    if lexer.eat('-') {
        return Ok(lexer.eat('>').then_some(1));
    }
    let digits = lexer.digits();
    if digits.is_empty() {
        return Ok(None);
    }
    let number = digits.parse().ok().filter(|n| *n <= MAX_DISTANCE);
    let Some(number) = number else {
        return Err(bad_distance());
    };
    Ok(lexer.eat('>').then_some(number))
}

/// The error of a distance that is out of range.
pub fn bad_distance() -> base::Error {
    err!(
        INVALID_PARAMETER_VALUE,
        "distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} inclusive"
    )
}

/// Reads what people type into search boxes: words, `"phrases"`, `or`, `-` for not. Whatever else there is
/// stands between words.
///
/// # Errors
/// Those of `make`.
pub fn websearch(text: &str, make: &mut OperandMaker<'_>) -> Result<(Builder, Option<u32>)> {
    let chars: Vec<char> = text.chars().collect();
    let mut stack = Stack::default();
    let mut at = 0;
    // The operator that joins the next operand to the one before.
    let mut join = None;
    // An operator waits for its operand: then `or` is a word.
    let mut waits = true;
    while at < chars.len() {
        sched::check_interrupts()?;
        let c = chars[at];
        if !waits && is_or(&chars, at) {
            at += 2;
            join = Some(Pending::Or);
            waits = true;
            continue;
        }
        let nots = chars[at..].iter().take_while(|c| **c == '-').count();
        if c == '-' {
            at += nots;
            if chars[at..].iter().all(|c| is_separator(*c)) {
                continue;
            }
            if let Some(operator) =
                join.replace(Pending::And).filter(|_| !stack.operands.is_empty())
            {
                stack.operator(operator);
            }
            join = None;
            (0..nots).for_each(|_| stack.pending.push(Pending::Not));
            waits = true;
            continue;
        }
        let phrase = c == '"';
        if !phrase && is_separator(c) && c != ':' {
            at += 1;
            continue;
        }
        let start = at + usize::from(phrase);
        let inside = |c: &&char| if phrase { **c != '"' } else { !is_separator(**c) && **c != '"' };
        // The first character of a word may be a colon.
        let first = usize::from(c == ':');
        let len = first + chars[start + first..].iter().take_while(inside).count();
        at = start + len + usize::from(phrase);
        let word: String = chars[start..start + len].iter().collect();
        if let Some(operator) = join {
            stack.operator(operator);
        }
        let node = make(&mut stack.builder, &word, 0, false)?;
        stack.operands.push(node);
        join = Some(Pending::And);
        waits = false;
    }
    if stack.operands.is_empty() {
        stack.pending.clear();
    }
    Ok(stack.finish())
}

/// Whether a character stands between words of a web search.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '!' | '&' | '|' | '(' | ')' | ':')
}

/// `or` as a word of its own with something behind it.
fn is_or(chars: &[char], at: usize) -> bool {
    let letter = |n: usize| chars.get(at + n).map(char::to_ascii_lowercase);
    letter(0) == Some('o')
        && letter(1) == Some('r')
        && chars.get(at + 2).is_some_and(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_'))
        && chars[at + 2..].iter().any(|c| !c.is_whitespace())
}
