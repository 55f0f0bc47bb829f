//! Sender of a link.

use super::{ArqAction, Config, Frame, Stats, WINDOW_FRAMES};
use crate::pep::QueuePosition;
use crate::rtt::RttEstimator;
use hopline_core::{Duration, Instant, Seq16};
use std::collections::VecDeque;

/// Retransmission timeout before the first acknowledgment.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of doublings of the timeout.
const MAX_DOUBLINGS: u32 = 6;

#[derive(Debug)]
pub(super) struct Sender<K> {
    config: Config,
    epoch: u16,
    /// Number of the first remembered frame.
    first: Seq16,
    frames: VecDeque<SentFrame<K>>,
    /// Number of transmissions so far.
    transmissions: u64,
    rtt: RttEstimator,
    next_timeout: Option<Instant>,
    backoff: u32,
    /// Frames since the last parity.
    parity_group: Vec<Seq16>,
}

#[derive(Debug)]
struct SentFrame<K> {
    content: Option<K>,
    transmissions: u8,
    sent_at: Instant,
    last_transmission: u64,
    queue_position: QueuePosition,
    acked: bool,
}

/// Latest transmissions that have arrived, as positions in the order of all transmissions.
#[derive(Debug, Default)]
struct LatestAcked {
    /// The latest of all. Frames with [`QueuePosition::Front`] sent before it have arrived, or are lost.
    any: u64,
    /// The latest with [`QueuePosition::Back`]. It cannot have overtaken another frame: each frame sent before it has
    /// arrived, or is lost.
    at_back: u64,
}

impl<K: Clone> Sender<K> {
    /// Returns the number of stored packets.
    pub(super) fn stored_packets(&self) -> usize {
        self.frames.iter().filter(|sent| sent.content.is_some()).count()
    }

    pub(super) fn new(config: Config, epoch: u16) -> Self {
        Self {
            config,
            epoch,
            first: Seq16(0),
            frames: VecDeque::new(),
            transmissions: 0,
            rtt: RttEstimator::with_initial_until_sampled(INITIAL_TIMEOUT),
            next_timeout: None,
            backoff: 0,
            parity_group: Vec::new(),
        }
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout
    }

