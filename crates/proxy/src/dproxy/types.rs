//! Verdicts, actions and counters of an end of a link.

use crate::pep::QueuePosition;
use hopline_wire::dproxy::Sealed;
use std::net::IpAddr;

/// Verdict on a packet that has come over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The packet is forwarded, before all that [`DProxy::poll_action`](super::DProxy::poll_action) returns.
    Forward,
    /// The middlebox keeps the packet; [`DProxyAction::Forward`] returns it.
    Delayed,
}

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DProxyAction<K> {
    /// Send a packet over the link again. [`QueuePosition::Front`]: ahead of all packets that wait for the link, but
    /// behind those that already go first.
    Retransmit(QueuePosition, K),
    /// Forward a packet that waited.
    Forward(K),
    /// Send a message to the other end, as a UDP datagram between ports [`hopline_wire::dproxy::PORT`].
    Send {
        /// Address of the other end.
        to: IpAddr,
        /// Turn at the link: [`Config::queue_position`](super::Config::queue_position) for requests and answers, last for tail probes.
        queue_position: QueuePosition,
        /// The message.
        sealed: Sealed,
    },
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Data packets cached on transmission.
    pub cached: u64,
    /// Packets evicted for other packets, or expired.
    pub evicted: u64,
    /// Packets not cached because the link's queue refused them.
    pub refused: u64,
    /// Packets replayed.
    pub replayed: u64,
    /// Requested packets that were replayed a moment ago.
    pub recently_replayed: u64,
    /// Requested packets that were replayed too often.
    pub exhausted: u64,
    /// Requests for packets that are not cached.
    pub not_cached: u64,
    /// Tail probes.
    pub tail_probes: u64,
    /// Packets that waited for missing ones.
    pub delayed: u64,
    /// Number of holes given up because too many packets waited.
    pub overflowed: u64,
    /// Number of times that more was missing than is requested.
    pub excess_losses: u64,
    /// ACK numbers of data that were never sent.
    pub invalid_acks: u64,
    /// Malformed messages: cut short, too long, of another version or type.
    pub malformed: u64,
    /// Messages from other addresses than the peer's.
    pub foreign: u64,
    /// Messages that arrived while the other end was absent: of a former session, or of one that has just
    /// begun.
    pub without_session: u64,
    /// Messages without a valid tag.
    pub forged: u64,
    /// Messages with a repeated number, or one below the replay window.
    pub replays_refused: u64,
    /// Messages for unknown flows.
    pub unknown_flows: u64,
    /// Answers without a request.
    pub unsolicited: u64,
    /// Connections evicted to make room for other connections.
    pub flows_evicted: u64,
    /// Connections that expired after silence.
    pub flows_expired: u64,
}
