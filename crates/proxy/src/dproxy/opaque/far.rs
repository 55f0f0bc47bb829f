//! Receiver of a link: it requests missing packets.

use super::frame::in_frames;
use super::{Config, Does, Frame, MOST_MISSING, Sending, Stats, WINDOW};
use crate::dproxy::RecoveryStats;
use crate::dproxy::holes::{By, Holes, Requests, Rest};
use crate::filter::Turn;
use crate::window::Window;
use hopline_core::{Duration, Instant, Seq32};
use std::collections::VecDeque;

/// Largest first number of an epoch at which all numbers before it count as missing. A later number means
/// that the epoch was under way.
const BEGINNING: u32 = 16;
/// Time for which frames of the former epoch of the other end may still arrive. After it they count as those
/// of a new epoch.
const STALE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Far<K> {
    life: Option<Life>,
    /// Number of the first packet that is waited for: the first hole, or `edge`.
    next: Seq32,
    /// Number after the last one known of.
    edge: Seq32,
    /// Packets from `next` on.
    window: Window<K>,
    turn: Turn,
    holes: Holes<u32>,
    requests: Requests<u32>,
}

/// Epoch of the other end.
#[derive(Clone, Copy, Debug)]
struct Life {
    epoch: u16,
    since: Instant,
    /// The epoch before it.
    former: Option<u16>,
}

/// Epoch that a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The current epoch of the other end.
    Current,
    /// Its former epoch.
    Former,
}

impl<K> Far<K> {
    /// Returns the number of packets that wait for earlier ones.
    pub(super) fn held(&self) -> usize {
        self.window.waiting()
    }

