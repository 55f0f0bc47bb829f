//! A TCP host stack, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::host_stack(data));
