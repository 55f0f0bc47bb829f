//! Receive window: packets that arrive in any order, by their place after the first that has not arrived.

use crate::arq::DeliveryMode;
use std::collections::VecDeque;

/// Received packets, and those of them that wait.
#[derive(Debug)]
pub(crate) struct ReceiveWindow<K> {
    order: DeliveryMode,
    slots: VecDeque<Slot<K>>,
}

#[derive(Debug)]
enum Slot<K> {
    Missing,
    /// It has arrived; with its packet if that waits for earlier ones.
    Arrived(Option<K>),
}

impl<K> ReceiveWindow<K> {
    pub(crate) const fn new(order: DeliveryMode) -> Self {
        Self { order, slots: VecDeque::new() }
    }

    /// Returns whether the packet at a place has arrived.
    pub(crate) fn has_arrived(&self, at: usize) -> bool {
        matches!(self.slots.get(at), Some(Slot::Arrived(_)))
    }

    /// Returns the number of waiting packets.
    pub(crate) fn waiting(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Arrived(Some(_)))).count()
    }

    /// Returns the places of all received packets.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|at| self.has_arrived(*at))
    }

    /// Fills a place with a packet, or with `None` if it will not arrive. The packet goes to `deliver` at
    /// once unless order is kept.
    pub(crate) fn insert(&mut self, at: usize, content: Option<K>, mut deliver: impl FnMut(K)) {
        while self.slots.len() <= at {
            self.slots.push_back(Slot::Missing);
        }
        let waits = match self.order {
            DeliveryMode::InOrder => content,
            DeliveryMode::Any => {
                content.into_iter().for_each(&mut deliver);
                None
            }
        };
        self.slots[at] = Slot::Arrived(waits);
    }

    /// Delivers packets that wait for nothing more. Returns the number of places.
    pub(crate) fn deliver_in_order(&mut self, deliver: impl FnMut(K)) -> usize {
        let whole = self.slots.iter().take_while(|slot| matches!(slot, Slot::Arrived(_))).count();
        self.skip(whole, deliver);
        whole
    }

    /// Skips the first `count` places.
    pub(crate) fn skip(&mut self, count: usize, mut deliver: impl FnMut(K)) {
        let count = count.min(self.slots.len());
        for slot in self.slots.drain(..count) {
            if let Slot::Arrived(Some(packet)) = slot {
                deliver(packet);
            }
        }
    }

    /// Skips all places.
    pub(crate) fn clear(&mut self, deliver: impl FnMut(K)) {
        self.skip(usize::MAX, deliver);
    }
}
