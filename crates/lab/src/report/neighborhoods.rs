//! Queues of neighbourhoods, real and estimated, over time: a chart for each variant.

use super::dots::WIDTH;
use super::frame::Frame;
use super::picture::{legible, line, picture};
use super::role::Role;
use super::{QueueSeries, RunSeries, thinning};

/// Height of a chart in CSS pixels.
const HEIGHT: f64 = 190.0;
/// Maximum number of lines of a chart.
const MAX_LINES: usize = 24;
/// Maximum number of variants.
const MAX_VARIANTS: usize = 12;
/// Maximum number of points of a line.
const MAX_POINTS: usize = 240;

/// Returns a chart for each variant with queues: its index, and its picture. Their axes are equal, so that
/// they can be compared.
pub(super) fn charts(series: &[RunSeries], labels: &[&str]) -> Vec<(usize, String)> {
    let drawn = || {
        let usable = |s: &&RunSeries| !s.queues.is_empty() && s.step_s > 0.0 && s.step_s.is_finite();
        series.iter().filter(usable).take(MAX_VARIANTS)
    };
    let ends = |of: fn(&RunSeries, &QueueSeries) -> f64| {
        let all = drawn().flat_map(|s| s.queues.iter().map(move |queue| of(s, queue)));
        let most = all.filter(|x| x.is_finite()).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    };
    let end_s = ends(|series, queue| series.step_s * queue.packets.len() as f64);
    let top = ends(|_, queue| queue.packets.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max));
    let chart = |series: &RunSeries| {
        let label = labels.get(series.variant).copied().unwrap_or("");
        (series.variant, draw(series, label, (end_s, 1.05 * top)))
    };
    drawn().map(chart).collect()
}

fn draw(series: &RunSeries, label: &str, ends: (f64, f64)) -> String {
    let label = format!("neighborhood queue (packets) over time, {}", legible(label, 60));
    picture((WIDTH, HEIGHT), &label, |area, extras| {
        let frame =
            Frame { size_px: (WIDTH, HEIGHT), ends, below: "time (s)", right_px: 16.0, below_px: 0.0 };
        let scale = frame.draw(area, extras)?;
        extras.data.push(("data-unit", "packets".into()));
        let lines = &series.queues[..series.queues.len().min(MAX_LINES)];
        let names: Vec<String> = lines.iter().map(|queue| legible(&queue.name, 60)).collect();
        extras.data.push(("data-flows", serde_json::to_string(&names).expect("names are text")));
        for (flow, queue) in lines.iter().enumerate() {
            let step = queue.packets.len().div_ceil(MAX_POINTS).max(1);
            let slot = series.step_s * step as f64;
            let means = thinning::means(&queue.packets, step).into_iter().enumerate();
            let points =
                means.filter(|(_, y)| y.is_finite()).map(|(i, y)| scale(((i as f64 + 0.5) * slot, y)));
            line(area, points.collect(), Role::Flow { variant: series.variant, flow }, 1.6)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_and_its_estimate_are_drawn_together() {
        let without = RunSeries { step_s: 1.0, run: 1, ..RunSeries::default() };
        assert_eq!(charts(std::slice::from_ref(&without), &["a"]), []);
        let queue = |name: &str, top: f64| QueueSeries { name: name.into(), packets: vec![top; 30] };
        let observed =
            RunSeries { queues: vec![queue("n4 real", 70.0), queue("n4 estimated", 240.0)], ..without };
        let all = charts(&[observed], &["a"]);
        let [(0, svg)] = all.as_slice() else { panic!("{all:?}") };
        assert!(svg.contains(r#"data-flows="[&quot;n4 real&quot;,&quot;n4 estimated&quot;]""#), "{svg}");
        assert!(svg.contains(r#"data-flow="1""#) && !svg.contains(r#"data-flow="2""#), "{svg}");
        assert!(svg.contains("neighborhood queue (packets) over time, a"), "{svg}");
    }

    #[test]
    fn nan_values_are_not_drawn() {
        let queue = QueueSeries { name: "n0 real".into(), packets: vec![f64::NAN, f64::INFINITY, 2.0] };
        let series = RunSeries { step_s: 1.0, run: 1, queues: vec![queue], ..RunSeries::default() };
        let (_, svg) = &charts(&[series], &["a"])[0];
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
