//! Goodput and congestion window over time: a panel for each variant and run.

use super::dots::WIDTH;
use super::ink::Ink;
use super::measured::shortest;
use super::picture::{
    Area, Extras, HPos, Painted, legible, line, line_style, picture, text, text_style, units,
};
use super::{RunSeries, thin};
use plotters::prelude::{ChartBuilder, LabelAreaPosition};

/// Height of a panel in CSS pixels.
pub(super) const HEIGHT: f64 = 190.0;
/// Most flows of a panel.
const MOST_FLOWS: usize = 24;
/// Up to here every flow has its name at the end of its line.
const NAMED_FLOWS: usize = 4;
/// Most points of a line: two for each pixel of width would be the limit of what can be seen.
const MOST_POINTS: usize = 240;
/// Most points of all panels of an experiment together; about ten bytes each.
const MOST_POINTS_IN_ALL: usize = 30_000;
/// Most runs of a variant.
const MOST_RUNS: usize = 12;

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Goodput in each slot.
    Goodput,
    /// Congestion window at the end of each slot.
    Window,
    /// Packets that wait in a neighbourhood, in each slot.
    Neighborhood,
}

impl Quantity {
    /// Name and unit.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Goodput => "goodput (kb/s)",
            Self::Window => "cwnd (segments)",
            Self::Neighborhood => "neighborhood queue (packets)",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Goodput => "kb/s",
            Self::Window => "segments",
            Self::Neighborhood => "packets",
        }
    }

    /// Name and values of the lines that are drawn of it.
    fn lines(self, series: &RunSeries) -> Vec<(&str, &[f64])> {
        let flows = series.flows.iter().map(|flow| match self {
            Self::Window => (flow.name.as_str(), flow.cwnd_segments.as_slice()),
            Self::Goodput | Self::Neighborhood => (flow.name.as_str(), flow.goodput_kbps.as_slice()),
        });
        let queues = series.queues.iter().map(|queue| (queue.name.as_str(), queue.packets.as_slice()));
        match self {
            Self::Goodput | Self::Window => flows.take(MOST_FLOWS).collect(),
            Self::Neighborhood => queues.take(MOST_FLOWS).collect(),
        }
    }
}

/// One panel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Panel {
    /// Index of the variant.
    pub(super) variant: usize,
    /// Number of the run.
    pub(super) run: u64,
    /// Goodput.
    pub(super) goodput: String,
    /// Congestion window; `None` if no flow has one.
    pub(super) window: Option<String>,
    /// Queues of neighbourhoods; `None` if none was observed.
    pub(super) neighborhood: Option<String>,
}

/// The panels of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Panels {
    /// In the order of variants, runs within.
    pub(super) panels: Vec<Panel>,
    /// The numbers of the runs that are there.
    pub(super) runs: Vec<u64>,
    /// The names of the flows.
    pub(super) flows: Vec<String>,
    /// What was left out, in sentences.
    pub(super) notes: Vec<String>,
}

/// Draws all panels. Their axes are the same, so that they can be compared.
pub(super) fn panels(series: &[RunSeries], labels: &[&str]) -> Panels {
    let mut out = Panels::default();
    let shown = choose(series, &mut out);
    let Some(first) = shown.first() else { return out };
    let drawn_flows = shown.iter().map(|s| s.flows.len().min(MOST_FLOWS)).max().unwrap_or(0);
    out.flows = first.flows.iter().take(drawn_flows).map(|f| legible(&f.name, 60)).collect();
    let flows = shown.iter().map(|s| s.flows.len()).max().unwrap_or(0);
    if flows > drawn_flows {
        out.notes.push(format!("Of {flows} flows the first {drawn_flows} are drawn."));
    }
    let step = thinning(&shown);
    if step > 1 {
        out.notes.push(format!(
            "Thinned for drawing: goodput is the mean over {} s, of the congestion window the lowest and the highest \
             value in that time are drawn.",
            shortest(step as f64 * first.step_s)
        ));
    }
    let axes = [Quantity::Goodput, Quantity::Window, Quantity::Neighborhood]
        .map(|quantity| Axes::of(&shown, quantity, step));
    for series in shown {
        let label = labels.get(series.variant).copied().unwrap_or("");
        let windows = series.flows.iter().any(|f| !f.cwnd_segments.is_empty());
        let draw = |axes: &Axes| panel(series, label, axes);
        out.panels.push(Panel {
            variant: series.variant,
            run: series.run,
            goodput: draw(&axes[0]),
            window: windows.then(|| draw(&axes[1])),
            neighborhood: (!series.queues.is_empty()).then(|| draw(&axes[2])),
        });
    }
    out
}

