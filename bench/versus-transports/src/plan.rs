//! Which links are tried, how long, how often.

use crate::peer::{Peer, Steadiness};
use hopline_core::Duration;
use hopline_testkit::Emulation;
use hopline_testkit::Extra;

/// Of the link, both ways, in bits per second of IP packets.
pub(crate) const RATE: u64 = 2_000_000;
/// Packets that the link's queue holds.
pub(crate) const QUEUE: usize = 50;
/// From this loss on, erratic transports are run with more seeds.
const HEAVY_LOSS: f64 = 0.1;

/// What the link does to data. ACKs meet the same rate, queue and latency, and nothing worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    /// One-way delay, in milliseconds.
    pub(crate) delay_ms: u64,
    /// Share of packets lost.
    pub(crate) loss: f64,
    /// Mean length of bursts of losses, in packets.
    pub(crate) burst: Option<f64>,
    /// Share of packets that take 30 ms longer.
    pub(crate) reorder: f64,
}

impl Condition {
    /// What tables call it, the delay apart.
    pub(crate) fn name(&self) -> String {
        let percent = |share: f64| (share * 100.0).round();
        match (self.burst, self.reorder > 0.0) {
            (_, true) => format!("reorder {} %", percent(self.reorder)),
            (Some(_), _) => format!("bursts {} %", percent(self.loss)),
            (None, _) => format!("loss {} %", percent(self.loss)),
        }
    }

    /// The link: there and back.
    pub(crate) fn link(&self) -> [Emulation; 2] {
        let clean = Emulation {
            rate: Some(RATE),
            queue: Some(QUEUE),
            ..Emulation::delay(Duration::from_millis(self.delay_ms))
        };
        let forth = Emulation {
            loss: self.loss,
            burst: self.burst,
            reorder: self.reorder,
            extra_delay: Duration::from_millis(30),
            extra: Extra::Exactly,
            ..clean.clone()
        };
        [forth, clean]
    }
}

/// Everything that is tried.
pub(crate) struct Plan {
    /// The links.
    pub(crate) conditions: Vec<Condition>,
    /// How long each run takes, connecting included, in seconds.
    pub(crate) seconds: f64,
    /// Runs of a steady transport.
    pub(crate) seeds: u64,
    /// Runs of an erratic one at heavy loss.
    pub(crate) erratic_seeds: u64,
}

impl Plan {
    pub(crate) fn full(seconds: f64, seeds: u64) -> Self {
        let conditions = [5, 25].into_iter().flat_map(|delay_ms| {
            let lossy = [0.0, 0.01, 0.05, 0.1, 0.2].map(|loss| (loss, None, 0.0));
            let bursts = [0.01, 0.05, 0.1].map(|loss| (loss, Some(4.0), 0.0));
            let all = lossy.into_iter().chain(bursts).chain([(0.0, None, 0.05)]);
            all.map(move |(loss, burst, reorder)| Condition { delay_ms, loss, burst, reorder })
        });
        Self { conditions: conditions.collect(), seconds, seeds, erratic_seeds: seeds.max(8) }
    }

    /// A few links, a look at each.
    pub(crate) fn quick(seconds: f64) -> Self {
        let few = [
            (0.0, None, 0.0),
            (0.05, None, 0.0),
            (0.2, None, 0.0),
            (0.05, Some(4.0), 0.0),
            (0.0, None, 0.05),
        ];
        let conditions =
            few.map(|(loss, burst, reorder)| Condition { delay_ms: 25, loss, burst, reorder }).to_vec();
        Self { conditions, seconds, seeds: 1, erratic_seeds: 3 }
    }

    /// Runs of `peer` under `condition`.
    pub(crate) fn runs(&self, peer: &dyn Peer, condition: &Condition) -> u64 {
        match peer.steadiness() {
            Steadiness::Erratic if condition.loss >= HEAVY_LOSS => self.erratic_seeds,
            _ => self.seeds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers;

    #[test]
    fn every_link_has_a_name_of_its_own() {
        for plan in [Plan::full(12.0, 2), Plan::quick(5.0)] {
            let mut names: Vec<_> = plan.conditions.iter().map(|c| (c.delay_ms, c.name())).collect();
            let n = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), n);
        }
    }

    #[test]
    fn bbr_at_heavy_loss_is_run_eight_times() {
        let plan = Plan::full(12.0, 2);
        let runs = |peer: &str, loss| {
            let peers = peers::all();
            let peer = peers.iter().find(|p| p.name() == peer).expect("it is one of them");
            let condition = plan.conditions.iter().find(|c| c.loss == loss && c.burst.is_none());
            plan.runs(peer.as_ref(), condition.expect("it is one of them"))
        };
        assert_eq!([runs("tcp-bbr", 0.05), runs("tcp-bbr", 0.1), runs("quinn-bbr", 0.2)], [2, 8, 8]);
        assert_eq!([runs("tcp-cubic", 0.2), runs("kcp-fast", 0.2)], [2, 2]);
    }

    #[test]
    fn only_data_meets_what_is_bad() {
        for condition in Plan::full(12.0, 2).conditions {
            let [forth, back] = condition.link();
            assert_eq!(
                (forth.loss, forth.burst, forth.reorder),
                (condition.loss, condition.burst, condition.reorder)
            );
            assert_eq!((back.loss, back.reorder, back.rate, back.queue), (0.0, 0.0, Some(RATE), Some(QUEUE)));
            assert_eq!((forth.latency, back.latency), (back.latency, forth.latency));
        }
    }
}
