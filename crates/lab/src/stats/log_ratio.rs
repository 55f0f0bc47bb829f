//! Ratios of means, by their logarithms.

use super::Estimate;
use super::estimate::mean;

impl Estimate {
    /// Returns the logarithm of the ratio of two means of pairs: runs with common random numbers. Its error
    /// is, to first order, that of the differences between the values, each divided by its mean (the delta
    /// method). `None` if a mean is not positive; single values need not be.
    #[must_use]
    pub fn of_log_ratio(values: &[f64], baseline: &[f64]) -> Option<Self> {
        log_ratio(values, baseline, Self::of_differences)
    }

    /// As [`of_log_ratio`](Self::of_log_ratio), for means of independent samples.
    #[must_use]
    pub fn of_independent_log_ratio(values: &[f64], baseline: &[f64]) -> Option<Self> {
        log_ratio(values, baseline, Self::of_independent)
    }

    /// Returns the logarithm of the ratio of the first two means over the ratio of the last two, of values of
    /// the same runs.
    ///
    /// Its error is, to first order, that of the corresponding sum of the values, each divided by its mean.
    /// `None` if a mean is not positive.
    #[must_use]
    pub fn of_log_ratio_of_ratios(values: [&[f64]; 4]) -> Option<Self> {
        let means = values.map(mean);
        if means.iter().any(|&mean| mean.is_nan() || mean <= 0.0) {
            return None;
        }
        let sum = |term: [f64; 4]| term[0] - term[1] - term[2] + term[3];
        let of_run = |run: usize| sum(std::array::from_fn(|place| values[place][run] / means[place]));
        let runs = values.iter().map(|of_place| of_place.len()).min().unwrap_or(0);
        let error = Self::of(&(0..runs).map(of_run).collect::<Vec<_>>());
        Some(Self { mean: sum(means.map(libm::log)), ..error })
    }
}

fn log_ratio(
    values: &[f64],
    baseline: &[f64],
    difference: fn(&[f64], &[f64]) -> Estimate,
) -> Option<Estimate> {
    let (ours, theirs) = (mean(values), mean(baseline));
    if ours <= 0.0 || theirs <= 0.0 {
        return None;
    }
    let over = |values: &[f64], mean: f64| values.iter().map(|x| x / mean).collect::<Vec<_>>();
    let error = difference(&over(values, ours), &over(baseline, theirs));
    Some(Estimate { mean: libm::log(ours / theirs), ..error })
}

#[cfg(test)]
mod tests {
    use super::super::Confidence;
    use super::super::samples::close;
    use super::*;

    #[test]
    fn proportional_values_have_a_ratio_without_error() {
        let e = Estimate::of_log_ratio(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]).unwrap();
        assert!(close(e.mean, libm::log(0.1)) && e.deviation.unwrap() < 1e-15, "{e:?}");
    }

    /// Over their means 0.5, 1.5 and 1.5, 0.5: differences −1 and 1, deviation √2, and Student's quantile 6.313752 of one
    /// degree of freedom.
    #[test]
    fn the_error_is_that_of_the_values_over_their_means() {
        let e = Estimate::of_log_ratio(&[1.0, 3.0], &[12.0, 4.0]).unwrap();
        assert!(close(e.mean, libm::log(0.25)), "{e:?}");
        let interval = e.interval(Confidence::P90).unwrap();
        assert!(close(interval.high - e.mean, 6.313_751_514_675_037), "{interval:?}");
    }

    #[test]
    fn single_runs_may_be_zero_and_means_may_not() {
        let e = Estimate::of_log_ratio(&[0.0, 0.0, 3.0], &[2.0, 2.0, 2.0]).unwrap();
        assert!(close(e.mean, libm::log(0.5)) && e.half_width.is_some());
        assert_eq!(Estimate::of_log_ratio(&[0.0, 0.0], &[2.0, 2.0]), None);
        assert_eq!(Estimate::of_log_ratio(&[2.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(Estimate::of_log_ratio(&[], &[]), None);
    }

    #[test]
    fn a_ratio_of_ratios_cancels_common_factors() {
        let (once, twice) = ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]);
        let e = Estimate::of_log_ratio_of_ratios([&twice, &once, &once, &twice]).unwrap();
        assert!(close(e.mean, libm::log(4.0)) && e.deviation.unwrap() < 1e-15, "{e:?}");
        assert_eq!(Estimate::of_log_ratio_of_ratios([&twice, &once, &[0.0; 3], &twice]), None);
        assert_eq!(Estimate::of_log_ratio_of_ratios([&[], &[], &[], &[]]), None);
    }

    /// With a second ratio that does not vary it is the ratio alone.
    #[test]
    fn the_error_of_a_ratio_of_ratios_is_that_of_the_varying_ratio() {
        let (values, baseline) = ([1.0, 3.0], [12.0, 4.0]);
        let one = Estimate::of_log_ratio(&values, &baseline).unwrap();
        let both = Estimate::of_log_ratio_of_ratios([&values, &baseline, &[5.0; 2], &[5.0; 2]]).unwrap();
        assert!(close(both.mean, one.mean) && close(both.deviation.unwrap(), one.deviation.unwrap()));
    }

    /// Variances over the means 2 and 3 squared: 1/4 of three values, (20/3)/9 of four; of the means 1/12 and 5/27.
    #[test]
    fn errors_of_unpaired_means_add_up() {
        let e = Estimate::of_independent_log_ratio(&[1.0, 2.0, 3.0], &[0.0, 2.0, 4.0, 6.0]).unwrap();
        assert!(close(e.mean, libm::log(2.0 / 3.0)) && e.n == 3, "{e:?}");
        let expected = libm::sqrt((1.0 / 12.0 + 5.0 / 27.0) * 3.0);
        assert!(close(e.deviation.unwrap(), expected), "{e:?}");
    }
}
