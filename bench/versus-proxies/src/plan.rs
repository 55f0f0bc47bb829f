//! Plan of the measurement: last hops, senders, duration and repetitions.

use crate::middle::Middle;
use hopline_core::Duration;
use hopline_testkit::Emulation;
use serde::Serialize;

/// Rate of the wired link, both ways, bit/s of IP packets.
pub(crate) const WIRED_RATE: u64 = 100_000_000;
/// One-way delay of the wired link, ms.
pub(crate) const WIRED_MS: u64 = 25;
/// Queue of the wired link, packets.
const WIRED_QUEUE: usize = 1000;
/// One-way delay of the last hop, ms.
pub(crate) const AIR_MS: u64 = 2;
/// Maximum queue of the last hop, packets.
pub(crate) const QUEUE: usize = 100;
/// Mean length of loss bursts, packets.
pub(crate) const BURST: f64 = 4.0;

/// Congestion control algorithms of senders.
pub(crate) const SENDERS: [&str; 3] = ["cubic", "reno", "bbr"];
const LOSSES: [f64; 6] = [0.0, 0.01, 0.03, 0.05, 0.1, 0.2];
/// Loss ratios that are measured behind NAT as well.
const BEHIND_NAT: [f64; 3] = [0.0, 0.05, 0.1];

/// Place of the queue towards the mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The router's interface: the router counts its drops, and retransmissions may go first.
    Router,
    /// The link: the router sees neither the queue nor its drops.
    Link,
}

impl Bottleneck {
    /// Returns its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Router => "queue in the router",
            Self::Link => "queue in the link",
        }
    }
}

/// Addressing between the mobile host and the wired network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Addresses {
    /// The sender knows the mobile host's address and connects to it.
    Routed,
    /// The router masquerades the mobile host, which opens the connection, and drops incoming packets without
    /// a connection.
    Translated,
}

/// Impairments of data. ACKs have the same rate, queue and delay, and no further impairment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) bottleneck: Bottleneck,
    /// Rate of the last hop, both ways, Mb/s of IP packets.
    pub(crate) mbps: u64,
    /// Loss ratio of packets to the mobile host.
    pub(crate) loss: f64,
    /// Mean length of loss bursts, packets.
    pub(crate) burst: Option<f64>,
    pub(crate) addresses: Addresses,
}

impl Condition {
    /// Returns its name in tables, without rate and queue.
    pub(crate) fn name(&self) -> String {
        match self.addresses {
            Addresses::Routed => self.losses(),
            Addresses::Translated => format!("{}, NAT", self.losses()),
        }
    }

    /// Returns the name of its losses alone, without address translation.
    pub(crate) fn losses(&self) -> String {
        let percent = (self.loss * 100.0).round();
        if self.burst.is_some() { format!("bursts {percent} %") } else { format!("loss {percent} %") }
    }

    /// Returns the last hop: forward and backward.
    pub(crate) fn air(&self) -> [Emulation; 2] {
        let clean = link(self.mbps * 1_000_000, AIR_MS, QUEUE);
        let lossy = Emulation { loss: self.loss, burst: self.burst, ..clean.clone() };
        match self.bottleneck {
            Bottleneck::Link => [lossy, clean],
            Bottleneck::Router => [Emulation { rate: None, queue: None, ..lossy }, clean],
        }
    }
}

/// Returns the wired link, in either direction.
pub(crate) fn wire() -> Emulation {
    link(WIRED_RATE, WIRED_MS, WIRED_QUEUE)
}

fn link(rate: u64, ms: u64, queue: usize) -> Emulation {
    Emulation {
        rate: Some(rate),
        latency: Duration::from_millis(ms),
        queue: Some(queue),
        ..Emulation::default()
    }
}

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
            assert_eq!((forth.loss, forth.burst), (condition.loss, condition.burst));
            assert_eq!(
                (back.loss, back.rate, back.queue),
                (0.0, Some(condition.mbps * 1_000_000), Some(QUEUE))
            );
            let waits_in_link = condition.bottleneck == Bottleneck::Link;
            assert_eq!((forth.rate.is_some(), forth.queue.is_some()), (waits_in_link, waits_in_link));
        }
    }
}
