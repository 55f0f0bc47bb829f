//! What has arrived over time, the variants in one picture: how far one is ahead, and where the others stood still.

use super::ink::Ink;
use super::picture::{Area, HPos, Painted, legible, line, picture, text, text_style, units};
use super::series::{self, Room};
use super::{Experiment, FlowSeries, RunSeries, dots::WIDTH};

/// Height of an entry of the legend.
const ENTRY: f64 = 18.0;
/// Most variants of a chart: colours and dashes tell no more apart.
const MOST_VARIANTS: usize = 7;
/// Most points of a line.
const MOST_POINTS: usize = 240;

/// The chart: its title, its picture, and what it leaves out.
pub(super) struct Received {
    pub(super) title: String,
    pub(super) svg: String,
    pub(super) note: Option<String>,
}

/// What the first flow with a congestion window delivered in the first run of which there are series. `None` unless two
/// variants or more have it.
pub(super) fn chart(experiment: &Experiment) -> Option<Received> {
    let run = experiment.series.iter().map(|s| s.run).min()?;
    let with_run =
        || experiment.series.iter().filter(|s| s.run == run && s.step_s > 0.0 && s.step_s.is_finite());
    let flow = with_run().flat_map(|s| &s.flows).find(|f| !f.cwnd_segments.is_empty())?.name.as_str();
    let all: Vec<Line<'_>> = with_run().filter_map(|s| Line::of(experiment, s, flow)).collect();
    let drawn = chosen(experiment, &all);
    if drawn.len() < 2 {
        return None;
    }
    let note = (drawn.len() < all.len()).then(|| {
        let which = if experiment.families.is_empty() {
            "the first"
        } else {
            "the baseline and the first setting of each"
        };
        format!("Of {} variants {which} are drawn.", all.len())
    });
    let title = format!("{} over time, run {run}: received (kB)", legible(flow, 40));
    Some(Received { svg: draw(&title, &drawn), title, note })
}

/// One variant.
struct Line<'a> {
    variant: usize,
    label: &'a str,
    /// Time in seconds, kilobytes received by then.
    points: Vec<(f64, f64)>,
}

impl<'a> Line<'a> {
    fn of(experiment: &'a Experiment, series: &RunSeries, flow: &str) -> Option<Self> {
        let flow = series.flows.iter().find(|f| f.name == flow)?;
        let label = &experiment.variants.get(series.variant)?.label;
        Some(Self { variant: series.variant, label, points: received(flow, series.step_s) })
    }
}

/// Kilobytes received by the end of each slot, or of some of them, the last among these.
fn received(flow: &FlowSeries, step_s: f64) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let added = |(i, kbps): (usize, &f64)| {
        sum += if kbps.is_finite() { kbps * step_s / 8.0 } else { 0.0 };
        ((i + 1) as f64 * step_s, sum)
    };
    let all: Vec<(f64, f64)> =
        std::iter::once((0.0, 0.0)).chain(flow.goodput_kbps.iter().enumerate().map(added)).collect();
    let (last, every) = (all.len() - 1, all.len().div_ceil(MOST_POINTS));
    all.into_iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, at)| at).collect()
}

/// The first variants; where there are families, what belongs to none, and the first member of each.
fn chosen<'a, 'b>(experiment: &Experiment, all: &'b [Line<'a>]) -> Vec<&'b Line<'a>> {
    let later = |variant: usize| {
        let members = experiment.families.iter().flat_map(|family| family.members.iter().skip(1));
        members.into_iter().any(|member| member.variant == variant)
    };
    all.iter().filter(|l| !later(l.variant)).take(MOST_VARIANTS).collect()
}

