//! The control connection of measurements.

use hopline_tools::bench::messages;

/// Parameters of a client as JSON. The test that they describe is valid, and stays the same when it is encoded and decoded
/// again.
pub fn bench_parameters(data: &[u8]) {
    messages::parameters(data);
}

/// Parameters and results as JSON, with a zero byte between them. Decoded results belong to the test, and survive encoding
/// and decoding again.
pub fn bench_results(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let parameters = parts.next().expect("a split has a first part");
    messages::results(parameters, parts.next().unwrap_or_default());
}

/// A state, and the reply of a hopline server after it. Decoded input survives encoding and decoding again.
pub fn bench_states(data: &[u8]) {
    messages::states(data);
}
