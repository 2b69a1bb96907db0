//! Trees that were parsed in pieces ([`crate::chains`]), put together.

use pg_query::{NodeEnum, protobuf as pb};

use crate::chains::{Cut, Kind};

/// The number of the parameter that stands for the first piece; no client's has one as large.
const FIRST: i32 = 2_147_000_000;
/// How texts that can't be cut because they have such a parameter begin theirs.
const RESERVED: &str = "$2147";

/// A piece's tree.
enum Piece {
    Expression(pb::Node),
    Query(Box<pb::SelectStmt>),
}

/// A child of a node.
enum Child<'a> {
    Node(&'a mut pb::Node),
    Query(&'a mut pb::SelectStmt),
}

/// Parses a text by its cuts. None: it can't be done, the text is to be parsed as it is.
pub(crate) fn parse(text: &str, cuts: &[Cut]) -> Option<Vec<pb::RawStmt>> {
    if cuts.is_empty() || text.contains(RESERVED) {
        return None;
    }
    let mut rest = text.as_bytes().to_vec();
    let mut pieces = Vec::with_capacity(cuts.len());
    for cut in cuts {
        let mut piece = parse_piece(&rest, cut)?;
        let grafted = match &mut piece {
            Piece::Expression(node) => graft(Child::Node(node), &mut pieces),
            Piece::Query(query) => graft(Child::Query(query), &mut pieces),
        };
        replace(&mut rest[cut.range.clone()], cut.kind, pieces.len())?;
        pieces.push(Some(piece));
        grafted?;
    }
    let mut statements = pg_query::parse(std::str::from_utf8(&rest).ok()?, 0).ok()?.protobuf.stmts;
    for node in statements.iter_mut().filter_map(|raw| raw.stmt.as_deref_mut()) {
        graft(Child::Node(node), &mut pieces)?;
    }
    pieces.iter().all(Option::is_none).then_some(statements)
}

/// Puts a piece's parameter in its place.
fn replace(place: &mut [u8], kind: Kind, piece: usize) -> Option<()> {
    let number = FIRST + piece as i32;
    let name = match kind {
        Kind::Expression => format!(" ${number} "),
        Kind::Query => format!("select ${number} "),
    };
    place.fill(b' ');
    place.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(())
}

fn parse_piece(rest: &[u8], cut: &Cut) -> Option<Piece> {
    let mut text = vec![b' '; cut.range.start];
    if cut.kind == Kind::Expression {
        // Of six bytes the word itself is the only one that there can have been.
        let room = cut.range.start.min(7);
        text[cut.range.start - room..]
            .copy_from_slice(b"SELECT ".get(..room).filter(|w| w.len() > 5)?);
    }
    text.extend(&rest[cut.range.clone()]);
    let parsed = pg_query::parse(std::str::from_utf8(&text).ok()?, 0).ok()?.protobuf.stmts;
    let [pb::RawStmt { stmt: Some(node), .. }] = <[_; 1]>::try_from(parsed).ok()? else {
        return None;
    };
    let Some(NodeEnum::SelectStmt(query)) = node.node else { return None };
    match cut.kind {
        Kind::Query => Some(Piece::Query(query)),
        Kind::Expression => only_target(*query).map(Piece::Expression),
    }
}

/// The expression of a query that is nothing else.
fn only_target(mut query: pb::SelectStmt) -> Option<pb::Node> {
    let targets = std::mem::take(&mut query.target_list);
    let nothing =
        pb::SelectStmt { limit_option: query.limit_option, op: query.op, ..Default::default() };
    let [pb::Node { node: Some(NodeEnum::ResTarget(target)) }] =
        <[_; 1]>::try_from(targets).ok()?
    else {
        return None;
    };
    let alone = query == nothing && target.name.is_empty() && target.indirection.is_empty();
    target.val.filter(|_| alone).map(|node| *node)
}

/// Which piece a parameter stands for.
fn piece_of(node: Option<&NodeEnum>) -> Option<usize> {
    match node {
        Some(NodeEnum::ParamRef(param)) => usize::try_from(param.number - FIRST).ok(),
        _ => None,
    }
}

fn piece_of_query(query: &pb::SelectStmt) -> Option<usize> {
    match query.target_list.as_slice() {
        [pb::Node { node: Some(NodeEnum::ResTarget(target)) }] => {
            piece_of(target.val.as_ref()?.node.as_ref())
        }
        _ => None,
    }
}

/// Puts pieces where their parameters stand. None: one is of another kind than its place.
fn graft(root: Child<'_>, pieces: &mut [Option<Piece>]) -> Option<()> {
    let mut left = vec![root];
    while let Some(child) = left.pop() {
        match child {
            Child::Node(node) => match piece_of(node.node.as_ref()) {
                Some(i) => match pieces.get_mut(i)?.take()? {
                    Piece::Expression(piece) => *node = piece,
                    Piece::Query(_) => return None,
                },
                None => {
                    if let Some(node) = node.node.as_mut() {
                        children(node, &mut left);
                    }
                }
            },
            Child::Query(query) => match piece_of_query(query) {
                Some(i) if matches!(pieces.get(i), Some(Some(Piece::Query(_)))) => {
                    let Some(Piece::Query(piece)) = pieces[i].take() else { return None };
                    *query = *piece;
                }
                _ => children_of_query(query, &mut left),
            },
        }
    }
    Some(())
}

fn children<'a>(node: &'a mut NodeEnum, to: &mut Vec<Child<'a>>) {
    let mut one = |node: &'a mut Option<Box<pb::Node>>| {
        if let Some(node) = node {
            to.push(Child::Node(node));
        }
    };
    match node {
        NodeEnum::SelectStmt(n) => to.push(Child::Query(n)),
        NodeEnum::AExpr(n) => {
            one(&mut n.lexpr);
            one(&mut n.rexpr);
        }
        NodeEnum::TypeCast(n) => one(&mut n.arg),
        NodeEnum::CollateClause(n) => one(&mut n.arg),
        NodeEnum::NullTest(n) => one(&mut n.arg),
        NodeEnum::BooleanTest(n) => one(&mut n.arg),
        NodeEnum::NamedArgExpr(n) => one(&mut n.arg),
        NodeEnum::ResTarget(n) => one(&mut n.val),
        NodeEnum::SortBy(n) => one(&mut n.node),
        NodeEnum::RangeSubselect(n) => one(&mut n.subquery),
        NodeEnum::ExplainStmt(n) => one(&mut n.query),
        NodeEnum::CreateTableAsStmt(n) => one(&mut n.query),
        NodeEnum::ViewStmt(n) => one(&mut n.query),
        NodeEnum::PrepareStmt(n) => one(&mut n.query),
        NodeEnum::DeclareCursorStmt(n) => one(&mut n.query),
        NodeEnum::CopyStmt(n) => one(&mut n.query),
        NodeEnum::CommonTableExpr(n) => one(&mut n.ctequery),
        NodeEnum::CaseWhen(n) => {
            one(&mut n.expr);
            one(&mut n.result);
        }
        NodeEnum::AIndices(n) => {
            one(&mut n.lidx);
            one(&mut n.uidx);
        }
        NodeEnum::SubLink(n) => {
            one(&mut n.testexpr);
            one(&mut n.subselect);
        }
        NodeEnum::JoinExpr(n) => {
            one(&mut n.larg);
            one(&mut n.rarg);
            one(&mut n.quals);
        }
        NodeEnum::CaseExpr(n) => {
            one(&mut n.arg);
            one(&mut n.defresult);
            all(&mut n.args, to);
        }
        NodeEnum::AIndirection(n) => {
            one(&mut n.arg);
            all(&mut n.indirection, to);
        }
        NodeEnum::FuncCall(n) => {
            one(&mut n.agg_filter);
            all(&mut n.args, to);
            all(&mut n.agg_order, to);
        }
        NodeEnum::InsertStmt(n) => {
            one(&mut n.select_stmt);
            with(&mut n.with_clause, to);
        }
        NodeEnum::UpdateStmt(n) => {
            one(&mut n.where_clause);
            all(&mut n.target_list, to);
            all(&mut n.from_clause, to);
            with(&mut n.with_clause, to);
        }
        NodeEnum::DeleteStmt(n) => {
            one(&mut n.where_clause);
            all(&mut n.using_clause, to);
            with(&mut n.with_clause, to);
        }
        NodeEnum::BoolExpr(n) => all(&mut n.args, to),
        NodeEnum::AArrayExpr(n) => all(&mut n.elements, to),
        NodeEnum::RowExpr(n) => all(&mut n.args, to),
        NodeEnum::CoalesceExpr(n) => all(&mut n.args, to),
        NodeEnum::MinMaxExpr(n) => all(&mut n.args, to),
        NodeEnum::RangeFunction(n) => all(&mut n.functions, to),
        NodeEnum::List(n) => all(&mut n.items, to),
        _ => {}
    }
}

