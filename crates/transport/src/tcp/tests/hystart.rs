//! HyStart++ (RFC 9406) and HyStart of Linux: the end of slow start before a loss.

use super::script::{Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{
    Config, ConfigError, EcnMode, Growth, HyStartConfig, HyStartDetection, HyStartPlusPlusConfig,
    HyStartScope, InitialWindow, OptionOffer, RackConfig, RecoveryPhase, SlowStart, TailProbe,
};
use crate::tcp::{LossDetection, State};
use hopline_core::{Duration, Length};

const PLUS: SlowStart = SlowStart::HyStartPlusPlus(HyStartPlusPlusConfig::RFC9406);
const LINUX: SlowStart = SlowStart::HyStart(HyStartConfig::LINUX);
/// `ssthresh` before slow start ends.
const UNLIMITED: u32 = 1 << 30;

fn config(slow_start: SlowStart, window: u32) -> Config {
    let rack = RackConfig::RFC8985.with_tail_probe(TailProbe::Off);
    Config {
        slow_start,
        initial_window: InitialWindow::Segments(window),
        loss_detection: LossDetection::Rack(rack),
        ..plain().with_sack().with_rack()
    }
}

/// A flow with more data than the dialogue takes, and what is acknowledged.
struct Flow {
    s: Script,
    una: i64,
}

impl Flow {
    /// The first window was sent at 100 ms.
    fn new(config: Config) -> Self {
        let mut s = Script::connected_with(config, mss_1000_sack());
        s.endpoint.send(s.now, Length(1 << 40)).unwrap();
        s.transmits();
        Self { s, una: 1 }
    }

    fn now_ms(&self) -> u64 {
        self.s.now.as_nanos() / 1_000_000
    }

    /// Acknowledges `segments` segments by one ACK, `ms` milliseconds from now.
    fn ack(&mut self, ms: u64, segments: i64) {
        self.una += 1000 * segments;
        let at = self.now_ms() + ms;
        self.s.receive_at(at, segment(1).ack(self.una));
        self.s.transmits();
    }

    /// Acknowledges `n` segments one by one, after a round-trip time of `ms`.
    fn acks(&mut self, ms: u64, n: u64) {
        for i in 0..n {
            self.ack(if i == 0 { ms } else { 0 }, 1);
        }
    }

    /// Acknowledges all that is in flight one by one, after a round-trip time of `ms`.
    fn flight(&mut self, ms: u64) {
        let n = self.s.endpoint.flight_size() / 1000;
        self.acks(ms, n);
    }

    fn cwnd(&self) -> u32 {
        self.s.endpoint.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.s.endpoint.ssthresh()
    }
}

#[test]
fn slow_start_adds_what_is_acknowledged_at_most_eight_segments() {
    // §4.2: min(N, L · SMSS), L = 8.
    for (segments, grown) in [(1, 1000), (5, 5000), (12, 8000)] {
        let mut flow = Flow::new(config(PLUS, 20));
        flow.ack(100, segments);
        assert_eq!(flow.cwnd(), 20_000 + grown, "{segments} segments");
    }
}

#[test]
fn a_rise_of_an_eighth_between_two_rounds_starts_conservative_slow_start() {
    // §4.2: RttThresh = 100 ms / 8, and eight samples decide. Then a quarter is added.
    let mut flow = Flow::new(config(PLUS, 10));
    flow.flight(100);
    assert_eq!(flow.cwnd(), 20_000);
    flow.acks(113, 8);
    assert_eq!(flow.cwnd(), 28_000);
    flow.acks(0, 4);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (29_000, UNLIMITED));
    let mut flow = Flow::new(config(PLUS, 10));
    flow.flight(100);
    flow.flight(112);
    assert_eq!(flow.cwnd(), 40_000, "below the threshold");
}

#[test]
fn one_low_sample_in_a_round_prevents_it() {
    let mut flow = Flow::new(config(PLUS, 10));
    flow.flight(100);
    flow.acks(110, 1);
    flow.acks(10, 19);
    assert_eq!(flow.cwnd(), 40_000);
}

#[test]
fn fewer_than_eight_samples_decide_nothing() {
    // ACKs for three segments each: seven to the next round.
    let mut flow = Flow::new(config(PLUS, 10));
    flow.flight(100);
    for i in 0..6 {
        flow.ack(if i == 0 { 150 } else { 0 }, 3);
    }
    assert_eq!(flow.cwnd(), 38_000);
}

