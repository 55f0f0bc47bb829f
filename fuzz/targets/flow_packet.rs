//! Frames of programs at emulated nodes, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::emulate::flow_packet(data));
