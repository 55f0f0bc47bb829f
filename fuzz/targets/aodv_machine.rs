//! An AODV machine, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_routing::aodv::fuzzing::drive(data));
