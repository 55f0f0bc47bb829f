//! Opening: as TCP does it (B9), with the parameters that both ends must know.

use super::script::{Script, ack, data, identity, offer, plain, rst, syn, syn_ack, tag};
use crate::tpa::{CloseReason, Config, DropReason, Endpoint, Event, OpenError, PathState, State};
use hopline_core::{Duration, Length};
use hopline_wire::tpa::Opening;

fn listening(config: Config) -> Script {
    let mut s = Script::new(config);
    s.endpoint.listen().unwrap();
    s
}

fn connecting_with_tag() -> Script {
    let mut s = Script::with_endpoint(Endpoint::tagged(plain(), identity(7)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "S");
    s
}

fn offer_with_tag(n: u64) -> Opening {
    Opening { tag: Some(tag(n)), ..offer() }
}

#[test]
fn three_way_handshake_active() {
    let mut s = Script::connected(plain());
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(100)), "the SYN is timed");
    assert_eq!(s.endpoint.cwnd(), 3);
    assert_eq!(s.run_until(1_000_000), "", "nothing more to say");
}

#[test]
fn the_syn_announces_our_parameters() {
    let s = Script::connecting(plain());
    let syn = s.last.unwrap();
    assert_eq!(syn.opening, Some(Opening { tag: None, mss: 1000, block_segments: 4, cwnd_max: 3 }));
    assert_eq!((syn.window, syn.tag), (65_535, None));
}

#[test]
fn three_way_handshake_passive() {
    let mut s = listening(plain());
    assert_eq!(s.exchange(syn()), "S ack -1:[] tx 0");
    assert_eq!(s.state(), State::SynReceived);
    s.receive_at(100, ack(u16::MAX, &[], 0));
    assert_eq!((s.state(), s.transmits()), (State::Established, String::new()));
    assert_eq!(s.events(), [Event::Connected]);
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(100)));
}

#[test]
fn the_first_data_complete_a_handshake_whose_ack_was_lost() {
    let mut s = listening(plain());
    s.exchange(syn());
    assert_eq!(s.exchange(data(0, 0).len(300).fin()), "ack 0:[0] tx 0");
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.events(), [Event::Connected, Event::Readable, Event::PeerClosed]);
    assert_eq!(s.read_all(), 300);
}

#[test]
fn a_lost_syn_is_resent_with_doubled_timeouts_and_gives_no_sample() {
    let mut s = Script::connecting(plain());
    assert_eq!(s.run_until(7_000), "1000: S; 3000: S; 7000: S");
    s.receive_at(7_100, syn_ack());
    assert_eq!(s.transmits(), "ack -1:[] tx 0");
    assert_eq!((s.endpoint.srtt(), s.endpoint.rto()), (None, Duration::from_secs(1)));
}

#[test]
fn a_syn_that_is_never_answered_times_out() {
    let mut s = Script::connecting(Config { syn_retries: Some(2), ..plain() });
    assert_eq!(s.run_until(100_000), "1000: S; 3000: S");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
    assert_eq!(s.endpoint.stats().segments_received, 0);
}

#[test]
fn a_lost_syn_ack_is_retransmitted_by_timer_and_on_request() {
    let mut s = listening(Config { syn_retries: Some(1), ..plain() });
    s.exchange(syn());
    assert_eq!(s.run_until(1_000), "1000: S ack -1:[] tx 0");
    assert_eq!(s.exchange(syn()), "S ack -1:[] tx 0");
    assert_eq!(s.run_until(3_500), "", "the answer on request moved the timer of none");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn a_syn_ack_that_comes_again_is_acknowledged_again() {
    let mut s = Script::connected(plain());
    assert_eq!(s.exchange(syn_ack()), "ack -1:[] tx 0");
    assert_eq!(s.events(), []);
}

#[test]
fn both_may_open_at_once() {
    // RFC 9293 §3.5, figure 7.
    let mut s = Script::connecting(plain());
    s.receive_at(50, syn());
    assert_eq!((s.transmits().as_str(), s.state()), ("S ack -1:[] tx 0", State::SynReceived));
    s.receive_at(100, syn_ack());
    assert_eq!((s.transmits().as_str(), s.state()), ("ack -1:[] tx 0", State::Established));
    assert_eq!(s.events(), [Event::Connected]);
}

#[test]
fn a_reset_refuses() {
    let mut s = Script::connecting(plain());
    s.receive_at(100, rst(0));
    assert_eq!(s.events(), [Event::Closed(CloseReason::Refused)]);
    assert_eq!(s.run_until(1_000_000), "");
}

#[test]
fn segments_and_blocks_have_the_negotiated_size() {
    let mut s = Script::connecting(plain());
    s.receive(syn_ack().opening(Opening { mss: 500, block_segments: 2, ..offer() }));
    s.transmits();
    assert_eq!(s.endpoint.effective_mss(), 500);
    s.write_and_flush(1500);
    assert_eq!(s.transmits(), "0:0 (500) tx 0; 0:1. (500) tx 1");
    assert_eq!(s.exchange(ack(0, &[0, 1], 1)), "1:0. (500) tx 0");
    // A peer that takes less than a byte is asked for the impossible, not divided by.
    let mut s = Script::connecting(plain());
    s.receive(syn_ack().opening(Opening { mss: 0, ..offer() }));
    assert_eq!(s.endpoint.effective_mss(), 1);
}

#[test]
fn data_written_early_are_sent_after_the_handshake() {
    let mut s = Script::connecting(plain());
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.state(), State::SynSent);
    s.receive_at(100, syn_ack());
    assert_eq!(s.transmits(), "F 0:0. (1000) tx 0");
    assert_eq!(s.state(), State::FinWait1);
}

