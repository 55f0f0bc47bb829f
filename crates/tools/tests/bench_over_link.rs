//! Tests between two hosts over an emulated link: 2 Mb/s, 25 ms each way, with losses.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_testkit::Emulation;
use hopline_testkit::namespace::{LINK, NamespaceLink};
use hopline_tools::bench::{
    CongestionControl, ConnectOptions, Direction, Error, Limit, Observer, Plan, Report, Role, Server,
    TestCount, TestSettings, Transport, measure,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::channel;
use std::time::Duration;

const BYTES: u64 = 150_000;
const PORT: u16 = 5201;

pub(crate) fn tests() -> Vec<Test> {
    let through_losses = [
        ("tpa_arrives_through_losses", tpa as fn() -> Transport, Direction::Forward),
        ("tpa_arrives_through_losses_in_reverse", tpa, Direction::Reverse),
        ("tcp_arrives_through_losses", reno, Direction::Forward),
        ("tcp_arrives_through_losses_in_reverse", reno, Direction::Reverse),
    ];
    let through_losses = through_losses.map(|(name, transport, direction)| {
        Test::new(name, [LINK], move || arrives(&transport(), direction))
    });
    let others = hopline_harness::tests!([LINK];
        a_full_queue_does_not_delay_the_results,
        a_missing_peer_is_given_up,
    );
    through_losses.into_iter().chain(others).collect()
}

fn tpa() -> Transport {
    Transport::Tpa { cwnd_max: 12 }
}

fn reno() -> Transport {
    Transport::Tcp { congestion_control: CongestionControl::new("reno") }
}

fn plan(transport: &Transport, direction: Direction, limit: Limit) -> Plan {
    Plan { direction, limit, streams: 2, length: Some(8192), ..Plan::new(transport.clone()) }
}

fn slow(loss: f64) -> Emulation {
    Emulation::delay(Span::from_millis(25)).with_rate(Some(2_000_000)).with_loss(loss)
}

fn to(peer: SocketAddr) -> ConnectOptions {
    ConnectOptions { peers: vec![peer], ..ConnectOptions::default() }
}

/// One test: the client on host A, the server on host B.
fn run(link: &NamespaceLink, plan: &Plan) -> (Result<Report, Error>, Result<(), Error>) {
    let (ready, is_ready) = channel();
    let address = SocketAddr::from((link.address_b(), PORT));
    link.run_both(
        move || {
            is_ready.recv().unwrap();
            measure(plan, &to(address), None, &mut ())
        },
        move || {
            let server = Server::bind(IpAddr::V4(link.address_b()), PORT).unwrap();
            ready.send(()).unwrap();
            server.serve(TestCount::One, None, &mut ())
        },
    )
}

fn arrives(transport: &Transport, direction: Direction) {
    let link = NamespaceLink::new(slow(0.05), slow(0.05), 7).unwrap();
    let (report, served) = run(&link, &plan(transport, direction, Limit::Bytes(BYTES)));
    let report = report.unwrap();
    served.unwrap();
    let remote = report.remote.unwrap();
    let (sender, receiver) =
        if direction == Direction::Forward { (&report.local, &remote) } else { (&remote, &report.local) };
    assert_eq!((sender.bytes(Role::Sends), receiver.bytes(Role::Receives)), (BYTES, BYTES));
    let stats = link.stats();
    let lost = stats.forward.losses + stats.reverse.losses;
    assert!(lost > 0 && sender.retransmits().unwrap() > 0, "{lost} lost: {sender:?}");
    // The limit is for all streams: the first may have sent everything when the second is opened.
    for stream in sender.streams.iter().filter(|stream| stream.bytes > 0) {
        let rtt = stream.sending.unwrap().rtt;
        assert!(rtt.is_some_and(|rtt| rtt.min >= Duration::from_millis(50)), "{rtt:?}: {sender:?}");
    }
}

/// TCP fills the queue before the link; the receiver stops by its own clock all the same.
fn a_full_queue_does_not_delay_the_results() {
    let link = NamespaceLink::new(slow(0.0), slow(0.0), 8).unwrap();
    let limit = Limit::Time(Duration::from_secs(2));
    let (report, served) = run(&link, &plan(&reno(), Direction::Forward, limit));
    let report = report.unwrap();
    served.unwrap();
    let received = report.remote.unwrap();
    // No more than the link carries in 2 s, although more was handed over.
    let rate = received.bytes(Role::Receives) as f64 * 8.0 / received.elapsed.as_secs_f64();
    assert!(received.bytes(Role::Receives) > 0 && rate < 2_000_000.0, "{rate}");
    assert!(
        report.local.bytes(Role::Sends) > received.bytes(Role::Receives),
        "{report:?}",
        report = report.local
    );
}

struct Quiet;

impl Observer for Quiet {
    fn connected(&mut self, _: &TestSettings) {
        panic!("nobody is there");
    }
}

fn a_missing_peer_is_given_up() {
    let link = NamespaceLink::new(slow(1.0), slow(1.0), 9).unwrap();
    let nobody = SocketAddr::from((link.address_b(), PORT));
    for transport in [tpa(), reno()] {
        let plan = plan(&transport, Direction::Forward, Limit::Bytes(1));
        let error = link.run_in_a(|| measure(&plan, &to(nobody), None, &mut Quiet)).unwrap_err();
        assert_eq!(error.to_string(), "cannot connect to 10.80.0.2:5201: no answer");
    }
}
