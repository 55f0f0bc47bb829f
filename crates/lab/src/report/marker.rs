//! Shapes that distinguish variants without colour.

use super::role::VARIANT_COLOURS;
use std::f64::consts::TAU;

/// Number of shapes. There are seven colours: together they repeat after forty-two variants.
pub(super) const SHAPES: usize = 6;

/// Returns the outline of shape `i`, around the origin, about 1 in radius, y downwards.
pub(super) fn outline(i: usize) -> Vec<(f64, f64)> {
    let arm = 0.38;
    match i % SHAPES {
        0 => regular(20, 1.0, 0.0),
        1 => regular(4, 1.25, 0.125),
        2 => regular(3, 1.35, 0.75),
        3 => regular(4, 1.35, 0.0),
        4 => regular(3, 1.35, 0.25),
        _plus => [(1.2, arm), (arm, arm), (arm, 1.2)]
            .into_iter()
            .chain([(-arm, 1.2), (-arm, arm), (-1.2, arm)])
            .chain([(-1.2, -arm), (-arm, -arm), (-arm, -1.2)])
            .chain([(arm, -1.2), (arm, -arm), (1.2, -arm)])
            .collect(),
    }
}

/// Returns shape `i` around a point, in units of a drawing.
pub(super) fn at((x, y): (i32, i32), radius: f64, i: usize) -> Vec<(i32, i32)> {
    let scaled = |v: f64| (v * radius).round() as i32;
    outline(i).into_iter().map(|(dx, dy)| (x + scaled(dx), y + scaled(dy))).collect()
}

/// Returns shape `i` as the path of an SVG of 16 × 16.
pub(super) fn path(i: usize) -> String {
    let points = outline(i).into_iter().map(|(x, y)| format!("{:.1} {:.1}", 8.0 + 5.0 * x, 8.0 + 5.0 * y));
    format!("M{}Z", points.collect::<Vec<_>>().join("L"))
}

/// Returns a regular polygon; its first corner is `turn` (in full turns) clockwise of the right.
fn regular(corners: usize, radius: f64, turn: f64) -> Vec<(f64, f64)> {
    (0..corners)
        .map(|corner| TAU * (corner as f64 / corners as f64 + turn))
        .map(|angle| (radius * libm::cos(angle), radius * libm::sin(angle)))
        .collect()
}

/// Returns the mark of variant `i` beside its name.
pub(super) fn mark(i: usize) -> String {
    let (colour, path) = (i % VARIANT_COLOURS.len(), path(i));
    format!(r#"<svg class="mark v{colour}" viewBox="0 0 16 16" aria-hidden="true"><path d="{path}"/></svg>"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_two_variants_differ_in_shape_or_colour() {
        let colours = crate::report::role::VARIANT_COLOURS.len();
        let looks: Vec<_> = (0..42).map(|i| (i % colours, path(i))).collect();
        for (i, look) in looks.iter().enumerate() {
            assert!(!looks[..i].contains(look), "variant {i} looks like one before it");
        }
    }

    #[test]
    fn a_triangle_points_up_and_another_down() {
        let highest = |i| outline(i).into_iter().map(|(_, y)| y).fold(f64::INFINITY, f64::min);
        assert!(highest(2) < -1.3);
        assert!(highest(4) > -0.7);
    }
}
