//! Channel survey of a driver, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::neighborhood::survey(data));
