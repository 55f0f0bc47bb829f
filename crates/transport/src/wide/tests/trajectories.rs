//! Digests of departures over scripted bottlenecks: a change of behaviour of the rate control changes them.

use super::bottleneck::{Bottleneck, bulk};
use crate::wide::Config;
use hopline_core::{Duration, Instant};

const MS: fn(u64) -> Duration = Duration::from_millis;
const AT: fn(u64) -> Instant = Instant::from_secs;

/// Bottlenecks that lead the controller through all of its states.
pub(in crate::wide) fn bottlenecks() -> Vec<(&'static str, Bottleneck)> {
    let new = Bottleneck::new;
    vec![
        ("clean", new()),
        ("2 Mb/s, 100 ms", Bottleneck { rates: vec![(AT(0), 2e6)], delay: MS(100), ..new() }),
        ("200 Mb/s, 2 ms", Bottleneck { rates: vec![(AT(0), 200e6)], delay: MS(2), ..new() }),
        ("loss 1 %", Bottleneck { loss: 0.01, ..new() }),
        ("loss 10 %", Bottleneck { loss: 0.1, ..new() }),
        ("loss 30 %", Bottleneck { loss: 0.3, ..new() }),
        ("loss 60 %", Bottleneck { loss: 0.6, ..new() }),
        ("jitter", Bottleneck { jitter: MS(10), ..new() }),
        ("jitter and loss", Bottleneck { jitter: MS(5), loss: 0.05, ..new() }),
        ("marks", Bottleneck { marks_above: Some(MS(1)), ..new() }),
        ("no queue", Bottleneck { queue: MS(1), loss: 0.02, ..new() }),
        ("outage of 1 s", Bottleneck { outage: Some(AT(6)..AT(7)), ..new() }),
        ("outage of 5 s", Bottleneck { outage: Some(AT(6)..AT(11)), loss: 0.05, ..new() }),
        ("rates", Bottleneck { rates: vec![(AT(0), 20e6), (AT(7), 5e6), (AT(13), 40e6)], ..new() }),
        ("competing", Bottleneck { competing: Some((AT(4)..AT(14), MS(30))), ..new() }),
        ("competing, short", Bottleneck { competing: Some((AT(4)..AT(14), MS(5))), ..new() }),
        ("competing, loss", Bottleneck { competing: Some((AT(1)..AT(18), MS(38))), loss: 0.05, ..new() }),
    ]
}

#[test]
fn trajectories_match_the_recorded_digests() {
    let digests: Vec<_> = bottlenecks()
        .into_iter()
        .map(|(name, bottleneck)| {
            let (sender, digest) = bulk(Config::DEFAULT, &bottleneck, AT(20), |_, _| {});
            let delivered = sender.stats().bytes_acked as f64 / 1e6;
            format!("{name}: {digest:016x}, {} reductions, {delivered:.1} MB", sender.stats().reductions)
        })
        .collect();
    assert_eq!(digests, EXPECTED);
}

/// Digest, number of reductions and delivered data for each bottleneck.
const EXPECTED: [&str; 17] = [
    "clean: 0c7773b647578b12, 57 reductions, 47.3 MB",
    "2 Mb/s, 100 ms: b4268b0d6ab271bd, 16 reductions, 4.5 MB",
    "200 Mb/s, 2 ms: d903343e748362cd, 0 reductions, 478.7 MB",
    "loss 1 %: 64d6b1a05aadc240, 59 reductions, 46.9 MB",
    "loss 10 %: 534c7106543fc292, 57 reductions, 42.2 MB",
    "loss 30 %: 1d29d9eb4ec2e390, 58 reductions, 32.2 MB",
    "loss 60 %: d0091057326c0f33, 2 reductions, 1.4 MB",
    "jitter: 193f747e61a4d126, 41 reductions, 47.0 MB",
    "jitter and loss: e580fcd1c15c925a, 49 reductions, 44.5 MB",
    "marks: 0388514dc1ae39ad, 50 reductions, 41.1 MB",
    "no queue: c66205846229dcd5, 28 reductions, 42.4 MB",
    "outage of 1 s: f41eda34bf52c421, 54 reductions, 44.7 MB",
    "outage of 5 s: 443db86a39d647c5, 45 reductions, 32.9 MB",
    "rates: 766f3cae6315f40c, 41 reductions, 50.6 MB",
    "competing: f2109edcf4b7d5c7, 18 reductions, 45.8 MB",
    "competing, short: 6074f93f1bcac993, 22 reductions, 47.2 MB",
    "competing, loss: cec3c264de6e8696, 34 reductions, 7.7 MB",
];
