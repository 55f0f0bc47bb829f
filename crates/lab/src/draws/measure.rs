//! Measures of performance.

/// Measure of performance on a network, with the highest possible value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Sum of the goodputs.
    Goodput {
        /// Rate of the link less losses, bit/s.
        ceiling_bps: f64,
    },
    /// Mean time of a response.
    Response {
        /// One round trip and the time to send the response, seconds.
        least_s: f64,
    },
    /// The smaller of both sides' shares of what is fair, at most 1.
    Shares {
        /// Fair goodput of the compared algorithm, bit/s.
        law_bps: f64,
        /// Fair goodput of the other flows, bit/s.
        other_bps: f64,
    },
}
