//! Evaluation by RFC 9743 of a congestion controller written for s2n-quic, beside s2n-quic's own: `cargo run --release
//! -p hopline-lab --features s2n-quic --example s2n_quic_controller -- 5.1.2`. Arguments: sections or networks; without any, all.

use hopline_lab::evaluation::{Law, Selection, open};
use hopline_lab::experiment::RunOptions;
use hopline_lab::plan::Effort;
use hopline_lab::run::NoObserver;
use hopline_lab::text::evaluation::describe;
use hopline_lab::user_defined::CustomAlgorithms;
use hopline_lab::user_defined::s2n_quic_core::random::Generator;
use hopline_lab::user_defined::s2n_quic_core::recovery::RttEstimator;
use hopline_lab::user_defined::s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use hopline_lab::user_defined::s2n_quic_core::time::Timestamp;
use std::time::Duration;

/// Grows by a datagram in each round trip until queues delay packets by `target`, and paces its window over the round trip.
#[derive(Clone, Debug)]
struct DelayTarget {
    target: Duration,
    datagram: u32,
    window: u32,
    in_flight: u32,
    /// Packets sent before this time say nothing about the last reduction.
    reduced: Option<Timestamp>,
    departure: Option<Timestamp>,
}

impl DelayTarget {
    fn reduce(&mut self, now: Timestamp, sent: Timestamp, window: u32) {
        if self.reduced.is_none_or(|reduced| sent > reduced) {
            self.window = window.max(2 * self.datagram);
            self.reduced = Some(now);
        }
    }
}

impl CongestionController for DelayTarget {
    /// Time of sending.
    type PacketInfo = Timestamp;

    fn congestion_window(&self) -> u32 {
        self.window
    }

    fn bytes_in_flight(&self) -> u32 {
        self.in_flight
    }

    fn is_congestion_limited(&self) -> bool {
        self.window.saturating_sub(self.in_flight) < self.datagram
    }

    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        _app_limited: Option<bool>,
        rtt: &RttEstimator,
        _publisher: &mut P,
    ) -> Timestamp {
        self.in_flight += bytes as u32;
        // A quarter more than a window in each round trip (RFC 9002 §7.7).
        let interval = rtt.smoothed_rtt().mul_f64(0.8 * bytes as f64 / f64::from(self.window));
        let due = self.departure.map_or(sent, |departure| departure.max(sent));
        self.departure = Some(due + interval);
        sent
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        sent: Timestamp,
        now: Timestamp,
        rtt: &RttEstimator,
        _: &mut P,
    ) {
        if rtt.latest_rtt() > rtt.min_rtt() + self.target {
            self.reduce(now, sent, self.window / 8 * 7);
        }
    }

    fn on_ack<P: Publisher>(
        &mut self,
        _newest_sent: Timestamp,
        bytes: usize,
        _newest: Timestamp,
        rtt: &RttEstimator,
        _random: &mut dyn Generator,
        _now: Timestamp,
        _publisher: &mut P,
    ) {
        // The window is used: it was full before this.
        let is_used = self.in_flight + 3 * self.datagram >= self.window;
        self.in_flight -= bytes as u32;
        if is_used && rtt.latest_rtt() <= rtt.min_rtt() + self.target {
            // Doubles in each round trip before the first reduction.
            let share =
                if self.reduced.is_none() { 1.0 } else { f64::from(self.datagram) / f64::from(self.window) };
            self.window += (bytes as f64 * share) as u32;
        }
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        bytes: u32,
        sent: Timestamp,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random: &mut dyn Generator,
        now: Timestamp,
        _publisher: &mut P,
    ) {
        self.in_flight -= bytes;
        self.reduce(now, sent, if persistent_congestion { 0 } else { self.window / 10 * 7 });
    }

    fn on_explicit_congestion<P: Publisher>(&mut self, _marks: u64, now: Timestamp, _publisher: &mut P) {
        self.reduce(now, now, self.window / 5 * 4);
    }

    fn on_mtu_update<P: Publisher>(&mut self, datagram: u16, _publisher: &mut P) {
        self.datagram = datagram.into();
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes: usize, _publisher: &mut P) {
        self.in_flight -= bytes as u32;
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.departure
    }
}

/// Makes a controller for each connection.
#[derive(Debug)]
struct DelayTargets(Duration);

impl Endpoint for DelayTargets {
    type CongestionController = DelayTarget;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> DelayTarget {
        let datagram = path.max_datagram_size.into();
        let window = 10 * datagram;
        DelayTarget { target: self.0, datagram, window, in_flight: 0, reduced: None, departure: None }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let laws = CustomAlgorithms::default()
        .with_s2n_quic_controller("delay-target", "1", |_seed| DelayTargets(Duration::from_millis(10)));
    let evaluated = ["quic-own:delay-target", "quic-s2n-cubic", "quic-s2n-bbr"].map(Law::parse);
    let evaluated = evaluated.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let sections: Vec<String> = std::env::args().skip(1).collect();
    let file = open(None).map_err(|e| e.to_string())?;
    let plan = file
        .load(&evaluated, Selection { only: &sections, ..Selection::default() }, &laws)
        .map_err(|e| e.to_string())?;
    let made = plan.run(RunOptions { jobs: None, command: &[], watch: &NoObserver });
    let results = plan.judge(&made.map_err(|e| format!("{e:?}"))?);
    let said = describe(&plan, &results, Effort::Full);
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes())?;
    Ok(())
}