    pub(super) fn send(
        &mut self,
        now: Instant,
        packet: K,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        if self.frames.len() >= WINDOW_FRAMES {
            stats.refused += 1;
            return out.push_back(ArqAction::Refuse(packet));
        }
        stats.packets += 1;
        let number = self.first + self.frames.len() as u16;
        self.frames.push_back(SentFrame {
            content: Some(packet),
            transmissions: 0,
            sent_at: now,
            last_transmission: 0,
            queue_position: QueuePosition::Back,
            acked: false,
        });
        self.transmit(now, self.frames.len() - 1, QueuePosition::Back, out);
        if let Some(every) = self.config.parity_interval {
            self.parity_group.push(number);
            if self.parity_group.len() >= usize::from(every.get()) {
                self.send_parity(out);
            }
        }
    }

    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        (epoch, next, beyond): (u16, Seq16, [u64; WINDOW_FRAMES / 64]),
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        let cumulative = next.distance_from(self.first);
        if epoch != self.epoch || cumulative < 0 || cumulative as usize > self.frames.len() {
            stats.invalid += u64::from(epoch != self.epoch || cumulative > 0);
            return;
        }
        let cumulative = cumulative as usize;
        let has = |at: usize| {
            let bit = at.checked_sub(cumulative + 1);
            at < cumulative
                || bit.is_some_and(|bit| bit < WINDOW_FRAMES && beyond[bit / 64] >> (bit % 64) & 1 == 1)
        };
        let mut arrived = LatestAcked::default();
        // Number of transmissions of the latest frame acknowledged now, and the time of the last one.
        let mut sent_at = None;
        for (_, frame) in self.frames.iter_mut().enumerate().filter(|(at, frame)| !frame.acked && has(*at)) {
            frame.acked = true;
            out.extend(frame.content.take().map(ArqAction::Release));
            if arrived.any < frame.last_transmission {
                (arrived.any, sent_at) =
                    (frame.last_transmission, Some((frame.transmissions, frame.sent_at)));
            }
            if frame.queue_position == QueuePosition::Back {
                arrived.at_back = arrived.at_back.max(frame.last_transmission);
            }
        }
        while self.frames.front().is_some_and(|frame| frame.acked) {
            self.frames.pop_front();
            self.first += 1;
        }
        let Some((tries, at)) = sent_at else { return };
        self.backoff = 0;
        if tries == 1 {
            self.rtt.sample(now.since(at)); // Karn
        }
        self.set_timer(now);
        self.retransmit_lost(now, &arrived, out, stats);
    }

    /// Handles a frame that the queue refused: it is not in flight. If it is the last one, its number goes to
    /// the next packet. Otherwise an empty frame is sent in its place. A retransmission is not new to the
    /// queue; it is sent again after the next acknowledgment.
    pub(super) fn on_queue_drop(
        &mut self,
        number: Seq16,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        let at = number.distance_from(self.first);
        let frame = usize::try_from(at).ok().and_then(|at| self.frames.get_mut(at));
        let Some(frame) = frame.filter(|frame| !frame.acked) else { return };
        if frame.transmissions > 1 {
            (frame.last_transmission, frame.queue_position) = (0, QueuePosition::Front);
        } else if let Some(content) = frame.content.take() {
            stats.refused += 1;
            out.push_back(ArqAction::ReportDrop(content));
            self.reuse_number(number);
        }
    }

    /// Takes back a frame's number, if it is the last and neither a frame nor parity has announced it.
    fn reuse_number(&mut self, number: Seq16) {
        let is_last = number == self.first + (self.frames.len() - 1) as u16;
        let is_untold = self.config.parity_interval.is_none() || self.parity_group.last() == Some(&number);
        if is_last && is_untold {
            self.frames.pop_back();
            self.parity_group.pop();
            if self.frames.iter().all(|frame| frame.acked) {
                self.next_timeout = None;
            }
        }
    }

    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        if self.next_timeout.is_none_or(|due| due > now) {
            return;
        }
        self.next_timeout = None;
        if let Some(last) = self.frames.iter().rposition(|frame| !frame.acked) {
            self.backoff = (self.backoff + 1).min(MAX_DOUBLINGS);
            stats.timeouts += 1;
            self.retransmit(now, last, out, stats);
        }
    }

    /// Retransmits lost frames: those sent before an acknowledged transmission that could not overtake them.
    fn retransmit_lost(
        &mut self,
        now: Instant,
        arrived: &LatestAcked,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        for at in 0..self.frames.len() {
            let frame = &self.frames[at];
            let latest =
                if frame.queue_position == QueuePosition::Front { arrived.any } else { arrived.at_back };
            if !frame.acked && frame.last_transmission < latest {
                self.retransmit(now, at, out, stats);
            }
        }
    }

    fn retransmit(&mut self, now: Instant, at: usize, out: &mut VecDeque<ArqAction<K>>, stats: &mut Stats) {
        let frame = &mut self.frames[at];
        if frame.transmissions >= self.config.max_transmissions.get()
            && let Some(content) = frame.content.take()
        {
            stats.given_up += 1;
            out.push_back(ArqAction::Release(content));
        }
        stats.retransmitted += 1;
        self.transmit(now, at, QueuePosition::Front, out);
    }

    fn transmit(&mut self, now: Instant, at: usize, turn: QueuePosition, out: &mut VecDeque<ArqAction<K>>) {
        self.transmissions += 1;
        let (epoch, first, number) = (self.epoch, self.first, self.first + at as u16);
        let frame = &mut self.frames[at];
        (frame.sent_at, frame.last_transmission, frame.queue_position) = (now, self.transmissions, turn);
        frame.transmissions = frame.transmissions.saturating_add(1);
        let content = frame.content.clone();
        out.push_back(ArqAction::Send(turn, Frame::Data { epoch, first, number, content }));
        self.set_timer(now);
    }

    /// Sends parity over the packets of the group. Packets that have arrived are left out.
    fn send_parity(&mut self, out: &mut VecDeque<ArqAction<K>>) {
        let (first, frames) = (self.first, &self.frames);
        let content_of = |number: Seq16| {
            let at = usize::try_from(number.distance_from(first)).ok()?;
            Some((number, frames.get(at)?.content.clone()?))
        };
        let of: Vec<_> = self.parity_group.drain(..).filter_map(content_of).collect();
        if !of.is_empty() {
            out.push_back(ArqAction::Send(QueuePosition::Back, Frame::Parity { epoch: self.epoch, of }));
        }
    }

    fn set_timer(&mut self, now: Instant) {
        let patience = self.rtt.with_deviations(4).max(self.config.min_timer);
        self.next_timeout =
            (!self.frames.is_empty()).then(|| now + patience.saturating_mul(1 << self.backoff));
    }
}
