//! Acceptance tests of TPA-wide in virtual time.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_testkit::Side;
use hopline_testkit::cases::{Case, VirtualTime, acceptance_cases, arrives_byte_exact};
use hopline_transport::wide::{Config, Endpoint};

fn ends(_: &Case) -> (Endpoint<Bytes>, Endpoint<Bytes>) {
    let config = Config::DEFAULT.with_send_buffer(Some(1 << 22));
    let mut a = Endpoint::new(config).expect("the defaults are valid");
    let mut b = Endpoint::new(config).expect("the defaults are valid");
    b.listen().expect("new");
    a.connect(Instant::ZERO).expect("new");
    (a, b)
}

#[test]
fn ten_megabytes_arrive_over_every_bad_link() {
    for case in acceptance_cases().into_iter().filter(|case| !case.needs_sockets()) {
        let outcome = arrives_byte_exact(&VirtualTime(ends), &case);
        let counts = outcome.counts[Side::A as usize];
        println!("{:<36} {:>8.1} s, {:>5} packets", case.name, outcome.at.as_secs_f64(), counts.sent);
    }
}
