//! Window on the last hop: packets wait here instead of in a queue further on that does not report its drops.
//!
//! If packets for a mobile host queue inside a modem, in a driver or behind the next hop, a middlebox cannot
//! distinguish drops of that queue from losses of the link, and its retransmissions wait behind that queue.
//! [`HopWindow`] wraps such a middlebox, on its last-hop side. It limits the bytes in flight to each mobile
//! host to what keeps the hop busy. Further packets wait in its own queue. Drops of this queue are reported
//! to the middlebox ([`LastHopProgress`]), and retransmissions bypass it.
//!
//! The window is measured as in BBR (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016): maximum delivery rate times minimum round-trip time, plus a
//! margin. The last hop is first in, first out. An ACK therefore covers all packets sent before the one that
//! it acknowledges: they have arrived or are lost, and are no longer in flight.

mod host;
mod rate;
mod types;
mod wait_queue;

use crate::packet::{Connection, Packet, Verdict};
use crate::pep::{LastHopProgress, Pep, QueuePosition, Transmit};
use crate::table::{Table, TableIndex, TableLimits};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::Flags;
use host::{Host, MobileAck};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub use types::{Config, StoredPacket};
use types::{PacketInfo, Transmission};

/// A middlebox, and the window between it and the last hop.
#[derive(Debug)]
pub struct HopWindow<M, K> {
    /// `None`: all packets pass.
    config: Option<Config>,
    middlebox: M,
    hosts: Table<Host<K>>,
    /// End of the highest sequence number of each connection.
    highest_seqs: Table<Seq32>,
    outgoing: VecDeque<Transmit<K>>,
    stats: WindowStats,
    /// Bytes of all waiting packets.
    waiting_bytes: u64,
}

/// Counters of a [`HopWindow`] and its middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats<S> {
    /// Counters of the middlebox.
    pub middlebox: S,
    /// Counters of the window.
    pub window: WindowStats,
}

/// Counters of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// Packets that waited.
    pub delayed: u64,
    /// Packets dropped because of a full queue or a long wait: congestion.
    pub dropped: u64,
    /// Packets given up because no acknowledgment came.
    pub unacknowledged: u64,
}

/// Maximum distance of sequence numbers of a connection.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;

/// Maximum number of waiting bytes in total; beyond it packets pass.
const MAX_TOTAL_WAITING_BYTES: u64 = 64 << 20;

impl<M: Pep<StoredPacket<K>>, K: Clone> HopWindow<M, K> {
    /// Creates a window around a middlebox. `None`: no window; all packets pass.
    #[must_use]
    pub fn new(config: Option<Config>, bounds: TableLimits, machine: M) -> Self {
        let (hosts, ends) = (Table::new(bounds), Table::new(bounds));
        let (out, stats) = (VecDeque::new(), WindowStats::default());
        Self { config, middlebox: machine, hosts, highest_seqs: ends, outgoing: out, stats, waiting_bytes: 0 }
    }

    /// Returns the middlebox.
    #[must_use]
    pub const fn middlebox(&self) -> &M {
        &self.middlebox
    }

    /// Returns the middlebox, to set its parameters.
    pub const fn middlebox_mut(&mut self) -> &mut M {
        &mut self.middlebox
    }

    /// Returns whether packets may wait.
    #[must_use]
    pub const fn has_window(&self) -> bool {
        self.config.is_some()
    }

    /// Sets other parameters, and keeps the state of hosts; hosts with waiting packets keep their queue.
    /// Returns `false`, and changes nothing, if this would add or remove the window.
    #[must_use]
    pub const fn set_config(&mut self, config: Option<Config>) -> bool {
        let is_alike = self.config.is_some() == config.is_some();
        if is_alike {
            self.config = config;
        }
        is_alike
    }

    /// Returns the number of bytes of all waiting packets.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Handles a packet with data that the middlebox forwards. Returns whether it is sent at once or waits.
    fn admit(&mut self, now: Instant, config: &Config, packet: StoredPacket<K>) -> Admission {
        let (span, place) = (packet.info, self.host_entry(now, packet.info.connection.mobile.0));
        let host = self.hosts.state_mut(place);
        let goes =
            !host.has_waiting() && host.has_room(config) || self.waiting_bytes >= MAX_TOTAL_WAITING_BYTES;
        if goes {
            host.on_sent(now, config, span);
            self.set_timer(place);
            return Admission::SendNow;
        }
        let before = host.waiting_bytes();
        let displaced = host.enqueue(now, config, packet);
        self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        self.stats.delayed += 1;
        self.middlebox.handle_progress(now, span.connection, span.seq, LastHopProgress::Queued);
        self.report_drops(now, displaced.map(|packet| packet.info));
        Admission::Queued
    }

