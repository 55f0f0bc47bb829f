//! Distributions of sizes and times.

use hopline_core::RandomStream;

/// Distribution of a size or a time. Values and parameters have the unit of the drawn quantity: bytes or
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomVariable {
    /// Always this.
    Constant(f64),
    /// Anything between `min` and `max` alike.
    Uniform {
        /// Least value.
        min: f64,
        /// Greatest value, not below `min`.
        max: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean, not negative.
        mean: f64,
    },
    /// Pareto, cut off at both ends: P(X > x) falls as x^−`shape` between them.
    BoundedPareto {
        /// Least value, above 0.
        min: f64,
        /// Greatest value, not below `min`.
        max: f64,
        /// Shape, above 0; the smaller, the heavier the tail.
        shape: f64,
    },
    /// Log-normal. Mean and standard deviation are those of the values, not of their logarithms.
    LogNormal {
        /// Mean, above 0.
        mean: f64,
        /// Standard deviation, not negative.
        deviation: f64,
    },
}

impl RandomVariable {
    /// Draws a value.
    pub fn sample(&self, stream: &mut RandomStream) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform { min, max } => stream.uniform(min, max),
            Self::Exponential { mean } => stream.exponential(mean),
            Self::BoundedPareto { min, max, shape } => {
                // The inverse of F(x) = (1 − (min/x)^shape) / (1 − (min/max)^shape).
                let tail = 1.0 - libm::pow(min / max, shape);
                min * libm::pow(1.0 - stream.unit() * tail, -1.0 / shape)
            }
            Self::LogNormal { mean, deviation } => {
                let variance = libm::log1p((deviation / mean) * (deviation / mean));
                let location = libm::log(mean) - variance / 2.0;
                libm::exp(stream.normal(location, libm::sqrt(variance)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Purpose;

    fn values(draw: RandomVariable) -> Vec<f64> {
        let mut stream = RandomStream::keyed(1, 1, 0, Purpose::Traffic);
        (0..200_000).map(|_| draw.sample(&mut stream)).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_constant_uses_no_randomness() {
        let mut stream = RandomStream::keyed(1, 1, 0, Purpose::Traffic);
        let untouched = stream.clone().bits();
        assert_eq!(RandomVariable::Constant(7.5).sample(&mut stream), 7.5);
        assert_eq!(stream.bits(), untouched);
    }

    #[test]
    fn uniform_and_exponential_have_their_means() {
        let uniform = values(RandomVariable::Uniform { min: 2.0, max: 6.0 });
        assert!((mean(&uniform) - 4.0).abs() < 0.02);
        assert!(uniform.iter().all(|x| (2.0..6.0).contains(x)));
        assert!((mean(&values(RandomVariable::Exponential { mean: 30.0 })) - 30.0).abs() < 0.4);
    }

    #[test]
    fn a_bounded_pareto_keeps_its_bounds_and_its_mean() {
        let (min, max, shape) = (1000.0_f64, 1e6_f64, 1.2_f64);
        let drawn = values(RandomVariable::BoundedPareto { min, max, shape });
        assert!(drawn.iter().all(|x| (min..=max).contains(x)));
        let cut = 1.0 - (min / max).powf(shape);
        let expected =
            min.powf(shape) / cut * shape / (shape - 1.0) * (min.powf(1.0 - shape) - max.powf(1.0 - shape));
        assert!((mean(&drawn) / expected - 1.0).abs() < 0.05, "{} {expected}", mean(&drawn));
        // The median: where half of the cut distribution is below.
        let below = drawn.iter().filter(|&&x| x < min * (1.0 - 0.5 * cut).powf(-1.0 / shape)).count();
        assert!((below as f64 / drawn.len() as f64 - 0.5).abs() < 0.005);
        assert!(
            values(RandomVariable::BoundedPareto { min: 5.0, max: 5.0, shape: 1.0 })
                .iter()
                .all(|&x| x == 5.0)
        );
    }

    #[test]
    fn a_log_normal_has_the_mean_and_deviation_of_its_values() {
        let drawn = values(RandomVariable::LogNormal { mean: 10_710.0, deviation: 10_000.0 });
        let found = mean(&drawn);
        assert!((found / 10_710.0 - 1.0).abs() < 0.02, "{found}");
        let squares: Vec<f64> = drawn.iter().map(|x| (x - found) * (x - found)).collect();
        assert!((mean(&squares).sqrt() / 10_000.0 - 1.0).abs() < 0.1, "{}", mean(&squares).sqrt());
        assert!(
            values(RandomVariable::LogNormal { mean: 3.0, deviation: 0.0 })
                .iter()
                .all(|x| (x - 3.0).abs() < 1e-12)
        );
    }
}
