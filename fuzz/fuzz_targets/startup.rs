//! See `wire::fuzz::startup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::fuzz::startup(data));
