//! Requests for lost data of mobile hosts (NACK), under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::nack(data));
