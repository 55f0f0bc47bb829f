//! Measuring throughput as iperf3 does, over TPA and over the kernel's TCP and UDP: `hopline bench`.
//!
//! [`measure`] is the client's part, [`Server`] the other. The conversation is iperf3's, so that either end may be iperf3 over
//! TCP and UDP; over TPA it goes over streams of TPA, so that nothing else needs to get through, and beside TPA-wide over TCP. What travels is described
//! in `docs/bench.md`. Who sends and who receives counts by its own clock, and both tell what they counted.
//!
//! | file | idea |
//! |---|---|
//! | `plan` | what is measured |
//! | `protocol`, `control` | what the sides say to each other, and how it gets there |
//! | `stream`, `own` | a connection of any kind, of hopline's own protocols |
//! | `datagram` | what is told and counted of UDP |
//! | `pump` | the threads that write and read |
//! | `probe` | latency beside a test |
//! | `ledger` | what is counted, and in which intervals |
//! | `course` | a test, on either side |
//! | `client`, `server`, `desk` | how it comes to one |
//! | `report` | what comes of it |
//! | `error`, `refusal` | what goes wrong, and by which number iperf3 knows it |

mod client;
mod control;
mod course;
mod cpu;
mod datagram;
mod desk;
mod error;
mod ledger;
#[doc(hidden)]
pub mod messages;
mod own;
mod parameters;
mod plan;
mod probe;
mod protocol;
mod pump;
mod refusal;
mod report;
mod results;
mod server;
mod stream;
#[cfg(test)]
mod tests;

pub use client::{Call, measure};
pub use datagram::Arrivals;
pub use error::{Error, SocketOption};
pub use plan::{
    CongestionControl, Copying, DEFAULT_CWND_MAX, Direction, Limit, MAX_LENGTH, MAX_STREAMS, MAX_TIME, Nagle,
    Output, Plan, Rate, Sockets, Transport, TransportProblem,
};
pub use probe::{Latency, RoundTrips};
pub use refusal::{Bound, Code, PeerError, Refusal};
pub use report::{
    Connected, Cpu, Ending, Interval, Phase, Report, Role, RttSummary, SendingReport, ServerOutput, Settled,
    SideReport, StreamInterval, StreamReport,
};
pub use server::{SERVED_STREAMS, Server, Tests};
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
    fn connected(&mut self, settled: &Settled) {
        let _ = settled;
    }

    /// An interval is over.
    fn interval(&mut self, interval: &Interval) {
        let _ = interval;
    }

    /// Server: what became of a test.
    fn ended(&mut self, result: &Result<Report, Error>) {
        let _ = result;
    }

    /// Server: returns all that it prints of the test that ended as `report` says, for a client that asked.
    fn output(&mut self, report: &Report) -> Option<String> {
        let _ = report;
        None
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
