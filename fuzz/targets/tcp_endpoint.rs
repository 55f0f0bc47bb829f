//! A TCP endpoint, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_testkit::fuzz::tcp_endpoint(data));
