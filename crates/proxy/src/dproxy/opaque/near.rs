//! The half that sends packets, and sends again what it is asked for.

use super::frame::in_frames;
use super::{Config, Does, Frame, Parity, Sending, Stats};
use crate::dproxy::cache::{Replay, Ring};
use crate::filter::Turn;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// The round trip of the link before the first answer.
const INITIAL: Duration = Duration::from_millis(10);
/// How often the other end is told of a last packet.
const TAIL_PROBES: u8 = 3;
/// Packets after which the share of those that were lost is looked at.
const SAMPLE: u32 = 64;
/// While less are lost there is no parity.
const FEW: f64 = 0.001;

#[derive(Debug)]
pub(super) struct Near<K> {
    config: Config,
    epoch: u16,
    /// What is kept. The low half of a number is that of the packet.
    ring: Ring<K, ()>,
    rtt: Rtt,
    tail: Tail,
    losses: Losses,
    /// The numbers since the last parity, and the one after all that parity has told of.
    group: Vec<u64>,
    covered: u64,
}

/// What is known of the last packet.
#[derive(Debug)]
struct Tail {
    /// When the other end is told of it.
    due: Option<Instant>,
    /// How often it was.
    told: u8,
    /// When last, until it answers.
    told_at: Option<Instant>,
}

/// The share of packets that were lost.
#[derive(Debug, Default)]
struct Losses {
    share: f64,
    sent: u32,
    lost: u32,
}

impl<K: Clone> Near<K> {
    /// Number of packets that it keeps.
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

    /// A group of which something was refused has no parity: it could not be told what it is of.
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

    /// The other end misses these.
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

    /// The other end has everything before `next`, or does not wait for it.
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

    /// A packet that was refused is not under way. Its number goes to the next packet; or nobody is to wait for it, if others have later
    /// ones. One that was sent again is not new to the queue, and is asked for once more.
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
        // It must not overtake what it tells of.
        out.push_back(Does::Sends(Turn::Last, Frame::Tail { epoch: self.epoch, last }));
    }

    /// Where a packet of this number is, if one was sent lately.
    fn place(&self, epoch: u16, number: u32) -> Option<u64> {
        let back = (self.ring.next() as u32).wrapping_sub(number);
        let place = self.ring.next().checked_sub(back.into());
        place.filter(|_| epoch == self.epoch && back > 0 && back <= u32::MAX / 2)
    }

    /// The same, or where the next one will be.
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

    /// After how many packets there is parity.
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
