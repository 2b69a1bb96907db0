//! Statements as views, the log and histories show them: without passwords.
//!
//! `CREATE ROLE r PASSWORD 'secret'` is shown as `CREATE ROLE r PASSWORD '********'`. It is the text that is
//! looked at, not its parse tree, so that statements with mistakes in them, several in one text, and those
//! in a function's body or a DO block are covered, too: whatever literal stands behind the word, in a text
//! that has the words ROLE, USER or GROUP in it.

use std::borrow::Cow;

const WORD: &[u8] = b"password";
const BLANK: &str = "********";

/// The text with other literals behind each PASSWORD. One that is cut off is blanked to the end.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let Some(mut word) = find(bytes, 0, WORD) else { return Cow::Borrowed(text) };
    if ![&b"role"[..], b"user", b"group"].iter().any(|w| find(bytes, 0, w).is_some()) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::new(), 0);
    loop {
        let mut next = word + WORD.len();
        let starts = word == 0 || !is_word(bytes[word - 1]);
        if starts && let Some((from, to)) = literal(bytes, next) {
            // Both are beside an ASCII character, so they are between characters.
            out.push_str(&text[copied..from]);
            out.push_str(BLANK);
            (copied, next) = (to, to);
        }
        match find(bytes, next, WORD) {
            Some(at) => word = at,
            None => break,
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Where a word (in lower case) stands, in any case of letters.
fn find(bytes: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    let windows = bytes.get(from..)?.windows(word.len());
    windows.enumerate().find(|(_, w)| w.eq_ignore_ascii_case(word)).map(|(at, _)| from + at)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

/// What is inside of the literal that comes next, if one does.
fn literal(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut at = skip_blanks(bytes, at);
    // E'', N'', U&''.
    match bytes.get(at)?.to_ascii_lowercase() {
        b'e' | b'n' | b'b' | b'x' if bytes.get(at + 1) == Some(&b'\'') => at += 1,
        b'u' if bytes.get(at + 1..at + 3) == Some(b"&'") => at += 2,
        _ => {}
    }
    match bytes.get(at)? {
        b'\'' => {
            let escapes = at > 0 && bytes[at - 1].eq_ignore_ascii_case(&b'e');
            Some(quoted(bytes, at, escapes))
        }
        b'$' => {
            let tag = at + 1 + bytes[at + 1..].iter().position(|b| !is_word(*b) || *b == b'$')?;
            if bytes[tag] != b'$' {
                return None;
            }
            let (tag, inside) = (&bytes[at..=tag], tag + 1);
            let end = bytes[inside..].windows(tag.len()).position(|w| w == tag);
            Some((inside, end.map_or(bytes.len(), |end| inside + end)))
        }
        _ => None,
    }
}

/// The inside of a literal that begins with a quote; or with two, inside another literal.
fn quoted(bytes: &[u8], at: usize, escapes: bool) -> (usize, usize) {
    let count = |at: usize| bytes[at..].iter().take_while(|b| **b == b'\'').count();
    let opening = if count(at) % 2 == 0 { 2 } else { 1 };
    let from = at + opening;
    let mut to = from;
    while to < bytes.len() {
        match bytes[to] {
            b'\\' if escapes => to += 2,
            b'\'' => {
                let quotes = count(to);
                // Doubled ones are part of what they quote.
                if quotes % (2 * opening) != 0 {
                    return (from, to + quotes / (2 * opening) * (2 * opening));
                }
                to += quotes;
            }
            _ => to += 1,
        }
    }
    (from, bytes.len())
}

/// Behind blanks and comments.
fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at..).unwrap_or_default() {
            [b, ..] if b.is_ascii_whitespace() => at += 1,
            [b'-', b'-', rest @ ..] => {
                at += 2 + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            }
            [b'/', b'*', rest @ ..] => {
                let end = rest.windows(2).position(|w| w == b"*/");
                at += 2 + end.map_or(rest.len(), |end| end + 2);
            }
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_passwords;

    #[test]
    fn passwords_are_blanked_wherever_they_stand() {
        for (text, shown) in [
            ("CREATE ROLE r PASSWORD 'x'", "CREATE ROLE r PASSWORD '********'"),
            ("alter user r pAssWord'a''b' login", "alter user r pAssWord'********' login"),
            ("ALTER ROLE r PASSWORD E'a\\'b' x 'y'", "ALTER ROLE r PASSWORD E'********' x 'y'"),
            (
                "ALTER ROLE r PASSWORD U&'a' UESCAPE '!'",
                "ALTER ROLE r PASSWORD U&'********' UESCAPE '!'",
            ),
            (
                "ALTER ROLE r PASSWORD $a$x'$$y$a$ NOLOGIN",
                "ALTER ROLE r PASSWORD $a$********$a$ NOLOGIN",
            ),
            (
                "ALTER ROLE r PASSWORD -- c\n /* d */ 'x'",
                "ALTER ROLE r PASSWORD -- c\n /* d */ '********'",
            ),
            (
                "DO 'ALTER ROLE r PASSWORD ''it''''s''; SELECT 1'",
                "DO 'ALTER ROLE r PASSWORD ''********''; SELECT 1'",
            ),
            (
                "CREATE ROLE a PASSWORD 'x'; CREATE ROLE b PASSWORD 'y'; SELECT 'z'",
                "CREATE ROLE a PASSWORD '********'; CREATE ROLE b PASSWORD '********'; SELECT 'z'",
            ),
            ("ALTER ROLE r PASSWORD 'cut off", "ALTER ROLE r PASSWORD '********"),
            ("ALTER ROLE r PASSWORD 'é' || 'ü'", "ALTER ROLE r PASSWORD '********' || 'ü'"),
        ] {
            assert_eq!(without_passwords(text), shown, "{text}");
        }
        for text in [
            "ALTER ROLE r PASSWORD NULL",
            "ALTER ROLE r PASSWORD $1",
            "SELECT role FROM t WHERE my_password = 'x'",
            "SELECT 'no role here' AS password",
            "SELECT password 'x'",
            "PASSWORD ROLE",
        ] {
            assert_eq!(without_passwords(text), text);
        }
    }
}