/// The series that are drawn, variants in order, runs within.
fn choose<'a>(series: &'a [RunSeries], out: &mut Panels) -> Vec<&'a RunSeries> {
    let mut runs: Vec<u64> = series.iter().map(|s| s.run).collect();
    runs.sort_unstable();
    runs.dedup();
    let variants = series.iter().map(|s| s.variant).max().map_or(0, |v| v + 1);
    let affordable = (MOST_POINTS_IN_ALL / (60 * variants.max(1))).clamp(1, MOST_RUNS);
    if runs.len() > affordable {
        out.notes.push(format!("Of {} runs the first {affordable} are here.", runs.len()));
        runs.truncate(affordable);
    }
    let usable = |s: &&RunSeries| runs.contains(&s.run) && s.step_s > 0.0 && s.step_s.is_finite();
    let mut shown: Vec<&RunSeries> = series.iter().filter(usable).collect();
    shown.sort_by_key(|s| (s.variant, s.run));
    if shown.len() > super::dots::MOST_ROWS {
        out.notes.push(format!(
            "Of {} variants and runs the first {} are here.",
            shown.len(),
            super::dots::MOST_ROWS
        ));
        shown.truncate(super::dots::MOST_ROWS);
    }
    out.runs = runs;
    shown
}

/// How many samples become one, so that lines are short enough and all of them together too.
fn thinning(shown: &[&RunSeries]) -> usize {
    let lengths = |s: &&RunSeries| {
        let of_flows = s.flows.iter().take(MOST_FLOWS).map(|f| f.goodput_kbps.len() + f.cwnd_segments.len());
        of_flows.chain(s.queues.iter().take(MOST_FLOWS).map(|q| q.packets.len())).sum::<usize>()
    };
    let all: usize = shown.iter().map(lengths).sum();
    let longest = shown.iter().flat_map(|s| &s.flows).map(|f| f.goodput_kbps.len()).max().unwrap_or(0);
    longest.div_ceil(MOST_POINTS).max(all.div_ceil(MOST_POINTS_IN_ALL)).max(1)
}

/// What all panels of a quantity share.
struct Axes {
    quantity: Quantity,
    step: usize,
    end_s: f64,
    top: f64,
}

impl Axes {
    fn of(shown: &[&RunSeries], quantity: Quantity, step: usize) -> Self {
        let lines = |s: &&RunSeries| {
            let step_s = s.step_s;
            quantity
                .lines(s)
                .into_iter()
                .map(move |(_, values)| (step_s, values.to_vec()))
                .collect::<Vec<_>>()
        };
        let flows = || shown.iter().flat_map(lines);
        let end_s = flows().map(|(step_s, values)| step_s * values.len() as f64).fold(0.0, f64::max);
        let heights = flows().flat_map(|(step_s, values)| points(quantity, &values, step, step_s));
        let top = heights.map(|(_, y)| y).filter(|y| y.is_finite()).fold(0.0, f64::max);
        let or_one = |v: f64| if v > 0.0 { v } else { 1.0 };
        Self { quantity, step, end_s: or_one(end_s), top: 1.05 * or_one(top) }
    }
}

/// Time and value of what is drawn of a line.
fn points(quantity: Quantity, values: &[f64], step: usize, step_s: f64) -> Vec<(f64, f64)> {
    match quantity {
        Quantity::Goodput | Quantity::Neighborhood => {
            let slot = step_s * step as f64;
            let middle = |(i, v): (usize, f64)| ((i as f64 + 0.5) * slot, v);
            thin::means(values, step).into_iter().enumerate().map(middle).collect()
        }
        Quantity::Window => thin::extremes(values, 2 * step)
            .into_iter()
            .map(|i| ((i + 1) as f64 * step_s, values[i]))
            .collect(),
    }
}

