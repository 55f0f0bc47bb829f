//! Events in the order of acknowledgments and in that of data that come together, as §5.2 takes for likely.

use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Events of one kind that are remembered at most: more within one retransmission timeout count as met by none.
const REMEMBERED: usize = 64;

/// Events of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    last: Option<Instant>,
    /// Times of those that no event of the other kind has met yet.
    unmet: VecDeque<Instant>,
}

impl Events {
    /// Takes one at `now`. Returns how many of this kind, and how many of the `other`, it shows to have come together: those
    /// with one of the other kind not further away than `within`.
    pub(super) fn take(&mut self, now: Instant, other: &mut Self, within: Duration) -> [u64; 2] {
        let earliest = now - within;
        self.last = Some(now);
        let others = other.unmet.iter().filter(|&&at| at >= earliest).count() as u64;
        other.unmet.clear();
        if other.last.is_some_and(|last| last >= earliest) {
            return [1, others];
        }
        if self.unmet.len() == REMEMBERED {
            self.unmet.pop_front();
        }
        self.unmet.push_back(now);
        [0, others]
    }
}

#[cfg(test)]
mod tests {
    use super::{Events, REMEMBERED};
    use hopline_core::{Duration, Instant};

    const WITHIN: Duration = Duration::from_millis(100);

    /// ACK events (`a`) and data events (`d`) at these milliseconds: how many of each are met by one of the other kind.
    fn met(events: &[(char, u64)]) -> [u64; 2] {
        let (mut acks, mut data, mut met) = (Events::default(), Events::default(), [0, 0]);
        for &(kind, ms) in events {
            let now = Instant::from_millis(ms);
            let [this, other] = match kind {
                'a' => acks.take(now, &mut data, WITHIN),
                _ => {
                    let [data, acks] = data.take(now, &mut acks, WITHIN);
                    [acks, data]
                }
            };
            met = [met[0] + this, met[1] + other];
        }
        met
    }

    #[test]
    fn an_event_is_met_by_one_of_the_other_kind_before_or_after_it() {
        assert_eq!(met(&[('a', 1000), ('d', 1100)]), [1, 1]);
        assert_eq!(met(&[('d', 1000), ('a', 1100)]), [1, 1]);
    }

    #[test]
    fn events_further_apart_are_not_met() {
        assert_eq!(met(&[('a', 1000), ('d', 1101), ('a', 1500)]), [0, 0]);
    }

    #[test]
    fn each_event_counts_once() {
        assert_eq!(met(&[('a', 1000), ('a', 1010), ('d', 1050), ('d', 1060), ('a', 1070)]), [3, 2]);
    }

    #[test]
    fn events_of_one_kind_do_not_meet_each_other() {
        assert_eq!(met(&[('a', 1000), ('a', 1001), ('a', 1002)]), [0, 0]);
    }

    #[test]
    fn a_flood_of_events_is_remembered_in_part() {
        let mut events: Vec<_> = (0..200).map(|i| ('a', 1000 + i / 4)).collect();
        events.push(('d', 1060));
        assert_eq!(met(&events), [REMEMBERED as u64, 1]);
    }
}
