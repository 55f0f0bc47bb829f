//! Window on the last hop: packets wait here instead of in a queue further on that does not report its drops.
//!
//! If packets for a mobile host queue inside a modem, in a driver or behind the next hop, a middlebox cannot
//! distinguish drops of that queue from losses of the link, and its retransmissions wait behind that queue.
//! [`HopWindow`] wraps such a middlebox, on its last-hop side. It limits the bytes in flight to each mobile
//! host to what keeps the hop busy. Further packets wait in its own queue. Drops of this queue are reported
//! to the middlebox ([`OnTheWay`]), and retransmissions bypass it.
//!
//! The window is measured as in BBR (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based
//! Congestion Control", ACM Queue 14(5), 2016): maximum delivery rate times minimum round-trip time, plus a
//! margin. The last hop is first in, first out. An ACK therefore covers all packets sent before the one that
//! it acknowledges: they have arrived or are lost, and are no longer in flight.

mod host;
mod rate;
mod types;
mod waiting;

use crate::filter::{Filter, OnTheWay, Transmit, Turn};
use crate::packet::{Connection, Packet, Verdict};
use crate::table::{Bounds, Place, Table};
use hopline_core::{Instant, Payload, Seq32};
use hopline_wire::tcp::Flags;
use host::{Heard, Host};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
pub use types::{Config, Spanned};
use types::{Sending, Span};

/// A middlebox, and the window between it and the last hop.
#[derive(Debug)]
pub struct HopWindow<M, K> {
    /// `None`: all packets pass.
    config: Option<Config>,
    machine: M,
    hosts: Table<Host<K>>,
    /// End of the highest sequence number of each connection.
    ends: Table<Seq32>,
    out: VecDeque<Transmit<K>>,
    stats: Held,
    /// Bytes of all waiting packets.
    waiting_bytes: u64,
}

/// Counters of a [`HopWindow`] and its middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats<S> {
    /// Counters of the middlebox.
    pub machine: S,
    /// Counters of the window.
    pub window: Held,
}

/// Counters of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Packets that waited.
    pub held: u64,
    /// Packets dropped because of a full queue or a long wait: congestion.
    pub dropped: u64,
    /// Packets given up because no acknowledgment came.
    pub unheard: u64,
}

/// Maximum distance of sequence numbers of a connection.
const FAR: i32 = 1 << 30;

/// Maximum number of waiting bytes in total; beyond it packets pass.
const WAITING_IN_ALL: u64 = 64 << 20;

impl<M: Filter<Spanned<K>>, K: Clone> HopWindow<M, K> {
    /// Creates a window around a middlebox. `None`: no window; all packets pass.
    #[must_use]
    pub fn new(config: Option<Config>, bounds: Bounds, machine: M) -> Self {
        let (hosts, ends) = (Table::new(bounds), Table::new(bounds));
        let (out, stats) = (VecDeque::new(), Held::default());
        Self { config, machine, hosts, ends, out, stats, waiting_bytes: 0 }
    }

    /// Returns the middlebox.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the middlebox, to set its parameters.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
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
    fn admit(&mut self, now: Instant, config: &Config, packet: Spanned<K>) -> Admitted {
        let (span, place) = (packet.span, self.place(now, packet.span.connection.mobile.0));
        let host = self.hosts.at(place);
        let goes = !host.waits() && host.has_room(config) || self.waiting_bytes >= WAITING_IN_ALL;
        if goes {
            host.leaves(now, config, span);
            self.look(place);
            return Admitted::Goes;
        }
        let before = host.waiting_bytes();
        let displaced = host.wait(now, config, packet);
        self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        self.stats.held += 1;
        self.machine.note(now, span.connection, span.seq, OnTheWay::Waits);
        self.tell_dropped(now, displaced.map(|packet| packet.span));
        Admitted::Waits
    }

    /// Reports drops of this queue to the middlebox.
    fn tell_dropped(&mut self, now: Instant, dropped: impl IntoIterator<Item = Span>) {
        for Span { connection, seq, .. } in dropped {
            self.stats.dropped += 1;
            self.machine.note(now, connection, seq, OnTheWay::Refused);
        }
    }

    /// Takes packets that the middlebox sends, and releases waiting packets for which there is room.
    fn settle(&mut self, now: Instant, mobile: Option<IpAddr>) {
        let Some(config) = self.config else { return };
        while let Some(transmit) = self.machine.poll_transmit() {
            if let Transmit::Again { kept: Spanned { span, .. }, .. } = transmit {
                let place = self.place(now, span.connection.mobile.0);
                self.hosts.at(place).leaves(now, &config, Span { sending: Sending::Again, ..span });
                self.look(place);
            }
            self.out.push_back(as_kept(transmit));
        }
        if let Some(place) = mobile.and_then(|mobile| self.hosts.find(&key(mobile))) {
            self.release(now, &config, place);
        }
    }

    /// Releases waiting packets of a host for which there is room.
    fn release(&mut self, now: Instant, config: &Config, place: Place) {
        let (host, mut dropped) = (self.hosts.at(place), Vec::new());
        let before = host.waiting_bytes();
        while let Some(Spanned { span, kept }) = host.next(now, config, &mut dropped) {
            self.machine.note(now, span.connection, span.seq, OnTheWay::Leaves);
            self.out.push_back(Transmit::Again {
                turn: Turn::Last,
                connection: span.connection,
                kept,
                clock: None,
            });
        }
        self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        self.tell_dropped(now, dropped.into_iter().map(|packet| packet.span));
        self.look(place);
    }

