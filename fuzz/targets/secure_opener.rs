//! Initiator of the encryption layer, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::secure::secure_opener(data));
