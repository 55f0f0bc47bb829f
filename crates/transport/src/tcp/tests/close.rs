//! RFC 9293 §3.6 and §3.10.4: closing.

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{CloseError, CloseReason, DropReason, Event, SendError, State};
use hopline_core::{Length, StateMachine};

#[test]
fn normal_close_from_our_side() {
    // RFC 9293 §3.6, figure 12, TCP peer A.
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 1 ack 1");
    assert_eq!(s.state(), State::FinWait1);
    s.receive_at(200, segment(1).ack(2));
    assert_eq!(s.state(), State::FinWait2);
    assert_eq!(s.endpoint.poll_timeout(), None);
    s.receive_at(300, segment(1).ack(2).fin());
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(s.transmits(), ". 2 ack 2");
    assert_eq!(s.events(), [Event::PeerClosed]);
    assert_eq!(s.run_until(60_299), "");
    assert_eq!(s.state(), State::TimeWait);
    s.run_until(60_300);
    assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
}

#[test]
fn normal_close_from_the_peers_side() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).fin());
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.transmits(), ". 1 ack 2");
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.state(), State::LastAck);
    assert_eq!(s.transmits(), "F 1 ack 2");
    s.receive_at(200, segment(2).ack(2));
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.events(), [Event::PeerClosed, Event::Closed(CloseReason::Finished)]);
}

#[test]
fn simultaneous_close() {
    // RFC 9293 §3.6, figure 13.
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 1 ack 1");
    s.receive(segment(1).ack(1).fin());
    assert_eq!(s.state(), State::Closing);
    assert_eq!(s.transmits(), ". 2 ack 2");
    s.receive_at(200, segment(2).ack(2));
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn fin_and_its_ack_in_one_segment_lead_straight_to_time_wait() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).ack(2).fin());
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(s.transmits(), ". 2 ack 2");
}

#[test]
fn fin_goes_with_the_last_data() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(1500)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), ". 1:1001 ack 1; F 1001:1501 ack 1");
    s.receive_at(200, segment(1).ack(1502));
    assert_eq!(s.state(), State::FinWait2);
    assert_eq!(s.endpoint.stats().bytes_acked, 1500, "the FIN is no byte");
}

#[test]
fn half_close_data_of_the_peer_still_arrives() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).ack(2));
    s.receive(segment(1).ack(2).data(700));
    assert_eq!(s.transmits(), ". 2 ack 701");
    assert_eq!(s.read_all(), 700);
    s.receive(segment(701).ack(2).data(100).fin());
    assert_eq!(s.transmits(), ". 2 ack 802");
    assert_eq!(s.read_all(), 100);
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn half_close_by_the_peer_we_still_send() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).fin());
    s.transmits();
    s.endpoint.send(s.now, Length(500)).unwrap();
    assert_eq!(s.transmits(), ". 1:501 ack 2");
    s.receive_at(200, segment(2).ack(501));
    assert_eq!(s.state(), State::CloseWait);
}

#[test]
fn a_lost_fin_is_resent() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.run_until(1200), "100: F 1 ack 1; 400: F 1 ack 1; 1000: F 1 ack 1");
}

#[test]
fn a_fin_out_of_order_waits_for_the_data_before_it() {
    let mut s = Script::connected(plain());
    s.receive(segment(501).ack(1).data(100).fin());
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.state(), State::Established);
    s.receive(segment(1).ack(1).data(500));
    assert_eq!(s.transmits(), ". 1 ack 602");
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.read_all(), 600);
}

#[test]
fn time_wait_answers_a_resent_fin_and_starts_over() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive(segment(1).ack(2).fin());
    s.transmits();
    s.receive_at(30_000, segment(1).ack(2).fin());
    assert_eq!(s.transmits(), ". 2 ack 2");
    s.run_until(89_999);
    assert_eq!(s.state(), State::TimeWait);
    s.run_until(90_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn close_takes_effect_once() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.endpoint.close(s.now), Err(CloseError::NotOpen));
    assert_eq!(s.endpoint.send(s.now, Length(1)), Err(SendError::NotOpen));
}

#[test]
fn closing_before_the_handshake_with_data_waits_for_both() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.endpoint.send(s.now, Length(100)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "S 0");
    s.receive(segment(0).syn().ack(1).options(mss_1000()));
    assert_eq!(s.state(), State::FinWait1);
    assert_eq!(s.transmits(), "F 1:101 ack 1");
}

#[test]
fn closing_before_the_handshake_without_data_ends_at_once() {
    for listen in [true, false] {
        let mut s = Script::new(plain());
        if listen {
            s.endpoint.listen().unwrap()
        } else {
            s.endpoint.connect(s.now).unwrap()
        }
        s.endpoint.close(s.now).unwrap();
        assert_eq!(s.transmits(), "");
        assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
        assert_eq!(s.endpoint.poll_timeout(), None);
    }
}

#[test]
fn data_after_the_peers_fin_is_dropped() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).fin());
    s.transmits();
    s.receive(segment(2).ack(1).data(100));
    assert_eq!(s.endpoint.stats().drops.count(DropReason::AfterClose), 1);
    assert_eq!(s.endpoint.stats().bytes_received, 0);
}

#[test]
fn unsent_data_are_sent_after_both_ends_closed() {
    let mut s = Script::connected(plain());
    s.peer.window = 2000;
    s.receive(segment(1).ack(1).fin());
    s.endpoint.send(s.now, Length(3000)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.state(), State::LastAck);
    assert_eq!(s.transmits(), ". 1:1001 ack 2; . 1001:2001 ack 2");
    s.receive_at(200, segment(2).ack(2001));
    assert_eq!(s.transmits(), "F 2001:3001 ack 2");
    s.receive_at(300, segment(2).ack(3002));
    assert_eq!(s.state(), State::Closed);
}
