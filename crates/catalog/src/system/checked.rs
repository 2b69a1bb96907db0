//! The columns that a CHECK names. The catalog keeps its text, which no parser reads here; the names of
//! columns are found among its words.

use crate::object::Table;

/// The columns' numbers, in the order in which the text names them, each once.
pub(super) fn columns(table: &Table, sql: &str) -> Vec<u16> {
    let mut out = Vec::new();
    for name in names(sql) {
        if let Some((number, _)) = table.column(&name)
            && !out.contains(&number)
        {
            out.push(number);
        }
    }
    out
}

/// The words of an expression that may be columns: no literals, no functions, no types of casts.
fn names(sql: &str) -> Vec<String> {
    let (mut out, mut rest, mut before) = (Vec::new(), sql, String::new());
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '\'' => literal_end(rest),
            '"' => rest[1..].find('"').map_or(rest.len(), |at| at + 2),
            _ if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        let is_name = c == '"' || is_word(c) && !c.is_ascii_digit();
        let called = after.trim_start().starts_with('(');
        if is_name && !called && before != "::" {
            out.push(if c == '"' {
                token.trim_matches('"').to_owned()
            } else {
                token.to_lowercase()
            });
        }
        match c {
            ':' => before.push(':'),
            _ if c.is_whitespace() => {}
            _ => before.clear(),
        }
        rest = after;
    }
    out
}

/// Where a literal that begins here ends: behind its quote that no other follows.
fn literal_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn literals_functions_and_types_are_no_columns() {
        let found = names("lower(\"Name\") <> 'a''b'::text AND x::int4 > 3 AND (y)");
        assert_eq!(found, ["Name", "and", "x", "y"]);
    }
}
