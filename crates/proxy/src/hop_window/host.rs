//! Packets in flight to a mobile host, and packets that wait.

use super::rate::{Bursts, Greatest, Shortest};
use super::waiting::Waiting;
use super::{Config, Sending, Span, Spanned};
use crate::packet::Connection;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::SackBlocks;
use std::collections::VecDeque;

/// Last hop to a host.
#[derive(Debug)]
pub(super) struct Host<K> {
    under_way: VecDeque<Sent>,
    under_way_bytes: u64,
    /// Allocated on demand.
    waiting: Option<Box<Waiting<K>>>,
    /// Bytes delivered. Packets that a full queue further on has dropped must not count: otherwise more drops
    /// would let more packets go.
    delivered: u64,
    /// Packets no longer in flight that had not arrived: lost, or late.
    missing: VecDeque<Span>,
    /// Arrival time of the latest acknowledgment, and send time of the packet that it acknowledged.
    heard: Instant,
    heard_sent: Instant,
    rate: Greatest,
    shortest: Shortest,
    bursts: Bursts,
    rtt: Rtt,
    /// Number of times that packets were given up since the host was last heard.
    silences: u32,
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    span: Span,
    at: Instant,
    /// Delivered bytes at that time, and the times of the latest acknowledgment and its packet.
    delivered: u64,
    heard: Instant,
    heard_sent: Instant,
    /// `true` if hardly anything was in flight before it.
    alone: bool,
    /// `true` if packets were waiting: the hop is kept busy.
    busy: bool,
}

/// Content of an ACK of the mobile host.
pub(super) struct Heard<'a> {
    pub(super) connection: Connection,
    pub(super) ack: Seq32,
    pub(super) sack: &'a SackBlocks,
    /// `true` if the segment is a pure ACK.
    pub(super) bare: bool,
}

/// Bytes in flight up to which a packet counts as alone on the hop: four full packets.
const HARDLY: u64 = 6_000;
/// Minimum time before a packet is given up: ACKs may be delayed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum number of packets that may be late.
const MISSING: usize = 64;
/// Value of [`Host::silences`] from which on all packets pass: the ACKs of the host may take another path.
const DEAF: u32 = 10;

impl<K> Host<K> {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            waiting: None,
            delivered: 0,
            missing: VecDeque::new(),
            heard: now,
            heard_sent: now,
            rate: Greatest::new(now),
            shortest: Shortest::new(now),
            bursts: Bursts::new(now),
            rtt: Rtt::until_sampled(PATIENCE),
            silences: 0,
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Returns whether one more packet may be in flight.
    pub(super) fn has_room(&self, config: &Config) -> bool {
        self.silences >= DEAF || self.is_fast(config) || self.under_way_bytes < self.window(config)
    }

    fn is_fast(&self, config: &Config) -> bool {
        self.rate.get() > f64::from(config.fastest)
    }

    /// Returns the window: the number of bytes that may be in flight.
    pub(super) fn window(&self, config: &Config) -> u64 {
        let least = u64::from(config.least_bytes);
        if self.shortest.is_looked_for() {
            return least.min(HARDLY);
        }
        let Some(shortest) = self.shortest.get() else { return least };
        let needed = 1.5 * shortest.as_secs_f64() + config.slack.as_secs_f64();
        least.max((self.rate.get() * needed + self.bursts.largest()) as u64)
    }

    /// Queues a packet. Returns the packet that is dropped for it if the queue is full.
    pub(super) fn wait(&mut self, now: Instant, config: &Config, packet: Spanned<K>) -> Option<Spanned<K>> {
        self.waiting.get_or_insert_with(|| Box::new(Waiting::new(config))).push(now, packet)
    }

    /// Returns the next waiting packet if there is room; it is in flight then. `dropped`: packets that had
    /// waited too long.
    pub(super) fn next(
        &mut self,
        now: Instant,
        config: &Config,
        dropped: &mut Vec<Spanned<K>>,
    ) -> Option<Spanned<K>> {
        if !self.has_room(config) {
            return None;
        }
        let packet = self.waiting.as_mut()?.pop(now, dropped)?;
        self.leaves(now, config, packet.span);
        Some(packet)
    }

    /// Records that a packet is sent over the hop.
    pub(super) fn leaves(&mut self, now: Instant, config: &Config, span: Span) {
        if self.under_way.is_empty() {
            (self.heard, self.heard_sent) = (now, now);
        }
        if span.sending == Sending::Again {
            // An acknowledgment of the missing packet may be for this transmission, and counts once.
            self.missing.retain(|known| (known.connection, known.seq) != (span.connection, span.seq));
        }
        self.under_way_bytes += u64::from(span.len_bytes);
        self.under_way.push_back(Sent {
            span,
            at: now,
            delivered: self.delivered,
            heard: self.heard,
            heard_sent: self.heard_sent,
            alone: self.under_way_bytes <= HARDLY,
            // A fast hop counts as busy, so that a fall of its rate is noticed.
            busy: self.waits() || self.is_fast(config),
        });
    }