#[test]
fn an_endpoint_lives_for_one_connection() {
    let mut s = Script::connecting(plain());
    assert_eq!(s.endpoint.connect(s.now), Err(OpenError::AlreadyOpened));
    assert_eq!(s.endpoint.listen(), Err(OpenError::AlreadyOpened));
    s.endpoint.close(s.now).unwrap();
    assert_eq!((s.state(), s.events()), (State::Closed, vec![Event::Closed(CloseReason::Finished)]));
    assert_eq!(s.endpoint.connect(s.now), Err(OpenError::AlreadyOpened));
}

#[test]
fn a_listening_endpoint_accepts_only_a_syn() {
    let mut s = listening(plain());
    for segment in [data(0, 0), ack(0, &[], 0), rst(0), syn_ack()] {
        assert_eq!(s.exchange(segment), "");
    }
    assert_eq!((s.state(), s.drops(DropReason::Unexpected)), (State::Listen, 4));
}

#[test]
fn with_tags_the_parameters_are_repeated_until_the_peer_answers() {
    let mut s = connecting_with_tag();
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    assert_eq!(s.transmits(), "ack -1:[] tx 0");
    let first = s.last.unwrap();
    assert_eq!((first.tag, first.opening.unwrap().tag), (Some(tag(8)), Some(tag(7))));
    assert_eq!(s.run_until(1_000), "400: ack -1:[] tx 0; 1000: ack -1:[] tx 0");
    assert!(s.last.unwrap().opening.is_some());
    s.write_and_flush(1000);
    assert_eq!(s.transmits(), "0:0. (1000) tx 0");
    assert!(s.last.unwrap().opening.is_some(), "data too: the peer may know of nothing yet");
    s.receive(ack(0, &[0], 0).with_proof(7));
    s.write_and_flush(1000);
    assert_eq!(s.transmits(), "1:0. (1000) tx 0");
    let later = s.last.unwrap();
    assert_eq!((later.tag, later.opening), (Some(tag(8)), None));
}

#[test]
fn an_unconfirmed_opening_does_not_back_off_later_timeouts() {
    let mut s = connecting_with_tag();
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    s.transmits();
    s.run_until(1_000);
    assert_eq!(s.endpoint.backoff(), 4);
    s.receive(ack(u16::MAX, &[], 0).tag(tag(7)));
    assert_eq!((s.endpoint.backoff(), s.endpoint.rto()), (1, Duration::from_millis(300)));
}

