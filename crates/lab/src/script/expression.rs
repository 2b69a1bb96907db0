//! Expressions of `\set` and `\if`: their tree and their parser (precedence climbing).

use super::Program;
use super::Value;

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A literal.
    Constant(Value),
    /// The value in this slot.
    Variable(usize),
    /// An operator or function.
    Call(Function, Vec<Expression>),
    /// Pairs of condition and value, then the value otherwise.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
}

macro_rules! functions {
    ($($name:ident $text:literal $least:literal $most:literal $about:literal,)*) => {
        /// Operators and functions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $(#[doc = $about] $name,)* }

        /// Name as scripts write it, least and greatest number of arguments.
        const FUNCTIONS: &[(Function, &str, usize, usize)] =
            &[$((Function::$name, $text, $least, $most),)*];
    };
}

functions! {
    Add "+" 2 2 "`+`",
    Subtract "-" 2 2 "`-`",
    Multiply "*" 2 2 "`*`",
    Divide "/" 2 2 "`/`",
    Modulo "mod" 2 2 "`%`, `mod`",
    Equal "=" 2 2 "`=`",
    NotEqual "<>" 2 2 "`<>`, `!=`",
    Less "<" 2 2 "`<`",
    LessEqual "<=" 2 2 "`<=`",
    BitAnd "&" 2 2 "`&`",
    BitOr "|" 2 2 "`|`",
    BitXor "#" 2 2 "`#`",
    BitNot "~" 1 1 "`~`",
    ShiftLeft "<<" 2 2 "`<<`",
    ShiftRight ">>" 2 2 "`>>`",
    And "and" 2 2 "`AND`",
    Or "or" 2 2 "`OR`",
    Not "not" 1 1 "`NOT`",
    IsNull "isnull" 1 1 "`IS NULL`",
    IsTrue "istrue" 1 1 "`IS TRUE`",
    IsFalse "isfalse" 1 1 "`IS FALSE`",
    Abs "abs" 1 1 "absolute value",
    Debug "debug" 1 1 "its argument, printed on standard error",
    ToDouble "double" 1 1 "as float",
    ToInt "int" 1 1 "as integer",
    Exp "exp" 1 1 "e to that power",
    Ln "ln" 1 1 "natural logarithm",
    Sqrt "sqrt" 1 1 "square root",
    Power "power" 2 2 "power",
    Pi "pi" 0 0 "3.14…",
    Greatest "greatest" 1 99 "the largest",
    Least "least" 1 99 "the smallest",
    HashMurmur2 "hash_murmur2" 1 2 "MurmurHash2 of an integer, with a seed",
    HashFnv1a "hash_fnv1a" 1 2 "FNV-1a of an integer, with a seed",
    Random "random" 2 2 "uniform between two integers",
    RandomExponential "random_exponential" 3 3 "exponential between two integers",
    RandomGaussian "random_gaussian" 3 3 "a cut normal distribution between two integers",
    RandomZipfian "random_zipfian" 3 3 "Zipf's distribution between two integers",
}

/// Names that are another function's too.
const SYNONYMS: [(&str, &str); 4] =
    [("pow", "power"), ("hash", "hash_murmur2"), ("%", "mod"), ("!=", "<>")];

fn function(name: &str) -> Option<&'static (Function, &'static str, usize, usize)> {
    let name = SYNONYMS.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| to);
    FUNCTIONS.iter().find(|(_, text, ..)| *text == name)
}

/// Levels of nesting that a parenthesis or sign may open.
const DEEPEST: usize = 100;

/// Reads one whole expression.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(program: &mut Program, text: &str) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { program, tokens, at: 0, depth: 0 };
    let tree = parser.climb(0)?;
    match parser.peek() {
        None => Ok(tree),
        Some(token) => Err(format!("unexpected {token:?}")),
    }
}

/// Words are lower case; variables keep their colon.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
        let length = match first {
            ':' => 1 + rest[1..].find(|c| !word(c)).unwrap_or(rest.len() - 1),
            c if c.is_ascii_digit() || c == '.' => number_length(rest),
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if ["<=", ">=", "<>", "!=", "<<", ">>"].iter().any(|o| rest.starts_with(o)) => 2,
            c if "+-*/%=<>&|#~(),".contains(c) => 1,
            c => return Err(format!("unexpected character {c:?}")),
        };
        let token = &rest[..length];
        out.push(if first == ':' { token.to_owned() } else { token.to_lowercase() });
        rest = rest[length..].trim_start();
    }
    Ok(out)
}

/// `12`, `1.5`, `.5e-3`.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at = digits(at + 1 + sign);
        }
    }
    at
}

struct Parser<'a> {
    program: &'a mut Program,
    tokens: Vec<String>,
    at: usize,
    depth: usize,
}

