//! RFC 9438: growth, reduction, time-outs, windows that are not in use; and the response function of §5.1.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::congestion::undo::{AfterUndo, UndoSelection};
use crate::tcp::{
    Config, CongestionControl, CubicConfig, Endpoint, FastConvergence, Growth, GrowthCondition, IdleRestart,
    InitialSsthresh, InitialWindow, Ports, RecoveryPhase, Reduction,
};
use hopline_core::{Duration, Instant, Length, LinkId, Seq32, StateMachine};
use hopline_wire::tcp::Segment;
use std::collections::VecDeque;

fn cubic() -> Config {
    Config { growth: Growth::Bytes { limit: 2 }, ..plain().with_cubic() }
}

/// `window` segments in flight at 100 ms, at the slow start threshold.
fn in_congestion_avoidance(config: Config, window: u32) -> Script {
    let config = Config {
        initial_window: InitialWindow::Segments(window),
        initial_ssthresh: InitialSsthresh::Segments(window),
        ..config
    };
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    s
}

/// Acknowledges the whole flight at `ms`, in one go.
fn acknowledge_flight(s: &mut Script, ms: u64, una: &mut i64) {
    *una += s.endpoint.flight_size() as i64;
    s.receive_at(ms, segment(1).ack(*una));
    s.transmits();
}

#[test]
fn a_loss_leaves_seven_tenths_of_the_flight() {
    // §4.6.
    let mut s = in_congestion_avoidance(cubic(), 10);
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
        s.transmits();
    }
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!(s.endpoint.ssthresh(), 7000);
    s.receive(segment(1).ack(12_001));
    assert_eq!(
        (s.endpoint.phase(), s.endpoint.cwnd()),
        (RecoveryPhase::Open, 2000),
        "RFC 6582: no burst at the end"
    );
}

#[test]
fn a_reduction_of_the_window_is_by_beta_too() {
    let config = Config { reduction: Reduction::Window, ..cubic() };
    let mut s = in_congestion_avoidance(config, 9);
    s.run_until(450);
    assert_eq!(s.endpoint.ssthresh(), 6000, "6.3 in whole segments");
    assert_eq!(s.endpoint.cwnd(), 1000, "§4.8: the loss window is one segment");
}

#[test]
fn without_a_loss_the_window_follows_the_cubic_function() {
    // §4.10: K is 0, the plateau is where slow start ended; before t = 2.9 s W_est, one segment a round trip, is above it.
    let mut s = in_congestion_avoidance(Config { growth: Growth::PerAck, ..cubic() }, 20);
    let mut una = 1;
    for round in 1..=10 {
        acknowledge_flight(&mut s, 100 + 100 * round, &mut una);
    }
    let early = s.endpoint.cwnd();
    assert!((29_000..=30_000).contains(&early), "Reno-friendly: {early}");
    let mut s = in_congestion_avoidance(cubic(), 20);
    let mut una = 1;
    for round in 1..=60 {
        acknowledge_flight(&mut s, 100 + 100 * round, &mut una);
    }
    // Avoidance begins with the first ACK, at 200 ms; the last comes at 6.1 s, and aims at a round trip later.
    let (expected, cwnd) = (20_000.0 + 0.4 * 6.0_f64.powi(3) * 1000.0, f64::from(s.endpoint.cwnd()));
    assert!((cwnd / expected - 1.0).abs() < 0.03, "{cwnd} for {expected}");
}

#[test]
fn acks_of_two_segments_count_as_two_where_bytes_are_counted() {
    let grown = |growth| {
        let mut s = in_congestion_avoidance(Config { growth, ..cubic() }, 4);
        s.receive_at(200, segment(1).ack(2001));
        s.endpoint.cwnd()
    };
    // Reno-friendly either way: W_est counts segments (§4.3).
    assert_eq!(grown(Growth::Bytes { limit: 2 }), 4500);
    assert_eq!(grown(Growth::PerAck), 4500);
}

