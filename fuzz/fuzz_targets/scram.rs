//! See `wire::fuzz::scram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::fuzz::scram(data));
