//! A TPA endpoint, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_testkit::fuzz::tpa_endpoint(data));
