//! Receiver of a link.

use super::{ArqAction, DeliveryMode, Frame, Stats, WINDOW_FRAMES};
use crate::pep::QueuePosition;
use crate::window::ReceiveWindow;
use hopline_core::Seq16;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Receiver<K> {
    /// Epoch of the other end.
    epoch: Option<u16>,
    /// Number of the first frame that has not arrived.
    next: Seq16,
    /// Frames from `next` on.
    frames: ReceiveWindow<K>,
}

impl<K> Receiver<K> {
    pub(super) const fn new(order: DeliveryMode) -> Self {
        Self { epoch: None, next: Seq16(0), frames: ReceiveWindow::new(order) }
    }

    /// Returns the number of packets that wait for earlier ones.
    pub(super) fn waiting_packets(&self) -> usize {
        self.frames.waiting()
    }

    /// Handles a data frame. `first`: the first frame that its sender still remembers.
    pub(super) fn handle_data(
        &mut self,
        epoch: u16,
        first: Option<Seq16>,
        number: Seq16,
        content: Option<K>,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        if self.epoch != Some(epoch) {
            self.start_epoch(epoch, out);
        }
        if let Some(first) = first {
            self.skip_to(first, out);
        }
        let at = number.distance_from(self.next);
        let is_beyond = at >= WINDOW_FRAMES as i16;
        let is_known = at < 0 || self.frames.has_arrived(at as usize);
        if is_beyond || is_known {
            stats.invalid += u64::from(is_beyond);
            return out.extend(content.map(ArqAction::Release));
        }
        self.frames.insert(at as usize, content, |packet| out.push_back(ArqAction::Deliver(packet)));
        self.deliver_in_order(out);
    }

    /// Handles parity: restores the missing packet if exactly one is missing.
    pub(super) fn handle_parity(
        &mut self,
        epoch: u16,
        of: Vec<(Seq16, K)>,
        out: &mut VecDeque<ArqAction<K>>,
        stats: &mut Stats,
    ) {
        let is_missing = |number: Seq16| {
            let at = number.distance_from(self.next);
            usize::try_from(at).is_ok_and(|at| !self.frames.has_arrived(at))
        };
        let missing: Vec<_> =
            of.iter().map(|(number, _)| *number).filter(|&number| is_missing(number)).collect();
        let one =
            if let ([one], true) = (&missing[..], self.epoch == Some(epoch)) { Some(*one) } else { None };
        for (number, packet) in of {
            if Some(number) == one {
                stats.restored += 1;
                self.handle_data(epoch, None, number, Some(packet), out, stats);
            } else {
                out.push_back(ArqAction::Release(packet));
            }
        }
    }

    pub(super) fn send_ack(&self, out: &mut VecDeque<ArqAction<K>>) {
        let Some(epoch) = self.epoch else { return };
        let mut beyond = [0; WINDOW_FRAMES / 64];
        // The frame `next` itself is missing, or was never sent: bits begin after it.
        for bit in self.frames.arrived().filter_map(|at| at.checked_sub(1)) {
            beyond[bit / 64] |= 1 << (bit % 64);
        }
        out.push_back(ArqAction::Send(QueuePosition::Front, Frame::Ack { epoch, next: self.next, beyond }));
    }

    /// Handles a restart of the other end.
    fn start_epoch(&mut self, epoch: u16, out: &mut VecDeque<ArqAction<K>>) {
        (self.epoch, self.next) = (Some(epoch), Seq16(0));
        self.frames.clear(|packet| out.push_back(ArqAction::Deliver(packet)));
    }

    /// Skips frames before `first`, which the sender no longer remembers.
    fn skip_to(&mut self, first: Seq16, out: &mut VecDeque<ArqAction<K>>) {
        if first.after(self.next) {
            self.frames.skip((first - self.next).into(), |packet| out.push_back(ArqAction::Deliver(packet)));
            self.next = first;
        }
        self.deliver_in_order(out);
    }

    /// Delivers the packets that wait for nothing more.
    fn deliver_in_order(&mut self, out: &mut VecDeque<ArqAction<K>>) {
        self.next += self.frames.deliver_in_order(|packet| out.push_back(ArqAction::Deliver(packet))) as u16;
    }
}
