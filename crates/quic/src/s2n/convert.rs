//! Time, random numbers and events as s2n-quic takes them.

use crate::clock::{from_quinn, to_quinn};
use hopline_core::RandomStream;
use num_rational::Ratio;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::path;
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo, Publisher};
use s2n_quic_core::time::{Clock, NoopClock, Timestamp};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Bytes of the headers of UDP and IPv4, which the MTU of s2n-quic includes.
const HEADER_BYTES: u16 = 28;

/// Returns the timestamp of virtual time `at`, to the microsecond below.
pub(super) fn timestamp(at: Instant) -> Timestamp {
    // Of a clock that stands still: there is no other safe way to the first timestamp.
    NoopClock.get_time() + Duration::from_nanos(from_quinn(at).as_nanos())
}

/// Returns the virtual time of a timestamp.
pub(super) fn instant(at: Timestamp) -> Instant {
    // No timestamp is earlier. `saturating_duration_since` makes a microsecond of no time.
    let since = (at - NoopClock.get_time()).as_nanos();
    to_quinn(hopline_core::Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX)))
}

/// Returns a controller of `endpoint` for datagrams of `max_datagram` bytes.
pub(super) fn controller<E: Endpoint>(endpoint: &mut E, max_datagram: u16) -> E::CongestionController {
    let mtu = max_datagram.saturating_add(HEADER_BYTES);
    let config = path::Config::builder()
        .with_max_mtu(mtu)
        .and_then(|builder| builder.with_initial_mtu(mtu))
        .and_then(|builder| builder.build())
        .expect("quinn's datagrams have 1200 bytes at least");
    let remote = SocketAddress::from((IpAddr::V4(Ipv4Addr::LOCALHOST), 443));
    endpoint.new_congestion_controller(PathInfo::new(&config, &remote))
}

/// Random numbers from a stream of the run.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) RandomStream);

impl Generator for Random {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        for chunk in dest.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.bits().to_le_bytes()[..chunk.len()]);
        }
    }

    fn private_random_fill(&mut self, dest: &mut [u8]) {
        self.public_random_fill(dest);
    }
}

/// Events that a controller publishes, of which the pacing rate is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// Bits per second.
    pub(super) pacing_rate: Option<u64>,
}

impl Publisher for Events {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}

    fn on_delivery_rate_sampled(&mut self, _sample: RateSample) {}

    fn on_pacing_rate_updated(&mut self, pacing_rate: Bandwidth, _burst_size: u32, _pacing_gain: Ratio<u64>) {
        self.pacing_rate = Some(pacing_rate.as_bytes_per_second().saturating_mul(8));
    }

    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_microseconds() {
        for (nanos, back) in [(0, 0), (999, 0), (1_000, 1_000), (7_000_001_999, 7_000_001_000)] {
            let at = to_quinn(hopline_core::Instant::from_nanos(nanos));
            assert_eq!(from_quinn(instant(timestamp(at))).as_nanos(), back);
        }
    }
}