fn panel(series: &RunSeries, variant: &str, axes: &Axes) -> String {
    let lines = axes.quantity.lines(series);
    let label = format!("{} over time, {}, run {}", axes.quantity.title(), legible(variant, 60), series.run);
    picture((WIDTH, HEIGHT), &label, |area, extras| {
        let named = (2..=NAMED_FLOWS).contains(&lines.len());
        let room = Room { right_px: if named { 56.0 } else { 16.0 }, below_px: 0.0 };
        let scale = frame(area, extras, (axes.end_s, axes.top), room)?;
        extras.data.push(("data-unit", axes.quantity.unit().into()));
        if lines.len() > NAMED_FLOWS {
            extras.data.push(("data-many", lines.len().to_string())); // Thin lines, and no dashes.
        }
        let names: Vec<String> = lines.iter().map(|(name, _)| legible(name, 60)).collect();
        extras.data.push(("data-flows", serde_json::to_string(&names).expect("names are text")));
        let mut ends = Vec::new();
        for (i, (name, values)) in lines.into_iter().enumerate() {
            let points = points(axes.quantity, values, axes.step, series.step_s);
            let points: Vec<(i32, i32)> =
                points.into_iter().filter(|(_, y)| y.is_finite()).map(&scale).collect();
            let Some(&end) = points.last() else { continue };
            line(area, points, Ink::Flow { variant: series.variant, flow: i }, 1.6)?;
            ends.push((end, name));
        }
        if named { names_at(area, ends) } else { Ok(()) }
    })
}

/// The names of lines at their ends, moved apart where they would overlap.
fn names_at(area: &Area<'_>, mut ends: Vec<((i32, i32), &str)>) -> Painted {
    ends.sort_by_key(|((_, y), _)| *y);
    let mut below = i32::MIN;
    let bottom = units(HEIGHT - 36.0);
    let count = ends.len() as i32;
    for (n, ((x, y), name)) in (0..).zip(ends) {
        let room_left = units(13.0) * (count - 1 - n);
        below = y.min(bottom - room_left).max(below.saturating_add(units(13.0)));
        text(area, &legible(name, 7), (x + units(4.0), below), &text_style(Ink::Text, 11.0, HPos::Left))?;
    }
    Ok(())
}

type Failed = plotters::drawing::DrawingAreaErrorKind<std::io::Error>;

/// What a frame leaves free, in CSS pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// To its right.
    pub(super) right_px: f64,
    /// Below it.
    pub(super) below_px: f64,
}

