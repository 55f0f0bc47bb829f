//! The control connection of measurements.

use hopline_net::bench::messages;

/// A client's parameters as JSON: the test that is understood is valid, and the same when it is told again.
pub fn bench_parameters(data: &[u8]) {
    messages::parameters(data);
}

/// Parameters and results as JSON, a zero byte between them: what is understood has what the test has, and can be told again.
pub fn bench_results(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let parameters = parts.next().expect("a split has a first part");
    messages::results(parameters, parts.next().unwrap_or_default());
}

/// A state, and what a server of hopline says behind it: what is understood survives being told again.
pub fn bench_states(data: &[u8]) {
    messages::states(data);
}