fn children_of_query<'a>(query: &'a mut pb::SelectStmt, to: &mut Vec<Child<'a>>) {
    let expressions = [
        &mut query.where_clause,
        &mut query.having_clause,
        &mut query.limit_count,
        &mut query.limit_offset,
    ];
    to.extend(expressions.into_iter().flatten().map(|node| Child::Node(node)));
    for list in [
        &mut query.distinct_clause,
        &mut query.target_list,
        &mut query.from_clause,
        &mut query.group_clause,
        &mut query.values_lists,
        &mut query.sort_clause,
    ] {
        all(list, to);
    }
    with(&mut query.with_clause, to);
    let sides = [&mut query.larg, &mut query.rarg];
    to.extend(sides.into_iter().flatten().map(|query| Child::Query(query)));
}

fn all<'a>(nodes: &'a mut [pb::Node], to: &mut Vec<Child<'a>>) {
    to.extend(nodes.iter_mut().map(Child::Node));
}

fn with<'a>(clause: &'a mut Option<pb::WithClause>, to: &mut Vec<Child<'a>>) {
    if let Some(clause) = clause {
        all(&mut clause.ctes, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree's text, without positions: those of nested blanks differ.
    fn printed(statements: Vec<pb::RawStmt>) -> String {
        pg_query::deparse(&pb::ParseResult { version: 0, stmts: statements }, Default::default())
            .expect("a tree that prints")
    }

    #[test]
    fn a_tree_of_pieces_is_the_tree_of_the_whole() {
        let long = |part: &str| part.repeat(320);
        for text in [
            format!(
                "select a, b{} as c from t where (x{}) > 1",
                long(" * c + d"),
                long(" || 'é' ")
            ),
            format!("select f(-x{}, 2), y{}", long("::int::text"), long(" - 1 * 3 % 4")),
            format!("select 1{}", long("+1")),
            format!("select {}a = 1 or {}b", "not ".repeat(700), "not ".repeat(500)),
            format!("select a || b{} < c", long(" collate \"C\"")),
            format!("with w as (select 1{}) select 2", long(" union all select 1")),
            format!("(select 1){} order by 1", long(" except (select 2)")),
            format!("update t set a = case when b{} then c end", long(" # 1")),
            format!("explain select 1{}; select 2", long(" intersect select 3")),
        ] {
            let cuts = crate::chains::cuts(&text);
            assert!(!cuts.is_empty(), "{text}");
            let whole = std::thread::Builder::new().stack_size(256 << 20);
            let run = move || {
                let pieces = parse(&text, &cuts).expect("parsed in pieces");
                let whole = pg_query::parse(&text, 0).expect("parsed").protobuf.stmts;
                assert!(pieces == whole, "positions and all: {text}");
                assert_eq!(printed(pieces), printed(whole));
            };
            whole.spawn(run).expect("a thread").join().expect("the same");
        }
    }
}
