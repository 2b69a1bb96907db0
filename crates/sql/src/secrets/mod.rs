//! Texts as views, the log and histories show them: without passwords, tokens and keys.
//!
//! `CREATE ROLE r PASSWORD 'secret'` is shown as `CREATE ROLE r PASSWORD '********'`. Whatever keeps or prints a
//! text for others than its sender passes it through this module: [`without_secrets`] for statements,
//! [`in_message`] for lines of the log, events and plans.
//!
//! The places of secrets are listed once, here:
//!
//! | nodes of the grammar | place |
//! |---|---|
//! | `CreateRoleStmt`, `AlterRoleStmt` | [`BEHIND`]: the literal after PASSWORD |
//! | `CreateSubscriptionStmt`, `AlterSubscriptionStmt` | [`BEHIND`]: the literal after CONNECTION |
//! | `CreateUserMappingStmt`, `AlterUserMappingStmt` | each option but those of [`OPEN_OPTIONS`] |
//! | `CreateFdwStmt`, `CreateForeignServerStmt`, `CreateForeignTableStmt`, their ALTER forms, `ImportForeignSchemaStmt` | options named as in [`NAMES`] |
//! | `VariableSetStmt` alone and in ALTER SYSTEM, ROLE, DATABASE and FUNCTION | the values of [`is_secret_setting`] |
//! | `FuncCall` | the arguments of [`ARGUMENTS`]; the value of `set_config` as by SET |
//! | `A_Const`, comments | [`values`]: passwords in connection strings and addresses, wherever these stand |
//!
//! The text is looked at, not its parse tree, so that statements with mistakes in them, several in one text, and
//! those in a function's body or a DO block are covered, too. One pass finds all places; literals are looked at as
//! code again, some levels deep. Hiding too much is no harm, since nothing is ever run from these texts.

mod token;
mod values;

use std::borrow::Cow;
use std::ops::Range;

use base::settings::{SettingId, setting};

use token::{Kind, Token, Tokens};

const BLANK: &str = "********";

/// The literal after the word is a secret in texts that have one of the other words in them.
const BEHIND: &[(&str, &[&str])] =
    &[("password", &["role", "user", "group"]), ("connection", &["subscription"])];

/// Options of user mappings that are shown.
const OPEN_OPTIONS: &[&str] = &["user", "username", "password_required"];

/// Options, and settings of users' own (`app.jwt_secret`), with one of these in their names are secret.
const NAMES: &[&str] = &[
    "pass",
    "pwd",
    "secret",
    "token",
    "credential",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
];

/// Arguments of functions that are keys or passwords, counted from 0.
const ARGUMENTS: &[(&str, &[usize])] = &[
    ("crypt", &[0]),
    ("decrypt", &[1]),
    ("decrypt_iv", &[1]),
    ("encrypt", &[1]),
    ("encrypt_iv", &[1]),
    ("hmac", &[1]),
    ("pgp_pub_decrypt", &[1, 2]),
    ("pgp_pub_decrypt_bytea", &[1, 2]),
    ("pgp_sym_decrypt", &[1]),
    ("pgp_sym_decrypt_bytea", &[1]),
    ("pgp_sym_encrypt", &[1]),
    ("pgp_sym_encrypt_bytea", &[1]),
];

/// A text without any of these has no secret, which is seen without looking at its tokens.
const SIGNS: &[&[u8]] = &[
    b"pass",
    b"pwd",
    b"secret",
    b"token",
    b"_key",
    b"apikey",
    b"credential",
    b"bearer",
    b"connection",
    b"conninfo",
    b"mapping",
    b"webhook",
    b"://",
    b"crypt",
    b"hmac",
];

/// Literals are looked at as code down to this depth.
const DEPTH_MAX: usize = 5;

/// Whether a setting's value is shown to nobody but those who may read it.
pub fn is_secret_setting(name: &str) -> bool {
    let known = |id| {
        matches!(id, setting::PRIMARY_CONNINFO | setting::PG_ALERT_WEBHOOK)
            || id == setting::SSL_PASSPHRASE_COMMAND
    };
    match name.contains('.') {
        true => is_secret_name(&name.to_ascii_lowercase()),
        false => SettingId::find(name).is_some_and(known),
    }
}

fn is_secret_name(lower: &str) -> bool {
    NAMES.iter().any(|part| lower.contains(part))
}

