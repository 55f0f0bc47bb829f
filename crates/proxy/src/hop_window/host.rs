//! Packets in flight to a mobile host, and packets that wait.

use super::rate::{BurstEstimator, MinRttEstimator, WindowedMax};
use super::wait_queue::WaitQueue;
use super::{Config, PacketInfo, StoredPacket, Transmission};
use crate::packet::Connection;
use crate::rtt::RttEstimator;
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::SackBlocks;
use std::collections::VecDeque;

/// Last hop to a host.
#[derive(Debug)]
pub(super) struct Host<K> {
    in_flight: VecDeque<InFlightPacket>,
    in_flight_bytes: u64,
    /// Allocated on demand.
    wait_queue: Option<Box<WaitQueue<K>>>,
    /// Bytes delivered. Packets that a full queue further on has dropped must not count: otherwise more drops
    /// would let more packets go.
    delivered: u64,
    /// Packets no longer in flight that had not arrived: lost, or late.
    missing: VecDeque<PacketInfo>,
    /// Arrival time of the latest acknowledgment, and send time of the packet that it acknowledged.
    last_ack: Instant,
    last_acked_sent: Instant,
    max_rate: WindowedMax,
    min_rtt: MinRttEstimator,
    bursts: BurstEstimator,
    rtt: RttEstimator,
    /// Number of times that packets were given up since the host was last heard.
    timeouts: u32,
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
struct InFlightPacket {
    info: PacketInfo,
    sent_at: Instant,
    /// Delivered bytes at that time, and the times of the latest acknowledgment and its packet.
    delivered: u64,
    last_ack: Instant,
    last_acked_sent: Instant,
    /// `true` if hardly anything was in flight before it.
    alone: bool,
    /// `true` if packets were waiting: the hop is kept busy.
    hop_busy: bool,
}

/// Content of an ACK of the mobile host.
pub(super) struct MobileAck<'a> {
    pub(super) connection: Connection,
    pub(super) ack: Seq32,
    pub(super) sack: &'a SackBlocks,
    /// `true` if the segment is a pure ACK.
    pub(super) is_pure_ack: bool,
}

/// Bytes in flight up to which a packet counts as alone on the hop: four full packets.
const ALONE_MAX_BYTES: u64 = 6_000;
/// Minimum time before a packet is given up: ACKs may be delayed.
const MIN_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of packets that may be late.
const MAX_MISSING: usize = 64;
/// Value of [`Host::timeouts`] from which on all packets pass: the ACKs of the host may take another path.
const MAX_TIMEOUTS: u32 = 10;

impl<K> Host<K> {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            wait_queue: None,
            delivered: 0,
            missing: VecDeque::new(),
            last_ack: now,
            last_acked_sent: now,
            max_rate: WindowedMax::new(now),
            min_rtt: MinRttEstimator::new(now),
            bursts: BurstEstimator::new(now),
            rtt: RttEstimator::with_initial_until_sampled(MIN_TIMEOUT),
            timeouts: 0,
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.wait_queue.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        self.wait_queue.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Returns whether one more packet may be in flight.
    pub(super) fn has_room(&self, config: &Config) -> bool {
        self.timeouts >= MAX_TIMEOUTS || self.is_fast(config) || self.in_flight_bytes < self.window(config)
    }

    fn is_fast(&self, config: &Config) -> bool {
        self.max_rate.get() > f64::from(config.max_rate)
    }

    /// Returns the window: the number of bytes that may be in flight.
    pub(super) fn window(&self, config: &Config) -> u64 {
        let least = u64::from(config.min_window_bytes);
        if self.min_rtt.is_probing() {
            return least.min(ALONE_MAX_BYTES);
        }
        let Some(shortest) = self.min_rtt.get() else { return least };
        let needed = 1.5 * shortest.as_secs_f64() + config.window_margin.as_secs_f64();
        least.max((self.max_rate.get() * needed + self.bursts.largest()) as u64)
    }

