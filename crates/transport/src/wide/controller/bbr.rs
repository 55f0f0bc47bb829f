//! BBR of TCP as a controller.

use super::{AckSample, Controller, INITIAL_WINDOW, Limit, RoundOutcome, SentPacket};
use crate::tcp::congestion::Phase;
use crate::tcp::congestion::bbr::{Bbr, BbrConfig, Opening, Seen};
use crate::tcp::delivery_rate::{self, Loss, RateSample, Stamp};
use hopline_core::{Duration, Instant, Purpose, Stream};
use std::collections::VecDeque;

/// Controller by BBR. Its segments are packets, headers included.
#[derive(Clone, Debug)]
pub struct BbrController {
    bbr: Bbr,
    /// Length of a full packet, bytes.
    packet: u64,
    started: bool,
    /// Recent packets, by number.
    sent: VecDeque<Sent>,
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
struct Sent {
    number: u64,
    at: Instant,
    /// Delivery state at that time.
    stamp: Stamp,
}

/// Smoothed round trips after which a packet is acknowledged or lost.
const FORGET_AFTER: u64 = 4;

impl BbrController {
    /// Creates the controller. `packet`: bytes of a full packet, headers included; `seed`: seed of the random phase of v1
    /// and of the probing times of v3.
    #[must_use]
    pub fn new(config: BbrConfig, packet: u32, seed: u64) -> Self {
        Self {
            bbr: Bbr::new(config, Stream::global(seed, 0, Purpose::Probing)),
            packet: packet.into(),
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
        let stamp = self.stamp_of(number)?;
        let old = ack.srtt.saturating_mul(FORGET_AFTER);
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
                Limit::Path => delivery_rate::Limit::Path,
                Limit::User => delivery_rate::Limit::Application,
            },
            round_trip: Some(ack.now.since(arrival.sent)),
        })
    }

    /// Returns the delivery state at the sending of a packet.
    fn stamp_of(&self, number: u64) -> Option<Stamp> {
        let at = self.sent.binary_search_by_key(&number, |sent| sent.number).ok()?;
        Some(self.sent[at].stamp)
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
        self.started.then(|| self.bbr.orders().rate)
    }

    fn window(&self, _least_rtt: Duration, _reordering: Duration, _together: u32) -> u64 {
        if self.started { self.bbr.orders().cwnd } else { u64::from(INITIAL_WINDOW) * self.packet }
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        let rate = self.pacing_rate().filter(|rate| *rate > 0.0)?;
        Some(Duration::from_secs_f64((f64::from(packets) * self.packet as f64 / rate).min(10.0)))
    }

    fn is_loss_below(&self, _share: f64) -> bool {
        false
    }

    fn saw_no_queue(&self) -> bool {
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
        let stamp = Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: self.in_flight,
            limit: delivery_rate::Limit::Path, // known with the acknowledgment
        };
        self.sent.push_back(Sent { number: packet.number, at: packet.now, stamp });
        if self.started && self.in_flight + self.packet > self.bbr.orders().cwnd {
            self.bbr.note_filled();
        }
    }

    fn on_packet_lost(&mut self, now: Instant, number: u64, bytes: u32) {
        self.lost += u64::from(bytes);
        let Some(stamp) = self.stamp_of(number) else { return };
        let loss = Loss { segment: 0..bytes.into(), stamp, lost: self.lost };
        self.bbr.on_loss(&loss, self.delivered, now);
    }

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        if !self.started {
            self.started = true;
            let window = u64::from(INITIAL_WINDOW) * self.packet;
            let opening = Opening { now: ack.now, mss: self.packet, window, round_trip: Some(ack.srtt) };
            self.bbr.open(&opening);
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
        let filled = self.bbr.take_filled();
        self.bbr.on_ack(&Seen {
            now: ack.now,
            sample,
            acked: ack.delivered,
            lost: ack.lost * self.packet,
            delivered: self.delivered,
            lost_so_far: self.lost,
            delivered_at: self.delivered_at,
            in_flight_before: before,
            in_flight: ack.in_flight,
            phase: if self.recover.is_some() { Phase::Recovery } else { Phase::Open },
            smoothed: self.srtt,
            due: ack.now,
            filled,
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
