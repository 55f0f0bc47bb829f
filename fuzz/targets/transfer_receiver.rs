//! The receiver of files, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::transfer::transfer_receiver(data));
