//! Saturation throughput against the closed form, 2 to 50 stations.

use super::cell::Cell;
use super::saturation::{BackoffModel, BackoffParameters, Occupancy};
use super::*;

const PAYLOAD_BYTES: u32 = 1500;
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(40);
/// Propagation delay δ between any two stations.
const DELAY: Duration = Duration::from_micros(1);

/// Throughput and collisions of a saturated cell of 802.11b stations.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    mbps: f64,
    /// Failed attempts out of all.
    collision_probability: f64,
}

fn measure(config: &Config, stations: u32) -> Measurement {
    let mut cell = Cell::saturated(config, stations as usize, DELAY, PAYLOAD_BYTES);
    let counts = |cell: &Cell| {
        let attempts = cell.total(|s| if s.rts_sent > 0 { s.rts_sent } else { s.data_sent });
        (cell.delivered(), attempts, cell.total(|s| s.cts_timeouts + s.ack_timeouts))
    };
    cell.run(Instant::ZERO + WARM_UP);
    let before = counts(&cell);
    cell.run(Instant::ZERO + WARM_UP + MEASURED);
    let after = counts(&cell);
    let delivered_bits = 8.0 * f64::from(PAYLOAD_BYTES) * (after.0 - before.0) as f64;
    Measurement {
        mbps: delivered_bits / 1e6 / MEASURED.as_secs_f64(),
        collision_probability: (after.2 - before.2) as f64 / (after.1 - before.1) as f64,
    }
}

/// Deferral of stations that took no part in a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterCollision {
    /// DIFS, as in Bianchi 2000.
    Difs,
    /// EIFS, as standardised, since they could not decode the frames (802.11-2020 §10.3.2.3.7).
    Eifs,
}

fn occupancy(config: &Config, after: AfterCollision) -> Occupancy {
    let to_us = |d: Duration| d.as_secs_f64() * 1e6;
    let data_bytes = PAYLOAD_BYTES + config.data_extra_bytes + 28;
    let data = to_us(config.data_rate.airtime(data_bytes, config.preamble));
    let (rts, cts) = (to_us(config.control_airtime(20)), to_us(config.control_airtime(14)));
    let (sifs, difs, delay) = (to_us(config.sifs), to_us(config.difs()), to_us(DELAY));
    let answered = data + delay + sifs + cts + delay + difs;
    let with_rts = config.rts_threshold_bytes < data_bytes;
    let first = if with_rts { rts } else { data };
    let wait = if after == AfterCollision::Eifs { to_us(config.eifs()) } else { difs };
    Occupancy {
        slot: to_us(config.slot),
        success: if with_rts { rts + delay + sifs + cts + delay + sifs + answered } else { answered },
        collision: first + delay + wait,
    }
}

/// 802.11b: CW 31 to 1023 in five doublings, seven attempts of short frames.
const DSSS: BackoffParameters = BackoffParameters { w: 32.0, doublings: 5, attempts: 7 };

fn model_mbps(config: &Config, chain: BackoffModel, after: AfterCollision, stations: u32) -> f64 {
    DSSS.throughput(chain, stations, 8.0 * f64::from(PAYLOAD_BYTES), occupancy(config, after))
}

/// Measures one way of access and prints a row for each number of stations.
fn compare(rate: Rate, rts_threshold_bytes: u32) {
    let config = Config { data_rate: rate, rts_threshold_bytes, ..Config::dot11b() };
    let access = if rts_threshold_bytes == 0 { "RTS/CTS" } else { "basic" };
    for stations in [2, 5, 10, 20, 50] {
        let ours = measure(&config, stations);
        let model = |chain, after| {
            let mbps = model_mbps(&config, chain, after, stations);
            (mbps, 100.0 * (ours.mbps / mbps - 1.0))
        };
        let frozen = model(BackoffModel::Frozen, AfterCollision::Eifs);
        let with_eifs = model(BackoffModel::Bianchi2000, AfterCollision::Eifs);
        let published = model(BackoffModel::Bianchi2000, AfterCollision::Difs);
        let collide = |chain| DSSS.solve(chain, stations).collision_probability;
        println!(
            "| {} | {access} | {stations} | {:.3} | {:.3} | {:+.1} | {:.3} | {:+.1} | {:.3} | {:+.1} | {:.3} | {:.3} | {:.3} |",
            rate.mbps(),
            ours.mbps,
            frozen.0,
            frozen.1,
            with_eifs.0,
            with_eifs.1,
            published.0,
            published.1,
            ours.collision_probability,
            collide(BackoffModel::Frozen),
            collide(BackoffModel::Bianchi2000),
        );
        assert!(frozen.1.abs() < 5.0, "{stations} stations, {access}: {:+.1} %", frozen.1);
        assert!(with_eifs.1.abs() < 5.0, "{stations} stations, {access}: {:+.1} %", with_eifs.1);
        assert!(
            (ours.collision_probability - collide(BackoffModel::Frozen)).abs() < 0.03,
            "{stations} stations, {access}"
        );
    }
}

#[test]
fn saturation_throughput_is_within_5_percent_of_the_model() {
    println!(
        "| Mb/s | access | stations | hopline Mb/s | frozen chain, EIFS | diff % | Bianchi 2000, EIFS | diff % \
         | Bianchi 2000 as published | diff % | p hopline | p frozen | p 2000 |"
    );
    println!("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for rate in [Rate::Dsss2, Rate::Cck11] {
        compare(rate, 2347);
        compare(rate, 0);
    }
}
