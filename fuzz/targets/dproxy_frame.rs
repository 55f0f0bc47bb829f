//! Frames of links on which the ends number the packets, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::dproxy_frame(data));
