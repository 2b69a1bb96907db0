//! Chains of thousands of operators, casts and set operations, which the grammar's library refuses.
//!
//! `1 + 1 + 1 …` is a tree as deep as it is long, and the library hands over trees of a limited depth. Its
//! grammar is not the limit, so a long chain is parsed in pieces: all that is left of an operator of the
//! chain's lowest precedence is that operator's left operand, and can be parsed alone.
//!
//! ```text
//! select a + b + c + d + e from t
//!        a + b                      piece 0
//!        $0    + c + d              piece 1
//!        $1            + e          the rest
//! ```
//!
//! A piece's place is taken by a parameter that no client can have, and blanks: what is parsed has every token
//! where the text has it, so positions stay true. [`crate::graft`] puts the trees together again.
//!
//! `NOT NOT NOT … x` hangs the other way: what stands behind a `NOT` is its operand, up to the end of the
//! expression.
//!
//! Whatever isn't understood here (signs before an operand, `IS` in a chain) is left to the library as it is, with
//! its limit; so is a text of which a piece is wrong.

use std::ops::Range;

use pg_query::protobuf::{KeywordKind, ScanToken, Token};

/// Longest chain that is parsed in one piece.
const CHAIN_MAX: usize = 300;
/// From this number on PostgreSQL's grammar says "memory exhausted", and so does the library.
const NOTS_MAX: usize = 9_990;
/// Operators in a piece.
const PIECE: usize = 200;
/// Bytes that the pieces may have in all, each counted with what is before it.
const BYTES_MAX: usize = 256 << 20;

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Expression,
    Query,
}

/// A part of the text that is to be parsed alone. Cuts that lie within a cut come before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    pub range: Range<usize>,
    pub kind: Kind,
}

/// Where a text can be cut; empty: nowhere, or it needn't be.
pub(crate) fn cuts(text: &str) -> Vec<Cut> {
    let Ok(tokens) = pg_query::scan_tokens(text) else { return Vec::new() };
    let mut scan = Scan { levels: vec![Level::default()], cuts: Vec::new() };
    tokens.iter().for_each(|token| scan.token(token));
    while let Some(level) = scan.levels.pop() {
        scan.ended(level, text.len());
    }
    let bytes: usize = scan.cuts.iter().map(|cut| cut.range.end).sum();
    if bytes > BYTES_MAX { Vec::new() } else { scan.cuts }
}

/// An operator: its place and how tightly it binds.
type Operator = (usize, u8);

/// Operators at one level of brackets, with what is left of the first one.
#[derive(Default)]
struct Chain {
    /// None: what began isn't understood.
    start: Option<usize>,
    operators: Vec<Operator>,
}

#[derive(Default)]
struct Level {
    expression: Chain,
    /// Casts of the operand at hand, and its COLLATEs.
    casts: Chain,
    /// The operand at hand has a sign before it.
    signed: bool,
    /// Where the operands of the `NOT`s begin that stand side by side before the expression at hand.
    nots: Vec<usize>,
    query: Chain,
    /// Whether an operand is complete, so that an operator may follow.
    operand: bool,
    any: bool,
}

struct Scan {
    levels: Vec<Level>,
    cuts: Vec<Cut>,
}

const CAST: u8 = 9;
const COLLATE: u8 = 8;

