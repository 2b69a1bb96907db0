//! Answers: errors, notices, completion, readiness.

use base::Error;

use crate::writer::Message;

/// State of the session's transaction, as ReadyForQuery tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionStatus {
    /// None.
    Idle = b'I',
    /// In a block.
    InBlock = b'T',
    /// In a failed block.
    Failed = b'E',
}

/// ErrorResponse.
pub fn error(out: &mut Vec<u8>, error: &Error) {
    report(Message::new(out, b'E'), error.severity().as_str(), error);
}

/// NoticeResponse; `severity` is WARNING, NOTICE, INFO, LOG or DEBUG.
pub fn notice(out: &mut Vec<u8>, severity: &str, notice: &Error) {
    report(Message::new(out, b'N'), severity, notice);
}

/// NotificationResponse: what another session (or this one) notified on a channel.
pub fn notification(out: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    let mut message = Message::new(out, b'A');
    message.int32(pid).string(channel).string(payload).end();
}

fn report(mut message: Message<'_>, severity: &str, error: &Error) {
    let fields = error.fields();
    message.byte(b'S').string(severity);
    message.byte(b'V').string(severity);
    message.byte(b'C').string(fields.code.as_str());
    message.byte(b'M').string(&fields.message);
    let object = &fields.object;
    for (code, text) in [
        (b'D', &fields.detail),
        (b'H', &fields.hint),
        (b'W', &fields.context),
        (b's', &object.schema),
        (b't', &object.table),
        (b'c', &object.column),
        (b'd', &object.data_type),
        (b'n', &object.constraint),
    ] {
        if let Some(text) = text {
            message.byte(code).string(text);
        }
    }
    if let Some((text, position)) = &fields.internal {
        message.byte(b'p').string(&position.to_string());
        message.byte(b'q').string(text);
    }
    if fields.position > 0 {
        message.byte(b'P').string(&fields.position.to_string());
    }
    let source = &fields.source;
    message.byte(b'F').string(source.file());
    message.byte(b'L').string(&source.line().to_string());
    message.byte(b'R').string(source.routine());
    message.byte(0).end();
}

/// CommandComplete.
pub fn complete(out: &mut Vec<u8>, tag: &str) {
    Message::new(out, b'C').string(tag).end();
}

/// CommandComplete with a number of rows; an INSERT has the historical 0 before it.
pub fn complete_rows(out: &mut Vec<u8>, tag: &str, rows: u64) {
    let mut digits = [0; 20];
    let digits = decimal(rows, &mut digits);
    let between: &[u8] = if tag == "INSERT" { b" 0 " } else { b" " };
    let length = 5 + tag.len() + between.len() + digits.len();
    out.reserve(1 + length);
    out.push(b'C');
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for part in [tag.as_bytes(), between, digits] {
        // Byte by byte: they are too few for a call.
        part.iter().for_each(|b| out.push(*b));
    }
    out.push(0);
}

/// The number's decimal digits.
pub fn decimal(mut value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &buffer[at..];
        }
    }
}

/// ReadyForQuery.
pub fn ready(out: &mut Vec<u8>, status: TransactionStatus) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status as u8]);
}

/// EmptyQueryResponse.
pub fn empty_query(out: &mut Vec<u8>) {
    out.extend_from_slice(b"I\0\0\0\x04");
}

/// ParseComplete.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"1\0\0\0\x04");
}

/// BindComplete.
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"2\0\0\0\x04");
}

/// CloseComplete.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"3\0\0\0\x04");
}

/// PortalSuspended.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend_from_slice(b"s\0\0\0\x04");
}

/// FunctionCallResponse: a value, or NULL.
pub fn function_result(out: &mut Vec<u8>, value: Option<&[u8]>) {
    let mut message = Message::new(out, b'V');
    match value {
        Some(bytes) => message.int32(bytes.len() as i32).bytes(bytes).end(),
        None => message.int32(-1).end(),
    }
}

/// NoData.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend_from_slice(b"n\0\0\0\x04");
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::err;

    #[test]
    fn an_error_carries_all_its_fields() {
        let mut out = Vec::new();
        let e = err!(SYNTAX_ERROR, "m").detail("d").hint("h").at(7).constraint("k").routine("r");
        error(&mut out, &e);
        let line = e.fields().source.line();
        let fields = "SERROR\0VERROR\0C42601\0Mm\0Dd\0Hh\0nk\0P7\0Fresponse.rs\0";
        assert_eq!(out[5..], *format!("{fields}L{line}\0Rr\0\0").as_bytes());
        assert_eq!(out[..5], [b'E', 0, 0, 0, (out.len() - 1) as u8]);
    }

    #[test]
    fn tags_count_rows() {
        let tag = |t, n| {
            let mut out = Vec::new();
            complete_rows(&mut out, t, n);
            String::from_utf8(out[5..out.len() - 1].to_vec()).unwrap()
        };
        assert_eq!(tag("INSERT", 1), "INSERT 0 1");
        assert_eq!(tag("SELECT", 0), "SELECT 0");
        assert_eq!(tag("COPY", u64::MAX), format!("COPY {}", u64::MAX));
    }
}