    /// Reports drops of this queue to the middlebox.
    fn report_drops(&mut self, now: Instant, dropped: impl IntoIterator<Item = PacketInfo>) {
        for PacketInfo { connection, seq, .. } in dropped {
            self.stats.dropped += 1;
            self.middlebox.handle_progress(now, connection, seq, LastHopProgress::Dropped);
        }
    }

    /// Takes packets that the middlebox sends, and releases waiting packets for which there is room.
    fn process(&mut self, now: Instant, mobile: Option<IpAddr>) {
        let Some(config) = self.config else { return };
        while let Some(transmit) = self.middlebox.poll_transmit() {
            if let Transmit::Retransmission { packet: StoredPacket { info: span, .. }, .. } = transmit {
                let place = self.host_entry(now, span.connection.mobile.0);
                self.hosts.state_mut(place).on_sent(
                    now,
                    &config,
                    PacketInfo { transmission: Transmission::Retransmission, ..span },
                );
                self.set_timer(place);
            }
            self.outgoing.push_back(unwrap_transmit(transmit));
        }
        if let Some(place) = mobile.and_then(|mobile| self.hosts.find(&host_key(mobile))) {
            self.release(now, &config, place);
        }
    }

    /// Releases waiting packets of a host for which there is room.
    fn release(&mut self, now: Instant, config: &Config, place: TableIndex) {
        let (host, mut dropped) = (self.hosts.state_mut(place), Vec::new());
        let before = host.waiting_bytes();
        while let Some(StoredPacket { info: span, packet: kept }) =
            host.next_packet(now, config, &mut dropped)
        {
            self.middlebox.handle_progress(now, span.connection, span.seq, LastHopProgress::Sent);
            self.outgoing.push_back(Transmit::Retransmission {
                queue_position: QueuePosition::Back,
                connection: span.connection,
                packet: kept,
                tsval: None,
            });
        }
        self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        self.report_drops(now, dropped.into_iter().map(|packet| packet.info));
        self.set_timer(place);
    }

    fn host_entry(&mut self, now: Instant, mobile: IpAddr) -> TableIndex {
        if let Some(place) = self.hosts.touch(now, &host_key(mobile)) {
            return place;
        }
        let (place, evicted) = self.hosts.insert(now, host_key(mobile), Host::new(now));
        if let Some((_, host)) = evicted {
            self.waiting_bytes -= host.waiting_bytes();
        }
        place
    }

    fn set_timer(&mut self, place: TableIndex) {
        let due = self.hosts.state_mut(place).next_timeout();
        self.hosts.set_timer(place, due);
    }

    /// Returns whether data are new, that is, beyond all earlier data of the connection.
    fn classify_transmission(
        &mut self,
        now: Instant,
        connection: Connection,
        seq: Seq32,
        end: Seq32,
    ) -> Transmission {
        let Some(place) = self.highest_seqs.touch(now, &connection) else {
            let _ = self.highest_seqs.insert(now, connection, end);
            return Transmission::New;
        };
        let known = self.highest_seqs.state_mut(place);
        // Sequence numbers farther back belong to another connection on the same ports.
        if (-MAX_SEQ_DISTANCE..0).contains(&seq.distance_from(*known)) {
            return Transmission::Retransmission;
        }
        *known = end;
        Transmission::New
    }

    /// Removes the waiting packets of a connection that has ended.
    fn remove_connection(&mut self, connection: Connection) {
        self.highest_seqs.remove(&connection);
        if let Some(place) = self.hosts.find(&host_key(connection.mobile.0)) {
            let host = self.hosts.state_mut(place);
            let before = host.waiting_bytes();
            host.remove_connection(connection);
            self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        }
    }
}

/// Result of the admission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    SendNow,
    Queued,
}

