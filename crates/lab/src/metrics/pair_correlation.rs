//! Correlation of the goodput of two flows: whether they send together or by turns.

use super::steady_state::seconds;
use crate::stats::correlation;
use hopline_sim::outcome::FlowOutcome;

/// Returns Pearson's correlation of the goodput of two flows over the whole seconds that count for both.
/// `None` for less than two such seconds, and if one of them is constant.
pub(super) fn goodput_correlation(a: &FlowOutcome, b: &FlowOutcome) -> Option<f64> {
    let [(begin_a, a), (begin_b, b)] = [seconds(a)?, seconds(b)?];
    let begin = begin_a.max(begin_b);
    let from =
        |own, goodput: &[f64]| goodput.get(begin.since(own).as_secs_f64() as usize..).map(<[f64]>::to_vec);
    let (mut a, mut b) = (from(begin_a, &a)?, from(begin_b, &b)?);
    let both = a.len().min(b.len());
    a.truncate(both);
    b.truncate(both);
    correlation(&a, &b).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::{Duration, Instant};
    use hopline_sim::outcome::FlowSample;

    /// Returns a flow that counts from `since_s` for `active_s`, with these bytes delivered in each second of
    /// the run.
    fn flow(since_s: f64, active_s: u64, bytes: &[u64]) -> FlowOutcome {
        let mut bytes_received = 0;
        let sample = |(second, bytes)| {
            bytes_received += bytes;
            let at = Instant::from_secs(second);
            FlowSample { at, bytes_received, ..FlowSample::default() }
        };
        FlowOutcome {
            counting_since: Instant::ZERO + Duration::from_secs_f64(since_s),
            active_time: Duration::from_secs(active_s),
            series: (1..).zip(bytes.iter().copied()).map(sample).collect(),
            ..FlowOutcome::default()
        }
    }

    #[test]
    fn simultaneous_flows_correlate_and_alternating_flows_do_not() {
        let (one, same) = (flow(0.0, 6, &[9, 0, 9, 0, 9, 0]), flow(0.0, 6, &[5, 1, 5, 1, 5, 1]));
        let other = flow(0.0, 6, &[0, 7, 0, 7, 0, 7]);
        assert_eq!(goodput_correlation(&one, &same), Some(1.0));
        assert_eq!(goodput_correlation(&one, &other), Some(-1.0));
        assert_eq!(goodput_correlation(&other, &one), Some(-1.0));
    }

    #[test]
    fn only_seconds_that_count_for_both_flows_are_used() {
        // The second flow counts from 2.5 s to 7.5 s: whole seconds 3 to 7, in which the two are as in the
        // example computed by hand.
        let one = flow(0.0, 8, &[100, 0, 100, 1, 2, 3, 4, 5]);
        let other = flow(2.5, 6, &[0, 100, 0, 1, 3, 4, 2, 5, 100]);
        let r = goodput_correlation(&one, &other).unwrap();
        assert!((r - 0.7).abs() < 1e-12, "{r}");
    }

    #[test]
    fn silent_and_disjoint_flows_have_no_correlation() {
        let one = flow(0.0, 6, &[9, 0, 9, 0, 9, 0]);
        assert_eq!(goodput_correlation(&one, &flow(0.0, 6, &[0; 6])), None);
        assert_eq!(goodput_correlation(&one, &flow(20.0, 6, &[1; 30])), None);
        assert_eq!(goodput_correlation(&one, &FlowOutcome::default()), None);
    }
}
