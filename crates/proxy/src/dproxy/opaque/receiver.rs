//! Receiver of a link: it requests missing packets.

use super::frame::split_into_frames;
use super::{Config, Frame, MAX_MISSING, OpaqueAction, Stats, TransmissionKind, WINDOW_PACKETS};
use crate::dproxy::RecoveryStats;
use crate::dproxy::holes::{FilledBy, HoleList, Remainder, RequestScheduler};
use crate::pep::QueuePosition;
use crate::window::ReceiveWindow;
use hopline_core::{Duration, Instant, Seq32};
use std::collections::VecDeque;

/// Largest first number of an epoch at which all numbers before it count as missing. A later number means
/// that the epoch was under way.
const MAX_FIRST_NUMBER: u32 = 16;
/// Time for which frames of the former epoch of the other end may still arrive. After it they count as those
/// of a new epoch.
const STALE_EPOCH_LIFETIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct OpaqueReceiver<K> {
    peer_epoch: Option<PeerEpoch>,
    /// Number of the first packet that is waited for: the first hole, or `edge`.
    next: Seq32,
    /// Number after the last one known of.
    highest_received: Seq32,
    /// Packets from `next` on.
    window: ReceiveWindow<K>,
    queue_position: QueuePosition,
    holes: HoleList<u32>,
    requests: RequestScheduler<u32>,
}

/// Epoch of the other end.
#[derive(Clone, Copy, Debug)]
struct PeerEpoch {
    epoch: u16,
    since: Instant,
    /// The epoch before it.
    former: Option<u16>,
}

/// Epoch that a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameEpoch {
    /// The current epoch of the other end.
    Current,
    /// Its former epoch.
    Former,
}

impl<K> OpaqueReceiver<K> {
    /// Returns the number of packets that wait for earlier ones.
    pub(super) fn waiting_packets(&self) -> usize {
        self.window.waiting()
    }

    pub(super) fn new(config: Config) -> Self {
        Self {
            peer_epoch: None,
            next: Seq32(0),
            highest_received: Seq32(0),
            window: ReceiveWindow::new(config.order),
            queue_position: config.queue_position,
            holes: HoleList::new(),
            requests: RequestScheduler::new(config.recovery),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.holes.next_timeout()
    }

    pub(super) const fn recovery(&self) -> &RecoveryStats {
        self.requests.stats()
    }

    /// Handles a packet.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        (epoch, number, sending): (u16, Seq32, TransmissionKind),
        packet: K,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        if self.epoch_of(now, epoch, number, out, stats) == FrameEpoch::Former {
            return out.push_back(OpaqueAction::Deliver(packet));
        }
        if (self.next - number) as usize > WINDOW_PACKETS && number.before(self.next) {
            // It is not a duplicate: an invalid frame has moved the window.
            stats.excess_losses += 1;
            self.restart_window(number, out);
        }
        if !number.before(self.highest_received) {
            self.holes.handle_beyond(now, &mut self.requests);
            self.record_missing_up_to(now, number, out, stats);
            self.highest_received = number + 1;
        } else if !self.is_missing(number) {
            stats.duplicates += 1;
            return out.push_back(OpaqueAction::Release(packet));
        } else {
            let by = if sending == TransmissionKind::Retransmission {
                FilledBy::Replay
            } else {
                FilledBy::Original
            };
            self.holes.handle_arrival(now, number.0, (by, Remainder::AlreadyRequested), &mut self.requests);
        }
        let at = (number - self.next) as usize;
        self.window.insert(at, Some(packet), |packet| out.push_back(OpaqueAction::Deliver(packet)));
        self.flush(out);
    }

    /// Handles parity: delivers the restored packet if exactly one was missing.
    pub(super) fn handle_parity(
        &mut self,
        now: Instant,
        (epoch, first): (u16, Seq32),
        of: Vec<K>,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        let count = of.len() as u32;
        let missing: Vec<_> = (0..count).filter(|at| self.is_missing(first + *at)).collect();
        let is_known = self.peer_epoch.is_some_and(|life| life.epoch == epoch);
        let one = missing.first().filter(|_| is_known && missing.len() == 1).copied();
        for (at, packet) in (0..).zip(of) {
            if Some(at) == one {
                stats.restored += 1;
                self.handle_data(now, (epoch, first + at, TransmissionKind::Original), packet, out, stats);
            } else {
                out.push_back(OpaqueAction::Release(packet));
            }
        }
        // With more than one missing it shows at least that they were sent.
        if is_known && count > 0 {
            self.handle_last_sent(now, first + (count - 1), out, stats);
        }
    }

