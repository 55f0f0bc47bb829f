//! Files of keys and known peers, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::secure::secure_files(data));
