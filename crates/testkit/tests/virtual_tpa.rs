//! Acceptance tests of the project's TPA in virtual time.

use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_testkit::cases::{Case, VirtualTime, acceptance_cases, arrives_byte_exact};
use hopline_transport::tpa::{Config, Endpoint};

fn ends(_: &Case) -> (Endpoint<Bytes>, Endpoint<Bytes>) {
    // As in `hopline_streams::tpa::config`. With the paper's maximum of 60 s, a burst that is met repeatedly would outlast the
    // silence limit.
    let mut config = Config::tpa(3);
    config = config.with_rto(config.rto().with_max(Duration::from_secs(5)));
    let end = || Endpoint::new(config).expect("presets are valid");
    let (mut a, mut b) = (end(), end());
    b.listen().expect("it is closed");
    a.connect(Instant::ZERO).expect("it is closed");
    (a, b)
}

#[test]
fn ten_megabytes_arrive_byte_exact_over_every_bad_link() {
    for case in acceptance_cases().into_iter().filter(|case| !case.needs_sockets()) {
        let outcome = arrives_byte_exact(&VirtualTime(ends), &case);
        assert!(outcome.counts[0].sent >= case.bytes / 1460, "{}: {outcome:?}", case.name);
    }
}
