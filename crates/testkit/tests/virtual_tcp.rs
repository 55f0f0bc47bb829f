//! Acceptance tests of the project's TCP in virtual time.

use bytes::Bytes;
use hopline_core::{Instant, Seq32};
use hopline_testkit::cases::{Case, VirtualTime, acceptance_cases, arrives_byte_exact};
use hopline_transport::tcp::{Config, Endpoint, Ports};

fn ends(_: &Case) -> (Endpoint<Bytes>, Endpoint<Bytes>) {
    let end = |local, remote| {
        Endpoint::new(Config::modern(), Ports { local, remote }, Seq32(7)).expect("presets are valid")
    };
    let (mut a, mut b) = (end(1, 2), end(2, 1));
    b.listen().expect("it is closed");
    a.connect(Instant::ZERO).expect("it is closed");
    (a, b)
}

/// A retransmission that is alone on the link meets the same burst again, three times in four, and timeouts double. Half a
/// megabyte takes 16 to 364 s with the first four seeds; with the fifth, the connection ends after 15 retransmissions.
const TOO_MUCH_FOR_TCP: &str = "20 % lost in bursts of 4";

#[test]
fn ten_megabytes_arrive_byte_exact_over_every_bad_link() {
    for case in acceptance_cases().into_iter().filter(|case| !case.needs_sockets()) {
        let case = if case.name == TOO_MUCH_FOR_TCP { case.with_bytes(500_000) } else { case };
        let outcome = arrives_byte_exact(&VirtualTime(ends), &case);
        assert!(outcome.counts[0].sent >= case.bytes / 1448, "{}: {outcome:?}", case.name);
        // 2 Mb/s.
        assert!(outcome.at > Instant::from_millis(case.bytes / 250), "{}: {outcome:?}", case.name);
    }
}

#[test]
fn cases_have_the_impairments_in_their_names() {
    let forth = |name: &str| {
        let case = acceptance_cases().into_iter().find(|case| case.name == name).expect("it is one of them");
        arrives_byte_exact(&VirtualTime(ends), &case.with_bytes(3_000_000)).counts[0]
    };
    let counts = forth("nothing lost");
    assert_eq!((counts.losses, counts.blackout_drops, counts.reordered, counts.duplicated), (0, 0, 0, 0));
    let counts = forth("10 % lost");
    assert!(counts.losses > 150 && counts.loss_bursts * 10 > counts.losses * 8, "{counts:?}");
    let bursts = forth("10 % lost in bursts of 4");
    assert!(bursts.losses > 2 * bursts.loss_bursts && bursts.loss_bursts > 20, "{bursts:?}");
    assert!(forth("5 % reordered by 30 ms").reordered > 70);
    assert!(forth("1 % duplicated").duplicated > 8);
    assert!(forth("an outage of 10 s, both ways").blackout_drops > 5);
}

#[test]
fn equal_cases_have_equal_outcomes() {
    let case = acceptance_cases().remove(3).with_bytes(500_000);
    let run = |case: &Case| arrives_byte_exact(&VirtualTime(ends), case);
    assert_eq!(run(&case), run(&case));
    assert_ne!(run(&case), run(&Case { seed: 2, ..case.clone() }));
}

#[test]
#[should_panic(expected = "too little time (seed 1)")]
fn a_transfer_that_misses_its_deadline_fails() {
    let case = acceptance_cases().remove(0);
    let hurried = Case { name: "too little time", deadline: Instant::from_secs(3), ..case };
    arrives_byte_exact(&VirtualTime(ends), &hurried);
}
