//! A station, a home agent and a mobile host, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::handoff_machine(data));
