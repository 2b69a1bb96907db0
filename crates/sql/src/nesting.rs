//! The depth of a text's nesting, checked before it is parsed.
//!
//! The grammar's library hands its tree over in an encoding that is read recursively, in frames of
//! some kilobytes, without a check of the stack. So nesting is bounded first, by a scan that knows
//! what can nest: brackets, CASE, and, within one bracket, operators (each operand may hang on the
//! next operator) and joins and set operations (each has the ones before it as its left side). The
//! scan may count too much, never too little; AND, OR and commas end a chain of operators, since
//! they make flat lists.

use base::{Error, Result, err};

/// Deepest nesting of a tree that is decoded on a worker's own stack, which has 64 MiB.
pub const NESTING_MAX: usize = if cfg!(debug_assertions) { 300 } else { 1500 };

/// What a level may cost where the grammar's library runs: a level may be several nodes, and without optimisations
/// each takes some 40 KiB.
const PARSED_LEVEL_BYTES: usize = if cfg!(debug_assertions) { 160 << 10 } else { LEVEL_BYTES };

/// Deepest nesting at all: chains of operators are nesting to the grammar.
const DEEPEST: usize = 24_000;

/// Deepest nesting that the grammar's library surely takes.
const WHOLE_MAX: usize = 300;

/// Texts up to this length can't be nested more deeply than [`NESTING_MAX`]: a level takes at
/// least one byte.
const SHORT: usize = NESTING_MAX;

/// Texts up to this length need no stack but the ordinary one.
const SHALLOW_BYTES: usize = 512;

/// Levels that an ordinary stack has room for.
const SHALLOW: usize = 100;

/// What a level may take of the stack while a statement is bound, planned and run, in a build without
/// optimisations, and as much again for recursions that don't check the stack.
const LEVEL_BYTES: usize = 16 << 10;

/// How many levels' stack a subquery, a set operation or a join takes: what binds and plans queries has larger frames.
const QUERY_LEVELS: usize = 4;

/// Largest stack for a statement. Of a stack only what is used takes memory.
const STACK_BYTES_MAX: usize = 1 << 30;

/// Bytes of stack that binding, planning and running a text may need; 0: the ordinary stack is enough.
pub fn stack_for(text: &str) -> usize {
    if text.len() <= SHALLOW_BYTES {
        return 0;
    }
    match deepest(text.as_bytes(), true) {
        0..=SHALLOW => 0,
        levels => (levels * LEVEL_BYTES).min(STACK_BYTES_MAX),
    }
}

/// Levels that fit a stack of so many bytes ([`stack_for`]).
pub(crate) fn levels_of(stack_bytes: usize) -> usize {
    stack_bytes / LEVEL_BYTES
}

/// Runs the grammar's library over a text, or over a tree of one, on a stack that is large enough. The library
/// looks at its thread's stack, so that of a deep text is a thread's.
///
/// # Errors
/// `53200`, when there is no room for one.
pub(crate) fn on_parsers_stack<R: Send>(levels: usize, f: impl FnOnce() -> R + Send) -> Result<R> {
    if levels <= NESTING_MAX {
        return Ok(sched::on_native_stack(f));
    }
    let bytes = (levels * PARSED_LEVEL_BYTES).min(STACK_BYTES_MAX);
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().stack_size(bytes).spawn_scoped(scope, f);
        let thread = started.map_err(|e| err!(OUT_OF_MEMORY, "no memory for a stack: {e}"))?;
        thread.join().map_err(|_| Error::internal("the parser failed"))
    })
}

/// Words that take an operand or make one larger.
const OPERATORS: [&str; 16] = [
    "not", "collate", "at", "is", "isnull", "notnull", "like", "ilike", "similar", "between", "in",
    "overlaps", "any", "all", "some", "escape",
];
/// Words that have everything before them as their left side.
const CHAINS: [&str; 4] = ["join", "union", "intersect", "except"];

/// One open bracket.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators since the last comma, AND or OR.
    operators: usize,
    /// Joins and set operations.
    chains: usize,
}

/// How deeply a text may be nested; None: more than is allowed.
pub(crate) fn levels(text: &str) -> Option<usize> {
    if text.len() <= SHORT {
        return Some(text.len());
    }
    Some(deepest(text.as_bytes(), false)).filter(|levels| *levels <= DEEPEST)
}

/// Whether a text of so many levels may be too much for the grammar's library in one piece.
pub(crate) fn may_be_chains(text: &str, levels: usize) -> bool {
    text.len() > SHORT && levels > WHOLE_MAX
}