    /// Queues a packet. Returns the packet that is dropped for it if the queue is full.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        config: &Config,
        packet: StoredPacket<K>,
    ) -> Option<StoredPacket<K>> {
        self.wait_queue.get_or_insert_with(|| Box::new(WaitQueue::new(config))).push(now, packet)
    }

    /// Returns the next waiting packet if there is room; it is in flight then. `dropped`: packets that had
    /// waited too long.
    pub(super) fn next_packet(
        &mut self,
        now: Instant,
        config: &Config,
        dropped: &mut Vec<StoredPacket<K>>,
    ) -> Option<StoredPacket<K>> {
        if !self.has_room(config) {
            return None;
        }
        let packet = self.wait_queue.as_mut()?.pop(now, dropped)?;
        self.on_sent(now, config, packet.info);
        Some(packet)
    }

    /// Records that a packet is sent over the hop.
    pub(super) fn on_sent(&mut self, now: Instant, config: &Config, span: PacketInfo) {
        if self.in_flight.is_empty() {
            (self.last_ack, self.last_acked_sent) = (now, now);
        }
        if span.transmission == Transmission::Retransmission {
            // An acknowledgment of the missing packet may be for this transmission, and counts once.
            self.missing.retain(|known| (known.connection, known.seq) != (span.connection, span.seq));
        }
        self.in_flight_bytes += u64::from(span.len_bytes);
        self.in_flight.push_back(InFlightPacket {
            info: span,
            sent_at: now,
            delivered: self.delivered,
            last_ack: self.last_ack,
            last_acked_sent: self.last_acked_sent,
            alone: self.in_flight_bytes <= ALONE_MAX_BYTES,
            // A fast hop counts as busy, so that a fall of its rate is noticed.
            hop_busy: self.has_waiting() || self.is_fast(config),
        });
    }

    /// Handles an acknowledgment: all packets sent before the latest acknowledged one have arrived or are
    /// lost.
    pub(super) fn handle_ack(&mut self, now: Instant, heard: &MobileAck<'_>) {
        self.timeouts = 0;
        let before = self.delivered;
        self.count_late(heard);
        let tells = |sent: &InFlightPacket| {
            heard.covers(&sent.info)
                && (sent.info.transmission == Transmission::New || self.is_plausible(now, sent))
        };
        match self.in_flight.iter().rposition(tells) {
            Some(latest) => {
                let told = self.in_flight.iter().take(latest + 1).rev().copied();
                let measured = told
                    .into_iter()
                    .find(|sent| sent.info.transmission == Transmission::New && heard.covers(&sent.info));
                self.remove_acked(latest + 1, heard);
                if let Some(sent) = measured {
                    self.sample(now, &sent);
                }
            }
            // Without SACK a duplicate ACK does not say which packet has arrived.
            None if heard.is_pure_ack && heard.sack.is_empty() => {
                let first = self.in_flight.front().filter(|sent| sent.info.connection == heard.connection);
                if let Some(first) = first {
                    self.delivered += u64::from(first.info.len_bytes);
                    self.in_flight_bytes -= u64::from(first.info.len_bytes);
                    self.in_flight.pop_front();
                }
            }
            None => {}
        }
        self.bursts.sample(now, self.delivered - before, self.max_rate.get());
    }

    /// Returns whether the acknowledgment can be for this transmission. It may be for an earlier one (Karn),
    /// but this one would have arrived as well by now.
    fn is_plausible(&self, now: Instant, sent: &InFlightPacket) -> bool {
        self.min_rtt.get().is_some_and(|shortest| now.since(sent.sent_at) >= shortest)
    }

    /// Counts missing packets that have arrived late.
    fn count_late(&mut self, heard: &MobileAck<'_>) {
        let delivered = &mut self.delivered;
        self.missing.retain(|span| {
            let has = heard.covers(span);
            *delivered += if has { u64::from(span.len_bytes) } else { 0 };
            !has
        });
    }

    /// Removes the first `packets` packets from those in flight.
    fn remove_acked(&mut self, packets: usize, heard: &MobileAck<'_>) {
        for InFlightPacket { info: span, .. } in self.in_flight.drain(..packets) {
            let bytes = u64::from(span.len_bytes);
            self.in_flight_bytes -= bytes;
            if heard.covers(&span) {
                self.delivered += bytes;
            } else {
                self.missing.push_back(span);
            }
        }
        let beyond = self.missing.len().saturating_sub(MAX_MISSING);
        self.missing.drain(..beyond);
    }

    /// Samples round-trip time and rate from an acknowledged packet. The rate is the sending or the arrival
    /// rate, whichever is lower.
    fn sample(&mut self, now: Instant, sent: &InFlightPacket) {
        let took = now.since(sent.sent_at);
        self.rtt.sample(took);
        self.min_rtt.sample(now, took, sent.alone);
        let interval = now.since(sent.last_ack).max(sent.sent_at.since(sent.last_acked_sent));
        if !interval.is_zero() && self.min_rtt.get().is_some_and(|shortest| interval >= shortest) {
            let rate = (self.delivered - sent.delivered) as f64 / interval.as_secs_f64();
            self.max_rate.sample(now, rate, sent.hop_busy);
        }
        (self.last_ack, self.last_acked_sent) = (now, sent.sent_at);
    }

    /// Records that the host's queue has dropped the packet that begins at `seq`: it is no longer in flight.
    pub(super) fn on_queue_drop(&mut self, connection: Connection, seq: Seq32) {
        let is_it = |sent: &InFlightPacket| (sent.info.connection, sent.info.seq) == (connection, seq);
        if let Some(sent) =
            self.in_flight.iter().rposition(is_it).and_then(|index| self.in_flight.remove(index))
        {
            self.in_flight_bytes -= u64::from(sent.info.len_bytes);
        }
    }

    /// Removes the waiting packets of a connection.
    pub(super) fn remove_connection(&mut self, connection: Connection) {
        if let Some(waiting) = &mut self.wait_queue {
            waiting.remove_connection(connection);
        }
    }

    /// Returns the time at which the first packet in flight is given up.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.in_flight.front().map(|sent| sent.sent_at + self.timeout())
    }

    fn timeout(&self) -> Duration {
        MIN_TIMEOUT.max(self.rtt.with_deviations(4) * 2)
    }

    /// Gives up packets without an acknowledgment for long, and frees unused memory. Returns the number of
    /// packets.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> u64 {
        let patience = self.timeout();
        let gone = self.in_flight.iter().take_while(|sent| sent.sent_at + patience <= now).count();
        let bytes: u64 = self.in_flight.drain(..gone).map(|sent| u64::from(sent.info.len_bytes)).sum();
        self.in_flight_bytes -= bytes;
        self.timeouts = self.timeouts.saturating_add(u32::from(gone > 0));
        if self.in_flight.is_empty() && !self.has_waiting() {
            self.wait_queue = None;
        }
        gone as u64
    }
}

impl MobileAck<'_> {
    /// Returns whether the host has received a packet.
    fn covers(&self, span: &PacketInfo) -> bool {
        let mut blocks = self.sack.as_slice().iter();
        let mut within = || blocks.any(|b| span.seq.at_or_after(b.left) && !span.end.after(b.right));
        self.connection == span.connection && (!span.end.after(self.ack) || within())
    }
}
