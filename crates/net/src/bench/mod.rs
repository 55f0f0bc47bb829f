//! Measuring throughput as iperf3 does, over TPA and over the kernel's TCP: `hopline bench`.
//!
//! [`measure`] is the client's part, [`Server`] the other. Each test has a control connection and data streams, all over the
//! transport that is measured, so that nothing else needs to get through. What travels is described in `docs/bench.md`.
//! Who sends and who receives counts by its own clock, and both tell what they counted.
//!
//! | file | idea |
//! |---|---|
//! | `plan` | what is measured |
//! | `message`, `control` | what the sides say to each other, as bytes and over a stream |
//! | `stream` | a connection of either kind |
//! | `pump` | the threads that write and read |
//! | `ledger` | what is counted, and in which intervals |
//! | `course` | a test, on either side |
//! | `client`, `server` | how it comes to one |
//! | `report`, `error` | what comes of it |

mod client;
mod control;
mod course;
mod cpu;
mod error;
mod ledger;
mod message;
mod plan;
mod pump;
mod report;
mod server;
mod stream;
#[cfg(test)]
mod tests;

pub use client::measure;
pub use error::{Error, Reason, Refusal};
pub use plan::{
    CongestionControl, DEFAULT_CWND_MAX, Direction, Limit, MAX_LENGTH, MAX_STREAMS, MAX_TIME, Plan,
    Transport, TransportProblem,
};
pub use report::{
    Connected, Cpu, Ending, Interval, Phase, Report, RttSummary, SendingReport, SideReport, StreamInterval,
    StreamReport,
};
pub use server::{Server, Tests};
pub use stream::Telemetry;

use std::net::SocketAddr;
use std::time::Instant;

/// The port that iperf3 has, for TCP and UDP.
pub const PORT: u16 = 5201;

/// Is told how tests go, on either side.
pub trait Watch {
    /// Server: `client` has a test that is carried out.
    fn accepted(&mut self, client: SocketAddr, plan: &Plan) {
        let _ = (client, plan);
    }

    /// All data streams are there; it begins.
    fn connected(&mut self, streams: &[Connected]) {
        let _ = streams;
    }

    /// An interval is over.
    fn interval(&mut self, interval: &Interval) {
        let _ = interval;
    }

    /// Server: what became of a test.
    fn ended(&mut self, result: &Result<Report, Error>) {
        let _ = result;
    }

    /// Whether to stop; asked ten times a second.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A watch that sees nothing.
impl Watch for () {}

#[expect(clippy::disallowed_methods, reason = "measurements are in real time")]
fn now() -> Instant {
    Instant::now()
}
