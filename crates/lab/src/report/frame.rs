//! Axes and grid of a chart with both axes from zero.

use super::measured::shortest;
use super::picture::{Area, Extras, HPos, line_style, text, text_style, units};
use super::role::Role;
use plotters::prelude::{ChartBuilder, LabelAreaPosition};

/// Error of drawing; does not occur in memory.
pub(super) type Failed = plotters::drawing::DrawingAreaErrorKind<std::io::Error>;

/// A frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Width and height, in CSS pixels, without the part below.
    pub(super) size_px: (f64, f64),
    /// Ends of the axes: horizontal, vertical.
    pub(super) ends: (f64, f64),
    /// Name of the horizontal axis.
    pub(super) below: &'a str,
    /// Free space to its right, in CSS pixels.
    pub(super) right_px: f64,
    /// Free space below, in CSS pixels.
    pub(super) below_px: f64,
}

impl Frame<'_> {
    /// Draws the frame, and sets it for the script. Returns the function from points to positions.
    pub(super) fn draw(
        self,
        area: &Area<'_>,
        extras: &mut Extras,
    ) -> Result<impl Fn((f64, f64)) -> (i32, i32) + use<>, Failed> {
        let (end, top) = self.ends;
        let mut chart = ChartBuilder::on(area)
            .margin_top(units(10.0))
            .margin_right(units(self.right_px))
            .margin_bottom(units(self.below_px))
            .set_label_area_size(LabelAreaPosition::Left, units(46.0))
            .set_label_area_size(LabelAreaPosition::Bottom, units(34.0))
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(7)
            .y_labels(5)
            .max_light_lines(0)
            .bold_line_style(line_style(Role::Grid, 1.0))
            .axis_style(line_style(Role::Axis, 1.0))
            .set_tick_mark_size(LabelAreaPosition::Bottom, units(3.0))
            .set_tick_mark_size(LabelAreaPosition::Left, units(3.0))
            .x_label_style(text_style(Role::Muted, 11.0, HPos::Center))
            .y_label_style(text_style(Role::Muted, 11.0, HPos::Right))
            .x_label_formatter(&|x| shortest(libm::round(x * 1e6) / 1e6))
            .y_label_formatter(&|y| shortest(libm::round(y * 1e6) / 1e6))
            .draw()?;
        let foot = (units(self.size_px.0 / 2.0), units(self.size_px.1 - 6.0));
        text(area, self.below, foot, &text_style(Role::Muted, 11.0, HPos::Center))?;
        let (x0, y0) = chart.backend_coord(&(0.0, 0.0));
        let (x1, y1) = chart.backend_coord(&(end, top));
        extras.data.push(("data-x", format!("{x0} {x1} 0 {end}")));
        extras.data.push(("data-y", format!("{y0} {y1} 0 {top}")));
        // Points far outside are clamped, but remain outside.
        let between = |from: i32, to: i32, share: f64| {
            from + (share.clamp(-1.0, 2.0) * f64::from(to - from)).round() as i32
        };
        Ok(move |(x, y): (f64, f64)| (between(x0, x1, x / end), between(y0, y1, y / top)))
    }
}
