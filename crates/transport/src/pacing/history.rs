//! Last samples, and their variability.
//!
//! Sums are kept in whole nanoseconds. They are exact, and do not drift with the number of samples.

/// Larger samples count as this: 13 days. It keeps the sum of squares within its type.
const MAX_SAMPLE: u64 = 1 << 50;

/// The last samples, nanoseconds, up to a fixed number.
#[derive(Clone, Debug)]
pub(super) struct SampleHistory {
    ring: Vec<u64>,
    capacity: usize,
    /// Index of the next sample once the ring is full.
    next: usize,
    sum: u128,
    sum_of_squares: u128,
}

impl SampleHistory {
    /// Creates a history of `capacity` samples, at least 1.
    pub(super) fn new(capacity: u16) -> Self {
        let capacity = usize::from(capacity.max(1));
        Self { ring: Vec::with_capacity(capacity), capacity, next: 0, sum: 0, sum_of_squares: 0 }
    }

    /// Adds a sample, and removes the oldest one from a full history.
    pub(super) fn push(&mut self, sample: u64) {
        let sample = sample.min(MAX_SAMPLE);
        if self.ring.len() < self.capacity {
            self.ring.push(sample);
        } else {
            let oldest = u128::from(core::mem::replace(&mut self.ring[self.next], sample));
            self.sum -= oldest;
            self.sum_of_squares -= oldest * oldest;
            self.next = (self.next + 1) % self.capacity;
        }
        let sample = u128::from(sample);
        self.sum += sample;
        self.sum_of_squares += sample * sample;
    }

    /// Returns the standard deviation over the mean, of the population; 0 if there is no sample or all are 0.
    pub(super) fn coefficient_of_variation(&self) -> f64 {
        // n·Σx² − (Σx)² is n² times the variance; over n times the mean
        let n = self.ring.len() as u128;
        self.over_sum(((n * self.sum_of_squares - self.sum * self.sum) as f64).sqrt())
    }

    /// Returns the mean absolute deviation over the mean; 0 if there is no sample or all are 0. It reads every sample,
    /// since the mean changes.
    pub(super) fn mean_absolute_deviation(&self) -> f64 {
        let n = self.ring.len() as u128;
        // n·|x − mean| = |n·x − Σx|
        let deviations: u128 = self.ring.iter().map(|&x| (n * u128::from(x)).abs_diff(self.sum)).sum();
        self.over_sum(deviations as f64 / n.max(1) as f64)
    }

    fn over_sum(&self, x: f64) -> f64 {
        if self.sum == 0 { 0.0 } else { x / self.sum as f64 }
    }
}
