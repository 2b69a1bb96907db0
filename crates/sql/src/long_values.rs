//! VALUES of many rows of plain constants, as drivers and dumps write them: of INSERT, in FROM, in WITH, as MERGE's source.
//!
//! The grammar's tree comes as a message that is written and read back, some hundred bytes for each constant. For
//! these statements the grammar gets the first row only, with blanks in place of the others:
//!
//! ```text
//!   INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z') RETURNING a
//!   INSERT INTO t (a, b) VALUES (1, 'x')                     RETURNING a     to the grammar
//!                                        (2, 'y'), (3, 'z')                  read here, added to its tree
//! ```
//! so that every node has the same location as in the whole text. What is read here: numbers, strings between plain
//! quotes, NULL, TRUE, FALSE, DEFAULT and parameters. Anything else in a row, a comment for example, and the whole text
//! goes to the grammar, and so does one that is wrong, for the error.

use pg_query::{NodeEnum, protobuf as pb};

/// Shorter texts aren't worth a look.
const TEXT_MIN: usize = 512;

/// Parses a text of this kind; None: it is of another, or wrong.
pub(crate) fn parse(text: &str) -> Option<Vec<pb::RawStmt>> {
    let rows = Rows::read(text)?;
    let (from, to) = (rows.first_end, rows.end);
    let mut short = String::with_capacity(text.len());
    short.push_str(&text[..from]);
    short.extend(std::iter::repeat_n(' ', to - from));
    short.push_str(&text[to..]);
    let mut statements = pg_query::parse(&short, 0).ok()?.protobuf.stmts;
    let [statement] = statements.as_mut_slice() else { return None };
    let place = i32::try_from(rows.constants.first()?.start).ok()?;
    let select = values_in(statement.stmt.as_mut()?, place)?;
    select.values_lists.reserve(rows.lengths.len());
    let mut constants = rows.constants.iter().skip(rows.first_count);
    for length in rows.lengths {
        let items =
            constants.by_ref().take(length).map(|c| c.node(text)).collect::<Option<Vec<_>>>()?;
        select.values_lists.push(pb::Node { node: Some(NodeEnum::List(pb::List { items })) });
    }
    Some(statements)
}

/// Whether the one row of a VALUES begins at this place.
fn begins_at(select: &pb::SelectStmt, place: i32) -> bool {
    let [row] = select.values_lists.as_slice() else { return false };
    let Some(NodeEnum::List(row)) = &row.node else { return false };
    let location = row.items.first().and_then(|item| match &item.node {
        Some(NodeEnum::AConst(constant)) => Some(constant.location),
        Some(NodeEnum::SetToDefault(default)) => Some(default.location),
        Some(NodeEnum::ParamRef(parameter)) => Some(parameter.location),
        _ => None,
    });
    location == Some(place)
}

/// The VALUES whose row begins at this place, where the grammar may have it below a statement or an item of FROM.
fn values_in(node: &mut pb::Node, place: i32) -> Option<&mut pb::SelectStmt> {
    match node.node.as_mut()? {
        NodeEnum::SelectStmt(select) => values_of(select, place),
        NodeEnum::InsertStmt(insert) => {
            let with = insert.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
            with.chain(insert.select_stmt.as_deref_mut()).find_map(|node| values_in(node, place))
        }
        NodeEnum::UpdateStmt(update) => {
            let with = update.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
            with.chain(&mut update.from_clause).find_map(|node| values_in(node, place))
        }
        NodeEnum::DeleteStmt(delete) => {
            let with = delete.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
            with.chain(&mut delete.using_clause).find_map(|node| values_in(node, place))
        }
        NodeEnum::MergeStmt(merge) => {
            let with = merge.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
            with.chain(merge.source_relation.as_deref_mut()).find_map(|node| values_in(node, place))
        }
        NodeEnum::CommonTableExpr(cte) => values_in(cte.ctequery.as_mut()?, place),
        NodeEnum::RangeSubselect(from) => values_in(from.subquery.as_mut()?, place),
        NodeEnum::JoinExpr(join) => {
            let sides = join.larg.as_deref_mut().into_iter().chain(join.rarg.as_deref_mut());
            sides.into_iter().find_map(|node| values_in(node, place))
        }
        NodeEnum::ExplainStmt(explain) => values_in(explain.query.as_mut()?, place),
        NodeEnum::CreateTableAsStmt(create) => values_in(create.query.as_mut()?, place),
        _ => None,
    }
}

fn values_of(select: &mut pb::SelectStmt, place: i32) -> Option<&mut pb::SelectStmt> {
    if begins_at(select, place) {
        return Some(select);
    }
    let with = select.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
    let below = with.chain(&mut select.from_clause).find_map(|node| values_in(node, place));
    let sides = select.larg.as_deref_mut().into_iter().chain(select.rarg.as_deref_mut());
    below.or_else(|| sides.into_iter().find_map(|side| values_of(side, place)))
}

