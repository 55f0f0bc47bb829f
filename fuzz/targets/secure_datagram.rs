//! Sealed datagrams and paths, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::secure::secure_datagram(data));
