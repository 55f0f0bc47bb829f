//! BBR of TCP as a controller.

use super::{AckSample, Controller, INITIAL_WINDOW, RoundOutcome, SendLimit, SentPacket};
use crate::tcp::congestion::RecoveryPhase;
use crate::tcp::congestion::bbr::{Bbr, BbrAck, BbrConfig, ConnectionStart};
use crate::tcp::delivery_rate::{self, LostSegment, PacketState, RateSample};
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use std::collections::VecDeque;

/// Controller by BBR. Its segments are packets, headers included.
#[derive(Clone, Debug)]
pub struct BbrController {
    bbr: Bbr,
    /// Length of a full packet, bytes.
    packet_bytes: u64,
    started: bool,
    /// Recent packets, by number.
    sent: VecDeque<SentRecord>,
    /// Totals of delivered and lost bytes.
    delivered: u64,
    lost: u64,
    delivered_at: Instant,
    first_sent: Instant,
    in_flight: u64,
    srtt: Option<Duration>,
    /// Number of the next packet at the start of recovery, while it lasts.
    recover: Option<u64>,
    /// Number of the first packet of the next round trip.
    round_end: u64,
    reductions: u64,
}

/// Transmission of a packet.
#[derive(Clone, Copy, Debug)]
struct SentRecord {
    number: u64,
    at: Instant,
    /// Delivery state at that time.
    state: PacketState,
}

/// Smoothed round trips after which a packet is acknowledged or lost.
const EXPIRY_RTTS: u64 = 4;

impl BbrController {
    /// Creates the controller. `packet`: bytes of a full packet, headers included; `seed`: seed of the random phase of v1
    /// and of the probing times of v3.
    #[must_use]
    pub fn new(config: BbrConfig, packet: u32, seed: u64) -> Self {
        Self {
            bbr: Bbr::new(config, RandomStream::global(seed, 0, Purpose::Probing)),
            packet_bytes: packet.into(),
            started: false,
            sent: VecDeque::new(),
            delivered: 0,
            lost: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            in_flight: 0,
            srtt: None,
            recover: None,
            round_end: 0,
            reductions: 0,
        }
    }

    /// Returns the rate sample of an acknowledgment ("GenerateRateSample" of draft-ietf-ccwg-bbr).
    fn sample(&mut self, ack: &AckSample) -> Option<RateSample> {
        let (number, arrival, _) = ack.newest?;
        let stamp = self.state_at_send(number)?;
        let old = ack.srtt.saturating_mul(EXPIRY_RTTS);
        while self.sent.pop_front_if(|sent| sent.at + old < ack.now).is_some() {}
        let interval = arrival.sent.since(stamp.first_sent).max(ack.now.since(stamp.delivered_at));
        self.first_sent = arrival.sent;
        let delivered = self.delivered - stamp.delivered;
        Some(RateSample {
            rate: (!interval.is_zero()).then(|| delivered as f64 / interval.as_secs_f64()),
            delivered,
            prior_delivered: stamp.delivered,
            lost: self.lost - stamp.lost,
            in_flight: stamp.in_flight,
            limit: match ack.limit {
                SendLimit::Path => delivery_rate::SendLimit::Path,
                SendLimit::Application => delivery_rate::SendLimit::Application,
            },
            min_rtt: Some(ack.now.since(arrival.sent)),
        })
    }

    /// Returns the delivery state at the sending of a packet.
    fn state_at_send(&self, number: u64) -> Option<PacketState> {
        let at = self.sent.binary_search_by_key(&number, |sent| sent.number).ok()?;
        Some(self.sent[at].state)
    }

    fn enter_recovery(&mut self, next_number: u64) {
        if self.recover.is_none() {
            self.recover = Some(next_number);
            self.bbr.on_recovery();
            self.reductions += 1;
        }
    }
}

impl Controller for BbrController {
    fn pacing_rate(&self) -> Option<f64> {
        self.started.then(|| self.bbr.output().pacing_rate)
    }

    fn window(&self, _least_rtt: Duration, _reordering: Duration, _together: u32) -> u64 {
        if self.started { self.bbr.output().cwnd } else { u64::from(INITIAL_WINDOW) * self.packet_bytes }
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        let rate = self.pacing_rate().filter(|rate| *rate > 0.0)?;
        Some(Duration::from_secs_f64((f64::from(packets) * self.packet_bytes as f64 / rate).min(10.0)))
    }

    fn is_loss_below(&self, _share: f64) -> bool {
        false
    }

    fn saw_empty_queue(&self) -> bool {
        false
    }

    fn reductions(&self) -> u64 {
        self.reductions
    }

    fn on_established(&mut self) {}

    fn on_sent(&mut self, packet: &SentPacket) {
        if packet.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (packet.now, packet.now);
        }
        self.in_flight = packet.in_flight + u64::from(packet.bytes);
        let stamp = PacketState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: self.in_flight,
            limit: delivery_rate::SendLimit::Path, // known with the acknowledgment
        };
        self.sent.push_back(SentRecord { number: packet.number, at: packet.now, state: stamp });
        if self.started && self.in_flight + self.packet_bytes > self.bbr.output().cwnd {
            self.bbr.set_cwnd_limited();
        }
    }

    fn on_packet_lost(&mut self, now: Instant, number: u64, bytes: u32) {
        self.lost += u64::from(bytes);
        let Some(stamp) = self.state_at_send(number) else { return };
        let loss = LostSegment { segment: 0..bytes.into(), stamp, lost: self.lost };
        self.bbr.on_loss(&loss, self.delivered, now);
    }

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        if !self.started {
            self.started = true;
            let window = u64::from(INITIAL_WINDOW) * self.packet_bytes;
            let opening = ConnectionStart {
                now: ack.now,
                mss: self.packet_bytes,
                initial_window: window,
                handshake_rtt: Some(ack.srtt),
            };
            self.bbr.start(&opening);
        }
        self.srtt = Some(ack.srtt);
        if ack.delivered > 0 {
            self.delivered += ack.delivered;
            self.delivered_at = ack.now;
        }
        let before = core::mem::replace(&mut self.in_flight, ack.in_flight);
        let sample = self.sample(ack);
        let newest = ack.newest.map_or(0, |(number, ..)| number);
        if self.recover.is_some_and(|recover| newest >= recover) {
            self.recover = None;
        }
        if ack.lost > 0 {
            self.enter_recovery(ack.next_number);
        }
        let filled = self.bbr.take_cwnd_limited();
        self.bbr.on_ack(&BbrAck {
            now: ack.now,
            sample,
            acked: ack.delivered,
            newly_lost: ack.lost * self.packet_bytes,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            in_flight_before: before,
            in_flight: ack.in_flight,
            phase: if self.recover.is_some() { RecoveryPhase::Recovery } else { RecoveryPhase::Open },
            srtt: self.srtt,
            next_burst: ack.now,
            cwnd_limited: filled,
        });
        if newest < self.round_end {
            return RoundOutcome::NotOver;
        }
        self.round_end = ack.next_number;
        RoundOutcome::Over
    }

    fn on_loss(&mut self, packets: u64) {
        if packets > 0 && self.started {
            self.enter_recovery(self.round_end);
        }
    }

    fn discard_samples(&mut self) {
        self.sent.clear();
    }

    fn restart(&mut self, _now: Instant, _next_number: u64) {
        self.sent.clear();
        self.recover = None;
    }
}