/// The text with `$n` in place of constants, as the library does it; None: it is of another kind.
pub(crate) fn without_constants(text: &str) -> Option<String> {
    let rows = Rows::read(text)?;
    if !rows.of_insert || !matches!(text[rows.end..].trim(), "" | ";") {
        return None;
    }
    let number = |c: &Constant| match c.kind {
        Kind::Parameter => text[c.start + 1..c.end].parse().unwrap_or(0),
        _ => 0_usize,
    };
    let mut next = rows.constants.iter().map(number).max().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for constant in rows.constants.iter().filter(|c| c.kind.is_constant()) {
        next += 1;
        out.push_str(&text[from..constant.start]);
        out.push('$');
        out.push_str(&next.to_string());
        from = constant.end;
    }
    out.push_str(&text[from..]);
    Some(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    String,
    Null,
    True,
    False,
    Default,
    Parameter,
}

impl Kind {
    fn is_constant(self) -> bool {
        !matches!(self, Kind::Default | Kind::Parameter)
    }
}

/// A constant and its bytes' range.
struct Constant {
    kind: Kind,
    start: usize,
    end: usize,
}

impl Constant {
    /// As a node of the grammar's.
    fn node(&self, text: &str) -> Option<pb::Node> {
        let location = i32::try_from(self.start).ok()?;
        let word = &text[self.start..self.end];
        let constant =
            |val| NodeEnum::AConst(pb::AConst { isnull: false, location, val: Some(val) });
        use pb::a_const::Val;
        let node = match self.kind {
            Kind::Null => NodeEnum::AConst(pb::AConst { isnull: true, location, val: None }),
            Kind::True => constant(Val::Boolval(pb::Boolean { boolval: true })),
            Kind::False => constant(Val::Boolval(pb::Boolean { boolval: false })),
            Kind::String => {
                let sval = word[1..word.len() - 1].replace("''", "'");
                constant(Val::Sval(pb::String { sval }))
            }
            Kind::Default => NodeEnum::SetToDefault(Box::new(pb::SetToDefault {
                location,
                ..Default::default()
            })),
            Kind::Parameter => {
                NodeEnum::ParamRef(pb::ParamRef { number: word[1..].parse().ok()?, location })
            }
            Kind::Number => {
                let (sign, digits) = match word.strip_prefix('-') {
                    Some(rest) => ("-", rest.trim_ascii_start()),
                    None => ("", word),
                };
                match digits.parse::<i32>() {
                    Ok(ival) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                        let ival = if sign.is_empty() { ival } else { -ival };
                        constant(Val::Ival(pb::Integer { ival }))
                    }
                    _ => constant(Val::Fval(pb::Float { fval: format!("{sign}{digits}") })),
                }
            }
        };
        Some(pb::Node { node: Some(node) })
    }
}

/// Where the rows are.
struct Rows {
    /// They are what INSERT writes: before them are names alone.
    of_insert: bool,
    /// Of all rows, one after the other.
    constants: Vec<Constant>,
    /// How many the first row has.
    first_count: usize,
    /// The byte behind the first row.
    first_end: usize,
    /// The byte behind the last row.
    end: usize,
    /// How many constants each row after the first one has.
    lengths: Vec<usize>,
}

impl Rows {
    fn read(text: &str) -> Option<Rows> {
        if text.len() < TEXT_MIN {
            return None;
        }
        let mut at = Cursor { bytes: text.as_bytes(), at: 0 };
        let of_insert = at.head()?;
        let mut constants = Vec::new();
        at.row(&mut constants)?;
        let (first_count, first_end) = (constants.len(), at.at);
        let (mut end, mut lengths, mut count) = (at.at, Vec::new(), first_count);
        loop {
            at.blanks();
            if at.peek() != Some(b',') {
                break;
            }
            at.at += 1;
            at.row(&mut constants)?;
            lengths.push(constants.len() - count);
            (count, end) = (constants.len(), at.at);
        }
        if lengths.is_empty() {
            return None;
        }
        Some(Rows { of_insert, constants, first_count, first_end, end, lengths })
    }
}

