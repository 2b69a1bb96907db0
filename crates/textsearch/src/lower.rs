//! Lower case, as dictionaries want words.

/// Lower case, character by character: what has no single lower letter stays.
pub(crate) fn lower(text: &str) -> String {
    let one = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(l), None) => l,
            _ => c,
        }
    };
    text.chars().map(one).collect()
}
