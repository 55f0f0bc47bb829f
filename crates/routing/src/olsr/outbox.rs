//! Outgoing messages: each waits for its jitter at most, and all that wait share the next packet.

use super::types::Transmit;
use hopline_core::{Instant, Seq16};
use hopline_wire::olsr::{Message, PACKET_HEADER_LEN, Packet};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

#[derive(Clone, Debug)]
pub(super) struct Outbox {
    messages: Vec<Message>,
    /// Time at which the first of them is due.
    due: Instant,
    transmits: VecDeque<Transmit>,
    /// Packet sequence number of the next packet (RFC 3626 §3.3.1).
    pub(super) packet_seq: Seq16,
    limit: usize,
    max_packet_bytes: usize,
}

impl Outbox {
    pub(super) fn new(limit: u32, max_packet_bytes: u16) -> Self {
        Self {
            messages: Vec::new(),
            due: Instant::FAR_FUTURE,
            transmits: VecDeque::new(),
            packet_seq: Seq16(0),
            limit: limit as usize,
            max_packet_bytes: usize::from(max_packet_bytes),
        }
    }

    /// Sends `message` at `due` or earlier. Returns `false` if too many messages wait already.
    pub(super) fn send_by(&mut self, due: Instant, message: Message) -> bool {
        if self.messages.len() >= self.limit {
            return false;
        }
        self.send(due, message);
        true
    }

    /// Does the same for a message of this node: there is always room for the two kinds.
    pub(super) fn send(&mut self, due: Instant, message: Message) {
        self.messages.push(message);
        self.due = self.due.min(due);
    }

    /// If a message is due, sends all messages, in as few packets as possible. Returns the number of packets.
    pub(super) fn release_due(&mut self, now: Instant, source: Ipv4Addr) -> u64 {
        if self.due > now {
            return 0;
        }
        self.due = Instant::FAR_FUTURE;
        let mut packets = 0;
        let mut len = PACKET_HEADER_LEN;
        let mut messages = Vec::new();
        for message in core::mem::take(&mut self.messages) {
            let more = message.wire_len();
            if !messages.is_empty() && len + more > self.max_packet_bytes {
                self.send_in_packets(core::mem::take(&mut messages), source);
                (len, packets) = (PACKET_HEADER_LEN, packets + 1);
            }
            len += more;
            messages.push(message);
        }
        self.send_in_packets(messages, source);
        packets + 1
    }

    pub(super) const fn next_departure(&self) -> Instant {
        self.due
    }

    pub(super) fn poll(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn send_in_packets(&mut self, messages: Vec<Message>, source: Ipv4Addr) {
        let packet = Packet { seq: self.packet_seq, messages };
        self.packet_seq += 1;
        self.transmits.push_back(Transmit { packet, source });
    }
}
