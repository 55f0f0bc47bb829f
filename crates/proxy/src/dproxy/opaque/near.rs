//! Sender of a link: it replays requested packets.

use super::frame::in_frames;
use super::{Config, Does, Frame, Parity, Sending, Stats};
use crate::dproxy::cache::{Replay, Ring};
use crate::filter::Turn;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Round-trip time of the link before the first sample.
const INITIAL: Duration = Duration::from_millis(10);
/// Maximum number of tail probes for a packet.
const TAIL_PROBES: u8 = 3;
/// Number of packets between two updates of the loss ratio.
const SAMPLE: u32 = 64;
/// Loss ratio below which there is no parity.
const FEW: f64 = 0.001;

#[derive(Debug)]
pub(super) struct Near<K> {
    config: Config,
    epoch: u16,
    /// Cached packets. The low half of a ring number is the packet number.
    ring: Ring<K, ()>,
    rtt: Rtt,
    tail: Tail,
    losses: Losses,
    /// Numbers since the last parity, and the number after the last one that parity has covered.
    group: Vec<u64>,
    covered: u64,
}

/// State of the tail probe.
#[derive(Debug)]
struct Tail {
    /// Time of the next probe.
    due: Option<Instant>,
    /// Number of probes for the last packet.
    told: u8,
    /// Time of the last probe, until it is answered.
    told_at: Option<Instant>,
}

/// Estimator of the loss ratio.
#[derive(Debug, Default)]
struct Losses {
    share: f64,
    sent: u32,
    lost: u32,
}

impl<K: Clone> Near<K> {
    /// Returns the number of cached packets.
    pub(super) const fn held(&self) -> usize {
        self.ring.kept()
    }

