//! Queries as trees of operators with any number of operands: what comparison, `@>` and `ts_rewrite` work on.

use std::cmp::Ordering;

use base::Result;

use crate::query::{Builder, Node, Operand, TsQuery};

/// An operator, as PostgreSQL numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// Not.
    Not = 1,
    /// All.
    And = 2,
    /// One.
    Or = 3,
    /// In a row.
    Phrase = 4,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A lexeme, with the checksum that orders it.
    Value(Operand, u32),
    /// An operator (its distance when it is a phrase) over operands, the rightmost first.
    Operator(Operator, u16, Vec<Tree>),
}

impl Tree {
    /// The part of a query below a node.
    pub fn of(query: &TsQuery, root: u32) -> Tree {
        // Children come before their parents.
        let mut made: Vec<Option<Tree>> = Vec::with_capacity(root as usize + 1);
        for node in &query.nodes[..=root as usize] {
            let mut take = |at: u32| {
                let taken = made.get_mut(at as usize).and_then(Option::take);
                taken.unwrap_or_else(|| Tree::Operator(Operator::And, 0, Vec::new()))
            };
            let tree = match node {
                Node::Value(v) => Tree::Value(v.clone(), checksum(v.word.as_bytes())),
                Node::Stop => Tree::Operator(Operator::And, 0, Vec::new()),
                Node::Not(a) => Tree::Operator(Operator::Not, 0, vec![take(*a)]),
                Node::And(a, b) => Tree::Operator(Operator::And, 0, vec![take(*b), take(*a)]),
                Node::Or(a, b) => Tree::Operator(Operator::Or, 0, vec![take(*b), take(*a)]),
                Node::Phrase(a, b, n) => {
                    Tree::Operator(Operator::Phrase, *n, vec![take(*b), take(*a)])
                }
            };
            made.push(Some(tree));
        }
        let root = made.pop().flatten();
        root.unwrap_or_else(|| Tree::Operator(Operator::And, 0, Vec::new()))
    }

    /// Back to a query.
    pub fn to_query(&self) -> Result<TsQuery> {
        let mut builder = Builder::default();
        let root = self.build(&mut builder)?;
        Ok(builder.finish(root))
    }

    fn build(&self, builder: &mut Builder) -> Result<Option<u32>> {
        sched::check_stack()?;
        Ok(match self {
            Tree::Value(v, _) => Some(builder.push(Node::Value(v.clone()))),
            Tree::Operator(Operator::Not, _, operands) => match operands.first() {
                Some(operand) => {
                    operand.build(builder)?.map(|below| builder.push(Node::Not(below)))
                }
                None => None,
            },
            Tree::Operator(operator, distance, operands) => {
                // The first two are the rightmost; the others follow from the last one on.
                let (first, rest) = operands.split_at(operands.len().min(2));
                let mut right = None;
                for operand in first.iter().chain(rest.iter().rev()) {
                    let left = operand.build(builder)?;
                    right = match (left, right) {
                        (Some(a), Some(b)) => Some(builder.push(match operator {
                            Operator::And => Node::And(a, b),
                            Operator::Or => Node::Or(a, b),
                            _ => Node::Phrase(a, b, *distance),
                        })),
                        (a, b) => a.or(b),
                    };
                }
                right
            }
        })
    }