#[test]
fn an_unused_window_neither_grows_nor_ages() {
    // §5.8: 100 s of a segment each do not make the next full window explode.
    let config =
        Config { growth_condition: GrowthCondition::WindowFull, idle_restart: IdleRestart::Never, ..cubic() };
    let mut s = Script::connected(Config {
        initial_window: InitialWindow::Segments(20),
        initial_ssthresh: InitialSsthresh::Segments(20),
        ..config
    });
    s.endpoint.send(s.now, Length(20_000)).unwrap();
    s.transmits();
    let mut una = 1;
    acknowledge_flight(&mut s, 200, &mut una);
    let begun = s.endpoint.cwnd();
    for round in 0..100 {
        s.run_until(300 + 1000 * round);
        s.endpoint.send(s.now, Length(1000)).unwrap();
        s.transmits();
        acknowledge_flight(&mut s, 400 + 1000 * round, &mut una);
    }
    assert_eq!(s.endpoint.cwnd(), begun);
    s.run_until(120_000);
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    acknowledge_flight(&mut s, 120_100, &mut una);
    // t is the 100 ms since the resumption.
    let cwnd = s.endpoint.cwnd();
    assert!((begun + 900..=begun + 1000).contains(&cwnd), "{cwnd} from {begun}: a segment, by W_est");
}

#[test]
fn without_sack_cubic_stays() {
    let mut s = Script::connected(cubic().with_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.endpoint.ssthresh(), 7000);
}

#[test]
fn with_sack_the_window_after_recovery_is_seven_tenths() {
    let mut s = Script::connected_with(cubic().with_sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(1).sack(1001, 5001));
    s.transmits();
    s.receive(segment(1).ack(10_001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 7000));
}

#[test]
fn an_undone_reduction_restores_growth() {
    // §4.9.2: W_max, K, the epoch and W_est come back with the window.
    let grown = |spurious: bool| {
        let mut s = in_congestion_avoidance(cubic(), 20);
        let mut una = 1;
        for round in 1..=30 {
            acknowledge_flight(&mut s, 100 + 100 * round, &mut una);
        }
        if spurious {
            for _ in 0..3 {
                s.receive(segment(1).ack(una));
            }
            assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
            s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::NewData).unwrap();
        }
        s.transmits();
        for round in 31..=60 {
            acknowledge_flight(&mut s, 100 + 100 * round, &mut una);
        }
        f64::from(s.endpoint.cwnd())
    };
    let (undone, never) = (grown(true), grown(false));
    assert!((undone / never - 1.0).abs() < 0.01, "{undone} after the undoing, {never} without");
}

/// A path without a limit of rate on which one new segment of `a` in `one_in` is lost, the first one early.
struct LossyPath {
    a: Endpoint<Length>,
    b: Endpoint<Length>,
    /// From `a` to `b`, and back.
    in_flight: [VecDeque<(Instant, Segment<Length>)>; 2],
    delay: Duration,
    one_in: u64,
    lost: u64,
}

impl LossyPath {
    fn new(config: Config, round_trip: Duration, one_in: u64) -> Self {
        let end = |local, remote| Endpoint::new(config, Ports { local, remote }, Seq32(0)).unwrap();
        let (mut a, mut b) = (end(1, 2), end(2, 1));
        b.listen().unwrap();
        a.connect(Instant::ZERO).unwrap();
        a.send(Instant::ZERO, Length(1 << 50)).unwrap();
        Self { a, b, in_flight: Default::default(), delay: round_trip / 2, one_in, lost: 0 }
    }

    /// New segments of `a` so far.
    fn new_segments(&self) -> u64 {
        self.a.stats().segments_sent - self.a.stats().retransmissions
    }