    /// Handles an acknowledgment: all packets sent before the latest acknowledged one have arrived or are
    /// lost.
    pub(super) fn hear(&mut self, now: Instant, heard: &Heard<'_>) {
        self.silences = 0;
        let before = self.delivered;
        self.count_late(heard);
        let tells = |sent: &Sent| {
            heard.has(&sent.span) && (sent.span.sending == Sending::New || self.is_due(now, sent))
        };
        match self.under_way.iter().rposition(tells) {
            Some(latest) => {
                let told = self.under_way.iter().take(latest + 1).rev().copied();
                let measured =
                    told.into_iter().find(|sent| sent.span.sending == Sending::New && heard.has(&sent.span));
                self.serve(latest + 1, heard);
                if let Some(sent) = measured {
                    self.measure(now, &sent);
                }
            }
            // Without SACK a duplicate ACK does not say which packet has arrived.
            None if heard.bare && heard.sack.is_empty() => {
                let first = self.under_way.front().filter(|sent| sent.span.connection == heard.connection);
                if let Some(first) = first {
                    self.delivered += u64::from(first.span.len_bytes);
                    self.under_way_bytes -= u64::from(first.span.len_bytes);
                    self.under_way.pop_front();
                }
            }
            None => {}
        }
        self.bursts.sample(now, self.delivered - before, self.rate.get());
    }

    /// Returns whether the acknowledgment can be for this transmission. It may be for an earlier one (Karn),
    /// but this one would have arrived as well by now.
    fn is_due(&self, now: Instant, sent: &Sent) -> bool {
        self.shortest.get().is_some_and(|shortest| now.since(sent.at) >= shortest)
    }

    /// Counts missing packets that have arrived late.
    fn count_late(&mut self, heard: &Heard<'_>) {
        let delivered = &mut self.delivered;
        self.missing.retain(|span| {
            let has = heard.has(span);
            *delivered += if has { u64::from(span.len_bytes) } else { 0 };
            !has
        });
    }

    /// Removes the first `packets` packets from those in flight.
    fn serve(&mut self, packets: usize, heard: &Heard<'_>) {
        for Sent { span, .. } in self.under_way.drain(..packets) {
            let bytes = u64::from(span.len_bytes);
            self.under_way_bytes -= bytes;
            if heard.has(&span) {
                self.delivered += bytes;
            } else {
                self.missing.push_back(span);
            }
        }
        let beyond = self.missing.len().saturating_sub(MISSING);
        self.missing.drain(..beyond);
    }

    /// Samples round-trip time and rate from an acknowledged packet. The rate is the sending or the arrival
    /// rate, whichever is lower.
    fn measure(&mut self, now: Instant, sent: &Sent) {
        let took = now.since(sent.at);
        self.rtt.sample(took);
        self.shortest.sample(now, took, sent.alone);
        let interval = now.since(sent.heard).max(sent.at.since(sent.heard_sent));
        if !interval.is_zero() && self.shortest.get().is_some_and(|shortest| interval >= shortest) {
            let rate = (self.delivered - sent.delivered) as f64 / interval.as_secs_f64();
            self.rate.sample(now, rate, sent.busy);
        }
        (self.heard, self.heard_sent) = (now, sent.at);
    }

    /// Records that the host's queue has dropped the packet that begins at `seq`: it is no longer in flight.
    pub(super) fn refused(&mut self, connection: Connection, seq: Seq32) {
        let is_it = |sent: &Sent| (sent.span.connection, sent.span.seq) == (connection, seq);
        if let Some(sent) =
            self.under_way.iter().rposition(is_it).and_then(|index| self.under_way.remove(index))
        {
            self.under_way_bytes -= u64::from(sent.span.len_bytes);
        }
    }

    /// Removes the waiting packets of a connection.
    pub(super) fn forget(&mut self, connection: Connection) {
        if let Some(waiting) = &mut self.waiting {
            waiting.forget(connection);
        }
    }

    /// Returns the time at which the first packet in flight is given up.
    pub(super) fn due(&self) -> Option<Instant> {
        self.under_way.front().map(|sent| sent.at + self.patience())
    }

    fn patience(&self) -> Duration {
        PATIENCE.max(self.rtt.with_deviations(4) * 2)
    }

    /// Gives up packets without an acknowledgment for long, and frees unused memory. Returns the number of
    /// packets.
    pub(super) fn give_up(&mut self, now: Instant) -> u64 {
        let patience = self.patience();
        let gone = self.under_way.iter().take_while(|sent| sent.at + patience <= now).count();
        let bytes: u64 = self.under_way.drain(..gone).map(|sent| u64::from(sent.span.len_bytes)).sum();
        self.under_way_bytes -= bytes;
        self.silences = self.silences.saturating_add(u32::from(gone > 0));
        if self.under_way.is_empty() && !self.waits() {
            self.waiting = None;
        }
        gone as u64
    }
}

impl Heard<'_> {
    /// Returns whether the host has received a packet.
    fn has(&self, span: &Span) -> bool {
        let mut blocks = self.sack.as_slice().iter();
        let mut within = || blocks.any(|b| span.seq.at_or_after(b.left) && !span.end.after(b.right));
        self.connection == span.connection && (!span.end.after(self.ack) || within())
    }
}
