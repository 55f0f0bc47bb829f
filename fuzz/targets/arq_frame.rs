//! Frames of links with an acknowledgment of each frame, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::arq_frame(data));