/// Axes and grid from zero to `end_s` and `top`, and where a point lies; the script is told, too.
pub(super) fn frame(
    area: &Area<'_>,
    extras: &mut Extras,
    (end_s, top): (f64, f64),
    room: Room,
) -> Result<impl Fn((f64, f64)) -> (i32, i32) + use<>, Failed> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(10.0))
        .margin_right(units(room.right_px))
        .margin_bottom(units(room.below_px))
        .set_label_area_size(LabelAreaPosition::Left, units(46.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(34.0))
        .build_cartesian_2d(0.0..end_s, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(7)
        .y_labels(5)
        .max_light_lines(0)
        .bold_line_style(line_style(Ink::Grid, 1.0))
        .axis_style(line_style(Ink::Axis, 1.0))
        .set_tick_mark_size(LabelAreaPosition::Bottom, units(3.0))
        .set_tick_mark_size(LabelAreaPosition::Left, units(3.0))
        .x_label_style(text_style(Ink::Muted, 11.0, HPos::Center))
        .y_label_style(text_style(Ink::Muted, 11.0, HPos::Right))
        .x_label_formatter(&|x| shortest(libm::round(x * 1e6) / 1e6))
        .y_label_formatter(&|y| shortest(libm::round(y * 1e6) / 1e6))
        .draw()?;
    let foot = (units(WIDTH / 2.0), units(HEIGHT - 6.0));
    text(area, "time (s)", foot, &text_style(Ink::Muted, 11.0, HPos::Center))?;
    let (x0, y0) = chart.backend_coord(&(0.0, 0.0));
    let (x1, y1) = chart.backend_coord(&(end_s, top));
    extras.data.push(("data-x", format!("{x0} {x1} 0 {end_s}")));
    extras.data.push(("data-y", format!("{y0} {y1} 0 {top}")));
    let between = |from: i32, to: i32, share: f64| from + (share * f64::from(to - from)).round() as i32;
    Ok(move |(x, y): (f64, f64)| (between(x0, x1, x / end_s), between(y0, y1, y / top)))
}

#[cfg(test)]
mod tests {
    use super::super::{FlowSeries, QueueSeries};
    use super::*;

    fn series(variant: usize, run: u64, flows: usize, seconds: usize) -> RunSeries {
        let flow = |f: usize| FlowSeries {
            name: format!("f{f}"),
            goodput_kbps: (0..seconds).map(|i| (i % 7) as f64 * 100.0).collect(),
            cwnd_segments: (0..seconds).map(|i| (i % 5) as f64).collect(),
        };
        RunSeries { variant, run, step_s: 1.0, flows: (0..flows).map(flow).collect(), queues: Vec::new() }
    }

    #[test]
    fn each_flow_has_a_line_and_a_name() {
        let out = panels(&[series(0, 1, 2, 30)], &["a"]);
        assert_eq!(out.flows, ["f0", "f1"]);
        assert!(out.notes.is_empty());
        let svg = &out.panels[0].goodput;
        assert!(svg.contains(r#"class="v0 flow d0 l" data-flow="0""#), "{svg}");
        assert!(svg.contains(r#"class="v0 flow d1 l" data-flow="1""#), "{svg}");
        assert!(svg.contains(">f1<"), "{svg}");
        assert!(out.panels[0].window.as_ref().is_some_and(|svg| svg.contains("data-flow")));
    }

    #[test]
    fn a_flow_without_a_window_has_no_line_for_it() {
        let mut cbr = series(0, 1, 1, 30);
        cbr.flows[0].cwnd_segments.clear();
        assert_eq!(panels(&[cbr], &["a"]).panels[0].window, None);
    }

    #[test]
    fn the_queue_of_a_neighbourhood_stands_beside_its_estimate() {
        let mut observed = series(0, 1, 3, 30);
        assert_eq!(panels(std::slice::from_ref(&observed), &["a"]).panels[0].neighborhood, None);
        let queue = |name: &str, top: f64| QueueSeries { name: name.into(), packets: vec![top; 30] };
        observed.queues = vec![queue("n4 real", 70.0), queue("n4 estimated", 240.0)];
        let svg = panels(&[observed], &["a"]).panels[0].neighborhood.clone().unwrap();
        assert!(svg.contains(r#"data-flows="[&quot;n4 real&quot;,&quot;n4 estimated&quot;]""#), "{svg}");
        assert!(svg.contains(r#"data-flow="1""#) && !svg.contains(r#"data-flow="2""#), "{svg}");
        assert!(svg.contains("neighborhood queue (packets) over time, a, run 1"), "{svg}");
    }

    #[test]
    fn long_series_are_thinned_and_that_is_said() {
        let out = panels(&[series(0, 1, 1, 100_000)], &["a"]);
        assert!(out.panels[0].goodput.len() < 8_000, "{}", out.panels[0].goodput.len());
        assert!(out.notes[0].contains("mean over 417 s"), "{:?}", out.notes);
    }

    #[test]
    fn many_flows_runs_and_variants_stay_small() {
        let all: Vec<_> = (0..40).flat_map(|v| (1..=20).map(move |run| series(v, run, 100, 200))).collect();
        let out = panels(&all, &["a"; 40]);
        let size: usize =
            out.panels.iter().map(|p| p.goodput.len() + p.window.as_ref().map_or(0, String::len)).sum();
        assert!(size < 900_000, "{size}");
        assert_eq!(out.notes.len(), 4, "{:?}", out.notes);
    }

    #[test]
    fn empty_series_draw_empty_panels() {
        assert_eq!(panels(&[], &[]), Panels::default());
        let out = panels(&[series(3, 1, 0, 0), RunSeries::default()], &["a"]);
        assert_eq!(out.panels.len(), 1, "a step of zero is not drawn");
        let out = panels(&[series(0, 1, 1, 0)], &["a"]);
        assert!(!out.panels[0].goodput.contains("data-flow="));
    }
}
