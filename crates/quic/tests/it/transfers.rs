//! Transfers of real bytes over links that lose, reorder, duplicate and damage packets.

use crate::support::{endpoint, transfer};
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;
use hopline_testkit::cases::{VirtualTime, acceptance_cases, arrives_byte_exact};
use hopline_transport::quic::{Config, CongestionControl};

fn path() -> Emulation {
    Emulation::delay(Duration::from_millis(10)).with_rate(Some(20_000_000)).with_queue(Some(100))
}

#[test]
fn every_controller_transfers_both_ways_and_both_ends_rest() {
    for algorithm in [CongestionControl::Cubic, CongestionControl::NewReno, CongestionControl::Bbr] {
        let config = Config::DEFAULT.with_congestion_control(algorithm);
        let mut transfer = transfer(config, [300_000, 50_000], &path(), 1);
        transfer.run(Instant::from_secs(60));
        transfer.assert_complete();
    }
}

#[test]
fn an_impaired_link_delivers_every_byte_once_and_in_order() {
    for (seed, link) in [
        (1, path().with_loss(0.05)),
        (2, path().with_loss(0.05).with_burst(Some(4.0))),
        (3, path().with_reorder(0.2).with_extra_delay(Duration::from_millis(30))),
        (4, path().with_duplicate(0.2)),
        (5, path().with_corrupt(0.05)),
        (6, path().with_loss(0.3)),
    ] {
        let mut transfer = transfer(Config::DEFAULT, [200_000, 20_000], &link, seed);
        transfer.run(Instant::from_secs(600));
        assert_eq!(transfer.received(), [200_000, 20_000], "{link:?}");
    }
}

#[test]
fn empty_streams_are_closed_in_order() {
    let mut transfer = transfer(Config::DEFAULT, [0, 0], &path(), 1);
    transfer.run(Instant::from_secs(60));
    transfer.assert_complete();
}

#[test]
fn the_acceptance_cases_of_the_other_transports_arrive() {
    let ground = VirtualTime(|case: &hopline_testkit::cases::Case| {
        let (mut a, mut b) =
            (endpoint(Config::DEFAULT, 0, case.seed), endpoint(Config::DEFAULT, 1, case.seed));
        a.connect(Instant::ZERO).expect("new");
        b.listen().expect("new");
        (a, b)
    });
    for case in acceptance_cases().into_iter().filter(|case| !case.needs_sockets()) {
        arrives_byte_exact(&ground, &case.with_bytes(150_000));
    }
}
