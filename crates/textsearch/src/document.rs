//! Text into lexemes with places: `to_tsvector` and what the forms of `to_tsquery` do with each word.

use base::{Result, err};
use smallvec::smallvec;
use types::Text;

use crate::config::Config;
use crate::dictionary::{Dictionary, Norm};
use crate::parser::{Parser, Token};
use crate::query::{Builder, Node, Operand};
use crate::vector::{Lexeme, MAX_LEXEME_BYTES, Position, TsVector};

/// A lexeme with its place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The lexeme.
    pub norm: Norm,
    /// From 1; may pass what a vector can hold.
    pub place: usize,
    /// The tokens that it stands for: number of the first, and behind the last.
    pub tokens: (usize, usize),
}

/// Lexemes of a document.
#[derive(Debug, Default)]
pub struct Parsed {
    /// In the order of the text.
    pub lexemes: Vec<Placed>,
    /// The last place, those of stop words included.
    pub last_place: usize,
}

/// Tokens between two looks for interrupts.
const TOKENS_A_LOOK: usize = 256;

impl Parsed {
    /// Adds a text's lexemes.
    ///
    /// # Errors
    /// Those of dictionaries.
    pub fn add(&mut self, config: &mut Config, text: &str) -> Result<()> {
        let mut tokens: Vec<Token<'_>> = Vec::new();
        for token in Parser::new(text) {
            if tokens.len() % TOKENS_A_LOOK == 0 {
                sched::check_interrupts()?;
            }
            tokens.push(token);
        }
        let mut at = 0;
        while at < tokens.len() {
            sched::check_interrupts()?;
            let used = self.token(config, &tokens, at)?;
            at += used;
        }
        Ok(())
    }

    /// Lexizes the token at a place; says how many were used.
    fn token(&mut self, config: &mut Config, tokens: &[Token<'_>], at: usize) -> Result<usize> {
        let token = tokens[at];
        let dictionaries = config.dictionaries(token.kind)?;
        if dictionaries.is_empty() {
            return Ok(1);
        }
        if token.text.len() > MAX_LEXEME_BYTES {
            types::user::notice(
                err!(PROGRAM_LIMIT_EXCEEDED, "word is too long to be indexed").detail(format!(
                    "Words longer than {MAX_LEXEME_BYTES} characters are ignored."
                )),
            );
            return Ok(1);
        }
        let mut word = std::borrow::Cow::Borrowed(token.text);
        for (id, dictionary) in dictionaries.iter() {
            if let Dictionary::Thesaurus(thesaurus) = &**dictionary {
                let mut words = vec![&*word];
                let mut ends = vec![at + 1];
                let most = thesaurus.longest_phrase()?;
                for (next, token) in tokens.iter().enumerate().skip(at + 1) {
                    if words.len() >= most {
                        break;
                    }
                    let of_next = config.dictionaries(token.kind)?;
                    if of_next.is_empty() {
                        continue;
                    }
                    if !of_next.iter().any(|(other, _)| other == id) {
                        break;
                    }
                    words.push(token.text);
                    ends.push(next + 1);
                }
                if let Some((len, norms)) = thesaurus.longest(&words)? {
                    let end = ends[len - 1];
                    self.push(norms, (at, end));
                    return Ok(end - at);
                }
                continue;
            }
            if let Some(norms) = dictionary.lexize(&word)? {
                if let [Norm { filters: true, word: other, .. }] = &norms[..] {
                    word = std::borrow::Cow::Owned(other.as_str().to_owned());
                    continue;
                }
                self.push(norms, (at, at + 1));
                return Ok(1);
            }
        }
        Ok(1)
    }

    fn push(&mut self, norms: Vec<Norm>, tokens: (usize, usize)) {
        self.last_place += 1;
        for norm in norms {
            if norm.next_place {
                self.last_place += 1;
            }
            self.lexemes.push(Placed { norm, place: self.last_place, tokens });
        }
    }

    /// The vector.
    ///
    /// # Errors
    /// `54000`.
    pub fn into_vector(self) -> Result<TsVector> {
        let lexeme = |p: Placed| Lexeme {
            word: p.norm.word,
            positions: smallvec![Position::new(p.place, 0)],
        };
        TsVector::of(self.lexemes.into_iter().map(lexeme).collect())
    }
}

/// A document's vector.
///
/// # Errors
/// Those of dictionaries; `54000`.
pub fn vector(config: &mut Config, text: &str) -> Result<TsVector> {
    let mut parsed = Parsed::default();
    parsed.add(config, text)?;
    parsed.into_vector()
}

/// How the lexemes of several places of one word of a query are joined.
#[derive(Clone, Copy, PartialEq)]
pub enum Join {
    /// All of them.
    And,
    /// In a row.
    Phrase,
}

/// Makes nodes of a word of a query: its lexemes, joined; variants of one place exclude each other. None where
/// there are none: a stop.
///
/// # Errors
/// Those of dictionaries.
pub fn operand(
    config: &mut Config,
    builder: &mut Builder,
    (word, weights, prefix): (&str, u8, bool),
    join: Join,
) -> Result<u32> {
    let mut parsed = Parsed::default();
    parsed.add(config, word)?;
    let value = |builder: &mut Builder, norm: &Norm| {
        let word: Text = norm.word.clone();
        builder.push(Node::Value(Operand { word, weights, prefix: prefix || norm.prefix }))
    };
    let mut whole: Option<u32> = None;
    let mut next_place = 0;
    let add = |builder: &mut Builder, whole: Option<u32>, node: u32| {
        Some(match (whole, join) {
            (None, _) => node,
            (Some(left), Join::And) => builder.push(Node::And(left, node)),
            (Some(left), Join::Phrase) => builder.push(Node::Phrase(left, node, 1)),
        })
    };
    for of_place in parsed.lexemes.chunk_by(|a, b| a.place == b.place) {
        let place = of_place[0].place;
        // Stop words keep their places in phrases.
        while join == Join::Phrase && next_place + 1 < place {
            let stop = builder.push(Node::Stop);
            whole = add(builder, whole, stop);
            next_place += 1;
        }
        next_place = place;
        let mut any: Option<u32> = None;
        for of_variant in of_place.chunk_by(|a, b| a.norm.variant == b.norm.variant) {
            let mut all: Option<u32> = None;
            for lexeme in of_variant {
                let node = value(builder, &lexeme.norm);
                all = Some(all.map_or(node, |left| builder.push(Node::And(left, node))));
            }
            if let Some(node) = all {
                any = Some(any.map_or(node, |left| builder.push(Node::Or(left, node))));
            }
        }
        if let Some(node) = any {
            whole = add(builder, whole, node);
        }
    }
    while join == Join::Phrase && !parsed.lexemes.is_empty() && next_place < parsed.last_place {
        let stop = builder.push(Node::Stop);
        whole = add(builder, whole, stop);
        next_place += 1;
    }
    Ok(whole.unwrap_or_else(|| builder.push(Node::Stop)))
}
