//! The protocol of MySQL and MariaDB from the client's side, as far as loads need it: logging in
//! without a password, queries as text, prepared statements (MariaDB's documentation,
//! "Client/Server Protocol").
//!
//! ```text
//!   packet:  length (3 bytes, little-endian) · number · body
//!   answer:  OK │ ERR │ count of columns · definitions · rows · OK     (without EOF packets)
//!   PREPARE: 00 · statement's number · counts · definitions of parameters and columns
//! ```
//! A statement that is run for the first time is prepared and run in one round trip: its number is
//! then written as -1, "the last one prepared" (MariaDB from 10.2 on).

use super::connection::{Failure, Rows};

/// Says good-bye.
pub const QUIT: [u8; 5] = [1, 0, 0, 0, 1];
/// The statement that was prepared last.
pub const LAST: u32 = u32::MAX;

/// The session is inside a transaction.
const IN_TRANSACTION: u16 = 1;
/// What this client can do: long passwords and flags, a database at log-in, version 4.1 of the
/// protocol, transactions, secure passwords, named ways of authentication, no EOF packets.
const CAPABILITIES: u32 = 1 | 4 | 8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000 | 0x100_0000;
/// `utf8mb4_general_ci`.
const UTF8: u8 = 45;
const NATIVE_PASSWORD: &[u8] = b"mysql_native_password";

/// Types of parameters: a number of 8 bytes, a text, NULL.
const TYPES: [[u8; 2]; 3] = [[8, 0], [0xfd, 0], [6, 0]];

/// The first packet of the input, if all of it is there: its number and body.
pub fn next(input: &[u8]) -> Option<(u8, &[u8])> {
    let head = input.get(..4)?;
    let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
    Some((head[3], input.get(4..4 + length)?))
}

/// Appends a packet with this number, whose body `fill` writes.
pub fn packet(out: &mut Vec<u8>, number: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    fill(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
}

/// A query as text, which `fill` writes.
pub fn query(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    packet(out, 0, |out| {
        out.push(3);
        fill(out);
    });
}

/// Prepares a statement.
pub fn prepare(out: &mut Vec<u8>, sql: &[u8]) {
    packet(out, 0, |out| {
        out.push(0x16);
        out.extend_from_slice(sql);
    });
}

/// Runs a prepared statement with values as text (none: NULL). Whole numbers are sent as such, so
/// that the server computes with them as with literals.
pub fn execute<'v>(
    out: &mut Vec<u8>,
    statement: u32,
    values: impl ExactSizeIterator<Item = Option<&'v [u8]>> + Clone,
) {
    packet(out, 0, |out| {
        out.push(0x17);
        out.extend_from_slice(&statement.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if values.len() == 0 {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        for (i, value) in values.clone().enumerate() {
            if value.is_none() {
                out[nulls + i / 8] |= 1 << (i % 8);
            }
        }
        out.push(1);
        let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<i64>().ok();
        for value in values.clone() {
            let kind = value.map_or(2, |value| usize::from(number(value).is_none()));
            out.extend_from_slice(&TYPES[kind]);
        }
        for value in values.flatten() {
            match number(value) {
                Some(n) => out.extend_from_slice(&n.to_le_bytes()),
                None => {
                    put_length(out, value.len());
                    out.extend_from_slice(value);
                }
            }
        }
    });
}

/// The statement with `?` where PostgreSQL's has `$1`, `$2`, …, and which parameter each stands for.
pub fn question_marks(numbered: &str) -> (String, Vec<usize>) {
    let (mut sql, mut order) = (String::with_capacity(numbered.len()), Vec::new());
    let mut rest = numbered;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        sql.push_str(&rest[..at]);
        match rest[at + 1..at + 1 + digits].parse::<usize>() {
            Ok(number) if number > 0 => {
                sql.push('?');
                order.push(number - 1);
            }
            _ => sql.push_str(&rest[at..at + 1 + digits]),
        }
        rest = &rest[at + 1 + digits..];
    }
    sql.push_str(rest);
    (sql, order)
}

/// The answer to the server's greeting: who we are, without a password.
///
/// # Errors
/// Another version of the protocol; the server refuses.
pub fn log_in(greeting: &[u8], user: &str, database: &str) -> Result<Vec<u8>, Failure> {
    match greeting.first() {
        Some(10) => {}
        Some(0xff) => return Err(failure(greeting)),
        _ => return Err(broken()),
    }
    let mut out = Vec::new();
    packet(&mut out, 1, |out| {
        out.extend_from_slice(&CAPABILITIES.to_le_bytes());
        out.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        out.push(UTF8);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(user.as_bytes());
        // The end of the name, and a password of no length.
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(database.as_bytes());
        out.push(0);
        out.extend_from_slice(NATIVE_PASSWORD);
        out.push(0);
    });
    Ok(out)
}

/// What the server says to that: done, or a packet to answer with.
///
/// # Errors
/// It refuses, or asks for what we don't have.
pub fn logged_in(number: u8, body: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    match body.first() {
        Some(0) => Ok(None),
        Some(0xff) => Err(failure(body)),
        // Another way of authentication: an empty password looks the same in this one.
        Some(0xfe) if body[1..].starts_with(NATIVE_PASSWORD) => {
            let mut out = Vec::new();
            packet(&mut out, number + 1, |_| ());
            Ok(Some(out))
        }
        _ => {
            let message = "the server asks for a way of authentication that the laboratory lacks";
            Err(Failure { code: "0A000".to_owned(), message: message.to_owned() })
        }
    }
}

/// What is left of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// OK, ERR or the count of columns.
    Head,
    /// So many definitions, then rows.
    Columns(u64),
    Rows,
    /// The answer to PREPARE.
    Prepared,
    /// So many definitions, then it is over.
    Definitions(u64),
}

