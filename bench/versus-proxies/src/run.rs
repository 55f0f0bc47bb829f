//! One run, and concurrent runs.

use crate::condition::{Addresses, Bottleneck, Condition};
use crate::middle::Middle;
use crate::ping::{Ping, RoundTrips};
use crate::plan::Cell;
use crate::standing::{Standing, Used};
use crate::world::{Place, SENDER, World};
use hopline_testkit::namespace::LinkStats;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use versus::kernel::PAYLOAD;
use versus::{Caller, Failure, Hosts, Kernel, Nature, Talk, pool, talk};

/// Result of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) bottleneck: &'static str,
    pub(crate) mbps: u64,
    pub(crate) condition: String,
    pub(crate) losses: String,
    pub(crate) addresses: Addresses,
    pub(crate) sender: &'static str,
    pub(crate) proxy: String,
    pub(crate) seed: u64,
    /// Goodput of the mobile host's application, from the first attempt to connect, Mb/s.
    pub(crate) goodput_mbps: f64,
    /// Packets on the last hop towards the mobile host for each full packet's worth delivered to its
    /// application.
    pub(crate) packets_per_delivered: f64,
    /// As `packets_per_delivered`, on the wired link.
    pub(crate) wired_packets_per_delivered: f64,
    /// Bytes on the last hop towards the mobile host, IP headers included, for each byte delivered to its
    /// application.
    pub(crate) bytes_per_byte: f64,
    /// Packets dropped by the full queue before the last hop.
    pub(crate) queue_drops: u64,
    /// Round-trip times of pings during the transfer.
    pub(crate) ping_median_ms: Option<f64>,
    pub(crate) ping_p95_ms: Option<f64>,
    pub(crate) ping_unanswered_pct: f64,
    /// Processor seconds of the proxy at the router for 10⁹ bytes delivered.
    pub(crate) router_s_per_gb: Option<f64>,
    /// As `router_s_per_gb`, for the other end at the mobile host.
    pub(crate) mobile_s_per_gb: Option<f64>,
    /// Resident memory of the proxy at the router before the connection, 10⁶ bytes.
    pub(crate) idle_memory_mb: Option<f64>,
    /// Growth of that memory by the end, with one connection, 10³ bytes.
    pub(crate) flow_memory_kb: Option<f64>,
    pub(crate) late_mean_ms: f64,
    pub(crate) late_p99_ms: f64,
    pub(crate) late_max_ms: f64,
    pub(crate) late_over_1ms_pct: f64,
    /// `true` if a link was late beyond its bound in all attempts.
    pub(crate) late: bool,
}

/// Number of slow last hops that cost the machine as much as a fast one.
const SLOW_FOR_FAST: usize = 2;

/// Does all runs, `parallel` fast last hops at once, then the slow ones.
pub(crate) fn all(
    cells: &[Cell],
    seconds: f64,
    parallel: usize,
    pepsal: Option<&Path>,
) -> Result<Vec<Measured>, Failure> {
    let (fast, slow): (Vec<Cell>, Vec<Cell>) = cells.iter().partition(|cell| cell.condition.mbps > 2);
    let mut runs = Vec::new();
    for (cells, parallel) in [(fast, parallel), (slow, parallel * SLOW_FOR_FAST)] {
        eprintln!("{} runs of {seconds} s, {parallel} at once", cells.len());
        runs.extend(pool::all(&cells, parallel, |cell| {
            let run = || one(cell, seconds, pepsal).map_err(|e| named(cell, &e));
            let again = |error| {
                eprintln!("\n{error}; once more");
                run()
            };
            pool::on_time(|| run().or_else(again), |measured| measured.late)
        })?);
    }
    Ok(runs)
}

fn named(cell: &Cell, error: &Failure) -> Failure {
    let Cell { condition, sender, middle, seed } = cell;
    let Condition { bottleneck, mbps, .. } = condition;
    let (place, what, middle) = (bottleneck.name(), condition.name(), middle.name());
    format!("{middle}, {sender}, {mbps} Mb/s, {what}, {place}, seed {seed}: {error}").into()
}