    fn place(&mut self, now: Instant, mobile: IpAddr) -> Place {
        if let Some(place) = self.hosts.hear(now, &key(mobile)) {
            return place;
        }
        let (place, evicted) = self.hosts.insert(now, key(mobile), Host::new(now));
        if let Some((_, host)) = evicted {
            self.waiting_bytes -= host.waiting_bytes();
        }
        place
    }

    fn look(&mut self, place: Place) {
        let due = self.hosts.at(place).due();
        self.hosts.look(place, due);
    }

    /// Returns whether data are new, that is, beyond all earlier data of the connection.
    fn sending(&mut self, now: Instant, connection: Connection, seq: Seq32, end: Seq32) -> Sending {
        let Some(place) = self.ends.hear(now, &connection) else {
            let _ = self.ends.insert(now, connection, end);
            return Sending::New;
        };
        let known = self.ends.at(place);
        // Sequence numbers farther back belong to another connection on the same ports.
        if (-FAR..0).contains(&seq.distance_from(*known)) {
            return Sending::Again;
        }
        *known = end;
        Sending::New
    }

    /// Removes the waiting packets of a connection that has ended.
    fn forget(&mut self, connection: Connection) {
        self.ends.remove(&connection);
        if let Some(place) = self.hosts.find(&key(connection.mobile.0)) {
            let host = self.hosts.at(place);
            let before = host.waiting_bytes();
            host.forget(connection);
            self.waiting_bytes = self.waiting_bytes - before + host.waiting_bytes();
        }
    }
}

/// Result of the admission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    Goes,
    Waits,
}

impl<M: Filter<Spanned<K>>, K: Clone> Filter<K> for HopWindow<M, K> {
    type Stats = Stats<M::Stats>;

    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        let (connection, segment) = (Connection::to_mobile(packet), packet.segment);
        let len_bytes = packet.len_bytes() as u32;
        let (seq, end) = (segment.seq, segment.seq_end());
        let span = |sending| Span { connection, seq, end, len_bytes, sending };
        let begins_or_ends = is_one_of(segment.flags, [Flags::SYN, Flags::RST]);
        let Some(config) = self.config.filter(|_| segment.seq_len() > 0 && !begins_or_ends) else {
            if begins_or_ends {
                self.forget(connection);
            }
            let keep = || Spanned { span: span(Sending::New), kept: keep() };
            return self.machine.pass_to_mobile(now, packet, keep);
        };
        let spanned = Spanned { span: span(self.sending(now, connection, seq, end)), kept: keep() };
        let verdict = self.machine.pass_to_mobile(now, packet, || spanned.clone());
        let verdict = match verdict {
            Verdict::Absorb => Verdict::Absorb,
            passes => match self.admit(now, &config, spanned) {
                Admitted::Goes => passes,
                Admitted::Waits => Verdict::Absorb,
            },
        };
        self.settle(now, None);
        verdict
    }

    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        if self.config.is_none() {
            return self.machine.pass_from_mobile(now, packet);
        }
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        if segment.flags.contains(Flags::RST) {
            self.forget(connection);
        } else if segment.flags.contains(Flags::ACK)
            && let Some(place) = self.hosts.hear(now, &key(connection.mobile.0))
        {
            let heard = Heard {
                connection,
                ack: segment.ack,
                sack: &segment.options.sack,
                bare: segment.seq_len() == 0,
            };
            self.hosts.at(place).hear(now, &heard);
        }
        let verdict = self.machine.pass_from_mobile(now, packet);
        self.settle(now, Some(connection.mobile.0));
        verdict
    }

    fn note(&mut self, now: Instant, connection: Connection, seq: Seq32, way: OnTheWay) {
        if way == OnTheWay::Refused
            && let Some(place) = self.hosts.find(&key(connection.mobile.0))
        {
            self.hosts.at(place).refused(connection, seq);
        }
        self.machine.note(now, connection, seq, way);
    }

    fn forget_mobile(&mut self, mobile: IpAddr) {
        if let Some(host) = self.hosts.remove(&key(mobile)) {
            self.waiting_bytes -= host.waiting_bytes();
        }
        self.machine.forget_mobile(mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.ends.next_due(now).is_some() {}
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        self.settle(now, None);
        let Some(config) = self.config else { return };
        while let Some(due) = self.hosts.next_due(now) {
            match due {
                Err((_, host)) => self.waiting_bytes -= host.waiting_bytes(),
                Ok((place, _)) => {
                    self.stats.unheard += self.hosts.at(place).give_up(now);
                    self.release(now, &config, place);
                }
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<K>> {
        if self.config.is_some() {
            return self.out.pop_front();
        }
        self.machine.poll_transmit().map(as_kept)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine
            .poll_timeout()
            .into_iter()
            .chain(self.hosts.next_look())
            .chain(self.ends.next_look())
            .min()
    }

    fn stats(&self) -> Self::Stats {
        Stats { machine: self.machine.stats(), window: self.stats }
    }

    fn connections(&self) -> usize {
        self.machine.connections()
    }
}

fn is_one_of(flags: Flags, several: [Flags; 2]) -> bool {
    several.into_iter().any(|flag| flags.contains(flag))
}

/// Converts a packet of the middlebox to the caller's type.
fn as_kept<K>(transmit: Transmit<Spanned<K>>) -> Transmit<K> {
    match transmit {
        Transmit::Again { turn, connection, kept: Spanned { kept, .. }, clock } => {
            Transmit::Again { turn, connection, kept, clock }
        }
        Transmit::Ack(ack) => Transmit::Ack(ack),
        Transmit::Nack(nack) => Transmit::Nack(nack),
    }
}

/// Returns the table key of a host.
const fn key(mobile: IpAddr) -> Connection {
    let unspecified = match mobile {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    Connection { fixed: (unspecified, 0), mobile: (mobile, 0) }
}

#[cfg(test)]
mod tests;
