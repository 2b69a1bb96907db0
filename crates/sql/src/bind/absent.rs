//! DROP of objects of kinds that the server does not have: there is
//! no such object, and that is the answer. What is always there can't be dropped: `0A000`.

use base::{Error, Result, SqlState, err, sqlstate};
use pb::ObjectType as T;
use pg_query::{NodeEnum, protobuf as pb};

use crate::utility::Utility;

use super::{Binder, ast};

/// What belongs to the server, by kind.
const ALWAYS_THERE: [(T, &[&str]); 1] =
    [(T::ObjectLanguage, &["c", "internal", "javascript", "plpgsql", "sql", "wasm"])];

/// Kinds that are named as such: the command tag and the noun.
fn kind(kind: T) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        T::ObjectLanguage => ("DROP LANGUAGE", "language"),
        T::ObjectTsconfiguration => ("DROP TEXT SEARCH CONFIGURATION", "text search configuration"),
        T::ObjectTsdictionary => ("DROP TEXT SEARCH DICTIONARY", "text search dictionary"),
        _ => return None,
    })
}

impl Binder<'_> {
    /// The answer; None for kinds that may be there.
    pub(crate) fn drop_absent(&self, stmt: &pb::DropStmt) -> Result<Option<Utility>> {
        let Ok(of) = T::try_from(stmt.remove_type) else { return Ok(None) };
        let Some((tag, noun)) = kind(of) else { return Ok(None) };
        let mut notices = Vec::with_capacity(stmt.objects.len());
        for node in &stmt.objects {
            let (code, missing) = Self::absent(of, noun, node)?;
            if !stmt.missing_ok {
                return Err(Error::new(code, missing));
            }
            notices.push(err!(SUCCESSFUL_COMPLETION, "{missing}, skipping"));
        }
        Ok(Some(Utility::Nothing { tag, notices }))
    }

    /// How it is said that an object is not there.
    fn absent(of: T, noun: &str, node: &pb::Node) -> Result<(SqlState, String)> {
        let names = match &node.node {
            Some(NodeEnum::List(list)) => ast::owned_strings(&list.items),
            _ => vec![ast::string(node).to_owned()],
        };
        let name = names.join(".");
        let there = ALWAYS_THERE.iter().find(|(kind, _)| *kind == of);
        if there.is_some_and(|(_, names)| names.contains(&name.as_str())) {
            return Err(Error::unsupported(format_args!("DROP {} {name}", noun.to_uppercase())));
        }
        Ok((sqlstate::UNDEFINED_OBJECT, format!("{noun} \"{name}\" does not exist")))
    }
}
