//! Entry points of the fuzzers: everything that a stranger's bytes go through before the server knows who it
//! is. Bytes of any kind give a value or an error, never a panic; what is decoded lies within its input.
//!
//! The same functions run over the kept corpus in `cargo test` (`tests/corpus.rs`), and over what
//! `cargo fuzz` invents (`fuzz/`).

use crate::scram::{Exchange, PLAIN, PLUS, Verifier};

/// Messages of a running session, one after the other, as they come in: whole and cut short.
pub fn frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(frame)) = crate::next_frame(rest) {
        let size = frame.size();
        assert!(size <= rest.len(), "a message ends within its input");
        // An error ends the connection; it must only not panic.
        let _ = crate::frontend::decode(frame);
        let _ = crate::auth::password(frame.body);
        let _ = crate::auth::sasl_initial(frame.body);
        rest = &rest[size..];
    }
    assert!(crate::frame::missing(rest) > 0);
}

/// The first packet, and the settings in it.
pub fn startup(data: &[u8]) {
    let Ok(Some((startup, size))) = crate::startup::next_startup(data) else { return };
    assert!(size <= data.len(), "a packet ends within its input");
    if let crate::startup::Startup::Session(parameters) = startup {
        for (_, value) in &parameters.values {
            let _ = crate::startup::split_options(value);
        }
    }
}

/// A conversation: the first and the last message with a zero byte between them, with every mechanism.
pub fn scram(data: &[u8]) {
    let (first, last) = match data.iter().position(|b| *b == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    for (mechanism, certificate) in
        [(PLAIN, None), (PLAIN, Some(&[7; 32][..])), (PLUS, Some(&[7; 32][..]))]
    {
        let verifier = Verifier::mock(b"secret", "somebody");
        let begun = Exchange::begin(mechanism.as_bytes(), first, verifier, "nonce", certificate);
        if let Ok((exchange, _)) = begun {
            let end = exchange.finish(last);
            assert!(!matches!(end, Ok(Some(_))), "nobody knows a password that there is not");
        }
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Some(verifier) = Verifier::parse(text)
    {
        assert_eq!(Verifier::parse(&verifier.to_string()), Some(verifier));
    }
}
