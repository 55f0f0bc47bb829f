//! Local queue in front of a link with a known rate: flow queueing with CoDel, before packets get their numbers.

use bytes::Bytes;
use core::num::{NonZeroU16, NonZeroU64};
use hopline_core::{Duration, Instant};
use hopline_queue::{
    Class, CoDelConfig, EcnCapability, EnqueueResult, FqCoDel, FqCoDelConfig, PacketAccess, SignalAction,
};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

/// Tolerated lateness of service, as of a system timer.
const TIMER_SLACK: Duration = Duration::from_millis(1);

/// Rate of the link, and parameters of the queue before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// Rate in bits per second, of datagrams including IP headers. Set it a little below that of the link, so that the
    /// link's own queue stays empty.
    pub rate: NonZeroU64,
    /// Maximum number of queued packets. Default 1000.
    pub packets: NonZeroU16,
    /// CoDel's target: tolerated standing delay. Default 5 ms (RFC 8289 §4.4).
    pub target: Duration,
    /// CoDel's interval, at least `target`. Default 100 ms (§4.3).
    pub interval: Duration,
}

impl Shaping {
    /// Returns the defaults at this rate.
    #[must_use]
    pub const fn new(rate: NonZeroU64) -> Self {
        let CoDelConfig { target, interval, .. } = CoDelConfig::RFC8289;
        Self { rate, packets: NonZeroU16::new(1000).expect("not zero"), target, interval }
    }

    pub(super) const fn codel(&self) -> CoDelConfig {
        CoDelConfig { target: self.target, interval: self.interval, ..CoDelConfig::RFC8289 }
    }
}

/// Packets queued for the rate of the link.
#[derive(Debug)]
pub(super) struct Shaper {
    rate: u64,
    queue: FqCoDel<QueuedPacket>,
    packets: Packets,
    /// Time at which the link has transmitted all bytes passed to it.
    free_at: Instant,
    next: u64,
    /// Packets dropped because the queue was full.
    pub(super) refused: u64,
    hasher: RandomState,
}

/// A queued packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueuedPacket {
    number: u64,
    len_bytes: u32,
    flow: u64,
}

#[derive(Debug, Default)]
struct Packets {
    packets: BTreeMap<u64, Bytes>,
    /// Packets dropped by CoDel.
    codel_drops: u64,
}

impl Shaper {
    pub(super) fn new(shaping: Shaping) -> Self {
        let config = FqCoDelConfig { codel: shaping.codel(), ..FqCoDelConfig::RFC8290 };
        Self {
            rate: shaping.rate.get(),
            queue: FqCoDel::new(config, shaping.packets),
            packets: Packets::default(),
            free_at: Instant::ZERO,
            next: 0,
            refused: 0,
            hasher: RandomState::new(),
        }
    }

    /// Queues a packet.
    pub(super) fn push(&mut self, now: Instant, packet: Bytes) {
        let flow = self.hasher.hash_one(flow_of(&packet));
        let waiting = QueuedPacket { number: self.next, len_bytes: packet.len() as u32, flow };
        self.packets.packets.insert(self.next, packet);
        self.next += 1;
        match self.queue.enqueue(now, waiting, &self.packets) {
            EnqueueResult::Accepted => {}
            EnqueueResult::Displaced(gone)
            | EnqueueResult::Refused(gone)
            | EnqueueResult::EarlyDrop(gone) => {
                self.refused += 1;
                self.packets.packets.remove(&gone.number);
            }
        }
    }

    /// Returns the next packet, if the link is idle.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Bytes> {
        if self.free_at > now {
            return None;
        }
        let waiting = self.queue.dequeue(now, &mut self.packets)?;
        self.packets.packets.remove(&waiting.number)
    }

    /// Accounts for `bytes` sent into the link.
    pub(super) fn record_sent(&mut self, now: Instant, bytes: usize) {
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(TIMER_SLACK.as_nanos()));
        self.free_at = self.free_at.max(earliest) + Duration::of_bits(bytes as u64 * 8, self.rate);
    }

    /// Returns the time at which the next packet may be sent.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.free_at)
    }

    /// Returns the number of queued packets.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the packets dropped by CoDel.
    pub(super) const fn codel_drops(&self) -> u64 {
        self.packets.codel_drops
    }
}

impl PacketAccess<QueuedPacket> for Packets {
    fn class(&self, _: &QueuedPacket) -> Class {
        Class::Data
    }

