//! Cost of a middlebox behind a queue on fast links: a measurement, not a test.

use crate::nfqueue::bare::PassAll;
use crate::nfqueue::cables::{Cables, HOP, MOBILE};
use crate::nfqueue::router::divert;
use crate::nfqueue::world::RunningMiddlebox;
use bytes::Bytes;
use hopline_linux::veth::Offload;
use hopline_proxy::snoop::{Config, windowed};
use hopline_proxy::{Pep, hop_window};
use hopline_testkit::namespace::last_hop::received_until;
use std::io::{self, Write};
use std::time::Duration;

/// Middlebox in the router.
#[derive(Clone, Copy, Debug)]
enum Middlebox {
    /// None: the kernel forwards.
    Nothing,
    /// A reader that accepts all packets.
    Bare,
    /// Snoop `modern`.
    Snoop,
    /// Snoop `modern`, with packets queued before the last hop.
    Windowed,
}

const MIDDLEBOXES: [Middlebox; 4] =
    [Middlebox::Nothing, Middlebox::Bare, Middlebox::Snoop, Middlebox::Windowed];
/// Duration of a measurement.
const LASTS: Duration = Duration::from_secs(3);
/// Measurements of each, interleaved.
const ROUNDS: usize = 7;

/// Result of a measurement.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Throughput of data in Mb/s.
    throughput: f64,
    /// Processor time of the middlebox's thread per packet, in µs, including the kernel's forwarding of accepted packets.
    per_packet: f64,
}

/// Prints the throughput of a connection over cables without GSO: median, minimum and maximum.
pub(crate) fn throughput() {
    let mut measured = [const { Vec::new() }; MIDDLEBOXES.len()];
    for _ in 0..ROUNDS {
        for (middle, all) in MIDDLEBOXES.into_iter().zip(&mut measured) {
            all.push(measure(middle));
        }
    }
    let lines = MIDDLEBOXES.into_iter().zip(&measured).map(|(middle, all)| {
        let throughput = spread(all.iter().map(|measured| measured.throughput));
        let per_packet = spread(all.iter().map(|measured| measured.per_packet));
        format!("throughput {middle:?}: {throughput} Mb/s; {per_packet} µs a packet\n")
    });
    io::stderr().write_all(lines.collect::<String>().as_bytes()).unwrap();
}

fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let [least, median, most] = [0, values.len() / 2, values.len() - 1].map(|at| values[at]);
    format!("{median:.2} ({least:.2} to {most:.2})")
}

fn measure(middle: Middlebox) -> Measured {
    let cables = Cables::new(Offload::SinglePackets);
    let snoop = |hop_window| windowed(Config { hop_window, ..Config::modern() });
    match middle {
        Middlebox::Nothing => Measured { throughput: received(&cables), per_packet: 0.0 },
        Middlebox::Bare => behind(&cables, PassAll::default()),
        Middlebox::Snoop => behind(&cables, snoop(None)),
        Middlebox::Windowed => behind(&cables, snoop(Some(hop_window::Config::DEFAULT))),
    }
}

fn behind<M: Pep<Bytes> + Send + 'static>(cables: &Cables, machine: M) -> Measured {
    divert(&cables.router, HOP);
    let standing = RunningMiddlebox::with(cables.queue(Offload::SinglePackets), machine);
    let throughput = received(cables);
    let ((driver, _), took) = standing.end_timed();
    let packets = driver.counts().to_mobile + driver.counts().from_mobile;
    assert!(packets > 0, "it was in the path");
    let took = took.tv_sec as f64 * 1e6 + took.tv_nsec as f64 / 1e3;
    Measured { throughput, per_packet: took / packets as f64 }
}

/// Returns the throughput of data in Mb/s.
#[expect(clippy::disallowed_methods, reason = "throughput is measured in real time")]
fn received(cables: &Cables) -> f64 {
    let ends = cables.connection(MOBILE);
    ends[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let bytes = received_until(ends, std::time::Instant::now() + LASTS);
    bytes as f64 * 8.0 / LASTS.as_secs_f64() / 1e6
}
