//! Neighbours with applications or timers that act at the same instant (RFC 5148 §5.2).

use super::harness::*;
use crate::dsr::*;
use hopline_core::Duration;

/// Returns the times, from the start, of the unanswered requests of a node.
fn requests(config: Config, number: u32) -> Vec<Duration> {
    let mut node = TestNode::with_jitter(config, number);
    let start = node.now;
    let at_once = node.send(9, 1).into_iter().map(|transmit| (start, transmit));
    let sent: Vec<_> = at_once.chain(node.advance(ms(20_000))).collect();
    assert!(sent.iter().all(|(_, transmit)| transmit.next_hop.is_broadcast()));
    sent.into_iter().map(|(at, _)| at - start).collect()
}

#[test]
fn each_request_is_jittered_and_its_timeout_starts_at_departure() {
    for config in [Config::rfc4728(), Config::rfc4728().without_cache()] {
        let times = requests(config, 0);
        let plain = requests(Config { originated_jitter: Duration::ZERO, ..config }, 0);
        assert_eq!(times.len(), plain.len());
        assert!(times[0] > Duration::ZERO && times[0] < ms(10), "{:?}", times[0]);
        for (pair, plain) in times.windows(2).zip(plain.windows(2)) {
            let (wait, least) = (pair[1] - pair[0], plain[1] - plain[0]);
            assert!(wait > least && wait < least + ms(10), "{wait:?} after {least:?}");
        }
    }
}

#[test]
fn simultaneous_searches_send_at_different_times() {
    let times = [0, 1].map(|number| requests(Config::rfc4728(), number));
    assert!(times[0].len() > 5);
    assert!(times[0].iter().zip(&times[1]).all(|(a, b)| a != b));
}

#[test]
fn requests_of_the_ns2_preset_are_not_jittered() {
    let times = requests(Config::ns2(), 0);
    assert_eq!((times[0], &times), (Duration::ZERO, &requests(Config::ns2(), 1)));
}
