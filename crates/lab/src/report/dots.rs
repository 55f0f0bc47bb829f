//! Chart with a row for each variant: mean, interval, single runs.

use super::measured::Measured;
use super::picture::{
    Area, DrawResult, Extras, HPos, dot, fill, legible, line, picture, text, text_style, units,
};
use super::role::Role;
use super::{marker, thinning};
use plotters::prelude::ChartBuilder;
use std::ops::Range;

/// Width of a chart in CSS pixels: fits a phone.
pub(super) const WIDTH: f64 = 460.0;
/// Height of a row: a line with its name and a line of dots.
const ROW: f64 = 42.0;
/// Width of a character of the words at the end of a row.
const CHARACTER: f64 = 6.6;
/// Height of the axis below the rows.
const FOOT: f64 = 40.0;
/// Margin left and right of the rows.
const MARGIN: f64 = 12.0;
/// Maximum number of rows of a chart.
pub(super) const MAX_ROWS: usize = 60;
/// Maximum number of single runs of a row.
pub(super) const MAX_RUNS: usize = 100;

/// One variant.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// Index of the variant, for its style.
    pub(super) variant: usize,
    /// Name.
    pub(super) label: &'a str,
    /// Measured value.
    pub(super) measured: &'a Measured,
    /// The value in words, at the end of the row.
    pub(super) words: String,
    /// Word for a single run: "run" or "pair".
    pub(super) single: &'static str,
}

/// Meaning of zero on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Zero means no difference, and is shown with a line.
    NoDifference,
    /// Zero has no meaning, but is shown if the values are near it.
    Free,
}

