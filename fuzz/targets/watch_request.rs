//! Client of the page that shows an emulation, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::emulate::watch_request(data));
