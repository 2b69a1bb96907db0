//! Elements that CREATE SCHEMA makes together with the schema.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::parse::deparse_statement;

/// Its statements in the order in which they are done: sequences, tables, views, indexes, rights. Names
/// without a schema get this one.
///
/// # Errors
/// `42P15` for one of another schema; `0A000` for other statements.
pub(crate) fn elements(schema: &str, nodes: &[pb::Node]) -> Result<Vec<String>> {
    let mut out: Vec<(u8, String)> = Vec::with_capacity(nodes.len());
    for node in nodes.iter().filter_map(|n| n.node.as_ref()) {
        let mut node = node.clone();
        let rank = match &mut node {
            NodeEnum::CreateSeqStmt(s) => (0, s.sequence.as_mut()),
            NodeEnum::CreateStmt(s) => (1, s.relation.as_mut()),
            NodeEnum::ViewStmt(s) => (2, s.view.as_mut()),
            NodeEnum::IndexStmt(s) => (3, s.relation.as_mut()),
            NodeEnum::GrantStmt(_) => (5, None),
            _ => return Err(base::Error::unsupported("this element of CREATE SCHEMA")),
        };
        if let (_, Some(range)) = rank {
            if range.schemaname.is_empty() {
                schema.clone_into(&mut range.schemaname);
            } else if range.schemaname != schema {
                return Err(err!(
                    INVALID_SCHEMA_DEFINITION,
                    "CREATE specifies a schema ({}) different from the one being created ({schema})",
                    range.schemaname
                ));
            }
        }
        let rank = rank.0;
        out.push((rank, deparse_statement(&node)?));
    }
    out.sort_by_key(|(rank, _)| *rank);
    Ok(out.into_iter().map(|(_, text)| text).collect())
}
