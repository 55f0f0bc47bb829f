//! Client of the metrics page, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::daemon::metrics_http(data));
