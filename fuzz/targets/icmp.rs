//! ICMP destination-unreachable messages, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::icmp(data));