    pub(super) fn new(config: Config) -> Self {
        Self {
            life: None,
            next: Seq32(0),
            edge: Seq32(0),
            window: Window::new(config.order),
            turn: config.turn,
            holes: Holes::new(),
            requests: Requests::new(config.recovery),
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.holes.due()
    }

    pub(super) const fn recovery(&self) -> &RecoveryStats {
        self.requests.stats()
    }

    /// Handles a packet.
    pub(super) fn take(
        &mut self,
        now: Instant,
        (epoch, number, sending): (u16, Seq32, Sending),
        packet: K,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        if self.live(now, epoch, number, out, stats) == Whose::Former {
            return out.push_back(Does::Delivers(packet));
        }
        if (self.next - number) as usize > WINDOW && number.before(self.next) {
            // It is not a duplicate: an invalid frame has moved the window.
            stats.too_many += 1;
            self.begin(number, out);
        }
        if !number.before(self.edge) {
            self.holes.overtake(now, &mut self.requests);
            self.miss_up_to(now, number, out, stats);
            self.edge = number + 1;
        } else if !self.is_missing(number) {
            stats.copies += 1;
            return out.push_back(Does::Discards(packet));
        } else {
            let by = if sending == Sending::Again { By::Replay } else { By::Original };
            self.holes.arrive(now, number.0, (by, Rest::Asked), &mut self.requests);
        }
        let at = (number - self.next) as usize;
        self.window.put(at, Some(packet), |packet| out.push_back(Does::Delivers(packet)));
        self.settle(out);
    }

    /// Handles parity: delivers the restored packet if exactly one was missing.
    pub(super) fn take_parity(
        &mut self,
        now: Instant,
        (epoch, first): (u16, Seq32),
        of: Vec<K>,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        let count = of.len() as u32;
        let missing: Vec<_> = (0..count).filter(|at| self.is_missing(first + *at)).collect();
        let is_known = self.life.is_some_and(|life| life.epoch == epoch);
        let one = missing.first().filter(|_| is_known && missing.len() == 1).copied();
        for (at, packet) in (0..).zip(of) {
            if Some(at) == one {
                stats.restored += 1;
                self.take(now, (epoch, first + at, Sending::First), packet, out, stats);
            } else {
                out.push_back(Does::Discards(packet));
            }
        }
        // With more than one missing it shows at least that they were sent.
        if is_known && count > 0 {
            self.hear_last(now, first + (count - 1), out, stats);
        }
    }

    /// Handles a tail probe: the other end has sent nothing after `last`.
    pub(super) fn hear_tail(
        &mut self,
        now: Instant,
        epoch: u16,
        last: Seq32,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        if self.live(now, epoch, last + 1, out, stats) == Whose::Current {
            self.hear_last(now, last, out, stats);
            let report = Frame::Report { epoch, next: self.next.0 };
            out.push_back(Does::Sends(self.turn, report));
        }
    }

    /// Gives up packets that the other end no longer keeps (C8).
    pub(super) fn hear_gone(
        &mut self,
        now: Instant,
        epoch: u16,
        numbers: &[u32],
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        if self.life.is_none_or(|life| life.epoch != epoch) {
            stats.senseless += 1;
            return;
        }
        for number in numbers {
            if !self.holes.forget(*number, &mut self.requests) {
                stats.senseless += 1;
            }
        }
        self.holes.expire(now, &mut self.requests);
        self.settle(out);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Does<K>>) {
        self.holes.expire(now, &mut self.requests);
        self.settle(out);
    }

    fn hear_last(&mut self, now: Instant, last: Seq32, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        if !last.before(self.edge) {
            self.miss_up_to(now, last + 1, out, stats);
            self.edge = last + 1;
        }
        self.settle(out);
    }

    /// Returns whether a packet has not arrived and may still be waited for.
    fn is_missing(&self, number: Seq32) -> bool {
        !number.before(self.next) && !self.window.has((number - self.next) as usize)
    }

    /// Records the packets from the edge up to `number` as missing, unless they are too many, or too far
    /// ahead of the first hole.
    fn miss_up_to(&mut self, now: Instant, number: Seq32, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        let missing = number - self.edge;
        if missing as usize + self.holes.len() > MOST_MISSING {
            stats.too_many += 1;
            self.begin(number, out);
            return;
        }
        // Holes too far behind are given up.
        let first = number + 1 - WINDOW as u32;
        if first.after(self.next) {
            self.holes.give_up_those(|what| Seq32(what).before(first), &mut self.requests);
            self.settle_to(first.min(self.edge), out);
        }
        for what in 0..missing {
            self.holes.open(now, (self.edge + what).0, &mut self.requests);
        }
    }

    /// Sends pending requests, and delivers packets that wait for nothing more.
    fn settle(&mut self, out: &mut VecDeque<Does<K>>) {
        if self.requests.has_asked()
            && let Some(Life { epoch, .. }) = self.life
        {
            let asked: Vec<_> = self.requests.take_asked().collect();
            let turn = self.turn;
            let frames =
                in_frames(&asked).map(|numbers| Does::Sends(turn, Frame::Request { epoch, numbers }));
            out.extend(frames);
        }
        let first = self.holes.first().map_or(self.edge, Seq32);
        self.settle_to(first, out);
    }

    fn settle_to(&mut self, first: Seq32, out: &mut VecDeque<Does<K>>) {
        if first.after(self.next) {
            self.window.skip((first - self.next) as usize, |packet| out.push_back(Does::Delivers(packet)));
            self.next = first;
        }
    }

    /// Restarts the window at `number`: nothing before it is waited for.
    fn begin(&mut self, number: Seq32, out: &mut VecDeque<Does<K>>) {
        self.window.clear(|packet| out.push_back(Does::Delivers(packet)));
        self.holes.give_up(&mut self.requests);
        (self.next, self.edge) = (number, number);
    }

    /// Returns the epoch that a frame belongs to; a new one begins with it, at `number`.
    fn live(
        &mut self,
        now: Instant,
        epoch: u16,
        number: Seq32,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) -> Whose {
        match self.life {
            Some(life) if life.epoch == epoch => return Whose::Current,
            Some(life) if life.former == Some(epoch) && now.since(life.since) < STALE => {
                stats.stale += 1;
                return Whose::Former;
            }
            Some(_) => stats.restarts += 1,
            None => {}
        }
        self.life = Some(Life { epoch, since: now, former: self.life.map(|life| life.epoch) });
        let first = if number.0 < BEGINNING { Seq32(0) } else { number };
        self.begin(first, out);
        Whose::Current
    }
}
