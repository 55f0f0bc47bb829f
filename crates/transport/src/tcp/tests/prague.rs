//! Prague: reduction by the marked fraction, increase by what is not marked, losses, pacing.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{Config, PragueConfig, RecoveryPhase};
use hopline_core::{Duration, Instant, Length};

fn prague() -> Config {
    plain().with_rack().with_prague(PragueConfig::DRAFT)
}

/// Connected at 100 ms after a SYN-ACK with these flags; ten segments have been sent by 200 ms.
fn in_flight(config: Config, syn_ack: u8) -> Script {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "SEWA 0");
    s.now = Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).options(mss_1000_sack()).ace(syn_ack));
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.run_until(200);
    s
}

/// Acknowledges up to `ack` at `ms` with this ACE field.
fn ack(s: &mut Script, ms: u64, ack: i64, ace: u8) {
    s.run_until(ms);
    s.receive(segment(1).ack(ack).ace(ace));
}

/// Acknowledges everything that has been sent at `ms` with this ACE field, four segments with each ACK.
fn ack_all(s: &mut Script, ms: u64, ace: u8) {
    s.run_until(ms);
    let end = i64::from(s.last.as_ref().unwrap().seq_end().distance_from(s.peer.iss));
    let mut next = 1 + s.endpoint.stats().bytes_acked as i64;
    while next < end {
        next = (next + 4000).min(end);
        s.receive(segment(1).ack(next).ace(ace));
    }
}

fn alpha(s: &Script) -> f64 {
    s.endpoint.prague_alpha().unwrap()
}

/// Compares to within a hundredth of a byte or of a thousandth.
fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn data_and_retransmissions_are_ect_1() {
    let mut s = in_flight(prague(), 0b010);
    assert_eq!(s.last.as_ref().unwrap().ecn, hopline_wire::ip::Ecn::Capable1);
    s.receive(segment(1).ack(1).ace(5).sack(989, 4989));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    let said = s.run_until(260);
    assert!(said.contains("ECT1 EA 1:989"), "{said}");
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    let mut s = in_flight(prague(), 0b010);
    ack(&mut s, 210, 989, 5);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (11_000, 1 << 30), "slow start");
    ack(&mut s, 220, 1989, 6);
    assert!(is_close(alpha(&s), 1.0));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (5500, 5500));
}

#[test]
fn marks_reduce_by_half_of_alpha_once_per_round_trip() {
    let mut s = in_flight(prague(), 0b010);
    ack(&mut s, 210, 989, 6);
    assert_eq!(s.endpoint.cwnd(), 5000);
    // The second mark belongs to the same round trip. Unmarked bytes increase the window all the same (§2.4.3).
    ack(&mut s, 220, 1989, 7);
    assert_eq!(s.endpoint.cwnd(), 5000);
    let mut cwnd = 5000.0;
    for n in 2..9 {
        ack(&mut s, 220 + n as u64, 989 + 1000 * n, 7);
        cwnd += 1e6 / cwnd;
        assert_eq!(s.endpoint.cwnd(), cwnd as u32);
    }
    // The period began with the first ACK, and ends where all that was sent by then is acknowledged.
    assert!(is_close(alpha(&s), 1.0));
    s.run_until(300);
    ack(&mut s, 310, 9989, 7);
    let fraction = 1000.0 / 9000.0;
    let expected = 1.0 + (fraction - 1.0) / 16.0;
    assert!(is_close(alpha(&s), expected), "{}", alpha(&s));
    cwnd += 1e6 / cwnd;
    s.run_until(400);
    ack(&mut s, 410, 10_989, 0);
    cwnd *= 1.0 - expected / 2.0;
    assert_eq!(s.endpoint.cwnd(), cwnd as u32, "the next round trip");
    assert_eq!(s.endpoint.stats().mark_reactions, 2);
    assert_eq!(s.endpoint.ssthresh(), s.endpoint.cwnd());
}

#[test]
fn without_marks_alpha_decays_and_the_window_grows_by_a_segment_per_round_trip() {
    let mut s = in_flight(prague(), 0b010);
    ack_all(&mut s, 210, 6);
    let reduced = s.endpoint.cwnd();
    for round in 1..=5_u64 {
        let before = alpha(&s);
        ack_all(&mut s, 210 + 100 * round, 6);
        // A period ends with the first ACK of a round trip, or also with its last one, since all ACKs come at once here.
        let decay = alpha(&s) / before;
        assert!([1, 2].iter().any(|&periods| is_close(decay, (15.0_f64 / 16.0).powi(periods))), "{decay}");
    }
    let grown = s.endpoint.cwnd() - reduced;
    assert!((4000..=5000).contains(&grown), "{grown}");
}

#[test]
fn a_window_is_never_reduced_below_two_segments() {
    let mut s = in_flight(prague(), 0b010);
    for round in 0..8_u64 {
        ack_all(&mut s, 210 + 100 * round, ((6 + round) % 8) as u8);
        assert!(s.endpoint.cwnd() >= 2000);
    }
    assert!(s.endpoint.cwnd() <= 3500, "with the bytes that were not marked: {}", s.endpoint.cwnd());
}