#[test]
fn a_round_trip_below_the_baseline_resumes_slow_start() {
    // §4.2: the baseline is the least of the round that began CSS, 113 ms.
    for (rtt, grown) in [(113, 4), (105, 20)] {
        let mut flow = Flow::new(config(PLUS, 10));
        flow.flight(100);
        flow.flight(113);
        flow.acks(rtt, 12); // the round is decided
        let before = flow.cwnd();
        flow.acks(0, 16);
        let expected = if grown == 4 { 4000 } else { 16_000 };
        assert_eq!(flow.cwnd() - before, expected, "{rtt} ms");
    }
}

#[test]
fn after_five_rounds_of_it_congestion_avoidance_begins() {
    // §4.2: the partial round in which it began counts.
    let mut flow = Flow::new(config(PLUS, 10));
    flow.flight(100);
    for round in 1..=4 {
        flow.flight(113);
        assert_eq!(flow.ssthresh(), UNLIMITED, "round {round}");
    }
    let before = flow.cwnd();
    flow.flight(113);
    let ssthresh = flow.ssthresh();
    assert!(ssthresh > before && ssthresh < 80_000, "{ssthresh}");
    flow.flight(113);
    assert_eq!(flow.ssthresh(), ssthresh);
    assert!(flow.cwnd() <= ssthresh + 2000, "one segment per round trip: {}", flow.cwnd());
}

#[test]
fn a_loss_or_a_mark_ends_it_for_good() {
    // §4.2, §4.3: later slow starts are standard.
    let ecn = Config { ecn: EcnMode::Request, growth: Growth::PerAck, ..config(PLUS, 10) };
    let mut s = Script::new(ecn);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = hopline_core::Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).ece().options(mss_1000_sack()));
    s.transmits();
    assert_eq!(s.endpoint.state(), State::Established);
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s.receive_at(200, segment(1).ack(1001).ece());
    s.transmits();
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.cwnd()), (5000, 5000), "a mark");

    let mut flow = Flow::new(Config { growth: Growth::PerAck, ..config(PLUS, 10) });
    flow.ack(100, 2);
    assert_eq!(flow.cwnd(), 12_000);
    let said = flow.s.run_until(1000);
    assert!(said.contains(". 2001:3001"), "{said}");
    assert_eq!(flow.s.endpoint.phase(), RecoveryPhase::Loss);
    flow.una = flow.una.max(12_001);
    flow.s.receive(segment(1).ack(12_001 + 2000));
    flow.una = 14_001;
    flow.s.transmits();
    assert_eq!((flow.s.endpoint.phase(), flow.cwnd()), (RecoveryPhase::Open, 2000));
    flow.ack(100, 2);
    assert_eq!(flow.cwnd(), 3000, "one segment per ACK, not what is acknowledged");
}

#[test]
fn it_may_apply_to_every_slow_start() {
    let every = HyStartPlusPlusConfig::RFC9406.with_scope(HyStartScope::Every);
    let mut flow = Flow::new(config(SlowStart::HyStartPlusPlus(every), 10));
    flow.ack(100, 2);
    flow.s.run_until(1000);
    flow.s.receive(segment(1).ack(14_001));
    flow.una = 14_001;
    flow.s.transmits();
    flow.ack(100, 1);
    flow.ack(0, 1);
    flow.ack(100, 2);
    assert_eq!(flow.cwnd(), 6000, "what is acknowledged");
}

#[test]
fn timestamps_give_the_samples_where_nothing_else_does() {
    // Ten ACKs at 100 ms, then at 113 ms, for NewReno. Without timestamps a round has one sample.
    let cwnd = |timestamps| {
        let config = Config {
            slow_start: PLUS,
            initial_window: InitialWindow::Segments(10),
            timestamps,
            ..plain().with_newreno()
        };
        let stamp =
            |echo| if timestamps == OptionOffer::Offered { segment(1).ts(1, echo) } else { segment(1) };
        let mut s = Script::new(Config { mss: 1012, ..config });
        s.endpoint.connect(s.now).unwrap();
        s.transmits();
        let mut options = mss_1000();
        options.mss = Some(1012);
        let syn_ack = segment(0).syn().ack(1).options(options);
        s.now = hopline_core::Instant::from_millis(100);
        let mss = if timestamps == OptionOffer::Offered { 1000 } else { 1012 };
        s.receive(if timestamps == OptionOffer::Offered { syn_ack.ts(1, 0) } else { syn_ack });
        s.transmits();
        s.endpoint.send(s.now, Length(1 << 40)).unwrap();
        s.transmits();
        let clock = s.last.as_ref().and_then(|last| last.options.timestamps).map_or(0, |ts| ts.value);
        for i in 1..=10 {
            s.receive_at(200, stamp(clock).ack(1 + mss * i));
            s.transmits();
        }
        for i in 11..=28 {
            s.receive_at(313, stamp(clock.wrapping_add(100)).ack(1 + mss * i));
            s.transmits();
        }
        i64::from(s.endpoint.cwnd()) / mss
    };
    assert_eq!(cwnd(OptionOffer::Offered), 30, "twenty, eight, and ten quarters");
    assert_eq!(cwnd(OptionOffer::NotOffered), 38);
}

