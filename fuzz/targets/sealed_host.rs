//! All encrypted connections of a port, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::sealed::sealed_host(data));