/// How tightly a binary operator binds; they all associate to the left.
fn binding(operator: &str) -> Option<u8> {
    Some(match operator {
        "or" => 1,
        "and" => 2,
        "is" | "isnull" | "notnull" => 4,
        "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => 5,
        "|" | "#" | "&" | "<<" | ">>" => 6,
        "+" | "-" => 7,
        "*" | "/" | "%" => 8,
        _ => return None,
    })
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<String> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) {
            return Ok(());
        }
        match self.peek() {
            Some(found) => Err(format!("expected {token:?} before {found:?}")),
            None => Err(format!("expected {token:?} at the end")),
        }
    }

    fn climb(&mut self, least: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        let mut left = self.operand()?;
        while let Some(operator) = self.peek().map(str::to_owned) {
            let Some(strength) = binding(&operator).filter(|s| *s >= least) else { break };
            self.at += 1;
            left = match operator.as_str() {
                "is" => self.is(left)?,
                "isnull" => Expression::Call(Function::IsNull, vec![left]),
                "notnull" => not(Expression::Call(Function::IsNull, vec![left])),
                ">" | ">=" => {
                    let right = self.climb(strength + 1)?;
                    let name = if operator == ">" { Function::Less } else { Function::LessEqual };
                    Expression::Call(name, vec![right, left])
                }
                name => {
                    let right = self.climb(strength + 1)?;
                    call(name, vec![left, right])?
                }
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn is(&mut self, left: Expression) -> Result<Expression, String> {
        let negated = self.accept("not");
        let name = match self.next().as_deref() {
            Some("null") => Function::IsNull,
            Some("true") => Function::IsTrue,
            Some("false") => Function::IsFalse,
            _ => return Err("IS takes [NOT] NULL, TRUE or FALSE".to_owned()),
        };
        let test = Expression::Call(name, vec![left]);
        Ok(if negated { not(test) } else { test })
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let Some(token) = self.next() else {
            return Err("the expression ends too early".to_owned());
        };
        match token.as_str() {
            "(" => {
                let inner = self.climb(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            "+" => self.climb(9),
            "-" => self.negative(),
            "~" => Ok(Expression::Call(Function::BitNot, vec![self.climb(9)?])),
            "not" => Ok(not(self.climb(4)?)),
            "null" => Ok(Expression::Constant(Value::Null)),
            "true" | "false" => Ok(Expression::Constant(Value::Bool(token == "true"))),
            "case" => self.case(),
            name if name.starts_with(':') && name.len() > 1 => {
                Ok(Expression::Variable(self.program.slot(&name[1..])))
            }
            number if number.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                constant(number)
            }
            name => {
                if !self.accept("(") {
                    return Err(format!("unexpected {name:?}"));
                }
                let arguments = self.arguments()?;
                call(name, arguments)
            }
        }
    }

    /// The literal −2⁶³ has no positive counterpart, so a minus sign before a number belongs to it.
    fn negative(&mut self) -> Result<Expression, String> {
        match self.peek() {
            Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                let text = format!("-{number}");
                self.at += 1;
                constant(&text)
            }
            _ => {
                let zero = Expression::Constant(Value::Int(0));
                Ok(Expression::Call(Function::Subtract, vec![zero, self.climb(9)?]))
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, String> {
        let mut out = Vec::new();
        if self.accept(")") {
            return Ok(out);
        }
        loop {
            out.push(self.climb(0)?);
            if !self.accept(",") {
                self.expect(")")?;
                return Ok(out);
            }
        }
    }

    fn case(&mut self) -> Result<Expression, String> {
        let mut branches = Vec::new();
        while self.accept("when") {
            let condition = self.climb(0)?;
            self.expect("then")?;
            branches.push((condition, self.climb(0)?));
        }
        if branches.is_empty() {
            return Err("CASE without WHEN".to_owned());
        }
        let otherwise =
            if self.accept("else") { self.climb(0)? } else { Expression::Constant(Value::Null) };
        self.expect("end")?;
        Ok(Expression::Case(branches, Box::new(otherwise)))
    }
}

fn not(inner: Expression) -> Expression {
    Expression::Call(Function::Not, vec![inner])
}

fn call(name: &str, arguments: Vec<Expression>) -> Result<Expression, String> {
    let Some((function, _, least, most)) = function(name) else {
        return Err(match name {
            "permute" => "the function permute is not supported".to_owned(),
            _ => format!("there is no function {name:?}"),
        });
    };
    if !(*least..=*most).contains(&arguments.len()) {
        return Err(format!("{name} does not take {} arguments", arguments.len()));
    }
    Ok(Expression::Call(*function, arguments))
}

fn constant(text: &str) -> Result<Expression, String> {
    let value = match text.parse::<i64>() {
        Ok(value) => Value::Int(value),
        Err(_) if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            return Err(format!("{text} is too large for a 64-bit integer"));
        }
        Err(_) => Value::Double(text.parse().map_err(|_| format!("{text:?} is no number"))?),
    };
    Ok(Expression::Constant(value))
}
