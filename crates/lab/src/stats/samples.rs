//! Samples of the tests. Expected numbers are from scipy 1.17.1, numpy 2.4.6 and statsmodels 0.15.0.

/// Values like the goodput of ten runs, in kb/s.
pub(super) const A: [f64; 10] = [712.4, 698.1, 705.9, 731.2, 689.5, 702.3, 715.8, 694.6, 708.0, 720.1];
/// The same runs with a worse variant.
pub(super) const B: [f64; 10] = [655.2, 671.3, 640.8, 690.4, 662.7, 650.1, 668.9, 645.5, 659.6, 677.2];
/// Skewed values, like delays.
pub(super) const SKEWED: [f64; 15] =
    [0.12, 0.45, 0.51, 0.6, 0.77, 0.81, 0.95, 1.2, 1.33, 1.6, 1.9, 2.4, 3.1, 4.8, 9.7];

/// Returns whether the numbers are equal to nine digits.
pub(super) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}
