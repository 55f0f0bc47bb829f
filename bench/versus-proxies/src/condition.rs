//! Conditions of a run: the wired link, the last hop, its losses and its addresses.

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
        let lossy = clean.clone().with_loss(self.loss).with_burst(self.burst);
        match self.bottleneck {
            Bottleneck::Link => [lossy, clean],
            Bottleneck::Router => [lossy.with_rate(None).with_queue(None), clean],
        }
    }
}

/// Returns the wired link, in either direction.
pub(crate) fn wire() -> Emulation {
    link(WIRED_RATE, WIRED_MS, WIRED_QUEUE)
}

fn link(rate: u64, ms: u64, queue: usize) -> Emulation {
    Emulation::default().with_rate(Some(rate)).with_latency(Duration::from_millis(ms)).with_queue(Some(queue))
}