fn one(cell: &Cell, seconds: f64, pepsal: Option<&Path>) -> Result<Measured, Failure> {
    let Cell { condition, sender, middle, seed } = cell;
    let world = World::new(condition, *seed)?;
    let standing = Standing::start(&world, *middle, condition, pepsal)?;
    let ping = Ping::new(&world, middle.target(), condition.addresses)?;
    ping.await_path()?;
    let drops = world.queue_drops()?;
    let (called, caller) = match condition.addresses {
        Addresses::Routed => (middle.target(), Caller::A),
        Addresses::Translated => (SENDER, Caller::B),
    };
    let place = InWorld { world: &world, standing: &standing, called, caller };
    let nature = Nature {
        rate: condition.mbps * 1_000_000,
        round_trip: Duration::from_nanos(World::round_trip().as_nanos()),
    };
    let over = AtomicBool::new(false);
    let (talk, trips) = thread::scope(|scope| {
        let pings = scope.spawn(|| ping.run(&over));
        let talk = talk(&place, &Kernel::new(sender), nature, Duration::from_secs_f64(seconds));
        over.store(true, Ordering::Relaxed);
        (talk, pings.join().expect("pings do not panic"))
    });
    let drops = world.queue_drops()? - drops;
    let talk = talk?;
    let [before, after] = talk.readings;
    let talk = Talk { bytes: talk.bytes, srtt: talk.srtt, readings: [before?, after?] };
    Ok(measured(cell, seconds, &talk, &trips, drops))
}

/// A world with its proxies, and the ends of the measured connection.
struct InWorld<'a> {
    world: &'a World,
    standing: &'a Standing,
    called: Ipv4Addr,
    caller: Caller,
}

/// Counters at the beginning and at the end.
struct Reading {
    wired: LinkStats,
    air: LinkStats,
    router: Used,
    mobile: Used,
}

impl Hosts for InWorld<'_> {
    type Reading = Result<Reading, Failure>;

    fn address_called(&self) -> Ipv4Addr {
        self.called
    }

    fn caller(&self) -> Caller {
        self.caller
    }

    fn in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.world.wired.run_in_a(what)
    }

    fn in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.world.air.run_in_b(what)
    }

    fn read(&self) -> Self::Reading {
        Ok(Reading {
            wired: self.world.wired.stats(),
            air: self.world.air.stats(),
            router: self.standing.used(Place::Router)?,
            mobile: self.standing.used(Place::Mobile)?,
        })
    }
}

fn measured(
    cell: &Cell,
    seconds: f64,
    talk: &Talk<Reading>,
    trips: &RoundTrips,
    queue_drops: u64,
) -> Measured {
    let Cell { condition, sender, middle, seed } = cell;
    let [before, after] = &talk.readings;
    let useful = (talk.bytes as f64).max(1.0);
    let each = |of: fn(&Reading) -> u64| {
        let sent = (of(after) - of(before)).saturating_sub(trips.sent);
        sent as f64 * PAYLOAD / useful
    };
    let cost =
        |of: fn(&Reading) -> Duration| (of(after).saturating_sub(of(before))).as_secs_f64() * 1e9 / useful;
    let links = [after.wired.lateness, after.air.lateness];
    let worst = |of: fn(&hopline_tools::link::Lateness) -> f64| links.iter().map(of).fold(0.0, f64::max);
    let is_there = *middle != Middle::Plain;
    let grown = after.router.memory as f64 - before.router.memory as f64;
    Measured {
        bottleneck: Bottleneck::name(condition.bottleneck),
        mbps: condition.mbps,
        condition: condition.name(),
        losses: condition.losses(),
        addresses: condition.addresses,
        sender,
        proxy: middle.name(),
        seed: *seed,
        goodput_mbps: talk.bytes as f64 * 8.0 / seconds / 1e6,
        packets_per_delivered: each(|reading| reading.air.forward.sent),
        wired_packets_per_delivered: each(|reading| reading.wired.forward.sent),
        bytes_per_byte: (after.air.forward.sent_bytes - before.air.forward.sent_bytes) as f64 / useful,
        queue_drops,
        ping_median_ms: trips.quantile(0.5),
        ping_p95_ms: trips.quantile(0.95),
        ping_unanswered_pct: 100.0 - 100.0 * trips.answered.len() as f64 / trips.sent.max(1) as f64,
        router_s_per_gb: is_there.then(|| cost(|reading| reading.router.time)),
        mobile_s_per_gb: (!after.mobile.time.is_zero()).then(|| cost(|reading| reading.mobile.time)),
        idle_memory_mb: is_there.then(|| before.router.memory as f64 / 1e6),
        flow_memory_kb: is_there.then_some(grown / 1e3),
        late_mean_ms: worst(|late| late.mean.as_secs_f64() * 1e3),
        late_p99_ms: worst(|late| late.p99.as_secs_f64() * 1e3),
        late_max_ms: worst(|late| late.max.as_secs_f64() * 1e3),
        late_over_1ms_pct: worst(|late| late.over_1_ms * 100.0),
        late: links.iter().any(hopline_tools::link::Lateness::is_late),
    }
}
