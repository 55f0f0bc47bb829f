//! One segment of an attacker that guesses the sequence number but not the acknowledgment number changes nothing
//! (RFC 5961 §5.2, §7).

use super::script::{LOCAL, Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{Config, DropReason, DsackReports, EcnMode, Endpoint, Event, OptionOffer, Ports, State};
use hopline_core::{Instant, Length, Seq32, StateMachine};
use hopline_wire::tcp::{Options, Timestamps};

/// Acknowledges what was never sent.
const FORGED_ACK: i64 = 9_999;

fn with_timestamps() -> Script {
    let mut s = Script::new(Config { timestamps: OptionOffer::Offered, ..plain() });
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    let ts = Some(Timestamps { value: 100, echo: s.peer.iss.0 });
    s.receive(segment(0).syn().ack(1).options(Options { timestamps: ts, ..mss_1000() }));
    s.transmits();
    s
}

fn echo(s: &Script) -> u32 {
    s.last.as_ref().unwrap().options.timestamps.unwrap().echo
}

#[test]
fn a_forged_timestamp_does_not_stop_the_connection() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(FORGED_ACK).ts(200_000, 0));
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(echo(&s), 100);
    s.receive(segment(1).ack(1).data(1000).ts(201, 0));
    assert_eq!((s.transmits(), s.read_all(), echo(&s)), (". 1 ack 1001".into(), 1000, 201));
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OldTimestamp), 0);
}

#[test]
fn a_forged_timestamp_beyond_the_window_is_not_echoed() {
    let mut s = with_timestamps();
    s.receive(segment(70_000).ack(1).data(10).ts(200_000, 0));
    s.transmits();
    s.receive(segment(1).ack(1).data(10).ts(201, 0));
    assert_eq!((s.transmits(), echo(&s)), (". 1 ack 11".into(), 201));
}

#[test]
fn an_ack_from_before_the_connection_is_challenged() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(0).data(1000).ts(200_000, 0));
    assert_eq!((s.transmits(), s.read_all(), echo(&s)), (". 1 ack 1".into(), 0, 100));
    assert_eq!(s.endpoint.stats().drops.count(DropReason::BadAck), 1);
}

#[test]
fn forged_data_are_neither_kept_nor_reported_as_duplicates() {
    let config = Config { dsack: DsackReports::On, ..plain().with_sack() };
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    s.receive(segment(501).ack(FORGED_ACK).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001", "overlaps the window from below");
    s.receive(segment(1).ack(FORGED_ACK).data(500));
    assert_eq!(s.transmits(), ". 1 ack 1001", "lies below the window");
    s.receive(segment(1).data(500));
    assert_eq!(s.transmits(), ". 1 ack 1001", "acknowledges nothing");
    assert_eq!((s.read_all(), s.endpoint.stats().duplicates_received), (1000, 0));
}

#[test]
fn forged_ecn_and_feedback_are_ignored() {
    let mut s = Script::new(Config { ecn: EcnMode::Request, ..plain() });
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(0).syn().ack(1).ece().options(mss_1000()));
    s.transmits();
    s.endpoint.send(s.now, Length(4000)).unwrap();
    s.transmits();
    let cwnd = s.endpoint.cwnd();
    s.receive(segment(1).ack(FORGED_ACK).data(10).marked().ece());
    s.transmits();
    assert!(!s.last.as_ref().unwrap().flags.contains(hopline_wire::tcp::Flags::ECE));
    assert_eq!((s.endpoint.stats().marks_received, s.endpoint.cwnd()), (0, cwnd));
}

#[test]
fn a_forged_window_is_ignored() {
    let mut s = Script::connected(plain());
    let window = s.endpoint.peer_window();
    s.receive(segment(1).ack(FORGED_ACK).win(0));
    s.receive(segment(1).ack(FORGED_ACK).data(10).win(1));
    s.transmits();
    assert_eq!(s.endpoint.peer_window(), window);
}

#[test]
fn data_beyond_the_window_with_a_forged_ack_get_rate_limited_challenge_acks() {
    let mut s = Script::connected(plain());
    for _ in 0..5 {
        s.receive(segment(1).ack(FORGED_ACK).data(65_000));
    }
    assert_eq!(s.transmits(), ". 1 ack 1");
    s.receive(segment(1).ack(FORGED_ACK).data(65_000));
    assert_eq!(s.transmits(), "");
}

#[test]
fn a_syn_anywhere_is_challenged_at_a_bounded_rate() {
    // RFC 5961 §4.2: "irrespective of the sequence number".
    let mut s = with_timestamps();
    for at in [1, 500, 70_000, -1_000_000] {
        s.receive(segment(at).syn());
        s.receive(segment(at).syn().ack(1).ts(200_000, 0).data(10));
    }
    assert_eq!((s.transmits(), echo(&s)), (". 1 ack 1".into(), 100));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().challenge_acks, 1);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::UnexpectedSyn), 8);
}

#[test]
fn a_reset_at_the_right_edge_of_the_window_is_dropped_silently() {
    let mut s = Script::connected(plain());
    let edge = 1 + i64::from(s.endpoint.config().receive_buffer);
    s.receive(segment(edge).rst());
    s.receive(segment(edge).ack(1).rst());
    s.receive(segment(-9).rst().data(20));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OutsideWindow), 3);
    s.receive(segment(edge - 1).rst());
    assert_eq!(s.transmits(), ". 1 ack 1");
}

#[test]
fn a_reset_at_a_closed_window_counts_if_it_is_exact() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).data(60_000));
    assert_eq!(s.transmits(), ". 1 ack 60001");
    s.receive(segment(60_002).rst());
    assert_eq!(s.state(), State::Established);
    s.receive(segment(60_001).rst());
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn time_wait_is_not_prolonged_by_a_forged_fin() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).ack(2).fin());
    s.transmits();
    let ends = s.endpoint.poll_timeout();
    for forged in [segment(-500).ack(2).fin(), segment(1).ack(FORGED_ACK).fin(), segment(1).fin()] {
        s.now += hopline_core::Duration::from_millis(10);
        s.receive(forged);
        s.transmits();
        assert_eq!(s.endpoint.poll_timeout(), ends);
    }
}

#[test]
fn a_wildcard_listener_is_a_wildcard_again_after_a_reset() {
    let mut s = Script::new(plain());
    s.endpoint = Endpoint::new(plain(), Ports { local: LOCAL, remote: 0 }, s.peer.iss).unwrap();
    s.endpoint.listen().unwrap();
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).rst());
    assert_eq!((s.state(), s.endpoint.ports().remote), (State::Listen, 0));
    s.peer.irs = Seq32(77);
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).ack(1));
    assert_eq!((s.state(), s.events()), (State::Established, vec![Event::Connected]));
}
