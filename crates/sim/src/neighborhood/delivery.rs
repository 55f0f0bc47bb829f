//! Delivery of notices to the members that could decode their sender when they were sent.

use std::collections::VecDeque;

/// Notices of a node, and the members that have not received them yet.
#[derive(Debug, Default)]
pub(crate) struct NoticeDelivery {
    /// Members that have not received a notice yet, by packet number, oldest first.
    awaited: VecDeque<(u64, Vec<u32>)>,
    /// Pairs of a notice and a node that it was for.
    intended: u64,
    /// Number of these pairs in which the notice arrived.
    arrived: u64,
}

/// Notices of a node that are waited for at a time. At the shortest interval in use a notice is older than
/// any queue by then.
const MAX_AWAITED: usize = 64;

impl NoticeDelivery {
    /// Records that notice number `serial` is handed down, for the nodes `to`.
    pub(super) fn on_sent(&mut self, serial: u64, to: Vec<u32>) {
        self.intended += to.len() as u64;
        if self.awaited.len() == MAX_AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back((serial, to));
    }

    /// Records that a notice was received or overheard at `node`, perhaps not for the first time.
    pub(super) fn on_received(&mut self, serial: u64, node: u32) {
        let notice = self.awaited.iter_mut().find(|(awaited, _)| *awaited == serial);
        let Some((_, to)) = notice else { return };
        if let Some(at) = to.iter().position(|&waiting| waiting == node) {
            to.swap_remove(at);
            self.arrived += 1;
        }
    }

    /// Pairs so far: those there were, and those in which the notice arrived.
    pub(crate) const fn pairs(&self) -> (u64, u64) {
        (self.intended, self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_arrives_once_at_each_node_that_it_was_for() {
        let mut delivery = NoticeDelivery::default();
        delivery.on_sent(7, vec![1, 2, 3]);
        delivery.on_sent(9, vec![2]);
        for (serial, node) in [(7, 2), (7, 2), (7, 5), (8, 1), (9, 2), (7, 1)] {
            delivery.on_received(serial, node);
        }
        assert_eq!(delivery.pairs(), (4, 3));
    }

    #[test]
    fn a_notice_without_receivers_in_range_counts_no_pairs() {
        let mut delivery = NoticeDelivery::default();
        delivery.on_sent(0, Vec::new());
        delivery.on_received(0, 1);
        assert_eq!(delivery.pairs(), (0, 0));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut delivery = NoticeDelivery::default();
        for serial in 0..=MAX_AWAITED as u64 {
            delivery.on_sent(serial, vec![1]);
        }
        delivery.on_received(0, 1);
        delivery.on_received(1, 1);
        assert_eq!((delivery.awaited.len(), delivery.pairs()), (MAX_AWAITED, (65, 1)));
    }
}
