//! The rights, one bit each.

/// INSERT.
pub const INSERT: u16 = 1;
/// SELECT.
pub const SELECT: u16 = 1 << 1;
/// UPDATE.
pub const UPDATE: u16 = 1 << 2;
/// DELETE.
pub const DELETE: u16 = 1 << 3;
/// TRUNCATE.
pub const TRUNCATE: u16 = 1 << 4;
/// REFERENCES.
pub const REFERENCES: u16 = 1 << 5;
/// TRIGGER.
pub const TRIGGER: u16 = 1 << 6;
/// EXECUTE.
pub const EXECUTE: u16 = 1 << 7;
/// USAGE.
pub const USAGE: u16 = 1 << 8;
/// CREATE.
pub const CREATE: u16 = 1 << 9;
/// TEMPORARY.
pub const TEMPORARY: u16 = 1 << 10;
/// CONNECT.
pub const CONNECT: u16 = 1 << 11;
/// Words with their bits and letters, in the order of PostgreSQL's bits.
pub const ALL: [(&str, u16, char); 12] = [
    ("INSERT", INSERT, 'a'),
    ("SELECT", SELECT, 'r'),
    ("UPDATE", UPDATE, 'w'),
    ("DELETE", DELETE, 'd'),
    ("TRUNCATE", TRUNCATE, 'D'),
    ("REFERENCES", REFERENCES, 'x'),
    ("TRIGGER", TRIGGER, 't'),
    ("EXECUTE", EXECUTE, 'X'),
    ("USAGE", USAGE, 'U'),
    ("CREATE", CREATE, 'C'),
    ("TEMPORARY", TEMPORARY, 'T'),
    ("CONNECT", CONNECT, 'c'),
];

/// The bit of a word, in any case; `TEMP` is `TEMPORARY`.
pub fn named(word: &str) -> Option<u16> {
    let word = if word.eq_ignore_ascii_case("temp") { "TEMPORARY" } else { word };
    ALL.iter().find(|(name, _, _)| name.eq_ignore_ascii_case(word)).map(|(_, bit, _)| *bit)
}
