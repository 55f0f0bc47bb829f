//! Reduction of points, for charts that cannot show them all.

/// Returns means of `step` neighbours each; the last group may be smaller. Suitable for rates: the area is
/// preserved.
pub(super) fn means(values: &[f64], step: usize) -> Vec<f64> {
    values.chunks(step.max(1)).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

/// Returns `most` of `n` indices, evenly spread, first and last included.
pub(super) fn evenly_spread(n: usize, most: usize) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    (0..most).map(|i| i * (n - 1) / (most - 1).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_preserve_the_area() {
        assert_eq!(means(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 6.0, 9.0]);
        assert_eq!(means(&[1.0, 3.0], 1), [1.0, 3.0]);
        assert_eq!(means(&[], 3), [0.0; 0]);
        assert_eq!(means(&[4.0], 0), [4.0]);
    }

    #[test]
    fn a_spread_has_both_ends() {
        assert_eq!(evenly_spread(3, 5), [0, 1, 2]);
        assert_eq!(evenly_spread(101, 5), [0, 25, 50, 75, 100]);
        assert_eq!(evenly_spread(9, 1), [0]);
        assert_eq!(evenly_spread(0, 5), [0; 0]);
    }
}
