//! Draws from a seed.

use super::kind::Kind;
use super::sketch::Draw;
use super::traces::Traces;
use super::{mixes, paths, varying};
use hopline_core::{Purpose, RandomStream};

/// Draws `count` networks from `seed`. Twenty consecutive ones have all kinds; a larger `count` has the same networks first.
///
/// With `traces`, cellular networks and every second satellite network have the rates of one of them. Other networks are the same
/// as without.
#[must_use]
pub fn generate(seed: u64, count: usize, traces: &Traces) -> Vec<Draw> {
    (0..count).map(|number| draw(seed, number, traces)).collect()
}

/// Returns network `number`, which does not depend on the others.
fn draw(seed: u64, number: usize, traces: &Traces) -> Draw {
    let kind = Kind::CYCLE[number % Kind::CYCLE.len()];
    // A cycle has one satellite network: every second one is in an odd cycle.
    let is_odd_cycle = !(number / Kind::CYCLE.len()).is_multiple_of(2);
    let has_trace = !traces.is_empty() && (kind != Kind::Satellite || is_odd_cycle);
    let mut random = RandomStream::global(seed, number as u64, Purpose::Networks);
    let run_seed = random.bits() >> 12;
    let random = &mut random;
    let drawn = match kind {
        Kind::Steady => paths::steady(random, run_seed),
        Kind::Requests => paths::requests(random, run_seed),
        Kind::Steps => varying::steps(random, run_seed),
        Kind::Walk => varying::walk(random, run_seed),
        Kind::Cellular if has_trace => varying::traced_cellular(random, run_seed, traces),
        Kind::Satellite if has_trace => varying::traced_satellite(random, run_seed, traces),
        Kind::Cellular => varying::cellular(random, run_seed),
        Kind::Outages => varying::outages(random, run_seed),
        Kind::DelaySteps => varying::delay_steps(random, run_seed),
        Kind::Satellite => varying::satellite(random, run_seed),
        Kind::Crowd => mixes::crowd(random, run_seed),
        Kind::BesideCubic => mixes::beside_cubic(random, run_seed),
        Kind::BesideDatagrams => mixes::beside_datagrams(random, run_seed),
        Kind::BesideMarked => mixes::beside_marked(random, run_seed),
    };
    Draw { id: format!("{number:03}-{}", kind.name()), kind, ..drawn }
}
