//! `tsquery`: lexemes under `&`, `|`, `!` and `<n>`.
//!
//! A tree in one array, children before their parent, the root last. So a value of any depth is copied,
//! compared and dropped without recursion.
//!
//! ```text
//! in a row   one byte a node: 1 value (u8 weights, u8 prefix, u16 length, bytes)   2 not (u32 child)
//!            3 and   4 or (u32 left, u32 right)   5 phrase (left, right, u16 distance)
//! ```

use std::any::Any;
use std::cmp::Ordering;

use base::{Oid, Result, err};
use types::io::FormatContext;
use types::open::{OpenType, OpenValue};
use types::{Datum, Text};

use crate::vector::{Reader, short, write_quoted};

/// The type's oid.
pub const TSQUERY: Oid = Oid(3615);
/// The distance of a phrase, at most.
pub const MAX_DISTANCE: u16 = 16_384;

/// A lexeme as it is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its text, or how it begins.
    pub word: Text,
    /// Bits of the weights that count (1 = D … 8 = A); 0: all.
    pub weights: u8,
    /// Lexemes that begin so.
    pub prefix: bool,
}

/// One node; children are numbers of nodes before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A lexeme.
    Value(Operand),
    /// A word that was left out, for a while: queries have none.
    Stop,
    /// Not.
    Not(u32),
    /// Both.
    And(u32, u32),
    /// One of them.
    Or(u32, u32),
    /// The second so many places after the first.
    Phrase(u32, u32, u16),
}

/// The value; without nodes it matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TsQuery {
    /// The last one is the root.
    pub nodes: Vec<Node>,
}

impl Node {
    /// As PostgreSQL orders and binds operators.
    pub fn priority(&self) -> u8 {
        match self {
            Node::Value(_) | Node::Stop => 9,
            Node::Not(_) => 4,
            Node::Phrase(..) => 3,
            Node::And(..) => 2,
            Node::Or(..) => 1,
        }
    }

    /// Its children.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let (a, b) = match self {
            Node::Value(_) | Node::Stop => (None, None),
            Node::Not(a) => (Some(*a), None),
            Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _) => (Some(*a), Some(*b)),
        };
        a.into_iter().chain(b)
    }

    fn moved(&self, by: u32) -> Node {
        match self {
            Node::Not(a) => Node::Not(a + by),
            Node::And(a, b) => Node::And(a + by, b + by),
            Node::Or(a, b) => Node::Or(a + by, b + by),
            Node::Phrase(a, b, n) => Node::Phrase(a + by, b + by, *n),
            node => node.clone(),
        }
    }
}

/// The nodes of a query as it is built.
#[derive(Debug, Default)]
pub struct Builder(pub Vec<Node>);

impl Builder {
    /// Adds a node and says its number.
    pub fn push(&mut self, node: Node) -> u32 {
        self.0.push(node);
        self.0.len() as u32 - 1
    }

    /// Adds a whole query; its root's number.
    pub fn push_query(&mut self, query: &TsQuery) -> Option<u32> {
        let by = self.0.len() as u32;
        self.0.extend(query.nodes.iter().map(|n| n.moved(by)));
        query.root().map(|root| root + by)
    }

    /// The query with this root: nodes that it doesn't reach are left out.
    pub fn finish(self, root: Option<u32>) -> TsQuery {
        let Some(root) = root else { return TsQuery::default() };
        if root as usize == self.0.len() - 1 && self.0.iter().all(|n| *n != Node::Stop) {
            let used: usize = self.0.iter().map(|n| n.children().count()).sum();
            if used + 1 == self.0.len() {
                return TsQuery { nodes: self.0 };
            }
        }
        TsQuery { nodes: self.0 }.part(root)
    }
}

impl TsQuery {
    /// The root's number; None for the empty query.
    pub fn root(&self) -> Option<u32> {
        (self.nodes.len() as u32).checked_sub(1)
    }

