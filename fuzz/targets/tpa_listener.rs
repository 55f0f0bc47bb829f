//! Stateless TPA listener and its initiators, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::tpa_listener(data));
