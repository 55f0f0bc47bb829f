//! ICMP reports of packets that did not get there, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::icmp(data));
