//! A Neighborhood RED machine, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::neighborhood_red_machine(data));
