//! Charts of variants that differ in one number: curves over it, one for each combination of the remaining
//! differences.

use super::dots::{WIDTH, padded};
use super::measured::shortest;
use super::picture::{
    Area, DrawResult, Extras, HPos, fill, legible, line, line_style, picture, text, text_style, units,
};
use super::role::Role;
use super::{Experiment, Measured, Variant, marker};
use plotters::prelude::{ChartBuilder, LabelAreaPosition};
use std::ops::Range;

/// Height of the drawing without its legend.
pub(super) const HEIGHT: f64 = 260.0;
/// Height of an entry of the legend.
pub(super) const ENTRY: f64 = 18.0;
/// Maximum number of curves of a chart.
const MAX_CURVES: usize = 12;
/// Maximum number of points of a chart, and of points with marks.
const MAX_POINTS: usize = 1000;
const MARKED_POINTS: usize = 200;
/// Ratio of the largest to the smallest value from which on the axis is logarithmic.
const WIDE: f64 = 10.0;
/// Colour of a curve that is not a variant, since its points are the variants. Grey.
const NEUTRAL: usize = 6;
/// Shares of the axis: before the first value and after the last, and between ticks.
const AXIS_ROOM: f64 = 0.04;
const TICK_DISTANCE: f64 = 0.1;
/// Maximum length of all names on an axis together, characters.
const MAX_CHARACTERS: usize = 50;

/// Variants over a numeric key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sweep {
    /// The key on the axis.
    pub(super) key: String,
    /// The curves.
    curves: Vec<Curve>,
}

#[derive(Clone, Debug, PartialEq)]
struct Curve {
    /// The settings that its points share; empty for the only curve.
    label: String,
    /// Value of the key and index of the variant, by value.
    points: Vec<(f64, usize)>,
}

impl Sweep {
    /// Returns the sweep that `variants` form: all set the same keys, and one key takes three numbers or
    /// more; of several such keys the one with most values.
    pub(super) fn of(variants: &[Variant]) -> Option<Self> {
        let keys: Vec<&str> = variants.first()?.settings.iter().map(|(key, _)| key.as_str()).collect();
        let same = |v: &Variant| v.settings.iter().map(|(key, _)| key.as_str()).eq(keys.iter().copied());
        if variants.len() > MAX_POINTS || !variants.iter().all(same) {
            return None;
        }
        let (x, _) = (0..keys.len())
            .filter_map(|k| Some((k, distinct(variants, k)?)))
            .filter(|(_, count)| *count >= 3)
            .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        let mut curves: Vec<Curve> = Vec::new();
        for (v, variant) in variants.iter().enumerate() {
            let label = others(variant, x);
            let point = (variant.settings[x].1.as_f64()?, v);
            match curves.iter_mut().find(|curve| curve.label == label) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve { label, points: vec![point] }),
            }
        }
        curves.iter_mut().for_each(|curve| curve.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
        let drawable = curves.len() <= MAX_CURVES && curves.iter().any(|curve| curve.points.len() >= 2);
        drawable.then(|| Self { key: keys[x].to_owned(), curves })
    }

    /// Draws the curves of metric `m`. `None` if it was not measured.
    pub(super) fn chart(&self, experiment: &Experiment, m: usize) -> Option<String> {
        let metric = experiment.metrics.get(m)?;
        let measured = |v: usize| experiment.variants[v].values.get(m)?.as_ref().map(|value| &value.measured);
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let y = padded(
            all()
                .filter_map(|&(_, v)| measured(v))
                .flat_map(|m| m.interval.into_iter().flatten().chain([m.mean])),
        );
        all().find_map(|&(_, v)| measured(v))?;
        let name = format!("{} ({})", metric.name, metric.unit).replace(" ()", "");
        let label = format!("{name} over {}", self.key);
        let legend = if self.curves.len() > 1 { ENTRY * (self.curves.len() as f64 + 0.5) } else { 0.0 };
        Some(picture((WIDTH, HEIGHT + legend), &label, |area, extras| {
            let scale = frame(area, legend, &XAxis::of(&self.values()), y, &legible(&self.key, 30))?;
            for (c, curve) in self.curves.iter().enumerate() {
                let points: Vec<(f64, usize, &Measured)> =
                    curve.points.iter().filter_map(|&(x, v)| Some((x, v, measured(v)?))).collect();
                let only = self.curves.len() == 1;
                draw_curve(area, if only { NEUTRAL } else { c }, &points, &scale)?;
                if experiment.variants.len() <= MARKED_POINTS {
                    let called = format!("{} {}", legible(&curve.label, 60), legible(&self.key, 40));
                    mark_points(area, extras, &points, (!only).then_some(c), &scale, |x, m| {
                        format!("{}={}: {} {}", called.trim_start(), shortest(x), m.text(), metric.unit)
                    })?;
                }
            }
            if legend > 0.0 { self.legend(area) } else { Ok(()) }
        }))
    }

    fn legend(&self, area: &Area<'_>) -> DrawResult {
        for (c, curve) in self.curves.iter().enumerate() {
            let y = units(HEIGHT + ENTRY * (c as f64 + 0.7));
            line(area, vec![(units(52.0), y), (units(80.0), y)], Role::Variant(c), 2.0)?;
            fill(area, marker::at((units(66.0), y), 45.0, c), Role::Variant(c))?;
            text(area, &curve.label, (units(88.0), y), &text_style(Role::Text, 12.0, HPos::Left))?;
        }
        Ok(())
    }

    /// Returns every value of the key, each once.
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|p| p.0)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }
}

