//! Acknowledgment of packets that are not urgent, and the urgency that a sender sets.

use super::over_link::transfer;
use crate::wide::{Config, Endpoint};
use hopline_core::{Duration, Instant, Length, LinkId, StateMachine};
use hopline_wire::wide::{AckUrgency, Data, Packet, StreamEnd};

const LEN: u64 = 100;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn packet(number: u64, answer: AckUrgency) -> Packet<Length> {
    let data = Data { offset: number * LEN, end: StreamEnd::No, payload: Length(LEN) };
    Packet { number, ack_urgency: answer, data: Some(data), ..Packet::default() }
}

/// A receiver that no longer answers each packet by itself: the first ten have come.
struct TestReceiver(Endpoint<Length>);

impl TestReceiver {
    fn new() -> Self {
        let mut end = Endpoint::new(Config::DEFAULT).expect("valid");
        end.on_lower_handshake_done(at(0), end.opening_parameters(), None).expect("new");
        let mut receiver = Self(end);
        assert!((0..10).all(|number| receiver.receive(at(0), number, AckUrgency::Urgent)), "one by one");
        receiver
    }

    /// Processes a packet. Returns whether it is acknowledged at once.
    fn receive(&mut self, now: Instant, number: u64, answer: AckUrgency) -> bool {
        self.0.handle_packet(now, LinkId::ONLY, packet(number, answer));
        self.acks_at(now)
    }

    fn acks_at(&mut self, now: Instant) -> bool {
        std::iter::from_fn(|| self.0.poll_transmit(now)).any(|packet| packet.ack.is_some())
    }

    /// Returns the time of the next acknowledgment.
    fn ack_due(&self) -> Option<Instant> {
        self.0.poll_timeout().map(|(due, _)| due)
    }
}

#[test]
fn packets_that_are_not_urgent_are_acknowledged_in_eights_or_after_the_longest_delay() {
    let mut receiver = TestReceiver::new();
    for number in 10..17 {
        assert!(!receiver.receive(at(20 * number), number, AckUrgency::Deferred));
        assert_eq!(receiver.ack_due(), Some(at(400)));
    }
    assert!(receiver.receive(at(340), 17, AckUrgency::Deferred));
    assert_eq!(receiver.ack_due(), None);
    receiver.receive(at(360), 18, AckUrgency::Deferred);
    receiver.0.handle_timeout(at(560));
    assert!(receiver.acks_at(at(560)));
}

#[test]
fn an_urgent_packet_acknowledges_the_packets_before_it() {
    let mut receiver = TestReceiver::new();
    assert!((10..13).all(|number| !receiver.receive(at(100), number, AckUrgency::Deferred)));
    assert!(receiver.receive(at(110), 13, AckUrgency::Urgent), "the fourth");
    receiver.receive(at(120), 14, AckUrgency::Urgent);
    assert_eq!(receiver.ack_due(), Some(at(125)));
}

#[test]
fn a_gap_is_acknowledged_soon_and_later_packets_do_not_postpone_that() {
    let mut receiver = TestReceiver::new();
    receiver.receive(at(100), 11, AckUrgency::Deferred);
    assert_eq!(receiver.ack_due(), Some(at(105)), "the tenth is missing");
    receiver.receive(at(102), 12, AckUrgency::Deferred);
    assert_eq!(receiver.ack_due(), Some(at(105)));
    receiver.0.handle_timeout(at(105));
    assert!(receiver.acks_at(at(105)));
    receiver.receive(at(110), 13, AckUrgency::Deferred);
    assert_eq!(receiver.ack_due(), Some(at(310)), "that was told");
    receiver.receive(at(120), 10, AckUrgency::Deferred);
    assert_eq!(receiver.ack_due(), Some(at(120)), "it was late, and not lost: 5 ms after the first are over");
}

/// Returns how many of 80 packets are not urgent over a link of `rate` bits per second, once the rate is known.
fn not_urgent(rate: f64) -> usize {
    let mut answers = Vec::new();
    transfer(Config::DEFAULT, (rate, Duration::from_millis(5)), 600_000, |_, packet| {
        answers.extend(packet.data.is_some().then_some(packet.ack_urgency));
    });
    answers[300..380].iter().filter(|&&answer| answer == AckUrgency::Deferred).count()
}

#[test]
fn a_sender_marks_fewer_packets_urgent_at_lower_packet_rates() {
    assert_eq!(not_urgent(20e6), 0, "four take 2 ms");
    assert_eq!(not_urgent(2e6), 60, "four take 24 ms");
    assert_eq!(not_urgent(0.5e6), 80, "each takes 24 ms");
}
