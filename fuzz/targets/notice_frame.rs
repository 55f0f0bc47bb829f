//! Frames that a node with Neighborhood RED hears, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::neighborhood::notice_frame(data));
