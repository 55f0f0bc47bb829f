//! Which last hops and senders are tried, how long, how often.

use crate::middle::Middle;
use hopline_core::Duration;
use hopline_testkit::Emulation;
use serde::Serialize;

/// Of the wired link, both ways, in bits per second of IP packets.
pub(crate) const WIRED_RATE: u64 = 100_000_000;
/// One way, in milliseconds.
pub(crate) const WIRED_MS: u64 = 25;
/// Packets that the wired link's queue holds.
const WIRED_QUEUE: usize = 1000;
/// Of the last hop, one way, in milliseconds.
pub(crate) const AIR_MS: u64 = 2;
/// Packets that wait for the last hop, at most.
pub(crate) const QUEUE: usize = 100;
/// Mean length of bursts of losses, in packets.
pub(crate) const BURST: f64 = 4.0;

/// Congestion controls of senders.
pub(crate) const SENDERS: [&str; 3] = ["cubic", "reno", "bbr"];
const LOSSES: [f64; 6] = [0.0, 0.01, 0.03, 0.05, 0.1, 0.2];
/// Losses that are tried behind NAT as well.
const BEHIND_NAT: [f64; 3] = [0.0, 0.05, 0.1];

/// Where packets to the mobile host wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// At the router's interface, whose drops the router can count, and where repairs may go first.
    Router,
    /// In the link: the router neither sees the queue nor what it drops.
    Link,
}

impl Bottleneck {
    /// How tables call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Router => "queue in the router",
            Self::Link => "queue in the link",
        }
    }
}

/// The way from the mobile host to the wired network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Addresses {
    /// The sender knows the mobile host's address and calls it.
    Routed,
    /// The router masquerades the mobile host, which calls, and lets nothing in that belongs to no connection.
    Translated,
}

/// What data meet. ACKs meet the same rate, queue and delay, and nothing worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) bottleneck: Bottleneck,
    /// Of the last hop, both ways, in Mb/s of IP packets.
    pub(crate) mbps: u64,
    /// Share of packets to the mobile host that are lost.
    pub(crate) loss: f64,
    /// Mean length of bursts of losses, in packets.
    pub(crate) burst: Option<f64>,
    pub(crate) addresses: Addresses,
}

impl Condition {
    /// What tables call it, rate and queue apart.
    pub(crate) fn name(&self) -> String {
        match self.addresses {
            Addresses::Routed => self.losses(),
            Addresses::Translated => format!("{}, NAT", self.losses()),
        }
    }

    /// Name of its losses alone, whatever the router does to addresses.
    pub(crate) fn losses(&self) -> String {
        let percent = (self.loss * 100.0).round();
        if self.burst.is_some() { format!("bursts {percent} %") } else { format!("loss {percent} %") }
    }

    /// The last hop: there and back.
    pub(crate) fn air(&self) -> [Emulation; 2] {
        let clean = link(self.mbps * 1_000_000, AIR_MS, QUEUE);
        let lossy = Emulation { loss: self.loss, burst: self.burst, ..clean.clone() };
        match self.bottleneck {
            Bottleneck::Link => [lossy, clean],
            Bottleneck::Router => [Emulation { rate: None, queue: None, ..lossy }, clean],
        }
    }
}

/// The wired link, either way.
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

/// A run to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) condition: Condition,
    pub(crate) sender: &'static str,
    pub(crate) middle: Middle,
    pub(crate) seed: u64,
}

/// Everything that is tried.
pub(crate) struct Plan {
    pub(crate) conditions: Vec<Condition>,
    /// How long each run takes, connecting included, in seconds.
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

    /// Two last hops, one of them behind NAT as well: a look at each.
    pub(crate) fn quick(seconds: f64, seeds: u64) -> Self {
        let routed = |loss| Condition { addresses: Addresses::Routed, ..behind_nat(loss) };
        Self { conditions: vec![routed(0.0), routed(0.05), behind_nat(0.05)], seconds, seeds }
    }

    /// All runs with these in the middle.
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

/// A fast last hop whose queue the router sees, behind a router that translates.
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
