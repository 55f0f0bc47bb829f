//! Parameters of a D-Proxy.

use super::holes::RecoveryConfig;
use super::key::Key;
use super::translation::Translation;
use crate::pep::QueuePosition;
use crate::table::TableLimits;
use hopline_core::Duration;
use std::net::IpAddr;

/// Parameters of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Own address on the link, source of its messages.
    pub local: IpAddr,
    /// Address of the other end. Messages from other addresses are ignored.
    pub peer: IpAddr,
    /// Shared secret of both ends. It authenticates messages until
    /// [`DProxy::handle_peer_present`](super::DProxy::handle_peer_present) sets session keys.
    pub key: Key,
    /// Cache of packets that go to the other end.
    pub cache: CacheConfig,
    /// Recovery of packets that are missing from the other end.
    pub recovery: RecoveryConfig,
    /// Turn of replayed packets, requests and answers at the link. Default last: those of the paper were late
    /// because "they were sitting in buffers" (§III-C.2; C16).
    pub queue_position: QueuePosition,
    /// Requests for holes of several packets. Default one request for each packet (§III-C.3).
    pub request_expansion: RequestExpansion,
    /// Order of delivery. Default in order: packets wait for missing ones before them (§III-C).
    pub hole_delivery: HoleDelivery,
    /// Maximum number of waiting packets of a flow; beyond it, the first hole is given up. Default 256: a
    /// replayed packet comes after all packets that wait for the link (C5).
    pub max_waiting_per_flow: u16,
    /// Maximum number of waiting packets in total; flows beyond it do not wait. Default 4096.
    pub max_waiting: u32,
    /// Time without new data of a flow that is not fully acknowledged, after which the other end is told of
    /// the last packet, up to three times. Default never: the paper leaves tail losses to TCP (C9).
    pub tail_probe_delay: Option<Duration>,
    /// Handling of packets that the link's queue refuses. Default left to the sender.
    pub overflow: QueueDropHandling,
    /// Translation of addresses by a router at one end of the link. Default [`Translation::Absent`].
    pub translation: Translation,
    /// Limits of the connection table.
    pub limits: TableLimits,
}

/// Parameters of the packet cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Maximum number of packets of a flow, at least 1; the oldest is evicted. Default 1024: more than may
    /// wait at the other end (C6).
    pub packets_per_flow: u16,
    /// Maximum number of packets in total, at least 1; the oldest is evicted. Default 16,384.
    pub packets: u32,
    /// Lifetime of a cached packet. Default 1 s: five times the waiting time of the other end.
    pub lifetime: Duration,
    /// Maximum number of replays of a packet since its sender transmitted it; beyond it, the packet counts as
    /// not cached. Default 8.
    pub max_replays: u8,
    /// Minimum time between two replays of a packet, so that two requests that one packet answers cause one
    /// replay. Default 250 µs.
    pub replay_interval: Duration,
}

impl CacheConfig {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        packets_per_flow: 1024,
        packets: 16_384,
        lifetime: Duration::from_secs(1),
        max_replays: 8,
        replay_interval: Duration::from_micros(250),
    };
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Requests for a hole that is larger than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestExpansion {
    /// One request for each missing packet, assuming the most frequent recent length (§III-C.3; C14).
    On,
    /// A request for the first packet only; the next one follows when it has arrived. For an ablation.
    Off,
}

/// Order of delivery of packets behind a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoleDelivery {
    /// Packets wait, and are forwarded in order.
    InOrder,
    /// Packets are forwarded as they arrive: losses look like reordering. For an ablation.
    OutOfOrder,
}

/// Handling of packets that the link's queue refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDropHandling {
    /// Not cached: the drop is a congestion signal for the sender.
    LeftToSender,
    /// Replayed on request, like other packets.
    Replayed,
}

impl Config {
    /// Returns the configuration of the paper.
    #[must_use]
    pub fn new(local: impl Into<IpAddr>, peer: impl Into<IpAddr>, key: Key) -> Self {
        Self {
            local: local.into(),
            peer: peer.into(),
            key,
            cache: CacheConfig::default(),
            recovery: RecoveryConfig::default(),
            queue_position: QueuePosition::Back,
            request_expansion: RequestExpansion::On,
            hole_delivery: HoleDelivery::InOrder,
            max_waiting_per_flow: 256,
            max_waiting: 4096,
            tail_probe_delay: None,
            overflow: QueueDropHandling::LeftToSender,
            translation: Translation::Absent,
            limits: TableLimits::default(),
        }
    }
}
