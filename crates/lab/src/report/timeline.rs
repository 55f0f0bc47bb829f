//! Charts over time: goodput, congestion window, delay and queue, one chart each with all variants. They are
//! drawn once for paper, and passed to the script with all flows.

use super::frame::Frame;
use super::measured::shortest;
use super::picture::{legible, line, picture};
use super::role::Role;
use super::{Experiment, FlowSeries, RunSeries, thinning};
use serde_json::{Value as Json, json};

/// Width of a chart in CSS pixels, on paper.
const WIDTH: f64 = 940.0;
/// Height of a chart in CSS pixels, on paper.
const HEIGHT: f64 = 170.0;
/// Maximum number of variants that colours and dashes can distinguish.
const MAX_VARIANTS: usize = 14;
/// Maximum number of flows.
const MAX_FLOWS: usize = 24;
/// Maximum number of values of a line; about a few for each pixel of width are visible.
const MAX_POINTS: usize = 300;
/// Maximum number of values of all lines; about five bytes each in the page.
const MAX_TOTAL_POINTS: usize = 80_000;

/// Quantity drawn over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Goodput,
    Window,
    Delay,
    Queue,
}

impl Quantity {
    const ALL: [Self; 4] = [Self::Goodput, Self::Window, Self::Delay, Self::Queue];

    /// Returns its key in the page, its name, and its unit.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Goodput => ("goodput", "goodput", "kb/s"),
            Self::Window => ("window", "congestion window", "segments"),
            Self::Delay => ("delay", "one-way delay", "ms"),
            Self::Queue => ("queue", "queue of the source", "packets"),
        }
    }

    fn values(self, flow: &FlowSeries) -> &[f64] {
        match self {
            Self::Goodput => &flow.goodput_kbps,
            Self::Window => &flow.cwnd_segments,
            Self::Delay => &flow.delay_ms,
            Self::Queue => &flow.queue_packets,
        }
    }

    /// Returns the values, reduced by `step`: the last of each group for windows and queues, which are
    /// states.
    fn thinned(self, flow: &FlowSeries, step: usize) -> Vec<f64> {
        let values = self.values(flow);
        match self {
            Self::Goodput => thinning::means(values, step),
            Self::Window | Self::Queue => {
                values.chunks(step).filter_map(|chunk| chunk.last()).copied().collect()
            }
            Self::Delay => values.chunks(step).map(mean_of_some).collect(),
        }
    }
}

fn mean_of_some(values: &[f64]) -> f64 {
    let finite = || values.iter().filter(|x| x.is_finite());
    finite().sum::<f64>() / finite().count() as f64
}

/// Charts of an experiment.
pub(super) struct Timeline {
    /// Key, title and picture of each chart.
    pub(super) charts: Vec<TimeChart>,
    /// Variants with series: index and name.
    pub(super) variants: Vec<(usize, String)>,
    /// Names of the flows.
    pub(super) flows: Vec<String>,
    /// Index of the flow that is shown first.
    pub(super) flow: usize,
    /// All data, for the script.
    pub(super) json: String,
    /// Omissions, in sentences.
    pub(super) notes: Vec<String>,
}

/// One chart.
pub(super) struct TimeChart {
    pub(super) key: &'static str,
    pub(super) title: String,
    pub(super) svg: String,
}

