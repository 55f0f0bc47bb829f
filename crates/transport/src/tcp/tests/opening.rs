//! RFC 9293 §3.5 and §3.10.1–3.10.7.3: opening.

use super::script::{LOCAL, REMOTE, Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{CloseReason, Config, DropReason, Endpoint, Event, OpenError, Ports, State};
use hopline_core::{Duration, Instant, Length, Seq32, StateMachine};
use hopline_wire::tcp::{Options, Timestamps};

fn listening(config: Config) -> Script {
    let mut s = Script::new(config);
    s.endpoint.listen().unwrap();
    s
}

#[test]
fn active_open_offers_every_option() {
    let mut s = Script::new(Config::modern());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.state(), State::SynSent);
    assert_eq!(s.transmits(), "S 0");
    let syn = s.last.unwrap();
    assert_eq!(syn.options.mss, Some(1460));
    assert_eq!(syn.options.window_scale, Some(7), "4 MiB need 7 bits more than 16");
    assert!(syn.options.sack_permitted);
    assert_eq!(syn.options.timestamps.map(|t| t.echo), Some(0));
    assert_eq!(syn.window, 65_535, "the window of a SYN is not scaled");
}

#[test]
fn three_way_handshake_active() {
    let s = Script::connected(plain());
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(100)), "the SYN is timed");
}

#[test]
fn three_way_handshake_passive() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(mss_1000()));
    assert_eq!(s.state(), State::SynReceived);
    assert_eq!(s.transmits(), "S 0 ack 1");
    let answer = s.last.unwrap().options;
    assert_eq!((answer.mss, answer.window_scale, answer.timestamps), (Some(1000), None, None));
    s.receive_at(100, segment(1).ack(1));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.events(), [Event::Connected]);
    assert_eq!(s.transmits(), "");
}

#[test]
fn the_ack_of_the_handshake_may_carry_data_and_fin() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).ack(1).data(300).fin());
    assert_eq!(s.state(), State::CloseWait);
    assert_eq!(s.transmits(), ". 1 ack 302");
    assert_eq!(s.events(), [Event::Connected, Event::Readable, Event::PeerClosed]);
    assert_eq!(s.read_all(), 300);
}

#[test]
fn simultaneous_open() {
    // RFC 9293 §3.5, figure 7.
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "S 0");
    s.receive_at(50, segment(0).syn().options(mss_1000()));
    assert_eq!(s.state(), State::SynReceived);
    assert_eq!(s.transmits(), "S 0 ack 1");
    s.receive_at(100, segment(0).syn().ack(1).options(mss_1000()));
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.events(), [Event::Connected]);
}

#[test]
fn options_are_used_only_if_both_offer_them() {
    let mut config = Config::modern();
    config.mss = 1000;
    let mut s = listening(config);
    s.receive(segment(0).syn().options(Options { sack_permitted: true, ..Options::default() }));
    s.transmits();
    let answer = s.last.unwrap().options;
    assert!(answer.sack_permitted);
    assert_eq!((answer.window_scale, answer.timestamps), (None, None));
    s.receive(segment(1).ack(1));
    assert_eq!(s.endpoint.effective_mss(), 536, "RFC 9293 §3.7.1: the default MSS");
}

#[test]
fn timestamps_shorten_the_segments() {
    let mut config = Config::modern();
    config.mss = 1000;
    let mut s = listening(config);
    let ts = Some(Timestamps { value: 7, echo: 0 });
    s.receive(segment(0).syn().options(Options { timestamps: ts, ..mss_1000() }));
    s.transmits();
    assert_eq!(s.last.unwrap().options.timestamps.map(|t| t.echo), Some(7));
    assert_eq!(s.endpoint.effective_mss(), 988);
}

#[test]
fn a_tiny_mss_is_raised_to_what_options_leave_room_for() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(Options { mss: Some(0), ..Options::default() }));
    assert_eq!(s.endpoint.effective_mss(), 48);
}

#[test]
fn a_lost_syn_is_resent_with_doubled_timeouts() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(16_000), "0: S 0; 1000: S 0; 3000: S 0; 7000: S 0; 15000: S 0");
}

#[test]
fn a_syn_that_is_never_answered_times_out() {
    let mut config = plain();
    config.syn_retries = Some(2);
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(60_000), "0: S 0; 1000: S 0; 3000: S 0");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.endpoint.poll_timeout(), None);
}

#[test]
fn after_a_lost_syn_the_window_is_one_segment_and_the_rto_three_seconds() {
    // RFC 5681 §3.1, RFC 6298 §5.7.
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.run_until(1100);
    s.receive(segment(0).syn().ack(1).options(mss_1000()));
    assert_eq!(s.endpoint.cwnd(), 1000);
    assert_eq!(s.endpoint.srtt(), None, "Karn: a resent SYN is not timed");
    assert_eq!(s.endpoint.rto(), Duration::from_secs(3));
}

