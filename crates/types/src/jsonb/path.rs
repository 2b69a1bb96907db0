//! The SQL/JSON path language (SQL:2016, part 6; the manual, section 9.16.2): its syntax tree and
//! its normal text.
//!
//! ```text
//! lax $.a[*] ? (@.b > 1).size() + 1
//!     head ─ steps ─────────────┘
//! ```
//!
//! A path is an expression: a head (`$`, a literal, an operator …) and steps that are taken from it
//! one after the other. [`eval`] runs it.

pub mod eval;
mod parse;

use base::Result;

use crate::datum::{Numeric, Text};
use crate::json;

/// A whole path.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Errors of structure count.
    pub strict: bool,
    /// The path's expression.
    pub expr: Expr,
    text: String,
}

/// A head and the steps from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Where it starts.
    pub head: Head,
    /// Where it goes.
    pub steps: Vec<Step>,
}

/// See [`Expr`].
#[derive(Clone, Debug, PartialEq)]
pub enum Head {
    /// null.
    Null,
    /// true, false.
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(Text),
    /// `$`.
    Root,
    /// `@`.
    Current,
    /// `last`.
    Last,
    /// `$name`.
    Variable(Text),
    /// Arithmetic.
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `-x`, `+x`.
    Sign {
        /// Minus.
        minus: bool,
        /// Of what.
        of: Box<Expr>,
    },
    /// A comparison.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `&&`.
    And(Box<Expr>, Box<Expr>),
    /// `||`.
    Or(Box<Expr>, Box<Expr>),
    /// `!(…)`.
    Not(Box<Expr>),
    /// `(…) is unknown`.
    IsUnknown(Box<Expr>),
    /// `exists (…)`.
    Exists(Box<Expr>),
    /// `x starts with y`.
    StartsWith(Box<Expr>, Box<Expr>),
    /// `x like_regex "…" flag "…"`.
    LikeRegex {
        /// The text that is matched.
        of: Box<Expr>,
        /// The pattern.
        pattern: Text,
        /// Flags, of `ismxq`, in this order.
        flags: String,
    },
}

/// `+ - * / %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `%`.
    Mod,
}

impl Arithmetic {
    /// Its sign.
    pub fn sign(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Sub => '-',
            Arithmetic::Mul => '*',
            Arithmetic::Div => '/',
            Arithmetic::Mod => '%',
        }
    }
}

/// `== != < <= > >=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`.
    Eq,
    /// `!=`, `<>`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
}

