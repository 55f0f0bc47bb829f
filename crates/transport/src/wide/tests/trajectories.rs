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
    "clean: 8260518524536076, 58 reductions, 47.3 MB",
    "2 Mb/s, 100 ms: a22b1fb9c396479e, 15 reductions, 4.2 MB",
    "200 Mb/s, 2 ms: 138f1865f7ad3e2f, 0 reductions, 478.7 MB",
    "loss 1 %: bf6371d7f4548cb1, 58 reductions, 46.8 MB",
    "loss 10 %: b773d07d63949a9f, 50 reductions, 41.7 MB",
    "loss 30 %: 893f3a2390601efa, 50 reductions, 32.0 MB",
    "loss 60 %: 396bab300c2feafa, 1 reductions, 1.2 MB",
    "jitter: 7d660a56decc0797, 41 reductions, 46.9 MB",
    "jitter and loss: 69b0eb7687d6395c, 51 reductions, 44.4 MB",
    "marks: c79a976920b3bdbb, 51 reductions, 41.1 MB",
    "no queue: e66de5794cd85535, 11 reductions, 43.0 MB",
    "outage of 1 s: 37653de00f490c28, 55 reductions, 44.6 MB",
    "outage of 5 s: 1b3fa9dbbee76b66, 42 reductions, 33.0 MB",
    "rates: 706f99836bc05e43, 46 reductions, 50.8 MB",
    "competing: f67daad2b36a0495, 19 reductions, 46.1 MB",
    "competing, short: 25681d52a9e8ff27, 23 reductions, 47.2 MB",
    "competing, loss: 1b59c7a70e85663c, 32 reductions, 7.4 MB",
];