impl Scan {
    fn token(&mut self, token: &ScanToken) {
        let kind = Token::try_from(token.token).unwrap_or(Token::Nul);
        let (start, end) = (token.start as usize, token.end as usize);
        match kind {
            Token::SqlComment | Token::CComment => return,
            Token::Ascii40 | Token::Ascii91 | Token::Case => return self.open(start),
            Token::Ascii41 | Token::Ascii93 | Token::EndP => return self.close(start),
            _ => {}
        }
        let mut level = self.levels.pop().unwrap_or_default();
        level.any = true;
        match kind {
            Token::Typecast if level.operand => level.casts.operators.push((start, CAST)),
            // It binds less tightly than a sign.
            Token::Collate if level.operand && !level.signed => {
                level.casts.operators.push((start, COLLATE));
            }
            Token::Not if !level.operand => {
                self.delimiter(&mut level, Some(end));
                level.nots.push(end);
            }
            Token::And
            | Token::Or
            | Token::Ascii44
            | Token::From
            | Token::Where
            | Token::As
            | Token::GroupP
            | Token::Order
            | Token::Then
            | Token::When
            | Token::Else => {
                self.nots_ended(&mut level, start);
                let begins = begins_expression(kind).then_some(end);
                self.delimiter(&mut level, begins);
            }
            Token::Union | Token::Except | Token::Intersect => {
                self.nots_ended(&mut level, start);
                level.query.operators.push((start, u8::from(kind == Token::Intersect)));
            }
            Token::Ascii59 => {
                self.ended(level, start);
                level = Level::default();
            }
            Token::Select | Token::Values => {
                level.query.start.get_or_insert(start);
                self.delimiter(&mut level, Some(end));
            }
            _ if begins_expression(kind) => self.delimiter(&mut level, Some(end)),
            _ => match precedence(kind) {
                Some(binds) if level.operand => {
                    self.casts_ended(&mut level, Some(end));
                    level.expression.operators.push((start, binds));
                }
                // A sign binds more tightly than all but casts.
                Some(PLUS) => {
                    level.signed = true;
                    level.casts.start = level.expression.start.map(|_| end);
                }
                Some(TIMES) if kind == Token::Ascii42 => level.operand = true,
                _ if is_operand(kind, token.keyword_kind) => level.operand = true,
                _ => self.delimiter(&mut level, None),
            },
        }
        self.levels.push(level);
    }

    fn open(&mut self, start: usize) {
        if let Some(level) = self.levels.last_mut()
            && !std::mem::replace(&mut level.any, true)
        {
            level.query.start = Some(start);
        }
        let inside = Chain { start: Some(start + 1), operators: Vec::new() };
        let casts = Chain { start: Some(start + 1), operators: Vec::new() };
        self.levels.push(Level { expression: inside, casts, ..Level::default() });
    }

    fn close(&mut self, start: usize) {
        if self.levels.len() > 1
            && let Some(level) = self.levels.pop()
        {
            self.ended(level, start);
        }
        if let Some(level) = self.levels.last_mut() {
            level.operand = true;
        }
    }

    /// An expression ends; `start`: where another one begins.
    fn delimiter(&mut self, level: &mut Level, start: Option<usize>) {
        self.casts_ended(level, start);
        let chain =
            std::mem::replace(&mut level.expression, Chain { start, operators: Vec::new() });
        self.cut(chain, Kind::Expression);
    }

    fn casts_ended(&mut self, level: &mut Level, start: Option<usize>) {
        level.operand = false;
        level.signed = false;
        let start = start.filter(|_| level.expression.start.is_some() || start.is_some());
        let chain = std::mem::replace(&mut level.casts, Chain { start, operators: Vec::new() });
        self.cut(chain, Kind::Expression);
    }

    /// An expression ends at `stop`, and with it the operands of the `NOT`s before it.
    fn nots_ended(&mut self, level: &mut Level, stop: usize) {
        self.delimiter(level, None);
        let nots = std::mem::take(&mut level.nots);
        if nots.len() > CHAIN_MAX && nots.len() < NOTS_MAX {
            // The last ones first: they lie within the others' operands.
            let begins =
                nots.rchunks(PIECE).filter_map(|piece| piece.first()).take_while(|b| **b > nots[0]);
            self.cuts.extend(begins.map(|b| Cut { range: *b..stop, kind: Kind::Expression }));
        }
    }

    fn ended(&mut self, mut level: Level, stop: usize) {
        self.nots_ended(&mut level, stop);
        self.cut(level.query, Kind::Query);
    }

    fn cut(&mut self, chain: Chain, kind: Kind) {
        if chain.operators.len() > CHAIN_MAX
            && let Some(start) = chain.start
        {
            self.cut_chain(start, &chain.operators, kind);
        }
    }

