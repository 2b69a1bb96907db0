//! `tsvector`: the lexemes of a document, sorted, each with its positions.
//!
//! ```text
//! position   u16: weight (D = 0 … A = 3) in the two high bits, place from 1 to 16383 below
//! in a row   u32 lexemes; for each: u16 length, bytes, u16 positions, positions (little-endian)
//! ```
//!
//! Invariants: lexemes ascend by their bytes, without repetition; the positions of a lexeme ascend by place,
//! at most [`MAX_POSITIONS`] of them.

use std::any::Any;
use std::cmp::Ordering;

use base::{Oid, Result, err};
use smallvec::SmallVec;
use types::io::FormatContext;
use types::open::{OpenType, OpenValue};
use types::{Datum, Text};

use crate::lexer::{self, Lexer};

/// The type's oid.
pub const TSVECTOR: Oid = Oid(3614);
/// Places are at most this; what comes later in a document has it, too.
pub const MAX_PLACE: u16 = 16_383;
/// Positions of one lexeme, at most.
pub const MAX_POSITIONS: usize = 256;
/// Bytes of a lexeme, at most.
pub const MAX_LEXEME_BYTES: usize = 2047;
/// Bytes of all lexemes and their positions, at most.
pub const MAX_VECTOR_BYTES: usize = (1 << 20) - 1;

/// A place in a document with a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u16);

impl Position {
    /// A place (clamped) with a weight from 0 (D) to 3 (A).
    pub fn new(place: usize, weight: u8) -> Position {
        Position(place.min(usize::from(MAX_PLACE)) as u16 | u16::from(weight) << 14)
    }

    /// From 1.
    pub fn place(self) -> u16 {
        self.0 & MAX_PLACE
    }

    /// 0 (D) to 3 (A).
    pub fn weight(self) -> u8 {
        (self.0 >> 14) as u8
    }

    /// The same place with another weight.
    pub fn with_weight(self, weight: u8) -> Position {
        Position::new(usize::from(self.place()), weight)
    }
}

/// The positions of a lexeme, of which there are few in most documents.
pub type Positions = SmallVec<[Position; 8]>;

/// A lexeme with its positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// Its text.
    pub word: Text,
    /// Ascending; none when they are not known.
    pub positions: Positions,
}

/// The value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TsVector {
    /// Ascending by bytes.
    pub lexemes: Vec<Lexeme>,
}

/// Brings positions into order; of those at one place the heaviest stays.
pub fn sort_positions(positions: &mut Positions) {
    positions.sort_by_key(|p| (p.place(), std::cmp::Reverse(p.weight())));
    positions.dedup_by_key(|p| p.place());
    positions.truncate(MAX_POSITIONS);
}

impl TsVector {
    /// A vector of lexemes in any order, repetitions included.
    ///
    /// # Errors
    /// `54000`: too long.
    pub fn of(mut lexemes: Vec<Lexeme>) -> Result<TsVector> {
        lexemes.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
        let mut out: Vec<Lexeme> = Vec::with_capacity(lexemes.len());
        for lexeme in lexemes {
            sched::check_interrupts()?;
            match out.last_mut() {
                Some(last) if last.word == lexeme.word => last.positions.extend(lexeme.positions),
                _ => out.push(lexeme),
            }
        }
        out.iter_mut().for_each(|l| sort_positions(&mut l.positions));
        TsVector { lexemes: out }.checked()
    }

