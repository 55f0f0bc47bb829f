//! The half that receives packets.

use super::{Does, Frame, Order, Stats, WINDOW};
use crate::filter::Turn;
use hopline_core::Seq16;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Receiver<K> {
    order: Order,
    /// The life of the other end.
    epoch: Option<u16>,
    /// The first frame that has not arrived.
    next: Seq16,
    /// From `next` on.
    frames: VecDeque<Slot<K>>,
}

/// A frame.
#[derive(Debug)]
enum Slot<K> {
    Missing,
    /// It has arrived; with the packet that waits for others, if one does.
    Arrived(Option<K>),
}

impl<K> Receiver<K> {
    pub(super) const fn new(order: Order) -> Self {
        Self { order, epoch: None, next: Seq16(0), frames: VecDeque::new() }
    }

    /// A frame has arrived. `first`: what its sender remembers of earlier ones.
    pub(super) fn take(
        &mut self,
        epoch: u16,
        first: Option<Seq16>,
        number: Seq16,
        content: Option<K>,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        if self.epoch != Some(epoch) {
            self.begin(epoch, out);
        }
        if let Some(first) = first {
            self.skip_to(first, out);
        }
        let at = number.distance_from(self.next);
        let is_beyond = at >= WINDOW as i16;
        let is_known = at < 0 || matches!(self.frames.get(at as usize), Some(Slot::Arrived(_)));
        if is_beyond || is_known {
            stats.senseless += u64::from(is_beyond);
            return out.extend(content.map(Does::Discards));
        }
        let at = at as usize;
        while self.frames.len() <= at {
            self.frames.push_back(Slot::Missing);
        }
        self.frames[at] = match (self.order, content) {
            (Order::Any, Some(packet)) => {
                out.push_back(Does::Delivers(packet));
                Slot::Arrived(None)
            }
            (_, content) => Slot::Arrived(content),
        };
        self.advance(out);
    }

    /// If one packet of these is missing it can be made of the others.
    pub(super) fn take_parity(
        &mut self,
        epoch: u16,
        of: Vec<(Seq16, K)>,
        out: &mut VecDeque<Does<K>>,
        stats: &mut Stats,
    ) {
        let is_missing = |number: Seq16| {
            let at = number.distance_from(self.next);
            let known = usize::try_from(at).map(|at| self.frames.get(at));
            at >= 0 && !matches!(known, Ok(Some(Slot::Arrived(_))))
        };
        let missing: Vec<_> =
            of.iter().map(|(number, _)| *number).filter(|&number| is_missing(number)).collect();
        let one =
            if let ([one], true) = (&missing[..], self.epoch == Some(epoch)) { Some(*one) } else { None };
        for (number, packet) in of {
            if Some(number) == one {
                stats.restored += 1;
                self.take(epoch, None, number, Some(packet), out, stats);
            } else {
                out.push_back(Does::Discards(packet));
            }
        }
    }

    pub(super) fn acknowledge(&self, out: &mut VecDeque<Does<K>>) {
        let Some(epoch) = self.epoch else { return };
        let mut beyond = [0; WINDOW / 64];
        // The first one is missing, or there is none.
        for (bit, slot) in self.frames.iter().skip(1).enumerate() {
            if let Slot::Arrived(_) = slot {
                beyond[bit / 64] |= 1 << (bit % 64);
            }
        }
        out.push_back(Does::Sends(Turn::First, Frame::Ack { epoch, next: self.next, beyond }));
    }

    /// The other end has started again.
    fn begin(&mut self, epoch: u16, out: &mut VecDeque<Does<K>>) {
        (self.epoch, self.next) = (Some(epoch), Seq16(0));
        out.extend(self.frames.drain(..).filter_map(Slot::packet).map(Does::Delivers));
    }

    /// Nobody remembers what was before that.
    fn skip_to(&mut self, first: Seq16, out: &mut VecDeque<Does<K>>) {
        while first.after(self.next) {
            match self.frames.pop_front() {
                Some(slot) => out.extend(slot.packet().map(Does::Delivers)),
                None => {
                    self.next = first;
                    break;
                }
            }
            self.next += 1;
        }
        self.advance(out);
    }

    /// Lets go of what waits for nothing more.
    fn advance(&mut self, out: &mut VecDeque<Does<K>>) {
        while matches!(self.frames.front(), Some(Slot::Arrived(_))) {
            out.extend(self.frames.pop_front().and_then(Slot::packet).map(Does::Delivers));
            self.next += 1;
        }
    }
}

impl<K> Slot<K> {
    fn packet(self) -> Option<K> {
        match self {
            Self::Arrived(packet) => packet,
            Self::Missing => None,
        }
    }
}
