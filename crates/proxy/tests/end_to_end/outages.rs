//! A last hop that is gone for a while, in both directions.

use crate::end_to_end::filters::{Base, idle};
use crate::end_to_end::support::{endpoints, wire};
use hopline_core::{Duration, Instant};
use hopline_proxy::hop_window;
use hopline_proxy::snoop::{self, windowed};
use hopline_testkit::transfer::{Course, Transfer};
use hopline_testkit::{Emulation, Middle};
use hopline_transport::tcp;
use proptest::prelude::*;

/// Time from the end of an outage until more data arrive, past Snoop.
fn resumes_after(config: snoop::Config, start: Duration, length: Duration, latency: Duration) -> Duration {
    let from = Instant::ZERO + start;
    let back = from + length;
    let hop = Emulation {
        latency,
        rate: Some(5_000_000),
        queue: Some(100),
        blackouts: vec![(from, back)],
        ..Emulation::default()
    };
    let (a, b) = endpoints(tcp::Config::linux().with_sack(), [1, 2]);
    let station = Base::new(move || windowed(config), None);
    let middle = Middle::new(a, station, b, [wire(), wire()], [hop.clone(), hop], 5);
    // More than arrives.
    let mut transfer = Transfer::of(middle, [100_000_000, 0], |_| {});
    transfer.act();
    while transfer.pair.step(back) {
        transfer.act();
    }
    let before = transfer.received()[0];
    while transfer.received()[0] == before {
        assert!(transfer.pair.step(back + Duration::from_secs(300)), "it hangs");
        transfer.act();
    }
    transfer.pair.now().since(back)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn snoop_resumes_soon_after_an_outage_and_not_much_later_than_without_it(
        start in 100u64..4_000,
        length in 1_000u64..30_000,
        latency in 1u64..60,
        window in any::<bool>(),
    ) {
        let [start, length, latency] = [start, length, latency].map(Duration::from_millis);
        let hop_window = window.then_some(hop_window::Config::DEFAULT);
        let modern = snoop::Config { hop_window, ..snoop::Config::modern() };
        let [plain, with] = [idle(), modern].map(|config| resumes_after(config, start, length, latency));
        // The host is asked for after a sixteenth of its absence, and half a second at least; what it has is said after 200 ms at most.
        let asked = Duration::from_nanos(length.as_nanos() / 16).max(Duration::from_millis(500));
        prop_assert!(with <= asked + Duration::from_secs(1), "{with:?} with, {plain:?} without");
        prop_assert!(with <= plain + Duration::from_millis(500), "{with:?} with, {plain:?} without");
    }
}