    pub(super) fn new(config: Config, epoch: u16) -> Self {
        Self {
            config,
            epoch,
            ring: Ring::new(config.caching()),
            rtt: Rtt::until_sampled(INITIAL),
            tail: Tail { due: None, told: 0, told_at: None },
            losses: Losses::default(),
            group: Vec::new(),
            covered: 0,
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.tail.due.into_iter().chain(self.ring.next_end()).min()
    }

    pub(super) fn send(&mut self, now: Instant, packet: K, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        self.drop_old(now, out);
        if self.ring.is_full() {
            out.extend(self.ring.pop().map(|left| Does::Discards(left.kept)));
        }
        stats.packets += 1;
        self.losses.sent();
        let number = self.ring.push(now, (), packet.clone());
        let frame = Frame::Data { epoch: self.epoch, number: number as u32, sending: Sending::First, packet };
        out.push_back(Does::Sends(Turn::Last, frame));
        if let Some(least) = self.config.tail_probe {
            let half = Duration::from_nanos(self.rtt.srtt().as_nanos() / 2);
            self.tail = Tail { due: Some(now + half.max(least)), told: 0, told_at: None };
        }
        match self.losses.parity_every(self.config.parity) {
            None => self.group.clear(),
            Some(every) => {
                self.group.push(number);
                if self.group.len() >= every {
                    self.send_parity(out, stats);
                }
            }
        }
    }

    /// Sends parity over the group, unless the queue refused one of its packets: parity covers consecutive
    /// numbers only.
    fn send_parity(&mut self, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        let group = core::mem::take(&mut self.group);
        let of: Vec<_> = group.iter().filter_map(|number| self.ring.get(*number).cloned()).collect();
        if let Some(first) = group.first()
            && of.len() as u64 == self.ring.next() - first
        {
            self.covered = self.ring.next();
            stats.parity += 1;
            let frame = Frame::Parity { epoch: self.epoch, first: *first as u32, of };
            out.push_back(Does::Sends(Turn::Last, frame));
        }
    }

    /// Handles a request for missing packets.
    pub(super) fn replay(
        &mut self,
        now: Instant,
        epoch: u16,
        numbers: &[u32],
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        let mut gone = Vec::new();
        for &number in numbers {
            let Some(at) = self.place(epoch, number) else {
                stats.senseless += 1;
                continue;
            };
            match self.ring.replay(now, at) {
                Some(Replay::Packet(packet, times)) => {
                    stats.replayed += 1;
                    self.losses.lost += u32::from(times == 1);
                    let frame = Frame::Data { epoch, number, sending: Sending::Again, packet };
                    out.push_back(Does::Sends(self.config.turn, frame));
                }
                Some(Replay::UnderWay) => stats.under_way += 1,
                Some(Replay::Exhausted) | None => gone.push(number),
            }
        }
        stats.not_kept += gone.len() as u64;
        let turn = self.config.turn;
        let frames = in_frames(&gone).map(|numbers| Does::Sends(turn, Frame::Gone { epoch, numbers }));
        out.extend(frames);
    }

    /// Handles the answer to a tail probe: the other end has everything before `next`, or no longer waits for
    /// it.
    pub(super) fn hear_report(
        &mut self,
        now: Instant,
        epoch: u16,
        next: u32,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        let Some(next) = self.place_to(epoch, next) else {
            stats.senseless += 1;
            return;
        };
        if let Some(told_at) = self.tail.told_at.take().filter(|_| self.tail.told == 1) {
            self.rtt.sample(now.since(told_at)); // Karn
        }
        while self.ring.len() > 0 && self.ring.first() < next {
            out.extend(self.ring.pop().map(|left| Does::Discards(left.kept)));
        }
        if next == self.ring.next() {
            self.tail.due = None;
        }
    }

    /// Handles a packet that the queue refused: it is not in flight. If it is the last one, its number goes
    /// to the next packet; otherwise the receiver is told that it is gone. A replay is not new to the queue,
    /// and is requested once more.
    pub(super) fn refused(&mut self, number: u32, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        let Some(at) = self.place(self.epoch, number).filter(|at| !self.ring.was_replayed(*at)) else {
            return;
        };
        let lost = if at + 1 == self.ring.next() && at >= self.covered {
            self.group.retain(|other| *other != at);
            self.ring.take_back()
        } else {
            self.ring.free(at).map(|left| left.kept)
        };
        stats.refused += u64::from(lost.is_some());
        out.extend(lost.map(Does::Loses));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        self.drop_old(now, out);
        if self.tail.due.is_none_or(|due| due > now) {
            return;
        }
        self.tail.told += 1;
        self.tail.told_at = Some(now);
        let again = now + self.rtt.with_deviations(1).max(self.config.tail_probe.unwrap_or(INITIAL));
        self.tail.due = (self.tail.told < TAIL_PROBES).then_some(again);
        stats.tail_probes += 1;
        let last = (self.ring.next() as u32).wrapping_sub(1);
        // The probe must not overtake the packet that it announces.
        out.push_back(Does::Sends(Turn::Last, Frame::Tail { epoch: self.epoch, last }));
    }

    /// Returns the place of the packet of this number, if it was sent recently.
    fn place(&self, epoch: u16, number: u32) -> Option<u64> {
        let back = (self.ring.next() as u32).wrapping_sub(number);
        let place = self.ring.next().checked_sub(back.into());
        place.filter(|_| epoch == self.epoch && back > 0 && back <= u32::MAX / 2)
    }

    /// As [`Self::place`], or the place of the next packet.
    fn place_to(&self, epoch: u16, number: u32) -> Option<u64> {
        let next = (epoch == self.epoch && number == self.ring.next() as u32).then(|| self.ring.next());
        next.or_else(|| self.place(epoch, number))
    }

    fn drop_old(&mut self, now: Instant, out: &mut VecDeque<Does<K>>) {
        while let Some(left) = self.ring.pop_old(now) {
            out.push_back(Does::Discards(left.kept));
        }
    }
}

impl Losses {
    fn sent(&mut self) {
        self.sent += 1;
        if self.sent >= SAMPLE {
            let share = f64::from(self.lost) / f64::from(self.sent);
            *self = Self { share: 0.75 * self.share + 0.25 * share.min(1.0), sent: 0, lost: 0 };
        }
    }

    /// Returns the number of packets between two parity frames.
    fn parity_every(&self, parity: Parity) -> Option<usize> {
        match parity {
            Parity::Adaptive { least, most } if self.share >= FEW => {
                let (least, most) = (usize::from(least.get()), usize::from(most.get()));
                Some(((0.5 / self.share) as usize).max(least).min(most.max(least)))
            }
            _ => None,
        }
    }
}