/// A setting's value as a statement that is shown may have it.
pub fn shown_setting<'v>(name: &str, value: &'v str) -> &'v str {
    if is_secret_setting(name) { BLANK } else { value }
}

/// A statement's text without its secrets. A literal that is cut off is hidden to the end.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    hide(text, false)
}

/// The same of a line of the log or the like, in which statements may stand between other words.
pub fn in_message(text: &str) -> Cow<'_, str> {
    hide(text, true)
}

fn hide(text: &str, prose: bool) -> Cow<'_, str> {
    if !may_have_secrets(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut search = Search::new(text.as_bytes(), prose);
    if prose {
        values::find(text.as_bytes(), 0..text.len(), 1, &mut search.hidden);
    }
    search.code(0..text.len(), 1, 0);
    blanked(text, search.hidden)
}

/// The text with [`BLANK`] in place of these ranges.
fn blanked(text: &str, mut hidden: Vec<Range<usize>>) -> Cow<'_, str> {
    hidden.retain(|range| !range.is_empty());
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    hidden.sort_by_key(|range| range.start);
    let (mut out, mut copied, mut last) = (String::with_capacity(text.len()), 0, usize::MAX);
    for range in hidden {
        // All borders are beside ASCII characters or at an end of the text.
        let (start, end) =
            (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end));
        if start >= copied {
            out.push_str(&text[copied..start]);
            // What lies behind a hidden part without a gap is shown as a part of it.
            if last != start {
                out.push_str(BLANK);
            }
        }
        copied = copied.max(end);
        last = copied;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Bits of the signs that have a byte at each of their first three places.
const STARTS: [[u16; 256]; 3] = {
    let mut starts = [[0; 256]; 3];
    let mut n = 0;
    while n < SIGNS.len() {
        let mut at = 0;
        while at < starts.len() {
            let byte = SIGNS[n][at];
            starts[at][byte as usize] |= 1 << n;
            starts[at][byte.to_ascii_uppercase() as usize] |= 1 << n;
            at += 1;
        }
        n += 1;
    }
    starts
};

/// Whether one of [`SIGNS`] is in the text, in any case of letters. Every simple query is asked, so all are looked
/// for at once.
fn may_have_secrets(bytes: &[u8]) -> bool {
    let [first, second, third] = &STARTS;
    bytes.windows(3).enumerate().any(|(at, three)| {
        let [a, b, c] = [three[0], three[1], three[2]].map(usize::from);
        first[a] & second[b] & third[c] != 0 && SIGNS.iter().any(|sign| begins(&bytes[at..], sign))
    })
}