/// The deepest nesting; `lists`: AND and OR count, whose lists some of the planner takes one by one.
fn deepest(bytes: &[u8], lists: bool) -> usize {
    let mut levels = vec![Level::default()];
    // Levels below the last one, with what hangs in them.
    let (mut below, mut deepest, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut step = 1;
        let mut level = levels.pop().unwrap_or_default();
        match rest[0] {
            b'(' | b'[' => {
                below += level.operators + level.chains + 1;
                levels.push(level);
                level = Level::default();
            }
            b')' | b']' => (level, below) = closed(&mut levels, below),
            b',' => level.operators = 0,
            b';' => level = Level::default(),
            b'\'' => step = string(rest, at > 0 && matches!(bytes[at - 1], b'e' | b'E')),
            b'"' => step = 2 + rest[1..].iter().position(|b| *b == b'"').unwrap_or(rest.len()),
            b'-' if rest.starts_with(b"--") => {
                step = rest.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
            }
            b'/' if rest.starts_with(b"/*") => step = comment(rest),
            b'$' => step = dollar(rest),
            b'+' | b'-' | b'*' | b'/' | b'<' | b'>' | b'=' | b'~' | b'!' | b'@' | b'#' | b'%'
            | b'^' | b'&' | b'|' | b'`' | b'?' | b':' => level.operators += 1,
            b if is_word(b) => {
                step = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
                let word = &rest[..step];
                let is = |w: &&str| word.eq_ignore_ascii_case(w.as_bytes());
                if is(&"and") || is(&"or") {
                    level.operators = if lists { level.operators + 1 } else { 0 };
                } else if is(&"when") || is(&"then") || is(&"else") {
                    // The branches of a CASE are a list.
                    level.operators = 1;
                } else if is(&"case") {
                    below += level.operators + level.chains + 1;
                    levels.push(level);
                    level = Level::default();
                } else if is(&"end") && levels.len() > 1 {
                    (level, below) = closed(&mut levels, below);
                } else if CHAINS.iter().any(is)
                    || lists && is(&"select") && !levels.is_empty()
                    || lists && is(&"as") && opens_query(&rest[step..])
                {
                    level.chains += if lists { QUERY_LEVELS } else { 1 };
                } else if OPERATORS.iter().any(is) {
                    level.operators += 1;
                }
            }
            _ => {}
        }
        levels.push(level);
        deepest = deepest.max(below + level.operators + level.chains);
        at += step.max(1);
    }
    deepest
}

/// Whether a query of WITH follows its AS: each may read the one before it, which is then run below it.
fn opens_query(rest: &[u8]) -> bool {
    let mut rest = rest.trim_ascii_start();
    for word in [&b"not"[..], b"materialized"] {
        if rest.get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word)) {
            rest = rest[word.len()..].trim_ascii_start();
        }
    }
    rest.first() == Some(&b'(')
}

/// The level outside of a bracket that closes; what stood inside hangs on the next operator there.
fn closed(levels: &mut Vec<Level>, below: usize) -> (Level, usize) {
    match levels.pop() {
        Some(outer) => (outer, below - outer.operators - outer.chains - 1),
        None => (Level::default(), 0),
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

/// Length of a quoted string.
fn string(rest: &[u8], escapes: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if escapes => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a comment; they nest.
pub(crate) fn comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a dollar-quoted string; 1 if it is none.
fn dollar(rest: &[u8]) -> usize {
    let tag = 1 + rest[1..].iter().position(|b| !is_word(*b)).unwrap_or(rest.len() - 1);
    if rest.get(tag) != Some(&b'$') || rest.get(1).is_some_and(u8::is_ascii_digit) {
        return 1;
    }
    let quote = &rest[..=tag];
    let found = rest[quote.len()..].windows(quote.len()).position(|w| w == quote);
    found.map_or(rest.len(), |at| quote.len() * 2 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_is_counted() {
        let depth = |text: String| deepest(text.as_bytes(), false);
        assert!(depth(format!("select {}1{}", "(".repeat(50), ")".repeat(50))) >= 50);
        assert!(depth(format!("select {}true", "not ".repeat(50))) >= 50);
        assert!(depth(format!("select 1{}", " + 1".repeat(50))) >= 50);
        assert!(
            depth(format!("select {}1{}", "case when a then ".repeat(50), " end".repeat(50))) >= 50
        );
        assert!(depth(format!("select 1 from a{}", " join b on a and c".repeat(50))) >= 50);
        assert!(depth(format!("select 1{}", " union select 1".repeat(50))) >= 50);
        assert!(depth(format!("select {}1", "- (1) ".repeat(50))) >= 50);
        let nested = format!("{}select 1{}", "select * from (".repeat(50), ") x".repeat(50));
        assert!(deepest(nested.as_bytes(), true) >= 50 * QUERY_LEVELS);
    }

    #[test]
    fn what_is_flat_is_not() {
        let depth = |text: String| deepest(text.as_bytes(), false);
        assert!(depth(format!("select 1 where a = 1{}", " and a = (1 + 2)".repeat(500))) < 10);
        assert!(depth(format!("insert into t values (1, -2){}", ", (3, -4 * 5)".repeat(500))) < 10);
        assert!(depth(format!("select 1 in ({})", "1, ".repeat(500))) < 10);
        assert!(depth("select '((((((((((', \"((((((((((\" -- ((((((((((".into()) < 5);
        assert!(depth("select /* ((( /* ((( */ ((( */ $x$ (((((( $x$, E'\\'(((((('".into()) < 5);
    }
}
