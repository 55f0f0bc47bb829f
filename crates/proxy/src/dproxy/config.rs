//! What a D-Proxy is to do.

use super::holes::Recovery;
use super::key::Key;
use super::translation::Translation;
use crate::filter::Turn;
use crate::table::Bounds;
use hopline_core::Duration;
use std::net::IpAddr;

/// How one end of a link behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its own address on the link, from which its messages come.
    pub local: IpAddr,
    /// The address of the other end. Nobody else is listened to.
    pub peer: IpAddr,
    /// Secret that both ends share. Messages are proved by it until [`DProxy::peer_came`](super::DProxy::peer_came) says by what else.
    pub key: Key,
    /// What is kept of what goes to the other end.
    pub caching: Caching,
    /// How what is missing of what comes from there is recovered.
    pub recovery: Recovery,
    /// Turn of packets that are sent again, of requests and of answers at the link. Default last: the paper's were late because
    /// "they were sitting in buffers" (§III-C.2; C16).
    pub turn: Turn,
    /// Whether what is missing is asked for packet by packet. Default it is (§III-C.3).
    pub expansion: Expansion,
    /// Whether packets wait for what is missing before them. Default they do (§III-C).
    pub holding: Holding,
    /// Most packets of a flow that wait; one more, and what they wait for first is given up. Default 256: a packet that is sent again comes
    /// behind all that waits for the link (C5).
    pub held_packets: u16,
    /// Most packets that wait in all; flows that would need more wait for nothing. Default 4096.
    pub held_in_all: u32,
    /// When nothing new has gone out of a flow for so long and not all of it is acknowledged, the other end is told of the last packet,
    /// up to three times. Default never: the paper leaves tails to TCP (C9).
    pub tail_probe: Option<Duration>,
    /// What becomes of packets that the queue of the link refuses. Default they are left to the sender.
    pub overflow: Overflow,
    /// Translation of addresses by a router at one end of the link. Default [`Translation::Absent`].
    pub translation: Translation,
    /// How much is remembered of connections.
    pub bounds: Bounds,
}

/// What an end keeps of what goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Most packets of a flow, at least 1; the oldest makes room. Default 1024: more than may wait at the other end (C6).
    pub packets_per_flow: u16,
    /// Most packets in all, at least 1; the oldest makes room. Default 16,384.
    pub packets: u32,
    /// How long a packet is kept. Default 1 s: five times what the other end waits.
    pub age: Duration,
    /// How often a packet is sent again at most since its sender has sent it; then it counts as not kept. Default 8.
    pub replays: u8,
    /// A packet that was sent again is not sent once more within this time: two requests that one packet answers bring one. Default
    /// 250 µs.
    pub replay_interval: Duration,
}

impl Default for Caching {
    fn default() -> Self {
        Self {
            packets_per_flow: 1024,
            packets: 16_384,
            age: Duration::from_secs(1),
            replays: 8,
            replay_interval: Duration::from_micros(250),
        }
    }
}

/// How a hole is asked for that is larger than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expansion {
    /// Each packet that is missing by the most frequent recent length has a request of its own (§III-C.3; C14).
    On,
    /// The first packet alone; the next one when that has come. For an ablation.
    Off,
}

/// Whether packets wait for what is missing before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// They do, and go on in order.
    InOrder,
    /// They go on as they come: losses look like reordering. For an ablation.
    AsTheyCome,
}

/// What becomes of packets that the queue of the link refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// That is congestion, which the sender is to see: nothing is kept of them.
    LeftToSender,
    /// They are sent again when they are asked for, as others.
    Repaired,
}

impl Config {
    /// An end as the paper has it.
    #[must_use]
    pub fn new(local: impl Into<IpAddr>, peer: impl Into<IpAddr>, key: Key) -> Self {
        Self {
            local: local.into(),
            peer: peer.into(),
            key,
            caching: Caching::default(),
            recovery: Recovery::default(),
            turn: Turn::Last,
            expansion: Expansion::On,
            holding: Holding::InOrder,
            held_packets: 256,
            held_in_all: 4096,
            tail_probe: None,
            overflow: Overflow::LeftToSender,
            translation: Translation::Absent,
            bounds: Bounds::default(),
        }
    }
}
