//! Our TPA, in virtual time, through everything a reliable transport must stand.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_testkit::cases::{Case, InVirtualTime, arrives_byte_exact, must_hold};
use hopline_transport::tpa::{Config, Endpoint};

fn ends(_: &Case) -> (Endpoint<Bytes>, Endpoint<Bytes>) {
    // A burst that is met again and again, ever more rarely, takes longer than the silence limit.
    let config = Config { silence_limit: None, ..Config::tpa(3) };
    let end = || Endpoint::new(config).expect("presets are valid");
    let (mut a, mut b) = (end(), end());
    b.listen().expect("it is closed");
    a.connect(Instant::ZERO).expect("it is closed");
    (a, b)
}

#[test]
fn ten_megabytes_arrive_byte_exact_whatever_the_link_does() {
    for case in must_hold().into_iter().filter(|case| !case.needs_sockets()) {
        let outcome = arrives_byte_exact(&InVirtualTime(ends), &case);
        assert!(outcome.counts[0].sent >= case.bytes / 1460, "{}: {outcome:?}", case.name);
    }
}
