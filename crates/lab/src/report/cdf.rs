//! Cumulative distributions of packet delays and of response times: a line for each variant.

use super::dots::WIDTH;
use super::frame::Frame;
use super::measured::shortest;
use super::picture::{HPos, legible, line, picture, text, text_style, units};
use super::role::{Role, VARIANT_COLOURS};
use super::{Distributed, Experiment, Times};
use crate::record::distribution::PERCENT;

/// Height of a chart without its legend, in CSS pixels.
const HEIGHT: f64 = 240.0;
/// Height of an entry of the legend.
const ENTRY: f64 = 18.0;
/// Maximum number of variants, limited by their colours.
const MAX_VARIANTS: usize = VARIANT_COLOURS.len();
/// Percentile of the slowest variant at which the axis ends: the last values may be far off.
const SHOWN_PERCENT: f64 = 99.0;

/// Returns title and picture of each chart: delays, response times.
pub(super) fn charts(experiment: &Experiment) -> Vec<(&'static str, String, String)> {
    let chart = |(key, times, what): (&'static str, Times, &str)| {
        let all: Vec<&Distributed> = experiment.distributions.iter().filter(|d| d.times == times).collect();
        let Distributed { of, run, .. } = all.first()?;
        let of = if of.is_empty() { String::new() } else { format!(" of {}", legible(of, 40)) };
        let title = format!("{what}{of}, run {run}: share that came within (ms)");
        let svg = draw(experiment, &all[..all.len().min(MAX_VARIANTS)], &title)?;
        Some((key, title, svg))
    };
    let both = [("delays", Times::Delay, "One-way delay"), ("responses", Times::Response, "Response time")];
    both.into_iter().filter_map(chart).collect()
}

fn draw(experiment: &Experiment, lines: &[&Distributed], title: &str) -> Option<String> {
    let last = PERCENT.iter().position(|percent| *percent >= SHOWN_PERCENT)?;
    let slowest = lines.iter().filter_map(|d| d.quantiles_ms.get(last)).copied();
    let end = slowest.filter(|x| x.is_finite() && *x > 0.0).fold(0.0, f64::max);
    if end <= 0.0 {
        return None;
    }
    let below_px = ENTRY * (lines.len() as f64 + 0.5);
    Some(picture((WIDTH, HEIGHT + below_px), title, |area, extras| {
        let frame =
            Frame { size_px: (WIDTH, HEIGHT), ends: (end, 100.0), below: "ms", right_px: 16.0, below_px };
        let scale = frame.draw(area, extras)?;
        for (entry, one) in lines.iter().enumerate() {
            let label = experiment.variants.get(one.variant).map_or("", |v| v.label.as_str());
            let ink = Role::Flow { variant: one.variant, flow: one.variant / VARIANT_COLOURS.len() };
            let points = one.quantiles_ms.iter().zip(PERCENT).filter(|(ms, _)| ms.is_finite() && **ms <= end);
            let points: Vec<((i32, i32), f64, f64)> =
                points.map(|(ms, percent)| (scale((*ms, percent)), *ms, percent)).collect();
            for (at, ms, percent) in &points {
                let ms = shortest(libm::round(ms * 100.0) / 100.0);
                extras.spot(*at, &format!("{}: {percent} % within {ms} ms", legible(label, 60)));
            }
            line(area, points.iter().map(|(at, ..)| *at).collect(), ink, 1.8)?;
            let y = units(HEIGHT + ENTRY * (entry as f64 + 0.7));
            line(area, vec![(units(52.0), y), (units(80.0), y)], ink, 1.8)?;
            text(area, label, (units(88.0), y), &text_style(Role::Text, 12.0, HPos::Left))?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Variant;

    fn experiment(times: Times) -> Experiment {
        let quantiles = |slow: f64| PERCENT.iter().map(|percent| slow * percent).collect::<Vec<f64>>();
        let distributed = |variant, slow| Distributed {
            variant,
            run: 1,
            times,
            of: "web".into(),
            quantiles_ms: quantiles(slow),
        };
        Experiment {
            variants: ["a", "b"].map(|label| Variant { label: label.into(), ..Variant::default() }).into(),
            distributions: vec![distributed(0, 1.0), distributed(1, 3.0)],
            ..Experiment::default()
        }
    }

    #[test]
    fn every_variant_has_its_line_name_and_values() {
        let charts = charts(&experiment(Times::Response));
        let [(key, title, svg)] = charts.as_slice() else { panic!("{}", charts.len()) };
        assert_eq!(
            (*key, title.as_str()),
            ("responses", "Response time of web, run 1: share that came within (ms)")
        );
        assert!(svg.contains("class=\"v0 flow") && svg.contains("class=\"v1 flow"));
        assert!(svg.contains("<title>a: 95 % within 95 ms</title>"), "{svg}");
        assert!(svg.contains("<title>b: 50 % within 150 ms</title>"), "{svg}");
        assert!(!svg.contains("b: 100 % within"), "the last percent may be far off");
    }

    #[test]
    fn without_data_there_is_no_chart() {
        assert!(charts(&Experiment::default()).is_empty());
        let mut broken = experiment(Times::Delay);
        broken.distributions.iter_mut().for_each(|d| d.quantiles_ms.fill(f64::NAN));
        assert!(charts(&broken).is_empty());
    }
}
