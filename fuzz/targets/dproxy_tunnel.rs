//! Datagrams between the ends of a tunnel, under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hopline_fuzz::wire::dproxy_tunnel(data));