    fn drain(&mut self, now: Instant) {
        let mut before = self.new_segments();
        while let Some(segment) = self.a.poll_transmit(now) {
            let fresh = self.new_segments();
            if fresh > before && fresh % self.one_in == self.one_in / 10 {
                self.lost += 1;
            } else {
                self.in_flight[0].push_back((now + self.delay, segment));
            }
            before = fresh;
        }
        while let Some(segment) = self.b.poll_transmit(now) {
            self.in_flight[1].push_back((now + self.delay, segment));
        }
        while self.b.recv().is_some() {}
    }

    fn next_at(&self) -> Instant {
        let arrivals = self.in_flight.iter().filter_map(|queue| queue.front().map(|&(at, _)| at));
        let timers = [self.a.poll_timeout(), self.b.poll_timeout()].into_iter().flatten().map(|(at, _)| at);
        arrivals.chain(timers).min().expect("data without end")
    }

    fn step(&mut self, now: Instant) {
        for to in [0, 1] {
            while let Some((_, segment)) = self.in_flight[to].pop_front_if(|(at, _)| *at <= now) {
                let end = if to == 0 { &mut self.b } else { &mut self.a };
                end.handle_packet(now, LinkId::ONLY, segment);
                self.drain(now);
            }
        }
        self.a.handle_timeout(now);
        self.b.handle_timeout(now);
        self.drain(now);
    }

    /// Mean window in segments, over time, from the first fifth of so many losses on.
    fn mean_window(mut self, losses: u64) -> f64 {
        let (mut now, mut since, mut area) = (Instant::ZERO, None, 0.0);
        self.drain(now);
        while self.lost < losses {
            let next = self.next_at().max(now);
            if self.lost >= losses / 5 {
                since.get_or_insert(now);
                let a = &self.a;
                let window = if a.phase() == RecoveryPhase::Open { a.cwnd() } else { a.ssthresh() };
                area += f64::from(window) / f64::from(a.effective_mss()) * next.since(now).as_secs_f64();
            }
            now = next;
            self.step(now);
        }
        assert_eq!(self.a.stats().timeouts, 0, "single losses are recovered from without the timer");
        area / now.since(since.expect("losses")).as_secs_f64()
    }
}

#[test]
fn the_mean_window_is_that_of_the_response_function() {
    // §5.1, figure 6: 1.054 · RTT^0.75 / p^0.75 in the cubic region, Reno's √(1.5/p) in the Reno-friendly region. Both
    // without fast convergence, since no competing flow uses the room that it leaves.
    let law = CongestionControl::Cubic(CubicConfig {
        fast_convergence: FastConvergence::Off,
        ..CubicConfig::RFC9438
    });
    let modern = Config { receive_buffer: 1 << 30, idle_restart: IdleRestart::Never, ..Config::modern() };
    for (round_trip_ms, one_in, losses, expected, tolerance) in [
        (100, 10_000, 40, 1.0538 * (0.1_f64 * 10_000.0).powf(0.75), 0.03),
        (100, 100_000, 10, 1.0538 * (0.1_f64 * 100_000.0).powf(0.75), 0.03),
        (200, 10_000, 40, 1.0538 * (0.2_f64 * 10_000.0).powf(0.75), 0.03),
        (10, 1000, 200, (1.5 * 1000.0_f64).sqrt(), 0.1),
    ] {
        // The first loss comes at about the window that the losses keep up: from elsewhere it takes a hundred of them.
        let initial_ssthresh = InitialSsthresh::Segments((expected / 0.925) as u32);
        let config = Config { congestion_control: law, initial_ssthresh, ..modern };
        let mean = LossyPath::new(config, Duration::from_millis(round_trip_ms), one_in).mean_window(losses);

        let off = mean / expected - 1.0;
        assert!(off.abs() < tolerance, "{round_trip_ms} ms, 1 in {one_in}: {mean} for {expected}");
    }
    let reno = LossyPath::new(modern, Duration::from_millis(100), 10_000).mean_window(40);

    assert!((reno / 15_000.0_f64.sqrt() - 1.0).abs() < 0.05, "{reno}");
}