/// Axis of the key.
pub(super) struct XAxis {
    mapping: Mapping,
    /// Positions of ticks as shares of the axis, with their labels; far enough apart to be legible.
    ticks: Vec<(f64, String)>,
}

/// Mapping of values to positions on the axis.
#[derive(Clone, Copy, Debug)]
enum Mapping {
    Linear { low: f64, high: f64 },
    Logarithmic { low: f64, high: f64 },
}

impl XAxis {
    /// Returns the axis for `values`, which are sorted.
    fn of(values: &[f64]) -> Self {
        let (low, high) = (values[0], values[values.len() - 1]);
        let place = if low > 0.0 && high / low >= WIDE {
            Mapping::Logarithmic { low, high }
        } else {
            Mapping::Linear { low, high }
        };
        let last = (place.share(high), high);
        let mut ticks = vec![(place.share(low), low)];
        for &value in values {
            let share = place.share(value);
            let room = |from: f64, to: f64| to - from >= TICK_DISTANCE;
            if room(ticks[ticks.len() - 1].0, share) && room(share, last.0) {
                ticks.push((share, value));
            }
        }
        ticks.push(last);
        Self {
            mapping: place,
            ticks: ticks.into_iter().map(|(share, value)| (share, shortest(value))).collect(),
        }
    }

    /// Returns an axis of adjacent places 0, 1, …, each with its name.
    pub(super) fn of_places(names: &[String]) -> Self {
        let place = Mapping::Linear { low: -0.5, high: names.len() as f64 - 0.5 };
        // Names of up to two digits all have room; of longer ones as many as fit are shown.
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(2);
        let every = ((names.len() * width).div_ceil(MAX_CHARACTERS)).max(1);
        let ticks = names.iter().enumerate().step_by(every);
        Self { mapping: place, ticks: ticks.map(|(i, name)| (place.share(i as f64), name.clone())).collect() }
    }
}

impl Mapping {
    /// Returns the position of `value` between the ends of the axis, 0 to 1, with a margin at both.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Logarithmic { low, high } => libm::log(value / low) / libm::log(high / low),
        };
        AXIS_ROOM + share * (1.0 - 2.0 * AXIS_ROOM)
    }
}

/// Returns the number of distinct numbers of key `k`; `None` if not all values are numbers.
fn distinct(variants: &[Variant], k: usize) -> Option<usize> {
    let numbers: Option<Vec<f64>> = variants.iter().map(|v| v.settings[k].1.as_f64()).collect();
    let mut bits: Vec<u64> = numbers?.into_iter().map(f64::to_bits).collect();
    bits.sort_unstable();
    bits.dedup();
    Some(bits.len())
}

