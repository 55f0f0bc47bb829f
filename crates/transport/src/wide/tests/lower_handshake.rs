//! Requests of a lower layer to an endpoint: an opening that it has carried, another path, numbers for its own use.

use crate::connection::{CloseReason, Event, OpenError, State};
use crate::wide::{Config, Endpoint, TimeoutConfig};
use hopline_core::{Duration, Instant, Length, LinkId, StateMachine};
use hopline_wire::wide::{Control, Packet, StreamEnd};

type Plain = Endpoint<Length>;

fn new(config: Config) -> Plain {
    Endpoint::new(config).expect("valid")
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Two ends of a handshake that took 40 ms.
fn opened(config: Config) -> (Plain, Plain) {
    let (mut a, mut b) = (new(config), new(config));
    a.start_lower_handshake().expect("new");
    a.on_lower_handshake_done(at(40), b.opening_parameters(), Some(Duration::from_millis(40)))
        .expect("waits");
    b.on_lower_handshake_done(at(60), a.opening_parameters(), None).expect("new");
    (a, b)
}

fn transmit_all(end: &mut Plain, now: Instant) -> Vec<Packet<Length>> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
}

fn events(end: &mut Plain) -> Vec<Event> {
    std::iter::from_fn(|| end.poll_event()).collect()
}

#[test]
fn a_lower_handshake_needs_no_opening_packet_and_data_are_sent_at_once() {
    let mut a = new(Config::DEFAULT);
    a.start_lower_handshake().expect("new");
    a.send(at(0), Length(100)).expect("data may wait for the handshake");
    assert_eq!(
        (transmit_all(&mut a, at(0)), a.poll_timeout()),
        (vec![], None),
        "nothing to do until it is over"
    );
    let mut b = new(Config::DEFAULT);
    b.on_lower_handshake_done(at(60), a.opening_parameters(), None).expect("new");
    a.on_lower_handshake_done(at(40), b.opening_parameters(), Some(Duration::from_millis(40)))
        .expect("waits");
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    assert_eq!((events(&mut a), events(&mut b)), (vec![Event::Connected], vec![Event::Connected]));
    assert_eq!(a.srtt(), Some(Duration::from_millis(40)));
    let packets = transmit_all(&mut a, at(40));
    let [packet] = &packets[..] else { panic!("one packet: {packets:?}") };
    assert!(packet.opening.is_none() && packet.data_len() == 100);
    b.handle_packet(at(60), LinkId::ONLY, packet.clone());
    assert_eq!(b.recv(), Some(Length(100)));
    assert_eq!(
        a.on_lower_handshake_done(at(60), b.opening_parameters(), None),
        Err(OpenError::AlreadyOpened)
    );
    let mut listening = new(Config::DEFAULT);
    listening.listen().expect("new");
    assert_eq!(
        listening.on_lower_handshake_done(at(0), b.opening_parameters(), None),
        Err(OpenError::AlreadyOpened)
    );
}

#[test]
fn an_initiator_without_data_probes_at_once_and_again() {
    let (mut a, mut b) = opened(Config::DEFAULT);
    assert_eq!(transmit_all(&mut a, at(40))[0].control, Control::Ping);
    let (due, _) = a.poll_timeout().expect("the answer is waited for");
    a.handle_timeout(due);
    let again = transmit_all(&mut a, due);
    assert_eq!(again[0].control, Control::Ping);
    assert!(transmit_all(&mut b, at(60)).is_empty(), "who was opened to waits");
    b.handle_packet(due, LinkId::ONLY, again[0].clone());
    let answer = transmit_all(&mut b, due);
    a.handle_packet(due, LinkId::ONLY, answer[0].clone());
    assert_eq!(a.stats().drops.total(), 0);
    let (later, _) = a.poll_timeout().expect("the first one is not heard of yet");
    a.handle_timeout(later);
    assert!(transmit_all(&mut a, later).is_empty(), "it is lost, and holds nothing that was");
}

#[test]
fn a_close_before_the_end_of_the_handshake_takes_effect_after_it() {
    let mut a = new(Config::DEFAULT);
    a.start_lower_handshake().expect("new");
    a.send(at(0), Length(10)).expect("room");
    a.close(at(0)).expect("open");
    a.on_lower_handshake_done(at(40), new(Config::DEFAULT).opening_parameters(), None).expect("waits");
    let packets = transmit_all(&mut a, at(40));
    assert_eq!(packets[0].data.expect("data").end, StreamEnd::Yes);
    let mut idle = new(Config::DEFAULT);
    idle.start_lower_handshake().expect("new");
    idle.close(at(0)).expect("open");
    assert_eq!(events(&mut idle), [Event::Closed(CloseReason::Finished)]);
    assert_eq!(
        idle.on_lower_handshake_done(at(40), a.opening_parameters(), None),
        Err(OpenError::AlreadyOpened)
    );
}