#[test]
fn a_short_round_trip_increases_less_once_the_reference_is_used() {
    // §2.4.4: with a reference of 1 s and round trips of 100 ms, a hundredth.
    let config = PragueConfig::DRAFT.with_rtt_reference(Duration::from_secs(1)).with_rtt_dependent_rounds(0);
    let mut s = in_flight(plain().with_rack().with_prague(config), 0b010);
    ack(&mut s, 200, 989, 6);
    let cwnd = s.endpoint.cwnd();
    ack_all(&mut s, 200, 6);
    let grown = s.endpoint.cwnd() - cwnd;
    assert!((5..=40).contains(&grown), "{grown}: about a hundredth of a segment for each window");
    // The next reduction waits for a reference round trip.
    for round in 1..=9 {
        ack_all(&mut s, 200 + 100 * round, if round < 5 { 6 } else { 7 });
    }
    assert_eq!(s.endpoint.stats().mark_reactions, 1);
    ack_all(&mut s, 1210, 0);
    assert_eq!(s.endpoint.stats().mark_reactions, 2);
}

#[test]
fn a_loss_halves_and_a_mark_before_it_counts_towards_that() {
    let mut s = in_flight(prague(), 0b010);
    s.receive(segment(1).ack(1).ace(5).sack(989, 4989));
    assert_eq!(s.endpoint.ssthresh(), 4994, "half of what is in flight (§2.4.1)");
    // With a smaller alpha: the mark leaves 1 - alpha/2, and the loss what is missing to one half.
    let mut s = in_flight(prague(), 0b010);
    ack_all(&mut s, 210, 6);
    for round in 1..=8_u64 {
        ack_all(&mut s, 210 + 100 * round, 6);
    }
    s.run_until(1130);
    let una = 1 + s.endpoint.stats().bytes_acked as i64;
    let window = f64::from(s.endpoint.cwnd());
    s.receive(segment(1).ack(una + 1000).ace(7));
    let left = s.endpoint.cwnd();
    assert!(f64::from(left) > 0.6 * window, "{left} of {window}");
    s.receive(segment(1).ack(una + 1000).ace(7).sack(una + 2000, una + 6000));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    let share = f64::from(s.endpoint.ssthresh()) / window;
    assert!((0.45..=0.51).contains(&share), "{share}");
    // Marks of that window do not reduce again.
    let reactions = s.endpoint.stats().mark_reactions;
    s.receive(segment(1).ack(una + 1000).ace(0).sack(una + 2000, una + 7000));
    assert_eq!(s.endpoint.stats().mark_reactions, reactions);
}

#[test]
fn a_timeout_collapses_the_window() {
    let mut s = in_flight(prague(), 0b010);
    s.run_until(2000);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (1000, 5000));
}

#[test]
fn without_accurate_feedback_it_is_reno() {
    // RFC 9331 §4.2 and §2.3.1 of the draft: neither ECT(1) nor a response by alpha.
    for (syn_ack, capable) in [(0b001, "ECT "), (0b000, "")] {
        let mut s = in_flight(prague(), syn_ack);
        assert_eq!(s.endpoint.prague_alpha(), None);
        s.receive(segment(1).ack(1001));
        s.run_until(210);
        let last = s.last.as_ref().unwrap();
        let is_capable = last.ecn == hopline_wire::ip::Ecn::Capable0;
        assert_eq!(is_capable, !capable.is_empty());
        if is_capable {
            s.receive(segment(1).ack(2001).ece());
            assert_eq!(s.endpoint.cwnd(), 5500, "half of eleven in flight");
        }
    }
}

#[test]
fn a_mangled_path_makes_it_reno() {
    let mut s = in_flight(prague(), 0b010);
    assert!(s.endpoint.prague_alpha().is_some());
    s.receive(segment(1).ack(989).ace(0));
    assert_eq!(s.endpoint.prague_alpha(), None);
    s.run_until(220);
    assert_eq!(s.last.as_ref().unwrap().ecn, hopline_wire::ip::Ecn::NotCapable);
}

#[test]
fn segments_are_paced_at_twice_the_window_per_round_trip_in_slow_start_and_then_at_once() {
    let mut s = Script::new(prague());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).options(mss_1000_sack()).ace(0b010));
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    let said = s.run_until(121);
    let times: Vec<&str> = said.split("; ").map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(times, ["100", "102", "107", "112", "117"], "10 000 bytes in 50 ms: {said}");
    s.run_until(210);
    ack(&mut s, 210, 9989, 6);
    let times: Vec<u64> =
        s.run_until(300).split("; ").map(|line| line.split(':').next().unwrap().parse().unwrap()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[1..].iter().all(|gap| (16..=24).contains(gap)), "5000 bytes in about 95 ms: {gaps:?}");
}

#[test]
fn parameters_out_of_range_and_other_algorithms_beside_it_are_rejected() {
    let field = |config: Config| config.validate().expect_err("it is wrong").field;
    let with = |config| plain().with_rack().with_prague(config);
    assert_eq!(field(with(PragueConfig::DRAFT.with_gain(0.0))), "prague.gain");
    assert_eq!(field(with(PragueConfig::DRAFT.with_loss_beta(1.0))), "prague.loss_beta");
    assert_eq!(field(with(PragueConfig::DRAFT.with_max_burst(Duration::from_secs(1)))), "prague.max_burst");
    assert_eq!(
        field(with(PragueConfig::DRAFT.with_rtt_reference(Duration::from_secs(2)))),
        "prague.rtt_reference"
    );
    assert_eq!(field(prague().with_ecn(crate::tcp::EcnMode::Request)), "ecn");
    assert_eq!(field(prague().with_loss_detection(crate::tcp::LossDetection::DupAcks)), "loss_detection");
}
