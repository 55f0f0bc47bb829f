//! The rectangle in which nodes move.

use super::Position;
use hopline_core::RandomStream;

/// A rectangle with one corner at the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Extent along x in m, > 0.
    pub width_m: f64,
    /// Extent along y in m, > 0.
    pub height_m: f64,
}

/// Above this ratio of the sides the exact formula for the mean distance cancels, and the rectangle is a line.
const LINE_RATIO: f64 = 1000.0;

impl Area {
    /// Returns whether both sides are positive and finite.
    #[must_use]
    pub fn is_valid(self) -> bool {
        [self.width_m, self.height_m].iter().all(|side| side.is_finite() && *side > 0.0)
    }

    /// A point drawn uniformly.
    #[must_use]
    pub fn uniform(self, stream: &mut RandomStream) -> Position {
        Position { x_m: stream.uniform(0.0, self.width_m), y_m: stream.uniform(0.0, self.height_m) }
    }

    /// Length of the diagonal in m.
    #[must_use]
    pub fn diagonal_m(self) -> f64 {
        Position::default().distance_m(Position { x_m: self.width_m, y_m: self.height_m })
    }

    /// Mean distance in m between two points drawn uniformly and independently (Ghosh 1951).
    #[must_use]
    pub fn mean_distance_m(self) -> f64 {
        let (a, b) = (self.width_m.max(self.height_m), self.width_m.min(self.height_m));
        if a > LINE_RATIO * b {
            return a / 3.0;
        }
        // In units of b, so that only the shape matters.
        let (r, d) = (a / b, libm::sqrt(1.0 + (a / b) * (a / b)));
        let powers = r * r * r + 1.0 / (r * r) + d * (3.0 - r * r - 1.0 / (r * r));
        let logs = libm::log(r + d) / r + r * r * libm::log((1.0 + d) / r);
        b * (powers + 2.5 * logs) / 15.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Purpose;

    #[test]
    fn two_points_of_the_unit_square_are_0_5214_apart_on_average() {
        let square = Area { width_m: 1.0, height_m: 1.0 };
        assert!((square.mean_distance_m() - 0.521_405_433_164_720_7).abs() < 1e-12);
    }

    #[test]
    fn mean_distance_agrees_with_drawing_points() {
        let mut stream = RandomStream::global(1, 1, Purpose::Mobility);
        for area in [Area { width_m: 600.0, height_m: 400.0 }, Area { width_m: 100.0, height_m: 1500.0 }] {
            let n = 40_000;
            let sum: f64 =
                (0..n).map(|_| area.uniform(&mut stream).distance_m(area.uniform(&mut stream))).sum();
            let drawn = sum / f64::from(n);
            assert!(
                (drawn / area.mean_distance_m() - 1.0).abs() < 0.01,
                "{drawn} {}",
                area.mean_distance_m()
            );
        }
    }

    #[test]
    fn a_long_strip_is_a_line_and_joins_the_formula() {
        let strip = |ratio| Area { width_m: ratio, height_m: 1.0 }.mean_distance_m() / ratio;
        assert!((strip(999.9) - 1.0 / 3.0).abs() < 1e-4, "{}", strip(999.9));
        assert!((strip(1e9) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn sides_must_be_positive_numbers() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!Area { width_m: 10.0, height_m: bad }.is_valid());
        }
        assert!(Area { width_m: 10.0, height_m: 0.1 }.is_valid());
    }
}
