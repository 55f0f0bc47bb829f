//! What a driver says of a channel, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::neighborhood::survey(data));