    /// Handles a tail probe: the other end has sent nothing after `last`.
    pub(super) fn handle_tail_probe(
        &mut self,
        now: Instant,
        epoch: u16,
        last: Seq32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        if self.epoch_of(now, epoch, last + 1, out, stats) == FrameEpoch::Current {
            self.handle_last_sent(now, last, out, stats);
            let report = Frame::Report { epoch, next: self.next.0 };
            out.push_back(OpaqueAction::Send(self.queue_position, report));
        }
    }

    /// Gives up packets that the other end no longer keeps (C8).
    pub(super) fn handle_gone(
        &mut self,
        now: Instant,
        epoch: u16,
        numbers: &[u32],
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        if self.peer_epoch.is_none_or(|life| life.epoch != epoch) {
            stats.invalid += 1;
            return;
        }
        for number in numbers {
            if !self.holes.give_up_range(*number, &mut self.requests) {
                stats.invalid += 1;
            }
        }
        self.holes.handle_timeout(now, &mut self.requests);
        self.flush(out);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut VecDeque<OpaqueAction<K>>) {
        self.holes.handle_timeout(now, &mut self.requests);
        self.flush(out);
    }

    fn handle_last_sent(
        &mut self,
        now: Instant,
        last: Seq32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        if !last.before(self.highest_received) {
            self.record_missing_up_to(now, last + 1, out, stats);
            self.highest_received = last + 1;
        }
        self.flush(out);
    }

    /// Returns whether a packet has not arrived and may still be waited for.
    fn is_missing(&self, number: Seq32) -> bool {
        !number.before(self.next) && !self.window.has_arrived((number - self.next) as usize)
    }

    /// Records the packets from the edge up to `number` as missing, unless they are too many, or too far
    /// ahead of the first hole.
    fn record_missing_up_to(
        &mut self,
        now: Instant,
        number: Seq32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) {
        let missing = number - self.highest_received;
        if missing as usize + self.holes.len() > MAX_MISSING {
            stats.excess_losses += 1;
            self.restart_window(number, out);
            return;
        }
        // Holes too far behind are given up.
        let first = number + 1 - WINDOW_PACKETS as u32;
        if first.after(self.next) {
            self.holes.give_up_where(|what| Seq32(what).before(first), &mut self.requests);
            self.flush_to(first.min(self.highest_received), out);
        }
        for what in 0..missing {
            self.holes.open(now, (self.highest_received + what).0, &mut self.requests);
        }
    }

    /// Sends pending requests, and delivers packets that wait for nothing more.
    fn flush(&mut self, out: &mut VecDeque<OpaqueAction<K>>) {
        if self.requests.has_pending()
            && let Some(PeerEpoch { epoch, .. }) = self.peer_epoch
        {
            let asked: Vec<_> = self.requests.drain_pending().collect();
            let turn = self.queue_position;
            let frames = split_into_frames(&asked)
                .map(|numbers| OpaqueAction::Send(turn, Frame::Request { epoch, numbers }));
            out.extend(frames);
        }
        let first = self.holes.first().map_or(self.highest_received, Seq32);
        self.flush_to(first, out);
    }

    fn flush_to(&mut self, first: Seq32, out: &mut VecDeque<OpaqueAction<K>>) {
        if first.after(self.next) {
            self.window
                .skip((first - self.next) as usize, |packet| out.push_back(OpaqueAction::Deliver(packet)));
            self.next = first;
        }
    }

    /// Restarts the window at `number`: nothing before it is waited for.
    fn restart_window(&mut self, number: Seq32, out: &mut VecDeque<OpaqueAction<K>>) {
        self.window.clear(|packet| out.push_back(OpaqueAction::Deliver(packet)));
        self.holes.give_up_all(&mut self.requests);
        (self.next, self.highest_received) = (number, number);
    }

    /// Returns the epoch that a frame belongs to; a new one begins with it, at `number`.
    fn epoch_of(
        &mut self,
        now: Instant,
        epoch: u16,
        number: Seq32,
        out: &mut VecDeque<OpaqueAction<K>>,
        stats: &mut Stats,
    ) -> FrameEpoch {
        match self.peer_epoch {
            Some(life) if life.epoch == epoch => return FrameEpoch::Current,
            Some(life) if life.former == Some(epoch) && now.since(life.since) < STALE_EPOCH_LIFETIME => {
                stats.stale += 1;
                return FrameEpoch::Former;
            }
            Some(_) => stats.restarts += 1,
            None => {}
        }
        self.peer_epoch =
            Some(PeerEpoch { epoch, since: now, former: self.peer_epoch.map(|life| life.epoch) });
        let first = if number.0 < MAX_FIRST_NUMBER { Seq32(0) } else { number };
        self.restart_window(first, out);
        FrameEpoch::Current
    }
}
