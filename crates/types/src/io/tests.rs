use super::*;

#[test]
fn short_numbers_read_directly_are_what_input_reads() {
    let cx = FormatContext::default();
    for (text, direct) in [
        ("0", true),
        ("-0", true),
        ("007", true),
        ("-123456789", true),
        ("999999999", true),
        ("1000000000", false),
        ("", false),
        ("-", false),
        ("+1", false),
        (" 1", false),
        ("1 ", false),
        ("1.0", false),
        ("--1", false),
        ("1e1", false),
    ] {
        for ty in [oids::INT4, oids::INT8] {
            let read = input_digits(ty, text.as_bytes());
            assert_eq!(read.is_some(), direct, "{text}");
            assert!(read.is_none_or(|v| v == input(ty, -1, text, &cx).unwrap()), "{text}");
        }
        assert_eq!(input_digits(oids::TEXT, text.as_bytes()), None);
    }
}
