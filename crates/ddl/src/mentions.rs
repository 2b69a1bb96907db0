//! Whether a stored expression mentions a name.

/// Whether an expression's text has the name as a word.
pub fn mentions(sql: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    sql.match_indices(name).any(|(at, _)| {
        !sql[..at].chars().next_back().is_some_and(is_word)
            && !sql[at + name.len()..].chars().next().is_some_and(is_word)
    })
}
