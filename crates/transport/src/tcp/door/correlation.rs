//! Events in the order of acknowledgments and in that of data that come together, as §5.2 takes for likely.

use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Events of one kind that are remembered at most: more within one retransmission timeout count as met by none.
const MAX_EVENTS: usize = 64;

/// Events of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct EventLog {
    last_event: Option<Instant>,
    /// Times of those that no event of the other kind has met yet.
    unmatched: VecDeque<Instant>,
}

impl EventLog {
    /// Takes one at `now`. Returns how many of this kind, and how many of the `other`, it shows to have come together: those
    /// with one of the other kind not further away than `within`.
    pub(super) fn record(&mut self, now: Instant, other: &mut Self, within: Duration) -> [u64; 2] {
        let earliest = now - within;
        self.last_event = Some(now);
        let others = other.unmatched.iter().filter(|&&at| at >= earliest).count() as u64;
        other.unmatched.clear();
        if other.last_event.is_some_and(|last| last >= earliest) {
            return [1, others];
        }
        if self.unmatched.len() == MAX_EVENTS {
            self.unmatched.pop_front();
        }
        self.unmatched.push_back(now);
        [0, others]
    }
}

#[cfg(test)]
mod tests {
    use super::{EventLog, MAX_EVENTS};
    use hopline_core::{Duration, Instant};

    const WINDOW: Duration = Duration::from_millis(100);

    /// ACK events (`a`) and data events (`d`) at these milliseconds: how many of each are met by one of the other kind.
    fn matched_events(events: &[(char, u64)]) -> [u64; 2] {
        let (mut acks, mut data, mut met) = (EventLog::default(), EventLog::default(), [0, 0]);
        for &(kind, ms) in events {
            let now = Instant::from_millis(ms);
            let [this, other] = match kind {
                'a' => acks.record(now, &mut data, WINDOW),
                _ => {
                    let [data, acks] = data.record(now, &mut acks, WINDOW);
                    [acks, data]
                }
            };
            met = [met[0] + this, met[1] + other];
        }
        met
    }

    #[test]
    fn an_event_is_matched_by_one_of_the_other_kind_before_or_after_it() {
        assert_eq!(matched_events(&[('a', 1000), ('d', 1100)]), [1, 1]);
        assert_eq!(matched_events(&[('d', 1000), ('a', 1100)]), [1, 1]);
    }

    #[test]
    fn events_further_apart_are_not_matched() {
        assert_eq!(matched_events(&[('a', 1000), ('d', 1101), ('a', 1500)]), [0, 0]);
    }

    #[test]
    fn each_event_counts_once() {
        assert_eq!(
            matched_events(&[('a', 1000), ('a', 1010), ('d', 1050), ('d', 1060), ('a', 1070)]),
            [3, 2]
        );
    }

    #[test]
    fn events_of_one_kind_do_not_match_each_other() {
        assert_eq!(matched_events(&[('a', 1000), ('a', 1001), ('a', 1002)]), [0, 0]);
    }

    #[test]
    fn a_flood_of_events_is_stored_in_part() {
        let mut events: Vec<_> = (0..200).map(|i| ('a', 1000 + i / 4)).collect();
        events.push(('d', 1060));
        assert_eq!(matched_events(&events), [MAX_EVENTS as u64, 1]);
    }
}
