//! Sender of a link.

use super::{Config, Does, Frame, Stats, WINDOW};
use crate::filter::Turn;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant, Seq16};
use std::collections::VecDeque;

/// Retransmission timeout before the first acknowledgment.
const INITIAL: Duration = Duration::from_millis(100);
/// Maximum number of doublings of the timeout.
const MOST_DOUBLINGS: u32 = 6;

#[derive(Debug)]
pub(super) struct Sender<K> {
    config: Config,
    epoch: u16,
    /// Number of the first remembered frame.
    first: Seq16,
    frames: VecDeque<Sent<K>>,
    /// Number of transmissions so far.
    order: u64,
    rtt: Rtt,
    due: Option<Instant>,
    doublings: u32,
    /// Frames since the last parity.
    group: Vec<Seq16>,
}

#[derive(Debug)]
struct Sent<K> {
    content: Option<K>,
    tries: u8,
    at: Instant,
    order: u64,
    turn: Turn,
    arrived: bool,
}

/// Latest transmissions that have arrived, as positions in the order of all transmissions.
#[derive(Debug, Default)]
struct Arrived {
    /// The latest of all. Frames with [`Turn::First`] sent before it have arrived, or are lost.
    any: u64,
    /// The latest with [`Turn::Last`]. It cannot have overtaken another frame: each frame sent before it has
    /// arrived, or is lost.
    behind: u64,
}

impl<K: Clone> Sender<K> {
    /// Returns the number of stored packets.
    pub(super) fn held(&self) -> usize {
        self.frames.iter().filter(|sent| sent.content.is_some()).count()
    }

