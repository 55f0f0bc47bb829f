//! A congestion controller of one's own behind the trait `wide::Controller`, next to TPA-wide's and to CUBIC, over a link
//! that loses 3 % of the packets. `cargo run --example own_controller`.
//!
//! The controller is TCP Vegas in its simplest form: the window grows by a packet per round trip while the flow keeps
//! less than three packets in the queue, and shrinks by a packet otherwise. It does not react to losses.

use hopline_core::{Duration, Instant, Length, LinkId, StateMachine};
use hopline_link::{CopyState, Direction, Emulation};
use hopline_transport::tcp::CubicConfig;
use hopline_transport::wide::{
    AckSample, Config, Controller, CubicController, Endpoint, RateController, RoundOutcome, SendLimit,
};
use std::collections::BTreeMap;
use std::error::Error;

const BYTES: u64 = 5_000_000;

/// Number of packets in the queue that the controller aims at.
const QUEUED: f64 = 3.0;

/// Delay-based controller. Windows are in packets.
#[derive(Debug)]
struct Vegas {
    /// Length of a full packet, bytes.
    packet: f64,
    cwnd: f64,
    slow_start: bool,
    /// Smoothed round-trip time, and the least one; `None` before the first acknowledgment.
    rtt: Option<(Duration, Duration)>,
    /// Number of the first packet of the next round trip.
    round_end: u64,
    reductions: u64,
}

impl Vegas {
    fn new(packet: u32) -> Self {
        let packet = packet.into();
        Self { packet, cwnd: 10.0, slow_start: true, rtt: None, round_end: 0, reductions: 0 }
    }
}

impl Controller for Vegas {
    fn pacing_rate(&self) -> Option<f64> {
        let (srtt, _) = self.rtt?;
        Some(1.25 * self.cwnd * self.packet / srtt.as_secs_f64())
    }

    fn window(&self, _least_rtt: Duration, _reordering: Duration, _together: u32) -> u64 {
        (self.cwnd * self.packet) as u64
    }

    fn sending_time(&self, packets: u32) -> Option<Duration> {
        self.rtt.map(|(srtt, _)| Duration::from_secs_f64(srtt.as_secs_f64() * f64::from(packets) / self.cwnd))
    }

    fn is_loss_below(&self, _share: f64) -> bool {
        true
    }

    fn saw_empty_queue(&self) -> bool {
        false
    }

    fn reductions(&self) -> u64 {
        self.reductions
    }

    fn on_established(&mut self) {}

    fn on_ack(&mut self, ack: &AckSample) -> RoundOutcome {
        let least = self.rtt.map_or(ack.srtt, |(_, least)| least.min(ack.srtt));
        self.rtt = Some((ack.srtt, least));
        if ack.newest.is_none_or(|(number, ..)| number < self.round_end) {
            return RoundOutcome::NotOver;
        }
        self.round_end = ack.next_number;
        let queued = self.cwnd * (1.0 - least.as_secs_f64() / ack.srtt.as_secs_f64());
        match (queued < QUEUED, ack.limit) {
            (true, SendLimit::Path) if self.slow_start => self.cwnd *= 2.0,
            (true, SendLimit::Path) => self.cwnd += 1.0,
            (true, _) => {}
            (false, _) => {
                self.slow_start = false;
                self.cwnd = (self.cwnd - 1.0).max(2.0);
                self.reductions += 1;
            }
        }
        RoundOutcome::Over
    }

    fn on_loss(&mut self, _packets: u64) {}

    fn discard_samples(&mut self) {}

    fn restart(&mut self, _now: Instant, next_number: u64) {
        *self = Self { round_end: next_number, ..Self::new(self.packet as u32) };
    }
}

/// Transfers [`BYTES`] and returns the duration. Packets travel as values: their encryption is another layer's.
fn transfer(controller: impl Fn(u32) -> Box<dyn Controller>) -> Result<Duration, Box<dyn Error>> {
    let emulation = Emulation::delay(Duration::from_millis(25))
        .with_rate(Some(20_000_000))
        .with_queue(Some(100))
        .with_loss(0.03);
    let mut link = [0, 1].map(|end| Direction::new(emulation.clone(), 1, end));
    let new = || Endpoint::<Length, _>::with_controller(Config::DEFAULT, &controller);
    let mut ends = [new()?, new()?];
    ends[1].listen()?;
    ends[0].connect(Instant::ZERO)?;
    ends[0].send(Instant::ZERO, Length(BYTES))?;

    // Packets in flight, by time of arrival and order of departure, each with the end that it goes to.
    let mut in_flight = BTreeMap::new();
    let (mut now, mut sent, mut received) = (Instant::ZERO, 0, 0);
    loop {
        for end in 0..2 {
            while let Some(packet) = ends[end].poll_transmit(now) {
                for (arrival, fate) in link[end].transmit(now, 28 + packet.sealed_len()).into_iter().flatten()
                {
                    // A receiver drops a packet that fails authentication.
                    if fate == CopyState::Intact {
                        in_flight.insert((arrival, sent), (1 - end, packet.clone()));
                        sent += 1;
                    }
                }
            }
            while ends[end].poll_event().is_some() {}
        }
        while let Some(Length(len)) = ends[1].recv() {
            received += len;
        }
        if received == BYTES {
            return Ok(now - Instant::ZERO);
        }
        let timers = ends.iter().filter_map(|end| end.poll_timeout()).map(|(at, _)| at);
        let arrival = in_flight.keys().next().map(|&(at, _)| at);
        now = timers.chain(arrival).min().ok_or("nothing is in flight, and no timer is set")?.max(now);
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
        while let Some(entry) = in_flight.first_entry().filter(|entry| entry.key().0 <= now) {
            let (end, packet) = entry.remove();
            ends[end].handle_packet(now, LinkId::ONLY, packet);
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn Error>> {
    type New = fn(u32) -> Box<dyn Controller>;
    let controllers: [(&str, New); 3] = [
        ("Vegas", |packet| Box::new(Vegas::new(packet))),
        ("TPA-wide", |packet| Box::new(RateController::new(Config::DEFAULT.control(), packet))),
        ("CUBIC", |packet| Box::new(CubicController::new(CubicConfig::RFC9438, packet))),
    ];
    for (name, controller) in controllers {
        let took = transfer(controller)?.as_secs_f64();
        println!("{name:8}  {took:5.1} s  {:5.2} Mb/s", BYTES as f64 * 8e-6 / took);
    }
    Ok(())
}
