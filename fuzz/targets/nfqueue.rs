//! Kernel messages about packets that wait for a verdict, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::queues::nfqueue(data));
