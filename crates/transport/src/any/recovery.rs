//! State of recovery and congestion control of an endpoint, as logs and series show it.

use super::Endpoint;
use crate::connection::State;
use crate::tcp::{self, BbrState, RecoveryPhase};
use crate::tpa::PathState;
use hopline_core::{Duration, Instant, Payload};

/// Slow start threshold that stands for "unlimited" in TCP's endpoint, bytes.
const UNLIMITED_SSTHRESH: u32 = 1 << 30;

/// State of recovery and congestion control at one moment. A transport leaves out what it has not.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecoveryState {
    /// State of the connection.
    pub connection: State,
    /// Bytes that may be in flight.
    pub cwnd_bytes: u64,
    /// Slow start threshold, bytes; `None`: unlimited, or no such threshold.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight: of sequence space (TCP), of data (TPA), of packets with headers (TPA-wide).
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time, if there is a sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time, if there is a sample.
    pub rtt_deviation: Option<Duration>,
    /// Minimum round-trip time; `None` also if the transport does not keep it.
    pub min_rtt: Option<Duration>,
    /// Number of times that the retransmission timeout doubled; number of unanswered probes (TPA-wide).
    pub backoffs: u32,
    /// Pacing rate, bits per second; `None`: no pacing.
    pub pacing_rate_bps: Option<f64>,
    /// Name of the state of congestion control.
    pub congestion: &'static str,
}

impl<P: Payload> Endpoint<P> {
    /// Returns the state of recovery and congestion control.
    #[must_use]
    pub fn recovery_state(&self) -> RecoveryState {
        let common = RecoveryState {
            connection: self.state(),
            cwnd_bytes: self.cwnd_bytes(),
            ssthresh_bytes: None,
            bytes_in_flight: 0,
            srtt: self.srtt(),
            rtt_deviation: None,
            min_rtt: None,
            backoffs: 0,
            pacing_rate_bps: None,
            congestion: "",
        };
        match self {
            Self::Tcp(endpoint) => RecoveryState {
                ssthresh_bytes: Some(endpoint.ssthresh())
                    .filter(|&bytes| bytes < UNLIMITED_SSTHRESH)
                    .map(u64::from),
                bytes_in_flight: endpoint.flight_size(),
                rtt_deviation: endpoint.rtt_deviation(),
                min_rtt: endpoint.min_rtt(),
                backoffs: endpoint.backoff().max(1).ilog2(),
                pacing_rate_bps: endpoint.pacing_rate().map(|bytes| bytes * 8.0),
                congestion: tcp_congestion(endpoint),
                ..common
            },
            Self::Tpa { endpoint, .. } => RecoveryState {
                bytes_in_flight: u64::from(endpoint.in_flight()) * u64::from(endpoint.effective_mss()),
                rtt_deviation: endpoint.rtt_deviation(),
                backoffs: endpoint.backoff().max(1).ilog2(),
                congestion: match endpoint.path() {
                    PathState::Normal => "normal",
                    PathState::Congested => "congested",
                    PathState::Frozen => "frozen",
                    PathState::CongestedOrFrozen => "congested_or_frozen",
                },
                ..common
            },
            Self::Wide { endpoint, .. } => RecoveryState {
                bytes_in_flight: endpoint.in_flight(),
                rtt_deviation: endpoint.rtt_deviation(),
                min_rtt: endpoint.min_rtt(),
                backoffs: endpoint.unanswered_probes(),
                pacing_rate_bps: endpoint.rate(),
                congestion: endpoint.control_state(),
                ..common
            },
            // The library beneath it tells no more.
            Self::Quic { .. } => RecoveryState { congestion: "quic", ..common },
        }
    }

    /// Returns the numbers of the packets that were declared lost at `now`. Empty for transports
    /// without packet numbers: they declare data lost, and a log infers the packet.
    pub fn packets_lost_at(&self, now: Instant) -> impl Iterator<Item = u64> {
        let wide = match self {
            Self::Wide { endpoint, .. } => Some(endpoint),
            Self::Tcp(_) | Self::Tpa { .. } | Self::Quic { .. } => None,
        };
        wide.into_iter().flat_map(move |endpoint| endpoint.packets_lost_at(now))
    }