#[test]
fn after_an_answer_the_silence_limit_applies_instead_of_retries() {
    let config = Config { syn_retries: Some(1), silence_limit: Some(Duration::from_secs(60)), ..plain() };
    let mut s = Script::with_endpoint(Endpoint::tagged(config, identity(7)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    s.transmits();
    assert!(s.run_until(60_000).starts_with("400: ack -1:[] tx 0; 1000: ack -1:[] tx 0; 2200:"));
    assert_eq!((s.state(), s.events()), (State::Established, vec![Event::Connected]));
    s.run_until(60_100);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn repeated_parameters_are_acknowledged() {
    let mut s = Script::with_endpoint(Endpoint::tagged(plain(), identity(7)).unwrap());
    s.endpoint.listen().unwrap();
    assert_eq!(s.exchange(syn().opening(offer_with_tag(8))), "S ack -1:[] tx 0");
    let again = ack(u16::MAX, &[], 0).opening(offer_with_tag(8)).tag(tag(7));
    assert_eq!(s.exchange(again), "ack -1:[] tx 0");
    assert_eq!(s.last.unwrap().opening, None);
    s.receive_at(300, again);
    assert_eq!(s.transmits(), "ack -1:[] tx 0", "the answer was lost");
}

#[test]
fn a_forged_syn_does_not_hijack_an_opening() {
    // A SYN carries no tag, since its sender has not received one. The called peer can still answer.
    let mut s = connecting_with_tag();
    s.receive_at(50, syn().opening(offer_with_tag(666)));
    s.transmits();
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    assert_eq!(s.transmits(), "ack -1:[] tx 0");
    assert_eq!((s.state(), s.endpoint.peer_tag()), (State::Established, Some(tag(8))));
    assert!(s.last.unwrap().opening.is_some(), "it may keep no state until it hears of us");
}

#[test]
fn a_forged_syn_does_not_stop_the_opening() {
    let mut s = connecting_with_tag();
    s.receive_at(50, syn().opening(offer_with_tag(666)));
    assert_eq!(s.transmits(), "S ack -1:[] tx 0");
    assert_eq!(s.run_until(1_100), "1050: S ack -1:[] tx 0; S");
    let call = s.last.unwrap();
    assert_eq!((call.ack, call.tag), (None, None), "as to someone who has not heard of us");
}

#[test]
fn a_peer_cannot_request_tiny_segments() {
    // Every host takes 576 bytes of IPv4 (RFC 1122 §3.3.2): 508 of data, with our longest headers.
    for (asked, sent) in [(0, 508), (1, 508), (508, 508), (700, 700), (1000, 1000), (1001, 1000)] {
        let mut s = connecting_with_tag();
        s.receive_at(100, syn_ack().opening(Opening { mss: asked, ..offer_with_tag(8) }).tag(tag(7)));
        assert_eq!(s.endpoint.effective_mss(), sent, "{asked}");
    }
    let tiny = Config { mss: 100, receive_buffer: 10_000, ..plain() };
    let mut s = Script::with_endpoint(Endpoint::tagged(tiny, identity(7)).unwrap());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    assert_eq!(s.last.unwrap().opening.unwrap().mss, 508, "what is taken, though less is sent");
}

#[test]
fn a_new_path_mss_applies_from_the_next_block() {
    let mut s = connecting_with_tag();
    s.endpoint.set_path_mss(600);
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    s.write_and_flush(1200);
    assert_eq!(s.transmits(), "0:0 (600) tx 0; 0:1. (600) tx 1");
    s.endpoint.set_path_mss(9000);
    s.write_and_flush(1500);
    s.receive(ack(0, &[0, 1], 1).with_proof(7));
    assert_eq!(s.transmits(), "1:0 (1000) tx 0; 1:1. (500) tx 1");
    s.endpoint.set_path_mss(1);
    assert_eq!(s.endpoint.effective_mss(), 508);
}

#[test]
fn a_confirmation_does_not_end_the_backoff_of_a_failed_path() {
    let mut s = connecting_with_tag();
    s.receive_at(100, syn_ack().opening(offer_with_tag(8)).tag(tag(7)));
    s.write_and_flush(1000);
    s.run_until(2_000);
    let backoff = s.endpoint.backoff();
    assert!(backoff > 1 && s.path() != PathState::Normal, "{backoff}");
    // It has heard of us, but of no data.
    s.receive(ack(u16::MAX, &[], 0).tag(tag(7)));
    assert_eq!(s.endpoint.backoff(), backoff);
    s.receive(ack(0, &[0], 0).with_proof(7));
    let latest = s.endpoint.backoff();
    assert!(latest == backoff || latest == 1);
}

#[test]
fn the_early_syn_retransmission_counts_as_no_retry() {
    let config = Config { syn_rto: Some(Duration::from_millis(50)), syn_retries: Some(1), ..plain() };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "S");
    // The RTO before the first sample is a second.
    assert_eq!(s.run_until(5_000), "50: S; 1050: S");
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.run_until(60);
    s.receive_at(80, syn_ack());
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(80)), "from the first: 50 ms too much at most");
}
