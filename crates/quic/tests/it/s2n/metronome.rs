//! A controller without a window.

use hopline_quic::s2n_quic_core::random::Generator;
use hopline_quic::s2n_quic_core::recovery::RttEstimator;
use hopline_quic::s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use hopline_quic::s2n_quic_core::time::Timestamp;
use std::time::Duration;

/// Sends a datagram each 10 ms.
#[derive(Clone, Debug)]
pub(super) struct Metronome(Option<Timestamp>);

impl CongestionController for Metronome {
    type PacketInfo = ();

    fn congestion_window(&self) -> u32 {
        u32::MAX
    }

    fn bytes_in_flight(&self) -> u32 {
        0
    }

    fn is_congestion_limited(&self) -> bool {
        false
    }

    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        app_limited: Option<bool>,
        _rtt: &RttEstimator,
        _publisher: &mut P,
    ) {
        if bytes > 0 && app_limited.is_some() {
            self.0 = Some(sent + Duration::from_millis(10));
        }
    }

    fn on_rtt_update<P: Publisher>(&mut self, _: Timestamp, _: Timestamp, _: &RttEstimator, _: &mut P) {}

    fn on_ack<P: Publisher>(
        &mut self,
        _sent: Timestamp,
        _bytes: usize,
        _info: (),
        _rtt: &RttEstimator,
        _random: &mut dyn Generator,
        _now: Timestamp,
        _publisher: &mut P,
    ) {
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        _bytes: u32,
        _info: (),
        _persistent: bool,
        _starts_burst: bool,
        _random: &mut dyn Generator,
        _now: Timestamp,
        _publisher: &mut P,
    ) {
    }

    fn on_explicit_congestion<P: Publisher>(&mut self, _marks: u64, _now: Timestamp, _publisher: &mut P) {}

    fn on_mtu_update<P: Publisher>(&mut self, _datagram: u16, _publisher: &mut P) {}

    fn on_packet_discarded<P: Publisher>(&mut self, _bytes: usize, _publisher: &mut P) {}

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.0
    }
}

#[derive(Debug)]
pub(super) struct Metronomes;

impl Endpoint for Metronomes {
    type CongestionController = Metronome;

    fn new_congestion_controller(&mut self, _path: PathInfo<'_>) -> Metronome {
        Metronome(None)
    }
}
