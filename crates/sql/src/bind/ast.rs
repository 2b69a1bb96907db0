//! Small readers of the grammar's tree.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

/// The text of a String node; empty for others.
pub(crate) fn string(node: &pb::Node) -> &str {
    match &node.node {
        Some(NodeEnum::String(s)) => &s.sval,
        _ => "",
    }
}

/// The texts of String nodes.
pub(crate) fn strings(nodes: &[pb::Node]) -> Vec<&str> {
    nodes.iter().map(string).collect()
}

/// Owned texts of String nodes.
pub(crate) fn owned_strings(nodes: &[pb::Node]) -> Vec<String> {
    nodes.iter().map(|n| string(n).to_owned()).collect()
}

/// The items of a List node; none for others.
pub(crate) fn list(node: &pb::Node) -> &[pb::Node] {
    match &node.node {
        Some(NodeEnum::List(l)) => &l.items,
        _ => &[],
    }
}

/// `0A000` for a name in another database than the session's, `42601` for one of more parts than there can be.
/// `relation`: messages quote the names of relations.
pub(crate) fn check_database(names: &[&str], database: &str, relation: bool) -> Result<()> {
    match names {
        [] | [_] | [_, _] => return Ok(()),
        [of, _, _] if *of == database => return Ok(()),
        _ => {}
    }
    let full = names.join(".");
    if names.len() > 3 {
        let what = if relation { "relation" } else { "qualified" };
        return Err(err!(SYNTAX_ERROR, "improper {what} name (too many dotted names): {full}"));
    }
    let full = if relation { format!("\"{full}\"") } else { full };
    Err(err!(FEATURE_NOT_SUPPORTED, "cross-database references are not implemented: {full}"))
}

/// (schema, name) of a possibly qualified name.
pub(crate) fn qualified<'n>(names: &[&'n str]) -> (Option<&'n str>, &'n str) {
    match names {
        [] => (None, ""),
        [name] => (None, name),
        [.., schema, name] => (Some(schema), name),
    }
}

/// The location that an expression node carries, or -1.
pub(crate) fn location(node: &NodeEnum) -> i32 {
    match node {
        NodeEnum::ColumnRef(n) => n.location,
        NodeEnum::AConst(n) => n.location,
        NodeEnum::ParamRef(n) => n.location,
        NodeEnum::AExpr(_) | NodeEnum::TypeCast(_) => leftmost(node),
        NodeEnum::BoolExpr(n) => {
            let first = n.args.first().and_then(|a| a.node.as_ref()).map_or(-1, location);
            if first >= 0 && (n.location < 0 || first < n.location) { first } else { n.location }
        }
        NodeEnum::FuncCall(n) => n.location,
        NodeEnum::CaseExpr(n) => n.location,
        NodeEnum::CoalesceExpr(n) => n.location,
        NodeEnum::MinMaxExpr(n) => n.location,
        NodeEnum::NullTest(n) => super::inner(&n.arg).map_or(n.location, location),
        NodeEnum::BooleanTest(n) => super::inner(&n.arg).map_or(n.location, location),
        NodeEnum::SubLink(n) => match super::inner(&n.testexpr).map_or(-1, location) {
            -1 => n.location,
            test => test.min(n.location),
        },
        NodeEnum::AArrayExpr(n) => n.location,
        NodeEnum::RowExpr(n) => n.location,
        NodeEnum::CollateClause(_) => leftmost(node),
        NodeEnum::AIndirection(n) => super::inner(&n.arg).map_or(-1, location),
        NodeEnum::SqlvalueFunction(n) => n.location,
        NodeEnum::SetToDefault(n) => n.location,
        NodeEnum::ResTarget(n) => n.location,
        NodeEnum::List(n) => n.items.first().and_then(|i| i.node.as_ref()).map_or(-1, location),
        _ => -1,
    }
}

/// Of a chain of operators and casts: as in PostgreSQL, an operator's expression begins with its left side. Chains are
/// long, so this is a loop.
fn leftmost(node: &NodeEnum) -> i32 {
    let (mut at, mut least) = (Some(node), -1);
    while let Some(node) = at {
        let own;
        (at, own) = match node {
            NodeEnum::AExpr(n) => (super::inner(&n.lexpr), n.location),
            NodeEnum::TypeCast(n) => (super::inner(&n.arg), n.location),
            NodeEnum::CollateClause(n) => (super::inner(&n.arg), n.location),
            other => (None, location(other)),
        };
        if own >= 0 && (least < 0 || own < least) {
            least = own;
        }
    }
    least
}

/// Location of an optional node.
pub(crate) fn location_of(node: &pb::Node) -> i32 {
    node.node.as_ref().map_or(-1, location)
}

/// OPTIONS (…) of foreign data.
pub(crate) fn options(nodes: &[pb::Node]) -> Vec<crate::foreign::OptionChange> {
    use pb::DefElemAction as A;

    use crate::foreign::OptionAction;

    let one = |node: &pb::Node| match &node.node {
        Some(NodeEnum::DefElem(def)) => Some(crate::foreign::OptionChange {
            action: match A::try_from(def.defaction) {
                Ok(A::DefelemSet) => OptionAction::Set,
                Ok(A::DefelemDrop) => OptionAction::Drop,
                _ => OptionAction::Add,
            },
            name: def.defname.clone(),
            value: super::define::def_value(def).unwrap_or_default(),
        }),
        _ => None,
    };
    nodes.iter().filter_map(one).collect()
}

/// Arguments of a function, at most; of an aggregate, whose transition function takes the state, too, one fewer.
pub(crate) const ARGUMENTS_MAX: usize = 100;

/// Whether no column can have a type: values of it, such as records without a name, would mean something else elsewhere.
pub(crate) fn is_pseudo(ty: base::Oid) -> bool {
    ty == types::oids::UNKNOWN || types::TypeIo::get(ty).is_none_or(|io| io.category == b'P')
}

/// `0A000` for a column whose values come from an expression or a sequence, where columns are those of something else.
pub(crate) fn expect_plain_column(node: &pb::Node, what: &str) -> base::Result<()> {
    let Some(NodeEnum::ColumnDef(def)) = &node.node else { return Ok(()) };
    for node in &def.constraints {
        let Some(NodeEnum::Constraint(c)) = &node.node else { continue };
        let kind = match c.contype() {
            pb::ConstrType::ConstrGenerated => "generated",
            pb::ConstrType::ConstrIdentity => "identity",
            _ => continue,
        };
        base::bail!(FEATURE_NOT_SUPPORTED, "{kind} columns are not supported on {what}");
    }
    Ok(())
}

/// Checks the TABLESPACE of a relation: all of them lie in `pg_default`.
///
/// # Errors
/// `42704` for names that are unknown, `22023` for `pg_global`.
pub(super) fn check_tablespace(name: &str) -> Result<()> {
    match name {
        "" | "pg_default" => Ok(()),
        "pg_global" => Err(err!(
            INVALID_PARAMETER_VALUE,
            "only shared relations can be placed in pg_global tablespace"
        )),
        other => Err(err!(UNDEFINED_OBJECT, "tablespace \"{other}\" does not exist")),
    }
}