    fn len_bytes(&self, packet: &QueuedPacket) -> u32 {
        packet.len_bytes
    }

    fn capability(&self, _: &QueuedPacket) -> EcnCapability {
        EcnCapability::NotCapable
    }

    fn flow(&self, packet: &QueuedPacket) -> u64 {
        packet.flow
    }

    // Packets cannot be marked here; the action is to drop.
    fn mark(&mut self, _: &mut QueuedPacket) {}

    fn dropped(&mut self, packet: QueuedPacket) {
        self.codel_drops += 1;
        self.packets.remove(&packet.number);
    }
}

const _: () = assert!(matches!(CoDelConfig::RFC8289.action, SignalAction::Drop));

/// Returns the flow identifier of a packet: addresses, protocol and, for TCP and UDP, ports.
fn flow_of(packet: &[u8]) -> (&[u8], u8, &[u8]) {
    let (addresses, protocol, ports) = match packet.first().map_or(0, |first| first >> 4) {
        4 => (12..20, 9, usize::from(packet[0] & 15) * 4),
        6 => (8..40, 6, 40),
        _ => return (&[], 0, &[]),
    };
    let protocol = packet.get(protocol).copied().unwrap_or(0);
    let has_ports = matches!(protocol, 6 | 17);
    let ports = packet.get(ports..ports + 4).filter(|_| has_ports).unwrap_or_default();
    (packet.get(addresses).unwrap_or_default(), protocol, ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaper(packets: u16) -> Shaper {
        // 1000 bytes per millisecond.
        let shaping = Shaping::new(NonZeroU64::new(8_000_000).unwrap());
        Shaper::new(Shaping { packets: NonZeroU16::new(packets).unwrap(), ..shaping })
    }

    /// Returns a UDP packet between hosts that end in `host`.
    fn packet(host: u8, len: usize) -> Bytes {
        let mut packet = vec![host; len];
        (packet[0], packet[9]) = (0x45, 17);
        packet.into()
    }

    #[test]
    fn packets_leave_at_the_configured_rate() {
        let mut shaper = shaper(100);
        let mut sent = Vec::new();
        (0..20).for_each(|_| shaper.push(Instant::from_millis(10), packet(1, 1000)));
        for ms in 10..40 {
            let now = Instant::from_millis(ms);
            while let Some(packet) = shaper.pop(now) {
                shaper.record_sent(now, packet.len());
                sent.push(ms);
            }
        }
        // One more packet at first, for the tolerated lateness of timers.
        let expected: Vec<u64> = [10].into_iter().chain(10..29).collect();
        assert_eq!((sent, shaper.poll_timeout()), (expected, None));
    }

    #[test]
    fn packets_without_room_and_packets_that_wait_too_long_are_dropped() {
        let mut shaper = shaper(50);
        (0..60).for_each(|_| shaper.push(Instant::ZERO, packet(1, 1000)));
        assert_eq!((shaper.len(), shaper.refused, shaper.packets.packets.len()), (50, 10, 50));
        let mut now = Instant::ZERO;
        for _ in 0..1000 {
            now += Duration::from_millis(1);
            shaper.push(now, packet(1, 1000));
            if let Some(packet) = shaper.pop(now) {
                shaper.record_sent(now, packet.len());
            }
        }
        assert!(shaper.codel_drops() > 0, "the queue stood at 50 ms");
        assert_eq!(shaper.packets.packets.len(), shaper.len());
    }

    #[test]
    fn a_sparse_flow_does_not_wait_behind_a_bulk_flow() {
        let mut shaper = shaper(100);
        (0..50).for_each(|_| shaper.push(Instant::ZERO, packet(1, 1000)));
        assert_eq!(shaper.pop(Instant::ZERO), Some(packet(1, 1000)));
        shaper.push(Instant::ZERO, packet(2, 100));
        let next: Vec<_> = core::iter::from_fn(|| shaper.pop(Instant::ZERO)).take(3).collect();
        assert!(next.contains(&packet(2, 100)));
    }

    #[test]
    fn every_packet_belongs_to_a_flow() {
        for packet in [&[][..], &[0x45], &[0x4f; 20], &[0x60; 10], &[0x60; 41], &[0; 60]] {
            flow_of(packet);
        }
        assert_ne!(flow_of(&packet(1, 40)), flow_of(&packet(2, 40)));
    }
}