/// Returns the settings of `variant` except number `x`, in words.
fn others(variant: &Variant, x: usize) -> String {
    let kept = variant.settings.iter().enumerate().filter(|(k, _)| *k != x);
    kept.map(|(_, (key, value))| format!("{key}={}", super::parameters::text(value)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn draw_curve(
    area: &Area<'_>,
    c: usize,
    points: &[(f64, usize, &Measured)],
    scale: &impl Fn((f64, f64)) -> (i32, i32),
) -> DrawResult {
    let side = |end: usize| {
        points.iter().filter_map(move |(x, _, m)| {
            Some((*x, m.interval.filter(|ends| ends.iter().all(|v| v.is_finite()))?[end]))
        })
    };
    let band: Vec<(i32, i32)> = side(0).chain(side(1).rev()).map(scale).collect();
    if band.len() >= 4 {
        fill(area, band, Role::Band(c))?;
    }
    let finite = points.iter().filter(|(_, _, m)| m.mean.is_finite());
    let middle: Vec<(i32, i32)> = finite.map(|&(x, _, m)| scale((x, m.mean))).collect();
    if middle.len() >= 2 { line(area, middle, Role::Variant(c), 2.0) } else { Ok(()) }
}

/// Marks the points of a curve, each with the style of `curve`, or of its variant if there is only one curve.
fn mark_points(
    area: &Area<'_>,
    extras: &mut Extras,
    points: &[(f64, usize, &Measured)],
    curve: Option<usize>,
    scale: &impl Fn((f64, f64)) -> (i32, i32),
    words: impl Fn(f64, &Measured) -> String,
) -> DrawResult {
    for &(x, variant, measured) in points.iter().filter(|(_, _, m)| m.mean.is_finite()) {
        let (at, look) = (scale((x, measured.mean)), curve.unwrap_or(variant));
        fill(area, marker::at(at, 48.0, look), Role::Variant(look))?;
        extras.spot(at, &words(x, measured));
    }
    Ok(())
}

type Failed = plotters::drawing::DrawingAreaErrorKind<std::io::Error>;

/// Draws axes and grid. Returns the function from points to positions.
pub(super) fn frame(
    area: &Area<'_>,
    legend_px: f64,
    x: &XAxis,
    y: Range<f64>,
    name: &str,
) -> Result<impl Fn((f64, f64)) -> (i32, i32) + use<>, Failed> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(10.0))
        .margin_right(units(18.0))
        .margin_bottom(units(legend_px))
        .set_label_area_size(LabelAreaPosition::Left, units(56.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(40.0))
        .build_cartesian_2d(0.0..1.0, y.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(6)
        .max_light_lines(0)
        .bold_line_style(line_style(Role::Grid, 1.0))
        .axis_style(line_style(Role::Axis, 1.0))
        .set_tick_mark_size(LabelAreaPosition::Left, units(3.0))
        .y_label_style(text_style(Role::Muted, 11.0, HPos::Right))
        .y_label_formatter(&|y| shortest(libm::round(y * 1e9) / 1e9))
        .draw()?;
    let foot = (units(WIDTH / 2.0), units(HEIGHT - 8.0));
    let name = match x.mapping {
        Mapping::Linear { .. } => name.to_owned(),
        Mapping::Logarithmic { .. } => format!("{name} (logarithmic)"),
    };
    text(area, &name, foot, &text_style(Role::Muted, 11.0, HPos::Center))?;
    let (x0, y0) = chart.backend_coord(&(0.0, y.start));
    let (x1, y1) = chart.backend_coord(&(1.0, y.end));
    let between = move |from: i32, to: i32, share: f64| {
        from + (share.clamp(-1.0, 2.0) * f64::from(to - from)).round() as i32
    };
    for (share, name) in &x.ticks {
        let at = between(x0, x1, *share);
        line(area, vec![(at, y0), (at, y0 + units(3.0))], Role::Axis, 1.0)?;
        text(area, name, (at, y0 + units(12.0)), &text_style(Role::Muted, 11.0, HPos::Center))?;
    }
    let place = x.mapping;
    Ok(move |(x, value): (f64, f64)| {
        (between(x0, x1, place.share(x)), between(y0, y1, (value - y.start) / (y.end - y.start)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Better, Metric, Value};
    use serde_json::{Value as Json, json};

    fn variants(settings: &[&[(&str, Json)]]) -> Vec<Variant> {
        let variant = |settings: &&[(&str, Json)]| {
            let mean = 10.0 + settings.len() as f64;
            let measured = Measured { mean, interval: Some([mean - 1.0, mean + 1.0]), runs: Vec::new() };
            Variant {
                settings: settings.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
                values: vec![Some(Value { measured, versus: None })],
                ..Variant::default()
            }
        };
        settings.iter().map(variant).collect()
    }

    fn experiment(variants: Vec<Variant>) -> Experiment {
        let metrics = vec![Metric::new("goodput", "kb/s", Better::Higher)];
        Experiment { metrics, variants, ..Experiment::default() }
    }

    #[test]
    fn one_number_is_one_curve() {
        let all = variants(&[&[("w", json!(8))], &[("w", json!(2))], &[("w", json!(3.5))]]);
        let sweep = Sweep::of(&all).unwrap();
        assert_eq!(sweep.key, "w");
        assert_eq!(
            sweep.curves,
            [Curve { label: String::new(), points: vec![(2.0, 1), (3.5, 2), (8.0, 0)] }]
        );
        let svg = sweep.chart(&experiment(all), 0).unwrap();
        assert!(svg.contains(">3.5<") && svg.contains("v6 band f"), "{svg}");
    }

    #[test]
    fn a_word_beside_the_number_makes_a_curve_each() {
        let point = |w: i32, t: &str| [("w", json!(w)), ("t", json!(t))];
        let all: Vec<_> = [2, 3, 8].into_iter().flat_map(|w| [point(w, "reno"), point(w, "sack")]).collect();
        let all = variants(&all.iter().map(<[_; 2]>::as_slice).collect::<Vec<_>>());
        let sweep = Sweep::of(&all).unwrap();
        let labels: Vec<_> = sweep.curves.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(labels, ["t=reno", "t=sack"]);
        let svg = sweep.chart(&experiment(all), 0).unwrap();
        assert!(svg.contains(">t=sack<") && svg.contains(r#"class="v1 l""#), "{svg}");
    }

    #[test]
    fn two_numbers_too_few_points_or_words_are_no_sweep() {
        assert_eq!(Sweep::of(&[]), None);
        assert_eq!(Sweep::of(&variants(&[&[("w", json!(2))], &[("w", json!(3))]])), None);
        assert_eq!(
            Sweep::of(&variants(&[&[("w", json!(2))], &[("w", json!(3))], &[("w", json!("no"))]])),
            None
        );
        assert_eq!(Sweep::of(&variants(&[&[("w", json!(2))], &[("w", json!(3))], &[("v", json!(4))]])), None);
        assert_eq!(Sweep::of(&variants(&[&[], &[], &[]])), None);
    }

    #[test]
    fn a_wide_range_is_logarithmic_unless_it_includes_zero() {
        let share = |values: &[f64], v: f64| XAxis::of(values).mapping.share(v);
        assert!((share(&[1.0, 10.0, 100.0], 10.0) - 0.5).abs() < 1e-9);
        assert!(share(&[0.0, 10.0, 100.0], 10.0) < 0.2);
        assert!((share(&[1.0, 2.0, 3.0], 2.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ticks_do_not_overlap() {
        let ticks = XAxis::of(&[0.0, 0.75e-6, 1.5e-6, 3e-6, 7.5e-6, 1.5e-5]).ticks;
        assert!(ticks.windows(2).all(|t| t[1].0 - t[0].0 >= 0.1), "{ticks:?}");
        assert_eq!(ticks.last().map(|t| t.1.as_str()), Some(shortest(1.5e-5).as_str()));
    }

    #[test]
    fn without_data_there_is_no_chart() {
        let mut all = variants(&[&[("w", json!(8))], &[("w", json!(2))], &[("w", json!(3))]]);
        let sweep = Sweep::of(&all).unwrap();
        all.iter_mut().for_each(|v| v.values[0] = None);
        assert_eq!(sweep.chart(&experiment(all), 0), None);
    }
}
