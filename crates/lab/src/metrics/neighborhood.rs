//! Relation of the estimate of a neighbourhood's queue to the real queue.

use crate::stats::correlation;
use hopline_sim::Outcome;
use hopline_sim::outcome::{NeighborhoodSample, NeighborhoodSeries, NodeOutcome};

/// Share of `maxth` from which on an estimate counts as saturated.
const SATURATION: f64 = 0.95;

/// A metric of an observed node.
type MetricFn = fn(&NeighborhoodSeries) -> Option<f64>;

/// Returns the metric of a node.
pub(super) fn of_node(node: &NodeOutcome, of: MetricFn) -> Option<f64> {
    of(node.neighborhood.as_ref()?)
}

/// Returns the mean over the nodes that have it.
pub(super) fn of_run(outcome: &Outcome, of: MetricFn) -> Option<f64> {
    mean(outcome.nodes.iter().filter_map(|node| of_node(node, of)))
}

/// Returns the mean real queue.
pub(super) fn queue(series: &NeighborhoodSeries) -> Option<f64> {
    mean(series.counted().iter().map(real))
}

/// Returns the mean of the averaged real queue.
pub(super) fn average_queue(series: &NeighborhoodSeries) -> Option<f64> {
    mean(series.counted().iter().map(averaged))
}

/// Returns the mean estimate.
pub(super) fn estimate(series: &NeighborhoodSeries) -> Option<f64> {
    mean(series.counted().iter().map(|sample| sample.average))
}

/// Returns the highest estimate.
pub(super) fn estimate_max(series: &NeighborhoodSeries) -> Option<f64> {
    series.counted().iter().map(|sample| sample.average).reduce(f64::max)
}

/// Returns Pearson's correlation of real queue and estimate.
pub(super) fn queue_correlation(series: &NeighborhoodSeries) -> Option<f64> {
    correlated(series.counted().iter(), real)
}

/// Returns the correlation over the samples below saturation.
pub(super) fn queue_correlation_below_saturation(series: &NeighborhoodSeries) -> Option<f64> {
    correlated(unsaturated(series), real)
}

/// Returns Pearson's correlation of the averaged real queue and the estimate, which is an average.
pub(super) fn average_queue_correlation(series: &NeighborhoodSeries) -> Option<f64> {
    correlated(series.counted().iter(), averaged)
}

/// Returns that correlation over the samples below saturation.
pub(super) fn average_queue_correlation_below_saturation(series: &NeighborhoodSeries) -> Option<f64> {
    correlated(unsaturated(series), averaged)
}

/// Returns the percentage of saturated samples.
pub(super) fn saturated_pct(series: &NeighborhoodSeries) -> Option<f64> {
    let is_saturated = |sample| f64::from(u8::from(is_saturated(series, sample)));
    Some(100.0 * mean(series.counted().iter().map(is_saturated))?)
}

/// Returns the mean growth of the real queue, while the estimate is saturated, since saturation began.
pub(super) fn growth_during_saturation(series: &NeighborhoodSeries) -> Option<f64> {
    let saturated = || series.counted().iter().filter(|sample| is_saturated(series, sample)).map(real);
    Some(mean(saturated())? - saturated().next()?)
}

fn is_saturated(series: &NeighborhoodSeries, sample: &NeighborhoodSample) -> bool {
    sample.average >= SATURATION * series.max_threshold
}

fn unsaturated(series: &NeighborhoodSeries) -> impl Iterator<Item = &NeighborhoodSample> {
    series.counted().iter().filter(|sample| !is_saturated(series, sample))
}

fn real(sample: &NeighborhoodSample) -> f64 {
    f64::from(sample.queue_packets)
}

const fn averaged(sample: &NeighborhoodSample) -> f64 {
    sample.average_queue
}

/// Returns the correlation of a queue with the estimate over samples.
fn correlated<'a>(
    samples: impl Iterator<Item = &'a NeighborhoodSample>,
    queue: fn(&NeighborhoodSample) -> f64,
) -> Option<f64> {
    let (queues, estimates): (Vec<f64>, Vec<f64>) =
        samples.map(|sample| (queue(sample), sample.average)).unzip();
    correlation(&queues, &estimates).ok()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    (n > 0.0).then(|| sum / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Instant;

    /// Pairs of a real queue and an estimate, with a `maxth` of 200: saturated from 190 on.
    fn series(samples: &[(u32, f64)]) -> NeighborhoodSeries {
        let sample = |(at, (queue_packets, average)): (u64, &(u32, f64))| NeighborhoodSample {
            at: Instant::from_millis(100 * at),
            queue_packets: *queue_packets,
            average_queue: 2.0 * average,
            average: *average,
            latest: 0.0,
        };
        NeighborhoodSeries::with_all_counted(200.0, (1..).zip(samples).map(sample).collect())
    }

    #[test]
    fn an_estimate_that_saturates_is_detected() {
        let s = series(&[(1, 20.0), (3, 60.0), (5, 100.0), (10, 190.0), (40, 200.0), (70, 200.0)]);
        assert_eq!(queue(&s), Some(21.5));
        assert_eq!((estimate(&s), estimate_max(&s)), (Some(770.0 / 6.0), Some(200.0)));
        assert_eq!(saturated_pct(&s), Some(50.0));
        assert_eq!(growth_during_saturation(&s), Some(30.0), "10, 40 and 70 are 40 on average");
        assert!(
            (queue_correlation_below_saturation(&s).unwrap() - 1.0).abs() < 1e-12,
            "1, 3, 5 against 20, 60, 100"
        );
        let all = queue_correlation(&s).unwrap();
        assert!((0.7..0.8).contains(&all), "{all}");
    }

    #[test]
    fn the_correlation_matches_a_hand_computed_value() {
        let s = series(&[(1, 1.0), (2, 3.0), (3, 4.0), (4, 2.0), (5, 5.0)]);
        assert!((queue_correlation(&s).unwrap() - 0.7).abs() < 1e-12);
        assert_eq!(queue_correlation(&s), queue_correlation_below_saturation(&s));
        assert_eq!((saturated_pct(&s), growth_during_saturation(&s)), (Some(0.0), None));
        // The averaged queue is twice the estimate in these samples.
        assert_eq!(average_queue(&s), Some(6.0));
        assert!((average_queue_correlation(&s).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(average_queue_correlation(&s), average_queue_correlation_below_saturation(&s));
    }

    #[test]
    fn an_unobserved_neighborhood_has_no_values() {
        let none = series(&[]);
        for of in [
            queue,
            average_queue,
            average_queue_correlation,
            average_queue_correlation_below_saturation,
            estimate,
            estimate_max,
            queue_correlation,
            queue_correlation_below_saturation,
            saturated_pct,
            growth_during_saturation,
        ] {
            assert_eq!(of(&none), None);
        }
        assert_eq!(
            queue_correlation(&series(&[(3, 10.0), (3, 20.0)])),
            None,
            "a queue that stands goes with nothing"
        );
    }
}