impl Timeline {
    /// Returns the charts of the first run with series; `None` if there are none.
    pub(super) fn of(experiment: &Experiment) -> Option<Self> {
        let run = experiment.series.iter().map(|s| s.run).min()?;
        let usable =
            |s: &&RunSeries| s.run == run && s.step_s > 0.0 && s.step_s.is_finite() && !s.flows.is_empty();
        let all: Vec<&RunSeries> = experiment.series.iter().filter(usable).collect();
        let shown = &all[..all.len().min(MAX_VARIANTS)];
        let first = shown.first()?;
        let mut notes = Vec::new();
        if shown.len() < all.len() {
            notes.push(format!("Of {} variants the first {} are here.", all.len(), shown.len()));
        }
        let flows = shown.iter().map(|s| s.flows.len()).max().unwrap_or(0);
        let drawn = flows.min(MAX_FLOWS);
        if drawn < flows {
            notes.push(format!("Of {flows} flows the first {drawn} are here."));
        }
        let step = thinning(shown, drawn);
        if step > 1 {
            let slot = shortest(step as f64 * first.step_s);
            notes.push(format!(
                "Thinned: goodput and delay are means over {slot} s, window and queue are as they were at the end of each."
            ));
        }
        let longest = shown.iter().max_by_key(|s| s.flows.len())?;
        let flow = chosen(experiment, longest, drawn);
        let data = Data { shown, drawn, step, flow, one_variant: experiment.variants.len() < 2 };
        let label = |s: &&RunSeries| {
            let label = experiment.variants.get(s.variant).map_or("", |v| v.label.as_str());
            (s.variant, legible(label, 60))
        };
        let variants: Vec<(usize, String)> = shown.iter().map(label).collect();
        let there: Vec<Quantity> = Quantity::ALL.into_iter().filter(|q| data.has(*q)).collect();
        let charts: Vec<TimeChart> = there.iter().map(|quantity| data.chart(*quantity)).collect();
        let flows: Vec<String> =
            data.longest().flows.iter().take(drawn).map(|flow| legible(&flow.name, 60)).collect();
        let json = data.json(&there, &variants, &flows, run);
        (!charts.is_empty()).then_some(Self { charts, variants, flows, flow, json, notes })
    }
}

/// Returns the flow that is shown first: that of the question, or else the first with a congestion window.
fn chosen(experiment: &Experiment, series: &RunSeries, drawn: usize) -> usize {
    let flows = &series.flows[..series.flows.len().min(drawn)];
    let asked = flows.iter().position(|flow| flow.name == experiment.flow);
    asked.or_else(|| flows.iter().position(|flow| !flow.cwnd_segments.is_empty())).unwrap_or(0)
}

/// Returns the number of samples to merge, so that each line is short enough and so are all together.
fn thinning(shown: &[&RunSeries], flows: usize) -> usize {
    let lengths = |s: &&RunSeries| {
        let of_flow =
            |flow: &FlowSeries| Quantity::ALL.map(|q| q.values(flow).len()).into_iter().sum::<usize>();
        s.flows.iter().take(flows).map(of_flow).sum::<usize>()
    };
    let all: usize = shown.iter().map(lengths).sum();
    let longest = shown.iter().flat_map(|s| &s.flows).map(|f| f.goodput_kbps.len()).max().unwrap_or(0);
    longest.div_ceil(MAX_POINTS).max(all.div_ceil(MAX_TOTAL_POINTS)).max(1)
}

struct Data<'a> {
    shown: &'a [&'a RunSeries],
    drawn: usize,
    step: usize,
    flow: usize,
    /// `true` if flows are compared instead of variants.
    one_variant: bool,
}