#[test]
fn a_lost_syn_ack_is_resent_by_timer_and_on_a_second_syn() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(mss_1000()));
    assert_eq!(s.run_until(1500), "0: S 0 ack 1; 1000: S 0 ack 1");
    s.receive(segment(0).syn().options(mss_1000()));
    assert_eq!(s.transmits(), "S 0 ack 1");
    s.receive_at(1600, segment(1).ack(1));
    assert_eq!(s.state(), State::Established);
}

#[test]
fn a_refused_connection() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(0).rst().ack(1));
    assert_eq!(s.events(), [Event::Closed(CloseReason::Refused)]);
}

#[test]
fn in_syn_sent_a_reset_needs_a_good_ack() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(0).rst());
    s.receive(segment(0).rst().ack(2));
    assert_eq!(s.state(), State::SynSent);
    assert_eq!(s.transmits(), "", "a reset is never answered");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::BadReset), 1);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::BadAck), 1);
}

#[test]
fn in_syn_sent_a_bad_ack_is_reset() {
    // RFC 9293 §3.5, figure 8: an old half-open connection.
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.receive(segment(300).ack(100));
    assert_eq!(s.transmits(), "R 100");
    assert_eq!(s.state(), State::SynSent);
}

#[test]
fn in_listen_an_ack_is_reset_and_a_reset_ignored() {
    let mut s = listening(plain());
    s.receive(segment(5).ack(77));
    assert_eq!(s.transmits(), "R 77");
    s.receive(segment(5).rst());
    s.receive(segment(5).data(10));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.state(), State::Listen);
    assert_eq!(s.endpoint.stats().drops.count(DropReason::Unexpected), 3);
}

#[test]
fn in_syn_received_a_reset_returns_a_listener_to_listen() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).rst());
    assert_eq!(s.state(), State::Listen);
    assert_eq!(s.endpoint.poll_timeout(), None);
    s.peer.irs = Seq32(99);
    s.receive(segment(0).syn().options(mss_1000_sack()));
    assert_eq!(s.transmits(), "S 0 ack 1");
    s.receive(segment(1).ack(1));
    assert_eq!(s.state(), State::Established);
}

#[test]
fn a_reset_handshake_leaves_no_window_scale_behind() {
    let mut s = listening(Config { window_scale: crate::tcp::OptionOffer::Offered, ..plain() });
    s.receive(segment(0).syn().options(Options { window_scale: Some(7), ..mss_1000() }));
    s.transmits();
    s.receive(segment(1).rst());
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).ack(1).win(500));
    assert_eq!((s.state(), s.endpoint.peer_window()), (State::Established, 500));
}

#[test]
fn in_syn_received_a_bad_ack_is_reset() {
    let mut s = listening(plain());
    s.receive(segment(0).syn().options(mss_1000()));
    s.transmits();
    s.receive(segment(1).ack(5));
    assert_eq!(s.transmits(), "R 5");
    assert_eq!(s.state(), State::SynReceived);
}

#[test]
fn a_closed_endpoint_resets_everything_but_resets() {
    let mut s = Script::new(plain());
    s.receive(segment(10).ack(20).data(5));
    assert_eq!(s.transmits(), "R 20");
    s.receive(segment(10).syn());
    assert_eq!(
        s.transmits(),
        "R 1502 ack 11".replace("1502", &(0u32.wrapping_sub(s.peer.iss.0) as i32).to_string())
    );
    s.receive(segment(10).rst());
    assert_eq!(s.transmits(), "");
}

#[test]
fn an_endpoint_opens_once() {
    let mut s = listening(plain());
    assert_eq!(s.endpoint.connect(Instant::ZERO), Err(OpenError::AlreadyOpened));
    let unknown = Ports { local: LOCAL, remote: 0 };
    let mut e = Endpoint::<Length>::new(plain(), unknown, Seq32(0)).unwrap();
    assert_eq!(e.connect(Instant::ZERO), Err(OpenError::NoRemotePort));
}

#[test]
fn a_listener_without_remote_port_learns_it_from_the_syn() {
    let mut s = Script::new(plain());
    s.endpoint = Endpoint::new(plain(), Ports { local: LOCAL, remote: 0 }, s.peer.iss).unwrap();
    s.endpoint.listen().unwrap();
    s.receive(segment(3).ack(4));
    assert_eq!(s.transmits(), "R 4", "and not from anything else");
    assert_eq!(s.endpoint.ports().remote, 0);
    s.receive(segment(0).syn().options(mss_1000()));
    assert_eq!(s.endpoint.ports().remote, REMOTE);
}

#[test]
fn data_written_early_are_sent_after_the_handshake() {
    let mut s = Script::new(plain());
    s.endpoint.connect(s.now).unwrap();
    s.endpoint.send(s.now, Length(1500)).unwrap();
    assert_eq!(s.transmits(), "S 0");
    s.receive_at(100, segment(0).syn().ack(1).options(mss_1000()));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:1501 ack 1");
}
