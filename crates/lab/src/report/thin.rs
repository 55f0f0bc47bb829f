//! Fewer points than there are, where a chart could not show them all.

/// Means of `step` neighbours each; the last group may be smaller. Right for rates: the area stays.
pub(super) fn means(values: &[f64], step: usize) -> Vec<f64> {
    values.chunks(step.max(1)).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
}

/// Indices of the lowest and the highest of `step` neighbours each, in their order. Right for levels: peaks stay.
pub(super) fn extremes(values: &[f64], step: usize) -> Vec<usize> {
    if step <= 2 {
        return (0..values.len()).collect();
    }
    let mut kept = Vec::new();
    for (group, chunk) in values.chunks(step).enumerate() {
        let by = |pick: fn(f64, f64) -> bool| {
            (0..chunk.len()).reduce(|best, i| if pick(chunk[i], chunk[best]) { i } else { best })
        };
        let (low, high) = (by(|a, b| a < b), by(|a, b| a > b));
        let mut both: Vec<usize> = low.into_iter().chain(high).map(|i| group * step + i).collect();
        both.sort_unstable();
        both.dedup();
        kept.extend(both);
    }
    kept
}

/// `most` of `n` indices, evenly spread, first and last among them.
pub(super) fn spread(n: usize, most: usize) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    (0..most).map(|i| i * (n - 1) / (most - 1).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_keep_the_area() {
        assert_eq!(means(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 6.0, 9.0]);
        assert_eq!(means(&[1.0, 3.0], 1), [1.0, 3.0]);
        assert_eq!(means(&[], 3), [0.0; 0]);
        assert_eq!(means(&[4.0], 0), [4.0]);
    }

    #[test]
    fn extremes_keep_peaks_and_their_order() {
        let values = [5.0, 9.0, 1.0, 2.0, 2.0, 2.0, 2.0, 8.0];
        assert_eq!(extremes(&values, 4), [1, 2, 4, 7]);
        assert_eq!(extremes(&values, 2), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(extremes(&[3.0; 7], 4), [0, 4]);
        assert_eq!(extremes(&[], 4), [0; 0]);
    }

    #[test]
    fn a_spread_has_both_ends() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(101, 5), [0, 25, 50, 75, 100]);
        assert_eq!(spread(9, 1), [0]);
        assert_eq!(spread(0, 5), [0; 0]);
    }
}
