//! RFC 3168: negotiation, echo, reaction; what may be marked and what not.

use super::script::{Script, SegmentBuilder, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::congestion::undo::{AfterUndo, UndoSelection};
use crate::tcp::{Config, EcnMode, InitialWindow, RecoveryPhase};
use hopline_core::{Instant, Length};

/// Connected at 100 ms, after a SYN-ACK with these bits.
fn connected_with_syn_ack(config: Config, syn_ack: SegmentBuilder) -> Script {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "SEW 0", "§6.1.1");
    s.now = Instant::from_millis(100);
    s.receive(syn_ack);
    assert_eq!(s.transmits(), ". 1 ack 1");
    s
}

fn syn_ack() -> SegmentBuilder {
    segment(0).syn().ack(1).options(mss_1000())
}

/// Ten segments in flight since 100 ms, ECN agreed on.
fn in_flight(config: Config) -> Script {
    let mut s = connected_with_syn_ack(config.with_ecn(EcnMode::Request), syn_ack().ece());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    let said = s.transmits();
    let window = said.split(';').count();
    assert_eq!(said.matches("ECT . ").count(), window, "{said}");
    s
}

#[test]
fn only_new_data_are_ecn_capable() {
    // §6.1.4, §6.1.5: neither a pure ACK nor what is sent again.
    let mut s = in_flight(plain());
    s.receive(segment(1).ack(1).data(10));
    assert_eq!(s.transmits(), ". 10001 ack 11");
    let mut said = Vec::new();
    for _ in 0..3 {
        s.receive(segment(11).ack(1));
        said.push(s.transmits());
    }
    assert_eq!(said, ["ECT . 10001:11001 ack 11", "ECT . 11001:12001 ack 11", ". 1:1001 ack 11"]);
    s.receive(segment(11).ack(12_001));
    let said = s.transmits();
    assert!(said.starts_with("ECT W 12001:13001"), "a loss is told too, §6.1.2: {said}");
}

#[test]
fn a_peer_that_mirrors_the_bits_or_drops_them_has_not_agreed() {
    for syn_ack in [syn_ack().ece().cwr(), syn_ack().cwr(), syn_ack()] {
        let mut s = connected_with_syn_ack(plain().with_ecn(EcnMode::Request), syn_ack);
        s.endpoint.send(s.now, Length(1000)).unwrap();
        assert_eq!(s.transmits(), ". 1:1001 ack 1");
        s.receive(segment(1).ack(1).data(10).marked());
        assert_eq!(s.transmits(), ". 1001 ack 11", "and gets no echo");
    }
}

#[test]
fn a_retransmitted_syn_does_not_request_ecn_and_only_echoes() {
    // §6.1.1.1, and §6.1.1: after a SYN without the bits, the sender must not send capable data, but echoes marks.
    let mut s = Script::new(plain().with_ecn(EcnMode::Request));
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(1100), "0: SEW 0; 1000: S 0");
    s.receive(syn_ack().ece());
    s.transmits();
    s.endpoint.send(s.now, Length(1000)).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.receive(segment(1).ack(1).data(10).marked());
    assert_eq!(s.transmits(), "E 1001 ack 11");
}

#[test]
fn a_listener_accepts_ecn_if_configured() {
    let bits = |ecn, syn: SegmentBuilder| {
        let mut s = Script::new(Config { ecn, ..plain() });
        s.endpoint.listen().unwrap();
        s.receive(syn.options(mss_1000()));
        s.transmits()
    };
    for ecn in [EcnMode::Accept, EcnMode::Request] {
        assert_eq!(bits(ecn, segment(0).syn().ece().cwr()), "SE 0 ack 1");
        assert_eq!(bits(ecn, segment(0).syn()), "S 0 ack 1");
        assert_eq!(bits(ecn, segment(0).syn().ece()), "S 0 ack 1", "one bit is no question");
    }
    assert_eq!(bits(EcnMode::Never, segment(0).syn().ece().cwr()), "S 0 ack 1");
}

#[test]
fn without_ecn_the_bits_are_ignored() {
    let mut s = Script::sending(plain(), 1 << 40);
    s.transmits();
    s.receive(segment(1).ack(1001).ece());
    assert_eq!(s.endpoint.cwnd(), 11_000);
}

#[test]
fn marks_are_echoed_until_the_sender_has_reduced() {
    // §6.1.3.
    let mut s = in_flight(plain());
    s.receive(segment(1).ack(1).data(10).marked());
    assert_eq!(s.transmits(), "E 10001 ack 11");
    s.receive(segment(11).ack(1).data(10));
    assert_eq!(s.transmits(), "E 10001 ack 21");
    s.receive(segment(21).ack(1).data(10).cwr());
    assert_eq!(s.transmits(), ". 10001 ack 31");
    s.receive(segment(31).ack(1).data(10).cwr().marked());
    assert_eq!(s.transmits(), "E 10001 ack 41", "a new mark on what says that the last was heeded");
    s.receive(segment(100_000).ack(1).data(10).cwr());
    assert_eq!(s.transmits(), "E 10001 ack 41", "§6.1.5: outside the window nothing counts");
    assert_eq!(s.endpoint.stats().marks_received, 2);
}