    /// Operands of `&` and `|` that are the same operator give theirs to the one above.
    pub fn flatten(&mut self) -> Result<()> {
        sched::check_stack()?;
        let Tree::Operator(operator, _, operands) = self else { return Ok(()) };
        operands.iter_mut().try_for_each(Tree::flatten)?;
        if matches!(operator, Operator::And | Operator::Or) {
            let mut flat = Vec::new();
            for operand in std::mem::take(operands) {
                match operand {
                    Tree::Operator(o, _, inner) if o == *operator => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            *operands = flat;
        }
        Ok(())
    }

    /// Brings the operands of `&` and `|` into order, all the way down.
    pub fn sort(&mut self) -> Result<()> {
        sched::check_stack()?;
        let Tree::Operator(operator, _, operands) = self else { return Ok(()) };
        operands.iter_mut().try_for_each(Tree::sort)?;
        if matches!(operator, Operator::And | Operator::Or) {
            operands.sort_by(compare);
        }
        Ok(())
    }

    /// Brings the operands of `&` or `|` into order, as they are.
    pub fn sort_operands(&mut self) {
        if let Tree::Operator(Operator::And | Operator::Or, _, operands) = self {
            operands.sort_by(compare);
        }
    }
}

/// The order of nodes: operators after values; by operator (larger numbers first), number of operands (more
/// first), then the operands; by checksum and text.
pub fn compare(a: &Tree, b: &Tree) -> Ordering {
    match (a, b) {
        (Tree::Operator(..), Tree::Value(..)) => Ordering::Less,
        (Tree::Value(..), Tree::Operator(..)) => Ordering::Greater,
        (Tree::Operator(x, n, xs), Tree::Operator(y, m, ys)) => {
            let operands = || {
                let pairs = xs.iter().zip(ys).map(|(x, y)| compare(x, y));
                pairs.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            };
            y.cmp(x).then(ys.len().cmp(&xs.len())).then_with(operands).then(m.cmp(n))
        }
        (Tree::Value(x, c), Tree::Value(y, d)) => {
            // Checksums are compared with their sign.
            (*d as i32).cmp(&(*c as i32)).then_with(|| x.word.as_bytes().cmp(y.word.as_bytes()))
        }
    }
}

/// Bytes in the order of [`compare`].
pub fn key(tree: &Tree, out: &mut Vec<u8>) {
    match tree {
        Tree::Operator(operator, distance, operands) => {
            out.extend_from_slice(&[0, !(*operator as u8)]);
            out.extend_from_slice(&(!(operands.len() as u32)).to_be_bytes());
            operands.iter().for_each(|o| key(o, out));
            out.extend_from_slice(&(!distance).to_be_bytes());
        }
        Tree::Value(v, checksum) => {
            out.push(1);
            out.extend_from_slice(&(!(checksum ^ 1 << 31)).to_be_bytes());
            out.extend_from_slice(v.word.as_bytes());
            out.extend_from_slice(&[0, 0]);
        }
    }
}

/// The checksum that PostgreSQL keeps of a lexeme: CRC-32 with the usual table, but as if it were not the
/// reflected one.
pub fn checksum(bytes: &[u8]) -> u32 {
    let entry =
        |n: u32| (0..8).fold(n, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
    !bytes.iter().fold(u32::MAX, |crc, b| crc << 8 ^ entry((crc >> 24 ^ u32::from(*b)) & 0xff))
}

#[cfg(test)]
mod tests {
    use crate::parse::query;
    use crate::rewrite::rewrite;

    fn rewritten(q: &str, target: &str, substitute: &str) -> String {
        let of = |text: &str| query(text).unwrap();
        rewrite(&of(q), &of(target), &of(substitute)).unwrap().text().unwrap()
    }

    /// As PostgreSQL 15 prints them: operands are in the order of their checksums.
    #[test]
    fn rewritten_queries_are_in_order() {
        let all = "foo & bar & qq & new & york";
        assert_eq!(rewritten(all, "zzz", "yyy"), "'foo' & 'new' & 'bar' & 'qq' & 'york'");
        assert_eq!(rewritten(all, "new & york", "yyy"), "'foo' & 'bar' & 'qq' & 'yyy'");
        assert_eq!(rewritten("foo & bar & qq", "qq", "z|y"), "'bar' & 'foo' & ( 'z' | 'y' )");
        assert_eq!(rewritten("b&a", "a", "moskva|moscow|c"), "'b' & ( 'moskva' | 'moscow' | 'c' )");
        assert_eq!(rewritten("a", "a", "moscow|moskva"), "'moscow' | 'moskva'");
    }
}