struct Cursor<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> &'t [u8] {
        let start = self.at;
        let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80;
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    /// A statement up to its first VALUES and with it; whether it is INSERT with names and lists of names. Left to the
    /// grammar is what has strings or comments before it.
    fn head(&mut self) -> Option<bool> {
        self.blanks();
        let first = self.word();
        if first.eq_ignore_ascii_case(b"values") {
            return Some(false);
        }
        let insert = first.eq_ignore_ascii_case(b"insert");
        let (mut depth, mut names) = (0_usize, true);
        loop {
            self.blanks();
            match self.peek()? {
                b'(' => depth += 1,
                b')' => depth = depth.checked_sub(1)?,
                b',' | b'.' => {}
                b'*' | b'=' | b'+' | b'<' | b'>' => names = false,
                b'"' => self.at += 1 + self.bytes[self.at + 1..].iter().position(|b| *b == b'"')?,
                _ => {
                    let word = self.word();
                    if word.is_empty() {
                        return None;
                    }
                    if word.eq_ignore_ascii_case(b"values") {
                        return Some(insert && names && depth == 0);
                    }
                    continue;
                }
            }
            self.at += 1;
        }
    }

    fn row(&mut self, out: &mut Vec<Constant>) -> Option<()> {
        self.blanks();
        if self.peek()? != b'(' {
            return None;
        }
        loop {
            self.at += 1;
            self.blanks();
            let constant = self.constant()?;
            out.push(constant);
            self.blanks();
            match self.peek()? {
                b',' => {}
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn constant(&mut self) -> Option<Constant> {
        let start = self.at;
        let kind = match self.peek()? {
            b'\'' => {
                self.string()?;
                Kind::String
            }
            b'-' => {
                self.at += 1;
                // Two of them begin a comment, and the number may be far off.
                self.blanks();
                self.number()?;
                Kind::Number
            }
            b'0'..=b'9' | b'.' => {
                self.number()?;
                Kind::Number
            }
            b'$' => {
                self.at += 1;
                let digits = self.word();
                if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                Kind::Parameter
            }
            _ => {
                let word = self.word();
                let known = [
                    (&b"null"[..], Kind::Null),
                    (b"true", Kind::True),
                    (b"false", Kind::False),
                    (b"default", Kind::Default),
                ];
                known.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name))?.1
            }
        };
        Some(Constant { kind, start, end: self.at })
    }

    /// Between quotes, two of which stand for one. A string that goes on in the next line ends in a quote, too, so what
    /// follows is no comma.
    fn string(&mut self) -> Option<()> {
        loop {
            self.at += 1;
            self.at += self.bytes[self.at..].iter().position(|b| *b == b'\'')? + 1;
            if self.peek() != Some(b'\'') {
                return Some(());
            }
        }
    }

    /// Digits with a point and an exponent; nothing that a later version reads otherwise.
    fn number(&mut self) -> Option<()> {
        let mut count = self.digits();
        if self.peek() == Some(b'.') {
            self.at += 1;
            count += self.digits();
        }
        if count == 0 {
            return None;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        let goes_on =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$') || b >= 0x80;
        if self.peek().is_some_and(goes_on) { None } else { Some(()) }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str =
        "(1, 'a'), ( -2,'it''s'),(3.5,NULL) , (- 4e3, true),(.5,FALSE),(2147483647,''),
        (2147483648,default), (-2147483648, $1),(007,'é\\n'),( 1., $12 )";

    fn long(head: &str, tail: &str) -> String {
        format!("{head} values {}{ROWS}{tail}", "(0, 'first of many rows'),".repeat(30))
    }

    #[test]
    fn trees_are_the_grammars() {
        for text in [
            long("INSERT INTO t (a, \"b (\")", ""),
            long("  insert into s.t as x OVERRIDING SYSTEM VALUE", " ; "),
            long(
                "INSERT INTO t",
                " ON CONFLICT (a) DO UPDATE SET b = excluded.b || 'x' RETURNING a, 5;",
            ),
            long("WITH x AS (SELECT 1) INSERT INTO t", ""),
            long("SELECT a, count(*) FROM (", ") v (a, b) WHERE a > 'x' GROUP BY a"),
            long("", " ORDER BY 1"),
            long("WITH x AS (", ") SELECT * FROM x, (VALUES (1), (2)) y"),
            long("SELECT 1, 2 UNION ALL", ""),
            long("INSERT INTO t SELECT 1 UNION", ""),
            long("SELECT * FROM a LEFT JOIN (", ") v ON true"),
            long("UPDATE t SET a = v.a FROM (", ") v (a) WHERE v.a = t.a"),
            long("MERGE INTO t USING (", ") v (a, b) ON v.a = t.a WHEN MATCHED THEN DELETE"),
            long("CREATE TABLE c AS", ""),
        ] {
            let whole = pg_query::parse(&text, 0).unwrap().protobuf.stmts;
            assert_eq!(parse(&text).as_ref(), Some(&whole), "{text}");
        }
    }

    #[test]
    fn constants_are_left_out_as_the_library_does() {
        for text in [long("INSERT INTO t (a, b)", ""), long("INSERT INTO t", ";")] {
            assert_eq!(
                without_constants(&text),
                Some(pg_query::normalize(&text).unwrap()),
                "{text}"
            );
        }
        assert_eq!(without_constants(&long("INSERT INTO t", " RETURNING 1")), None);
    }

    #[test]
    fn other_texts_go_to_the_grammar() {
        for (head, tail) in [
            ("SELECT 'x' FROM (", ") v"),
            ("SELECT (", ")"),
            ("INSERT INTO t /* why */", ""),
            ("INSERT INTO t[1]", ""),
            ("INSERT INTO t", ", (1, now())"),
            ("INSERT INTO t", ", (1, 'a' 'b')"),
            ("INSERT INTO t", ", (1, E'a')"),
            ("INSERT INTO t", ", (0x1F, 'a')"),
            ("INSERT INTO t", ", (1, --2\n 3)"),
            ("INSERT INTO t", ", (1, 'a')) "),
            ("INSERT INTO t", ", (1, 'a'), "),
            ("INSERT INTO t", "; SELECT 1"),
            ("INSERT INTO values", " nonsense"),
        ] {
            assert!(parse(&long(head, tail)).is_none(), "{head} {tail}");
        }
        assert!(parse("INSERT INTO t VALUES (1), (2)").is_none(), "short");
    }
}