#[test]
fn skipped_packet_numbers_are_neither_lost_nor_invalid() {
    let (mut a, mut b) = opened(Config::DEFAULT);
    transmit_all(&mut a, at(40)).into_iter().for_each(|ping| b.handle_packet(at(60), LinkId::ONLY, ping));
    assert_eq!(a.skip_number(), 1);
    b.handle_packet(at(60), LinkId::ONLY, Packet { number: 1, ..Packet::default() });
    a.send(at(70), Length(10)).expect("room");
    for packet in transmit_all(&mut a, at(70)) {
        assert_eq!(packet.number, 2);
        b.handle_packet(at(90), LinkId::ONLY, packet);
    }
    let answers = transmit_all(&mut b, at(90));
    let ack = answers.last().and_then(|packet| packet.ack.clone()).expect("an acknowledgment");
    assert_eq!((ack.ranges.len(), ack.largest()), (1, 2), "no hole");
    answers.into_iter().for_each(|packet| a.handle_packet(at(110), LinkId::ONLY, packet));
    assert_eq!((a.unacknowledged(), a.stats().lost, a.stats().drops.total()), (0, 0, 0));
}

#[test]
fn a_new_path_is_probed_at_once_if_the_old_one_was_silent() {
    let (mut a, _) = opened(Config::DEFAULT);
    a.send(at(40), Length(3000)).expect("room");
    assert!(!transmit_all(&mut a, at(40)).is_empty());
    for _ in 0..3 {
        let (due, _) = a.poll_timeout().expect("a probe");
        a.handle_timeout(due);
        assert!(transmit_all(&mut a, due).len() <= 1);
    }
    assert!(transmit_all(&mut a, at(3000)).is_empty(), "frozen");
    a.handle_path_change(at(3000));
    assert_eq!(transmit_all(&mut a, at(3000)).len(), 1);
}

/// The peer has lost its state. An end that only waits for the peer's end of the stream must detect it, too.
#[test]
fn an_end_in_fin_wait_2_sends_keep_alive_probes() {
    let silence = TimeoutConfig { limit: Some(Duration::from_secs(20)), ..Config::DEFAULT.silence };
    let keep_alive = Some(Duration::from_secs(5));
    let (mut a, mut b) = opened(Config { silence, keep_alive, ..Config::DEFAULT });
    a.close(at(40)).expect("open");
    transmit_all(&mut a, at(40)).into_iter().for_each(|packet| b.handle_packet(at(60), LinkId::ONLY, packet));
    transmit_all(&mut b, at(60)).into_iter().for_each(|packet| a.handle_packet(at(80), LinkId::ONLY, packet));
    assert_eq!(a.state(), State::FinWait2);
    let mut now = at(80);
    while let Some((due, _)) = a.poll_timeout() {
        now = now.max(due);
        a.handle_timeout(now);
        transmit_all(&mut a, now);
        assert!(now < Instant::from_secs(60), "it hangs");
    }
    assert_eq!(events(&mut a).last(), Some(&Event::Closed(CloseReason::TimedOut)));
}

/// Its last acknowledgment was lost, and the peer's questions go where it is no more: only it can show where it is.
#[test]
fn a_keep_alive_repeats_the_final_acknowledgment() {
    let (mut a, mut b) = opened(Config { keep_alive: Some(Duration::from_secs(2)), ..Config::DEFAULT });
    a.close(at(40)).expect("open");
    b.close(at(60)).expect("open");
    let (from_a, from_b) = (transmit_all(&mut a, at(60)), transmit_all(&mut b, at(60)));
    from_b.into_iter().for_each(|packet| a.handle_packet(at(80), LinkId::ONLY, packet));
    from_a.into_iter().for_each(|packet| b.handle_packet(at(80), LinkId::ONLY, packet));
    transmit_all(&mut b, at(80))
        .into_iter()
        .for_each(|packet| a.handle_packet(at(100), LinkId::ONLY, packet));
    assert_eq!((a.state(), b.state()), (State::TimeWait, State::Closing));
    assert_eq!(transmit_all(&mut a, at(100)).len(), 1, "this one is lost");
    let mut said = Vec::new();
    let mut now = at(100);
    while let Some((due, _)) = a.poll_timeout() {
        now = now.max(due);
        a.handle_timeout(now);
        said.extend(transmit_all(&mut a, now));
    }
    assert_eq!((said.len(), now), (4, at(10_100)));
    b.handle_packet(at(3000), LinkId::ONLY, said[0].clone());
    assert_eq!(b.state(), State::TimeWait);
}

/// The sender may have forgotten the packet in which the end of the stream arrived first.
#[test]
fn each_retransmission_of_the_fin_is_acknowledged() {
    let (mut a, mut b) = opened(Config::DEFAULT);
    b.close(at(60)).expect("open");
    transmit_all(&mut b, at(60)).into_iter().for_each(|packet| a.handle_packet(at(80), LinkId::ONLY, packet));
    a.close(at(80)).expect("open");
    let last = transmit_all(&mut a, at(80));
    last.iter().for_each(|packet| b.handle_packet(at(100), LinkId::ONLY, packet.clone()));
    assert_eq!(b.state(), State::TimeWait);
    transmit_all(&mut b, at(100));
    let end = last.iter().find(|packet| packet.data.is_some()).expect("the end of the stream");
    b.handle_packet(at(5000), LinkId::ONLY, Packet { number: 40, ..end.clone() });
    let ack = transmit_all(&mut b, at(5000))[0].ack.clone().expect("an acknowledgment");
    assert_eq!(ack.largest(), 40);
}
