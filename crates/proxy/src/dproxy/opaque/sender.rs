//! Sender of a link: it replays requested packets.

use super::frame::split_into_frames;
use super::{Config, Frame, OpaqueAction, Parity, Stats, TransmissionKind};
use crate::dproxy::cache::{PacketCache, Replay};
use crate::pep::QueuePosition;
use crate::rtt::RttEstimator;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Round-trip time of the link before the first sample.
const INITIAL_RTT: Duration = Duration::from_millis(10);
/// Maximum number of tail probes for a packet.
const MAX_TAIL_PROBES: u8 = 3;
/// Number of packets between two updates of the loss ratio.
const LOSS_SAMPLE_PACKETS: u32 = 64;
/// Loss ratio below which there is no parity.
const MIN_PARITY_LOSS: f64 = 0.001;

#[derive(Debug)]
pub(super) struct OpaqueSender<K> {
    config: Config,
    epoch: u16,
    /// Cached packets. The low half of a ring number is the packet number.
    cache: PacketCache<K, ()>,
    rtt: RttEstimator,
    tail_probe: TailProbe,
    loss_estimator: LossEstimator,
    /// Numbers since the last parity, and the number after the last one that parity has covered.
    parity_group: Vec<u64>,
    parity_covered: u64,
}

/// State of the tail probe.
#[derive(Debug)]
struct TailProbe {
    /// Time of the next probe.
    next_probe: Option<Instant>,
    /// Number of probes for the last packet.
    probes: u8,
    /// Time of the last probe, until it is answered.
    last_probe: Option<Instant>,
}

/// Estimator of the loss ratio.
#[derive(Debug, Default)]
struct LossEstimator {
    loss_ratio: f64,
    sent: u32,
    lost: u32,
}

impl<K: Clone> OpaqueSender<K> {
    /// Returns the number of cached packets.
    pub(super) const fn cached_packets(&self) -> usize {
        self.cache.occupied_slots()
    }

    pub(super) fn new(config: Config, epoch: u16) -> Self {
        Self {
            config,
            epoch,
            cache: PacketCache::new(config.caching()),
            rtt: RttEstimator::with_initial_until_sampled(INITIAL_RTT),
            tail_probe: TailProbe { next_probe: None, probes: 0, last_probe: None },
            loss_estimator: LossEstimator::default(),
            parity_group: Vec::new(),
            parity_covered: 0,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.tail_probe.next_probe.into_iter().chain(self.cache.next_expiry()).min()
    }

    pub(super) fn send(
        &mut self,
        now: Instant,
        packet: K,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        self.evict_expired(now, out);
        if self.cache.is_full() {
            out.extend(self.cache.pop().map(|left| OpaqueAction::Release(left.packet)));
        }
        stats.packets += 1;
        self.loss_estimator.on_sent();
        let number = self.cache.push(now, (), packet.clone());
        let frame = Frame::Data {
            epoch: self.epoch,
            number: number as u32,
            sending: TransmissionKind::Original,
            packet,
        };
        out.push_back(OpaqueAction::Send(QueuePosition::Back, frame));
        if let Some(least) = self.config.tail_probe_delay {
            let half = Duration::from_nanos(self.rtt.srtt().as_nanos() / 2);
            self.tail_probe =
                TailProbe { next_probe: Some(now + half.max(least)), probes: 0, last_probe: None };
        }
        match self.loss_estimator.parity_interval(self.config.parity) {
            None => self.parity_group.clear(),
            Some(every) => {
                self.parity_group.push(number);
                if self.parity_group.len() >= every {
                    self.send_parity(out, stats);
                }
            }
        }
    }

    /// Sends parity over the group, unless the queue refused one of its packets: parity covers consecutive
    /// numbers only.
    fn send_parity(&mut self, out: &mut VecDeque<OpaqueAction<K>>, stats: &mut Stats) {
        let group = core::mem::take(&mut self.parity_group);
        let of: Vec<_> = group.iter().filter_map(|number| self.cache.get(*number).cloned()).collect();
        if let Some(first) = group.first()
            && of.len() as u64 == self.cache.next() - first
        {
            self.parity_covered = self.cache.next();
            stats.parity += 1;
            let frame = Frame::Parity { epoch: self.epoch, first: *first as u32, of };
            out.push_back(OpaqueAction::Send(QueuePosition::Back, frame));
        }
    }

    /// Handles a request for missing packets.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        epoch: u16,
        numbers: &[u32],
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        let mut gone = Vec::new();
        for &number in numbers {
            let Some(at) = self.cache_number(epoch, number) else {
                stats.invalid += 1;
                continue;
            };
            match self.cache.replay(now, at) {
                Some(Replay::Packet(packet, times)) => {
                    stats.replayed += 1;
                    self.loss_estimator.lost += u32::from(times == 1);
                    let frame =
                        Frame::Data { epoch, number, sending: TransmissionKind::Retransmission, packet };
                    out.push_back(OpaqueAction::Send(self.config.queue_position, frame));
                }
                Some(Replay::RecentlyReplayed) => stats.recently_replayed += 1,
                Some(Replay::Exhausted) | None => gone.push(number),
            }
        }
        stats.not_cached += gone.len() as u64;
        let turn = self.config.queue_position;
        let frames =
            split_into_frames(&gone).map(|numbers| OpaqueAction::Send(turn, Frame::Gone { epoch, numbers }));
        out.extend(frames);
    }

