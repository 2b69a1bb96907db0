//! Reading a path: tokens, then a descent by precedence.

use base::{Result, err};

use super::{Arithmetic, Comparison, Expr, Head, Method, Step};
use crate::datum::{Numeric, Text};

/// Nesting, at most: running a path recurses over it.
const MAX_DEPTH: usize = 200;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Variable(String),
    Number(String),
    /// A sign of one or two characters.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 29] = [
    "&&", "||", "==", "!=", "<>", "<=", ">=", "**", "$", "@", ".", "*", "[", "]", "(", ")", "{",
    "}", "?", "!", "=", "<", ">", "+", "-", "/", "%", ",", ":",
];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

#[cold]
fn syntax(what: &str) -> base::Error {
    err!(SYNTAX_ERROR, "{what} of jsonpath input")
}

#[cold]
fn near(token: &str) -> base::Error {
    if token.is_empty() {
        return syntax("syntax error at end");
    }
    syntax(&format!("syntax error at or near \"{token}\""))
}

fn is_special(c: char) -> bool {
    c.is_ascii_whitespace() || "?%$.[]{}()|&!=<>@#,*:-+/\"\\".contains(c)
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest().find("*/") {
                Some(end) => self.at += end + 2,
                None => return Err(syntax("unexpected end of comment at end")),
            }
        }
    }

    fn next(&mut self) -> Result<Token> {
        self.skip_blanks()?;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if first == '"' {
            return self.quoted().map(Token::Quoted);
        }
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
            return self.number();
        }
        if first == '$' {
            self.at += 1;
            let next = self.rest().chars().next();
            return Ok(match next {
                Some('"') => Token::Variable(self.quoted()?),
                Some(c) if !is_special(c) => Token::Variable(self.word()?),
                _ => Token::Sign("$"),
            });
        }
        if !is_special(first) || first == '\\' {
            return self.word().map(Token::Word);
        }
        let sign = SIGNS.iter().find(|s| rest.starts_with(**s));
        let sign = sign.ok_or_else(|| near(&first.to_string()))?;
        self.at += sign.len();
        Ok(Token::Sign(sign))
    }

    /// A number; letters must not follow it.
    fn number(&mut self) -> Result<Token> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut at = digits(start);
        if bytes.get(at) == Some(&b'.') {
            at = digits(at + 1);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let end = digits(at + 1 + sign);
            if end > at + 1 + sign {
                at = end;
            }
        }
        let leading_zero =
            bytes[start] == b'0' && bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
        let follows = self.text[at..].chars().next();
        if leading_zero || follows.is_some_and(|c| !is_special(c)) {
            let text = &self.text[start..at + follows.map_or(0, char::len_utf8)];
            return Err(syntax(&format!(
                "trailing junk after numeric literal at or near \"{text}\""
            )));
        }
        self.at = at;
        Ok(Token::Number(self.text[start..at].to_owned()))
    }

    fn word(&mut self) -> Result<String> {
        let mut out = String::new();
        while let Some(c) = self.rest().chars().next() {
            if c == '\\' {
                self.escape(&mut out)?;
            } else if is_special(c) {
                break;
            } else {
                out.push(c);
                self.at += c.len_utf8();
            }
        }
        Ok(out)
    }

    fn quoted(&mut self) -> Result<String> {
        let mut out = String::new();
        self.at += 1;
        loop {
            match self.rest().chars().next() {
                None => return Err(syntax("unexpected end of quoted string at end")),
                Some('"') => break,
                Some('\\') => self.escape(&mut out)?,
                Some(c) => {
                    out.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        self.at += 1;
        Ok(out)
    }

    /// The code unit of `\uXXXX` or `\u{…}`, after the u.
    fn unit(&mut self) -> Result<u32> {
        let bad = || syntax("invalid Unicode escape sequence at or near \"\\u\"");
        let rest = self.rest();
        let (digits, used) = match rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
            Some((digits, _)) => (digits, digits.len() + 2),
            None => (rest.get(..4).ok_or_else(bad)?, 4),
        };
        let unit = u32::from_str_radix(digits, 16).map_err(|_| bad())?;
        self.at += used;
        Ok(unit)
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            return Err(syntax("unexpected end after backslash at end"));
        };
        self.at += c.len_utf8();
        out.push(match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let digits = self.rest().get(..2).and_then(|d| u8::from_str_radix(d, 16).ok());
                let bad = || syntax("invalid hexadecimal character sequence at or near \"\\x\"");
                self.at += 2;
                char::from(digits.ok_or_else(bad)?)
            }
            'u' => {
                let mut unit = self.unit()?;
                if (0xd800..0xdc00).contains(&unit) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    unit = 0x10000 + ((unit & 0x3ff) << 10) + (self.unit()? & 0x3ff);
                }
                if unit == 0 {
                    return Err(err!(
                        UNTRANSLATABLE_CHARACTER,
                        "unsupported Unicode escape sequence"
                    )
                    .detail("\\u0000 cannot be converted to text."));
                }
                char::from_u32(unit).ok_or_else(|| {
                    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type jsonpath")
                })?
            }
            other => other,
        });
        Ok(())
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    depth: usize,
    /// Filters around: `@` is allowed.
    filters: usize,
    /// Subscripts around: `last` is allowed.
    subscripts: usize,
}

