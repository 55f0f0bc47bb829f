//! Packets with handshakes of TCP, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::announce(data));
