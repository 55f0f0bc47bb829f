//! Number of packets in the queues of a node.

use hopline_core::Instant;

/// Lengths of the queues of a node, of radios and wires. What is with a MAC, or on a wire, no longer waits in
/// them: with block acknowledgment the MAC holds a whole block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLengths {
    /// Most packets that waited in one of them.
    pub max_packets: u32,
    /// Packets that waited in all of them, mean over the time that counts.
    pub mean_packets: f64,
}

/// Keeps track of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueLengthTracker {
    current: u32,
    changed: Instant,
    /// Time at which counting began.
    since: Instant,
    longest: u32,
    /// Packets by nanoseconds until `changed`.
    area: u128,
}

impl QueueLengthTracker {
    /// Records that a queue of the node had `before` packets, and has `after`.
    pub(crate) fn change(&mut self, now: Instant, before: usize, after: usize) {
        if before != after {
            self.area += self.area_since(now);
            self.changed = now;
            // Each queue has at most as many as there are packets, which 32 bits count.
            self.current = self.current - before as u32 + after as u32;
            self.longest = self.longest.max(after as u32);
        }
    }

    /// Returns the restarted counters. The longest queue is one of those to come.
    pub(crate) fn restarted(&self, now: Instant) -> Self {
        Self { current: self.current, changed: now, since: now, longest: 0, area: 0 }
    }

    /// Returns the queue lengths at `now`.
    pub(crate) fn lengths(&self, now: Instant) -> QueueLengths {
        let time = now.since(self.since).as_nanos();
        let area = (self.area + self.area_since(now)) as f64;
        let mean_packets = if time > 0 { area / time as f64 } else { 0.0 };
        QueueLengths { max_packets: self.longest, mean_packets }
    }

    fn area_since(&self, now: Instant) -> u128 {
        u128::from(self.current) * u128::from(now.since(self.changed).as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Duration;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_maximum_is_per_queue_and_the_mean_over_all() {
        let mut log = QueueLengthTracker::default();
        assert_eq!(log.lengths(at(0)), QueueLengths::default());
        log.change(at(2), 0, 3);
        log.change(at(4), 0, 2);
        log.change(at(6), 3, 0);
        // 2 s of 0, 2 s of 3, 2 s of 5, 2 s of 2.
        assert_eq!(log.lengths(at(8)), QueueLengths { max_packets: 3, mean_packets: 20.0 / 8.0 });
    }

    #[test]
    fn a_restart_keeps_waiting_packets() {
        let mut log = QueueLengthTracker::default();
        log.change(at(0), 0, 9);
        let mut log = log.restarted(at(10));
        assert_eq!(log.lengths(at(12)).mean_packets, 9.0);
        log.change(at(12), 9, 8);
        assert_eq!(log.lengths(at(14)), QueueLengths { max_packets: 8, mean_packets: 8.5 });
    }
}
