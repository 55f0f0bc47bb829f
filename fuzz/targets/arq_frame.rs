//! Frames of links that acknowledge each, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::arq_frame(data));