/// Follows the answers to one or several commands, packet by packet.
#[derive(Debug)]
pub struct Answers {
    part: Part,
    /// Commands whose answer has not begun.
    left: u32,
    /// The number of the statement that was prepared.
    pub statement: Option<u32>,
    /// The first error.
    pub failure: Option<Failure>,
    /// Whether the session is inside a transaction, where an answer says it.
    pub in_transaction: Option<bool>,
    /// Rows of the text protocol, where they are wanted.
    pub rows: Option<Rows>,
}

impl Answers {
    /// To a query, or to running a statement that (`prepares`) is prepared first.
    pub fn new(prepares: bool) -> Answers {
        Answers {
            part: if prepares { Part::Prepared } else { Part::Head },
            left: u32::from(prepares),
            statement: None,
            failure: None,
            in_transaction: None,
            rows: None,
        }
    }

    /// Takes a packet; whether it was the last one.
    ///
    /// # Errors
    /// It does not follow the protocol.
    pub fn take(&mut self, body: &[u8]) -> Result<bool, Failure> {
        let first = *body.first().ok_or_else(broken)?;
        if first == 0xff && !matches!(self.part, Part::Columns(_) | Part::Definitions(_)) {
            self.failure.get_or_insert_with(|| failure(body));
            return Ok(self.over());
        }
        match self.part {
            Part::Prepared => {
                let number = body.get(1..5).and_then(|b| b.try_into().ok()).ok_or_else(broken)?;
                self.statement = Some(u32::from_le_bytes(number));
                let count = |at: usize| {
                    let bytes = body.get(at..at + 2)?;
                    Some(u64::from(u16::from_le_bytes([bytes[0], bytes[1]])))
                };
                let columns = count(5).zip(count(7)).ok_or_else(broken)?;
                match columns.0 + columns.1 {
                    0 => return Ok(self.over()),
                    count => self.part = Part::Definitions(count),
                }
            }
            Part::Definitions(1) => return Ok(self.over()),
            Part::Definitions(count) => self.part = Part::Definitions(count - 1),
            Part::Head if first == 0 => {
                self.end(body)?;
                return Ok(self.over());
            }
            Part::Head => {
                let (count, _) = length(body).filter(|(n, _)| *n > 0).ok_or_else(broken)?;
                self.part = Part::Columns(count);
            }
            Part::Columns(1) => self.part = Part::Rows,
            Part::Columns(count) => self.part = Part::Columns(count - 1),
            Part::Rows if first == 0xfe && body.len() < 0xff_ffff => {
                self.end(body)?;
                return Ok(self.over());
            }
            Part::Rows => {
                if let Some(rows) = &mut self.rows {
                    rows.push(row(body).ok_or_else(broken)?);
                }
            }
        }
        Ok(false)
    }

    /// An answer ends; whether it was the last.
    fn over(&mut self) -> bool {
        self.part = Part::Head;
        let last = self.left == 0;
        self.left = self.left.saturating_sub(1);
        last
    }

    /// Reads OK: two counts, then the session's state.
    fn end(&mut self, body: &[u8]) -> Result<(), Failure> {
        let status = length(&body[1..]).and_then(|(_, rest)| length(rest)).map(|(_, rest)| rest);
        let bytes = status.and_then(|rest| rest.first_chunk::<2>()).ok_or_else(broken)?;
        self.in_transaction = Some(u16::from_le_bytes(*bytes) & IN_TRANSACTION != 0);
        Ok(())
    }
}

