//! Goodput of proxies on a router that translates addresses, beside the same router without translation.

use crate::drills::world::now;
use crate::proxy::ipv6;
use crate::proxy::nat::{NATS, d_proxies, link_translated, translating};
use crate::proxy::transfer::{Pace, Transfer};
use crate::proxy::world::{Daemon, Ground, Version, shell};

/// Bytes of a transfer: some 2.5 s without a loss.
const BYTES: usize = 6_000_000;
/// Router to mobile host, a twentieth of the segments is lost.
const LOSSES: &str = "meta l4proto tcp numgen random mod 100 < 5";
/// Pairs of runs of which the median counts.
const PAIRS: usize = 5;
/// Least share of the goodput without translation.
const BOUND: f64 = 0.95;

/// Kind of middlebox on the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Middlebox {
    Snoop,
    MTcp,
    Nack,
    Split,
    DProxy,
}

const MIDDLEBOXES: [Middlebox; 5] =
    [Middlebox::Snoop, Middlebox::MTcp, Middlebox::Nack, Middlebox::Split, Middlebox::DProxy];
/// Middleboxes over IPv6, one for each way to deal with translation.
const OVER_IPV6: [Middlebox; 3] = [Middlebox::Snoop, Middlebox::Split, Middlebox::DProxy];

pub(crate) fn drill() {
    println!("6 MB over a last hop of 20 Mb/s that loses 5 %, by turns with and without masquerade:");
    let over_ipv4 = MIDDLEBOXES.map(|middlebox| share(Version::V4, middlebox));
    let over_ipv6 = OVER_IPV6.map(|middlebox| share(Version::V6, middlebox));
    let is_enough = |share: &f64| *share >= BOUND;
    assert!(
        over_ipv4.iter().chain(&over_ipv6).all(is_enough),
        "{over_ipv4:.2?} over IPv4, {over_ipv6:.2?} over IPv6, {BOUND} are asked for"
    );
}

/// Median share of the goodput without translation.
fn share(version: Version, middlebox: Middlebox) -> f64 {
    let seconds = |ground: Ground| seconds(version, middlebox, &ground);
    let mut shares: Vec<f64> =
        (0..PAIRS).map(|_| seconds(Ground::new()) / seconds(masqueraded(version, middlebox))).collect();
    shares.sort_by(f64::total_cmp);
    let share = shares[PAIRS / 2];
    println!(
        "  {middlebox:?} over {version}: {share:.2} of the goodput without translation, of {PAIRS} pairs {shares:.2?}"
    );
    share
}

/// The link of D-Proxy is the one whose addresses are translated.
fn masqueraded(version: Version, middlebox: Middlebox) -> Ground {
    match (middlebox, version) {
        (Middlebox::DProxy, _) => link_translated(version),
        (_, Version::V4) => translating(&NATS[0]),
        (_, Version::V6) => translating(&ipv6::NATS[0]),
    }
}

/// Time that a transfer takes.
fn seconds(version: Version, middlebox: Middlebox, ground: &Ground) -> f64 {
    ground.lose(LOSSES);
    shell(&ground.router, "tc qdisc add dev mobile root tbf rate 20mbit burst 5kb limit 60kb");
    let _daemons: Vec<Daemon> = match middlebox {
        Middlebox::Snoop => vec![start(ground, "snoop")],
        Middlebox::MTcp => vec![start(ground, "mtcp")],
        Middlebox::Nack => vec![start(ground, "nack")],
        Middlebox::Split => vec![start(ground, "split")],
        Middlebox::DProxy => d_proxies(ground, version).into(),
    };
    let begun = now();
    let transfer = match middlebox {
        Middlebox::DProxy => {
            Transfer::start([&ground.server, &ground.mobile], (version.mobile(), 80), BYTES, Pace::AtOnce)
        }
        _ => Transfer::download([&ground.mobile, &ground.server], (version.server(), 80), BYTES),
    };
    transfer.unwrap().arrives("a transfer");
    begun.elapsed().as_secs_f64()
}

fn start(ground: &Ground, kind: &str) -> Daemon {
    ground.start(&format!("[[proxy]]\nkind = \"{kind}\"\ninterface = \"mobile\"\n"))
}