#[test]
fn a_mark_halves_the_window_once_and_new_data_carry_cwr() {
    // §6.1.2.
    let mut s = in_flight(plain());
    s.receive(segment(1).ack(1001).ece());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (5000, 5000));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open, "nothing is resent");
    s.receive(segment(1).ack(2001).ece());
    s.receive(segment(1).ack(5001).ece());
    assert_eq!(s.transmits(), "");
    s.receive(segment(1).ack(6001).ece());
    assert_eq!(s.endpoint.cwnd(), 5000, "no growth by what reports a mark");
    assert_eq!(s.transmits(), "ECT W 10001:11001 ack 1");
    s.receive(segment(1).ack(7001));
    assert_eq!(s.transmits(), "ECT . 11001:12001 ack 1");
    // §6.1.3: the peer repeats itself until CWR arrives, and that is behind what this acknowledges.
    s.receive(segment(1).ack(10_001).ece());
    assert_eq!((s.endpoint.stats().mark_reactions, s.endpoint.cwnd()), (1, 5200));
    s.transmits();
    s.receive(segment(1).ack(11_001).ece());
    assert_eq!(s.endpoint.stats().mark_reactions, 2, "the next window's mark");
    assert_eq!(s.endpoint.cwnd(), 2500, "half of four in flight and one acknowledged");
}

#[test]
fn one_marked_segment_halves_once_however_often_it_is_echoed() {
    // §6.1.3: ECE is on every ACK until CWR has arrived, and the first new data are 10001:11001.
    let mut s = in_flight(plain());
    for ack in 1..=10 {
        s.receive(segment(1).ack(1 + 1000 * ack).ece());
        s.transmits();
    }
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (5000, 5000));
    s.receive(segment(1).ack(11_001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().mark_reactions), (5200, 1));
}

#[test]
fn after_a_loss_reno_does_not_halve_again_for_a_mark_in_the_same_window() {
    // Reno leaves recovery at the first new ACK, long before the window is over.
    let mut s = in_flight(plain().with_reno());
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    s.receive(segment(1).ack(5001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 5000));
    s.receive(segment(1).ack(6001).ece());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().mark_reactions), (5000, 0));
}

#[test]
fn a_mark_and_a_loss_in_one_window_count_once() {
    for config in [plain(), plain().with_sack()] {
        let mut s = connected_with_syn_ack(
            config.with_ecn(EcnMode::Request),
            segment(0).syn().ack(1).ece().options(mss_1000_sack()),
        );
        s.endpoint.send(s.now, Length(1 << 40)).unwrap();
        s.transmits();
        s.receive(segment(1).ack(1001).ece());
        for n in 2..5 {
            s.receive(segment(1).ack(1001).ece().sack(2001, 1000 * n + 1001));
        }
        assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
        assert_eq!(s.endpoint.ssthresh(), 5000);
        assert!(s.transmits().starts_with(". 1001:2001 ack 1"), "what is lost is resent all the same");
    }
}

#[test]
fn a_timeout_sends_cwr_and_growth_continues_despite_the_echo() {
    let mut s = in_flight(plain());
    s.run_until(500);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
    s.receive(segment(1).ack(1001).ece());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (2000, 5000), "one reaction, slow start");
    s.transmits();
    s.receive(segment(1).ack(10_001).ece());
    assert!(s.transmits().starts_with("ECT W 10001:11001"));
}

#[test]
fn a_mark_on_a_window_of_one_segment_makes_the_next_wait_for_a_timeout() {
    // §6.1.2: the timer, and no back-off.
    let mut s = in_flight(Config { initial_window: InitialWindow::Segments(1), ..plain() });
    s.receive_at(200, segment(1).ack(1001).ece());
    assert_eq!(s.endpoint.cwnd(), 1000);
    assert_eq!(s.run_until(600), "450: ECT W 1001:2001 ack 1");
    s.receive(segment(1).ack(2001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().timeouts), (2000, 0));
}

#[test]
fn a_small_window_is_halved_to_one_segment() {
    let mut s = in_flight(Config { initial_window: InitialWindow::Segments(2), ..plain() });
    s.receive(segment(1).ack(1001).ece());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (1000, 2000));
}

#[test]
fn a_mark_leaves_cubic_seven_tenths() {
    // RFC 9438 §4.6.
    let mut s = in_flight(plain().with_cubic());
    s.receive(segment(1).ack(1001).ece());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (7000, 7000));
}

#[test]
fn a_mark_and_earlier_reductions_cannot_be_undone() {
    let mut s = in_flight(plain());
    s.run_until(500);
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    s.transmits();
    s.receive(segment(1).ack(11_001).ece());
    assert!(s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::NewData).is_none());
}
