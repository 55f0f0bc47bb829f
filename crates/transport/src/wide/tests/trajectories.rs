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
            format!("{name}: {digest:016x}, {} reductions", sender.stats().reductions)
        })
        .collect();
    assert_eq!(digests, EXPECTED);
}

/// Digest and number of reductions for each bottleneck.
const EXPECTED: [&str; 17] = [
    "clean: 0c7773b647578b12, 57 reductions",
    "2 Mb/s, 100 ms: b4268b0d6ab271bd, 16 reductions",
    "200 Mb/s, 2 ms: d903343e748362cd, 0 reductions",
    "loss 1 %: fcc879eb12f0ca82, 60 reductions",
    "loss 10 %: 408deebe2b1c2fbc, 59 reductions",
    "loss 30 %: 2aeba4082004be02, 58 reductions",
    "loss 60 %: 28b11b2910233f75, 18 reductions",
    "jitter: 2c069e036afac67e, 37 reductions",
    "jitter and loss: cf11a56ce84f73f7, 47 reductions",
    "marks: b710d87ee861425a, 76 reductions",
    "no queue: b8c259372310ac58, 41 reductions",
    "outage of 1 s: f41eda34bf52c421, 54 reductions",
    "outage of 5 s: 949d9a0894c43537, 43 reductions",
    "rates: ed745896d1dec4e0, 38 reductions",
    "competing: d3bf33e3f5d51817, 20 reductions",
    "competing, short: cee5d7482f1e15ce, 24 reductions",
    "competing, loss: 3a24468ec8f847e8, 34 reductions",
];
