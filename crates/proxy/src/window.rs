//! Packets that arrive in any order, by their place after the first that has not arrived.

use crate::arq::Order;
use std::collections::VecDeque;

/// What has arrived, and what of it waits.
#[derive(Debug)]
pub(crate) struct Window<K> {
    order: Order,
    slots: VecDeque<Slot<K>>,
}

#[derive(Debug)]
enum Slot<K> {
    Missing,
    /// It has arrived; with the packet that waits for others, if one does.
    Arrived(Option<K>),
}

impl<K> Window<K> {
    pub(crate) const fn new(order: Order) -> Self {
        Self { order, slots: VecDeque::new() }
    }

    /// Whether the packet at a place has arrived.
    pub(crate) fn has(&self, at: usize) -> bool {
        matches!(self.slots.get(at), Some(Slot::Arrived(_)))
    }

    /// Number of packets that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot, Slot::Arrived(Some(_)))).count()
    }

    /// The places of all that has arrived.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|at| self.has(*at))
    }

    /// What was to come to a place is there, or will not come: `None`. It goes to `deliver` at once where order does not matter.
    pub(crate) fn put(&mut self, at: usize, content: Option<K>, mut deliver: impl FnMut(K)) {
        while self.slots.len() <= at {
            self.slots.push_back(Slot::Missing);
        }
        let waits = match self.order {
            Order::Kept => content,
            Order::Any => {
                content.into_iter().for_each(&mut deliver);
                None
            }
        };
        self.slots[at] = Slot::Arrived(waits);
    }

    /// Lets go of what waits for nothing more. How many places that were.
    pub(crate) fn advance(&mut self, deliver: impl FnMut(K)) -> usize {
        let whole = self.slots.iter().take_while(|slot| matches!(slot, Slot::Arrived(_))).count();
        self.skip(whole, deliver);
        whole
    }

    /// The first `count` places are not waited for any more.
    pub(crate) fn skip(&mut self, count: usize, mut deliver: impl FnMut(K)) {
        let count = count.min(self.slots.len());
        for slot in self.slots.drain(..count) {
            if let Slot::Arrived(Some(packet)) = slot {
                deliver(packet);
            }
        }
    }

    /// None of them is.
    pub(crate) fn clear(&mut self, deliver: impl FnMut(K)) {
        self.skip(usize::MAX, deliver);
    }
}
