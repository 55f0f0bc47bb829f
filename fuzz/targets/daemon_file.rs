//! Configuration file of proxies, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::daemon::daemon_file(data));