impl Comparison {
    /// Whether it holds of two that are in this order.
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.key`.
    Member(Text),
    /// `.*`.
    AnyMember,
    /// `[*]`.
    AnyItem,
    /// `[1, 2 to last]`.
    Items(Vec<(Expr, Option<Expr>)>),
    /// `.**{first to last}`; [`u32::MAX`] is `last`.
    Descend(u32, u32),
    /// `? (…)`.
    Filter(Expr),
    /// `.name()`.
    Method(Method),
    /// `.datetime()`, with a template or without.
    Datetime(Option<Text>),
}

/// Methods of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `type`.
    Type,
    /// `size`.
    Size,
    /// `abs`.
    Abs,
    /// `floor`.
    Floor,
    /// `ceiling`.
    Ceiling,
    /// `double`.
    Double,
    /// `keyvalue`.
    KeyValue,
}

impl Method {
    const ALL: [(Method, &'static str); 7] = [
        (Method::Type, "type"),
        (Method::Size, "size"),
        (Method::Abs, "abs"),
        (Method::Floor, "floor"),
        (Method::Ceiling, "ceiling"),
        (Method::Double, "double"),
        (Method::KeyValue, "keyvalue"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Method::ALL.iter().find(|(m, _)| *m == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<Method> {
        Method::ALL.iter().find(|(_, n)| name.eq_ignore_ascii_case(n)).map(|(m, _)| *m)
    }
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// `42601`, `22P02`, `2201B` for a bad regular expression, `54001` nested too deeply.
    pub fn parse(text: &str) -> Result<Path> {
        let (strict, expr) = parse::path(text)?;
        let mut out = Vec::new();
        if strict {
            out.extend_from_slice(b"strict ");
        }
        expr.write(true, &mut out);
        Ok(Path { strict, expr, text: String::from_utf8_lossy(&out).into_owned() })
    }

    /// Its normal text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Head {
    /// How tightly it binds.
    fn priority(&self) -> u8 {
        match self {
            Head::Or(..) => 0,
            Head::And(..) => 1,
            Head::Compare(..) | Head::StartsWith(..) => 2,
            Head::Arithmetic(Arithmetic::Add | Arithmetic::Sub, ..) => 3,
            Head::Arithmetic(..) => 4,
            Head::Sign { .. } => 5,
            _ => 6,
        }
    }

    /// Whether it is true, false or unknown.
    fn is_predicate(&self) -> bool {
        matches!(
            self,
            Head::Compare(..)
                | Head::And(..)
                | Head::Or(..)
                | Head::Not(_)
                | Head::IsUnknown(_)
                | Head::Exists(_)
                | Head::StartsWith(..)
                | Head::LikeRegex { .. }
        )
    }
}

impl Expr {
    fn of(head: Head) -> Expr {
        Expr { head, steps: Vec::new() }
    }

    fn is_predicate(&self) -> bool {
        self.steps.is_empty() && self.head.is_predicate()
    }

    /// An operand within an operator of this priority.
    fn write_operand(&self, priority: u8, out: &mut Vec<u8>) {
        self.write(self.head.priority() <= priority, out);
    }

    fn write_binary(&self, sign: &str, l: &Expr, r: &Expr, brackets: bool, out: &mut Vec<u8>) {
        let priority = self.head.priority();
        if brackets {
            out.push(b'(');
        }
        l.write_operand(priority, out);
        out.extend_from_slice(format!(" {sign} ").as_bytes());
        r.write_operand(priority, out);
        if brackets {
            out.push(b')');
        }
    }

    fn write(&self, brackets: bool, out: &mut Vec<u8>) {
        match &self.head {
            Head::Null => out.extend_from_slice(b"null"),
            Head::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            Head::Number(n) if self.steps.is_empty() => n.write(out),
            Head::Number(n) => {
                out.push(b'(');
                n.write(out);
                out.push(b')');
            }
            Head::String(s) => json::write_string(s, out),
            Head::Root => out.push(b'$'),
            Head::Current => out.push(b'@'),
            Head::Last => out.extend_from_slice(b"last"),
            Head::Variable(name) => {
                out.push(b'$');
                json::write_string(name, out);
            }
            Head::Arithmetic(op, l, r) => {
                self.write_binary(op.sign().encode_utf8(&mut [0; 4]), l, r, brackets, out);
            }
            Head::Compare(op, l, r) => self.write_binary(op.sign(), l, r, brackets, out),
            Head::And(l, r) => self.write_binary("&&", l, r, brackets, out),
            Head::Or(l, r) => self.write_binary("||", l, r, brackets, out),
            Head::StartsWith(l, r) => self.write_binary("starts with", l, r, brackets, out),
            Head::Sign { minus, of } => {
                if brackets {
                    out.push(b'(');
                }
                out.push(if *minus { b'-' } else { b'+' });
                of.write_operand(5, out);
                if brackets {
                    out.push(b')');
                }
            }
            Head::Not(of) => {
                out.extend_from_slice(b"!(");
                of.write(false, out);
                out.push(b')');
            }
            Head::IsUnknown(of) => {
                out.push(b'(');
                of.write(false, out);
                out.extend_from_slice(b") is unknown");
            }
            Head::Exists(of) => {
                out.extend_from_slice(b"exists (");
                of.write(false, out);
                out.push(b')');
            }
            Head::LikeRegex { of, pattern, flags } => {
                if brackets {
                    out.push(b'(');
                }
                of.write_operand(6, out);
                out.extend_from_slice(b" like_regex ");
                json::write_string(pattern, out);
                if !flags.is_empty() {
                    out.extend_from_slice(format!(" flag \"{flags}\"").as_bytes());
                }
                if brackets {
                    out.push(b')');
                }
            }
        }
        self.steps.iter().for_each(|s| s.write(out));
    }
}

impl Step {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Step::Member(key) => {
                out.push(b'.');
                json::write_string(key, out);
            }
            Step::AnyMember => out.extend_from_slice(b".*"),
            Step::AnyItem => out.extend_from_slice(b"[*]"),
            Step::Items(items) => {
                out.push(b'[');
                for (i, (from, to)) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    from.write(false, out);
                    if let Some(to) = to {
                        out.extend_from_slice(b" to ");
                        to.write(false, out);
                    }
                }
                out.push(b']');
            }
            Step::Descend(first, last) => {
                let level = |n: u32| match n {
                    u32::MAX => "last".to_owned(),
                    n => n.to_string(),
                };
                let text = match (*first, *last) {
                    (0, u32::MAX) => ".**".to_owned(),
                    (a, b) if a == b => format!(".**{{{}}}", level(a)),
                    (a, b) => format!(".**{{{} to {}}}", level(a), level(b)),
                };
                out.extend_from_slice(text.as_bytes());
            }
            Step::Filter(of) => {
                out.extend_from_slice(b"?(");
                of.write(false, out);
                out.push(b')');
            }
            Step::Method(m) => out.extend_from_slice(format!(".{}()", m.name()).as_bytes()),
            Step::Datetime(template) => {
                out.extend_from_slice(b".datetime(");
                if let Some(template) = template {
                    json::write_string(template, out);
                }
                out.push(b')');
            }
        }
    }
}
