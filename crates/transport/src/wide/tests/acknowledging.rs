//! Acknowledgment of packets that are not urgent, and the urgency that a sender sets.

use super::over_link::transfer;
use crate::wide::{Config, Endpoint};
use hopline_core::{Duration, Instant, Length, LinkId, Machine};
use hopline_wire::wide::{Answer, Data, End, Packet};

const LEN: u64 = 100;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn packet(number: u64, answer: Answer) -> Packet<Length> {
    let data = Data { offset: number * LEN, end: End::No, payload: Length(LEN) };
    Packet { number, answer, data: Some(data), ..Packet::default() }
}

/// A receiver that no longer answers each packet by itself: the first ten have come.
struct Receiver(Endpoint<Length>);

impl Receiver {
    fn new() -> Self {
        let mut end = Endpoint::new(Config::DEFAULT).expect("valid");
        end.handshake_done(at(0), end.opening(), None).expect("new");
        let mut receiver = Self(end);
        assert!((0..10).all(|number| receiver.takes(at(0), number, Answer::Soon)), "one by one");
        receiver
    }

    /// Processes a packet. Returns whether it is acknowledged at once.
    fn takes(&mut self, now: Instant, number: u64, answer: Answer) -> bool {
        self.0.handle_packet(now, LinkId::ONLY, packet(number, answer));
        self.answers(now)
    }

    fn answers(&mut self, now: Instant) -> bool {
        std::iter::from_fn(|| self.0.poll_transmit(now)).any(|packet| packet.ack.is_some())
    }

    /// Returns the time of the next acknowledgment.
    fn due(&self) -> Option<Instant> {
        self.0.poll_timeout().map(|(due, _)| due)
    }
}

#[test]
fn what_is_not_urgent_is_acknowledged_eight_at_once_or_a_fifth_of_a_second_after_the_first() {
    let mut receiver = Receiver::new();
    for number in 10..17 {
        assert!(!receiver.takes(at(20 * number), number, Answer::Late));
        assert_eq!(receiver.due(), Some(at(400)));
    }
    assert!(receiver.takes(at(340), 17, Answer::Late));
    assert_eq!(receiver.due(), None);
    receiver.takes(at(360), 18, Answer::Late);
    receiver.0.handle_timeout(at(560));
    assert!(receiver.answers(at(560)));
}

#[test]
fn an_urgent_packet_has_those_before_it_acknowledged_with_it() {
    let mut receiver = Receiver::new();
    assert!((10..13).all(|number| !receiver.takes(at(100), number, Answer::Late)));
    assert!(receiver.takes(at(110), 13, Answer::Soon), "the fourth");
    receiver.takes(at(120), 14, Answer::Soon);
    assert_eq!(receiver.due(), Some(at(125)));
}

#[test]
fn where_packets_are_missing_there_is_no_waiting_and_what_follows_does_not_put_it_off() {
    let mut receiver = Receiver::new();
    receiver.takes(at(100), 11, Answer::Late);
    assert_eq!(receiver.due(), Some(at(105)), "the tenth is missing");
    receiver.takes(at(102), 12, Answer::Late);
    assert_eq!(receiver.due(), Some(at(105)));
    receiver.0.handle_timeout(at(105));
    assert!(receiver.answers(at(105)));
    receiver.takes(at(110), 13, Answer::Late);
    assert_eq!(receiver.due(), Some(at(310)), "that was told");
    receiver.takes(at(120), 10, Answer::Late);
    assert_eq!(receiver.due(), Some(at(120)), "it was late, and not lost: 5 ms after the first are over");
}

/// Returns how many of 80 packets are not urgent over a link of `rate` bits per second, once the rate is known.
fn not_urgent(rate: f64) -> usize {
    let mut answers = Vec::new();
    transfer(Config::DEFAULT, (rate, Duration::from_millis(5)), 600_000, |_, packet| {
        answers.extend(packet.data.is_some().then_some(packet.answer));
    });
    answers[300..380].iter().filter(|&&answer| answer == Answer::Late).count()
}

#[test]
fn a_sender_calls_none_three_of_four_or_all_packets_not_urgent_as_they_become_rare() {
    assert_eq!(not_urgent(20e6), 0, "four take 2 ms");
    assert_eq!(not_urgent(2e6), 60, "four take 24 ms");
    assert_eq!(not_urgent(0.5e6), 80, "each takes 24 ms");
}