impl<'a> Data<'a> {
    fn longest(&self) -> &'a RunSeries {
        self.shown.iter().max_by_key(|s| s.flows.len()).expect("there is one")
    }

    fn has(&self, quantity: Quantity) -> bool {
        let mut flows = self.shown.iter().flat_map(|s| s.flows.iter().take(self.drawn));
        flows.any(|flow| quantity.values(flow).iter().any(|x| x.is_finite()))
    }

    fn slot_s(&self) -> f64 {
        self.shown[0].step_s * self.step as f64
    }

    fn end_s(&self) -> f64 {
        let ends =
            self.shown.iter().flat_map(|s| s.flows.iter().map(|f| s.step_s * f.goodput_kbps.len() as f64));
        let end = ends.fold(0.0, f64::max);
        if end > 0.0 { end } else { 1.0 }
    }

    /// Returns the lines that are drawn first: variant, place, and flow.
    fn lines(&self) -> Vec<(usize, usize, &'a FlowSeries)> {
        if self.one_variant {
            let series = self.shown[0];
            return series.flows.iter().take(self.drawn).enumerate().map(|(i, f)| (i, i, f)).collect();
        }
        let name = &self.longest().flows[self.flow].name;
        let of_name = |s: &&'a RunSeries| s.flows.iter().find(|flow| flow.name == *name);
        let line = |s: &&'a RunSeries| Some((s.variant, s.variant, of_name(s)?));
        self.shown.iter().filter_map(line).collect()
    }

    fn chart(&self, quantity: Quantity) -> TimeChart {
        let (key, name, unit) = quantity.words();
        let title = format!("{name} ({unit})");
        let svg = picture((WIDTH, HEIGHT), &format!("{title} over time"), |area, extras| {
            let lines: Vec<_> = self
                .lines()
                .into_iter()
                .map(|(v, i, flow)| (v, i, quantity.thinned(flow, self.step)))
                .collect();
            let values = lines.iter().flat_map(|(_, _, values)| values).filter(|y| y.is_finite());
            let top = values.copied().fold(0.0, f64::max);
            let ends = (self.end_s(), if top > 0.0 { 1.05 * top } else { 1.0 });
            let frame =
                Frame { size_px: (WIDTH, HEIGHT), ends, below: "time (s)", right_px: 16.0, below_px: 0.0 };
            let scale = frame.draw(area, extras)?;
            for (variant, flow, values) in lines {
                let at = |(i, y): (usize, f64)| scale(((i as f64 + 0.5) * self.slot_s(), y));
                let points = values.into_iter().enumerate().filter(|(_, y)| y.is_finite()).map(at);
                line(
                    area,
                    points.collect(),
                    Role::Flow { variant, flow: flow / super::role::VARIANT_COLOURS.len() },
                    1.6,
                )?;
            }
            Ok(())
        });
        TimeChart { key, title, svg }
    }

    fn json(&self, there: &[Quantity], variants: &[(usize, String)], flows: &[String], run: u64) -> String {
        let values = |quantity: Quantity| -> Vec<Vec<Vec<Json>>> {
            let of_flow =
                |flow: &FlowSeries| quantity.thinned(flow, self.step).into_iter().map(short).collect();
            // Points may have different flows: a line is matched by name.
            let of_name = |s: &RunSeries, name: &str| {
                s.flows.iter().find(|flow| flow.name == name).map(of_flow).unwrap_or_default()
            };
            let names = || self.longest().flows.iter().take(self.drawn);
            let of_variant = |s: &&RunSeries| names().map(|flow| of_name(s, &flow.name)).collect();
            self.shown.iter().map(of_variant).collect()
        };
        let chart = |quantity: &Quantity| {
            let (key, name, unit) = quantity.words();
            json!({ "key": key, "name": name, "unit": unit, "values": values(*quantity) })
        };
        let variants = variants.iter().map(|(index, name)| json!({ "index": index, "name": name }));
        let all = json!({
            "run": run,
            "end_s": self.end_s(),
            "slot_s": self.slot_s(),
            "flow": self.flow,
            "variants": variants.collect::<Vec<_>>(),
            "flows": flows,
            "charts": there.iter().map(chart).collect::<Vec<_>>(),
        });
        // A name must not be able to end the element.
        all.to_string().replace('<', "\\u003c")
    }
}

