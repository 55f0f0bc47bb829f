//! The state of a split connection that moves to another station, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::moves::moved(data));
