//! ECN marks: which of them are reacted to.
//!
//! A queue that averages its length over hundreds of packets (RED) marks long after it has drained. Reductions for such marks would take a
//! flow to a small part of the link. A queue that marks by the rate (a virtual queue) is never long, and goes on until the rates fall.
//! Neither is known. Marks without a queueing delay are therefore reacted to, but at intervals that double as long as they do not cease.

/// Marks since the last reaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// First packet sent after the last reaction.
    first_sent_since: u64,
    /// Round trips until a mark without a queueing delay is reacted to.
    rounds_left: u32,
    /// Round trips to wait after the next reaction. It doubles with each reaction, until a round trip has no marks.
    interval: u32,
    /// `true` if packets were marked in the current round trip.
    is_marked: bool,
}

/// Place of a reaction in a series of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// The first reaction after a round trip without marks.
    First,
    /// A further one.
    Continued,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self { first_sent_since: 0, rounds_left: 0, interval: 1, is_marked: false }
    }

    /// Records marked packets.
    pub(super) const fn record(&mut self, packets: u32) {
        self.is_marked |= packets > 0;
    }

    /// Returns whether packets were marked in the current round trip.
    #[cfg(test)]
    pub(super) const fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Ends a round trip. Returns whether packets were marked in it.
    pub(super) const fn on_round(&mut self) -> bool {
        let is_marked = self.is_marked;
        self.is_marked = false;
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if !is_marked {
            (self.rounds_left, self.interval) = (0, 1);
        }
        is_marked
    }

    /// Returns whether packet `number` was sent after the last reaction.
    pub(super) const fn is_sent_since_reaction(&self, number: u64) -> bool {
        number >= self.first_sent_since
    }

    /// Returns whether it is time to react to a mark without a queueing delay.
    pub(super) const fn is_due_without_queue(&self) -> bool {
        self.rounds_left == 0
    }

    /// Records a reaction. `next_number`: number of the next packet.
    pub(super) const fn on_reaction(&mut self, next_number: u64) -> Series {
        let series = if self.interval == 1 { Series::First } else { Series::Continued };
        self.first_sent_since = next_number;
        self.rounds_left = self.interval;
        self.interval = self.interval.saturating_mul(2);
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reactions_to_marks_without_a_queue_come_at_intervals_that_double() {
        let mut marks = Marks::new();
        let mut reactions = Vec::new();
        for round in 0..16 {
            marks.record(1);
            if marks.is_due_without_queue() {
                reactions.push((round, marks.on_reaction(0)));
            }
            assert!(marks.on_round());
        }
        let rounds: Vec<_> = reactions.iter().map(|&(round, _)| round).collect();
        assert_eq!(rounds, [0, 1, 3, 7, 15]);
        assert_eq!(reactions[0].1, Series::First);
        assert!(reactions[1..].iter().all(|&(_, series)| series == Series::Continued));
    }

    #[test]
    fn a_round_trip_without_marks_ends_a_series() {
        let mut marks = Marks::new();
        for _ in 0..3 {
            marks.record(1);
            marks.on_reaction(0);
            marks.on_round();
        }
        assert!(!marks.is_due_without_queue());
        assert!(!marks.on_round());
        assert!(marks.is_due_without_queue());
        assert_eq!(marks.on_reaction(0), Series::First);
    }
}
