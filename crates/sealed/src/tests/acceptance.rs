//! Acceptance tests for every transport (`hopline_testkit::cases`), encrypted: 10 MB over bad links.

use super::net::{A, App, B, Net, START, exchange, transport};
use super::{keys, shared};
use crate::{Credentials, HostConfig, TransportConfig};
use hopline_core::{Duration, Instant};
use hopline_testkit::Side;
use hopline_testkit::cases::{Case, Rebind, acceptance_cases};

/// Returns a configuration with keep-alives, which let a sender find a receiver again after a change of its
/// address.
fn with_keep_alives() -> TransportConfig {
    transport().with_keep_alive(Some(Duration::from_secs(5)))
}

fn carry(case: &Case, credentials: &[Credentials; 2]) -> (Instant, u64) {
    let mut net = Net::new(2, &HostConfig::default(), &case.forward, case.seed);
    net.change_link(B, case.reverse.clone());
    net.nodes[B].host.listen(credentials[B].clone(), with_keep_alives(), 16).unwrap();
    let at_a = net.connect(credentials, with_keep_alives());
    assert!(net.run_while(case.deadline, |net| net.accepted(B).is_none()), "{}", case.name);
    let at_b = net.accepted(B).expect("just seen");
    let mut apps = [App::new(A, at_a, case.bytes), App::new(B, at_b, 0)];
    if let Some(Rebind { at, side, old }) = case.rebind {
        exchange(&mut net, &mut apps, at + START);
        net.rebind(if side == Side::A { A } else { B }, old);
    }
    assert!(exchange(&mut net, &mut apps, case.deadline), "{}: {apps:?} at {}", case.name, net.now);
    assert_eq!(apps[B].got.received(), case.bytes, "{}", case.name);
    for (node, emulation) in [(A, &case.forward), (B, &case.reverse)] {
        assert_eq!(
            emulation.loss() > 0.0,
            net.counts(node).losses > 0,
            "{}: is it the right link?",
            case.name
        );
    }
    let moved: u64 = net.nodes.iter().map(|node| node.host.stats().moved).sum();
    assert_eq!(moved, u64::from(case.rebind.is_some()), "{}", case.name);
    (net.now, net.nodes[A].host.stats().datagrams_sent)
}

fn all(credentials: &[Credentials; 2], which: impl Fn(usize) -> bool) {
    for (_, case) in acceptance_cases().into_iter().enumerate().filter(|(at, _)| which(*at)) {
        let (at, sent) = carry(&case, credentials);
        println!("{:<44} {:>8.1} s, {sent:>5} datagrams", case.name, at.as_secs_f64());
    }
}

#[test]
fn ten_megabytes_arrive_encrypted_over_every_bad_link_1() {
    all(&keys(), |at| at % 2 == 0);
}

#[test]
fn ten_megabytes_arrive_encrypted_over_every_bad_link_2() {
    all(&shared(), |at| at % 2 == 1);
}
