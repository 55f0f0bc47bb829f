//! RFC 9293 §3.6 and §3.10.4: closing.

use super::script::{Script, mss_1000, plain, seg};
use crate::tcp::{CloseError, CloseReason, DropReason, Event, SendError, State};
use hopline_core::{Length, Machine};

#[test]
fn normal_close_from_our_side() {
    // RFC 9293 §3.6, figure 12, TCP peer A.
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.says(), "F 1 ack 1");
    assert_eq!(s.state(), State::FinWait1);
    s.hears_at(200, seg(1).ack(2));
    assert_eq!(s.state(), State::FinWait2);
    assert_eq!(s.endpoint.poll_timeout(), None);
    s.hears_at(300, seg(1).ack(2).fin());
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(s.says(), ". 2 ack 2");
    assert_eq!(s.events(), [Event::PeerClosed]);
    assert_eq!(s.runs_to(60_299), "");
    assert_eq!(s.state(), State::TimeWait);
    s.runs_to(60_300);
    assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
}

#[test]
fn normal_close_from_the_peers_side() {
    let mut s = Script::connected(plain());
    s.hears(seg(1).ack(1).fin());
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.says(), ". 1 ack 2");
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.state(), State::LastAck);
    assert_eq!(s.says(), "F 1 ack 2");
    s.hears_at(200, seg(2).ack(2));
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.events(), [Event::PeerClosed, Event::Closed(CloseReason::Finished)]);
}

#[test]
fn simultaneous_close() {
    // RFC 9293 §3.6, figure 13.
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.says(), "F 1 ack 1");
    s.hears(seg(1).ack(1).fin());
    assert_eq!(s.state(), State::Closing);
    assert_eq!(s.says(), ". 2 ack 2");
    s.hears_at(200, seg(2).ack(2));
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn fin_and_its_ack_in_one_segment_lead_straight_to_time_wait() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.says();
    s.hears(seg(1).ack(2).fin());
    assert_eq!(s.state(), State::TimeWait);
    assert_eq!(s.says(), ". 2 ack 2");
}

#[test]
fn fin_goes_with_the_last_data() {
    let mut s = Script::connected(plain());
    s.endpoint.send(s.now, Length(1500)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.says(), ". 1:1001 ack 1; F 1001:1501 ack 1");
    s.hears_at(200, seg(1).ack(1502));
    assert_eq!(s.state(), State::FinWait2);
    assert_eq!(s.endpoint.stats().bytes_acked, 1500, "the FIN is no byte");
}

#[test]
fn half_close_data_of_the_peer_still_arrives() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.says();
    s.hears(seg(1).ack(2));
    s.hears(seg(1).ack(2).data(700));
    assert_eq!(s.says(), ". 2 ack 701");
    assert_eq!(s.reads(), 700);
    s.hears(seg(701).ack(2).data(100).fin());
    assert_eq!(s.says(), ". 2 ack 802");
    assert_eq!(s.reads(), 100);
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn half_close_the_other_way_we_still_send() {
    let mut s = Script::connected(plain());
    s.hears(seg(1).ack(1).fin());
    s.says();
    s.endpoint.send(s.now, Length(500)).unwrap();
    assert_eq!(s.says(), ". 1:501 ack 2");
    s.hears_at(200, seg(2).ack(501));
    assert_eq!(s.state(), State::CloseWait);
}

#[test]
fn a_lost_fin_is_resent() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.runs_to(1200), "100: F 1 ack 1; 400: F 1 ack 1; 1000: F 1 ack 1");
}

#[test]
fn a_fin_out_of_order_waits_for_the_data_before_it() {
    let mut s = Script::connected(plain());
    s.hears(seg(501).ack(1).data(100).fin());
    assert_eq!(s.says(), ". 1 ack 1");
    assert_eq!(s.state(), State::Established);
    s.hears(seg(1).ack(1).data(500));
    assert_eq!(s.says(), ". 1 ack 602");
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.reads(), 600);
}

#[test]
fn time_wait_answers_a_resent_fin_and_starts_over() {
    let mut s = Script::connected(plain());
    s.endpoint.close(s.now).unwrap();
    s.says();
    s.hears(seg(1).ack(2).fin());
    s.says();
    s.hears_at(30_000, seg(1).ack(2).fin());
    assert_eq!(s.says(), ". 2 ack 2");
    s.runs_to(89_999);
    assert_eq!(s.state(), State::TimeWait);
    s.runs_to(90_000);
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn closing_takes_place_once() {
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
    assert_eq!(s.says(), "S 0");
    s.hears(seg(0).syn().ack(1).options(mss_1000()));
    assert_eq!(s.state(), State::FinWait1);
    assert_eq!(s.says(), "F 1:101 ack 1");
}

#[test]
fn closing_before_the_handshake_without_data_just_ends() {
    for listen in [true, false] {
        let mut s = Script::new(plain());
        if listen {
            s.endpoint.listen().unwrap()
        } else {
            s.endpoint.connect(s.now).unwrap()
        }
        s.endpoint.close(s.now).unwrap();
        assert_eq!(s.says(), "");
        assert_eq!(s.events(), [Event::Closed(CloseReason::Finished)]);
        assert_eq!(s.endpoint.poll_timeout(), None);
    }
}

#[test]
fn data_after_the_peers_fin_is_dropped() {
    let mut s = Script::connected(plain());
    s.hears(seg(1).ack(1).fin());
    s.says();
    s.hears(seg(2).ack(1).data(100));
    assert_eq!(s.endpoint.stats().drops.count(DropReason::AfterClose), 1);
    assert_eq!(s.endpoint.stats().bytes_received, 0);
}

#[test]
fn the_peers_fin_and_close_of_the_user_with_data_left_go_on_sending() {
    let mut s = Script::connected(plain());
    s.peer.window = 2000;
    s.hears(seg(1).ack(1).fin());
    s.endpoint.send(s.now, Length(3000)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.state(), State::LastAck);
    assert_eq!(s.says(), ". 1:1001 ack 2; . 1001:2001 ack 2");
    s.hears_at(200, seg(2).ack(2001));
    assert_eq!(s.says(), "F 2001:3001 ack 2");
    s.hears_at(300, seg(2).ack(3002));
    assert_eq!(s.state(), State::Closed);
}
