//! End of a link with retransmission (ARQ), under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::machines::arq(data));
