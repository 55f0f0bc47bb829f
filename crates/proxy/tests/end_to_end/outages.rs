//! Outages of a last hop, in both directions.

use crate::end_to_end::filters::FilterStation;
use crate::end_to_end::support::{endpoints, wire};
use hopline_core::{Duration, Instant, StateMachine};
use hopline_proxy::hop_window;
use hopline_proxy::snoop::{self, windowed};
use hopline_testkit::transfer::{EndpointPair, Transfer};
use hopline_testkit::{Emulation, TwoLinks};
use hopline_transport::tcp;
use proptest::prelude::*;

/// Returns the times from the end of an outage until the sender's own timer expires, and until more data
/// arrive, past Snoop.
fn resume_times(config: snoop::Config, [start, length, latency]: [Duration; 3]) -> [Duration; 2] {
    let from = Instant::ZERO + start;
    let back = from + length;
    let hop = Emulation::default()
        .with_latency(latency)
        .with_rate(Some(5_000_000))
        .with_queue(Some(100))
        .with_blackouts(vec![(from, back)]);
    let (a, b) = endpoints(tcp::Config::linux().with_sack(), [1, 2]);
    let station = FilterStation::new(move || windowed(config), None);
    let middle = TwoLinks::new(a, station, b, [wire(), wire()], [hop.clone(), hop], 5);
    // More data than can arrive.
    let mut transfer = Transfer::of(middle, [100_000_000, 0], |_| {});
    transfer.run_users();
    while transfer.pair.step(back) {
        transfer.run_users();
    }
    let (due, _) = transfer.pair.a.poll_timeout().expect("data are under way");
    let before = transfer.received()[0];
    while transfer.received()[0] == before {
        assert!(transfer.pair.step(back + Duration::from_secs(300)), "it hangs");
        transfer.run_users();
    }
    [due.since(back), transfer.pair.now().since(back)]
}

/// Checks the time at which data arrive after an outage, ms.
fn check_resume_time(start: u64, length: u64, latency: u64, window: bool) -> Result<(), TestCaseError> {
    let [start, length, latency] = [start, length, latency].map(Duration::from_millis);
    let hop_window = window.then_some(hop_window::Config::DEFAULT);
    let modern = snoop::Config { hop_window, ..snoop::Config::modern() };
    let [own, resumed] = resume_times(modern, [start, length, latency]);
    // The host is probed after a sixteenth of its absence, at least half a second; its acknowledgments are
    // withheld for 200 ms at most.
    let asked = Duration::from_nanos(length.as_nanos() / 16).max(Duration::from_millis(500));
    prop_assert!(resumed <= asked + Duration::from_secs(1), "{resumed:?}");
    // Nor does Snoop delay the sender's own retransmissions. A run without Snoop is no measure for that: its
    // timer has doubled from another round trip, and may happen to expire as the host returns.
    prop_assert!(resumed <= own + Duration::from_millis(500), "{resumed:?}, of the sender {own:?}");
    Ok(())
}

#[test]
fn snoop_resumes_when_the_sender_timer_would_expire_at_the_outage_end() {
    // Without Snoop the sender retransmitted 0.1 ms before the end, and data arrived 63 ms after it; with
    // Snoop 970 ms after it.
    check_resume_time(2632, 19_065, 46, false).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn snoop_resumes_after_an_outage_no_later_than_the_sender(
        start in 100u64..4_000,
        length in 1_000u64..30_000,
        latency in 1u64..60,
        window in any::<bool>(),
    ) {
        check_resume_time(start, length, latency, window)?;
    }
}
