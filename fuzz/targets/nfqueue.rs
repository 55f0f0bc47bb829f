//! What the kernel says of packets that wait, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::queues::nfqueue(data));
