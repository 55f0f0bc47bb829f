//! A Neighborhood RED machine, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::neighborhood_red::neighborhood_red_machine(data));
