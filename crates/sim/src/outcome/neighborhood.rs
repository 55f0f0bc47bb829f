//! Estimate of a node with Neighborhood RED, and the actual value.

use hopline_core::Instant;
use hopline_queue::neighborhood_red::Config;

/// The queue of a neighbourhood and its estimate over time.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighborhoodSeries {
    /// The estimate from which on everything is dropped, packets (`maxth`): about where a channel that is
    /// never idle puts it.
    pub max_threshold: f64,
    /// Ten a second, from 0.1 s after the start of the run on.
    pub samples: Vec<NeighborhoodSample>,
    /// Weight of the latest sample in the average of the queue.
    pub(crate) weight: f64,
    /// Number of the first sample after the warm-up.
    pub(crate) counted_from: usize,
}

/// A neighbourhood at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighborhoodSample {
    /// Time of the sample.
    pub at: Instant,
    /// Packets of flows that wait at the node and its 1-hop neighbours, and those at its 2-hop neighbours
    /// that are for a 1-hop neighbour (NRED §4.2).
    pub queue_packets: u32,
    /// Average of the queue, from an empty queue at the start of the run on, with the weight of the observation.
    pub average_queue: f64,
    /// The node's estimate of it, `avg`.
    pub average: f64,
    /// Its estimate from the latest interval alone, `q`.
    pub latest: f64,
}

impl NeighborhoodSeries {
    /// Samples that all count.
    #[must_use]
    pub const fn with_all_counted(max_threshold: f64, samples: Vec<NeighborhoodSample>) -> Self {
        Self { max_threshold, samples, weight: 1.0, counted_from: 0 }
    }

    pub(crate) fn new(config: &Config, weight: f64) -> Self {
        Self { weight, ..Self::with_all_counted(config.max_threshold, Vec::new()) }
    }

    /// Adds a sample: the queue, the estimate and the estimate of the latest interval.
    pub(crate) fn add(&mut self, at: Instant, queue_packets: u32, (average, latest): (f64, f64)) {
        let before = self.samples.last().map_or(0.0, |sample| sample.average_queue);
        let average_queue = before + self.weight * (f64::from(queue_packets) - before);
        self.samples.push(NeighborhoodSample { at, queue_packets, average_queue, average, latest });
    }

    /// Returns the samples after the warm-up.
    #[must_use]
    pub fn counted(&self) -> &[NeighborhoodSample] {
        &self.samples[self.counted_from..]
    }
}