    pub(super) fn new(config: Config, epoch: u16) -> Self {
        Self {
            config,
            epoch,
            first: Seq16(0),
            frames: VecDeque::new(),
            order: 0,
            rtt: Rtt::until_sampled(INITIAL),
            due: None,
            doublings: 0,
            group: Vec::new(),
        }
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn send(&mut self, now: Instant, packet: K, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        if self.frames.len() >= WINDOW {
            stats.refused += 1;
            return out.push_back(Does::Refuses(packet));
        }
        stats.packets += 1;
        let number = self.first + self.frames.len() as u16;
        self.frames.push_back(Sent {
            content: Some(packet),
            tries: 0,
            at: now,
            order: 0,
            turn: Turn::Last,
            arrived: false,
        });
        self.transmit(now, self.frames.len() - 1, Turn::Last, out);
        if let Some(every) = self.config.parity_every {
            self.group.push(number);
            if self.group.len() >= usize::from(every.get()) {
                self.send_parity(out);
            }
        }
    }

    pub(super) fn take_ack(
        &mut self,
        now: Instant,
        (epoch, next, beyond): (u16, Seq16, [u64; WINDOW / 64]),
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        let cumulative = next.distance_from(self.first);
        if epoch != self.epoch || cumulative < 0 || cumulative as usize > self.frames.len() {
            stats.senseless += u64::from(epoch != self.epoch || cumulative > 0);
            return;
        }
        let cumulative = cumulative as usize;
        let has = |at: usize| {
            let bit = at.checked_sub(cumulative + 1);
            at < cumulative || bit.is_some_and(|bit| bit < WINDOW && beyond[bit / 64] >> (bit % 64) & 1 == 1)
        };
        let mut arrived = Arrived::default();
        // Number of transmissions of the latest frame acknowledged now, and the time of the last one.
        let mut sent_at = None;
        for (_, frame) in self.frames.iter_mut().enumerate().filter(|(at, frame)| !frame.arrived && has(*at))
        {
            frame.arrived = true;
            out.extend(frame.content.take().map(Does::Discards));
            if arrived.any < frame.order {
                (arrived.any, sent_at) = (frame.order, Some((frame.tries, frame.at)));
            }
            if frame.turn == Turn::Last {
                arrived.behind = arrived.behind.max(frame.order);
            }
        }
        while self.frames.front().is_some_and(|frame| frame.arrived) {
            self.frames.pop_front();
            self.first += 1;
        }
        let Some((tries, at)) = sent_at else { return };
        self.doublings = 0;
        if tries == 1 {
            self.rtt.sample(now.since(at)); // Karn
        }
        self.arm(now);
        self.resend_lost(now, &arrived, out, stats);
    }

    /// Handles a frame that the queue refused: it is not in flight. If it is the last one, its number goes to
    /// the next packet. Otherwise an empty frame is sent in its place. A retransmission is not new to the
    /// queue; it is sent again after the next acknowledgment.
    pub(super) fn refused(&mut self, number: Seq16, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        let at = number.distance_from(self.first);
        let frame = usize::try_from(at).ok().and_then(|at| self.frames.get_mut(at));
        let Some(frame) = frame.filter(|frame| !frame.arrived) else { return };
        if frame.tries > 1 {
            (frame.order, frame.turn) = (0, Turn::First);
        } else if let Some(content) = frame.content.take() {
            stats.refused += 1;
            out.push_back(Does::Loses(content));
            self.take_back(number);
        }
    }

    /// Takes back a frame's number, if it is the last and neither a frame nor parity has announced it.
    fn take_back(&mut self, number: Seq16) {
        let is_last = number == self.first + (self.frames.len() - 1) as u16;
        let is_untold = self.config.parity_every.is_none() || self.group.last() == Some(&number);
        if is_last && is_untold {
            self.frames.pop_back();
            self.group.pop();
            if self.frames.iter().all(|frame| frame.arrived) {
                self.due = None;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        if let Some(last) = self.frames.iter().rposition(|frame| !frame.arrived) {
            self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
            stats.timeouts += 1;
            self.again(now, last, out, stats);
        }
    }

    /// Retransmits lost frames: those sent before an acknowledged transmission that could not overtake them.
    fn resend_lost(
        &mut self,
        now: Instant,
        arrived: &Arrived,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        for at in 0..self.frames.len() {
            let frame = &self.frames[at];
            let latest = if frame.turn == Turn::First { arrived.any } else { arrived.behind };
            if !frame.arrived && frame.order < latest {
                self.again(now, at, out, stats);
            }
        }
    }

    fn again(&mut self, now: Instant, at: usize, out: &mut VecDeque<Does<K>>, stats: &mut Stats) {
        let frame = &mut self.frames[at];
        if frame.tries >= self.config.attempts.get()
            && let Some(content) = frame.content.take()
        {
            stats.given_up += 1;
            out.push_back(Does::Discards(content));
        }
        stats.sent_again += 1;
        self.transmit(now, at, Turn::First, out);
    }

    fn transmit(&mut self, now: Instant, at: usize, turn: Turn, out: &mut VecDeque<Does<K>>) {
        self.order += 1;
        let (epoch, first, number) = (self.epoch, self.first, self.first + at as u16);
        let frame = &mut self.frames[at];
        (frame.at, frame.order, frame.turn) = (now, self.order, turn);
        frame.tries = frame.tries.saturating_add(1);
        let content = frame.content.clone();
        out.push_back(Does::Sends(turn, Frame::Data { epoch, first, number, content }));
        self.arm(now);
    }

    /// Sends parity over the packets of the group. Packets that have arrived are left out.
    fn send_parity(&mut self, out: &mut VecDeque<Does<K>>) {
        let (first, frames) = (self.first, &self.frames);
        let content_of = |number: Seq16| {
            let at = usize::try_from(number.distance_from(first)).ok()?;
            Some((number, frames.get(at)?.content.clone()?))
        };
        let of: Vec<_> = self.group.drain(..).filter_map(content_of).collect();
        if !of.is_empty() {
            out.push_back(Does::Sends(Turn::Last, Frame::Parity { epoch: self.epoch, of }));
        }
    }

    fn arm(&mut self, now: Instant) {
        let patience = self.rtt.with_deviations(4).max(self.config.min_timer);
        self.due = (!self.frames.is_empty()).then(|| now + patience.saturating_mul(1 << self.doublings));
    }
}
