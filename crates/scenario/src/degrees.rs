//! Longitudes and latitudes where metres are expected.

/// Extent in which positions are suspicious: a degree is 111 km, and stations of a network are metres apart.
const EXTENT: f64 = 1.0;

/// Returns whether positions look like longitudes and latitudes: x within ±180 and y within ±90, not all the
/// same, all of them within one unit of each other, and farther than that from the origin.
pub(crate) fn look_like_degrees(positions: impl IntoIterator<Item = (f64, f64)>) -> bool {
    let (mut least, mut most) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    for (x, y) in positions {
        least = (least.0.min(x), least.1.min(y));
        most = (most.0.max(x), most.1.max(y));
    }
    let extent = (most.0 - least.0).max(most.1 - least.1);
    let reach = |least: f64, most: f64| least.abs().max(most.abs());
    let (x, y) = (reach(least.0, most.0), reach(least.1, most.1));
    0.0 < extent && extent < EXTENT && x <= 180.0 && y <= 90.0 && x.max(y) > EXTENT
}

/// Error message for such positions.
pub(crate) const MESSAGE: &str = "positions look like longitudes and latitudes: all lie within a metre";

/// Remedy.
pub(crate) const HELP: &str = "positions are metres: project them, as GPX files are; stations that do stand within a metre begin at x = 0 and y = 0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_town_look_like_degrees_anywhere() {
        for (x, y) in [(-78.695146, 35.794948), (-0.1276, 51.5072), (151.2, -33.87), (6.6, 0.34)] {
            assert!(look_like_degrees([(x, y), (x + 0.01, y), (x, y - 0.02)]), "{x} {y}");
        }
    }

    #[test]
    fn positions_in_metres_do_not_look_like_degrees() {
        for positions in [
            &[(50.0, 50.0), (50.0, 51.5)][..],
            &[(0.0, 0.0), (0.5, 0.5)],
            &[(13.0, 52.0), (13.0, 52.0)],
            &[(200.0, 50.0), (200.5, 50.0)],
            &[(10.0, 95.0), (10.0, 95.5)],
            &[(7.0, 7.0)],
            &[],
        ] {
            assert!(!look_like_degrees(positions.iter().copied()), "{positions:?}");
        }
    }
}
