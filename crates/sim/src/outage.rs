//! Outages: pairs of nodes, and the times in which one does not hear the other.

use crate::spec::{OutageEffect, OutageSpec, Spec};
use hopline_core::{Instant, NodeId};

/// Outages by sender, receiver and start; those of one pair do not touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutageSchedule(Vec<OutageSpec>);

impl OutageSchedule {
    /// Creates the schedule of those of `outages` that block what `is_ours` selects.
    pub(crate) fn new(outages: &[OutageSpec], is_ours: impl Fn(OutageEffect) -> bool) -> Self {
        let mut ours: Vec<_> = outages.iter().filter(|o| is_ours(o.blocks)).copied().collect();
        ours.sort_unstable_by_key(|o| (o.from, o.to, o.start));
        ours.dedup_by(|next, before| {
            let one = (next.from, next.to) == (before.from, before.to) && next.start <= before.end;
            if one {
                before.end = before.end.max(next.end);
            }
            one
        });
        Self(ours)
    }

    /// Returns whether there is no outage at all, the common case, which must cost next to nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether packets from `from` that arrive at `to` at `now` are blocked.
    pub(crate) fn covers(&self, now: Instant, from: NodeId, to: NodeId) -> bool {
        let begun = self.0.partition_point(|o| (o.from, o.to, o.start) <= (from, to, now));
        begun
            .checked_sub(1)
            .is_some_and(|last| (self.0[last].from, self.0[last].to) == (from, to) && now < self.0[last].end)
    }
}

/// Returns the outages of `spec` that last from its start to its end: they are part of its topology.
pub(crate) fn permanent(spec: &Spec) -> impl Iterator<Item = &OutageSpec> {
    let end = Instant::ZERO + spec.duration;
    spec.outages.iter().filter(move |o| o.start == Instant::ZERO && o.end >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(from: u32, to: u32, start_ms: u64, end_ms: u64, blocks: OutageEffect) -> OutageSpec {
        let [start, end] = [start_ms, end_ms].map(Instant::from_millis);
        OutageSpec { from: NodeId(from), to: NodeId(to), start, end, blocks }
    }

    /// Milliseconds from 0 to 9 at which frames of n1 do not reach n2.
    fn blocked(outages: &[OutageSpec]) -> Vec<u64> {
        let schedule = OutageSchedule::new(outages, |blocks| blocks == OutageEffect::Frames);
        (0..10).filter(|&ms| schedule.covers(Instant::from_millis(ms), NodeId(1), NodeId(2))).collect()
    }

    #[test]
    fn an_outage_begins_at_its_start_and_is_over_at_its_end() {
        assert_eq!(blocked(&[outage(1, 2, 3, 5, OutageEffect::Frames)]), [3, 4]);
        assert_eq!(blocked(&[]), [0_u64; 0]);
    }

    #[test]
    fn it_is_of_one_pair_and_one_direction() {
        let others = [(2, 1), (1, 3), (1, 1), (0, 2)].map(|(a, b)| outage(a, b, 0, 9, OutageEffect::Frames));
        assert_eq!(blocked(&others), [0_u64; 0]);
        let with = [&others[..], &[outage(1, 2, 8, 9, OutageEffect::Frames)]].concat();
        assert_eq!(blocked(&with), [8]);
    }

    #[test]
    fn overlapping_outages_are_merged() {
        let of = |times: &[(u64, u64)]| -> Vec<u64> {
            blocked(&times.iter().map(|&(a, b)| outage(1, 2, a, b, OutageEffect::Frames)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[(4, 6), (2, 5)]), [2, 3, 4, 5]);
        assert_eq!(of(&[(2, 4), (4, 6)]), [2, 3, 4, 5]);
        assert_eq!(of(&[(1, 8), (2, 3)]), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of(&[(1, 2), (7, 8)]), [1, 7]);
    }

    #[test]
    fn a_schedule_contains_only_the_selected_kinds() {
        let both = [OutageEffect::Frames, OutageEffect::Packets].map(|blocks| outage(1, 2, 0, 2, blocks));
        assert_eq!(blocked(&both[1..]), [0_u64; 0]);
        assert_eq!(blocked(&both), [0, 1]);
        assert!(OutageSchedule::new(&both[1..], |blocks| blocks == OutageEffect::Frames).is_empty());
        assert!(!OutageSchedule::new(&both[1..], |_| true).is_empty());
    }
}