    /// Cuts a chain; between operators that bind least, those that bind more tightly are chains of their own.
    fn cut_chain(&mut self, start: usize, operators: &[Operator], kind: Kind) {
        let Some(least) = operators.iter().map(|(_, binds)| *binds).min() else { return };
        if operators.len() <= CHAIN_MAX {
            return;
        }
        let (mut begin, mut inside, mut seen) = (start, 0, 0);
        for (i, (at, _)) in operators.iter().enumerate().filter(|(_, (_, b))| *b == least) {
            self.cut_chain(begin, &operators[inside..i], kind);
            (begin, inside, seen) = (at + 1, i + 1, seen + 1);
            if seen % PIECE == 0 {
                self.cuts.push(Cut { range: start..*at, kind });
            }
        }
        if seen < operators.len() && kind == Kind::Expression {
            self.cut_chain(begin, &operators[inside..], kind);
        }
    }
}

const OTHER: u8 = 0;
const PLUS: u8 = 1;
const TIMES: u8 = 2;
const POWER: u8 = 3;

/// How tightly a binary operator binds, of those that bind more tightly than any word.
fn precedence(kind: Token) -> Option<u8> {
    match kind {
        Token::Op => Some(OTHER),
        Token::Ascii43 | Token::Ascii45 => Some(PLUS),
        Token::Ascii42 | Token::Ascii47 | Token::Ascii37 => Some(TIMES),
        Token::Ascii94 => Some(POWER),
        _ => None,
    }
}

/// Whether an expression begins behind a token.
fn begins_expression(kind: Token) -> bool {
    use Token::*;
    matches!(
        kind,
        Ascii44
            | Ascii60
            | Ascii61
            | Ascii62
            | LessEquals
            | GreaterEquals
            | NotEquals
            | ColonEquals
            | EqualsGreater
            | Where
            | And
            | Or
            | Then
            | Else
            | When
            | On
            | Having
            | By
            | Returning
            | Distinct
            | All
            | Limit
            | Offset
    )
}

/// Whether a token is a part of an operand.
fn is_operand(kind: Token, keyword: i32) -> bool {
    use Token::*;
    match KeywordKind::try_from(keyword) {
        Ok(KeywordKind::UnreservedKeyword) => !matches!(kind, Operator | Escape | Uescape),
        Ok(KeywordKind::ColNameKeyword) => !matches!(kind, Between),
        Ok(KeywordKind::NoKeyword) => matches!(
            kind,
            Ident | Uident | Fconst | Sconst | Usconst | Bconst | Xconst | Iconst | Param | Ascii46
        ),
        _ => matches!(kind, NullP | TrueP | FalseP | Array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        cuts(text).into_iter().map(|cut| text[cut.range].trim()).collect()
    }

    #[test]
    fn a_chain_is_cut_where_it_binds_least() {
        let text = format!("select a, b{} from t", " * c + d".repeat(301));
        let found = pieces(&text);
        assert_eq!(found[0], format!("b{} * c", " * c + d".repeat(199)));
        assert!(found.iter().all(|piece| piece.starts_with("b *") && piece.ends_with("* c")));
        let text = format!("select 1 - (x{}) + 5", "::int".repeat(301));
        assert_eq!(pieces(&text), [format!("x{}", "::int".repeat(199))]);
        let text = format!("select a collate \"C\"{} from t", " || b".repeat(301));
        assert_eq!(pieces(&text), [format!("a collate \"C\"{}", " || b".repeat(199))]);
        let text = format!("select a || b{} = 'x'", " collate \"C\"".repeat(301));
        assert_eq!(pieces(&text), [format!("b{}", " collate \"C\"".repeat(199))]);
        let text = format!("select {}a = b and c", "not ".repeat(450));
        let nots = |count: usize| format!("{}a = b", "not ".repeat(count));
        assert_eq!(pieces(&text), [nots(199), nots(399)]);
        let text = format!("select 1{}", " union all select 2".repeat(301));
        assert_eq!(pieces(&text), [format!("select 1{}", " union all select 2".repeat(199))]);
    }

    #[test]
    fn what_is_short_or_not_understood_is_left() {
        assert_eq!(pieces("select 1 + 2 + 3"), [""; 0]);
        assert_eq!(pieces(&format!("select - a{}", " collate \"C\"".repeat(301))), [""; 0]);
        assert_eq!(pieces(&format!("select ~ 1{}", " + 1".repeat(301))), [""; 0]);
        assert_eq!(pieces(&format!("select 1{}", ", - 1 + 2".repeat(301))), [""; 0]);
    }
}