impl<M: Pep<StoredPacket<K>>, K: Clone> Pep<K> for HopWindow<M, K> {
    type Stats = Stats<M::Stats>;

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        let len_bytes = packet.len_bytes() as u32;
        let (seq, end) = (segment.seq, segment.seq_end());
        let span = |sending| PacketInfo { connection, seq, end, len_bytes, transmission: sending };
        let begins_or_ends = is_one_of(segment.flags, [Flags::SYN, Flags::RST]);
        let Some(config) = self.config.filter(|_| segment.seq_len() > 0 && !begins_or_ends) else {
            if begins_or_ends {
                self.remove_connection(connection);
            }
            let keep = || StoredPacket { info: span(Transmission::New), packet: keep() };
            return self.middlebox.handle_packet_to_mobile(now, packet, keep);
        };
        let spanned = StoredPacket {
            info: span(self.classify_transmission(now, connection, seq, end)),
            packet: keep(),
        };
        let verdict = self.middlebox.handle_packet_to_mobile(now, packet, || spanned.clone());
        let verdict = match verdict {
            Verdict::Absorb => Verdict::Absorb,
            passes => match self.admit(now, &config, spanned) {
                Admission::SendNow => passes,
                Admission::Queued => Verdict::Absorb,
            },
        };
        self.process(now, None);
        verdict
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        if self.config.is_none() {
            return self.middlebox.handle_packet_from_mobile(now, packet);
        }
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.remove_connection(connection);
        } else if segment.flags.contains(Flags::ACK)
            && let Some(place) = self.hosts.touch(now, &host_key(connection.mobile.0))
        {
            let heard = MobileAck {
                connection,
                ack: segment.ack,
                sack: &segment.options.sack,
                is_pure_ack: segment.seq_len() == 0,
            };
            self.hosts.state_mut(place).handle_ack(now, &heard);
        }
        let verdict = self.middlebox.handle_packet_from_mobile(now, packet);
        self.process(now, Some(connection.mobile.0));
        verdict
    }

    fn handle_progress(&mut self, now: Instant, connection: Connection, seq: Seq32, way: LastHopProgress) {
        if way == LastHopProgress::Dropped
            && let Some(place) = self.hosts.find(&host_key(connection.mobile.0))
        {
            self.hosts.state_mut(place).on_queue_drop(connection, seq);
        }
        self.middlebox.handle_progress(now, connection, seq, way);
    }

    fn handle_departure(&mut self, mobile: IpAddr) {
        if let Some(host) = self.hosts.remove(&host_key(mobile)) {
            self.waiting_bytes -= host.waiting_bytes();
        }
        self.middlebox.handle_departure(mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.highest_seqs.next_due(now).is_some() {}
        if self.middlebox.poll_timeout().is_some_and(|due| due <= now) {
            self.middlebox.handle_timeout(now);
        }
        self.process(now, None);
        let Some(config) = self.config else { return };
        while let Some(due) = self.hosts.next_due(now) {
            match due {
                Err((_, host)) => self.waiting_bytes -= host.waiting_bytes(),
                Ok((place, _)) => {
                    self.stats.unacknowledged += self.hosts.state_mut(place).handle_timeout(now);
                    self.release(now, &config, place);
                }
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<K>> {
        if self.config.is_some() {
            return self.outgoing.pop_front();
        }
        self.middlebox.poll_transmit().map(unwrap_transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.middlebox
            .poll_timeout()
            .into_iter()
            .chain(self.hosts.poll_timeout())
            .chain(self.highest_seqs.poll_timeout())
            .min()
    }

    fn stats(&self) -> Self::Stats {
        Stats { middlebox: self.middlebox.stats(), window: self.stats }
    }

    fn connections(&self) -> usize {
        self.middlebox.connections()
    }
}

fn is_one_of(flags: Flags, several: [Flags; 2]) -> bool {
    several.into_iter().any(|flag| flags.contains(flag))
}

/// Converts a packet of the middlebox to the caller's type.
fn unwrap_transmit<K>(transmit: Transmit<StoredPacket<K>>) -> Transmit<K> {
    match transmit {
        Transmit::Retransmission {
            queue_position: turn,
            connection,
            packet: StoredPacket { packet: kept, .. },
            tsval: clock,
        } => Transmit::Retransmission { queue_position: turn, connection, packet: kept, tsval: clock },
        Transmit::Ack(ack) => Transmit::Ack(ack),
        Transmit::Nack(nack) => Transmit::Nack(nack),
    }
}

/// Returns the table key of a host.
const fn host_key(mobile: IpAddr) -> Connection {
    let unspecified = match mobile {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Connection { fixed: (unspecified, 0), mobile: (mobile, 0) }
}

#[cfg(test)]
mod tests;
