//! Acknowledgments for the rate controller, without an endpoint.

use crate::wide::config::{Config, ControlConfig};
use crate::wide::control::RateController;
use crate::wide::controller::{AckSample, Arrival, Controller, RoundOutcome, SendLimit};
use hopline_core::{Duration, Instant};

/// Length of a packet, bytes.
pub(super) const PACKET: u32 = 1500;

/// A controller, and an ideal path that passes what is acknowledged.
pub(super) struct Driver {
    pub(super) control: RateController,
    pub(super) now: Instant,
    pub(super) number: u64,
    pub(super) srtt: Duration,
    /// Time of sending of the last packet, if the path delays it by nothing but its rate.
    sent: Instant,
}

/// Packets that an acknowledgment covers, and their fate.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedPackets {
    /// Time since the last acknowledgment.
    pub(super) after: Duration,
    /// Delay above the least one-way delay.
    pub(super) delay: Duration,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) marks: u32,
    pub(super) limit: SendLimit,
    pub(super) base_age: Duration,
}

impl AckedPackets {
    /// Four packets within 2 ms: 24 Mb/s, without a queue.
    pub(super) const FOUR_PACKETS: Self = Self {
        after: Duration::from_millis(2),
        delay: Duration::ZERO,
        packets: 4,
        lost: 0,
        marks: 0,
        limit: SendLimit::Path,
        base_age: Duration::ZERO,
    };
}

impl Driver {
    pub(super) fn new() -> Self {
        Self::with_config(Config::DEFAULT.control)
    }

    pub(super) fn with_config(config: ControlConfig) -> Self {
        Self {
            control: RateController::new(config, PACKET),
            now: Instant::from_secs(1),
            number: 0,
            srtt: Duration::from_millis(50),
            sent: Instant::ZERO,
        }
    }

    /// A controller in Cruise.
    pub(super) fn cruising() -> Self {
        let mut driver = Self::new();
        for _ in 0..20_000 {
            if driver.is_in("Cruise") {
                return driver;
            }
            driver.acknowledge(AckedPackets { lost: 0, ..AckedPackets::FOUR_PACKETS });
        }
        panic!("no Cruise: {:?}", driver.control.state);
    }

    pub(super) fn is_in(&self, state: &str) -> bool {
        format!("{:?}", self.control.state.current().name()) == state
    }

    /// Acknowledges the next packets.
    pub(super) fn acknowledge(&mut self, covered: AckedPackets) -> RoundOutcome {
        self.now += covered.after;
        self.number += covered.packets + covered.lost;
        let bytes = ((covered.packets + covered.lost) * u64::from(PACKET)) as f64;
        let pace = self.control.pacing_rate().unwrap_or(f64::INFINITY);
        self.sent += covered.after.min(Duration::from_secs_f64(bytes / pace));
        let sent = self.sent;
        let at_us = (self.now.as_nanos() / 1000) as i64;
        let arrival = Arrival { sent, at_us, sent_bytes: self.number * u64::from(PACKET) };
        self.report((covered.packets > 0).then_some((self.number, arrival, covered.delay)), covered)
    }

    /// Acknowledges a short packet, as of a handshake. It shows neither delay nor rate.
    pub(super) fn acknowledge_short(&mut self) {
        self.number += 1;
        self.report(None, AckedPackets { packets: 1, ..AckedPackets::FOUR_PACKETS });
    }

    fn report(&mut self, newest: Option<(u64, Arrival, Duration)>, covered: AckedPackets) -> RoundOutcome {
        self.control.on_ack(&AckSample {
            now: self.now,
            newest,
            delivered: covered.packets * u64::from(PACKET),
            packets: covered.packets,
            lost: covered.lost,
            spurious_losses: 0,
            marks: covered.marks,
            limit: covered.limit,
            next_number: self.number + 100,
            in_flight: 0,
            srtt: self.srtt,
            min_round: Duration::ZERO,
            base_age: covered.base_age,
        })
    }

    /// Lets the application pause before the next packets are sent.
    pub(super) fn pause(&mut self, time: Duration) {
        self.sent += time;
    }

    /// Acknowledges alike for so long.
    pub(super) fn acknowledge_for(&mut self, time: Duration, covered: AckedPackets) {
        let until = self.now + time;
        while self.now < until {
            self.acknowledge(covered);
        }
    }
}
