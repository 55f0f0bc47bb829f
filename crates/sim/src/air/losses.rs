//! Losses between pairs of nodes, each direction by itself.

use crate::spec::LossSpec;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_radio::phy::errors::ErrorProcess;

/// Losses at work, by sender and receiver.
#[derive(Debug)]
pub(super) struct LossProcesses(Vec<LossProcess>);

#[derive(Debug)]
struct LossProcess {
    pair: (NodeId, NodeId),
    errors: ErrorProcess,
    stream: RandomStream,
}

impl LossProcesses {
    /// Creates the losses of `specs`. Of two entries for the same pair and direction, the first holds.
    pub(super) fn new(specs: &[LossSpec], (seed, run): (u64, u64)) -> Self {
        let loss = |spec: &LossSpec| LossProcess {
            pair: (spec.from, spec.to),
            errors: ErrorProcess::new(spec.errors),
            stream: RandomStream::keyed(seed, run, key(spec.from, spec.to), Purpose::Errors),
        };
        let mut losses: Vec<LossProcess> = specs.iter().map(loss).collect();
        losses.sort_by_key(|loss| loss.pair);
        losses.dedup_by_key(|loss| loss.pair);
        Self(losses)
    }

    /// Returns whether a frame of `bits` bits and this airtime, from `from`, that arrived at `to` by `now` is
    /// lost.
    #[inline]
    pub(super) fn corrupts(
        &mut self,
        now: Instant,
        (from, to): (NodeId, NodeId),
        bits: u64,
        airtime: Duration,
    ) -> bool {
        // Most networks have none, and this is asked for every frame.
        if self.0.is_empty() {
            return false;
        }
        let Ok(at) = self.0.binary_search_by_key(&(from, to), |loss| loss.pair) else { return false };
        let LossProcess { errors, stream, .. } = &mut self.0[at];
        errors.corrupts(now, bits, airtime, stream)
    }
}

/// Returns the owner of the pair's random numbers: no radio has its number, nor a wire.
fn key(from: NodeId, to: NodeId) -> u64 {
    1 << 63 | u64::from(from.0) << 32 | u64::from(to.0)
}