#[test]
fn linux_ends_slow_start_by_delay_at_the_ninth_sample() {
    // 12.5 ms above the least so far.
    let mut flow = Flow::new(config(LINUX, 10));
    flow.flight(100);
    flow.acks(113, 8);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (28_000, UNLIMITED));
    flow.acks(0, 1);
    assert_eq!(flow.ssthresh(), 28_000);
    let mut flow = Flow::new(config(LINUX, 10));
    flow.flight(100);
    flow.flight(112);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (40_000, UNLIMITED));
}

#[test]
fn linux_ends_no_slow_start_below_sixteen_segments() {
    let mut flow = Flow::new(config(LINUX, 2));
    for (rtt, cwnd) in [(100, 4000), (150, 8000), (200, 16_000)] {
        flow.flight(rtt);
        assert_eq!((flow.cwnd(), flow.ssthresh()), (cwnd, UNLIMITED));
    }
    flow.flight(250);
    assert!(flow.ssthresh() < UNLIMITED);
}

#[test]
fn linux_ends_slow_start_by_an_ack_train_of_half_the_round_trip() {
    // Half of 100 ms and of 1 ms for bursts, so after 52 ms.
    let after = |gap: u64, detect| {
        let hystart = HyStartConfig::LINUX.with_detect(detect);
        let mut flow = Flow::new(config(SlowStart::HyStart(hystart), 40));
        flow.ack(100, 1);
        (1..40u64).find(|_| {
            flow.ack(gap, 1);
            flow.ssthresh() < UNLIMITED
        })
    };
    assert_eq!(after(2, HyStartDetection::Both), Some(26));
    assert_eq!(after(2, HyStartDetection::AckTrain), Some(26));
    assert_eq!(after(3, HyStartDetection::Both), None, "the train has ended");
    assert_eq!(after(2, HyStartDetection::Delay), None, "the least of the round counts");
}

#[test]
fn linux_searches_again_after_a_timeout() {
    let mut flow = Flow::new(config(LINUX, 20));
    flow.flight(100);
    flow.flight(120);
    let found = flow.ssthresh();
    assert!(found < UNLIMITED);
    flow.flight(200);
    assert_eq!(flow.ssthresh(), found, "once");
    flow.s.run_until(5000);
    assert_eq!(flow.s.endpoint.phase(), RecoveryPhase::Loss);
    flow.una += flow.s.endpoint.flight_size() as i64;
    flow.s.receive(segment(1).ack(flow.una));
    flow.s.transmits();
    let ssthresh = flow.ssthresh();
    for rtt in [300, 300, 300, 350] {
        flow.flight(rtt);
    }
    assert!(flow.ssthresh() < ssthresh, "{} and {ssthresh}", flow.ssthresh());
}

#[test]
fn other_algorithms_have_rules_of_their_own() {
    let bbr = Config { slow_start: PLUS, ..Config::linux().with_bbr(crate::tcp::BbrConfig::V1) };
    assert_eq!(bbr.validate(), Ok(()));
}

#[test]
fn parameters_have_ranges() {
    let plus = HyStartPlusPlusConfig::RFC9406;
    let of = |slow_start| Config { slow_start, ..Config::modern() }.validate();
    let bad = |field, requirement| Err(ConfigError { field, requirement });
    assert_eq!(of(SlowStart::HyStartPlusPlus(plus)), Ok(()));
    let count = bad("slow_start", "counts and divisors of at least 1");
    for config in [
        plus.with_min_rtt_divisor(0),
        plus.with_n_rtt_sample(0),
        plus.with_css_growth_divisor(0),
        plus.with_css_rounds(0),
        plus.with_limit(0),
    ] {
        assert_eq!(of(SlowStart::HyStartPlusPlus(config)), count);
    }
    let order = of(SlowStart::HyStartPlusPlus(plus.with_max_rtt_thresh(Duration::from_millis(3))));
    assert_eq!(order, bad("slow_start.max_rtt_thresh", "at least min_rtt_thresh"));
    let linux = HyStartConfig::LINUX.with_max_delay(Duration::from_millis(3));
    assert_eq!(of(SlowStart::HyStart(linux)), bad("slow_start.max_delay", "at least min_delay"));
}
