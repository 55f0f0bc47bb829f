//! Messages between both ends.

use super::cache::Replay;
use super::detect::Span;
use super::{DProxy, Does, Tracked};
use crate::filter::Turn;
use crate::packet::Connection;
use crate::table::Place;
use hopline_core::Instant;
use hopline_wire::dproxy::{Flow, Message, Range, Says, Sealed};
use std::net::IpAddr;

/// Maximum number of tail probes for a packet.
const TAIL_PROBES: u8 = 3;

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
        } else if !self.other.opens.is_genuine(from, sealed) {
            // Until the other end knows of this end's restart, it authenticates messages with the key of the
            // former session.
            *(if self.other.is_there { &mut self.stats.forged } else { &mut self.stats.early }) += 1;
        } else if !self.other.seen.is_new(sealed.message.number) {
            self.stats.replays_refused += 1;
        } else {
            match self.other.is_there {
                true => self.obey(now, &sealed.message),
                false => self.stats.early += 1,
            }
            return true;
        }
        false
    }

    fn obey(&mut self, now: Instant, message: &Message) {
        let Message { flow, range, says, .. } = *message;
        match says {
            Says::Request => self.replay(now, flow, range),
            Says::NotCached => {
                let known = self.table.find(&incoming(flow));
                let hear = |place| {
                    self.detecting(now, place, |detect, hand| detect.hear_not_cached(hand, Span::of(range)))
                };
                match known.and_then(hear) {
                    None => self.stats.unknown_flows += 1,
                    Some(false) => self.stats.unasked += 1,
                    Some(true) => {}
                }
            }
            Says::Tail => {
                let is_tail = |tracked: &Tracked<K>| {
                    tracked.detect.as_ref().is_some_and(|detect| detect.has_tail(Span::of(range)))
                };
                let (table, named) = (&self.table, incoming(flow));
                let known = table.find(&named).or_else(|| self.names.find(table, flow, named, is_tail));
                let hear = |place| {
                    self.detecting(now, place, |detect, hand| {
                        if detect.is_near(range.end()) {
                            detect.hear_tail(hand, Span::of(range));
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
    fn replay(&mut self, now: Instant, flow: Flow, range: Range) {
        let (table, named) = (&self.table, outgoing(flow));
        let keeps = |tracked: &Tracked<K>| tracked.kept.has(range);
        let place = table.find(&named).or_else(|| self.names.find(table, flow, named, keeps));
        self.stats.unknown_flows += u64::from(place.is_none());
        let numbers = place.map(|place| self.table.at(place).kept.in_range(range)).unwrap_or_default();
        let mut is_answered = false;
        for number in numbers {
            match self.ring.replay(now, number) {
                Some(Replay::Packet(kept, _)) => {
                    self.stats.replayed += 1;
                    is_answered = true;
                    self.out.push_back(Does::Replays(self.config.turn, kept));
                }
                Some(Replay::UnderWay) => {
                    self.stats.under_way += 1;
                    is_answered = true;
                }
                Some(Replay::Exhausted) => self.stats.exhausted += 1,
                None => {}
            }
        }
        if !is_answered {
            self.stats.not_kept += 1;
            self.say(self.config.turn, flow, range, Says::NotCached); // C8
        }
    }

    /// Sends the pending requests for the incoming flow.
    pub(super) fn send_requests(&mut self, place: Place) {
        let connection = self.table.connection(place);
        let flow = Flow { src: connection.mobile, dst: connection.fixed };
        let Some(detect) = &self.table.at(place).detect else { return };
        let expansion = self.config.expansion;
        let ranges: Vec<_> =
            self.requests.take_asked().map(|hole| detect.asks_for(hole, expansion)).collect();
        for range in ranges {
            self.say(self.config.turn, flow, range, Says::Request);
        }
    }

    /// Sends a tail probe: no new data has been sent for long, and some is not acknowledged. The last packet
    /// may be lost without a sign of it (C9).
    pub(super) fn tell_of_tail(&mut self, now: Instant, place: Place, connection: Connection) {
        let Some(after) = self.config.tail_probe else { return };
        let tracked = self.table.at(place);
        let Some(last) = tracked.kept.last().filter(|_| tracked.told < TAIL_PROBES) else { return };
        let due = tracked.new_at + after.saturating_mul(u64::from(tracked.told) + 1);
        if due > now {
            return self.table.look(place, Some(due));
        }
        tracked.told += 1;
        if tracked.told < TAIL_PROBES {
            self.table.look(place, Some(now + after));
        }
        self.stats.tail_probes += 1;
        let flow = Flow { src: connection.fixed, dst: connection.mobile };
        self.say(Turn::Last, flow, last, Says::Tail);
    }

    fn say(&mut self, turn: Turn, flow: Flow, range: Range, says: Says) {
        let message = Message { number: self.other.number, flow, range, says };
        self.other.number = self.other.number.saturating_add(1);
        let sealed = self.other.seals.seal(self.config.local, message);
        self.out.push_back(Does::Sends { to: self.config.peer, turn, sealed });
    }
}

/// Returns the connection with outgoing data in this flow.
const fn outgoing(flow: Flow) -> Connection {
    Connection { fixed: flow.src, mobile: flow.dst }
}

/// Returns the connection with incoming data in this flow.
const fn incoming(flow: Flow) -> Connection {
    Connection { fixed: flow.dst, mobile: flow.src }
}
