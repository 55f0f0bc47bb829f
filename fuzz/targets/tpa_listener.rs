//! A TPA listener without state, and those who call it, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::tpa_listener(data));