    /// Handles the answer to a tail probe: the other end has everything before `next`, or no longer waits for
    /// it.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        epoch: u16,
        next: u32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        let Some(next) = self.cache_number_up_to_next(epoch, next) else {
            stats.invalid += 1;
            return;
        };
        if let Some(told_at) = self.tail_probe.last_probe.take().filter(|_| self.tail_probe.probes == 1) {
            self.rtt.sample(now.since(told_at)); // Karn
        }
        while self.cache.len() > 0 && self.cache.first() < next {
            out.extend(self.cache.pop().map(|left| OpaqueAction::Release(left.packet)));
        }
        if next == self.cache.next() {
            self.tail_probe.next_probe = None;
        }
    }

    /// Handles a packet that the queue refused: it is not in flight. If it is the last one, its number goes
    /// to the next packet; otherwise the receiver is told that it is gone. A replay is not new to the queue,
    /// and is requested once more.
    pub(super) fn on_queue_drop(
        &mut self,
        number: u32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        let Some(at) = self.cache_number(self.epoch, number).filter(|at| !self.cache.is_replayed(*at)) else {
            return;
        };
        let lost = if at + 1 == self.cache.next() && at >= self.parity_covered {
            self.parity_group.retain(|other| *other != at);
            self.cache.pop_newest()
        } else {
            self.cache.remove(at).map(|left| left.packet)
        };
        stats.refused += u64::from(lost.is_some());
        out.extend(lost.map(OpaqueAction::ReportDrop));
    }

    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        self.evict_expired(now, out);
        if self.tail_probe.next_probe.is_none_or(|due| due > now) {
            return;
        }
        self.tail_probe.probes += 1;
        self.tail_probe.last_probe = Some(now);
        let again =
            now + self.rtt.with_deviations(1).max(self.config.tail_probe_delay.unwrap_or(INITIAL_RTT));
        self.tail_probe.next_probe = (self.tail_probe.probes < MAX_TAIL_PROBES).then_some(again);
        stats.tail_probes += 1;
        let last = (self.cache.next() as u32).wrapping_sub(1);
        // The probe must not overtake the packet that it announces.
        out.push_back(OpaqueAction::Send(QueuePosition::Back, Frame::Tail { epoch: self.epoch, last }));
    }

    /// Returns the place of the packet of this number, if it was sent recently.
    fn cache_number(&self, epoch: u16, number: u32) -> Option<u64> {
        let back = (self.cache.next() as u32).wrapping_sub(number);
        let place = self.cache.next().checked_sub(back.into());
        place.filter(|_| epoch == self.epoch && back > 0 && back <= u32::MAX / 2)
    }

    /// As [`Self::cache_number`], or the place of the next packet.
    fn cache_number_up_to_next(&self, epoch: u16, number: u32) -> Option<u64> {
        let next = (epoch == self.epoch && number == self.cache.next() as u32).then(|| self.cache.next());
        next.or_else(|| self.cache_number(epoch, number))
    }

    fn evict_expired(&mut self, now: Instant, out: &mut VecDeque<OpaqueAction<K>>) {
        while let Some(left) = self.cache.pop_expired(now) {
            out.push_back(OpaqueAction::Release(left.packet));
        }
    }
}

impl LossEstimator {
    fn on_sent(&mut self) {
        self.sent += 1;
        if self.sent >= LOSS_SAMPLE_PACKETS {
            let share = f64::from(self.lost) / f64::from(self.sent);
            *self = Self { loss_ratio: 0.75 * self.loss_ratio + 0.25 * share.min(1.0), sent: 0, lost: 0 };
        }
    }

    /// Returns the number of packets between two parity frames.
    fn parity_interval(&self, parity: Parity) -> Option<usize> {
        match parity {
            Parity::Adaptive { min_group: least, max_group: most } if self.loss_ratio >= MIN_PARITY_LOSS => {
                let (least, most) = (usize::from(least.get()), usize::from(most.get()));
                Some(((0.5 / self.loss_ratio) as usize).max(least).min(most.max(least)))
            }
            _ => None,
        }
    }
}