/// A number of one to nine bytes, and what follows it.
fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let wide = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        short => return Some((u64::from(*short), rest)),
    };
    let mut number = [0; 8];
    number[..wide].copy_from_slice(rest.get(..wide)?);
    Some((u64::from_le_bytes(number), &rest[wide..]))
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..=250 => out.push(length as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfd);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
}

/// A row of the text protocol.
fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (mut rest, mut out) = (body, Vec::new());
    while let Some(first) = rest.first() {
        if *first == 0xfb {
            out.push(None);
            rest = &rest[1..];
            continue;
        }
        let (bytes, after) = length(rest)?;
        let bytes = usize::try_from(bytes).ok()?;
        out.push(Some(String::from_utf8_lossy(after.get(..bytes)?).into_owned()));
        rest = &after[bytes..];
    }
    Some(out)
}

/// SQLSTATE and text of an ERR packet: FF, number, `#` and SQLSTATE (not before log-in), text.
fn failure(body: &[u8]) -> Failure {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match body.get(3..) {
        Some([b'#', rest @ ..]) if rest.len() >= 5 => {
            Failure { code: text(&rest[..5]), message: text(&rest[5..]) }
        }
        rest => Failure { code: "HY000".to_owned(), message: text(rest.unwrap_or_default()) },
    }
}

fn broken() -> Failure {
    let message = "the server's answer does not follow the protocol".to_owned();
    Failure { code: "08P01".to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(status: u16) -> Vec<u8> {
        let mut body = vec![0, 1, 0];
        body.extend_from_slice(&status.to_le_bytes());
        body.extend_from_slice(&[0, 0]);
        body
    }

    #[test]
    fn packets_are_cut_only_when_whole() {
        let mut out = Vec::new();
        query(&mut out, |out| out.extend_from_slice(b"SELECT 1"));
        assert_eq!(next(&out), Some((0, b"\x03SELECT 1".as_slice())));
        assert_eq!(next(&out[..out.len() - 1]), None);
        assert_eq!(next(&out[..3]), None);
    }

    #[test]
    fn an_answer_with_rows_ends_with_its_last_packet() {
        let mut answers = Answers { rows: Some(Vec::new()), ..Answers::new(false) };
        let mut end = ok(IN_TRANSACTION);
        end[0] = 0xfe;
        for (body, last) in [
            (&b"\x02"[..], false),
            (b"def a", false),
            (b"def b", false),
            (b"\x01x\xfb", false),
            (&end, true),
        ] {
            assert_eq!(answers.take(body), Ok(last));
        }
        assert_eq!(answers.rows, Some(vec![vec![Some("x".to_owned()), None]]));
        assert_eq!((answers.in_transaction, answers.failure), (Some(true), None));
    }

    #[test]
    fn a_statement_is_prepared_and_run_in_one_go() {
        let mut answers = Answers::new(true);
        // Number 7, no columns, two parameters.
        assert_eq!(answers.take(&[0, 7, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]), Ok(false));
        assert_eq!(answers.take(b"def a"), Ok(false));
        assert_eq!(answers.take(b"def b"), Ok(false));
        assert_eq!(answers.take(&ok(0)), Ok(true));
        assert_eq!((answers.statement, answers.in_transaction), (Some(7), Some(false)));
        // One that can't be prepared can't be run either: two errors, the first counts.
        let mut answers = Answers::new(true);
        assert_eq!(answers.take(b"\xff\x28\x04#42000no such"), Ok(false));
        assert_eq!(answers.take(b"\xff\x28\x04#HY000unknown"), Ok(true));
        let expected = Failure { code: "42000".to_owned(), message: "no such".to_owned() };
        assert_eq!(answers.failure, Some(expected));
        assert!(Answers::new(false).take(b"").is_err());
    }

    #[test]
    fn parameters_are_sent_by_kind() {
        let mut out = Vec::new();
        let values: [Option<&[u8]>; 3] = [Some(b"-5"), None, Some(b"x5")];
        execute(&mut out, 9, values.iter().copied());
        let mut expected = vec![0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b010, 1, 8, 0, 6, 0, 0xfd, 0];
        expected.extend_from_slice(&(-5_i64).to_le_bytes());
        expected.extend_from_slice(b"\x02x5");
        assert_eq!(next(&out), Some((0, &expected[..])));
    }

    #[test]
    fn numbered_parameters_become_question_marks() {
        let (sql, order) = question_marks("UPDATE t SET a = a + $2 WHERE b = $1 OR c = $2");
        assert_eq!(sql, "UPDATE t SET a = a + ? WHERE b = ? OR c = ?");
        assert_eq!(order, [1, 0, 1]);
        assert_eq!(question_marks("SELECT 1").1, [0; 0]);
    }
}