/// Rounds to four digits, as short as possible.
fn short(x: f64) -> Json {
    if !x.is_finite() {
        return Json::Null;
    }
    if x == 0.0 || x.abs() > 1e15 {
        return if x == 0.0 { json!(0) } else { json!(x) };
    }
    let digits = 3 - libm::floor(libm::log10(x.abs())) as i32;
    if digits <= 0 {
        return json!(libm::round(x) as i64);
    }
    let scale = libm::pow(10.0, f64::from(digits.min(6)));
    let rounded = libm::round(x * scale) / scale;
    if libm::floor(rounded) == rounded { json!(rounded as i64) } else { json!(rounded) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Variant;

    fn flow(name: &str, seconds: usize) -> FlowSeries {
        FlowSeries {
            name: name.into(),
            goodput_kbps: (0..seconds).map(|i| (i % 7) as f64 * 100.0).collect(),
            cwnd_segments: (0..seconds).map(|i| (i % 5) as f64).collect(),
            delay_ms: (0..seconds).map(|i| if i % 3 == 0 { f64::NAN } else { 12.5 }).collect(),
            queue_packets: vec![2.0; seconds],
        }
    }

    fn experiment(variants: usize, flows: usize, seconds: usize) -> Experiment {
        let flows: Vec<FlowSeries> = (0..flows).map(|f| flow(&format!("f{f}"), seconds)).collect();
        let series =
            |variant| RunSeries { variant, run: 1, step_s: 1.0, flows: flows.clone(), queues: Vec::new() };
        Experiment {
            variants: (0..variants)
                .map(|i| Variant { label: format!("v{i}"), ..Variant::default() })
                .collect(),
            series: (0..variants).map(series).collect(),
            ..Experiment::default()
        }
    }

    fn parsed(timeline: &Timeline) -> Json {
        serde_json::from_str(&timeline.json).unwrap()
    }

    #[test]
    fn every_quantity_has_a_chart_with_every_variant() {
        let timeline = Timeline::of(&experiment(3, 2, 30)).unwrap();
        assert_eq!(
            timeline.charts.iter().map(|c| c.key).collect::<Vec<_>>(),
            ["goodput", "window", "delay", "queue"]
        );
        for chart in &timeline.charts {
            for v in 0..3 {
                assert!(chart.svg.contains(&format!("class=\"v{v} flow")), "{} of v{v}", chart.key);
            }
            assert!(!chart.svg.contains("NaN"), "{}", chart.svg);
        }
        assert!(timeline.notes.is_empty(), "{:?}", timeline.notes);
        let json = parsed(&timeline);
        assert_eq!(json["charts"][0]["values"][2][1][3], 300);
        assert_eq!(json["charts"][2]["values"][0][0][0], Json::Null);
        assert_eq!(json["charts"][2]["values"][0][0][1], 12.5);
    }

    #[test]
    fn with_one_variant_the_flows_are_drawn() {
        let timeline = Timeline::of(&experiment(1, 3, 30)).unwrap();
        let goodput = &timeline.charts[0].svg;
        assert!(goodput.contains("class=\"v2 flow"), "{goodput}");
    }

    #[test]
    fn a_quantity_that_no_flow_has_is_omitted() {
        let mut cbr = experiment(2, 1, 30);
        for flow in cbr.series.iter_mut().flat_map(|s| &mut s.flows) {
            flow.cwnd_segments.clear();
            flow.delay_ms = vec![f64::NAN; 30];
        }
        let timeline = Timeline::of(&cbr).unwrap();
        assert_eq!(timeline.charts.iter().map(|c| c.key).collect::<Vec<_>>(), ["goodput", "queue"]);
        assert!(Timeline::of(&Experiment::default()).is_none());
        assert!(Timeline::of(&experiment(1, 0, 0)).is_none());
    }

    #[test]
    fn the_flow_of_the_objective_comes_first_or_else_one_with_a_window() {
        let mut mixed = experiment(2, 3, 30);
        mixed.series.iter_mut().for_each(|s| s.flows[0].cwnd_segments.clear());
        assert_eq!(Timeline::of(&mixed).unwrap().flow, 1);
        mixed.flow = "f2".into();
        assert_eq!(Timeline::of(&mixed).unwrap().flow, 2);
    }

    #[test]
    fn long_and_many_series_are_thinned_and_that_is_noted() {
        let long = Timeline::of(&experiment(1, 1, 100_000)).unwrap();
        assert!(long.json.len() < 20_000, "{}", long.json.len());
        assert!(long.notes[0].contains("means over 334 s"), "{:?}", long.notes);
        let many = Timeline::of(&experiment(40, 100, 200)).unwrap();
        assert!(many.json.len() < 600_000, "{}", many.json.len());
        assert_eq!(many.notes.len(), 3, "{:?}", many.notes);
    }

    #[test]
    fn numbers_are_short_and_missing_values_are_null() {
        let texts = [0.0, 1234.56, 12.3456, 0.000_123_45, f64::NAN, f64::INFINITY, 7.0, 1e300].map(short);
        assert_eq!(
            texts.map(|x| x.to_string())[..7],
            ["0", "1235", "12.35", "0.000123", "null", "null", "7"]
        );
    }

    #[test]
    fn a_name_cannot_end_the_script_element() {
        let mut hostile = experiment(1, 1, 3);
        hostile.series[0].flows[0].name = "</script>".into();
        assert!(!Timeline::of(&hostile).unwrap().json.contains("</script"));
    }
}