fn begins(bytes: &[u8], word: &[u8]) -> bool {
    bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// An open parenthesis.
enum Open {
    /// Any.
    Other,
    /// Of a function's arguments: those that are secret, and the present one.
    Call(&'static [usize], usize),
    /// Of `set_config`: whether its setting is secret, and the present argument.
    SetConfig(bool, usize),
    /// Of OPTIONS: whether the present one is secret.
    Options(bool),
}

/// What has been read of SET.
enum Set {
    No,
    /// The word.
    Word,
    /// A part of the name, and whether a dot came behind it.
    Name(String, bool),
    /// All up to the values of a secret setting; whether one comes next.
    Values(bool),
}

/// A search for the secrets of a text.
struct Search<'t> {
    text: &'t [u8],
    prose: bool,
    /// The words of [`BEHIND`] that count in this text.
    behind: Vec<&'static str>,
    /// Whether it is about user mappings.
    mapping: bool,
    hidden: Vec<Range<usize>>,
}

impl<'t> Search<'t> {
    fn new(text: &'t [u8], prose: bool) -> Search<'t> {
        let has = |word: &&str| {
            text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        let counts = |(word, others): &&(&str, &[&str])| has(word) && others.iter().any(|w| has(w));
        let behind = BEHIND.iter().filter(counts).map(|(word, _)| *word).collect();
        Search { text, prose, behind, mapping: has(&"mapping"), hidden: Vec::new() }
    }

    /// Looks at code in which `quotes` apostrophes delimit a literal.
    fn code(&mut self, range: Range<usize>, quotes: usize, depth: usize) {
        let (mut open, mut set, mut last) = (Vec::new(), Set::No, String::new());
        for token in Tokens::new(self.text, range, quotes, self.prose) {
            let place = token.range.clone();
            match token.kind {
                Kind::Comment => values::find(self.text, place, quotes, &mut self.hidden),
                Kind::Literal { quotes, .. } => {
                    if self.is_secret(&mut open, &set, &last) {
                        self.hidden.push(place);
                    } else {
                        self.literal(place, quotes, depth);
                    }
                }
                _ => {}
            }
            if token.kind == Kind::Comment {
                continue;
            }
            let word = self.lower(&token);
            if let (Set::Values(true), Kind::Word) = (&set, &token.kind)
                && !matches!(&*word, "default" | "null" | "from")
            {
                self.hidden.push(token.range.clone());
            }
            set = after(set, &token, &word);
            if let Kind::Punct(mark) = token.kind {
                parenthesis(&mut open, mark, &last);
            } else if let Some(Open::Options(secret)) = open.last_mut()
                && matches!(token.kind, Kind::Word | Kind::Name)
            {
                *secret = match self.mapping {
                    true => !OPEN_OPTIONS.contains(&&*word),
                    false => is_secret_name(&word),
                };
            }
            last = word;
        }
    }

    /// Whether a literal in this place is secret.
    fn is_secret(&self, open: &mut [Open], set: &Set, last: &str) -> bool {
        let by_place = match open.last_mut() {
            Some(Open::Call(secret, at)) => secret.contains(at),
            Some(Open::SetConfig(secret, at)) => *secret && *at == 1,
            Some(Open::Options(secret)) => *secret,
            _ => false,
        };
        by_place || matches!(set, Set::Values(true)) || self.behind.contains(&last)
    }

    /// Looks into a literal, in which `quotes` apostrophes stand for one.
    fn literal(&mut self, place: Range<usize>, quotes: usize, depth: usize) {
        if !may_have_secrets(&self.text[place.clone()]) {
            return;
        }
        if depth == DEPTH_MAX {
            self.hidden.push(place);
            return;
        }
        values::find(self.text, place.clone(), quotes, &mut self.hidden);
        self.code(place, quotes, depth + 1);
    }

    /// What a token says, in lower case; of literals the beginning.
    fn lower(&self, token: &Token) -> String {
        let text = &self.text[token.range.clone()];
        String::from_utf8_lossy(&text[..text.len().min(64)]).to_ascii_lowercase()
    }
}

/// The state of SET after one more token.
fn after(set: Set, token: &Token, word: &str) -> Set {
    let is_name = matches!(token.kind, Kind::Word | Kind::Name);
    match (set, &token.kind) {
        (Set::Word, Kind::Word) if matches!(word, "local" | "session") => Set::Word,
        (Set::Word, _) if is_name => Set::Name(word.to_owned(), false),
        (Set::Name(name, true), _) if is_name => Set::Name(format!("{name}.{word}"), false),
        (Set::Name(name, false), Kind::Punct(b'.')) => Set::Name(name, true),
        (Set::Name(name, false), kind) if *kind == Kind::Punct(b'=') || word == "to" => {
            if is_secret_setting(&name) {
                Set::Values(true)
            } else {
                Set::No
            }
        }
        (Set::Values(true), Kind::Literal { .. } | Kind::Word | Kind::Name) => Set::Values(false),
        (Set::Values(true), Kind::Punct(b'-' | b'+')) => Set::Values(true),
        (Set::Values(false), Kind::Punct(b',')) => Set::Values(true),
        (_, Kind::Word) if word == "set" => Set::Word,
        _ => Set::No,
    }
}

/// A parenthesis begins or ends behind the token `last`, or the next thing in it does.
fn parenthesis(open: &mut Vec<Open>, mark: u8, last: &str) {
    match mark {
        b'(' => open.push(match last {
            "options" => Open::Options(false),
            "set_config" => Open::SetConfig(false, 0),
            _ => match ARGUMENTS.iter().find(|(name, _)| *name == last) {
                Some((_, secret)) => Open::Call(secret, 0),
                None => Open::Other,
            },
        }),
        b')' => drop(open.pop()),
        b',' => match open.last_mut() {
            Some(Open::Call(_, at)) => *at += 1,
            Some(Open::SetConfig(secret, at)) => {
                *secret |= *at == 0 && is_secret_setting(last);
                *at += 1;
            }
            Some(Open::Options(secret)) => *secret = false,
            _ => {}
        },
        b';' => open.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
