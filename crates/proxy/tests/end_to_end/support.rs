//! Links, endpoints and headers shared by the tests.

use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_testkit::{Emulation, Side};
use hopline_transport::tcp::{self, Endpoint, Ports};
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// Returns the stored segment with this TSval.
pub(crate) fn with_timestamp(clock: Option<u32>, mut kept: Segment<Bytes>) -> Segment<Bytes> {
    if let Some(clock) = clock {
        kept.options.timestamps.as_mut().expect("only a clock that is shown is changed").value = clock;
    }
    kept
}

pub(crate) fn header(from: Side) -> Header {
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let (src, dst) = if from == Side::A { (a, b) } else { (b, a) };
    Header { src, dst, ttl: 64, protocol: Protocol::Tcp, ecn: Ecn::NotCapable, id: 0 }
}

/// Generates the impairments of a link in one direction.
pub(crate) fn emulations() -> impl Strategy<Value = Emulation> {
    let chances = (0.0..0.2, 0.0..0.1, 0.0..0.05, 0.0..2e-6, prop::option::of(1.0..2.0));
    (0u64..30, chances).prop_map(|(latency_ms, (loss, reorder, duplicate, corrupt, burst))| {
        Emulation::default()
            .with_latency(Duration::from_millis(latency_ms))
            .with_rate(Some(20_000_000))
            .with_queue(Some(60))
            .with_loss(loss)
            .with_burst(burst)
            .with_reorder(reorder)
            .with_extra_delay(Duration::from_millis(8))
            .with_duplicate(duplicate)
            .with_corrupt(corrupt)
    })
}

pub(crate) fn wire() -> Emulation {
    Emulation::default().with_latency(Duration::from_millis(15)).with_rate(Some(100_000_000))
}

pub(crate) fn endpoints(config: tcp::Config, isns: [u32; 2]) -> (Endpoint<Bytes>, Endpoint<Bytes>) {
    // Endpoints never give up: undelivered data would be lost for ever.
    let config = config.with_syn_retries(None).with_data_retries(None);
    let end = |local, remote, isn| {
        Endpoint::new(config, Ports { local, remote }, Seq32(isn)).expect("presets are valid")
    };
    let (mut a, mut b) = (end(1, 2, isns[0]), end(2, 1, isns[1]));
    b.listen().expect("a new endpoint can listen");
    a.connect(Instant::ZERO).expect("a new endpoint can connect");
    (a, b)
}

pub(crate) fn transports() -> impl Strategy<Value = tcp::Config> {
    prop_oneof![
        Just(tcp::Config::linux().with_sack()),
        Just(tcp::Config::modern().with_newreno()),
        Just(tcp::Config::modern().with_reno()),
    ]
}
