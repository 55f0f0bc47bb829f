//! Goodput of proxies on a router that translates addresses, beside the same router without translation.

use crate::drills::world::now;
use crate::proxy::nat::{NATS, d_proxies, translating};
use crate::proxy::transfer::{Pace, Transfer};
use crate::proxy::world::{Daemon, Ground, MOBILE, SERVER, shell};

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

pub(crate) fn drill() {
    println!("6 MB over a last hop of 20 Mb/s that loses 5 %, by turns with and without masquerade:");
    let shares = MIDDLEBOXES.map(|middlebox| {
        let mut shares: Vec<f64> = (0..PAIRS)
            .map(|_| seconds(middlebox, &plain()) / seconds(middlebox, &masqueraded(middlebox)))
            .collect();
        shares.sort_by(f64::total_cmp);
        let share = shares[PAIRS / 2];
        println!(
            "  {middlebox:?}: {share:.2} of the goodput without translation, of {PAIRS} pairs {shares:.2?}"
        );
        share
    });
    assert!(shares.iter().all(|&share| share >= BOUND), "{shares:.2?}, {BOUND} are asked for");
}

fn plain() -> Ground {
    Ground::new()
}

/// The link of D-Proxy is the one whose addresses are translated.
fn masqueraded(middlebox: Middlebox) -> Ground {
    if middlebox != Middlebox::DProxy {
        return translating(&NATS[0]);
    }
    let ground = Ground::new();
    shell(&ground.mobile, "ip route del default");
    shell(&ground.router, "iptables -w -t nat -A POSTROUTING -o mobile -j MASQUERADE");
    ground
}

/// Time that a transfer takes.
fn seconds(middlebox: Middlebox, ground: &Ground) -> f64 {
    ground.lose(LOSSES);
    shell(&ground.router, "tc qdisc add dev mobile root tbf rate 20mbit burst 5kb limit 60kb");
    let _daemons: Vec<Daemon> = match middlebox {
        Middlebox::Snoop => vec![start(ground, "snoop")],
        Middlebox::MTcp => vec![start(ground, "mtcp")],
        Middlebox::Nack => vec![start(ground, "nack")],
        Middlebox::Split => vec![start(ground, "split")],
        Middlebox::DProxy => d_proxies(ground).into(),
    };
    let begun = now();
    let transfer = match middlebox {
        Middlebox::DProxy => {
            Transfer::start([&ground.server, &ground.mobile], (MOBILE, 80), BYTES, Pace::AtOnce)
        }
        _ => Transfer::download([&ground.mobile, &ground.server], (SERVER, 80), BYTES),
    };
    transfer.unwrap().arrives("a transfer");
    begun.elapsed().as_secs_f64()
}

fn start(ground: &Ground, kind: &str) -> Daemon {
    ground.start(&format!("[[proxy]]\nkind = \"{kind}\"\ninterface = \"mobile\"\n"))
}
