//! Plan of the measurement: last hops, senders, duration and repetitions.

use crate::condition::{Addresses, Bottleneck, Condition};
use crate::middle::Middle;

/// Mean length of loss bursts, packets.
pub(crate) const BURST: f64 = 4.0;

/// Congestion control algorithms of senders.
pub(crate) const SENDERS: [&str; 3] = ["cubic", "reno", "bbr"];
const LOSSES: [f64; 6] = [0.0, 0.01, 0.03, 0.05, 0.1, 0.2];
/// Loss ratios that are measured behind NAT as well.
const BEHIND_NAT: [f64; 3] = [0.0, 0.05, 0.1];

/// A run of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) condition: Condition,
    pub(crate) sender: &'static str,
    pub(crate) middle: Middle,
    pub(crate) seed: u64,
}

/// The whole plan.
pub(crate) struct Plan {
    pub(crate) conditions: Vec<Condition>,
    /// Duration of each run in seconds, connection set-up included.
    pub(crate) seconds: f64,
    pub(crate) seeds: u64,
}

impl Plan {
    pub(crate) fn full(seconds: f64, seeds: u64) -> Self {
        let random = LOSSES.map(|loss| (loss, None));
        let bursts = LOSSES[1..].iter().map(|&loss| (loss, Some(BURST)));
        let what: Vec<_> = random.into_iter().chain(bursts).collect();
        let condition = |bottleneck, mbps| {
            move |&(loss, burst): &(f64, Option<f64>)| Condition {
                bottleneck,
                mbps,
                loss,
                burst,
                addresses: Addresses::Routed,
            }
        };
        let mut conditions: Vec<_> = what.iter().map(condition(Bottleneck::Router, 20)).collect();
        conditions.extend(BEHIND_NAT.map(behind_nat));
        conditions.extend(what.iter().map(condition(Bottleneck::Router, 2)));
        conditions.extend(random.iter().map(condition(Bottleneck::Link, 20)));
        Self { conditions, seconds, seeds }
    }

    /// Returns a short plan: two last hops, one of them behind NAT as well.
    pub(crate) fn quick(seconds: f64, seeds: u64) -> Self {
        let routed = |loss| Condition { addresses: Addresses::Routed, ..behind_nat(loss) };
        Self { conditions: vec![routed(0.0), routed(0.05), behind_nat(0.05)], seconds, seeds }
    }

    /// Returns all runs with these proxies.
    pub(crate) fn cells(&self, middles: &[Middle], senders: &[&'static str]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &condition in &self.conditions {
            for &sender in senders {
                for &middle in middles.iter().filter(|middle| middle.serves(condition.addresses)) {
                    cells.extend((1..=self.seeds).map(|seed| Cell { condition, sender, middle, seed }));
                }
            }
        }
        cells
    }
}

/// Returns a fast last hop with the queue in the router, behind address translation.
fn behind_nat(loss: f64) -> Condition {
    Condition {
        bottleneck: Bottleneck::Router,
        mbps: 20,
        loss,
        burst: None,
        addresses: Addresses::Translated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::QUEUE;

    #[test]
    fn every_last_hop_is_tried_once() {
        for plan in [Plan::full(10.0, 2), Plan::quick(5.0, 1)] {
            for (index, condition) in plan.conditions.iter().enumerate() {
                let same = |other: &Condition| {
                    (other.bottleneck, other.mbps) == (condition.bottleneck, condition.mbps)
                };
                let names = plan.conditions[index + 1..].iter().filter(|c| same(c)).map(Condition::name);
                assert!(names.into_iter().all(|name| name != condition.name()), "{condition:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_called_from_behind_nat_is_not_tried_there() {
        let cells = Plan::quick(5.0, 1).cells(&[Middle::Plain, Middle::SplitTpa], &["cubic"]);
        let behind: Vec<Middle> = cells
            .iter()
            .filter(|cell| cell.condition.addresses == Addresses::Translated)
            .map(|cell| cell.middle)
            .collect();
        assert_eq!((behind, cells.len()), (vec![Middle::Plain], 5));
    }

    #[test]
    fn only_data_are_lost_and_packets_wait_in_one_place() {
        for condition in Plan::full(10.0, 2).conditions {
            let [forth, back] = condition.air();
            assert_eq!((forth.loss(), forth.burst()), (condition.loss, condition.burst));
            assert_eq!(
                (back.loss(), back.rate(), back.queue()),
                (0.0, Some(condition.mbps * 1_000_000), Some(QUEUE))
            );
            let waits_in_link = condition.bottleneck == Bottleneck::Link;
            assert_eq!((forth.rate().is_some(), forth.queue().is_some()), (waits_in_link, waits_in_link));
        }
    }
}
