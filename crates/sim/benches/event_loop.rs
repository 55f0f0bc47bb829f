//! The event loop: whole runs, in events per second.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Purpose, RandomStream};
use hopline_queue::neighborhood_red::Config;
use hopline_radio::phy::reception::ReceptionModel;
use hopline_routing::aodv;
use hopline_sim::spec::{NeighborhoodSpec, NodeSet};
use hopline_sim::{Spec, simulate};

#[path = "../tests/support/mod.rs"]
mod support;

use support::{SpecBuilder, chain, grid, ns2_tcp, standing};

/// 200 nodes on a square with some ten neighbours each, and a TCP flow for every ten nodes.
fn random() -> Spec {
    let mut stream = RandomStream::global(1, 0, Purpose::Placement);
    // π·250² m² · 10 neighbours: a node for every 19 635 m².
    let side = (200.0_f64 * 19_635.0).sqrt();
    let positions: Vec<_> =
        (0..200).map(|_| (stream.uniform(0.0, side), stream.uniform(0.0, side))).collect();
    let spec = standing(&positions).aodv(aodv::Config::ns2_235());
    (0..20).fold(spec, |spec, n| spec.bulk(n, n + 100, ns2_tcp(32))).seconds(5)
}

/// With Neighborhood RED at every node, which times radios, sends notices and draws for each packet, and drops practically
/// none: beside the same network without it, this is what it costs.
fn with_inert_neighborhood_red(spec: Spec) -> Spec {
    // 245 is just above the average of a channel that is never idle: congestion is never total.
    let config = Config { max_threshold: 245.0, max_probability: 1e-6, ..Config::PAPER };
    spec.radio(|radio| {
        radio.neighborhood = Some(NeighborhoodSpec {
            config,
            members: NodeSet::All,
            observed: [].into(),
            observed_weight: config.weight,
        })
    })
}

fn event_loop(criterion: &mut Criterion) {
    let rows = |spec: Spec, n: u32| spec.bulk(5 * n, 5 * n + 4, ns2_tcp(8));
    let lanes = standing(&[(0., 0.), (200., 0.), (0., 300.), (200., 300.), (0., 600.), (200., 600.)])
        .radio(|radio| radio.phy.reception = ReceptionModel::CumulativeSinr)
        .seconds(10);
    let lanes = [(0, 1), (2, 3), (4, 5)].into_iter().fold(lanes, |spec, (a, b)| spec.bulk(a, b, ns2_tcp(32)));
    let networks = [
        ("three lanes, powers added up, 10 s", lanes),
        ("chain of 4 hops, 10 s", chain(4).bulk(0, 4, ns2_tcp(8))),
        ("grid of 5 x 5, 10 s", (0..5).fold(grid(5), rows)),
        (
            "grid of 5 x 5 with Neighborhood RED, 10 s",
            with_inert_neighborhood_red((0..5).fold(grid(5), rows)),
        ),
        ("200 nodes over AODV, 5 s", random()),
    ];
    let mut group = criterion.benchmark_group("event_loop");
    group.sample_size(10);
    for (name, spec) in networks {
        group.throughput(Throughput::Elements(simulate(&spec, 1).events));
        group.bench_with_input(BenchmarkId::from_parameter(name), &spec, |bencher, spec| {
            bencher.iter(|| simulate(spec, 1));
        });
    }
    group.finish();
}

criterion_group!(benches, event_loop);
criterion_main!(benches);
