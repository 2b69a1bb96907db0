//! Messages of the protocol, version 3.0 (PostgreSQL manual, chapter 55), from the client's side.

use super::connection::Failure;

/// A message that was read.
#[derive(Debug)]
pub struct Frame {
    /// Its type.
    pub tag: u8,
    /// What follows the length.
    pub body: Vec<u8>,
}

/// Terminate.
pub const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
/// Sync.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// The first message: version, user, database, and a name for `pg_stat_activity`.
pub fn startup(out: &mut Vec<u8>, user: &str, database: &str) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&0x0003_0000_i32.to_be_bytes());
    for (name, value) in
        [("user", user), ("database", database), ("application_name", "threadgres lab")]
    {
        for text in [name, value] {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
    }
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends one message whose body `fill` writes.
///
/// # Errors
/// Those of `fill`.
pub fn message(
    out: &mut Vec<u8>,
    tag: u8,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out)?;
    end(out, start);
    Ok(())
}

/// Fills in the length of the message whose length field is at `start`.
pub fn end(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and its zero byte.
///
/// # Errors
/// A zero byte inside.
pub fn string(out: &mut Vec<u8>, text: &[u8]) -> Result<(), Failure> {
    if text.contains(&0) {
        let message = "a zero byte can't be sent".to_owned();
        return Err(Failure { code: "22021".to_owned(), message });
    }
    out.extend_from_slice(text);
    out.push(0);
    Ok(())
}

/// The first message of the input, if all of it is there: type and body.
pub fn next(input: &[u8]) -> Option<(u8, &[u8])> {
    let (length, _) = int32(input.get(1..)?)?;
    let end = 1 + usize::try_from(length).ok()?.max(4);
    Some((input[0], input.get(5..end)?))
}

/// A number at the beginning, and what follows it.
pub fn int32(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*first), rest))
}

/// The values of a DataRow.
pub fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let mut rest = body.get(2..)?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (length, after) = int32(rest)?;
        let Ok(length) = usize::try_from(length) else {
            out.push(None);
            rest = after;
            continue;
        };
        out.push(Some(String::from_utf8_lossy(after.get(..length)?).into_owned()));
        rest = &after[length..];
    }
    Some(out)
}

/// The columns' names of a RowDescription.
pub fn names(body: &[u8]) -> Option<Vec<String>> {
    let mut rest = body.get(2..)?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == 0)?;
        out.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = rest.get(end + 19..)?;
    }
    Some(out)
}

/// SQLSTATE and text of an ErrorResponse.
pub fn failure(body: &[u8]) -> Failure {
    let field = |letter: u8| {
        let found = body.split(|b| *b == 0).find(|f| f.first() == Some(&letter));
        found.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).unwrap_or_default()
    };
    Failure { code: field(b'C'), message: field(b'M') }
}

/// A connection that broke.
pub fn broken(error: &std::io::Error) -> Failure {
    Failure { code: "08006".to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_only_when_whole() {
        let mut input = Vec::new();
        message(&mut input, b'C', |out| string(out, b"SELECT 1")).unwrap();
        input.push(b'Z');
        assert_eq!(next(&input), Some((b'C', b"SELECT 1\0".as_slice())));
        assert_eq!(next(&input[..13]), None);
        assert_eq!(next(&input[14..]), None);
    }

    #[test]
    fn rows_and_errors() {
        let body = b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff";
        assert_eq!(row(body), Some(vec![Some("ab".to_owned()), None]));
        assert_eq!(row(&body[..7]), None);
        let failure = failure(b"SERROR\0C40001\0Mtry again\0\0");
        assert_eq!((failure.code.as_str(), failure.message.as_str()), ("40001", "try again"));
    }
}
