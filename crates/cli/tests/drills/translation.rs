//! Goodput of proxies on a router with NAT, compared with the same router without NAT, and without a proxy.

use crate::drills::delay::Delay;
use crate::drills::world::now;
use crate::proxy::ipv6;
use crate::proxy::nat::{NATS, d_proxies, link_translated, tcp_count, translating_ground};
use crate::proxy::transfer::{Pace, Transfer, connected};
use crate::proxy::world::{Daemon, Ground, Version, shell, until_or};
use hopline_linux::Namespace;
use hopline_linux::tcp::set_congestion_control;
use socket2::SockRef;
use std::time::Duration;

/// Bytes of a transfer if a middlebox repairs losses: some 3 s.
const REPAIRED_BYTES: usize = 6_000_000;
/// Bytes of a transfer if the sender repairs losses: some 8 s.
const UNREPAIRED_BYTES: usize = 2_000_000;
/// Losses from the router to the mobile host: one in twenty segments. The handshake is spared, since its retransmission
/// takes a second.
const LOSSES: &str = "meta l4proto tcp numgen inc mod 20 == 7";
/// Delay from the server to the router.
const DELAY: Duration = Duration::from_millis(10);
/// Number of pairs of runs for a mean.
const PAIRS: usize = 5;
/// Number of runs without a proxy for a median.
const BARE: usize = 3;
/// Least share of the goodput without translation.
const BOUND: f64 = 0.95;
/// Least number of segments that a middlebox retransmits, of some 200 lost ones.
const REPAIRS: u64 = 100;

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
/// Middleboxes over IPv6, one for each way to handle NAT.
const OVER_IPV6: [Middlebox; 3] = [Middlebox::Snoop, Middlebox::Split, Middlebox::DProxy];

impl Middlebox {
    /// Returns whether it repairs losses towards a mobile host.
    const fn repairs_downloads(self) -> bool {
        matches!(self, Self::Snoop | Self::Split | Self::DProxy)
    }

    fn start(self, ground: &Ground, version: Version) -> Vec<Daemon> {
        let one = |kind: &str| {
            vec![ground.start(&format!("[[proxy]]\nkind = \"{kind}\"\ninterface = \"mobile\"\n"))]
        };
        match self {
            Self::Snoop => one("snoop"),
            Self::MTcp => one("mtcp"),
            Self::Nack => one("nack"),
            Self::Split => one("split"),
            Self::DProxy => d_proxies(ground, version).into(),
        }
    }

    /// Checks that a repairing middlebox has retransmitted segments.
    fn assert_repaired(self, ground: &Ground, daemons: &[Daemon]) {
        if !self.repairs_downloads() {
            return;
        }
        let counted = || match self {
            Self::Snoop => daemons[0].metric("snoop", "local_retransmissions"),
            Self::DProxy => daemons[0].metric("d-proxy", "packets_sent_again"),
            _ => retransmitted(&ground.router),
        };
        until_or(|| panic!("{self:?} has sent {} segments again", counted()), || counted() >= REPAIRS);
    }
}

pub(crate) fn drill() {
    println!(
        "Mb/s over 10 ms and a last hop of 20 Mb/s that loses 5 %, CUBIC, means of {PAIRS} pairs by turns:"
    );
    let of = |version, middleboxes: &[Middlebox]| -> Vec<String> {
        let bare = median((0..BARE).map(|_| goodput(version, None, &Ground::new())));
        middleboxes.iter().filter_map(|middlebox| compared(version, *middlebox, bare).err()).collect()
    };
    let failures = [of(Version::V4, &MIDDLEBOXES), of(Version::V6, &OVER_IPV6)].concat();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Compares a middlebox on a router with NAT with one without, and with the goodput without a middlebox.
fn compared(version: Version, middlebox: Middlebox, bare: f64) -> Result<(), String> {
    let pair = |_| {
        [Ground::new(), masqueraded(version, middlebox)]
            .map(|ground| goodput(version, Some(middlebox), &ground))
    };
    let pairs: Vec<[f64; 2]> = (0..PAIRS).map(pair).collect();
    // Means: goodput has two levels, depending on whether the sender's first queue ends in a timeout, and a median is one of
    // them.
    let [untranslated, translated] =
        [0, 1].map(|at| pairs.iter().map(|pair| pair[at]).sum::<f64>() / PAIRS as f64);
    let share = translated / untranslated;
    let line = format!(
        "{middlebox:?} over {version}: without a proxy {bare:.1}, without translation {untranslated:.1}, with it {translated:.1}, share {share:.2}"
    );
    println!("  {line}; pairs {pairs:.1?}");
    let gains = translated > bare || !middlebox.repairs_downloads();
    if share >= BOUND && gains { Ok(()) } else { Err(line) }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Creates a router with NAT. For D-Proxy, the addresses on its link are translated.
fn masqueraded(version: Version, middlebox: Middlebox) -> Ground {
    match (middlebox, version) {
        (Middlebox::DProxy, _) => link_translated(version),
        (_, Version::V4) => translating_ground(&NATS[0]),
        (_, Version::V6) => translating_ground(&ipv6::NATS[0]),
    }
}

/// Returns the goodput of a transfer to the mobile host, in Mb/s.
fn goodput(version: Version, middlebox: Option<Middlebox>, ground: &Ground) -> f64 {
    ground.lose(LOSSES);
    shell(&ground.router, "tc qdisc add dev mobile root tbf rate 20mbit burst 5kb limit 60kb");
    let _delay = Delay::of(&ground.router, "fixed", DELAY);
    let daemons = middlebox.map(|middlebox| middlebox.start(ground, version)).unwrap_or_default();
    let begun = now();
    let [sender, receiver] = match middlebox {
        Some(Middlebox::DProxy) => {
            let to = (version.mobile(), 80);
            connected([&ground.server, &ground.mobile], to, to).unwrap()
        }
        _ => {
            let from = (version.server(), 80);
            let [receiver, sender] = connected([&ground.mobile, &ground.server], from, from).unwrap();
            [sender, receiver]
        }
    };
    set_congestion_control(&SockRef::from(&sender), "cubic").unwrap();
    let bytes =
        if middlebox.is_some_and(Middlebox::repairs_downloads) { REPAIRED_BYTES } else { UNREPAIRED_BYTES };
    Transfer::between(sender, receiver, bytes, Pace::AtOnce).unwrap().arrives("a transfer");
    let seconds = begun.elapsed().as_secs_f64();
    middlebox.iter().for_each(|middlebox| middlebox.assert_repaired(ground, &daemons));
    bytes as f64 * 8e-6 / seconds
}

/// Returns the number of segments that a host's TCP has retransmitted.
fn retransmitted(host: &Namespace) -> u64 {
    tcp_count(host, "RetransSegs")
}
