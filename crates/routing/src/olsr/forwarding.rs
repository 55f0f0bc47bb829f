//! Reception of packets, and forwarding of messages (RFC 3626 §3.4).

use super::agent::Olsr;
use super::stats::IgnoredReason;
use crate::DuplicateCheck;
use hopline_core::{Instant, Seq16};
use hopline_wire::olsr::{Body, Message, Packet};
use std::net::Ipv4Addr;

impl Olsr {
    pub(super) fn receive(&mut self, now: Instant, from: Ipv4Addr, packet: &Packet) {
        if !self.is_other_host(from) {
            return self.stats.ignore(IgnoredReason::BadAddress);
        }
        if let Some(change) = self.links.on_packet(now, from, packet.seq) {
            self.on_neighbour_change(now, from, change);
        }
        for message in &packet.messages {
            if let Err(reason) = self.receive_message(now, from, packet.seq, message) {
                self.stats.ignore(reason);
            }
        }
    }

    fn receive_message(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        packet_seq: Seq16,
        message: &Message,
    ) -> Result<(), IgnoredReason> {
        // §3.4 (2).
        if message.originator == self.address {
            return Err(IgnoredReason::OwnMessage);
        }
        if !self.is_other_host(message.originator) {
            return Err(IgnoredReason::BadAddress);
        }
        if message.ttl == 0 {
            return Err(IgnoredReason::TtlExpired);
        }
        // A HELLO is never forwarded, and a duplicate has no effect.
        if let Body::Hello(hello) = &message.body {
            self.handle_hello(now, from, packet_seq, message, hello);
            return Ok(());
        }
        // §3.4.1 (1) and §9.5 (1). Not recorded: it may still arrive over a symmetric link.
        if !self.links.is_symmetric(from) {
            return Err(IgnoredReason::NotSymmetric);
        }
        match self.duplicates.record(now, message.originator, message.seq) {
            DuplicateCheck::New => {}
            DuplicateCheck::Duplicate => return Err(IgnoredReason::Duplicate),
            // A message that cannot be recorded would circulate for ever.
            DuplicateCheck::TableFull => return Err(IgnoredReason::TableFull),
        }
        if let Body::Tc(tc) = &message.body {
            self.handle_tc(now, message, tc);
        }
        self.forward(now, from, message)
    }

    /// Forwards a message by the default forwarding algorithm (§3.4.1 (4)). Only relays of the transmitter forward it, and
    /// only if its first copy came from there.
    fn forward(&mut self, now: Instant, from: Ipv4Addr, message: &Message) -> Result<(), IgnoredReason> {
        if !self.selectors.contains(&from) || message.ttl == 1 {
            return Ok(());
        }
        let due = now + self.stream.duration_below(self.config.max_jitter());
        let hop_count = message.hop_count.saturating_add(1);
        let passed_on = Message { ttl: message.ttl - 1, hop_count, ..message.clone() };
        if !self.outbox.send_by(due, passed_on) {
            return Err(IgnoredReason::OutboxFull);
        }
        self.stats.messages_forwarded += 1;
        Ok(())
    }
}