    /// The vector, unless it is too long.
    ///
    /// # Errors
    /// `54000`.
    pub fn checked(self) -> Result<TsVector> {
        let bytes = self.body_bytes();
        if bytes > MAX_VECTOR_BYTES {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "string is too long for tsvector ({bytes} bytes, max {MAX_VECTOR_BYTES} bytes)"
            ));
        }
        Ok(self)
    }

    /// Bytes that PostgreSQL needs for the lexemes with their positions.
    fn body_bytes(&self) -> usize {
        self.lexemes.iter().fold(0, |at, l| match l.positions.len() {
            0 => at + l.word.len(),
            n => (at + l.word.len()).next_multiple_of(2) + 2 + 2 * n,
        })
    }

    /// Bytes that PostgreSQL needs for the value: what its order goes by first.
    fn total_bytes(&self) -> usize {
        8 + 4 * self.lexemes.len() + self.body_bytes()
    }

    /// Where a lexeme stands.
    ///
    /// # Errors
    /// Where it would stand.
    pub fn find(&self, word: &str) -> std::result::Result<usize, usize> {
        self.lexemes.binary_search_by(|l| l.word.as_bytes().cmp(word.as_bytes()))
    }

    /// The lexemes that begin with a text.
    pub fn beginning(&self, prefix: &str) -> &[Lexeme] {
        let from = self.lexemes.partition_point(|l| l.word.as_bytes() < prefix.as_bytes());
        let rest = &self.lexemes[from..];
        let len = rest.partition_point(|l| l.word.as_bytes().starts_with(prefix.as_bytes()));
        &rest[..len]
    }

    /// The last place of all.
    pub fn last_place(&self) -> u16 {
        self.lexemes.iter().flat_map(|l| &l.positions).map(|p| p.place()).max().unwrap_or(0)
    }

    fn load(bytes: &[u8]) -> Option<TsVector> {
        let mut reader = Reader(bytes);
        let count = reader.u32()?;
        let mut lexemes = Vec::with_capacity((count as usize).min(bytes.len()));
        for _ in 0..count {
            let len = reader.u16()?;
            let word = Text::from(std::str::from_utf8(reader.take(len.into())?).ok()?);
            let positions = reader.u16()?;
            let (places, _) = reader.take(2 * usize::from(positions))?.as_chunks::<2>();
            let positions = places.iter().map(|b| Position(u16::from_le_bytes(*b))).collect();
            lexemes.push(Lexeme { word, positions });
        }
        reader.0.is_empty().then_some(TsVector { lexemes })
    }

    fn read(text: &str) -> Result<TsVector> {
        let syntax = || err!(SYNTAX_ERROR, "syntax error in tsvector: \"{text}\"");
        let mut lexer = Lexer::new(text);
        let mut lexemes = Vec::new();
        loop {
            sched::check_interrupts()?;
            let Some(word) = lexer.word(false).map_err(|e| e.error("tsvector", text))? else {
                return TsVector::of(lexemes);
            };
            if word.len() > MAX_LEXEME_BYTES {
                return Err(too_long(word.len()));
            }
            let mut positions = Positions::new();
            if lexer.eat(':') {
                loop {
                    let digits = lexer.digits();
                    if digits.is_empty() {
                        return Err(syntax());
                    }
                    // More than any place: all that counts is that it is large.
                    let place: usize = digits.parse().unwrap_or(usize::MAX);
                    if place == 0 {
                        return Err(err!(
                            SYNTAX_ERROR,
                            "wrong position info in tsvector: \"{text}\""
                        ));
                    }
                    // Of several letters the last one counts.
                    let mut weight = 0;
                    while let Some(letter) = lexer.peek() {
                        weight = match letter {
                            'A' | 'a' | '*' => 3,
                            'B' | 'b' => 2,
                            'C' | 'c' => 1,
                            'D' | 'd' => 0,
                            _ => break,
                        };
                        lexer.next();
                    }
                    positions.push(Position::new(place, weight));
                    match lexer.peek() {
                        Some(',') => {
                            lexer.next();
                        }
                        None => break,
                        Some(c) if lexer::is_blank(c) => break,
                        Some(_) => return Err(syntax()),
                    }
                }
            }
            lexemes.push(Lexeme { word: word.into(), positions });
        }
    }
}

/// The error of a lexeme that is too long.
pub fn too_long(bytes: usize) -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "word is too long ({bytes} bytes, max {MAX_LEXEME_BYTES} bytes)")
}

/// Little-endian fields.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
    /// Two bytes, big-endian, as the protocol has them.
    pub fn wire_u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }
    /// Four bytes, big-endian.
    pub fn wire_u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }
    /// A text that a zero byte ends.
    pub fn wire_text(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = std::str::from_utf8(self.take(end)?).ok()?;
        self.take(1)?;
        Some(text)
    }
}

/// Appends a lexeme in quotes, with quotes and backslashes doubled.
pub(crate) fn write_quoted(word: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for b in word.bytes() {
        if matches!(b, b'\'' | b'\\') {
            out.push(b);
        }
        out.push(b);
    }
    out.push(b'\'');
}

/// The letter of a weight.
pub fn weight_letter(weight: u8) -> char {
    ['D', 'C', 'B', 'A'][usize::from(weight & 3)]
}

