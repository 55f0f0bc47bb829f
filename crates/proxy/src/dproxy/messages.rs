//! Messages between both ends.

use super::cache::Replay;
use super::loss_detection::SequenceRange;
use super::{ConnectionState, DProxy, DProxyAction};
use crate::packet::Connection;
use crate::pep::QueuePosition;
use crate::table::TableIndex;
use hopline_core::Instant;
use hopline_wire::dproxy::{Flow, Message, MessageKind, Range, Sealed};
use std::net::IpAddr;

/// Maximum number of tail probes for a packet.
const MAX_TAIL_PROBES: u8 = 3;

impl<K: Clone> DProxy<K> {
    /// Handles the payload of a datagram that has come to [`hopline_wire::dproxy::PORT`] from the address
    /// `from`. Returns whether it is a new, authentic message of the other end.
    pub fn handle_datagram(&mut self, now: Instant, from: IpAddr, bytes: &[u8]) -> bool {
        match Sealed::parse(bytes) {
            Ok(sealed) => self.handle_message(now, from, &sealed),
            Err(_) => {
                self.stats.malformed += 1;
                false
            }
        }
    }

    /// Handles a message that has come from the address `from`. Returns whether it is a new, authentic
    /// message of the other end.
    pub fn handle_message(&mut self, now: Instant, from: IpAddr, sealed: &Sealed) -> bool {
        if from != self.config.peer {
            self.stats.foreign += 1;
        } else if !self.peer.receive_key.is_genuine(from, sealed) {
            // Until the other end knows of this end's restart, it authenticates messages with the key of the
            // former session.
            *(if self.peer.is_present { &mut self.stats.forged } else { &mut self.stats.without_session }) +=
                1;
        } else if !self.peer.replay_window.check_and_record(sealed.message.number) {
            self.stats.replays_refused += 1;
        } else {
            match self.peer.is_present {
                true => self.process_message(now, &sealed.message),
                false => self.stats.without_session += 1,
            }
            return true;
        }
        false
    }

    fn process_message(&mut self, now: Instant, message: &Message) {
        let Message { flow, range, kind: says, .. } = *message;
        match says {
            MessageKind::Request => self.handle_request(now, flow, range),
            MessageKind::NotCached => {
                let known = self.table.find(&incoming_connection(flow));
                let hear = |place| {
                    self.with_detector(now, place, |detect, hand| {
                        detect.handle_not_cached(hand, SequenceRange::of(range))
                    })
                };
                match known.and_then(hear) {
                    None => self.stats.unknown_flows += 1,
                    Some(false) => self.stats.unsolicited += 1,
                    Some(true) => {}
                }
            }
            MessageKind::Tail => {
                let is_tail = |tracked: &ConnectionState<K>| {
                    tracked
                        .loss_detector
                        .as_ref()
                        .is_some_and(|detect| detect.has_tail(SequenceRange::of(range)))
                };
                let (table, named) = (&self.table, incoming_connection(flow));
                let known =
                    table.find(&named).or_else(|| self.translated_flows.find(table, flow, named, is_tail));
                let hear = |place| {
                    self.with_detector(now, place, |detect, hand| {
                        if detect.is_near(range.end()) {
                            detect.handle_tail_probe(hand, SequenceRange::of(range));
                        }
                    })
                };
                if known.and_then(hear).is_none() {
                    self.stats.unknown_flows += 1;
                }
            }
        }
    }

    /// Handles a request of the other end for a range that was transmitted.
    fn handle_request(&mut self, now: Instant, flow: Flow, range: Range) {
        let (table, named) = (&self.table, outgoing_connection(flow));
        let keeps = |tracked: &ConnectionState<K>| tracked.cached.contains(range);
        let place = table.find(&named).or_else(|| self.translated_flows.find(table, flow, named, keeps));
        self.stats.unknown_flows += u64::from(place.is_none());
        let numbers =
            place.map(|place| self.table.state_mut(place).cached.in_range(range)).unwrap_or_default();
        let mut is_answered = false;
        for number in numbers {
            match self.cache.replay(now, number) {
                Some(Replay::Packet(kept, _)) => {
                    self.stats.replayed += 1;
                    is_answered = true;
                    self.actions.push_back(DProxyAction::Retransmit(self.config.queue_position, kept));
                }
                Some(Replay::RecentlyReplayed) => {
                    self.stats.recently_replayed += 1;
                    is_answered = true;
                }
                Some(Replay::Exhausted) => self.stats.exhausted += 1,
                None => {}
            }
        }
        if !is_answered {
            self.stats.not_cached += 1;
            self.send_message(self.config.queue_position, flow, range, MessageKind::NotCached); // C8
        }
    }

    /// Sends the pending requests for the incoming flow.
    pub(super) fn send_requests(&mut self, place: TableIndex) {
        let connection = self.table.connection(place);
        let flow = Flow { src: connection.mobile, dst: connection.fixed };
        let Some(detect) = &self.table.state_mut(place).loss_detector else { return };
        let expansion = self.config.request_expansion;
        let ranges: Vec<_> =
            self.requests.drain_pending().map(|hole| detect.requested_range(hole, expansion)).collect();
        for range in ranges {
            self.send_message(self.config.queue_position, flow, range, MessageKind::Request);
        }
    }

    /// Sends a tail probe: no new data has been sent for long, and some is not acknowledged. The last packet
    /// may be lost without a sign of it (C9).
    pub(super) fn send_tail_probe(&mut self, now: Instant, place: TableIndex, connection: Connection) {
        let Some(after) = self.config.tail_probe_delay else { return };
        let tracked = self.table.state_mut(place);
        let Some(last) = tracked.cached.last().filter(|_| tracked.tail_probes < MAX_TAIL_PROBES) else {
            return;
        };
        let due = tracked.last_new_data + after.saturating_mul(u64::from(tracked.tail_probes) + 1);
        if due > now {
            return self.table.set_timer(place, Some(due));
        }
        tracked.tail_probes += 1;
        if tracked.tail_probes < MAX_TAIL_PROBES {
            self.table.set_timer(place, Some(now + after));
        }
        self.stats.tail_probes += 1;
        let flow = Flow { src: connection.fixed, dst: connection.mobile };
        self.send_message(QueuePosition::Back, flow, last, MessageKind::Tail);
    }

    fn send_message(&mut self, turn: QueuePosition, flow: Flow, range: Range, says: MessageKind) {
        let message = Message { number: self.peer.next_number, flow, range, kind: says };
        self.peer.next_number = self.peer.next_number.saturating_add(1);
        let sealed = self.peer.send_key.seal(self.config.local, message);
        self.actions.push_back(DProxyAction::Send { to: self.config.peer, queue_position: turn, sealed });
    }
}

/// Returns the connection with outgoing data in this flow.
const fn outgoing_connection(flow: Flow) -> Connection {
    Connection { fixed: flow.src, mobile: flow.dst }
}

/// Returns the connection with incoming data in this flow.
const fn incoming_connection(flow: Flow) -> Connection {
    Connection { fixed: flow.dst, mobile: flow.src }
}
