//! Pairs of endpoints, and scenarios.

use bytes::Bytes;
use hopline_config::document::Setting;
use hopline_config::source::Source;
use hopline_core::{NodeId, Purpose, RandomStream};
use hopline_quic::{Endpoint, StreamData};
use hopline_scenario::{CustomAlgorithms, Scenario};
use hopline_sim::Spec;
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Emulation, Pair};
use hopline_transport::quic::Config;
use hopline_transport::tcp::Ports;
use std::path::PathBuf;
use std::sync::Arc;

/// Endpoint `number` (0 connects, 1 listens) with random numbers from `seed`.
pub(crate) fn endpoint<P: StreamData>(config: Config, number: u32, seed: u64) -> Endpoint<P> {
    let ports = if number == 0 { [40_000, 443] } else { [443, 40_000] };
    let mut random = RandomStream::new(seed, 0, NodeId(number), Purpose::Transport);
    Endpoint::new(config, Ports { local: ports[0], remote: ports[1] }, &mut random).expect("valid")
}

pub(crate) fn pair<P: StreamData>(config: Config, link: &Emulation, seed: u64) -> Pair<Endpoint<P>> {
    Pair::new(endpoint(config, 0, seed), endpoint(config, 1, seed), link, seed)
}

/// Transfer of real bytes in both directions.
pub(crate) fn transfer(
    config: Config,
    totals: [u64; 2],
    link: &Emulation,
    seed: u64,
) -> Transfer<Endpoint<Bytes>> {
    Transfer::new(endpoint(config, 0, seed), endpoint(config, 1, seed), totals, link, seed, |_| {})
}

/// A flow over QUIC, over a link of 10 Mb/s and 20 ms with a queue of 50 packets.
pub(crate) const WIRED: &str = "\
duration_s = 5
transport = \"quic\"
[[node]]
name = \"a\"
interface = \"wired\"
[[node]]
name = \"b\"
interface = \"wired\"
[[link]]
a = \"a\"
b = \"b\"
rate_mbps = 10
delay_ms = 20
[[flow]]
src = \"a\"
dst = \"b\"
";

pub(crate) fn scenario(text: &str, settings: &[&str], machines: CustomAlgorithms) -> Scenario {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    let settings: Vec<_> =
        settings.iter().map(|setting| Setting::parse("--set", setting).expect("a setting")).collect();
    Scenario::parse_with(source, PathBuf::new(), &settings, machines).unwrap_or_else(|e| panic!("{e}"))
}

/// Specification of [`WIRED`] with these settings.
pub(crate) fn spec(settings: &[&str]) -> Spec {
    scenario(WIRED, settings, CustomAlgorithms::default()).spec(1).unwrap_or_else(|e| panic!("{e}"))
}

/// Two radios; nothing passes for five seconds.
pub(crate) const OUTAGE: &str = "\
duration_s = 15
transport = \"quic\"
[radio]
preset = \"dot11b\"
[nodes]
layout = \"chain\"
count = 2
spacing_m = 50
[[outage]]
from = \"n0\"
to = \"n1\"
both_ways = true
start_s = 2
end_s = 7
[[flow]]
src = \"n0\"
dst = \"n1\"
";