/// Reads a path: whether it is strict, and its expression.
pub(super) fn path(text: &str) -> Result<(bool, Expr)> {
    let mut p = Parser {
        lexer: Lexer { text, at: 0 },
        token: Token::End,
        depth: 0,
        filters: 0,
        subscripts: 0,
    };
    p.advance()?;
    if p.token == Token::End {
        return Err(crate::io::invalid_syntax("jsonpath", text));
    }
    let strict = p.is_word("strict");
    if strict || p.is_word("lax") {
        p.advance()?;
    }
    let expr = p.or()?;
    if p.token != Token::End {
        return Err(p.unexpected());
    }
    Ok((strict, expr))
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn unexpected(&self) -> base::Error {
        match &self.token {
            Token::Word(s) | Token::Quoted(s) | Token::Variable(s) | Token::Number(s) => near(s),
            Token::Sign(s) => near(s),
            Token::End => near(""),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(w) if w.eq_ignore_ascii_case(word))
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Sign(s) if *s == sign)
    }

    fn accept(&mut self, sign: &str) -> Result<bool> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if !self.is_word(word) {
            return Err(self.unexpected());
        }
        self.advance()
    }

    /// A predicate, where only one may stand.
    fn predicate(&self, e: Expr) -> Result<Box<Expr>> {
        if e.is_predicate() { Ok(Box::new(e)) } else { Err(self.unexpected()) }
    }

    /// A value, where no predicate may stand.
    fn value(&self, e: Expr) -> Result<Box<Expr>> {
        if e.is_predicate() { Err(self.unexpected()) } else { Ok(Box::new(e)) }
    }

    fn or(&mut self) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(crate::jsonb::too_deep());
        }
        let mut left = self.and()?;
        while self.is_sign("||") {
            let l = self.predicate(left)?;
            self.advance()?;
            let right = self.and()?;
            left = Expr::of(Head::Or(l, self.predicate(right)?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.comparison()?;
        while self.is_sign("&&") {
            let l = self.predicate(left)?;
            self.advance()?;
            let right = self.comparison()?;
            left = Expr::of(Head::And(l, self.predicate(right)?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expr> {
        let left = self.sum()?;
        let op = match &self.token {
            Token::Sign("==") => Comparison::Eq,
            Token::Sign("!=" | "<>") => Comparison::Ne,
            Token::Sign("<") => Comparison::Lt,
            Token::Sign("<=") => Comparison::Le,
            Token::Sign(">") => Comparison::Gt,
            Token::Sign(">=") => Comparison::Ge,
            _ if self.is_word("starts") => return self.starts_with(left),
            _ if self.is_word("like_regex") => return self.like_regex(left),
            _ => return Ok(left),
        };
        let l = self.value(left)?;
        self.advance()?;
        let right = self.sum()?;
        Ok(Expr::of(Head::Compare(op, l, self.value(right)?)))
    }

    fn starts_with(&mut self, left: Expr) -> Result<Expr> {
        let left = self.value(left)?;
        self.advance()?;
        self.expect_word("with")?;
        let head = match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(s) => Head::String(Text::from(s)),
            Token::Variable(s) => Head::Variable(Text::from(s)),
            other => {
                self.token = other;
                return Err(self.unexpected());
            }
        };
        self.advance()?;
        Ok(Expr::of(Head::StartsWith(left, Box::new(Expr::of(head)))))
    }

    fn string(&mut self) -> Result<String> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(s) => {
                self.advance()?;
                Ok(s)
            }
            other => {
                self.token = other;
                Err(self.unexpected())
            }
        }
    }

    fn like_regex(&mut self, left: Expr) -> Result<Expr> {
        let of = self.value(left)?;
        self.advance()?;
        let pattern = self.string()?;
        let mut given = String::new();
        if self.is_word("flag") {
            self.advance()?;
            given = self.string()?;
        }
        if let Some(c) = given.chars().find(|c| !"ismxq".contains(*c)) {
            return Err(err!(SYNTAX_ERROR, "invalid input syntax for type jsonpath")
                .detail(format!("Unrecognized flag character \"{c}\" in LIKE_REGEX predicate.")));
        }
        let flags: String = "ismxq".chars().filter(|c| given.contains(*c)).collect();
        super::eval::regex(&pattern, &flags)?;
        Ok(Expr::of(Head::LikeRegex { of, pattern: pattern.into(), flags }))
    }

    fn sum(&mut self) -> Result<Expr> {
        let mut left = self.product()?;
        loop {
            let op = match &self.token {
                Token::Sign("+") => Arithmetic::Add,
                Token::Sign("-") => Arithmetic::Sub,
                _ => return Ok(left),
            };
            let l = self.value(left)?;
            self.advance()?;
            let right = self.product()?;
            left = Expr::of(Head::Arithmetic(op, l, self.value(right)?));
        }
    }

    fn product(&mut self) -> Result<Expr> {
        let mut left = self.unary()?;
        loop {
            let op = match &self.token {
                Token::Sign("*") => Arithmetic::Mul,
                Token::Sign("/") => Arithmetic::Div,
                Token::Sign("%") => Arithmetic::Mod,
                _ => return Ok(left),
            };
            let l = self.value(left)?;
            self.advance()?;
            let right = self.unary()?;
            left = Expr::of(Head::Arithmetic(op, l, self.value(right)?));
        }
    }

    fn unary(&mut self) -> Result<Expr> {
        let minus = match &self.token {
            Token::Sign("-") => true,
            Token::Sign("+") => false,
            Token::Sign("!") => return self.negation(),
            _ => return self.postfix(),
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(crate::jsonb::too_deep());
        }
        self.advance()?;
        let of = self.unary()?;
        let of = self.value(of)?;
        self.depth -= 1;
        Ok(match of.head {
            Head::Number(n) if of.steps.is_empty() => {
                Expr::of(Head::Number(if minus { n.neg() } else { n }))
            }
            _ => Expr::of(Head::Sign { minus, of }),
        })
    }

    fn negation(&mut self) -> Result<Expr> {
        self.advance()?;
        if !self.is_sign("(") && !self.is_word("exists") {
            return Err(self.unexpected());
        }
        let of = self.primary()?;
        Ok(Expr::of(Head::Not(self.predicate(of)?)))
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut expr = self.primary()?;
        loop {
            let step = match &self.token {
                Token::Sign(".") => {
                    self.advance()?;
                    self.dot()?
                }
                Token::Sign("[") => {
                    self.advance()?;
                    self.subscript()?
                }
                Token::Sign("?") => {
                    self.advance()?;
                    self.expect("(")?;
                    self.filters += 1;
                    let condition = self.or()?;
                    self.filters -= 1;
                    let condition = *self.predicate(condition)?;
                    self.expect(")")?;
                    Step::Filter(condition)
                }
                _ => return Ok(expr),
            };
            expr.steps.push(step);
        }
    }

    fn dot(&mut self) -> Result<Step> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(key) => {
                self.advance()?;
                Ok(Step::Member(Text::from(key)))
            }
            Token::Word(word) => {
                self.advance()?;
                if !self.is_sign("(") {
                    return Ok(Step::Member(Text::from(word)));
                }
                if word.eq_ignore_ascii_case("datetime") {
                    self.advance()?;
                    let template = match &self.token {
                        Token::Quoted(template) => Some(Text::from(template.as_str())),
                        _ => None,
                    };
                    if template.is_some() {
                        self.advance()?;
                    }
                    self.expect(")")?;
                    return Ok(Step::Datetime(template));
                }
                let method = Method::named(&word).ok_or_else(|| near("("))?;
                self.advance()?;
                self.expect(")")?;
                Ok(Step::Method(method))
            }
            Token::Sign("*") => {
                self.advance()?;
                Ok(Step::AnyMember)
            }
            Token::Sign("**") => {
                self.advance()?;
                if !self.accept("{")? {
                    return Ok(Step::Descend(0, u32::MAX));
                }
                let first = self.level()?;
                let mut last = first;
                if self.is_word("to") {
                    self.advance()?;
                    last = self.level()?;
                }
                self.expect("}")?;
                Ok(Step::Descend(first, last))
            }
            other => {
                self.token = other;
                Err(self.unexpected())
            }
        }
    }

    fn level(&mut self) -> Result<u32> {
        let level = match &self.token {
            Token::Number(n) => n.parse::<u32>().ok(),
            _ if self.is_word("last") => Some(u32::MAX),
            _ => None,
        };
        let level = level.ok_or_else(|| self.unexpected())?;
        self.advance()?;
        Ok(level)
    }

    fn subscript(&mut self) -> Result<Step> {
        if self.accept("*")? {
            self.expect("]")?;
            return Ok(Step::AnyItem);
        }
        self.subscripts += 1;
        let mut items = Vec::new();
        loop {
            let from = self.sum()?;
            let from = *self.value(from)?;
            let mut to = None;
            if self.is_word("to") {
                self.advance()?;
                let end = self.sum()?;
                to = Some(*self.value(end)?);
            }
            items.push((from, to));
            if !self.accept(",")? {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Step::Items(items))
    }

    fn primary(&mut self) -> Result<Expr> {
        let head = match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(s) => Head::String(Text::from(s)),
            Token::Variable(s) => Head::Variable(Text::from(s)),
            Token::Number(n) => Head::Number(Numeric::parse(&n)?),
            Token::Sign("$") => Head::Root,
            Token::Sign("@") => {
                if self.filters == 0 {
                    return Err(err!(SYNTAX_ERROR, "@ is not allowed in root expressions"));
                }
                Head::Current
            }
            Token::Sign("(") => return self.parenthesis(),
            Token::Word(word) => match word.as_str() {
                "null" => Head::Null,
                "true" => Head::Bool(true),
                "false" => Head::Bool(false),
                w if w.eq_ignore_ascii_case("last") => {
                    if self.subscripts == 0 {
                        return Err(err!(SYNTAX_ERROR, "LAST is allowed only in array subscripts"));
                    }
                    Head::Last
                }
                w if w.eq_ignore_ascii_case("exists") => {
                    self.advance()?;
                    self.expect("(")?;
                    let of = self.or()?;
                    let of = self.value(of)?;
                    self.expect(")")?;
                    return Ok(Expr::of(Head::Exists(of)));
                }
                _ => {
                    self.token = Token::Word(word);
                    return Err(self.unexpected());
                }
            },
            other => {
                self.token = other;
                return Err(self.unexpected());
            }
        };
        self.advance()?;
        Ok(Expr::of(head))
    }

    fn parenthesis(&mut self) -> Result<Expr> {
        self.advance()?;
        let inner = self.or()?;
        self.expect(")")?;
        if inner.is_predicate() && self.is_word("is") {
            self.advance()?;
            self.expect_word("unknown")?;
            return Ok(Expr::of(Head::IsUnknown(Box::new(inner))));
        }
        Ok(inner)
    }
}