    /// Returns whether losses are detected by time: RACK (RFC 8985), or TPA-wide.
    #[must_use]
    pub fn detects_loss_by_time(&self) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.uses_rack(),
            Self::Tpa { .. } => false,
            Self::Wide { .. } | Self::Quic { .. } => true,
        }
    }
}

/// Returns the name of the state: BBR's, or of loss recovery and slow start (RFC 5681).
fn tcp_congestion<P: Payload>(endpoint: &tcp::Endpoint<P>) -> &'static str {
    if let Some(model) = endpoint.bbr() {
        return match model.state {
            BbrState::Startup => "startup",
            BbrState::Drain => "drain",
            BbrState::ProbeBw { .. } => "probe_bw",
            BbrState::ProbeBwDown => "probe_bw_down",
            BbrState::ProbeBwCruise => "probe_bw_cruise",
            BbrState::ProbeBwRefill => "probe_bw_refill",
            BbrState::ProbeBwUp => "probe_bw_up",
            BbrState::ProbeRtt => "probe_rtt",
        };
    }
    match endpoint.phase() {
        RecoveryPhase::Recovery => "recovery",
        RecoveryPhase::Loss => "loss",
        RecoveryPhase::Open if endpoint.cwnd() < endpoint.ssthresh() => "slow_start",
        RecoveryPhase::Open => "congestion_avoidance",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Transport;
    use super::*;
    use crate::tcp::Ports;
    use crate::{tpa, wide};
    use hopline_core::{Length, NodeId, Purpose, RandomStream};

    /// Returns both ends after one round trip of 20 ms without losses, the sender first.
    fn after_a_round_trip(transport: &Transport) -> [Endpoint<Length>; 2] {
        let mut random = RandomStream::new(1, 0, NodeId(0), Purpose::Transport);
        let [here, there] = [40_000, transport.server_port()];
        let mut end = |local, remote| Endpoint::new(transport, Ports { local, remote }, &mut random);
        let (mut a, mut b) = (end(here, there), end(there, here));
        b.listen();
        a.connect(Instant::ZERO);
        a.send(Instant::ZERO, Length(100_000));
        let mut now = Instant::ZERO;
        for _ in 0..3 {
            let sent: Vec<_> = core::iter::from_fn(|| a.poll_transmit(now)).collect();
            now += Duration::from_millis(10);
            sent.into_iter().for_each(|segment| b.handle_packet(now, segment));
            let sent: Vec<_> = core::iter::from_fn(|| b.poll_transmit(now)).collect();
            now += Duration::from_millis(10);
            sent.into_iter().for_each(|segment| a.handle_packet(now, segment));
        }
        [a, b]
    }

    #[test]
    fn every_transport_reports_its_window_and_round_trip_time() {
        let modern = tcp::Config::modern();
        let cases: [(Transport, &str); 3] = [
            (modern.into(), "slow_start"),
            (tpa::Config::tpa(3).into(), "normal"),
            (wide::Config::DEFAULT.into(), "startup"),
        ];
        for (transport, congestion) in cases {
            let [sender, _] = after_a_round_trip(&transport);
            let state = sender.recovery_state();
            assert_eq!(state.connection, State::Established, "{transport:?}");
            assert_eq!((state.cwnd_bytes, state.srtt), (sender.cwnd_bytes(), sender.srtt()));
            assert!(state.srtt >= Some(Duration::from_millis(20)), "{state:?}");
            assert!(state.rtt_deviation.is_some() && state.backoffs == 0, "{state:?}");
            assert_eq!(state.congestion, congestion, "{transport:?}");
            assert_eq!(sender.packets_lost_at(Instant::ZERO).count(), 0);
        }
        let [sender, _] = after_a_round_trip(&modern.into());
        assert_eq!(sender.recovery_state().ssthresh_bytes, None, "there was no loss");
        assert!(!sender.detects_loss_by_time() && sender.recovery_state().min_rtt.is_none());
        let [sender, _] = after_a_round_trip(&tcp::Config::linux().into());
        assert!(sender.detects_loss_by_time(), "by RACK");
        assert_eq!(sender.recovery_state().min_rtt, Some(Duration::from_millis(20)));
    }
}
