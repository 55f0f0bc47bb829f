//! Throughput measurement in the manner of iperf3, over TPA, TPA-wide and the kernel's TCP and UDP: `hopline bench`.
//!
//! [`measure`] is the client, [`Server`] the server. The control protocol is that of iperf3, so that over TCP and UDP
//! either side may be iperf3. A test over TPA has its control connection over TPA too, so that only one UDP port has to
//! be open; a test over TPA-wide has it over TCP. `docs/bench.md` describes the messages. Sender and receiver each
//! measure by their own clock, and both report.
//!
//! | file | idea |
//! |---|---|
//! | `plan` | parameters of a test |
//! | `protocol`, `control` | control messages, and the control connection |
//! | `stream`, `native` | connections over any transport, and over hopline's own |
//! | `datagram` | header and statistics of UDP datagrams |
//! | `pump` | threads that send and receive data |
//! | `probe` | latency beside a test |
//! | `statistics` | statistics, in intervals and in total |
//! | `test_run` | run of a test, on either side |
//! | `client`, `server`, `dispatcher` | set-up of a test |
//! | `report` | results |
//! | `error`, `refusal` | errors, and iperf3's numbers for them |

mod client;
mod control;
mod cpu;
mod datagram;
mod dispatcher;
mod error;
#[doc(hidden)]
pub mod messages;
mod native;
mod parameters;
mod plan;
mod probe;
mod protocol;
mod pump;
mod refusal;
mod report;
mod results;
mod server;
mod statistics;
mod stream;
mod test_run;
#[cfg(test)]
mod tests;

pub use client::{ConnectOptions, measure};
pub use datagram::DatagramStats;
pub use error::{Error, SocketOption};
pub use plan::{
    CongestionControl, CopyMode, DEFAULT_CWND_MAX, Direction, Limit, MAX_LENGTH, MAX_STREAMS, MAX_TIME,
    Nagle, Output, Plan, Rate, SocketOptions, Transport, TransportProblem,
};
pub use probe::{Latency, RoundTrips};
pub use refusal::{Bound, Code, PeerError, Refusal};
pub use report::{
    Connected, Cpu, Ending, Interval, Phase, Report, Role, RttSummary, SendingReport, ServerOutput,
    SideReport, StreamInterval, StreamReport, TestSettings,
};
pub use server::{DEFAULT_MAX_STREAMS, Server, TestCount};
pub use stream::Telemetry;

use std::net::SocketAddr;
use std::time::Instant;

/// Default port of iperf3, for TCP and UDP.
pub const PORT: u16 = 5201;

/// Observer of tests, on either side.
pub trait Observer {
    /// Server: a test of `client` has been accepted.
    fn accepted(&mut self, client: SocketAddr, plan: &Plan) {
        let _ = (client, plan);
    }

    /// All data streams are connected; the test begins.
    fn connected(&mut self, settled: &TestSettings) {
        let _ = settled;
    }

    /// An interval has ended.
    fn interval(&mut self, interval: &Interval) {
        let _ = interval;
    }

    /// Server: a test has ended.
    fn ended(&mut self, result: &Result<Report, Error>) {
        let _ = result;
    }

    /// Server: returns the text printed for the test of `report`, to be sent to a client that asked for it.
    fn output(&mut self, report: &Report) -> Option<String> {
        let _ = report;
        None
    }

    /// Returns whether to stop. Called ten times a second.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Observer that ignores all events.
impl Observer for () {}

#[expect(clippy::disallowed_methods, reason = "measurements are in real time")]
fn now() -> Instant {
    Instant::now()
}
