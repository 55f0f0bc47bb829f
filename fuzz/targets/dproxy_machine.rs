//! An end of a link of D-Proxy that reads TCP, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::dproxy_machine(data));