impl OpenValue for TsVector {
    fn ty(&self) -> Oid {
        TSVECTOR
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        for (n, lexeme) in self.lexemes.iter().enumerate() {
            sched::check_interrupts()?;
            if n > 0 {
                out.push(b' ');
            }
            write_quoted(&lexeme.word, out);
            for (n, p) in lexeme.positions.iter().enumerate() {
                out.push(if n == 0 { b':' } else { b',' });
                out.extend_from_slice(p.place().to_string().as_bytes());
                if p.weight() > 0 {
                    out.push(weight_letter(p.weight()) as u8);
                }
            }
        }
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(self.lexemes.len() as u32).to_be_bytes());
        for lexeme in &self.lexemes {
            out.extend_from_slice(lexeme.word.as_bytes());
            out.push(0);
            out.extend_from_slice(&(lexeme.positions.len() as u16).to_be_bytes());
            for p in &lexeme.positions {
                out.extend_from_slice(&p.0.to_be_bytes());
            }
        }
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.lexemes.len() as u32).to_le_bytes());
        for lexeme in &self.lexemes {
            out.extend_from_slice(&(lexeme.word.len() as u16).to_le_bytes());
            out.extend_from_slice(lexeme.word.as_bytes());
            out.extend_from_slice(&(lexeme.positions.len() as u16).to_le_bytes());
            for p in &lexeme.positions {
                out.extend_from_slice(&p.0.to_le_bytes());
            }
        }
    }

    /// Bytes and lexemes of the whole first; then by lexeme, one without positions before one with them, and
    /// by the positions from the last difference on.
    fn key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.total_bytes() as u32).to_be_bytes());
        out.extend_from_slice(&(self.lexemes.len() as u32).to_be_bytes());
        for lexeme in &self.lexemes {
            out.push(u8::from(lexeme.positions.is_empty()));
            for b in lexeme.word.bytes() {
                out.push(b);
                if b == 0 {
                    out.push(0xff);
                }
            }
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&(lexeme.positions.len() as u16).to_be_bytes());
            for p in &lexeme.positions {
                out.extend_from_slice(&(!p.place()).to_be_bytes());
                out.push(3 - p.weight());
            }
        }
    }

    fn compare(&self, other: &dyn OpenValue) -> Ordering {
        let key = |v: &dyn OpenValue| {
            let mut key = Vec::new();
            v.key(&mut key);
            key
        };
        key(self).cmp(&key(other))
    }

    fn elements(&self) -> Option<Vec<&str>> {
        Some(self.lexemes.iter().map(|lexeme| &*lexeme.word).collect())
    }

    fn heap_bytes(&self) -> usize {
        let of = |l: &Lexeme| size_of::<Lexeme>() + l.word.len() + 2 * l.positions.capacity();
        24 + self.lexemes.iter().map(of).sum::<usize>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes values of the type.
pub struct TsVectorType;

impl OpenType for TsVectorType {
    fn input(&self, _ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        TsVector::read(text).map(Datum::open)
    }

    fn receive(&self, _ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        receive(bytes).map(Datum::open)
    }

    fn load(&self, _ty: Oid, bytes: &[u8]) -> Option<Datum> {
        TsVector::load(bytes).map(Datum::open)
    }
}

/// The error of bytes that end too early.
pub(crate) fn short() -> base::Error {
    err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message")
}

fn receive(bytes: &[u8]) -> Result<TsVector> {
    let mut reader = Reader(bytes);
    let count = reader.wire_u32().ok_or_else(short)?;
    if count as usize > MAX_VECTOR_BYTES {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid size of tsvector"));
    }
    let mut lexemes: Vec<Lexeme> = Vec::new();
    for _ in 0..count {
        sched::check_interrupts()?;
        let word = Text::from(reader.wire_text().ok_or_else(short)?);
        let positions = reader.wire_u16().ok_or_else(short)?;
        if word.len() > MAX_LEXEME_BYTES {
            return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid tsvector: lexeme too long"));
        }
        if usize::from(positions) > MAX_POSITIONS {
            return Err(err!(
                INVALID_BINARY_REPRESENTATION,
                "unexpected number of tsvector positions"
            ));
        }
        let mut list = Positions::new();
        for _ in 0..positions {
            let p = Position(reader.wire_u16().ok_or_else(short)?);
            if list.last().is_some_and(|last| p.place() <= last.place()) {
                return Err(err!(
                    INVALID_BINARY_REPRESENTATION,
                    "position information is misordered"
                ));
            }
            list.push(p);
        }
        lexemes.push(Lexeme { word, positions: list });
    }
    TsVector::of(lexemes)
}