    /// The node with a number.
    pub fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    /// The lexemes, as they are written.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.nodes.iter().filter_map(|n| match n {
            Node::Value(v) => Some(v),
            _ => None,
        })
    }

    /// The part below a node as a query of its own.
    pub fn part(&self, root: u32) -> TsQuery {
        // Parents are seen before their children from the back on.
        let mut wanted = vec![false; self.nodes.len()];
        wanted[root as usize] = true;
        for at in (0..=root as usize).rev().filter(|at| *at < self.nodes.len()) {
            if wanted[at] {
                self.nodes[at].children().for_each(|c| wanted[c as usize] = true);
            }
        }
        let mut places = vec![0; self.nodes.len()];
        let mut nodes = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(at, _)| wanted[*at]) {
            places[at] = nodes.len() as u32;
            let to = |c: &u32| places[*c as usize];
            nodes.push(match node {
                Node::Not(a) => Node::Not(to(a)),
                Node::And(a, b) => Node::And(to(a), to(b)),
                Node::Or(a, b) => Node::Or(to(a), to(b)),
                Node::Phrase(a, b, n) => Node::Phrase(to(a), to(b), *n),
                node => node.clone(),
            });
        }
        TsQuery { nodes }
    }

    /// As a value.
    ///
    /// # Errors
    /// `54000` for more text than a query may have: it could not be written and read again.
    pub fn into_value(self) -> Result<Datum> {
        if self.has_room() {
            return Ok(Datum::open(self));
        }
        Err(err!(PROGRAM_LIMIT_EXCEEDED, "tsquery is too large"))
    }

    /// Whether the lexemes are not longer together than a query's may be.
    pub fn has_room(&self) -> bool {
        let bytes: usize = self.operands().map(|v| v.word.len() + 1).sum();
        bytes <= crate::vector::MAX_VECTOR_BYTES
    }

    /// Both, joined by an operator.
    pub fn joined(&self, other: &TsQuery, join: fn(u32, u32) -> Node) -> TsQuery {
        let mut builder = Builder::default();
        match (builder.push_query(self), builder.push_query(other)) {
            (Some(a), Some(b)) => {
                let root = builder.push(join(a, b));
                builder.finish(Some(root))
            }
            (a, b) => builder.finish(a.or(b)),
        }
    }

    fn load(bytes: &[u8]) -> Option<TsQuery> {
        let mut reader = Reader(bytes);
        let mut nodes = Vec::new();
        while !reader.0.is_empty() {
            let below = nodes.len() as u32;
            let child = |reader: &mut Reader<'_>| reader.u32().filter(|c| *c < below);
            nodes.push(match reader.u8()? {
                1 => {
                    let (weights, prefix) = (reader.u8()?, reader.u8()? != 0);
                    let len = reader.u16()?;
                    let word = std::str::from_utf8(reader.take(len.into())?).ok()?.into();
                    Node::Value(Operand { word, weights, prefix })
                }
                2 => Node::Not(child(&mut reader)?),
                3 => Node::And(child(&mut reader)?, child(&mut reader)?),
                4 => Node::Or(child(&mut reader)?, child(&mut reader)?),
                5 => Node::Phrase(child(&mut reader)?, child(&mut reader)?, reader.u16()?),
                _ => return None,
            });
        }
        Some(TsQuery { nodes })
    }

    /// Appends a part's text, in parentheses if what is around it binds more tightly.
    fn write_part(
        &self,
        at: u32,
        around: u8,
        right_of_phrase: bool,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        sched::check_stack()?;
        sched::check_interrupts()?;
        let node = self.node(at);
        let priority = node.priority();
        let phrase = matches!(node, Node::Phrase(..));
        let open = priority < around || phrase && right_of_phrase;
        if open {
            out.extend_from_slice(b"( ");
        }
        match node {
            Node::Value(v) => write_operand(v, out),
            Node::Stop => {}
            Node::Not(a) => {
                out.push(b'!');
                self.write_part(*a, priority, false, out)?;
            }
            Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _) => {
                self.write_part(*a, priority, false, out)?;
                match node {
                    Node::And(..) => out.extend_from_slice(b" & "),
                    Node::Or(..) => out.extend_from_slice(b" | "),
                    Node::Phrase(_, _, 1) => out.extend_from_slice(b" <-> "),
                    Node::Phrase(_, _, n) => out.extend_from_slice(format!(" <{n}> ").as_bytes()),
                    _ => {}
                }
                self.write_part(*b, priority, phrase, out)?;
            }
        }
        if open {
            out.extend_from_slice(b" )");
        }
        Ok(())
    }

    /// The text of the whole.
    ///
    /// # Errors
    /// `54001`: nested too deeply.
    pub fn text(&self) -> Result<String> {
        let mut out = Vec::new();
        if let Some(root) = self.root() {
            self.write_part(root, 0, false, &mut out)?;
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// Bytes that PostgreSQL needs, which its order goes by.
    fn total_bytes(&self) -> usize {
        8 + 12 * self.nodes.len() + self.operands().map(|v| v.word.len() + 1).sum::<usize>()
    }

    fn compare_nodes(&self, a: u32, other: &TsQuery, b: u32) -> Ordering {
        crate::tree::compare(&crate::tree::Tree::of(self, a), &crate::tree::Tree::of(other, b))
    }
}

fn write_operand(v: &Operand, out: &mut Vec<u8>) {
    write_quoted(&v.word, out);
    if v.weights != 0 || v.prefix {
        out.push(b':');
        if v.prefix {
            out.push(b'*');
        }
        for (bit, letter) in [(8, b'A'), (4, b'B'), (2, b'C'), (1, b'D')] {
            if v.weights & bit != 0 {
                out.push(letter);
            }
        }
    }
}

impl OpenValue for TsQuery {
    fn ty(&self) -> Oid {
        TSQUERY
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        match self.root() {
            Some(root) => self.write_part(root, 0, false, out),
            None => Ok(()),
        }
    }

    fn share(&self, of: &dyn Fn(&str, bool) -> f64) -> Option<f64> {
        let mut shares: Vec<f64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let part = |at: &u32| shares.get(*at as usize).copied().unwrap_or(0.0);
            let share = match node {
                Node::Value(operand) => of(&operand.word, operand.prefix),
                Node::Stop => 1.0,
                Node::Not(a) => 1.0 - part(a),
                Node::And(a, b) | Node::Phrase(a, b, _) => part(a) * part(b),
                Node::Or(a, b) => part(a) + part(b) - part(a) * part(b),
            };
            shares.push(share.clamp(0.0, 1.0));
        }
        Some(shares.last().copied().unwrap_or(0.0))
    }

    /// Nodes from the root on, right operands first.
    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(self.nodes.len() as u32).to_be_bytes());
        let mut todo: Vec<u32> = self.root().into_iter().collect();
        while let Some(at) = todo.pop() {
            let node = self.node(at);
            match node {
                Node::Value(v) => {
                    out.extend_from_slice(&[1, v.weights, u8::from(v.prefix)]);
                    out.extend_from_slice(v.word.as_bytes());
                    out.push(0);
                }
                Node::Stop => {}
                Node::Not(_) => out.extend_from_slice(&[2, 1]),
                Node::And(..) => out.extend_from_slice(&[2, 2]),
                Node::Or(..) => out.extend_from_slice(&[2, 3]),
                Node::Phrase(_, _, n) => {
                    out.extend_from_slice(&[2, 4]);
                    out.extend_from_slice(&n.to_be_bytes());
                }
            }
            todo.extend(node.children());
        }
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        let put = |c: &u32, out: &mut Vec<u8>| out.extend_from_slice(&c.to_le_bytes());
        for node in &self.nodes {
            match node {
                Node::Value(v) => {
                    out.extend_from_slice(&[1, v.weights, u8::from(v.prefix)]);
                    out.extend_from_slice(&(v.word.len() as u16).to_le_bytes());
                    out.extend_from_slice(v.word.as_bytes());
                }
                Node::Stop => {}
                Node::Not(a) => {
                    out.push(2);
                    put(a, out);
                }
                Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _) => {
                    out.push(
                        1 + match node {
                            Node::And(..) => 2,
                            Node::Or(..) => 3,
                            _ => 4,
                        },
                    );
                    put(a, out);
                    put(b, out);
                    if let Node::Phrase(_, _, n) = node {
                        out.extend_from_slice(&n.to_le_bytes());
                    }
                }
            }
        }
    }

    fn key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.nodes.len() as u32).to_be_bytes());
        out.extend_from_slice(&(self.total_bytes() as u32).to_be_bytes());
        if let Some(root) = self.root() {
            crate::tree::key(&crate::tree::Tree::of(self, root), out);
        }
    }

    fn compare(&self, other: &dyn OpenValue) -> Ordering {
        let Some(other) = other.as_any().downcast_ref::<TsQuery>() else {
            return Ordering::Equal;
        };
        let sizes = |q: &TsQuery| (q.nodes.len(), q.total_bytes());
        let trees = || match (self.root(), other.root()) {
            (Some(a), Some(b)) => self.compare_nodes(a, other, b),
            (a, b) => a.cmp(&b),
        };
        sizes(self).cmp(&sizes(other)).then_with(trees)
    }

    fn heap_bytes(&self) -> usize {
        24 + self.nodes.len() * size_of::<Node>()
            + self.operands().map(|v| v.word.len()).sum::<usize>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes values of the type.
pub struct TsQueryType;

impl OpenType for TsQueryType {
    fn input(&self, _ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        crate::parse::query(text)?.into_value()
    }

    fn receive(&self, _ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        receive(bytes)?.into_value()
    }

    fn load(&self, _ty: Oid, bytes: &[u8]) -> Option<Datum> {
        TsQuery::load(bytes).map(Datum::open)
    }
}

/// Reads nodes from the root on; from the back they are children first.
fn receive(bytes: &[u8]) -> Result<TsQuery> {
    let mut reader = Reader(bytes);
    let count = reader.wire_u32().ok_or_else(short)?;
    let invalid = |what: &str| err!(INVALID_BINARY_REPRESENTATION, "invalid tsquery: {what}");
    if count as usize > bytes.len() {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid size of tsquery"));
    }
    let mut nodes = Vec::new();
    for _ in 0..count {
        sched::check_interrupts()?;
        nodes.push(match reader.u8().ok_or_else(short)? {
            1 => {
                let weights = reader.u8().ok_or_else(short)?;
                let prefix = reader.u8().ok_or_else(short)? != 0;
                let word = reader.wire_text().ok_or_else(short)?;
                if weights > 15 {
                    return Err(invalid("invalid weight bitmap"));
                }
                if word.len() > crate::vector::MAX_LEXEME_BYTES {
                    return Err(invalid("operand too long"));
                }
                if word.is_empty() {
                    return Err(invalid("empty operand"));
                }
                Node::Value(Operand { word: word.into(), weights, prefix })
            }
            2 => match reader.u8().ok_or_else(short)? {
                1 => Node::Not(0),
                2 => Node::And(0, 0),
                3 => Node::Or(0, 0),
                4 => match reader.wire_u16().ok_or_else(short)? {
                    distance if distance > MAX_DISTANCE => {
                        return Err(invalid(&format!("invalid phrase distance {distance}")));
                    }
                    distance => Node::Phrase(0, 0, distance),
                },
                n => {
                    return Err(err!(
                        INVALID_BINARY_REPRESENTATION,
                        "invalid tsquery: unrecognized operator type {n}"
                    ));
                }
            },
            n => {
                return Err(err!(
                    INVALID_BINARY_REPRESENTATION,
                    "unrecognized tsquery node type: {n}"
                ));
            }
        });
    }
    let mut builder = Builder::default();
    let mut open: Vec<u32> = Vec::new();
    for node in nodes.into_iter().rev() {
        let mut pop = || open.pop().ok_or_else(|| invalid("malformed tree"));
        let node = match node {
            Node::Not(_) => Node::Not(pop()?),
            Node::Stop | Node::Value(_) => node,
            binary => {
                // Right operands stand first in the message, so here the left one was pushed before.
                let (right, left) = (pop()?, pop()?);
                match binary {
                    Node::And(..) => Node::And(left, right),
                    Node::Or(..) => Node::Or(left, right),
                    Node::Phrase(_, _, n) => Node::Phrase(left, right, n),
                    other => other,
                }
            }
        };
        open.push(builder.push(node));
    }
    match open.as_slice() {
        [] => Ok(TsQuery::default()),
        [root] => Ok(builder.finish(Some(*root))),
        _ => Err(invalid("extra nodes")),
    }
}
