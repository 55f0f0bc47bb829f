//! Endpoints with other congestion control than their own.

use super::bottleneck::{Bottleneck, bulk, bulk_with};
use crate::tcp::{BbrConfig, CubicConfig};
use crate::wide::{BbrController, Config, Controller, CubicController, RateController};
use hopline_core::Instant;

const AT: fn(u64) -> Instant = Instant::from_secs;

/// Returns the Mb/s of data that twenty seconds over 20 Mb/s carry, and the reductions.
fn run_over<C: Controller>(controller: impl Fn(u32) -> C, loss: f64) -> (f64, u64) {
    let bottleneck = Bottleneck { loss, ..Bottleneck::new() };
    let (sender, _) = bulk_with(Config::DEFAULT, controller, &bottleneck, AT(20), |_, _| {});
    let stats = sender.stats();
    (stats.bytes_acked as f64 * 8.0 / 20.0 / 1e6, stats.reductions)
}

fn cubic(packet: u32) -> CubicController {
    CubicController::new(CubicConfig::RFC9438, packet)
}

#[test]
fn each_controller_fills_a_clean_link() {
    let own = run_over(|packet| RateController::new(Config::DEFAULT.control, packet), 0.0).0;
    let bbr = |config| run_over(move |packet| BbrController::new(config, packet, 1), 0.0).0;
    for (name, rate) in [
        ("own", own),
        ("CUBIC", run_over(cubic, 0.0).0),
        ("BBR", bbr(BbrConfig::V1)),
        ("BBRv3", bbr(BbrConfig::V3)),
    ] {
        assert!((17.0..19.2).contains(&rate), "{name}: {rate} Mb/s of 19.16");
    }
}

#[test]
fn losses_reduce_cubic_but_not_bbr() {
    let (rate, reductions) = run_over(cubic, 0.05);
    assert!(rate < 3.0 && reductions > 20, "{rate} Mb/s, {reductions} reductions");
    let (rate, _) = run_over(|packet| BbrController::new(BbrConfig::V1, packet, 1), 0.05);
    assert!(rate > 14.0, "{rate} Mb/s");
}

#[test]
fn a_boxed_controller_behaves_equally() {
    let bottleneck = Bottleneck { loss: 0.05, ..Bottleneck::new() };
    let (_, own) = bulk(Config::DEFAULT, &bottleneck, AT(10), |_, _| {});
    let boxed =
        |packet| -> Box<dyn Controller> { Box::new(RateController::new(Config::DEFAULT.control, packet)) };
    let (_, digest) = bulk_with(Config::DEFAULT, boxed, &bottleneck, AT(10), |_, _| {});
    assert_eq!(digest, own);
}