fn draw(title: &str, lines: &[&Line<'_>]) -> String {
    let below = ENTRY * (lines.len() as f64 + 0.5);
    picture((WIDTH, series::HEIGHT + below), title, |area, extras| {
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let most = lines.iter().filter_map(|l| l.points.last()).map(of).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        let room = Room { right_px: 16.0, below_px: below };
        let scale = series::frame(area, extras, (ends(|p| p.0), 1.05 * ends(|p| p.1)), room)?;
        extras.data.push(("data-unit", "kB".into()));
        let names: Vec<String> = lines.iter().map(|l| legible(l.label, 60)).collect();
        extras.data.push(("data-flows", serde_json::to_string(&names).expect("names are text")));
        for (i, one) in lines.iter().enumerate() {
            let points = one.points.iter().copied().map(&scale).collect();
            line(area, points, Ink::Flow { variant: one.variant, flow: i }, 1.8)?;
        }
        legend(area, lines)
    })
}

fn legend(area: &Area<'_>, lines: &[&Line<'_>]) -> Painted {
    for (i, one) in lines.iter().enumerate() {
        let y = units(series::HEIGHT + ENTRY * (i as f64 + 0.7));
        line(
            area,
            vec![(units(52.0), y), (units(80.0), y)],
            Ink::Flow { variant: one.variant, flow: i },
            1.8,
        )?;
        text(area, one.label, (units(88.0), y), &text_style(Ink::Text, 12.0, HPos::Left))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Family, FamilyMember, Variant};

    fn experiment(variants: usize, kbps: &[f64]) -> Experiment {
        let flow = |name: &str, cwnd: bool| FlowSeries {
            name: name.into(),
            goodput_kbps: kbps.to_vec(),
            cwnd_segments: if cwnd { vec![1.0; kbps.len()] } else { Vec::new() },
        };
        let flows = || vec![flow("cbr", false), flow("tcp", true)];
        Experiment {
            variants: (0..variants)
                .map(|i| Variant { label: format!("v{i}"), ..Variant::default() })
                .collect(),
            series: (0..variants)
                .map(|variant| RunSeries {
                    variant,
                    run: 1,
                    step_s: 2.0,
                    flows: flows(),
                    ..RunSeries::default()
                })
                .collect(),
            ..Experiment::default()
        }
    }

    #[test]
    fn received_is_what_arrived_until_then() {
        let flow = FlowSeries { goodput_kbps: vec![8.0, 0.0, 16.0], ..FlowSeries::default() };
        assert_eq!(received(&flow, 2.0), [(0.0, 0.0), (2.0, 2.0), (4.0, 2.0), (6.0, 6.0)]);
        let odd = FlowSeries { goodput_kbps: vec![8.0, f64::NAN, 8.0], ..FlowSeries::default() };
        assert_eq!(received(&odd, 1.0).last(), Some(&(3.0, 2.0)));
        assert_eq!(received(&FlowSeries::default(), 1.0), [(0.0, 0.0)]);
    }

    #[test]
    fn a_long_line_is_thinned_and_keeps_its_end() {
        let flow = FlowSeries { goodput_kbps: vec![8.0; 100_000], ..FlowSeries::default() };
        let points = received(&flow, 1.0);
        assert!(points.len() <= MOST_POINTS + 1, "{}", points.len());
        assert_eq!(points.last(), Some(&(100_000.0, 100_000.0)));
    }

    #[test]
    fn the_flow_with_a_window_is_drawn_and_every_variant_has_its_line_and_name() {
        let chart = chart(&experiment(3, &[80.0, 160.0])).unwrap();
        assert_eq!(chart.title, "tcp over time, run 1: received (kB)");
        assert!(chart.note.is_none());
        for (i, class) in ["v0 flow d0 l", "v1 flow d1 l", "v2 flow d2 l"].into_iter().enumerate() {
            assert_eq!(chart.svg.matches(class).count(), 2, "line and legend of {i}");
            assert!(chart.svg.contains(&format!(">v{i}<")));
        }
    }

    #[test]
    fn of_families_the_first_members_are_drawn() {
        let mut experiment = experiment(6, &[80.0]);
        let member = |variant| FamilyMember { variant, ..FamilyMember::default() };
        let family = |variants: &[usize]| Family {
            members: variants.iter().map(|v| member(*v)).collect(),
            ..Family::default()
        };
        experiment.families = vec![family(&[1, 2, 3]), family(&[4, 5])];
        let chart = chart(&experiment).unwrap();
        assert_eq!(
            chart.note.as_deref(),
            Some("Of 6 variants the baseline and the first setting of each are drawn.")
        );
        for (label, drawn) in [("v0", true), ("v1", true), ("v2", false), ("v4", true), ("v5", false)] {
            assert_eq!(chart.svg.contains(&format!(">{label}<")), drawn, "{label}");
        }
    }

    #[test]
    fn there_is_none_without_two_variants_or_a_window() {
        assert!(chart(&Experiment::default()).is_none());
        assert!(chart(&experiment(1, &[80.0])).is_none());
        let mut streams = experiment(2, &[80.0]);
        streams.series.iter_mut().flat_map(|s| &mut s.flows).for_each(|f| f.cwnd_segments.clear());
        assert!(chart(&streams).is_none());
        assert!(chart(&experiment(2, &[])).is_none(), "an empty series has no window");
        assert!(chart(&experiment(40, &[0.0])).unwrap().note.unwrap().contains("Of 40 variants the first"));
    }
}
