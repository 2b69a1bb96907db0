//! The rules of `pg_alert_rules`: `name [for N s]: statement`, with semicolons between them.
//!
//! ```text
//!   waiting for 30 s: SELECT count(*) > 10, count(*) || ' sessions wait' FROM pg_stat_blocking;
//!   full: SELECT pg_database_size('shop') > 1e11
//! ```

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// It fires when the condition has held for so long, microseconds.
    pub lasting_us: i64,
    /// A statement: the first column of its first row says whether it holds, the second one why.
    pub condition: String,
    /// Its mistake; empty: it has none.
    pub error: String,
}

/// The rules of a text. A piece that is none stays one with an error, so that somebody sees it.
pub fn parse(text: &str) -> Vec<Rule> {
    pieces(text).into_iter().map(rule).collect()
}

/// The parts between semicolons that stand outside of quotes.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut begins, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, ';') => {
                pieces.push(&text[begins..at]);
                begins = at + 1;
            }
            (None, _) => {}
        }
    }
    pieces.push(&text[begins..]);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

fn rule(piece: &str) -> Rule {
    let wrong = |error: &str| Rule {
        name: piece.trim().chars().take(60).collect(),
        lasting_us: 0,
        condition: String::new(),
        error: error.to_owned(),
    };
    let Some((head, condition)) = piece.split_once(':') else {
        return wrong("a rule is \"name: statement\" or \"name for N s: statement\"");
    };
    let words: Vec<&str> = head.split_whitespace().collect();
    let (name, lasting_us) = match words[..] {
        [name] => (name, Some(0)),
        [name, "for", number, "s"] => (name, micros(number)),
        [name, "for", time] => (name, time.strip_suffix('s').and_then(micros)),
        _ => return wrong("a rule's name is one word"),
    };
    let is_word = |name: &str| name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match lasting_us {
        Some(lasting_us) if is_word(name) && !condition.trim().is_empty() => Rule {
            name: name.to_owned(),
            lasting_us,
            condition: condition.trim().to_owned(),
            error: String::new(),
        },
        Some(_) => wrong("a rule is a word, a colon and a statement"),
        None => wrong("the time of a rule is a number of seconds"),
    }
}

fn micros(seconds: &str) -> Option<i64> {
    let seconds: i64 = seconds.parse().ok()?;
    (0..=86_400).contains(&seconds).then_some(seconds * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_times_and_statements() {
        let rules =
            parse("a: SELECT ';' > ':'; b for 30 s: SELECT \"x;y\" FROM t;\n c for 5s: SELECT 1;");
        let said: Vec<_> =
            rules.iter().map(|r| (&*r.name, r.lasting_us / 1_000_000, &*r.condition)).collect();
        assert_eq!(
            said,
            [
                ("a", 0, "SELECT ';' > ':'"),
                ("b", 30, "SELECT \"x;y\" FROM t"),
                ("c", 5, "SELECT 1")
            ]
        );
        assert!(rules.iter().all(|rule| rule.error.is_empty()));
        assert!(parse("  ").is_empty());
    }

    #[test]
    fn what_is_no_rule_says_why() {
        for (text, why) in [
            ("SELECT 1", "name: statement"),
            ("two words: SELECT 1", "one word"),
            ("a for ever s: SELECT 1", "number of seconds"),
            ("a:", "a colon and a statement"),
        ] {
            let rules = parse(text);
            assert!(rules[0].error.contains(why), "{text}: {rules:?}");
        }
    }
}