/// Draws the chart. `axis`: name of the metric, with its unit.
pub(super) fn dots(rows: &[Row<'_>], axis: &str, origin: Origin) -> String {
    let rows = &rows[..rows.len().min(MAX_ROWS)];
    let height = ROW * rows.len() as f64 + FOOT;
    let said: Vec<String> =
        rows.iter().map(|row| format!("{}: {}", legible(row.label, 60), row.words)).collect();
    let label = format!("{axis}. {}", said.join("; "));
    picture((WIDTH, height), &label, |area, extras| {
        let range = extent(rows, origin);
        let longest = rows.iter().map(|row| row.words.chars().count()).max().unwrap_or(0);
        let words_px = (CHARACTER * longest as f64).min(WIDTH / 2.0);
        let scale = axis_below(area, range.clone(), axis, units(ROW * rows.len() as f64), words_px)?;
        if (range.start..=range.end).contains(&0.0) {
            let ink = if origin == Origin::NoDifference { Role::Zero } else { Role::Axis };
            let x = scale(0.0);
            line(area, vec![(x, 0), (x, units(ROW * rows.len() as f64))], ink, 1.0)?;
        }
        rows.iter()
            .enumerate()
            .try_for_each(|(i, row)| draw_row(area, extras, row, units(ROW * i as f64), &scale))
    })
}

fn draw_row(
    area: &Area<'_>,
    extras: &mut Extras,
    row: &Row<'_>,
    top: i32,
    scale: &impl Fn(f64) -> i32,
) -> DrawResult {
    let (left, right) = (units(MARGIN), units(WIDTH - MARGIN));
    let room = ((WIDTH - 2.0 * MARGIN) / 6.8) as usize;
    text(
        area,
        &legible(row.label, room),
        (left, top + units(11.0)),
        &text_style(Role::Text, 12.0, HPos::Left),
    )?;
    let y = top + units(28.0);
    text(area, &row.words, (right, y), &text_style(Role::Muted, 12.0, HPos::Right))?;
    for i in thinning::evenly_spread(row.measured.runs.len(), MAX_RUNS) {
        let value = row.measured.runs[i];
        if value.is_finite() {
            // Dots are spread vertically, so that equal runs do not hide each other.
            let at = (scale(value), y + units(((i * 7) % 11) as f64 - 5.0));
            dot(area, at, 22, Role::Single(row.variant))?;
            let value = super::measured::shortest(libm::round(value * 1000.0) / 1000.0);
            extras.spot(at, &format!("{}, {} {}: {value}", legible(row.label, 60), row.single, i + 1));
        }
    }
    if let Some([low, high]) = row.measured.interval.filter(|ends| ends.iter().all(|end| end.is_finite())) {
        let (low, high, cap) = (scale(low), scale(high), units(5.0));
        line(area, vec![(low, y), (high, y)], Role::Variant(row.variant), 2.0)?;
        for end in [low, high] {
            line(area, vec![(end, y - cap), (end, y + cap)], Role::Variant(row.variant), 2.0)?;
        }
    }
    if !row.measured.mean.is_finite() {
        return Ok(());
    }
    let mean = (scale(row.measured.mean), y);
    fill(area, marker::at(mean, 52.0, row.variant), Role::Variant(row.variant))?;
    extras.spot(mean, &format!("{}: {}", legible(row.label, 60), row.words));
    Ok(())
}

/// Draws the axis with its grid; words of this width have room beside it. Returns the function from values to
/// positions.
fn axis_below(
    area: &Area<'_>,
    range: Range<f64>,
    name: &str,
    bottom: i32,
    words_px: f64,
) -> Result<impl Fn(f64) -> i32, Failed> {
    let mut chart = ChartBuilder::on(area)
        .margin_left(units(MARGIN + 8.0))
        .margin_right(units(MARGIN + 14.0 + words_px))
        .x_label_area_size(units(FOOT))
        .build_cartesian_2d(range.clone(), 0.0..1.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(6)
        .max_light_lines(0)
        .bold_line_style(super::picture::line_style(Role::Grid, 1.0))
        .axis_style(super::picture::line_style(Role::Axis, 1.0))
        .set_tick_mark_size(plotters::prelude::LabelAreaPosition::Bottom, units(3.0))
        .x_label_style(text_style(Role::Muted, 11.0, HPos::Center))
        .x_label_formatter(&|x| super::measured::shortest(libm::round(x * 1e9) / 1e9))
        .draw()?;
    text(
        area,
        name,
        (units(WIDTH / 2.0), bottom + units(32.0)),
        &text_style(Role::Muted, 11.0, HPos::Center),
    )?;
    let origin = chart.backend_coord(&(range.start, 0.0)).0;
    let end = chart.backend_coord(&(range.end, 0.0)).0;
    Ok(move |value: f64| {
        let share = ((value - range.start) / (range.end - range.start)).clamp(-1.0, 2.0);
        origin + (share * f64::from(end - origin)).round() as i32
    })
}

type Failed = plotters::drawing::DrawingAreaErrorKind<std::io::Error>;

/// Returns the range of the axis: all that is drawn, with a margin.
fn extent(rows: &[Row<'_>], origin: Origin) -> Range<f64> {
    let values = rows.iter().flat_map(|row| row.measured.extent());
    let zero = (origin == Origin::NoDifference).then_some(0.0);
    padded(values.chain(zero))
}

/// Returns the range of the finite `values`, with a margin on both sides, and never empty. It includes zero
/// if that is near.
pub(super) fn padded(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return 0.0..1.0;
    }
    if !(high - low).is_finite() {
        return 0.0..1.0; // Beyond what numbers can tell.
    }
    let span = if high > low { high - low } else { (0.1 * high.abs()).max(1e-9) };
    let low = if low >= 0.0 && low < 0.6 * span { 0.0 } else { low - 0.06 * span };
    let high = if high <= 0.0 && -high < 0.6 * span { 0.0 } else { high + 0.06 * span };
    if low < high { low..high } else { 0.0..1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_never_empty_and_holds_every_number() {
        assert_eq!(padded(std::iter::empty()), 0.0..1.0);
        assert_eq!(padded([f64::NAN, f64::INFINITY].into_iter()), 0.0..1.0);
        assert_eq!(padded([f64::MAX, f64::MIN].into_iter()), 0.0..1.0);
        for values in [&[0.0][..], &[5.0, 5.0], &[-3.0], &[1e300, -1e300], &[1e-300], &[700.0, 720.0]] {
            let range = padded(values.iter().copied());
            assert!(range.start < range.end, "{values:?}: {range:?}");
            assert!(values.iter().all(|v| range.start <= *v && *v <= range.end), "{values:?}: {range:?}");
        }
    }

    #[test]
    fn zero_is_shown_when_it_is_near() {
        assert_eq!(padded([100.0, 300.0].into_iter()).start, 0.0);
        assert!(padded([700.0, 720.0].into_iter()).start > 690.0);
        assert_eq!(padded([-100.0, -300.0].into_iter()).end, 0.0);
    }

    #[test]
    fn a_row_shows_mean_interval_and_runs() {
        let measured = Measured { mean: 5.0, interval: Some([4.0, 6.0]), runs: vec![3.0, f64::NAN, 7.0] };
        let row =
            Row { variant: 1, label: "a <b>", measured: &measured, words: "5 ± 1".into(), single: "run" };
        let svg = dots(&[row], "goodput (kb/s)", Origin::Free);
        assert_eq!(svg.matches("v1 single f").count(), 2, "two runs are numbers");
        assert_eq!(svg.matches(r#"class="v1 l""#).count(), 3, "the interval and its caps");
        assert_eq!(svg.matches(r#"class="v1 f""#).count(), 1, "the mean");
        assert!(svg.contains("<title>a &lt;b&gt;, run 3: 7</title>"), "{svg}");
    }

    #[test]
    fn zero_has_its_line_also_at_the_end_of_the_axis() {
        let measured = Measured { mean: -5.0, interval: None, runs: Vec::new() };
        let row = Row { variant: 1, label: "x", measured: &measured, words: String::new(), single: "pair" };
        assert!(dots(&[row], "gain (%)", Origin::NoDifference).contains(r#"class="zero l""#));
    }

    #[test]
    fn many_rows_and_runs_are_limited() {
        let measured = Measured { mean: 5.0, interval: None, runs: vec![5.0; 1000] };
        let row =
            |variant| Row { variant, label: "x", measured: &measured, words: String::new(), single: "run" };
        let rows: Vec<_> = (0..100).map(row).collect();
        let svg = dots(&rows, "x", Origin::NoDifference);
        assert_eq!(svg.matches(" single f").count(), MAX_ROWS * MAX_RUNS);
    }
}
